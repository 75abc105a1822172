#!/usr/bin/env python3
"""Draw pictures of the real screen: memwall in tmux, driven as a person would.

    share/pictures/record.py MEMWALL [screen] [session] [drafts] [wall] [picker] [sizes] [doctor]
                             [plan] [sweep] [report]
    share/pictures/record.py MEMWALL experts|ladder|pages RECORDING
    share/pictures/record.py MEMWALL beside MODEL BUDGET
    share/pictures/record.py MEMWALL review FOLDER [MODEL [OPTION...]]

Writes screen.svg (one moment), session.svg (a film), drafts.svg (the tour with drafts), wall.svg
(a film of the wall and its cursor), picker.svg (the start without a model), the
screen at five sizes in a dark and a light theme, doctor.svg, plan.svg and sweep.svg (output of
these commands), sweep-chart.svg (what sweep -o writes), and report.png and report-dark.png (the
page in Chromium) beside this file, or only those that are named; README.md shows them.  Every
figure in them was measured while they were made, so they differ from run to run.
"experts", "ladder" and "pages" draw experts.svg, ladder.svg and pages.svg from a recording
(--telemetry) of a model that is too large to be run each time: a mixture of experts, a budget of
auto beside another program (tests/bench/waves.py --keep), and a context that is on the disk.
"beside" draws beside.svg, memwall demo with a large model.
"review" draws the screen at many sizes and in several themes into FOLDER, to be looked at and
thrown away; rsvg-convert, if there is one, makes PNG files of them.  The chat is with the guide,
or with MODEL and OPTIONs such as --memory.  Needs tmux 3.2 or newer.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from terminal_svg import film

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
GUIDE = os.path.join(TOP, "share/models/memwall-guide.gguf")
sys.path.insert(0, os.path.join(TOP, "tests/lib"))
SGR = re.compile(r"\x1b\[[0-9;:]*m")
SAMPLE_S = 0.2


class Terminal:
    """memwall in a tmux server of its own, with a home of its own."""

    def __init__(self, argv, cols, rows, sample_s=SAMPLE_S, fill=None):
        """fill(home, env) makes files in the home; it is also the current folder then."""
        self.sample_s = sample_s
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.socket = os.path.join(self.home.name, "tmux")
        self.cols, self.rows = cols, rows
        self.frames = []
        config = os.path.join(self.home.name, "tmux.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write('set -g default-terminal "tmux-256color"\nset -g status off\n'
                    'set -ga terminal-overrides ",*:RGB"\nset -g escape-time 0\n')
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "NO_COLOR", "XDG_"))}
        env.update(HOME=self.home.name, LC_ALL="C.UTF-8", COLORTERM="truecolor")
        if fill is not None:
            fill(self.home.name, env)
        subprocess.run(["tmux", "-S", self.socket, "-f", config, "new-session", "-d", "-x",
                        str(cols), "-y", str(rows), *argv], check=True, env=env,
                       cwd=self.home.name if fill is not None else None)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False)
        self.home.cleanup()

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def sample(self):
        """Add the screen to the film; an unchanged one stays longer."""
        time.sleep(self.sample_s)
        lines = self.tmux("capture-pane", "-p", "-e", "-N").split("\n")[:self.rows]
        if self.frames and self.frames[-1][1] == lines:
            self.frames[-1][0] += self.sample_s
        else:
            self.frames.append([self.sample_s, lines])
        return SGR.sub("", "\n".join(lines))

    def wait(self, pattern, limit=60):
        end = time.monotonic() + limit
        while not re.search(pattern, self.sample()):
            if time.monotonic() > end:
                raise SystemExit(f"{pattern!r} was not shown:\n" + self.sample())

    def stay(self, seconds):
        for _ in range(round(seconds / self.sample_s)):
            self.sample()

    def type(self, text):
        for word in re.findall(r"\S+ *", text):
            self.tmux("send-keys", "-l", word)
            self.sample()

    def key(self, name):
        self.tmux("send-keys", name)
        self.sample()


def write(path, frames, cols, rows, title, kind="dark"):
    with open(path, "w", encoding="utf-8") as f:
        f.write(film(frames, cols, rows, title, kind))
    print(f"{path}: {len(frames)} frames, {os.path.getsize(path)} bytes")


def ask(t, question):
    """Ask, and wait until the answer is over."""
    t.type(question)
    t.key("Enter")
    t.stay(1)
    t.wait("(?m)^ ready ")


def beyond_memory(memwall):
    """Options for a budget that does not hold all of the guide, and a disk of 20 MB/s.  The
    smallest budget depends on the size of the program."""
    plan = subprocess.run([memwall, "plan", GUIDE, "--json", "-b", "1G"], check=True, text=True,
                          capture_output=True).stdout
    mib = (json.loads(plan)["smallest_budget_bytes"] >> 20) + 2
    return ["--memory", f"{mib}M", "--disk-rate", "20M"]


def screen(memwall):
    """The conversation and the dashboard after two answers, on a disk of 20 MB/s."""
    t = Terminal([memwall, *beyond_memory(memwall)], 132, 42)
    try:
        t.wait("tokens a second")
        ask(t, "Why is decoding slow?")
        ask(t, "What does the budget do?")
        t.stay(1)
        write(os.path.join(HERE, "screen.svg"), t.frames[-1:], t.cols, t.rows,
              "memwall: the conversation and the dashboard")
    finally:
        t.close()


def session(memwall):
    """The tour, and a question of one's own."""
    t = Terminal([memwall, "demo"], 104, 27, 0.7)
    try:
        t.wait("That was the tour", 180)
        t.stay(3)
        ask(t, "What is a KV cache?")
        t.stay(3)
        write(os.path.join(HERE, "session.svg"), t.frames, t.cols, t.rows, "memwall demo: a tour")
    finally:
        t.close()


