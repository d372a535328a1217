#include "toy/toy_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "toy/kind.h"

namespace pawl::guard {
namespace {

class ToyGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    ASSERT_TRUE(kToyKind.create(path_));
    auto administration = kToyKind.open_administration(path_);
    ASSERT_TRUE((*administration)->protect({.table = "orders"}, Rehearse::kNo));
  }
  ~ToyGuardTest() override { std::filesystem::remove(path_); }

  // How many lines the log has with this value.
  int count(std::string_view value) {
    auto document = guard_.file().read();
    int found = 0;
    for (const auto& line : find_resource(*document, "orders")->at("log").as_array())
      found += line.as_array().at(1).as_string() == value ? 1 : 0;
    return found;
  }

  const std::string path_ = testing::TempDir() + "toy_" + std::to_string(getpid()) + ".json";
  ToyGuard guard_{path_};
};

TEST_F(ToyGuardTest, StaleTokenIsRefused) {
  ASSERT_TRUE(guard_.write({.token = 34}, "orders", "new"));
  const auto late = guard_.write({.token = 33}, "orders", "old");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kStaleToken);
  EXPECT_EQ(count("old"), 0);
}

TEST_F(ToyGuardTest, LostAnswerOfAnAppliedWriteIsSettledByReadingBack) {
  int losses = 1;
  guard_.file().lose_answer = [&] { return JsonFile::Loss{losses-- > 0, true}; };
  const auto written = guard_.write({.token = 34}, "orders", "v");
  ASSERT_TRUE(written) << written.error().detail;
  EXPECT_EQ(written->verdict, Verdict::kAdmitted);
  EXPECT_EQ(count("v"), 1);  // Not written again.
}

TEST_F(ToyGuardTest, LostRequestIsSettledByReadingBackAndRepeated) {
  int losses = 1;
  guard_.file().lose_answer = [&] { return JsonFile::Loss{losses-- > 0, false}; };
  ASSERT_TRUE(guard_.write({.token = 34}, "orders", "v"));
  EXPECT_EQ(count("v"), 1);
}

TEST_F(ToyGuardTest, WriteOfALostHolderIsNotSent) {
  const HeldToken held{.token = 34, .check = [] {
                         return Error{Code::kLeaseLost, "the lease is over"};
                       }};
  EXPECT_EQ(guard_.write(held, "orders", "v").error().code, Code::kLeaseLost);
  EXPECT_EQ(count("v"), 0);
}

TEST_F(ToyGuardTest, LiveHolderWithAStaleTokenLearnsThatTheIssuerIsBehind) {
  ASSERT_TRUE(guard_.advance("orders", 40, {}));
  const HeldToken held{.token = 34,
                       .check = [] { return Result<void>(); },
                       .explain_stale =
                           [](std::uint64_t fence) {
                             return Error{Code::kIssuerBehind, "fence " + std::to_string(fence)};
                           }};
  const auto written = guard_.write(held, "orders", "v");
  EXPECT_EQ(written.error().code, Code::kIssuerBehind);
  EXPECT_EQ(written.error().detail, "fence 40");
}

TEST_F(ToyGuardTest, SaysThatItIsBestEffort) {
  EXPECT_EQ(guard_.strength().strength, Strength::kBestEffort);
}

TEST_F(ToyGuardTest, WhatAKindCannotDoIsRefusedWithItsName) {
  auto administration = kToyKind.open_administration(path_);
  EXPECT_FALSE((*administration)->can(Task::kCompact));
  const auto done = (*administration)->compact("orders", 7, Rehearse::kNo);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_NE(done.error().detail.find("a JSON file"), std::string::npos);
}

}  // namespace
}  // namespace pawl::guard
