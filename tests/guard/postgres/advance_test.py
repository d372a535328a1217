"""What advance() waits for, and what waits for it. Hard case 54.

Everything here is about the order of sessions. Nothing is timed: a step either ended, or is seen to
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
        # As on every grant. A raise in the writing transaction would block the same token.
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
    def test_advance_waits_for_an_open_transaction_then_refuses_its_token(self):
        old = self.writer(33)
        advance = self.advancing(34)
        old.commit()
        self.assertEqual(advance.result(), [(33,)])
        self.assertEqual(self.tokens(), [33])
        self.assertRefused("PW002", self.write, old, 33)

    def test_advance_alone_fences_the_old_holder(self):
        """Hard case 54: grant 34, no write, replay 33."""
        self.writer(33).commit()
        rows(self.watch, "SELECT pawl.advance('r', 34)")
        self.assertRefused("PW002", self.write, self.connect(), 33)
        self.assertEqual(self.tokens(), [33])

    def test_advance_timeout_names_the_blocker(self):
        old = self.writer(33, application_name="nightly")
        error = self.assertRefused(
            "PW007", rows, self.watch, "SELECT pawl.advance('r', 34, '50 ms')"
        )
        self.assertIn("nightly", error.diag.message_detail)
        self.assertIn(str(old.info.backend_pid), error.diag.message_detail)
        found = rows(self.watch, "SELECT pid, gid, role, application_name FROM pawl.blockers('r')")
        self.assertEqual(found, [(old.info.backend_pid, None, "postgres", "nightly")])

    def test_advance_timeout_changes_nothing(self):
        old = self.writer(33)
        self.assertRefused("PW007", rows, self.watch, "SELECT pawl.advance('r', 34, '50 ms')")
        self.assertEqual(self.fence(), 33)
        self.write(old, 33)
        old.commit()
        self.assertEqual(self.tokens(), [33, 33])

    def test_evict_ends_the_transaction_without_effect(self):
        old = self.writer(33)
        self.assertEqual(self.value("SELECT pawl.evict('r', 34)", on=self.watch), 1)
        rows(self.watch, "SELECT pawl.advance('r', 34)")
        with self.assertRaises(psycopg2.Error):
            old.commit()
        self.assertEqual(self.tokens(), [])

    def test_evict_spares_the_holder_of_the_token(self):
        new = self.writer(34)
        self.assertEqual(self.value("SELECT pawl.evict('r', 34)", on=self.watch), 0)
        new.commit()
        self.assertEqual(self.tokens(), [34])

    def test_idle_in_transaction_timeout_unblocks_advance(self):
        old = self.connect()
        rows(old, "SET idle_in_transaction_session_timeout = '50ms'")
        self.write(old, 33)
        advance = self.later(self.connect(autocommit=True), "SELECT pawl.advance('r', 34, '60 s')")
        self.assertEqual(advance.result(), [(33,)])
        self.assertEqual(self.tokens(), [])

    def test_advance_needs_read_committed(self):
        for level in ("repeatable read", "serializable"):
            self.assertRefused(
                "PW006", rows, self.connect(isolation=level), "SELECT pawl.advance('r', 34)"
            )


class WhileAdvanceWaits(AdvanceCase):
    def test_waiting_advance_does_not_disturb_the_old_holder(self):
        old = self.writer(33)
        advance = self.advancing(34)
        self.write(old, 33)
        old.commit()
        advance.result()
        self.assertEqual(self.tokens(), [33, 33])

    def test_same_token_is_admitted_while_advance_waits(self):
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

    def test_advance_never_blocks_readers_and_checks(self):
        old = self.writer(33)
        advance = self.advancing(34)
        self.assertEqual(rows(self.watch, "SELECT count(*) FROM written"), [(0,)])
        self.assertEqual(
            rows(self.watch, "SELECT verdict FROM pawl.check('r', 33)"), [("admitted",)]
        )
        old.commit()
        advance.result()


class WhoRaises(AdvanceCase):
    def test_stale_token_is_refused_while_the_raise_is_uncommitted(self):
        new = self.writer(34)
        step = self.later(self.connect(), "SELECT pawl.use('r', 33)")
        self.assertFalse(step.waits())
        self.assertRefused("PW002", step.result)
        new.commit()

    def test_first_three_users_of_a_token_do_not_deadlock(self):
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

    def test_deadlock_with_row_locks_is_not_called_stale(self):
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

    def test_rolled_back_raise_stays(self):
        new = self.writer(34)
        new.rollback()
        self.assertEqual(self.fence(), 34)
        self.assertRefused("PW002", self.write, self.connect(), 33)

    def test_mode_change_waits_for_transactions_of_the_old_mode(self):
        old = self.writer(33)
        change = self.later(
            self.connect(autocommit=True), "SELECT pawl.set_policy('r', equal => 'refuse')"
        )
        self.assertTrue(change.waits())
        old.commit()
        change.result()

    def test_emergency_switch_does_not_wait(self):
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
