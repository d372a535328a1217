#!/usr/bin/python3
"""docs/how-to/guard-mariadb.md: its SQL does what it says, from the first block to the last, as one
person would type it."""

import re

from pawltest import ROOT
from pawltest.mariadb import ServerCase, call, install_script, main, rows

PAGE = ROOT / "docs/how-to/guard-mariadb.md"
TABLES = """
CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0); INSERT INTO shop.orders (id) VALUES (1);
CREATE TABLE shop.items (id INT);
CREATE TABLE shop.accounts (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0); INSERT INTO shop.accounts (id) VALUES (7);
CREATE TABLE shop.`lines` (customer_id INT, n INT NOT NULL DEFAULT 0);
"""


class HowToTest(ServerCase):
    def test_every_block_of_the_page_works(self):
        blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        self.assertGreater(len(blocks), 7)
        # As the page says; any token that pawld might grant will do.
        done = self.server.client(
            TABLES + "\n".join(blocks), options=["--init-command=SET @token = 1041"]
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.value("SELECT n FROM shop.orders"), 5)
        self.assertEqual(self.value("SELECT token FROM shop.runs"), 1041)
        self.assertEqual(self.value("SELECT n FROM shop.accounts"), 2)
        self.assertEqual(self.value("SELECT COUNT(*) FROM shop.`lines`"), 2)
        self.assertEqual(self.value("SELECT pawl.fence('shop.lines:2')"), 1041)
        self.assertEqual(call(self.connect(), "problems"), [])
        self.assertEqual(
            [
                kind
                for (kind,) in rows(
                    self.connect(), "SELECT what FROM pawl.audit WHERE guard = 'mail' ORDER BY id"
                )
            ],
            ["create", "compact"],
        )

    def test_page_names_every_sqlstate(self):
        states = set(re.findall(r"PW\d{3}", install_script()))
        self.assertEqual(
            set(re.findall(r"^\| `(PW\d{3})`", PAGE.read_text(encoding="utf-8"), re.M)), states
        )

    def test_page_has_the_arguments_of_procedures_in_their_order(self):
        page = PAGE.read_text(encoding="utf-8").split("## Arguments, in order")[1].split("\n## ")[0]
        table = re.findall(r"^\| `([a-z_]+)` \| (.*?) \| .*? \| `CALL pawl\.(\w+)\(", page, re.M)
        self.assertGreater(len(table), 8)
        for name, arguments, called in table:
            self.assertEqual(name, called)
            there = rows(
                self.connect(),
                "SELECT parameter_name FROM information_schema.parameters WHERE "
                "specific_schema = 'pawl' AND specific_name = %s ORDER BY ordinal_position",
                name,
            )
            self.assertEqual(arguments.split(", "), [each for (each,) in there], name)


if __name__ == "__main__":
    main()
