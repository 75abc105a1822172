#!/usr/bin/env python3
"""Vocabularies that leave something open: how text is cut, special tokens, missing bytes."""
import json
import os
import sys
import unicodedata
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from chain_model import byte_char, chain  # noqa: E402
from gguf_edit import ARR, BOOL, I32, STR, U32, Gguf  # noqa: E402
from program import MODELS, FolderCase, HomeCase, budget, memwall, notices  # noqa: E402
from terminal import Terminal  # noqa: E402
from tokenizer_json import (BLOCK, GEMMA_SPLIT, LLAMA3, NFC, REPLACE, TEKKEN,  # noqa: E402
                            byte_letters, byte_level, characters, digits, make, metaspace,
                            prepend, sequence, split)

U64 = 10
PRE = "tokenizer.ggml.pre"
SMALL = ("-b", budget(200), "-t", "1")
TEXT = "it's 12345 IT'S xY!\n\n"
PIECES = (b"'s", b"'S", b"123", b"12345", b" 1", b"xY", b"!\n", b"IT", b"\n\n")

# The rule of a vocabulary, the id of its last ordinary token, and this token.
KNOWN = (("gpt-2", 50255, " gazed"), ("dbrx", 100255, " Conveyor"), ("llama-bpe", 127999, "锦"),
         ("deepseek-v3", 127999, "屋檐"), ("tekken", 131071, "后汉书"), ("qwen2", 151642, "⽗"),
         ("gpt-4o", 199997, " cocos"))
# The rule that published models of an architecture have.
FAMILIES = (("gpt-oss", (), "gpt-4o"), ("granite", (), "refact"),
            ("arcee", (), "llama-bpe"), ("bailingmoe2", (), "bailingmoe2"),
            ("bailingmoe3", (), "bailingmoe2"), ("cohere2", (), "command-r"),
            ("deepseek2", (), "deepseek-llm"), ("deepseek2", ("[gMASK]",), "glm4"),
            ("deepseek2", ("<|im_middle|>",), "kimi-k2"),
            ("deepseek2", ("<\uff5cUser\uff5c>",), "deepseek-v3"), ("deepseek4", (), "deepseek-v3"),
            ("exaone4", (), "exaone4"), ("falcon-h1", (), "falcon-h1"), ("glm4moe", (), "glm4"),
            ("glm5-next", (), "glm4"), ("granitehybrid", (), "dbrx"),
            ("granitemoe", (), "refact"), ("hunyuan-dense", (), "hunyuan-dense"),
            ("hunyuan-moe", (), "hunyuan"), ("kimi-linear", (), "kimi-k2"),
            ("laguna", (), "laguna"), ("lfm2", (), "lfm2"), ("lfm2moe", (), "lfm2"),
            ("mellum", (), "mellum2"), ("minimax-m2", (), "minimax-m2"),
            ("muse-glimmer", (), "llama4"), ("nemotron_h", (), "pixtral"),
            ("nemotron_h_moe", (), "pixtral"), ("olmoe", (), "olmo"), ("qwen2moe", (), "qwen2"),
            ("qwen4exp", (), "qwen35"), ("seed_oss", (), "seed-coder"),
            ("llama", ("<|start_header_id|>",), "llama-bpe"), ("llama", ("[INST]",), "tekken"),
            ("llama", ("<gh_stars>",), "smollm"), ("llama", (">>TITLE<<",), "falcon3"),
            ("llama", (), "default"), ("mistral3", (), "tekken"), ("olmo2", (), "dbrx"),
            ("phi3", (), "dbrx"), ("qwen2", (), "qwen2"), ("qwen3", (), "qwen2"),
            ("qwen35", (), "qwen35"), ("qwen35moe", (), "qwen35"), ("qwen3moe", (), "qwen2"),
            ("qwen3next", (), "qwen2"), ("smollm3", (), "llama-bpe"), ("other", (), "default"))


def letters(raw):
    return "".join(byte_char()[b] for b in raw)


def tokenize(path, text=TEXT):
    r = memwall("tokenize", "-m", path, "--ids", stdin=text)
    return r.returncode, r.stdout.split(), r.stderr


class HowTextIsCut(HomeCase):
    def vocabulary(self, n, last):
        """A file with a vocabulary of n tokens, of which the last is given, and no weights."""
        g = chain(self.folder, "small", {}, pieces=PIECES, arch="llama")
        tokens = [t for t in g.get("tokenizer.ggml.tokens")[1] if t[0] != "<"]
        tokens += [f"<{i}>" for i in range(len(tokens), n - 1)] + [letters(last.encode())]
        g.keys["tokenizer.ggml.tokens"] = (ARR, (STR, tokens))
        del g.keys["tokenizer.ggml.token_type"], g.keys["tokenizer.chat_template"]
        del g.keys["tokenizer.ggml.eos_token_id"]
        g.tensors = {}
        return g

    def test_a_vocabulary_is_recognised_by_its_last_token(self):
        for pre, last_id, last in KNOWN:
            g = self.vocabulary(last_id + 1, last)
            g.keys[PRE] = (STR, pre)
            want = tokenize(g.write(g.path))
            self.assertEqual((0, ""), (want[0], want[2]), pre)
            del g.keys[PRE]
            self.assertEqual(want, tokenize(g.write(g.path)), pre)
        for stated in ("default", "a-new-name"):
            g.keys[PRE] = (STR, stated)
            self.assertEqual(want, tokenize(g.write(g.path)), stated)

    def test_a_token_at_another_place_proves_nothing(self):
        g = self.vocabulary(50255, " gazed")
        del g.keys[PRE]
        self.assertIn(PRE, tokenize(g.write(g.path))[2])

    def test_the_rule_of_the_family_is_used_with_a_notice(self):
        for arch, marks, pre in FAMILIES:
            g = chain(self.folder, "m", {}, pieces=PIECES, pre=pre, arch=arch,
                      marks=("<|im_start|>", "<|im_end|>") + marks)
            want = tokenize(g.path)
            del g.keys[PRE]
            for stated in (None, "default", "a-new-name\x1b[31m"):
                if stated is not None:
                    g.keys[PRE] = (STR, stated)
                code, ids, err = tokenize(g.write(g.path))
                self.assertEqual((0, want[1]), (code, ids), (arch, marks, stated))
                self.assertIn(f"({pre})" if pre != "default" else "by a general rule", err)
                self.assertIn("tokenizer.ggml.pre is", err)
                self.assertEqual(1, len(err.splitlines()), err)
                self.assertNotIn("\x1b", err)

    def test_tokens_of_several_words(self):
        """Those of EXAONE 4.5; long texts are encoded block by block."""
        g = chain(self.folder, "m", {}, pieces=(b"b c", b"'s d"), pre="exaone-moe")
        self.assertEqual([str(g.id_of["b\u0120c"])], tokenize(g.path, "b c")[1])
        line, n = "ab c's d, b c 12 f!\n", 12000
        one, two, all_of_it = (len(tokenize(g.path, line * i)[1]) for i in (1, 2, n))
        self.assertEqual(len(line) - 2 - 2 - 1, one)  # "b c" twice, and "'s"
        self.assertEqual(one + (n - 1) * (two - one), all_of_it)

    def test_a_stated_rule_needs_no_notice(self):
        g = chain(self.folder, "m", {}, pre="gpt-2", arch="qwen2")
        self.assertEqual("", tokenize(g.path)[2])
        r = memwall("inspect", g.path)
        self.assertNotIn("notice", r.stdout)

    def test_every_start_has_the_notice(self):
        g = chain(self.folder, "m", {}, pre="qwen2")
        del g.keys[PRE]
        g.write(g.path)
        want = "how its tokenizer cuts text into words (tokenizer.ggml.pre is missing)"
        r = memwall("run", "-m", g.path, "-n", "1", *SMALL, "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn(want, r.stderr)
        self.assertNotIn(want, memwall("run", "-q", "-m", g.path, "-n", "1", *SMALL, "hi").stderr)
        t = Terminal("-m", g.path, *SMALL, home=self.folder, cols=120)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("(tokenizer.ggml.pre is missing)"), t.screen())
        self.assertIn("notice        The file does not say " + want,
                      memwall("inspect", g.path).stdout)
        self.assertIn(want, json.loads(memwall("inspect", "--json", g.path).stdout)
                      ["tokenizer_notice"])
        text = self.path("text")
        with open(text, "w", encoding="utf-8") as f:
            f.write("some words")
        self.assertIn(want, memwall("eval", "-m", g.path, "--text", text, *SMALL).stderr)


