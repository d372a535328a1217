#!/usr/bin/python3
"""A web page in a real browser (headless Chromium) tries everything a page can to break a lock on a
pawld of its visitor's machine, and cannot."""

import http.server
import json
import pathlib
import shutil
import subprocess
import threading

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent
from pawltest.web import Web

# Each attempt ends in what the page could see of it.
PAGE = """<!doctype html><meta charset="utf-8"><title>elsewhere</title><body><script>
const target = TARGET, body = JSON.stringify(BODY), seen = {};
const json = {"Content-Type": "application/json"};
async function attempt(name, request) {
  try { const reply = await request(); seen[name] = `${reply.type} ${reply.status}`; }
  catch (error) { seen[name] = "refused"; }
}
function form(enctype) {
  return new Promise(done => {
    const frame = document.createElement("iframe"), form = document.createElement("form"), field = document.createElement("input");
    frame.name = enctype; frame.onload = () => { if (form.sent) done({type: "form", status: "sent"}); };
    document.body.append(frame, form);
    Object.assign(form, {method: "POST", action: target, enctype, target: enctype});
    // In text/plain the name, "=" and the value make up the body: a well-formed JSON object.
    field.name = body.slice(0, -1) + ',"x":"'; field.value = '"}';
    form.append(field); form.sent = true; form.submit();
  });
}
async function main() {
  await attempt("cors json", () => fetch(target, {method: "POST", headers: json, body}));
  await attempt("cors plain", () => fetch(target, {method: "POST", body}));
  await attempt("no-cors plain", () => fetch(target, {method: "POST", mode: "no-cors", body}));
  await attempt("no-cors json", () => fetch(target, {method: "POST", mode: "no-cors", headers: json, body}));
  await attempt("credentials", () => fetch(target, {method: "POST", mode: "no-cors", credentials: "include", body}));
  await attempt("put", () => fetch(target, {method: "PUT", headers: json, body}));
  await attempt("read", () => fetch(target.replace("/break", "")));
  await attempt("read opaque", () => fetch(target.replace("/break", ""), {mode: "no-cors"}));
  await attempt("form plain", () => form("text/plain"));
  await attempt("form urlencoded", () => form("application/x-www-form-urlencoded"));
  await attempt("beacon", async () => ({type: "beacon", status: navigator.sendBeacon(target, new Blob([body], {type: "text/plain"}))}));
  await attempt("events", () => new Promise((done, fail) => {
    const source = new EventSource(new URL("/v1/events", target));
    source.onopen = () => done({type: "open", status: 200}); source.onerror = () => { source.close(); fail(); };
  }));
  await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
}
main();
</script>"""


class Elsewhere(http.server.ThreadingHTTPServer):
    """The site that the page comes from; it keeps what the page reports."""

    def __init__(self, page):
        super().__init__(("127.0.0.1", 0), Site)
        self.page, self.seen = page, None


class Site(http.server.BaseHTTPRequestHandler):
    def answer(self, body=b""):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(self.server.page.encode() if self.path == "/" else b"")

    def do_POST(self):
        self.server.seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer()

    def log_message(self, *_):
        pass


class Relay(http.server.ThreadingHTTPServer):
    """Stands before pawld, passes everything on as it came, and keeps what was asked and
    answered."""

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Hop)
        self.pawld_port, self.passed = port, []


class Hop(http.server.BaseHTTPRequestHandler):
    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        reply = Web(self.server.pawld_port).call(
            self.command, self.path, body, dict(self.headers.items())
        )
        self.server.passed.append(
            (
                self.command,
                self.headers.get("Content-Type", "").split(";")[0],
                reply.status,
                reply.code,
            )
        )
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_OPTIONS = pass_on

    def log_message(self, *_):
        pass


class BrowserTest(harness.PawldCase):
    def serving(self, server):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def visit(self, host, page):
        """What a page of that site, opened in a browser, reports."""
        site = self.serving(Elsewhere(page))
        profile = harness.scratch("chromium")
        command = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--no-proxy-server",
            f"--user-data-dir={profile}",
            f"http://{host}:{site.server_address[1]}/",
        ]
        with open(profile / "log", "wb") as log:
            browser = subprocess.Popen(
                dies_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            return wait_until(
                lambda: site.seen
                or (
                    browser.poll() is not None
                    and self.fail(
                        "chromium ended:\n"
                        + pathlib.Path(profile / "log").read_text(errors="replace")[-2000:]
                    )
                ),
                "the page reports",
                patience=120,
            )
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(browser.pid)], check=False)
            browser.wait()
            shutil.rmtree(profile, ignore_errors=True)

    def test_page_of_another_site_can_neither_break_nor_read_a_lock(self):
        client, web = self.client(3), Web(self.pawld.http_port)
        # Another port of the same machine; and another name of it, which is another site as well.
        for host in ("127.0.0.1", "localhost"):
            with self.subTest(page_from=host):
                lock = f"browser-{host}"
                token = self.acquire(client, lock)["token"]
                body = {"token": token, "now": True, "reason": "a web page"}
                relay = self.serving(Relay(self.pawld.http_port))
                target = f"http://127.0.0.1:{relay.server_address[1]}/v1/locks/{lock}/break"
                page = PAGE.replace("TARGET", json.dumps(target)).replace("BODY", json.dumps(body))
                seen = self.visit(host, page)
                self.assertEqual(
                    (
                        self.inspect(client, lock)["token"],
                        self.holders(client, lock)[0]["breaking"],
                    ),
                    (token, False),
                )
                # The page learns nothing, whatever it tries; forms and beacons do not even say that
                # they were refused.
                answers = {
                    name: what
                    for name, what in seen.items()
                    if not name.startswith("form") and name != "beacon"
                }
                self.assertEqual(answers, dict.fromkeys(answers, "refused"))
                self.assertEqual(
                    (seen["form plain"], seen["form urlencoded"]), ("form sent", "form sent")
                )
                # All of that did reach pawld, and it is pawld that refused it.
                wait_until(
                    lambda relay=relay: len(relay.passed) >= 10, "every attempt reached pawld"
                )
                methods = {method for method, _, _, _ in relay.passed}
                self.assertLessEqual({"GET", "POST", "OPTIONS"}, methods)
                posted = {kind for method, kind, _, _ in relay.passed if method == "POST"}
                self.assertLessEqual({"text/plain", "application/x-www-form-urlencoded"}, posted)
                self.assertEqual({code for _, _, _, code in relay.passed}, {"foreign_origin"})
                reply = web.post(f"/v1/locks/{lock}/break", body)
                self.assertEqual(
                    reply.status, 200, "and the same request from no page at all does it"
                )


if __name__ == "__main__":
    harness.main()
