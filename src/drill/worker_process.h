// One worker of a drill, as the drill sees it: a real process that takes commands, and that can be
// frozen, resumed and killed.
//
//   auto a = WorkerProcess::start("A", config);
//   (*a)->acquire("orders", 2s, 60s);
//   …poll its interest(), call on_ready()…, then:
//   for (const WorkerEvent& event : (*a)->take_events()) …
//
// Commands are only sent here; their results arrive as events. A frozen worker carries out its
// commands once it is resumed. The program must ignore SIGPIPE: a worker that has died must not end
// the drill.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "drill/config.h"
#include "drill/pollable.h"
#include "pawl/client.h"

namespace pawl::drill {

// What a worker reported. Which fields are set depends on the kind.
struct WorkerEvent {
  enum class Kind : std::uint8_t {
    kReady,
    kFailed,      // detail: it cannot carry out commands
    kGranted,     // token
    kNotGranted,  // code, detail
    kReleased,
    kAdvanced,  // outcome
    kWritten,   // id, sent, outcome
    kWithheld,  // id, sent, detail
    kTried,     // ways
    kLease,     // token, state, detail
    kEnded,     // the process has ended, or has closed its pipe
  };
  Kind kind = Kind::kEnded;
  client::Instant at = {};  // on the boot clock, which both processes share
  client::Instant sent = {};
  std::uint64_t id = 0;
  std::uint64_t token = 0;
  Code code = Code::kUnavailable;
  LeaseState state = LeaseState::kHeld;
  guard::Outcome outcome = {};
  std::string detail = {};
  std::vector<TriedWay> ways = {};
};

// What a worker does before it writes.
enum class LeaseCheck : std::uint8_t {
  kSkip,         // Nothing: it checked its lease earlier, and was held up in between.
  kBeforeWrite,  // It checks its lease, and does not write when that is over.
};

class WorkerProcess final : public Pollable {
 public:
  // Returns at once; kReady arrives when it can take commands. It connects to `proxy_address` if
  // that is given, else to config.pawld. Call it from a thread that lives as long as the worker
  // (ProcessOptions::die_with_parent).
  static Result<std::unique_ptr<WorkerProcess>> start(const std::string& name,
                                                      const DrillConfig& config,
                                                      const std::string& proxy_address = {});
  // Lets it end by itself, which releases its lease. Kills it when it is frozen, or takes longer
  // than two seconds.
  ~WorkerProcess() override;

  [[nodiscard]] const std::string& name() const { return name_; }

  void acquire(const std::string& lock, std::chrono::milliseconds ttl,
               std::chrono::milliseconds wait);
  void release();
  void advance(std::uint64_t token, std::chrono::milliseconds wait);
  void write(std::uint64_t id, std::uint64_t token, const std::string& value, LeaseCheck check);
  void try_ways(std::uint64_t token);

  void freeze();
  void resume();
  void kill();
  // Continues as the process of `other`, which has none then: the same worker, started again.
  void take_over(WorkerProcess& other);
  [[nodiscard]] bool frozen() const { return frozen_; }
  [[nodiscard]] bool running() const { return running_; }

  [[nodiscard]] std::vector<WorkerEvent> take_events() { return std::exchange(events_, {}); }

  [[nodiscard]] std::vector<pollfd> interest() const override;
  void on_ready(std::span<const pollfd> ready) override;

 private:
  struct Reader;
  WorkerProcess(std::string name, Process process, UniqueFd commands, UniqueFd reports);
  void send(const std::string& line);
  void on_end();

  const std::string name_;
  Process process_;
  UniqueFd commands_;  // its stdin
  UniqueFd reports_;   // its stdout
  std::unique_ptr<Reader> reader_;
  std::vector<WorkerEvent> events_;
  bool frozen_ = false;
  bool running_ = true;
};

}  // namespace pawl::drill
