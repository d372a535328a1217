#!/usr/bin/python3
"""What the DynamoDB guard costs: the same PutItem and the same TransactWriteItems of two items,
plain and guarded, side by side in one run, and how many requests each of them is. See README.md.

    PYTHONPATH=tests bench/guard_dynamodb.py --build build             about a minute
    PYTHONPATH=tests bench/guard_dynamodb.py --build build --quick     a smoke test
    PYTHONPATH=tests bench/guard_dynamodb.py --build build --json

The server is dynalite, in memory, on the same machine: the requests are what counts, and times are
mostly those of dynalite. A ratio is taken inside a round, and the median of all rounds is printed.
Fails when a guarded write is more requests than a plain one. """

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from pawltest.dynamodb import Server

PAIRS = (("put", "guarded_put"), ("transact", "guarded_transact"))


def run(server, program, how, writes):
    """Microseconds and requests of one write, without the first of a client."""
    server.requests()
    done = subprocess.run(
        [program, server.dsn, how, str(writes)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, **server.environment()},
    )
    sent = server.requests()
    kept = [each for each in sent if each in ("PutItem", "TransactWriteItems")]
    reads = len(sent) - len(kept)  # of the first write: the policy, and the item
    return float(done.stdout), (len(kept) - 1) / writes, reads


def prepare(server, pawl):
    for table in ("plain", "rows", "whole"):
        server.create_table(table, "id")
    environment = {**os.environ, **server.environment(), "PAWL_GUARD_DSN": server.dsn}
    for words in (
        ["install", "dynamodb"],
        ["protect", "dynamodb", "rows", "--key", "*", "--mode", "enforce"],
        ["protect", "dynamodb", "whole", "--mode", "enforce"],
    ):
        subprocess.run(
            [pawl, "guard", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=100,
            check=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds, writes = (2, 50) if options.quick else (11, 500)
    program = options.build / "bin/pawl_bench_guard_dynamodb"
    found = []
    with Server() as server:
        prepare(server, options.build / "bin/pawl")
        for plain, guarded in PAIRS:
            pairs = [
                (run(server, program, plain, writes), run(server, program, guarded, writes))
                for _ in range(rounds)
            ]
            found.append(
                {
                    "write": plain,
                    "ratio": round(statistics.median(g[0] / p[0] for p, g in pairs), 3),
                    "requests": {"plain": pairs[-1][0][1], "guarded": pairs[-1][1][1]},
                    "reads_of_a_new_client": pairs[-1][1][2],
                }
            )
    if options.json:
        print(json.dumps({"guard_dynamodb": found}))
    else:
        for each in found:
            print(
                f"{each['write']}: {each['requests']['plain']:g} request for a plain write, "
                f"{each['requests']['guarded']:g} for a guarded one "
                f"(and {each['reads_of_a_new_client']} reads by a new client); "
                f"time x {each['ratio']}"
            )
    sys.exit(any(each["requests"]["guarded"] > each["requests"]["plain"] for each in found))


if __name__ == "__main__":
    main()
