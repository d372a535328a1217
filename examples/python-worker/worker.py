#!/usr/bin/python3
"""A worker of which one at a time works.

    worker.py [LOCK [STEPS [TTL_MS]]]

Exit codes: 0 done; 69 pawld was not reached, or refused; 75 another holder has the lock; 122 the
lease was lost. """
import sys
import time

import redis

from pawl_lease import NotAcquired, acquire


def write(step, token):
    """Here goes the work. The token goes with every write, so that the resource can refuse an old
    one."""
    print(f"step {step} with token {token}", flush=True)
    time.sleep(0.1)


def main(lock="examples/worker", steps="10", ttl_ms="5000"):
    try:
        lease = acquire(lock, int(ttl_ms), wait_ms=1000)
    except (NotAcquired, redis.RedisError) as error:
        print(f"not acquired: {error}", file=sys.stderr)
        return 75 if isinstance(error, NotAcquired) else 69
    with lease:  # Releases it at the end, also when the work raises.
        for step in range(1, int(steps) + 1):
            lease.check()
            write(step, lease.token)
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
