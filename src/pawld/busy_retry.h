// Retries what fails because another process still holds it: the data directory or a port, while
// the previous pawld stops.
//
//   BusyRetry retry(config.wait, log);
//   auto listener = retry.run<server::Listener>([&] { return server::listen_on(address); });
//
// SIGTERM and SIGINT, which the caller has blocked, end the wait.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/types.h"
#include "pawl/result.h"

namespace pawl::pawld {

class BusyRetry {
 public:
  // `at_most` limits all waits together, counted from the beginning of the first one.
  BusyRetry(Millis at_most, Log& log) : at_most_(at_most), log_(log) {}

  // Calls `attempt` until it returns something else than kBusy, or the time is up, or a signal
  // arrives. Returns the last result. Logs the beginning and the end of a wait.
  template <class T>
  Result<T> run(const std::function<Result<T>()>& attempt) {
    bool waited = false;
    for (;;) {
      auto done = attempt();
      if (done || done.error().code != Code::kBusy) {
        if (done && waited) log_end_of_wait();
        return done;
      }
      if (!pause(done.error(), waited)) return done;
      waited = true;
    }
  }

  // Whether a signal ended a wait.
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Sleeps for a moment. Returns false if no time is left or a signal arrived. Logs what it waits
  // for unless `logged`.
  bool pause(const Error& busy, bool logged);
  void log_end_of_wait();

  const Millis at_most_;
  Log& log_;
  std::optional<Clock::time_point> began_;
  bool interrupted_ = false;
};

}  // namespace pawl::pawld
