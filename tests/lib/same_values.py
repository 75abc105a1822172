"""Models in two files that have the same values."""
import array
import json
import math
import os

from program import FolderCase, memwall, smallest_without_screen

# Relative rms of all logits: sums of the same values are taken in another order.
LIMIT = 2e-4
N_ID = 48


class SameValues(FolderCase):
    def rows(self, model, *args):
        out = os.path.join(self.folder, "logits")
        r = memwall("eval", model, "--ids", "-", "--logits", out, "--force", *args,
                    stdin=" ".join(str((7 * i * i + 3) % 291) for i in range(N_ID)))
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        with open(out, "rb") as f:
            return f.read()

    def has_the_values_of(self, decoded, model):
        want, got = array.array("f"), array.array("f")
        want.frombytes(self.rows(decoded, "--exact", "--kv", "f32"))
        got.frombytes(self.rows(model, "--exact", "--kv", "f32"))
        mean = sum(want) / len(want)
        spread = sum((x - mean) ** 2 for x in want)
        self.assertGreater(spread, 0)
        self.assertLessEqual(math.sqrt(sum((x - y) ** 2 for x, y in zip(want, got)) / spread), LIMIT)

    def has_the_same_bits(self, model):
        """With any chunk, threads and budget."""
        plan = json.loads(memwall("plan", model, "-b", "1G", "-c", str(N_ID), "--json", "--chunk",
                                  "1").stdout)
        least = str(smallest_without_screen(plan) + (4 << 20))
        # A run may measure again whether OpenBLAS is faster, and it rounds differently.
        want = self.rows(model, "--blas", "never")
        for args in (("--chunk", "1", "-b", least), ("--chunk", "7", "-t", "1"),
                     ("--chunk", "64", "-t", "3"), ("--chunk", "512")):
            self.assertTrue(want == self.rows(model, "--blas", "never", *args), args)
