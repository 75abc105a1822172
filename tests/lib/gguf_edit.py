"""Read a GGUF file, change its keys and tensors, and write it again.

    g = Gguf("model.gguf")
    g.rename("gemma3.rope.freq_base", "gemma3.rope.global.freq_base")
    g.keys["general.name"] = (STR, "other")
    g.write("other.gguf")
"""
import functools
import struct

FORM = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
BLOCK = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
         10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
         16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
         21: (256, 110), 22: (256, 82), 23: (256, 136), 26: (1, 4), 29: (256, 56), 30: (1, 2),
         39: (32, 17), 40: (64, 36)}


@functools.cache  # a script writes the same vocabulary thousands of times
def pack_text(s):
    b = s.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(b)) + b


class Gguf:
    """keys: name to (type, value), in order; arrays: (ARR, (type of elements, list)).
    tensors: name to (dims as in the file, type, bytes)."""

    def __init__(self, source=None):
        self.keys, self.tensors = {}, {}
        if source is not None:
            with open(source, "rb") as f:
                self._read(f.read())

    def _read(self, d):
        at = 8

        def number(form):
            nonlocal at
            v, = struct.unpack_from("<" + form, d, at)
            at += struct.calcsize("<" + form)
            return v

        def text():
            nonlocal at
            n = number("Q")
            at += n
            return d[at - n:at].decode("utf-8", "surrogateescape")

        def value(kind):
            return text() if kind == STR else number(FORM[kind])

        def array(kind, n):
            nonlocal at
            if kind == STR:
                return [text() for _ in range(n)]
            form = f"<{n}{FORM[kind]}"
            numbers = list(struct.unpack_from(form, d, at))
            at += struct.calcsize(form)
            return numbers

        n_tensor, n_key = number("Q"), number("Q")
        for _ in range(n_key):
            name, kind = text(), number("I")
            if kind == ARR:
                inner, n = number("I"), number("Q")
                self.keys[name] = (ARR, (inner, array(inner, n)))
            else:
                self.keys[name] = (kind, value(kind))
        infos = []
        for _ in range(n_tensor):
            name, n = text(), number("I")
            infos.append((name, [number("Q") for _ in range(n)], number("I"), number("Q")))
        base = (at + 31) // 32 * 32
        for name, dims, kind, offset in infos:
            n = 1
            for x in dims:
                n *= x
            n = n // BLOCK[kind][0] * BLOCK[kind][1]
            self.tensors[name] = (dims, kind, d[base + offset:base + offset + n])

    def get(self, name):
        return self.keys[name][1]

    def rename(self, old, new):
        self.keys = {(new if k == old else k): v for k, v in self.keys.items()}

    def rename_tensor(self, old, new):
        self.tensors = {(new if k == old else k): v for k, v in self.tensors.items()}

    def packed_keys(self):
        def packed(kind, *values):
            if kind == STR:
                return b"".join(map(pack_text, values))
            return struct.pack(f"<{len(values)}{FORM[kind]}", *values)

        head = []
        for name, (kind, v) in self.keys.items():
            head += [pack_text(name), struct.pack("<I", kind)]
            if kind == ARR:
                head += [struct.pack("<IQ", v[0], len(v[1])), packed(v[0], *v[1])]
            else:
                head.append(packed(kind, v))
        return b"".join(head)

    def write(self, target):
        head = [b"GGUF", struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)),
                self.packed_keys()]
        data, n = [], 0
        for name, (dims, kind, raw) in self.tensors.items():
            head += [pack_text(name), struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, kind, n)]
            data += [raw, bytes(-len(raw) % 32)]
            n += len(raw) + -len(raw) % 32
        h = b"".join(head)
        with open(target, "wb") as f:
            f.write(h + bytes(-len(h) % 32))
            f.writelines(data)
        return target


def f32(values):
    values = list(values)
    return struct.pack("<%df" % len(values), *values)
