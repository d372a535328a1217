#!/usr/bin/python3
"""Memory per held lock, and the time a restart takes: fills pawld with many locks, kills it, starts
it again."""

import os
import pathlib
import re
import signal
import socket
import sys
import time

import peers

NAME_BYTES = 24
OWNER_BYTES = 16
CHUNK = 500  # requests per write
AHEAD = 4  # chunks under way
LEASE = b"\r\nlease\r\n"
TTL_MS = 600_000  # The longest that pawld grants by default.


def acquire_requests(first, count):
    return b"".join(
        b"*6\r\n$7\r\nACQUIRE\r\n$24\r\nbench/memory/%011d\r\n"
        b"$3\r\nTTL\r\n$6\r\n%d\r\n$5\r\nOWNER\r\n$16\r\nworker@%09d\r\n" % (number, TTL_MS, number)
        for number in range(first, first + count)
    )


class Filler:
    """Sends acquires in a pipeline, a bounded number ahead of the replies, and counts the
    grants."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.granted = 0
        self.rest = b""

    def fill(self, locks):
        sent = 0
        while self.granted < locks:
            while sent < locks and sent - self.granted <= CHUNK * (AHEAD - 1):
                count = min(CHUNK, locks - sent)
                self.socket.sendall(acquire_requests(sent, count))
                sent += count
            self.read()
        self.socket.close()

    def read(self):
        got = self.socket.recv(1 << 18)
        if not got:
            raise RuntimeError(f"pawld closed the connection after {self.granted:,} grants")
        seen = self.rest + got
        problem = re.search(rb"\r\n-([^\r]*)", b"\r\n" + seen if self.granted == 0 else seen)
        if problem:
            raise RuntimeError(
                f"after {self.granted:,} grants: {problem[1].decode(errors='replace')}"
            )
        # Each grant names its lease once. A key split between two reads is counted with the second.
        self.granted += seen.count(LEASE)
        self.rest = seen.rpartition(LEASE)[2][1 - len(LEASE) :]


def memory_of(pid, field):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field}")


def settled(pid, within=60.0):
    """Resident memory once it rests: a checkpoint that pawld writes in the background needs some
    for a while."""
    deadline = time.monotonic() + within
    seen = [memory_of(pid, "VmRSS")]
    while time.monotonic() < deadline:
        time.sleep(0.5)
        seen.append(memory_of(pid, "VmRSS"))
        if len(seen) > 4 and max(seen[-4:]) - min(seen[-4:]) < 1 << 20:
            break
    return seen[-1]


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file())


def forget_cached(directory):
    """Lets the next read come from the disk, as after a power cut."""
    for path in files(directory):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_plainly(directory):
    """Seconds and bytes of reading every file from end to end."""
    buffer = bytearray(1 << 20)
    total = 0
    began = time.monotonic()
    for path in files(directory):
        with open(path, "rb", buffering=0) as file:
            while got := file.readinto(buffer):
                total += got
    return time.monotonic() - began, total


def status(port):
    """STATUS as a dictionary: RESP2's flat array of pairs, integers and strings."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        file = connection.makefile("rwb")
        file.write(b"*1\r\n$6\r\nSTATUS\r\n")
        file.flush()
        head = file.readline()
        if not head.startswith(b"*"):
            return {}
        values = [read_value(file) for _ in range(int(head[1:]))]
    return dict(zip(values[::2], values[1::2]))


def read_value(file):
    line = file.readline().rstrip(b"\r\n")
    if line.startswith(b"$"):
        return file.read(int(line[1:]) + 2)[:-2].decode() if line != b"$-1" else None
    return int(line[1:]) if line.startswith(b":") else line[1:].decode()


def measure(bin_dir, work_dir, locks, progress):
    class Own(peers.Pawld):
        name = "memory"

    server = Own(bin_dir, work_dir)
    server.start()
    try:
        return measure_on(server, locks, progress)
    finally:
        server.stop(signal.SIGKILL)


def measure_on(server, locks, progress):
    data = server.dir / "data"
    before = settled(server.pid)
    progress(f"memory: acquiring {locks:,} locks")
    began = time.monotonic()
    Filler(server.port).fill(locks)
    fill_s = time.monotonic() - began
    after = settled(server.pid)
    peak = memory_of(server.pid, "VmHWM")
    reported = status(server.port)
    server.stop(signal.SIGKILL)
    forget_cached(data)
    progress("memory: restarting")
    restart_s = server.launch(timeout=300)
    restart_cpu_s = cpu_seconds(server.pid)
    restarted = settled(server.pid)
    peak_restarted = memory_of(server.pid, "VmHWM")
    found = status(server.port)
    server.stop(signal.SIGKILL)
    forget_cached(data)
    read_s, store_bytes = read_plainly(data)
    return {
        "locks": locks,
        "name_bytes": NAME_BYTES,
        "owner_bytes": OWNER_BYTES,
        "rss_before": before,
        "rss_after": after,
        "bytes_per_lock": (after - before) / locks,
        "rss_peak": peak,
        "rss_peak_restarted": peak_restarted,
        "restart_cpu_s": restart_cpu_s,
        "rss_restarted": restarted,
        "bytes_per_lock_restarted": (restarted - before) / locks,
        "fill_s": fill_s,
        "restart_s": restart_s,
        "read_s": read_s,
        "store_bytes": store_bytes,
        "locks_restarted": found.get("locks", -1),
        "breakdown": {
            key: value
            for key, value in reported.items()
            if "bytes" in str(key) and isinstance(value, int)
        },
    }


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: memory.py BIN_DIR WORK_DIR [LOCKS]")
    import report

    found = measure(
        pathlib.Path(sys.argv[1]).resolve(),
        pathlib.Path(sys.argv[2]).resolve(),
        int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000,
        lambda text: print(text, file=sys.stderr),
    )
    report.verdicts(report.memory(found))
