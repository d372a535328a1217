// What `pawl run` does when, without doing it: time and news in, what is due out. No clock, no
// process, no socket; the driver (runner.h) owns those, and tests move the time.
//
//   waiting ──granted──▶ running ──lost, --max-hold, or CMD left others behind──▶ stopping ──▶ over
//   (WaitPlan)          (RunPlan)
//
// The lease is good until its deadline (G7, client/deadline.h). Until the last renewal that was
// answered:
//
//        renew         renew           TERM              KILL          deadline     … pawld may hand the lock on
//   ──────┴─────────────┴───────────────┴─────────────────┴───────────────┴──────────────┴─────▶
//        every TTL/3, less jitter   deadline − kill_after   deadline − max(100 ms, TTL/20)
//
// Stopping is final: a renewal answered after TERM was sent takes nothing back.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "client/time.h"
#include "pawl/result.h"

namespace pawl::cli {

using client::Instant;

// How to wait for the lock: for how long to queue next, and whether to queue once more.
class WaitPlan {
 public:
  // `patience`: 0 = do not wait, nothing = for ever.
  WaitPlan(std::optional<Millis> patience, Instant now);

  // The WAIT of the next ACQUIRE: what is left, pawld's limit of one wait at most.
  [[nodiscard]] Millis next_wait(Instant now) const;
  // Whether to queue again after an acquire that ended so.
  [[nodiscard]] bool again(Code code, Instant now) const;

 private:
  Instant end_;  // kNever when patience has none
};

enum class OnLost : std::uint8_t { kStop, kKill, kIgnore };

struct RunTimes {
  Millis ttl{0};
  Millis kill_after{0};  // TERM comes so long before the deadline
  Millis max_hold{0};    // 0 = no cap
  OnLost on_lost = OnLost::kStop;
};

// KILL comes so long before the deadline: max(100 ms, TTL/20).
[[nodiscard]] Millis kill_gap(Millis ttl);

class RunPlan {
 public:
  enum class Why : std::uint8_t { kNone, kLost, kMaxHold };
  struct Due {
    bool renew = false;
    bool terminate = false;  // TERM to the whole group
    bool kill = false;       // KILL to the whole group
  };

  // CMD is about to start under a lease that is good until `deadline`.
  RunPlan(const RunTimes& times, Instant deadline, Instant now, Random& random);

  // What is due now, each thing once. Asked before anything else whenever the driver wakes: a
  // process that was frozen past its deadline learns it here, before it reads or forwards anything.
  [[nodiscard]] Due advance(Instant now);
  // When something is next due; kNever when nothing is.
  [[nodiscard]] Instant next_timer() const;

  // The renewal that was due has been answered, or has failed; the next one is planned.
  void renewed(Instant deadline, Millis expires_in, Instant now);
  void renewal_failed(Code code, Instant now);
  // CMD itself has ended. What it left behind in its group is stopped before the lock is given
  // back.
  void command_ended(bool others_left, Instant now);

  [[nodiscard]] Instant deadline() const { return deadline_; }
  [[nodiscard]] bool stopping() const { return kill_at_ != client::kNever || killed_; }
  // What made it stop, or, with --on-lost=ignore, what it went on in spite of.
  [[nodiscard]] Why why() const { return why_; }
  // How pawl ends when CMD's own end is `command`.
  [[nodiscard]] int exit_code(int command) const;

 private:
  [[nodiscard]] bool ignores_loss() const { return times_.on_lost == OnLost::kIgnore; }
  // Where the work must be over, and why.
  struct Limit {
    Instant at;
    Why why;
  };
  [[nodiscard]] Limit limit() const;
  // --max-hold is no surprise to anyone: TERM comes first, whatever --on-lost says.
  [[nodiscard]] bool gently(Why why) const;
  [[nodiscard]] Instant acts_at(const Limit& end) const;
  [[nodiscard]] bool renews() const { return !over_ && !capped_ && !lost_ignored_; }
  void ignore_loss();
  void stop(Why why, Instant kill_at, bool softly);
  void plan_renewal(Instant now);

  const RunTimes times_;
  Random& random_;
  Instant deadline_;
  Instant hold_end_ = client::kNever;  // by our own clock; pawld counts, too
  bool capped_ = false;                // pawld answered less than the TTL: --max-hold is near
  Instant renew_at_{};
  bool renewing_ = false;
  bool lost_ignored_ = false;
  bool over_ = false;  // stopping, or CMD has ended: nothing is renewed any more
  Why why_ = Why::kNone;
  bool terminate_due_ = false;
  Instant kill_at_ = client::kNever;  // once stopping
  bool killed_ = false;
};

}  // namespace pawl::cli
