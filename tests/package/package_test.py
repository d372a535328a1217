"""Installs libpawl into an empty prefix, and builds and runs against it, from outside the tree: the example, by
find_package; the README's C++ example as printed, by pkg-config. Also that nothing but the public classes can be seen.

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
sys.path.insert(0, str(SOURCE / "tests/e2e"))
sys.path.insert(0, str(SOURCE / "tests/guard"))
import harness  # noqa: E402
import pg_cluster  # noqa: E402


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False, **options)
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

    def test_the_example_finds_the_package_and_works(self):
        project, build = self.dir / "worker", self.dir / "worker-build"
        shutil.copytree(SOURCE / "examples/cpp-worker", project)
        run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        said = run(build / "worker", f"127.0.0.1:{self.pawld.port}", "3").splitlines()
        self.assertRegex(said[0], r"^working with token \d+$")
        self.assertEqual(said[1:], ["step 1", "step 2", "step 3", "released"])

    def test_the_readme_example_compiles_as_printed_and_works(self):
        blocks = re.findall(r"^```cpp\n(.*?)^```", (SOURCE / "README.md").read_text(encoding="utf-8"), re.M | re.S)
        self.assertEqual(len(blocks), 1)
        (self.dir / "readme.cc").write_text(blocks[0], encoding="utf-8")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "pawl", env=environment).split()
        run("c++", "-Wall", "-Wextra", "-Werror", self.dir / "readme.cc", "-o", self.dir / "readme", *flags,
            f"-Wl,-rpath,{self.lib}")
        said = run(self.dir / "readme", f"127.0.0.1:{self.pawld.port}")
        self.assertRegex(said, r"token \d+")

    def test_the_worker_that_writes_to_postgres_finds_its_part_and_works(self):
        project, build = self.dir / "postgres-worker", self.dir / "postgres-worker-build"
        shutil.copytree(SOURCE / "examples/postgres-worker", project)
        run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        with pg_cluster.Cluster() as cluster:
            database = cluster.create_database("shop")
            cluster.psql("CREATE TABLE orders (id int PRIMARY KEY, state text); INSERT INTO orders VALUES (7, 'new');"
                         "SELECT pawl.protect('orders', mode => 'enforce')", database)
            said = run(build / "worker", f"127.0.0.1:{self.pawld.port}", cluster.dsn(database), "7")
            self.assertRegex(said, r"^admitted under token \d+$")
            self.assertEqual(cluster.psql("SELECT state FROM orders", database).stdout, "shipped\n")

    def test_only_the_public_names_can_be_seen(self):
        public = {"libpawl.so": r"pawl::(Client|Lease|Mutex|Guard|Election|LeaderObservation|to_text)\b",
                  "libpawl_postgres.so": r"pawl::Pg(Guard|Rows|Transaction)\b"}
        for library, expected in public.items():
            symbols = run("nm", "-DC", "--defined-only", self.lib / library).splitlines()
            names = [line.split(" ", 2)[2] for line in symbols if " T " in line]
            self.assertTrue(names)
            self.assertEqual([name for name in names if not re.match(expected, name)], [], library)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
