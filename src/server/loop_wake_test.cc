// The loop is woken by a store that completes on another thread, while it sleeps in epoll.
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>

#include "server/engine_mailbox.h"
#include "server/loop.h"
#include "server/testlib/engine_fixture.h"

namespace pawl::server {
namespace {

// Completes each batch on a thread of its own.
class LateStore final : public store::Store {
 public:
  LateStore() : thread_([this] { run(); }) {}
  ~LateStore() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  Result<store::Loaded> load(store::Visitor& /*visitor*/) override { return store::Loaded{}; }
  void submit(const Batch& /*batch*/, BatchId id, store::Sink& /*sink*/) override {
    {
      const std::lock_guard lock(mutex_);
      submitted_.push_back(id);
    }
    changed_.notify_one();
  }
  void pump(store::Sink& sink) override {
    std::deque<BatchId> done;
    {
      const std::lock_guard lock(mutex_);
      done.swap(done_);
    }
    for (const BatchId id : done) sink.durable(id);
  }
  void wake_with(Waker* waker) override { waker_ = waker; }
  bool has_room() override { return true; }
  Result<void> close() override { return {}; }
  [[nodiscard]] std::string_view kind() const override { return "late"; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !submitted_.empty(); });
      if (stop_) return;
      done_.insert(done_.end(), submitted_.begin(), submitted_.end());
      submitted_.clear();
      lock.unlock();
      waker_->wake();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BatchId> submitted_, done_;
  Waker* waker_ = nullptr;
  bool stop_ = false;
  std::thread thread_;  // Last: it uses all the others.
};

// Without the wake each of these commits would be noticed by the idle turn only, every 250 ms.
TEST(LoopWake, CompletionsDuringTheSleepOfTheLoopAreAnsweredAtOnce) {
  constexpr int kRounds = 20;
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &stop, nullptr), 0);
  NoLog log;
  Loop loop(log);
  ASSERT_TRUE(loop.open());
  LateStore store;
  store.wake_with(&loop);
  ManualClock clock;
  SeededRandom random{1};
  Engine engine{EngineSettings{},
                EngineParts{store, clock, random, loop, log, [](const Error&) {}}};
  ASSERT_TRUE(engine.load());
  EngineMailbox mailbox;
  loop.attach(mailbox);
  const auto request = [](int round) {
    return "ACQUIRE lock-" + std::to_string(round) + " TTL 60000\r\n";
  };
  int answered = 0;
  const auto connection = mailbox.open("client", request(0));
  ASSERT_TRUE(connection);
  mailbox.wake_client_with([&] {  // Called by the loop, on this very thread.
    for (const EngineMailbox::Delivery& delivery : mailbox.take()) {
      if (delivery.bytes.empty()) continue;
      mailbox.read(delivery.connection, delivery.bytes.size());
      if (++answered == kRounds) {
        ::pthread_kill(::pthread_self(), SIGTERM);
      } else {
        ASSERT_TRUE(mailbox.send(*connection, request(answered)));
      }
    }
  });
  const auto began = std::chrono::steady_clock::now();
  loop.run(engine);
  EXPECT_EQ(answered, kRounds);
  EXPECT_LT(std::chrono::steady_clock::now() - began, kRounds * 250ms / 2);
}

}  // namespace
}  // namespace pawl::server
