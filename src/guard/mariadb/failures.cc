#include "guard/mariadb/failures.h"

#include <array>

#include "guard/sql/states.h"

namespace pawl::guard {
namespace {

struct Conclusion {
  unsigned number;         // MariaDB's; 0: look at the state
  std::string_view state;  // a whole SQLSTATE, or how it begins
  Code code;
  std::string_view advice;  // appended for people
};

constexpr std::array kConclusions{
    Conclusion{0, kStateStale, Code::kStaleToken, ""},
    Conclusion{0, kStateWaiting, Code::kBusy, ""},
    Conclusion{1205, "", Code::kUnavailable,
               "somebody holds the row; try again"},        // lock wait timeout
    Conclusion{0, "40", Code::kUnavailable, "try again"},   // deadlock, old snapshot
    Conclusion{1020, "", Code::kUnavailable, "try again"},  // innodb_snapshot_isolation
    Conclusion{1044, "", Code::kDenied, ""},                // database
    Conclusion{1142, "", Code::kDenied, ""},                // table
    Conclusion{1227, "", Code::kDenied, ""},                // server-wide
    Conclusion{1370, "", Code::kDenied, ""},                // routine
    Conclusion{1290, "", Code::kInvalid, "this server is read-only: ask the primary"},
    Conclusion{1305, "", Code::kInvalid,
               "no guard of this version is installed here: pawl guard install mariadb"},
    Conclusion{1040, "", Code::kUnavailable, ""},  // too many connections
    Conclusion{1053, "", Code::kUnavailable, ""},  // shutting down
    Conclusion{1317, "", Code::kUnavailable, ""},  // interrupted
    Conclusion{1969, "", Code::kUnavailable, ""},  // max_statement_time
};

std::string words(const MariaFailure& failure, std::string_view advice) {
  constexpr std::string_view kPrefix = "pawl: ";  // The guard says who speaks; here it is clear.
  std::string text = failure.message;
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  if (!failure.state.empty()) text += " (" + failure.state + ")";
  if (!advice.empty()) text += "; " + std::string(advice);
  return text;
}

}  // namespace

bool may_pass_again(const MariaFailure& failure) {
  return failure.state == "40001" || failure.number == 1020;
}

Error to_error(const MariaFailure& failure) {
  if (failure.disconnected || failure.number >= 2000)
    return {Code::kUnavailable, words(failure, "")};
  for (const Conclusion& known : kConclusions) {
    const bool same =
        known.number != 0 ? failure.number == known.number : failure.state.starts_with(known.state);
    if (same) return {known.code, words(failure, known.advice)};
  }
  return {Code::kInvalid, words(failure, "")};
}

}  // namespace pawl::guard
