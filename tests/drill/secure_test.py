#!/usr/bin/python3
"""Drills with a pawld that requires TLS and authentication."""

import json
import os
import shutil
import subprocess

from drill_case import PAWL, TTL
from pawltest import harness
from pawltest.process import dies_with_parent
from pawltest.tls_files import LOCAL, Authority, trusting
from sqlite_test import make_file


class SecureDrillTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.scratch("drill-tls")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.authority = Authority(cls.dir, "authority")
        files = cls.authority.sign("pawld", LOCAL)
        cls.pawld = harness.Pawld(
            settings=f'[tls]\ncert = "{files.cert}"\nkey = "{files.key}"\n',
            tls=trusting(cls.authority),
        )
        cls.addClassCleanup(cls.pawld.remove)
        cls.user = cls.add("driller", "drills/")
        cls.stranger = cls.add("stranger", "elsewhere/")
        cls.pawld.start("--auth-file", cls.dir / "users")
        cls.path = make_file(cls.dir)

    @classmethod
    def add(cls, name, prefix):
        return subprocess.run(
            [
                PAWL,
                "auth",
                "add",
                name,
                "--role",
                "use",
                "--prefix",
                prefix,
                "--file",
                cls.dir / "users",
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def drill(self, name, auth, code, guard="sqlite", more=()):
        words = [
            PAWL,
            "drill",
            name,
            *more,
            "--guard",
            guard,
            "--file",
            self.path,
            "--lock",
            "drills/orders",
            "--ttl",
            TTL,
            "--json",
        ]
        done = subprocess.run(
            dies_with_parent(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={
                **os.environ,
                "PAWL_ADDR": f"tls://localhost:{self.pawld.port}",
                "PAWL_TLS_CA": str(self.authority.cert),
                "PAWL_AUTH": auth,
            },
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_workers_use_tls_and_authenticate(self):
        self.assertTrue(self.drill("pause", self.user, 0)["passed"])

    def test_workers_behind_a_proxy_use_tls(self):
        self.assertTrue(self.drill("partition", self.user, 0)["passed"])

    def test_yes_is_refused_for_a_user_without_all_locks(self):
        subprocess.run(
            [PAWL, "guard", "protect", "sqlite", "orders", "--file", self.path],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        message = self.drill("pause", self.user, 64, guard="sqlite:orders", more=["--yes"])[
            "error"
        ]["detail"]
        self.assertIn("not shown all locks", message)

    def test_denied_lock_is_an_error(self):
        self.assertEqual(self.drill("pause", self.stranger, 77)["error"]["code"], "denied")


harness.main()
