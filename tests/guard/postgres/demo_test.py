#!/usr/bin/python3
"""`pawl demo --guard postgres`: the same demo in a scratch table of a user's database, which is as
it was afterwards."""

import json
import subprocess

from pawltest.demo_case import PAWL, DemoCase
from pawltest.postgres import DISARM_SCRATCH_TABLES, ClusterCase, main


class DemoTest(ClusterCase, DemoCase):
    def setUp(self):
        ClusterCase.setUp(self)
        DemoCase.setUp(self)

    def everything(self):
        guards = json.loads(
            subprocess.run(
                [PAWL, "guard", "status", "postgres", "--json", "--dsn", self.cluster.dsn(self.db)],
                check=True,
                capture_output=True,
                timeout=60,
            ).stdout
        )["guards"]
        return guards, self.sql(
            "SELECT relname FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_' ORDER "
            "BY 1"
        )

    def test_demo_runs_in_postgres(self):
        before = self.everything()
        events = self.demo_events("--guard", "postgres", "--dsn", self.cluster.dsn(self.db))
        self.assertEveryStep(events)
        self.assertEqual(self.everything(), before)

    def test_demo_fails_where_the_table_does_not_refuse_the_write(self):
        self.sql(DISARM_SCRATCH_TABLES)
        demo = self.start("--fast", "--guard", "postgres", "--dsn", self.cluster.dsn(self.db))
        out, errors = demo.communicate(timeout=120)
        self.assertEqual(demo.returncode, 121, out + errors)
        self.assertRegex(" ".join(out.split()), r"SET LOCAL pawl\.token\.\S+: it LANDS")
        self.assertIn("without any token: it LANDS", " ".join(out.split()))
        self.assertIn("pawl guard check postgres", errors)

    def test_installs_nothing_unasked(self):
        bare = self.cluster.create_database(f"{self.db}_bare", guard=False)
        demo = self.start("--guard", "postgres", "--dsn", self.cluster.dsn(bare))
        _, errors = demo.communicate(timeout=60)
        self.assertEqual(demo.returncode, 64)
        self.assertIn("pawl guard install postgres", errors)


if __name__ == "__main__":
    main()
