// Writes the protocol page, or checks it.
#include "base/page_tool.h"
#include "server/verbs/table.h"

int main(int argc, char** argv) {
  return pawl::page_tool(argc, argv, pawl::server::protocol_page());
}
