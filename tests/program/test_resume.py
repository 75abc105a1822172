#!/usr/bin/env python3
"""A chat that is resumed reads its keys and values from the disk, and answers as if it had never
stopped.  The chat itself opens whatever happened to them."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain, wide_chain  # noqa: E402
from program import MEMWALL, MODELS, TIMEOUT_S, KvCase, budget, environment  # noqa: E402
from terminal import Terminal  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
ARGUMENTS = ("--plain", "--color", "never", "--temp", "0", "-c", "1024", "-n", "12",
             "--memory", budget(100), "--blas", "never")
BACK = b"tokens of this chat were read from disk"
SHARED = b"tokens of this beginning, which other chats share, were read from disk"
NOT_USED = b"keys and values of this chat are not used"


class Resume(KvCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chats = os.path.join(cls.home, ".local/share/memwall/chats")

    def setUp(self):
        super().setUp()
        shutil.rmtree(self.chats, ignore_errors=True)

    def chat(self, *args, model=MODEL):
        t = Terminal("chat", "-m", model, *ARGUMENTS, *args, home=self.home, cols=200)
        self.addCleanup(t.close)
        self.wait(t, b"/help lists commands and keys", 0)
        return t

    def wait(self, t, word, at):
        """Read until the prompt follows the word."""
        while not (word in t.raw[at:] and t.raw.endswith(b"\n> ")):
            if t.process.poll() is not None or not t.pump(0.01):
                self.fail(f"no {word!r} in {t.raw[at:]!r}")

    def say(self, t, line, word=b"\n* "):
        """Returns what is printed until the answer is over."""
        at = len(t.raw)
        t.send(line + "\r")
        self.wait(t, word, at)
        return t.raw[at:]

    def leave(self, t):
        t.send("/quit\r")
        while t.pump(120):
            self.assertIsNone(t.process.poll())
        self.assertEqual(0, t.process.wait(120))

    def memwall(self, *args):
        r = subprocess.run([MEMWALL, *args], env=environment(self.home), capture_output=True,
                           text=True, timeout=TIMEOUT_S)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return r.stdout

    def files(self):
        return sorted(os.listdir(self.kv)) if os.path.isdir(self.kv) else []

    @staticmethod
    def answer(shown):
        """Without the receipt, which has times."""
        return shown.split(b"\n* ")[0]

    def test_a_resumed_chat_goes_on(self):
        t = self.chat()
        whole = [self.answer(self.say(t, q)) for q in ("hello there", "why?", "and then?")]
        self.leave(t)
        t = self.chat()
        parts = [self.answer(self.say(t, "hello there"))]
        self.leave(t)
        self.assertEqual(2, len(self.files()))
        for path in (os.path.join(self.kv, f) for f in self.files()):
            self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
        self.assertEqual(0o700, stat.S_IMODE(os.stat(self.kv).st_mode))
        t = self.chat("--continue")
        self.wait(t, BACK, 0)
        parts.append(self.answer(self.say(t, "why?")))
        self.leave(t)
        t = self.chat("--continue")
        self.wait(t, BACK, 0)
        parts.append(self.answer(self.say(t, "and then?")))
        self.leave(t)
        self.assertEqual(whole, parts)

    def test_damage_costs_only_the_evaluation(self):
        t = self.chat()
        self.say(t, "hello there")
        self.leave(t)
        path = os.path.join(self.kv, self.files()[0])
        with open(path, "r+b") as f:
            f.write(b"\0" * 8192)
        t = self.chat("--continue")
        self.wait(t, NOT_USED, 0)
        self.say(t, "why?")
        self.leave(t)
        t = self.chat("--continue")  # it was written again
        self.wait(t, BACK, 0)
        self.leave(t)
        os.unlink(path)
        t = self.chat("--continue")
        self.say(t, "why?")
        self.assertNotIn(BACK, t.raw)
        self.leave(t)

    def test_other_kv_types_are_named(self):
        t = self.chat()
        self.say(t, "hello there")
        self.leave(t)
        t = self.chat("--continue", "--kv", "f32")
        self.wait(t, b"they are of other KV types", 0)
        self.say(t, "why?")
        self.leave(t)

    def test_another_model_leaves_the_file_for_the_way_back(self):
        t = self.chat()
        self.say(t, "hello there")
        while not self.files():
            t.pump(0.01)
        other = os.path.join(MODELS, "llama-tiny.gguf")
        shown = self.say(t, "/model " + other, b"/help lists commands and keys")
        self.assertNotIn(BACK, shown)
        self.assertNotIn(NOT_USED, shown)
        self.say(t, "/model " + MODEL, BACK)
        self.leave(t)

    def test_nothing_is_written_unless_wanted(self):
        for option in ("--no-save",), ("--kv-space", "none"):
            t = self.chat(*option)
            self.say(t, "hello there")
            self.leave(t)
            self.assertEqual([], self.files())
        self.assertEqual(1, len(os.listdir(self.chats)))

    def test_files_go_with_their_chats(self):
        t = self.chat()
        self.say(t, "hello there")
        self.say(t, "/rename first", b'this chat is now "first"')
        self.say(t, "/clear", b"> ")
        self.say(t, "another one")
        self.say(t, "/rename second", b'this chat is now "second"')
        self.leave(t)
        self.assertEqual(["first.kv", "second.kv"], self.files())
        t = self.chat()
        self.say(t, "/rename first -> third", b'"first" is now "third"')
        self.say(t, "/open third", BACK)
        self.assertIn(b"tokens come back from disk", t.raw)
        self.leave(t)
        self.assertEqual(["second.kv", "third.kv"], self.files())
        t = self.chat("--kv-space", "none")  # which writes none, and those of before go along
        self.say(t, "/rename third -> fourth", b'"third" is now "fourth"')
        self.assertEqual(["fourth.kv", "second.kv"], self.files())
        self.say(t, "/rename fourth -> third", b'"fourth" is now "third"')
        self.leave(t)
        listed = json.loads(self.memwall("list", "--kv-files", "--json"))
        self.assertEqual(["third", "second"], [f["chat"] for f in listed])
        for f in listed:
            self.assertGreater(f["tokens"], 10)
            self.assertGreater(f["bytes"], 4096)
        table = self.memwall("list", "--kv-files").splitlines()
        self.assertRegex(table[0], r"^CHAT +TOKENS +SIZE +USED +MODEL$")
        self.assertRegex(table[1], r"^third +\d+ +[\d.]+ [KM]iB ")

    def receipts(self):
        with open(os.path.join(self.chats, os.listdir(self.chats)[0]), encoding="utf-8") as f:
            return [json.loads(line)["receipt"] for line in f if line.startswith('{"receipt"')]

    def test_a_template_prints_the_time_at_which_the_chat_began(self):
        model = chain(self.home, "clock", {"\n": "a", "a": "b"},
                      template="{{ strftime_now('%H %M %S') }}" + CHATML).path
        t = self.chat(model=model)
        self.say(t, "hello there")
        began = int(time.time())
        self.leave(t)
        while int(time.time()) == began:
            pass
        t = self.chat("--continue", model=model)
        self.wait(t, BACK, 0)
        self.say(t, "why?")
        self.say(t, "/clear", b"> ")
        self.leave(t)
        first, second = self.receipts()
        self.assertGreaterEqual(second["n_reused"], first["n_prompt"] + first["n_decoded"] - 1)

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_saving_and_resuming_stay_within_the_smallest_budget(self):
        ctx = ("-c", "4096", "--kv", "f32", "--blas", "never")
        least = json.loads(self.memwall("plan", MODEL, *ctx, "--json"))["smallest_budget_bytes"]
        for args in (), ("--continue",):
            t = self.chat(*ctx, "-b", str(least), *args)
            if args:
                self.wait(t, BACK, 0)
            self.say(t, "a wall of words " * 180)
            self.leave_after(t, least)
        self.assertGreater(os.stat(os.path.join(self.kv, self.files()[0])).st_size, 1 << 20)

    def leave_after(self, t, most):
        """Leave once the KV file of the first answer is written, and compare the peak so far."""
        while self.kv_tokens() == 0:
            t.pump(0.01)
        with open(f"/proc/{t.process.pid}/status", encoding="utf-8") as f:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) * 1024
        self.assertLessEqual(peak, most)
        self.leave(t)

    def test_a_kill_in_the_first_save_leaves_nothing_for_long(self):
        t = self.chat()
        self.say(t, "hello there")
        self.leave(t)
        path = os.path.join(self.kv, self.files()[0])
        for how in "list", "resume", "other chat":
            with open(path, "wb") as f:  # pieces, and no header yet
                f.truncate(8192)
                f.seek(8192)
                f.write(b"x" * 8192)
            os.utime(path, (1e6, 1e6))
            if how == "list":
                table = self.memwall("list", "--kv-files")
                self.assertIn("unfinished", table)
                self.assertNotIn("damaged", table)
            elif how == "resume":
                t = self.chat("--continue")
                self.wait(t, b"it was never completely written", 0)
                self.assertFalse(os.path.exists(path))
                self.leave(t)
            else:
                t = self.chat()
                self.say(t, "hello there")
                self.leave(t)
                self.assertFalse(os.path.exists(path))

    def kv_tokens(self):
        listed = json.loads(self.memwall("list", "--kv-files", "--json"))
        return listed[0]["tokens"] if listed else 0

    def test_a_beginning_is_read_by_the_next_chat(self):
        model = wide_chain(self.home, "slow")
        system = ("--system", "Know this: " + " ".join(f"{i} is {i * i}." for i in range(40)))
        t = self.chat("--no-save", *system, model=model)
        plain = self.answer(self.say(t, "hello there"))
        self.leave(t)
        self.assertEqual([], self.files())
        for shares in False, True:
            t = self.chat(*system, model=model)
            shown = self.say(t, "hello there")
            self.assertEqual(shares, SHARED in shown)
            self.assertEqual(plain.splitlines()[-1], self.answer(shown).splitlines()[-1])
            self.leave(t)
        listed = json.loads(self.memwall("list", "--kv-files", "--json"))
        beginnings = [f for f in listed if f["beginning"]]
        self.assertEqual((3, 1), (len(listed), len(beginnings)))
        self.assertEqual(0, beginnings[0]["tokens"] % 256)
        self.assertIn("(beginning ", self.memwall("list", "--kv-files"))
        for name in self.files():
            self.assertEqual(0o600, stat.S_IMODE(os.stat(os.path.join(self.kv, name)).st_mode))
        t = self.chat("--no-save", *system, model=model)  # it does not even read it
        self.assertNotIn(SHARED, self.say(t, "hello there"))
        self.leave(t)

    def test_the_space_is_limited(self):
        for i in range(3):
            t = self.chat("--kv-space", "1M")
            self.say(t, "hello there")
            self.leave(t)
        total = sum(f["bytes"] for f in json.loads(self.memwall("list", "--kv-files", "--json")))
        self.assertLessEqual(total, 1 << 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
