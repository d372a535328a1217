"""What advance() waits for, and whom it keeps waiting. Hard case 54.

Everything here is about who comes before whom. Nothing is timed: a step either ended, or is seen to
wait for a lock. """

import psycopg2

import race
import race_forms as forms
from later import Later
from pawltest import postgres
from pawltest.postgres import rows, wait_until


class AdvanceCase(postgres.ClusterCase):
    settings = {"deadlock_timeout": "100ms"}

    def setUp(self):
        super().setUp()
        self.cluster.psql(race.JOURNAL + forms.PawlTable.schema, self.db)
        self.watch = self.connect(autocommit=True)
        # As on every grant. Who raises in its own transaction would hold up its siblings.
        rows(self.watch, "SELECT pawl.advance('r', 33)")

    def writer(self, token, **options):
        """An open transaction that was admitted with the token and has written."""
        session = self.connect(**options)
        self.write(session, token)
        return session

    @staticmethod
    def write(session, token):
        rows(session, "SELECT pawl.use('r', %s)", token)
        rows(session, "INSERT INTO written VALUES ('r', %s)", token)

    def later(self, session, sql, *values):
        return Later(self.watch, session, rows, sql, *values)

    def advancing(self, token, wait="60 s"):
        """An advance that is held up."""
        advance = self.later(
            self.connect(autocommit=True), "SELECT pawl.advance('r', %s, %s)", token, wait
        )
        self.assertTrue(advance.waits())
        return advance

    def fence(self):
        return self.value("SELECT pawl.fence('r')", on=self.watch)

    def tokens(self):
        return [row[0] for row in rows(self.watch, "SELECT token FROM written ORDER BY token")]


class AnOpenTransaction(AdvanceCase):
    def test_advance_waits_for_it_and_then_refuses_its_token(self):
        old = self.writer(33)
        advance = self.advancing(34)
        old.commit()
        self.assertEqual(advance.result(), [(33,)])
        self.assertEqual(self.tokens(), [33])
        self.assertRefused("PW002", self.write, old, 33)

    def test_a_new_holder_that_never_writes_has_fenced_the_old_one(self):
        """Hard case 54: grant 34, no write, replay 33."""
        self.writer(33).commit()
        rows(self.watch, "SELECT pawl.advance('r', 34)")
        self.assertRefused("PW002", self.write, self.connect(), 33)
        self.assertEqual(self.tokens(), [33])

    def test_an_advance_that_waited_in_vain_names_who_is_in_the_way(self):
        old = self.writer(33, application_name="nightly")
        error = self.assertRefused(
            "PW007", rows, self.watch, "SELECT pawl.advance('r', 34, '50 ms')"
        )
        self.assertIn("nightly", error.diag.message_detail)
        self.assertIn(str(old.info.backend_pid), error.diag.message_detail)
        found = rows(self.watch, "SELECT pid, gid, role, application_name FROM pawl.blockers('r')")
        self.assertEqual(found, [(old.info.backend_pid, None, "postgres", "nightly")])

    def test_an_advance_that_waited_in_vain_has_promised_nothing(self):
        old = self.writer(33)
        self.assertRefused("PW007", rows, self.watch, "SELECT pawl.advance('r', 34, '50 ms')")
        self.assertEqual(self.fence(), 33)
        self.write(old, 33)
        old.commit()
        self.assertEqual(self.tokens(), [33, 33])

    def test_evict_ends_it_and_its_effect_is_gone(self):
        old = self.writer(33)
        self.assertEqual(self.value("SELECT pawl.evict('r', 34)", on=self.watch), 1)
        rows(self.watch, "SELECT pawl.advance('r', 34)")
        with self.assertRaises(psycopg2.Error):
            old.commit()
        self.assertEqual(self.tokens(), [])

    def test_evict_spares_the_holder_of_the_token_itself(self):
        new = self.writer(34)
        self.assertEqual(self.value("SELECT pawl.evict('r', 34)", on=self.watch), 0)
        new.commit()
        self.assertEqual(self.tokens(), [34])

    def test_postgresqls_own_timeout_frees_it(self):
        old = self.connect()
        rows(old, "SET idle_in_transaction_session_timeout = '50ms'")
        self.write(old, 33)
        advance = self.later(self.connect(autocommit=True), "SELECT pawl.advance('r', 34, '60 s')")
        self.assertEqual(advance.result(), [(33,)])
        self.assertEqual(self.tokens(), [])

    def test_advance_insists_on_read_committed(self):
        for level in ("repeatable read", "serializable"):
            self.assertRefused(
                "PW006", rows, self.connect(isolation=level), "SELECT pawl.advance('r', 34)"
            )


