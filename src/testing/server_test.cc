// pawl::testing::Server as its users have it: only public headers, against the shared libraries.
#include "pawl/testing/server.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/pawl.h"

namespace pawl::testing {
namespace {

using namespace std::chrono_literals;

Lease take(Client& client, const char* lock, AcquireOptions options = {.ttl = 15s}) {
  auto lease = client.acquire(lock, std::move(options));
  if (!lease) throw std::runtime_error(lease.error().detail);
  return *std::move(lease);
}

// --- Losing a lease ------------------------------------------------------------------------------

TEST(TestingServer, LeaseIsLostAfterItsTtl) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  EXPECT_TRUE(lease.check());
  EXPECT_EQ(server.holders("job").size(), 1U);
  EXPECT_EQ(server.holders("job").front().token, lease.token());

  server.advance(15s);
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_EQ(lease.check().error().code, Code::kLeaseLost);
  EXPECT_EQ(lease.remaining(), 0ns);
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_TRUE(server.holders("job").empty());
}

TEST(TestingServer, CallbacksHaveRunWhenAdvanceReturns) {
  Server server;
  Client client = server.client();
  std::atomic<bool> cancelled = false;
  std::atomic<LeaseState> reported = LeaseState::kHeld;
  const Lease lease = take(
      client, "job",
      {.ttl = 15s, .on_change = [&](LeaseState state, const std::string&) { reported = state; }});
  const std::stop_callback cancel(lease.lost(), [&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(server.holders("job").empty());  // It takes its time.
    cancelled = true;
  });
  server.advance(20s);
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(reported, LeaseState::kLost);
}

TEST(TestingServer, HolderHearsThatItsReleaseIsWanted) {
  Server server;
  Client client = server.client();
  Lease lease = take(client, "job");
  std::vector<ReleaseWanted> heard;  // Only on the callback thread until run_for() returns.
  lease.on_release_wanted([&](const ReleaseWanted& wanted) { heard.push_back(wanted); });
  EXPECT_FALSE(server.ask_for("other", "bob", ""));
  server.run_for(6s);
  EXPECT_TRUE(heard.empty());
  EXPECT_TRUE(server.ask_for("job", "bob", "a deployment waits"));
  server.run_for(6s);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].lock, "job");
  EXPECT_EQ(heard[0].by, "bob");
  EXPECT_EQ(heard[0].reason, "a deployment waits");
  server.run_for(30s);
  EXPECT_EQ(heard.size(), 1U) << "once";
  EXPECT_EQ(lease.state(), LeaseState::kHeld) << "it decides itself";
  EXPECT_TRUE(server.ask_for("job", "carol", ""));
  server.run_for(6s);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[1].by, "carol");
}

TEST(TestingServer, CallbackSetAfterAnAskHearsOfIt) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  server.ask_for("job", "bob", "early");
  server.run_for(6s);
  std::atomic<int> first = 0, second = 0;
  lease.on_release_wanted([&](const ReleaseWanted&) { ++first; });
  server.run_for(1s);
  EXPECT_EQ(first, 1);
  lease.on_release_wanted([&](const ReleaseWanted&) { ++second; });
  server.ask_for("job", "bob", "again");
  server.run_for(6s);
  EXPECT_EQ(first, 1) << "replaced";
  EXPECT_EQ(second, 1);
}

TEST(TestingServer, HolderMayReleaseInsideTheCallback) {
  Server server;
  Client client = server.client();
  std::optional<Lease> lease = take(client, "job");
  lease->on_release_wanted([&](const ReleaseWanted&) { lease.reset(); });
  server.ask_for("job", "bob", "");
  server.run_for(6s);
  EXPECT_TRUE(server.holders("job").empty());
}

