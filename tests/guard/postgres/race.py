"""Races many writers with old and new tokens against a guard, and judges what was committed.

A form of guard says how its tables look and what a writer does; the race is the same for all
(race_forms.py). Tokens come from a counter that moves on while the race runs, minus 0 to 3, so that
most writers are late or about to be; or (a crowd of one holder) hardly ever minus anything, so that
most are admitted, by the path that is made to be fast. They wait at random places, roll back, use
savepoints, and take their snapshots early; some only advance.

The judge looks at the end, from outside, twice:

- order: a committed write whose commit timestamp is later than that of a write or advance with a greater token is a violation
  (G8). It needs track_commit_timestamp.
- view: a write with token t notes how many lower-token rows it saw. A writer that was admitted with t must have seen all of them
  that there ever will be (design rule 3): a later one was a stale write, one missed was an old snapshot.

Every attempt is an outcome: admitted, refused, retry (40001, 40P01), advance first (PW006), given
up (its own ROLLBACK). Anything else fails the race. """

import collections
import os
import random
import threading
import time

import psycopg2

from pawltest.postgres import rows

RETRY = ("40001", "40P01")
JOURNAL = """
CREATE TABLE written (resource text NOT NULL, token bigint NOT NULL, lower bigint, writer int);
CREATE TABLE advanced (resource text NOT NULL, token bigint NOT NULL);
"""
ORDER = """
WITH effects AS (
  SELECT resource, token, pg_xact_commit_timestamp(xmin) AS at, true AS is_write FROM written
  UNION ALL SELECT resource, token, pg_xact_commit_timestamp(xmin), false FROM advanced),
judged AS (SELECT *, max(token) OVER (PARTITION BY resource ORDER BY at
                     RANGE BETWEEN UNBOUNDED PRECEDING AND interval '1 microsecond' PRECEDING) AS before FROM effects)
SELECT count(*) FROM judged WHERE is_write AND before > token
"""
VIEW = """
WITH per_token AS (SELECT resource, token, count(*) AS n FROM written GROUP BY resource, token),
below AS (SELECT resource, token, coalesce(sum(n) OVER (PARTITION BY resource ORDER BY token
                 RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS n FROM per_token)
SELECT count(*) FROM written w JOIN below b USING (resource, token) WHERE w.lower IS NOT NULL AND w.lower <> b.n
"""


def rounds(usual):
    """Attempts per connection: what continuous integration can afford, or what PAWL_GUARD_RACES
    asks for."""
    return int(os.environ.get("PAWL_GUARD_RACES", usual))


LATE = (0, 1, 2, 3)  # How far behind the newest token a writer is, as likely as it is named.
ONE_HOLDER = (0,) * 12 + (1,)


class Tokens:
    """A counter that moves on while others still use what it gave out."""

    def __init__(self, lags, start=1000):
        self._lock = threading.Lock()
        self._lags = lags
        self._last = start

    def draw(self, dice, pace):
        """Moves on with the probability `pace`."""
        with self._lock:
            if dice.random() < pace:
                self._last += 1
            return self._last - dice.choice(self._lags)


class Race:
    """One race: `connections` sessions make `attempts` attempts each."""

    def __init__(
        self, form, connect, isolation, connections, attempts, seed, patience=0.002, lags=LATE
    ):
        self.form = form
        self.connect = connect
        self.isolation = isolation
        self.connections = connections
        self.attempts = attempts
        self.seed = seed
        self.patience = patience
        # The more there are, the longer each token must last for one of them to get in.
        self.pace = min(0.15, 2.4 / connections)
        self.tokens = Tokens(lags)
        self.outcomes = collections.Counter()
        self.wrong = []  # What must never happen, in words.
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def run(self):
        """Returns when every session has made its attempts, or one has met something unexpected."""
        threads = [
            threading.Thread(target=self._session, args=(number,), daemon=True)
            for number in range(self.connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self

    def _session(self, number):
        dice = random.Random(f"{self.seed}/{self.isolation}/{number}")
        try:
            writer = self.connect(isolation=self.isolation)
            advancer = self.connect(isolation="read committed")
        except psycopg2.Error as error:
            if not self.stop.is_set():
                self._blame(f"no connection: {error}")
            return
        try:
            for _ in range(self.attempts):
                if self.stop.is_set():
                    return
                self._attempt(dice, writer, advancer, number)
        finally:
            for session in (writer, advancer):
                session.close()

    def _attempt(self, dice, writer, advancer, number):
        token = self.tokens.draw(dice, self.pace)
        resource = dice.choice(self.form.resources)
        session = advancer if dice.random() < 0.1 else writer
        # Retries, or advances first, as a good client would.
        for _ in range(4):
            outcome = self._try(session, session is advancer, dice, resource, token, number)
            self._note(outcome)
            if outcome == "advance first":
                outcome = self._try(advancer, True, dice, resource, token, number)
                self._note(outcome)
                if outcome == "admitted":
                    continue
            if outcome != "retry":
                return

    def _note(self, outcome):
        with self._lock:
            self.outcomes[outcome] += 1

    def _try(self, session, advances, dice, resource, token, number):
        try:
            if advances:
                outcome = self._advance(session, resource, token)
            else:
                outcome = self._write(session, dice, resource, token, number)
            if outcome == "admitted":
                session.commit()
            else:
                session.rollback()
        except psycopg2.Error as error:
            outcome = self._judge_error(error, token)
            try:
                session.rollback()
            except psycopg2.Error as worse:
                outcome = self._judge_error(worse, token)
        return outcome

    def _advance(self, session, resource, token):
        self.form.advance(session, resource, token)
        for name in self.form.names(resource):
            rows(session, "INSERT INTO advanced VALUES (%s, %s)", name, token)
        return "admitted"

    def _write(self, session, dice, resource, token, number):
        if dice.random() < 0.4:
            rows(session, "SELECT count(*) FROM advanced")  # A snapshot from before the check.
            self._dawdle(dice)
        self.form.begin(session, dice, resource, token)
        self._dawdle(dice)
        if dice.random() < 0.25:
            rows(session, "SAVEPOINT s")
            self.form.write(session, resource, token, number)
            self._dawdle(dice)
            rows(
                session, "ROLLBACK TO SAVEPOINT s" if dice.random() < 0.7 else "RELEASE SAVEPOINT s"
            )
        for _ in range(dice.choice((1, 1, 2))):
            self.form.write(session, resource, token, number)
            self._dawdle(dice)
        return "given up" if dice.random() < 0.1 else "admitted"

    def _dawdle(self, dice):
        if dice.random() < 0.5:
            time.sleep(dice.random() * self.patience)

    def _judge_error(self, error, token):
        if error.pgcode in RETRY:
            return "retry"
        if error.pgcode == "PW006":
            return "advance first"
        if error.pgcode == "PW002":
            words = dict(
                word.partition("=")[::2] for word in (error.diag.message_detail or "").split()
            )
            if not int(words.get("max", 0)) > token:
                self._blame(f"token {token} was called stale although: {error.diag.message_detail}")
            return "refused"
        if self.stop.is_set() and (error.pgcode is None or error.pgcode[:2] in ("57", "08")):
            return "lost"  # The server was killed, on purpose.
        self._blame(f"{error.pgcode}: {error}")
        return "unexpected"

    def _blame(self, what):
        with self._lock:
            self.wrong.append(what)
        self.stop.set()

    def violations(self, connection):
        """(order, view): committed rows that should not be there, and rows written on an old
        view."""
        found = rows(connection, ORDER)[0][0], rows(connection, VIEW)[0][0]
        connection.rollback()
        return found
