"""Merges the records of all processes into one history, and finds violations.

    lives = [judge.Life(client=2, path=…, ended_ns=…)]            # one per process
    verdict = judge.judge(lives, rows={"alpha": […]}, history=[…], calm_ns=…,
                          checker="build/tests/check_history", path=…)
    verdict.faults, verdict.counts

What clients believed goes to the checker that the simulator uses (G7: until its own deadline a
client may act, as long as it has not begun to release, frozen or not). What happened in the
resources goes there as well, in the order of commits; here it is compared with the replies of the
writers: what was acknowledged is there once, what failed is not there, no current holder is
refused. """

import collections
import dataclasses
import json
import pathlib
import subprocess

RHO = 0.01
MARGIN_MIN_MS = 20


@dataclasses.dataclass
class Life:
    """One process that wrote events, from its start to its end."""

    client: int
    path: pathlib.Path
    ended_ns: int = 0
    under_run: bool = False


@dataclasses.dataclass
class Verdict:
    faults: list
    counts: collections.Counter
    details: collections.Counter  # why writes failed, for people
    # Why leases were lost that no operator broke.
    healthy_losses: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def read_events(path):
    """Whole lines only: the last one may have been cut by a kill."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def attempts_of(life):
    """The events of each attempt, by number, in order."""
    by_number = collections.defaultdict(list)
    for event in read_events(life.path):
        if "n" in event:
            by_number[event["n"]].append(event)
    return by_number.values()


def first(events, name):
    return next((event for event in events if event["e"] == name), None)


def margin_ns(ttl_ms):
    return max(MARGIN_MIN_MS, ttl_ms // 100) * 1_000_000


class Attempt:
    """What one acquire came to, from its events."""

    def __init__(self, life, events, broken=None):
        """`broken`: token -> when an operator asked for its end."""
        self.life = life
        self.broken = broken or {}
        self.ask = first(events, "ask")
        self.granted = first(events, "granted")
        self.lost = first(events, "lost")
        self.releasing = first(events, "releasing") or first(events, "killing")
        self.released = first(events, "released")
        self.ended = first(events, "ended")
        self.writes = [event for event in events if event["e"] in ("wrote", "checked")]
        self.locks = self.ask["locks"].split()
        if self.granted:
            self.token = self.granted["token"]
            self.sights = [
                (event["deadline"], event["at"])
                for event in events
                if event["e"] in ("granted", "held")
            ]
            self.deadlines = [deadline for deadline, _ in self.sights]
            self.advances = [
                (event["resource"], event["at"]) for event in events if event["e"] == "fenced"
            ]
            if self.granted["fenced"] or self.ask.get("fenced"):
                self.advances += [(lock, self.granted["at"]) for lock in self.locks]

    def may_release_from(self):
        """No release can have been sent before; None: none was."""
        released_at = self.releasing and self.releasing["at"]
        if not self.life.under_run:
            return released_at
        # pawl run ends its command a sixth of the TTL before the deadline, or when it learns that
        # it is over, and releases.
        by_run = self.deadlines[0] - self.ask["ttl"] * 1_000_000 // 6
        return min(released_at or by_run, by_run, self.broken.get(self.token, by_run))

    def robbed(self):
        return self.lost and self.lost["over"] and self.lost["at"] < max(self.deadlines)

    def believed_until(self):
        ends = [max(self.deadlines), self.may_release_from()]
        if self.robbed():
            ends.append(self.lost["at"])
        return min(end for end in ends if end is not None)

    def lines(self):
        line = {
            "kind": "attempt",
            "client": self.life.client,
            "locks": self.locks,
            "mode": self.ask["mode"],
            "ttl_ms": self.ask["ttl"],
            "asked_ns": self.ask["at"],
            "delay_ms": self.ask.get("delay", 0),
        }
        if self.ask["mode"] == "limit":
            line["limit"] = self.ask["limit"]
        if not self.granted:
            return [{**line, "ended_ns": self.ended["at"] if self.ended else self.life.ended_ns}]
        line.update(
            token=self.token,
            floor=self.granted["floor"],
            answered_ns=self.granted["at"],
            believed_until_ns=self.believed_until(),
        )
        if self.granted["slot"] >= 0:
            line["slot"] = self.granted["slot"]
        if self.robbed():
            line["lost_early"] = self.lost["reason"]
        return [line, *self._renewals(), *self._release()]

    def _renewals(self):
        """By the client's own deadlines: what was answered, by the time one was seen, was sent so
        long before it. The first one may come from the grant itself; it was alive then, too."""
        ttl = self.ask["ttl"]
        for deadline, seen in self.sights:
            sent = deadline + margin_ns(ttl) - int(ttl * 1_000_000 * (1 - RHO))
            yield {
                "kind": "renewal",
                "token": self.token,
                "sent_ns": sent,
                "returned_ns": seen,
                "ok": True,
                "answered_ms": ttl,
            }

    def _release(self):
        since = self.may_release_from()
        if since is None:
            return
        line = {"kind": "release", "token": self.token, "invoked_ns": since}
        if self.released:
            line.update(returned_ns=self.released["at"], was_live=self.released["live"])
        yield line


def effects(rows, attempts):
    """What happened at the resources: rows in the order of commits, and each advance before the
    first row that came after it."""
    advances = collections.defaultdict(list)
    for attempt in attempts:
        for resource, at in attempt.advances:
            advances[resource].append((at, attempt.token))
    for resource, written in rows.items():
        waiting = sorted(advances[resource])
        for row in written:
            while waiting and waiting[0][0] < row["at"]:
                at, token = waiting.pop(0)
                yield _effect(resource, "advance", token, at)
            yield {
                **_effect(resource, "write", row["token"], row["at"]),
                "op": row["op"],
                "changed": True,
            }


def _effect(resource, kind, token, at):
    return {
        "kind": "effect",
        "resource": resource,
        "effect": kind,
        "token": token,
        "verdict": "admitted",
        "at_ns": at,
    }


def faults_at_resources(attempts, rows, history):
    """Compares the replies that writers got with the rows."""
    handed_on = {line["token"] for line in history if line["kind"] == "break" and line["now"]}
    there = collections.Counter(
        (resource, row["token"], row["op"]) for resource, written in rows.items() for row in written
    )
    outcomes_of = collections.defaultdict(set)
    for attempt in attempts:
        until = attempt.believed_until()
        for event in attempt.writes:
            place = f"op {event.get('op')} of token {event['token']} at \"{event['resource']}\""
            if (
                event["outcome"] == "stale"
                and event["at"] < until
                and attempt.token not in handed_on
            ):
                yield (
                    f"P5: {place} was refused at {event['at'] / 1e6:.3f} ms, "
                    f"its holder holds until {until / 1e6:.3f} ms"
                )
            if event["e"] == "wrote":
                outcomes_of[event["resource"], event["token"], event["op"]].add(event["outcome"])
    for (resource, token, op), outcomes in outcomes_of.items():
        place, count = f'op {op} of token {token} at "{resource}"', there[resource, token, op]
        if outcomes & {"admitted", "replayed"} and count == 0:
            yield f"P5: {place} was acknowledged, and is not there"
        if outcomes <= {"nothing", "stale"} and count:
            yield f"P5: {place} was called {' and '.join(sorted(outcomes))}, and is there"
        if count > 1:
            yield f"P5: {place} is there {count} times"


def count(attempts, rows, history):
    counts = collections.Counter(grants=len(attempts), rows=sum(map(len, rows.values())))
    counts.update(
        f"{line['kind']}s"
        for line in history
        if line["kind"] in ("start", "sighting", "replay", "break")
    )
    counts["grants_in_line"] = sum("queued_ns" in line for line in history)
    for attempt in attempts:
        counts[f"grants_{attempt.ask['mode']}"] += 1
        counts["grants_several"] += len(attempt.locks) > 1
        counts["grants_run"] += attempt.life.under_run
        counts["renewals"] += len(attempt.deadlines) - 1
        counts["lost"] += attempt.lost is not None
        for event in attempt.writes:
            counts[f"{'writes' if event['e'] == 'wrote' else 'checks'}_{event['outcome']}"] += 1
    return counts


def judge(lives, rows, history, calm_ns, checker, path):
    broken = {
        line["token"]: line["invoked_ns"] for line in reversed(history) if line["kind"] == "break"
    }
    every = [
        Attempt(life, events, broken)
        for life in lives
        for events in attempts_of(life)
        if first(events, "ask")
    ]
    granted = [attempt for attempt in every if attempt.granted]
    lines = [{"kind": "history", "calm_ns": calm_ns}]
    lines += [line for attempt in every for line in attempt.lines()]
    lines += [*history, *effects(rows, granted)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    run = subprocess.run(
        [checker, "--json", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 1):
        raise AssertionError(f"check_history: {run.returncode}: {run.stderr}")
    details = collections.Counter(
        event["detail"][:90]
        for attempt in granted
        for event in attempt.writes
        if event["outcome"] in ("nothing", "unknown")
    )
    healthy_losses = collections.Counter(
        attempt.lost["reason"]
        for attempt in granted
        if attempt.lost and attempt.token not in broken
    )
    return Verdict(
        json.loads(run.stdout)["faults"] + list(faults_at_resources(granted, rows, history)),
        count(granted, rows, history),
        details,
        healthy_losses,
    )
