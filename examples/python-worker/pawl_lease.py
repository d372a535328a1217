"""Holds a lock of pawld from Python, with redis-py alone. Linux. Copy this file into your project.

    with acquire("billing/nightly") as lease:
        lease.check()                # before every write
        write(lease.token)           # the token goes with every write

As for `pawl`: PAWL_ADDR (host:port, or tls://host:port; several with commas), PAWL_AUTH
(user:secret), PAWL_TLS_CA, PAWL_TLS_CERT, PAWL_TLS_KEY. """
import os
import re
import secrets
import select
import socket
import threading
import time
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class NotAcquired(Exception):
    """Another holder has the lock."""


class LeaseLost(Exception):
    """The lease can no longer be relied on. Stop; do not write any more."""


def end_process(lease, why):
    """Ends the process at once, wherever the work hangs: no `finally`, no `atexit`."""
    try:
        if select.select([], [2], [], 0)[1]:  # A full pipe must not delay the exit.
            os.write(
                2,
                f"pawl: lost {lease.lock} (token {lease.token}): {why}. This process ends with 122.\n".encode(),
            )
    finally:
        os._exit(122)


def now():
    """Milliseconds on the clock that goes on while the machine sleeps; time.monotonic() does
    not."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


def good_until(sent, granted, ttl):
    """The deadline. It counts from the send: pawld cannot have started the lease before it was
    asked."""
    return sent + granted * 0.99 - max(20, ttl / 100)


def connect(address, timeout_ms):
    """A client that gives up after the timeout and does not retry: retries are made below."""
    env = os.environ.get
    url = urlsplit(address if "://" in address else "pawl://" + address)
    user, _, secret = env("PAWL_AUTH", "").partition(":")
    return redis.Redis(
        url.hostname,
        url.port or 7295,
        username=user or None,
        password=secret or None,
        ssl=url.scheme == "tls",
        ssl_ca_certs=env("PAWL_TLS_CA"),
        ssl_check_hostname=True,
        ssl_certfile=env("PAWL_TLS_CERT"),
        ssl_keyfile=env("PAWL_TLS_KEY"),
        decode_responses=True,
        socket_timeout=timeout_ms / 1000,
        socket_connect_timeout=min(timeout_ms, 2000) / 1000,
        retry=Retry(NoBackoff(), 0),
    )


def unanswered(error):
    """Whether it is unknown what happened, or nothing happened: ask again."""
    if isinstance(error, redis.ReadOnlyError):  # A standby: nothing happened.
        return True
    if isinstance(error, (redis.ResponseError, redis.AuthenticationError)):
        return str(error).startswith("UNCERTAIN")
    return True


class Pawld:
    """The pawld of PAWL_ADDR. Of several, one is active: after an error that says to ask again the
    next command goes to another one."""

    def __init__(self, timeout_ms):
        self.timeout_ms = timeout_ms
        self.addresses = (os.environ.get("PAWL_ADDR") or "127.0.0.1:7295").split(",")
        self.client = connect(self.addresses[0], timeout_ms)

    def ask(self, *words):
        try:
            return self.client.execute_command(*words)
        except redis.RedisError as error:
            if unanswered(error):
                self.move_on(error)
            raise

    def move_on(self, error):
        """To the active one, if a standby has named it; otherwise to the next of the list."""
        named = re.search(r"\bactive=(\S+)", str(error))
        if isinstance(error, redis.ReadOnlyError) and named:
            # Never without TLS where TLS was asked for.
            tls = self.addresses[0].startswith("tls://")
            address = ("tls://" if tls else "") + named[1]
        else:
            self.addresses = self.addresses[1:] + self.addresses[:1]
            address = self.addresses[0]
        self.client.close()
        self.client = connect(address, self.timeout_ms)


class Lease:
    """A granted lease, renewed in the background. Once it cannot be relied on, on_lost(lease, why)
    is called, once."""

    def __init__(self, lock, grant, first_sent, on_lost):
        self.lock, self.id, self.token, self.ttl = (
            lock,
            grant["lease"],
            grant["token"],
            grant["ttl_ms"],
        )
        self.on_lost, self.why, self.pid = on_lost, None, os.getpid()
        self.early = 0 if on_lost is end_process else self.ttl / 6  # Time for the work to stop.
        self.pawld = Pawld(self.ttl / 6)
        self.deadline = good_until(first_sent, grant["waited_ms"] + self.ttl, self.ttl)
        if self.deadline - now() < self.ttl / 2:  # The answer was slow: begin with a renewal.
            self.renew()
        self.over, self.once = threading.Event(), threading.Lock()
        threading.Thread(target=self.watch, daemon=True).start()
        threading.Thread(target=self.keep, daemon=True).start()

    def left(self):
        return self.deadline - self.early - now()

    def check(self):
        """Call this before every write. Raises LeaseLost when the work must stop."""
        if os.getpid() != self.pid:
            raise LeaseLost("a forked process does not have the lease of its parent")
        if self.left() <= 0:
            self.lose("it was not renewed in time")
        if self.over.is_set():
            raise LeaseLost(self.why or "it was released")

    def lose(self, why):
        with self.once:
            if self.over.is_set():
                return
            if self.on_lost is end_process:
                # Before another thread could see LeaseLost and end it otherwise.
                end_process(self, why)
            self.why = why
            self.over.set()
        self.on_lost(self, why)

    def renew(self):
        sent = now()
        answered = self.pawld.ask("RENEW", self.id)
        self.deadline = good_until(sent, answered, self.ttl)

    def keep(self):
        """Renews when a third of the TTL has passed; without an answer, again and again."""
        while not self.over.wait(
            max(self.deadline - self.ttl * 2 / 3 - now(), self.ttl / 30) / 1000
        ):
            try:
                self.renew()
            except redis.RedisError as error:
                if str(error).startswith("LOST"):
                    self.lose(f"pawld answered {error}")

    def watch(self):
        """Acts at the deadline, whatever the network does and wherever the work hangs."""
        # This wait stands still in suspend: 100 ms.
        while not self.over.wait(min(max(self.left(), 0), 100) / 1000):
            if self.left() <= 0:
                self.lose("it was not renewed in time")

    def release(self):
        """Call this after the last write. Returns whether pawld confirmed it; if not, the lease
        ends by itself."""
        if os.getpid() != self.pid:
            return False
        with self.once:
            self.over.set()
        while now() < self.deadline:
            try:
                return self.pawld.ask("RELEASE", self.id) == 1
            except redis.RedisError as error:
                if not unanswered(error):
                    return False
                time.sleep(0.05)
        return False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # After an exception too, which then passes on: the work has ended either way.
        self.release()
        if kind is None and self.why:
            raise LeaseLost(self.why)


def acquire(lock, ttl_ms=15000, wait_ms=0, on_lost=end_process):
    """A Lease. Raises NotAcquired, or redis.RedisError when pawld was not reached or refused."""
    pawld = Pawld(wait_ms + ttl_ms)
    request = secrets.token_hex(16)  # Asked again with it, pawld answers with the same lease.
    first_sent = now()
    while True:
        try:
            reply = pawld.ask(
                "ACQUIRE",
                lock,
                "TTL",
                ttl_ms,
                "WAIT",
                wait_ms,
                "REQUEST",
                request,
                "OWNER",
                f"{socket.gethostname()}:{os.getpid()}",
            )
            if reply is None:
                raise NotAcquired(f"another holder has {lock}")
            # RESP3, RESP2
            grant = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))
            return Lease(lock, grant, first_sent, on_lost)
        except redis.RedisError as error:
            if not unanswered(error) or now() - first_sent > wait_ms + ttl_ms:
                raise
            time.sleep(0.1)
