#include "store/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "store/journal/dump.h"
#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

using ::testing::HasSubstr;

std::string path(std::string_view name) {
  return path_in(kDirectory, name);
}

std::vector<std::string> segments_on(SimulatedDisk& disk) {
  std::vector<std::string> found;
  const auto names = disk.list(kDirectory);
  for (const std::string& name : *names) {
    if (segment_of(name)) found.push_back(name);
  }
  return found;
}

bool has_checkpoint(SimulatedDisk& disk) {
  const auto names = disk.list(kDirectory);
  return std::any_of(names->begin(), names->end(),
                     [](const std::string& name) { return checkpoint_of(name); });
}

// Enough batches of 100 KiB to fill `segments` segments of 1 MiB.
void fill_segments(JournalRun& run, int segments, State& model) {
  for (int i = 0; i < segments * 9; ++i) {
    const std::string key = "key" + std::to_string(i % 7);
    const std::string value = std::to_string(i) + std::string(100'000, 'v');
    ASSERT_TRUE(run.put(key, value));
    model[key] = value;
  }
}

TEST(Journal, AFreshStoreIsEmptyAndReportedAsFresh) {
  SimulatedDisk disk;
  JournalRun run(disk);
  ASSERT_TRUE(run.ok()) << run.error->detail;
  EXPECT_TRUE(run.loaded.fresh);
  EXPECT_EQ(run.loaded.sequence, 0U);
  EXPECT_EQ(run.loaded.high_water, 0U);
  EXPECT_TRUE(run.state().empty());
  EXPECT_EQ(run.journal->kind(), "journal");
}

TEST(Journal, AcknowledgedBatchesSurviveARestart) {
  SimulatedDisk disk;
  Incarnation incarnation;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.ok());
    incarnation = run.loaded.incarnation;
    ASSERT_TRUE(run.put("a", "1"));
    ASSERT_TRUE(run.put("b", "2"));
    Batch batch;
    batch.erase("a");
    batch.put("c", "");
    batch.put("c", "3");
    ASSERT_TRUE(run.submit(batch));
  }
  JournalRun again(disk, JournalRun::small(), 99);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_FALSE(again.loaded.fresh);
  EXPECT_FALSE(again.loaded.clean);
  EXPECT_EQ(again.loaded.incarnation, incarnation);
  EXPECT_EQ(again.loaded.sequence, 3U);
  EXPECT_EQ(again.state(), (State{{"b", "2"}, {"c", "3"}}));
}

TEST(Journal, ABatchMayBeEmptyOrHoldEmptyKeysAndValues) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.submit(Batch{}));
    ASSERT_TRUE(run.put("", ""));
  }
  JournalRun again(disk);
  EXPECT_EQ(again.state(), (State{{"", ""}}));
  EXPECT_EQ(again.loaded.sequence, 2U);
}

TEST(Journal, HighWaterIsExactOnlyAfterACleanStop) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1", 10));
    ASSERT_TRUE(run.journal->close());
  }
  {
    JournalRun clean(disk);
    EXPECT_TRUE(clean.loaded.clean);
    EXPECT_EQ(clean.loaded.high_water, 10U);
    ASSERT_TRUE(clean.put("a", "2", 11));
  }
  JournalRun unclean(disk);
  EXPECT_FALSE(unclean.loaded.clean);
  EXPECT_EQ(unclean.loaded.high_water, 11 + limits::kTokenBlock);
}

TEST(Journal, ACrashAfterACleanStopIsNotCleanEvenWithoutNewNumbers) {
  SimulatedDisk disk;
  { ASSERT_TRUE(JournalRun(disk).journal->close()); }
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1"));
  }
  JournalRun again(disk);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_FALSE(again.loaded.clean);
  EXPECT_EQ(again.state(), (State{{"a", "1"}}));
}

TEST(Journal, SegmentsAreSwitchedInlineWhenNoneIsPrewritten) {
  SimulatedDisk disk;
  State model;
  {
    JournalRun run(disk);
    fill_segments(run, 4, model);
  }
  JournalRun again(disk);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_EQ(again.state(), model);
}

TEST(Journal, ACheckpointReplacesClosedSegmentsAndRecyclesThem) {
  SimulatedDisk disk;
  State model;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("early", "bird"));
    model["early"] = "bird";
    for (int round = 0; round < 6; ++round) {
      fill_segments(run, 2, model);
      Batch batch;
      batch.erase("key3");
      ASSERT_TRUE(run.submit(batch));
      model.erase("key3");
      run.work();
    }
    EXPECT_TRUE(has_checkpoint(disk));
    EXPECT_LT(segments_on(disk).size(), 8U);
  }
  JournalRun again(disk);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_EQ(again.state(), model);
}

