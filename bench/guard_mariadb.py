#!/usr/bin/python3
"""What the MariaDB guard costs: the same transaction, plain and guarded, side by side in one run.
See README.md.

    PYTHONPATH=tests bench/guard_mariadb.py                 about two minutes
    PYTHONPATH=tests bench/guard_mariadb.py --quick         a smoke test
    PYTHONPATH=tests bench/guard_mariadb.py --json
    PYTHONPATH=tests bench/guard_mariadb.py --triggers      what the trigger alone costs

In a round every variant runs for a short slice, one after the other, the next round in the opposite
order; a ratio is taken inside a round, and the median over the rounds is printed. So a machine that
is busy with other things disturbs both sides of a ratio. Commits are durable. Round trips are equal
on both sides: `plain` sends one message that does nothing, where `use` sends the token; `bare` does
not, and neither do `begin` (it starts the transaction) and a token column. Clients are the threads
of mariadb-slap; each writes rows of its own. The server's CPU time is what a busy machine disturbs
least. """

import argparse
import json
import os
import pathlib
import statistics
import subprocess

from pawltest.mariadb import Server, call, rows

ROWS = 2000
TOKEN = 34
TARGET = 1.25  # each form, on distinct resources
MINE = "CONCAT('bench.{}:', CONNECTION_ID() % 2000)"
START, COMMIT, FINISH = "START TRANSACTION", "COMMIT", "CALL pawl.finish()"
UPDATE = "UPDATE bench.`{}` SET n = n + 1 WHERE id = CONNECTION_ID() % 2000"
CARRYING = (
    f"UPDATE bench.`{{}}` SET n = n + 1, pawl_token = {TOKEN} WHERE id = CONNECTION_ID() % 2000"
)
# What each variant sends, and what it is compared with: as many messages that do the same without a
# guard.
VARIANTS = {
    "bare": ([START, UPDATE.format("plain"), COMMIT], None),
    "plain": (
        [START, f"DO CONCAT({MINE.format('by')}, {TOKEN})", UPDATE.format("plain"), COMMIT],
        None,
    ),
    "use static": (
        [START, f"CALL pawl.use('bench.static', {TOKEN})", UPDATE.format("static"), COMMIT],
        "plain",
    ),
    "use by": (
        [START, f"CALL pawl.use({MINE.format('by')}, {TOKEN})", UPDATE.format("by"), COMMIT],
        "plain",
    ),
    "begin static": (
        [f"CALL pawl.begin('bench.static', {TOKEN})", UPDATE.format("static"), FINISH],
        "bare",
    ),
    "begin by": (
        [f"CALL pawl.begin({MINE.format('by')}, {TOKEN})", UPDATE.format("by"), FINISH],
        "bare",
    ),
    "column static": ([START, CARRYING.format("column_static"), COMMIT], "bare"),
    "column by": ([START, CARRYING.format("column_by"), COMMIT], "bare"),
}


def prepare(server):
    admin = server.connect()
    rows(admin, "CREATE DATABASE bench")
    rows(admin, "USE bench")
    for table in ("plain", "static", "by", "column_static", "column_by"):
        rows(admin, f"CREATE TABLE bench.`{table}` (id INT PRIMARY KEY, n INT NOT NULL)")
        rows(admin, f"INSERT INTO bench.`{table}` SELECT seq, 0 FROM seq_0_to_{ROWS - 1}")
    for table in ("static", "column_static"):
        call(admin, "protect", f"bench.{table}", None, None, "enforce")
        call(admin, "advance", f"bench.{table}", TOKEN, 5)
    for table in ("by", "column_by"):
        call(admin, "protect", f"bench.{table}", None, "id", "enforce")
        rows(
            admin,
            f"INSERT INTO pawl.fence (guard, k, token) SELECT o.id, seq, {TOKEN} FROM pawl.guard "
            f"o, seq_0_to_{ROWS - 1} WHERE o.name = %s",
            f"bench.{table}",
        )
    for table in ("column_static", "column_by"):
        call(admin, "token_column", f"bench.{table}", True)
    admin.close()


