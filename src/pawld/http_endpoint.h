// The HTTP port of pawld: an HTTP server on a thread of its own, and the queue
// (server::EngineMailbox) between it and the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/service.h"
#include "base/log.h"
#include "http/server.h"
#include "pawl/result.h"
#include "pawld/busy_retry.h"
#include "pawld/descriptors.h"
#include "pawld/options.h"
#include "server/engine_mailbox.h"
#include "server/loop.h"
#include "tls/context.h"

namespace pawl::pawld {

class HttpEndpoint {
 public:
  HttpEndpoint(Log& log, const Config& config, const ConnectionLimits& limits);
  ~HttpEndpoint() { stop(); }
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // Listens and serves; requests reach `loop` through the mailbox. Returns the address as bound.
  Result<std::string> start(server::Loop& loop, BusyRetry& retry);
  // Serves HTTPS from now on, with this certificate; existing connections are not affected.
  void use_tls(std::shared_ptr<const tls::ServerContext> context) {
    server_.use_tls(std::move(context));
  }
  // Calls `call` on the HTTP thread, once all changes made so far are in force.
  void after_changes(std::function<void()> call) { server_.post(std::move(call)); }
  // Closes every connection and ends the thread.
  void stop() { server_.stop(); }

 private:
  const Config& config_;
  server::EngineMailbox mailbox_;
  http::Server server_;
  api::Service service_;  // Destroyed first: it still holds exchanges of the server.
};

}  // namespace pawl::pawld
