// Flips every byte that has a meaning and truncates every file: the store loads exactly what the
// rules of format.h say, or refuses and names the file. Hard cases 38 and 39.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "store/journal/format.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

using ::testing::HasSubstr;

constexpr int kOperations = 20;
constexpr std::uint64_t kPaddingSample = 97;

std::string path(std::string_view name) {
  return path_in(kDirectory, name);
}

// A store that was killed after 20 batches, all in its first segment, and what it held after each.
struct SmallStore {
  SmallStore() {
    JournalRun run(disk);
    states.emplace_back();
    for (int i = 1; i <= kOperations; ++i) {
      Batch batch;
      batch.put("key" + std::to_string(i % 6),
                std::string(i == 7 || i == kOperations ? 9000 : 10, static_cast<char>('a' + i)));
      if (i % 4 == 0) batch.erase("key" + std::to_string((i + 1) % 6));
      batch.cover(static_cast<std::uint64_t>(i));
      offsets.push_back(end);
      lengths.push_back(sizeof(RecordHeader) + batch.bytes().size());
      end += stored_bytes(batch.bytes().size());
      EXPECT_TRUE(run.submit(batch));
      states.push_back(states.back());
      apply_to(batch, states.back());
    }
    run.journal.reset();
    disk.kill_process();
  }

  SimulatedDisk disk;
  std::vector<State> states;           // states[n]: after n batches.
  std::vector<std::uint64_t> offsets;  // Where batch n+1 begins,
  std::vector<std::size_t> lengths;    // and how many of its bytes carry something.
  std::uint64_t end = kBlock;
};

// All of [begin, begin + carrying), and a sample of what pads it up to `end`.
std::vector<std::uint64_t> positions(std::uint64_t begin, std::uint64_t carrying,
                                     std::uint64_t end) {
  std::vector<std::uint64_t> found;
  // Long values are uniform: their first kilobyte and a sample of the rest are enough.
  for (std::uint64_t at = begin; at < end;
       at += at < begin + std::min<std::uint64_t>(carrying, 1024) ? 1 : kPaddingSample) {
    found.push_back(at);
  }
  found.push_back(end - 1);
  return found;
}

void expect_refused(const SimulatedDisk& damaged, std::string_view name, const std::string& trace) {
  SimulatedDisk disk(damaged);
  JournalRun run(disk);
  ASSERT_FALSE(run.ok()) << trace;
  ASSERT_EQ(run.error->code, Code::kInvalid) << trace;
  ASSERT_THAT(run.error->detail, HasSubstr(std::string(name))) << trace;
}

std::string flip_one(SimulatedDisk& disk, std::string_view name, std::uint64_t at) {
  const unsigned bit = static_cast<unsigned>(at * 2654435761U >> 7) % 8;
  disk.flip(path(name), at, bit);
  return std::string(name) + ": bit " + std::to_string(bit) + " of byte " + std::to_string(at) +
         " flipped";
}

TEST(JournalDamage, AFlippedBitBeforeTheLastRecordIsRefusedWithFileAndOffset) {
  const SmallStore store;
  const std::string name = segment_name(1);
  for (int i = 0; i + 1 < kOperations; ++i) {
    const auto n = static_cast<std::size_t>(i);
    for (const std::uint64_t at :
         positions(store.offsets[n], store.lengths[n], store.offsets[n + 1])) {
      SimulatedDisk disk(store.disk);
      const std::string trace = flip_one(disk, name, at);
      const std::string place = name + ": offset " + std::to_string(store.offsets[n]) + ":";
      ASSERT_NO_FATAL_FAILURE(expect_refused(disk, place, trace));
    }
  }
}

TEST(JournalDamage, AFlippedBitInTheSegmentHeaderIsRefused) {
  const SmallStore store;
  for (const std::uint64_t at : positions(0, sizeof(SegmentHeader), kBlock)) {
    SimulatedDisk disk(store.disk);
    const std::string trace = flip_one(disk, segment_name(1), at);
    ASSERT_NO_FATAL_FAILURE(expect_refused(disk, segment_name(1), trace));
  }
}

// The documented exception: it cannot be distinguished from a torn tail. The high water still
// covers the lost numbers.
TEST(JournalDamage, AFlippedBitInTheLastRecordCountsAsATornTail) {
  const SmallStore store;
  for (const std::uint64_t at : positions(store.offsets.back(), store.lengths.back(), store.end)) {
    SimulatedDisk disk(store.disk);
    const std::string trace = flip_one(disk, segment_name(1), at);
    {
      JournalRun run(disk);
      ASSERT_TRUE(run.ok()) << trace << ": " << run.error->detail;
      ASSERT_EQ(run.state(), store.states[kOperations - 1]) << trace;
      ASSERT_EQ(run.loaded.sequence, std::uint64_t{kOperations - 1}) << trace;
      ASSERT_GE(run.loaded.high_water, std::uint64_t{kOperations}) << trace;
      ASSERT_TRUE(run.put("next", "one"));
    }
    // It is gone for good, and no damage to the next start.
    JournalRun again(disk);
    ASSERT_TRUE(again.ok()) << trace << ": " << again.error->detail;
    State expected = store.states[kOperations - 1];
    expected["next"] = "one";
    ASSERT_EQ(again.state(), expected) << trace;
  }
}

