#!/usr/bin/env python3
"""waves.py - a budget of `auto` while another program takes and frees memory in waves.

    waves.py MEMWALL MODEL [--limit 3G] [--wave 1G] [--rate 1G] [--waves 4] [-n TOKENS] [--idle]
             [--keep FILE]

MEMWALL answers a question in a control group (v1 or v2) of the size --limit, without swap and
without --memory.  In the same group a second process takes --wave bytes, at most --rate bytes a
second, keeps them for some seconds, frees them, and begins again.  A line for each wave shows how
long its memory took, and how large memwall's own memory was before the wave, when it was complete,
and at its end.  The answer is compared with one that was made alone.  With --idle,
memwall serves, and answers a short question before the waves and after them: it gives memory back
while nobody asks anything.

The exit status is 1 if a promise is broken: a process was killed, a page was swapped out, the
answer differs, a wave waited for memory and took a second longer than its rate, or memory was given
back later than 200 ms after that was decided.  On a busy machine a wave is slow without a reason in
its memory: then the group's limit was never met.

Needs root and python3.
"""
import argparse
import ctypes
import http.client
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from cage import Cage, parse_size, read

QUESTION = "Why is the sky blue, and what makes it red in the evening?"
STEP = 8 << 20
POPULATE_WRITE = 23
KEPT_S = 6      # a wave stays
FREE_S = 14     # until the next one: longer than memwall waits before it takes memory again
LATE_MS = 200


