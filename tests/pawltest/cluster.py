"""Several pawld that share a store in a private etcd.

    with PawldCluster(pawlds=2, etcds=1) as cluster:
        active = cluster.active()                 # waits for one
        active.kill()
        cluster.active()                          # the other one, after role_ttl
"""

from pawltest.etcd import Cluster
from pawltest.harness import Client, Closed, Error, Pawld, fields
from pawltest.process import free_port
from pawltest.wait import wait_until


class ClusterPawld(Pawld):
    """One of them. It keeps its port over restarts."""

    def __init__(self, etcd, role_ttl_ms, more=""):
        super().__init__(
            settings=f"[etcd]\nrole_ttl_ms = {role_ttl_ms}\n{more}",
            resp_address=f"127.0.0.1:{free_port()}",
        )
        self.etcd = etcd

    @property
    def address(self):
        return self.resp_address

    def command(self, *more):
        return super().command(
            "--store", "etcd", "--etcd", ",".join(self.etcd.addresses), "--cluster", "test", *more
        )

    def _serving(self):
        """Whether it answers, whatever its role."""
        if self.process.poll() is not None:
            return super()._serving()
        return self.status() is not None

    def status(self):
        """Its STATUS as a dict; None if it does not answer."""
        try:
            ports = [int(line) for line in self.port_file.read_text().split()]
            self.port, self.http_port = ports[0], ports[1] if len(ports) > 1 else 0
            with Client(self.port, 3, timeout=5) as client:
                reply = client.call("STATUS")
        except (OSError, ValueError, IndexError, Closed):
            return None
        return None if isinstance(reply, Error) else fields(reply)

    def role(self):
        status = self.status()
        return status and status["role"]


class PawldCluster:
    def __init__(self, pawlds=2, etcds=1, role_ttl_ms=2000, more="", etcd=None):
        self.etcd = etcd or Cluster(etcds)
        self.pawlds = [ClusterPawld(self.etcd, role_ttl_ms, more) for _ in range(pawlds)]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    def start(self):
        self.etcd.start()
        for pawld in self.pawlds:
            pawld.start()
        return self

    def active(self, among=None):
        """The one that is active; waits for it."""

        def find():
            for pawld in among or self.pawlds:
                if pawld.process is not None and pawld.role() == "active":
                    return pawld
            return None

        return wait_until(find, "a pawld is active")

    def others(self, pawld):
        return [other for other in self.pawlds if other is not pawld]

    def logs(self):
        return "\n".join(f"--- {pawld.address}\n{pawld.log()}" for pawld in self.pawlds)

    def remove(self):
        for pawld in self.pawlds:
            if pawld.process is not None and pawld.process.poll() is not None:
                pawld.wait()
            pawld.remove()
        self.etcd.remove()
