// Why something in a SQLite file was not done. Its first word is for programs, in every language:
// PAWL_STALE, PAWL_BUSY.
//
// Inside src/guard/sqlite a Fault is thrown; where SQL functions and C++ callers come in it is
// caught and reported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "guard/sqlite/api.h"
#include "pawl/result.h"

namespace pawl::sqlite {

enum class Word : std::uint8_t {
  kStale,        // A greater token has been here. Final.
  kMissing,      // No token, and one is required.
  kAhead,        // Forged or corrupt.
  kReplayed,     // pawl_use() said "replayed", and yet someone writes.
  kMalformed,    // Not a token, or not an operation number.
  kUnguarded,    // Nobody put this resource under guard.
  kBusy,         // Another connection writes. Nothing happened; try again.
  kTransaction,  // Needs a transaction, or must not be in one.
  kInvalid,      // The request or the installation is wrong.
  kFailed,       // SQLite's own words.
};
[[nodiscard]] std::string_view to_text(Word word);  // PAWL_…

struct Fault {
  Word word = Word::kFailed;
  std::string text;
  int sqlite = SQLITE_ERROR;  // What a C caller gets as the result code.
};
[[noreturn]] void fail(Word word, std::string text);
// What SQLite itself said last.
[[noreturn]] void fail_with(sqlite3* db, int rc);

[[nodiscard]] std::string message_of(const Fault& fault);  // "PAWL_STALE: …"
[[nodiscard]] Error to_error(const Fault& fault);

// "orders" → "\"orders\"", whatever is in it.
[[nodiscard]] std::string quoted(std::string_view identifier);

}  // namespace pawl::sqlite
