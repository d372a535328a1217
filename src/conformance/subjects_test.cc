#include "conformance/subjects.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "guard/sqlite/administration.h"

namespace pawl::conformance {
namespace {

// A SQLite file with the guard in it: the one database that needs no server.
class Subjects : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
    auto administration = guard::open_sqlite(path_);
    ASSERT_TRUE(administration);
    ASSERT_TRUE((*administration)->install(guard::Rehearse::kNo));
    auto started = start_subject("sqlite", path_, GetParam());
    ASSERT_TRUE(started) << started.error().detail;
    subject_ = *std::move(started);
  }

  // A whole write: how it ended.
  Outcome write(const std::string& resource, const char* token, const std::string& value) {
    auto session = subject_->open();
    Outcome outcome = (*session)->begin(Isolation::kDefault);
    if (outcome.passed()) outcome = (*session)->admit({{resource}, token, {}});
    if (outcome.passed()) outcome = (*session)->apply(resource, value);
    if (outcome.passed()) return (*session)->commit();
    EXPECT_EQ((*session)->rollback().answer, Answer::kDone);
    return outcome;
  }

  const std::string path_ = testing::TempDir() + "subjects_" + std::string(to_text(GetParam())) +
                            std::to_string(getpid()) + ".db";
  std::unique_ptr<Subject> subject_;
};

TEST_P(Subjects, WhatIsUnderGuardRefusesAnOlderToken) {
  const auto resources = subject_->fresh({}, 1);
  ASSERT_TRUE(resources) << resources.error().detail;
  const std::string& guarded = resources->front();
  EXPECT_EQ(write(guarded, "34", "new").answer, Answer::kDone);
  EXPECT_EQ(write(guarded, "33", "old").answer, Answer::kStale);
  EXPECT_EQ(*subject_->effects(guarded), (std::vector<Effect>{{34, "new"}}));
}

TEST_P(Subjects, WhatIsBareTakesAnOlderTokenAndTellsIt) {
  const auto bare = subject_->bare();
  const auto other = subject_->bare();
  ASSERT_TRUE(bare && other);
  EXPECT_EQ(write(*bare, "34", "new").answer, Answer::kDone);
  EXPECT_EQ(write(*bare, "33", "old").answer, Answer::kDone);
  EXPECT_EQ(*subject_->effects(*bare), (std::vector<Effect>{{34, "new"}, {33, "old"}}));
  EXPECT_TRUE(subject_->effects(*other)->empty());
}

TEST_P(Subjects, AnotherProcessWritesToWhatThisOneMade) {
  const auto guarded = subject_->fresh({}, 1);
  const auto bare = subject_->bare();
  ASSERT_TRUE(guarded && bare);
  for (const std::string& resource : {guarded->front(), *bare}) {
    auto session = open_session("sqlite", path_, GetParam(), resource);
    ASSERT_TRUE(session) << session.error().detail;
    EXPECT_TRUE((*session)->begin(Isolation::kDefault).passed());
    EXPECT_TRUE((*session)->admit({{resource}, "34", {}}).passed());
    EXPECT_TRUE((*session)->apply(resource, "v").passed());
    EXPECT_TRUE((*session)->commit().passed());
    EXPECT_EQ(*subject_->effects(resource), (std::vector<Effect>{{34, "v"}}));
  }
}

TEST_P(Subjects, NothingIsLeftBehind) {
  ASSERT_TRUE(subject_->fresh({}, 2));
  ASSERT_TRUE(subject_->bare());
  subject_.reset();
  auto administration = guard::open_sqlite(path_);
  ASSERT_TRUE(administration);
  EXPECT_TRUE((*administration)->status("")->empty());
}

INSTANTIATE_TEST_SUITE_P(Forms, Subjects, testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(to_text(form.param)); });

TEST(StartSubject, WhatNoGuardOfOursIsInIsInvalid) {
  const auto started = start_subject("oracle", "", Form::kTable);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kInvalid);
}

TEST(Form, IsReadAsItIsSpelled) {
  for (const Form form : kForms) EXPECT_EQ(parse_form(to_text(form)), form);
  EXPECT_EQ(parse_form("flying"), std::nullopt);
}

}  // namespace
}  // namespace pawl::conformance
