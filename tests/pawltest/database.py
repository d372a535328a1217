"""A private database server for a test: a process with its own directory, port and log, which is
removed when the test ends. See postgres.py and mariadb.py.

The directory is in memory where there is room. What a server has written outlives kill -9 there
too, which is all that these tests do to it, and a disk makes them take twice the time: creating a
database creates hundreds of files."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from pawltest.process import dies_with_parent, free_port
from pawltest.wait import PATIENCE, wait_until

MEMORY = pathlib.Path("/dev/shm")
MEMORY_MIN = 6 << 30  # Several run at a time, up to 500 MB each.


def memory_available():
    """What can be written to MEMORY without pressing the machine, in bytes."""
    try:
        room = os.statvfs(MEMORY)
        if room.f_flag & os.ST_NOEXEC:  # The guard's C library is loaded from there.
            return 0
        lines = pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return 0
    return min(room.f_bavail * room.f_frsize, free * 1024)


def server_directory(user):
    """A new directory; in memory if there is room and TMPDIR does not name another place."""
    if "TMPDIR" in os.environ or memory_available() < MEMORY_MIN:
        return pathlib.Path(tempfile.mkdtemp(prefix=f"pawl-{user}-"))
    for left in MEMORY.glob("pawl-*-*-*"):  # By tests that were killed: memory is scarce.
        pid = left.name.split("-")[2]
        if pid.isdecimal() and not pathlib.Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    return pathlib.Path(tempfile.mkdtemp(prefix=f"pawl-{user}-{os.getpid()}-", dir=MEMORY))


class DatabaseServer:
    """Starts when it is entered, or by start(). Start it from the main thread."""

    title = ""  # for messages
    user = ""  # runs the server when the test runs as root, which database servers refuse
    death_signal = "KILL"  # what it gets when the test is killed

    def __init__(self, settings):
        self.dir = server_directory(self.user)
        self.data = self.dir / "data"
        self.log_path = self.dir / "log"
        self.settings = settings
        self.process = None
        self.port = 0
        self.last_log = ""
        if os.geteuid() == 0:
            shutil.chown(self.dir, self.user, self.user)
        try:
            self.create_data()
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise

    # -- for the database to define

    def create_data(self):
        """Fills self.data."""
        raise NotImplementedError

    def command(self):
        """Starts the server on self.port."""
        raise NotImplementedError

    def accepts_connections(self):
        raise NotImplementedError

    # -- for tests

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        """Returns once it accepts connections. Keeps its port over restarts."""
        for _ in range(5):
            self.port = self.port or free_port()
            if self._launch():
                return self
            self.port = 0  # Another process took that port meanwhile.
        raise AssertionError(f"{self.title} does not start:\n{self.log_text()[-4000:]}")

    def run(self, *command, check=True, **options):
        """Runs a program as the server's user in its directory; a CompletedProcess with text."""
        done = subprocess.run(
            self.as_user(command),
            cwd=self.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
            **({"stdin": subprocess.DEVNULL} if "input" not in options else {}),
            **options,
        )
        if check and done.returncode:
            raise AssertionError(
                f"{command[0]} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done

    def as_user(self, command):
        return dies_with_parent(command, user=self.user, sign=self.death_signal)

    def log_text(self):
        """The server's log so far; still known after remove()."""
        if self.log_path.exists():
            self.last_log = self.log_path.read_text(errors="replace")
        return self.last_log

    def end(self, sign):
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(timeout=PATIENCE)
            self.process = None

    def remove(self):
        self.end(getattr(signal, f"SIG{self.death_signal}"))
        self.log_text()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _launch(self):
        start = len(self.log_text())
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.as_user(self.command()),
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            what = f"{self.title} accepts connections"
            return wait_until(lambda: self._launched(start), what) == "ready"
        except BaseException:
            self.end(getattr(signal, f"SIG{self.death_signal}"))
            raise

    def _launched(self, log_start):
        if self.process.poll() is not None:
            log = self.log_text()[log_start:]
            self.process = None
            if "could not bind" in log or "Address already in use" in log:
                return "port taken"
            raise AssertionError(f"{self.title} ended during its start:\n{log[-4000:]}")
        return "ready" if self.accepts_connections() else None
