// Backups of a running store, and stores restored from them. Hard cases 42, 45.
#include "store/journal/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "base/crc32c.h"
#include "base/testlib/temp_directory.h"
#include "store/journal/create.h"
#include "store/journal/format.h"
#include "store/journal/journal_threads.h"
#include "store/journal/small_files.h"
#include "store/journal/verify.h"
#include "store/posix_files.h"
#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

using testing::HasSubstr;

const std::string kBackup = "backups/one";
const std::string kPartial = kBackup + ".partial";

BackupOrder order(std::string directory = kBackup) {
  return BackupOrder{std::move(directory), Millis(600'000), UnixMs{1'700'000'000'000}, "a test"};
}

bool put_large(JournalRun& run, AcknowledgedState& acknowledged, int i) {
  return acknowledged.put(run, "key" + std::to_string(i % 7),
                          std::string(200'000, static_cast<char>('a' + i % 26)),
                          acknowledged.next_number());
}

Result<BackupDone> make_backup(JournalRun& run, const std::string& directory = kBackup) {
  if (auto begun = run.journal->begin_backup(order(directory)); !begun) return begun.error();
  while (run.journal->backup_step()) {
  }
  auto finished = run.journal->finished_backup();
  if (!finished) return Error{Code::kUnknown, "the backup has no end"};
  return *finished;
}

State content_of(Files& files, const std::string& directory = kBackup) {
  CollectingVisitor collect;
  const auto read = read_backup(files, directory, collect);
  EXPECT_TRUE(read) << read.error().detail;
  return collect.state;
}

std::string refusal_of(Files& files, const std::string& directory = kBackup) {
  CollectingVisitor collect;
  const auto read = read_backup(files, directory, collect);
  return read ? "" : read.error().detail;
}

struct Bench {
  Bench() { EXPECT_TRUE(disk.make_directory("backups")); }
  SimulatedDisk disk;
  AcknowledgedState acknowledged;
};

TEST(Backup, HoldsWhatWasDurableAtTheRequestAndNothingLater) {
  Bench b;
  JournalRun run(b.disk);
  for (int i = 0; i < 23; ++i) {  // Checkpoints, closed segments, and a segment in use.
    ASSERT_TRUE(put_large(run, b.acknowledged, i));
    if (i % 3 == 0) run.work();
  }
  const State asked_for = b.acknowledged.state();
  const std::uint64_t last = b.acknowledged.next_number() - 1;
  ASSERT_TRUE(run.journal->begin_backup(order()));
  // The store keeps running: new segments, and no checkpoint frees the files that are being read.
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE(put_large(run, b.acknowledged, i + 100));
    run.work();
    if (i % 8 == 7) run.journal->backup_step();
  }
  while (run.journal->backup_step()) {
  }
  const auto done = run.journal->finished_backup();
  ASSERT_TRUE(done && *done) << done->error().detail;
  EXPECT_EQ((*done)->sequence, 23U);
  EXPECT_EQ((*done)->last_number, last);
  EXPECT_EQ((*done)->records, asked_for.size());
  EXPECT_TRUE(content_of(b.disk) == asked_for);
  EXPECT_FALSE(*b.disk.exists(kPartial));

  run.work();  // Checkpoints continue after the unpin.
  b.disk.kill_process();
  JournalRun again(b.disk);
  ASSERT_NO_FATAL_FAILURE(b.acknowledged.check(again));
}

TEST(Backup, AnEmptyStoreCanBeBackedUp) {
  Bench b;
  JournalRun run(b.disk);
  const auto done = make_backup(run);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->records, 0U);
  EXPECT_TRUE(content_of(b.disk).empty());
}

TEST(Backup, OnlyOneAtATimeAndOnlyIntoANewDirectory) {
  Bench b;
  JournalRun run(b.disk);
  ASSERT_TRUE(run.journal->begin_backup(order()));
  EXPECT_EQ(run.journal->begin_backup(order("backups/two")).error().code, Code::kBusy);
  while (run.journal->backup_step()) {
  }
  EXPECT_EQ(run.journal->begin_backup(order("backups/two")).error().code, Code::kBusy)
      << "its end was not fetched yet";
  ASSERT_TRUE(run.journal->finished_backup());
  const auto second = make_backup(run);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kInvalid);
  EXPECT_THAT(second.error().detail, HasSubstr("backups/one: exists already"));
  EXPECT_TRUE(make_backup(run, "backups/two"));
  const auto nowhere = make_backup(run, "missing/one");
  EXPECT_EQ(nowhere.error().code, Code::kDenied);
}

