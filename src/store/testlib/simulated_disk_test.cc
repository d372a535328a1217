#include "store/testlib/simulated_disk.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

namespace pawl::store {
namespace {

const std::string kPath = "d/file";

struct SimulatedBlock {
  explicit SimulatedBlock(char fill) { std::fill(bytes, bytes + kBlock, fill); }
  [[nodiscard]] std::string_view view() const { return {bytes, kBlock}; }
  alignas(kBlock) char bytes[kBlock];
};

void make_durable_file(SimulatedDisk& disk, std::string_view bytes) {
  auto file = disk.create(kPath);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(0, bytes));
  ASSERT_TRUE((*file)->sync());
  ASSERT_TRUE(disk.sync_directory("d"));
}

TEST(SimulatedDisk, SyncedBytesSurviveAPowerCut) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDisk disk;
    make_durable_file(disk, "kept");
    SeededRandom random(seed);
    disk.restart(random);
    EXPECT_EQ(disk.content(kPath), "kept");
  }
}

TEST(SimulatedDisk, UnsyncedSectorsSurviveInAnyCombination) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimulatedDisk disk;
    make_durable_file(disk, std::string(1024, 'o'));
    auto file = disk.open_durable(kPath);
    ASSERT_TRUE(file);
    disk.cut_power_at(1);
    const SimulatedBlock block('n');
    EXPECT_FALSE((*file)->write(0, block.view()));
    EXPECT_FALSE(disk.exists(kPath));
    SeededRandom random(seed);
    disk.restart(random);
    const std::string bytes = disk.content(kPath);
    outcomes.insert({bytes[0], bytes[512]});
    EXPECT_EQ(bytes.substr(0, 512), std::string(512, bytes[0]));  // Never torn within a sector.
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"oo", "on", "no", "nn"}));
}

TEST(SimulatedDisk, ADurableWriteSurvives) {
  SimulatedDisk disk;
  make_durable_file(disk, std::string(kBlock, 'o'));
  {
    auto file = disk.open_durable(kPath);
    const SimulatedBlock block('n');
    ASSERT_TRUE((*file)->write(0, block.view()));
  }
  SeededRandom random(1);
  disk.restart(random);
  EXPECT_EQ(disk.content(kPath), std::string(kBlock, 'n'));
}

TEST(SimulatedDisk, AnUnsyncedDirectoryRenameMovesItsWholeContentOrNothing) {
  std::set<bool> outcomes;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SimulatedDisk disk;
    ASSERT_TRUE(disk.make_directory("d"));
    make_durable_file(disk, "x");
    ASSERT_TRUE(disk.rename_directory("d", "e"));
    EXPECT_EQ(disk.content("e/file"), "x");
    EXPECT_EQ(disk.rename_directory("e", "e").error().code, Code::kInvalid);
    SeededRandom random(seed);
    disk.restart(random);
    const bool renamed = *disk.exists("e");
    outcomes.insert(renamed);
    EXPECT_EQ(*disk.exists("e/file"), renamed);
    EXPECT_NE(*disk.exists("d/file"), renamed);
    EXPECT_NE(*disk.exists("d"), renamed);
  }
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST(SimulatedDisk, AnUnsyncedRenameIsKeptOrLostAsAWhole) {
  std::set<bool> outcomes;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SimulatedDisk disk;
    make_durable_file(disk, "x");
    ASSERT_TRUE(disk.rename(kPath, "d/other"));
    SeededRandom random(seed);
    disk.restart(random);
    const bool renamed = *disk.exists("d/other");
    EXPECT_NE(renamed, *disk.exists(kPath));
    outcomes.insert(renamed);
  }
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST(SimulatedDisk, TheSameSeedGivesTheSameDisk) {
  const auto life = [](std::uint64_t seed) {
    SimulatedDisk disk;
    make_durable_file(disk, std::string(8192, 'o'));
    auto file = disk.create("d/second");
    EXPECT_TRUE((*file)->write(0, std::string(8192, 'n')));
    SeededRandom random(seed);
    disk.restart(random);
    return *disk.exists("d/second") ? disk.content("d/second") : "none";
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(life(seed), life(seed));
}

TEST(SimulatedDisk, AKilledProcessLosesItsFilesAndLocksButNoBytes) {
  SimulatedDisk disk;
  auto lock = disk.lock_directory("d");
  auto file = disk.create(kPath);
  ASSERT_TRUE((*file)->write(0, "unsynced"));
  EXPECT_FALSE(disk.lock_directory("d"));
  disk.kill_process();
  EXPECT_FALSE((*file)->write(0, "ghost"));
  EXPECT_EQ(disk.content(kPath), "unsynced");
  auto second = disk.lock_directory("d");
  EXPECT_TRUE(second);
  lock = Error{};  // The first life's lock must not end the second's.
  EXPECT_FALSE(disk.lock_directory("d"));
}

// What the next process reads need not survive the next power cut.
TEST(SimulatedDisk, AWriteThatAKillInterruptsCanBeReadButIsNotDurable) {
  int survived = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDisk disk;
    make_durable_file(disk, std::string(kBlock, 'a'));
    auto file = disk.open_durable(kPath);
    alignas(kBlock) std::array<char, kBlock> bytes;
    bytes.fill('b');
    disk.kill_process_at(1);
    EXPECT_FALSE((*file)->write(0, {bytes.data(), bytes.size()}));
    EXPECT_FALSE(disk.has_process());
    EXPECT_FALSE(disk.exists(kPath));
    disk.kill_process();
    EXPECT_TRUE(disk.exists(kPath));
    EXPECT_EQ(disk.content(kPath), std::string(kBlock, 'b'));
    SeededRandom random(seed);
    disk.restart(random);
    if (disk.content(kPath) == std::string(kBlock, 'b')) ++survived;
  }
  EXPECT_LT(survived, 20);
}

TEST(SimulatedDisk, AFullDiskRefusesWritesForLackOfSpace) {
  SimulatedDisk disk;
  disk.set_capacity(100);
  auto file = disk.create(kPath);
  ASSERT_TRUE((*file)->write(0, std::string(60, 'x')));
  EXPECT_EQ(*disk.free_space("d"), 40U);
  const auto refused = (*file)->write(60, std::string(60, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
}

TEST(SimulatedDisk, ACopyIsIndependentOfTheOriginal) {
  SimulatedDisk disk;
  make_durable_file(disk, "first");
  SimulatedDisk copy(disk);
  copy.flip(kPath, 0, 0);
  EXPECT_EQ(disk.content(kPath), "first");
  EXPECT_EQ(copy.content(kPath), "girst");
}

}  // namespace
}  // namespace pawl::store
