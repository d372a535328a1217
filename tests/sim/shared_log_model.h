// A model of the consensus engine that several simulated pawld share: a head and a log, changed at
// one moment by each write. The way there and back is slow at times and loses both requests and
// answers; a request that was given up may still arrive, seconds later.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/world.h"
#include "store/cluster/shared_log.h"

namespace pawl::sim {

class SharedLogModel {
 public:
  using Write = store::cluster::SharedLog::Write;
  using WriteAnswer = store::cluster::SharedLog::WriteAnswer;
  using Read = store::cluster::SharedLog::Read;
  using ReadAnswer = store::cluster::SharedLog::ReadAnswer;

  explicit SharedLogModel(World& world) : world_(world) {}

  [[nodiscard]] WriteAnswer write(const Write& write);
  [[nodiscard]] ReadAnswer read(const Read& read) const;
  void heal() { lossy_ = false; }

  // --- The way of one message --------------------------------------------------------------------
  [[nodiscard]] bool loses() { return lossy_ && world_.chance(2); }
  [[nodiscard]] Nanos delay();

 private:
  World& world_;
  std::string head_;
  std::map<std::uint64_t, std::string> entries_;
  bool lossy_ = true;
};

// One pawld's way to it. Ends with the process; what it has sent may still arrive.
class SimulatedLog final : public store::cluster::SharedLog {
 public:
  // `answered` is called after each answer.
  SimulatedLog(World& world, SharedLogModel& model, std::function<void()> answered);
  ~SimulatedLog() override;

  void listen(Listener* listener) override { state_->listener = listener; }
  void write(const Write& write) override;
  void read(const Read& read) override;
  [[nodiscard]] std::string_view kind() const override { return "simulated"; }

  // While cut, nothing passes either way.
  void cut(bool now_cut) { state_->cut = now_cut; }
  // While its process stands still, answers wait.
  void pause(bool paused);

 private:
  // Shared with what is under way.
  struct State {
    Listener* listener = nullptr;  // nullptr: its process has ended.
    std::function<void()> answered;
    bool cut = false;
    bool paused = false;
    std::uint64_t writes = 0, reads = 0;  // The one that an answer is waited for.
    std::vector<std::function<void()>> waiting;
  };
  static void deliver(State& state, const std::function<void()>& answer);

  World& world_;
  SharedLogModel& model_;
  std::shared_ptr<State> state_;
};

}  // namespace pawl::sim
