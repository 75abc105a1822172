"""The guide's tokenizer: byte pair encoding over characters, byte fallback, as Gemma 4 has it.

    0..4         <pad> <eos> <bos> <unk> <mask>
    5, 6         <|turn> <turn|>
    7..262       <0x00>..<0xFF>, for characters without a token of their own
    263..        newline, printable ASCII, U+2581 in the place of the space, then merged pieces

A merge never crosses from letters to digits or punctuation, and a space only begins a token.  A
token is therefore a word, with or without its space, or a part of one.
"""
import collections
import re

SPACE = "\u2581"
CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>"]
PAD, EOS, BOS, UNK, MASK, TURN, END_TURN = range(len(CONTROL))
FIRST_BYTE = len(CONTROL)
CHARACTERS = ["\n", SPACE] + [chr(c) for c in range(0x21, 0x7f)]
PIECE = re.compile(SPACE + r"?(?:[A-Za-z]+|[0-9]|[^A-Za-z0-9" + SPACE + r"\n]+)|["
                   + SPACE + r"\n]")


class Tokenizer:
    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.tokens = CONTROL + [f"<0x{b:02X}>" for b in range(256)] + CHARACTERS
        self.tokens += [a + b for a, b in self.merges]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.cache = {}

    def encode(self, text):
        out = []
        for piece in PIECE.findall(text.replace(" ", SPACE)):
            if piece not in self.cache:
                self.cache[piece] = self._encode_piece(piece)
            out += self.cache[piece]
        return out

    def _encode_piece(self, piece):
        parts = list(piece)
        while len(parts) > 1:
            best = min(range(len(parts) - 1),
                       key=lambda i: self.rank.get((parts[i], parts[i + 1]), len(self.rank)))
            if (parts[best], parts[best + 1]) not in self.rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        out = []
        for p in parts:
            out += [self.ids[p]] if p in self.ids else [FIRST_BYTE + b for b in p.encode()]
        return out

    def decode(self, ids):
        data = b""
        for i in ids:
            if FIRST_BYTE <= i < FIRST_BYTE + 256:
                data += bytes([i - FIRST_BYTE])
            elif i >= FIRST_BYTE:
                data += self.tokens[i].replace(SPACE, " ").encode()
        return data.decode(errors="replace")

    def words(self):
        """For each token the number of its word: equal for tokens that differ in capitals or in
        the space before them."""
        numbers = {}
        return [numbers.setdefault(i if i < FIRST_BYTE + 256 else t.lstrip(SPACE).lower(),
                                   len(numbers)) for i, t in enumerate(self.tokens)]

    def turn(self, role, text):
        """One finished turn, as the chat template writes it."""
        return [TURN, *self.encode(f"{role}\n{text}"), END_TURN, *self.encode("\n")]

    def prompt(self):
        """The beginning of an answer."""
        return [TURN, *self.encode("model\n")]


def train(texts, size):
    """Learn merges from an iterable of texts until the vocabulary has the given size."""
    counts = collections.Counter()
    for text in texts:
        counts.update(PIECE.findall(text.replace(" ", SPACE)))
    words = [(list(piece), n) for piece, n in sorted(counts.items()) if len(piece) > 1]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (parts, n) in enumerate(words):
        for p in zip(parts, parts[1:]):
            pairs[p] += n
            where[p].add(i)
    merges, known = [], set(CHARACTERS)
    while len(CONTROL) + 256 + len(CHARACTERS) + len(merges) < size and pairs:
        best = min(pairs, key=lambda p: (-pairs[p], p))
        if best[0] + best[1] in known or not all(c in CHARACTERS for c in best[0] + best[1]):
            del pairs[best]
            continue
        merges.append(best)
        known.add(best[0] + best[1])
        for i in where.pop(best):
            _merge(words, i, best, pairs, where)
        del pairs[best]
    return Tokenizer(merges)


def _merge(words, i, pair, pairs, where):
    parts, n = words[i]
    for p in zip(parts, parts[1:]):
        pairs[p] -= n
    at = 0
    while at < len(parts) - 1:
        if (parts[at], parts[at + 1]) == pair:
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        at += 1
    for p in zip(parts, parts[1:]):
        pairs[p] += n
        where[p].add(i)
