// pawl_http_page FILE          writes the reference page of HTTP
// pawl_http_page --check FILE  fails when FILE is not what it would write
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "api/openapi.h"

namespace {

int check(const char* file, const std::string& page) {
  std::ifstream in(file, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (found == page) return 0;
  std::fprintf(stderr, "%s is not current; run: pawl_http_page %s\n", file, file);
  return 1;
}

int write(const char* file, const std::string& page) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << page;
  out.close();
  if (out) return 0;
  std::fprintf(stderr, "cannot write %s\n", file);
  return 74;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string page = pawl::api::http_page(pawl::api::all_routes());
  if (argc == 3 && std::string_view(argv[1]) == "--check") return check(argv[2], page);
  if (argc == 2) return write(argv[1], page);
  std::fprintf(stderr, "usage: pawl_http_page [--check] FILE\n");
  return 64;
}
