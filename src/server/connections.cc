#include "server/connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::server {

// --- From the driver -----------------------------------------------------------------------------

Session* Connections::add(ConnectionId connection, std::string_view peer, Tick now) {
  Session& session = insert(connection, peer, now);
  if (take_place(session)) return &session;
  ++telemetry_.connections_refused;
  std::string refusal;
  wire::ReplyWriter(refusal, wire::Protocol::kResp2).error(wire::ErrorCode::kBusy, full_text());
  network_.send(connection, refusal);
  network_.close(connection);
  if (session.in_process) --in_process_;
  sessions_.erase(connection);
  return nullptr;
}

Session& Connections::add_newcomer(ConnectionId connection, std::string_view peer, Tick now) {
  Session& session = insert(connection, peer, now);
  begin_newcomer(session, now);
  return session;
}

Session& Connections::insert(ConnectionId connection, std::string_view peer, Tick now) {
  ++telemetry_.connections;
  auto session = std::make_unique<Session>(connection, std::string(peer));
  session->since = session->active = now;
  session->in_process = peer.starts_with(kHttpPeer);
  if (session->in_process) ++in_process_;
  const auto [added, is_new] = sessions_.emplace(connection, std::move(session));
  PAWL_ASSERT(is_new);
  return *added->second;
}

void Connections::receive(ConnectionId connection, std::string_view bytes) {
  Session* session = find(connection);
  if (session == nullptr) return;
  session->receive(bytes);
  if (session->place == Place::kNewcomer) set_waits_for_us(*session, true);
  mark_ready(*session);
}

void Connections::hang_up(ConnectionId connection) {
  Session* session = find(connection);
  if (session == nullptr || session->hangup_pending || session->hung_up) return;
  session->hangup_pending = true;
  hangups_.push_back(session);
}

void Connections::writable(ConnectionId connection) {
  Session* session = find(connection);
  if (session == nullptr) return;
  session->stalled = false;
  mark_dirty(*session);
}

// --- Finding -------------------------------------------------------------------------------------

Session* Connections::find(ConnectionId connection) {
  const auto found = sessions_.find(connection);
  return found == sessions_.end() || found->second->closed ? nullptr : found->second.get();
}

Session& Connections::at(ConnectionId connection) {
  const auto found = sessions_.find(connection);
  PAWL_ASSERT(found != sessions_.end());
  return *found->second;
}

std::vector<Session*> Connections::all() {
  std::vector<Session*> sessions;
  sessions.reserve(sessions_.size());
  for (const auto& [id, session] : sessions_) sessions.push_back(session.get());
  std::sort(sessions.begin(), sessions.end(),
            [](const Session* a, const Session* b) { return a->id() < b->id(); });
  return sessions;
}

// --- Replies -------------------------------------------------------------------------------------

void Connections::seal(Session& session, BatchId after) {
  session.seal(PAWL_MUTANT(answer_before_sync) ? BatchId{} : after);
  mark_dirty(session);
}

void Connections::reply_error(Session& session, wire::ErrorCode code, std::string_view text) {
  session.reply().error(code, text);
  seal(session, BatchId{});
}

// --- State that is counted -----------------------------------------------------------------------

void Connections::block(Session& session) {
  PAWL_ASSERT(!session.blocked);
  session.blocked = true;
  ++blocked_;
}

void Connections::unblock(Session& session) {
  PAWL_ASSERT(session.blocked && blocked_ > 0);
  session.blocked = false;
  --blocked_;
}

// --- Places --------------------------------------------------------------------------------------

bool Connections::take_place(Session& session) {
  if (ordinary_ < limits_.ordinary) {
    session.place = Place::kOrdinary;
    ++ordinary_;
  } else if (reserved_ < limits_.reserved) {
    session.place = Place::kReserved;
    ++reserved_;
  } else {
    return false;
  }
  return true;
}

void Connections::leave_place(Session& session) {
  switch (session.place) {
    case Place::kNewcomer:
      return newcomers_.remove(session.id().value);
    case Place::kOrdinary:
      --ordinary_;
      return;
    case Place::kReserved:
      --reserved_;
      return;
  }
}

// The requests of another thread are bounded there, and each of them is answered.
void Connections::begin_newcomer(Session& session, Tick now) {
  session.place = Place::kNewcomer;
  if (session.in_process) return;
  if (const auto gone = newcomers_.add(session.id().value, now.time_since_epoch()))
    displaced_.push_back(&at(ConnectionId{*gone}));
}

bool Connections::admit(Session& session) {
  if (session.place != Place::kNewcomer) return true;
  if (!take_place(session)) {
    ++telemetry_.connections_refused;
    return false;
  }
  newcomers_.remove(session.id().value);
  return true;
}

