#!/usr/bin/env python3
"""Texts that editors and shells of Windows wrote: a byte order mark, CR LF, UTF-16."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain, spell  # noqa: E402
from program import (HomeCase, MEMWALL, MODELS, SRCDIR, TIMEOUT_S, budget,  # noqa: E402
                     environment)
from pull_case import Case as PullCase, tokenizer  # noqa: E402
from terminal import Terminal  # noqa: E402
from tiny_model import Model  # noqa: E402

TINY = os.path.join(MODELS, "llama-tiny.gguf")
SMALL = ["-b", budget(256), "-t", "1"]
RUN = ["run", "-q", "-m", TINY, "-n", "1", "--temp", "0", "--json", *SMALL]
MARK = b"\xef\xbb\xbf"
OTHERS = [("utf-16-le", b"\xff\xfe", "UTF-16"), ("utf-16-be", b"\xfe\xff", "UTF-16"),
          ("utf-32-le", b"\xff\xfe\0\0", "UTF-32"), ("utf-32-be", b"\0\0\xfe\xff", "UTF-32")]


class EncodingCase(HomeCase):
    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def memwall(self, *args, data=b""):
        p = subprocess.run([MEMWALL, *args], input=data, capture_output=True, timeout=TIMEOUT_S,
                           env=environment(self.folder))
        p.out, p.err = p.stdout.decode(), p.stderr.decode()
        return p

    def output(self, *args, data=b""):
        p = self.memwall(*args, data=data)
        self.assertEqual((p.returncode, p.err), (0, ""), args)
        return p.out

    def assert_named(self, p, encoding, *words):
        self.assertNotEqual(p.returncode, 0)
        for word in (f"the text is {encoding}, not UTF-8", f"iconv -f {encoding} -t UTF-8", *words):
            self.assertIn(word, p.err)
        self.assertEqual(p.err.count("\n"), 1, p.err)


class Prompts(EncodingCase):
    def n_prompt(self, *args, data=b""):
        return json.loads(self.output(*RUN, *args, data=data).splitlines()[-1])["n_prompt"]

    def test_a_mark_and_the_last_line_end_are_not_a_part_of_the_prompt(self):
        want = self.n_prompt(data=b"say hi")
        for data in (b"say hi\n", b"say hi\r\n", MARK + b"say hi", MARK + b"say hi\r\n"):
            self.assertEqual(self.n_prompt(data=data), want, data)
        for arg in ("say hi", "say hi\r", "\ufeffsay hi", "\ufeffsay hi\r"):
            self.assertEqual(self.n_prompt(arg, "--no-stdin"), want, arg)
        both = self.n_prompt("say hi", data=b"text")
        self.assertEqual(self.n_prompt("\ufeffsay hi\r", data=MARK + b"text\r\n"), both)

    def test_line_ends_inside_a_prompt_stay(self):
        self.assertGreater(self.n_prompt(data=b"a\r\nb"), self.n_prompt(data=b"a\nb"))
        self.assertGreater(self.n_prompt(data=b"a\r\n\r\n"), self.n_prompt(data=b"a\r\n"))
        self.assertGreater(self.n_prompt(data=b"a\r"), self.n_prompt(data=b"a"))
        raw = self.n_prompt("--raw", data=b"a")
        self.assertGreater(self.n_prompt("--raw", data=b"a\r\n"), raw)
        self.assertEqual(self.n_prompt("--raw", data=MARK + b"a"), raw)

    def test_a_mark_may_come_in_pieces(self):
        r, w = os.pipe()
        p = subprocess.Popen([MEMWALL, *RUN], stdin=r, stdout=subprocess.PIPE, text=True,
                             env=environment(self.folder))
        os.close(r)
        for byte in MARK + b"say hi\r\n":
            os.write(w, bytes([byte]))
        os.close(w)
        out, _ = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(json.loads(out.splitlines()[-1])["n_prompt"],
                         self.n_prompt(data=b"say hi"))

    def test_a_mark_alone_is_not_a_prompt(self):
        p = self.memwall(*RUN, data=MARK)
        self.assertEqual(p.returncode, 2)
        self.assertIn("no prompt given", p.err)

    def test_other_encodings_are_named(self):
        for codec, mark, name in OTHERS:
            data = mark + "say hi\r\n".encode(codec)
            self.assert_named(self.memwall(*RUN, data=data), name, "standard input")
            self.assert_named(self.memwall(*RUN, "a", data=data), name, "standard input")


    def test_text_that_is_not_utf_8_is_named(self):
        for data, args, at in ((b"caf\xe9", (), 3), (b"a\xff\xfe\n", (), 1), (b"\xc3", ("hi",), 4),
                               ("grüß \udce4".encode(errors="surrogateescape"), (), 7)):
            p = self.memwall(*(arg for arg in RUN if arg != "-q"), *args, data=data)
            self.assertEqual(0, p.returncode)
            self.assertEqual(1, p.err.count("\n"), p.err)
            self.assertIn(f"the prompt is not UTF-8 at byte {at}, so the model may misread it", p.err)
            self.assertEqual("", self.memwall(*RUN, *args, data=data).err)


class Files(EncodingCase):
    def test_tokenize_and_eval(self):
        text = "grüß dich".encode()
        args = "tokenize", "-m", TINY, "--ids"
        want = self.output(*args, data=text)
        self.assertEqual(self.output(*args, self.write("text", MARK + text)), want)
        self.assertEqual(self.output(*args, data=MARK + text), want)
        ids = self.write("ids", MARK + want.strip().replace(" ", "\r\n").encode() + b"\r\n")
        self.assertEqual(self.output("tokenize", "-m", TINY, "--decode", ids).strip(),
                         "grüß dich")
        self.assertEqual(self.output("eval", TINY, "--ids", ids, "--greedy", "2", *SMALL),
                         self.output("eval", TINY, "--ids", "-", "--greedy", "2", *SMALL,
                                     data=want.encode()))
        for codec, mark, name in OTHERS:
            path = self.write("other", mark + "1 2 3\r\n".encode(codec))
            for args in (("tokenize", "-m", TINY), ("tokenize", "-m", TINY, "--decode"),
                         ("tokenize", "-m", TINY, "--chat"), ("eval", TINY, *SMALL, "--ids"),
                         ("eval", TINY, *SMALL, "--text")):
                self.assert_named(self.memwall(*args, path), name, path)

    def test_messages_and_templates(self):
        messages = b'[{"role":"user",\r\n"content":"hi"}]\r\n'
        template = b"{% for m in messages %}\r\n{{ m.content }}\r\n{% endfor %}\r\nend\r\n"
        want = self.output("tokenize", "-m", TINY, "--chat", "--text", "--template",
                           self.write("a", template.replace(b"\r\n", b"\n")), data=messages)
        self.assertNotIn("\r", want)
        for t, m in ((template, messages), (MARK + template, MARK + messages)):
            self.assertEqual(self.output("tokenize", "-m", TINY, "--chat", "--text", "--template",
                                         self.write("a", t), data=m), want)
        for codec, mark, name in OTHERS:
            path = self.write("a", mark + template.decode().encode(codec))
            self.assert_named(self.memwall("tokenize", "-m", TINY, "--chat", "--template", path,
                                           data=messages), name, path)

    def test_a_template_that_ends_in_a_nul(self):
        for end in "", "\0", "\0" * 8:
            g = chain(self.folder, "m", spell("\n", "abc", "<|im_end|>"), template=CHATML + end)
            self.assertEqual("abc\n", self.output("run", "-m", g.path, *SMALL, "hi"))

    def test_the_files_of_a_model(self):
        folder = Model().snapshot(self.path("model"))
        config = os.path.join(folder, "config.json")
        with open(config, "rb") as f:
            text = f.read()
        self.write(config, MARK + text.replace(b",", b",\r\n"))
        # The configuration was read: the next file is missing.
        self.assertIn("tokenizer.json", self.memwall("inspect", folder).err)
        for codec, mark, name in OTHERS:
            self.write(config, mark + text.decode().encode(codec))
            self.assert_named(self.memwall("inspect", folder), name, "config.json")

    def test_the_tokenizer_of_a_model(self):
        template = "{% for m in messages %}\n<{{ m.content }}>\n{% endfor %}\nend\n"
        messages = b'[{"role":"user","content":"hi"}]'
        files = {"tokenizer.json": tokenizer().decode(),
                 "tokenizer_config.json": json.dumps({"chat_template": template}, indent=1),
                 "chat_template.jinja": template.replace("<", "(")}
        args = "tokenize", "-m", self.path("m"), "--chat", "--text"

        def write(change=None, data=None):
            for name, text in files.items():
                self.write("m/" + name, text.encode() if name != change else data)

        self.write("m/tokenizer.json", files["tokenizer.json"].encode())
        for part in "tokenizer_config.json", "chat_template.jinja":
            self.write("m/" + part, files[part].encode())
            want = self.output(*args, data=messages)
            self.assertIn("<hi>" if part[0] == "t" else "(hi>", want)
            for name in files:
                if not os.path.exists(self.path("m/" + name)):
                    continue
                data = files[name].encode()
                self.write("m/" + name, MARK + data.replace(b"\n", b"\r\n"))
                self.assertEqual(self.output(*args, data=messages), want, name)
                self.write("m/" + name, data)
        for name, text in files.items():
            for codec, mark, encoding in OTHERS:
                write(name, mark + text.encode(codec))
                self.assert_named(self.memwall(*args, data=messages), encoding, name)

    def test_a_recording(self):
        with open(os.path.join(SRCDIR, "tests", "data", "dash", "session.jsonl"), "rb") as f:
            text = f.read()
        want = self.output("replay", "--json", self.write("a.jsonl", text))
        for data in (MARK + text, MARK + text.replace(b"\n", b"\r\n")):
            self.assertEqual(self.output("replay", "--json", self.write("a.jsonl", data)), want)
        data = b"\xff\xfe" + text.decode().encode("utf-16-le")
        self.assert_named(self.memwall("replay", "--json", self.write("a.jsonl", data)), "UTF-16",
                          "a.jsonl")


class Settings(EncodingCase):
    TEXT = b"# comment\r\nmemory = 256M\r\ntemp = \"0.25\"\r\n\r\nsystem = \"two\\nlines\"\r\n"

    def config(self, data):
        return self.write(".config/memwall/config", data)

    def test_the_configuration(self):
        for data in (self.TEXT, MARK + self.TEXT, MARK + self.TEXT.replace(b"\r", b""),
                     MARK + b"memory = 256M"):
            self.config(data)
            plan = json.loads(self.output("plan", TINY, "--json"))
            self.assertEqual(plan["budget_bytes"], 256 << 20)
        for codec, mark, name in OTHERS:
            path = self.config(mark + self.TEXT.decode().encode(codec))
            self.assert_named(self.memwall("plan", TINY), name, path)

    def chat(self, *args, **more):
        t = Terminal("-m", TINY, "-t", "1", "--temp", "0", "-n", "4", *args, home=self.folder,
                     **more)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("ready"), t.screen())
        return t

    def leave(self, t):
        t.send("\004")
        t.pump(30)
        self.assertEqual(t.process.wait(30), 0)

    def test_a_setting_is_written_into_such_a_file(self):
        path = self.config(MARK + self.TEXT)
        t = self.chat()
        for setting in "seed 7", "temp 0.5":
            t.send(f"/set {setting}\r")
            self.assertTrue(t.sees(setting.replace(" ", " = ")), t.screen())
        self.leave(t)
        with open(path, "rb") as f:
            text = f.read()
        self.assertEqual((text.count(b"memory"), text.count(b"temp")), (1, 1), text)
        for part in b"# comment", b"memory = 256M", b"temp = 0.5", b"seed = 7":
            self.assertIn(part, text)
        self.output("plan", TINY)

    def test_a_theme(self):
        with open(os.path.join(SRCDIR, "share", "themes", "dark.theme"), "rb") as f:
            text = f.read()
        self.write(".config/memwall/themes/mine.theme", MARK + text.replace(b"\n", b"\r\n"))
        self.leave(self.chat("--theme", "mine"))
        self.write(".config/memwall/themes/mine.theme",
                   b"\xff\xfe" + text.decode().encode("utf-16-le"))
        t = Terminal("-m", TINY, "--theme", "mine", home=self.folder)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("the text is UTF-16", "mine.theme"), t.screen())

    def test_the_history_and_attached_files(self):
        self.write(".local/state/memwall/history", MARK + b"first one\r\nsecond\\nline\r\n")
        t = self.chat("--view", "chat")
        t.send("\033[A")
        self.assertTrue(t.sees("> second\n  line"), t.screen())
        t.send("\033[A\033[A")
        self.assertTrue(t.sees("> first one"), t.screen())
        self.assertNotIn("^M", t.screen())
        t.send("\025/file " + self.write("a.txt", b"\xff\xfe" + "x".encode("utf-16-le")) + "\r")
        self.assertTrue(t.sees("the text is UTF-16"), t.screen())
        t.send("/file " + self.write("c.txt", b"caf\xe9") + "\r")
        self.assertTrue(t.sees("c.txt is not UTF-8 at byte 3", "c.txt goes with"), t.screen())
        t.send("/file -\r")
        t.send("/file " + self.write("b.txt", MARK + b"123\r\n") + "\r")
        t.send("/file\r")
        self.assertTrue(t.sees("b.txt (5 bytes)"), t.screen())

    def test_an_editor(self):
        editor = self.write("editor", b"#!/bin/sh\n"
                            b"printf '\\357\\273\\277one\\r\\ntwo\\r\\n' > \"$1\"\n")
        os.chmod(editor, 0o755)
        t = self.chat("--view", "chat", env={"VISUAL": editor, "EDITOR": editor})
        t.send("\030\005")
        self.assertTrue(t.sees("> one\n  two"), t.screen())
        self.assertNotIn("^M", t.screen())

    def test_a_saved_chat(self):
        t = self.chat("--view", "chat")
        t.send("remember this\r")
        self.assertTrue(t.sees("tok/s"), t.screen())
        self.leave(t)
        chats = os.path.join(self.folder, ".local", "share", "memwall", "chats")
        path, = [os.path.join(chats, x) for x in os.listdir(chats)]
        with open(path, "rb") as f:
            text = f.read()
        self.write(path, MARK + text.replace(b"\n", b"\r\n"))
        t = self.chat("--view", "chat", "--continue")
        self.assertTrue(t.sees("remember this"), t.screen())


class Token(PullCase):
    def test_the_file_of_the_token(self):
        path = os.path.join(self.folder.name, "token")
        for data in (b"hf_good\n", MARK + b"hf_good\r\n"):
            with open(path, "wb") as f:
                f.write(data)
            self.pull("org/nothing", env={"HF_TOKEN_PATH": path})
        self.assertEqual({h.get("Authorization") for name, _, h in self.hub.requests
                          if name == "hub"}, {"Bearer hf_good"})
        with open(path, "wb") as f:
            f.write(b"\xff\xfe" + "hf_good\r\n".encode("utf-16-le"))
        r = self.pull("org/nothing", env={"HF_TOKEN_PATH": path})
        self.assertIn(f"{path}: the text is UTF-16", r.stderr)


if __name__ == "__main__":
    unittest.main()
