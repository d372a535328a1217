#!/usr/bin/python3
"""The job under test: writes two lines into a guarded table, with work in between. Start it with
`pawl run`.

    report.py DATABASE [SECONDS_OF_WORK]
"""
import os
import sqlite3
import sys
import time

db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.enable_load_extension(True)
db.load_extension(os.environ.get("PAWL_SQLITE", "/usr/lib/pawl/libpawl_sqlite.so"))
for line in ("first", "last"):
    db.execute("BEGIN IMMEDIATE")
    db.execute("SELECT pawl_use('report', ?)", (int(os.environ["PAWL_TOKEN"]),))
    db.execute("INSERT INTO report VALUES (?)", (line,))
    db.execute("COMMIT")
    if line == "first":
        time.sleep(float((sys.argv[2:] or ["0"])[0]))
