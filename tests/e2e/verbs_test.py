"""Every verb as people and programs type it: over redis-cli in RESP2 and RESP3, and byte for byte
over a socket."""

import json

from pawltest import harness
from pawltest.harness import LEASE, fields, redis_cli, request_id

GRANT_KEYS = ["lease", "token", "floor", "slot", "ttl_ms", "waited_ms"]
INSPECT_KEYS = {
    *("lock", "state", "token", "holder_count", "holders", "waiters", "queue", "last_token"),
    "label",
}
HOLDER_KEYS = {
    "token",
    "owner",
    "mode",
    "limit",
    "slot",
    "locks",
    "held_ms",
    "expires_in_ms",
    "renewals",
    "breaking",
    "meta",
}
STATUS_KEYS = {
    "version",
    "store",
    "role",
    "state",
    "epoch",
    "active",
    "incarnation",
    "last_token",
    "oldest_live_token",
    "locks",
    "leases",
    "waiters",
    "uptime_ms",
    "restoring_ms",
    "limits",
}
UNKNOWN_LEASE = "0123456789abcdef0123456789abcdef"


class OverRedisCli:
    """Runs each test over redis-cli in one protocol version (see the two classes below)."""

    protocol = 0

    def cli(self, *words):
        """The reply as JSON; None for null."""
        run = redis_cli(self.pawld.port, *words, protocol=self.protocol, options=["--json", "-e"])
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def cli_map(self, *words):
        reply = self.cli(*words)
        self.assertIsInstance(reply, dict if self.protocol == 3 else list)
        return fields(reply)

    def cli_error(self, *words):
        run = redis_cli(self.pawld.port, *words, protocol=self.protocol, options=["-e"])
        self.assertEqual(run.returncode, 1, run.stdout)
        return run.stderr.strip()

    def cli_holders(self, lock):
        return [fields(holder) for holder in self.cli_map("INSPECT", lock)["holders"]]

    def test_acquire_returns_six_keys_in_order(self):
        grant = self.cli_map("ACQUIRE", self.lock(), "TTL", 15000)
        self.assertEqual(list(grant), GRANT_KEYS)
        self.assertRegex(grant["lease"], LEASE)
        self.assertGreater(grant["token"], 0)
        self.assertEqual(grant["floor"], grant["token"])
        self.assertIsNone(grant["slot"])
        self.assertEqual((grant["ttl_ms"], grant["waited_ms"]), (15000, 0))

    def test_verbs_and_options_ignore_case(self):
        lock = self.lock()
        grant = self.cli_map("acquire", lock, "ttl", 15000, "Owner", "Batch")
        self.assertEqual(self.cli_holders(lock)[0]["owner"], "Batch")
        self.assertEqual(self.cli("Release", grant["lease"]), 1)

    def test_held_lock_is_null_at_once_and_after_a_wait(self):
        lock = self.lock()
        self.cli_map("ACQUIRE", lock, "TTL", 60000)
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000))
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000, "WAIT", 50))

    def test_same_owner_waits_for_its_own_lock(self):
        # Hard cases 11, 16: the holder is the lease, not the label; pawld knows no reentry.
        lock = self.lock()
        self.cli_map("ACQUIRE", lock, "TTL", 60000, "OWNER", "twin")
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000, "OWNER", "twin"))

    def test_several_locks_are_one_lease_under_one_token(self):
        a, b, c = self.lock("a"), self.lock("b"), self.lock("c")
        grant = self.cli_map("ACQUIRE", a, "AND", b, "AND", c, "TTL", 60000)
        self.assertEqual(list(grant), GRANT_KEYS)
        for lock in (a, b, c):
            holder = self.cli_holders(lock)[0]
            self.assertEqual(holder["token"], grant["token"])
            self.assertEqual(sorted(holder["locks"]), sorted([a, b, c]))
        self.assertIsNone(self.cli("ACQUIRE", b, "TTL", 60000))
        self.assertEqual(self.cli("RELEASE", grant["lease"]), 1)
        self.assertEqual(self.cli_map("INSPECT", b)["state"], "free")

    def test_several_locks_are_granted_together_or_not_at_all(self):
        a, b = self.lock("a"), self.lock("b")
        self.cli_map("ACQUIRE", b, "TTL", 60000)
        self.assertIsNone(self.cli("ACQUIRE", a, "AND", b, "TTL", 60000))
        self.assertEqual(self.cli_map("INSPECT", a)["state"], "free")

    def test_readers_share_and_get_the_smallest_live_token_as_floor(self):
        lock = self.lock()
        first = self.cli_map("ACQUIRE", lock, "TTL", 60000, "SHARED")
        second = self.cli_map("ACQUIRE", lock, "TTL", 60000, "SHARED")
        self.assertGreater(second["token"], first["token"])
        self.assertEqual(second["floor"], first["token"])
        self.assertIsNone(second["slot"])
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000))
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000, "LIMIT", 5))
        self.assertEqual(self.cli_map("INSPECT", lock)["token"], second["token"])
        self.assertEqual(
            [holder["mode"] for holder in self.cli_holders(lock)], ["shared", "shared"]
        )

    def test_limit_allows_n_holders_with_a_slot_each(self):
        lock = self.lock()
        grants = [self.cli_map("ACQUIRE", lock, "TTL", 60000, "LIMIT", 3) for _ in range(3)]
        self.assertEqual(sorted(grant["slot"] for grant in grants), [0, 1, 2])
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000, "LIMIT", 3))
        self.assertEqual(self.cli("RELEASE", grants[1]["lease"]), 1)
        self.assertEqual(
            self.cli_map("ACQUIRE", lock, "TTL", 60000, "LIMIT", 3)["slot"], grants[1]["slot"]
        )
        self.assertEqual(
            {(holder["mode"], holder["limit"]) for holder in self.cli_holders(lock)}, {("limit", 3)}
        )

    def test_smallest_limit_of_all_holders_counts(self):
        lock = self.lock()
        self.cli_map("ACQUIRE", lock, "TTL", 60000, "LIMIT", 2)
        self.cli_map("ACQUIRE", lock, "TTL", 60000, "LIMIT", 9)
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000, "LIMIT", 9))

    def test_renew_returns_the_time_left(self):
        lock = self.lock()
        lease = self.cli_map("ACQUIRE", lock, "TTL", 60000)["lease"]
        self.assertEqual(self.cli("RENEW", lease), 60000)
        self.assertEqual(self.cli_holders(lock)[0]["renewals"], 1)

    def test_unknown_lease_is_lost_for_renew_and_0_for_release(self):
        self.assertRegex(self.cli_error("RENEW", UNKNOWN_LEASE), "^LOST unknown")
        self.assertEqual(self.cli("RELEASE", UNKNOWN_LEASE), 0)
        self.assertEqual(self.cli("MRENEW", UNKNOWN_LEASE), [-1])

    def test_mrenew_answers_in_order_and_minus_one_for_ended_leases(self):
        first = self.cli_map("ACQUIRE", self.lock(), "TTL", 60000)["lease"]
        second = self.cli_map("ACQUIRE", self.lock(), "TTL", 30000)["lease"]
        self.assertEqual(self.cli("MRENEW", first, UNKNOWN_LEASE, second), [60000, -1, 30000])

    def test_release_is_idempotent(self):
        # Hard case 7.
        lease = self.cli_map("ACQUIRE", self.lock(), "TTL", 60000)["lease"]
        self.assertEqual([self.cli("RELEASE", lease) for _ in range(3)], [1, 0, 0])
        self.assertRegex(self.cli_error("RENEW", lease), "^LOST released")

    def test_stale_release_and_renew_do_not_affect_the_new_holder(self):
        # Hard cases 6, 10.
        lock = self.lock()
        old = self.cli_map("ACQUIRE", lock, "TTL", 60000)
        self.cli("RELEASE", old["lease"])
        new = self.cli_map("ACQUIRE", lock, "TTL", 60000)
        self.assertEqual(self.cli("RELEASE", old["lease"]), 0)
        self.assertRegex(self.cli_error("RENEW", old["lease"]), "^LOST ")
        self.assertEqual(self.cli_map("INSPECT", lock)["token"], new["token"])
        self.assertEqual(self.cli("RENEW", new["lease"]), 60000)

    def test_tokens_grow_across_all_locks(self):
        # Hard cases 12, 13: one counter for the whole store; a lock that was given up does not
        # start again.
        names = [self.lock(), self.lock()]
        tokens = []
        for round_number in range(6):
            grant = self.cli_map("ACQUIRE", names[round_number % 2], "TTL", 60000)
            tokens.append(grant["token"])
            self.cli("RELEASE", grant["lease"])
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_retry_with_its_request_id_gets_the_same_grant(self):
        # Hard case 2.
        lock, request = self.lock(), request_id()
        first = self.cli_map("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)
        again = self.cli_map(
            "ACQUIRE", lock, "TTL", 60000, "REQUEST", request, "WAIT", 10, "OWNER", "other"
        )
        self.assertEqual(again, first)

    def test_request_id_of_an_ended_lease_is_lost_with_the_reason(self):
        # Hard case 4.
        lock, request = self.lock(), request_id()
        grant = self.cli_map("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)
        self.cli("RELEASE", grant["lease"])
        error = self.cli_error("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)
        self.assertRegex(error, "^LOST .*released")
        self.assertIn(str(grant["token"]), error)
        self.assertEqual(self.cli_map("INSPECT", lock)["state"], "free")

    def test_request_id_with_other_terms_is_a_conflict(self):
        # Hard case 5.
        lock, request = self.lock(), request_id()
        self.cli_map("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)
        for other in (
            [self.lock(), "TTL", 60000],
            [lock, "AND", self.lock(), "TTL", 60000],
            [lock, "TTL", 59999],
            [lock, "TTL", 60000, "SHARED"],
            [lock, "TTL", 60000, "LIMIT", 2],
        ):
            self.assertRegex(self.cli_error("ACQUIRE", *other, "REQUEST", request), "^CONFLICT ")

    def test_cancel_says_whether_the_request_was_waiting(self):
        lock, request = self.lock(), request_id()
        self.assertEqual(self.cli("CANCEL", request), 0)
        self.cli_map("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)
        self.assertEqual(self.cli("CANCEL", request), 0)
        self.assertEqual(self.cli_map("INSPECT", lock)["state"], "held")

    def test_inspect_of_a_free_lock(self):
        lock = self.lock()
        seen = self.cli_map("INSPECT", lock)
        self.assertEqual(set(seen), INSPECT_KEYS)
        self.assertEqual((seen["lock"], seen["state"], seen["token"]), (lock, "free", None))
        self.assertEqual((seen["holders"], seen["waiters"], seen["queue"]), ([], 0, []))
        self.assertIsNone(seen["last_token"])
        self.assertEqual(seen["label"], "unknown: no guard has reported")

    def test_inspect_shows_everything_but_the_lease(self):
        lock = self.lock()
        grant = self.cli_map(
            "ACQUIRE",
            lock,
            "TTL",
            60000,
            "OWNER",
            "batch@host:411",
            "META",
            "job",
            "nightly",
            "META",
            "try",
            "2",
        )
        seen = self.cli_map("INSPECT", lock)
        self.assertEqual(set(seen), INSPECT_KEYS)
        self.assertEqual(
            (seen["state"], seen["token"], seen["last_token"]),
            ("held", grant["token"], grant["token"]),
        )
        holder = fields(seen["holders"][0])
        self.assertEqual(set(holder), HOLDER_KEYS)
        self.assertEqual(
            (holder["owner"], holder["mode"], holder["limit"]), ("batch@host:411", "exclusive", 1)
        )
        self.assertEqual((holder["slot"], holder["locks"], holder["renewals"]), (None, [lock], 0))
        self.assertEqual(fields(holder["meta"]), {"job": "nightly", "try": "2"})
        self.assertFalse(holder["breaking"])
        self.assertTrue(0 < holder["expires_in_ms"] <= 60000)
        self.assertGreaterEqual(holder["held_ms"], 0)
        self.assertNotIn(grant["lease"], json.dumps(seen))

    def test_inspect_remembers_the_last_token_of_a_released_lock(self):
        lock = self.lock()
        grant = self.cli_map("ACQUIRE", lock, "TTL", 60000)
        self.cli("RELEASE", grant["lease"])
        self.assertIn(self.cli_map("INSPECT", lock)["last_token"], (grant["token"], None))

    def test_locks_lists_by_prefix_page_by_page(self):
        prefix = self.lock("/")
        names = {f"{prefix}{n}" for n in range(25)}
        for name in names:
            self.cli_map("ACQUIRE", name, "TTL", 60000)
        found, cursor = [], "0"
        while True:
            words = ["LOCKS", "PREFIX", prefix, "COUNT", 10] + (
                ["CURSOR", cursor] if cursor != "0" else []
            )
            cursor, page = self.cli(*words)
            self.assertLessEqual(len(page), 10)
            found += [fields(entry)["lock"] for entry in page]
            if str(cursor) == "0":
                break
        self.assertEqual(set(found), names)
        self.assertEqual(len(found), len(names))

    def test_history_is_newest_first_with_the_reasons(self):
        lock = self.lock()
        first = self.cli_map("ACQUIRE", lock, "TTL", 60000, "OWNER", "one")
        self.cli("RELEASE", first["lease"])
        second = self.cli_map("ACQUIRE", lock, "TTL", 60000, "OWNER", "two")
        self.cli("BREAK", lock, "TOKEN", second["token"], "NOW", "REASON", "test")
        entries = [fields(entry) for entry in self.cli("HISTORY", lock)]
        self.assertEqual([entry["token"] for entry in entries], [second["token"], first["token"]])
        self.assertEqual([entry["owner"] for entry in entries], ["two", "one"])
        for entry, how in zip(entries, ("broken", "released")):
            self.assertIn(how, entry.values())
            self.assertEqual(entry["locks"], [lock])
            self.assertLessEqual(entry["granted"], entry["ended"])
            self.assertGreater(entry["granted"], 1_500_000_000_000)
        self.assertEqual(len(self.cli("HISTORY", lock, "COUNT", 1)), 1)

    def test_break_refuses_renewals_until_the_lease_expires(self):
        lock, request = self.lock(), request_id()
        grant = self.cli_map("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)
        self.assertEqual(
            self.cli("BREAK", lock, "TOKEN", grant["token"], "REASON", "host is gone"), 1
        )
        self.assertRegex(self.cli_error("RENEW", grant["lease"]), "^LOST broken")
        self.assertRegex(
            self.cli_error("ACQUIRE", lock, "TTL", 60000, "REQUEST", request), "^LOST .*broken"
        )
        self.assertTrue(self.cli_holders(lock)[0]["breaking"])
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000))
        self.assertEqual(self.cli("RELEASE", grant["lease"]), 1)
        self.assertEqual(self.cli_map("INSPECT", lock)["state"], "free")

    def test_break_now_frees_the_lock_at_once(self):
        lock = self.lock()
        old = self.cli_map("ACQUIRE", lock, "TTL", 60000)
        self.assertEqual(
            self.cli("BREAK", lock, "TOKEN", old["token"], "NOW", "REASON", "host is gone"), 1
        )
        new = self.cli_map("ACQUIRE", lock, "TTL", 60000)
        self.assertGreater(new["token"], old["token"])
        self.assertEqual(self.cli("BREAK", lock, "TOKEN", old["token"], "REASON", "again"), 0)
        self.assertEqual(self.cli("RELEASE", old["lease"]), 0)

    def test_break_of_a_token_on_another_lock_does_nothing(self):
        held, other = self.lock(), self.lock()
        grant = self.cli_map("ACQUIRE", held, "TTL", 60000)
        self.assertEqual(
            self.cli("BREAK", other, "TOKEN", grant["token"], "NOW", "REASON", "slip"), 0
        )
        self.assertEqual(self.cli("RENEW", grant["lease"]), 60000)

    def test_break_ends_all_locks_of_the_lease(self):
        a, b = self.lock("a"), self.lock("b")
        grant = self.cli_map("ACQUIRE", a, "AND", b, "TTL", 60000)
        self.cli("BREAK", a, "TOKEN", grant["token"], "NOW", "REASON", "test")
        self.assertEqual(
            [self.cli_map("INSPECT", lock)["state"] for lock in (a, b)], ["free", "free"]
        )

    def test_delay_applies_after_expiry_but_not_after_release(self):
        lock = self.lock()
        self.cli_map("ACQUIRE", lock, "TTL", 100, "DELAY", 60000)
        harness.wait_until(
            lambda: self.cli_map("INSPECT", lock)["state"] != "held", "the lease ran out"
        )
        seen = self.cli_map("INSPECT", lock)
        self.assertEqual((seen["state"], seen["token"]), ("closed", None))
        self.assertTrue(0 < seen["reopens_in_ms"] <= 60000)
        self.assertIsNone(self.cli("ACQUIRE", lock, "TTL", 60000))
        other = self.lock()
        grant = self.cli_map("ACQUIRE", other, "TTL", 60000, "DELAY", 60000)
        self.cli("RELEASE", grant["lease"])
        self.assertEqual(self.cli_map("INSPECT", other)["state"], "free")

    def test_break_now_ignores_the_delay(self):
        lock = self.lock()
        grant = self.cli_map("ACQUIRE", lock, "TTL", 60000, "DELAY", 60000)
        self.cli("BREAK", lock, "TOKEN", grant["token"], "NOW", "REASON", "test")
        self.cli_map("ACQUIRE", lock, "TTL", 60000)

    def test_maxhold_caps_the_time_of_a_renewal(self):
        lease = self.cli_map("ACQUIRE", self.lock(), "TTL", 60000, "MAXHOLD", 60000)["lease"]
        left = self.cli("RENEW", lease)
        self.assertLessEqual(left, 60000)
        self.assertLessEqual(self.cli("RENEW", lease), left)

    def test_raise_moves_the_counter_only_forward(self):
        last = self.cli_map("STATUS")["last_token"]
        self.assertEqual(self.cli("RAISE", last + 1000, "REASON", "drill"), last + 1000)
        grant = self.cli_map("ACQUIRE", self.lock(), "TTL", 60000)
        self.assertGreater(grant["token"], last + 1000)
        self.assertRegex(self.cli_error("RAISE", last, "REASON", "drill"), "^ERR ")
        self.assertRegex(
            self.cli_error("RAISE", grant["token"] + 2**45, "REASON", "drill"), "^ERR "
        )

    def test_status_has_every_documented_field(self):
        self.pawld = self.own_pawld()  # Elsewhere, leases of other tests end between two counts.
        before = self.cli_map("STATUS")
        self.assertLessEqual(STATUS_KEYS, set(before))
        self.assertEqual((before["store"], before["role"]), ("journal", "active"))
        self.cli_map("ACQUIRE", self.lock(), "TTL", 60000)
        after = self.cli_map("STATUS")
        self.assertEqual(after["leases"], before["leases"] + 1)
        self.assertEqual(after["locks"], before["locks"] + 1)
        self.assertGreater(after["last_token"], before["last_token"])
        self.assertGreaterEqual(after["uptime_ms"], before["uptime_ms"])

    def test_value_out_of_range_names_the_range(self):
        # Hard case 17.
        lock = self.lock()
        for words, expected in (
            (["TTL", 0], ("100", "600000")),
            (["TTL", 99], ("100", "600000")),
            (["TTL", -1], ("100", "600000")),
            (["TTL", 600001], ("100", "600000")),
            (["TTL", 10**30], ("100", "600000")),
            (["TTL", "1e3"], ("100",)),
            (["TTL", "soon"], ("100",)),
            (["TTL", ""], ("100",)),
            (["TTL", "1000.5"], ("100",)),
            (["TTL", 1000, "WAIT", -1], ("0", "3600000")),
            (["TTL", 1000, "WAIT", 3600001], ("0", "3600000")),
            (["TTL", 1000, "LIMIT", 0], ("1", "1024")),
            (["TTL", 1000, "LIMIT", 1025], ("1", "1024")),
            (["TTL", 1000, "LIMIT", "many"], ("1", "1024")),
            (["TTL", 1000, "DELAY", 60001], ("0", "60000")),
            (["TTL", 1000, "MAXHOLD", 999], ("1000",)),
            (["TTL", 1000, "REQUEST", "short"], ("22", "64")),
            (["TTL", 1000, "REQUEST", "x" * 21 + "!"], ("22", "64")),
        ):
            with self.subTest(words=words):
                error = self.cli_error("ACQUIRE", lock, *words)
                self.assertRegex(error, "^ERR ")
                for number in expected:
                    self.assertIn(number, error)
        self.assertEqual(self.cli_map("INSPECT", lock)["state"], "free")

    def test_ends_of_each_range_are_accepted(self):
        # Hard case 17.
        for words in (
            ["TTL", 100],
            ["TTL", 600000],
            ["TTL", 1000, "WAIT", 0],
            ["TTL", 1000, "WAIT", 3600000],
            ["TTL", 1000, "LIMIT", 1],
            ["TTL", 1000, "LIMIT", 1024],
            ["TTL", 1000, "DELAY", 0],
            ["TTL", 1000, "DELAY", 60000],
            ["TTL", 1000, "MAXHOLD", 1000],
            ["TTL", 1000, "OWNER", "o" * 128],
            ["TTL", 1000, "REQUEST", request_id()[:22]],
            ["TTL", 1000, "REQUEST", request_id() * 2],
        ):
            with self.subTest(words=words):
                self.cli_map("ACQUIRE", self.lock(), *words)
        self.cli_map("ACQUIRE", "n" * (512 - 1) + str(self.protocol), "TTL", 1000)

    def test_too_long_names_the_limit(self):
        pairs = [word for n in range(9) for word in ("META", f"k{n}", "v")]
        locks = [word for n in range(17) for word in ("AND", f"{self.lock()}{n}")][1:]
        for words, limit in (
            (["n" * 513, "TTL", 1000], "512"),
            ([self.lock(), "TTL", 1000, "OWNER", "o" * 129], "128"),
            ([self.lock(), "TTL", 1000, "REQUEST", "r" * 65], "64"),
            ([self.lock(), "TTL", 1000, *pairs], "8"),
            ([self.lock(), "TTL", 1000, "META", "k", "v" * 1024], "1024"),
            ([*locks, "TTL", 1000], "16"),
        ):
            with self.subTest(limit=limit):
                error = self.cli_error("ACQUIRE", *words)
                self.assertRegex(error, "^TOOLONG ")
                self.assertIn(limit, error)
        self.assertRegex(self.cli_error("MRENEW", *[UNKNOWN_LEASE] * 1025), "^TOOLONG .*1024")

    def test_syntax_error_names_what_is_expected(self):
        lock = self.lock()
        for words in (
            ["ACQUIRE"],
            ["ACQUIRE", lock],
            ["ACQUIRE", lock, "TTL"],
            ["ACQUIRE", lock, "WAIT", 10],
            ["ACQUIRE", lock, "TTL", 1000, "FOO", 1],
            ["ACQUIRE", lock, "TTL", 1000, "TTL", 1000],
            ["ACQUIRE", lock, "TTL", 1000, "SHARED", "LIMIT", 2],
            ["ACQUIRE", lock, "AND", lock, "TTL", 1000],
            ["ACQUIRE", lock, "AND", self.lock(), "TTL", 1000, "SHARED"],
            ["ACQUIRE", "", "TTL", 1000],
            ["ACQUIRE", "tab\there", "TTL", 1000],
            ["ACQUIRE", lock, "TTL", 1000, "ASYNC"],
            ["RENEW"],
            ["RENEW", "xyz"],
            ["RENEW", UNKNOWN_LEASE.upper()],
            ["RELEASE", UNKNOWN_LEASE + "0"],
            ["MRENEW", UNKNOWN_LEASE, "xyz"],
            ["INSPECT"],
            ["INSPECT", lock, lock],
            ["LOCKS", "COUNT", 0],
            ["LOCKS", "COUNT", 1001],
            ["LOCKS", "CURSOR", "nonsense!"],
            ["HISTORY", lock, "COUNT", 1001],
            ["BREAK", lock, "TOKEN", 1],
            ["BREAK", lock, "TOKEN", 0, "REASON", "x"],
            ["BREAK", lock, "TOKEN", 2**53, "REASON", "x"],
            ["BREAK", lock, "TOKEN", "-1", "REASON", "x"],
            ["BREAK", lock, "TOKEN", "1.0", "REASON", "x"],
            ["BREAK", lock, "TOKEN", "007", "REASON", "x"],
            ["RAISE", "soon", "REASON", "x"],
            ["RAISE", 2**53, "REASON", "x"],
            ["STATUS", "now"],
            ["CANCEL"],
            ["CANCEL", "short"],
            ["SELECT", 1],
            ["NOSUCHVERB", "x"],
        ):
            with self.subTest(words=words):
                self.assertRegex(self.cli_error(*words), "^ERR .{8,}")
        self.assertEqual(self.cli_map("INSPECT", lock)["state"], "free")

    def test_command_describes_every_verb(self):
        count = self.cli("COMMAND", "COUNT")
        names = self.cli("COMMAND", "LIST")
        self.assertEqual(len(names), count)
        self.assertEqual(len(self.cli("COMMAND")), count)
        docs = self.cli_map("COMMAND", "DOCS")
        self.assertEqual(set(docs), set(names))
        for name in names:
            self.assertLessEqual({"summary", "since", "group"}, set(fields(docs[name])))
        info = self.cli("COMMAND", "INFO", "acquire", "nosuchverb")
        self.assertEqual((info[0][0], info[0][1], info[1]), ("acquire", -4, None))
        self.assertEqual(list(self.cli_map("COMMAND", "DOCS", "renew", "nosuchverb")), ["renew"])

    def test_handshakes_of_redis_clients_are_answered(self):
        self.assertEqual(self.cli("PING"), "PONG")
        self.assertEqual(self.cli("PING", "hi"), "hi")
        self.assertEqual(self.cli("ECHO", "hello"), "hello")
        self.assertEqual(self.cli("SELECT", 0), "OK")
        self.assertGreater(self.cli("CLIENT", "ID"), 0)
        self.assertEqual(self.cli("CLIENT", "SETNAME", "nightly"), "OK")
        self.assertIn(self.cli("CLIENT", "GETNAME"), (None, ""))
        self.assertEqual(self.cli("CLIENT", "SETINFO", "LIB-NAME", "test"), "OK")
        for words, expected in (
            (["CLIENT", "LIST"], r"^id=\d+ addr=127"),
            (["CLIENT", "INFO"], r"^id=\d+ addr=127"),
            # Redis-cli shows these as they are, even with --json.
            (["INFO"], r"(?m)^loading:0"),
        ):
            self.assertRegex(
                redis_cli(self.pawld.port, *words, protocol=self.protocol).stdout, expected
            )
        self.assertIsInstance(
            self.cli("CONFIG", "GET", "save"), dict if self.protocol == 3 else list
        )
        seconds, micros = self.cli("TIME")
        self.assertGreater(int(seconds), 1_500_000_000)
        self.assertLess(int(micros), 1_000_000)
        self.assertEqual(self.cli("RESET"), "RESET")
        self.assertEqual(self.cli("QUIT"), "OK")

    def test_utf8_names_are_compared_as_bytes(self):
        lock = self.lock("/Größe-锁")
        grant = self.cli_map("ACQUIRE", lock, "TTL", 60000, "OWNER", "Zoë")
        self.assertEqual(self.cli_map("INSPECT", lock)["lock"], lock)
        self.assertEqual(self.cli_holders(lock)[0]["owner"], "Zoë")
        self.assertEqual(self.cli("RELEASE", grant["lease"]), 1)


class Resp2VerbsTest(OverRedisCli, harness.PawldCase):
    protocol = 2


class Resp3VerbsTest(OverRedisCli, harness.PawldCase):
    protocol = 3


class BytesTest(harness.PawldCase):
    """What redis-cli hides: the exact bytes."""

    def test_not_obtained_is_a_null_array_in_resp2_and_a_null_in_resp3(self):
        lock = self.lock()
        self.acquire(self.client(), lock)
        for protocol, expected in ((2, b"*-1\r\n"), (3, b"_\r\n")):
            client = self.client(protocol)
            client.call("ACQUIRE", lock, "TTL", 1000)
            self.assertEqual(client.raw, expected)
            client.call("ACQUIRE", lock, "TTL", 1000, "WAIT", 30)
            self.assertEqual(client.raw, expected)

    def test_a_grant_is_a_flat_array_in_resp2_and_a_map_in_resp3(self):
        for protocol, head, null in (
            (2, b"*12\r\n$5\r\nlease\r\n$32\r\n", b"$4\r\nslot\r\n$-1\r\n"),
            (3, b"%6\r\n$5\r\nlease\r\n$32\r\n", b"$4\r\nslot\r\n_\r\n"),
        ):
            client = self.client(protocol)
            client.call("ACQUIRE", self.lock(), "TTL", 1000)
            self.assertTrue(client.raw.startswith(head), client.raw)
            self.assertIn(null, client.raw)
            self.assertIn(b"$6\r\nttl_ms\r\n:1000\r\n$9\r\nwaited_ms\r\n:0\r\n", client.raw)

    def test_help_lists_every_verb_and_explains_one(self):
        # Over a socket: redis-cli answers HELP by itself.
        client = self.client()
        lines = client.call("HELP")
        for verb in client.call("COMMAND", "LIST"):
            self.assertTrue(any(line.startswith(verb.upper()) for line in lines), verb)
        self.assertIn("TTL ms", " ".join(client.call("HELP", "acquire")))

    def test_hello_switches_the_protocol_and_describes_the_server(self):
        client = self.client()
        two = fields(client.call("HELLO"))
        self.assertTrue(client.raw.startswith(b"*"))
        self.assertEqual(two["proto"], 2)
        three = client.call("HELLO", 3, "SETNAME", "nightly")
        self.assertIsInstance(three, dict)
        self.assertLessEqual(
            {"server", "version", "proto", "id", "mode", "role", "modules"}, set(three)
        )
        self.assertEqual(three["proto"], 3)
        self.assertEqual(client.call("CLIENT", "GETNAME"), "nightly")
        self.assertIsInstance(client.call("HELLO", 2), list)

    def test_hello_with_an_unknown_version_keeps_the_old_one(self):
        client = self.client(3)
        for version in ("1", "4", "x"):
            self.assertError(client.call("HELLO", version), "NOPROTO")
        self.assertIsInstance(client.call("STATUS"), dict)

    def test_reset_goes_back_to_resp2(self):
        client = self.client(3)
        client.call("CLIENT", "SETNAME", "nightly")
        self.assertEqual(client.call("RESET"), "RESET")
        self.assertIsInstance(client.call("STATUS"), list)
        self.assertIn(client.call("CLIENT", "GETNAME"), (None, ""))

    def test_quit_answers_and_closes(self):
        client = self.client()
        client.send("QUIT")
        self.assertEqual(client.read_to_end(), b"+OK\r\n")

    def test_errors_keep_the_connection(self):
        client = self.client()
        for words in (
            ["NOSUCHVERB"],
            ["GET", "x"],
            ["SET", "x", "1"],
            ["EVAL", "return 1", "0"],
            ["CLIENT", "NOSUCH"],
            ["CONFIG", "SET", "a", "b"],
            ["SELECT", "1"],
            ["CLIENT", "MAINT_NOTIFICATIONS", "ON"],
            ["ACQUIRE"],
        ):
            with self.subTest(words=words):
                self.assertError(client.call(*words), "ERR")
        self.assertEqual(client.call("PING"), "PONG")

    def test_unknown_verb_is_printed_without_control_characters(self):
        client = self.client()
        reply = client.call(b"EVIL\r\n+OK\r\n\x1b[31m" + b"x" * 1000)
        self.assertError(reply, "ERR", "COMMAND LIST")
        self.assertLess(len(reply), 400)
        self.assertNotRegex(reply, "[\x00-\x1f]")
        self.assertTrue(client.silent())
        self.assertEqual(client.call("PING"), "PONG")

    def test_names_that_are_not_utf8_are_refused(self):
        client = self.client()
        for name in (
            b"\xff\xfe",
            b"ok\x00no",
            b"bell\x07",
            b"\xc0\xaf",
            b"\xed\xa0\x80",
            b"del\x7f",
        ):
            with self.subTest(name=name):
                self.assertError(client.call("ACQUIRE", name, "TTL", 1000), "ERR", "UTF-8")

    def test_lease_is_never_repeated_in_an_error(self):
        client = self.client()
        secret = "0123456789ABCDEF0123456789abcdef"
        for words in (["RENEW", secret], ["RELEASE", secret], ["MRENEW", secret]):
            self.assertNotIn(secret, client.call(*words))

    def test_leases_and_request_ids_never_reach_the_log(self):
        client = self.client()
        request = request_id()
        lock = self.lock()
        grant = self.acquire(client, lock, "REQUEST", request)
        client.call("BREAK", lock, "TOKEN", grant["token"], "NOW", "REASON", "log me")
        client.call("RENEW", grant["lease"])
        log = self.pawld.log()
        self.assertNotIn(grant["lease"], log)
        self.assertNotIn(request, log)

    def test_mrenew_with_a_malformed_lease_renews_nothing(self):
        client = self.client()
        lock = self.lock()
        lease = self.acquire(client, lock)["lease"]
        self.assertError(client.call("MRENEW", lease, "slip"), "ERR")
        self.assertEqual(self.holders(client, lock)[0]["renewals"], 0)
        self.assertEqual(len(client.call("MRENEW", *[lease] * 1024)), 1024)

    def test_async_needs_resp3_and_a_request_id(self):
        lock = self.lock()
        two, three = self.client(2), self.client(3)
        self.assertError(
            two.call("ACQUIRE", lock, "TTL", 1000, "WAIT", 10, "ASYNC", "REQUEST", request_id()),
            "ERR",
            "RESP3",
        )
        self.assertError(
            three.call("ACQUIRE", lock, "TTL", 1000, "WAIT", 10, "ASYNC"), "ERR", "REQUEST"
        )

    def test_expired_lease_is_reported_as_expired(self):
        # Hard cases 1, 3, 9: a holder that dies or sleeps costs one TTL; a renewal never
        # revives.
        client = self.client()
        lock = self.lock()
        old = self.acquire(client, lock, ttl=100)
        new = self.acquire(client, lock, "WAIT", 30000)
        self.assertGreater(new["token"], old["token"])
        self.assertError(client.call("RENEW", old["lease"]), "LOST", "expired")
        self.assertEqual(client.call("RELEASE", old["lease"]), 0)
        self.assertEqual(fields(client.call("HISTORY", lock)[0])["token"], old["token"])

    def test_max_hold_ends_a_renewed_lease(self):
        client = self.client()
        lock = self.lock()
        lease = self.acquire(client, lock, "MAXHOLD", 300, ttl=300)["lease"]
        while True:
            reply = client.call("RENEW", lease)
            if not isinstance(reply, int):
                break
            self.assertLessEqual(reply, 300)
        self.assertError(reply, "LOST", "max_hold")

    def test_delay_closes_an_expired_lock_for_its_time(self):
        client = self.client()
        lock = self.lock()
        self.acquire(client, lock, "DELAY", 400, ttl=100)
        harness.wait_until(
            lambda: self.inspect(client, lock)["state"] != "held", "the lease is over"
        )
        grant = self.acquire(client, lock, "WAIT", 30000)
        self.assertIsNotNone(grant)

    def test_exclusive_is_limit_one_and_they_exclude_each_other(self):
        client = self.client()
        lock = self.lock()
        grant = self.acquire(client, lock, "LIMIT", 1)
        self.assertEqual(grant["slot"], 0)
        self.assertIsNone(client.call("ACQUIRE", lock, "TTL", 1000))
        self.assertIsNone(client.call("ACQUIRE", lock, "TTL", 1000, "LIMIT", 9))

    def test_auth_without_an_auth_file_says_so(self):
        client = self.client()
        reply = client.call("AUTH", "someone", "secret-word")
        self.assertIn(type(reply), (harness.Error, harness.resp.Simple))
        self.assertNotIn("secret-word", reply)
        self.assertEqual(client.call("PING"), "PONG")

    def test_client_list_shows_the_connections_by_name(self):
        one, two = self.client(), self.client()
        one.call("CLIENT", "SETNAME", "first")
        two.call("CLIENT", "SETNAME", "second")
        listed = one.call("CLIENT", "LIST")
        self.assertIn("name=first", listed)
        self.assertIn("name=second", listed)
        self.assertIn("name=second", two.call("CLIENT", "INFO"))
        self.assertNotEqual(one.call("CLIENT", "ID"), two.call("CLIENT", "ID"))

    def test_tokens_end_at_2_to_the_53_with_exhausted(self):
        # Hard cases 14, 15. RAISE goes at most 2^44 at a time, so the counter starts close to its
        # end by many steps.
        server = self.own_pawld()
        client = self.client(server=server)
        top = 2**53 - 1
        last = fields(client.call("STATUS"))["last_token"]
        steps = [*range(last + 2**44, top - 3, 2**44), top - 3]
        self.assertEqual(
            client.pipeline(["RAISE", step, "REASON", "drill"] for step in steps), steps
        )
        tokens = [self.acquire(client, self.lock())["token"] for _ in range(3)]
        self.assertEqual(tokens, [top - 2, top - 1, top])
        lock = self.lock()
        self.assertError(client.call("ACQUIRE", lock, "TTL", 1000), "EXHAUSTED")
        self.assertEqual(client.call("PING"), "PONG")
        server.restart()
        client = self.client(server=server)
        self.assertError(client.call("ACQUIRE", lock, "TTL", 1000), "EXHAUSTED")


class ProtocolErrorTest(harness.PawldCase):
    """What cannot be a command closes the connection, and only that one."""

    def closes(self, data, *parts):
        client = self.client()
        client.send_bytes(data)
        answer = client.read_to_end()
        self.assertTrue(answer.startswith(b"-ERR ") or answer.startswith(b"-TOOLONG "), answer)
        self.assertEqual(answer.count(b"\r\n"), 1, answer)
        for part in parts:
            self.assertIn(part, answer)
        with self.pawld.client() as other:
            self.assertEqual(other.call("PING"), "PONG")

    def test_http_request_closes_the_connection(self):
        lock = self.lock()
        sneaky = harness.resp.encode("ACQUIRE", lock, "TTL", 60000)
        for head in (b"POST / HTTP/1.1\r\n", b"Host: localhost\r\n", b"post /\r\n", b"host: x\r\n"):
            with self.subTest(head=head):
                self.closes(head + sneaky, b"HTTP")
        self.assertEqual(self.inspect(self.client(), lock)["state"], "free")

    def test_http_request_after_a_command_closes_too(self):
        client = self.client()
        client.send_bytes(b"PING\r\nHost: localhost\r\nPING\r\n")
        answer = client.read_to_end()
        self.assertTrue(answer.startswith(b"+PONG\r\n-ERR"), answer)
        self.assertEqual(answer.count(b"PONG"), 1)

    def test_commands_before_a_protocol_error_are_answered(self):
        client = self.client()
        client.send_bytes(
            harness.resp.encode("PING") + b"*1\r\n:5\r\n" + harness.resp.encode("PING")
        )
        answer = client.read_to_end()
        self.assertTrue(answer.startswith(b"+PONG\r\n-ERR "), answer)
        self.assertEqual(answer.count(b"PONG"), 1)


if __name__ == "__main__":
    harness.main()
