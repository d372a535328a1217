#!/usr/bin/python3
"""A worker of which one at a time may work, with nothing but redis-py. Linux.

    worker.py [HOST:PORT [LOCK [STEPS [TTL_MS]]]]

Exit codes: 0 done; 69 pawld was not reached, or refused; 75 somebody else has the lock; 122 the lease was lost, and this
process ended itself before the lock could pass to anyone else.
"""
import os
import secrets
import socket
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

WAIT_MS = 2000  # How long to queue for the lock.


def now():
    """Milliseconds on the clock that goes on while the machine sleeps; time.monotonic() does not."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


def good_until(sent, granted, ttl):
    """The deadline. It counts from the send: pawld cannot have started the lease before it was asked."""
    return sent + granted * 0.99 - max(20, ttl / 100)


def connect(address, timeout_ms):
    """A client that gives up after the timeout, and leaves trying again to us."""
    host, _, port = address.rpartition(":")
    return redis.Redis(host, int(port), decode_responses=True, socket_timeout=timeout_ms / 1000,
                       socket_connect_timeout=timeout_ms / 1000, retry=Retry(NoBackoff(), 0))


def unanswered(error):
    """Whether nothing is known about what was asked, or nothing happened: ask again."""
    return not isinstance(error, redis.ResponseError) or str(error).startswith("UNCERTAIN")


class Lease:
    """A lease that was granted. It renews itself, and ends the process when it cannot be relied on any more."""

    def __init__(self, address, grant, first_sent):
        self.id, self.token, self.ttl = grant["lease"], grant["token"], grant["ttl_ms"]
        self.client = connect(address, self.ttl / 6)
        self.deadline = good_until(first_sent, grant["waited_ms"] + self.ttl, self.ttl)
        if self.deadline - now() < self.ttl / 2:  # The answer was slow: begin with a fresh one.
            self.renew()
        self.done = threading.Event()
        self.keeper = threading.Thread(target=self.keep, daemon=True)
        self.keeper.start()
        threading.Thread(target=self.watch, daemon=True).start()

    def check(self):
        """Call this before every write."""
        if now() >= self.deadline:
            self.stop()

    def stop(self):
        os._exit(122)  # At once, and without a word: a full pipe or a slow handler must not hold it up.

    def renew(self):
        sent = now()
        left = self.client.execute_command("RENEW", self.id)
        self.deadline = good_until(sent, left, self.ttl)

    def keep(self):
        """Renews a third of the TTL after the last renewal that was answered; when none is answered, again and again."""
        while not self.done.wait(max(self.deadline - self.ttl * 2 / 3 - now(), self.ttl / 30) / 1000):
            try:
                self.renew()
            except redis.RedisError as error:
                if str(error).startswith("LOST"):  # pawld says that it is over.
                    self.stop()

    def watch(self):
        """Ends the process at the deadline, whatever the network says and wherever the work hangs."""
        while (left := self.deadline - now()) > 0:
            if self.done.wait(min(left, 100) / 1000):  # Not longer: this wait stands still while the machine sleeps.
                return
        self.stop()

    def release(self):
        """Call this when the last write is done. Returns whether pawld confirmed it; if not, the lease ends by itself."""
        self.done.set()
        self.keeper.join()
        while now() < self.deadline:
            try:
                return self.client.execute_command("RELEASE", self.id) == 1
            except redis.RedisError as error:
                if not unanswered(error):
                    return False
                time.sleep(0.05)
        return False


def acquire(address, lock, ttl):
    """A Lease, or None when somebody else has the lock."""
    client = connect(address, WAIT_MS + ttl)
    request = secrets.token_hex(16)  # Asked again with it, pawld answers with the same lease.
    first_sent = now()
    while True:
        try:
            reply = client.execute_command("ACQUIRE", lock, "TTL", ttl, "WAIT", WAIT_MS, "REQUEST", request,
                                           "OWNER", f"{socket.gethostname()}:{os.getpid()}")
            if reply is None:
                return None
            grant = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))  # RESP3, RESP2
            return Lease(address, grant, first_sent)
        except redis.RedisError as error:
            if not unanswered(error) or now() - first_sent > WAIT_MS + ttl:
                raise
            time.sleep(0.1)


def write(step, token):
    """Here goes the work. The token goes with every write, so that the resource can refuse an old one."""
    print(f"step {step} with token {token}", flush=True)
    time.sleep(0.1)


def main(address="127.0.0.1:7295", lock="examples/worker", steps="10", ttl="5000"):
    try:
        lease = acquire(address, lock, int(ttl))
    except redis.RedisError as error:
        print(f"not acquired: {error}", file=sys.stderr)
        return 69
    if lease is None:
        print("not acquired: somebody else has the lock", file=sys.stderr)
        return 75
    for step in range(1, int(steps) + 1):
        lease.check()
        write(step, lease.token)
    print("released" if lease.release() else "not confirmed: the lease ends by itself", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
