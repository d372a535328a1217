"""The job writes its report, and nothing after it was frozen past its TTL. Run this with pytest."""
import pathlib
import sqlite3
import subprocess
import sys
import time

import pytest

JOB = [sys.executable, pathlib.Path(__file__).with_name("report.py")]


@pytest.fixture(autouse=True)
def pawld(tmp_path, monkeypatch):
    """A pawld in memory, on a free port, for one test."""
    port = tmp_path / "port"
    server = subprocess.Popen(
        [
            "pawld",
            "--store",
            "memory",
            "--resp",
            "127.0.0.1:0",
            "--http",
            "off",
            "--port-file",
            port,
        ]
    )
    while not port.exists():  # It appears, complete, once clients can connect.
        assert server.poll() is None, "pawld did not start"
        time.sleep(0.01)
    monkeypatch.setenv("PAWL_ADDR", f"127.0.0.1:{port.read_text().strip()}")
    yield
    server.kill()
    server.wait()


@pytest.fixture
def shop(tmp_path):
    """A database with the guarded table."""
    path = tmp_path / "shop.db"
    sqlite3.connect(path).execute("CREATE TABLE report (line TEXT)")
    subprocess.run(["pawl", "guard", "install", "sqlite", "--file", path], check=True)
    subprocess.run(
        ["pawl", "guard", "protect", "sqlite", "--file", path, "report", "--mode", "enforce"],
        check=True,
    )
    return path


@pytest.fixture
def run(shop):
    """Starts a command as production does, in a session of its own."""
    started = []

    def start(*command):
        words = [
            "pawl",
            "run",
            "reports/nightly",
            "--ttl",
            "2s",
            "--guard",
            "sqlite:report",
            "--guard-dsn",
            shop,
            "--",
        ]
        started.append(
            subprocess.Popen(
                [*words, *command], start_new_session=True, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield start
    for process in started:
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)])


def lines(shop):
    return [line for line, in sqlite3.connect(shop).execute("SELECT line FROM report")]


def test_it_writes_its_report(run, shop):
    assert run(*JOB, shop).wait() == 0
    assert lines(shop) == ["first", "last"]


def test_frozen_past_its_ttl_it_cannot_write(run, shop):
    job = run(*JOB, shop, "2")  # It works for 2 s between its writes.
    while lines(shop) != ["first"]:
        assert job.poll() is None, job.stderr.read()
        time.sleep(0.01)
    subprocess.run(["pkill", "-STOP", "-s", str(job.pid)], check=True)  # Freezes pawl and the job.
    # The next holder waits until the lease is over, then raises the fence.
    assert run("true").wait() == 0
    # Wakes the job alone: the worst case. Its parent is the supervisor, which would kill it.
    supervisor = subprocess.check_output(["pgrep", "-P", str(job.pid)], text=True).strip()
    subprocess.run(["pkill", "-CONT", "-P", supervisor], check=True)
    ended = ["pgrep", "-r", "Z", "-P", supervisor]
    while subprocess.run(ended, stdout=subprocess.DEVNULL).returncode != 0:
        time.sleep(0.01)  # Until the job has ended.
    subprocess.run(["pkill", "-CONT", "-s", str(job.pid)], check=True)
    assert "PAWL_STALE" in job.communicate()[1]
    assert lines(shop) == ["first"]
