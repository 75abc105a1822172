#!/usr/bin/env python3
"""Files that the program writes: it replaces files only on request, and the model never."""
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, TIMEOUT_S, environment, memwall, read_terminal  # noqa: E402

MODEL = os.path.join(MODELS, "llama-tiny.gguf")
SHARED = os.environ.get("MW_SHARED", "")
SNAPSHOT = os.path.join(SHARED, "conformance", "models", "llama-tiny-hf")


def content(path):
    with open(path, "rb") as f:
        return f.read()


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = self.path("m.gguf")
        shutil.copy(MODEL, self.model)
        self.old = self.path("old")
        with open(self.old, "w") as f:
            f.write("mine")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def telemetry(self, to, *more, model=None):
        return memwall("run", "-m", model or self.model, "-n", "1", "--temp", "0", "-q",
                       "--telemetry", to, *more, "hi")

    def logits(self, to, *more, model=None):
        return memwall("eval", model or self.model, "--ids", "-", "--logits", to, *more,
                       stdin="2 3")

    def refused(self, r, *texts):
        self.assertEqual(1, r.returncode, r.stderr)
        for text in texts:
            self.assertIn(text, r.stderr)


class Options(Folder):
    def test_an_existing_file_is_replaced_only_on_request(self):
        for write in (self.telemetry, self.logits):
            self.refused(write(self.old), self.old, "exists already", "--force")
            self.assertEqual(b"mine", content(self.old))
            r = write(self.old, "--force")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertNotIn(b"mine", content(self.old))
            with open(self.old, "w") as f:
                f.write("mine")

    def test_the_model_is_never_written_to(self):
        before = content(self.model)
        link, hard = self.path("link"), self.path("hard")
        os.symlink(self.model, link)
        os.link(self.model, hard)
        for write in (self.telemetry, self.logits):
            for to in (self.model, link, hard):
                for more in ((), ("--force",)):
                    self.refused(write(to, *more), to, "file of the model")
        self.assertEqual(before, content(self.model))

    @unittest.skipUnless(os.path.isdir(SNAPSHOT), "needs the shared conformance models")
    def test_no_file_of_a_snapshot_is_written_to(self):
        folder = self.path("snapshot")
        shutil.copytree(SNAPSHOT, folder)
        for name in os.listdir(folder):
            before = content(os.path.join(folder, name))
            r = self.telemetry(os.path.join(folder, name), "--force", model=folder)
            self.refused(r, name, "file of the model")
            self.assertEqual(before, content(os.path.join(folder, name)))
        new = os.path.join(folder, "new.jsonl")
        self.assertEqual(0, self.telemetry(new, model=folder).returncode)

    def test_links_are_followed_only_on_request(self):
        nowhere, link = self.path("nowhere"), self.path("link")
        os.symlink(self.path("not-there"), nowhere)
        self.assertEqual(1, self.telemetry(nowhere).returncode)
        self.assertFalse(os.path.exists(self.path("not-there")))
        os.symlink(self.old, link)
        self.refused(self.telemetry(link), "exists already")
        self.assertEqual(0, self.telemetry(link, "--force").returncode)
        self.assertTrue(os.path.islink(link))
        self.assertNotEqual(b"mine", content(self.old))

    def test_special_files_are_refused_at_once(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for write in (self.telemetry, self.logits):
            for more in ((), ("--force",)):
                self.refused(write(fifo, *more), fifo, "a FIFO")
                self.refused(write(self.folder.name, *more), "a folder")
                self.refused(write("/dev/zero", *more), "a device")

    def test_the_null_device_and_open_descriptors_can_be_written_to(self):
        self.assertEqual(0, self.telemetry("/dev/null").returncode)
        r = self.telemetry("/dev/stdout")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn('{"event":"start"', r.stdout)
        read, write = os.pipe()
        os.set_inheritable(write, True)
        r = memwall("run", "-m", self.model, "-n", "1", "--temp", "0", "-q", "--telemetry",
                    f"/dev/fd/{write}", "hi", pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as f:
            events = [json.loads(line)["event"] for line in f]
        self.assertEqual((0, "start"), (r.returncode, events[0]))
        self.refused(self.telemetry("/dev/fd/77"), "/dev/fd/77")


class Settings(Folder):
    def run_at_home(self, *args):
        with tempfile.TemporaryDirectory() as home:
            for folder, name in ((".config", "config"), (".cache", "limits")):
                os.makedirs(os.path.join(home, folder, "memwall"))
                os.mkfifo(os.path.join(home, folder, "memwall", name))
                r = subprocess.run([MEMWALL, *args], env=environment(home), text=True,
                                   stdin=subprocess.DEVNULL, capture_output=True,
                                   timeout=TIMEOUT_S)
                yield name, r
                os.remove(os.path.join(home, folder, "memwall", name))

    def test_a_fifo_in_their_place_does_not_block(self):
        for name, r in self.run_at_home("run", "-m", self.model, "-n", "1", "-q", "hi"):
            if name == "config":
                self.refused(r, "not a regular file")
            else:
                self.assertEqual(0, r.returncode, r.stderr)


class Chat(Folder):
    """Commands of a chat in plain mode, which prints to a terminal."""

    def chat(self, *lines, more=()):
        main, side = pty.openpty()
        p = subprocess.Popen([MEMWALL, "chat", "--plain", "-m", self.model, "-n", "2", *more],
                             stdin=subprocess.PIPE, stdout=side, stderr=side,
                             env=environment(self.folder.name))
        os.close(side)
        p.stdin.write("".join(line + "\n" for line in lines).encode())
        p.stdin.close()
        shown = read_terminal(main)
        self.assertEqual(0, p.wait(TIMEOUT_S), shown)
        return shown.decode("utf-8", "replace").replace("\r\n", "\n")

    def test_commands_replace_a_file_only_with_an_exclamation_mark(self):
        for command in ("export", "save", "record"):
            shown = self.chat("hello", f"/{command} {self.old}")
            self.assertIn("exists already", shown)
            self.assertIn(f"/{command}! FILE", shown)
            self.assertEqual(b"mine", content(self.old))
            shown = self.chat("hello", f"/{command}! {self.old}")
            self.assertNotIn("error:", shown)
            self.assertNotEqual(b"mine", content(self.old))
            with open(self.old, "w") as f:
                f.write("mine")
            new = self.path(command)
            self.chat("hello", f"/{command} {new}")
            self.assertTrue(os.path.exists(new))
        self.assertIn("no command", self.chat("/undo!"))

    def test_no_command_writes_to_the_model_or_waits_for_a_fifo(self):
        fifo, before = self.path("fifo"), content(self.model)
        os.mkfifo(fifo)
        shown = self.chat("hello", f"/export! {self.model}", f"/record! {self.model}",
                          f"/save! {self.model}")
        self.assertEqual(3, shown.count("file of the model"), shown)
        shown = self.chat("hello", f"/export! {fifo}", f"/record! {fifo}", f"/file {fifo}",
                          f"/theme {fifo}")
        self.assertEqual(2, shown.count("is a FIFO"), shown)
        self.assertIn("is not a file", shown)
        self.assertEqual(before, content(self.model))

    def test_a_chat_is_not_exported_over_itself(self):
        self.chat("hello")
        folder = self.path(".local/share/memwall/chats")
        saved, = os.listdir(folder)
        before = content(os.path.join(folder, saved))
        shown = self.chat(f"/export! ~/.local/share/memwall/chats/{saved}",
                          more=("--continue",))
        self.assertIn("is where this chat is saved", shown)
        self.assertEqual(before, content(os.path.join(folder, saved)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
