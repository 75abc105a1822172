#!/usr/bin/env python3
"""ram_table.py - a table of models and machines: what they do in 4 to 32 GB.

    ram_table.py MEMWALL DISK_RATE MODEL [MODEL ...]

Runs "memwall plan" for each file or known model ("gemma-4-E2B:Q4_0") with three quarters of the
memory as budget and a disk of DISK_RATE ("2G" is 2 GB a second), and prints Markdown.  The rates
of memory and of arithmetic are those of the machine at hand, so it should have nothing else to
do.
"""
import json
import subprocess
import sys

GB = 1 << 30
MACHINES = (4, 8, 16, 32)


def plan(memwall, rate, path, budget):
    r = subprocess.run([memwall, "plan", path, "--json", "--what-if", f"DISK={rate}/s",
                        "--ctx", "4096", "--memory", str(budget)], stdout=subprocess.PIPE, check=False, text=True)
    return json.loads(r.stdout)


def cell(p):
    if not p["fits"]:
        return "does not fit"
    speed = f"{p['decode_tps']:.2g} tok/s"
    return speed if p["streamed_bytes"] > 0 else f"**{speed}**"


def size(mib):
    """As the program writes it."""
    return f"{mib} MiB" if mib < 1024 else f"{mib / 1024:.2f} GiB"


def main():
    memwall, rate, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    print("| model | file | smallest budget |" + "".join(f" {m} GB |" for m in MACHINES))
    print("|---|---|---|" + "---|" * len(MACHINES))
    for path in files:
        plans = [plan(memwall, rate, path, m * GB * 3 // 4) for m in MACHINES]
        p = plans[0]
        print(f"| {p['model']} | {p['file_bytes'] / 1e9:.1f} GB "
              f"| {size(p['smallest_budget_bytes'] >> 20)} |"
              + "".join(f" {cell(p)} |" for p in plans))


if __name__ == "__main__":
    main()
