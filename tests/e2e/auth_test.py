#!/usr/bin/python3
"""Users, from the file that `pawl auth` writes to what pawld lets each do: real binaries, real
signals.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import stat
import subprocess
import threading

from pawltest import harness
from pawltest.harness import Closed, wait_until
from pawltest.process import dies_with_parent
from pawltest.web import Web

PAWL = os.environ.get("PAWL", "")


class AuthCase(harness.PawldCase):
    """A directory with a file of users for each test, and pawl in a clean environment."""

    pawld = None

    @classmethod
    def setUpClass(cls):
        pass

    def setUp(self):
        super().setUp()
        self.dir = harness.scratch("auth")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.dir], check=True))
        self.users = self.dir / "users"

    def pawl(self, *words, expect=0, auth=None, **environment):
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        if self.pawld:
            own["PAWL_ADDR"] = f"127.0.0.1:{self.pawld.port}"
        if auth:
            own["PAWL_AUTH"] = auth
        done = subprocess.run(
            dies_with_parent([PAWL, *words]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env={**own, **environment},
            check=False,
        )
        self.assertEqual(
            done.returncode, expect, f"{words}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        )
        return done

    def add(self, user, role, *prefixes):
        """user:secret"""
        more = [word for prefix in prefixes for word in ("--prefix", prefix)]
        return self.pawl(
            "auth", "add", user, "--role", role, *more, "--file", self.users
        ).stdout.strip()

    def serve(self, *more):
        self.pawld = self.own_pawld(start=False)
        return self.pawld.start("--auth-file", self.users, *more)

    def client_as(self, auth, protocol=2):
        client = self.client(protocol)
        self.assertEqual(client.call("AUTH", *auth.split(":")), "OK")
        return client


class FileTest(AuthCase):
    def test_secret_is_printed_once_and_stored_as_digest(self):
        auth = self.add("ci", "use", "ci", "reports/nightly run")
        self.assertRegex(auth, r"^ci:[0-9a-f]{64}$")
        self.assertNotIn(auth.partition(":")[2], self.users.read_text())
        self.assertEqual(stat.S_IMODE(self.users.stat().st_mode), 0o600)
        self.assertNotEqual(self.add("other", "admin").partition(":")[2], auth.partition(":")[2])
        listed = json.loads(self.pawl("auth", "ls", "--file", self.users, "--json").stdout)
        self.assertEqual(
            listed["users"][0],
            {"user": "ci", "role": "use", "prefixes": ["ci", "reports/nightly run"]},
        )
        self.assertRegex(
            self.pawl("auth", "ls", "--file", self.users).stdout, r"(?m)^other +admin +\(all\)$"
        )

    def test_json_output_is_one_document(self):
        added = json.loads(
            self.pawl(
                "auth",
                "add",
                "ci",
                "--role",
                "use",
                "--prefix",
                "ci",
                "--file",
                self.users,
                "--json",
            ).stdout
        )
        self.assertEqual(
            {**added, "secret": ""}, {"user": "ci", "secret": "", "role": "use", "prefixes": ["ci"]}
        )
        self.assertRegex(added["secret"], "^[0-9a-f]{64}$")

    def test_changes_keep_mode_comments_and_other_users(self):
        self.add("boss", "admin")
        self.users.write_text("# by hand\n\n" + self.users.read_text() + "# the end")
        os.chmod(self.users, 0o640)
        before = self.users.read_text()
        self.add("ci", "use")
        self.assertTrue(self.users.read_text().startswith(before + "\nci use sha256:"))
        self.assertEqual(stat.S_IMODE(self.users.stat().st_mode), 0o640)
        self.pawl("auth", "rm", "ci", "--file", self.users)
        self.assertEqual(self.users.read_text(), before + "\n")
        self.assertEqual(os.listdir(self.dir), ["users"])

    def test_invalid_change_is_named_and_changes_nothing(self):
        self.add("ci", "use")
        before = self.users.read_text()
        again = self.pawl("auth", "add", "ci", "--role", "use", "--file", self.users, expect=64)
        self.assertIn("pawl auth rm ci", again.stderr)
        self.pawl("auth", "add", "a:b", "--role", "use", "--file", self.users, expect=64)
        self.pawl("auth", "add", "x", "--role", "owner", "--file", self.users, expect=64)
        self.pawl(
            "auth", "add", "x", "--role", "use", "--prefix", "", "--file", self.users, expect=64
        )
        self.pawl("auth", "add", "x", "--role", "use", expect=64)
        self.assertIn(
            "has no such user",
            self.pawl("auth", "rm", "x", "--file", self.users, expect=1).stderr,
        )
        self.assertEqual(self.users.read_text(), before)
        self.assertIn(
            "No such file", self.pawl("auth", "ls", "--file", self.dir / "none", expect=78).stderr
        )
        self.pawl("auth", "rm", "x", "--file", self.dir / "none", expect=78)
        self.assertEqual(os.listdir(self.dir), ["users"])
        os.chmod(self.users, 0o644)
        self.assertIn("chmod 600", self.pawl("auth", "ls", "--file", self.users, expect=78).stderr)

    def test_invalid_auth_file_prevents_the_start_and_names_the_line(self):
        self.add("ci", "use")
        server = self.own_pawld(start=False)
        with open(self.users, "a", encoding="utf-8") as users:
            users.write("eve admin hunter2\n")
        code, output = server.refused("--auth-file", self.users)
        self.assertEqual(code, 78, output)
        self.assertIn(f"{self.users}:3: ", output)
        self.assertNotIn("hunter2", output)
        os.chmod(self.users, 0o604)
        code, output = server.refused("--auth-file", self.users)
        self.assertEqual(code, 78, output)
        self.assertIn("chmod 600", output)

    def test_public_address_needs_users_and_tls(self):
        self.add("ci", "use")
        server = self.own_pawld(start=False, resp_address="0.0.0.0:0")
        code, output = server.refused()
        self.assertEqual(
            (code, "no auth_file" in output, "--insecure" in output), (78, True, True), output
        )
        code, output = server.refused("--auth-file", self.users)
        self.assertEqual((code, "no TLS" in output), (78, True), output)


class UsersTest(AuthCase):
    def setUp(self):
        super().setUp()
        self.boss = self.add("boss", "admin")
        self.ci = self.add("ci", "use", "ci")
        self.eye = self.add("eye", "observe")
        self.night = self.add("night", "backup")
        self.serve()

    def test_role_and_prefixes_limit_each_user(self):
        self.assertIn("NOAUTH", self.pawl("status", expect=77).stderr)
        self.assertIn("PAWL_AUTH", self.pawl("status", expect=77).stderr)
        self.pawl("status", auth=self.eye)
        refused = self.pawl("acquire", "ci/x", auth=self.eye, expect=77)
        self.assertIn("ACQUIRE needs the role use; user eye has observe", refused.stderr)
        self.pawl("acquire", "ci/x", auth=self.ci)
        refused = self.pawl("acquire", "cinema", "--json", auth=self.ci, expect=77)
        self.assertEqual(json.loads(refused.stdout)["error"]["code"], "denied")
        self.assertIn("outside the prefixes of user ci", refused.stderr)
        self.pawl("acquire", "other", auth=self.boss)
        listed = json.loads(self.pawl("ls", "--json", auth=self.ci).stdout)
        self.assertEqual([lock["lock"] for lock in listed], ["ci/x"])
        self.pawl(
            "break", "ci/x", "--token", "1", "--reason", "no", "--yes", auth=self.ci, expect=77
        )

    def test_backup_user_can_back_up_and_read_no_lock(self):
        night = self.night
        self.pawl("acquire", "ci/x", auth=self.ci)
        self.pawl("backup", self.dir / "one", auth=night)
        self.pawl("backup", self.dir / "two", auth=night)
        for words in (
            ["ls"],
            ["show", "ci/x"],
            ["acquire", "other"],
            ["raise", "50", "--reason", "no"],
            ["break", "ci/x", "--token", "1", "--reason", "no", "--yes"],
            ["watch"],
        ):
            with self.subTest(words=words):
                self.assertIn(
                    "user night has backup", self.pawl(*words, auth=night, expect=77).stderr
                )
        refused = self.pawl("backup", self.dir / "three", auth=self.eye, expect=77)
        self.assertIn("BACKUP needs the role backup", refused.stderr)
        refused = self.pawl(
            "auth",
            "add",
            "x",
            "--role",
            "backup",
            "--prefix",
            "ci",
            "--file",
            self.users,
            expect=64,
        )
        self.assertIn("has no prefixes", refused.stderr)

    def test_credentials_come_from_file_or_environment(
        self,
    ):
        path = self.dir / "ci.auth"
        path.write_text(self.ci + "\n")
        self.pawl("status", "--auth-file", path)
        self.pawl("status", "--auth-file", path, auth="boss:wrong")  # The file wins.
        self.assertIn(
            "PAWL_AUTH: expected user:secret", self.pawl("status", auth="hunter2", expect=78).stderr
        )
        self.assertIn(
            "No such file", self.pawl("status", "--auth-file", self.dir / "none", expect=78).stderr
        )

    def test_wrong_secret_is_not_retried(self):
        connections = self.connections_made()
        refused = self.pawl("status", auth="ci:wrong", expect=77)
        self.assertIn("WRONGPASS", refused.stderr)
        self.assertEqual(self.connections_made() - connections, 2)  # pawl's, and the one that asks.
        # With this TTL it expects answers within 500 ms, sooner than a wrong secret is refused.
        connections = self.connections_made()
        refused = self.pawl(
            "run", "ci/run", "-t", "1s", "--", "touch", self.dir / "ran", auth="ci:wrong", expect=77
        )
        self.assertIn("WRONGPASS", refused.stderr)
        self.assertFalse((self.dir / "ran").exists())
        self.assertEqual(self.connections_made() - connections, 2)

    def connections_made(self):
        with self.client_as(self.boss) as client:
            lines = client.call("INFO").splitlines()
        return int(
            next(
                line for line in lines if line.startswith("total_connections_received:")
            ).partition(":")[2]
        )

    def test_run_elect_and_their_commands_authenticate(self):
        ran = self.pawl(
            "run",
            "ci/run",
            "--",
            "sh",
            "-c",
            f'{PAWL} show ci/run && echo "token $PAWL_TOKEN"',
            auth=self.ci,
        )
        self.assertIn("token 1", ran.stdout)
        self.assertIn(
            "led", self.pawl("elect", "ci/leader", "--", "echo", "led", auth=self.ci).stdout
        )
        self.pawl("run", "other", "--", "true", auth=self.ci, expect=77)

    def test_credentials_for_a_pawld_without_users_are_refused(self):
        self.pawld = self.own_pawld()
        self.assertIn(
            "this pawld has no users", self.pawl("status", auth=self.ci, expect=77).stderr
        )

    def test_redis_clients_authenticate_with_auth(self):
        user, _, secret = self.ci.partition(":")
        done = harness.redis_cli(
            self.pawld.port,
            "ACQUIRE",
            "ci/redis",
            "TTL",
            1000,
            options=("--user", user, "--pass", secret, "--no-auth-warning"),
            protocol=3,
        )
        self.assertIn("lease", done.stdout, done.stderr)
        import redis

        with redis.Redis(port=self.pawld.port, username=user, password=secret) as client:
            self.assertTrue(client.ping())

    # A server that slept, or that took one after the other, would need longer than the patience of
    # these clients.
    def test_two_hundred_wrong_secrets_delay_no_renewal(self):
        guessers = [self.client() for _ in range(200)]
        for guesser in guessers:
            guesser.send("AUTH", "boss", "wrong")
        worker = self.client_as(self.ci)
        lease = self.acquire(worker, "ci/busy", ttl=10000)["lease"]
        for _ in range(100):
            self.assertGreater(worker.call("RENEW", lease), 0)
        for guesser in guessers:
            self.assertError(guesser.read(), "WRONGPASS")

    def test_wrong_secrets_leak_no_memory(self):
        def guess(rounds):
            for _ in range(rounds):
                with self.client() as client:
                    client.pipeline([("HELLO", "3")])
                    client.send("AUTH", "boss", "wrong")

        guess(300)
        wait_until(lambda: self.clients() == 1, "they are forgotten")
        before = self.pawld.rss_bytes()
        for _ in range(3):
            guess(1000)
            wait_until(lambda: self.clients() == 1, "they are forgotten")
        self.assertGrewLess(before, 2 << 20, "3,000 guesses")
        self.assertLess(
            self.pawld.log().count("wrong secret"), 300, "the log is not a way to fill a disk"
        )

    def clients(self):
        with self.client_as(self.boss) as client:
            return len(client.call("CLIENT", "LIST").splitlines())


class HttpTest(AuthCase):
    def setUp(self):
        super().setUp()
        self.secrets = {
            "boss": self.add("boss", "admin"),
            "ci": self.add("ci", "use", "ci"),
            "eye": self.add("eye", "observe"),
        }
        self.serve()

    def web(self, user=None):
        return Web(self.pawld.http_port, auth=self.secrets.get(user, user))

    def test_role_and_prefixes_limit_each_user(self):
        granted = self.web("ci").acquire("ci/deploy")
        self.assertEqual(granted.status, 201, granted)
        self.assertEqual(
            self.web("eye").get("/v1/locks/ci%2Fdeploy").json["holders"][0]["token"],
            granted.json["token"],
        )
        body = {"token": granted.json["token"], "reason": "test"}
        for refused in (
            self.web("ci").acquire("other"),
            self.web("eye").acquire("ci/deploy"),
            self.web("ci").post("/v1/locks/ci%2Fdeploy/break", body),
        ):
            self.assertEqual((refused.status, refused.code), (403, "noperm"), refused)
        self.assertEqual(self.web("boss").post("/v1/locks/ci%2Fdeploy/break", body).status, 200)

    def test_request_without_credentials_is_401_except_health(self):
        for user, code in (
            (None, "noauth"),
            ("boss:wrong", "wrongpass"),
            ("nobody:x", "wrongpass"),
        ):
            refused = self.web(user).get("/metrics")
            self.assertEqual(
                (refused.status, refused.code, refused.headers["www-authenticate"]),
                (401, code, "Bearer"),
                refused,
            )
        self.assertEqual(
            [self.web().get(path).status for path in ("/healthz", "/readyz")], [200, 200]
        )
        self.assertEqual(self.web("eye").get("/metrics").status, 200)

    def test_secret_is_read_from_the_header_only_and_never_logged(self):
        secret = self.secrets["boss"].partition(":")[2]
        for target in (f"/v1/status?auth=boss:{secret}", f"/v1/status?access_token={secret}"):
            refused = self.web().get(target)
            self.assertEqual(refused.status, 400, refused)
            self.assertNotIn(secret, refused.body.decode())
        self.web("boss").get("/v1/status")
        # In the wrong place, and refused: logged, without it.
        self.web(f"{secret}:boss").get("/v1/status")
        self.web(f"boss:{secret}x").get("/v1/status")
        wait_until(lambda: "wrong secret for" in self.pawld.log(), "it is logged")
        self.assertNotIn(secret[:20], self.pawld.log())


class ReloadTest(AuthCase):
    def setUp(self):
        super().setUp()
        self.boss = self.add("boss", "admin")
        self.ci = self.add("ci", "use")
        self.serve()

    def reload(self, output):
        start = len(self.pawld.log())
        self.pawld.reload()
        wait_until(lambda: output in self.pawld.log()[start:], output)

    def test_sighup_adds_and_removes_users_and_keeps_leases(
        self,
    ):
        ci, boss = self.client_as(self.ci, protocol=3), self.client_as(self.boss)
        lease = self.acquire(ci, "a")["lease"]
        eve = self.add("eve", "use")
        self.assertError(self.client().call("AUTH", *eve.split(":")), "WRONGPASS")
        self.pawl("auth", "rm", "ci", "--file", self.users)
        self.reload(f"users in {self.users}: 2")
        self.assertError(ci.read(), "NOAUTH", "users:")
        with self.assertRaises(Closed):
            ci.read()
        self.client_as(eve)
        self.assertGreater(boss.call("RENEW", lease), 0)
        self.assertIn("WRONGPASS", self.pawl("status", auth=self.ci, expect=77).stderr)

    def test_invalid_file_at_sighup_keeps_the_old_users(self):
        ci = self.client_as(self.ci)
        good = self.users.read_text()
        for bad, output in (
            (good + "eve admin hunter2\n", ":4: the secret must be"),
            ("\0" * 10, ":1: "),
        ):
            self.users.write_text(bad)
            self.reload("SIGHUP: auth_file not reloaded, keeping the previous users")
            wait_until(lambda output=output: output in self.pawld.log(), "it is logged")
        os.chmod(self.users, 0o644)
        self.reload("SIGHUP: auth_file not reloaded, keeping the previous users")
        self.users.unlink()
        self.reload("SIGHUP: auth_file not reloaded, keeping the previous users")
        self.assertNotIn("hunter2", self.pawld.log())
        self.assertEqual(ci.call("PING"), "PONG")
        self.client_as(self.boss)

    def test_sighup_without_auth_file_is_harmless(self):
        self.pawld = self.own_pawld()
        self.reload("SIGHUP: nothing to reload")
        with self.client() as client:
            self.assertEqual(client.call("PING"), "PONG")

    def test_run_keeps_its_lease_until_its_user_is_removed(self):
        ready, stop = self.dir / "ready", self.dir / "stop"
        script = f"touch {ready}; while [ ! -e {stop} ]; do sleep 0.01; done"
        codes = []

        def run():
            codes.append(
                subprocess.run(
                    dies_with_parent([PAWL, "run", "a", "-t", "2s", "--", "sh", "-c", script]),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    timeout=harness.PATIENCE,
                    check=False,
                    env={
                        **os.environ,
                        "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}",
                        "PAWL_AUTH": self.ci,
                    },
                )
            )

        runner = threading.Thread(target=run)
        runner.start()
        wait_until(ready.exists, "the command runs")
        boss = self.client_as(self.boss)
        self.users.write_text(self.users.read_text().replace("ci use", "ci admin"))
        self.reload(f"users in {self.users}: 2")
        renewals = self.holders(boss, "a")[0]["renewals"]
        wait_until(
            lambda: self.holders(boss, "a")[0]["renewals"] > renewals + 2,
            "it authenticated anew and renews",
        )
        self.pawl("auth", "rm", "ci", "--file", self.users)
        self.reload(f"users in {self.users}: 1")
        runner.join(harness.PATIENCE)
        self.assertEqual(codes[0].returncode, 122, codes[0].stderr)
        wait_until(lambda: not self.holders(boss, "a"), "the lease ends by itself")


if __name__ == "__main__":
    harness.main()