class WhileAdvanceWaits(AdvanceCase):
    def test_the_old_holder_goes_on_undisturbed(self):
        old = self.writer(33)
        advance = self.advancing(34)
        self.write(old, 33)
        old.commit()
        advance.result()
        self.assertEqual(self.tokens(), [33, 33])

    def test_a_sibling_of_the_old_holder_is_let_in_before_advance_gives_up(self):
        """It queues behind the advance for one slice at most, not for the whole wait: it ends while
        the advance still waits."""
        old = self.writer(33)
        advance = self.advancing(34)
        sibling = self.connect()
        self.write(sibling, 33)
        sibling.commit()
        self.assertFalse(advance.ended)
        old.commit()
        advance.result()
        self.assertEqual(self.tokens(), [33, 33])

    def test_readers_and_checks_are_never_held_up(self):
        old = self.writer(33)
        advance = self.advancing(34)
        self.assertEqual(rows(self.watch, "SELECT count(*) FROM written"), [(0,)])
        self.assertEqual(
            rows(self.watch, "SELECT verdict FROM pawl.check('r', 33)"), [("admitted",)]
        )
        old.commit()
        advance.result()


class WhoRaises(AdvanceCase):
    def test_a_stale_token_is_refused_at_once_while_the_raiser_is_still_open(self):
        new = self.writer(34)
        step = self.later(self.connect(), "SELECT pawl.use('r', 33)")
        self.assertFalse(step.waits())
        self.assertRefused("PW002", step.result)
        new.commit()

    def test_the_first_three_users_of_a_token_do_not_deadlock(self):
        """Upgrading a shared lock would: each would wait for the other two."""
        old = self.writer(33)
        firsts = [self.connect() for _ in range(3)]
        steps = [self.later(first, "SELECT pawl.use('r', 34)") for first in firsts]
        for step in steps:
            self.assertTrue(step.waits())
        old.commit()
        left = list(zip(firsts, steps))
        while left:  # The first of them raises; the others follow when it has ended.
            ready = wait_until(
                lambda: next((pair for pair in left if pair[1].ended), None),
                "one of them can go on",
            )
            ready[1].result()
            ready[0].commit()
            left.remove(ready)
        self.assertEqual(self.fence(), 34)

    def test_who_locks_rows_first_and_raises_later_deadlocks_by_name_and_is_not_called_stale(self):
        self.cluster.psql("CREATE TABLE mine (id int); INSERT INTO mine VALUES (1)", self.db)
        new, old = self.connect(), self.writer(33)
        rows(new, "UPDATE mine SET id = 1")
        blocked = self.later(old, "UPDATE mine SET id = 1")
        self.assertTrue(blocked.waits())
        raising = self.later(new, "SELECT pawl.use('r', 34)")
        codes = []
        for session, step in ((old, blocked), (new, raising)):
            try:
                step.result()
                session.commit()
            except psycopg2.Error as error:
                codes.append(error.pgcode)
                session.rollback()
        self.assertEqual(codes, ["40P01"])

    def test_a_raise_that_is_rolled_back_stays(self):
        new = self.writer(34)
        new.rollback()
        self.assertEqual(self.fence(), 34)
        self.assertRefused("PW002", self.write, self.connect(), 33)

    def test_a_mode_is_changed_only_after_who_was_judged_under_the_old_one(self):
        old = self.writer(33)
        change = self.later(
            self.connect(autocommit=True), "SELECT pawl.set_policy('r', equal => 'refuse')"
        )
        self.assertTrue(change.waits())
        old.commit()
        change.result()

    def test_the_emergency_switch_waits_for_nobody(self):
        old = self.writer(33)
        switch = self.later(self.connect(autocommit=True), "SELECT pawl.emergency('stuck')")
        self.assertFalse(switch.waits())
        switch.result()
        late = self.later(self.connect(), "SELECT pawl.use('r', 32)")
        self.assertFalse(late.waits())
        self.assertEqual(late.result(), [("stale",)])
        old.commit()


if __name__ == "__main__":
    postgres.main()
