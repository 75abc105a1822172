#!/usr/bin/env python3
"""A resumed chat opens the model that it was held with, in the way in which that was opened."""
import glob
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from store_case import StoreCase, SMALL  # noqa: E402
from terminal import Terminal  # noqa: E402

HUB = ".cache/huggingface/hub/models--org--name"
REVISION = "0" * 40
GONE = "the model of this chat is not found: "


class ChatModel(StoreCase):
    def make(self, file, says, name="Name"):
        """Write a model with a general.name that answers every message in the same way."""
        made = chain(self.home, name, spell("\n", says, "<|im_end|>")).path
        os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
        os.rename(made, self.path(file))
        return self.path(file)

    def make_hub(self):
        self.put(f"{HUB}/refs/main", REVISION)
        return [self.make(f"{HUB}/snapshots/{REVISION}/Name-{label}.gguf", says)
                for label, says in (("Q8_0", "abcd"), ("Q4_K_M", "xyz"))]

    def chat(self, *args, lines=(), mode="--plain"):
        """Chat with these lines, each with what it shows.  Returns what was printed at last."""
        t = Terminal("chat", mode, "--temp", "0", *SMALL, *args, home=self.home, cwd=self.cwd,
                     rows=50, cols=250)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists commands and keys"), t.screen())
        for line, *shown in lines:
            # Plain mode would show a line that is typed before the prompt in front of it.
            while mode == "--plain" and not t.screen().rstrip().endswith("\n>"):
                self.assertTrue(t.pump(0.1), t.screen())
            t.send(line + "\r")
            self.assertTrue(t.sees(*shown), t.screen())
        t.send("/quit\r")
        seen = t.screen()
        while t.pump(1):
            pass
        t.process.wait()
        return seen

    def chats(self):
        return glob.glob(self.path(".local/share/memwall/chats/*.jsonl"))

    def name(self, name):
        """Name the only chat that has no name yet."""
        new, = (c for c in self.chats() if os.path.basename(c)[0].isdigit())
        path = os.path.join(os.path.dirname(new), name + ".jsonl")
        os.rename(new, path)
        return path

    def noted(self, path):
        with open(path, encoding="utf-8") as f:
            return [x["model_file"] for x in map(json.loads, f) if "model_file" in x]

    def rewrite(self, path, change):
        with open(path, encoding="utf-8") as f:
            lines = change([json.loads(x) for x in f])
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(x) + "\n" for x in lines)

    def refused(self, *args):
        """Returns what a chat prints that does not begin."""
        t = Terminal("chat", *args, *SMALL, home=self.home, cwd=self.cwd, rows=24, cols=250)
        self.addCleanup(t.close)
        while t.pump(1):
            pass
        self.assertNotEqual(0, t.process.wait())
        return t.screen().strip()

    Q8, Q4 = ("hi", "\nabcd\n*"), ("hi", "\nxyz\n*")

    def test_two_types_of_one_model(self):
        _, q4 = self.make_hub()
        self.chat("-m", "org/name:Q8_0", lines=[self.Q8])
        path = self.name("first")
        self.assertEqual(["org/name:Q8_0"], self.noted(path))
        self.chat("-m", q4, lines=[self.Q4])
        self.assertEqual(["org/name:Q4_K_M"], self.noted(self.name("second")))
        self.chat("--open", "first", lines=[("ho", "\nabcd\n*")])
        self.chat("--open", "second", lines=[("ho", "\nxyz\n*")])
        self.assertEqual(["org/name:Q8_0"], self.noted(path))
        seen = self.chat("-m", "org/name:Q4_K_M",
                         lines=[("/open first", "the model of this chat was org/name:Q8_0; "
                                 "org/name:Q4_K_M answers now")])
        self.assertIn("opened", seen)

    def test_a_model_in_a_folder(self):
        self.make("a/one.gguf", "abcd")
        self.make("here/two.gguf", "xyz")
        self.chat("-m", "../a/one.gguf", lines=[self.Q8])
        self.assertEqual([os.path.join(self.cwd, "../a/one.gguf")],
                         self.noted(self.name("first")))
        self.chat("-m", "two", lines=[self.Q4])
        self.assertEqual([os.path.join(self.cwd, "two.gguf")], self.noted(self.name("second")))
        self.cwd = self.home
        self.chat("--open", "first", lines=[("ho", "\nabcd\n*")])
        self.chat("--open", "second", lines=[("ho", "\nxyz\n*")])
        self.chat("--open", "first", "-m", "here/two.gguf", lines=[("ha", "\nxyz\n*")])
        self.chat("--open", "first", lines=[("ha", "\nxyz\n*")])  # it answered last

    def test_a_model_in_a_deep_folder(self):
        made = self.make("m.gguf", "abcd")
        folder, longest = self.path(""), os.pathconf("/", "PC_PATH_MAX") - 1
        while len(folder) + 200 < longest:
            folder += "d" * 150 + "/"
        os.makedirs(folder)
        path = folder + "m".rjust(longest - len(folder) - len(".gguf"), "m") + ".gguf"
        os.rename(made, path)
        self.chat("-m", path, lines=[self.Q8])
        self.assertEqual([path], self.noted(self.chats()[0]))
        self.chat("--continue", lines=[("ho", "\nabcd\n*")])

    def test_a_model_that_the_chat_switched_to(self):
        self.make("a/one.gguf", "abcd", name="One")
        self.make("a/two.gguf", "xyz", name="Two")
        self.chat("-m", "../a/one.gguf",
                  lines=[self.Q8, ("/model ../a/two.gguf", "Two (qwen2"), ("ho", "\nxyz\n*"),
                         ("/chats", "   4  Two   ")])
        path, = self.chats()
        self.assertEqual(2, len(self.noted(path)))
        self.chat("--continue", lines=[("ha", "\nxyz\n*")])

    def test_another_file_of_the_same_name(self):
        q8, _ = self.make_hub()
        self.chat("-m", "org/name:Q8_0", lines=[self.Q8])
        path = self.name("first")
        self.chat("-m", "org/name:Q4_K_M", lines=[self.Q4])
        self.name("second")
        os.rename(q8, self.path("gone"))
        seen = self.chat("--open", "first", lines=[("ho", "\nxyz\n*")])
        self.assertIn(GONE + '"Name" (org/name:Q8_0); /', seen)
        self.assertIn("Name-Q4_K_M.gguf has the same name and answers", seen)
        self.assertEqual(["org/name:Q8_0", "org/name:Q4_K_M"], self.noted(path))

    def test_an_older_chat(self):
        self.make_hub()
        self.chat("-m", "org/name:Q8_0", lines=[self.Q8])
        path = self.name("first")
        self.rewrite(path, lambda lines: [x for x in lines if "model_file" not in x])
        seen = self.chat("--open", "first", lines=[("ho", "\nabcd\n*")])
        self.assertNotIn("model of this chat", seen)
        self.assertEqual(["org/name:Q8_0"], self.noted(path))

    def test_a_model_of_ollama(self):
        path = self.make("m.gguf", "abcd")
        layers = (("adapter", b"z" * 64), ("system", b"be kind"),
                  ("params", {"stop": ["c"], "temperature": 0.3}))
        for others in (), ("first", "zlast"):
            with self.subTest(others=others):
                for name in others:
                    self.ollama(name, model=path)
                self.ollama("my-pirate", *layers, model=path)
                self.chat("-m", "pirate", lines=[("hi", "\nab\n*")])
                self.assertEqual(["my-pirate:latest"], self.noted(self.chats()[0]))
                seen = self.chat("--continue", lines=[
                    ("ho", "\nab\n*"), ("/system", '"be kind"'),
                    ("/set stop", '"c"')])
                self.assertIn('stop "c"', seen)
                self.assertIn("Not applied: adapter.", seen)
                self.chat("--continue", "--temp", "0.5",
                          lines=[("/temp", "temperature is 0.5"), ("ha", "\nab\n*")])
                os.unlink(self.chats()[0])

    def test_a_chat_keeps_its_settings_beside_those_of_ollama(self):
        self.ollama("pirate", ("system", b"be kind"), ("params", {"num_ctx": 300, "top_k": 7}),
                    model=self.make("m.gguf", "abcd"))
        parts = "apply where you gave none: "
        seen = self.chat("-m", "pirate", "--ctx", "512", lines=[
            self.Q8, ("/system be brief", "system message is"), ("ho", "\nabcd\n*")])
        self.assertIn(parts + "top-k 7, system message.", seen)
        for args in ("--continue",), ("--continue", "-m", "pirate"):
            seen = self.chat(*args, lines=[("/system", '"be brief"'), ("/set ctx", "context is 512")])
            self.assertIn(parts + "top-k 7.", seen)
        seen = self.chat("--continue", "--system", "be quick", lines=[("/system", '"be quick"')])
        self.assertIn(parts + "top-k 7.", seen)

    def test_names_that_share_weights_have_settings_of_their_own(self):
        path = self.make("m.gguf", "abcd")
        for name in "tuned", "zlast":
            self.ollama(name, ("system", name.encode()), model=path)
        blob, = (b for b in glob.glob(self.path(".ollama/models/blobs/*"))
                 if os.path.getsize(b) == os.path.getsize(path))
        settings = ".local/state/memwall/settings"
        last = ", as last time with this model"

        def ctx(name, *args, lines=()):
            """Returns the context that a chat takes from the settings, or None."""
            seen = self.chat("-m", name, *args, lines=lines)
            kept = re.search(r"context (\d+)" + last, seen)
            return kept and kept[1]

        small = f"memory {SMALL[1]}, ctx {{}}, threads 1"
        self.put(settings, f"ctx 400\t{blob}\n")  # as older versions wrote it
        self.assertEqual("400", ctx("tuned"))
        self.assertIsNone(ctx("tuned", "--ctx", "512"))
        self.assertEqual(["512", "400", "400"], [ctx(n) for n in ("tuned", "zlast", blob)])
        ctx("zlast", "--ctx", "300", lines=[("/forget", "are forgotten")])
        self.assertEqual(["512", None], [ctx(n) for n in ("tuned", "zlast")])
        with open(self.path(settings), encoding="utf-8") as f:
            self.assertIn(small.format(512) + "\ttuned:latest\n", f)

    def test_the_list_marks_the_name_that_is_open(self):
        path = self.make("m.gguf", "abcd")
        for name in "first", "tuned", "zlast":
            self.ollama(name, ("system", name.encode()), model=path)
        t = Terminal("-m", "tuned", *SMALL, home=self.home, rows=40, cols=100)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists"), t.screen())
        for open_name, after in ("tuned", "zlast\r"), ("zlast", "\x1b"):
            t.send("/model\r")
            self.assertTrue(t.sees("filter:", "first:latest"), t.screen())
            self.assertEqual([f"{open_name}:latest"], re.findall(r"\* (\S+:latest)", t.screen()))
            t.send(after)
            self.assertTrue(after == "\x1b" or t.sees("loading Name"), t.screen())

    def test_a_model_that_is_gone(self):
        path = self.make("a/one.gguf", "abcd", name="One")
        self.chat("-m", path, lines=[self.Q8])
        chat = self.name("first")
        os.rename(path, self.path("gone"))
        other = self.make("here/other.gguf", "xyz", name="Other")
        line = (f'memwall: {GONE}"One" ({path}). Use -m FILE to open the chat with another one')
        for mode in "--plain", "--ascii":
            for which in ("--open", "first"), ("--continue",):
                self.assertEqual(line, self.refused(mode, *which))
        self.rewrite(chat, lambda lines: [x for x in lines if "model_file" not in x])
        self.assertEqual(line.replace(f" ({path})", ""), self.refused("--plain", "--continue"))
        self.chat("--continue", "-m", other, lines=[("ho", "\nxyz\n*")])

    def test_the_model_of_a_chat_comes_before_that_of_the_configuration(self):
        one = self.make("a/one.gguf", "abcd", name="One")
        two = self.make("a/two.gguf", "xyz", name="Two")
        self.chat("-m", one, lines=[self.Q8])
        self.put(".config/memwall/config", f"model = {two}\n")
        self.chat("--continue", lines=[("ho", "\nabcd\n*")])
        self.chat("--continue", "-m", two, lines=[("ho", "\nxyz\n*")])
        self.chat("--continue", "-m", one, lines=[("ho", "\nabcd\n*")])
        os.unlink(one)
        seen = self.chat("--continue", lines=[("ha", "\nxyz\n*")])
        self.assertIn(GONE + '"One"', seen)

    def test_hostile_names_of_models(self):
        one = self.make("a/one.gguf", "abcd", name="One")
        two = self.make("a/two.gguf", "xyz", name="Two")
        self.chat("-m", one, lines=[self.Q8])
        chat = self.name("bad")
        with open(chat, encoding="utf-8") as f:
            whole = f.read()
        os.mkfifo(self.path("fifo"))
        for file in (self.path("fifo"), "/dev/zero", "/", "../a/two.gguf", two, "one", "", "/a\0b",
                     "\x1b[2J/\x9b", "/" + "a/" * 3000, 7, None, [one]):
            with self.subTest(file=str(file)[:30]):
                with open(chat, "w", encoding="utf-8") as f:
                    f.write(whole + json.dumps({"model_file": file, "model_name": "One"}) + "\n")
                seen = self.chat("--open", "bad", lines=[("ho", "\nabcd\n*")])
                self.assertNotIn("\x1b[2J", seen)


if __name__ == "__main__":
    unittest.main()
