#!/usr/bin/python3
"""`pawl guard … s3`: a bucket from nothing to refused writes, and what `check` says of it. The store
is the tests' own, which keeps conditions as Amazon documents them; ceph_test.py has a real one."""

import hashlib
import json
import re
import shutil

from pawltest import harness
from pawltest.s3_server import Server, ServerCase, main
from pawltest.tls_files import LOCAL, Authority

KEY = "reports/nightly 1.csv"


def field(body, name):
    """The value of a line of a fenced object."""
    return re.search(rf"(?m)^{name} (.*)$", body.decode())[1]


class FromNothingTest(ServerCase):
    def test_install_protect_refuse_and_uninstall(self):
        self.assertIn("no guard is installed here", self.guard("status", code=64).stderr)
        self.assertIn("would install", self.guard("install", "--dry-run").stdout)
        self.assertEqual(self.shop, {}, "the probe leaves nothing behind")
        self.assertIn("installed: guard", self.guard("install").stdout)
        self.guard("protect", KEY, "--dry-run")
        self.assertEqual(list(self.shop), [".pawl/installation"])
        protected = self.guard("protect", KEY)
        self.assertIn(f"{KEY} under guard {KEY}, mode observe", protected.stdout)
        self.assertIn('"s3:if-match": "true"', protected.stderr)
        self.assertIn("admitted", self.put(KEY, 34, "x").stdout)
        self.assertIn("stale, and let through", self.put(KEY, 33, "y").stdout)
        self.guard("mode", KEY, "enforce", "--dry-run")
        self.assertIn("let through", self.put(KEY, 33, "y").stdout)
        self.guard("mode", KEY, "enforce", "--yes", "--reason", "test")
        refused = self.put(KEY, 33, "z", code=121)
        self.assertIn(f"[resource={KEY} token=33 max=34 mode=enforce]", refused.stderr)
        self.assertEqual(self.get(KEY), "y")
        self.assertEqual(self.guard("max", KEY).stdout.split()[-1], "34")
        self.assertIn("from 34 to 35", self.guard("advance", KEY, "35").stdout)
        self.assertIn("35", self.guard("advance", KEY, "34", code=121).stderr)
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual((status["kind"], status["fence"], status["stale"]), ("static", 35, 3))
        self.guard("emergency", "--reason", "test")
        self.assertIn("let through", self.put(KEY, 33, "z").stdout)
        self.guard("unprotect", KEY, "--yes")
        self.assertEqual(self.shop[KEY], b"z")
        self.guard("drop", KEY, "--yes")
        self.guard("uninstall", "--yes")
        self.assertEqual(list(self.shop), [KEY])

    def test_guard_that_is_made_again_keeps_its_fence(self):
        self.guard("install")
        self.guard("protect", "a", "--mode", "enforce")
        self.put("a", 34, "x")
        self.guard("unprotect", "a", "--yes")
        self.guard("protect", "a", "--mode", "enforce")
        self.assertEqual(self.get("a"), "x")
        self.put("a", 33, "y", code=121)

    def test_content_that_was_there_is_taken_over(self):
        self.guard("install")
        for key, content in (("small", b"hello"), ("large", b"line\n" * 10_000)):
            self.shop[key] = content
            self.guard("protect", key)
            self.assertEqual(self.get(key).encode(), content)
            self.assertTrue(self.shop[key].startswith(b"pawl-fenced-object 1\n"))

    def test_uninstall_leaves_plain_objects(self):
        self.guard("install")
        large = "x" * 20_000
        for key, content in (("a", "hello"), ("b", large)):
            self.guard("protect", key)
            self.put(key, 34, content)
        self.guard("uninstall", "--yes")
        self.assertEqual(self.shop, {"a": b"hello", "b": large.encode()})

    def test_virtual_host_style(self):
        self.dsn = f"bucket=shop endpoint=http://localhost:{self.server.port} style=virtual"
        self.guard("install")
        self.guard("protect", "a", "--mode", "enforce")
        self.put("a", 34, "x")
        self.put("a", 33, "y", code=121)
        self.assertEqual(self.get("a"), "x")

    def test_wrong_key_is_named(self):
        wrong = {"AWS_SECRET_ACCESS_KEY": "other"}
        done = self.guard("install", code=77, environment=wrong)
        self.assertIn("SignatureDoesNotMatch", done.stderr)

    def test_store_that_does_not_answer_is_unavailable(self):
        self.dsn = "bucket=shop endpoint=http://127.0.0.1:1"
        self.guard("install", code=69)


