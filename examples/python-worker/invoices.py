#!/usr/bin/python3
"""Writes the invoices of one month, once: the lock, the guard and PostgreSQL in one process.

    PAWL_GUARD_DSN="dbname=shop" invoices.py MONTH

Exit codes: 0 written, now or by an earlier run; 75 another holder has the lock; 121 a newer holder
has taken over. """
import contextlib
import os
import sys

import psycopg2

from pawl_lease import NotAcquired, acquire

DSN = os.environ.get("PAWL_GUARD_DSN")
# Serialization failure, deadlock: rolled back, the same transaction may succeed now.
RETRY = ("40001", "40P01")


def fence(db, token):
    """Once, before the first read: no transaction with a smaller token is open or can begin after
    this."""
    with db, db.cursor() as cursor:
        cursor.execute("SELECT pawl.advance('invoices', %s)", (token,))


def write(db, token, month):
    """One transaction: COMMIT at the end, ROLLBACK on an exception."""
    with db, db.cursor() as cursor:
        cursor.execute("SELECT pawl.use('invoices', %s)", (token,))
        cursor.execute("INSERT INTO runs (month) VALUES (%s) ON CONFLICT DO NOTHING", (month,))
        if cursor.rowcount == 1:  # Otherwise an earlier run has done this month.
            cursor.execute(
                "INSERT INTO invoices (customer, month) SELECT id, %s FROM customers", (month,)
            )


def transact(lease, work, *values, tries=5):
    """Runs work(db, token, …), and again after a conflict or a lost connection; the row in `runs`
    keeps it once."""
    for attempt in range(1, tries + 1):
        lease.check()
        with contextlib.closing(psycopg2.connect(DSN)) as db:
            try:
                return work(db, lease.token, *values)
            except psycopg2.Error as error:
                if attempt == tries or (error.pgcode not in RETRY and not db.closed):
                    raise


def main(month):
    try:
        lease = acquire("billing/nightly")
    except NotAcquired as error:
        print(error, file=sys.stderr)
        return 75
    with lease:
        try:
            transact(lease, fence)
            transact(lease, write, month)
        except psycopg2.Error as error:
            if error.pgcode != "PW002":
                raise
            print(error, file=sys.stderr)
            return 121
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or DSN is None:
        sys.exit('usage: PAWL_GUARD_DSN="dbname=shop" invoices.py MONTH')
    sys.exit(main(sys.argv[1]))
