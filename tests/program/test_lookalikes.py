#!/usr/bin/env python3
"""Commands, options and settings that were pasted with characters that look like others."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import HomeCase, MEMWALL, MODELS, TIMEOUT_S, environment  # noqa: E402
from terminal import Terminal  # noqa: E402

TINY = os.path.join(MODELS, "llama-tiny.gguf")
BLANKS = "\u00a0\u2007\u202f\u3000\u2003\u205f"
INVISIBLE = "\u200b\ufeff\u2060\u00ad\u200d\u200e\u2063"


class Case(HomeCase):
    def memwall(self, *args):
        return subprocess.run([MEMWALL, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=TIMEOUT_S, env=environment(self.folder))

    def config(self, text):
        folder = os.path.join(self.folder, ".config", "memwall")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config"), "w", encoding="utf-8") as f:
            f.write(text)

    def saved(self):
        with open(os.path.join(self.folder, ".config", "memwall", "config"), encoding="utf-8") as f:
            return f.read()

    def chat(self, *args):
        t = Terminal("-m", TINY, "-b", "256M", "-t", "1", "--temp", "0", "-n", "4", *args,
                     home=self.folder, cols=160)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help"), t.screen())
        return t

    def assert_refused(self, p, *words):
        self.assertEqual(p.returncode, 2, p.stderr)
        for word in words:
            self.assertIn(word, p.stderr)


class Chat(Case):
    def test_slash_commands(self):
        t = self.chat("--plain")
        n = 0
        lines = [f"/temp{x}{{}}" for x in BLANKS] + [f"/te{x}mp {{}}" for x in INVISIBLE]
        lines += [f"{x}/temp {{}}" for x in INVISIBLE] + [f"/temp {{}}{x}" for x in INVISIBLE]
        lines += ["/temp \u00a0\u200b{}\u3000\u200b", "\uff0ftemp {}", "\u2044temp\u00a0{}"]
        for line in lines:
            n += 1
            t.send(line.format(f"0.{n:02}") + "\n")
            shown = f"the temperature is 0.{n:02}".rstrip("0")
            self.assertTrue(t.sees(shown), ascii(line) + t.screen())
        self.assertNotIn("no command", t.screen())

    def test_a_command_that_stays_wrong_names_the_character(self):
        t = self.chat("--plain")
        for line, note in [("/t\u00e9mp 1", "there is no command"),
                           ("/top\u2013k 5", "U+2013 looks like '-'"),
                           ("/temp \u201c0.5\u201d", "U+201C looks like '\"'"),
                           ("/temp \u22121", "U+2212 looks like '-'"),
                           ("/temp \uff10.5", "U+FF10 looks like '0'"),
                           ("/kv \u2018q8_0\u2019", "U+2018 looks like '''"),
                           ("/set top\u2010k 5", "U+2010 looks like '-'")]:
            t.send(line + "\n")
            self.assertTrue(t.sees(note), ascii(line) + t.screen())

    def test_set_writes_what_was_meant(self):
        t = self.chat("--plain")
        for line, saved in [("/set\u00a0temp\u202f0.5", "temp = 0.5\n"),
                            ("/set top-p\u00a0=\u00a00.25\u200b", "top-p = 0.25\n"),
                            ("/set\u3000se\u00aded 7", "seed = 7\n"),
                            ("/set system a\u00a0b", 'system = "a\u00a0b"\n')]:
            t.send(line + "\n")
            for _ in range(200):
                t.pump(0.05)
                if os.path.exists(os.path.join(self.folder, ".config", "memwall", "config")) and \
                        saved in self.saved():
                    break
            self.assertIn(saved, self.saved(), ascii(line) + t.screen())

    def test_texts_keep_their_characters(self):
        t = self.chat("--plain")
        t.send("/system one\u00a0two\u2014three\u00a0\n/system\n")
        self.assertTrue(t.sees('the system message is "one\u00a0two\u2014three"'), t.screen())
        t.send("\uff0fno command, but a text\n")
        self.assertTrue(t.sees("tok/s"), t.screen())

    def test_a_paste_on_the_screen(self):
        t = self.chat()
        t.send("\033[200~/temp\u00a00.5\033[201~\r")
        self.assertTrue(t.sees("the temperature is 0.5"), t.screen())


class CommandLine(Case):
    def budget(self, *args):
        p = self.memwall("plan", TINY, "--json", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["budget_bytes"]

    def test_values(self):
        for value in ("256M\ufeff", "\u200b256M", "25\u20606M"):
            self.assertEqual(self.budget("-b", value), 256 << 20, ascii(value))
        for args, note in [(("-b", "256M\u00a0"), "U+00A0 looks like a blank"),
                           (("-b", "\u201c256M\u201d"), "U+201C looks like '\"'"),
                           (("-b", "\uff12G"), "U+FF12 looks like '2'"),
                           (("--ctx", "\u2212512"), "U+2212 looks like '-'"),
                           (("--kv", "q8\uff3f0"), "U+FF3F looks like '_'")]:
            self.assert_refused(self.memwall("plan", TINY, *args), note)

    def test_dashes(self):
        for dash in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\uff0d":
            code = f"U+{ord(dash):04X} looks like '-'"
            for args, typed in [((dash + "memory", "256M"), "type --memory"),
                                ((dash + dash + "memory=256M",), "type --memory"),
                                (("-" + dash + "memory", "256M"), "type --memory"),
                                ((dash + "b", "256M"), "type -b")]:
                self.assert_refused(self.memwall("plan", TINY, *args), code, typed)
        self.assert_refused(self.memwall("\u2013m", TINY), "U+2013 looks like '-'")
        self.assert_refused(self.memwall("plan", TINY, "--top\u2013k", "5"), "U+2013")

    def test_unseen_characters_around_options(self):
        for c in INVISIBLE:
            code = f"U+{ord(c):04X} is invisible"
            for args, typed in [((c + "--memory", "256M"), "type --memory"),
                                (("--" + c + "memory=256M",), "type --memory"),
                                (("--mem" + c + "ory", "256M"), "type --memory"),
                                (("-" + c + "b", "256M"), "type -b")]:
                self.assert_refused(self.memwall("plan", TINY, *args), code, typed)
            self.assert_refused(self.memwall("run", "-m", TINY, "-p", "x", c + "--temp", "0"),
                                code, "type --temp")
            self.assert_refused(self.memwall(c + "--version"), code, "type --version")
            self.assert_refused(self.memwall(c + "plan"), code, 'did you mean "memwall plan"?')
        for c in BLANKS:
            code = f"U+{ord(c):04X} looks like a blank"
            self.assert_refused(self.memwall("plan", TINY, c + "--memory", "256M"), code,
                                "type --memory")
        self.assert_refused(self.memwall("\u2014help"), "U+2014 looks like '-'", "type --help")

    def test_other_names(self):
        self.assert_refused(self.memwall("completions", "\u200bbash"), "U+200B is invisible")
        p = self.memwall("replay", "x\u200b.jsonl")
        self.assertEqual(p.returncode, 1)
        self.assertIn("U+200B is invisible", p.stderr)

    def test_a_prompt_may_begin_with_a_dash(self):
        for prompt in ("\u2014 Hello, she said.", "\u2013", "\u2014Hello", "\u22125 is what?",
                       "\u200bHello", "\u200b\u2014 Hello", "\u00a0-", "\u3000Hello -n"):
            p = self.memwall("run", "-q", "-m", TINY, "-n", "1", "-b", "256M", "-t", "1", prompt)
            self.assertEqual((p.returncode, p.stderr), (0, ""), ascii(prompt))

    def test_blanks_in_words(self):
        self.assert_refused(self.memwall("run\u00a0hi"), "U+00A0 looks like a blank")
        self.assert_refused(self.memwall("plan", TINY, "\u00a0-b", "2G"),
                            "U+00A0 looks like a blank")
        self.assert_refused(self.memwall("pl\u200ban", TINY), "U+200B is invisible")
        self.assert_refused(self.memwall("plan", TINY, "--memory\u00a0256M"),
                            "U+00A0 looks like a blank")
        self.assert_refused(self.memwall("plan", TINY, "--mem\u00adory", "256M"),
                            "U+00AD is invisible")

    def test_quotes_around_files(self):
        for args, note in [(("plan", "-m", "\u201cx.gguf\u201d"), "U+201C looks like '\"'"),
                           (("run", "-m", "\u2018x\u2019", "hi"), "U+2018 looks like '''"),
                           (("plan", TINY + "\u00a0"), "U+00A0 looks like a blank"),
                           (("tokenize", "-m", TINY, "\u201dx\u201d"),
                            "U+201D looks like '\"'")]:
            p = self.memwall(*args)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(note, p.stderr)

    def test_the_configuration(self):
        for text in ("memory\u00a0=\u00a0256M\u202f\n", "\u200bmemory = 256M\n",
                     "mem\u00adory =\u3000\"256M\"\u00a0\n", "\u3000# a comment\nmemory = 25\u200b6M\n",
                     "\u00a0\nmemory = 256M\n"):
            self.config(text)
            self.assertEqual(self.budget(), 256 << 20, ascii(text))
        for text, note in [("memory = \u201c256M\u201d\n", "U+201C looks like '\"'"),
                           ("top\u2013k = 5\n", "U+2013 looks like '-'"),
                           ("memory \uff1d 256M\n", "U+FF1D looks like '='")]:
            self.config(text)
            p = self.memwall("plan", TINY)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(note, p.stderr)
            self.assertIn("line 1", p.stderr)


if __name__ == "__main__":
    unittest.main()
