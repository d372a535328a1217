#!/usr/bin/python3
"""HTTP on the real binary: every route, every problem, and what a request may do to nobody else."""

import datetime
import email.utils
import json
import re
import socket
import urllib.parse

import jsonschema

from pawltest import ROOT, harness
from pawltest.harness import request_id, wait_until
from pawltest.web import JSON, PROBLEM, Events, Web, read_all


class HttpCase(harness.PawldCase):
    def setUp(self):
        super().setUp()
        self.web = Web(self.pawld.http_port)

    @classmethod
    def documented_codes(cls):
        if not hasattr(cls, "_codes"):
            schemas = Web(cls.pawld.http_port).get("/v1/openapi.json").json["components"]["schemas"]
            cls._codes = schemas["Problem"]["properties"]["code"]["enum"]
        return cls._codes

    def path(self, lock, suffix=""):
        return "/v1/locks/" + urllib.parse.quote(lock, safe="") + suffix

    def granted(self, reply):
        self.assertEqual(reply.status, 201, reply)
        return reply.json

    def assertProblem(self, reply, status, code, *parts):
        self.assertEqual((reply.status, reply.type), (status, PROBLEM), reply)
        problem = reply.json
        self.assertEqual((problem["status"], problem["code"]), (status, code), reply)
        self.assertEqual(problem["type"], "urn:pawl:problem:" + code)
        self.assertIsInstance(problem["retryable"], bool)
        self.assertIn(
            code,
            self.documented_codes(),
            "the OpenAPI document and the reference page list every code",
        )
        for part in parts:
            self.assertIn(part, problem["detail"])
        return problem

    def assertHttpWords(self, problem):
        """No option or verb of RESP, which clients of HTTP do not know."""
        self.assertNotRegex(
            problem["detail"],
            r"\b(AND|TTL|WAIT|SHARED|LIMIT|OWNER|REQUEST|DELAY|MAXHOLD|META|COUNT|CURSOR|PREFIX|FROM"
            r"|AUTH|[A-Z]{4,})\b",
        )


