"""A guard comes to a table that is in use: observe, shadow, canary, enforce, require_token, with
the readiness report at each step.

The table is written all the time by a modern writer (with tokens), by a sleepy one (with a token
that is out of date) and by an old job that knows no tokens. At no step may the modern writer notice
anything. """

import collections
import threading

import psycopg2

import race
from pawltest import postgres
from pawltest.postgres import rows, wait_until

CUSTOMERS = 120
SHOP = f"""
CREATE TABLE orders (customer int NOT NULL, n int NOT NULL);
INSERT INTO orders SELECT g, 0 FROM generate_series(1, {CUSTOMERS}) g;
CREATE INDEX ON orders (customer);
"""


class Writer(threading.Thread):
    """Writes round and round over all customers; counts what it meets, per customer."""

    def __init__(self, case, name, token):
        super().__init__(daemon=True)
        self.token = token  # None: knows no tokens.
        self.case = case
        self.session = case.cluster.connect(case.db, application_name=name)
        self.met = collections.Counter()
        self.refused = set()
        self.passed = set()
        self.rounds = 0
        self.stop = False

    def run(self):
        while not self.stop:
            for customer in range(1, CUSTOMERS + 1):
                self.write(customer)
            self.rounds += 1
        self.session.close()

    def write(self, customer):
        while True:
            try:
                if self.token is not None:
                    rows(self.session, "SELECT pawl.use(%s, %s)", f"orders:{customer}", self.token)
                rows(self.session, "UPDATE orders SET n = n + 1 WHERE customer = %s", customer)
                self.session.commit()
                self.met["written"] += 1
                self.passed.add(customer)
                return
            except psycopg2.Error as error:
                self.session.rollback()
                if error.pgcode in race.RETRY:
                    continue
                self.met[error.pgcode] += 1
                self.refused.add(customer)
                return


class Rollout(postgres.ClusterCase):
    settings = {"deadlock_timeout": "50ms"}

    def start(self, name, token):
        writer = Writer(self, name, token)
        self.addCleanup(writer.join)
        self.addCleanup(setattr, writer, "stop", True)
        writer.start()
        return writer

    def watch(self, *writers):
        """What each of them meets from now on, in two whole rounds at least."""
        for writer in writers:
            began = writer.rounds
            wait_until(lambda: writer.rounds > began, "the round under way ends")
            writer.met.clear()
            writer.refused, writer.passed = set(), set()
        for writer in writers:
            began = writer.rounds
            wait_until(lambda: writer.rounds >= began + 2, "two more rounds")

    def status(self, column):
        return self.value(f"SELECT {column} FROM pawl.status WHERE guard = 'orders'")

    def readiness(self):
        ((ready, because),) = self.sql("SELECT ready, because FROM pawl.readiness('orders')")
        print(
            f"  {self.status('mode')}: {'ready' if ready else 'not yet'}, because {because}",
            file=postgres.sys.stderr,
        )
        return ready, " ".join(because or [])

    def test_rollout_on_a_table_in_use(self):
        self.cluster.psql(SHOP, self.db)
        modern, old_job = self.start("modern", None), self.start("old-job", None)

        # Two commands: install (setUp did) and protect. Nobody notices.
        self.sql("SELECT pawl.protect('orders', by => 'customer')")
        self.watch(modern, old_job)
        self.assertEqual(set(modern.met) | set(old_job.met), {"written"})
        ready, because = self.readiness()
        self.assertFalse(ready)
        self.assertIn("observe", because)

        # The modern writer learns to carry its token. The report still names the one that does not.
        modern.token = 34
        self.watch(modern, old_job)
        sleepy = self.start("sleepy", 33)
        self.watch(modern, old_job, sleepy)
        self.assertEqual(set(modern.met) | set(old_job.met) | set(sleepy.met), {"written"})
        self.assertIn(
            "old-job", {row[0] for row in self.sql("SELECT application_name FROM pawl.sightings")}
        )

        # Shadow: what would be refused is counted, and still passes.
        self.sql("SELECT pawl.set_mode('orders', 'shadow', reason => 'rollout')")
        before = self.status("would_refuse")
        self.watch(modern, old_job, sleepy)
        self.assertEqual(set(modern.met) | set(old_job.met) | set(sleepy.met), {"written"})
        self.assertGreater(self.status("would_refuse"), before)
        ready, because = self.readiness()
        self.assertFalse(ready)
        self.assertRegex(because, r"old-job.* without a token")
        self.assertIn("would have been refused", because)

        # Canary: some customers are protected, always the same ones.
        self.sql("SELECT pawl.set_mode('orders', 'canary', 10, reason => 'rollout')")
        self.watch(modern, old_job, sleepy)
        self.assertEqual(set(modern.met) | set(old_job.met), {"written"})
        self.assertEqual(set(sleepy.met), {"written", "PW002"})
        chosen = set(sleepy.refused)
        self.assertEqual(chosen & sleepy.passed, set(), "a customer is in the canary or it is not")
        self.assertTrue(2 <= len(chosen) <= CUSTOMERS // 4, chosen)
        self.watch(sleepy)
        self.assertEqual(sleepy.refused, chosen, "the same ones as before")
        ready, because = self.readiness()
        self.assertFalse(ready)
        self.assertIn("old-job", because)

        # Enforce: the sleepy writer is out. The old job is not judged yet.
        self.sql("SELECT pawl.set_mode('orders', 'enforce', reason => 'rollout')")
        self.watch(modern, old_job, sleepy)
        self.assertEqual(set(modern.met) | set(old_job.met), {"written"})
        self.assertEqual(set(sleepy.met), {"PW002"})

        # Emergency: everyone passes again, at once; and back.
        self.sql("SELECT pawl.emergency('pager at night', 'orders')")
        self.watch(modern, sleepy)
        self.assertEqual(set(modern.met) | set(sleepy.met), {"written"})
        self.sql("SELECT pawl.set_mode('orders', 'enforce', reason => 'morning')")
        self.watch(modern, sleepy)
        self.assertEqual((set(modern.met), set(sleepy.met)), ({"written"}, {"PW002"}))
        ready, because = self.readiness()
        self.assertFalse(ready, "the old job still writes without a token")
        self.assertIn("old-job", because)

        # require_token: a write without a token is refused too.
        self.sql("SELECT pawl.set_policy('orders', require_token => true, reason => 'rollout')")
        self.watch(modern, old_job, sleepy)
        self.assertEqual(
            (set(modern.met), set(old_job.met), set(sleepy.met)),
            ({"written"}, {"PW001"}, {"PW002"}),
        )
        ready, because = self.readiness()
        self.assertFalse(ready, "it is refused, and still there")
        self.assertIn("old-job", because)
        changes = [
            row[0]
            for row in self.sql(
                "SELECT reason FROM pawl.audit WHERE guard = 'orders' AND reason IS NOT NULL ORDER "
                "BY at"
            )
        ]
        self.assertEqual(changes, ["rollout"] * 3 + ["pager at night", "morning", "rollout"])

    def test_table_with_tokens_from_all_writers_is_ready(self):
        self.cluster.psql(SHOP, self.db)
        self.sql("SELECT pawl.protect('orders', by => 'customer', mode => 'shadow')")
        modern = self.start("modern", 34)
        self.watch(modern)
        self.assertEqual(self.readiness(), (True, ""))


if __name__ == "__main__":
    postgres.main()
