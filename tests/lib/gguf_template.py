"""Copy a GGUF file and replace its chat template."""
import struct

STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
KEY = b"tokenizer.chat_template"


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self):
        return self.take(self.number("<Q"))

    def skip_value(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            kind, n = self.number("<I"), self.number("<Q")
            if kind == STRING:
                for _ in range(n):
                    self.string()
            else:
                self.take(SIZES[kind] * n)
        else:
            self.take(SIZES[kind])


def pack(text):
    return struct.pack("<Q", len(text)) + text


def with_template(source, target, template):
    """Copy source to target.  If template is None, remove the template."""
    with open(source, "rb") as f:
        r = Reader(f.read())
    head = r.take(8)
    n_tensor, n_key = r.number("<Q"), r.number("<Q")
    keys = []
    for _ in range(n_key):
        start = r.at
        key = r.string()
        r.skip_value(r.number("<I"))
        if key != KEY:
            keys.append(r.data[start:r.at])
    start = r.at
    for _ in range(n_tensor):
        r.string()
        r.take(8 * r.number("<I") + 12)
    tensors = r.data[start:r.at]
    weights = r.data[(r.at + 31) // 32 * 32:]
    if template is not None:
        keys.append(pack(KEY) + struct.pack("<I", STRING) + pack(template.encode()))
    out = b"".join([head, struct.pack("<QQ", n_tensor, len(keys)), *keys, tensors])
    with open(target, "wb") as f:
        f.write(out + bytes(-len(out) % 32) + weights)
