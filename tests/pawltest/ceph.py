"""A real S3: Ceph's radosgw over one monitor and one storage daemon, all in memory, in a directory
and on ports of its own. Debian's packages ceph-mon, ceph-osd and radosgw.

    with Ceph() as ceph:
        ceph.create_bucket("shop")
        ceph.dsn("shop"), ceph.environment()     # as of s3_server.Server
"""

import datetime
import hashlib
import http.client
import pathlib
import shutil
import subprocess
import tempfile
import urllib.parse
import uuid

from pawltest import s3_server
from pawltest.process import dies_with_parent, free_port
from pawltest.wait import PATIENCE, wait_until

CONFIGURATION = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon}/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = true
# Without these two radosgw waits for ever for an answer of the monitor.
ms mon client mode = crc
ms client mode = crc
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
mon allow pool size one = true
mon data avail crit = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
osd memory target = 939524096
run dir = {dir}/run
log file = {dir}/log/$name.log
admin socket = {dir}/run/$name.asok
keyring = {dir}/keyring
[mon.a]
mon data = {dir}/mon
mon initial members = a
[osd.0]
osd data = {dir}/osd0
osd op num shards = 1
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{rgw}
rgw thread pool size = 80
rgw enable usage log = false
rgw gc max objs = 1
rgw lc max objs = 1
rgw usage max shards = 1
rgw usage max user shards = 1
rgw data log num shards = 1
rgw md log max shards = 1
rgw reshard num logs = 1
"""


class Ceph:
    """Starts when it is entered, or by start(). Start it from the main thread."""

    def __init__(self, **_):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pawl-ceph-"))
        self.daemons = []
        self.port = 0

    def start(self):
        try:
            self._start()
        except BaseException:
            print(self.log_text())
            self.remove()
            raise
        return self

    def _start(self):
        for name in ("mon", "osd0", "run", "log"):
            (self.dir / name).mkdir()
        (self.dir / "keyring").touch()
        self.port, mon = free_port(), free_port()
        fsid = str(uuid.uuid4())
        text = CONFIGURATION.format(dir=self.dir, fsid=fsid, mon=mon, rgw=self.port)
        (self.dir / "ceph.conf").write_text(text)
        monmap = str(self.dir / "monmap")
        self.run(
            "monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{mon}]", monmap
        )
        self.ceph("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap)
        self.daemon("ceph-mon", "-i", "a", "-f")
        wait_until(lambda: self.answers("mon", "stat"), "Ceph's monitor answers")
        storage = str(uuid.uuid4())
        self.ceph("ceph", "osd", "new", storage)
        self.ceph("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", storage)
        self.daemon("ceph-osd", "-i", "0", "-f")
        wait_until(lambda: "1 up" in self.answers("osd", "stat"), "Ceph's storage daemon is up")
        self.daemon("radosgw", "-n", "client.rgw", "-f")
        wait_until(lambda: self.status() == 200, "radosgw answers", patience=4 * PATIENCE)
        self.ceph(
            *("radosgw-admin", "-n", "client.rgw", "user", "create", "--uid=t", "--display-name=t"),
            f"--access-key={s3_server.ACCESS_KEY}",
            f"--secret-key={s3_server.SECRET_KEY}",
        )

    def run(self, *words):
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise AssertionError(f"{words} exited with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def ceph(self, program, *words):
        return self.run(program, "-c", str(self.dir / "ceph.conf"), *words)

    def answers(self, *words):
        """What the monitor answers; empty while it does not."""
        done = subprocess.run(
            ["timeout", "10", "ceph", "-c", str(self.dir / "ceph.conf"), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 else ""

    def daemon(self, program, *words):
        with open(self.dir / "log" / f"{program}.out", "wb") as log:
            self.daemons.append(
                subprocess.Popen(
                    dies_with_parent([program, "-c", str(self.dir / "ceph.conf"), *words]),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def remove(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        self.daemons = []
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    def log_text(self):
        texts = []
        for path in sorted((self.dir / "log").glob("*.out")):
            texts.append(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}")
        return "\n".join(texts)

    # -- as a client

    def status(self):
        try:
            return self.request("GET", "/", signed=False)[0]
        except OSError:
            return 0

    def request(self, method, path, query="", body=b"", signed=True, **headers):
        """One request; its status, headers and body."""
        host = f"127.0.0.1:{self.port}"
        digest = hashlib.sha256(body).hexdigest()
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        headers |= {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
        path = urllib.parse.quote(path)
        if signed:
            names = ";".join(sorted(headers))
            lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
            canonical = "\n".join([method, path, query, lines, names, digest])
            scope = f"{now[:8]}/us-east-1/s3/aws4_request"
            hashed = hashlib.sha256(canonical.encode()).hexdigest()
            text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashed])
            headers["authorization"] = (
                f"AWS4-HMAC-SHA256 Credential={s3_server.ACCESS_KEY}/{scope}, "
                f"SignedHeaders={names}, "
                f"Signature={s3_server.sign(s3_server.SECRET_KEY, scope, text)}"
            )
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path + (f"?{query}" if query else ""), body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def create_bucket(self, name):
        status, _, body = self.request("PUT", f"/{name}")
        if status != 200:
            raise AssertionError(body.decode())

    def keep_versions(self, name):
        xml = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        status, _, body = self.request("PUT", f"/{name}", "versioning=", xml)
        if status != 200:
            raise AssertionError(body.decode())

    def dsn(self, bucket, **more):
        words = {"bucket": bucket, "endpoint": f"http://127.0.0.1:{self.port}", **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    environment = staticmethod(s3_server.Server.environment)
