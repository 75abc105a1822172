#!/usr/bin/env python3
"""cage.py - prove the promise of the budget: run inside a control group of exactly that size.

    cage.py MEMWALL LIMITS MODEL [--budgets 256M,512M,…] [-n TOKENS] [--cold]

MEMWALL is the program, LIMITS the benchmark tests/bench/bench_limits, MODEL a model file.  For
every budget, the program answers the same question greedily inside a control group (v1 or v2)
whose limit is the budget, without swap.  A table shows the peak that the kernel charged, the
bytes of the model that remain in the page cache, the decoding rate, and the rate that the
limits of the machine allow:

    limit = min(direct-read bandwidth / bytes read per token, memory bandwidth / hot bytes)

Both bandwidths are measured again before each budget, because a shared disk changes by the
minute.  With --cold every run is a first start: it uses copies of the program and of its
libraries that are not in the page cache, so that reading them is charged to the run.

The exit status is 1 if a promise is broken: the program was killed, the peak is above the
budget, a page of the model is in the cache, or the answer differs from that of the first
budget.  A ratio below 0.85 is marked.  It is a measurement, not an error.

Needs only root and python3.
"""
import argparse
import ctypes
import json
import mmap
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

V1 = "/sys/fs/cgroup/memory"
V2 = "/sys/fs/cgroup"
QUESTION = "Why is the sky blue, and what makes it red in the evening?"


def parse_size(text, kilo=1024):
    m = re.fullmatch(r"([0-9.]+)([KMG]?)", text)
    if not m:
        sys.exit(f"not a size: {text}")
    return int(float(m[1]) * kilo ** " KMG".index(m[2] or " "))


def write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


def read(path):
    with open(path) as f:
        return f.read()


class Cage:
    """A new control group.  Processes enter it between fork and exec."""

    def __init__(self, limit):
        self.v1 = os.path.exists(f"{V1}/memory.limit_in_bytes")
        root = V1 if self.v1 else V2
        self.path = f"{root}/memwall-bench.{os.getpid()}"
        if not self.v1:
            write(f"{V2}/cgroup.subtree_control", "+memory")
        os.mkdir(self.path)
        if self.v1:
            write(f"{self.path}/memory.limit_in_bytes", limit)
            try:
                write(f"{self.path}/memory.memsw.limit_in_bytes", limit)
            except OSError:
                write(f"{self.path}/memory.swappiness", 0)
        else:
            write(f"{self.path}/memory.max", limit)
            write(f"{self.path}/memory.swap.max", 0)

    def enter(self):
        write(f"{self.path}/cgroup.procs", os.getpid())

    def peak(self):
        name = "memory.max_usage_in_bytes" if self.v1 else "memory.peak"
        return int(read(f"{self.path}/{name}"))

    def kills(self):
        name = "memory.oom_control" if self.v1 else "memory.events"
        found = re.search(r"^oom_kill (\d+)", read(f"{self.path}/{name}"), re.M)
        return int(found[1]) if found else 0

    def close(self):
        os.rmdir(self.path)


def cached_bytes(path):
    """Returns the bytes of a file in the page cache, by mincore."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    size, page, total, step = os.path.getsize(path), mmap.PAGESIZE, 0, 1 << 30
    with open(path, "rb") as f:
        for at in range(0, size, step):
            n = min(step, size - at)
            vec = (ctypes.c_ubyte * ((n + page - 1) // page))()
            p = libc.mmap(None, n, mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(), at)
            if libc.mincore(ctypes.c_void_p(p), ctypes.c_size_t(n), vec) == 0:
                total += sum(v & 1 for v in vec) * page
            libc.munmap(ctypes.c_void_p(p), ctypes.c_size_t(n))
    return total


def drop_cache(path):
    with open(path, "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class ColdCopy:
    """Copy the program and its libraries to a folder, and drop them from the page cache."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="memwall-cold.", dir="/var/tmp")
        self.program = os.path.join(self.folder, os.path.basename(program))
        shutil.copy(program, self.program)
        loaded = subprocess.run([program], env=dict(os.environ, LD_TRACE_LOADED_OBJECTS="1"),
                                capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"=> (/\S+) \(0x", loaded):
            shutil.copy(path, os.path.join(self.folder, path.split("/")[-1]))
        os.environ["LD_LIBRARY_PATH"] = self.folder

    def drop(self):
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            with open(path, "rb") as f:
                os.fdatasync(f.fileno())
            drop_cache(path)

    def close(self):
        shutil.rmtree(self.folder)


