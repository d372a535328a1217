// The engine: sessions, core and store, and the turn that drives them. No socket, no thread, no
// clock of its own, so the simulator runs this very code.
//
//   Engine engine(settings, {store, clock, random, network, log, on_fatal});
//   engine.load();
//   In each turn:
//     engine.received(connection, bytes)…;  engine.hangup(connection)…;  // every ready socket
//     engine.run_turn();                                // only now the clock is read
//     Sleep at most engine.patience(), or until the store wakes the driver.
//
// The engine itself only orders the steps of a turn: the clock after the sockets (a request must
// never be dated before it was sent); hang-ups before anything else (a waiter that is gone is never
// granted); requests in order of arrival; what is due; one batch to the store; and then the answers
// whose batch is durable. With a store that completes later the answers leave in the turn after it
// did; what depends on nothing new (an OK renewal) does not wait for it. Where several pawld share
// the store nothing leaves at all while another one could be active. Each step is the work of a class of
// its own: Connections, AccessControl, Commands (and the verbs), ReplyRouter, Observers, Backups,
// Commits.
//
// One thread owns it. A store that fails ends it: `on_fatal` is called once, and not another byte
// leaves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/random.h"
#include "base/rate_limited_log.h"
#include "core/core.h"
#include "server/access_control.h"
#include "server/backups.h"
#include "server/commands.h"
#include "server/commits.h"
#include "server/connections.h"
#include "server/engine_settings.h"
#include "server/handover.h"
#include "server/network.h"
#include "server/observers.h"
#include "server/reply_router.h"
#include "server/reports.h"
#include "server/service_clock.h"
#include "server/service_log.h"
#include "server/services.h"
#include "server/telemetry.h"
#include "server/turn_budget.h"
#include "server/turn_stats.h"
#include "server/users.h"
#include "store/store.h"

