#!/usr/bin/python3
"""`pawl gate` in front of a real HTTP service: no write with an old token gets through, whatever
the clients, the service and the gate itself go through (hard case 53)."""

import http.client
import itertools
import json
import random
import shutil
import socket
import subprocess
import threading
import unittest

from pawltest import harness, tls_files
from pawltest.gate import PAWL, Gate, Upstream
from pawltest.harness import PATIENCE, wait_until
from pawltest.process import free_port


class GateCase(unittest.TestCase):
    options = ()

    def setUp(self):
        self.upstream = Upstream(self)
        self.gate = self.start(*self.options)

    def start(self, *options, **more):
        return Gate(self, f"http://127.0.0.1:{self.upstream.port}", *options, **more)

    def assertProblem(self, answer, status, code):
        self.assertEqual(answer.status, status, answer.data)
        self.assertEqual((answer.problem["code"], answer.problem["status"]), (code, status))
        self.assertTrue(answer.problem["detail"])

    def assertPasses(self, answer):
        self.assertEqual(answer.status, 200, answer.data)

    def hold(self, token, name="a"):
        """A write that is in flight at the upstream, until it is released."""
        answer = self.gate.in_background(token, X_Hold=name)
        wait_until(lambda: name in self.upstream.held, "the write is upstream")
        return answer

    def wait_for(self, **fields):
        """Until the fence has these values."""

        def has():
            fence = self.gate.fence()
            return fence and all(fence[key] == value for key, value in fields.items())

        wait_until(has, f"the fence has {fields}")


class StoryTest(GateCase):
    def test_a_late_post_of_a_frozen_client_is_refused(self):
        self.assertPasses(self.gate.post(33))
        self.assertPasses(self.gate.post(34))
        late = self.gate.post(33)
        self.assertProblem(late, 412, "stale_token")
        self.assertEqual(late.getheader("X-Fencing-Max"), "34")
        self.assertFalse(late.problem["retryable"])
        self.assertEqual(self.upstream.tokens(), [33, 34])
        refused = wait_until(lambda: self.gate.events("refused"), "the refusal is in the log")
        self.assertEqual(
            [(r["resource"], r["token"], r["max"]) for r in refused], [("/accounts/7", 33, 34)]
        )

    def test_resources_do_not_touch_each_other(self):
        self.assertPasses(self.gate.post(34, "/accounts/7"))
        self.assertPasses(self.gate.post(33, "/accounts/8"))

    def test_below_a_resource_is_the_same_resource(self):
        self.assertPasses(self.gate.post(34, "/accounts/7/notes"))
        self.assertProblem(self.gate.post(33, "/accounts/7?x=1"), 412, "stale_token")

    def test_a_greater_token_waits_for_the_lower_one(self):
        lower = self.hold(33)
        greater = self.gate.in_background(34)
        self.wait_for(waiting=1)
        self.assertProblem(self.gate.post(33), 412, "stale_token")
        self.upstream.release("a")
        self.assertPasses(lower())
        self.assertPasses(greater())
        self.assertEqual(self.upstream.tokens(), [33, 34])

    def test_equal_tokens_run_side_by_side(self):
        first = self.hold(33)
        self.assertPasses(self.gate.post(33))
        self.upstream.release("a")
        self.assertPasses(first())

    def test_a_read_under_a_token_raises_the_fence_first(self):
        lower = self.hold(33)
        self.assertPasses(self.gate.send("GET", "/accounts/7"))  # Without a token it just passes.
        self.upstream.release("a")
        self.assertPasses(lower())
        self.assertPasses(self.gate.send("GET", "/accounts/7", 34))
        self.assertProblem(self.gate.post(33), 412, "stale_token")
        self.assertProblem(self.gate.send("GET", "/accounts/7", 33), 412, "stale_token")

    def test_no_mark_is_written_per_request(self):
        for _ in range(20):
            self.assertPasses(self.gate.post(33))
        marks = (self.gate.dir / "marks").read_text().splitlines()
        # One to open it; where the machine was slow, some more to close and open it.
        self.assertLess(len(marks), 12)


