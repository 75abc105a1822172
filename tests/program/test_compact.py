#!/usr/bin/env python3
"""/compact and /answer with a model: it sees request and summary in place of the oldest messages, and the
same tokens when the chat is opened again, or when the summary is taken back."""
import glob
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain  # noqa: E402
from program import FolderCase, MeasuredHome, budget  # noqa: E402
from terminal import Terminal  # noqa: E402

END = "<|im_end|>"
WAY = ["\n", "a", "b", END]
ARGUMENTS = ("--plain", "--color", "never", "--temp", "0", "-c", "2k", "--memory", budget(64),
             "--blas", "never")
LONG = "x" * 200  # a token is a byte


class Compact(FolderCase):
    def setUp(self):
        super().setUp()
        self.model = chain(self.folder, "m", dict(zip(WAY, WAY[1:])), eos=END).path

    def chat(self, home, *lines, args=()):
        """Returns the receipts of the answers to the messages among these lines, each with what
        it shows."""
        t = Terminal("chat", "-m", self.model, *ARGUMENTS, *args, home=home, rows=50, cols=120)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists commands and keys"), t.screen())  # the model is loaded
        for line, shown in lines:
            at, end = len(t.raw), time.monotonic() + 60
            t.send(line + "\r")
            while shown.encode() not in t.raw[at:]:
                self.assertTrue(time.monotonic() < end and t.pump(0.1), t.screen())
        t.send("/quit\r")
        while t.pump(1):
            pass
        t.process.wait()
        path, = glob.glob(os.path.join(home, ".local/share/memwall/chats/*.jsonl"))
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def home(self):
        holder = MeasuredHome()
        return holder.name if self.addCleanup(holder.cleanup) is None else ""

    @staticmethod
    def last_tokens(lines):
        """All tokens of the last prompt."""
        receipt = [x["receipt"] for x in lines if "receipt" in x][-1]
        return receipt["n_prompt"] + receipt["n_reused"]

    THREE = ((LONG + "1", "* 3 tokens"), (LONG + "2", "* 3 tokens"), (LONG + "3", "* 3 tokens"))
    LAST = ("four", "* 3 tokens")

    def test_the_model_sees_the_summary(self):
        home = self.home()
        lines = self.chat(home, *self.THREE, ("/compact", "4 messages are replaced"), self.LAST)
        texts = [x["text"] for x in lines if "role" in x]
        after = texts[6:]  # the first six were there before
        self.assertEqual(after, ["[/compact] Summarise our conversation so far: 4 messages.",
                                 "ab", LONG + "3", "ab", "four", "ab"])
        expected = 0
        roles = ["user", "assistant"] * 2 + ["user"]
        for role, text in zip(roles, after[:5]):
            expected += len(role) + len(text) + 4  # two marks and two newlines
        expected += len("assistant") + 2
        self.assertEqual(self.last_tokens(lines), expected)
        # The same chat opened again has the same prompt.
        again = self.chat(home, ("/undo", "taken back"), self.LAST, args=("--continue",))
        self.assertEqual(self.last_tokens(again), expected)

    def test_the_limit_of_answers_does_not_cut_a_summary(self):
        three = [(line, "* 1 token") for line, _ in self.THREE]
        lines = self.chat(self.home(), *three, ("/compact", "4 messages are replaced"),
                          args=("-n", "1"))
        self.assertEqual([x["text"] for x in lines if "role" in x][6:],
                         ["[/compact] Summarise our conversation so far: 4 messages.", "ab",
                          LONG + "3", "a"])

    def test_a_summary_that_is_cut_says_so(self):
        self.model = chain(self.folder, "endless", {"\n": "a", "a": "b", "b": "a"}, eos=END).path
        lines = self.chat(self.home(), *self.THREE,
                          ("/compact", "by a summary, which was cut after 256 tokens: about"),
                          args=("-n", "3"))
        self.assertEqual([x["text"] for x in lines if "role" in x][7], "ab" * 128)

    def test_undo(self):
        whole = self.last_tokens(self.chat(self.home(), *self.THREE, self.LAST))
        home = self.home()
        lines = self.chat(home, *self.THREE, ("/compact", "4 messages are replaced"),
                          ("/undo", "the summary is taken back"), self.LAST)
        self.assertEqual(self.last_tokens(lines), whole)
        lines = self.chat(home, ("/compact", "6 messages are replaced"), args=("--continue",))
        lines = self.chat(home, ("/undo", "the summary is taken back"), ("five", "* 3 tokens"),
                          args=("--continue",))
        self.assertEqual(self.last_tokens(lines), whole + len("four") + len("ab") + 2 * 4 +
                         len("user") + len("assistant") + len("five") - len("four"))

    def test_the_model_sees_the_answer_that_is_shown(self):
        """/retry makes a longer one."""
        two = (("hi", "* 1 token"), ("/predict 9", "limited to 9"), ("/retry", "answer 2 of 2"))
        longer = self.last_tokens(self.chat(self.home(), *two, self.LAST, args=("-n", "1")))
        home = self.home()
        lines = self.chat(home, *two, ("/answer back", "answer 1 of 2"), self.LAST,
                          args=("-n", "1"))
        self.assertEqual(self.last_tokens(lines), longer - len("b"))


if __name__ == "__main__":
    unittest.main()
