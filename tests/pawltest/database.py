"""A private database server for a test: a process with its own directory, port and log, which is
removed when the test ends. See postgres.py and mariadb.py."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from pawltest.process import dies_with_parent, free_port
from pawltest.wait import PATIENCE, wait_until


class DatabaseServer:
    """Starts when it is entered, or by start(). Start it from the main thread."""

    title = ""  # for messages
    user = ""  # runs the server when the test runs as root, which database servers refuse
    death_signal = "KILL"  # what it gets when the test is killed

    def __init__(self, settings):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"pawl-{self.user}-"))
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
