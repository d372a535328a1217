"""Compares docs/explanation/hard-cases.md with the tree: every case is described, every case of the
first release is cited by a test or listed as later, and every test that the page names exists.

A test cites a case in a comment: `Hard case 38.`, `Hard cases 4, 7 and 9-12`. The page has a
section per case:

    ### 6. Release by a stale holder

    Problem: A former holder releases the lock late.

    Pawl: A release names the secret lease, not the lock. …

    Tests:

    - `tests/e2e/verbs_test.py::test_stale_release_…`

    Later: what does not exist yet and the case, or the rest of it, belongs to.
"""

import pathlib
import re
import unittest

from pawltest import ROOT

PAGE = ROOT / "docs/explanation/hard-cases.md"
CASES = range(1, 59)
FIRST_RELEASE = {*range(1, 26), *range(27, 30), *range(34, 42)}

AND = r"\s*(?:,\s*and|,|and|-|–)\s*(?:(?://|#)\s*)?"  # A comment may go on in the next line.
CITATION = re.compile(rf"[Hh]ard cases? (\d+(?:{AND}\d+)*)")
CASE = re.compile(r"^### (\d+)\. (.+)\n((?:(?!##).*\n)*)", re.MULTILINE)
NAMED = re.compile(r"`([^`:]+)::([^`]+)`")


def numbers(text):
    """The cases that "4, 7 and 9-12" names."""
    found = set()
    for first, last in re.findall(r"(\d+)(?:\s*[-–]\s*(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def test_files():
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*_test.*")):
            if path.suffix in (".cc", ".py") and path != pathlib.Path(__file__).resolve():
                yield path


def cited():
    cases = set()
    for path in test_files():
        for match in CITATION.finditer(path.read_text(encoding="utf-8")):
            cases |= numbers(match.group(1))
    return cases


def exists(path, name):
    """Whether the file has a test of that name: `def test_x` in Python; TEST(Suite, Name) as Name
    or Suite.Name in C++."""
    file = ROOT / path
    if not file.is_file():
        return False
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return re.search(rf"def {re.escape(name)}\(", text) is not None
    suite, _, test = name.rpartition(".")
    suite = re.escape(suite) if suite else r"\w+"
    return (
        re.search(
            r"(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)"
            rf"\(\s*{suite}\s*,\s*{re.escape(test)}\b",
            text,
        )
        is not None
    )


class HardCasesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        found = CASE.findall(PAGE.read_text(encoding="utf-8"))
        cls.numbers = [int(number) for number, _, _ in found]
        cls.cases = {int(number): text for number, _, text in found}

    def test_every_case_has_one_section(self):
        self.assertEqual(self.numbers, list(CASES))

    def test_every_case_is_described(self):
        for case, text in self.cases.items():
            with self.subTest(case):
                self.assertRegex(text, r"(?m)^Problem: .{10,}")
                self.assertRegex(text, r"(?m)^Pawl: .{10,}")

    def test_every_case_of_the_first_release_is_cited(self):
        seen = cited()
        missing = [
            case
            for case in FIRST_RELEASE
            if case not in seen and "\nLater: " not in self.cases[case]
        ]
        self.assertEqual(missing, [])

    def test_every_case_names_a_test_or_is_listed_as_later(self):
        empty = [
            case
            for case, text in self.cases.items()
            if not NAMED.search(text) and "\nLater: " not in text
        ]
        self.assertEqual(empty, [])

    def test_every_named_test_exists(self):
        named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(named), 100)
        missing = [f"{path}::{name}" for path, name in named if not exists(path, name)]
        self.assertEqual(missing, [])

    def test_citations_are_parsed(self):
        for text, expected in (
            ("// Hard case 38.", {38}),
            ("# Hard cases 4, 7 and 9-12", {4, 7, 9, 10, 11, 12}),
            ("hard cases 1, 2,\n// 27, 28.", {1, 2, 27, 28}),
            ("Hard cases 38 and 39.", {38, 39}),
        ):
            self.assertEqual(numbers(CITATION.search(text).group(1)), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