TEST(TestingServer, FrozenWorkerFindsItsLeaseLostBeforeAnyCallback) {
  Server server;
  Client client = server.client();
  std::atomic<bool> called_back = false;
  const Lease lease =
      take(client, "job",
           {.ttl = 15s, .on_change = [&](LeaseState, const std::string&) { called_back = true; }});
  std::latch stuck(1);
  client.acquire_async({"other"}, {}, [&](const Result<Lease>&) { stuck.wait(); });

  server.advance(20s);
  EXPECT_FALSE(called_back);
  EXPECT_FALSE(lease.check());
  stuck.count_down();
}

TEST(TestingServer, NextHolderHasAGreaterToken) {
  Server server;
  Client first = server.client();
  Client second = server.client();
  const Lease old = take(first, "job");
  EXPECT_EQ(second.acquire("job").error().code, Code::kBusy);
  server.advance(15s);
  const Lease next = take(second, "job");
  EXPECT_GT(next.token(), old.token());
  EXPECT_EQ(old.state(), LeaseState::kLost);
  EXPECT_EQ(next.state(), LeaseState::kHeld);
}

TEST(TestingServer, WaiterIsServedAfterTheOldHolderLostIt) {
  Server server;
  Client first = server.client();
  Client second = server.client();
  const Lease old = take(first, "job");
  std::optional<Lease> next;
  std::optional<LeaseState> then;
  second.acquire_async({"job"}, {.ttl = 10min, .wait = 1h}, [&](Result<Lease> lease) {
    then = old.state();
    if (lease) next = *std::move(lease);
  });
  server.advance(1s);
  EXPECT_EQ(server.waiters("job"), 1U);

  server.advance(9min);  // Long, so that a grant reported too early would be noticed.
  ASSERT_TRUE(next);
  EXPECT_EQ(then, LeaseState::kLost);
  EXPECT_GT(next->token(), old.token());
  EXPECT_EQ(next->state(), LeaseState::kHeld);
  EXPECT_EQ(server.waiters("job"), 0U);
}

TEST(TestingServer, WorkerWithoutProgressIsNotRenewed) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job", {.ttl = 15s, .progress_every = 10s});
  for (int i = 0; i < 6; ++i) {
    server.run_for(5s);
    lease.progress();
  }
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  server.run_for(30s);
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_TRUE(server.holders("job").empty());
}

// --- Keeping it ----------------------------------------------------------------------------------

TEST(TestingServer, RunForKeepsALeaseRenewed) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  server.run_for(2min);
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  ASSERT_EQ(server.holders("job").size(), 1U);
  EXPECT_EQ(server.holders("job").front().token, lease.token());
}

TEST(TestingServer, RunForKeepsAShortLease) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job", {.ttl = 3s});
  server.run_for(20s);
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
}

TEST(TestingServer, AdvanceBelowTheTtlRenewsTheLease) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  for (int i = 0; i < 10; ++i) {
    server.advance(8s);
    ASSERT_EQ(lease.state(), LeaseState::kHeld);
    ASSERT_GT(lease.remaining(), 12s);
  }
}

TEST(TestingServer, AllClientsAreAnsweredWhenAdvanceReturns) {
  Server server;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Lease> leases;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(new Client(server.client()));
    leases.push_back(take(*clients.back(), ("job " + std::to_string(i)).c_str()));
  }
  for (int round = 0; round < 20; ++round) {
    server.advance(8s);
    for (const Lease& lease : leases) ASSERT_EQ(lease.state(), LeaseState::kHeld);
  }
}

TEST(TestingServer, LeaseIsUncertainBeforeItIsLost) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  server.advance(13s);
  EXPECT_EQ(lease.state(), LeaseState::kUncertain);
  EXPECT_FALSE(lease.check());
  EXPECT_GT(lease.remaining(), 0s);
  EXPECT_EQ(server.holders("job").size(), 1U);
}

// --- Faults --------------------------------------------------------------------------------------

