#include "server/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"
#include "server/core_loader.h"

namespace pawl::server {
namespace {

// A backup ends on another thread. To look for it now and then is enough, and needs no way to wake
// the loop.
constexpr Millis kLookForBackupEvery{20};
// A turn of so many commands takes some 20 ms; each connection gets its share in it, however many
// there are.
constexpr std::size_t kCommandsPerTurn = 4096;
constexpr std::size_t kShareMin = 4, kShareMax = 64;

constexpr Millis kPauseLogged{500};  // Shorter ones are only counted; a busy machine has many.
constexpr Millis kLogEvery{1'000};   // Of what a stranger can cause.

}  // namespace

Engine::Engine(EngineSettings settings, EngineParts parts)
    : settings_(std::move(settings)),
      store_(parts.store),
      random_(parts.random),
      network_(parts.network),
      log_(parts.log),
      on_fatal_(std::move(parts.on_fatal)),
      core_(settings_.core),
      clock_(parts.clock),
      now_(clock_.now()),
      parser_({.ttl_max = settings_.ttl_max}),
      events_(settings_.events) {}

Engine::~Engine() = default;

Result<store::Loaded> Engine::load(const std::function<bool()>& go_on) {
  PAWL_ASSERT(loading_);
  CoreLoader loader(core_, go_on);
  auto loaded = store_.load(loader);
  if (!loaded) return loaded;
  clock_.expect_sleep(Nanos::max());
  now_ = clock_.now();  // TTLs start when loading ends.
  if (const auto done = core_.loaded(Token{loaded->high_water}, now_); !done) return done.error();
  loaded_ = *loaded;
  events_.start(loaded_.incarnation, loaded_.sequence);
  loading_ = false;
  return loaded;
}

// --- From the driver -----------------------------------------------------------------------------

bool Engine::connected(ConnectionId connection, std::string_view peer) {
  ++counters_.connections;
  if (sessions_.size() >= settings_.connections_max + settings_.connections_reserved) {
    ++counters_.connections_refused;
    std::string refusal;
    wire::ReplyWriter(refusal, wire::Protocol::kResp2)
        .error(wire::ErrorCode::kBusy,
               fmt::format("connections: the limit of {} and {} more for renewals is reached",
                           settings_.connections_max, settings_.connections_reserved));
    network_.send(connection, refusal);
    network_.close(connection);
    return false;
  }
  auto session = std::make_unique<Session>(connection, std::string(peer));
  session->since = session->active = clock_.last();
  become_nobody(*session);
  session->guest = peer.starts_with(kGuestPeer);
  if (session->guest) ++guests_;
  session->reserved = sessions_.size() - reserved_ >= settings_.connections_max;
  if (session->reserved) ++reserved_;
  const bool added = sessions_.emplace(connection, std::move(session)).second;
  PAWL_ASSERT(added);
  return true;
}

void Engine::received(ConnectionId connection, std::string_view bytes) {
  Session* session = find(connection);
  if (session == nullptr) return;
  session->receive(bytes);
  mark_ready(*session);
}

void Engine::hangup(ConnectionId connection) {
  Session* session = find(connection);
  if (session == nullptr || session->hangup_pending || session->hung_up) return;
  session->hangup_pending = true;
  hangups_.push_back(session);
}

void Engine::writable(ConnectionId connection) {
  Session* session = find(connection);
  if (session == nullptr) return;
  session->stalled = false;
  mark_dirty(*session);
}

Nanos Engine::patience() const {
  if (!ready_.empty() || !hangups_.empty() || more_to_tell_) return Nanos(0);
  const Nanos at_most = backing_up_ ? Nanos(kLookForBackupEvery) : Nanos::max();
  const Tick due =
      std::min(core_.next_deadline(), punished_.empty() ? kNever : punished_.begin()->first);
  if (due == kNever) return at_most;
  return std::min(at_most, std::clamp<Nanos>(due - clock_.last(), Nanos(0), kWakeEvery));
}

ServiceState Engine::state() const {
  if (loading_) return ServiceState::kLoading;
  if (!store_.has_room()) return ServiceState::kFull;  // First: it does not end by itself.
  return restoring() > Millis(0) ? ServiceState::kRestoring : ServiceState::kGranting;
}

std::optional<store::Space> Engine::space() const {
  return loading_ ? std::nullopt : store_.space();
}

void Engine::stop() {
  flush();
  for (auto& [id, session] : sessions_) {
    if (!session->gone) network_.close(id);
  }
  ready_.clear();
  dirty_.clear();
  hangups_.clear();
  gone_.clear();
  observers_.clear();
  punished_.clear();
  sessions_.clear();
}

// --- The turn ------------------------------------------------------------------------------------

void Engine::run_turn() {
  if (failed_) return;
  in_turn_ = true;
  ++counters_.turns;
  if (!PAWL_MUTANT(clock_before_sockets)) now_ = read_clock(Doing::kWaiting);
  turn_began_ = clock_.uptime();
  synced_in_turn_ = false;
  if (!PAWL_MUTANT(hangups_after_requests)) apply_hangups();
  if (backup_begun_) tell_of_backup();
  end_punishments();
  serve_ready();
  if (PAWL_MUTANT(hangups_after_requests)) apply_hangups();
  if (!loading_) {
    watch_room();
    core_.tick(now_);
    route_replies();
    if (PAWL_MUTANT(answer_before_sync)) flush();
    commit();
    if (backing_up_ && !backup_begun_) begin_backup();
  }
  if (PAWL_MUTANT(clock_before_sockets)) now_ = read_clock(Doing::kWaiting);
  in_turn_ = false;
  flush();
  bury();
  end_of_turn();
}

Now Engine::read_clock(Doing doing) {
  if (loading_)
    clock_.expect_sleep(Nanos::max());  // Reading the store is no pause: no lease runs yet.
  const Now now = clock_.now();
  if (const Nanos pause = clock_.last_pause(); pause >= kPauseLogged) {
    const double seconds = std::chrono::duration<double>(pause).count();
    constexpr std::string_view kEffect = "Every lease runs longer by all but 250 ms of it";
    pause_log_.warning(
        clock_.uptime(),
        doing == Doing::kCommitting
            ? fmt::format("a commit took {:.1f} s: the disk is too slow, or shared. {}", seconds,
                          kEffect)
            : fmt::format("pawld stood still for {:.1f} s: the process or the machine was stopped, "
                          "or had no CPU. {}",
                          seconds, kEffect));
  }
  return now;
}

void Engine::watch_room() {
  const bool room = store_.has_room();
  if (room == std::exchange(had_room_, room)) return;
  const store::Space space = store_.space().value_or(store::Space{});
  if (room) {
    log_.info(fmt::format(
        "locks are granted again: {} bytes are free on the volume of the data directory",
        space.free));
  } else {
    room_log_.warning(clock_.uptime(),
                      fmt::format("the disk is full: no new lock is granted, renewals and releases "
                                  "go on. {} bytes are free on the "
                                  "volume of the data directory, {} are needed "
                                  "(space_reserve_bytes, and a segment where none "
                                  "could "
                                  "be made). Free some space; grants resume within a second or two",
                                  space.free, space.needed));
  }
}

// What was read in this turn has its answer now, unless it waits: all of it took as long as the
// turn. A commit has read the clock at its end. By uptime, pauses included: a sync that hung for
// ten seconds is to be seen as that.
void Engine::end_of_turn() {
  if (served_verbs_.empty() && granted_waits_.empty()) return;
  if (!synced_in_turn_) (void)read_clock(Doing::kWaiting);
  const Nanos took = clock_.uptime() - turn_began_;
  telemetry_.turn.observe(took);
  for (const std::uint8_t place : served_verbs_) {
    telemetry_.commands[place].duration.observe(took, std::exchange(served_[place], 0));
  }
  for (const Millis waited : granted_waits_) {
    telemetry_.acquire.observe(waited + took);
    if (waited > Millis(0)) telemetry_.wait.observe(waited);
  }
  served_verbs_.clear();
  granted_waits_.clear();
}

void Engine::apply_hangups() {
  if (hangups_.empty()) return;
  for (Session* session : hangups_) {
    session->hung_up = true;
    session->hangup_pending = false;
    if (PAWL_MUTANT(blocked_wait_outlives_hangup) && session->blocked) continue;
    // Keeps the order of replies; there may be nobody to read it. A backup goes on, and is
    // answered.
    if (session->blocked && !session->backing_up && !session->closing) {
      session->reply().not_obtained();
      seal(*session, BatchId{});
    }
    drop_waits(*session);
    stop_observing(*session);
    mark_ready(*session);
  }
  hangups_.clear();
  cancel_dropped();
}

// Takes the session's waits out of the table; cancel_dropped() then takes them out of the core.
void Engine::drop_waits(Session& session) {
  while (session.waits != 0) {
    Wait& wait = waits_.at(session.waits);
    dropped_.push_back({wait.arrival, wait.id});
    forget(wait);
  }
}

// Latest arrivals first. A wait that ends can only let through someone behind it; this way all who
// go in the same turn are gone by then, and no grant goes to a connection that is known to be dead
// (hard case 19).
void Engine::cancel_dropped() {
  std::sort(dropped_.begin(), dropped_.end(),
            [](const Place& a, const Place& b) { return a.arrival > b.arrival; });
  for (const Place& place : dropped_) core_.apply(core::Cancel{place.waiter}, now_);
  dropped_.clear();
  route_replies();
}

// Grows while it runs: who is unblocked by someone else's release is served in the same turn. So is
// who has sent more than a share, as long as the turn is short; the rest of that waits for the next
// one. Otherwise a flood would make a turn of seconds, and a renewal that waits so long comes too
// late (G10).
void Engine::serve_ready() {
  const std::uint64_t enough = counters_.commands + kCommandsPerTurn;
  const std::size_t share =
      std::clamp(kCommandsPerTurn / std::max<std::size_t>(ready_.size(), 1), kShareMin, kShareMax);
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    Session& session = *ready_[i];
    session.in_ready = false;
    if (!serve(session, share)) continue;
    if (counters_.commands < enough) {
      mark_ready(session);
    } else {
      session.in_ready = true;
      postponed_.push_back(&session);
    }
  }
  ready_.clear();
  ready_.swap(postponed_);
}

// True when it has input left that a greater share would have served.
bool Engine::serve(Session& session, std::size_t share) {
  if (session.gone) return false;
  std::size_t served = 0;
  for (; served < share; ++served) {
    const auto args = session.next_command();
    if (!args) break;
    ++session.commands;
    session.active = now_.tick;
    ++counters_.commands;
    serve_command(session, *args);
  }
  const bool more = served == share && session.has_input() && !session.blocked &&
                    !session.punished && !session.closing;
  if (!session.protocol_error.empty()) log_protocol_error(session);
  if (session.blocked && !session.wants_input()) refuse_more(session);
  const bool drained = !more && !session.blocked && !session.punished &&
                       session.outbox().size() < Session::kOutputPause;
  if (session.hung_up && drained)
    session.closing = true;                     // What is left, if anything, is half a command.
  if (session.closing && session.waits != 0) {  // QUIT, or nonsense, while ASYNC waits are pending.
    drop_waits(session);
    cancel_dropped();
  }
  if (session.wants_input() == session.input_paused && !session.closing && !session.hung_up) {
    session.input_paused = !session.input_paused;
    network_.want_input(session.id(), !session.input_paused);
  }
  if (session.closing) {
    stop_observing(session);
    mark_dirty(session);
  }
  return more;
}

// Someone has come to the wrong door: an operator should hear of it, but not as often as strangers
// like.
void Engine::log_protocol_error(Session& session) {
  const std::string_view why = std::exchange(session.protocol_error, {});
  if (now_.tick < protocol_errors_log_at_) {
    ++protocol_errors_unsaid_;
    return;
  }
  const std::uint64_t unsaid = std::exchange(protocol_errors_unsaid_, 0);
  const std::string more = unsaid == 0 ? "" : fmt::format(" ({} more since the last line)", unsaid);
  log_.warning(fmt::format("closing the connection of {}: {}{}", session.peer(), why, more),
               {{"address", session.peer()}, {"user", user_of(session)}, {"more", unsaid}});
  protocol_errors_log_at_ = now_.tick + kLogEvery;
}

// Behind a full window the end of a connection cannot be seen, so a blocked one is always read
// from, up to a bound. Leaving the rest unread would keep a waiter in line that hung up long ago
// (hard case 19).
void Engine::refuse_more(Session& session) {
  error(session, wire::ErrorCode::kBusy,
        fmt::format("input: more than {} bytes were sent behind a WAIT that blocks; use ASYNC, or "
                    "another connection",
                    limits::kBehindWaitMax));
  session.closing = true;
}

void Engine::commit() {
  const BatchId id = core_.take_batch(batch_);
  if (id.value == 0) return core_.output().clear();
  events_.append(id, core_.output());
  telemetry_.count(core_.output());
  core_.output().clear();
  ++counters_.batches;
  telemetry_.batch_size.observe(static_cast<std::int64_t>(batch_.operations()));
  store_.submit(batch_, id, *this);
}

void Engine::durable(BatchId batch) {
  if (failed_) return;
  // Read after the sync: a grant's TTL begins when it is durable, never at the turn's `now`.
  const Now synced = read_clock(Doing::kCommitting);
  core_.durable(batch, synced);
  telemetry_.commit.observe(clock_.uptime() - turn_began_);
  synced_in_turn_ = true;
  durable_ = batch;
  events_.publish(batch);
  if (!observers_.empty()) tell_observers();
  if (!in_turn_) {
    flush();
    bury();
  }
}

void Engine::failed(BatchId batch, const Error& failure) {
  if (failed_) return;
  if (PAWL_MUTANT(failed_commit_goes_on)) return durable(batch);
  failed_ = true;
  log_.error(fmt::format("the store failed at batch {}: {}", batch.value, failure.detail),
             {{"event", "store_failed"}});
  on_fatal_(failure);
}

void Engine::flush() {
  if (failed_) return;
  more_to_tell_ = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    Session& session = *dirty_[i];
    if (!session.gone) flush(session);
    session.in_dirty = !session.gone && !session.outbox().empty();
    if (session.in_dirty) dirty_[kept++] = &session;
  }
  dirty_.resize(kept);
}

