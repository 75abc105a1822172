#!/usr/bin/env python3
"""Quantised keys and values if a few channels of a model are much larger than the others.

Each model comes twice: unchanged, and with channels of keys (or values) 12 times larger and the
matching ones of queries (or of the output matrix) 12 times smaller.  Both compute the same
function.  Quantised keys and values must be about as accurate in the second as in the first.
"""
import array
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gguf_model  # noqa: E402
from program import memwall  # noqa: E402

LARGE = 12
IDS = [5 + i * 37 % 120 for i in range(96)]


def large_keys(m, heads, heads_kv, head_dim, layers):
    """Enlarge two rotary pairs of each key head."""
    for i in range(layers):
        for h in range(heads_kv):
            rows = [h * head_dim + r for r in (2, 3, head_dim - 10, head_dim - 9)]
            m.tensors[f"blk.{i}.attn_k.weight"].scale_rows(rows, LARGE)
        for h in range(heads):
            rows = [h * head_dim + r for r in (2, 3, head_dim - 10, head_dim - 9)]
            m.tensors[f"blk.{i}.attn_q.weight"].scale_rows(rows, 1 / LARGE)
    return m


def large_values(m, heads, heads_kv, head_dim, layers):
    channels = (7, head_dim - 5)
    for i in range(layers):
        m.tensors[f"blk.{i}.attn_v.weight"].scale_rows(
            [h * head_dim + c for h in range(heads_kv) for c in channels], LARGE)
        m.tensors[f"blk.{i}.attn_output.weight"].scale_cols(
            [h * head_dim + c for h in range(heads) for c in channels], 1 / LARGE)
    return m


def large_norms(m, head_dim, head_dim_sliding):
    """The same through the norms of keys and queries, whose heads rotate in pairs of halves."""
    for i, d in enumerate((head_dim_sliding, head_dim) * 2):
        channels = (3, 3 + d // 2)
        m.tensors[f"blk.{i}.attn_k_norm.weight"].scale_cols(channels, LARGE)
        m.tensors[f"blk.{i}.attn_q_norm.weight"].scale_cols(channels, 1 / LARGE)
    return m


class LargeChannels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def logits(self, model, keys, values, *more):
        path = os.path.join(self.folder, "model.gguf")
        out = os.path.join(self.folder, "logits")
        model.write(path)
        p = memwall("eval", path, "--ids", "-", "--logits", out, "--exact", "--memory",
                    "256M", "--kv-k", keys, "--kv-v", values, *more,
                    stdin=" ".join(map(str, IDS)))
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        with open(out, "rb") as f:
            a = array.array("f", f.read())
        if sys.byteorder == "big":
            a.byteswap()
        os.unlink(out)
        return a

    def error(self, model, keys, values):
        """Returns the relative rms error of the logits, and the exact logits."""
        exact = self.logits(model, "f32", "f32")
        other = self.logits(model, keys, values)
        mean = math.fsum(exact) / len(exact)
        spread = math.fsum((x - mean) ** 2 for x in exact)
        return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(exact, other)) / spread), exact

    def check(self, plain, large, keys, values, most):
        base, exact = self.error(plain, keys, values)
        error, same = self.error(large, keys, values)
        for x, y in zip(exact, same):
            self.assertAlmostEqual(x, y, delta=2e-4)
        print(f"keys {keys}, values {values}: {base:.3g}, large channels {error:.3g}, "
              f"times {error / base:.2f}")
        self.assertGreater(base, 0)
        self.assertLess(error, most * base)

    def test_keys_of_heads_of_64(self):
        shape = dict(heads=4, heads_kv=2, layers=2)
        for kv in ("q8_0", "q4_0"):
            self.check(gguf_model.llama(64, **shape),
                       large_keys(gguf_model.llama(64, **shape), head_dim=64, **shape),
                       kv, "f16", 3)

    def test_keys_of_heads_of_96(self):
        shape = dict(heads=2, heads_kv=1, layers=2)
        self.check(gguf_model.llama(96, **shape),
                   large_keys(gguf_model.llama(96, **shape), head_dim=96, **shape),
                   "q4_0", "f16", 3)

    def test_values(self):
        shape = dict(heads=4, heads_kv=2, layers=2)
        for kv in ("q8_0", "q4_0"):
            self.check(gguf_model.llama(64, **shape),
                       large_values(gguf_model.llama(64, **shape), head_dim=64, **shape),
                       "f16", kv, 3)

    def test_sliding_and_shared_layers(self):
        for kv in ("q8_0", "q4_0"):
            self.check(gguf_model.gemma4(64, 32), large_norms(gguf_model.gemma4(64, 32), 64, 32),
                       kv, kv, 2.5)

    def test_keys_as_values(self):
        shape = dict(head_dim=64, head_dim_sliding=32, keys_as_values=True)
        self.check(gguf_model.gemma4(**shape), large_norms(gguf_model.gemma4(**shape), 64, 32),
                   "q4_0", "q4_0", 2.5)

    def test_chunks_and_threads_give_the_same_logits(self):
        m = large_norms(gguf_model.gemma4(64, 32), 64, 32)
        want = self.logits(m, "q4_0", "q8_0")
        for more in (("--chunk", "1"), ("--chunk", "7"), ("--threads", "1")):
            self.assertEqual(self.logits(m, "q4_0", "q8_0", *more), want, more)

    def test_plan_names_rotated_types(self):
        path = os.path.join(self.folder, "model.gguf")
        gguf_model.llama(64).write(path)
        p = memwall("plan", path, "--kv-k", "q8_0", "--memory", "256M")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("\nkeys q8_0 (rotated), values f16\n", p.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
