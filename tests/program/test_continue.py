#!/usr/bin/env python3
"""An answer that is cut and continued is the answer in one go, wherever it is cut: inside a
character, a mark or a stop text, in the same session or after the chat was closed and opened
again."""
import glob
import json
import os
import re
import shlex
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain  # noqa: E402
from program import FolderCase, MeasuredHome, budget  # noqa: E402
from terminal import Terminal  # noqa: E402

ARGUMENTS = ("--plain", "--color", "never", "--temp", "0", "-c", "256", "--memory", budget(64),
             "--blas", "never")  # its buffers would take most of the budget
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


def walk(*tokens, end=END):
    """Links for a model that says these tokens and ends."""
    way = ["\n", *tokens, end]
    assert len(set(way)) == len(way), "a token leads to one other token only"
    return dict(zip(way, way[1:]))


class Chat:
    """memwall chat --plain, one line at a time."""

    def __init__(self, model, home, *args):
        self.terminal = Terminal("chat", "-m", model, *ARGUMENTS, *args, home=home)
        self.wait(b"/help lists commands and keys", 0)  # the model is loaded

    def wait(self, pattern, at, end=b"\n> "):
        """Read until the end, the prompt, follows the pattern.  Returns where that begins."""
        while not ((found := re.search(pattern, self.terminal.raw[at:]))
                   and self.terminal.raw.endswith(end)):
            if self.terminal.process.poll() is not None or not self.terminal.pump(0.01):
                raise AssertionError(f"no {pattern!r} in {self.terminal.raw[at:]!r}")
        return at + found.start()

    def say(self, line):
        """Returns what is printed until the answer is over."""
        at = len(self.terminal.raw)
        self.terminal.send(line + "\r")
        at = self.wait(re.escape(f"{line}\r\n".encode()), at, b"")
        # Not the notice of a resumed chat, which may come before or after the line.
        self.wait(rb"\n\* (?!\d+ tokens? of this chat)", at)
        text = self.terminal.raw[at:].decode().split(line + "\r\n")[-1]
        return re.sub(r"(?m)^\* \d+ tokens? of this chat .*\n", "", text)

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
                answers[-1][2] = line.get("done", "")
    return answers


def printed_text(printed):
    """The text of an answer in what was printed."""
    lines = [line for part in printed for line in part.split("\r\n")]
    return "".join(x for x in lines if not x.startswith(("* ", "> ", "(thinking)")))


