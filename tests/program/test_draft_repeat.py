#!/usr/bin/env python3
"""Drafts from earlier text, with a model that repeats a text of 300 words and edits it."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import memwall  # noqa: E402
from repeat_model import edited, repeater, texts  # noqa: E402


class Repeats(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = repeater(folder.name, "repeater").path

    def run_it(self, text, *args):
        r = memwall("run", "-m", self.model, "--temp", "0", "-b", "256M", *args, stdin=text)
        self.assertEqual(0, r.returncode, r.stderr)
        return r.stdout

    def ask(self, text, *args):
        return json.loads(self.run_it(text, "--json", *args).splitlines()[-1])

    def compare(self, text, *args):
        """Returns the answers without drafts and with 15, which must be the same."""
        off, on = (self.ask(text, *args, "--draft", how, "--draft-depth", "15")
                   for how in ("off", "ngram"))
        self.assertEqual((off["text"], off["n_decoded"]), (on["text"], on["n_decoded"]))
        self.assertEqual(off["n_pass"], on["n_pass"] + on["n_accepted"])
        return off, on

    def test_a_text_is_repeated_in_few_passes(self):
        for text in texts(3):
            off, on = self.compare(text)
            self.assertEqual(text, off["text"])
            self.assertGreater(on["n_accepted"], 0.9 * on["n_drafted"])
            self.assertGreater(on["tokens_per_pass"], 10)
        self.assertEqual(*(self.run_it(text, "--ids", "--draft", how) for how in ("off", "ngram")))

    def test_drafts_go_on_after_a_replaced_word(self):
        for text in texts(3):
            rules, other, places = edited(text, 5)
            off, on = self.compare(text, "--system", rules)
            self.assertEqual(other, off["text"])
            self.assertGreater(places, 4)
            # Each change ends a pass, and hardly any needs another one.
            self.assertLess(on["n_pass"], off["n_pass"] / 16 + places + 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
