#!/usr/bin/python3
"""Runs every shell block of the documentation, in order, in a fresh copy of the tree.

A block is a fence that begins with ```sh. One that follows the comment `<!-- in the background -->` is started and left
running (pawld), and the next block begins once port 7295 answers. One that follows `<!-- exits N -->` must exit with N.
Blocks of other languages (```console, ```toml …) are for reading and not run.

    shell_blocks_test.py SOURCE_DIR WORK_DIR FILE.md...
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

PORT = 7295
FENCE = re.compile(r"(?:<!-- (?P<mark>[^>]*?) -->\s*\n)?```sh\n(?P<body>.*?)^```$", re.M | re.S)


def copy_tree(source, target):
    shutil.rmtree(target, ignore_errors=True)
    files = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True).stdout.split(b"\0")
    for name in filter(None, files):
        path = os.fsdecode(name)
        if not os.path.exists(os.path.join(source, path)):
            continue
        os.makedirs(os.path.dirname(os.path.join(target, path)) or target, exist_ok=True)
        shutil.copy2(os.path.join(source, path), os.path.join(target, path))
    subprocess.run(["git", "init", "-q", target], check=True)


def port_answers():
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


def wait_for_port(process):
    while not port_answers():
        if process.poll() is not None:
            raise SystemExit(f"the background block ended with {process.returncode} before it listened")
        time.sleep(0.05)


def run_file(path, tree):
    text = open(os.path.join(tree, path), encoding="utf-8").read()
    background = []
    count = 0
    try:
        for block in FENCE.finditer(text):
            mark, body = block.group("mark") or "", block.group("body")
            line = text.count("\n", 0, block.start("body")) + 1
            print(f"--- {path}:{line}\n{body}", end="", flush=True)
            count += 1
            shell = ["bash", "-euo", "pipefail", "-c", body]
            if mark == "in the background":
                process = subprocess.Popen(shell, cwd=tree, stdin=subprocess.DEVNULL, start_new_session=True)
                background.append(process)
                wait_for_port(process)
                continue
            expected = int(mark.split()[1]) if mark.startswith("exits ") else 0
            done = subprocess.run(shell, cwd=tree, stdin=subprocess.DEVNULL)
            if done.returncode != expected:
                raise SystemExit(f"{path}:{line}: exit code {done.returncode}, expected {expected}")
    finally:
        for process in background:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    print(f"{path}: {count} blocks ran", flush=True)
    return count


def main():
    source, tree, *files = sys.argv[1:]
    if port_answers():
        raise SystemExit(f"something already listens on port {PORT}, which the documentation uses; stop it first")
    copy_tree(source, tree)
    for path in ["CC", "CXX", "MAKEFLAGS", "MAKELEVEL"]:
        os.environ.pop(path, None)
    if sum(run_file(path, tree) for path in files) == 0:
        raise SystemExit("no shell block found: the documentation or this script has changed its form")


main()
