"""A small RESP2/RESP3 client with a parser of its own, so that tests see the bytes that pawld
really sends.

    client = resp.Client(port, protocol=3)
    grant = client.call("ACQUIRE", "reports", "TTL", 15000)     # dict in RESP3, flat list in RESP2
    fields(grant)["token"]                                      # a dict from either
    client.raw                                                  # the exact bytes of the last frame
"""

import socket

# Seconds until a test that waits for bytes gives up. Never an expectation of speed.
DEADLINE = 60.0


class Error(str):
    """A `-CODE text` reply, without the minus."""

    @property
    def code(self):
        return self.split(" ", 1)[0]


class Push(list):
    """A RESP3 push frame."""


class Simple(str):
    """A `+text` reply."""


class Closed(Exception):
    """The server closed the connection; `unread` is what it had sent before that without finishing
    a frame."""

    def __init__(self, unread=b""):
        super().__init__(f"connection closed, {len(unread)} bytes of an unfinished frame")
        self.unread = unread


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


def fields(reply):
    """The pairs of a map, from RESP3 (a dict already) or RESP2 (a flat list)."""
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, list) or len(reply) % 2:
        raise AssertionError(f"not a map: {reply!r}")
    return dict(zip(reply[0::2], reply[1::2]))


class NeedMore(Exception):
    pass


def _line(buffer, at):
    end = buffer.find(b"\r\n", at)
    if end < 0:
        raise NeedMore
    return bytes(buffer[at:end]), end + 2


def _bytes(buffer, at, size):
    if len(buffer) < at + size + 2:
        raise NeedMore
    if buffer[at + size : at + size + 2] != b"\r\n":
        raise AssertionError("no CRLF behind a bulk string")
    return bytes(buffer[at : at + size]), at + size + 2


def _items(buffer, at, count):
    items = []
    for _ in range(count):
        item, at = parse(buffer, at)
        items.append(item)
    return items, at


def _text(raw):
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def parse(buffer, at=0):
    """One frame that begins at `at`; (value, offset behind it). Raises NeedMore, or AssertionError
    on nonsense."""
    if at >= len(buffer):
        raise NeedMore
    mark = buffer[at : at + 1]
    head, at = _line(buffer, at + 1)
    if mark == b"+":
        return Simple(head.decode()), at
    if mark == b"-":
        return Error(head.decode()), at
    if mark == b":":
        return int(head), at
    if mark == b",":
        return float(head), at
    if mark == b"#":
        return {b"t": True, b"f": False}[head], at
    if mark == b"_":
        assert head == b"", head
        return None, at
    if mark in b"$=":
        if head == b"-1":
            return None, at
        raw, at = _bytes(buffer, at, int(head))
        return _text(raw[4:] if mark == b"=" else raw), at
    if mark in b"*~>":
        if head == b"-1":
            return None, at
        items, at = _items(buffer, at, int(head))
        return (Push(items) if mark == b">" else items), at
    if mark == b"%":
        items, at = _items(buffer, at, 2 * int(head))
        return dict(zip(items[0::2], items[1::2])), at
    raise AssertionError(f"no RESP type begins with {mark!r}")


class Client:
    """One connection. Not thread-safe."""

    def __init__(
        self,
        port,
        protocol=2,
        timeout=DEADLINE,
        receive_buffer=None,
        tls=None,
        auth=None,
        host="127.0.0.1",
    ):
        """`tls`: an ssl.SSLContext; `auth`: user:secret, for protocol 3."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect((host, port))
            if tls:
                self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.at = 0  # where the next frame begins in `buffer`
        self.raw = b""  # the last frame as it came
        self.received = 0  # bytes, since the connection began
        if protocol == 3:
            self._say_hello(["AUTH", *auth.split(":", 1)] if auth else [])

    def _say_hello(self, credentials):
        try:
            hello = self.call("HELLO", 3, *credentials)
            if not isinstance(hello, dict):
                raise AssertionError(f"HELLO 3 answered {hello!r}")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, *words):
        self.socket.sendall(encode(*words))

    def send_bytes(self, data):
        self.socket.sendall(data)

    def read(self):
        """The next frame. Raises Closed, or TimeoutError."""
        while True:
            try:
                value, end = parse(self.buffer, self.at)
            except NeedMore:
                self._receive()
                continue
            self.raw = bytes(self.buffer[self.at : end])
            self.at = end
            if self.at > 1 << 16:
                del self.buffer[: self.at]
                self.at = 0
            return value

    def _receive(self):
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(bytes(self.buffer[self.at :]))
        self.received += len(data)
        self.buffer += data

    def call(self, *words):
        self.send(*words)
        return self.read()

    def pipeline(self, commands):
        """Sends all of them at once; the replies in order."""
        commands = list(commands)
        self.send_bytes(b"".join(encode(*words) for words in commands))
        return [self.read() for _ in commands]

    def silent(self):
        """Whether nothing has arrived that was not read: no unread bytes here, none in the
        kernel."""
        if self.at < len(self.buffer):
            return False
        self.socket.setblocking(False)
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(DEADLINE)
        self.buffer += data
        return False

    def read_to_end(self):
        """Every byte until the server closes."""
        data = bytearray(self.buffer[self.at :])
        self.at = len(self.buffer)
        while True:
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return bytes(data)
            if not more:
                return bytes(data)
            data += more
