// Connects in the background, to one address at a time: a name lookup may take seconds, and a
// thread that keeps leases cannot wait that long.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/types.h"
#include "client/address.h"
#include "client/socket.h"
#include "pawl/result.h"

namespace pawl::client {

class Connector {
 public:
  // `wake` is called on another thread when there is something to take. That may be after this
  // object is gone.
  explicit Connector(std::function<void()> wake) : wake_(std::move(wake)) {}

  [[nodiscard]] bool busy() const { return attempt_ != nullptr; }
  // kPawld: a connection counts once pawld has answered on it. A kernel accepts connections for a
  // process that is stopped. kActive: and once it has not answered that it stands by, or loads.
  enum class AnsweredBy : std::uint8_t { kKernel, kPawld, kActive };
  // Tries every endpoint of the address, each for `timeout` at most. Only when not busy.
  void start(const Address& address, Millis timeout, AnsweredBy by = AnsweredBy::kKernel);
  // The connection, or why it failed; nullptr while that is not known, or nothing was started.
  [[nodiscard]] std::unique_ptr<Result<std::unique_ptr<Socket>>> take();

 private:
  struct Attempt;
  const std::function<void()> wake_;
  std::shared_ptr<Attempt> attempt_;  // Shared with its thread, which is never waited for.
};

}  // namespace pawl::client
