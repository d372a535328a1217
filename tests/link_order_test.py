#!/usr/bin/python3
"""The programs can be linked by the plain linker, which minds the order of libraries. Ours, mold,
does not, and most users have no mold.

    link_order_test.py BUILD_DIR PROGRAM…
"""
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])


def link(program, folder):
    name = program.relative_to(BUILD)
    commands = subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", name],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    command = commands.splitlines()[-1]
    assert f" -o {name} " in command, command
    plain = command.replace("-fuse-ld=mold", "-fuse-ld=bfd").replace(
        f" -o {name} ", f" -o {folder}/{program.name} "
    )
    subprocess.run(plain, shell=True, cwd=BUILD, check=True, timeout=300)
    print(f"{program.name}: linked")


def main():
    with tempfile.TemporaryDirectory(prefix="pawl-link-") as folder:
        for program in sys.argv[2:]:
            link(pathlib.Path(program), folder)


main()
