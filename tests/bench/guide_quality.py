#!/usr/bin/env python3
"""guide_quality.py - measure the quality that weight types and KV types cost, on the guide.

    guide_quality.py F32.gguf [--quantize COMMAND] [--types Q8_0,...] [--kv q8_0,...]

F32.gguf is the guide as `export.py --type f32` writes it.  COMMAND is llama-quantize, with the
words before it that start it; all matrices get one type (--pure).  The table has the perplexity
of the right answers to the held-back questions, the share of questions answered right, and the
size of the file.  KV types are measured with the weights of F32.gguf.

llama-quantize keeps per_layer_model_proj in F32.  The six proj matrices have rows of 128:
where a type has blocks of 256 they fall back to another type (Q4_K to Q5_0).
"""
import argparse
import math
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guide  # noqa: E402

TYPES = ("F16,BF16,Q8_0,Q6_K,Q5_K,Q5_1,Q5_0,Q4_K,Q4_1,Q4_0,IQ4_NL,IQ4_XS,MXFP4_MOE,Q3_K,IQ3_S,"
         "IQ3_XXS,Q2_K")
KV = "f32,f16,q8_0,q4_0,q8_0/q4_0"


def quantize(command, source, target, kind):
    done = subprocess.run([*shlex.split(command), "--pure", source, target, kind],
                          capture_output=True)
    return done.returncode == 0


def measure(name, corpus, model, *options):
    asked = guide.conversations(corpus)
    losses, right = [], 0
    for topic, messages in asked:
        losses += guide.losses(topic, messages, *options, model=model)
        right += topic.is_right(guide.answer(messages, *options, model=model))
    print(f"| {name} | {os.path.getsize(model) / 1e6:.2f} | "
          f"{math.exp(sum(losses) / len(losses)):.4f} | {right} of {len(asked)} |", flush=True)


def main():
    p = argparse.ArgumentParser(description="Measure weight types and KV types on the guide.")
    p.add_argument("model", help="the guide with F32 matrices")
    p.add_argument("--quantize", metavar="COMMAND", help="measure weights, made by COMMAND")
    p.add_argument("--types", default=TYPES, help="set the weight types")
    p.add_argument("--kv", default=KV, help="set the KV types: BOTH or KEYS/VALUES")
    args = p.parse_args()
    corpus = guide.corpus_module.Corpus()
    print("| weights / KV | MB | perplexity | right |\n|---|---|---|---|")
    for kv in args.kv.split(",") if args.kv else ():
        keys, _, values = kv.partition("/")
        measure("F32 / " + kv, corpus, args.model, "--kv-k", keys, "--kv-v", values or keys)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "guide.gguf")
        for kind in args.types.split(",") if args.quantize else ():
            if quantize(args.quantize, args.model, path, kind):
                measure(kind + " / f16", corpus, path)
            else:
                print(f"| {kind} / f16 | not made | | |")


if __name__ == "__main__":
    main()
