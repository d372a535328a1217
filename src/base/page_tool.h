// The main() of the tools that render a page of the documentation from the program's own tables.
//
//   pawl_…_page FILE          writes the page
//   pawl_…_page --check FILE  fails when FILE is not what it would write
#pragma once

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace pawl {

inline int check_page(const char* tool, const char* file, const std::string& page) {
  std::ifstream in(file, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (found == page) return 0;
  std::fprintf(stderr, "%s is not current; run: %s %s\n", file, tool, file);
  return 1;
}

inline int write_page(const char* file, const std::string& page) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << page;
  out.close();
  if (out) return 0;
  std::fprintf(stderr, "cannot write %s\n", file);
  return 74;
}

inline int page_tool(int argc, char** argv, const std::string& page) {
  if (argc == 3 && std::string_view(argv[1]) == "--check")
    return check_page(argv[0], argv[2], page);
  if (argc == 2) return write_page(argv[1], page);
  std::fprintf(stderr, "usage: %s [--check] FILE\n", argv[0]);
  return 64;
}

}  // namespace pawl
