#!/usr/bin/env python3
"""Names in model files, of files and of folders that reorder or hide text, or that are formulas
and markup: no command prints them as they are."""
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import unicodedata
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import STR, Gguf  # noqa: E402
from program import MEMWALL, MODELS, SRCDIR, HomeCase, budget, environment  # noqa: E402
from terminal import Terminal  # noqa: E402

SHARED = os.environ.get("MW_SHARED") or os.path.join(SRCDIR, "..", "shared")
MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
SMALL = ("-b", budget(200), "-n", "1")
BENCH = (*SMALL, "-p", "2", "-r", "1")
# One of each kind: direction, width zero, separators, tags, fillers, selectors, private use.
HIDDEN = ("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200c\u200d\u200e\u200f\u061c"
          "\u2060\u2061\u2062\u2063\u2064\u2028\u2029\ufeff\u3164\u115f\u1160\uffa0\ufffc\u00ad\u034f"
          "\u180e\ufe00\ufe0f\ue000\ufff9\U000e0001\U000e0041\U000e0101\U000f0000")
HOSTILE = "A" + "".join(c + "b" for c in HIDDEN) + "\033[31m\007\rZ"
MARKUP = "<b>x</b>&amp;|`c`[l](u)*e*_f_\\#"


def found(text):
    """Returns the hidden characters and controls in a text."""
    return sorted({f"U+{ord(c):04X}" for c in text if c in HIDDEN
                   or (unicodedata.category(c) == "Cc" and c not in "\n")})