class SharedHome(FolderCase):
    @classmethod
    def setUpClass(cls):
        """Share a home: the machine is measured once."""
        home = MeasuredHome()
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name

    def setUp(self):
        super().setUp()
        self.forget_chats()

    def forget_chats(self):
        shutil.rmtree(chats(self.home), ignore_errors=True)

    def script(self, *script, user_marks=True, end=END, name="m", **more):
        return chain(self.folder, name, walk(*script, end=end), eos=end,
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


class Continued(SharedHome):
    def check(self, script, thinking, text, *args, printed=(), **more):
        """Cut an answer after each token, and after every second and third one.  printed: what
        a cut inside a mark leaves on a terminal that cannot remove it."""
        model = self.script(*script, **more)
        cuts = [(n, False) for n in (1, 2, 3, len(script) + 1)] + [(1, True), (2, True)]
        for n, reopens in cuts:
            with self.subTest(n=n, reopens=reopens):
                answer, shown = self.answer(model, n, *args, reopens=reopens)
                self.assertEqual(answer, [thinking, text, "stop"])
                self.assertIn(shown, (text, *printed))

    def test_channels(self):
        gemma = CHATML.replace("<|im_start|>' + m['role']", "<|turn>' + m['role']")
        gemma = gemma.replace("<|im_start|>assistant", "<|turn>model").replace(END, "<turn|>")
        self.check(["<|channel>", b"thought", b"!\n", "x", *bytes_of("\u20ac"), "<channel|>", "A",
                    *bytes_of(GRINNING), "B"], "x\u20ac", f"A{GRINNING}B", template=gemma,
                   end="<turn|>", pieces=(b"thought", b"!\n"),
                   marks=("<|turn>", "<turn|>", "<|channel>", "<channel|>"))

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


def old_file(text):
    """As it was before answers were saved with their ids."""
    return re.sub(r',"(text_held|thinking_held|ids)":("[^"]*"|\[[^]]*\])', "", text)


def with_held_text(text):
    """As it was when text that is held back was saved as text."""
    text = re.sub(r'("(text|thinking)":"[^"]*)"(.*),"\2_held":"([^"]*)"', r'\1\4"\3', text)
    return old_file(text)


def torn(text):
    """As a program leaves it that is killed during the answer."""
    return text[:text.rindex('","done"')]


class Reopened(SharedHome):
    def reopen(self, script, n, change, *args, then=None, other=None, **more):
        """Cut an answer after n tokens, change the saved chat, and continue the answer with other
        options or another model.  Returns what is saved."""
        model = self.script(*script, **more)
        self.forget_chats()
        chat = Chat(model, self.home, "-n", str(n), *args)
        chat.say("hi")
        chat.close()
        name, = glob.glob(os.path.join(chats(self.home), "*.jsonl"))
        with open(name, encoding="utf-8") as f:
            text = f.read()
        with open(name, "w", encoding="utf-8") as f:
            f.write(change(text))
        chat = Chat(other or model, self.home, "--continue", *(args if then is None else then))
        chat.say("/continue")
        chat.close()
        return saved(self.home)[0]

    def test_an_answer_that_was_shown_again_with_its_ids(self):
        """/retry keeps the answer that was cut, and /answer shows it again."""
        model = self.script(*"abcde")
        self.forget_chats()
        chat = Chat(model, self.home, "-n", "2")
        for line in "hi", "/retry", "/answer back":
            chat.say(line)
        chat.close()
        name, = glob.glob(os.path.join(chats(self.home), "*.jsonl"))
        with open(name, encoding="utf-8") as f:
            ids = [x["ids"] for x in map(json.loads, f) if x.get("role") == "assistant"]
        self.assertEqual(2, len(ids[0]))
        self.assertEqual(ids[0], ids[-1])
        chat = Chat(model, self.home, "--continue")
        chat.say("/continue")
        chat.close()
        with open(name, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        last = max(i for i, x in enumerate(lines) if "rewind" in x)
        answer = [x for x in lines[last:] if x.get("role") == "assistant"]
        self.assertEqual(["abcde", "stop"],
                         ["".join(x.get("text", "") for x in answer), answer[-1]["done"]])

    def test_without_ids(self):
        script = ["<think>", "x", "y", "</think>", "A", "B"]
        for change in old_file, torn:
            for n in 2, 3, 5:
                with self.subTest(change=change.__name__, n=n):
                    self.assertEqual(self.reopen(script, n, change), ["xy", "AB", "stop"])
                    self.assertEqual(self.reopen(script[1:], n - 1, change, template=OPENS),
                                     ["xy", "AB", "stop"])

    def test_text_that_older_versions_did_not_hold_back(self):
        stop = "--stop", "bcd"
        self.assertEqual(self.reopen("abcde", 2, with_held_text, *stop), ["", "ab", "stop"])
        self.assertEqual(self.reopen("abcxe", 2, with_held_text, *stop), ["", "abcxe", "stop"])
        self.assertEqual(self.reopen(["<think>", "a", "<", "/", "t", "</think>", "B"], 4,
                                     with_held_text), ["a</t", "B", "stop"])

    def test_other_stop_texts(self):
        for n, args, then, text in ((2, ["--stop", "bcd"], [], "abcde"),
                                    (2, [], ["--stop", "bcd"], "ab"),
                                    (3, ["--stop", "bcd"], ["--stop", "bc"], "a"),
                                    (3, [], ["--stop", "ab"], "abcde")):
            with self.subTest(args=args, then=then):
                self.assertEqual(self.reopen("abcde", n, str, *args, then=then),
                                 ["", text, "stop"])

    def test_ids_that_do_not_make_the_text(self):
        changes = {"text": lambda s: s.replace('"text":"abc"', '"text":"xbc"'),
                   "large": lambda s: re.sub(r'"ids":\[', '"ids":[4000000000,-1,', s),
                   "end": lambda s: re.sub(r'("ids":\[[^]]*)', r"\1,257", s),
                   "kinds": lambda s: re.sub(r'"ids":\[', '"ids":["x",{"a":[1]},', s)}
        for name, change in changes.items():
            with self.subTest(name):
                self.assertEqual(self.reopen("abcde", 3, change),
                                 ["", ("x" if name == "text" else "a") + "bcde", "stop"])

    def test_another_vocabulary(self):
        for script, n in ((["<think>", "x", "y", "</think>", "A", "B"], 2),
                          (["<think>", "x", "y", "</think>", "A", "B"], 5),
                          (["<think>", "x", "<", "/", "</think>", "A", "B"], 4)):
            other = self.script(*script, name="other", pieces=(b"AB", b"zq"),
                                marks=("<|a|>", "<|b|>", "<|im_start|>", END))
            with self.subTest(script=script, n=n):
                thinking = "".join(script[1:script.index("</think>")])
                self.assertEqual(self.reopen(script, n, str, other=other),
                                 [thinking, "AB", "stop"])


class Complete(SharedHome):
    """Only an answer that the model ended is complete."""

    def test_an_answer_that_the_model_ended(self):
        model = self.script(*"abcde")
        chat = Chat(model, self.home, "-n", "4")
        self.assertIn("4 tokens, token limit", chat.say("hi"))
        self.assertIn("2 more tokens", chat.say("/continue"))
        self.assertIn("the answer is complete", chat.say("/continue"))
        chat.close()
        self.assertEqual(saved(self.home), [["", "abcde", "stop"]])
        chat = Chat(model, self.home, "--continue")
        self.assertIn("the answer is complete", chat.say("/continue"))
        chat.close()

    def test_an_answer_that_ended_at_a_stop_text(self):
        model = self.script(*"abcde")
        chat = Chat(model, self.home, "--stop", "c")
        self.assertIn("ab", chat.say("hi"))
        self.assertIn("1 more token", chat.say("/continue"))
        chat.close()
        chat = Chat(model, self.home, "--continue")
        self.assertIn("cde", chat.say("/continue"))
        chat.close()
        self.assertEqual(saved(self.home), [["", "abcde", "stop"]])


class Resume(SharedHome):
    """The last line names the chat, which a newer one does not change."""

    def check(self, *options):
        model = self.script(*"abcde")
        for name in "", "it's mine":
            with self.subTest(name=name):
                self.forget_chats()
                path, command = self.leave(model, "older", name, *options)
                self.leave(model, "newer", "", *options)
                t = Terminal(*shlex.split(command)[1:], "-m", model, *ARGUMENTS[1:], *options,
                             home=self.home, cols=200)
                self.addCleanup(t.close)
                self.assertTrue(t.sees("/help lists"), t.screen())
                t.send("/save\r")
                self.assertTrue(t.sees(path), t.screen())

    def leave(self, model, word, name, *options):
        t = Terminal("chat", "-m", model, *ARGUMENTS[1:], *options, home=self.home, cols=200)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists"), t.screen())
        t.send(word + " question\r")
        self.assertTrue(t.sees("6 tokens"), t.screen())
        if name:
            t.send(f"/rename {name}\r")
            self.assertTrue(t.sees("is now"), t.screen())
        t.send("/quit\r")
        while t.pump(1):
            pass
        return re.search(r"hat is saved in (.*?)(?:\n|; )(memwall --open .*) resumes it",
                         t.screen()).groups()

    def test_the_screen_names_the_chat(self):
        self.check()

    def test_budget_and_types_come_back_without_options(self):
        self.forget_chats()
        _, command = self.leave(self.script(*"abcde"), "older", "", "--memory", "200M",
                                "--kv", "f32")
        self.assertRegex(command, "^memwall --open [-0-9]+$")

    def test_plain_mode_names_the_chat(self):
        self.check("--plain")


class TakenBack(SharedHome):
    """Plain mode cannot put a text into the line of the terminal: Enter sends it again."""

    def messages(self):
        name, = glob.glob(os.path.join(chats(self.home), "*.jsonl"))
        kept = []
        with open(name, encoding="utf-8") as f:
            for x in map(json.loads, f):
                if x.get("role") == "user":
                    kept.append(x["text"])
                elif x.get("role") == "assistant":
                    kept.append("ANSWER")
                elif "rewind" in x:
                    del kept[x["rewind"]:]
        return [x for x in kept if x != "ANSWER"]

    def check(self, steps, kept):
        """Each step is a line, and text that follows it."""
        chat = Chat(self.script(*"ab"), self.home)
        for line, shown in steps:
            at = len(chat.terminal.raw)
            chat.terminal.send(line + "\r")
            chat.wait(shown.encode(), at)
        chat.close()
        self.assertEqual(kept, self.messages())

    def test_enter_sends_it_again(self):
        answer, again = "3 tokens", "Enter sends it again"
        for takes in "/undo", "/rewind 1":
            with self.subTest(takes):
                self.forget_chats()
                self.check([("one", answer), ("two", answer), (takes, "taken back: two"),
                            ("", answer)], ["one", "two"])
        self.forget_chats()
        self.check([("one", answer), ("two", answer), ("/undo", again), ("/undo", again),
                    ("/stats", "decoding"), ("", answer)], ["one"])
        self.forget_chats()
        self.check([("one", answer), ("/undo", again), ("new", answer), ("", "> ")], ["new"])

    def test_lines_of_a_long_message(self):
        self.check([("first\\\rsecond", "3 tokens"),
                    ("/undo", "taken back:\r\nfirst\r\nsecond"), ("", "3 tokens")],
                   ["first\nsecond"])


class Screen(SharedHome):
    def check(self, *lines):
        """An answer is cut after "ab", where "bcd" is a stop text.  Then these lines, each with
        what it shows, and /continue."""
        model = self.script(*"abcde")
        t = Terminal("chat", "-m", model, *ARGUMENTS[1:], "-n", "2", "--stop", "bcd",
                     home=self.home, cols=200)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists"), t.screen())
        for line, shown in ("hi", "2 tokens, token limit"), *lines:
            t.send(line + "\r")
            self.assertTrue(t.sees(shown), t.screen())
        self.assertRegex(t.screen(), r"\bab ")
        t.send("/continue\r")
        self.assertTrue(t.loses(" ab "), t.screen())
        self.assertTrue(t.loses("token limit"), t.screen())
        self.assertRegex(t.screen(), r"\ba  ")

    def test_text_that_was_held_back_is_taken_back(self):
        self.check()

    def test_the_same_after_another_answer_was_taken_back(self):
        self.check(("/predict 1", "limited to 1 token"), ("again", "1 token, token limit"),
                   ("/undo", "> again"), ("\025/predict 9", "limited to 9 tokens"))


if __name__ == "__main__":
    unittest.main()
