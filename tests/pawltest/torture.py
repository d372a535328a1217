"""Work that can be held against pawld after any end of it: workers that acquire, renew and release
over their own connections, and a record of the replies, written before the next step.
`record.Checker` judges.

    ledger = torture.Record(path)
    workers = [torture.Worker(n, ledger, seed) for n in range(6)]
    worker.run(port)                              # in a thread; until the connection is lost
    torture.look(server, ledger, workers)         # after a restart, without other clients of pawld
    worker.settle_again(port)                     # repeats every request without a reply
"""

import json
import os
import random
import threading

from pawltest import harness, record
from pawltest.harness import Closed, Error, request_id
from pawltest.resp import encode

OWN_LOCKS = 16
CONTENDED = ["contended/0", "contended/1"]
TTL = 600000  # Longer than the whole run: nothing expires.


class Record:
    """Appends events to a file and shows them to the checker, in one order for all threads."""

    def __init__(self, path):
        self.path = path
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.checker = record.Checker()
        self.mutex = threading.Lock()
        self.acks = 0

    def add(self, *event):
        with self.mutex:
            os.write(self.file, (json.dumps(event) + "\n").encode())
            self.checker.take(event)
            if event[0] in ("granted", "released"):
                self.acks += 1

    def read_back(self):
        with open(self.path, encoding="utf-8") as file:
            return [tuple(json.loads(line)) for line in file]


def of_the_active(reply):
    """The reply. One that says that another pawld is active by now ends this connection."""
    if isinstance(reply, Error) and reply.code == "READONLY":
        raise Closed(reply.encode())
    return reply


class Worker:
    """One connection at a time; remembers the replies across kills."""

    def __init__(self, number, ledger, seed):
        self.ledger = ledger
        self.dice = random.Random(f"{seed}/{number}")
        self.own = [f"own/{number}/{n}" for n in range(OWN_LOCKS)]
        self.held = {}  # request id -> (lock, lease)
        self.asked = {}  # request id -> lock: sent, never answered
        self.giving = {}  # request id -> lease: release sent, never answered
        self.renewals = 0
        self.refused = 0  # for lack of disk space
        self.client = None

    def run(self, port):
        """Works until the connection dies under it."""
        try:
            with harness.Client(port, 3) as self.client:
                self.settle()
                while True:
                    self.step()
        except (Closed, OSError):
            return

    def settle_again(self, port):
        with harness.Client(port, 3) as self.client:
            self.settle()

    def settle(self):
        """Asks again for everything it holds, and for what was never answered."""
        self.give(list(self.giving.items()))
        self.ask([(request, lock) for request, (lock, _) in self.held.items()])
        self.release_contended()
        self.ask([(request, lock) for request, lock in self.asked.items() if lock not in CONTENDED])
        for request, lock in list(self.asked.items()):
            self.ask([(request, lock)])
            self.release_contended()

    def step(self):
        choice = self.dice.random()
        free = [lock for lock in self.own if lock not in {lock for lock, _ in self.held.values()}]
        if choice < 0.25:
            self.ask([(request_id(), self.dice.choice(CONTENDED))])
            self.release_contended()
        elif choice < 0.35 and self.held:
            self.renew()
        elif len(free) > OWN_LOCKS // 2 or (free and choice < 0.6):
            burst = self.dice.sample(free, self.dice.randint(1, min(6, len(free))))
            self.ask([(request_id(), lock) for lock in burst])
        else:
            burst = self.dice.sample(
                sorted(self.held), self.dice.randint(1, min(6, len(self.held)))
            )
            self.give([(request, self.held[request][1]) for request in burst])

    def ask(self, wanted):
        for request, lock in wanted:
            if request not in self.held:
                self.asked[request] = lock
            self.ledger.add("ask", request, lock)
        self.client.send_bytes(
            b"".join(
                encode("ACQUIRE", lock, "TTL", TTL, "WAIT", 60000, "REQUEST", request)
                for request, lock in wanted
            )
        )
        for request, lock in wanted:
            self.take_answer(request, lock, of_the_active(self.client.read()))

    def take_answer(self, request, lock, reply):
        if isinstance(reply, dict):
            self.ledger.add("granted", request, reply["lease"], reply["token"])
            self.held[request] = (lock, reply["lease"])
        elif isinstance(reply, Error) and reply.code == "LOST":
            self.ledger.add("lost", request)
            self.held.pop(request, None)
        elif isinstance(reply, Error) and reply.code == "FULL" and request not in self.held:
            self.refused += 1
        else:
            raise AssertionError(f"ACQUIRE {lock} answered {reply!r}")
        self.asked.pop(request, None)

    def give(self, leases):
        for request, lease in leases:
            self.ledger.add("give", request)
            self.giving[request] = lease
            self.held.pop(request, None)
        self.client.send_bytes(b"".join(encode("RELEASE", lease) for _, lease in leases))
        for request, _ in leases:
            reply = of_the_active(self.client.read())
            if not isinstance(reply, int):
                raise AssertionError(f"RELEASE answered {reply!r}")
            self.ledger.add("released", request, reply)
            del self.giving[request]

    def release_contended(self):
        self.give(
            [(request, lease) for request, (lock, lease) in self.held.items() if lock in CONTENDED]
        )

    def renew(self):
        leases = [lease for _, lease in self.held.values()]
        if of_the_active(self.client.call("MRENEW", *leases)) != [TTL] * len(leases):
            raise AssertionError(
                "a lease that was acknowledged and never released cannot be renewed"
            )
        self.renewals += len(leases)


def look(server, ledger, workers):
    """What each lock is right after the restart, without other clients of pawld. The faults seen
    so far."""
    locks = CONTENDED + [lock for worker in workers for lock in worker.own]
    ledger.add("restart")
    with server.client(3) as client:
        for lock, seen in zip(locks, client.pipeline(["INSPECT", lock] for lock in locks)):
            ledger.add("found", lock, seen["token"])
    return ledger.checker.faults
