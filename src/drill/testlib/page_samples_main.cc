// Writes the report pages of the sample records into a directory, for
// tests/e2e/drill_page_test.py and for looking at them.
//
//   pawl_drill_pages DIR
#include <fstream>
#include <iostream>

#include "drill/report/page.h"
#include "drill/testlib/page_samples.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pawl_drill_pages DIR\n";
    return 64;
  }
  for (const pawl::drill::Sample& sample : pawl::drill::samples()) {
    std::ofstream file(std::string(argv[1]) + "/" + sample.name + ".html", std::ios::binary);
    file << pawl::drill::report_page(sample.record);
    if (!file.flush()) {
      std::cerr << "cannot write the page " << sample.name << "\n";
      return 74;
    }
  }
  return 0;
}
