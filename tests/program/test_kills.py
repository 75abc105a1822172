#!/usr/bin/env python3
"""The whole program is killed at random moments while it opens, answers and saves a chat.  The chat
is whole afterwards, and its answers have the tokens of a session that never stopped.

    tests/program/test_kills.py [KILLS [SEED]]

`make check` kills it KILLS times; 500 take some minutes.
"""
import glob
import json
import os
import random
import re
import shutil
import statistics
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import SRCDIR, TIMEOUT_S, KvCase, budget  # noqa: E402
from terminal import Terminal  # noqa: E402

KILLS, SEED = 15, 1
GUIDE = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
# Keys and values of 1 MiB for some 200 tokens; each answer is cut, so the chat has its ids.
ARGUMENTS = ("-m", GUIDE, "--plain", "--color", "never", "--temp", "0", "-n", "12", "-c", "2048",
             "--kv", "f32", "--blas", "never", "--memory", budget(100))
TURNS = 12  # of a chat; then another one begins
QUESTIONS = [f"{i} grey stones lie near the old mill by the river, where {i + 2} tall trees grow "
             f"and nobody has lived for {i * i + 30} years. Say what you see there, and go on "
             "with the story as you like." for i in range(TURNS)]
ANSWERED = b"* /continue resumes the answer"
BACK = b"tokens of this chat were read from disk"
NOT_USED = b"keys and values of this chat are not used"
OPENED = b"/help lists commands and keys"
PROMPT = b"\n> "
PHASES = {"opening": .15, "answering": .15, "saving": .7}  # shares of the kills
KNOWN = re.compile(r"(\.local/share/memwall/chats/[^/]*\.jsonl|\.cache/memwall/kv/[^/]*\.kv|"
                   r"\.cache/memwall/kv/beginnings|\.cache/memwall/limits)$")
HEADER = struct.Struct("=QQQ")  # of a KV file: magic, checksum, number


class Chat:
    """memwall chat --plain, a line at a time."""

    def __init__(self, home, *args):
        self.terminal = Terminal("chat", *ARGUMENTS, *args, home=home, cols=300)
        self.process = self.terminal.process

    @property
    def shown(self):
        return self.terminal.raw

    def wait(self, word, at=0):
        end = time.monotonic() + TIMEOUT_S
        while word not in self.shown[at:]:
            if not self.terminal.pump(0.001) or time.monotonic() > end:
                raise AssertionError(f"no {word!r} in {self.shown!r}")

    def open(self):
        self.wait(OPENED)
        self.wait(PROMPT)

    def say(self, line, word=PROMPT):
        at = len(self.shown)
        self.terminal.send(line + "\r")
        self.wait(word, at)

    def kill_within(self, seconds):
        self.terminal.pump(seconds)
        self.end(self.process.kill)

    def end(self, how):
        how()
        while self.terminal.pump(TIMEOUT_S):
            pass
        self.process.wait(TIMEOUT_S)
        self.terminal.close()

    def leave(self):
        self.end(lambda: self.terminal.send("/quit\r"))


def messages(path):
    """[[role, text, ids or None]] of a saved chat.  A last line may have no end."""
    out = []
    with open(path, encoding="utf-8", errors="replace") as f:
        for text in f:
            try:
                line = json.loads(text)
            except ValueError:
                line = {"role": "assistant"} if '"role":"assistant"' in text else {}
            if "rewind" in line:
                del out[line["rewind"]:]
            elif line.get("role") in ("user", "assistant"):
                if line.get("continues"):
                    out.pop()
                out.append([line["role"], line.get("text"), line.get("ids")])
    return out


def kv_state(path):
    """(number, time): the number of the header in force, and when the file was changed."""
    try:
        with open(path, "rb") as f:
            heads = [HEADER.unpack(f.read(4096)[:HEADER.size]) for _ in range(2)]
        return max(number for _, _, number in heads), os.stat(path).st_mtime_ns
    except (OSError, struct.error):
        return 0, 0


