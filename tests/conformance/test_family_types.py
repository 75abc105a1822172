#!/usr/bin/env python3
"""Every family of models with weights in blocks of 32: they are the values that their blocks stand
for, and give the same bits with any chunk, threads and budget.

Rows of the references of families are too short for blocks, so their weights
are drawn again for wider models."""
import array
import math
import os
import random
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import snapshot_gguf  # noqa: E402
from program import reference  # noqa: E402
from same_values import SameValues  # noqa: E402
from test_families import NAMES, write_snapshot  # noqa: E402

Q4_0, Q8_0, MXFP4 = 2, 8, 39
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
TYPES = {"q8_0": (Q8_0, Q8_0), "q4_0": (Q4_0, Q4_0), "mxfp4": (MXFP4, Q8_0)}  # experts, others


def half(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def nibbles(q):
    return bytes(q[i] | q[i + 16] << 4 for i in range(16))


def q8_0(x):
    d = max(map(abs, x)) / 127
    q = [round(v / d) if d > 0 else 0 for v in x]
    return struct.pack("<e32b", d, *q), [half(d) * n for n in q]


def q4_0(x):
    d = max(x, key=abs) / -8
    q = [min(15, int(v / d + 8.5)) if d != 0 else 8 for v in x]
    return struct.pack("<e", d) + nibbles(q), [half(d) * (n - 8) for n in q]


def mxfp4(x):
    top = max(map(abs, x))
    e = math.floor(math.log2(top)) - 2 if top > 0 else -127
    q = [min(range(8), key=lambda i: abs(abs(v) / 2.0 ** e - E2M1[i])) | (8 if v < 0 else 0)
         for v in x]
    return bytes([e + 127]) + nibbles(q), [(1 - 2 * (n >> 3)) * E2M1[n & 7] * 2.0 ** e for n in q]


BLOCKS = {Q8_0: q8_0, Q4_0: q4_0, MXFP4: mxfp4}


def packer(kinds, is_decoded):
    """Returns a function for snapshot_gguf.convert().  Matrices that are multiplied become blocks,
    or floats with the values of those blocks."""
    def pack(name, shape, values):
        small = ("norm", "ffn_gate_inp", "conv1d", ".bias", "sinks")
        if len(shape) < 2 or any(word in name for word in small):
            return snapshot_gguf.as_f32(name, shape, values)
        assert shape[-1] % 32 == 0, (name, shape)
        kind = kinds["_exps" not in name]
        blocks = [BLOCKS[kind](values[i:i + 32]) for i in range(0, len(values), 32)]
        if is_decoded:
            floats = array.array("f", (v for _, decoded in blocks for v in decoded))
            return snapshot_gguf.as_f32(name, shape, floats)
        return kind, b"".join(raw for raw, _ in blocks)
    return pack


def widen(name, path):
    """Draw the weights of a reference again, for rows of whole blocks."""
    folder = reference("f-" + name)
    if not os.path.isdir(folder):
        raise unittest.SkipTest(f"neither the tree nor MW_SHARED has f-{name}")
    config, tensors = snapshot_gguf.read_snapshot(folder)
    r, wide = random.Random(name), {}
    for tensor, (shape, values) in tensors.items():
        dims = {48: 64, 24: 32, **({16: 32} if ".mlp." in tensor else {})}
        new = [dims.get(n, n) for n in shape]
        wide[tensor] = (new, values if new == shape else r.choices(values, k=math.prod(new)))
    more = {k: 32 for k in ("moe_intermediate_size", "shared_expert_intermediate_size") if k in config}
    return write_snapshot(path, wide, {}, {**config, "hidden_size": 64, **more})


class FamilyTypes(SameValues):
    def check(self, name, kinds):
        wide = widen(name, self.path("wide"))
        model = snapshot_gguf.convert(wide, self.path("blocks.gguf"), packer(kinds, False))
        decoded = snapshot_gguf.convert(wide, self.path("floats.gguf"), packer(kinds, True))
        self.has_the_values_of(decoded, model)
        self.has_the_same_bits(model)


def add(name, word):
    setattr(FamilyTypes, "test_%s_in_%s" % (name, word), lambda self: self.check(name, TYPES[word]))


# Dense models of the other families differ from models in blocks that are tested elsewhere only in
# what they compute between products.
for each in NAMES:
    add(each, "q4_0")
add("qwen35", "q8_0")
for each in ("gptoss", "mixtral", "qwen35moe", "qwen3moe", "qwen3next"):
    add(each, "q8_0")
    add(each, "mxfp4")

if __name__ == "__main__":
    unittest.main(verbosity=2)
