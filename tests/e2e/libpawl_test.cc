// pawl::Client and pawl::Lease against a real pawld: threads, signals, fork.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <future>
#include <iostream>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "base/random.h"
#include "client/blocking_connection.h"
#include "drill/testlib/threaded_proxy.h"
#include "e2e/libpawl_fixture.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_F(LibPawl, LeaseIsRenewedWhileHeld) {
  Client client(pawld.address());
  const Lease lease = take(client, "a", {.ttl = 2s});
  EXPECT_GT(lease.token(), 0u);
  EXPECT_EQ(lease.floor(), lease.token());
  EXPECT_EQ(lease.ttl(), 2s);
  EXPECT_EQ(lease.locks(), std::vector<std::string>{"a"});
  EXPECT_EQ(lease.secret().size(), 32u);
  EXPECT_TRUE(renewed(lease, 4));
  EXPECT_TRUE(lease.check());
  EXPECT_GT(lease.remaining(), 0s);
  EXPECT_FALSE(lease.lost().stop_requested());
}

TEST_F(LibPawl, ReleaseGrantsTheLockToTheWaiter) {
  Client one(pawld.address()), other(pawld.address());
  Lease lease = take(one, "a");
  const auto refused = other.acquire("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBusy);
  auto waiting = std::async(std::launch::async, [&] { return other.acquire("a", {.wait = 60s}); });
  const auto released = lease.release();
  EXPECT_TRUE(released);
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_EQ(lease.reason(), "released");
  const auto again = lease.release();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kLeaseLost);
  const auto next = waiting.get();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), lease.token());
}

TEST_F(LibPawl, ThreadsOfOneClientExcludeEachOther) {
  Client client(pawld.address());
  std::atomic<int> inside = 0;
  std::mutex mutex;
  std::set<std::uint64_t> tokens;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        auto lease = client.acquire("a", {.wait = 60s});
        ASSERT_TRUE(lease) << lease.error().detail;
        EXPECT_EQ(++inside, 1);
        EXPECT_TRUE(lease->check());
        {
          const std::lock_guard lock(mutex);
          tokens.insert(lease->token());
        }
        --inside;
        EXPECT_TRUE(lease->release());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tokens.size(), 200u);
}

TEST_F(LibPawl, FullSendBufferIsSentLater) {
  constexpr std::size_t kCalls = 20'000;  // More bytes than two socket buffers hold.
  std::vector<Result<Lease>> leases;
  leases.reserve(kCalls);
  std::atomic<std::size_t> answered = 0;
  Client client(pawld.address(), {.answer_timeout = 60s, .call_timeout = 60s});
  const Lease first = take(client, "connected");
  pawld.stop();
  for (std::size_t i = 0; i < kCalls; ++i) {
    client.acquire_async({std::string(500, 'x') + std::to_string(i)}, {}, [&](Result<Lease> lease) {
      leases.push_back(std::move(lease));
      ++answered;
    });
  }
  pawld.go_on();
  EXPECT_TRUE(eventually([&] { return answered == kCalls; }));
  EXPECT_TRUE(
      std::all_of(leases.begin(), leases.end(), [](const auto& lease) { return bool(lease); }));
}

TEST_F(LibPawl, DeathOfPawldIsReportedStepByStep) {
  Client client(pawld.address());
  StateRecord record;
  const Lease lease = take(client, "a", {.ttl = 2s, .on_change = record.listener()});
  std::atomic<bool> fired = false;
  const std::stop_callback stop(lease.lost(), [&] { fired = true; });
  pawld.kill();
  EXPECT_TRUE(eventually([&] { return record.has(LeaseState::kLost); }));
  EXPECT_THAT(record.states(),
              testing::ElementsAre(LeaseState::kAtRisk, LeaseState::kUncertain, LeaseState::kLost));
  EXPECT_TRUE(eventually([&] { return fired.load(); }));
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_EQ(lease.remaining(), 0s);
  EXPECT_NE(lease.reason(), "");
  const auto check = lease.check();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, Code::kLeaseLost);
}

TEST_F(LibPawl, LeaseSurvivesARestartOfPawld) {
  Client client(pawld.address());
  const Lease lease = take(client, "a", {.ttl = 10s});
  pawld.kill();
  pawld.start_again();
  EXPECT_TRUE(renewed(lease, 2));
}

// Hard case 27.
TEST_F(LibPawl, PauseOfPawldPutsALeaseAtRiskUntilItEnds) {
  Client client(pawld.address());
  StateRecord record;
  const Lease lease = take(client, "a", {.ttl = 8s, .on_change = record.listener()});
  pawld.stop();
  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::kAtRisk; }));
  pawld.go_on();
  EXPECT_TRUE(eventually([&] { return lease.state() != LeaseState::kAtRisk; }));
  EXPECT_EQ(lease.state(), LeaseState::kHeld);
}

