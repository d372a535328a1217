"""A thread with a connection to pawld that no fault cuts. It reconnects after each restart of pawld
and records its calls and their replies as a history that check_history reads.

    class Mine(Recorder):
        def step(self, client): …     # appends to self.history; lets errors of the connection pass

    mine = Mine(connect, dice, locks); …; mine.stop(); mine.history     # connect(): a new client
"""

import threading

from pawltest.harness import Closed

REST = 0.05  # Seconds between two steps.


class Recorder:
    def __init__(self, connect, dice, locks):
        self.history = []
        self.fault = None  # the exception that ended it
        self.connect, self.dice, self.locks = connect, dice, locks
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping.set()
        self._thread.join()
        if self.fault:
            raise self.fault

    def step(self, client):
        raise NotImplementedError

    def rest(self):
        return REST

    def _run(self):
        try:
            while not self._stopping.wait(REST):
                try:
                    with self.connect() as client:
                        while not self._stopping.wait(self.rest()):
                            self.step(client)
                except (Closed, OSError):
                    pass
                except AssertionError as refused:  # HELLO says that pawld is loading.
                    if "LOADING" not in str(refused):
                        raise
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault
