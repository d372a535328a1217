"""A TCP relay between a client and pawld that can be slow, or say nothing at all while both ends
believe to be connected.

    relay = relay.Relay(pawld_port)
    relay.delay(0.4)          # every byte from now on is passed on so much later, in order; delay(0, 0.1): replies only
    relay.hold(True)          # half open: what is sent is taken and stays here; a hang-up of pawld is not told
    relay.reset()             # every connection ends with a reset
"""

import collections
import selectors
import socket
import struct
import threading
import time

NO_LINGER = struct.pack("ii", 1, 0)  # Closing sends a reset.


class Relay:
    def __init__(self, port):
        self._pawld = port
        self._late = {"requests": 0.0, "replies": 0.0}
        self._holding = False
        self._resets = threading.Event()
        self._stopping = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._pairs = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def delay(self, requests, replies=None):
        self._late = {"requests": requests, "replies": requests if replies is None else replies}

    def hold(self, wanted):
        self._holding = wanted

    def reset(self):
        self._resets.set()

    def close(self):
        self._stopping = True
        self._thread.join()

    def _run(self):
        while not self._stopping:
            for key, _ in self._selector.select(
                0.005 if any(pair.waiting for pair in self._pairs) else 0.05
            ):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    key.data.read(key.fileobj, time.monotonic(), self._late)
            resetting = self._resets.is_set()
            if resetting:
                # Before it is done: whoever asks from now on is served in the next turn.
                self._resets.clear()
            for pair in self._pairs:
                if resetting:
                    pair.end(reset=True)
                elif not self._holding:
                    pair.pass_on(time.monotonic())
            self._pairs = [pair for pair in self._pairs if not pair.ended]
        for pair in self._pairs:
            pair.end()
        self._selector.close()
        self._listener.close()

    def _accept(self):
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self._pawld), timeout=5)
        except OSError:
            near.close()
            return
        self._pairs.append(_Pair(self._selector, near, far))


class _Pair:
    """Two sockets and what is on its way to each of them: (when it is due, bytes; nothing: the
    end)."""

    def __init__(self, selector, near, far):
        self._selector = selector
        self._near = near
        self._other = {near: far, far: near}
        self._under_way = {near: collections.deque(), far: collections.deque()}
        self.ended = False
        for end in self._other:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(5)
            selector.register(end, selectors.EVENT_READ, self)

    @property
    def waiting(self):
        return any(self._under_way.values())

    def read(self, end, now, late):
        if self.ended:
            return
        try:
            data = end.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(end)
        due = now + late["requests" if end is self._near else "replies"]
        self._under_way[self._other[end]].append((due, data))

    def pass_on(self, now):
        for end, queue in self._under_way.items():
            while queue and queue[0][0] <= now and not self.ended:
                self._send(end, queue.popleft()[1])

    def _send(self, end, data):
        try:
            if data:
                return end.sendall(data)
        except OSError:
            pass
        return self.end()

    def end(self, reset=False):
        if self.ended:
            return
        self.ended = True
        for end in self._other:
            try:
                self._selector.unregister(end)
            except KeyError:
                pass
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            end.close()
