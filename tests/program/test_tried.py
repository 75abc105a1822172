#!/usr/bin/env python3
"""memwall tried lists the settings with which a model answered, in text and as JSON that agrees
with its schema."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import (MEMWALL, MODELS, SRCDIR, TIMEOUT_S, ChangedHomeCase, budget,  # noqa: E402
                     environment)
import schema  # noqa: E402

MIB = 1 << 20


class Tried(ChangedHomeCase):
    def setUp(self):
        super().setUp()
        self.model = self.path("model.gguf")
        shutil.copy(os.path.join(MODELS, "gemma4-tiny-q4_0.gguf"), self.model)

    def memwall(self, *args, code=0):
        r = subprocess.run([MEMWALL, *args], text=True, timeout=TIMEOUT_S, capture_output=True,
                           stdin=subprocess.DEVNULL, env=environment(self.folder))
        self.assertEqual(code, r.returncode, r.stderr)
        return r.stdout

    def answer(self, *args, n=24):
        """Raw text of random weights ends its answer only at the limit."""
        self.memwall("plan", self.model, "-b", "256M")  # measures the machine once
        self.memwall("run", "-m", self.model, "-q", "--raw", "--temp", "0", "-n", str(n), *args, "hello")

    def tried(self):
        d = json.loads(self.memwall("tried", self.model, "--json"))
        schema.check(d, SRCDIR, "tried.schema.json")
        self.assertEqual(self.model, d["model"])
        return d["tried"]

    def test_each_combination_of_settings_is_a_record(self):
        self.assertEqual([], self.tried())
        self.assertIn("Nothing was measured", self.memwall("tried", self.model))
        self.answer("-b", "256M", "-c", "512")
        self.answer("-b", "200M", "-c", "512", "--kv", "f32", "--threads", "1")
        first = self.tried()
        self.assertEqual([(200 * MIB, "f32", 1), (256 * MIB, "f16", first[1]["threads"])],
                         [(t["budget_bytes"], t["kv_k"], t["threads"]) for t in first])
        self.assertEqual(1, min(t["gain"] for t in first))
        self.assertTrue(all(t["tokens"] >= 8 and t["tps"] > 0 for t in first))
        self.answer("-b", "256M", "-c", "512")  # replaces its record
        self.assertEqual([256 * MIB, 200 * MIB], [t["budget_bytes"] for t in self.tried()])
        text = self.memwall("tried", "-m", self.model).splitlines()
        self.assertRegex(text[0], r"budget +context +kv +tok/s +gain +wait +tokens +peak")
        self.assertRegex(text[1], r" 256 MiB +512 f16 ")
        self.assertLessEqual(max(map(len, text)), 120)

    def test_measurements_of_bench_are_records(self):
        self.memwall("bench", self.model, "-b", f"{budget(60)},{budget(200)}", "-p", "64",
                     "-n", "16", "-r", "1", "-q")
        self.assertEqual({int(budget(m)[:-1]) * MIB for m in (60, 200)},
                         {t["budget_bytes"] for t in self.tried()})

    def test_a_short_answer_does_not_count(self):
        self.answer("-b", "256M", "-c", "512", n=8)
        self.assertEqual([], self.tried())

    def test_another_file_has_records_of_its_own(self):
        self.answer("-b", "256M", "-c", "512")
        self.assertEqual(1, len(self.tried()))
        os.utime(self.model, (1, 1))
        self.assertEqual([], self.tried())

    def test_a_damaged_file_of_limits_fails_nothing(self):
        self.answer("-b", "256M", "-c", "512")
        limits = self.path(".cache/memwall/limits")
        with open(limits, encoding="utf-8") as f:
            text = f.read()
        for damaged in (text[:len(text) // 2], text.replace('"tps":', '"tps":-'),
                        text.replace('"n_ctx":512', '"n_ctx":1e300'), "\0" * 5000):
            with open(limits, "w", encoding="utf-8") as f:
                f.write(damaged)
            self.assertLessEqual(len(self.tried()), 1)

    def test_a_file_that_is_not_a_model_is_refused(self):
        with open(self.model, "w", encoding="utf-8") as f:
            f.write("text")
        self.memwall("tried", self.model, code=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
