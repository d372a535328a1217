// pawl::Election against a real pawld: candidates, observers, restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "e2e/pawld_process.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// What an observer received: the leader's value, "nobody", or the error.
class Chronicle {
 public:
  Election::Callback listener() {
    return [this](const Result<std::optional<Leader>>& leader) {
      const std::lock_guard lock(mutex_);
      told_.push_back(!leader   ? leader.error().detail
                      : *leader ? (*leader)->value.value_or("?")
                                : "nobody");
      if (leader && *leader) tokens_.push_back((*leader)->token);
    };
  }
  std::vector<std::string> received() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  std::vector<std::uint64_t> tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }
  bool ends_with(const std::string& last) {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      return !told_.empty() && told_.back() == last;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> told_;
  std::vector<std::uint64_t> tokens_;
};

class ElectionTest : public testing::Test {
 protected:
  static Lease elected(Election& election, std::string_view value, CampaignOptions options = {}) {
    auto leadership = election.campaign(value, std::move(options));
    if (!leadership) throw std::runtime_error(leadership.error().detail);
    return *std::move(leadership);
  }

  PawldProcess pawld;
  Client client{pawld.address()};
  Client other_client{pawld.address()};
  Election election{client, "chief"};
  Election other{other_client, "chief"};
};

TEST_F(ElectionTest, NextLeaderHasAGreaterToken) {
  Lease leadership = elected(election, "one");
  auto waiting = std::async(std::launch::async, [&] { return other.campaign("two"); });
  const auto token = leadership.token();
  const auto resigned = election.resign(std::move(leadership));
  EXPECT_TRUE(resigned);
  const auto next = waiting.get();
  ASSERT_TRUE(next) << next.error().detail;
  EXPECT_GT(next->token(), token);
}

TEST_F(ElectionTest, LeaderCanBeQueried) {
  const auto none = other.leader();
  ASSERT_TRUE(none) << none.error().detail;
  EXPECT_FALSE(*none);
  const Lease leadership = elected(election, "10.0.0.7:8080", {.owner = "me@host:1"});
  const auto leader = other.leader();
  ASSERT_TRUE(leader && *leader);
  EXPECT_EQ(**leader, (Leader{leadership.token(), "me@host:1", "10.0.0.7:8080"}));
}

TEST_F(ElectionTest, ValueIsEmptyByDefault) {
  const Lease leadership = elected(election, "");
  const auto leader = election.leader();
  ASSERT_TRUE(leader && *leader);
  EXPECT_EQ((*leader)->value, "");
}

TEST_F(ElectionTest, CampaignTimeoutReportsBusy) {
  const Lease leadership = elected(election, "one");
  const auto refused = other.campaign("two", {.wait = 10ms});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBusy);
}

TEST_F(ElectionTest, StopTokenEndsACampaign) {
  const Lease leadership = elected(election, "one");
  std::stop_source stop;
  auto waiting =
      std::async(std::launch::async, [&] { return other.campaign("two", {}, stop.get_token()); });
  stop.request_stop();
  const auto stopped = waiting.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kUnavailable);
}

TEST_F(ElectionTest, CampaignContinuesWhilePawldIsUnreachable) {
  pawld.kill();
  Client hasty(pawld.address(), {.call_timeout = 100ms});
  Election patient(hasty, "chief");
  const auto refused = patient.campaign("one", {.wait = 0ms});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  auto waiting = std::async(std::launch::async, [&] { return patient.campaign("one"); });
  pawld.start_again();
  const auto leadership = waiting.get();
  EXPECT_TRUE(leadership);
}