class SpecialTokens(FolderCase):
    def run_with(self, model, *keys):
        g = Gguf(os.path.join(MODELS, model)) if isinstance(model, str) else model
        for name, value in keys:
            g.keys[f"tokenizer.ggml.{name}"] = value
        return memwall("run", "-m", g.write(self.path("m.gguf")), "-n", "2", "--temp", "0", *SMALL,
                       "hi")

    def test_an_id_that_nothing_needs_is_ignored(self):
        want = self.run_with("llama-tiny.gguf")
        self.assertEqual((0, ""), (want.returncode, want.stderr))
        names = ("padding", "unknown", "seperator", "separator", "mask", "cls", "fim_pre",
                 "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix",
                 "middle", "eot", "eom", "classifier")
        for value in ((U32, 4294967295), (I32, -1), (U32, 320), (U32, 99999999), (I32, -7),
                      (U64, 2**64 - 1), (U64, 2**63), (STR, "none")):
            r = self.run_with("llama-tiny.gguf", *((name + "_token_id", value) for name in names))
            self.assertEqual((0, want.stdout, ""),
                             (r.returncode, r.stdout, notices(r.stderr)), value)

    def test_minus_one_means_none(self):
        for value in ((U32, 4294967295), (I32, -1), (U64, 2**64 - 1)):
            r = self.run_with("llama-tiny.gguf", ("eos_token_id", value), ("bos_token_id", value))
            self.assertEqual((0, ""), (r.returncode, notices(r.stderr)), value)

    def test_a_needed_id_outside_is_named_and_counts_as_missing(self):
        for name in ("bos", "eos"):
            g = Gguf(os.path.join(MODELS, "llama-tiny.gguf"))
            del g.keys[f"tokenizer.ggml.{name}_token_id"]
            want = self.run_with(g)
            for value in ((U32, 320), (U32, 99999999), (I32, -2)):
                r = self.run_with("llama-tiny.gguf", (name + "_token_id", value))
                self.assertEqual((0, want.stdout), (r.returncode, r.stdout), value)
                self.assertIn(f"tokenizer.ggml.{name}_token_id is {value[1]}, outside the "
                              "vocabulary of 320 tokens", r.stderr)

    def test_a_begin_token_that_is_not_used_needs_no_notice(self):
        g = chain(self.folder, "m", {})
        r = self.run_with(g, ("bos_token_id", (U32, 11111111)), ("add_bos_token", (BOOL, False)))
        self.assertEqual((0, ""), (r.returncode, notices(r.stderr)))


