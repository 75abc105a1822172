#!/usr/bin/env python3
"""drafts.py - what drafts cost and gain.

    drafts.py MEMWALL MODEL.gguf [--budgets 600M,2G] [--depths 1,3,7,15] [--tokens 48]
              [--rounds 3] [--disk-rate 1G]

The weights of MODEL are random (a made file), and so are its answers, in which nothing is drafted.
So its norms in the layers are set to zero, in place: the layers then add nothing, and a model whose
head is its embedding repeats the last token without end.  Its weights are read and multiplied as
before.  Every draft is accepted then, which shows the most that drafting can gain; with --draft-depth
N, the time of a pass over N drafts, which a rejected draft costs, too.

Rounds go over all settings, one after the other.  Medians are printed as Markdown, with the load
of the machine.
"""
import argparse
import json
import os
import statistics
import subprocess


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


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("memwall")
    p.add_argument("model")
    p.add_argument("--budgets", default="600M,2G")
    p.add_argument("--depths", default="1,3,7,15")
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--disk-rate", default="none")
    o = p.parse_args()
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
