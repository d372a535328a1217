#!/usr/bin/python3
"""`pawl run`, `etcdctl lock` and `flock` side by side: runs each through the same situations and
writes down what it sees.

    compare_run.py                 print the table, in Markdown
    compare_run.py --write PAGE    put it between the markers of PAGE
    compare_run.py --check PAGE    fail when PAGE says something else

A cell is what was observed, no more; times are not compared. Environment: PAWL and PAWLD are the
binaries; etcd, etcdctl and flock are found in PATH. """

import contextlib
import difflib
import itertools
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys

import compare_tools
from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent, is_alive

BEGIN, END = "<!-- made by tests/e2e/compare_run.py -->\n", "<!-- end -->\n"
LONG_S = 3 * compare_tools.TTL_S  # What has not happened after so long is not going to.

# A command that writes its pid and environment and the signals that it gets to files. It ends with
# 0 when a file says so, and after a minute at the latest. A signal ends it with 3. With "child" a
# child of it does all that; with "leave" it does not wait for that child.
WORKER = """
import json, os, signal, sys, time
path, options = sys.argv[1], sys.argv[2:]
def signalled(number, _):
    open(path + ".signalled", "w").write(signal.Signals(number).name)
    os._exit(3)
for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, signalled)
if options and os.fork() > 0:
    while not os.path.exists(path): time.sleep(0.002)
    if "child" in options: os.wait()
    os._exit(0)
with open(path + ".part", "w") as out: json.dump({"pid": os.getpid(), "environment": dict(os.environ)}, out)
os.rename(path + ".part", path)
end = time.monotonic() + 60
while time.monotonic() < end and not os.path.exists(path + ".go"): time.sleep(0.002)
"""

