#!/usr/bin/env python3
"""predictions.py - compare the predictions of the plan with runs.

    predictions.py MEMWALL RESULTS.json MODEL.gguf… [--budgets 256M,512M,1G,2G,4G,16G]
                   [--caged PROGRAM] [--rounds 3] [--seconds 6]

For each model and budget, "memwall plan --json" gives the outlook (peak memory, speed of
answers) and the speed of prompts, and "memwall run" evaluates a prompt of about 512 tokens and
an answer.  Rounds go over all models and budgets, so that a busy minute does not hit one of
them alone.  An answer has as many tokens as the prediction allows in --seconds, from 4 to 64.
With --caged, a program that is called as "PROGRAM -o FILE BUDGET -- COMMAND" runs the command
in a control group and appends a JSON line with "peak" to FILE.

Each run is written to RESULTS.json when it ends.  Runs that are in the file are not repeated, so
an interrupted call can be repeated.  Medians are printed as Markdown; a deviation of more than
2 % (peak), 10 % (answers) or 15 % (prompts) is marked with "!".
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

PROMPT = "the quick brown fox jumps over the lazy dog and runs away " * 42
LIMITS = {"peak": 0.02, "decode": 0.10, "prompt": 0.15}


def call(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                       text=True)
    lines = r.stdout.strip().splitlines()
    return json.loads(lines[-1]) if r.returncode == 0 and lines else None


def token_ns(path):
    """The median time of the tokens after the first two."""
    with open(path, encoding="utf-8") as f:
        tokens = [t for t in map(json.loads, f) if t["event"] == "token"]
    return statistics.median(t["wall_ns"] for t in tokens[2:]) if len(tokens) > 2 else None


def measure(a, model, budget):
    plan = call([a.memwall, "plan", model, "--memory", budget, "--json"])
    if plan is None or not plan["fits"]:
        return {"error": "does not fit"}
    tps = plan["outlook"]["decode_tps"]
    n = max(4, min(64, int(a.seconds * tps)))
    with tempfile.TemporaryDirectory() as folder:
        telemetry, report = os.path.join(folder, "t"), os.path.join(folder, "c")
        cage = [a.caged, "-o", report, budget, "--"] if a.caged else []
        run = call(cage + [a.memwall, "run", model, "--memory", budget, "--raw", "--temp", "0",
                           "-n", str(n), "--json", "--telemetry", telemetry, PROMPT])
        if run is None:
            return {"error": "the run failed"}
        ns = token_ns(telemetry)
        peak = run["peak_charged"]
        if a.caged:
            with open(report, encoding="utf-8") as f:
                peak = json.loads(f.readlines()[-1])["peak"]
    return {"load": plan["limits"]["load"],
            "predicted": {"peak": plan["outlook"]["peak_bytes"], "decode": tps,
                          "prompt": plan["prefill_tps"]},
            "measured": {"peak": peak, "decode": 1e9 / ns if ns else None,
                         "prompt": run["n_prompt"] * 1e9 / run["prefill_ns"]}}


def median(runs, kind, name):
    values = [r[kind][name] for r in runs if r.get(kind) and r[kind].get(name)]
    return statistics.median(values) if values else None


def cell(runs, name, scale):
    predicted, measured = median(runs, "predicted", name), median(runs, "measured", name)
    if predicted is None or measured is None:
        return " - | - | - |"
    off = predicted / measured - 1
    mark = " !" if abs(off) > LIMITS[name] else ""
    return f" {predicted / scale:.4g} | {measured / scale:.4g} | {off:+.1%}{mark} |"


def table(results):
    print("| model | budget | peak MiB, predicted | measured | | answer tok/s, predicted "
          "| measured | | prompt tok/s, predicted | measured | |")
    print("|---" * 11 + "|")
    for key in dict.fromkeys((r["model"], r["budget"]) for r in results):
        runs = [r for r in results if (r["model"], r["budget"]) == key]
        print(f"| {key[0]} | {key[1]} |" + cell(runs, "peak", 1 << 20)
              + cell(runs, "decode", 1) + cell(runs, "prompt", 1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("memwall")
    p.add_argument("results")
    p.add_argument("models", nargs="+")
    p.add_argument("--budgets", default="256M,512M,1G,2G,4G,16G")
    p.add_argument("--caged")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=6)
    a = p.parse_args()
    results = []
    if os.path.exists(a.results):
        with open(a.results, encoding="utf-8") as f:
            results = json.load(f)
    done = {(r["model"], r["budget"], r["round"]) for r in results}
    for turn in range(a.rounds):
        for model in a.models:
            name = os.path.splitext(os.path.basename(model))[0]
            for budget in a.budgets.split(","):
                if (name, budget, turn) in done:
                    continue
                results.append({"model": name, "budget": budget, "round": turn,
                                **measure(a, model, budget)})
                with open(a.results + ".new", "w", encoding="utf-8") as f:
                    json.dump(results, f, indent=1)
                os.replace(a.results + ".new", a.results)
    table(results)


if __name__ == "__main__":
    main()
