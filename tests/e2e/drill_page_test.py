#!/usr/bin/python3
"""The report page of a drill in headless Chromium: it loads nothing, executes nothing, and no label
of its timeline covers another.

Environment: PAWL_DRILL_PAGES writes the pages of records made by hand.
"""

import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import unittest

from pawltest import harness
from pawltest.process import dies_with_parent

# Where two labels share more than a hair, or one leaves the picture.
PROBE = """<script>
const boxes = [...document.querySelectorAll('svg.timeline')].map(svg => [svg.getBoundingClientRect(),
  [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])]);
const faults = [];
for (const [frame, texts] of boxes) {
  for (const [words, box] of texts)
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) faults.push(`${words} leaves`);
  texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 3) faults.push(`${one} covers ${other}`);
  }));
}
document.body.innerHTML = ''; document.body.append(JSON.stringify({labels: boxes.flatMap(b => b[1]).length, faults,
  wide: document.documentElement.scrollWidth <= innerWidth}));
</script>"""


# What stands on what, as the style names its colours.
ON = [
    ("ink", "page"),
    ("soft", "page"),
    ("soft", "card"),
    ("ink", "card"),
    ("good", "good-page"),
    ("ink", "good-page"),
    ("bad", "bad-page"),
    ("ink", "bad-page"),
    ("on-bad", "bad"),
    ("bad", "page"),
    ("warn", "warn-page"),
    ("page", "ink"),
    ("page", "good"),
    *(("on-worker", f"a{i}") for i in range(6)),
    *((f"a{i}", "page") for i in range(6)),
]


def contrast(one, other):
    """The contrast ratio of WCAG: 1 to 21."""

    def luminance(colour):
        digits = colour.strip("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        red, green, blue = (
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.pages.get(self.path, b"")
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class DrillPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.scratch("drill-pages")
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        subprocess.run([os.environ["PAWL_DRILL_PAGES"], cls.dir], check=True)
        cls.pages = {path.stem: path.read_bytes() for path in sorted(cls.dir.glob("*.html"))}

    def visit(self, page, size):
        """The result of the probe in the page, and the requests of the browser."""
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
        site.asked, site.pages = [], {"/page": page}
        threading.Thread(target=site.serve_forever, daemon=True).start()
        profile = harness.scratch("chromium")
        try:
            # Whatever name is asked for, the same site answers, so that nothing is asked for in
            # secret.
            here = f"127.0.0.1:{site.server_address[1]}"
            command = [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--disable-features=NetworkTimeServiceQuerying",
                "--no-proxy-server",
                f"--user-data-dir={profile}",
                f"--host-resolver-rules=MAP * {here}",
                f"--window-size={size}",
                "--dump-dom",
                f"http://{here}/page",
            ]
            dom = subprocess.run(
                dies_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=120,
                check=True,
            ).stdout.decode()
        finally:
            site.shutdown()
            site.server_close()
            shutil.rmtree(profile, ignore_errors=True)
        return dom, site.asked

    def test_page_loads_nothing_else(self):
        for name in ("hostile", "flapping"):
            with self.subTest(page=name):
                dom, asked = self.visit(self.pages[name], "1200,900")
                self.assertEqual(asked, ["/page"])
                self.assertEqual(
                    re.findall(r"<(?:script|img|iframe|object|embed)\b", dom),
                    [],
                    "nothing became an element",
                )

    def test_planted_script_does_not_run(self):
        planted = self.pages["passed"].replace(
            b"<main>",
            b"<main><script>document.title='ran'</script><img src='/leak'>"
            b"<img src='http://elsewhere.example/leak'>",
        )
        self.assertNotEqual(planted, self.pages["passed"])
        dom, asked = self.visit(planted, "1200,900")
        self.assertEqual(asked, ["/page"])
        self.assertNotIn("<title>ran</title>", dom)

    def test_every_text_has_enough_contrast(self):
        looks = re.findall(r":root \{(.*?)\}", self.pages["passed"].decode(), re.S)
        self.assertEqual(len(looks), 3, "light, dark and on paper")
        for look in looks:
            colours = dict(re.findall(r"--([\w-]+): (#\w+)", look))
            for text, ground in ON:
                with self.subTest(text=text, ground=ground):
                    self.assertGreaterEqual(contrast(colours[text], colours[ground]), 4.5)

    def test_labels_do_not_overlap_and_the_page_fits(self):
        # All of them in one page, without its policy, which would keep the probe from running.
        mains = [
            re.search(rb"<main>.*</main>", page, re.S).group(0) for page in self.pages.values()
        ]
        together = re.sub(rb"<meta http-equiv=.*?>\n", b"", self.pages["passed"], count=1)
        together = (
            together[: together.index(b"<main>")]
            + b"".join(mains)
            + PROBE.encode()
            + b"</body></html>"
        )
        for size in ("1200,900", "500,900"):
            with self.subTest(window=size):
                dom, _ = self.visit(together, size)
                found = json.loads(
                    html.unescape(re.search(r"<body>(.*)</body>", dom, re.S).group(1))
                )
                self.assertEqual(found["faults"], [])
                self.assertTrue(found["wide"])
                self.assertGreater(found["labels"], 100 * len(mains) // 2)


if __name__ == "__main__":
    harness.main()
