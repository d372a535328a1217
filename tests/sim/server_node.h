// A simulated pawld: the real engine and the real journal on a simulated disk, with a clock of its own. It crashes
// (the process, or the power), loses what was not synced, starts again, and pauses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "server/engine.h"
#include "sim/network.h"
#include "sim/world.h"
#include "store/journal/journal.h"
#include "store/simulated_disk.h"

namespace pawl::sim {

class ServerNode final : public ServerEndpoint, private server::Network, private server::ClockSource {
 public:
  ServerNode(World& world, Rate rate);
  ~ServerNode() override;

  void attach(sim::Network& network) { network_ = &network; }

  // An error is a violation: what a crash leaves behind must always be startable.
  Result<void> start();
  void kill();
  void cut_power();
  // The power goes at the `operations`th disk operation from now: in the middle of a commit, a switch, a checkpoint.
  void cut_power_soon(std::uint64_t operations);
  void pause(Nanos duration);
  [[nodiscard]] bool up() const { return engine_ != nullptr; }
  [[nodiscard]] core::Totals totals() const { return engine_->totals(); }
  [[nodiscard]] std::uint64_t crashes() const { return crashes_; }

  bool on_connect(LinkId link) override;
  void on_bytes(LinkId link, std::string bytes) override;
  void on_hangup(LinkId link) override;

 private:
  // server::Network
  std::size_t send(server::ConnectionId connection, std::string_view bytes) override;
  void want_input(server::ConnectionId, bool) override {}
  void close(server::ConnectionId connection) override;
  // server::ClockSource
  server::ClockReading read() override;

  void turn_soon();
  void turn();
  void wake_at(Nanos delay);
  void housekeeping();
  void crashed(const char* how);

  World& world_;
  const Rate rate_;
  sim::Network* network_ = nullptr;
  store::SimulatedDisk disk_;
  SeededRandom random_;  // Lease ids: not the world's, so that tracing a run does not change it.
  NoLog log_;

  std::unique_ptr<store::journal::Journal> journal_;
  std::unique_ptr<server::Engine> engine_;
  std::uint64_t life_ = 0;
  std::uint64_t crashes_ = 0;
  std::uint64_t wake_ = 0;
  bool turn_due_ = false;
  bool dying_ = false;
  bool paused_ = false;
  struct Arrival {
    LinkId link;
    bool hangup;
    std::string bytes;
  };
  std::vector<Arrival> arrived_;  // While paused.
};

}  // namespace pawl::sim
