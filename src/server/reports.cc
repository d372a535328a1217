#include "server/reports.h"
#include "base/hex.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace pawl::server {
namespace {

void write_texts(wire::ReplyWriter& reply, std::string_view key,
                 const std::vector<std::string>& texts) {
  reply.bulk(key);
  reply.array(texts.size());
  for (const std::string& text : texts) reply.bulk(text);
}

void write_token(wire::ReplyWriter& reply, std::string_view key,
                 const std::optional<Token>& token) {
  if (token) {
    reply.field(key, token->value);
  } else {
    reply.field_null(key);
  }
}

void write_holder(wire::ReplyWriter& reply, const core::HolderView& holder) {
  reply.map(11);
  reply.field("token", holder.token.value);
  reply.field("owner", holder.owner);
  reply.field("mode", mode_text(holder.mode));
  reply.field("limit", holder.limit);
  if (holder.slot) {
    reply.field("slot", *holder.slot);
  } else {
    reply.field_null("slot");
  }
  write_texts(reply, "locks", holder.locks);
  reply.field("held_ms", std::int64_t{holder.held.count()});
  reply.field("expires_in_ms", std::int64_t{holder.expires_in.count()});
  reply.field("renewals", holder.renewals);
  reply.field("breaking", holder.breaking);
  reply.bulk("meta");
  reply.map(holder.meta.size());
  for (const auto& [key, value] : holder.meta) reply.field(key, value);
}

void write_waiter(wire::ReplyWriter& reply, const core::WaiterView& waiter) {
  reply.map(3);
  reply.field("owner", waiter.owner);
  reply.field("mode", mode_text(waiter.mode));
  reply.field("waited_ms", std::int64_t{waiter.waited.count()});
}

// `name` of the limit, as in STATUS and in the configuration.
void write_full(wire::ReplyWriter& reply, std::string_view name, const core::Refused& refused,
                std::string_view advice) {
  reply.error(wire::ErrorCode::kBusy,
              fmt::format("{0}: the limit of {1} {2} is reached, {3} are in use; {4}, or raise "
                          "limits.{0}{5} of pawld",
                          name, refused.limit, refused.per_user ? "for one user" : "in all",
                          refused.use, advice, refused.per_user ? "_per_user" : ""));
}

// In a sentence, by what each endpoint said last.
std::string etcd_health(const std::vector<store::ClusterView::Endpoint>& endpoints) {
  std::size_t usable = 0;
  std::string_view leader;
  for (const store::ClusterView::Endpoint& endpoint : endpoints) {
    if (!endpoint.usable) continue;
    ++usable;
    if (endpoint.leader) leader = endpoint.name;
  }
  const std::string count = fmt::format("{} of {} endpoints answer", usable, endpoints.size());
  if (2 * usable <= endpoints.size())
    return count + ": without a majority nothing is granted; start etcd, or mend the network";
  return leader.empty() ? count + ", and none of them leads"
                        : fmt::format("{}, {} leads", count, leader);
}

void write_cluster(wire::ReplyWriter& reply, const store::ClusterView& cluster) {
  reply.bulk("cluster");
  reply.map(4);
  reply.field("name", cluster.name);
  reply.field("health", etcd_health(cluster.endpoints));
  reply.bulk("nodes");
  reply.array(cluster.nodes.size());
  for (const store::ClusterView::Node& node : cluster.nodes) {
    reply.map(4);
    reply.field("address", node.address);
    reply.field("role", node.role);
    reply.field("pid", node.pid);
    reply.field("self", node.is_self);
  }
  reply.bulk("etcd");
  reply.array(cluster.endpoints.size());
  for (const store::ClusterView::Endpoint& endpoint : cluster.endpoints) {
    reply.map(5);
    reply.field("endpoint", endpoint.name);
    reply.field("usable", endpoint.usable);
    reply.field("leader", endpoint.leader);
    reply.field("version", endpoint.version);
    reply.field("problem", endpoint.problem);
  }
}

}  // namespace

