// What the driver tells its user: callbacks of leases and watches, the state of the connection, log
// lines and counters.
#include <utility>

#include "client/driver.h"

namespace pawl::client {

void Driver::post_lease_changes() {
  for (LeaseChange& change : keeper_.take_changes()) {
    auto holder = holders_.find(change.lease);
    if (!holder) continue;
    if (change.state >= LeaseState::kUncertain) {
      log("a lease is " + std::string(to_text(change.state)) + ": " + change.reason);
    }
    if (change.reason_only) continue;
    const bool first =
        change.state >= LeaseState::kUncertain && !std::exchange(holder->notified, true);
    if (first) losses_.notify(holder->lost);
    if (!holder->on_change) continue;
    callbacks_.post([listener = holder->on_change, state = change.state,
                     reason = std::move(change.reason)] { listener->call(state, reason); });
  }
}

void Driver::post_asks() {
  for (LeaseAsk& ask : keeper_.take_asks()) {
    const auto holder = holders_.find(ask.lease);
    if (!holder) continue;
    ReleaseWanted wanted{std::move(ask.wanted.lock), std::move(ask.wanted.by),
                         std::move(ask.wanted.reason)};
    log("release of " + wanted.lock + " is wanted by " + wanted.by +
        (wanted.reason.empty() ? "" : ": " + wanted.reason));
    if (!holder->on_release_wanted) {
      holder->unheard = std::move(wanted);
      continue;
    }
    callbacks_.post([listener = holder->on_release_wanted, wanted = std::move(wanted)] {
      listener->call(wanted);
    });
  }
}

void Driver::post_leader_changes(Instant now) {
  for (LeaderWatches::Notification& notification : watches_.take_notifications(now)) {
    callbacks_.post([callback = std::move(notification.callback),
                     change = std::move(notification.change)] { callback(change); });
  }
}

void Driver::report_connection() {
  std::optional<ConnectionState> next = connection_;
  if (machine_.is_served()) {
    next = ConnectionState::kConnected;
  } else if (connection_ == ConnectionState::kConnected || !connection_) {
    // At first, only after an attempt has failed.
    if (connection_ || !machine_.last_error().empty()) next = ConnectionState::kSuspended;
    suspended_with_leases_ = keeper_.renews_any();
    lost_before_ = keeper_.counters().lost;
  } else if (connection_ == ConnectionState::kSuspended && suspended_with_leases_ &&
             !keeper_.renews_any() && keeper_.counters().lost > lost_before_) {
    next = ConnectionState::kLost;
  }
  if (next == std::exchange(connection_, next) || !options_.on_connection) return;
  callbacks_.post([hooks = hooks_, hook = options_.on_connection, state = *next,
                   reason = machine_.last_error()] { hooks->call([&] { hook(state, reason); }); });
}

void Driver::log(std::string line) {
  if (!options_.log) return;
  post_hook([hook = options_.log, line = std::move(line)] { hook(line); });
}

void Driver::count(std::string_view name, double value) {
  if (!options_.metric) return;
  post_hook([hook = options_.metric, name, value] { hook(name, value); });
}

void Driver::post_hook(std::function<void()> hook) {
  callbacks_.post_if_room([hooks = hooks_, hook = std::move(hook)] { hooks->call(hook); });
}

void Driver::report_metrics() {
  const Keeper::Counters& counted = keeper_.counters();
  const auto report = [this](std::string_view name, std::uint64_t& reported, std::uint64_t total) {
    if (const std::uint64_t added = total - std::exchange(reported, total); added > 0) {
      count(name, static_cast<double>(added));
    }
  };
  report("renewals", reported_.renewals, counted.renewals);
  report("renewal_commands", reported_.renewal_commands, counted.renewal_commands);
  report("renewal_failures", reported_.renewal_failures, counted.renewal_failures);
  report("leases_lost", reported_.lost, counted.lost);
}

}  // namespace pawl::client
