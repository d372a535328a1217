#include "etcd/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "etcd/testlib/fake_cluster.h"

namespace pawl::etcd {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kRequest = encode(TxnRequest{.compare = {ValueIs{"head", "1"}},
                                               .success = {PutRequest{"head", "2"}},
                                               .failure = {RangeRequest{"head"}}});

class EtcdClient : public testing::Test {
 protected:
  void make(std::size_t endpoints, ClientOptions options = {}) {
    cluster_.emplace(endpoints);
    options.endpoints = cluster_->options().endpoints;
    client_.emplace(std::move(options), *cluster_);
    cluster_->run(*client_);
  }
  void run() { cluster_->run(*client_); }
  void pass(Nanos time) { cluster_->pass(*client_, time); }
  CallId transact() {
    const CallId call = client_->transact(kRequest);
    run();
    return call;
  }
  FakeCluster::Received& last_call() { return cluster_->calls.back(); }
  std::vector<TxnDone> done() { return cluster_->all<TxnDone>(); }
  std::size_t calls() { return cluster_->calls.size(); }

  std::optional<FakeCluster> cluster_;
  std::optional<Client> client_;
};

TEST_F(EtcdClient, ATransactionIsSentOnceAndAnswered) {
  make(1);
  const CallId call = transact();
  ASSERT_EQ(calls(), 1u);
  EXPECT_EQ(last_call().call.path, "/etcdserverpb.KV/Txn");
  EXPECT_EQ(last_call().call.message, kRequest);
  EXPECT_EQ(last_call().call.headers["hasleader"], "true");
  EXPECT_EQ(last_call().call.headers["grpc-timeout"], "3000000u");
  EXPECT_EQ(last_call().call.headers["te"], "trailers");
  cluster_->answer(last_call(), applied_answer());
  run();
  ASSERT_EQ(done().size(), 1u);
  EXPECT_EQ(done()[0].call, call);
  EXPECT_EQ(done()[0].outcome, TxnDone::Outcome::kApplied);
  EXPECT_EQ(done()[0].sends.count, 1u);
  EXPECT_EQ(done()[0].sends.first, cluster_->now);
  pass(5s);
  EXPECT_EQ(calls(), 1u);
}

TEST_F(EtcdClient, AFailedCompareShowsWhatIsThere) {
  make(1);
  transact();
  cluster_->answer(last_call(), compare_failed_answer("head", "9"));
  run();
  ASSERT_EQ(done().size(), 1u);
  EXPECT_EQ(done()[0].outcome, TxnDone::Outcome::kCompareFailed);
  EXPECT_EQ(done()[0].found->value, "9");
}

TEST_F(EtcdClient, NothingIsSentToAnEndpointThatHasNotAnswered) {
  cluster_.emplace(1);
  cluster_->freeze(0, true);
  client_.emplace(cluster_->options(), *cluster_);
  client_->transact(kRequest);
  pass(10s);
  EXPECT_EQ(calls(), 0u);
  EXPECT_GT(cluster_->connections(0), 1);
  cluster_->freeze(0, false);
  pass(2s);
  EXPECT_GE(calls(), 1u);
}

TEST_F(EtcdClient, WithoutAnAnswerTheSameBytesGoToTheNextEndpoint) {
  make(3);
  transact();
  const Instant first = cluster_->now;
  pass(1s);
  ASSERT_EQ(calls(), 2u);
  EXPECT_EQ(cluster_->calls[0].endpoint, 0u);
  EXPECT_EQ(cluster_->calls[1].endpoint, 1u);
  EXPECT_EQ(cluster_->calls[1].call.message, kRequest);
  EXPECT_EQ(cluster_->calls[1].at - cluster_->calls[0].at, 1s);
  // Counted from the first send: it may be the one that took effect.
  cluster_->answer(last_call(), compare_failed_answer("head", "2"));
  run();
  ASSERT_EQ(done().size(), 1u);
  EXPECT_EQ(done()[0].sends.first, first);
  EXPECT_EQ(done()[0].sends.count, 2u);
}

// It would send for ever and never hear: a busy etcd is slower the more it is asked.
TEST_F(EtcdClient, AnAnswerThatTakesLongerThanAnAttemptCounts) {
  make(3);
  transact();
  pass(2500ms);
  ASSERT_EQ(calls(), 3u) << "every endpoint was asked";
  cluster_->answer(cluster_->calls[0], applied_answer());
  run();
  ASSERT_EQ(done().size(), 1u);
  EXPECT_EQ(done()[0].outcome, TxnDone::Outcome::kApplied);
  EXPECT_EQ(cluster_->server(1).cancelled().size(), 1u) << "the others are not waited for";
  EXPECT_EQ(cluster_->server(2).cancelled().size(), 1u);
  pass(10s);
  EXPECT_EQ(calls(), 3u);
}

TEST_F(EtcdClient, AnEndpointIsNotAskedAgainWhileItMayStillAnswer) {
  make(2);
  transact();
  pass(2900ms);
  EXPECT_EQ(calls(), 2u);
  pass(200ms);
  ASSERT_EQ(calls(), 3u) << "the first one is given up after three attempts' time";
  EXPECT_EQ(last_call().endpoint, 0u);
  EXPECT_EQ(cluster_->server(0).cancelled().size(), 1u);
  cluster_->answer(cluster_->calls[1], applied_answer());
  run();
  EXPECT_EQ(done().size(), 1u);
}

TEST_F(EtcdClient, ALateRefusalOfAnEarlierSendDoesNotHastenTheNext) {
  make(3);
  transact();
  pass(1s);
  ASSERT_EQ(calls(), 2u);
  cluster_->refuse(cluster_->calls[0], "14", "etcdserver: request timed out");
  pass(500ms);
  EXPECT_EQ(calls(), 2u) << "the second one has its time";
  pass(500ms);
  EXPECT_EQ(calls(), 3u);
}

TEST_F(EtcdClient, EveryAnswerThatDoesNotDecideIsFollowedByTheSameBytes) {
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"14", "etcdserver: request timed out"},
      {"14", "etcdserver: leader changed"},
      {"14", "etcdserver: no leader"},
      {"2", "context deadline exceeded"},
      {"4", "context deadline exceeded"},
      {"8", "etcdserver: mvcc: database space exceeded"},
      {"9", "anything"},
      {"13", "anything"},
      {"12", "unknown service"},
      {"99", "a code of the future"},
      {"no number", ""},
  };
  make(2);
  transact();
  for (const auto& [code, text] : answers) {
    const std::size_t before = calls();
    cluster_->refuse(last_call(), code, text);
    run();
    EXPECT_EQ(calls(), before) << "sent again too soon after code " << code;
    pass(50ms);
    ASSERT_EQ(calls(), before + 1) << code;
    EXPECT_EQ(last_call().call.message, kRequest);
    EXPECT_NE(last_call().endpoint, cluster_->calls[before - 1].endpoint);
  }
  EXPECT_TRUE(done().empty());
  EXPECT_GE(cluster_->all<Trouble>().size(), answers.size());
}

