#!/usr/bin/python3
"""A guard in memory that the conformance kit can test: the contract in a few hundred lines, and
some fifty ways to break it.

    pawl guard conformance --exec './reference_guard.py'
    pawl guard conformance --exec './reference_guard.py --whole'     # single writes, no transactions
    pawl guard conformance --exec './reference_guard.py --bug replays-twice'

It speaks the kit's protocol (docs/reference/conformance.md): one JSON object a line. Each session
has a thread, because a write may have to wait for another session's. The planted bugs prove the
kit: kit_test.py wants each of them caught. """

import argparse
import json
import queue
import re
import sys
import threading
import time
import zlib

TOKEN = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
TOKEN_MAX = 2**53 - 1

BUGS = {
    "strict-greater": "refuses the holder's second write",
    "compares-text": "thinks that 9 is greater than 10",
    "narrow": "keeps 32 bits of a token",
    "accepts-odd-spelling": "reads 007 as 7",
    "accepts-overflow": "takes tokens above 2^53-1",
    "accepts-zero": "takes 0 for a token",
    "no-ahead": "knows no max_step",
    "ahead-off-by-one": "refuses a token exactly max_step above the fence",
    "stale-lowers": "a stale token becomes the fence",
    "ahead-moves": "a token that is refused as ahead becomes the fence",
    "shadow-moves": "a token that would be refused moves the fence in shadow",
    "ignores-require-token": "lets a write without a token pass although tokens are required",
    "ignores-equal-refuse": "admits an equal token under `equal: refuse`",
    "ignores-equal-once": "admits an equal token without an operation under `equal: once`",
    "admits-unguarded": "admits writes to what nobody put under guard",
    "check-raises": "check moves the fence",
    "check-blind": "check calls everything admitted",
    "advance-forgets": "answers an advance and does nothing",
    "advance-lowers": "an advance to a smaller token lowers the fence",
    "check-then-write": "compares first and writes later, with nothing held in between",
    "answers-advance-early": "does not wait for an older write that is open",
    "replays-twice": "applies an operation as often as it is sent",
    "operations-by-maximum": "calls an operation that comes late replayed",
    "operations-for-ever": "remembers operations over a change of token",
    "old-operation-replayed": "calls an operation of an old token replayed instead of stale",
    "rollback-keeps-operation": "remembers an operation that was rolled back",
    "lost-commit-forgets-operation": "forgets an operation whose commit was not answered",
    "one-fence": "has one fence for all resources",
    "raises-one-by-one": "moves the first fence before it has judged the second",
    "forgets-on-delete": "a delete takes the fence along",
    "compact-forgets": "compacts by forgetting, without a floor",
    "shadow-refuses": "refuses in shadow",
    "observe-refuses": "refuses in observe",
    "mode-from-start": "goes by the mode there was when the session first wrote",
    "emergency-observes-nothing": "has an emergency switch that does nothing",
    "canary-dice": "throws dice for each write in canary",
    "canary-reshuffles": "chooses other resources when the per cent grow",
    "counts-twice": "counts each refusal twice",
    "rollback-applies": "a write that is rolled back takes effect",
    "refused-applies": "reports that a write is stale and applies it",
    "vanished-applies": "commits what a writer had not committed when it was cut off",
    "holder-collides": "refuses a writer while another of the same holder is under way",
    "prepare-lets-go": "does not hold the fence for a write that is prepared",
    "prepared-ends-with-session": "drops a prepared write together with its session",
    "spelling-is-another": "takes another spelling of a name for another resource",
    "delete-by-spelling-forgets": "forgets the fence for other spellings of what was deleted",
    "moves-in-unjudged": "does not ask the fence of the place that a thing moves to",
    "moves-out-unjudged": "does not ask the fence of the place that a thing moves away from",
    "move-takes-fence-along": "moves the fence together with the thing",
    "token-for-any": "lets a token that was admitted for one resource write to any",
    "part-is-unguarded": "does not judge what is written through something larger",
    "advance-unguarded-done": "answers an advance of what nobody put under guard",
    "advance-unchecked": "answers an advance without looking whether the fence has moved",
    "rehearses-by-doing": "carries out the change that it was to rehearse",
}


class Refused(Exception):
    def __init__(self, answer, detail=""):
        super().__init__(answer)
        self.answer = answer
        self.detail = detail


