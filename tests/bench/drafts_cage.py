#!/usr/bin/env python3
"""drafts_cage.py - prove the promise of the budget while a chat closes its drafter and opens it again.

    drafts_cage.py MEMWALL MODEL [--draft HOW] [--budget 64M] [--answers 40] [--tokens 100]
                   [--ctx 2048] [--disk-rate RATE]

A chat in plain mode answers questions inside a control group whose limit is the budget, without
swap.  HOW is what drafts: "self:q2_k", the file of a model, or that of a draft head.  A copy of such
a file is used whose scores are all the same, so that its drafts are wrong: the weights of the last
norm are set to zero.  The drafter loses, is closed in the middle of an answer, and weights are
pinned in its memory.  After a few hundred tokens an answer begins with it again, and it loses again.

A line shows how often it was closed and opened, the peak that the kernel charged, the budget, kills
and what of the model is in the page cache.  The exit status is 1 if a promise is broken, or if the
drafter was not closed, opened and closed again.

Needs only root and python3.
"""
import argparse
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cage import Cage, cached_bytes, drop_cache, parse_size  # noqa: E402
from gguf_edit import Gguf  # noqa: E402

CLOSED = "that made them was closed"
AGAIN = "drafts are tried again"
QUESTIONS = ("What is the memory wall?", "Why is the sky blue?", "How do I change the budget?",
             "What is the KV cache?", "Tell me a long story.")


def deaf_copy(path, folder):
    """A copy of a GGUF file whose scores are all the same."""
    g = Gguf(path)
    dims, kind, raw = g.tensors["output_norm.weight"]
    g.tensors["output_norm.weight"] = (dims, kind, bytes(len(raw)))
    return g.write(os.path.join(folder, "wrong-" + os.path.basename(path)))


def chat(command, limit, lines):
    """Plain mode reads from a pipe and prints to a terminal, in a control group.  Returns its exit
    status, what it printed, the peak and the kills."""
    cage, (parent, child) = Cage(limit), pty.openpty()
    try:
        p = subprocess.Popen(command, preexec_fn=cage.enter, stdin=subprocess.PIPE, stdout=child,
                             stderr=child)
        os.close(child)
        threading.Thread(target=lambda: (p.stdin.write(lines.encode()), p.stdin.close()),
                         daemon=True).start()
        shown = b""
        try:
            while part := os.read(parent, 65536):
                shown += part
        except OSError:  # the terminal is closed
            pass
        return p.wait(), shown.decode(errors="replace"), cage.peak(), cage.kills()
    finally:
        os.close(parent)
        cage.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("memwall")
    ap.add_argument("model")
    ap.add_argument("--draft", default="self:q2_k")
    ap.add_argument("--budget", default="64M")
    ap.add_argument("--answers", type=int, default=40)
    ap.add_argument("--tokens", type=int, default=100)
    ap.add_argument("--ctx", type=int, default=2048)
    ap.add_argument("--disk-rate")
    a = ap.parse_args()
    folder = tempfile.mkdtemp(prefix="memwall-drafts.", dir="/var/tmp")
    budget, broken = parse_size(a.budget), []
    try:
        draft = deaf_copy(a.draft, folder) if os.path.exists(a.draft) else a.draft
        for name in "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME":
            os.environ[name] = folder
        drop_cache(a.model)
        command = [os.path.abspath(a.memwall), "chat", "-m", a.model, "--plain", "--color", "never",
                   "--no-save", "--temp", "0", "-n", str(a.tokens), "-c", str(a.ctx), "-b",
                   str(budget), "--draft", draft]
        command += ["--disk-rate", a.disk_rate] if a.disk_rate else []
        asked = "".join(f"{QUESTIONS[i % len(QUESTIONS)]}\n/clear\n" for i in range(a.answers))
        status, said, peak, kills = chat(command, budget, asked)
        closed, again = said.count(CLOSED), said.count(AGAIN)
        cached = cached_bytes(a.model)
    finally:
        shutil.rmtree(folder)
    print(f"closed {closed} times, opened again {again} times; peak {peak / 2**20:.1f} of "
          f"{budget / 2**20:.1f} MiB, {kills} kills, {cached} bytes cached")
    if status != 0:
        broken.append(f"exit status {status}: {said[-500:]}")
    if kills or peak > budget:
        broken.append(f"{peak} bytes charged, {budget} allowed, {kills} kills")
    if cached:
        broken.append(f"{cached} bytes of the model in the page cache")
    if closed < 2 or again < 1:
        broken.append("the drafter was not closed, opened and closed again")
    for line in broken:
        print(f"broken: {line}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
