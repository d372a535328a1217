#!/usr/bin/python3
"""What the MariaDB guard costs: the same transaction, plain and guarded, side by side in one run. See README.md.

    bench/guard_mariadb.py                 about two minutes
    bench/guard_mariadb.py --quick         a smoke test
    bench/guard_mariadb.py --json

In a round every variant runs for a short slice, one after the other, the next round in the opposite order; a ratio is taken inside a
round, and the median over the rounds is printed. So a machine that is busy with other things disturbs both sides of a ratio.
Commits are durable. Round trips are equal on both sides: the plain transaction sends one more message too, which does nothing.
`bare` does not, and shows what the trip itself costs. Clients are the threads of mariadb-slap; each writes rows of its own.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/guard_mariadb"))
from maria_cluster import Server, call, rows  # noqa: E402

ROWS = 2000
TOKEN = 34
TARGET = 1.25  # by, on distinct resources
UPDATE = "UPDATE bench.`{table}` SET n = n + 1 WHERE id = CONNECTION_ID() % 2000"
MINE = "CONCAT('bench.by:', CONNECTION_ID() % 2000)"
# What each variant sends before its UPDATE, to which table it writes, and what it is compared with.
VARIANTS = {
    "bare": (["START TRANSACTION"], "plain", None),
    "plain": (["START TRANSACTION", f"DO CONCAT({MINE}, 34)"], "plain", None),
    "static": (["START TRANSACTION", f"CALL pawl.use('bench.static', {TOKEN})"], "static", "plain"),
    "by": (["START TRANSACTION", f"CALL pawl.use({MINE}, {TOKEN})"], "by", "plain"),
    "begin": ([f"CALL pawl.begin('bench.static', {TOKEN})"], "static", "bare"),
}


def prepare(server):
    admin = server.connect()
    rows(admin, "CREATE DATABASE bench")
    rows(admin, "USE bench")
    for table in ("plain", "static", "by"):
        rows(admin, f"CREATE TABLE bench.`{table}` (id INT PRIMARY KEY, n INT NOT NULL)")
        rows(admin, f"INSERT INTO bench.`{table}` SELECT seq, 0 FROM seq_0_to_{ROWS - 1}")
    call(admin, "protect", "bench.static", None, None, "enforce")
    call(admin, "protect", "bench.by", None, "id", "enforce")
    call(admin, "advance", "bench.static", TOKEN, 5)
    (guard,) = rows(admin, "SELECT id FROM pawl.guard WHERE name = 'bench.by'")[0]
    rows(admin, f"INSERT INTO pawl.fence (guard, k, token) SELECT {guard}, seq, {TOKEN} FROM seq_0_to_{ROWS - 1}")
    admin.close()


def measure(server, variant, clients, transactions):
    """Microseconds for a transaction, as one of the clients sees it."""
    before, table, _ = VARIANTS[variant]
    statements = [*before, UPDATE.format(table=table), "COMMIT"]
    done = subprocess.run(["mariadb-slap", "--no-defaults", f"--socket={server.socket}", "--user=root", "--create-schema=bench", "--no-drop",
                           f"--concurrency={clients}", f"--number-of-queries={clients * transactions * len(statements)}", "--delimiter=;",
                           f"--query={';'.join(statements)}", "--csv"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=True)
    seconds = float(done.stdout.strip().split(",")[2])
    return seconds / transactions * 1e6


def cpu(server):
    """Seconds of processor time that the server has used so far, in all of its threads."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(options):
    found = []
    with Server({"innodb_buffer_pool_size": "256M", "innodb_log_file_size": "256M"}) as server:
        server.install()
        prepare(server)
        for clients in options.clients:
            times = {name: [] for name in VARIANTS}
            used = dict.fromkeys(VARIANTS, 0.0)
            for number in range(options.rounds):
                for name in list(VARIANTS) if number % 2 == 0 else reversed(list(VARIANTS)):
                    before = cpu(server)
                    times[name].append(measure(server, name, clients, options.transactions))
                    used[name] += cpu(server) - before
            for name, (_, _, against) in VARIANTS.items():
                ratio = statistics.median(a / b for a, b in zip(times[name], times[against])) if against else None
                found.append({"clients": clients, "variant": name, "against": against, "microseconds": round(statistics.median(times[name])),
                              "server_cpu": round(used[name] / (options.rounds * clients * options.transactions) * 1e6), "ratio": ratio and round(ratio, 2)})
                if not options.json:
                    print(f"{clients:3} clients  {name:7} {found[-1]['microseconds']:7} us {found[-1]['server_cpu']:6} us of the server's CPU" + (f"  {ratio:5.2f} x {against}" if against else ""), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--transactions", type=int, default=400, help="of each client, in a slice")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.transactions, options.clients = 2, 20, [1]
    found = run(options)
    missed = [each for each in found if each["variant"] == "by" and each["ratio"] > TARGET]
    if options.json:
        print(json.dumps({"target": TARGET, "missed": bool(missed), "results": found}, indent=2))
    else:
        print(f"target: by at most {TARGET} x plain: {'missed' if missed else 'met'}")


if __name__ == "__main__":
    main()
