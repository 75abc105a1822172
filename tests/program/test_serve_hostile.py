#!/usr/bin/env python3
"""memwall serve: clients that flood, cut, stall, or send what is not HTTP."""
import json
import os
import random
import re
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell, wide_chain  # noqa: E402
from gguf_edit import U32  # noqa: E402
from program import TIMEOUT_S, FolderCase, memwall  # noqa: E402
from server import Server, comment, events_of, user  # noqa: E402

CHAT = "/v1/chat/completions"
MIB = 1 << 20


def head(length, *more):
    return "\r\n".join((f"POST {CHAT} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}",
                        *more, "", "")).encode()


# A request without its body, and the end of what comes when the server has read it.
EXPECTED = head(1000, "Expect: 100-continue"), b"\r\n\r\n"


def send_all(s, blocks):
    """Send until the other side has closed.  Returns the bytes that were taken."""
    n = 0
    try:
        for block in blocks:
            s.sendall(block)
            n += len(block)
    except OSError:
        pass
    return n


def read_all(s):
    """Everything until the other side closes."""
    data = b""
    try:
        while block := s.recv(65536):
            data += block
    except OSError:
        pass
    s.close()
    return data


class Hostile(FolderCase):
    def says(self, *parts):
        return chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>")).path

    def endless(self):
        return chain(self.folder, "endless", {"\n": "a", "a": "b", "b": "a"},
                     keys={"qwen2.context_length": (U32, 1 << 20)}).path

    def lives(self, s):
        self.assertEqual("Hey.", s.post(CHAT, user())[1]["choices"][0]["message"]["content"])

    def test_a_flood_of_headers(self):
        with Server("-m", self.says("Hey.")) as s:
            self.lives(s)
            before = s.status("VmRSS")
            for line in b"X-A: b\r\n", b"X-" + b"a" * 60000 + b": b\r\n", b"a" * 70000, \
                    b"X: " + b"\xff" * 70000:
                c = s.socket()
                send_all(c, [f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()] +
                         [line] * (4 * MIB // len(line)))
                answer = read_all(c)
                self.assertRegex(answer[:12].decode() or "HTTP/1.1 431", r"^HTTP/1.[01] 4")
            self.assertLess(s.status("VmRSS"), before + 4 * MIB)
            self.lives(s)

    def test_a_method_of_any_length(self):
        """The log has a part of it."""
        with Server("-m", self.says("Hey.")) as s:
            for n in 1, 800, 850, 900, 3000, 6000:
                c = s.socket()
                c.sendall(b"M" * n + b" /path%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % n)
                self.assertIn(b" 404 ", c.recv(20))
                c.close()
                self.assertIsNotNone(s.line(rf" M{{1,20}} /path{n} 404 in \d+\.\d\d s$"))
            self.lives(s)

    def test_a_body_of_100_MB(self):
        with Server("-m", self.says("Hey.")) as s:
            self.lives(s)
            before = s.status("VmHWM")
            block = b'{"messages":[' + b" " * MIB
            c = s.socket()
            c.sendall(head(100 * MIB))
            self.assertIn(b"413", c.recv(64))
            send_all(c, [block] * 100)
            c.close()
            c = s.socket()
            c.sendall(head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
            send_all(c, [b"%x\r\n%s\r\n" % (len(block), block)] * 100 + [b"0\r\n\r\n"])
            self.assertIn(b"413", read_all_until(c, b"413"))
            c.close()
            self.assertLess(s.status("VmHWM"), before + 6 * MIB)
            self.lives(s)

    def test_many_bodies_at_once_share_their_memory(self):
        with Server("-m", self.says("Hey.")) as s:
            self.lives(s)
            before = s.status("VmHWM")
            clients = [s.socket() for _ in range(40)]
            for c in clients:
                c.sendall(head(500000) + b"x" * 490000)
            # All of it was sent; the server has read it or has refused it.
            self.lives(s)
            for c in clients:
                send_all(c, [b"x" * 10000])
            statuses = {c.recv(12) for c in clients}
            self.assertIn(b"HTTP/1.1 503", statuses)
            self.assertEqual(set(), statuses - {b"HTTP/1.1 503", b"HTTP/1.1 400"})
            for c in clients:
                c.close()
            self.assertLess(s.status("VmHWM"), before + 16 * MIB)
            self.lives(s)

    def test_connections_that_are_cut_anywhere(self):
        chance = random.Random(1)
        with Server("-m", self.says("Hey.")) as s:
            self.lives(s)
            fds = len(os.listdir(f"/proc/{s.process.pid}/fd"))
            for stream in False, True:
                body = json.dumps(user(stream=stream)).encode()
                request = head(len(body)) + body
                for cut in range(0, len(request) + 1, 3):
                    c = s.socket()
                    c.sendall(request[:cut])
                    if chance.random() < 0.5:
                        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    c.close()
                for cut in range(0, 150, 10):
                    c = s.socket()
                    c.sendall(request)
                    while cut > 0 and (block := c.recv(cut)):
                        cut -= len(block)
                    c.close()
            self.lives(s)
            for _ in range(1000):
                if len(os.listdir(f"/proc/{s.process.pid}/fd")) <= fds:
                    break
                self.lives(s)
            self.assertLessEqual(len(os.listdir(f"/proc/{s.process.pid}/fd")), fds)
            self.assertEqual((0, 0), (s.metric("held_bytes"), s.metric("requests_waiting")))

    def test_slow_readers_hold_up_nobody(self):
        with Server("-m", self.endless(), "--ctx", "40k", "--kv", "q4_0") as s:
            slow = []
            for _ in range(2):
                c = s.connect()
                c.connect()
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                c.request("POST", CHAT, json.dumps(user(stream=True, max_tokens=8000)))
                slow.append(c)
            c, r = s.open(CHAT, user(stream=True, max_tokens=4))
            self.assertEqual("abab", self.text(r))
            c.close()
            # The system takes some megabytes for them; the server keeps the rest as text.
            end = time.monotonic() + TIMEOUT_S
            while s.metric("held_bytes") <= 1000:
                self.assertLess(time.monotonic(), end, "no text is held")
            for c in slow:
                self.assertEqual("ab" * 4000, self.text(c.getresponse()))
                c.close()
            self.assertEqual(0, s.metric("held_bytes"))

    def test_a_late_reader_gets_whole_characters(self):
        euros = {"\n": b"\xe2", b"\xe2": b"\x82", b"\x82": b"\xac", b"\xac": b"\xe2"}
        model = chain(self.folder, "euros", euros,
                      keys={"qwen2.context_length": (U32, 1 << 20)}).path
        with Server("-m", model, "--ctx", "40k", "--kv", "q4_0") as s:
            c = s.connect()
            c.request("POST", CHAT, json.dumps(user(stream=True, max_tokens=9000)))
            while s.metric("answers_total") == 0:
                pass
            self.assertEqual("\u20ac" * 3000, self.text(c.getresponse()))
            c.close()
            self.assertEqual(0, s.metric("held_bytes"))

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_replies_that_nobody_reads_share_their_memory(self):
        """Each answer is made.  Those that do not fit wait until others were not read in time."""
        more = {"logprobs": True, "top_logprobs": 20}
        body = json.dumps(user(max_tokens=1000, **more)).encode()
        with Server("-m", self.endless(), "--ctx", "8k", "--kv", "q4_0",
                    "--request-time", "1") as s:
            self.assertEqual(200, s.post(CHAT, user(max_tokens=1, **more))[0])
            before = s.status("VmHWM")
            clients = [s.socket() for _ in range(8)]
            for c in clients:
                c.sendall(head(len(body)) + body)
            while s.metric("answers_total") < 1 + len(clients):
                pass
            self.assertLess(s.status("VmHWM"), before + 14 * MIB)
            self.assertEqual({b"HTTP/1.1 200"}, {c.recv(12) for c in clients})
            for c in clients:
                c.close()
            self.assertEqual(200, s.post(CHAT, user(max_tokens=1, **more))[0])
            self.assertEqual(0, s.metric("held_bytes"))

    def test_a_stream_waits_for_memory_that_others_do_not_read(self):
        body = json.dumps(user(stream=True, max_tokens=3900, logprobs=True,
                               top_logprobs=20)).encode()
        with Server("-m", self.endless(), "--ctx", "4k", "--kv", "q4_0",
                    "--request-time", "3600") as s:
            silent = [s.socket() for _ in range(2)]
            for n, x in enumerate(silent):
                x.sendall(head(len(body)) + body)
                while s.metric("answers_total") + s.metric("requests_waiting") <= n:
                    pass
            self.assertEqual(1, s.metric("requests_waiting"))
            c, r = s.open(CHAT, user(stream=True, max_tokens=4))
            self.assertEqual("2", r.headers["X-Queue-Position"])
            self.assertEqual("2 in the queue", comment(r))
            silent.pop().close() # the one that waits
            self.assertEqual("1 in the queue", comment(r))
            silent.pop().close()
            self.assertEqual("abab", self.text(r))
            c.close()

    def test_a_client_that_goes_away_gives_its_memory_back_at_once(self):
        model = wide_chain(self.folder, "wide", keys={"qwen2.context_length": (U32, 1 << 20)})
        body = json.dumps(user("a" * 30000)).encode()
        with Server("-m", model, "--ctx", "64k", "--disk-rate", "1M") as s:
            c = s.socket()
            c.sendall(head(len(body)) + body)
            while s.metric("requests_running") == 0:
                pass
            self.assertGreater(s.metric("held_bytes"), 30000)
            c.close()
            while s.metric("connections") > 1:
                pass
            # Before the end of the pass, which takes a minute.
            self.assertLess(s.metric("held_bytes"), 10000)

    def test_bodies_that_do_not_end_leave_room_for_answers(self):
        with Server("-m", self.says("Hey.")) as s:
            most, clients = int(s.metric("held_limit_bytes")) // 4, []
            for size in sorted([most >> i for i in range(15)] * 3, reverse=True):
                clients.append(s.socket())
                clients[-1].sendall(head(size) + b"x" * (size - 1))
                s.metric("held_bytes")
            self.assertLessEqual(s.metric("held_bytes"), 2 * most)
            for c in clients:
                c.close()
            self.lives(s)

    def text(self, response):
        return "".join(e["choices"][0]["delta"].get("content", "")
                       for e in events_of(response) if e != "[DONE]")

    def test_answers_of_many_clients_are_not_mixed_up(self):
        """The last letter of a text decides how it goes on."""
        letters = "abcdefghijklmnopqrstuvwxyz"
        model = chain(self.folder, "letters", spell(letters + "A")).path
        wrong = []

        def ask(s, seed):
            chance = random.Random(seed)
            for _ in range(40):
                n, at = chance.randrange(1, 9), chance.randrange(16)
                body = {"prompt": f"{seed} {letters[at]}", "max_tokens": n}
                want = letters[at + 1:at + 1 + n]
                kind = chance.randrange(4)
                if kind == 0:
                    got = s.post("/v1/completions", body)[1]["choices"][0]["text"]
                elif kind == 1:
                    got = s.post("/api/generate", {
                        "prompt": body["prompt"], "raw": True, "stream": False,
                        "options": {"num_predict": n}})[1]["response"]
                elif kind == 2:
                    got = "".join(e["choices"][0]["text"] for e in s.stream(
                        "/v1/completions", dict(body, stream=True))[:-1])
                else:  # one that goes away at some point
                    c = s.connect()
                    c.request("POST", "/v1/completions", json.dumps(body))
                    if chance.randrange(2) == 0:
                        c.getresponse().read(chance.randrange(1, 200))
                    c.close()
                    continue
                if got != want:
                    wrong.append((body, got, want))

        with Server("-m", model) as s:
            threads = [threading.Thread(target=ask, args=(s, i)) for i in range(24)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual([], wrong)
            self.assertEqual((0, 0), (s.metric("requests_waiting"), s.metric("held_bytes")))

    def test_a_request_has_a_time_limit(self):
        with Server("-m", self.says("Hey."), "--request-time", "1") as s:
            for part in b"", b"GET /hea", head(1000), head(1000) + b"{", b"\x16\x03\x01\x02":
                c = s.socket()
                c.sendall(part)
                self.assertEqual(b"", read_all(c))
            # Bytes that come one by one do not extend it.
            c = s.socket()
            for n in range(16000):
                if send_all(c, [b"GET /health HTTP/1.1\r\nX: "[n:n + 1] or b"a"]) == 0:
                    break
                self.lives(s)
                try:
                    if c.recv(100, socket.MSG_DONTWAIT) == b"":
                        break
                except BlockingIOError:
                    pass
            self.assertLess(n, 15999)
            c.close()
            self.lives(s)

    def test_bytes_that_are_not_http(self):
        chance = random.Random(2)
        with Server("-m", self.says("Hey."), "--request-time", "1") as s:
            for line in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 3000,
                         b"POST " + CHAT.encode() + b" HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                         head("99999999999999999999999"), head("5x") + b"{}",
                         head(2, "Transfer-Encoding: chunked") + b"zz\r\n\r\n",
                         b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
                         bytes(chance.randrange(256) for _ in range(5000))):
                c = s.socket()
                c.sendall(line)
                c.shutdown(socket.SHUT_WR)
                read_all(c)
            self.lives(s)

    def test_more_connections_than_there_may_be(self):
        with Server("-m", self.says("Hey."), "--request-time", "1") as s:
            idle = [s.socket() for _ in range(100)]
            self.lives(s)  # once the idle ones are cut
            for c in idle:
                c.close()

    def test_connections_without_a_request_give_way(self):
        with Server("-m", self.says("Hey."), "--request-time", "3600") as s:
            for part, until in ((b"", b""), (b"GET /hea", b""), EXPECTED,
                                (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"}")):
                while s.metric("connections") > 1:
                    pass
                idle = [s.socket() for _ in range(64)]
                for c in idle:
                    c.sendall(part)
                    read_all_until(c, until)
                self.lives(s)
                self.assertEqual(b"", read_all(idle.pop(0))) # the oldest one
                idle[-1].setblocking(False)
                self.assertRaises(BlockingIOError, idle[-1].recv, 1)
                for c in idle:
                    c.close()

    def test_a_request_that_was_just_sent_does_not_give_way(self):
        ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with Server("-m", self.says("Hey."), "--request-time", "3600") as s:
            slow = [s.socket() for _ in range(63)]
            for c in slow:
                c.sendall(EXPECTED[0])
                read_all_until(c, EXPECTED[1])
            for _ in range(20):
                new = []
                for _ in range(3):
                    new.append(s.socket())
                    new[-1].sendall(ask)
                for c in new:
                    self.assertIn(b" 200 ", read_all(c))
            for c in slow:
                c.close()

    def test_a_connection_without_a_request_gives_way_first(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0",
                    "--request-time", "3600") as s:
            c, r = s.open(CHAT, user(stream=True))
            next(events_of(r))
            waiting = [s.open(CHAT, user(stream=True, max_tokens=2)) for _ in range(30)]
            slow = [s.socket() for _ in range(32)]
            for x in slow:
                x.sendall(EXPECTED[0])
                read_all_until(x, EXPECTED[1])
            idle = s.socket()
            s.get("/health")
            self.assertEqual(b"", read_all(idle))
            feed = s.open("/memwall/telemetry")
            s.get("/health")
            self.assertEqual(b"", read_all(slow.pop(0)))
            feed[0].close()
            r.close()
            c.close()
            for c, r in waiting:
                self.assertEqual("ab", self.text(r))
                c.close()
            for x in slow:
                x.close()

    def test_the_budget_holds(self):
        """With a small budget, under all of this at once."""
        model = self.says("Hey.")
        r = memwall("serve", "-m", model, "-b", "20M")
        self.assertEqual(3, r.returncode, r.stderr)
        smallest = int(float(re.search(r"fits a budget of ([\d.]+) MiB", r.stderr).group(1)) *
                       MIB)
        with Server("-m", model, "-b", str(smallest)) as s:
            clients = [s.socket() for _ in range(30)]
            deep = json.dumps(user(stop=["x"] * 60000))
            for c in clients:
                c.sendall(head(len(deep)) + deep.encode())
            for c in clients:
                self.assertRegex(c.recv(12), rb"^HTTP/1.1 (400|503)$")
                c.close()
            self.lives(s)
            self.assertLess(s.status("VmHWM"), smallest)


def read_all_until(c, end):
    data = b""
    while end not in data and (block := c.recv(65536)):
        data += block
    return data


if __name__ == "__main__":
    unittest.main(verbosity=2)
