#!/usr/bin/env python3
"""Values of the sampler: tiny temperatures, huge logits, and seeds."""
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import F32, I32  # noqa: E402
from program import FolderCase, memwall  # noqa: E402


class Candidates(FolderCase):
    """The most likely token is always a candidate, even where all differences are lost in
    rounding."""

    def model(self, scale=1.0, keys=None):
        m = chain(self.folder, "hey", spell("\n", "Hey", "<|im_end|>"), keys=keys)
        dims, kind, raw = m.tensors["output.weight"]
        values = struct.unpack("<%df" % (len(raw) // 4), raw)
        m.tensors["output.weight"] = dims, kind, struct.pack(
            "<%df" % len(values), *(scale * (v - 0.5) for v in values))
        return m.write(m.path)

    def answer(self, model, *args):
        r = memwall("run", "-m", model, "-q", "--seed", "1", *args, "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        return r.stdout.strip()

    def test_tiny_temperatures_are_greedy(self):
        model = self.model()
        for args in (("1e-8",), ("1e-8", "--top-p", "1"), ("1e-8", "--top-k", "5"),
                     ("1e-45",), ("1e-60",), ("1e-9", "--min-p", "1", "--top-p", "0")):
            with self.subTest(args=args):
                self.assertEqual("Hey", self.answer(model, "--temp", *args))

    def test_huge_logits_have_a_candidate(self):
        for scale in 5e8, 1e12, 1e30, 3e36:
            model = self.model(scale)
            for args in ((), ("--temp", "1"), ("--temp", "100"),
                         ("--temp", "1", "--repeat-penalty", "0.01"),
                         ("--temp", "1", "--repeat-penalty", "100")):
                with self.subTest(scale=scale, args=args):
                    self.assertEqual("Hey", self.answer(model, *args))

    def test_values_of_the_file_are_taken_alike(self):
        model = self.model(1e12, {"general.sampling.temp": (F32, 1e-9),
                                  "general.sampling.top_p": (F32, 1e-30),
                                  "general.sampling.min_p": (F32, 1.0),
                                  "general.sampling.top_k": (I32, 3),
                                  "general.sampling.penalty_repeat": (F32, 100.0)})
        self.assertEqual("Hey", self.answer(model))


if __name__ == "__main__":
    unittest.main(verbosity=2)
