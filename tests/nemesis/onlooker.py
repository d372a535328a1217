"""A thread that talks to pawld over a wire that nobody cuts, connects again whenever pawld is gone,
and writes the history of what it was told, in lines as check_history reads them.

    class Mine(onlooker.Onlooker):
        def turn(self, client): …                 # appends to self.history; what the connection throws, it lets pass

    mine = Mine(port, dice, locks); …; mine.stop(); mine.history
"""

import threading

from pawltest import harness
from pawltest.harness import Closed

REST = 0.05  # Seconds between two turns.


class Onlooker:
    def __init__(self, port, dice, locks):
        self.history = []
        self.fault = None  # what ended it, if anything did
        self.port, self.dice, self.locks = port, dice, locks
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping.set()
        self._thread.join()
        if self.fault:
            raise self.fault

    def turn(self, client):
        raise NotImplementedError

    def rest(self):
        return REST

    def _run(self):
        try:
            while not self._stopping.wait(REST):
                try:
                    with harness.Client(self.port, 3) as client:
                        while not self._stopping.wait(self.rest()):
                            self.turn(client)
                except (Closed, OSError):
                    pass
                except AssertionError as refused:  # HELLO says that pawld is loading.
                    if "LOADING" not in str(refused):
                        raise
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault
