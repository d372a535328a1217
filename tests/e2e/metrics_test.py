#!/usr/bin/python3
"""Metrics on the real binary, as promtool and a real Prometheus see them; and the rules that come along.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import harness
from harness import wait_until
from tls_files import LOCAL, Authority, trusting
from web import Web

PAWL = os.environ.get("PAWL", "")
RULES = pathlib.Path(__file__).parents[2] / "deploy/prometheus/pawl.rules.yml"
TEXTBOOK = ("lock_acquire_success_total", "lock_acquire_latency_ms", "lease_expired_while_executing_total")
WITH_GUARDS = ("fencing_reject_total", "token_gap", "critical_write_without_token_total")


def promtool(*words, text=None):
    done = subprocess.run(["promtool", *[str(word) for word in words]], input=text, capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """One of its own, with nothing but `scrape`, the text of a scrape_configs entry, and Pawl's rules."""

    def __init__(self, scrape):
        self.dir = harness.scratch("prometheus")
        self.port = free_port()
        (self.dir / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{RULES}]\nscrape_configs:\n{scrape}")
        with open(self.dir / "log", "wb") as log:
            self.process = subprocess.Popen(
                harness.guarded(["prometheus", f"--config.file={self.dir}/prometheus.yml", f"--storage.tsdb.path={self.dir}/data",
                                 f"--web.listen-address=127.0.0.1:{self.port}"]),
                cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, path):
        """The data of its API; nothing while it does not answer."""
        if self.process.poll() is not None:
            raise AssertionError("prometheus ended:\n" + (self.dir / "log").read_text()[-4000:])
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=10) as reply:
                return json.load(reply)["data"]
        except (OSError, urllib.error.URLError):
            return None

    def query(self, expression):
        """The samples; an empty list while there are none."""
        return (self.get("query?" + urllib.parse.urlencode({"query": expression})) or {"result": []})["result"]

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

    def test_promtool_has_nothing_to_say_about_a_scrape(self):
        self.acquire(self.client(), self.lock())
        reply = self.scrape()
        self.assertEqual(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(promtool("check", "metrics", text=reply.body.decode()), (0, ""))

    def test_figures_tell_what_happened(self):
        def figure(sample):
            return float(re.search(f"^{re.escape(sample)} (.*)$", self.scrape().body.decode(), re.M)[1])

        granted, leases = 'pawl_lock_acquires_total{result="granted"}', "pawl_leases"
        before = figure(granted), figure(leases)
        self.assertEqual(self.web.acquire(self.lock()).status, 201)
        self.acquire(self.client(), self.lock())
        self.assertEqual((figure(granted), figure(leases)), (before[0] + 2, before[1] + 2))
        self.assertGreater(figure("pawl_store_size_bytes"), 0)
        self.assertEqual(figure('pawl_connections{proto="http"}'), 1, "the scrape itself")

    def test_a_real_prometheus_scrapes_it_and_knows_the_textbook_names(self):
        self.acquire(self.client(), self.lock())
        prometheus = Prometheus("- job_name: pawld\n"
                                f"  static_configs: [{{targets: ['127.0.0.1:{self.pawld.http_port}']}}]\n")
        self.addCleanup(prometheus.remove)
        leases = wait_until(lambda: prometheus.query("pawl_leases"), "Prometheus has scraped pawl_leases")
        self.assertGreaterEqual(float(leases[0]["value"][1]), 1)
        self.assertEqual(leases[0]["metric"]["job"], "pawld")
        for name in ("lock_acquire_success_total", "lease_expired_while_executing_total"):
            wait_until(lambda name=name: prometheus.query(name), name)
        rules = {rule["name"]: rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]}
        self.assertLessEqual(set(TEXTBOOK), set(rules))
        for name, rule in rules.items():
            self.assertNotEqual(rule["health"], "err", (name, rule))

    def test_rules_are_clean_and_ask_only_for_what_a_scrape_tells(self):
        code, said = promtool("check", "rules", RULES)
        self.assertEqual(code, 0, said)
        text = RULES.read_text()
        told = set(re.findall(r"^# TYPE (\w+)", self.scrape().body.decode(), re.M))
        rules = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        asked = {re.sub("_bucket$", "", name) for name in re.findall(r"\b(?:pawl|process)_\w+", rules)}
        self.assertEqual(asked - told - {"pawl_textbook", "pawl_alerts"}, set())
        for name in WITH_GUARDS:
            self.assertIn(f"#   {name} ", text, "named as one that comes with guards")


class GuardedMetricsTest(harness.PawldCase):
    """As in production: over TLS, with a user for Prometheus."""

    pawld = None

    @classmethod
    def setUpClass(cls):
        pass

    def test_a_real_prometheus_scrapes_over_tls_as_a_user_who_may_only_look(self):
        files = harness.scratch("metrics")
        self.addCleanup(shutil.rmtree, files)
        authority = Authority(files, "authority")
        own, users, secret = authority.sign("pawld", LOCAL), files / "users", files / "prometheus.auth"
        secret.write_bytes(subprocess.run([PAWL, "auth", "add", "prometheus", "--role", "observe", "--file", users], check=True,
                                          capture_output=True, timeout=harness.PATIENCE).stdout)
        server = self.own_pawld(settings=f'auth_file = "{users}"\n[tls]\ncert = "{own.cert}"\nkey = "{own.key}"\n',
                                tls=trusting(authority))
        prometheus = Prometheus("- job_name: pawld\n  scheme: https\n"
                                f"  authorization: {{credentials_file: '{secret}'}}\n"
                                f"  tls_config: {{ca_file: '{authority.cert}'}}\n"
                                f"  static_configs: [{{targets: ['localhost:{server.http_port}']}}]\n")
        self.addCleanup(prometheus.remove)
        wait_until(lambda: prometheus.query("pawl_leases"), "Prometheus has scraped pawl_leases")


if __name__ == "__main__":
    harness.main()
