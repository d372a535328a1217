// A power cut at every single disk operation, in every phase of a store. Hard cases 34, 35, 38.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kSeeds = 3;

// A part of the work of a store. Returns early, without an error, if the disk fails.
using Story = std::function<void(SimulatedDisk&, AcknowledgedState&)>;

// Three fit in a segment; each spans blocks, so that it can be torn.
bool put_large(JournalRun& run, AcknowledgedState& acknowledged, int i) {
  const std::string key = "key" + std::to_string(i % 5);
  return acknowledged.put(run, key, std::string(300'000, static_cast<char>('a' + i % 26)),
                          acknowledged.next_number());
}

void create_and_put(SimulatedDisk& disk, AcknowledgedState& acknowledged) {
  JournalRun run(disk);
  if (!run.ok()) return;
  for (int i = 0; i < 3; ++i) {
    if (!acknowledged.put(run, "k" + std::to_string(i),
                          std::string(static_cast<std::size_t>(i) * 3000, 'x'),
                          acknowledged.next_number()))
      return;
  }
}

void switch_segments(SimulatedDisk& disk, AcknowledgedState& acknowledged) {
  JournalRun run(disk);
  if (!run.ok()) return;
  for (int i = 0; i < 8; ++i) {
    if (i >= 4) run.work();  // Inline at first, prewritten later.
    if (!put_large(run, acknowledged, i)) return;
  }
}

void checkpoint_twice(SimulatedDisk& disk, AcknowledgedState& acknowledged) {
  JournalRun run(disk);
  if (!run.ok()) return;
  for (int i = 0; i < 20; ++i) {
    if (!put_large(run, acknowledged, i)) return;
    for (int step = 0; step < 3; ++step) run.journal->background_step();
  }
  Batch batch;
  batch.erase("key1");
  if (!acknowledged.submit(run, batch)) return;
  run.work();
}

void oversized(SimulatedDisk& disk, AcknowledgedState& acknowledged) {
  JournalRun run(disk);
  if (!run.ok()) return;
  if (!acknowledged.put(run, "huge", std::string(kTestSegmentBytes + 5000, 'h'), 0)) return;
  run.work();
  if (!acknowledged.put(run, "huge", std::string(kTestSegmentBytes + 9000, 'H'), 0)) return;
  if (!acknowledged.put(run, "small", "s", acknowledged.next_number())) return;
  run.work();
}

void close_and_open_again(SimulatedDisk& disk, AcknowledgedState& acknowledged) {
  for (int i = 0; i < 2; ++i) {
    JournalRun run(disk);
    if (!run.ok()) return;
    if (!acknowledged.put(run, "k", std::to_string(i), acknowledged.next_number())) return;
    if (!run.journal->close()) return;
  }
}

// Opens what a crash left, checks it, and continues: a torn batch must neither come back nor look
// like damage later.
void check_and_go_on(SimulatedDisk& disk, AcknowledgedState acknowledged, std::uint64_t seed) {
  SeededRandom random(seed);
  for (int round = 0; round < 2; ++round) {
    JournalRun run(disk);
    ASSERT_NO_FATAL_FAILURE(acknowledged.check(run));
    ASSERT_TRUE(acknowledged.put(run, "after", std::string(random.below(20'000), 'y'),
                                 acknowledged.next_number()));
    ASSERT_TRUE(acknowledged.put(run, "after2", "z", 0));
    run.journal->background_step();
    disk.restart(random);
  }
  JournalRun last(disk);
  ASSERT_NO_FATAL_FAILURE(acknowledged.check(last));
}

// Cuts the power at each operation of the recovery itself, too.
void crash_in_recovery(const SimulatedDisk& crashed, const AcknowledgedState& acknowledged,
                       std::uint64_t seed) {
  for (std::uint64_t count = 1;; ++count) {
    SimulatedDisk disk(crashed);
    disk.cut_power_at(count);
    { const JournalRun run(disk); }
    if (disk.has_power()) return;
    SeededRandom random(seed + count);
    disk.restart(random);
    ASSERT_NO_FATAL_FAILURE(check_and_go_on(disk, acknowledged, seed))
        << "recovery cut at operation " << count;
  }
}

void crash_everywhere(const Story& before, const Story& story) {
  SimulatedDisk start;
  AcknowledgedState start_ledger;
  before(start, start_ledger);
  start.kill_process();
  for (std::uint64_t count = 1;; ++count) {
    bool done = false;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("power cut at operation " + std::to_string(count) + ", seed " +
                   std::to_string(seed));
      SimulatedDisk disk(start);
      AcknowledgedState acknowledged = start_ledger;
      disk.cut_power_at(count);
      story(disk, acknowledged);
      done = disk.has_power();
      SeededRandom random(count * 1000 + seed);
      disk.restart(random);
      if (seed == 0) {
        ASSERT_NO_FATAL_FAILURE(crash_in_recovery(disk, acknowledged, count));
      }
      ASSERT_NO_FATAL_FAILURE(check_and_go_on(disk, acknowledged, count + seed));
    }
    if (done) {
      EXPECT_GT(count, 5U) << "the story hardly touched the disk";
      return;
    }
  }
}

void nothing(SimulatedDisk&, AcknowledgedState&) {}

TEST(JournalCrash, AtAnyOperationOfCreation) {
  crash_everywhere(nothing, create_and_put);
}
TEST(JournalCrash, AtAnyOperationOfASegmentSwitch) {
  crash_everywhere(create_and_put, switch_segments);
}
TEST(JournalCrash, AtAnyOperationOfACheckpoint) {
  crash_everywhere(create_and_put, checkpoint_twice);
}
TEST(JournalCrash, AtAnyOperationAroundAnOversizedBatch) {
  crash_everywhere(create_and_put, oversized);
}
TEST(JournalCrash, AtAnyOperationOfACleanStop) {
  crash_everywhere(create_and_put, close_and_open_again);
}

// The same with a kill instead of a power cut: the machine keeps running, so everything written can
// be read.
TEST(JournalCrash, APowerCutAfterAKillLosesNothingThatARestartLoaded) {
  for (std::uint64_t count = 1;; ++count) {
    SimulatedDisk disk;
    AcknowledgedState acknowledged;
    disk.fail_at(count, Error{Code::kUnknown, "killed here"});
    checkpoint_twice(disk, acknowledged);
    const bool done = disk.operations() < count;
    disk.kill_process();
    {
      JournalRun run(disk);
      ASSERT_NO_FATAL_FAILURE(acknowledged.check(run)) << "killed at operation " << count;
    }
    SeededRandom random(count);
    disk.restart(random);
    JournalRun run(disk);
    ASSERT_NO_FATAL_FAILURE(acknowledged.check(run)) << "killed at operation " << count;
    if (done) return;
  }
}

}  // namespace
}  // namespace pawl::store::journal
