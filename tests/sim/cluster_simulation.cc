// A run in which several pawld share a store.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "sim/checker.h"
#include "sim/cluster_node.h"
#include "sim/simulation.h"
#include "sim/users.h"

namespace pawl::sim {
namespace {

using std::chrono::seconds;

// Which node a connection leads to: the one that libpawl has chosen. Plain clients mostly find the
// active one.
class Front final : public ServerEndpoint {
 public:
  using Nodes = std::vector<std::unique_ptr<ClusterNode>>;
  Front(World& world, const Nodes& nodes, int count) : world_(world), nodes_(nodes) {
    for (int i = 1; i <= count; ++i) hosts_.push_back(node_host(i));
  }

  [[nodiscard]] std::vector<std::string> hosts() const override { return hosts_; }
  bool on_connect(LinkId link, const std::string& host) override {
    std::size_t chosen =
        static_cast<std::size_t>(std::find(hosts_.begin(), hosts_.end(), host) - hosts_.begin());
    if (chosen == hosts_.size()) chosen = some_node();
    if (!nodes_[chosen]->on_connect(link)) return false;
    at_[link] = chosen;
    return true;
  }
  void on_bytes(LinkId link, std::string bytes) override {
    nodes_[at_.at(link)]->on_bytes(link, std::move(bytes));
  }
  void on_hangup(LinkId link) override { nodes_[at_.at(link)]->on_hangup(link); }

 private:
  std::size_t some_node() {
    std::size_t chosen = world_.random().below(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i]->active() && world_.chance(70)) chosen = i;
    }
    return chosen;
  }

  World& world_;
  const Nodes& nodes_;
  std::vector<std::string> hosts_;
  std::map<LinkId, std::size_t> at_;
};

class ClusterSimulation {
 public:
  explicit ClusterSimulation(const Plan& plan)
      : plan_(plan),
        world_(plan.seed),
        workload_(workload()),
        log_(world_),
        watch_(workload_.ttl, faults_),
        front_(world_, nodes_, plan.nodes),
        network_(world_, front_, network_faults()),
        guard_(world_, history_) {
    if (plan.traced) world_.keep_trace();
    if (!plan.has(Trouble::kGuardLoss)) guard_.heal();
    for (int i = 1; i <= plan.nodes; ++i) {
      nodes_.push_back(std::make_unique<ClusterNode>(
          world_, ClusterNode::Shared{log_, watch_, history_, faults_}, i, rate()));
      nodes_.back()->attach(network_);
    }
    users_.emplace(
        plan, Surroundings{world_, network_, guard_, workload_, watch_, history_, faults_},
        [this] { return rate(); }, [](LinkId, const std::string&) {});
  }

  Verdict run() {
    for (auto& node : nodes_) node->start();
    users_->begin();
    plan_faults();
    world_.run_until(storm_end());
    calm_down();
    world_.run_until(storm_end() + kCalm);
    return judge();
  }

 private:
  [[nodiscard]] Moment storm_end() const { return Moment(Millis(plan_.storm_ms)); }