class Resource:
    def __init__(self, name, policy):
        self.name = name
        self.policy = policy
        self.emergency = False
        self.fence = None
        self.done = set()  # operations under the token of the fence
        self.log = []  # (token, value), as they took effect
        self.open = {}  # session -> token of its open write
        self.claims = {}  # operation -> session that has it in its open write
        self.unreachable = False  # raising the fence silently does nothing
        self.counts = dict.fromkeys(("replayed", "stale", "missing", "ahead", "would_refuse"), 0)

    @property
    def mode(self):
        return (
            "shadow"
            if self.emergency and self.policy["mode"] in ("canary", "enforce")
            else self.policy["mode"]
        )


class Write:
    """What a session has open."""

    def __init__(self):
        self.token = None
        self.operation = None
        self.held = []
        self.effects = []
        self.named = set()  # the resources that were admitted, or let through


class Guard:
    def __init__(self, bug, whole):
        self.bug = bug
        self.whole = whole
        self.changed = threading.Condition()  # guards everything
        self.resources = {}
        self.spellings = {}  # another spelling -> the name
        self.larger = {}  # something larger -> the resource that is a part of it
        self.writes = {}  # session, or name of what is prepared -> Write
        self.seen_modes = {}
        self.dice = 0

    def has(self, bug):
        return self.bug == bug

    # -- judging

    def find(self, name):
        if not self.has("spelling-is-another"):
            name = self.spellings.get(name, name)
        name = self.larger.get(name, name)
        if name not in self.resources:
            if self.has("admits-unguarded"):
                self.resources[name] = Resource(
                    name, {"mode": "enforce", "max_step": 2**44, "equal": "accept"}
                )
            else:
                raise Refused("unguarded", name)
        return (
            self.resources["shared"]
            if self.has("one-fence") and "shared" in self.resources
            else self.resources[name]
        )

    def parse(self, text):
        if text is None:
            return None
        if self.has("accepts-zero") and text == "0":
            return 0
        if self.has("accepts-overflow") and text.isdigit() and text.isascii():
            return min(int(text), TOKEN_MAX)
        if (
            self.has("accepts-odd-spelling")
            and re.fullmatch(r"\s*\+?\d+\s*", text, re.ASCII)
            and 0 < int(text) <= TOKEN_MAX
        ):
            return int(text)
        if not TOKEN.fullmatch(text) or int(text) > TOKEN_MAX:
            raise Refused("malformed", text)
        return int(text) & 0xFFFFFFFF if self.has("narrow") else int(text)

    def verdict(self, resource, token):
        if token is None:
            return "missing"
        if resource.fence is None:
            return "admitted"
        smaller = (
            str(token) < str(resource.fence)
            if self.has("compares-text")
            else token < resource.fence
        )
        if smaller or (token == resource.fence and self.has("strict-greater")):
            return "stale"
        step = resource.policy["max_step"] - (1 if self.has("ahead-off-by-one") else 0)
        if token - resource.fence > step and not self.has("no-ahead"):
            return "ahead"
        return "admitted"

    def equal_verdict(self, resource, token, operation):
        """What the policy says of a token that is already the fence because of a write."""
        equal = resource.policy["equal"]
        if token != resource.fence or not any(each == token for each, _ in resource.log):
            return "admitted"
        if equal == "refuse" and not self.has("ignores-equal-refuse"):
            return "stale"
        if equal == "once" and operation is None and not self.has("ignores-equal-once"):
            return "missing"
        return "admitted"

    def operation_verdict(self, resource, token, operation):
        if operation is None or self.has("replays-twice"):
            return "admitted"
        known = token == resource.fence or self.has("operations-for-ever")
        if known and operation in resource.done:
            return "replayed"
        if known and resource.done and operation < max(resource.done):
            if self.whole:
                return "stale"
            if self.has("operations-by-maximum"):
                return "replayed"
        return "admitted"

    def enforced(self, resource, session=None):
        mode = resource.mode
        if self.has("mode-from-start") and session is not None:
            mode = self.seen_modes.setdefault((session, resource.name), mode)
        if mode == "observe":
            return self.has("observe-refuses")
        if mode == "shadow":
            return self.has("shadow-refuses")
        if mode == "canary":
            percent = resource.policy["percent"]
            key = resource.name
            if self.has("canary-reshuffles") and percent != 100:
                key += str(percent)
            if self.has("canary-dice"):
                self.dice += 1
                key += str(self.dice)
            return zlib.crc32(key.encode()) % 100 < percent
        return True

    def count(self, resource, verdict, refused):
        times = 2 if self.has("counts-twice") else 1
        if verdict in resource.counts:
            resource.counts[verdict] += times
        if not refused and verdict not in ("admitted", "replayed"):
            resource.counts["would_refuse"] += times

    def judge(self, resource, token, operation):
        verdict = self.verdict(resource, token)
        if verdict == "admitted" and token is not None:
            verdict = self.operation_verdict(resource, token, operation)
        if verdict == "admitted" and operation is None:
            verdict = self.equal_verdict(resource, token, operation)
        if verdict == "stale" and self.has("old-operation-replayed") and operation in resource.done:
            verdict = "replayed"
        return verdict

    def must_wait(self, resource, session, token, operation):
        """An older write is open, or a twin of this operation is."""
        if self.has("check-then-write"):
            return False
        older = any(other != session and held < token for other, held in resource.open.items())
        return older or resource.claims.get(operation, session) != session

    def raise_fence(self, resource, token):
        if resource.unreachable:
            return
        if resource.fence is None or token > resource.fence or self.has("compares-text"):
            if resource.fence != token and not self.has("operations-for-ever"):
                resource.done = set()
            resource.fence = token

    # -- writing, with self.changed held

    def admit(self, session, request):
        token = self.parse(request["token"])
        operation = request.get("operation")
        resources = [self.find(name) for name in sorted(set(request["resources"]))]
        while True:
            verdicts = [self.judge(resource, token, operation) for resource in resources]
            waits = any(
                verdict == "admitted"
                and token is not None
                and self.must_wait(resource, session, token, operation)
                for verdict, resource in zip(verdicts, resources)
            )
            if not waits:
                break
            self.changed.wait()
        write = self.writes[session]
        write.token, write.operation = token, operation
        write.named = set(resources)
        worst = "admitted"
        for verdict, resource in zip(verdicts, resources):
            if verdict == "admitted" and self.has("raises-one-by-one"):
                self.hold(session, resource, write)
            worst = (
                self.refuse_or_not(session, resource, verdict, token)
                if worst == "admitted"
                else worst
            )
        if worst == "replayed":
            return {"answer": worst}
        for verdict, resource in zip(verdicts, resources):
            if verdict == "admitted":
                self.hold(session, resource, write)
        return {"answer": worst, "let_through": worst != "admitted"}

    def refuse_or_not(self, session, resource, verdict, token):
        if verdict in ("admitted", "replayed"):
            self.count(resource, verdict, False)
            return verdict
        enforced = self.enforced(resource, session)
        refused = enforced
        if verdict == "missing" and token is None:
            refused = (
                enforced
                and resource.policy["require_token"]
                and not self.has("ignores-require-token")
            )
        self.count(resource, verdict, refused)
        if (
            (verdict == "stale" and self.has("stale-lowers"))
            or (verdict == "ahead" and self.has("ahead-moves"))
            or (verdict == "ahead" and not refused and self.has("shadow-moves"))
        ):
            resource.fence = token
        if refused:
            if self.has("refused-applies") and verdict == "stale":
                resource.log.append((token, "refused"))
            raise Refused(
                verdict,
                f"token={token} max={resource.fence} mode={resource.mode} resource={resource.name}",
            )
        return verdict

    def hold(self, session, resource, write):
        if write.token is None:
            return
        if self.has("holder-collides") and resource.open:
            raise Refused("stale", "another writer is active")
        self.raise_fence(resource, write.token)
        if resource not in write.held:
            write.held.append(resource)
            resource.open[session] = write.token
            if write.operation is not None:
                resource.claims[write.operation] = session

    def end(self, session, committed, forget_operation=False):
        write = self.writes.pop(session, None) or Write()
        if committed:
            for resource, value in write.effects:
                resource.log.append((write.token, value))
        for resource in write.held:
            resource.open.pop(session, None)
            if write.operation is not None:
                if resource.claims.get(write.operation) == session:
                    del resource.claims[write.operation]
                keep = committed or self.has("rollback-keeps-operation")
                if keep and not forget_operation and write.token == resource.fence:
                    resource.done.add(write.operation)
        self.changed.notify_all()
        return {"answer": "done"}

    # -- what the kit asks

    def hello(self, _request):
        abilities = [
            "concurrency",
            "several",
            "text_tokens",
            "tokenless",
            "unguarded",
            "modes",
            "canary",
            "emergency",
            "require_token",
            "max_step",
            "equal_once",
            "equal_refuse",
            "counts",
            "remove",
            "compact",
            "spellings",
            "moves",
            "elsewhere",
            "rehearsal",
            "unreachable",
            "enclosed",
        ]
        more = (
            ["operation_last"]
            if self.whole
            else ["transactions", "operation_set", "lost_commit", "vanish", "prepared"]
        )
        levels = dict.fromkeys(
            ("read_committed", "repeatable_read", "serializable"), "it has no isolation levels"
        )
        steps = dict.fromkeys(
            ("transactions", "operation_set", "lost_commit", "vanish", "prepared"),
            "a write is one step",
        )
        return {
            "name": "reference guard" + (" (whole writes)" if self.whole else ""),
            "abilities": abilities + more,
            "lacks": levels
            | (steps if self.whole else {"operation_last": "it remembers every operation"}),
        }

    def fresh(self, request):
        names = [f"r{len(self.resources) + 1 + i}" for i in range(request["count"])]
        for name in names:
            self.resources[name] = Resource(name, request["policy"])
        if self.has("one-fence"):
            self.resources["shared"] = Resource("shared", request["policy"])
        return {"resources": names}

    def do_spellings(self, request):
        (name,) = self.fresh({"count": 1, "policy": request["policy"]})["resources"]
        other = name.upper()
        self.spellings[other] = name
        if self.has("spelling-is-another"):
            self.resources[other] = Resource(other, request["policy"])
        return {"resources": [name, other]}

    def open(self, _request):
        return {"answer": "done"}

    def close(self, request):
        if self.has("prepared-ends-with-session"):
            for name in [key for key in self.writes if key.startswith(request["session"] + " ")]:
                self.end(name, False)
        return self.end(request["session"], False)

    def begin(self, request):
        self.writes[request["session"]] = Write()
        return {"answer": "done"}

    def do_admit(self, request):
        return self.admit(request["session"], request)

    def insist_on_admitted(self, write, resource):
        """What the token was not admitted for counts as written without a token."""
        if resource not in write.named:
            self.refuse_or_not(None, resource, "missing", None)

    def apply(self, request):
        write = self.writes[request["session"]]
        resource = self.find(request["resource"])
        if not self.has("token-for-any"):
            self.insist_on_admitted(write, resource)
        write.effects.append((resource, request["value"]))
        return {"answer": "done"}

    def move(self, request):
        session = request["session"]
        self.writes[session] = write = Write()
        source, target = self.find(request["from"]), self.find(request["to"])
        try:
            answer = self.admit(session, request)
            if not self.has("moves-out-unjudged"):
                self.insist_on_admitted(write, source)
            if not self.has("moves-in-unjudged"):
                self.insist_on_admitted(write, target)
        finally:
            self.end(session, False)
        target.log, source.log = target.log + source.log, []
        if self.has("move-takes-fence-along"):
            source.fence = None
        return answer

    # A prepared write is kept under a name of its own, as if that were its session.

    def prepare(self, request):
        session = request["session"]
        name = f"{session} {request['name']}"
        write = self.writes[name] = self.writes.pop(session)
        for resource in write.held:
            token = resource.open.pop(session)
            if not self.has("prepare-lets-go"):
                resource.open[name] = token
            if write.operation is not None:
                resource.claims[write.operation] = name
        self.changed.notify_all()
        return {"answer": "done"}

    def end_prepared(self, request, committed):
        for name in list(self.writes):
            if name.endswith(" " + request["name"]):
                return self.end(name, committed)
        raise Refused("broken", f"nothing is prepared as {request['name']}")

    def commit_prepared(self, request):
        return self.end_prepared(request, True)

    def rollback_prepared(self, request):
        return self.end_prepared(request, False)

    def commit(self, request):
        return self.end(request["session"], True)

    def rollback(self, request):
        return self.end(request["session"], self.has("rollback-applies"))

    def lose_commit(self, request):
        self.end(request["session"], True, self.has("lost-commit-forgets-operation"))
        return {"answer": "unknown"}

    def vanish(self, request):
        return self.end(request["session"], self.has("vanished-applies"))

    def write(self, request):
        session = request["session"]
        self.writes[session] = Write()
        try:
            answer = self.admit(session, request)
        except Refused:
            self.end(session, False)
            raise
        if self.has("check-then-write"):  # Lets go, as two round trips to a server would.
            self.changed.wait(0.001)
        if answer["answer"] != "replayed":
            targets = [request["to"]] if "to" in request else request["resources"]
            for name in targets:
                try:
                    self.apply({"session": session, "resource": name, "value": request["value"]})
                except Refused:
                    self.end(session, False)
                    raise
        self.end(session, answer["answer"] != "replayed")
        return answer

    def advance(self, request):
        if self.has("advance-unguarded-done") and request["resource"] not in self.resources:
            return {"answer": "done", "before": None}
        resource = self.find(request["resource"])
        token = request["token"]
        deadline = time.monotonic() + request["wait_ms"] / 1000
        while True:
            verdict = self.verdict(resource, token)
            if verdict == "stale" and token == resource.fence:
                verdict = "admitted"
            if verdict != "admitted":
                if self.has("advance-lowers"):
                    resource.fence = token
                raise Refused(verdict, f"max={resource.fence}")
            early = self.has("answers-advance-early")
            if early or not self.must_wait(resource, request["session"], token, None):
                break
            if not self.changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise Refused("busy", f"open: {sorted(resource.open)}")
        before = resource.fence
        if not self.has("advance-forgets"):
            self.raise_fence(resource, token)
            if resource.fence != token and not self.has("advance-unchecked"):
                raise Refused("broken", "the fence could not be raised")
        return {"answer": "done", "before": before}

    def check(self, request):
        resource = self.find(request["resource"])
        verdict = (
            "admitted" if self.has("check-blind") else self.verdict(resource, request["token"])
        )
        answer = {"answer": verdict, "max": resource.fence}
        if verdict != "admitted":
            answer["let_through"] = not self.enforced(resource)
        if verdict == "admitted" and self.has("check-raises"):
            self.raise_fence(resource, request["token"])
        return answer

    def remove(self, request):
        names = [request["resource"]]
        session = request["session"]
        self.writes[session] = Write()
        try:
            self.admit(session, {"resources": names, "token": str(request["token"])})
        finally:
            self.end(session, False)
        resource = self.find(names[0])
        resource.log = []
        if self.has("forgets-on-delete"):
            resource.fence = None
        if self.has("delete-by-spelling-forgets"):
            for other, name in list(self.spellings.items()):
                if name == resource.name:
                    self.resources[other] = Resource(other, resource.policy)
                    del self.spellings[other]
        return {"answer": "done"}

    def policy(self, request):
        resource = self.find(request["resource"])
        if request.get("rehearse") and not self.has("rehearses-by-doing"):
            return {"answer": "done"}
        resource.policy = request["policy"]
        resource.emergency = False
        return {"answer": "done"}

    def do_emergency(self, request):
        self.find(request["resource"]).emergency = not self.has("emergency-observes-nothing")
        return {"answer": "done"}

    def compact(self, request):
        resource = self.find(request["resource"])
        if request.get("rehearse") and not self.has("rehearses-by-doing"):
            return {"answer": "done"}
        if resource.fence is not None and resource.fence < request["below"]:
            resource.fence = None if self.has("compact-forgets") else request["below"]
        return {"answer": "done"}

    def do_unreachable(self, request):
        self.find(request["resource"]).unreachable = True
        return {"answer": "done"}

    def enclose(self, request):
        name = request["resource"]
        larger = f"all of {name}"
        if self.has("part-is-unguarded"):
            self.resources[larger] = Resource(larger, {**self.find(name).policy, "mode": "observe"})
            self.resources[larger].log = self.find(name).log
        else:
            self.larger[larger] = name
        return {"resource": larger}

    def do_fence(self, request):
        return {"fence": self.find(request["resource"]).fence}

    def effects(self, request):
        return {
            "effects": [
                {"token": token, "value": value}
                for token, value in self.find(request["resource"]).log
            ]
        }

    def do_counts(self, request):
        return self.find(request["resource"]).counts

    def answer(self, request):
        verbs = {
            "admit": self.do_admit,
            "emergency": self.do_emergency,
            "fence": self.do_fence,
            "counts": self.do_counts,
            "spellings": self.do_spellings,
            "unreachable": self.do_unreachable,
        }
        for verb in (
            "hello",
            "fresh",
            "open",
            "close",
            "begin",
            "apply",
            "commit",
            "rollback",
            "lose_commit",
            "vanish",
            "prepare",
            "commit_prepared",
            "rollback_prepared",
            "write",
            "advance",
            "check",
            "remove",
            "move",
            "enclose",
            "policy",
            "compact",
            "effects",
        ):
            verbs[verb] = getattr(self, verb)
        if request["do"] not in verbs:
            return {"error": f"unknown: {request['do']}"}
        with self.changed:
            try:
                return verbs[request["do"]](request)
            except Refused as refused:
                return {"answer": refused.answer, "detail": refused.detail}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bug", choices=sorted(BUGS))
    parser.add_argument("--whole", action="store_true", help="writes are one step")
    options = parser.parse_args()
    guard = Guard(options.bug, options.whole)
    out = threading.Lock()
    workers = {}

    def work(requests):
        while (request := requests.get()) is not None:
            answer = guard.answer(request)
            with out:
                print(json.dumps({"id": request["id"], **answer}), flush=True)

    for line in sys.stdin:
        request = json.loads(line)
        session = request.get("session", "")
        if session not in workers:
            workers[session] = queue.SimpleQueue()
            threading.Thread(target=work, args=(workers[session],), daemon=True).start()
        workers[session].put(request)


if __name__ == "__main__":
    main()
