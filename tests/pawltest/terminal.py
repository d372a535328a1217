"""A pseudo-terminal with a program on it, driven as a person would: keys in, text out.

    with Terminal(["bash", "--norc"], env=…) as terminal:
        terminal.type("pawl run x -- cat\\n")
        terminal.expect("ready")
        terminal.type(CTRL_Z)
"""

import os
import pty
import select
import signal
import time

from pawltest.process import state, tree
from pawltest.wait import PATIENCE, wait_until

CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "--noediting", "-i"],
    "dash": ["dash", "-i"],
    "zsh": ["zsh", "-f", "+Z", "-o", "no_prompt_sp", "-i"],
}


class Terminal:
    """`words` is the first process of a session of its own, without a parent that does job
    control, as sshd starts it."""

    def __init__(self, words, env):
        self.seen = ""
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execvpe(words[0], words, {**env, "PS1": "$ ", "TERM": "dumb"})
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Kills what is left on it."""
        if self.status is None:
            for pid in reversed(tree(self.pid)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            os.waitpid(self.pid, 0)
        if self.fd is not None:
            os.close(self.fd)

    def hang_up(self):
        os.close(self.fd)
        self.fd = None

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, patience):
        """Whether something came."""
        ready, _, _ = select.select([self.fd], [], [], patience)
        if not ready:
            return False
        try:
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        except OSError:  # The last process has closed it.
            return False
        return True

    def expect(self, text, count=1):
        """Reads until `text` was there `count` times since the last expect()."""
        end = time.monotonic() + PATIENCE
        while self.seen.count(text) < count:
            if not self.read(end - time.monotonic()) or time.monotonic() > end:
                raise AssertionError(f"no {text!r} on the terminal; there is {self.seen!r}")
        for _ in range(count):
            before, _, self.seen = self.seen.partition(text)
        return before

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def wait(self):
        """The exit code of the first process; negative: the signal that ended it."""

        def ended():
            while self.fd is not None and self.read(0):
                pass
            pid, self.status = os.waitpid(self.pid, os.WNOHANG)
            return pid != 0

        self.status = None
        wait_until(ended, f"the program on the terminal ends; it shows {self.seen!r}")
        return os.waitstatus_to_exitcode(self.status)


def is_stopped(pid):
    return state(pid) in "Tt"
