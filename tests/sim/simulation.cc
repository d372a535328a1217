#include "sim/simulation.h"

#include <fmt/format.h>

#include "sim/checker.h"
#include "sim/server_node.h"
#include "sim/users.h"

namespace pawl::sim {
namespace {

using std::chrono::seconds;

// The kind of run, by chance: most are normal, some have clocks beyond ρ, some a disk that fails.
Demand kind_of(World& world, const Plan& plan) {
  const std::uint64_t luck = world.random().below(10);
  if (luck == 0 && plan.has(Trouble::kWildClocks)) return Demand::kClockFree;
  if (luck <= 2 && plan.has(Trouble::kBadDisk)) return Demand::kTokensOnly;
  return Demand::kAll;
}

// In one run of eight pawld's machine is lost, and in some of those the next one, too. It takes an
// operator to restore.
unsigned restores(World& world, const Plan& plan) {
  const std::uint64_t luck = world.random().below(24);
  if (luck >= 3 || !plan.has(Trouble::kRestore) || !plan.has(Trouble::kOperator)) return 0;
  return luck == 0 ? 2 : 1;
}

class Simulation {
 public:
  explicit Simulation(const Plan& plan)
      : plan_(plan),
        world_(plan.seed),
        demand_(kind_of(world_, plan)),
        restores_left_(restores(world_, plan)),
        workload_(workload()),
        server_(world_, rate(), workload_.ttl, faults_, history_.pauses),
        network_(world_, server_, network_faults()),
        guard_(world_, history_),
        users_(
            plan, {world_, network_, guard_, workload_, server_.watch(), history_, faults_},
            [this] { return rate(); },
            [this](LinkId link, const std::string& owner) { server_.expect_wait(link, owner); }) {
    history_.demand = demand_;
    if (plan.traced) world_.keep_trace();
    if (!plan.has(Trouble::kGuardLoss)) guard_.heal();
    server_.attach(network_);
  }

  Verdict run() {
    start_server();
    users_.begin();
    plan_faults();
    if (restores_left_ > 0) {
      plan_backups();
      plan_loss();
    }
    world_.run_until(storm_end());
    calm_down();
    world_.run_until(storm_end() + kCalm);
    return judge();
  }

 private:
  [[nodiscard]] Moment storm_end() const { return Moment(Millis(plan_.storm_ms)); }

  // Relative rates stay within ρ = 1 %, or do not (hard case 30).
  Rate rate() {
    const std::int64_t spread = demand_ == Demand::kClockFree ? 100'000 : 5'000;
    Rate rate;
    rate.offset = world_.between(seconds(0), seconds(1'000'000));
    rate.parts_per_million = 1'000'000 - spread +
                             static_cast<std::int64_t>(
                                 world_.random().below(static_cast<std::uint64_t>(2 * spread + 1)));
    return rate;
  }

  Workload workload() {
    Workload workload;
    const std::uint64_t locks = 1 + world_.random().below(3);
    for (std::uint64_t i = 0; i < locks; ++i) workload.locks.push_back(fmt::format("lock-{}", i));
    workload.election = "election";
    workload.ttl = Millis(300 + world_.random().below(1500));
    // A lease as long as the wait after a restore shows whether that is long enough.
    if (restores_left_ > 0 && world_.chance(50)) workload.ttl = kMaxTtl;
    workload.freeze_percent = plan_.has(Trouble::kFreeze) ? 3 : 0;
    workload.die_percent = plan_.has(Trouble::kDeath) ? 5 : 0;
    workload.long_percent = world_.chance(50) ? 10 : 25;
    return workload;
  }

  NetworkFaults network_faults() {
    NetworkFaults faults;
    faults.break_percent = static_cast<unsigned>(world_.random().below(4));
    faults.slow_percent = static_cast<unsigned>(world_.random().below(10));
    if (world_.chance(20))
      faults.slow_percent = 25;  // A bad line: answers that come after their time.
    if (!plan_.has(Trouble::kBreaks)) faults.break_percent = 0;
    if (!plan_.has(Trouble::kSlow)) faults.slow_percent = 0;
    return faults;
  }

  void start_server() {
    server_.start();
    if (server_.up())
      history_.starts.push_back({world_.now(), server_.totals().last_token, server_.restoring()});
  }

  // A fault every now and then; whatever brings pawld down brings it back later.
  void plan_faults() {
    world_.after(world_.between(Millis(100), Millis(3000)), [this] {
      if (calm_) return;
      make_trouble();
      restart_when_down();
      plan_faults();
    });
  }

  // --- Backups, and the day they are for ---------------------------------------------------------

  void plan_backups() {
    world_.after(world_.between(Millis(200), Millis(3000)), [this] {
      if (calm_) return;
      users_.the_operator().back_up();
      plan_backups();
    });
  }

  void plan_loss() {
    const Nanos storm = Millis(plan_.storm_ms);
    world_.after(world_.between(storm / 20, storm / 2), [this] { lose_the_machine(); });
  }

