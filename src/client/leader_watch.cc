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

MaybeLeader read_leader(const wire::Value& lock) {
  MaybeLeader leader;
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

bool LeaderWatch::on_event(const ObservedEvent& observed, Instant now) {
  if (observed.call != observation_) return false;
  if (observed.event) {
    handle_event(*observed.event, observed.order, now);
  } else {
    inspect(now);
  }
  return true;
}

void LeaderWatch::handle_event(const wire::EventPush& event, std::uint64_t order, Instant now) {
  if (order < resync_order_ && !PAWL_MUTANT(leader_goes_back)) return;  // The answer included it.
  if (event.kind == wire::EventKind::kReset && !PAWL_MUTANT(reset_ignored)) resyncing_ = true;
  if (resyncing_) return inspect(now);  // Its answer will include this event.
  if (event.lock != name_) return;      // The prefix matches more than the name.
  switch (event.kind) {
    case wire::EventKind::kGranted:
      if (event.token <= newest_token_ && !PAWL_MUTANT(leader_goes_back)) return;
      return queue(LeaderView{event.token, event.owner, std::nullopt}, now);
    case wire::EventKind::kReleased:
    case wire::EventKind::kExpired:
    case wire::EventKind::kBroken:
      if (event.token != leader_token_) return;
      return queue(std::nullopt, now);
    case wire::EventKind::kBreaking:
    case wire::EventKind::kRaised:
    case wire::EventKind::kReleaseWanted:
    case wire::EventKind::kReset:
      return;
  }
}

void LeaderWatch::queue(MaybeLeader leader, Instant now) {
  leader_token_ = leader ? leader->token : Token{};
  newest_token_ = std::max(newest_token_, leader_token_);
  const bool first = pending_.empty();
  if (first && !leader) return void(changes_.emplace_back(std::move(leader)));
  pending_.push_back(std::move(leader));
  if (first) inspect(now);
}

// One INSPECT at a time: its answer serves all changes that are pending then, or another follows.
void LeaderWatch::inspect(Instant now) {
  if (inspection_) return;
  pending_at_inspect_ = pending_.size();
  inspection_ = machine_.command({.words = {"INSPECT", name_}}, now);
}

bool LeaderWatch::on_completion(const Completion& done, Instant now) {
  if (done.call == observation_) {
    const auto& result = std::get<Result<ObserveEnded>>(done.outcome);
    if (!ended_ && !result) end(result.error());
    return true;
  }
  if (done.call != inspection_) return false;
  inspection_.reset();
  if (ended_) return true;
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
  const MaybeLeader shown = read_leader(lock);
  for (; !pending_.empty() && is_resolved(pending_.front(), shown); pending_.pop_front()) {
    MaybeLeader& change = pending_.front();
    if (change && shown && change->token == shown->token) change->value = shown->value;
    changes_.emplace_back(std::move(change));
    if (pending_at_inspect_ > 0) --pending_at_inspect_;
  }
  if (!std::exchange(resyncing_, false)) {
    if (!pending_.empty()) inspect(now);
    return;
  }
  const Token token = shown ? shown->token : Token{};
  if (!first_reported_ || token != leader_token_) changes_.emplace_back(shown);
  first_reported_ = true;
  resync_order_ = order;
  leader_token_ = token;
  newest_token_ = std::max({newest_token_, token, token_in(lock, "last_token")});
}

// Whether nothing more can be learned about this change.
bool LeaderWatch::is_resolved(const MaybeLeader& change, const MaybeLeader& shown) const {
  if (resyncing_ || pending_at_inspect_ > 0 || !change) return true;
  return shown && change->token <= shown->token;
}

void LeaderWatch::end(const Error& why) {
  for (MaybeLeader& change : pending_) changes_.emplace_back(std::move(change));
  pending_.clear();
  changes_.emplace_back(why);
  ended_ = true;
}

void LeaderWatch::stop(Instant now) {
  machine_.cancel(observation_, now);
  if (inspection_) machine_.cancel(*inspection_, now);
  pending_.clear();
  changes_.clear();
  ended_ = true;
}

// --- LeaderWatches -------------------------------------------------------------------------------

WatchNumber LeaderWatches::add(std::string name, Callback callback, Instant now) {
  const WatchNumber number{++last_number_};
  watches_.emplace(number, Watch{LeaderWatch(machine_, std::move(name), now), std::move(callback)});
  return number;
}

void LeaderWatches::remove(WatchNumber number, Instant now) {
  const auto found = watches_.find(number);
  if (found == watches_.end()) return;
  found->second.leader.stop(now);
  watches_.erase(found);
}

void LeaderWatches::remove_all(Instant now) {
  while (!watches_.empty()) remove(watches_.begin()->first, now);
}

bool LeaderWatches::on_completion(const Completion& done, Instant now) {
  for (auto& [number, watch] : watches_) {
    if (watch.leader.on_completion(done, now)) return true;
  }
  return false;
}

std::vector<LeaderWatches::Notification> LeaderWatches::take_notifications(Instant now) {
  std::vector<Notification> notifications;
  if (watches_.empty()) return notifications;
  for (const ObservedEvent& observed : machine_.take_observed_events()) {
    for (auto& [number, watch] : watches_) {
      if (watch.leader.on_event(observed, now)) break;
    }
  }
  for (auto at = watches_.begin(); at != watches_.end();) {
    auto& [number, watch] = *at;
    bool over = false;
    for (auto& change : watch.leader.take_changes()) {
      over = !change.has_value();
      notifications.push_back({watch.callback, std::move(change)});
    }
    at = over ? watches_.erase(at) : std::next(at);
  }
  return notifications;
}

}  // namespace pawl::client