class TlsTest(ServerCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.scratch("s3-tls")
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.authority = Authority(cls.dir, "authority")
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start(cls.authority.sign("s3", hosts=LOCAL))

    def use(self, **more):
        self.dsn = self.server.dsn("shop", **more).replace("http://", "https://")

    def test_certificate_of_an_authority_that_was_named(self):
        self.use(ca_file=self.authority.cert)
        self.guard("install")
        self.guard("protect", "a", "--mode", "enforce")
        self.put("a", 34, "x")
        self.put("a", 33, "y", code=121)

    def test_unknown_authority_is_not_trusted(self):
        self.use()
        done = self.guard("install", code=69)
        self.assertIn("certificate", done.stderr)
        self.assertEqual(self.shop, {})


class ContentTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.guard("install")
        self.guard("protect", "a", "--mode", "enforce")

    def data(self):
        return [key for key in self.shop if key.startswith(".pawl/data/")]

    def test_small_content_is_in_the_fenced_object(self):
        self.put("a", 34, "hello")
        body = self.shop["a"]
        self.assertEqual(
            field(body, "content"), f"inline 5 {hashlib.sha256(b'hello').hexdigest()}"
        )
        self.assertTrue(body.endswith(b"\n\nhello"))
        self.assertEqual(self.data(), [])

    def test_large_content_is_in_an_object_of_its_own(self):
        content = "line\n" * 10_000
        self.put("a", 34, content)
        (data,) = self.data()
        self.assertEqual(self.shop[data], content.encode())
        self.assertEqual(field(self.shop["a"], "content").split(" ", 3)[3], data)
        self.assertEqual(self.get("a"), content)

    def test_gc_removes_what_was_replaced(self):
        for number in range(3):
            self.put("a", 34, str(number) * 10_000)
        self.assertEqual(len(self.data()), 3)
        listed = self.guard("gc", "--dry-run").stdout
        self.assertEqual(listed.count("would remove"), 2)
        self.assertEqual(len(self.data()), 3)
        self.guard("gc", "a")
        self.assertEqual(self.data(), [field(self.shop["a"], "content").split(" ", 3)[3]])
        self.assertEqual(self.get("a"), "2" * 10_000)
        self.assertIn("nothing is left behind", self.guard("gc").stderr)

    def test_gc_spares_what_is_being_written(self):
        self.put("a", 34, "x" * 10_000)
        sequence = int(field(self.shop["a"], "sequence"))
        upload = f".pawl/data/a/{sequence + 1:016}-{'0' * 32}"
        self.shop[upload] = b"a writer will refer to this"
        self.guard("gc")
        self.assertIn(upload, self.shop)
        self.put("a", 34, "y" * 10_000)
        self.guard("gc")
        self.assertNotIn(upload, self.shop)

    def test_repeated_operation_takes_effect_once(self):
        words = ("put", "a", "--token", "34", "--operation", "7")
        self.assertIn("admitted", self.guard(*words, input="x").stdout)
        self.assertIn("replayed", self.guard(*words, input="y").stdout)
        self.assertEqual(self.get("a"), "x")

    def test_object_without_content_is_told(self):
        self.assertIn("has no content", self.guard("get", "a", code=1).stderr)
        self.assertFalse(json.loads(self.guard("get", "a", "--json").stdout)["exists"])

    def test_list_of_several_pages_is_read(self):
        self.server.page = 2
        self.addCleanup(setattr, self.server, "page", 1000)
        for key in "bcdef":
            self.guard("protect", key)
        guards = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual([guard["guard"] for guard in guards], list("abcdef"))


class CheckTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.server.policy = ""
        self.guard("install")
        self.advice = self.guard("protect", "a", "--mode", "enforce").stderr

    def strength(self):
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        return status["strength"], status["strength_because"]

    def test_guard_is_best_effort_until_the_bucket_policy_is_there(self):
        self.assertEqual(self.strength()[0], "best effort")
        self.assertIn("writing around", self.strength()[1])
        self.server.policy = self.advice[self.advice.index("{") : self.advice.rindex("}") + 1]
        json.loads(self.server.policy)
        self.assertEqual(self.strength(), ("fenced", ""))

    def test_fence_that_was_deleted_or_overwritten_is_named(self):
        for change in (lambda: self.shop.pop("a"), lambda: self.shop.update(a=b"plain")):
            change()
            self.put("a", 34, "x", code=64)
            checked = self.guard("check", code=1)
            self.assertIn("the fenced object is gone", checked.stdout + checked.stderr)

    def test_damaged_fence_refuses_writes(self):
        self.shop["a"] = self.shop["a"].replace(b"\ntoken ", b"\ntokken ")
        self.assertIn("damaged", self.put("a", 34, "x", code=64).stderr)


class LiarTest(ServerCase):
    """Hard case 58: a store that says yes to everything."""

    faults = {"ignore_conditions": True}

    def test_probe_refuses_it(self):
        done = self.guard("install", code=64)
        self.assertIn("it ignores If-None-Match: *", done.stderr)
        self.assertEqual(self.shop, {})


class BecameALiarTest(ServerCase):
    def test_mode_stays_and_the_label_changes(self):
        self.guard("install")
        self.guard("protect", "a")
        self.server.faults["ignore_conditions"] = True
        self.addCleanup(self.server.faults.clear)
        done = self.guard("mode", "a", "enforce", "--yes", "--reason", "test", code=64)
        self.assertIn("the mode stays as it is", done.stderr)
        checked = self.guard("check", code=1)
        self.assertIn("ignores If-None-Match", checked.stdout + checked.stderr)
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual(status["strength"], "best effort")


class UnquotedTest(ServerCase):
    """As Ceph 16, and services that are built on it."""

    faults = {"unquoted": True}

    def test_guard_follows_the_form_of_the_store(self):
        self.guard("install")
        self.assertIn(b"etag unquoted", self.shop[".pawl/installation"])
        self.guard("protect", "a", "--mode", "enforce")
        self.put("a", 34, "x")
        self.put("a", 35, "y")
        self.put("a", 34, "z", code=121)
        self.assertEqual(self.get("a"), "y")


if __name__ == "__main__":
    main()
