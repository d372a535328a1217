"""An etcd for the tests of its guard, and the transaction that writers in other languages send.

    with Server() as server:
        server.install()
        server.protect("orders/*")
        guard = writer(server)
        guard.write(34, {"orders/7": "shipped"})         # "admitted", or Refused is raised

The writer is that of docs/how-to/guard-etcd.md. """

import json
import os
import re
import subprocess
import types
import unittest

from pawltest import ROOT
from pawltest.etcd import Cluster

PAGE = (ROOT / "docs/how-to/guard-etcd.md").read_text(encoding="utf-8")


(PYTHON_MODULE,) = re.findall(
    r"^cat > etcd-demo/pawl_etcd.py <<'END'\n(.*?)^END$", PAGE, re.M | re.S
)


def load_module():
    """pawl_etcd.py of the how-to."""
    module = types.ModuleType("pawl_etcd")
    code = compile(PYTHON_MODULE, "pawl_etcd.py", "exec")
    exec(code, module.__dict__)  # pylint: disable=exec-used
    return module


MODULE = load_module()
Refused = MODULE.Refused


def writer(server, guard="orders"):
    return MODULE.Guard(guard, server.nodes[0].url)


class Server(Cluster):
    """One node, unless told otherwise."""

    @property
    def port(self):
        return self.nodes[0].client_port

    @property
    def dsn(self):
        return "endpoints=" + ",".join(self.addresses)

    def log_text(self):
        return "".join(node.log() for node in self.nodes)

    def pawl(self, *words, check=True, **environment):
        done = subprocess.run(
            [os.environ["PAWL"], "guard", *words],
            env={**os.environ, "PAWL_GUARD_DSN": self.dsn, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"pawl guard {words}:\n{done.stdout}{done.stderr}")
        return done

    def install(self):
        self.pawl("install", "etcd")

    def protect(self, pattern, *more, mode="enforce"):
        return self.pawl("protect", "etcd", pattern, "--mode", mode, *more)

    def json_of(self, *words, check=True):
        return json.loads(self.pawl(*words, "--json", check=check).stdout)

    def value(self, key):
        """Of a key; nothing: it is not there."""
        lines = self.etcdctl("get", key, "--print-value-only").stdout
        return lines[:-1] if lines else None

    def counted(self, guard, verdict):
        """How often the guard has counted it."""
        found = self.json("get", f"pawl-guard/{guard}/count/{verdict}")
        return found["kvs"][0]["version"] if "kvs" in found else 0

    def clear(self):
        self.etcdctl("del", "--prefix", "")


class ServerCase(unittest.TestCase):
    """One etcd per class in self.server, empty but for the guard before each test."""

    maxDiff = None
    nodes = 1

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.nodes)
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()

    def setUp(self):
        self.server.clear()
        self.server.install()


def main():
    unittest.main(module="__main__", verbosity=2)
