#!/usr/bin/python3
"""What two hostile loads do to a healthy holder: the worst PING, and how many leases were lost.

    hostile.py [--build BUILD_DIR] [--connections N] [--waiters N] [--seconds S]

questions: N connections that each ask, without a pause, for all 1,000 holders of a lock, for the
           history of a lock and for lists of locks.
reconnect: N waiters, 1,000 on each connection, who all ask again with their request ids on new
           connections while the old ones still look alive, as after a partition.

Meanwhile a process of its own sends a PING every few milliseconds, and renews a lease with a TTL of
2 s every 500 ms. Prints a table and never fails because something was slow. """
import argparse
import collections
import multiprocessing
import pathlib
import resource
import select
import signal
import socket
import tempfile
import time

import peers
from capacity import Line, command, lease_of

WAITS_PER_CONNECTION = 1_000
HOLDERS = 1_000
TTL_MS, RENEW_EVERY = 2_000, 0.5
PING_EVERY = 0.005
Seen = collections.namedtuple("Seen", "worst_ping lost renewals")


class Own(peers.Pawld):
    name = "hostile"


def watch(port, stop, results):
    """A healthy holder, and pings beside it. Sends what it saw once `stop` is set."""
    ping, holder = Line(port), Line(port)
    lease = lease_of(holder.ask("ACQUIRE", "hostile/held", "TTL", str(TTL_MS)))
    worst, lost, renewals, renewed = 0.0, 0, 0, time.monotonic()
    while not stop.is_set():
        began = time.monotonic()
        ping.ask("PING")
        worst = max(worst, time.monotonic() - began)
        if began - renewed >= RENEW_EVERY:
            renewed = began
            renewals += 1
            if not holder.ask("RENEW", lease).startswith(":"):
                lost += 1
                lease = lease_of(holder.ask("ACQUIRE", "hostile/held", "TTL", str(TTL_MS)))
        time.sleep(PING_EVERY)
    holder.ask("RELEASE", lease)  # The next watch takes the same lock.
    results.send(Seen(worst, lost, renewals))


def watched(port, load):
    """Runs `load` beside a healthy holder; returns what that saw, and what the load returned."""
    stop = multiprocessing.Event()
    ours, theirs = multiprocessing.Pipe()
    watcher = multiprocessing.Process(target=watch, args=(port, stop, theirs))
    watcher.start()
    time.sleep(1)  # It holds its lease by then; nothing is measured by this.
    try:
        done = load()
    finally:
        stop.set()
        seen = ours.recv() if ours.poll(60) else Seen(float("inf"), 1, 0)
        watcher.join(10)
    return seen, done


def prepare_questions(port):
    """A lock with many holders, one with a long history, and many locks."""
    line = Line(port)
    for _ in range(HOLDERS):
        line.ask("ACQUIRE", "hostile/shared", "TTL", "600000", "SHARED")
    for _ in range(1_000):
        line.ask("RELEASE", lease_of(line.ask("ACQUIRE", "hostile/old", "TTL", "60000")))
    return line


def ask_questions(port, connections, seconds):
    """Every connection asks again as soon as it was answered. Returns the bytes that were read."""
    questions = [
        command("INSPECT", "hostile/shared", "HOLDERS", "1000") * 6,
        command("HISTORY", "hostile/old", "COUNT", "1000") * 6,
        command("LOCKS", "COUNT", "1000") * 6,
    ]
    sockets, poll = {}, select.epoll()
    for place in range(connections):
        one = socket.create_connection(("127.0.0.1", port))
        one.setblocking(False)
        one.send(questions[place % len(questions)])
        sockets[one.fileno()] = (one, questions[place % len(questions)])
        poll.register(one.fileno(), select.EPOLLIN)
    read, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        for number, _ in poll.poll(0.1):
            one, question = sockets[number]
            got = len(one.recv(1 << 20))
            read += got
            # Whatever part of an answer this was: there is always a question to serve.
            try:
                one.send(question)
            except BlockingIOError:
                pass
    for one, _ in sockets.values():
        one.close()
    return read


def wait_all(port, waiters):
    """Queues `waiters` requests for one lock, and returns their connections."""
    lines = []
    for first in range(0, waiters, WAITS_PER_CONNECTION):
        line = Line(port)
        line.ask("HELLO", "3")
        many = b"".join(
            command(
                *("ACQUIRE", "hostile/queue", "TTL", "60000", "WAIT", "600000", "ASYNC"),
                *("REQUEST", f"hostile-request-{number:012d}"),
            )
            for number in range(first, min(first + WAITS_PER_CONNECTION, waiters))
        )
        line.socket.sendall(many)
        lines.append(line)
    return lines


def read_queued(lines, waiters):
    """Waits until every request was answered with its position."""
    left = waiters
    for place, line in enumerate(lines):
        for _ in range(min(WAITS_PER_CONNECTION, waiters - place * WAITS_PER_CONNECTION)):
            answer = str(line.read())
            assert "queued" in answer, answer
            left -= 1
    assert left == 0, left


def reconnect(port, waiters):
    """All waiters ask again on new connections. Returns the seconds that took."""
    began = time.monotonic()
    lines = wait_all(port, waiters)
    read_queued(lines, waiters)
    return time.monotonic() - began, lines


def show(name, seen, text):
    print(
        f"| {name} | {seen.worst_ping * 1000:.0f} ms | {seen.lost} of {seen.renewals} | {text} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--connections", type=int, default=3_000)
    parser.add_argument("--waiters", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("| load | worst PING | lost leases, of renewals | |\n|---|---:|---:|---|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        server = Own(options.build.resolve() / "bin", pathlib.Path(scratch))
        server.start()
        try:
            seen, _ = watched(server.port, lambda: time.sleep(options.seconds / 2))
            show("none", seen, "")
            prepare_questions(server.port)
            seen, read = watched(
                server.port,
                lambda: ask_questions(server.port, options.connections, options.seconds),
            )
            show(f"{options.connections} connections ask", seen, f"{read / 1e6:.0f} MB read")
            holder = Line(server.port)
            holder.ask("ACQUIRE", "hostile/queue", "TTL", "600000")
            old = wait_all(server.port, options.waiters)
            read_queued(old, options.waiters)
            seen, (took, _) = watched(
                server.port, lambda: reconnect(server.port, options.waiters)
            )
            show(f"{options.waiters} waiters reconnect", seen, f"in {took:.1f} s")
        finally:
            server.stop(signal.SIGKILL)


if __name__ == "__main__":
    main()
