#!/usr/bin/env python3
"""Make reference blocks of weight types: TYPE.random.blocks and TYPE.random.f32.

Usage: make_blocks.py [--check FOLDER] [TYPE ...]

Decodes by the published definition of each type, one value at a time, and shares no code
with the engine.  All products are exact in double and in float32.  With --check, decode
TYPE.random.blocks in FOLDER and compare with TYPE.random.f32 there instead of writing.

The blocks of the types that are not listed below were cut from the output of the reference
implementation.
"""
import functools
import os
import random
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
N_VALUE = 1536


def f16(b, at):
    return struct.unpack_from("<e", b, at)[0]


def u16(b, at):
    return struct.unpack_from("<H", b, at)[0]


def bits(b, at, first, n):
    """Returns n bits of the little-endian number that starts at byte `at`."""
    return int.from_bytes(b[at:at + 8], "little") >> first & (2 ** n - 1)


def signs_of(k):
    """Returns 7 stored bits, and one that makes the number of ones even, as factors +1 and -1."""
    k |= bin(k).count("1") % 2 << 7
    return [-1 if k >> i & 1 else 1 for i in range(8)]


# The values of the levels of each code book.
LEVELS = {
    "iq1": (-1, 0, 1),
    "iq2_xxs": (8, 25, 43),
    "iq2_xs": (8, 25, 43),
    "iq2_s": (8, 25, 43),
    "iq3_xxs": (4, 12, 20, 28, 36, 44, 52, 62),
    "iq3_s": (1, 3, 5, 7, 9, 11, 13, 15),
}


@functools.cache
def grid(name):
    """Returns a code book.  The number of an entry spells its values, from the lowest bits on."""
    levels = LEVELS[name]
    n, width = (8, 2) if len(levels) == 3 else (4, 3)
    with open(os.path.join(HERE, "../../../engine/compute/grids.c"), encoding="utf-8") as f:
        table = re.search(rf"\b{name}_grid\[\d+\] = {{(.*?)}}", f.read(), re.S).group(1)
    return [[levels[int(v, 16) >> width * i & (2 ** width - 1)] for i in range(n)]
            for v in re.findall(r"X\((0x[0-9a-f]+)\)", table)]


# Each decoder yields the values of one block in order.

def mxfp4(b):
    """E8M0 scale, 16 bytes of nibbles: E2M1 numbers."""
    e2m1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    for nibble in [q & 15 for q in b[1:]] + [q >> 4 for q in b[1:]]:
        sign = -1.0 if nibble > 8 else 1.0  # 8 is a positive zero
        yield sign * e2m1[nibble % 8] * 2.0 ** (b[0] - 127)


def e4m3(byte):
    """Returns the value of 8 bits; the codes of NaN count as the next number."""
    exponent, fraction = byte >> 3 & 15, byte & 7
    value = fraction * 2.0 ** -9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
    return -value if byte & 128 else value


def f8_e4m3(b):
    return [e4m3(b[0])]


def nvfp4(b):
    # doubled values, and half of a scale whose sign does not count; 127 is 0
    for g in range(4):
        scale = 0.0 if b[g] == 127 else e4m3(b[g] & 127) / 2
        q = b[4 + 8 * g:12 + 8 * g]
        for n in [x & 15 for x in q] + [x >> 4 for x in q]:
            value = (0, 1, 2, 3, 4, 6, 8, 12)[n & 7]
            yield (-value if n > 8 else value) * scale


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


def iq2_xxs(b):
    for sub in range(8):
        at = 2 + 8 * sub
        scale = bits(b, at + 4, 28, 4)
        for k in range(4):
            for v, s in zip(grid("iq2_xxs")[b[at + k]], signs_of(bits(b, at + 4, 7 * k, 7))):
                yield f16(b, 0) * (0.5 + scale) * 0.25 * v * s


