#include "gate/mark_file.h"

#include <gtest/gtest.h>

#include "store/testlib/simulated_disk.h"

namespace pawl::gate {
namespace {

constexpr auto kCreate = MarkFile::Missing::kCreate;

Marks reopened(store::Files& files) {
  const auto file = MarkFile::open(files, "state", kCreate);
  EXPECT_TRUE(file) << file.error().detail;
  return file ? (*file)->marks() : Marks{};
}

TEST(MarkFileTest, MarksSurviveAPowerCut) {
  store::SimulatedDisk disk;
  {
    const auto file = MarkFile::open(disk, "state", kCreate);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append({{"/a", {Token{33}, true}}, {"/b", {Token{5}, true}}}));
    ASSERT_TRUE((*file)->append({{"/b", {Token{5}, false}}}));
  }
  SeededRandom random(1);
  disk.restart(random);
  EXPECT_EQ(reopened(disk), (Marks{{"/a", {Token{33}, true}}, {"/b", {Token{5}, false}}}));
}

TEST(MarkFileTest, AfterAPowerCutAtAnyMomentAllThatWasDurableIsThere) {
  SeededRandom random(2);
  for (std::uint64_t cut = 1; cut < 400; ++cut) {
    store::SimulatedDisk disk;
    ASSERT_TRUE(MarkFile::open(disk, "state", kCreate));
    disk.kill_process();
    Marks durable, pending;
    disk.cut_power_at(1 + cut % 40);
    if (auto file = MarkFile::open(disk, "state", kCreate)) {
      for (std::uint64_t i = 1; i < 50; ++i) {
        const NamedMark mark{"/" + std::string(random.below(600), 'r') + std::to_string(i % 3),
                             {Token{i}, random.below(2) == 0}};
        pending = durable;
        pending[mark.first] = mark.second;
        if (!(*file)->append({mark})) break;
        durable = pending;
      }
    }
    disk.restart(random);
    const Marks found = reopened(disk);
    ASSERT_TRUE(found == durable || found == pending) << "cut " << cut;
  }
}

TEST(MarkFileTest, ObsoleteLinesAreDropped) {
  store::SimulatedDisk disk;
  const auto file = MarkFile::open(disk, "state", kCreate);
  ASSERT_TRUE(file);
  const std::string name = "/" + std::string(1000, 'a');
  for (std::uint64_t i = 1; i <= 3000; ++i)
    ASSERT_TRUE((*file)->append({{name, {Token{i}, true}}}));
  EXPECT_LT(disk.used(), 2u << 20);
  disk.kill_process();
  EXPECT_EQ(reopened(disk), (Marks{{name, {Token{3000}, true}}}));
}

TEST(MarkFileTest, AFlippedBitIsRefusedWithTheNameOfTheFile) {
  store::SimulatedDisk original;
  {
    const auto file = MarkFile::open(original, "state", kCreate);
    ASSERT_TRUE((*file)->append({{"/a", {Token{33}, true}}}));
    ASSERT_TRUE((*file)->append({{"/a", {Token{34}, true}}}));
  }
  const std::uint64_t size = original.used();
  for (std::uint64_t offset = 0; offset + 1 < size; ++offset) {
    store::SimulatedDisk disk(original);
    disk.flip("state/marks", offset, static_cast<unsigned>(offset % 7));
    const auto file = MarkFile::open(disk, "state", kCreate);
    ASSERT_FALSE(file) << offset;
    EXPECT_EQ(file.error().code, Code::kInvalid);
    EXPECT_NE(file.error().detail.find("state/marks is damaged"), std::string::npos);
  }
}

TEST(MarkFileTest, ASecondGateOnTheSameDirectoryIsRefused) {
  store::SimulatedDisk disk;
  const auto first = MarkFile::open(disk, "state", kCreate);
  const auto second = MarkFile::open(disk, "state", kCreate);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy);
}

TEST(MarkFileTest, MissingMarksAreRefusedWhenTheyMustExist) {
  store::SimulatedDisk disk;
  EXPECT_FALSE(MarkFile::open(disk, "state", MarkFile::Missing::kRefuse));
  ASSERT_TRUE(MarkFile::open(disk, "state", kCreate));
  disk.kill_process();
  EXPECT_TRUE(MarkFile::open(disk, "state", MarkFile::Missing::kRefuse));
}

}  // namespace
}  // namespace pawl::gate
