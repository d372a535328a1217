#!/usr/bin/python3
"""Folders under src/ depend one way, and nothing that must be pure reads a clock or opens a socket.

    layers_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "core": {"base"},
    "wire": {"base"},
    "store": {"base"},
    "tls": {"base"},
    "auth": {"base", "wire"},
    "http": {"base", "tls"},
    "server": {"auth", "base", "core", "store", "tls", "wire"},
    "api": {"base", "wire", "http", "server"},
    "guard_contract": {"base"},
    "client": {"base", "wire", "guard_contract", "tls"},
    "guard": {"base", "client", "guard_contract"},
    "conformance": {"base", "guard", "guard_contract"},
    "testing": {"base", "store", "wire", "server", "client"},
    "pawld": {"api", "auth", "base", "core", "http", "store", "tls", "wire", "server"},
    "drill": {"base", "client", "guard", "guard_contract", "wire"},
    "cli": {
        "auth",
        "base",
        "wire",
        "client",
        "guard",
        "guard_contract",
        "conformance",
        "drill",
        "tls",
    },
}
# Where time, sockets and threads may not appear: the rules and the sans-I/O machines (hard case
# 26).
PURE = re.compile(
    r"src/(core|wire)/|src/conformance/history|src/auth/users_file|src/server/(session|engine|turn|event_ring|observ|backing_up|users|access)|"
    r"src/client/(agenda|machine|.*flow|deadline|holders|keeper|observers|leader_watch)|"
    r"src/cli/run_(plan|environment)"
)
IMPURE = re.compile(
    r"\b(clock_gettime|gettimeofday|system_clock|steady_clock|std::thread|std::mutex|socket\(|epoll_|"
    r"getrandom|std::random_device|rand\(|sleep_for|time\(nullptr\))"
)
INCLUDE = re.compile(r'^\s*#include "([a-z_]+)/', re.M)


def main():
    root = pathlib.Path(sys.argv[1])
    faults = []
    for path in sorted(root.glob("src/**/*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(root).as_posix()
        folder = name.split("/")[1]
        text = path.read_text(encoding="utf-8")
        for target in INCLUDE.findall(text):
            if target in ("pawl", folder) or target in ALLOWED[folder]:
                continue
            if target in ALLOWED:
                faults.append(f"{name} includes {target}/, which is not below {folder}/")
        if PURE.search(name) and not name.endswith("_test.cc"):
            for match in IMPURE.finditer(re.sub(r"//.*", "", text)):
                faults.append(f"{name} uses {match.group(1)}: it must come in through a seam")
    for path in sorted(root.glob("include/**/*.h")):
        if re.search(r'#include "(?!pawl/)', path.read_text(encoding="utf-8")):
            faults.append(f"{path.relative_to(root)} includes something outside include/pawl/")
    print("\n".join(faults) or "folders depend one way")
    sys.exit(1 if faults else 0)


main()
