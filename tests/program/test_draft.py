#!/usr/bin/env python3
"""memwall run --draft: the same text with fewer passes over the weights."""
import json
import math
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import ARR, Gguf, STR, f32  # noqa: E402
from program import FolderCase, SRCDIR, memwall, reference  # noqa: E402

UNUSED = 5  # a type of tokens
GUIDE = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")


class Drafts(FolderCase):
    def ask(self, model, *args, prompt="xa", code=0):
        r = memwall("run", "-m", model, "--raw", "--temp", "0", "-n", "120", "-b", "256M", "--json",
                    "--draft-depth", "7", *args, prompt)
        self.assertEqual(code, r.returncode, r.stderr)
        return json.loads(r.stdout.splitlines()[-1])

    def circle(self):
        return chain(self.folder, "circle", {**spell(*"abcdefg"), "g": "a"}).path

    def test_a_text_that_repeats_needs_few_passes(self):
        model = self.circle()
        off, on = self.ask(model, "--draft", "off"), self.ask(model, "--draft", "ngram")
        self.assertEqual(("bcdefga" * 18)[:120], off["text"])
        self.assertEqual(off["text"], on["text"])
        self.assertEqual((119, 0, 0), (off["n_pass"], off["n_drafted"], off["n_accepted"]))
        self.assertEqual(119, on["n_pass"] + on["n_accepted"])
        # The circle is known after ten tokens, and the last pass may draft more than is needed.
        self.assertLess(on["n_pass"], 10 + 110 / 8 + 2)
        self.assertEqual(120, on["n_decoded"])

    def test_the_result_has_what_drafts_gained_and_cost(self):
        off, on = (self.ask(self.circle(), "--draft", how) for how in ("off", "ngram"))
        self.assertNotIn("accepted_at", off)
        self.assertAlmostEqual((on["n_pass"] + on["n_accepted"]) / on["n_pass"],
                               on["tokens_per_pass"], 3)
        # All that is known to repeat is right, except for a draft after the end.
        self.assertEqual(7, len(on["accepted_at"]))
        self.assertGreater(on["accepted_at"][0], 0.9)
        self.assertEqual(8, len(on["pass_cost"]))
        self.assertEqual(1, on["pass_cost"][0])
        self.assertGreater(on["pass_cost"][7], 0)
        self.assertTrue(0 < on["drafter_share"] < 1, on["drafter_share"])

    def test_drafts_are_the_default(self):
        self.assertGreater(self.ask(self.circle())["n_accepted"], 0)

    def test_a_single_row_of_scores_drafts_nothing(self):
        self.assertEqual(0, self.ask(self.circle(), "--chunk", "1")["n_drafted"])

    def test_the_statistics_say_how_many_were_accepted(self):
        r = memwall("run", "-m", self.circle(), "--raw", "--temp", "0", "-n", "60", "-b", "256M",
                    "--stats", "--draft-depth", "3", "xa")
        self.assertRegex(r.stderr, r"drafts   \d+ of \d+ accepted; [2-9]\.\d\d tokens a pass\n"
                                   r" +accepted by place: \d+, \d+, \d+ %\n"
                                   r" +a pass over 3 drafts took \d+\.\d\d times one over none; "
                                   r"the drafter took \d+\.\d % of the answer's time\n")

    def test_a_stop_text_ends_in_the_middle_of_a_draft(self):
        for stop in "c", "ga", "fgabcd":
            off, on = (self.ask(self.circle(), "--stop", stop, "--draft", how, prompt="abcdefgab")
                       for how in ("off", "ngram"))
            self.assertEqual((off["text"], off["n_decoded"], off["done"]),
                             (on["text"], on["n_decoded"], on["done"]))

    def test_a_context_that_gets_full_ends_at_the_same_token(self):
        for ctx in "20", "47", "64":
            off, on = (self.ask(self.circle(), "-c", ctx, "--draft", how, code=1)
                       for how in ("off", "ngram"))
            self.assertEqual(("context", off["text"]), (on["done"], on["text"]))

    def test_tokens_are_drafted_if_the_disk_is_the_limit(self):
        """By itself: a pass waits a twentieth of a second for the disk, and computes much less."""
        marks = [f"<|{i}|>" for i in range(2000)]
        model = chain(self.folder, "wide", {**spell(*"abcdefg"), "g": "a"}, user=marks).path
        size = os.path.getsize(model)
        least = math.ceil(float(re.search(r"It fits a budget of ([\d.]+) MiB", memwall(
            "run", "-m", model, "-b", "1M", "x").stderr).group(1)))
        # Scores of drafts fit, and most of the output matrix does not.
        on = self.ask(model, "--draft-depth", "0", "-b", f"{least + 4}M", "--disk-rate",
                      str(10 * size))
        self.assertGreater(on["bytes_read"], 4 * size)
        self.assertLess(on["n_pass"], 60)

    def test_a_model_drafts_for_another(self):
        """The same chain drafts what it will choose; its memory is an item of the plan."""
        model, other = self.circle(), os.path.join(self.folder, "other.gguf")
        shutil.copy(model, other)
        off, on = self.ask(model, "--draft", "off"), self.ask(model, "--draft", other)
        self.assertEqual(off["text"], on["text"])
        self.assertGreater(on["n_accepted"], 100)
        self.assertLess(on["n_pass"], 120 / 8 + 2)
        plan = [json.loads(memwall("plan", "-m", model, "-b", "256M", "--json", "--draft", how).stdout)
                for how in ("off", other)]
        self.assertEqual(0, plan[0]["rows"]["drafter"])
        self.assertGreater(plan[1]["rows"]["drafter"], os.path.getsize(model) / 2)

    def test_a_drafter_that_is_left_out_is_named(self):
        why = ("the model does not draft for itself: all weights are in memory, so a draft would "
               "take as long as a token")
        for args, said in ((("self",), True), (("self", "-q"), False), (("auto",), False)):
            r = memwall("run", "-m", GUIDE, "-b", "256M", "-n", "3", "--draft", *args, "hello")
            self.assertEqual((0, said), (r.returncode, why in r.stderr), r.stderr)
            self.assertLessEqual(r.stderr.count("\n"), 1)
        plan = memwall("plan", "-m", GUIDE, "-b", "256M", "--draft", "self").stdout
        self.assertIn("\n" + why.capitalize() + ".\n", plan)

    def test_a_model_that_is_its_own_drafter_is_named(self):
        model, link = self.circle(), os.path.join(self.folder, "link.gguf")
        os.symlink(model, link)
        plan = json.loads(memwall("plan", model, "--json", "--draft", link).stdout)
        tight = str(plan["smallest_budget_bytes"] + 100000)
        plan = memwall("plan", model, "-b", tight, "--draft", link).stdout
        self.assertIn("\nThe model in link.gguf is this one itself and does not draft: its drafts "
                      "would take as long as tokens; --draft self drafts with smaller copies.\n",
                      plan)
        copy = os.path.join(self.folder, "copy.gguf")
        shutil.copy(model, copy)
        plan = memwall("plan", model, "-b", tight, "--draft", copy).stdout
        self.assertIn("\nThe model in copy.gguf does not draft: ", plan)
        plan = memwall("plan", model, "-b", "256M", "--draft", copy, "--what-if",
                       "RAM=8G,BW=100M/s").stdout  # a draft takes as long as a token
        self.assertRegex(plan, r"\nA pass verifies up to 15 drafts, but if 70 % of them were right, "
                               r"answers would not be faster\.\n")

    def test_the_help_names_a_file_as_a_drafter(self):
        for command in "run", "plan", "chat":
            text = " ".join(memwall("help", command).stdout.split())
            self.assertIn("off, auto, ngram, self, mtp, FILE (default: ", text)

    def other(self, name, change):
        """A copy of a model, with changes."""
        g = Gguf(reference(name))
        change(g)
        return g.write(os.path.join(self.folder, "changed.gguf"))

    def test_a_family_without_a_norm_before_attention_drafts(self):
        """Only its layers show that it is not a draft head."""
        def to_olmo2(g):
            n, heads, kv = (g.get("llama." + k) for k in ("block_count", "attention.head_count",
                                                          "attention.head_count_kv"))
            wide = g.tensors["blk.0.attn_q.weight"][0][1]
            g.keys["general.architecture"] = (STR, "olmo2")
            for name in [k for k in g.keys if k.startswith("llama.")]:
                g.rename(name, "olmo2" + name[5:])
            for i in range(n):
                g.rename_tensor(f"blk.{i}.attn_norm.weight", f"blk.{i}.post_attention_norm.weight")
                g.rename_tensor(f"blk.{i}.ffn_norm.weight", f"blk.{i}.post_ffw_norm.weight")
                for name, width in ("q", wide), ("k", wide // heads * kv):
                    g.tensors[f"blk.{i}.attn_{name}_norm.weight"] = ([width], 0, f32([1] * width))
        model = self.other("llama-tiny.gguf", to_olmo2)
        off, on = (self.ask(model, "--draft", how) for how in ("off", model))
        self.assertEqual(off["text"], on["text"])
        self.assertGreater(on["n_accepted"], 60)

    def test_a_damaged_model_that_drafts_changes_no_token(self):
        model = reference("llama-tiny.gguf")
        off = {temp: self.ask(model, "--draft", "off", "--temp", temp, "--seed", "3")
               for temp in ("0", "1")}
        for name in "blk.0.attn_k.weight", "blk.1.ffn_down.weight":
            for value in float("nan"), -3e38:
                def damage(g):
                    dims, _, _ = g.tensors[name]
                    g.tensors[name] = (dims, 0, f32([value] * math.prod(dims)))
                drafter = self.other("llama-tiny.gguf", damage)
                for temp, want in off.items():
                    on = self.ask(model, "--draft", drafter, "--temp", temp, "--seed", "3")
                    self.assertEqual((want["text"], want["done"]), (on["text"], on["done"]),
                                     (name, value, temp))

    def padded(self, name, n, kind, row=None):
        """The model of circle() with n more tokens, whose scores are those of a row, but higher."""
        g = Gguf(self.circle())
        width = g.tensors["token_embd.weight"][0][0]
        for tensor in "token_embd.weight", "output.weight":
            (dims, data_type, raw), more = g.tensors[tensor], bytes(4 * width * n)
            if row is not None and tensor == "output.weight":
                more = f32([2.0 if i == row else 0.0 for i in range(width)]) * n
            g.tensors[tensor] = ([width, dims[1] + n], data_type, raw + more)
        for key, values in ("tokens", [f"[PAD{i}]" for i in range(n)]), ("token_type", [kind] * n):
            inner, before = g.get("tokenizer.ggml." + key)
            g.keys["tokenizer.ggml." + key] = (ARR, (inner, before + values))
        return g.write(os.path.join(self.folder, name + ".gguf"))

    def test_a_vocabulary_may_have_more_unused_tokens(self):
        plain = self.circle()
        wide = self.padded("wide", 64, UNUSED)
        # Where the text has an "a", the drafter finds its unused tokens better than all others.
        eager = self.padded("eager", 300, UNUSED, row=ord("a"))
        for model, drafter in (plain, wide), (wide, plain), (plain, eager):
            off, on = self.ask(model, "--draft", "off"), self.ask(model, "--draft", drafter)
            self.assertEqual(off["text"], on["text"])
            self.assertGreater(on["n_accepted"], 100, (model, drafter))
        for kind in (1, 3, 4):
            used = self.padded("used", 64, kind)
            for model, drafter in (plain, used), (used, plain):
                r = memwall("run", "-m", model, "--draft", drafter, "-n", "3", "x")
                self.assertEqual(1, r.returncode, r.stderr)
                self.assertRegex(r.stderr, r"its vocabulary has \d+ tokens, not \d+, and token "
                                           r"\d+ is in use")

    def test_a_model_that_cannot_draft_is_refused_with_the_reason(self):
        model = self.circle()
        other = chain(self.folder, "words", spell(*"abc"), user=["<|one|>"]).path
        folder = os.path.join(SRCDIR, "tests", "data", "models")
        for other, why in ((other, "is another one in its vocabulary"),
                           (os.path.join(folder, "gemma4-tiny-q4_0.gguf"),
                            "is another one in its vocabulary"),
                           (os.path.join(folder, "f-lfm2moe.gguf"), "recurrent state cannot go back"),
                           (os.path.join(folder, "f-mixtral.gguf"), "a mixture of experts"),
                           (os.path.join(folder, "none.gguf"), "No such file")):
            r = memwall("run", "-m", model, "--draft", other, "-n", "3", "x")
            self.assertEqual(1, r.returncode, r.stderr)
            self.assertIn(why, r.stderr)
        r = memwall("run", "-m", model, "--draft", "sideways", "x")
        self.assertEqual(2, r.returncode)

    def test_answers_of_a_real_format_are_the_same(self):
        for temp in "0", "0.7", "1.3":
            off, on = (memwall("run", "-m", GUIDE, "--temp", temp, "--seed", "5", "-n", "80",
                               "--draft", how, "What is the ring? What is the ring?")
                       for how in ("off", "ngram"))
            self.assertEqual((0, off.stdout), (on.returncode, on.stdout), on.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
