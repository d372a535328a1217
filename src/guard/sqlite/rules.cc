#include "guard/sqlite/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::sqlite {
namespace {

// FNV-1a with a last mix: what is stored under a guard's canary must mean the same in every version
// and process.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 14695981039346656037U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdU;
  return h ^ (h >> 33);
}

}  // namespace

Verdict judge(std::optional<std::uint64_t> token, std::uint64_t fence, std::uint64_t max_step) {
  if (!token) return Verdict::kMissing;
  if (*token < fence) return Verdict::kStale;
  if (fence != 0 && *token - fence > max_step) return Verdict::kAhead;
  return Verdict::kAdmitted;
}

bool enforces(GuardMode mode, int percent, std::string_view resource) {
  if (mode == GuardMode::kCanary) return hash(resource) % 100 < static_cast<std::uint64_t>(percent);
  return mode == GuardMode::kEnforce;
}

bool refusable(Verdict verdict, bool has_token, bool require_token) {
  if (verdict == Verdict::kAdmitted) return false;
  return verdict != Verdict::kMissing || has_token || require_token;
}

std::string resource_of(const GuardRow& guard, std::string_view key) {
  return guard.keyed() ? fmt::format("{}:{}", guard.name, key) : guard.name;
}

std::string fold(std::string_view key, std::string_view collation) {
  std::string folded(key);
  if (collation == "NOCASE") {
    for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    // SQLite looks at nothing behind a NUL but how much there is.
    std::fill(std::find(folded.begin(), folded.end(), '\0'), folded.end(), '\0');
  } else if (collation == "RTRIM") {
    folded.erase(folded.find_last_not_of(' ') + 1);
  }
  return folded;
}

std::string explain(Verdict verdict, std::string_view resource, std::optional<std::uint64_t> token,
                    std::uint64_t fence) {
  switch (verdict) {
    case Verdict::kStale:
      if (fence <= *token)
        return fmt::format(
            "stale token {} for {}: it has been here. Stop; a retry cannot succeed. The policy of "
            "this guard "
            "admits each token once.",
            *token, resource);
      return fmt::format(
          "stale token {} for {}: token {} has been here. Stop; a retry cannot succeed. A newer "
          "holder has "
          "taken over, or a holder of another lock writes here: one guarded resource needs one "
          "lock. If "
          "pawld still grants tokens below {}, run: pawl raise {} --reason TEXT",
          *token, resource, fence, fence, fence);
    case Verdict::kMissing:
      if (token)
        return fmt::format(
            "token {} was used for {} before, and is admitted again only with an operation number: "
            "pawl_use('{}', {}, op)",
            *token, resource, resource, *token);
      return fmt::format(
          "write to {} without a token. First in the transaction: SELECT pawl_use('{}', token)",
          resource, resource);
    case Verdict::kAhead:
      return fmt::format(
          "token {} for {} is further ahead of {} than the guard allows: forged or corrupt", *token,
          resource, fence);
    case Verdict::kReplayed:
      return fmt::format(
          "this operation on {} was done before, as pawl_use() has answered: skip the work, and "
          "commit "
          "or roll back",
          resource);
    case Verdict::kAdmitted:
      break;
  }
  return std::string(to_text(verdict));
}

}  // namespace pawl::sqlite
