#include "client/connector.h"

#include <poll.h>

#include <mutex>
#include <string>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"
#include "client/detached_thread.h"

namespace pawl::client {
namespace {

// Sends PING and reads the answer, which may be an error (before AUTH).
Result<void> ping(Socket& socket, Millis timeout) {
  const Instant until = boot_now() + timeout;
  std::string unsent = "*1\r\n$4\r\nPING\r\n";
  std::string received, why;
  while (!received.ends_with("\r\n")) {
    if (boot_now() >= until) return Error{Code::kUnavailable, "no answer to PING"};
    if (!socket.send(unsent)) return Error{Code::kUnavailable, "the connection was closed"};
    pollfd ready = socket.interest(!unsent.empty());
    ::poll(&ready, 1, poll_timeout(until - boot_now()));
    if (!socket.receive(received, why)) return Error{Code::kUnavailable, why};
  }
  return {};
}

Result<std::unique_ptr<Socket>> connect_to(const Address& address, Millis timeout,
                                           Connector::AnsweredBy by) {
  const auto endpoints = resolve({address});
  if (!endpoints) return endpoints.error();
  auto socket = std::make_unique<Socket>();
  Error why;
  for (const Endpoint& endpoint : *endpoints) {
    Result<void> connected = socket->connect(endpoint, timeout);
    if (connected && by == Connector::AnsweredBy::kPawld) connected = ping(*socket, timeout);
    if (connected) return socket;
    // Of several errors a TLS mismatch is the most useful one.
    if (why.detail.empty() || connected.error().code == Code::kInvalid) why = connected.error();
  }
  return why;
}

}  // namespace

struct Connector::Attempt {
  std::mutex mutex;
  std::unique_ptr<Result<std::unique_ptr<Socket>>> outcome;
};

void Connector::start(const Address& address, Millis timeout, AnsweredBy by) {
  PAWL_ASSERT(!busy());
  attempt_ = std::make_shared<Attempt>();
  const auto started = start_detached([attempt = attempt_, wake = wake_, address, timeout, by] {
    auto outcome =
        std::make_unique<Result<std::unique_ptr<Socket>>>(connect_to(address, timeout, by));
    {
      const std::lock_guard lock(attempt->mutex);
      attempt->outcome = std::move(outcome);
    }
    wake();
  });
  if (started) return;
  attempt_->outcome = std::make_unique<Result<std::unique_ptr<Socket>>>(started.error());
  wake_();
}

std::unique_ptr<Result<std::unique_ptr<Socket>>> Connector::take() {
  if (!attempt_) return nullptr;
  std::unique_ptr<Result<std::unique_ptr<Socket>>> outcome;
  {
    const std::lock_guard lock(attempt_->mutex);
    outcome = std::move(attempt_->outcome);
  }
  if (outcome) attempt_.reset();
  return outcome;
}

}  // namespace pawl::client
