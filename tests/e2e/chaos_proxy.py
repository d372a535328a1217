"""A TCP proxy in front of pawld that does to each request what networks do: delay it, lose it, lose
its reply, deliver it twice, or deliver it long after its sender has given up and asked again.

    proxy = chaos_proxy.Proxy(pawld.port, chaos_proxy.seeded(7))
    client = resp.Client(proxy.port)

It reads whole request frames, and serves one connection after the other, each with one request at a
time: the same seed and the same requests give the same fates, whatever the threads do. Clients that
work at the same time have one proxy each. """

import random
import socket
import threading
import time

import resp

PASS = "pass"  # forwarded, answered
DELAY = "delay"  # the same, some milliseconds later
DROP = "drop"  # never reaches pawld; the connection is cut
# Pawld has answered, so it is committed; the reply is withheld and the connection cut
CUT = "cut"
HALF = "half"  # the same, in the middle of the reply
ABANDON = "abandon"  # reaches pawld, and the hang-up right behind it
TWICE = "twice"  # reaches pawld twice in a row; the first reply is passed on
# The connection is cut; it reaches pawld some requests later, or when deliver() is called
LATE = "late"

CHAOS = {PASS: 60, DELAY: 5, DROP: 5, CUT: 8, HALF: 4, ABANDON: 6, TWICE: 6, LATE: 6}


def seeded(seed, weights=None):
    """Fates by chance: the same seed, the same sequence."""
    weights = weights or CHAOS
    dice, fates = random.Random(seed), list(weights)
    return lambda words: dice.choices(fates, [weights[fate] for fate in fates])[0]


class Proxy:
    """`fate(words)` decides over each request. `answers` has what pawld answered, whether or not
    the client saw it: (fate, words, reply), in order."""

    LATE_BY = 3  # requests that overtake a late one
    DELAY_S = 0.002

    def __init__(self, port, fate):
        self._pawld = port
        self._fate = fate
        self._late = []  # [requests to go, connection to pawld, frame, words]
        self._turn = threading.Lock()  # deliver() comes from another thread
        self.answers = []
        self.fates = {}  # how often each
        self.fault = None  # what ended the proxy, if anything did
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def deliver(self):
        """Delivers what is late, now. Returns (words, reply) of each."""
        with self._turn:
            return self._deliver(len(self._late))

    def close(self):
        """Delivers what is late and stops; the clients have closed their connections. Fails if the
        proxy had failed."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        if self.fault:
            raise self.fault
        self.deliver()

    def _run(self):
        try:
            while True:
                try:
                    connection, _ = self._listener.accept()
                except OSError:  # close()
                    return
                with connection:
                    self._serve(connection)
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault
            self._listener.close()  # A client that tries again is refused, and its test fails.

    def _serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream = resp.Client(self._pawld)
        try:
            for words, frame in requests(connection):
                with self._turn:
                    self._let_time_pass()
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

    def _let_time_pass(self):
        for late in self._late:
            late[0] -= 1
        self._deliver(sum(late[0] <= 0 for late in self._late))

    def _deliver(self, count):
        due, self._late = self._late[:count], self._late[count:]
        told = []
        for _, upstream, frame, words in due:
            with upstream:
                upstream.send_bytes(frame)
                reply = upstream.read()
            self._answered(LATE, words, reply)
            told.append((words, reply))
        return told


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
