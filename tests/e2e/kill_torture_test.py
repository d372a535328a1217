"""kill -9 under load, again and again, with an outside record of every acknowledgement. Hard cases 34, 38.

Workers acquire (with request ids), renew and release over their own connections; what they were told is written to the
record before their next step. After every kill pawld is started again, each lock is inspected, and each worker asks again
for what it holds and for what was never answered. `record.Checker` judges.

Environment: PAWL_TORTURE_KILLS (200) and PAWL_TORTURE_SEED.
"""

import concurrent.futures
import json
import os
import random
import threading
import time

import harness
import record
from harness import Closed, Error, request_id, wait_until
from resp import encode

KILLS = int(os.environ.get("PAWL_TORTURE_KILLS", "200"))
SEED = int(os.environ.get("PAWL_TORTURE_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
WORKERS = 6
OWN_LOCKS = 16
CONTENDED = ["contended/0", "contended/1"]
TTL = 600000          # Longer than the whole run: nothing ends by itself.
ACKS_PER_KILL_MIN = 20
ACKS_PER_KILL_MAX = 1000


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


class Worker:
    """One connection at a time; remembers what it was told across kills."""

    def __init__(self, number, ledger):
        self.ledger = ledger
        self.dice = random.Random(f"{SEED}/{number}")
        self.own = [f"own/{number}/{n}" for n in range(OWN_LOCKS)]
        self.held = {}     # request id -> (lock, lease)
        self.asked = {}    # request id -> lock: sent, never answered
        self.giving = {}   # request id -> lease: release sent, never answered
        self.renewals = 0
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
            burst = self.dice.sample(sorted(self.held), self.dice.randint(1, min(6, len(self.held))))
            self.give([(request, self.held[request][1]) for request in burst])

    def ask(self, wanted):
        for request, lock in wanted:
            if request not in self.held:
                self.asked[request] = lock
            self.ledger.add("ask", request, lock)
        self.client.send_bytes(b"".join(
            encode("ACQUIRE", lock, "TTL", TTL, "WAIT", 60000, "REQUEST", request) for request, lock in wanted))
        for request, lock in wanted:
            self.take_answer(request, lock, self.client.read())

    def take_answer(self, request, lock, reply):
        if isinstance(reply, dict):
            self.ledger.add("granted", request, reply["lease"], reply["token"])
            self.held[request] = (lock, reply["lease"])
        elif isinstance(reply, Error) and reply.code == "LOST":
            self.ledger.add("lost", request)
            self.held.pop(request, None)
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
            reply = self.client.read()
            if not isinstance(reply, int):
                raise AssertionError(f"RELEASE answered {reply!r}")
            self.ledger.add("released", request, reply)
            del self.giving[request]

    def release_contended(self):
        self.give([(request, lease) for request, (lock, lease) in self.held.items() if lock in CONTENDED])

    def renew(self):
        leases = [lease for _, lease in self.held.values()]
        if self.client.call("MRENEW", *leases) != [TTL] * len(leases):
            raise AssertionError("a lease that was acknowledged and never released cannot be renewed")
        self.renewals += len(leases)


class KillTortureTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None

    def test_every_acknowledged_grant_and_release_survives_kill_9(self):
        # Hard cases 34, 38: what was acknowledged is there, what was not is all or nothing, tokens only grow.
        print(f"seed {SEED}")
        server = self.own_pawld(start=False)
        ledger = Record(server.dir / "record")
        self.addCleanup(os.close, ledger.file)
        workers = [Worker(n, ledger) for n in range(WORKERS)]
        dice = random.Random(SEED)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for _ in range(KILLS):
                server.start()
                self.look(server, ledger, workers)
                self.one_round(server, ledger, workers, pool, ledger.acks + dice.randint(ACKS_PER_KILL_MIN, ACKS_PER_KILL_MAX))
                self.assertEqual(ledger.checker.faults, [])
        server.start()
        self.look(server, ledger, workers)
        self.judge(server, ledger, workers, time.monotonic() - began)

    def one_round(self, server, ledger, workers, pool, goal):
        """Lets them work until `goal` acknowledgements are recorded, then kills pawld in the middle of it."""
        running = [pool.submit(worker.run, server.port) for worker in workers]
        wait_until(lambda: ledger.acks >= goal or any(work.done() for work in running), "enough was acknowledged")
        server.kill()
        for work in running:
            work.result(timeout=harness.PATIENCE)

    def look(self, server, ledger, workers):
        """What each lock is right after the restart, while nobody else talks to pawld."""
        locks = CONTENDED + [lock for worker in workers for lock in worker.own]
        ledger.add("restart")
        with server.client(3) as client:
            for lock, seen in zip(locks, client.pipeline(["INSPECT", lock] for lock in locks)):
                ledger.add("found", lock, seen["token"])
        self.assertEqual(ledger.checker.faults, [])

    def judge(self, server, ledger, workers, seconds):
        counts = ledger.checker.counts
        segments = [int(path.name.split("-")[1].split(".")[0]) for path in server.data.glob("segment-*.log")]
        checkpoints = [path.name for path in server.data.glob("checkpoint-*")]
        print(f"{KILLS} kills, {counts.get('granted', 0)} grants, {counts.get('released', 0)} releases, "
              f"{sum(worker.renewals for worker in workers)} renewals, {len(ledger.checker.owner_of)} tokens up to "
              f"{ledger.checker.greatest}, segments up to {max(segments)}, {checkpoints}, {seconds:.0f} s")
        self.assertEqual(record.check(ledger.read_back()), [], "the record as it stands in its file")
        self.assertGreaterEqual(ledger.acks, KILLS * ACKS_PER_KILL_MIN, "too little load to mean anything")
        if KILLS >= 200:
            self.assertGreater(max(segments), 10, "no segment was ever switched")
            self.assertTrue(checkpoints, "no checkpoint was ever written")


if __name__ == "__main__":
    harness.main()
