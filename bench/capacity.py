#!/usr/bin/python3
"""The figures of docs/reference/capacity.md, measured on this machine: memory per lock, waiter and
connection, disk, commits, loading, and what the limit of connections looks like. Prints the table
of that page. Half a minute when the machine is idle.

    capacity.py [--build BUILD_DIR] [--locks N] [--connections N]

Needs nothing but pawld and Python. Rates are printed beside the rate of bare syncs on the same
disk: compare those two, and not rates of different machines. """
import argparse
import contextlib
import os
import pathlib
import resource
import signal
import socket
import sys
import tempfile
import time

import memory
import peers

WAITERS = 20_000
BACKED_UP = 50_000
WAITS_PER_CONNECTION = 1_000
COMMITTERS = 64
SECONDS = 3.0  # of each rate
DISK_RECORD = b"x" * 4096
LIMIT, RESERVED = 10_000, 1_000  # src/base/limits.h


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words
    )


class Line:
    """A connection that reads line by line."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        """The first line of the reply; an array's values are read too."""
        self.socket.sendall(command(*words))
        return self.read()

    def read(self):
        first = self.file.readline().rstrip(b"\r\n").decode()
        if first[:1] in "*%>":
            items = int(first[1:]) * (2 if first[0] == "%" else 1)
            return [self.read() for _ in range(items)]
        if first == "$-1":
            return None
        if first[:1] == "$":
            return self.file.read(int(first[1:]) + 2)[:-2].decode()
        return first

    def close(self):
        self.file.close()
        self.socket.close()


class Own(peers.Pawld):
    name = "capacity"


@contextlib.contextmanager
def pawld(build, scratch):
    server = Own(build / "bin", scratch)
    server.start()
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


