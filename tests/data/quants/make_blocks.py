#!/usr/bin/env python3
"""Make reference blocks of weight types: TYPE.random.blocks and TYPE.random.f32.

usage: make_blocks.py [--check FOLDER] [TYPE ...]

Decodes by the published definition of each type, one value at a time, and shares no code
with the engine.  All products are exact in double and in float32.  With --check, decode
TYPE.random.blocks in FOLDER and compare with TYPE.random.f32 there instead of writing.

The blocks of the types that are not listed below were cut from the output of the reference
implementation.
"""
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
N_VALUE = 1536


def f16(b, at):
    return struct.unpack_from("<e", b, at)[0]


# Each decoder yields the values of one block in order.

def mxfp4(b):
    """E8M0 scale, 16 bytes of nibbles: E2M1 numbers."""
    e2m1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    for nibble in [q & 15 for q in b[1:]] + [q >> 4 for q in b[1:]]:
        sign = -1.0 if nibble > 8 else 1.0  # 8 is a positive zero
        yield sign * e2m1[nibble % 8] * 2.0 ** (b[0] - 127)


def tq1_0(b):
    """48 bytes and 4 bytes of base-3 digits, scale."""
    d = f16(b, 52)
    for first, n, digits in ((0, 32, 5), (32, 16, 5), (48, 4, 4)):
        for digit in range(digits):
            for q in b[first:first + n]:
                yield d * ((q * 3 ** digit % 256 * 3 >> 8) - 1)


def tq2_0(b):
    """Two halves of 32 bytes with 4 values of 2 bits each, scale."""
    for half in (0, 32):
        for shift in (0, 2, 4, 6):
            for q in b[half:half + 32]:
                yield f16(b, 64) * ((q >> shift & 3) - 1)


# type: values and bytes per block, where the f16 scale is (None: not an f16), decoder
TYPES = {
    "MXFP4": (32, 17, None, mxfp4),
    "TQ1_0": (256, 54, 52, tq1_0),
    "TQ2_0": (256, 66, 64, tq2_0),
}


def f16_scale(rng, i):
    """Ordinary numbers first, then every exponent, both signs, subnormals and zeros."""
    if i < 2:
        return struct.pack("<e", (1.0, -0.5)[i])
    return struct.pack("<H", rng.choice([0x0000, 0x8000, 0x0001, 0x03ff, 0x7bff, 0xfbff]
                                        + [rng.getrandbits(16) & 0xfbff] * 6))


def make_blocks(name):
    values, size, scale_at, _ = TYPES[name]
    rng = random.Random(name)
    blocks = bytearray()
    for i in range(N_VALUE // values):
        fill = {0: [0] * size, 1: [255] * size, 2: [17 * k % 256 for k in range(size)]}
        block = bytearray(fill.get(i) or [rng.getrandbits(8) for _ in range(size)])
        if scale_at is not None:
            block[scale_at:scale_at + 2] = f16_scale(rng, i)
        elif name == "MXFP4":
            block[0] = (127, 0, 1, 2, 252)[i] if i < 5 else rng.randrange(253)
        blocks += block
    return bytes(blocks)


def decode(name, blocks):
    values, size, _, decoder = TYPES[name]
    out = []
    for at in range(0, len(blocks), size):
        block = list(decoder(blocks[at:at + size]))
        assert len(block) == values
        out += block
    return struct.pack(f"<{len(out)}f", *out)


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as f:
        return f.read()


def main(args):
    folder = None
    if args[:1] == ["--check"]:
        folder, args = args[1], args[2:]
    for name in args or TYPES:
        if folder is not None:
            same = decode(name, read(folder, f"{name}.random.blocks")) == read(
                folder, f"{name}.random.f32")
            print(name, "agrees" if same else "DIFFERS")
            continue
        blocks = make_blocks(name)
        for end, data in (("blocks", blocks), ("f32", decode(name, blocks))):
            with open(os.path.join(HERE, f"{name}.random.{end}"), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main(sys.argv[1:])
