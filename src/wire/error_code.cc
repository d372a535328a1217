#include "wire/error_code.h"

#include <array>

#include "base/assert.h"

namespace pawl::wire {
namespace {

struct Row {
  ErrorCode code;
  std::string_view word;
  Code conclusion;
  std::string_view meaning;
};

constexpr std::array<Row, kErrorCodes> kRows{{
    {ErrorCode::kErr, "ERR", Code::kInvalid,
     "The command is wrong; the text says what was expected."},
    {ErrorCode::kLost, "LOST", Code::kLeaseLost,
     "The lease is over; the text says how it ended, and of a broken one by whom and why."},
    {ErrorCode::kConflict, "CONFLICT", Code::kInvalid,
     "The request id was used with other locks, mode, limit or TTL; or a newer connection took "
     "over the "
     "wait."},
    {ErrorCode::kBusy, "BUSY", Code::kUnavailable,
     "A limit of the service is reached; the text names it."},
    {ErrorCode::kTooLong, "TOOLONG", Code::kInvalid,
     "Something is longer than its limit; the text names it."},
    {ErrorCode::kNoAuth, "NOAUTH", Code::kDenied, "Authenticate first, with HELLO or AUTH."},
    {ErrorCode::kWrongPass, "WRONGPASS", Code::kDenied, "Wrong user or password."},
    {ErrorCode::kNoPerm, "NOPERM", Code::kDenied, "This user may not do that."},
    {ErrorCode::kNoProto, "NOPROTO", Code::kInvalid,
     "HELLO asked for a version other than 2 or 3."},
    {ErrorCode::kLoading, "LOADING", Code::kUnavailable,
     "pawld is still reading its data; nothing happened."},
    {ErrorCode::kReadOnly, "READONLY", Code::kUnavailable,
     "This pawld stands by, and nothing happened: `active=` names the one to ask, `http=` its HTTP "
     "interface. Without them none is known: ask again, here or elsewhere, in a moment."},
    {ErrorCode::kUncertain, "UNCERTAIN", Code::kUnknown,
     "The store did not confirm; ask again with the same request id."},
    {ErrorCode::kFull, "FULL", Code::kUnavailable, "No disk space; nothing happened."},
    {ErrorCode::kExhausted, "EXHAUSTED", Code::kUnavailable,
     "The tokens are used up; nothing happened."},
}};

const Row& row(ErrorCode code) {
  const auto index = static_cast<std::size_t>(code);
  PAWL_ASSERT(index < kRows.size() && kRows[index].code == code);
  return kRows[index];
}

}  // namespace

std::string_view to_text(ErrorCode code) {
  return row(code).word;
}
std::string_view meaning(ErrorCode code) {
  return row(code).meaning;
}
Code conclusion(ErrorCode code) {
  return row(code).conclusion;
}

std::optional<ErrorCode> error_code_from_text(std::string_view word) {
  for (const Row& row : kRows) {
    if (row.word == word) return row.code;
  }
  return std::nullopt;
}

bool is_closing_error(std::string_view line) {
  return line.starts_with("BUSY events:") || line.starts_with("BUSY unauthenticated:") ||
         line.starts_with("NOAUTH users:");
}

namespace {

// The word behind `key`, up to the next space.
std::string_view word_behind(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    if (at == 0 || line[at - 1] != ' ') continue;
    const std::string_view rest = line.substr(at + key.size());
    return rest.substr(0, rest.find(' '));
  }
  return {};
}

}  // namespace

ActiveElsewhere active_in(std::string_view line) {
  return {word_behind(line, "active="), word_behind(line, "http=")};
}

std::string active_text(std::string_view advertised) {
  const std::size_t slash = advertised.find('/');
  const std::string_view resp = advertised.substr(0, slash);
  std::string text = "active=" + std::string(resp);
  if (slash == std::string_view::npos) return text;
  const std::string_view http = advertised.substr(slash + 1);
  const bool only_port = http.find(':') == std::string_view::npos;
  text += " http=";
  if (only_port) text.append(resp.substr(0, resp.rfind(':') + 1));
  return text.append(http);
}

Error error_from_line(std::string_view line) {
  const auto code = error_code_from_text(line.substr(0, line.find(' ')));
  return Error{code ? conclusion(*code) : Code::kUnknown, std::string(line)};
}

}  // namespace pawl::wire