TEST(Backup, LackOfSpaceLeavesNothingAndTheStoreKeepsRunning) {
  Bench b;
  JournalRun run(b.disk);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(put_large(run, b.acknowledged, i));
  run.work();
  const std::uint64_t used = b.disk.used();
  for (const std::uint64_t room :
       {std::uint64_t{0}, std::uint64_t{100'000}, std::uint64_t{1'300'000}}) {
    b.disk.set_capacity(used + room);
    const auto done = make_backup(run);
    ASSERT_FALSE(done) << room;
    EXPECT_EQ(done.error().code, Code::kUnavailable) << done.error().detail;
    EXPECT_EQ(b.disk.used(), used);
    EXPECT_FALSE(*b.disk.exists(kPartial));
    EXPECT_FALSE(*b.disk.exists(kBackup));
    EXPECT_TRUE(b.acknowledged.put(run, "small", "s", b.acknowledged.next_number()));
  }
  b.disk.set_capacity(used + 10'000'000);
  EXPECT_TRUE(make_backup(run));
}

TEST(Backup, KeepsTheReserveFreeOnTheDiskOfTheStore) {
  Bench b;
  Settings settings = JournalRun::small();
  settings.space_reserve = 30'000'000;
  JournalRun run(b.disk, settings);
  b.disk.set_capacity(b.disk.used() + 30'500'000);
  const auto done = make_backup(run);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable);
  EXPECT_THAT(done.error().detail, HasSubstr("stops granting"));
  EXPECT_FALSE(*b.disk.exists(kPartial));
}

TEST(Backup, ADamagedStoreIsNotBackedUp) {
  Bench b;
  JournalRun run(b.disk);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(put_large(run, b.acknowledged, i));
  b.disk.flip(kDirectory + "/" + segment_name(1), kBlock + 5000, 3);
  const auto done = make_backup(run);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_THAT(done.error().detail, HasSubstr("segment-1.log: offset"));
  EXPECT_FALSE(*b.disk.exists(kPartial));
}

TEST(Backup, ForeignFilesInThePartialDirectoryStay) {
  Bench b;
  JournalRun run(b.disk);
  ASSERT_TRUE(b.disk.make_directory(kPartial));
  b.disk.put_file(kPartial + "/thesis.txt", "years of work");
  const auto done = make_backup(run);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().detail, HasSubstr("thesis.txt"));
  EXPECT_EQ(b.disk.content(kPartial + "/thesis.txt"), "years of work");
}

TEST(Backup, AStopInTheMiddleLeavesNothing) {
  Bench b;
  JournalRun run(b.disk);
  ASSERT_TRUE(run.journal->begin_backup(order()));
  run.journal->backup_step();
  EXPECT_TRUE(*b.disk.exists(kPartial));
  ASSERT_TRUE(run.journal->close());
  EXPECT_FALSE(*b.disk.exists(kPartial));
}

TEST(Backup, OneThatHangsNeitherStopsCheckpointsNorTheNextBackup) {
  Bench b;
  JournalRun run(b.disk);
  ASSERT_TRUE(put_large(run, b.acknowledged, 0));
  ASSERT_TRUE(run.journal->begin_backup(order()));
  ASSERT_TRUE(run.journal->backup_step());  // And then no more.
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(put_large(run, b.acknowledged, i));
    run.work();
  }
  std::size_t segments = 0;
  const auto names = b.disk.list(kDirectory);
  for (const std::string& name : *names) segments += segment_of(name).has_value() ? 1 : 0;
  EXPECT_LT(segments, 8U) << "no checkpoint was made";
  run.journal->abandon_backup();
  EXPECT_FALSE(run.journal->finished_backup());
  const auto second = make_backup(run, "backups/two");
  ASSERT_TRUE(second) << second.error().detail;
  EXPECT_TRUE(content_of(b.disk, "backups/two") == b.acknowledged.state());
}

