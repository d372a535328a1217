// The core and the naive model, given the same inputs; after each they must say the same and show
// the same, and the invariants must hold. Time is virtual, a batch is durable when a command says
// so, and a restart keeps what was durable.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/testlib/invariants.h"
#include "core/testlib/naive_model.h"

namespace pawl::core {

enum class Op : std::uint8_t {
  kAcquire,
  kRetry,
  kRenew,
  kRelease,
  kCancel,
  kCancelRequest,
  kBreak,
  kRaise,
  kPass,     // Time goes by, nothing looks.
  kTick,     // Time goes by, then a tick.
  kCommit,   // The changes so far are handed to the store.
  kDurable,  // The oldest batch on its way arrives.
  kRestart,
};

// One step. The numbers choose among what exists when the step is taken, so any command fits any
// state, and a failing sequence can be shortened blindly.
struct Command {
  Op op = Op::kTick;
  std::uint32_t a = 0, b = 0, c = 0;
};

class Duel {
 public:
  enum class Grain { kMillisecond, kNanosecond };  // How finely time passes.
  explicit Duel(Grain grain);

  // False when the two sides disagree or an invariant is broken: see report().
  bool step(const Command& command);
  [[nodiscard]] std::string report() const;  // the last steps, and what is wrong

 private:
  void acquire(const naive::Spec& spec);
  void run(const Command& command);
  void retry(const Command& command);
  void break_one(const Command& command);
  void pass(std::uint32_t amount);
  void commit();
  void arrive();
  void restart(std::uint32_t choice);
  // A core with what is on the disk, in an order that depends on `choice`.
  [[nodiscard]] std::unique_ptr<Core> load_all(std::uint32_t choice);
  naive::Spec make_spec(const Command& command);
  LeaseId pick_lease(std::uint32_t choice) const;
  WaiterId next_waiter(bool expects_an_answer = true);
  // After the core took an input: what it chose, and where its changes went.
  naive::Choices take_choices();

  void compare();
  void compare_outputs();
  void compare_reads();
  void expect_same(const std::string& what, const std::string& core, const std::string& model);
  void note(std::string line) { trace_.push_back(std::move(line)); }

  Options options_;
  Grain grain_;
  std::unique_ptr<Core> core_;      // Another one after each restart.
  std::unique_ptr<Core> follower_;  // Has every record as it became durable.
  naive::Model model_;
  Now now_;
  Snapshot before_;
  PendingReplies pending_;
  std::uint64_t waiters_ = 0, candidates_ = 0, requests_ = 0;
  std::vector<naive::Spec> asked_;  // with a request id, newest last
  struct Flying {
    BatchId id;
    Batch batch;
  };
  std::deque<Flying> flying_;
  std::map<std::string, std::string> disk_;
  std::uint64_t high_water_ = 0;
  std::vector<std::string> trace_;
  std::vector<std::string> wrong_;
};

}  // namespace pawl::core