class MissingBytes(FolderCase):
    """llama-tiny has tokens for a to z; other characters become the tokens of their bytes."""

    def open(self, *missing, text="word"):
        """llama-tiny without some of its byte tokens; none given: without all of them."""
        g = Gguf(os.path.join(MODELS, "llama-tiny.gguf"))
        texts, types = g.get("tokenizer.ggml.tokens")[1], g.get("tokenizer.ggml.token_type")[1]
        self.byte = texts.index("<0x00>")
        for byte in missing or range(256):
            texts[self.byte + byte], types[self.byte + byte] = text or f"word{byte}", 1
        return g

    def ids(self, g, text):
        code, ids, err = tokenize(g.write(self.path("m.gguf")), text)
        self.assertEqual((0, ""), (code, err))
        return [int(x) for x in ids]

    def test_a_token_with_the_character_takes_the_place_of_its_byte(self):
        g = self.open(10, text="\n")
        a, b = g.get("tokenizer.ggml.tokens")[1].index("a"), self.byte + 10
        self.assertEqual([b, b, a], self.ids(g, "a\n\na")[-3:])
        g.get("tokenizer.ggml.token_type")[1][b] = 6  # "byte", as some converters write it
        self.assertEqual([b, b, a], self.ids(g, "a\n\na")[-3:])
        r = memwall("run", "-m", self.path("m.gguf"), "-n", "2", *SMALL, "a\nb")
        self.assertEqual((0, ""), (r.returncode, notices(r.stderr)))

    def test_a_vocabulary_without_byte_tokens_runs(self):
        g = self.open(text=None)
        a = g.get("tokenizer.ggml.tokens")[1].index("a")
        self.assertEqual([0, a], self.ids(g, "a\u4e00\u00e9a")[1:])  # a run is one
        self.assertEqual([0, 0], [i for i in self.ids(g, "\u00e9 \u00e9") if i == 0])
        r = memwall("run", "-m", self.path("m.gguf"), "-n", "2", *SMALL, "hi\n")
        self.assertEqual((0, ""), (r.returncode, notices(r.stderr)))

    def test_a_character_needs_all_of_its_bytes(self):
        g = self.open(0xa9)
        byte = self.byte
        self.assertEqual([0, byte + 0xc3, byte + 0xa8, 0],
                         self.ids(g, "\u00e9\u00e8\u00e9")[-4:])

    def test_text_in_pieces_has_one_unknown_token_for_a_run(self):
        g = self.open()
        self.assertEqual(1, self.ids(g, "a" + "\u4e00" * 70000 + "a").count(0))

    def test_without_an_unknown_token_only_the_text_is_refused(self):
        g = chain(self.folder, "m", {})
        tokens = g.get("tokenizer.ggml.tokens")[1]
        tokens[0x80], tokens[0xe9] = "gone", "gone too"
        self.assertEqual([ord("a")], self.ids(g, "a"))
        code, ids, err = tokenize(self.path("m.gguf"), "a\u00c0")
        self.assertEqual((1, 1), (code, len(err.splitlines())), err)
        self.assertIn("no token for the character with the byte 80", err)
        r = memwall("run", "-m", self.path("m.gguf"), "-n", "1", *SMALL, "\u00c0")
        self.assertEqual(1, r.returncode)
        self.assertIn("byte 80", r.stderr)
        g.keys["tokenizer.ggml.unknown_token_id"] = (U32, 3)
        self.assertEqual([0x61, 0xc3, 3], self.ids(g, "a\u00c0"))


