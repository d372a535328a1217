"""Packages for Node.js that tests use, in the versions of a package-lock.json. They are installed
into the build directory, never into the tree, once for all tests that use them."""

import fcntl
import os
import pathlib
import shutil
import subprocess

from pawltest import ROOT, harness
from pawltest.process import dies_with_parent

WANTED = ROOT / "tests/e2e/clients"


def installed(wanted_in=WANTED, name="node-clients"):
    """The directory that has those of `wanted_in` in its node_modules: by default the clients that
    the pages show."""
    base = pathlib.Path(os.environ.get("PAWL_E2E_DIR") or harness.tempfile.gettempdir())
    modules = base / name
    modules.mkdir(parents=True, exist_ok=True)
    wanted = (wanted_in / "package-lock.json").read_text()
    mark = modules / "installed"
    with open(base / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests run side by side.
        if mark.exists() and mark.read_text() == wanted:
            return modules
        for file in ("package.json", "package-lock.json"):
            shutil.copy(wanted_in / file, modules / file)
        # No package needs a script of its own to be of use, so none is run.
        done = subprocess.run(
            dies_with_parent(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
            cwd=modules,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"npm ci failed:\n{done.stdout}")
        mark.write_text(wanted)
        return modules


def link(project, *names):
    """Makes packages importable from the programs in a directory, as `npm install` there would."""
    (project / "node_modules").mkdir(exist_ok=True)
    for name in names:
        package = "redis-5" if name == "redis" and node_major() < 20 else name
        (project / "node_modules" / name).symlink_to(
            installed().resolve() / "node_modules" / package
        )


def node_version():
    done = subprocess.run(
        ["node", "--version"], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    return tuple(int(word) for word in done.stdout.lstrip("v").split(".")[:2])


def node_major():
    return node_version()[0]


def sqlite_module():
    """What to require for SQLite that loads extensions: Node.js's own module, or the package that
    has its interface in older ones."""
    return (
        "node:sqlite"
        if node_version() >= (22, 13)
        else str(installed().resolve() / "node_modules/@photostructure/sqlite")
    )
