#!/usr/bin/env python3
"""predictions.py - compare the predictions of the plan with runs.

    predictions.py MEMWALL RESULTS.json MODEL.gguf… [--budgets 256M,1G,…] [--points 6]
                   [--prompt 256] [--seconds 3] [--minutes 24] [--rounds 1] [--after]
                   [--disk-rate 1G] [--busy]

Each point is one "memwall bench" of one model and budget: a process in a control group of its
own loads the model, evaluates a prompt and decodes some tokens.  The program prints what it
predicts before the run, which is compared with what it measured.

Without --budgets, the budgets of a model go in equal factors from a little more than the smallest
that works for a context of 4096 tokens to one with which nothing is streamed.  An answer has as
many tokens as the prediction allows in --seconds, from 4 to 32.

Rounds go over all points, so that a busy minute does not hit one of them alone.  Each run is
written to RESULTS.json when it ends.  Runs that are in the file are not repeated, so an interrupted
call, or one that stopped after --minutes, can be repeated.  Medians are printed as Markdown.  A
deviation of more than 2 % (peak), 10 % (answers) or 15 % (prompts) is marked with "!".  A run
during which other programs used more than a tenth of the processors is marked with "?".

The program keeps the newest tokens of a model with its limits, and begins later predictions there.
By default they are removed before each point, so predictions begin at the limits.  With --after,
the point in the middle is measured first, and the others are predicted from its tokens alone.
--disk-rate limits the reads of all runs: on a disk whose rate changes from one run to the next,
the differences are then those of the predictions.  --busy computes on one processor meanwhile.
The pressure on processors and disk (PSI) is printed at the end.  bench_predict.c does the same
within one process, and follows the advice.
"""
import argparse
import atexit
import json
import os
import statistics
import subprocess
import sys
import time

LIMITS = {"peak_bytes": 0.02, "decode_tps": 0.10, "prompt_tps": 0.15}
LIMITS_FILE = os.path.join("memwall", "limits")
BUSY = 0.1  # a larger share of the processors for other programs disturbs
MIB = 1 << 20
LONGEST_S = 300


def call(command):
    try:
        r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                           text=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return None, f"took more than {LONGEST_S} s"
    lines = r.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1]), ""
    except (IndexError, ValueError):
        return None, (r.stderr.strip().splitlines() or ["no output"])[-1]


def change_tokens(cache, change):
    """Let change(lines) replace the lines of the file of limits that hold tokens of models."""
    path = os.path.join(cache, LIMITS_FILE)
    try:
        with open(path, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
    except FileNotFoundError:
        return []
    of_tokens = [line for line in lines if line["kind"] == "anchor"]
    kept = change(of_tokens)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n"
                     for line in kept + [x for x in lines if x["kind"] != "anchor"])
    return of_tokens


def pressure():
    """The share of the last minute in which tasks waited, by kind."""
    found = []
    for kind in ("cpu", "io"):
        try:
            with open(f"/proc/pressure/{kind}", encoding="utf-8") as f:
                found.append(f"{kind} {f.readline().split()[2].removeprefix('avg60=')} %")
        except OSError:
            found.append(f"{kind} unknown")
    return ", ".join(found)


def measure_point(a, model, budget, first):
    """first: the tokens that the prediction begins at, [] for none.  Returns the result and the
    tokens that it left."""
    change_tokens(a.cache, lambda _: first)
    result = measure(a, model, budget)
    return result, change_tokens(a.cache, lambda left: left)


def budgets_of(a, model):
    """In MiB, from the smallest that works to one that holds all blocks, experts and rows."""
    least, _ = call([a.memwall, "plan", model, "--memory", "4G", "--json"])
    whole, why = call([a.memwall, "plan", model, "--memory", "900T", "--json"])
    if least is None or whole is None:
        sys.exit(f"predictions.py: {model}: {why}")
    low = 1.1 * least["smallest_budget_bytes"] / MIB
    high = min(1.02 * whole["hot_bytes"] / MIB + whole["smallest_budget_bytes"] / MIB + 128,
               whole["budget_bytes"] / MIB)
    if whole["n_expert_all"] > 0:
        high = min(whole["sum_bytes"], 0.9 * whole["budget_bytes"]) / MIB
    factor = (high / low) ** (1 / (a.points - 1)) if a.points > 1 else 1
    return [f"{round(low * factor ** i)}M" for i in range(a.points)]


