#!/usr/bin/env python3
"""An answer that is cut and continued is the answer in one go, wherever it is cut: inside a
character, a mark or a stop text, in the same session or after the chat was closed and opened
again."""
import glob
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain  # noqa: E402
from program import FolderCase, budget  # noqa: E402
from terminal import Terminal  # noqa: E402

ARGUMENTS = ("--plain", "--color", "never", "--temp", "0", "-c", "256", "--memory", budget(64))
THINK = ("<think>", "</think>")
# R1, QwQ and Qwen 3.5 open the thinking in the prompt.
OPENS = CHATML.replace("assistant\n'", "assistant\n<think>\n'")
# Its old answers have no thinking, which it shows with "</think>".
SHOWS = CHATML.replace("m['content']", "m['content'].split('</think>')[-1]")
GRINNING = "\U0001f600"
END = "<|im_end|>"
MOST = 20  # pieces of an answer


def bytes_of(text):
    return [bytes([b]) for b in text.encode()]


def walk(*tokens):
    """Links for a model that says these tokens and ends."""
    way = ["\n", *tokens, END]
    assert len(set(way)) == len(way), "a token leads to one other token only"
    return dict(zip(way, way[1:]))


class Chat:
    """memwall chat --plain, one line at a time."""

    def __init__(self, model, home, *args):
        self.terminal = Terminal("chat", "-m", model, *ARGUMENTS, *args, home=home)
        self.wait(b"/help lists commands and keys", 0)  # the model is loaded

    def wait(self, word, at):
        """Read until the prompt follows the word."""
        while not (word in self.terminal.raw[at:] and self.terminal.raw.endswith(b"\n> ")):
            if self.terminal.process.poll() is not None or not self.terminal.pump(0.01):
                raise AssertionError(f"no {word!r} in {self.terminal.raw[at:]!r}")

    def say(self, line):
        """Returns what is printed until the answer is over."""
        at = len(self.terminal.raw)
        self.terminal.send(line + "\r")
        self.wait(b"\n* ", at)
        return self.terminal.raw[at:].decode().split(line + "\r\n")[-1]

    def close(self):
        self.terminal.send("/quit\r")
        while self.terminal.pump(1):
            pass
        self.terminal.process.wait()
        self.terminal.close()


def chats(home):
    return os.path.join(home, ".local/share/memwall/chats")


def saved(home):
    """[thinking, text, done] of each answer in the saved chat."""
    answers = []
    for name in glob.glob(os.path.join(chats(home), "*.jsonl")):
        with open(name, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        for line in lines:
            if line.get("role") == "user":
                answers.append(["", "", ""])
            elif line.get("role") == "assistant":
                answers[-1][0] += line.get("thinking", "")
                answers[-1][1] += line.get("text", "")
                answers[-1][2] = line["done"]
    return answers


def printed_text(printed):
    """The text of an answer in what was printed."""
    lines = [line for part in printed for line in part.split("\r\n")]
    return "".join(x for x in lines if not x.startswith(("* ", "> ", "(thinking)")))


class Continued(FolderCase):
    @classmethod
    def setUpClass(cls):
        """Share a home: the machine is measured once."""
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name

    def setUp(self):
        super().setUp()
        self.forget_chats()

    def forget_chats(self):
        shutil.rmtree(chats(self.home), ignore_errors=True)

    def script(self, *script, user_marks=True, **more):
        return chain(self.folder, "m", walk(*script),
                     user=THINK if user_marks else (), **more).path

    def answer(self, model, n, *args, reopens=False):
        """Cut an answer after every n tokens, and close the chat there and open it again if
        reopens is set.  Returns what is saved and what is printed."""
        self.forget_chats()
        args = ("-n", str(n), *args)
        chat = Chat(model, self.home, *args)
        printed = [chat.say("hi")]
        while saved(self.home)[-1][2] == "length" and len(printed) < MOST:
            if reopens:
                chat.close()
                chat = Chat(model, self.home, *args, "--continue")
            printed.append(chat.say("/continue"))
        chat.close()
        return saved(self.home)[0], printed_text(printed)

    def check(self, script, thinking, text, *args, printed=(), **more):
        """printed: what a stop inside a mark leaves on a terminal that cannot remove it."""
        model = self.script(*script, **more)
        cuts = [(n, False) for n in range(1, len(script) + 2)] + [(1, True), (3, True)]
        for n, reopens in cuts:
            with self.subTest(n=n, reopens=reopens):
                answer, shown = self.answer(model, n, *args, reopens=reopens)
                self.assertEqual(answer, [thinking, text, "stop"])
                self.assertIn(shown, (text, *printed))

    def test_inside_a_character(self):
        self.check(["A", *bytes_of(GRINNING), "B"], "", f"A{GRINNING}B")

    def test_thinking_that_the_prompt_opens(self):
        self.check(["x", "y", "</think>", "A", "B"], "xy", "AB", template=OPENS)

    def test_thinking_that_the_answer_opens(self):
        self.check(["<think>", "x", "y", "</think>", "A", "B"], "xy", "AB")

    def test_text_that_looks_like_a_mark(self):
        self.check(["<think>", "a", "<", "/", "t", "</think>", "B"], "a</t", "B")

    def test_spelled_marks(self):
        self.check(["<", "t", "h", b"ink>", "x", "y", b"</th", b"ink>A", "B"], "xy", "AB",
                   pieces=(b"ink>A", b"</th"), user_marks=False, template=SHOWS,
                   printed=("<AB", "<tAB", "<thAB"))

    def test_stop_texts(self):
        self.check(["a", "b", "c", "d", "e"], "", "a", "--stop", "bcd", printed=("ab", "abc"))


if __name__ == "__main__":
    unittest.main()
