#!/usr/bin/python3
"""What the SQLite guard costs: the same durable transaction, plain and guarded, side by side in one run. See README.md.

    bench/guard_sqlite.py [--build build] [--dir DIR] [--rounds 40] [--count 40]

Each round runs every variant for a fixed number of transactions, the next round in the opposite order; a ratio is taken inside a
round, and the median over the rounds is printed. WAL, synchronous=FULL: every commit is synced. `plain` sends one SELECT more
than `bare`, as a guarded transaction does for its token.
"""
import argparse
import os
import pathlib
import sqlite3
import statistics
import sys
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
        db.execute(f"WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {ROWS}) "
                   f"INSERT INTO {table} (id) SELECT i FROM c")
    db.execute("SELECT pawl_install()")
    db.execute("SELECT pawl_protect('guarded', NULL, 'enforce')")
    db.execute("SELECT pawl_protect('keyed', 'id', 'enforce')")
    db.execute("SELECT pawl_create_guard('named')")
    db.execute("SELECT pawl_set_mode('named', 'enforce')")
    for guard in ("guarded", "keyed"):
        db.execute("SELECT pawl_set_policy(?, 'require_token', 1)", (guard,))
    for row in range(1, ROWS + 1):  # A steady state: every fence is there.
        db.execute("INSERT INTO pawl_fence SELECT id, ?, 7 FROM pawl_guard WHERE name = 'keyed'", (str(row),))
    db.execute("SELECT pawl_advance('guarded', 7)")
    return db


def run(db, variant, count):
    """Seconds per transaction."""
    _, token, table, _ = variant
    began = time.perf_counter()
    for number in range(count):
        row = number * 37 % ROWS + 1
        db.execute("BEGIN IMMEDIATE")
        if token:
            db.execute(token, (7, row) if "?2" in token else (7,)).fetchone()
        db.execute(f"UPDATE {table} SET n = n + 1 WHERE id = ?", (row,))
        db.execute("COMMIT")
    return (time.perf_counter() - began) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--dir", default=".", help="on the disk that is to be measured")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    extension = str(pathlib.Path(options.build, "lib/libpawl_sqlite.so").resolve())
    with tempfile.TemporaryDirectory(prefix="pawl-bench-", dir=options.dir) as folder:
        db = prepare(os.path.join(folder, "bench.db"), extension)
        times = {variant[0]: [] for variant in VARIANTS}
        for round_ in range(options.rounds + 1):
            for variant in VARIANTS if round_ % 2 else reversed(VARIANTS):
                took = run(db, variant, options.count)
                if round_:  # The first one warms up.
                    times[variant[0]].append(took)
        db.close()
    print(f"{'variant':10} {'us/tx':>8} {'x time':>7}   against")
    missed = []
    for name, _, _, against in VARIANTS:
        ratio = statistics.median(a / b for a, b in zip(times[name], times[against])) if against else None
        print(f"{name:10} {statistics.median(times[name]) * 1e6:8.0f} {f'{ratio:.3f}' if ratio else '-':>7}   {against or ''}")
        if ratio and ratio > LIMIT:
            missed.append(name)
    print(f"target: at most {LIMIT} x the plain durable transaction: {'missed by ' + ', '.join(missed) if missed else 'met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
