// The connections of the engine: their sessions, how many there may be, and which of them have
// input to serve, output to send, or an end to be applied.
//
//   Session* session = connections.add(id, peer, now);     // nullptr: refused, and closed already
//   Session& stranger = connections.add_newcomer(id, peer, now);  // where it must authenticate
//   if (!connections.admit(stranger)) …                    // it has; false: there is no room
//   connections.receive(id, bytes);  connections.hang_up(id);
//   each turn:  for (Session* s : connections.take_hangups()) …;
//               connections.ready() is served;  connections.flush_dirty(…);
//               connections.erase_closed_sessions();
//
// A session stays until no list names it any more, so a `Session*` taken from a list is valid for
// the rest of the turn. One thread owns it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/newcomers.h"
#include "base/types.h"
#include "server/network.h"
#include "server/session.h"
#include "server/telemetry.h"
#include "wire/error_code.h"

namespace pawl::server {

class Connections {
 public:
  struct Limits {
    std::size_t ordinary = limits::kConnectionsMax;
    std::size_t reserved = limits::kConnectionsReserved;  // and that many more, for renewals only
    std::size_t newcomers = limits::kNewcomersMax;        // and that many, before they authenticate
    Nanos authenticate = limits::kAuthenticateTime;       // within this time
  };

  // With `random`, chance decides which newcomer goes when there are too many.
  Connections(Network& network, Limits limits, Telemetry& telemetry, Random* random = nullptr)
      : network_(network),
        limits_(limits),
        telemetry_(telemetry),
        newcomers_({.most = limits.newcomers, .patience = limits.authenticate, .random = random}) {}

  // --- From the driver ---------------------------------------------------------------------------
  // nullptr: beyond all limits; it was sent an error and closed.
  Session* add(ConnectionId connection, std::string_view peer, Tick now);
  // One that must authenticate before it is given a place among the others. It may displace
  // another (take_displaced()).
  Session& add_newcomer(ConnectionId connection, std::string_view peer, Tick now);
  // An unknown connection is ignored: the engine may have closed it meanwhile.
  void receive(ConnectionId connection, std::string_view bytes);
  void hang_up(ConnectionId connection);
  void writable(ConnectionId connection);

  // --- Finding -----------------------------------------------------------------------------------
  // nullptr when there is none, or it is closed already.
  [[nodiscard]] Session* find(ConnectionId connection);
  // One that exists, closed or not.
  [[nodiscard]] Session& at(ConnectionId connection);
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }
  // Of these, the ones that other threads of this process opened.
  [[nodiscard]] std::size_t in_process() const { return in_process_; }
  // Of these, the ones that have not authenticated, without those of other threads.
  [[nodiscard]] std::size_t newcomers() const { return newcomers_.size(); }
  [[nodiscard]] std::size_t blocked() const { return blocked_; }
  // Unread output of all of them, as of the last flush.
  [[nodiscard]] std::size_t output_total() const { return output_total_; }
  // Of the user whose connections have most unread output, the one with most; nullptr when nobody
  // has any that does not leave.
  [[nodiscard]] Session* slowest_reader();
  [[nodiscard]] const Limits& limits() const { return limits_; }
  // In order of their ids; closed ones included.
  [[nodiscard]] std::vector<Session*> all();

  // --- Replies -----------------------------------------------------------------------------------
  // Ends the reply, or push, that was written to session.reply(): it leaves once `after` is
  // durable.
  void seal(Session& session, BatchId after);
  // A whole reply.
  void reply_error(Session& session, wire::ErrorCode code, std::string_view text);

  // --- State that is counted ---------------------------------------------------------------------
  // A blocked session is served no further command.
  void block(Session& session);
  void unblock(Session& session);
  // It has authenticated, and is given a place, unless it has one. False: beyond all limits.
  [[nodiscard]] bool admit(Session& session);
  // It has to authenticate again, in time, like a new one. It may displace another.
  void demote(Session& session, Tick now);
  // Newcomers that are to be closed because there are too many.
  [[nodiscard]] bool has_displaced() const { return !displaced_.empty(); }
  [[nodiscard]] std::vector<Session*> take_displaced() { return std::exchange(displaced_, {}); }
  // A newcomer that is to be closed because its time is over.
  [[nodiscard]] Session* next_late(Tick now);
  // When the time of a newcomer is over; kNever if there is none.
  [[nodiscard]] Tick next_deadline() const;
  // What was received was looked at.
  void mark_served(Session& session);
  // For the error that refuses what admit() does not.
  [[nodiscard]] std::string full_text() const;
  // Whether it may only use what the reserved connections may. It stops being one of them once
  // there is room among the ordinary ones.
  [[nodiscard]] bool is_reserved(Session& session);
  // Asks the driver to read it, or not to, as its unserved input demands.
  void adjust_reading(Session& session);

  // --- Lists of the turn -------------------------------------------------------------------------
  void mark_ready(Session& session);
  void mark_dirty(Session& session);
  // Sessions with input to serve, in order of arrival. May grow while it is walked.
  [[nodiscard]] std::vector<Session*>& ready() { return ready_; }
  // Of the ready ones, those whose next share comes in the next turn.
  void postpone(Session& session);
  // After all ready ones were served: the postponed ones are ready for the next turn.
  void next_turn();
  // Sessions whose hang-up is still to be applied.
  [[nodiscard]] bool has_hangups() const { return !hangups_.empty(); }
  [[nodiscard]] std::vector<Session*> take_hangups();
  // Whether another turn has something to do at once.
  [[nodiscard]] bool has_work() const { return !ready_.empty() || !hangups_.empty(); }
  // Calls `flush` with every session that has output, and keeps those that have some left.
  template <class Flush>
  void flush_dirty(Flush flush);
  // Sends what may leave once `durable` is; the network may take less than that.
  void send(Session& session, BatchId durable);

  // The network closes it now. If it has waits, its hang-up is applied in the next turn.
  void close(Session& session);
  // Forgets the closed sessions that no list names any more.
  void erase_closed_sessions();
  // Closes and forgets everything.
  void close_all();

 private:
  Session& insert(ConnectionId connection, std::string_view peer, Tick now);
  // A place for one that may have it; false: there is none.
  bool take_place(Session& session);
  void leave_place(Session& session);
  void begin_newcomer(Session& session, Tick now);
  void set_waits_for_us(Session& session, bool waits_for_us);
  void count_output(Session& session, std::size_t now) {
    output_total_ += now - session.output_counted;
    session.output_counted = now;
  }

  Network& network_;
  const Limits limits_;
  Telemetry& telemetry_;
  std::unordered_map<ConnectionId, std::unique_ptr<Session>> sessions_;
  Newcomers newcomers_;
  std::vector<Session*> displaced_;
  std::size_t ordinary_ = 0, reserved_ = 0;
  std::size_t in_process_ = 0;
  std::size_t blocked_ = 0;
  std::size_t output_total_ = 0;
  std::vector<Session*> ready_;
  std::vector<Session*> postponed_;
  std::vector<Session*> dirty_;
  std::vector<Session*> hangups_;
  std::vector<Session*> closed_;
};

template <class Flush>
void Connections::flush_dirty(Flush flush) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    Session& session = *dirty_[i];
    if (!session.closed) flush(session);
    if (!session.closed) count_output(session, session.outbox().size());
    session.in_dirty = !session.closed && !session.outbox().empty();
    if (session.in_dirty) dirty_[kept++] = &session;
  }
  dirty_.resize(kept);
}

}  // namespace pawl::server
