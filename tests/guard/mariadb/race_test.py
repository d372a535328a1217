#!/usr/bin/python3
"""Connections that race for one fence: every holder raises it, writes, and writes again under
tokens that it should have let go.

Two things must never be seen, at no isolation level and in no form of the guard: a write under a
smaller token behind one under a greater token, and a write under a smaller token behind an
acknowledged advance. The last test takes the locks out of the guard and sees the race lost; without
it, a harmless race would prove nothing. (Writers UPDATE, because there a plain read in a trigger is
a plain read. In an INSERT it locks, whatever it says.) """

import itertools
import random
import threading
from unittest import mock

import pymysql

from pawltest import mariadb
from pawltest.mariadb import (
    ISOLATIONS,
    Server,
    ServerCase,
    call,
    install_script,
    main,
    rows,
    state,
)

RACERS = 6
TURNS = 25
# The refusals that a racer may get: another was faster, or try again.
LOST = ("PW002", "PW006", "40001", "1205")


def use(db, resource, token):
    rows(db, "START TRANSACTION")
    call(db, "use", resource, token)


def begin(db, resource, token):
    call(db, "begin", resource, token)


def column(db, _, __):
    rows(db, "START TRANSACTION")


class Race:
    """RACERS connections; each in its turn takes a new token, advances to it, and writes under any
    token it ever had.

    The protected table has a row for each racer, so that they meet at the fence and nowhere else.
    Behind each write comes a row of `trail`, in the same transaction: the order of what happened.
    """

    def __init__(self, case, isolation, say):
        self.case = case
        self.isolation = isolation
        self.say = say
        self.resource = f"{case.db}.race"
        self.tokens = itertools.count(1)
        # (token, how many writes under smaller ones there were when its advance was answered)
        self.acknowledged = []
        self.refused = []
        self.errors = []
        self.admin = case.connect()
        rows(
            self.admin,
            "CREATE OR REPLACE TABLE trail (id BIGINT AUTO_INCREMENT PRIMARY KEY, token BIGINT "
            "NOT NULL)",
        )
        rows(self.admin, "CREATE TABLE race (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0)")
        rows(self.admin, f"INSERT INTO race (id) SELECT seq FROM seq_0_to_{RACERS - 1}")
        call(self.admin, "protect", self.resource, None, None, "enforce")
        call(self.admin, "set_policy", self.resource, True, None, None, None)
        if say is column:
            call(self.admin, "token_column", self.resource, True)

    def run(self):
        racers = [threading.Thread(target=self.racer, args=(number,)) for number in range(RACERS)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        call(self.admin, "unprotect", self.resource)
        call(self.admin, "drop_guard", self.resource)
        rows(self.admin, "DROP TABLE race")
        if self.errors:
            raise self.errors[0]
        return self

    def racer(self, number):
        try:
            chance = random.Random(number)
            with self.case.server.connect(
                database=self.case.db, isolation=self.isolation
            ) as db, self.case.server.connect(database=self.case.db) as reader:
                mine = []
                for _ in range(TURNS):
                    mine.append(next(self.tokens))
                    self.attempt(db, self.advance, db, reader, mine[-1])
                    for token in (mine[-1], chance.choice(mine), mine[-1]):
                        self.attempt(db, self.write, db, number, token)
        except BaseException as error:  # pylint: disable=broad-except
            self.errors.append(error)

    def attempt(self, db, work, *values):
        try:
            work(*values)
        except pymysql.MySQLError as error:
            rows(db, "ROLLBACK")
            if state(error) not in LOST:
                raise
            self.refused.append(state(error))

    def advance(self, db, reader, token):
        call(db, "advance", self.resource, token, 50)
        ((before,),) = rows(reader, "SELECT COUNT(*) FROM trail WHERE token < %s", token)
        self.acknowledged.append((token, before))

    def write(self, db, number, token):
        self.say(db, self.resource, token)
        rows(
            db,
            f"UPDATE race SET n = n + 1 "
            f"{', pawl_token = %s' % token if self.say is column else ''} WHERE id = %s",
            number,
        )
        rows(db, "INSERT INTO trail (token) VALUES (%s)", token)
        rows(db, "COMMIT")

    def violations(self):
        effects = [token for (token,) in rows(self.admin, "SELECT token FROM trail ORDER BY id")]
        behind_a_greater = sum(later < earlier for earlier, later in itertools.pairwise(effects))
        behind_an_advance = sum(
            before != sum(token < mark for token in effects) for mark, before in self.acknowledged
        )
        return behind_a_greater, behind_an_advance


class RaceTest(ServerCase):
    def insist(self, say):
        for isolation in ISOLATIONS:
            with self.subTest(isolation):
                race = Race(self, isolation, say).run()
                self.assertEqual(race.violations(), (0, 0))
                self.assertGreater(self.value("SELECT COUNT(*) FROM trail"), RACERS)
                self.assertIn("PW002", race.refused)  # Some writer did come late.

    def test_no_stale_write_with_use(self):
        self.insist(use)

    def test_no_stale_write_with_begin(self):
        self.insist(begin)

    def test_no_stale_write_with_the_token_column(self):
        self.insist(column)


class PlantedTest(ServerCase):
    """The same race against a guard that reads its fence without a lock."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        weak = cls.server.dir / "weak.sql"
        weak.write_text(install_script().replace("LOCK IN SHARE MODE", ""), encoding="utf-8")
        with mock.patch.object(mariadb, "GUARD", weak):
            cls.server.install()

    def test_race_without_locks_finds_stale_writes(self):
        for _ in range(20):
            if Race(self, "READ COMMITTED", use).run().violations() != (0, 0):
                return
        self.fail(
            "twenty races against a guard without locks, and none was lost: this test sees nothing"
        )


if __name__ == "__main__":
    main()
