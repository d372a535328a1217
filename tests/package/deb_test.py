#!/usr/bin/python3
"""The Debian package, in a chroot that is this machine with a layer over it: nothing of it stays. Installs, creates a store, serves as
the unit says (over TLS with users, too), upgrades over a running one without losing a lease, removes, purges.

    deb_test.py SOURCE_DIR BUILD_DIR

Needs root, for the layer and the chroot. There is no service manager in it: the test starts what ExecStart says, as the user it says.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
UNIT = SOURCE / "deploy/systemd/pawld.service"


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True, timeout=120, **options).stdout


def build_package(into, version):
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", into, "-D", f"CPACK_PACKAGE_VERSION={version}",
        "-D", f"CPACK_DEBIAN_PACKAGE_VERSION={version}", cwd=BUILD)
    return next(into.glob(f"pawl_{version}_*.deb"))


def setting(name):
    """The last value of a key of the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="utf-8"), re.M)[-1]


class Chroot:
    """A shell that stays inside a mount namespace of its own; all of it goes when the shell ends."""

    def __init__(self, scratch):
        self.scratch = scratch
        script = ('set -e; mount -t tmpfs layer "$1"; mkdir "$1/upper" "$1/work" "$1/root"; '
                  'mount -t overlay root -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"; '
                  'mount --rbind /dev "$1/root/dev"; mount --rbind /proc "$1/root/proc"; mount -t tmpfs run "$1/root/run"; '
                  'echo ready; exec sleep infinity')
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", str(scratch)], stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise RuntimeError("no layer over / could be mounted; is this root?")

    def words(self, *words):
        return ["nsenter", "-m", "-t", str(self.holder.pid), "chroot", str(self.scratch / "root"), *(str(word) for word in words)]

    def run(self, *words, check=True):
        return subprocess.run(self.words(*words), capture_output=True, text=True, check=check, timeout=120, stdin=subprocess.DEVNULL)

    def install(self, package):
        inside = self.run("mktemp", "--suffix=.deb").stdout.strip()
        with package.open("rb") as file:
            subprocess.run(self.words("dd", f"of={inside}", "status=none"), stdin=file, check=True, timeout=60)
        self.run("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--install", inside)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pawl-deb-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.first, cls.second = (build_package(cls.scratch / version, version) for version in ("0.1.0", "0.1.1"))

    def setUp(self):
        layer = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        self.root = Chroot(layer)
        self.addCleanup(self.root.close)

    def start(self):
        """As the unit does, on a free port. The process, and the port."""
        as_user = ["setpriv", f"--reuid={setting('User')}", f"--regid={setting('Group')}", "--clear-groups"]
        server = subprocess.Popen(self.root.words(*as_user, *shlex.split(setting("ExecStart")), "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.stop, server)
        said = ""
        while "http: curl" not in said:  # What it says last before it serves.
            line = server.stdout.readline()
            self.assertNotEqual(line, "", said)
            said += line
        self.assertIn("serves 127.0.0.1:", said)
        self.http_port = re.search(r"https?://127\.0\.0\.1:(\d+)", said)[1]
        return server, re.search(r"serves 127\.0\.0\.1:(\d+)", said)[1]

    def stop(self, server):
        if server.poll() is None:
            server.terminate()
            server.wait(timeout=30)
        if not server.stdout.closed:
            server.stdout.close()
        return server.returncode

    def pawl(self, port, *words):
        return self.root.run("pawl", *words, "--addr", f"127.0.0.1:{port}").stdout

    def token(self, port, lock):
        return int(re.search(r'"token":(\d+)', self.pawl(port, "acquire", lock, "--json"))[1])

    def test_installed_it_serves_and_upgraded_it_keeps_leases_and_tokens(self):
        self.root.install(self.first)
        self.assertEqual(self.root.run("stat", "-c", "%U %a", "/var/lib/pawl").stdout, "pawl 700\n")
        server, port = self.start()
        before = self.token(port, "kept")
        self.assertEqual(self.stop(server), 0)

        self.root.install(self.second)
        self.assertIn("0.1.1", self.root.run("dpkg-query", "-W", "pawl").stdout)
        _, port = self.start()
        self.assertIn(f'"token":{before}', self.pawl(port, "show", "kept", "--json"))
        self.assertGreater(self.token(port, "another"), before)

    def test_installed_it_guards_a_sqlite_file(self):
        self.root.install(self.first)
        where = re.search(r"`(/\S+/libpawl_sqlite\.so)`", (SOURCE / "docs/how-to/guard-sqlite.md").read_text(encoding="utf-8"))[1]
        self.root.run("sqlite3", "/root/shop.db", "CREATE TABLE orders (n INT)")
        self.root.run("pawl", "guard", "install", "sqlite", "--file", "/root/shop.db")
        self.root.run("pawl", "guard", "protect", "sqlite", "--file", "/root/shop.db", "orders", "--mode", "enforce")
        write = ("BEGIN IMMEDIATE; SELECT pawl_use('orders', {}); INSERT INTO orders VALUES (1); COMMIT")
        self.root.run("sqlite3", "-bail", "/root/shop.db", f".load {where.removesuffix('.so')}", write.format(34))
        refused = self.root.run("sqlite3", "-bail", "/root/shop.db", f".load {where.removesuffix('.so')}", write.format(33), check=False)
        self.assertIn("PAWL_STALE", refused.stderr)
        self.assertIn("no such function", self.root.run("sqlite3", "/root/shop.db", "DELETE FROM orders", check=False).stderr)

    def configure_tls_and_users(self):
        """As docs/how-to/run-pawld.md says."""
        key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        self.root.run("sh", "-ec", f"""
            umask 077
            mkdir /root/tls && cd /root/tls
            openssl req -x509 {key} -days 30 -subj "/CN=my authority" -keyout ca.key -out ca.pem
            openssl req -new {key} -subj /CN=pawld -keyout pawld.key -out pawld.csr
            printf 'subjectAltName = DNS:localhost\n' > hosts.ext
            openssl x509 -req -in pawld.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile hosts.ext -out pawld.pem
            install -m 644 pawld.pem /etc/pawl/
            install -m 640 -g pawl pawld.key /etc/pawl/
            install -m 640 -g pawl /dev/null /etc/pawl/users
            pawl auth add boss --role admin --file /etc/pawl/users > boss.auth
            pawl auth add eye --role observe --file /etc/pawl/users > eye.auth
            for user in boss eye; do printf 'Authorization: Bearer %s\n' "$(cat $user.auth)" > $user.header; done
            sed -i 's|^#auth_file = .*|auth_file = "/etc/pawl/users"|; s|^#.tls.$|[tls]|; s|^#cert = .*|cert = "/etc/pawl/pawld.pem"|
                    s|^#key = .*|key = "/etc/pawl/pawld.key"|' /etc/pawl/pawl.toml""")

    def pawl_as(self, user, port, *words):
        return self.root.run("env", "PAWL_TLS_CA=/root/tls/ca.pem", f"PAWL_ADDR=tls://localhost:{port}", "pawl", *words, "--auth-file",
                             f"/root/tls/{user}.auth", check=False)

    def curl_as(self, user, path, *words):
        done = self.root.run("curl", "-sS", "--cacert", "/root/tls/ca.pem", "-H", f"@/root/tls/{user}.header", "-w", "%{http_code}", *words,
                             f"https://localhost:{self.http_port}{path}")
        return int(done.stdout[-3:]), done.stdout[:-3]

    def test_installed_it_serves_two_users_of_different_roles_over_tls_on_both_ports(self):
        self.root.install(self.first)
        self.configure_tls_and_users()
        server, port = self.start()
        granted = self.pawl_as("boss", port, "acquire", "deploy", "--json")
        token = re.search(r'"token":(\d+)', granted.stdout)[1]
        self.assertEqual(self.pawl_as("eye", port, "acquire", "deploy").returncode, 77)
        self.assertIn(f'"token":{token}', self.pawl_as("eye", port, "show", "deploy", "--json").stdout)

        status, shown = self.curl_as("eye", "/v1/locks/deploy")
        self.assertEqual((status, f'"token":{token}' in shown), (200, True), shown)
        post = ("-H", "Content-Type: application/json", "-d", f'{{"token": {token}, "reason": "test", "now": true}}')
        status, said = self.curl_as("eye", "/v1/locks/deploy/break", *post)
        self.assertEqual((status, '"code":"noperm"' in said), (403, True), said)
        status, said = self.curl_as("boss", "/v1/locks/deploy/break", *post)
        self.assertEqual(status, 200, said)
        self.assertEqual(self.curl_as("eye", "/metrics")[0], 200)

        # What ExecReload does: a user who was removed is nobody from then on.
        self.assertEqual(setting("ExecReload"), "/bin/kill -HUP $MAINPID")
        self.root.run("pawl", "auth", "rm", "eye", "--file", "/etc/pawl/users")
        server.send_signal(signal.SIGHUP)
        while "users in /etc/pawl/users: 1" not in server.stdout.readline():
            pass
        self.assertEqual(self.curl_as("eye", "/v1/status")[0], 401)
        self.assertEqual(self.curl_as("boss", "/v1/status")[0], 200)
        self.assertEqual(self.stop(server), 0)

    def test_an_upgrade_keeps_a_configuration_that_was_changed(self):
        self.root.install(self.first)
        self.root.run("sh", "-c", "echo 'max_ttl_ms = 60000' > /etc/pawl/new && cat /etc/pawl/pawl.toml >> /etc/pawl/new && "
                                  "cat /etc/pawl/new > /etc/pawl/pawl.toml && rm /etc/pawl/new")
        self.root.install(self.second)
        self.assertIn("max_ttl_ms = 60000", self.root.run("pawld", "--config", "/etc/pawl/pawl.toml", "--print-config").stdout)

    def test_an_unmounted_volume_is_not_taken_for_a_new_store_after_an_upgrade(self):
        self.root.install(self.first)
        self.root.run("sh", "-c", "rm -rf /var/lib/pawl/*")
        self.root.install(self.second)
        refused = self.root.run("setpriv", "--reuid=pawl", "--regid=pawl", "--clear-groups", *shlex.split(setting("ExecStart")), check=False)
        self.assertEqual(refused.returncode, 78, refused.stderr)

    def test_removing_keeps_the_store_and_purging_keeps_it_aside(self):
        self.root.install(self.first)
        self.root.run("dpkg", "--remove", "pawl")
        self.assertNotEqual(self.root.run("ls", "/var/lib/pawl").stdout, "")
        self.assertEqual(self.root.run("ls", "/etc/pawl").stdout, "pawl.toml\n")
        self.assertNotEqual(self.root.run("test", "-e", "/usr/bin/pawld", check=False).returncode, 0)
        said = self.root.run("dpkg", "--purge", "pawl").stderr
        self.assertIn("/var/lib/pawl.purged.", said)
        for gone in ("/etc/pawl", "/var/lib/pawl", "/usr/lib/systemd/system/pawld.service"):
            self.assertNotEqual(self.root.run("test", "-e", gone, check=False).returncode, 0, gone)

    def test_the_unit_is_one_that_systemd_understands(self):
        self.root.install(self.first)
        checked = self.root.run("systemd-analyze", "verify", "--man=no", "pawld.service", check=False)
        ours = [line for line in checked.stderr.splitlines() if "pawld" in line]
        self.assertEqual(ours, [])


class ConfigurationTest(unittest.TestCase):
    text = (SOURCE / "deploy/pawl.toml").read_text(encoding="utf-8")
    pawld = BUILD / "bin/pawld"

    def test_every_key_is_in_the_commented_file_with_its_default(self):
        defaults = dict(re.findall(r"^(\w+) = (.*)$", run(self.pawld, "--print-config"), re.M))
        told = dict(re.findall(r"^#?(\w+) = (.*)$", self.text, re.M))
        plain = {key: value.strip("'\"") for key, value in defaults.items()}
        self.assertEqual({key: value.strip("'\"") for key, value in told.items()}, {**plain, "data": "/var/lib/pawl"})

    def test_the_file_is_right_with_and_without_its_comments(self):
        for text in (self.text, re.sub(r"^#(?=[\w\[])", "", self.text, flags=re.M)):
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                run(self.pawld, "--config", file.name, "--check-config")


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    unittest.main(argv=sys.argv[:1], verbosity=2)
