#include "guard_contract/parse.h"

#include <charconv>
#include <initializer_list>
#include <string>

#include "base/limits.h"

namespace pawl::guard {
namespace {

template <class Word>
std::optional<Word> find(std::initializer_list<Word> words, std::string_view text) {
  for (const Word word : words) {
    if (to_text(word) == text) return word;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> parse_verdict(std::string_view text) {
  return find(
      {Verdict::kAdmitted, Verdict::kReplayed, Verdict::kStale, Verdict::kMissing, Verdict::kAhead},
      text);
}

std::optional<GuardMode> parse_mode(std::string_view text) {
  return find({GuardMode::kObserve, GuardMode::kShadow, GuardMode::kCanary, GuardMode::kEnforce},
              text);
}

std::optional<std::uint64_t> parse_token(std::string_view text) {
  if (text.empty() || text.size() > 16 || text.front() == '0') return std::nullopt;
  std::uint64_t token = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    token = token * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (token > limits::kTokenMax) return std::nullopt;
  return token;
}

std::uint64_t parse_field(std::string_view text, std::string_view key) {
  const std::string wanted = std::string(key) + "=";
  for (std::size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
    if (at != 0 && text[at - 1] != ' ' && text[at - 1] != '[') continue;
    std::uint64_t number = 0;
    std::from_chars(text.data() + at + wanted.size(), text.data() + text.size(), number);
    return number;
  }
  return 0;
}

Result<void> check_contract_version(std::string_view contract, std::string_view version) {
  const std::string ours = std::to_string(kGuardContract);
  if (contract == ours) return {};
  return Error{Code::kInvalid, "guard " + std::string(version) +
                                   " is installed here with contract " + std::string(contract) +
                                   "; this libpawl knows contract " + ours +
                                   " only. Upgrade the older of the two"};
}

}  // namespace pawl::guard
