#include "sim/plain_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/lease_terms.h"
#include "client/machine.h"
#include "wire/command_writer.h"
#include "wire/error_code.h"

namespace pawl::sim {

using client::Instant;
using client::kNever;

PlainNode::PlainNode(World& world, Network& network, GuardModel& guard, int number, Rate rate,
                     Workload workload, History& history, WaitsOn waits_on)
    : world_(world),
      network_(network),
      number_(number),
      rate_(rate),
      workload_(std::move(workload)),
      history_(history),
      waits_on_(std::move(waits_on)),
      worker_(world, guard) {}

void PlainNode::begin() {
  resp3_ = world_.chance(30);
  act_at_ = now() + world_.between(Millis(0), Millis(50));
  pump();
}

std::string PlainNode::state() const {
  constexpr const char* kNames[] = {"idle", "asking", "holding", "releasing"};
  return fmt::format("plain client {}: {}, {} grants", number_, kNames[static_cast<int>(work_)],
                     grants_);
}

void PlainNode::pump() {
  work();
  if (!current_ && connecting_ == 0 && work_ != Work::kIdle) connect();
  wake();
}

void PlainNode::wake() {
  Instant next = act_at_;
  if (work_ == Work::kAsking) next = std::min({hang_up_at_, move_at_, answer_by_, give_up_});
  if (work_ == Work::kHolding) next = std::min({act_at_, renew_at_, deadline_});
  if (work_ == Work::kReleasing) next = answer_by_;
  if (next == kNever) return;
  const std::uint64_t alarm = ++alarm_;
  world_.at(std::max(moment(next), world_.now() + std::chrono::microseconds(1)), [this, alarm] {
    if (alarm == alarm_) pump();
  });
}

void PlainNode::work() {
  const Instant at = now();
  switch (work_) {
    case Work::kIdle:
      if (at < act_at_) return;
      return winding_down_ ? void(act_at_ = kNever) : start_acquire();
    case Work::kAsking:
      if (at >= give_up_) return give_up_asking("no answer");
      if (at >= hang_up_at_) return give_up_asking("it hangs up");
      if (at >= move_at_) return ask_elsewhere();
      if (at < answer_by_) return;
      if (attempt().request.empty()) return give_up_asking("the answer does not come");
      if (current_) drop(*current_);
      answer_by_ = kNever;  // Until it has asked again.
      return;
    case Work::kHolding:
      if (at >= deadline_ || worker_.refused() || at >= act_at_) return start_release();
      if (at >= renew_at_) renew();
      return;
    case Work::kReleasing:
      if (at < answer_by_) return;
      return rest();
  }
}

// --- Connections ---------------------------------------------------------------------------------

void PlainNode::connect() {
  const std::uint64_t number = connecting_ = ++attempts_to_connect_;
  const auto failed = [this, number] {
    if (connecting_ != number) return;
    connecting_ = 0;
    world_.after(Millis(30), [this] { pump(); });
  };
  (void)network_.connect(
      *this,
      [this, number](LinkId link) {
        if (connecting_ != number) return network_.close_by_client(link);
        connecting_ = 0;
        connected(link);
        pump();
      },
      failed);
  world_.after(Millis(500), failed);  // No answer.
}

void PlainNode::connected(LinkId link) {
  current_ = link;
  connections_[link];
  if (resp3_) {
    std::string hello;
    wire::append_command(hello, {"HELLO", "3"});
    send(Command::kHello, std::move(hello));
  }
  resume();
}

void PlainNode::resume() {
  switch (work_) {
    case Work::kIdle:
      return;
    case Work::kAsking:
      return ask();
    case Work::kHolding:
      return renew();
    case Work::kReleasing: {
      std::string bytes;
      wire::append_release(bytes, attempt().lease);
      return send(Command::kRelease, std::move(bytes));
    }
  }
}

void PlainNode::send(Command command, std::string bytes) {
  connections_[*current_].owed.push_back({command, now(), world_.now()});
  network_.send_to_server(*current_, std::move(bytes));
}

void PlainNode::drop(LinkId link) {
  if (connections_.erase(link) != 0) network_.close_by_client(link);
  if (current_ == link) current_.reset();
}

void PlainNode::drop_all() {
  while (!connections_.empty()) drop(connections_.begin()->first);
  connecting_ = 0;
}

void PlainNode::on_hangup(LinkId link) {
  connections_.erase(link);
  if (current_ == link) current_.reset();
  // Without a request id there is no asking again: a grant may stand, and expires.
  if (work_ == Work::kAsking && attempt().request.empty() && first_sent_)
    give_up_asking("the connection broke");
  if (work_ == Work::kAsking) answer_by_ = kNever;
  pump();
}

void PlainNode::on_bytes(LinkId link, std::string bytes) {
  const auto found = connections_.find(link);
  if (found == connections_.end()) return;
  found->second.unread += bytes;
  for (;;) {
    const auto at = connections_.find(link);  // What was sent may have ended it.
    if (at == connections_.end()) break;
    wire::DecodedReply reply = at->second.decoder.decode(at->second.unread);
    at->second.unread.erase(0, reply.consumed);
    if (reply.status != wire::DecodeStatus::kComplete) break;
    if (at->second.owed.empty())
      break;  // Nothing was asked: the last word of a connection that is closed.
    const Owed owed = at->second.owed.front();
    at->second.owed.pop_front();
    take(link, owed, reply.value);
  }
  pump();
}

void PlainNode::take(LinkId link, const Owed& owed, const wire::Value& value) {
  // A standby: nothing happened. Another connection may reach the active one.
  if (value.is_error() && value.text.starts_with("READONLY")) return drop(link);
  switch (owed.command) {
    case Command::kHello:
      return;
    case Command::kAcquire:
      return asked(link, value);
    case Command::kRenew:
      return renewed(owed, value);
    case Command::kRelease:
      return released(value);
  }
}

// --- Acquiring -----------------------------------------------------------------------------------

void PlainNode::start_acquire() {
  wait_ = world_.chance(10) ? Millis(0) : Millis(100 + world_.random().below(4000));
  attempt_ = history_.attempts.size();
  Attempt fresh;
  fresh.client = number_;
  if (world_.chance(85)) fresh.request = client::make_request_id(world_.random());
  fresh.locks = {workload_.locks[world_.random().below(workload_.locks.size())]};
  if (world_.chance(20)) fresh.mode = Mode::kShared;
  fresh.ttl = workload_.ttl;
  if (world_.chance(20)) fresh.max_hold = fresh.ttl + Millis(world_.random().below(2000));
  fresh.owner = fmt::format("plain-{}/{}", number_, attempt_);
  fresh.asked = world_.now();
  history_.attempts.push_back(fresh);
  world_.note([&] { return fmt::format("plain client {} asks for {}", number_, fresh.locks[0]); });

  work_ = Work::kAsking;
  first_sent_.reset();
  act_at_ = kNever;
  answer_by_ = kNever;
  const auto some_time = [&](unsigned percent) {
    return world_.chance(percent) ? now() + world_.between(Millis(0), wait_ + Millis(20)) : kNever;
  };
  hang_up_at_ = some_time(winding_down_ ? 0 : 20);
  move_at_ = fresh.request.empty() ? kNever : some_time(30);
  give_up_ = now() + wait_ + Millis(3000);
  if (current_) ask();
}

void PlainNode::ask() {
  if (!first_sent_) first_sent_ = now();
  const Attempt& a = attempt();
  AcquireSpec spec;
  spec.locks.push_back(a.locks[0]);
  spec.terms.mode = a.mode;
  spec.terms.ttl = a.ttl;
  spec.terms.max_hold = a.max_hold;
  spec.owner = a.owner;
  spec.request = a.request;
  // A retry waits for what is left of its patience.
  spec.wait = std::max(Millis(0), std::chrono::ceil<Millis>(*first_sent_ + wait_ - now()));
  std::string bytes;
  wire::append_acquire(bytes, spec);
  answer_by_ = now() + spec.wait + Millis(900);
  waits_on_(*current_, a.owner);
  send(Command::kAcquire, std::move(bytes));
}

// The newest connection owns the wait (hard case 4). The older one is left open, or hangs up once
// the other has asked.
void PlainNode::ask_elsewhere() {
  move_at_ = kNever;
  if (!current_) return;
  world_.note(
      [&] { return fmt::format("plain client {} asks again on another connection", number_); });
  if (world_.chance(50)) {
    world_.after(world_.between(Millis(0), Millis(20)), [this, link = *current_] {
      if (current_ != link) drop(link);
    });
  }
  current_.reset();
  answer_by_ = kNever;
}

void PlainNode::give_up_asking(const char* why) {
  world_.note([&] { return fmt::format("plain client {} stops waiting: {}", number_, why); });
  attempt().ended = world_.now();
  drop_all();
  rest();
}

bool PlainNode::still_waits() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    const auto& owed = connection.second.owed;
    return std::any_of(owed.begin(), owed.end(),
                       [](const Owed& o) { return o.command == Command::kAcquire; });
  });
}

