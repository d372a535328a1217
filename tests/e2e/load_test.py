"""Many connections, slow readers, a log nobody reads: others go on. Judged by counts, never by a
stopwatch."""

import fcntl
import os
import select
import socket

from pawltest import harness
from pawltest.harness import Closed, Error, fields, request_id, wait_until

CONNECTIONS = 10_000
RESERVED = CONNECTIONS // 10
F_SETPIPE_SZ = 1031
OUTPUT_MAX = 4 << 20


def connect(port):
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.connect(("127.0.0.1", port))
    return connection


class ConnectionsTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        # Client and server are two processes: each needs a descriptor per connection.
        harness.allow_descriptors(CONNECTIONS + RESERVED + 500)
        super().setUpClass()

    def idle(self, count):
        """Opens `count` connections that never say a word."""
        connections = []
        self.addCleanup(lambda: [connection.close() for connection in connections])
        for _ in range(count):
            connections.append(connect(self.pawld.port))
        return connections

    def test_ten_thousand_idle_connections_and_the_reserved_ones(self):
        worker = self.client(3)
        lock = self.lock()
        lease = self.acquire(worker, self.lock())["lease"]
        before = self.pawld.rss_bytes()
        self.idle(CONNECTIONS - 1)

        # Another connection works on, and the ones beyond the limit are the lane: renewals pass,
        # new work does not.
        last = 0
        for _ in range(200):
            grant = self.acquire(worker, lock)
            self.assertGreater(grant["token"], last)
            last = grant["token"]
            self.assertEqual(worker.call("RELEASE", grant["lease"]), 1)
        self.assertGrewLess(before, CONNECTIONS * 8192, "an idle connection costs too much memory")

        lane = wait_until(
            self.in_the_lane,
            "all idle connections are accepted, so that the next is beyond the limit",
        )
        self.assertEqual(lane.call("PING"), "PONG")
        self.assertEqual(lane.call("RENEW", lease), 60000)
        self.assertEqual(lane.call("MRENEW", lease), [60000])
        self.assertError(lane.call("ACQUIRE", lock, "TTL", 1000), "BUSY", "10000")
        self.assertError(lane.call("INSPECT", lock), "BUSY")
        self.assertEqual(lane.call("RELEASE", lease), 1)
        self.assertEqual(lane.call("PING"), "PONG", "a refusal keeps the connection")
        self.assertGranted(worker.call("ACQUIRE", lock, "TTL", 60000))

    def in_the_lane(self):
        lane = self.pawld.client()
        if isinstance(lane.call("STATUS"), Error):
            self.addCleanup(lane.close)
            return lane
        lane.close()
        return None

    def test_connection_beyond_the_reserve_is_refused_until_one_closes(self):
        connections = self.idle(CONNECTIONS + RESERVED)
        last = self.pawld.client()
        self.addCleanup(last.close)
        output = last.read_to_end()
        self.assertIn(b"-BUSY", output or b"-BUSY", output)
        for connection in connections:
            connection.close()

        def serves():
            try:
                with self.pawld.client() as client:
                    return not isinstance(client.call("STATUS"), Error)
            except (Closed, OSError):
                return False

        wait_until(serves, "room came back")


