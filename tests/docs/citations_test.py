#!/usr/bin/python3
"""Every citation in the tree leads to something that exists.

    G7, guarantee G7               a heading of docs/guarantees.md
    rule 12, design rules 2 and 3  a heading of docs/design-rules.md
    hard case 23, hard cases 1–9   a section of docs/explanation/hard-cases.md
    P5                             a row of the properties in docs/explanation/testing.md
    design-rules.md                a Markdown file of this name is in the tree

    citations_test.py SOURCE_DIR
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
THIS = "tests/docs/citations_test.py"  # Its examples cite what does not exist.

# "4, 7 and 9-12", also where a comment goes on in the next line.
GAP = r"(?:\s|^[ \t]*(?://|#|\*|--))+"
NUMBERS = rf"(\d+(?:(?:,?{GAP}and{GAP}|,{GAP}|{GAP}and{GAP}|[-–])\d+)*)"
CITATIONS = {
    "guarantee": re.compile(r"(?<![\w.\-/])G(\d{1,2})\b"),
    "rule": re.compile(rf"\b[Rr]ules?{GAP}{NUMBERS}", re.M),
    "hard case": re.compile(rf"\b[Hh]ard{GAP}cases?{GAP}{NUMBERS}", re.M),
    "property": re.compile(r"(?<![\w.\-/])P(\d)\b"),
}
DEFINITIONS = {
    "guarantee": ("docs/guarantees.md", re.compile(r"^## G(\d+)\. ", re.M)),
    "rule": ("docs/design-rules.md", re.compile(r"^## Rule (\d+)\. ", re.M)),
    "hard case": (
        "docs/explanation/hard-cases.md",
        re.compile(r"^### (\d+)\. ", re.M),
    ),
    "property": ("docs/explanation/testing.md", re.compile(r"^\| P(\d) \|", re.M)),
}
PAGE = re.compile(r"(?<![\w*{}<>…])([a-z][\w./-]*\.md)\b(?![^\s`]*[({])")
SUFFIXES = set(".h .cc .in .py .sql .pml .md .svg .txt .cmake .sh .yml .toml".split())


def files(root):
    """The files of the tree that can cite: names relative to root, and their text."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = root / name
        if path.suffix in SUFFIXES and path.is_file() and name != THIS:
            yield name, path.read_text(encoding="utf-8")


def numbers(text):
    """The numbers that "4, 7 and 9-12" names."""
    found = set()
    for first, last in re.findall(r"(\d+)(?:[-–](\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def unresolved(root):
    """A line for each citation below root that leads nowhere."""
    defined = {}
    for kind, (page, heading) in DEFINITIONS.items():
        defined[kind] = {int(n) for n in heading.findall((root / page).read_text(encoding="utf-8"))}
    tree = list(files(root))
    page_names = {pathlib.PurePath(name).name for name, _ in tree if name.endswith(".md")}
    for name, text in tree:
        for kind, pattern in CITATIONS.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                for number in sorted(numbers(match.group(1)) - defined[kind]):
                    yield f"{name}:{line}: {kind} {number} is not in {DEFINITIONS[kind][0]}"
        if name.endswith(".md"):
            continue  # links_test.py follows the links of pages.
        for match in PAGE.finditer(text):
            if pathlib.PurePath(match.group(1)).name not in page_names:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{name}:{line}: there is no {match.group(1)}"


class CitationsTest(unittest.TestCase):
    def test_every_citation_leads_to_a_heading_or_row_that_exists(self):
        self.assertEqual(list(unresolved(SOURCE)), [])

    def test_the_pages_define_what_is_cited(self):
        for kind, expected in (("guarantee", 10), ("rule", 16), ("hard case", 58), ("property", 8)):
            page, heading = DEFINITIONS[kind]
            found = heading.findall((SOURCE / page).read_text(encoding="utf-8"))
            self.assertEqual([int(n) for n in found], list(range(1, expected + 1)), page)


class SelfTest(unittest.TestCase):
    """The test finds a planted unknown citation of each kind."""

    def found_in(self, text, name="src/core/planted.cc"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", root], check=True)
            for page, _ in DEFINITIONS.values():
                (root / page).parent.mkdir(parents=True, exist_ok=True)
                (root / page).write_text((SOURCE / page).read_text(encoding="utf-8"))
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            return [line for line in unresolved(root) if line.startswith(name)]

    def test_unknown_citations_are_found(self):
        for text in (
            "// As G11 demands.",
            "int x;  // (G7, G12)",
            "// Rule 17.",
            "// design rules 2 and 40",
            "// See design rule\n//   99: it is so.",
            "# Hard case 99.",
            "// hard cases 1, 2,\n// 27, 280.",
            "# Hard cases 50–60",
            "// P9",
            "// as design.md says",
        ):
            self.assertTrue(self.found_in(text), text)

    def test_known_citations_and_other_numbers_are_not_reported(self):
        for text in (
            "// G1, G10: rule 16; design rules 1-3, 5 and 9; hard cases 1, 2 and 58. P1–P8",
            "// The rules of 2024 are others; see docs/design-rules.md, CHANGELOG.md and guarantees.md.",
            "constexpr auto kG12 = 3;  // SIGG11, x-G12",
        ):
            self.assertEqual(self.found_in(text), [], text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
