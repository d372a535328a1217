// The engine: sessions, core and store, and the turn that drives them. No socket, no thread, no
// clock of its own, so the simulator runs this very code.
//
//   Engine engine(settings, {store, clock, random, network, log, on_fatal});
//   engine.load();
//   each turn:  engine.received(connection, bytes)…;  engine.hangup(connection)…;   // every ready socket
//               engine.run_turn();                                                  // then, and only then, the clock
//               sleep at most engine.patience()
//
// The order inside a turn is design.md's: the clock after the sockets (a request must never be
// dated before it was sent); hang-ups before anything else (a waiter that is gone is never
// granted); requests in order of arrival; what is due; one batch to the store; and then the answers
// whose batch is durable. With a store that completes later the answers leave when it does; what
// speaks of nothing new (an OK renewal) never waits.
//
// One thread owns it. A store that fails ends it: `on_fatal` is called once, and not another byte
// leaves.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sparing_log.h"
#include "core/core.h"
#include "server/event_ring.h"
#include "server/network.h"
#include "server/reports.h"
#include "server/service_clock.h"
#include "server/session.h"
#include "server/telemetry.h"
#include "server/users.h"
#include "server/wait_table.h"
#include "store/store.h"
#include "wire/request.h"

namespace pawl::server {

struct EngineSettings {
  Millis ttl_max = limits::kTtlMaxDefault;
  std::size_t connections_max = limits::kConnectionsMax;
  std::size_t connections_reserved = limits::kConnectionsReserved;
  std::size_t async_waits_max = limits::kAsyncWaitsPerConnection;
  std::size_t output_max = limits::kOutputBufferMax;
  std::size_t observers_max = limits::kObserversMax;
  EventRing::Bounds events;
  core::Options core;
  std::string address;  // where clients reach this pawld; STATUS tells it
};

// What the engine is given. All of it outlives the engine.
struct EngineParts {
  store::Store& store;
  ClockSource& clock;
  Random& random;
  Network& network;
  Log& log;
  std::function<void(const Error&)> on_fatal;
};

// How the peer of a connection from within the process is spelled: "http:" and the address of the
// client behind it.
inline constexpr std::string_view kGuestPeer = "http:";

class Engine final : private store::Sink {
 public:
  Engine(EngineSettings settings, EngineParts parts);
  ~Engine() override;

  // Loads the store into the core. Until then only the handshake, PING and STATUS are served; the
  // rest is -LOADING. `go_on` is called each time some records were read: there the driver may let
  // connections take a turn, and by false it ends the load with kUnavailable. Nothing was changed
  // then.
  Result<store::Loaded> load(const std::function<bool()>& go_on = [] { return true; });

  // --- From the driver, between turns ------------------------------------------------------------
  // A new connection. False: beyond all limits; it was told so and closed.
  bool connected(ConnectionId connection, std::string_view peer);
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
  // The driver knows by other means (a client certificate) who this is. False: there is no such
  // user.
  bool identify(ConnectionId connection, std::string_view user);

  void run_turn();

  // The driver is about to wait for input, at most so long. That part of the time until the next
  // turn is no pause.
  void expect_sleep(Nanos at_most) { clock_.expect_sleep(at_most); }

  // How long the driver may sleep if nothing arrives. Zero: another turn is due at once.
  [[nodiscard]] Nanos patience() const;

  // The end of service: what is durable is sent, every connection is closed, waiters without a
  // reply.
  void stop();

  void set_address(std::string address) { settings_.address = std::move(address); }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const Telemetry& telemetry() const { return telemetry_; }
  [[nodiscard]] Nanos uptime() const { return clock_.uptime(); }
  [[nodiscard]] Nanos paused() const { return clock_.paused(); }
  [[nodiscard]] core::Totals totals() const { return core_.totals(); }
  // For checkers that look at the whole state (core/testlib/invariants.h), and the turn's reading of the
  // clock.
  [[nodiscard]] const core::Core& core() const { return core_; }
  [[nodiscard]] Now now() const { return now_; }
  [[nodiscard]] std::size_t connections() const { return sessions_.size(); }
  // Of them, those of other threads of this process, which serve clients of their own.
  [[nodiscard]] std::size_t guests() const { return guests_; }
  [[nodiscard]] bool loading() const { return loading_; }
  [[nodiscard]] ServiceState state() const;
  // After a restore: until grants begin.
  [[nodiscard]] Millis restoring() const { return core_.restoring_for(now_); }
  // Nothing while loading, and of a store that needs no volume.
  [[nodiscard]] std::optional<store::Space> space() const;

