// The way of a decision of the core to the connection it concerns: applies inputs, returns the
// reply of the caller's own input, and ends the waits that were decided on the way.
//
//   const core::Reply reply = router.ask(core::Renew{kDirect, lease}, now);
//   router.wait(session, acquire, request, now);  // answered now, or when the wait ends
//   router.cancel_waits(session, now);            // a hang-up: nothing more is granted to it
//
// One input may decide several waits: a release hands its locks on. Every wait has exactly one end.
// One thread owns it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.h"
#include "core/core.h"
#include "server/break_notes.h"
#include "server/connections.h"
#include "server/session.h"
#include "server/turn_stats.h"
#include "server/wait_table.h"

namespace pawl::server {

// The waiter of an input that is answered before apply() returns.
inline constexpr WaiterId kDirect{UINT64_MAX};

// Whether the reply to it is an error.
[[nodiscard]] bool is_error(const core::Outcome& outcome);

class ReplyRouter {
 public:
  ReplyRouter(core::Core& core, Connections& connections, TurnStats& stats)
      : core_(core), connections_(connections), stats_(stats) {}

  // Applies an input that is answered at once, and returns its reply. `asker`: the session of an
  // ACQUIRE. A wait of its own that this input takes over needs no further message.
  template <class Input>
  core::Reply ask(const Input& input, Now now, const Session* asker = nullptr);

  // Applies an acquire that may wait; its waiter is set here. Its reply, and for an ASYNC one its
  // push, are written when they are decided. `request` as the client named it. Returns false when
  // the command was answered with an error already.
  bool wait(Session& session, core::Acquire& input, std::string_view request, Now now);
  // Whether it is this connection that waits with that request id, as the core knows it.
  [[nodiscard]] bool is_waiting_for(const Session& session, std::string_view request);
  // Whether a connection that was accepted after this one waits with that request id.
  [[nodiscard]] bool newer_waits_for(const Session& session, std::string_view request);

  // Ends the waits of one connection, or of several that end together, without a reply.
  void cancel_waits(Session& session, Now now);
  void cancel_waits(std::span<Session* const> sessions, Now now);

  // Forgets the waits of one connection; the core that knew them is gone.
  void forget_waits(Session& session);

  // Ends the waits that a tick of the core decided.
  void route();

  // Writes what the core decided, as a reply. `by_request`: the caller named a request id, and may
  // not know the token of the lease that it asks about.
  void write_outcome(wire::ReplyWriter& reply, const core::Outcome& outcome, bool by_request) const;
  // What the holders of broken leases are told.
  [[nodiscard]] BreakNotes& break_notes() { return break_notes_; }

 private:
  // The ACQUIRE that is being applied: its session, and the wait it opened.
  struct Asker {
    const Session* session = nullptr;
    WaiterId wait;
  };
  // A wait that was taken out of the table, and is still known to the core.
  struct Dropped {
    std::uint64_t arrival;
    WaiterId waiter;
  };

  struct Routed {
    std::optional<core::Reply> direct;  // the reply to kDirect, if there is one
    bool asker_failed = false;          // the asker's own wait ended with an error
  };
  // Ends the waits that were decided.
  Routed route(const Asker& asker);
  void end_wait(Wait& wait, const core::Reply& reply, const Asker& asker);
  void supersede(Wait& wait, const core::Reply& reply, const Asker& asker);
  void drop_waits(Session& session, std::vector<Dropped>& dropped);
  void cancel(std::vector<Dropped>& dropped, Now now);
  void forget(Wait& wait);
  // nullptr: none waits with that request id.
  [[nodiscard]] const Wait* wait_of(std::string_view request);
  [[nodiscard]] Session& owner(const Wait& wait) { return connections_.at(wait.connection); }

  core::Core& core_;
  Connections& connections_;
  TurnStats& stats_;
  WaitTable waits_;
  BreakNotes break_notes_;
};

template <class Input>
core::Reply ReplyRouter::ask(const Input& input, Now now, const Session* asker) {
  core_.apply(input, now);
  // Nearly always the only reply, and then nobody else's wait has ended.
  std::vector<core::Reply>& replies = core_.output().replies;
  if (replies.size() == 1 && replies.front().waiter == kDirect) {
    const core::Reply own = replies.front();
    replies.clear();
    return own;
  }
  const Routed routed = route(Asker{asker, {}});
  PAWL_ASSERT(routed.direct.has_value());
  return *routed.direct;
}

}  // namespace pawl::server
