#!/usr/bin/python3
"""pawld on etcd: beside etcd's own lock recipe on the same three etcd, in one run; and how long a
takeover takes with many leases. See README.md.

    bench/cluster.py [--build BUILD_DIR] [--rounds N] [--seconds S] [--only recipe|takeover]
                     [--leases N]

The recipe is etcd_lock.go and needs a Go toolchain and a module proxy; without them only pawld is
measured. Nothing here fails because of a time. """

import argparse
import json
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import memory
import peers

CLIENT_VERSION = "v3.5.17"
CELLS = [("cycle", 1), ("cycle", 64), ("cycle", 256), ("handoff", 64)]
# (workload, clients): what is compared, and the target for pawl divided by the recipe.
TARGETS = {
    ("cycle", 1): ("p50_us", "at most", 1.3),
    ("cycle", 64): ("rate", "at least", 6.0),
    ("cycle", 256): ("rate", "at least", 15.0),
    ("handoff", 64): ("rate", "at least", 2.0),
}


class Etcd(peers.Server):
    name = "etcd"

    def __init__(self, bin_dir, work_dir, number, ports):
        super().__init__(bin_dir, work_dir)
        self.number, self.ports = number, ports
        self.dir = pathlib.Path(work_dir) / f"etcd{number}"
        self.url = f"http://127.0.0.1:{ports[number][0]}"

    def prepare(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.port = self.ports[self.number][0]

    def command(self):
        peer = f"http://127.0.0.1:{self.ports[self.number][1]}"
        options = {
            "name": f"n{self.number}",
            "data-dir": self.dir / "data",
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": ",".join(
                f"n{n}=http://127.0.0.1:{ports[1]}" for n, ports in self.ports.items()
            ),
            "snapshot-count": 10000,
            "logger": "zap",
            "log-level": "error",
        }
        return ["etcd", *[f"--{name}={value}" for name, value in options.items()]]

    def figures(self):
        """fsyncs of the log, and CPU seconds, since it was started."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as page:
            text = page.read().decode()

        def read(name):
            return float(re.search(rf"(?m)^{name} (\S+)$", text)[1])

        return {
            "fsyncs": read("etcd_disk_wal_fsync_duration_seconds_count"),
            "cpu": read("process_cpu_seconds_total"),
        }


class Pawld(peers.Server):
    name = "pawld"

    def __init__(self, bin_dir, work_dir, number, etcds):
        super().__init__(bin_dir, work_dir)
        self.dir = pathlib.Path(work_dir) / f"pawld{number}"
        self.etcds = etcds

    def command(self):
        return [
            self.bin_dir / "pawld",
            "--store=etcd",
            "--etcd=" + ",".join(etcd.url.removeprefix("http://") for etcd in self.etcds),
            "--cluster=bench",
            f"--resp=127.0.0.1:{self.port}",
            "--http=off",
            "--log-format=json",
        ]

    def role(self):
        try:
            return memory.status(self.port)["role"]
        except (OSError, KeyError, ValueError):
            return None


class World:
    def __init__(self, bin_dir, work_dir, pawlds):
        # All ports are chosen before any is bound.
        ports = {number: (peers.free_port(), peers.free_port()) for number in (1, 2, 3)}
        self.etcds = [Etcd(bin_dir, work_dir, number, ports) for number in ports]
        self.pawlds = [Pawld(bin_dir, work_dir, number, self.etcds) for number in range(pawlds)]

    def __enter__(self):
        for server in [*self.etcds, *self.pawlds]:
            server.start()
        return self

    def __exit__(self, *_):
        for server in [*self.pawlds, *self.etcds]:
            server.stop(signal.SIGKILL)

    def active(self, within=60.0):
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            for pawld in self.pawlds:
                if pawld.process is not None and pawld.role() == "active":
                    return pawld
            time.sleep(0.002)
        raise RuntimeError("no pawld became active")

    def figures(self):
        all_of = [etcd.figures() for etcd in self.etcds]
        return {name: sum(one[name] for one in all_of) for name in all_of[0]}


def build_recipe(work_dir):
    """The program; None where it cannot be built."""
    source = pathlib.Path(__file__).with_name("etcd_lock.go")
    directory = pathlib.Path(work_dir) / "recipe"
    program = directory / "etcd_lock"
    directory.mkdir()
    shutil.copy(source, directory / "main.go")
    try:
        for command in (
            ["go", "mod", "init", "recipe"],
            ["go", "get", f"go.etcd.io/etcd/client/v3@{CLIENT_VERSION}"],
            ["go", "mod", "tidy"],
            ["go", "build", "-o", program, "."],
        ):
            subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        print("no Go toolchain: the recipe is not measured", file=sys.stderr)
        return None
    except subprocess.CalledProcessError as error:
        print(f"the recipe cannot be built:\n{error.stderr}", file=sys.stderr)
        return None
    return program


def measure(world, command):
    """What the load generator prints, with the fsyncs and CPU of the three etcd per operation."""
    before = world.figures()
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=True
    )
    after = world.figures()
    cell = json.loads(done.stdout.splitlines()[-1])
    operations = max(1, cell["operations"])
    cell["fsyncs_per_op"] = (after["fsyncs"] - before["fsyncs"]) / operations
    cell["etcd_us_per_op"] = (after["cpu"] - before["cpu"]) * 1e6 / operations
    return cell


def compare(options, bin_dir, work_dir):
    recipe = build_recipe(work_dir)
    cells = {}
    with World(bin_dir, work_dir, 2) as world:
        active = world.active()
        urls = ",".join(etcd.url for etcd in world.etcds)
        for turn in range(options.rounds):
            for workload, clients in CELLS:
                pawl = [bin_dir / "pawl_bench_load", "--peer", "pawl", "--workload", workload]
                pawl += ["--port", active.port, "--pid", active.pid, "--connections", clients]
                pawl += ["--seconds", options.seconds, "--warmup", 0.2]
                both = {"pawl": pawl}
                if recipe:
                    both["recipe"] = [recipe, "-endpoints", urls, "-workload", workload]
                    both["recipe"] += ["-clients", clients, "-seconds", options.seconds]
                for peer in sorted(both, reverse=turn % 2 == 1):
                    cell = measure(world, both[peer])
                    cells.setdefault((workload, clients, peer), []).append(cell)
                    print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(cells)


def report(cells):
    def median(workload, clients, peer, name):
        return statistics.median(cell[name] for cell in cells[workload, clients, peer])

    print(
        f"{'workload':<10}{'clients':>8}  {'peer':<8}{'per second':>11}{'p50 us':>11}{'p99 us':>11}"
        f"{'fsyncs/op':>11}{'etcd us/op':>12}"
    )
    for workload, clients, peer in cells:
        names = ("rate", "p50_us", "p99_us", "fsyncs_per_op", "etcd_us_per_op")
        rate, p50, p99, fsyncs, cpu = (median(workload, clients, peer, name) for name in names)
        print(
            f"{workload:<10}{clients:>8}  {peer:<8}{rate:>11,.0f}{p50:>11,.0f}{p99:>11,.0f}"
            f"{fsyncs:>11.2f}{cpu:>12,.0f}"
        )
    for (workload, clients), (name, bound, target) in TARGETS.items():
        if (workload, clients, "recipe") not in cells:
            continue
        ratio = median(workload, clients, "pawl", name) / median(workload, clients, "recipe", name)
        met = ratio >= target if bound == "at least" else ratio <= target
        print(
            f"{workload} with {clients}: {name} is {ratio:.2f} x that of the recipe"
            f" ({bound} {target}: {'met' if met else 'missed'})"
        )


# --- Takeover ------------------------------------------------------------------------------------


def first_grant(pawld, end, within=300.0):
    """What `end` ends, and how long until `pawld` grants a lock; also its CPU time, which other
    programs do not prolong as much."""
    cpu = memory.cpu_seconds(pawld.pid)
    since = time.monotonic()
    end()
    while time.monotonic() - since < within:
        try:
            if peers.ask(pawld.port, "ACQUIRE", "bench/first", "TTL", "100")[:1] in "*$":
                took, used = time.monotonic() - since, memory.cpu_seconds(pawld.pid) - cpu
                return f"{took:.2f} s, {used:.2f} s of CPU"
        except (OSError, ConnectionError):
            pass
        time.sleep(0.005)
    raise RuntimeError("no pawld took over")


def takeover(options, bin_dir, work_dir):
    with World(bin_dir, work_dir, 2) as world:
        active = world.active()
        (standby,) = [pawld for pawld in world.pawlds if pawld is not active]
        began = time.monotonic()
        memory.Filler(active.port).fill(options.leases)
        print(f"{options.leases:,} leases, filled in {time.monotonic() - began:.1f} s")
        wait_until_warm(standby)
        for pawld, name in ((active, "active"), (standby, "standby")):
            resident = memory.memory_of(pawld.pid, "VmRSS") >> 20
            print(f"memory of the {name}: {resident} MiB")
        active.process.send_signal(signal.SIGSTOP)  # Nothing changes any more.
        print(f"warm, killed:       {first_grant(standby, active.process.kill)}")
        active.stop()
        active.launch()
        wait_until_warm(active)
        ended = first_grant(active, lambda: standby.process.send_signal(signal.SIGTERM))
        print(f"warm, handed over:  {ended}")
        standby.stop()
        active.process.kill()
        active.stop()
        standby.launch()
        print(f"cold, started:      {first_grant(standby, lambda: None)}")
    print("role_ttl (5 s) and up to 0.2 s of jitter are part of the first and the last one")


def wait_until_warm(pawld):
    """It has read all that there is: its memory does not grow any more."""
    memory.settled(pawld.pid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--build", default=pathlib.Path(__file__).parents[1] / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--leases", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("recipe", "takeover"))
    options = parser.parse_args()
    bin_dir = pathlib.Path(options.build).resolve() / "bin"
    for name, part in (("recipe", compare), ("takeover", takeover)):
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(dir=pathlib.Path(options.build)) as work_dir:
                part(options, bin_dir, pathlib.Path(work_dir))


if __name__ == "__main__":
    main()
