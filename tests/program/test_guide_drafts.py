#!/usr/bin/env python3
"""The guide with its assistant, a trained pair: the same answers with fewer passes."""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import (SRCDIR, FolderCase, budget, memwall,  # noqa: E402
                     smallest_without_screen)

MODELS = os.path.join(SRCDIR, "share", "models")
GUIDE = os.path.join(MODELS, "memwall-guide.gguf")
ASSISTANT = os.path.join(MODELS, "memwall-guide-assistant.gguf")
HELD_BACK = os.path.join(MODELS, "train", "heldback.txt")  # the assistant never saw these either


def questions(n):
    """Some questions without an earlier turn, from all over the file."""
    with open(HELD_BACK, encoding="ascii") as f:
        found = [m[1] for line in f if (m := re.match(r"[a-z0-9-]+: (.+)", line))]
    return found[::len(found) // n][:n]


class GuideDrafts(FolderCase):
    def ask(self, question, *args, memory=budget(100)):
        r = memwall("run", "-m", GUIDE, "--json", "-b", memory, "--draft-depth", "4", *args,
                    question)
        self.assertEqual(0, r.returncode, r.stderr)
        return json.loads(r.stdout.splitlines()[-1])

    def test_the_assistant_is_found_beside_the_guide(self):
        shown = memwall("inspect", GUIDE).stdout
        self.assertRegex(shown, r"draft head +beside it: memwall-guide-assistant\.gguf, 2 layers")
        self.assertGreater(self.ask("What is the memory wall?")["n_accepted"], 10)

    def test_the_list_does_not_show_it(self):
        shown = json.loads(memwall("list", "--json", MODELS).stdout)
        self.assertNotIn("assistant", json.dumps([m["name"] for m in shown]))

    def test_held_back_questions_need_few_passes_and_have_the_same_answers(self):
        n, drafted, right, first, passes, tokens = 0, 0, 0, 0, 0, 0
        for question in questions(20):
            off = self.ask(question, "--draft", "off")
            if "help" in off:  # the program answers it
                continue
            on = self.ask(question, "--draft", "mtp")
            self.assertEqual((off["text"], off["n_decoded"]), (on["text"], on["n_decoded"]))
            self.assertEqual(off["n_pass"], on["n_pass"] + on["n_accepted"])
            n += 1
            drafted += on["n_drafted"]
            right += on["n_accepted"]
            passes += on["n_pass"]
            tokens += on["n_pass"] + on["n_accepted"]
            first += on["accepted_at"][0] * on["n_pass"]
        self.assertGreater(n, 10)
        self.assertGreater(first / passes, 0.75)   # of the first drafts
        self.assertGreater(tokens / passes, 3)     # of 5 at most
        self.assertGreater(right / drafted, 0.5)

    def test_any_temperature_and_budget_has_the_same_answer(self):
        plan = json.loads(memwall("plan", "-m", GUIDE, "--json", "-c", "512", "--draft",
                                  "mtp").stdout)
        smallest = str(smallest_without_screen(plan))
        for args in (("--temp", "1", "--top-k", "0", "--seed", "3"),
                     ("--temp", "0.7", "--top-k", "20", "--seed", "4"),
                     ("--kv", "q8_0"), ("--threads", "1"), ("--chunk", "8")):
            off, on, tight = (
                self.ask("Does more memory make it faster?", *args, "-c", "512", "--draft", how,
                         memory=memory)
                for how, memory in (("off", budget(100)), ("mtp", budget(100)),
                                    ("mtp", smallest)))
            self.assertGreater(on["n_accepted"], 0, args)
            self.assertEqual((off["text"], off["n_decoded"]), (on["text"], on["n_decoded"]), args)
            self.assertEqual(off["text"], tight["text"], args)

    def test_a_plan_and_the_statistics_name_it(self):
        shown = memwall("plan", "-m", GUIDE, "--draft", "mtp", "-b", budget(100)).stdout
        self.assertIn("Tokens are drafted by the head in memwall-guide-assistant.gguf", shown)
        self.assertRegex(shown, r"Answers ~[\d,.]+\?? tok/s if 70 % of the drafts are right, "
                                r"~[\d,.]+\?? if none is; ")
        self.assertRegex(shown, r"\nEach pass verifies \d+ drafts\.\n")  # all weights are pinned


if __name__ == "__main__":
    unittest.main(verbosity=2)
