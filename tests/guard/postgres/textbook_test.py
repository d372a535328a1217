"""Textbook fencing in SQL, and the race in it, step by step. Hard case 56; design rule 2.

Each form is run in the order of steps that breaks it: two sessions, no luck. The old holder has 33,
the new one 34. The same steps against the product must not break it, which is what makes these
stories tests of the steps too. """

import random

import psycopg2

import race
import race_forms as forms
from later import Later
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, rows

CHECK_FIRST = ("check", "advance", "write", "commit")
WRITE_FIRST = ("check", "write", "advance", "commit")
SNAPSHOT_FIRST = ("snapshot", "advance", "check", "write", "commit")
SNAPSHOT_CHECK = ("snapshot", "check", "advance", "write", "commit")
ALL_ORDERS = (CHECK_FIRST, WRITE_FIRST, SNAPSHOT_FIRST, SNAPSHOT_CHECK)


class Calm(random.Random):
    """Dice for forms that sometimes do more than they must: here they never do."""

    def random(self):
        return 0.999


class TextbookCase(postgres.ClusterCase):
    settings = {"track_commit_timestamp": "on"}

    def setUp(self):
        self._log_start = len(self.cluster.log_text())

    def play(self, form, isolation, steps):
        """Plays the steps in a new database: (violations of order, what the old holder met)."""
        self.db = self.cluster.create_database(
            f"t{next(self._numbers)}", guard=isinstance(form, forms.Pawl)
        )
        self.cluster.psql(race.JOURNAL + form.schema, self.db)
        self.watch = self.connect(autocommit=True)
        old, new = self.connect(isolation=isolation), self.connect(isolation="read committed")
        self.fence_is(new, form, 33)
        met = "admitted"
        advance = None
        for step in steps:
            try:
                if step == "snapshot":
                    rows(old, "SELECT count(*) FROM advanced")
                elif step == "check":
                    form.begin(old, Calm(), "r", 33)
                elif step == "write":
                    form.write(old, "r", 33, 1)
                elif step == "advance":
                    advance = Later(self.watch, new, self.fence_is, form, 34).settled()
                elif met == "admitted":
                    old.commit()
            except psycopg2.Error as error:
                met = error.pgcode
                old.rollback()
                break
        advance.result()
        order = rows(self.watch, race.ORDER)[0][0]
        old.close()
        new.close()
        return order, met

    @staticmethod
    def fence_is(session, form, token):
        """What a new holder does first."""
        form.advance(session, "r", token)
        rows(session, "INSERT INTO advanced VALUES ('r', %s)", token)
        session.commit()


class TheTextbookRaces(TextbookCase):
    def assertRaces(self, form, steps, levels):
        for level in levels:
            with self.subTest(level):
                self.assertEqual(self.play(form, level, steps), (1, "admitted"))

    def test_read_then_write_admits_a_stale_write(self):
        self.assertRaces(forms.PlainRead(), CHECK_FIRST, ISOLATIONS)

    def test_check_inside_the_write_admits_a_stale_commit(self):
        self.assertRaces(forms.SubqueryInTheWrite(), WRITE_FIRST, ISOLATIONS)

    def test_for_key_share_does_not_block_a_raise(self):
        self.assertRaces(forms.KeyShare(), CHECK_FIRST, ISOLATIONS)

    def test_locking_read_in_a_subselect_locks_too_little(self):
        self.assertRaces(forms.LockingSubselect(), CHECK_FIRST, ISOLATIONS)

    def test_advisory_lock_around_a_plain_read_sees_an_old_fence(self):
        self.assertRaces(
            forms.AdvisoryPlainRead(), SNAPSHOT_FIRST, ("repeatable read", "serializable")
        )
        self.assertEqual(
            self.play(forms.AdvisoryPlainRead(), "read committed", SNAPSHOT_FIRST), (0, "PW002")
        )

    def test_many_writers_find_the_race_by_chance(self):
        form = forms.PlainRead()
        self.db = self.cluster.create_database(f"t{next(self._numbers)}", guard=False)
        self.cluster.psql(race.JOURNAL + form.schema, self.db)
        found = 0
        for seed in range(20):  # The first time nearly always suffices.
            contest = race.Race(
                form, self.connect, "read committed", connections=12, attempts=30, seed=seed
            ).run()
            self.assertEqual(contest.wrong, [])
            found, _ = contest.violations(self.connect())
            if found:
                return
        self.fail("no violation of a guard that has the race: the harness is blind")


