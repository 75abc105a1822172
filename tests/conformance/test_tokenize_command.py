#!/usr/bin/env python3
"""memwall tokenize: its output, and ids that lead back to their text."""
import json
import os
import subprocess
import tempfile
import unittest

SRCDIR = os.environ.get("MW_SRCDIR") or os.path.join(os.path.dirname(__file__), "..", "..")
PROGRAM = os.path.join(os.environ.get("MW_BUILDDIR", "."), "memwall")
GEMMA = os.path.join(SRCDIR, "tests", "data", "models", "gemma4-tiny-q4_0.gguf")
TEXT = "Why is the sky blue?\n<turn|> wörld \U0001f600\0\x1b[2J\n".encode()


def run(*args, text=b""):
    return subprocess.run([PROGRAM, "tokenize", *args], input=text, capture_output=True,
                          check=False)


class Tokenize(unittest.TestCase):
    def test_ids_lead_back_to_their_text(self):
        ids = run("-m", GEMMA, "--ids", text=TEXT)
        self.assertEqual(ids.returncode, 0, ids.stderr)
        self.assertRegex(ids.stdout, rb"^\d+( \d+)*\n$")
        back = run("-m", GEMMA, "--decode", text=ids.stdout)
        self.assertEqual(back.stdout, TEXT)

    def test_a_control_token_is_text_unless_requested(self):
        plain = run("-m", GEMMA, "--ids", text=b"<turn|>").stdout.split()
        special = run("-m", GEMMA, "--ids", "--special", text=b"<turn|>").stdout.split()
        self.assertGreater(len(plain), 1)
        self.assertEqual(len(special), 1)
        self.assertEqual(run("-m", GEMMA, "--decode", text=special[0]).stdout, b"")
        self.assertEqual(run("-m", GEMMA, "--decode", "--special", text=special[0]).stdout,
                         b"<turn|>")

    def test_json_has_the_same_ids_and_their_bytes(self):
        ids = run("-m", GEMMA, "--ids", "--special", text=TEXT).stdout.split()
        tokens = json.loads(run("-m", GEMMA, "--json", "--special", text=TEXT).stdout)["tokens"]
        self.assertEqual([t["id"] for t in tokens], [int(i) for i in ids])
        data = b"".join(bytes.fromhex(t["bytes"]) if "bytes" in t else t["text"].encode()
                        for t in tokens)
        self.assertEqual(data, TEXT)
        self.assertIn("control", [t["kind"] for t in tokens])

    def test_text_output_has_no_control_characters(self):
        out = run("-m", GEMMA, text=TEXT).stdout
        self.assertNotIn(b"\x1b", out)
        self.assertNotIn(b"\0", out)
        self.assertEqual(len(out.splitlines()),
                         len(run("-m", GEMMA, "--ids", text=TEXT).stdout.split()))

    def test_a_file_is_read_like_standard_input(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(TEXT)
            f.flush()
            self.assertEqual(run("-m", GEMMA, "--ids", f.name).stdout,
                             run("-m", GEMMA, "--ids", text=TEXT).stdout)

    def test_empty_input_gives_empty_output(self):
        self.assertEqual(run("-m", GEMMA, "--ids").stdout, b"\n")
        self.assertEqual(run("-m", GEMMA, "--decode").stdout, b"")
        self.assertEqual(run("-m", GEMMA).stdout, b"")
        self.assertEqual(run("-m", GEMMA, "--json").stdout, b'{"tokens":[]}\n')

    def test_mistakes_are_one_line_with_their_place(self):
        for args, text, want in (
                (("-m", GEMMA, "--decode"), b"1 2 x", b"standard input: at byte 4"),
                (("-m", GEMMA, "--decode"), b"1 99999999", b"99999999"),
                (("-m", GEMMA + ".none"), b"", b".none"),
                (("-m", GEMMA, "no-such-file"), b"", b"no-such-file")):
            with self.subTest(args=args, text=text):
                done = run(*args, text=text)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, b"")
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertIn(want, done.stderr)
        self.assertEqual(run("-m", GEMMA, "--decode", "--ids").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
