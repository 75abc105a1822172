#!/usr/bin/env python3
"""Texts, prompts and ids of any length need only the memory of short ones."""
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import (MEMWALL, MODELS, TIMEOUT_S, budget,  # noqa: E402
                     environment, memwall)

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
LLAMA = os.path.join(MODELS, "llama-tiny.gguf")
MIB = 1 << 20
LONG = 48 * MIB
ROOM = 8 * MIB  # allowed difference between a long and a short text

# A small process that starts memwall and writes its peak to a file.  The peak of a child starts
# at that of its parent, and this program has held a large text.
MEASURE = """
import os, resource, sys
status = os.spawnv(os.P_WAIT, sys.argv[2], sys.argv[2:])
with open(sys.argv[1], "w") as f:
    f.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.exit(status if status >= 0 else 128 - status)
"""

# By default the address sanitizer keeps 256 MiB of freed memory.
os.environ["ASAN_OPTIONS"] = ":".join(
    [os.environ.get("ASAN_OPTIONS", ""), "quarantine_size_mb=1",
     "thread_local_quarantine_size_kb=64"]).strip(":")


class LongText(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # the first run measures, and the others do not
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.measured = [sys.executable, "-c", MEASURE, self.peak_path(), MEMWALL]

    def peak_path(self):
        return os.path.join(self.folder, "peak")

    def peak(self):
        """Returns the peak of resident bytes of the last process that self.measured ran."""
        with open(self.peak_path(), encoding="ascii") as f:
            return int(f.read())

    def file(self, name, text, size):
        """Write text again and again, up to size bytes."""
        part = (text * (65536 // len(text) + 1))[:65536]
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            for at in range(0, size, 65536):
                f.write(part[:size - at])
        return path

    def run_it(self, *args, stdin=os.devnull):
        """Returns exit code, standard error and peak of resident memory."""
        with open(stdin, "rb") as f:
            r = subprocess.run([*self.measured, *args], env=environment(self.folder), stdin=f,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return r.returncode, r.stderr, self.peak()

    def test_a_prompt_that_cannot_fit_is_refused_before_it_is_in_memory(self):
        args = ("run", "-m", MODEL, "-n", "1", "-b", "200M", "--ctx", "256", "-q")
        code, said, short = self.run_it(*args, "hi")
        self.assertEqual((0, ""), (code, said))
        for text in "a", "many words and then some more ":
            code, said, peak = self.run_it(*args, stdin=self.file("prompt", text, LONG))
            self.assertEqual(1, code)
            self.assertRegex(said, r"\Amemwall: the prompt is longer than \d+ bytes.*--ctx\n\Z")
            self.assertLess(peak - short, ROOM)

    def test_a_prompt_of_too_many_tokens_is_refused(self):
        for size, ctx, tokens in ((300, "256", "more than 256 tokens"),
                                  (70000, "256", "more than 256 tokens"),
                                  (9, "1", "more than 1 token"), (9, "2", "more than 2 tokens")):
            code, said, _ = self.run_it("run", "-m", MODEL, "-b", "200M", "--ctx", ctx, "-q",
                                        stdin=self.file("prompt", "a", size))
            self.assertEqual((1, f"memwall: a prompt of {tokens} does not fit the context; "
                              "use a larger --ctx\n"), (code, said))

    def test_ids_beyond_the_context_are_not_kept(self):
        args = ("eval", MODEL, "--greedy", "1", "-b", "200M", "--ctx", "32")
        code, said, short = self.run_it(*args, "--ids", self.file("ids", "5 ", 20))
        self.assertEqual((0, ""), (code, said))
        for text, why in ("5 ", "the limit is 32"), (" ,", "no token ids"):
            code, said, peak = self.run_it(*args, "--ids", self.file("ids", text, LONG))
            self.assertEqual(1, code)
            self.assertIn(why, said)
            self.assertLess(peak - short, ROOM)

    def test_ids_beyond_the_budget_are_not_kept(self):
        path = self.file("ids", "5 ", LONG)
        code, said, peak = self.run_it("eval", MODEL, "--greedy", "1", "-b", budget(120), "--ids", path)
        self.assertEqual(1, code)
        self.assertRegex(said, r"too many ids; the limit is \d+")
        self.assertLess(peak, int(budget(120)[:-1]) * MIB)

    def test_a_text_is_evaluated_while_it_is_read(self):
        # The first window opens the recording.  No more of the text was read before.
        args = ("eval", MODEL, "-b", "200M", "--telemetry", "/nonexistent/x", "--text")
        _, said, short = self.run_it(*args, self.file("text", "some words ", 20000))
        self.assertIn("/nonexistent/x", said)
        for text in "some words ", "\u4e00\u4e8c\u3002":
            _, said, peak = self.run_it(*args, self.file("text", text, LONG))
            self.assertIn("/nonexistent/x", said)
            self.assertLess(peak - short, ROOM)

    def test_every_token_of_a_text_of_several_blocks_is_in_a_window(self):
        path = self.file("text", "the quick brown fox, 1234 and\n\n  more' words; ", 66001)
        ids = memwall("tokenize", "-m", LLAMA, "--ids", path).stdout.split()
        d = json.loads(memwall("eval", LLAMA, "--text", path, "--json", "--ctx", "128").stdout)
        self.assertEqual((len(ids) + 1) // 128 * 128, d["n_evaluated"])  # and a begin token

    def saved_chat(self, lines):
        """Make the only saved chat, with a header and these lines."""
        folder = os.path.join(self.folder, ".local", "share", "memwall", "chats")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "20260101-000000.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"memwall":"chat","version":1,"created":"2026-01-01T00:00:00Z",'
                    '"model":"tiny"}\n')
            f.writelines(lines)
        return path

    def chat(self, size, text="lorem ipsum " * 200):
        """Make a saved chat of about this many bytes."""
        return self.saved_chat(
            json.dumps({"role": role, "text": f"{i} {text}", **more}) + "\n"
            for i in range(max(size // (2 * len(text)), 1))
            for role, more in (("user", {}), ("assistant", {"done": "stop"})))

    def talk(self, *steps):
        """Run plain mode on a terminal: wait for a text, type a line, and so on.

        The probe of the machine takes half of the budget, which must be less than a long text."""
        master, slave = pty.openpty()
        p = subprocess.Popen([*self.measured, "-m", MODEL, "-b", budget(64), "--ctx", "256",
                              "-n", "2", "--temp", "0", "--plain", "--continue"],
                             stdin=slave, stdout=slave, stderr=slave,
                             env=environment(self.folder), start_new_session=True)
        os.close(slave)
        # The measuring process, and memwall, which has the terminal.
        limit = threading.Timer(TIMEOUT_S, os.killpg, (p.pid, signal.SIGKILL))
        limit.start()
        said = ""
        for wait, line in (*steps, (None, None)):
            at = len(said)
            while wait is None or wait not in said[at:]:
                try:
                    data = os.read(master, 65536)
                except OSError:  # it has ended
                    break
                said += data.decode("utf-8", "replace").replace("\r\n", "\n")
            if line is not None:
                os.write(master, line.encode() + b"\n")
        os.close(master)
        p.wait()
        limit.cancel()
        return p.returncode, said, self.peak()

    READY = "/help lists commands and keys"

    def test_a_long_chat_resumes_in_the_memory_of_a_short_one(self):
        self.chat(6000, "hi")
        _, _, short = self.talk((self.READY, "/quit"))
        path = self.chat(LONG // 2)
        with open(path, encoding="utf-8") as f:
            n = sum(1 for line in f) - 1  # without its head
        code, said, peak = self.talk((self.READY, "hello"), ("nothing was dropped", "n"),
                                     ("\n", "/quit"))
        self.assertEqual(0, code)
        self.assertIn(f"has {n} messages", said)
        self.assertIn("the context of 256 tokens is full", said)
        self.assertLess(peak - short, ROOM)
        with open(path, encoding="utf-8") as f:
            messages = [x for line in f if "text" in (x := json.loads(line))]
        self.assertEqual("hello", messages[n]["text"])

    def test_one_very_long_message_is_written_out_in_the_memory_of_a_short_one(self):
        self.chat(6000, "hi")
        out = os.path.join(self.folder, "out.json")
        _, _, short = self.talk((self.READY, f"/export {out}"), ("written to", "/quit"))
        path = self.chat(1, "hi")
        with open(path, "a", encoding="utf-8") as f:
            f.write('{"role":"user","text":"one"}\n{"role":"assistant","text":"begin"}\n')
            for i in range(LONG // 65536):
                f.write('{"role":"assistant","continues":true,"text":"' + "x" * 65536 + '"}\n')
        code, said, peak = self.talk((self.READY, f"/export! {out}"), ("written to", "/undo"),
                                     ("one", "/quit"))
        self.assertEqual(0, code, said)
        self.assertLess(peak - short, ROOM / 2)
        with open(out, encoding="utf-8") as f:
            n = sum(part.count("x") for part in iter(lambda: f.read(65536), ""))
        self.assertLess(n - LONG, 100)
        self.assertGreaterEqual(n, LONG)

    def test_queued_messages_that_cannot_fit_are_not_read(self):
        self.chat(6000, "hi")
        _, _, short = self.talk((self.READY, "/quit"))
        path = self.chat(1, "hi")
        with open(path, "a", encoding="utf-8") as f:
            for i in range(24):
                f.write('{"queued":"' + "x" * (2 * MIB - 64) + '"}\n')
        code, said, peak = self.talk((self.READY, "/quit"))
        self.assertEqual(0, code, said)
        self.assertIn("are not sent", said)
        self.assertLess(peak - short, ROOM)
        with open(path, encoding="utf-8") as f:
            self.assertIn('{"unqueued":24}\n', f.readlines()[-3:])

    def many(self, n):
        """Make a saved chat of n very short messages."""
        return self.saved_chat(f'{{"role":"user","text":"q{i}"}}\n'
                               f'{{"role":"assistant","text":"a{i}","done":"stop"}}\n'
                               for i in range(0, n, 2))

    def test_a_chat_of_many_messages_resumes_in_the_memory_of_one_of_few(self):
        self.many(100)
        self.talk((self.READY, "/quit"))  # the measurement would hide the memory of messages
        peaks = [self.use_many(n) for n in (1000, 300000)]
        self.assertLess(peaks[1] - peaks[0], ROOM / 4)

    def use_many(self, n):
        """Resume a chat of n messages, export it, and go back to its second one; returns the
        peak."""
        path = self.many(n)
        out = os.path.join(self.folder, "out.json")
        code, said, peak = self.talk((self.READY, f"/export! {out}"), ("written to", "hello"),
                                     ("nothing was dropped", "n"),
                                     ("\n", f"/rewind {n // 2}"), ("q2", "/quit"))
        self.assertEqual(0, code, said)
        self.assertIn(f"has {n} messages", said)
        i = 0
        with open(out, encoding="utf-8") as f:
            for line in f:
                if '"content"' in line:
                    said = line.split('"content": "')[1].split('"')[0]
                    self.assertEqual(f"{'qa'[i % 2]}{i - i % 2}", said)
                    i += 1
        self.assertEqual(n, i)
        with open(path, encoding="utf-8") as f:
            for line in f:
                pass
        self.assertEqual('{"rewind":2}\n', line)
        _, said, _ = self.talk((self.READY, "/quit"))
        self.assertIn("has 2 messages", said)
        return peak

    def test_a_long_chat_goes_on_when_the_oldest_turns_may_be_dropped(self):
        self.chat(2 * MIB, "some words")
        code, said, _ = self.talk((self.READY, "/shift on"), ("a notice names them", "hello"),
                                  ("no longer sees the oldest", "/quit"))
        self.assertEqual(0, code)
        self.assertNotIn("is full;", said)

    def test_going_back_in_a_long_chat_reads_it_again(self):
        path = self.chat(LONG // 4)
        n = LONG // 4 // (2 * 2400)
        code, said, _ = self.talk((self.READY, f"/rewind {n}"), ("lorem", "/quit"))
        self.assertEqual(0, code, said)
        with open(path, encoding="utf-8") as f:
            self.assertEqual('{"rewind":0}', f.read().splitlines()[-1])

    def test_files_that_cannot_fit_the_context_are_not_attached(self):
        self.chat(6000, "hi")
        big = self.file("big", "some words ", 200000)
        half = self.file("half", "some words ", 40000)
        code, said, _ = self.talk((self.READY, f"/file {big}"), ("tokens", f"/file {half}"),
                                  ("removes it", f"/file {half}"), ('half" has', "/quit"))
        self.assertEqual(0, code)
        self.assertRegex(said, r'big" has 195 KiB, about [\d,]+ tokens; it does not fit the '
                               r'context of 256 tokens')
        self.assertRegex(said, r'half" has 39.1 KiB, about [\d,]+ tokens; it does not fit')

    def test_lines_from_a_pipe_choose_nothing_for_a_message_that_does_not_fit(self):
        master, slave = pty.openpty()
        p = subprocess.Popen([MEMWALL, "-m", MODEL, "-b", budget(64), "--ctx", "256", "-n", "2",
                              "--temp", "0", "--plain"], env=environment(self.folder),
                             stdin=subprocess.PIPE, stdout=slave, stderr=slave)
        os.close(slave)
        p.stdin.write(b"word " * 600 + b"\n1\n")
        p.stdin.close()
        said = b""
        with contextlib.suppress(OSError):  # it has ended
            while data := os.read(master, 65536):
                said += data
        os.close(master)
        self.assertEqual(0, p.wait(), said)
        self.assertRegex(said.decode(), r"error: about [\d,]+ tokens do not fit: the context has "
                                        r"256 left; use a larger --ctx")
        self.assertNotIn(b"now: context", said)
        self.assertIn(b"2 tokens, token limit", said)  # "1" is the next message

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_a_long_text_becomes_tokens_in_the_memory_of_a_short_one(self):
        for name in MODEL, LLAMA:
            args = ("tokenize", "-m", name, "--ids")
            _, _, short = self.run_it(*args, self.file("short", "some words. ", 2000))
            code, said, peak = self.run_it(*args, self.file("text", "some words. ", LONG))
            self.assertEqual((0, ""), (code, said))
            self.assertLess(peak - short, ROOM)


if __name__ == "__main__":
    unittest.main(verbosity=2)