TEST_F(EtcdClient, AWrongOrForbiddenRequestEndsWithEtcdsWords) {
  make(2);
  for (const auto& [code, text] : std::vector<std::pair<std::string, std::string>>{
           {"3", "etcdserver: duplicate key"}, {"7", "etcdserver: permission denied"}}) {
    transact();
    cluster_->refuse(last_call(), code, text);
    run();
    ASSERT_FALSE(done().empty());
    EXPECT_EQ(done().back().outcome, TxnDone::Outcome::kFatal);
    EXPECT_THAT(done().back().text, HasSubstr(text));
  }
}

TEST_F(EtcdClient, AnAnswerWithoutAStatusDoesNotCount) {
  make(1);
  transact();
  std::string frame;
  put_frame(frame, applied_answer());
  cluster_->server(0).answer_raw(last_call().call.stream, frame);
  pass(50ms);
  EXPECT_TRUE(done().empty());
  EXPECT_EQ(calls(), 2u);
}

TEST_F(EtcdClient, AnAnswerThatCannotBeReadDoesNotCount) {
  make(1);
  transact();
  cluster_->answer(last_call(), "\xff\xff");
  pass(50ms);
  EXPECT_TRUE(done().empty());
  EXPECT_EQ(calls(), 2u);
}

TEST_F(EtcdClient, ALostConnectionIsOpenedAgainAndTheCallSentAgain) {
  make(1);
  transact();
  cluster_->cut(*client_, 0);
  pass(1s);
  EXPECT_TRUE(done().empty());
  ASSERT_EQ(calls(), 2u);
  EXPECT_EQ(last_call().call.message, kRequest);
  EXPECT_EQ(cluster_->connections(0), 2);
}

