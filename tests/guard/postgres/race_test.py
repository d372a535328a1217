"""Races against the product: old and new tokens on many connections, at every isolation level.
Guarantee G8; hard case 56.

Continuous integration runs some thousand attempts. PAWL_GUARD_RACES=10000 makes that many per
connection, which takes an hour. The judge and what it looks for: race.py; that it is not
blind: textbook_test.py. """

import sys
import time

import race
import race_forms as forms
from pawltest import postgres
from pawltest.postgres import ISOLATIONS


class RaceCase(postgres.ClusterCase):
    settings = {"track_commit_timestamp": "on", "max_connections": 200}

    def setUp(self):
        self._log_start = len(self.cluster.log_text())

    def assertNoStaleEffect(self, form, connections, attempts, levels=ISOLATIONS, **options):
        for level in levels:
            with self.subTest(level):
                self.race(form, level, connections, race.rounds(attempts), **options)

    def race(self, form, level, connections, attempts, **options):
        self.db = self.cluster.create_database(
            f"t{next(self._numbers)}", guard=isinstance(form, forms.Pawl)
        )
        self.cluster.psql(race.JOURNAL + form.schema, self.db)
        began = time.monotonic()
        contest = race.Race(
            form, self.connect, level, connections, attempts, seed=1, **options
        ).run()
        print(
            f"  {type(form).__name__}, {level}, {connections} connections: "
            f"{dict(contest.outcomes)} in "
            f"{time.monotonic() - began:.1f} s",
            file=sys.stderr,
        )
        self.assertEqual(contest.wrong, [])
        self.assertEqual(
            contest.violations(self.connect()),
            (0, 0),
            "committed against the order, or on an old view",
        )
        # A race in which nobody won or nobody lost would prove nothing.
        self.assertGreater(contest.outcomes["admitted"], 5)
        self.assertGreater(contest.outcomes["refused"], 0)
        return contest


class StaticGuards(RaceCase):
    def test_no_stale_write_to_a_protected_table(self):
        self.assertNoStaleEffect(forms.PawlTable(), 16, 30)

    def test_no_stale_write_when_the_token_is_a_setting(self):
        self.assertNoStaleEffect(forms.PawlSetting(), 16, 20)

    def test_no_stale_write_after_admit(self):
        self.assertNoStaleEffect(forms.PawlAdmit(), 16, 20)

    def test_no_stale_write_with_64_writers(self):
        self.assertNoStaleEffect(forms.PawlTable(), 64, 8)

    def test_no_stale_write_or_old_snapshot_with_many_writers_of_one_token(self):
        for form in (forms.PawlTable(), forms.PawlSetting(), forms.PawlAdmit()):
            with self.subTest(type(form).__name__):
                self.assertNoStaleEffect(form, 16, 30, lags=race.ONE_HOLDER)

    def test_race_check_accepts_a_serialising_guard(self):
        self.assertNoStaleEffect(forms.ForUpdate(), 12, 20, ("read committed",))


class KeyedGuards(RaceCase):
    def test_no_stale_write_after_admit_of_a_key(self):
        self.assertNoStaleEffect(forms.PawlKeyedAdmit(), 16, 20)

    def test_no_stale_write_with_a_fence_per_row(self):
        self.assertNoStaleEffect(forms.PawlKey(), 12, 20)

    def test_no_stale_write_with_a_fence_per_expression(self):
        self.assertNoStaleEffect(forms.PawlBy(), 12, 20)

    def test_no_stale_write_to_several_resources_at_once(self):
        self.assertNoStaleEffect(forms.PawlSeveral(), 12, 20)


if __name__ == "__main__":
    postgres.main()