TEST(JournalDamage, AfterACleanStopAFlippedBitInTheLastRecordIsRefused) {
  SmallStore store;
  {
    JournalRun run(store.disk);
    ASSERT_TRUE(run.journal->close());
  }
  store.disk.flip(path(segment_name(1)), store.offsets.back() + 50, 3);
  expect_refused(store.disk, segment_name(1), "after a clean stop");
}

TEST(JournalDamage, AFlippedBitAfterTheLastRecordChangesNothing) {
  const SmallStore store;
  for (std::uint64_t at = store.end; at < kTestSegmentBytes; at += 7919) {
    SimulatedDisk disk(store.disk);
    const std::string trace = flip_one(disk, segment_name(1), at);
    JournalRun run(disk);
    ASSERT_TRUE(run.ok()) << trace;
    ASSERT_EQ(run.state(), store.states.back()) << trace;
  }
}

TEST(JournalDamage, ATruncatedSegmentIsRefused) {
  const SmallStore store;
  std::set<std::uint64_t> cuts;
  for (std::uint64_t at = 0; at < store.end; at += 61) cuts.insert(at);
  for (const std::uint64_t offset : store.offsets)
    cuts.insert({offset - 1, offset, offset + 1, offset + sizeof(RecordHeader)});
  for (std::uint64_t at = store.end; at < kTestSegmentBytes; at += 50'021) cuts.insert(at);
  cuts.insert(kTestSegmentBytes - kBlock);
  for (const std::uint64_t cut : cuts) {
    SimulatedDisk disk(store.disk);
    disk.truncate(path(segment_name(1)), cut);
    ASSERT_NO_FATAL_FAILURE(expect_refused(disk, segment_name(1), "cut at " + std::to_string(cut)));
  }
}

// The tail of a batch that spans blocks, torn at every sector in every way that one sector can be
// missing.
TEST(JournalDamage, ATornLastBatchIsDroppedAsAWhole) {
  const SmallStore store;
  for (std::uint64_t sector = store.offsets.back(); sector < store.end; sector += 512) {
    SimulatedDisk disk(store.disk);
    std::string bytes = disk.content(path(segment_name(1)));
    bytes.replace(sector, 512, 512, '\0');
    disk.put_file(path(segment_name(1)), bytes);
    JournalRun run(disk);
    ASSERT_TRUE(run.ok()) << run.error->detail;
    const bool padding = sector >= store.offsets.back() + store.lengths.back();
    ASSERT_EQ(run.state(), store.states[padding ? kOperations : kOperations - 1]) << sector;
  }
}

// After recovery nothing of a torn tail is left on the disk.
TEST(JournalDamage, ATornTailIsOverwrittenWithZeros) {
  SmallStore store;
  store.disk.flip(path(segment_name(1)), store.offsets.back() + 100, 0);
  { ASSERT_TRUE(JournalRun(store.disk).ok()); }
  const std::string bytes = store.disk.content(path(segment_name(1)));
  EXPECT_EQ(bytes.find_first_not_of('\0', store.offsets.back()), std::string::npos);
}

// A store with a checkpoint, a closed segment after it, and an active one.
struct LargeStore {
  LargeStore() {
    JournalRun run(disk);
    const std::string large(700'000, 'l');
    for (int i = 0; i < 12; ++i)
      EXPECT_TRUE(run.put("key" + std::to_string(i), "value", static_cast<std::uint64_t>(i)));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(run.put("large", large));
      Batch batch;
      batch.erase("large");
      EXPECT_TRUE(run.submit(batch));
    }
    run.work();  // Checkpoint over two segments.
    EXPECT_TRUE(run.put("more", "1"));
    EXPECT_TRUE(run.put("more", "2"));
    EXPECT_TRUE(run.put("large", large));
    EXPECT_TRUE(run.put("last", "3"));
    run.journal.reset();
    disk.kill_process();
    const auto names = disk.list(kDirectory);
    for (const std::string& name : *names) {
      if (checkpoint_of(name)) checkpoint = name;
    }
    SimulatedDisk copy(disk);
    expected = JournalRun(copy).state();
  }

  SimulatedDisk disk;
  std::string checkpoint;
  State expected;
};

TEST(JournalDamage, AFlippedBitInACheckpointIsRefused) {
  const LargeStore store;
  ASSERT_FALSE(store.checkpoint.empty());
  const std::size_t size = SimulatedDisk(store.disk).content(path(store.checkpoint)).size();
  ASSERT_LT(size, 8192U);
  for (std::uint64_t at = 0; at < size; ++at) {
    SimulatedDisk disk(store.disk);
    const std::string trace = flip_one(disk, store.checkpoint, at);
    ASSERT_NO_FATAL_FAILURE(expect_refused(disk, store.checkpoint, trace));
  }
  for (std::uint64_t cut = 0; cut < size; cut += 13) {
    SimulatedDisk disk(store.disk);
    disk.truncate(path(store.checkpoint), cut);
    ASSERT_NO_FATAL_FAILURE(
        expect_refused(disk, store.checkpoint, "cut at " + std::to_string(cut)));
  }
}

TEST(JournalDamage, AFlippedBitInAClosedSegmentIsRefused) {
  const LargeStore store;
  const std::string name = segment_name(3);
  const std::string bytes = SimulatedDisk(store.disk).content(path(name));
  const auto header = decode_segment_header(bytes, 3);
  ASSERT_TRUE(header);
  std::uint64_t offset = kBlock;
  std::vector<std::uint64_t> places = positions(0, sizeof(SegmentHeader), kBlock);
  while (const auto record = decode_record(std::string_view(bytes).substr(offset), 3)) {
    const std::uint64_t end = offset + record->stored_bytes;
    const auto more = record->stored_bytes > 10 * kBlock
                          ? std::vector<std::uint64_t>{offset, offset + 300'000, end - 1}
                          : positions(offset, sizeof(RecordHeader) + record->header.length, end);
    places.insert(places.end(), more.begin(), more.end());
    offset = end;
  }
  ASSERT_GT(offset, 3 * kBlock);
  for (const std::uint64_t at : places) {
    SimulatedDisk disk(store.disk);
    const std::string trace = flip_one(disk, name, at);
    ASSERT_NO_FATAL_FAILURE(expect_refused(disk, name, trace));
  }
}

// Otherwise the segment would count as not begun, and its batches would be lost.
TEST(JournalDamage, AFlippedBitInTheActiveSegmentHeaderIsRefused) {
  const LargeStore store;
  const std::string name = segment_name(4);
  ASSERT_TRUE(decode_segment_header(SimulatedDisk(store.disk).content(path(name)), 4));
  for (const std::uint64_t at : positions(0, sizeof(SegmentHeader), kBlock)) {
    SimulatedDisk disk(store.disk);
    const std::string trace = flip_one(disk, name, at);
    ASSERT_NO_FATAL_FAILURE(expect_refused(disk, name, trace));
  }
}

// One bad page of a disk can damage both.
TEST(JournalDamage, ASegmentWithoutHeaderIsRefusedWhileARecordIsLeft) {
  const LargeStore store;
  const std::string name = segment_name(4);
  std::string bytes = SimulatedDisk(store.disk).content(path(name));
  const auto first = decode_record(std::string_view(bytes).substr(kBlock), 4);
  ASSERT_TRUE(first);
  const std::uint64_t second = kBlock + first->stored_bytes;
  ASSERT_TRUE(decode_record(std::string_view(bytes).substr(second), 4))
      << "there is a record to be missed";
  for (const char left : {'\0', 'x'}) {
    SimulatedDisk disk(store.disk);
    bytes.replace(0, second, second, left);
    disk.put_file(path(name), bytes);
    ASSERT_NO_FATAL_FAILURE(expect_refused(disk, name, "filled with " + std::to_string(left)));
  }
}

// The checkpoint is made beside the loop: it must not hide damage that happened meanwhile.
TEST(JournalDamage, ACheckpointIsNeverMadeFromADamagedSegment) {
  for (const std::uint64_t sequence_from_end : {1U, 2U}) {
    SimulatedDisk disk;
    JournalRun run(disk);
    const std::string large(300'000, 'l');
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(run.put("key" + std::to_string(i), large));
    const std::uint64_t record = stored_bytes(7 + 4 + large.size());
    disk.flip(path(segment_name(2)), kBlock + (3 - sequence_from_end) * record + 1000, 5);
    run.work();
    EXPECT_THAT(run.journal->damage().what, HasSubstr(segment_name(2)));
    const auto names = disk.list(kDirectory);
    for (const std::string& name : *names) EXPECT_FALSE(checkpoint_of(name)) << name;
  }
}

TEST(JournalDamage, AFlippedBitOrTruncationInASmallFileIsRefused) {
  const LargeStore store;
  for (const std::string_view name : {kIdentityFile}) {
    const std::size_t size = SimulatedDisk(store.disk).content(path(name)).size();
    for (std::uint64_t at = 0; at < size; ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        SimulatedDisk disk(store.disk);
        disk.flip(path(name), at, bit);
        ASSERT_NO_FATAL_FAILURE(expect_refused(disk, name, "byte " + std::to_string(at)));
      }
      SimulatedDisk disk(store.disk);
      disk.truncate(path(name), at);
      ASSERT_NO_FATAL_FAILURE(expect_refused(disk, name, "cut at " + std::to_string(at)));
    }
  }
}

// An operator copied an older file back.
TEST(JournalDamage, AHighWaterFileOlderThanTheRecordsIsRefused) {
  SimulatedDisk disk;
  std::string older;
  {
    JournalRun run(disk);
    ASSERT_TRUE(run.put("a", "1", 1));
    older = disk.content(path(kHighWaterFile));
    ASSERT_TRUE(run.put("a", "2", 100'000));
  }
  disk.put_file(path(kHighWaterFile), older);
  expect_refused(disk, kHighWaterFile, "older file");
}

}  // namespace
}  // namespace pawl::store::journal
