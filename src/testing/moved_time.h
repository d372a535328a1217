// Time as a test moves it: for the clients of one server, and for the server itself.
//
// Two figures, because the two do not move in the same instant: pawld goes ahead step by step in
// private, then the clients follow in one jump, and only then do they hear from each other again.
// The other way round a client could renew a lease "from the future", and hold it longer than pawld
// does.
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

// The clients' time. Shared by them: it may outlive the server.
class MovedTime final : public client::TestTime {
 public:
  void move(Nanos by) { moved_.fetch_add(by.count()); }
  [[nodiscard]] Nanos moved() const override { return Nanos(moved_.load()); }
  void enroll(std::weak_ptr<client::TestSubject> subject) override;
  // Those that still exist.
  [[nodiscard]] std::vector<std::shared_ptr<client::TestSubject>> subjects();

 private:
  std::atomic<Nanos::rep> moved_{0};
  std::mutex mutex_;
  std::vector<std::weak_ptr<client::TestSubject>> subjects_;
};

// pawld's clock. Belongs to pawld's thread.
class MovedClock final : public server::ClockSource {
 public:
  server::ClockReading read() override;
  // While frozen it moves only by move(): a step is then exactly as long as it says, however slow
  // the machine.
  void freeze() { frozen_ = real_.read(); }
  void thaw() { frozen_.reset(); }
  void move(Nanos by) { moved_ += by; }

 private:
  server::SystemClock real_;
  std::optional<server::ClockReading> frozen_;
  Nanos moved_{0};
};

}  // namespace pawl::testing