class Kills(KvCase):
    def setUp(self):
        super().setUp()
        self.chats = os.path.join(self.home, ".local/share/memwall/chats")
        self.forget()
        self.n_known = 0      # turns that were reported as complete
        self.n_back = self.n_evaluated = 0
        self.when = {"before": 0, "while": 0, "after": 0}  # a KV file was written

    def forget(self):
        shutil.rmtree(self.chats, ignore_errors=True)
        shutil.rmtree(self.kv, ignore_errors=True)

    def chat_path(self):
        found = glob.glob(os.path.join(self.chats, "*.jsonl"))
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def kv_path(self):
        path = self.chat_path()
        return path and os.path.join(self.kv, os.path.basename(path)[:-6] + ".kv")

    def make_reference(self):
        """Returns the ids of each answer of a chat that nothing stops, and measures how long the
        phases of a turn take."""
        times = {phase: [] for phase in PHASES}
        for i in range(2):
            begun = time.monotonic()
            chat = Chat(self.home, *(("--continue",) if i > 0 else ()))
            chat.open()
            times["opening"].append(time.monotonic() - begun)
            if i > 0:
                break
            for question in QUESTIONS:
                number, begun = kv_state(self.kv_path() or "")[0], time.monotonic()
                chat.say(question, ANSWERED)
                answered = time.monotonic()
                while kv_state(self.kv_path())[0] == number:
                    self.assertTrue(chat.terminal.pump(0.001))
                times["answering"].append(answered - begun)
                times["saving"].append(time.monotonic() - answered)
            chat.leave()
        chat.leave()
        self.most_s = {phase: 1.5 * statistics.median(t) for phase, t in times.items()}
        ids = [m[2] for m in messages(self.chat_path())[1::2]]
        self.assertEqual(TURNS, sum(bool(x) for x in ids))
        self.forget()
        return ids

    def check_chat(self, reference):
        """Returns (complete turns, whether a turn is incomplete) of the chat that was killed."""
        path = self.chat_path()
        if path is None:
            self.assertEqual(0, self.n_known)
            return 0, False
        said = messages(path)
        n = 0
        while 2 * n + 1 < len(said) and said[2 * n + 1][2]:
            self.assertEqual(["user", QUESTIONS[n], None], said[2 * n])
            self.assertEqual(reference[n], said[2 * n + 1][2], f"turn {n}")
            n += 1
        self.assertGreaterEqual(n, self.n_known, said)
        self.assertLessEqual(len(said) - 2 * n, 2, said)
        return n, len(said) > 2 * n

    def check_files(self):
        """A kill may leave a temporary file, but the next writer removes it."""
        strays = []
        for folder, _, names in os.walk(self.home):
            strays += [os.path.relpath(os.path.join(folder, name), self.home) for name in names]
        strays = [s for s in strays if not KNOWN.match(s)]
        self.assertLessEqual(len(strays), 4, strays)

    def note_when(self, before):
        number, changed = kv_state(self.kv_path() or "")
        self.when["after" if number > before[0] else
                  "while" if changed > before[1] else "before"] += 1

    def start(self, n, is_cut):
        """Returns the program with the chat as the last kill left it, and whether it has keys and
        values."""
        has_kv = kv_state(self.kv_path() or "")[0] > 0
        chat = Chat(self.home, *(("--continue",) if n > 0 or is_cut else ()))
        return chat, has_kv

    def check_opened(self, chat, has_kv):
        """A file of which nothing was complete is reported, and no other one is."""
        self.n_back += BACK in chat.shown
        self.n_evaluated += BACK not in chat.shown
        if has_kv:
            self.assertNotIn(NOT_USED, chat.shown)
            self.assertIn(BACK, chat.shown)

    def one_kill(self, chance, reference):
        phase = chance.choices(list(PHASES), list(PHASES.values()))[0]
        after_s = self.most_s[phase] * chance.random()
        n, is_cut = self.check_chat(reference)
        if n == TURNS or (n == 0 and not is_cut):
            self.forget()
            n, is_cut = 0, False
        self.n_known = n
        chat, has_kv = self.start(n, is_cut)
        self.addCleanup(chat.process.kill)
        if phase != "opening":
            chat.open()
            if is_cut:
                chat.say("/undo")
            before = kv_state(self.kv_path() or "")
            if phase == "saving":
                chat.say(QUESTIONS[n], ANSWERED)
                self.n_known += 1
                self.check_opened(chat, has_kv)
            else:
                chat.say(QUESTIONS[n], b"\n")
        chat.kill_within(after_s)
        if phase == "saving":
            self.note_when(before)
        self.check_files()

    def test_a_killed_chat_is_whole(self):
        chance = random.Random(SEED)
        reference = self.make_reference()
        for _ in range(KILLS):
            self.one_kill(chance, reference)
        n, is_cut = self.check_chat(reference)
        chat, has_kv = self.start(n, is_cut)
        self.addCleanup(chat.process.kill)
        chat.open()
        if is_cut:
            chat.say("/undo")
        if n < TURNS:
            chat.say(QUESTIONS[n], ANSWERED)
            self.check_opened(chat, has_kv)
        chat.leave()
        self.check_chat(reference)
        print(f"{KILLS} kills: {self.when['before']} before a KV file was written, "
              f"{self.when['while']} while, {self.when['after']} after; of the chats that were "
              f"opened, {self.n_back} had keys and values, {self.n_evaluated} were evaluated",
              file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        KILLS, SEED = [*map(int, sys.argv[1:]), SEED][:2]
        del sys.argv[1:]
    unittest.main(verbosity=2)
