#!/usr/bin/env python3
"""Clients from the npm registry against memwall serve: `python3 tests/clients/run.py`.

It installs the packages of package.json in a temporary folder, or in the one that is named, which
is kept.  It needs node, npm and the registry, so `make check` leaves it out."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from chain_model import CHATML, chain, spell  # noqa: E402
from gguf_edit import U32  # noqa: E402
from server import Server  # noqa: E402

# An agent reads notes and writes what they say.  The template knows the step by the results that
# came back, so a result that is lost, or comes in another order, ends with "Lost.".
STEPS = ("<tool_call>\n" + c + "\n</tool_call>" for c in (
    '{"name": "list_files", "arguments": {}}',
    '{"name": "read_file", "arguments": {"path": "notes.txt"}}',
    '{"name": "write_file", "arguments": {"path": "out.txt", "text": "42"}}'))
AGENT = """{% set ns = namespace(n=0, last='') %}{% for m in messages %}{% if m.role == 'tool' %}\
{% set ns.n = ns.n + 1 %}{% set ns.last = m.content %}{% endif %}\
{{ '<|im_start|>' + m.role + '\n' + (m.content or '') + '<|im_end|>' }}{% endfor %}\
{% if add_generation_prompt %}<|im_start|>assistant
{% if ns.n == 0 %}<|step0|>{% elif ns.n == 1 and ns.last == 'notes.txt' %}<|step1|>\
{% elif ns.n == 2 and ns.last == 'six times seven' %}<|step2|>\
{% elif ns.n == 3 and ns.last == 'written' %}<|step3|>{% else %}<|lost|>{% endif %}{% endif %}"""

TOOLS = "{% if tools %}{{ tools | tojson }}{% endif %}"


def models(folder):
    """Yields (case, path of a model, options)."""
    yield "text", chain(folder, "thinker", spell("\n", "<think>", "ab", "</think>", "Hey.",
                                                 "<|im_end|>"), user=("<think>", "</think>")).path, ()
    parts = ("Ok", b'<tool_call>{"name": "f", ', b'"arguments": {"a":"x"}}</tool_call>', b" \n",
             b'<tool_call>{"name": "g", "arguments": {}}</tool_call>')
    yield "tools", chain(folder, "caller", spell("\n", *parts, "<|im_end|>"),
                         template=TOOLS + CHATML,
                         pieces=[p for p in parts if isinstance(p, bytes)]).path, ()
    flat = chain(folder, "flat", spell("\n", "a", "<|im_end|>"),
                 template=TOOLS + CHATML + "{# <tool_call> #}",
                 user=("<tool_call>", "</tool_call>"))
    dims, kind, raw = flat.tensors["output.weight"]
    flat.tensors["output.weight"] = dims, kind, bytes(len(raw))
    yield "forms", flat.write(flat.path), ("--temp", "1", "--predict", "1500")
    marks = [f"<|step{i}|>" for i in range(4)] + ["<|lost|>"]
    parts = [p.encode() for p in (*STEPS, "Done: 42.", "Lost.")]
    yield "agent", chain(folder, "agent", dict(zip(marks, parts)), template=TOOLS + AGENT,
                         marks=("<|im_start|>", "<|im_end|>", *marks), pieces=parts,
                         keys={"qwen2.context_length": (U32, 8192)}).path, ("--ctx", "8k")
    yield "cancel", chain(folder, "endless", {"\n": "a", "a": "b", "b": "a"},
                          keys={"qwen2.context_length": (U32, 1 << 20)}).path, (
                              "--ctx", "500k", "--kv", "q4_0")


def run(folder):
    for name in "package.json", "clients.js":
        shutil.copy(os.path.join(HERE, name), folder)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder,
                   check=True)
    code = 0
    with tempfile.TemporaryDirectory() as home:
        for case, path, options in models(home):
            with Server("-m", path, *options) as s:
                done = subprocess.run(["node", "clients.js", f"http://127.0.0.1:{s.port}", case],
                                      cwd=folder, timeout=300)
                if done.returncode != 0:
                    sys.stderr.write("".join(s.lines))
                    code = 1
    return code


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.makedirs(sys.argv[1], exist_ok=True)
        sys.exit(run(sys.argv[1]))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(run(temporary))
