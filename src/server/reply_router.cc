#include "server/reply_router.h"

#include <algorithm>

#include "server/reports.h"
#include "wire/replies.h"

namespace pawl::server {
namespace {

wire::WaitEvent event_of(core::NotObtained::Why why) {
  switch (why) {
    case core::NotObtained::Why::kCancelled:
      return wire::WaitEvent::kCancelled;
    case core::NotObtained::Why::kSuperseded:
      return wire::WaitEvent::kSuperseded;
    case core::NotObtained::Why::kBusy:
    case core::NotObtained::Why::kTimeout:
      break;
  }
  return wire::WaitEvent::kTimeout;
}

}  // namespace

bool is_error(const core::Outcome& outcome) {
  return std::holds_alternative<core::Lost>(outcome) ||
         std::holds_alternative<core::Refused>(outcome);
}

void ReplyRouter::write_outcome(wire::ReplyWriter& reply, const core::Outcome& outcome,
                                bool by_request) const {
  struct Write {
    wire::ReplyWriter& reply;
    bool by_request;
    const BreakNotes& notes;
    void operator()(const core::Granted& granted) const { wire::write_grant(reply, granted); }
    void operator()(const core::Queued& queued) const {
      wire::write_queued(reply, {queued.position});
    }
    void operator()(const core::NotObtained&) const { reply.not_obtained(); }
    void operator()(const core::Renewed& renewed) const { reply.integer(renewed.left.count()); }
    void operator()(const core::Released& released) const {
      reply.integer(released.was_live ? 1 : 0);
    }
    void operator()(const core::CancelDone& done) const { reply.integer(done.was_waiting ? 1 : 0); }
    void operator()(const core::BreakDone& done) const { reply.integer(done.was_live ? 1 : 0); }
    void operator()(const core::AskDone& done) const { write_ask(reply, done); }
    void operator()(const core::Raised& raised) const {
      reply.integer(static_cast<std::int64_t>(raised.last.value));
    }
    void operator()(const core::Lost& lost) const {
      std::string text = lost_text(lost, by_request);
      if (lost.ending == core::Ending::kBroken) text += notes.about(lost.token);
      reply.error(wire::ErrorCode::kLost, text);
    }
    void operator()(const core::Refused& refused) const { write_refused(reply, refused); }
  };
  std::visit(Write{reply, by_request, break_notes_}, outcome);
}

bool ReplyRouter::wait(Session& session, core::Acquire& input, std::string_view request, Now now) {
  Wait& wait = waits_.add(session.id(), session.waits);
  wait.async = input.spec.async;
  if (wait.async) {
    wait.request = request;
    ++session.async_waits;
  } else {
    connections_.block(session);
  }
  input.waiter = wait.id;
  core_.apply(input, now);
  return !route(Asker{&session, input.waiter}).asker_failed;
}

const Wait* ReplyRouter::wait_of(std::string_view request) {
  const auto waiter = core_.waiting_as(request);
  return waiter ? waits_.find(*waiter) : nullptr;
}

bool ReplyRouter::is_waiting_for(const Session& session, std::string_view request) {
  const Wait* wait = wait_of(request);
  return wait != nullptr && wait->connection == session.id();
}

bool ReplyRouter::newer_waits_for(const Session& session, std::string_view request) {
  const Wait* wait = wait_of(request);
  return wait != nullptr && wait->connection > session.id();
}

void ReplyRouter::cancel_waits(Session& session, Now now) {
  Session* const only = &session;
  cancel_waits(std::span(&only, 1), now);
}

void ReplyRouter::cancel_waits(std::span<Session* const> sessions, Now now) {
  std::vector<Dropped> dropped;
  for (Session* session : sessions) drop_waits(*session, dropped);
  cancel(dropped, now);
}

void ReplyRouter::forget_waits(Session& session) {
  std::vector<Dropped> dropped;
  drop_waits(session, dropped);
}

void ReplyRouter::route() {
  (void)route(Asker{});
}

ReplyRouter::Routed ReplyRouter::route(const Asker& asker) {
  Routed routed;
  std::vector<core::Reply>& replies = core_.output().replies;
  for (const core::Reply& reply : replies) {
    if (reply.waiter == kDirect) {
      PAWL_ASSERT(!routed.direct);
      routed.direct = reply;
      continue;
    }
    Wait* wait = waits_.find(reply.waiter);
    PAWL_ASSERT(wait != nullptr);
    if (reply.waiter == asker.wait) routed.asker_failed = is_error(reply.outcome);
    end_wait(*wait, reply, asker);
  }
  replies.clear();
  return routed;
}

// The wait has an answer: the one its command waits for, or, once that was "queued", a push.
void ReplyRouter::end_wait(Wait& wait, const core::Reply& reply, const Asker& asker) {
  Session& session = owner(wait);
  stats_.count_acquire(reply.outcome);
  const auto* missed = std::get_if<core::NotObtained>(&reply.outcome);
  if (missed != nullptr && missed->why == core::NotObtained::Why::kSuperseded)
    return supersede(wait, reply, asker);
  wire::ReplyWriter writer = session.reply();
  if (wait.async && wait.queued) {
    if (const auto* granted = std::get_if<core::Granted>(&reply.outcome)) {
      wire::write_wait_push(writer, wire::WaitEvent::kGranted, wait.request, granted);
    } else {
      // Refused: no token is left. The wait ends without a grant; a new ACQUIRE is told why.
      PAWL_ASSERT(missed != nullptr || std::holds_alternative<core::Refused>(reply.outcome));
      const auto event = missed != nullptr ? event_of(missed->why) : wire::WaitEvent::kTimeout;
      wire::write_wait_push(writer, event, wait.request, nullptr);
    }
  } else {
    write_outcome(writer, reply.outcome, true);
  }
  connections_.seal(session, reply.after);
  if (std::holds_alternative<core::Queued>(reply.outcome)) {
    wait.queued = true;
    return;
  }
  forget(wait);
  if (&session != asker.session && session.has_input()) connections_.mark_ready(session);
}

// A newer request with the same request id owns the wait now, and its position.
void ReplyRouter::supersede(Wait& wait, const core::Reply& reply, const Asker& asker) {
  Session& session = owner(wait);
  if (Wait* successor = waits_.find(asker.wait)) successor->arrival = wait.arrival;
  // One that was sent again on the same connection is answered with its position, and no more.
  if (&session != asker.session) {
    wire::ReplyWriter writer = session.reply();
    if (wait.async) {
      wire::write_wait_push(writer, wire::WaitEvent::kSuperseded, wait.request, nullptr);
    } else {
      writer.error(wire::ErrorCode::kConflict, "superseded by a newer connection");
    }
    connections_.seal(session, reply.after);
    if (session.has_input()) connections_.mark_ready(session);
  }
  forget(wait);
}

// Takes the session's waits out of the table; cancel() then takes them out of the core.
void ReplyRouter::drop_waits(Session& session, std::vector<Dropped>& dropped) {
  while (session.waits != 0) {
    Wait& wait = waits_.at(session.waits);
    dropped.push_back({wait.arrival, wait.id});
    forget(wait);
  }
}

// Latest arrivals first. A wait that ends can only let through one behind it; in this order all
// that end in the same turn are gone by then, and no grant goes to a connection that is known to be
// dead (hard case 19).
void ReplyRouter::cancel(std::vector<Dropped>& dropped, Now now) {
  std::sort(dropped.begin(), dropped.end(),
            [](const Dropped& a, const Dropped& b) { return a.arrival > b.arrival; });
  for (const Dropped& wait : dropped) core_.apply(core::Cancel{wait.waiter}, now);
  route();
}

void ReplyRouter::forget(Wait& wait) {
  Session& session = owner(wait);
  if (wait.async) {
    --session.async_waits;
  } else {
    connections_.unblock(session);
  }
  waits_.remove(wait, session.waits);
}

}  // namespace pawl::server
