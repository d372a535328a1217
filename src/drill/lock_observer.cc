#include "drill/lock_observer.h"

#include <chrono>
#include <memory>
#include <utility>

#include "client/boot_clock.h"

namespace pawl::drill {

using namespace std::chrono_literals;

Result<std::unique_ptr<LockObserver>> LockObserver::open(const std::vector<client::Address>& pawld,
                                                         const Auth& auth,
                                                         const std::string& lock) {
  auto endpoints = client::resolve(pawld);
  if (!endpoints) return endpoints.error();
  return std::unique_ptr<LockObserver>(new LockObserver(*std::move(endpoints), auth, lock));
}

LockObserver::LockObserver(std::vector<client::Endpoint> endpoints, const Auth& auth,
                           std::string lock)
    : lock_(std::move(lock)),
      // A pawld that was killed is back soon, and its first events matter.
      pawld_(std::move(endpoints), random_,
             {.name = "pawl-drill", .auth = auth, .backoff_max = 100ms}, 1s) {
  pawld_.machine().observe({.prefix = lock_}, client::boot_now());
}

void LockObserver::on_ready(std::span<const pollfd> ready) {
  pawld_.process(ready.front().revents);
  for (const client::Completion& done : pawld_.machine().take_completions()) {
    const auto* result = std::get_if<Result<client::ObserveEnded>>(&done.outcome);
    if (result != nullptr && !*result) refusal_ = result->error().detail;
  }
  for (client::ObservedEvent& seen : pawld_.machine().take_observed_events()) {
    if (seen.event && seen.event->lock == lock_) events_.push_back(*std::move(seen.event));
    if (seen.event) continue;
    subscribed_ = true;
    pawld_.keep_retrying();
  }
}

}  // namespace pawl::drill
