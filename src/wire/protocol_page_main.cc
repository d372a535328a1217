// Writes the protocol page, or checks it.
#include "base/page_tool.h"
#include "wire/command_docs.h"

int main(int argc, char** argv) {
  return pawl::page_tool(argc, argv, pawl::wire::protocol_page());
}
