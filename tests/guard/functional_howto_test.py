"""docs/how-to/guard-postgres.md: its SQL does what it says, from the first block to the last, as one person would type it."""

import re

import pg_cluster
from pg_cluster import ROOT

PAGE = ROOT / "docs/how-to/guard-postgres.md"
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1);
CREATE TABLE items (id int);
CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); INSERT INTO accounts VALUES (7);
CREATE TABLE lines (customer_id int, n int NOT NULL DEFAULT 0); INSERT INTO lines VALUES (1), (2);
"""


class HowTo(pg_cluster.ClusterCase):
    def test_every_block_runs_and_leaves_what_the_page_promises(self):
        blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        self.assertGreater(len(blocks), 8)
        self.cluster.psql(TABLES, self.db)
        self.cluster.psql("\n".join(blocks), self.db)
        self.assertEqual(self.sql("SELECT n FROM orders"), [(3,)])
        self.assertEqual(self.sql("SELECT n, pawl_token FROM accounts"), [(1, 35)])
        self.assertEqual(self.value("SELECT pawl.fence('orders')"), 36)
        self.assertEqual(self.sql("SELECT * FROM pawl.problems()"), [])

    def test_it_names_every_sqlstate_of_the_guard(self):
        states = set(re.findall(r"PW\d{3}", pg_cluster.GUARD.read_text(encoding="utf-8")))
        self.assertEqual(set(re.findall(r"^\| `(PW\d{3})`", PAGE.read_text(encoding="utf-8"), re.M)), states)


if __name__ == "__main__":
    pg_cluster.main()
