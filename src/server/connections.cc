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
  ++telemetry_.connections;
  if (sessions_.size() >= limits_.ordinary + limits_.reserved) {
    ++telemetry_.connections_refused;
    std::string refusal;
    wire::ReplyWriter(refusal, wire::Protocol::kResp2)
        .error(wire::ErrorCode::kBusy,
               fmt::format("connections: the limit of {} and {} more for renewals is reached",
                           limits_.ordinary, limits_.reserved));
    network_.send(connection, refusal);
    network_.close(connection);
    return nullptr;
  }
  auto session = std::make_unique<Session>(connection, std::string(peer));
  session->since = session->active = now;
  session->in_process = peer.starts_with(kHttpPeer);
  if (session->in_process) ++in_process_;
  session->reserved = sessions_.size() - reserved_ >= limits_.ordinary;
  if (session->reserved) ++reserved_;
  const auto [added, is_new] = sessions_.emplace(connection, std::move(session));
  PAWL_ASSERT(is_new);
  return added->second.get();
}

void Connections::receive(ConnectionId connection, std::string_view bytes) {
  Session* session = find(connection);
  if (session == nullptr) return;
  session->receive(bytes);
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

bool Connections::is_reserved(Session& session) {
  if (!session.reserved) return false;
  if (sessions_.size() - reserved_ >= limits_.ordinary) return true;
  session.reserved = false;  // An ordinary connection has closed since.
  --reserved_;
  return false;
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
  PAWL_ASSERT(!session.in_ready);
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
  if (session.reserved) --reserved_;
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
  sessions_.clear();
  reserved_ = in_process_ = blocked_ = output_total_ = 0;
}

}  // namespace pawl::server
