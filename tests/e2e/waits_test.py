"""Waiting: in order, one message each, and no grant to a waiter that has gone."""

import selectors
import socket

from pawltest import harness
from pawltest.harness import fields, request_id, wait_until

WAITERS = 1000


class QueueTest(harness.PawldCase):
    def queue(self, lock, count, first=0):
        """`count` blocking waiters whose order of arrival is known; each has its own connection."""
        probe = self.client()
        queued = []
        for n in range(first, first + count):
            client = self.client(3)
            client.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 600000, "OWNER", f"w{n}")
            queued.append(client)
            if n % 100 == 99 or n == first + count - 1:
                self.waiting(probe, lock, len(queued))
        return queued

    def one_by_one(self, lock, count):
        """As queue(), with each arrival confirmed before the next: a strict order."""
        probe = self.client()
        queued = []
        for n in range(count):
            client = self.client(3)
            client.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 600000, "OWNER", f"w{n}")
            queued.append(client)
            self.waiting(probe, lock, n + 1)
        return queued

    def test_thousand_waiters_are_served_in_order_with_one_message_each(self):
        # Hard cases 22, 23: no herd, no overtaking.
        lock = self.lock()
        holder = self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        waiters = self.one_by_one(lock, WAITERS)
        hello = [waiter.received for waiter in waiters]
        selector = selectors.DefaultSelector()
        for n, waiter in enumerate(waiters):
            selector.register(waiter.socket, selectors.EVENT_READ, n)
        releaser, last_token = holder, 0
        for n, waiter in enumerate(waiters):
            self.assertEqual(releaser.call("RELEASE", lease), 1)
            ready = {key.data for key, _ in selector.select(timeout=harness.PATIENCE)}
            self.assertEqual(ready, {n}, "another waiter got a message, or none did")
            grant = waiter.read()
            self.assertEqual(waiter.received - hello[n], len(waiter.raw), "more than one message")
            self.assertGreater(grant["token"], last_token)
            lease, last_token, releaser = grant["lease"], grant["token"], waiter
            selector.unregister(waiter.socket)
        self.assertEqual(releaser.call("RELEASE", lease), 1)
        for waiter in waiters:
            self.assertTrue(waiter.silent())
        self.assertEqual(self.inspect(holder, lock)["state"], "free")

    def test_a_thousand_waiters_that_hang_up_leave_no_queue(self):
        # Hard case 20.
        lock = self.lock()
        holder = self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        waiters = self.queue(lock, WAITERS)
        self.waiting(holder, lock, WAITERS)
        for n, waiter in enumerate(waiters):
            # Half of them with a reset, as a killed process with unread data leaves behind.
            if n % 2:
                waiter.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
                )
            waiter.close()
        self.waiting(holder, lock, 0)
        last = self.inspect(holder, lock)["token"]
        self.assertEqual(holder.call("RELEASE", lease), 1)
        self.assertEqual(self.inspect(holder, lock)["state"], "free")
        self.assertEqual(
            fields(holder.call("HISTORY", lock)[0])["token"],
            last,
            "a waiter that had gone was granted",
        )
        self.assertGreater(self.acquire(holder, lock)["token"], last)

    def test_hang_up_of_the_first_waiter_serves_the_next(self):
        # Hard case 19: hang-ups count before grants.
        lock = self.lock()
        holder = self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        first, second = self.one_by_one(lock, 2)
        first.close()
        self.assertEqual(holder.call("RELEASE", lease), 1)
        grant = second.read()
        self.assertGranted(grant)
        self.assertEqual(self.holders(holder, lock)[0]["owner"], "w1")

    def test_hang_up_and_release_in_one_turn_skip_the_lost_waiter(self):
        # Hard case 19. pawld is stopped meanwhile, so both wait for it when it wakes; the release
        # was sent first.
        lock = self.lock()
        for _ in range(10):
            holder = self.client(3)
            lease = self.acquire(holder, lock)["lease"]
            gone, alive = self.one_by_one(lock, 2)
            self.pawld.pause()
            holder.send("RELEASE", lease)
            gone.close()
            self.pawld.resume()
            self.assertEqual(holder.read(), 1)
            grant = alive.read()
            self.assertEqual([entry["owner"] for entry in self.holders(holder, lock)], ["w1"])
            self.assertEqual(alive.call("RELEASE", grant["lease"]), 1)
            ended = [fields(entry)["token"] for entry in holder.call("HISTORY", lock, "COUNT", 2)]
            self.assertEqual(ended[0], grant["token"])
            self.assertEqual(ended[0], ended[1] + 1, "a token in between went to nobody")

    def test_a_frozen_waiter_with_an_open_socket_costs_one_ttl(self):
        # Hard case 19, the second half: it cannot be distinguished from a live one.
        lock = self.lock()
        holder = self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        frozen, alive = self.client(3), self.client(3)
        frozen.send("ACQUIRE", lock, "TTL", 200, "WAIT", 600000)
        self.waiting(holder, lock, 1)
        alive.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 600000)
        self.waiting(holder, lock, 2)
        holder.call("RELEASE", lease)
        grant = alive.read()
        self.assertGreater(grant["token"], frozen.read()["token"])

    def test_inspect_counts_all_waiters_and_shows_the_first_sixteen(self):
        lock = self.lock()
        holder = self.client(3)
        self.acquire(holder, lock)
        self.queue(lock, 20)
        seen = self.inspect(holder, lock)
        self.assertEqual(seen["waiters"], 20)
        self.assertEqual(len(seen["queue"]), 16)
        self.assertEqual(fields(seen["queue"][0])["owner"], "w0")

    def test_waiter_gets_null_at_its_timeout(self):
        lock = self.lock()
        holder = self.client(3)
        self.acquire(holder, lock)
        self.assertIsNone(self.client(3).call("ACQUIRE", lock, "TTL", 1000, "WAIT", 100))
        self.assertEqual(self.inspect(holder, lock)["waiters"], 0)

    def test_waited_ms_is_measured_by_pawld_and_repeated_to_retries(self):
        lock, request = self.lock(), request_id()
        holder, waiter = self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        waiter.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000, "REQUEST", request)
        wait_until(
            lambda: (queue := self.inspect(holder, lock)["queue"])
            and fields(queue[0])["waited_ms"] >= 60,
            "it has waited a while",
        )
        holder.call("RELEASE", lease)
        grant = waiter.read()
        self.assertGreaterEqual(grant["waited_ms"], 60)
        self.assertEqual(
            self.client(3).call("ACQUIRE", lock, "TTL", 60000, "REQUEST", request), grant
        )

    def test_readers_do_not_overtake_a_waiting_writer(self):
        # Hard case 23: shared mode cannot starve exclusive.
        lock = self.lock()
        reader, writer, late = self.client(3), self.client(3), self.client(3)
        first = self.acquire(reader, lock, "SHARED")
        writer.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000)
        self.waiting(reader, lock, 1)
        self.assertIsNone(late.call("ACQUIRE", lock, "TTL", 60000, "SHARED"))
        late.send("ACQUIRE", lock, "TTL", 60000, "SHARED", "WAIT", 60000)
        self.waiting(reader, lock, 2)
        reader.call("RELEASE", first["lease"])
        grant = writer.read()
        self.assertTrue(late.silent())
        writer.call("RELEASE", grant["lease"])
        self.assertGranted(late.read())

    def test_readers_at_the_head_are_granted_together(self):
        lock = self.lock()
        writer = self.client(3)
        lease = self.acquire(writer, lock)["lease"]
        readers = [self.client(3) for _ in range(3)]
        for n, reader in enumerate(readers):
            reader.send("ACQUIRE", lock, "TTL", 60000, "SHARED", "WAIT", 60000)
            self.waiting(writer, lock, n + 1)
        writer.call("RELEASE", lease)
        tokens = [reader.read()["token"] for reader in readers]
        self.assertEqual(tokens, sorted(tokens))
        self.assertEqual(len(self.holders(writer, lock)), 3)

    def test_two_locks_in_opposite_order_do_not_deadlock(self):
        # Hard case 24: taking both with AND cannot deadlock, and arrival order keeps it from
        # starving.
        a, b = self.lock("a"), self.lock("b")
        holder, one, two = self.client(3), self.client(3), self.client(3)
        lease = self.acquire(holder, a)["lease"]
        one.send("ACQUIRE", a, "AND", b, "TTL", 60000, "WAIT", 60000)
        self.waiting(holder, b, 1)
        two.send("ACQUIRE", b, "AND", a, "TTL", 60000, "WAIT", 60000)
        self.waiting(holder, b, 2)
        self.assertIsNone(
            holder.call("ACQUIRE", b, "TTL", 1000), "b is idle behind the waiters for both"
        )
        holder.call("RELEASE", lease)
        grant = one.read()
        self.assertTrue(two.silent())
        one.call("RELEASE", grant["lease"])
        self.assertGranted(two.read())


