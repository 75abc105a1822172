#!/usr/bin/env python3
"""memwall serve: telemetry as a stream of events, with the lines of a recording."""
import json
import os
import re
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import U32  # noqa: E402
from program import SRCDIR, TIMEOUT_S, FolderCase, memwall  # noqa: E402
from schema import check  # noqa: E402
from server import Server, events_of, user  # noqa: E402

CHAT, TELEMETRY = "/v1/chat/completions", "/memwall/telemetry"


class Telemetry(FolderCase):
    def says(self, text):
        return chain(self.folder, "chain", spell("\n", text, "<|im_end|>")).path

    def test_a_client_sees_the_plan_each_token_and_each_second(self):
        with Server("-m", self.says("Hey, Mo.")) as s:
            c, r = s.open(TELEMETRY)
            self.assertEqual(200, r.status)
            self.assertTrue(r.headers["Content-Type"].startswith("text/event-stream"))
            lines = events_of(r)
            start = next(lines)
            self.assertEqual(("start", 1), (start["event"], start["version"]))
            seen, tokens = [start], []
            n = s.post(CHAT, user())[1]["usage"]["completion_tokens"]
            while len(tokens) < n:
                seen.append(next(lines))
                tokens += [seen[-1]] if seen[-1]["event"] == "token" else []
            while seen[-1]["event"] != "second" or seen[-1]["token"]["n_decoded"] < n:
                seen.append(next(lines))
            c.close()
            # A recording has the same lines: it can be replayed.
            with open(self.path("record"), "w") as f:
                f.write("".join(json.dumps(line) + "\n" for line in seen))
            r = memwall("replay", self.path("record"), "--json")
            self.assertEqual(0, r.returncode, r.stderr)

    def test_each_line_is_one_of_the_schema(self):
        """And has no member that the schema lacks."""
        seen = set()
        with Server("-m", self.says("Hey, Mo."), "--allow-settings") as s:
            c, r = s.open(TELEMETRY)
            lines = events_of(r)
            while seen != {"start", "plan", "token", "second"}:
                line = next(lines)
                if line["event"] == "start":
                    self.assertEqual(200, s.post("/memwall/settings", {"ctx": "1k"})[0])
                elif line["event"] == "plan":
                    self.assertEqual(200, s.post(CHAT, user())[0])
                check(line, SRCDIR, "telemetry.schema.json", is_closed=True)
                seen.add(line["event"])
            c.close()
        check({"event": "lost", "t_ns": 5, "n": 7}, SRCDIR, "telemetry.schema.json", True)
        for wrong in ({"event": "lost", "t_ns": 5, "n": 0}, {"event": "lost", "t_ns": 5},
                      {"event": "other", "t_ns": 5}, {**line, "t_ns": -1},
                      {**line, "more": 1}):
            with self.assertRaises(AssertionError):
                check(wrong, SRCDIR, "telemetry.schema.json", True)

    def test_a_client_that_sends_no_more_still_reads(self):
        with Server("-m", self.says("Hey.")) as s:
            for _ in range(2):
                c = s.socket()
                c.sendall(b"GET /memwall/telemetry HTTP/1.1\r\nHost: localhost\r\n\r\n")
                c.shutdown(socket.SHUT_WR)
                text = b""
                while re.search(rb'"event": ?"second"', text) is None:
                    block = c.recv(65536)
                    self.assertNotEqual(b"", block, text)
                    text += block
                c.close()
                while s.metric("connections") > 1:  # until the next line is sent
                    pass

    def test_several_clients_and_their_limit(self):
        with Server("-m", self.says("Hey.")) as s:
            clients = [s.open(TELEMETRY) for _ in range(4)]
            for _, r in clients:
                self.assertEqual("start", next(events_of(r))["event"])
            status, text = s.get(TELEMETRY)
            self.assertEqual(503, status)
            self.assertIn("too many clients read telemetry", text)
            clients.pop()[0].close()
            # The place is free once the server has seen that the client is gone.
            while s.metric("connections") > 4:
                pass
            c, r = s.open(TELEMETRY)
            self.assertEqual(200, r.status)
            self.assertEqual("start", next(events_of(r))["event"])
            for other in [c] + [x[0] for x in clients]:
                other.close()

    def test_the_server_ends_its_streams(self):
        with Server("-m", self.says("Hey.")) as s:
            c, r = s.open(TELEMETRY)
            lines = events_of(r)
            self.assertEqual("start", next(lines)["event"])
            s.process.send_signal(signal.SIGTERM)
            self.assertTrue(all(line["event"] != "start" for line in lines))
            c.close()
            self.assertEqual(128 + signal.SIGTERM, s.process.wait(TIMEOUT_S))

    def test_a_client_that_does_not_read_is_cut(self):
        model = chain(self.folder, "endless", {"\n": "a", "a": "b", "b": "a"},
                      keys={"qwen2.context_length": (U32, 1 << 20)}).path
        with Server("-m", model, "-c", "500k", "--kv", "q4_0") as s:
            silent = s.socket()
            silent.sendall(b"GET /memwall/telemetry HTTP/1.1\r\nHost: localhost\r\n\r\n")
            c, r = s.open(CHAT, user(stream=True))
            for _ in events_of(r):  # the answer goes on meanwhile
                if any("/memwall/telemetry" in line for line in s.lines):
                    break
            self.assertIsNotNone(s.line(r"/memwall/telemetry 200 .*the client went away"))
            c.close()
            silent.close()

    def test_a_key_is_needed(self):
        with open(self.path("keys"), "w") as f:
            f.write("secret\n")
        with Server("-m", self.says("Hey."), "--api-key-file", self.path("keys")) as s:
            self.assertEqual(401, s.get(TELEMETRY)[0])
            c, r = s.open(TELEMETRY, Authorization="Bearer secret")
            self.assertEqual(200, r.status)
            c.close()
            self.assertEqual(405, s.post(TELEMETRY, {}, Authorization="Bearer secret")[0])


if __name__ == "__main__":
    unittest.main()
