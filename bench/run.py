#!/usr/bin/python3
"""make bench: pawld beside Redis and beside the ceilings, in one run on one machine. See README.md.

Nothing here fails because of a time: it prints what it saw, and whether each target of the project
was met. """

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys

import instructions
import memory
import peers
import report

# Which peers take part in which workload, at how many connections. Echo servers hand nothing on.
CELLS = [
    ("cycle", (1, 16, 64, 256), ("pawl", "redis-always", "redis-memory", "echo", "echo+log")),
    ("handoff", (64,), ("pawl", "redis-always", "redis-memory")),
    ("renew", (64, 256), ("pawl", "redis-always", "redis-memory", "echo")),
]


# libpawl beside what a program could do without it: 64 threads with a connection each, or one that
# drives them all.
CLIENT_CELLS = [("cycle", (64,), ("pawl", "pawl-threads", "libpawl"))]
# Peers that are the same server, spoken to in another way: pawl_bench_load --by.
WAYS = {"pawl-threads": ("pawl", "threads"), "libpawl": ("pawl", "client")}


def progress(text):
    print(text, file=sys.stderr, flush=True)


def measure(binary, server, by, workload, connections, seconds):
    """One cell: what pawl_bench_load prints, or {'failed': why}."""
    return run_json(
        [
            binary,
            "--peer",
            server.dialect,
            "--by",
            by,
            "--workload",
            workload,
            "--port",
            server.port,
            "--pid",
            server.pid,
            "--connections",
            connections,
            "--seconds",
            seconds,
            "--warmup",
            min(0.1, seconds / 4),
        ]
    )


def run_json(command):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return {"failed": done.stderr.strip()}
    return json.loads(done.stdout)


def start_all(bin_dir, work_dir, kinds=peers.EVERY):
    servers = {}
    for kind in kinds:
        server = kind(bin_dir, work_dir)
        try:
            server.start()
        except (peers.Missing, RuntimeError) as problem:
            progress(f"left out: {problem}")
            continue
        servers[server.name] = server
    return servers


def run_rounds(options, servers, cells_of):
    """Rounds of all cells, each in an order of its own, so that no peer always runs next to the
    same neighbour."""
    shuffle = random.Random(options.seed)
    binary = options.bin / "pawl_bench_load"
    plan = [
        (workload, connections, name)
        for workload, counts, names in cells_of
        for connections in counts
        for name in names
        if WAYS.get(name, (name,))[0] in servers
    ]
    cells = []
    for turn in range(options.rounds):
        shuffle.shuffle(plan)
        progress(f"round {turn + 1} of {options.rounds}: {len(plan)} cells of {options.seconds} s")
        for workload, connections, name in plan:
            server, by = WAYS.get(name, (name, "epoll"))
            for _ in range(1 + options.again):
                got = measure(binary, servers[server], by, workload, connections, options.seconds)
                if "failed" in got or got["errors"]:
                    progress(
                        f"  {name} {workload} {connections}: "
                        f"{got.get('failed') or got['first_error']}"
                    )
                cells.append(
                    {
                        "round": turn,
                        "workload": workload,
                        "connections": connections,
                        "peer": name,
                        **got,
                    }
                )
                if report.quiet(got):
                    break
    return cells


def speed(options):
    servers = start_all(options.bin, options.out / "data")
    try:
        return run_rounds(options, servers, CELLS)
    finally:
        for server in servers.values():
            server.stop()


def client(options):
    """libpawl: one client for many threads, and one client with many leases."""
    servers = start_all(options.bin, options.out / "data", [peers.Pawld])
    if not servers:
        raise RuntimeError("no pawld, nothing to measure")
    pawld = servers["pawl"]
    try:
        cells = run_rounds(options, servers, CLIENT_CELLS)
        progress(f"holding {options.leases:,} leases")
        hold = run_json(
            [
                options.bin / "pawl_bench_hold",
                "--port",
                pawld.port,
                "--pid",
                pawld.pid,
                "--leases",
                options.leases,
            ]
        )
        return {"cells": cells, "hold": hold}
    finally:
        pawld.stop()


def machine():
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in open("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load": os.getloadavg(),
        "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def parse():
    parser = argparse.ArgumentParser(
        description="Measure pawld beside Redis and beside the ceilings."
    )
    parser.add_argument(
        "--build",
        type=pathlib.Path,
        default=pathlib.Path(__file__).resolve().parent.parent / "build",
        help="binaries are in its bin/",
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        help="where data and results go: on a real file system, "
        "not tmpfs (default: bench/ in the build directory)",
    )
    parser.add_argument(
        "--only", default="speed,client,memory,instructions", help="which parts, comma-separated"
    )
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of each cell")
    parser.add_argument(
        "--again", type=int, default=1, help="how often to repeat a cell that others disturbed"
    )
    parser.add_argument(
        "--locks", type=int, help="how many to hold in the memory and instruction measurements"
    )
    parser.add_argument("--leases", type=int, help="how many to hold through one client")
    parser.add_argument("--seed", type=int, default=None, help="of the order of the cells")
    parser.add_argument(
        "--quick", action="store_true", help="fewer, shorter cells and fewer locks: a smoke test"
    )
    options = parser.parse_args()
    options.bin = options.build.resolve() / "bin"
    options.out = (options.out or options.build / "bench").resolve()
    options.rounds = options.rounds or (2 if options.quick else 9)
    options.seconds = options.seconds or (0.25 if options.quick else 0.6)
    options.locks = options.locks or (100_000 if options.quick else 1_000_000)
    options.leases = options.leases or (10_000 if options.quick else 100_000)
    options.seed = (
        random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    )
    options.parts = options.only.split(",")
    unknown = set(options.parts) - {"speed", "client", "memory", "instructions"}
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    return options


def main():
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": machine(),
        "seed": options.seed,
        "seconds": options.seconds,
        "quick": options.quick,
    }
    parts = {
        "speed": (lambda: speed(options), report.speed),
        "client": (lambda: client(options), report.client),
        "memory": (
            lambda: memory.measure(options.bin, options.out / "data", options.locks, progress),
            report.memory,
        ),
        "instructions": (
            lambda: instructions.measure(options.bin, options.out, options.locks, progress),
            report.instructions,
        ),
    }
    print(
        f"{result['machine']['cpu']}, {result['machine']['cores']} cores, Linux "
        f"{result['machine']['kernel']}, "
        f"load {result['machine']['load'][0]:.2f} at the start, seed {options.seed}"
    )
    verdicts = []
    for part in options.parts:
        run, show = parts[part]
        try:
            result[part] = run()
        except (peers.Missing, RuntimeError, OSError) as problem:
            print(f"\n## {part}: not measured\n\n{problem}")
            result[part] = {"failed": str(problem)}
            continue
        verdicts += show(result[part])
    shutil.rmtree(options.out / "data", ignore_errors=True)  # Hundreds of megabytes of journal.
    report.verdicts(verdicts)
    result["verdicts"] = [verdict.__dict__ for verdict in verdicts]
    path = options.out / f"results-{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    progress(f"all figures: {path}")


if __name__ == "__main__":
    main()
