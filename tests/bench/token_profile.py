#!/usr/bin/env python3
"""token_profile.py - where the time of a token goes when all weights are in memory.

    token_profile.py MEMWALL MODEL.gguf… [-n TOKENS] [-t THREADS] [--depth TOKENS] [--isa NAME]
                     [--json FILE] [--recordings FOLDER]

Records `memwall bench` with perf, and groups the functions of its last samples: those of the
answer, whose length is TOKENS / the measured tok/s.  Kernel events are counted by the clock, so
it works in virtual machines, too.  Needs perf and a program with symbols (not stripped), and
perf has to be allowed to see the kernel (as root it is).

The table has the share of the answer for each row:

    caller   of the thread that calls pool_run() and does everything that is not split
    others   of all other threads that compute, on average

Waiting rows are short if threads end together.  A thread without samples slept or had no
processor ("not running").  "outside of products" is the caller's time without the rows of
products and without its waiting for the end of rounds.  With --recordings, recordings are kept
there, and an existing one is not made again.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HZ = 4000

# The first row whose pattern is found in the chain of functions, innermost first.
ROWS = [
    ("products", r"^(mul_|set_mul|add_patched|widen_|copy_tails|blas_|pool_rows|set_unpack|packed_open)"),
    ("packing of columns", r"^(set_)?act_pack"),
    ("norms", r"rms_norm"),
    ("sums and scales", r"^(residual_col|set_add|set_scale|scale_col)"),
    ("rope", r"^rope_"),
    ("attention", r"^(set_attn|attend_|forward_attend|set_rotate|kv_keys|kv_values)"),
    ("keys and values", r"^(set_kv_store|kv_|store_col)"),
    ("delta nets", r"^(set_delta|forward_delta|delta_)"),
    ("activation function", r"^(set_gelu|set_silu|set_sigmoid|gate_col)"),
    ("rows of tables", r"^(set_dequant|dequant_|embed|table_part|ple_|look_up|row_cache|list_rows|stream_lookup)"),
    ("logits", r"^(set_softcap|are_finite|forward_check|softcap_)"),
    ("sampling", r"^(greatest_of|has_above|mw_sampl|sampler_|take_greatest|sink|is_before|to_shares|pop|make_heap)"),
    ("experts", r"^(forward_route|forward_experts|expert_)"),
    ("waiting for parts of others", r"^(pool_run|wait_for_workers|run_parts)"),
    ("waiting for a round", r"^(wait_for_round|work)$"),
    ("blocks of the stream", r"^(stream_|pinned_|schedule_|await_block|find_block|forward_mul|add_(block|streamed|held))"),
    ("telemetry", r"^(telemetry_|counter_|accounted|publish|pool_wait|waited_ns|caller_waited|kernel_file|clock_ns|__vdso|cpu_ns)"),
]
PATTERNS = [(name, re.compile(p)) for name, p in ROWS]
PRODUCT_ROWS = ("products", "waiting for parts of others")


def record(a, model, to):
    command = ["perf", "record", "-q", "-F", str(HZ), "-e", "cpu-clock", "-g", "-o", to + ".data", "--", a.memwall,
               "bench", model, "-b", a.memory, "-p", "16", "-n", str(a.n), "-t", str(a.t), "-r", "1", "-d",
               str(a.depth), "--json", "--quiet"]
    if a.isa:
        command += ["--isa", a.isa]
    with open(to + ".json", "w", encoding="utf-8") as out:
        if subprocess.run(command, stdout=out, check=False).returncode != 0:
            os.remove(to + ".json")
            sys.exit(f"cannot record {model}")


def samples(data):
    """Yields process, thread, name of the thread, time, and functions from the innermost one."""
    r = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,tid,time,ip,sym"], check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    for text in r.stdout.split("\n\n"):
        lines = text.strip("\n").split("\n")
        head = re.match(r"(.*?)\s+(\d+)/(\d+)\s+([\d.]+):", lines[0])
        if head:
            yield (int(head[2]), int(head[3]), head[1].strip(), float(head[4]),
                   [line.split(None, 1)[1] if " " in line.strip() else "?" for line in lines[1:]] or ["?"])


def row_of(chain):
    """Page faults and sleeping come first: they are rows of their own in all functions."""
    if any("page_fault" in f for f in chain):
        return "page faults"
    if any(f.startswith(("do_futex", "__x64_sys_futex", "futex_")) for f in chain):
        return "sleep and wake"
    for function in chain:
        for name, pattern in PATTERNS:
            if pattern.search(function):
                return name
    return "other"


def profile(data, bench, n):
    point = bench["points"][0]
    if point["status"] != "ok":
        sys.exit(point["error"])
    seconds = n / point["median"]["decode_tps"]
    every = [(*s[:4], row_of(s[4]), s[4]) for s in samples(data)]
    pid = [s[0] for s in every if s[2] == "worker"][-1:] or [s[0] for s in every if s[4] == "products"][-1:]
    mine = [s for s in every if s[0] == pid[0]]
    end = max(s[3] for s in mine if s[4] == "products")
    mine = [s for s in mine if end - seconds <= s[3] <= end]
    names = {s[1]: s[2] for s in mine}
    others = [t for t, name in names.items() if name == "worker"]
    count = collections.Counter((s[1], s[4]) for s in mine)
    unknown = collections.Counter(s[5][0] for s in mine if s[4] == "other" and s[1] in (*others, pid[0]))

    def share(threads, row):
        return sum(count[t, row] for t in threads) / HZ / seconds / len(threads) if threads else 0

    rows = {}
    for row in (*(name for name, _ in ROWS), "sleep and wake", "page faults", "other"):
        pair = {"caller": share([pid[0]], row), "others": share(others, row)}
        if max(pair.values()) >= 0.0005:
            rows[row] = pair
    rows["not running"] = {k: max(1 - sum(r[k] for r in rows.values()), 0) for k in ("caller", "others")}
    busy = sum(rows.get(row, {"caller": 0})["caller"] for row in PRODUCT_ROWS)
    return {"tokens_per_s": n / seconds, "ms_per_token": 1000 * seconds / n, "n_worker": len(others), "rows": rows,
            "outside_of_products": 1 - busy - rows["not running"]["caller"],
            "unknown": dict(unknown.most_common(8))}


def table(found):
    print("| model | ms per token | row | caller | others |\n|" + "---|" * 5)
    for model, p in found.items():
        first = f"| {model} | {p['ms_per_token']:.2f} |"
        for row, pair in sorted(p["rows"].items(), key=lambda r: -r[1]["caller"]):
            print(f"{first} {row} | {pair['caller']:.1%} | {pair['others']:.1%} |")
            first = "| | |"
        print(f"| | | **outside of products** | {p['outside_of_products']:.1%} | |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("memwall")
    p.add_argument("models", nargs="+")
    p.add_argument("-n", type=int, default=200)
    p.add_argument("-t", type=int, default=os.cpu_count())
    p.add_argument("--depth", type=int, default=0, help="tokens in memory before the answer")
    p.add_argument("--memory", default="80%", help="the budget, which has to hold all weights")
    p.add_argument("--isa", help="a set of kernels")
    p.add_argument("--json", metavar="FILE", help="write the table there, too")
    p.add_argument("--recordings", metavar="FOLDER")
    a = p.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in a.models:
            name = os.path.splitext(os.path.basename(model))[0]
            to = os.path.join(a.recordings or folder, name)
            if not os.path.exists(to + ".json"):
                record(a, model, to)
            with open(to + ".json", encoding="utf-8") as f:
                found[name] = profile(to + ".data", json.load(f), a.n)
    table(found)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)


if __name__ == "__main__":
    main()
