#include "guard/retry_and_settle.h"

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace pawl::guard {
namespace {

constexpr std::chrono::milliseconds kSettlePause{50};

// Random: two writers that failed on each other should not collide again at once.
void pause_before(int attempt, std::chrono::milliseconds pause_max) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto most =
      std::min<std::int64_t>(pause_max.count(), std::int64_t{1} << std::min(attempt, 10));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random)));
}

}  // namespace

HeldToken held_by(const Lease& lease) {
  return {.token = lease.token(),
          .check = [&lease] { return lease.check(); },
          .explain_stale = [&lease](std::uint64_t fence) { return lease.stale(fence); }};
}

RetryAndSettle::RetryAndSettle(HeldToken held, RetryLimits limits)
    : held_(std::move(held)), limits_(limits) {}

Result<Decision> RetryAndSettle::run() {
  for (int tries = 0;; ++tries) {
    if (auto held = check_held(); !held) return unless_unsettled(held.error());
    Attempt end = attempt();
    if (const auto* decision = std::get_if<Decision>(&end)) {
      if (!unsettled_ || decision->verdict != Verdict::kReplayed) return *decision;
      return Decision{.verdict = Verdict::kAdmitted, .token = token(), .max = token()};
    }
    if (auto* error = std::get_if<Error>(&end)) return std::move(*error);
    if (auto* again = std::get_if<Again>(&end)) {
      if (!may_retry(tries)) return unless_unsettled(std::move(again->error));
      pause_before(tries, limits_.pause_max);
      continue;
    }
    const auto settled = settle_in_time(std::get<Unknown>(end).error);
    if (const auto* error = std::get_if<Error>(&settled)) return *error;
    if (std::get<Settled>(settled) == Settled::kApplied)
      return Decision{.verdict = Verdict::kAdmitted, .token = token(), .max = token()};
    unsettled_ = std::get<Settled>(settled) == Settled::kRepeat;
  }
}

std::variant<RetryAndSettle::Settled, Error> RetryAndSettle::settle_in_time(const Error& unknown) {
  while (true) {
    if (limits_.settle_until && std::chrono::steady_clock::now() >= *limits_.settle_until)
      return Error{Code::kUnknown, unknown.detail};
    const Settled settled = settle();
    if (settled == Settled::kCannotTell)
      return Error{Code::kUnknown, unknown.detail + "; " + std::string(cannot_tell())};
    if (settled != Settled::kNotYet) return settled;
    if (auto held = check_held(); !held)
      return Error{Code::kUnknown, unknown.detail + "; " + held.error().detail};
    if (!held_.check && !may_retry(limits_.retries)) return Error{Code::kUnknown, unknown.detail};
    std::this_thread::sleep_for(kSettlePause);
  }
}

Error RetryAndSettle::unless_unsettled(Error error) const {
  if (!unsettled_) return error;
  return {Code::kUnknown, "an earlier attempt may be in effect; " + error.detail};
}

bool RetryAndSettle::may_retry(int tries) const {
  return limits_.until ? std::chrono::steady_clock::now() < *limits_.until
                       : tries < limits_.retries;
}

Result<void> RetryAndSettle::check_held() const {
  if (!held_.check) return {};
  return held_.check();
}

Error RetryAndSettle::explain_stale(const Error& stale, std::uint64_t fence) const {
  PAWL_ASSERT(stale.code == Code::kStaleToken);
  if (!held_.explain_stale) return stale;
  // The holder was good a moment ago; perhaps pawld's counter is behind the guard.
  Error explained = held_.explain_stale(fence);
  return explained.code == Code::kIssuerBehind ? explained : stale;
}

}  // namespace pawl::guard