TEST(Journal, AnOversizedBatchGetsASegmentOfItsOwn) {
  for (const bool prewritten : {false, true}) {
    SimulatedDisk disk;
    const std::string huge(3 * kTestSegmentBytes + 17, 'h');
    State model{{"a", "1"}, {"huge", huge}, {"z", "2"}};
    {
      JournalRun run(disk);
      ASSERT_TRUE(run.put("a", "1"));
      if (prewritten) run.work();
      ASSERT_TRUE(run.put("huge", huge));
      ASSERT_TRUE(run.put("z", "2"));
      run.work();
    }
    {
      JournalRun again(disk);
      ASSERT_TRUE(again.ok()) << again.error->detail;
      EXPECT_EQ(again.state(), model);
      ASSERT_TRUE(again.put("huge", huge + "!"));
      model["huge"] = huge + "!";
      again.work();
      ASSERT_TRUE(again.put("huge", huge));
      ASSERT_TRUE(again.put("huge", huge + "!"));
      again.work();
    }
    JournalRun last(disk);
    ASSERT_TRUE(last.ok()) << last.error->detail;
    EXPECT_EQ(last.state(), model);
  }
}

// Hard case 38: the id of a segment is inside the checksum.
TEST(Journal, OldRecordsOfARecycledSegmentEndTheReplay) {
  SimulatedDisk disk;
  State model;
  {
    JournalRun run(disk);
    fill_segments(run, 3, model);
    run.work();
    const std::string last_before = segments_on(disk).back();
    fill_segments(run, 1, model);
    ASSERT_TRUE(run.put("last", "one"));
    model["last"] = "one";
  }
  JournalRun again(disk);
  ASSERT_TRUE(again.ok()) << again.error->detail;
  EXPECT_EQ(again.state(), model);
}

// Hard case 41.
TEST(Journal, ASecondProcessIsRefusedWithThePidOfTheFirst) {
  SimulatedDisk disk;
  JournalRun first(disk);
  ASSERT_TRUE(first.ok());
  JournalRun second(disk);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error->code, Code::kBusy);
  EXPECT_THAT(second.error->detail, HasSubstr("pid"));
}

// Hard case 40.
TEST(Journal, AMissingOrEmptyDirectoryIsRefusedWhenAStoreMustExist) {
  Settings settings = JournalRun::small();
  settings.must_exist = true;
  SimulatedDisk disk;
  JournalRun missing(disk, settings);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error->code, Code::kInvalid);
  EXPECT_FALSE(*disk.exists(kDirectory));

  ASSERT_TRUE(disk.make_directory(kDirectory));
  JournalRun empty(disk, settings);
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error->detail, HasSubstr("empty"));

  { ASSERT_TRUE(JournalRun(disk).ok()); }
  JournalRun there(disk, settings);
  EXPECT_TRUE(there.ok());
}

TEST(Journal, AForeignDirectoryIsRefusedAndLeftAsItIs) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.make_directory(kDirectory));
  disk.put_file(path("thesis.txt"), "years of work");
  JournalRun run(disk);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error->detail, HasSubstr("thesis.txt"));
  EXPECT_EQ(disk.list(kDirectory)->size(), 1U);
}

TEST(Journal, AFreshVolumeWithLostAndFoundCountsAsEmpty) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.make_directory(kDirectory));
  disk.put_file(path("lost+found"), "");
  EXPECT_TRUE(JournalRun(disk).ok());
}

// Hard case 39.
TEST(Journal, AMissingFileIsRefusedByName) {
  SimulatedDisk disk;
  {
    JournalRun run(disk);
    State model;
    fill_segments(run, 3, model);
    run.work();
    fill_segments(run, 1, model);
  }
  const auto names = disk.list(kDirectory);
  for (const std::string& name : *names) {
    if (name == segments_on(disk).back()) continue;  // An unbegun spare: nothing is lost with it.
    SimulatedDisk copy(disk);
    ASSERT_TRUE(copy.remove(path(name)));
    JournalRun run(copy);
    if (run.ok()) {
      // Not needed: a covered segment that waits to be recycled, or the checkpoint while all it
      // covers is still there.
      SimulatedDisk whole(disk);
      EXPECT_EQ(run.state(), JournalRun(whole).state()) << name;
      EXPECT_TRUE(segment_of(name) || checkpoint_of(name)) << name;
      continue;
    }
    ASSERT_FALSE(run.ok()) << name;
    EXPECT_EQ(run.error->code, Code::kInvalid);
    if (!checkpoint_of(name)) {
      EXPECT_THAT(run.error->detail, HasSubstr(name));
    }
  }
}

