#!/usr/bin/env python3
"""The memory budget: what the plan counts, and what happens when it cannot be kept."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, memwall  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")


def plan(*args, **more):
    r = memwall("plan", MODEL, "--json", *args, **more)
    return json.loads(r.stdout)


def libraries():
    """Paths of the shared libraries that the loader takes, without running the program."""
    out = subprocess.run([MEMWALL], env=dict(os.environ, LD_TRACE_LOADED_OBJECTS="1"),
                         capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", out, re.M)


class FirstStart(unittest.TestCase):
    def test_the_plan_counts_the_files_of_the_program_and_its_libraries(self):
        paths = [os.path.realpath(MEMWALL), *libraries()]
        files = sum(-(-os.path.getsize(p) // PAGE) * PAGE for p in paths)
        self.assertGreater(len(paths), 3)
        self.assertGreaterEqual(plan("-b", "300M")["rows"]["program"], files + 4 * MIB)

    def test_a_library_that_is_not_used_is_not_loaded(self):
        self.assertFalse([p for p in libraries() if "blas" in p])

    def test_the_plan_is_the_same_every_time(self):
        self.assertEqual(plan("-b", "300M")["rows"], plan("-b", "300M")["rows"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
