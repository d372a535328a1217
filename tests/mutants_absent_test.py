#!/usr/bin/python3
"""What ships knows nothing of the bugs that are planted for the simulator.

    mutants_absent_test.py SOURCE_DIR BINARY…
"""
import pathlib
import re
import sys


def main():
    header = (pathlib.Path(sys.argv[1]) / "src/base/mutants.h").read_text(encoding="utf-8")
    names = re.findall(r"^  X\((\w+), \"([^\"]+)\"\)", header, re.M)
    assert len(names) >= 30, f"only {len(names)} planted bugs were found in mutants.h"
    faults = []
    for binary in sys.argv[2:]:
        content = pathlib.Path(binary).read_bytes()
        words = (
            [b"chosen_mutant"]
            + [name.encode() for name, _ in names if "_" in name]
            + [lesson.encode() for _, lesson in names]
        )
        faults += [f'{binary} contains "{word.decode()}"' for word in words if word in content]
    print("\n".join(faults) or f"none of {len(names)} planted bugs in {len(sys.argv) - 2} binaries")
    sys.exit(1 if faults else 0)


main()
