"""memwall on a pseudo-terminal, and the screen that it draws.

    t = Terminal("-m", MODEL, home=folder)
    t.sees("ready")
    t.send("hello\r")
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from program import MEMWALL, environment

SEQUENCE = re.compile(r"\033(?:\[([<=>?!]?)([\d;:]*)([ -/]*)([@-~])"
                      r"|\][^\a\033]*(?:\a|\033\\)|[P_^][^\033]*\033\\"
                      r"|[()*+#]?[0-9A-Za-z=>78])")
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


class Screen:
    """As much of a terminal as the screen of memwall needs: cursor, erasing, scrolling."""

    def __init__(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.cells = [[" "] * cols for _ in range(rows)]
        self.y = self.x = 0
        self.top, self.bottom = 0, rows - 1
        self.rest = ""
        self.last = " "

    def text(self):
        return "\n".join("".join(r).rstrip() for r in self.cells)

    def line_down(self):
        if self.y == self.bottom:
            del self.cells[self.top]
            self.cells.insert(self.bottom, [" "] * self.cols)
        else:
            self.y = min(self.y + 1, self.rows - 1)

    def put(self, c):
        if self.x >= self.cols:
            self.x = 0
            self.line_down()
        self.cells[self.y][self.x] = c
        self.x += 1
        self.last = c

    def feed(self, data):
        s = self.rest + data
        i = 0
        while i < len(s):
            c = s[i]
            if c == "\033":
                m = SEQUENCE.match(s, i)
                if m is None:
                    if len(s) - i > 2000:
                        i += 1
                        continue
                    break
                if m.group(4):
                    self.csi(m.group(1), m.group(2), m.group(3), m.group(4))
                elif m.group(0) == "\033M":
                    if self.y == self.top:
                        del self.cells[self.bottom]
                        self.cells.insert(self.top, [" "] * self.cols)
                    else:
                        self.y = max(0, self.y - 1)
                elif m.group(0) == "\0337":
                    self.saved = self.y, self.x
                elif m.group(0) == "\0338":
                    self.y, self.x = getattr(self, "saved", (0, 0))
                i = m.end()
                continue
            i += 1
            if c == "\r":
                self.x = 0
            elif c == "\n":
                self.line_down()
            elif c == "\b":
                self.x = max(0, self.x - 1)
            elif c == "\t":
                self.x = min(self.cols - 1, self.x // 8 * 8 + 8)
            elif c >= " ":
                self.put(c)
        self.rest = s[i:]

    def csi(self, private, numbers, middle, final):
        if private or middle:
            if final in "hl" and numbers in ("1049", "47", "1047"):
                self.cells = [[" "] * self.cols for _ in range(self.rows)]
            return
        v = [int(x) if x else 0 for x in re.split("[;:]", numbers)]
        n = max(1, v[0])
        row = self.cells[self.y]
        if final == "A":
            self.y = max(0, self.y - n)
        elif final == "B":
            self.y = min(self.rows - 1, self.y + n)
        elif final == "C":
            self.x = min(self.cols - 1, self.x + n)
        elif final == "D":
            self.x = max(0, self.x - n)
        elif final == "G":
            self.x = min(self.cols, n) - 1
        elif final == "d":
            self.y = min(self.rows, n) - 1
        elif final in "Hf":
            self.y = min(self.rows, n) - 1
            self.x = min(self.cols, max(1, v[1] if len(v) > 1 else 1)) - 1
        elif final == "K":
            a, b = {0: (self.x, self.cols), 1: (0, self.x + 1), 2: (0, self.cols)}[v[0]]
            row[a:b] = [" "] * (min(b, self.cols) - a)
        elif final == "J":
            if v[0] == 0:
                row[self.x:] = [" "] * (self.cols - self.x)
                for y in range(self.y + 1, self.rows):
                    self.cells[y] = [" "] * self.cols
            elif v[0] == 1:
                for y in range(self.y):
                    self.cells[y] = [" "] * self.cols
            else:
                self.cells = [[" "] * self.cols for _ in range(self.rows)]
        elif final == "X":
            for x in range(self.x, min(self.cols, self.x + n)):
                row[x] = " "
        elif final == "P":
            del row[self.x:self.x + n]
            row += [" "] * (self.cols - len(row))
        elif final == "@":
            row[self.x:self.x] = [" "] * n
            del row[self.cols:]
        elif final == "b":
            for _ in range(n):
                self.put(self.last)
        elif final == "L":
            for _ in range(n):
                del self.cells[self.bottom]
                self.cells.insert(self.y, [" "] * self.cols)
        elif final == "M":
            for _ in range(n):
                del self.cells[self.y]
                self.cells.insert(self.bottom, [" "] * self.cols)
        elif final == "S":
            for _ in range(n):
                del self.cells[self.top]
                self.cells.insert(self.bottom, [" "] * self.cols)
        elif final == "T":
            for _ in range(n):
                del self.cells[self.bottom]
                self.cells.insert(self.top, [" "] * self.cols)
        elif final == "r":
            self.top = max(1, v[0]) - 1
            self.bottom = (v[1] if len(v) > 1 and v[1] else self.rows) - 1
            self.y = self.x = 0


class Terminal:
    """memwall on a pseudo-terminal.  home is its home folder.  before runs in the child, env is
    added to its environment."""

    def __init__(self, *args, home, rows=30, cols=100, env=None, before=None, cwd=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

        def child():
            # A shell may have started the tests in the background, with these ignored.
            for sig in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
                signal.signal(sig, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if before:
                before()
        self.process = subprocess.Popen([MEMWALL, *args], stdin=slave, stdout=slave, stderr=slave,
                                        preexec_fn=child, cwd=cwd or home,
                                        env=environment(home, **ENVIRONMENT | (env or {})))
        os.close(slave)
        self.raw, self.shown = b"", Screen(rows, cols)
        self.undecoded = b""

    def pump(self, seconds):
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                return True
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.raw += data
            if b"\033[6n" in data:
                self.send("\033[1;1R")
            if b"\033[c" in data or b"\033[0c" in data:
                self.send("\033[?62;c")
            data = self.undecoded + data
            text = data.decode("utf-8", "ignore")
            cut = 0
            for k in (1, 2, 3):
                if len(data) >= k and data[-k] >= 0xc0:
                    cut = k if {0xc0: 2, 0xe0: 3, 0xf0: 4}.get(
                        data[-k] & (0xf0 if data[-k] >= 0xe0 else 0xc0), 2) > k else 0
                    break
                if len(data) >= k and data[-k] < 0x80:
                    break
            if cut:
                text = data[:-cut].decode("utf-8", "ignore")
            self.undecoded = data[-cut:] if cut else b""
            self.shown.feed(text)

    def screen(self):
        return self.shown.text()

    def sees(self, *words, seconds=30):
        """Whether all words are on the screen within the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if all(w in self.screen() for w in words):
                return True
            if not self.pump(0.1):
                break
        return all(w in self.screen() for w in words)

    def loses(self, word, seconds=10):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if word not in self.screen():
                return True
            if not self.pump(0.1):
                break
        return word not in self.screen()

    def send(self, data, wait=0.0):
        try:
            os.write(self.master, data if isinstance(data, bytes) else data.encode())
        except OSError:
            pass
        if wait:
            self.pump(wait)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        try:
            os.close(self.master)
        except OSError:
            pass


class OddTerminal(Terminal):
    """A terminal that an earlier program left in one of these modes.  Ctrl and a letter are sent
    as a sequence until the mode is ended."""
    MODES = {"kitty": (re.compile(rb"\033\[(=0(;1)?|<\d*)u"), "\033[{};5u"),
             "modifyOtherKeys": (re.compile(rb"\033\[>4(;0)?m"), "\033[27;5;{}~"),
             "win32-input": (re.compile(rb"\033\[\?9001l"), "\033[67;46;{};1;8;1_")}

    def __init__(self, mode, *args, **more):
        self.end_of_mode, self.sequence = self.MODES[mode]
        super().__init__(*args, **more)

    def is_normal(self, seconds=0.0):
        """Whether the mode is ended within the time."""
        end = time.monotonic() + seconds
        while not self.end_of_mode.search(self.raw) and time.monotonic() < end:
            if not self.pump(0.05):
                break
        return self.end_of_mode.search(self.raw) is not None

    def control_c(self):
        self.send("\003" if self.is_normal() else self.sequence.format(
            3 if "_" in self.sequence else ord("c")))