def iq2_xs(b):
    for k in range(32):
        scale = bits(b, 66 + k // 4, 4 * (k // 2 % 2), 4)
        word = u16(b, 2 + 2 * k)
        for v, s in zip(grid("iq2_xs")[word & 511], signs_of(word >> 9)):
            yield f16(b, 0) * (0.5 + scale) * 0.25 * v * s


def iq2_s(b):
    for k in range(32):
        scale = bits(b, 74 + k // 4, 4 * (k // 2 % 2), 4)
        index = b[2 + k] + 256 * bits(b, 66 + k // 4, 2 * (k % 4), 2)
        for i, v in enumerate(grid("iq2_s")[index]):
            yield f16(b, 0) * (0.5 + scale) * 0.25 * v * (-1 if b[34 + k] >> i & 1 else 1)


def iq3_xxs(b):
    for k in range(32):
        at = 66 + k // 4 * 4
        scale = bits(b, at, 28, 4)
        values = grid("iq3_xxs")[b[2 + 2 * k]] + grid("iq3_xxs")[b[3 + 2 * k]]
        for v, s in zip(values, signs_of(bits(b, at, 7 * (k % 4), 7))):
            yield f16(b, 0) * (0.5 + scale) * 0.5 * v * s


def iq3_s(b):
    for k in range(64):
        scale = bits(b, 106, 4 * (k // 8), 4)
        index = b[2 + k] + 256 * bits(b, 66 + k // 8, k % 8, 1)
        for i, v in enumerate(grid("iq3_s")[index]):
            sign = -1 if bits(b, 74 + k // 2, k % 2 * 4 + i, 1) else 1
            yield f16(b, 0) * (1 + 2 * scale) * v * sign


def iq1_s(b):
    for k in range(32):
        word = u16(b, 34 + k // 4 * 2)
        delta = -0.125 if word >> 15 else 0.125
        for v in grid("iq1")[b[2 + k] + 256 * (word >> 3 * (k % 4) & 7)]:
            yield f16(b, 0) * (2 * (word >> 12 & 7) + 1) * (v + delta)


def iq1_m(b):
    words = [u16(b, 48 + 2 * j) for j in range(4)]
    d = f16(struct.pack("<H", sum((w >> 12) << 4 * j for j, w in enumerate(words))), 0)
    for k in range(32):
        scale = words[k // 8] >> 3 * (k // 2 % 4) & 7
        high = bits(b, 32 + k // 2, 4 * (k % 2), 4)
        delta = -0.125 if high & 8 else 0.125
        for v in grid("iq1")[b[k] + 256 * (high & 7)]:
            yield d * (2 * scale + 1) * (v + delta)


# type: values and bytes per block, offset of the f16 scale (None: it is not an f16), decoder
TYPES = {
    "MXFP4": (32, 17, None, mxfp4),
    "NVFP4": (64, 36, None, nvfp4),
    "F8_E4M3": (1, 1, None, f8_e4m3),
    "TQ1_0": (256, 54, 52, tq1_0),
    "TQ2_0": (256, 66, 64, tq2_0),
    "IQ2_XXS": (256, 66, 0, iq2_xxs),
    "IQ2_XS": (256, 74, 0, iq2_xs),
    "IQ2_S": (256, 82, 0, iq2_s),
    "IQ3_XXS": (256, 98, 0, iq3_xxs),
    "IQ3_S": (256, 110, 0, iq3_s),
    "IQ1_S": (256, 50, 0, iq1_s),
    "IQ1_M": (256, 56, None, iq1_m),
}


def f16_scale(rng, i):
    """Returns ordinary numbers, then every exponent, both signs, subnormals and zeros."""
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
        elif name == "IQ1_M":  # the top nibble of each of the last 4 words is a part of the scale
            half = struct.unpack("<H", f16_scale(rng, i))[0]
            for j in range(4):
                block[49 + 2 * j] = block[49 + 2 * j] & 15 | (half >> 4 * j & 15) << 4
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
