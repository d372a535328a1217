// HTTP in pawld: a server on a thread of its own, and the mailbox from it to the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/service.h"
#include "base/log.h"
#include "http/server.h"
#include "pawl/result.h"
#include "pawld/options.h"
#include "pawld/patience.h"
#include "server/engine_mailbox.h"
#include "server/loop.h"
#include "tls/context.h"

namespace pawl::pawld {

class Web {
 public:
  Web(Log& log, const Config& config);
  ~Web() { stop(); }
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;

  // Listens and serves; from then on `loop` does as well, through the mailbox. Returns the address as
  // bound.
  Result<std::string> start(server::Loop& loop, Patience& patience);
  // HTTPS from now on, with this certificate; connections that exist keep theirs.
  void use_tls(std::shared_ptr<const tls::ServerContext> context) {
    server_.use_tls(std::move(context));
  }
  // Calls it, on HTTP's thread, once what was changed so far is in force.
  void after_changes(std::function<void()> call) { server_.post(std::move(call)); }
  void stop() { server_.stop(); }

 private:
  const Config& config_;
  server::EngineMailbox mailbox_;
  http::Server server_;
  api::Service service_;  // Goes first: what it still holds are the server's.
};

}  // namespace pawl::pawld
