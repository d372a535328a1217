#include "drill/drills.h"

#include <array>
#include <vector>

#include "drill/scenario.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;

struct Pair {
  WorkerProcess* first;   // holds the lock, and loses it
  WorkerProcess* second;  // is granted it then
};
// They change places every round.
Pair pair_of(WorkerProcess& a, WorkerProcess& b, std::uint64_t round) {
  return round % 2 == 0 ? Pair{&a, &b} : Pair{&b, &a};
}

// The first worker writes once more with its old token, and only then checks its lease.
void write_late(Scenario& scenario, const Pair& pair, std::uint64_t old) {
  scenario.pause_briefly();
  scenario.write(*pair.first, old);
  scenario.try_ways(*pair.first, old);
  scenario.await_loss_noticed(*pair.first);
  scenario.write(*pair.first, old, LeaseCheck::kBeforeWrite);
  scenario.pause_briefly();
  scenario.write(*pair.second, scenario.token(*pair.second));
}

// The first worker is stopped for longer than its lease, as by a garbage collection, by swapping or
// by the migration of a virtual machine. It does not notice.
void freeze_and_take_over(Scenario& scenario, const Pair& pair) {
  const std::uint64_t old = scenario.token(*pair.first);
  scenario.request_lock(*pair.second);
  scenario.pause_briefly();
  scenario.freeze(*pair.first);
  scenario.write(*pair.second, scenario.await_grant(*pair.second));
  scenario.pause_briefly();
  // It checked its lease before it was frozen, so the write is the first thing it does.
  const std::size_t late = scenario.send_write(*pair.first, old);
  scenario.resume(*pair.first);
  scenario.await_result(late);
  scenario.try_ways(*pair.first, old);
  scenario.await_loss_noticed(*pair.first);
  scenario.write(*pair.first, old, LeaseCheck::kBeforeWrite);
  scenario.pause_briefly();
  scenario.write(*pair.second, scenario.token(*pair.second));
  scenario.release(*pair.second);
}

void run_pause(Scenario& scenario, std::uint64_t rounds) {
  WorkerProcess& a = scenario.start_worker("A");
  WorkerProcess& b = scenario.start_worker("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    scenario.write(*pair.first, scenario.acquire(*pair.first));
    freeze_and_take_over(scenario, pair);
  }
}

// The first worker cannot reach pawld, but still reaches the resource.
void run_partition(Scenario& scenario, std::uint64_t rounds) {
  constexpr std::array kCuts{Cut::kBoth, Cut::kToServer, Cut::kFromServer};
  WorkerProcess& a = scenario.start_worker("A", Network::kProxy);
  WorkerProcess& b = scenario.start_worker("B", Network::kProxy);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    const std::uint64_t old = scenario.acquire(*pair.first);
    scenario.write(*pair.first, old);
    scenario.request_lock(*pair.second);
    scenario.pause_briefly();
    scenario.cut_network(*pair.first, kCuts.at(round % kCuts.size()));
    scenario.write(*pair.second, scenario.await_grant(*pair.second));
    write_late(scenario, pair, old);
    scenario.restore_network(*pair.first);
    scenario.release(*pair.second);
  }
}

// No worker does anything wrong: a write is delayed, its sender stops waiting and releases the
// lock, and then the write arrives. First when the next holder has only advanced the fence, then
// when it has written.
void run_delayed_write(Scenario& scenario, std::uint64_t rounds) {
  WorkerProcess& a = scenario.start_worker("A");
  WorkerProcess& b = scenario.start_worker("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    const std::uint64_t old = scenario.acquire(*pair.first);
    scenario.write(*pair.first, old);
    scenario.pause_briefly();
    scenario.delay_write(*pair.first);
    scenario.release(*pair.first);
    const std::uint64_t token = scenario.acquire(*pair.second);
    scenario.advance(*pair.second);
    scenario.pause_briefly();
    scenario.deliver_delayed_write(*pair.first);
    scenario.write(*pair.first, old);
    scenario.try_ways(*pair.first, old);
    scenario.pause_briefly();
    scenario.write(*pair.second, token);
    scenario.write(*pair.first, old);
    scenario.pause_briefly();
    scenario.write(*pair.second, token);
    scenario.release(*pair.second);
  }
}

// An unstable network. Short cuts have no effect. After each long one another worker holds the
// lock, and the former holder writes once more.
void run_flapping(Scenario& scenario, std::uint64_t rounds) {
  constexpr std::uint64_t kHandovers = 4;
  std::vector<WorkerProcess*> waiting;
  for (const char* name : {"A", "B", "C"})
    waiting.push_back(&scenario.start_worker(name, Network::kProxy));
  WorkerProcess* holder = waiting.front();
  waiting.erase(waiting.begin());
  std::uint64_t token = scenario.acquire(*holder);
  for (WorkerProcess* each : waiting) scenario.request_lock(*each);
  for (std::uint64_t i = 0; i < kHandovers * rounds; ++i) {
    scenario.cut_network(*holder, Cut::kBoth);
    scenario.pause_briefly();
    scenario.restore_network(*holder);
    scenario.write(*holder, token);
    scenario.cut_network(*holder, Cut::kBoth);
    WorkerProcess* const next = &scenario.await_first_grant(waiting);
    scenario.write(*next, scenario.token(*next));
    scenario.write(*holder, token);
    scenario.try_ways(*holder, token);
    scenario.restore_network(*holder);
    scenario.await_loss_noticed(*holder);
    std::erase(waiting, next);
    waiting.push_back(holder);
    scenario.request_lock(*holder);
    holder = next;
    token = scenario.token(*holder);
  }
  for (scenario.release(*holder); !waiting.empty(); scenario.release(*holder)) {
    holder = &scenario.await_first_grant(waiting);
    std::erase(waiting, holder);
  }
}

