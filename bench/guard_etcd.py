#!/usr/bin/python3
"""What the etcd guard costs: the same put, plain and guarded, side by side in one run. See
README.md.

    PYTHONPATH=tests bench/guard_etcd.py                 about a minute
    PYTHONPATH=tests bench/guard_etcd.py --quick         a smoke test
    PYTHONPATH=tests bench/guard_etcd.py --json

In a round both variants run for a short slice, one after the other, the next round in the opposite
order; a ratio is taken inside a round, and the median over the rounds is printed. So a machine that
is busy with other things disturbs both sides of a ratio. The clients are libpawl's (guard_etcd.cc).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

from pawltest.etcd_guard import Server

TARGET = 1.15


def measure(server, program, clients, rounds, milliseconds):
    """The median of guarded / plain over the rounds, and the median microseconds of each."""
    words = [program, ",".join(server.addresses), clients, rounds, milliseconds]
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, text=True, timeout=900, check=True
    )
    times = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    plain, guarded = zip(*times)
    return {
        "clients": clients,
        "ratio": round(statistics.median(g / p for p, g in times), 3),
        "microseconds": {
            "plain": round(statistics.median(plain), 1),
            "guarded": round(statistics.median(guarded), 1),
        },
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("PAWL", str((options.build / "bin/pawl").resolve()))
    program = options.build / "bin/pawl_bench_guard_etcd"
    rounds, milliseconds = (2, 200) if options.quick else (15, 1000)
    with Server() as server:
        server.install()
        server.protect("orders/*")
        found = [measure(server, program, clients, rounds, milliseconds) for clients in (1, 16)]
    if options.json:
        print(json.dumps({"target": TARGET, "guard_etcd": found}))
        return
    for each in found:
        plain, guarded = (each["microseconds"][name] for name in ("plain", "guarded"))
        print(
            f"{each['clients']:3} clients: guarded put × {each['ratio']:.2f} "
            f"(plain {plain} µs, guarded {guarded} µs; target × {TARGET})"
        )


if __name__ == "__main__":
    main()
