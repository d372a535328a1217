// The deadline's formula under simulated clocks: every case draws two clocks, a network and a story
// (a wait, lost messages, retries, pauses), and asks whether the client may still believe in its
// lease when pawld can hand the lock on. Two tempting formulas are kept beside the real one, to
// show what they would have cost. Hard case 31.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "client/deadline.h"

namespace pawl::client {
namespace {

constexpr int kCases = 200'000;
constexpr std::uint64_t kSeed = 31;

// Milliseconds of true time, which neither side can read, since the first send.
using True = double;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  double between(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(random_.next() >> 11), -53);
  }
  bool chance(double probability) { return between(0, 1) < probability; }
  // As likely between 1 and 10 as between 10 and 100.
  double any_size(double low, double high) {
    return std::exp(between(std::log(low), std::log(high)));
  }

 private:
  SeededRandom random_;
};

// The client's clock: a rate and a start of its own.
struct ClientClock {
  double rate = 1;
  Instant start{};

  [[nodiscard]] Instant at(True moment) const {
    return start + Nanos(static_cast<Nanos::rep>(std::floor(moment * rate * 1e6)));
  }
  [[nodiscard]] True true_time(Instant reading) const {
    return static_cast<double>((reading - start).count()) / 1e6 / rate;
  }
};

ClientClock any_clock(Dice& dice) {
  return {dice.between(0.995, 1.005),
          Instant(Millis(static_cast<Millis::rep>(dice.any_size(1, 1e10))))};
}

// What pawld's clock shows of a stretch, as it answers it: rounded down.
Millis shown(True span, double rate) {
  return Millis(static_cast<Millis::rep>(std::floor(span * rate)));
}

// One acquire that ended in an answer, in true time.
struct Case {
  ClientClock clock;
  Millis ttl{0};
  Millis waited{0};     // as answered
  True retry_sent = 0;  // the send that was answered; the first one when there was no other
  True reply = 0;       // when that answer arrived
  True passes_on = 0;   // the first moment at which pawld can grant the lock to another
};

// A message may be held up by up to nine tenths of the TTL, in the network or because its sender
// was paused between reading its clock and sending.
True held_up(Dice& dice, double ttl) {
  return dice.chance(0.5) ? dice.between(0, 0.9 * ttl) : dice.between(0, 0.01 * ttl);
}

// A history may end without a grant: the retry arrives when the lease is over, and is refused. Then
// there is no deadline.
bool draw(Dice& dice, Case& drawn) {
  const double pawld_rate = dice.between(0.995, 1.005);
  drawn.clock = any_clock(dice);
  drawn.ttl = Millis(static_cast<Millis::rep>(dice.any_size(100, 86'400'000)));
  const auto ttl = static_cast<double>(drawn.ttl.count());

  // The first request arrives and queues, or is lost; then the retry is what pawld receives first.
  const bool retried = dice.chance(0.5);
  const bool first_arrives = !retried || dice.chance(0.75);
  drawn.retry_sent = retried ? dice.between(0.01, 0.9) * ttl : 0;
  const True first_receipt = held_up(dice, ttl);
  const True retry_receipt = drawn.retry_sent + held_up(dice, ttl);
  const True receipt = !retried        ? first_receipt
                       : first_arrives ? std::min(first_receipt, retry_receipt)
                                       : retry_receipt;

  const True wait = dice.chance(0.5) ? 0 : dice.any_size(1, 3'600'000);
  const True sync = dice.chance(0.9) ? dice.between(0, 5) : dice.between(0, 0.5 * ttl);
  // pawld's service time leaves out most of a pause of its own, so that the lock is granted and
  // passes on later.
  const True paused_before = dice.chance(0.1) ? dice.between(0, ttl) : 0;
  const True paused_after = dice.chance(0.1) ? dice.between(0, ttl) : 0;
  const True granted = receipt + wait + paused_before;
  const True durable = granted + sync;
  drawn.waited = shown(wait, pawld_rate);
  drawn.passes_on = durable + ttl / pawld_rate + paused_after;
  if (retried && retry_receipt >= drawn.passes_on) return false;

  // What pawld sends once it is durable, or to a retry that comes after that.
  const True answered = retried ? std::max(durable, retry_receipt) : durable;
  drawn.reply = answered + held_up(dice, ttl);
  return true;
}

