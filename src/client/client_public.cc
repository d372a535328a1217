#include "pawl/client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "client/fence_on_grant.h"
#include "client/pending_result.h"
#include "client/public_state.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnswerTimeout = 4s;

std::string default_owner() {
  std::array<char, 256> host{};
  const bool known = gethostname(host.data(), host.size() - 1) == 0;
  const std::string pid = ":" + std::to_string(getpid());
  std::string label = known ? host.data() : "localhost";
  label.resize(std::min(label.size(), limits::kOwnerMax - pid.size()));
  return label + pid;
}

client::DriverOptions to_driver_options(ClientOptions options,
                                        std::shared_ptr<client::TestTime> time) {
  client::DriverOptions driver;
  driver.machine.name = std::move(options.name);
  driver.machine.auth = std::move(options.auth);
  const bool given = options.answer_timeout > 0ms;
  driver.machine.answer_timeout = given ? client::bounded(options.answer_timeout) : kAnswerTimeout;
  driver.answer_timeout = given ? client::Keeper::AnswerTimeout::kAsConfigured
                                : client::Keeper::AnswerTimeout::kFromShortestLease;
  driver.machine.can_replace = true;
  driver.connect_timeout = client::bounded(options.connect_timeout);
  driver.log = std::move(options.log);
  driver.on_connection = std::move(options.on_connection);
  driver.metric = std::move(options.metric);
  driver.test_time = std::move(time);
  return driver;
}

Mode to_mode(Sharing sharing) {
  switch (sharing) {
    case Sharing::kExclusive:
      return Mode::kExclusive;
    case Sharing::kShared:
      return Mode::kShared;
    case Sharing::kLimit:
      return Mode::kLimit;
  }
  return Mode::kExclusive;
}

// The only place where the public options become lease terms.
LeaseTerms to_terms(const AcquireOptions& options) {
  return {.mode = to_mode(options.sharing),
          .limit = options.sharing == Sharing::kLimit ? options.limit : 1,
          .ttl = client::bounded(options.ttl),
          .delay = client::bounded(options.delay),
          .max_hold = client::bounded(options.max_hold)};
}

// `limit`: when to give up if it need not wait.
client::AcquireCall to_call(std::vector<std::string> locks, const AcquireOptions& options,
                            client::Instant limit) {
  client::AcquireCall call;
  call.locks = std::move(locks);
  call.terms = to_terms(options);
  call.wait = client::bounded(options.wait);
  call.owner = options.owner;
  call.meta.assign(options.meta.begin(), options.meta.end());
  call.give_up = limit + call.wait;
  return call;
}

std::optional<Error> wrong_options(const AcquireOptions& options) {
  if (options.limit != 1 && options.sharing != Sharing::kLimit)
    return Error{Code::kInvalid, "a limit needs Sharing::kLimit: set options.sharing"};
  // Each slot of a limit is a separate resource (design rule 15): one token for all of them would
  // fence out the other slots.
  if (!options.guards.empty() && options.sharing == Sharing::kLimit)
    return Error{Code::kInvalid,
                 "guards cannot be advanced for a lock with a limit: each slot is a separate "
                 "resource"};
  return std::nullopt;
}

}  // namespace

std::string_view to_text(ConnectionState state) {
  switch (state) {
    case ConnectionState::kConnected:
      return "connected";
    case ConnectionState::kSuspended:
      return "suspended";
    case ConnectionState::kLost:
      return "lost";
  }
  return "lost";
}

Client::Client(std::string_view addresses, ClientOptions options)
    : Client(addresses, std::move(options), nullptr) {}

Client::Client(std::string_view addresses, ClientOptions options,
               std::shared_ptr<client::TestTime> time)
    : state_(std::make_unique<State>()) {
  state_->call_timeout = client::bounded(options.call_timeout);
  state_->owner = default_owner();
  auto list = client::parse_addresses(addresses);
  if (list) {
    const TlsOptions& tls = options.tls;
    if (const auto ready =
            client::use_tls(*list, {tls.ca_file, tls.cert_file, tls.key_file, tls.server_name});
        !ready)
      list = ready.error();
  }
  if (!list) {
    state_->wrong = list.error();
    return;
  }
  auto driver = client::Driver::start(*std::move(list),
                                      to_driver_options(std::move(options), std::move(time)));
  if (driver) {
    state_->driver = *std::move(driver);
  } else {
    state_->wrong = {Code::kInvalid, "this client could not be started: " + driver.error().detail +
                                         "; create a new one when the process has room again"};
  }
}

