// Many power cuts in one store: each cut hits what the recovery before it left, through recycled
// segments, many checkpoints and reserved blocks of numbers. Hard cases 34, 35, 38.
//
// PAWL_POWER_CUTS (2,000) is the number of cuts, PAWL_POWER_CUT_SEED (1) the first seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/random.h"
#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kCutsPerStore = 100;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Fifteen blocks, so that a cut is never far from a switch of segments.
Settings random_settings(Random& random) {
  Settings settings = JournalRun::small();
  settings.segment_bytes = kSegmentBytesMin;
  settings.spare_segments = random.below(3);
  settings.checkpoint_after = 1 + random.below(3);
  return settings;
}

// Like the batches of pawld: mostly one grant or release, sometimes a whole turn of them, rarely
// more than a segment.
Batch random_batch(Random& random, const AcknowledgedState& acknowledged) {
  Batch batch;
  const std::uint64_t kind = random.below(100);
  const std::uint64_t count = kind < 70 ? 1 : kind < 98 ? random.below(60) : random.below(600);
  for (std::uint64_t i = 0; i <= count; ++i) {
    const std::string key = "lease" + std::to_string(random.below(300));
    if (random.below(5) < 2) {
      batch.erase(key);
    } else {
      batch.put(key,
                std::string(40 + random.below(200), static_cast<char>('a' + random.below(26))));
    }
  }
  if (random.below(3) != 0) batch.cover(acknowledged.next_number() + random.below(3));
  return batch;
}

// Counts what the cuts hit; the test prints it.
struct Tally {
  std::uint64_t in_recovery = 0, batches = 0, clean_stops = 0;
};

// Works until the power is cut: before the store is open, during its work, during its clean stop,
// or after that.
void work_until_cut(SimulatedDisk& disk, AcknowledgedState& acknowledged, Random& random,
                    Tally& tally) {
  disk.cut_power_at(1 + random.below(random.below(3) == 0 ? 8 : 150));
  JournalRun run(disk, random_settings(random), random.next());
  if (!run.ok()) {
    ASSERT_FALSE(disk.has_power()) << run.error->detail;
    ++tally.in_recovery;
    return;
  }
  ASSERT_NO_FATAL_FAILURE(acknowledged.check(run));
  for (std::uint64_t turns = 1 + random.below(100); turns > 0; --turns) {
    for (std::uint64_t steps = random.below(4); steps > 0; --steps) run.journal->background_step();
    if (!acknowledged.submit(run, random_batch(random, acknowledged))) {
      ASSERT_FALSE(disk.has_power()) << run.answers.failure->detail;
      return;
    }
    ++tally.batches;
  }
  if (random.below(2) == 0 && run.journal->close()) ++tally.clean_stops;
  disk.cut_power();
}

// One store through many cuts, and a final check.
void one_store(std::uint64_t seed, std::uint64_t cuts, Tally& tally) {
  SeededRandom random(seed);
  SimulatedDisk disk;
  AcknowledgedState acknowledged;
  for (std::uint64_t cut = 0; cut < cuts; ++cut) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    ASSERT_NO_FATAL_FAILURE(work_until_cut(disk, acknowledged, random, tally));
    disk.restart(random);
  }
  JournalRun last(disk, random_settings(random), random.next());
  ASSERT_NO_FATAL_FAILURE(acknowledged.check(last));
}

TEST(JournalPowerCut, NothingAcknowledgedIsLostOverManyPowerCuts) {
  const std::uint64_t cuts = from_environment("PAWL_POWER_CUTS", 2000);
  const std::uint64_t first_seed = from_environment("PAWL_POWER_CUT_SEED", 1);
  Tally tally;
  for (std::uint64_t done = 0; done < cuts; done += kCutsPerStore) {
    const std::uint64_t seed = first_seed + done / kCutsPerStore;
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(one_store(seed, std::min(kCutsPerStore, cuts - done), tally));
  }
  std::cout << cuts << " power cuts: " << tally.in_recovery << " before the store was open, "
            << tally.batches << " batches acknowledged, " << tally.clean_stops << " clean stops\n";
  EXPECT_GT(tally.in_recovery, cuts / 100) << "the cuts hardly ever hit a recovery";
  EXPECT_GT(tally.batches, cuts) << "the cuts hardly ever hit any work";
}

}  // namespace
}  // namespace pawl::store::journal
