"""Operation numbers: an operation delivered many times takes effect once. Hard case 55; design rule
1.

Eight connections deliver the same operations, each in its own random order, some rolled back and
delivered again, some cut off by a crash so that nobody knows whether they were done. In the end
each has exactly one effect. """

import random
import threading

import psycopg2

import race
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, rows, wait_until

SHOP = """
CREATE TABLE effect (op bigint NOT NULL, writer int);
SELECT pawl.protect('effect', mode => 'enforce');
SELECT pawl.set_policy('effect', require_token => true, equal => 'once');
SELECT pawl.create_guard('k', keyed => true);
SELECT pawl.set_mode('k', 'enforce');
"""


class Courier(threading.Thread):
    """Sends every operation until it is confirmed."""

    def __init__(self, case, number, ops, level, resource):
        super().__init__(daemon=True)
        self.case, self.number, self.level, self.resource = case, number, level, resource
        self.dice = random.Random(f"{level}/{number}")
        self.todo = list(ops)
        self.dice.shuffle(self.todo)
        self.delivered = 0
        self.wrong = None

    def run(self):
        while self.todo and not self.wrong:
            try:
                session = self.case.cluster.connect(self.case.db, isolation=self.level)
            except psycopg2.OperationalError:
                continue  # The server is down: on purpose, and not for long.
            try:
                while self.todo and not self.wrong:
                    self.deliver(session)
            except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
                if error.pgcode and error.pgcode[:2] not in ("57", "08"):
                    self.wrong = error
            finally:
                session.close()

    def deliver(self, session):
        op = self.todo[-1]
        try:
            verdict = rows(session, "SELECT pawl.use(%s, 7, %s)", self.resource, op)[0][0]
            if verdict == "admitted":
                rows(session, "INSERT INTO effect VALUES (%s, %s)", op, self.number)
            elif verdict != "replayed":
                self.wrong = f"op {op} was called {verdict}"
            if self.dice.random() < 0.2:
                session.rollback()
                self.todo.insert(0, self.todo.pop())  # Another time.
            else:
                session.commit()
                self.todo.pop()
            self.delivered += 1
        except psycopg2.Error as error:
            if error.pgcode in race.RETRY:
                session.rollback()
            elif error.pgcode is None or error.pgcode[:2] in ("57", "08"):
                raise psycopg2.OperationalError(str(error)) from error
            else:
                self.wrong = error


class Once(postgres.ClusterCase):
    settings = {"deadlock_timeout": "100ms"}

    def deliver(self, level, resource="effect", crashes=0, couriers=8, ops=40):
        self.cluster.psql(SHOP, self.db)
        if resource != "effect":
            self.cluster.psql("SELECT pawl.unprotect('effect')", self.db)
        crowd = [
            Courier(self, number, range(1, ops + 1), level, resource) for number in range(couriers)
        ]
        for courier in crowd:
            courier.start()
        for number in range(crashes):
            wanted = (number + 1) * couriers * ops // (crashes + 2)
            wait_until(
                lambda: sum(courier.delivered for courier in crowd) >= wanted
                or any(courier.wrong for courier in crowd),
                "deliveries are under way",
            )
            self.cluster.crash()
            self.cluster.restart()
        for courier in crowd:
            courier.join()
        self.assertEqual([courier.wrong for courier in crowd if courier.wrong], [])
        self.assertEqual(
            self.sql("SELECT op, count(*) FROM effect GROUP BY op HAVING count(*) <> 1"), []
        )
        self.assertEqual(self.value("SELECT count(*) FROM effect"), ops)

    def test_every_operation_takes_effect_once_at_every_level(self):
        for level in ISOLATIONS:
            with self.subTest(level):
                self.db = self.cluster.create_database(f"t{next(self._numbers)}")
                self.deliver(level)

    def test_every_operation_on_a_key_takes_effect_once(self):
        self.deliver("read committed", "k:1")

    def test_every_operation_takes_effect_once_over_crashes(self):
        self.deliver("read committed", crashes=3, ops=80)


if __name__ == "__main__":
    postgres.main()