void PlainNode::asked(LinkId link, const wire::Value& value) {
  if (work_ != Work::kAsking) return;  // Answered on another connection already.
  const auto reply = wire::read_acquire(value);
  if (reply && std::holds_alternative<wire::GrantReply>(*reply))
    return granted(std::get<wire::GrantReply>(*reply));
  // Superseded by the other connection, whichever arrived last: the wait goes on there.
  if (!reply && value.text.starts_with("CONFLICT")) {
    drop(link);
    if (!still_waits() && current_) drop(*current_);  // Then both are of no use: ask anew.
    return;
  }
  if (reply && link != current_ && still_waits()) return;
  world_.note([&] {
    return fmt::format("plain client {} got nothing: {}", number_,
                       reply ? "null" : reply.error().detail);
  });
  attempt().ended = world_.now();
  rest();
}

void PlainNode::granted(const wire::GrantReply& grant) {
  Attempt& a = attempt();
  a.lease = grant.lease;
  a.token = grant.token;
  a.floor = grant.floor;
  a.slot = grant.slot;
  a.waited = grant.waited;
  a.answered = world_.now();
  a.believed_until = world_.now();
  ++grants_;
  world_.note(
      [&] { return fmt::format("plain client {} holds token {}", number_, grant.token.value); });
  work_ = Work::kHolding;
  keep_until(client::deadline(client::AcquireTiming{*first_sent_, grant.waited, grant.ttl}));
  renew_at_ = now() + grant.ttl / 3;
  const bool briefly = world_.chance(100 - workload_.long_percent);
  act_at_ = now() + world_.between(Millis(1), briefly ? Millis(30) : workload_.ttl * 3);
  if (deadline_ > now()) worker_.begin(a);
}

