#include "pawld/busy_retry.h"

#include <fmt/format.h>

#include <csignal>
#include <ctime>

#include "base/assert.h"
#include "base/duration.h"

namespace pawl::pawld {
namespace {

constexpr timespec kPause{0, 50'000'000};

}  // namespace

bool BusyRetry::pause(const Error& busy, bool logged) {
  if (at_most_ <= Millis(0) || interrupted_) return false;
  const Clock::time_point now = Clock::now();
  if (!began_) began_ = now;
  if (now - *began_ >= at_most_) return false;
  if (!logged)
    log_.info(fmt::format("{}; waiting up to {} (--wait)", busy.detail, to_text(at_most_)));
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&ends, signal);
  interrupted_ = ::sigtimedwait(&ends, nullptr, &kPause) > 0;
  return !interrupted_;
}

void BusyRetry::log_end_of_wait() {
  PAWL_ASSERT(began_.has_value());
  const auto waited = std::chrono::duration_cast<Millis>(Clock::now() - *began_);
  log_.info(fmt::format("available after waiting {}", to_text(waited)),
            {{"waited_ms", static_cast<std::uint64_t>(waited.count())}});
}

}  // namespace pawl::pawld
