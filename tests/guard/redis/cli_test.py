#!/usr/bin/python3
"""`pawl guard … redis`: a server from nothing to refused writes, and what `check` says of it."""

import json
import os
import re
import subprocess

import redis
from pawltest.redis_server import ServerCase, guard_key, main, write

PAWL = os.environ["PAWL"]


class CliCase(ServerCase):
    def setUp(self):
        super().setUp()
        for name, value in (("appendfsync", "always"), ("maxmemory", "0")):
            self.db.config_set(name, value)
        self.db.config_set("maxmemory-policy", "noeviction")

    def guard(self, verb, *words, code=0, password=None):
        where = self.server.dsn(**({"user": "admin"} if password else {}))
        done = subprocess.run(
            [PAWL, "guard", verb, "redis", "--dsn", where, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **({"REDISCLI_AUTH": password} if password else {})},
        )
        self.assertEqual(done.returncode, code, f"{verb} {words}\n{done.stdout}{done.stderr}")
        return done

    def set_mode(self, mode):
        self.guard("mode", "orders", mode, "--yes", "--reason", "test")


class FromNothingTest(CliCase):
    def test_install_protect_refuse_and_uninstall(self):
        self.db.function_flush()
        self.assertIn("no guard is installed here", self.guard("status", code=64).stderr)
        self.assertIn("would install", self.guard("install", "--dry-run").stdout)
        self.assertIn("no guard is installed here", self.guard("status", code=64).stderr)
        self.assertIn("installed: guard", self.guard("install").stdout)
        self.guard("protect", "orders:*", "--dry-run")
        self.assertEqual(self.db.keys("*"), [])
        protected = self.guard("protect", "orders:*").stdout
        self.assertIn("orders:* under guard orders, mode observe", protected)
        self.assertEqual(write(self.db, "orders", 34, "SET", "orders:7", "x"), "admitted")
        self.assertEqual(write(self.db, "orders", 33, "SET", "orders:7", "y"), "stale")
        self.guard("mode", "orders", "enforce", "--dry-run")
        self.assertEqual(write(self.db, "orders", 33, "SET", "orders:7", "y"), "stale")
        self.set_mode("enforce")
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 33, "SET", "orders:7", "z")
        self.assertEqual(self.guard("max", "orders").stdout.split()[-1], "34")
        advanced = self.guard("advance", "orders", "35").stdout
        self.assertIn("advanced: orders from 34 to 35", advanced)
        self.assertIn("35", self.guard("advance", "orders", "34", code=121).stderr)
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual((status["kind"], status["fence"], status["stale"]), ("static", 35, 3))
        self.guard("emergency", "--reason", "test")
        self.assertEqual(write(self.db, "orders", 33, "SET", "orders:7", "z"), "stale")
        self.guard("unprotect", "orders:*", "--yes")
        self.guard("drop", "orders", "--yes")
        self.guard("uninstall", "--yes")
        self.assertEqual(self.db.keys("*pawl*"), [])

    def test_upgrade_keeps_the_fences(self):
        self.guard("protect", "orders:*", "--mode", "enforce")
        write(self.db, "orders", 34, "SET", "orders:7", "x")
        self.guard("install")
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 33, "SET", "orders:7", "z")

    def test_two_guards_do_not_share_a_key(self):
        self.guard("protect", "orders:*")
        done = self.guard("protect", "orders:eu:*", "--guard", "eu", code=64)
        self.assertIn("under guard orders already", done.stderr)

    def test_password_comes_from_the_environment(self):
        self.db.execute_command("ACL", "SETUSER", "admin", "on", ">secret", "~*", "&*", "+@all")
        self.addCleanup(self.db.execute_command, "ACL", "DELUSER", "admin")
        self.guard("status", password="secret")
        self.assertIn("WRONGPASS", self.guard("status", password="other", code=77).stderr)


