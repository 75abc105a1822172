#!/usr/bin/env python3
"""Measure the cost of the screen: the latency of keys, bytes written per token, and idle CPU.

    tests/bench/screen.py [--keys N] [--seconds S] [--idle S] [--size 160x50] MEMWALL MODEL
                          [option ...]

memwall runs on a pseudo-terminal of that size with a home of its own.  From the second token of
an answer on, the script counts the bytes that memwall writes in S seconds without keys;
--telemetry has the tokens of the same time.  Then it types N keys during the answer, one at a
time, and measures for each the time from write(2) to the read(2) that shows it.  A person sees
this time, scheduler included.  On a busy machine it measures the load of other programs; the
program's own count (--count-bytes), printed next to it, begins when it reads the key.  At the
end the answer is stopped, and the CPU time of memwall is read --idle seconds apart.

    tests/bench/screen.py build/memwall model.gguf -b 600M -t 2 --disk-rate 400M
"""
import argparse
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import tempfile
import termios
import time


class Screen:
    def __init__(self, argv, rows, cols, home):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for name in ("NO_COLOR", "COLORTERM", "TMUX", "STY", "LINES", "COLUMNS"):
                os.environ.pop(name, None)
            os.environ.update(HOME=home, TERM="xterm-256color", LC_ALL="C.UTF-8")
            os.execv(argv[0], argv)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def take(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return b""
        return os.read(self.fd, 65536)

    def wait(self, text, limit):
        seen, end = b"", time.monotonic() + limit
        while text not in seen:
            if time.monotonic() > end:
                raise SystemExit(f"{text!r} was not shown")
            seen += self.take(1)

    def send(self, text):
        os.write(self.fd, text)


def tokens(path):
    """Returns (t_ns, wall_ns) of each token recorded so far."""
    out = []
    with open(path) as f:
        for line in f:
            if line.startswith('{"event":"token"') and line.endswith("}\n"):
                event = json.loads(line)
                out.append((event["t_ns"], event["wall_ns"]))
    return out


def count_bytes(screen, seconds):
    start, total, biggest = time.monotonic_ns(), 0, 0
    while (now := time.monotonic_ns()) < start + seconds * 10**9:
        n = len(screen.take((start + seconds * 10**9 - now) / 1e9))
        total += n
        biggest = max(biggest, n)
    return total, start, time.monotonic_ns()


def key_times(screen, n):
    letters, late = "qxzjQXZJ", []
    for i in range(n):
        end = time.monotonic() + random.uniform(0.02, 0.25)
        while time.monotonic() < end:
            screen.take(max(0, end - time.monotonic()))
        key, seen = letters[i % len(letters)].encode(), b""
        begin = time.monotonic_ns()
        screen.send(key)
        while key not in seen:
            seen += screen.take(10)
        late.append((time.monotonic_ns() - begin) / 1e6)
        if i % 40 == 39:
            screen.send(b"\x15")  # an empty line
    return sorted(late)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rest(screen, seconds):
    """Read, and discard, what the program writes in this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        screen.take(max(0, end - time.monotonic()))


def idle_share(screen, seconds):
    screen.send(b"\x15\x1b")  # an empty line; stop the answer
    screen.wait(b"ready", 60)
    rest(screen, 5)  # the figures of the answer are drawn, and rates settle
    before, start = cpu_seconds(screen.pid), time.monotonic()
    rest(screen, seconds)
    return (cpu_seconds(screen.pid) - before) / (time.monotonic() - start)


def own_count(screen):
    """Leave the program.  Returns what it counted itself."""
    seen, end = b"", time.monotonic() + 30
    screen.send(b"/quit\r")
    try:
        while b"longest" not in seen and time.monotonic() < end:
            seen += screen.take(1)
    except OSError:  # the program has ended
        pass
    found = re.search(rb"frames \d+[^\r\n]*", seen)
    return found.group().decode() if found else "nothing"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=400)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--idle", type=int, default=20)
    parser.add_argument("--size", default="160x50")
    parser.add_argument("memwall")
    parser.add_argument("model")
    parser.add_argument("option", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    cols, rows = map(int, args.size.split("x"))
    home = tempfile.mkdtemp(prefix="memwall-bench-")
    record = os.path.join(home, "record.jsonl")
    screen = Screen([args.memwall, "chat", "-m", args.model, "--telemetry", record,
                     "--count-bytes"]
                    + args.option, rows, cols, home)
    try:
        screen.wait(b"ready", 300)
        screen.send(b"Tell me a long story.\r")
        screen.wait(b"answering", 300)
        while len(tokens(record)) < 2:  # the prompt is evaluated, and its figures are drawn
            screen.take(0.1)
        total, start, end = count_bytes(screen, args.seconds)
        late = key_times(screen, args.keys)
        done = tokens(record)
        counted = [wall for at, wall in done if start <= at <= end]
        typed = [wall for at, wall in done if at > end]
        print(f"bytes: {total} in {args.seconds} s, {len(counted)} tokens of "
              f"{sum(counted) / max(1, len(counted)) / 1e6:.0f} ms: "
              f"{total / max(1, len(counted)):.0f} a token")
        print(f"keys: {len(late)} during tokens of "
              f"{sum(typed) / max(1, len(typed)) / 1e6:.0f} ms: median "
              f"{late[len(late) // 2]:.2f} ms, 99 % {late[len(late) * 99 // 100]:.2f} ms, "
              f"longest {late[-1]:.2f} ms")
        print(f"idle: {idle_share(screen, args.idle) * 100:.2f} % of a CPU")
        print(f"counted by memwall: {own_count(screen)}")
    finally:
        os.kill(screen.pid, signal.SIGKILL)
        os.waitpid(screen.pid, 0)
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
