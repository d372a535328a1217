// What libpawl promises whatever its user's callbacks, limits and signals do, against a real pawld.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "drill/testlib/threaded_proxy.h"
#include "e2e/libpawl_fixture.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Something that blocks the callback that waits for it, and is opened at the end of the test.
class Gate {
 public:
  ~Gate() { open(); }
  void open() {
    if (!opened_.exchange(true)) latch_.count_down();
  }
  void wait() const { latch_.wait(); }

 private:
  std::atomic<bool> opened_ = false;
  std::latch latch_{1};
};

// --- lost() --------------------------------------------------------------------------------------

TEST_F(LibPawl, LostFiresWhileTheLogHookIsStuck) {
  Gate gate;
  Client client(pawld.address(), {.log = [&](std::string_view) { gate.wait(); }});
  const Lease lease = take(client, "a", {.ttl = 2s});
  const std::stop_token lost = lease.lost();
  pawld.kill();
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  gate.open();
}

TEST_F(LibPawl, LostFiresInsideTheCallbackOfAcquireAsync) {
  std::promise<bool> fired;
  Client client(pawld.address());
  client.acquire_async({"a"}, {.ttl = 2s}, [&](Result<Lease> lease) {
    if (!lease) return fired.set_value(false);
    const std::stop_token lost = lease->lost();
    pawld.kill();
    fired.set_value(eventually([&] { return lost.stop_requested(); }));
  });
  EXPECT_TRUE(fired.get_future().get());
}

TEST_F(LibPawl, LostFiresWhileTheLossOfAnotherLeaseIsHandled) {
  Gate gate;
  Client client(pawld.address());
  const Lease one = take(client, "a", {.ttl = 2s});
  const Lease other = take(client, "b", {.ttl = 3s});
  const Lease third = take(client, "c", {.ttl = 3s});
  const std::stop_callback stuck(one.lost(), [&] { gate.wait(); });
  const std::stop_callback stuck_too(other.lost(), [&] { gate.wait(); });
  const std::stop_token lost = third.lost();
  pawld.kill();
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  gate.open();
}

// The timers of this process that run on CLOCK_BOOTTIME, as the kernel shows them.
std::size_t armed_boottime_timers() {
  std::size_t armed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream in(entry.path());
    const std::string info{std::istreambuf_iterator<char>(in), {}};
    const bool boottime =
        info.find("clockid: " + std::to_string(CLOCK_BOOTTIME) + "\n") != std::string::npos;
    if (boottime && info.find("it_value: (0, 0)") == std::string::npos) ++armed;
  }
  return armed;
}

// No test can suspend the machine. A timeout of poll() stands still meanwhile; this timer does not.
TEST_F(LibPawl, LossIsTimedByATimerThatRunsDuringSuspend) {
  Client client(pawld.address());
  const Lease lease = take(client, "a");
  EXPECT_TRUE(eventually([] { return armed_boottime_timers() == 1; }));
}

// --- Callbacks -----------------------------------------------------------------------------------

TEST_F(LibPawl, OnChangeDoesNotBeginAfterTheLeaseIsGone) {
  Gate gate;
  std::atomic<bool> gone = false;
  std::atomic<int> late = 0;
  Client client(pawld.address(), {.call_timeout = 5s, .log = [&](auto) { gate.wait(); }});
  {
    const auto count_late = [&](LeaseState, const std::string&) { late += gone; };
    const Lease lease = take(client, "a", {.ttl = 2s, .on_change = count_late});
    pawld.kill();
    ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  }
  gone = true;
  gate.open();
  std::promise<void> behind;  // runs after everything that is queued now
  client.acquire_async({"b"}, {}, [&](const Result<Lease>&) { behind.set_value(); });
  behind.get_future().wait();
  EXPECT_EQ(late, 0);
}

TEST_F(LibPawl, LogHookDoesNotBeginAfterTheClientIsGone) {
  Gate gate;
  std::atomic<bool> gone = false, last_ran = false;
  std::atomic<int> late = 0;
  {
    Client client(pawld.address(), {.metric = [&](auto, double) {
                    late += gone;
                    gate.wait();
                  }});
    for (int i = 0; i < 3; ++i) take(client, "a");
    client.acquire_async({"b"}, {}, [&](const Result<Lease>&) { last_ran = true; });
  }
  gone = true;
  gate.open();
  EXPECT_TRUE(eventually([&] { return last_ran.load(); }));
  EXPECT_EQ(late, 0);
}

TEST_F(LibPawl, DoneRunsOnceAlsoWhenTheClientIsDestroyed) {
  constexpr int kClients = 200;
  std::atomic<int> ran = 0;
  for (int i = 0; i < kClients; ++i) {
    // Every other one has a pawld.
    Client client(i % 2 == 0 ? pawld.address() : "127.0.0.1:1");
    client.acquire_async({"a" + std::to_string(i)}, {}, [&](const Result<Lease>&) { ++ran; });
  }
  EXPECT_TRUE(eventually([&] { return ran >= kClients; })) << ran;
  EXPECT_EQ(ran, kClients);
}

