#include "cli/lease_argument.h"

#include <cstdlib>
#include <iostream>

#include "base/hex.h"

namespace pawl::cli {
namespace {

std::string read_line() {
  std::string line;
  std::getline(std::cin, line);
  const auto last = line.find_last_not_of(" \t\r");
  line.resize(last == std::string::npos ? 0 : last + 1);
  return line;
}

}  // namespace

Result<LeaseId> lease_from(const std::string& argument) {
  std::string digits = argument;
  if (argument == "-") digits = read_line();
  if (argument.empty()) {
    const char* environment = std::getenv("PAWL_LEASE");
    if (environment == nullptr || *environment == '\0') {
      return Error{Code::kInvalid,
                   "no lease: name it, use `-` to read it from stdin, or set PAWL_LEASE."};
    }
    digits = environment;
  }
  if (const auto lease = lease_from_hex(digits)) return *lease;
  // What was given is not repeated: it may be a mistyped secret.
  return Error{Code::kInvalid,
               "a lease is 32 lowercase hex digits, as `pawl acquire` printed them"};
}

}  // namespace pawl::cli