class RoutesTest(HttpCase):
    """What the OpenAPI document says is what there is."""

    def exercises(self):
        """How each route is called: (method, path) -> a reply. A route without one fails the test
        below."""
        lock, other = self.lock("/a b"), self.lock("/é")
        grant = self.granted(self.web.acquire(lock))
        held = self.granted(self.web.acquire(other, owner="me"))
        self.web.with_lease("release", self.granted(self.web.acquire(lock + "x"))["lease"])
        return {
            ("post", "/v1/acquire"): lambda: self.web.acquire(self.lock()),
            ("post", "/v1/renew"): lambda: self.web.with_lease("renew", grant["lease"]),
            ("post", "/v1/release"): lambda: self.web.with_lease("release", grant["lease"]),
            ("get", "/v1/locks"): lambda: self.web.get("/v1/locks?limit=1000"),
            ("get", "/v1/locks/{name}"): lambda: self.web.get(self.path(other)),
            ("get", "/v1/locks/{name}/history"): lambda: self.web.get(
                self.path(lock + "x", "/history?limit=5")
            ),
            ("post", "/v1/locks/{name}/ask"): lambda: self.web.post(
                self.path(other, "/ask"), {"owner": "me", "reason": "test"}
            ),
            ("post", "/v1/locks/{name}/break"): lambda: self.web.post(
                self.path(other, "/break"), {"token": held["token"], "reason": "test"}
            ),
            ("get", "/v1/events"): lambda: self.first_event(other),
            ("get", "/v1/status"): lambda: self.web.get("/v1/status"),
            ("get", "/metrics"): lambda: self.web.get("/metrics"),
            ("get", "/v1/openapi.json"): lambda: self.web.get("/v1/openapi.json"),
            ("get", "/healthz"): lambda: self.web.get("/healthz"),
            ("get", "/readyz"): lambda: self.web.get("/readyz"),
            ("get", "/"): lambda: self.web.get("/"),
        }

    def first_event(self, prefix):
        events = Events(
            self.pawld.http_port, "/v1/events?prefix=" + urllib.parse.quote(prefix)
        ).begun()
        self.addCleanup(events.close)
        self.granted(self.web.acquire(prefix + "/new"))
        reply = type("Reply", (), {})()
        reply.status, reply.type = events.response.status, events.response.getheader("Content-Type")
        reply.json = events.next()[2]
        return reply

    def test_every_documented_route_answers_as_documented(self):
        document = self.web.get("/v1/openapi.json").json
        routes = {
            (method, path) for path, methods in document["paths"].items() for method in methods
        }
        exercises = self.exercises()
        self.assertEqual(routes, set(exercises))
        for (method, path), call in exercises.items():
            with self.subTest(route=f"{method} {path}"):
                reply = call()
                responses = document["paths"][path][method]["responses"]
                self.assertIn(str(reply.status), responses, reply)
                self.assertLess(reply.status, 300, reply)
                content = responses[str(reply.status)].get("content")
                if content is None:
                    self.assertEqual(reply.body, b"")
                    continue
                self.assertIn(reply.type, content)
                schema = content[reply.type]["schema"]
                if "$ref" in schema:
                    self.validate(document, schema, reply.json)

    def validate(self, document, schema, value):
        """Also holds the document to name every member there is."""
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(
            value
        )
        name = schema["$ref"].rpartition("/")[2]
        described = document["components"]["schemas"][name].get("properties")
        if described:
            self.assertEqual(set(value) - set(described), set(), name)

    def test_document_is_valid_openapi(self):
        document = self.web.get("/v1/openapi.json").json
        self.assertRegex(document["openapi"], r"^3\.1\.\d+$")
        self.assertLessEqual({"title", "version"}, set(document["info"]))
        schemas = document["components"]["schemas"]
        for name, schema in schemas.items():
            with self.subTest(schema=name):
                jsonschema.Draft202012Validator.check_schema(schema)
        named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
        self.assertEqual(
            named, set(schemas), "every shape is used, and every one that is used is there"
        )
        ids = []
        for path, methods in document["paths"].items():
            self.assertTrue(path.startswith("/"), path)
            for method, operation in methods.items():
                with self.subTest(route=f"{method} {path}"):
                    ids.append(operation["operationId"])
                    parameters = operation.get("parameters", [])
                    self.assertEqual(
                        {p["name"] for p in parameters if p["in"] == "path"},
                        set(re.findall(r"{(\w+)}", path)),
                    )
                    for parameter in parameters:
                        self.assertLessEqual(
                            {"name", "in", "required", "schema", "description"}, set(parameter)
                        )
                        self.assertTrue(parameter["required"] or parameter["in"] != "path")
                    self.assertIn("default", operation["responses"])
                    explicit = {"400", "403", "503"} | (
                        set() if operation.get("security") == [] else {"401"}
                    )
                    self.assertLessEqual(explicit, set(operation["responses"]))
                    for status, response in operation["responses"].items():
                        if "$ref" in response:
                            response = document["components"]["responses"][
                                response["$ref"].rpartition("/")[2]
                            ]
                        self.assertTrue(response["description"], status)
                    self.assertEqual("requestBody" in operation and method == "get", False)
        self.assertEqual(len(ids), len(set(ids)))

    def test_enumerations_are_documented(self):
        schemas = self.web.get("/v1/openapi.json").json["components"]["schemas"]
        ends = {"released", "expired", "broken", "max_hold"}
        self.assertEqual(
            (set(schemas["How"]["enum"]), set(schemas["HowOrUnknown"]["enum"])),
            (ends, ends | {"unknown"}),
        )
        self.assertIn("cut", schemas["Event"]["properties"]["event"]["enum"])
        self.assertIn("active", schemas["Status"]["properties"]["role"]["enum"])
        self.assertEqual(schemas["Holder"]["properties"]["breaking"]["type"], "boolean")
        self.assertEqual(
            (schemas["LockName"]["minLength"], schemas["LockName"]["maxLength"]), (1, 512)
        )
        codes = schemas["Problem"]["properties"]["code"]["enum"]
        self.assertEqual(len(codes), len(set(codes)))
        page = (ROOT / "docs/reference/http.md").read_text()
        for code in codes:
            self.assertIn(f"`{code}`", page)

    def test_every_answer_has_a_date(self):
        before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        for path in ("/healthz", "/v1/status", "/nope", "/v1/events"):
            date = email.utils.parsedate_to_datetime(self.web.call("HEAD", path).headers["date"])
            self.assertTrue(before <= date <= datetime.datetime.now(datetime.timezone.utc), path)

    def test_every_documented_member_is_accepted(self):
        schemas = self.web.get("/v1/openapi.json").json["components"]["schemas"]
        body = {
            "locks": [self.lock()],
            "ttl_ms": 60000,
            "wait_ms": 1000,
            "owner": "me@host:1",
            "shared": False,
            "limit": 3,
            "delay_ms": 10,
            "max_hold_ms": 120000,
            "meta": {"key": "value"},
        }
        self.assertEqual(set(body), set(schemas["AcquireRequest"]["properties"]))
        grant = self.granted(self.web.post("/v1/acquire", body, {"Idempotency-Key": request_id()}))
        self.assertEqual(grant["slot"], 0)
        holder = self.web.get(self.path(body["locks"][0])).json["holders"][0]
        self.assertEqual(
            (holder["owner"], holder["mode"], holder["limit"], holder["meta"]),
            ("me@host:1", "limit", 3, {"key": "value"}),
        )

    def test_wrong_method_is_405_with_allow(self):
        for path, allowed in (
            ("/v1/acquire", "POST"),
            ("/v1/status", "GET"),
            ("/v1/locks/a/break", "POST"),
        ):
            for method in {"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} - {allowed}:
                reply = self.web.call(method, path)
                self.assertProblem(reply, 405, "wrong_method")
                self.assertEqual(reply.headers["allow"], allowed)
                self.assertFalse(
                    [name for name in reply.headers if name.startswith("access-control")]
                )

    def test_unknown_path_is_404(self):
        for path in ("/nope", "/v1/locks/", "/v1", "/v1/acquire/"):
            self.assertProblem(self.web.get(path), 404, "unknown_route")

    def test_head_is_get_without_a_body(self):
        reply = self.web.call("HEAD", "/healthz")
        self.assertEqual(
            (reply.status, reply.body, int(reply.headers["content-length"])),
            (200, b"", len(b'{"status":"ok"}\n')),
        )


class LeasesTest(HttpCase):
    def test_acquire_renew_and_release(self):
        lock = self.lock()
        grant = self.granted(self.web.acquire(lock, owner="me"))
        self.assertRegex(grant["lease"], harness.LEASE)
        self.assertEqual(
            (grant["ttl_ms"], grant["waited_ms"], grant["floor"], grant["slot"]),
            (60000, 0, grant["token"], None),
        )
        renewed = self.web.with_lease("renew", grant["lease"])
        self.assertEqual(renewed.status, 200)
        self.assertEqual(renewed.json, {"expires_in_ms": 60000, "release_wanted": None})
        # Hard case 7: a retry succeeds as well, and learns that it was over before.
        for first in (True, False):
            self.assertReleased(grant["lease"], first, "released")
        self.assertProblem(self.web.with_lease("renew", grant["lease"]), 410, "lost", "released")
        again = self.granted(self.web.acquire(lock))
        self.assertGreater(again["token"], grant["token"])

    def assertReleased(self, lease, released, how):
        reply = self.web.with_lease("release", lease)
        self.assertEqual((reply.status, reply.json), (200, {"released": released, "how": how}))

    def test_late_release_says_how_the_lease_ended(self):
        lock, client = self.lock(), self.client(3)
        expired = self.granted(self.web.acquire(lock + "/expired", ttl=100))
        capped = self.granted(self.web.acquire(lock + "/capped", ttl=100, max_hold_ms=100))
        broken = self.granted(self.web.acquire(lock + "/broken"))
        breaking = self.granted(self.web.acquire(lock + "/breaking"))
        for grant, name, now in ((broken, "/broken", True), (breaking, "/breaking", False)):
            reply = self.web.post(
                self.path(lock + name, "/break"),
                {"token": grant["token"], "now": now, "reason": "x"},
            )
            self.assertEqual(reply.status, 200)
        for name in ("/expired", "/capped"):
            wait_until(
                lambda: self.inspect(client, lock + name)["state"] == "free", "its lease runs out"
            )
        self.assertReleased(expired["lease"], False, "expired")
        self.assertReleased(capped["lease"], False, "max_hold")
        self.assertReleased(broken["lease"], False, "broken")
        self.assertReleased(breaking["lease"], True, "released")
        self.assertReleased("0" * 32, False, "unknown")

    def test_holder_of_a_broken_lease_is_told_why(self):
        lock = self.lock()
        grant = self.granted(self.web.acquire(lock))
        told = {"token": grant["token"], "reason": "host is gone"}
        self.assertEqual(self.web.post(self.path(lock, "/break"), told).status, 200)
        lost = self.web.with_lease("renew", grant["lease"])
        self.assertEqual((lost.status, lost.json["how"]), (410, "broken"))
        self.assertEqual(lost.json["detail"], "the lease was broken: host is gone")

    def test_lost_lease_says_how_it_ended(self):
        lock = self.lock()
        grant = self.granted(self.web.acquire(lock, ttl=100))
        wait_until(
            lambda: self.inspect(self.client(3), lock)["state"] == "free", "its lease runs out"
        )
        problem = self.assertProblem(
            self.web.with_lease("renew", grant["lease"]),
            410,
            "lost",
            "no renewal arrived within its ttl_ms",
        )
        self.assertEqual(problem["how"], "expired")
        problem = self.assertProblem(
            self.web.with_lease("renew", "0" * 32), 410, "lost", "does not know this lease"
        )
        self.assertEqual(problem["how"], "unknown")

    def test_renew_and_release_take_no_body_and_need_no_content_type(self):
        lease = self.granted(self.web.acquire(self.lock()))["lease"]
        for verb in ("renew", "release"):
            self.assertEqual(
                self.web.call("POST", f"/v1/{verb}", headers={"Pawl-Lease": lease}).status, 200
            )
            self.assertProblem(
                self.web.call("POST", f"/v1/{verb}", "{}", {"Pawl-Lease": lease}), 415, "media_type"
            )

    def test_http_and_resp_share_locks(self):
        lock, client = self.lock(), self.client(3)
        grant = self.acquire(client, lock, "OWNER", "wire")
        problem = self.assertProblem(self.web.acquire(lock), 409, "held", "wire")
        self.assertEqual(problem["token"], grant["token"])
        self.assertEqual(client.call("RELEASE", grant["lease"]), 1)
        over_http = self.granted(self.web.acquire(lock))
        self.assertEqual(client.call("RENEW", over_http["lease"]), 60000)

    def test_held_names_the_owner_and_the_expiry(self):
        free, lock = self.lock(), self.lock()
        grant = self.granted(self.web.acquire(lock, owner="me@host:1", ttl=30000))
        reply = self.web.acquire(free, lock)
        problem = self.assertProblem(reply, 409, "held", "me@host:1", str(grant["token"]))
        self.assertEqual(
            (problem["lock"], problem["owner"], problem["token"], problem["retryable"]),
            (lock, "me@host:1", grant["token"], True),
        )
        self.assertTrue(0 < problem["expires_in_ms"] <= 30000)
        self.assertTrue(1 <= int(reply.headers["retry-after"]) <= 30)
        self.assertEqual(self.web.get(self.path(free)).json["state"], "free", "all or none")

    def test_closed_lock_says_when_it_opens(self):
        lock = self.lock()
        self.granted(self.web.acquire(lock, ttl=100, delay_ms=60000))
        wait_until(
            lambda: self.web.get(self.path(lock)).json["state"] == "closed", "its lease runs out"
        )
        problem = self.assertProblem(self.web.acquire(lock), 409, "held", "closed")
        self.assertTrue(0 < problem["reopens_in_ms"] <= 60000)

    def test_retry_with_the_same_key_returns_the_same_lease(self):
        # Hard cases 2, 4 and 5.
        lock, key = self.lock(), request_id()
        first = self.granted(self.web.acquire(lock, headers={"Idempotency-Key": key}))
        again = self.granted(
            self.web.acquire(
                lock, wait_ms=1000, owner="other", headers={"Idempotency-Key": f'"{key}"'}
            )
        )
        self.assertEqual(again, first)
        self.assertProblem(
            self.web.acquire(lock, ttl=50000, headers={"Idempotency-Key": key}), 409, "conflict"
        )
        self.web.with_lease("release", first["lease"])
        self.assertProblem(
            self.web.acquire(lock, headers={"Idempotency-Key": key}),
            410,
            "lost",
            f"this request was granted as {first['token']}, and the lease was released; another "
            "request needs another Idempotency-Key",
        )

    def test_waiting_needs_an_idempotency_key(self):
        self.assertProblem(self.web.acquire("x", wait_ms=1000), 400, "idempotency_key", "wait_ms")

    def test_idempotency_key_has_22_to_64_characters(self):
        for key in ("short", "x" * 65, "x" * 30 + "!", ""):
            self.assertProblem(
                self.web.acquire("x", headers={"Idempotency-Key": key}),
                400,
                "idempotency_key",
                "22 to 64",
            )

    def test_wait_is_granted_after_the_release(self):
        lock, client = self.lock(), self.client(3)
        held = self.granted(self.web.acquire(lock))
        waiting = self.web.start_post(
            "/v1/acquire",
            {"locks": [lock], "ttl_ms": 60000, "wait_ms": 60000},
            {"Idempotency-Key": request_id()},
        )
        self.addCleanup(waiting.close)
        self.waiting(client, lock, 1)
        self.web.with_lease("release", held["lease"])
        response = waiting.getresponse()
        self.assertEqual(response.status, 201)
        self.assertGreater(json.loads(response.read())["token"], held["token"])

    def test_wait_that_times_out_names_the_holder(self):
        lock = self.lock()
        self.granted(self.web.acquire(lock, owner="me"))
        reply = self.web.acquire(lock, wait_ms=50, headers={"Idempotency-Key": request_id()})
        self.assertProblem(reply, 409, "held", "me")

    def test_hang_up_leaves_the_queue(self):
        # Hard case 19, over HTTP: a waiter that is gone is never granted.
        lock, client = self.lock(), self.client(3)
        held = self.granted(self.web.acquire(lock))
        for how in ("close", "half-close", "reset"):
            with self.subTest(how):
                waiting = self.web.start_post(
                    "/v1/acquire",
                    {"locks": [lock], "ttl_ms": 60000, "wait_ms": 60000},
                    {"Idempotency-Key": request_id()},
                )
                self.addCleanup(waiting.close)
                self.waiting(client, lock, 1)
                if how == "half-close":
                    waiting.sock.shutdown(socket.SHUT_WR)
                elif how == "reset":
                    waiting.sock.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                    )
                    waiting.close()
                else:
                    waiting.close()
                self.waiting(client, lock, 0)
        self.web.with_lease("release", held["lease"])
        self.assertEqual(self.inspect(client, lock)["state"], "free")

    def test_newer_request_with_the_same_key_takes_over_the_wait(self):
        lock, key, client = self.lock(), request_id(), self.client(3)
        held = self.granted(self.web.acquire(lock))
        body = {"locks": [lock], "ttl_ms": 60000, "wait_ms": 60000}
        first = self.web.start_post("/v1/acquire", body, {"Idempotency-Key": key})
        self.waiting(client, lock, 1)
        second = self.web.start_post("/v1/acquire", body, {"Idempotency-Key": key})
        self.addCleanup(second.close)
        response = first.getresponse()
        self.assertEqual((response.status, json.loads(response.read())["code"]), (409, "conflict"))
        first.close()
        self.waiting(client, lock, 1)
        self.web.with_lease("release", held["lease"])
        self.assertEqual(second.getresponse().status, 201)

    def test_missing_lease_header_is_named(self):
        for verb in ("renew", "release"):
            self.assertProblem(self.web.post(f"/v1/{verb}"), 400, "lease_required", "Pawl-Lease")
            self.assertProblem(
                self.web.with_lease(verb, "not-a-lease"),
                400,
                "invalid",
                "Pawl-Lease must be 32 lowercase hex digits",
            )
            self.assertProblem(
                self.web.post(f"/v1/{verb}", {"lease": "0" * 32}),
                400,
                "invalid",
                "unknown member 'lease'",
            )
        self.assertProblem(self.web.with_lease("renew", "0" * 32), 410, "lost")

    def test_invalid_body_names_what_is_expected(self):
        # Hard case 17: nothing is clamped.
        good = {"locks": ["x"], "ttl_ms": 1000}
        for change, part in (
            ({"ttl": 5}, "unknown member 'ttl'; did you mean ttl_ms?"),
            ({"ttl_ms": 1}, "ttl_ms must be 100 to 600000, got 1"),
            ({"ttl_ms": 600001}, "ttl_ms must be 100 to 600000, got 600001"),
            ({"ttl_ms": -1}, "ttl_ms"),
            ({"ttl_ms": 1e3}, "ttl_ms"),
            ({"ttl_ms": "1000"}, "ttl_ms"),
            ({"ttl_ms": None}, "ttl_ms is required"),
            ({"locks": []}, "1 to 16"),
            ({"locks": "x"}, "array of strings"),
            ({"locks": ["x"] * 17}, "1 to 16"),
            ({"locks": ["x", "x"]}, "locks names 'x' twice"),
            ({"locks": ["x", ""]}, "locks[1] must be 1 to 512 bytes, got 0"),
            ({"locks": ["a\nb"]}, "locks[0] must be UTF-8 without control characters"),
            ({"owner": ""}, "owner must be 1 to 128 bytes, got 0"),
            ({"wait_ms": 60001}, "wait_ms must be 0 to 60000"),
            ({"limit": 0}, "limit must be 1 to 1024"),
            ({"limit": 1025}, "1 to 1024"),
            ({"shared": 1}, "true or false"),
            ({"shared": True, "limit": 2}, "shared and limit exclude each other"),
            ({"locks": ["x", "y"], "shared": True}, "neither shared nor limit"),
            ({"meta": {"": "x"}}, "a key of meta must be 1 to"),
            ({"meta": {"k": 1}}, "object of strings"),
            ({"meta": {str(n): "" for n in range(9)}}, "8 pairs"),
            ({"max_hold_ms": 500}, "max_hold_ms must be 0 (no cap), or 1000 (ttl_ms)"),
            ({"delay_ms": 60001}, "delay_ms must be 0 to 60000"),
        ):
            with self.subTest(change=change):
                self.assertHttpWords(
                    self.assertProblem(
                        self.web.post("/v1/acquire", {**good, **change}), 400, "invalid", part
                    )
                )
        for change, part in (
            ({"owner": "x" * 129}, "owner takes at most 128 bytes, got 129"),
            ({"locks": ["x" * 513]}, "locks[0] takes at most 512"),
            (
                {"meta": {"a": "x" * 600, "b": "x" * 600}},
                "meta takes at most 1024 bytes in all, got 1202",
            ),
        ):
            self.assertHttpWords(
                self.assertProblem(
                    self.web.post("/v1/acquire", {**good, **change}), 400, "too_long", part
                )
            )
        for text in ("{", "[]", "null", "x", "\xff", "{} {}"):
            self.assertProblem(
                self.web.call(
                    "POST", "/v1/acquire", text.encode("latin-1"), {"Content-Type": JSON}
                ),
                400,
                "invalid",
            )

    def test_misspelled_member_is_named_before_the_missing_one(self):
        for body, part in (
            ({"locks": ["x"], "ttl": 1000}, "unknown member 'ttl'; did you mean ttl_ms?"),
            ({"lock": "x", "ttl_ms": 1000}, "unknown member 'lock'; did you mean locks?"),
            ({"locks": ["x"], "ttl_ms": 1000, "ownr": "me"}, "did you mean owner?"),
        ):
            self.assertProblem(self.web.post("/v1/acquire", body), 400, "invalid", part)
        for path in ("/v1/acquire", "/v1/locks/x/break"):
            self.assertProblem(
                self.web.call("POST", path),
                400,
                "invalid",
                "the body is empty; it must be a JSON object with ",
            )

    def test_duplicate_member_is_refused(self):
        lock = self.lock()
        text = f'{{"locks": ["{lock}"], "ttl_ms": 1000, "ttl_ms": 2000}}'
        self.assertProblem(
            self.web.call("POST", "/v1/acquire", text, {"Content-Type": JSON}),
            400,
            "invalid",
            "'ttl_ms' is given twice",
        )
        self.assertEqual(self.web.get(self.path(lock)).json["state"], "free")

    def test_max_ttl_comes_from_the_configuration(self):
        server = self.own_pawld(settings="max_ttl_ms = 5000\n")
        web = Web(server.http_port)
        self.granted(web.acquire("x", ttl=5000))
        self.assertProblem(
            web.acquire("y", ttl=5001), 400, "invalid", "ttl_ms must be 100 to 5000, got 5001"
        )

    def test_max_hold_0_means_no_cap(self):
        lock, client = self.lock(), self.client(3)
        lease = self.granted(self.web.acquire(lock + "/http", max_hold_ms=0))["lease"]
        self.assertEqual(client.call("RENEW", lease), 60000)
        self.assertEqual(
            client.call("RENEW", self.acquire(client, lock + "/wire", "MAXHOLD", 0)["lease"]), 60000
        )

    def test_a_conflict_names_the_header(self):
        lock, key = self.lock(), {"Idempotency-Key": request_id()}
        self.granted(self.web.acquire(lock, headers=key))
        self.assertHttpWords(
            self.assertProblem(
                self.web.acquire(lock, ttl=50000, headers=key),
                409,
                "conflict",
                "Idempotency-Key",
                "ttl_ms",
            )
        )


