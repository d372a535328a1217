#include "http/message.h"

#include <algorithm>

namespace pawl::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::size_t Request::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(headers.begin(), headers.end(),
                                                [&](const Header& h) { return same_word(h.name, name); }));
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  if (count(name) != 1) return std::nullopt;
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const Header& h) { return same_word(h.name, name); });
  return found->value;
}

}  // namespace pawl::http
