#!/usr/bin/python3
"""What the PostgreSQL guard costs: the same transaction, plain and guarded, side by side in one
run. See README.md.

    PYTHONPATH=tests bench/guard_postgres.py                    what has a target: about four minutes
    PYTHONPATH=tests bench/guard_postgres.py --all              all shapes
    PYTHONPATH=tests bench/guard_postgres.py --quick            a smoke test
    PYTHONPATH=tests bench/guard_postgres.py --only hot16,five16
    PAWL_POSTGRES_LIBRARY= …                                    without the C library of the guard

Where the C library was built, what goes through the guard runs with it and without it.
A shape is a number of clients and a kind of transaction. In a round every variant of a shape runs
for a short slice, one after the other, the next round in the opposite order; a ratio is taken
inside a round, and the median over the rounds is printed. So a machine that is busy with other
things disturbs both sides of a ratio. Commits are durable (fsync, synchronous_commit).

Round trips are equal on both sides of every ratio: a guarded transaction carries its token with one
more message, and so does the plain one it is compared with (set_config of a setting that nobody
reads). `bare` has none, and shows what the trip itself costs; the hand-written token column needs
none either, and is compared with `bare`. """

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILT_LIBRARY = HERE.parent / "build/lib/postgres15/pawl_guard.so"
if BUILT_LIBRARY.exists():
    os.environ.setdefault("PAWL_POSTGRES_LIBRARY", str(BUILT_LIBRARY))

import report  # noqa: E402
from pawltest.postgres import BIN, LIBRARY, Cluster, install_script, rows  # noqa: E402
from pawltest.process import children  # noqa: E402

ROWS = 2000  # In each table; written at random, so that no two clients wait for a row.
TABLES = 16  # For distinct resources: one table, and one guard, each.
TICK = os.sysconf("SC_CLK_TCK")

Shape = collections.namedtuple(
    "Shape", "name clients statements distinct autocommit keyed", defaults=(1, False, False, False)
)
SHAPES = [Shape(f"hot{clients}", clients) for clients in (1, 8, 16)]
SHAPES += [Shape(f"distinct{clients}", clients, distinct=True) for clients in (1, 8, 16)]
SHAPES += [Shape(f"five{clients}", clients, statements=5) for clients in (1, 8, 16)]
SHAPES += [Shape("autocommit16", 16, autocommit=True)]
SHAPES += [Shape(f"keyed{clients}", clients, keyed=True) for clients in (1, 8, 16)]

# What each variant sends for its token, to which table it writes, and what it is compared with.
Variant = collections.namedtuple(
    "Variant", "name token table update against database", defaults=("bench",)
)
UPDATE = "UPDATE {table} SET n = n + 1 WHERE id = :id;"
COLUMN = "UPDATE {table} SET n = n + 1, token = 7 WHERE id = :id AND token <= 7;"
VARIANTS = [
    Variant("bare", None, "plain", UPDATE, None),
    Variant("plain", "SELECT set_config('bench.token', '7', true);", "plain", UPDATE, None),
    Variant("column", None, "by_hand", COLUMN, "bare"),
    Variant("protected", "SELECT set_config('{setting}', '7', true);", "guarded", UPDATE, "plain"),
    Variant("use", "SELECT pawl.use('{guard}', 7);", "guarded", UPDATE, "plain"),
    Variant("admit", "SELECT pawl.admit('{named}', 7);", "plain", UPDATE, "plain"),
    Variant(
        "for update",
        "SELECT max FROM fence WHERE resource = '{named}' FOR UPDATE;",
        "plain",
        UPDATE,
        "plain",
    ),
]
# Without BEGIN there is nothing to carry a token in but the connection itself.
AUTOCOMMIT = [
    Variant("bare", None, "plain", UPDATE, None),
    Variant("column", None, "by_hand", COLUMN, "bare"),
    Variant("protected", None, "guarded", UPDATE, "bare"),
]
# Tables with a fence per key, and how they are protected; the key of a row is its id.
KEYS = {"rowed": "key => 'id'", "byed": "by => 'id'", "computed": "by => 'id % 1000000'"}
# A fence per key: each transaction writes a row of its own, and names it to use().
SET = "SELECT set_config('{setting}', '7', true);"
KEYED = [
    Variant("plain", "SELECT set_config('bench.token', '7', true);", "plain", UPDATE, None),
    Variant("row, set", SET, "rowed", UPDATE, "plain"),
    Variant("row, use", "SELECT pawl.use('rowed{number}:' || :id, 7);", "rowed", UPDATE, "plain"),
    Variant("by, set", SET, "byed", UPDATE, "plain"),
    Variant("by, use", "SELECT pawl.use('byed{number}:' || :id, 7);", "byed", UPDATE, "plain"),
    Variant("computed, set", SET, "computed", UPDATE, "plain"),
    Variant(
        "computed, use", "SELECT pawl.use('computed{number}:' || :id, 7);", "computed", UPDATE, "plain"
    ),
    Variant("use", "SELECT pawl.use('guarded{number}', 7);", "guarded", UPDATE, "plain"),
]


