// A store that lacks something that may return: space, inodes, file descriptors. And files that
// cannot be read any more while the loop has everything in memory. Hard cases 36 to 39.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "store/journal/high_water.h"
#include "store/journal/small_files.h"
#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

using ::testing::HasSubstr;

const std::string kLarge(300'000, 'l');  // Three to a segment.

std::string high_water_path() {
  return path_in(kDirectory, kHighWaterFile);
}

// --- File descriptors and inodes -----------------------------------------------------------------

TEST(Shortage, ANewBlockOfNumbersNeedsNoFileDescriptorAndNoInode) {
  SimulatedDisk disk;
  JournalRun run(disk);
  disk.set_descriptors_left(false);
  disk.set_free_files(0);
  for (std::uint64_t block = 1; block < 6; ++block)
    EXPECT_TRUE(run.put("a", "1", block * limits::kTokenBlock)) << run.answers.failure->detail;
}

TEST(Shortage, ABatchWaitsForASegmentUntilThereIsAFileDescriptor) {
  SimulatedDisk disk;
  AcknowledgedState acknowledged;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.ok());
    disk.set_descriptors_left(false);
    State expected;
    for (int i = 0; i < 5; ++i) {  // The fourth does not fit in the first segment.
      run.put("key" + std::to_string(i), kLarge);
      expected["key" + std::to_string(i)] = kLarge;
    }
    EXPECT_FALSE(run.answers.failure) << run.answers.failure->detail;
    EXPECT_FALSE(run.journal->has_room());
    run.journal->pump(run.answers);
    EXPECT_LT(run.answers.last_durable, 5U);
    run.work();
    disk.set_descriptors_left(true);
    run.journal->check_space();
    run.journal->pump(run.answers);
    EXPECT_FALSE(run.answers.failure) << run.answers.failure->detail;
    run.work();
    EXPECT_TRUE(run.journal->has_room());
    disk.kill_process();
    EXPECT_EQ(JournalRun(disk).state(), expected);
  }
}

TEST(Shortage, WithoutFileDescriptorsACheckpointIsMadeLater) {
  SimulatedDisk disk;
  JournalRun run(disk);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(run.put("key" + std::to_string(i), kLarge));
  disk.set_descriptors_left(false);
  run.work();
  EXPECT_TRUE(run.put("small", "1")) << run.answers.failure->detail;
  disk.set_descriptors_left(true);
  run.journal->check_space();
  run.work();
  EXPECT_TRUE(run.journal->has_room());
  const auto names = disk.list(kDirectory);
  EXPECT_TRUE(std::any_of(names->begin(), names->end(),
                          [](const std::string& name) { return checkpoint_of(name); }));
}

TEST(Shortage, WithoutInodesThereIsNoRoomForGrants) {
  SimulatedDisk disk;
  JournalRun run(disk);
  run.work();
  EXPECT_TRUE(run.journal->prepare_grant());
  disk.set_free_files(2);
  run.journal->check_space();
  EXPECT_FALSE(run.journal->has_room());
  EXPECT_FALSE(run.journal->prepare_grant());
  EXPECT_THAT(run.journal->space()->short_of, HasSubstr("inodes"));
  disk.set_free_files(std::nullopt);
  run.journal->check_space();
  EXPECT_TRUE(run.journal->prepare_grant());
}

// A quota: the free space looks ample, but no file can be created.
TEST(Shortage, RoomReturnsOnlyWhenTheWorkThatLackedItSucceeds) {
  SimulatedDisk disk;
  JournalRun run(disk);
  disk.set_descriptors_left(false);
  run.work();
  EXPECT_FALSE(run.journal->has_room());
  run.journal->check_space();
  EXPECT_FALSE(run.journal->has_room());
  disk.set_descriptors_left(true);
  run.journal->check_space();
  run.work();
  EXPECT_TRUE(run.journal->has_room());
}

TEST(Shortage, AReservationThatFailsRefusesTheGrantAndIsTriedAgain) {
  SimulatedDisk disk;
  JournalRun run(disk);
  run.work();
  disk.fail_at(1, Error{Code::kUnavailable, "No space left on device"});
  // A spare is given up for it, and that does not help either.
  while (!run.journal->prepare_grant()) {
    run.journal->check_space();
    run.work();
  }
  EXPECT_TRUE(run.put("a", "1", 1)) << run.answers.failure->detail;
}

// --- The two slots of high-water -----------------------------------------------------------------

