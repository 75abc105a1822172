#!/usr/bin/env python3
"""Chats in which the chat template refuses messages: a message can always follow."""
import json
import os
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain, spell  # noqa: E402
from program import (HomeCase, MEMWALL, SRCDIR, TIMEOUT_S, environment,  # noqa: E402
                     read_terminal)
from terminal import Terminal  # noqa: E402

BAD = ("{% for m in messages %}{% if 'bad' in m.content %}{{ raise_exception('not this one') }}"
       "{% endif %}{% endfor %}")
WRONG_TYPE = "{% for m in messages %}{% if 'bad' in m.content %}{{ 1 + 'a' }}{% endif %}{% endfor %}"
ALTERNATES = ("{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
              "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}")
# The first message must be one that was accepted before.
FIRST = ("{% if messages[0].content[0] not in 'hk' %}{{ raise_exception('begin with h or k') }}"
         "{% endif %}")
REFUSED = "the chat template refuses"


def tool(i):
    return f"<tool_response>{i} yyyyyyyyyyyy</tool_response>"


class Refusals(HomeCase):
    def model(self, template):
        return chain(self.folder, "model", spell("\n", "abc", "<|im_end|>"), template=template,
                     user=("<think>", "</think>", "<tool_response>", "</tool_response>")).path

    def chat(self, path, *lines, args=()):
        """Returns what a chat in plain mode shows, and the number of its answers."""
        main, side = pty.openpty()
        p = subprocess.Popen([MEMWALL, "chat", "--plain", "-m", path, "--temp", "0", "-n", "30",
                              "-b", "256M", "-t", "1", *args],
                             stdin=subprocess.PIPE, stdout=side, stderr=side,
                             env=environment(self.folder))
        os.close(side)
        p.stdin.write("".join(line + "\n" for line in lines).encode())
        p.stdin.close()
        shown = read_terminal(main).decode("utf-8", "replace").replace("\r\n", "\n")
        self.assertEqual(0, p.wait(TIMEOUT_S), shown)
        return shown, shown.count("tok/s · ")

    def saved(self):
        folder = self.path(".local/share/memwall/chats")
        name, = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def qwen(self):
        with open(os.path.join(SRCDIR, "tests", "data", "templates", "qwen3.5.jinja"),
                  encoding="utf-8") as f:
            return f.read()

    def test_a_refused_message_is_taken_back(self):
        for template in BAD, WRONG_TYPE:
            path = self.model(template + CHATML)
            shown, n = self.chat(path, "hello", "bad", "/retry", "so", "bad", "more")
            self.assertEqual(4, n, shown)
            self.assertEqual(2, shown.count("taken back: bad"), shown)

    def test_a_refused_message_is_in_the_input_line(self):
        t = Terminal("-m", self.model(BAD + CHATML), "--temp", "0", "-b", "256M", "-t", "1",
                     home=self.folder)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("ready"), t.screen())
        t.send("hello\r")
        self.assertTrue(t.sees("abc"), t.screen())
        t.send("so bad\r")
        self.assertTrue(t.sees(REFUSED, "\n> so bad"), t.screen())
        t.send("\x15good\r")
        self.assertTrue(t.sees("> good"), t.screen())

    def test_a_chat_that_begins_with_a_refused_message_goes_on(self):
        path = self.model(BAD + CHATML)
        shown, n = self.chat(path, "bad", "hello")
        self.assertEqual(1, n, shown)
        self.assertEqual(1, shown.count(REFUSED), shown)
        self.assertNotIn("bad", [m.get("text") for m in self.saved()
                                 if m.get("role") == "assistant"])
        shown, n = self.chat(path, "more", args=("--continue",))
        self.assertEqual(1, n, shown)
        self.assertNotIn(REFUSED, shown)

    def test_a_question_that_the_template_needs_stays(self):
        path = self.model(self.qwen())
        shown, n = self.chat(path, "hello there", *map(tool, range(5)),
                             args=("--ctx-shift", "-c", "128"))
        self.assertEqual(6, n, shown)
        self.assertNotIn(REFUSED, shown)
        self.assertIn("except a question that the chat template needs", shown)

    def test_the_newest_question_stays_with_what_follows_it(self):
        path = self.model(self.qwen())
        shown, n = self.chat(path, "hello there", tool(1), "and now", *map(tool, range(4)), "so",
                             "/undo", "so", "/retry", args=("--ctx-shift", "-c", "160"))
        self.assertEqual(10, n, shown)
        self.assertNotIn(REFUSED, shown)

    def test_a_resumed_chat_whose_beginning_is_gone(self):
        path = self.model(self.qwen())
        shown, n = self.chat(path, "hello there", *map(tool, range(6)), args=("-c", "1024"))
        self.assertEqual(7, n, shown)
        shown, n = self.chat(path, tool(7), "and now", tool(8),
                             args=("--continue", "--ctx-shift", "-c", "128"))
        self.assertEqual(3, n, shown)
        self.assertNotIn(REFUSED, shown)

    def test_the_rest_begins_with_a_message_that_the_template_accepts(self):
        for template in ALTERNATES, FIRST:
            path = self.model(template + CHATML)
            shown, n = self.chat(path, "hello there", "next 1 yyyyyyyyyyyyyyyyyyyyyyyyyyy",
                                 "next 2 yyyyyyyyyyyyyyyyyyyyyyyyyyy",
                                 "next 3 yyyyyyyyyyyyyyyyyyyyyyyyyyy", "know",
                                 args=("--ctx-shift", "-c", "128"))
            self.assertEqual(5, n, shown)
            self.assertNotIn(REFUSED, shown)
            self.assertEqual(template == FIRST, "except a question" in shown, shown)

    def test_a_template_that_needs_a_system_message(self):
        needs = ("{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}{% endif %}")
        path = self.model(needs + CHATML)
        shown, n = self.chat(path, "hello", "so", *["more yyyyyyyyyyyyyyyyyyyyyyyyy"] * 4,
                             args=("--ctx-shift", "-c", "160"))
        self.assertEqual(6, n, shown)
        self.assertNotIn("template", shown)
        shown, n = self.chat(path, "hello", "so", args=("--system", "Be brief."))
        self.assertEqual(2, n, shown)
        self.assertNotIn("template", shown)

    def test_older_messages_that_another_format_accepted_are_dropped(self):
        path = self.model(BAD + CHATML)
        shown, n = self.chat(path, "bad", "hello", "so", args=("--format", "chatml"))
        self.assertEqual(3, n, shown)
        shown, n = self.chat(path, "more", "/undo", "other", "again", args=("--continue",))
        self.assertEqual(3, n, shown)
        self.assertIn("refuses the messages of this chat: the model no longer sees the oldest 2 ",
                      shown)


if __name__ == "__main__":
    unittest.main(verbosity=2)
