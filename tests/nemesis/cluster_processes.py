"""The servers of a cluster: three etcd and three pawld, each on a machine of its own.

    etcd = Etcd(hosts, directory)                # .nodes, .leader(), .fill(), .free()
    pawld = ClusterPawld("p1", world)            # .launch(), .kill(), .freeze(), .thaw()

Start them from the main thread: they die with it. What is asked of etcd here is asked from the
address of the world, which nothing cuts.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from network import HTTP_PORT, PORT
from pawltest import disk_faults, harness
from pawltest.process import dies_with_parent, freeze, resume
from pawltest.wait import wait_until

ETCDS, PAWLDS, CLIENT_HOSTS = ["e1", "e2", "e3"], ["p1", "p2", "p3"], ["a", "b"]
ADDRESSES = {
    **{name: f"10.77.0.1{name[1]}" for name in ETCDS},
    **{name: f"10.77.0.2{name[1]}" for name in PAWLDS},
    **{name: f"10.77.0.3{number}" for number, name in enumerate(CLIENT_HOSTS, 1)},
}
CLIENT_PORT, PEER_PORT = 2379, 2380
QUOTA = 24 << 20
# The log of etcd takes its files in pieces of 64 MiB, two at a time.
SMALL = 288 << 20
JUNK = 1 << 20  # Bytes of a value.
CALL_TIME = 1.0  # Seconds.
# Of what is done beside the rest: on a busy machine a shorter one would begin again for ever.
PATIENT_CALL_TIME = 10.0
ETCDCTL_TIME = "30s"


class Process:
    """A server that is killed, frozen and started again."""

    process = None
    frozen = False
    deposed = False  # Another one has taken over while it was frozen.
    leaves = False  # It was told to stop.
    started = 0.0

    def runs(self):
        return self.process is not None and self.process.poll() is None and not self.frozen

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        self.frozen = self.leaves = False

    def freeze(self):
        freeze([self.process.pid])
        self.frozen, self.deposed = True, False

    def thaw(self):
        if self.process is not None:
            resume([self.process.pid])
        self.frozen = False


class EtcdNode(Process):
    def __init__(self, name, cluster, data):
        self.name, self.cluster, self.data = name, cluster, data
        self.host = ADDRESSES[name]
        self.log_path = cluster.dir / f"{name}.log"

    def start(self):
        if self.process is not None:
            return
        client, peer = f"http://{self.host}:{CLIENT_PORT}", f"http://{self.host}:{PEER_PORT}"
        words = {
            "name": self.name,
            "data-dir": self.data / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": ",".join(
                f"{name}=http://{ADDRESSES[name]}:{PEER_PORT}" for name in ETCDS
            ),
            "quota-backend-bytes": QUOTA,
            "logger": "zap",
            "log-level": "error",
        }
        command = [
            *self.cluster.hosts.enter(self.name),
            os.environ.get("PAWL_ETCD", "etcd"),
            *[f"--{word}={value}" for word, value in words.items()],
        ]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                dies_with_parent(command),
                cwd=self.cluster.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def call(self, path, body, timeout=CALL_TIME):
        """One request to its JSON interface; None without an answer."""
        request = urllib.request.Request(
            f"http://{self.host}:{CLIENT_PORT}/v3/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except (OSError, ValueError, urllib.error.HTTPError):
            return None

    def leads(self):
        status = self.call("maintenance/status", {})
        return bool(status) and status.get("leader") == status["header"]["member_id"]


class Etcd:
    """e3 is on a small disk, which can be filled."""

    def __init__(self, hosts, directory):
        self.hosts, self.dir = hosts, directory
        self.disk_is_full = False
        self.version = "etcd"
        self._mount = disk_faults.small_tmpfs(SMALL)
        self.small = self._mount.__enter__()
        self.nodes = {
            name: EtcdNode(name, self, self.small if name == ETCDS[-1] else directory / name)
            for name in ETCDS
        }
        for name in ETCDS[:-1]:
            (directory / name).mkdir()

    @property
    def addresses(self):
        return ",".join(f"{node.host}:{CLIENT_PORT}" for node in self.nodes.values())

    def start(self):
        for node in self.nodes.values():
            node.start()
        leader = wait_until(self.leader, "etcd has a leader")
        self.version = "etcd " + leader.call("maintenance/status", {})["version"]

    def leader(self):
        """The node that leads; None if nobody says so now."""
        return next((n for n in self.nodes.values() if n.runs() and n.leads()), None)

    def log(self):
        return "".join(
            f"--- {node.name}\n{node.log_path.read_text(errors='replace')[-3000:]}"
            for node in self.nodes.values()
            if node.log_path.exists()
        )

    # -- no space, by its quota

    def fill(self):
        """Writes until it refuses; whether it does."""
        return self.put_junk(2 * QUOTA // JUNK) and bool(self.alarms())

    def put_junk(self, count):
        """Values that are in the way, until one is refused; whether one was."""
        value = base64.b64encode(b"junk" * (JUNK // 4)).decode()
        node = self.leader()
        for number in range(count if node else 0):
            key = base64.b64encode(b"junk%d" % number).decode()
            if node.call("kv/put", {"key": key, "value": value}, PATIENT_CALL_TIME) is None:
                return True
        return False

    def alarms(self):
        for node in self.nodes.values():
            found = node.call("maintenance/alarm", {"action": "GET"}) if node.runs() else None
            if found is not None:
                return found.get("alarms", [])
        return []

    def free(self):
        """As docs/how-to/run-a-cluster.md says: compact, defragment each member, disarm. Whether
        all of it was done."""
        try:
            self.etcdctl("del", "junk", "--prefix")
            revision = self.json("get", "nothing")["header"]["revision"]
            self.etcdctl("compact", str(revision), check=False)  # pawld may have been faster.
            for node in self.nodes.values():
                self.etcdctl("defrag", nodes=[node])
            self.etcdctl("alarm", "disarm")
        except subprocess.CalledProcessError:
            return False
        return True

    def etcdctl(self, *words, nodes=None, check=True):
        endpoints = ",".join(
            f"http://{node.host}:{CLIENT_PORT}" for node in nodes or self.nodes.values()
        )
        return subprocess.run(
            ["etcdctl", f"--endpoints={endpoints}", f"--command-timeout={ETCDCTL_TIME}", *words],
            env={**os.environ, "ETCDCTL_API": "3"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # Warnings of its own.
            text=True,
            check=check,
        )

    def json(self, *words):
        return json.loads(self.etcdctl(*words, "-w", "json").stdout)

    # -- a full disk

    def fill_disk(self):
        """Of e3, which ends by itself when it cannot write."""
        self.disk_is_full = True
        for piece in (1 << 20, 4 << 10):  # It may be faster; full is full.
            with contextlib.suppress(OSError), open(self.small / "ballast", "ab") as file:
                while True:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, piece)

    def free_disk(self):
        (self.small / "ballast").unlink(missing_ok=True)
        self.disk_is_full = False

    def close(self):
        for node in self.nodes.values():
            node.kill()
        self._mount.__exit__(None, None, None)
        for name in ETCDS[:-1]:
            shutil.rmtree(self.dir / name, ignore_errors=True)


class ClusterPawld(Process):
    """One of the pawld. `clock`: its time namespace, another one for each."""

    def __init__(self, name, world, clock):
        self.name, self.world, self.clock = name, world, clock
        self.host = ADDRESSES[name]
        self.log_path = world.dir / f"{name}.log"
        self.config = world.dir / f"{name}.toml"
        # The tables of TOML come last; access.settings may end with one.
        self.config.write_text(
            f"{world.access.settings}\n[etcd]\nrole_ttl_ms = {world.role_ttl_ms}\n"
            f"quota_bytes = {QUOTA}\n",
            encoding="utf-8",
        )

    def launch(self):
        if self.process is not None:
            return
        command = [
            *self.world.hosts.enter(self.name),
            *self.world.clocks.enter(self.clock),
            harness.binary(),
            "--store=etcd",
            f"--etcd={self.world.etcd.addresses}",
            "--cluster=world",
            f"--resp={self.host}:{PORT}",
            f"--http=127.0.0.1:{HTTP_PORT}",
            f"--config={self.config}",
        ]
        self.started = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                dies_with_parent(command),
                cwd=self.world.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def client_as(self, user):
        return self.world.access.client(PORT, user, host=self.host, timeout=self.world.call_time)

    def log(self):
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return f"--- {self.name}\n{text[-12000:]}"