# The next holder's command: whether that process runs at this moment.
PROBE = """
import os, sys
try: state = open(f"/proc/{sys.argv[2]}/stat").read().rpartition(")")[2].split()[0]
except OSError: state = "X"
open(sys.argv[1] + ".part", "w").write("gone" if state in "ZX" else "runs")
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""


def within(condition, what, seconds):
    """Whether it came true."""
    with contextlib.suppress(AssertionError):
        wait_until(condition, what, seconds)
        return True
    return False


def how_it_ended(code):
    return f"exit {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"


class Worker:
    """A tool that runs WORKER under a lock."""

    def __init__(self, bench, lock, *options, address=None):
        self.path = bench.dir / f"worker-{next(bench.numbers)}"
        self.process = bench.start(
            lock, [sys.executable, "-c", WORKER, self.path, *options], address=address
        )
        wait_until(self.path.exists, "the command runs")
        report = json.loads(self.path.read_text())
        self.pid, self.environment = report["pid"], report["environment"]

    def runs(self):
        return is_alive(self.pid)

    def signalled(self):
        return pathlib.Path(f"{self.path}.signalled").exists()

    def finish(self):
        pathlib.Path(f"{self.path}.go").touch()

    def end(self):
        """Lets the command end, and says how the tool did."""
        self.finish()
        return how_it_ended(self.process.wait(timeout=harness.PATIENCE))

    def remove(self):
        self.finish()
        self.process.kill()
        self.process.wait()


class Bench:
    """One tool, and what a situation needs to look at it."""

    def __init__(self, tool):
        self.tool = tool
        self.dir = harness.scratch("compare")
        self.numbers = itertools.count(1)
        self.lock = ""

    def command(self, words, lock=None):
        return [str(word) for word in self.tool.command(lock or self.lock, words)]

    def start(self, lock, words, address=None, **options):
        return subprocess.Popen(
            dies_with_parent(self.command(words, lock)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.tool.environment(address),
            **options,
        )

    @contextlib.contextmanager
    def worker(self, *options, **where):
        worker = Worker(self, self.lock, *options, **where)
        try:
            yield worker
        finally:
            worker.remove()

    @contextlib.contextmanager
    def waiter(self, words):
        """Another run of the tool that waits for the lock."""
        process = self.start(self.lock, words)
        try:
            wait_until(lambda: self.tool.waiters(self.lock) == 1, "it waits")
            yield process
        finally:
            process.kill()
            process.wait()

    def run(self, *words, stdin=""):
        return subprocess.run(
            self.command(words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env=self.tool.environment(),
            check=False,
        )

    def observe(self, situation):
        self.lock = f"lock-{next(self.numbers)}"
        return situation(self)

    def close(self):
        subprocess.run(["rm", "-rf", self.dir], check=True)


# -- The lease is lost


AT_THE_GRANT = {
    "runs": "runs on beside the next holder",
    "gone": "is stopped before the next grant",
}


def command_after(bench, fault, mend=None, options=(), **where):
    """What becomes of the command when `fault` happens to its run and another client waits for the
    lock."""
    with bench.worker(*options, **where) as worker:
        seen = bench.dir / f"seen-{next(bench.numbers)}"
        with bench.waiter([sys.executable, "-c", PROBE, seen, worker.pid]):
            fault(worker)
            granted = within(seen.exists, "the next is granted", LONG_S)
            became = AT_THE_GRANT[seen.read_text()] if granted else "runs on and keeps the lock"
            if mend:
                mend(worker)
                if AT_THE_GRANT["runs"] == became and within(
                    lambda: not worker.runs(), "it is stopped", LONG_S
                ):
                    became += ", and is stopped then"
            return f"{became}; {worker.end()}"


def cut_off(*options):
    def situation(bench):
        if not bench.tool.has_server:
            return "no server"
        proxy = bench.tool.proxy()
        try:
            return command_after(
                bench,
                lambda worker: proxy.cut(),
                lambda worker: proxy.mend(),
                options,
                address=proxy.address,
            )
        finally:
            proxy.close()

    return situation


def ended_at_the_server(bench):
    if not bench.tool.has_server:
        return "no server"
    return command_after(bench, lambda worker: bench.tool.end_lease(bench.lock))


def frozen(bench):
    return command_after(
        bench,
        lambda worker: worker.process.send_signal(signal.SIGSTOP),
        lambda worker: worker.process.send_signal(signal.SIGCONT),
    )


def killed(*options):
    return lambda bench: command_after(
        bench, lambda worker: worker.process.kill(), options=options
    ).partition(";")[0]


# -- Signals


def while_running(number):
    def situation(bench):
        with bench.worker() as worker:
            worker.process.send_signal(number)
            within(
                lambda: worker.signalled() or worker.process.poll() is not None,
                "something happens",
                LONG_S,
            )
            if worker.signalled():
                return f"reaches the command; {how_it_ended(worker.process.wait())}"
            if worker.process.poll() is None:
                return f"nothing happens; {worker.end()}"
            command = "the command runs on" if worker.runs() else "the command is gone"
            freed = within(lambda: not bench.tool.is_held(bench.lock), "the lock is free", LONG_S)
            keeps = "" if freed else " and keeps the lock"
            return f"{how_it_ended(worker.process.returncode)}; {command}{keeps}"

    return situation


def while_waiting(number):
    def situation(bench):
        with bench.worker(), bench.waiter(["true"]) as waiter:
            waiter.send_signal(number)
            if not within(lambda: waiter.poll() is not None, "it ends", LONG_S):
                return "nothing happens"
            place = (
                "its position in the queue is gone"
                if bench.tool.waiters(bench.lock) == 0
                else "its position in the queue stays until its TTL"
            )
            return f"{how_it_ended(waiter.returncode)}; {place}"

    return situation


# -- What the command gets, and how it ends


def exit_code(*words):
    return lambda bench: how_it_ended(bench.run(*words).returncode)


def not_started(command):
    def situation(bench):
        code = bench.run(command).returncode
        held = "held" if bench.tool.is_held(bench.lock) else "free"
        return f"{how_it_ended(code)}; the lock is {held}"

    return situation


def stdin(bench):
    return (
        "reaches the command"
        if bench.run("cat", stdin="text\n").stdout == "text\n"
        else "does not reach the command"
    )


def nested_token(bench):
    variable = bench.tool.token_variable
    if variable is None:
        return "no token"
    # The outer command prints its token, then runs the tool again, whose command prints its own.
    inner = bench.command(["printenv", variable], lock=bench.lock + "-inner")
    outer, seen = bench.run(
        "sh", "-c", f'printenv {variable}; exec "$@"', "sh", *inner
    ).stdout.split()
    return "the outer run's" if seen == outer else "its own"


def nested_same_lock(bench):
    process = bench.start(bench.lock, bench.command(["true"]), start_new_session=True)
    try:
        wait_until(
            lambda: process.poll() is not None or bench.tool.waiters(bench.lock) > 0,
            "it ends or waits",
        )
        return (
            "waits for itself"
            if process.poll() is None
            else f"is refused; {how_it_ended(process.returncode)}"
        )
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # Both runs.
        process.wait()


def left_behind(bench):
    with bench.worker("leave") as worker:
        ended = how_it_ended(worker.process.wait(timeout=harness.PATIENCE))
        if not worker.runs():
            held = "held" if bench.tool.is_held(bench.lock) else "free"
            return f"is stopped; {ended}; the lock is {held}"
        held = "held until it ends" if bench.tool.is_held(bench.lock) else "free"
        return f"runs on; {ended}; the lock is {held}"


SITUATIONS = (
    (
        "cut off from the server for longer than the TTL, then connected again: the command …",
        cut_off(),
    ),
    ("the same: a child of the command …", cut_off("child")),
    (
        "the lease is ended at the server (`pawl break`, `etcdctl lease revoke`): the command …",
        ended_at_the_server,
    ),
    ("the tool is frozen (STOP) for longer than the TTL, then continued: the command …", frozen),
    ("the tool is killed (KILL): the command …", killed()),
    ("the same: a child of the command …", killed("child")),
    ("TERM sent to the tool while the command runs", while_running(signal.SIGTERM)),
    ("INT sent to the tool while the command runs", while_running(signal.SIGINT)),
    ("TERM sent to the tool while it waits", while_waiting(signal.SIGTERM)),
    ("INT sent to the tool while it waits", while_waiting(signal.SIGINT)),
    ("stdin", stdin),
    ("the command exits with 7", exit_code("sh", "-c", "exit 7")),
    ("the command is ended by KILL", exit_code("sh", "-c", "kill -KILL $$")),
    ("the command is not found", not_started("no-such-command")),
    ("the command is not executable", not_started("/etc/passwd")),
    ("the token that a nested run's command sees", nested_token),
    ("a nested run on the same lock", nested_same_lock),
    ("the command exits with 0 and leaves a child in the background: the child …", left_behind),
)


def observations(tool_type):
    """One column. In a process of its own: what it starts dies with it."""
    tool = tool_type()
    bench = Bench(tool)
    cells = []
    try:
        for name, situation in SITUATIONS:
            cells.append(bench.observe(situation))
            print(f"{tool.name}: {name} {cells[-1]}", file=sys.stderr, flush=True)
    finally:
        bench.close()
        tool.close()
    return cells


def table():
    tools = (compare_tools.PawlRun, compare_tools.EtcdctlLock, compare_tools.Flock)
    with multiprocessing.Pool(len(tools)) as pool:
        columns = pool.map(observations, tools, chunksize=1)
    rows = [["situation", *(f"`{tool.name}`" for tool in tools)], ["---"] * (len(tools) + 1)]
    rows += [[name, *cells] for (name, _), *cells in zip(SITUATIONS, *columns)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main():
    made = table()
    if len(sys.argv) < 3:
        print(made, end="")
        return 0
    page = pathlib.Path(sys.argv[2])
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    shown, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{page}: the markers are missing")
    if sys.argv[1] == "--write":
        page.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")
        return 0
    if shown.strip() == made.strip():
        return 0
    print(f"{page} is not what was observed; compare_run.py --write brings it up to date:")
    sys.stdout.writelines(
        difflib.unified_diff(
            shown.strip().splitlines(True), made.strip().splitlines(True), "page", "observed"
        )
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
