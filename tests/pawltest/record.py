"""An independent record of what pawld acknowledged, and the checker that compares pawld with it.

A record is a list of events, each a tuple, in an order that agrees with real time: an `ask` or
`give` is written before the command is sent, a `granted` or `released` after its reply was read.

    ("ask", request, lock)               an ACQUIRE is about to be sent (again)
    ("granted", request, lease, token)   it was answered with a grant
    ("lost", request)                    it was answered -LOST
    ("give", request)                    a RELEASE of that grant is about to be sent (again)
    ("released", request, answer)        it was answered 1 or 0
    ("restart",)                         pawld was killed and serves again, without other clients
    ("found", lock, token)               INSPECT right after a restart; token None: the lock is free

No lease of a record expires: TTLs are longer than the whole run.
"""

import dataclasses


@dataclasses.dataclass
class Request:
    lock: str
    floor: int  # the greatest token acknowledged before this was first asked
    state: str = "asked"  # asked, held, giving, over
    lease: str = ""
    token: int = 0
    first_give: bool = True  # no release of it can have happened before this one


class Checker:
    """Takes a record event by event; `faults` are the violated guarantees."""

    def __init__(self):
        self.faults = []
        self.requests = {}  # request id -> Request
        self.by_lock = {}  # lock -> ids of requests on it that are not over
        self.owner_of = {}  # token -> request id
        self.unclaimed = {}  # lock -> token found after a restart, of a grant not acknowledged yet
        self.greatest = 0
        self.counts = {}

    def take(self, event):
        kind, *rest = event
        self.counts[kind] = self.counts.get(kind, 0) + 1
        getattr(self, "_" + kind)(*rest)

    def fault(self, text):
        self.faults.append(text)

    def _ask(self, request, lock):
        if request not in self.requests:
            self.requests[request] = Request(lock, self.greatest)
            self.by_lock.setdefault(lock, set()).add(request)

    def _granted(self, request, lease, token):
        entry = self.requests[request]
        if entry.token:
            self._same_again(request, entry, lease, token)
            return
        self._new_token(request, entry, token)
        entry.lease, entry.token, entry.state = lease, token, "held"

    def _same_again(self, request, entry, lease, token):
        if (entry.lease, entry.token) != (lease, token):
            self.fault(
                f"request {request} was granted token {entry.token}, and on its retry {token}"
            )
        if entry.state == "over":
            self.fault(
                f"token {token} on {entry.lock} was released, and granted again to the same request"
            )

    def _new_token(self, request, entry, token):
        if token in self.owner_of:
            self.fault(
                f"token {token} was issued twice: to {self.owner_of[token]} and to {request}"
            )
        if token <= entry.floor:
            self.fault(
                f"token went back: {token} was granted to a request asked after {entry.floor} was "
                f"acknowledged"
            )
        unclaimed = self.unclaimed.pop(entry.lock, None)
        if unclaimed is not None and unclaimed != token:
            self.fault(
                f"{entry.lock} was held with token {unclaimed} by an unacknowledged grant, then "
                f"granted as {token}"
            )
        for other in self.by_lock[entry.lock]:
            if self.requests[other].state == "held":
                self.fault(
                    f"{entry.lock} was granted as {token} while {self.requests[other].token} was "
                    f"held"
                )
        self.owner_of[token] = request
        self.greatest = max(self.greatest, token)

    def _lost(self, request):
        entry = self.requests[request]
        if entry.state in ("asked", "held"):
            self.fault(
                f"request {request} on {entry.lock} ({entry.state}, token {entry.token}) was "
                f"answered -LOST"
            )

    def _give(self, request):
        entry = self.requests[request]
        if entry.state == "held":
            entry.state = "giving"

    def _released(self, request, answer):
        entry = self.requests[request]
        if answer == 0 and entry.state == "giving" and entry.first_give:
            self.fault(
                f"token {entry.token} on {entry.lock} was acknowledged, yet its first release "
                f"answered 0"
            )
        entry.state = "over"
        self.by_lock[entry.lock].discard(request)

    def _restart(self):
        # The reply to an unanswered release may have been lost: from now on 0 is right, too.
        for requests in self.by_lock.values():
            for request in requests:
                if self.requests[request].state == "giving":
                    self.requests[request].first_give = False

    def _found(self, lock, token):
        entries = [self.requests[request] for request in self.by_lock.get(lock, ())]
        held = [entry.token for entry in entries if entry.state == "held"]
        giving = [entry.token for entry in entries if entry.state == "giving"]
        asked = [entry for entry in entries if entry.state == "asked"]
        if held:
            if token != held[0]:
                self.fault(
                    f"acknowledged grant lost: {lock} was granted as {held[0]}, and is {token} "
                    f"after a restart"
                )
        elif token in giving:
            pass  # The release was not acknowledged: nothing of it happened.
        elif lock in self.unclaimed:
            if token != self.unclaimed[lock]:
                self.fault(
                    f"{lock} was found with token {self.unclaimed[lock]}, and after another "
                    f"restart with {token}"
                )
        elif token is not None:
            self._unknown(lock, token, asked)

    def _unknown(self, lock, token, asked):
        if token in self.owner_of:
            self.fault(f"released stays released: {lock} is held again with token {token}")
        elif not any(token > entry.floor for entry in asked):
            self.fault(f"{lock} is held with token {token} without a request for it")
        else:
            self.unclaimed[lock] = token


def check(record):
    """The faults of a whole record; an empty list when every promise was kept."""
    checker = Checker()
    for event in record:
        checker.take(tuple(event))
    return checker.faults
