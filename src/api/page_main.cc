// Writes the reference page of HTTP, or checks it.
#include "api/openapi.h"
#include "base/page_tool.h"

int main(int argc, char** argv) {
  return pawl::page_tool(argc, argv, pawl::api::http_page(pawl::api::all_routes()));
}
