"""A private etcd for a test: one node or more, with their own directories and ports, gone when the
test is; and the probe, which drives Pawl's etcd client by lines of text.

    with Cluster(3) as cluster:
        cluster.etcdctl("put", "key", "value")
        cluster.leader().pause()                     # SIGSTOP
        with Probe(cluster.addresses) as probe:
            done = probe.txn("key", "value", "next")

A node keeps its ports over restarts. Environment: ETCD_PROBE is the probe, PAWL_ETCD the server, by
default the etcd of the PATH (scripts/etcd builds others).
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import unittest
import urllib.request

from pawltest.harness import scratch
from pawltest.process import dies_with_parent, free_port, freeze
from pawltest.wait import PATIENCE, wait_until

ASKED_TIME = 0.3  # Seconds: a node that is stopped does not answer.
# What etcd, which has a limit of its own, or etcdctl says when it took too long.
UNKNOWN = ("request timed out", "context deadline exceeded", "leader changed", "no leader")
# And what the same command says after that, if it had been carried out.
DONE_BEFORE = ("already exists", "has been compacted", "authentication is not enabled")

def _said(done):
    return "".join(
        said if isinstance(said, str) else said.decode(errors="replace")
        for said in (done.stdout, done.stderr)
    )


class Node:
    """One member of a cluster. Start it from the main thread."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.client_port, self.peer_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.client_port}"
        self.data = cluster.dir / name
        self.log_path = cluster.dir / f"{name}.log"
        self.process = None

    @property
    def url(self):
        return f"{self.cluster.scheme}://{self.address}"

    @property
    def peer_url(self):
        return f"http://127.0.0.1:{self.peer_port}"

    @property
    def pid(self):
        return self.process.pid

    def command(self):
        words = {
            "name": self.name,
            "data-dir": self.data,
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": self.peer_url,
            "initial-advertise-peer-urls": self.peer_url,
            "initial-cluster": ",".join(f"{n.name}={n.peer_url}" for n in self.cluster.nodes),
            "initial-cluster-state": "new",
            "logger": "zap",
            "log-level": "warn",
            **self.cluster.settings,
        }
        program = os.environ.get("PAWL_ETCD", "etcd")
        return [program, *[f"--{name}={value}" for name, value in words.items()]]

    def start(self):
        """Starts the process and returns at once."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                dies_with_parent(self.command()),
                cwd=self.cluster.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def pause(self):
        freeze([self.pid])

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def raft_term(self):
        """Grows with each election; 0 without an answer. Not with TLS or users."""
        request = urllib.request.Request(f"{self.url}/v3/maintenance/status", b"{}")
        try:
            with urllib.request.urlopen(request, timeout=ASKED_TIME) as answer:
                return int(json.load(answer)["raftTerm"])
        except (OSError, ValueError):
            return 0

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""


class Cluster:
    """`settings`: more flags of etcd. `tls`: (authority, files) of pawltest.tls_files."""

    def __init__(self, nodes=1, settings=None, tls=None):
        self.dir = scratch("etcd")
        self.scheme = "https" if tls else "http"
        self.tls = tls
        self.user = None  # "name:password", for etcdctl
        self.settings = dict(settings or {})
        if tls:
            authority, files = tls
            self.settings |= {
                "cert-file": files.cert,
                "key-file": files.key,
                "trusted-ca-file": authority.cert,
                "client-cert-auth": "true",
            }
        self.nodes = [Node(self, f"n{number + 1}") for number in range(nodes)]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    @property
    def addresses(self):
        return [node.address for node in self.nodes]

    def start(self):
        """Returns once every node answers."""
        for node in self.nodes:
            node.start()
        try:
            self.wait_healthy()
        except BaseException:
            print("".join(node.log()[-2000:] for node in self.nodes))
            self.remove()
            raise
        return self

    def wait_healthy(self, nodes=None):
        wait_until(
            lambda: self.etcdctl("endpoint", "health", check=False, nodes=nodes).returncode == 0,
            "every node of etcd is healthy",
        )

    def etcdctl(self, *words, check=True, **options):
        """A CompletedProcess; `nodes`: those to ask, by default all. With `check` it is run again
        while etcd does not know the outcome, as on a machine that is too busy for it."""
        done = self._etcdctl(*words, **options)
        if not check or done.returncode == 0:
            return done
        until, again = time.monotonic() + PATIENCE, False
        while any(text in _said(done) for text in UNKNOWN) and time.monotonic() < until:
            done, again = self._etcdctl(*words, **options), True
        if done.returncode and not (again and any(text in _said(done) for text in DONE_BEFORE)):
            raise AssertionError(f"etcdctl {words}:\n{_said(done)}")
        return done

    def _etcdctl(self, *words, nodes=None, text=True, **options):
        urls = ",".join(node.url for node in nodes or self.nodes)
        command = ["etcdctl", f"--endpoints={urls}"]
        if self.tls:
            authority, files = self.tls
            command += [f"--cacert={authority.cert}", f"--cert={files.cert}", f"--key={files.key}"]
        if self.user:
            command += [f"--user={self.user}"]
        return subprocess.run(
            [*command, *[str(word) for word in words]],
            env={**os.environ, "ETCDCTL_API": "3"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=None if "input" in options else subprocess.DEVNULL,
            text=text,
            timeout=PATIENCE,
            check=False,
            **options,
        )

    def json(self, *words, **options):
        return json.loads(self.etcdctl(*words, "-w", "json", **options).stdout)

    def leader(self):
        """The node that leads; waits for one."""

        def find():
            for node in self.nodes:
                if node.process is None:
                    continue
                status = self.json("endpoint", "status", nodes=[node])[0]["Status"]
                if status["leader"] == status["header"]["member_id"]:
                    return node
            return None

        return wait_until(find, "a node leads")

    def remove(self):
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


class Probe:
    """Pawl's etcd client. `options`: as of etcd_probe, without the dashes: attempt_ms=100."""

    def __init__(self, addresses, **options):
        words = [
            word
            for name, value in options.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        self._process = subprocess.Popen(
            dies_with_parent([os.environ["ETCD_PROBE"], ",".join(addresses), *words]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines = queue.Queue()
        self._kept = []
        self.troubles = []  # What was reported so far.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._process.stdin.close()
        code = self._process.wait(timeout=PATIENCE)
        self._reader.join()
        self._process.stdout.close()
        if code != 0:
            raise AssertionError(f"etcd_probe exited with {code}")

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def line(self, matches, what, patience=PATIENCE):
        """The first line that matches; the others are kept."""
        for number, line in enumerate(self._kept):
            if matches(line):
                return self._kept.pop(number)
        while True:
            try:
                line = self._lines.get(timeout=patience)
            except queue.Empty:
                text = f"timed out waiting for {what}; {self.troubles[-5:]}"
                raise AssertionError(text) from None
            if line is None:
                raise AssertionError(f"etcd_probe ended before {what}")
            if "trouble" in line:
                self.troubles.append(line)
            if matches(line):
                return line
            if "trouble" not in line:
                self._kept.append(line)

    def kept(self):
        """The lines that nobody has asked for yet."""
        return list(self._kept)

    def command(self, *words):
        self._process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self._process.stdin.flush()

    def begin(self, *words):
        """Begins a call; its number."""
        self.command(*words)
        return self.line(lambda line: "began" in line, f"{words} begins")["call"]

    def event(self, call):
        """The next event of a call."""
        return self.line(
            lambda line: line.get("call") == call and "began" not in line,
            f"an event of call {call}",
        )

    def call(self, *words):
        return self.event(self.begin(*words))

    def txn(self, key, old, new):
        return self.call("txn", key, old, new)

    def write(self, key, old, new):
        """Whether `new` is stored; by an earlier send, if the answer to that came too late."""
        done = self.txn(key, old, new)
        found = done.get("found") or {}
        return done["txn"] == "applied" or (done["sends"] > 1 and found.get("value") == new)

    def range(self, key, end="-", revision=0):
        return self.call("range", key, end, revision)

    def endpoints(self):
        self.command("endpoints")
        return self.line(lambda line: "endpoints" in line, "the endpoints")["endpoints"]

    def wait_usable(self, count):
        """Waits until so many endpoints are usable, with their status known."""

        def usable():
            endpoints = self.endpoints()
            return endpoints if sum(one["usable"] for one in endpoints) == count else None

        return wait_until(usable, f"{count} endpoints are usable")

    def count(self, key, steps, micros=0, seed=1):
        self.command("count", key, steps, micros, seed)
        return self.line(lambda line: "counted" in line, "the end of the count", 4 * PATIENCE)


def main():
    unittest.main(module="__main__", verbosity=2)
