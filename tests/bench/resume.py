#!/usr/bin/env python3
"""Resuming a saved chat from its KV file against evaluating it again.

    tests/bench/resume.py MODEL [--tokens 1k,8k] [memwall options]

A chat is made with a message of about so many tokens, left, and resumed twice: with its KV file,
and without it.  Prints one line for each length: tokens, bytes of the file, seconds of both as the
program reports them, and what it predicted for the file.
"""
import argparse
import glob
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from terminal import Terminal  # noqa: E402

LOADED = re.compile(rb"([\d,]+) tokens of this chat were read from disk in ([\d.]+ \w+)")
WORDS = "the wall of memory is read row by row and each row is a little longer than that before "


class Chat:
    def __init__(self, model, home, *args):
        self.t = Terminal("chat", "-m", model, "--plain", "--color", "never", "--temp", "0",
                          "-n", "1", *args, home=home, cols=300)
        self.wait(b"/help lists commands and keys", 0)

    def wait(self, word, at):
        while not (word in self.t.raw[at:] and self.t.raw.endswith(b"\n> ")):
            if self.t.process.poll() is not None or not self.t.pump(0.01):
                raise SystemExit(self.t.raw.decode(errors="replace"))

    def say(self, line, word=b"\n* "):
        at = len(self.t.raw)
        self.t.send(line + "\r")
        self.wait(word, at)
        return self.t.raw[at:].decode(errors="replace")

    def leave(self):
        self.t.send("/quit\r")
        while self.t.pump(60) and self.t.process.poll() is None:
            pass
        self.t.process.wait()
        self.t.close()


def newest_receipt(home):
    """The figures of the last answer in the newest chat."""
    name = max(glob.glob(os.path.join(home, ".local/share/memwall/chats/*.jsonl")),
               key=os.path.getmtime)
    with open(name, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    return [x["receipt"] for x in lines if "receipt" in x][-1]


def measure(model, home, n, args):
    ctx = ("--ctx", str(n + 512), *args)
    text = os.path.join(home, "long.txt")
    with open(text, "w") as f:
        f.write(WORDS * (n // 18))
    c = Chat(model, home, *ctx)
    c.say(f"/attach {text}", b"> ")
    c.say("go on")
    c.leave()
    kv = glob.glob(os.path.join(home, ".cache/memwall/kv/*.kv"))
    n_bytes = sum(os.stat(f).st_blocks * 512 for f in kv)
    c = Chat(model, home, "--continue", *ctx)
    c.wait(b"were read from disk", 0)
    loaded = LOADED.search(c.t.raw)
    c.say("and then?")
    with_file = newest_receipt(home)
    c.leave()
    for f in kv:
        os.unlink(f)
    c = Chat(model, home, "--continue", *ctx)
    c.say("and after that?")
    without = newest_receipt(home)
    c.leave()
    print(f"{loaded.group(1).decode():>8} tokens  {n_bytes / 2**20:8.1f} MiB  "
          f"read in {loaded.group(2).decode():>8}  then first token in "
          f"{with_file['first_ns'] / 1e9:6.2f} s  evaluated again "
          f"{without['first_ns'] / 1e9:8.2f} s "
          f"({without['n_prompt']} tokens)")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("--tokens", default="1k,8k")
    o, args = p.parse_known_args()
    with tempfile.TemporaryDirectory(dir=".") as home:
        home = os.path.abspath(home)
        for n in o.tokens.split(","):
            measure(os.path.abspath(o.model), home, int(n.replace("k", "000")), args)


if __name__ == "__main__":
    main()
