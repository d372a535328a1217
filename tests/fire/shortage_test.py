"""What pawld's store may lack although the disk has space: inodes, file descriptors, a disk for
backups that answers, and files that are as it wrote them. Hard cases 37, 39 and 42.

Nothing of this ends pawld or keeps a holder from renewing.
"""

import errno
import os
import resource

from pawltest import disk_faults
from pawltest.disk_faults import SEGMENT_SMALL, FireCase, faults, harness, wait_until
from pawltest.harness import Error

TTL = 600000
TOKENS_PER_BLOCK = 4096


class ShortageCase(FireCase):
    def cycle(self, client, lock):
        """Takes the lock and releases it; False when it is refused for lack of space."""
        reply = client.call("ACQUIRE", lock, "TTL", TTL)
        if isinstance(reply, Error):
            self.assertError(reply, "FULL")
            return False
        self.assertEqual(client.call("RELEASE", reply["lease"]), 1)
        return True


class InodesTest(ShortageCase):
    def setUp(self):
        super().setUp()
        self.root = self.enterContext(disk_faults.small_tmpfs(64 << 20, inodes=200))
        self.server = self.own_pawld(start=False, segment_bytes=SEGMENT_SMALL)
        with open(self.server.config, "a", encoding="utf-8") as config:
            config.write(f"space_reserve_bytes = {4 << 20}\n")
        self.server.data = self.root / "data"
        self.server.start()

    def take_all_inodes(self):
        taken = []
        while True:
            path = self.root / f"inode-{len(taken)}"
            try:
                path.touch()
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return taken
            taken.append(path)

    def test_grants_are_refused_without_inodes_and_pawld_goes_on(self):
        client = self.client(3, self.server)
        held = self.acquire(client, "held", ttl=TTL)
        taken = self.take_all_inodes()
        for number in range(TOKENS_PER_BLOCK + 100):
            if not self.cycle(client, f"cycle/{number}"):
                break
        else:
            self.fail("grants go on without inodes")
        self.assertEqual(client.call("STATUS")["state"], "full")
        self.assertEqual(client.call("RENEW", held["lease"]), TTL)
        self.server.restart()
        client = self.client(3, self.server)
        self.assertEqual(client.call("RENEW", held["lease"]), TTL)
        self.assertError(client.call("ACQUIRE", "refused", "TTL", TTL), "FULL")
        for path in taken:
            path.unlink()
        wait_until(lambda: self.cycle(client, "again"), "grants resume")
        self.assertEqual(self.server.terminate(), 0)


class DescriptorsTest(ShortageCase):
    def test_no_descriptor_left_does_not_end_pawld(self):
        server = self.own_pawld(segment_bytes=SEGMENT_SMALL)
        client = self.client(3, server)
        held = self.acquire(client, "held", ttl=TTL)
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        # Every descriptor below the limit is in use or is taken by a connection.
        used = {int(name) for name in os.listdir(f"/proc/{server.pid}/fd")}
        limit = max(used) + 1
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        strangers = [server.client(2) for _ in range(limit - len(used))]
        for stranger in strangers:
            self.addCleanup(stranger.close)
        # Past the end of a block of tokens, through many segments and checkpoints.
        refused = sum(
            not self.cycle(client, f"cycle/{number}") for number in range(TOKENS_PER_BLOCK + 100)
        )
        self.assertFalse(self.ended(server), server.log()[-2000:])
        self.assertEqual(client.call("RENEW", held["lease"]), TTL)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        wait_until(lambda: self.cycle(client, "again"), "grants go on, or resume")
        server.kill()
        server.start()
        self.assertEqual(self.client(3, server).call("RENEW", held["lease"]), TTL)
        print(f"{refused} of {TOKENS_PER_BLOCK + 100} refused for lack of file descriptors")


class DamageTest(ShortageCase):
    def test_damage_in_a_closed_segment_is_repaired_from_memory(self):  # Hard case 39.
        server = self.own_pawld(segment_bytes=SEGMENT_SMALL)
        client = self.client(3, server)
        held = self.acquire(client, "held", ttl=TTL)
        segment = server.data / "segment-1.log"
        second = server.data / "segment-2.log"
        for number in range(12):  # More than a segment, and less than a checkpoint is made from.
            self.assertTrue(self.cycle(client, f"before/{number}"))
        self.assertIn(b"PWLR", second.read_bytes()[4096:4100], "the first segment is not closed")
        with open(segment, "r+b") as file:
            file.seek(4096 + 60)
            file.write(b"\xff\xff\xff")

        def repaired():
            self.cycle(client, "during")
            return "the damage in the store is repaired" in server.log()

        wait_until(repaired, "a checkpoint from memory replaces what is damaged")
        self.assertIn("segment-1.log: offset", server.log())
        self.assertEqual(client.call("RENEW", held["lease"]), TTL)
        server.kill()
        server.start()
        self.assertEqual(self.client(3, server).call("RENEW", held["lease"]), TTL)


class HangingBackupTest(ShortageCase):
    def setUp(self):
        super().setUp()
        self.server = self.own_pawld(start=False, segment_bytes=SEGMENT_SMALL)
        self.target = self.server.dir / "target"
        self.target.mkdir()
        self.gate = self.server.dir / "gate"
        self.gate.touch()
        self.server.environment = {
            **faults(self.server, gate=self.gate),
            "PAWL_FIRE_UNDER": os.path.realpath(self.target),
        }
        self.server.start()
        self.asker = self.client(3, self.server)
        self.asker.send("BACKUP", str(self.target / "one"))
        reached = self.server.dir / "gate.reached"
        wait_until(reached.exists, "the backup hangs")

    def segments(self):
        return sum(path.name.startswith("segment-") for path in self.server.data.iterdir())

    def test_checkpoints_go_on_while_a_backup_hangs(self):
        client = self.client(3, self.server)
        for number in range(600):  # Some eighty segments.
            self.assertTrue(self.cycle(client, f"cycle/{number}"))
        wait_until(lambda: self.segments() < 12, "checkpoints remove what they cover")
        self.gate.unlink()
        done = self.asker.read()
        self.assertEqual(done["dir"], str(self.target / "one"), done)
        self.assertError(client.call("BACKUP", self.target / "one"), "ERR", "exists already")

    def test_stop_does_not_wait_for_a_backup_that_hangs(self):
        client = self.client(3, self.server)
        held = self.acquire(client, "held", ttl=TTL)
        self.assertEqual(self.server.terminate(), 0)
        self.assertIn("a backup was abandoned", self.server.log())
        self.server.environment = {}
        self.server.start()
        self.assertNotIn("did not stop cleanly", self.server.log())
        self.assertEqual(self.client(3, self.server).call("RENEW", held["lease"]), TTL)


if __name__ == "__main__":
    disk_faults.in_mount_namespace()
    harness.main()
