"""Write a model that repeats a text and replaces words in it.  Its weights are computed.

    m = repeater(folder, "repeater")
    memwall("run", "-m", m.path, "one two three")                          # one two three
    memwall("run", "-m", m.path, "--system", " two => four", text)         # one four three

It is a llama of three layers with the guide's vocabulary.  A token has a code of 128 random signs,
and a hidden row has these parts:

    code     of this token
    earlier  of the seven tokens before it, the older ones with fewer signs
    around   the mean of the codes of some 14 tokens, about 16 tokens ago
    next     of the token that follows, as layers 1 and 2 find it; the head reads this one
    one, is_first

Layer 0 copies the codes of earlier tokens: head k attends to the position k tokens before, by a
query and a key that do not depend on the tokens.  At several frequencies of the rotation, their
product is largest at this distance.  The last head has low frequencies only, so it is not sharp.

Layer 1 is an induction head.  The query is the last seven tokens, the key of a position the seven
tokens before it, and the value its token.  So the token comes next that once
followed the same seven tokens, or most of them: a replaced word makes one or two of them differ.
`around` decides between longer phrases that occur several times.

Layer 2 replaces.  Where the prompt has " old => new" and `old` comes next, it adds twice the code
of `new`, which is then the nearest.  Otherwise it attends to the first token, and adds nothing.
Both words have to be one token.  A rule is for a word with a space before it; "old =>new" at the
beginning of a line is for a word without one.

The feed-forward networks have random weights, and the last matrix of each is zero.
"""
import collections
import functools
import math
import os
import random
import re
import struct
import sys

from gguf_edit import F32, STR, U32, Gguf, f32
from program import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "share", "models", "train"))
import corpus as corpus_module  # noqa: E402

GUIDE = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
SPACE = "\u2581"
BF16 = 30
CODE = 128
EARLIER = 128, 128, 64, 64, 32, 32, 32  # signs of the token 1, 2, ... before
AROUND = 64
HEADS = len(EARLIER) + 1
ROTATED, ROPE_BASE = 32, 10000.0
KEY = ROTATED + sum(EARLIER) + AROUND
AT_CODE = 0
AT_EARLIER = [CODE + sum(EARLIER[:i]) for i in range(len(EARLIER))]
AT_AROUND = CODE + sum(EARLIER)
AT_NEXT = AT_AROUND + AROUND
AT_ONE, AT_FIRST = AT_NEXT + CODE, AT_NEXT + CODE + 1
WIDTH = (AT_FIRST + 64) // 64 * 64
# Means of several codes are shorter than one, so they are kept small: rows have the same length.
SMALL = 0.25

# Products of queries and keys, in units of signs.  They make the largest score larger than the
# next one by 4 at least, and mostly by more than 10.
SHARP_PLACE, SHARP_COPY, SHARP_RULE = 512, 11, 12
BROAD = {4: 160, 7: 256}  # frequencies of the head for `around`
RULE_LEAST = 300  # of the 320 signs of a rule that fits; one for another word has 256 and some

TEMPLATE = ("{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}"
            "{{ m['content'] + '\n' }}{% else %}{{ '<|turn>text\n' + m['content'] + '<turn|>' }}"
            "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|turn>text\n' }}{% endif %}")


@functools.cache
def bf16(value):
    bits, = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", bits + 0x8000 >> 16)


class Matrix:
    """rows x cols values of BF16, mostly zero."""

    def __init__(self, rows, cols):
        self.dims, self.raw = [cols, rows], bytearray(2 * rows * cols)

    def put(self, row, col, *values):
        at = 2 * (row * self.dims[0] + col)
        self.raw[at:at + 2 * len(values)] = b"".join(map(bf16, values))

    def copy(self, row, col, n, value):
        for i in range(n):
            self.put(row + i, col + i, value)

    def tensor(self):
        return self.dims, BF16, bytes(self.raw)


def noise(rows, cols, rng):
    """Random values from 1/32 to 1/16, of both signs: random bits with the same exponent."""
    n = rows * cols

    def all_of(bits):
        return int.from_bytes(struct.pack("<H", bits) * n, "little")

    bits = int.from_bytes(rng.randbytes(2 * n), "little") & all_of(0x807f) | all_of(0x3d00)
    return [cols, rows], BF16, bits.to_bytes(2 * n, "little")