// The holder and pawld lose power together. The holder is started again and continues with the
// token that it had stored.
void run_kill(Scenario& scenario, std::uint64_t rounds) {
  WorkerProcess& a = scenario.start_worker("A");
  WorkerProcess& b = scenario.start_worker("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    const std::uint64_t old = scenario.acquire(*pair.first);
    scenario.write(*pair.first, old);
    scenario.request_lock(*pair.second);
    scenario.pause_briefly();
    scenario.kill(*pair.first);
    scenario.kill_pawld();
    scenario.start_pawld();
    scenario.write(*pair.second, scenario.await_grant(*pair.second));
    scenario.restart(*pair.first);
    write_late(scenario, pair, old);
    scenario.release(*pair.second);
  }
}

// A quick restart of pawld has no effect on the holder. During a slow one the holder gives up
// before anyone else can be granted the lock.
void run_issuer_restart(Scenario& scenario, std::uint64_t rounds) {
  WorkerProcess& a = scenario.start_worker("A");
  WorkerProcess& b = scenario.start_worker("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    const std::uint64_t old = scenario.acquire(*pair.first);
    scenario.write(*pair.first, old);
    scenario.pause_briefly();
    scenario.kill_pawld();
    scenario.start_pawld();
    scenario.write(*pair.first, old);
    scenario.request_lock(*pair.second);
    scenario.pause_briefly();
    scenario.kill_pawld();
    scenario.await_loss_noticed(*pair.first);
    scenario.start_pawld();
    scenario.write(*pair.second, scenario.await_grant(*pair.second));
    write_late(scenario, pair, old);
    scenario.release(*pair.second);
  }
}

// pawld is restarted on a machine with other clocks: two hours ahead, then one hour back. No lease
// may end early or late because of it.
void run_clock_step(Scenario& scenario, std::uint64_t rounds) {
  WorkerProcess& a = scenario.start_worker("A");
  WorkerProcess& b = scenario.start_worker("B");
  for (std::uint64_t round = 0; round < 2 * rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    const std::uint64_t old = scenario.acquire(*pair.first);
    scenario.write(*pair.first, old);
    scenario.pause_briefly();
    scenario.kill_pawld();
    scenario.start_pawld(round % 2 == 0 ? 2h : 1h);
    scenario.write(*pair.first, old);
    freeze_and_take_over(scenario, pair);
  }
}

// pawld's disk is lost, and the backup is older than the last grant. The token of that grant must
// not be granted again, and its holder must not write any more.
void run_restore_from_backup(Scenario& scenario, std::uint64_t rounds) {
  WorkerProcess& a = scenario.start_worker("A");
  WorkerProcess& b = scenario.start_worker("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = pair_of(a, b, round);
    scenario.write(*pair.second, scenario.acquire(*pair.second));
    scenario.back_up_pawld();
    scenario.pause_briefly();
    scenario.release(*pair.second);
    const std::uint64_t old = scenario.acquire(*pair.first);
    scenario.write(*pair.first, old);
    scenario.pause_briefly();
    scenario.kill_pawld();
    scenario.restore_pawld();
    scenario.start_pawld();
    scenario.write(*pair.second, scenario.acquire(*pair.second));
    write_late(scenario, pair, old);
    scenario.release(*pair.second);
  }
}

constexpr std::array kDrills{
    Drill{"pause",
          "the holder is frozen until another worker has written; then it resumes and writes",
          "A process that holds the lock is frozen for longer than its lease lasts, as by a long "
          "garbage collection or a paused virtual machine. Then it continues as if nothing had "
          "happened.",
          PawldUse::kAny, run_pause},
    Drill{"partition", "the holder is cut off from pawld, but not from the resource, and writes",
          "A process that holds the lock is cut off from pawld, but still reaches the resource. It "
          "cannot renew its lease, and the lock is granted to another process.",
          PawldUse::kAny, run_partition},
    Drill{"delayed-write", "a write is delayed until its sender has released the lock",
          "A write is delayed on its way to the resource. Its sender loses the lock meanwhile, and "
          "the write arrives after those of the next holder.",
          PawldUse::kAny, run_delayed_write},
    Drill{
        "flapping", "an unstable network: the lock changes hands again and again",
        "The holder is cut off from pawld and reconnected again and again, and each time the lock "
        "is granted to another process.",
        PawldUse::kAny, run_flapping},
    Drill{"kill", "the holder and pawld are killed; the holder restarts with its old token",
          "The holder and pawld are killed without warning, as by a power failure. The holder is "
          "restarted and continues with the token that it had stored.",
          PawldUse::kThrowaway, run_kill},
    Drill{
        "clock-step", "pawld restarts with its clocks two hours ahead, then one hour back",
        "pawld is restarted on a machine with other clocks. No lease may end early or late because "
        "of it.",
        PawldUse::kThrowaway, run_clock_step},
    Drill{"issuer-restart", "pawld is down for a moment, then for longer than a lease",
          "pawld is killed and restarted while the lock is held. No token may be granted twice.",
          PawldUse::kThrowaway, run_issuer_restart},
    Drill{"restore-from-backup", "pawld's data is lost and restored from an old backup",
          "pawld is restored from a backup that is older than the last grants. Tokens must not go "
          "back.",
          PawldUse::kThrowaway, run_restore_from_backup},
};

}  // namespace

std::span<const Drill> all_drills() {
  return kDrills;
}

}  // namespace pawl::drill
