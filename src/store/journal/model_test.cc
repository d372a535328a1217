// Random operations, crashes and restarts of a store, compared with a map.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/random.h"
#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kModelSeeds = 300;

std::size_t random_size(Random& random) {
  switch (random.below(12)) {
    case 0:
      return random.below(200'000);
    case 1:
      return random.below(60) == 0 ? kTestSegmentBytes + random.below(100'000) : random.below(9000);
    default:
      return random.below(100);
  }
}

Batch random_batch(Random& random, const AcknowledgedState& acknowledged) {
  Batch batch;
  for (std::uint64_t i = random.below(6); i > 0; --i) {
    const std::string key = "key" + std::to_string(random.below(40));
    if (random.below(3) == 0) {
      batch.erase(key);
    } else {
      batch.put(key, std::string(random_size(random), static_cast<char>('a' + random.below(26))));
    }
  }
  if (random.below(2) == 0) batch.cover(acknowledged.next_number() + random.below(50));
  return batch;
}

// One process, until it is killed, loses power, or stops cleanly.
void one_process(SimulatedDisk& disk, AcknowledgedState& acknowledged, Random& random) {
  if (random.below(2) == 0) disk.cut_power_at(1 + random.below(120));
  Settings settings = JournalRun::small();
  settings.spare_segments = random.below(3);
  settings.checkpoint_after = 1 + random.below(3);
  JournalRun run(disk, settings, random.next());
  if (!run.ok()) {
    ASSERT_FALSE(disk.has_power()) << run.error->detail;
    disk.restart(random);
    return;
  }
  ASSERT_NO_FATAL_FAILURE(acknowledged.check(run));
  for (std::uint64_t turns = random.below(60); turns > 0; --turns) {
    for (std::uint64_t steps = random.below(4); steps > 0; --steps) run.journal->background_step();
    if (random.below(10) == 0) run.journal->check_space();
    if (!acknowledged.submit(run, random_batch(random, acknowledged))) break;
  }
  switch (random.below(3)) {
    case 0:
      if (run.journal->close() && disk.has_power()) {
        run.journal.reset();
        disk.kill_process();
        JournalRun clean(disk);
        ASSERT_NO_FATAL_FAILURE(acknowledged.check(clean));
        ASSERT_TRUE(clean.loaded.clean);
      }
      [[fallthrough]];
    case 1:
      disk.restart(random);
      break;
    default:
      if (!disk.has_power()) disk.restart(random);
      disk.kill_process();
  }
}

TEST(JournalModel, RandomOperationsMatchAMap) {
  for (std::uint64_t seed = 0; seed < kModelSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    SimulatedDisk disk;
    AcknowledgedState acknowledged;
    for (int process = 0; process < 8; ++process)
      ASSERT_NO_FATAL_FAILURE(one_process(disk, acknowledged, random));
    disk.restart(random);
    JournalRun last(disk);
    ASSERT_NO_FATAL_FAILURE(acknowledged.check(last));
  }
}

}  // namespace
}  // namespace pawl::store::journal
