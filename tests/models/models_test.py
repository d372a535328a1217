#!/usr/bin/python3
"""Checks the models with spin: every one holds, exhaustively within its bounds, and every naive
variant of it fails.

    models_test.py [--deep]                  the table; --deep: larger bounds (minutes, some GB)
    models_test.py --trace lease FROM_REPLY  the shortest trace that breaks a naive variant

Needs spin and a C compiler. A variant that does not fail, or that breaks another property than the
one it is meant to break, fails the test: a model that accepts everything proves nothing. """
import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import typing

HERE = pathlib.Path(__file__).resolve().parent
HOLDS = ""  # what is expected of a model that is right


class Case(typing.NamedTuple):
    model: str
    name: str
    defines: str  # "TOKENS=2 FROM_REPLY"
    breaks: str  # the property that must be violated, or HOLDS
    deep: bool = False


QUEUE = "TOKENS=2 REQUESTS=1"  # waiting in line, one request each
AGAIN = "TOKENS=2 REQUESTS=2 NO_QUEUE"  # clients that come again
THREE = "TOKENS=2 REQUESTS=1 CLIENTS=3 NO_QUEUE"

CASES = [
    Case("lease", "two clients that wait", QUEUE + " TTL=3", HOLDS),
    Case("lease", "two clients that come again", AGAIN, HOLDS),
    Case("lease", "three clients", THREE, HOLDS),
    Case("lease", "come again and wait", "TOKENS=3 REQUESTS=2", HOLDS, deep=True),
    Case("lease", "FROM_REPLY", QUEUE, "nobody_overtaken"),
    Case("lease", "FROM_REPLY, belief alone", QUEUE + " FROM_REPLY ONLY=1", "one_believer"),
    Case("lease", "FROM_RETRY", QUEUE, "nobody_overtaken"),
    Case("lease", "RENEWAL_FROM_REPLY", QUEUE, "nobody_overtaken"),
    Case("lease", "CLIENT_CLOCK_STOPS", QUEUE, "nobody_overtaken"),
    Case("lease", "RESTART_FORGETS_RENEWALS", QUEUE, "nobody_overtaken"),
    Case("lease", "RELEASE_BY_NAME", "TOKENS=3 REQUESTS=2 NO_QUEUE", "nobody_overtaken"),
    Case("lease", "TOLD_BEFORE_DURABLE", QUEUE, "token_of_one"),
    Case("lease", "COUNTER_FROM_LEASES", QUEUE, "token_of_one"),
    Case(
        "lease",
        "COUNTER_FROM_LEASES, order alone",
        QUEUE + " COUNTER_FROM_LEASES ONLY=4",
        "later_is_greater",
    ),
    Case("lease", "REVIVE, renewals alone", QUEUE + " REVIVE ONLY=5", "no_resurrection"),
    Case("fence", "four holders", "HOLDERS=4 WRITES=3", HOLDS),
    Case("fence", "NO_FENCE", "", "never_back"),
    Case("fence", "CHECK_THEN_WRITE", "", "never_back"),
    Case("fence", "REFUSED_MOVES_FENCE", "", "never_back"),
    Case("fence", "DELETE_FORGETS_FENCE", "", "never_back"),
    Case("fence", "READ_BEFORE_ADVANCE", "", "nothing_lost"),
    Case("fence", "NO_ADVANCE", "", "nothing_lost"),
    Case("fence", "REISSUED_TOKEN", "", "nothing_lost"),
    Case("fence", "STRICT", "", "rightful_served"),
    Case("gate", "four tokens, four forwards", "TOKENS=4 FORWARDS=4", HOLDS),
    Case("gate", "FORWARD_AT_ONCE", "", "never_back"),
    Case("gate", "TIMEOUT_IS_DONE", "", "never_back"),
    Case("gate", "FORGET_OPEN_MARK", "", "never_back"),
    Case("gate", "MARK_BEFORE_DRAIN", "", "never_back"),
    Case("gate", "MARK_AFTER_FORWARD", "", "never_back"),
    Case("gate", "CLOSE_FORGETS_TOKEN", "", "never_back"),
    Case("gate", "ADVANCE_IN_MEMORY", "", "never_back"),
    Case("gate", "STRICT", "", "rightful_served"),
]


class Verdict(typing.NamedTuple):
    states: int
    depth: int
    broken: str  # the violated property, or HOLDS
    trouble: str  # why this verdict is worth nothing, or ""
    trace: list


def run(command, where):
    return subprocess.run(
        command, cwd=where, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )


def defines_of(case):
    # The name of a naive variant is its switch, unless its switches are spelled out.
    words = case.defines.split()
    if case.breaks != HOLDS and re.fullmatch(r"[A-Z_]+", case.name):
        words.append(case.name)
    return ["-D" + word for word in words]


