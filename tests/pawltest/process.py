"""Starting, freezing and inspecting processes."""

import contextlib
import os
import pathlib
import signal
import socket

from pawltest.wait import wait_until


def dies_with_parent(command, user=None, sign="KILL"):
    """The command, changed so that it gets `sign` when the thread that starts it ends, even by
    kill -9: no test leaves a process behind. As root it runs as `user`, for servers that refuse to
    run as root."""
    words = ["setpriv", "--pdeathsig", sign]
    if user and os.geteuid() == 0:
        words += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [*words, *[str(word) for word in command]]


def free_port():
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def state(pid, task=None):
    """The letter of /proc/PID/stat (R, S, D, T, Z, …); X when there is no such process."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        stat = (folder / f"task/{task}" if task else folder) / "stat"
        return stat.read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_alive(pid):
    """Whether it exists and is not a zombie."""
    return state(pid) not in "ZX"


def children(pid):
    """The processes that its main thread has started."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def tree(pid):
    """The process and all its descendants."""
    return [pid, *[below for child in children(pid) for below in tree(child)]]


def send_signal(pids, sign):
    """A process that has ended meanwhile is no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)


def freeze(pids):
    """SIGSTOP; returns once every thread has stopped, or its process has ended."""
    send_signal(pids, signal.SIGSTOP)
    wait_until(lambda: all(_is_stopped(pid) for pid in pids), f"{pids} have stopped")


def resume(pids):
    send_signal(pids, signal.SIGCONT)


def _is_stopped(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True
    return all(state(pid, task) in "TtZX" for task in tasks)
