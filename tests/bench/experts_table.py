#!/usr/bin/env python3
"""experts_table.py - a mixture of experts in memory cages of several sizes.

    experts_table.py MEMWALL MODEL [--budgets 2G,4G,8G,12G] [-n TOKENS] [--disk-rate RATE]
                     [--peer "COMMAND ..."] [--record FOLDER]

For every budget the program answers a question greedily inside a control group (v1 or v2) of
that size, without swap.  The table shows the share of experts that fit, the share of the chosen
ones that were in memory, the bytes of experts that a token reads, and the rate beside two limits:

    disk    disk rate / bytes that a token reads
    compute what the engine computed without waiting: tokens / (time - stalls)

"of limit" is the rate as a share of the smaller limit, and "of share" the bytes read as a share of
those that an even choice would read with as many experts in memory; at most 100 % is better than
proportional.  With --disk-rate all reads are slowed down to that rate, so that the disk binds on
a machine with a fast disk.  --peer is a llama-bench command, run in the same cages with "-m
MODEL -p 0 -n 4 -o json" (its reads are as fast as the disk).  --record keeps a recording of
each run, for expert_sim.

The exit status is 1 if a run failed, was killed, or answered differently.  Needs root.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys

from cage import drop_cache, parse_size, run_caged

PEER_TOKENS = 4  # in small cages each of them takes many seconds
QUESTION = "Why is the sky blue, and what makes it red in the evening?"


def plan_of(o, size):
    command = [o.memwall, "plan", o.model, "--memory", size, "--json"]
    if o.disk_rate:
        command += ["--disk-rate", o.disk_rate]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def disk_rate(o, plan):
    measured = plan["limits"]["disk"]["bytes_s"]
    return min(measured, parse_size(o.disk_rate)) if o.disk_rate else measured


def run(o, size):
    command = [o.memwall, "run", "-m", o.model, "--memory", size, "-n", str(o.n), "--temp", "0",
               "--json", "-p", QUESTION]
    if o.disk_rate:
        command += ["--disk-rate", o.disk_rate]
    if o.record:
        command += ["--telemetry", os.path.join(o.record, f"{size}.jsonl")]
    p, peak, kills = run_caged(command, parse_size(size))
    done = [json.loads(line) for line in p.stdout.splitlines() if '"event":"done"' in line]
    if p.returncode != 0 or kills or not done:
        sys.exit(f"{size}: {kills} kills, exit status {p.returncode}: {p.stderr[-500:]}")
    return done[0], peak


def run_peer(o, size):
    drop_cache(o.model)
    p, _, kills = run_caged([*shlex.split(o.peer), "-m", o.model, "-p", "0", "-n", str(PEER_TOKENS), "-r",
                             "1", "-o", "json"], parse_size(size))
    drop_cache(o.model)
    if kills:
        return "killed"
    try:
        return f"{json.loads(p.stdout)[-1]['avg_ts']:.2f}"
    except (ValueError, LookupError):
        return "failed"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("memwall")
    a.add_argument("model")
    a.add_argument("--budgets", default="2G,4G,8G,12G")
    a.add_argument("-n", type=int, default=32)
    a.add_argument("--disk-rate")
    a.add_argument("--peer")
    a.add_argument("--record")
    o = a.parse_args()
    texts = set()

    print("| budget | cached | hits | experts read | of share | tok/s | disk limit "
          "| compute limit | of limit | peak |" + (" llama.cpp |" if o.peer else ""))
    print("|---" * (11 if o.peer else 10) + "|")
    for size in o.budgets.split(","):
        plan = plan_of(o, size)
        done, peak = run(o, size)
        texts.add(done["text"])
        n = done["n_decoded"] - 1
        used = done["expert_hits"] + done["expert_misses"]
        cached = plan["n_expert"] / plan["n_expert_all"]
        hits = done["expert_hits"] / used
        read = done["expert_bytes"] / n
        even = read / (1 - hits) * (1 - cached) if hits < 1 and cached < 1 else 0
        rate = n * 1e9 / done["decode_ns"]
        dense = plan["hot_bytes"] - plan["pinned_bytes"] if plan["n_slot"] > 0 else 0
        disk = disk_rate(o, plan) / (read + dense) if read + dense > 0 else float("inf")
        compute = n * 1e9 / max(done["decode_ns"] - done["stall_ns"], 1)
        row = [size, f"{cached:.0%}", f"{hits:.0%}", f"{read / 1e6:.0f} MB",
               f"{read / even:.0%}" if even > 0 else "-", f"{rate:.2f}", f"{disk:.2f}",
               f"{compute:.2f}", f"{rate / min(disk, compute):.0%}", f"{peak / 2**20:.0f} MiB"]
        if o.peer:
            row.append(run_peer(o, size))
        print("| " + " | ".join(row) + " |", flush=True)
    if len(texts) > 1:
        sys.exit("the answers differ")


if __name__ == "__main__":
    main()
