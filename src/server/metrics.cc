#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/version.h"
#include "server/engine.h"
#include "server/verbs/table.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct Label {
  const char* name;
  std::string_view value;
};
using Labels = std::initializer_list<Label>;

// One name, its help and its samples.
class Family {
 public:
  Family(std::vector<MetricFamily>& into, const char* name, const char* help, MetricType type)
      : all_(into) {
    all_.push_back({name, help, type, {}});
  }
  Family& add(double value, Labels labels = {}) {
    ClientMetric metric = labelled(labels);
    if (all_.back().type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    all_.back().metric.push_back(std::move(metric));
    return *this;
  }
  Family& add(std::uint64_t value, Labels labels = {}) {
    return add(static_cast<double>(value), labels);
  }
  template <class Bounds>
  Family& add(const Histogram<Bounds>& histogram, Labels labels = {}) {
    ClientMetric metric = labelled(labels);
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      so_far += histogram.counts[i];
      const double up_to = i < Bounds::kUpTo.size()
                               ? static_cast<double>(Bounds::kUpTo[i]) / Bounds::kPerUnit
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({so_far, up_to});
    }
    metric.histogram.sample_count = so_far;
    metric.histogram.sample_sum = histogram.sum / Bounds::kPerUnit;
    all_.back().metric.push_back(std::move(metric));
    return *this;
  }

 private:
  static ClientMetric labelled(Labels labels) {
    ClientMetric metric;
    for (const Label& label : labels)
      metric.label.push_back({label.name, std::string(label.value)});
    return metric;
  }

  std::vector<MetricFamily>& all_;
};

