"""Restarts, pauses and refusals to start. What is decided is what pawld says (tokens,
expires_in_ms), never a stopwatch."""

import re
import shutil
import subprocess
import time

from pawltest import harness
from pawltest.harness import fields, request_id, wait_until

PAUSE_COUNTED_MS = 250  # At most this much of a pause of pawld counts against leases.


class RestartCase(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None  # Each test has its own.

    def fresh(self, **options):
        server = self.own_pawld(**options)
        return server, self.client(3, server)


class RestartTest(RestartCase):
    def test_leases_survive_kill_9_and_a_clean_stop(self):
        server, client = self.fresh()
        request = request_id()
        one = self.acquire(client, "one", "OWNER", "batch", "META", "k", "v", "REQUEST", request)
        both = self.acquire(client, "a", "AND", "b")
        reader = self.acquire(client, "read", "SHARED")
        slot = self.acquire(client, "pool", "LIMIT", 3)
        for stop in (server.kill, server.terminate):
            stop()
            server.start()
            client = self.client(3, server)
            holder = self.holders(client, "one")[0]
            self.assertEqual(
                (holder["token"], holder["owner"], holder["meta"]),
                (one["token"], "batch", {"k": "v"}),
            )
            self.assertEqual(
                self.acquire(client, "one", "REQUEST", request), one, "a retry is the same grant"
            )
            self.assertEqual(
                [self.inspect(client, lock)["token"] for lock in ("a", "b")], [both["token"]] * 2
            )
            self.assertEqual(self.holders(client, "read")[0]["mode"], "shared")
            self.assertEqual(self.holders(client, "pool")[0]["slot"], slot["slot"])
            leases = [grant["lease"] for grant in (one, both, reader, slot)]
            self.assertEqual(client.call("MRENEW", *leases), [60000] * 4)
        self.assertEqual([client.call("RELEASE", lease) for lease in leases], [1] * 4)

    def test_twenty_thousand_leases_survive_a_kill(self):
        server, client = self.fresh()
        count = 20_000
        grants = client.pipeline(["ACQUIRE", f"many/{n}", "TTL", 600000] for n in range(count))
        server.restart()
        client = self.client(3, server)
        self.assertEqual(client.call("STATUS")["leases"], count)
        leases = [grant["lease"] for grant in grants]
        for at in range(0, count, 1000):
            self.assertEqual(client.call("MRENEW", *leases[at : at + 1000]), [600000] * 1000)
        self.assertGreater(
            self.acquire(client, "next")["token"], max(grant["token"] for grant in grants)
        )

    def test_a_release_stays_released(self):
        server, client = self.fresh()
        lease = self.acquire(client, "gone")["lease"]
        self.assertEqual(client.call("RELEASE", lease), 1)
        server.restart()
        client = self.client(3, server)
        self.assertEqual(self.inspect(client, "gone")["state"], "free")
        self.assertError(client.call("RENEW", lease), "LOST")

    def test_tokens_move_forward_over_every_kind_of_stop(self):
        # Hard case 13.
        server, client = self.fresh()
        last = 0
        for round_number in range(6):
            grant = self.acquire(client, f"lock-{round_number}")
            self.assertGreater(grant["token"], last)
            last = grant["token"]
            if round_number % 2:
                server.kill()
            else:
                self.assertEqual(server.terminate(), 0)
            server.start()
            client = self.client(3, server)
            self.assertGreaterEqual(fields(client.call("STATUS"))["last_token"], last)

    def test_skipped_tokens_after_a_kill_are_logged(self):
        server, client = self.fresh()
        granted = self.acquire(client, "a")["token"]
        server.kill()
        server.start()
        wait_until(lambda: "did not stop cleanly" in server.log(), "the recovery is logged")
        line = re.search(r".*did not stop cleanly.*", server.log())[0]
        skipped = int(re.search(r"Tokens continue after ([0-9]+)", line)[1])
        self.assertEqual(skipped, fields(self.client(3, server).call("STATUS"))["last_token"])
        self.assertGreater(skipped, granted)
        self.assertIn("reserved in blocks of 4096", line)

    def test_a_raise_survives_a_kill(self):
        server, client = self.fresh()
        self.assertEqual(client.call("RAISE", 1_000_000, "REASON", "drill"), 1_000_000)
        server.restart()
        self.assertGreater(self.acquire(self.client(3, server), "next")["token"], 1_000_000)

    def test_a_break_survives_a_kill(self):
        server, client = self.fresh()
        grant = self.acquire(client, "broken")
        client.call("BREAK", "broken", "TOKEN", grant["token"], "REASON", "drill")
        server.restart()
        client = self.client(3, server)
        self.assertError(client.call("RENEW", grant["lease"]), "LOST", "broken")
        self.assertIsNone(client.call("ACQUIRE", "broken", "TTL", 1000))

    def test_delay_survives_a_kill_and_restarts(self):
        server, client = self.fresh()
        self.acquire(client, "closed", "DELAY", 60000, ttl=100)
        wait_until(
            lambda: (seen := self.inspect(client, "closed"))["state"] == "closed"
            and seen["reopens_in_ms"] < 59000,
            "it is closed, and a second has passed",
        )
        server.restart()
        client = self.client(3, server)
        seen, status = client.pipeline([["INSPECT", "closed"], ["STATUS"]])
        self.assertEqual(seen["state"], "closed")
        self.assertGreaterEqual(seen["reopens_in_ms"] + status["uptime_ms"], 60000)

    def test_every_lease_starts_with_its_full_ttl_again(self):
        # G4. What was used up before the restart is given back: left + uptime is at least the TTL.
        server, client = self.fresh()
        self.acquire(client, "kind", ttl=60000)
        wait_until(
            lambda: self.holders(client, "kind")[0]["expires_in_ms"] < 59000, "a second has passed"
        )
        for stop in (server.kill, server.terminate):
            stop()
            server.start()
            client = self.client(3, server)
            seen, status = client.pipeline([["INSPECT", "kind"], ["STATUS"]])
            left = seen["holders"][0]["expires_in_ms"]
            self.assertLessEqual(left, 60000)
            self.assertGreaterEqual(left + status["uptime_ms"], 60000)

    def test_free_locks_are_granted_at_once_after_a_restart(self):
        server, client = self.fresh()
        self.acquire(client, "held", ttl=600000)
        server.restart()
        self.acquire(self.client(3, server), "free")

    def test_history_is_empty_after_a_restart(self):
        server, client = self.fresh()
        client.call("RELEASE", self.acquire(client, "h")["lease"])
        server.restart()
        self.assertEqual(self.client(3, server).call("HISTORY", "h"), [])

    def test_renewing_holder_keeps_its_lock_over_restarts(self):
        # Hard case 28: restart loop at TTL/3.
        ttl = 3000
        server, client = self.fresh()
        grant = self.acquire(client, "steady", ttl=ttl)
        for _ in range(7):
            wait_until(
                lambda: self.holders(client, "steady")[0]["expires_in_ms"] < ttl * 2 // 3,
                "a third has passed",
            )
            self.assertEqual(client.call("RENEW", grant["lease"]), ttl)
            server.restart()
            client = self.client(3, server)
            self.assertIsNone(client.call("ACQUIRE", "steady", "TTL", 1000))
            self.assertEqual(client.call("RENEW", grant["lease"]), ttl)
            self.assertEqual(self.inspect(client, "steady")["token"], grant["token"])

    def test_dead_holder_costs_one_ttl_per_restart(self):
        # Hard case 29: kill -9 ten times at TTL/2 with a dead holder; freed within one TTL of the
        # last restart.
        ttl = 1000
        server, client = self.fresh()
        grant = self.acquire(client, "orphan", ttl=ttl)
        for _ in range(10):
            wait_until(
                lambda: self.inspect(client, "orphan")["state"] == "free"
                or self.holders(client, "orphan")[0]["expires_in_ms"] < ttl // 2,
                "half the TTL has passed",
            )
            server.restart()
            client = self.client(3, server)
        # waited_ms is pawld's own figure: it cannot exceed what the lease had left after the
        # restart.
        next_grant = self.acquire(client, "orphan", "WAIT", 60000)
        self.assertGreater(next_grant["token"], grant["token"])
        self.assertLessEqual(next_grant["waited_ms"], ttl + PAUSE_COUNTED_MS)

    def test_waiters_of_a_killed_pawld_are_disconnected(self):
        server, client = self.fresh()
        self.acquire(client, "w")
        waiter = self.client(3, server)
        waiter.send("ACQUIRE", "w", "TTL", 1000, "WAIT", 60000)
        self.waiting(client, "w", 1)
        server.kill()
        self.assertEqual(waiter.read_to_end(), b"")


class CleanStopTest(RestartCase):
    def test_sigterm_exits_0_and_closes_waiters_without_a_reply(self):
        server, client = self.fresh()
        self.acquire(client, "w")
        blocking, pushed = self.client(3, server), self.client(3, server)
        blocking.send("ACQUIRE", "w", "TTL", 1000, "WAIT", 60000)
        self.waiting(client, "w", 1)
        pushed.call("ACQUIRE", "w", "TTL", 1000, "WAIT", 60000, "ASYNC", "REQUEST", request_id())
        self.assertEqual(server.terminate(), 0)
        self.assertEqual(blocking.read_to_end(), b"")
        self.assertEqual(pushed.read_to_end(), b"")
        self.assertEqual(client.read_to_end(), b"")

    def test_commands_before_sigterm_are_answered_or_not_applied(self):
        server, client = self.fresh()
        count = 2000
        client.send_bytes(
            b"".join(harness.resp.encode("ACQUIRE", f"p/{n}", "TTL", 60000) for n in range(count))
        )
        grants = [client.read()]
        server.process.terminate()
        try:
            while len(grants) < count:
                grants.append(client.read())
        except harness.Closed:
            pass
        self.assertEqual(server.wait(), 0)
        server.start()
        client = self.client(3, server)
        for grant in grants:
            self.assertGranted(grant)
        self.assertEqual(
            client.pipeline(["RENEW", grant["lease"]] for grant in grants), [60000] * len(grants)
        )
        self.assertEqual(
            fields(client.call("STATUS"))["leases"], len(grants), "done, but never answered"
        )

    def test_sigint_stops_cleanly(self):
        server, _ = self.fresh()
        server.process.send_signal(2)
        self.assertEqual(server.wait(), 0)


class PauseTest(RestartCase):
    """Hard case 27: pawld itself is stopped with SIGSTOP and continued."""

    def paused(self, server, client, lock, seconds):
        """Stops pawld for a while; (ms left before, ms left after, ms that passed outside the
        pause)."""
        before = time.monotonic()
        left = self.holders(client, lock)[0]["expires_in_ms"]
        server.pause()
        stopped = time.monotonic()
        time.sleep(seconds)  # Not for luck: the length of the pause is what is tested.
        client.send("INSPECT", lock)
        resumed = time.monotonic()
        server.resume()
        seen = client.read()
        outside = (stopped - before) + (time.monotonic() - resumed)
        self.assertEqual(seen["state"], "held", "expired during a pause of pawld")
        return left, seen["holders"][0]["expires_in_ms"], outside * 1000

    def test_pause_shorter_than_the_ttl_loses_no_lease(self):
        server, client = self.fresh()
        grant = self.acquire(client, "short", ttl=5000)
        waiter = self.client(3, server)
        waiter.send("ACQUIRE", "short", "TTL", 60000, "WAIT", 60000)
        self.waiting(client, "short", 1)
        left, after, outside = self.paused(server, client, "short", seconds=1.0)
        self.assertGreaterEqual(after, left - PAUSE_COUNTED_MS - outside - 1)
        self.assertEqual(client.call("RENEW", grant["lease"]), 5000)
        self.assertEqual(self.inspect(client, "short")["waiters"], 1)
        self.assertTrue(waiter.silent())
        client.call("RELEASE", grant["lease"])
        self.assertGreater(waiter.read()["token"], grant["token"])

        def logged():  # A busy machine may add shorter ones.
            lengths = re.findall(r"stood still for ([0-9.]+) s", server.log())
            return [length for length in lengths if float(length) >= 0.8]

        wait_until(logged, "the pause is in the log")
        self.assertEqual(len(logged()), 1, "one pause, one line")

    def test_long_pause_counts_250_ms_at_most(self):
        server, client = self.fresh()
        grant = self.acquire(client, "long", ttl=2000)
        waiter = self.client(3, server)
        waiter.send("ACQUIRE", "long", "TTL", 60000, "WAIT", 60000)
        self.waiting(client, "long", 1)
        self.assertEqual(client.call("RENEW", grant["lease"]), 2000)
        left, after, outside = self.paused(server, client, "long", seconds=3.0)
        self.assertGreaterEqual(after, left - PAUSE_COUNTED_MS - outside - 1)
        self.assertTrue(waiter.silent())
        self.assertEqual(
            client.call("RENEW", grant["lease"]),
            2000,
            "a renewal read before its lease falls due wins",
        )
        client.call("RELEASE", grant["lease"])
        self.assertGreater(waiter.read()["token"], grant["token"])

    def test_renewals_sent_during_a_pause_count(self):
        server, client = self.fresh()
        # Sent at once: one after the other, the first could expire before the last is granted.
        for n in range(200):
            client.send("ACQUIRE", f"many/{n}", "TTL", 1000)
        leases = [fields(client.read())["lease"] for _ in range(200)]
        self.assertEqual(client.call("MRENEW", *leases), [1000] * len(leases))
        server.pause()
        client.send("MRENEW", *leases)
        time.sleep(2.5)
        server.resume()
        self.assertEqual(client.read(), [1000] * len(leases))

    def test_abandoned_lease_ends_despite_many_pauses(self):
        server, client = self.fresh()
        grant = self.acquire(client, "left", ttl=600)
        for _ in range(3):
            server.pause()
            time.sleep(0.4)
            server.resume()
        self.assertGreater(self.acquire(client, "left", "WAIT", 60000)["token"], grant["token"])


class HandoverTest(RestartCase):
    """A pawld starts while another one still holds its data or its port."""

    def successor(self, server, **options):
        """A pawld with the data of `server`, not started yet."""
        other = self.own_pawld(start=False, **options)
        other.data = server.data
        return other

    def waits(self, other):
        wait_until(lambda: "waiting up to" in other.log(), "it says that it waits")

    def test_start_waits_for_the_data_of_a_stopping_pawld(self):
        server, client = self.fresh()
        grant = self.acquire(client, "kept")
        other = self.successor(server, resp_address=f"127.0.0.1:{server.port}")
        other.launch("--wait", "60s")
        self.waits(other)
        self.assertIn(
            f"in use by the process with pid {server.pid}; waiting up to 1m00s", other.log()
        )
        self.assertEqual(server.terminate(), 0)
        wait_until(other._serving, "the new pawld serves")
        self.assertEqual(other.port, server.port)
        self.assertEqual(self.client(3, other).call("RENEW", grant["lease"]), 60000)

    def test_start_waits_for_the_port_of_a_stopping_pawld(self):
        for where in ("resp_address", "http_address"):
            with self.subTest(where=where):
                server, _ = self.fresh()
                other = self.own_pawld(start=False)
                setattr(
                    other,
                    where,
                    f"127.0.0.1:{server.port if where == 'resp_address' else server.http_port}",
                )
                other.launch("--wait", "60s")
                self.waits(other)
                server.terminate()
                wait_until(other._serving, "the new pawld serves")

    def test_start_gives_up_on_a_running_pawld_with_78(self):
        server, client = self.fresh()
        code, output = self.successor(server).refused("--wait", "200ms")
        self.assertEqual(code, 78, output)
        self.assertIn("waiting up to 200ms", output)
        self.assertIn("Another pawld serves this data", output)
        self.assertEqual(client.call("PING"), "PONG")

    def test_signal_ends_the_wait_for_the_data(self):
        server, _ = self.fresh()
        other = self.successor(server)
        other.launch("--wait", "10m")
        self.waits(other)
        self.assertEqual(other.terminate(), 0)


class RefusalTest(RestartCase):
    def test_second_pawld_on_the_same_data_exits_78(self):
        # Hard case 41.
        server, client = self.fresh()
        code, output = server.refused()
        self.assertEqual(code, 78, output)
        self.assertIn(str(server.pid), output)
        self.assertIn(str(server.data), output)
        self.assertNotIn("waiting", output, "with --wait 0")
        self.assertEqual(client.call("PING"), "PONG", "the first goes on")
        self.acquire(client, "still")

    def test_data_of_a_killed_pawld_is_free_again(self):
        # Hard case 41: the lock is the kernel's, not a stale pid file.
        server, _ = self.fresh()
        server.kill()
        server.start()

    def test_must_exist_refuses_missing_and_empty_data(self):
        # Hard case 40: an unmounted volume must not become an empty store.
        server = self.own_pawld(start=False)
        code, output = server.refused("--must-exist")
        self.assertEqual(code, 78, output)
        self.assertIn(f"pawld init --data {server.data}", output)
        self.assertFalse(server.data.exists(), "it was created all the same")
        server.data.mkdir()
        code, output = server.refused("--must-exist")
        self.assertEqual(code, 78, output)
        self.assertEqual(list(server.data.glob("segment*")), [])

    def test_init_creates_a_store_and_keeps_an_existing_one(self):
        server = self.own_pawld(start=False)
        for output in ("created an empty store", "stays as it is"):
            done = subprocess.run(
                [harness.binary(), "init", "--data", server.data],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            self.assertIn(output, done.stdout)
        server.start("--must-exist")

    def test_must_exist_accepts_existing_data(self):
        # Hard case 40.
        server, client = self.fresh()
        grant = self.acquire(client, "kept")
        server.terminate()
        server.start("--must-exist")
        self.assertEqual(self.inspect(self.client(3, server), "kept")["token"], grant["token"])

    def test_directory_with_foreign_files_is_refused(self):
        # Hard case 40.
        server = self.own_pawld(start=False)
        server.data.mkdir()
        (server.data / "thesis.txt").write_text("not a store")
        code, output = server.refused()
        self.assertEqual(code, 78, output)
        self.assertEqual((server.data / "thesis.txt").read_text(), "not a store")

    def test_public_address_needs_insecure(self):
        server = self.own_pawld(start=False, resp_address="0.0.0.0:0")
        code, output = server.refused()
        self.assertIn(code, (64, 78), output)
        self.assertIn("--insecure", output)
        self.assertFalse(server.data.exists())

    def test_a_port_in_use_is_named(self):
        server, _ = self.fresh()
        other = self.own_pawld(start=False, resp_address=f"127.0.0.1:{server.port}")
        code, output = other.refused()
        self.assertEqual(code, 78, output)
        self.assertIn(str(server.port), output)

    def test_unknown_flags_and_settings_are_usage_errors(self):
        server = self.own_pawld(start=False)
        code, output = server.refused("--no-such-flag")
        self.assertEqual(code, 64, output)
        self.assertIn("--no-such-flag", output)
        server.config.write_text("no_such_setting = 1\n")
        code, output = server.refused()
        self.assertEqual(code, 78, output)
        self.assertIn("no_such_setting", output)
        self.assertFalse(server.data.exists())

    def test_help_and_version_are_answered(self):
        server = self.own_pawld(start=False)
        for flag in ("--help", "--version"):
            code, output = server.refused(flag)
            self.assertEqual(code, 0, output)
            self.assertIn("pawld", output)


class DamageTest(RestartCase):
    """A smoke test on real files; the store's own tests try every byte. Hard cases 38, 39."""

    def worn(self):
        """A stopped pawld whose data has closed segments and a checkpoint."""
        server, client = self.fresh()
        keep = [self.acquire(client, f"keep/{n}") for n in range(20)]
        names = ()

        def done():
            nonlocal names
            for _ in range(20):
                grant = self.acquire(client, "churn")
                client.call("RELEASE", grant["lease"])
            names = sorted(path.name for path in server.data.iterdir())
            return any(
                name.startswith("checkpoint-") and not name.endswith(".tmp") for name in names
            )

        wait_until(done, "a checkpoint was written")
        server.kill()
        return server, keep

    def refuses(self, server, name):
        code, output = server.refused()
        self.assertIn(code, (74, 78), output)
        self.assertIn(name, output)

    @staticmethod
    def flip(path, offset):
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 0x40]))

    def test_undamaged_data_is_complete(self):
        server, keep = self.worn()
        server.start()
        client = self.client(3, server)
        self.assertEqual(
            client.call("MRENEW", *[grant["lease"] for grant in keep]), [60000] * len(keep)
        )

    def test_a_flipped_byte_in_a_checkpoint_is_refused_by_name(self):
        server, _ = self.worn()
        path = max(server.data.glob("checkpoint-*"), key=lambda p: p.stat().st_mtime)
        self.flip(path, path.stat().st_size // 2)
        self.refuses(server, path.name)

    def test_a_flipped_byte_in_a_closed_segment_is_refused_by_name(self):
        server, client = self.fresh()
        for _ in range(20):
            client.call("RELEASE", self.acquire(client, "churn")["lease"])
        server.kill()
        path = min(
            server.data.glob("segment-*"), key=lambda p: int(p.name.split("-")[1].split(".")[0])
        )
        self.flip(path, 4096 + 50)  # In the first record; valid ones follow it.
        self.refuses(server, path.name)

    def test_a_missing_or_flipped_high_water_file_is_refused_by_name(self):
        server, _ = self.worn()
        path = server.data / "high-water"
        kept = server.dir / "kept"
        shutil.copy(path, kept)
        path.unlink()
        self.refuses(server, "high-water")
        shutil.copy(kept, path)
        for slot in (0, 4096):  # One alone is survived, or contradicts the records.
            self.flip(path, slot + 20)
        self.refuses(server, "high-water: offset 0: neither of its two slots is valid")
        shutil.copy(kept, path)
        server.start()

    def test_torn_tail_is_dropped_and_the_rest_kept(self):
        # Hard case 38: nothing that was acknowledged follows a torn record.
        server, client = self.fresh()
        grants = [self.acquire(client, f"t/{n}") for n in range(10)]
        server.kill()
        path = max(
            (p for p in server.data.glob("segment-*") if b"PWLR" in p.read_bytes()[4096:4100]),
            key=lambda p: int(p.name.split("-")[1].split(".")[0]),
        )
        data = path.read_bytes()
        end = data.rindex(b"PWLR")
        end += 4096
        with open(path, "r+b") as file:  # Half a record that was being written when the power went.
            file.seek(end)
            file.write(data[4096 : 4096 + 24])
        server.start()
        client = self.client(3, server)
        self.assertEqual(client.call("MRENEW", *[grant["lease"] for grant in grants]), [60000] * 10)


if __name__ == "__main__":
    harness.main()
