#!/usr/bin/python3
"""pawld on an etcd with TLS, client certificates and users, where tokens of users expire; and what
it says when one of these is wrong."""

import re
import shutil
import unittest
import urllib.request

from failover_test import ClusterCase
from pawltest import harness
from pawltest.cluster import PawldCluster
from pawltest.etcd import Cluster
from pawltest.tls_files import LOCAL, Authority, openssl
from pawltest.wait import wait_until


class SecuredCase(ClusterCase):
    """Each test begins its pawld with start()."""

    def setUp(self):
        self.dir = harness.scratch("etcd-secured")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.authority = Authority(self.dir, "authority")
        self.files = self.authority.sign("etcd", hosts=LOCAL)
        self.own = self.authority.sign("nobody")
        private, public = self.dir / "jwt.key", self.dir / "jwt.pub"
        openssl("genrsa", "-out", private, "2048")
        openssl("rsa", "-in", private, "-pubout", "-out", public)
        # Simple tokens live on while they are used; these do not.
        jwt = f"jwt,pub-key={public},priv-key={private},sign-method=RS256,ttl=3s"
        settings = {"auth-token": jwt, "bcrypt-cost": 4}
        self.etcd = Cluster(tls=(self.authority, self.files), settings=settings)
        self.addCleanup(self.etcd.remove)
        self.etcd.start()
        self.add_users()

    def add_users(self):
        ctl = self.etcd.etcdctl
        ctl("user", "add", "root:secret")
        ctl("user", "add", "pawld:word")
        ctl("user", "add", "other:word")
        ctl("role", "add", "pawl")
        ctl("role", "grant-permission", "pawl", "--prefix=true", "readwrite", "pawl/")
        ctl("user", "grant-role", "pawld", "pawl")
        ctl("user", "grant-role", "root", "root")
        ctl("auth", "enable")
        self.etcd.user = "root:secret"

    def start(self, pawlds=1, user="pawld", password="word", authority=None, launch=False):
        secret = self.dir / "password"
        secret.write_text(password + "\n")
        more = (
            f'user = "{user}"\npassword_file = "{secret}"\ntls = true\n'
            f'tls_ca = "{(authority or self.authority).cert}"\n'
            f'tls_cert = "{self.own.cert}"\ntls_key = "{self.own.key}"\n'
        )
        self.cluster = PawldCluster(pawlds, role_ttl_ms=self.role_ttl_ms, more=more, etcd=self.etcd)
        self.addCleanup(self.cluster.remove)
        for pawld in self.cluster.pawlds:
            pawld.launch() if launch else pawld.start()
        return self.cluster.pawlds[0]


class SecuredTest(SecuredCase):
    def troubles(self, pawld):
        with urllib.request.urlopen(f"http://127.0.0.1:{pawld.http_port}/metrics") as page:
            return int(re.search(rb"(?m)^pawl_etcd_troubles_total (\d+)$", page.read())[1])

    def test_it_serves_and_renews_tokens_that_expire(self):
        self.start(pawlds=2)
        kept = self.acquire("kept")
        active = self.cluster.active()
        wait_until(lambda: "invalid auth token" in active.log(), "a token has expired")
        before = self.troubles(active)
        wait_until(lambda: self.troubles(active) >= before + 3, "more tokens have expired")
        self.assertGreater(self.on_active("RENEW", kept["lease"]), 0)
        self.acquire("later")
        keys = self.etcd.etcdctl("get", "--prefix", "--keys-only", "").stdout.split()
        self.assertEqual([key for key in keys if not key.startswith("pawl/test/")], [])
        (endpoint,) = self.status(self.cluster.active())["cluster"]["etcd"]
        self.assertTrue(endpoint["usable"], endpoint)
        active = self.cluster.active()
        active.kill()
        others = self.cluster.others(active)
        self.assertGreater(self.on_active("RENEW", kept["lease"], among=others), 0)


class RefusedTest(SecuredCase):
    def test_a_wrong_password_ends_pawld_and_says_what_to_correct(self):
        pawld = self.start(password="wrong", launch=True)
        self.assertEqual(pawld.wait(), 78, pawld.log())
        self.assertIn('refuses the user "pawld"', pawld.log())
        self.assertIn("etcd.password_file", pawld.log())

    def test_a_user_without_permission_is_told_which_one_it_needs(self):
        pawld = self.start(user="other", launch=True)
        self.assertEqual(pawld.wait(), 78, pawld.log())
        self.assertIn("permission denied", pawld.log())
        self.assertIn("readwrite pawl/", pawld.log())

    def test_an_etcd_of_an_unknown_authority_is_named_in_log_and_status(self):
        pawld = self.start(authority=Authority(self.dir, "stranger"))
        wait_until(lambda: "etcd.tls_ca" in pawld.log(), "the log says what to check")
        (endpoint,) = self.status(pawld)["cluster"]["etcd"]
        self.assertIn("etcd.tls_ca", endpoint["problem"])
        self.assertEqual(pawld.role(), "standby", "it waits: etcd may be corrected")


if __name__ == "__main__":
    unittest.main(verbosity=2)
