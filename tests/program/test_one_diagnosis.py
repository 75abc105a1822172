#!/usr/bin/env python3
"""One answer has one diagnosis: the verdict, the status bar, /why, F10, the sheet, /plan and the
receipt name the same bound and the same proposal, also where the limits are wrong."""
import json
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MODELS, memwall  # noqa: E402
from terminal import Terminal  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
TOKEN_S = 0.04  # of reading: people read faster
F10 = "\033[21~"


def next_and_said(t):
    """Tokens per second that the status bar predicts, and those of the newest notice."""
    shown = re.search(r"next ~([\d.,]+) tok/s", t.screen().splitlines()[-1])
    said = re.findall(r"(?:about|roughly) ([\d.,]+) tokens? a second",
                      " ".join(t.screen().split()))
    return [float(x.replace(",", "")) for x in (shown.group(1), said[-1])]


class Diagnosis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.home = holder.name
        r = memwall("plan", MODEL, "--memory", "1G", "--json", "--ctx", "512")
        plan = json.loads(r.stdout)
        cls.least = plan["smallest_budget_bytes"]
        cls.rate = int(plan["hot_bytes"] / TOKEN_S)

    def answer(self):
        """A chat whose tokens wait for the disk, at rest after its first answer."""
        t = Terminal("-m", MODEL, "--ctx", "512", "--memory", str(self.least), "--disk-rate",
                     str(self.rate), "-n", "24", "--temp", "0", home=self.home, rows=50, cols=170)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("commands and keys."), t.screen())
        self.assertTrue(t.sees("next ~"), t.screen())
        shown, said = next_and_said(t)
        self.assertAlmostEqual(said, shown, delta=0.01 * shown, msg=t.screen())
        t.send("hello\r")
        self.assertTrue(t.sees("disk wait"), t.screen())
        self.assertTrue(t.sees("/memory "), t.screen())
        return t

    def test_all_sentences_agree_with_the_receipt(self):
        t = self.answer()
        screen = " ".join(t.screen().split())
        waits = int(re.search(r"(\d+) % disk wait", screen).group(1))
        self.assertGreater(waits, 50)
        budget = re.search(r"/memory (\d+M) for ~[\d.]+ tok/s", screen).group(1)
        self.assertIn("disk-bound", screen)
        self.assertRegex(t.screen().splitlines()[-1], r"disk-bound \d+%")
        for other in ("compute-bound", "RAM-bandwidth-bound", "context-bound", "others-bound"):
            self.assertNotIn(other, screen)
        t.send("/why\r")
        self.assertTrue(t.sees(f"/memory {budget} for"), t.screen())
        self.assertTrue(t.sees("Now: disk-bound"), t.screen())
        t.send("/plan\r")
        self.assertTrue(t.sees("measured     "), t.screen())
        self.assertRegex(t.screen(), r"measured +[\d.]+ tok/s, disk-bound")
        t.send("\033")
        self.assertTrue(t.loses("held now"), t.screen())
        t.send(F10)
        self.assertTrue(t.sees("Change: memory"), t.screen())
        sheet = re.search(r"tokens/s +([\d.]+) +~([\d.]+) +\+(\d+) %, faster", t.screen())
        self.assertIsNotNone(sheet, t.screen())
        self.assertGreaterEqual(float(sheet.group(2)), 1.1 * float(sheet.group(1)))
        t.send("\r")
        self.assertTrue(t.sees("now: "), t.screen())
        self.assertTrue(t.sees("next ~"), t.screen())
        shown, said = next_and_said(t)
        self.assertAlmostEqual(said, shown, delta=0.01 * shown, msg=t.screen())

    def test_limits_of_a_bad_moment_say_nothing_about_other_settings(self):
        args = ("-m", MODEL, "--ctx", "512", "--memory", "1G")
        with tempfile.TemporaryDirectory() as home:
            t = Terminal(*args, home=home, rows=50, cols=170)
            self.assertTrue(t.sees("next ~"), t.screen())
            t.close()
            found = [os.path.join(at, name) for at, _, names in os.walk(home) for name in names
                     if name == "limits"]
            self.assertEqual(1, len(found))
            with open(found[0], encoding="utf-8") as f:
                lines = [json.loads(line) for line in f]
            for line in lines:
                line["doubtful"] = True
                for name in line: # reading is slow, so that the model is not fast enough to read
                    if name.endswith("bytes_s"):
                        line[name] = 1e6
            with open(found[0], "w", encoding="utf-8") as f:
                f.writelines(json.dumps(line) + "\n" for line in lines)
            t = Terminal(*args, home=home, rows=50, cols=170)
            self.addCleanup(t.close)
            self.assertTrue(t.sees("roughly"), t.screen())
            self.assertTrue(t.sees("next ~"), t.screen())
            t.send(F10)
            self.assertTrue(t.sees("measured in a bad moment"), t.screen())

    def test_other_keys_and_values_have_the_same_bound(self):
        t = self.answer()
        t.send("/ctx 256\r")
        self.assertTrue(t.sees("Change: "), t.screen())
        t.send("\r")
        self.assertTrue(t.sees("next ~"), t.screen())
        self.assertRegex(t.screen().splitlines()[-1], r"~disk-bound|~disk")

    def test_a_change_has_one_speed(self):
        """Also the sheet of the next one: what was measured does not hold for other threads."""
        t = self.answer()
        t.send("/threads 1\r")
        self.assertTrue(t.sees("Change: threads"), t.screen())
        t.send("\r")
        self.assertTrue(t.sees(", threads 1, "), t.screen())
        self.assertTrue(t.sees("next ~"), t.screen())
        shown, said = next_and_said(t)
        self.assertAlmostEqual(said, shown, delta=0.01 * shown, msg=t.screen())
        t.send("/ctx 256\r")
        self.assertTrue(t.sees("Change: ctx"), t.screen())
        sheet = re.search(r"tokens/s +~([\d.,]+) ", t.screen()).group(1)
        self.assertAlmostEqual(float(sheet), shown, delta=0.01 * shown, msg=t.screen())


if __name__ == "__main__":
    unittest.main(verbosity=2)
