#!/usr/bin/python3
"""Counts the instructions of an acquire+release cycle inside pawld, without sockets and disk
(valgrind's callgrind).

Unlike a time, a count hardly moves from run to run, so it can be kept in the tree
(instructions.json) and a test can notice that a change made every cycle dearer:

    instructions.py --binary build/bin/pawl_bench_instructions --compiler "GNU 12.2.0" --check
    instructions.py … --update      # when the rise is meant: writes the new baseline
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).resolve().parent / "instructions.json"
BINARY = "pawl_bench_instructions"
CYCLES = 10_000
RISE_MAX = 0.02
SKIPPED = 77


def count(binary, held, cycles=CYCLES):
    """Instructions per cycle with `held` locks held by others."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "callgrind.out"
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                "--instr-atstart=no",
                "--collect-atstart=no",
                f"--callgrind-out-file={out}",
                str(binary),
                str(held),
                str(cycles),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{binary} under valgrind: {done.stderr[-2000:]}")
        return total(out.read_text()) / cycles


def total(text):
    for line in text.splitlines():
        if line.startswith("totals:"):
            return int(line.split()[1])
    raise RuntimeError("callgrind counted nothing")


def measure(bin_dir, _out_dir, locks, progress):
    """For run.py: few held against many."""
    if shutil.which("valgrind") is None:
        raise RuntimeError("valgrind is not installed")
    per_cycle = {}
    for held in (1_000, locks):
        progress(f"instructions: {held:,} held locks")
        per_cycle[held] = count(bin_dir / BINARY, held)
    return {"cycles": CYCLES, "per_cycle": per_cycle}


def check(baseline, found):
    """Prints each count beside its baseline; False when one has risen too far."""
    good = True
    for held, now in found.items():
        before = baseline.get(held)
        if before is None:
            print(f"{int(held):,} held: {now:,.0f} instructions per cycle; no baseline")
            continue
        rise = now / before - 1
        print(
            f"{int(held):,} held: {now:,.0f} instructions per cycle, {before:,.0f} before "
            f"({rise:+.1%})"
        )
        good = good and rise <= RISE_MAX
        if rise < -RISE_MAX:
            print("  cheaper than the baseline: --update it, so that the gain is kept")
    return good


def parse():
    parser = argparse.ArgumentParser(
        description="Count the instructions of an acquire+release cycle."
    )
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument(
        "--compiler", required=True, help="counts differ between compilers: one baseline for each"
    )
    parser.add_argument(
        "--held",
        type=int,
        action="append",
        help="locks held meanwhile (default: 1,000 and 100,000)",
    )
    parser.add_argument(
        "--check", action="store_true", help=f"fail when a count rose by more than {RISE_MAX:.0%}%"
    )
    parser.add_argument(
        "--update", action="store_true", help=f"write the counts to {BASELINE.name}"
    )
    return parser.parse_args()


def main():
    options = parse()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    baselines = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if options.check and options.compiler not in baselines:
        print(f"skipped: {BASELINE.name} has no baseline for {options.compiler}")
        return SKIPPED
    found = {str(held): count(options.binary, held) for held in options.held or (1_000, 100_000)}
    good = check(baselines.get(options.compiler, {}), found)
    if options.update:
        baselines[options.compiler] = {held: round(value) for held, value in found.items()}
        BASELINE.write_text(json.dumps(baselines, indent=2, sort_keys=True) + "\n")
        print(f"written to {BASELINE}")
    elif options.check and not good:
        print(
            f"A cycle costs over {RISE_MAX:.0%} more than before. If that is meant, run:\n"
            f"  bench/instructions.py --binary {options.binary} --compiler '{options.compiler}' "
            f"--update"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
