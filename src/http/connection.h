// One connection of the server, from its first byte (after the TLS handshake, if any) to its end.
//
//   idle ──first byte──▶ reading ──last byte──▶ handling ──answer──▶ writing ──▶ idle, or lingering
//                                                   ╰──begin_stream──▶ streaming ──▶ lingering
//   lingering ──▶ closed
//
// A connection reads all the time, also while a request is being handled; otherwise the hang-up of
// a client that waits for a lock would not be noticed. Each phase has its own time limit, on one
// timer.
//
// Until the handler admits it, a connection is one of an unknown peer: it is closed
// bounds.authenticate after its beginning, as soon as no request is being answered, and earlier if
// there are too many (places.h).
//
// Included by the .cc files of this folder only: Asio takes long to compile.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/rate_limited_log.h"
#include "http/exchange.h"
#include "http/message.h"

namespace pawl::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using TlsStream = asio::ssl::stream<asio::ip::tcp::socket>;

// What a connection uses of its server, which outlives it.
struct ConnectionContext {
  const Handler& handler;
  const Bounds& bounds;
  Log& log;
  RateLimitedLog& peer_log;  // Rate-limited, for messages that unknown peers can cause.
};

// The other end of a connection.
struct Peer {
  std::string address;
  std::string user = {};  // The common name of its verified certificate.
  bool tls = false;
};

// The place of a connection in its server, as long as one copy exists.
class Slot {
 public:
  virtual ~Slot() = default;
  virtual Admission admit() = 0;
  // Whether the connection waits for its client.
  virtual void set_silent(bool silent) = 0;
  // How much memory an unanswered request takes. The connection may be closed for it.
  virtual void set_bytes(std::size_t bytes) = 0;
  // It is closed because its client was not known in time.
  virtual void count_late() = 0;
  // Set by whoever owns the connection: closes it at once, to make room for another.
  std::function<void()> on_displaced;
};
using ConnectionSlot = std::shared_ptr<Slot>;

// Serves requests until the connection ends; it keeps itself alive. On the server's thread.
void start_connection(asio::ip::tcp::socket socket, const ConnectionContext& context, Peer peer,
                      ConnectionSlot slot);
void start_connection(TlsStream stream, const ConnectionContext& context, Peer peer,
                      ConnectionSlot slot);

// Answers a client that gets no connection: sends the problem without TLS, in one piece, and does
// not wait for it to be read. The caller closes the socket.
void send_refusal(asio::ip::tcp::socket& socket, const Problem& problem);

}  // namespace pawl::http