  // A store that was restored is restored from a backup of its own: an older one would begin its
  // era again.
  void lose_the_machine() {
    if (calm_) return;
    const auto backup = users_.the_operator().some_backup();
    if (!backup) return world_.after(Millis(300), [this] { lose_the_machine(); });
    const auto restored = server_.lose_and_restore(*backup);
    if (!restored) return;
    history_.restores.push_back({world_.now(), restored->last_token});
    users_.the_operator().forget_backups();
    restart_when_down(
        Millis(world_.chance(50) ? 20 : 800));  // The sooner, the more of a too short wait shows.
    if (--restores_left_ > 0) plan_loss();
  }

  void make_trouble() {
    if (demand_ == Demand::kTokensOnly && world_.chance(40)) return spoil_the_disk();
    switch (world_.random().below(12)) {
      case 0:
        return plan_.has(Trouble::kKill) ? server_.kill() : void();
      case 8:
      case 9:
        return plan_.has(Trouble::kKill) ? server_.kill_soon(1 + world_.random().below(40))
                                         : void();
      case 10:
        return plan_.has(Trouble::kSuspend)
                   ? server_.suspend(world_.between(Millis(20), Millis(3000)))
                   : void();
      case 11:
        return plan_.has(Trouble::kWallClock) ? jump_wall_clock() : void();
      case 1:
        return plan_.has(Trouble::kPower) ? server_.cut_power() : void();
      case 2:
      case 3:
        return plan_.has(Trouble::kPower) ? server_.cut_power_soon(1 + world_.random().below(40))
                                          : void();
      case 4:
        return plan_.has(Trouble::kPause) ? server_.pause(world_.between(Millis(20), Millis(3000)))
                                          : void();
      case 5:
        return plan_.has(Trouble::kGuardRestart) ? guard_.restart() : void();
      default:
        return cut_network();
    }
  }

  // Forwards or backwards, by up to ten hours.
  void jump_wall_clock() {
    server_.jump_wall_clock(world_.between(std::chrono::hours(0), std::chrono::hours(20)) -
                            std::chrono::hours(10));
  }

  // For these only P6 and a clean refusal are demanded.
  void spoil_the_disk() {
    switch (world_.random().below(3)) {
      case 0:
        return server_.fail_disk_soon(1 + world_.random().below(30));
      case 1:
        server_.fill_disk(true);
        return world_.after(world_.between(Millis(50), Millis(1500)),
                            [this] { server_.fill_disk(false); });
      default:
        server_.cut_power();
        return server_.flip_a_bit();
    }
  }

  void cut_network() {
    const Nanos duration = world_.between(Millis(20), Millis(2500));
    if (!plan_.has(Trouble::kCut)) return;
    world_.note("the network is cut");
    network_.cut(true);
    world_.after(duration, [this] {
      world_.note("the network is back");
      network_.cut(false);
    });
  }

  void restart_when_down(Millis at_most = Millis(800)) {
    if (server_.up()) return;
    world_.after(world_.between(Millis(5), at_most), [this] {
      if (!server_.up() && faults_.empty()) start_server();
    });
  }

  void calm_down() {
    calm_ = true;
    history_.calm = world_.now();
    network_.cut(false);
    network_.heal();
    guard_.heal();
    server_.fill_disk(false);
    users_.wind_down();
    watch_over();
  }

  // A power cut planned in the storm may still come; pawld is started again whenever it is down.
  void watch_over() {
    restart_when_down();
    if (world_.now() < storm_end() + kCalm) world_.after(Millis(200), [this] { watch_over(); });
  }

  void check_the_end() {
    users_.check_all_are_idle();
    if (!server_.up()) return faults_.push_back("P7: all is healed, and pawld is down");
    users_.check_observers(Token{});
    const core::Totals totals = server_.totals();
    if (totals.locks != 0 || totals.leases != 0 || totals.waiters != 0) {
      faults_.push_back(
          fmt::format("P7: no client is left, and still {} locks, {} leases, {} waiters",
                      totals.locks, totals.leases, totals.waiters));
    }
    history_.starts.push_back(
        {world_.now(), totals.last_token, Millis(0)});  // P6 at the very end, too.
  }

  Verdict judge() {
    Verdict verdict;
    if (faults_.empty()) check_the_end();
    for (std::string& fault : check(history_)) faults_.push_back(std::move(fault));
    users_.count(verdict);
    verdict.restores = history_.restores.size();
    verdict.faults = std::move(faults_);
    verdict.crashes = server_.crashes();
    verdict.refusals = server_.refusals();
    verdict.fingerprint = world_.fingerprint();
    verdict.simulated = storm_end() + kCalm - Moment{};
    verdict.trace = world_.trace();
    if (plan_.traced) verdict.history = std::move(history_);
    return verdict;
  }

  const Plan plan_;
  World world_;
  const Demand demand_;
  unsigned restores_left_;
  const Workload workload_;
  std::vector<std::string> faults_;
  History history_;
  ServerNode server_;
  Network network_;
  GuardModel guard_;
  Users users_;
  bool calm_ = false;
};

}  // namespace

Verdict simulate(const Plan& plan) {
  return plan.nodes > 0 ? simulate_cluster(plan) : Simulation(plan).run();
}

}  // namespace pawl::sim
