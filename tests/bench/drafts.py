#!/usr/bin/env python3
"""drafts.py - what drafts cost and gain.

    drafts.py MEMWALL --guide [--disk-rate 400M] [--questions 20] [--rounds 3]
              [--drafters self,ngram,mtp,auto]
    drafts.py MEMWALL --repeat [--questions 5] [--bound 9] [--folder .] [--rounds 3]
              [--drafters ngram]
    drafts.py MEMWALL MODEL.gguf [--budgets 600M,2G] [--depths 1,3,7,15] [--tokens 48]
              [--rounds 3] [--disk-rate 1G]
    drafts.py MEMWALL MODEL.gguf --accept 0.5,0.7,0.9 [--drafters self,self:q2_k]
              [--budgets 1950M] [--tokens 32] [--disk-rate 1G]
    drafts.py MEMWALL MODEL.gguf --grid 0,0.3,0.7 [--drafters auto,ngram,self] [--budgets 600M,2G]
              [--tokens 100] [--disk-rate 4G]
    drafts.py --saved OFF.json RESULT.json...

With --guide, the guide answers questions that it was not trained on, with the smallest budget that
all drafters and copies of its weights fit (of the first drafter that is "self", such as self:q4_0)
and a disk that is slowed down, so that the disk is the limit: without drafts, and with those of
each drafter.  Then the same questions come after their answers, so that the model repeats a text of
the prompt.  With --grid (any shares), the same for all --budgets, with the disk as it is.

With --repeat, a model that is made for it (tests/lib/repeat_model.py) repeats texts of 300 words
of its prompt, and then replaces words in them.  The reader is slowed down until a pass takes
--bound times as long to read as to compute, or longer where the disk is slower.  The prediction for
drafts is that for a pass, times the tokens a pass that repeated_tokens_a_pass() expects.

With --grid and a model, each drafter is compared with "off" for each budget, once with its own
drafts and once for each of these shares of right drafts (ngram and auto have their own only).  The
settings are tried in turn, and the ratio of a round is to the "off" of the same round.

With --accept, the drafters work, and these shares of their drafts are right ("memwall bench
--draft-accept").  Beside each measured rate is the law's: with k drafts for a pass, of which each is
right with the probability p, a pass gives (1 - p^(k+1)) / (1 - p) tokens.  So the rate is at most

    max over k of (1 - p^(k+1)) / (1 - p) / (narrow + k * (column + draft))

where narrow, column and draft are the measured times of a pass over no drafts, of each draft in a
pass, and of making it.  However many drafts there are and however little they cost, a pass gives
less than 1 / (1 - p) tokens.  With --saved, the table is made from results of "memwall bench
--json", the first of which is without drafts.

Otherwise: the weights of MODEL are random (a made file), and so are its answers, in which nothing
is drafted.  So its norms in the layers are set to zero, in place: the layers then add nothing, and
a model whose head is its embedding repeats the last token without end.  Its weights are read and multiplied as
before.  Every draft is accepted then, which shows the most that drafting can gain; with --draft-depth
N, the time of a pass over N drafts, which a rejected draft costs, too.

Rounds go over all settings, one after the other.  Medians are printed as Markdown, with the load
of the machine.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from repeat_model import edited, repeater, texts  # noqa: E402


def run(memwall, *args):
    r = subprocess.run([memwall, *args], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(r.stdout.splitlines()[-1])


def silence_layers(memwall, model):
    for t in run(memwall, "inspect", model, "--tensors", "--json")["tensors"]:
        if t["layer"] is not None and t["name"].endswith("norm.weight") and \
                not t["name"].endswith(("_q_norm.weight", "_k_norm.weight")):
            with open(t["file"], "r+b") as f:
                f.seek(t["offset"])
                f.write(bytes(t["bytes"]))


def answer(o, budget, *args):
    r = run(o.memwall, "run", "-m", o.model, "--raw", "--temp", "0", "-n", str(o.tokens), "-b",
            budget, "--disk-rate", o.disk_rate, "--json", *args, "the the the the")
    return {"pass_s": r["decode_ns"] / 1e9 / r["n_pass"],
            "tps": (r["n_decoded"] - 1) / (r["decode_ns"] / 1e9),
            "per_pass": (r["n_pass"] + r["n_accepted"]) / r["n_pass"],
            "mb": r["bytes_read"] / 1e6 / r["n_pass"], "text": r["text"]}


TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "models",
                     "train")
GUIDE = os.path.join(TRAIN, "..", "memwall-guide.gguf")


def questions(n):
    with open(os.path.join(TRAIN, "heldback.txt"), encoding="ascii") as f:
        found = [m[1] for line in f if (m := re.match(r"[a-z0-9-]+: (.+)", line))]
    return found[::max(1, len(found) // n)][:n]


def ask_args(o, budget, how, *prompt):
    return ("run", "-m", o.model, "-c", o.ctx, "-b", budget, "--disk-rate", o.disk_rate,
            "--draft", how, "--json", "--quiet", *prompt)


def ask(o, budget, how, *prompt):
    r = run(o.memwall, *ask_args(o, budget, how, *prompt))
    return r | {"seconds": r["decode_ns"] / 1e9}


def fits(o, budget, how):
    r = subprocess.run([o.memwall, *ask_args(o, budget, how, "x")], capture_output=True, text=True)
    if r.returncode not in (0, 3):  # 3: the budget is too small
        sys.exit(r.stderr)
    return r.returncode == 0


def smallest_budget(o):
    """MiB."""
    r = subprocess.run([o.memwall, *ask_args(o, "1M", "off", "x")], stderr=subprocess.PIPE,
                       text=True)
    return float(re.search(r"fits a budget of ([0-9.]+) MiB", r.stderr)[1])


def budget_for_copies(o):
    n = math.ceil(smallest_budget(o) * 4)
    asked = questions(4)
    copies = next((d for d in o.drafters.split(",") if d.startswith("self")), "self")
    while not any(ask(o, f"{n * 256}K", copies, q)["n_drafted"] for q in asked):
        n += 1
    while not all(fits(o, f"{n * 256}K", how) for how in o.drafters.split(",")):
        n += 1
    return f"{n * 256}K"


def prompts_table(o, budget, prompts, tokens_a_pass=None):
    """tokens_a_pass: of ngram, as it is predicted."""
    seen = {how: [] for how in ("off", *o.drafters.split(","))}
    for _ in range(o.rounds):
        for how, rounds in seen.items():
            rounds.append([ask(o, budget, how, *p) for p in prompts])
    texts = {how: [a["text"] for a in rounds[0]] for how, rounds in seen.items()}
    assert len({tuple(t) for t in texts.values()}) == 1
    print("| budget | drafts | predicted | tok/s | times | tokens a pass | accepted | drafter |")
    print("|---|---|---|---|---|---|---|---|")
    rates, known = {}, {"off": 1, "ngram": tokens_a_pass}
    for how, rounds in seen.items():
        rates[how] = statistics.median(sum(max(a["n_decoded"] - 1, 0) for a in answers) /
                                       sum(a["seconds"] for a in answers) for answers in rounds)
        total = {k: sum(a[k] for answers in rounds for a in answers)
                 for k in ("n_pass", "n_drafted", "n_accepted", "seconds")}
        drafting = sum((a.get("drafter_share") or 0) * a["seconds"]
                       for answers in rounds for a in answers)
        predicted = statistics.median(a["predicted_decode_tps"] for r in rounds for a in r
                                      if a["n_decoded"] > 0)  # not of answers from the help
        predicted = f"{predicted * known[how]:.1f}" if predicted and known.get(how) else ""
        print(f"| {budget} | {how} | {predicted} | {rates[how]:.1f} | "
              f"{rates[how] / rates['off']:.2f} | "
              f"{(total['n_pass'] + total['n_accepted']) / total['n_pass']:.2f} | "
              f"{100 * total['n_accepted'] / max(total['n_drafted'], 1):.0f} % | "
              f"{100 * drafting / total['seconds']:.1f} % |", flush=True)
    return texts["off"], rates["off"]


def guide(o):
    asked = questions(o.questions)
    for budget in o.budgets.split(",") if o.grid else [budget_for_copies(o)]:
        print("\nOrdinary questions:\n")
        answers, _ = prompts_table(o, budget, [(q,) for q in asked])
        print("\nThe same after their answers, which the model repeats:\n")
        prompts_table(o, budget, [(f"{a} {q}",) for a, q in zip(answers, asked)])
    print(f"\nLoad average {os.getloadavg()[0]:.1f}; {o.questions} questions, {o.rounds} rounds, a "
          f"disk of {o.disk_rate}.")


DRAFTS = 15  # at most for a pass
NGRAM_MIN = 3  # engine/draft/ngram.h


def repeated_tokens_a_pass(n, places):
    """Tokens a pass of an answer of n tokens that repeats a text with changes in some places.  A
    match needs NGRAM_MIN tokens, the first pass with drafts has one, and a change ends a pass, on
    average in its middle."""
    first = NGRAM_MIN + 1
    return n / (first + (n - first - 1) / (DRAFTS + 1) + places / 2)


def repeat(o):
    """A model that repeats and edits, whose reader is slowed down to o.bound times the time of a
    pass in memory."""
    with tempfile.TemporaryDirectory(dir=o.folder) as folder:
        o.model, o.ctx, o.disk_rate = repeater(folder, "repeater").path, "2048", "none"
        budget = f"{math.ceil(smallest_budget(o) + 4)}M"
        asked = texts(o.questions)
        edits = [edited(t, 5) for t in asked]
        memory = [ask(o, "2G", "off", t) for t in asked]
        pass_s = statistics.median(a["seconds"] / a["n_pass"] for a in memory)
        few, more = (ask(o, budget, "off", "-n", n, asked[0])["bytes_read"] for n in ("8", "24"))
        streamed = (more - few) / 16
        o.disk_rate = f"{streamed / o.bound / pass_s / 1e6:.0f}M"
        n = statistics.mean(a["n_decoded"] for a in memory)
        print(f"\nIn memory, a pass takes {1000 * pass_s:.2f} ms.  With {budget}, one reads "
              f"{streamed / 1e6:.0f} MB at {o.disk_rate}.")
        print(f"\nTexts of 300 words, which are repeated ({o.questions}):\n")
        answers, off = prompts_table(o, budget, [(t,) for t in asked],
                                     repeated_tokens_a_pass(n, 0))
        assert list(answers) == asked
        print(f"\nA pass took {1 / off / pass_s:.0f} times as long as in memory.")
        places = statistics.mean(k for _, _, k in edits)
        print(f"\nThe same with words replaced in {places:.0f} places:\n")
        answers, _ = prompts_table(o, budget, [("--system", rules, t)
                                               for t, (rules, _, _) in zip(asked, edits)],
                                   repeated_tokens_a_pass(n, places))
        assert list(answers) == [other for _, other, _ in edits]
    print(f"\nLoad average {os.getloadavg()[0]:.1f}; {o.rounds} rounds.")


def tokens_of_pass(p, k):
    return sum(p ** i for i in range(k + 1))


def costs_of(run):
    """Seconds of a pass over no drafts, of each draft in a pass, and of making one."""
    pass_s = run["tokens_per_pass"] / run["decode_tps"]
    drafted = (run["tokens_per_pass"] - 1) / run["accepted_share"] if run["accepted_share"] else 0
    more = [(cost - 1) / k for k, cost in enumerate(run["pass_costs"]) if k > 0 and cost is not None]
    column = max(statistics.mean(more), 0) if more else 0
    narrow_s = pass_s * (1 - run["drafter_share"]) / (1 + column * drafted)
    return narrow_s, column * narrow_s, pass_s * run["drafter_share"] / max(drafted, 1)


def bound_of(p, costs):
    """The highest rate by the law, and the number of drafts for a pass that has it."""
    narrow_s, column_s, draft_s = costs
    return max((tokens_of_pass(p, k) / (narrow_s + k * (column_s + draft_s)), k)
               for k in range(DRAFTS + 1))


def load(name):
    with open(name) as f:
        return json.loads(f.read().splitlines()[-1])


def bounds_table(results):
    """results: of "memwall bench --json", without drafts first."""
    off = results[0]["points"][0]["median"]["decode_tps"]
    print(f"Without drafts: {off:.3f} tok/s.\n")
    print("| drafts | accepted | tok/s | times | tokens a pass | s a pass | s a draft | bound: times | "
          "at a depth of | tokens a pass | free drafts |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for r in results[1:]:
        how = re.search(r"--draft (\S+)", r["options"])[1]
        p = float(re.search(r"--draft-accept (\S+)", r["options"])[1])
        for run in r["points"][0]["runs"]:
            if not run.get("pass_costs") or not run["accepted_share"]:
                print(f"| {how} | {p:g} | {run['decode_tps']:.3f} | "
                      f"{run['decode_tps'] / off:.2f} | 1 | | | | | | |")
                continue
            costs = costs_of(run)
            bound, k = bound_of(p, costs)
            free = f"{1 / (1 - p):.1f}" if p < 1 else "no bound"
            print(f"| {how} | {p:g} | {run['decode_tps']:.3f} | {run['decode_tps'] / off:.2f} | "
                  f"{run['tokens_per_pass']:.2f} | {costs[0]:.2f} | {costs[2]:.3f} | "
                  f"{bound / off:.2f} | {k} | {tokens_of_pass(p, k):.2f} | {free} |", flush=True)


def measure_bounds(o):
    for budget in o.budgets.split(","):
        def bench(*how):
            return run(o.memwall, "bench", "-m", o.model, "-b", budget, "-c", "512", "-p", "16", "-n",
                       str(o.tokens), "-r", str(o.rounds), "--disk-rate", o.disk_rate, "--json",
                       "-q", *how)
        print(f"\nBudget {budget}.")
        bounds_table([bench("--draft", "off")] +
                     [bench("--draft", how, "--draft-accept", p)
                      for how in o.drafters.split(",") for p in o.accept.split(",")])
    print(f"\nLoad average {os.getloadavg()[0]:.1f}.")


def grid(o):
    print("| budget | drafts | accepted | tok/s | times off | of each round | tokens a pass |")
    print("|---|---|---|---|---|---|---|")
    settings = [("off", "-")]
    for how in o.drafters.split(","):
        shares = [] if how in ("ngram", "auto") else o.grid.split(",")
        settings += [(how, p) for p in ("-", *shares)]
    for budget in o.budgets.split(","):
        seen = {s: [] for s in settings}
        for _ in range(o.rounds):
            for how, p in settings:
                r = run(o.memwall, "bench", "-m", o.model, "-b", budget, "-c", "512", "-p", "16",
                        "-n", str(o.tokens), "-r", "1", "--disk-rate", o.disk_rate, "--json", "-q",
                        "--draft", how, *(() if p == "-" else ("--draft-accept", p)))
                seen[how, p].append(r["points"][0]["runs"][0])
        off = [r["decode_tps"] for r in seen["off", "-"]]
        for (how, p), runs in seen.items():
            times = [r["decode_tps"] / o for r, o in zip(runs, off)]
            print(f"| {budget} | {how} | {p} | {statistics.median(r['decode_tps'] for r in runs):.2f} "
                  f"| {statistics.median(times):.2f} | {' '.join(f'{t:.2f}' for t in times)} | "
                  f"{statistics.median(r.get('tokens_per_pass') or 1 for r in runs):.2f} |",
                  flush=True)
    print(f"\nLoad average {os.getloadavg()[0]:.1f}; {o.rounds} rounds of {o.tokens} tokens, a disk "
          f"of {o.disk_rate}.")


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("memwall", nargs="?")
    p.add_argument("model", nargs="?")
    p.add_argument("--guide", action="store_true")
    p.add_argument("--repeat", action="store_true")
    p.add_argument("--bound", type=float, default=9)
    p.add_argument("--folder", default=".")
    p.add_argument("--questions", type=int, default=20)
    p.add_argument("--budgets", default="600M,2G")
    p.add_argument("--depths", default="1,3,7,15")
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--drafters", default="self,ngram,mtp,auto")
    p.add_argument("--disk-rate", default="none")
    p.add_argument("--accept")
    p.add_argument("--grid")
    p.add_argument("--saved", nargs="+")
    o = p.parse_args()
    if o.saved:
        return bounds_table([load(name) for name in o.saved])
    if o.accept:
        return measure_bounds(o)
    if o.repeat:
        return repeat(o)
    if o.guide:
        o.model, o.ctx = GUIDE, "512"
        return guide(o)
    if o.grid:
        return grid(o)
    silence_layers(o.memwall, o.model)
    settings = [("off", ("--draft", "off")), ("auto", ("--draft", "ngram"))]
    settings += [(d, ("--draft-depth", d)) for d in o.depths.split(",")]
    print("| budget | drafts | s a pass | of one without | tokens a pass | tok/s | times | MB a pass |")
    print("|---|---|---|---|---|---|---|---|")
    for budget in o.budgets.split(","):
        seen = {name: [] for name, _ in settings}
        for _ in range(o.rounds):
            for name, args in settings:
                seen[name].append(answer(o, budget, *args))
        assert len({a["text"] for all in seen.values() for a in all}) == 1
        median = {name: {k: statistics.median(a[k] for a in all) for k in all[0] if k != "text"}
                  for name, all in seen.items()}
        off = median["off"]
        for name, m in median.items():
            print(f"| {budget} | {name} | {m['pass_s']:.3f} | {m['pass_s'] / off['pass_s']:.2f} | "
                  f"{m['per_pass']:.2f} | {m['tps']:.2f} | {m['tps'] / off['tps']:.2f} | "
                  f"{m['mb']:.0f} |", flush=True)
    print(f"\nLoad average {os.getloadavg()[0]:.1f}; {o.rounds} rounds of {o.tokens} tokens.")


if __name__ == "__main__":
    main()
