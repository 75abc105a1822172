#!/usr/bin/env python3
"""memwall inside tmux: start, chat, a smaller window, help, quit."""
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, TIMEOUT_S, MeasuredHome, environment  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Tmux(unittest.TestCase):
    def setUp(self):
        home = MeasuredHome()
        self.addCleanup(home.cleanup)
        self.env = environment(home.name, LC_ALL="C.UTF-8", TMUX_TMPDIR=home.name)
        self.env.pop("TMUX", None)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "cat")
        # The shell reports the exit: tmux 3.3a sometimes misses the SIGCHLD of a pane.
        self.tmux("respawn-pane", "-k",
                  f"'{MEMWALL}' chat -m '{MODEL}' -b 256M -t 1 --temp 0 -n 400; "
                  "echo exit status $?; cat")

    def tearDown(self):
        subprocess.run(["tmux", "kill-server"], env=self.env, capture_output=True)

    def tmux(self, *args):
        return subprocess.run(["tmux", *args], env=self.env, capture_output=True, check=True,
                              text=True, encoding="utf-8").stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def sees(self, *words):
        """Look again until all words are there, because tmux sends no event."""
        end = time.monotonic() + TIMEOUT_S
        while not all(word in (shown := self.screen()) for word in words):
            if time.monotonic() > end:
                self.fail(f"{words} are not all in:\n{shown}")
            time.sleep(0.02)  # each look is a process

    def loses(self, word):
        end = time.monotonic() + TIMEOUT_S
        while word in (shown := self.screen()):
            if time.monotonic() > end:
                self.fail(f"{word} is still in:\n{shown}")
            time.sleep(0.02)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def test_a_session(self):
        self.sees("verdict", "memory", "layers", "ready")
        self.keys("hello", "Enter")
        self.sees("> hello", " tok/s \u00b7 ", "ready")
        self.tmux("resize-window", "-x", "80", "-y", "24")
        self.sees(" ctx ")  # how much follows depends on the width of the other figures
        self.assertEqual(24, len(self.screen().splitlines()))
        self.keys("/help", "Enter")
        self.sees("Esc: close")
        self.keys("Escape")
        self.loses("Esc: close")  # else Esc and the next key may be read as Alt and that key
        self.sees("> hello")
        self.keys("/quit", "Enter")
        self.sees("exit status 0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
