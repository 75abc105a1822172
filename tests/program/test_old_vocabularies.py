#!/usr/bin/env python3
"""Vocabularies as older and other converters wrote them: a missing part has its default, or one
line says that it is missing."""
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from chain_snapshot import chain_snapshot  # noqa: E402
from gguf_edit import ARR, BOOL, I32, STR, U32, Gguf  # noqa: E402
from program import MEMWALL, MODELS, TIMEOUT_S, HomeCase, environment  # noqa: E402
from terminal import Terminal  # noqa: E402

WALK = spell("\n", "abc", "<|im_end|>")
NO_MERGES = "there are no merges, so words would be cut into characters; convert the model again"


class Case(HomeCase):
    def memwall(self, *args, text=None):
        r = subprocess.run([MEMWALL, *args], input=text or "", text=True, timeout=TIMEOUT_S,
                           capture_output=True, env=environment(self.folder))
        return r

    def ids(self, path, text):
        r = self.memwall("tokenize", "-m", path, "--ids", text=text)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return r.stdout.split()

    def n_prompt(self, path):
        """Tokens of a raw prompt of three bytes, with the begin token if there is one."""
        r = self.memwall("run", "-m", path, "--raw", "--json", "-n", "1", "-b", "256M", "-t", "1",
                         "--no-save", "-p", "xyz")
        self.assertEqual(0, r.returncode, r.stderr)
        return json.loads(r.stdout.splitlines()[-1])["n_prompt"]

    def is_refused(self, path, *words):
        for args in (["tokenize", "-m", path, "--ids"], ["run", "-m", path, "-b", "256M", "-p", "a"]):
            r = self.memwall(*args)
            self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")), r.stderr)
            for word in words:
                self.assertIn(word, r.stderr)
        self.assertIn("cannot read or write text", self.memwall("plan", path).stderr)
        self.assertIn("not read: ", self.memwall("inspect", path).stdout)
        r = self.memwall("list", "--json", self.folder)
        found = [m for m in json.loads(r.stdout) if os.path.basename(path) in m["path"]]
        self.assertTrue(all("merges" in json.dumps(m) for m in found), found)


class Merges(Case):
    def test_a_gguf_file_without_merges(self):
        for pre in "qwen2", "llama-bpe", "gpt-2", "kimi-k2":
            g = chain(self.folder, "words", WALK, pieces=(b"hello",), pre=pre)
            self.assertEqual(1, len(self.ids(g.path, "hello")))
            for merges in None, []:
                with self.subTest(pre=pre, merges=merges):
                    g.keys.pop("tokenizer.ggml.merges", None)
                    if merges is not None:
                        g.keys["tokenizer.ggml.merges"] = (ARR, (STR, merges))
                    g.write(g.path)
                    self.is_refused(g.path, "words.gguf: tokenizer.ggml.merges: " + NO_MERGES)

    def test_a_folder_without_merges(self):
        s = chain_snapshot(self.folder, "folder", WALK)
        model = s.files["tokenizer.json"]["model"]
        for merges in ..., []:
            changed = {k: v for k, v in {**model, "merges": merges}.items() if v is not ...}
            with self.subTest(merges=merges):
                s.save("tokenizer.json", model=changed)
                self.is_refused(s.path, "tokenizer.json", NO_MERGES)

    def test_bytes_need_none(self):
        g = Gguf(chain(self.folder, "bytes", WALK).path)
        types = g.get("tokenizer.ggml.token_type")[1]
        for i, text in enumerate(g.get("tokenizer.ggml.tokens")[1]):
            if types[i] == 1 and len(text) > 1:
                types[i] = 5  # unused
        g.keys["tokenizer.ggml.merges"] = (ARR, (STR, []))
        g.write(self.path("bytes.gguf"))
        self.assertEqual(3, len(self.ids(self.path("bytes.gguf"), "xyz")))