TEST_F(EtcdClient, AResetStreamIsSentAgain) {
  make(2);
  transact();
  cluster_->server(0).reset(last_call().call.stream);
  pass(50ms);
  ASSERT_EQ(calls(), 2u);
  EXPECT_EQ(last_call().endpoint, 1u);
}

TEST_F(EtcdClient, AServerThatGoesAwayFinishesItsCallsAndIsConnectedAgain) {
  make(1);
  transact();
  cluster_->server(0).go_away();
  run();
  client_->range({"key"});
  run();
  EXPECT_EQ(calls(), 1u);  // The new call waits for the new connection.
  cluster_->answer(last_call(), applied_answer());
  pass(1s);
  ASSERT_EQ(done().size(), 1u);
  EXPECT_EQ(done()[0].sends.count, 1u);
  EXPECT_EQ(cluster_->connections(0), 2);
  EXPECT_EQ(calls(), 2u);
}

TEST_F(EtcdClient, AConnectionThatIsSilentIsClosed) {
  make(2);
  cluster_->freeze(0, true);
  const CallId call = transact();
  pass(1s);
  ASSERT_EQ(calls(), 1u);
  EXPECT_EQ(last_call().endpoint, 1u);
  EXPECT_FALSE(client_->endpoints()[0].usable);
  cluster_->answer(last_call(), applied_answer());
  run();
  EXPECT_EQ(done()[0].call, call);
  cluster_->freeze(0, false);
  pass(3s);
  EXPECT_TRUE(client_->endpoints()[0].usable);
}

TEST_F(EtcdClient, ACallWithMuchTimeLeavesASilentEndpoint) {
  make(2, {.attempt_time = 200ms});
  cluster_->freeze(0, true);
  client_->range({"key"}, 10s);
  pass(2s);
  ASSERT_EQ(calls(), 1u);
  EXPECT_EQ(last_call().endpoint, 1u);
  EXPECT_FALSE(client_->endpoints()[0].usable);
}

TEST_F(EtcdClient, TheLeaderIsPreferred) {
  make(3);
  cluster_->leader = 3;
  pass(10s);
  transact();
  EXPECT_EQ(last_call().endpoint, 2u);
}

TEST_F(EtcdClient, AnEndpointThatRefusesConnectionsIsReportedOnce) {
  cluster_.emplace(2);
  cluster_->refuse_connections(1, true);
  client_.emplace(cluster_->options(), *cluster_);
  pass(5s);
  EXPECT_EQ(cluster_->all<Trouble>().size(), 1u);
  EXPECT_EQ(client_->endpoints()[1].error, "Connection refused");
}

TEST_F(EtcdClient, AnEndpointOfAnotherClusterIsNotUsed) {
  cluster_.emplace(2);
  cluster_->use_cluster_id(1, 8);
  client_.emplace(cluster_->options(), *cluster_);
  pass(1s);
  EXPECT_TRUE(client_->endpoints()[0].usable);
  EXPECT_FALSE(client_->endpoints()[1].usable);
  EXPECT_THAT(client_->endpoints()[1].error, HasSubstr("another etcd cluster"));
}

// --- Revisions -----------------------------------------------------------------------------------

TEST_F(EtcdClient, ARevisionBelowOneThatWasSeenBeforeTheSendWentBack) {
  make(1);
  transact();
  cluster_->answer(last_call(), applied_answer({.revision = 100}));
  run();
  transact();
  cluster_->answer(last_call(), compare_failed_answer("head", "1", {.revision = 50}));
  run();
  ASSERT_EQ(done().size(), 2u);
  EXPECT_FALSE(done()[0].went_back);
  EXPECT_TRUE(done()[1].went_back);
}