class BlockingTest(harness.PawldCase):
    def test_waiting_connection_serves_nothing_else(self):
        lock = self.lock()
        holder, waiter = self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        waiter.send_bytes(
            harness.resp.encode("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000)
            + harness.resp.encode("PING")
        )
        self.waiting(holder, lock, 1)
        holder.pipeline([["PING"]] * 100)
        self.assertTrue(waiter.silent())
        holder.call("RELEASE", lease)
        self.assertGranted(waiter.read())
        self.assertEqual(waiter.read(), "PONG")

    def test_half_close_cancels_a_wait_but_answers_earlier_commands(self):
        lock = self.lock()
        holder, waiter = self.client(3), self.client(3)
        self.acquire(holder, lock)
        waiter.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000)
        self.waiting(holder, lock, 1)
        waiter.socket.shutdown(socket.SHUT_WR)
        self.waiting(holder, lock, 0)

    def test_waiter_with_megabytes_pipelined_leaves_the_queue_on_hang_up(self):
        # Hard cases 19, 20: what it sent behind the wait must not hide that it has gone.
        lock = self.lock()
        holder, waiter = self.client(3), self.client(3)
        self.acquire(holder, lock)
        waiter.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 600000)
        self.waiting(holder, lock, 1)
        waiter.socket.setblocking(False)
        flood = harness.resp.encode("PING") * (4 << 20 >> 4)
        try:
            while flood:
                flood = flood[waiter.socket.send(flood[:65536]) :]
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass  # Nothing more is taken, or it was cut: both are fine.
        waiter.close()
        wait_until(
            lambda: self.inspect(holder, lock)["waiters"] == 0,
            "the waiter that has gone leaves the queue",
            patience=15,
        )

    def test_commands_read_before_a_hang_up_apply(self):
        lock = self.lock()
        leaver, other = self.client(3), self.client(3)
        lease = self.acquire(other, lock)["lease"]
        leaver.send("RELEASE", lease)
        leaver.close()
        wait_until(lambda: self.inspect(other, lock)["state"] == "free", "the release applied")

    def test_pipeline_before_a_half_close_is_answered(self):
        client = self.client(3)
        lock = self.lock()
        client.send_bytes(
            harness.resp.encode("PING")
            + harness.resp.encode("ACQUIRE", lock, "TTL", 60000, "OWNER", "nc")
        )
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(client.read(), "PONG")
        self.assertGranted(client.read())
        self.assertEqual(client.read_to_end(), b"")

    def test_cancel_from_another_connection_ends_a_blocking_wait_with_null(self):
        # Hard case 18: cancelled and not granted.
        lock, request = self.lock(), request_id()
        holder, waiter = self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        waiter.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000, "REQUEST", request)
        self.waiting(holder, lock, 1)
        self.assertEqual(holder.call("CANCEL", request), 1)
        self.assertIsNone(waiter.read())
        self.assertEqual(holder.call("CANCEL", request), 0)
        holder.call("RELEASE", lease)
        self.assertEqual(self.inspect(holder, lock)["state"], "free")
        self.assertEqual(waiter.call("PING"), "PONG")

    def test_cancel_racing_with_release_has_one_outcome(self):
        # Hard case 18: never granted to nobody. Release and cancel leave together on two
        # connections.
        lock = self.lock()
        holder, waiter, canceller = self.client(3), self.client(3), self.client(3)
        outcomes = set()
        for _ in range(300):
            request = request_id()
            lease = self.acquire(holder, lock)["lease"]
            waiter.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000, "REQUEST", request)
            self.waiting(holder, lock, 1)
            holder.send("RELEASE", lease)
            canceller.send("CANCEL", request)
            self.assertEqual(holder.read(), 1)
            cancelled, answer = canceller.read(), waiter.read()
            outcomes.add(cancelled)
            self.assertEqual(cancelled == 1, answer is None, "CANCEL and the wait disagree")
            if answer is not None:
                self.assertEqual(self.inspect(holder, lock)["token"], answer["token"])
                self.assertEqual(waiter.call("RELEASE", answer["lease"]), 1)
            self.assertEqual(self.inspect(holder, lock)["state"], "free")
        self.assertLessEqual(outcomes, {0, 1})

    def test_release_racing_with_a_new_waiter_wakes_it(self):
        # Hard case 21: no lost wake-up. Release and acquire leave together on two connections.
        lock = self.lock()
        holder, waiter = self.client(3), self.client(3)
        for _ in range(500):
            lease = self.acquire(holder, lock)["lease"]
            waiter.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 600000)
            holder.send("RELEASE", lease)
            self.assertEqual(holder.read(), 1)
            grant = waiter.read()
            self.assertGranted(grant)
            self.assertEqual(waiter.call("RELEASE", grant["lease"]), 1)

    def test_retry_on_a_second_connection_keeps_the_place(self):
        # Hard case 4: the newest connection owns the wait; the first may hang up without harm.
        lock, request = self.lock(), request_id()
        holder, first, second, behind = (self.client(3) for _ in range(4))
        lease = self.acquire(holder, lock)["lease"]
        words = ["ACQUIRE", lock, "TTL", 60000, "WAIT", 60000, "REQUEST", request]
        first.send(*words)
        self.waiting(holder, lock, 1)
        behind.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000)
        self.waiting(holder, lock, 2)
        second.send(*words)
        self.assertError(first.read(), "CONFLICT", "supersede")
        self.assertEqual(self.inspect(holder, lock)["waiters"], 2)
        first.close()
        holder.call("RELEASE", lease)
        self.assertGranted(second.read())
        self.assertTrue(behind.silent())

    def test_reconnected_waiter_queues_at_the_end(self):
        # Hard case 20.
        lock, request = self.lock(), request_id()
        holder, first, behind = self.client(3), self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        words = ["ACQUIRE", lock, "TTL", 60000, "WAIT", 60000, "REQUEST", request]
        first.send(*words)
        self.waiting(holder, lock, 1)
        behind.send("ACQUIRE", lock, "TTL", 60000, "WAIT", 60000)
        self.waiting(holder, lock, 2)
        first.close()
        self.waiting(holder, lock, 1)
        again = self.client(3)
        again.send(*words)
        self.waiting(holder, lock, 2)
        holder.call("RELEASE", lease)
        self.assertGranted(behind.read())
        self.assertTrue(again.silent())


