// The journal on real files, with its maintenance thread beside the loop.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/random.h"
#include "base/testlib/temp_directory.h"
#include "store/journal/journal_threads.h"
#include "store/posix_files.h"
#include "store/testlib/acknowledged_state.h"
#include "store/testlib/journal_run.h"

namespace pawl::store::journal {
namespace {

// Several runs on real files; the thread prewrites segments and makes checkpoints while batches are
// submitted.
void live_on(PosixFiles& files, const std::string& directory) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(directory);  // JournalRun opens kDirectory.
  SeededRandom random(11);
  AcknowledgedState acknowledged;
  for (int round = 0; round < 3; ++round) {
    JournalRun run(files);
    ASSERT_NO_FATAL_FAILURE(acknowledged.check(run));
    {
      const MaintenanceThread helper(*run.journal);
      for (int i = 0; i < 120; ++i) {
        Batch batch;
        for (int j = 0; j < 3; ++j) {
          batch.put("key" + std::to_string(random.below(100)),
                    std::string(random.below(30'000), 'v'));
        }
        batch.erase("key" + std::to_string(random.below(100)));
        batch.cover(acknowledged.next_number());
        ASSERT_TRUE(acknowledged.submit(run, batch)) << run.answers.failure->detail;
        EXPECT_TRUE(run.journal->has_room());
      }
    }
    if (round == 1) {
      ASSERT_TRUE(run.journal->close());
    }
  }
  JournalRun last(files);
  ASSERT_NO_FATAL_FAILURE(acknowledged.check(last));
  std::filesystem::current_path(here);
}

TEST(MaintenanceThread, WorksBesideTheLoopOnRealFiles) {
  const TempDirectory directory;
  PosixFiles files;
  live_on(files, directory.path());
}

TEST(MaintenanceThread, WorksWhereDirectWritesAreRefused) {
  PosixFiles files(PosixFiles::Direct::kNever);
  const bool memory = ::access("/dev/shm", W_OK) == 0;
  const TempDirectory directory(memory ? "/dev/shm"
                                       : std::filesystem::temp_directory_path().string());
  live_on(files, directory.path());
}

TEST(MaintenanceThread, DirectAndBufferedWritesLeaveTheSameBytes) {
  const auto bytes_of = [](PosixFiles::Direct direct) {
    const TempDirectory directory;
    PosixFiles files(direct);
    SeededRandom random(5);
    auto journal = Journal::open(files, directory.path() + "/store", JournalRun::small(), random);
    EXPECT_TRUE(journal);
    CollectingVisitor nothing;
    EXPECT_TRUE((*journal)->load(nothing));
    RecordingSink answers;
    for (std::uint64_t i = 1; i <= 5; ++i) {
      Batch batch;
      batch.put("key", std::string(3000 * i, 'v'));
      (*journal)->submit(batch, BatchId{i}, answers);
    }
    EXPECT_EQ(answers.last_durable, 5U);
    auto file = files.open_read(directory.path() + "/store/" + segment_name(1));
    std::string bytes(kTestSegmentBytes, '\0');
    EXPECT_TRUE((*file)->read(0, bytes));
    return bytes;
  };
  EXPECT_TRUE(bytes_of(PosixFiles::Direct::kWherePossible) == bytes_of(PosixFiles::Direct::kNever));
}

}  // namespace
}  // namespace pawl::store::journal
