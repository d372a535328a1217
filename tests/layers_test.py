#!/usr/bin/python3
"""The folders below src/ depend one way, by #include and by link, and the pure parts are pure.

    layers_test.py SOURCE_DIR

ALLOWED is the one place that says which folder may use which; other texts refer to it. Found are

  - an #include, a linked target or a compiled file of a folder that is not allowed;
  - two folders that use each other, directly or over others;
  - a public header that includes anything but the standard library and public headers;
  - production code that includes a testlib/;
  - a clock, socket, thread or random number in code that must get them through an interface.

Files of one folder that include each other in a circle are listed, but are not a failure.
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()

# A folder may use those on its right, which all stand above it. `pawl/…` is include/pawl.
ALLOWED = {
    "base": "",
    "core": "base",
    "wire": "base",
    "tls": "base",
    "net": "base tls",
    "etcd": "base net tls",
    "store": "base etcd net tls",
    "auth": "base wire",
    "http": "base tls",
    "server": "auth base core store tls wire",
    "api": "base http server wire",
    "pawld": "api auth base core etcd http server store tls wire",
    "guard_contract": "base",
    "client": "base guard_contract net tls wire",
    "testing": "base client server store wire",
    "aws": "base",
    "guard": "aws base client etcd guard_contract net tls",
    "conformance": "base client guard guard_contract",
    "drill": "base client conformance guard guard_contract wire",
    "gate": "base guard_contract http net server store tls",
    "cli": "auth base client conformance drill gate guard guard_contract server store tls wire",
}
ALLOWED = {folder: set(below.split()) for folder, below in ALLOWED.items()}

# The rules and the state machines without I/O (hard case 26). Of these folders everything is pure
# but the files named here, without their suffix.
IMPURE_FILES = {
    "core": "",
    "wire": "",
    "server": "engine_mailbox listener loop loop_tls service_clock",
    "etcd": "driver",
    "gate": "client_socket mark_writer poller proxy serve",
    "client": "boot_clock callback_thread connector detached_thread driver listener lookup "
    "loss_notifier "
    "poll_connection repeated_acquire socket",
}
IMPURE = re.compile(
    r"\b(clock_gettime|gettimeofday|system_clock|steady_clock|std::thread|std::mutex|socket\(|"
    r"epoll_|getrandom|std::random_device|rand\(|sleep_for|time\(nullptr\))"
)

INCLUDE = re.compile(r'^\s*#include "(([a-z_]+)/[^"]+)"', re.M)
COMMAND = re.compile(r"^\s*(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.M)
DEFINES_TARGET = {"pawl_library", "pawl_executable", "pawl_test", "add_library", "add_executable"}


def sources(root):
    """Each C++ file below src/: its name, its folder, its text without comments."""
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cc"):
            name = path.relative_to(root).as_posix()
            text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
            yield name, name.split("/")[1], text


def is_test(name):
    return name.endswith("_test.cc") or "/testlib/" in name


def cmake_commands(root):
    """Each command of the CMake files below src/: file, folder of the file, command, arguments."""
    for path in sorted((root / "src").rglob("*")):
        if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
            name = path.relative_to(root).as_posix()
            text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
            for command, arguments in COMMAND.findall(text):
                yield name, name.split("/")[1], command, arguments.split()


def target_folders(root):
    """The folder of each target that is defined below src/."""
    folders = {}
    for _, folder, command, arguments in cmake_commands(root):
        if command in DEFINES_TARGET and arguments:
            prefix = "pawl_" if command == "pawl_library" else ""
            folders[prefix + arguments[0]] = folder
            if "ALIAS" in arguments:
                folders[arguments[0]] = folders.get(arguments[-1], folder)
    return folders


def dependencies(root):
    """Each use of another folder: folder, the folder it uses, and a text that says where."""
    for name, folder, text in sources(root):
        for file, target in INCLUDE.findall(text):
            if target in ALLOWED and target != folder:
                yield folder, target, f"{name} includes {file}"
    targets = target_folders(root)
    for name, folder, command, arguments in cmake_commands(root):
        if command not in DEFINES_TARGET | {"target_link_libraries", "target_sources"}:
            continue
        for argument in arguments[1:]:
            used = targets.get(argument)
            if other := re.match(r"(?:\.\./)+([a-z_]+)/\w+\.cc$", argument):
                used = other.group(1) if other.group(1) in ALLOWED else None
            if used and used != folder:
                yield folder, used, f"{name}: {arguments[0]} links {argument}"


def cycles(edges):
    """The sets of nodes that reach each other."""
    reach = {node: set(next_nodes) for node, next_nodes in edges.items()}
    changed = True
    while changed:
        changed = False
        for found in reach.values():
            more = set().union(*(reach.get(node, set()) for node in found)) - found
            if more:
                found |= more
                changed = True
    rings = {
        frozenset(other for other in reach[node] if node in reach.get(other, set()))
        for node in reach
        if node in reach[node]
    }
    return sorted(sorted(ring) for ring in rings)


def folder_faults(root):
    edges = {folder: set() for folder in ALLOWED}
    for folder, target, where in dependencies(root):
        if folder not in ALLOWED:
            yield f"src/{folder}/ is not in ALLOWED of tests/layers_test.py"
            continue
        edges[folder].add(target)
        if target not in ALLOWED[folder]:
            yield f"{where}: src/{folder}/ may not use src/{target}/"
    for ring in cycles(edges):
        yield f"these folders use each other: {', '.join(ring)}"


def include_faults(root):
    for path in sorted((root / "include").rglob("*.h")):
        for file in re.findall(r'#include "([^"]+)"', path.read_text(encoding="utf-8")):
            if not file.startswith("pawl/"):
                yield f"{path.relative_to(root)} includes {file}, which is not a public header"
    for name, folder, text in sources(root):
        for file, target in INCLUDE.findall(text):
            if target == "pawl" and not (root / "include" / file).is_file():
                yield f"{name} includes {file}, which is not in include/"
            if "/testlib/" in file and not is_test(name) and folder != "testing":
                yield f"{name} includes {file}, which is for tests"


def purity_faults(root):
    files = {folder: set() for folder in IMPURE_FILES}
    for name, folder, text in sources(root):
        if folder not in IMPURE_FILES or is_test(name):
            continue
        stem = pathlib.PurePath(name).stem
        files[folder].add(stem)
        if stem not in IMPURE_FILES[folder].split():
            for used in IMPURE.findall(text):
                yield f"{name} uses {used}: pass it in through an interface"
    for folder, stems in IMPURE_FILES.items():
        for stem in sorted(set(stems.split()) - files[folder]):
            yield f"IMPURE_FILES of tests/layers_test.py names src/{folder}/{stem}, which is gone"


def file_cycles(root):
    """Circles of files (header and source counted as one) inside a folder."""
    edges = {}
    for name, folder, text in sources(root):
        if not is_test(name):
            uses = edges.setdefault(re.sub(r"\.(h|cc)$", "", name), set())
            uses |= {
                "src/" + re.sub(r"\.h$", "", file)
                for file, target in INCLUDE.findall(text)
                if target == folder
            }
            uses.discard(re.sub(r"\.(h|cc)$", "", name))
    return cycles(edges)


def faults(root):
    return [*folder_faults(root), *include_faults(root), *purity_faults(root)]


class LayersTest(unittest.TestCase):
    def test_a_folder_may_use_only_folders_above_it_in_the_table(self):
        seen = set()
        for folder, below in ALLOWED.items():
            self.assertLessEqual(below, seen, folder)
            seen.add(folder)

    def test_every_folder_is_in_the_table(self):
        folders = {path.name for path in (SOURCE / "src").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(ALLOWED))

    def test_folders_depend_one_way_and_pure_code_is_pure(self):
        self.assertEqual(faults(SOURCE), [])


class SelfTest(unittest.TestCase):
    """A violation of each kind, planted in a copy of the tree, is found."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for part in ("src", "include"):
            shutil.copytree(SOURCE / part, self.root / part)
        self.before = faults(self.root)

    def plant(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        path.write_text(old + "\n" + text + "\n", encoding="utf-8")

    def assertFound(self, *texts):
        new = [fault for fault in faults(self.root) if fault not in self.before]
        for text in texts:
            self.assertTrue(any(text in fault for fault in new), f"{text!r} is not in {new}")

    def test_an_include_of_a_higher_folder_is_found(self):
        self.plant("src/base/planted.h", '#include "cli/console.h"')
        self.assertFound("src/base/ may not use src/cli/", "use each other: auth, aws, base, ")

    def test_a_link_to_a_higher_folder_is_found(self):
        self.plant("src/core/CMakeLists.txt", "pawl_library(planted SOURCES a.cc DEPS pawl_server)")
        self.assertFound("planted links pawl_server: src/core/ may not use src/server/")
        self.assertFound("use each other: core, server")

    def test_a_later_link_command_is_found(self):
        self.plant("src/wire/CMakeLists.txt", "target_link_libraries(pawl_wire PRIVATE pawl_tls)")
        self.assertFound("pawl_wire links pawl_tls: src/wire/ may not use src/tls/")

    def test_a_source_file_of_a_higher_folder_is_found(self):
        self.plant("src/base/CMakeLists.txt", "add_library(planted SHARED a.cc ../tls/stream.cc)")
        self.assertFound("planted links ../tls/stream.cc: src/base/ may not use src/tls/")

    def test_two_folders_that_use_each_other_by_include_and_by_link_are_found(self):
        self.plant("src/auth/planted.cc", '#include "tls/stream.h"')
        self.plant("src/tls/CMakeLists.txt", "pawl_library(planted SOURCES a.cc DEPS pawl_auth)")
        self.assertFound("these folders use each other: auth, tls")

    def test_a_public_header_that_includes_a_private_one_is_found(self):
        self.plant("include/pawl/planted.h", '#include "base/bytes.h"')
        self.assertFound("planted.h includes base/bytes.h")

    def test_a_private_header_under_the_public_name_is_found(self):
        self.plant("src/core/planted.cc", '#include "pawl/console.h"')
        self.assertFound("planted.cc includes pawl/console.h, which is not in include/")

    def test_a_test_helper_in_production_code_is_found(self):
        self.plant("src/core/planted.cc", '#include "core/testlib/planted.h"')
        self.assertFound("planted.cc includes core/testlib/planted.h, which is for tests")

    def test_a_clock_in_the_core_is_found(self):
        self.plant("src/core/planted.cc", "auto now = std::chrono::steady_clock::now();")
        self.assertFound("src/core/planted.cc uses steady_clock")

    def test_a_new_folder_is_found(self):
        self.plant("src/planted/a.cc", '#include "base/bytes.h"')
        self.assertFound("src/planted/ is not in ALLOWED")


if __name__ == "__main__":
    for circle in file_cycles(SOURCE):
        print("these files include each other:", ", ".join(circle))
    unittest.main(argv=sys.argv[:1], verbosity=2)
