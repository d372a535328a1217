#!/usr/bin/python3
"""The MariaDB guard as the conformance kit asks it: `pawl guard conformance --exec 'kit_subject.py FORM PORT'`.

Forms: admit and keyed (writers ask by themselves), table and by (a trigger asks). Effects are told in the order of their inserts:
a smaller token's insert after a greater one's is what must not be. Guards are left behind: use a server of its own.
"""

import itertools
import json
import queue
import sys
import threading

import pymysql

from maria_cluster import call, rows, state

ANSWERS = {"PW001": "missing", "PW002": "stale", "PW003": "malformed", "PW004": "unguarded", "PW005": "ahead", "PW006": "isolation",
           "PW007": "busy", "PW008": "replayed", "40001": "again", "1205": "again"}
LEVELS = {"default": "READ COMMITTED", "read_committed": "READ COMMITTED", "repeatable_read": "REPEATABLE READ", "serializable": "SERIALIZABLE"}


class Session:
    def __init__(self, connection):
        self.connection = connection
        self.token = None


class Subject:
    def __init__(self, form, port):
        self.watched = form in ("table", "by")
        self.keyed = form in ("keyed", "by")
        self.form = form
        self.port = port
        self.numbers = itertools.count(1)
        self.sessions = {}
        self.admin = self.connect()
        rows(self.admin, "CREATE OR REPLACE DATABASE kit")
        rows(self.admin, "CREATE TABLE kit.effects (id BIGINT AUTO_INCREMENT PRIMARY KEY, resource VARCHAR(600), token BIGINT, value TEXT)")

    def connect(self):
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", autocommit=True, charset="utf8mb4")

    def table(self, resource):
        return f"kit.`{resource.partition(':')[0]}`" if self.watched else "kit.effects"

    def key(self, resource):
        return resource.partition(":")[2] if self.keyed and self.watched else resource

    # -- the kit's questions

    def hello(self, _):
        can = ["transactions", "read_committed", "repeatable_read", "serializable", "concurrency", "operation_set", "several", "unguarded", "modes",
               "canary", "emergency", "max_step", "counts", "compact", "lost_commit", "vanish", "text_tokens"]
        can += ["tokenless", "require_token", "remove"] if self.watched else []
        can += ["equal_once", "equal_refuse"] if self.form != "by" else []
        return {"name": f"mariadb {self.form}", "abilities": can}

    def fresh(self, request):
        made = []
        while len(made) < request["count"]:
            guard = f"kit_{self.form}_{next(self.numbers)}"
            if self.watched:
                rows(self.admin, f"CREATE TABLE kit.{guard} (id BIGINT AUTO_INCREMENT PRIMARY KEY, resource VARCHAR(600), token BIGINT, value TEXT)")
                call(self.admin, "protect", f"kit.{guard}", guard, "resource" if self.keyed else None, "observe")
            else:
                call(self.admin, "create_guard", guard, self.keyed)
            self.policy({"resource": guard, "policy": request["policy"]})
            made += [f"{guard}:k{i}" for i in range(1, request["count"] + 1)] if self.keyed else [guard]
        return {"resources": made}

    def open(self, request):
        self.sessions[request["session"]] = Session(self.connect())
        return {"answer": "done"}

    def close(self, request):
        self.sessions.pop(request["session"]).connection.close()
        return {"answer": "done"}

    def begin(self, request):
        session = self.sessions[request["session"]]
        session.token = None
        rows(session.connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {LEVELS[request['isolation'].replace('-', '_')]}")
        rows(session.connection, "START TRANSACTION")
        return {"answer": "done"}

    def admit(self, request):
        session = self.sessions[request["session"]]
        session.token = request.get("token")
        if session.token is None:
            return {"answer": "missing", "let_through": True}
        resources = request["resources"]
        verb = "use" if self.watched else "admit"
        if len(resources) > 1:
            ((verdict,),) = call(session.connection, "use_all", json.dumps(resources), session.token)
        elif request.get("operation") is not None:
            ((verdict,),) = call(session.connection, f"{verb}_op", resources[0], session.token, request["operation"])
        else:
            ((verdict,),) = call(session.connection, verb, resources[0], session.token)
        return {"answer": verdict, "let_through": verdict not in ("admitted", "replayed")}

    def apply(self, request):
        session = self.sessions[request["session"]]
        rows(session.connection, f"INSERT INTO {self.table(request['resource'])} (resource, token, value) VALUES (%s, %s, %s)",
             self.key(request["resource"]), session.token if session.token and session.token.isdigit() else None, request["value"])
        return {"answer": "done"}

    def commit(self, request):
        call(self.sessions[request["session"]].connection, "finish")
        return {"answer": "done"}

    def rollback(self, request):
        call(self.sessions[request["session"]].connection, "abandon")
        return {"answer": "done"}

    def lose_commit(self, request):
        connection = self.sessions[request["session"]].connection
        connection._execute_command(pymysql.constants.COMMAND.COM_QUERY, "COMMIT")  # Sent, and never answered.
        connection._force_close()
        return {"answer": "done"}

    def vanish(self, request):
        self.sessions[request["session"]].connection._force_close()
        return {"answer": "done"}

    def advance(self, request):
        ((before,),) = call(self.sessions[request["session"]].connection, "advance", request["resource"], request["token"], -(-request["wait_ms"] // 1000))
        return {"answer": "done", "before": before}

    def check(self, request):
        ((verdict, most, mode, _),) = call(self.sessions[request["session"]].connection, "check", request["resource"], request["token"])
        return {"answer": "unguarded" if verdict == "unknown" else verdict, "max": most,
                "let_through": verdict not in ("admitted", "replayed") and mode in ("observe", "shadow")}

    def remove(self, request):
        self.begin({**request, "isolation": "default"})
        try:
            self.admit({**request, "resources": [request["resource"]], "token": str(request["token"])})
            rows(self.sessions[request["session"]].connection, f"DELETE FROM {self.table(request['resource'])} WHERE resource = %s", self.key(request["resource"]))
        except pymysql.MySQLError:
            self.rollback(request)
            raise
        return self.commit(request)

    def policy(self, request):
        guard, wanted = request["resource"].partition(":")[0], request["policy"]
        call(self.admin, "set_policy", guard, wanted["require_token"], None if self.form == "by" else wanted["equal"], wanted["max_step"], "kit")
        call(self.admin, "set_mode", guard, wanted["mode"], wanted["percent"] if wanted["mode"] == "canary" else None, "kit")
        return {"answer": "done"}

    def emergency(self, request):
        call(self.admin, "emergency", request["resource"].partition(":")[0], "kit")
        return {"answer": "done"}

    def compact(self, request):
        call(self.admin, "compact", request["resource"].partition(":")[0], request["below"])
        return {"answer": "done"}

    def fence(self, request):
        return {"fence": rows(self.admin, "SELECT pawl.fence(%s)", request["resource"])[0][0]}

    def effects(self, request):
        found = rows(self.admin, f"SELECT token, value FROM {self.table(request['resource'])} WHERE resource = %s ORDER BY id", self.key(request["resource"]))
        return {"effects": [{"token": token, "value": value} for token, value in found]}

    def counts(self, request):
        with self.admin.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("CALL pawl.status(%s)", (request["resource"].partition(":")[0],))
            row = cursor.fetchone()
        return {name: int(row[name]) for name in ("replayed", "stale", "missing", "ahead", "would_refuse")}

    def answer(self, request):
        try:
            return getattr(self, request["do"])(request)
        except pymysql.MySQLError as error:
            answer = ANSWERS.get(state(error))
            return {"answer": answer or "broken", "detail": str(error)}
        except Exception as error:  # pylint: disable=broad-except
            return {"error": f"{request['do']}: {error!r}"}


def main():
    subject = Subject(sys.argv[1], int(sys.argv[2]))
    out = threading.Lock()
    workers = {}

    def work(requests):
        while True:
            request = requests.get()
            answer = subject.answer(request)
            with out:
                print(json.dumps({"id": request["id"], **answer}), flush=True)

    for line in sys.stdin:
        request = json.loads(line)
        session = request.get("session", "")
        if session not in workers:
            workers[session] = queue.SimpleQueue()
            threading.Thread(target=work, args=(workers[session],), daemon=True).start()
        workers[session].put(request)


if __name__ == "__main__":
    main()
