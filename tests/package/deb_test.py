#!/usr/bin/python3
"""The Debian packages, in a chroot that is this machine with a layer over it: nothing of it stays.
Checks them with lintian, installs, creates a store, serves as the unit says (over TLS with users,
too), backs up, restores and adopts as the documentation says, upgrades over a running one without
losing a lease, removes, purges.

    deb_test.py SOURCE_DIR BUILD_DIR

Needs root, for the layer and the chroot. There is no service manager in it: the test starts what
ExecStart says, as the user it says. """
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
UNITS = SOURCE / "deploy/systemd"
PACKAGES = (
    "libpawl-dev",
    "libpawl-guards0",
    "libpawl-testing0",
    "libpawl0",
    "pawl",
    "pawld",
    "postgresql-15-pawl",
)


def run(*words, **options):
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        **options,
    ).stdout


def build_packages(into):
    """As `make deb` does, which prints the files. By the name of the package."""
    recipe = re.search(
        r"cpack --config CPackConfig\.cmake .*", (SOURCE / "Makefile").read_text(encoding="utf-8")
    )[0].replace("$$", "$")
    printed = run(
        "bash",
        "-o",
        "pipefail",
        "-c",
        recipe.replace("CPackConfig.cmake", f"CPackConfig.cmake -B {into}"),
        cwd=BUILD,
    )
    return {path.name.partition("_")[0]: path for path in map(pathlib.Path, printed.splitlines())}


def next_version(package, into):
    """The same package with a greater version."""
    tree, made = into / "tree", into / "pawld_next.deb"
    run("dpkg-deb", "--raw-extract", package, tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", r"\g<0>+next", control.read_text(), flags=re.M))
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, made)
    return made


def setting(name, unit="pawld.service"):
    """The last value of a key of the unit."""
    return re.findall(rf"^{name}=(.*)$", (UNITS / unit).read_text(encoding="utf-8"), re.M)[-1]


def root_commands(page, after):
    """The commands of root in the first ```console block after that text."""
    text = (SOURCE / "docs/how-to" / page).read_text(encoding="utf-8").partition(after)[2]
    assert text, f"{page} does not contain {after!r}"
    block = re.search(r"^```console\n(.*?)^```", text, re.M | re.S)[1]
    return [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]


