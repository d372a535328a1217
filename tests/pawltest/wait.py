"""Waiting for a condition, never for a stretch of time."""

import time

PATIENCE = 60.0  # Seconds until a condition that never becomes true fails the test.


def wait_until(condition, what, patience=PATIENCE):
    """Returns the first true value of `condition()`; `what` describes it in the failure."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {patience:.0f} s waiting until {what}")
        time.sleep(0.002)