// --- Sharing a connection ------------------------------------------------------------------------

TEST_F(LibPawl, ShortLeaseDoesNotCostAWaitItsPlace) {
  Client holder(pawld.address()), one(pawld.address()), other(pawld.address());
  Lease held = take(holder, "a", {.ttl = 60s});
  const Lease brief = take(one, "b", {.ttl = 1s});
  std::promise<Result<Lease>> first, second;
  one.acquire_async({"a"}, {.wait = 60s}, [&](auto lease) { first.set_value(std::move(lease)); });
  ASSERT_TRUE(eventually([&] { return status("waiters") == 1; }));
  other.acquire_async({"a"}, {.wait = 60s},
                      [&](auto lease) { second.set_value(std::move(lease)); });
  ASSERT_TRUE(eventually([&] { return status("waiters") == 2; }));
  pawld.stop();
  EXPECT_TRUE(eventually([&] { return brief.state() >= LeaseState::kUncertain; }));
  pawld.go_on();
  EXPECT_TRUE(held.release());
  auto of_one = first.get_future().get();
  ASSERT_TRUE(of_one) << of_one.error().detail;
  EXPECT_TRUE(of_one->release());
  auto of_other = second.get_future().get();
  ASSERT_TRUE(of_other) << of_other.error().detail;
  EXPECT_LT(of_one->token(), of_other->token());
}

TEST_F(LibPawl, SilentConnectionWithAWaitIsReplacedInTime) {
  drill::ThreadedProxy proxy(pawld.port());
  Client holder(pawld.address()), client(proxy.address());
  Lease held = take(holder, "a", {.ttl = 60s});
  const Lease lease = take(client, "b", {.ttl = 3s});
  std::promise<Result<Lease>> granted;
  client.acquire_async({"a"}, {.wait = 60s}, [&](auto got) { granted.set_value(std::move(got)); });
  ASSERT_TRUE(eventually([&] { return status("waiters") == 1; }));
  proxy.silence_connections();
  EXPECT_TRUE(renewed(lease, 2));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(granted.get_future().get());
}

// --- Limits of the process -----------------------------------------------------------------------

using LibPawlDeathTest = LibPawl;

TEST_F(LibPawlDeathTest, ClientWithoutAFileDescriptorReportsAnError) {
  const auto use_up = [&] {
    rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    Client client(pawld.address());
    const auto lease = client.acquire("a");
    _exit(!lease && lease.error().code == Code::kInvalid ? 0 : 1);
  };
  EXPECT_EXIT(use_up(), testing::ExitedWithCode(0), "");
}

// A stack that no machine has: no thread can be started any more.
void forbid_threads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 46);
  pthread_setattr_default_np(&attributes);
}

TEST_F(LibPawlDeathTest, ClientWithoutThreadsReportsAnError) {
  const auto use_up = [&] {
    forbid_threads();
    Client client(pawld.address());
    const auto lease = client.acquire("a");
    _exit(!lease && lease.error().code == Code::kInvalid ? 0 : 1);
  };
  EXPECT_EXIT(use_up(), testing::ExitedWithCode(0), "");
}

TEST_F(LibPawlDeathTest, ConnectingWithoutAThreadFailsAsAnUnreachableServer) {
  const auto use_up = [&] {
    Client client(pawld.address(), {.call_timeout = 200ms});
    forbid_threads();
    const auto lease = client.acquire("a");
    _exit(!lease && lease.error().code == Code::kUnavailable ? 0 : 1);
  };
  EXPECT_EXIT(use_up(), testing::ExitedWithCode(0), "");
}

// The threads of this process that would handle SIGTERM.
std::set<std::string> threads_with_sigterm() {
  std::set<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "status");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const auto blocked = std::stoull(line.substr(7), nullptr, 16);
      if ((blocked & (std::uint64_t{1} << (SIGTERM - 1))) == 0) found.insert(task.path());
    }
  }
  return found;
}

TEST_F(LibPawl, ItsThreadsHandleNoSignals) {
  const auto before = threads_with_sigterm();
  Client client(pawld.address());
  const Lease lease = take(client, "a");
  EXPECT_EQ(threads_with_sigterm(), before);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);  // The caller's mask is as before.
}

// --- Time ----------------------------------------------------------------------------------------

TEST_F(LibPawl, RefusedCampaignBacksOff) {
  std::atomic<int> failures = 0;
  Client holder(pawld.address());
  Client client(pawld.address(), {.metric = [&](std::string_view counter, double) {
                  if (counter == "acquire_failures") ++failures;
                }});
  const Lease held = take(holder, "a"), led = take(holder, "b");
  for (std::size_t i = 0; i < limits::kAsyncWaitsPerConnection; ++i)
    client.acquire_async({"a"}, {.wait = 1h}, [](const Result<Lease>&) {});
  std::stop_source enough;
  const auto begun = std::chrono::steady_clock::now();
  auto campaign = std::async(std::launch::async, [&] {
    return Election(client, "b").campaign("", {}, enough.get_token());
  });
  ASSERT_TRUE(eventually([&] { return failures >= 6; }));
  // Five pauses of at least half of 50, 100, 200, 400 and 800 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 775ms);
  enough.request_stop();
  EXPECT_FALSE(campaign.get());
}

