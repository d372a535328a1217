"""The processes of a world, which are killed, frozen and started again: pawld, clients, and `pawl
run` around a writing command.

Start them from the main thread: they die with it. What is written down here is written before the
deed, so that nobody is held to what it could not do any more. """

import json
import os
import signal
import time

import judge
from clocks import boot_now
from network import HTTP_PORT, PORT
from pawltest import harness
from pawltest.process import children

RUN_CLIENT = 50
OUTPUT_MAX = 32 << 20  # Bytes that heavy readers may leave unread, all together.
REST = 0.1  # Seconds between one run and the next.
# See `pawl run --help`; of the command only 0 and what signals make of it.
RUN_EXITS = {0, 69, 75, 121, 122, 123, 125, 137, 143}


class Pawld(harness.Pawld):
    """On every address of the namespace; `clock` is the time namespace of its next start."""

    def __init__(self, clocks, access):
        super().__init__(
            settings=f"{access.settings}\n[limits]\noutput_bytes = {OUTPUT_MAX}\n",
            resp_address=f"0.0.0.0:{PORT}",
            segment_bytes=64 << 10,
            tls=access.tls,
        )
        self.http_address = f"127.0.0.1:{HTTP_PORT}"
        self.clocks = clocks
        self.access = access
        self.clock = 0

    def client_as(self, user):
        return self.access.client(PORT, user)

    def command(self, *more):
        return [
            *self.clocks.enter(self.clock, self.environment.get("LD_PRELOAD", "")),
            *super().command(*more),
        ]


class Client:
    """A worker that is started anew whenever it is gone. Each life has a log of its own."""

    def __init__(self, number, world):
        self.name, self.number, self.world = f"c{number}", number, world
        self.clock = 0
        self.lives = []
        self.process = None
        self.frozen = False

    def start(self):
        count = len(self.lives)
        log = self.world.dir / f"{self.name}-{count}.log"
        self.lives.append(judge.Life(self.number, log))
        self.process = self.world.spawn(self.name, self.clock, self.command(log, count))
        self.frozen = False

    def command(self, log, count):
        world = self.world
        return [
            os.environ["PAWL_NEMESIS_WORKER"],
            f"addr={world.address(self.name)}",
            f"auth={world.access.auth('worker')}",
            f"ca={world.access.ca_file}",
            f"log={log}",
            f"name={self.name}-{count}",
            f"guard={world.guard.where}",
            f"seed={world.profile.seed * 1000003 + self.number * 1009 + count}",
            f"ttl={world.profile.ttl_ms}",
            f"ahead={world.clocks.ahead(self.clock)}",
        ]

    def holds(self):
        """Whether it is in the middle of its work, by the end of its log."""
        try:
            with open(self.lives[-1].path, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 2048))
                tail = log.read()
        except FileNotFoundError:
            return False
        return tail.rfind(b'"granted"') > tail.rfind(b'"releasing"') or tail.rfind(
            b'"wrote"'
        ) > tail.rfind(b'"releasing"')

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.lives[-1].ended_ns = boot_now()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def watch(self):
        """It has no reason to end."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} exited unexpectedly with {self.process.returncode}")

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=harness.PATIENCE)
        self.lives[-1].ended_ns = boot_now()
        if code:
            raise AssertionError(f"{self.name} ended with {code}")


class Crowd:
    """Many connections of a process that is no part of the work; see schedule.CROWDS. Crowds come
    from other machines: they must not take the CPU from pawld and its clients."""

    def __init__(self, world, command):
        """`command(step)`: its words."""
        self.world, self.command = world, command
        self.process = None
        self.failures = []  # what went wrong with it: such a crowd has done nothing

    def start(self, step):
        command = ["nice", "-n", "10", *self.command(step)]
        self.process = self.world.spawn("crowd", 0, command, self.world.crowd_environment())

    def stop(self):
        if self.process is not None:
            if self.process.poll():
                self.failures.append(f"ended by itself with {self.process.returncode}")
            self.process.kill()
            self.process.wait()
            self.process = None


class Run:
    """`pawl run` around a worker, again and again."""

    def __init__(self, world, dice):
        self.name, self.world, self.dice = "run", world, dice
        self.lives = []
        self.process = None
        self.frozen = set()
        self.exits = {}
        self.over_since = None

    def start(self):
        count = len(self.lives)
        log = self.world.dir / f"run-{count}.log"
        self.lives.append(judge.Life(RUN_CLIENT, log, under_run=True))
        lock, ttl, fenced = (
            self.dice.choice(["alpha", "beta"]),
            self.dice.choice((1000, 1500)),
            self.dice.random() < 0.5,
        )
        clock = self.dice.randrange(len(self.world.clocks))
        self.say("ask", locks=lock, mode="exclusive", limit=1, ttl=ttl, fenced=fenced)
        self.process = self.world.spawn(
            self.name,
            clock,
            [
                os.environ["PAWL"],
                "run",
                lock,
                "--addr",
                self.world.address(self.name),
                "-t",
                f"{ttl}ms",
                "-w",
                f"{ttl * 2}ms",
                *(self.world.guard.run_options(lock) if fenced else []),
                "--",
                os.environ["PAWL_NEMESIS_WORKER"],
                "under=run",
                f"log={log}",
                f"name=run-{count}",
                f"guard={self.world.guard.where}",
                f"seed={self.world.profile.seed * 7919 + count}",
                f"ahead={self.world.clocks.ahead(clock)}",
            ],
            self.world.access.environment("worker"),
        )
        self.frozen = set()
        self.over_since = None

    def say(self, event, **fields):
        with open(self.lives[-1].path, "a", encoding="utf-8") as log:
            log.write(json.dumps({"e": event, "at": boot_now(), "n": 1, **fields}) + "\n")

    def child(self):
        """None: it runs no command at the moment."""
        return next(iter(children(self.process.pid)), None)

    def send(self, target, sign):
        """Whether there was a process to send it to."""
        pid = self.process.pid if target == "run" else self.child()
        if pid is None or self.process.poll() is not None:
            return False
        if target == "child" and sign == signal.SIGKILL:
            self.say("killing")  # pawl releases as soon as the command is gone.
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            return False
        if sign == signal.SIGSTOP:
            self.frozen.add(pid)
        return True

    def thaw(self):
        for pid in self.frozen:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.frozen = set()

    def watch(self):
        """Starts the next one when it has ended."""
        code = self.process.poll()
        if code is None:
            return
        if self.over_since is None:
            self.over_since = time.monotonic()
            self.ended(code)
        elif time.monotonic() > self.over_since + REST:
            self.start()

    def ended(self, code):
        self.lives[-1].ended_ns = boot_now()
        self.exits[code] = self.exits.get(code, 0) + 1
        if code not in RUN_EXITS and code != -signal.SIGKILL:
            raise AssertionError(f"pawl run ended with {code}")

    def stop(self):
        self.thaw()
        code = self.process.wait(timeout=harness.PATIENCE)
        if self.over_since is None:
            self.ended(code)
