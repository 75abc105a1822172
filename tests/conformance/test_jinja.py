#!/usr/bin/env python3
"""Chat templates are rendered as by the reference.

tests/data/jinja has expressions and templates with the text of the reference; $MW_SHARED has
published templates with conversations.  jinja_cases compares them.  The conversations have
system messages, thinking, definitions and calls of tools.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SRCDIR = os.environ.get("MW_SRCDIR") or os.path.join(os.path.dirname(__file__), "..", "..")
BUILD = os.environ.get("MW_BUILDDIR", ".")
SHARED = os.environ.get("MW_SHARED", "")
DATA = os.path.join(SRCDIR, "tests", "data", "jinja")
sys.path.insert(0, DATA)
from templates import all_templates  # noqa: E402

PUBLISHED = os.path.join(SHARED, "conformance", "chat-templates")

# The reference printed these for bos_token and eos_token.
TOKENS = {
    "deepseek-r1-distill": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "phi4-mini": ("<|endoftext|>", "<|endoftext|>"),
    "qwen2-default-system": ("", "<|endoftext|>"),
    "qwen3.5": ("", "<|im_end|>"),
}


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return f.read()


def lines(path):
    return [json.loads(line) for line in read(path).split("\n") if line]


class Jinja(unittest.TestCase):
    maxDiff = None

    def compare(self, cases):
        self.assertTrue(cases)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
            for c in cases:
                f.write(json.dumps(c, ensure_ascii=False) + "\n")
            f.flush()
            done = subprocess.run([os.path.join(BUILD, "tests", "conformance", "jinja_cases"),
                                   f.name], stdout=subprocess.PIPE, encoding="utf-8",
                                  errors="replace", check=False)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn(f"{len(cases)} passed", done.stdout)

    def test_expressions_and_statements(self):
        self.compare(lines(os.path.join(DATA, "expressions.jsonl")))

    def test_templates_in_the_style_of_published_ones(self):
        conversations = json.loads(read(os.path.join(DATA, "conversations.json")))
        cases = lines(os.path.join(DATA, "styles.jsonl"))
        for c in cases:
            style, title = c["name"].split(":")
            c["template"] = read(os.path.join(DATA, "styles", style + ".jinja"))
            c["variables"] = conversations[title]
        self.compare(cases)

    def test_every_template_of_the_reference_data(self):
        conversations = json.loads(read(os.path.join(DATA, "conversations.json")))
        recorded = {c["name"]: c for c in lines(os.path.join(DATA, "rendered.jsonl"))}
        templates = all_templates(SHARED)
        self.assertGreater(len(templates), 7)
        cases = []
        for key, template in templates.items():
            for title, variables in conversations.items():
                name = f"{key}:{title}"
                self.assertTrue(name in recorded, f"record {name} with make_cases.py")
                cases.append({**recorded[name], "template": template, "variables": variables})
        self.compare(cases)

    def test_published_templates(self):
        if not os.path.isdir(PUBLISHED):
            self.skipTest("MW_SHARED has no conformance/chat-templates")
        cases = []
        for name in sorted(os.listdir(PUBLISHED)):
            if not name.endswith(".jinja"):
                continue
            name = name[:-len(".jinja")]
            bos, eos = TOKENS.get(name, ("<s>", "</s>"))
            for c in lines(os.path.join(PUBLISHED, name + ".jsonl")):
                made = {"name": f"{name}/{c['case']}",
                        "template": read(os.path.join(PUBLISHED, name + ".jinja")),
                        "variables": {"messages": c["messages"], "bos_token": bos,
                                      "eos_token": eos, **c["options"]}}
                made.update({k: c[k] for k in ("text", "error") if k in c})
                cases.append(made)
        self.compare(cases)


if __name__ == "__main__":
    unittest.main(verbosity=2)