def layer(query=(), key=(), value=(), output=()):
    """The matrices of attention: for each a list of (row, column, number of equal ones, value)."""
    made = {"attn_q": Matrix(HEADS * KEY, WIDTH), "attn_k": Matrix(KEY, WIDTH),
            "attn_v": Matrix(CODE, WIDTH), "attn_output": Matrix(WIDTH, HEADS * CODE)}
    for m, parts in zip(made.values(), (query, key, value, output)):
        for part in parts:
            m.copy(*part)
    return {name: m.tensor() for name, m in made.items()}


def looks_back(head, distance, sharp):
    """The query of a head that attends to this distance: sharp has a number for each frequency."""
    query = []
    for f, by in sharp.items():
        angle = distance * ROPE_BASE ** (-2 * f / ROTATED)
        at = head * KEY + 2 * f
        query += [(at, AT_ONE, 1, by * math.cos(angle)), (at + 1, AT_ONE, 1, -by * math.sin(angle))]
    return query


def copies_earlier():
    all_f = range(ROTATED // 2)
    query = looks_back(len(EARLIER), 16, BROAD)
    output = [(AT_AROUND, len(EARLIER) * CODE, AROUND, SMALL)]
    for head, n in enumerate(EARLIER):
        query += looks_back(head, head + 1, dict.fromkeys(all_f, SHARP_PLACE))
        output.append((AT_EARLIER[head], head * CODE, n, 1.0))
    return layer(query, [(2 * f, AT_ONE, 1, 1.0) for f in all_f], [(0, AT_CODE, CODE, 1.0)], output)


def finds_next():
    query, key, at = [], [], ROTATED
    for now, before, n in zip([AT_CODE, *AT_EARLIER], AT_EARLIER, EARLIER):
        query.append((at, now, n, SHARP_COPY))
        key.append((at, before, n, 1.0))
        at += n
    query.append((at, AT_AROUND, AROUND, 2 / SMALL * SHARP_COPY))
    key.append((at, AT_AROUND, AROUND, 2 / SMALL))
    return layer(query, key, [(0, AT_CODE, CODE, 1.0)], [(AT_NEXT, 0, CODE, SMALL)])


def replaces(code, first, equals, greater):
    """The rule " old => new" ends three tokens after `old`, with the tokens "=" and ">" between."""
    query, key, at = [], [], ROTATED
    for i, token in enumerate((greater, equals)):
        query += [(at + b, AT_ONE, 1, SHARP_RULE * code[token][b]) for b in range(EARLIER[i])]
        key.append((at, AT_EARLIER[i], EARLIER[i], 1.0))
        at += EARLIER[i]
    query.append((at, AT_NEXT, EARLIER[2], SHARP_RULE / SMALL))
    key.append((at, AT_EARLIER[2], EARLIER[2], 1.0))
    at += EARLIER[2]
    query.append((at, AT_ONE, 1, SHARP_RULE * RULE_LEAST))
    key.append((at, AT_FIRST, 1, 1.0))
    value = [(0, AT_CODE, CODE, 2.0)]
    # The first token has a code, and takes itself for the earlier ones: is_first takes that away.
    for b, sign in enumerate(code[first]):
        value.append((b, AT_FIRST, 1, -2.0 * sign))
        key += [(ROTATED + sum(EARLIER[:i]) + b, AT_FIRST, 1, -sign)
                for i, n in enumerate(EARLIER[:3]) if b < n]
    return layer(query, key, value, [(AT_NEXT, 0, CODE, SMALL)])


def repeater(folder, name, n_ff=64, n_ctx=4096, seed=1):
    """Write the model; n_ff is the width of the feed-forward networks.  Returns the Gguf, with its
    path."""
    rng = random.Random(seed)
    guide = Gguf(GUIDE)
    tokens = guide.get("tokenizer.ggml.tokens")[1]
    first, equals, greater = (tokens.index(t) for t in ("<bos>", SPACE + "=", ">"))
    code = [[1 if rng.getrandbits(1) else -1 for _ in range(CODE)] for _ in tokens]
    embedding, head = Matrix(len(tokens), WIDTH), Matrix(len(tokens), WIDTH)
    for i, signs in enumerate(code):
        embedding.put(i, AT_CODE, *signs)
        embedding.put(i, AT_ONE, 1)
        head.put(i, AT_NEXT, *signs)
    embedding.put(first, AT_FIRST, 1)
    g = Gguf()
    g.keys = {"general.architecture": (STR, "llama"), "general.type": (STR, "model"),
              "general.name": (STR, name), "llama.context_length": (U32, n_ctx),
              "llama.embedding_length": (U32, WIDTH), "llama.block_count": (U32, 3),
              "llama.feed_forward_length": (U32, n_ff),
              "llama.attention.head_count": (U32, HEADS),
              "llama.attention.head_count_kv": (U32, 1),
              "llama.attention.key_length": (U32, KEY),
              "llama.attention.value_length": (U32, CODE),
              "llama.rope.dimension_count": (U32, ROTATED),
              "llama.rope.freq_base": (F32, ROPE_BASE),
              "llama.attention.layer_norm_rms_epsilon": (F32, 1e-6)}
    copied = "tokenizer.", "general.sampling."
    g.keys.update({k: v for k, v in guide.keys.items() if k.startswith(copied)})
    g.keys["tokenizer.chat_template"] = (STR, TEMPLATE)
    g.tensors = {"token_embd.weight": embedding.tensor(), "output.weight": head.tensor()}

    def norm(scale):
        return [WIDTH], 0, f32([scale] * WIDTH)

    # A norm divides by the root of the mean square, which is the same at nearly all positions, so
    # it can be multiplied by it again: signs stay 1 and -1.
    length = 1.0 + CODE
    for i, attention in enumerate((copies_earlier(), finds_next(),
                                   replaces(code, first, equals, greater))):
        g.tensors[f"blk.{i}.attn_norm.weight"] = norm(math.sqrt(length / WIDTH))
        g.tensors.update({f"blk.{i}.{n}.weight": t for n, t in attention.items()})
        g.tensors[f"blk.{i}.ffn_norm.weight"] = norm(1.0)
        g.tensors[f"blk.{i}.ffn_gate.weight"] = noise(n_ff, WIDTH, rng)
        g.tensors[f"blk.{i}.ffn_up.weight"] = noise(n_ff, WIDTH, rng)
        g.tensors[f"blk.{i}.ffn_down.weight"] = Matrix(WIDTH, n_ff).tensor()
        length += sum(EARLIER) if i == 0 else CODE * SMALL ** 2
    g.tensors["output_norm.weight"] = norm(0.7)
    g.path = g.write(os.path.join(folder, name + ".gguf"))
    return g


def texts(n, words=300):
    """Some texts of so many words or a few more, from all over the guide's answers."""
    answers = [t.answer for t in corpus_module.Corpus().topics.values()]
    made = []
    for i in range(n):
        text, at = "", len(answers) * i // n
        while len(text.split()) < words:
            text += ("\n\n" if text else "") + answers[at]
            at += 1
        made.append(text)
    return made


def edited(text, n):
    """Replace up to n words wherever they come after a space: words that are not near each other,
    and never twice with the same neighbour, since the model finds its place by its last words.
    Returns the rules for the model, as a system message, the text with the other words, and how many
    places changed."""
    tokens = set(Gguf(GUIDE).get("tokenizer.ggml.tokens")[1])
    words = re.findall(r" ?[A-Za-z]+", text)
    places = collections.defaultdict(list)
    for i, word in enumerate(words):
        places[word].append(i)

    def is_single(word):
        return word[0] == " " and SPACE + word[1:] in tokens

    def is_clear(word, at):
        beside = [words[i + d] for i in at for d in (-1, 1) if 0 <= i + d < len(words)]
        return 1 < len(at) < 5 and len(word) > 4 and len(beside) == len(set(beside)) and \
            not re.search(word + "[A-Za-z]", text)

    old = []
    for word, at in places.items():
        if is_single(word) and is_clear(word, at) and len(old) < n and \
                all(abs(i - k) > 4 for o in old for i in places[o] for k in at):
            old.append(word)
    new = [w for w in (" value", " answer", " number", " question", " letter", " window", " table")
           if w not in places and is_single(w)]
    rules = dict(zip(old, new))
    for a, b in rules.items():
        text = text.replace(a, b)
    return ("".join(f"{a} => {b[1:]}\n" for a, b in rules.items()), text,
            sum(len(places[a]) for a in rules))
