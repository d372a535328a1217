"""The story that Pawl is for: a worker frozen past its lease wakes up and writes, and the table refuses. Hard cases 1 and 54.

Real pawld, real `pawl run`, real PostgreSQL, plain psql. Nobody's clock decides: what counts is that the new token reached the table
before the old worker woke.

Environment: PAWL and PAWLD are the binaries.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pg_cluster
from pg_cluster import alive, children, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402  (starts pawld)

PAWL = os.environ.get("PAWL", "")
SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO orders VALUES (1, 0);
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.set_policy('orders', require_token => true);
"""
# Writes 1, waits to be told to go on, writes 666. What psql says goes to a file.
OLD_WORKER = """
psql -d "$DSN" $OPTIONS -c "BEGIN" -c "SELECT pawl.use('orders', $PAWL_TOKEN)" -c "UPDATE orders SET n = 1" -c "COMMIT" >"$DIR/first" 2>&1
echo "$PAWL_TOKEN" >"$DIR/token.new" && mv "$DIR/token.new" "$DIR/token"
read go <"$DIR/go"
psql -d "$DSN" $OPTIONS -c "BEGIN" -c "SELECT pawl.use('orders', $PAWL_TOKEN)" -c "UPDATE orders SET n = 666" -c "COMMIT" >"$DIR/second.new" 2>&1
echo "exit $?" >>"$DIR/second.new" && mv "$DIR/second.new" "$DIR/second"
"""
WRITES = """psql -d "$DSN" $OPTIONS -c BEGIN -c "SELECT pawl.use('orders', $PAWL_TOKEN)" -c "UPDATE orders SET n = 2" -c COMMIT"""
ADVANCES = """psql -d "$DSN" $OPTIONS -c "SELECT pawl.advance('orders', $PAWL_TOKEN)" """


def family(pid):
    """The process and all below it."""
    return [pid, *[below for child in children(pid) for below in family(child)]]


def stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"


class Story(pg_cluster.ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pawld = harness.Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def setUp(self):
        super().setUp()
        self.cluster.psql(SHOP, self.db)
        self.dir = harness.scratch("story")
        os.mkfifo(self.dir / "go")
        self.environment = {**os.environ, "DIR": str(self.dir), "DSN": self.cluster.dsn(self.db, application_name="worker"),
                            "OPTIONS": "-X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose",
                            "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}"}

    def tearDown(self):
        harness.shutil.rmtree(self.dir, ignore_errors=True)

    def pawl_run(self, script, *options):
        command = [PAWL, "run", self.db, "-t", "2s", *options, "--", "sh", "-c", script]
        return subprocess.Popen(harness.guarded(command), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def freeze(self, process):
        """Stops pawl and its command, as a host that stands still would. Returns the command's processes."""
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped(process.pid), "pawl stands still")
        below = family(process.pid)[1:]
        self.assertTrue(below)
        for pid in below:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(stopped(pid) for pid in below), "its command stands still")
        return below

    def wake_and_go(self, below):
        """The command wakes first, as may happen: pawl itself would have killed it. Then it goes on with its work."""
        for pid in below:
            os.kill(pid, signal.SIGCONT)
        (self.dir / "go").write_text("go\n")
        wait_until((self.dir / "second").exists, "the old worker has tried to write")
        return (self.dir / "second").read_text()

    def play(self, new_holder):
        """Returns (old token, new token, what the old worker's psql said on waking)."""
        old = self.pawl_run(OLD_WORKER)
        self.addCleanup(self.end, old)
        wait_until((self.dir / "token").exists, "the old worker has written")
        self.assertEqual(self.value("SELECT n FROM orders"), 1, (self.dir / "first").read_text())
        old_token = int((self.dir / "token").read_text())
        below = self.freeze(old)
        new = self.pawl_run(f'{new_holder} && echo "granted=$PAWL_TOKEN"', "-w", "60s")
        said = new.communicate(timeout=90)[0]
        self.assertEqual(new.returncode, 0, said)
        new_token = int(re.search(r"granted=(\d+)", said)[1])
        self.assertGreater(new_token, old_token)
        met = self.wake_and_go(below)
        old.send_signal(signal.SIGCONT)
        self.assertEqual(old.wait(timeout=60), 122, "pawl reports that the lease was lost")
        wait_until(lambda: not any(alive(pid) for pid in below), "nothing of the old worker is left")
        return old_token, new_token, met

    @staticmethod
    def end(process):
        for pid in reversed(family(process.pid)) if process.poll() is None else ():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn("PW002", met)
        self.assertIn(f"token={old_token} max={new_token} mode=enforce resource=orders", met)
        self.assertNotIn("exit 0", met)
        self.assertEqual(self.value("SELECT stale FROM pawl.status WHERE guard = 'orders'"), 1)
        self.assertEqual(self.sql("SELECT guard, verdict, token, max FROM pawl.refusals"), [("orders", "stale", old_token, new_token)])
        self.assertRegex(self.cluster.log_text()[self._log_start:], r"pawl: refused \{.*" + str(old_token))

    def test_a_worker_frozen_past_its_ttl_is_refused_when_it_wakes(self):
        old_token, new_token, met = self.play(WRITES)
        self.assertRefusedAndCounted(old_token, new_token, met)
        self.assertEqual(self.value("SELECT n FROM orders"), 2)

    def test_it_is_refused_also_when_the_new_holder_has_not_written_yet(self):
        old_token, new_token, met = self.play(ADVANCES)
        self.assertRefusedAndCounted(old_token, new_token, met)
        self.assertEqual(self.value("SELECT n FROM orders"), 1)


if __name__ == "__main__":
    pg_cluster.main()
