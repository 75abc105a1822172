#!/usr/bin/env python3
"""kv_error.py - measure the accuracy that quantised keys and values cost.

    kv_error.py MODEL IDS PROGRAM... [--kv K/V,...] [--logits FILE...]

MODEL is a model file.  IDS is a file of token ids of a text that the model can continue.  PROGRAM
is one or more builds of memwall.  The first program evaluates the ids with --exact and
--kv f32; the table compares every other result with these logits:

    KLD     mean over all positions of sum p ln(p / q), p exact
    top-1   share of positions whose most likely token is the same
    ppl     perplexity of the ids

--kv lists the types, "q8_0" or "q8_0/q4_0" for keys and values.  Weights and activations are
the same in all rows (--exact), so all differences come from the KV store.  --logits adds
rows for files of float32 logits that another program wrote, one row of the vocabulary per id.

The figures below led to the rotation in engine/kv/kv.c and to the length of its runs.  Two
models were trained on licences and Python sources (F32, 1024 held-out ids): a llama (2 layers,
4 query heads and 2 key heads of 64) and a Gemma 4 (2 sliding layers with heads of 64, 1 global
layer with heads of 128).  In "outliers", 2 rotary pairs of each key head are 12 times larger
and those of the queries 12 times smaller, which is the same function.  KLD and top-1:

                           not rotated      rotated          in runs of 32
    llama          q8_0    4.9e-06  99.7%   5.3e-06  99.7%   4.7e-06  99.9%
                   q4_0    1.3e-03  96.2%   1.2e-03  96.0%   1.2e-03  96.6%
                q8_0/q4_0  2.8e-04  98.7%   2.7e-04  98.2%   3.0e-04  98.3%
      outliers     q8_0    1.7e-04  99.2%   2.7e-05  99.6%   2.2e-05  99.5%
                   q4_0    4.1e-02  81.3%   5.9e-03  93.4%   6.1e-03  93.7%
                q8_0/q4_0  4.4e-04  98.1%   2.9e-04  98.4%   3.1e-04  98.0%
    Gemma 4        q8_0    1.8e-06  99.8%   1.7e-06  99.9%   1.6e-06  99.8%
                   q4_0    5.0e-04  96.9%   4.4e-04  97.4%   4.7e-04  96.6%
                q8_0/q4_0  1.6e-04  97.7%   1.5e-04  98.2%   1.8e-04  97.5%
      outliers     q8_0    6.4e-05  99.5%   7.2e-06  99.7%   6.9e-06  99.6%
                   q4_0    1.7e-02  82.9%   1.9e-03  93.8%   2.0e-03  94.4%
                q8_0/q4_0  2.3e-04  97.9%   1.6e-04  98.4%   1.9e-04  97.6%

The rotation costs 7 to 11 % of attention over 64 positions (heads of 256, 8 queries a key)
and less than 0.5 % over 4096 (avx512; see bench_kernels other).

Standard library only; a table of 512 tokens times 1024 ids takes seconds.
"""
import argparse
import array
import math
import os
import subprocess
import sys
import tempfile

KV = "f16,q8_0,q4_0,q8_0/q4_0"


def logits_of(program, model, ids, keys, values, out):
    subprocess.run([program, "eval", model, "--exact", "--kv-k", keys, "--kv-v", values,
                    "--ids", ids, "--logits", out, "-q"], check=True, stdout=subprocess.DEVNULL)
    logits = read(out)
    os.unlink(out)
    return logits


def read(path):
    a = array.array("f")
    with open(path, "rb") as f:
        a.frombytes(f.read())
    return a


def log_softmax(row):
    top = max(row)
    total = math.log(math.fsum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def compare(exact, other, ids):
    """Returns KLD, share of equal top tokens, perplexity.  exact is a list of rows of logarithms."""
    n = len(exact[0])
    kld = nll = 0.0
    same = 0
    for i, p in enumerate(exact):
        row = other[i * n:(i + 1) * n]
        q = log_softmax(row)
        kld += math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q))
        same += max(range(n), key=p.__getitem__) == max(range(n), key=q.__getitem__)
        if i + 1 < len(ids):
            nll -= q[ids[i + 1]]
    return kld / len(exact), same / len(exact), math.exp(nll / (len(ids) - 1))


def main():
    p = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    p.add_argument("model")
    p.add_argument("ids")
    p.add_argument("programs", nargs="+")
    p.add_argument("--kv", default=KV)
    p.add_argument("--logits", nargs="*", default=[])
    o = p.parse_args()
    with open(o.ids) as f:
        ids = [int(x) for x in f.read().split()]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits")
        exact = logits_of(o.programs[0], o.model, o.ids, "f32", "f32", out)
        n = len(exact) // len(ids)
        exact = [log_softmax(exact[i:i + n]) for i in range(0, len(exact), n)]
        print(f"{'':32} {'KLD':>9} {'top-1':>7} {'ppl':>7}")
        for program in o.programs:
            for kv in ["f32"] + o.kv.split(","):
                keys, _, values = kv.partition("/")
                show(f"{os.path.basename(program)} {kv}", exact,
                     logits_of(program, o.model, o.ids, keys, values or keys, out), ids)
    for path in o.logits:
        show(os.path.basename(path), exact, read(path), ids)
    return 0


def show(name, exact, logits, ids):
    kld, same, ppl = compare(exact, logits, ids)
    print(f"{name:32} {kld:9.2g} {100 * same:6.1f}% {ppl:7.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