TEST_F(LibPawl, LongestWaitWaits) {
  constexpr auto kMax = std::chrono::milliseconds::max();
  Client one(pawld.address()), other(pawld.address(), {.call_timeout = kMax});
  Lease held = take(one, "a");
  std::promise<Result<Lease>> granted;
  other.acquire_async({"a"}, {.wait = kMax, .progress_every = kMax},
                      [&](Result<Lease> lease) { granted.set_value(std::move(lease)); });
  auto result = granted.get_future();
  EXPECT_EQ(result.wait_for(100ms), std::future_status::timeout);
  EXPECT_TRUE(held.release(kMax));
  auto lease = result.get();
  ASSERT_TRUE(lease) << lease.error().detail;
  EXPECT_TRUE(lease->release(kMax));
}

TEST_F(LibPawl, DestructorsOfManyLeasesShareOneSecond) {
  constexpr int kLeases = 20;
  Client client(pawld.address());
  std::vector<Lease> leases;
  for (int i = 0; i < kLeases; ++i) leases.push_back(take(client, std::to_string(i)));
  pawld.stop();
  const auto begun = std::chrono::steady_clock::now();
  leases.clear();
  // One after the other they would take 18 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 9s);
  pawld.go_on();
  // They are released in the background, and the next destructor waits for its answer again.
  for (int i = 0; i < kLeases; ++i) {
    auto again = client.acquire(std::to_string(i), {.wait = 10s});
    EXPECT_TRUE(again) << again.error().detail;
  }
}

TEST_F(LibPawl, ClientMayBeDestroyedWhileAnotherThreadWaits) {
  Client holder(pawld.address());
  const Lease held = take(holder, "a");
  auto client = std::make_optional<Client>(pawld.address());
  auto waiting = std::async(std::launch::async,
                            [&, &used = *client] { return used.acquire("a", {.wait = 60s}); });
  ASSERT_TRUE(eventually([&] { return status("waiters") == 1; }));
  client.reset();
  const auto refused = waiting.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
}

// --- The interface -------------------------------------------------------------------------------

TEST_F(LibPawl, ReleaseOfALeaseThatWasOverBeforeIsAnError) {
  Client client(pawld.address());
  Lease lease = take(client, "a", {.ttl = 1s});
  pawld.stop();
  ASSERT_TRUE(eventually([&] { return lease.state() == LeaseState::kLost; }));
  pawld.go_on();
  Client other(pawld.address());
  take(other, "a", {.wait = 60s});  // pawld has ended it
  const auto released = lease.release(60s);
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Code::kLeaseLost) << released.error().detail;
}

TEST_F(LibPawl, LimitWithoutItsSharingIsRefused) {
  Client client(pawld.address());
  const auto lease = client.acquire("a", {.limit = 2});
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Code::kInvalid);
  EXPECT_EQ(to_text(lease.error().code), "invalid");
}

TEST_F(LibPawl, ConnectionIsReportedConnectedSuspendedAndLost) {
  std::mutex mutex;
  std::vector<ConnectionState> seen;
  const auto has = [&](ConnectionState state) {
    const std::lock_guard lock(mutex);
    return std::find(seen.begin(), seen.end(), state) != seen.end();
  };
  Client client(pawld.address(), {.on_connection = [&](ConnectionState state, const std::string&) {
                  const std::lock_guard lock(mutex);
                  seen.push_back(state);
                }});
  const Lease lease = take(client, "a", {.ttl = 2s});
  EXPECT_TRUE(eventually([&] { return has(ConnectionState::kConnected); }));
  pawld.kill();
  EXPECT_TRUE(eventually([&] { return has(ConnectionState::kLost); }));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(seen, testing::ElementsAre(ConnectionState::kConnected, ConnectionState::kSuspended,
                                         ConnectionState::kLost));
}

// The simplest coroutine: it starts at once, and nobody waits for it.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Detached take_twice(Client& client, Resumer resume_on, std::promise<std::uint64_t>& tokens) {
  Acquisition of_first(client, {"a"}, {.ttl = 20s});
  auto first = co_await of_first;
  Acquisition of_second(client, {"b"}, {}, std::move(resume_on));
  auto second = co_await of_second;
  tokens.set_value(second.value().token() - first.value().token());
}

TEST_F(LibPawl, CoroutineContinuesWithItsLease) {
  Client client(pawld.address());
  std::promise<std::uint64_t> tokens;
  std::promise<std::function<void()>> handed_over;
  take_twice(
      client, [&](std::function<void()> resume) { handed_over.set_value(std::move(resume)); },
      tokens);
  handed_over.get_future().get()();  // continues on this thread
  EXPECT_GE(tokens.get_future().get(), 1u);
}

}  // namespace
}  // namespace pawl