class Exposition {
 public:
  Family counter(const char* name, const char* help) {
    return {families_, name, help, MetricType::Counter};
  }
  Family gauge(const char* name, const char* help) {
    return {families_, name, help, MetricType::Gauge};
  }
  Family histogram(const char* name, const char* help) {
    return {families_, name, help, MetricType::Histogram};
  }
  [[nodiscard]] std::string text() const {
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  std::vector<MetricFamily> families_;
};

void add_locks(Exposition& all, const Readings& r) {
  const Telemetry& t = r.telemetry;
  Family acquires = all.counter(
      "pawl_lock_acquires_total",
      "Acquire requests that have ended, by result: granted (a retry that gets its lease again "
      "included), "
      "busy "
      "(the lock was held, and the request did not wait), timeout, cancelled (by CANCEL, or its "
      "connection closed), superseded (a newer connection took over the wait), lost (a retry of a "
      "lease that is over), refused (answered with an error: the disk is full, pawld is loading "
      "or restoring, a limit, a conflict, or missing permission). Requests that are malformed are "
      "not "
      "counted here.");
  for (std::size_t i = 0; i < kAcquireResults; ++i) {
    acquires.add(t.acquires[i], {{"result", to_text(static_cast<AcquireResult>(i))}});
  }
  all.histogram(
         "pawl_lock_acquire_duration_seconds",
         "Of granted requests: from receipt to the durable answer, the time in the queue included.")
      .add(t.acquire);
  all.histogram("pawl_lock_wait_duration_seconds",
                "Of granted requests that had to wait: the time in the queue.")
      .add(t.wait);
  all.histogram("pawl_lock_hold_duration_seconds",
                "Of leases that ended: from grant to end, by the wall clock.")
      .add(t.hold);
  all.gauge("pawl_locks",
            "Locks that pawld knows now: held (or kept for a waiter), or closed for a DELAY.")
      .add(r.totals.locks - std::min(r.totals.locks, r.totals.closed), {{"state", "held"}})
      .add(r.totals.closed, {{"state", "closed"}});
  all.gauge("pawl_lock_waiters", "Requests that wait in a queue now.").add(r.totals.waiters);
  all.counter("pawl_lock_breaks_total", "BREAK commands that named a live token.").add(t.breaks);
  Family asks = all.counter(
      "pawl_lock_asks_total",
      "ASK commands: asked (the holders hear of it with their next renewals), already_asked "
      "(within the last second), not_held (nobody holds the lock).");
  for (std::size_t i = 0; i < t.asks.size(); ++i)
    asks.add(t.asks[i], {{"result", to_text(static_cast<core::AskDone::State>(i))}});
}

void add_leases(Exposition& all, const Readings& r) {
  const Telemetry& t = r.telemetry;
  all.gauge("pawl_leases", "Live leases now.").add(r.totals.leases);
  all.counter(
         "pawl_lease_renewals_total",
         "Renewals asked for, one for each lease of an MRENEW: ok, or lost (the lease was over).")
      .add(t.renewed, {{"result", "ok"}})
      .add(t.not_renewed, {{"result", "lost"}});
  all.histogram(
         "pawl_lease_renew_margin_seconds",
         "What a lease had left when its renewal arrived. Low values mean clients renew too late.")
      .add(t.margin);
  all.histogram(
         "pawl_lease_renew_margin_ratio",
         "The same as a part of the TTL: 0.66 for a holder that renews every third of its TTL.")
      .add(t.margin_ratio);
  Family ended =
      all.counter("pawl_lease_ended_total",
                  "Leases that have ended: released; expired (its time ran out, and it was "
                  "neither released nor broken: the holder was frozen, cut off or killed, or let "
                  "it run out on purpose); broken; or at their max_hold.");
  for (std::size_t i = 0; i < t.ended.size(); ++i) {
    ended.add(t.ended[i], {{"reason", core::to_text(static_cast<core::Ending>(i + 1))}});
  }
  all.counter("pawl_lease_expired_while_executing_total",
              "RENEW, MRENEW and RELEASE of leases that had expired, one for each lease named: the "
              "holder was "
              "still there, and late. A client that stops at its own deadline sends none of these; "
              "pawl_lease_ended_total{reason=\"expired\"} counts its lease.")
      .add(t.used_after_expiry);
  all.counter("pawl_tokens_issued_total", "Tokens granted by this process.").add(t.tokens);
  all.gauge("pawl_last_token",
            "The greatest token ever granted, raised to, or skipped after a crash.")
      .add(r.totals.last_token.value);
  all.counter("pawl_token_regressions_total",
              "RAISE commands: the counter had fallen behind what guards had seen.")
      .add(t.raises);
}

void add_commands(Exposition& all, const Readings& r, const std::optional<HttpReadings>& http) {
  const auto name = [](std::size_t index) {
    return index == all_verbs().size() ? "unknown" : wire::lower(all_verbs()[index]->name);
  };
  Family commands =
      all.counter("pawl_commands_total",
                  "Commands served, over RESP or for HTTP: ok, or answered with an error.");
  for (std::size_t i = 0; i < r.telemetry.commands.size(); ++i) {
    commands.add(r.telemetry.commands[i].ok, {{"command", name(i)}, {"result", "ok"}});
    commands.add(r.telemetry.commands[i].error, {{"command", name(i)}, {"result", "error"}});
  }
  Family durations =
      all.histogram("pawl_command_duration_seconds",
                    "From reading a command to the end of the turn that answered it, its commit "
                    "included. A command that "
                    "waits counts until it is queued. Commands that were never sent are left out.");
  for (std::size_t i = 0; i < r.telemetry.commands.size(); ++i) {
    const Telemetry::Command& command = r.telemetry.commands[i];
    if (command.ok + command.error > 0) durations.add(command.duration, {{"command", name(i)}});
  }
  all.counter("pawl_turns_postponed_total",
              "How often a connection with commands to serve had to wait for another turn of the "
              "loop, because others had used up the work of this one. Renewals and releases do not "
              "wait.")
      .add(r.telemetry.postponed);
  all.gauge("pawl_connections",
            "Open connections now, by protocol. One of HTTP is a request under way, or a reader of "
            "events.")
      .add(r.connections_resp, {{"proto", "resp"}})
      .add(r.requests_http, {{"proto", "http"}});
  all.gauge("pawl_connections_limit",
            "The most RESP connections that may use every command, as far as the limit of file "
            "descriptors allows.")
      .add(r.connections_limit);
  all.gauge("pawl_connections_unauthenticated",
            "Of the RESP connections, those that have not authenticated. 0 where there are no "
            "users.")
      .add(r.unauthenticated);
  Family closed = all.counter(
      "pawl_unauthenticated_closed_total",
      "Connections that were closed before they had authenticated, by reason: late (not "
      "within 10 s, or their TLS handshake was not), or displaced (there were too "
      "many, and it was chosen at random to make room). Of HTTP: before a request of a valid "
      "user.");
  closed.add(r.telemetry.newcomers_late, {{"proto", "resp"}, {"reason", "late"}});
  closed.add(r.telemetry.newcomers_displaced, {{"proto", "resp"}, {"reason", "displaced"}});
  if (http) {
    closed.add(http->late, {{"proto", "http"}, {"reason", "late"}});
    closed.add(http->displaced, {{"proto", "http"}, {"reason", "displaced"}});
  }
  all.counter("pawl_connections_refused_total",
              "RESP connections that were refused: the limit of connections, or of file "
              "descriptors, was reached.")
      .add(r.telemetry.connections_refused);
  all.counter("pawl_connections_cut_total", "Connections closed because they read too slowly.")
      .add(r.telemetry.connections_cut);
  all.counter("pawl_auth_failures_total",
              "Wrong users or secrets, in AUTH, HELLO or an Authorization header.")
      .add(r.telemetry.wrong_secrets);
  if (r.telemetry.certificate_expiry) {
    all.gauge("pawl_tls_certificate_expiry_timestamp_seconds",
              "When the certificate that new connections are shown expires, since 1970. Only with "
              "TLS.")
        .add(static_cast<double>(*r.telemetry.certificate_expiry));
  }
}

void add_limits(Exposition& all, const Readings& r) {
  Family use = all.gauge("pawl_limit_use",
                         "How much of a limit is used, in all: leases and waiting requests, the "
                         "memory they take, waiters, observers, memory of ended leases, output "
                         "that is not read.");
  for (const LimitUse& limit : r.limits) use.add(limit.use, {{"limit", limit.name}});
  Family most = all.gauge("pawl_limit",
                          "That limit. What exceeds it is refused with -BUSY and its name; the "
                          "oldest history is forgotten, the slowest readers are closed.");
  for (const LimitUse& limit : r.limits) most.add(limit.limit, {{"limit", limit.name}});
  Family user = all.gauge("pawl_limit_greatest_user_use",
                          "The same of the user that uses most of it. 0 where there are no users.");
  for (const LimitUse& limit : r.limits) {
    if (limit.per_user != 0) user.add(limit.greatest_user, {{"limit", limit.name}});
  }
  Family per_user = all.gauge("pawl_limit_per_user", "What each user may use.");
  for (const LimitUse& limit : r.limits) {
    if (limit.per_user != 0) per_user.add(limit.per_user, {{"limit", limit.name}});
  }
}

void add_http(Exposition& all, const HttpReadings& http) {
  all.gauge("pawl_http_connections", "Open connections of the HTTP port now, idle ones included.")
      .add(http.connections);
  all.gauge("pawl_http_connections_limit",
            "The most connections of the HTTP port, of all kinds together.")
      .add(http.connections_max);
  all.counter("pawl_http_connections_refused_total",
              "Requests of valid users on the HTTP port that were refused because there was no "
              "place for their connection.")
      .add(http.refused);
}

void add_store(Exposition& all, const Readings& r, const ProcessReadings& process) {
  all.histogram("pawl_store_commit_duration_seconds",
                "Of each batch: from handing it to the store until it was durable.")
      .add(r.telemetry.commit);
  all.histogram("pawl_store_batch_size",
                "Records put or deleted in a batch: how well commits are shared.")
      .add(r.telemetry.batch_size);
  all.gauge("pawl_store_size_bytes", "Size of the files in the data directory.")
      .add(process.store_bytes);
  if (r.space && process.free_bytes) {
    all.gauge("pawl_store_free_bytes", "Free space on the volume of the data directory.")
        .add(*process.free_bytes);
    all.gauge(
           "pawl_store_free_needed_bytes",
           "With less free space than this no lock is granted: space_reserve_bytes, and a segment "
           "more where "
           "none could be made.")
        .add(r.space->needed);
  }
  all.gauge("pawl_store_full", "1 while no lock is granted because the disk is full.")
      .add(r.state == ServiceState::kFull ? 1.0 : 0.0);
  all.counter("pawl_store_damage_total",
              "Times that the store found damage in its own files while it ran.")
      .add(r.telemetry.store_damage_found);
  all.gauge("pawl_store_damaged",
            "1 while the files of the store are damaged and only the memory of this process has "
            "everything: do not restart it. 0 once a checkpoint from memory has replaced them.")
      .add(r.telemetry.store_damage_found == r.telemetry.store_damage_repaired ? 0.0 : 1.0);
  all.gauge("pawl_restoring_seconds",
            "After a restore: until locks are granted, when every lease from before has run out. "
            "Otherwise 0.")
      .add(std::chrono::duration<double>(r.restoring).count());
  all.gauge("pawl_leader",
            "1 while it is this pawld that grants locks; 0 while it loads, or waits after a "
            "restore. A full "
            "disk leaves it 1.")
      .add(role_of(r.state) != "active" || r.restoring > Millis(0) ? 0.0 : 1.0);
  all.gauge("pawl_standby",
            "1 while another pawld of the same cluster is the active one, or none is: this one "
            "takes over when it must.")
      .add(r.state == ServiceState::kStandby ? 1.0 : 0.0);
  all.gauge("pawl_ready",
            "1 while locks are granted, as /readyz answers; 0 while loading, restoring, full or "
            "standby.")
      .add(r.state == ServiceState::kGranting ? 1.0 : 0.0);
  all.gauge("pawl_last_backup_timestamp_seconds",
            "When the last good backup of this pawld was begun, in seconds since 1970. 0: none "
            "since it "
            "started.")
      .add(static_cast<double>(r.telemetry.last_backup.value) / 1000);
  all.histogram("pawl_event_loop_lag_seconds",
                "How long a turn of the loop took, in which nothing else was read: what a request "
                "may wait "
                "before it is looked at.")
      .add(r.telemetry.turn);
  all.counter("pawl_pauses_seconds_total",
              "Time for which pawld itself stood still beyond 250 ms: stopped, without CPU, or in "
              "a commit "
              "that hung. Not counted against any lease. Sleep while nothing is to be done is not "
              "a pause.")
      .add(std::chrono::duration<double>(r.paused).count());
  all.gauge("pawl_build_info", "Always 1; the label is the version.")
      .add(1.0, {{"version", kVersion}});
}

void add_cluster(Exposition& all, const Readings& r, const store::ClusterView& cluster) {
  all.counter(
         "pawl_leader_changes_total",
         "How often this pawld has become the active one of its cluster, or ceased to be. Only "
         "with --store etcd.")
      .add(r.telemetry.role_changes);
  all.counter("pawl_etcd_requests_total", "Requests to etcd that were answered.")
      .add(cluster.round_trips);
  all.counter("pawl_etcd_sends_total",
              "How often these were sent: more than once each where an outcome was unknown.")
      .add(cluster.sends);
  all.counter("pawl_etcd_request_seconds_total",
              "How long these took, all together, from the first send to the answer.")
      .add(std::chrono::duration<double>(cluster.round_trip_time).count());
  all.counter("pawl_etcd_troubles_total",
              "Outcomes that were unknown, and connections to etcd that failed.")
      .add(cluster.troubles);
  Family nodes = all.gauge("pawl_cluster_nodes",
                           "The pawld of this cluster by role, as this one knows them; silent: it "
                           "has not reported for 8 s.");
  for (const std::string_view role : {"active", "standby", "silent"}) {
    nodes.add(
        static_cast<double>(std::count_if(cluster.nodes.begin(), cluster.nodes.end(),
                                          [&](const auto& node) { return node.role == role; })),
        {{"role", role}});
  }
  Family usable = all.gauge("pawl_etcd_endpoint_usable",
                            "1 while this endpoint of etcd answers; without a majority of them "
                            "nothing is granted.");
  for (const store::ClusterView::Endpoint& endpoint : cluster.endpoints)
    usable.add(endpoint.usable ? 1.0 : 0.0, {{"endpoint", endpoint.name}});
}

void add_process(Exposition& all, const ProcessReadings& process) {
  all.counter("process_cpu_seconds_total", "User and system CPU time.").add(process.cpu_seconds);
  all.gauge("process_start_time_seconds", "Start time, since 1970.").add(process.start_seconds);
  all.gauge("process_resident_memory_bytes", "Resident memory.").add(process.resident_bytes);
  all.gauge("process_virtual_memory_bytes", "Virtual memory.").add(process.virtual_bytes);
  all.gauge("process_open_fds", "Open file descriptors.").add(process.open_descriptors);
  all.gauge("process_max_fds", "The most file descriptors that may be open.")
      .add(process.descriptors_max);
}

}  // namespace

Readings readings_of(const Engine& engine) {
  Readings readings;
  readings.telemetry = engine.telemetry();
  readings.totals = engine.totals();
  readings.requests_http = engine.connections().in_process();
  readings.connections_resp = engine.connections().size() - readings.requests_http;
  readings.unauthenticated = engine.connections().newcomers();
  readings.connections_limit = engine.connections().limits().ordinary;
  readings.state = engine.state();
  readings.restoring = engine.loading() ? Millis(0) : engine.restoring();
  readings.space = engine.space();
  readings.paused = engine.paused();
  readings.limits = engine.limit_uses();
  readings.cluster = engine.cluster();
  return readings;
}

std::string metrics_text(const Readings& readings, const ProcessReadings& process,
                         const std::optional<HttpReadings>& http) {
  Exposition all;
  add_locks(all, readings);
  add_leases(all, readings);
  add_commands(all, readings, http);
  add_limits(all, readings);
  if (http) add_http(all, *http);
  add_store(all, readings, process);
  if (readings.cluster) add_cluster(all, readings, *readings.cluster);
  add_process(all, process);
  return all.text();
}

}  // namespace pawl::server
