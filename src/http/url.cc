#include "http/url.h"

#include <algorithm>

namespace pawl::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded_word(std::string_view word) {
  std::string spaced(word);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return percent_decoded(spaced);
}

Result<void> add_parameter(std::string_view pair, Query& query) {
  const std::size_t equals = pair.find('=');
  const auto name = decoded_word(pair.substr(0, equals));
  const auto value = decoded_word(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
  if (!name || !value)
    return Error{Code::kInvalid, "the query has a % that is not followed by two hex digits"};
  if (!query.emplace(*name, *value).second)
    return Error{Code::kInvalid, "the query names a parameter twice"};
  return {};
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const bool whole = text.size() - i > 2;
    const int high = whole ? hex_digit(text[i + 1]) : -1;
    const int low = whole ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Result<Target> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return Error{Code::kInvalid, "the target must be a path"};
  const std::size_t mark = target.find('?');
  Target parsed{std::string(target.substr(0, mark)), {}};
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    if (auto added = add_parameter(pair, parsed.query); !added) return added.error();
  }
  return parsed;
}

}  // namespace pawl::http