def variants_of(shape):
    """With the C library, what goes through the guard a second time, with it."""
    found = AUTOCOMMIT if shape.autocommit else KEYED if shape.keyed else VARIANTS
    if not LIBRARY:
        return found
    guarded = [each for each in found if each.table not in ("plain", "by_hand")]
    return found + [
        each._replace(name=f"{each.name}, C", database="bench_c") for each in guarded
    ]


# (shape, variant, what, limit): the project's targets. `for update` is there to show what is
# avoided: more than half.
TARGETS = [
    ("hot16", "protected", "time", 1.12),
    ("distinct16", "protected", "time", 1.12),
    ("five16", "protected", "time", 1.30),
    ("autocommit16", "protected", "time", 1.30),
    ("hot16", "column", "time", 1.10),
    ("hot16", "protected", "wal", 1.10),
    ("hot8", "use", "time", 1 / 0.85),
    ("keyed8", "row, set", "time", 1 / 0.75),
    ("keyed8", "row, use", "time", 1 / 0.75),
    ("keyed8", "by, set", "time", 1 / 0.75),
    ("keyed8", "by, use", "time", 1 / 0.75),
    ("keyed8", "computed, set", "time", 1 / 0.75),
    ("keyed8", "computed, use", "time", 1 / 0.75),
    ("hot8", "use, C", "time", 1 / 0.85),
    ("keyed8", "row, set, C", "time", 1 / 0.75),
    ("keyed8", "row, use, C", "time", 1 / 0.75),
    ("keyed8", "by, set, C", "time", 1 / 0.75),
    ("keyed8", "by, use, C", "time", 1 / 0.75),
    ("keyed8", "computed, set, C", "time", 1 / 0.75),
    ("keyed8", "computed, use, C", "time", 1 / 0.75),
]