void Connections::demote(Session& session, Tick now) {
  if (session.place == Place::kNewcomer) return;
  leave_place(session);
  begin_newcomer(session, now);
}

Session* Connections::next_late(Tick now) {
  const auto late = newcomers_.next_late(now.time_since_epoch());
  return late ? &at(ConnectionId{*late}) : nullptr;
}

Tick Connections::next_deadline() const {
  const Nanos deadline = newcomers_.next_deadline();
  return deadline == Nanos::max() ? kNever : Tick(deadline);
}

void Connections::mark_served(Session& session) {
  if (session.place == Place::kNewcomer) set_waits_for_us(session, false);
}

// One that is displaced, or of another thread, is not counted any more.
void Connections::set_waits_for_us(Session& session, bool waits_for_us) {
  const std::uint64_t id = session.id().value;
  if (newcomers_.contains(id)) newcomers_.set_waits_for_us(id, waits_for_us);
}

std::string Connections::full_text() const {
  return fmt::format("connections: the limit of {} and {} more for renewals is reached",
                     limits_.ordinary, limits_.reserved);
}

bool Connections::is_reserved(Session& session) {
  if (session.place != Place::kReserved) return false;
  if (ordinary_ >= limits_.ordinary) return true;
  leave_place(session);
  return !take_place(session);  // An ordinary connection has closed since.
}

void Connections::adjust_reading(Session& session) {
  if (session.wants_input() != session.input_paused || session.closing || session.hung_up) return;
  session.input_paused = !session.input_paused;
  network_.want_input(session.id(), !session.input_paused);
}

// --- Lists of the turn ---------------------------------------------------------------------------

void Connections::mark_ready(Session& session) {
  if (session.in_ready || session.closed) return;
  session.in_ready = true;
  ready_.push_back(&session);
}

void Connections::mark_dirty(Session& session) {
  if (session.in_dirty || session.closed) return;
  session.in_dirty = true;
  dirty_.push_back(&session);
}

void Connections::postpone(Session& session) {
  if (session.in_ready) return;  // Marked while it was served: this turn comes to it once more.
  session.in_ready = true;
  postponed_.push_back(&session);
}

void Connections::next_turn() {
  ready_.clear();
  ready_.swap(postponed_);
}

std::vector<Session*> Connections::take_hangups() {
  return std::exchange(hangups_, {});
}

void Connections::send(Session& session, BatchId durable) {
  if (session.stalled) return;
  const std::string_view bytes = session.outbox().ready(durable);
  if (bytes.empty()) return;
  const std::size_t taken = network_.send(session.id(), bytes);
  session.stalled = taken < bytes.size();
  session.outbox().sent(taken);
}

Session* Connections::slowest_reader() {
  std::map<core::AccountId, std::size_t> by_user;
  for (const Session* session : dirty_) {
    if (session->stalled && !session->closed) by_user[session->account] += session->output_counted;
  }
  if (by_user.empty()) return nullptr;
  const auto greatest =
      std::max_element(by_user.begin(), by_user.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  Session* slowest = nullptr;
  for (Session* session : dirty_) {
    if (!session->stalled || session->closed || session->account != greatest->first) continue;
    if (slowest == nullptr || session->output_counted > slowest->output_counted) slowest = session;
  }
  return slowest;
}

// The waits of a closed session are cancelled first thing in the next turn.
void Connections::close(Session& session) {
  PAWL_ASSERT(!session.closed);
  network_.close(session.id());
  session.closed = true;
  count_output(session, 0);
  if (session.backing_up) --blocked_;
  closed_.push_back(&session);
  if (session.in_process) --in_process_;
  leave_place(session);
  if (session.waits == 0 || session.hangup_pending) return;
  session.hangup_pending = true;
  hangups_.push_back(&session);
}

void Connections::erase_closed_sessions() {
  std::erase_if(closed_, [this](const Session* session) {
    if (session->waits != 0 || session->in_ready || session->in_dirty || session->hangup_pending)
      return false;
    sessions_.erase(session->id());
    return true;
  });
}

void Connections::close_all() {
  for (auto& [id, session] : sessions_) {
    if (!session->closed) network_.close(id);
  }
  ready_.clear();
  postponed_.clear();
  dirty_.clear();
  hangups_.clear();
  closed_.clear();
  displaced_.clear();
  for (const auto& [id, session] : sessions_) newcomers_.remove(id.value);
  sessions_.clear();
  ordinary_ = reserved_ = in_process_ = blocked_ = output_total_ = 0;
}

}  // namespace pawl::server
