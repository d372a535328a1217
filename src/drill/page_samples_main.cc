// Writes the pages of records made by hand into a directory: for tests/drill/page_test.py, and for
// looking at them.
//
//   pawl_drill_pages DIR
#include <fstream>
#include <iostream>

#include "drill/page.h"
#include "drill/page_samples.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pawl_drill_pages DIR\n";
    return 64;
  }
  for (const pawl::drill::Sample& sample : pawl::drill::samples()) {
    std::ofstream file(std::string(argv[1]) + "/" + sample.name + ".html", std::ios::binary);
    file << pawl::drill::html(sample.record);
    if (!file.flush()) {
      std::cerr << "cannot write the page " << sample.name << "\n";
      return 74;
    }
  }
  return 0;
}