std::string_view mode_text(Mode mode) {
  switch (mode) {
    case Mode::kExclusive:
      return "exclusive";
    case Mode::kShared:
      return "shared";
    case Mode::kLimit:
      return "limit";
  }
  return "unknown";
}

std::string_view to_text(ServiceState state) {
  switch (state) {
    case ServiceState::kGranting:
      return "granting";
    case ServiceState::kLoading:
      return "loading";
    case ServiceState::kRestoring:
      return "restoring";
    case ServiceState::kFull:
      return "full";
    case ServiceState::kStandby:
      return "standby";
  }
  return "unknown";
}

void write_lock(wire::ReplyWriter& reply, const core::LockView& view) {
  reply.map(view.reopens_in ? 10 : 9);
  reply.field("lock", view.lock);
  reply.field("state", to_text(view.state));
  write_token(reply, "token", view.token);
  reply.field("holder_count", view.holder_count);
  reply.bulk("holders");
  reply.array(view.holders.size());
  for (const core::HolderView& holder : view.holders) write_holder(reply, holder);
  reply.field("waiters", view.waiters);
  reply.bulk("queue");
  reply.array(view.queue.size());
  for (const core::WaiterView& waiter : view.queue) write_waiter(reply, waiter);
  write_token(reply, "last_token", view.last_token);
  // pawld cannot see the guards of a resource. Whether they check tokens is unknown until one
  // reports.
  reply.field("label", "unknown: no guard has reported");
  if (view.reopens_in) reply.field("reopens_in_ms", std::int64_t{view.reopens_in->count()});
}

void write_epoch(wire::ReplyWriter& reply, const core::EpochView& epoch) {
  reply.map(7);
  reply.field("token", epoch.token.value);
  reply.field("owner", epoch.owner);
  write_texts(reply, "locks", epoch.locks);
  reply.field("mode", mode_text(epoch.mode));
  reply.field("granted", epoch.granted.value);
  reply.field("ended", epoch.ended.value);
  reply.field("how", to_text(epoch.how));
}

std::string_view role_of(ServiceState state) {
  if (state == ServiceState::kLoading || state == ServiceState::kStandby) return to_text(state);
  return "active";
}

void write_status(wire::ReplyWriter& reply, const StatusView& status) {
  reply.map(status.cluster ? 16 : 15);
  reply.field("version", status.version);
  reply.field("store", status.store);
  reply.field("role", role_of(status.state));
  reply.field("state", to_text(status.state));
  reply.field("epoch", status.epoch);
  reply.field("active", status.active);
  reply.field("incarnation", to_hex(status.incarnation));
  reply.field("last_token", status.totals.last_token.value);
  write_token(reply, "oldest_live_token", status.totals.oldest_live_token);
  reply.field("locks", status.totals.locks);
  reply.field("leases", status.totals.leases);
  reply.field("waiters", status.totals.waiters);
  reply.field("uptime_ms", std::int64_t{status.uptime.count()});
  reply.field("restoring_ms", std::int64_t{status.restoring.count()});
  reply.bulk("limits");
  reply.map(status.limits.size());
  for (const LimitUse& limit : status.limits) {
    reply.bulk(limit.name);
    reply.map(limit.per_user == 0 ? 2 : 4);
    reply.field("use", limit.use);
    reply.field("limit", limit.limit);
    if (limit.per_user == 0) continue;
    reply.field("greatest_user", limit.greatest_user);
    reply.field("per_user", limit.per_user);
  }
  if (status.cluster) write_cluster(reply, *status.cluster);
}