TEST_F(ElectionTest, LeadershipEndsWhenItIsUncertain) {
  const Lease leadership = elected(election, "one", {.ttl = 1s});
  std::promise<void> stopped;
  const std::stop_callback stop(leadership.lost(), [&] { stopped.set_value(); });
  pawld.kill();
  EXPECT_EQ(stopped.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_EQ(leadership.check().error().code, Code::kLeaseLost);
}

TEST_F(ElectionTest, ObserverSeesTheLeaderThenEveryChangeInOrder) {
  Lease first = elected(election, "0");
  Chronicle chronicle;
  const LeaderObservation observation = other.observe(chronicle.listener());
  ASSERT_TRUE(chronicle.ends_with("0"));
  std::vector<std::string> expected{"0"};
  std::vector<std::uint64_t> tokens{first.token()};
  Election beside(client, "chief2");  // The name of one is the beginning of the other's.
  std::optional<Lease> lease;
  auto waiting = std::async(std::launch::async, [&] { return other.campaign("1"); });
  EXPECT_TRUE(first.release());
  lease.emplace(*waiting.get());
  for (int i = 2; i < 12; ++i) {
    ASSERT_TRUE(
        chronicle.ends_with(std::to_string(i - 1)));  // So that its value could be asked for.
    expected.insert(expected.end(), {"nobody", std::to_string(i - 1)});
    tokens.push_back(lease->token());
    const Lease noise = elected(beside, "noise");
    ASSERT_TRUE(lease->release());
    lease.emplace(elected(election, std::to_string(i)));
  }
  ASSERT_TRUE(chronicle.ends_with("11"));
  expected.insert(expected.end(), {"nobody", "11"});
  tokens.push_back(lease->token());
  EXPECT_EQ(chronicle.received(), expected);
  EXPECT_EQ(chronicle.tokens(), tokens);
}

TEST_F(ElectionTest, ShortLeadershipsAreReportedInOrder) {
  Chronicle chronicle;
  const LeaderObservation observation = other.observe(chronicle.listener());
  ASSERT_TRUE(chronicle.ends_with("nobody"));
  std::vector<std::uint64_t> tokens;
  for (int i = 0; i < 50; ++i) {
    Lease leadership = elected(election, "quick");
    tokens.push_back(leadership.token());
    ASSERT_TRUE(leadership.release());
  }
  const Lease last = elected(election, "last");
  tokens.push_back(last.token());
  ASSERT_TRUE(chronicle.ends_with("last"));
  EXPECT_EQ(chronicle.tokens(), tokens);
  EXPECT_EQ(chronicle.received().size(), 2 * tokens.size());
}

TEST_F(ElectionTest, RestartOfPawldIsNoChangeOfLeader) {
  Lease first = elected(election, "one", {.ttl = 30s});
  Chronicle chronicle;
  const LeaderObservation observation = other.observe(chronicle.listener());
  ASSERT_TRUE(chronicle.ends_with("one"));
  pawld.kill();
  pawld.start_again();
  // Asked on the observer's connection, behind its OBSERVE: when this is answered, it is back.
  ASSERT_TRUE(eventually([&] { return other.leader().has_value(); }));
  auto waiting = std::async(std::launch::async, [&] { return other.campaign("two"); });
  EXPECT_TRUE(first.release(60s));
  const auto second = waiting.get();
  ASSERT_TRUE(second);
  ASSERT_TRUE(chronicle.ends_with("two"));
  EXPECT_THAT(chronicle.received(), ElementsAre("one", "nobody", "two"));
}

TEST_F(ElectionTest, ChangesDuringADisconnectAreReportedAfterwards) {
  Lease first = elected(election, "one", {.ttl = 30s});
  Chronicle chronicle;
  const LeaderObservation observation = other.observe(chronicle.listener());
  ASSERT_TRUE(chronicle.ends_with("one"));
  // pawld restarts, and the leadership has passed on before this observer is back: whether it
  // sees each step or only the result depends on the timing.
  pawld.kill();
  auto waiting = std::async(std::launch::async, [&] { return election.campaign("two"); });
  pawld.start_again();
  EXPECT_TRUE(first.release(60s));
  const auto second = waiting.get();
  ASSERT_TRUE(second);
  ASSERT_TRUE(chronicle.ends_with("two"));
  EXPECT_EQ(chronicle.received().front(), "one");
  EXPECT_EQ(chronicle.tokens().size(), 2u);
}

TEST_F(ElectionTest, DestroyedObservationReportsNothing) {
  Chronicle chronicle, second;
  std::optional<LeaderObservation> observation = other.observe(chronicle.listener());
  ASSERT_TRUE(chronicle.ends_with("nobody"));
  LeaderObservation later = other.observe(second.listener());
  observation.reset();
  const Lease leadership = elected(election, "one");
  ASSERT_TRUE(second.ends_with("one"));
  EXPECT_THAT(chronicle.received(), ElementsAre("nobody"));
}

TEST_F(ElectionTest, ObservationCanBeEndedInItsCallback) {
  std::mutex mutex;
  std::optional<LeaderObservation> observation;
  std::promise<void> ended;
  {
    const std::lock_guard lock(mutex);  // Until it is in its place.
    observation = other.observe([&](const auto&) {
      const std::lock_guard place(mutex);
      observation.reset();
      ended.set_value();  // A second call would throw.
    });
  }
  EXPECT_EQ(ended.get_future().wait_for(60s), std::future_status::ready);
  Chronicle second;
  const LeaderObservation later = other.observe(second.listener());
  const Lease leadership = elected(election, "one");
  EXPECT_TRUE(second.ends_with("one"));
}

TEST_F(ElectionTest, ObservationIsSilentAfterItsClientIsDestroyed) {
  Chronicle chronicle;
  std::optional<LeaderObservation> observation;
  {
    Client brief(pawld.address());
    Election its(brief, "chief");
    observation = its.observe(chronicle.listener());
    ASSERT_TRUE(chronicle.ends_with("nobody"));
  }
  const Lease leadership = elected(election, "one");
  observation.reset();
  EXPECT_THAT(chronicle.received(), ElementsAre("nobody"));
}

TEST_F(ElectionTest, UnusableClientReportsAnError) {
  Client wrong("nowhere:port");
  Election its(wrong, "chief");
  Chronicle chronicle;
  const LeaderObservation observation = its.observe(chronicle.listener());
  ASSERT_EQ(chronicle.received().size(), 1u);
  EXPECT_THAT(chronicle.received().front(), HasSubstr("nowhere"));
  EXPECT_EQ(its.leader().error().code, Code::kInvalid);
  EXPECT_EQ(its.campaign("one").error().code, Code::kInvalid);
}

TEST_F(ElectionTest, RefusedNameEndsTheObservation) {
  Election its(client, "");
  Chronicle chronicle;
  const LeaderObservation observation = its.observe(chronicle.listener());
  ASSERT_TRUE(eventually([&] { return !chronicle.received().empty(); }));
  EXPECT_THAT(chronicle.received().front(), HasSubstr("lock"));
  EXPECT_EQ(its.leader().error().code, Code::kInvalid);
}

TEST_F(ElectionTest, LeaderQueryFailsWithoutPawld) {
  pawld.kill();
  Client hasty(pawld.address(), {.call_timeout = 100ms});
  EXPECT_EQ(Election(hasty, "chief").leader().error().code, Code::kUnavailable);
}

TEST_F(ElectionTest, ForkedChildFailsWithoutHanging) {
  Chronicle chronicle;
  LeaderObservation observation = election.observe(chronicle.listener());
  ASSERT_TRUE(chronicle.ends_with("nobody"));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = election.leader().error().code == Code::kInvalid;
    { const LeaderObservation gone = std::move(observation); }
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Lease leadership = elected(election, "one");
  EXPECT_TRUE(chronicle.ends_with("one"));
}

}  // namespace
}  // namespace pawl
