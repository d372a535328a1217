"""A world with a cluster: three pawld on three etcd, each on a machine of its own (a network
namespace), clients on two more; and what a schedule does to them. See world.py, which runs it.

What is recorded beside the logs of the clients: a watcher for each pawld keeps a connection to it,
frozen or not, and notes what it says from memory; an operator and a waiting client talk to whoever
is active; and a rival (rival.py) asks an old active of what has changed since it lost its role. So
what an old active says after another one has taken over is held against the rest.
"""

import random
import time

import access
import clocks
import guards
import hosts
import judge
import network
import processes
import schedule
from base_world import LOCKS, BaseWorld
from clocks import boot_now
from cluster_faults import ClusterFaults
from cluster_processes import ADDRESSES, CLIENT_HOSTS, PAWLDS, ClusterPawld, Etcd
from operator_client import OperatorClient
from pawltest.harness import Closed, Error, wait_until
from recorder import Recorder
from rival import Rival
from waiting_client import WaitingClient

FRESH = 1.0  # Seconds for which the answer of a pawld counts as what it is.


class Watcher(Recorder):
    """Asks one pawld what it is, and what it knows of a lock."""

    def __init__(self, world, pawld):
        self.world, self.pawld = world, pawld
        self.role, self.epoch, self.at = "", 0, 0.0
        super().__init__(
            lambda: pawld.client_as("operator"),
            random.Random(f"{world.profile.seed}/{pawld.name}"),
            LOCKS,
        )

    def step(self, client):
        sent, at = boot_now(), time.monotonic()
        status = client.call("STATUS")
        if isinstance(status, Error):
            return
        self.role, self.epoch, self.at = status["role"], status["epoch"] or 0, at
        if self.role != "active":
            return
        self.world.note_active(self.epoch, sent, status["last_token"] or 0, self.history)
        lock, sent = self.dice.choice(self.locks), boot_now()
        seen = client.call("INSPECT", lock)
        if not isinstance(seen, Error) and seen["token"] is not None:
            self.history.append(
                {
                    "kind": "sighting",
                    "lock": lock,
                    "token": seen["token"],
                    "invoked_ns": sent,
                    "returned_ns": boot_now(),
                }
            )

    def is_active(self):
        """As it has said in this life, a moment ago."""
        fresh = max(self.pawld.started, time.monotonic() - FRESH)
        return self.role == "active" and self.at > fresh


class OfTheActive:
    """A client that ends when its pawld is not the active one any more."""

    def __init__(self, client):
        self._client = client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.close()

    def read(self):
        return self._checked(self._client.read())

    def call(self, *words):
        return self._checked(self._client.call(*words))

    @staticmethod
    def _checked(reply):
        if isinstance(reply, Error) and reply.code in ("READONLY", "LOADING"):
            raise Closed(reply.encode())
        return reply


class ClusterOperator(OperatorClient):
    """A request that has ended is remembered by the pawld that was active then, and no other."""

    def era(self, client):
        status = client.call("STATUS")
        return None if isinstance(status, Error) else status["epoch"]


