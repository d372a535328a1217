// What a handler sees of one request: the request itself, and the means to answer it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/limits.h"
#include "base/types.h"
#include "http/message.h"

namespace pawl::http {

// How a client left before it got its answer.
enum class Gone : std::uint8_t {
  // It sends nothing more, but may still read. (A half-close looks like this, and so does a hang-up
  // at first.)
  kSilent,
  // The connection is closed.
  kClosed,
};

// What may be served on the connection of a client that is known.
enum class Admission : std::uint8_t {
  kAll,
  kRenewals,  // The ordinary places are taken.
  kNone,      // So are those for renewals. The connection closes after the answer.
};

// One request and its answer. Used on the server's thread only. The handler keeps it until it is
// answered, and destroys it before the server.
class Exchange {
 public:
  virtual ~Exchange() = default;
  [[nodiscard]] virtual const Request& request() const = 0;

  // The request is one of a valid user. Gives its connection a place among those of clients, and
  // returns what may be served on it.
  virtual Admission admit() = 0;

  // Sends the answer. Call once. After kClosed it has no effect.
  virtual void answer(Response response) = 0;

  // Instead of answer(): sends a head, and then the text of each write() until end_stream().
  // `quiet` is sent when nothing was written for a while, so that both ends notice a dead
  // connection.
  virtual void begin_stream(Response head, std::string quiet) = 0;
  virtual void write(std::string text) = 0;
  virtual void end_stream() = 0;

  // Set by the handler; called when the client has left. kSilent may be followed by kClosed.
  std::function<void(Gone)> on_gone;
  // Set by the handler; called when everything that was written has been sent.
  std::function<void()> on_drained;
};

// Called on the server's thread, once per request. It must not block; the answer may come later.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// The limits of a server. Tests use shorter times.
struct Bounds {
  std::size_t connections = limits::kHttpConnectionsMax;
  std::size_t reserved = limits::kHttpConnectionsReserved;     // more, for renewals
  std::size_t newcomers = limits::kHttpNewcomersMax;           // before they are admitted
  std::size_t newcomer_bytes = limits::kHttpNewcomerBytesMax;  // of all their requests together
  Millis authenticate = limits::kAuthenticateTime;             // until they are
  Millis idle = limits::kHttpIdleMax;
  Millis request = limits::kHttpRequestMax;
  Millis write = limits::kHttpWriteMax;
  Millis quiet = limits::kHttpQuietMax;
  Millis handshake = limits::kHandshakeTime;
};

}  // namespace pawl::http