void Engine::flush(Session& session) {
  const bool was_paused = session.outbox().size() >= Session::kOutputPause;
  if (!session.stalled) {
    const std::string_view bytes = session.outbox().ready(durable_);
    if (!bytes.empty()) {
      const std::size_t taken = network_.send(session.id(), bytes);
      session.stalled = taken < bytes.size();
      session.outbox().sent(taken);
    }
  }
  if (session.observation != nullptr && !session.stalled && is_behind(session)) {
    const std::size_t before = session.outbox().size();
    tell(session);
    more_to_tell_ = more_to_tell_ || session.outbox().size() > before;
  }
  if (session.outbox().size() > settings_.output_max) {
    ++counters_.connections_cut;
    log_.warning(
        fmt::format(
            "connection {} ({}) reads too slowly: {} bytes of output wait, the limit is {}; closed",
            session.id().value, session.peer(), session.outbox().size(), settings_.output_max),
        {{"address", session.peer()}, {"user", user_of(session)}});
    return end(session);
  }
  if (session.closing && session.outbox().empty()) return end(session);
  if (was_paused && session.outbox().size() < Session::kOutputPause) mark_ready(session);
}

// The network is done with it at once; the core hears of it first thing in the next turn.
void Engine::end(Session& session) {
  network_.close(session.id());
  pardon(session);
  stop_observing(session);
  session.gone = true;
  if (session.backing_up) --blocked_;
  gone_.push_back(&session);
  if (session.guest) --guests_;
  if (session.reserved) --reserved_;
  if (session.waits == 0 || session.hangup_pending) return;
  session.hangup_pending = true;
  hangups_.push_back(&session);
}

