"""Several pawld of which one is active, as their clients see them: in front of one real pawld, whose
leases therefore survive a failover, as those of a shared store do.

    first, second = nodes.Node(pawld.port), nodes.Node(pawld.port)
    second.stand_by(first.address)
    …
    nodes.fail_over(first, second)
"""

import socket
import threading

from pawltest import resp, tcp_proxy

# What a standby answers by itself. HELLO: the answer of pawld, as far as clients look at it.
HELLO = b"%3\r\n+server\r\n+pawl\r\n+proto\r\n:3\r\n+version\r\n+0\r\n"
OWN_ANSWERS = {"HELLO": HELLO, "PING": b"+PONG\r\n", "CLIENT": b"+OK\r\n", "AUTH": b"+OK\r\n"}


class Node:
    """Active: every request goes to pawld. Standby: every request is refused, with the address of
    the active one or without."""

    def __init__(self, port):
        self._pawld = port
        self._mutex = threading.Lock()
        self._standby = None  # What it answers while it stands by.
        self._open = set()
        self.refused = []  # The first word of each command that it refused.
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stand_by(self, active=""):
        """Connections to pawld end: what was under way on them is unknown to their clients."""
        with self._mutex:
            self._standby = f"active={active}" if active else "this pawld stands by"
            ended, self._open = self._open, set()
        for end in ended:
            _end(end)

    def take_over(self):
        with self._mutex:
            self._standby = None

    def close(self):
        """Like a process that is killed."""
        _end(self._listener)
        self.stand_by()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        upstream = None
        try:
            for words, frame in tcp_proxy.requests(connection):
                with self._mutex:
                    standby = self._standby
                if standby is not None:
                    connection.sendall(self._refuse(words[0].upper(), standby))
                    continue
                upstream = upstream or self._connect(connection)
                upstream.sendall(frame)
        except OSError:
            pass
        finally:
            _end(connection)
            if upstream:
                _end(upstream)

    def _refuse(self, word, standby):
        if word in OWN_ANSWERS:
            return OWN_ANSWERS[word]
        with self._mutex:
            self.refused.append(word)
        return f"-READONLY {standby}\r\n".encode()

    def _connect(self, connection):
        upstream = socket.create_connection(("127.0.0.1", self._pawld), timeout=resp.DEADLINE)
        with self._mutex:
            self._open |= {connection, upstream}
        threading.Thread(target=_pass_on, args=(upstream, connection), daemon=True).start()
        return upstream


def fail_over(before, after):
    before.stand_by()
    after.take_over()
    before.stand_by(after.address)


def _pass_on(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    _end(target)


def _end(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