def run_caged(command, limit, seconds=None):
    """Raises subprocess.TimeoutExpired after that many seconds, when the process was killed."""
    cage = Cage(limit)
    try:
        p = subprocess.run(command, preexec_fn=cage.enter, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=seconds)
        return p, cage.peak(), cage.kills()
    finally:
        cage.close()


def token_lines(path):
    with open(path) as f:
        return [r for r in map(json.loads, f) if r.get("event") == "token"]


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("memwall")
    ap.add_argument("limits")
    ap.add_argument("model")
    ap.add_argument("--budgets", default="256M,512M,1G,2G,4G,6G")
    ap.add_argument("-n", type=int, default=8, help="tokens to decode")
    ap.add_argument("--ctx", type=int, default=4096)
    ap.add_argument("--cold", action="store_true",
                    help="start the program each time as if it had never been read")
    ap.add_argument("--telemetry", default="/tmp/memwall-cage.jsonl")
    a = ap.parse_args()
    broken, first = [], None
    copy = ColdCopy(a.memwall) if a.cold else None
    program = copy.program if copy else a.memwall

    print(f"{'budget':>8} {'peak MiB':>9} {'cached':>7} {'kills':>5} {'read GB/tok':>11} "
          f"{'disk GB/s':>9} {'mem GB/s':>8} {'tok/s':>7} {'limit':>7} {'ratio':>6} "
          f"{'first s':>8}  same")
    for text in a.budgets.split(","):
        budget = parse_size(text)
        limits = json.loads(subprocess.check_output([a.limits, a.model]))
        drop_cache(a.model)
        if copy:
            copy.drop()
        command = [program, "run", "-m", a.model, "-b", str(budget), "-c", str(a.ctx), "-n",
                   str(a.n), "--temp", "0", "--json", "-q", "--force", "--telemetry", a.telemetry,
                   QUESTION]
        p, peak, kills = run_caged(command, budget)
        if p.returncode != 0:
            broken.append(f"{text}: exit status {p.returncode}: {p.stderr.strip()}")
            print(f"{text:>8} {peak / 2**20:9.1f} {'':>7} {kills:5}  {p.stderr.strip()}")
            continue
        done = json.loads(p.stdout.splitlines()[-1])
        tokens = token_lines(a.telemetry)
        # The first token comes from the prompt's pass, which also fills pinned blocks.
        passes = [t for t in tokens if t["n_col"] == 1] or tokens[1:]
        wall = statistics.median(t["wall_ns"] for t in passes) / 1e9
        streamed = statistics.median(t["bytes_pass"] for t in passes)
        hot = limits["hot_bytes"]
        bound = 1 / max(streamed / limits["disk_bytes_s"], hot / limits["memory_bytes_s"])
        cached = cached_bytes(a.model)
        same = first is None or done["text"] == first
        first = done["text"] if first is None else first
        ratio = 1 / wall / bound
        print(f"{text:>8} {peak / 2**20:9.1f} {cached:7} {kills:5} {streamed / 1e9:11.3f} "
              f"{limits['disk_bytes_s'] / 1e9:9.2f} {limits['memory_bytes_s'] / 1e9:8.1f} "
              f"{1 / wall:7.3f} {bound:7.3f} {ratio:6.2f}{'' if ratio >= 0.85 else '*'} "
              f"{done['first_ns'] / 1e9:8.1f}  {'yes' if same else 'NO'}", flush=True)
        if kills:
            broken.append(f"{text}: killed")
        if peak > budget:
            broken.append(f"{text}: {peak} bytes charged, {budget} allowed")
        if cached:
            broken.append(f"{text}: {cached} bytes of the model in the page cache")
        if not same:
            broken.append(f"{text}: another answer")
    if copy:
        copy.close()
    for line in broken:
        print(f"broken: {line}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
