#include "conformance/race.h"

#include <fmt/format.h>

#include <mutex>
#include <thread>

namespace pawl::conformance {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFirstToken = 10;
constexpr std::uint64_t kLate = 4;  // A racer's token is up to this minus one behind.
// On a busy machine every attempt of a whole race can end in a serialization failure. Such a race
// shows nothing, so racers go on until one write has been admitted, for at most this many times the
// configured rounds.
constexpr std::uint64_t kRoundsFactorMax = 50;

class Racer {
 public:
  struct Shared {
    Trial& trial;
    const RaceOptions& options;
    const std::string& resource;
    Stamps stamps;
    std::atomic<std::uint64_t> token{kFirstToken};
    std::atomic<bool> has_effect{false};
  };

  Racer(Shared& shared, Session& session, std::uint64_t seed)
      : shared_(shared), session_(session), random_(seed) {}

  std::vector<Deed> race() {
    for (std::uint64_t i = 0; goes_on(i); ++i) {
      if (random_.below(6) == 0) ++shared_.token;
      if (random_.below(10) == 0) {
        advance();
      } else {
        write();
      }
    }
    return std::move(deeds_);
  }

 private:
  bool goes_on(std::uint64_t round) const {
    const std::uint64_t rounds = shared_.trial.rounds();
    return round < rounds || (!shared_.has_effect && round < rounds * kRoundsFactorMax);
  }

  std::uint64_t pick_token() { return shared_.token - random_.below(kLate); }

  void note(Deed deed, const Outcome& outcome) {
    deed.answered = shared_.stamps.next();
    deed.answer = outcome.answer;
    deed.counts = outcome.passed();
    if (deed.counts && deed.kind == Deed::Kind::kWrite) shared_.has_effect = true;
    if (outcome.answer == Answer::kBroken) fail("in a race: " + outcome.detail);
    deeds_.push_back(std::move(deed));
  }

  void advance() {
    Deed deed{Deed::Kind::kAdvance, pick_token(), {}, shared_.stamps.next(), 0, {}, false};
    const Outcome outcome = session_.advance(shared_.resource, deed.token, 10s).outcome;
    note(std::move(deed), outcome);
  }

  void write() {
    Deed deed{Deed::Kind::kWrite,
              pick_token(),
              shared_.trial.next_value(),
              shared_.stamps.next(),
              0,
              {},
              false};
    const Admission admission = conformance::write(shared_.resource, deed.token);
    if (!shared_.trial.has(Ability::kTransactions)) {
      const Outcome outcome = session_.write(admission, deed.value);
      return note(std::move(deed), outcome);
    }
    Outcome outcome = begin_write(session_, shared_.options.isolation, admission, deed.value);
    if (outcome.passed() && random_.below(8) == 0) {
      static_cast<void>(session_.rollback());
      outcome = {Answer::kAgain, false, "rolled back on purpose"};
    }
    if (outcome.passed()) {
      deed.began =
          shared_.stamps.next();  // From here on it counts; before, it could still be taken back.
      outcome = session_.commit();
      if (!outcome.passed()) static_cast<void>(session_.rollback());
    }
    note(std::move(deed), outcome);
  }

  Shared& shared_;
  Session& session_;
  SeededRandom random_;
  std::vector<Deed> deeds_;
};

}  // namespace

void together(Trial& trial, std::size_t count,
              const std::function<void(Session&, std::size_t)>& work) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (std::size_t i = 0; i < count; ++i) sessions.push_back(trial.open());
  std::mutex mutex;
  std::string first;  // the first thing that went wrong
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(*sessions[i], i);
      } catch (const Failed& failed) {
        const std::lock_guard lock(mutex);
        if (first.empty()) first = failed.why;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!first.empty()) fail(first);
}

void race_for_one_resource(Trial& trial, const RaceOptions& options) {
  const std::string resource = trial.fresh();
  Racer::Shared shared{trial, options, resource, {}, {kFirstToken}, {false}};
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < options.racers; ++i) seeds.push_back(trial.random().next());
  std::mutex mutex;
  std::vector<Deed> deeds;
  together(trial, options.racers, [&](Session& session, std::size_t index) {
    std::vector<Deed> mine = Racer(shared, session, seeds[index]).race();
    const std::lock_guard lock(mutex);
    deeds.insert(deeds.end(), std::make_move_iterator(mine.begin()),
                 std::make_move_iterator(mine.end()));
  });
  const auto effects = trial.effects(resource);
  if (const auto said = violations(deeds, effects); !said.empty())
    fail(fmt::format("{} violations in {} attempts; the first: {}", said.size(), deeds.size(),
                     said.front()));
  if (effects.empty()) fail(fmt::format("none of {} attempts was admitted", deeds.size()));
}

}  // namespace pawl::conformance
