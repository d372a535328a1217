#!/usr/bin/python3
"""`pawl guard … etcd`: from nothing to refused writes, and what `check` says of an etcd.

Environment: PAWL is the binary.
"""

import json
import re
import shlex

from pawltest.etcd_guard import Refused, Server, ServerCase, main, writer


class CliCase(ServerCase):
    def guard(self, verb, *words, code=0, **environment):
        done = self.server.pawl(verb, "etcd", *words, check=False, **environment)
        self.assertEqual(done.returncode, code, f"{verb} {words}\n{done.stdout}{done.stderr}")
        return done

    def check(self, *words, **options):
        """(the guard's strength, why, [(severity, problem)])"""
        report = json.loads(self.guard("check", "--json", *words, **options).stdout)
        (guard,) = report["guards"]
        problems = [(each["severity"], each["problem"]) for each in report["problems"]]
        return guard["strength"], guard["strength_because"], problems


class FromNothingTest(CliCase):
    def test_install_protect_refuse_and_uninstall(self):
        self.server.clear()
        self.assertIn("no guard is installed here", self.guard("status", code=64).stderr)
        self.assertIn("would install", self.guard("install", "--dry-run").stdout)
        self.assertIn("no guard is installed here", self.guard("status", code=64).stderr)
        self.assertIn("installed: guard", self.guard("install").stdout)
        self.guard("protect", "orders/*", "--dry-run")
        self.assertIsNone(self.server.value("pawl-guard/orders/policy"))
        protected = self.guard("protect", "orders/*").stdout
        self.assertIn("orders/* under guard orders, mode observe", protected)
        jobs = writer(self.server)
        self.assertEqual(jobs.write(34, {"orders/7": "x"}), "admitted")
        self.assertEqual(jobs.write(33, {"orders/7": "y"}), "let through")
        self.guard("mode", "orders", "enforce", "--dry-run")
        self.assertEqual(jobs.write(33, {"orders/7": "y"}), "let through")
        self.guard("mode", "orders", "enforce", "--yes", "--reason", "test")
        self.assertRaises(Refused, jobs.write, 33, {"orders/7": "z"})
        self.assertEqual(self.guard("max", "orders").stdout.split()[-1], "34")
        advanced = self.guard("advance", "orders", "35").stdout
        self.assertIn("advanced: orders from 34 to 35", advanced)
        self.assertIn("35", self.guard("advance", "orders", "34", code=121).stderr)
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual((status["kind"], status["fence"], status["stale"]), ("static", 35, 3))
        self.guard("emergency", "--reason", "too strict")
        self.assertEqual(jobs.write(33, {"orders/7": "z"}), "let through")
        audit = self.server.etcdctl("get", "--prefix", "pawl-guard/orders/audit/").stdout
        self.assertIn("what=emergency detail=enforce -> shadow reason=too strict", audit)
        self.guard("unprotect", "orders/*", "--yes")
        self.guard("drop", "orders", "--yes")
        self.guard("uninstall", "--yes")
        left = self.server.etcdctl("get", "--prefix", "", "--keys-only").stdout.split()
        self.assertEqual(left, ["orders/7"])

    def test_upgrade_keeps_the_fences(self):
        self.guard("protect", "orders/*", "--mode", "enforce")
        jobs = writer(self.server)
        jobs.write(34, {"orders/7": "x"})
        self.guard("install")
        self.assertRaises(Refused, jobs.write, 33, {"orders/7": "z"})

    def test_two_guards_do_not_share_a_key(self):
        self.guard("protect", "orders/*")
        done = self.guard("protect", "orders/eu/*", "--guard", "eu", code=64)
        self.assertIn("under guard orders already", done.stderr)

    def test_the_guards_themselves_are_not_put_under_guard(self):
        self.guard("protect", "pawl-guard/orders/*", "--guard", "g", code=64)

    def test_compact_refuses_what_is_older_than_the_floor(self):
        self.guard("protect", "accounts/*", "--key", "*", "--mode", "enforce")
        self.guard("advance", "accounts:7", "34")
        self.guard("advance", "accounts:8", "50")
        self.guard("compact", "accounts", "--below", "40", "--yes")
        self.assertIsNone(self.server.value("pawl-guard/accounts/fence/7"))
        self.assertIsNotNone(self.server.value("pawl-guard/accounts/fence/8"))
        self.guard("advance", "accounts:7", "39", code=121)
        self.guard("advance", "accounts:9", "40")


