#include "guard/words.h"

#include <initializer_list>

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
  return find({Verdict::kAdmitted, Verdict::kReplayed, Verdict::kStale, Verdict::kMissing, Verdict::kAhead},
              text);
}

std::optional<GuardMode> parse_mode(std::string_view text) {
  return find({GuardMode::kObserve, GuardMode::kShadow, GuardMode::kCanary, GuardMode::kEnforce}, text);
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

}  // namespace pawl::guard
