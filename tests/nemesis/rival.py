"""Two that are active at once, provoked on purpose: what the older one says.

A rival holds a lease that it got from one pawld while that was active. As soon as another one is
active it gives the lease back there, and only then asks the older one, on the connection that it
has kept: a pawld that wakes up, or is cut off from etcd, and answers from its memory shows a lease
that was over before the question was sent (P4). One that is right says nothing, or who is active.
"""

import time

from clocks import boot_now
from pawltest.harness import Closed, Error, request_id
from recorder import Recorder

CLIENT = 97
TTL_MS = 60_000  # Longer than any takeover takes.
HOLD = 15.0  # Seconds; then it begins again.
LOOK_EVERY = 0.02
SETTLED_WITHIN = 5.0  # Seconds after a takeover until another pawld is known to be active.


class Rival(Recorder):
    def __init__(self, world, pawld, dice):
        self.world, self.pawld = world, pawld
        self.asked = 0  # The last epoch of this pawld after whose end it was asked.
        self._number = 0
        super().__init__(lambda: pawld.client_as("operator"), dice, [])

    def step(self, client):
        status = client.call("STATUS")
        if isinstance(status, Error) or status["role"] != "active":
            return
        held = self._acquire(client)
        if held is None:
            return
        until = time.monotonic() + HOLD
        while time.monotonic() < until and not self._stopping.is_set():
            if self.world.epoch > status["epoch"]:
                return self._give_back_and_ask(client, held, status["epoch"])
            time.sleep(LOOK_EVERY)
        self._release(client, held)

    def _acquire(self, client):
        """As a line of the history; None: it was not granted."""
        self._number += 1
        attempt = {
            "kind": "attempt",
            "client": CLIENT,
            "request": request_id(),
            "locks": [f"rival/{self.pawld.name}/{self._number}"],
            "ttl_ms": TTL_MS,
            "asked_ns": boot_now(),
        }
        self.history.append(attempt)
        try:
            grant = client.call(
                *("ACQUIRE", attempt["locks"][0], "TTL", TTL_MS, "REQUEST", attempt["request"])
            )
        except (Closed, OSError):
            attempt["ended_ns"] = boot_now()
            raise
        if not isinstance(grant, dict):
            attempt["ended_ns"] = boot_now()
            return None
        attempt.update(
            lease=grant["lease"],
            token=grant["token"],
            floor=grant["floor"],
            waited_ms=grant["waited_ms"],
            answered_ns=boot_now(),
        )
        return attempt

    def _release(self, client, held):
        """Whether it was answered: the lease is over then."""
        release = {"kind": "release", "token": held["token"], "invoked_ns": boot_now()}
        held["believed_until_ns"] = release["invoked_ns"]
        self.history.append(release)
        live = client.call("RELEASE", held["lease"])
        if isinstance(live, Error):
            return False
        release.update(returned_ns=boot_now(), was_live=live == 1)
        return True

    def _give_back_and_ask(self, client, held, epoch):
        try:
            if self._give_back(held):
                self._ask(client, held, epoch)
        finally:
            self.asked = epoch

    def _give_back(self, held):
        """To whoever is active now. False: that is this pawld again, or nobody is known."""
        until = time.monotonic() + SETTLED_WITHIN
        while time.monotonic() < until and not self._stopping.is_set():
            active = self.world.active()
            if active is self.pawld:
                return False
            if active is not None:
                try:
                    with active.client_as("operator") as other:
                        if self._release(other, held):
                            return True
                except (Closed, OSError):
                    pass  # It has lost the role meanwhile, or was killed.
            time.sleep(LOOK_EVERY)
        return False

    def _ask(self, client, held, epoch):
        lock, sent = held["locks"][0], boot_now()
        client.send("INSPECT", lock)
        self.asked = epoch  # If it is frozen, it may wake up now: the question waits for it.
        self.world.done["old_actives_asked"] += 1
        seen = client.read()
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