class LocksTest(HttpCase):
    def test_names_are_percent_encoded_and_may_contain_slashes(self):
        lock = self.lock("/a b/é%/x")
        token = self.granted(self.web.acquire(lock))["token"]
        raw = "/v1/locks/" + urllib.parse.quote(lock, safe="/")
        self.assertIn("/", raw[len("/v1/locks/") :])
        for path in (self.path(lock), raw):
            self.assertEqual(self.web.get(path).json["token"], token)
        self.assertEqual(
            self.web.post(raw + "/break", {"token": token, "now": True, "reason": "x"}).status, 200
        )
        self.assertEqual(len(self.web.get(raw + "/history").json["history"]), 1)
        self.assertProblem(self.web.get("/v1/locks/a%2"), 400, "malformed")
        self.assertProblem(self.web.get("/v1/locks/a%00b"), 400, "invalid")
        self.assertProblem(self.web.get("/v1/locks/a%ff"), 400, "invalid")

    def test_lock_named_like_a_route_needs_an_encoded_slash(self):
        lock = self.lock("/history")
        self.granted(self.web.acquire(lock))
        self.assertEqual(self.web.get(self.path(lock)).json["lock"], lock)
        self.assertEqual(
            self.web.get("/v1/locks/" + lock).json["history"],
            [],
            "the history of another lock, which was never held",
        )

    def test_unknown_lock_is_free(self):
        lock, client = self.lock(), self.client(3)
        shown = self.web.get(self.path(lock))
        self.assertEqual((shown.status, shown.json), (200, self.inspect(client, lock)))
        self.assertEqual(
            (shown.json["state"], shown.json["holders"], shown.json["last_token"]),
            ("free", [], None),
        )
        for _ in range(2):
            self.assertEqual(
                self.web.get(self.path(lock, "/history")).json, {"lock": lock, "history": []}
            )
            self.granted(self.web.acquire(lock, limit=2))

    def test_lock_makes_no_claim_about_guards(self):
        lock = self.lock()
        self.granted(self.web.acquire(lock))
        self.assertEqual(
            self.web.get(self.path(lock)).json["label"], "unknown: no guard has reported"
        )

    def test_pagination_reaches_every_lock_once(self):
        prefix = self.lock("/")
        names = {f"{prefix}{n}" for n in range(50)}
        for name in names:
            self.granted(self.web.acquire(name))
        seen, cursor = [], "0"
        while True:
            page = self.web.get(
                f"/v1/locks?prefix={urllib.parse.quote(prefix)}&cursor={cursor}&limit=7"
            ).json
            seen += [lock["lock"] for lock in page["locks"]]
            cursor = page["cursor"]
            if cursor == "0":
                break
        self.assertEqual((set(seen), len(seen)), (names, len(names)))
        for query, part in (
            ("limit=0", "limit must be 1 to 1000, got '0'"),
            ("limit=1001", "limit must be 1 to 1000"),
            ("limit=x", "limit must be 1 to 1000"),
            ("cursor=x", "cursor must be the cursor of the page before"),
            ("cursor=18446744073709551616", "cursor must be"),
            ("prefix=" + "x" * 513, "prefix takes at most 512"),
            ("prefix=%00", "prefix must be UTF-8"),
            ("limit=1&limit=2", ""),
            ("prefix=%zz", ""),
            ("count=5", "unknown parameter 'count'; expected one of prefix, cursor, limit"),
            ("limits=5", "did you mean limit?"),
        ):
            reply = self.web.get("/v1/locks?" + query)
            self.assertEqual(reply.status, 400, query)
            self.assertIn(part, reply.json["detail"])
            self.assertHttpWords(reply.json)
        self.assertProblem(
            self.web.get(self.path(prefix, "/history?limit=0")),
            400,
            "invalid",
            "limit must be 1 to 1000",
        )

    def test_break_needs_the_current_token(self):
        lock = self.lock()
        grant = self.granted(self.web.acquire(lock))
        broken = self.path(lock, "/break")
        self.assertProblem(
            self.web.post(broken, {"token": grant["token"] + 1, "reason": "x"}), 404, "not_held"
        )
        self.assertProblem(
            self.web.post(broken, {"reason": "x"}), 400, "invalid", "token is required"
        )
        self.assertProblem(
            self.web.post(broken, {"token": grant["token"]}), 400, "invalid", "reason is required"
        )
        self.assertProblem(
            self.web.post(broken, {"token": 0, "reason": "x"}),
            400,
            "invalid",
            "token must be 1 to 9007199254740991, got 0",
        )
        self.assertProblem(
            self.web.post(broken, {"token": 1, "reason": ""}),
            400,
            "invalid",
            "reason must be 1 to 256 bytes",
        )
        reply = self.web.post(broken, {"token": grant["token"], "reason": "host is gone"})
        self.assertEqual((reply.status, reply.json["state"]), (200, "breaking"))
        self.assertProblem(self.web.with_lease("renew", grant["lease"]), 410, "lost", "broken")
        wait_until(
            lambda: "host is gone" in self.pawld.log() and "by http:127.0.0.1:" in self.pawld.log(),
            "it is logged",
        )
        reply = self.web.post(broken, {"token": grant["token"], "now": True, "reason": "x"})
        self.assertEqual((reply.status, reply.json["state"]), (200, "broken"))
        self.assertEqual(self.inspect(self.client(3), lock)["state"], "free")


