#!/usr/bin/env python3
"""Draft heads give the logits of the references: Gemma 4's assistants, and the heads in the files
of Qwen 3.5, 3.6, 3-Next and 3.8-Flash-Next, from GGUF files, snapshots and files of their own.

One reference is in tests/data/models, the others are in MW_SHARED/conformance."""
import array
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import memwall, reference, smallest_without_screen  # noqa: E402

LIMIT = 1e-3
N = 6  # drafts


def floats(data):
    values = array.array("f")
    values.frombytes(data)
    return values


def greatest(row):
    return max(range(len(row)), key=lambda i: (row[i], -i))


class Drafts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        path = reference(name)
        if not os.path.exists(path):
            self.skipTest("neither the tree nor MW_SHARED has " + name)
        return path

    def ids(self, model, n):
        with open(self.path(model + ".ids")) as f:
            return " ".join(f.read().split()[:n])

    def expected(self, name, end="draft.f32"):
        """Returns the cases and, for each, the rows of logits of its drafts."""
        with open(self.path(name + ".draft.json")) as f:
            about = json.load(f)
        with open(self.path(name + "." + end), "rb") as f:
            values = floats(f.read())
        n_vocab, n_hidden = about["vocab"], about.get("hidden") or about["backbone_hidden"]
        rows, at = [], 0
        for _ in about["cases"]:
            at += n_hidden
            rows.append([])
            for _ in range(N):
                rows[-1].append(values[at:at + n_vocab])
                at += n_vocab + n_hidden
        self.assertEqual(len(values), at)
        return about["cases"], rows

    def drafts(self, model, ids, *args):
        out = os.path.join(self.folder, "drafts")
        r = memwall("eval", "-m", model, "--ids", "-", "--draft-logits", out, "--force", *args,
                    stdin=ids)
        self.assertEqual((0, "", ""), (r.returncode, r.stdout, r.stderr))
        with open(out, "rb") as f:
            values = floats(f.read())
        n = len(values) // N
        return [values[i * n:(i + 1) * n] for i in range(N)]

    def agrees(self, model, name, *args, ids_of=None, key="draft", end="draft.f32"):
        """Every logit of every draft is that of the reference, in several ways to compute."""
        cases, want = self.expected(name, end)
        for case, rows in zip(cases, want):
            ids = self.ids(ids_of or name, case["n_prompt"])
            for way in ((), ("--isa", "generic"), ("--chunk", "1", "-t", "1"), ("--chunk", "7"),
                        ("--chunk", "16", "-t", "3")):
                got = self.drafts(model, ids, *args, "--exact", "--kv", "f32", *way)
                for i in range(N):
                    self.assertEqual(len(rows[i]), len(got[i]))
                    far = max(abs(a - b) for a, b in zip(rows[i], got[i]))
                    self.assertLessEqual(far, LIMIT, (model, case["n_prompt"], i, way))
                if key is not None:
                    self.assertEqual(case[key], [greatest(row) for row in got])

    def test_heads_in_the_files_of_a_model(self):
        for name in ("mtp-qwen35", "mtp-qwen35moe", "mtp-qwen3next"):
            self.agrees(self.path(name + ".gguf"), name, "--draft", "mtp")

    def test_heads_in_snapshots(self):
        for name in ("mtp-qwen35", "mtp-qwen35moe", "mtp-qwen3next"):
            self.agrees(self.path(name + "-hf"), name, "--draft", "mtp")

    def test_a_head_of_several_streams(self):
        name = "q4e-a"
        self.agrees(self.path("q4e-a-hf"), name, "--draft", "mtp")
        self.agrees(self.path("q4e-a.gguf"), name, "--draft", self.path("q4e-a-mtp.gguf"))
        # A file without tables, whose head sees all positions.
        self.agrees(self.path("q4e-a.gguf"), name, "--draft", self.path("q4e-a-mtp-shared.gguf"),
                    key=None, end="draft-dense.f32")

    def test_an_assistant(self):
        self.agrees(self.path("gemma4-tiny.gguf"), "gemma4-tiny-assistant", "--draft",
                    self.path("gemma4-tiny-assistant.gguf"), ids_of="gemma4-tiny", key="dense")

    def test_an_assistant_with_clusters_of_tokens(self):
        cases, want = self.expected("gemma4-tiny-assistant")
        for case, rows in zip(cases, want):
            got = self.drafts(self.path("gemma4-tiny.gguf"),
                              self.ids("gemma4-tiny", case["n_prompt"]), "--draft",
                              self.path("gemma4-tiny-assistant-hf"), "--exact", "--kv", "f32")
            self.assertEqual(case["ordered"], [greatest(row) for row in got])
            # Six clusters of 14 tokens are computed; the other logits are below all of these.
            least = min(got[0])
            computed = [i for i, x in enumerate(got[0]) if x != least]
            self.assertEqual(6 * 14, len(computed))
            for i in computed:
                self.assertLessEqual(abs(rows[0][i] - got[0][i]), LIMIT)
            self.assertAlmostEqual(least, min(got[0][i] for i in computed) - 1, places=4)

    def test_the_bits_do_not_depend_on_budgets_and_reads(self):
        for model, name, head in (
                ("mtp-qwen35moe.gguf", "mtp-qwen35moe", "mtp"),
                ("gemma4-tiny.gguf", "gemma4-tiny", self.path("gemma4-tiny-assistant.gguf"))):
            path, ids = self.path(model), self.ids(name, 40)
            for kv in "f32", "f16":
                same = ("--draft", head, "--kv", kv, "--blas", "never")
                want = self.drafts(path, ids, *same)
                plan = json.loads(memwall("plan", path, "-b", "1G", "-c", "46", "--json",
                                          "--chunk", "16", *same).stdout)
                self.assertGreater(plan["rows"]["drafter"], 0)
                least = f"{smallest_without_screen(plan) + (1 << 20)}"
                for way in (("-b", least, "--chunk", "16"), ("--io", "mmap", "-q"),
                            ("--io", "buffered"), ("--chunk", "3", "-t", "3"),
                            ("--disk-rate", "50M", "-b", least)):
                    self.assertEqual(want, self.drafts(path, ids, *same, *way), (model, kv, way))


if __name__ == "__main__":
    unittest.main()
