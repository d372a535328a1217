#include "sim/observer_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::sim {

ObserverNode::ObserverNode(World& world, Network& network, int number, Rate rate, std::string lock,
                           const ServerWatch& truth, History& history,
                           std::vector<std::string>& faults)
    : world_(world),
      number_(number),
      lock_(std::move(lock)),
      truth_(truth),
      history_(history),
      faults_(faults),
      line_(world, network, rate, [this] { pump(); }) {}

void ObserverNode::begin() {
  look_anew();
  pump();
}

void ObserverNode::look_anew() {
  const client::Instant now = line_.now();
  if (watch_) watch_->stop(now);
  if (all_) line_.machine().cancel(*all_, now);
  stream_ = number_ * 1000 + stream_ % 1000 + 1;
  newest_ = Token{};
  leader_.reset();
  last_.reset();
  watch_.emplace(line_.machine(), lock_, now);
  all_ = line_.machine().observe({}, now);
  look_away_at_ = now + world_.between(Millis(100), Millis(4000));
}

void ObserverNode::pump() {
  if (line_.frozen()) return;
  client::Machine& machine = line_.machine();
  machine.on_timer(line_.now());
  // Completions first: the watch asks for that.
  for (const client::Completion& done : machine.take_completions())
    (void)watch_->on_completion(done, line_.now());
  for (const client::ObservedEvent& seen : machine.take_observed_events()) {
    if (!watch_->on_event(seen, line_.now())) take(seen);
  }
  for (const auto& change : watch_->take_changes()) {
    if (change) {
      received(*change);
    } else {
      faults_.push_back("EL: an observer was refused: " + change.error().detail);
    }
  }
  if (!winding_down_ && line_.now() >= look_away_at_) look_anew();
  line_.settle(winding_down_ ? client::kNever : look_away_at_);
}

void ObserverNode::received(const client::MaybeLeader& leader) {
  Leading news;
  news.observer = stream_;
  news.lock = lock_;
  news.at = world_.now();
  if (leader) {
    news.token = leader->token;
    news.owner = leader->owner;
    news.value = leader->value;
    if (newest_.value != 0) check_nobody_is_left_out(newest_, leader->token);
    newest_ = std::max(newest_, leader->token);
  }
  leader_ = news.token;
  world_.note(
      [&] { return fmt::format("observer {}: token {} leads", number_, news.token.value); });
  history_.leaders.push_back(std::move(news));
}

std::optional<std::size_t> ObserverNode::place_of(const wire::EventId& id) const {
  const auto& all = truth_.sent();
  // In all lives, restored or not, the numbers only grow; incarnations have no order.
  const auto found =
      std::lower_bound(all.begin(), all.end(), id,
                       [](const auto& received, const auto& i) { return received.id.n < i.n; });
  if (found == all.end() || found->id != id) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

std::optional<std::size_t> ObserverNode::place_of_grant(Token token) const {
  const auto& all = truth_.sent();
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].kind == wire::EventKind::kGranted && all[i].token == token && all[i].lock == lock_)
      return i;
  }
  return std::nullopt;
}

// Within one life of pawld a resumed observation gets what it missed.
void ObserverNode::check_nobody_is_left_out(Token before, Token next) {
  if (history_.demand == Demand::kTokensOnly) return;
  const auto& all = truth_.sent();
  const auto from = place_of_grant(before), to = place_of_grant(next);
  if (!from || !to || all[*from].life != truth_.life()) return;
  for (std::size_t i = *from + 1; i < *to; ++i) {
    if (all[i].kind != wire::EventKind::kGranted || all[i].lock != lock_) continue;
    faults_.push_back(
        fmt::format("EL: observer {} received leaders {} and {}, and not of {} between them",
                    number_, before.value, next.value, all[i].token.value));
  }
}

void ObserverNode::take(const client::ObservedEvent& seen) {
  // Where the last batch may be lost, its events' ids are given again.
  if (history_.demand == Demand::kTokensOnly) return;
  if (seen.call != all_ || !seen.event) return;
  if (seen.event->kind == wire::EventKind::kReset) return last_.reset();
  const auto place = place_of(seen.event->id);
  if (!place) {
    faults_.push_back(fmt::format("EL: observer {} received event {}, which pawld never sent",
                                  number_, to_text(seen.event->id)));
  } else if (last_ && *place != *last_ + 1) {
    faults_.push_back(fmt::format("EL: observer {} received event {} after {}", number_,
                                  to_text(seen.event->id), to_text(truth_.sent()[*last_].id)));
  }
  last_ = place;
}

}  // namespace pawl::sim