def measure(a, model, budget):
    rate = ["--disk-rate", a.disk_rate] if a.disk_rate else []
    plan, why = call([a.memwall, "plan", model, "--memory", budget, "--json", *rate])
    if plan is None or not plan["fits"]:
        return {"error": why or "does not fit"}
    n = max(4, min(32, int(a.seconds * plan["outlook"]["decode_tps"])))
    result, why = call([a.memwall, "bench", model, "--memory", budget, "-p", str(a.prompt),
                        "-n", str(n), "-r", "1", "--cold", "--json", "--quiet", *rate])
    if result is None:
        return {"error": why}
    point = result["points"][0]
    if point["status"] != "ok":
        return {"error": point["error"]}
    return {"n_gen": n, "others": point["median"]["others_share"],
            "stall": point["median"]["stall_share"],
            "disk_bytes_s": point["plan"]["limits"]["disk"]["bytes_s"],
            "predicted": {k: point["predicted"][k] for k in LIMITS},
            "measured": {k: point["median"][k] for k in LIMITS}}


def median(runs, kind, name):
    values = [r[kind][name] for r in runs if r.get(kind) and r[kind].get(name)]
    return statistics.median(values) if values else None


def cell(runs, name, scale):
    predicted, measured = median(runs, "predicted", name), median(runs, "measured", name)
    if predicted is None or measured is None:
        return " - | - | - |", False
    off = predicted / measured - 1
    mark = " !" if abs(off) > LIMITS[name] else ""
    return f" {predicted / scale:.4g} | {measured / scale:.4g} | {off:+.1%}{mark} |", not mark


def table(results):
    print("| model | budget | peak MiB, predicted | measured | | answer tok/s, predicted "
          "| measured | | prompt tok/s, predicted | measured | |")
    print("|---" * 11 + "|")
    hits, points = dict.fromkeys(LIMITS, 0), 0
    for key in dict.fromkeys((r["model"], r["budget"]) for r in results):
        runs = [r for r in results if (r["model"], r["budget"]) == key]
        points += 1
        line = ""
        for name in LIMITS:
            text, is_hit = cell(runs, name, MIB if name == "peak_bytes" else 1)
            line += text
            hits[name] += is_hit
        mark = " ?" if any((r.get("others") or 0) > BUSY for r in runs) else ""
        print(f"| {key[0]} | {key[1]}{mark} |{line}")
    print("\nwithin the limits, of", points, "points:",
          ", ".join(f"{name} {n}" for name, n in hits.items()))
    for r in results:
        if "error" in r:
            print(f"{r['model']} {r['budget']}: {r['error']}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("memwall")
    p.add_argument("results")
    p.add_argument("models", nargs="+")
    p.add_argument("--budgets")
    p.add_argument("--points", type=int, default=6)
    p.add_argument("--prompt", type=int, default=256)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--minutes", type=float, default=24)
    p.add_argument("--after", action="store_true")
    p.add_argument("--disk-rate")
    p.add_argument("--busy", action="store_true")
    a = p.parse_args()
    a.cache = os.path.abspath(a.results + ".cache")
    os.environ["XDG_CACHE_HOME"] = a.cache
    end = time.monotonic() + 60 * a.minutes
    if a.busy:
        until_we_end = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
        other = subprocess.Popen([sys.executable, "-c", until_we_end])
        atexit.register(other.kill)
    results = []
    if os.path.exists(a.results):
        with open(a.results, encoding="utf-8") as f:
            results = json.load(f)
    done = {(r["model"], r["budget"], r["round"]) for r in results}
    budgets = {m: a.budgets.split(",") if a.budgets else budgets_of(a, m) for m in a.models}
    left, first = 0, {}
    for turn in range(a.rounds):
        for model, budget in ((m, b) for m in a.models for b in budgets[m]):
            name = os.path.splitext(os.path.basename(model))[0]
            if a.after and model not in first:
                middle = budgets[model][len(budgets[model]) // 2]
                _, first[model] = measure_point(a, model, middle, [])
            if (name, budget, turn) in done:
                continue
            if time.monotonic() > end:
                left += 1
                continue
            result, _ = measure_point(a, model, budget, first.get(model, []))
            results.append({"model": name, "budget": budget, "round": turn, **result})
            print(json.dumps(results[-1]), file=sys.stderr)
            with open(a.results + ".new", "w", encoding="utf-8") as f:
                json.dump(results, f, indent=1)
            os.replace(a.results + ".new", a.results)
    table(results)
    print("tasks waited in the last minute:", pressure())
    if left > 0:
        print(f"{left} runs are left; call again with the same arguments")


if __name__ == "__main__":
    main()
