"""Frames as bad networks and bad programs send them: pipelined, split, huge, malformed, by hand."""

import random

from pawltest import harness
from pawltest.harness import fields
from pawltest.resp import encode

FRAME_MAX = 64 * 1024
MANY = 5000


class PipelineTest(harness.PawldCase):
    def test_pipelined_commands_are_answered_in_order(self):
        client = self.client()
        replies = client.pipeline(["ECHO", n] for n in range(MANY))
        self.assertEqual(replies, [str(n) for n in range(MANY)])

    def test_pipelined_cycles_see_their_own_writes(self):
        client = self.client(3)
        lock = self.lock()
        last = 0
        for _ in range(20):
            # A read behind a write in the same pipeline waits for it to be durable.
            grant, seen = client.pipeline([["ACQUIRE", lock, "TTL", 60000], ["INSPECT", lock]])
            self.assertEqual(seen["token"], grant["token"])
            self.assertGreater(grant["token"], last)
            last = grant["token"]
            released, renewed, seen = client.pipeline(
                [["RELEASE", grant["lease"]], ["RENEW", grant["lease"]], ["INSPECT", lock]]
            )
            self.assertEqual((released, seen["state"]), (1, "free"))
            self.assertError(renewed, "LOST")

    def test_pipelined_acquires_get_growing_tokens(self):
        client = self.client(3)
        prefix = self.lock("/")
        grants = client.pipeline(["ACQUIRE", f"{prefix}{n}", "TTL", 60000] for n in range(MANY))
        tokens = [grant["token"] for grant in grants]
        self.assertEqual(tokens, sorted(set(tokens)))
        self.assertEqual(len({grant["lease"] for grant in grants}), MANY)
        self.assertEqual(
            client.pipeline(["RELEASE", grant["lease"]] for grant in grants), [1] * MANY
        )

    def test_errors_in_a_pipeline_affect_only_themselves(self):
        client = self.client()
        replies = client.pipeline([["PING"], ["NOSUCH"], ["ACQUIRE", "x"], ["ECHO", "on"]])
        self.assertEqual((replies[0], replies[3]), ("PONG", "on"))
        self.assertError(replies[1], "ERR")
        self.assertError(replies[2], "ERR")


class SplitTest(harness.PawldCase):
    def test_a_command_may_be_cut_at_every_byte(self):
        client = self.client()
        data = encode("ECHO", "split \r\n here") + encode("PING") + b"ECHO 'by hand'\r\n"
        for cut in range(1, len(data)):
            client.send_bytes(data[:cut])
            client.send_bytes(data[cut:])  # TCP_NODELAY: two segments, so usually two reads.
            self.assertEqual(
                [client.read() for _ in range(3)], ["split \r\n here", "PONG", "by hand"], cut
            )

    def test_a_command_may_arrive_byte_by_byte(self):
        client = self.client(3)
        lock = self.lock()
        for byte in encode("ACQUIRE", lock, "TTL", 60000, "OWNER", "slow"):
            client.send_bytes(bytes([byte]))
        grant = client.read()
        self.assertGranted(grant)
        self.assertEqual(self.holders(client, lock)[0]["owner"], "slow")

    def test_half_commands_do_not_delay_others(self):
        data = encode("ECHO", "half")
        halves = [self.client() for _ in range(100)]
        for n, half in enumerate(halves):
            half.send_bytes(data[: 1 + n % (len(data) - 1)])
        other = self.client()
        self.assertEqual(other.pipeline([["PING"]] * 100), ["PONG"] * 100)
        for n, half in enumerate(halves):
            half.send_bytes(data[1 + n % (len(data) - 1) :])
        self.assertEqual([half.read() for half in halves], ["half"] * 100)


