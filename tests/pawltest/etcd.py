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
import unittest

from pawltest.harness import scratch
from pawltest.process import dies_with_parent, free_port, freeze
from pawltest.wait import PATIENCE, wait_until


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

    def etcdctl(self, *words, check=True, nodes=None, text=True, **options):
        """A CompletedProcess; `nodes`: those to ask, by default all."""
        urls = ",".join(node.url for node in nodes or self.nodes)
        command = ["etcdctl", f"--endpoints={urls}"]
        if self.tls:
            authority, files = self.tls
            command += [f"--cacert={authority.cert}", f"--cert={files.cert}", f"--key={files.key}"]
        if self.user:
            command += [f"--user={self.user}"]
        done = subprocess.run(
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
        if check and done.returncode:
            raise AssertionError(f"etcdctl {words}:\n{done.stdout}{done.stderr}")
        return done

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
