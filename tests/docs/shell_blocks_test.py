#!/usr/bin/python3
"""Runs every shell block of the documentation, in order, in a fresh copy of the tree.

A block is a fence that begins with ```sh. One that follows the comment `<!-- in the background -->`
is started and left running (pawld), and the next block begins once port 7295 answers. One that
follows `<!-- exits N -->` must exit with N. Blocks of other languages (```console, ```toml …) are
for reading and not run. What a block prints is shown only when it fails.

A reader pastes the blocks of a page into one terminal and does not see the comments. Therefore a
block must leave its shell in the directory in which it began, and the text beside a block in the
background must say that it needs another terminal.

    shell_blocks_test.py SOURCE_DIR WORK_DIR FILE.md...
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from pawltest import dynamodb

PORT = 7295
FENCE = re.compile(r"(?:<!-- (?P<mark>[^>]*?) -->\s*\n)?```sh\n(?P<body>.*?)^```$", re.M | re.S)


def copy_tree(source, target):
    shutil.rmtree(target, ignore_errors=True)
    files = subprocess.run(
        ["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout.split(b"\0")
    for name in filter(None, files):
        path = os.fsdecode(name)
        if not os.path.exists(os.path.join(source, path)):
            continue
        os.makedirs(os.path.dirname(os.path.join(target, path)) or target, exist_ok=True)
        shutil.copy2(os.path.join(source, path), os.path.join(target, path))
    subprocess.run(["git", "init", "-q", target], check=True)


def install_packages(source, files):
    """What pages need from the network, while there is one."""
    for path in files:
        with open(os.path.join(source, path), encoding="utf-8") as page:
            if "pawltest.dynamodb" in page.read():
                dynamodb.installed()


def enter_own_network():
    """Starts this script again in a network of its own, where the port that the pages use is free.
    Needs root."""
    if os.geteuid() != 0 or "PAWL_OWN_NETWORK" in os.environ:
        return
    os.environ["PAWL_OWN_NETWORK"] = "1"
    inside = 'ip link set lo up && exec "$@"'
    if subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.execvp(
            "unshare", ["unshare", "--net", "sh", "-c", inside, "sh", sys.executable, *sys.argv]
        )


def port_answers():
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


def group_lives(group):
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


class Background:
    """A block that goes on while the next ones run, in a process group of its own."""

    def __init__(self, shell, tree):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            shell,
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait_until_it_listens(self):
        while not port_answers():
            if self.process.poll() is not None:
                raise SystemExit(
                    f"the background block ended with {self.process.returncode} before it listened"
                )
            time.sleep(0.05)

    def stop(self):
        """Ends all of it: the shell is gone before the pawld it started, which holds the port that
        the next page needs."""
        if group_lives(self.process.pid):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        while group_lives(self.process.pid):
            time.sleep(0.01)

    def show(self):
        self.output.seek(0)
        print(
            "--- the end of what the background block printed\n"
            + self.output.read().decode()[-4000:],
            flush=True,
        )


def bash(script, *arguments):
    return ["bash", "-euo", "pipefail", "-c", script, "bash", *arguments]


def run_block(body, tree, expected):
    with tempfile.NamedTemporaryFile("r") as left_in:
        done = subprocess.run(
            bash('trap "pwd > \'$1\'" EXIT; shift\n' + body, left_in.name),
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        end = left_in.read().strip()
    if done.returncode != expected:
        print(done.stdout.decode(errors="replace"), flush=True)
        raise SystemExit(f"exit code {done.returncode}, expected {expected}")
    if not os.path.samefile(end, tree):
        raise SystemExit(
            f"the block leaves the reader's terminal in {end}, where the next block does not work: "
            "put `cd` and what follows it into ( … )"
        )


def check_that_the_reader_knows(text, block):
    """The paragraph in front of a block in the background, or behind it, names the terminal."""
    before = text[: block.start()].rstrip().rpartition("\n\n")[2]
    behind = text[block.end() :].lstrip().partition("\n\n")[0]
    if "terminal" not in before and "terminal" not in behind:
        raise SystemExit(
            "the block does not end by itself, and the text beside it does not say that the "
            "reader needs another terminal for it"
        )


def run_file(path, tree):
    text = open(os.path.join(tree, path), encoding="utf-8").read()
    background = []
    count = 0
    try:
        for block in FENCE.finditer(text):
            mark, body = block.group("mark") or "", block.group("body")
            line = text.count("\n", 0, block.start("body")) + 1
            count += 1
            if mark == "in the background":
                check_that_the_reader_knows(text, block)
                background.append(Background(bash(body), tree))
                background[-1].wait_until_it_listens()
            else:
                run_block(body, tree, int(mark.split()[1]) if mark.startswith("exits ") else 0)
    except SystemExit as failure:
        print(f"--- {path}:{line}\n{body}", flush=True)
        for process in background:
            process.show()
        raise SystemExit(f"{path}:{line}: {failure}") from None
    finally:
        for process in background:
            process.stop()
    print(f"{path}: {count} blocks ran", flush=True)
    return count


def main():
    source, tree, *files = sys.argv[1:]
    if "PAWL_OWN_NETWORK" not in os.environ:
        install_packages(source, files)
    enter_own_network()
    if port_answers():
        raise SystemExit(
            f"something already listens on port {PORT}, which the documentation uses; stop it first"
        )
    copy_tree(source, tree)
    for path in ["CC", "CXX", "MAKEFLAGS", "MAKELEVEL"]:
        os.environ.pop(path, None)
    os.environ["FAST"] = "1"  # make demo: nobody reads along here.
    if sum(run_file(path, tree) for path in files) == 0:
        raise SystemExit(
            "no shell block found: the documentation or this script has changed its form"
        )


main()
