#include "server/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"
#include "server/core_loader.h"

namespace pawl::server {
namespace {

// Of a turn's budget each connection gets its share, however many there are.
constexpr std::size_t kShareMin = 4, kShareMax = 64;

constexpr RateLimitedLog::Limit kProtocolErrorLines{.lines = 1, .period = std::chrono::seconds(1)};

}  // namespace

Engine::Engine(EngineSettings settings, EngineParts parts)
    : settings_(std::move(settings)),
      store_(parts.store),
      shared_(store_.is_shared()),
      log_(parts.log),
      core_(settings_.core),
      clock_(parts.clock),
      now_(clock_.now()),
      stats_(telemetry_),
      service_log_(log_),
      protocol_error_log_(log_, kProtocolErrorLines),
      newcomer_log_(log_),
      connections_(parts.network,
                   {settings_.connections_max, settings_.connections_reserved,
                    settings_.newcomers_max, settings_.authenticate_within},
                   telemetry_, &parts.random),
      budget_(settings_.work_per_turn),
      access_(log_, telemetry_),
      replies_(core_, connections_, stats_),
      observers_(settings_.events, {settings_.observers_max, settings_.observers_per_user},
                 connections_, log_, telemetry_),
      backups_(store_, connections_, log_, telemetry_),
      commits_(store_, core_, clock_, observers_, service_log_, telemetry_, log_,
               std::move(parts.on_fatal)),
      services_{settings_, load_,   clock_,     store_,   parts.random,
                log_,      core_,   telemetry_, stats_,   connections_,
                replies_,  access_, observers_, backups_, handover_},
      commands_(services_) {}

Engine::~Engine() = default;

Result<store::Loaded> Engine::load(const std::function<bool()>& go_on) {
  PAWL_ASSERT(load_.loading);
  core_.limit_batches(store_.batch_limits());
  CoreLoader loader(core_, go_on);
  auto loaded = store_.load(loader);
  if (!loaded) return loaded;
  clock_.expect_sleep(Nanos::max());
  now_ = clock_.now();  // TTLs start when loading ends.
  if (const auto done = core_.loaded(Token{loaded->high_water}, now_); !done) return done.error();
  load_ = {.loading = false, .loaded = *loaded, .standby = false, .active = {}};
  observers_.events().start(loaded->incarnation, loaded->sequence);
  return loaded;
}

// --- The role, where several pawld share the store -----------------------------------------------

void Engine::stand_by(store::Active active) {
  for (Session* session : connections_.all()) {
    const bool concerned = session->waits != 0 || session->observation != nullptr ||
                           session->blocked || !session->outbox().empty();
    replies_.forget_waits(*session);
    if (concerned && !session->closed) close(*session);
  }
  commits_.forget_batches();
  // One that stood by already goes on with what it has followed.
  if (!load_.standby) core_.unload_all();
  load_ = {.loading = true, .loaded = {}, .standby = true, .active = std::move(active)};
  events_pending_ = false;
  handover_.done();
}

void Engine::hand_over() {
  if (load_.loading) return store_.hand_over();  // It may be about to become active.
  handover_.order();
}

void Engine::continue_handover() {
  if (!handover_.draining() || commits_.any_in_flight() || !core_.batch_empty()) return;
  handover_.told_store();
  store_.hand_over();
}

void Engine::follow_role() {
  if (load_.loading && !load_.standby) return;
  commits_.ask_store();
  if (auto active = commits_.take_deposed()) {
    if (!load_.standby) {
      ++telemetry_.role_changes;
      const bool given = handover_.under_way() && active->address.empty();
      log_.write_with(given ? LogLevel::kInfo : LogLevel::kWarning,
                      given ? std::string("the role is given away: this pawld stands by")
                            : fmt::format("another pawld is active{}{}: this one stands by",
                                          active->address.empty() ? "" : ": ", active->resp()),
                      {{"event", given ? "handed_over" : "deposed"},
                       {"active", active->resp()},
                       {"epoch", active->epoch}});
    }
    stand_by(std::move(*active));
  }
  if (load_.standby && store_.is_active()) take_over();
}

void Engine::take_over() {
  load_.standby = false;
  if (const auto loaded = load(); !loaded) {
    return commits_.fail(fmt::format("cannot take over: {}", loaded.error().detail),
                         loaded.error());
  }
  ++telemetry_.role_changes;
  log_.info(fmt::format("this pawld is the active one now: epoch {}, {} leases, last token {}",
                        load_.loaded.epoch, totals().leases, totals().last_token.value),
            {{"event", "elected"},
             {"epoch", load_.loaded.epoch},
             {"leases", totals().leases},
             {"last_token", totals().last_token.value}});
}

// --- From the driver -----------------------------------------------------------------------------

bool Engine::connected(ConnectionId connection, std::string_view peer, std::string_view user) {
  const bool may_begin = !access_.has_users() || access_.knows(user);
  Session* session = may_begin ? connections_.add(connection, peer, clock_.last())
                               : &connections_.add_newcomer(connection, peer, clock_.last());
  if (session == nullptr) return false;
  access_.reset(*session);
  if (may_begin) access_.identify(*session, user);
  close_displaced();
  return true;
}

void Engine::received(ConnectionId connection, std::string_view bytes) {
  connections_.receive(connection, bytes);
}

void Engine::hangup(ConnectionId connection) {
  connections_.hang_up(connection);
}

void Engine::writable(ConnectionId connection) {
  connections_.writable(connection);
}

void Engine::set_users(Users users) {
  access_.set_users(std::move(users));
  for (Session* session : connections_.all()) {
    if (session->closed) continue;
    if (!access_.refresh(*session)) dismiss(*session);
    if (session->user == nullptr) connections_.demote(*session, clock_.last());
  }
  close_displaced();
}

// Removed, another secret, other rights: in each case the connection ends, and its client may
// authenticate anew. Leases stay: they belong to no connection, and end by themselves when nobody
// may renew them. Waits end, for nothing more is to be granted under the old rights.
void Engine::dismiss(Session& session) {
  log_.info(
      fmt::format("connection {} ({}) is closed: the auth_file has changed for its user",
                  session.id().value, session.description()),
      {{"event", "user_changed"}, {"user", session.user_name()}, {"address", session.address()}});
  access_.clear_auth_delay(session);
  access_.reset(session);
  connections_.reply_error(session, wire::ErrorCode::kNoAuth, wire::kClosedUserChanged);
  session.closing = true;
  // Like a hang-up, before any request of the next turn is served: a release there must not be
  // handed to it.
  connections_.hang_up(session.id());
}

Nanos Engine::patience() const {
  if (handover_.under_way()) return kWakeEvery;  // The store wakes the driver.
  if (events_pending_) return Nanos(0);
  // Nothing more fits until the store, which wakes the driver, has taken the batch.
  if (core_.batch_full() && !store_.ready()) return kWakeEvery;
  if (connections_.has_work()) return Nanos(0);
  const Tick due = std::min({core_.next_deadline(), access_.next_deadline(),
                             connections_.next_deadline(), backups_.next_deadline()});
  if (due == kNever) return Nanos::max();
  return std::clamp<Nanos>(due - clock_.last(), Nanos(0), kWakeEvery);
}

std::optional<store::Space> Engine::space() const {
  return load_.loading ? std::nullopt : store_.space();
}

void Engine::stop() {
  flush();
  observers_.stop_all();
  access_.forget_delays();
  connections_.close_all();
}

// --- The turn ------------------------------------------------------------------------------------

void Engine::run_turn() {
  if (commits_.failed()) return;
  ++telemetry_.turns;
  shared_ ? follow_role() : commits_.collect();
  if (commits_.failed()) return;
  if (!PAWL_MUTANT(clock_before_sockets)) now_ = read_clock();
  stats_.begin_turn(clock_.uptime());
  if (!PAWL_MUTANT(hangups_after_requests)) apply_hangups();
  backups_.collect_finished(now_.tick);
  end_auth_delays();
  if (!handover_.under_way()) serve_ready();
  close_displaced();
  close_late();
  if (PAWL_MUTANT(hangups_after_requests)) apply_hangups();
  bool clock_is_fresh = false;
  if (!load_.loading) {
    service_log_.check_room(store_, clock_.uptime());
    check_damage();
    if (!handover_.under_way()) core_.tick(now_);
    replies_.route();
    if (PAWL_MUTANT(answer_before_sync)) flush();
    clock_is_fresh = commits_.submit();
    commits_.provide_state();
    backups_.begin_ordered();
  }
  if (PAWL_MUTANT(clock_before_sockets)) now_ = read_clock();
  flush();
  continue_handover();
  connections_.erase_closed_sessions();
  if (!stats_.any()) return;
  if (!clock_is_fresh) (void)read_clock();
  stats_.end_turn(clock_.uptime());
}

void Engine::check_damage() {
  const store::Damage damage = store_.damage();
  if (damage.found == 0) return;
  service_log_.report_damage(damage);
  telemetry_.store_damage_found = damage.found;
  telemetry_.store_damage_repaired = damage.repaired;
}

Now Engine::read_clock() {
  // Reading the store is not a pause: no lease runs yet.
  if (load_.loading) clock_.expect_sleep(Nanos::max());
  const Now now = clock_.now();
  service_log_.check_pause(clock_, ServiceLog::Doing::kWaiting);
  return now;
}

void Engine::apply_hangups() {
  if (!connections_.has_hangups()) return;
  std::vector<Session*> sessions = connections_.take_hangups();
  for (Session* session : sessions) {
    session->hung_up = true;
    session->hangup_pending = false;
  }
  if (PAWL_MUTANT(blocked_wait_outlives_hangup))
    std::erase_if(sessions, [](const Session* session) { return session->blocked; });
  for (Session* session : sessions) {
    // The reply keeps the order, even if it is never read. A backup continues and is answered.
    if (session->blocked && !session->backing_up && !session->closing) {
      session->reply().not_obtained();
      connections_.seal(*session, BatchId{});
    }
    observers_.stop(*session);
    connections_.mark_ready(*session);
  }
  replies_.cancel_waits(sessions, now_);
}

void Engine::end_auth_delays() {
  while (const auto connection = access_.next_delay_over(now_.tick)) {
    Session* session = connections_.find(*connection);
    PAWL_ASSERT(session != nullptr && session->auth_delayed);
    access_.clear_auth_delay(*session);
    connections_.reply_error(*session, wire::ErrorCode::kWrongPass, "wrong user or secret");
    // Otherwise a peer that sends a thousand guesses and leaves would keep a connection for a
    // thousand delays.
    if (session->hung_up) session->closing = true;
    connections_.mark_ready(*session);
  }
}

// --- Newcomers -----------------------------------------------------------------------------------

void Engine::close_displaced() {
  if (!connections_.has_displaced()) return;
  for (Session* session : connections_.take_displaced()) {
    if (!session->closed && session->place == Place::kNewcomer)
      close_newcomer(*session, Unwanted::kDisplaced);
  }
}

// After the commands of this turn: an AUTH that has arrived is in time. What else it has sent, or
// not read, does not prolong its time.
void Engine::close_late() {
  if (connections_.newcomers() == 0) return;
  while (Session* session = connections_.next_late(now_.tick))
    close_newcomer(*session, Unwanted::kLate);
}

// At once, also if its peer reads nothing. The error leaves if the network takes it now.
void Engine::close_newcomer(Session& session, Unwanted why) {
  telemetry_.count_unwanted(why);
  const bool late = why == Unwanted::kLate;
  newcomer_log_.warning(
      now_.tick.time_since_epoch(),
      fmt::format("closing the connection of {}: {}", session.peer(),
                  late ? "it has not authenticated in time"
                       : "too many have not authenticated, and it is one of them"),
      {{"event", late ? "unauthenticated_late" : "unauthenticated_displaced"},
       {"address", session.address()}});
  connections_.reply_error(session, wire::ErrorCode::kBusy,
                           late ? wire::kClosedNotInTime : wire::kClosedDisplaced);
  if (!commits_.failed()) connections_.send(session, commits_.durable());
  close(session);
}

// --- Serving -------------------------------------------------------------------------------------

// The list grows while it is walked: a session that is unblocked by another one's release is served
// in the same turn. So is one that has sent more than its share, as long as the turn is short; the
// rest of that waits for the next one. Otherwise a flood, or a few dear questions of each of many
// connections, would make a turn of seconds, and a renewal that waits that long comes too late
// (G10). Once the budget is spent only renewals and their like are served.
void Engine::serve_ready() {
  std::vector<Session*>& ready = connections_.ready();
  budget_.begin_turn(ready);
  // Dear commands use up a share of the work sooner than a share of the commands.
  const std::size_t sessions = std::max<std::size_t>(ready.size(), 1);
  const std::size_t commands = settings_.work_per_turn / limits::kWorkPerCommand;
  const Share share{std::clamp(commands / sessions, kShareMin, kShareMax),
                    settings_.work_per_turn / sessions};
  for (std::size_t i = 0; i < ready.size(); ++i) {
    Session& session = *ready[i];
    session.in_ready = false;
    connections_.mark_served(session);
    if (!serve(session, share)) continue;
    if (has_budget(session)) {
      connections_.mark_ready(session);
    } else {
      ++telemetry_.postponed;
      connections_.postpone(session);
    }
  }
  connections_.next_turn();
  budget_.end_turn(ready.empty());
}

bool Engine::has_budget(const Session& session) const {
  if (core_.batch_full() && Commands::is_stored(session.next_name())) [[unlikely]]
    return false;
  return budget_.left() ||
         (budget_.reserve_left() && Commands::is_served_first(session.next_name()));
}

bool Engine::serve(Session& session, const Share& share) {
  if (session.closed) return false;
  bool stopped = false;
  const std::uint64_t enough = budget_.spent() + share.work;
  for (std::size_t served = 0;; ++served) {
    stopped = served == share.commands || (served != 0 && budget_.spent() >= enough) ||
              !has_budget(session);
    if (stopped) break;
    const auto args = session.next_command();
    if (!args) break;
    const std::uint64_t nodes = core_.work();
    const std::size_t bytes = session.outbox().size();
    commands_.serve(session, *args, now_);
    const std::size_t bytes_after = session.outbox().size();
    budget_.charge(session, core_.work() - nodes, bytes_after > bytes ? bytes_after - bytes : 0);
  }
  const bool more = stopped && session.has_input() && !session.blocked && !session.auth_delayed &&
                    !session.closing;
  if (!session.protocol_error.empty()) log_protocol_error(session);
  if (session.blocked && !session.wants_input()) refuse_more_input(session);
  const bool drained =
      !more && !session.blocked && !session.auth_delayed && !session.output_paused();
  // What is left of a hung-up peer's input, if anything, is half a command.
  if (session.hung_up && drained) session.closing = true;
  // QUIT, or a protocol error, while ASYNC waits are pending.
  if (session.closing && session.waits != 0) replies_.cancel_waits(session, now_);
  connections_.adjust_reading(session);
  if (session.closing) {
    observers_.stop(session);
    connections_.mark_dirty(session);
  }
  return more;
}

void Engine::log_protocol_error(Session& session) {
  const std::string_view why = std::exchange(session.protocol_error, {});
  const auto left_out = protocol_error_log_.admit(now_.tick.time_since_epoch());
  if (!left_out) return;
  log_.warning(fmt::format("closing the connection of {}: {}{}", session.peer(), why,
                           RateLimitedLog::suffix(*left_out)),
               {{"event", "protocol_error"},
                {"user", session.user_name()},
                {"address", session.address()},
                {"more", *left_out}});
}

// Behind a full window the end of a connection cannot be seen, so a blocked one is always read
// from, up to a bound. Leaving the rest unread would keep a waiter in line that hung up long ago
// (hard case 19).
void Engine::refuse_more_input(Session& session) {
  connections_.reply_error(
      session, wire::ErrorCode::kBusy,
      fmt::format("input: more than {} bytes were sent behind a WAIT that blocks; use ASYNC, or "
                  "another connection",
                  limits::kBehindWaitMax));
  session.closing = true;
}

// --- Output --------------------------------------------------------------------------------------

void Engine::flush() {
  if (commits_.failed()) return;
  const bool may = may_answer();
  bool more_events = false;
  connections_.flush_dirty([&](Session& session) {
    if (may) more_events |= flush(session);
  });
  events_pending_ = more_events;
  if (connections_.output_total() > settings_.output_total_max) cut_slowest_readers();
}

// Everything is held, not only what rests on nothing new: behind a reply that waits for a batch
// stand others, and when that batch was sent, their requests may not have arrived yet. What is held
// leaves when the window is moved on, or is never said. The clock is read after all requests were
// (hard case 46).
bool Engine::role_window_is_open() {
  if (load_.loading) return true;  // Nothing is in memory.
  const Nanos until = store_.may_answer_until();
  if (until == Nanos::max() || PAWL_MUTANT(role_window_ignored)) return true;
  const bool may = clock_.boot_time_now() < until;
  service_log_.check_role_window(may, clock_.uptime());
  return may;
}

// Of the user whose connections have read least, so that nobody else is touched.
void Engine::cut_slowest_readers() {
  while (connections_.output_total() > settings_.output_total_max) {
    Session* slowest = connections_.slowest_reader();
    if (slowest == nullptr) return;
    cut(*slowest, fmt::format("all connections together may have {}", settings_.output_total_max));
  }
}

void Engine::cut(Session& session, std::string_view limit) {
  ++telemetry_.connections_cut;
  log_.warning(
      fmt::format("connection {} ({}) reads too slowly: {} bytes of output wait, {}; closing it",
                  session.id().value, session.peer(), session.outbox().size(), limit),
      {{"event", "slow_reader_cut"},
       {"user", session.user_name()},
       {"address", session.address()}});
  close(session);
}

bool Engine::flush(Session& session) {
  const bool was_paused = session.output_paused();
  connections_.send(session, commits_.durable());
  const bool more_events =
      session.observation != nullptr && !session.stalled && observers_.catch_up(session);
  if (session.outbox().size() > settings_.output_max) {
    cut(session, fmt::format("the limit is {}", settings_.output_max));
  } else if (session.closing && session.outbox().empty()) {
    close(session);
  } else if (was_paused && !session.output_paused()) {
    connections_.mark_ready(session);
  }
  return more_events;
}

// The network closes it at once; its waits are cancelled first thing in the next turn.
void Engine::close(Session& session) {
  access_.clear_auth_delay(session);
  observers_.stop(session);
  connections_.close(session);
}

}  // namespace pawl::server
