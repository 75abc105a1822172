#!/usr/bin/env python3
"""instructions.py - instructions for 512 weights, and the cycles that they take at least.

    instructions.py BENCH_INSTRUCTIONS SET [--columns 1,2,4,8] [TYPE...]

The work of 32 rows of 2048 values, from one process that executes products step by step
(bench_instructions.c), divided into 512 weights.  A row of the table is a type, a form and
a number of columns:

    all     instructions
    vector  vector arithmetic, shuffles and conversions among them (a load that is an operand of one
            counts as a load, too)
    mul     multiplications, multiply-adds and dot products
    load    loads of any size
    4, 2    the cycles on a processor with four vector pipes, of which two multiply (Zen 5), and on
            one with two pipes for vectors of 64 bytes (Sapphire Rapids).  Both load twice a cycle,
            and begin 8 and 6 instructions: the largest of all / 8 or 6, load / 2, vector / 4 or 2,
            mul / 2.
"""
import argparse
import collections
import re
import subprocess
import sys

ROWS, N_K = 32, 2048
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K",
         "IQ4_NL", "MXFP4", "IQ4_XS")
# A vector register is written or compared: moves between registers and memory are not arithmetic.
MOVES = re.compile(r"^v?(mov(ap|up|dq|d|q|ss|sd|hp|lp)|lddqu|zeroupper)")
MULTIPLIES = re.compile(r"^v?(pmul|pmadd|mulp|muls|f(n)?m(add|sub)|pdpbus|tdp)")


def disassemble(program):
    """Address -> (mnemonic, operands)."""
    r = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-w", program], check=True,
                       capture_output=True, text=True)
    found = {}
    for line in r.stdout.splitlines():
        m = re.match(r"\s*([0-9a-f]+):\t(\S+)\s*(.*)", line)
        if m:
            found[int(m.group(1), 16)] = (m.group(2), m.group(3).split("#")[0].strip())
    return found


def classes(mnemonic, operands):
    yield "all"
    is_vector = re.search(r"%[xyzk]mm|%k[0-7]", operands) is not None
    if "(" in operands and not mnemonic.startswith(("lea", "prefetch", "nop")):
        is_store = operands.endswith(")") or re.search(r"\)\{%k\d\}$", operands)
        if not is_store:
            yield "load"
    if is_vector and mnemonic.startswith(("vbroadcast", "vpbroadcast")) and "(" in operands:
        return  # a load does it
    if is_vector and not MOVES.match(mnemonic):
        yield "vector"
        if MULTIPLIES.match(mnemonic):
            yield "mul"


def steps(program, code, *args):
    r = subprocess.run([program, *map(str, args)], capture_output=True, text=True, check=False)
    if r.returncode != 0:
        return None
    n = collections.Counter()
    for line in r.stdout.splitlines():
        address, count = line.split()
        for c in classes(*code[int(address, 16)]):
            n[c] += int(count)
    return n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("set")
    p.add_argument("types", nargs="*", default=TYPES)
    p.add_argument("--columns", default="1,2,4,8")
    a = p.parse_args()
    code = disassemble(a.program)
    print("| type | form | columns | all | vector | mul | load | 4 pipes | 2 pipes |")
    print("|---" * 9 + "|")
    for kind in a.types:
        for form in ("file", "interleaved"):
            for columns in map(int, a.columns.split(",")):
                few = steps(a.program, code, a.set, kind, form, ROWS, columns)
                many = steps(a.program, code, a.set, kind, form, 2 * ROWS, columns)
                if few is None or many is None:
                    break
                n = {c: (many[c] - few[c]) * 512 / (ROWS * N_K) for c in many}
                bound = [max(n["all"] / width, n["load"] / 2, n["vector"] / pipes, n["mul"] / 2)
                         for width, pipes in ((8, 4), (6, 2))]
                print(f"| {kind} | {form} | {columns} | " +
                      " | ".join(f"{n[c]:.0f}" for c in ("all", "vector", "mul", "load")) +
                      f" | {bound[0]:.1f} | {bound[1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
