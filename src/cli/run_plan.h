// When `pawl run` stops its command, without doing it: the state of the lease and the time go in,
// signals to send come out. No clock, process or socket: runner.h owns those, and tests move the
// time.
//
//   waiting ──granted──▶ running ──lost, --max-hold, or CMD left others behind──▶ stopping ──▶ over
//   (WaitPlan)          (RunPlan)
//
// client::Keeper renews the lease and knows its deadline (G7, client/deadline.h):
//
//    renew     renew         TERM                      KILL                      deadline
//   ───┴─────────┴────────────┴─────────────────────────┴───────────────────────────┴─────▶
//     (Keeper)       deadline − kill_after    deadline − max(100 ms, TTL/20)
//
// pawld does not grant the lock to anyone else before the deadline. Stopping is final: a renewal
// that is answered after TERM was sent changes nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "client/keeper.h"
#include "client/time.h"
#include "pawl/result.h"

namespace pawl::cli {

using client::Instant;

// How long to wait for the lock, over any number of ACQUIREs.
class WaitPlan {
 public:
  // `wait`: 0 = do not wait, nullopt = for ever.
  WaitPlan(std::optional<Millis> wait, Instant now);

  // The WAIT of the next ACQUIRE: the time that is left, at most pawld's limit for one wait.
  [[nodiscard]] Millis next_wait(Instant now) const;
  // Whether to send another ACQUIRE after one that failed with `code`.
  [[nodiscard]] bool should_retry(Code code, Instant now) const;

 private:
  Instant end_;  // kNever = no limit
};

enum class OnLost : std::uint8_t { kStop, kKill, kIgnore };

struct RunTimes {
  Millis ttl{0};
  Millis kill_after{0};   // from TERM to the deadline
  Millis max_hold{0};     // 0 = no cap
  Millis max_stopped{0};  // how long CMD may be stopped by a signal; 0 = no cap
  OnLost on_lost = OnLost::kStop;
};

// From KILL to the deadline: max(100 ms, TTL/20).
[[nodiscard]] Millis kill_gap(Millis ttl);

// How the Keeper is to keep the lease: it renews until the plan begins to stop the command.
[[nodiscard]] client::KeepOptions keep_options(const RunTimes& times);

class RunPlan {
 public:
  enum class Why : std::uint8_t { kNone, kLost, kMaxHold, kMaxStopped };
  struct Due {
    bool terminate = false;  // TERM to everything of CMD
    bool kill = false;       // KILL to everything of CMD
  };

  // CMD is about to start under a lease that is valid until `deadline`.
  RunPlan(const RunTimes& times, Instant deadline, Instant now);

  // What is due now, each thing once. Called first whenever the process wakes up: after a freeze
  // past the deadline it must kill before it reads or forwards anything.
  [[nodiscard]] Due advance(Instant now);
  // When everything must be killed at the latest, as far as is known now, whether or not advance()
  // is called in time. kNever with a lost lease that is ignored, or once CMD has ended.
  [[nodiscard]] Instant latest_kill() const;
  // When advance() is next due; kNever when nothing is.
  [[nodiscard]] Instant next_timer() const;

  // The Keeper's view of the lease, after each of its inputs.
  void on_lease(const client::LeaseStatus& lease, Instant now);
  // A signal has stopped CMD, and not pawl with it; and CMD was continued.
  void command_stopped(Instant now);
  void command_continued() { stopped_end_ = client::kNever; }
  // CMD itself has ended. The processes that it left behind are stopped before the lock is
  // released.
  void command_ended(bool others_left, Instant now);

  [[nodiscard]] Instant deadline() const { return deadline_; }
  // Whether the lease is still needed. If not, the Keeper must stop renewing it.
  [[nodiscard]] bool needs_lease() const { return !over_ && !lost_ignored_; }
  [[nodiscard]] bool stopping() const { return kill_at_ != client::kNever || killed_; }
  // Why the command is stopped or, with --on-lost=ignore, runs on without the lease.
  [[nodiscard]] Why why() const { return why_; }
  // The exit code of pawl when CMD ended with `command`.
  [[nodiscard]] int exit_code(int command) const;

 private:
  [[nodiscard]] bool ignores_loss() const { return times_.on_lost == OnLost::kIgnore; }
  // When the work must be over, and why.
  struct Limit {
    Instant at;
    Why why;
  };
  [[nodiscard]] Limit limit() const;
  // Whether TERM comes before KILL. --max-hold is expected, so TERM comes first whatever --on-lost
  // says.
  [[nodiscard]] bool sends_term(Why why) const;
  // When the first signal for this limit is due.
  [[nodiscard]] Instant first_signal(const Limit& limit) const;
  void ignore_loss();
  void stop(Why why, Instant kill_at, bool term_first);
  // When KILL is due if TERM is sent now.
  [[nodiscard]] Instant kill_after_term(Instant now) const;

  const RunTimes times_;
  Instant deadline_;
  Instant hold_end_ = client::kNever;     // of --max-hold, by our clock; pawld counts too
  Instant stopped_end_ = client::kNever;  // of --max-stopped
  bool capped_ = false;                   // --max-hold ends the lease: renewals do not help
  bool lost_ignored_ = false;
  bool over_ = false;  // stopping, or CMD has ended
  Why why_ = Why::kNone;
  bool terminate_due_ = false;
  Instant kill_at_ = client::kNever;  // once stopping
  bool killed_ = false;
};

}  // namespace pawl::cli
