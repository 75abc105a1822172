#!/usr/bin/env python3
"""serve_overhead.py - the cost of the server, against `memwall run` with the same model.

    serve_overhead.py [MODEL] [--memory SIZE] [--tokens N] [--rounds N] [--token-rounds N]

The time to the first token is that of a model without work, made for this: for `run`, first_ns of
its receipt, and for the server, from the first byte of a request to the first piece of its stream.

The same model shows the time that the server adds to a token, because tokens of a real model
differ by more than that: from the first piece to the end, as the reader of the output of
`run --json` and a client of the server see it, and processor time of the whole process.  Rounds of
both alternate.  The share of this in a token of MODEL, whose rate is measured in turn, too, is the
cost of the server there.

Medians, with intervals that have 95 % of the medians of samples that are drawn again.  A
measurement for a machine without other work.
"""
import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain  # noqa: E402
from program import MEMWALL, environment  # noqa: E402
from server import Server  # noqa: E402

FIRST_ROUNDS = 30
TOKENS = 1500


def interval(values):
    """Returns the median and the bounds of its interval."""
    r = random.Random(1)
    again = sorted(statistics.median(r.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), again[50], again[1949]


def run(model, n, *args):
    """Returns the receipt of `memwall run`, and the seconds from its first piece to the last."""
    with tempfile.TemporaryDirectory() as home:
        p = subprocess.Popen([MEMWALL, "run", "-m", model, "--json", "-q", "--raw", "--temp", "0",
                              "-n", str(n), "--telemetry", os.devnull, *args],
                             env=environment(home), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
        first = last = None
        for line in p.stdout:
            event = json.loads(line)
            if event["event"] == "text":
                last = time.perf_counter()
                first = first or last
        p.wait()
    return event, last - first


def ask(connection, n, prompt):
    """Returns the seconds to the first piece of an answer, and those from there to the last."""
    begin = time.perf_counter()
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": prompt, "max_tokens": n, "temperature": 0, "stream": True}))
    response = connection.getresponse()
    first = last = None
    for line in response:
        if line.startswith(b"data: {") and json.loads(line[6:])["choices"][0]["text"] != "":
            last = time.perf_counter()
            first = first or last
    return first - begin, last - first


def first_token(folder):
    """Returns the medians of run and of the server, in milliseconds."""
    model = chain(folder, "letters", {"a": "b", "b": "a"}).path
    runs = [run(model, 1, "xa")[0]["first_ns"] / 1e6 for _ in range(FIRST_ROUNDS)]
    with Server("-m", model) as s:
        c = http.client.HTTPConnection("127.0.0.1", s.port)
        # Another first token, so nothing of the prompt is reused.
        served = [ask(c, 1, "xyz"[i % 3] + "a")[0] * 1e3 for i in range(10 * FIRST_ROUNDS)]
        c.close()
    return statistics.median(runs), statistics.median(served)


def cpu_of(pid):
    """Returns the seconds of processor time of all threads of a process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def drain(stream):
    """Read to the end.  Returns the seconds from the first bytes."""
    first = None
    while stream.read1(65536):
        first = first or time.perf_counter()
    return time.perf_counter() - first


def run_long(model, n):
    """Returns seconds from the first piece to the end, and of processor time."""
    with tempfile.TemporaryDirectory() as home:
        p = subprocess.Popen([MEMWALL, "run", "-m", model, "--json", "-q", "--raw", "--temp", "0",
                              "-n", str(n), "xa"], env=environment(home),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        seconds = drain(p.stdout)
        used = os.wait4(p.pid, 0)[2]
        p.returncode = 0
        return seconds, used.ru_utime + used.ru_stime


def ask_long(s, c, n):
    before = cpu_of(s.process.pid)
    c.request("POST", "/v1/completions", json.dumps(
        {"prompt": "xa", "max_tokens": n, "temperature": 0, "stream": True}))
    seconds = drain(c.getresponse())
    return seconds, cpu_of(s.process.pid) - before


def token_cost(folder, rounds):
    """Returns lists of what the server adds to a token: seconds, and those of processor time."""
    model = chain(folder, "letters", {"a": "b", "b": "a"}).path
    run_s, run_cpu, served_s, served_cpu = [], [], [], []
    with Server("-m", model) as s:
        c = http.client.HTTPConnection("127.0.0.1", s.port)
        for _ in range(rounds):
            start = run_long(model, 1)[1]
            seconds, cpu = run_long(model, TOKENS)
            run_s.append(seconds / TOKENS)
            run_cpu.append((cpu - start) / TOKENS)
            start = ask_long(s, c, 1)[1]
            seconds, cpu = ask_long(s, c, TOKENS)
            served_s.append(seconds / TOKENS)
            served_cpu.append((cpu - start) / TOKENS)
        c.close()
    return run_s, served_s, run_cpu, served_cpu


def rates(args):
    """Returns lists of the rates of run and of the server."""
    options = ("--memory", args.memory) if args.memory else ()
    runs, served = [], []
    with Server("-m", args.model, *options) as s:
        c = http.client.HTTPConnection("127.0.0.1", s.port)
        ask(c, 2, "x")
        for i in range(args.rounds):
            prompt = f"{i} times around the world"
            for turn in (i, i + 1): # who is first changes
                if turn % 2 == 0:
                    runs.append((args.tokens - 1) /
                                run(args.model, args.tokens, *options, prompt)[1])
                else:
                    served.append((args.tokens - 1) / ask(c, args.tokens, prompt)[1])
        c.close()
    return runs, served


def say(name, runs, served, unit):
    a, b = statistics.median(runs), statistics.median(served)
    d, low, high = interval([y - x for x, y in zip(runs, served)])
    print(f"{name}: run {a * 1e6:.1f} us, server {b * 1e6:.1f} us, {unit} {d * 1e6:+.1f} us "
          f"({low * 1e6:+.1f} to {high * 1e6:+.1f})")
    return high


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model", nargs="?")
    p.add_argument("--memory")
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--rounds", type=int, default=20, help="of MODEL")
    p.add_argument("--token-rounds", type=int, default=40, help="of the model without work")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        a, b = first_token(folder)
        print(f"first token: run {a:.2f} ms, server {b:.2f} ms, {b - a:+.2f} ms")
        run_s, served_s, run_cpu, served_cpu = token_cost(folder, args.token_rounds)
    more = say("time of a token without work", run_s, served_s, "the server adds")
    more_cpu = say("processor time of it", run_cpu, served_cpu, "the server adds")
    if args.model is None:
        return
    runs, served = rates(args)
    ratio, low, high = interval([b / a for a, b in zip(runs, served)])
    a, b = statistics.median(runs), statistics.median(served)
    print(f"rate: run {a:.2f} tok/s ({min(runs):.2f} to {max(runs):.2f}), server {b:.2f} "
          f"({min(served):.2f} to {max(served):.2f}), {100 * (ratio - 1):+.1f} % "
          f"({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})")
    print(f"at most {100 * max(more, more_cpu) * a:.2f} % of a token of this model is the server's")


if __name__ == "__main__":
    main()
