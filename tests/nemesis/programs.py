"""Where the programs of a build are, in the variables by which the harness and the parts know
them."""

import os
import pathlib

from pawltest import ROOT


def find():
    build = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build"))
    os.environ.update(
        {
            "PAWLD": str(build / "bin/pawld"),
            "PAWL": str(build / "bin/pawl"),
            "PAWL_NEMESIS_WORKER": str(build / "tests/nemesis_worker"),
            "PAWL_CHECK_HISTORY": str(build / "tests/check_history"),
            "PAWL_SQLITE": str(build / "lib/libpawl_sqlite.so"),
            "PAWL_FAILING_IO": str(build / "tests/failing_io.so"),
            "PAWL_JUMPING_WALL": str(build / "tests/jumping_wall.so"),
            "PAWL_LOSSY_FS": str(build / "tests/pawl_lossy_fs"),
            "PAWL_E2E_DIR": str(build / "tests/e2e"),
        }
    )
