"""A step of a test that may have to wait for another session: it runs on a thread, and the test
goes on once the step has ended or is seen to wait for a lock. So interleavings are steps in an
order, not luck and not sleeps."""

import threading

from pawltest.postgres import PATIENCE, rows, wait_until

WAITS = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"


class Later:
    """Runs call(session, …) on a thread at once; `watch` is an autocommit connection that looks
    on."""

    def __init__(self, watch, session, call, *values):
        self.watch = watch
        self.session = session
        self.answer = None
        self.error = None
        self._thread = threading.Thread(target=self._run, args=(call, values), daemon=True)
        self._thread.start()

    def _run(self, call, values):
        try:
            self.answer = call(self.session, *values)
        except Exception as error:  # Raised again by result(), on the thread that asks.
            self.error = error

    @property
    def ended(self):
        return not self._thread.is_alive()

    def settled(self):
        """Waits until it has ended, or waits for a lock. Returns self."""
        pid = self.session.info.backend_pid
        wait_until(
            lambda: self.ended or rows(self.watch, WAITS, pid), "the step ends or waits for a lock"
        )
        return self

    def waits(self):
        """Whether it waits for a lock now."""
        return not self.settled().ended

    def result(self):
        """Its answer, once it has ended; raises what it raised."""
        self._thread.join(PATIENCE)
        if not self.ended:
            raise AssertionError("the step never ended")
        if self.error:
            raise self.error
        return self.answer
