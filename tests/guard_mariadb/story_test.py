#!/usr/bin/python3
"""The story that Pawl is for, in MariaDB: a worker frozen past its lease wakes up and writes, and the table refuses. Hard cases 1 and 54.

Real pawld, real `pawl run`, real MariaDB; the worker is a shell script with the mariadb client, or Python. Nobody's clock decides:
what counts is that the new token reached the table before the old worker woke.

Environment: PAWL and PAWLD are the binaries.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from maria_cluster import ServerCase, call, main, wait_until

import harness  # (starts pawld; maria_cluster has made it importable)

PAWL = os.environ.get("PAWL", "")
SHELL = """
write() { mariadb --no-defaults -h127.0.0.1 -P"$PORT" -uroot "$DB" -e "CALL pawl.begin('$DB.orders', $PAWL_TOKEN); UPDATE orders SET n = $1; CALL pawl.finish()"; }
"""
PYTHON = f"""
write() {{ {sys.executable} - "$1" <<'END'
import os, sys, pymysql
db = pymysql.connect(host="127.0.0.1", port=int(os.environ["PORT"]), user="root", database=os.environ["DB"])
with db.cursor() as cursor:
    cursor.execute("CALL pawl.begin(%s, %s)", (os.environ["DB"] + ".orders", os.environ["PAWL_TOKEN"]))
    cursor.execute("UPDATE orders SET n = %s", (sys.argv[1],))
db.commit()
END
}}
"""
# Writes 1, waits to be told to go on, writes 666. What the client says goes to a file.
OLD_WORKER = """
write 1 >"$DIR/first" 2>&1
echo "$PAWL_TOKEN" >"$DIR/token.new" && mv "$DIR/token.new" "$DIR/token"
read go <"$DIR/go"
write 666 >"$DIR/second.new" 2>&1
echo "exit $?" >>"$DIR/second.new" && mv "$DIR/second.new" "$DIR/second"
"""


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def family(pid):
    """The process and all below it."""
    return [pid, *[below for child in children(pid) for below in family(child)]]


def condition(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


class StoryTest(ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pawld = harness.Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def setUp(self):
        super().setUp()
        self.protect()
        call(self.connect(), "set_policy", self.orders, True, None, None, None)
        self.dir = harness.scratch("story")
        self.addCleanup(harness.shutil.rmtree, self.dir, ignore_errors=True)
        os.mkfifo(self.dir / "go")
        self.environment = {**os.environ, "DIR": str(self.dir), "DB": self.db, "PORT": str(self.server.port),
                            "PAWL_GUARD_DSN": self.server.dsn(database=self.db), "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}"}

    def pawl_run(self, script, *options):
        command = [PAWL, "run", self.db, "-t", "2s", *options, "--", "sh", "-c", script]
        return subprocess.Popen(harness.guarded(command), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def freeze(self, process):
        """Stops pawl and its command, as a host that stands still would. Returns the command's processes."""
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: condition(process.pid) in "Tt", "pawl stands still")
        below = family(process.pid)[1:]
        self.assertTrue(below)
        for pid in below:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(condition(pid) in "Tt" for pid in below), "its command stands still")
        return below

    def end(self, process):
        for pid in reversed(family(process.pid)) if process.poll() is None else ():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    def play(self, language, new_holder, *options):
        old = self.pawl_run(language + OLD_WORKER)
        self.addCleanup(self.end, old)
        wait_until((self.dir / "token").exists, "the old worker has written")
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 1, (self.dir / "first").read_text())
        old_token = int((self.dir / "token").read_text())
        below = self.freeze(old)
        new = self.pawl_run(f'{language}{new_holder} && echo "granted=$PAWL_TOKEN"', "-w", "60s", *options)
        said = new.communicate(timeout=90)[0]
        self.assertEqual(new.returncode, 0, said)
        new_token = int(re.search(r"granted=(\d+)", said)[1])
        for pid in below:  # The command wakes before pawl, which would have killed it.
            os.kill(pid, signal.SIGCONT)
        (self.dir / "go").write_text("go\n")
        wait_until((self.dir / "second").exists, "the old worker has tried to write")
        met = (self.dir / "second").read_text()
        old.send_signal(signal.SIGCONT)
        self.assertEqual(old.wait(timeout=60), 122, "pawl reports that the lease was lost")
        wait_until(lambda: all(condition(pid) in "ZX" for pid in below), "nothing of the old worker is left")
        self.assertIn(f"[token={old_token} max={new_token} mode=enforce]", met)
        self.assertNotIn("exit 0", met)
        self.assertEqual(self.count("stale"), 1)

    def test_a_shell_worker_frozen_past_its_ttl_is_refused_when_it_wakes(self):
        self.play(SHELL, "write 2")
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 2)

    def test_it_is_refused_also_when_the_new_holder_has_not_written_yet(self):
        self.play(SHELL, "true", "--guard", f"mariadb:{self.orders}")
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 1)

    def test_a_python_worker_is_refused_as_well(self):
        self.play(PYTHON, "write 2")
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 2)


if __name__ == "__main__":
    main()
