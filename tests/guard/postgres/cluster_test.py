"""The cluster that the guard's tests stand on."""

import unittest

from pawltest import postgres
from pawltest.postgres import Cluster, rows


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster({"track_commit_timestamp": "on"})
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def test_crash_keeps_committed_rows_only(self):
        self.cluster.psql("CREATE TABLE crash (n int); INSERT INTO crash VALUES (1)")
        open_one = self.cluster.connect()
        self.addCleanup(open_one.close)
        rows(open_one, "INSERT INTO crash VALUES (2)")
        self.cluster.crash()
        self.cluster.restart()
        self.assertEqual(self.cluster.psql("SELECT n FROM crash").stdout, "1\n")

    def test_session_has_the_requested_isolation_and_settings(self):
        for level in postgres.ISOLATIONS:
            session = self.cluster.connect(isolation=level)
            self.assertEqual(rows(session, "SHOW transaction_isolation"), [(level,)])
            self.assertEqual(rows(session, "SHOW track_commit_timestamp"), [("on",)])
            session.close()

    def test_error_in_psql_is_raised(self):
        with self.assertRaisesRegex(AssertionError, "22012"):
            self.cluster.psql("SELECT 1/0")


if __name__ == "__main__":
    postgres.main()
