#!/usr/bin/python3
"""The guard in a real Redis, called as any client calls it: what passes, what is refused, and what
survives."""

import redis
from pawltest.redis_server import ServerCase, eval_script, fcall, guard_key, main, protect, write

TOKEN_MAX = 2**53 - 1


class RulesTest(ServerCase):
    def setUp(self):
        super().setUp()
        protect(self.db, "orders", "orders:*")

    def test_stale_write_is_refused_and_changes_nothing(self):
        self.assertEqual(write(self.db, "orders", 34, "SET", "orders:7", "new"), "admitted")
        refused = self.assertRefused(
            "PAWLSTALE", write, self.db, "orders", 33, "SET", "orders:7", "old"
        )
        self.assertIn("[resource=orders token=33 max=34 mode=enforce]", str(refused))
        self.assertEqual(self.db.get("orders:7"), "new")

    def test_any_ordinary_command_is_checked(self):
        write(self.db, "orders", 34, "SET", "orders:7", "1")
        for command in (
            ("DEL", "orders:7"),
            ("UNLINK", "orders:7", "orders:8"),
            ("INCR", "orders:7"),
            ("HSET", "orders:h", "f", "1"),
            ("RPUSH", "orders:l", "x"),
            ("EXPIRE", "orders:7", "100"),
            ("XADD", "orders:x", "*", "f", "1"),
            ("RENAME", "orders:7", "orders:8"),
            ("MSET", "orders:7", "1", "orders:9", "2"),
        ):
            with self.subTest(command=command):
                self.assertRefused("PAWLSTALE", write, self.db, "orders", 33, *command)
        self.assertEqual(self.db.keys("orders:*"), ["orders:7"])

    def test_answer_has_the_reply_of_the_command(self):
        self.assertEqual(
            fcall(self.db, "pawl_write", "orders", "orders", 34, "", "INCR", "orders:n"),
            ["admitted", "34", 1],
        )

    def test_fence_outlives_the_deletion_of_its_key(self):
        write(self.db, "orders", 34, "SET", "orders:7", "x")
        write(self.db, "orders", 35, "DEL", "orders:7")
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 34, "SET", "orders:7", "y")
        self.assertEqual(self.db.exists("orders:7"), 0)

    def test_advance_fences_out_before_the_new_holder_writes(self):
        write(self.db, "orders", 33, "SET", "orders:7", "x")
        self.assertEqual(fcall(self.db, "pawl_advance", "orders", "orders", 34), "33")
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 33, "SET", "orders:7", "y")
        self.assertRefused(
            "PAWLSTALE", fcall, self.db, "pawl_advance", "orders", "orders", 33
        )
        self.assertEqual(fcall(self.db, "pawl_max", "orders", "orders"), "34")

    def test_numbers_are_exact_to_the_greatest_token(self):
        fcall(self.db, "pawl_policy", "orders", "", "", TOKEN_MAX, "", "change")
        write(self.db, "orders", TOKEN_MAX, "SET", "orders:7", "x")
        self.assertRefused(
            "PAWLSTALE", write, self.db, "orders", TOKEN_MAX - 1, "SET", "orders:7", "y"
        )
        self.assertEqual(fcall(self.db, "pawl_max", "orders", "orders"), str(TOKEN_MAX))
        for text in (TOKEN_MAX + 1, "1e3", " 7", "07", "+7", "-1", "0", "", "0x10"):
            self.assertRefused(
                "PAWLMALFORMED", write, self.db, "orders", text, "SET", "orders:7", "y"
            )

    def test_operation_takes_effect_once(self):
        for _ in range(3):
            write(self.db, "orders", 34, "INCR", "orders:n", op=1)
        self.assertEqual(write(self.db, "orders", 34, "INCR", "orders:n", op=5), "admitted")
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 34, "INCR", "orders:n", op=4)
        self.assertEqual(self.db.get("orders:n"), "2")

    def test_operation_whose_command_failed_was_not_done(self):
        write(self.db, "orders", 34, "SET", "orders:7", "text")
        with self.assertRaises(redis.exceptions.ResponseError):
            write(self.db, "orders", 34, "INCR", "orders:7", op=1)
        write(self.db, "orders", 34, "SET", "orders:7", "1")
        self.assertEqual(write(self.db, "orders", 34, "INCR", "orders:7", op=1), "admitted")
        self.assertEqual(write(self.db, "orders", 34, "INCR", "orders:7", op=1), "replayed")
        self.assertEqual(self.db.get("orders:7"), "2")

    def test_failed_command_of_a_new_token_fences_out_the_old_one(self):
        write(self.db, "orders", 34, "SET", "orders:7", "text")
        with self.assertRaises(redis.exceptions.ResponseError):
            write(self.db, "orders", 35, "INCR", "orders:7", op=1)
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 34, "SET", "orders:7", "1")
        self.assertEqual(write(self.db, "orders", 35, "SET", "orders:7", "1", op=1), "admitted")

    def test_command_with_too_many_words_is_refused_whole(self):
        words = [str(i) for i in range(7001)]
        self.assertRefused(
            "PAWLINVALID", write, self.db, "orders", 34, "RPUSH", "orders:l", *words, op=1
        )
        self.assertEqual(fcall(self.db, "pawl_max", "orders", "orders"), None)

    def test_second_key_to_store_in_is_not_overlooked(self):
        self.db.set("other", "x")
        write(self.db, "orders", 34, "GEOADD", "orders:7", "1", "1", "m")
        for command in (
            ("GEORADIUS", "orders:7", "1", "1", "1", "m"),
            ("GEORADIUSBYMEMBER", "orders:7", "m", "1", "m"),
            ("georadiusbymember", "orders:7", "m", "1", "m", "WITHDIST"),
        ):
            for option in ("STORE", "storedist"):
                with self.subTest(command=command, option=option):
                    stores = (option, "orders:8", option, "other")
                    self.assertRefused(
                        "PAWLINVALID", write, self.db, "orders", 34, *command, *stores
                    )
        self.assertEqual(self.db.get("other"), "x")
        one = ("GEORADIUSBYMEMBER", "orders:7", "m", "1", "m", "STORE", "orders:8")
        self.assertEqual(write(self.db, "orders", 34, *one), "admitted")

    def test_token_does_not_reach_another_database(self):
        write(self.db, "orders", 34, "SET", "orders:7", "x")
        for command in (
            ("MOVE", "orders:7", "1"),
            ("COPY", "orders:7", "orders:7", "DB", "1", "REPLACE"),
            ("copy", "orders:7", "orders:8", "replace", "db", "1"),
            ("MIGRATE", "127.0.0.1", "1", "orders:7", "1", "1", "COPY"),
        ):
            with self.subTest(command=command):
                refused = self.assertRefused("PAWLINVALID", write, self.db, "orders", 34, *command)
                self.assertIn("writes to another database", str(refused))
        self.assertEqual(self.db.get("orders:7"), "x")
        self.assertEqual(write(self.db, "orders", 34, "COPY", "orders:7", "orders:8"), "admitted")

    def test_token_does_not_reach_other_keys(self):
        self.db.set("other", "x")
        for command in (
            ("SET", "other", "y"),
            ("RENAME", "orders:7", "other"),
            ("MSET", "orders:7", "1", "other", "y"),
            ("SORT", "orders:7", "STORE", "other"),
            ("DEL", guard_key("orders")),
            ("HSET", guard_key("orders"), "f", "1"),
        ):
            with self.subTest(command=command):
                self.assertRefused("PAWLUNGUARDED", write, self.db, "orders", 34, *command)
        keyless = (("FLUSHALL",), ("FLUSHDB", "ASYNC"), ("SELECT", "1"), ("PUBLISH", "a", "b"))
        for command in keyless:
            with self.subTest(command=command):
                self.assertRefused("PAWLINVALID", write, self.db, "orders", 34, *command)
        self.assertEqual(self.db.get("other"), "x")

    def test_several_commands_are_one_step_between_multi_and_exec(self):
        with self.db.pipeline(transaction=True) as both:
            for key in ("orders:a", "orders:b"):
                both.execute_command(
                    *("FCALL", "pawl_write", 1, guard_key("orders"), "orders", 34, ""),
                    *("SET", key, "x"),
                )
            self.assertEqual([done[0] for done in both.execute()], ["admitted", "admitted"])

    def test_write_without_a_token_follows_the_policy(self):
        self.assertEqual(write(self.db, "orders", "none", "SET", "orders:7", "x"), "missing")
        fcall(self.db, "pawl_policy", "orders", "on", "", "", "", "change")
        self.assertRefused("PAWLMISSING", write, self.db, "orders", "none", "SET", "orders:7", "y")
        self.assertEqual(self.db.get("orders:7"), "x")

    def test_shadow_counts_and_lets_through(self):
        write(self.db, "orders", 34, "SET", "orders:7", "x")
        fcall(self.db, "pawl_mode", "orders", "shadow", "", "", "emergency", "change")
        self.assertEqual(write(self.db, "orders", 33, "SET", "orders:7", "y"), "stale")
        self.assertEqual(self.db.get("orders:7"), "y")
        self.assertEqual(self.db.hget(guard_key("orders"), "n:would_refuse"), "1")
        self.assertEqual(fcall(self.db, "pawl_max", "orders", "orders"), "34")
        self.assertIn("emergency", self.db.lindex(guard_key("orders") + ":audit", 0))

    def test_script_for_old_servers_keeps_the_same_fences(self):
        def evaluate(*words):
            return self.db.eval(eval_script(), 1, guard_key("orders"), *words)

        write(self.db, "orders", 34, "SET", "orders:7", "x")
        self.assertEqual(
            evaluate("pawl_write", "orders", 35, "", "SET", "orders:7", "y"),
            ["admitted", "35", "OK"],
        )
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 34, "SET", "orders:7", "z")
        self.assertRefused("PAWLSTALE", evaluate, "pawl_write", "orders", 34, "", "DEL", "orders:7")


