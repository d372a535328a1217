// An HTTP/1.1 server on a thread of its own. It handles bytes, limits and timeouts, and knows
// nothing of what is served.
//
//   http::Server server(log, [&](std::shared_ptr<http::Exchange> exchange) {
//     exchange->answer({200, "text/plain", "hello\n"});
//   });
//   server.start(std::move(listening_socket));
//   …
//   server.stop();
//
// The handler is called on the server's thread, once per request, and must not block. The answer
// may come later, on that same thread (post() gets there from any other). Requests of one
// connection are answered one after the other. Connections, header and body sizes and every wait
// for a client are bounded (base/limits.h): a client that sends a request byte by byte, does not
// read its answer, or stays silent is disconnected. The handler admits the clients it knows
// (Exchange::admit()); the connections of others are bounded apart (places.h).
//
// After use_tls() it serves HTTPS only.
//
// Only the .cc files of this folder include Boost.Asio and Boost.Beast, which take long to compile.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"
#include "http/exchange.h"
#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::http {

class Server {
 public:
  using Handler = http::Handler;
  using Bounds = http::Bounds;

  Server(Log& log, Handler handler, Bounds bounds);
  Server(Log& log, Handler handler) : Server(log, std::move(handler), Bounds{}) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // New connections use TLS with this context; existing ones are not affected. Call it on the
  // thread that starts and stops the server.
  void use_tls(std::shared_ptr<const tls::ServerContext> context);
  // Starts to serve a listening socket, which must be non-blocking. Call once.
  Result<void> start(UniqueFd listener);
  // Closes every connection at once and ends the thread. The handler is not called any more.
  void stop();
  // Runs `task` on the server's thread. May be called on any thread, until stop().
  void post(std::function<void()> task);

  struct Usage {
    std::size_t connections = 0;      // open now
    std::size_t connections_max = 0;  // of all kinds together
    std::uint64_t refused = 0;        // clients for which there was no place, ever
    // Connections that were closed because their client was not known in time, and because there
    // were too many of these.
    std::uint64_t late = 0;
    std::uint64_t displaced = 0;
  };
  // From any thread.
  [[nodiscard]] Usage usage() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl::http
