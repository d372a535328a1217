#include "guard/writer.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace pawl::guard {
namespace {

constexpr std::chrono::milliseconds kPauseMax{100};
constexpr std::chrono::milliseconds kReconnectPause{50};

// Two that failed on each other should not meet again at once.
void pause_before(int attempt) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto most =
      std::min<std::int64_t>(kPauseMax.count(), std::int64_t{1} << std::min(attempt, 10));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random)));
}

// Fixed order: two writers that name the same resources cannot wait for each other.
WriteOrder in_order(WriteOrder order) {
  PAWL_ASSERT(!order.resources.empty());
  std::sort(order.resources.begin(), order.resources.end());
  order.resources.erase(std::unique(order.resources.begin(), order.resources.end()),
                        order.resources.end());
  return order;
}

}  // namespace

Writer::Writer(WriteOrder order) : order_(in_order(std::move(order))) {}

Result<Decision> Writer::run() {
  for (int tries = 0;; ++tries) {
    Attempt end = attempt();
    if (auto* decision = std::get_if<Decision>(&end)) return *decision;
    if (auto* error = std::get_if<Error>(&end)) return std::move(*error);
    if (auto* unknown = std::get_if<Unknown>(&end)) {
      if (auto lost = settle(unknown->error)) return *std::move(lost);
      unsettled_ = true;
    } else {
      if (tries >= order_.retries) return std::get<Again>(end).error;
      pause_before(tries);
    }
  }
}

Writer::Attempt Writer::attempt() {
  if (auto held = order_.lease.check(); !held) return held.error();
  auto begun = begin();
  if (auto* failure = std::get_if<Failure>(&begun)) return failed(*failure);
  if (auto* error = std::get_if<Error>(&begun)) {
    roll_back();
    return std::move(*error);
  }
  const Decision decision = std::get<Decision>(begun);
  if (decision.verdict == Verdict::kReplayed) {
    roll_back();
    if (!unsettled_) return decision;
    return Decision{.verdict = Verdict::kAdmitted, .token = decision.token, .max = decision.token};
  }
  auto worked = work_or_roll_back();
  if (auto* failure = std::get_if<Failure>(&worked)) return failed(*failure);
  if (auto* error = std::get_if<Error>(&worked)) {
    roll_back();
    return std::move(*error);
  }
  return committed(decision);
}

Writer::Step Writer::work_or_roll_back() {
  try {
    Step worked = work();
    if (!std::holds_alternative<std::monostate>(worked)) return worked;
  } catch (...) {
    roll_back();
    throw;
  }
  // The guard would protect all the same; this spares everybody a late write.
  if (auto held = order_.lease.check(); !held) return held.error();
  return {};
}

Writer::Attempt Writer::committed(const Decision& decision) {
  auto done = commit();
  if (auto* error = std::get_if<Error>(&done)) return std::move(*error);
  if (auto* failure = std::get_if<Failure>(&done)) {
    if (!failure->disconnected) return failed(*failure);
    return Unknown{
        {Code::kUnknown, "the connection broke at the commit: " + failure->error.detail}};
  }
  return decision;
}

Writer::Attempt Writer::failed(const Failure& failure) {
  roll_back();
  if (failure.may_pass_again) return Again{failure.error};
  // Before a commit nothing has happened; while an earlier one is unsettled, that still is.
  if (failure.disconnected && unsettled_) return Unknown{{Code::kUnknown, failure.error.detail}};
  if (failure.error.code != Code::kStaleToken) return failure.error;
  // The lease was alive a moment ago; whether the authority has gone back in time only it can tell.
  Error stale = order_.lease.stale(failure.max);
  return stale.code == Code::kIssuerBehind ? std::move(stale) : failure.error;
}

std::optional<Error> Writer::settle(const Error& unknown) {
  if (order_.operation == 0) {
    return Error{
        unknown.code,
        unknown.detail +
            ". Whether it is in effect Pawl cannot say; with an operation number it could"};
  }
  while (true) {
    if (auto held = order_.lease.check(); !held)
      return Error{unknown.code, unknown.detail + "; " + held.error().detail};
    if (connect_again()) return std::nullopt;
    std::this_thread::sleep_for(kReconnectPause);
  }
}

}  // namespace pawl::guard
