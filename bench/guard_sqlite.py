#!/usr/bin/python3
"""What the SQLite guard costs: the same durable transaction, plain and guarded, side by side in one
run. See README.md.

    bench/guard_sqlite.py [--build build] [--dir DIR] [--rounds 80] [--count 50]

Each round runs every variant for some transactions, the next round in the opposite order. What is
printed for a variant is the median of its transactions, which interrupted ones do not move:
elapsed, and what the processor worked. WAL, synchronous=FULL: every commit is synced. `plain` sends
one SELECT more than `bare`, as a guarded transaction does for its token. """
import argparse
import os
import pathlib
import sqlite3
import statistics
import tempfile
import time

ROWS = 2000
LIMIT = 1.1

# name, statement that carries the token, table, against
VARIANTS = [
    ("bare", None, "plain", None),
    ("plain", "SELECT abs(?)", "plain", None),
    ("use", "SELECT pawl_use('guarded', ?)", "guarded", "plain"),
    ("use key", "SELECT pawl_use('keyed:' || ?2, ?1)", "keyed", "plain"),
    ("admit", "SELECT pawl_admit('named', ?)", "plain", "plain"),
]


def prepare(path, extension):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(extension)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    for table in ("plain", "guarded", "keyed"):
        db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, n INT NOT NULL DEFAULT 0)")
        db.execute(
            f"WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {ROWS}) "
            f"INSERT INTO {table} (id) SELECT i FROM c"
        )
    db.execute("SELECT pawl_install()")
    db.execute("SELECT pawl_protect('guarded', NULL, 'enforce')")
    db.execute("SELECT pawl_protect('keyed', 'id', 'enforce')")
    db.execute("SELECT pawl_create_guard('named')")
    db.execute("SELECT pawl_set_mode('named', 'enforce')")
    for guard in ("guarded", "keyed"):
        db.execute("SELECT pawl_set_policy(?, 'require_token', 1)", (guard,))
    for row in range(1, ROWS + 1):  # A steady state: every fence is there.
        db.execute(
            "INSERT INTO pawl_fence SELECT id, ?, 7 FROM pawl_guard WHERE name = 'keyed'",
            (str(row),),
        )
    db.execute("SELECT pawl_advance('guarded', 7)")
    return db


def transact(db, variant, row):
    """One transaction: its seconds, and those of the processor."""
    _, token, table, _ = variant
    began, worked = time.perf_counter(), time.process_time()
    db.execute("BEGIN IMMEDIATE")
    if token:
        db.execute(token, (7, row) if "?2" in token else (7,)).fetchone()
    db.execute(f"UPDATE {table} SET n = n + 1 WHERE id = ?", (row,))
    db.execute("COMMIT")
    return time.perf_counter() - began, time.process_time() - worked


def measure(db, rounds, count):
    """By variant: the seconds of each transaction, and those of the processor."""
    times = {variant[0]: ([], []) for variant in VARIANTS}
    for round_ in range(rounds + 1):
        for variant in VARIANTS if round_ % 2 else reversed(VARIANTS):
            for number in range(count):
                took, worked = transact(db, variant, number * 37 % ROWS + 1)
                if round_:  # The first one warms up.
                    times[variant[0]][0].append(took)
                    times[variant[0]][1].append(worked)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--dir", default=".", help="on the disk that is to be measured")
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument(
        "--count", type=int, default=50, help="transactions of each variant in a round"
    )
    options = parser.parse_args()
    extension = str(pathlib.Path(options.build, "lib/libpawl_sqlite.so").resolve())
    with tempfile.TemporaryDirectory(prefix="pawl-bench-", dir=options.dir) as folder:
        db = prepare(os.path.join(folder, "bench.db"), extension)
        times = measure(db, options.rounds, options.count)
        db.close()
    took = {name: statistics.median(walls) for name, (walls, _) in times.items()}
    worked = {name: statistics.median(cpus) for name, (_, cpus) in times.items()}
    print(f"{'variant':10} {'us/tx':>8} {'x time':>7} {'cpu us':>8}   against")
    missed = []
    for name, _, _, against in VARIANTS:
        ratio = took[name] / took[against] if against else None
        print(
            f"{name:10} {took[name] * 1e6:8.0f} {f'{ratio:.3f}' if ratio else '-':>7} "
            f"{worked[name] * 1e6:8.1f}   {against or ''}"
        )
        if ratio and ratio > LIMIT:
            missed.append(name)
    print(
        f"target: at most {LIMIT} x the plain durable transaction: "
        f"{'missed by ' + ', '.join(missed) if missed else 'met'}"
    )


if __name__ == "__main__":
    main()
