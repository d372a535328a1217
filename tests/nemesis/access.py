"""Who may talk to the pawld of a world: its users, and in some worlds a certificate.

    access = access.Access(directory, tls=True)
    access.settings                    # lines of pawld's configuration
    access.auth("worker")              # user:secret, for --auth, PAWL_AUTH and libpawl
    with access.client(port, "operator") as client: …      # authenticated, RESP3

The users: `worker` (use), `operator` (admin), `reader` (observe). Whoever has no secret is a
stranger (stranger.py).
"""

import os
import subprocess

from pawltest import harness
from pawltest.tls_files import Authority, trusting

ROLES = {"worker": "use", "operator": "admin", "reader": "observe"}
# Every address by which pawld is reached in a world; see network.Wire.host() and
# cluster_processes.ADDRESSES.
HOSTS = (
    *("DNS:localhost", "IP:127.0.0.1"),
    *[f"IP:127.0.1.{n}" for n in range(1, 17)],
    *[f"IP:10.77.0.2{n}" for n in range(1, 4)],
)


class Access:
    def __init__(self, directory, tls):
        users = directory / "users"
        self._secrets = {user: self._add(user, role, users) for user, role in ROLES.items()}
        self.settings = f'insecure = true\nauth_file = "{users}"'
        self.scheme, self.ca_file, self.tls = "", "", None
        if tls:
            authority = Authority(directory, "authority")
            files = authority.sign("pawld", HOSTS)
            self.settings += f'\n[tls]\ncert = "{files.cert}"\nkey = "{files.key}"'
            self.scheme, self.ca_file = "tls://", str(authority.cert)
            self.tls = trusting(authority)

    @staticmethod
    def _add(user, role, users):
        added = subprocess.run(
            [os.environ["PAWL"], "auth", "add", user, "--role", role, "--file", users],
            stdout=subprocess.PIPE,
            text=True,
            timeout=harness.PATIENCE,
            check=True,
        )
        return added.stdout.strip()

    def auth(self, user):
        return self._secrets[user]

    def environment(self, user):
        """For a `pawl` that connects as this user."""
        return {"PAWL_AUTH": self.auth(user), "PAWL_TLS_CA": self.ca_file}

    def client(self, port, user, **options):
        """Connects again where strangers displaced it before its HELLO was read, as libpawl does."""
        while True:
            try:
                return harness.Client(port, 3, tls=self.tls, auth=self.auth(user), **options)
            except AssertionError as refused:
                if "BUSY unauthenticated" not in str(refused):
                    raise