  // Relative rates stay within ρ = 1 %.
  Rate rate() {
    Rate rate;
    rate.offset = world_.between(seconds(0), seconds(1'000'000));
    rate.parts_per_million = 995'000 + static_cast<std::int64_t>(world_.random().below(10'001));
    return rate;
  }

  Workload workload() {
    Workload workload;
    const std::uint64_t locks = 1 + world_.random().below(3);
    for (std::uint64_t i = 0; i < locks; ++i) workload.locks.push_back(fmt::format("lock-{}", i));
    workload.election = "election";
    // Some shorter than a takeover takes, some longer.
    workload.ttl = Millis(300 + world_.random().below(3000));
    workload.freeze_percent = plan_.has(Trouble::kFreeze) ? 3 : 0;
    workload.die_percent = plan_.has(Trouble::kDeath) ? 5 : 0;
    workload.long_percent = world_.chance(50) ? 10 : 25;
    return workload;
  }

  NetworkFaults network_faults() {
    NetworkFaults faults;
    faults.break_percent = static_cast<unsigned>(world_.random().below(4));
    faults.slow_percent = static_cast<unsigned>(world_.random().below(10));
    if (!plan_.has(Trouble::kBreaks)) faults.break_percent = 0;
    if (!plan_.has(Trouble::kSlow)) faults.slow_percent = 0;
    return faults;
  }

  void plan_faults() {
    world_.after(world_.between(Millis(100), Millis(2000)), [this] {
      if (calm_) return;
      make_trouble();
      plan_faults();
    });
  }

  // Mostly the one that is active.
  ClusterNode& some_node() {
    for (const auto& node : nodes_) {
      if (node->active() && world_.chance(75)) return *node;
    }
    return *nodes_[world_.random().below(nodes_.size())];
  }

  void make_trouble() {
    ClusterNode& node = some_node();
    switch (world_.random().below(10)) {
      case 0:
      case 1:
        if (!plan_.has(Trouble::kKill) || !node.up()) return;
        ++crashes_;
        node.kill();
        return start_later(node);
      case 2:
      case 3:  // Past the end of its role, or not.
        return plan_.has(Trouble::kPause) ? node.pause(world_.between(Millis(20), 4 * kRoleTtl))
                                          : void();
      case 4:
        return plan_.has(Trouble::kSuspend) ? node.suspend(world_.between(Millis(20), 4 * kRoleTtl))
                                            : void();
      case 5:
      case 6:
        if (!plan_.has(Trouble::kPower)) return;
        node.cut_off(true);
        return world_.after(world_.between(Millis(20), 3 * kRoleTtl),
                            [&node] { node.cut_off(false); });
      case 7:
        return plan_.has(Trouble::kRestore) ? node.resign() : void();
      case 8:
        return plan_.has(Trouble::kGuardRestart) ? guard_.restart() : void();
      default:
        return cut_network();
    }
  }

  void cut_network() {
    if (!plan_.has(Trouble::kCut)) return;
    world_.note("the network of the clients is cut");
    network_.cut(true);
    world_.after(world_.between(Millis(20), Millis(1500)), [this] { network_.cut(false); });
  }

  void start_later(ClusterNode& node) {
    world_.after(world_.between(Millis(5), Millis(1500)), [this, &node] {
      if (!node.up() && faults_.empty()) node.start();
    });
  }

  void calm_down() {
    calm_ = true;
    history_.calm = world_.now();
    network_.cut(false);
    network_.heal();
    guard_.heal();
    log_.heal();
    for (auto& node : nodes_) {
      node->cut_off(false);
      if (!node->up()) start_later(*node);
    }
    users_->wind_down();
  }

  void check_the_end() {
    users_->check_all_are_idle();
    users_->check_observers(Token{});
    std::size_t active = 0;
    for (const auto& node : nodes_) {
      if (!node->active()) continue;
      ++active;
      const core::Totals totals = node->totals();
      if (totals.locks + totals.leases + totals.waiters != 0) {
        faults_.push_back(
            fmt::format("P7: no client is left, and still {} locks, {} leases, {} waiters",
                        totals.locks, totals.leases, totals.waiters));
      }
      history_.starts.push_back({world_.now(), totals.last_token, Millis(0)});
    }
    if (active != 1)
      faults_.push_back(fmt::format("P7: all is healed, and {} pawld are active", active));
  }

  Verdict judge() {
    Verdict verdict;
    if (faults_.empty()) check_the_end();
    for (std::string& fault : check(history_)) faults_.push_back(std::move(fault));
    users_->count(verdict);
    for (const auto& node : nodes_) verdict.takeovers += node->takeovers();
    verdict.faults = std::move(faults_);
    verdict.crashes = crashes_;
    verdict.fingerprint = world_.fingerprint();
    verdict.simulated = storm_end() + kCalm - Moment{};
    verdict.trace = world_.trace();
    if (plan_.traced) verdict.history = std::move(history_);
    return verdict;
  }

  const Plan plan_;
  World world_;
  const Workload workload_;
  std::vector<std::string> faults_;
  History history_;
  SharedLogModel log_;
  ServerWatch watch_;
  std::vector<std::unique_ptr<ClusterNode>> nodes_;
  Front front_;
  Network network_;
  GuardModel guard_;
  std::optional<Users> users_;  // After the nodes.
  std::uint64_t crashes_ = 0;
  bool calm_ = false;
};

}  // namespace

Verdict simulate_cluster(const Plan& plan) {
  return ClusterSimulation(plan).run();
}

}  // namespace pawl::sim