TEST(Backup, TheDirectoryOfOneThatStillHangsIsNotUsedAgain) {
  Bench b;
  JournalRun run(b.disk);
  std::shared_ptr<BackupRun> hanging;
  run.journal->on_backup([&](const std::shared_ptr<BackupRun>& backup) { hanging = backup; });
  ASSERT_TRUE(run.journal->begin_backup(order()));
  ASSERT_TRUE(hanging->step());
  run.journal->abandon_backup();
  EXPECT_EQ(run.journal->begin_backup(order(kBackup + "/")).error().code, Code::kBusy);
  EXPECT_FALSE(hanging->step()) << "its disk answers at last: it ends, and removes what it wrote";
  EXPECT_FALSE(*b.disk.exists(kPartial));
  hanging.reset();
  run.journal->on_backup(nullptr);
  EXPECT_TRUE(make_backup(run));
}

TEST(Backup, ADirectoryInsideTheDataDirectoryIsRefused) {
  const TempDirectory directory;
  const std::string data = directory.path() + "/data";
  PosixFiles files;
  SeededRandom random(1);
  const auto journal = Journal::open(files, data, JournalRun::small(), random);
  ASSERT_TRUE(journal);
  CollectingVisitor nothing;
  ASSERT_TRUE((*journal)->load(nothing));
  std::filesystem::create_directory(data + "/below");
  std::filesystem::create_symlink(data, directory.path() + "/link");
  std::filesystem::create_directory(directory.path() + "/other");
  for (const std::string target : {"/data/segment-50.log", "/data/below/x", "/link/segment-50.log",
                                   "/other/../data/segment-50.log"}) {
    ASSERT_TRUE((*journal)->begin_backup(order(directory.path() + target)));
    while ((*journal)->backup_step()) {
    }
    const auto done = (*journal)->finished_backup();
    ASSERT_TRUE(done && !*done) << target;
    EXPECT_EQ(done->error().code, Code::kInvalid);
    EXPECT_THAT(done->error().detail, HasSubstr("inside the data directory"));
  }
  EXPECT_FALSE(std::filesystem::exists(data + "/segment-50.log.partial"));
}

// --- Damage and power cuts -----------------------------------------------------------------------

TEST(Backup, AFlippedBitAnywhereIsRefusedWithTheFile) {
  Bench b;
  JournalRun run(b.disk);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(
        b.acknowledged.put(run, "k" + std::to_string(i), "value", b.acknowledged.next_number()));
  ASSERT_TRUE(make_backup(run));
  for (const std::string& name : {std::string(kBackupFile), checkpoint_name(3)}) {
    const std::string path = kBackup + "/" + name;
    const std::uint64_t size = b.disk.content(path).size();
    // Every byte that has a meaning; the zeros after a checkpoint's header at every 61st.
    for (std::uint64_t at = 0; at < size;
         at += (at > 80 && at < kBlock - 8 && size > kBlock) ? 61 : 1) {
      SimulatedDisk damaged(b.disk);
      damaged.flip(path, at, static_cast<unsigned>(at % 8));
      EXPECT_THAT(refusal_of(damaged), HasSubstr(name)) << "offset " << at;
    }
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{7}, size / 2, size - 1}) {
      SimulatedDisk cut(b.disk);
      cut.truncate(path, bytes);
      EXPECT_THAT(refusal_of(cut), HasSubstr(name)) << "cut to " << bytes;
    }
    SimulatedDisk without(b.disk);
    ASSERT_TRUE(without.remove(path));
    EXPECT_THAT(refusal_of(without), HasSubstr(name));
  }
  b.disk.put_file(kBackup + "/checkpoint-9", "");
  EXPECT_THAT(refusal_of(b.disk), HasSubstr("checkpoint-9: is not part of this backup"));
}

