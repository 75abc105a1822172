#!/usr/bin/env python3
"""Something else in the place of a small file that memwall reads: a FIFO, a folder, a device
without end, a socket, a file of a terabyte, a long text.  Programs work or end with a message,
and none waits."""
import os
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, ChangedHomeCase, budget, environment  # noqa: E402
from terminal import Terminal  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
RUN = ("run", "-m", MODEL, "-b", budget(100), "-n", "1", "-q", "hi")
PLAN = ("plan", MODEL, "-b", budget(100))
LIST = ("list",)
WAIT_S = 120  # only for programs that never end


def terabyte(path):
    with open(path, "w") as f:
        f.truncate(1 << 40)  # takes no space on the disk


def long_text(path):
    """Lines that mean nothing, more of them than any of these files has."""
    with open(path, "w") as f:
        f.write("x\n" * (1 << 20))


def bind(path):
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # the path of a socket may be too long
    try:
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.basename(path))
        s.close()
    finally:
        os.chdir(here)


def link(target):
    return lambda path: os.symlink(target, path)


THINGS = {"a file of a terabyte": terabyte, "a long text": long_text, "a FIFO": os.mkfifo,
          "a folder": os.mkdir, "a device without end": link("/dev/zero"), "a socket": bind,
          "a loop": lambda path: os.symlink(os.path.basename(path), path),
          "garbage": lambda path: shutil.copy(MEMWALL, path)}

# The files, and a command that reads each of them.
IGNORED = {
    ".cache/memwall/limits": PLAN,
    ".cache/memwall/models": LIST,
    ".local/state/memwall/models": LIST,
    ".cache/huggingface/hub/models--a--b/refs/main": LIST,
    ".cache/huggingface/token": ("pull", "a/b", "--list"),
    ".ollama/models/manifests/registry.ollama.ai/library/m/latest": LIST,
}


class OwnFiles(ChangedHomeCase):
    def put(self, name, make):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.remove(path)
        make(path)
        return path

    def remove(self, path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)

    def start(self, *args):
        """A hub that cannot be reached, so that nothing is fetched."""
        return subprocess.run([MEMWALL, *args], timeout=WAIT_S, capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL,
                              env=environment(self.folder, HF_ENDPOINT="http://127.0.0.1:1"))

    def test_kept_figures_and_lists_are_ignored(self):
        for name, command in IGNORED.items():
            for thing in ("a file of a terabyte", "a FIFO"):
                path = self.put(name, THINGS[thing])
                with self.subTest(name=name, thing=thing):
                    r = self.start(*command)
                    self.assertEqual(command[0] == "pull", r.returncode != 0, r.stderr)
                self.remove(path)

    def test_the_configuration_is_refused_by_name(self):
        for thing, make in THINGS.items():
            path = self.put(".config/memwall/config", make)
            with self.subTest(thing=thing):
                r = self.start(*LIST)
                self.assertIn(r.returncode, (1, 2, 3), r.stderr)
                self.assertIn("memwall/config", r.stderr)
                self.assertEqual(1, len(r.stderr.splitlines()), r.stderr)
            self.remove(path)

    def test_a_theme_is_refused_by_name(self):
        for thing, make in THINGS.items():
            path = self.put(".config/memwall/themes/mine.theme", make)
            with self.subTest(thing=thing):
                t = Terminal("-m", MODEL, "--theme", "mine", home=self.folder)
                self.addCleanup(t.close)
                self.assertTrue(t.sees("mine.theme"), t.screen())
                self.assertNotEqual(0, t.process.wait(WAIT_S))
            self.remove(path)

    def chat(self, *keys):
        """Start the screen, press keys, and leave."""
        t = Terminal("-m", MODEL, "-b", budget(100), home=self.folder)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help"), t.screen())
        for key in keys:
            t.send(key, wait=0.2)
        t.send("/quit\r")
        while t.pump(WAIT_S):
            self.assertIsNone(t.process.poll(), t.screen())
        self.assertEqual(0, t.process.wait(WAIT_S), t.screen())
        return t

    def test_the_screen_opens_beside_any_of_them(self):
        for thing in ("a file of a terabyte", "a FIFO", "a folder"):
            with self.subTest(thing=thing):
                make = THINGS[thing]
                paths = [self.put(".local/state/memwall/" + name, make)
                         for name in ("history", "layout", "log", "models")]
                paths.append(self.put(".local/share/memwall/chats/x.jsonl", make))
                self.chat("/chats\r", "\033")
                for path in paths:
                    self.remove(path)

    def test_a_changed_layout_replaces_a_fifo(self):
        path = self.put(".local/state/memwall/layout", os.mkfifo)
        self.chat("\033,")
        self.assertTrue(os.path.isfile(path))


if __name__ == "__main__":
    unittest.main(verbosity=2)