std::string info_text(const StatusView& status, const Telemetry& counted) {
  std::string text;
  const auto section = [&text](std::string_view name) {
    text += fmt::format("{}# {}\r\n", text.empty() ? "" : "\r\n", name);
  };
  const auto line = [&text](std::string_view key, const auto& value) {
    text += fmt::format("{}:{}\r\n", key, value);
  };
  section("Server");
  line("redis_version", "7.0.0");
  line("pawl_version", status.version);
  line("redis_mode", "standalone");
  line("uptime_in_seconds", status.uptime.count() / 1000);
  section("Clients");
  line("connected_clients", status.connections);
  line("blocked_clients", status.blocked);
  line("maxclients", status.connections_max);
  section("Persistence");
  line("loading", status.state == ServiceState::kLoading ? 1 : 0);
  line("pawl_state", to_text(status.state));
  line("pawl_store", status.store);
  line("pawl_incarnation", to_hex(status.incarnation));
  section("Stats");
  line("total_connections_received", counted.connections);
  line("rejected_connections", counted.connections_refused);
  line("pawl_connections_cut", counted.connections_cut);
  line("pawl_unauthenticated_late", counted.newcomers_late);
  line("pawl_unauthenticated_displaced", counted.newcomers_displaced);
  line("pawl_wrong_secrets", counted.wrong_secrets);
  line("total_commands_processed", counted.commands_served);
  line("pawl_turns", counted.turns);
  line("pawl_batches", counted.batches);
  line("pawl_paused_ms", status.paused.count());
  section("Replication");
  line("role", status.state == ServiceState::kStandby ? "slave" : "master");
  line("connected_slaves", 0);
  section("Locks");
  line("pawl_locks", status.totals.locks);
  line("pawl_leases", status.totals.leases);
  line("pawl_waiters", status.totals.waiters);
  line("pawl_last_token", status.totals.last_token.value);
  return text;
}

std::string lost_text(const core::Lost& lost, bool by_request) {
  if (!lost.ending) return "unknown";
  const std::string_view how = to_text(*lost.ending);
  // A retry may not have received its grant; a client that names a lease has. A broken lease may
  // still be running, so its answer is the same as RENEW's.
  if (by_request && lost.ending != core::Ending::kBroken && lost.token != Token{})
    return fmt::format("granted as {}, {}", lost.token.value, how);
  return std::string(how);
}

void write_ask(wire::ReplyWriter& reply, const core::AskDone& done) {
  reply.map(3);
  reply.field("state", to_text(done.state));
  reply.field("holders", done.holders);
  write_token(reply, "token", done.holders == 0 ? std::nullopt : std::optional(done.token));
}

void write_refused(wire::ReplyWriter& reply, const core::Refused& refused) {
  using Why = core::Refused::Why;
  switch (refused.why) {
    case Why::kConflict:
      return reply.error(wire::ErrorCode::kConflict,
                         "the request id was used with other locks, mode, limit or TTL");
    case Why::kWaitersFull:
      return write_full(reply, "waiters", refused,
                        "acquire without WAIT, or ask again when some have ended");
    case Why::kLeasesFull:
      return write_full(reply, "leases", refused,
                        "waiting requests count too; release some, or ask again when some have "
                        "ended");
    case Why::kLeaseBytesFull:
      return write_full(reply, "lease_bytes", refused,
                        "use shorter names and metadata, release some leases, or ask again when "
                        "some have ended");
    case Why::kExhausted:
      return reply.error(wire::ErrorCode::kExhausted,
                         fmt::format("the last token, {}, is used up", limits::kTokenMax));
    case Why::kRaiseBack:
      return reply.error(wire::ErrorCode::kErr,
                         "RAISE must name a token greater than the last one (see STATUS)");
    case Why::kRaiseTooFar:
      return reply.error(wire::ErrorCode::kErr,
                         fmt::format("RAISE goes at most {} ahead, and never past {}",
                                     limits::kRaiseMax, limits::kTokenMax));
    case Why::kAsksFull:
      return reply.error(
          wire::ErrorCode::kBusy,
          fmt::format("asks: the limit of {} locks that are asked for {} is reached, {} are; ask "
                      "again when some have been released",
                      refused.limit, refused.per_user ? "by one user" : "in all", refused.use));
    case Why::kRestoring:
      return reply.error(
          wire::ErrorCode::kBusy,
          fmt::format("restoring: restored from a backup, grants begin in {} ms, when every lease "
                      "from before has run out; a request that waits is queued",
                      refused.left.count()));
  }
}

}  // namespace pawl::server
