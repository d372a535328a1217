#include "client/leader_watch.h"

#include <algorithm>
#include <utility>

#include "base/mutants.h"

namespace pawl::client {
namespace {

Token token_in(const wire::Value& map, std::string_view key) {
  const wire::Value* found = map.find(key);
  const auto number = found != nullptr ? found->as_integer() : std::nullopt;
  return Token{number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0};
}

std::string text_in(const wire::Value& map, std::string_view key) {
  const wire::Value* found = map.find(key);
  return found != nullptr ? std::string(found->as_text().value_or("")) : "";
}

LeaderView to_leader(const wire::Value& holder) {
  const wire::Value* meta = holder.find("meta");
  return {token_in(holder, "token"), text_in(holder, "owner"),
          meta != nullptr ? text_in(*meta, kLeaderValue) : ""};
}

}  // namespace

LeaderNow read_leader(const wire::Value& lock) {
  LeaderNow leader;
  const wire::Value* holders = lock.find("holders");
  if (holders == nullptr) return leader;
  for (const wire::Value& holder : holders->items) {
    if (!leader || token_in(holder, "token") > leader->token) leader = to_leader(holder);
  }
  return leader;
}

LeaderWatch::LeaderWatch(Machine& machine, std::string name, Instant now)
    : machine_(machine),
      name_(std::move(name)),
      observation_(machine.observe({.prefix = name_}, now)) {}

bool LeaderWatch::take(const Sighting& seen, Instant now) {
  if (seen.call != observation_) return false;
  if (seen.event) {
    take_event(*seen.event, seen.order, now);
  } else {
    inspect(now);
  }
  return true;
}

void LeaderWatch::take_event(const wire::EventPush& event, std::uint64_t order, Instant now) {
  if (order < looked_ && !PAWL_MUTANT(leader_goes_back)) return;  // We have seen what came of it.
  if (event.kind == wire::EventKind::kReset && !PAWL_MUTANT(reset_ignored)) looking_ = true;
  if (looking_) return inspect(now);  // Its answer is newer than this.
  if (event.lock != name_) return;    // The prefix matches more than the name.
  switch (event.kind) {
    case wire::EventKind::kGranted:
      if (event.token <= newest_ && !PAWL_MUTANT(leader_goes_back)) return;
      return queue(LeaderView{event.token, event.owner, std::nullopt}, now);
    case wire::EventKind::kReleased:
    case wire::EventKind::kExpired:
    case wire::EventKind::kBroken:
      if (event.token != leads_) return;
      return queue(std::nullopt, now);
    case wire::EventKind::kBreaking:
    case wire::EventKind::kRaised:
    case wire::EventKind::kReset:
      return;
  }
}

void LeaderWatch::queue(LeaderNow leader, Instant now) {
  leads_ = leader ? leader->token : Token{};
  newest_ = std::max(newest_, leads_);
  const bool first = waiting_.empty();
  if (first && !leader) return void(changes_.emplace_back(std::move(leader)));
  waiting_.push_back(std::move(leader));
  if (first) inspect(now);
}

// One at a time: who asks while one is under way is answered by it, or asks again then.
void LeaderWatch::inspect(Instant now) {
  if (inspection_) return;
  asked_ = waiting_.size();
  inspection_ = machine_.command({.words = {"INSPECT", name_}}, now);
}

bool LeaderWatch::take(const Completion& done, Instant now) {
  if (done.call == observation_) {
    const auto& result = std::get<Result<Unobserved>>(done.outcome);
    if (!over_ && !result) end(result.error());
    return true;
  }
  if (done.call != inspection_) return false;
  inspection_.reset();
  if (over_) return true;
  const auto& result = std::get<Result<wire::Value>>(done.outcome);
  if (result) {
    inspected(*result, done.order, now);
  } else {
    machine_.cancel(observation_, now);
    end(result.error());
  }
  return true;
}

void LeaderWatch::inspected(const wire::Value& lock, std::uint64_t order, Instant now) {
  const LeaderNow shown = read_leader(lock);
  for (; !waiting_.empty() && settled(waiting_.front(), shown); waiting_.pop_front()) {
    LeaderNow& change = waiting_.front();
    if (change && shown && change->token == shown->token) change->value = shown->value;
    changes_.emplace_back(std::move(change));
    if (asked_ > 0) --asked_;
  }
  if (!std::exchange(looking_, false)) {
    if (!waiting_.empty()) inspect(now);
    return;
  }
  const Token token = shown ? shown->token : Token{};
  if (!told_ || token != leads_) changes_.emplace_back(shown);
  told_ = true;
  looked_ = order;
  leads_ = token;
  newest_ = std::max({newest_, token, token_in(lock, "last_token")});
}

// Whether there is nothing more to learn about this change.
bool LeaderWatch::settled(const LeaderNow& change, const LeaderNow& shown) const {
  if (looking_ || asked_ > 0 || !change) return true;
  return shown && change->token <= shown->token;
}

void LeaderWatch::end(const Error& why) {
  for (LeaderNow& change : waiting_) changes_.emplace_back(std::move(change));
  waiting_.clear();
  changes_.emplace_back(why);
  over_ = true;
}

void LeaderWatch::stop(Instant now) {
  machine_.cancel(observation_, now);
  if (inspection_) machine_.cancel(*inspection_, now);
  waiting_.clear();
  changes_.clear();
  over_ = true;
}

}  // namespace pawl::client
