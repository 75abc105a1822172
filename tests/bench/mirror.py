#!/usr/bin/env python3
"""Two disks with a copy of the model on each, against the sum of their rates.

    tests/bench/mirror.py [--rates 80M:40M,90M:10M] [MODEL COPY]

Both disks are throttled readers of one disk (--disk-rate, --mirror-rate).  Without a model, one of
78 MB is made.  Prints for each pair: what both delivered while answers were made, its share of the
sum, and tokens per second as the plan predicts them and as they were measured.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import wide_chain  # noqa: E402
from program import BUILDDIR, MEMWALL, environment  # noqa: E402

ARGUMENTS = ("-b", "64M", "-c", "512", "-t", "2", "--blas", "never", "--draft", "off")


def size(text):
    return float(text[:-1]) * {"M": 1e6, "G": 1e9}[text[-1]]


def measure(model, copy, home, rates):
    two = ("--disk-rate", rates[0], "--mirror", copy, "--mirror-rate", rates[1])
    run = {"env": environment(home), "capture_output": True, "text": True, "check": True}
    plan = json.loads(subprocess.run([MEMWALL, "plan", model, *ARGUMENTS, *two, "--json"],
                                     **run).stdout)
    log = os.path.join(home, "log")
    subprocess.run([MEMWALL, "run", "-m", model, *ARGUMENTS, *two, "-n", "12", "--temp", "0",
                    "--telemetry", log, "hi"], **run)
    with open(log, encoding="utf-8") as f:
        seconds = [r for r in map(json.loads, f) if "model_disk_bytes" in r.get("io", {})]
    os.unlink(log)
    first, last = seconds[0], seconds[-1]
    read = sum(last["io"][k] - first["io"][k] for k in ("model_disk_bytes", "mirror_bytes"))
    rate = read / (last["t_ns"] - first["t_ns"]) * 1e9
    total = size(rates[0]) + size(rates[1])
    token = last["token"]
    tps = (token["n_decoded"] - 1) / (token["t_last_ns"] - token["t_first_ns"]) * 1e9
    print(f"{rates[0]:>6} + {rates[1]:>5}: {rate / 1e6:6.1f} MB/s, {100 * rate / total:5.1f} % of "
          f"the sum; predicted {plan['decode_tps']:5.2f} tok/s, measured {tps:5.2f}")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rates", default="60M:60M,80M:40M,90M:30M,90M:18M,90M:10M")
    p.add_argument("files", nargs="*")
    o = p.parse_args()
    with tempfile.TemporaryDirectory(dir=BUILDDIR) as home:
        if o.files:
            model, copy = o.files
        else:
            model, copy = wide_chain(home, "model"), os.path.join(home, "copy.gguf")
            shutil.copy(model, copy)
        for pair in o.rates.split(","):
            measure(model, copy, home, pair.split(":"))


if __name__ == "__main__":
    main()
