"""Waits in line like everyone, on a connection of its own, and is told its place: so that the
history can show whether anyone who asked later was served before (G6). libpawl's clients do not say
when they were queued; when they asked they do.

    waiter = waiter.Waiter(port, dice, locks)     # an Onlooker
"""

import onlooker
from clocks import boot_now
from pawltest.harness import Closed, Error, request_id
from pawltest.resp import Push

CLIENT = 98
TTL_MS = 900
WAIT_MS = 4000


class Waiter(onlooker.Onlooker):
    def rest(self):
        return onlooker.REST + self.dice.random() / 2

    def turn(self, client):
        lock, request = self.dice.choice(self.locks), request_id()
        attempt = {
            "kind": "attempt",
            "client": CLIENT,
            "request": request,
            "locks": [lock],
            "ttl_ms": TTL_MS,
            "asked_ns": boot_now(),
        }
        self.history.append(attempt)
        try:
            grant = self._wait_in_line(client, attempt, lock, request)
        except (Closed, OSError):
            attempt["ended_ns"] = boot_now()
            attempt.pop("queued_ns", None)  # The line was lost with pawld.
            raise
        if grant is None:
            attempt["ended_ns"] = boot_now()
            attempt.pop("queued_ns", None)
            return
        attempt.update(
            lease=grant["lease"],
            token=grant["token"],
            floor=grant["floor"],
            waited_ms=grant["waited_ms"],
            answered_ns=boot_now(),
        )
        release = {"kind": "release", "token": grant["token"], "invoked_ns": boot_now()}
        attempt["believed_until_ns"] = release["invoked_ns"]
        self.history.append(release)
        live = client.call("RELEASE", grant["lease"])
        if not isinstance(live, Error):
            release.update(returned_ns=boot_now(), was_live=live == 1)

    @staticmethod
    def _wait_in_line(client, attempt, lock, request):
        """The grant; None: nothing came of it."""
        reply = client.call(
            "ACQUIRE", lock, "TTL", TTL_MS, "WAIT", WAIT_MS, "ASYNC", "REQUEST", request
        )
        if not isinstance(reply, dict):
            return None  # There is no room, or it is loading.
        if reply.get("state") != "queued":
            return reply
        attempt["queued_ns"] = boot_now()
        told = client.read()
        if not isinstance(told, Push) or told[2] != request:
            raise AssertionError(f"a wait was answered with {told!r}")
        return told[3] if told[1] == "granted" else None
