"""Real clients: redis-py, node-redis, ioredis, redis-cli as people use it, redis-benchmark."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading

import redis

from pawltest import harness, node_clients
from pawltest.harness import LEASE, fields, request_id
from pawltest.process import dies_with_parent

HERE = pathlib.Path(__file__).resolve().parent / "clients"


def run(command, cwd=None):
    return subprocess.run(
        dies_with_parent(command),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=200,
        check=False,
    )


class RedisPyTest(harness.PawldCase):
    def connect(self, **options):
        client = redis.Redis(
            port=self.pawld.port, decode_responses=True, socket_timeout=harness.PATIENCE, **options
        )
        self.addCleanup(client.close)
        return client

    def test_acquire_renew_inspect_release(self):
        client, lock, request = self.connect(client_name="py"), self.lock(), request_id()
        self.assertTrue(client.ping())
        grant = fields(client.execute_command("ACQUIRE", lock, "TTL", 60000, "REQUEST", request))
        self.assertRegex(grant["lease"], LEASE)
        self.assertEqual(
            fields(client.execute_command("ACQUIRE", lock, "TTL", 60000, "REQUEST", request)), grant
        )
        self.assertEqual(client.execute_command("RENEW", grant["lease"]), 60000)
        self.assertEqual(fields(client.execute_command("INSPECT", lock))["token"], grant["token"])
        self.assertIsNone(client.execute_command("ACQUIRE", lock, "TTL", 60000))
        self.assertEqual(client.execute_command("RELEASE", grant["lease"]), 1)
        with self.assertRaisesRegex(redis.ResponseError, "^LOST"):
            client.execute_command("RENEW", grant["lease"])

    def test_tokens_are_exact_in_json_of_python_and_node(self):
        # Hard case 15.
        top = 2**53 - 1
        self.assertEqual(json.loads(json.dumps(top)), top)
        node = run(
            [
                "node",
                "-p",
                f"JSON.stringify(JSON.parse('{top}')) + ' ' + Number.isSafeInteger({top})",
            ]
        )
        self.assertEqual(node.stdout.split(), [str(top), "true"])

    def test_pipeline_and_blocking_wait_on_two_connections(self):
        client, other, lock = self.connect(), self.connect(), self.lock()
        grant = fields(client.execute_command("ACQUIRE", lock, "TTL", 60000))
        answers = []
        waiter = threading.Thread(
            target=lambda: answers.append(
                other.execute_command("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000)
            )
        )
        waiter.start()
        harness.wait_until(
            lambda: fields(client.execute_command("INSPECT", lock))["waiters"] == 1, "it waits"
        )
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("RENEW", grant["lease"])
        pipe.execute_command("RELEASE", grant["lease"])
        self.assertEqual(pipe.execute(), [60000, 1])
        waiter.join(harness.PATIENCE)
        self.assertGreater(fields(answers[0])["token"], grant["token"])


class NodeTest(harness.PawldCase):
    """node-redis and ioredis, the versions of the lock file."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.modules = node_clients.installed()

    def run_client(self, library, protocols):
        """Runs clients/client.mjs; `protocols` are the RESP versions of its runs, in order."""
        done = run(
            ["node", HERE / "client.mjs", library, self.pawld.port, self.lock()], cwd=self.modules
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(lines), len(protocols))
        for seen, protocol in zip(lines, protocols):
            if protocol == 3:
                self.assertEqual(seen["pushed"], {"state": "queued", "inStep": True, "released": 1})
            else:
                self.assertIn("RESP3", seen["pushed"]["state"])
            self.assertTrue(seen["same"], "a retry is the same grant")
            self.assertTrue(seen["exact"])
            self.assertEqual(
                (seen["renewed"], seen["state"], seen["owner"]), (60000, "held", library)
            )
            self.assertEqual((seen["seen"], seen["busy"]), (seen["token"], None))
            self.assertEqual((seen["released"], seen["releasedAgain"]), (1, 1))
            self.assertGreater(seen["handed"], seen["token"])
            self.assertIn("LOST", seen["error"])

    def newest(self, library, protocols):
        if node_clients.node_major() < 20:
            print(f"{library}: left out, its newest version needs Node 20", file=sys.stderr)
            return
        self.run_client(library, protocols)

    def test_node_redis(self):
        self.newest("redis", [2, 3])

    def test_node_redis_5(self):
        self.run_client("redis-5", [2, 3])

    def test_ioredis(self):
        self.newest("ioredis", [3])

    def test_ioredis_5(self):
        self.run_client("ioredis-5", [2])


