// What racing writers sent and were answered, and what follows for the guard (property P5). Pure.
//
// Each racer notes its steps with stamps of one counter: a stamp taken before a step began and one
// after it was answered. So "a was answered before b began" is known for certain; where two
// overlap, either order is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/subject.h"

namespace pawl::conformance {

struct Deed {
  enum class Kind : std::uint8_t { kWrite, kAdvance };
  Kind kind = Kind::kWrite;
  std::uint64_t token = 0;
  std::string value = {};  // of a write; no two are alike
  // The step that made it count: the commit, the whole write, or the advance.
  std::uint64_t began = 0;
  std::uint64_t answered = 0;
  Answer answer = Answer::kBroken;
  bool counts = false;  // It was answered that it took effect.
};

// Sentences, each of which is false of a guard that keeps the contract:
//   - the tokens of the effects, in the order in which they took effect, never go down;
//   - no effect was begun after a write or an advance with a greater token was answered;
//   - what was answered as done took effect exactly once, what was refused not at all, the unknown
//     at most once;
//   - every effect carries the token it was admitted with.
[[nodiscard]] std::vector<std::string> violations(const std::vector<Deed>& deeds,
                                                  const std::vector<Effect>& effects);

}  // namespace pawl::conformance
