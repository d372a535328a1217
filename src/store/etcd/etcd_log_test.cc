// The shared log over a fake etcd: which requests are sent, and what the answers mean.
// tests/etcd/store_test.py runs it against the real one.
#include "store/etcd/etcd_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "etcd/testlib/fake_cluster.h"

namespace pawl::store::etcd_log {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using Outcome = cluster::SharedLog::WriteAnswer::Outcome;

TEST(EtcdKeys, SortByNumberAndAreReadBack) {
  const Keys keys("p");
  EXPECT_EQ(keys.entry(255), "pawl/p/log/00000000000000ff");
  EXPECT_LT(keys.entry(255), keys.entry(256));
  EXPECT_EQ(keys.entry_number(keys.entry(1234)), 1234u);
  for (const std::string key :
       {"pawl/p/head", "pawl/p/log/00000000000000FF", "pawl/q/log/00000000000000ff",
        "pawl/p/log/0000000000000ff", "pawl/p/log/00000000000000fff"})
    EXPECT_FALSE(keys.entry_number(key)) << key;
}

TEST(EtcdKeys, ANameOfAClusterIsOnePartOfAPath) {
  EXPECT_TRUE(is_cluster_name("prod-1.eu_west"));
  for (const std::string& name : {std::string(""), std::string("a/b"), std::string(65, 'x')})
    EXPECT_FALSE(is_cluster_name(name)) << name;
}

TEST(EtcdVersion, ReleasesThatMayReadOldDataAreNamed) {
  EXPECT_THAT(version_problem("3.4.23"), HasSubstr("3.4.42"));
  EXPECT_THAT(version_problem("3.5.27"), HasSubstr("3.5.28"));
  for (const char* good : {"3.4.42", "3.5.28", "3.6.9", "3.7.0", "4.0.0"})
    EXPECT_THAT(version_problem(good), IsEmpty()) << good;
  EXPECT_THAT(version_problem("3.3.9"), HasSubstr("needs"));
  EXPECT_THAT(version_problem("dev"), HasSubstr("not known"));
}

TEST(EtcdNodes, OneThatDoesNotReportIsSilent) {
  const Keys keys("c");
  Nodes here(keys, {.address = "a:1", .id = 1, .pid = 10});
  Nodes other(keys, {.address = "b:1", .id = 2, .pid = 20});
  // What etcd would return: each report as it was put.
  std::map<std::string, std::string> stored;
  const auto put = [&](Nodes& nodes, const char* role) {
    const std::string request = nodes.report(role);
    // The value is the last field of the put, which is the last operation.
    const std::string value = request.substr(request.size() - 26 - std::string(role).size());
    stored[keys.node(nodes.address())] = value;
  };
  const auto take = [&](Instant now) {
    etcd::RangeResponse found;
    for (const auto& [key, value] : stored) found.kvs.push_back({.key = key, .value = value});
    here.take({found}, now);
  };
  put(here, "active");
  put(other, "standby");
  const Instant start{100s};
  take(start);
  auto nodes = here.list(start);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].role, "active");
  EXPECT_TRUE(nodes[0].is_self);
  EXPECT_EQ(nodes[1].role, "standby");
  EXPECT_EQ(nodes[1].pid, 20u);
  put(here, "active");
  take(start + 10s);
  nodes = here.list(start + 10s);
  EXPECT_EQ(nodes[0].role, "active");
  EXPECT_EQ(nodes[1].role, "silent");
}

class Answers final : public cluster::SharedLog::Listener {
 public:
  void written(const cluster::SharedLog::WriteAnswer& answer) override { writes.push_back(answer); }
  void read(const cluster::SharedLog::ReadAnswer& answer) override { reads.push_back(answer); }
  void failed(const Error& error) override { failures.push_back(error.detail); }
  std::vector<cluster::SharedLog::WriteAnswer> writes;
  std::vector<cluster::SharedLog::ReadAnswer> reads;
  std::vector<std::string> failures;
};

class EtcdLogTest : public testing::Test {
 protected:
  void SetUp() override { log.listen(&answers); }
  void run() {
    fake.run(client);
    for (const etcd::Event& event : std::exchange(fake.events, {})) log.on_event(event);
  }

  etcd::FakeCluster fake{1};
  etcd::Client client{fake.options(), fake};
  EtcdLog log{client, {.cluster = "c"}, [this] { return fake.now; }, [] {}};
  Answers answers;
};

TEST_F(EtcdLogTest, AFailedCompareReturnsTheHeadThatIsThere) {
  log.write({.expected = "old", .head = "new", .entry = 7, .bytes = "entry"});
  run();
  ASSERT_EQ(fake.calls.size(), 1u);
  fake.answer(fake.calls.at(0), etcd::compare_failed_answer("pawl/c/head", "other"));
  run();
  ASSERT_EQ(answers.writes.size(), 1u);
  EXPECT_EQ(answers.writes[0].outcome, Outcome::kRefused);
  EXPECT_EQ(answers.writes[0].found, "other");
}

TEST_F(EtcdLogTest, AWriteAfterWhichEtcdIsOlderEndsIt) {
  log.write({.expected = "a", .head = "b"});
  run();
  fake.answer(fake.calls.at(0), etcd::applied_answer({.revision = 50}));
  run();
  ASSERT_EQ(answers.writes.size(), 1u);
  log.write({.expected = "b", .head = "c"});
  run();
  fake.answer(fake.calls.at(1), etcd::applied_answer({.revision = 20}));
  run();
  ASSERT_EQ(answers.failures.size(), 1u);
  EXPECT_THAT(answers.failures[0], HasSubstr("restored from a snapshot"));
  EXPECT_EQ(answers.writes.size(), 1u) << "it is not said to be applied";
}

TEST_F(EtcdLogTest, ASingleOldReadSaysNothing) {
  log.write({.expected = "a", .head = "b"});
  run();
  fake.answer(fake.calls.at(0), etcd::applied_answer({.revision = 50}));
  run();
  for (int i = 1; i <= 10; ++i) {
    EXPECT_THAT(answers.failures, IsEmpty());
    log.read({.from = 1, .most = 10});
    run();
    fake.answer(fake.calls.at(static_cast<std::size_t>(i)), etcd::applied_answer({.revision = 20}));
    run();
  }
  EXPECT_EQ(answers.reads.size(), 9u);
  for (const auto& read : answers.reads) EXPECT_FALSE(read.known);
  ASSERT_EQ(answers.failures.size(), 1u);
}

}  // namespace
}  // namespace pawl::store::etcd_log
