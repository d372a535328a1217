#include "sim/operator_node.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "client/leader_watch.h"
#include "client/machine.h"
#include "sim/server_node.h"
#include "wire/replies.h"

namespace pawl::sim {
namespace {

constexpr Millis kPatience{1500};

std::vector<std::string> words_of(const Attempt& a, Millis ttl) {
  std::vector<std::string> words{"ACQUIRE", a.locks.front()};
  for (std::size_t i = 1; i < a.locks.size(); ++i) words.insert(words.end(), {"AND", a.locks[i]});
  words.insert(words.end(), {"TTL", std::to_string(ttl.count())});
  if (a.mode == Mode::kShared) words.push_back("SHARED");
  if (a.mode == Mode::kLimit) words.insert(words.end(), {"LIMIT", std::to_string(a.limit)});
  // pawld takes it for the same request without these, too, and whichever comes first is granted.
  if (a.delay > Millis(0)) words.insert(words.end(), {"DELAY", std::to_string(a.delay.count())});
  if (a.max_hold >= ttl) words.insert(words.end(), {"MAXHOLD", std::to_string(a.max_hold.count())});
  words.insert(words.end(), {"REQUEST", a.request});
  return words;
}

// What an answer to ACQUIRE says, also when it is an error; nothing when it says nothing about the
// request.
std::optional<Replay::Answer> answer_of(const Result<wire::Value>& value, Token& token) {
  if (!value) {
    if (value.error().code == Code::kLeaseLost) return Replay::Answer::kLost;
    if (value.error().code == Code::kInvalid) return Replay::Answer::kConflict;
    return std::nullopt;
  }
  const auto reply = wire::read_acquire(*value);
  if (!reply) return std::nullopt;
  const auto* grant = std::get_if<wire::GrantReply>(&*reply);
  if (grant == nullptr) return Replay::Answer::kNothing;
  token = grant->token;
  return Replay::Answer::kGranted;
}

}  // namespace

OperatorNode::OperatorNode(World& world, Network& network, Rate rate,
                           std::vector<std::string> locks, History& history)
    : world_(world),
      locks_(std::move(locks)),
      history_(history),
      line_(world, network, rate, [this] { pump(); }) {}

void OperatorNode::pump() {
  line_.machine().on_timer(line_.now());
  for (client::Completion& done : line_.machine().take_completions()) {
    if (done.call == campaign_) elected(std::get<Result<client::GrantedLease>>(done.outcome));
    const auto asked = asked_.extract(done.call);
    if (!asked.empty()) answered(asked.mapped(), std::get<Result<wire::Value>>(done.outcome));
  }
  if (!winding_down_ && line_.now() >= act_at_) {
    act_at_ = line_.now() + world_.between(Millis(5), Millis(250));
    meddle();
  }
  line_.settle(winding_down_ ? client::kNever : act_at_);
}

void OperatorNode::meddle() {
  if (history_.attempts.empty() || world_.chance(25)) return inspect();
  if (world_.chance(3)) return raise();
  const std::size_t recent = std::min<std::size_t>(history_.attempts.size(), 12);
  const Attempt a = history_.attempts[history_.attempts.size() - 1 - world_.random().below(recent)];
  if (a.request.empty()) return a.token.value != 0 ? break_lease(a) : inspect();
  const bool open = a.answered == kOpen && a.ended == kOpen;
  // What its owner has not sent yet is not to be asked for again: deadlines count from the first
  // send of all.
  if (open && a.queued == kOpen) return inspect();
  const bool waits = open && a.queued != kOpen;
  if (waits) return world_.chance(20) ? cancel_wait(a) : world_.chance(10) ? replay(a) : inspect();
  const bool lives = a.token.value != 0 && a.believed_until > world_.now();
  if (lives && world_.chance(30)) return break_lease(a);
  switch (world_.random().below(6)) {
    case 0:
      return break_lease(a);
    case 1:
    case 2:
      return touch_again(a);
    default:
      return replay(a);
  }
}

void OperatorNode::ask(std::vector<std::string> words, What what, std::size_t index) {
  client::CommandCall call;
  call.words = std::move(words);
  call.repeat = client::CommandCall::Repeat::kForbidden;
  call.give_up = line_.now() + kPatience;
  asked_.emplace(line_.machine().command(std::move(call), line_.now()), Asked{what, index});
}

void OperatorNode::replay(const Attempt& a) {
  Replay replay;
  replay.request = a.request;
  replay.altered = world_.chance(20);
  replay.invoked = world_.now();
  history_.replays.push_back(replay);
  world_.note(
      [&] { return fmt::format("the request of client {} is asked again elsewhere", a.client); });
  ask(words_of(a, replay.altered ? a.ttl + Millis(1) : a.ttl), What::kReplay,
      history_.replays.size() - 1);
}

void OperatorNode::inspect() {
  const std::string& lock = locks_[world_.random().below(locks_.size())];
  history_.sightings.push_back({lock, Token{}, world_.now(), kOpen});
  ask({"INSPECT", lock}, What::kInspect, history_.sightings.size() - 1);
}

void OperatorNode::break_lease(const Attempt& a) {
  if (a.token.value == 0) return inspect();
  const bool now = world_.chance(30);
  history_.breaks.push_back({a.token, now, world_.now(), kOpen, false});
  world_.note([&] {
    return fmt::format("the operator breaks token {}{}", a.token.value, now ? " now" : "");
  });
  std::vector<std::string> words{"BREAK", a.locks.front(), "TOKEN", std::to_string(a.token.value)};
  if (now) words.push_back("NOW");
  words.insert(words.end(), {"REASON", "simulated"});
  ask(std::move(words), What::kBreak, history_.breaks.size() - 1);
}

void OperatorNode::cancel_wait(const Attempt& a) {
  history_.withdrawals.push_back({a.request, world_.now(), kOpen});
  world_.note([&] { return fmt::format("the operator cancels the wait of client {}", a.client); });
  ask({"CANCEL", a.request}, What::kCancel, history_.withdrawals.size() - 1);
}

// Only of leases that are over: a stranger does not renew a live one.
void OperatorNode::touch_again(const Attempt& a) {
  const bool over = a.token.value != 0 && a.believed_until < world_.now();
  if (!over) return inspect();
  if (world_.chance(50)) {
    history_.releases.push_back({a.token, world_.now(), kOpen, false});
    return ask({"RELEASE", to_hex(a.lease)}, What::kRelease, history_.releases.size() - 1);
  }
  Renewal renewal;
  renewal.token = a.token;
  renewal.sent = world_.now();
  history_.renewals.push_back(renewal);
  ask({"RENEW", to_hex(a.lease)}, What::kRenew, history_.renewals.size() - 1);
}

// Above every known token, as an operator does after "issuer behind".
void OperatorNode::raise() {
  Token known;
  for (const Attempt& a : history_.attempts) known = std::max(known, a.token);
  for (const Raise& r : history_.raises) known = std::max(known, r.token);
  const Token token{known.value + 1 + world_.random().below(world_.chance(50) ? 10 : 1U << 20)};
  history_.raises.push_back({token, world_.now(), kOpen});
  world_.note([&] { return fmt::format("the operator raises tokens to {}", token.value); });
  ask({"RAISE", std::to_string(token.value), "REASON", "simulated"}, What::kRaise,
      history_.raises.size() - 1);
}

// Each into a directory of its own: one whose answer was lost may be there.
void OperatorNode::back_up() {
  backups_.push_back(fmt::format("{}/{}", kBackups, backups_.size() + 1));
  world_.note([&] { return fmt::format("the operator asks for {}", backups_.back()); });
  ask({"BACKUP", backups_.back()}, What::kBackup, backups_.size() - 1);
  pump();
}

std::optional<std::string> OperatorNode::some_backup() {
  if (whole_.empty()) return std::nullopt;
  const auto offset = static_cast<std::ptrdiff_t>(world_.random().below(whole_.size()));
  return backups_[*std::next(whole_.begin(), offset)];
}

void OperatorNode::forget_backups() {
  whole_.clear();
  std::erase_if(asked_, [](const auto& asked) { return asked.second.what == What::kBackup; });
}

void OperatorNode::lead(const std::string& lock) {
  client::AcquireCall call;
  call.locks = {lock};
  call.terms.ttl = kMaxTtl;
  call.wait = std::chrono::seconds(2);
  call.owner = "operator";
  call.request = client::make_request_id(world_.random());
  call.meta = {{std::string(client::kLeaderValue), "quiet"}};
  Attempt fresh;
  fresh.request = call.request;
  fresh.locks = call.locks;
  fresh.ttl = call.terms.ttl;
  fresh.owner = call.owner;
  fresh.value = "quiet";
  fresh.asked = world_.now();
  campaign_attempt_ = history_.attempts.size();
  history_.attempts.push_back(std::move(fresh));
  campaign_ = line_.machine().acquire(std::move(call), line_.now());
  pump();
}

void OperatorNode::elected(const Result<client::GrantedLease>& held) {
  campaign_.reset();
  Attempt& a = history_.attempts[campaign_attempt_];
  if (!held) return void(a.ended = world_.now());
  led_ = *held;
  a.lease = held->lease;
  a.token = held->token;
  a.floor = held->floor;
  a.waited = held->waited;
  a.answered = world_.now();
  a.believed_until = line_.moment(held->deadline);
}

void OperatorNode::resign() {
  if (!led_) return;
  Attempt& a = history_.attempts[campaign_attempt_];
  a.believed_until = std::min(a.believed_until, world_.now());
  history_.releases.push_back({led_->token, world_.now(), kOpen, false});
  (void)line_.machine().release({.lease = led_->lease, .ttl = led_->ttl}, line_.now());
  led_.reset();
  pump();
}

void OperatorNode::answered(const Asked& asked, const Result<wire::Value>& answer) {
  const std::int64_t number = answer ? answer->as_integer().value_or(-1) : -1;
  switch (asked.what) {
    case What::kReplay: {
      Replay& replay = history_.replays[asked.index];
      if (const auto answered = answer_of(answer, replay.token)) {
        replay.answer = *answered;
        replay.returned = world_.now();
      }
      return;
    }
    case What::kInspect:
      if (answer) inspected(history_.sightings[asked.index], *answer);
      return;
    case What::kBreak:
      if (!answer) return;
      history_.breaks[asked.index].was_live = number == 1;
      history_.breaks[asked.index].returned = world_.now();
      return;
    case What::kCancel:
      if (number == 1) history_.withdrawals[asked.index].returned = world_.now();
      return;
    case What::kRelease:
      if (!answer) return;
      history_.releases[asked.index].was_live = number == 1;
      history_.releases[asked.index].returned = world_.now();
      return;
    case What::kRaise:
      if (answer && number == static_cast<std::int64_t>(history_.raises[asked.index].token.value))
        history_.raises[asked.index].returned = world_.now();
      return;
    case What::kBackup:
      if (answer) whole_.insert(asked.index);
      return;
    case What::kRenew: {
      const bool lost = !answer && answer.error().code == Code::kLeaseLost;
      if (!answer && !lost) return;
      Renewal& renewal = history_.renewals[asked.index];
      renewal.ok = answer.has_value();
      renewal.answered = Millis(std::max<std::int64_t>(0, number));
      renewal.returned = world_.now();
      return;
    }
  }
}

void OperatorNode::inspected(Sighting& sighting, const wire::Value& value) {
  const wire::Value* token = value.find("token");
  const auto number = token == nullptr ? std::nullopt : token->as_integer();
  if (!number) return;
  sighting.token = Token{static_cast<std::uint64_t>(*number)};
  sighting.returned = world_.now();
}

}  // namespace pawl::sim
