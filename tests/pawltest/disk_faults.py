"""What the tests of the store under fire share: ways to make the disk go wrong under a real pawld.

    server.environment = faults(server, at=17, how="EIO")     # the 17th write or sync fails
    with LossyFs() as fs: server.data = fs.root               # a file system that can lose power
    with small_tmpfs(16 << 20) as root: server.data = root    # a real one that gets full

The last two need mounts: such a test begins with in_mount_namespace(), so that nothing of it is
seen outside or left behind.

Environment: PAWLD, and PAWL_FAILING_IO and PAWL_LOSSY_FS, which are built beside it.
"""

import contextlib
import os
import subprocess
import sys

from pawltest import harness, torture
from pawltest.process import dies_with_parent
from pawltest.wait import wait_until

EXIT_STORE = 74
SKIPPED = 77
# Fifteen batches to a segment: a few hundred writes meet every kind of work.
SEGMENT_SMALL = 64 << 10
INSIDE = "PAWL_FIRE_NAMESPACE"


def faults(server, at=0, how="EIO", gate=None, read_gate=None):
    """The environment in which pawld's disk fails in this way; see failing_io.cc."""
    return {
        "LD_PRELOAD": os.environ["PAWL_FAILING_IO"],
        "PAWL_FIRE_UNDER": os.path.realpath(server.data),
        "PAWL_FIRE_AT": str(at),
        "PAWL_FIRE_HOW": how,
        "PAWL_FIRE_REPORT": str(server.dir / "struck"),
        "PAWL_FIRE_GATE": str(gate or ""),
        "PAWL_FIRE_READ_GATE": str(read_gate or ""),
    }


def struck(server):
    """What went wrong since the last look: (call, file) or None."""
    path = server.dir / "struck"
    if not path.exists():
        return None
    wait_until(lambda: path.read_text().endswith("\n"), "the report is whole")
    call, name, _ = path.read_text().split()
    path.unlink()
    return call, name


def in_mount_namespace():
    """Runs this script again where it may mount; skips the test where that is not possible."""
    if INSIDE in os.environ:
        return
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    enter = ["unshare", *mapped, "--mount", "--propagation", "private"]
    if (
        subprocess.run([*enter, "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode
        != 0
    ):
        print(
            "skipped: mounting needs root, or unprivileged user namespaces",
            file=sys.stderr,
        )
        sys.exit(SKIPPED)
    os.execvpe(enter[0], [*enter, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def needs_fuse():
    """Skips the test where the kernel has no FUSE, or lossy_fs could not be built."""
    if not os.environ.get("PAWL_LOSSY_FS") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print(
            "skipped: needs libfuse3 when it is built, and /dev/fuse when it runs", file=sys.stderr
        )
        sys.exit(SKIPPED)


class LossyFs:
    """A mounted lossy_fs. Its commands are in lossy_fs.cc."""

    def __init__(self):
        self.root = harness.scratch("lossy")
        command = dies_with_parent([os.environ["PAWL_LOSSY_FS"], self.root])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answer()  # It is mounted.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def answer(self):
        word, _, rest = self.process.stdout.readline().strip().partition(" ")
        if word != "ok":
            raise AssertionError(f"lossy_fs answered {word!r} {rest!r}")
        return rest

    def command(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=harness.PATIENCE)
        self.process.stdout.close()
        subprocess.run(["umount", "--lazy", self.root], check=False, stderr=subprocess.DEVNULL)
        self.root.rmdir()


@contextlib.contextmanager
def small_tmpfs(size, inodes=0):
    root = harness.scratch("small")
    options = f"size={size},nr_inodes={inodes}"  # 0: no limit.
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", root], check=True)
    try:
        yield root
    finally:
        subprocess.run(["umount", root], check=True)
        root.rmdir()


class FireCase(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None  # Each test has its own.

    def ended(self, server):
        """Whether pawld has exited."""
        return server.process.poll() is not None

    def serves_or_ends(self, server):
        """Starts pawld; whether it serves. If not, it has ended."""
        server.launch()

        def decided():
            if self.ended(server):
                return "ended"
            try:
                return "serves" if server._serving() else None
            except AssertionError:
                return "ended"

        return wait_until(decided, "pawld serves or ends") == "serves"

    def look(self, server, ledger, workers):
        """What a start has found is right; it may end, by a fault, while it is asked."""
        try:
            self.assertEqual(torture.look(server, ledger, workers), [])
        except (harness.Closed, OSError):
            pass
