// An HTTP/1.1 server on a thread of its own. It knows bytes, limits and time-outs, and nothing of
// what is served.
//
//   http::Server server(log, [&](std::shared_ptr<http::Exchange> exchange) { … exchange->answer({200, "text/plain", "hello\n"}); });
//   server.start(std::move(listening_socket));
//   …
//   server.stop();
//
// The handler is called on the server's thread, once per request, and must not block; the answer
// may come later, from that same thread (post() gets there from any other). Requests of one
// connection are answered one after the other. Connections, header and body sizes and every wait
// for a peer are bounded (base/limits.h): who sends a request byte by byte, does not read its
// answer, or stays silent is closed.
//
// With use_tls() it speaks HTTPS, and nothing else.
//
// Boost.Beast and Asio are compiled in server.cc, and nowhere else.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/limits.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "http/message.h"
#include "http/problem.h"
#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::http {

enum class Gone : std::uint8_t {
  // It will send nothing more, but may still read (a half-close looks like this, and so does a
  // hang-up at first).
  kSilent,
  kClosed,  // Nobody reads.
};

// One request, and its answer. Used on the server's thread only, kept by the handler until it is
// answered, and gone before the server is.
class Exchange {
 public:
  virtual ~Exchange() = default;
  [[nodiscard]] virtual const Request& request() const = 0;

  // The answer; once. After kClosed it goes nowhere.
  virtual void answer(Response response) = 0;

  // Instead of answer(): a head, and then text until end_stream(). `quiet` is sent when there was
  // nothing for a while.
  virtual void begin_stream(Response head, std::string quiet) = 0;
  virtual void write(std::string text) = 0;
  virtual void end_stream() = 0;

  // Set by the handler. kSilent may be followed by kClosed.
  std::function<void(Gone)> on_gone;
  // All that was written has left.
  std::function<void()> on_drained;
};

class Server {
 public:
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;
  struct Bounds {
    std::size_t connections = limits::kHttpConnectionsMax;
    Millis idle = limits::kHttpIdleMax;
    Millis request = limits::kHttpRequestMax;
    Millis write = limits::kHttpWriteMax;
    Millis quiet = limits::kHttpQuietMax;
    Millis handshake = limits::kHandshakeTime;
  };

  Server(Log& log, Handler handler, Bounds bounds);
  Server(Log& log, Handler handler) : Server(log, std::move(handler), Bounds{}) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Connections from now on speak TLS, under this context; those that exist go on as they are. From
  // the thread that starts and stops it.
  void use_tls(std::shared_ptr<const tls::ServerContext> context);
  // Serves a socket that listens; it must be non-blocking.
  Result<void> start(UniqueFd listener);
  // Closes every connection at once and ends the thread. The handler is not called any more.
  void stop();
  // Runs `task` on the server's thread. From any thread, before stop() too.
  void post(std::function<void()> task);

  struct Usage {
    std::size_t connections = 0;      // open now
    std::size_t connections_max = 0;  // the limit
    std::uint64_t refused = 0;        // beyond it, ever
  };
  // From any thread.
  [[nodiscard]] Usage usage() const;

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace pawl::http