TEST_F(EtcdClient, AnAnswerThatWasOvertakenDidNotGoBack) {
  make(1);
  client_->range({"key"});
  run();
  const FakeCluster::Received early = last_call();
  transact();
  cluster_->answer(last_call(), applied_answer({.revision = 100}));
  run();
  cluster_->answer(early, range_answer("key", "value", {.revision = 99}));
  run();
  ASSERT_EQ(cluster_->all<RangeDone>().size(), 1u);
  EXPECT_FALSE(cluster_->all<RangeDone>()[0].went_back);
}

// --- Tokens --------------------------------------------------------------------------------------

TEST_F(EtcdClient, CallsWaitForTheTokenAndCarryIt) {
  make(1, {.user = "pawld", .password = "word"});
  transact();
  ASSERT_EQ(calls(), 1u);
  EXPECT_EQ(last_call().call.path, "/etcdserverpb.Auth/Authenticate");
  EXPECT_EQ(last_call().call.message, encode(AuthenticateRequest{"pawld", "word"}));
  cluster_->answer(last_call(), token_answer("t1"));
  run();
  ASSERT_EQ(calls(), 2u);
  EXPECT_EQ(last_call().call.headers["token"], "t1");
}

// etcd hashes the password on purpose so that it takes long.
TEST_F(EtcdClient, ALoginThatTakesLongGetsMoreTimeAfterEachAttempt) {
  make(1, {.user = "pawld", .password = "word"});
  transact();
  ASSERT_EQ(last_call().call.path, "/etcdserverpb.Auth/Authenticate");
  const std::size_t before = cluster_->calls.size();
  pass(15s);
  EXPECT_GE(cluster_->calls.size(), before + 2);
  EXPECT_LE(cluster_->calls.size(), before + 4) << "after 1, 3, 7 and 15 s";
  cluster_->answer(last_call(), token_answer("t1"));
  run();
  EXPECT_EQ(last_call().call.headers["token"], "t1");
}

TEST_F(EtcdClient, AnInvalidTokenIsReplacedAndTheCallSentAgain) {
  make(1, {.user = "pawld", .password = "word"});
  transact();
  cluster_->answer(last_call(), token_answer("t1"));
  run();
  cluster_->refuse(last_call(), "16", "etcdserver: invalid auth token");
  run();
  ASSERT_EQ(calls(), 3u);
  EXPECT_EQ(last_call().call.path, "/etcdserverpb.Auth/Authenticate");
  cluster_->answer(last_call(), token_answer("t2"));
  pass(50ms);
  ASSERT_EQ(calls(), 4u);
  EXPECT_EQ(last_call().call.headers["token"], "t2");
  EXPECT_EQ(last_call().call.message, kRequest);
  EXPECT_TRUE(done().empty());
}

TEST_F(EtcdClient, AnEndpointThatTellsItsStatusToUsersOnlyIsUsed) {
  cluster_.emplace(1);
  cluster_->status_needs_token = true;
  ClientOptions options = cluster_->options();
  options.user = "pawld";
  client_.emplace(options, *cluster_);
  transact();
  ASSERT_EQ(calls(), 1u);
  EXPECT_EQ(last_call().call.path, "/etcdserverpb.Auth/Authenticate");
  cluster_->answer(last_call(), token_answer("t1"));
  run();
  ASSERT_EQ(calls(), 2u);
  cluster_->answer(last_call(), applied_answer());
  pass(2s);
  EXPECT_EQ(done().size(), 1u);
  EXPECT_TRUE(client_->endpoints()[0].status.has_value());
}

TEST_F(EtcdClient, ARefusedPasswordEndsTheCallsThatWaitForIt) {
  make(1, {.user = "pawld", .password = "wrong"});
  transact();
  cluster_->refuse(last_call(), "3", "etcdserver: authentication failed, invalid user ID");
  run();
  ASSERT_EQ(done().size(), 1u);
  EXPECT_EQ(done()[0].outcome, TxnDone::Outcome::kFatal);
  EXPECT_EQ(done()[0].sends.count, 0u);
  EXPECT_THAT(done()[0].text, HasSubstr("refuses the user \"pawld\""));
}

// --- Ranges, compaction, watches -----------------------------------------------------------------