  // The driver refused a connection before the engine saw it.
  void count_refused_connection() { ++counters_.connections_refused; }
  // Of the certificate that new connections are shown, in seconds since 1970.
  void set_certificate_expiry(std::int64_t at) { certificate_expiry_ = at; }
  [[nodiscard]] std::optional<std::int64_t> certificate_expiry() const {
    return certificate_expiry_;
  }

 private:
  // --- store::Sink -------------------------------------------------------------------------------
  void durable(BatchId batch) override;
  void failed(BatchId batch, const Error& error) override;

  // --- The turn's steps (engine.cc) --------------------------------------------------------------
  void apply_hangups();
  void drop_waits(Session& session);
  void cancel_dropped();
  void serve_ready();
  bool serve(Session& session, std::size_t share);
  void refuse_more(Session& session);
  void log_protocol_error(Session& session);
  void commit();
  void flush();
  void flush(Session& session);
  void end(Session& session);
  void bury();
  void end_of_turn();
  // Reads the clock, and logs a pause that ends with this reading.
  enum class Doing : std::uint8_t { kWaiting, kCommitting };
  Now read_clock(Doing doing);
  // Logs when the store begins or ceases to have room.
  void watch_room();

  // Commands (commands.cc): each writes and seals exactly one reply, now or when its wait ends
  void serve_command(Session& session, std::span<const std::string_view> args);
  void dispatch(Session& session, const wire::Verb* verb, std::span<const std::string_view> args);
  bool refuse_early(Session& session, const wire::Verb& verb);
  void handle(Session& session, const AcquireSpec& spec);
  bool waits_for(const Session& session, std::string_view request);
  void handle(Session& session, const wire::Cancel& request);
  void handle(Session& session, const wire::Renew& request);
  void handle(Session& session, const wire::MRenew& request);
  void handle(Session& session, const wire::Release& request);
  void handle(Session& session, const wire::Break& request);
  void handle(Session& session, const wire::Raise& request);
  void handle(Session& session, const wire::Backup& request);
  void handle(Session& session, const wire::Inspect& request);
  void handle(Session& session, const wire::Locks& request);
  void handle(Session& session, const wire::History& request);
  void handle(Session& session, const wire::Observe& request);
  void handle(Session& session, const wire::Unobserve& request);
  void handle(Session& session, const wire::Status& request);
  void handle(Session& session, const wire::Hello& request);
  void handle(Session& session, const wire::Auth& request);
  void handle(Session& session, const wire::Info& request);
  void handle(Session& session, const wire::Client& request);
  void handle(Session& session, const wire::Command& request);
  void handle(Session& session, const wire::Help& request);
  void handle(Session& session, const wire::Time& request);
  void handle(Session& session, const wire::Reset& request);
  void handle(Session& session, std::monostate request);
  template <class Handshake>
  void handle(Session& session, const Handshake& request);
  [[nodiscard]] StatusView status() const;

  // --- Who may do what (access.cc). What begins with `refuse` answers an error when it is true ---
  void become(Session& session, UserPtr user);
  void become_nobody(Session& session);
  void dismiss(Session& session);
  [[nodiscard]] static std::string describe(const Session& session);
  // For the log; empty when there is none.
  [[nodiscard]] static std::string_view user_of(const Session& session);
  bool authenticate(Session& session, const wire::Credentials& credentials);
  void punish(Session& session);
  void pardon(Session& session);
  void end_punishments();
  void log_wrong_secret(const Session& session, std::string_view user);
  bool refuse_role(Session& session, const wire::Verb& verb);
  bool refuse_lock(Session& session, std::string_view lock);
  bool refuse_beginning(Session& session, std::string_view beginning);
  bool refuse_whole_store(Session& session, std::string_view verb);
  bool refuse_breaking(Session& session, const wire::Break& request);
  static void hide(const Session& session, std::vector<std::string>& locks);
  // How the core knows the request id. Valid until the next call.
  [[nodiscard]] std::string_view scoped(const Session& session, std::string_view request);

  // --- Observers (observing.cc) ------------------------------------------------------------------
  bool refuse_observer(Session& session);
  void stop_observing(Session& session);
  void tell_observers();
  void tell(Session& session);
  // Of one that observes.
  [[nodiscard]] bool is_behind(const Session& session) const;
  void cut_observer(Session& session);