// --- Holding -------------------------------------------------------------------------------------

void PlainNode::keep_until(Instant deadline) {
  deadline_ = deadline;
  attempt().believed_until = std::max(attempt().answered, moment(deadline));
}

void PlainNode::renew() {
  renew_at_ = now() + workload_.ttl / 3;
  if (!current_) return;
  const auto& owed = connections_[*current_].owed;
  if (!owed.empty() && owed.front().command == Command::kRenew)
    return drop(*current_);  // It has gone silent.
  std::string bytes;
  wire::append_renew(bytes, attempt().lease);
  send(Command::kRenew, std::move(bytes));
}

void PlainNode::renewed(const Owed& owed, const wire::Value& value) {
  if (work_ != Work::kHolding) return;
  const auto left = wire::read_integer(value);
  const bool lost = !left && left.error().code == Code::kLeaseLost;
  if (!left && !lost) return;
  Renewal renewal;
  renewal.token = attempt().token;
  renewal.sent = owed.sent_at;
  renewal.returned = world_.now();
  renewal.ok = left.has_value();
  renewal.answered = Millis(left ? *left : 0);
  history_.renewals.push_back(renewal);
  if (lost) {
    if (now() < deadline_) attempt().lost_early = value.text;
    return start_release();
  }
  // Nothing brings back what has been given up.
  const Instant until =
      client::deadline(client::RenewTiming{owed.sent, Millis(*left), workload_.ttl});
  if (now() < deadline_) keep_until(std::max(deadline_, until));
}

void PlainNode::start_release() {
  attempt().believed_until = std::min(attempt().believed_until, world_.now());
  worker_.stop();
  if (!winding_down_ && world_.chance(workload_.die_percent)) {
    world_.note([&] { return fmt::format("plain client {} dies", number_); });
    drop_all();
    return rest();
  }
  work_ = Work::kReleasing;
  act_at_ = kNever;
  answer_by_ = now() + Millis(1500);
  release_ = history_.releases.size();
  history_.releases.push_back({attempt().token, world_.now(), kOpen, false});
  if (current_) resume();
}

void PlainNode::released(const wire::Value& value) {
  const auto number = wire::read_integer(value);
  if (work_ != Work::kReleasing) return;
  if (number) {
    history_.releases[release_].returned = world_.now();
    history_.releases[release_].was_live = *number == 1;
  }
  rest();
}

// What is still owed belongs to what is over: such connections are not used again.
void PlainNode::rest() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const LinkId link = (at++)->first;
    if (link != current_ || !connections_[link].owed.empty() || world_.chance(10)) drop(link);
  }
  work_ = Work::kIdle;
  act_at_ = now() + world_.between(Millis(0), Millis(60));
}

}  // namespace pawl::sim
