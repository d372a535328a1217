#!/usr/bin/python3
"""`pawl demo --guard mariadb`: the same story in a scratch table of a user's database, which is as
it was afterwards."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from demo_case import DemoCase  # noqa: E402
from maria_cluster import ServerCase, main, rows  # noqa: E402


class DemoTest(ServerCase, DemoCase):
    def setUp(self):
        ServerCase.setUp(self)
        DemoCase.setUp(self)

    def everything(self):
        names = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN (DATABASE(), 'pawl') ORDER BY 1, 2"
        return rows(self.connect(), names), rows(self.connect(), "CALL pawl.status(NULL)")

    def test_the_story_in_mariadb(self):
        before = self.everything()
        self.assertExpected(
            self.events("--guard", "mariadb", "--dsn", self.server.dsn(database=self.db))
        )
        self.assertEqual(self.everything(), before)


if __name__ == "__main__":
    main()
