// The rules of the core once more, as slow and plain as they can be said: vectors, linear scans, no
// timers. The model test runs both side by side, so a change of a rule is written twice.
//
// Where the rules leave a choice, the model follows the core and only judges whether the choice was
// legal: which of several locks freed in one step hands on first (and so which grant gets the
// smaller token), which free slot a LIMIT grant gets, and in which order leases end, or waiters
// give up, that fall due in one millisecond.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "core/core.h"

namespace pawl::core::naive {

// AcquireSpec with its own bytes.
struct Spec : LeaseTerms {
  std::vector<std::string> locks;
  Millis wait{0};
  bool async = false;
  std::string owner;
  std::string request;
  std::vector<std::pair<std::string, std::string>> meta;

  [[nodiscard]] AcquireSpec view() const;
  [[nodiscard]] bool names(std::string_view lock) const;
  [[nodiscard]] bool shares_a_lock_with(const Spec& other) const;
  [[nodiscard]] bool same_request_as(const Spec& other) const;  // Otherwise it is a conflict.
};

struct Lease {
  LeaseId id;
  Spec spec;
  Token token, floor;
  std::optional<std::uint32_t> slot;
  Millis waited{0};
  UnixMs granted;
  Tick due = kNever;      // TTL and MAXHOLD start when the grant is durable.
  Tick max_due = kNever;  // kNever without MAXHOLD, too.
  bool started = false;
  std::uint32_t renewals = 0;
  bool breaking = false;
  bool closed = false;  // Over, but its DELAY keeps its place until `reopens`.
  Tick reopens{};
  BatchId changed_in;  // The batch that holds its grant, or its break since.
};

struct Wait {
  WaiterId waiter;
  LeaseId candidate;
  Spec spec;
  Tick since;
  Tick until;
};

// What the core did where the rules leave a choice; taken from its output for the same input.
struct Choices {
  std::map<WaiterId, Granted> grants;
  std::vector<Token> ended;
  std::vector<WaiterId> timed_out;
};
[[nodiscard]] Choices choices_of(const Output& output);

class Model {
 public:
  explicit Model(Options options) : options_(options) {}

  // --- Inputs: as the core's. `choices` come from the core's output for the very same input. -----
  void acquire(WaiterId waiter, const Spec& spec, LeaseId candidate, Now now,
               const Choices& choices);
  void renew(WaiterId waiter, LeaseId lease, Now now, const Choices& choices);
  void release(WaiterId waiter, LeaseId lease, Now now, const Choices& choices);
  void cancel(WaiterId waiter, Now now, const Choices& choices);
  void cancel_request(WaiterId waiter, const std::string& request, Now now, const Choices& choices);
  void break_lease(WaiterId waiter, const std::string& lock, Token token, bool at_once, Now now,
                   const Choices& choices);
  void raise(WaiterId waiter, Token token);
  void tick(Now now, const Choices& choices);

  // --- Durability --------------------------------------------------------------------------------
  // Changes
  // from here on belong to this batch (the core's last_batch() after the input).
  void open_batch(BatchId batch) { open_ = batch; }
  void batch_taken(BatchId batch);
  void durable(BatchId batch, Now now);
  // What the last durable batch left, and nothing else, is still known.
  void restart(Token high_water, Now now);
  // Whether anything changed that must survive, since the last batch was taken.
  [[nodiscard]] bool has_changes() const { return changed_; }

  // --- Outputs: texts, see describe.h; cleared by the caller -------------------------------------
  std::vector<std::string> replies, events;
  std::map<WaiterId, BatchId> rests_on;  // What must be durable before this waiter may hear of it.
  std::vector<std::string> complaints;   // Choices of the core that no rule allows.

  // --- Reads -------------------------------------------------------------------------------------
  [[nodiscard]] LockView inspect(const std::string& lock, Now now) const;
  [[nodiscard]] std::vector<std::string> locks() const;  // held, closed or waited for; sorted
  [[nodiscard]] std::vector<EpochView> history(const std::string& lock) const;
  [[nodiscard]] Totals totals() const;
  // The earliest moment at which a tick has something to do.
  [[nodiscard]] Tick next_due() const;
  [[nodiscard]] const std::vector<Wait>& queue() const { return queue_; }
  [[nodiscard]] const std::vector<Lease>& leases() const { return leases_; }

 private:
  struct Ended {
    Spec spec;
    LeaseId id;
    Token token;
    Ending how = Ending::kReleased;
    Tick at;
    UnixMs granted, ended;
    BatchId ended_in;
  };

  void reply(WaiterId waiter, const Outcome& outcome, BatchId rests = {});
  [[nodiscard]] std::optional<Ended> in_the_ring(LeaseId lease) const;
  [[nodiscard]] std::vector<std::pair<const Ended*, std::string>> ring()
      const;  // newest first, one per lock
  void tell(EventKind kind, const Lease& lease, std::optional<Ending> ending);
  bool answer_from_memory(WaiterId waiter, const Spec& spec, Now now, const Choices& choices);
  void supersede(Wait& wait, WaiterId waiter, const Spec& spec, Now now, const Choices& choices);
  [[nodiscard]] bool fits(const Spec& spec) const;
  [[nodiscard]] bool behind_another(std::size_t place) const;
  [[nodiscard]] std::uint64_t position(std::size_t place) const;
  void grant(const Wait& wait, Now now, const Choices& choices);
  void judge_slot(Lease& lease, const std::optional<std::uint32_t>& chosen);
  void settle(Now now, const Choices& choices);
  void end(std::size_t index, Ending how, bool may_close, Now now);
  void end_what_is_due(Now now, const Choices& choices);
  void end_waits(Now now, const Choices& choices);
  void check_tokens();
  [[nodiscard]] std::optional<std::size_t> live(LeaseId lease) const;
  [[nodiscard]] Ending ending_when_due(const Lease& lease) const;

  Options options_;
  Token last_token_;
  std::vector<Lease> leases_;  // live and closed, in order of grant
  std::vector<Wait> queue_;    // every waiter on every lock, in order of arrival
  std::vector<Ended> ended_;   // everything that ended since the start, oldest first
  std::vector<std::pair<Token, Spec>> granted_in_this_step_;
  bool changed_ = false;
  BatchId open_, durable_through_;
  std::map<BatchId, std::vector<Lease>> taken_;
  std::vector<Lease> durable_;
};

}  // namespace pawl::core::naive
