#!/usr/bin/env python3
"""An answer without text says why, and where stop texts are looked for."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain, spell  # noqa: E402
from program import HomeCase, MEMWALL, MeasuredHome, budget, environment, memwall  # noqa: E402
from terminal import Terminal  # noqa: E402

END = "<|im_end|>"
# The buffers of OpenBLAS would take most of the budget.
ARGUMENTS = ("--temp", "0", "--memory", budget(64), "--blas", "never")
SWITCH = CHATML.replace("assistant\n'", "assistant\n' + ('<think>\n\n</think>\n\n' "
                        "if enable_thinking is defined and not enable_thinking else '')")
THINKS = {"\n": "<think>", "<think>": "l", "l": "o", "o": "s", "s": "l"}  # without end


class Empty(HomeCase):
    def model(self, links, **more):
        more.setdefault("template", SWITCH)
        return chain(self.folder, "m", links, user=("<think>", "</think>"),
                     marks=("<|im_start|>", END, "<|hidden|>"), **more).path

    def check(self, links, *args, says, empty, done="stop", code=0, text=""):
        """The reason is on standard error and in the JSON, and not printed with --quiet."""
        args = ("-m", self.model(links), "-c", "128", *ARGUMENTS, *args, "hi")
        plain, quiet, js = (memwall("run", *more, *args) for more in ((), ("-q",), ("--json",)))
        self.assertEqual([x.returncode for x in (plain, quiet, js)], [code] * 3)
        self.assertEqual(plain.stdout.strip(), text)
        self.assertIn("the answer has no text: " + says, plain.stderr)
        self.assertNotIn("incomplete", plain.stderr)
        self.assertNotIn("no text", quiet.stderr)
        last = json.loads(js.stdout.splitlines()[-1])
        self.assertEqual((last["done"], last["empty"]), (done, empty))
        self.assertIn(says, last["reason"])

    def test_the_limit_while_the_model_thinks(self):
        self.check(THINKS, "-n", "20", done="length", empty="thinking",
                   says="the limit of 20 tokens (-n) was reached while the model was thinking; "
                        "use a larger -n, or --no-think")

    def test_only_advice_that_helps(self):
        for args in (), ("--no-think",):
            for template, says in ((CHATML, "; the chat template has no switch for thinking"),
                                   (SWITCH, "" if args else ", or --no-think")):
                model = self.model(THINKS, template=template)
                out = memwall("run", "-m", model, *ARGUMENTS, "--json", "-n", "9", *args, "hi")
                reason = json.loads(out.stdout.splitlines()[-1])["reason"]
                self.assertEqual(reason.split("use a larger -n")[1], says, (args, template))

    def test_a_chat_says_it_once(self):
        t = Terminal("chat", "--plain", "-m", self.model(THINKS), "-c", "256", *ARGUMENTS,
                     "-n", "9", home=self.folder, cols=300)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists"), t.screen())
        t.send("hi\r")
        self.assertTrue(t.sees("no text yet: the limit of 9 tokens (/predict) was reached while "
                               "the model was thinking; use a larger /predict, or /think off"),
                        t.screen())
        for n in 8, 7:
            t.send(f"/predict {n}\r")
            self.assertTrue(t.sees(f"limited to {n} tokens"), t.screen())
            t.send("/continue\r")
            self.assertTrue(t.sees(f"{n} more tokens"), t.screen())
        t.send("/predict 6\r")
        self.assertTrue(t.sees("limited to 6 tokens"), t.screen())
        self.assertEqual(t.screen().count("no text yet"), 1, t.screen())

    def test_the_limit_after_the_thinking(self):
        self.check(spell("\n", "<think>", "a", "</think>", "b", END), "-n", "3", done="length",
                   empty="thought",
                   says="the limit of 3 tokens (-n) was reached after the thinking; use a larger")

    def test_the_limit_after_the_mark_that_opens_the_thinking(self):
        self.check(THINKS, "-n", "1", done="length", empty="thinking",
                   says="the limit of 1 token (-n) was reached while")

    def test_the_limit_inside_a_character(self):
        self.check({"\n": b"\xf0", b"\xf0": b"\x9f"}, "-n", "2", done="length", empty="hidden",
                   says="the limit of 2 tokens (-n) was reached, and its tokens have no text")

    def test_an_end_inside_and_after_the_thinking(self):
        self.check(spell("\n", "<think>", "a", END), empty="thinking",
                   says="the model ended it while the model was thinking; --no-think")
        self.check(spell("\n", "<think>", "a", "</think>", END), empty="thought",
                   says="the model ended it after the thinking; --no-think")

    def test_the_first_token_ends_it(self):
        self.check({"\n": END}, says="the model ended it at once", empty="nothing")

    def test_another_turn_begins_at_once(self):
        self.check({"\n": "<|im_start|>", "<|im_start|>": "a"}, says="the model ended it at once",
                   empty="nothing")

    def test_a_stop_text_comes_first(self):
        self.check(spell("\n", "abc", END), "--stop", "ab", empty="stop_text",
                   says="a stop text (--stop) came first")
        self.check(spell("\n", "<think>", "x", "</think>", "abc", END), "--stop", "ab",
                   says="a stop text (--stop) came first", empty="stop_text")

    def test_only_white_space(self):
        self.check({"\n": " ", " ": "\t", "\t": END}, empty="blank",
                   says="the model ended it, and its text is blank")

    def test_only_characters_that_cannot_be_seen(self):
        for text in "\u200b", "\ufeff", "\u2060", "\x01":
            with self.subTest(text=text):
                self.check(spell("\n", *(bytes([b]) for b in text.encode()), END), empty="blank",
                           says="the model ended it, and its text is blank", text=text)

    def test_only_tokens_without_text(self):
        self.check({"\n": "<|hidden|>", "<|hidden|>": END}, empty="hidden",
                   says="the model ended it, and its tokens have no text")

    def test_a_full_context(self):
        self.check(THINKS, done="context", empty="thinking", code=1,
                   says="the context was full while the model was thinking; use a larger --ctx")

    def test_a_signal(self):
        model = self.model(THINKS, keys={"qwen2.context_length": (4, 1 << 20)})
        with MeasuredHome() as home:
            p = subprocess.Popen([MEMWALL, "run", "-m", model, "-c", "256k", "--temp", "0",
                                  "--memory", budget(512), "--json", "hi"], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment(home))
            p.stdout.readline()
            p.send_signal(signal.SIGINT)
            out, err = p.communicate()
        last = json.loads(out.splitlines()[-1])
        self.assertEqual((p.returncode, last["done"], last["empty"]),
                         (130, "cancelled", "thinking"))
        self.assertIn("the answer has no text: it was stopped while the model was thinking", err)

    def test_an_answer_with_text_says_nothing(self):
        model = self.model(spell("\n", "<think>", "a", "</think>", "b", END))
        out = memwall("run", "-m", model, *ARGUMENTS, "--json", "hi")
        self.assertNotIn("empty", json.loads(out.stdout.splitlines()[-1]))
        self.assertNotIn("no text", out.stderr)

    def test_a_chat_says_it_too(self):
        for links, args, says in (
                (THINKS, ("-n", "9"), "the limit of 9 tokens (/predict) was reached while the model"),
                ({"\n": END}, (), "the answer has no text: the model ended it at once"),
                ({"\n": "<|hidden|>"}, (), "and its tokens have no text"),
                ({"\n": " "}, (), "and its text is blank"),
                (spell("\n", "ab", END), ("--stop", "ab"), "a stop text (--stop) came first")):
            for mode in ("--plain",), ():
                with self.subTest(says=says, mode=mode):
                    t = Terminal("chat", "-m", self.model(links), "-c", "256", *ARGUMENTS, *mode,
                                 *args, home=self.folder, cols=300)
                    try:
                        self.assertTrue(t.sees("/help lists"), t.screen())
                        t.send("hi\r")
                        self.assertTrue(t.sees(says), t.screen())
                    finally:
                        t.close()


class Stop(HomeCase):
    """Stop texts are looked for in the text of an answer, not in its thinking."""

    def test_thinking_is_not_searched(self):
        model = chain(self.folder, "m", spell("\n", "<think>", "asgb", "</think>", "cd", END),
                      user=("<think>", "</think>")).path
        args = ("-m", model, *ARGUMENTS, "hi")
        for stop, text in (("sg", "cd"), ("gbc", "cd"), ("d", "c"), ("</think>", "cd")):
            out = memwall("run", "--json", "--stop", stop, *args)
            last = json.loads(out.stdout.splitlines()[-1])
            self.assertEqual((last["thinking"], last["text"]), ("asgb", text), stop)
            out = memwall("run", "--stop", stop, *args)
            self.assertEqual(out.stdout, text + "\n")

    def test_a_raw_answer_is_searched_whole(self):
        model = chain(self.folder, "m", spell("i", "asgb", END)).path
        out = memwall("run", "--raw", "--stop", "sg", "-m", model, *ARGUMENTS, "hi")
        self.assertEqual(out.stdout.strip(), "a")


if __name__ == "__main__":
    unittest.main()
