// A power cut at every single operation of the disk, in every phase of a store's life. Hard cases
// 34, 35, 38.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "store/journal/ledger.h"
#include "store/journal/test_bench.h"

namespace pawl::store::journal {
namespace {

constexpr std::uint64_t kSeeds = 3;

// A part of a store's life. Ends early, without complaint, when the disk fails.
using Story = std::function<void(SimulatedDisk&, Ledger&)>;

// Three to a segment, each with tails for a tear to show in.
bool put_large(Lifetime& run, Ledger& ledger, int i) {
  const std::string key = "key" + std::to_string(i % 5);
  return ledger.put(run, key, std::string(300'000, static_cast<char>('a' + i % 26)),
                    ledger.next_number());
}

void create_and_put(SimulatedDisk& disk, Ledger& ledger) {
  Lifetime run(disk);
  if (!run.ok()) return;
  for (int i = 0; i < 3; ++i) {
    if (!ledger.put(run, "k" + std::to_string(i),
                    std::string(static_cast<std::size_t>(i) * 3000, 'x'), ledger.next_number()))
      return;
  }
}

void switch_segments(SimulatedDisk& disk, Ledger& ledger) {
  Lifetime run(disk);
  if (!run.ok()) return;
  for (int i = 0; i < 8; ++i) {
    if (i >= 4) run.work();  // Inline at first, prewritten later.
    if (!put_large(run, ledger, i)) return;
  }
}

void checkpoint_twice(SimulatedDisk& disk, Ledger& ledger) {
  Lifetime run(disk);
  if (!run.ok()) return;
  for (int i = 0; i < 20; ++i) {
    if (!put_large(run, ledger, i)) return;
    for (int step = 0; step < 3; ++step) run.journal->background_step();
  }
  Batch batch;
  batch.erase("key1");
  if (!ledger.submit(run, batch)) return;
  run.work();
}

void oversized(SimulatedDisk& disk, Ledger& ledger) {
  Lifetime run(disk);
  if (!run.ok()) return;
  if (!ledger.put(run, "huge", std::string(kTestSegmentBytes + 5000, 'h'), 0)) return;
  run.work();
  if (!ledger.put(run, "huge", std::string(kTestSegmentBytes + 9000, 'H'), 0)) return;
  if (!ledger.put(run, "small", "s", ledger.next_number())) return;
  run.work();
}

void close_and_open_again(SimulatedDisk& disk, Ledger& ledger) {
  for (int i = 0; i < 2; ++i) {
    Lifetime run(disk);
    if (!run.ok()) return;
    if (!ledger.put(run, "k", std::to_string(i), ledger.next_number())) return;
    if (!run.journal->close()) return;
  }
}

// Opens what a crash left, checks it, and goes on: what was torn must neither come back nor look
// like damage later.
void check_and_go_on(SimulatedDisk& disk, Ledger ledger, std::uint64_t seed) {
  SeededRandom random(seed);
  for (int round = 0; round < 2; ++round) {
    Lifetime run(disk);
    ASSERT_NO_FATAL_FAILURE(ledger.check(run));
    ASSERT_TRUE(
        ledger.put(run, "after", std::string(random.below(20'000), 'y'), ledger.next_number()));
    ASSERT_TRUE(ledger.put(run, "after2", "z", 0));
    run.journal->background_step();
    disk.restart(random);
  }
  Lifetime last(disk);
  ASSERT_NO_FATAL_FAILURE(ledger.check(last));
}

// Cuts the power at each operation of the recovery itself, too.
void crash_in_recovery(const SimulatedDisk& crashed, const Ledger& ledger, std::uint64_t seed) {
  for (std::uint64_t count = 1;; ++count) {
    SimulatedDisk disk(crashed);
    disk.cut_power_at(count);
    { const Lifetime run(disk); }
    if (disk.has_power()) return;
    SeededRandom random(seed + count);
    disk.restart(random);
    ASSERT_NO_FATAL_FAILURE(check_and_go_on(disk, ledger, seed))
        << "recovery cut at operation " << count;
  }
}

void crash_everywhere(const Story& before, const Story& story) {
  SimulatedDisk start;
  Ledger start_ledger;
  before(start, start_ledger);
  start.kill_process();
  for (std::uint64_t count = 1;; ++count) {
    bool done = false;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("power cut at operation " + std::to_string(count) + ", seed " +
                   std::to_string(seed));
      SimulatedDisk disk(start);
      Ledger ledger = start_ledger;
      disk.cut_power_at(count);
      story(disk, ledger);
      done = disk.has_power();
      SeededRandom random(count * 1000 + seed);
      disk.restart(random);
      if (seed == 0) {
        ASSERT_NO_FATAL_FAILURE(crash_in_recovery(disk, ledger, count));
      }
      ASSERT_NO_FATAL_FAILURE(check_and_go_on(disk, ledger, count + seed));
    }
    if (done) {
      EXPECT_GT(count, 5U) << "the story hardly touched the disk";
      return;
    }
  }
}

void nothing(SimulatedDisk&, Ledger&) {}

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

// The same with a kill instead of a power cut: the machine lives, so everything written can be
// read.
TEST(JournalCrash, AKillAtAnyOperationFollowedByAPowerCutLosesNothingThatARestartSaw) {
  for (std::uint64_t count = 1;; ++count) {
    SimulatedDisk disk;
    Ledger ledger;
    disk.fail_at(count, Error{Code::kUnknown, "killed here"});
    checkpoint_twice(disk, ledger);
    const bool done = disk.operations() < count;
    disk.kill_process();
    {
      Lifetime run(disk);
      ASSERT_NO_FATAL_FAILURE(ledger.check(run)) << "killed at operation " << count;
    }
    SeededRandom random(count);
    disk.restart(random);
    Lifetime run(disk);
    ASSERT_NO_FATAL_FAILURE(ledger.check(run)) << "killed at operation " << count;
    if (done) return;
  }
}

}  // namespace
}  // namespace pawl::store::journal
