"""Waits in the queue on a connection of its own and records when it was queued, which libpawl's
clients do not: the history can then show whether a later request was served before it (G6).
"""

from clocks import boot_now
from pawltest.harness import Closed, Error, request_id
from pawltest.resp import Push
from recorder import REST, Recorder

CLIENT = 98
TTL_MS = 900
WAIT_MS = 4000


class WaitingClient(Recorder):
    def rest(self):
        return REST + self.dice.random() / 2

    def step(self, client):
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
            grant = self._wait_in_queue(client, attempt, lock, request)
        except (Closed, OSError):
            attempt["ended_ns"] = boot_now()
            attempt.pop("queued_ns", None)  # The queue was lost with pawld.
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
    def _wait_in_queue(client, attempt, lock, request):
        """The grant, or None."""
        reply = client.call(
            "ACQUIRE", lock, "TTL", TTL_MS, "WAIT", WAIT_MS, "ASYNC", "REQUEST", request
        )
        if not isinstance(reply, dict):
            return None  # The store is full, or loading.
        if reply.get("state") != "queued":
            return reply
        attempt["queued_ns"] = boot_now()
        push = client.read()
        if not isinstance(push, Push) or push[2] != request:
            raise AssertionError(f"a wait was answered with {push!r}")
        return push[3] if push[1] == "granted" else None
