#include "server/engine_mailbox.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <thread>

#include "server/loop.h"
#include "server/testlib/engine_fixture.h"
#include "wire/command_writer.h"

namespace pawl::server {
namespace {

// An engine whose only connections come through a mailbox.
class MailboxTest : public testing::Test, public Network {
 protected:
  explicit MailboxTest(EngineMailbox::Bounds bounds = {}) : mailbox(bounds) {
    const auto loaded = engine.load();
    EXPECT_TRUE(loaded);
  }

  std::size_t send(ConnectionId id, std::string_view bytes) override {
    return mailbox.deliver(id, bytes);
  }
  void want_input(ConnectionId, bool) override {}
  void close(ConnectionId id) override { mailbox.close(id); }

  bool turn(std::size_t most = 100) {
    const bool more = mailbox.serve(engine, most);
    engine.run_turn();
    return more;
  }
  // Takes what was delivered, acknowledges it, and answers the bytes for one connection.
  std::string received(ConnectionId id) {
    std::string bytes;
    for (EngineMailbox::Delivery& delivery : mailbox.take()) {
      if (delivery.result) delivery.result();
      if (!delivery.bytes.empty()) mailbox.read(delivery.connection, delivery.bytes.size());
      if (delivery.connection != id) continue;
      bytes += delivery.bytes;
      if (delivery.closed) bytes += "(closed)";
    }
    return bytes;
  }

  store::MemoryStore store{Incarnation{7}};
  ManualClock clock;
  SeededRandom random{1};
  NoLog log;
  EngineMailbox mailbox;
  Engine engine{EngineSettings{},
                EngineParts{store, clock, random, *this, log, [](const Error&) {}}};
};

TEST_F(MailboxTest, ServesAClientLikeAnyOtherConnection) {
  const auto id = mailbox.open("http:peer", "PING\r\n");
  ASSERT_TRUE(id);
  turn();
  EXPECT_EQ(received(*id), "+PONG\r\n");
  EXPECT_TRUE(mailbox.send(*id, "ECHO a\r\nQUIT\r\n"));
  turn();
  EXPECT_EQ(received(*id), "$1\r\na\r\n+OK\r\n(closed)");
  EXPECT_TRUE(mailbox.send(*id, "PING\r\n")) << "of what is closed already everything is swallowed";
  turn();
  EXPECT_EQ(received(*id), "");
}

TEST_F(MailboxTest, AHangUpEndsTheWait) {
  const auto holder = mailbox.open("a", "ACQUIRE x TTL 60000\r\n");
  const auto waiter = mailbox.open("b", "ACQUIRE x TTL 60000 WAIT 60000\r\n");
  turn();
  EXPECT_EQ(engine.totals().waiters, 1U);
  mailbox.hang_up(*waiter);
  mailbox.hang_up(*waiter);
  turn();
  EXPECT_EQ(engine.totals().waiters, 0U);
  EXPECT_EQ(received(*waiter), "*-1\r\n(closed)");
  EXPECT_EQ(engine.connections().size(), 1U);
  mailbox.hang_up(*holder);
  turn();
  EXPECT_EQ(engine.connections().size(), 0U);
  EXPECT_EQ(engine.totals().leases, 1U) << "a lease is not its connection";
}

TEST_F(MailboxTest, ATurnTakesABoundedNumberOfMessages) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(mailbox.open("a", "PING\r\n"));  // Two messages each.
  EXPECT_TRUE(turn(8));
  EXPECT_EQ(mailbox.take().size(), 4U);
  EXPECT_TRUE(turn(8));
  EXPECT_FALSE(turn(8));
  EXPECT_EQ(mailbox.take().size(), 6U);
}

TEST_F(MailboxTest, AQueryReadsTheEngineAndItsResultRunsOnTheClientsSide) {
  std::size_t seen = 99;
  ASSERT_TRUE(mailbox.open("a", "ACQUIRE x TTL 60000\r\n"));
  turn();
  ASSERT_TRUE(mailbox.query([&](const Engine& read) {
    return [&seen, leases = read.totals().leases] { seen = leases; };
  }));
  turn();
  EXPECT_EQ(seen, 99U);
  received({});
  EXPECT_EQ(seen, 1U);
}

class SmallMailboxTest : public MailboxTest {
 protected:
  SmallMailboxTest() : MailboxTest({.connections = 2, .messages = 6, .unread = 10}) {}
};

TEST_F(SmallMailboxTest, AFullMailboxRefusesAllButHangUps) {
  const auto a = mailbox.open("a", "PING\r\n"), b = mailbox.open("b", "PING\r\n");
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(mailbox.open("c", "PING\r\n")) << "connections";
  EXPECT_TRUE(mailbox.send(*a, "PING\r\n"));
  EXPECT_TRUE(mailbox.send(*a, "PING\r\n"));
  EXPECT_FALSE(mailbox.send(*a, "PING\r\n")) << "messages";
  EXPECT_FALSE(mailbox.query([](const Engine&) { return [] {}; }));
  mailbox.hang_up(*a);
  mailbox.hang_up(*b);
  turn();
  while (!received(*a).empty()) turn();
  EXPECT_EQ(engine.connections().size(), 0U);
  EXPECT_TRUE(mailbox.open("c", "PING\r\n"));
}

TEST_F(SmallMailboxTest, UnreadOutputStopsDeliveriesUntilItIsRead) {
  const auto id = mailbox.open("a", "ECHO 0123456789\r\n");
  turn();
  auto first = mailbox.take();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].bytes, "$10\r\n01234");
  turn();
  EXPECT_TRUE(mailbox.take().empty());
  mailbox.read(*id, 10);
  turn();
  EXPECT_EQ(received(*id), "56789\r\n");
}

