// Waiting for what another process still holds: the data directory or a port, while the pawld
// before this one stops.
//
//   Patience patience(config.wait, log);
//   auto listener = patience.wait_for<server::Listener>([&] { return server::listen_on(address); });
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

class Patience {
 public:
  // `at_most` for all waits together, from the beginning of the first one.
  Patience(Millis at_most, Log& log) : at_most_(at_most), log_(log) {}

  // Tries again as long as `attempt` answers kBusy and there is time. The last answer.
  template <class T>
  Result<T> wait_for(const std::function<Result<T>()>& attempt) {
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

  // A signal asked to stop meanwhile.
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  using Clock = std::chrono::steady_clock;

  // False when there is no time left, or a signal came. Logs what it waits for unless `logged`.
  bool pause(const Error& busy, bool logged);
  void log_end_of_wait();

  const Millis at_most_;
  Log& log_;
  std::optional<Clock::time_point> began_;
  bool interrupted_ = false;
};

}  // namespace pawl::pawld
