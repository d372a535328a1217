#include "store/etcd/keys.h"

#include <algorithm>

namespace pawl::store::etcd_log {
namespace {

constexpr std::size_t kNumberDigits = 16;
constexpr std::size_t kClusterNameMax = 64;

}  // namespace

std::string Keys::entry(std::uint64_t number) const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits(kNumberDigits, '0');
  for (std::size_t i = kNumberDigits; i-- > 0; number >>= 4) digits[i] = kDigits[number & 15];
  return prefix_ + "log/" + digits;
}

std::optional<std::uint64_t> Keys::entry_number(std::string_view key) const {
  if (key.size() != prefix_.size() + 4 + kNumberDigits) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : key.substr(key.size() - kNumberDigits)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return std::nullopt;
    number = number << 4 | static_cast<std::uint64_t>(digit);
  }
  if (entry(number) != key) return std::nullopt;
  return number;
}

bool is_cluster_name(std::string_view name) {
  return !name.empty() && name.size() <= kClusterNameMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace pawl::store::etcd_log
