#include "sim/simulation.h"

#include <fmt/format.h>

#include <memory>

#include "sim/client_node.h"
#include "sim/server_node.h"

namespace pawl::sim {
namespace {

using std::chrono::seconds;

constexpr int kClients = 6;
constexpr Nanos kStormy = seconds(20);  // With faults; then everything heals.
constexpr Nanos kCalm = seconds(30);    // Enough for every wait, lease and retry to end (P7).

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : world_(seed), server_(world_, rate()), network_(world_, server_, faults()) {
    server_.attach(network_);
    Workload workload;
    const std::uint64_t locks = 1 + world_.random().below(3);
    for (std::uint64_t i = 0; i < locks; ++i) workload.locks.push_back(fmt::format("lock-{}", i));
    workload.ttl = Millis(300 + world_.random().below(1500));
    for (int i = 1; i <= kClients; ++i) {
      clients_.push_back(std::make_unique<ClientNode>(world_, network_, i, rate(), workload, history_));
    }
  }

  Verdict run() {
    start_server();
    for (auto& client : clients_) client->begin();
    plan_faults();
    world_.run_until(Moment(kStormy));
    calm_down();
    world_.run_until(Moment(kStormy + kCalm));
    return judge();
  }

 private:
  // Relative rates stay within ρ = 1 % (hard case 30, normal profile).
  Rate rate() {
    Rate rate;
    rate.offset = world_.between(seconds(0), seconds(1'000'000));
    rate.parts_per_million = 995'000 + static_cast<std::int64_t>(world_.random().below(10'001));
    return rate;
  }

  NetworkFaults faults() {
    NetworkFaults faults;
    faults.break_percent = static_cast<unsigned>(world_.random().below(4));
    faults.slow_percent = static_cast<unsigned>(world_.random().below(6));
    return faults;
  }

  void start_server() {
    const auto started = server_.start();
    if (!started) faults_.push_back(fmt::format("pawld does not start: {}", started.error().detail));
  }

  // A fault every now and then; whatever brings pawld down brings it back later.
  void plan_faults() {
    world_.after(world_.between(Millis(100), Millis(3000)), [this] {
      if (calm_) return;
      switch (world_.random().below(6)) {
        case 0:
          server_.kill();
          break;
        case 1:
          server_.cut_power();
          break;
        case 2:
        case 3:
          server_.cut_power_soon(1 + world_.random().below(40));
          break;
        case 4:
          server_.pause(world_.between(Millis(20), Millis(3000)));
          break;
        default:
          cut_network(world_.between(Millis(20), Millis(2500)));
          break;
      }
      restart_when_down();
      plan_faults();
    });
  }

  void cut_network(Nanos duration) {
    world_.note("the network is cut");
    network_.cut(true);
    world_.after(duration, [this] {
      world_.note("the network is back");
      network_.cut(false);
    });
  }

  void restart_when_down() {
    if (server_.up()) return;
    world_.after(world_.between(Millis(5), Millis(800)), [this] {
      if (!server_.up() && faults_.empty()) start_server();
    });
  }

  void calm_down() {
    calm_ = true;
    network_.cut(false);
    network_.heal();
    for (auto& client : clients_) client->wind_down();
    watch_over();
  }

  // A power cut planned in the storm may still come; pawld is started again whenever it is down.
  void watch_over() {
    restart_when_down();
    if (world_.now() < Moment(kStormy + kCalm)) world_.after(Millis(200), [this] { watch_over(); });
  }

  Verdict judge() {
    Verdict verdict;
    for (std::string& fault : check(history_)) faults_.push_back(std::move(fault));
    for (const auto& client : clients_) {
      verdict.grants += client->grants();
      if (!client->idle()) faults_.push_back(fmt::format("P7: all is healed, and still {}", client->state()));
    }
    if (server_.up()) {
      const core::Totals totals = server_.totals();
      if (totals.locks != 0 || totals.leases != 0 || totals.waiters != 0) {
        faults_.push_back(fmt::format("P7: nobody is left, and still {} locks, {} leases, {} waiters",
                                      totals.locks, totals.leases, totals.waiters));
      }
      for (const Attempt& attempt : history_) {
        if (attempt.token > totals.last_token) {
          faults_.push_back(fmt::format("P6: token {} was handed out, the counter says {}",
                                        attempt.token.value, totals.last_token.value));
        }
      }
    } else if (faults_.empty()) {
      faults_.push_back("P7: all is healed, and pawld is down");
    }
    verdict.faults = std::move(faults_);
    verdict.crashes = server_.crashes();
    verdict.fingerprint = world_.fingerprint();
    verdict.trace = world_.trace();
    return verdict;
  }

  World world_;
  ServerNode server_;
  Network network_;
  std::vector<Attempt> history_;
  std::vector<std::unique_ptr<ClientNode>> clients_;
  std::vector<std::string> faults_;
  bool calm_ = false;
};

}  // namespace

Verdict simulate(std::uint64_t seed) {
  return Simulation(seed).run();
}

}  // namespace pawl::sim
