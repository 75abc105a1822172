#!/usr/bin/env python3
"""Qwen3.8-Flash-Next (qwen4exp): residual streams, index keys and a table of n-grams give the
logits of the references in MW_SHARED/conformance/families2, and the same bits with any chunk,
threads, budget and type of keys and values."""
import array
import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain  # noqa: E402
from program import SRCDIR, memwall  # noqa: E402

FOLDER = os.path.join(os.environ.get("MW_SHARED", ""), "conformance", "families2")
LIMIT = 1e-3
TEMPLATE = os.path.join(SRCDIR, "tests", "data", "templates", "qwen3.8-like.jinja")


class Qwen4exp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def read(self, name):
        with open(os.path.join(FOLDER, name)) as f:
            return f.read()

    def model(self, name):
        path = os.path.join(FOLDER, name)
        if not os.path.exists(path):
            self.skipTest("%s is not in %s" % (name, FOLDER))
        return path

    def rows(self, model, ids, *args):
        out = os.path.join(self.folder, "logits")
        r = memwall("eval", model, "--ids", "-", "--logits", out, "--force", *args, stdin=ids)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        with open(out, "rb") as f:
            return f.read()

    def agrees(self, model, name):
        want, ids = array.array("f"), self.read(name + ".ids")
        with open(os.path.join(FOLDER, name + ".logits.f32"), "rb") as f:
            want.frombytes(f.read())
        for args in ((), ("--isa", "generic"), ("--chunk", "1"), ("--chunk", "7"),
                     ("--chunk", "16", "-t", "3")):
            got = array.array("f")
            got.frombytes(self.rows(model, ids, "--exact", "--kv", "f32", *args))
            self.assertEqual(len(want), len(got))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(want, got)), LIMIT, args)
        greedy = self.read(name + ".greedy").split()
        r = memwall("eval", model, "--ids", "-", "--greedy", str(len(greedy)), "--exact", "--kv",
                    "f32", stdin=ids)
        self.assertEqual((0, greedy), (r.returncode, r.stdout.split()))

    def has_the_same_bits(self, model, ids, *same):
        same += ("--blas", "never")
        want = self.rows(model, ids, *same)
        plan = json.loads(memwall("plan", model, "-b", "1G", "-c", str(len(ids.split())), "--json",
                                  "--chunk", "1", *same).stdout)
        least = str(plan["smallest_budget_bytes"] + (4 << 20))
        for args in (("--chunk", "1", "-b", least), ("--chunk", "7", "-t", "1"),
                     ("--chunk", "64", "-t", "3"), ("--chunk", "512")):
            self.assertTrue(want == self.rows(model, ids, *same, *args), (same, args))

    def test_the_logits_are_those_of_the_reference(self):
        for name in ("q4e-a", "q4e-q"):
            self.agrees(self.model(name + ".gguf"), name)

    def test_a_snapshot_gives_the_same_logits(self):
        model = self.model("q4e-a-hf")
        self.agrees(model, "q4e-a")
        self.has_the_same_bits(model, self.read("q4e-a.ids"))

    def test_the_bits_do_not_depend_on_chunks_and_budgets(self):
        ids = " ".join(str((7 * i * i + 3) % 291) for i in range(150))
        for name, kinds in (("q4e-a", ("f32", "f16")), ("q4e-q", ("f32", "f16", "q8_0", "q4_0"))):
            model = self.model(name + ".gguf")
            for kv in kinds:
                self.has_the_same_bits(model, ids, "--kv", kv)
            self.has_the_same_bits(model, ids, "--exact", "--kv", "f32")

    def test_inspect_describes_the_parts(self):
        r = memwall("inspect", self.model("q4e-a.gguf"))
        for line in ("4 residual streams", "to 16 positions, which index keys choose in blocks of 4",
                     "of up to 3 tokens, from a table that layer 1 adds", "4 rows per token",
                     "one key for 4 positions"):
            self.assertIn(line, r.stdout)
        gguf, folder = (json.loads(memwall("inspect", "--json", self.model(name)).stdout)
                        for name in ("q4e-a.gguf", "q4e-a-hf"))
        for key in ("n_stream", "index_block", "index_tokens", "index_values", "n_ngram",
                    "ngram_layer", "n_param", "recurrent_values"):
            self.assertEqual(gguf[key], folder[key], key)
        self.assertEqual((4, 4, 16, 16, 3, 1), tuple(gguf[key] for key in (
            "n_stream", "index_block", "index_tokens", "index_values", "n_ngram", "ngram_layer")))
        # Four delta nets, one open block in two layers, and nine columns and two ids of n-grams.
        delta = 4 * (4 * 8 * 8 + 3 * (2 * 2 * 8 + 4 * 8))
        self.assertEqual(delta + 2 * 3 * 8 + 9 * 96 + 2, gguf["recurrent_values"])

    def test_quantised_keys_stay_close(self):
        model, ids = self.model("q4e-q.gguf"), self.read("q4e-q.ids")
        want = array.array("f")
        want.frombytes(self.rows(model, ids, "--exact", "--kv", "f32"))
        spread = sum(x * x for x in want)
        for kv, bound in (("f16", 0.002), ("q8_0", 0.03)):
            got = array.array("f")
            got.frombytes(self.rows(model, ids, "--exact", "--kv", kv))
            rms = math.sqrt(sum((x - y) ** 2 for x, y in zip(want, got)) / spread)
            self.assertLessEqual(rms, bound, kv)

    def test_index_keys_are_an_item_of_the_plan(self):
        def item(kv, ctx):
            r = memwall("plan", self.model("q4e-a.gguf"), "-c", str(ctx), "--json", "--kv", kv)
            return json.loads(r.stdout)["rows"]["kv_index"]
        # Two layers with attention; a key of 8 values for each 4 positions, in pages of 256.
        self.assertEqual(2 * 64 * 8 * 4, item("f32", 100))
        self.assertEqual(2 * 64 * 8 * 2 * 4, item("f16", 1000))

    def render(self, messages, *args):
        path = os.path.join(self.folder, "messages")
        with open(path, "w") as f:
            json.dump(messages, f)
        r = memwall("tokenize", "-m", self.model("q4e-a.gguf"), "--template", TEMPLATE, "--chat",
                    "--text", *args, path)
        self.assertEqual(0, r.returncode, r.stderr)
        return r.stdout.rstrip("\n")

    def test_the_chat_format(self):
        """A template with the rules of the published one: the effort is stated in a system
        message, and earlier thinking stays."""
        effort = "Reasoning effort is set to xhigh. Think long."
        talk = [{"role": "user", "content": " hi "},
                {"role": "assistant", "content": "there", "reasoning_content": "hmm"},
                {"role": "user", "content": "so?"}]
        said = ("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\nhmm\n</think>"
                "\n\nthere<|im_end|>\n<|im_start|>user\nso?<|im_end|>\n<|im_start|>assistant\n")
        self.assertEqual(f"<|im_start|>system\n{effort}<|im_end|>\n{said}<think>",
                         self.render(talk))
        self.assertEqual(said + "<think>\n\n</think>", self.render(talk, "--no-think"))
        talk.insert(0, {"role": "system", "content": "Be kind."})
        self.assertEqual(f"<|im_start|>system\n{effort}\n\nBe kind.<|im_end|>\n{said}<think>",
                         self.render(talk))

    def test_an_answer_begins_inside_its_thinking(self):
        with open(TEMPLATE) as f:
            model = chain(self.folder, "m", {"\n": "a", "a": "</think>", "</think>": "c"},
                          user=("<think>", "</think>"), pre="qwen35", template=f.read())
        r = memwall("run", "-m", model.path, "--temp", "0", "-c", "256", "--json", "-n", "9", "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        last = json.loads(r.stdout.splitlines()[-1])
        self.assertEqual(("c", "a"), (last["text"], last["thinking"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
