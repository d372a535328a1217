// The rules of the guard in SQLite, without a database: what is compared with what, and what
// follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/guard.h"

namespace pawl::sqlite {

// One guard: a row of pawl_guard.
struct GuardRow {
  std::int64_t id = 0;
  std::string name;
  std::string kind;  // static, keyed, row, expression
  GuardMode mode = GuardMode::kEnforce;
  int percent = 100;  // canary
  bool require_token = false;
  std::string equal = "accept";  // accept, once, refuse
  std::uint64_t max_step = 0;
  std::uint64_t floor = 0;
  std::int64_t generation = 0;
  std::string collation = {};  // of the key column, where not every text is a key of its own

  [[nodiscard]] bool keyed() const { return kind != "static"; }
};

// A token with a fence; 0: there is none yet, and any first token is good.
[[nodiscard]] Verdict judge(std::optional<std::uint64_t> token, std::uint64_t fence,
                            std::uint64_t max_step);

// Whether this mode refuses for this resource. Canary takes a share of the resources, always the
// same ones.
[[nodiscard]] bool enforces(GuardMode mode, int percent, std::string_view resource);

// Whether it would be refused by a mode that refuses.
[[nodiscard]] bool refusable(Verdict verdict, bool has_token, bool require_token);

[[nodiscard]] std::string resource_of(const GuardRow& guard, std::string_view key);

// The form that all keys have which the key column calls equal: NOCASE ignores the case of ASCII
// letters and what stands behind a NUL, RTRIM spaces at the end. Every other text is a key of its
// own.
[[nodiscard]] std::string fold(std::string_view key, std::string_view collation);

// Why a write is refused, for people, behind the word for programs.
[[nodiscard]] std::string explain(Verdict verdict, std::string_view resource,
                                  std::optional<std::uint64_t> token, std::uint64_t fence);

}  // namespace pawl::sqlite
