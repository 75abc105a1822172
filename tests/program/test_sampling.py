#!/usr/bin/env python3
"""Values of the sampler: tiny temperatures, huge logits, and seeds."""
import glob
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import F32, I32  # noqa: E402
from program import (HomeCase, MEMWALL, TIMEOUT_S, environment, memwall,  # noqa: E402
                     read_terminal)


class Candidates(HomeCase):
    """The most likely token is always a candidate, even where all differences are lost in
    rounding."""

    def model(self, scale=1.0, keys=None):
        m = chain(self.folder, "hey", spell("\n", "Hey", "<|im_end|>"), keys=keys)
        dims, kind, raw = m.tensors["output.weight"]
        values = struct.unpack("<%df" % (len(raw) // 4), raw)
        m.tensors["output.weight"] = dims, kind, struct.pack(
            "<%df" % len(values), *(scale * (v - 0.5) for v in values))
        return m.write(m.path)

    def answer(self, model, *args):
        r = memwall("run", "-m", model, "-q", "--seed", "1", *args, "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        return r.stdout.strip()

    def test_tiny_temperatures_are_greedy(self):
        model = self.model()
        for args in (("1e-8",), ("1e-8", "--top-p", "1"), ("1e-8", "--top-k", "5"),
                     ("1e-45",), ("1e-60",), ("1e-9", "--min-p", "1", "--top-p", "0")):
            with self.subTest(args=args):
                self.assertEqual("Hey", self.answer(model, "--temp", *args))

    def test_huge_logits_have_a_candidate(self):
        for scale in 5e8, 1e12, 1e30, 3e36:
            model = self.model(scale)
            for args in ((), ("--temp", "1"), ("--temp", "100"),
                         ("--temp", "1", "--repeat-penalty", "0.01"),
                         ("--temp", "1", "--repeat-penalty", "100")):
                with self.subTest(scale=scale, args=args):
                    self.assertEqual("Hey", self.answer(model, *args))

    def test_values_of_the_file_are_taken_alike(self):
        model = self.model(1e12, {"general.sampling.temp": (F32, 1e-9),
                                  "general.sampling.top_p": (F32, 1e-30),
                                  "general.sampling.min_p": (F32, 1.0),
                                  "general.sampling.top_k": (I32, 3),
                                  "general.sampling.penalty_repeat": (F32, 100.0)})
        self.assertEqual("Hey", self.answer(model))


class Seeds(HomeCase):
    """Every number is a seed; a random one has another name."""

    def answers(self, *args, config=None):
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"))
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        m.write(m.path)
        return {memwall("run", "-m", m.path, "-q", "--temp", "1", "--top-k", "0", "--top-p", "1",
                        "--min-p", "0", "-n", "30", *args, "hi", text=False, stdin=b"",
                        config=config).stdout for _ in range(3)}

    def test_every_number_gives_the_same_answer_each_time(self):
        seen = set()
        for seed in "0", "00", "1", "18446744073709551615":
            for answers in (self.answers("--seed", seed),
                            self.answers(config=f"seed = {seed}\n")):
                self.assertEqual(1, len(answers), seed)
                seen |= answers
        self.assertEqual(3, len(seen))

    def test_random_gives_other_answers(self):
        self.assertEqual(3, len(self.answers()))
        self.assertEqual(3, len(self.answers("--seed", "random", config="seed = 0\n")))
        self.assertEqual(3, len(self.answers(config="seed = random\n")))

    def chat(self, model, *lines, args=()):
        """The answers of a chat, from its file, as they came."""
        main, side = pty.openpty()
        p = subprocess.Popen([MEMWALL, "chat", "--plain", "-m", model, "--temp", "1", "-n", "20",
                              "-b", "256M", "--seed", "3", *args],
                             stdin=subprocess.PIPE, stdout=side, stderr=side,
                             env=environment(self.folder))
        os.close(side)
        p.stdin.write("".join(line + "\n" for line in lines).encode())
        p.stdin.close()
        shown = read_terminal(main)
        self.assertEqual(0, p.wait(TIMEOUT_S), shown)
        name, = glob.glob(self.path(".local/share/memwall/chats/*.jsonl"))
        with open(name, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        return [x["text"] for x in lines if x.get("role") == "assistant"]

    def test_a_chat_that_is_opened_again_goes_on_with_the_next_answer(self):
        """/retry makes the answer that no earlier one was, also of a shown one that is not the
        last."""
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"))
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        m.write(m.path)
        at_once = self.chat(m.path, "hi", "/retry", "/retry", "so")
        self.assertEqual(4, len(set(at_once)))
        shutil.rmtree(self.path(".local/share/memwall/chats"))
        self.chat(m.path, "hi", "/retry", "/answer back")
        again = self.chat(m.path, "/retry", "so", args=("--continue",))
        self.assertEqual(at_once[0], again[-3])  # written again, to be shown
        self.assertEqual(at_once[2:], again[-2:])

    def test_other_words_are_refused(self):
        for word in "-1", "none", "x", "":
            r = memwall("run", "--seed", word, "hi")
            self.assertEqual(2, r.returncode)
            self.assertIn(f'"{word}" is not a whole number or random', r.stderr)
        r = memwall("run", "--seed", "18446744073709551616", "hi")
        self.assertEqual(2, r.returncode)
        self.assertIn("is not a whole number from 0 to 18446744073709551615, or random", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
