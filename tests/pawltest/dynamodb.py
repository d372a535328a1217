"""A DynamoDB for a test: dynalite of npm, with what it lacks added (tests/guard/dynamodb/dynalite),
or as it is.

    with Server() as server:
        server.create_table("orders", "id")
        server.call("GetItem", TableName="orders", Key={"id": {"S": "7"}})
        server.fail(operation="PutItem", how="after")    # the next one is applied, and answered 500
        server.requests()                                 # the operations since the last time

The packages are installed into the build directory, once for all tests that use them.
"""

import datetime
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from pawltest import ROOT, harness, node_clients
from pawltest.process import dies_with_parent, free_port
from pawltest.wait import wait_until

WANTED = ROOT / "tests/guard/dynamodb/dynalite"
ACCESS_KEY = "AKIDEXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "us-east-1"


def installed():
    """The directory that has dynalite in its node_modules."""
    return node_clients.installed(WANTED, "dynalite")


class Refused(Exception):
    """An answer other than 200. `name` is DynamoDB's word for it, `body` all that it says."""

    def __init__(self, body):
        super().__init__(body)
        self.body, self.name = body, body["__type"].rpartition("#")[2]


def sign(host, body, target):
    """The headers of a request, signed."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "host": host,
        "x-amz-date": now,
        "x-amz-target": target,
    }
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    names = ";".join(headers)
    scope = f"{now[:8]}/{REGION}/dynamodb/aws4_request"
    canonical = "\n".join(["POST", "/", "", lines, names, hashlib.sha256(body).hexdigest()])
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{SECRET_KEY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(
        key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashed}".encode(), "sha256"
    ).hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return headers


class Server:
    """plain: dynalite as it is, without transactions."""

    def __init__(self, plain=False):
        self.plain, self.port, self.process, self.log = plain, free_port(), None, None

    def start(self):
        modules = installed()
        self.log = harness.scratch("dynalite") / "log"
        words = ["node", WANTED / "server.js", str(self.port), *["--plain"] * self.plain]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                dies_with_parent(words),
                env={**os.environ, "NODE_PATH": str(modules / "node_modules")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self.answers, "dynalite answers")
        return self

    def answers(self):
        try:
            return self.requests() is not None
        except OSError:
            return False

    def remove(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.log.parent, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    def log_text(self):
        return self.log.read_text(errors="replace")

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def dsn(self):
        return f"endpoint={self.endpoint} region={REGION}"

    @staticmethod
    def environment():
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}

    def control(self, name, value=None):
        data = None if value is None else json.dumps(value).encode()
        with urllib.request.urlopen(f"{self.endpoint}/test/{name}", data, timeout=60) as answer:
            return json.loads(answer.read())

    def requests(self):
        return self.control("requests")

    def fail(self, *faults, **fault):
        """Each is {operation, how}; how is before, after, drop, throttle or conflict."""
        self.control("faults", [*faults, *([fault] if fault else [])])

    def call(self, operation, **body):
        data = json.dumps(body).encode()
        headers = sign(f"127.0.0.1:{self.port}", data, f"DynamoDB_20120810.{operation}")
        request = urllib.request.Request(self.endpoint, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise Refused(json.loads(error.read())) from None

    def create_table(self, name, hash_key, sort_key=None, types="SS"):
        keys = [(hash_key, "HASH", types[0])]
        if sort_key:
            keys.append((sort_key, "RANGE", types[1]))
        self.call(
            "CreateTable",
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": k, "AttributeType": t} for k, _, t in keys],
            KeySchema=[{"AttributeName": k, "KeyType": u} for k, u, _ in keys],
        )

    def item(self, table, **key):
        """As it is in the table; nothing: it is not there."""
        typed = {name: {"S": value} for name, value in key.items()}
        return self.call("GetItem", TableName=table, Key=typed, ConsistentRead=True).get("Item")

    def clear(self):
        for table in self.call("ListTables")["TableNames"]:
            self.call("DeleteTable", TableName=table)
        wait_until(lambda: not self.call("ListTables")["TableNames"], "the tables are gone")


class ServerCase(unittest.TestCase):
    """One server per class in self.server; before each test the guard is installed in it, and there
    is nothing else but the table `orders`. self.pawl() runs pawl there; `code` is its exit code,
    None: whatever it is."""

    maxDiff = None
    plain = False
    patience = 300  # seconds for one command

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.plain)
        cls.server.start()
        cls.addClassCleanup(cls.server.remove)
        cls.dsn = cls.server.dsn

    def setUp(self):
        self.server.fail()
        self.server.control("policies", {})
        self.server.clear()
        self.server.create_table("orders", "id")
        self.guard("install")

    def pawl(self, *words, code=0, **options):
        done = subprocess.run(
            [os.environ["PAWL"], *words],
            capture_output=True,
            text=True,
            timeout=self.patience,
            check=False,
            env={**os.environ, "PAWL_GUARD_DSN": self.dsn, **self.server.environment()},
            **({"stdin": subprocess.DEVNULL} if "input" not in options else {}),
            **options,
        )
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def guard(self, verb, *words, **options):
        return self.pawl("guard", verb, "dynamodb", *words, **options)

    def protect(self, pattern="orders", *words, mode="enforce"):
        return self.guard("protect", pattern, *words, "--mode", mode)

    def put(self, resource, token, item, *words, code=0):
        content = json.dumps({name: {"S": value} for name, value in item.items()})
        return self.guard(
            "put", resource, "--token", str(token), *words, input=content, code=code
        )

    def counted(self, guard, verdict):
        """How often the guard has counted it."""
        item = self.server.item("pawl_guards", name=f"count {guard}") or {}
        return int(item.get(verdict, {"N": "0"})["N"])


def main():
    unittest.main(module="__main__", verbosity=2)


def serve(port, *tables):
    """For people, until it is interrupted."""
    server = Server()
    server.port = port
    with server:
        for table in tables:
            server.create_table(table, "id")
        server.control("ready", {})
        server.process.wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]), *sys.argv[2:])
