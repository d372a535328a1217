// Clocks that a test moves: one for the clients of a server, and one for the server itself.
//
// Two clocks, because they do not move in the same instant: pawld's clock moves in small steps
// while its output is held, then the clients' clock moves at once, and only then is the output
// released. In the other order a client could renew a lease with a time that pawld has not reached,
// and hold it longer than pawld does.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"
#include "client/test_time.h"
#include "server/service_clock.h"

namespace pawl::testing {

// The clients' clock. Shared by them, and may outlive the server.
class ClientTestClock final : public client::TestTime {
 public:
  void move(Nanos by) { offset_.fetch_add(by.count()); }
  [[nodiscard]] Nanos offset() const override { return Nanos(offset_.load()); }
  void add_client(std::weak_ptr<client::TestClient> subject) override;
  // The clients that still exist.
  [[nodiscard]] std::vector<std::shared_ptr<client::TestClient>> clients();

 private:
  std::atomic<Nanos::rep> offset_{0};
  std::mutex mutex_;
  std::vector<std::weak_ptr<client::TestClient>> clients_;
};

// pawld's clock. Used by pawld's thread only.
class ServerTestClock final : public server::ClockSource {
 public:
  server::ClockReading read() override;
  // While frozen it moves only by move(), so that steps are exact on a slow machine.
  void freeze() { frozen_ = real_.read(); }
  void thaw() { frozen_.reset(); }
  void move(Nanos by) { offset_ += by; }

 private:
  server::SystemClock real_;
  std::optional<server::ClockReading> frozen_;
  Nanos offset_{0};
};

}  // namespace pawl::testing
