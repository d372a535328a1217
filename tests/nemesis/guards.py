"""The guarded resources of a world: a database with one protected table for each.

    guard = guards.make("sqlite", directory)
    guard.where               # the address for a worker
    guard.rows("alpha")       # in the order of their commits: dicts of token, op, writer, at
    guard.crash(); guard.start()

Each table has the columns token, op, writer, at; the worker inserts a row per write. Redis and etcd
have a list, or keys, of such lines.
"""

import base64
import json
import os
import sqlite3


RESOURCES = ["alpha", "beta", "gamma", "pool_0", "pool_1"]
COLUMNS = "token BIGINT, op BIGINT, writer VARCHAR(40), at BIGINT"
ROWS = "SELECT token, op, writer, at FROM {} ORDER BY id"


def make(kind, directory, mode="enforce"):
    """`mode` of the guards; a world whose guards only watch must be detected."""
    kinds = {"sqlite": Sqlite, "postgres": Postgres, "mariadb": Maria, "redis": Redis, "etcd": Etcd}
    return kinds[kind](directory, mode)


def _rows(found):
    return [dict(zip(("token", "op", "writer", "at"), row)) for row in found]


class Sqlite:
    def __init__(self, directory, mode):
        self.path = directory / "guarded.db"
        self.where = f"sqlite:{self.path}"
        self.run_options = lambda lock: ["--guard", f"sqlite:{lock}", "--guard-dsn", str(self.path)]
        with sqlite3.connect(self.path) as db:
            db.isolation_level = None
            db.enable_load_extension(True)
            db.load_extension(os.environ["PAWL_SQLITE"])
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("SELECT pawl_install()")
            for name in RESOURCES:
                db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY AUTOINCREMENT, {COLUMNS})")
                db.execute("SELECT pawl_protect(?, NULL, ?)", (name, mode))
        db.close()

    def rows(self, resource):
        db = sqlite3.connect(self.path, timeout=60)
        try:
            return _rows(db.execute(ROWS.format(resource)).fetchall())
        finally:
            db.close()

    def close(self):
        pass


class Postgres:
    def __init__(self, directory, mode):  # pylint: disable=unused-argument
        from pawltest import postgres

        self.cluster = postgres.Cluster({"shared_buffers": "16MB", "max_connections": 40})
        try:
            self.cluster.start()
            self.db = self.cluster.create_database("guarded_world")
            for name in RESOURCES:
                self.cluster.psql(
                    f"CREATE TABLE {name} (id BIGSERIAL PRIMARY KEY, {COLUMNS});"
                    f"SELECT pawl.protect('{name}', mode => '{mode}')",
                    self.db,
                )
        except BaseException:
            self.cluster.remove()
            raise
        # By its socket in the file system: clients on machines of their own do not reach loopback.
        dsn = self.cluster.dsn(self.db, host=self.cluster.dir)
        self.where = f"postgres:{dsn}"
        self.run_options = lambda lock: ["--guard", f"postgres:{lock}", "--guard-dsn", dsn]

    def crash(self):
        self.cluster.crash()

    def start(self):
        self.cluster.start()

    def rows(self, resource):
        found = self.cluster.psql(
            f"SELECT json_agg(json_build_array(token, op, writer, at) ORDER BY id) FROM {resource}",
            self.db,
        )
        return _rows(json.loads(found.stdout.strip() or "null") or [])

    def close(self):
        self.cluster.remove()


class Maria:
    def __init__(self, directory, mode):  # pylint: disable=unused-argument
        from pawltest import mariadb

        self.library = mariadb
        self.server = mariadb.Server(
            {"innodb_buffer_pool_size": "24M", "innodb_lock_wait_timeout": "2"}
        )
        try:
            self.server.start()
            self.server.install()
            db = self.server.connect()
            mariadb.rows(db, "CREATE DATABASE world")
            for name in RESOURCES:
                mariadb.rows(
                    db,
                    f"CREATE TABLE world.{name} (id BIGINT AUTO_INCREMENT PRIMARY KEY, {COLUMNS})",
                )
                mariadb.call(db, "protect", f"world.{name}", name, None, mode)
            db.close()
        except BaseException:
            self.server.remove()
            raise
        self.where = f"mariadb:{self.server.dsn(database='world')}"
        self.run_options = lambda lock: [
            "--guard",
            f"mariadb:{lock}",
            "--guard-dsn",
            self.server.dsn(),
        ]

    def crash(self):
        self.server.crash()

    def start(self):
        self.server.start()

    def rows(self, resource):
        db = self.server.connect(database="world")
        try:
            return _rows(self.library.rows(db, ROWS.format(resource)))
        finally:
            db.close()

    def close(self):
        self.server.remove()


def _lines(texts):
    """Rows as kinds without tables have them: "token op writer at"."""
    return _rows(
        (int(token), int(op), writer, int(at))
        for token, op, writer, at in (text.split() for text in texts)
    )


class Redis:
    def __init__(self, directory, mode):  # pylint: disable=unused-argument
        from pawltest import redis_server

        self.server = redis_server.Server()
        try:
            self.server.start()
            self.server.install()
            db = self.server.connect()
            for name in RESOURCES:
                redis_server.protect(db, name, f"{{{name}}}:*", mode=mode)
            db.close()
        except BaseException:
            self.server.remove()
            raise
        self.where = f"redis:{self.server.dsn()}"
        self.run_options = lambda lock: [
            "--guard",
            f"redis:{lock}",
            "--guard-dsn",
            self.server.dsn(),
        ]

    def crash(self):
        self.server.crash()

    def start(self):
        self.server.start()

    def rows(self, resource):
        db = self.server.connect()
        try:
            return _lines(db.lrange(f"{{{resource}}}:log", 0, -1))
        finally:
            db.close()

    def close(self):
        self.server.remove()


class Etcd:
    def __init__(self, directory, mode):  # pylint: disable=unused-argument
        from pawltest import etcd_guard

        self.server = etcd_guard.Server()
        try:
            self.server.start()
            self.server.install()
            for name in RESOURCES:
                self.server.protect(f"{name}/*", mode=mode)
        except BaseException:
            self.server.remove()
            raise
        self.where = f"etcd:{self.server.dsn}"
        self.run_options = lambda lock: ["--guard", f"etcd:{lock}", "--guard-dsn", self.server.dsn]

    def crash(self):
        self.server.nodes[0].kill()

    def start(self):
        self.server.nodes[0].start()
        self.server.wait_healthy()

    def rows(self, resource):
        found = self.server.json("get", "--prefix", f"{resource}/log/").get("kvs", [])
        found.sort(key=lambda each: each["mod_revision"])
        return _lines(base64.b64decode(each["value"]).decode() for each in found)

    def close(self):
        self.server.remove()