// All or nothing, wherever the power is cut; the next backup to the same directory succeeds.
TEST(Backup, APowerCutAtAnyOperationLeavesAWholeBackupOrNone) {
  Bench start;
  {
    JournalRun run(start.disk);
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(put_large(run, start.acknowledged, i));
    run.work();
  }
  start.disk.kill_process();
  std::uint64_t whole = 0;
  for (std::uint64_t count = 1;; ++count) {
    bool done = false;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE("power cut at operation " + std::to_string(count) + ", seed " +
                   std::to_string(seed));
      SimulatedDisk disk(start.disk);
      AcknowledgedState acknowledged = start.acknowledged;
      disk.cut_power_at(count);
      bool reported = false;
      {
        JournalRun run(disk);
        if (run.ok()) reported = make_backup(run).operator bool();
      }
      done = disk.has_power();
      SeededRandom random(count * 10 + seed);
      disk.restart(random);
      if (*disk.exists(kBackup)) {
        ++whole;
        ASSERT_TRUE(content_of(disk) == acknowledged.state());
      } else {
        ASSERT_FALSE(reported) << "a backup that was reported is missing";
      }
      JournalRun again(disk);
      ASSERT_NO_FATAL_FAILURE(acknowledged.check(again));
      const auto second = make_backup(again, *disk.exists(kBackup) ? "backups/two" : kBackup);
      ASSERT_TRUE(second) << second.error().detail;
    }
    if (done) {
      EXPECT_GT(count, 15U) << "a backup hardly touched the disk";
      EXPECT_GT(whole, 3U);
      return;
    }
  }
}

// --- Stores restored from a backup ---------------------------------------------------------------

const std::string kNew = "restored";

InitialState initial_state() {
  InitialState begin;
  begin.sequence = sequence_after(23);
  begin.high_water = std::uint64_t{1} << 40;
  begin.records = {{"T", "last token"}, {"W", "wait"}};
  return begin;
}

const Identity kIdentity{Incarnation{77}, kTestSegmentBytes};

Result<Loaded> load_new(Files& files, CollectingVisitor& collect) {
  SeededRandom random(1);
  auto opened = Journal::open(files, kNew, JournalRun::small(), random);
  if (!opened) return opened.error();
  return (*opened)->load(collect);
}

TEST(Restore, ANewStoreStartsWithTheRecordsAndAnUnusedSequence) {
  EXPECT_EQ(sequence_after(0), std::uint64_t{1} << 40);
  EXPECT_EQ(sequence_after((std::uint64_t{1} << 40) - 1), std::uint64_t{1} << 40);
  EXPECT_EQ(sequence_after(std::uint64_t{1} << 40), std::uint64_t{2} << 40);
  SimulatedDisk disk;
  ASSERT_TRUE(create_restored_store(disk, kNew, kIdentity, initial_state()));
  for (int run = 0; run < 2; ++run) {
    SeededRandom random(1);
    auto opened = Journal::open(disk, kNew, JournalRun::small(), random);
    ASSERT_TRUE(opened) << opened.error().detail;
    CollectingVisitor collect;
    const auto loaded = (*opened)->load(collect);
    ASSERT_TRUE(loaded) << loaded.error().detail;
    EXPECT_EQ(loaded->incarnation, kIdentity.incarnation);
    EXPECT_GE(loaded->high_water, std::uint64_t{1} << 40);
    EXPECT_EQ(loaded->sequence, sequence_after(23) + static_cast<std::uint64_t>(run));
    EXPECT_FALSE(loaded->fresh);
    EXPECT_EQ(collect.state.size(), 2U + static_cast<std::size_t>(run));
    RecordingSink answers;
    Batch batch;
    batch.put("later", "x");
    batch.cover(loaded->high_water + 1);
    (*opened)->submit(batch, BatchId{1}, answers);
    EXPECT_EQ(answers.last_durable, 1U);
  }
}