class TypesOfBytes(FolderCase):
    """Tokens like <0x98> whose type is not that of a byte."""

    def test_in_a_vocabulary_of_characters(self):
        for n in 256, 251:
            rows = set()
            for kind in 6, 1, 2, 3, 4, 5:
                g = Gguf(os.path.join(MODELS, "llama-tiny.gguf"))
                texts = g.get("tokenizer.ggml.tokens")[1]
                types = g.get("tokenizer.ggml.token_type")[1]
                first = texts.index("<0x00>")
                types[first:first + 256] = [kind] * n + [1] * (256 - n)
                texts[first + n:first + 256] = [f"word{i}" for i in range(256 - n)]
                r = memwall("tokenize", "-m", g.write(self.path(f"{kind}.gguf")), "--json",
                            stdin="a\u00e9<0xC3>\u00c1")
                self.assertEqual(0, r.returncode, r.stderr)
                rows.add(r.stdout)
            self.assertEqual(1, len(rows))
            self.assertIn('"byte"', rows.pop())

    def test_in_a_vocabulary_of_bytes(self):
        names = [f"<0x{b:02X}>" for b in range(256)]
        links = {"\n": "<0xC3>", "<0xC3>": "<0xA9>", "<0xA9>": "x"}
        for marks, user in ((), names), (names, ()):
            g = chain(self.folder, "m", links, marks=("<|im_start|>", "<|im_end|>", *marks),
                      user=user)
            r = memwall("run", "-m", g.path, *SMALL, "hi")
            self.assertEqual("\u00e9x\n", r.stdout)

    def test_single_words_of_this_form_are_text(self):
        g = chain(self.folder, "m", {"\n": "<0xC3>"}, user=("<0xC3>",))
        r = memwall("run", "-m", g.path, *SMALL, "hi")
        self.assertEqual("<0xC3>\n", r.stdout)


