// What a user of the store was told, and so what must hold after any crash: every acknowledged
// batch is there, the one under way is there as a whole or not at all, and the high water covers
// every number that was used.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "store/journal/test_bench.h"

namespace pawl::store::journal {

class Ledger {
 public:
  // Submits and remembers. False when the store failed.
  bool submit(Lifetime& run, const Batch& batch) {
    under_way_ = state_;
    apply_to(batch, *under_way_);
    covered_under_way_ = std::max(covered_, batch.covered());
    if (!run.submit(batch)) return false;
    state_ = std::move(*under_way_);
    under_way_.reset();
    covered_ = covered_under_way_;
    ++sequence_;
    return true;
  }

  bool put(Lifetime& run, const std::string& key, const std::string& value, std::uint64_t covered) {
    Batch batch;
    batch.put(key, value);
    batch.cover(covered);
    return submit(run, batch);
  }

  // What a run loaded must fit; from then on that is the truth.
  void check(const Lifetime& run) {
    ASSERT_TRUE(run.ok()) << run.error->detail;
    const std::uint64_t sequence = run.loaded.sequence;
    if (under_way_ && sequence == sequence_ + 1) {
      state_ = *under_way_;
      covered_ = covered_under_way_;
      ++sequence_;
    }
    under_way_.reset();
    ASSERT_EQ(sequence, sequence_);
    ASSERT_TRUE(run.state() == state_) << "another state at batch " << sequence;
    ASSERT_GE(run.loaded.high_water, covered_);
    // The next number may only be one that nobody saw.
    covered_ = std::max(covered_, run.loaded.high_water);
  }

  [[nodiscard]] std::uint64_t next_number() const { return covered_ + 1; }
  [[nodiscard]] const State& state() const { return state_; }

 private:
  State state_;
  std::optional<State> under_way_;
  std::uint64_t covered_ = 0;
  std::uint64_t covered_under_way_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace pawl::store::journal
