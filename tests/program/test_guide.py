#!/usr/bin/env python3
"""The guide: its corpus, its answers to questions it was not trained on, and its arithmetic."""
import array
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guide  # noqa: E402
from program import memwall  # noqa: E402

REQUIRED = 90            # per cent of the held-back questions
LARGEST_PERPLEXITY = 1.05
LARGEST_FILE = 8000000
PYTHON_WITH_TORCH = "/usr/bin/python3"  # the package python3-torch belongs to this one

RANDOM_MODEL = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import export, model, reference, tokenizer
torch.manual_seed(1)
tokens = tokenizer.train(["a few words for a few tokens"] * 100, 2560)
guide = model.Guide(model.Shape(vocab=len(tokens.tokens)))
for p in guide.parameters():
    if p.dim() == 1:
        p.data.mul_(torch.empty_like(p).uniform_(0.6, 1.6))
export.write(sys.argv[2], guide, tokens, export.TYPE_F32)
ids = torch.randint(len(tokens.tokens), (200,))
with open(sys.argv[2] + ".ids", "w") as f:
    f.write(" ".join(map(str, ids.tolist())))
with torch.no_grad():
    reference.logits(guide, ids).numpy().tofile(sys.argv[2] + ".want")
"""


def has_torch():
    return os.path.exists(PYTHON_WITH_TORCH) and shutil.which("cc") and subprocess.run(
        [PYTHON_WITH_TORCH, "-c", "import torch"], capture_output=True).returncode == 0


class Corpus(unittest.TestCase):
    def test_it_has_500_topics_and_no_complaints(self):
        complaints, corpus = guide.corpus_module.check()
        self.assertEqual([], complaints)
        self.assertGreaterEqual(len(corpus.topics), 500)


class Arithmetic(unittest.TestCase):
    @unittest.skipUnless(has_torch(), "no PyTorch (package python3-torch)")
    def test_memwall_and_pytorch_compute_the_same_logits(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "random.gguf")
            subprocess.run([PYTHON_WITH_TORCH, "-c", RANDOM_MODEL, guide.TRAIN, path],
                           check=True)
            out = os.path.join(folder, "out")
            r = memwall("eval", "-m", path, "--ids", path + ".ids", "--logits", out, "--exact",
                        "--kv", "f32")
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            got, want = (array.array("f", pathlib.Path(p).read_bytes())
                         for p in (out, path + ".want"))
        self.assertEqual(len(want), len(got))
        self.assertLess(max(abs(a - b) for a, b in zip(got, want)), 1e-3)


@unittest.skipUnless(os.path.exists(guide.MODEL), "the model is not trained yet")
class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.corpus = guide.corpus_module.Corpus()

    def test_it_is_small_and_brings_its_chat_template(self):
        self.assertLessEqual(os.path.getsize(guide.MODEL), LARGEST_FILE)
        r = memwall("inspect", guide.MODEL)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        self.assertIn("the model's template (evaluated)", r.stdout)

    def test_messages_are_rendered_in_the_format_of_gemma_4(self):
        messages = [("system", " s "), ("user", "q\n"), ("assistant", "a"), ("user", "r")]
        self.assertEqual(guide.ids(messages), guide.ids(messages, "--format", "gemma4"))

    def test_held_back_questions_are_answered_right(self):
        asked = guide.conversations(self.corpus)
        self.assertGreaterEqual(len(asked), 100)
        wrong = []
        for topic, messages in asked:
            text = guide.answer(messages)
            if not topic.is_right(text):
                wrong.append(f"{topic.name}: {messages[-1][1]}\n    {text}")
        self.assertLessEqual(len(wrong), len(asked) * (100 - REQUIRED) // 100,
                             "\n" + "\n".join(wrong))

    def test_the_perplexity_of_right_answers_is_low(self):
        self.assertLess(guide.perplexity(self.corpus), LARGEST_PERPLEXITY)


if __name__ == "__main__":
    unittest.main(verbosity=2)