// Forgets the sessions that are gone and that no list names any more.
void Engine::bury() {
  const auto buried = [this](const Session* session) {
    if (session->waits != 0 || session->in_ready || session->hangup_pending) return false;
    sessions_.erase(session->id());
    return true;
  };
  gone_.erase(std::remove_if(gone_.begin(), gone_.end(), buried), gone_.end());
}

// --- Small things --------------------------------------------------------------------------------

Session* Engine::find(ConnectionId connection) {
  const auto found = sessions_.find(connection);
  return found == sessions_.end() || found->second->gone ? nullptr : found->second.get();
}

Session& Engine::owner(const Wait& wait) {
  const auto found = sessions_.find(wait.connection);
  PAWL_ASSERT(found != sessions_.end());
  return *found->second;
}

void Engine::mark_ready(Session& session) {
  if (session.in_ready || session.gone) return;
  session.in_ready = true;
  ready_.push_back(&session);
}

void Engine::mark_dirty(Session& session) {
  if (session.in_dirty || session.gone) return;
  session.in_dirty = true;
  dirty_.push_back(&session);
}

void Engine::forget(Wait& wait) {
  Session& session = owner(wait);
  if (wait.async) {
    --session.async_waits;
  } else {
    session.blocked = false;
    --blocked_;
  }
  waits_.remove(wait, session.waits);
}

}  // namespace pawl::server
