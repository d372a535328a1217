"""Backups of a pawld that serves, stores made from them, and data that was copied. Hard cases 42,
43, 45.

Tokens are judged by comparing them, and waits by what pawld says of them, never by a stopwatch.
"""

import json
import os
import pathlib
import re
import subprocess
import threading
import unittest

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.web import Web

ERA = 1 << 40
MAX_TTL = 2000  # The longest TTL of these services, and so how long a restored one waits.
SETTINGS = f"max_ttl_ms = {MAX_TTL}\nmax_delay_ms = 0"


def pawld(*words):
    """Runs pawld offline; (exit code, stdout, stderr)."""
    done = subprocess.run(
        [harness.binary(), *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


class BackupCase(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None  # Each test has its own.

    def serve(self, **options):
        server = self.own_pawld(settings=SETTINGS, **options)
        return server, self.client(3, server)

    def back_up(self, server, name="backup"):
        """The backup's directory, and the reply of pawld."""
        directory = server.dir / name
        with server.client(3) as client:
            done = client.call("BACKUP", directory)
        self.assertIsInstance(done, dict, done)
        self.assertEqual(done["dir"], str(directory))
        self.assertFalse(pathlib.Path(f"{directory}.partial").exists())
        return directory, done

    def restore(self, backup, *more):
        """A pawld that is not started yet, on a store made from the backup; and what pawld restore
        printed."""
        server = self.own_pawld(start=False, settings=SETTINGS)
        code, out, err = pawld("restore", "--from", backup, "--data", server.data, "--json", *more)
        self.assertEqual(code, 0, err)
        return server, json.loads(out)


class Holder(threading.Thread):
    """Renews one lease with a short TTL until stopped; `lost` is the reason of a loss."""

    def __init__(self, server, lock):
        super().__init__()
        self.client = server.client(3)
        self.grant = self.client.call("ACQUIRE", lock, "TTL", MAX_TTL)
        self.stopped = threading.Event()
        self.renewals, self.lost = 0, None

    def run(self):
        while not self.stopped.wait(0.02):
            left = self.client.call("RENEW", self.grant["lease"])
            if not isinstance(left, int):
                self.lost = left
                return
            self.renewals += 1


class Worker(threading.Thread):
    """Acquires and releases as fast as it can; keeps every token it was granted."""

    def __init__(self, server, lock):
        super().__init__()
        self.client, self.lock = server.client(3), lock
        self.stopped = threading.Event()
        self.tokens, self.refused = [], None

    def run(self):
        while not self.stopped.is_set():
            grant = self.client.call("ACQUIRE", self.lock, "TTL", MAX_TTL)
            if not isinstance(grant, dict):
                self.refused = grant
                return
            self.tokens.append(grant["token"])
            self.client.call("RELEASE", grant["lease"])


class UnderLoadTest(BackupCase):
    def test_tokens_grow_over_backup_and_restore_under_load(self):
        server, client = self.serve(segment_bytes=1 << 20)
        holders = [Holder(server, f"held/{i}") for i in range(4)]
        workers = [Worker(server, f"work/{i}") for i in range(4)]
        threads = holders + workers
        try:
            for thread in threads:
                thread.start()
            backups = []
            for i in range(5):
                counts = [len(worker.tokens) for worker in workers]
                backups.append(self.back_up(server, f"backup-{i}"))
                wait_until(
                    lambda counts=counts: all(len(w.tokens) > n for w, n in zip(workers, counts)),
                    "work goes on",
                )
            after = max(worker.tokens[-1] for worker in workers)
            wait_until(
                lambda: max(worker.tokens[-1] for worker in workers) > after + 1000,
                "1,000 grants after the backup",
            )
        finally:
            for thread in threads:
                thread.stopped.set()
            for thread in threads:
                thread.join()
        for thread in threads:
            self.addCleanup(thread.client.close)
        self.assertEqual(
            [holder.lost for holder in holders], [None] * 4, "a backup costs no holder its lease"
        )
        self.assertEqual([worker.refused for worker in workers], [None] * 4)
        tokens = [token for worker in workers for token in worker.tokens]
        self.assertEqual(len(set(tokens)), len(tokens))
        sequences = [done["sequence"] for _, done in backups]
        self.assertEqual(sequences, sorted(set(sequences)), "each holds more than the one before")
        print(
            f"{len(tokens)} grants and {sum(holder.renewals for holder in holders)} renewals "
            f"beside {len(backups)} backups"
        )
        event = client.call("OBSERVE", "")
        server.kill()

        fence = max(tokens)  # What a guard would remember.
        for directory, done in backups:
            code, out, _ = pawld("verify", "--data", directory, "--json")
            found = json.loads(out)
            self.assertEqual(
                (code, found["kind"], found["last_token"]), (0, "backup", done["last_token"])
            )
            self.assertLess(found["last_token"], fence)
            self.assertGreaterEqual(found["leases"], len(holders))

        restored, output = self.restore(backups[-1][0])
        restored_to = (output["era"], output["last_token"], output["wait_ms"])
        self.assertEqual(restored_to, (1, ERA, MAX_TTL))
        self.assertGreaterEqual(output["void_leases"], len(holders))
        restored.start()
        client = self.client(3, restored)
        for holder in holders:
            self.assertError(client.call("RENEW", holder.grant["lease"]), "LOST", "unknown")
        for i in range(4):
            waiter = self.client(3, restored)
            waiter.send("ACQUIRE", f"held/{i}", "TTL", 1000, "WAIT", 60000)
            self.assertGreater(waiter.read()["token"], max(fence, ERA))
        self.assertNotEqual(
            self.incarnation_of(client.call("OBSERVE", "")), self.incarnation_of(event)
        )

    @staticmethod
    def incarnation_of(event_id):
        return str(event_id).partition("-")[0]


class ReportTest(BackupCase):
    def test_restore_counts_void_leases_in_words(self):
        server, client = self.serve()
        self.acquire(client, "a", ttl=MAX_TTL)
        backup, _ = self.back_up(server)
        server.kill()
        code, out, err = pawld("restore", "--from", backup, "--data", server.dir / "restored")
        self.assertEqual(code, 0, err)
        # None, if the lease had expired before the backup began.
        self.assertRegex(out, r"; (1 lease of the backup is|0 leases of the backup are) void\n")


class CountdownTest(BackupCase):
    def restored(self, *more):
        server, client = self.serve()
        self.acquire(client, "a", ttl=MAX_TTL)
        backup, _ = self.back_up(server)
        server.kill()
        return self.restore(backup, *more)[0]

    def test_restore_grants_nothing_for_the_longest_ttl(self):
        server = self.restored().start()
        client = self.client(3, server)
        left = client.call("STATUS")["restoring_ms"]
        self.assertTrue(0 < left <= MAX_TTL, left)
        self.assertError(client.call("ACQUIRE", "free", "TTL", 1000), "BUSY", "restoring", "ms")
        logged = r"nothing is granted for \d+ s, so that leases granted after the backup can expire"
        wait_until(lambda: re.search(logged, server.log()), "it is logged")
        waiter = self.client(3, server)
        waiter.send("ACQUIRE", "a", "TTL", 1000, "WAIT", 60000)
        grant = waiter.read()
        self.assertEqual(grant["token"], ERA + 1)
        status = client.call("STATUS")
        self.assertEqual((status["restoring_ms"], status["state"]), (0, "granting"))
        web = Web(server.http_port)
        self.assertEqual(web.get("/readyz").status, 200)
        self.assertIn("\npawl_leader 1\n", web.get("/metrics").body.decode())
        self.assertGreater(self.acquire(client, "free", ttl=1000)["token"], ERA + 1)
        server.restart()
        self.assertEqual(
            self.client(3, server).call("STATUS")["restoring_ms"], 0, "it happens once"
        )

    def test_not_ready_during_the_wait_after_a_restore(self):
        server = self.own_pawld()
        backup, _ = self.back_up(server)
        server.kill()
        # It waits for the defaults of max_ttl_ms and max_delay_ms, longer than this test takes.
        server = self.restore(backup)[0].start()
        client, web = self.client(3, server), Web(server.http_port)
        self.assertError(client.call("ACQUIRE", "free", "TTL", 1000), "BUSY", "restoring", "ms")
        self.assertEqual(client.call("STATUS")["state"], "restoring")
        for answer in (
            web.get("/readyz"),
            web.post("/v1/acquire", {"locks": ["free"], "ttl_ms": 1000}),
        ):
            self.assertEqual((answer.status, answer.code), (503, "restoring"), answer)
            self.assertTrue(300 < int(answer.headers["retry-after"]) <= 660, answer.headers)
        scrape = web.get("/metrics").body.decode()
        for sample in (
            "pawl_leader 0",
            "pawl_ready 0",
            'pawl_lock_acquires_total{result="refused"} 2',
        ):
            self.assertIn(f"\n{sample}\n", scrape)
        self.assertTrue(
            300 < float(re.search(r"^pawl_restoring_seconds (.*)$", scrape, re.M)[1]) <= 660, scrape
        )

    def test_restart_does_not_shorten_the_wait_after_a_restore(self):
        server = self.restored().start()
        client = self.client(3, server)
        wait_until(
            lambda: client.call("STATUS")["restoring_ms"] < MAX_TTL / 2, "half of it has passed"
        )
        server.restart()
        left = self.client(3, server).call("STATUS")
        self.assertGreaterEqual(left["restoring_ms"] + left["uptime_ms"], MAX_TTL)

    def test_restore_waits_for_the_longest_delay_too(self):
        # DELAY is for resources that cannot check tokens: a lease granted after the backup was made
        # keeps its lock closed for its TTL and its DELAY.
        server = self.own_pawld(settings=f"max_ttl_ms = {MAX_TTL}")
        backup, _ = self.back_up(server)
        server.kill()
        _, output = self.restore(backup)
        self.assertEqual(output["wait_ms"], MAX_TTL + 60000)

    def test_max_delay_limits_the_delay(self):
        _, client = self.serve()
        self.assertError(
            client.call("ACQUIRE", "a", "TTL", 1000, "DELAY", 1), "ERR", "max_delay_ms"
        )

    def test_skip_wait_grants_at_once_with_a_warning(self):
        server, client = self.serve()
        self.acquire(client, "a", ttl=MAX_TTL)
        backup, _ = self.back_up(server)
        server.kill()
        again = self.own_pawld(start=False, settings=SETTINGS)
        code, out, err = pawld("restore", "--from", backup, "--data", again.data, "--skip-wait")
        self.assertEqual(code, 0, err)
        self.assertIn("warning", err)
        self.assertIn("guard", err)
        self.assertIn("era 1", out)
        again.start()
        self.assertEqual(self.acquire(self.client(3, again), "a", ttl=MAX_TTL)["token"], ERA + 1)

    def test_second_restore_needs_above(self):
        server, client = self.serve()
        self.acquire(client, "a", ttl=MAX_TTL)
        backup, _ = self.back_up(server)
        first, _ = self.restore(backup, "--skip-wait")
        first.start()
        issued = self.acquire(self.client(3, first), "a", ttl=MAX_TTL)["token"]
        self.assertEqual(self.restore(backup, "--skip-wait")[1]["era"], 1)
        second, output = self.restore(backup, "--skip-wait", "--above", issued)
        self.assertEqual(output["era"], 2)
        second.start()
        self.assertGreater(self.acquire(self.client(3, second), "a", ttl=MAX_TTL)["token"], issued)
        code, _, err = pawld(
            "restore", "--from", backup, "--data", server.dir / "x", "--above", (1 << 53) - 1
        )
        self.assertEqual(code, 78)
        self.assertIn("no era", err)


class BadInputTest(BackupCase):
    def test_unusable_target_is_named_and_untouched(self):
        server, client = self.serve()
        backup, _ = self.back_up(server)
        before = {path.name: path.read_bytes() for path in backup.iterdir()}
        self.assertError(client.call("BACKUP", backup), "ERR", str(backup), "exists already")
        self.assertEqual({path.name: path.read_bytes() for path in backup.iterdir()}, before)
        self.assertError(client.call("BACKUP", "relative/path"), "ERR", "absolute")
        self.assertError(client.call("BACKUP", server.dir / "no" / "such"), "ERR", "missing")
        (server.dir / "file").write_text("x")
        self.assertError(client.call("BACKUP", server.dir / "file" / "x"), "ERR", "file")
        self.assertError(client.call("BACKUP", "/proc/pawl-backup"), "ERR", "/proc/pawl-backup")
        (server.dir / "link").symlink_to(server.data)
        for inside in (server.data / "segment-50.log", server.dir / "link" / "segment-50.log"):
            self.assertError(client.call("BACKUP", inside), "ERR", "inside the data directory")
        self.acquire(client, "still serving", ttl=1000)

    def test_backup_to_a_full_disk_leaves_nothing(self):
        server, client = self.serve()
        target = server.dir / "small"
        target.mkdir()
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", target],
            capture_output=True,
            check=False,
        ).returncode:
            self.skipTest("mounting a tmpfs needs root")
        self.addCleanup(subprocess.run, ["umount", target], check=True)
        meta = "m" * 1000
        for i in range(1500):  # More than a megabyte of leases.
            client.send("ACQUIRE", f"lock/{i}", "TTL", MAX_TTL, "META", "k", meta)
        for _ in range(1500):
            self.assertGranted(client.read())
        self.assertError(
            client.call("BACKUP", target / "one"), "FULL", "No space left", "nothing was kept"
        )
        self.assertEqual(os.listdir(target), [])
        (target / "filler").write_bytes(b"x" * (1 << 20))
        self.assertError(client.call("BACKUP", target / "two"), "FULL")
        self.assertEqual(os.listdir(target), ["filler"])
        self.acquire(client, "still serving", ttl=1000)
        self.back_up(server, "elsewhere")

    def test_restore_replaces_nothing(self):
        server, client = self.serve()
        token = self.acquire(client, "a", ttl=MAX_TTL)["token"]
        backup, _ = self.back_up(server)
        code, _, err = pawld("restore", "--from", backup, "--data", server.data)
        self.assertEqual(code, 78)
        self.assertIn("holds a store already", err)
        self.assertEqual(self.inspect(client, "a")["token"], token, "the live store is as it was")
        server.terminate()
        self.assertEqual(pawld("restore", "--from", backup, "--data", server.data)[0], 78)
        self.assertEqual(
            pawld("restore", "--from", server.data, "--data", server.dir / "new")[0], 78
        )
        self.assertEqual(
            pawld("restore", "--from", server.dir / "missing", "--data", server.dir / "new")[0], 78
        )
        self.assertEqual(pawld("restore", "--from", backup)[0], 64)
        home = server.dir / "home"
        home.mkdir()
        (home / "thesis.txt").write_text("years of work")
        self.assertIn("thesis.txt", pawld("restore", "--from", backup, "--data", home)[2])
        self.assertEqual(os.listdir(home), ["thesis.txt"])
        self.assertFalse((server.dir / "new").exists())

    def test_pawld_does_not_serve_from_a_backup(self):
        server, _ = self.serve()
        backup, _ = self.back_up(server)
        server.terminate()
        server.data = backup
        code, text = server.refused()
        self.assertEqual(code, 78)
        self.assertIn("pawld restore --from", text)

    def test_restore_of_a_damaged_backup_creates_nothing(self):
        server, client = self.serve()
        for i in range(50):
            self.acquire(client, f"lock/{i}", "META", "k", "v" * 200, ttl=MAX_TTL)
        backup, _ = self.back_up(server)
        for path in sorted(backup.iterdir()):
            bytes_ = path.read_bytes()
            for at in [
                *range(0, 80, 3),
                len(bytes_) // 2,
                4096,
                4100,
                4120,
                len(bytes_) - 20,
                len(bytes_) - 1,
            ]:
                if at >= len(bytes_):
                    continue
                path.write_bytes(bytes_[:at] + bytes([bytes_[at] ^ 0x10]) + bytes_[at + 1 :])
                code, _, err = pawld("restore", "--from", backup, "--data", server.dir / "new")
                self.assertEqual(code, 78, f"{path.name} at {at}")
                self.assertIn(path.name, err)
            path.write_bytes(bytes_)
        self.assertFalse((server.dir / "new").exists())
        self.assertEqual(pawld("restore", "--from", backup, "--data", server.dir / "new")[0], 0)


class VerifyTest(BackupCase):
    def test_verify_names_damage_with_file_and_offset(self):
        server, client = self.serve()
        for i in range(20):
            last = self.acquire(client, f"lock/{i}", ttl=MAX_TTL)["token"]
        code, _, err = pawld("verify", "--data", server.data)
        self.assertEqual(code, 78)
        self.assertIn(f"pid {server.pid}", err)
        server.terminate()
        code, out, _ = pawld("verify", "--data", server.data, "--json")
        found = json.loads(out)
        self.assertEqual(
            (
                code,
                found["kind"],
                found["whole"],
                found["leases"],
                found["last_token"],
                found["era"],
            ),
            (0, "store", True, 20, last, 0),
        )
        self.assertIn("leases:        20", pawld("verify", "--data", server.data)[1])
        segment = server.data / "segment-1.log"
        with open(segment, "r+b") as file:
            file.seek(3 * 4096 + 100)
            file.write(b"\xff\xff")
        code, out, _ = pawld("verify", "--data", server.data, "--json")
        self.assertEqual((code, json.loads(out)["whole"]), (78, False))
        self.assertRegex(json.loads(out)["error"], re.escape(str(segment)) + ": offset 12288: ")
        self.assertEqual(pawld("verify", "--data", server.dir / "missing")[0], 78)

    def test_newer_store_format_is_refused(self):  # Hard case 45.
        server, _ = self.serve()
        server.terminate()
        meta = server.data / "store.meta"
        bytes_ = bytearray(meta.read_bytes())
        bytes_[8] = 2
        meta.write_bytes(bytes_)
        code, text = server.refused()
        self.assertEqual(code, 78)
        self.assertIn(
            "store.meta: written by a newer Pawl (format 2; this one reads up to 1)", text
        )


class MachineTest(BackupCase):  # Hard case 43.
    def machine(self, server, text):
        path = server.dir / "machine-id"
        path.write_text(text)
        return "--machine-id-file", path

    def test_data_from_another_machine_needs_adopt(self):
        server = self.own_pawld(start=False)
        server.start(*self.machine(server, "0123456789abcdef0123456789abcdef\n"))
        token = self.acquire(self.client(3, server), "a")["token"]
        server.terminate()
        self.assertNotIn(
            b"0123456789abcdef", (server.data / "machine").read_bytes(), "the id itself is not kept"
        )
        before = {
            path.name: path.read_bytes() for path in server.data.iterdir() if path.name != "lock"
        }
        code, text = server.refused(*self.machine(server, "fedcba9876543210fedcba9876543210\n"))
        self.assertEqual(code, 78)
        self.assertIn("--adopt", text)
        self.assertIn("another machine", text)
        self.assertEqual(
            {path.name: path.read_bytes() for path in server.data.iterdir() if path.name != "lock"},
            before,
        )

        other = self.machine(server, "fedcba9876543210fedcba9876543210\n")
        server.start(*other, "--adopt")
        wait_until(lambda: "adopted" in server.log(), "it is logged")
        self.assertGreater(self.acquire(self.client(3, server), "b")["token"], token)
        server.terminate()
        server.start(*other)
        server.terminate()
        self.assertEqual(
            server.refused(*self.machine(server, "0123456789abcdef0123456789abcdef\n"))[0], 78
        )

    def test_machine_without_an_id_is_not_checked(self):
        server = self.own_pawld(start=False)
        server.start(*self.machine(server, "0123456789abcdef0123456789abcdef\n"))
        server.terminate()
        for words in (
            ("--machine-id-file", server.dir / "none"),
            self.machine(server, ""),
            self.machine(server, "uninitialized\n"),
        ):
            server.start(*words)
            server.terminate()

    # Hard case 45: the older form is upgraded.
    def test_store_without_a_machine_mark_is_accepted_and_marked(self):
        server = self.own_pawld(start=False)
        here = self.machine(server, "0123456789abcdef0123456789abcdef\n")
        server.start(*here)
        server.terminate()
        (server.data / "machine").unlink()
        server.start(*here)
        server.terminate()
        self.assertTrue((server.data / "machine").exists())


@unittest.skipUnless(os.environ.get("PAWL"), "PAWL names no pawl")
class CommandTest(BackupCase):
    def pawl(self, server, *words):
        return subprocess.run(
            [os.environ["PAWL"], *map(str, words)],
            env={**os.environ, "PAWL_ADDR": f"127.0.0.1:{server.port}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            check=False,
        )

    def test_a_wait_that_ends_while_restoring_says_so(self):
        server = self.own_pawld()
        backup, _ = self.back_up(server)
        server.kill()
        # It waits for the defaults of max_ttl_ms and max_delay_ms, longer than this test takes.
        server = self.restore(backup)[0].start()
        why = "pawld was restored from a backup and grants no locks for another"
        for words in (
            ("acquire", "a", "-t", "1s", "-w", "100ms"),
            ("run", "a", "-t", "1s", "-w", "100ms", "--", "true"),
            # Nobody has the lock, so nobody does the work: that is no success.
            ("run", "a", "-t", "1s", "-w", "100ms", "-E", "0", "--", "true"),
        ):
            done = self.pawl(server, *words)
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn(f"not acquired: {why}", done.stderr)
        waiting = self.pawl(server, "run", "a", "-t", "1s", "-w", "2s", "--", "true")
        self.assertIn(f"waiting for a: {why}", waiting.stderr)
        answer = Web(server.http_port).post(
            "/v1/acquire",
            {"locks": ["a"], "ttl_ms": 1000, "wait_ms": 100},
            headers={"Idempotency-Key": "abcdefghijklmnopqrstuvwxyz"},
        )
        self.assertEqual((answer.status, answer.code), (503, "restoring"), answer)

    def test_pawl_backup_reports_what_was_written(self):
        server, client = self.serve()
        token = self.acquire(client, "a", ttl=MAX_TTL)["token"]
        done = self.pawl(server, "backup", server.dir / "one", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        output = json.loads(done.stdout)
        self.assertEqual((output["files"], output["last_token"]), (2, token))
        self.assertEqual(
            output["bytes"], sum(path.stat().st_size for path in (server.dir / "one").iterdir())
        )
        self.assertIn(f"last token {token}", self.pawl(server, "backup", server.dir / "two").stdout)
        self.assertEqual(self.pawl(server, "backup", server.dir / "two").returncode, 64)
        refused = self.pawl(server, "backup", "here")
        self.assertEqual(refused.returncode, 64)
        self.assertIn("absolute", refused.stderr)
        server.terminate()
        self.assertEqual(self.pawl(server, "backup", server.dir / "three").returncode, 69)


if __name__ == "__main__":
    harness.main()
