// Writes the reference page of metrics, or checks it.
#include "base/page_tool.h"
#include "server/metrics.h"

int main(int argc, char** argv) {
  return pawl::page_tool(argc, argv, pawl::server::metrics_page());
}