def build(case, where):
    """The verifier spin writes for this case. Variants are searched breadth first: their traces
    come out shortest."""
    made = run(["spin", "-a", *defines_of(case), str(HERE / f"{case.model}.pml")], where)
    if not (where / "pan.c").exists() or "Error" in made.stdout:
        sys.exit(f"{case.model}.pml, {case.name}: spin says\n{made.stdout}")
    search = ["-O2"] if case.breaks == HOLDS else ["-O0", "-DBFS"]
    made = run(["cc", "-w", "-DSAFETY", "-DMEMLIM=8000", *search, "-o", "pan", "pan.c"], where)
    if made.returncode != 0:
        sys.exit(f"{case.model}.pml, {case.name}: cc says\n{made.stdout}")


def trace_of(case, where):
    """What the actions of the counterexample printed."""
    if not (where / f"{case.model}.pml.trail").exists():
        return []
    lines = run(["./pan", "-r", f"{case.model}.pml.trail"], where).stdout.splitlines()
    steps = []
    for line in lines:
        if line.startswith("spin: trail ends"):
            break
        if line.strip() and not re.match(r"\s*\d+:\s+proc", line) and not line.startswith("pan"):
            steps.append(line)
    return steps


def verify(case):
    with tempfile.TemporaryDirectory(prefix="pawl-model-") as folder:
        where = pathlib.Path(folder)
        build(case, where)
        # -E: that everyone stops is no error here. -w: a hash table of the size of the search. -m:
        # the longest path.
        text = run(
            ["./pan", "-E", "-n", "-w22" if case.breaks == HOLDS else "-w16", "-m100000"], where
        ).stdout
        number = lambda pattern: int((re.search(pattern, text) or ["", "0"])[1])
        violated = re.search(r"assertion violated \(*(\w+)", text)
        trouble = ""
        if "max search depth too small" in text or (
            "Search not completed" in text and not violated
        ):
            trouble = "the search was not exhaustive"
        if number(r"(\d+) states, stored") == 0:
            trouble = "nothing was searched:\n" + text
        return Verdict(
            number(r"(\d+) states, stored"),
            number(r"depth reached (\d+)"),
            violated[1] if violated else HOLDS,
            trouble,
            trace_of(case, where),
        )


def complaint(case, verdict):
    if verdict.trouble:
        return verdict.trouble
    if verdict.broken == case.breaks:
        return ""
    if case.breaks == HOLDS:
        return f"{verdict.broken} is violated:\n    " + "\n    ".join(verdict.trace)
    return f"it must break {case.breaks}, and " + (
        f"broke {verdict.broken}" if verdict.broken else "nothing broke"
    )


# Hard cases 31, 53 and 54.
def test_every_model_holds_and_every_naive_variant_fails(cases):
    describe = lambda broken: f"breaks {broken}" if broken else "holds"
    print(f"{'model':6} {'variant':34} {'states':>10} {'depth':>6}  {'verdict':24} expected")
    complaints = lost_references()
    for case in cases:
        verdict = verify(case)
        print(
            f"{case.model:6} {case.name:34} {verdict.states:>10,} {verdict.depth:>6}  "
            f"{describe(verdict.broken):24} "
            f"{describe(case.breaks)}",
            flush=True,
        )
        if wrong := complaint(case, verdict):
            complaints.append(f"{case.model}.pml, {case.name}: {wrong}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(cases)} searches, {used.ru_utime + used.ru_stime:.0f} s of CPU")
    print("\n".join(complaints) or "every model holds, and every naive variant fails")
    return 1 if complaints else 0


def lost_references():
    """Comments in the code that name an action which its model does not have."""
    actions = {
        f"{path.name} {name}"
        for path in HERE.glob("*.pml")
        for name in re.findall(r"^inline (\w+)", path.read_text(encoding="utf-8"), re.M)
    }
    lost = []
    for path in sorted((HERE.parent.parent / "src").glob("**/*.*")):
        for model, action in re.findall(
            r"Model: (\w+\.pml), action (\w+)", path.read_text(encoding="utf-8")
        ):
            if f"{model} {action}" not in actions:
                lost.append(f"{path.name} names the action {action}, which {model} does not have")
    return lost


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deep", action="store_true", help="larger bounds as well")
    parser.add_argument(
        "--trace", nargs=2, metavar=("MODEL", "VARIANT"), help="how a naive variant fails"
    )
    args = parser.parse_args()
    if args.trace:
        found = [case for case in CASES if (case.model, case.name) == tuple(args.trace)]
        if not found:
            parser.error(
                "no such variant; there are: "
                + ", ".join(f"{c.model} {c.name}" for c in CASES if c.breaks)
            )
        verdict = verify(found[0])
        print(
            "\n".join(
                verdict.trace
                + [f"-> breaks {verdict.broken}" if verdict.broken else "-> nothing breaks"]
            )
        )
        return 0
    return test_every_model_holds_and_every_naive_variant_fails(
        [case for case in CASES if args.deep or not case.deep]
    )


sys.exit(main())
