#!/usr/bin/python3
"""What MariaDB's isolation levels do to a fence: each pitfall, and that the guard is not caught by
it."""

import threading

import pymysql

from pawltest.mariadb import ISOLATIONS, ServerCase, call, main, rows, state, wait_until


class SnapshotTest(ServerCase):
    def test_only_a_locking_read_sees_a_new_fence(self):
        """The reason for every LOCK IN SHARE MODE in the guard."""
        self.protect()
        self.write(33)
        old = self.connect(isolation="REPEATABLE READ")
        rows(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        call(self.connect(), "advance", self.orders, 34, 5)
        plain = "SELECT fence FROM pawl.guard WHERE name = %s"
        self.assertEqual(self.value(plain, self.orders, on=old), 33)
        self.assertEqual(self.value(plain + " LOCK IN SHARE MODE", self.orders, on=old), 34)

    def test_an_old_snapshot_cannot_write_with_an_old_token(self):
        for isolation in ISOLATIONS:
            with self.subTest(isolation):
                self.protect()
                token = (self.value("SELECT pawl.fence(%s)", self.orders) or 32) + 1
                call(self.connect(), "advance", self.orders, token, 5)
                old = self.connect(isolation=isolation)
                rows(old, "START TRANSACTION")
                rows(old, "SELECT * FROM accounts")
                call(self.connect(), "advance", self.orders, token + 1, 5)
                self.assertRefused("PW002", call, old, "use", self.orders, token)
                self.assertRefused("PW002", rows, old, "UPDATE orders SET n = 9")
                rows(old, "COMMIT")

    def test_new_holder_needs_a_snapshot_after_its_advance(self):
        self.protect()
        self.write(33)
        new = self.connect(isolation="REPEATABLE READ")
        rows(new, "START TRANSACTION")
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1", on=new), 1)
        self.write(33)
        call(self.connect(), "advance", self.orders, 34, 5)
        self.assertRefused("40001", call, new, "use", self.orders, 34)
        rows(new, "ROLLBACK")
        rows(new, "START TRANSACTION")
        self.assertEqual(call(new, "use", self.orders, 34), [("admitted",)])
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1", on=new), 2)

    def test_write_after_an_old_snapshot_was_refused_is_refused_again(self):
        self.protect()
        self.write(33)
        old = self.connect(isolation="REPEATABLE READ")
        rows(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        call(self.connect(), "advance", self.orders, 34, 5)
        self.assertRefused("40001", call, old, "use", self.orders, 34)
        self.assertRefused("40001", rows, old, "UPDATE orders SET n = 9")
        rows(old, "ROLLBACK")
        self.assertEqual(self.write(34, on=old), "admitted")

    def test_token_in_a_column_needs_a_snapshot_after_the_advance(self):
        self.protect()
        self.write(33)
        call(self.connect(), "token_column", self.orders, True)
        keyed = self.protect("lines", key="customer")
        call(self.connect(), "advance", f"{keyed}:1", 33, 5)
        call(self.connect(), "token_column", keyed, True)
        for number, sql in enumerate(
            (
                "UPDATE orders SET n = 9, pawl_token = {} WHERE id = 1",
                "INSERT INTO orders (n, pawl_token) VALUES (9, {})",
                "INSERT INTO `lines` (customer, pawl_token) VALUES (1, {})",
            ),
            34,
        ):
            with self.subTest(sql):
                old = self.connect(isolation="REPEATABLE READ")
                rows(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
                for resource in (self.orders, f"{keyed}:1"):
                    call(self.connect(), "advance", resource, number, 5)
                self.assertRefused("40001", rows, old, sql.format(number))
                rows(old, "ROLLBACK")
                rows(old, "START TRANSACTION")
                rows(old, sql.format(number))
                rows(old, "COMMIT")

    def test_new_token_in_repeatable_read_must_advance_first(self):
        self.protect()
        self.write(33)
        db = self.connect(isolation="REPEATABLE READ")
        rows(db, "START TRANSACTION")
        self.assertRefused("PW006", call, db, "use", self.orders, 34)
        rows(db, "ROLLBACK")
        self.assertEqual(call(db, "begin", self.orders, 34), [("admitted",)])

    def test_leftover_token_is_refused_on_an_old_snapshot(self):
        self.protect()
        pooled = self.connect(isolation="REPEATABLE READ")
        self.write(33, on=pooled)
        rows(pooled, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        call(self.connect(), "advance", self.orders, 34, 5)
        self.assertRefused("PW002", rows, pooled, "UPDATE orders SET n = 9")

    def test_use_takes_a_snapshot_no_older_than_its_lock(self):
        self.protect()
        self.write(33)
        old = self.connect(isolation="READ COMMITTED")
        rows(old, "START TRANSACTION")
        call(old, "use", self.orders, 34)
        new = self.connect(isolation="REPEATABLE READ")
        rows(new, "START TRANSACTION")
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(call(new, "use", self.orders, 34)))
        waiting.start()
        self.wait_for_a_lock_wait()
        rows(old, "UPDATE orders SET n = 77 WHERE id = 1")
        rows(old, "COMMIT")
        waiting.join()
        self.assertEqual(answers, [[("admitted",)]])
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1", on=new), 77)

    def wait_for_a_lock_wait(self):
        admin = self.connect()
        wait_until(
            lambda: int(
                rows(admin, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")[0][1]
            ),
            "a session waits",
        )


class AdvanceTest(ServerCase):
    def test_advance_waits_for_an_open_write_at_every_level(self):
        self.protect()
        for number, isolation in enumerate(ISOLATIONS):
            with self.subTest(isolation):
                token = 100 + 10 * number
                call(self.connect(), "advance", self.orders, token, 5)
                old = self.connect(isolation=isolation)
                rows(old, "START TRANSACTION")
                call(old, "use", self.orders, token)
                rows(old, "UPDATE orders SET n = n + 1 WHERE id = 1")
                self.assertRefused(
                    "PW007", call, self.connect(), "advance", self.orders, token + 1, 1
                )
                self.assertEqual(self.value("SELECT pawl.fence(%s)", self.orders), token)
                rows(old, "COMMIT")
                self.assertEqual(
                    call(self.connect(), "advance", self.orders, token + 1, 5), [(token,)]
                )

    def test_advance_needs_a_transaction_of_its_own(self):
        self.protect()
        db = self.connect()
        rows(db, "START TRANSACTION")
        rows(db, "INSERT INTO accounts (n) VALUES (1)")
        self.assertRefused("PW006", call, db, "advance", self.orders, 34, 5)
        rows(db, "ROLLBACK")
        self.assertEqual(self.value("SELECT COUNT(*) FROM accounts"), 0)

    def test_advance_leaves_the_lock_wait_timeout_as_it_was(self):
        self.protect()
        db = self.connect()
        rows(db, "SET SESSION innodb_lock_wait_timeout = 17")
        call(db, "advance", self.orders, 34, 5)
        self.assertRefused("PW002", call, db, "advance", self.orders, 33, 5)
        self.assertEqual(self.value("SELECT @@innodb_lock_wait_timeout", on=db), 17)

    def test_advance_ends_its_transaction_whatever_the_session_does_with_others(self):
        self.protect()
        for number, completion in enumerate(("NO_CHAIN", "CHAIN", "RELEASE"), 34):
            with self.subTest(completion):
                db = self.connect()
                rows(db, f"SET SESSION completion_type = '{completion}'")
                call(db, "advance", self.orders, number, 5)
                self.assertEqual(self.value("SELECT @@in_transaction", on=db), 0)
                call(db, "begin", self.orders, number)
                rows(db, "UPDATE orders SET n = n + 1")
                call(db, "finish")
                self.assertEqual(self.value("SELECT @@in_transaction", on=db), 0)

    def test_a_lock_wait_timeout_is_never_called_stale(self):
        self.protect()
        self.write(33)
        raiser = self.connect(isolation="READ COMMITTED")
        rows(raiser, "START TRANSACTION")
        call(raiser, "use", self.orders, 34)
        other = self.connect()
        rows(other, "SET SESSION innodb_lock_wait_timeout = 1")
        rows(other, "START TRANSACTION")
        self.assertRefused("1205", call, other, "use", self.orders, 33)

    def test_a_deadlock_is_never_called_stale(self):
        self.protect()
        self.write(33)
        first, second = self.connect(isolation="SERIALIZABLE"), self.connect(
            isolation="SERIALIZABLE"
        )
        for db in (first, second):
            rows(db, "START TRANSACTION")
            call(db, "use", self.orders, 33)
        ends = []

        def raise_fence(db):
            try:
                ends.append(call(db, "use", self.orders, 34)[0][0])
                rows(db, "COMMIT")
            except pymysql.MySQLError as error:
                ends.append(state(error))
                rows(db, "ROLLBACK")

        both = [threading.Thread(target=raise_fence, args=(db,)) for db in (first, second)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        self.assertEqual(sorted(ends), ["40001", "admitted"])


class OneOffLevelTest(ServerCase):
    """SET TRANSACTION ISOLATION LEVEL … is for the next transaction only, and no SQL can read it.
    What a fence is compared with is a locking read at every level, so that it decides nothing about
    stale writes."""

    PAIRS = [(session, once) for session in ISOLATIONS for once in ISOLATIONS if session != once]

    def start(self, session, once):
        db = self.connect(isolation=session)
        rows(db, f"SET TRANSACTION ISOLATION LEVEL {once}")
        rows(db, "START TRANSACTION")
        # The guard sees this.
        self.assertEqual(self.value("SELECT @@tx_isolation", on=db), session.replace(" ", "-"))
        return db

    def test_an_old_snapshot_cannot_write_with_an_old_token(self):
        self.protect()
        for token, (session, once) in enumerate(self.PAIRS, 33):
            with self.subTest(f"{once} once, in a session of {session}"):
                call(self.connect(), "advance", self.orders, token, 5)
                old = self.start(session, once)
                rows(old, "SELECT * FROM accounts")
                call(self.connect(), "advance", self.orders, token + 1, 5)
                self.assertRefused("PW002", call, old, "use", self.orders, token)
                self.assertRefused("PW002", rows, old, "UPDATE orders SET n = 9")
                rows(old, "ROLLBACK")

    def test_advance_waits_for_an_open_write(self):
        self.protect()
        call(self.connect(), "advance", self.orders, 34, 5)
        for session, once in self.PAIRS:
            with self.subTest(f"{once} once, in a session of {session}"):
                db = self.start(session, once)
                call(db, "use", self.orders, 34)
                rows(db, "UPDATE orders SET n = n + 1 WHERE id = 1")
                self.assertRefused("PW007", call, self.connect(), "advance", self.orders, 35, 1)
                rows(db, "ROLLBACK")

    def test_snapshot_before_the_advance_is_refused(self):
        self.protect()
        self.write(33)
        new = self.start("READ COMMITTED", "REPEATABLE READ")
        rows(new, "SELECT * FROM orders")
        call(self.connect(), "advance", self.orders, 34, 5)
        self.assertRefused("40001", call, new, "use", self.orders, 34)


class CrashTest(ServerCase):
    def test_only_acknowledged_work_survives_kill_9(self):
        self.protect()
        for token in range(34, 38):
            call(self.connect(), "advance", self.orders, token, 5)
            self.write(token)
            open_one = self.connect(isolation="READ COMMITTED")
            rows(open_one, "START TRANSACTION")
            call(open_one, "use", self.orders, token + 100)
            rows(open_one, "UPDATE orders SET n = 1000 WHERE id = 1")
            self.server.crash()
            self.server.start()
            self.assertEqual(self.value("SELECT pawl.fence(%s)", self.orders), token)
            self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), token - 33)
            self.assertRefused("PW002", self.write, token - 1)

    def test_equal_advance_survives_a_crash(self):
        self.protect()
        call(self.connect(), "advance", self.orders, 34, 5)
        self.assertEqual(call(self.connect(), "advance", self.orders, 34, 5), [(34,)])
        self.server.crash()
        self.server.start()
        self.assertRefused("PW002", self.write, 33)


if __name__ == "__main__":
    main()