TEST(Journal, ANewerFormatIsRefusedByName) {
  SimulatedDisk disk;
  { ASSERT_TRUE(JournalRun(disk).ok()); }
  disk.flip(path(kIdentityFile), 8, 1);  // The version, from 1 to 3.
  JournalRun run(disk);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error->detail, HasSubstr("newer"));
  EXPECT_THAT(run.error->detail, HasSubstr(std::string(kIdentityFile)));
}

TEST(Journal, AFailedWriteFailsThisAndEveryLaterBatch) {
  SimulatedDisk disk;
  JournalRun run(disk);
  ASSERT_TRUE(run.put("a", "1"));
  disk.fail_at(1, Error{Code::kUnknown, "Input/output error"});
  EXPECT_FALSE(run.put("b", "2"));
  EXPECT_FALSE(run.put("c", "3"));
  EXPECT_THAT(run.answers.failure->detail, HasSubstr("Input/output error"));
  EXPECT_FALSE(run.journal->close());
}

TEST(Journal, AFailedBackgroundStepFailsTheNextBatch) {
  SimulatedDisk disk;
  JournalRun run(disk);
  disk.fail_at(2, Error{Code::kUnknown, "Input/output error"});
  run.work();
  EXPECT_FALSE(run.put("b", "2"));
}

// check_space() does nothing after a failure, so "no room" would last for ever: with nothing but
// refused grants pawld once wrote no batch, and neither exited nor granted anything again.
TEST(Journal, AFailedBackgroundStepIsNotHiddenByAFullDisk) {
  SimulatedDisk disk;
  State model;
  JournalRun run(disk);
  fill_segments(run, 3, model);
  disk.set_capacity(disk.used());
  while (run.journal->has_room())
    ASSERT_TRUE(run.journal->background_step());  // No space for a segment.
  disk.fail_at(1, Error{Code::kUnknown, "Input/output error"});
  const std::uint64_t operations = disk.operations();
  run.work();  // The checkpoint fails.
  ASSERT_EQ(disk.operations(), operations + 1);
  disk.set_capacity(10 * kTestSegmentBytes);
  run.journal->check_space();
  EXPECT_TRUE(run.journal->has_room());
  EXPECT_FALSE(run.put("b", "2"));
}

