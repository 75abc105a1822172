#!/usr/bin/env python3
"""experts_table.py - a mixture of experts in memory cages of several sizes.

    experts_table.py BUILD MODEL [--budgets 2G,4G,8G,12G] [--warm-up TOKENS] [-n TOKENS]
                     [--disk-rate RATE] [--peer "COMMAND ..."] [--peer-seconds S]
                     [--record FOLDER]

BUILD is the build folder with memwall and tests/bench/bench_limits.  For every budget the
program answers a question, with the same random seed each time, inside a control group (v1 or
v2) of that size without swap.  The first tokens fill the cache and are not counted.  The table
is about the others:

    cached      share of all experts that fit into the cache
    hits        share of the chosen experts that were in memory
    read        bytes that a token reads, experts and streamed dense weights
    of even     bytes of experts read, as a share of those that even use would read with
                as many experts in memory; at most 100 % is better than proportional
    disk        rate of the disk / bytes that a token reads.  The disk is measured just before
                and just after, in pieces and with as many in flight as experts are read
    compute     tokens / (time - stalls): what the engine computed without waiting
    of disk     tok/s as a share of that limit
    of limit    tok/s as a share of the smaller of both limits

With --disk-rate all reads are slowed down to that rate, so that the disk binds on a machine with
a fast disk.  --peer is a llama-bench command.  It runs in the same cages with "-m MODEL -p 0 -n 4
-r 1 -o json", maps the model, and is stopped after --peer-seconds: then the table has an upper
limit, 4 tokens in that time, its loading and warm-up included.  --record keeps a recording of
each run, for expert_sim.

The exit status is 1 if a run failed, was killed, or answered differently.  Needs root.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from cage import drop_cache, parse_size, run_caged, token_lines

PEER_TOKENS = 4  # in small cages each of them takes many seconds
QUESTION = "Why is the sky blue, and what makes it red in the evening?"
COLUMNS = ("budget", "cached", "hits", "read", "of even", "tok/s", "disk", "compute", "of disk", "of limit",
           "peak")


def call(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
    if r.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit status {r.returncode}: {r.stderr[-500:]}")
    return json.loads(r.stdout)


def plan_of(o, size):
    return call([o.memwall, "plan", o.model, "--memory", size, "--json"])


def disk_rate(o):
    rate = call([os.path.join(o.build, "tests/bench/bench_limits"), "--fetch", o.model, "1.5"])["fetch_bytes_s"]
    return min(rate, parse_size(o.disk_rate, 1000)) if o.disk_rate else rate


def run(o, size, recording):
    command = [o.memwall, "run", "-m", o.model, "--memory", size, "-n", str(o.warm_up + o.n), "--temp", "1",
               "--seed", "1", "--json", "--force", "--telemetry", recording, "-p", QUESTION]
    if o.disk_rate:
        command += ["--disk-rate", o.disk_rate]
    p, peak, kills = run_caged(command, parse_size(size))
    done = [json.loads(line) for line in p.stdout.splitlines() if '"event":"done"' in line]
    if p.returncode != 0 or kills or not done:
        sys.exit(f"{size}: {kills} kills, exit status {p.returncode}: {p.stderr[-500:]}")
    tokens = token_lines(recording)[o.warm_up:]
    if not tokens:
        sys.exit(f"{size}: the answer ended after {done[0]['n_decoded']} tokens, before the warm-up was over")
    return done[0]["text"], tokens, peak


def run_peer(o, size):
    drop_cache(o.model)
    try:
        p, _, kills = run_caged([*shlex.split(o.peer), "-m", o.model, "-p", "0", "-n", str(PEER_TOKENS), "-r",
                                 "1", "-o", "json"], parse_size(size), o.peer_seconds)
    except subprocess.TimeoutExpired:
        return f"< {PEER_TOKENS / o.peer_seconds:.2f} (stopped after {o.peer_seconds} s)"
    finally:
        drop_cache(o.model)
    if kills:
        return "killed"
    try:
        return f"{json.loads(p.stdout)[-1]['avg_ts']:.2f}"
    except (ValueError, LookupError):
        return "failed"


def row(o, size, texts):
    plan = plan_of(o, size)
    recording = os.path.join(o.record, f"{size}.jsonl")
    before = disk_rate(o)
    text, tokens, peak = run(o, size, recording)
    rate = statistics.mean((before, disk_rate(o)))
    texts.add(text)

    def total(name):
        return sum(t[name] for t in tokens)

    n = len(tokens)
    seconds = total("wall_ns") / 1e9
    missed = total("expert_misses") / (total("expert_hits") + total("expert_misses"))
    cached = plan["n_expert"] / plan["n_expert_all"]
    read = total("bytes_pass") / n
    # Even use misses 1 - cached of the experts, which were read at the same size.
    even = (1 - cached) / missed if missed > 0 else 0
    speed = n / seconds
    disk = rate / read if read > 0 else float("inf")
    compute = n / (seconds - total("stall_ns") / 1e9)
    return [size, f"{cached:.0%}", f"{1 - missed:.0%}", f"{read / 1e6:.0f} MB",
            f"{1 / even:.0%}" if even > 0 else "-", f"{speed:.2f}", f"{disk:.2f}", f"{compute:.2f}",
            f"{speed / disk:.0%}", f"{speed / min(disk, compute):.0%}", f"{peak / 2**20:.0f} MiB"], rate


def main():
    a = argparse.ArgumentParser()
    a.add_argument("build")
    a.add_argument("model")
    a.add_argument("--budgets", default="2G,4G,8G,12G")
    a.add_argument("--warm-up", type=int, default=24)
    a.add_argument("-n", type=int, default=24)
    a.add_argument("--disk-rate")
    a.add_argument("--peer")
    a.add_argument("--peer-seconds", type=int, default=100)
    a.add_argument("--record")
    o = a.parse_args()
    o.memwall = os.path.join(o.build, "memwall")
    texts = set()

    with tempfile.TemporaryDirectory() as folder:
        o.record = o.record or folder
        print(f"{o.warm_up} tokens of warm-up, {o.n} measured")
        print("| " + " | ".join(COLUMNS) + (" | llama.cpp" if o.peer else "") + " |\n"
              + "|---" * (len(COLUMNS) + bool(o.peer)) + "|")
        rates = []
        for size in o.budgets.split(","):
            cells, rate = row(o, size, texts)
            rates.append(rate)
            if o.peer:
                cells.append(run_peer(o, size))
            print("| " + " | ".join(cells) + " |", flush=True)
    print(f"disk: {min(rates) / 1e9:.2f} to {max(rates) / 1e9:.2f} GB/s" +
          (f", slowed down to {o.disk_rate}" if o.disk_rate else ""))
    if len(texts) > 1:
        sys.exit("the answers differ")


if __name__ == "__main__":
    main()