class Tombstones(TextbookCase):
    """A row that was deleted must not be forgotten (design rule 8). 5 deletes it; 4 writes it anew
    while 5 is still open."""

    def start(self, schema, guard, level):
        self.db = self.cluster.create_database(f"t{next(self._numbers)}", guard=guard)
        self.cluster.psql(
            "CREATE TABLE item (id int PRIMARY KEY, n int); INSERT INTO item VALUES (1, 0);"
            + schema,
            self.db,
        )
        self.watch = self.connect(autocommit=True)
        return self.connect(), self.connect(isolation=level)

    def test_unlocked_tombstone_admits_a_stale_insert(self):
        for level in ISOLATIONS:
            with self.subTest(level):
                new, old = self.start(
                    "CREATE TABLE tombstone (id int PRIMARY KEY, token bigint);", False, level
                )
                rows(new, "DELETE FROM item WHERE id = 1")
                rows(new, "INSERT INTO tombstone VALUES (1, 5)")
                self.assertEqual(
                    rows(old, "SELECT token FROM tombstone WHERE id = 1"),
                    [],
                    "4 sees no reason to stop",
                )
                insert = Later(self.watch, old, rows, "INSERT INTO item VALUES (1, 4)")
                self.assertTrue(insert.waits(), "for the transaction that deletes")
                new.commit()
                insert.result()
                old.commit()
                self.assertEqual(rows(self.watch, "SELECT n FROM item"), [(4,)])

    def test_a_deleted_row_under_guard_stays_fenced(self):
        for level in ISOLATIONS:
            with self.subTest(level):
                new, old = self.start(
                    "SELECT pawl.protect('item', key => 'id', mode => 'enforce');", True, level
                )
                rows(new, "SELECT pawl.use('item:1', 5)")
                rows(new, "DELETE FROM item WHERE id = 1")
                use = Later(self.watch, old, rows, "SELECT pawl.use('item:1', 4)").settled()
                new.commit()
                with self.assertRaises(psycopg2.Error) as caught:
                    use.result()
                    rows(old, "INSERT INTO item VALUES (1, 4)")
                self.assertIn(caught.exception.pgcode, ("PW002", "40001"))
                old.rollback()
                with self.assertRaises(psycopg2.Error) as caught:
                    rows(old, "SELECT pawl.use('item:1', 4)")
                self.assertEqual(caught.exception.pgcode, "PW002")
                old.rollback()
                self.assertEqual(rows(self.watch, "SELECT n FROM item"), [])


class WhatHoldsUnderTheSameSteps(TextbookCase):
    def assertHolds(self, form):
        for level in ISOLATIONS:
            for steps in ALL_ORDERS:
                with self.subTest(level=level, steps=steps):
                    order, met = self.play(form, level, steps)
                    self.assertEqual(order, 0)
                    late = steps.index("advance") < steps.index("check")
                    self.assertIn(met, ("PW002", "40001") if late else ("admitted", "40001"))

    def test_for_update_is_safe_but_serialises(self):
        self.assertHolds(forms.ForUpdate())

    def test_a_protected_table_is_safe(self):
        self.assertHolds(forms.PawlTable())

    def test_admit_is_safe(self):
        self.assertHolds(forms.PawlAdmit())


if __name__ == "__main__":
    postgres.main()
