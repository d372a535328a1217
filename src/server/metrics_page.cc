// docs/reference/metrics.md, rendered from the exposition itself, so that the page has every
// metric.
#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "server/metrics.h"

namespace pawl::server {
namespace {

constexpr std::string_view kIntroduction =
    R"(<!-- Rendered by pawl_metrics_page. Change src/server/metrics.cc and metrics_page.cc instead. -->
# Metrics

`GET /metrics` on the HTTP port, in the text format of Prometheus.
Where pawld has users it needs the role *observe*: [how to scrape it](../how-to/run-pawld.md#scrape-it).
Counters begin at zero when pawld starts.
A scrape takes a copy of the figures from the thread that grants locks, and renders it elsewhere.
No metric has the names of locks in its labels.

In `deploy/prometheus` (with the package: `/usr/share/pawl/prometheus`) there are

| file | what it is |
|---|---|
| `pawl.rules.yml` | the [alerts](#alerts) |
| `pawl.generic-names.rules.yml` | generic names, if your dashboards expect them: `lock_acquire_success_total`, `lock_acquire_latency_ms` …  Optional: without a prefix they may collide with those of other services |
| `pawl.postgres_exporter.yml` | what [guards in PostgreSQL](#guards) have counted |

## What pawld exposes

| metric | type | labels | what it is |
|---|---|---|---|
)";

constexpr std::string_view kRest = R"(
## Alerts

| alert | fires when | what to do |
|---|---|---|
| `PawldDown` | it cannot be scraped for a minute | Start it. Leases that are held stay until their TTL ends |
| `PawldDoesNotGrant` | it has been loading, or waiting after a restore, for five minutes; a standby does not count | `pawl status` shows the state and, after a restore, the time left |
| `PawlDiskIsFull` | no lock is granted because the disk is full | Free some space. Renewals and releases go on meanwhile |
| `PawlDiskIsNearlyFull` | the free space is less than twice what pawld needs | Free some space, or use a larger volume |
| `PawlHoldersAreLate` | a lease ran out without being released, or a holder came back after that | See below |
| `PawlRenewalsAreClose` | one renewal in a hundred arrives in the last tenth of its lease | Choose a longer TTL, or find out what delays the holders |
| `PawlTokensWereRaised` | RAISE was used | Expected once after a restore. Otherwise find out whether two pawlds served the same locks |
| `PawlGuardMetStaleTokens` | a guard met a token older than its fence: a former holder tried to write | In mode *enforce* nothing was written. Find out why that holder did not stop |
| `PawlCommitsAreSlow` | one commit in a hundred takes longer than 250 ms | Give pawld a faster disk, or one of its own |
| `PawldStoodStill` | pawld was paused for more than a second within ten minutes | The log gives time and length. Look for a frozen machine, missing CPU or a disk that hung |
| `PawlCertificateExpires` | the certificate in use expires within 14 days | Replace its files, then reload pawld |
| `PawlBackupIsOld` | the last good backup is more than 36 hours old. It never fires before the first backup | [Back it up](../how-to/back-up.md) |
| `PawlConnectionsAreRefused` | a limit of connections or file descriptors is reached | Close what is not used, or raise the limit of descriptors |
| `PawlStrangersFlood` | connections that never authenticated were closed to make room for others | Someone opens many connections and does not log in: the log names addresses. Clients go on; keep the address out with a firewall |
| `PawlLimitIsNear` | more than 80 % of a limit is used, in all or by one user, for five minutes | `pawl status` shows which. Find out who uses so much, or raise it in `[limits]` of the configuration |
| `PawlSecretsAreWrong` | more than ten wrong users or secrets within ten minutes | The log names user and address |
| `PawlClusterHasNoActive` | every pawld of a cluster has stood by for a minute | `pawl status` shows how etcd is: without a majority, or full, nobody can be active |
| `PawlClusterHasNoStandby` | no other pawld has been listed for ten minutes | Start another one |
| `PawlRoleMovesOften` | the active pawld has changed more than three times within 15 minutes | Look for pauses of machines, a slow etcd, or lost packets; or choose a longer `role_ttl_ms` |
| `PawlEtcdEndpointIsDown` | a pawld has not reached a member of etcd for five minutes | `pawl status` says why. While a majority answers, locks are granted |
| `PawlEtcdIsSlow` | requests to etcd take 100 ms on average | Look at the disks of etcd and the network between its members |

A holder that is frozen for longer than its TTL usually sends nothing when it comes back: a client that watches its own deadline stops instead.
Such a lease is one of `pawl_lease_ended_total{reason="expired"}`: it was neither released nor broken.
`pawl_lease_expired_while_executing_total` counts the others, which do send a RENEW, MRENEW or RELEASE too late.
`PawlHoldersAreLate` fires for both.
A holder that was killed looks the same, and so does one that lets its lease expire on purpose; if your clients do that, keep only the second half of the rule.

## Guards

Guards count in the database, not in pawld.
For PostgreSQL, postgres_exporter reads the view `pawl.status` and exposes `pawl_guard_decisions_total{guard,verdict}`, with the verdicts `replayed`, `stale`, `missing`, `ahead`, `malformed` and `would_refuse`; admitted writes are not counted.
Any role of the database may read that view.

```console
$ postgres_exporter --extend.query-path=/usr/share/pawl/prometheus/pawl.postgres_exporter.yml
```
)";

struct Row {
  std::string name, type, help;
  std::vector<std::string> labels;
};

// `pawl_x{a="1",b="2"} 3`: adds a and b, but not the bounds of buckets. No value of ours holds a
// comma or a brace.
void add_labels(std::vector<std::string>& labels, std::string_view sample) {
  const std::size_t open = sample.find('{');
  if (open == std::string_view::npos) return;
  std::istringstream pairs{std::string(sample.substr(open + 1, sample.find('}') - open - 1))};
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const std::string name = pair.substr(0, pair.find('='));
    if (name != "le" && std::find(labels.begin(), labels.end(), name) == labels.end())
      labels.push_back(name);
  }
}

std::vector<Row> rows_of(const std::string& exposition) {
  constexpr std::string_view kHelp = "# HELP ", kType = "# TYPE ";
  std::vector<Row> rows;
  std::istringstream lines(exposition);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kHelp)) {
      const std::size_t space = line.find(' ', kHelp.size());
      rows.push_back(
          {line.substr(kHelp.size(), space - kHelp.size()), "", line.substr(space + 1), {}});
    } else if (line.starts_with(kType)) {
      rows.back().type = line.substr(line.rfind(' ') + 1);
    } else {
      add_labels(rows.back().labels, line);
    }
  }
  return rows;
}

// At least one sample of every family, so that its labels are known.
Readings sample_readings() {
  Readings readings;
  for (auto& command : readings.telemetry.commands) command.ok = 1;
  readings.space.emplace();
  readings.telemetry.certificate_expiry = 0;
  readings.limits.push_back({.name = "leases", .limit = 1, .per_user = 1});
  readings.cluster.emplace().endpoints.push_back({.name = "db1:2379"});
  return readings;
}

}  // namespace

std::string metrics_page() {
  std::string out(kIntroduction);
  for (const Row& row :
       rows_of(metrics_text(sample_readings(), {.free_bytes = 0}, HttpReadings{}))) {
    out.append("| `").append(row.name).append("` | ").append(row.type).append(" | ");
    const char* comma = "";
    for (const std::string& label : row.labels) {
      out.append(comma).append("`").append(label).append("`");
      comma = ", ";
    }
    out.append(" | ").append(row.help).append(" |\n");
  }
  out.append(kRest);
  return out;
}

}  // namespace pawl::server
