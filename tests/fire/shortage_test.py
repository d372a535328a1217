"""What pawld's store may lack although the disk has space: inodes, file descriptors, and a disk for
backups that answers. Hard cases 37 and 42.

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
