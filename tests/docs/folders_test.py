#!/usr/bin/python3
"""The map of folders in CONTRIBUTING.md is complete, and every path that docs/architecture.md names
exists.

    folders_test.py SOURCE_DIR

A row of the map names one or more folders: | `src/core/` | the rules | or | `src/*/testlib/` | … |.
A path of docs/architecture.md is a word in backquotes with a slash whose first part is a folder at
the top of the tree, as in `src/core/core.h`; `src/core/core.{h,cc}` names two files, and
`src/core/core.cc::apply` a file that contains the word `apply`.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
MAP = "CONTRIBUTING.md"
TABLE = "docs/architecture.md"
ROW = re.compile(r"^\|((?: *`[^`]+/`,?)+) *\|", re.M)
QUOTED = re.compile(r"`([\w.*{},/-]+)(?:::([\w:~]+))?`")


def tree():
    """The files of the tree, relative to it."""
    listed = subprocess.run(
        ["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [name for name in filter(None, listed.split("\0")) if (SOURCE / name).is_file()]


def missing_from_map(text, folders):
    """The folders that no row names, and the rows that name no folder."""
    rows = {name for cell in ROW.findall(text) for name in re.findall(r"`([^`]+)/`", cell)}
    unnamed = [f for f in sorted(folders) if not any(fnmatch.fnmatchcase(f, row) for row in rows)]
    unused = [row for row in sorted(rows) if not fnmatch.filter(folders, row)]
    return unnamed, unused


def expanded(path):
    """`a/b.{h,cc}` as its two paths."""
    if braces := re.match(r"(.*)\{([^}]*)\}(.*)", path):
        before, choices, after = braces.groups()
        return [before + choice + after for choice in choices.split(",")]
    return [path]


def missing_paths(text, top, root):
    """A line for each path in the text that does not exist below root."""
    for path, word in QUOTED.findall(text):
        if "/" not in path or path.split("/")[0] not in top:
            continue
        for name in expanded(path):
            found = sorted(root.glob(name.rstrip("/")))
            if not found:
                yield f"there is no {name}"
            elif word and not any(
                re.search(rf"\b{re.escape(word)}\b", file.read_text(encoding="utf-8"))
                for file in found
                if file.is_file()
            ):
                yield f"{name} does not contain {word}"


class FoldersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        files = [pathlib.PurePosixPath(name) for name in tree()]
        cls.folders = {str(file.parent) for file in files} - {"."}
        cls.top = {folder.split("/")[0] for folder in cls.folders}

    def test_the_map_names_every_folder_and_no_other(self):
        text = (SOURCE / MAP).read_text(encoding="utf-8")
        self.assertEqual(missing_from_map(text, self.folders), ([], []), MAP)

    def test_a_folder_without_a_row_and_a_row_without_a_folder_are_found(self):
        text = "| `src/core/`, `src/gone/` | rules |\n| `src/*/testlib/` | helpers |\n"
        folders = {"src/core", "src/core/testlib", "src/new"}
        self.assertEqual(missing_from_map(text, folders), (["src/new"], ["src/gone"]))

    def test_every_path_of_the_architecture_page_exists(self):
        text = (SOURCE / TABLE).read_text(encoding="utf-8")
        self.assertEqual(list(missing_paths(text, self.top, SOURCE)), [], TABLE)

    def test_a_path_that_does_not_exist_is_found(self):
        for text in ("`src/core/gone.cc`", "`src/gone/`", "`CMakeLists.txt` `tests/x.{h,cc}`"):
            self.assertTrue(list(missing_paths(text, self.top, SOURCE)), text)
        gone = list(missing_paths("`tests/CMakeLists.txt::no_such_word`", self.top, SOURCE))
        self.assertEqual(gone, ["tests/CMakeLists.txt does not contain no_such_word"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