class WebPagesTest(HttpCase):
    """What keeps a web page from using a pawld on its visitor's machine. http_browser_test.py tries
    it with a browser."""

    settings = '[http]\nhosts = ["locks.example"]\n'

    def test_foreign_host_origin_or_content_type_is_refused(self):
        lock = self.lock()
        token = self.granted(self.web.acquire(lock))["token"]
        body = json.dumps({"token": token, "now": True, "reason": "x"})
        here = f"127.0.0.1:{self.pawld.http_port}"
        good = {"Host": here, "Content-Type": JSON}
        for change, status, code in (
            ({"Host": "evil.example"}, 403, "foreign_host"),
            ({"Host": f"evil.example:{self.pawld.http_port}"}, 403, "foreign_host"),
            ({"Origin": "http://evil.example"}, 403, "foreign_origin"),
            ({"Origin": "null"}, 403, "foreign_origin"),
            ({"Origin": "http://127.0.0.1:1"}, 403, "foreign_origin"),
            ({"Origin": f"http://localhost:{self.pawld.http_port}"}, 403, "foreign_origin"),
            ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
            ({"Content-Type": "text/plain"}, 415, "media_type"),
            ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "media_type"),
        ):
            with self.subTest(change=change):
                self.assertProblem(
                    self.web.call("POST", self.path(lock, "/break"), body, {**good, **change}),
                    status,
                    code,
                )
        self.assertEqual(
            self.inspect(self.client(3), lock)["token"], token, "nothing of it happened"
        )
        for change in (
            {"Host": "locks.example:1234"},
            {"Origin": f"http://{here}"},
            {"Host": "localhost"},
        ):
            self.assertEqual(
                self.web.call("GET", "/v1/status", headers={**good, **change}).status, 200, change
            )

    def test_only_probes_are_answered_for_any_host(self):
        for path in ("/healthz", "/readyz"):
            for host in ("10.0.0.5", "10.0.0.5:7296", "[fd00::5]:7296", "pawl.cluster.local"):
                self.assertEqual(
                    self.web.call("GET", path, headers={"Host": host}).status, 200, (path, host)
                )
            with self.web.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode()) as peer:
                self.assertIn(b" 200 ", read_all(peer).split(b"\r\n")[0])
            page = {"Host": "10.0.0.5", "Origin": "http://evil.example"}
            self.assertProblem(self.web.call("GET", path, headers=page), 403, "foreign_origin")
        for path in ("/", "/metrics", "/v1/status", "/v1/openapi.json", "/healthz/", "/nope"):
            self.assertProblem(
                self.web.call("GET", path, headers={"Host": "10.0.0.5"}), 403, "foreign_host"
            )
        self.assertProblem(
            self.web.call("POST", "/healthz", headers={"Host": "10.0.0.5"}), 403, "foreign_host"
        )

    def test_http_1_1_without_a_host_is_refused(self):
        with self.web.raw(b"GET /v1/status HTTP/1.1\r\nConnection: close\r\n\r\n") as peer:
            self.assertIn(b" 403 ", read_all(peer).split(b"\r\n")[0])


