#!/usr/bin/env python3
"""Files as the world has them: each opens, or one line says what it is and what to do."""
import json
import os
import pty
import re
import subprocess
import sys
import termios
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import world  # noqa: E402
from program import MEMWALL, TIMEOUT_S, FolderCase, environment, read_terminal  # noqa: E402


class World(FolderCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("world"))
        os.mkdir(self.path("home"))
        self.files = world.make(self.path("world"))

    def memwall(self, *args, **how):
        r = subprocess.run([MEMWALL, *args], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=TIMEOUT_S, env=environment(self.path("home")),
                           cwd=self.path("world"), **how)
        r.out = r.stdout.decode(errors="replace")
        r.err = r.stderr.decode(errors="replace")
        return r

    def name_as_shown(self, f):
        """Control bytes and broken UTF-8 are shown as "?"."""
        text = os.fsencode(f.name).decode(errors="replace").replace("\ufffd", "?")
        return re.sub(r"[\x00-\x1f\x7f]", "?", text)

    def is_one_line(self, f, r):
        self.assertEqual(1, r.err.count("\n"), (f.name, r.err))
        if not f.name.startswith("gap-"):  # the missing file is named
            self.assertIn(self.name_as_shown(f), r.err)
        self.assertIn(f.says, r.err)
        self.assertNotRegex(r.err, r"[\x00-\x09\x0b-\x1f\x7f]")

    def test_inspect_plan_and_run(self):
        for f in self.files:
            # A model without a vocabulary is still a model; it only cannot be asked anything.
            has_shape = f.is_model or f.has_ids
            for args, works in ((["inspect"], has_shape and (f.is_model or None)),
                                (["plan"], has_shape),
                                (["run", "-n", "1", "-b", "256M", "-t", "1", "-p", "a"],
                                 f.is_model)):
                with self.subTest(name=f.name, command=args[0]):
                    r = self.memwall(args[0], "-m", f.path, *args[1:])
                    if works is None:  # described, and the tokenizer is named
                        self.assertIn("weights\n", r.out)
                        self.assertIn("  tokenizer     not read: ", r.out)
                    else:
                        self.assertIn(r.returncode, ((0, 3) if works else (1,)), r.err)
                    if works is False or r.returncode == 1:
                        self.is_one_line(f, r)
                    elif args == ["plan"] and f.has_ids:
                        self.assertIn("cannot read or write text", r.err)

    def test_a_relative_name_means_the_same(self):
        for f in self.files:
            if f.is_model:
                with self.subTest(name=f.name):
                    r = self.memwall("inspect", "-m", "./" + f.name)
                    self.assertEqual((0, ""), (r.returncode, r.err))

    def listed(self):
        r = self.memwall("list", "--json")
        self.assertEqual((0, ""), (r.returncode, r.err))
        return {os.path.join(self.path("world"), m["path"]): m for m in json.loads(r.out)
                if m["where"] == "folder"}

    def test_the_list_has_every_model_and_a_reason_for_the_rest(self):
        found = self.listed()
        for f in self.files:
            m = found.get(f.path)
            if m is None:
                continue
            with self.subTest(name=f.name):
                self.assertEqual(f.is_model, m["supported"], m["here"])
                self.assertNotIn("memwall runs", m["here"])
        names = {os.path.basename(p) for p in found}
        for name in ("plain.gguf", "with two blanks.gguf", "read-only.gguf", "UPPER-Q8_0.GGUF",
                     "other-names.gguf", "no-eps.gguf", "half.gguf", "empty.gguf", "lora.gguf",
                     "gap-00001-of-00003.gguf", "snapshot", "ümläut-模型-🦙.gguf"):
            self.assertIn(name, names)

    def test_rows_in_a_pipe_are_short_and_whole(self):
        lines = self.memwall("list").out.splitlines()
        self.assertGreater(len(lines), 15)
        for line in lines:
            at = line.find("unsupported: ")
            if at >= 0:
                self.assertLessEqual(len(line) - at, 120, line)
                self.assertNotIn("; ", line[at:])

    def on_terminal(self, *args, cols=80):
        """Returns the lines that the command shows on a terminal."""
        main, other = pty.openpty()
        termios.tcsetwinsize(other, (40, cols))
        shown = []
        reader = threading.Thread(target=lambda: shown.append(read_terminal(main)))
        reader.start()
        subprocess.run([MEMWALL, *args], stdin=subprocess.DEVNULL, stdout=other, stderr=other,
                       timeout=TIMEOUT_S, env=environment(self.path("home")),
                       cwd=self.path("world"))
        os.close(other)
        reader.join()
        return shown[0].decode(errors="replace").replace("\r\n", "\n").split("\n")

    def test_reasons_are_cut_between_words_at_80_columns(self):
        """Without the long name, which takes the room of the reasons."""
        whole = {m["here"] for m in self.listed().values()}
        for line in self.on_terminal("list", cols=80):
            at = line.find("unsupported: ")
            if at < 0:
                continue
            reason = line[at:].rstrip()
            begins = [w for w in whole if w.startswith(reason.removesuffix("..."))]
            self.assertTrue(begins, line)
            rest = begins[0][len(reason.removesuffix("...")):]
            self.assertTrue(rest == "" or rest[0] in " ;", (reason, begins[0]))
            self.assertGreater(len(reason), len("unsupported: ..."), line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
