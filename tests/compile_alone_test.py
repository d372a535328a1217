#!/usr/bin/env python3
"""Each source file of the product compiles on its own, and everything compiles with clang.

The ordinary build compiles several files as one with g++, which hides a missing #include and what
clang does not accept. This compiles every file of the product alone, and tests and benchmarks as
the ordinary build groups them, both with clang, and only checks the syntax: all warnings are known
by then.

Headers that are not Pawl's are compiled once, in advance: the standard ones of includes_test.py,
which checks that each file includes them, and of others (LARGE) only those that a file includes
anyway.

    compile_alone_test.py SOURCE_DIR BUILD_DIR [PART_OF_A_PATH]    only the files that have it
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from includes_test import STANDARD, Tree

COMPILER = "clang++"
# What takes long to compile and many files of the product use.
LARGE = ("boost/json/value.hpp", "fmt/format.h", "openssl/ssl.h")
IN_TESTS = (*LARGE, "gtest/gtest.h")
# A precompiled header fits only what is compiled with the same options.
OPTIONS = ("-std=c++20", "-DFMT_SHARED")
NO_SYNTAX = ("-c", "-DFMT_SHARED", "-DGTEST_HAS_PTHREAD=1", "-std=c++20")
NO_SYNTAX_BEGINS = ("-O", "-g", "-fPI", "-fvisibility", "-fsanitize")


def command_of(entry, build):
    """The compiler's command, without a launcher, that checks one file and writes nothing."""
    words = shlex.split(entry["command"])
    compiler = next(
        i
        for i, word in enumerate(words)
        if os.path.basename(word).startswith(("c++", "g++", "clang++"))
    )
    words = words[compiler + 1 :]
    output = words.index("-o")
    words = words[:output] + words[output + 2 :]
    # Headers made during the build are in the build that was made, not in the one configured here.
    words = [
        word.replace(str(build / "debug" / "generated"), str(build / "generated"))
        for word in words
        if word not in NO_SYNTAX and not word.startswith(NO_SYNTAX_BEGINS)
    ]
    return [COMPILER, *OPTIONS, *words, "-fsyntax-only"]


class Precompiled:
    """Headers that are compiled once; one file for each set of them that is asked for."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.made = {}

    def make(self, headers):
        name = self.folder / f"{len(self.made)}.h"
        name.write_text("".join(f"#include <{header}>\n" for header in headers))
        self.made[headers] = f"{name}.pch"
        subprocess.run(
            [COMPILER, *OPTIONS, "-x", "c++-header", name, "-o", self.made[headers]], check=True
        )

    def options(self, headers):
        return ["-include-pch", self.made[headers]] if headers in self.made else []


def check(entry, build, precompiled, headers):
    done = subprocess.run(
        command_of(entry, build) + precompiled.options(headers),
        cwd=entry["directory"],
        capture_output=True,
        text=True,
    )
    return entry["file"], done.returncode, done.stderr


def commands(folder):
    return json.loads((folder / "compile_commands.json").read_text())


def is_product(name, source):
    return name.startswith(f"{source}/src/") and not name.endswith("_test.cc")


def holds_product(unity, source):
    """Whether the files that this one includes are files of the product."""
    included = [
        line.split('"')[1]
        for line in pathlib.Path(unity).read_text().splitlines()
        if line.startswith('#include "')
    ]
    return all(is_product(os.path.realpath(name), source) for name in included)


def entries_of(source, build):
    """What to compile, once each: a file may belong to several targets."""
    subprocess.run(
        ["cmake", "--preset", "debug", "-B", str(build / "debug"), "-DPAWL_TESTS=ON"],
        cwd=source,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    entries = {}
    for entry in commands(build / "debug"):
        if is_product(entry["file"], source):
            entries.setdefault(entry["file"], entry)
    for entry in commands(build):
        name = entry["file"]
        product = holds_product(name, source) if "/Unity/" in name else is_product(name, source)
        if not product:
            entries.setdefault(name, entry)
    return entries.values()


def headers_for(entry, source, tree):
    """What may be compiled in advance for this file."""
    if not is_product(entry["file"], source):
        return tuple(sorted(STANDARD)) + IN_TESTS
    included = tree.others(os.path.relpath(entry["file"], source))
    if any("sqlite3ext" in header or header.startswith("spdlog") for header in included):
        return ()  # They define macros that must come before other headers.
    return tuple(sorted(STANDARD)) + tuple(each for each in LARGE if each in included)


def main():
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    entries = [entry for entry in entries_of(source, build) if only in entry["file"]]
    tree = Tree(source)
    headers = [headers_for(entry, source, tree) for entry in entries]
    failures = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        precompiled = Precompiled(folder)
        for each in set(headers):
            if headers.count(each) > 2:
                precompiled.make(each)
        work = pool.map(
            lambda entry, each: check(entry, build, precompiled, each), entries, headers
        )
        for name, code, errors in work:
            if code != 0:
                failures += 1
                print(f"{os.path.relpath(name, source)} does not compile on its own:\n{errors}")
    print(f"{len(entries)} files, {failures} do not compile on their own")
    return 1 if failures or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
