"""Compares docs/explanation/hard-cases.md with the tree: every case is described, every case of the
first release is cited by a test or listed as later, and every test that the page names exists.

A test cites a case in a comment: `Hard case 38.`, `Hard cases 4, 7 and 9-12`. The page has two rows
per case, one that describes it (three columns) and one that names its tests (four):

    | 6 | A former holder releases the lock late | A release names the secret lease, … |

    | 6 | A stale release | `tests/e2e/verbs_test.py::test_a_stale_release_…`, `src/core/core_test.cc::AReleaseBy…` | |
    | 42 | Restore from backup | | later: operators |
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
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
DESCRIBED = re.compile(r"^\| (\d+) \| [^|]{10,} \| [^|]{10,} \|$", re.MULTILINE)
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
            rf"(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*{suite}\s*,\s*{re.escape(test)}\b",
            text,
        )
        is not None
    )


class HardCasesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = {
            int(number): (tests, later)
            for number, _, tests, later in ROW.findall(PAGE.read_text(encoding="utf-8"))
        }

    def test_every_case_has_one_row(self):
        self.assertEqual(sorted(self.rows), list(CASES))

    def test_every_case_is_described(self):
        self.assertEqual(
            [int(number) for number in DESCRIBED.findall(PAGE.read_text(encoding="utf-8"))],
            list(CASES),
        )

    def test_every_case_of_the_first_release_is_cited(self):
        seen = cited()
        open_cases = [
            case
            for case in FIRST_RELEASE
            if case not in seen and "later:" not in self.rows[case][1]
        ]
        self.assertEqual(open_cases, [])

    def test_every_case_names_a_test_or_is_listed_as_later(self):
        empty = [
            case
            for case, (tests, later) in self.rows.items()
            if not NAMED.search(tests) and "later:" not in later
        ]
        self.assertEqual(empty, [])

    def test_every_named_test_exists(self):
        missing = [
            f"{path}::{name}"
            for tests, _ in self.rows.values()
            for path, name in NAMED.findall(tests)
            if not exists(path, name)
        ]
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
