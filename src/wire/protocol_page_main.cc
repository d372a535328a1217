// pawl_protocol_page FILE          writes the protocol page
// pawl_protocol_page --check FILE  fails when FILE is not what it would write
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "wire/command_docs.h"

namespace {

int check(const char* file) {
  std::ifstream in(file, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (found == pawl::wire::protocol_page()) return 0;
  std::fprintf(stderr, "%s is not current; run: pawl_protocol_page %s\n", file, file);
  return 1;
}

int write(const char* file) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << pawl::wire::protocol_page();
  out.close();
  if (out) return 0;
  std::fprintf(stderr, "cannot write %s\n", file);
  return 74;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--check") return check(argv[2]);
  if (argc == 2) return write(argv[1]);
  std::fprintf(stderr, "usage: pawl_protocol_page [--check] FILE\n");
  return 64;
}
