#!/usr/bin/env python3
"""Chat files that were damaged by a loss of power, a failing disk or another program."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, HomeCase, budget, environment  # noqa: E402
from terminal import Terminal  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
HEAD = b'{"memwall":"chat","version":1,"created":"2026-01-01T00:00:00Z","model":"m"}\n'
TURN = (b'{"role":"user","time":"2026-01-01T00:00:00Z","text":"%s"}\n'
        b'{"role":"assistant","time":"2026-01-01T00:00:00Z","text":"well","done":"stop"}\n')
TORN = HEAD[:40]
BROKEN = HEAD + TURN % b"first words" + b"\0" * 4096 + b'rest"}\n' + TURN % b"last words"


class DamagedChats(HomeCase):
    def setUp(self):
        super().setUp()
        self.chats = self.path(".local/share/memwall/chats")
        os.makedirs(self.chats)
        self.age = 0

    def put(self, name, content):
        """Each file is older than the ones before."""
        path = os.path.join(self.chats, name + ".jsonl")
        with open(path, "wb") as f:
            f.write(content)
        self.age += 1000
        os.utime(path, (1700000000 - self.age,) * 2)
        return path

    def start(self, *args, plain=True):
        t = Terminal("chat", *(("--plain",) if plain else ("--view", "chat")), "-m", MODEL, "-b", budget(100),
                     "-n", "1", *args, home=self.folder, cols=200)
        self.addCleanup(t.close)
        return t

    def leave(self, t):
        t.send("/quit\r")
        while t.pump(120):
            self.assertIsNone(t.process.poll(), t.screen())
        self.assertEqual(0, t.process.wait(120))

    def sees(self, t, *words):
        self.assertTrue(t.sees(*words), t.screen())

    def test_continue_passes_over_a_torn_chat(self):
        torn = self.put("20260102-000000", TORN)
        self.put("20260101-000000", HEAD + TURN % b"an older question")
        for plain in (True, False):
            with self.subTest(plain=plain):
                t = self.start("--continue", plain=plain)
                self.sees(t, 'passed over the chat "20260102-000000"',
                          "line 1: is not a memwall chat file")
                if not plain:
                    self.sees(t, "an older question")
                self.leave(t)
        with open(torn, "rb") as f:
            self.assertEqual(TORN, f.read())

    def test_continue_without_any_chat_that_can_be_read_is_an_error(self):
        self.put("20260102-000000", TORN)
        t = self.start("--continue")
        self.sees(t, "no saved chat can be read")
        self.assertEqual(1, t.process.wait(120))

    def test_a_named_chat_is_not_passed_over(self):
        self.put("torn", TORN)
        t = self.start("--open", "torn")
        self.sees(t, "torn.jsonl: line 1: is not a memwall chat file")
        self.assertEqual(1, t.process.wait(120))

    def test_other_files_are_named(self):
        takes = "name a saved chat, or the path of a .jsonl file"
        for name, content, says in (
                ("m.gguf", b"GGUF\3\0\0\0", "is a model; -m opens it"),
                ("model.safetensors", b"\x20\0\0\0\0\0\0\0{}", "is a model; -m opens its"),
                ("p.png", b"\x89PNG\r\n\x1a\n", "is a picture"),
                ("p.jpg", b"\xff\xd8\xff\xe0", "is a picture"),
                ("page.html", b"<!DOCTYPE html>\n", "is an HTML or XML document"),
                ("a.md", b"# Chat of 2026-01-01\n\n## You\n", "exported as Markdown"),
                ("a.json", b'{\n  "model": "m",\n', "exported as JSON"),
                ("b.json", b'[{"role":"user","content":"hi"}]\n', "not a memwall chat file"),
                ("b.jsonl", b'{"role":"user","content":"hi"}\n' * 3, "not a memwall chat file"),
                ("c.jsonl", b'{"role":"user","text":"hi"}\n' * 3, "not a memwall chat file"),
                ("other.jsonl", b'{"event":"start","version":1}\n', "not a memwall chat file"),
                ("notes.txt", b"some words\nmore\n", "not a memwall chat file"),
                ("folder", None, "is a folder")):
            path = self.path(name)
            if content is None:
                os.mkdir(path)
            else:
                with open(path, "wb") as f:
                    f.write(content)
            with self.subTest(name):
                t = self.start("--open", path)
                self.sees(t, name, says, takes)
                self.assertEqual(1, t.process.wait(120))
                t.close()
                if content is not None:
                    with open(path, "rb") as f:
                        self.assertEqual(content, f.read())

    def test_a_name_that_is_not_a_chat(self):
        self.put("holidays", HEAD + TURN % b"a question")
        for name, says in (("holydays", 'no saved chat "holydays"; did you mean "holidays"?'),
                           ("program", 'no saved chat "program"')):
            with self.subTest(name):
                t = self.start("--open", name)
                self.sees(t, says)
                self.assertEqual(1, t.process.wait(120))
                t.close()

    def test_lines_around_damage_are_shown_and_stay(self):
        path = self.put("broken", BROKEN)
        t = self.start("--continue", plain=False)
        self.sees(t, "line 4 of the chat file is damaged", "first words", "last words")
        self.leave(t)
        with open(path, "rb") as f:
            self.assertEqual(BROKEN, f.read())

    def test_a_chat_without_its_first_line_is_continued(self):
        whole = TURN % b"an older question" + b'{"role":"robot","text":"a strange answer"}\n'
        for first in b"", b"\n", b"\0" * 40 + b"\n":
            path = self.put("headless", first + whole)
            with self.subTest(first=first):
                t = self.start("--continue", plain=False)
                self.sees(t, "2 lines of the chat file are damaged, from line 1 on",
                          "headless.jsonl", "an older question", "a strange answer")
                t.send("/chats\r")
                self.sees(t, "d: delete", "an older question")
                t.send("\033")
                self.assertTrue(t.loses("d: delete"), t.screen())
                self.leave(t)
                with open(path, "rb") as f:
                    self.assertEqual(first + whole, f.read())

    def test_a_key_of_the_wrong_type_is_named(self):
        self.put("wrong", HEAD + TURN % b"first words" + b'{"role":"user","text":7}\n')
        t = self.start("--open", "wrong")
        self.sees(t, 'line 4 of the chat file is damaged: "text" has a value of the wrong type')
        self.leave(t)

    def test_commands_of_a_chat(self):
        self.put("20260103-000000", TORN)
        broken = self.put("broken", BROKEN)
        t = self.start()
        self.sees(t, "/help lists")
        t.send("/open 20260103-000000\r")
        self.sees(t, "line 1: is not a memwall chat file")
        t.send("/open broken\r")
        self.sees(t, "line 4 of the chat file is damaged", "opened")
        export = self.path("out.md")
        t.send(f"/export {export}\r")
        self.sees(t, "written")
        t.send("one more\r")
        self.leave(t)
        with open(broken, "rb") as f:
            content = f.read()
        self.assertTrue(content.startswith(BROKEN))
        self.assertIn(b'"text":"one more"', content)
        with open(export, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("first words", text)
        self.assertIn("last words", text)

    def test_the_list_names_damaged_chats(self):
        self.put("20260103-000000", TORN)
        self.put("broken", BROKEN)
        t = self.start(plain=False)
        self.sees(t, "/help")
        t.send("/chats\r")
        self.sees(t, "damaged: it cannot be read", "first words", "broken")
        t.send("\033")
        self.assertTrue(t.loses("damaged"), t.screen())
        self.leave(t)

    def test_completions_offer_chats_that_can_be_opened(self):
        self.put("20260103-000000", TORN)
        self.put("broken", BROKEN)
        r = subprocess.run([MEMWALL, "completions", "chats"], env=environment(self.folder),
                           capture_output=True, text=True, timeout=120)
        self.assertEqual("broken\n", r.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