TEST(HighWater, ADamagedSlotIsNeverFatalAndLowersNoNumber) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1", 1));
    ASSERT_TRUE(run.put("a", "2", 10'000));
    disk.kill_process();
  }
  for (const std::uint64_t slot : {std::uint64_t{0}, std::uint64_t{kBlock}}) {
    for (std::uint64_t at = slot; at < slot + 41; ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        SimulatedDisk damaged(disk);
        damaged.flip(high_water_path(), at, bit);
        JournalRun run(damaged);
        ASSERT_TRUE(run.ok()) << at << ": " << run.error->detail;
        EXPECT_EQ(run.loaded.high_water, 10'000 + limits::kTokenBlock) << at;
      }
    }
  }
}

TEST(HighWater, IsRefusedWhenNeitherSlotIsValid) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1", 1));
    disk.kill_process();
  }
  disk.flip(high_water_path(), 20, 1);
  disk.flip(high_water_path(), kBlock + 20, 1);
  JournalRun run(disk);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error->code, Code::kInvalid);
  EXPECT_THAT(run.error->detail, HasSubstr("neither of its two slots is valid"));
}

TEST(HighWater, AFileOfVersion1IsReadAndReplaced) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1", 7));
    disk.kill_process();
  }
  std::string old("PAWLHIGH");
  put_u32(old, 1);
  put_u64(old, 5000);
  put_u64(old, 0);
  put_u8(old, 0);
  put_u32(old, crc32c(old));
  disk.put_file(high_water_path(), old);
  for (int i = 0; i < 2; ++i) {
    JournalRun run(disk);
    ASSERT_TRUE(run.ok()) << run.error->detail;
    EXPECT_EQ(run.loaded.high_water, 5000U);
    EXPECT_EQ(disk.content(high_water_path()).size(), 2 * kBlock);
    disk.kill_process();
  }
}

TEST(HighWater, NeverReservesMoreThanTheLastToken) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1", limits::kTokenMax - 10));
    EXPECT_TRUE(run.journal->prepare_grant());
    disk.kill_process();
  }
  JournalRun run(disk);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.loaded.high_water, limits::kTokenMax);
  EXPECT_TRUE(run.journal->prepare_grant());
  EXPECT_TRUE(run.put("a", "2", limits::kTokenMax));
}

// --- A sync that failed --------------------------------------------------------------------------

// The bytes can be read, so the next start finds them and bases new batches on them. A sync of the
// file succeeds without writing them.
TEST(FailedSync, TheLastRecordIsWrittenAgainBeforeAnythingIsBasedOnIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDisk disk;
    {
      JournalRun run(disk);
      ASSERT_TRUE(run.put("a", "1", 1));
      disk.fail_sync_at(1, Error{Code::kUnknown, "Input/output error"});
      ASSERT_FALSE(run.put("b", std::string(9000, 'b'), 2));
    }
    disk.kill_process();
    {
      JournalRun again(disk);
      ASSERT_TRUE(again.ok()) << again.error->detail;
      ASSERT_TRUE(again.put("c", "3", again.loaded.high_water + 1));
    }
    SeededRandom random(seed);
    disk.restart(random);
    JournalRun last(disk);
    ASSERT_TRUE(last.ok()) << last.error->detail;
    EXPECT_EQ(last.state().at("c"), "3");
  }
}

