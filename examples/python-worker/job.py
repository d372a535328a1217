#!/usr/bin/python3
"""job.py MONTH: writes the invoices of one month, once. Start it with `pawl run`."""
import os
import sys

import psycopg2

month, token = sys.argv[1], int(os.environ["PAWL_TOKEN"])
db = psycopg2.connect(os.environ["PAWL_GUARD_DSN"])
with db, db.cursor() as cursor:  # One transaction: COMMIT at the end, ROLLBACK on an exception.
    cursor.execute("SELECT pawl.use('invoices', %s)", (token,))
    cursor.execute("INSERT INTO runs (month) VALUES (%s) ON CONFLICT DO NOTHING", (month,))
    if cursor.rowcount == 1:  # Otherwise an earlier run has done this month.
        cursor.execute(
            "INSERT INTO invoices (customer, month) SELECT id, %s FROM customers", (month,)
        )
