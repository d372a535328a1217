"""Installs libpawl into an empty prefix, and builds and runs against it, from outside the tree: the
examples, by find_package; the README's C++ example and the one of
docs/how-to/test-losing-a-lease.md as printed, by pkg-config. Also that nothing but the public
classes can be seen.

    package_test.py SOURCE_DIR BUILD_DIR        (PAWLD: the pawld binary)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
from pawltest import harness, postgres
from pawltest.process import dies_with_parent


def run(*words, **options):
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
        **options,
    )
    if done.returncode != 0:
        raise AssertionError(f"{words} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="pawl-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.prefix = cls.dir / "prefix"
        run("cmake", "--install", BUILD, "--component", "libpawl", "--prefix", cls.prefix)
        cls.lib = next(cls.prefix.rglob("libpawl.so")).parent
        cls.pawld = harness.Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def build(self, example):
        """Builds it outside the tree; where."""
        project, build = self.dir / example, self.dir / f"{example}-build"
        shutil.copytree(SOURCE / "examples" / example, project)
        run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        return build

    def test_example_builds_with_the_package(self):
        output = run(
            self.build("cpp-worker") / "worker", f"127.0.0.1:{self.pawld.port}", "3"
        ).splitlines()
        self.assertRegex(output[0], r"^working with token \d+$")
        self.assertEqual(output[1:], ["step 1", "step 2", "step 3", "released"])

    def test_second_scheduler_takes_over(self):
        program, log = self.build("leader-scheduler") / "scheduler", self.dir / "schedule"
        schedulers = {}

        def start(name):
            with open(log, "ab") as out:
                schedulers[name] = subprocess.Popen(
                    dies_with_parent([program, f"127.0.0.1:{self.pawld.port}", name]),
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            self.addCleanup(schedulers[name].wait)
            self.addCleanup(schedulers[name].kill)

        def until(line):
            harness.wait_until(lambda: line in log.read_text(), f"{line!r} is logged")

        start("first")
        until("first does turn 3 with token ")
        start("second")
        until("second sees first leading")
        schedulers["first"].kill()
        until("second does turn 3 with token ")
        schedulers["second"].terminate()
        self.assertEqual(schedulers["second"].wait(timeout=harness.PATIENCE), 0)
        turns = re.findall(r"^(\w+) does turn \d+ with token (\d+)$", log.read_text(), re.M)
        self.assertEqual(
            [name for name, _ in turns], sorted(name for name, _ in turns), "never both"
        )
        self.assertEqual(len(set(turns)), 2, turns)
        self.assertIn("second ends\n", log.read_text())

    def compile_as_printed(self, page, package):
        """The one C++ program of a page, compiled by the flags of pkg-config."""
        blocks = re.findall(
            r"^```cpp\n(.*?)^```", (SOURCE / page).read_text(encoding="utf-8"), re.M | re.S
        )
        self.assertEqual(len(blocks), 1)
        return self.compile(pathlib.Path(page).stem, blocks[0], package)

    def compile(self, name, text, *packages):
        """A program by the flags of pkg-config; where."""
        program = self.dir / name
        source = program.with_suffix(".cc")
        source.write_text(text, encoding="utf-8")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", *packages, env=environment).split()
        run(
            "c++",
            "-Wall",
            "-Wextra",
            "-Werror",
            source,
            "-o",
            program,
            "-std=c++20",
            *flags,
            f"-Wl,-rpath,{self.lib}",
        )
        return program

    def test_readme_example_compiles_and_works(self):
        output = run(self.compile_as_printed("README.md", "pawl"), f"127.0.0.1:{self.pawld.port}")
        self.assertRegex(output, r"token \d+")

    def test_example_of_losing_a_lease_compiles_and_works(self):
        output = run(
            self.compile_as_printed("docs/how-to/test-losing-a-lease.md", "pawl-testing")
        ).splitlines()
        self.assertEqual(
            output,
            [
                "written with token 1",
                "ok: the holder writes",
                "written with token 1",
                "ok: an hour later it still holds it: it was renewed",
                "ok: frozen for longer than its TTL it writes no more",
                "ok: the next holder has a greater token",
            ],
        )

    def test_package_exports_the_test_server(self):
        project, build = self.dir / "lost", self.dir / "lost-build"
        project.mkdir()
        (project / "main.cc").write_text(
            "#include <pawl/testing/server.h>\n"
            "int main() { return pawl::testing::Server().address().empty(); }\n",
            encoding="utf-8",
        )
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.23)\nproject(lost CXX)\n"
            "find_package(Pawl CONFIG REQUIRED)\nadd_executable(lost main.cc)\n"
            "target_link_libraries(lost PRIVATE Pawl::testing)\n",
            encoding="utf-8",
        )
        run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        run(build / "lost")

    def test_postgres_worker_builds_with_the_package(self):
        project, build = self.dir / "postgres-worker", self.dir / "postgres-worker-build"
        shutil.copytree(SOURCE / "examples/postgres-worker", project)
        run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        with postgres.Cluster() as cluster:
            database = cluster.create_database("shop")
            cluster.psql(
                "CREATE TABLE orders (id int PRIMARY KEY, state text); INSERT INTO orders VALUES "
                "(7, 'new');"
                "SELECT pawl.protect('orders', mode => 'enforce')",
                database,
            )
            address = f"127.0.0.1:{self.pawld.port}"
            output = run(build / "worker", address, cluster.dsn(database), "7")
            self.assertRegex(output, r"^admitted under token \d+$")
            self.assertEqual(cluster.psql("SELECT state FROM orders", database).stdout, "shipped\n")

    def test_pkg_config_finds_each_guard_library(self):
        for kind, native, statement in [
            ("postgres", "libpq", "pawl::PgGuard(nullptr)"),
            ("mariadb", "libmariadb", "pawl::MariaGuard(nullptr)"),
            ("sqlite", "sqlite3", "pawl::SqliteGuard(nullptr)"),
            ("redis", "hiredis", "pawl::RedisGuard(nullptr)"),
            ("etcd", "pawl", "pawl::EtcdGuard({})"),
            ("s3", "libcurl", "pawl::S3Guard guard({})"),
            ("dynamodb", "libcurl", "pawl::DynamoGuard guard({})"),
        ]:
            run(
                self.compile(
                    f"front-{kind}",
                    f"#include <pawl/{kind}.h>\nint main() {{ {statement}; }}\n",
                    f"pawl-{kind}",
                    native,
                )
            )

    def test_package_exports_each_guard_library(self):
        project, build = self.dir / "fronts", self.dir / "fronts-build"
        project.mkdir()
        (project / "main.cc").write_text(
            "#include <pawl/dynamodb.h>\n#include <pawl/etcd.h>\n"
            "#include <pawl/mariadb.h>\n#include <pawl/postgres.h>\n#include <pawl/redis.h>\n"
            "#include <pawl/s3.h>\n#include <pawl/sqlite.h>\n"
            "int main() { pawl::MariaGuard a(nullptr); pawl::PgGuard b(nullptr); "
            "pawl::SqliteGuard c(nullptr); pawl::RedisGuard d(nullptr); pawl::EtcdGuard e({}); "
            "pawl::S3Guard f({}); pawl::DynamoGuard g({}); }\n",
            encoding="utf-8",
        )
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.23)\nproject(fronts CXX)\n"
            "find_package(Pawl CONFIG REQUIRED)\nadd_executable(fronts main.cc)\n"
            "target_link_libraries(fronts PRIVATE Pawl::dynamodb Pawl::etcd Pawl::mariadb "
            "Pawl::postgres Pawl::redis Pawl::s3 Pawl::sqlite)\n",
            encoding="utf-8",
        )
        run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        run(build / "fronts")

    def test_only_the_public_names_can_be_seen(self):
        for library, public in [
            (
                "libpawl.so",
                r"pawl::(Client|Election|LeaderObservation|Lease|Mutex|RecursiveMutex|Guard|to_text)\b",
            ),
            ("libpawl-testing.so", r"pawl::testing::Server\b"),
            ("libpawl_postgres.so", r"pawl::Pg(Guard|Rows|Transaction)\b"),
            ("libpawl_mariadb.so", r"pawl::Maria(Guard|Rows|Transaction)\b"),
            ("libpawl_redis.so", r"pawl::RedisGuard\b"),
            ("libpawl_dynamodb.so", r"pawl::Dynamo(Guard|Value)\b"),
            ("libpawl_etcd.so", r"pawl::EtcdGuard\b"),
            ("libpawl_s3.so", r"pawl::S3Guard\b"),
            ("libpawl_sqlite_front.so", r"pawl::(SqliteGuard|sqlite::register_functions)\b"),
        ]:
            symbols = run("nm", "-DC", "--defined-only", self.lib / library).splitlines()
            names = [line.split(" ", 2)[2] for line in symbols if " T " in line]
            self.assertTrue(names)
            self.assertEqual([name for name in names if not re.match(public, name)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
