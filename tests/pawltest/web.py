"""HTTP for tests: one request, one answer, nothing hidden.

    web = Web(pawld.http_port)
    reply = web.post("/v1/acquire", {"locks": ["a"], "ttl_ms": 60000})
    reply.status, reply.json["token"], reply.headers["retry-after"]
"""

import http.client
import json
import socket

JSON = "application/json"
PROBLEM = "application/problem+json"
PATIENCE = 60.0


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def type(self):
        return self.headers.get("content-type", "").split(";")[0]

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """Of a problem; nothing otherwise."""
        return self.json["code"] if self.type == PROBLEM else None

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


def connect(port, tls=None):
    if tls is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=tls)


class Web:
    """`tls`: an ssl.SSLContext. `auth`: "user:secret", sent with every request."""

    def __init__(self, port, tls=None, auth=None):
        self.port, self.tls = port, tls
        self.own = {"Authorization": f"Bearer {auth}"} if auth else {}

    def connection(self):
        return connect(self.port, self.tls)

    def call(self, method, path, body=None, headers=None):
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers={**self.own, **(headers or {})})
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.call("GET", path, headers=headers)

    def post(self, path, body=None, headers=None):
        text = json.dumps(body) if body is not None else ""
        return self.call("POST", path, text, {"Content-Type": JSON, **(headers or {})})

    def acquire(self, *locks, ttl=60000, headers=None, **members):
        return self.post("/v1/acquire", {"locks": list(locks), "ttl_ms": ttl, **members}, headers)

    def with_lease(self, verb, lease):
        return self.post(f"/v1/{verb}", headers={"Pawl-Lease": lease})

    def raw(self, data):
        """A socket that has sent `data`."""
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        peer.sendall(data)
        return peer

    def start_post(self, path, body, headers):
        """A connection that has asked and does not wait for the answer."""
        connection = self.connection()
        connection.request(
            "POST", path, json.dumps(body), {**self.own, "Content-Type": JSON, **headers}
        )
        return connection


def read_all(peer):
    """Everything until the other end closes."""
    data = b""
    while True:
        try:
            more = peer.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


class Events:
    """A reader of server-sent events."""

    def __init__(self, port, target="/v1/events", headers=None, tls=None):
        self.connection = connect(port, tls)
        self.connection.request("GET", target, headers=headers or {})
        self.response = self.connection.getresponse()
        self.last_id = None

    def next(self):
        """The next event as (event, id, data); nothing at the end. Comments and bare ids are passed
        over."""
        fields = {}
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            line = line.rstrip("\n")
            if not line:
                self.last_id = fields.get("id", self.last_id)
                if "data" in fields:
                    return fields.get("event"), fields.get("id"), json.loads(fields["data"])
                fields = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value

    def take(self, count):
        return [self.next() for _ in range(count)]

    def begun(self):
        """Returns once pawld observes for us: its first block has come."""
        while self.last_id is None:
            line = self.response.readline().decode()
            assert line, "it ended before it began"
            if line.startswith("id: "):
                self.last_id = line[4:].strip()
        self.response.readline()
        return self

    def close(self):
        self.connection.close()
        self.response.close()
