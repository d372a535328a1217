"""The forms of guard that race against each other: textbook ones, and Pawl's.

A form has: `schema`, run once; begin(session, dice, resource, token), the check; write(session,
resource, token, writer), the effect; advance(session, resource, token). A textbook form refuses
with the same SQLSTATE as Pawl, so that one judge serves all. """

from pawltest.postgres import rows

WRITE = (
    "INSERT INTO written SELECT %s, %s, count(*), %s FROM written WHERE resource = %s AND token < "
    "%s"
)

FENCE = """
CREATE TABLE fence (resource text PRIMARY KEY, max bigint NOT NULL);
INSERT INTO fence VALUES ('r', 0);
CREATE FUNCTION stale(mine bigint, newest bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'stale token %', mine USING ERRCODE = 'PW002', DETAIL = format('token=%s max=%s', mine, newest);
END $$;
"""


class Form:
    schema = ""
    resources = ("r",)

    @staticmethod
    def names(resource):
        """The resources that one attempt touches."""
        return [resource]

    def begin(self, session, dice, resource, token):
        pass

    def write(self, session, resource, token, writer):
        rows(session, WRITE, resource, token, writer, resource, token)

    def advance(self, session, resource, token):
        pass


class Textbook(Form):
    """Reads the fence, refuses or raises it, and hopes. Subclasses choose how they read."""

    schema = FENCE
    read = "SELECT max FROM fence WHERE resource = %s"

    def newest(self, session, resource, token):
        return rows(session, self.read, resource)[0][0]

    def begin(self, session, dice, resource, token):
        newest = self.newest(session, resource, token)
        if newest > token:
            rows(session, "SELECT stale(%s, %s)", token, newest)
        if newest < token:
            self.advance(session, resource, token)

    def advance(self, session, resource, token):
        # A fence that never goes back is the least a textbook would do.
        rows(
            session, "UPDATE fence SET max = greatest(max, %s) WHERE resource = %s", token, resource
        )


class PlainRead(Textbook):
    """SELECT, compare, write: most snippets in print."""


class KeyShare(Textbook):
    """FOR KEY SHARE does not conflict with an UPDATE of a column that is no key."""

    read = "SELECT max FROM fence WHERE resource = %s FOR KEY SHARE"


class ForUpdate(Textbook):
    """Safe, and serialises all writers of a resource: what the guard is measured against."""

    read = "SELECT max FROM fence WHERE resource = %s FOR UPDATE"


class AdvisoryPlainRead(Textbook):
    """The right locks around an ordinary read, which in REPEATABLE READ sees the fence of long
    ago."""

    def begin(self, session, dice, resource, token):
        rows(session, "SELECT pg_advisory_xact_lock_shared(7)")
        newest = self.newest(session, resource, token)
        if newest > token:
            rows(session, "SELECT stale(%s, %s)", token, newest)

    def advance(self, session, resource, token):
        rows(session, "SELECT pg_advisory_xact_lock(7)")
        super().advance(session, resource, token)


class LockingSubselect(Textbook):
    """The outer WHERE is pushed into the sub-select, so that only a row that refuses is ever
    locked."""

    def newest(self, session, resource, token):
        found = rows(
            session,
            "SELECT l.max FROM (SELECT max FROM fence WHERE resource = %s FOR SHARE) l WHERE "
            "l.max > %s",
            resource,
            token,
        )
        return found[0][0] if found else token

    def begin(self, session, dice, resource, token):
        super().begin(session, dice, resource, token)
        if dice.random() < 0.2:
            self.advance(session, resource, token)


class SubqueryInTheWrite(Textbook):
    """Check and write in one statement: still two steps, the read and the COMMIT."""

    def begin(self, session, dice, resource, token):
        if dice.random() < 0.2:
            self.advance(session, resource, token)

    def write(self, session, resource, token, writer):
        if not rows(
            session,
            "INSERT INTO written SELECT %s, %s, NULL, %s WHERE (SELECT max FROM fence WHERE "
            "resource = %s) <= %s "
            "RETURNING token",
            resource,
            token,
            writer,
            resource,
            token,
        ):
            rows(session, "SELECT stale(%s, %s)", token, token + 1)


