#!/usr/bin/python3
"""The conformance kit, proved: a guard that keeps the contract passes, and each planted bug is
caught by the case it is for.

Environment: PAWL is the binary.
"""

import json
import os
import pathlib
import re
import subprocess
import unittest

import reference_guard
from pawltest import ROOT

HERE = pathlib.Path(__file__).resolve().parent
PAWL = os.environ["PAWL"]

# Which case must find which bug, at least.
CAUGHT_BY = {
    "strict-greater": "equal-token",
    "compares-text": "as-numbers",
    "narrow": "neighbours",
    "accepts-odd-spelling": "odd-spelling",
    "accepts-overflow": "overflow",
    "accepts-zero": "not-positive",
    "no-ahead": "ahead",
    "ahead-off-by-one": "whole-step",
    "stale-lowers": "smaller-token",
    "ahead-moves": "refused-moves-nothing",
    "shadow-moves": "shadow",
    "ignores-require-token": "missing-refused",
    "ignores-equal-refuse": "strictly-greater",
    "ignores-equal-once": "once-needs-an-operation",
    "admits-unguarded": "unguarded",
    "check-raises": "check-moves-nothing",
    "check-blind": "check-tells",
    "advance-forgets": "advance-fences-out",
    "advance-lowers": "advance-back",
    "check-then-write": "open-write",
    "answers-advance-early": "open-write",
    "replays-twice": "operation-repeated",
    "operations-by-maximum": "operations-in-any-order",
    "operations-for-ever": "operations-begin-anew",
    "old-operation-replayed": "operation-of-an-old-token",
    "rollback-keeps-operation": "operation-rolled-back",
    "lost-commit-forgets-operation": "unknown-commit",
    "one-fence": "resources-apart",
    "raises-one-by-one": "all-or-none",
    "forgets-on-delete": "delete-and-recreate",
    "compact-forgets": "compact",
    "shadow-refuses": "shadow",
    "observe-refuses": "observe",
    "mode-from-start": "ladder",
    "emergency-observes-nothing": "emergency",
    "canary-dice": "canary-stable",
    "canary-reshuffles": "canary-grows",
    "counts-twice": "counted",
    "rollback-applies": "rolled-back",
    "refused-applies": "smaller-token",
    "vanished-applies": "vanished",
    "holder-collides": "one-holder",
}

# Which case must find which bug, and no other case.
CAUGHT_ONLY_BY = {
    "prepare-lets-go": "prepared-write",
    "prepared-ends-with-session": "prepared-outlives",
    "spelling-is-another": "equal-keys",
    "delete-by-spelling-forgets": "equal-keys",
    "moves-in-unjudged": "move-into-newer",
    "moves-out-unjudged": "move-out-of-newer",
    "move-takes-fence-along": "moved",
    "token-for-any": "another-key",
    "part-is-unguarded": "became-a-part",
    "advance-unguarded-done": "advance-unguarded",
    "advance-unchecked": "advance-unreached",
    "rehearses-by-doing": "rehearsed",
}