TEST(Restore, NeverReplacesAStoreOrForeignFiles) {
  SimulatedDisk disk;
  ASSERT_TRUE(create_restored_store(disk, kNew, kIdentity, initial_state()));
  const auto again = create_restored_store(disk, kNew, kIdentity, initial_state());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().detail, HasSubstr("holds a store already"));

  ASSERT_TRUE(disk.make_directory("home"));
  disk.put_file("home/thesis.txt", "years of work");
  EXPECT_THAT(create_restored_store(disk, "home", kIdentity, initial_state()).error().detail,
              HasSubstr("thesis.txt"));

  SimulatedDisk busy;
  ASSERT_TRUE(busy.make_directory(kNew));
  const auto held = busy.lock_directory(kNew);
  EXPECT_EQ(create_restored_store(busy, kNew, kIdentity, initial_state()).error().code,
            Code::kBusy);
}

// Otherwise a pawld that starts after an interrupted restore would find an empty directory and
// issue tokens from 1.
TEST(Restore, APowerCutAtAnyOperationLeavesTheStoreOrAnUnfinishedRestore) {
  std::uint64_t refused = 0;
  for (std::uint64_t count = 1;; ++count) {
    SCOPED_TRACE("power cut at operation " + std::to_string(count));
    SimulatedDisk disk;
    disk.cut_power_at(count);
    const bool reported =
        create_restored_store(disk, kNew, kIdentity, initial_state()).operator bool();
    const bool done = disk.has_power();
    SeededRandom random(count);
    disk.restart(random);

    const auto found = classify(disk, kNew);
    ASSERT_TRUE(found) << found.error().detail;
    if (*found == DirectoryKind::kStore) {
      CollectingVisitor collect;
      const auto loaded = load_new(disk, collect);
      ASSERT_TRUE(loaded) << loaded.error().detail;
      EXPECT_EQ(collect.state.size(), 2U);
    } else {
      ASSERT_FALSE(reported);
      if (*found == DirectoryKind::kUnfinishedRestore) {
        ++refused;
        CollectingVisitor collect;
        EXPECT_THAT(load_new(disk, collect).error().detail,
                    HasSubstr("a restore into this directory did not finish"));
      }
      ASSERT_TRUE(create_restored_store(disk, kNew, kIdentity, initial_state()));
      CollectingVisitor collect;
      ASSERT_TRUE(load_new(disk, collect));
    }
    if (done) {
      EXPECT_GT(refused, 5U);
      return;
    }
  }
}

TEST(Restore, ServingFromABackupIsRefusedWithAdvice) {
  Bench b;
  JournalRun run(b.disk);
  ASSERT_TRUE(make_backup(run, "backups/" + kNew));
  SeededRandom random(1);
  const auto opened = Journal::open(b.disk, "backups/" + kNew, JournalRun::small(), random);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail, HasSubstr("pawld restore --from backups/restored"));
}

// --- Verify --------------------------------------------------------------------------------------

TEST(Verify, ReportsTheContentOfAStoreAndOfABackup) {
  Bench b;
  JournalRun run(b.disk);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(put_large(run, b.acknowledged, i));
  run.work();
  ASSERT_TRUE(make_backup(run));
  CollectingVisitor busy;
  EXPECT_EQ(verify(b.disk, kDirectory, busy).error().code, Code::kBusy);
  ASSERT_TRUE(run.journal->close());
  run.journal.reset();
  for (const std::string& directory : {kDirectory, kBackup}) {
    CollectingVisitor collect;
    const auto found = verify(b.disk, directory, collect);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(found->backup, directory == kBackup);
    EXPECT_EQ(found->sequence, 9U);
    EXPECT_EQ(found->high_water, b.acknowledged.next_number() - 1);
    EXPECT_TRUE(found->exact);
    EXPECT_TRUE(collect.state == b.acknowledged.state());
    EXPECT_GE(found->files, 2U);
  }
  b.disk.flip(kDirectory + "/" + segment_name(1), kBlock + 5000, 1);
  CollectingVisitor collect;
  EXPECT_THAT(verify(b.disk, kDirectory, collect).error().detail,
              HasSubstr("segment-1.log: offset"));
}

