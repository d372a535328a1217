#!/usr/bin/python3
"""Many small worlds at once, each from a seed of its own, until the time is over; and the sum of
what was done to them.

    nemesis.py --every-kind                       together, every kind of fault; new seeds, printed
    nemesis.py --hours 1 --seed 1000 --json out   worlds of a minute for an hour: 1000, 1001, …

Stops at nothing: a world in which something was wrong is named, with the command that plays it
again (world.py), and the exit code is 1. The schedule is the same then; threads and disks are not,
so a rare fault may need some more tries. 77: this machine does not let us have namespaces.

Environment: PAWL_BUILD is the build directory, by default build/.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import namespaces
import schedule
from pawltest.figures import percentiles

WORLD = pathlib.Path(__file__).resolve().parent / "world.py"
NEVER_LONGER = 240  # Seconds that a world may take beyond its schedule.
# The rows of the table, and the kinds they sum up.
SUMS = {
    "kills": (
        "kill_client",
        "kill_pawld",
        "kill_run",
        "kill_child",
        "kill_database",
        "clock_pawld",
        "clock_client",
        "freeze_and_restart",
        "kill_active",
        "kill_standby",
        "kill_leader",
        "restart_everything",
    ),
    "freezes": (
        "freeze_client",
        "freeze_and_restart",
        "freeze_pawld",
        "freeze_run",
        "freeze_child",
        "freeze_active",
        "freeze_leader",
    ),
    "partitions": (
        "cut_both",
        "cut_requests",
        "cut_replies",
        "half_open",
        *[kind for kind in schedule.CLUSTER_FAULTS if kind.startswith("cut_")],
    ),
    "other network faults": ("reset", "delay"),
    "disk faults": (
        "power_cut",
        "io_error",
        "hang_sync",
        "disk_full",
        "etcd_quota",
        "etcd_disk_full",
    ),
    "handovers": ("hand_over",),
    "takeovers": ("takeovers",),
    "two actives at once": ("two_actives",),
    "old actives asked": ("old_actives_asked",),
    "crowds": ("strangers", "heavy_readers"),
}
# What a run of every kind of fault needs, at least one of each.
EVERY_KIND = [
    ("plain", "sqlite"),
    ("lossy", "postgres"),
    ("small", "mariadb"),
    ("failing", "sqlite"),
    ("plain", "redis"),
    ("plain", "etcd"),
    ("cluster", "postgres"),
]


def play(seed, seconds, disk=None, guard=None, more=()):
    """One world in a process of its own; its result."""
    with tempfile.NamedTemporaryFile(prefix="nemesis-", suffix=".json") as out:
        command = [
            sys.executable,
            str(WORLD),
            "--seed",
            str(seed),
            "--seconds",
            str(seconds),
            "--json",
            out.name,
            *more,
        ]
        command += ["--disk", disk] if disk else []
        command += ["--guard", guard] if guard else []
        try:
            run = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds + NEVER_LONGER,
                check=False,
            )
            output = run.stdout
        except subprocess.TimeoutExpired as late:
            output = f"took longer than {seconds + NEVER_LONGER:.0f} s\n{late.stdout or ''}"
        text = pathlib.Path(out.name).read_text(encoding="utf-8")
    only = "".join(f" {word}" for word in more)
    if text:
        return {**json.loads(text), "only": only}
    profile = schedule.profile(seed, seconds, disk, guard)
    return {
        "seed": seed,
        "seconds": seconds,
        "disk": profile.disk,
        "guard": profile.guard,
        "faults": [f"world: {output[-2000:]}"],
        "done": {},
        "counts": {},
        "dir": None,
        "only": only,
    }


class Tally:
    def __init__(self):
        self.done, self.counts, self.worlds = (
            collections.Counter(),
            collections.Counter(),
            collections.Counter(),
        )
        self.failed = []
        self.figures = collections.defaultdict(list)
        self.rss_max = 0
        self.began = time.monotonic()

    def add(self, result):
        self.done.update(result["done"])
        self.counts.update(result["counts"])
        self.worlds.update([f"{result['disk']} disk", f"{result['guard']} guard"])
        self.worlds["TLS"] += bool(result.get("tls"))
        self.worlds.update(f"with {version}" for version in result.get("versions", []))
        self.rss_max = max(self.rss_max, result.get("rss_max", 0))
        self.worlds["all"] += 1
        for name, seconds in result.get("figures", {}).items():
            self.figures[name] += seconds
        if result["faults"]:
            self.failed.append(result)
        self.print_result(result)

    @staticmethod
    def print_result(result):
        words = "fine" if not result["faults"] else f"{len(result['faults'])} FAULTS"
        counts = result["counts"]
        print(
            f"seed {result['seed']}: {result['disk']} disk, {result['guard']}: "
            f"{sum(result['done'].values())} faults done, "
            f"{counts.get('grants', 0)} grants, {counts.get('writes_admitted', 0)} writes, "
            f"{counts.get('writes_stale', 0)} refused: {words}",
            flush=True,
        )
        if result["faults"]:
            print("\n".join(f"  {fault}" for fault in result["faults"][:8]))
            print(
                f"  again: PYTHONPATH=tests tests/nemesis/{WORLD.name} --seed {result['seed']} "
                f"--seconds {result['seconds']:g} "
                f"--disk {result['disk']} --guard {result['guard']}"
                f"{result['only']}\n  kept: {result['dir']}",
                flush=True,
            )

    def table(self):
        lines = [
            f"{self.worlds['all']} worlds in {(time.monotonic() - self.began) / 60:.1f} minutes, "
            f"{len(self.failed)} with faults"
        ]
        lines.append(
            ", ".join(
                f"{count} {name}" for name, count in sorted(self.worlds.items()) if name != "all"
            )
        )
        for name, kinds in SUMS.items():
            parts = ", ".join(f"{self.done[kind]} {kind}" for kind in kinds if self.done[kind])
            lines.append(f"  {name:<22}{sum(self.done[kind] for kind in kinds):>8}   {parts}")
        lines.append(f"  {'pawld ended with 74':<22}{self.done['pawld_ended_74']:>8}")
        lines.append(f"  {'memory of pawld, MiB':<22}{self.rss_max >> 20:>8}   at most")
        lines += [
            f"  {name.replace('_', ' '):<22}{count:>8}"
            for name, count in sorted(self.counts.items())
        ]
        lines += [f"  {name}: {percentiles(some)}" for name, some in self.figures.items()]
        return "\n".join(lines)

    def as_json(self):
        return {
            "worlds": self.worlds,
            "minutes": (time.monotonic() - self.began) / 60,
            "done": self.done,
            "counts": self.counts,
            "sums": {name: sum(self.done[kind] for kind in kinds) for name, kinds in SUMS.items()},
            "failed": self.failed,
        }


def rounds(given):
    """The worlds to play: (seed, disk, guard)."""
    fixed = (
        EVERY_KIND
        if given.every_kind
        else [tuple(pair.split(":")) for pair in given.pairs.split(",")]
        if given.pairs
        else [(None, None)]
    )
    until = time.monotonic() + given.hours * 3600
    number = 0
    while number < len(fixed) or time.monotonic() + given.seconds < until:
        yield (given.seed + number, *fixed[number % len(fixed)])
        number += 1


def play_all(given, tally):
    """As many at a time as asked for; the next one begins when one has ended."""
    with concurrent.futures.ThreadPoolExecutor(given.worlds) as pool:
        running = set()
        only = ["--only", given.only] if given.only else []
        for seed, disk, guard in rounds(given):
            running.add(pool.submit(play, seed, given.seconds, disk, guard, only))
            while len(running) >= given.worlds:
                ended, running = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for world in ended:
                    tally.add(world.result())
                save(given, tally)
        for world in concurrent.futures.as_completed(running):
            tally.add(world.result())
    save(given, tally)


def save(given, tally):
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(tally.as_json(), indent=1), encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seed", type=int, default=int.from_bytes(os.urandom(3), "big"), help="of the first world"
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long each world lasts")
    parser.add_argument("--hours", type=float, default=0, help="begin new worlds for so long")
    parser.add_argument("--worlds", type=int, default=4, help="at a time")
    parser.add_argument(
        "--pairs", help="disk:guard[,disk:guard…] in turn; by default the seed decides"
    )
    parser.add_argument("--only", help="kinds of faults, with commas between")
    parser.add_argument(
        "--every-kind",
        action="store_true",
        help="worlds that together have every kind of fault, disk and guard",
    )
    parser.add_argument("--json", help="the sums, for programs; written anew after each world")
    return parser.parse_args()


def main():
    given = arguments()
    if not namespaces.allowed():
        print(
            "skipped: needs root, or unprivileged namespaces; and /dev/fuse",
            file=sys.stderr,
        )
        sys.exit(77)
    tally = Tally()
    print(
        f"seeds from {given.seed} on, {given.worlds} worlds at a time, {given.seconds:g} s each",
        flush=True,
    )
    play_all(given, tally)
    print(tally.table())
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()
