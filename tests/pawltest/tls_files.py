"""Certificates for tests, made by the openssl command: an authority, what it signs, and what is out
of date.

    authority = Authority(directory, "authority")
    files = authority.sign("pawld", hosts=("DNS:localhost", "IP:127.0.0.1"))     # .cert, .key
"""

import collections
import ssl
import subprocess

Files = collections.namedtuple("Files", "cert key")
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
LOCAL = ("DNS:localhost", "IP:127.0.0.1")


def openssl(*words, stdin=""):
    done = subprocess.run(
        ["openssl", *[str(word) for word in words]],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"openssl {words}:\n{done.stderr}")


def trusting(authority, own=None):
    """How a client connects that believes `authority`; `own`: its files."""
    context = ssl.create_default_context(cafile=str(authority.cert))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if own:
        context.load_cert_chain(own.cert, own.key)
    return context


class Authority:
    def __init__(self, directory, name):
        self.dir, self.name = directory / name, name
        self.dir.mkdir()
        self.cert, self.key = self.dir / "ca.pem", self.dir / "ca.key"
        openssl(
            "req",
            "-x509",
            *KEY,
            "-keyout",
            self.key,
            "-out",
            self.cert,
            "-days",
            "30",
            "-subj",
            f"/CN={name}",
        )
        (self.dir / "index").write_text("")
        self.config = self.dir / "ca.cnf"
        self.config.write_text(
            f"""
            [ca]
            default_ca = it
            [it]
            database = {self.dir}/index
            new_certs_dir = {self.dir}
            certificate = {self.cert}
            private_key = {self.key}
            rand_serial = yes
            unique_subject = no
            default_md = sha256
            default_days = 30
            policy = any
            copy_extensions = copy
            [any]
            commonName = supplied
            """.replace(
                "\n            ", "\n"
            )
        )

    def sign(self, name, hosts=(), valid=None, file=None):
        """`valid`: (from, until), as 20200101000000Z."""
        files = Files(self.dir / f"{file or name}.pem", self.dir / f"{file or name}.key")
        request = self.dir / f"{file or name}.csr"
        names = ("-addext", "subjectAltName=" + ",".join(hosts)) if hosts else ()
        openssl(
            "req",
            "-new",
            *KEY,
            "-keyout",
            files.key,
            "-out",
            request,
            "-subj",
            f"/CN={name}",
            *names,
        )
        dates = ("-startdate", valid[0], "-enddate", valid[1]) if valid else ()
        openssl(
            "ca",
            "-batch",
            "-notext",
            "-config",
            self.config,
            "-in",
            request,
            "-out",
            files.cert,
            *dates,
        )
        return files