TEST(TestingServer, DisconnectedHolderIsUncertainBeforeTheNextGrant) {
  Server server;
  Client first = server.client();
  Client second = server.client();
  const Lease lease = take(first, "job");
  server.stop_answering();
  server.run_for(13s);
  EXPECT_EQ(lease.state(), LeaseState::kUncertain);
  EXPECT_EQ(server.holders("job").size(), 1U);

  server.answer_again();
  EXPECT_EQ(second.acquire("job").error().code, Code::kBusy);
  server.run_for(3s);
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_GT(take(second, "job").token(), lease.token());
}

TEST(TestingServer, ShortOutageKeepsTheLease) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  server.stop_answering();
  server.run_for(8s);
  EXPECT_EQ(lease.state(), LeaseState::kAtRisk);
  server.answer_again();
  server.run_for(1s);
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
}

// The figure in the README: with a TTL of 15 s an outage of 5 s costs no holder its lease, whenever
// it begins.
TEST(TestingServer, OutageOfAThirdOfTheTtlKeepsEveryLease) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  for (int round = 0; round < 24; ++round) {
    server.run_for(15s + round * 250ms);  // Rounds begin at different times after the last renewal.
    server.stop_answering();
    server.run_for(5s);
    server.answer_again();
    server.run_for(2s);
    ASSERT_EQ(lease.state(), LeaseState::kHeld) << "round " << round;
    ASSERT_FALSE(lease.lost().stop_requested()) << "round " << round;
  }
}

TEST(TestingServer, SilentServerGrantsNothing) {
  Server server;
  server.stop_answering();
  Client client = server.client({.call_timeout = 1s});
  auto asked = std::async(std::launch::async, [&] { return client.acquire("job").error().code; });
  server.run_for(2s);
  EXPECT_EQ(asked.get(), Code::kUnavailable);
  EXPECT_TRUE(server.holders("job").empty());
}

TEST(TestingServer, RetryAfterALostReplyReturnsTheSameGrant) {
  Server server;
  std::atomic<std::size_t> held_when_cut = 0;  // It was granted, and not only asked for.
  Client client = server.client({.metric = [&](std::string_view counter, double) {
    if (counter == "disconnects") held_when_cut = server.holders("job").size();
  }});
  server.lose_next_reply();
  const Lease lease = take(client, "job");
  server.advance(0s);
  EXPECT_EQ(held_when_cut, 1U);
  ASSERT_EQ(server.holders("job").size(), 1U);
  EXPECT_EQ(server.holders("job").front().token, lease.token());
  EXPECT_EQ(take(client, "other").token(), lease.token() + 1);
}

TEST(TestingServer, LeaseOutlivesItsConnection) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  for (int i = 0; i < 5; ++i) {
    server.drop_connections();
    server.run_for(6s);
    ASSERT_EQ(lease.state(), LeaseState::kHeld);
  }
}

TEST(TestingServer, LeaseOutlivesARestartAndTokensGrow) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  server.advance(10s);
  server.restart();
  EXPECT_EQ(server.holders("job").size(), 1U);
  server.run_for(1min);
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  EXPECT_GT(take(client, "other").token(), lease.token());
}

// --- Breaking ------------------------------------------------------------------------------------

TEST(TestingServer, BrokenLeaseIsLostAtItsNextRenewal) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  EXPECT_FALSE(server.break_lock("free"));
  EXPECT_TRUE(server.break_lock("job"));
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
  EXPECT_EQ(client.acquire("job").error().code, Code::kBusy);
  server.run_for(6s);
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_EQ(server.holders("job").size(), 1U);  // It has not run out.
  server.advance(10s);
  EXPECT_TRUE(server.holders("job").empty());
}

TEST(TestingServer, BreakNowGrantsWhileTheHolderStillHolds) {
  Server server;
  Client first = server.client();
  Client second = server.client();
  const Lease old = take(first, "job");
  EXPECT_TRUE(server.break_lock_now("job"));
  const Lease next = take(second, "job");
  EXPECT_GT(next.token(), old.token());
  EXPECT_EQ(old.state(), LeaseState::kHeld);
  server.run_for(6s);
  EXPECT_EQ(old.state(), LeaseState::kLost);
}

