#!/usr/bin/env python3
"""memwall --once prints the dashboard of an idle chat as text, or its figures with --json."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MODELS, memwall  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")


class Once(unittest.TestCase):
    def test_the_dashboard_is_printed_as_text(self):
        r = memwall("chat", "--once", "-m", MODEL, "-b", "256M")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        self.assertNotIn("\x1b", r.stdout)
        for words in ("of  256 MiB", "p program", "0 of 4,096 tokens", "head"):
            self.assertIn(words, r.stdout)

    def test_the_name_of_the_command_is_optional(self):
        r = memwall("--once", "-m", MODEL, "-b", "256M")
        self.assertEqual(0, r.returncode)
        self.assertIn("of  256 MiB", r.stdout)

    def test_json_has_its_figures(self):
        for args in (("--once", "--json"), ("--json",)):
            r = memwall("chat", *args, "-m", MODEL, "-b", "256M", "-c", "2k", "--kv", "f32")
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            self.assertEqual(1, r.stdout.count("\n"))
            figures = json.loads(r.stdout)
            self.assertEqual("idle", figures["state"])
            self.assertEqual((2048, 256 << 20, "f32"),
                             tuple(figures["run"][k] for k in ("ctx", "budget_bytes", "kv_k")))
            self.assertEqual(0, figures["kv"]["tokens"])
            self.assertGreater(figures["mem"]["plan_kv_global"], 0)
            self.assertGreater(figures["os"]["rss"], 0)

    def test_a_model_that_does_not_fit_is_refused(self):
        r = memwall("chat", "--once", "-m", MODEL, "-b", "1M")
        self.assertEqual((3, ""), (r.returncode, r.stdout))
        self.assertIn("pinned", r.stderr)

    def test_the_configuration_cannot_set_it(self):
        r = memwall("run", "-m", MODEL, "hello", config="once = yes\n")
        self.assertEqual(1, r.returncode)
        self.assertIn("once", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