Client::~Client() {
  if (!state_->driver) return;
  if (state_->driver->forked()) {
    // Leaked: its threads do not exist in this process, so it cannot be destroyed.
    static_cast<void>(state_.release());
    return;
  }
  state_->driver->shut_down(kDestructorWait);
}

client::CallId Client::State::acquire(std::vector<std::string> locks, AcquireOptions options,
                                      client::ThreadNumber thread,
                                      std::function<void(Result<Lease>)> done) const {
  client::AcquireCall call = to_call(locks, options, driver->now() + call_timeout);
  if (call.owner.empty()) call.owner = owner;
  auto holder = std::make_shared<client::Holder>();
  holder->locks = std::move(locks);
  holder->mode = call.terms.mode;
  holder->thread = thread;
  if (options.on_change) {
    holder->on_change = std::make_shared<client::Listener<LeaseState, const std::string&>>(
        std::move(options.on_change));
  }
  using client::Driver;
  const auto on_self_wait =
      options.wait_for_own ? Driver::OnSelfWait::kWait : Driver::OnSelfWait::kRefuse;
  auto granted = [driver = driver, holder,
                  done = std::move(done)](Result<client::KeptLease> grant) mutable {
    if (!grant) return done(grant.error());
    auto state = std::make_unique<Lease::State>(
        Lease::State{std::move(driver), *std::move(grant), std::move(holder)});
    done(Lease(std::move(state)));
  };
  const client::KeepOptions keep{client::bounded(options.max_hold),
                                 client::bounded(options.progress_every)};
  return driver->acquire(std::move(call), keep, holder, on_self_wait, std::move(granted));
}

Result<Lease> Client::acquire(std::string_view lock, AcquireOptions options, std::stop_token stop) {
  return acquire_all({std::string(lock)}, std::move(options), std::move(stop));
}

Result<Lease> Client::acquire_all(std::vector<std::string> locks, AcquireOptions options,
                                  std::stop_token stop) {
  if (const auto error = state_->unusable()) return *error;
  if (const auto error = wrong_options(options)) return *error;
  auto guards = std::move(options.guards);
  const auto guard_wait = client::bounded(options.guard_wait);
  const auto driver = state_->driver;  // The client may be destroyed while this waits.
  client::PendingResult<Lease> result(driver->wakeups(), client::this_thread());
  const client::CallId call =
      state_->acquire(std::move(locks), std::move(options), client::this_thread(),
                      [&result](Result<Lease> lease) { result.set(std::move(lease)); });
  const std::stop_callback give_up(stop, [&] { driver->cancel(call); });
  auto lease = result.wait();
  if (!lease || guards.empty()) return lease;
  if (auto fenced = client::fence_on_grant(*lease, std::move(guards), guard_wait, stop); !fenced)
    return fenced.error();
  return lease;
}

void Client::acquire_async(std::vector<std::string> locks, AcquireOptions options,
                           std::function<void(Result<Lease>)> done) {
  if (const auto error = state_->unusable()) return done(*error);
  if (const auto error = wrong_options(options)) return done(*error);
  if (!options.guards.empty()) {
    return done(
        Error{Code::kInvalid,
              "guards are advanced on the caller's thread, which may block: use acquire()"});
  }
  state_->acquire(std::move(locks), std::move(options), client::kNoThread,
                  [driver = state_->driver.get(), done = std::move(done)](Result<Lease> lease) {
                    // A std::function must be copyable, and a lease is not.
                    auto shared = std::make_shared<Result<Lease>>(std::move(lease));
                    driver->post([shared, done] { done(std::move(*shared)); });
                  });
}

}  // namespace pawl