def drafts(memwall):
    """The tour where the guide's assistant has drafted an answer."""
    t = Terminal([memwall, "demo"], 132, 42)
    try:
        t.wait("measured: .* tokens a pass", 180)
        t.stay(0.5)
        write(os.path.join(HERE, "drafts.svg"), t.frames[-1:], t.cols, t.rows,
              "memwall demo: several tokens for each pass")
    finally:
        t.close()


def wall(memwall):
    """From a small budget along the wall to one that holds the guide."""
    t = Terminal([memwall, *beyond_memory(memwall)], 132, 42, 0.5)
    try:
        t.wait("tokens a second")
        ask(t, "Why is decoding slow?")
        t.frames = []
        t.key("Tab")
        t.key("w")
        t.stay(1)
        t.key("c")  # the context across, and back
        t.stay(1.5)
        t.key("c")
        for _ in range(12):
            t.key("Right")
        t.stay(2)
        t.key("Enter")  # proposes the budget at the cursor
        t.stay(2.5)
        t.key("Enter")
        t.stay(2)
        ask(t, "What does the budget do?")
        t.stay(3)
        write(os.path.join(HERE, "wall.svg"), t.frames, t.cols, t.rows,
              "memwall: along the wall to another budget")
    finally:
        t.close()


def beside(memwall, model, budget):
    """memwall and mapped pages with the same memory, at the end of both."""
    t = Terminal([memwall, "demo", "-m", os.path.abspath(model), "--memory", budget], 100, 18)
    try:
        t.wait("times as fast", 600)
        t.stay(1)
        write(os.path.join(HERE, "beside.svg"), t.frames[-1:], t.cols, t.rows,
              "memwall demo with a model: beside mapped pages")
    finally:
        t.close()


def copy_to(path, source=GUIDE):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copyfile(source, path)