  // --- Backups (backing_up.cc) -------------------------------------------------------------------
  void begin_backup();
  void tell_of_backup();
  void end_backup(const Result<store::BackupDone>& outcome);

  // --- Replies (replies.cc) ----------------------------------------------------------------------
  // Stands for "whoever asks right now": an input that never waits is answered before apply()
  // returns.
  static constexpr WaiterId kDirect{UINT64_MAX};
  // Applies an input that is answered at once, tells everyone else it concerns, and returns the
  // asker's own reply.
  template <class Input>
  core::Reply ask(const Input& input);
  void route_replies();
  void end_wait(Wait& wait, const core::Reply& reply);
  void superseded(Wait& wait, const core::Reply& reply);
  void count_acquire(const core::Outcome& outcome);
  void count_renewal(const core::Outcome& outcome);
  void count_release(LeaseId lease, const core::Outcome& outcome);
  void write_outcome(Session& session, const core::Outcome& outcome, bool by_request);
  void seal(Session& session, BatchId after);
  void error(Session& session, wire::ErrorCode code, std::string_view text);

  // --- Small things ------------------------------------------------------------------------------
  [[nodiscard]] Session* find(ConnectionId connection);
  [[nodiscard]] Session& owner(const Wait& wait);
  void forget(Wait& wait);
  void mark_ready(Session& session);
  void mark_dirty(Session& session);

  struct Place {
    std::uint64_t arrival;
    WaiterId waiter;
  };

  // Constant after construction, but for the address.
  EngineSettings settings_;
  store::Store& store_;
  Random& random_;
  Network& network_;
  Log& log_;
  const std::function<void(const Error&)> on_fatal_;

  // Touched only by the owning thread.
  core::Core core_;
  ServiceClock clock_;
  Now now_;  // the turn's one reading
  wire::RequestParser parser_;
  std::unordered_map<ConnectionId, std::unique_ptr<Session>> sessions_;
  std::size_t reserved_ = 0;  // sessions in the reserved lane
  std::size_t blocked_ = 0;
  std::size_t guests_ = 0;
  WaitTable waits_;
  EventRing events_;
  std::optional<Users> users_;  // nothing: everyone is admin
  std::set<std::pair<Tick, ConnectionId>>
      punished_;  // who waits out a wrong secret; each connection at most once
  Tick wrong_secret_log_at_{};
  std::uint64_t wrong_secrets_unsaid_ = 0;
  std::string scoped_;
  std::vector<Session*> observers_;
  bool more_to_tell_ = false;        // a reader that keeps up is to be told more in another turn
  std::vector<Session*> ready_;      // with input to serve, in order of arrival
  std::vector<Session*> postponed_;  // of these, the ones whose next share comes in the next turn
  std::vector<Session*> dirty_;      // with unsent output
  std::vector<Session*> hangups_;    // to be applied first in the next turn
  std::vector<Session*> gone_;       // closed, and forgotten once no list names them
  std::vector<Place> dropped_;
  std::vector<std::int64_t> renewed_;
  bool backing_up_ = false;
  ConnectionId backup_for_;  // whoever asked for it, and may have left
  std::string backup_by_;    // the same, for the log
  store::BackupOrder backup_;
  bool backup_begun_ = false;
  Session* asking_ = nullptr;  // whose ACQUIRE is being applied, and the wait it opened
  WaiterId asking_wait_;
  core::Reply direct_;  // what ask() was answered
  bool answered_ = false;
  Batch batch_;
  BatchId durable_;
  SparingLog pause_log_{log_};
  SparingLog room_log_{log_};
  bool had_room_ = true;
  std::optional<std::int64_t> certificate_expiry_;
  Tick protocol_errors_log_at_{};
  std::uint64_t protocol_errors_unsaid_ = 0;
  bool in_turn_ = false;
  bool loading_ = true;
  bool failed_ = false;
  store::Loaded loaded_;
  Counters counters_;
  Telemetry telemetry_;
  // Of this turn: how many commands of each kind, and how long the granted ones had waited.
  std::array<std::uint32_t, wire::kVerbCount + 1> served_{};
  std::vector<std::uint8_t> served_verbs_;
  std::vector<Millis> granted_waits_;
  Nanos turn_began_{0};
  bool synced_in_turn_ = false;  // and so has read the clock at its end
  bool command_failed_ = false;  // the one that is being served was answered with an error
};

}  // namespace pawl::server
