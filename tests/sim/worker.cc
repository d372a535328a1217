#include "sim/worker.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/mutants.h"

namespace pawl::sim {

namespace {

using Kind = Effect::Kind;

}  // namespace

void Worker::begin(const Attempt& held) {
  ++life_;
  places_.clear();
  refused_ = false;
  token_ = held.token;
  floor_ = held.floor;
  reads_ = held.mode == Mode::kShared;
  for (const std::string& lock : held.locks) {
    // Each slot of a limited lock is a resource of its own (design rule 15).
    places_.push_back({held.slot ? fmt::format("{}/slot-{}", lock, *held.slot) : lock});
  }
  for (std::size_t i = 0; i < places_.size(); ++i) advance(i);
  // A token out of nowhere, forged or corrupt: refused, and nothing else.
  if (world_.chance(2))
    guard_.send({places_[0].resource, Kind::kWrite, Token{std::uint64_t{1} << 52}, 1},
                [](Effect::Verdict) {});
}

template <class What>
void Worker::later(Nanos delay, What what) {
  world_.after(delay, [this, life = life_, what = std::move(what)]() mutable {
    if (life != life_) return;
    if (frozen_) return later(Millis(5), std::move(what));
    what();
  });
}

void Worker::call(const GuardCall& call_now, std::function<void(Effect::Verdict)> then, int tries) {
  auto answered = std::make_shared<bool>(false);
  guard_.send(call_now, [this, life = life_, answered, then](Effect::Verdict verdict) {
    if (life != life_ || frozen_ || std::exchange(*answered, true)) return;
    if (verdict == Effect::Verdict::kStale) refused_ = true;
    then(verdict);
  });
  if (tries == 3) return;
  later(Millis(40), [this, call_now, then, tries, answered] {
    if (!std::exchange(*answered, true)) call(call_now, then, tries + 1);
  });
}

// Before anything is read, or the former holder might still write behind our back (design rule 3).
void Worker::advance(std::size_t place) {
  if (PAWL_MUTANT(no_advance_before_reading)) return look(place);
  call({places_[place].resource, Kind::kAdvance, reads_ ? floor_ : token_, 0},
       [this, place](Effect::Verdict verdict) {
         if (verdict == Effect::Verdict::kAdmitted) look(place);
       });
}

void Worker::look(std::size_t place) {
  call({places_[place].resource, reads_ ? Kind::kCheck : Kind::kRead, token_, 0},
       [this, place](Effect::Verdict verdict) {
         if (verdict != Effect::Verdict::kAdmitted) return;
         places_[place].writing = !reads_;
         next(place);
       });
}

void Worker::next(std::size_t place) {
  later(world_.between(std::chrono::microseconds(500), Millis(25)),
        [this, place] { reads_ ? look(place) : write(place); });
}

void Worker::write(std::size_t place) {
  Place& at = places_[place];
  const Kind kind = world_.chance(12) ? Kind::kDelete : Kind::kWrite;
  const GuardCall now{at.resource, kind, token_, ++at.op};
  if (world_.chance(30)) {  // Not waiting for the answer before the next one.
    call(now, [](Effect::Verdict) {});
    return next(place);
  }
  call(now, [this, place](Effect::Verdict verdict) {
    if (verdict != Effect::Verdict::kStale) next(place);
  });
}

void Worker::blurt() {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].writing) write(i);
  }
}

}  // namespace pawl::sim
