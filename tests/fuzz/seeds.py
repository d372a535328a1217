#!/usr/bin/python3
"""Packs the seeds of a fuzz target into one text file that people can read and diff.

    seeds.py unpack tests/fuzz/seeds/config.txt DIR     one file per seed, for libFuzzer
    seeds.py add tests/fuzz/seeds/config.txt INPUT…     adds inputs, e.g. build/fuzz/found/crash-…

The build unpacks them to build/tests/seeds. A file has a paragraph per seed, sorted by name:

    [acquire_limit]
    *3\\r\\n
    $7\\r\\nACQUIRE\\r\\n

The lines below a name, joined without their line ends, are the bytes of the seed. Printable ASCII
stands for itself; everything else is \\n, \\r, \\t, \\\\ or \\xNN. Within a line, so is a space at
either end and a [ at the start. Lines end after \\n, or where they would become too long.
"""

import pathlib
import re
import shutil
import sys

WIDTH = 100
ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
NAME = re.compile(r"\[([\w.-]+)\]")


def escape(char):
    return ESCAPES.get(char) or (char if " " <= char <= "~" else f"\\x{ord(char):02x}")


def to_lines(data):
    lines, line = [], ""
    for char in data.decode("latin-1"):
        word = escape(char)
        if not line and word in (" ", "["):
            word = f"\\x{ord(char):02x}"
        line += word
        if char == "\n" or len(line) > WIDTH - 8:
            lines.append(line)
            line = ""
    lines.append(line)
    return [re.sub(r" $", r"\\x20", line) for line in lines if line]


def unescape(match):
    text = match[0]
    if text[1] == "x":
        return chr(int(text[2:], 16))
    return {value: key for key, value in ESCAPES.items()}[text]


def parse(text):
    """{name: bytes}"""
    seeds, name = {}, None
    for line in text.splitlines():
        if match := NAME.fullmatch(line):
            name = match[1]
            seeds[name] = ""
        elif line:
            seeds[name] += re.sub(r"\\(x..|.)", unescape, line)
    return {name: seed.encode("latin-1") for name, seed in seeds.items()}


def pack(seeds):
    return "\n\n".join("\n".join([f"[{name}]", *to_lines(seeds[name])]) for name in sorted(seeds))


def unpack(file, directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, data in parse(file.read_text(encoding="ascii")).items():
        (directory / name).write_bytes(data)


def add(file, inputs):
    seeds = parse(file.read_text(encoding="ascii")) if file.exists() else {}
    seeds.update({path.name: path.read_bytes() for path in inputs})
    text = pack(seeds) + "\n"
    if parse(text) != seeds:
        raise AssertionError("packing and unpacking again gives other bytes")
    file.write_text(text, encoding="ascii")


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("unpack", "add"):
        sys.exit(__doc__)
    file, *paths = [pathlib.Path(word) for word in sys.argv[2:]]
    if sys.argv[1] == "unpack":
        unpack(file, paths[0])
    else:
        add(file, paths)


if __name__ == "__main__":
    main()