class RedisCliTest(harness.PawldCase):
    def test_redis_cli_reads_commands_from_stdin(self):
        # With stdin redis-cli asks COMMAND DOCS first, for its hints.
        lock = self.lock()
        for protocol in (2, 3):
            done = harness.redis_cli(
                self.pawld.port,
                protocol=protocol,
                stdin=f"PING\nACQUIRE {lock}{protocol} TTL 60000\nINSPECT {lock}{protocol}\n",
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("PONG", done.stdout)
            self.assertIn("lease", done.stdout)
            self.assertIn("no guard has reported", done.stdout)
            self.assertNotIn("ERR", done.stdout)

    def test_interactive_redis_cli_shows_hints(self):
        # The hint for a verb that Redis does not have can only come from our COMMAND DOCS.
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        session = subprocess.Popen(
            dies_with_parent(["redis-cli", "-p", self.pawld.port]),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(theirs)
        self.addCleanup(session.wait)
        self.addCleanup(session.kill)
        prompt = rb"> \Z"  # It flushes what was typed before it asks.
        self.type_until(ours, b"", prompt)
        self.type_until(ours, b"acquire ", rb"TTL ms")
        self.type_until(ours, b"\x15inspect hello\r", rb"(?s)no guard has reported.*" + prompt)
        self.type_until(ours, b"help renew\r", rb"extend a lease still held")

    def type_until(self, terminal, keys, expected):
        """Types `keys`, then reads what the terminal shows until it is as expected."""
        os.write(terminal, keys)
        shown = b""
        while not re.search(expected, re.sub(rb"\x1b\[[0-9;]*[A-Za-z]|\r", b"", shown)):
            ready, _, _ = select.select([terminal], [], [], harness.PATIENCE)
            self.assertTrue(ready, f"never showed {expected!r}: {shown!r}")
            shown += os.read(terminal, 65536)

    def test_redis_cli_shows_pushes_in_resp3(self):
        lock = self.lock()
        script = (
            f"ACQUIRE {lock} TTL 200\nACQUIRE {lock} TTL 60000 WAIT 60000 ASYNC REQUEST "
            f"{request_id()}\n"
        )
        done = harness.redis_cli(
            self.pawld.port,
            protocol=3,
            stdin=script
            + "ACQUIRE other-lock TTL 300\n"
            + "ACQUIRE other-lock TTL 60000 WAIT 60000\n",
            options=["--show-pushes", "yes"],
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("queued", done.stdout)
        self.assertIn("granted", done.stdout)


class RedisBenchmarkTest(harness.PawldCase):
    def test_redis_benchmark_runs_ping_and_acquire(self):
        base = ["redis-benchmark", "-p", self.pawld.port, "-n", 1000, "-c", 20, "-q"]
        for words in (
            ["-t", "ping"],
            ["ACQUIRE", f"{self.lock()}/__rand_int__", "TTL", 60000],
            ["-3", "STATUS"],
        ):
            options = ["-r", 100000] if words[0] == "ACQUIRE" else []
            done = run(base + options + words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("requests per second", done.stdout)
            self.assertNotIn("ERR", done.stdout + done.stderr)
        self.assertGreater(fields(self.client().call("STATUS"))["leases"], 500)


if __name__ == "__main__":
    harness.main()
