#!/usr/bin/env python3
"""Time `memwall list` over many models, first without and then with kept descriptions.

    tests/bench/list_many.py [N]          500 models by default

The files have the header of the tiny Llama and no bytes of weights on disk.
"""
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
MEMWALL = os.path.join(os.environ.get("MW_BUILDDIR", os.path.join(TOP, "build")), "memwall")
HEADER_BYTES = 64 * 1024


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with open(os.path.join(TOP, "tests", "data", "models", "llama-tiny.gguf"), "rb") as f:
        model = f.read()
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, ".lmstudio", "models", "publisher", "many")
        os.makedirs(folder)
        for i in range(n):
            with open(os.path.join(folder, f"model-{i:04}-Q4_0.gguf"), "wb") as f:
                f.write(model[:HEADER_BYTES])
                f.truncate(len(model))
        for what in ("first", "again"):
            start = time.monotonic()
            r = subprocess.run([MEMWALL, "list"], env=dict(os.environ, HOME=home), cwd=home,
                               capture_output=True, text=True, check=True)
            print(f"{what}: {r.stdout.count('Q4_0')} models in "
                  f"{time.monotonic() - start:.3f} s")


if __name__ == "__main__":
    main()