class Begin(Case):
    """Older converters did not write whether text begins with the begin token."""

    def gguf(self, pre, **keys):
        more = {"tokenizer.ggml.add_bos_token": None,
                "tokenizer.ggml.bos_token_id": (U32, 0)}
        more.update({"tokenizer.ggml." + k: v for k, v in keys.items()})
        return chain(self.folder, "begin", WALK, pre=pre, arch="llama", keys=more).path

    def test_rules_of_llama_3_and_tekken_begin_with_it(self):
        for pre in ("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2",
                    "midm-2.0", "tekken"):
            with self.subTest(pre=pre):
                self.assertEqual(4, self.n_prompt(self.gguf(pre)))
                self.assertEqual(3, self.n_prompt(self.gguf(pre, add_bos_token=(BOOL, False))))

    def test_other_rules_do_not(self):
        for pre in "qwen2", "gpt-2", "gpt-4o", "deepseek-v3", "dbrx", "smollm":
            with self.subTest(pre=pre):
                self.assertEqual(3, self.n_prompt(self.gguf(pre)))
                self.assertEqual(4, self.n_prompt(self.gguf(pre, add_bos_token=(BOOL, True))))

    def test_a_vocabulary_of_llama_with_scores_and_merges(self):
        """As the first files of Mistral's models have."""
        n = {}
        for name, merges in ("scores", None), ("merges", ["t h", "h e"]):
            g = Gguf(os.path.join(MODELS, "llama-tiny.gguf"))
            for key in "add_bos_token", "bos_token_id", "eos_token_id", "unknown_token_id":
                g.keys.pop("tokenizer.ggml." + key, None)
            if merges is not None:
                g.keys["tokenizer.ggml.merges"] = (ARR, (STR, merges))
            n[name] = self.n_prompt(g.write(self.path(name + ".gguf")))
        self.assertEqual(n["scores"], n["merges"])