def progress(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options):
        self.options = options
        self.cluster = Cluster(
            {
                "max_connections": 60,
                "shared_buffers": "256MB",
                "checkpoint_timeout": "1h",
                "max_wal_size": "16GB",
                "autovacuum": "off",
            }
        )
        self.scripts = self.cluster.dir / "scripts"

    def __enter__(self):
        self.cluster.start()
        self.scripts.mkdir()
        for name in ["bench", *(["bench_c"] if LIBRARY else [])]:
            self.cluster.psql(f"CREATE DATABASE {name}")
            self.cluster.psql(install_script(library=name == "bench_c"), name)
            self._fill(name)
        self.cluster.psql("CHECKPOINT")
        return self

    def __exit__(self, *_):
        self.cluster.remove()

    def _fill(self, database="bench"):
        for number in range(TABLES):
            self.cluster.psql(
                f"""
                CREATE TABLE plain{number} (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0) WITH (fillfactor = 40);
                CREATE TABLE by_hand{number} (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0, token bigint NOT NULL DEFAULT 0)
                  WITH (fillfactor = 40);
                CREATE TABLE guarded{number} (LIKE plain{number} INCLUDING ALL) WITH (fillfactor = 40);
                INSERT INTO plain{number} SELECT g FROM generate_series(1, {ROWS}) g;
                INSERT INTO by_hand{number} SELECT g FROM generate_series(1, {ROWS}) g;
                INSERT INTO guarded{number} SELECT g FROM generate_series(1, {ROWS}) g;
                SELECT pawl.protect('guarded{number}', mode => 'enforce');
                SELECT pawl.set_policy('guarded{number}', require_token => true);
                SELECT pawl.create_guard('named{number}');
                SELECT pawl.set_mode('named{number}', 'enforce');
                SELECT pawl.advance('guarded{number}', 7);
                SELECT pawl.advance('named{number}', 7);""",
                database,
            )
        for name, how in KEYS.items():
            self.cluster.psql(
                f"""
                CREATE TABLE {name}0 (LIKE plain0 INCLUDING ALL) WITH (fillfactor = 40);
                INSERT INTO {name}0 SELECT g FROM generate_series(1, {ROWS}) g;
                SELECT pawl.protect('{name}0', {how}, mode => 'enforce');
                BEGIN;
                SELECT set_config('pawl.token.{name}0', '7', true);
                UPDATE {name}0 SET n = 0;
                COMMIT;""",
                database,
            )
        self.cluster.psql(
            f"""
            CREATE TABLE fence (resource text PRIMARY KEY, max bigint NOT NULL) WITH (fillfactor = 40);
            INSERT INTO fence SELECT 'named' || g, 7 FROM generate_series(0, {TABLES - 1}) g;
            CREATE TABLE setting AS SELECT name, setting FROM pawl.guard;
            VACUUM ANALYZE;""",
            database,
        )
        self.settings = dict(rows(self.connection(), "SELECT name, setting FROM setting"))

    def connection(self):
        return self.cluster.connect("bench", autocommit=True)

    def script(self, shape, variant, number):
        """The transaction as pgbench reads it, on table `number`."""
        words = {
            "table": f"{variant.table}{number}",
            "guard": f"guarded{number}",
            "named": f"named{number}",
            "setting": self.settings.get(f"{variant.table}{number}"),
            "number": number,
        }
        # Each statement has a range of its own, in rising order: otherwise plain transactions
        # deadlock among themselves.
        part = ROWS // shape.statements
        statements = [
            f"\\set id random({at * part + 1}, {at * part + part})\n" + variant.update
            for at in range(shape.statements)
        ]
        if shape.keyed:  # The token is that of the row.
            choice, _, update = statements[0].partition("\n")
            statements = [choice, "BEGIN;", variant.token, update, "COMMIT;"]
        elif not shape.autocommit:
            statements = [
                "BEGIN;",
                *([variant.token] if variant.token else []),
                *statements,
                "COMMIT;",
            ]
        path = self.scripts / f"{shape.name}-{variant.name.replace(' ', '-')}-{number}.sql"
        path.write_text("\n".join(statement.format(**words) for statement in statements) + "\n")
        return path

    def slice(self, shape, variant, seconds):
        """Runs it for so long; a dict of what was seen."""
        files = [
            word
            for number in range(TABLES if shape.distinct else 1)
            for word in ("-f", self.script(shape, variant, number))
        ]
        environment = dict(os.environ)
        if shape.autocommit:
            environment["PGOPTIONS"] = f"-c {self.settings['guarded0']}=7"
        watch = self.connection()
        wal = rows(watch, "SELECT pg_current_wal_insert_lsn()")[0][0]
        busy, server, load = busy_cores(), self.server_cpu(), child_cpu()
        began = time.monotonic()
        done = subprocess.run(
            [
                str(word)
                for word in (
                    BIN / "pgbench",
                    "-n",
                    "-M",
                    "prepared",
                    "-c",
                    shape.clients,
                    "-j",
                    min(shape.clients, 2),
                    "-T",
                    seconds,
                    *files,
                    "-h",
                    "127.0.0.1",
                    "-p",
                    self.cluster.port,
                    "-U",
                    "postgres",
                    variant.database,
                )
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
        busy, server, load = busy_cores() - busy, self.server_cpu() - server, child_cpu() - load
        if done.returncode or re.search(r"failed transactions: [1-9]", done.stdout):
            raise RuntimeError(f"pgbench {shape.name} {variant.name}:\n{done.stdout}{done.stderr}")
        count = int(re.search(r"actually processed: (\d+)", done.stdout)[1])
        rate = float(re.search(r"tps = ([\d.]+) \(without", done.stdout)[1])
        written = rows(watch, "SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", wal)[0][0]
        watch.close()
        return {
            "shape": shape.name,
            "variant": variant.name,
            "rate": rate,
            "cpu_us": server / count * 1e6,
            "wal": float(written) / count,
            "foreign_cores": max(0.0, (busy - server - load) / took),
        }

    def server_cpu(self):
        """Seconds of CPU of the server: the postmaster, its living children, and those it has
        buried."""
        return sum(
            cpu_of(pid, pid == self.cluster.pid)
            for pid in [self.cluster.pid, *children(self.cluster.pid)]
        )


def cpu_of(pid, with_dead_children):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15] if with_dead_children else fields[11:13])) / TICK


def busy_cores():
    user, nice, system, _, _, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / TICK


def child_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(bench, options):
    cells = []
    for shape in options.shapes:
        variants = variants_of(shape)
        # Every page is written once, so that no slice pays for the first write after a checkpoint.
        for variant in variants:
            bench.slice(shape, variant, 1)
        for turn in range(options.rounds):
            progress(f"{shape.name}: round {turn + 1} of {options.rounds}")
            for variant in variants if turn % 2 == 0 else reversed(variants):
                cells.append({"round": turn, **bench.slice(shape, variant, options.seconds)})
    return cells


