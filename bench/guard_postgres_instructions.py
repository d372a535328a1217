#!/usr/bin/python3
"""How many instructions the PostgreSQL guard costs a backend: what the same transaction takes
plain and guarded, with PL/pgSQL and with the C library. Counts do not depend on what else the
machine does; the kernel's and the client's are not in them.

    PYTHONPATH=tests bench/guard_postgres_instructions.py            all: about three minutes
    PYTHONPATH=tests bench/guard_postgres_instructions.py 'row, use'

callgrind counts in single-user mode. Each form is run with 40 and with 100 transactions; a
transaction takes the difference by 60. """

import os
import pathlib
import re
import sys

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "build/lib/postgres15/pawl_guard.so"
if LIBRARY.exists():
    os.environ.setdefault("PAWL_POSTGRES_LIBRARY", str(LIBRARY))

from pawltest import postgres  # noqa: E402

ROWS = 2000
FEW, MANY = 40, 100
DATABASES = {"PL/pgSQL": "in_plpgsql", "C": "in_c"}
# table: how it is protected
TABLES = {"guarded": "", "rowed": ", key => 'id'", "byed": ", by => 'id'"}
TABLES["computed"] = ", by => 'id % 1000000'"
# form: the statement that carries the token, and the table that is written
FORMS = {
    "plain": ("EXECUTE set_plain;", "plain"),
    "one fence, set": ("EXECUTE set_guarded;", "guarded"),
    "one fence, use": ("EXECUTE use('guarded');", "guarded"),
    "row, set": ("EXECUTE set_rowed;", "rowed"),
    "row, use": ("EXECUTE use('rowed:{id}');", "rowed"),
    "by, set": ("EXECUTE set_byed;", "byed"),
    "by, use": ("EXECUTE use('byed:{id}');", "byed"),
    "computed, set": ("EXECUTE set_computed;", "computed"),
    "computed, use": ("EXECUTE use('computed:{id}');", "computed"),
}
PREPARE = "".join(
    f"PREPARE write_{table}(int) AS UPDATE {table} SET n = n + 1 WHERE id = $1;\n"
    f"PREPARE set_{table} AS SELECT set_config('pawl.token.{table}', '7', true);\n"
    for table in ("plain", *TABLES)
)
PREPARE += "PREPARE use(text) AS SELECT pawl.use($1, 7);\nSET plan_cache_mode = force_generic_plan;\n"


def fill(cluster, database):
    table = "(id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0) WITH (fillfactor = 40)"
    for name, how in {"plain": None, **TABLES}.items():
        cluster.psql(
            f"CREATE TABLE {name} {table}; INSERT INTO {name} SELECT generate_series(1, {ROWS});",
            database,
        )
        if how is not None:
            cluster.psql(f"SELECT pawl.protect('{name}'{how}, mode => 'enforce')", database)
            # The first write under a token makes the fences; one fence for all is raised before it.
            raised = f"SELECT pawl.advance('{name}', 7);" if name == "guarded" else ""
            cluster.psql(f"{raised} SET pawl.token.{name} = 7; UPDATE {name} SET n = 0", database)
    cluster.psql("VACUUM ANALYZE", database)


def count(cluster, database, form, transactions):
    token, table = FORMS[form]
    script = PREPARE + "".join(
        f"BEGIN;\n{token.format(id=at)}\nEXECUTE write_{table}({at});\nCOMMIT;\n"
        for at in range(1, transactions + 1)
    )
    settings = {
        "dynamic_library_path": f"{cluster.dir}:$libdir",
        "fsync": "off",
        "jit": "off",
        "enable_seqscan": "off",
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    done = cluster.run(
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={cluster.dir}/callgrind.out",
        *(postgres.SERVER_BIN / "postgres", "--single", "-D", cluster.data, *words, database),
        input=script,
    )
    if "ERROR" in done.stdout + done.stderr:
        raise RuntimeError(f"{form}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def per_transaction(cluster, database, form):
    """In thousands."""
    counts = [count(cluster, database, form, transactions) for transactions in (FEW, MANY)]
    return (counts[1] - counts[0]) / (MANY - FEW) / 1000


def main():
    unknown = set(sys.argv[1:]) - set(FORMS)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are: {'; '.join(FORMS)}")
    forms = [form for form in FORMS if form in sys.argv[1:] or len(sys.argv) == 1]
    with postgres.Cluster() as cluster:
        used = {
            name: database
            for name, database in DATABASES.items()
            if name != "C" or postgres.LIBRARY
        }
        for name, database in used.items():
            cluster.psql(f"CREATE DATABASE {database}")
            cluster.psql(postgres.install_script(library=name == "C"), database)
            fill(cluster, database)
        cluster.stop()
        plain = per_transaction(cluster, DATABASES["PL/pgSQL"], "plain")
        print(f"a plain transaction: {plain:.0f} thousand instructions; a guarded one more:")
        for form in forms:
            if form == "plain":
                continue
            more = [
                f"{name} {per_transaction(cluster, database, form) - plain:.0f}"
                for name, database in used.items()
            ]
            print(f"{form}: {', '.join(more)}", flush=True)


if __name__ == "__main__":
    main()
