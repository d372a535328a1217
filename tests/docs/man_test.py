#!/usr/bin/python3
"""The manual pages are well-formed, are installed, and say what --help says: the same options and
the same verbs, no more and no fewer. pawl-VERB.1 belongs to `pawl VERB`; those that nobody wrote by
hand, pawl has made from its own declarations.

    man_test.py SOURCE_DIR BUILD_DIR        (PAWL and PAWLD: the binaries)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PAGES = sorted(
    [*(SOURCE / "man").glob("*.[18]"), *(BUILD / "made/man").glob("*.1")],
    key=lambda page: page.name,
)
COMPLETIONS = {
    "share/bash-completion/completions/pawl",
    "share/zsh/vendor-completions/_pawl",
    "share/fish/vendor_completions.d/pawl.fish",
}


def output(*words):
    return subprocess.run(
        [str(word) for word in words], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def help_of(page):
    program, _, verb = page.stem.partition("-")
    text = output(os.environ[program.upper()], *([verb] if verb else []), "--help")
    if not verb:
        return text
    nested = verbs_in_help(text)
    return text + "".join(
        output(os.environ[program.upper()], verb, inner, "--help") for inner in nested
    )


def options_in_help(text):
    heads = re.findall(r"^  (-\S+)", text, re.M)
    return {name for head in heads for name in head.split(",")}


def options_in_page(text):
    heads = re.findall(r"^\.It (Fl .*)$", text, re.M)
    return {"-" + name for head in heads for name in re.findall(r"\bFl (\S+)", head)}


def verbs_in_help(text):
    _, _, listed = text.partition("\nSubcommands:\n")
    return set(re.findall(r"^  ([a-z]\S*)", listed.partition("\n\n")[0], re.M))


class ManTest(unittest.TestCase):
    maxDiff = None

    def test_every_program_and_verb_has_one_page(self):
        verbs = verbs_in_help(output(os.environ["PAWL"], "--help"))
        self.assertIn("run", verbs)
        self.assertEqual(
            [page.name for page in PAGES],
            sorted(["pawl.1", "pawld.8", *(f"pawl-{verb}.1" for verb in verbs)]),
        )

    def test_mandoc_reports_no_problem(self):
        for page in PAGES:
            lint = subprocess.run(
                ["mandoc", "-T", "lint", "-W", "warning", page],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(lint.stdout + lint.stderr, "", page.name)

    def test_examples_keep_their_quotes(self):
        """In an argument of a macro, mdoc takes double quotes away; they are written \\(dq."""
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            self.assertEqual(re.findall(r'^\.D[l1] .*".*$', text, re.M), [], page.name)

    def test_every_option_is_in_the_page_and_in_the_help(self):
        for page in PAGES:
            named = options_in_help(help_of(page))
            self.assertIn("--help", named)
            self.assertEqual(options_in_page(page.read_text(encoding="utf-8")), named, page.name)

    def test_every_verb_is_in_the_page_and_in_the_help(self):
        for name in ("pawl.1", "pawld.8"):
            page = SOURCE / "man" / name
            text = page.read_text(encoding="utf-8")
            described = re.findall(r"^\.It Cm (\S+)", text, re.M) or re.findall(
                r"^\.Nm\n\.Cm (\S+)", text, re.M
            )
            self.assertEqual(set(described), verbs_in_help(help_of(page)), name)

    def test_page_of_run_names_every_environment_variable(self):
        page = SOURCE / "man/pawl-run.1"
        reported = set(re.findall(r"\bPAWL_[A-Z_]+", help_of(page)))
        self.assertIn("PAWL_TOKEN", reported)
        self.assertEqual(
            set(re.findall(r"^\.It Ev (\S+)", page.read_text(encoding="utf-8"), re.M)), reported
        )

    def test_page_of_pawld_names_every_configuration_key(self):
        keys = set(re.findall(r"^(\w+) = ", output(os.environ["PAWLD"], "--print-config"), re.M))
        self.assertIn("max_ttl_ms", keys)
        heads = re.findall(
            r"^\.It Li (.*)$", (SOURCE / "man/pawld.8").read_text(encoding="utf-8"), re.M
        )
        self.assertEqual({key for head in heads for key in head.split(" , ")}, keys)

    def test_programs_and_pages_are_installed(self):
        with tempfile.TemporaryDirectory() as prefix:
            output("cmake", "--install", BUILD, "--component", "programs", "--prefix", prefix)
            there = {
                path.relative_to(prefix).as_posix()
                for path in pathlib.Path(prefix).rglob("*")
                if path.is_file()
            }
        pages = {f"share/man/man{page.suffix[1:]}/{page.name}" for page in PAGES}
        self.assertEqual(
            there, {"bin/pawl", "bin/pawld", "lib/pawl/libpawl_sqlite.so"} | pages | COMPLETIONS
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
