// A store that several pawld share, over a shared log: one is active, the others stand by with a
// copy of the records and take over when the active one is silent for `role_ttl`. Rule 12.
//
//   ClusterStore store(settings, log, random, boot_clock);   // begins as a standby
//   store.on_timer() at store.next_timer();                  // and whenever `log` has answered
//   engine.stand_by();  …  engine.run_turn() when woken      // pumps it
//
// Every write, an idle one each `heartbeat` included, compares the whole head and writes the next
// one; one is under way at a time. A write whose outcome is unknown is sent again, the same bytes,
// until it is applied or refused: it cannot apply twice. Refused with what it would have written as
// the head means that an earlier send was applied. Refused with another writer's head means
// deposed.
//
// Why two that are active at once do no harm: the standby counts `role_ttl` from when it received
// the head that it then compares; the active one counts less than that from when it first sent the
// write of that head, which was before. So its window is over when the other one's write succeeds,
// and its own writes are refused from then on.
//
// One thread; no clock, socket or timer of its own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/cluster/head.h"
#include "store/cluster/shared_log.h"
#include "store/store.h"

namespace pawl::store::cluster {

struct ClusterSettings {
  std::string address;  // Where clients reach this pawld.
  Nanos role_ttl = std::chrono::seconds(5);
  Nanos heartbeat = std::chrono::seconds(1);
  Nanos poll = std::chrono::milliseconds(500);         // How often a standby reads.
  Nanos resend_pause = std::chrono::milliseconds(50);  // After an unknown outcome.
  Nanos jitter = std::chrono::milliseconds(200);       // Before a takeover, at most.
  BatchLimits batch_limits = {.bytes = 512 * 1024, .operations = SIZE_MAX};
};

class ClusterStore final : public Store, private SharedLog::Listener {
 public:
  // `boot_clock` reads CLOCK_BOOTTIME.
  ClusterStore(ClusterSettings settings, SharedLog& log, Random& random,
               std::function<Nanos()> boot_clock);

  // --- For the driver ----------------------------------------------------------------------------
  // Does what is due: heartbeats, sending again, reading, taking over.
  void on_timer();
  // When that is next; Nanos::max(): when the log has answered.
  [[nodiscard]] Nanos next_timer() const;
  // Hands the role to whoever takes it first, after what is under way. Sink::deposed() follows.
  void resign() { resigning_ = role_ == Role::kActive; }

  // --- Store -------------------------------------------------------------------------------------
  Result<Loaded> load(Visitor& visitor) override;
  void submit(const Batch& batch, BatchId id, Sink& sink) override;
  void pump(Sink& sink) override;
  void wake_with(Waker* waker) override { waker_ = waker; }
  bool has_room() override { return true; }
  [[nodiscard]] BatchLimits batch_limits() const override { return settings_.batch_limits; }
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] bool is_shared() const override { return true; }
  [[nodiscard]] bool is_active() const override { return may_serve_; }
  [[nodiscard]] Nanos may_answer_until() const override { return window_end_; }
  Result<void> close() override { return {}; }
  [[nodiscard]] std::string_view kind() const override { return log_.kind(); }

 private:
  enum class Role : std::uint8_t {
    kStandby,
    kClaiming,    // A takeover is under way.
    kCompleting,  // It has succeeded: nobody else writes. Entries are missing in the copy.
    kActive,
  };
  // The write under way, or to be sent again.
  struct Pending {
    SharedLog::Write write;
    Head head;
    Nanos first_sent;
    std::vector<BatchId> batches;  // One at most.
    bool sent = false;             // It has no answer yet.
    Nanos resend_at{0};
  };

  // --- SharedLog::Listener -----------------------------------------------------------------------
  void written(const SharedLog::WriteAnswer& answer) override;
  void read(const SharedLog::ReadAnswer& answer) override;

  void send(Head head, const Batch* batch, std::optional<BatchId> id);
  void confirmed();
  void refused(const std::string& found);
  void begin_to_serve();
  void become_standby();
  void observe(const std::string& head);
  [[nodiscard]] bool may_claim(Nanos now) const;
  void claim();
  void read_on();
  Result<void> apply(std::string_view entry);
  void fail(Error error);
  void wake() const;
  [[nodiscard]] Head next_head() const;

  const ClusterSettings settings_;
  SharedLog& log_;
  Random& random_;
  const std::function<Nanos()> clock_;
  Waker* waker_ = nullptr;

  Role role_ = Role::kStandby;
  bool may_serve_ = false;  // Active, and pump() has said so.
  bool resigning_ = false;
  // The last head known. While active: the one it wrote.
  std::optional<std::string> head_bytes_;  // Nothing: not read yet. "": there is none.
  Head head_;
  Nanos head_since_{0};  // Standby: received then, and unchanged since.
  Nanos jitter_{0};
  bool resigned_myself_ = false;  // Gives others the time to take over.
  std::optional<Pending> pending_;
  Nanos last_sent_{0};
  Nanos window_end_{0};

  // The copy, of entries up to copied_. Given away by load().
  std::map<std::string, std::string, std::less<>> copy_;
  std::uint64_t copied_ = 0;
  std::optional<std::uint64_t> reading_from_;
  Nanos read_at_{0};

  // For the next pump().
  std::vector<BatchId> durable_;
  std::optional<Active> deposed_;
  std::optional<Error> failure_;
};

}  // namespace pawl::store::cluster
