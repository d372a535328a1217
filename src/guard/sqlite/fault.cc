#include "guard/sqlite/fault.h"

#include <array>
#include <utility>

namespace pawl::sqlite {
namespace {

constexpr std::array<std::string_view, 10> kWords{
    "PAWL_STALE",     "PAWL_MISSING", "PAWL_AHEAD",       "PAWL_REPLAYED", "PAWL_MALFORMED",
    "PAWL_UNGUARDED", "PAWL_BUSY",    "PAWL_TRANSACTION", "PAWL_INVALID",  "PAWL_FAILED"};

int code_of(Word word) {
  if (word == Word::kBusy) return SQLITE_BUSY;
  // What a trigger's RAISE gives: drivers know it as a violated constraint, not as a broken
  // statement.
  return word <= Word::kMalformed ? SQLITE_CONSTRAINT_TRIGGER : SQLITE_ERROR;
}

std::string doubled(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) out.append(c == quote ? 2 : 1, c);
  return out + quote;
}

}  // namespace

std::string_view to_text(Word word) {
  return kWords.at(static_cast<std::size_t>(word));
}

void fail(Word word, std::string text) {
  throw Fault{word, std::move(text), code_of(word)};
}

void fail_with(sqlite3* db, int rc) {
  // A write lock that cannot come by waiting: what this transaction has read is old.
  if (rc == SQLITE_BUSY_SNAPSHOT)
    throw Fault{Word::kBusy,
                "others have written since this transaction began to read: roll back, and begin "
                "with BEGIN IMMEDIATE",
                rc};
  if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
    throw Fault{
        Word::kBusy,
        "another connection is writing: roll back and try again; BEGIN IMMEDIATE waits for it", rc};
  throw Fault{Word::kFailed, sqlite3_errmsg(db), rc};
}

std::string message_of(const Fault& fault) {
  return std::string(to_text(fault.word)) + ": " + fault.text;
}

Error to_error(const Fault& fault) {
  switch (fault.word) {
    case Word::kStale:
      return {Code::kStaleToken, fault.text};
    case Word::kBusy:
      return {Code::kBusy, fault.text};
    case Word::kFailed:
      break;
    default:
      return {Code::kInvalid, fault.text};
  }
  switch (fault.sqlite & 0xff) {
    case SQLITE_READONLY:
    case SQLITE_AUTH:
    case SQLITE_PERM:
      return {Code::kDenied, fault.text};
    case SQLITE_CANTOPEN:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
      return {Code::kUnavailable, fault.text};
    default:
      return {Code::kInvalid, fault.text};
  }
}

std::string quoted(std::string_view identifier) {
  return doubled(identifier, '"');
}

}  // namespace pawl::sqlite
