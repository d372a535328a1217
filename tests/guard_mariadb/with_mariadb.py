#!/usr/bin/python3
"""Runs a program with a private MariaDB that has the guard installed and a database `shop`; its
port is in PAWL_TEST_MARIADB_PORT.

    with_mariadb.py PROGRAM ARGUMENT…
"""
import os
import subprocess
import sys

from maria_cluster import Server, rows


def main():
    with Server() as server:
        server.install()
        rows(server.connect(), "CREATE DATABASE shop")
        ended = subprocess.run(
            sys.argv[1:],
            env={**os.environ, "PAWL_TEST_MARIADB_PORT": str(server.port)},
            check=False,
        ).returncode
        if ended:
            print(f"--- server log\n{server.log_text()[-4000:]}---", file=sys.stderr)
    sys.exit(ended)


main()
