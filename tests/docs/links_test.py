#!/usr/bin/python3
"""Every page below docs/ is linked from docs/README.md, and every relative link in a Markdown file
leads somewhere: to a file that exists, and to a heading of it when the link names one. Every row of
a table has a table: a row behind an empty line would be shown as text.

    links_test.py SOURCE_DIR
"""
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
INDEX = SOURCE / "docs/README.md"
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
HEADING = re.compile(r"^#+ +(.*)$", re.M)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')


def pages():
    listed = subprocess.run(
        [
            "git",
            "-C",
            SOURCE,
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [page for name in filter(None, listed.split("\0")) if (page := SOURCE / name).is_file()]


def links(page):
    """The file and the heading of each relative link of a page; the heading is empty when none is
    named."""
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            path, _, heading = target.partition("#")
            yield target, (page.parent / path).resolve() if path else page, heading


def anchors(page):
    """The names that GitHub gives to the headings of a page, and those that the page sets."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return set(ANCHOR.findall(text)) | {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in HEADING.findall(text)
    }


class LinksTest(unittest.TestCase):
    def test_every_page_is_linked_from_the_index(self):
        linked = {path for _, path, _ in links(INDEX)}
        unlinked = [
            str(page.relative_to(SOURCE))
            for page in sorted((SOURCE / "docs").rglob("*.md"))
            if page != INDEX and page.resolve() not in linked
        ]
        self.assertEqual(unlinked, [], "add these pages to docs/README.md")

    def test_every_relative_link_has_a_target(self):
        broken = [
            f"{page.relative_to(SOURCE)}: {target}"
            for page in pages()
            for target, path, heading in links(page)
            if not path.exists() or (heading and heading not in anchors(path))
        ]
        self.assertEqual(broken, [])

    def test_every_row_of_a_table_has_a_table(self):
        rows = []
        for page in pages():
            text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
            lines = text.split("\n") + [""]
            for number, line in enumerate(lines):
                is_first = line.startswith("|") and not lines[number - 1].startswith("|")
                if is_first and not re.fullmatch(r"\|[-:| ]+\|", lines[number + 1]):
                    rows.append(f"{page.relative_to(SOURCE)}: {line}")
        self.assertEqual(rows, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
