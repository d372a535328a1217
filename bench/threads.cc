#include "bench/threads.h"

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bench/loopback.h"
#include "pawl/pawl.h"

namespace pawl::bench {
namespace {

using namespace std::chrono_literals;

// What one thread does again and again.
class Loop {
 public:
  virtual ~Loop() = default;
  // One operation; what went wrong, or nothing.
  virtual std::string round() = 0;
};

class RawLoop final : public Loop {
 public:
  RawLoop(const Plan& plan, std::size_t number)
      : socket_(plan.port), talk_(conversation(plan.peer, plan.workload, plan.run, number, {})) {}

  std::string round() override {
    for (const Step& step : talk_.round) {
      const std::string_view reply = socket_.ask(step.request, room_.data());
      if (!take_reply(talk_, step, reply)) return std::string(reply);
    }
    return {};
  }

 private:
  Loopback socket_;
  Conversation talk_;
  std::array<char, kReplyMax> room_{};
};

class ClientLoop final : public Loop {
 public:
  ClientLoop(const Plan& plan, std::size_t number, Client& client)
      : client_(client), my_(names(plan.workload, plan.run, number)) {}

  std::string round() override {
    auto lease = client_.acquire(my_.lock, {.ttl = 60s, .owner = my_.owner});
    if (!lease) return lease.error().detail;
    const auto released = lease->release();
    return released ? "" : released.error().detail;
  }

 private:
  Client& client_;
  const Names my_;
};

enum class Phase : std::uint8_t { kWarmUp, kMeasure, kEnd };

void run(Loop& loop, const std::atomic<Phase>& phase, Measured& mine) {
  while (phase.load(std::memory_order_relaxed) != Phase::kEnd) {
    const Nanos began = monotonic_now();
    const std::string wrong = loop.round();
    if (!wrong.empty()) mine.note_error(wrong);
    if (phase.load(std::memory_order_relaxed) != Phase::kMeasure) continue;
    mine.latency.add(monotonic_now() - began);
    ++mine.operations;
  }
}

// A lost connection ends this thread's loop and is recorded as an error.
void run_until_lost(Loop& loop, const std::atomic<Phase>& phase, Measured& mine) {
  try {
    run(loop, phase, mine);
  } catch (const std::exception& error) {
    mine.note_error(error.what());
  }
}

}  // namespace

Measured drive_threads(const Plan& plan) {
  std::unique_ptr<Client> client;
  if (plan.by == By::kClient)
    client = std::make_unique<Client>("127.0.0.1:" + std::to_string(plan.port));
  std::vector<std::unique_ptr<Loop>> loops;
  for (std::size_t i = 0; i < plan.connections; ++i) {
    if (client) {
      loops.push_back(std::make_unique<ClientLoop>(plan, i, *client));
    } else {
      loops.push_back(std::make_unique<RawLoop>(plan, i));
    }
  }

  std::atomic<Phase> phase = Phase::kWarmUp;
  std::vector<Measured> parts(loops.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    threads.emplace_back([&, i] { run_until_lost(*loops[i], phase, parts[i]); });
  }
  Measured all;
  std::this_thread::sleep_for(plan.warmup);
  const CpuTimes cpu_before = cpu_times(plan.server);
  const Nanos began = monotonic_now();
  phase = Phase::kMeasure;
  std::this_thread::sleep_for(plan.duration);
  all.elapsed = monotonic_now() - began;
  phase = Phase::kEnd;
  all.cpu = cpu_times(plan.server) - cpu_before;

  for (std::thread& thread : threads) thread.join();
  for (const Measured& part : parts) {
    all.operations += part.operations;
    all.latency.add_all(part.latency);
    if (part.errors > 0 && all.errors == 0) all.first_error = part.first_error;
    all.errors += part.errors;
  }
  return all;
}

}  // namespace pawl::bench
