#include "client/repeated_acquire.h"

#include <condition_variable>
#include <mutex>

#include "base/random.h"
#include "client/backoff.h"
#include "client/boot_clock.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

// An attempt that took this long needs no pause: it has waited in the queue of the lock.
constexpr auto kLongAttempt = 1s;

bool retry_may_help(Code code) {
  return code == Code::kBusy || code == Code::kUnavailable || code == Code::kUnknown;
}

void pause(Nanos span, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, span, [] { return false; });
}

}  // namespace

Result<Lease> acquire_repeatedly(Client& client, std::string_view lock,
                                 const AcquireOptions& options, const std::stop_token& stop) {
  SystemRandom random;
  Backoff backoff{50ms, 2s};
  for (;;) {
    const Instant begun = boot_now();
    auto lease = client.acquire(lock, options, stop);
    if (lease || !retry_may_help(lease.error().code) || stop.stop_requested()) return lease;
    if (boot_now() - begun >= kLongAttempt) {
      backoff.reset();
    } else {
      pause(backoff.next(random), stop);
    }
  }
}

}  // namespace pawl::client
