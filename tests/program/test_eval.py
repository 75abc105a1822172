#!/usr/bin/env python3
"""memwall eval (logits and ids of token ids, perplexity) and memwall plan (the table of memory)."""
import array
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import U32, f32  # noqa: E402
from program import MODELS, FolderCase, budget, memwall  # noqa: E402

NAMES = ("llama-tiny", "gemma4-tiny-q4_0")


def model(name):
    return os.path.join(MODELS, name + ".gguf")


def text_of(name):
    with open(os.path.join(MODELS, name), encoding="ascii") as f:
        return f.read()


def floats(data):
    a = array.array("f")
    a.frombytes(data)
    if sys.byteorder == "big":
        a.byteswap()
    return a


class Ids(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def ids_file(self, text):
        with open(self.path("ids"), "w", encoding="ascii") as f:
            f.write(text)
        return self.path("ids")

    def test_logits_and_greedy_ids_are_those_of_the_reference(self):
        for name in NAMES:
            out = self.path("logits." + name)
            r = memwall("eval", "-m", model(name), "--ids", os.path.join(MODELS, name + ".ids"),
                        "--logits", out, "--greedy", "32", "--exact", "--kv", "f32")
            self.assertEqual((0, "", text_of(name + ".greedy")),
                             (r.returncode, r.stderr, r.stdout), name)
            with open(out, "rb") as f, \
                 open(os.path.join(MODELS, name + ".logits.f32"), "rb") as g:
                got, want = floats(f.read()), floats(g.read())
            self.assertEqual(len(want), len(got), name)
            worst = max(range(len(want)), key=lambda i: abs(got[i] - want[i]))
            self.assertLessEqual(abs(got[worst] - want[worst]), 5e-4, (name, worst))

    def test_greedy_ids_are_the_same_without_logits(self):
        for name in NAMES:
            r = memwall("eval", model(name), "--ids", os.path.join(MODELS, name + ".ids"),
                        "--greedy", "32", "--exact", "--kv", "f32", "--json")
            self.assertEqual(0, r.returncode, r.stderr)
            d = json.loads(r.stdout)
            self.assertEqual([int(x) for x in text_of(name + ".greedy").split()], d["greedy"])
            self.assertEqual(len(text_of(name + ".ids").split()), d["n_evaluated"])
            self.assertGreaterEqual(d["seconds"], 0)

    def test_json_is_one_object_even_if_only_logits_are_written(self):
        r = memwall("eval", model("llama-tiny"), "--ids", self.ids_file("5 6 7"),
                    "--logits", self.path("out"), "--json")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        self.assertEqual({"n_evaluated", "seconds"}, set(json.loads(r.stdout)))

    def test_ids_may_be_separated_in_any_way(self):
        ids = text_of("llama-tiny.ids").split()
        want = memwall("eval", model("llama-tiny"), "--greedy", "4", "--ids", "-",
                       stdin=" ".join(ids)).stdout
        self.assertRegex(want, r"\A\d+ \d+ \d+ \d+\n\Z")
        for text in (",".join(ids), "\n".join(ids) + "\n", ", ".join(ids) + " \r\n\t"):
            self.assertEqual(want, memwall("eval", model("llama-tiny"), "--greedy", "4",
                                           "--ids", self.ids_file(text)).stdout)

    def test_a_word_that_is_not_an_id_is_named_with_its_place(self):
        for text, place in {"1 2 x3": "at byte 4", "1 2.5": "at byte 2", "-1": "at byte 0",
                            "5 999999": "at byte 2", "5 99999999999999999999": "at byte 2",
                            "0x10": "at byte 0", "1;2": "at byte 0", "": "no token ids",
                            " ,\n": "no token ids", "7 \x1b[2J": "at byte 2"}.items():
            r = memwall("eval", model("llama-tiny"), "--ids", self.ids_file(text),
                        "--greedy", "1")
            self.assertEqual((1, ""), (r.returncode, r.stdout), text)
            self.assertIn(place, r.stderr, text)
            self.assertIn(self.path("ids"), r.stderr)
            self.assertEqual(1, r.stderr.count("\n"))
            self.assertNotIn("\x1b", r.stderr)

    def test_more_ids_than_the_context_are_refused(self):
        r = memwall("eval", model("llama-tiny"), "--ids", self.ids_file("5 " * 40), "--ctx",
                    "32", "--greedy", "1")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertIn("32", r.stderr)

    def test_a_file_that_cannot_be_written_is_reported(self):
        with open("/dev/full", "wb") as full:
            for path, text in {f"/dev/fd/{full.fileno()}": "No space left",
                               "/nonexistent/x": "No such file"}.items():
                r = memwall("eval", model("llama-tiny"), "--ids", self.ids_file("5 6 7"),
                            "--logits", path, pass_fds=(full.fileno(),))
                self.assertEqual(1, r.returncode)
                self.assertIn(path, r.stderr)
                self.assertIn(text, r.stderr)

    def test_ids_without_an_output_get_a_hint(self):
        ids = "eval", model("llama-tiny"), "--ids", self.ids_file("5 6")
        r = memwall(*ids)
        self.assertEqual((0, ""), (r.returncode, r.stdout))
        self.assertIn("add --logits FILE", r.stderr)
        self.assertNotIn("--logits", memwall(*ids, "-q").stderr)
        self.assertIn("--greedy N", r.stderr)
        self.assertEqual({"n_evaluated", "seconds"}, set(json.loads(memwall(*ids, "--json").stdout)))

    def test_a_budget_below_the_floor(self):
        r = memwall("eval", model("llama-tiny"), "--ids", self.ids_file("5 6"), "-b", "1M",
                    "--greedy", "1")
        self.assertEqual((3, ""), (r.returncode, r.stdout))
        self.assertIn("It fits a budget of", r.stderr)


class AutomaticBudget(FolderCase):
    """Without --memory, the budget is chosen for the tokens that there are."""

    def setUp(self):
        super().setUp()
        m = chain(self.folder, "long", spell("\n", "a", "<|im_end|>"),
                  keys={"qwen2.context_length": (U32, 8192)})
        self.model = m.path

    def eval(self, *args, **more):
        return memwall("eval", self.model, *args, **more)

    def test_ids_of_any_number_fit(self):
        for n in 300, 3000:
            ids = " ".join(str(i % 250) for i in range(n))
            for more in (), ("--exact", "--kv", "f32"), ("--io", "mmap"), ("-b", "auto"), \
                    ("--logits", self.path("logits"), "--force"):
                with self.subTest(n=n, more=more):
                    r = self.eval("--ids", "-", "--greedy", "2", "-q", *more, stdin=ids)
                    self.assertEqual((0, ""), (r.returncode, r.stderr))
                    self.assertEqual(2, len(r.stdout.split()))

    def test_a_text_has_a_perplexity(self):
        text = "The quick brown fox. " * 200
        want = self.eval("--text", "-", "-b", "1G", "--json", stdin=text)
        self.assertGreater(json.loads(want.stdout)["n_scored"], 0)
        for more in (), ("--io", "mmap"), ("-c", "2000"), ("-c", "2000", "--io", "mmap"):
            with self.subTest(more=more):
                r = self.eval("--text", "-", "--json", *more, stdin=text)
                self.assertEqual(0, r.returncode, r.stderr)
                d = json.loads(r.stdout)
                self.assertGreater(d["perplexity"], 1)
                self.assertGreater(d["n_scored"], 0)
                if "-c" not in more:
                    self.assertAlmostEqual(json.loads(want.stdout)["perplexity"],
                                           d["perplexity"], 4)

    def test_a_text_without_a_scored_token_is_an_error(self):
        for text, more, says in (("a" * 40, ("-c", "1"), "a context of 1 token is too short"),
                                 ("a" * 40, ("-c", "2"), "a context of 2 tokens is too short"),
                                 ("", (), "0 tokens are too few"),
                                 ("a", (), "1 token is too few"),
                                 ("a", ("--io", "mmap"), "1 token is too few")):
            for json_too in (), ("--json",):
                with self.subTest(text=text, more=more):
                    r = self.eval("--text", "-", *more, *json_too, stdin=text)
                    self.assertEqual((1, ""), (r.returncode, r.stdout))
                    self.assertIn(says, r.stderr)

    def test_a_perplexity_beyond_numbers_is_an_error(self):
        m = chain(self.folder, "wild", spell("\n", "a", "<|im_end|>"))
        for scale in 1e5, 1e30:
            dims, kind, raw = m.tensors["output.weight"]
            m.tensors["output.weight"] = dims, kind, f32(
                scale * (1 if v > 0 else -1) for v in struct.unpack(f"<{len(raw) // 4}f", raw))
            m.write(m.path)
            r = memwall("eval", m.path, "--text", "-", stdin="b" * 600)
            self.assertEqual((1, ""), (r.returncode, r.stdout), r.stderr)
            self.assertIn("not a number", r.stderr)


class Text(unittest.TestCase):
    def perplexity(self, text, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write(text)
            f.flush()
            return memwall("eval", model("gemma4-tiny-q4_0"), "--text", f.name, "--json", *args)

    def test_windows_and_second_halves_are_scored(self):
        r = self.perplexity("the quick brown fox " * 60, "--ctx", "64")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        d = json.loads(r.stdout)
        n_window = d["n_evaluated"] // 64
        self.assertEqual(64 * n_window, d["n_evaluated"])
        self.assertEqual(31 * n_window, d["n_scored"])
        self.assertAlmostEqual(math.exp(d["mean_nll"]) / d["perplexity"], 1, places=4)
        self.assertGreater(d["standard_error"], 0)

    def rows(self, ids):
        """Returns a row of logits for each id, in an empty context."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            r = memwall("eval", model("gemma4-tiny-q4_0"), "--ids", "-", "--logits", out,
                        "--exact", "--kv", "f32", stdin=" ".join(map(str, ids)))
            self.assertEqual(0, r.returncode, r.stderr)
            with open(out, "rb") as f:
                flat = floats(f.read())
        vocab = len(flat) // len(ids)
        return [flat[i * vocab:(i + 1) * vocab] for i in range(len(ids))]

    def test_it_is_the_mean_over_the_logits(self):
        text = "some words to be scored, one after the other, in more than a window or two"
        ids = memwall("tokenize", "-m", model("gemma4-tiny-q4_0"), "--ids", stdin=text)
        ids = [int(x) for x in ids.stdout.split()]
        for window in (16, len(ids) + 1):
            d = json.loads(self.perplexity(text, "--exact", "--kv", "f32", "--ctx",
                                           str(window)).stdout)
            nll = []
            stream = [2] + ids  # the text begins with the begin token, and so does each window
            for at in range(0, len(stream) - window + 1, window):
                part = [2] + stream[at + 1:at + window]
                rows = self.rows(part)
                for pos in range(window // 2, window - 1):
                    row, top = rows[pos], max(rows[pos])
                    nll.append(math.log(sum(math.exp(x - top) for x in row)) -
                               row[part[pos + 1]] + top)
            mean = sum(nll) / len(nll)
            error = math.sqrt(sum((x - mean) ** 2 for x in nll) / (len(nll) - 1) / len(nll))
            self.assertEqual(len(nll), d["n_scored"])
            self.assertAlmostEqual(mean, d["mean_nll"], places=4)
            self.assertAlmostEqual(1, math.exp(mean) / d["perplexity"], places=4)
            self.assertAlmostEqual(1, math.exp(mean) * error / d["standard_error"], places=3)

    def test_llama_perplexity_prints_the_same_figures(self):
        """llama-perplexity -fa off -ctk f32 -ctv f32 on this model with its weights as F32."""
        words = "the quick brown fox jumps over a lazy dog and then some more words are written " \
                "here".split()
        text = " ".join(words[i * i % 31 % len(words)] for i in range(300))
        for window, n, figure, error in ((64, 20, 48722.9835, 5621.00525),
                                         (128, 10, 47652.2696, 4972.55811)):
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
                f.write(text)
                f.flush()
                r = memwall("eval", model("llama-tiny"), "--text", f.name, "--json", "--ctx",
                            str(window), "--exact", "--kv", "f32")
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            d = json.loads(r.stdout)
            self.assertEqual((n, n * (window // 2 - 1)),
                             (d["n_evaluated"] // window, d["n_scored"]))
            self.assertAlmostEqual(1, d["perplexity"] / figure, places=6)
            self.assertAlmostEqual(1, d["standard_error"] / error, places=6)

    def test_too_little_text_is_refused(self):
        r = self.perplexity("a")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertIn("too few", r.stderr)


class Plan(unittest.TestCase):
    def test_the_rows_add_up_and_stay_within_the_budget(self):
        for name in NAMES:
            for size in (budget(96), budget(256), "2G"):
                r = memwall("plan", model(name), "-b", size, "--json")
                self.assertEqual((0, ""), (r.returncode, r.stderr))
                d = json.loads(r.stdout)
                self.assertTrue(d["fits"])
                self.assertEqual(d["sum_bytes"], sum(d["rows"].values()))
                self.assertLessEqual(d["sum_bytes"], d["budget_bytes"])

    def test_the_smallest_budget_fits_and_a_smaller_one_does_not(self):
        # OpenBLAS would count with the program, and a call may measure again whether it is used.
        args = "plan", model("llama-tiny"), "--blas", "never"
        least = json.loads(memwall(*args, "-b", "1G", "--json").stdout)["smallest_budget_bytes"]
        self.assertEqual(0, memwall(*args, "-b", str(least)).returncode)
        self.assertEqual(3, memwall(*args, "-b", str(least - 65536)).returncode)

    def test_a_plan_that_does_not_fit_is_still_shown(self):
        r = memwall("plan", model("llama-tiny"), "-b", "1M", "--json")
        self.assertEqual(3, r.returncode)
        d = json.loads(r.stdout)
        self.assertFalse(d["fits"])
        self.assertGreater(d["sum_bytes"], d["budget_bytes"])
        r = memwall("plan", model("llama-tiny"), "-b", "1M")
        self.assertEqual(3, r.returncode)
        self.assertRegex(r.stdout, r"(?m)^  total +\d.*of a budget of 1.00 MiB$")
        self.assertEqual(1, r.stderr.count("\n"))
        r = memwall("plan", model("llama-tiny"), "-b", str(d["sum_bytes"] - (1 << 20)))
        self.assertEqual(3, r.returncode)
        self.assertRegex(r.stderr, '\n.*"memwall run" has no screen, and needs .*MiB\n')

    def test_the_speed_of_answers_and_prompts_is_predicted(self):
        for more in ((), ("--exact",), ("--isa", "generic")):
            d = json.loads(memwall("plan", model("llama-tiny"), "-b", "256M", "--json",
                                   *more).stdout)
            self.assertGreater(d["decode_tps"], 0, more)
            self.assertGreater(d["prefill_tps"], 0, more)
        r = memwall("plan", model("llama-tiny"), "-b", "256M")
        speed = r"~[\d.,]+\?? tok/s"
        self.assertRegex(r.stdout, rf"Answers {speed}; .*  Prompts {speed}\.")

    def test_a_context_above_the_trained_one_is_reported_and_not_recommended(self):
        r = memwall("plan", model("llama-tiny"), "-b", "256M", "-c", "2k")
        self.assertIn("more than the 512 tokens that the model was trained for", r.stderr)
        self.assertIn("largest context for this budget is 512.", r.stdout)
        r = memwall("run", "-m", model("llama-tiny"), "-c", "2k", "-n", "1", "hi")
        self.assertIn("more than the 512 tokens", r.stderr)

    def test_items_without_memory_have_no_row(self):
        r = memwall("plan", model("llama-tiny"), "-b", "256M")
        self.assertNotIn(" 0 B ", r.stdout)

    def test_a_percentage_is_of_the_machine(self):
        # Use small budgets: memory that other programs use would lower large ones.  A budget
        # in which the model does not fit is printed, too.
        half, whole = (json.loads(memwall("plan", model("llama-tiny"), "-b", p,
                                          "--json").stdout)["budget_bytes"]
                       for p in ("2%", "4%"))
        self.assertAlmostEqual(0.5, half / whole, places=3)

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            r = memwall("plan", model("llama-tiny"), capture_output=False, stdout=full,
                        stderr=subprocess.PIPE)
        self.assertEqual(1, r.returncode)
        self.assertIn("No space left", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
