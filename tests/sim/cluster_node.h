// A simulated pawld of several that share a store: the real engine and the real cluster store over
// a model of the consensus engine, with a clock of its own. It is killed, stands still, sleeps, is
// cut off, resigns, and starts again as a standby.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/waker.h"
#include "server/engine.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/server_watch.h"
#include "sim/shared_log_model.h"
#include "sim/world.h"
#include "store/cluster/cluster_store.h"

namespace pawl::sim {

inline constexpr Nanos kRoleTtl = Millis(1000);

// Where clients reach the node with this number.
[[nodiscard]] std::string node_host(int number);

class ClusterNode final : private server::Network, private server::ClockSource, private Waker {
 public:
  // What the nodes have in common.
  struct Shared {
    SharedLogModel& log;
    ServerWatch& watch;  // Of whichever is active.
    History& history;
    std::vector<std::string>& faults;
  };
  ClusterNode(World& world, Shared shared, int number, Rate rate);
  ~ClusterNode() override;

  void attach(sim::Network& network) { network_ = &network; }

  void start();
  void kill();
  void pause(Nanos duration);
  // CLOCK_MONOTONIC stands still meanwhile, CLOCK_BOOTTIME does not.
  void suspend(Nanos duration);
  void cut_off(bool cut);
  void resign();
  [[nodiscard]] bool up() const { return engine_ != nullptr; }
  // It serves, as far as it knows.
  [[nodiscard]] bool active() const { return up() && !engine_->loading(); }
  [[nodiscard]] core::Totals totals() const { return engine_->totals(); }
  [[nodiscard]] std::uint64_t takeovers() const { return takeovers_; }

  bool on_connect(LinkId link);
  void on_bytes(LinkId link, std::string bytes);
  void on_hangup(LinkId link);

 private:
  enum class Clock { kRuns, kStops };

  // server::Network
  std::size_t send(server::ConnectionId connection, std::string_view bytes) override;
  void want_input(server::ConnectionId, bool) override {}
  void close(server::ConnectionId connection) override;
  // server::ClockSource
  server::ClockReading read() override;
  Nanos boot_time() override { return rate_.local(world_.now()); }
  // Waker
  void wake() override { turn_soon(); }

  void stand_still(Nanos duration, Clock clock);
  void turn_soon();
  void turn();
  void look_at_role();
  void wake_at(Nanos delay);

  World& world_;
  Shared shared_;
  const int number_;
  const Rate rate_;
  SeededRandom random_;
  NoLog log_;
  sim::Network* network_ = nullptr;

  std::unique_ptr<SimulatedLog> way_;
  std::unique_ptr<store::cluster::ClusterStore> store_;
  std::unique_ptr<server::Engine> engine_;
  std::set<LinkId> links_;
  server::ConnectionId watcher_;
  std::uint64_t served_epoch_ = 0;
  std::uint64_t takeovers_ = 0;
  std::uint64_t life_ = 0;
  std::uint64_t alarm_ = 0;
  bool turn_due_ = false;
  bool paused_ = false;
  bool dying_ = false;
  Nanos slept_{0};
  std::optional<Nanos> held_since_;  // Its output, on the clock of read().
  struct Arrival {
    LinkId link;
    bool hangup;
    std::string bytes;
  };
  std::vector<Arrival> arrived_;  // While paused.
};

}  // namespace pawl::sim
