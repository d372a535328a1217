// What a store has acknowledged, and so what must hold after any crash: every acknowledged batch is
// there, the batch in progress is there as a whole or not at all, and the high water covers every
// number that was used.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "store/testlib/journal_run.h"

namespace pawl::store::journal {

class AcknowledgedState {
 public:
  // Submits a batch and records it if it was acknowledged. Returns false if the store failed.
  bool submit(JournalRun& run, const Batch& batch) {
    pending_ = state_;
    apply_to(batch, *pending_);
    pending_covered_ = std::max(covered_, batch.covered());
    if (!run.submit(batch)) return false;
    state_ = std::move(*pending_);
    pending_.reset();
    covered_ = pending_covered_;
    ++sequence_;
    return true;
  }

  bool put(JournalRun& run, const std::string& key, const std::string& value,
           std::uint64_t covered) {
    Batch batch;
    batch.put(key, value);
    batch.cover(covered);
    return submit(run, batch);
  }

  // Checks what a run has loaded; from then on that is the acknowledged state.
  void check(const JournalRun& run) {
    ASSERT_TRUE(run.ok()) << run.error->detail;
    const std::uint64_t sequence = run.loaded.sequence;
    if (pending_ && sequence == sequence_ + 1) {
      state_ = *pending_;
      covered_ = pending_covered_;
      ++sequence_;
    }
    pending_.reset();
    ASSERT_EQ(sequence, sequence_);
    ASSERT_TRUE(run.state() == state_) << "another state at batch " << sequence;
    ASSERT_GE(run.loaded.high_water, covered_);
    // The next number must be one that was never used.
    covered_ = std::max(covered_, run.loaded.high_water);
  }

  [[nodiscard]] std::uint64_t next_number() const { return covered_ + 1; }
  [[nodiscard]] const State& state() const { return state_; }

 private:
  State state_;
  std::optional<State> pending_;
  std::uint64_t covered_ = 0;
  std::uint64_t pending_covered_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace pawl::store::journal
