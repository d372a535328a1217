// The seam for pawl::testing: time that a test moves, and the clients that live by it.
//
// Only pure virtual functions, because the two sides are in different shared libraries and see
// nothing else of each other. Without a TestTime a client reads the clock as it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/types.h"

namespace pawl::client {

// How a client stood when it had nothing left to do.
struct Rest {
  bool ended = false;            // It was closed, or never came to rest.
  std::uint16_t local_port = 0;  // of its connection; 0: it has none
  std::uint64_t sent = 0;        // bytes, on this connection
  std::uint64_t received = 0;
  Nanos next_timer = Nanos::max();  // from now until it will do something by itself
};

class TestSubject {
 public:
  virtual ~TestSubject() = default;
  // Has the client look at the clock, and waits until it has done all that is due and its callbacks
  // have run; no longer than `limit`, by the real clock. When called from one of its callbacks it
  // does not wait for them.
  virtual Rest rest(std::chrono::milliseconds limit) = 0;
};

class TestTime {
 public:
  virtual ~TestTime() = default;
  // How far the test has moved the clock ahead of CLOCK_BOOTTIME. Never goes back. Any thread.
  [[nodiscard]] virtual Nanos moved() const = 0;
  // A client that lives by this time, from its start.
  virtual void enroll(std::weak_ptr<TestSubject> subject) = 0;
};

}  // namespace pawl::client