// --- Format and machine --------------------------------------------------------------------------

TEST(Verify, ANewerFormatIsNamedInEveryKindOfFile) {  // Hard case 45.
  Bench b;
  {
    JournalRun run(b.disk);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(put_large(run, b.acknowledged, i));
    run.work();
    ASSERT_TRUE(run.journal->close());
  }
  const auto names = b.disk.list(kDirectory);
  int doctored = 0;
  for (const std::string& name : *names) {
    const bool block = segment_of(name) || checkpoint_of(name);
    if (!block && name != kIdentityFile && name != kHighWaterFile) continue;
    const std::string path = kDirectory + "/" + name;
    std::string bytes = b.disk.content(path);
    if (block && bytes.substr(0, 3) != "PWL") continue;  // A spare, or what was wiped.
    const bool slots = name == kHighWaterFile;
    bytes[8] = slots ? 3 : 2;
    if (slots) bytes[kBlock + 8] = 3;
    if (block) {
      const std::uint32_t crc = crc32c(std::string_view(bytes).substr(8, kBlock - 8));
      std::memcpy(bytes.data() + 4, &crc, sizeof crc);
    }
    SimulatedDisk disk(b.disk);
    disk.put_file(path, bytes);
    const JournalRun run(disk);
    if (run.ok()) continue;  // A segment that the checkpoint covers is not read.
    ++doctored;
    const std::string formats =
        slots ? "(format 3; this one reads up to 2)" : "(format 2; this one reads up to 1)";
    EXPECT_THAT(run.error->detail, HasSubstr(name + ": written by a newer Pawl " + formats));
  }
  EXPECT_GE(doctored, 4) << "identity, high water, checkpoint and a segment";
}

TEST(Machine, TheMarkIsKeptAndMissingInOlderStores) {
  SimulatedDisk disk;
  JournalRun run(disk);
  const auto nothing = run.journal->machine_mark();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  ASSERT_TRUE(run.journal->set_machine_mark("here"));
  disk.kill_process();
  JournalRun again(disk);
  EXPECT_EQ(**again.journal->machine_mark(), "here");
  disk.flip(kDirectory + "/" + std::string(kMachineFile), 13, 0);
  EXPECT_THAT(read_machine_mark(disk, kDirectory).error().detail, HasSubstr("checksum"));
}

// --- Real files and threads ----------------------------------------------------------------------

TEST(BackupThreads, WorksBesideTheLoopOnRealFiles) {
  const TempDirectory directory;
  PosixFiles files;
  SeededRandom random(5);
  const std::string data = directory.path() + "/data";
  auto opened = Journal::open(files, data, JournalRun::small(), random);
  ASSERT_TRUE(opened) << opened.error().detail;
  CollectingVisitor collect;
  ASSERT_TRUE((*opened)->load(collect));
  State state;
  RecordingSink answers;
  std::uint64_t number = 0;
  const auto put = [&] {
    Batch batch;
    batch.put("key" + std::to_string(random.below(50)), std::string(random.below(20'000), 'v'));
    batch.cover(++number);
    (*opened)->submit(batch, BatchId{number}, answers);
    apply_to(batch, state);
  };
  {
    const MaintenanceThread helper(**opened);
    const BackupThreads backups(**opened);
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 60; ++i) put();
      const State asked_for = state;
      const std::string to = directory.path() + "/backup-" + std::to_string(round);
      ASSERT_TRUE((*opened)->begin_backup(order(to)));
      std::optional<Result<BackupDone>> finished;
      while (!finished) {
        put();
        finished = (*opened)->finished_backup();
      }
      ASSERT_TRUE(*finished) << finished->error().detail;
      EXPECT_TRUE(content_of(files, to) == asked_for);
    }
  }
  EXPECT_FALSE(answers.failure);
  ASSERT_TRUE((*opened)->close());
}

}  // namespace
}  // namespace pawl::store::journal
