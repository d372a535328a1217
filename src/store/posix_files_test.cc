#include "store/posix_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/testlib/temp_directory.h"

namespace pawl::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct AlignedBlock {
  explicit AlignedBlock(char fill) { std::fill(bytes, bytes + kBlock, fill); }
  [[nodiscard]] std::string_view view() const { return {bytes, kBlock}; }
  alignas(kBlock) char bytes[kBlock];
};

void write_and_read_back(PosixFiles& files, const std::string& directory) {
  const std::string path = directory + "/file";
  {
    auto file = files.create(path);
    ASSERT_TRUE(file) << file.error().detail;
    ASSERT_TRUE((*file)->write(0, std::string(3 * kBlock, '\0')));
    ASSERT_TRUE((*file)->sync());
  }
  const AlignedBlock block('b');
  auto durable = files.open_durable(path);
  ASSERT_TRUE(durable) << durable.error().detail;
  const auto written = (*durable)->write(kBlock, block.view());
  ASSERT_TRUE(written) << written.error().detail;
  auto reader = files.open_read(path);
  std::string bytes(4 * kBlock, 'x');
  const auto got = (*reader)->read(0, bytes);
  ASSERT_TRUE(got);
  bytes.resize(*got);
  EXPECT_EQ(bytes,
            std::string(kBlock, '\0') + std::string(kBlock, 'b') + std::string(kBlock, '\0'));
  EXPECT_EQ(*(*reader)->size(), 3 * kBlock);
}

TEST(PosixFiles, ADurableWriteCanBeReadBack) {
  const TempDirectory directory;
  PosixFiles files;
  write_and_read_back(files, directory.path());
}

TEST(PosixFiles, BufferedWritesLeaveTheSameBytesAsDirectOnes) {
  const TempDirectory directory;
  PosixFiles refused(PosixFiles::Direct::kNever);
  write_and_read_back(refused, directory.path());
  ASSERT_EQ(::access("/dev/shm", W_OK), 0) << "this test needs a tmpfs, which refuses O_DIRECT";
  const TempDirectory memory("/dev/shm");
  PosixFiles files;
  write_and_read_back(files, memory.path());
}

TEST(PosixFiles, RefusedDirectWritesAreReportedOnceWithThePath) {
  const TempDirectory directory;
  PosixFiles files(PosixFiles::Direct::kNever);
  std::vector<std::string> reported;
  files.on_buffered([&](const std::string& path) { reported.push_back(path); });
  write_and_read_back(files, directory.path());
  write_and_read_back(files, directory.path());
  EXPECT_THAT(reported, ElementsAre(directory.path() + "/file"));
}

TEST(PosixFiles, NamesCanBeListedRenamedAndRemoved) {
  const TempDirectory directory;
  PosixFiles files;
  const std::string sub = directory.path() + "/sub";
  ASSERT_TRUE(files.make_directory(sub));
  ASSERT_TRUE(files.make_directory(sub));
  ASSERT_TRUE(files.create(sub + "/a"));
  ASSERT_TRUE(files.create(sub + "/b"));
  ASSERT_TRUE(files.rename(sub + "/a", sub + "/c"));
  ASSERT_TRUE(files.remove(sub + "/b"));
  ASSERT_TRUE(files.remove(sub + "/b"));
  ASSERT_TRUE(files.sync_directory(sub));
  EXPECT_THAT(*files.list(sub), UnorderedElementsAre("c"));
  EXPECT_TRUE(*files.exists(sub + "/c"));
  EXPECT_FALSE(*files.exists(sub + "/a"));
  EXPECT_GT(*files.free_space(sub), 0U);
}

TEST(PosixFiles, AnErrorNamesThePath) {
  const TempDirectory directory;
  PosixFiles files;
  const std::string path = directory.path() + "/none/file";
  const auto file = files.create(path);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().detail, HasSubstr(path));
  EXPECT_THAT(file.error().detail, HasSubstr("No such file"));
}

// Hard case 41.
TEST(PosixFiles, ASecondLockNamesThePidOfTheFirst) {
  const TempDirectory directory;
  PosixFiles files;
  {
    const auto first = files.lock_directory(directory.path());
    ASSERT_TRUE(first);
    const auto second = files.lock_directory(directory.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::kBusy);
    EXPECT_THAT(second.error().detail, HasSubstr("pid " + std::to_string(::getpid())));
  }
  EXPECT_TRUE(files.lock_directory(directory.path()));
}

TEST(PosixFiles, ADirectoryIsRenamedToAFreeNameOnly) {
  const TempDirectory directory;
  PosixFiles files;
  const std::string from = directory.path() + "/from";
  const std::string to = directory.path() + "/to";
  ASSERT_TRUE(files.make_directory(from));
  ASSERT_TRUE(files.create(from + "/file"));
  ASSERT_TRUE(files.make_directory(to));
  EXPECT_EQ(files.rename_directory(from, to).error().code, Code::kInvalid)
      << "even an empty one stays";
  EXPECT_FALSE(files.remove_directory(from)) << "it is not empty";
  ASSERT_TRUE(files.remove_directory(to));
  ASSERT_TRUE(files.remove_directory(to)) << "fine when it is not there";
  ASSERT_TRUE(files.rename_directory(from, to));
  EXPECT_TRUE(*files.exists(to + "/file"));
  EXPECT_TRUE(*files.share_space(directory.path(), to));
  EXPECT_FALSE(*files.share_space(directory.path(), "/proc"));
}

}  // namespace
}  // namespace pawl::store
