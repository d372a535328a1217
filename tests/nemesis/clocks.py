"""Time namespaces to start processes in: there CLOCK_BOOTTIME and CLOCK_MONOTONIC are far from what
they were, as after a move to another machine, and no longer agree with each other; and the wall
clock jumps all the time (jumping_wall.cc).

    clocks = clocks.Clocks(3)
    subprocess.Popen([*clocks.enter(2), "pawld", …])     # enter(0): the machine's own clocks
    clocks.ahead(2)                   # nanoseconds by which CLOCK_BOOTTIME is ahead there
"""

import os
import pathlib
import subprocess
import time

from pawltest.process import dies_with_parent
from pawltest.wait import wait_until

SECOND = 1_000_000_000


def boot_now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Clocks:
    def __init__(self, count, wall_jumps=True):
        """Without `wall_jumps` the wall clock stays right: certificates are judged by it."""
        self._wall_jumps = wall_jumps
        up = boot_now() // SECOND
        self._ahead = [0]
        self._keepers = []
        self._inside = [None]
        for number in range(count):
            boot = (-(up // 2), 1_000_000, 40_000)[number % 3] + number
            self._make(boot, monotonic=boot // 3)

    def _make(self, boot, monotonic):
        keeper = subprocess.Popen(
            dies_with_parent(
                [
                    "unshare",
                    "--time",
                    "--boottime",
                    boot,
                    "--monotonic",
                    monotonic,
                    "--fork",
                    "--kill-child",
                    "sleep",
                    "infinity",
                ]
            )
        )
        children = pathlib.Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children")
        inside = wait_until(lambda: _sleeping(children), "the time namespace is there")
        self._keepers.append(keeper)
        self._inside.append(f"/proc/{inside}/ns/time")
        self._ahead.append(boot * SECOND)

    def __len__(self):
        return len(self._inside)

    def enter(self, number, preload=""):
        """What to write before a command; `preload` is loaded into it as well."""
        jumping = os.environ["PAWL_JUMPING_WALL"] if number and self._wall_jumps else ""
        libraries = [library for library in (preload, jumping) if library]
        words = ["nsenter", f"--time={self._inside[number]}"] if number else []
        return [*words, "env", f"LD_PRELOAD={' '.join(libraries)}"] if libraries else words

    def ahead(self, number):
        return self._ahead[number]

    def close(self):
        for keeper in self._keepers:
            keeper.kill()  # Its child goes with it.
            keeper.wait()


def _sleeping(children):
    try:
        pid = children.read_text().split()[0]
        return (
            pid
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n" and _elsewhere(pid)
            else None
        )
    except (OSError, IndexError):
        return None


def _elsewhere(pid):
    return os.readlink(f"/proc/{pid}/ns/time") != os.readlink("/proc/self/ns/time")
