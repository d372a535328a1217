#include "client/connector.h"

#include <mutex>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace pawl::client {

struct Connector::Attempt {
  std::mutex mutex;
  std::unique_ptr<Result<std::unique_ptr<Socket>>> outcome;
};

void Connector::start(const Address& address, Millis timeout) {
  PAWL_ASSERT(!busy());
  attempt_ = std::make_shared<Attempt>();
  std::thread([attempt = attempt_, wake = wake_, address, timeout] {
    auto socket = std::make_unique<Socket>();
    const Result<void> connected = socket->connect(address, timeout);
    using Connected = Result<std::unique_ptr<Socket>>;
    auto outcome = std::make_unique<Connected>(connected ? Connected(std::move(socket))
                                                         : Connected(connected.error()));
    {
      const std::lock_guard lock(attempt->mutex);
      attempt->outcome = std::move(outcome);
    }
    wake();
  }).detach();
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
