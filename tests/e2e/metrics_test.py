#!/usr/bin/python3
"""Metrics on the real binary, as promtool and a real Prometheus see them; and the rules that come
along.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from pawltest import ROOT, harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent, free_port
from pawltest.tls_files import LOCAL, Authority, trusting
from pawltest.web import Web

PAWL = os.environ.get("PAWL", "")
RULES = ROOT / "deploy/prometheus/pawl.rules.yml"
GENERIC = ROOT / "deploy/prometheus/pawl.generic-names.rules.yml"
GUARD_QUERY = ROOT / "deploy/prometheus/pawl.postgres_exporter.yml"
GENERIC_NAMES = (
    "lock_acquire_success_total",
    "lock_acquire_latency_ms",
    "lease_expired_while_executing_total",
    "fencing_reject_total",
    "critical_write_without_token_total",
)
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.M)
FROM_GUARDS = "pawl_guard_decisions_total"  # From postgres_exporter, by GUARD_QUERY.


def promtool(*words, text=None):
    done = subprocess.run(
        ["promtool", *[str(word) for word in words]],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def figure(scrape, sample):
    return float(re.search(f"^{re.escape(sample)} (.*)$", scrape, re.M)[1])


def changed(scrape, values):
    """The scrape with other values; a sample it does not have is added."""
    for sample, value in values.items():
        line = f"{sample} {value}"
        scrape, count = re.subn(f"^{re.escape(sample)} .*$", line, scrape, flags=re.M)
        if count == 0:
            scrape += line + "\n"
    return scrape


def firing(test, before, after, expected, grow=False):
    """Fails unless exactly the alerts `expected` fire. pawld is scraped once a minute: `before` for
    five minutes, then `after`. `grow`: what was counted between the two is counted again in each
    minute that follows. promtool evaluates the rules; its clock begins in 1970."""
    directory = harness.scratch("rules")
    test.addCleanup(shutil.rmtree, directory)
    series = []
    scrapes = [
        {(name, labels): value for name, labels, value in SAMPLE.findall(scrape)}
        for scrape in (before, after)
    ]
    for name, labels in {**scrapes[0], **scrapes[1]}:
        old, new = (scrape.get((name, labels)) for scrape in scrapes)
        step = (
            float(new) - float(old or 0)
            if grow and name.endswith(("_total", "_bucket", "_count", "_sum"))
            else 0
        )
        instance = "" if "instance=" in labels else 'instance="here:7296"'
        named = ",".join(filter(None, [labels, 'job="pawld"', instance]))
        # As promtool writes them: "1+0x4" is 1 and four more, each greater by 0; "_x5" is five
        # times nothing.
        values = "_x5" if old is None else f"{float(old):f}+0x4"
        series.append(
            {"series": f"{name}{{{named}}}", "values": f"{values} {float(new):f}+{step:f}x20"}
        )
    query = 'count by (alertname) (ALERTS{alertstate="firing"})'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)]
    (directory / "test.yml").write_text(
        json.dumps(
            {
                "rule_files": [str(RULES)],
                "evaluation_interval": "1m",
                "tests": [
                    {
                        "interval": "1m",
                        "input_series": series,
                        "promql_expr_test": [
                            {
                                "expr": query,
                                "eval_time": "20m" if grow else "12m",
                                "exp_samples": samples,
                            }
                        ],
                    }
                ],
            }
        )
    )
    code, output = promtool("test", "rules", directory / "test.yml")
    test.assertEqual(code, 0, output)


class Prometheus:
    """One of its own, with nothing but `scrape`, the text of a scrape_configs entry, and Pawl's
    rules."""

    def __init__(self, scrape):
        self.dir = harness.scratch("prometheus")
        self.port = free_port()
        (self.dir / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{RULES}, "
            f"{GENERIC}]\nscrape_configs:\n{scrape}"
        )
        with open(self.dir / "log", "wb") as log:
            self.process = subprocess.Popen(
                dies_with_parent(
                    [
                        "prometheus",
                        f"--config.file={self.dir}/prometheus.yml",
                        f"--storage.tsdb.path={self.dir}/data",
                        f"--web.listen-address=127.0.0.1:{self.port}",
                    ]
                ),
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def get(self, path):
        """The data of its API; nothing while it does not answer."""
        if self.process.poll() is not None:
            raise AssertionError("prometheus ended:\n" + (self.dir / "log").read_text()[-4000:])
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=10
            ) as reply:
                return json.load(reply)["data"]
        except (OSError, urllib.error.URLError):
            return None

    def query(self, expression):
        """The samples; an empty list while there are none."""
        return (
            self.get("query?" + urllib.parse.urlencode({"query": expression})) or {"result": []}
        )["result"]

    def remove(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class MetricsTest(harness.PawldCase):
    def setUp(self):
        super().setUp()
        self.web = Web(self.pawld.http_port)

    def scrape(self):
        reply = self.web.get("/metrics")
        self.assertEqual(reply.status, 200, reply)
        return reply

    def test_promtool_accepts_a_scrape(self):
        self.acquire(self.client(), self.lock())
        reply = self.scrape()
        self.assertEqual(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(promtool("check", "metrics", text=reply.body.decode()), (0, ""))

    def test_metrics_count_what_happened(self):
        def now(sample):
            return figure(self.scrape().body.decode(), sample)

        granted, leases = 'pawl_lock_acquires_total{result="granted"}', "pawl_leases"
        before = now(granted), now(leases)
        self.assertEqual(self.web.acquire(self.lock()).status, 201)
        self.acquire(self.client(), self.lock())
        self.assertEqual((now(granted), now(leases)), (before[0] + 2, before[1] + 2))
        self.assertGreater(now("pawl_store_size_bytes"), 0)
        self.assertGreater(now("pawl_store_free_bytes"), now("pawl_store_free_needed_bytes"))
        self.assertEqual(now('pawl_connections{proto="http"}'), 1, "the scrape itself")

    def test_prometheus_scrapes_it_and_records_the_generic_names(self):
        self.acquire(self.client(), self.lock())
        prometheus = Prometheus(
            "- job_name: pawld\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{self.pawld.http_port}']}}]\n"
        )
        self.addCleanup(prometheus.remove)
        leases = wait_until(
            lambda: prometheus.query("pawl_leases"), "Prometheus has scraped pawl_leases"
        )
        self.assertGreaterEqual(float(leases[0]["value"][1]), 1)
        self.assertEqual(leases[0]["metric"]["job"], "pawld")
        for name in ("lock_acquire_success_total", "lease_expired_while_executing_total"):
            wait_until(lambda name=name: prometheus.query(name), name)
        rules = {
            rule["name"]: rule
            for group in prometheus.get("rules")["groups"]
            for rule in group["rules"]
        }
        self.assertLessEqual(set(GENERIC_NAMES), set(rules))
        for name, rule in rules.items():
            self.assertNotEqual(rule["health"], "err", (name, rule))

    def test_rules_use_only_existing_metrics(self):
        scraped = set(re.findall(r"^# TYPE (\w+)", self.scrape().body.decode(), re.M))
        scraped |= {FROM_GUARDS, "pawl_tls_certificate_expiry_timestamp_seconds"}
        # Those of a pawld in a cluster: the page is made from what pawld exposes.
        page = (ROOT / "docs/reference/metrics.md").read_text()
        scraped |= set(re.findall(r"^\| `(pawl_(?:etcd|cluster|leader)_\w+)` \|", page, re.M))
        for file in (RULES, GENERIC):
            code, output = promtool("check", "rules", file)
            self.assertEqual(code, 0, output)
            rules = "\n".join(
                line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")
            )
            asked = {
                re.sub("_bucket$", "", name)
                for name in re.findall(r"\b(?:pawl|process)_\w+", rules)
            }
            self.assertEqual(asked - scraped - {"pawl_generic_names", "pawl_alerts"}, set())

    def test_default_rules_record_no_generic_names(self):
        self.assertEqual(re.findall(r"record: (?!pawl_).*", RULES.read_text()), [])

    def test_every_alert_is_documented(self):
        page = (ROOT / "docs/reference/metrics.md").read_text()
        for name in re.findall(r"alert: (\w+)", RULES.read_text()):
            self.assertIn(f"| `{name}` |", page)


class AlertsTest(harness.PawldCase):
    """The rules as they are delivered, with the figures of a real pawld."""

    def scrape(self):
        return Web(self.pawld.http_port).get("/metrics").body.decode()

    def quiet(self):
        """A scrape, without what a busy machine may have done to this pawld."""
        return changed(self.scrape(), {"pawl_pauses_seconds_total": 0})

    def test_frozen_holder_raises_an_alert(self):
        before, lock = self.quiet(), self.lock()
        holder = subprocess.Popen(
            dies_with_parent([PAWL, "run", lock, "--ttl", "1s", "--", "sleep", "600"]),
            env={**os.environ, "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        client = self.client(3)
        wait_until(lambda: self.inspect(client, lock)["state"] == "held", "it holds the lock")
        holder.send_signal(signal.SIGSTOP)
        wait_until(lambda: self.inspect(client, lock)["state"] == "free", "its lease expires")
        after = changed(self.scrape(), {"pawl_pauses_seconds_total": 0})
        late = "pawl_lease_expired_while_executing_total"
        self.assertEqual(figure(after, late), figure(before, late), "it has sent nothing")
        firing(self, before, after, {"PawlHoldersAreLate"})

    def test_no_alert_fires_in_normal_operation(self):
        before, client = self.quiet(), self.client(3)
        grant = self.acquire(client, self.lock())
        client.call("RENEW", grant["lease"])
        client.call("RELEASE", grant["lease"])
        firing(self, before, changed(self.scrape(), {"pawl_pauses_seconds_total": 0}), set())

    def test_each_alert_fires_for_its_cause_only(self):
        well = self.quiet()
        bucket = 'pawl_lease_renew_margin_ratio_bucket{le="%s"}'
        close = {bucket % le: "100" for le in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1, "+Inf")}
        bounds = re.findall(r'^pawl_store_commit_duration_seconds_bucket\{le="(.*)"\}', well, re.M)
        slow = {
            f'pawl_store_commit_duration_seconds_bucket{{le="{le}"}}': "100000"
            for le in bounds
            if float(le) > 0.5
        }
        stale = f'{FROM_GUARDS}{{guard="orders",verdict="stale"}}'
        for expected, values in {
            "PawldDoesNotGrant": {"pawl_ready": 0, "pawl_leader": 0, "pawl_restoring_seconds": 500},
            "PawlDiskIsFull": {
                "pawl_ready": 0,
                "pawl_store_full": 1,
                "pawl_store_free_bytes": 1000,
            },
            "PawlDiskIsNearlyFull": {
                "pawl_store_free_bytes": 100_000_000,
                "pawl_store_free_needed_bytes": 67_108_864,
            },
            "PawlHoldersAreLate": {"pawl_lease_expired_while_executing_total": 1},
            "PawlRenewalsAreClose": close,
            "PawlTokensWereRaised": {"pawl_token_regressions_total": 1},
            "PawlGuardMetStaleTokens": {stale: 3},
            "PawlCommitsAreSlow": slow,
            "PawldStoodStill": {"pawl_pauses_seconds_total": 4},
            "PawlCertificateExpires": {"pawl_tls_certificate_expiry_timestamp_seconds": 13 * 86400},
            "PawlConnectionsAreRefused": {"pawl_connections_refused_total": 1},
            "PawlStrangersFlood": {
                'pawl_unauthenticated_closed_total{proto="http",reason="displaced"}': 1
            },
            "PawlLimitIsNear": {'pawl_limit_use{limit="leases"}': 1_600_001},
            "PawlSecretsAreWrong": {"pawl_auth_failures_total": 30},
        }.items():
            with self.subTest(expected):
                before = changed(well, {stale: 0}) if stale in values else well
                firing(self, before, changed(before, values), {expected}, grow=True)

    # What a pawld with --store etcd exposes beside the figures of any other.
    CLUSTER = {
        "pawl_leader_changes_total": 1,
        "pawl_etcd_requests_total": 1000,
        "pawl_etcd_request_seconds_total": 5,
        'pawl_cluster_nodes{role="active"}': 1,
        'pawl_cluster_nodes{role="standby"}': 1,
        'pawl_cluster_nodes{role="silent"}': 0,
        'pawl_etcd_endpoint_usable{endpoint="db1:2379"}': 1,
    }

    def test_a_standby_is_no_cause_for_an_alert(self):
        """One that stands by grants nothing, and is well; another one is active."""
        other = 'pawl_standby{instance="db2:7296"}'
        well = changed(self.quiet(), {**self.CLUSTER, other: 0})
        standby = changed(well, {"pawl_standby": 1, "pawl_ready": 0, "pawl_leader": 0})
        firing(self, well, standby, set())

    def test_each_alert_of_a_cluster_fires_for_its_cause_only(self):
        well = changed(self.quiet(), self.CLUSTER)
        for expected, values in {
            "PawlClusterHasNoActive": {"pawl_standby": 1, "pawl_ready": 0, "pawl_leader": 0},
            "PawlClusterHasNoStandby": {'pawl_cluster_nodes{role="standby"}': 0},
            "PawlRoleMovesOften": {"pawl_leader_changes_total": 2},
            "PawlEtcdEndpointIsDown": {'pawl_etcd_endpoint_usable{endpoint="db1:2379"}': 0},
            "PawlEtcdIsSlow": {
                "pawl_etcd_requests_total": 1100,
                "pawl_etcd_request_seconds_total": 25,
            },
        }.items():
            with self.subTest(expected):
                firing(self, well, changed(well, values), {expected}, grow=True)


class SecuredMetricsTest(harness.PawldCase):
    """As in production: over TLS, with a user for Prometheus."""

    pawld = None

    @classmethod
    def setUpClass(cls):
        pass

    def secured(self):
        """A pawld with TLS and one read-only user: (server, its certificate, the authority, the
        file of the secret)."""
        files = harness.scratch("metrics")
        self.addCleanup(shutil.rmtree, files)
        authority = Authority(files, "authority")
        own, users, secret = (
            authority.sign("pawld", LOCAL),
            files / "users",
            files / "prometheus.auth",
        )
        secret.write_bytes(
            subprocess.run(
                [PAWL, "auth", "add", "prometheus", "--role", "observe", "--file", users],
                check=True,
                capture_output=True,
                timeout=harness.PATIENCE,
            ).stdout
        )
        server = self.own_pawld(
            settings=f'auth_file = "{users}"\n[tls]\ncert = "{own.cert}"\nkey = "{own.key}"\n',
            tls=trusting(authority),
        )
        return server, own, authority, secret

    def test_wrong_secrets_are_counted_over_resp_and_http(self):
        server, _, authority, secret = self.secured()
        web = Web(server.http_port, tls=trusting(authority), auth=secret.read_text().strip())
        self.assertEqual(figure(web.get("/metrics").body.decode(), "pawl_auth_failures_total"), 0)
        self.assertError(self.client(2, server).call("AUTH", "prometheus", "guess"), "WRONGPASS")
        guess = Web(server.http_port, tls=trusting(authority), auth="prometheus:guess")
        self.assertEqual(guess.get("/metrics").status, 401)
        self.assertEqual(figure(web.get("/metrics").body.decode(), "pawl_auth_failures_total"), 2)

    def test_certificate_expiry_follows_a_reload(self):
        server, own, authority, secret = self.secured()
        web = Web(server.http_port, tls=trusting(authority), auth=secret.read_text().strip())

        def expiry():
            return figure(
                web.get("/metrics").body.decode(), "pawl_tls_certificate_expiry_timestamp_seconds"
            )

        def of(cert):
            return ssl.cert_time_to_seconds(ssl._ssl._test_decode_cert(str(cert))["notAfter"])

        self.assertEqual(expiry(), of(own.cert))
        newer = authority.sign("newer", LOCAL, valid=("20200101000000Z", "20490101000000Z"))
        for old, new in zip(own, newer):
            shutil.copy(new, old)
        server.reload()
        wait_until(lambda: expiry() == of(newer.cert), "the new certificate is in use")

    def test_prometheus_scrapes_over_tls_as_a_read_only_user(self):
        server, _, authority, secret = self.secured()
        prometheus = Prometheus(
            "- job_name: pawld\n  scheme: https\n"
            f"  authorization: {{credentials_file: '{secret}'}}\n"
            f"  tls_config: {{ca_file: '{authority.cert}'}}\n"
            f"  static_configs: [{{targets: ['localhost:{server.http_port}']}}]\n"
        )
        self.addCleanup(prometheus.remove)
        wait_until(lambda: prometheus.query("pawl_leases"), "Prometheus has scraped pawl_leases")


if __name__ == "__main__":
    harness.main()
