#!/usr/bin/python3
"""Tests the judge: histories that are correct, and the same with one thing wrong.

Environment: PAWL_BUILD is the build directory, whose checker it uses.
"""

import collections
import json
import os
import pathlib
import tempfile
import unittest

import judge
import programs
import schedule
import world

MS = 1_000_000
TTL = 1000


class Events:
    """What processes wrote down, in milliseconds. Fine as it is: c0 holds and gives back, then c1
    does."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.events = collections.defaultdict(list)  # (client, under run) -> events
        self.rows = {"alpha": []}
        self.history = []

    def say(self, client, at, event, under_run=False, **fields):
        if "deadline" in fields:
            fields["deadline"] *= MS
        self.events[client, under_run].append({"e": event, "at": at * MS, "n": 1, **fields})

    def grant(
        self, client, asked, at, token, deadline=None, fenced=False, under_run=False, delay=0
    ):
        self.say(
            client,
            asked,
            "ask",
            under_run,
            locks="alpha",
            mode="exclusive",
            limit=1,
            ttl=TTL,
            delay=delay,
        )
        deadline = deadline or asked + TTL * 99 // 100 - 20
        self.say(
            client,
            at,
            "granted",
            under_run,
            token=token,
            floor=token,
            slot=-1,
            deadline=deadline,
            fenced=fenced,
        )

    def wrote(self, client, at, token, op, outcome="admitted", there=1):
        self.say(
            client,
            at,
            "wrote",
            resource="alpha",
            token=token,
            op=op,
            outcome=outcome,
            unasked=False,
            detail="",
        )
        self.rows["alpha"] += [
            {"token": token, "op": op, "writer": f"c{client}", "at": (at - 1) * MS}
        ] * there

    def release(self, client, at):
        self.say(client, at, "releasing")
        self.say(client, at + 2, "released", live=True)

    def faults(self, torn=""):
        lives = []
        for (client, under_run), events in self.events.items():
            path = self.dir / f"{client}-{under_run}.log"
            path.write_text("".join(json.dumps(event) + "\n" for event in events) + torn)
            lives.append(judge.Life(client, path, ended_ns=90_000 * MS, under_run=under_run))
        return judge.judge(
            lives,
            self.rows,
            self.history,
            80_000 * MS,
            os.environ["PAWL_CHECK_HISTORY"],
            self.dir / "history",
        ).faults


class JudgeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-judge-")
        self.addCleanup(folder.cleanup)
        self.events = Events(folder.name)

    def first_holder(self, release=True):
        self.events.grant(0, asked=0, at=5, token=1)
        self.events.wrote(0, 50, token=1, op=1)
        if release:
            self.events.release(0, 100)

    def assertFine(self, **options):
        self.assertEqual(self.events.faults(**options), [])

    def assertFound(self, *beginnings):
        """Of every beginning there is a fault, and no other kind."""
        faults = self.events.faults()
        self.assertEqual({fault[:2] for fault in faults}, set(beginnings), faults)

    def test_consecutive_holders_are_accepted(self):
        self.first_holder()
        self.events.grant(1, asked=60, at=103, token=2, fenced=True)
        self.events.wrote(1, 130, token=2, op=1)
        self.events.release(1, 150)
        self.assertFine()

    def test_grant_after_an_expired_lease_is_accepted(self):
        self.first_holder(release=False)
        self.events.grant(1, asked=500, at=1020, token=2)
        self.assertFine()

    def test_grant_within_the_delay_is_found(self):
        self.events.grant(0, asked=0, at=5, token=1, delay=300)
        self.events.grant(1, asked=500, at=1200, token=2)
        self.assertFound("P3")

    def test_overlapping_holders_are_found(self):
        self.first_holder(release=False)
        self.events.grant(1, asked=500, at=800, token=2)
        self.assertFound("G7", "P3")

    def test_renewals_extend_the_belief_of_a_holder(self):
        self.first_holder(release=False)
        self.events.say(0, 600, "held", deadline=500 + TTL * 99 // 100 - 20)
        self.events.grant(1, asked=700, at=1100, token=2)
        self.assertFound("G7", "P3")

    def test_early_loss_is_found(self):
        self.first_holder(release=False)
        self.events.say(0, 300, "lost", over=True, deadline=970, reason="pawld says so")
        self.assertFound("G2")

    def test_revived_lease_is_found(self):
        self.first_holder(release=False)
        self.events.history.append(
            {
                "kind": "break",
                "token": 1,
                "now": False,
                "invoked_ns": 110 * MS,
                "returned_ns": 112 * MS,
                "was_live": True,
            }
        )
        self.events.say(0, 300, "lost", over=True, deadline=970, reason="broken")
        self.events.say(0, 310, "releasing")
        self.events.say(0, 311, "released", live=False)
        self.events.history.append(
            {
                "kind": "sighting",
                "lock": "alpha",
                "token": 1,
                "invoked_ns": 400 * MS,
                "returned_ns": 401 * MS,
            }
        )
        self.assertFound("P4")

    def test_release_by_run_before_its_deadline_is_accepted(self):
        self.events.grant(50, asked=0, at=5, token=1, under_run=True)
        self.events.grant(1, asked=700, at=900, token=2)
        self.assertFine()

    def test_release_by_run_after_a_break_is_accepted(self):
        self.events.grant(50, asked=0, at=5, token=1, under_run=True)
        self.events.history.append(
            {
                "kind": "break",
                "token": 1,
                "now": False,
                "invoked_ns": 110 * MS,
                "returned_ns": 112 * MS,
                "was_live": True,
            }
        )
        self.events.grant(1, asked=100, at=300, token=2)
        self.assertFine()

    def test_start_below_a_granted_token_is_found(self):
        self.events.grant(0, asked=0, at=5, token=7)
        self.events.history.append({"kind": "start", "at_ns": 50 * MS, "last_token": 6})
        self.assertFound("P6")

    def test_a_write_after_a_greater_token_is_found(self):
        self.first_holder()
        self.events.grant(1, asked=60, at=103, token=2)
        self.events.wrote(1, 130, token=2, op=1)
        self.events.rows["alpha"].append({"token": 1, "op": 2, "writer": "c0", "at": 140 * MS})
        self.assertFound("P5")

    def test_a_write_after_an_advance_to_a_greater_token_is_found(self):
        self.first_holder()
        self.events.grant(1, asked=60, at=103, token=2, fenced=True)
        self.events.rows["alpha"].append({"token": 1, "op": 2, "writer": "c0", "at": 140 * MS})
        self.assertFound("P5")

    def test_missing_acknowledged_write_is_found(self):
        self.first_holder()
        self.events.wrote(0, 60, token=1, op=2, there=0)
        self.assertFound("P5")

    def test_duplicate_write_is_found(self):
        self.first_holder()
        self.events.wrote(0, 60, token=1, op=2, there=2)
        self.assertFound("P5")

    def test_failed_write_that_took_effect_is_found(self):
        self.first_holder()
        self.events.wrote(0, 60, token=1, op=2, outcome="nothing")
        self.assertFound("P5")

    def test_write_of_unknown_outcome_is_accepted_either_way(self):
        self.first_holder()
        self.events.wrote(0, 60, token=1, op=2, outcome="unknown", there=0)
        self.events.wrote(0, 70, token=1, op=3, outcome="unknown", there=1)
        self.assertFine()

    def test_refusal_of_a_current_holder_is_found(self):
        self.first_holder(release=False)
        self.events.wrote(0, 60, token=1, op=2, outcome="stale", there=0)
        self.assertFound("P5")

    def test_refusal_after_break_now_is_accepted(self):
        self.first_holder(release=False)
        self.events.wrote(0, 60, token=1, op=2, outcome="stale", there=0)
        self.events.history.append(
            {
                "kind": "break",
                "token": 1,
                "now": True,
                "invoked_ns": 55 * MS,
                "returned_ns": 57 * MS,
                "was_live": True,
            }
        )
        self.assertFine()

    def test_refusal_of_an_expired_holder_is_accepted(self):
        self.first_holder(release=False)
        self.events.wrote(0, 2000, token=1, op=2, outcome="stale", there=0)
        self.assertFine()

    def test_truncated_last_line_is_ignored(self):
        self.first_holder()
        self.assertFine(torn='{"e":"wrote","at":12')


class IdleTest(unittest.TestCase):
    def idle(self, done, **counts):
        profile = schedule.profile(1, 10, "plain", "sqlite", kinds=["kill_pawld", "cut_both"])
        verdict = judge.Verdict([], collections.Counter(counts), collections.Counter())
        return world.idle(profile, verdict, collections.Counter(done))

    def test_run_with_enough_activity_counts(self):
        self.assertEqual(
            self.idle({"kill_pawld": 1, "cut_both": 1}, grants=50, writes_admitted=50, renewals=5),
            [],
        )

    def test_run_without_a_required_fault_does_not_count(self):
        self.assertEqual(
            self.idle({"kill_pawld": 3}, grants=50, writes_admitted=50, renewals=5),
            ["idle: no cut_both"],
        )

    def test_run_with_few_grants_does_not_count(self):
        self.assertEqual(
            len(
                self.idle(
                    {"kill_pawld": 1, "cut_both": 1}, grants=4, writes_admitted=50, renewals=5
                )
            ),
            1,
        )


if __name__ == "__main__":
    programs.find()
    unittest.main(verbosity=2)
