#!/usr/bin/python3
"""One world: a pawld and its disk, or a cluster of them on etcd, clients and their wires, a guarded
database; and what a schedule does to them.

    world.py --seed 17 --seconds 60 [--disk lossy] [--guard postgres] [--only kill_pawld,cut_both]
             [--json FILE]
    world.py --seed 17 --seconds 60 --disk cluster         # cluster_world.py

Its parts (disk, guard, wire, relays, clocks, processes, recorders) know nothing of each other.
Another store, or a gate before the resource, joins as a part with a close(), with what can be done
to it in faults.py, and how often in schedule.py.

Runs in namespaces of its own (mounts, network, and clocks for some of its processes). Prints what
was done and found; exit 0: nothing wrong, 1: a violation, or too little happened to mean anything.
The history stays where it says if something is wrong.

Environment: PAWL_BUILD is the build directory, by default build/.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import sys
import time

import access
import clocks
import disks
import faults
import guards
import namespaces
import network
import processes
import programs
import schedule
from base_world import HERE, LOCKS, BaseWorld
from clocks import boot_now
from cluster_world import ClusterWorld
from operator_client import OperatorClient
from pawltest import harness, tcp_proxy
from pawltest.harness import wait_until
from waiting_client import WaitingClient

EXIT_STORE = 74
# A world without other faults has larger crowds.
STRANGERS = {True: 11_500, False: 700}
HEAVY_READERS = {True: 2000, False: 60}
# Of pawld, bytes: its own, 4,300 connections with TLS (19 KiB, and 50 with data under way: the
# readers, half of them), and what readers leave unread.
MEMORY_LIMIT = (40 << 20) + 4300 * (40 << 10) + processes.OUTPUT_MAX
# The command's own, no lock to be had in time, and a lease that an operator broke.
RUN_EXITS_WHEN_HEALTHY = {0, 75, 121, 122}
# Thousands of strangers that begin TLS handshakes all the time leave no core for a new client's.
NO_CONNECTION = 69


class World(BaseWorld):
    """One pawld and its disk."""

    server = frozen_since = None
    rss_read = 0.0

    def _build(self, guard_mode):
        harness.allow_descriptors(16_384)
        self.wire = network.Wire()
        self.access = access.Access(self.dir, self.profile.tls)
        self.clocks = self._part(clocks.Clocks(schedule.CLOCKS, not self.profile.tls))
        self.server = processes.Pawld(self.clocks, self.access)
        self.disk = self._part(disks.make(self.profile.disk, self.server))
        self.guard = self._part(guards.make(self.profile.guard, self.dir, guard_mode))
        self.clients = {f"c{n}": processes.Client(n, self) for n in range(self.profile.clients)}
        self.relays = {
            name: self._part(tcp_proxy.Proxy(network.PORT)) for name in schedule.RELAYED_CLIENTS
        }
        self.run = processes.Run(self, random.Random(f"{self.profile.seed}/run"))
        self.strangers = processes.Crowd(self, self._strangers)
        self.heavy_readers = processes.Crowd(self, self._heavy_readers)
        self.cleanups += [self.strangers.stop, self.heavy_readers.stop]
        self.faults = faults.Faults(self)

    def _servers(self):
        return [self.server]

    def close(self):
        super().close()
        if self.server:
            self.server.log()  # Still known when its directory is gone.
            shutil.rmtree(self.server.dir, ignore_errors=True)

    def logs(self):
        return self.server.log()

    # -- what the parts ask of it

    def address(self, name):
        if name in self.relays:
            return f"{self.access.scheme}127.0.0.1:{self.relays[name].port}"
        return f"{self.access.scheme}{self.wire.host(name)}:{network.PORT}"

    # -- crowds

    def crowd_environment(self):
        return {
            "PAWL_WORKER": self.access.auth("worker"),
            "PAWL_READER": self.access.auth("reader"),
        }

    def _strangers(self, step):
        return [
            sys.executable,
            HERE / "stranger.py",
            "--resp",
            f"127.0.0.1:{network.PORT}",
            "--http",
            f"127.0.0.1:{network.HTTP_PORT}",
            "--count",
            STRANGERS[schedule.only_crowds(self.profile.kinds)],
            "--seed",
            step.arg,
            "--seconds",
            step.span + self.patient,
            *(["--tls"] if self.access.tls else []),
        ]

    def _heavy_readers(self, step):
        return [
            sys.executable,
            HERE / "heavy_reader.py",
            "--port",
            network.PORT,
            "--count",
            HEAVY_READERS[schedule.only_crowds(self.profile.kinds)],
            "--seconds",
            step.span + self.patient,
            *(["--ca", self.access.ca_file] if self.access.tls else []),
        ]

    # -- pawld

    def start_pawld(self, seed=0):
        """Until it serves: on a bad disk it may end before. Every start is held against every token
        handed out before."""
        while self.server.process is None:
            self.disk.prepare(seed)
            at = boot_now()
            self.server.launch()
            if wait_until(self._serves_or_ended, "pawld serves or ends") == "serves":
                return self._note_start(at)
            self._ended_by_itself()

    def _note_start(self, at):
        try:
            with self.server.client_as("operator") as client:
                self.history.append(
                    {
                        "kind": "start",
                        "at_ns": at,
                        "last_token": client.call("STATUS")["last_token"] or 0,
                    }
                )
        except (harness.Closed, OSError):
            pass  # It has ended again, or will have.

    def _serves_or_ended(self):
        if self.server.process.poll() is not None:
            return "ended"
        try:
            return "serves" if self.server._serving() else None
        except AssertionError:
            return "ended"

    def _ended_by_itself(self):
        code = self.server.wait()
        if code != EXIT_STORE or not self.disk.fails():
            log = self.server.log()[-3000:]
            raise AssertionError(f"pawld exited unexpectedly with {code}:\n{log}")
        self.done["pawld_ended_74"] += 1
        self.frozen_since = None

    def kill_pawld(self):
        if self.server.process is None:
            return
        if self.server.process.poll() is not None:
            return self._ended_by_itself()
        self.note_pause()
        self.server.process.kill()
        self.server.process.wait()
        self.server.process = None

    def note_pause(self):
        if self.frozen_since:
            self.history.append(
                {"kind": "pause", "from_ns": self.frozen_since, "to_ns": boot_now()}
            )
        self.frozen_since = None

    # -- running

    def _start(self):
        self.start_pawld()
        self.recorders = [
            OperatorClient(
                lambda: self.server.client_as("operator"),
                random.Random(f"{self.profile.seed}/operator"),
                LOCKS,
            ),
            WaitingClient(
                lambda: self.server.client_as("worker"),
                random.Random(f"{self.profile.seed}/waiter"),
                LOCKS[:3],
            ),
        ]

    def _watch_servers(self):
        if self.server.process is not None and self.server.process.poll() is not None:
            self._ended_by_itself()
            self.start_pawld(self.dice.randrange(1 << 32))
        elif self.server.process is not None and time.monotonic() > self.rss_read + 0.25:
            self.rss_read = time.monotonic()
            with contextlib.suppress(AssertionError, OSError):  # It has ended meanwhile.
                self.rss_max = max(self.rss_max, self.server.rss_bytes())

    def _heal(self):
        self.calm_ns = boot_now()  # No fault from now on.
        while self.undo:
            self._undo_next()
        self.disk.mend()
        self.kill_pawld()  # Once more, without any fault that is still to come.
        self.start_pawld()
        self.calm_ns = boot_now()

    def verdict(self):
        verdict = super().verdict()
        verdict.faults.extend(self._crowd_faults(verdict))
        return verdict

    def _crowd_faults(self, verdict):
        """What crowds must not do to those who behave, and crowds that did nothing."""
        for name, crowd in {"strangers": self.strangers, "heavy readers": self.heavy_readers}.items():
            yield from (f"nemesis: the {name} {failure}; see `output`" for failure in crowd.failures)
        if self.rss_max > MEMORY_LIMIT:
            yield f"memory: pawld had {self.rss_max >> 20} MiB, more than {MEMORY_LIMIT >> 20}"
        if schedule.only_crowds(self.profile.kinds):
            for reason, count in verdict.healthy_losses.items():
                yield f"G10: {count} healthy leases were lost: {reason}"
            healthy = RUN_EXITS_WHEN_HEALTHY | ({NO_CONNECTION} if self.access.tls else set())
            for code in self.run.exits.keys() - healthy:
                yield f"G10: `pawl run` ended with {code}, {self.run.exits[code]} times"


def idle(profile, verdict, done):
    """What was asked for and hardly came: such a run proves nothing."""
    missing = [f"no {kind}" for kind in profile.kinds if not done[kind]]
    busy = profile.seconds / (4 if profile.disk == "cluster" else 1)  # A takeover takes seconds.
    for what, least in (("grants", busy / 2), ("writes_admitted", busy), ("renewals", busy / 20)):
        if verdict.counts[what] < least:
            missing.append(
                f"only {verdict.counts[what]} {what.replace('_', ' ')} in {profile.seconds} s"
            )
    return [f"idle: {words}" for words in missing]


def play(profile, guard_mode):
    kind = ClusterWorld if profile.disk == "cluster" else World
    world = kind(profile, guard_mode)
    try:
        world.play()
        verdict = world.verdict()
        found = verdict.faults + idle(profile, verdict, world.done)
        counts, details = verdict.counts, verdict.details
    except AssertionError as error:
        found, counts, details = [f"world: {error}"], collections.Counter(), collections.Counter()
    finally:
        world.close()
    if found:
        (world.dir / "servers.log").write_text(world.logs())
    else:
        shutil.rmtree(world.dir, ignore_errors=True)
    return {
        "seed": profile.seed,
        "seconds": profile.seconds,
        "disk": profile.disk,
        "guard": profile.guard,
        "tls": profile.tls,
        "rss_max": world.rss_max,
        "faults": found,
        "done": world.done,
        "counts": counts,
        "details": details.most_common(6),
        "run_exits": world.run.exits,
        "figures": world.figures(),
        "versions": world.versions(),
        "dir": str(world.dir) if found else None,
    }


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--disk", choices=list(schedule.DISKS))
    parser.add_argument("--guard", choices=list(schedule.GUARDS))
    parser.add_argument("--only", help="kinds of faults, with commas between")
    parser.add_argument(
        "--guard-mode", default="enforce", help="shadow: a planted bug, which must be found"
    )
    parser.add_argument("--json", help="where to put the result")
    return parser.parse_args()


def main():
    given = arguments()
    namespaces.enter()
    programs.find()
    profile = schedule.profile(
        given.seed, given.seconds, given.disk, given.guard, given.only and given.only.split(",")
    )
    result = play(profile, given.guard_mode)
    text = json.dumps(result, indent=1)
    if given.json:
        pathlib.Path(given.json).write_text(text, encoding="utf-8")
    else:
        print(text)
    sys.exit(1 if result["faults"] else 0)


if __name__ == "__main__":
    main()