TEST_F(EtcdClient, ARangeOfAForgottenRevisionSaysSo) {
  make(1);
  client_->range({.key = "key", .revision = 3});
  run();
  cluster_->refuse(last_call(), "11", "etcdserver: mvcc: required revision has been compacted");
  run();
  ASSERT_EQ(cluster_->all<RangeDone>().size(), 1u);
  EXPECT_EQ(cluster_->all<RangeDone>()[0].outcome, RangeDone::Outcome::kCompacted);
}

TEST_F(EtcdClient, ARangeMayHaveMoreTimeThanATransaction) {
  make(1);
  client_->range({"key"}, 10s);
  pass(9s);
  ASSERT_EQ(calls(), 1u);
  EXPECT_EQ(last_call().call.headers["grpc-timeout"], "10000000u");
  pass(2s);
  EXPECT_EQ(calls(), 2u);
}

TEST_F(EtcdClient, ACompactionIsSentOnce) {
  make(2);
  client_->compact(5);
  run();
  EXPECT_EQ(last_call().call.message, encode(CompactionRequest{5}));
  pass(5s);
  EXPECT_EQ(calls(), 1u);
  ASSERT_EQ(cluster_->all<CompactionDone>().size(), 1u);
  EXPECT_FALSE(cluster_->all<CompactionDone>()[0].done);
}

TEST_F(EtcdClient, TheNextWatchGoesToAnotherEndpoint) {
  make(3);
  std::set<std::size_t> endpoints;
  for (int i = 0; i < 3; ++i) {
    client_->watch({.key = "head"});
    run();
    endpoints.insert(last_call().endpoint);
    cluster_->server(last_call().endpoint).send(last_call().call.stream, watch_created_answer());
    run();
  }
  EXPECT_EQ(endpoints.size(), 3u);
  EXPECT_EQ(cluster_->all<WatchAnswer>().size(), 3u);
}

TEST_F(EtcdClient, AWatchThatIsNotCreatedInTimeEnds) {
  make(1);
  const CallId call = client_->watch({.key = "head"});
  pass(1s);
  ASSERT_EQ(cluster_->all<WatchEnded>().size(), 1u);
  EXPECT_EQ(cluster_->all<WatchEnded>()[0].call, call);
}

TEST_F(EtcdClient, AWatchThatExistsMayBeSilent) {
  make(1);
  client_->watch({.key = "head"});
  run();
  cluster_->server(0).send(last_call().call.stream, watch_created_answer());
  pass(60s);
  EXPECT_TRUE(cluster_->all<WatchEnded>().empty());
}

TEST_F(EtcdClient, AWatchEndsWithItsConnection) {
  make(1);
  client_->watch({.key = "head"});
  run();
  cluster_->server(0).send(last_call().call.stream, watch_created_answer());
  run();
  cluster_->cut(*client_, 0);
  run();
  ASSERT_EQ(cluster_->all<WatchEnded>().size(), 1u);
  EXPECT_EQ(cluster_->all<WatchEnded>()[0].text, "Connection reset by peer");
}

TEST_F(EtcdClient, ACancelledCallHasNoEventAndIsResetAtTheServer) {
  make(1);
  const CallId call = transact();
  client_->cancel(call);
  run();
  EXPECT_EQ(cluster_->server(0).cancelled().size(), 1u);
  cluster_->answer(last_call(), applied_answer());
  pass(5s);
  EXPECT_TRUE(done().empty());
  EXPECT_EQ(calls(), 1u);
}

// --- Time ----------------------------------------------------------------------------------------

TEST_F(EtcdClient, AfterAPumpTheDeadlineIsInTheFuture) {
  cluster_.emplace(3);
  cluster_->refuse_connections(1, true);
  cluster_->freeze(2, true);
  client_.emplace(cluster_->options(), *cluster_);
  for (int i = 0; i < 200; ++i) {
    if (i % 10 == 0) client_->transact(kRequest, Millis(i + 1));
    if (i % 25 == 24) cluster_->freeze(0, i % 2 == 0);
    run();
    ASSERT_GT(client_->deadline(), cluster_->now) << "the owner's loop would spin";
    cluster_->now = client_->deadline();
  }
}

}  // namespace
}  // namespace pawl::etcd
