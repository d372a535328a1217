"""Acts as an operator and records the history: it inspects the locks of all clients, breaks some of
the leases that it sees, and repeats requests of its own with the same id, while their lease lives
and after it has ended.
"""

from clocks import boot_now
from pawltest.harness import Closed, Error, request_id
from recorder import Recorder

OWN_TTL_MS = 3000
BREAKS = 0.04  # share of the leases that it sees


class OperatorClient(Recorder):
    _numbers = 0

    def step(self, client):
        if self.dice.random() < 0.7:
            self._inspect(client, self.dice.choice(self.locks))
        else:
            self._repeat_a_request(client)

    def _inspect(self, client, lock):
        sent = boot_now()
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
            if self.dice.random() < BREAKS:
                self._break(client, lock, seen["token"])

    def _break(self, client, lock, token):
        """One in four is BREAK NOW, where only the guard protects."""
        now = self.dice.random() < 0.25
        line = {"kind": "break", "token": token, "now": now, "invoked_ns": boot_now()}
        self.history.append(line)  # It may take effect even if the reply is lost.
        broken = client.call(
            "BREAK", lock, "TOKEN", token, *(["NOW"] if now else []), "REASON", "nemesis"
        )
        if not isinstance(broken, Error):
            line.update(returned_ns=boot_now(), was_live=broken == 1)

    def _repeat_a_request(self, client):
        """A grant, its retry on another connection, its release, and a retry after that."""
        self._numbers += 1
        lock, request = f"operator/{self._numbers % 7}", request_id()
        attempt = {
            "kind": "attempt",
            "client": 99,
            "request": request,
            "locks": [lock],
            "ttl_ms": OWN_TTL_MS,
            "asked_ns": boot_now(),
        }
        self.history.append(attempt)
        try:
            grant = self._acquire(client, lock, request)
        except (Closed, OSError):
            attempt["ended_ns"] = boot_now()
            raise
        if not isinstance(grant, dict):
            attempt["ended_ns"] = boot_now()
            return  # Held by an earlier request whose reply was lost, or the store is full.
        attempt.update(
            lease=grant["lease"],
            token=grant["token"],
            floor=grant["floor"],
            waited_ms=grant["waited_ms"],
            answered_ns=boot_now(),
        )
        attempt["believed_until_ns"] = attempt["asked_ns"] + OWN_TTL_MS * 990_000 - 30_000_000
        with self.connect() as another:
            replay = self._replay(another, lock, request)
        if replay:
            self.history.append(replay)
        era = self.era(client)
        release = {"kind": "release", "token": grant["token"], "invoked_ns": boot_now()}
        attempt["believed_until_ns"] = min(attempt["believed_until_ns"], release["invoked_ns"])
        self.history.append(release)
        live = client.call("RELEASE", grant["lease"])
        if isinstance(live, Error):
            return
        release.update(returned_ns=boot_now(), was_live=live == 1)
        replay = self._replay(client, lock, request)
        if replay and self.era(client) == era:
            self.history.append(replay)

    def era(self, client):
        """The memory of ended requests ends with it, where no start in the history says so."""
        del client

    @staticmethod
    def _acquire(client, lock, request):
        return client.call("ACQUIRE", lock, "TTL", OWN_TTL_MS, "REQUEST", request)

    def _replay(self, client, lock, request):
        """As a line of the history; None: nothing is known of the request."""
        replay = {"kind": "replay", "request": request, "invoked_ns": boot_now()}
        answer = self._acquire(client, lock, request)
        replay["returned_ns"] = boot_now()
        if isinstance(answer, dict):
            replay.update(answer="granted", token=answer["token"])
        elif answer is None:
            replay["answer"] = "nothing"
        elif answer.code in ("LOST", "CONFLICT"):
            replay["answer"] = answer.code.lower()
        else:
            return None  # Loading, or the store is full.
        return replay
