#include <array>

#include "base/limits.h"
#include "guard/words.h"
#include "pawl/guard.h"

namespace pawl {
namespace {

constexpr std::array<std::string_view, 5> kVerdicts{"admitted", "replayed", "stale", "missing", "ahead"};
constexpr std::array<std::string_view, 4> kModes{"observe", "shadow", "canary", "enforce"};

template <class Word, std::size_t n>
std::optional<Word> find(const std::array<std::string_view, n>& words, std::string_view text) {
  for (std::size_t i = 0; i < n; ++i) {
    if (words[i] == text) return static_cast<Word>(i);
  }
  return std::nullopt;
}

}  // namespace

Guard::~Guard() = default;

std::string_view to_text(Verdict verdict) {
  return kVerdicts.at(static_cast<std::size_t>(verdict));
}

std::string_view to_text(GuardMode mode) {
  return kModes.at(static_cast<std::size_t>(mode));
}

namespace guard {

std::optional<Verdict> parse_verdict(std::string_view text) {
  return find<Verdict>(kVerdicts, text);
}

std::optional<GuardMode> parse_mode(std::string_view text) {
  return find<GuardMode>(kModes, text);
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

}  // namespace guard
}  // namespace pawl
