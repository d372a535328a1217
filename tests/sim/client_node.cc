#include "sim/client_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace pawl::sim {

using client::Instant;

ClientNode::ClientNode(World& world, Network& network, int number, Rate rate, Workload workload,
                       std::vector<Attempt>& history)
    : world_(world),
      network_(network),
      number_(number),
      rate_(rate),
      workload_(std::move(workload)),
      history_(history) {
  be_born();
}

void ClientNode::be_born() {
  keeper_.reset();
  machine_ = std::make_unique<client::Machine>(world_.random(),
                                               client::MachineOptions{.answer_timeout = Millis(700)});
  keeper_ = std::make_unique<client::Keeper>(*machine_, world_.random());
}

void ClientNode::begin() {
  act_at_ = now() + world_.between(Millis(0), Millis(50));
  pump();
}

std::string ClientNode::state() const {
  constexpr const char* kNames[] = {"idle", "acquiring", "holding", "releasing"};
  return fmt::format("client {}: {}, {} grants", number_, kNames[static_cast<int>(work_)], grants_);
}

void ClientNode::on_bytes(LinkId link, std::string bytes) {
  if (frozen_) {
    arrived_.emplace_back(link, std::move(bytes));
    return;
  }
  if (link_ != link) return;
  machine_->received(bytes, now());
  pump();
}

void ClientNode::on_hangup(LinkId link) {
  if (frozen_) {
    arrived_.emplace_back(link, "");
    return;
  }
  if (link_ != link) return;
  link_.reset();
  machine_->disconnected("the connection broke", now());
  pump();
}

void ClientNode::connect_if_wanted() {
  if (link_ || connecting_ || !machine_->wants_connection(now())) return;
  connecting_ = true;
  const std::uint64_t life = life_;
  const LinkId id = network_.connect(
      *this,
      [this, life](LinkId link) {
        if (life != life_ || !std::exchange(connecting_, false)) return network_.close_by_client(link);
        link_ = link;
        machine_->connected(now());
        pump();
      },
      [this, life] {
        if (life != life_ || !std::exchange(connecting_, false)) return;
        machine_->disconnected("refused", now());
        pump();
      });
  (void)id;
  world_.after(Millis(500), [this, life] {  // An attempt that nobody answers is given up.
    if (life != life_ || !std::exchange(connecting_, false)) return;
    machine_->disconnected("timed out", now());
    pump();
  });
}

void ClientNode::pump() {
  if (frozen_) return;
  machine_->timer(now());
  for (client::Completion& done : machine_->take_completions()) {
    if (!keeper_->take(done, now())) take(done);
    if (frozen_) return;
  }
  keeper_->timer(now());
  look_at_lease();
  work();
  if (frozen_) return;
  if (machine_->wants_close() && link_) {
    network_.close_by_client(*std::exchange(link_, std::nullopt));
    machine_->disconnected("of no use", now());
  }
  connect_if_wanted();
  if (link_) network_.send_to_server(*link_, machine_->take_output());

  Instant next = std::min({machine_->next_timer(), keeper_->next_timer(), act_at_});
  if (next == client::kNever) return;
  if (connecting_)
    next = std::max(next, now() + Millis(10));  // The machine would connect now, and so it does.
  const std::uint64_t alarm = ++alarm_;
  const Moment when =
      std::max(rate_.moment(next.time_since_epoch()), world_.now() + std::chrono::microseconds(1));
  world_.at(when, [this, alarm] {
    if (alarm == alarm_) pump();
  });
}

// The worker's next thing, when its time has come.
void ClientNode::work() {
  if (now() < act_at_) return;
  switch (work_) {
    case Work::kIdle:
      return winding_down_ ? void(act_at_ = client::kNever) : start_acquire();
    case Work::kAcquiring: {  // It has changed its mind.
      act_at_ = client::kNever;
      world_.note(fmt::format("client {} cancels", number_));
      machine_->cancel(call_, now());
      world_.after(Nanos(0), [this, life = life_] {  // It is complete already; hear of it.
        if (life == life_) pump();
      });
      return;
    }
    case Work::kHolding: {
      if (!winding_down_ && world_.chance(workload_.die_percent)) return die();
      return start_release();
    }
    case Work::kReleasing:
      return;
  }
}

