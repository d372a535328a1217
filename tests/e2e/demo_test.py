#!/usr/bin/python3
"""`pawl demo`: it shows what really happened, on a terminal, as plain lines and as JSON, and leaves
nothing behind."""

import codecs
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

from pawltest import harness
from pawltest.demo_case import PAWL, DemoCase
from pawltest.harness import wait_until

ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


class Terminal:
    """A terminal with what the demo uses: lines, colours, cursor up, and erasing below."""

    def __init__(self, columns):
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0
        self.colours, self.pictures, self.wraps, self.rest = 0, set(), 0, ""

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        while text:
            if re.fullmatch(r"\x1b(\[[0-9;]*)?", text):  # The rest of it is still to come.
                self.rest = text
                return
            if escape := ESCAPE.match(text):
                self.obey(escape.group(1), escape.group(2))
                text = text[escape.end() :]
                continue
            self.put(text[0])
            text = text[1:]

    def obey(self, number, letter):
        if letter == "A":
            self.row -= int(number)
            assert self.row >= 0, "it goes up beyond its own first line"
        elif letter == "J":
            self.pictures.add("\n".join(self.lines[self.row :]))
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif letter == "m":
            self.colours += 1
        else:
            raise AssertionError(f"an escape that not every terminal knows: {number}{letter}")

    def put(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        else:
            line = self.lines[self.row]
            self.lines[self.row] = (
                line[: self.column].ljust(self.column) + letter + line[self.column + 1 :]
            )
            self.column += 1
            self.wraps += self.column == self.columns + 1


class DemoTest(DemoCase):
    def on_terminal(self, *words, columns=80, until=None, **environment):
        """The screen and the exit code. With `until`, Ctrl-C is pressed once that text is on the
        screen."""
        screen, inside = pty.openpty()
        self.addCleanup(os.close, screen)
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        demo = subprocess.Popen(
            [PAWL, "demo", *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            env=self.environment(TERM="xterm", LANG="C.UTF-8", **environment),
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.addCleanup(self.end, demo)
        os.close(inside)
        terminal, letters = Terminal(columns), codecs.getincrementaldecoder("utf-8")()
        while chunk := self.read(screen):
            terminal.feed(letters.decode(chunk))
            if until and any(until in line for line in terminal.lines):
                os.write(screen, b"\x03")
                until = None
        code = demo.wait(timeout=60)
        self.assertNothingLeft(demo.pid)
        return terminal, code

    @staticmethod
    def read(screen):
        try:
            return os.read(screen, 4096)
        except OSError:  # The other end is closed.
            return b""

    def wait_for(self, demo, event):
        if not any(json.loads(line)["event"] == event for line in demo.stdout):
            self.fail(f"it ended before {event}: {demo.stderr.read()}")

    def test_write_is_lost_without_a_guard_and_refused_with_one(self):
        self.assertEveryStep(self.demo_events())

    def test_plain_lines_have_no_escapes(self):
        demo = self.start("--fast")
        out, errors = demo.communicate(timeout=120)
        self.assertEqual((demo.returncode, errors), (0, ""))
        self.assertNotIn("\x1b", out)
        for words in (
            "Without a guard",
            "LOST",
            "With a guard",
            "REFUSED",
            "the row: 15 widgets",
            "the row: 12 widgets",
            "pawl guard install sqlite --file shop.db",
        ):
            self.assertIn(words, out)
        self.assertNothingLeft(demo.pid)

    def test_next_steps_can_be_pasted(self):
        demo = self.start("--fast")
        out, _ = demo.communicate(timeout=120)
        commands = [
            line.strip()
            for line in out[out.index("Put a table of your own") :].splitlines()
            if line.startswith("  ") and not line.endswith("&")
        ]
        self.assertEqual(len(commands), 6, commands)
        pawld = harness.Pawld()
        self.addCleanup(pawld.remove)
        pawld.start()
        env = self.environment(
            PATH=f"{pathlib.Path(PAWL).parent}:{os.environ['PATH']}",
            PAWL_ADDR=f"127.0.0.1:{pawld.port}",
        )
        for command in commands:
            done = subprocess.run(
                command,
                shell=True,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=self.tmp,
                env=env,
            )
            self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)

    def test_terminal_picture_shows_the_lease_expiring(self):
        terminal, code = self.on_terminal("--fast")
        self.assertEqual((code, terminal.wraps), (0, 0))
        self.assertGreater(terminal.colours, 10)
        left = {
            float(found)
            for picture in terminal.pictures
            for found in re.findall(r"A [█░]{24} ([0-9.]+) s left", picture)
        }
        self.assertGreater(len(left), 4, "the lease of the frozen worker runs down on the screen")
        self.assertLess(min(left), max(left) / 2)
        self.assertTrue(
            any(
                "frozen; believes" in picture and "waits for the lock" in picture
                for picture in terminal.pictures
            )
        )
        text = "\n".join(terminal.lines)
        self.assertNotIn("s left", text)
        self.assertIn("the row: 12 widgets", text)

    def test_no_color_is_respected(self):
        terminal, code = self.on_terminal("--fast", NO_COLOR="1")
        self.assertEqual((code, terminal.colours), (0, 0))

    def test_narrow_terminal_gets_plain_lines(self):
        terminal, code = self.on_terminal("--fast", columns=50)
        self.assertEqual((code, terminal.pictures), (0, set()))

    def test_ctrl_c_leaves_nothing_behind(self):
        terminal, code = self.on_terminal("--fast", until="frozen at this point")
        self.assertEqual(code, 130)
        self.assertIn("nothing is left behind", "\n".join(terminal.lines))

    def test_sigterm_leaves_nothing_behind_at_any_step(self):
        for event in ("introduction", "granted", "frozen", "wakes"):
            with self.subTest(after=event):
                demo = self.start("--fast", "--json")
                self.wait_for(demo, event)
                demo.send_signal(signal.SIGTERM)
                demo.communicate(timeout=60)
                self.assertEqual(demo.returncode, 128 + signal.SIGTERM)
                self.assertNothingLeft(demo.pid)

    def test_killed_demo_takes_its_processes_with_it(self):
        demo = self.start("--fast", "--json")
        self.wait_for(demo, "frozen")
        demo.send_signal(signal.SIGKILL)
        demo.communicate()
        wait_until(
            lambda: not [
                1
                for entry in pathlib.Path("/proc").glob("[0-9]*")
                if str(self.tmp) in environ(entry)
            ],
            "its processes to end",
        )

    def test_missing_program_is_named(self):
        alone = self.tmp / "bin"
        alone.mkdir()
        shutil.copy(PAWL, alone / "pawl")
        for words, code, output in (
            ((alone / "pawl", "demo"), 69, "pawld"),
            ((PAWL, "demo", "--dsn", "shop.db"), 64, "the demo makes its own file"),
            ((PAWL, "demo", "--guard", "oracle"), 64, "--guard"),
            ((PAWL, "demo", "--guard", "postgres", "--dsn", "host=/nowhere"), 69, "--dsn"),
        ):
            with self.subTest(words=words):
                done = subprocess.run(
                    words,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    env=self.environment(PATH="/nowhere"),
                )
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(output, done.stderr)


def environ(entry):
    try:
        return (entry / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    harness.main()
