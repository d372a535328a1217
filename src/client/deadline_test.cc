#include "client/deadline.h"

#include <gtest/gtest.h>

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1'000s};

TEST(Deadline, MarginIs20MsOrTtlOver100) {
  EXPECT_EQ(margin(100ms), 20ms);
  EXPECT_EQ(margin(2s), 20ms);
  EXPECT_EQ(margin(15s), 150ms);
  EXPECT_EQ(margin(10min), 6s);
}

TEST(Deadline, AcquireCountsFromTheFirstSend) {
  EXPECT_EQ(deadline(AcquireTiming{kStart, 0ms, 10s}), kStart + 9900ms - 100ms);
}

TEST(Deadline, RenewalCountsFromItsSendAndTheAnsweredTime) {
  EXPECT_EQ(deadline(RenewTiming{kStart, 10s, 10s}), kStart + 9900ms - 100ms);
  // MAXHOLD leaves less than the TTL: the answer decides, the margin stays.
  EXPECT_EQ(deadline(RenewTiming{kStart, 3s, 10s}), kStart + 2970ms - 100ms);
}

// In the next three, pawld starts the lease at the latest moment that is consistent with what the
// client saw, on a clock that runs 1 % fast. The client's deadline must come before the lock can
// pass on. Hard case 31.
Instant passes_on(Instant granted, Millis ttl) {
  return granted + Nanos(ttl) * 100 / 101;
}

TEST(Deadline, DelayedReplyLeavesOnlyTheRest) {
  const Millis ttl = 10s;
  const Instant granted = kStart;  // the request took no time, the reply 0.9 TTL
  const Instant reply = kStart + 9s;
  const Instant good_until = deadline(AcquireTiming{kStart, 0ms, ttl});
  EXPECT_LT(good_until, passes_on(granted, ttl));
  EXPECT_LT(good_until, reply + ttl / 10);
  EXPECT_FALSE(has_half_ttl_left(good_until, ttl, reply));
  // The tempting wrong formula, counted from the reply, runs on while someone else holds the lock.
  EXPECT_GT(deadline(AcquireTiming{reply, 0ms, ttl}), passes_on(granted, ttl));
}

TEST(Deadline, WaitIsCreditedWithoutItsDrift) {
  const Millis ttl = 10s, waited = 60s;
  const Instant granted = kStart + Nanos(waited) * 100 / 101;  // pawld's 60 s on its fast clock
  const Instant good_until = deadline(AcquireTiming{kStart, waited, ttl});
  EXPECT_LT(good_until, passes_on(granted, ttl));
  EXPECT_GT(good_until, granted + ttl * 8 / 10);  // most of the TTL is there
}

TEST(Deadline, VeryLongWaitLeavesNothing) {
  const Instant arrives = kStart + 1h;
  EXPECT_LT(deadline(AcquireTiming{kStart, 1h, 15s}), arrives);
}

TEST(Deadline, RetryCountsFromTheFirstSend) {
  const Millis ttl = 10s;
  const Instant granted = kStart;  // the first request was granted at once; its reply was lost
  const Instant retry = kStart + 4s;
  EXPECT_LT(deadline(AcquireTiming{kStart, 0ms, ttl}), passes_on(granted, ttl));
  EXPECT_GT(deadline(AcquireTiming{retry, 0ms, ttl}),
            passes_on(granted, ttl));  // why the retry's send is not used
}

TEST(Deadline, HalfTheTtlIsEnoughToReturnALease) {
  EXPECT_TRUE(has_half_ttl_left(kStart + 5s, 10s, kStart));
  EXPECT_FALSE(has_half_ttl_left(kStart + 5s - 1ns, 10s, kStart));
  EXPECT_FALSE(has_half_ttl_left(kStart - 1s, 10s, kStart));
}

TEST(Deadline, LargestSpansDoNotOverflow) {
  EXPECT_EQ(deadline(AcquireTiming{kStart, 1h, 24h}),
            kStart + Nanos(25h) / 100 * 99 - Nanos(24h) / 100);
}

}  // namespace
}  // namespace pawl::client
