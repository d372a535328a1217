// The engine's observers: who hears which events, how far each has been told, and what becomes of
// one that reads too slowly.
#include <fmt/format.h>

#include <algorithm>

#include "base/mutants.h"
#include "server/engine.h"

namespace pawl::server {
namespace {

constexpr std::string_view kMissed = "what came after that id is not known here any more";

}  // namespace

// The reply is the id to resume from, so that a connection that breaks before the first event
// misses nothing either.
void Engine::handle(Session& session, const wire::Observe& request) {
  if (refuse_beginning(session, request.prefix)) return;
  const bool known = session.observation != nullptr && session.observation->has(request.prefix);
  if (!known && refuse_observer(session)) return;
  EventRing::Position start = events_.end();
  bool missed = false;
  if (request.from) {
    const auto found = events_.after(*request.from);
    missed = !found && !PAWL_MUTANT(reset_not_told);
    if (found) start = *found;
    if (PAWL_MUTANT(resume_skips_an_event)) start = std::min(start + 1, events_.end());
  }
  const wire::EventId id = events_.id_before(start);
  session.reply().bulk(to_text(id));
  seal(session, BatchId{});
  if (session.hung_up) return;  // Nothing is kept for a peer that is leaving.
  if (missed) {
    wire::EventView reset;
    reset.id = id;
    reset.reason = kMissed;
    wire::ReplyWriter push = session.reply();
    wire::write_event(push, reset);
    seal(session, BatchId{});
  }
  if (known && !request.from) return;  // It goes on where it is: to begin anew would leave a gap.
  if (session.observation == nullptr) {
    session.observation = std::make_unique<Observation>();
    observers_.push_back(&session);
  }
  session.observation->add(request.prefix, start);
  tell(session);
}

void Engine::handle(Session& session, const wire::Unobserve& request) {
  const bool observed =
      session.observation != nullptr && session.observation->remove(request.prefix);
  session.reply().integer(observed ? 1 : 0);
  seal(session, BatchId{});
  if (observed && session.observation->empty()) stop_observing(session);
}

bool Engine::refuse_observer(Session& session) {
  if (session.observation == nullptr) {
    if (observers_.size() < settings_.observers_max) return false;
    error(session, wire::ErrorCode::kBusy,
          fmt::format("observers: the limit of {} connections that observe is reached",
                      settings_.observers_max));
    return true;
  }
  if (session.observation->prefixes() < limits::kPrefixesPerObserver) return false;
  error(session, wire::ErrorCode::kBusy,
        fmt::format("prefixes: the limit of {} per connection is reached",
                    limits::kPrefixesPerObserver));
  return true;
}

void Engine::stop_observing(Session& session) {
  if (session.observation == nullptr) return;
  session.observation.reset();
  observers_.erase(std::find(observers_.begin(), observers_.end(), &session));
}

// From the back, because one that is cut leaves the list meanwhile.
void Engine::tell_observers() {
  for (std::size_t i = observers_.size(); i-- > 0;) tell(*observers_[i]);
}

// Only so much at a time: the rest waits in the ring, shared by all, until this one has read what
// it was sent.
void Engine::tell(Session& session) {
  Observation& observation = *session.observation;
  if (observation.next() < events_.first()) return cut_observer(session);
  bool any = false;
  while (observation.next() < events_.end() && session.outbox().size() < Session::kEventsPause) {
    const EventRing::Position position = observation.next();
    const std::string_view lock = events_.lock_at(position);
    if (!observation.take(lock) || (!lock.empty() && !reaches(session.user, lock))) continue;
    wire::ReplyWriter push = session.reply();
    wire::write_event(push, events_.at(position));
    session.seal(
        BatchId{});  // They are durable; behind a reply that is not yet, they wait all the same.
    any = true;
  }
  if (any) mark_dirty(session);
}

bool Engine::is_behind(const Session& session) const {
  return session.observation->next() < events_.end();
}

// Hard case 25. It costs nobody else anything, but what it has not read is gone from the ring.
void Engine::cut_observer(Session& session) {
  ++counters_.connections_cut;
  log_.warning(
      fmt::format("connection {} ({}) reads its events too slowly: they are no longer kept; closed",
                  session.id().value, session.peer()),
      {{"address", session.peer()}, {"user", user_of(session)}});
  stop_observing(session);
  error(session, wire::ErrorCode::kBusy, wire::kEventsFarewell);
  session.closing = true;
  mark_ready(session);  // Its waits end in the next turn.
}

}  // namespace pawl::server
