#!/usr/bin/env python3
"""serve_load.py - many clients at once against `memwall serve` inside a control group.

    serve_load.py FOLDER [--requests N] [--clients 64] [--seed N] [--budget SIZE] [--stop]

The first call starts a server whose control group has the size of its budget, and leaves it
running; FOLDER has its model and its state.  Each call sends N requests, so a long load can be
divided into pieces.  --stop ends the server and prints the sums of all calls.

Most requests must be answered: completions whose text follows from the end of their prompt, and
answers of three protocols that a grammar forces to be a word of this request only.  A word of
another request, or a piece that is lost, is an error.  The others are hostile: requests and
replies that are cut at a random byte, clients that read slowly, headers and bodies without end.
A client that is refused because the server is full (503, or a closed connection before the first
byte of a reply) tries again.

The exit status is 1 if an answer was wrong or lost, if the server ended or was killed, or if it
holds a request, memory or a descriptor when nobody is connected.  Needs root for the control
group, and python3.
"""
import argparse
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
from cage import Cage, parse_size  # noqa: E402
from chain_model import chain  # noqa: E402
from gguf_edit import U32  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TIMEOUT_S = 120


class Refused(Exception):
    """The server is full."""


class Wrong(Exception):
    """An answer is not the one of its request."""


# ---- the server ----