void ClientNode::start_acquire() {
  client::AcquireCall call;
  const auto& locks = workload_.locks;
  const std::size_t first = world_.random().below(locks.size());
  call.locks = {locks[first]};
  const std::uint64_t kind = world_.random().below(10);
  if (kind == 0) {
    call.mode = Mode::kShared;
  } else if (kind == 1) {
    call.mode = Mode::kLimit;
    call.limit = 2;
  } else if (kind <= 3 && locks.size() > 1) {
    call.locks.push_back(locks[(first + 1) % locks.size()]);
  }
  call.ttl = workload_.ttl;
  call.wait = world_.chance(20) ? Millis(0) : Millis(200 + world_.random().below(4000));
  call.owner = fmt::format("client-{}", number_);
  if (world_.chance(10)) call.delay = Millis(100);
  call.give_up = now() + call.wait + Millis(6000);

  attempt_ = history_.size();
  Attempt fresh;
  fresh.client = number_;
  fresh.locks = call.locks;
  fresh.mode = call.mode;
  fresh.limit = call.mode == Mode::kLimit ? call.limit : 1;
  fresh.asked = world_.now();
  history_.push_back(fresh);

  world_.note(fmt::format("client {} asks for {}", number_, fmt::join(call.locks, " and ")));
  const bool changes_its_mind = call.wait > Millis(0) && world_.chance(workload_.cancel_percent);
  act_at_ = changes_its_mind ? now() + world_.between(Millis(0), call.wait) : client::kNever;
  work_ = Work::kAcquiring;
  call_ = machine_->acquire(std::move(call), now());
}

void ClientNode::take(client::Completion& done) {
  if (work_ == Work::kAcquiring && done.call == call_) {
    acquired(std::get<Result<client::Held>>(done.outcome));
  } else if (work_ == Work::kReleasing && done.call == call_) {
    rest();
  }
}

void ClientNode::acquired(const Result<client::Held>& held) {
  if (!held) {
    world_.note(fmt::format("client {} got nothing: {}", number_, held.error().detail));
    return rest();
  }
  held_ = *held;
  lease_ = keeper_->adopt(held_, {}, now());
  Attempt& a = attempt();
  a.request = held_.request;
  a.token = held_.token;
  a.answered = world_.now();
  a.believed_until = rate_.moment(held_.deadline.time_since_epoch());
  ++grants_;
  world_.note(fmt::format("client {} holds token {}", number_, held_.token.value));
  work_ = Work::kHolding;
  act_at_ = now() + world_.between(Millis(1), world_.chance(90) ? Millis(30) : workload_.ttl * 3);
  if (!winding_down_ && world_.chance(workload_.freeze_percent))
    freeze(world_.between(Millis(10), workload_.ttl * 3));
}

void ClientNode::look_at_lease() {
  if (work_ != Work::kHolding) return;
  const client::Standing standing = keeper_->look(lease_, now());
  attempt().believed_until = rate_.moment(standing.deadline.time_since_epoch());
  if (standing.state != LeaseState::kLost) return;
  if (now() < standing.deadline) attempt().lost_early = standing.reason;
  world_.note(fmt::format("client {} gives up token {}: {}", number_, held_.token.value, standing.reason));
  start_release();
}

void ClientNode::start_release() {
  attempt().believed_until = std::min(attempt().believed_until, world_.now());
  work_ = Work::kReleasing;
  act_at_ = client::kNever;
  const auto call = keeper_->release(lease_, now() + Millis(3000), now());
  keeper_->forget(lease_);
  if (!call) return rest();  // pawld said itself that it is over.
  call_ = *call;
}

void ClientNode::rest() {
  work_ = Work::kIdle;
  act_at_ = now() + world_.between(Millis(0), Millis(40));
}

void ClientNode::freeze(Nanos duration) {
  world_.note(fmt::format("client {} freezes", number_));
  frozen_ = true;
  const std::uint64_t life = life_;
  world_.after(duration, [this, life] {
    if (life != life_) return;
    frozen_ = false;
    world_.note(fmt::format("client {} wakes", number_));
    for (auto& [link, bytes] : std::exchange(arrived_, {}))
      bytes.empty() ? on_hangup(link) : on_bytes(link, bytes);
    pump();
  });
}

void ClientNode::die() {
  world_.note(fmt::format("client {} dies holding token {}", number_, held_.token.value));
  attempt().believed_until = std::min(attempt().believed_until, world_.now());
  ++life_;
  ++alarm_;
  if (link_) network_.close_by_client(*std::exchange(link_, std::nullopt));
  connecting_ = false;
  be_born();
  rest();
  const std::uint64_t alarm = ++alarm_;
  world_.after(Millis(20), [this, alarm] {
    if (alarm == alarm_) pump();
  });
}

}  // namespace pawl::sim
