#include "guard/kinds.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "guard/sql/scratch_names.h"

namespace pawl::guard {
namespace {

// In a file: the one kind that needs no server.
class Scratch : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    const auto created = serverless_kind().create(path_);
    ASSERT_TRUE(created) << created.error().detail;
    auto opened = serverless_kind().open_scratch(path_, GetParam());
    ASSERT_TRUE(opened) << opened.error().detail;
    space_ = *std::move(opened);
  }

  // A whole write: how it ended.
  Outcome write(const std::string& resource, const char* token, const std::string& value) {
    auto session = space_->open();
    Outcome outcome = (*session)->begin(Isolation::kDefault);
    if (outcome.passed()) outcome = (*session)->admit({{resource}, token, {}});
    if (outcome.passed()) outcome = (*session)->apply(resource, value);
    if (outcome.passed()) return (*session)->commit();
    EXPECT_EQ((*session)->rollback().answer, Answer::kDone);
    return outcome;
  }

  const std::string path_ =
      testing::TempDir() + "scratch_" + std::string(GetParam()) + std::to_string(getpid()) + ".db";
  std::unique_ptr<ScratchSpace> space_;
};

TEST_P(Scratch, GuardedResourceRefusesAnOlderToken) {
  const auto resources = space_->fresh({}, 1);
  ASSERT_TRUE(resources) << resources.error().detail;
  const std::string& guarded = resources->front();
  EXPECT_EQ(write(guarded, "34", "new").answer, Answer::kDone);
  EXPECT_EQ(write(guarded, "33", "old").answer, Answer::kStale);
  EXPECT_EQ(*space_->effects(guarded), (std::vector<Effect>{{34, "new"}}));
}

TEST_P(Scratch, BareResourceTakesAnOlderToken) {
  const auto bare = space_->bare();
  const auto other = space_->bare();
  ASSERT_TRUE(bare && other);
  EXPECT_EQ(write(*bare, "34", "new").answer, Answer::kDone);
  EXPECT_EQ(write(*bare, "33", "old").answer, Answer::kDone);
  EXPECT_EQ(*space_->effects(*bare), (std::vector<Effect>{{34, "new"}, {33, "old"}}));
  EXPECT_TRUE(space_->effects(*other)->empty());
}

TEST_P(Scratch, AnotherProcessCanWriteToIt) {
  const auto guarded = space_->fresh({}, 1);
  const auto bare = space_->bare();
  ASSERT_TRUE(guarded && bare);
  for (const std::string& resource : {guarded->front(), *bare}) {
    auto session = serverless_kind().open_session(
        path_, {.scratch_resource = resource, .form = std::string(GetParam())});
    ASSERT_TRUE(session) << session.error().detail;
    EXPECT_TRUE((*session)->begin(Isolation::kDefault).passed());
    EXPECT_TRUE((*session)->admit({{resource}, "34", {}}).passed());
    EXPECT_TRUE((*session)->apply(resource, "v").passed());
    EXPECT_TRUE((*session)->commit().passed());
    EXPECT_EQ(*space_->effects(resource), (std::vector<Effect>{{34, "v"}}));
  }
}

TEST_P(Scratch, LeavesNothingBehind) {
  ASSERT_TRUE(space_->fresh({}, 2));
  ASSERT_TRUE(space_->bare());
  space_.reset();
  auto administration = serverless_kind().open_administration(path_);
  ASSERT_TRUE(administration);
  EXPECT_TRUE((*administration)->status("")->empty());
}

INSTANTIATE_TEST_SUITE_P(Forms, Scratch, testing::ValuesIn(serverless_kind().forms),
                         [](const auto& form) { return std::string(form.param); });

TEST(Kinds, AnUnknownNameListsTheKnownOnes) {
  const auto kind = need_kind("oracle");
  ASSERT_FALSE(kind);
  EXPECT_EQ(kind.error().code, Code::kInvalid);
  EXPECT_NE(kind.error().detail.find(kind_names()), std::string::npos);
}

TEST(Kinds, EachIsFoundByItsNameAndHasItsScratchForm) {
  for (const Kind* kind : all_kinds()) {
    EXPECT_EQ(find_kind(kind->name), kind);
    EXPECT_TRUE(std::count(kind->forms.begin(), kind->forms.end(), kind->scratch_form) == 1)
        << kind->name;
  }
}

TEST(Kinds, FirstColonEndsTheKind) {
  const auto named = parse_guarded("postgres:lines:7:a");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->kind, find_kind("postgres"));
  EXPECT_EQ(named->resource, "lines:7:a");
  EXPECT_EQ(parse_guarded("sqlite")->resource, "");
  for (const char* text : {"", "oracle:orders", "postgres:", "postgres::7"}) {
    EXPECT_EQ(parse_guarded(text).error().code, Code::kInvalid) << text;
  }
}

using Texts = std::vector<std::string>;

TEST(AssignDsns, OneDsnIsForAllGuards) {
  EXPECT_EQ(*assign_dsns({"postgres:a", "mariadb:b"}, {}), (Texts{"", ""}));
  EXPECT_EQ(*assign_dsns({"postgres:a", "postgres:b"}, {"host=x"}), (Texts{"host=x", "host=x"}));
}

TEST(AssignDsns, SeveralAreForTheGuardsInOrder) {
  EXPECT_EQ(*assign_dsns({"sqlite:a", "sqlite:b"}, {"a.db", "b.db"}), (Texts{"a.db", "b.db"}));
}

TEST(AssignDsns, KindEqualsDsnIsForGuardsOfThatKind) {
  EXPECT_EQ(*assign_dsns({"postgres:a", "sqlite:b", "postgres:c"},
                         {"sqlite=shop.db", "postgres=host=x dbname=shop"}),
            (Texts{"host=x dbname=shop", "shop.db", "host=x dbname=shop"}));
  EXPECT_EQ(*assign_dsns({"postgres:a", "sqlite:b"}, {"dbname=shop", "sqlite=shop.db"}),
            (Texts{"dbname=shop", "shop.db"}));
}

TEST(AssignDsns, NumbersThatDoNotFitAreRefused) {
  EXPECT_FALSE(assign_dsns({"postgres:a", "sqlite:b", "sqlite:c"}, {"x", "y"}));
  EXPECT_FALSE(assign_dsns({"postgres:a"}, {"x", "y"}));
  EXPECT_FALSE(assign_dsns({"postgres:a"}, {"postgres=x", "postgres=y"}));
  EXPECT_FALSE(assign_dsns({"postgres:a"}, {"sqlite=shop.db"}));
}

TEST(Form, IsReadAsItIsSpelled) {
  for (const Form form : kForms) EXPECT_EQ(parse_form(to_text(form)), form);
  EXPECT_EQ(parse_form("flying"), std::nullopt);
}

}  // namespace
}  // namespace pawl::guard
