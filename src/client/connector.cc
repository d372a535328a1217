#include "client/connector.h"

#include <mutex>
#include <utility>

#include "base/assert.h"
#include "client/detached_thread.h"

namespace pawl::client {
namespace {

Result<std::unique_ptr<Socket>> connect_to(const Address& address, Millis timeout) {
  const auto endpoints = resolve({address});
  if (!endpoints) return endpoints.error();
  auto socket = std::make_unique<Socket>();
  Error why;
  for (const Endpoint& endpoint : *endpoints) {
    const Result<void> connected = socket->connect(endpoint, timeout);
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

void Connector::start(const Address& address, Millis timeout) {
  PAWL_ASSERT(!busy());
  attempt_ = std::make_shared<Attempt>();
  const auto started = start_detached([attempt = attempt_, wake = wake_, address, timeout] {
    auto outcome = std::make_unique<Result<std::unique_ptr<Socket>>>(connect_to(address, timeout));
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
