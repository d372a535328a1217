"""What the functional tests of the PostgreSQL guard share: a table `orders` to protect, and
one-line writes under a token."""

from pawltest import postgres
from pawltest.postgres import rows

ORDERS = """
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL DEFAULT 1, n int NOT NULL DEFAULT 0);
INSERT INTO orders SELECT i, i % 3, 0 FROM generate_series(1, 9) i;
"""


class OrdersCase(postgres.ClusterCase):
    """A database with the guard and an unprotected table `orders` of nine rows: for each test a
    copy of one that was made once."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.create_database("fresh")
        cls.cluster.psql(ORDERS, "fresh")

    def setUp(self):
        self._log_start = len(self.cluster.log_text())
        self.db = f"t{next(self._numbers)}"
        self.cluster.psql(f"CREATE DATABASE {self.db} TEMPLATE fresh")
        self.admin = self.connect(autocommit=True)

    def protect(self, mode="enforce", require_token=True, table="orders", **how):
        """Puts the table under guard; returns the guard's name."""
        words = "".join(f", {name} => %s" for name in how)
        guard = self.value(
            f"SELECT pawl.protect(%s{words}, mode => %s)", table, *how.values(), mode, on=self.admin
        )
        if require_token:
            self.sql("SELECT pawl.set_policy(%s, require_token => true)", guard, on=self.admin)
        return guard

    def under(self, token, *statements, resource="orders", op=None, isolation=None, **session):
        """Runs the statements in one transaction after use(resource, token[, op]); returns use()'s
        verdict."""
        with self.connect(isolation=isolation, **session) as db:
            number = () if op is None else (op,)
            ((verdict,),) = rows(
                db, f"SELECT pawl.use(%s, %s{', %s' * len(number)})", resource, token, *number
            )
            for statement in statements:
                rows(db, statement)
        return verdict

    def carrying(self, token, *statements, setting="pawl.token.orders", **session):
        """Runs the statements in one transaction that carries the token in a setting."""
        with self.connect(**session) as db:
            rows(db, f"SET LOCAL {setting} = '{token}'")
            for statement in statements:
                rows(db, statement)

    def write(self, sql="UPDATE orders SET n = n + 1 WHERE id = 1", **session):
        """One statement in autocommit, without a token."""
        rows(self.connect(autocommit=True, **session), sql)

    def fence(self, resource="orders"):
        return self.value("SELECT pawl.fence(%s)", resource, on=self.admin)

    def status(self, guard="orders"):
        """The guard's line in pawl.status as a dict."""
        with self.admin.cursor() as cursor:
            cursor.execute("SELECT * FROM pawl.status WHERE guard = %s", (guard,))
            (line,) = cursor.fetchall()
            return dict(zip([column.name for column in cursor.description], line))

    def n(self, row=1):
        return self.value("SELECT n FROM orders WHERE id = %s", row, on=self.admin)

    def problems(self):
        return self.sql(
            "SELECT severity, guard, object, problem FROM pawl.problems()", on=self.admin
        )