def ratios(cells, shape, variant, against, key):
    """Variant to baseline, one for each round. Time: how much longer a transaction takes."""
    found = {(cell["round"], cell["variant"]): cell for cell in cells if cell["shape"] == shape}
    turns = sorted({turn for turn, _ in found})
    pairs = [(found[turn, variant], found[turn, against]) for turn in turns]
    if key == "time":
        return [base["rate"] / mine["rate"] for mine, base in pairs]
    return [mine[key] / base[key] for mine, base in pairs]


def show(cells, shapes):
    for shape in shapes:
        print(
            f"\n## {shape.clients} client{'s' * (shape.clients > 1)}, "
            f"{'a row at random' if shape.keyed else '16 resources' if shape.distinct else 'one resource, one token'}, "
            f"{shape.statements} UPDATE"
            f"{'s' * (shape.statements > 1)}{' without BEGIN, token on the connection' if shape.autocommit else ''}\n"
        )
        lines = []
        for variant in variants_of(shape):
            mine = [
                cell
                for cell in cells
                if cell["shape"] == shape.name and cell["variant"] == variant.name
            ]
            middle = {
                key: statistics.median(cell[key] for cell in mine)
                for key in ("rate", "cpu_us", "wal")
            }
            line = [
                variant.name,
                f"{middle['rate']:,.0f}",
                f"{middle['cpu_us']:.0f}",
                f"{middle['wal']:.0f}",
            ]
            if variant.against:
                times = ratios(cells, shape.name, variant.name, variant.against, "time")
                line += [
                    variant.against,
                    f"{statistics.median(times):.2f}",
                    f"{min(times):.2f}..{max(times):.2f}",
                    f"{statistics.median(ratios(cells, shape.name, variant.name, variant.against, 'cpu_us')):.2f}",
                    f"{statistics.median(ratios(cells, shape.name, variant.name, variant.against, 'wal')):.2f}",
                ]
            lines.append(line + ["-"] * (9 - len(line)))
        report.table(
            (
                "variant",
                "tps",
                "server us/tx",
                "wal bytes/tx",
                "against",
                "x time",
                "min..max",
                "x cpu",
                "x wal",
            ),
            lines,
        )
    return [verdict for target in TARGETS for verdict in judge(cells, *target)]


def judge(cells, shape, variant, key, limit):
    mine = [cell for cell in cells if cell["shape"] == shape]
    if not mine:
        return []
    kind = next(each for each in SHAPES if each.name == shape)
    against = next((v.against for v in variants_of(kind) if v.name == variant), None)
    if against is None:
        return []
    value = statistics.median(ratios(cells, shape, variant, against, key))
    foreign = statistics.median(cell["foreign_cores"] for cell in mine)
    return [
        report.Verdict(
            f"{shape}: {variant}, {key} x {against}: at most {limit:.2f}",
            round(value, 3),
            round(limit, 3),
            value <= limit,
            foreign > report.FOREIGN_MAX,
            f" (others used {foreign:.2f} cores meanwhile)",
        )
    ]


def parse():
    parser = argparse.ArgumentParser(description="Measure what the PostgreSQL guard costs.")
    parser.add_argument(
        "--build", type=pathlib.Path, default=HERE.parent / "build", help="results go to its bench/"
    )
    parser.add_argument(
        "--only", help="shapes, comma-separated: " + ", ".join(shape.name for shape in SHAPES)
    )
    parser.add_argument("--all", action="store_true", help="all shapes, not only those with a target")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int, help="of each slice")
    parser.add_argument(
        "--quick", action="store_true", help="two rounds of one second: a smoke test"
    )
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 3)
    options.seconds = options.seconds or 1
    judged = {shape for shape, *_ in TARGETS}
    wanted = [shape.name for shape in SHAPES if options.all or shape.name in judged]
    if options.only:
        wanted = options.only.split(",")
    unknown = set(wanted) - {shape.name for shape in SHAPES}
    if unknown:
        parser.error(f"unknown shape: {', '.join(sorted(unknown))}")
    options.shapes = [shape for shape in SHAPES if shape.name in wanted]
    return options


def main():
    options = parse()
    print(
        f"PostgreSQL guard, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} at the start, "
        f"{options.rounds} rounds of "
        f"{options.seconds} s per variant"
    )
    with Bench(options) as bench:
        cells = measure(bench, options)
    verdicts = show(cells, options.shapes)
    report.verdicts(verdicts)
    out = options.build / "bench"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"guard-postgres-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(
        json.dumps(
            {"cells": cells, "verdicts": [verdict.__dict__ for verdict in verdicts]}, indent=1
        )
        + "\n"
    )
    print(f"\nAll figures: {path}")


if __name__ == "__main__":
    main()