def pawl(*words):
    return subprocess.run(
        [PAWL, "guard", "conformance", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def reference(*words):
    return " ".join(["/usr/bin/python3", str(HERE / "reference_guard.py"), *words])


def report(command, *words):
    """The only report, and the exit code."""
    done = pawl("--exec", command, "--json", *words)
    answer = json.loads(done.stdout)
    (only,) = answer["reports"]
    return only, done.returncode


def cases(found, end):
    return [each["case"] for each in found["cases"] if each["end"] == end]


class TheReferenceGuard(unittest.TestCase):
    def assertConforms(self, found, code):
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(0, code)

    def test_reference_guard_passes_with_transactions(self):
        found, code = report(reference())
        self.assertConforms(found, code)
        self.assertEqual(
            [
                "smaller-operation",
                "race-read-committed",
                "race-repeatable-read",
                "race-serializable",
            ],
            cases(found, "not applicable"),
        )

    def test_reference_guard_passes_with_single_writes(self):
        found, code = report(reference("--whole"))
        self.assertConforms(found, code)
        self.assertIn("smaller-operation", cases(found, "passed"))
        self.assertIn("race", cases(found, "passed"))
        self.assertIn("open-write", cases(found, "not applicable"))

    def test_what_a_guard_lacks_is_reported_with_its_reason(self):
        for form in ([], ["--whole"]):
            found, _ = report(reference(*form), "--rounds", "3")
            reasons = [each["why"] for each in found["cases"] if each["end"] == "not applicable"]
            self.assertEqual([], [why for why in reasons if "(" not in why])
        self.assertIn(
            "the guard has no transactions (a write is one step), prepared (a write is one step)",
            reasons,
        )


class ThePlantedBugs(unittest.TestCase):
    def test_every_planted_bug_is_found_by_its_case(self):
        self.assertEqual(set(reference_guard.BUGS), set(CAUGHT_BY) | set(CAUGHT_ONLY_BY))
        self.assertFalse(set(CAUGHT_BY) & set(CAUGHT_ONLY_BY))

    def test_race_finds_check_then_write(self):
        for form in ([], ["--whole"]):
            found, code = report(
                reference("--bug", "check-then-write", *form), "--case", "race", "--rounds", "100"
            )
            self.assertEqual((["race"], 1), (cases(found, "failed"), code), found)
            self.assertRegex(found["cases"][0]["why"], "violations in [0-9]+ attempts")


def catches(bug, case):
    def test(self):
        found, code = report(reference("--bug", bug), "--case", case)
        self.assertEqual(([case], 1), (cases(found, "failed"), code), found)
        self.assertTrue(found["cases"][0]["why"])

    return test


def catches_only(bug, case):
    def test(self):
        found, code = report(reference("--bug", bug), "--rounds", "3")
        self.assertEqual(([case], 1), (cases(found, "failed"), code), found)

    return test


for _bug, _case in CAUGHT_BY.items():
    setattr(ThePlantedBugs, f"test_{_bug.replace('-', '_')}_is_caught", catches(_bug, _case))
for _bug, _case in CAUGHT_ONLY_BY.items():
    _name = f"test_{_bug.replace('-', '_')}_is_caught_by_its_case_alone"
    setattr(ThePlantedBugs, _name, catches_only(_bug, _case))


class TheProcess(unittest.TestCase):
    """A guard's process that misbehaves is an error that says how, never a verdict."""

    def assertFailsWith(self, command, words):
        done = pawl("--exec", command, "--case", "first-token")
        self.assertNotEqual(0, done.returncode)
        self.assertIn(words, done.stdout + done.stderr)

    def test_adapter_that_exits_is_an_error(self):
        self.assertFailsWith("true", "has ended, or has closed its stdin or stdout")

    def test_missing_adapter_is_an_error(self):
        self.assertFailsWith(
            "/nowhere/guard 2>/dev/null", "has ended, or has closed its stdin or stdout"
        )

    def test_adapter_output_that_is_not_json_is_an_error(self):
        self.assertFailsWith("read line; echo hello; cat >/dev/null", "not a JSON object: hello")

    def test_answer_without_id_is_an_error(self):
        self.assertFailsWith("read line; echo '{}'; cat >/dev/null", "without an id")

    def test_unknown_ability_is_an_error(self):
        self.assertFailsWith(
            'read line; echo \'{"id":1,"abilities":["flying"]}\'; cat >/dev/null',
            'no ability "flying"',
        )

    def test_adapter_that_dies_fails_its_case(self):
        command = 'read line; echo \'{"id":1,"name":"mortal","abilities":[]}\'; read line; exit 3'
        found, code = report(command, "--case", "first-token")
        self.assertEqual((["first-token"], 1), (cases(found, "failed"), code))
        self.assertIn("has ended, or has closed its stdin or stdout", found["cases"][0]["why"])


class TheCommandLine(unittest.TestCase):
    def test_list_shows_every_case_with_its_claim(self):
        done = pawl("--list", "--json")
        listed = json.loads(done.stdout)["cases"]
        self.assertEqual(0, done.returncode)
        self.assertGreaterEqual(len(listed), 40)
        self.assertEqual(len(listed), len({each["case"] for each in listed}))
        self.assertIn(listed[0]["claim"], pawl("--list").stdout)

    def test_reference_page_lists_the_same_cases(self):
        page = (ROOT / "docs/reference/conformance.md").read_text(encoding="utf-8")
        written = re.findall(
            r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \|$", page.split("## The cases")[1], re.M
        )
        listed = json.loads(pawl("--list", "--json").stdout)["cases"]
        self.assertEqual(
            [(each["case"], each["claim"], each["needs"].replace("|", " or ")) for each in listed],
            written,
        )

    def test_unknown_case_is_a_usage_error_with_a_hint(self):
        done = pawl("--exec", "true", "--case", "flying")
        self.assertEqual(64, done.returncode)
        self.assertIn("--list", done.stderr)

    def test_nothing_to_test_is_a_usage_error(self):
        self.assertEqual(64, pawl().returncode)

    def test_text_output_shows_each_case_and_the_total(self):
        done = pawl(
            "--exec",
            reference("--bug", "strict-greater"),
            "--case",
            "first-token",
            "--case",
            "equal-token",
        )
        self.assertEqual(1, done.returncode)
        self.assertIn("ok      first-token: the first token is admitted", done.stdout)
        self.assertIn(
            "FAILED  equal-token: not true: the holder writes again under its token", done.stdout
        )
        self.assertIn(
            "does not keep the contract: 1 passed, 1 failed, 0 not applicable", done.stdout
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