def syncs_per_second(directory):
    """Overwrites of one block, each made durable: the rate of the disk for a client that waits for
    each."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        os.pwrite(file.fileno(), DISK_RECORD, 0)
        os.fsync(file.fileno())
        count, began = 0, time.monotonic()
        while time.monotonic() - began < SECONDS:
            os.pwrite(file.fileno(), DISK_RECORD, 0)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.monotonic() - began)


def cycles_per_second(port, connections):
    """ACQUIRE and RELEASE of own locks, on `connections` at once. One thread sends
    to all, then reads from all: clients that ask at the same moment share a commit."""
    lines = [Line(port) for _ in range(connections)]
    count, began = 0, time.monotonic()
    while time.monotonic() - began < SECONDS:
        for place, line in enumerate(lines):
            line.socket.sendall(command("ACQUIRE", f"capacity/{place}", "TTL", "60000"))
        leases = [lease_of(line.read()) for line in lines]
        for line, lease in zip(lines, leases):
            line.socket.sendall(command("RELEASE", lease))
        for line in lines:
            line.read()
        count += connections
    took = time.monotonic() - began
    for line in lines:
        line.close()
    return count / took


def lease_of(grant):
    return grant[grant.index("lease") + 1]


def bytes_per_waiter(server):
    holder = Line(server.port)
    holder.ask("ACQUIRE", "capacity/held", "TTL", "600000")
    before = memory.settled(server.pid)
    lines = []
    for first in range(0, WAITERS, WAITS_PER_CONNECTION):
        line = Line(server.port)
        line.ask("HELLO", "3")
        for number in range(first, first + WAITS_PER_CONNECTION):
            line.ask(
                "ACQUIRE",
                "capacity/held",
                "TTL",
                "60000",
                "WAIT",
                "600000",
                "ASYNC",
                "REQUEST",
                f"capacity-waiter-{number:08d}",
            )
        lines.append(line)
    after = memory.settled(server.pid)
    for line in [*lines, holder]:
        line.close()
    return (after - before) / WAITERS


def bytes_per_lock_of_a_backup(server):
    """A backup is a checkpoint and a small file, so this is what a checkpoint takes, too."""
    memory.Filler(server.port).fill(BACKED_UP)
    line = Line(server.port)
    reported = line.ask("BACKUP", str(server.dir / "backup"))
    line.close()
    return int(reported[reported.index("bytes") + 1].lstrip(":")) / BACKED_UP


def connection_limit(server, connections):
    """Opens them all. Bytes each; and, if the limit was reached, what was answered beyond it."""
    before = memory.settled(server.pid)
    first = Line(server.port)
    lease = lease_of(first.ask("ACQUIRE", "capacity/kept", "TTL", "600000"))
    ordinary = [Line(server.port) for _ in range(min(connections, LIMIT) - 1)]
    ordinary[-1].ask("PING")
    each = (memory.settled(server.pid) - before) / min(connections, LIMIT)
    reported = {}
    if connections >= LIMIT + RESERVED:
        reserved = [Line(server.port) for _ in range(RESERVED)]
        reported["ACQUIRE on a connection beyond the limit"] = reserved[-1].ask(
            "ACQUIRE", "capacity/more", "TTL", "1000"
        )
        reported["RENEW on it"] = reserved[-1].ask("RENEW", lease)
        refused = Line(server.port)
        reported["a connection beyond those too"] = refused.read()
        for line in [*reserved, refused]:
            line.close()
    for line in [*ordinary, first]:
        line.close()
    return each, reported


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    options.add_argument(
        "--dir", type=pathlib.Path, help="the disk to measure; the build directory's by default"
    )
    options.add_argument("--locks", type=int, default=200_000)
    options.add_argument("--connections", type=int, default=LIMIT + RESERVED)
    given = options.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = given.connections + 100
    if most != resource.RLIM_INFINITY and most < wanted:
        sys.exit(
            f"this needs {wanted} open files, and at most {most} are allowed; give fewer "
            f"--connections, or raise ulimit -n"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))

    build = given.build.resolve()
    with tempfile.TemporaryDirectory(prefix="capacity-", dir=given.dir or build) as scratch:
        scratch = pathlib.Path(scratch)
        locks = memory.measure(
            build / "bin", scratch, given.locks, lambda text: print(text, file=sys.stderr)
        )
        with pawld(build, scratch) as server:
            syncs = syncs_per_second(scratch)
            one, many = cycles_per_second(server.port, 1), cycles_per_second(
                server.port, COMMITTERS
            )
            waiter = bytes_per_waiter(server)
            backup = bytes_per_lock_of_a_backup(server)
            small_disk = sum(
                path.stat().st_blocks * 512 for path in memory.files(server.dir / "data")
            )
        with pawld(build, scratch) as server:
            connection, reported = connection_limit(server, given.connections)

    rows = [
        ("resident memory of an empty pawld", f"{locks['rss_before'] / 1e6:.0f} MB"),
        (
            f"memory per held lock ({locks['name_bytes']}-byte name, {locks['owner_bytes']}-byte "
            f"owner, one lease each)",
            f"{locks['bytes_per_lock']:.0f} bytes",
        ),
        ("the same after a restart", f"{locks['bytes_per_lock_restarted']:.0f} bytes"),
        ("memory per waiter", f"{waiter:.0f} bytes"),
        ("memory per idle connection", f"{connection:.0f} bytes"),
        ("disk with a few locks", f"{small_disk / 2**20:.0f} MiB"),
        (f"disk with {locks['locks']:,} held locks", f"{locks['store_bytes'] / 2**20:.0f} MiB"),
        ("size of a backup, and of a checkpoint, per held lock", f"{backup:.0f} bytes"),
        (
            f"start after kill -9 with {locks['locks']:,} held locks, cold file cache",
            f"{locks['restart_s']:.2f} s, of which {locks['restart_cpu_s']:.2f} s CPU",
        ),
        ("bare syncs of one block on this disk", f"{syncs:,.0f} per second"),
        ("acquire + release, two durable commits, on one connection", f"{one:,.0f} per second"),
        (
            f"the same on {COMMITTERS} connections at once, limited by the one client in Python "
            f"on the same busy cores ([benchmarks](../../bench/README.md) with a client in C++ "
            f"show more)",
            f"{many:,.0f} per second",
        ),
    ]
    print("| what | measured |\n|---|---|")
    for what, value in rows:
        print(f"| {what} | {value} |")
    for what, value in reported.items():
        print(f"| {what} | `{value}` |")


if __name__ == "__main__":
    main()