TEST(FailedSync, AReservationIsWrittenAgainBeforeAnythingIsBasedOnIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDisk disk;
    {
      JournalRun run(disk);
      ASSERT_TRUE(run.put("a", "1", 1));
      disk.fail_sync_at(1, Error{Code::kUnknown, "Input/output error"});
      ASSERT_FALSE(run.put("b", "2", 10'000));
    }
    disk.kill_process();
    std::uint64_t next = 0;
    {
      JournalRun again(disk);
      ASSERT_TRUE(again.ok()) << again.error->detail;
      next = again.loaded.high_water;
      ASSERT_TRUE(again.put("c", "3", next));  // Reserved already, as far as it can be read.
    }
    SeededRandom random(seed);
    disk.restart(random);
    JournalRun last(disk);
    ASSERT_TRUE(last.ok()) << last.error->detail;
    EXPECT_GE(last.loaded.high_water, next);
  }
}

// --- Damage while the loop has everything in memory ----------------------------------------------

// A backup reads the same files, possibly long before the next checkpoint does.
TEST(DamagedWhileRunning, ABackupThatFindsDamageHasItRepaired) {
  for (const bool in_the_active_segment : {false, true}) {
    SimulatedDisk disk;
    ASSERT_TRUE(disk.make_directory("backups"));
    State model;
    const BackupOrder order{"backups/one", Millis(1000), UnixMs{1}, "a test"};
    {
      JournalRun run(disk);
      for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(run.put("key" + std::to_string(i), kLarge, static_cast<std::uint64_t>(i)));
        model["key" + std::to_string(i)] = kLarge;
      }
      const std::string damaged = segment_name(in_the_active_segment ? 2 : 1);
      disk.flip(path_in(kDirectory, damaged), kBlock + 1000, 5);
      ASSERT_TRUE(run.journal->begin_backup(order));
      while (run.journal->backup_step()) {
      }
      const auto failed = run.journal->finished_backup();
      ASSERT_TRUE(failed && !*failed);
      EXPECT_THAT(failed->error().detail, HasSubstr(damaged));
      EXPECT_EQ(run.journal->damage().found, 1U);
      EXPECT_THAT(run.journal->damage().what, HasSubstr(damaged));
      ASSERT_TRUE(run.journal->wants_state());
      Batch state;
      for (const auto& [key, value] : model) state.put(key, value);
      run.journal->take_state(state);
      run.work();
      EXPECT_EQ(run.journal->damage().repaired, 1U);
      ASSERT_TRUE(run.journal->begin_backup(order));
      while (run.journal->backup_step()) {
      }
      const auto done = run.journal->finished_backup();
      ASSERT_TRUE(done && *done) << done->error().detail;
      disk.kill_process();
    }
    JournalRun again(disk);
    ASSERT_TRUE(again.ok()) << again.error->detail;
    EXPECT_EQ(again.state(), model);
  }
}

// The checkpoint that is being made when the damage is found reads the same files.
TEST(DamagedWhileRunning, ABackupThatFindsDamageStopsTheCheckpointThatIsBeingMade) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.make_directory("backups"));
  JournalRun run(disk);
  State model;
  int batches = 0;
  const auto put = [&] {
    const std::string key = "key" + std::to_string(batches % 8);
    ASSERT_TRUE(run.put(key, kLarge, static_cast<std::uint64_t>(++batches)));
    model[key] = kLarge;
  };
  for (int i = 0; i < 8; ++i) put();
  ASSERT_TRUE(run.journal->begin_backup({"backups/one", Millis(1000), UnixMs{1}, "a test"}));
  // It begins the checkpoint, and perhaps reads a part of what it covers.
  for (int i = 0; i < 3; ++i) (void)run.journal->background_step();
  disk.flip(path_in(kDirectory, segment_name(2)), kBlock + 1000, 5);
  while (run.journal->backup_step()) {
  }
  ASSERT_TRUE(run.journal->wants_state());
  Batch state;
  for (const auto& [key, value] : model) state.put(key, value);
  run.journal->take_state(state);
  run.work();
  EXPECT_EQ(run.journal->damage().repaired, run.journal->damage().found);
  disk.kill_process();
  JournalRun again(disk);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_EQ(again.state(), model);
}

TEST(DamagedWhileRunning, ACheckpointFromMemoryReplacesTheDamagedFiles) {
  SimulatedDisk disk;
  State model;
  {
    JournalRun run(disk);
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(run.put("key" + std::to_string(i), kLarge, static_cast<std::uint64_t>(i)));
      model["key" + std::to_string(i)] = kLarge;
    }
    disk.flip(path_in(kDirectory, segment_name(2)), kBlock + 1000, 5);
    run.work();
    EXPECT_TRUE(run.put("next", "one")) << run.answers.failure->detail;
    model["next"] = "one";
    ASSERT_TRUE(run.journal->wants_state());
    EXPECT_EQ(run.journal->damage().found, 1U);
    EXPECT_THAT(run.journal->damage().what, HasSubstr(segment_name(2)));
    Batch state;
    for (const auto& [key, value] : model) state.put(key, value);
    run.journal->take_state(state);
    EXPECT_FALSE(run.journal->wants_state());
    run.work();
    EXPECT_EQ(run.journal->damage().repaired, 1U);
    ASSERT_TRUE(run.put("last", "two"));
    model["last"] = "two";
    disk.kill_process();
  }
  JournalRun again(disk);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_EQ(again.state(), model);
}

}  // namespace
}  // namespace pawl::store::journal