class BytesTest(HttpCase):
    """Frames, limits, and peers that do not behave."""

    def status_of(self, data):
        with self.web.raw(data) as peer:
            answer = read_all(peer)
            return int(answer.split()[1]) if answer else None, answer

    def test_malformed_request_is_refused_and_closed(self):
        for data, status in (
            (b"PING\r\n\r\n", 400),
            (b"*1\r\n$4\r\nPING\r\n", 400),
            (b"\x16\x03\x01\x02\x00\x01", 400),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 17000 + b"\r\n\r\n", 431),
            (
                b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n"
                + b" " * 65537,
                413,
            ),
            (
                b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                b"5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400,
            ),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        ):
            with self.subTest(data=data[:60]):
                got, answer = self.status_of(data)
                self.assertEqual(got, status, answer[:300])
                self.assertIn(b"application/problem+json", answer)

    def test_pipelined_requests_are_answered_in_order(self):
        request = b"GET /v1/locks/%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        names = [f"pipelined-{n}".encode() for n in range(20)]
        data = b"".join(
            request % (name, b"Connection: close\r\n" if name == names[-1] else b"")
            for name in names
        )
        _, answer = self.status_of(data)
        self.assertEqual(re.findall(rb'"lock":"(pipelined-\d+)"', answer), names)

    def test_chunked_and_expect_continue_bodies_are_accepted(self):
        body = json.dumps({"locks": [self.lock()], "ttl_ms": 60000}).encode()
        head = (
            b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            b"application/json\r\nConnection: close\r\n"
        )
        chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        self.assertEqual(
            self.status_of(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked)[0], 201
        )
        body = body.replace(b'"locks": ["', b'"locks": ["z')
        with self.web.raw(
            head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
        ) as peer:
            self.assertTrue(peer.recv(100).startswith(b"HTTP/1.1 100 "))
            peer.sendall(body)
            self.assertIn(b" 201 ", read_all(peer))

    def test_half_closed_connection_still_gets_its_answer(self):
        with self.web.raw(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n") as peer:
            peer.shutdown(socket.SHUT_WR)
            self.assertIn(b" 200 ", read_all(peer))

    def test_silent_connections_make_room_and_waits_leave_room_for_renewals(self):
        harness.allow_descriptors(8192)
        server = self.own_pawld()
        web = Web(server.http_port)
        idle = [web.raw(b"") for _ in range(1024)]
        self.addCleanup(lambda: [peer.close() for peer in idle])
        lease = self.granted(web.acquire("x"))["lease"]
        idle[0].settimeout(harness.PATIENCE)
        self.assertEqual(idle[0].recv(4096), b"", "the oldest of the silent ones made room")
        # 1,024 requests under way, more than which only renewals and releases are served.
        body = json.dumps({"locks": ["x"], "ttl_ms": 60000, "wait_ms": 60000}).encode()
        for _ in range(1024):
            head = (
                "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Idempotency-Key: {request_id()}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            idle.append(web.raw(head.encode() + body))
        with self.client(3, server) as client:
            self.waiting(client, "x", 1024)
        refused = web.acquire("y")
        self.assertEqual((refused.status, refused.code), (503, "busy"), refused)
        self.assertIn("only renewals and releases", refused.json["detail"])
        self.assertEqual(web.with_lease("renew", lease).status, 200)
        self.assertEqual(web.get("/healthz").status, 200)
        self.assertEqual(web.with_lease("release", lease).status, 200)

    def test_unfinished_request_times_out(self):
        # One connection that sends a byte now and then; the limit is 10 s from its first byte.
        with self.web.raw(b"GET /v1/status HTTP/1.1\r\n") as peer:
            self.assertIn(b" 408 ", read_all(peer))


class ServiceTest(HttpCase):
    def test_http_can_be_off_and_a_taken_port_is_named(self):
        server = self.own_pawld(start=False)
        server.http_address = f"127.0.0.1:{self.pawld.http_port}"
        code, output = server.refused()
        self.assertEqual(code, 78, output)
        self.assertIn("--http", output)
        server.http_address = "off"
        server.start()
        self.assertEqual(server.http_port, 0)
        self.assertNotIn("http:", server.log())

    def test_stop_ends_waits_and_streams(self):
        server = self.own_pawld()
        web = Web(server.http_port)
        self.granted(web.acquire("x"))
        waiting = web.start_post(
            "/v1/acquire",
            {"locks": ["x"], "ttl_ms": 60000, "wait_ms": 60000},
            {"Idempotency-Key": request_id()},
        )
        self.addCleanup(waiting.close)
        events = Events(server.http_port).begun()
        self.addCleanup(events.close)
        self.waiting(self.client(3, server), "x", 1)
        self.assertEqual(server.terminate(), 0)
        self.assertIsNone(events.next())

    def test_malformed_credentials_are_refused(self):
        for value in ("Basic dXNlcjpwYXNz", "Bearer", "Bearer nocolon", "x"):
            reply = self.web.get("/v1/status", Authorization=value)
            self.assertProblem(reply, 401, "noauth", "Bearer USER:SECRET")
            self.assertEqual(reply.headers["www-authenticate"], "Bearer")
        self.assertProblem(
            self.web.get("/v1/status", Authorization="Bearer :secret"),
            401,
            "noauth",
            "Bearer USER:SECRET",
        )

    def test_credentials_for_a_pawld_without_users_are_refused(self):
        problem = self.assertProblem(
            self.web.get("/v1/status", Authorization="Bearer some:one"),
            400,
            "no_users",
            "this pawld has no users",
            "leave the header out",
            "auth_file",
        )
        self.assertHttpWords(problem)
        self.assertNotIn("password", problem["detail"])
        self.assertEqual(self.web.get("/healthz", Authorization="Bearer some:one").status, 200)


if __name__ == "__main__":
    harness.main()
