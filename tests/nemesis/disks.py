"""Where pawld keeps its data, and what can be done to that. Each prepares a harness.Pawld.

    disk = disks.make("lossy", server)
    disk.power_cut(seed) …
"""

import errno
import os

from pawltest import disk_faults

RESERVE = 4 << 20
SMALL = 16 << 20


def make(kind, server):
    return {"plain": Disk, "lossy": Lossy, "small": Small, "failing": Failing}[kind](server)


class Disk:
    """A directory like any other."""

    def __init__(self, server):
        self.server = server

    def fails(self):
        """Whether this life of pawld may end with 74, the store failed."""
        return False

    def prepare(self, seed):
        """Before each start."""

    def mend(self):
        """From now on nothing goes wrong with it."""

    def close(self):
        """After the end of pawld."""


class Lossy(Disk):
    """Loses its power, and with it what was not synced. Cut first: pawld notices, and ends with
    74."""

    def __init__(self, server):
        super().__init__(server)
        self.fs = disk_faults.LossyFs()
        server.data = self.fs.root
        self.dark = False

    def fails(self):
        return self.dark

    def cut(self, seed):
        """In the middle of one of the next calls that change or sync something."""
        self.fs.command("cut-at", 1 + seed % 40)
        self.dark = True

    def prepare(self, seed):
        if self.dark:
            self.fs.command("cut")
            self.fs.command("on", seed)
        self.dark = False

    def close(self):
        self.fs.close()


class Failing(Disk):
    """One write, sync or rename of a life fails; or all that make bytes durable hang."""

    def __init__(self, server):
        super().__init__(server)
        self.armed = None
        self.will_fail = False
        self.gate = server.dir / "gate"

    def fails(self):
        return self.will_fail

    def hang(self):
        self.gate.touch()

    def arm(self, seed):
        """For the next start."""
        self.armed = seed

    def prepare(self, seed):
        self.gate.unlink(missing_ok=True)  # Nobody waits for a start that hangs.
        how = ("EIO", "EIO-torn", "EIO-done", "ENOSPC")[(self.armed or 0) % 4]
        at = 1 + self.armed % 60 if self.armed is not None else 0
        self.server.environment = disk_faults.faults(self.server, at=at, how=how, gate=self.gate)
        self.will_fail = self.armed is not None
        self.armed = None

    def mend(self):
        self.gate.unlink(missing_ok=True)


class Small(Disk):
    """Gets full, and has room again."""

    def __init__(self, server):
        super().__init__(server)
        self.mount = disk_faults.small_tmpfs(SMALL)
        self.root = self.mount.__enter__()
        with open(server.config, "a", encoding="utf-8") as config:
            config.write(f"space_reserve_bytes = {RESERVE}\n")
        server.data = self.root / "data"
        self.ballast = self.root / "ballast"
        self.was_full = False

    def fails(self):
        """A commit that does not fit all the same ends pawld."""
        return self.was_full

    def prepare(self, seed):
        self.was_full = self.ballast.exists()

    def fill(self, leave):
        self.was_full = True
        facts = os.statvfs(self.root)
        try:
            with open(self.ballast, "wb") as file:
                os.posix_fallocate(
                    file.fileno(), 0, max(1, facts.f_bavail * facts.f_frsize - leave)
                )
        except OSError as error:
            if error.errno != errno.ENOSPC:  # pawld was faster: full is full.
                raise

    def mend(self):
        self.ballast.unlink(missing_ok=True)

    def close(self):
        self.mount.__exit__(None, None, None)