class AsyncTest(harness.PawldCase):
    def wait_async(self, client, lock, request, wait=60000):
        return client.call("ACQUIRE", lock, "TTL", 60000, "WAIT", wait, "ASYNC", "REQUEST", request)

    def test_async_free_lock_is_granted_in_the_answer(self):
        client = self.client(3)
        self.assertGranted(self.wait_async(client, self.lock(), request_id()))
        self.assertEqual(client.call("PING"), "PONG")
        self.assertTrue(client.silent())

    def test_async_wait_gets_its_position_then_one_push(self):
        lock, request = self.lock(), request_id()
        holder, client = self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        self.assertEqual(self.wait_async(client, lock, request), {"state": "queued", "position": 1})
        self.assertEqual(client.call("PING"), "PONG", "the connection stays free")
        holder.call("RELEASE", lease)
        push = client.read()
        self.assertIsInstance(push, harness.resp.Push)
        self.assertEqual(push[:3], ["pawl", "granted", request])
        self.assertEqual(list(push[3]), ["lease", "token", "floor", "slot", "ttl_ms", "waited_ms"])
        self.assertEqual(client.call("RENEW", push[3]["lease"]), 60000)
        self.assertTrue(client.silent())

    def test_a_timeout_is_pushed_once(self):
        lock, request = self.lock(), request_id()
        holder, client = self.client(3), self.client(3)
        self.acquire(holder, lock)
        self.wait_async(client, lock, request, wait=50)
        push = client.read()
        self.assertEqual(push[:3], ["pawl", "timeout", request])
        self.assertEqual(push[3], {})
        self.assertEqual(self.inspect(holder, lock)["waiters"], 0)

    def test_cancel_is_pushed_to_the_waiter(self):
        lock, request = self.lock(), request_id()
        holder, client = self.client(3), self.client(3)
        self.acquire(holder, lock)
        self.wait_async(client, lock, request)
        self.assertEqual(holder.call("CANCEL", request), 1)
        self.assertEqual(client.read()[:3], ["pawl", "cancelled", request])

    def test_cancel_on_its_own_connection_answers_and_pushes(self):
        lock, request = self.lock(), request_id()
        holder, client = self.client(3), self.client(3)
        self.acquire(holder, lock)
        self.wait_async(client, lock, request)
        client.send("CANCEL", request)
        frames = [client.read(), client.read()]
        pushes = [frame for frame in frames if isinstance(frame, harness.resp.Push)]
        self.assertEqual(
            [frame for frame in frames if not isinstance(frame, harness.resp.Push)], [1]
        )
        self.assertEqual(pushes[0][:3], ["pawl", "cancelled", request])

    def test_the_same_request_again_while_queued_returns_the_position(self):
        lock, request = self.lock(), request_id()
        holder, client = self.client(3), self.client(3)
        self.acquire(holder, lock)
        self.assertEqual(self.wait_async(client, lock, request)["position"], 1)
        self.assertEqual(self.wait_async(client, lock, request), {"state": "queued", "position": 1})
        self.assertEqual(self.inspect(holder, lock)["waiters"], 1)
        self.assertTrue(client.silent())

    def test_a_second_connection_supersedes_the_first(self):
        # Hard case 4.
        lock, request = self.lock(), request_id()
        holder, first, second = self.client(3), self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        self.wait_async(first, lock, request)
        self.assertEqual(self.wait_async(second, lock, request), {"state": "queued", "position": 1})
        self.assertEqual(first.read()[:3], ["pawl", "superseded", request])
        first.close()
        holder.call("RELEASE", lease)
        self.assertEqual(second.read()[:3], ["pawl", "granted", request])

    def test_a_hang_up_cancels_all_waits_of_a_connection(self):
        locks = [self.lock() for _ in range(50)]
        holder, client = self.client(3), self.client(3)
        for lock in locks:
            self.acquire(holder, lock)
            self.wait_async(client, lock, request_id())
        client.close()
        for lock in locks:
            self.waiting(holder, lock, 0)

    def test_reset_cancels_the_waits_of_a_connection(self):
        lock = self.lock()
        holder, client = self.client(3), self.client(3)
        self.acquire(holder, lock)
        self.wait_async(client, lock, request_id())
        self.assertIn("RESET", (client.call("RESET"), client.silent() or client.read()))
        self.waiting(holder, lock, 0)

    def test_connection_may_have_1024_waits(self):
        lock = self.lock()
        holder, client = self.client(3), self.client(3)
        lease = self.acquire(holder, lock)["lease"]
        replies = client.pipeline(
            ["ACQUIRE", lock, "TTL", 60000, "WAIT", 60000, "ASYNC", "REQUEST", request_id()]
            for _ in range(1024)
        )
        self.assertEqual([reply["position"] for reply in replies], list(range(1, 1025)))
        self.assertError(self.wait_async(client, lock, request_id()), "BUSY", "1024")
        self.assertEqual(client.call("PING"), "PONG")
        holder.call("RELEASE", lease)
        self.assertEqual(client.read()[1], "granted")
        self.assertEqual(
            self.wait_async(client, lock, request_id())["state"], "queued", "there is room again"
        )


if __name__ == "__main__":
    harness.main()
