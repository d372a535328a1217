#!/usr/bin/python3
"""`pawl demo --guard mariadb`: the same demo in a scratch table of a user's database, which is as
it was afterwards."""


from pawltest.demo_case import DemoCase
from pawltest.mariadb import ServerCase, main, rows


class DemoTest(ServerCase, DemoCase):
    def setUp(self):
        ServerCase.setUp(self)
        DemoCase.setUp(self)

    def everything(self):
        names = (
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN "
            "(DATABASE(), 'pawl') ORDER BY 1, 2"
        )
        return rows(self.connect(), names), rows(self.connect(), "CALL pawl.status(NULL)")

    def test_demo_runs_in_mariadb(self):
        before = self.everything()
        self.assertEveryStep(
            self.demo_events("--guard", "mariadb", "--dsn", self.server.dsn(database=self.db))
        )
        self.assertEqual(self.everything(), before)


if __name__ == "__main__":
    main()
