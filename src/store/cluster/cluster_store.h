// A store that several pawld share, over a shared log: one is active, the others follow what it
// writes and take over when it is silent for `role_ttl`. Rule 12.
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
// The log is cleaned as it is written: when too much of it is dead, the next write carries what is
// live in the oldest entries, which the active one reads back, and deletes them.
//
// Why two that are active at once do no harm: the standby counts `role_ttl` from when it received
// the head that it then compares; the active one counts less than that from when it first sent the
// write of that head, which was before. So its window is over when the other one's write succeeds,
// and its own writes are refused from then on.
//
// One thread; no clock, socket or timer of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/cluster/log_copy.h"
#include "store/cluster/log_format.h"
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
  // After a write of several changes: so long the next one waits for the requests that follow the
  // answers, so that they share it.
  Nanos gather = Nanos(0);
  BatchLimits batch_limits = {.bytes = limits::kEtcdEntryMax, .operations = SIZE_MAX};
  CleaningLimits cleaning = {};
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
  // Where clients reach this pawld, if that is known only now. Before the first on_timer().
  void set_address(std::string address) { settings_.address = std::move(address); }
  // Takes the role no more. One that has it keeps it until hand_over().
  void leave() { leaves_ = true; }
  // Whether it is active, or about to be.
  [[nodiscard]] bool has_role() const { return role_ != Role::kStandby; }

  // --- Store -------------------------------------------------------------------------------------
  Result<Loaded> load(Visitor& visitor) override;
  void submit(const Batch& batch, BatchId id, Sink& sink) override;
  void pump(Sink& sink) override;
  void wake_with(Waker* waker) override { waker_ = waker; }
  bool has_room() override { return log_.has_room(); }
  [[nodiscard]] BatchLimits batch_limits() const override { return settings_.batch_limits; }
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] bool is_shared() const override { return true; }
  [[nodiscard]] bool is_active() const override { return may_serve_; }
  [[nodiscard]] Nanos may_answer_until() const override { return window_end_; }
  void hand_over() override;
  [[nodiscard]] std::optional<ClusterView> cluster() const override { return log_.view(); }
  Result<void> begin_backup(const BackupOrder& order) override;
  Result<void> close() override { return {}; }
  [[nodiscard]] std::string_view kind() const override { return log_.kind(); }

  // --- For people --------------------------------------------------------------------------------
  // The head as last known; nothing until it is.
  [[nodiscard]] const Head* head() const;

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
    Nanos first_sent{0};
    std::string carried, operations;  // Of the entry.
    std::vector<BatchId> batches;     // One at most.
    bool gathers = false;             // Several requests share it.
    bool sent = false;                // It has no answer yet.
    Nanos resend_at{0};
  };

  // --- SharedLog::Listener -----------------------------------------------------------------------
  void written(const SharedLog::WriteAnswer& answer) override;
  void read(const SharedLog::ReadAnswer& answer) override;
  void failed(const Error& error) override { fail(error); }

  [[nodiscard]] Pending next_write() const;
  [[nodiscard]] bool may_resign() const { return resigning_ && durable_.empty(); }
  void send(Pending pending);
  // Adds an entry to what is to be written.
  void add_entry(Pending& pending, std::string carried, std::string operations) const;
  void confirmed();
  void refused(const std::string& found);
  void begin_to_serve();
  void become_standby();
  void observe(const std::string& head);
  [[nodiscard]] bool is_earlier(const Head& head) const;
  [[nodiscard]] bool may_claim(Nanos now) const;
  void claim();
  // Reading, by a standby.
  void read_on();
  void begin_copy(const Head& head);
  [[nodiscard]] bool pass_on(Sink& sink);
  Result<void> copy_entries(const SharedLog::ReadAnswer& answer);
  [[nodiscard]] bool copy_is_complete() const;
  // Cleaning, by the active one.
  void begin_cleaning();
  void read_back(const SharedLog::ReadAnswer& answer);
  void carry(Pending& pending, std::string_view operations);
  void clean_alone();
  void fail(Error error);
  void wake() const;

  ClusterSettings settings_;
  SharedLog& log_;
  Random& random_;
  const std::function<Nanos()> clock_;
  Waker* waker_ = nullptr;

  Role role_ = Role::kStandby;
  bool may_serve_ = false;  // Active, and pump() has said so.
  bool resigning_ = false;
  bool leaves_ = false;  // The process is about to end.
  // The last head known. While active: the one it wrote.
  std::optional<std::string> head_bytes_;  // Nothing: not read yet. "": there is none.
  Head head_;
  Nanos head_since_{0};  // Standby: received then, and unchanged since.
  Nanos jitter_{0};
  bool resigned_myself_ = false;  // Gives others the time to take over.
  std::optional<Pending> pending_;
  Nanos last_sent_{0};
  Nanos window_end_{0};

  std::optional<LogCopy> copy_;  // Nothing: not begun.
  // Of the entries in the copy: what pump() has not passed on yet. The next ones are read after
  // that, so it is no more than one read has.
  std::vector<std::string> unfollowed_;
  bool follow_again_ = false;  // These are the first of a new copy.
  enum class Reading : std::uint8_t { kNothing, kCopy, kOldEntries };
  Reading reading_ = Reading::kNothing;
  std::uint64_t reading_from_ = 0;
  bool read_is_old_ = false;  // The head has been learned otherwise since the read was sent.
  Nanos read_at_{0};
  // Entries that are to be deleted, once they are read back.
  struct Cleaning {
    CleaningPlan plan;
    bool complete = false;
    std::vector<SharedLog::NumberedEntry> entries;
  };
  std::optional<Cleaning> cleaning_;
  Nanos gather_until_{0};

  // For the next pump().
  std::vector<BatchId> durable_;
  std::optional<Active> deposed_;
  std::optional<Error> failure_;
};

}  // namespace pawl::store::cluster
