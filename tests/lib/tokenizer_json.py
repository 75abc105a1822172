"""A small tokenizer.json, with steps as programs write them that save tokenizers again.

    json.dump(characters(pre_tokenizer=split(TEKKEN)), file)
"""
from chain_model import byte_char

# The patterns of two published models.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BLOCK = "\u2581"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": BLOCK}
NFC = {"type": "NFC"}
GEMMA_SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
               "invert": False}


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior,
            "invert": invert}


def prepend(text=BLOCK):
    return {"type": "Prepend", "prepend": text}


def metaspace(scheme="first", split=False):
    return {"type": "Metaspace", "replacement": BLOCK, "prepend_scheme": scheme, "split": split}


def byte_level(adds_prefix=False, use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": adds_prefix, "trim_offsets": True,
            "use_regex": use_regex}


def digits(individual=True):
    return {"type": "Digits", "individual_digits": individual}


def sequence(*steps):
    """A Sequence of normalizers or of pre-tokenizers."""
    normalizers = ("NFC", "Replace", "Prepend", "Lowercase")
    is_normalizer = steps[0]["type"] in normalizers or "normalizers" in steps[0]
    return {"type": "Sequence",
            "normalizers" if is_normalizer else "pretokenizers": list(steps)}


def make(vocab, merges, normalizer, pre_tokenizer, model):
    vocab = {t: i for i, t in enumerate(vocab)}
    for m in merges:
        vocab.setdefault(m.replace(" ", ""), len(vocab))
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": None,
            "decoder": None,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
                      "merges": merges} | model}


def characters(normalizer=REPLACE, pre_tokenizer=None, **model):
    """A vocabulary over characters, with bytes for those without a token."""
    vocab = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)] + list(BLOCK + "abcdis'!123\u00e9")
    merges = ["a b", f"{BLOCK} a", f"{BLOCK} ab", f"{BLOCK} {BLOCK}", "1 2", "12 3", "' s",
              f"b {BLOCK}", f"{BLOCK} !", "! !", f"{BLOCK}! !", "ab c"]
    return make(vocab, merges, normalizer, pre_tokenizer,
                {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"} | model)


def byte_letters(pre_tokenizer, normalizer=None, **model):
    """A byte-level vocabulary."""
    char = byte_char()
    vocab, space = [char[b] for b in range(256)], char[32]
    merges = ["a b", f"{space} a", f"{space} ab", f"{space} {space}", "1 2", "12 3", "' s",
              f"b {space}", f"{space} !", "! !", f"{space}! !", "ab c"]
    return make(vocab, merges, normalizer, pre_tokenizer, model)
