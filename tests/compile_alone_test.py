#!/usr/bin/env python3
"""Each source file of the product compiles on its own, and everything compiles with clang.

The ordinary build compiles several files as one with g++, which hides a missing #include and what
clang does not accept. This compiles every file of the product alone, and tests and benchmarks as
the ordinary build groups them, both with clang, and only checks the syntax: all warnings are known
by then.

    compile_alone_test.py SOURCE_DIR BUILD_DIR [PART_OF_A_PATH]    only the files that have it
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

COMPILER = "clang++"


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
        word.replace(str(build / "debug" / "generated"), str(build / "generated")) for word in words
    ]
    return [COMPILER, *words, "-fsyntax-only"]


def check(entry, build):
    done = subprocess.run(
        command_of(entry, build), cwd=entry["directory"], capture_output=True, text=True
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


def main():
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    entries = [entry for entry in entries_of(source, build) if only in entry["file"]]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, errors in pool.map(lambda entry: check(entry, build), entries):
            if code != 0:
                failures += 1
                print(f"{os.path.relpath(name, source)} does not compile on its own:\n{errors}")
    print(f"{len(entries)} files, {failures} do not compile on their own")
    return 1 if failures or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