def measure(server, variant, clients, transactions):
    """Microseconds for a transaction, as one of the clients sees it."""
    statements, _ = VARIANTS[variant]
    done = subprocess.run(
        [
            "mariadb-slap",
            "--no-defaults",
            f"--socket={server.socket}",
            "--user=root",
            "--create-schema=bench",
            "--no-drop",
            f"--concurrency={clients}",
            f"--number-of-queries={clients * transactions * len(statements)}",
            "--delimiter=;",
            f"--query={';'.join(statements)}",
            "--csv",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    seconds = float(done.stdout.strip().split(",")[2])
    return seconds / transactions * 1e6


def cpu(server):
    """Seconds of processor time that the server has used so far, in all of its threads."""
    fields = (
        pathlib.Path(f"/proc/{server.process.pid}/stat")
        .read_text(encoding="ascii")
        .rpartition(")")[2]
        .split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# What the trigger alone costs: one UPDATE in a transaction, inside a stored procedure, so that
# neither network nor client counts. `least` is one locking read of a fence, and nothing else.
TRIGGER_TABLES = ("none", "empty", "least", "guard", "column")


def prepare_triggers(admin):
    rows(admin, "CREATE TABLE bench.fence (name VARCHAR(200) PRIMARY KEY, fence BIGINT NOT NULL)")
    rows(admin, f"INSERT INTO bench.fence VALUES ('least', {TOKEN})")
    for table in TRIGGER_TABLES:
        rows(admin, f"CREATE TABLE bench.t_{table} (id INT PRIMARY KEY, n INT NOT NULL)")
        rows(admin, f"INSERT INTO bench.t_{table} VALUES (1, 0)")
    rows(admin, "CREATE TRIGGER bench.empty BEFORE UPDATE ON bench.t_empty FOR EACH ROW BEGIN END")
    rows(
        admin,
        "CREATE TRIGGER bench.least BEFORE UPDATE ON bench.t_least FOR EACH ROW IF NOT IFNULL("
        f"(SELECT fence = {TOKEN} FROM bench.fence WHERE name = 'least' LOCK IN SHARE MODE), FALSE)"
        " THEN SIGNAL SQLSTATE 'PW002'; END IF",
    )
    for table in ("guard", "column"):
        call(admin, "protect", f"bench.t_{table}", None, None, "enforce")
        call(admin, "advance", f"bench.t_{table}", TOKEN, 5)
    call(admin, "token_column", "bench.t_column", True)
    for table in TRIGGER_TABLES:
        carried = f", pawl_token = {TOKEN}" if table == "column" else ""
        rows(
            admin,
            f"CREATE PROCEDURE bench.run_{table}(IN times INT) BEGIN DECLARE i INT DEFAULT 0; "
            f"WHILE i < times DO START TRANSACTION; UPDATE bench.t_{table} SET n = n + 1{carried} "
            "WHERE id = 1; COMMIT; SET i = i + 1; END WHILE; END",
        )


def measure_triggers(rounds, transactions):
    """Microseconds of the server's processor time, and how often that of no trigger."""
    with Server({"innodb_flush_log_at_trx_commit": 0}) as server:
        server.install()
        admin = server.connect()
        rows(admin, "CREATE DATABASE bench")
        prepare_triggers(admin)
        rows(admin, "START TRANSACTION")
        call(admin, "use", "bench.t_guard", TOKEN)  # Leaves the token for the runs.
        rows(admin, "COMMIT")
        used = {table: [] for table in TRIGGER_TABLES}
        for _ in range(rounds):
            for table in TRIGGER_TABLES:
                before = cpu(server)
                rows(admin, f"CALL bench.run_{table}({transactions})")
                used[table].append((cpu(server) - before) / transactions * 1e6)
    return {
        table: {
            "server_cpu": round(statistics.median(times), 1),
            "ratio": round(statistics.median(a / b for a, b in zip(times, used["none"])), 2),
        }
        for table, times in used.items()
    }


def result(name, clients, times, used, transactions):
    """Both as medians and as the fastest slice, which is the one that others disturbed least."""
    against = VARIANTS[name][1]
    return {
        "clients": clients,
        "variant": name,
        "against": against,
        "microseconds": round(statistics.median(times[name])),
        "fastest": round(min(times[name])),
        "server_cpu": round(used[name] / (len(times[name]) * clients * transactions) * 1e6),
        "ratio": round(statistics.median(a / b for a, b in zip(times[name], times[against])), 2)
        if against
        else None,
        "ratio_fastest": round(min(times[name]) / min(times[against]), 2) if against else None,
        "ratio_cpu": round(used[name] / used[against], 2) if against and used[against] else None,
    }


def line(found):
    text = (
        f"{found['clients']:3} clients  {found['variant']:13} {found['microseconds']:6} us, "
        f"fastest {found['fastest']:6} us, "
        f"server CPU {found['server_cpu']:5} us"
    )
    if not found["against"]:
        return text
    return (
        f"{text}   {found['ratio']:4.2f} x {found['against']:5}, "
        f"fastest {found['ratio_fastest']:4.2f} x, CPU {found['ratio_cpu'] or 0:4.2f} x"
    )


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
            for name in VARIANTS:
                found.append(result(name, clients, times, used, options.transactions))
                if not options.json:
                    print(line(found[-1]), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--transactions", type=int, default=400, help="of each client, in a slice")
    parser.add_argument("--triggers", action="store_true", help="what the trigger alone costs")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.transactions, options.clients = 2, 20, [1]
    if options.triggers:
        print(json.dumps(measure_triggers(options.rounds, 50 * options.transactions), indent=2))
        return
    found = run(options)
    missed = sorted({each["variant"] for each in found if each["ratio"] and each["ratio"] > TARGET})
    if options.json:
        print(json.dumps({"target": TARGET, "missed": missed, "results": found}, indent=2))
    else:
        print(
            f"target: at most {TARGET} x the same without a guard: "
            f"{'missed by ' + ', '.join(missed) if missed else 'met'}"
        )


if __name__ == "__main__":
    main()
