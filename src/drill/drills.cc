#include "drill/drills.h"

#include <array>
#include <vector>

#include "drill/stage.h"

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;

struct Pair {
  Actor* first;   // has the lock, and loses it
  Actor* second;  // has it then
};
// They take turns, so that each is both.
Pair turns(Actor& a, Actor& b, std::uint64_t round) {
  return round % 2 == 0 ? Pair{&a, &b} : Pair{&b, &a};
}

// The first wakes up, or has been told late: it writes once more, and only then looks at its lease.
void write_late(Stage& stage, const Pair& pair, std::uint64_t old) {
  stage.beat();
  stage.write(*pair.first, old);
  stage.knows_loss(*pair.first);
  stage.write(*pair.first, old, Manner::kAsks);
  stage.beat();
  stage.write(*pair.second, stage.token(*pair.second));
}

// A process stops in the middle: garbage collection, swapping, a virtual machine that is moved. It
// does not notice.
void freeze_and_take_over(Stage& stage, const Pair& pair) {
  const std::uint64_t old = stage.token(*pair.first);
  stage.queue(*pair.second);
  stage.beat();
  stage.freeze(*pair.first);
  stage.write(*pair.second, stage.granted(*pair.second));
  stage.beat();
  // It had looked at its lease before it froze, so the write is the first thing it does.
  const std::size_t late = stage.send(*pair.first, old);
  stage.wake(*pair.first);
  stage.answered(late);
  stage.knows_loss(*pair.first);
  stage.write(*pair.first, old, Manner::kAsks);
  stage.beat();
  stage.write(*pair.second, stage.token(*pair.second));
  stage.release(*pair.second);
}

void play_pause(Stage& stage, std::uint64_t rounds) {
  Actor& a = stage.enter("A");
  Actor& b = stage.enter("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = turns(a, b, round);
    stage.write(*pair.first, stage.acquire(*pair.first));
    freeze_and_take_over(stage, pair);
  }
}

// A worker that cannot reach pawld still reaches the resource.
void play_partition(Stage& stage, std::uint64_t rounds) {
  constexpr std::array kCuts{Cut::kBoth, Cut::kToPawld, Cut::kFromPawld};
  Actor& a = stage.enter("A", Through::kProxy);
  Actor& b = stage.enter("B", Through::kProxy);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = turns(a, b, round);
    const std::uint64_t old = stage.acquire(*pair.first);
    stage.write(*pair.first, old);
    stage.queue(*pair.second);
    stage.beat();
    stage.cut(*pair.first, kCuts.at(round % kCuts.size()));
    stage.write(*pair.second, stage.granted(*pair.second));
    write_late(stage, pair, old);
    stage.mend(*pair.first);
    stage.release(*pair.second);
  }
}

// No worker does anything wrong: a write is held up on its way, its sender gives up and hands the
// lock on, and then it arrives. First where the next holder has only advanced the fence, then where
// it has written.
void play_delayed_write(Stage& stage, std::uint64_t rounds) {
  Actor& a = stage.enter("A");
  Actor& b = stage.enter("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = turns(a, b, round);
    const std::uint64_t old = stage.acquire(*pair.first);
    stage.write(*pair.first, old);
    stage.beat();
    stage.delay(*pair.first);
    stage.release(*pair.first);
    const std::uint64_t token = stage.acquire(*pair.second);
    stage.advance(*pair.second);
    stage.beat();
    stage.arrive(*pair.first);
    stage.write(*pair.first, old);
    stage.beat();
    stage.write(*pair.second, token);
    stage.write(*pair.first, old);
    stage.beat();
    stage.write(*pair.second, token);
    stage.release(*pair.second);
  }
}

// A network that comes and goes. Short cuts cost nothing; each long one hands the lock on, and
// whoever lost it writes once more before it knows what to do.
void play_flapping(Stage& stage, std::uint64_t rounds) {
  constexpr std::uint64_t kHandovers = 4;
  std::vector<Actor*> waiting;
  for (const char* name : {"A", "B", "C"}) waiting.push_back(&stage.enter(name, Through::kProxy));
  Actor* holder = waiting.front();
  waiting.erase(waiting.begin());
  std::uint64_t token = stage.acquire(*holder);
  for (Actor* each : waiting) stage.queue(*each);
  for (std::uint64_t i = 0; i < kHandovers * rounds; ++i) {
    stage.cut(*holder, Cut::kBoth);
    stage.beat();
    stage.mend(*holder);
    stage.write(*holder, token);
    stage.cut(*holder, Cut::kBoth);
    Actor* const next = &stage.first_granted(waiting);
    stage.write(*next, stage.token(*next));
    stage.write(*holder, token);
    stage.mend(*holder);
    stage.knows_loss(*holder);
    std::erase(waiting, next);
    waiting.push_back(holder);
    stage.queue(*holder);
    holder = next;
    token = stage.token(*holder);
  }
  for (stage.release(*holder); !waiting.empty(); stage.release(*holder)) {
    holder = &stage.first_granted(waiting);
    std::erase(waiting, holder);
  }
}

