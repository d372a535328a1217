// The seam for pawl::testing: a clock that a test moves, and the clients that use it.
//
// Pure virtual functions only, because the two sides are in different shared libraries and see
// nothing else of each other. Without a TestTime a client uses the real clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/types.h"

namespace pawl::client {

// A client that has nothing left to do.
struct IdleState {
  bool ended = false;            // It was closed, or did not become idle in time.
  std::uint16_t local_port = 0;  // of its connection; 0: not connected
  std::uint64_t sent = 0;        // bytes, on this connection
  std::uint64_t received = 0;
  Nanos next_timer = Nanos::max();  // until it does something by itself
};

class TestClient {
 public:
  virtual ~TestClient() = default;
  // Makes the client read the clock, and waits until it has done all that is due and its callbacks
  // have run; at most `limit`, by the real clock. Does not wait for the callbacks when called from
  // one of them.
  virtual IdleState wait_until_idle(std::chrono::milliseconds limit) = 0;
};

class TestTime {
 public:
  virtual ~TestTime() = default;
  // How far the test has moved the clock ahead of CLOCK_BOOTTIME. Never goes back. Any thread.
  [[nodiscard]] virtual Nanos offset() const = 0;
  // Registers a client that uses this clock, when it starts.
  virtual void add_client(std::weak_ptr<TestClient> client) = 0;
};

}  // namespace pawl::client
