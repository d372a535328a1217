"""TCP servers and proxies for tests, each on threads of its own.

    proxy = tcp_proxy.Proxy(pawld.port)
    proxy.delay(0.4)          # every byte is passed on 0.4 s later; delay(0, 0.1): replies only
    proxy.hold(True)          # half open: what is sent, and a hang-up, is kept until hold(False)
    proxy.cut(); proxy.mend() # what is sent in between is lost
    proxy.reset()             # every connection ends with a reset

    proxy = tcp_proxy.RequestProxy(pawld.port, tcp_proxy.seeded(7))    # per request, by chance

    with TcpServer(lambda connection: connection.sendall(b"+PONG\r\n")) as fake:
        connect(fake.address)
"""

import collections
import random
import selectors
import socket
import struct
import threading
import time

from pawltest import resp

NO_LINGER = struct.pack("ii", 1, 0)  # Closing sends a reset.


class TcpServer:
    """Accepts connections one after the other, and lets `talk(connection)` be the server. It stops
    accepting when `talk` raises SystemExit."""

    def __init__(self, talk):
        self._talk = talk
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:  # `talk` has ended it.
            pass
        self._thread.join()
        self._listener.close()

    def _run(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # close()
                return
            with connection:
                try:
                    self._talk(connection)
                except SystemExit:
                    self._listener.close()
                    return


class Proxy:
    """Passes bytes on in both directions, and does to them what its methods say."""

    def __init__(self, port):
        self._target = port
        self._late = {"requests": 0.0, "replies": 0.0}
        self._holding = False
        self._cut = False
        self._resets = threading.Event()
        self._stopping = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._pairs = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def delay(self, requests, replies=None):
        """Seconds; `replies` as `requests` unless given. Bytes keep their order."""
        self._late = {"requests": requests, "replies": requests if replies is None else replies}

    def hold(self, wanted):
        """Keeps what arrives, the end of a connection included, until hold(False)."""
        self._holding = wanted

    def cut(self):
        """From now on what arrives is lost, without a reset."""
        self._cut = True

    def mend(self):
        self._cut = False

    def reset(self):
        """Ends every connection with a reset."""
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
                    key.data.read(key.fileobj, time.monotonic(), self._late, self._cut)
            resetting = self._resets.is_set()
            if resetting:
                # Clear it first: a reset() from now on is done in the next round.
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
            far = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            near.close()
            return
        self._pairs.append(_Pair(self._selector, near, far))


class _Pair:
    """Two sockets and the queue of what is on its way to each of them: (time at which it is due,
    bytes); no bytes mean the end of the connection."""

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

    def read(self, end, now, late, lose):
        if self.ended:
            return
        try:
            data = end.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(end)
        elif lose:
            return
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


# -- faults per request

PASS = "pass"  # forwarded, answered
DELAY = "delay"  # the same, some milliseconds later
DROP = "drop"  # never reaches pawld; the connection is cut
CUT = "cut"  # pawld answers, so it is committed; the reply is withheld and the connection cut
HALF = "half"  # the same, in the middle of the reply
ABANDON = "abandon"  # reaches pawld, and the hang-up right behind it
TWICE = "twice"  # reaches pawld twice in a row; the first reply is passed on
LATE = "late"  # the connection is cut; it reaches pawld some requests later, or at deliver()

CHAOS = {PASS: 60, DELAY: 5, DROP: 5, CUT: 8, HALF: 4, ABANDON: 6, TWICE: 6, LATE: 6}


def seeded(seed, weights=None):
    """Fates by chance: the same seed, the same sequence."""
    weights = weights or CHAOS
    dice, fates = random.Random(seed), list(weights)
    return lambda words: dice.choices(fates, [weights[fate] for fate in fates])[0]


class RequestProxy:
    """In front of pawld, it does to each request what networks do: delay it, lose it, lose its
    reply, deliver it twice, or deliver it after its sender has given up and asked again.

    It reads whole request frames, and serves one connection after the other, each with one request
    at a time: the same seed and the same requests give the same fates, however threads are
    scheduled. Clients that work at the same time have one proxy each.

    `fate(words)` decides over each request. `answers` has what pawld answered, whether or not the
    client received it: (fate, words, reply), in order.
    """

    LATE_BY = 3  # requests that overtake a late one
    DELAY_S = 0.002

    def __init__(self, port, fate):
        self._pawld = port
        self._fate = fate
        self._late = []  # [requests to go, connection to pawld, frame, words]
        self._mutex = threading.Lock()  # deliver() comes from another thread
        self.answers = []
        self.fates = {}  # how often each
        self.fault = None  # what ended the proxy, if anything did
        self._server = TcpServer(self._serve_or_fail)
        self.port = self._server.port

    def deliver(self):
        """Delivers what is late, now. Returns (words, reply) of each."""
        with self._mutex:
            return self._deliver(len(self._late))

    def close(self):
        """Delivers what is late and stops; the clients have closed their connections. Fails if the
        proxy had failed."""
        self._server.close()
        if self.fault:
            raise self.fault
        self.deliver()

    def _serve_or_fail(self, connection):
        try:
            self._serve(connection)
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault
            raise SystemExit from fault  # A client that tries again is refused: its test fails.

    def _serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream = resp.Client(self._pawld)
        try:
            for words, frame in requests(connection):
                with self._mutex:
                    self._count_down()
                    if not self._treat(connection, upstream, words, frame):
                        return
        finally:
            if not any(late[1] is upstream for late in self._late):
                upstream.close()

    def _treat(self, connection, upstream, words, frame):
        """Whether the connection lives on."""
        fate = self._fate(words)
        self.fates[fate] = self.fates.get(fate, 0) + 1
        if fate == DROP:
            return False
        if fate == LATE:
            self._late.append([self.LATE_BY, upstream, frame, words])
            return False
        if fate == DELAY:
            time.sleep(self.DELAY_S)
        upstream.send_bytes(frame * (2 if fate == TWICE else 1))
        if fate == ABANDON:
            return False
        self._answered(fate, words, upstream.read())
        raw = upstream.raw
        if fate == TWICE:
            self._answered(fate, words, upstream.read())
        if fate == CUT:
            return False
        connection.sendall(raw[: len(raw) // 2] if fate == HALF else raw)
        return fate != HALF

    def _answered(self, fate, words, reply):
        self.answers.append((fate, words, reply))

    def _count_down(self):
        for late in self._late:
            late[0] -= 1
        self._deliver(sum(late[0] <= 0 for late in self._late))

    def _deliver(self, count):
        due, self._late = self._late[:count], self._late[count:]
        delivered = []
        for _, upstream, frame, words in due:
            with upstream:
                upstream.send_bytes(frame)
                reply = upstream.read()
            self._answered(LATE, words, reply)
            delivered.append((words, reply))
        return delivered


def requests(connection):
    """The request frames of a connection, until its end: (words, bytes)."""
    buffer = bytearray()
    while True:
        try:
            words, end = resp.parse(buffer)
        except resp.NeedMore:
            try:
                data = connection.recv(1 << 16)
            except ConnectionResetError:
                return
            if not data:
                return
            buffer += data
            continue
        frame = bytes(buffer[:end])
        del buffer[:end]
        yield words, frame