class BeginOfChats(Case):
    """A file that states that text begins with the begin token, and a template that does not
    print it: prompts of a chat begin with it once."""
    TURNS = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + "
             "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
             "{{ '<|im_start|>assistant\\n' }}{% endif %}")
    MARKS = ("<s>", "<|im_start|>", "<|im_end|>")
    LONG = [{"role": "user", "content": "a<s>"}, {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"}]

    def gguf(self, flag, template, pre="llama-bpe"):
        g = chain(self.folder, "begin", WALK, marks=self.MARKS, template=template, pre=pre,
                  arch="llama", keys={"tokenizer.ggml.add_bos_token": flag})
        g.keys["tokenizer.ggml.bos_token_id"] = (U32, g.id_of["<s>"])
        g.write(g.path)
        return g

    def counts(self, g, ids):
        """How often the ids have the begin token, and whether they begin with it."""
        return ids.count(g.id_of["<s>"]), ids[0] == g.id_of["<s>"]

    def chat_ids(self, g, messages, *args):
        r = self.memwall("tokenize", "-m", g.path, "--chat", "--ids", "-", *args,
                         text=json.dumps(messages))
        self.assertEqual(0, r.returncode, r.stderr)
        return [int(i) for i in r.stdout.split()]

    def test_prompts(self):
        yes, no, begun = (BOOL, True), (BOOL, False), "{{ bos_token }}" + self.TURNS
        for flag, template, want in ((yes, self.TURNS, (1, True)), (yes, begun, (1, True)),
                                     (yes, None, (1, True)), (no, self.TURNS, (0, False)),
                                     (no, begun, (1, True)), (no, None, (0, False)),
                                     (None, self.TURNS, (0, False)), (None, begun, (1, True)),
                                     (yes, "{%- if true %}" + begun + "{% endif %}", (1, True)),
                                     (yes, "\n" + begun, (1, False))):
            with self.subTest(flag=flag, template=template):
                g = self.gguf(flag, template)
                self.assertEqual(want, self.counts(g, self.chat_ids(g, self.LONG)))
                with_tool = self.LONG + [{"role": "user", "content": "d", "name": "x"}]
                if template is not None:
                    self.assertEqual(want, self.counts(g, self.chat_ids(g, with_tool)))

    def test_built_in_formats(self):
        g = self.gguf((BOOL, True), self.TURNS)
        self.assertEqual((1, True), self.counts(g, self.chat_ids(g, self.LONG, "--format",
                                                                 "chatml")))
        text = self.memwall("tokenize", "-m", g.path, "--chat", "--text", "-",
                            text=json.dumps(self.LONG[2:]))
        self.assertTrue(text.stdout.startswith("<s><|im_start|>user\nc"), text.stdout)

    def prompt(self, g, *args):
        r = self.memwall("run", "-m", g.path, "--json", "--ids", "-n", "3", "-b", "256M", "-t",
                         "1", "--no-save", *args)
        self.assertEqual(0, r.returncode, r.stderr)
        events = [json.loads(line) for line in r.stdout.splitlines()]
        return next(e["ids"] for e in events if e["event"] == "prompt_ids")

    def test_answers(self):
        g = self.gguf((BOOL, True), self.TURNS)
        ids = self.prompt(g, "-p", "a")
        self.assertEqual(self.chat_ids(g, [{"role": "user", "content": "a"}]), ids)
        self.assertEqual((1, True), self.counts(g, ids))
        self.assertEqual((1, True), self.counts(g, self.prompt(g, "--raw", "-p", "a")))


    def chat(self, g, *args, texts="a"):
        """Chat in plain mode, with an answer of four tokens to each text."""
        t = Terminal("chat", "-m", g.path, "--plain", "--temp", "0", "-b", "256M", "-t", "1", *args,
                     home=self.folder, cols=200)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists commands and keys"), t.screen())
        for text in texts:
            at = len(t.raw)
            t.send(text + "\r")
            while not (b"\n* 4 tokens" in t.raw[at:] and t.raw.endswith(b"\n> ")):
                self.assertTrue(t.process.poll() is None and t.pump(0.01), t.screen())
        t.send("/quit\r")
        while t.pump(1):
            pass
        self.assertEqual(0, t.process.wait(TIMEOUT_S))
        return t.raw

    def sizes(self):
        """The tokens of the prompts of the only saved chat, with those that were reused."""
        path, = glob.glob(self.path(".local/share/memwall/chats/*.jsonl"))
        with open(path, encoding="utf-8") as f:
            receipts = [x["receipt"] for x in map(json.loads, f) if "receipt" in x]
        return [r["n_prompt"] + r["n_reused"] for r in receipts]

    def test_chats_that_are_saved_or_lose_turns(self):
        g = self.gguf((BOOL, True), self.TURNS)
        turn = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "abc"}]
        ids = [self.chat_ids(g, turn * n + turn[:1]) for n in range(4)]
        self.assertEqual([(1, True)] * 4, [self.counts(g, x) for x in ids])
        want = [len(x) for x in ids]
        self.chat(g, texts="aa")
        self.assertIn(b"tokens of this chat were read from disk", self.chat(g, "--continue"))
        shutil.rmtree(self.path(".cache/memwall/kv"))
        self.chat(g, "--continue")
        self.assertEqual(want, self.sizes())
        shown = self.chat(g, "--continue", "--ctx", str(want[3] + 10), "--ctx-shift", texts="aaaaa")
        self.assertIn(b"the model no longer sees the oldest", shown)
        shifted = self.sizes()[4:]
        self.assertLess(shifted[0], want[3])  # it has fewer turns
        self.assertLessEqual(set(shifted), set(want))


class Scores(Case):
    def test_scores_may_be_whole_numbers(self):
        g = Gguf(os.path.join(MODELS, "llama-tiny.gguf"))
        before = self.ids(os.path.join(MODELS, "llama-tiny.gguf"), "the thing")
        n = len(g.get("tokenizer.ggml.scores")[1])
        g.keys["tokenizer.ggml.scores"] = (ARR, (I32, [-i for i in range(n)]))
        self.assertEqual(before[0], self.ids(g.write(self.path("whole.gguf")), "the thing")[0])
        b = chain(self.folder, "bytes", WALK, keys={
            "tokenizer.ggml.scores": (ARR, (I32, [0] * len(
                chain(self.folder, "other", WALK).get("tokenizer.ggml.tokens")[1])))})
        self.assertEqual(3, len(self.ids(b.path, "xyz")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
