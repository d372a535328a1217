"""What every world has: a schedule that is carried out, clients, a guard, and a verdict.

    class Mine(BaseWorld):
        def _build(self, guard_mode): …     # the parts, and self.faults
        def _start(self): …                 # the servers, and self.recorders
        def _watch_servers(self): …
        def _heal(self): …                  # ends with self.calm_ns: no fault from then on

    world = Mine(profile, "enforce"); world.play(); world.verdict(); world.close()
"""

import collections
import heapq
import itertools
import os
import pathlib
import random
import subprocess
import time

import guards
import judge
import schedule
from clocks import boot_now
from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent

LOCKS = ["alpha", "beta", "gamma", "pool"]
HERE = pathlib.Path(__file__).resolve().parent


class BaseWorld:
    """Built part by part; close() takes them down in the opposite order."""

    patient = 15.0  # Seconds for which a fault waits for a target.

    def __init__(self, profile, guard_mode="enforce"):
        self.profile = profile
        self.dir = harness.scratch(f"nemesis-{profile.seed}")
        self.dice = random.Random(f"{profile.seed}/world")
        self.done = collections.Counter()
        self.history = []  # of pawld itself
        self.looking = set()  # steps without a target yet
        self.undo = []  # heap of (when, number, what to do)
        self.numbers = itertools.count()
        self.cleanups = []
        self.calm_ns = 0
        self.clients, self.run, self.recorders = {}, None, []
        self.rss_max = 0
        try:
            self._build(guard_mode)
        except BaseException:
            self.close()
            raise

    def _part(self, part):
        self.cleanups.append(part.close)
        return part

    def _servers(self):
        """The processes that clients talk to."""
        raise NotImplementedError

    def close(self):
        """The processes first, then what they stand on."""
        for part in [*self.clients.values(), self.run, *self._servers()]:
            if part is not None and part.process is not None:
                part.process.kill()
                part.process.wait()
                part.process = None
        for cleanup in reversed(self.cleanups):
            cleanup()
        self.cleanups = []

    def logs(self):
        """Of the servers, for people."""
        raise NotImplementedError

    def versions(self):
        """Of what this world did not build, for people."""
        return []

    def figures(self):
        """For people: name -> seconds."""
        return {}

    # -- what the parts ask of it

    def enter(self, who):
        """What to write before a command of this client."""
        del who
        return []

    def spawn(self, who, clock, command, environment=None):
        """A process of the client `who`."""
        with open(self.dir / "output", "ab") as output:
            return subprocess.Popen(
                dies_with_parent([*self.enter(who), *self.clocks.enter(clock), *command]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.dir,
                env={**os.environ, "PYTHONPATH": str(HERE.parent), **(environment or {})},
            )

    # -- running

    def note(self, text):
        """For people who ask what happened when."""
        with open(self.dir / "steps", "a", encoding="utf-8") as steps:
            steps.write(f"{boot_now() / 1e9:.3f} {time.strftime('%T')} {text}\n")

    def play(self):
        """Runs the schedule; then every fault is healed, and the system must come to rest."""
        self._start()
        for process in [*self.clients.values(), self.run]:
            process.start()
        self.began = time.monotonic()
        for step in schedule.steps(self.profile):
            self._wait(self.began + step.at)
            self._do(step, time.monotonic() + self.patient)
        self._wait(self.began + self.profile.seconds)
        # A slow machine takes a little longer; a world without a fault it was to have would not
        # count.
        while self.looking:
            self._wait(time.monotonic() + 0.05)
        self._heal()
        self._come_to_rest()

    def _do(self, step, until):
        """Retries for a while when the fault has no target at the moment."""
        self.looking.discard(step)
        if self.faults.meet(step):
            self.done[step.kind] += 1
            self.note(f"{step.kind} {step.target} {step.span}")
        elif time.monotonic() < until:
            self.looking.add(step)
            self.later(0.05, lambda: self._do(step, until))

    def later(self, span, action):
        heapq.heappush(self.undo, (time.monotonic() + span, next(self.numbers), action))

    def _wait(self, until):
        """Meanwhile ends the faults that are due, and checks every process."""
        while True:
            self._watch()
            now = time.monotonic()
            if self.undo and self.undo[0][0] <= now:
                self._undo_next()
            elif now >= until:
                return
            else:
                time.sleep(min(0.02, until - now))

    def _undo_next(self):
        began = time.monotonic()
        heapq.heappop(self.undo)[2]()
        if time.monotonic() > began + 0.1:
            self.note(f"the end of a fault took {time.monotonic() - began:.1f} s")

    def _watch(self):
        for process in [*self.clients.values(), self.run]:
            process.watch()
        self._watch_servers()
        for recorder in self.recorders:
            if recorder.fault:
                raise recorder.fault

    def _come_to_rest(self):
        """P7, on real clocks: every client has a grant again; then all stop and release
        back."""
        for client in self.clients.values():
            wait_until(
                lambda c=client: self._granted_since_calm(c),
                f"all is healed, and {client.name} is granted something",
            )
        for process in [*self.clients.values(), self.run]:
            process.stop()
        for recorder in self.recorders:
            recorder.stop()

    def _granted_since_calm(self, client):
        self._watch()
        return any(
            event["e"] == "granted" and event["at"] > self.calm_ns
            for event in judge.read_events(client.lives[-1].path)
        )

    def verdict(self):
        lives = [life for process in [*self.clients.values(), self.run] for life in process.lives]
        rows = {name: self.guard.rows(name) for name in guards.RESOURCES}
        history = self.history + [line for recorder in self.recorders for line in recorder.history]
        return judge.judge(
            lives,
            rows,
            history,
            self.calm_ns,
            os.environ["PAWL_CHECK_HISTORY"],
            self.dir / "history.jsonl",
        )