TEST(Journal, HasNoRoomUntilSpaceReturns) {
  SimulatedDisk disk;
  disk.set_capacity(kTestSegmentBytes + 100'000);
  JournalRun run(disk);
  ASSERT_TRUE(run.ok()) << run.error->detail;
  run.work();
  EXPECT_FALSE(run.journal->has_room());
  EXPECT_TRUE(run.put("a", "still fits"));
  run.journal->check_space();
  EXPECT_FALSE(run.journal->has_room());
  EXPECT_FALSE(run.journal->background_step());
  disk.set_capacity(10 * kTestSegmentBytes);
  run.journal->check_space();
  run.work();
  EXPECT_TRUE(run.journal->has_room());
  EXPECT_EQ(segments_on(disk).size(), 2U);
}

// Hard case 37. Not a byte is free: a new block of numbers, a clean stop and the next start write
// in place.
TEST(Journal, WorksStopsAndStartsOnACompletelyFullDisk) {
  SimulatedDisk disk;
  AcknowledgedState acknowledged;
  {
    JournalRun run(disk);
    run.work();
    ASSERT_EQ(segments_on(disk).size(), 2U);
    disk.set_capacity(disk.used());
    EXPECT_TRUE(acknowledged.put(run, "a", "beyond the reserved block", 1'000'000));
    EXPECT_EQ(segments_on(disk).size(), 2U) << "a segment was given up";
    ASSERT_TRUE(run.journal->close());
  }
  disk.kill_process();
  disk.set_capacity(10 * kTestSegmentBytes);
  {
    JournalRun run(disk);
    acknowledged.check(run);
    run.work();
    ASSERT_TRUE(run.journal->close());
  }
  disk.kill_process();
  disk.set_capacity(disk.used());
  JournalRun run(disk);
  acknowledged.check(run);
  EXPECT_TRUE(run.loaded.clean);
  Batch batch;
  batch.erase("a");
  EXPECT_TRUE(acknowledged.submit(run, batch));
}

TEST(Journal, HasNoRoomBelowTheReserve) {
  SimulatedDisk disk;
  Settings settings = JournalRun::small();
  settings.space_reserve = kTestSegmentBytes;
  disk.set_capacity(20 * kTestSegmentBytes);
  JournalRun run(disk, settings);
  run.work();
  EXPECT_TRUE(run.journal->has_room());
  disk.set_capacity(2 * kTestSegmentBytes + kTestSegmentBytes / 2);
  run.journal->check_space();
  EXPECT_FALSE(run.journal->has_room());
}

// The size that space() reports is enough: the store's own files never fill the volume.
TEST(Journal, AVolumeOfTheNeededSizeIsNeverFilledByTheStore) {
  SimulatedDisk disk;
  Settings settings = JournalRun::small();
  settings.space_reserve = kTestSegmentBytes;
  State model;
  JournalRun run(disk, settings);
  ASSERT_TRUE(run.ok()) << run.error->detail;
  constexpr std::uint64_t kLiveRecords = 7 * 100'010, kCheckpoints = 2 * kLiveRecords + 100'000;
  disk.set_capacity(run.journal->space()->volume_needed + kCheckpoints);
  for (int i = 0; i < 20; ++i) {
    fill_segments(run, 1, model);
    run.work();
    run.journal->check_space();
    EXPECT_TRUE(run.journal->has_room()) << "after " << i + 1 << " segments";
  }
}

TEST(Journal, SpaceReportsFreeAndNeededBytes) {
  SimulatedDisk disk;
  Settings settings = JournalRun::small();
  settings.space_reserve = 3 * kTestSegmentBytes;
  JournalRun run(disk, settings);
  disk.set_capacity(disk.used() + 100'000);
  run.journal->check_space();
  EXPECT_FALSE(run.journal->has_room());
  EXPECT_EQ(run.journal->space()->free, 100'000U);
  EXPECT_EQ(run.journal->space()->needed, settings.space_reserve);
  run.work();  // Finds no space for a segment: now that is missing, too.
  EXPECT_EQ(run.journal->space()->needed, settings.space_reserve + kTestSegmentBytes);
}

// A kill leaves bytes that can be read but are not on the disk yet.
TEST(Journal, RecoveredBatchesAreSyncedBeforeNewOnes) {
  SimulatedDisk disk;
  std::unique_ptr<JournalRun> run = std::make_unique<JournalRun>(disk);
  ASSERT_TRUE(run->put("a", "1", 7));
  disk.fail_at(1, Error{Code::kUnknown, "killed during the write"});
  EXPECT_FALSE(run->put("b", "2", 8));
  disk.kill_process();
  State seen;
  {
    JournalRun again(disk);
    ASSERT_TRUE(again.ok());
    seen = again.state();
    EXPECT_EQ(seen, (State{{"a", "1"}, {"b", "2"}}));
  }
  SeededRandom random(3);
  disk.restart(random);
  EXPECT_EQ(JournalRun(disk).state(), seen);
}

TEST(Journal, ADumpShowsEveryFileAndContinuesAfterDamage) {
  SimulatedDisk disk;
  State model;
  {
    JournalRun run(disk);
    fill_segments(run, 2, model);
    run.work();
    fill_segments(run, 1, model);
    run.work();
  }
  disk.flip(path(segments_on(disk).front()), 5000, 0);
  const std::uint64_t operations = disk.operations();
  std::string text;
  const auto show = [](bool, std::string_view key, std::string_view) { return std::string(key); };
  ASSERT_TRUE(
      dump(disk, kDirectory, show, [&](std::string_view line) { text.append(line).append("\n"); }));
  EXPECT_EQ(disk.operations(), operations);
  EXPECT_THAT(text, HasSubstr("store.meta: format 1"));
  EXPECT_THAT(text, HasSubstr("high-water: "));
  EXPECT_THAT(text, HasSubstr("checkpoint-"));
  EXPECT_THAT(text, HasSubstr("wrong crc"));
  EXPECT_THAT(text, HasSubstr("crc ok"));
  EXPECT_THAT(text, HasSubstr("put   key3"));
}

}  // namespace
}  // namespace pawl::store::journal
