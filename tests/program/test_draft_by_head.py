#!/usr/bin/env python3
"""memwall run --draft mtp: a draft head gives the same text with fewer passes over the weights."""
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_head import assistant, gemma4_chain  # noqa: E402
from chain_model import spell  # noqa: E402
from program import (FolderCase, MeasuredHome, budget, memwall, reference,  # noqa: E402
                     smallest_without_screen)
from terminal import Terminal  # noqa: E402

MARKS = [f"<{i}>" for i in range(150)]


class Heads(FolderCase):
    def ask(self, model, *args, prompt="<0>", code=0, depth="7"):
        r = memwall("run", "-m", model.path, "--raw", "--temp", "0", "-n", "120", "-b", "256M",
                    "--json", "--draft-depth", depth, *args, prompt)
        self.assertEqual(code, r.returncode, r.stderr)
        return json.loads(r.stdout.splitlines()[-1])

    def walk(self, **more):
        """A model that says each mark once, so no earlier text has the next one."""
        return gemma4_chain(self.folder, "walk", spell(*MARKS), user=MARKS, **more)

    def test_a_head_beside_the_model_drafts(self):
        model = self.walk(n_ff=4096)
        off = self.ask(model, "--draft", "off")
        self.assertEqual("".join(MARKS[1:121]), off["text"])
        self.assertEqual(0, self.ask(model)["n_accepted"])
        assistant(self.folder, "walk-assistant", model)
        for how in "mtp", "auto":
            on = self.ask(model, "--draft", how)
            self.assertEqual(off["text"], on["text"])
            self.assertEqual(119, on["n_pass"] + on["n_accepted"])
            self.assertLess(on["n_pass"], 119 / 8 + 3)
        self.assertEqual(0, self.ask(model, "--draft", "ngram")["n_accepted"])

    def test_a_head_as_large_as_the_model_is_not_used_unasked(self):
        model = self.walk()
        assistant(self.folder, "walk-assistant", model)
        self.assertEqual(0, self.ask(model)["n_accepted"])
        self.assertGreater(self.ask(model, "--draft", "mtp")["n_accepted"], 60)

    def test_wrong_drafts_change_no_token(self):
        model = self.walk()
        wrong = {MARKS[i]: MARKS[(7 * i) % 150] for i in range(1, 150, 5)}
        head = assistant(self.folder, "other", model, wrong)
        for temp in "0", "0.8", "1.5":
            same = ("--temp", temp, "--seed", "7")
            off = self.ask(model, "--draft", "off", *same)
            for depth in "1", "3", "15", "0":
                on = self.ask(model, "--draft", head, *same, depth=depth)
                self.assertEqual((off["text"], off["done"]), (on["text"], on["done"]),
                                 (temp, depth))
                if temp == "0" and depth != "0":
                    self.assertGreater(on["n_accepted"], 119 / 3)
                    self.assertGreater(on["n_drafted"], on["n_accepted"])

    def test_all_budgets_and_ways_to_read_give_the_same(self):
        model = self.walk()
        head = assistant(self.folder, "other", model, {"<5>": "<6>", "<30>": "<9>"})
        off = self.ask(model, "--draft", "off")
        plan = json.loads(memwall("plan", model.path, "-b", "1G", "--json", "--draft", head).stdout)
        self.assertGreater(plan["rows"]["drafter"], 0)
        least = str(smallest_without_screen(plan) + (1 << 20))
        for args in (("-b", least), ("--io", "mmap"), ("--io", "buffered"), ("-t", "3"),
                     ("--kv", "q8_0"), ("--disk-rate", "20M", "-b", least), ("--chunk", "16")):
            on = self.ask(model, "--draft", head, *args)
            self.assertEqual(off["text"], on["text"], args)
            if least not in args:  # there may be no memory for scores of drafts
                self.assertGreater(on["n_accepted"], 60, args)

    def test_recurrent_layers_and_a_head_in_the_file(self):
        model = reference("mtp-qwen35moe.gguf")
        for temp in "0", "0.9":
            asked = [memwall("run", "-m", model, "--raw", "--temp", temp, "--seed", "3", "-n", "60",
                             "-b", "256M", "--json", "--draft", how, "--draft-depth", depth, "the")
                     for how, depth in (("off", "0"), ("mtp", "4"), ("mtp", "15"))]
            off, *on = (json.loads(r.stdout.splitlines()[-1]) for r in asked)
            self.assertEqual([off["text"]] * 2, [x["text"] for x in on])
            self.assertGreater(min(x["n_drafted"] for x in on), 60)

    def test_a_context_that_gets_full_ends_at_the_same_token(self):
        model = self.walk()
        head = assistant(self.folder, "other", model)
        for ctx in "20", "47", "64":
            off, on = (self.ask(model, "-c", ctx, "--draft", how, code=1) for how in ("off", head))
            self.assertEqual(("context", off["text"]), (on["done"], on["text"]))

    def chat(self, model, *lines, args=()):
        """Returns all that the terminal showed, after these lines; each comes with what it shows."""
        home = MeasuredHome()
        self.addCleanup(home.cleanup)
        t = Terminal("chat", "-m", model.path, "--plain", "--color", "never", "--raw", "--temp", "0",
                     "-n", "60", "--draft-depth", "4", "--memory", budget(256), *args,
                     home=home.name, rows=50, cols=120)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists commands and keys"), t.screen())
        for line, shown in lines:
            at, end = len(t.raw), time.monotonic() + 60
            t.send(line + "\r")
            while shown.encode() not in t.raw[at:]:
                self.assertTrue(time.monotonic() < end and t.pump(0.1), (line, t.screen()))
        return t.raw.decode(errors="replace")

    def test_a_head_is_taken_in_a_running_chat(self):
        model = self.walk()
        head = assistant(self.folder, "other", model)
        shown = self.chat(model, ("<0>", "* 60 tokens"), ("/draft mtp", "has no draft head"),
                          ("/draft " + head, "apply?"), ("y", ""), ("<60>", "* 60 tokens"),
                          ("/why", "were drafted"), args=("--draft", "off"))
        self.assertIn("".join(MARKS[61:121]), shown.replace("\r\n", ""))

    def test_a_head_beside_the_model_is_found_later(self):
        model = self.walk()
        assistant(self.folder, "walk-assistant", model)
        self.chat(model, ("<0>", "* 60 tokens"), ("/draft mtp", "apply?"), ("y", ""),
                  ("<60>", "* 60 tokens"), ("/why", "were drafted"), args=("--draft", "off"))

    def test_the_head_is_named(self):
        model = self.walk()
        self.assertNotIn("draft head", memwall("inspect", model.path).stdout)
        assistant(self.folder, "walk-assistant", model)
        r = memwall("inspect", model.path)
        self.assertIn("draft head    beside it: walk-assistant.gguf, 2 layers; a draft uses",
                      r.stdout)
        head = json.loads(memwall("inspect", "--json", model.path).stdout)["draft_head"]
        self.assertEqual(("walk-assistant", "walk-assistant.gguf", False, 2),
                         (head["name"], head["file"], head["in_model"], head["n_layer"]))
        r = memwall("inspect", reference("mtp-qwen35moe.gguf"))
        self.assertIn("draft head    in the file, 1 layer; a draft uses", r.stdout)

    def test_a_model_without_a_head(self):
        r = memwall("run", "-m", self.walk().path, "--draft", "mtp", "x")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertIn("the model has no draft head", r.stderr)
        r = memwall("run", "-m", self.walk().path, "--draft", "no/such.gguf", "x")
        self.assertEqual(1, r.returncode)
        self.assertIn("no/such.gguf", r.stderr)

    def test_a_file_that_is_for_another_model_is_not_used(self):
        model = self.walk()
        other = gemma4_chain(self.folder, "other", spell(*MARKS[:40]), user=MARKS[:40])
        assistant(self.folder, "a-assistant", other)
        r = memwall("run", "-m", model.path, "--draft", "mtp", "x")
        self.assertIn("the model has no draft head", r.stderr)
        assistant(self.folder, "b-assistant", model)
        self.assertGreater(self.ask(model, "--draft", "mtp")["n_accepted"], 60)


if __name__ == "__main__":
    unittest.main()