def fill_stores(home, memwall, env):
    """A few small models, each where another program keeps its own; one was used before."""
    tiny = os.path.join(TOP, "tests/data/models")
    for name in sorted(os.listdir(tiny)):
        if name.endswith(".gguf"):
            copy_to(os.path.join(home, name), os.path.join(tiny, name))
    hub = os.path.join(home, ".cache/huggingface/hub/models--memwall--guide")
    commit = hashlib.sha1(b"guide").hexdigest()
    copy_to(os.path.join(hub, "snapshots", commit, "memwall-guide-Q8_0.gguf"))
    os.makedirs(os.path.join(hub, "refs"))
    with open(os.path.join(hub, "refs/main"), "w", encoding="utf-8") as f:
        f.write(commit)
    with open(GUIDE, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    ollama = os.path.join(home, ".ollama/models")
    copy_to(os.path.join(ollama, "blobs", "sha256-" + digest))
    manifest = os.path.join(ollama, "manifests/registry.ollama.ai/library/guide/latest")
    os.makedirs(os.path.dirname(manifest))
    with open(manifest, "w", encoding="utf-8") as f:
        json.dump({"layers": [{"mediaType": "application/vnd.ollama.image.model",
                               "digest": "sha256:" + digest,
                               "size": os.path.getsize(GUIDE)}]}, f)
    copy_to(os.path.join(home, ".lmstudio/models/memwall/guide/memwall-guide.gguf"))
    copy_to(os.path.join(home, ".cache/llama.cpp/memwall_guide.gguf"))
    used = os.path.join(home, ".lmstudio/models/memwall/guide/memwall-guide.gguf")
    for args in ["plan", used], ["run", "-q", "-m", used, "-n", "8", "hello"]:
        subprocess.run([memwall, *args], check=True, env=env, cwd=home,
                       stdout=subprocess.DEVNULL)


def picker(memwall):
    """The start without a model: those of all stores of this machine."""
    t = Terminal([memwall, "chat"], 120, 26,
                 fill=lambda home, env: fill_stores(home, memwall, env))
    try:
        t.wait("type a part of a name")
        t.stay(4)  # the models are described, and the machine is measured
        write(os.path.join(HERE, "picker.svg"), t.frames[-1:], t.cols, t.rows,
              "memwall without a model: the models of this machine")
    finally:
        t.close()


def sizes(memwall):
    """The screen after an answer, at five sizes in a dark and a light theme."""
    for theme, kind in THEMES[:2]:
        for cols, rows in SIZES:
            t = Terminal([memwall, *beyond_memory(memwall), "--theme", theme], cols, rows)
            try:
                t.wait("(?m)^.?> ")
                t.stay(2)
                t.type("Why is decoding slow?")
                t.key("Enter")
                t.wait("\N{BLACK DOWN-POINTING SMALL TRIANGLE} [0-9]+ tokens")
                t.stay(1)
                write(os.path.join(HERE, f"{theme}-{cols}x{rows}.svg"), t.frames[-1:], cols, rows,
                      f"memwall at {cols}x{rows}, {theme}", kind)
            finally:
                t.close()


SIZES = (40, 12), (80, 24), (100, 30), (160, 50), (250, 70)
THEMES = ("dark", "dark"), ("light", "light"), ("gruvbox-dark", "dark"), \
    ("catppuccin-latte", "light")


def picture(t, folder, name, kind):
    """The screen as it is now."""
    path = os.path.join(folder, name + ".svg")
    t.sample()
    write(path, t.frames[-1:], t.cols, t.rows, f"memwall: {name}", kind)
    if shutil.which("rsvg-convert"):
        subprocess.run(["rsvg-convert", "-o", path[:-3] + "png", path], check=True)


def output(memwall, name, args, rows, last, shown=None):
    """Draw the output of a command, up to a line that matches `last`."""
    command = f"memwall {shown or args}"
    t = Terminal(["sh", "-c", f'echo "$ {command}"; {memwall} {args}; read x'], 98, rows)
    try:
        t.wait(last, 180)
        t.stay(1)
        seconds, lines = t.frames[-1]
        while not SGR.sub("", lines[-1]).strip():
            lines = lines[:-1]
        write(os.path.join(HERE, f"{name}.svg"), [[seconds, lines]], t.cols, len(lines), command)
    finally:
        t.close()


def doctor(memwall):
    output(memwall, "doctor", "doctor Llama-3.1-8B:Q4_K --memory 4G", 94, "(?m)^advice$")


def plan(memwall):
    output(memwall, "plan", "plan Llama-3.1-8B:Q4_K --memory 6G", 58, "(?m)^KV in q4_0")


def replayed(memwall, recording, name, title, shown, cols, stays_s=0):
    """The dashboard of a recording, when it shows this and some seconds more were replayed."""
    t = Terminal([memwall, "replay", "--speed", "100" if stays_s > 0 else "4",
                  os.path.abspath(recording)], cols, 52)
    try:
        t.wait(shown)
        t.stay(stays_s)
        write(os.path.join(HERE, f"{name}.svg"), t.frames[-1:], t.cols, t.rows, title)
    finally:
        t.close()


def experts(memwall, recording):
    """With the map of experts."""
    replayed(memwall, recording, "experts", "memwall: a cache of experts",
             "(?m)EXPERTS|[Ee]xperts", 104, 6)


def ladder(memwall, recording):
    """While the other program has its memory."""
    replayed(memwall, recording, "ladder", "memwall: memory that was given back",
             "given back .* [2-9][.0-9]* s ago", 150)


def pages(memwall, recording):
    """At the end, when most of the context is on the disk."""
    replayed(memwall, recording, "pages", "memwall: keys and values on the disk", "on disk", 104, 6)


def sweep(memwall):
    """The curve and table of a terminal, and the SVG of the same sweep, on a disk of 20 MB/s."""
    args = "--disk-rate 20M -p 16 -n 16 -r 2"
    output(memwall, "sweep", f"sweep {GUIDE} {args} --force -o {HERE}/sweep-chart.svg", 60,
           "(?m)^peak:", f"sweep memwall-guide.gguf {args} -o sweep-chart.svg")


def report(memwall):
    """The page in a browser, as PNG: its charts are SVG, but the rest is HTML."""
    from browser import Browser

    with tempfile.TemporaryDirectory() as home:
        page = os.path.join(home, "report.html")
        env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        subprocess.run([memwall, "report", GUIDE, "--memory", "60M", "-q",
                        "-o", page], check=True, env=dict(env, HOME=home))
        browser = Browser(os.path.join(home, "browser"), dict(env, HOME=home), 60)
        try:
            browser.open(page)
            for name, dark in ("report", False), ("report-dark", True):
                path = os.path.join(HERE, name + ".png")
                with open(path, "wb") as f:
                    f.write(browser.shot(1000, 1500, dark))
                print(f"{path}: {os.path.getsize(path)} bytes")
        finally:
            browser.close()


def review(memwall, folder, model, theme, kind, cols, rows):
    """Draw one size in one theme: before, during and after an answer, a sheet
    that was opened, the menu of commands, and all layers."""
    t = Terminal([memwall, "--theme", theme, "-n", "24", "--temp", "0", *model], cols, rows)

    def draw(moment):
        picture(t, folder, f"{theme}-{cols}x{rows}-{moment}", kind)

    try:
        t.wait("(?m)^.?> ", 120)
        t.stay(1)
        draw("1-start")
        t.key("Enter")
        t.type("Why is decoding slow?")
        t.key("Enter")
        t.stay(2)
        draw("2-answer")
        t.wait("\N{BLACK DOWN-POINTING SMALL TRIANGLE} [0-9]+ tokens", 300)
        t.stay(1)
        draw("3-after")
        for moment, line in (("4-memory", "/memory 2G"), ("5-help", "/help"),
                             ("6-themes", "/theme")):
            t.type(line)
            t.key("Enter")
            t.stay(0.6)
            draw(moment)
            t.key("Escape")
        t.type("/m")
        draw("7-menu")
        t.key("C-c")
        t.key("F2")
        t.stay(0.6)
        draw("8-dashboard")
    finally:
        t.close()


def review_all(memwall, folder, *model):
    os.makedirs(folder, exist_ok=True)
    model = ["-m", os.path.abspath(model[0]), *model[1:]] if model else beyond_memory(memwall)
    for theme, kind in THEMES:
        for cols, rows in SIZES:
            review(memwall, folder, model, theme, kind, cols, rows)


def main():
    pictures = {"screen": screen, "session": session, "drafts": drafts, "wall": wall,
                "picker": picker, "sizes": sizes,
                "doctor": doctor, "plan": plan, "sweep": sweep, "report": report}
    memwall = os.path.abspath(sys.argv[1])
    if sys.argv[2:3] == ["review"]:
        review_all(memwall, *sys.argv[3:])
        return
    for name, draw in ("experts", experts), ("ladder", ladder), ("pages", pages), \
            ("beside", beside):
        if sys.argv[2:3] == [name]:
            draw(memwall, *sys.argv[3:])
            return
    for name in sys.argv[2:] or pictures:
        pictures[name](memwall)


if __name__ == "__main__":
    main()
