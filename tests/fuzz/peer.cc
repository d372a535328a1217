#include "tests/fuzz/peer.h"

#include "base/assert.h"

namespace pawl::fuzz {

Peer::Grants Peer::received(std::string_view bytes) {
  Grants grants;
  unread_.append(bytes);
  for (;;) {
    const auto reply = decoder_.decode(unread_);
    PAWL_ASSERT(reply.status != wire::DecodeStatus::kProtocolError);
    unread_.erase(0, reply.consumed);
    if (reply.status == wire::DecodeStatus::kNeedMore) return grants;
    take(reply.value, grants);
  }
}

void Peer::take(const wire::Value& value, Grants& grants) {
  if (const auto event = wire::read_event(value)) return take_event(*event);
  if (!value.is_push()) return take_reply(value, grants);
  const auto push = wire::read_wait_push(value);
  PAWL_ASSERT(push);  // There are events and ends of waits, and no other pushes.
  take_push(*push, grants);
}

// A reset begins anew, with the id that the observer is to go on from.
void Peer::take_event(const wire::EventPush& event) {
  const bool resumes = event.kind == wire::EventKind::kReset;
  PAWL_ASSERT(resumes || !last_event_ || event.id > *last_event_);
  PAWL_ASSERT(event.lock.empty() == (resumes || event.kind == wire::EventKind::kRaised));
  last_event_ = event.id;
}

void Peer::take_push(const wire::WaitPush& push, Grants& grants) {
  PAWL_ASSERT(garbage_ || waits_.contains(push.request));
  waits_.erase(push.request);
  if (push.grant) grants.push_back(*push.grant);
}

void Peer::take_reply(const wire::Value& value, Grants& grants) {
  if (garbage_) return;
  PAWL_ASSERT(!expected_.empty());  // Never more replies than commands.
  const Sent command = std::move(expected_.front());
  expected_.pop_front();
  if (command.verb == "ECHO" && !value.is_error()) PAWL_ASSERT(value.as_text() == command.text);
  if (command.verb == "QUIT") quit_ = true;
  if (command.verb == "RESET" && !value.is_error()) {
    waits_.clear();
    last_event_.reset();
  }
  // A new beginning may repeat what was sent before.
  if (command.verb == "OBSERVE" || command.verb == "UNOBSERVE") last_event_.reset();
  if (command.verb != "ACQUIRE") return;
  const auto acquired = wire::read_acquire(value);
  if (!acquired) return;
  if (std::holds_alternative<wire::QueuedReply>(*acquired)) {
    PAWL_ASSERT(!command.request.empty());
    waits_.insert(command.request);
    return;
  }
  waits_.erase(
      command.request);  // Asked again here without ASYNC: the newer question owns the wait.
  if (const auto* grant = std::get_if<wire::GrantReply>(&*acquired)) grants.push_back(*grant);
}

}  // namespace pawl::fuzz