class SlowReaderTest(harness.PawldCase):
    def test_stopped_reader_costs_bounded_memory(self):
        # Hard case 25: bounded per connection. pawld may stop serving it until it reads again, or
        # cut it.
        slow = self.client(3, receive_buffer=4096)
        slow.call("COMMAND", "DOCS")
        answer = slow.raw
        owed = 4 * OUTPUT_MAX // len(answer)
        other, lock = self.client(3), self.lock()
        before = self.pawld.rss_bytes()
        questions = self.ask_without_reading(slow, harness.resp.encode("COMMAND", "DOCS") * owed)
        for _ in range(300):
            self.assertEqual(other.call("RELEASE", self.acquire(other, lock)["lease"]), 1)
        questions = self.ask_without_reading(slow, questions)
        self.assertEqual(other.pipeline([["PING"]] * 1000), ["PONG"] * 1000)
        self.assertGrewLess(before, 2 * OUTPUT_MAX, "what it does not read piles up")
        got = self.read_again(slow, questions, len(answer) * owed)
        self.assertEqual(
            got,
            (answer * owed)[: len(got)],
            "every answer in order, or some of them and then the end",
        )
        self.assertEqual(other.call("PING"), "PONG")

    @staticmethod
    def ask_without_reading(slow, questions):
        """Sends until nothing more is taken; what is left."""
        slow.socket.setblocking(False)
        try:
            while questions:
                questions = questions[slow.socket.send(questions[:65536]) :]
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        slow.socket.settimeout(harness.PATIENCE)
        return questions

    @staticmethod
    def read_again(slow, questions, size):
        """Reads and asks the rest, until all has come or pawld closes: the bytes."""
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        got = bytearray()
        while len(got) < size:
            ready, takes, _ = select.select(
                [slow.socket], [slow.socket] if questions else [], [], harness.PATIENCE
            )
            if not ready and not takes:
                raise AssertionError(f"stuck after {len(got)} of {size} bytes")
            try:
                if ready:
                    more = slow.socket.recv(1 << 20)
                    if not more:
                        break
                    got += more
                if takes:
                    questions = questions[slow.socket.send(questions[:4096]) :]
            except (ConnectionResetError, BrokenPipeError):
                break
        return bytes(got)

    def test_large_answer_reaches_its_reader(self):
        # 1,008 locks with the longest names, sixteen to a lease: a page of them is several
        # megabytes.
        client = self.client(3)
        prefix = self.lock("/")
        for lease in range(63):
            names = [f"{prefix}{lease}/{n}/".ljust(512, "x") for n in range(16)]
            self.acquire(
                client,
                names[0],
                *[word for name in names[1:] for word in ("AND", name)],
                "META",
                "k",
                "v" * 1000,
            )
        found, cursor = set(), None
        while cursor != "0":
            cursor, page = client.call(
                "LOCKS", "PREFIX", prefix, "COUNT", 1000, *(["CURSOR", cursor] if cursor else [])
            )
            found.update(entry["lock"] for entry in page)
        self.assertEqual(len(found), 63 * 16)

    def test_large_history_reaches_its_reader(self):
        # 1,000 epochs of sixteen locks with the longest names would be 8.5 MB; fewer entries are
        # fine, half a frame is not.
        client = self.client(3)
        prefix = self.lock("/")
        names = [f"{prefix}{n}".ljust(512, "x") for n in range(16)]
        words = [
            "ACQUIRE",
            names[0],
            *[word for name in names[1:] for word in ("AND", name)],
            "TTL",
            60000,
        ]
        tokens = []
        for _ in range(1000):
            grant = client.call(*words)
            client.call("RELEASE", grant["lease"])
            tokens.append(grant["token"])
        entries = client.call("HISTORY", names[0], "COUNT", 1000)
        self.assertGreater(len(entries), 0)
        self.assertEqual([entry["token"] for entry in entries], tokens[::-1][: len(entries)])

    def test_pushes_to_a_stopped_reader_are_bounded(self):
        # Hard case 25. 1,024 waits on one connection that reads nothing, granted and cancelled
        # again and again.
        slow = self.client(3, receive_buffer=4096)
        holder = self.client(3)
        lock = self.lock()
        lease = self.acquire(holder, lock)["lease"]
        for _ in range(1024):
            slow.send(
                "ACQUIRE", lock, "TTL", 60000, "WAIT", 600000, "ASYNC", "REQUEST", request_id()
            )
        self.waiting(holder, lock, 1024)
        holder.call("RELEASE", lease)
        wait_until(
            lambda: self.inspect(holder, lock)["state"] == "held", "the first of them holds it"
        )
        self.assertEqual(holder.pipeline([["PING"]] * 1000), ["PONG"] * 1000)
        slow.close()
        self.waiting(holder, lock, 0)


class LogTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None

    def test_blocked_log_does_not_block_pawld(self):
        # Hard case 25: etcd once hung on a blocked log sink.
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        fcntl.fcntl(write_end, F_SETPIPE_SZ, 4096)
        server = self.own_pawld(start=False)
        server.start(stderr=write_end)
        os.close(write_end)
        client = self.client(3, server)
        # Each break is audited and each malformed frame may be logged: far more than the pipe
        # holds.
        for n in range(300):
            grant = self.acquire(client, f"noisy/{n}")
            self.assertEqual(
                client.call(
                    "BREAK", f"noisy/{n}", "TOKEN", grant["token"], "NOW", "REASON", "r" * 200
                ),
                1,
            )
            with server.client() as bad:
                bad.send_bytes(b"*1\r\n:1\r\n")
                bad.read_to_end()
        self.assertEqual(fields(client.call("STATUS"))["leases"], 0)
        for _ in range(100):
            self.assertEqual(client.call("RELEASE", self.acquire(client, "after")["lease"]), 1)
        self.assertEqual(server.terminate(), 0)


class WorkTest(harness.PawldCase):
    def test_a_hundred_pipelining_connections_get_unique_growing_tokens(self):
        # Hard cases 2, 12: tokens are unique over all connections, and each connection sees them
        # grow.
        clients = [self.client(3) for _ in range(100)]
        prefix = self.lock("/")
        for n, client in enumerate(clients):
            client.send_bytes(
                b"".join(
                    harness.resp.encode("ACQUIRE", f"{prefix}{n}/{k}", "TTL", 60000)
                    for k in range(100)
                )
            )
        seen = set()
        for client in clients:
            tokens = [client.read()["token"] for _ in range(100)]
            self.assertEqual(tokens, sorted(tokens))
            seen.update(tokens)
        self.assertEqual(len(seen), 100 * 100)

    def test_retries_after_lost_replies_get_the_same_token(self):
        # Hard case 2: the connection goes away before the reply is read; the retry finds the same
        # grant.
        tokens, leases = {}, set()
        for _ in range(300):
            lock, request = self.lock(), request_id()
            words = ["ACQUIRE", lock, "TTL", 60000, "REQUEST", request]
            with self.pawld.client(2) as lost:
                lost.send(*words)
            with self.pawld.client(3) as client:
                first, second = client.pipeline([words, words])
            self.assertEqual(first, second)
            tokens[request] = first["token"]
            leases.add(first["lease"])
        self.assertEqual(len(set(tokens.values())), len(tokens))
        self.assertEqual(len(leases), len(tokens))


if __name__ == "__main__":
    harness.main()