// Hard case 27.
TEST_F(LibPawl, LeaseSurvivesASilentConnection) {
  drill::ThreadedProxy proxy(pawld.port());
  Client client(proxy.address());
  StateRecord record;
  const Lease lease = take(client, "a", {.ttl = 3s, .on_change = record.listener()});
  proxy.silence_connections();
  EXPECT_TRUE(renewed(lease, 3));
  EXPECT_FALSE(record.has(LeaseState::kUncertain));
}

TEST_F(LibPawl, PauseOfPawldLongerThanTheTtlLosesTheLease) {
  Client client(pawld.address());
  const Lease lease = take(client, "a", {.ttl = 1s});
  pawld.stop();
  EXPECT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  pawld.go_on();
  Client other(pawld.address());
  EXPECT_TRUE(other.acquire("a", {.wait = 60s}));
  EXPECT_EQ(lease.state(), LeaseState::kLost);
}

TEST_F(LibPawl, DestructorWithoutAReplyReleasesInTheBackground) {
  Client client(pawld.address()), other(pawld.address());
  std::optional<Lease> lease = take(client, "a", {.ttl = 10min});
  pawld.stop();
  lease.reset();
  pawld.go_on();
  EXPECT_TRUE(other.acquire("a", {.wait = 60s}));  // Long before its TTL is over.
}

TEST_F(LibPawl, BrokenLeaseIsReportedToItsHolder) {
  Client client(pawld.address());
  const Lease lease = take(client, "a", {.ttl = 6s});
  SystemRandom random;
  client::BlockingConnection operators(*client::parse_addresses(pawld.address()), random, {});
  const auto broken = operators.command(
      {.words = {"BREAK", "a", "TOKEN", std::to_string(lease.token()), "NOW", "REASON", "test"}});
  ASSERT_TRUE(broken) << broken.error().detail;
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  EXPECT_TRUE(eventually([&] { return lease.reason().find("broken") != std::string::npos; }))
      << lease.reason();
}

TEST_F(LibPawl, DestroyedClientReleasesItsLeases) {
  std::optional<Client> client(std::in_place, pawld.address());
  const Lease lease = take(*client, "a", {.ttl = 10min});
  const std::stop_token lost = lease.lost();
  client.reset();
  EXPECT_EQ(lease.state(), LeaseState::kLost);
  EXPECT_EQ(lease.reason(), "the client was closed");
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  Client other(pawld.address());
  EXPECT_TRUE(other.acquire("a", {.wait = 60s}));
}

TEST_F(LibPawl, StopTokenEndsAWait) {
  Client client(pawld.address());
  Lease held = take(client, "a");
  std::stop_source stop;
  auto waiting = std::async(std::launch::async,
                            [&] { return client.acquire("a", {.wait = 60s}, stop.get_token()); });
  stop.request_stop();
  const auto given_up = waiting.get();
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, Code::kUnavailable);
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(client.acquire("a", {.wait = 60s}));
}

TEST_F(LibPawl, StuckCallbackDoesNotStopRenewals) {
  std::latch may_return(1);
  std::latch is_stuck(1);
  Client client(pawld.address());
  client.acquire_async({"a"}, {}, [&](Result<Lease> lease) {
    EXPECT_TRUE(lease);
    is_stuck.count_down();
    may_return.wait();
  });
  is_stuck.wait();
  const Lease lease = take(client, "b", {.ttl = 2s});
  EXPECT_TRUE(renewed(lease, 3));
  may_return.count_down();
}

TEST_F(LibPawl, SharedGrantsHaveAFloorAndLimitedOnesASlot) {
  Client client(pawld.address());
  const auto both = client.acquire_all({"a", "b"});
  ASSERT_TRUE(both);
  EXPECT_EQ(client.acquire("b").error().code, Code::kBusy);
  const Lease reader = take(client, "r", {.sharing = Sharing::kShared});
  const Lease second = take(client, "r", {.sharing = Sharing::kShared});
  EXPECT_EQ(second.floor(), reader.token());
  const Lease slot = take(client, "s", {.sharing = Sharing::kLimit, .limit = 2});
  EXPECT_EQ(slot.slot(), 0u);
  EXPECT_EQ(reader.slot(), std::nullopt);
}

TEST_F(LibPawl, NextAddressIsTried) {
  Client client("127.0.0.1:1," + pawld.address());
  EXPECT_TRUE(client.acquire("a"));
}

