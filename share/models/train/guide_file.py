"""Reads the guide's GGUF file, as export.py wrote it, back into model.py's network."""
import struct

import numpy
import torch

import export
import tokenizer as tok
from model import Guide, Shape


class Reader:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 0

    def numbers(self, form):
        size = struct.calcsize("<" + form)
        self.at += size
        return struct.unpack_from("<" + form, self.data, self.at - size)

    def text(self):
        n, = self.numbers("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == export.STRING:
            return self.text()
        if kind == export.ARRAY:
            kind, n = self.numbers("IQ")
            return [self.value(kind) for _ in range(n)]
        return self.numbers(export.FORMATS[kind][1:])[0]


def _matrix(data, kind, dims):
    n = int(numpy.prod(dims))
    if kind == export.TYPE_F32:
        x = numpy.frombuffer(data, "<f4", n)
    else:
        blocks = numpy.frombuffer(data, "u1", n // 32 * 34).reshape(-1, 34)
        scale = blocks[:, :2].copy().view("<f2").astype("<f4")
        x = scale * blocks[:, 2:].view("i1")
    return torch.from_numpy(x.reshape(tuple(reversed(dims))).copy())


def load(path):
    """The model and the tokenizer of the guide's file."""
    r = Reader(path)
    magic, _, n_tensor, n_key = r.numbers("4sIQQ")
    if magic != b"GGUF":
        raise SystemExit(f"{path} is not a GGUF file")
    merges = []
    for _ in range(n_key):
        name, (kind,) = r.text(), r.numbers("I")
        v = r.value(kind)
        if name == "tokenizer.ggml.merges":
            merges = [tuple(m.split(" ")) for m in v]
    places = []
    for _ in range(n_tensor):
        name, (n,) = r.text(), r.numbers("I")
        places.append((name, r.numbers(f"{n}Q"), *r.numbers("IQ")))
    start = r.at + -r.at % export.ALIGNMENT
    state = {name: _matrix(r.data[start + at:], kind, dims) for name, dims, kind, at in places}
    tokenizer = tok.Tokenizer(merges)
    model = Guide(Shape(vocab=len(tokenizer.tokens)))
    model.load_state_dict({name: state[name if name in state else name + ".weight"]
                           for name in model.state_dict()})
    return model.eval(), tokenizer
