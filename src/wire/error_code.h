// The first word of an error reply, and what the caller may conclude from it.
//
//   -LOST expired            code kLost, detail "expired"
//
// Programs read the code; the rest of the line is for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::wire {

enum class ErrorCode : std::uint8_t {
  kErr,        // Syntax or range; the text says what was expected.
  kLost,       // The lease is over; the text says how it ended.
  kConflict,   // Request id reused for something else, or superseded by a newer connection.
  kBusy,       // A limit is reached; the text names it.
  kTooLong,    // Longer than a limit; the text names it.
  kNoAuth,     // Authenticate first.
  kWrongPass,  // Wrong user or password.
  kNoPerm,     // Authenticated, but not allowed.
  kNoProto,    // HELLO asked for a version of RESP that Pawl does not speak.
  kLoading,    // pawld still reads its data; nothing happened.
  kReadOnly,   // A standby; the text names the active one.
  kUncertain,  // The store did not confirm; ask again with the same request id.
  kFull,       // No disk space; nothing happened.
  kExhausted,  // Tokens are used up.
};
inline constexpr std::size_t kErrorCodes = 14;

// An error reply: code and text, without the leading '-'.
struct WireError {
  ErrorCode code = ErrorCode::kErr;
  std::string text;
  bool operator==(const WireError&) const = default;
};

// "ERR", "LOST", …
[[nodiscard]] std::string_view to_text(ErrorCode code);
[[nodiscard]] std::optional<ErrorCode> error_code_from_text(std::string_view word);
// One sentence for people: the protocol page prints it.
[[nodiscard]] std::string_view meaning(ErrorCode code);
// What the caller may conclude. BUSY is a limit of the service, not a lock held by someone:
// kUnavailable.
[[nodiscard]] Code conclusion(ErrorCode code);

// The error lines that pawld sends before it closes a connection by itself. They answer no command,
// and no command that was still unanswered has happened.
inline constexpr std::string_view kClosedSlowObserver =
    "events: this connection reads too slowly, and what it has not read is no longer kept; observe "
    "again";
inline constexpr std::string_view kClosedUserChanged =
    "users: the auth_file has changed for this user; authenticate again";
inline constexpr std::string_view kClosedNotInTime =
    "unauthenticated: this connection has not authenticated within 10 s; connect again, and send "
    "AUTH at once";
inline constexpr std::string_view kClosedDisplaced =
    "unauthenticated: too many connections have not authenticated, and this one is the oldest of "
    "them; connect again, and send AUTH at once";
// Whether an error line is one of those.
[[nodiscard]] bool is_closing_error(std::string_view line);

// The answer of a TLS port, in plain text after "-ERR ", to a client that does not use TLS.
inline constexpr std::string_view kPortSpeaksTls = "this port speaks TLS";

// Where a READONLY error sends the client: "READONLY active=host:port http=host:port".
struct ActiveElsewhere {
  std::string_view resp;  // Each is empty when it is not known.
  std::string_view http;
};
[[nodiscard]] ActiveElsewhere active_in(std::string_view line);
// The text of such an error. `advertised` is what the active pawld has stored about itself:
// "host:port", or "host:port/http" with the port or the address of its HTTP interface behind it.
[[nodiscard]] std::string active_text(std::string_view advertised);

// Reads an error line ("LOST expired"). An unknown first word gives kUnknown, the safe conclusion.
[[nodiscard]] Error error_from_line(std::string_view line);

}  // namespace pawl::wire
