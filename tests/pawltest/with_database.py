"""Runs a program with a private database that has the guard installed.

    python3 -m pawltest.with_database postgres PROGRAM ARGUMENT…     PAWL_TEST_DSN
    python3 -m pawltest.with_database mariadb PROGRAM ARGUMENT…      PAWL_TEST_MARIADB_PORT
    python3 -m pawltest.with_database redis PROGRAM ARGUMENT…        PAWL_TEST_REDIS_PORT
    python3 -m pawltest.with_database etcd PROGRAM ARGUMENT…         PAWL_TEST_ETCD_PORT
    python3 -m pawltest.with_database s3 PROGRAM ARGUMENT…           PAWL_TEST_S3_PORT
    python3 -m pawltest.with_database dynamodb PROGRAM ARGUMENT…     PAWL_TEST_DYNAMODB_PORT

The variable has the address of the database. The exit code is the program's.
"""

import contextlib
import os
import subprocess
import sys


@contextlib.contextmanager
def postgres():
    from pawltest.postgres import Cluster

    with Cluster() as cluster:
        yield cluster, {"PAWL_TEST_DSN": cluster.dsn(cluster.create_database("shop"))}


@contextlib.contextmanager
def mariadb():
    from pawltest.mariadb import Server, rows

    with Server() as server:
        server.install()
        rows(server.connect(), "CREATE DATABASE shop")
        yield server, {"PAWL_TEST_MARIADB_PORT": str(server.port)}


@contextlib.contextmanager
def redis():
    from pawltest.redis_server import Server

    with Server() as server:
        server.install()
        yield server, {"PAWL_TEST_REDIS_PORT": str(server.port)}


@contextlib.contextmanager
def etcd():
    from pawltest.etcd_guard import Server

    with Server() as server:
        server.install()
        yield server, {"PAWL_TEST_ETCD_PORT": str(server.port)}


@contextlib.contextmanager
def s3():
    from pawltest.s3_server import Server

    with Server() as server:
        server.create_bucket("shop")
        yield server, {"PAWL_TEST_S3_PORT": str(server.port), **server.environment()}


@contextlib.contextmanager
def dynamodb():
    from pawltest.dynamodb import Server

    with Server() as server:
        server.create_table("orders", "id")
        yield server, {"PAWL_TEST_DYNAMODB_PORT": str(server.port), **server.environment()}


def main():
    databases = {
        "postgres": postgres,
        "mariadb": mariadb,
        "redis": redis,
        "etcd": etcd,
        "s3": s3,
        "dynamodb": dynamodb,
    }
    with databases[sys.argv[1]]() as (server, variables):
        print(variables, flush=True)
        done = subprocess.run(sys.argv[2:], env={**os.environ, **variables}, check=False)
        if done.returncode:
            print(f"--- server log\n{server.log_text()[-8000:]}---", file=sys.stderr)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
