#!/usr/bin/env python3
"""A copy of the model on another disk shares the reads: the same answer, in the same budget, and
also if the copy fails in the middle of it."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import wide_chain  # noqa: E402
from program import BUILDDIR, MEMWALL, TIMEOUT_S, MeasuredHome, environment  # noqa: E402

ARGUMENTS = ("-c", "256", "--blas", "never", "-t", "2")


class Mirror(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Share a home, so that the machine is measured once, and a budget in which most weights
        stream."""
        folder = MeasuredHome(dir=BUILDDIR)  # on a disk
        cls.addClassCleanup(folder.cleanup)
        cls.home = folder.name
        cls.model = wide_chain(cls.home, "model")
        cls.copy = os.path.join(cls.home, "copy.gguf")
        shutil.copy(cls.model, cls.copy)
        plan = subprocess.run([MEMWALL, "plan", cls.model, *ARGUMENTS, "--mirror", cls.copy,
                               "--json"], env=environment(cls.home), capture_output=True,
                              text=True, check=True, timeout=TIMEOUT_S)
        cls.least = json.loads(plan.stdout)["smallest_budget_bytes"]
        cls.budget = "-b", str(cls.least + (8 << 20))

    def setUp(self):
        shutil.copy(self.model, self.copy)

    def memwall(self, *args, code=0):
        r = subprocess.run([MEMWALL, *args], env=environment(self.home), capture_output=True,
                           text=True, timeout=TIMEOUT_S)
        self.assertEqual(code, r.returncode, r.stderr)
        return r

    def run_it(self, *args, code=0):
        return self.memwall("run", "-m", self.model, *ARGUMENTS, *self.budget, "-n", "12", "--temp",
                            "0", *args, "hi", code=code)

    def test_the_answer_is_the_same(self):
        plain = self.run_it().stdout
        r = self.run_it("--mirror", self.copy, "--stats")
        self.assertEqual(plain, r.stdout)
        self.assertRegex(r.stderr, r"disks +model [\d.]+ .B/s, mirror [\d.]+ .B/s")
        self.assertIn("the mirror is on the disk of the model", r.stderr)
        folder = os.path.join(self.home, "folder")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(self.model, folder)
        self.assertEqual(plain, self.run_it("--mirror", folder).stdout)
        r = self.run_it("--mirror", self.model)
        self.assertEqual(plain, r.stdout)
        self.assertIn("the mirror is the model's own file", r.stderr)

    def test_files_that_differ_are_refused_in_one_line(self):
        with open(self.copy, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            f.write(b"x")
        for command in ("run", "-m", self.model, "hi"), ("plan", self.model):
            r = self.memwall(*command, "--mirror", self.copy, code=1)
            self.assertRegex(r.stderr, r"^memwall: \S+/copy.gguf: at byte \d+: is not a copy of "
                                       r"the model: it has other bytes\n$")
            self.assertEqual("", r.stdout)
        os.truncate(self.copy, 1000)
        self.assertIn("its size is", self.run_it("--mirror", self.copy, code=1).stderr)
        os.unlink(self.copy)
        self.assertIn("No such file", self.run_it("--mirror", self.copy, code=1).stderr)
        self.assertIn("use another --io",
                      self.run_it("--mirror", self.model, "--io", "mmap", code=1).stderr)

    def test_a_copy_that_fails_in_an_answer_is_dropped(self):
        plain = self.run_it().stdout
        for fault in "cut", "changed":
            shutil.copy(self.model, self.copy)
            p = subprocess.Popen(
                [MEMWALL, "run", "-m", self.model, *ARGUMENTS, *self.budget, "-n", "12", "--temp",
                 "0", "--mirror", self.copy, "--disk-rate", "150M", "--json", "hi"],
                env=environment(self.home), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True)
            first = p.stdout.readline()
            self.assertIn("{", first)
            if fault == "cut":
                os.truncate(self.copy, 0)
            else:
                with open(self.copy, "r+b") as f:
                    f.seek(40 << 20)
                    f.write(b"other bytes")
            out, err = p.communicate(timeout=TIMEOUT_S)
            self.assertEqual(0, p.returncode, err)
            self.assertEqual(plain.strip(), json.loads(out.splitlines()[-1])["text"].strip())
            self.assertEqual(1, err.count("the mirror is not used any longer"), err)

    def plan(self, *args):
        return json.loads(self.memwall("plan", self.model, *ARGUMENTS, *self.budget, "--json",
                                       *args).stdout)

    def test_the_plan_has_the_sum_of_both_disks(self):
        slow = ("--disk-rate", "50M")
        one, two = self.plan(*slow), self.plan(*slow, "--mirror", self.copy)
        unequal = self.plan(*slow, "--mirror", self.copy, "--mirror-rate", "25M")
        self.assertGreater(two["limits"]["mirror_bytes_s"], 0)
        self.assertNotIn("mirror_bytes_s", one["limits"])
        self.assertGreater(one["streamed_bytes"], 0)
        for plan, times in (two, 2), (unequal, 1.5):
            rate = plan["decode_tps"] * plan["streamed_bytes"]
            self.assertAlmostEqual(times, rate / (one["decode_tps"] * one["streamed_bytes"]),
                                   delta=0.1)

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_a_mirror_stays_within_the_smallest_budget(self):
        r = self.memwall("run", "-m", self.model, *ARGUMENTS, "-b", str(self.least), "-n", "6",
                         "--temp", "0", "--mirror", self.copy, "--json", "hi")
        done = json.loads(r.stdout.splitlines()[-1])
        self.assertGreater(done["bytes_read"], 100 << 20)
        self.assertLessEqual(done["peak_charged"] or 0, self.least)


if __name__ == "__main__":
    unittest.main(verbosity=2)
