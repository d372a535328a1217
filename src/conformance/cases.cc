#include "conformance/cases.h"

namespace pawl::conformance {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto theme : {verdict_cases(), operation_cases(), mode_cases(), resource_cases(),
                           reader_cases(), race_cases(), crash_cases()}) {
    all.insert(all.end(), theme.begin(), theme.end());
  }
  return all;
}

}  // namespace pawl::conformance
