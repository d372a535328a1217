#!/usr/bin/python3
"""Runs a program with a private PostgreSQL that has the guard installed; its address is in
PAWL_TEST_DSN.

    with_postgres.py PROGRAM ARGUMENT…
"""
import os
import subprocess
import sys

from pg_cluster import Cluster


def main():
    with Cluster() as cluster:
        dsn = cluster.dsn(cluster.create_database("shop"))
        print(f"PostgreSQL: {dsn}", flush=True)
        ended = subprocess.run(
            sys.argv[1:], env={**os.environ, "PAWL_TEST_DSN": dsn}, check=False
        ).returncode
        if ended:
            print(f"--- server log\n{cluster.log_text()[-8000:]}---", file=sys.stderr)
    sys.exit(ended)


main()
