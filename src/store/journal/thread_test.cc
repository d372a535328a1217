// The journal on real files, with its helper thread beside the loop.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/random.h"
#include "store/journal/journal_thread.h"
#include "store/journal/ledger.h"
#include "store/journal/test_bench.h"
#include "store/posix_files.h"
#include "store/test_directory.h"

namespace pawl::store::journal {
namespace {

// Several lives on real files; the helper prewrites and makes checkpoints while batches are
// submitted.
void live_on(PosixFiles& files, const std::string& directory) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(directory);  // Lifetime opens kDirectory.
  SeededRandom random(11);
  Ledger ledger;
  for (int life = 0; life < 3; ++life) {
    Lifetime run(files);
    ASSERT_NO_FATAL_FAILURE(ledger.check(run));
    {
      const JournalThread helper(*run.journal);
      for (int i = 0; i < 120; ++i) {
        Batch batch;
        for (int j = 0; j < 3; ++j) {
          batch.put("key" + std::to_string(random.below(100)),
                    std::string(random.below(30'000), 'v'));
        }
        batch.erase("key" + std::to_string(random.below(100)));
        batch.cover(ledger.next_number());
        ASSERT_TRUE(ledger.submit(run, batch)) << run.answers.failure->detail;
        EXPECT_TRUE(run.journal->has_room());
      }
    }
    if (life == 1) {
      ASSERT_TRUE(run.journal->close());
    }
  }
  Lifetime last(files);
  ASSERT_NO_FATAL_FAILURE(ledger.check(last));
  std::filesystem::current_path(here);
}

TEST(JournalThread, WorksBesideTheLoopOnRealFiles) {
  const TestDirectory directory;
  PosixFiles files;
  live_on(files, directory.path());
}

TEST(JournalThread, WorksWhereDirectWritesAreRefused) {
  PosixFiles files(PosixFiles::Direct::kNever);
  const bool memory = ::access("/dev/shm", W_OK) == 0;
  const TestDirectory directory(memory ? "/dev/shm"
                                       : std::filesystem::temp_directory_path().string());
  live_on(files, directory.path());
}

TEST(JournalThread, TheSameBytesWithAndWithoutDirectWrites) {
  const auto bytes_of = [](PosixFiles::Direct direct) {
    const TestDirectory directory;
    PosixFiles files(direct);
    SeededRandom random(5);
    auto journal = Journal::open(files, directory.path() + "/store", Lifetime::small(), random);
    EXPECT_TRUE(journal);
    Collect nothing;
    EXPECT_TRUE((*journal)->load(nothing));
    Answers answers;
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
