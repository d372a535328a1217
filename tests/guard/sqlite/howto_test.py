#!/usr/bin/python3
"""docs/how-to/guard-sqlite.md: its commands do what it says, from the first block to the last, as
one person would type them."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from pawltest import ROOT, harness, node_clients, sqlite

PAGE = (ROOT / "docs/how-to/guard-sqlite.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"(?:<!-- (?:exits (?P<code>\d+)|(?P<background>in the background)) "
    r"-->\s*\n)?```(?P<language>sh|js)\n(?P<body>.*?)^```$",
    re.M | re.S,
)


def command_of(block):
    if block["language"] == "sh":
        return ["bash", "-euo", "pipefail", "-c", block["body"]]
    return [
        os.environ["PAWL"],
        "run",
        "orders",
        "--",
        "node",
        "--eval",
        block["body"].replace("node:sqlite", node_clients.sqlite_module()),
    ]


class HowTo(unittest.TestCase):
    def test_every_block_of_the_page_works(self):
        output = ""
        pawld = harness.Pawld()  # The page starts one of its own, on the usual port.
        self.addCleanup(pawld.remove)
        pawld.start()
        environment = {**os.environ, "PAWL_ADDR": f"127.0.0.1:{pawld.port}"}
        with tempfile.TemporaryDirectory(prefix="pawl-howto-") as folder:
            os.symlink(pathlib.Path(sqlite.EXTENSION).parents[1], f"{folder}/build")
            for block in BLOCK.finditer(PAGE):
                if block["background"]:
                    continue
                done = subprocess.run(
                    command_of(block),
                    cwd=folder,
                    text=True,
                    timeout=60,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
                self.assertEqual(
                    done.returncode, int(block["code"] or 0), f"{block['body']}\n{done.stdout}"
                )
                output += done.stdout
            self.assertIn("js", [block["language"] for block in BLOCK.finditer(PAGE)])
        promised = re.search(r"^Runtime error near line 3: (PAWL_STALE: .*)$", PAGE, re.M)[1]
        for words in (
            promised,
            "no such function: pawl_judge",
            "|orders|stale|1|2|sqlite3",
            "UNIQUE constraint failed: runs.period",
            "uninstalled",
        ):
            self.assertIn(words, output)

    def test_page_names_every_verdict(self):
        source = (ROOT / "src/guard/sqlite/fault.cc").read_text(encoding="utf-8")
        words = set(re.findall(r'"(PAWL_[A-Z]+)"', source))
        self.assertGreater(len(words), 5)
        self.assertEqual(set(re.findall(r"^\| `(PAWL_[A-Z]+)`", PAGE, re.M)), words)


if __name__ == "__main__":
    sqlite.main()