class Chroot:
    """This machine with a layer over it, in a mount namespace of its own; all of it goes when its
    process ends. `base` is one whose layer lies between: it must be finished."""

    def __init__(self, scratch, base=None):
        self.scratch = scratch
        below = f"{base.scratch}/upper:/" if base else "/"
        script = (
            'set -e; mount -t tmpfs layer "$1"; mkdir "$1/upper" "$1/work" "$1/root"; '
            'mount -t overlay root -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"; '
            'mount --rbind /dev "$1/root/dev"; mount --rbind /proc "$1/root/proc"; mount -t tmpfs '
            'run "$1/root/run"; '
            'mount --bind "$3" "$1/root/mnt"; echo ready; exec sleep infinity'
        )
        inside = ["nsenter", "-m", "-t", str(base.holder.pid)] if base else []
        self.holder = subprocess.Popen(
            [
                *inside,
                "unshare",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
                str(scratch),
                below,
                str(scratch.parent),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.holder.stdout.readline() != "ready\n":
            raise RuntimeError("no layer over / could be mounted; is this root?")

    def finish(self):
        """Nothing more is changed: from now on it is a base."""
        run("nsenter", "-m", "-t", self.holder.pid, "umount", "-R", self.scratch / "root")

    def words(self, *words):
        return [
            "nsenter",
            "-m",
            "-t",
            str(self.holder.pid),
            "chroot",
            str(self.scratch / "root"),
            *(str(word) for word in words),
        ]

    def run(self, *words, check=True):
        return subprocess.run(
            self.words(*words),
            capture_output=True,
            text=True,
            check=check,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )

    def install(self, *packages, triggers=False):
        """Of the scratch directory. Triggers (the manual's index) take longer than all the rest,
        and nothing here needs them."""
        inside = [f"/mnt/{package.relative_to(self.scratch.parent)}" for package in packages]
        self.run(
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "dpkg",
            "--force-unsafe-io",
            "--triggers" if triggers else "--no-triggers",
            "--install",
            *inside,
        )

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pawl-deb-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.packages = build_packages(cls.scratch / "packages")
        # It takes as long as all the rest, so it runs beside.
        cls.lintian = subprocess.Popen(
            [
                "lintian",
                "--allow-root",
                "--fail-on",
                "error,warning",
                *map(str, cls.packages.values()),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        cls.addClassCleanup(cls.lintian.communicate)
        cls.addClassCleanup(cls.lintian.kill)
        cls.second = next_version(cls.packages["pawld"], cls.scratch)
        cls.base = Chroot(pathlib.Path(tempfile.mkdtemp(dir=cls.scratch)))
        cls.addClassCleanup(cls.base.close)
        cls.base.install(cls.packages["pawld"], cls.packages["pawl"])
        cls.base.finish()

    def setUp(self):
        self.served = []
        self.root = Chroot(pathlib.Path(tempfile.mkdtemp(dir=self.scratch)), self.base)
        self.addCleanup(self.root.close)

    def as_unit(self, unit, *more):
        """The command of the unit, as its user."""
        return [
            "setpriv",
            f"--reuid={setting('User', unit)}",
            f"--regid={setting('Group', unit)}",
            "--clear-groups",
            *more,
            *shlex.split(setting("ExecStart", unit)),
        ]

    def start(self):
        """As the unit does, on a free port. The process, and the port."""
        return self.serve(*self.as_unit("pawld.service"))

    def serve(self, *words, **options):
        ports = f"/tmp/ports-{len(self.served)}"
        self.served.append(ports)
        server = subprocess.Popen(
            self.root.words(
                *words, "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port-file", ports
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        self.addCleanup(self.stop, server)
        while (reported := self.root.run("cat", ports, check=False)).returncode != 0:
            self.assertIsNone(server.poll(), "pawld ended")
        port, self.http_port = reported.stdout.split()
        return server, port

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

    def test_upgrade_keeps_leases_and_tokens(self):
        self.assertEqual(self.root.run("stat", "-c", "%U %a", "/var/lib/pawl").stdout, "pawl 700\n")
        server, port = self.start()
        before = self.token(port, "kept")
        self.assertEqual(self.stop(server), 0)

        self.root.install(self.second)
        self.assertIn("+next", self.root.run("dpkg-query", "-W", "pawld").stdout)
        _, port = self.start()
        self.assertIn(f'"token":{before}', self.pawl(port, "show", "kept", "--json"))
        self.assertGreater(self.token(port, "another"), before)

    def test_package_guards_a_sqlite_file(self):
        where = re.search(
            r"`(/\S+/libpawl_sqlite\.so)`",
            (SOURCE / "docs/how-to/guard-sqlite.md").read_text(encoding="utf-8"),
        )[1]
        self.root.run("sqlite3", "/root/shop.db", "CREATE TABLE orders (n INT)")
        self.root.run("pawl", "guard", "install", "sqlite", "--file", "/root/shop.db")
        self.root.run(
            "pawl",
            "guard",
            "protect",
            "sqlite",
            "--file",
            "/root/shop.db",
            "orders",
            "--mode",
            "enforce",
        )
        write = (
            "BEGIN IMMEDIATE; SELECT pawl_use('orders', {}); INSERT INTO orders VALUES (1); COMMIT"
        )
        self.root.run(
            "sqlite3",
            "-bail",
            "/root/shop.db",
            f".load {where.removesuffix('.so')}",
            write.format(34),
        )
        refused = self.root.run(
            "sqlite3",
            "-bail",
            "/root/shop.db",
            f".load {where.removesuffix('.so')}",
            write.format(33),
            check=False,
        )
        self.assertIn("PAWL_STALE", refused.stderr)
        self.assertIn(
            "no such function",
            self.root.run("sqlite3", "/root/shop.db", "DELETE FROM orders", check=False).stderr,
        )

    def configure_tls_and_users(self):
        """As docs/how-to/run-pawld.md says."""
        key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        self.root.run(
            "sh",
            "-ec",
            f"""
            umask 077
            mkdir /root/tls && cd /root/tls
            openssl req -x509 {key} -days 30 -subj "/CN=my authority" -keyout ca.key -out ca.pem
            openssl req -new {key} -subj /CN=pawld -keyout pawld.key -out pawld.csr
            printf 'subjectAltName = DNS:localhost\n' > hosts.ext
            openssl x509 -req -in pawld.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile hosts.ext -out pawld.pem
            {{ {"; ".join(root_commands("run-pawld.md", "With the package, pawld runs as"))}; }} > boss.auth
            pawl auth add eye --role observe --file /etc/pawl/users > eye.auth
            for user in boss eye; do printf 'Authorization: Bearer %s\n' "$(cat $user.auth)" > $user.header; done
            sed -i 's|^#auth_file = .*|auth_file = "/etc/pawl/users"|; s|^#.tls.$|[tls]|; s|^#cert = .*|cert = "/etc/pawl/pawld.pem"|
                    s|^#key = .*|key = "/etc/pawl/pawld.key"|' /etc/pawl/pawl.toml""",
        )

    def pawl_as(self, user, port, *words):
        return self.root.run(
            "env",
            "PAWL_TLS_CA=/root/tls/ca.pem",
            f"PAWL_ADDR=tls://localhost:{port}",
            "pawl",
            *words,
            "--auth-file",
            f"/root/tls/{user}.auth",
            check=False,
        )

    def curl_as(self, user, path, *words):
        done = self.root.run(
            "curl",
            "-sS",
            "--cacert",
            "/root/tls/ca.pem",
            "-H",
            f"@/root/tls/{user}.header",
            "-w",
            "%{http_code}",
            *words,
            f"https://localhost:{self.http_port}{path}",
        )
        return int(done.stdout[-3:]), done.stdout[:-3]

    def test_package_serves_users_over_tls_on_both_ports(self):
        self.configure_tls_and_users()
        server, port = self.start()
        granted = self.pawl_as("boss", port, "acquire", "deploy", "--json")
        token = re.search(r'"token":(\d+)', granted.stdout)[1]
        self.assertEqual(self.pawl_as("eye", port, "acquire", "deploy").returncode, 77)
        self.assertIn(
            f'"token":{token}', self.pawl_as("eye", port, "show", "deploy", "--json").stdout
        )

        status, shown = self.curl_as("eye", "/v1/locks/deploy")
        self.assertEqual((status, f'"token":{token}' in shown), (200, True), shown)
        post = (
            "-H",
            "Content-Type: application/json",
            "-d",
            f'{{"token": {token}, "reason": "test", "now": true}}',
        )
        status, output = self.curl_as("eye", "/v1/locks/deploy/break", *post)
        self.assertEqual((status, '"code":"noperm"' in output), (403, True), output)
        status, output = self.curl_as("boss", "/v1/locks/deploy/break", *post)
        self.assertEqual(status, 200, output)
        self.assertEqual(self.curl_as("eye", "/metrics")[0], 200)

        # What ExecReload does: a removed user is unknown from then on.
        self.assertEqual(setting("ExecReload"), "/bin/kill -HUP $MAINPID")
        self.root.run("pawl", "auth", "rm", "eye", "--file", "/etc/pawl/users")
        server.send_signal(signal.SIGHUP)
        while "users in /etc/pawl/users: 1" not in server.stdout.readline():
            pass
        self.assertEqual(self.curl_as("eye", "/v1/status")[0], 401)
        self.assertEqual(self.curl_as("boss", "/v1/status")[0], 200)
        self.assertEqual(self.stop(server), 0)

    def test_scheduled_backups_work_over_tls_and_old_ones_are_removed(
        self,
    ):
        self.configure_tls_and_users()
        for command in root_commands("back-up.md", "If pawld has users, create one"):
            if not command.startswith("systemctl "):
                self.root.run("sh", "-ec", command)
        self.assertEqual(
            self.root.run("stat", "-c", "%U %a", "/etc/pawl/backup.auth").stdout, "pawl 600\n"
        )
        _, port = self.start()
        for command in root_commands("back-up.md", "If pawld uses TLS, set its address"):
            self.root.run("sh", "-ec", command.replace(":7295", f":{port}"))
        self.assertEqual(setting("EnvironmentFile", "pawl-backup.service"), "-/etc/pawl/backup.env")
        with_settings = [
            "sh",
            "-c",
            'set -a; . /etc/pawl/backup.env; BACKUP_KEEP=2; exec "$@"',
            "sh",
        ]
        unit = self.as_unit("pawl-backup.service", *with_settings)
        cron = re.search(
            r"^17 3 \* \* \*  pawl  (.*)$",
            (SOURCE / "docs/how-to/back-up.md").read_text(encoding="utf-8"),
            re.M,
        )[1]
        self.root.run(*unit)
        self.root.run("setpriv", "--reuid=pawl", "--regid=pawl", "--clear-groups", "sh", "-c", cron)
        first, second = self.root.run("ls", "/var/backups/pawl").stdout.split()
        self.root.run(*unit)
        left = self.root.run("ls", "/var/backups/pawl").stdout.split()
        self.assertEqual((left[0], len(left)), (second, 2), f"{first} was the oldest")
        self.root.run("pawld", "verify", "--data", f"/var/backups/pawl/{left[1]}")
        status, reported = self.curl_as("eye", "/metrics")
        self.assertEqual(status, 200)
        self.assertGreater(
            float(re.search(r"^pawl_last_backup_timestamp_seconds (\S+)$", reported, re.M)[1]),
            1_700_000_000,
        )

    def as_documented(self, commands, server):
        """Runs them in one shell each; systemctl stops what runs, and starts it as the unit does.
        The new process and port."""
        port, script = None, []
        for command in commands:
            if command.startswith("systemctl stop"):
                self.assertEqual(self.stop(server), 0)
            elif command.startswith("systemctl start"):
                server, port = self.start()
            elif "--adopt" in command:
                by_hand, _ = self.serve(*shlex.split(command), start_new_session=True)
                os.killpg(by_hand.pid, signal.SIGINT)  # Ctrl-C
                self.assertEqual(by_hand.wait(timeout=30), 0)
            else:
                script.append(command)
                if "restore" in command or command.startswith("ch"):
                    self.root.run("sh", "-ec", "\n".join(script))
                    script = []
        self.assertEqual(script, [])
        return server, port

    def test_documented_restore_keeps_tokens_growing(self):
        server, port = self.start()
        before = self.token(port, "kept")
        self.pawl(port, "backup", "/var/backups/pawl/2026-11-16T031700Z")
        _, port = self.as_documented(root_commands("back-up.md", "### With the package"), server)
        status = json.loads(self.pawl(port, "status", "--json"))
        self.assertGreater(status["last_token"], before)
        self.assertGreater(status["restoring_ms"], 0)
        self.assertEqual(self.root.run("stat", "-c", "%U %a", "/var/lib/pawl").stdout, "pawl 700\n")

    def test_data_from_another_machine_needs_adopt(self):
        self.root.run("sh", "-c", "echo 00112233445566778899aabbccddeeff > /etc/machine-id")
        server, port = self.start()
        before = self.token(port, "kept")
        self.assertEqual(self.stop(server), 0)
        self.root.run(
            "sh",
            "-c",
            "echo ffeeddccbbaa99887766554433221100 > /etc/machine-id; chown -R root:root "
            "/var/lib/pawl",
        )
        commands = root_commands("back-up.md", "start pawld once by hand")
        self.root.run(
            "sh", "-ec", "\n".join(command for command in commands if command.startswith("ch"))
        )
        refused = self.root.run(*self.as_unit("pawld.service"), check=False)
        self.assertEqual(
            (refused.returncode, "--adopt" in refused.stderr), (78, True), refused.stderr
        )
        _, port = self.as_documented(commands, server)
        self.assertIn(f'"token":{before}', self.pawl(port, "show", "kept", "--json"))

    def test_audit_log_resumes_and_names_holders(self):
        _, port = self.start()
        self.root.run("install", "-d", "-o", "pawl", "-g", "pawl", "-m", "700", "/var/log/pawl")
        self.root.run("sh", "-c", f"echo PAWL_ADDR=127.0.0.1:{port} >> /etc/pawl/audit.env")
        self.assertEqual(setting("EnvironmentFile", "pawl-audit.service"), "-/etc/pawl/audit.env")
        self.assertEqual(setting("LogsDirectory", "pawl-audit.service"), "pawl")
        unit = self.as_unit(
            "pawl-audit.service", "sh", "-c", 'set -a; . /etc/pawl/audit.env; exec "$@"', "sh"
        )

        def follow():
            audit = subprocess.Popen(
                self.root.words(*unit), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self.addCleanup(self.stop, audit)
            return audit

        def events():
            text = self.root.run(
                "sh",
                "-c",
                "cat /var/log/pawl/audit.jsonl.1 /var/log/pawl/audit.jsonl 2> /dev/null",
                check=False,
            ).stdout
            return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

        def until(lock, act=lambda: None):
            while not any(event["lock"] == lock for event in events()):
                self.assertIsNone(audit.poll())
                act()

        audit = follow()
        # It begins with now, whenever that is.
        until(
            "first",
            lambda: self.root.run(
                "pawl", "run", "first", "--addr", f"127.0.0.1:{port}", "--", "true"
            ),
        )
        audit.kill()
        audit.wait()
        # As logrotate does.
        self.root.run("mv", "/var/log/pawl/audit.jsonl", "/var/log/pawl/audit.jsonl.1")
        missed = self.token(port, "missed")
        audit = follow()
        until("missed")
        ids = [event["id"] for event in events()]
        self.assertEqual(len(set(ids)), len(ids), "each event once")
        query = re.search(
            r"^cat > audit-demo/held.jq <<'END'\n(.*?)^END$",
            (SOURCE / "docs/how-to/audit-log.md").read_text(encoding="utf-8"),
            re.M | re.S,
        )[1]
        held = self.root.run(
            "jq",
            "-s",
            "-c",
            "--arg",
            "lock",
            "missed",
            "--argjson",
            "at",
            str(int(time.time() * 1000) + 1000),
            query,
            "/var/log/pawl/audit.jsonl",
        ).stdout
        self.assertEqual(json.loads(held)["token"], missed)
        self.assertEqual(
            self.root.run("stat", "-c", "%U %a", "/var/log/pawl/audit.jsonl").stdout.split()[0],
            "pawl",
        )
        # A line that a crash cut off spoils no other, and nothing after it is missed.
        audit.kill()
        audit.wait()
        self.root.run("sh", "-c", """printf '{"event":"gran' >> /var/log/pawl/audit.jsonl""")
        self.token(port, "behind-a-torn-line")
        audit = follow()
        until("behind-a-torn-line")
        ids = [event["id"] for event in events()]
        self.assertEqual(len(set(ids)), len(ids), "each event once")

    def test_library_is_found_by_pkg_config_and_at_run_time(self):
        self.root.install(
            *(self.packages[name] for name in PACKAGES if name.startswith("libpawl")), triggers=True
        )
        flags = self.root.run(
            "pkg-config",
            "--cflags",
            "--libs",
            "pawl",
            "pawl-postgres",
            "pawl-mariadb",
            "pawl-redis",
            "pawl-dynamodb",
            "pawl-etcd",
            "pawl-s3",
            "pawl-sqlite",
            "pawl-testing",
        ).stdout.split()
        self.root.run(
            "sh",
            "-ec",
            "test -e /usr/include/pawl/client.h; cd /root; echo 'int main() {}' > a.cc; "
            'c++ -Wl,--no-as-needed a.cc "$@"; ./a.out',
            "sh",
            *flags,
        )
        self.assertIn("libpawl0", self.root.run("dpkg", "-S", "/usr/lib/libpawl.so.0").stdout)

    def test_the_server_needs_no_database_client(self):
        needs = {
            name: run("dpkg-deb", "--field", package, "Depends")
            for name, package in self.packages.items()
        }
        self.assertEqual(sorted(needs), sorted(PACKAGES))
        for client in ("libpq", "mariadb", "sqlite", "hiredis", "curl"):
            self.assertNotIn(client, needs["pawld"])
            self.assertNotIn(client, needs["libpawl0"])
        self.assertIn("libpq5", needs["pawl"])
        self.assertIn("libssl3", needs["pawld"])

    def test_guards_documentation_and_examples_are_in_the_package(self):
        files = run("dpkg-deb", "--contents", self.packages["pawl"])
        for path in (
            "/usr/share/pawl/guards/postgres/pawl.sql",
            "/usr/share/pawl/guards/mariadb/pawl.sql",
            "/usr/share/pawl/guards/redis/pawl.lua",
            "/usr/share/doc/pawl/docs/how-to/back-up.md",
            "/usr/share/doc/pawl/examples/cron-once/run-once",
            "/usr/share/man/man1/pawl-backup.1.gz",
            "/usr/lib/pawl/libpawl_sqlite.so",
        ):
            self.assertIn(f".{path}\n", files)
        files = run("dpkg-deb", "--contents", self.packages["pawld"])
        self.assertIn("./usr/share/pawl/systemd/pawld-cluster.conf\n", files)
        files = run("dpkg-deb", "--contents", self.packages["postgresql-15-pawl"])
        self.assertIn("./usr/lib/postgresql/15/lib/pawl_guard.so\n", files)
        files = run("dpkg-deb", "--contents", self.packages["libpawl-dev"])
        self.assertIn("./usr/share/doc/libpawl-dev/examples/cpp-worker/main.cc\n", files)

    def test_links_of_the_installed_documentation_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as root:
            run("dpkg-deb", "--extract", self.packages["pawl"], root)
            pages = sorted(pathlib.Path(root, "usr/share/doc/pawl").rglob("*.md"))
            self.assertGreater(len(pages), 40)
            broken = [
                f"{page.relative_to(root)}: {target}"
                for page in pages
                for target in re.findall(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)", page.read_text())
                if not (page.parent / target).exists()
            ]
        # Debian keeps the licence in the file `copyright`.
        self.assertEqual(broken, ["usr/share/doc/pawl/README.md: LICENSE"])

    def test_lintian_finds_nothing(self):
        found, _ = self.lintian.communicate(timeout=240)
        self.assertEqual((self.lintian.returncode, found), (0, ""))

    def test_upgrade_keeps_a_changed_configuration(self):
        self.root.run(
            "sh",
            "-c",
            "echo 'max_ttl_ms = 60000' > /etc/pawl/new && cat /etc/pawl/pawl.toml >> /etc/pawl/new "
            "&& "
            "cat /etc/pawl/new > /etc/pawl/pawl.toml && rm /etc/pawl/new",
        )
        self.root.install(self.second)
        self.assertIn(
            "max_ttl_ms = 60000",
            self.root.run("pawld", "--config", "/etc/pawl/pawl.toml", "--print-config").stdout,
        )

    def test_unmounted_volume_is_not_a_new_store_after_an_upgrade(self):
        self.root.run("sh", "-c", "rm -rf /var/lib/pawl/*")
        self.root.install(self.second)
        refused = self.root.run(
            "setpriv",
            "--reuid=pawl",
            "--regid=pawl",
            "--clear-groups",
            *shlex.split(setting("ExecStart")),
            check=False,
        )
        self.assertEqual(refused.returncode, 78, refused.stderr)

    def test_remove_keeps_the_store_and_purge_moves_it_aside(self):
        self.root.run("dpkg", "--remove", "pawld")
        self.assertNotEqual(self.root.run("ls", "/var/lib/pawl").stdout, "")
        self.assertEqual(
            self.root.run("ls", "/etc/pawl").stdout, "audit.env\nbackup.env\npawl.toml\n"
        )
        self.assertNotEqual(
            self.root.run("test", "-e", "/usr/bin/pawld", check=False).returncode, 0
        )
        output = self.root.run("dpkg", "--purge", "pawld").stderr
        self.assertIn("/var/lib/pawl.purged.", output)
        for gone in ("/etc/pawl", "/var/lib/pawl", "/lib/systemd/system/pawld.service"):
            self.assertNotEqual(self.root.run("test", "-e", gone, check=False).returncode, 0, gone)

    def test_systemd_accepts_the_units(self):
        units = [path.name for path in UNITS.iterdir() if path.suffix != ".conf"]
        self.assertEqual(len(units), 4)
        checked = self.root.run("systemd-analyze", "verify", "--man=no", *units, check=False)
        ours = [line for line in checked.stderr.splitlines() if "pawl" in line]
        self.assertEqual(ours, [])


class AlertTest(unittest.TestCase):
    def test_only_an_old_backup_is_an_alert(self):
        day = 86_400

        def alerts(series, hours, expected):
            alert = [
                {
                    "exp_labels": {"severity": "warning", "instance": "a"},
                    "exp_annotations": {
                        "summary": "a has had no good backup for 36 hours",
                        "description": self.description(),
                    },
                }
            ]
            return {
                "interval": "10m",
                "input_series": [
                    {"series": 'pawl_last_backup_timestamp_seconds{instance="a"}', "values": series}
                ],
                "alert_rule_test": [
                    {
                        "eval_time": f"{hours}h",
                        "alertname": "PawlBackupIsOld",
                        "exp_alerts": alert if expected else [],
                    }
                ],
            }

        # Values at steps of 10 minutes: made at 1 min; pawld restarted at 10 h. Every step evaluates
        # every rule, so steps of a minute keep a busy machine occupied for more than a minute.
        tests = [
            alerts(f"60x60 0x{3 * 144}", 30, False),
            alerts(f"60x60 0x{3 * 144}", 38, True),
            alerts(f"60x144 {day}x144", 38, False),
            alerts(f"0x{3 * 144}", 38, False),  # never backed up
        ]
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "test.yml"
            path.write_text(
                json.dumps(
                    {"rule_files": [str(self.rules)], "evaluation_interval": "10m", "tests": tests}
                )
            )
            done = subprocess.run(
                ["promtool", "test", "rules", path],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    rules = SOURCE / "deploy/prometheus/pawl.rules.yml"

    def description(self):
        return re.search(
            r'alert: PawlBackupIsOld.*?description: "([^"]*)"',
            self.rules.read_text(encoding="utf-8"),
            re.S,
        )[1]


class ConfigurationTest(unittest.TestCase):
    text = (SOURCE / "deploy/pawl.toml").read_text(encoding="utf-8")
    pawld = BUILD / "bin/pawld"

    def test_every_key_is_in_the_commented_file_with_its_default(self):
        defaults = dict(re.findall(r"^(\w+) = (.*)$", run(self.pawld, "--print-config"), re.M))
        reported = dict(re.findall(r"^#?(\w+) = (.*)$", self.text, re.M))
        plain = {key: value.strip("'\"") for key, value in defaults.items()}
        self.assertEqual(
            {key: value.strip("'\"") for key, value in reported.items()},
            {**plain, "data": "/var/lib/pawl"},
        )

    def test_commented_configuration_is_valid_either_way(self):
        for text in (self.text, re.sub(r"^#(?=[\w\[])", "", self.text, flags=re.M)):
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                run(self.pawld, "--config", file.name, "--check-config")


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    unittest.main(argv=sys.argv[:1], verbosity=2)