class Names(HomeCase):
    def start(self, *args):
        """Returns the exit code and all that was printed."""
        r = subprocess.run([MEMWALL, *args], env=environment(self.folder), capture_output=True,
                           timeout=120, stdin=subprocess.DEVNULL, cwd=self.folder)
        return r.returncode, (r.stdout + r.stderr).decode()

    def shows_none(self, *args):
        code, text = self.start(*args)
        with self.subTest(command=args[0], args=args[2:]):
            self.assertGreaterEqual(code, 0, text)
            self.assertEqual([], found(text), text)
        return text

    def model(self, change, name="m.gguf"):
        g = Gguf(MODEL)
        change(g)
        return g.write(self.path(name))

    def describe(self, path):
        """The commands that read a file and run nothing."""
        for args in (("inspect", path), ("inspect", path, "--tensors"),
                     ("inspect", path, "--tensors", "--json"), ("plan", path, "--explain"),
                     ("tokenize", path, "hi"), ("run", "-m", path, *SMALL, "hi"), ("list",)):
            self.shows_none(*args)

    def named(self, name):
        return self.model(lambda g: g.keys.update({"general.name": (STR, name)}))

    def bench(self, path, *more):
        code, text = self.start("bench", path, *BENCH, *more)
        self.assertEqual(0, code, text)
        return text

    def test_the_name_of_a_model(self):
        path = self.named(HOSTILE)
        self.describe(path)
        for args in (("plan", path, "--json"), ("chat", "-m", path, *SMALL, "--once"),
                     ("bench", path, *BENCH, "--json")):
            self.shows_none(*args)
        self.shows_none("report", path, "--no-measure", "-o", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as f:
            self.assertEqual([], found(f.read()))

    def test_the_visible_part_of_a_name_stays(self):
        text = self.shows_none("inspect", self.named("G\u202eem\u200bma \u4e2d\u00e9 \ufb01"))
        self.assertEqual("Gemma \u4e2d\u00e9 \ufb01", text.splitlines()[0])

    def test_other_keys(self):
        for key in ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.chat_template",
                    "general.architecture", "gemma4.x" + HOSTILE, "general.x" + HOSTILE,
                    "tokenizer.chat_template." + HOSTILE):
            with self.subTest(key=key[:24]):
                path = self.model(lambda g, k=key: g.keys.update({k: (STR, HOSTILE)}))
                for args in (("inspect", path), ("run", "-m", path, *SMALL, "hi"), ("list",)):
                    self.shows_none(*args)

    def test_messages_of_a_template(self):
        text = "".join(c for c in HOSTILE if c not in "\r\033")
        for template in ("{{ raise_exception('%s') }}", "{{ x | %s }}", "{%% %s"):
            path = self.model(lambda g, t=template: g.keys.update(
                {"tokenizer.chat_template": (STR, t % text)}))
            self.shows_none("run", "-m", path, *SMALL, "hi")

    def test_tensors(self):
        for mark in ("\u202e", "\u3164", "\033[31m", "\u00ad", "\U000e0041"):
            path = self.model(lambda g, m=mark: g.tensors.update(
                {"blk.0.x" + m + "y": ([32], 0, bytes(128))}))
            for args in (("inspect", path, "--tensors"), ("inspect", path, "--tensors", "--json"),
                         ("plan", path), ("run", "-m", path, *SMALL, "hi")):
                self.assertIn("blk.0.x", self.shows_none(*args))

    def test_files_and_folders(self):
        part = "".join(c + "b" for c in HIDDEN[:25]) + "\033[31m"
        folder = self.path("A" + part)
        os.mkdir(folder)
        path = shutil.copy(MODEL, os.path.join(folder, "B" + part + ".gguf"))
        self.describe(path)
        self.describe(folder)
        self.describe(path + "missing")
        with open(path, "wb") as f:
            f.write(b"GGUF")
        self.describe(path)

    def test_a_snapshot(self):
        source = os.path.join(SHARED, "conformance", "models", "gemma3-tiny-hf")
        if not os.path.isdir(source):
            self.skipTest("no snapshot to change")
        folder = self.path("snapshot")
        shutil.copytree(source, folder)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)
        for key in ("model_type", "hidden_activation", "num_hidden_layers", "x" + HOSTILE):
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config | {key: HOSTILE}, f)
            for args in (("inspect", folder), ("plan", folder)):
                self.shows_none(*args)

    def test_completions(self):
        for folder, name in ((".local/share/memwall/chats", "%s.jsonl"),
                             (".config/memwall/themes", "%s.theme")):
            os.makedirs(self.path(folder))
            for word in ("plain", "a\u202eb", "a\033[31m", "a\u3164"):
                with open(os.path.join(self.path(folder), name % word), "w") as f:
                    f.write('{"memwall":"chat","version":1}\n' if "jsonl" in name else "")
        self.assertEqual((0, "plain\n"), self.start("completions", "chats"))
        self.assertIn("\nplain\n", self.shows_none("completions", "themes"))

    def test_the_screen(self):
        folder = self.path("A\u202ebin")
        os.mkdir(folder)
        path = shutil.move(self.named("G\u202eem\u3164ma"), os.path.join(folder, "m.gguf"))
        t = Terminal("-m", path, *SMALL, home=self.folder)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("Gemma (gemma4"), t.screen())
        t.send("/model\r")
        self.assertTrue(t.sees("Abin"), t.screen())
        self.assertEqual([], [c for c in HIDDEN if c in t.screen()])
        self.assertFalse("\u202e".encode() in t.raw or "\u3164".encode() in t.raw)

    def test_a_formula_is_text_in_csv(self):
        row = list(csv.reader(io.StringIO(self.bench(self.named("\u200b=1+1"), "--csv"))))[1]
        self.assertEqual("'=1+1", row[0])
        self.assertTrue(any(x.replace(".", "").isdigit() for x in row[1:]))

    def test_a_file_of_csv(self):
        self.bench(self.named("=1+1"), "-o", self.path("r.csv"))
        with open(self.path("r.csv"), encoding="utf-8", newline="") as f:
            self.assertEqual("'=1+1", list(csv.reader(f))[1][0])

    def test_markup_is_text_in_markdown(self):
        for more in (("--markdown",), ("-o", self.path("r.md"))):
            text = self.bench(self.named(MARKUP), *more)
            if more[0] == "-o":
                with open(self.path("r.md"), encoding="utf-8") as f:
                    text = f.read()
            line = text.splitlines()[0]
            self.assertTrue(line.startswith(
                r"&lt;b&gt;x&lt;/b&gt;&amp;amp;\|\`c\`\[l\](u)\*e\*\_f\_\\\#"), line)

    def test_markup_is_text_in_the_heading_of_an_export(self):
        folder = self.path(".local/share/memwall/chats")
        os.makedirs(folder)
        with open(os.path.join(folder, "c.jsonl"), "w", encoding="utf-8") as f:
            for line in ({"memwall": "chat", "version": 1, "created": "<b>now",
                          "model": MARKUP + "\u202e"},
                         {"role": "user", "text": "hi"},
                         {"role": "assistant", "text": "**yes**", "done": "stop"}):
                f.write(json.dumps(line, separators=(",", ":")) + "\n")
        out = self.path("out.md")
        t = Terminal("chat", "--plain", "-m", MODEL, *SMALL, "--open", "c", home=self.folder)
        self.addCleanup(t.close)
        t.send(f"/export {out}\r/quit\r")
        while t.pump(120):
            self.assertIsNone(t.process.poll(), t.screen())
        with open(out, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual([], found(text))
        self.assertNotIn("<b>", text)
        self.assertIn("## &lt;b&gt;x", text)
        self.assertIn("**yes**", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
