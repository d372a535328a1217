#include <array>

#include "base/assert.h"
#include "conformance/subject.h"

namespace pawl::conformance {
namespace {

constexpr std::array<std::string_view, kAbilityCount> kAbilities{
    "transactions",  "read_committed", "repeatable_read", "serializable", "concurrency",
    "operation_set", "operation_last", "several",         "text_tokens",  "tokenless",
    "unguarded",     "modes",          "canary",          "emergency",    "require_token",
    "max_step",      "equal_once",     "equal_refuse",    "counts",       "remove",
    "compact",       "lost_commit",    "vanish"};
constexpr std::array<std::string_view, 13> kAnswers{
    "admitted", "replayed",  "stale", "missing", "ahead",   "malformed", "unguarded",
    "done",     "isolation", "again", "busy",    "unknown", "broken"};
constexpr std::array<std::string_view, 4> kIsolations{"default", "read_committed",
                                                      "repeatable_read", "serializable"};
constexpr std::array<std::string_view, 3> kEquals{"accept", "once", "refuse"};

template <class Word, std::size_t n>
std::optional<Word> find(const std::array<std::string_view, n>& words, std::string_view text) {
  for (std::size_t i = 0; i < n; ++i) {
    if (words[i] == text) return static_cast<Word>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_text(Ability ability) {
  return kAbilities.at(static_cast<std::size_t>(ability));
}

std::optional<Ability> parse_ability(std::string_view text) {
  return find<Ability>(kAbilities, text);
}

std::string_view to_text(Answer answer) {
  return kAnswers.at(static_cast<std::size_t>(answer));
}

std::optional<Answer> parse_answer(std::string_view text) {
  return find<Answer>(kAnswers, text);
}

std::string_view to_text(Isolation isolation) {
  return kIsolations.at(static_cast<std::size_t>(isolation));
}

std::string_view to_text(Equal equal) {
  return kEquals.at(static_cast<std::size_t>(equal));
}

std::vector<Ability> Abilities::list() const {
  std::vector<Ability> all;
  for (std::size_t i = 0; i < kAbilityCount; ++i) {
    if (const auto ability = static_cast<Ability>(i); has(ability)) all.push_back(ability);
  }
  return all;
}

}  // namespace pawl::conformance
