// Connects in the background, to one address at a time: looking up a name may take seconds, and
// whoever keeps leases cannot wait so long.
#pragma once

#include <functional>
#include <memory>

#include "base/types.h"
#include "client/address.h"
#include "client/socket.h"
#include "pawl/result.h"

namespace pawl::client {

class Connector {
 public:
  // `wake` is called on another thread when there is something to take; it may come after this
  // object is gone.
  explicit Connector(std::function<void()> wake) : wake_(std::move(wake)) {}

  [[nodiscard]] bool busy() const { return attempt_ != nullptr; }
  // Only when not busy.
  void start(const Address& address, Millis timeout);
  // The connection, or why there is none; nullptr when it is not known yet, or nothing was started.
  [[nodiscard]] std::unique_ptr<Result<std::unique_ptr<Socket>>> take();

 private:
  struct Attempt;
  const std::function<void()> wake_;
  std::shared_ptr<Attempt> attempt_;  // Shared with its thread, which we do not wait for.
};

}  // namespace pawl::client