class Pawl(Form):
    """A writer calls pawl.use() first, as its own statement."""

    def begin(self, session, dice, resource, token):
        rows(session, "SELECT pawl.use(%s, %s)", resource, token)

    def advance(self, session, resource, token):
        rows(session, "SELECT pawl.advance(%s, %s, '30 s')", resource, token)


class PawlTable(Pawl):
    """A static guard over the table: pawl.protect('written', 'r')."""

    schema = """
SELECT pawl.protect('written', 'r', mode => 'enforce');
SELECT pawl.set_policy('r', require_token => true);
"""


class PawlSetting(PawlTable):
    """No call at all: the token is a setting of the transaction, and the trigger is the only check.
    The statement that it judges has its snapshot already, and must not be let in with one that is
    too old."""

    def begin(self, session, dice, resource, token):
        rows(session, "SELECT set_config('pawl.token.r', %s, true)", str(token))


class PawlAdmit(Pawl):
    """No trigger: the writer calls pawl.admit() and then writes what nothing watches."""

    schema = "SELECT pawl.create_guard('r'); SELECT pawl.set_mode('r', 'enforce');"

    def begin(self, session, dice, resource, token):
        rows(session, "SELECT pawl.admit(%s, %s)", resource, token)


class PawlKeyedAdmit(PawlAdmit):
    """One fence per key, of a guard without a table."""

    resources = ("k:1", "k:2", "k:a b")
    schema = "SELECT pawl.create_guard('k', keyed => true); SELECT pawl.set_mode('k', 'enforce');"


class PawlBy(Pawl):
    """Several rows share a resource, named by a column: pawl.protect(by =>)."""

    resources = ("written:1", "written:2", "written:3")
    schema = """
SELECT pawl.protect('written', by => 'split_part(resource, '':'', 2)', mode => 'enforce');
SELECT pawl.set_policy('written', require_token => true);
"""


class PawlKey(Pawl):
    """The row is the resource: pawl.protect(key =>). Every write is an upsert of its row, some are
    DELETEs; a journal beside it has what was committed."""

    resources = ("item:1", "item:2")
    schema = """
CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
SELECT pawl.protect('item', key => 'id', mode => 'enforce');
SELECT pawl.set_policy('item', require_token => true);
"""

    def write(self, session, resource, token, writer):
        key = int(resource.partition(":")[2])
        if (token + writer) % 3 == 0:
            rows(session, "DELETE FROM item WHERE id = %s", key)
        else:
            rows(
                session,
                "INSERT INTO item (id) VALUES (%s) ON CONFLICT (id) DO UPDATE SET n = item.n + 1",
                key,
            )
        super().write(session, resource, token, writer)


class PawlSeveral(Pawl):
    """Several resources under one token, of two kinds: pawl.use(text[], token). Attempts name them
    in any order."""

    resources = ("a", "b", "k:1", "a b", "b a", "a k:1 b", "k:2 k:1")
    schema = """
SELECT pawl.create_guard('a'), pawl.create_guard('b'), pawl.create_guard('k', keyed => true);
SELECT pawl.set_mode('a', 'enforce'), pawl.set_mode('b', 'enforce'), pawl.set_mode('k', 'enforce');
"""

    @staticmethod
    def names(resource):
        return resource.split()

    def begin(self, session, dice, resource, token):
        rows(session, "SELECT pawl.use(%s, %s)", self.names(resource), token)

    def write(self, session, resource, token, writer):
        for name in self.names(resource):
            super().write(session, name, token, writer)

    def advance(self, session, resource, token):
        for name in sorted(self.names(resource)):
            super().advance(session, name, token)