class KeyedTest(ServerCase):
    def test_each_key_has_a_fence(self):
        protect(self.db, "accounts", "accounts:*", kind="row")
        write(self.db, "accounts:7", 34, "SET", "accounts:7", "x")
        self.assertEqual(write(self.db, "accounts:8", 20, "SET", "accounts:8", "x"), "admitted")
        self.assertRefused("PAWLSTALE", write, self.db, "accounts:7", 20, "DEL", "accounts:7")
        self.assertRefused("PAWLMISSING", write, self.db, "accounts:8", 34, "DEL", "accounts:7")
        self.assertRefused("PAWLUNGUARDED", write, self.db, "accounts", 34, "DEL", "accounts:7")

    def test_keys_share_a_fence_up_to_the_separator(self):
        protect(self.db, "carts", "cart:*", kind="by", by=":")
        write(self.db, "carts:7", 34, "SET", "cart:7:items", "x")
        self.assertRefused("PAWLSTALE", write, self.db, "carts:7", 33, "SET", "cart:7:total", "1")
        self.assertEqual(write(self.db, "carts:8", 33, "SET", "cart:8:total", "1"), "admitted")

    def test_command_over_two_resources_needs_a_good_token_for_both(self):
        protect(self.db, "accounts", "accounts:*", kind="row")
        write(self.db, "accounts:7", 34, "SET", "accounts:7", "x")
        write(self.db, "accounts:8", 40, "SET", "accounts:8", "y")

        def move(token):
            return fcall(
                self.db, "pawl_write_all", "accounts", 2, "accounts:7", "accounts:8", token,
                "RENAME", "accounts:7", "accounts:8",
            )[0]  # fmt: skip

        self.assertRefused("PAWLSTALE", move, 39)
        self.assertEqual(fcall(self.db, "pawl_max", "accounts", "accounts:7"), "34")
        self.assertEqual(move(41), "admitted")
        self.assertEqual(fcall(self.db, "pawl_max", "accounts", "accounts:7"), "41")