# Ids of tokenizers 0.23.2 for the text.
AGAIN = "ab  ab!! !!12312 b b it's d\u00e9e\u0301 abc\nab   c\u4e00"
SAVED_AGAIN = (
    (characters(normalizer=sequence(prepend(), REPLACE)),
     "272 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 102 205 130 272 260 11 "
     "270 273 257 260 229 185 129"),
    (characters(normalizer=sequence(REPLACE, prepend())),
     "272 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 102 205 130 272 260 11 "
     "270 273 257 260 229 185 129"),
    (characters(normalizer=sequence(prepend(" "), REPLACE)),
     "272 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 102 205 130 272 260 11 "
     "270 273 257 260 229 185 129"),
    (characters(normalizer=sequence(NFC, sequence(REPLACE))),
     "270 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 269 272 260 11 270 273 "
     "257 260 229 185 129"),
    (characters(normalizer=REPLACE | {"pattern": {"Regex": " "}}),
     "270 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 102 205 130 272 260 11 "
     "270 273 257 260 229 185 129"),
    (characters(pre_tokenizer=GEMMA_SPLIT),
     "270 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 102 205 130 272 260 11 "
     "270 273 257 260 229 185 129"),
    (characters(pre_tokenizer=sequence(split(TEKKEN), GEMMA_SPLIT)),
     "270 273 270 279 280 266 267 268 266 267 257 259 257 259 257 262 117 276 257 261 269 "
     "102 205 130 272 260 11 270 273 257 260 229 185 129"),
    (characters(pre_tokenizer=split(LLAMA3, "Removed", True)),
     "270 273 270 279 280 275 274 257 259 257 259 257 262 117 276 257 261 269 102 205 130 "
     "257 281 11 270 273 257 260 229 185 129"),
    (characters(pre_tokenizer=sequence(digits(False), split(LLAMA3))),
     "270 273 270 279 280 275 274 257 259 257 259 257 262 117 276 257 261 269 102 205 130 "
     "257 281 11 270 273 257 260 229 185 129"),
    (characters(normalizer=None, pre_tokenizer=metaspace()),
     "272 257 272 279 280 275 274 257 277 277 262 117 276 257 261 269 102 205 130 272 260 11 "
     "270 273 257 260 229 185 129"),
    (characters(normalizer=None, pre_tokenizer=metaspace("always", True)),
     "272 257 272 279 280 275 274 257 259 257 259 257 262 117 276 257 261 269 102 205 130 "
     "272 260 11 270 257 257 257 260 229 185 129"),
    (characters(normalizer=None, pre_tokenizer=sequence(split(TEKKEN), metaspace())),
     "272 257 272 279 280 266 267 268 266 267 257 259 257 259 257 262 117 276 257 261 269 "
     "102 205 130 272 260 11 270 273 257 260 229 185 129"),
    (characters(normalizer=None, pre_tokenizer=sequence(split(LLAMA3), metaspace("always", True))),
     "272 257 272 280 280 257 275 257 274 257 259 257 259 257 262 117 257 276 257 261 269 "
     "102 257 205 130 272 260 257 11 272 257 257 257 260 229 185 129"),
    (characters(ignore_merges=True, pre_tokenizer=split(TEKKEN)),
     "270 273 270 279 280 266 267 268 266 267 257 259 257 259 257 262 117 276 257 261 269 "
     "102 205 130 272 260 11 270 273 257 260 229 185 129"),
    (characters(ignore_merges=True, normalizer=None, pre_tokenizer=metaspace("never", True)),
     "270 257 272 279 280 275 274 257 259 257 259 257 262 117 276 257 261 269 102 205 130 "
     "272 260 11 270 257 257 257 260 229 185 129"),
    (characters(byte_fallback=False),
     "270 257 272 279 280 275 274 257 277 277 262 0 276 257 261 269 0 272 260 0 270 273 257 "
     "260 0"),
    (characters(byte_fallback=False, fuse_unk=False),
     "270 257 272 279 280 275 274 257 277 277 262 0 276 257 261 269 0 0 272 260 0 270 273 "
     "257 260 0"),
    (byte_letters(byte_level()),
     "256 32 258 265 266 261 260 32 263 263 105 116 262 32 100 195 169 101 204 129 258 99 10 "
     "256 259 32 99 228 184 128"),
    (byte_letters(byte_level(True)),
     "258 32 258 265 266 261 260 32 263 263 105 116 262 32 100 195 169 101 204 129 258 99 10 "
     "256 259 32 99 228 184 128"),
    (byte_letters(byte_level(False, True)),
     "256 32 258 265 266 261 260 32 98 32 98 32 105 116 262 32 100 195 169 101 204 129 258 "
     "99 10 256 259 32 99 228 184 128"),
    (byte_letters(byte_level(True, True)),
     "258 32 258 265 266 261 260 32 98 32 98 32 105 116 262 32 100 195 169 101 204 129 258 "
     "99 10 256 259 32 99 228 184 128"),
    (byte_letters(sequence(split(LLAMA3), byte_level(False, True))),
     "256 32 258 265 266 261 260 32 98 32 98 32 105 116 262 32 100 195 169 101 204 129 258 "
     "99 10 256 259 32 99 228 184 128"),
    (byte_letters(sequence(digits(), byte_level(False, True))),
     "256 32 258 265 266 49 50 51 49 50 32 98 32 98 32 105 116 262 32 100 195 169 101 204 "
     "129 258 99 10 256 259 32 99 228 184 128"),
    (byte_letters(sequence(digits(), split(LLAMA3), byte_level())),
     "256 32 258 265 266 49 50 51 49 50 32 98 32 98 32 105 116 262 32 100 195 169 101 204 "
     "129 258 99 10 256 259 32 99 228 184 128"),
    (byte_letters(sequence(digits(False), byte_level())),
     "256 32 258 265 266 261 260 32 263 263 105 116 262 32 100 195 169 101 204 129 258 99 10 "
     "256 259 32 99 228 184 128"),
)
# Patterns of the tokenizer.json of newer families, with their name in GGUF files.
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = split(r"(?:\r?\n)+(?!\r?\n)", "MergedWithNext")
QWEN2 = LLAMA3.replace("{1,3}", "")
SEED = (SHORT + "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|"
        "\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
EXAONE = (SHORT + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")
LING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
        r"\s*[\r\n]|\s+(?!\S)|\s+")


def cased():
    """The letters with case that the pattern of DeepSeek V2 lists: those of Unicode 12 without
    some scripts."""
    left_out = ((0x560, 0x588), (0x10c7, 0x10ff), (0x1c80, 0x1c8f), (0x2d00, 0x2d2d),
                (0xa790, 0xa7fa), (0xab30, 0xab68), (0x10570, 0x105bc), (0x10d50, 0x10d85),
                (0x16e40, 0x16e7f), (0x1d400, 0x1d7cb), (0x1df00, 0x1df2a))
    runs = []
    for c in range(0x80, 0x110000):
        if (unicodedata.category(chr(c)) in ("Lu", "Ll", "Lt") and
                not any(a <= c <= b for a, b in left_out)):
            if runs and runs[-1][-1] == c - 1:
                runs[-1].append(c)
            else:
                runs.append([c])
    return "A-Za-z" + "".join("".join(map(chr, r)) if len(r) < 3 else chr(r[0]) + "-" + chr(r[-1])
                              for r in runs)


PUBLISHED = (
    ("laguna", (LINES, split(QWEN2), byte_level())),
    ("seed-coder", (split(SEED), byte_level())),
    ("bailingmoe2", (split(LING), byte_level())),
    ("exaone-moe", (split(EXAONE), byte_level())),
    ("deepseek-llm", (split("[\r\n]"), split(r"\s?[" + cased() + "]+"),
                      split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
                      split(r"\s+$"), split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
                      digits(), byte_level())),
)
TAKE_ANOTHER = ("if this file was saved again or changed, take the original tokenizer.json, or a "
                "GGUF file of the model")


class SavedAgain(FolderCase):
    """Files tokenizer.json as programs write them that save a tokenizer again."""

    def ids(self, tokenizer, text=AGAIN):
        with open(self.path("tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)
        return tokenize(self.folder, text)

    def test_other_steps_give_the_ids_of_the_library(self):
        for tokenizer, want in SAVED_AGAIN:
            self.assertEqual((0, want.split(), ""), self.ids(tokenizer),
                             (tokenizer["normalizer"], tokenizer["pre_tokenizer"]))

    def test_patterns_of_newer_families(self):
        """A tokenizer.json gives the ids of a GGUF file with the name of its patterns."""
        text = TEXT + "a \nb c"
        seen = set()
        for pre, steps in PUBLISHED:
            g = chain(self.folder, "m", {}, pieces=PIECES + (b" \n", b"b c"), pre=pre)
            want = tokenize(g.path, text)
            tokens, merges = (g.get("tokenizer.ggml." + key)[1] for key in ("tokens", "merges"))
            self.assertEqual(want, self.ids(make(tokens, merges, None, sequence(*steps), {}), text),
                             pre)
            seen.add(" ".join(want[1]))
        self.assertEqual(len(PUBLISHED), len(seen))

    def test_merges_may_be_pairs(self):
        t = characters()
        want = self.ids(t)
        t["model"]["merges"] = [m.split(" ") for m in t["model"]["merges"]]
        self.assertEqual(want, self.ids(t))

    def test_a_piece_of_text_does_not_change_the_ids(self):
        """Long texts are encoded block by block."""
        text = "ab  c!! \u00e9d 123 " * 12000
        for steps in (split(TEKKEN), sequence(split(TEKKEN), metaspace("always"))):
            t = characters(REPLACE if steps["type"] == "Split" else None, steps)
            code, ids, err = self.ids(t, text)
            self.assertEqual((0, ""), (code, err))
            one = self.ids(t, text[:len(text) // 12000])[1]
            two = self.ids(t, text[:len(text) // 6000])[1]
            self.assertEqual(len(one) + 11999 * (len(two) - len(one)), len(ids), steps)

    def test_a_piece_of_several_words_does_not_change_the_ids(self):
        """Words that a space separates may be one token, by merges or as a whole."""
        n, words = 12000, "ab" + " ab" * 7
        merged = [characters(None, sequence(split(EXAONE), metaspace(scheme)))
                  for scheme in ("never", "always")]
        whole = byte_letters(sequence(split(EXAONE), byte_level()), ignore_merges=True)
        for t in merged:
            for half in (f"{BLOCK}ab" * 2**i for i in range(3)):
                t["model"]["merges"].append(f"{half} {half}")
                t["model"]["vocab"][half * 2] = len(t["model"]["vocab"])
        whole["model"]["vocab"][(" " + words).replace(" ", "\u0120")] = len(whole["model"]["vocab"])
        for t in (*merged, whole):
            one, two, all_of_it = (len(self.ids(t, (words + ", ") * i)[1]) for i in (1, 2, n))
            self.assertEqual(one + (n - 1) * (two - one), all_of_it, t["pre_tokenizer"])

    def test_added_tokens(self):
        """A text of an added token that the library finds in normalized text gets a notice."""
        def add(t, content="<x>", at=None, **more):
            n = len(t["model"]["vocab"]) if at is None else at
            t["added_tokens"] = [{"id": n, "content": content, "single_word": False,
                                  "lstrip": False, "rstrip": False, "normalized": True,
                                  "special": False} | more]
            return t

        for normalizer in (REPLACE, sequence(prepend(), REPLACE)):
            code, ids, err = self.ids(add(characters(normalizer)), "ab <x>")
            self.assertEqual((0, "282"), (code, ids[-1]))
            self.assertEqual(normalizer != REPLACE, 'added token "<x>" is to be found' in err)
            for more in ({"special": True}, {"normalized": False}):
                code, ids, err = self.ids(add(characters(normalizer), **more), "ab")
                self.assertEqual((0, ""), (code, err))
        for t in (add(characters(), "abc"), add(characters(), at=500),
                  add(characters(), single_word=True)):
            code, ids, err = self.ids(t)
            self.assertEqual((1, []), (code, ids))
            self.assertIn(TAKE_ANOTHER, err)

    def test_special_tokens_that_the_vocabulary_lacks(self):
        def notice(**config):
            with open(self.path("tokenizer_config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            code, ids, err = self.ids(characters(), "ab")
            self.assertEqual((0, ["270"]), (code, ids))
            return err

        nope = "<nope\x1b[31m>"
        self.assertEqual("", notice(pad_token=nope, unk_token=nope, sep_token=nope, bos_token=nope,
                                    add_bos_token=False, eos_token="<unk>", cls_token=5))
        for key, what in (("bos_token", "begin"), ("eos_token", "end")):
            for value in (nope, {"content": nope}):
                err = notice(add_bos_token=True, **{key: value})
                self.assertIn(f'The {what} token "<nope', err)
                self.assertNotIn("\x1b", err)

    def test_a_changed_tokenizer_is_refused_with_what_to_do(self):
        for tokenizer in (
                characters(pre_tokenizer=split("[abc]+")),
                characters(pre_tokenizer=split(TEKKEN, "MergedWithNext")),
                byte_letters(sequence(LINES | {"behavior": "Isolated"}, byte_level())),
                byte_letters(sequence(LINES | {"invert": True}, byte_level())),
                characters(pre_tokenizer={"type": "Whitespace"}),
                characters(sequence({"type": "Lowercase"}, REPLACE)),
                characters({"type": "NFKC"}),
                characters(sequence(REPLACE, prepend(" "))),
                characters(sequence(prepend(), prepend(), REPLACE)),
                characters(None),
                characters(None, GEMMA_SPLIT),
                characters(None, sequence(metaspace(), split(TEKKEN))),
                characters(sequence(REPLACE), byte_level()),
                characters(None, sequence(split(TEKKEN), byte_level())),
                byte_letters(None),
                byte_letters(sequence(split(LLAMA3), byte_level(True))),
                byte_letters(sequence(byte_level(), split(LLAMA3))),
                byte_letters(sequence(GEMMA_SPLIT, byte_level())),
                byte_letters(split(LLAMA3))):
            code, ids, err = self.ids(tokenizer)
            self.assertEqual((1, []), (code, ids), tokenizer["pre_tokenizer"])
            self.assertIn(TAKE_ANOTHER, err)
            self.assertEqual(1, len(err.splitlines()), err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