// Power fails where the holder and pawld are. The holder is started again and goes on with the
// token it had written down.
void play_kill(Stage& stage, std::uint64_t rounds) {
  stage.use_throwaway_pawld();
  Actor& a = stage.enter("A");
  Actor& b = stage.enter("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = turns(a, b, round);
    const std::uint64_t old = stage.acquire(*pair.first);
    stage.write(*pair.first, old);
    stage.queue(*pair.second);
    stage.beat();
    stage.kill(*pair.first);
    stage.kill_pawld();
    stage.start_pawld();
    stage.write(*pair.second, stage.granted(*pair.second));
    stage.revive(*pair.first);
    write_late(stage, pair, old);
    stage.release(*pair.second);
  }
}

// A quick restart costs the holder nothing. A slow one does: it gives up before anyone else can
// have the lock.
void play_issuer_restart(Stage& stage, std::uint64_t rounds) {
  stage.use_throwaway_pawld();
  Actor& a = stage.enter("A");
  Actor& b = stage.enter("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = turns(a, b, round);
    const std::uint64_t old = stage.acquire(*pair.first);
    stage.write(*pair.first, old);
    stage.beat();
    stage.kill_pawld();
    stage.start_pawld();
    stage.write(*pair.first, old);
    stage.queue(*pair.second);
    stage.beat();
    stage.kill_pawld();
    stage.knows_loss(*pair.first);
    stage.start_pawld();
    stage.write(*pair.second, stage.granted(*pair.second));
    write_late(stage, pair, old);
    stage.release(*pair.second);
  }
}

// pawld comes back on a machine whose clocks tell another time: two hours ahead, and then an hour
// back. No lease may end early for it, none live on.
void play_clock_step(Stage& stage, std::uint64_t rounds) {
  stage.use_throwaway_pawld();
  Actor& a = stage.enter("A");
  Actor& b = stage.enter("B");
  for (std::uint64_t round = 0; round < 2 * rounds; ++round) {
    const Pair pair = turns(a, b, round);
    const std::uint64_t old = stage.acquire(*pair.first);
    stage.write(*pair.first, old);
    stage.beat();
    stage.kill_pawld();
    stage.start_pawld(round % 2 == 0 ? 2h : 1h);
    stage.write(*pair.first, old);
    freeze_and_take_over(stage, pair);
  }
}

// The disk is lost, and the backup is from before the last grant: its token must not be granted a
// second time, and who still holds it must not write.
void play_restore(Stage& stage, std::uint64_t rounds) {
  stage.use_throwaway_pawld();
  Actor& a = stage.enter("A");
  Actor& b = stage.enter("B");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Pair pair = turns(a, b, round);
    stage.write(*pair.second, stage.acquire(*pair.second));
    stage.back_up_pawld();
    stage.beat();
    stage.release(*pair.second);
    const std::uint64_t old = stage.acquire(*pair.first);
    stage.write(*pair.first, old);
    stage.beat();
    stage.kill_pawld();
    stage.restore_pawld();
    stage.start_pawld();
    stage.write(*pair.second, stage.acquire(*pair.second));
    write_late(stage, pair, old);
    stage.release(*pair.second);
  }
}

constexpr std::array kDrills{
    Drill{
        "pause",
        "the holder is frozen until another has the lock and has written; then it wakes and writes",
        Whose::kUsers, play_pause},
    Drill{"partition",
          "the holder is cut off from pawld, but not from the resource, and goes on writing",
          Whose::kUsers, play_partition},
    Drill{"delayed-write", "a write is held up on its way until its sender has handed the lock on",
          Whose::kUsers, play_delayed_write},
    Drill{"flapping", "a network that comes and goes: the lock changes hands again and again",
          Whose::kUsers, play_flapping},
    Drill{"kill",
          "the holder and pawld are killed at once; the holder comes back with its old token",
          Whose::kThrowaway, play_kill},
    Drill{"clock-step", "pawld comes back with its clocks two hours ahead, then one hour back",
          Whose::kThrowaway, play_clock_step},
    Drill{"issuer-restart", "pawld is away for a moment, and then for longer than a lease",
          Whose::kThrowaway, play_issuer_restart},
    Drill{"restore-from-backup",
          "pawld's data is lost, and comes back from a backup that is too old", Whose::kThrowaway,
          play_restore},
};

}  // namespace

std::span<const Drill> all_drills() {
  return kDrills;
}

const Drill* find_drill(std::string_view name) {
  for (const Drill& each : kDrills) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace pawl::drill
