#include "auth/users_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/testlib/temp_directory.h"

namespace pawl::auth {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class UsersDisk : public testing::Test {
 protected:
  void write(const std::string& text, mode_t mode) {
    std::ofstream(path_, std::ios::trunc) << text;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  std::string text() {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }
  mode_t mode() {
    struct stat facts {};
    EXPECT_EQ(::stat(path_.c_str(), &facts), 0);
    return facts.st_mode & 07777;
  }
  Result<void> append(const std::string& more, WhenMissing when_missing = WhenMissing::kRefuse) {
    return change_file(
        path_.string(), when_missing,
        [&](std::string_view old) -> Result<std::string> { return std::string(old) + more; });
  }

  const TempDirectory temp_;
  const fs::path dir_ = temp_.path(), path_ = dir_ / "users";
};

TEST_F(UsersDisk, AFileAccessibleToOtherUsersIsRefusedWithAdvice) {
  for (const mode_t open : {0644U, 0604U, 0602U, 0601U}) {
    write("", open);
    const auto users = load_users(path_.string());
    ASSERT_FALSE(users) << open;
    EXPECT_THAT(users.error().detail, HasSubstr(path_.string()));
    EXPECT_THAT(users.error().detail, HasSubstr("chmod 600"));
    EXPECT_FALSE(append("x")) << "and is not changed either";
  }
  for (const mode_t kept : {0600U, 0640U, 0400U}) {
    write("", kept);
    EXPECT_TRUE(load_users(path_.string())) << kept;
  }
}

TEST_F(UsersDisk, AnUnreadableFileIsNamed) {
  EXPECT_THAT(load_users(path_.string()).error().detail,
              HasSubstr("users: cannot be opened: No such file"));
  EXPECT_THAT(load_users(dir_.string()).error().detail, HasSubstr("is not a file"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(load_users(path_.string()).error().detail, HasSubstr("is not a file"));
}

TEST_F(UsersDisk, ANewFileIsPrivateAndAnOldOneKeepsItsMode) {
  EXPECT_FALSE(append("a\n"));
  EXPECT_FALSE(fs::exists(path_)) << "nothing is created where it was to be changed";
  ASSERT_TRUE(append("a\n", WhenMissing::kCreate));
  EXPECT_EQ(mode(), 0600U);
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  ASSERT_TRUE(append("b\n"));
  EXPECT_EQ(mode(), 0640U);
  EXPECT_EQ(text(), "a\nb\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 1) << "nothing else is left behind";
}

TEST_F(UsersDisk, ASymbolicLinkIsKept) {
  write("a\n", 0600);
  const fs::path link = dir_ / "link";
  fs::create_symlink(path_, link);
  ASSERT_TRUE(
      change_file(link.string(), WhenMissing::kRefuse,
                  [](std::string_view) -> Result<std::string> { return std::string("b\n"); }));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(text(), "b\n");
}

TEST_F(UsersDisk, AFailedChangeLeavesTheFileAsItIs) {
  write("a\n", 0600);
  const auto changed = change_file(path_.string(), WhenMissing::kRefuse,
                                   [](std::string_view) -> Result<std::string> {
                                     return Error{Code::kInvalid, "no"};
                                   });
  EXPECT_EQ(changed.error().detail, "no");
  EXPECT_EQ(text(), "a\n");
}

TEST_F(UsersDisk, ConcurrentChangesAreAllKept) {
  constexpr int kEach = 25;
  std::vector<std::thread> writers;
  for (const char* line : {"a\n", "b\n", "c\n", "d\n"}) {
    writers.emplace_back([this, line] {
      for (int i = 0; i < kEach; ++i) EXPECT_TRUE(append(line, WhenMissing::kCreate));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string all = text();
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    EXPECT_EQ(std::count(all.begin(), all.end(), letter), kEach);
  }
}

}  // namespace
}  // namespace pawl::auth