TEST(TestingServer, AllSharedHoldersAreListedAndBroken) {
  Server server;
  Client client = server.client();
  const Lease one = take(client, "job", {.sharing = Sharing::kShared, .owner = "one"});
  const Lease two = take(client, "job", {.sharing = Sharing::kShared, .owner = "two"});
  EXPECT_EQ(server.holders("job"),
            (std::vector<Holder>{{one.token(), "one"}, {two.token(), "two"}}));
  EXPECT_TRUE(server.break_lock_now("job"));
  EXPECT_TRUE(server.holders("job").empty());
}

// --- Living together -----------------------------------------------------------------------------

TEST(TestingServer, ServersHaveSeparateClocks) {
  Server one;
  Server two;
  Client of_one = one.client();
  Client of_two = two.client();
  const Lease lost = take(of_one, "job");
  const Lease kept = take(of_two, "job");
  EXPECT_NE(one.address(), two.address());
  one.advance(20s);
  EXPECT_EQ(lost.state(), LeaseState::kLost);
  EXPECT_EQ(kept.state(), LeaseState::kHeld);
}

TEST(TestingServer, OtherClientsUseTheRealClock) {
  Server server;
  Client mine = server.client();
  Client other(server.address());
  const Lease lease = take(other, "job");
  EXPECT_EQ(mine.acquire("job").error().code, Code::kBusy);
  server.advance(20s);
  EXPECT_GT(lease.remaining(), 10s);
  EXPECT_GT(take(mine, "job").token(), lease.token());
}

TEST(TestingServer, DeadlineBoottimeIsRealTime) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  const auto before = lease.deadline_boottime();
  server.advance(3s);
  EXPECT_LE(lease.deadline_boottime(), before - 3s);
  EXPECT_GE(lease.deadline_boottime(), before - 4s);
}

TEST(TestingServer, CallbackMayMoveTime) {
  Server server;
  Client client = server.client();
  std::promise<LeaseState> seen;
  client.acquire_async({"job"}, {.ttl = 15s}, [&](Result<Lease> lease) {
    server.advance(20s);
    seen.set_value(lease->state());
  });
  EXPECT_EQ(seen.get_future().get(), LeaseState::kLost);
}

TEST(TestingServer, BusyClientsDoNotBlockAdvance) {
  Server server;
  Client client = server.client();
  const Lease lease = take(client, "job");
  const auto work = [&](const std::stop_token& stop, std::string lock) {
    Client worker = server.client();
    while (!stop.stop_requested()) EXPECT_TRUE(worker.acquire(lock));
  };
  std::vector<std::jthread> busy;
  for (const char* lock : {"a", "b", "c", "d", "e", "f", "g", "h"}) busy.emplace_back(work, lock);
  server.run_for(6s);
  EXPECT_GT(lease.remaining(), 10s);  // So it was renewed.
}

TEST(TestingServer, ForkedChildLeavesTheServerAlone) {
  std::optional<Server> server(std::in_place);
  Client client = server->client();
  const Lease lease = take(client, "job");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // Ends a child that hangs.
    server.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  server->run_for(20s);
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
}

TEST(TestingServer, ServerMayEndBeforeItsClients) {
  auto server = std::make_unique<Server>();
  Client client = server->client();
  const Lease lease = take(client, "job");
  server.reset();
  EXPECT_EQ(lease.state(),
            LeaseState::kHeld);  // Its deadline has not passed.
}

TEST(TestingServer, ClientMayEndBeforeItsLeases) {
  Server server;
  std::unique_ptr<Client> client(new Client(server.client()));
  const Lease lease = take(*client, "job");
  client.reset();
  server.advance(1s);
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_TRUE(server.holders("job").empty());
}

}  // namespace
}  // namespace pawl::testing
