#!/usr/bin/env python3
"""Write expressions.jsonl, styles.jsonl and rendered.jsonl:  tests/data/jinja/make_cases.py

Needs Jinja2 (3.1; Debian: python3-jinja2), which is the reference.  expressions.txt has one
expression or template per line.  A template has tags, and ¶ stands for "\\n" in it.  The evaluator
refuses lines that begin with ! on purpose, although the reference accepts them.
styles/*.jinja are complete templates.  Each is rendered with every conversation of
conversations.json, and so is every template that templates.py finds (set MW_SHARED).
"""
import json
import os
import re

from reference import case
from templates import all_templates

HERE = os.path.dirname(os.path.abspath(__file__))

VARIABLES = {
    "a": 7, "b": -3, "f": 2.5, "s": "Hello, World", "t": "  padded\t\n", "u": "Straße Ωmega ÉÀ",
    "e": "", "n": None, "yes": True, "no": False, "l": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "d": {"x": 1, "y": "two", "z": [1, 2]}, "nested": {"a": {"b": {"c": "deep"}}},
    "users": [{"name": "Ann", "age": 31, "on": True}, {"name": "bob", "age": 5, "on": False},
              {"name": "Cy", "age": 31}],
    "quote": "it's \"q\" \\ \n\t\u0001\u00e9\u2028<&>", "big": 9007199254740993, "tiny": 1e-7,
    "huge": 1.5e300, "third": 0.1, "lines": "one\ntwo\r\nthree\n\nfive",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}],
}


def write(name, cases):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        for c in cases:
            f.write(json.dumps(c, ensure_ascii=False, separators=(",", ":")) + "\n")


def expressions():
    with open(os.path.join(HERE, "expressions.txt"), encoding="utf-8") as f:
        for n, line in enumerate(f.read().split("\n"), 1):
            if not line or line.startswith("## "):
                continue
            refused = line.startswith("!")
            text = line[refused:].replace("¶", "\n")
            template = text if "{%" in text or "{{" in text or "{#" in text else "{{ " + text + " }}"
            got = case(f"expressions:{n}", template,
                       {k: v for k, v in VARIABLES.items() if k in template})
            if refused or " at 0x" in got.get("text", ""):  # it prints an address
                got["refused"] = re.sub(" at 0x[0-9a-f]+", "", got.pop("text", "an error"))
            yield got


def styles():
    with open(os.path.join(HERE, "conversations.json"), encoding="utf-8") as f:
        conversations = json.load(f)
    folder = os.path.join(HERE, "styles")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            template = f.read()
        for title, variables in conversations.items():
            got = case(f"{name[:-6]}:{title}", template, variables)
            # The test reads templates and conversations itself.
            yield {k: got[k] for k in ("name", "text", "error") if k in got}


def rendered():
    with open(os.path.join(HERE, "conversations.json"), encoding="utf-8") as f:
        conversations = json.load(f)
    for key, template in all_templates(os.environ["MW_SHARED"]).items():
        for title, variables in conversations.items():
            got = case(f"{key}:{title}", template, variables)
            yield {k: got[k] for k in ("name", "text", "error") if k in got}


if __name__ == "__main__":
    write("expressions.jsonl", expressions())
    write("styles.jsonl", styles())
    write("rendered.jsonl", rendered())
