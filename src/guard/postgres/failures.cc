#include "guard/postgres/failures.h"

#include <array>

namespace pawl::guard {
namespace {

struct Conclusion {
  std::string_view state;  // a whole SQLSTATE, or the two characters of its class
  Code code;
  std::string_view advice;  // appended for people
};

constexpr std::array kConclusions{
    Conclusion{kStateStale, Code::kStaleToken, ""},
    Conclusion{kStateWaiting, Code::kBusy, ""},
    Conclusion{"42501", Code::kDenied, ""},
    Conclusion{"25006", Code::kInvalid,
               "the transaction is read-only, or this server is a replica"},
    Conclusion{"3F000", Code::kInvalid, "no guard is installed here: pawl guard install postgres"},
    Conclusion{"42883", Code::kInvalid,
               "no guard of this version is installed here: pawl guard install postgres"},
    Conclusion{"55P03", Code::kUnavailable, ""},  // lock_timeout
    Conclusion{"57", Code::kUnavailable, ""},     // cancelled, shut down, starting
    Conclusion{"53", Code::kUnavailable, ""},     // out of memory, disk, connections
    Conclusion{"08", Code::kUnavailable, ""},     // connection
    Conclusion{"40", Code::kUnavailable, ""},     // serialization, deadlock: again, with patience
};

std::string words(const PgFailure& failure, std::string_view advice) {
  constexpr std::string_view kPrefix = "pawl: ";  // The guard says who speaks; here it is clear.
  std::string text = failure.message;
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  if (!failure.state.empty()) text += " (" + failure.state + ")";
  if (!failure.detail.empty()) text += ": " + failure.detail;
  if (!advice.empty()) text += "; " + std::string(advice);
  if (!failure.hint.empty()) text += ". " + failure.hint;
  return text;
}

}  // namespace

bool may_pass_again(const PgFailure& failure) {
  return failure.state == "40001" || failure.state == "40P01";
}

Error to_error(const PgFailure& failure) {
  if (failure.disconnected || failure.state.empty())
    return {Code::kUnavailable, words(failure, "")};
  for (const Conclusion& known : kConclusions) {
    if (failure.state.starts_with(known.state)) return {known.code, words(failure, known.advice)};
  }
  return {Code::kInvalid, words(failure, "")};
}

}  // namespace pawl::guard