class SurvivalTest(ServerCase):
    def test_acknowledged_fence_survives_kill_9(self):
        protect(self.db, "orders", "orders:*")
        for token in range(30, 60):
            write(self.db, "orders", token, "SET", "orders:7", token)
        self.server.crash()
        self.server.start()
        self.assertRefused("PAWLSTALE", write, self.db, "orders", 58, "SET", "orders:7", "old")
        self.assertEqual(write(self.db, "orders", 59, "SET", "orders:7", "59"), "admitted")

    def test_lost_guard_refuses_every_write(self):
        protect(self.db, "orders", "orders:*")
        write(self.db, "orders", 34, "SET", "orders:7", "x")
        self.db.delete(guard_key("orders"))
        self.assertRefused("PAWLUNGUARDED", write, self.db, "orders", 35, "SET", "orders:7", "y")

    def test_user_who_may_not_write_the_fence_does_not_write_the_key(self):
        protect(self.db, "orders", "orders:*")
        self.db.execute_command(
            "ACL", "SETUSER", "app", "on", ">secret", "~orders:*", "%R~{orders}:pawl", "+@all"
        )
        app = self.connect(username="app", password="secret")
        with self.assertRaises(redis.exceptions.RedisError):
            write(app, "orders", 34, "SET", "orders:7", "x")
        self.assertEqual(self.db.exists("orders:7"), 0)


if __name__ == "__main__":
    main()
