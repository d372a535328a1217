"""Three tools that run a command under a lock, behind one face, for compare_run.py: pawl run,
etcdctl lock, flock."""

import os
import pathlib
import subprocess

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent, free_port
from pawltest.run_case import PAWL
from pawltest.tcp_proxy import Proxy

TTL_S = 2  # The least that etcd keeps.


def output(*words, env=None):
    return subprocess.run(
        [str(word) for word in words],
        check=True,
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE,
        env=env,
    ).stdout


def clean_environment(**more):
    """Ours, without what an outer run of any of the tools has put there."""
    ours = {
        key: value for key, value in os.environ.items() if not key.startswith(("PAWL_", "ETCD"))
    }
    return {**ours, **more}


class Tool:
    name = ""
    token_variable = None  # Where the command finds its token.
    has_server = True

    def command(self, lock, words):
        """Runs `words` under the lock."""
        raise NotImplementedError

    def environment(self, address=None):
        raise NotImplementedError

    def is_held(self, lock):
        raise NotImplementedError

    def waiters(self, lock):
        raise NotImplementedError

    def proxy(self):
        """A connection to the server that can be cut."""
        return Proxy(self.port)

    def end_lease(self, lock):
        """As an operator would, at the server."""
        raise NotImplementedError

    def close(self):
        pass


class PawlRun(Tool):
    name = "pawl run"
    token_variable = "PAWL_TOKEN"

    def __init__(self):
        self.pawld = harness.Pawld().start()
        self.port = self.pawld.port

    def command(self, lock, words):
        return [PAWL, "run", lock, "-t", f"{TTL_S}s", "--", *words]

    def environment(self, address=None):
        return clean_environment(PAWL_ADDR=address or f"127.0.0.1:{self.port}")

    def inspect(self, lock):
        with self.pawld.client() as client:
            return harness.fields(client.call("INSPECT", lock))

    def is_held(self, lock):
        return self.inspect(lock)["state"] == "held"

    def waiters(self, lock):
        return self.inspect(lock)["waiters"]

    def end_lease(self, lock):
        output(
            PAWL,
            "break",
            lock,
            "--token",
            self.inspect(lock)["token"],
            "--reason",
            "comparison",
            env=self.environment(),
        )

    def close(self):
        self.pawld.remove()


class EtcdctlLock(Tool):
    name = "etcdctl lock"
    token_variable = "ETCD_LOCK_REV"

    def __init__(self):
        self.port = free_port()
        self.dir = harness.scratch("etcd")
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            dies_with_parent(
                [
                    "etcd",
                    "--data-dir",
                    self.dir / "data",
                    "--listen-client-urls",
                    client,
                    "--advertise-client-urls",
                    client,
                    "--listen-peer-urls",
                    peer,
                    "--initial-advertise-peer-urls",
                    peer,
                    "--initial-cluster",
                    f"default={peer}",
                ]
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.dir / "log").open("wb"),
            env=clean_environment(),
        )
        wait_until(self.serves, "etcd serves")

    def serves(self):
        return (
            subprocess.run(
                ["etcdctl", "endpoint", "health"],
                capture_output=True,
                env=self.environment(),
                check=False,
            ).returncode
            == 0
        )

    def command(self, lock, words):
        return ["etcdctl", "lock", f"--ttl={TTL_S}", lock, "--", *words]

    def environment(self, address=None):
        return clean_environment(
            ETCDCTL_API="3", ETCDCTL_ENDPOINTS=address or f"127.0.0.1:{self.port}"
        )

    def keys(self, lock):
        """The holder's, then those of the waiters."""
        listed = output(
            "etcdctl",
            "get",
            "--prefix",
            lock + "/",
            "--keys-only",
            "--sort-by=CREATE",
            env=self.environment(),
        )
        return listed.split()

    def is_held(self, lock):
        return len(self.keys(lock)) > 0

    def waiters(self, lock):
        return max(0, len(self.keys(lock)) - 1)

    def end_lease(self, lock):
        lease = self.keys(lock)[0].rpartition("/")[2]  # A key is the lock's name and the lease.
        output("etcdctl", "lease", "revoke", lease, env=self.environment())

    def close(self):
        self.process.kill()
        self.process.wait()
        subprocess.run(["rm", "-rf", self.dir], check=True)


class Flock(Tool):
    name = "flock"
    has_server = False

    def __init__(self):
        self.dir = harness.scratch("flock")

    def file(self, lock):
        path = self.dir / lock
        path.touch()
        return path

    def command(self, lock, words):
        return ["flock", self.file(lock), *words]

    def environment(self, address=None):
        return clean_environment()

    def is_held(self, lock):
        return (
            subprocess.run(["flock", "--nonblock", self.file(lock), "true"], check=False).returncode
            != 0
        )

    def waiters(self, lock):
        inode = f":{os.stat(self.file(lock)).st_ino} "
        lines = pathlib.Path("/proc/locks").read_text().splitlines()
        return sum("->" in line and inode in line for line in lines)

    def close(self):
        subprocess.run(["rm", "-rf", self.dir], check=True)