class ClusterWorld(BaseWorld):
    patient = 60.0  # Nobody is active while etcd has no majority.
    role_ttl_ms = schedule.ROLE_TTL_MS
    call_time = 8.0  # Seconds: longer than any pawld is frozen, so that it finds requests waiting.

    def _build(self, guard_mode):
        self.pawlds, self.watchers, self.rivals = {}, {}, {}
        self.epoch = 0  # The greatest that was seen.
        self.served_after = []  # Seconds from healing until each client was granted something.
        self.access = access.Access(self.dir, self.profile.tls)
        self.clocks = self._part(clocks.Clocks(schedule.CLOCKS, not self.profile.tls))
        self.hosts = self._part(hosts.Hosts(ADDRESSES))
        self.etcd = self._part(Etcd(self.hosts, self.dir))
        self.guard = self._part(guards.make(self.profile.guard, self.dir, guard_mode))
        self.pawlds = {
            name: ClusterPawld(name, self, clock=number % (schedule.CLOCKS + 1))
            for number, name in enumerate(PAWLDS)
        }
        self.clients = {f"c{n}": processes.Client(n, self) for n in range(self.profile.clients)}
        self.run = processes.Run(self, random.Random(f"{self.profile.seed}/run"))
        self.faults = ClusterFaults(self)

    def _servers(self):
        return self.pawlds.values()

    def logs(self):
        return "".join(pawld.log() for pawld in self.pawlds.values()) + self.etcd.log()

    # -- what the parts ask of it

    def enter(self, who):
        return self.hosts.enter(CLIENT_HOSTS[(ord(who[-1]) if who else 0) % len(CLIENT_HOSTS)])

    def address(self, name):
        """Every client begins with another pawld."""
        first = ord(name[-1]) % len(PAWLDS)
        listed = PAWLDS[first:] + PAWLDS[:first]
        return ",".join(f"{self.access.scheme}{ADDRESSES[n]}:{network.PORT}" for n in listed)

    # -- roles

    def note_active(self, epoch, at, last_token, history):
        """A pawld says that it is active. Every takeover is held against every token handed out
        before."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.done["takeovers"] += 1
            history.append({"kind": "start", "at_ns": at, "last_token": last_token})

    def active(self):
        """None: nobody is known to be active at the moment."""
        known = [
            watcher
            for watcher in self.watchers.values()
            if watcher.is_active() and watcher.pawld.runs() and not watcher.pawld.leaves
        ]
        return max(known, key=lambda watcher: watcher.epoch).pawld if known else None

    def standby(self, number):
        active = self.active()
        others = [p for p in self.pawlds.values() if p is not active and p.runs() and not p.leaves]
        return others[number % len(others)] if active and others else None

    def connect_to_active(self, user):
        pawld = self.active()
        if pawld is None:
            raise OSError("no pawld is active at the moment")
        return OfTheActive(pawld.client_as(user))

    # -- running

    def start_everything(self):
        for node in self.etcd.nodes.values():
            node.start()
        for pawld in self.pawlds.values():
            pawld.launch()

    def _start(self):
        self.etcd.start()
        self.start_everything()
        self.watchers = {name: Watcher(self, pawld) for name, pawld in self.pawlds.items()}
        self.recorders = list(self.watchers.values())
        wait_until(self.active, "a pawld is active")
        seed = self.profile.seed
        self.rivals = {
            name: Rival(self, pawld, random.Random(f"{seed}/rival/{name}"))
            for name, pawld in self.pawlds.items()
        }
        self.recorders += [
            *self.rivals.values(),
            ClusterOperator(
                lambda: self.connect_to_active("operator"), random.Random(f"{seed}/operator"), LOCKS
            ),
            WaitingClient(
                lambda: self.connect_to_active("worker"), random.Random(f"{seed}/waiter"), LOCKS[:3]
            ),
        ]

    def _watch_servers(self):
        for pawld in self.pawlds.values():
            if pawld.process is None or pawld.process.poll() is None or pawld.leaves:
                continue
            text = f"{pawld.name} exited unexpectedly with {pawld.process.returncode}"
            raise AssertionError(f"{text}:\n{pawld.log()[-3000:]}")
        for node in self.etcd.nodes.values():
            if node.process is None or node.process.poll() is None:
                continue
            if node.data != self.etcd.small or not self.etcd.disk_is_full:
                raise AssertionError(f"{node.name} has ended:\n{self.etcd.log()}")

    def _heal(self):
        while self.undo or self.faults.space_is_busy():
            self._watch()
            if self.undo:
                self._undo_next()
            else:
                self.start_everything()
            time.sleep(0.02)
        self.start_everything()
        self.note("healed")
        self.calm_ns = boot_now()

    def _come_to_rest(self):
        for client in self.clients.values():
            wait_until(
                lambda c=client: self._granted_since_calm(c),
                f"all is healed, and {client.name} is granted something",
            )
            self.served_after.append(self._first_grant_since_calm(client))
        # From here on everybody waits in a line that moves: P7 is about that. How long it took to
        # get there is printed, and depends on the machine.
        self.calm_ns = boot_now()
        super()._come_to_rest()

    def _first_grant_since_calm(self, client):
        at = min(
            event["at"]
            for event in judge.read_events(client.lives[-1].path)
            if event["e"] == "granted" and event["at"] > self.calm_ns
        )
        return (at - self.calm_ns) / 1e9

    def versions(self):
        return [self.etcd.version]

    def figures(self):
        return {"until a grant after healing": self.served_after}