// Lists for the client must not stand in front of a renewal: this is what a flood test relies on.
TEST(MailboxOnLoop, ATurnOfTheLoopTakesNoMoreThanItsShare) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &stop, nullptr), 0);
  store::MemoryStore store{Incarnation{7}};
  ManualClock clock;
  SeededRandom random{1};
  NoLog log;
  EngineMailbox mailbox;
  Loop loop(log);
  Engine engine{EngineSettings{},
                EngineParts{store, clock, random, loop, log, [](const Error&) {}}};
  ASSERT_TRUE(engine.load());
  ASSERT_TRUE(loop.open());
  loop.attach(mailbox);
  constexpr std::size_t kAsked = 100;
  std::map<std::uint64_t, std::size_t> in_turn;
  for (std::size_t i = 0; i < kAsked; ++i) {
    ASSERT_TRUE(mailbox.query([&](const Engine& seen) {
      ++in_turn[seen.telemetry().turns];
      return [] {};
    }));
  }
  ASSERT_TRUE(mailbox.query([](const Engine&) {
    ::raise(SIGTERM);
    return [] {};
  }));
  loop.run(engine);
  std::size_t served = 0;
  for (const auto& [turn, count] : in_turn) {
    EXPECT_LE(count, limits::kMailboxPerTurn);
    served += count;
  }
  EXPECT_EQ(served, kAsked) << "and what is left comes in the next turn, without another wake";
}

// What the thread sanitizer is to look at: two threads that wake each other, and not one message
// lost.
TEST(MailboxThreads, NothingIsLostBetweenTwoThreads) {
  class Loop : public MailboxTest {
   public:
    void TestBody() override {}
    void serve(std::atomic<bool>& stop) {
      struct Notify final : Waker {
        void wake() override {
          const std::lock_guard lock(mutex);
          awake = true;
          condition.notify_one();
        }
        std::mutex mutex;
        std::condition_variable condition;
        bool awake = true;
      } waker;
      mailbox.wake_loop_with(&waker);
      ready = true;
      while (!stop) {
        {
          std::unique_lock lock(waker.mutex);
          waker.condition.wait_for(lock, std::chrono::milliseconds(1),
                                   [&] { return waker.awake || stop; });
          waker.awake = false;
        }
        while (turn(16)) {
        }
      }
    }
    using MailboxTest::mailbox;
    std::atomic<bool> ready = false;
  };
  Loop loop;
  std::atomic<bool> stop = false;
  std::thread thread([&] { loop.serve(stop); });
  while (!loop.ready) std::this_thread::yield();
  constexpr int kAsked = 2000;
  int opened = 0, answered = 0, closed = 0;
  while (closed < kAsked) {
    if (opened < kAsked && loop.mailbox.open("t", "PING\r\nQUIT\r\n")) ++opened;
    for (const EngineMailbox::Delivery& delivery : loop.mailbox.take()) {
      answered += static_cast<int>(delivery.bytes.size());
      if (delivery.closed) ++closed;
    }
  }
  stop = true;
  thread.join();
  EXPECT_EQ(answered, kAsked * static_cast<int>(std::string_view("+PONG\r\n+OK\r\n").size()));
}

}  // namespace
}  // namespace pawl::server
