#include "base/suggestion.h"

#include <algorithm>
#include <numeric>

namespace pawl {
namespace {

constexpr std::size_t kEditsMax = 2;

// Insertions, deletions, changes and swaps of neighbours that turn one into the other.
std::size_t edits_between(std::string_view left, std::string_view right) {
  std::vector<std::vector<std::size_t>> edits(left.size() + 1,
                                              std::vector<std::size_t>(right.size() + 1));
  for (std::size_t i = 0; i <= left.size(); ++i) edits[i][0] = i;
  std::iota(edits[0].begin(), edits[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t change = left[i - 1] == right[j - 1] ? 0 : 1;
      edits[i][j] =
          std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[left.size()][right.size()];
}

}  // namespace

std::optional<std::string> closest_word(std::string_view typed,
                                        const std::vector<std::string>& words) {
  std::optional<std::string> closest;
  std::size_t fewest = kEditsMax + 1;
  for (const std::string& word : words) {
    const std::size_t edits = edits_between(typed, word);
    if (edits >= fewest || 2 * edits >= word.size()) continue;
    fewest = edits;
    closest = word;
  }
  return closest;
}

}  // namespace pawl
