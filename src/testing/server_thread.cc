#include "testing/server_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "wire/command_writer.h"
#include "wire/reply_decoder.h"

namespace pawl::testing {
namespace {

int to_poll_timeout(Nanos patience) {
  if (patience == Nanos::max()) return -1;
  return static_cast<int>(std::chrono::ceil<Millis>(patience).count());
}

}  // namespace

ServerThread::ServerThread(server::Listener listener, std::shared_ptr<ClientTestClock> time)
    : address_(listener.address),
      time_(std::move(time)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      store_(Incarnation{1}),
      sockets_(std::move(listener)) {
  PAWL_ASSERT(static_cast<bool>(wake_));
  start();
  thread_ = std::thread([this] { run(); });
}

ServerThread::~ServerThread() {
  on_thread([this] { stopping_ = true; });
  thread_.join();
}

void ServerThread::start() {
  server::EngineSettings settings;
  settings.core.hash_seed = random_.next();
  settings.address = address_;
  const auto never = [](const Error&) { PAWL_ASSERT(false && "memory does not fail"); };
  engine_ = std::make_unique<server::Engine>(
      settings, server::EngineParts{store_, clock_, random_, sockets_, log_, never});
  PAWL_ASSERT(engine_->load().has_value());
  internal_ = sockets_.open_internal(*engine_);
  PAWL_ASSERT(!ask_internal({"HELLO", "3"}).is_error());
}

// --- The thread ----------------------------------------------------------------------------------

void ServerThread::run() {
  while (!stopping_) {
    const Nanos patience = engine_->patience();
    engine_->expect_sleep(patience);
    sockets_.serve(*engine_, wake_.get(), to_poll_timeout(patience));
    engine_->run_turn();
    run_jobs();
  }
  engine_->stop();
}

void ServerThread::run_jobs() {
  std::uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &wakes, sizeof(wakes));
  std::deque<std::packaged_task<void()>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (auto& job : jobs) job();
}

void ServerThread::on_thread(std::function<void()> job) {
  std::packaged_task<void()> task(std::move(job));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  done.get();
}

// --- Calls from other threads --------------------------------------------------------------------

void ServerThread::advance_clock(Nanos by) {
  on_thread([this, by] {
    sockets_.hold_output();
    clock_.freeze();
    engine_->run_turn();
    // In steps so small that pawld does not take them for a pause of its own, which does not count.
    for (Nanos left = by; left > Nanos(0);) {
      const Nanos step = std::min<Nanos>(left, server::kWakeEvery);
      clock_.move(step);
      engine_->run_turn();
      left -= step;
    }
    clock_.thaw();
    time_->move(by);
    sockets_.release_output();
  });
}

TrafficByPort ServerThread::settle() {
  TrafficByPort traffic;
  on_thread([&] {
    bool served = true;
    for (int round = 0; served && round < 1'000; ++round) {
      served = sockets_.serve(*engine_, -1, 0);
      engine_->run_turn();
    }
    traffic = sockets_.traffic();
  });
  return traffic;
}

void ServerThread::restart() {
  on_thread([this] {
    engine_.reset();
    sockets_.drop_all();
    store_.crash();
    start();
  });
}

wire::Value ServerThread::ask(std::vector<std::string_view> words) {
  wire::Value answer;
  on_thread([&] { answer = ask_internal(words); });
  return answer;
}

wire::Value ServerThread::ask_internal(const std::vector<std::string_view>& words) {
  std::string command;
  wire::append_command(command, words);
  engine_->received(internal_, command);
  engine_->run_turn();
  const std::string bytes = sockets_.take_internal(internal_);
  wire::ReplyDecoder decoder;
  wire::DecodedReply reply = decoder.decode(bytes);
  PAWL_ASSERT(reply.status == wire::DecodeStatus::kComplete);
  return std::move(reply.value);
}

void ServerThread::with_sockets(const std::function<void(FaultySockets&)>& change) {
  on_thread([&] { change(sockets_); });
}

}  // namespace pawl::testing