namespace pawl::server {

// What the engine is given. All of it outlives the engine.
struct EngineParts {
  store::Store& store;
  ClockSource& clock;
  Random& random;
  Network& network;
  Log& log;
  // The store failed, or cannot be read by one that has become active.
  std::function<void(const Error&)> on_fatal;
};

class Engine final {
 public:
  Engine(EngineSettings settings, EngineParts parts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Loads the store into the core. Until then only the handshake, PING and STATUS are served; the
  // rest is -LOADING. `go_on` is called each time some records were read: there the driver may let
  // connections take a turn, and by false it ends the load with kUnavailable. Nothing was changed
  // then.
  Result<store::Loaded> load(const std::function<bool()>& go_on = [] { return true; });

  // Instead of load(), where several pawld share the store and another one is active: commands that
  // need the state are answered -READONLY with its address. Later turns load the store when it
  // says that this pawld is the active one, and stand by again when it no longer is: then the state
  // is forgotten, and every connection that waits, observes or has unsent replies is closed, because
  // what it was to be told may no longer be true.
  void stand_by(store::Active active = {});

  // Where several pawld share the store: finishes what was served, gives the role to another one,
  // and stands by (handover.h). Nothing while it stands by already.
  void hand_over();

  // --- From the driver, between turns ------------------------------------------------------------
  // A new connection. `user`: the driver knows by other means (a client certificate) which user
  // this is; without one, or if there is no such user, it has to authenticate in time. False:
  // beyond all limits; it was sent an error and closed.
  bool connected(ConnectionId connection, std::string_view peer, std::string_view user = {});
  void received(ConnectionId connection, std::string_view bytes);
  // The peer will send nothing more (it closed, or half-closed). What was received before is still
  // served and answered, but its waits end now and nothing is queued for it; then the engine closes
  // it.
  void hangup(ConnectionId connection);
  // The network takes bytes of this connection again.
  void writable(ConnectionId connection);

  // From now on only these users are served, each within its role and prefixes. Before the first
  // call everyone is admin. Called again (a reload), it closes the connections of users that are
  // gone or whose entry has changed; leases stay.
  void set_users(Users users);

  void run_turn();

  // The driver is about to wait for input, at most this long. That part of the time until the next
  // turn is not a pause.
  void expect_sleep(Nanos at_most) { clock_.expect_sleep(at_most); }

  // How long the driver may sleep if nothing arrives and the store does not wake it. Zero: another
  // turn is due at once.
  [[nodiscard]] Nanos patience() const;

  // The end of service: what is durable is sent, every connection is closed, waiters without a
  // reply.
  void stop();

  void set_address(std::string address) { settings_.address = std::move(address); }
  [[nodiscard]] const Telemetry& telemetry() const { return telemetry_; }
  [[nodiscard]] Nanos paused() const { return clock_.paused(); }
  // Nothing while it loads or stands by.
  [[nodiscard]] core::Totals totals() const { return services_.totals(); }
  [[nodiscard]] std::vector<LimitUse> limit_uses() const { return services_.limit_uses(); }
  // For checkers that look at the whole state (core/testlib/invariants.h), and the turn's reading
  // of the clock.
  [[nodiscard]] const core::Core& core() const { return core_; }
  [[nodiscard]] Now now() const { return now_; }
  [[nodiscard]] const Connections& connections() const { return connections_; }
  [[nodiscard]] const TurnBudget& budget() const { return budget_; }
  [[nodiscard]] bool loading() const { return load_.loading; }
  [[nodiscard]] bool standing_by() const { return load_.standby; }
  [[nodiscard]] std::uint64_t epoch() const { return load_.loaded.epoch; }
  [[nodiscard]] ServiceState state() const { return services_.state(now_); }
  // After a restore: until grants begin.
  [[nodiscard]] Millis restoring() const { return core_.restoring_for(now_); }
  // Nothing of a store that is not shared.
  [[nodiscard]] std::optional<store::ClusterView> cluster() const { return store_.cluster(); }
  // Nothing while loading, and of a store that needs no volume.
  [[nodiscard]] std::optional<store::Space> space() const;

  // The driver refused a connection before the engine saw it.
  void count_refused_connection() { ++telemetry_.connections_refused; }
  // The driver closed a connection whose handshake was late, or one of too many.
  void count_closed_handshake(Unwanted why) { telemetry_.count_unwanted(why); }
  // Of the certificate that new connections are shown, in seconds since 1970.
  void set_certificate_expiry(std::int64_t at) { telemetry_.certificate_expiry = at; }

 private:
  // --- The steps of a turn -----------------------------------------------------------------------
  Now read_clock();
  void check_damage();
  // Loads, or stands by, as a shared store says.
  void follow_role();
  void take_over();
  // Tells the store to give the role away, once nothing is under way any more.
  void continue_handover();
  void apply_hangups();
  void end_auth_delays();
  void serve_ready();
  // What one session may have before the next one has its turn.
  struct Share {
    std::size_t commands;
    std::uint64_t work;
  };
  // Serves up to `share`, but a command at least, as far as the budget of the turn goes. True when it
  // has input left that a greater share or budget would have served.
  bool serve(Session& session, const Share& share);
  // Whether the budget of the turn covers its next command.
  [[nodiscard]] bool has_budget(const Session& session) const;
  void refuse_more_input(Session& session);
  void log_protocol_error(Session& session);
  // Closes newcomers that are too many, and those that are late.
  void close_displaced();
  void close_late();
  void close_newcomer(Session& session, Unwanted why);
  // Closes a session whose user is gone or has changed.
  void dismiss(Session& session);
  void flush();
  // Whether what is in memory may be told to anyone now.
  [[nodiscard]] bool may_answer() { return !shared_ || role_window_is_open(); }
  [[nodiscard]] bool role_window_is_open();
  // Returns whether it has more events for this session that another turn should send.
  bool flush(Session& session);
  // Closes connections that do not read, until the unread output of all is within its limit.
  void cut_slowest_readers();
  // For reading too slowly.
  void cut(Session& session, std::string_view limit);
  void close(Session& session);

  // Constant after construction, but for the address.
  EngineSettings settings_;
  store::Store& store_;
  const bool shared_;  // the store, with other pawld
  Log& log_;

  // In the order in which they depend on each other.
  core::Core core_;
  ServiceClock clock_;
  Now now_;  // the turn's one reading
  LoadState load_;
  Telemetry telemetry_;
  TurnStats stats_;
  ServiceLog service_log_;
  RateLimitedLog protocol_error_log_;
  RateLimitedLog newcomer_log_;
  Connections connections_;
  TurnBudget budget_;
  AccessControl access_;
  ReplyRouter replies_;
  Observers observers_;
  Backups backups_;
  Handover handover_;
  Commits commits_;
  Services services_;
  Commands commands_;
  bool events_pending_ = false;  // an observer that keeps up is to be sent more in another turn
};

}  // namespace pawl::server
