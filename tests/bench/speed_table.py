#!/usr/bin/env python3
"""speed_table.py - the speed of whole prompts and tokens beside the limits and beside llama.cpp.

    speed_table.py BUILD RESULTS.json MODEL.gguf… [-p 512,2048] [-n 32] [-t THREADS] [-r 3]
                   [--peer "COMMAND …"] [--beside N] [--json TABLE.json]

BUILD is the build folder with memwall and tests/bench/bench_limits.  All weights stay in memory,
and loading is not counted on either side.  A round goes over the models, and for each of them
measures the memory bandwidth before and after memwall and, with --peer, llama-bench, one after the
other, so that a busy minute hits all of them.  With --beside, N other processes compute all the time.

The tables have the medians of all rounds:

    of bandwidth   bytes of weights that a token reads from memory, where BF16 is packed, *
                   tokens per second / memory bandwidth
    ratio          memwall / llama.cpp, the median of the ratios of the rounds

Each result is written to RESULTS.json when it is there, and is not measured again.  --json writes
the table as JSON, too: speeds in tokens per second, shares as numbers from 0 to 1.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

LIMITS_SECONDS = "1"


def call(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                       text=True)
    if r.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit status {r.returncode}: {r.stderr[-500:]}")
    return json.loads(r.stdout)


def measure_memwall(a, model):
    done = call([os.path.join(a.build, "memwall"), "bench", model, "--memory", a.memory, "-p", a.p,
                 "-n", str(a.n), "-t", str(a.t), "-r", "1", "--json", "--quiet"])
    speeds = {}
    for point in done["points"]:
        if point["status"] != "ok":
            sys.exit(f"{model}: {point['error']}")
        if point["plan"]["all_pinned_budget_bytes"] > point["plan"]["budget_bytes"]:
            sys.exit(f"{model}: {a.memory} does not hold all weights")
        speeds[f"prompt {point['settings']['n_prompt']}"] = point["median"]["prompt_tps"]
    speeds["answer"] = statistics.median(p["median"]["decode_tps"] for p in done["points"])
    # BF16 is packed in memory.
    bytes_read = min(done["model"]["hot_bytes"], *(p["plan"]["pinned_bytes"] for p in done["points"]))
    return {"memwall": speeds, "hot_bytes": bytes_read}


def measure_peer(a, model):
    done = call([*shlex.split(a.peer), "-m", model, "-p", a.p, "-n", str(a.n), "-t", str(a.t), "-r",
                 "1", "-o", "json"])
    return {f"prompt {r['n_prompt']}" if r["n_prompt"] > 0 else "answer": r["avg_ts"] for r in done}


def measure_memory(a, model):
    return call([os.path.join(a.build, "tests/bench/bench_limits"), model, LIMITS_SECONDS])["memory_bytes_s"]


def measure(a, model):
    before = measure_memory(a, model)
    result = measure_memwall(a, model)
    result["memory_bytes_s"] = (before + measure_memory(a, model)) / 2
    if a.peer:
        result["peer"] = measure_peer(a, model)
    return result


def rows(results):
    for model in dict.fromkeys(r["model"] for r in results):
        runs = [r for r in results if r["model"] == model]
        for work in runs[0]["memwall"]:
            speed = statistics.median(r["memwall"][work] for r in runs)
            share = peer = ratio = None
            if work == "answer":
                share = statistics.median(
                    r["hot_bytes"] * r["memwall"][work] / r["memory_bytes_s"] for r in runs)
            if all("peer" in r for r in runs):
                peer = statistics.median(r["peer"][work] for r in runs)
                ratio = statistics.median(r["memwall"][work] / r["peer"][work] for r in runs)
            yield model, work, speed, share, peer, ratio


def table_json(results, path):
    names = ("model", "work", "tokens_per_s", "bandwidth_share", "peer_tokens_per_s", "peer_ratio")
    limits = {m: statistics.median(r["memory_bytes_s"] for r in results if r["model"] == m)
              for m in dict.fromkeys(r["model"] for r in results)}
    table = {"n_round": 1 + max(r["round"] for r in results), "memory_bytes_s": limits,
             "rows": [dict(zip(names, row)) for row in rows(results)]}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)


def table(results):
    print("| model | work | memwall tok/s | of bandwidth | llama.cpp tok/s | ratio |\n|" + "---|" * 6)
    for model, work, speed, share, peer, ratio in rows(results):
        print(f"| {model} | {work} | {speed:.4g} | " + (f"{share:.0%}" if share else "-") + " | "
              + (f"{peer:.4g} | {ratio:.2f}" if peer else "- | -") + " |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("results")
    p.add_argument("models", nargs="+")
    p.add_argument("-p", default="512,2048")
    p.add_argument("-n", type=int, default=32)
    p.add_argument("-t", type=int, default=os.cpu_count())
    p.add_argument("-r", type=int, default=3)
    p.add_argument("--memory", default="80%", help="the budget, which has to hold all weights")
    p.add_argument("--peer", help="llama-bench, with the words before it that start it")
    p.add_argument("--beside", type=int, default=0)
    p.add_argument("--json", metavar="TABLE.json")
    a = p.parse_args()
    results = []
    if os.path.exists(a.results):
        with open(a.results, encoding="utf-8") as f:
            results = json.load(f)
    done = {(r["model"], r["round"]) for r in results}
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(a.beside)]
    try:
        for turn in range(a.r):
            for model in a.models:
                name = os.path.splitext(os.path.basename(model))[0]
                if (name, turn) in done:
                    continue
                results.append({"model": name, "round": turn, **measure(a, model)})
                with open(a.results + ".new", "w", encoding="utf-8") as f:
                    json.dump(results, f, indent=1)
                os.replace(a.results + ".new", a.results)
    finally:
        for other in others:
            other.kill()
    table(results)
    if a.json:
        table_json(results, a.json)


if __name__ == "__main__":
    main()