def start(folder, budget):
    """Returns the state of a server that goes on running."""
    links = dict(zip(LETTERS, LETTERS[1:] + "a"))
    model = chain(folder, "letters", {"\n": "a", **links},
                  keys={"qwen2.context_length": (U32, 1 << 16)}).path
    cage = Cage(budget)
    log = open(os.path.join(folder, "log"), "w+")
    env = dict(os.environ, HOME=folder, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    process = subprocess.Popen(
        [os.path.join(os.environ.get("MW_BUILDDIR", os.path.join(HERE, "..", "..")), "memwall"),
         "serve", "-m", model, "--listen", "127.0.0.1:0", "--memory", str(budget), "--ctx", "8192",
         "--request-time", "10"], stderr=log, stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, env=env,
        preexec_fn=cage.enter, start_new_session=True)
    found = None
    while found is None and process.poll() is None:
        time.sleep(0.05)
        log.seek(0)
        found = re.search(r"on http://127\.0\.0\.1:(\d+)", log.read())
    if found is None:
        log.seek(0)
        sys.exit("the server did not start: " + log.read())
    state = {"pid": process.pid, "port": int(found.group(1)), "cage": cage.path, "budget": budget,
             "calls": 0, "sums": {}}
    with Client(state, random.Random(0)) as c:
        c.completion()
    state["fds"] = descriptors(state)
    return state


def descriptors(state):
    return len(os.listdir(f"/proc/{state['pid']}/fd"))


def metric(state, name):
    c = http.client.HTTPConnection("127.0.0.1", state["port"], timeout=TIMEOUT_S)
    c.request("GET", "/metrics")
    text = c.getresponse().read().decode()
    c.close()
    found = re.search(rf"^memwall_{name} (\S+)$", text, re.M)
    return float(found.group(1)) if found else 0.0


def peak(state):
    for name in "memory.max_usage_in_bytes", "memory.peak":
        path = os.path.join(state["cage"], name)
        if os.path.exists(path):
            with open(path) as f:
                return int(f.read())
    return 0


def resident(state):
    with open(f"/proc/{state['pid']}/status") as f:
        return int(re.search(r"^VmRSS:\s+(\d+)", f.read(), re.M).group(1)) * 1024


# ---- clients ----

class Client:
    """One request, on a connection of its own."""

    def __init__(self, state, r):
        self.port, self.r, self.s = state["port"], r, None

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.s is not None:
            self.s.close()

    def connect(self):
        try:
            self.s = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
        except OSError as e:
            raise Refused from e

    def send(self, path, body):
        data = json.dumps(body).encode()
        self.connect()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n"
        self.request = head.encode() + data

    def ask(self, path, body, slow=False):
        """Returns the bytes of the reply, in the pieces of a slow reader or at once."""
        self.send(path, body)
        try:
            self.s.sendall(self.request)
            response = http.client.HTTPResponse(self.s, method="POST")
            response.begin()
        except (OSError, http.client.HTTPException) as e:
            raise Refused from e
        try:
            if slow:
                pieces = []
                while piece := response.read(self.r.randint(1, 200)):
                    pieces.append(piece)
                    time.sleep(0.005)
                text = b"".join(pieces)
            else:
                text = response.read()
        except (OSError, http.client.HTTPException) as e:
            raise Wrong(f"{path}: the reply was cut: {e!r}") from e
        if response.status == 503:
            raise Refused
        if response.status != 200:
            raise Wrong(f"{path}: {response.status} {text[:300]!r}")
        return text

    # -- answers that are known --

    def completion(self, slow=False):
        """The letters after the last one of the prompt."""
        prompt = "".join(self.r.choices(LETTERS, k=self.r.choice((1, 5, 40, 300, 2000))))
        n = self.r.choice((1, 3, 20, 90))
        at = LETTERS.index(prompt[-1]) + 1
        want = "".join(LETTERS[(at + i) % 26] for i in range(n))
        stream = slow or self.r.random() < 0.5
        text = self.ask("/v1/completions", {"prompt": prompt, "max_tokens": n, "stream": stream,
                                            "temperature": 0}, slow)
        self.check(want, "".join(e["choices"][0]["text"] for e in events(text))
                   if stream else json.loads(text)["choices"][0]["text"])

    def word(self):
        return f"{self.r.getrandbits(48):012x}" * self.r.choice((1, 2, 6))

    def message(self):
        text = "".join(self.r.choices(LETTERS + " \n", k=self.r.choice((1, 30, 400))))
        return {"messages": [{"role": "user", "content": text}]}

    def chat(self):
        want, stream = self.word(), self.r.random() < 0.5
        form = ({"grammar": f'root ::= "{want}"'} if self.r.random() < 0.5 else
                {"response_format": {"type": "json_schema", "json_schema": {
                    "name": "w", "schema": {"const": want}}}})
        text = self.ask("/v1/chat/completions", {**self.message(), **form, "stream": stream})
        got = ("".join(e["choices"][0]["delta"].get("content", "") for e in events(text))
               if stream else json.loads(text)["choices"][0]["message"]["content"])
        self.check(want, got.strip('"'))

    def messages(self):
        want, stream = self.word(), self.r.random() < 0.5
        text = self.ask("/v1/messages", {
            **self.message(), "max_tokens": 200, "stream": stream, "output_config": {
                "format": {"type": "json_schema", "schema": {"const": want}}}})
        got = ("".join(e["delta"].get("text", "") for e in events(text)
                       if e["type"] == "content_block_delta")
               if stream else json.loads(text)["content"][0]["text"])
        self.check(want, got.strip('"'))

    def ollama(self):
        want, stream = self.word(), self.r.random() < 0.5
        text = self.ask("/api/chat", {**self.message(), "stream": stream,
                                      "format": {"const": want}})
        self.check(want, "".join(json.loads(line)["message"]["content"]
                                 for line in text.splitlines()).strip('"'))

    def slow(self):
        self.completion(slow=True)

    @staticmethod
    def check(want, got):
        if want != got:
            raise Wrong(f"expected {want[:80]!r}, not {got[:80]!r}")

    # -- the hostile ones: any reply is right, and none --

    def long(self):
        self.send("/v1/completions", {"prompt": "a", "max_tokens": 2000, "stream": True})

    def cut_request(self):
        self.long()
        self.s.sendall(self.request[:self.r.randrange(len(self.request))])
        self.leave()

    def cut_reply(self):
        self.long()
        self.s.sendall(self.request)
        self.s.recv(self.r.choice((1, 100, 3000)))
        self.leave()

    def leave(self):
        if self.r.random() < 0.5:  # with a reset
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.s.close()

    def push(self, first, block, n):
        """Send until the server has enough of it."""
        self.connect()
        self.s.settimeout(15)
        try:
            self.s.sendall(first)
            for _ in range(n):
                self.s.sendall(block)
            self.s.recv(1000)
        except OSError:
            pass

    def headers(self):
        self.push(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n",
                  b"X-A: " + b"y" * 500 + b"\r\n", 400)

    def body(self):
        n = 100 << 20
        self.push(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: "
                  + str(n).encode() + b"\r\n\r\n", b'{"prompt":"' + b"a" * 65525, n >> 16)

    def noise(self):
        self.push(self.r.randbytes(self.r.randint(1, 3000)), b"\r\n\r\n", 1)


def events(text):
    """The values of a stream's data lines."""
    data = [line[6:] for line in text.split(b"\n") if line.startswith(b"data: ")]
    return [e for d in data if d != b"[DONE]" for e in [json.loads(d)] if e.get("choices") != []]


GOOD = ("completion",) * 4 + ("chat",) * 2 + ("messages", "ollama", "slow")
HOSTILE = ("cut_request", "cut_reply", "cut_reply", "headers", "body", "noise")


# ---- the load ----

class Load:
    def __init__(self, state, args):
        self.state, self.left, self.lock = state, args.requests, threading.Lock()
        self.seed, self.sums, self.wrong = args.seed, {}, []

    def count(self, what):
        with self.lock:
            self.sums[what] = self.sums.get(what, 0) + 1

    def client(self, i):
        r = random.Random(self.seed * 1000003 + i)
        while True:
            with self.lock:
                self.left -= 1
                if self.left < 0:
                    return
            kind = r.choice(GOOD if r.random() < 0.85 else HOSTILE)
            for attempt in range(2000):
                try:
                    with Client(self.state, r) as c:
                        getattr(c, kind)()
                    self.count(kind)
                    break
                except Refused:
                    self.count("refused")
                    time.sleep(0.02 + 0.05 * r.random())
                except Wrong as e:
                    self.wrong.append(f"{kind}: {e}")
                    break
                except OSError:
                    if kind in HOSTILE:
                        self.count(kind)
                    else:
                        self.wrong.append(f"{kind}: the connection failed")
                    break
            else:
                self.wrong.append(f"{kind}: was always refused")

    def run(self, n):
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def settled(state):
    """Wait until nothing of clients that are gone is held.  Returns what still is."""
    for _ in range(300):
        held = {name: metric(state, name) for name in ("requests_running", "requests_waiting",
                                                       "held_bytes")}
        extra = descriptors(state) - state["fds"]
        if not any(held.values()) and metric(state, "connections") <= 1 and extra <= 1:
            return {}
        time.sleep(0.1)
    return {**held, "descriptors": extra}


def load(state, args):
    """Returns whether nothing was wrong."""
    work, begin = Load(state, args), time.monotonic()
    work.run(args.clients)
    for name, n in work.sums.items():
        state["sums"][name] = state["sums"].get(name, 0) + n
    state["calls"] += 1
    alive = os.path.exists(f"/proc/{state['pid']}/fd")
    held = settled(state) if alive else {"server": "it has ended"}
    print(f"{args.requests} requests in {time.monotonic() - begin:.1f} s, peak "
          f"{peak(state) / (1 << 20):.1f} of {state['budget'] / (1 << 20):.0f} MiB with the log, "
          f"resident {resident(state) / (1 << 20) if alive else 0:.1f}:",
          ", ".join(f"{n} {name}" for name, n in sorted(work.sums.items())))
    for line in work.wrong[:20]:
        print("wrong:", line)
    for name, value in held.items():
        print("still held:", name, value)
    return not work.wrong and not held


def stop(state):
    """Returns whether the server ended as it should."""
    try:
        os.kill(state["pid"], signal.SIGTERM)
    except ProcessLookupError:
        print("the server has ended before")
        return False
    for _ in range(100):
        with open(f"/proc/{state['pid']}/stat") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                break
        time.sleep(0.1)
        if not os.path.exists(f"/proc/{state['pid']}"):
            break
    print(f"in {state['calls']} calls, peak {peak(state) / (1 << 20):.1f} MiB:",
          ", ".join(f"{n} {name}" for name, n in sorted(state["sums"].items())))
    for _ in range(50):
        try:
            os.rmdir(state["cage"])
            return True
        except OSError:
            time.sleep(0.1)
    return False


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--requests", type=int, default=1000)
    p.add_argument("--clients", type=int, default=64)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--budget", type=parse_size, default=parse_size("128M"))
    p.add_argument("--stop", action="store_true")
    args = p.parse_args()
    path = os.path.join(args.folder, "state.json")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    os.makedirs(args.folder, exist_ok=True)
    if not os.path.exists(path) and args.stop:
        sys.exit("there is no server")
    state = json.load(open(path)) if os.path.exists(path) else start(args.folder, args.budget)
    if args.stop:
        os.remove(path)
        sys.exit(0 if stop(state) else 1)
    is_right = load(state, args)
    with open(path, "w") as f:
        json.dump(state, f)
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
