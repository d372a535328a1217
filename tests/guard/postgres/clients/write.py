"""Writes a protected table as an application in Python would: BEGIN, pawl.use, UPDATE, COMMIT.
Prints one JSON line of what it met.

    python3 write.py PORT DATABASE TOKEN|none [VALUE]
"""

import json
import sys

import psycopg2

port, database, token = sys.argv[1:4]
value = sys.argv[4] if len(sys.argv) > 4 else "1"
connection = psycopg2.connect(
    host="127.0.0.1", port=port, dbname=database, user="app", application_name="python"
)
try:
    with connection, connection.cursor() as cursor:
        if token != "none":
            cursor.execute("SELECT pawl.use(%s, %s)", ("orders", int(token)))
        cursor.execute("UPDATE orders SET n = %s", (value,))
    met = {"wrote": True}
except psycopg2.Error as error:
    met = {
        "wrote": False,
        "code": error.pgcode,
        "detail": error.diag.message_detail,
        "message": error.diag.message_primary,
    }
connection.close()
print(json.dumps(met))
