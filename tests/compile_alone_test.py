#!/usr/bin/env python3
"""Each source file of the product compiles on its own.

The ordinary build compiles several files as one, which hides a missing #include. This compiles
every file alone, with the commands of the debug preset, and only checks the syntax.

    compile_alone_test.py SOURCE_DIR BUILD_DIR
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def command_of(entry, build):
    """The compiler's command, without a launcher, that checks one file and writes nothing."""
    words = shlex.split(entry["command"])
    compiler = next(
        i
        for i, word in enumerate(words)
        if os.path.basename(word).startswith(("c++", "g++", "clang++"))
    )
    words = words[compiler:]
    output = words.index("-o")
    words = words[:output] + words[output + 2 :]
    # Headers made during the build are in the build that was made, not in the one configured here.
    words = [
        word.replace(str(build / "debug" / "generated"), str(build / "generated")) for word in words
    ]
    return words + ["-fsyntax-only"]


def check(entry, build):
    done = subprocess.run(
        command_of(entry, build), cwd=entry["directory"], capture_output=True, text=True
    )
    return entry["file"], done.returncode, done.stderr


def main():
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    subprocess.run(
        ["cmake", "--preset", "debug", "-B", str(build / "debug"), "-DPAWL_TESTS=ON"],
        cwd=source,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    entries = {}
    for entry in json.loads((build / "debug" / "compile_commands.json").read_text()):
        if entry["file"].startswith(str(source / "src")) and not entry["file"].endswith("_test.cc"):
            entries.setdefault(entry["file"], entry)  # One of its targets is enough.
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, errors in pool.map(lambda entry: check(entry, build), entries.values()):
            if code != 0:
                failures += 1
                print(f"{os.path.relpath(name, source)} does not compile on its own:\n{errors}")
    print(f"{len(entries)} files, {failures} do not compile on their own")
    return 1 if failures or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
