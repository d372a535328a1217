#!/usr/bin/python3
"""What the Redis guard costs: the same SET, plain and guarded, side by side in one run. See
README.md.

    PYTHONPATH=tests bench/guard_redis.py                 about a minute
    PYTHONPATH=tests bench/guard_redis.py --quick         a smoke test
    PYTHONPATH=tests bench/guard_redis.py --json

In a round every variant runs for a short slice, one after the other, the next round in the opposite
order; a ratio is taken inside a round, and the median over the rounds is printed. So a machine that
is busy with other things disturbs both sides of a ratio. Every write is synced before it is
answered, in one round trip on both sides. The clients are those of redis-benchmark. """

import argparse
import csv
import json
import statistics
import subprocess

from pawltest.redis_server import Server, protect, write

TOKEN = "34"
TARGET = 1.35
KEY, OWN = "orders:7", "{orders}:pawl"
CALL = ["FCALL", "pawl_write", "2", OWN, KEY, "orders", TOKEN, ""]
# Name: what is sent.
VARIANTS = {
    "plain": ["SET", KEY, "shipped"],
    "guarded": [*CALL, "SET", KEY, "shipped"],
}


def seconds(server, words, clients, requests):
    """Per request."""
    done = subprocess.run(
        ["redis-benchmark", "-p", str(server.port), "-c", str(clients), "-n", str(requests)]
        + ["--csv", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=600,
        check=True,
    )
    rows = list(csv.reader(done.stdout.splitlines()))
    return 1 / float(rows[-1][rows[0].index("rps")])


def measure(server, clients, rounds, requests):
    """The median of guarded / plain over the rounds, and the median microseconds of each."""
    times = {name: [] for name in VARIANTS}
    for number in range(rounds):
        for name in sorted(VARIANTS, reverse=number % 2 == 1):
            times[name].append(seconds(server, VARIANTS[name], clients, requests))
    ratios = [guarded / plain for guarded, plain in zip(times["guarded"], times["plain"])]
    return {
        "clients": clients,
        "ratio": round(statistics.median(ratios), 3),
        "microseconds": {
            name: round(statistics.median(each) * 1e6, 1) for name, each in times.items()
        },
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds, requests = (3, 500) if options.quick else (15, 4000)
    with Server() as server:
        server.install()
        db = server.connect()
        protect(db, "orders", "orders:*")
        write(db, "orders", TOKEN, *VARIANTS["plain"])
        found = [measure(server, clients, rounds, requests) for clients in (1, 16)]
    if options.json:
        print(json.dumps({"target": TARGET, "guard_redis": found}))
        return
    for each in found:
        plain, guarded = (each["microseconds"][name] for name in ("plain", "guarded"))
        print(
            f"{each['clients']:3} clients: guarded SET × {each['ratio']:.2f} "
            f"(plain {plain} µs, guarded {guarded} µs; target × {TARGET})"
        )


if __name__ == "__main__":
    main()
