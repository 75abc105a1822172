#!/usr/bin/env python3
"""All commands plan alike: a context that fits only with keys and values on the disk fits in each
of them, and in none with --kv-disk never."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import BUILDDIR, MEMWALL, MODELS, TIMEOUT_S, MeasuredHome, environment  # noqa: E402
from program import smallest_without_screen  # noqa: E402

CTX = ("--ctx", "65536", "--threads", "1")


class OnePlan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = MeasuredHome(dir=BUILDDIR)  # on a disk
        cls.addClassCleanup(folder.cleanup)
        cls.home = folder.name
        cls.folder = os.path.join(cls.home, "one")
        os.mkdir(cls.folder)
        cls.model = shutil.copy(os.path.join(MODELS, "llama-tiny.gguf"), cls.folder)
        cls.plan = cls.json("plan", cls.model, *CTX)
        # Between the two, only keys and values on the disk fit.
        cls.least = cls.plan["smallest_budget_bytes"]
        cls.never = cls.json("plan", cls.model, *CTX,
                             "--kv-disk", "never")["smallest_budget_bytes"]

    @classmethod
    def run_it(cls, *args, stdin="", home=None):
        return subprocess.run([MEMWALL, *args], env=environment(home or cls.home), input=stdin,
                              capture_output=True, text=True, timeout=TIMEOUT_S)

    @classmethod
    def json(cls, *args, code=0):
        r = cls.run_it(*args, "--json")
        assert r.returncode == code, (args, r.returncode, r.stderr)
        return json.loads(r.stdout)

    def listed(self, *args):
        found = self.json("list", self.folder + "/", *CTX, *args)
        self.assertEqual(1, len(found))
        return found[0]

    def test_the_disk_makes_the_difference(self):
        self.assertLess(self.least, self.never - (1 << 20))

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_list_has_the_figures_of_plan(self):
        for _ in range(2):  # the second time headers are not read
            for budget in self.least, (self.least + self.never) // 2, self.never + (8 << 20):
                memory = "--memory", str(budget)
                plan = self.json("plan", self.model, *CTX, *memory)
                found = self.listed(*memory)
                self.assertTrue(plan["fits"] and found["fits"], (budget, found["here"]))
                for name in "budget_bytes", "streamed_bytes":
                    self.assertEqual(plan[name], found[name], (budget, name))
                self.assertEqual(budget < self.never, plan["kv_disk_bytes"] > 0)
            memory = "--memory", str(self.least)
            self.assertFalse(self.listed(*memory, "--kv-disk", "never")["fits"])

    def test_a_context_that_plan_accepts_fits_everywhere(self):
        memory = "--memory", str(smallest_without_screen(self.plan))
        screen = "--memory", str(self.least)
        for args, stdin in ((("eval", "-m", self.model, "--ids", "-", "--greedy", "1", *memory),
                             "1 2 3"),
                            (("run", "-m", self.model, "-n", "2", "-q", *memory, "hi"), ""),
                            (("bench", self.model, "-p", "8", "-n", "4", "-r", "1", *memory),
                             ""),
                            (("chat", "-m", self.model, "--once", *screen), ""),
                            (("doctor", self.model, "--no-disk", *screen), "")):
            r = self.run_it(*args, *CTX, stdin=stdin)
            self.assertEqual(0, r.returncode, (args, r.stderr))
            self.assertNotIn("stay in memory", r.stdout + r.stderr, args)
        for args in ("eval", "-m", self.model, "--ids", "-", "--greedy", "1", *memory), \
                ("run", "-m", self.model, "-q", *memory, "hi"), \
                ("chat", "-m", self.model, "--once", *screen):
            r = self.run_it(*args, *CTX, "--kv-disk", "never", stdin="1 2 3")
            self.assertEqual(3, r.returncode, (args, r.stderr))

    def test_a_file_that_says_no_save_counts_for_all(self):
        home = os.path.join(self.home, "private")
        os.makedirs(os.path.join(home, ".config", "memwall"))
        with open(os.path.join(home, ".config", "memwall", "config"), "w") as f:
            f.write("no-save = yes\n")
        for args in ("plan", self.model), ("run", "-m", self.model, "-q", "hi"), \
                ("chat", "-m", self.model, "--once"):
            r = self.run_it(*args, *CTX, "--memory", str(self.least), home=home)
            self.assertEqual(3, r.returncode, (args, r.stderr))
            self.assertIn("stay in memory: --no-save", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
