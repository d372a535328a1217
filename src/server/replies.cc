// The engine's replies: what the core decided, to whoever it concerns, in the words of the wire.
#include "wire/replies.h"
#include "base/assert.h"
#include "base/mutants.h"
#include "server/engine.h"

namespace pawl::server {
namespace {

wire::GrantReply shown(const core::Granted& grant) {
  return {grant.lease, grant.token, grant.floor, grant.slot, grant.ttl, grant.waited};
}

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

// In the histogram's unit. Near its MAXHOLD a lease gets less than its TTL; it is compared with
// what it got.
std::int64_t parts_left(const core::Renewed& renewed) {
  if (renewed.before >= renewed.left) return Ratio::kWhole;
  return Ratio::kWhole * renewed.before.count() / renewed.left.count();
}

}  // namespace

void Engine::route_replies() {
  std::vector<core::Reply>& replies = core_.output().replies;
  for (const core::Reply& reply : replies) {
    if (reply.waiter == kDirect) {
      PAWL_ASSERT(!answered_);
      direct_ = reply;
      answered_ = true;
      continue;
    }
    Wait* wait = waits_.find(reply.waiter);
    PAWL_ASSERT(wait != nullptr);
    end_wait(*wait, reply);
  }
  replies.clear();
}

// The wait has an answer: the one its command waits for, or, once that was "queued", a push.
void Engine::end_wait(Wait& wait, const core::Reply& reply) {
  Session& session = owner(wait);
  count_acquire(reply.outcome);
  const auto* missed = std::get_if<core::NotObtained>(&reply.outcome);
  if (missed != nullptr && missed->why == core::NotObtained::Why::kSuperseded)
    return superseded(wait, reply);
  if (wait.async && wait.queued) {
    wire::ReplyWriter push = session.reply();
    if (const auto* granted = std::get_if<core::Granted>(&reply.outcome)) {
      const wire::GrantReply grant = shown(*granted);
      wire::write_wait_push(push, wire::WaitEvent::kGranted, wait.request, &grant);
    } else {
      PAWL_ASSERT(missed != nullptr);
      wire::write_wait_push(push, event_of(missed->why), wait.request, nullptr);
    }
  } else {
    write_outcome(session, reply.outcome, true);
  }
  seal(session, reply.after);
  if (std::holds_alternative<core::Queued>(reply.outcome)) {
    wait.queued = true;
    return;
  }
  forget(wait);
  if (&session != asking_ && session.has_input()) mark_ready(session);
}

// A newer asker with the same request id owns the wait now, and its place.
void Engine::superseded(Wait& wait, const core::Reply& reply) {
  Session& session = owner(wait);
  if (Wait* heir = waits_.find(asking_wait_)) heir->arrival = wait.arrival;
  if (&session !=
      asking_) {  // Who sent it again on the same connection is told the position, and that is all.
    wire::ReplyWriter writer = session.reply();
    if (wait.async) {
      wire::write_wait_push(writer, wire::WaitEvent::kSuperseded, wait.request, nullptr);
    } else {
      writer.error(wire::ErrorCode::kConflict, "superseded by a newer connection");
    }
    seal(session, reply.after);
    if (session.has_input()) mark_ready(session);
  }
  forget(wait);
}

void Engine::count_acquire(const core::Outcome& outcome) {
  telemetry_.count(outcome);
  if (const auto* granted = std::get_if<core::Granted>(&outcome))
    granted_waits_.push_back(granted->waited);
}

void Engine::count_renewal(const core::Outcome& outcome) {
  if (const auto* renewed = std::get_if<core::Renewed>(&outcome)) {
    ++telemetry_.renewed;
    telemetry_.margin.observe(renewed->before);
    telemetry_.margin_ratio.observe(parts_left(*renewed));
    return;
  }
  ++telemetry_.not_renewed;
  const auto* lost = std::get_if<core::Lost>(&outcome);
  if (lost != nullptr && lost->ending == core::Ending::kExpired) ++telemetry_.heard_after_expiry;
}

void Engine::count_release(LeaseId lease, const core::Outcome& outcome) {
  const auto* released = std::get_if<core::Released>(&outcome);
  if (released == nullptr || released->was_live) return;
  if (core_.ending_of(lease) == core::Ending::kExpired) ++telemetry_.heard_after_expiry;
}

void Engine::write_outcome(Session& session, const core::Outcome& outcome, bool by_request) {
  wire::ReplyWriter reply = session.reply();
  struct Write {
    wire::ReplyWriter& reply;
    bool by_request;
    void operator()(const core::Granted& granted) const {
      wire::write_grant(reply, shown(granted));
    }
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
    void operator()(const core::Raised& raised) const {
      reply.integer(static_cast<std::int64_t>(raised.last.value));
    }
    void operator()(const core::Lost& lost) const {
      reply.error(wire::ErrorCode::kLost, lost_text(lost, by_request));
    }
    void operator()(const core::Refused& refused) const { write_refused(reply, refused); }
  };
  std::visit(Write{reply, by_request}, outcome);
  command_failed_ = command_failed_ || std::holds_alternative<core::Lost>(outcome) ||
                    std::holds_alternative<core::Refused>(outcome);
}

void Engine::seal(Session& session, BatchId after) {
  session.seal(PAWL_MUTANT(answer_before_sync) ? BatchId{} : after);
  mark_dirty(session);
}

void Engine::error(Session& session, wire::ErrorCode code, std::string_view text) {
  command_failed_ = true;
  session.reply().error(code, text);
  seal(session, BatchId{});
}

}  // namespace pawl::server
