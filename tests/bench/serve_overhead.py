#!/usr/bin/env python3
"""serve_overhead.py - the cost of the server, against `memwall run` with the same model.

    serve_overhead.py MODEL [--memory SIZE] [--tokens N] [--rounds N]

The time to the first token is that of a model without work, made for this: for `run`, first_ns of
its receipt, and for the server, from the first byte of a request to the first piece of its stream.
The rate is that of MODEL, in turn: tokens after the first one by the time between the first and
the last piece, as the reader of the output of `run --json` and a client of the server see it.  Medians, in milliseconds and tokens per
second.  A measurement for a machine without other work.
"""
import argparse
import http.client
import json
import os
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


def rates(args):
    """Returns lists of the rates of run and of the server."""
    options = ("--memory", args.memory) if args.memory else ()
    runs, served = [], []
    with Server("-m", args.model, *options) as s:
        c = http.client.HTTPConnection("127.0.0.1", s.port)
        ask(c, 2, "x")
        for i in range(args.rounds):
            prompt = f"{i} times around the world"
            runs.append((args.tokens - 1) / run(args.model, args.tokens, *options, prompt)[1])
            served.append((args.tokens - 1) / ask(c, args.tokens, prompt)[1])
        c.close()
    return runs, served


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--memory")
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        a, b = first_token(folder)
    print(f"first token: run {a:.2f} ms, server {b:.2f} ms, {b - a:+.2f} ms")
    runs, served = rates(args)
    a, b = statistics.median(runs), statistics.median(served)
    print(f"rate: run {a:.2f} tok/s ({min(runs):.2f} to {max(runs):.2f}), server {b:.2f} "
          f"({min(served):.2f} to {max(served):.2f}), {100 * (b / a - 1):+.1f} %")


if __name__ == "__main__":
    main()
