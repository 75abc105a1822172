#!/usr/bin/env python3
"""drafts_peer.py - drafts of memwall beside speculative decoding of llama.cpp.

    drafts_peer.py MEMWALL "LLAMA-SERVER …" MODEL.gguf --file DRAFT.gguf [--accept 0.5,0.7,0.9]
                   [--tokens 48] [--rounds 2] [--memory 17G] [-t 2] [--port 8177]
    drafts_peer.py MEMWALL "LLAMA-SERVER …" MODEL.gguf --prompt TEXT.txt [--spec ngram-simple]
                   [--tokens 400] [--rounds 2] [--memory 17G] [-t 2] [--port 8177]

All weights stay in memory, since llama.cpp has no budget.  With --file, DRAFT.gguf drafts for both
programs, and both simulate that these shares of the drafts are right ("--draft-accept" of memwall
bench, "--spec-synth-rates" of llama.cpp, which drafts 8 tokens at most).  With --prompt, both
continue the text of a file greedily, with drafts from the words before (ngram, and the kind that
--spec names).

Settings are tried in turn, the two programs one after the other.  The table has the median of the
rounds, and times is relative to the same program without drafts.
"""
import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

N_DRAFT = 8
START_S = 300  # of reading a model


def ours(o, *drafts):
    """Tokens per second, and tokens per pass."""
    if o.file:
        command = ["bench", "-m", o.model, "-b", o.memory, "-c", "1024", "-p", "16", "-n",
                   str(o.tokens), "-r", "1", "-t", str(o.t), "--json", "-q", *drafts]
    else:
        command = ["run", "-m", o.model, "--raw", "--temp", "0", "-n", str(o.tokens), "-b",
                   o.memory, "-t", str(o.t), "--json", *drafts, "-f", o.prompt]
    r = subprocess.run([o.memwall, *command], stdout=subprocess.PIPE, check=True, text=True)
    r = json.loads(r.stdout.splitlines()[-1])
    if o.file:
        r = r["points"][0]["runs"][0]
        return r["decode_tps"], r.get("tokens_per_pass") or 1
    return ((r["n_decoded"] - 1) / (r["decode_ns"] / 1e9),
            (r["n_pass"] + r["n_accepted"]) / r["n_pass"])


def ask(url, prompt, n):
    body = {"prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True,
            "cache_prompt": False}
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as f:
        return json.load(f)["timings"]


def theirs(o, *drafts):
    """The same of llama.cpp, after an answer that warms it up."""
    url = f"http://127.0.0.1:{o.port}"
    command = [*shlex.split(o.server), "-m", os.path.abspath(o.model), "--port", str(o.port), "-t",
               str(o.t), "-c", "4096", "-np", "1", "--no-warmup", *drafts]
    with tempfile.TemporaryFile() as log:
        p = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            end = time.monotonic() + START_S
            while True:
                try:
                    with urllib.request.urlopen(url + "/health") as f:
                        if json.load(f)["status"] == "ok":
                            break
                except OSError:
                    pass
                if p.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    sys.exit(f"{shlex.join(command)}: {log.read()[-1000:].decode()}")
                time.sleep(0.2)
            prompt = "the the the the"
            if o.prompt:
                with open(o.prompt, encoding="utf-8") as f:
                    prompt = f.read()
            ask(url, "the", 4)
            t = ask(url, prompt, o.tokens)
        finally:
            os.killpg(p.pid, signal.SIGTERM)
            p.wait()
    n_pass = t["predicted_n"] - t.get("draft_n_accepted", 0)
    return t["predicted_per_second"], t["predicted_n"] / max(n_pass, 1)


def settings(o):
    """Names, and the options of both programs."""
    yield "off", ("--draft", "off"), ()
    if o.file:
        for p in o.accept.split(","):
            rates = ",".join(f"{float(p) ** i:.4f}" for i in range(1, N_DRAFT + 1))
            yield (f"a model, {p}", ("--draft", o.file, "--draft-accept", p),
                   ("--spec-type", "draft-simple", "-md", os.path.abspath(o.file), "-td", str(o.t),
                    "--spec-draft-n-max", str(N_DRAFT), "--spec-synth-rates", rates))
    else:
        yield "ngram", ("--draft", "ngram"), ("--spec-type", o.spec)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("memwall")
    p.add_argument("server")
    p.add_argument("model")
    p.add_argument("--file")
    p.add_argument("--accept", default="0.5,0.7,0.9")
    p.add_argument("--prompt")
    p.add_argument("--spec", default="ngram-simple")
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--memory", default="17G")
    p.add_argument("-t", type=int, default=2)
    p.add_argument("--port", type=int, default=8177)
    o = p.parse_args()
    if bool(o.file) == bool(o.prompt):
        p.error("give --file or --prompt")
    measured = {}
    for _ in range(o.rounds):
        for name, for_us, for_them in settings(o):
            for who, (tps, per_pass) in (("memwall", ours(o, *for_us)),
                                         ("llama.cpp", theirs(o, *for_them))):
                measured.setdefault((name, who), []).append((tps, per_pass))
                print(f"{name}: {who} {tps:.2f} tok/s, {per_pass:.2f} tokens a pass",
                      file=sys.stderr)
    middle = {key: [statistics.median(x) for x in zip(*rows)] for key, rows in measured.items()}
    print(f"load {os.getloadavg()[0]:.1f}\n\n| drafts | memwall tok/s | times | tokens a pass "
          "| llama.cpp tok/s | times | tokens a pass |\n|---|---|---|---|---|---|---|")
    for name, _, _ in settings(o):
        cells = []
        for who in "memwall", "llama.cpp":
            tps, per_pass = middle[name, who]
            cells += [f"{tps:.2f}", f"{tps / middle['off', who][0]:.2f}", f"{per_pass:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