TEST_F(LibPawl, ErrorsSayWhatMayBeConcluded) {
  Client wrong("not an address:");
  EXPECT_EQ(wrong.acquire("a").error().code, Code::kInvalid);
  Client client(pawld.address());
  EXPECT_EQ(client.acquire("a", {.ttl = 1ms}).error().code, Code::kInvalid);
  Client unreachable("127.0.0.1:1", {.call_timeout = 200ms});
  EXPECT_EQ(unreachable.acquire("a").error().code, Code::kUnavailable);
}

TEST_F(LibPawl, HooksReportConnectionAndCounters) {
  std::atomic<int> lines = 0;
  std::atomic<int> acquires = 0;
  Client client(pawld.address(), {.log = [&](std::string_view) { ++lines; },
                                  .metric =
                                      [&](std::string_view name, double added) {
                                        if (name == "acquires") acquires += static_cast<int>(added);
                                      }});
  const Lease lease = take(client, "a");
  EXPECT_TRUE(eventually([&] { return acquires == 1; }));
  pawld.kill();
  EXPECT_TRUE(eventually([&] { return lines > 0; }));
}

TEST_F(LibPawl, MutexWorksWithUniqueLock) {
  Client client(pawld.address());
  Mutex mine(client, "a"), theirs(client, "a");
  std::unique_lock lock(mine);
  EXPECT_THROW(mine.lock(), std::system_error);  // It would wait for itself.
  ASSERT_NE(mine.lease(), nullptr);
  EXPECT_FALSE(theirs.try_lock());
  lock.unlock();
  EXPECT_EQ(mine.lease(), nullptr);
  const std::lock_guard next(theirs);
}

TEST_F(LibPawl, ForkedChildHoldsAndReleasesNothing) {
  auto client = std::make_unique<Client>(pawld.address());
  auto lease = std::make_unique<Lease>(take(*client, "a"));
  const pid_t child = fork();
  if (child == 0) {
    const bool lost = lease->state() == LeaseState::kLost && !lease->check() &&
                      lease->lost().stop_requested() && !lease->release() &&
                      lease->remaining() == 0s;
    const auto more = client->acquire("b");
    const bool refused = !more && more.error().code == Code::kInvalid;
    lease.reset();
    client.reset();
    _exit(lost && refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lease->check());
  Client other(pawld.address());
  EXPECT_EQ(other.acquire("a").error().code, Code::kBusy);
  EXPECT_TRUE(renewed(*lease, 0));
}

// --- A holder that is frozen ---------------------------------------------------------------------

// Runs as a process of its own: takes the lock, says so, and on the first line it can read says
// what its lease is worth.
int hold_and_report(const std::string& address) {
  Client client(address);
  std::atomic<bool> believed = false;
  auto lease = client.acquire("frozen", {.ttl = 1s});
  if (!lease) return 1;
  const std::stop_callback stop(lease->lost(), [&] {
    if (lease->check()) believed = true;
  });
  std::cout << "held" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::cout << to_text(lease->state()) << std::endl;
  while (!lease->lost().stop_requested()) std::this_thread::yield();
  std::cout << (believed ? "a callback believed to hold it" : "nobody believed it") << std::endl;
  return 0;
}

// Hard case 1.
TEST_F(LibPawl, ProcessFrozenPastItsLeaseFindsItLostOnItsFirstCall) {
  for (int round = 0; round < 3; ++round) {
    auto in = make_pipe(), out = make_pipe();
    ASSERT_TRUE(in && out);
    auto holder = Process::start({"/proc/self/exe", "--hold", pawld.address()},
                                 {.in = in->read.get(), .out = out->write.get()});
    ASSERT_TRUE(holder) << holder.error().detail;
    in->read.reset();
    out->write.reset();
    FILE* from = fdopen(out->read.release(), "r");
    char line[100];
    const auto next_line = [&] {
      return std::string(std::fgets(line, sizeof(line), from) == nullptr ? "" : line);
    };
    ASSERT_EQ(next_line(), "held\n");
    holder->freeze();
    Client other(pawld.address());
    const auto lease = other.acquire("frozen", {.wait = 60s});
    EXPECT_TRUE(lease);
    ASSERT_EQ(write(in->write.get(), "\n", 1), 1);
    holder->resume();
    EXPECT_EQ(next_line(), "lost\n");
    EXPECT_EQ(next_line(), "nobody believed it\n");
    std::fclose(from);
    in->write.reset();
    EXPECT_EQ(holder->wait(), 0);
  }
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--hold") return pawl::hold_and_report(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
