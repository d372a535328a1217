#include "sim/client_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "client/leader_watch.h"
#include "client/machine.h"

namespace pawl::sim {

using client::Instant;

ClientNode::ClientNode(World& world, Network& network, GuardModel& guard, int number, Rate rate,
                       Workload workload, History& history)
    : world_(world),
      number_(number),
      workload_(std::move(workload)),
      history_(history),
      worker_(world, guard),
      line_(world, network, rate, [this] { pump(); }),
      keeper_(std::make_unique<client::Keeper>(line_.machine(), world.random())) {}

void ClientNode::begin() {
  act_at_ = now() + world_.between(Millis(0), Millis(50));
  pump();
}

std::string ClientNode::state() const {
  constexpr const char* kNames[] = {"idle", "acquiring", "holding", "releasing"};
  return fmt::format("client {}: {}, {} grants", number_, kNames[static_cast<int>(work_)], grants_);
}

void ClientNode::pump() {
  if (line_.frozen()) return;
  line_.machine().on_timer(now());
  for (client::Completion& done : line_.machine().take_completions()) {
    const client::Keeper::Counters before = keeper_->counters();
    const bool keepers = keeper_->on_completion(done, now());
    note_renewal(done, before);
    if (!keepers) take(done);
    if (line_.frozen()) return;
  }
  keeper_->on_timer(now());
  note_place();
  look_at_lease();
  work();
  line_.settle(std::min(keeper_->next_timer(), act_at_));
}

// The worker's next thing, when its time has come.
void ClientNode::work() {
  if (now() < act_at_) return;
  switch (work_) {
    case Work::kIdle:
      return winding_down_ ? void(act_at_ = client::kNever) : start_acquire();
    case Work::kAcquiring:
      return cancel();
    case Work::kHolding:
      if (!winding_down_ && world_.chance(workload_.die_percent)) return die();
      return start_release();
    case Work::kReleasing:
      return;
  }
}

client::AcquireCall ClientNode::choose() {
  client::AcquireCall call;
  const auto& locks = workload_.locks;
  const std::size_t first = world_.random().below(locks.size());
  call.locks = {locks[first]};
  const std::uint64_t kind = world_.random().below(12);
  call.owner = fmt::format("client-{}/{}", number_, history_.attempts.size());
  if (kind >= 10) {
    call.locks = {workload_.election};
    call.meta = {{std::string(client::kLeaderValue), "led by " + call.owner}};
  } else if (kind <= 1) {
    call.terms.mode = Mode::kShared;
  } else if (kind == 2) {
    call.terms.mode = Mode::kLimit;
    call.terms.limit = 2 + static_cast<std::uint32_t>(world_.random().below(2));
  } else if (kind <= 4 && locks.size() > 1) {
    call.locks.push_back(locks[(first + 1) % locks.size()]);
  }
  call.terms.ttl = workload_.ttl;
  call.wait = world_.chance(20) ? Millis(0) : Millis(200 + world_.random().below(4000));
  call.request = client::make_request_id(world_.random());
  if (world_.chance(25)) call.terms.delay = Millis(100 + world_.random().below(900));
  if (world_.chance(15)) call.terms.max_hold = call.terms.ttl + Millis(world_.random().below(2000));
  // More than a sector, so that a write that the power cuts off can be torn.
  if (world_.chance(30) && call.meta.empty()) call.meta = {{"note", std::string(900, 'm')}};
  call.give_up = now() + call.wait + Millis(6000);
  return call;
}

void ClientNode::start_acquire() {
  client::AcquireCall call = choose();
  attempt_ = history_.attempts.size();
  Attempt fresh;
  fresh.client = number_;
  fresh.request = call.request;
  fresh.locks = call.locks;
  fresh.mode = call.terms.mode;
  fresh.limit = call.terms.mode == Mode::kLimit ? call.terms.limit : 1;
  fresh.ttl = call.terms.ttl;
  fresh.delay = call.terms.delay;
  fresh.max_hold = call.terms.max_hold;
  fresh.owner = call.owner;
  if (call.locks[0] == workload_.election) fresh.value = call.meta[0].second;
  fresh.asked = world_.now();
  history_.attempts.push_back(fresh);

  world_.note([&] {
    return fmt::format("client {} asks for {}", number_, fmt::join(call.locks, " and "));
  });
  const bool changes_its_mind = call.wait > Millis(0) && world_.chance(workload_.cancel_percent);
  act_at_ = changes_its_mind ? now() + world_.between(Millis(0), call.wait) : client::kNever;
  work_ = Work::kAcquiring;
  call_ = line_.machine().acquire(std::move(call), now());
}

void ClientNode::cancel() {
  act_at_ = client::kNever;
  world_.note([&] { return fmt::format("client {} cancels", number_); });
  line_.machine().cancel(call_, now());
  line_.nudge(Nanos(0));  // It is complete already; process it.
}

// In line since when, without a break (G6).
void ClientNode::note_place() {
  if (work_ != Work::kAcquiring) return;
  const bool in_line = line_.machine().position(call_).has_value();
  if (!in_line) attempt().queued = kOpen;
  if (in_line && attempt().queued == kOpen) attempt().queued = world_.now();
}

void ClientNode::take(client::Completion& done) {
  if (work_ == Work::kAcquiring && done.call == call_) {
    acquired(std::get<Result<client::GrantedLease>>(done.outcome));
  } else if (work_ == Work::kReleasing && done.call == call_) {
    released(std::get<Result<client::ReleaseResult>>(done.outcome));
  }
}

void ClientNode::acquired(const Result<client::GrantedLease>& held) {
  if (!held) {
    world_.note(
        [&] { return fmt::format("client {} got nothing: {}", number_, held.error().detail); });
    attempt().ended = world_.now();
    return rest();
  }
  held_ = *held;
  adopted_ = now();
  // Half of them do not know of their cap: pawld must.
  lease_ = keeper_->add(
      held_,
      {.max_hold = world_.chance(50) ? attempt().max_hold : Millis(0), .progress_every = Millis(0)},
      now());
  Attempt& a = attempt();
  a.lease = held_.lease;
  a.token = held_.token;
  a.floor = held_.floor;
  a.slot = held_.slot;
  a.waited = held_.waited;
  a.answered = world_.now();
  a.believed_until = line_.moment(held_.deadline);
  ++grants_;
  world_.note([&] {
    return fmt::format("client {} holds token {} until {:.3f} ms (waited {} ms, TTL {} ms)",
                       number_, held_.token.value,
                       static_cast<double>(a.believed_until.time_since_epoch().count()) / 1e6,
                       a.waited.count(), a.ttl.count());
  });
  work_ = Work::kHolding;
  worker_.begin(a);
  act_at_ = now() + world_.between(Millis(1), world_.chance(100 - workload_.long_percent)
                                                  ? Millis(30)
                                                  : workload_.ttl * 3);
  if (!winding_down_ && world_.chance(workload_.freeze_percent))
    freeze(world_.between(Millis(10), workload_.ttl * 3));
}

// Of the lease that is held: what the keeper made of it tells. The answer may be that of the lease
// before, whose renewal was sent again because a standby had been asked first.
void ClientNode::note_renewal(const client::Completion& done,
                              const client::Keeper::Counters& before) {
  const auto* renewals = std::get_if<Result<client::RenewManyResult>>(&done.outcome);
  if (renewals == nullptr || !*renewals || work_ != Work::kHolding || (*renewals)->sent < adopted_)
    return;
  Renewal renewal;
  renewal.token = held_.token;
  renewal.sent = line_.moment((*renewals)->sent) -
                 Nanos(5);  // Clocks are read to the nanosecond, and rounded.
  renewal.returned = world_.now();
  const std::optional<Millis> left = (*renewals)->answered.front().expires_in;
  renewal.ok = left.has_value();
  const client::Keeper::Counters& after = keeper_->counters();
  if (renewal.ok ? after.renewals == before.renewals : after.lost == before.lost) return;
  renewal.answered = left.value_or(Millis(0));
  history_.renewals.push_back(renewal);
}

void ClientNode::look_at_lease() {
  if (work_ != Work::kHolding) return;
  const client::LeaseStatus standing = keeper_->status(lease_, now());
  attempt().believed_until = line_.moment(standing.deadline);
  if (worker_.refused()) return start_release();
  if (standing.state != LeaseState::kLost) return;
  if (now() < standing.deadline) attempt().lost_early = standing.reason;
  world_.note([&] {
    return fmt::format("client {} gives up token {}: {}", number_, held_.token.value,
                       standing.reason);
  });
  start_release();
}

void ClientNode::start_release() {
  attempt().believed_until = std::min(attempt().believed_until, world_.now());
  worker_.stop();
  work_ = Work::kReleasing;
  act_at_ = client::kNever;
  const auto call = keeper_->release(lease_, now() + Millis(3000), now());
  keeper_->forget(lease_);
  if (!call) return rest();  // pawld itself reported that it is over.
  call_ = *call;
  release_ = history_.releases.size();
  history_.releases.push_back({held_.token, world_.now(), kOpen, false});
}

void ClientNode::released(const Result<client::ReleaseResult>& done) {
  if (done) {
    history_.releases[release_].returned = world_.now();
    history_.releases[release_].was_live = done->was_live;
  }
  rest();
}

void ClientNode::rest() {
  work_ = Work::kIdle;
  act_at_ = now() + world_.between(Millis(0), Millis(40));
}

void ClientNode::freeze(Nanos duration) {
  world_.note([&] { return fmt::format("client {} freezes", number_); });
  line_.freeze();
  worker_.freeze(true);
  world_.after(duration, [this, life = life_] {
    if (life != life_) return;
    world_.note([&] { return fmt::format("client {} wakes", number_); });
    worker_.freeze(false);
    worker_.blurt();  // Frozen between looking at the lease and writing.
    line_.thaw();
  });
}

void ClientNode::die() {
  world_.note(
      [&] { return fmt::format("client {} dies holding token {}", number_, held_.token.value); });
  attempt().believed_until = std::min(attempt().believed_until, world_.now());
  ++life_;
  worker_.stop();
  keeper_.reset();
  line_.be_reborn();
  keeper_ = std::make_unique<client::Keeper>(line_.machine(), world_.random());
  rest();
  line_.nudge(Millis(20));
}

}  // namespace pawl::sim