Instant real_formula(const Case& c) {
  return deadline(AcquireTiming{c.clock.at(0), c.waited, c.ttl});
}

// Tempting: "the lease is mine from now on".
Instant counted_from_the_reply(const Case& c) {
  return deadline(AcquireTiming{c.clock.at(c.reply), Millis(0), c.ttl});
}

// Tempting: "this answer belongs to what I sent last".
Instant counted_from_the_retry(const Case& c) {
  return deadline(AcquireTiming{c.clock.at(c.retry_sent), c.waited, c.ttl});
}

// Whether a client that has the answer believes in its lease at a moment when another may hold the
// lock.
bool unsafe(const Case& c, Instant deadline) {
  const True believes_until = c.clock.true_time(deadline);
  return believes_until > c.passes_on && believes_until > c.reply;
}

TEST(DeadlineProperty, AcquiredLeaseEndsForItsClientBeforeTheNextGrant) {
  Dice dice(kSeed);
  int late = 0, usable = 0, retried = 0, reply_unsafe = 0, retry_unsafe = 0;
  for (int n = 0; n < kCases;) {
    Case c;
    if (!draw(dice, c)) continue;
    ++n;
    const True believes_until = c.clock.true_time(real_formula(c));
    late += believes_until > c.passes_on;  // whether or not the answer came in time to be believed
    usable += believes_until > c.reply;
    retried += c.retry_sent > 0;
    reply_unsafe += unsafe(c, counted_from_the_reply(c));
    retry_unsafe += unsafe(c, counted_from_the_retry(c));
  }
  const auto percent = [](int part, int whole) { return 100.0 * part / whole; };
  std::printf(
      "unsafe of %d: counted from the first send %d, from the reply %.1f %%, from the retry's send "
      "%.1f %% "
      "(%.1f %% of the retried)\n",
      kCases, late, percent(reply_unsafe, kCases), percent(retry_unsafe, kCases),
      percent(retry_unsafe, retried));
  EXPECT_EQ(late, 0);
  EXPECT_GT(percent(usable, kCases), 30)
      << "a formula that never lets anyone work would be safe too";
  EXPECT_GT(percent(reply_unsafe, kCases), 50);
  EXPECT_GT(percent(retry_unsafe, kCases), 10);
}

TEST(DeadlineProperty, RenewedLeaseEndsForItsClientBeforeTheNextGrant) {
  Dice dice(kSeed);
  int late = 0, reply_unsafe = 0;
  for (int n = 0; n < kCases; ++n) {
    const double pawld_rate = dice.between(0.995, 1.005);
    const ClientClock clock = any_clock(dice);
    const Millis ttl(static_cast<Millis::rep>(dice.any_size(100, 86'400'000)));
    const auto ttl_ms = static_cast<double>(ttl.count());
    const True receipt = held_up(dice, ttl_ms);
    const True left =
        dice.chance(0.8) ? ttl_ms : dice.between(0, ttl_ms);  // MAXHOLD may leave less than the TTL
    const True passes_on = receipt + left / pawld_rate;
    const True reply = receipt + held_up(dice, ttl_ms);
    const auto answered = Millis(static_cast<Millis::rep>(std::floor(left)));
    late += clock.true_time(deadline(RenewTiming{clock.at(0), answered, ttl})) > passes_on;
    reply_unsafe += clock.true_time(deadline(RenewTiming{clock.at(reply), answered, ttl})) >
                    std::max(passes_on, reply);
  }
  std::printf("unsafe of %d renewals: counted from the send %d, from the reply %.1f %%\n", kCases,
              late, 100.0 * reply_unsafe / kCases);
  EXPECT_EQ(late, 0);
  EXPECT_GT(reply_unsafe, kCases / 4);
}

}  // namespace
}  // namespace pawl::client
