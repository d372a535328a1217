"""pawld as a program: its first words, its settings, its service manager, its dump, its file modes,
its descriptors."""

import json
import os
import pwd
import re
import resource
import shlex
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from unittest import mock
import unittest

from pawltest import harness
from pawltest.harness import request_id, wait_until


class DaemonTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None

    def run_pawld(self, *words, cwd=None):
        run = subprocess.run(
            [harness.binary(), *[str(word) for word in words]],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=harness.PATIENCE,
            check=False,
        )
        return run.returncode, run.stdout

    def test_first_start_creates_data_and_prints_a_working_command(self):
        server = self.own_pawld(start=False)
        # Only the ports differ from a plain `pawld`: another one may be running on this machine.
        server.command = lambda: [
            harness.binary(),
            "--resp",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
        ]
        server.launch()
        line = wait_until(
            lambda: re.search(r"redis-cli .* TTL \d+", server.log()), "it prints a command to try"
        ).group()
        tried = subprocess.run(
            shlex.split(line),
            stdout=subprocess.PIPE,
            text=True,
            timeout=harness.PATIENCE,
            check=False,
        )
        self.assertEqual(tried.returncode, 0)
        self.assertIn("lease", tried.stdout)
        self.assertTrue((server.dir / "pawl-data").is_dir())
        self.assertRegex(server.log(), r"127\.0\.0\.1:\d+")
        self.assertEqual(server.terminate(), 0)

    def test_printed_configuration_is_accepted(self):
        server = self.own_pawld(start=False)
        code, printed = self.run_pawld(
            "--print-config", "--data", server.data, "--resp", "127.0.0.1:0"
        )
        self.assertEqual(code, 0)
        server.config.write_text(printed)
        code, output = self.run_pawld("--config", server.config, "--check-config")
        self.assertEqual(code, 0, output)
        code, again = self.run_pawld("--config", server.config, "--print-config")
        self.assertEqual(again, printed)
        self.assertFalse(server.data.exists(), "asking about settings creates nothing")

    def test_setting_out_of_range_names_file_line_and_range(self):
        server = self.own_pawld(start=False)
        for text, expected in (
            ("[journal]\nsegment_bytes = 4096\n", ("2", "segment_bytes", "65536")),
            ("max_ttl_ms = 1\n", ("1", "max_ttl_ms", "100")),
            ("max_ttl_ms = 'x'\n", ("max_ttl_ms",)),
            ("resp = 7295\n", ("resp",)),
            ("= broken", ("1",)),
        ):
            with self.subTest(text=text):
                server.config.write_text(text)
                code, output = self.run_pawld("--config", server.config, "--check-config")
                self.assertEqual(code, 78, output)
                for word in (str(server.config), *expected):
                    self.assertIn(word, output)

    def test_max_ttl_setting_limits_the_ttl(self):
        server = self.own_pawld(settings="max_ttl_ms = 5000")
        client = self.client(3, server)
        self.assertError(client.call("ACQUIRE", "x", "TTL", 5001), "ERR", "100", "5000")
        self.acquire(client, "x", ttl=5000)

    def test_service_manager_is_notified_of_ready_and_stopping(self):
        server = self.own_pawld(start=False)
        path = str(server.dir / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(harness.PATIENCE)
            os.environ["NOTIFY_SOCKET"] = path
            try:
                server.start()
            finally:
                del os.environ["NOTIFY_SOCKET"]
            self.assertIn(b"READY=1", manager.recv(4096))
            server.process.terminate()
            self.assertIn(b"STOPPING=1", manager.recv(4096))
            self.assertEqual(server.wait(), 0)

    def test_dump_shows_the_store_without_secrets(self):
        server = self.own_pawld()
        client, request = self.client(3, server), request_id()
        grant = self.acquire(client, "reports/nightly", "OWNER", "batch", "REQUEST", request)
        server.terminate()
        code, dump = self.run_pawld("dump", "--data", server.data)
        self.assertEqual(code, 0, dump)
        self.assertIn("reports/nightly", dump)
        self.assertIn(f"token {grant['token']}", dump)
        self.assertNotIn(grant["lease"], dump)
        self.assertNotIn(request, dump)
        server.start()
        self.assertEqual(
            self.client(3, server).call("RENEW", grant["lease"]), 60000, "a dump changes nothing"
        )

    def test_the_store_is_readable_by_its_owner_only(self):
        # Leases and request ids are in there.
        server = self.own_pawld()
        for path in (server.data, *server.data.iterdir()):
            if path.exists():
                self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path.name)

    def test_json_log_is_one_object_per_line_and_nothing_else(self):
        server = self.own_pawld(start=False)
        server.start("--log-format", "json")
        with server.client() as bad:
            bad.send_bytes(b"*1\r\n:1\r\n")
            bad.read_to_end()
        client = self.client(3, server)
        token = self.acquire(client, "reports/\u00e4")["token"]
        self.assertEqual(
            client.call("BREAK", "reports/\u00e4", "TOKEN", token, "NOW", "REASON", "stuck"), 1
        )
        self.assertEqual(server.terminate(), 0)
        server.start("--log-format", "json")
        self.acquire(self.client(3, server), "kept")
        self.assertEqual(server.terminate(), 0)
        server.start("--log-format", "json")
        wait_until(lambda: server.log().count('"event":"serving"') == 3, "the start is logged")
        lines = [json.loads(line) for line in server.log().splitlines()]  # stdout and stderr
        events = {
            name: [line for line in lines if line.get("event") == name]
            for name in ("serving", "break")
        }
        last = events["serving"][-1]
        self.assertEqual(len(events["serving"]), 3)
        self.assertEqual(
            (last["address"], last["http_address"]),
            (f"127.0.0.1:{server.port}", f"127.0.0.1:{server.http_port}"),
        )
        self.assertEqual(
            (last["leases"], last["last_token"], last["data"]), (1, token + 1, str(server.data))
        )
        self.assertIn("; 1 lease, last token", last["message"])
        (broken,) = events["break"]
        self.assertEqual(
            (broken["level"], broken["lock"], broken["token"], broken["reason"]),
            ("warning", "reports/\u00e4", token, "stuck"),
        )
        self.assertRegex(broken["address"], r"^127\.0\.0\.1:\d+$")

    def test_early_error_is_json_too(self):
        server = self.own_pawld(
            start=False, settings='log_format = "json"\nauth_file = "no/such/file"\n'
        )
        code, output = server.refused()
        self.assertEqual(code, 78)
        self.assertIn("no/such/file", json.loads(output)["message"])
        server.config.write_text("no_such_setting = 1\n")
        code, output = server.refused("--log-format", "json")
        self.assertEqual(code, 78)
        self.assertIn("no_such_setting", json.loads(output)["message"])

    def test_start_is_logged_before_the_hints(self):
        server = self.own_pawld()
        wait_until(lambda: "http: curl" in server.log(), "it prints the hints")
        self.assertRegex(
            server.log(),
            r"(?s)T\d\d:\S+ info pawld \S+ serves 127\.0\.0\.1:\d+ and http 127\.0\.0\.1:\d+ .*; 0 "
            r"leases,"
            r".*\ntry: redis-cli .*\nhttp: curl http://",
        )

    # --- --check-config and the user of the service

    def check_config(self, server, *more, as_user=None, binary=None):
        as_user = (
            ["setpriv", f"--reuid={as_user}", f"--regid={as_user}", "--clear-groups"]
            if as_user
            else []
        )
        run = subprocess.run(
            [
                *as_user,
                binary or harness.binary(),
                "--check-config",
                "--config",
                str(server.config),
                "--data",
                str(server.data),
                *[str(word) for word in more],
            ],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            check=False,
        )
        return run.returncode, run.stdout, run.stderr

    def test_check_config_names_the_user_it_checked_as(self):
        server = self.own_pawld(start=False)
        code, output, errors = self.check_config(server)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(
            f"the configuration is right; files were tried as user "
            f"{pwd.getpwuid(os.geteuid()).pw_name}\n",
            output,
        )

    @unittest.skipUnless(os.geteuid() == 0, "only root can try files as another user")
    def test_check_config_by_root_checks_as_the_data_owner(self):
        # Outside of the tree, which another user need not be able to reach (a clone in /root).
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        with mock.patch.dict(os.environ, PAWL_E2E_DIR=directory.name):
            server = self.own_pawld(start=False)
        os.chmod(directory.name, 0o755)
        binary = shutil.copy(harness.binary(), directory.name)
        nobody = pwd.getpwnam("nobody")
        users = server.dir / "users"
        users.write_text("")
        users.chmod(0o600)
        server.data.mkdir()
        os.chown(server.data, nobody.pw_uid, nobody.pw_gid)
        server.dir.chmod(0o755)
        server.config.chmod(0o644)
        code, output, errors = self.check_config(server, "--auth-file", users)
        self.assertEqual(code, 78, output)
        self.assertIn(
            f"{users}: cannot be read by nobody, who owns {server.data}: Permission denied", errors
        )
        os.chown(users, 0, nobody.pw_gid)
        users.chmod(0o640)
        code, output, errors = self.check_config(server, "--auth-file", users)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(f"files were tried as root and as nobody, the owner of {server.data}", output)
        code, output, errors = self.check_config(server, as_user=nobody.pw_uid, binary=binary)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("tried as user nobody", output)

    def test_connection_that_cannot_even_be_refused_does_not_spin(self):
        server = self.own_pawld()
        client = self.client(3, server)
        lease = self.acquire(client, "held")["lease"]
        # Below what is open: not even the spare descriptor can be used.
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, 64))
        waiting = socket.create_connection(("127.0.0.1", server.port), harness.PATIENCE)
        self.addCleanup(waiting.close)

        def attempts():
            return int(re.search(r"rejected_connections:(\d+)", client.call("INFO")).group(1))

        harness.wait_until(lambda: attempts() >= 3, "it is tried again and again")
        time.sleep(0.5)  # As below: a spinning loop tries 100,000 times.
        self.assertLess(attempts(), 1000, "the loop spins")
        self.assertEqual(client.call("RENEW", lease), 60000)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (64, 64))
        waiting.sendall(b"PING\r\n")
        self.assertEqual(waiting.recv(100), b"+PONG\r\n", "it is accepted once there is room")

    def test_out_of_descriptors_keeps_serving_without_spinning(self):
        server = self.own_pawld()
        client = self.client(3, server)
        # Before there are too few: a store that opens a file then may take the descriptor with which
        # connections are refused.
        lease = self.acquire(client, "held")["lease"]
        # Lowered afterwards: its limits of connections leave descriptors otherwise.
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (64, 64))
        waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        self.addCleanup(lambda: [connection.close() for connection in waiting])

        def turns():
            return int(re.search(r"pawl_turns:(\d+)", client.call("INFO")).group(1))

        before = turns()
        # Nobody asks anything: an idle loop wakes a few times in this window, a spinning one
        # 100,000 times.
        time.sleep(0.5)
        self.assertLess(turns() - before, 1000, "the loop spins")
        self.assertEqual(client.call("RENEW", lease), 60000)
        waiting[-1].settimeout(harness.PATIENCE)
        self.assertTrue(
            waiting[-1].recv(100).startswith(b"-BUSY file descriptors"), "the reason is sent"
        )
        self.assertNotIn(
            "rejected_connections:0\r\n", client.call("INFO"), "refused connections are counted"
        )
        for connection in waiting:
            connection.close()

        def room():
            with socket.create_connection(("127.0.0.1", server.port), harness.PATIENCE) as fresh:
                try:
                    fresh.sendall(b"PING\r\n")
                    return fresh.recv(100) == b"+PONG\r\n"
                except (BrokenPipeError, ConnectionResetError):
                    return False

        harness.wait_until(room, "room comes back")


if __name__ == "__main__":
    harness.main()