class RefusalTest(GateCase):
    def test_a_write_without_a_token_is_refused(self):
        self.assertProblem(self.gate.post(None), 428, "missing_token")
        self.assertEqual(self.upstream.effects, [])

    def test_a_malformed_token_is_refused(self):
        for token in ("0", "034", "+3", "-1", "3 4", "1,2", "0x3", "", "9007199254740992", "3.0"):
            with self.subTest(token):
                self.assertProblem(self.gate.post(token), 400, "malformed_token")
        link = self.gate.raw(
            b"POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 3\r\n"
            b"x-fencing-token: 4\r\nContent-Length: 0\r\n\r\n"
        )
        self.assertIn(b"malformed_token", link.recv(4096))
        link.close()

    def test_a_read_that_names_another_method_is_a_write(self):
        for header in ("X_HTTP_Method_Override", "X_HTTP_Method", "X_Method_Override"):
            answer = self.gate.send("GET", "/accounts/7", **{header: "DELETE"})
            self.assertProblem(answer, 428, "missing_token")

    def test_a_write_to_no_resource_is_refused(self):
        self.assertProblem(self.gate.post(3, "/users/7"), 403, "not_guarded")

    def test_another_spelling_of_a_path_is_refused(self):
        for path in ("/accounts/%37", "//accounts/7", "/accounts/./7", "/accounts/7/"):
            with self.subTest(path):
                self.assertProblem(self.gate.post(3, path), 400, "ambiguous_path")

    def test_a_stale_request_is_refused_before_its_body(self):
        self.assertPasses(self.gate.post(34))
        link = self.gate.raw(
            b"POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 3\r\n"
            b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
        )
        self.assertTrue(link.recv(4096).startswith(b"HTTP/1.1 412 "))
        link.close()

    def test_smuggling_is_refused(self):
        head = "POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 33\r\n"
        hidden = "POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 1\r\n\r\n"
        for attempt in (
            f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"Content-Length: 0\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}",
            f"Content-Length: {len(hidden)}, 0\r\n\r\n{hidden}",
            f"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}",
            f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{hidden}",
            f"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"Transfer-Encoding:\n chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"Transfer-Encoding: chunked\r\n\r\n0;a=b\r\n\r\n{hidden}",
            f"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{hidden}",
            f"Transfer-Encoding: chunked\r\n\r\n0\n\n{hidden}",
            f"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        ):
            with self.subTest(attempt):
                link = self.gate.raw((head + attempt).encode())
                answer = b""
                while part := link.recv(4096):
                    answer += part
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
                self.assertEqual(answer.count(b"HTTP/1.1"), 1, "what follows is not a request")
                link.close()
        self.assertEqual(self.upstream.effects, [])

    def test_an_upgrade_is_refused(self):
        answer = self.gate.send("GET", "/accounts/7", Upgrade="websocket", Connection="Upgrade")
        self.assertProblem(answer, 501, "upgrade_refused")

    def test_a_huge_head_is_refused(self):
        answer = self.gate.send("GET", "/accounts/7", X_Big="a" * 60000)
        self.assertProblem(answer, 431, "head_too_large")


class FailureTest(GateCase):
    options = ("--drain-wait", "300ms")

    def test_what_is_in_the_way_is_named(self):
        lower = self.hold(33)
        answer = self.gate.post(34)
        self.assertProblem(answer, 503, "fence_draining")
        self.assertEqual(answer.getheader("Retry-After"), "1")
        self.assertTrue(answer.problem["retryable"])
        self.assertEqual((answer.problem["in_flight"], answer.problem["open_token"]), (1, 33))
        self.upstream.release("a")
        self.assertPasses(lower())
        self.assertPasses(self.gate.post(34))

    def test_after_kill_minus_9_in_mid_forward_an_operator_settles(self):
        self.gate.in_background(33, X_Hold="a")
        wait_until(lambda: self.upstream.held, "the write is upstream")
        self.gate.kill()
        self.gate = self.start(*self.options, state=self.gate.dir)
        self.assertEqual(self.gate.fence()["unknown"], 1)
        self.assertProblem(self.gate.post(32), 412, "stale_token")
        answer = self.gate.post(34)
        self.assertProblem(answer, 503, "fence_draining")
        self.assertIn("pawl gate settle /accounts/7", answer.problem["detail"])
        # The write of before the crash takes effect now, and is not behind a greater one.
        self.upstream.release("a")
        wait_until(lambda: self.upstream.tokens() == [33], "the late write has its effect")
        self.assertIn("1 settled", self.gate.settle())
        self.assertPasses(self.gate.post(34))
        self.assertEqual(self.upstream.tokens(), [33, 34])

    def test_after_an_orderly_stop_nothing_needs_settling(self):
        self.assertPasses(self.gate.post(33))
        self.assertEqual(self.gate.stop(), 0)
        self.gate = self.start(*self.options, state=self.gate.dir)
        self.assertProblem(self.gate.post(32), 412, "stale_token")
        self.assertPasses(self.gate.post(34))

    def test_an_orderly_stop_waits_for_what_is_in_flight(self):
        lower = self.hold(33)
        self.gate.process.terminate()
        wait_until(self.is_closed, "the gate has stopped to listen")
        self.upstream.release("a")
        self.assertPasses(lower())
        self.assertEqual(self.gate.process.wait(timeout=PATIENCE), 0)
        self.assertIn(" closed 33 /accounts/7", (self.gate.dir / "marks").read_text())

    def is_closed(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.gate.port)) != 0

    def test_an_answer_that_never_comes_blocks_greater_tokens_until_it_is_settled(self):
        dropped = self.gate.post(33, X_Drop="1")
        self.assertProblem(dropped, 502, "outcome_unknown")
        self.assertFalse(dropped.problem["retryable"])
        self.assertProblem(self.gate.post(34), 503, "fence_draining")
        self.assertIn("1 settled", self.gate.settle())
        self.assertPasses(self.gate.post(34))

    def test_an_upstream_that_is_not_reached_blocks_nothing(self):
        port = free_port()
        gate = Gate(self, f"http://127.0.0.1:{port}")
        answer = gate.post(33)
        self.assertProblem(answer, 502, "upstream_unreachable")
        self.assertTrue(answer.problem["retryable"])
        upstream = Upstream(self, port)
        self.assertPasses(gate.post(34))
        self.assertEqual(upstream.tokens(), [34])

    def test_a_client_that_leaves_in_mid_body_reaches_nobody(self):
        link = self.gate.raw(
            b"POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 33\r\n"
            b"Content-Length: 100\r\n\r\nhalf"
        )
        link.close()
        self.assertPasses(self.gate.post(34))
        self.assertEqual(self.upstream.tokens(), [34])

    def test_a_client_that_leaves_in_a_long_body_leaves_an_unknown_outcome(self):
        link = self.gate.raw(
            b"POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 33\r\n"
            b"Content-Length: 1000000\r\n\r\n" + b"x" * 200000
        )
        self.wait_for(in_flight=1)
        link.close()
        self.wait_for(unknown=1, in_flight=0)
        self.assertProblem(self.gate.post(34), 503, "fence_draining")

    def test_a_client_that_leaves_after_its_request_is_still_counted(self):
        link = self.gate.raw(
            b"POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 33\r\nX-Hold: a\r\n"
            b"Content-Length: 0\r\n\r\n"
        )
        wait_until(lambda: self.upstream.held, "the write is upstream")
        link.close()
        self.assertProblem(self.gate.post(34), 503, "fence_draining")
        self.upstream.release("a")
        self.wait_for(in_flight=0)
        self.assertPasses(self.gate.post(34))
        self.assertEqual(self.upstream.tokens(), [33, 34])

    def test_a_second_gate_with_the_same_state_is_refused(self):
        done = self.run_gate("--state", self.gate.dir)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn(f"pid {self.gate.process.pid}", done.stderr)
        self.assertIn("Stop that one first", done.stderr)

    def test_damaged_marks_are_refused_with_the_name_of_the_file(self):
        self.assertPasses(self.gate.post(33))
        self.gate.stop()
        marks = self.gate.dir / "marks"
        marks.write_text(marks.read_text().replace("33", "32", 1))
        done = self.run_gate("--state", self.gate.dir)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn(f"{marks} is damaged: line 2", done.stderr)

    def test_without_marks_nothing_starts_when_they_must_exist(self):
        state = harness.scratch("gate")
        self.addCleanup(shutil.rmtree, state)
        done = self.run_gate("--state", state, "--must-exist")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("mounted", done.stderr)

    def run_gate(self, *options):
        url = f"http://127.0.0.1:{self.upstream.port}"
        command = [PAWL, "gate", "--listen", "127.0.0.1:0", "--upstream", url]
        return subprocess.run(
            [*command, "--resource", "path:/accounts/{id}", *options],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


class LateAnswerTest(GateCase):
    options = ("--upstream-timeout", "500ms")

    def test_a_late_answer_lets_the_greater_token_go(self):
        late = self.hold(33)
        self.assertProblem(late(), 504, "upstream_late")
        self.wait_for(unknown=1)
        greater = self.gate.in_background(34)
        self.wait_for(waiting=1)
        self.upstream.release("a")
        self.assertPasses(greater())
        self.assertEqual(self.upstream.tokens(), [33, 34])


class TlsTest(GateCase):
    def setUp(self):
        directory = harness.scratch("gate-tls")
        self.addCleanup(shutil.rmtree, directory)
        self.authority = tls_files.Authority(directory, "authority")
        self.upstream = Upstream(self, tls=self.authority.sign("service", hosts=tls_files.LOCAL))
        self.url = f"https://127.0.0.1:{self.upstream.port}"

    def test_an_https_service_gets_the_writes(self):
        gate = Gate(self, self.url, "--upstream-ca", self.authority.cert)
        answer = gate.post(33, body=b"y" * 300000)
        self.assertPasses(answer)
        self.assertEqual(answer.data, b"y" * 300000)

    def test_clients_may_speak_https(self):
        files = self.authority.sign("gate", hosts=tls_files.LOCAL)
        own = ("--tls-cert", files.cert, "--tls-key", files.key)
        gate = Gate(self, self.url, "--upstream-ca", self.authority.cert, *own)
        gate.tls = tls_files.trusting(self.authority)
        answer = gate.post(34, body=b"y" * 3000000, X_Chunked="1")
        self.assertPasses(answer)
        self.assertEqual(answer.data, b"y" * 3000000)
        self.assertProblem(gate.post(33), 412, "stale_token")
        gate.tls = None
        with self.assertRaises((OSError, http.client.HTTPException)):
            gate.post(34)

    def test_a_service_with_another_certificate_gets_nothing(self):
        gate = Gate(self, self.url)  # Only the authorities of the system are trusted.
        answer = gate.post(33)
        self.assertProblem(answer, 502, "upstream_unreachable")
        self.assertIn("certificate", answer.problem["detail"])
        self.assertEqual(self.upstream.effects, [])
        self.assertEqual(gate.fence()["unknown"], 0)


class ModeTest(GateCase):
    options = ("--mode", "shadow", "--admin", "127.0.0.1:0")

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.gate.admin_port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        text = answer.read().decode()
        connection.close()
        return text

    def test_shadow_lets_through_and_counts(self):
        self.assertPasses(self.gate.post(34))
        self.assertPasses(self.gate.post(33))
        self.assertPasses(self.gate.post(None))
        self.assertEqual(self.upstream.tokens(), [34, 33, 0])
        metrics = self.metrics()
        name = 'pawl_guard_decisions_total{guard="gate",mode="shadow",verdict='
        for line in (f'{name}"admitted"}} 1', f'{name}"stale"}} 1', f'{name}"missing"}} 1'):
            self.assertIn(line, metrics)
        self.assertIn("pawl_gate_let_through_total 2\n", metrics)

    def test_only_the_local_socket_settles(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.gate.admin_port, timeout=PATIENCE)
        connection.request("POST", "/v1/settle", json.dumps({"resource": "/accounts/7"}))
        self.assertEqual(connection.getresponse().status, 403)
        connection.close()

    def test_settling_what_is_not_known_says_so(self):
        self.assertIn("is not known", self.gate.status("settle", "/accounts/9", expect=64))


class TransportTest(GateCase):
    BIG = bytes(range(256)) * 20000  # 5 MB

    def test_long_bodies_pass_in_both_directions(self):
        answer = self.gate.post(33, body=self.BIG)
        self.assertPasses(answer)
        self.assertEqual(answer.data, self.BIG)
        answer = self.gate.post(33, body=iter([self.BIG, b"end"]), X_Chunked="1")
        self.assertPasses(answer)
        self.assertEqual(answer.data, self.BIG + b"end")

    def test_a_connection_serves_many_requests(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.gate.port, timeout=PATIENCE)
        for token, status in ((33, 200), (33, 200), (34, 200), (33, 412), (34, 200)):
            headers = {"X-Fencing-Token": token}
            connection.request("DELETE", "/accounts/7", headers=headers)
            answer = connection.getresponse()
            self.assertEqual(answer.status, status)
            answer.read()
        connection.close()
        self.assertEqual(self.upstream.tokens(), [33, 33, 34, 34])

    def test_requests_in_one_piece_are_answered_in_order(self):
        one = (
            b"POST /accounts/%d HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 5\r\n"
            b"Content-Length: 1\r\n\r\n%d"
        )
        last = b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        link = self.gate.raw(b"".join(one % (i, i) for i in range(8)) + last)
        answers = b""
        while part := link.recv(65536):
            answers += part
        link.close()
        self.assertEqual(answers.count(b"HTTP/1.1 200 OK"), 9)
        bodies = [effect[3] for effect in self.upstream.effects]
        self.assertEqual(bodies, [b"%d" % i for i in range(8)])

    def test_a_client_that_expects_100_is_told_to_continue(self):
        link = self.gate.raw(
            b"POST /accounts/7 HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: 5\r\nContent-Length: 2\r\n"
            b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
        )
        self.assertEqual(link.recv(4096), b"HTTP/1.1 100 Continue\r\n\r\n")
        link.sendall(b"ab")
        self.assertIn(b"200 OK", link.recv(4096))
        link.close()
        self.assertEqual(self.upstream.effects[0][3], b"ab")

    def test_head_and_answers_without_a_length_pass(self):
        answer = self.gate.send("HEAD", "/accounts/7")
        self.assertEqual((answer.status, answer.getheader("Content-Length")), (200, "5"))
        answer = self.gate.post(5, X_Raw="HTTP/1.0 200 OK\\r\\n\\r\\nuntil the end")
        self.assertEqual(answer.data, b"until the end")

    def test_an_answer_that_is_cut_is_not_taken_for_a_whole_one(self):
        with self.assertRaises(http.client.IncompleteRead):
            self.gate.post(5, X_Raw="HTTP/1.1 200 OK\\r\\nContent-Length: 50\\r\\n\\r\\nshort")
        self.wait_for(unknown=1)

    def test_clients_that_send_half_a_head_do_not_keep_others_out(self):
        slow = [self.gate.raw(b"POST /accounts/7 HTTP/1.1\r\nHos") for _ in range(300)]
        self.assertPasses(self.gate.post(5))
        # They are disconnected in the end.
        self.assertEqual(slow[0].recv(100), b"")
        for link in slow:
            link.close()


class TortureTest(GateCase):
    options = ("--drain-wait", "200ms")
    WRITERS, ROUNDS, WRITES = 6, 4, 25

    def test_no_effect_goes_back_among_careless_clients_and_a_killed_gate(self):
        self.last_token = itertools.count(1)
        for seed in range(self.ROUNDS):
            writers = [
                threading.Thread(target=self.write, args=(random.Random(f"{seed} {i}"),))
                for i in range(self.WRITERS)
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join(PATIENCE)
            self.gate.kill()
            self.gate = self.start(*self.options, state=self.gate.dir)
            self.upstream.wait_until_idle()
            for fence in self.gate.status()["resources"]:
                self.gate.settle(fence["resource"])
        for account in ("/accounts/0", "/accounts/1"):
            tokens = [token for _, path, token, _ in self.upstream.effects if path == account]
            self.assertEqual(tokens, sorted(tokens))
            self.assertTrue(tokens)

    def write(self, chance):
        """Writes under a token of its own, in one of the ways in which clients are careless."""
        token = next(self.last_token)
        for i in range(self.WRITES):
            if chance.random() < 0.2:
                token = next(self.last_token)
            path = f"/accounts/{chance.randrange(2)}"
            way = chance.random()
            try:
                # What is dropped stops greater tokens, so not at the beginning.
                if way < 0.7 or (way < 0.8 and i < self.WRITES / 2):
                    body = b"x" * chance.choice((1, 1000, 100000))
                    self.gate.post(token, path, body, X_Delay_Ms=chance.choice("0059"))
                elif way < 0.8:
                    self.gate.post(token, path, X_Drop="1")
                else:
                    length = 5 if way < 0.9 else 50  # All of it, or a part.
                    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nX-Fencing-Token: {token}\r\n"
                    link = self.gate.raw(f"{head}Content-Length: {length}\r\n\r\nhello".encode())
                    link.close()
            except (OSError, http.client.HTTPException):
                pass  # It is refused while its body is still being sent.


if __name__ == "__main__":
    unittest.main()
