#include "server/observers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::server {

// From the back, because one that is cut leaves the list meanwhile.
void Observers::publish(BatchId durable) {
  events_.publish(durable);
  for (std::size_t i = observers_.size(); i-- > 0;) send(*observers_[i]);
}

Observers::Start Observers::start_at(const std::optional<wire::EventId>& from) const {
  Start start{.position = events_.end(), .id = {}};
  if (from) {
    const auto found = events_.after(*from);
    start.missed = !found && !PAWL_MUTANT(reset_not_told);
    if (found) start.position = *found;
    if (PAWL_MUTANT(resume_skips_an_event))
      start.position = std::min(start.position + 1, events_.end());
  }
  start.id = events_.id_before(start.position);
  return start;
}

Refusal Observers::check_limits(const Session& session) const {
  if (session.observation == nullptr) {
    const bool full = observers_.size() >= limits_.in_all;
    if (!full && (session.account == 0 || count_of(session.account) < limits_.per_user))
      return std::nullopt;
    return wire::WireError{
        wire::ErrorCode::kBusy,
        fmt::format("observers: the limit of {} connections that observe {} is reached; close one, "
                    "or raise limits.observers{} of pawld",
                    full ? limits_.in_all : limits_.per_user, full ? "in all" : "for one user",
                    full ? "" : "_per_user")};
  }
  if (session.observation->prefixes() < limits::kPrefixesPerObserver) return std::nullopt;
  return wire::WireError{wire::ErrorCode::kBusy,
                         fmt::format("prefixes: the limit of {} per connection is reached",
                                     limits::kPrefixesPerObserver)};
}

std::size_t Observers::count_of(core::AccountId account) const {
  return static_cast<std::size_t>(
      std::count_if(observers_.begin(), observers_.end(),
                    [&](const Session* session) { return session->account == account; }));
}

std::size_t Observers::greatest_user() const {
  std::map<core::AccountId, std::size_t> counts;
  std::size_t most = 0;
  for (const Session* session : observers_) {
    if (session->account != 0) most = std::max(most, ++counts[session->account]);
  }
  return most;
}

void Observers::add(Session& session, std::string_view prefix, EventRing::Position start) {
  if (session.observation == nullptr) {
    session.observation = std::make_unique<Observation>();
    observers_.push_back(&session);
  }
  session.observation->add(prefix, start);
  send(session);
}

bool Observers::remove(Session& session, std::string_view prefix) {
  if (session.observation == nullptr || !session.observation->remove(prefix)) return false;
  if (session.observation->empty()) stop(session);
  return true;
}

void Observers::stop(Session& session) {
  if (session.observation == nullptr) return;
  session.observation.reset();
  const auto found = std::find(observers_.begin(), observers_.end(), &session);
  PAWL_ASSERT(found != observers_.end());
  observers_.erase(found);
}

bool Observers::catch_up(Session& session) {
  if (session.observation->next() >= events_.end()) return false;
  const std::size_t before = session.outbox().size();
  send(session);
  return session.outbox().size() > before;
}

void Observers::send(Session& session) {
  Observation& observation = *session.observation;
  if (observation.next() < events_.first()) return cut(session);
  bool any = false;
  while (observation.next() < events_.end() && session.outbox().size() < Session::kEventsPause) {
    const EventRing::Position position = observation.next();
    const std::string_view lock = events_.lock_at(position);
    if (!observation.take(lock) || (!lock.empty() && !reaches(session.user, lock))) continue;
    wire::ReplyWriter push = session.reply();
    wire::write_event(push, events_.at(position));
    // It is durable; behind a reply that is not yet, it waits all the same.
    session.seal(BatchId{});
    any = true;
  }
  if (any) connections_.mark_dirty(session);
}

// Hard case 25. Other connections are not affected, but the unread events are no longer in the
// ring.
void Observers::cut(Session& session) {
  ++telemetry_.connections_cut;
  log_.warning(
      fmt::format("connection {} ({}) reads its events too slowly: they are no longer "
                  "kept; closing it",
                  session.id().value, session.peer()),
      {{"event", "observer_cut"}, {"user", session.user_name()}, {"address", session.address()}});
  stop(session);
  connections_.reply_error(session, wire::ErrorCode::kBusy, wire::kClosedSlowObserver);
  session.closing = true;
  connections_.mark_ready(session);  // Its waits end in the next turn.
}

}  // namespace pawl::server