class CheckTest(CliCase):
    def setUp(self):
        super().setUp()
        self.guard("protect", "orders:*", "--mode", "enforce")

    def check(self, **options):
        """(exit code 0 or 1, the guard's strength, why, [(severity, problem)])"""
        where = {"code": 0, **options}
        report = json.loads(self.guard("check", "--json", **where).stdout)
        (guard,) = report["guards"]
        problems = [(each["severity"], each["problem"]) for each in report["problems"]]
        return guard["strength"], guard["strength_because"], problems

    def rules(self):
        """The ACL rules that `protect` prints, as lists of words."""
        printed = self.guard("protect", "more:*", "--guard", "orders").stderr
        self.db.execute_command("ACL", "SETUSER", "admin", "on", ">secret", "~*", "&*", "+@all")
        found = re.findall(r"^  (ACL SETUSER .*)$", printed, re.M)
        self.assertEqual(len(found), 3)
        return [line.replace("PASSWORD", "secret").split() for line in found]

    def put_in_force(self):
        for rule in self.rules():
            self.db.execute_command(*rule)
        self.db = self.connect(username="admin", password="secret")
        self.addCleanup(
            self.db.execute_command,
            *("ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all"),
        )

    def test_without_rules_others_may_write_around_it(self):
        strength, because, problems = self.check(code=1)
        self.assertEqual(strength, "best effort")
        self.assertIn("no ACL rule keeps the user default from writing around it", because)
        self.assertEqual([severity for severity, _ in problems], ["warning"])

    def test_rules_in_force_make_it_fenced(self):
        self.put_in_force()
        self.assertEqual(self.check(password="secret"), ("fenced", "", []))
        anybody = self.connect()
        for words in (("SET", "orders:7", "x"), ("DEL", "{orders}:pawl"), ("FLUSHALL",)):
            with self.assertRaises(redis.exceptions.NoPermissionError):
                anybody.execute_command(*words)
        anybody.set("app:1", "x")
        self.assertIsNone(anybody.get("orders:7"))
        writer = self.connect(username="pawl-orders", password="secret")
        self.assertEqual(write(writer, "orders", 34, "SET", "orders:7", "x"), "admitted")
        self.assertEqual(write(writer, "orders", 34, "DEL", "orders:7", "orders:8"), "admitted")
        with self.assertRaises(redis.exceptions.NoPermissionError):
            writer.execute_command("FUNCTION", "FLUSH")
        with self.assertRaises(redis.exceptions.NoPermissionError):
            writer.set("app:1", "y")

    def test_rules_keep_others_from_what_redis_takes_for_reading(self):
        self.put_in_force()
        self.db.xadd("orders:x", {"f": "1"})
        self.db.xgroup_create("orders:x", "group", "0")
        anybody = self.connect()
        anybody.geoadd("app:geo", [1, 1, "m"])
        for words in (
            ("GEORADIUS app:geo 1 1 1 m STORE app:1 STORE orders:7"),
            ("GEORADIUSBYMEMBER app:geo m 1 m STORE app:1 STORE orders:7"),
            ("XREADGROUP GROUP group me STREAMS orders:x >"),
        ):
            with self.subTest(words), self.assertRaises(redis.exceptions.NoPermissionError):
                anybody.execute_command(*words.split())
        anybody.xadd("app:x", {"f": "1"})
        anybody.xgroup_create("app:x", "group", "0")
        self.assertEqual(len(anybody.xreadgroup("group", "me", {"app:x": ">"})), 1)

    def test_user_with_any_single_way_to_write_is_named(self):
        self.put_in_force()
        self.addCleanup(self.db.execute_command, "ACL", "DELUSER", "batch")
        for words in (
            "~orders:* +incr",
            "~orders:* +lpush",
            "~orders:* +setrange",
            "%R~orders:* +xreadgroup",
            "~{orders}:pawl +hincrby",
            "~app:* +georadius",
            "~app:* +georadiusbymember",
            "+swapdb",
            "+function|load",
            "+function|delete",
            "+function|restore",
        ):
            with self.subTest(words):
                rule = ("ACL", "SETUSER", "batch", "reset", "on", ">secret", *words.split())
                self.db.execute_command(*rule)
                _, because, _ = self.check(code=1, password="secret")
                self.assertIn("the user batch from writing around it", because)

    def test_writer_who_may_replace_the_functions_is_named(self):
        self.put_in_force()
        self.db.execute_command("ACL", "SETUSER", "pawl-orders", "+function")
        _, because, _ = self.check(code=1, password="secret")
        self.assertIn("the user pawl-orders from writing around it", because)

    def test_user_who_is_let_in_later_is_named(self):
        self.put_in_force()
        self.db.execute_command("ACL", "SETUSER", "batch", "on", ">secret", "~orders:*", "+del")
        self.addCleanup(self.db.execute_command, "ACL", "DELUSER", "batch")
        _, because, _ = self.check(code=1, password="secret")
        self.assertIn("the user batch from writing around it", because)

    def test_server_that_does_not_sync_every_write_is_best_effort(self):
        self.put_in_force()
        self.db.config_set("appendfsync", "everysec")
        strength, because, _ = self.check(password="secret")
        self.assertEqual(strength, "best effort")
        self.assertIn("appendfsync is everysec", because)
        self.assertIn("note: orders is best effort", self.guard("check", password="secret").stdout)

    def test_eviction_is_named(self):
        self.put_in_force()
        self.db.config_set("maxmemory", "100mb")
        self.db.config_set("maxmemory-policy", "allkeys-lru")
        self.assertIn("may evict fences", self.check(password="secret")[1])

    def test_expiry_of_a_fence_is_an_error(self):
        self.db.expire(guard_key("orders"), 1000)
        strength, because, problems = self.check(code=1)
        self.assertEqual(strength, "best effort")
        self.assertIn("the fences have an expiry", because)
        self.assertEqual(problems[0][0], "error")
        self.assertIn(
            "the mode stays as it is", self.guard("mode", "orders", "enforce", code=64).stderr
        )
        self.db.persist(guard_key("orders"))
        self.assertNotIn("expiry", self.check(code=1)[1])

    def test_guard_that_was_lost_and_made_anew_is_an_error_until_it_is_settled(self):
        write(self.db, "orders", 34, "SET", "orders:7", "x")
        self.db.delete(guard_key("orders"))
        self.guard("protect", "orders:*", "--mode", "enforce")
        self.assertEqual(write(self.db, "orders", 33, "SET", "orders:7", "stale"), "admitted")
        strength, because, problems = self.check(code=1)
        self.assertEqual((strength, problems[0][0]), ("best effort", "error"))
        self.assertIn("lost and made anew", because)
        self.guard("compact", "orders", "--below", "34", "--yes")
        self.assertNotIn("error", [severity for severity, _ in self.check(code=1)[2]])
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 33, "SET", "orders:7", "x")

    def test_guard_that_is_not_in_the_list_is_an_error(self):
        self.db.delete("pawl:guards")
        found = self.guard("check", code=1).stdout
        self.assertIn("orders", found)
        self.assertIn("not in the list of guards", found)
        (fix,) = re.findall(r"redis-cli (SADD \S+ \S+)", found)
        self.db.execute_command(*fix.split())
        self.assertNotIn("not in the list", self.guard("check", code=1).stdout)

    def test_lost_guard_is_an_error(self):
        self.db.delete(guard_key("orders"))
        found = self.guard("check", code=1).stdout
        self.assertIn("the guard is gone", found)


if __name__ == "__main__":
    main()
