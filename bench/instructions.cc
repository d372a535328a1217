// pawl_bench_instructions HELD CYCLES: acquire+release cycles through the engine, for callgrind to
// count.
//
// The bytes of a request go in, the bytes of its reply come out: decoder, parser, core, batch and
// reply writer take part; sockets, clock and disk do not. HELD other locks are held meanwhile.
// Nothing is counted while those are acquired, nor in the cycles before the history ring is full,
// because only from then on is every cycle like the next.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/random.h"
#include "bench/conversation.h"
#include "server/engine.h"

namespace pawl::bench {
namespace {

constexpr server::ConnectionId kConnection{1};
constexpr std::size_t kOwnLocks = 64;          // as many as 64 connections would use
constexpr std::size_t kAcquiresPerTurn = 100;  // while filling

// Takes every batch and keeps nothing: what a store does with its bytes is not counted here.
class NoStore final : public store::Store {
 public:
  Result<store::Loaded> load(store::Visitor& /*visitor*/) override { return store::Loaded{}; }
  void submit(const Batch& /*batch*/, BatchId id, store::Sink& sink) override { sink.durable(id); }
  bool has_room() override { return true; }
  Result<void> close() override { return {}; }
  [[nodiscard]] std::string_view kind() const override { return "none"; }
};

// Moves a little with each reading, as time does, so that timers are armed where they would be.
class SteadyClock final : public server::ClockSource {
 public:
  server::ClockReading read() override {
    monotonic_ += std::chrono::microseconds(5);
    return {monotonic_, UnixMs{1'700'000'000'000}};
  }

 private:
  Nanos monotonic_{std::chrono::hours(1)};
};

// Keeps the last reply.
class LastReply final : public server::Network {
 public:
  std::size_t send(server::ConnectionId /*connection*/, std::string_view bytes) override {
    reply.assign(bytes);
    return bytes.size();
  }
  void want_input(server::ConnectionId /*connection*/, bool /*wanted*/) override {}
  void close(server::ConnectionId /*connection*/) override {
    PAWL_ASSERT(false && "the engine closed the connection");
  }

  std::string reply;
};

class Bench {
 public:
  Bench()
      : engine_(settings(),
                {store_, clock_, random_, network_, log_, [](const Error&) { std::abort(); }}) {
    PAWL_ASSERT(engine_.load());
    PAWL_ASSERT(engine_.connected(kConnection, "bench"));
    for (std::size_t i = 0; i < kOwnLocks; ++i) talks_.push_back(talk("cycle", i));
  }

  void hold(std::size_t count) {
    std::string requests;
    for (std::size_t i = 0; i < count; ++i) {
      requests += talk("held", i).round[0].request;
      if ((i + 1) % kAcquiresPerTurn != 0 && i + 1 != count) continue;
      ask(requests);
      requests.clear();
    }
    PAWL_ASSERT(engine_.totals().leases == count);
  }

  void cycles(std::size_t count, bool counted) {
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Step>& round = talks_[i % kOwnLocks].round;
      if (counted) CALLGRIND_TOGGLE_COLLECT;
      ask(round[0].request);
      if (counted) CALLGRIND_TOGGLE_COLLECT;
      const std::string_view lease = lease_in(network_.reply);
      PAWL_ASSERT(lease.size() == kLeaseSize);
      lease.copy(round[1].request.data() + round[1].lease_at, kLeaseSize);
      if (counted) CALLGRIND_TOGGLE_COLLECT;
      ask(round[1].request);
      if (counted) CALLGRIND_TOGGLE_COLLECT;
      PAWL_ASSERT(network_.reply == ":1\r\n");
    }
  }

 private:
  static server::EngineSettings settings() {
    server::EngineSettings made;
    made.core.hash_seed = 1;  // The same tables in every run.
    return made;
  }
  static Conversation talk(std::string_view run, std::size_t number) {
    return conversation(Peer::kPawl, Workload::kCycle, run, number, {});
  }
  void ask(std::string_view request) {
    engine_.received(kConnection, request);
    engine_.run_turn();
  }

  NoStore store_;
  SteadyClock clock_;
  SeededRandom random_{1};
  LastReply network_;
  NoLog log_;
  server::Engine engine_;
  std::vector<Conversation> talks_;
};

}  // namespace
}  // namespace pawl::bench

int main(int argc, char** argv) {
  const unsigned long held = argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const unsigned long cycles = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (cycles == 0) {
    std::fputs(
        "usage: valgrind --tool=callgrind --instr-atstart=no --collect-atstart=no "
        "pawl_bench_instructions HELD CYCLES\n",
        stderr);
    return 64;
  }
  pawl::bench::Bench bench;
  bench.hold(held);
  bench.cycles(pawl::limits::kHistoryEpochs + cycles, false);
  CALLGRIND_START_INSTRUMENTATION;
  bench.cycles(cycles, true);
  CALLGRIND_STOP_INSTRUMENTATION;
  return 0;
}
