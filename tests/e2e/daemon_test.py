"""pawld as a program: its first words, its settings, its service manager, its dump, its file modes, its descriptors."""

import json
import os
import re
import shlex
import socket
import stat
import subprocess
import time

import harness
from harness import request_id, wait_until


class DaemonTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None

    def run_pawld(self, *words, cwd=None):
        run = subprocess.run([harness.binary(), *[str(word) for word in words]], cwd=cwd, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE, check=False)
        return run.returncode, run.stdout

    def test_without_arguments_it_creates_its_data_and_prints_a_command_that_works(self):
        server = self.own_pawld(start=False)
        # Only the ports differ from a plain `pawld`: another one may be running on this machine.
        server.command = lambda: [harness.binary(), "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        server.launch()
        line = wait_until(lambda: re.search(r"redis-cli .* TTL \d+", server.log()), "it prints a command to try").group()
        tried = subprocess.run(shlex.split(line), stdout=subprocess.PIPE, text=True, timeout=harness.PATIENCE, check=False)
        self.assertEqual(tried.returncode, 0)
        self.assertIn("lease", tried.stdout)
        self.assertTrue((server.dir / "pawl-data").is_dir())
        self.assertRegex(server.log(), r"127\.0\.0\.1:\d+")
        self.assertEqual(server.terminate(), 0)

    def test_the_printed_configuration_is_one_it_accepts(self):
        server = self.own_pawld(start=False)
        code, printed = self.run_pawld("--print-config", "--data", server.data, "--resp", "127.0.0.1:0")
        self.assertEqual(code, 0)
        server.config.write_text(printed)
        code, said = self.run_pawld("--config", server.config, "--check-config")
        self.assertEqual(code, 0, said)
        code, again = self.run_pawld("--config", server.config, "--print-config")
        self.assertEqual(again, printed)
        self.assertFalse(server.data.exists(), "asking about settings creates nothing")

    def test_settings_out_of_range_name_file_line_and_range(self):
        server = self.own_pawld(start=False)
        for text, expected in (("[journal]\nsegment_bytes = 4096\n", ("2", "segment_bytes", "65536")),
                               ("max_ttl_ms = 1\n", ("1", "max_ttl_ms", "100")), ("max_ttl_ms = 'x'\n", ("max_ttl_ms",)),
                               ("resp = 7295\n", ("resp",)), ("= broken", ("1",))):
            with self.subTest(text=text):
                server.config.write_text(text)
                code, said = self.run_pawld("--config", server.config, "--check-config")
                self.assertEqual(code, 78, said)
                for word in (str(server.config), *expected):
                    self.assertIn(word, said)

    def test_max_ttl_is_a_setting_and_the_error_names_it(self):
        server = self.own_pawld(settings="max_ttl_ms = 5000")
        client = self.client(3, server)
        self.assertError(client.call("ACQUIRE", "x", "TTL", 5001), "ERR", "100", "5000")
        self.acquire(client, "x", ttl=5000)

    def test_the_service_manager_hears_ready_and_stopping(self):
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

    def test_a_dump_shows_the_store_to_people_and_no_secrets(self):
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
        self.assertEqual(self.client(3, server).call("RENEW", grant["lease"]), 60000, "a dump changes nothing")

    def test_the_store_is_readable_by_its_owner_only(self):
        # Leases and request ids are in there.
        server = self.own_pawld()
        for path in (server.data, *server.data.iterdir()):
            if path.exists():
                self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path.name)

    def test_json_logs_are_one_object_per_line(self):
        server = self.own_pawld(start=False)
        server.start("--log-format", "json")
        with server.client() as bad:
            bad.send_bytes(b"*1\r\n:1\r\n")
            bad.read_to_end()
        self.assertEqual(server.terminate(), 0)
        objects = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
        self.assertTrue(objects)

    def test_out_of_descriptors_it_serves_on_without_spinning(self):
        server = self.own_pawld(start=False)
        command = server.command
        server.command = lambda *more: ["prlimit", "--nofile=64:64", *command(*more)]
        server.start()
        client = self.client(3, server)
        lease = self.acquire(client, "held")["lease"]
        waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        self.addCleanup(lambda: [connection.close() for connection in waiting])

        def turns():
            return int(re.search(r"pawl_turns:(\d+)", client.call("INFO")).group(1))

        before = turns()
        time.sleep(0.5)  # Nobody asks anything: an idle loop wakes a few times in this window, a spinning one 100,000 times.
        self.assertLess(turns() - before, 1000, "the loop spins")
        self.assertEqual(client.call("RENEW", lease), 60000)
        waiting[-1].settimeout(harness.PATIENCE)
        self.assertTrue(waiting[-1].recv(100).startswith(b"-BUSY file descriptors"), "it is told why")
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
