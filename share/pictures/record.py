#!/usr/bin/env python3
"""Draw pictures of the real screen: memwall in tmux, driven as a person would.

    share/pictures/record.py MEMWALL [screen] [session]

Writes screen.svg (one moment) and session.svg (a film) beside this file, or only those that are
named.  Every figure in them was measured while they were made, so both differ from run to run.
Needs tmux 3.2 or newer.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

from terminal_svg import film

HERE = os.path.dirname(os.path.abspath(__file__))
SGR = re.compile(r"\x1b\[[0-9;:]*m")
SAMPLE_S = 0.2


class Terminal:
    """memwall in a tmux server of its own, with a home of its own."""

    def __init__(self, argv, cols, rows):
        self.home = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.home.name, "tmux")
        self.cols, self.rows = cols, rows
        self.frames = []
        config = os.path.join(self.home.name, "tmux.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write('set -g default-terminal "tmux-256color"\nset -g status off\n'
                    'set -ga terminal-overrides ",*:RGB"\nset -g escape-time 0\n')
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "NO_COLOR"))}
        env.update(HOME=self.home.name, LC_ALL="C.UTF-8", COLORTERM="truecolor")
        subprocess.run(["tmux", "-S", self.socket, "-f", config, "new-session", "-d", "-x",
                        str(cols), "-y", str(rows), *argv], check=True, env=env)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False)
        self.home.cleanup()

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def sample(self):
        """Add the screen to the film; an unchanged one stays longer."""
        time.sleep(SAMPLE_S)
        lines = self.tmux("capture-pane", "-p", "-e", "-N").split("\n")[:self.rows]
        if self.frames and self.frames[-1][1] == lines:
            self.frames[-1][0] += SAMPLE_S
        else:
            self.frames.append([SAMPLE_S, lines])
        return SGR.sub("", "\n".join(lines))

    def wait(self, pattern, limit=60):
        end = time.monotonic() + limit
        while not re.search(pattern, self.sample()):
            if time.monotonic() > end:
                raise SystemExit(f"{pattern!r} was not shown:\n" + self.sample())

    def stay(self, seconds):
        for _ in range(round(seconds / SAMPLE_S)):
            self.sample()

    def type(self, text):
        for char in text:
            self.tmux("send-keys", "-l", char)
            self.sample()

    def key(self, name):
        self.tmux("send-keys", name)
        self.sample()


def write(name, frames, cols, rows, title):
    path = os.path.join(HERE, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(film(frames, cols, rows, title))
    print(f"{path}: {len(frames)} frames, {os.path.getsize(path)} bytes")


def ask(t, question):
    """Ask, and wait until the answer is over."""
    t.type(question)
    t.key("Enter")
    t.stay(1)
    t.wait("(?m)^ ready ")


def screen(memwall):
    """The conversation and the dashboard after two answers, on a disk of 20 MB/s."""
    t = Terminal([memwall, "--memory", "54M", "--disk-rate", "20M"], 132, 42)
    try:
        t.wait("tokens a second")
        ask(t, "Why is decoding slow?")
        ask(t, "What does the budget do?")
        t.stay(1)
        write("screen.svg", t.frames[-1:], t.cols, t.rows,
              "memwall: the conversation and the dashboard")
    finally:
        t.close()


def session(memwall):
    """The tour, and a question of one's own."""
    t = Terminal([memwall, "demo"], 112, 34)
    try:
        t.wait("That was the tour", 180)
        t.stay(3)
        ask(t, "What is a KV cache?")
        t.stay(3)
        write("session.svg", t.frames, t.cols, t.rows, "memwall demo: a tour")
    finally:
        t.close()


def main():
    pictures = {"screen": screen, "session": session}
    memwall = os.path.abspath(sys.argv[1])
    for name in sys.argv[2:] or pictures:
        pictures[name](memwall)


if __name__ == "__main__":
    main()
