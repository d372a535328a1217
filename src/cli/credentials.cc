#include "cli/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace pawl::cli {

Result<Auth> parse_credentials(std::string_view text, std::string_view source) {
  const std::size_t colon = text.find(':');
  const bool parted = colon != std::string_view::npos && colon > 0 && colon + 1 < text.size();
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!parted || !plain) {
    return Error{
        Code::kInvalid,
        fmt::format("{}: expected user:secret, as `pawl auth add` prints it, without spaces",
                    source)};
  }
  return Auth{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

Result<Auth> find_credentials(const std::string& file) {
  if (file.empty()) {
    const char* environment = std::getenv("PAWL_AUTH");
    if (environment == nullptr || *environment == '\0') return Auth{};
    return parse_credentials(environment, "PAWL_AUTH");
  }
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line)) {
    const std::string why = in.eof() ? "is empty" : std::generic_category().message(errno);
    return Error{Code::kInvalid, fmt::format("--auth-file {}: {}", file, why)};
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return parse_credentials(line, file);
}

}  // namespace pawl::cli
