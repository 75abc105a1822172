#!/usr/bin/env python3
"""memwall doctor measures memory, disk and arithmetic, as text and JSON, and keeps the limits."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, environment, memwall  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
TIMEOUT_S = 120


class Doctor(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)

    def doctor(self, *args, code=0, cwd=None):
        r = subprocess.run([MEMWALL, "doctor", *args], text=True, timeout=TIMEOUT_S, cwd=cwd,
                           env=environment(self.home.name), stdin=subprocess.DEVNULL,
                           capture_output=True)
        self.assertEqual(code, r.returncode, r.stderr)
        return r

    def figures(self, *args, **how):
        r = self.doctor("--json", *args, **how)
        self.assertEqual("", r.stderr)
        self.assertEqual(1, r.stdout.count("\n"))
        return json.loads(r.stdout)

    def test_a_folder_is_measured_and_left_as_it_was(self):
        with tempfile.TemporaryDirectory(dir=self.home.name) as folder:
            d = self.figures(folder)
            self.assertEqual([], os.listdir(folder))
        self.assertEqual(["memory", "disk", "arithmetic", "complete"], list(d))
        self.assertTrue(d["complete"])
        self.assertGreater(d["memory"]["total"], d["memory"]["available"])
        self.assertGreater(d["memory"]["read_1"], 1e6)
        self.assertGreater(d["memory"]["fresh_bytes_s"], 1e6)
        self.assertGreater(d["disk"]["small_read_s"], 0)
        self.assertGreater(d["disk"]["buffered_bytes_s"], 0)
        self.assertGreater(d["disk"]["mapped_bytes_s"], 0)
        if d["disk"]["direct_reads"] == "yes":
            cells = d["disk"]["direct"]
            self.assertEqual(16, len({(c["block_bytes"], c["depth"]) for c in cells}))
            for c in cells:
                self.assertGreater(c["bytes_s"], 0)
        self.assertGreater(d["arithmetic"]["q4_0_flops_s"], 1e6)
        for section in ("memory", "disk", "arithmetic"):
            for key, value in d[section].items():
                if value is None:
                    self.assertNotEqual("", d[section][key + "_why"])

    def test_text_has_the_same_sections(self):
        out = self.doctor(self.home.name).stdout
        self.assertEqual(["memory", "disk", "arithmetic"], re.findall(r"(?m)^(\w+)$", out))
        self.assertNotIn("\x1b", out)
        if "  direct reads, GB/s" in out:
            table = out.split("  direct reads, GB/s")[1].splitlines()[1:6]
            self.assertEqual(["1", "2", "4", "8"], table[0].split())
            self.assertEqual(["128", "512", "2.00", "8.00"], [row.split()[0] for row in table[1:]])
            self.assertEqual(1, sum(row.count("*") for row in table))

    def test_a_model_is_predicted_with_new_limits_which_are_kept(self):
        kept = os.path.join(self.home.name, ".cache", "memwall", "limits")
        subprocess.run([MEMWALL, "plan", MODEL], env=environment(self.home.name), check=True,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
        with open(kept) as f:
            line = f.read().split()
        line[0], line[7] = str(int(time.time()) - 600), "12345"  # the rate of memory
        with open(kept, "w") as f:
            print(*line, file=f)
        d = self.figures(MODEL)
        self.assertEqual("gemma4-tiny", d["model"]["name"][:11].lower())
        self.assertGreater(d["model"]["limits"]["memory"]["bytes_s"], 1e6)
        self.assertGreater(d["model"]["decode_tps"], 0)
        with open(kept) as f:
            lines = [line.split() for line in f]
        self.assertEqual(d["model"]["limits"]["measured"], int(lines[0][0]))
        self.assertNotIn("12345", [line[7] for line in lines if line[12] == line[15] == "0"
                                   and lines[0][12] == lines[0][15] == "0"])

    def test_without_the_disk_nothing_is_written(self):
        d = self.figures("--no-disk", cwd=self.home.name)
        self.assertEqual(["memory", "arithmetic", "complete"], list(d))
        self.assertEqual([], os.listdir(self.home.name))

    def test_a_model_that_streams_says_what_would_help(self):
        r = memwall("plan", MODEL, "--json")
        least = json.loads(r.stdout)["smallest_budget_bytes"]
        d = self.figures(MODEL, "--memory", str(least))["model"]
        if d["streamed_bytes"] > 0:
            self.assertGreater(d["all_pinned_bytes"], least)
        d = self.figures(MODEL, "--memory", "1M")
        self.assertFalse(d["complete"])
        self.assertIn("the budget is 1 MiB", d["model"]["error"])

    def test_a_folder_that_cannot_be_written_is_reported(self):
        d = self.figures("/proc")
        self.assertIn("could not write a file", d["disk"]["error"])
        self.assertGreater(d["arithmetic"]["q4_0_flops_s"], 0)
        self.assertFalse(d["complete"])

    def test_a_wrong_argument_is_refused(self):
        r = self.doctor("/nonexistent/x.gguf", code=1)
        self.assertEqual("", r.stdout)
        r = self.doctor(__file__, code=1)
        self.assertIn("GGUF", r.stderr)

    def test_a_stopped_measurement_prints_what_it_has(self):
        with tempfile.TemporaryDirectory(dir=self.home.name) as folder:
            p = subprocess.Popen([MEMWALL, "doctor", "--json", folder], text=True,
                                 env=environment(self.home.name), stdout=subprocess.PIPE)
            time.sleep(0.5)
            p.send_signal(signal.SIGINT)
            out = p.communicate(timeout=TIMEOUT_S)[0]
            self.assertEqual([], os.listdir(folder))
        self.assertEqual(130, p.returncode)
        d = json.loads(out)
        self.assertFalse(d["complete"])
        self.assertGreater(d["memory"]["total"], 0)


if __name__ == "__main__":
    unittest.main()