def taker(o):
    """The second process: a line of JSON for each wave on standard output."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    for _ in range(o.waves):
        time.sleep(FREE_S)
        print(json.dumps({"begins": True}), flush=True)
        start, worked = time.monotonic(), time.process_time()
        area = libc.mmap(None, o.wave, mmap.PROT_READ | mmap.PROT_WRITE,
                         mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        for at in range(0, o.wave, STEP):
            # In one call where the kernel has it (Linux 5.14): faults for each page take seconds of
            # a processor in a virtual machine.
            if libc.madvise(area + at, min(STEP, o.wave - at), POPULATE_WRITE) != 0:
                libc.memset(area + at, 1, min(STEP, o.wave - at))
            ahead = (at + STEP) / o.rate - (time.monotonic() - start)
            if ahead > 0:
                time.sleep(ahead)
        print(json.dumps({"took": time.monotonic() - start, "worked": time.process_time() - worked}),
              flush=True)
        time.sleep(KEPT_S)
        print(json.dumps({"free": True}), flush=True)
        libc.munmap(area, o.wave)
    sys.exit(0)


def status(pid, key):
    try:
        lines = read(f"/proc/{pid}/status").splitlines()
    except OSError:  # it was killed
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def command_of(o, telemetry):
    return [o.memwall, "run", "-m", o.model, "-c", "4096", "-n", str(o.n), "--temp", "0", "--json",
            "-q", "--force", "--telemetry", telemetry, QUESTION]


def answer_of(process):
    out, err = process.communicate()
    if process.returncode != 0:
        return None, f"exit status {process.returncode}: {err.strip()[-300:]}"
    return json.loads(out.splitlines()[-1]), None


def start(o, command, cage):
    return subprocess.Popen(command, preexec_fn=cage.enter, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def end(*processes):
    for p in processes:
        if p is not None and p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()


def hits(cage):
    """Returns how often a process of the group met its limit, and had to wait for memory."""
    if cage.v1:
        return int(read(f"{cage.path}/memory.failcnt"))
    return int(re.search(r"^max (\d+)", read(f"{cage.path}/memory.events"), re.M)[1])


def run_waves(o, p, cage, broken):
    """Let another process take memory beside p.  Returns the bytes that were swapped out."""
    t = start(o, [sys.executable, os.path.abspath(__file__), "--taker", "--wave", str(o.wave),
                  "--rate", str(o.rate), "--waves", str(o.waves), o.memwall, o.model], cage)
    swapped = 0
    try:
        for n in range(o.waves):
            line = t.stdout.readline()
            before = status(p.pid, "RssAnon")  # it printed that it begins
            line = line and t.stdout.readline()
            if not line:
                broken.append(f"wave {n + 1}: the other process ended")
                break
            took, worked = (json.loads(line)[key] for key in ("took", "worked"))
            inside = status(p.pid, "RssAnon")
            t.stdout.readline()
            kept = status(p.pid, "RssAnon")
            swapped = max(swapped, status(p.pid, "VmSwap"), status(t.pid, "VmSwap"))
            print(f"wave {n + 1}: {o.wave / 2**20:.0f} MiB took {took:.2f} s, {worked:.2f} s of a "
                  f"processor; the limit was met {hits(cage)} times so far; memwall held "
                  f"{before / 2**20:.0f} MiB before it, {inside / 2**20:.0f} MiB when it was "
                  f"complete, {kept / 2**20:.0f} MiB at its end", flush=True)
            if hits(cage) > 0 and took > o.wave / o.rate + 1:
                broken.append(f"wave {n + 1} waited for memory, and took {took:.2f} s")
        t.wait()
    finally:
        end(t)
    return swapped


def alone(o, telemetry):
    cage = Cage(o.limit)
    try:
        done, why = answer_of(start(o, command_of(o, telemetry), cage))
    finally:
        cage.close()
    if done is None:
        sys.exit(f"alone: {why}")
    return done


def seconds_of(path):
    with open(path) as f:
        return [r for r in map(json.loads, f) if r.get("event") == "second"]


def answering(o, folder, broken):
    quiet = alone(o, os.path.join(folder, "alone.jsonl"))
    print(f"alone: {quiet['n_decoded']} tokens in {quiet['decode_ns'] / 1e9:.1f} s, budget "
          f"{quiet['budget_bytes'] / 2**20:.0f} MiB", flush=True)
    telemetry = o.keep or os.path.join(folder, "waves.jsonl")
    cage, p = Cage(o.limit), None
    try:
        p = start(o, command_of(o, telemetry), cage)
        swapped = run_waves(o, p, cage, broken)
        if p.poll() is not None:
            broken.append("the answer ended before the waves: use a larger -n")
        done, why = answer_of(p)
        kills = cage.kills()
    finally:
        end(p)
        cage.close()
    if done is None:
        broken.append(f"{why}; {kills} kills")
        return
    budgets = [s["budget"] for s in seconds_of(telemetry)]
    late = max(b["delay_ns"] for b in budgets) / 1e6
    print(f"in waves: {done['n_decoded']} tokens in {done['decode_ns'] / 1e9:.1f} s; signals "
          f"{sorted({b['signal'] for b in budgets if b['signal']})}, given back at most "
          f"{late:.0f} ms after it was decided; kills {kills}, swapped {swapped}; the answer is "
          f"{'the same' if done['text'] == quiet['text'] else 'ANOTHER'}")
    if kills or swapped:
        broken.append("a process was killed or swapped out")
    if late > LATE_MS:
        broken.append(f"memory was given back {late:.0f} ms late")
    if done["text"] != quiet["text"]:
        broken.append("another answer")


def ask(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", "/v1/chat/completions", json.dumps(
        {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0,
         "max_tokens": 16}), {"Content-Type": "application/json"})
    return json.loads(c.getresponse().read())["choices"][0]["message"]


def idle(o, broken):
    cage, p = Cage(o.limit), None
    try:
        p = start(o, [o.memwall, "serve", "-m", o.model, "-c", "4096", "--listen",
                      "127.0.0.1:0"], cage)
        port = None
        while port is None:
            line = p.stderr.readline()
            if not line:
                sys.exit("the server did not start")
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            port = found and int(found[1])
        before = ask(port)
        swapped = run_waves(o, p, cage, broken)
        same = ask(port) == before
        kills = cage.kills()
        print(f"idle: kills {kills}, swapped {swapped}; the answer is "
              f"{'the same' if same else 'ANOTHER'}")
        if kills or swapped or not same:
            broken.append("a process was killed or swapped out, or the answer is another")
    finally:
        end(p)
        cage.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("memwall")
    ap.add_argument("model")
    ap.add_argument("--limit", type=parse_size, default=parse_size("3G"))
    ap.add_argument("--wave", type=parse_size, default=parse_size("1G"))
    ap.add_argument("--rate", type=parse_size, default=parse_size("1G"))
    ap.add_argument("--waves", type=int, default=4)
    ap.add_argument("-n", type=int, default=400,
                    help="tokens of the answer: it must outlast the waves")
    ap.add_argument("--idle", action="store_true", help="while nobody asks anything")
    ap.add_argument("--keep", help="a file for the telemetry of the answer, for memwall replay")
    ap.add_argument("--taker", action="store_true", help=argparse.SUPPRESS)
    o = ap.parse_args()
    if o.taker:
        taker(o)
    broken = []
    if o.idle:
        idle(o, broken)
    else:
        with tempfile.TemporaryDirectory() as folder:
            answering(o, folder, broken)
    for line in broken:
        print(f"broken: {line}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