class CheckTest(CliCase):
    def setUp(self):
        super().setUp()
        self.printed = self.guard("protect", "orders/*", "--mode", "enforce").stderr

    def test_etcd_without_users_is_best_effort(self):
        strength, because, problems = self.check(code=1)
        self.assertEqual(strength, "best effort")
        self.assertIn("no users", because)
        self.assertEqual([severity for severity, _ in problems], ["warning"])

    def test_lost_fence_is_an_error_until_it_is_settled(self):
        self.server.etcdctl("del", "pawl-guard/orders/fence")
        _, _, problems = self.check(code=1)
        self.assertIn("error", [severity for severity, _ in problems])
        done = self.guard("mode", "orders", "enforce", "--yes", code=64)
        self.assertIn("stays as it is", done.stderr)
        self.guard("compact", "orders", "--below", "40", "--yes")
        _, _, problems = self.check(code=1)
        self.assertNotIn("error", [severity for severity, _ in problems])
        self.assertRaises(Refused, writer(self.server).write, 39, {"orders/7": "x"})

    def test_fence_with_a_lease_of_etcd_is_an_error(self):
        text = self.server.value("pawl-guard/orders/fence")
        lease = self.server.etcdctl("lease", "grant", "1000").stdout.split()[1]
        self.server.etcdctl("put", f"--lease={lease}", "pawl-guard/orders/fence", text)
        _, because, problems = self.check(code=1)
        self.assertIn("lease", because)
        self.assertIn("error", [severity for severity, _ in problems])

    def test_lost_guard_is_an_error(self):
        self.server.etcdctl("del", "pawl-guard/orders/policy")
        report = json.loads(self.guard("check", "--json", code=1).stdout)
        self.assertIn("the guard is gone", report["problems"][0]["problem"])


class RolesTest(CliCase):
    """Each test has an etcd of its own, because users are hard to take away again."""

    @classmethod
    def setUpClass(cls):
        pass

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.remove)
        self.server.start()
        self.server.install()

    def put_in_force(self):
        """Runs the commands that `protect` prints."""
        printed = self.guard("protect", "orders/*", "--mode", "enforce").stderr
        commands = re.findall(r"^  etcdctl (.*)$", printed, re.M)
        self.assertEqual(commands[-1], "auth enable")
        for command in commands:
            words = shlex.split(command)
            if words[:2] == ["user", "add"]:
                words[2] += ":secret"
            self.server.etcdctl(*words)
        self.server.user = "root:secret"

    def as_user(self, user):
        return ("--dsn", f"{self.server.dsn} user={user}"), {"ETCDCTL_PASSWORD": "secret"}

    def test_printed_commands_make_it_fenced(self):
        self.put_in_force()
        words, password = self.as_user("root")
        self.assertEqual(self.check(*words, **password), ("fenced", "", []))

    def test_writer_writes_under_the_guard_and_does_not_change_it(self):
        self.put_in_force()
        words, password = self.as_user("pawl-orders")
        self.guard("advance", "orders", "34", *words, **password)
        self.guard("advance", "orders", "33", *words, code=121, **password)
        done = self.guard("mode", "orders", "shadow", *words, code=77, **password)
        self.assertIn("permission denied", done.stderr)

    def test_wrong_password_is_named(self):
        self.put_in_force()
        words, _ = self.as_user("root")
        done = self.guard("status", *words, code=77, ETCDCTL_PASSWORD="other")
        self.assertIn("authentication failed", done.stderr)
        self.guard("status", code=77)

    def test_role_that_writes_around_the_guard_is_named(self):
        self.put_in_force()
        words, password = self.as_user("root")
        self.server.etcdctl("role", "add", "app")
        self.server.etcdctl("role", "grant-permission", "app", "read", "--prefix=true", "")
        self.assertEqual(self.check(*words, **password)[0], "fenced")
        self.server.etcdctl("role", "grant-permission", "app", "write", "orders/7")
        strength, because, problems = self.check(*words, code=1, **password)
        self.assertEqual(strength, "best effort")
        self.assertIn("the role app may write around it", because)
        self.assertEqual(len(problems), 1)

    def test_user_who_may_not_see_the_roles_does_not_call_it_fenced(self):
        self.put_in_force()
        grant = ("role", "grant-permission", "pawl-orders", "read", "--prefix=true", "pawl")
        self.server.etcdctl(*grant)
        words, password = self.as_user("pawl-orders")
        strength, because, _ = self.check(*words, code=1, **password)
        self.assertEqual(strength, "best effort")
        self.assertIn("not known", because)


if __name__ == "__main__":
    main()
