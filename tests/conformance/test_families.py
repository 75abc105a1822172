#!/usr/bin/env python3
"""Every family of models gives the reference's logits and greedy ids from a snapshot and from a
GGUF file, and the same bits with any chunk, threads and budget.

The references are in MW_SHARED/conformance/families; GGUF files that are not there are made from
the snapshots.  tests/conformance/test_models.c compares snapshots in other modes, too."""
import array
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import snapshot_gguf  # noqa: E402
from program import memwall  # noqa: E402

FOLDER = os.path.join(os.environ.get("MW_SHARED", ""), "conformance", "families")
LIMIT = 1e-3
NAMES = ("gemma1", "granite", "ministral3", "olmo3", "smollm3")


class Families(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def ids(self, name):
        with open(self.reference(name) + ".ids") as f:
            return f.read()

    def reference(self, name):
        return os.path.join(FOLDER, "f-" + name)

    def snapshot(self, name):
        if not os.path.isdir(self.reference(name)):
            self.skipTest("f-%s is not in %s" % (name, FOLDER))
        return self.reference(name)

    def gguf(self, name):
        """Returns the converter's file, else one that is made from the snapshot."""
        snapshot = self.snapshot(name)
        if os.path.exists(snapshot + ".gguf"):
            return snapshot + ".gguf"
        return snapshot_gguf.convert(snapshot, os.path.join(self.folder, name + ".gguf"))

    def rows(self, model, name, *args):
        out = os.path.join(self.folder, "logits")
        r = memwall("eval", model, "--ids", "-", "--logits", out, *args, stdin=self.ids(name))
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        with open(out, "rb") as f:
            data = f.read()
        os.remove(out)
        return data

    def agrees(self, model, name):
        got, want = array.array("f"), array.array("f")
        got.frombytes(self.rows(model, name, "--exact", "--kv", "f32"))
        with open(self.reference(name) + ".logits.f32", "rb") as f:
            want.frombytes(f.read())
        self.assertEqual(len(want), len(got))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(want, got)), LIMIT, name)
        with open(self.reference(name) + ".greedy") as f:
            greedy = f.read().split()
        r = memwall("eval", model, "--ids", "-", "--greedy", str(len(greedy)), "--exact", "--kv",
                    "f32", stdin=self.ids(name))
        self.assertEqual((0, greedy), (r.returncode, r.stdout.split()), name)

    def has_the_same_bits(self, model, name, *kernels):
        want = self.rows(model, name, *kernels)
        n = len(self.ids(name).split())
        plan = json.loads(memwall("plan", model, "-b", "1G", "-c", str(n), "--json", "--chunk",
                                  "1").stdout)
        least = str(plan["smallest_budget_bytes"] + (4 << 20))
        for args in (("--chunk", "1"), ("--chunk", "7"), ("--chunk", "64"), ("--chunk", "512"),
                     ("-t", "1"), ("-t", "3", "--chunk", "33"), ("--chunk", "1", "-b", least)):
            self.assertTrue(want == self.rows(model, name, *kernels, *args), (name, args))


def add(name):
    """One test per family and kind of file, so that each is skipped and fails by name."""
    def snapshot(self):
        model = self.snapshot(name)
        self.agrees(model, name)
        self.has_the_same_bits(model, name)
        self.has_the_same_bits(model, name, "--exact", "--kv", "f32")

    def gguf(self):
        model = self.gguf(name)
        self.agrees(model, name)
        self.has_the_same_bits(model, name)

    setattr(Families, "test_%s_from_a_snapshot" % name, snapshot)
    setattr(Families, "test_%s_from_a_gguf_file" % name, gguf)


for each in NAMES:
    add(each)

if __name__ == "__main__":
    unittest.main(verbosity=2)