class SizeTest(harness.PawldCase):
    def frame_of(self, size):
        """An ECHO whose frame is exactly `size` bytes."""
        head = len(encode("ECHO", "")) - 1
        text = "x" * (size - head - 5)
        frame = encode("ECHO", text)
        self.assertEqual(len(frame), size)
        return frame, text

    def closes(self, data, code=b"-TOOLONG "):
        client = self.client()
        client.send_bytes(data)
        answer = client.read_to_end()
        self.assertTrue(answer.startswith(code), answer[:200])
        return answer

    def test_frame_limit_is_64_kib(self):
        client = self.client()
        frame, text = self.frame_of(FRAME_MAX)
        client.send_bytes(frame)
        self.assertEqual(client.read(), text)
        frame, _ = self.frame_of(FRAME_MAX + 1)
        self.assertIn(b"65536", self.closes(frame))

    def test_endless_inline_line_is_cut_off(self):
        self.closes(b"x" * (FRAME_MAX + 1))

    def test_giant_lengths_are_refused_before_their_bytes(self):
        for data in (
            b"*1\r\n$65536\r\n",
            b"*1\r\n$2147483647\r\n",
            b"*2\r\n$4\r\nECHO\r\n$536870912\r\n",
            b"*2049\r\n",
            b"*1048576\r\n",
            b"*1\r\n$9999999999\r\n",
        ):
            with self.subTest(data=data):
                self.closes(data)

    def test_lengths_beyond_64_bits_are_malformed(self):
        for data in (b"*1\r\n$99999999999999999999\r\n", b"*99999999999999999999\r\n"):
            with self.subTest(data=data):
                self.closes(data, b"-ERR ")

    def test_announced_bytes_allocate_no_memory(self):
        other = self.client()
        other.pipeline([["PING"]] * 100)
        before = self.pawld.rss_bytes()
        # Each claims nearly a whole frame, or a great many arguments, and sends none of it.
        clients = []
        for n in range(2000):
            client = self.client()
            client.send_bytes(
                b"*2048\r\n$4\r\nPING\r\n" if n % 2 else b"*2\r\n$4\r\nECHO\r\n$65000\r\n"
            )
            clients.append(client)
        self.assertEqual(other.pipeline([["PING"]] * 100), ["PONG"] * 100)
        self.assertGrewLess(
            before, 40 << 20, "allocated up front it would be 2,000 x 64 KiB = 125 MiB"
        )

    def test_repeated_giant_lengths_leak_no_memory(self):
        other = self.client()
        self.closes(b"*1\r\n$2147483647\r\n")
        before = self.pawld.rss_bytes()
        for _ in range(300):
            self.closes(b"*1\r\n$2147483647\r\n")
        self.assertEqual(other.call("PING"), "PONG")
        self.assertGrewLess(before, 16 << 20, "refused lengths leave memory behind")


class MalformedTest(harness.PawldCase):
    def test_malformed_frame_gets_one_error_and_is_closed(self):
        for data in (
            b"*1\r\n:1\r\n",
            b"*1\r\n+OK\r\n",
            b"*-1\r\n",
            b"*x\r\n",
            b"*\r\n",
            b"*+1\r\n$4\r\nPING\r\n",
            b"*01\r\n$4\r\nPING\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$x\r\n",
            b"*1\r\n$\r\n",
            b"*1\r\n$4\r\nPINGxx",
            b"*1\r\n$4\nPING\r\n",
            b"*1\r\n$3\r\nPING\r\n",
            b"*1\n$4\r\nPING\r\n",
            b"*1\r\n*1\r\n$4\r\nPING\r\n",
            b'ECHO "open\r\n',
            b"ECHO 'open\r\n",
            b'ECHO "a"b\r\n',
        ):
            with self.subTest(data=data):
                client = self.client()
                client.send_bytes(data)
                answer = client.read_to_end()
                self.assertTrue(answer.startswith(b"-ERR Protocol error"), answer)
                self.assertEqual(answer.count(b"\r\n"), 1)

    def test_garbage_does_not_affect_other_connections(self):
        dice = random.Random(7295)
        other = self.client()
        for _ in range(200):
            with self.pawld.client() as client:
                size = dice.randrange(1, 300)
                client.send_bytes(
                    bytes(
                        dice.choice(b"*$\r\n0123456789PINGACQUIRE \x00\xff:%_\"'")
                        for _ in range(size)
                    )
                )
        self.assertEqual(other.call("PING"), "PONG")


class InlineTest(harness.PawldCase):
    def test_inline_commands_work(self):
        client = self.client()
        lock = self.lock()
        client.send_bytes(f'acquire {lock} ttl 60000 owner "a b\\x41\\n"\r\n'.encode())
        self.assertError(client.read(), "ERR", "control characters")
        client.send_bytes(f'acquire {lock} ttl 60000 owner "a b\\x41"\n'.encode())
        self.assertEqual(fields(client.read())["ttl_ms"], 60000)
        self.assertEqual(self.holders(client, lock)[0]["owner"], "a bA")

    def test_blank_lines_and_empty_arrays_are_skipped(self):
        client = self.client()
        client.send_bytes(b"\r\n\n   \r\n*0\r\nPING\r\n")
        self.assertEqual(client.read(), "PONG")
        self.assertTrue(client.silent())

    def test_inline_and_framed_commands_mix(self):
        client = self.client()
        client.send_bytes(b"PING\r\n" + encode("ECHO", "framed") + b"ECHO line\n")
        self.assertEqual([client.read() for _ in range(3)], ["PONG", "framed", "line"])


if __name__ == "__main__":
    harness.main()
