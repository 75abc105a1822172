#!/usr/bin/env python3
"""memwall serve --allow-settings: clients see and change the settings of the model."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import U32  # noqa: E402
from program import FolderCase, budget  # noqa: E402
from server import Server, events_of, user  # noqa: E402

CHAT, PATH = "/v1/chat/completions", "/memwall/settings"
NAMES = ["memory", "ctx", "kv", "kv-k", "kv-v", "kv-disk", "io", "threads", "draft",
         "draft-depth", "chunk", "pack", "no-uring", "disk-rate"]


class Settings(FolderCase):
    def server(self, *args):
        model = chain(self.folder, "chain", spell("\n", "Hey.", "<|im_end|>"),
                      keys={"qwen2.context_length": (U32, 1 << 20)}).path
        return Server("-m", model, "--ctx", "2k", "--memory", "200M", *args)

    def endless(self):
        """A server whose answers end only when they are stopped."""
        model = chain(self.folder, "endless", {"\n": "a", "a": "b", "b": "a"},
                      keys={"qwen2.context_length": (U32, 1 << 20)}).path
        return Server("-m", model, "--ctx", "1048576", "--allow-settings")

    def refused(self, s, body, field, *words, status=400):
        code, reply = s.post(PATH, body)
        self.assertEqual(status, code, reply)
        error = reply["error"]
        if field is not None:
            self.assertEqual(field, error["param"], error)
        for word in words:
            self.assertIn(word, error["message"])

    def asked(self, s, body):
        """Send a change.  Returns the connection, whose reply has not come."""
        c = s.connect()
        c.request("POST", PATH, json.dumps(body))
        return c

    def reply(self, c):
        r = c.getresponse()
        status, text = r.status, r.read()
        c.close()
        return status, json.loads(text)

    def test_values_are_those_in_force(self):
        with self.server() as s:
            status, text = s.get(PATH)
            r = json.loads(text)
            self.assertEqual((200, False, 2048), (status, r["allowed"], r["ctx"]))
            self.assertEqual(sorted(NAMES), sorted(r["settings"]))
            self.assertEqual(("200 MiB", "2,048", "f16"),
                             tuple(r["settings"][n] for n in ("memory", "ctx", "kv")))
            self.assertEqual(200, s.post(CHAT, user())[0]) # the model is loaded
            self.assertRegex(json.loads(s.get(PATH)[1])["settings"]["threads"], r"^\d+$")

    def test_folders_are_not_for_clients(self):
        model = chain(self.folder, "chain", spell("\n", "Hey.", "<|im_end|>")).path
        drafter = chain(self.folder, "drafter", spell("\n", "Hey.", "<|im_end|>")).path
        with Server("-m", model, "--ctx", "2k", "--draft", drafter) as s:
            self.assertEqual(200, s.post(CHAT, user())[0])
            self.assertEqual(os.path.basename(drafter),
                             json.loads(s.get(PATH)[1])["settings"]["draft"])

    def test_without_the_option_nothing_changes(self):
        with self.server() as s:
            for more in {}, {"preview": True}:
                self.refused(s, {"ctx": 4096, **more}, None, "--allow-settings", status=403)
            self.assertEqual(2048, json.loads(s.get(PATH)[1])["ctx"])

    def test_a_change_is_in_force_when_the_reply_comes(self):
        with self.server("--allow-settings") as s:
            before = s.post(CHAT, user(seed=1))[1]["choices"]
            status, r = s.post(PATH, {"ctx": "4k", "memory": "300M", "kv": "q8_0", "threads": 1})
            self.assertEqual((200, True, 4096), (status, r["applied"], r["ctx"]), r)
            self.assertEqual("now: context 4,096, budget 300 MiB, kv q8_0, threads 1", r["now"])
            self.assertEqual("300 MiB", r["settings"]["memory"])
            self.assertEqual(4096, json.loads(s.get("/v1/models")[1])["data"][0]["max_model_len"])
            self.assertIn(f"memwall_budget_bytes {300 << 20}\n", s.get("/metrics")[1])
            self.assertEqual(before, s.post(CHAT, user(seed=1))[1]["choices"])
            r = json.loads(s.get(PATH)[1])
            self.assertEqual((True, "q8_0"), (r["allowed"], r["settings"]["kv"]))
            for body in {"draft": "off"}, {"draft-depth": 3}, {"no-uring": True}, {"ctx": 1024}:
                self.assertEqual(200, s.post(PATH, body)[0], body)
            self.assertEqual(before, s.post(CHAT, user(seed=1))[1]["choices"])
            r = json.loads(s.get(PATH)[1])["settings"]
            self.assertEqual(["off", "3", "on", "1,024", "300 MiB"],
                             [r[n] for n in ("draft", "draft-depth", "no-uring", "ctx", "memory")])

    def test_a_preview_changes_nothing(self):
        with self.server("--allow-settings") as s:
            status, r = s.post(PATH, {"memory": "300M", "preview": True})
            self.assertEqual((200, False, 2048), (status, r["applied"], r["ctx"]))
            lines = [n["text"] for n in r["lines"]]
            self.assertTrue(any("budget" in n and "200 MiB" in n and "300 MiB" in n
                                for n in lines), lines)
            self.assertEqual({"line", "more", "paragraph"}, {n["how"] for n in r["lines"]})
            self.assertEqual("200 MiB", json.loads(s.get(PATH)[1])["settings"]["memory"])

    def test_wrong_values_are_refused_by_their_names(self):
        with self.server("--allow-settings") as s:
            for body, field in (
                    ({"memory": "2X"}, "memory"), ({"memory": -1}, "memory"),
                    ({"memory": ""}, "memory"), ({"memory": ["1G"]}, "memory"),
                    ({"memory": {"a": 1}}, "memory"), ({"memory": None}, "memory"),
                    ({"memory": "1G\0"}, "memory"), ({"memory": "9" * 5000}, "memory"),
                    ({"ctx": 0}, "ctx"), ({"ctx": 1.5}, "ctx"), ({"ctx": 1e300}, "ctx"),
                    ({"ctx": True}, "ctx"), ({"kv": "q9"}, "kv"), ({"threads": 100000}, "threads"),
                    ({"io": "tape"}, "io"), ({"draft": "/etc/passwd"}, "draft"),
                    ({"draft": "./x.gguf"}, "draft"), ({"chunk": 0}, "chunk"),
                    ({"mirror": "/etc/passwd"}, "mirror"), ({"model": "x"}, "model"),
                    ({"isa": "x"}, "isa"), ({"temp": 1}, "temp"), ({"system": "x"}, "system"),
                    ({"api-key-file": "x"}, "api-key-file"), ({"theme": "x"}, "theme"),
                    ({"listen": "0.0.0.0:1"}, "listen"), ({"x\x1b[2J": 1}, None),
                    ({"ctx": 1024, "preview": 1}, "preview")):
                for more in {}, {"preview": True}:
                    if "preview" not in body:
                        self.refused(s, {**body, **more}, field)
                if "preview" in body:
                    self.refused(s, body, field)
            for body in {}, {"preview": True}, [], 1, "x":
                self.refused(s, json.dumps(body), None)
            self.assertEqual(400, s.post(PATH, "{")[0])
            self.assertEqual(400, s.post(PATH, "")[0])
            # An object with one wrong value changes nothing.
            self.refused(s, {"ctx": 4096, "kv": "x"}, "kv")
            self.assertEqual(2048, json.loads(s.get(PATH)[1])["ctx"])
            self.assertEqual("Hey.",
                             s.post(CHAT, user())[1]["choices"][0]["message"]["content"])

    def test_sizes_that_do_not_fit_are_refused_with_those_that_would(self):
        with self.server("--allow-settings") as s:
            self.refused(s, {"memory": "1M"}, "memory", "the budget is 1.00 MiB")
            most = budget(130)
            self.refused(s, {"memory": most, "ctx": "512k", "kv-disk": "never"}, "memory",
                         f"this needs more than the budget of {most[:-1]} MiB: /memory ",
                         " or /ctx ", " would fit")
            for before in {}, {"kv": "f16"}, {"kv-disk": "never", "threads": 1}:
                self.refused(s, {**before, "ctx": 16777216, "kv-disk": "never"}, "ctx", "/ctx ")
            self.assertEqual(200, s.get("/health")[0])

    def test_a_change_waits_for_the_answer_and_goes_before_the_next(self):
        with self.endless() as s:
            c, r = s.open(CHAT, user(stream=True))
            events = events_of(r)
            next(events)
            change = self.asked(s, {"ctx": 4096})
            # A change that waits keeps later requests waiting, too.
            c2, r2 = s.open(CHAT, user(stream=True, max_tokens=5))
            self.assertIn(": 1 in the queue", r2.readline().decode())
            c.close()
            r.close()
            status, reply = self.reply(change)
            self.assertEqual((200, 4096), (status, reply["ctx"]), reply)
            self.assertTrue(any(e == "[DONE]" for e in events_of(r2)))
            c2.close()

    def test_each_change_that_waits_gets_its_own_reply(self):
        with self.endless() as s:
            c, r = s.open(CHAT, user(stream=True))
            next(events_of(r))
            wanted = [4096, 1 << 30, 8192, 2048]
            changes = [self.asked(s, {"ctx": n}) for n in wanted]
            c.close()
            r.close()
            for n, change in zip(wanted, changes):
                status, reply = self.reply(change)
                self.assertEqual((200, n) if n < 1 << 30 else (400, None),
                                 (status, reply.get("ctx")), reply)
            self.assertEqual(2048, json.loads(s.get(PATH)[1])["ctx"])

    def test_a_client_that_goes_away_holds_nothing_up(self):
        with self.endless() as s:
            c, r = s.open(CHAT, user(stream=True))
            next(events_of(r))
            gone = self.asked(s, {"ctx": 4096})
            gone.close()
            self.assertIsNotNone(s.line("/memwall/settings .*the client went away"))
            c.close()
            r.close()
            self.assertEqual(5, s.post(CHAT, user(max_tokens=5))[1]["usage"]["completion_tokens"])
            self.assertEqual(1 << 20, json.loads(s.get(PATH)[1])["ctx"])

    def test_a_longer_context_takes_longer_requests(self):
        with self.server("--allow-settings") as s:
            long = json.dumps(user()) + " " * 2000000
            with s.socket() as c:  # the reply comes before the body
                c.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                          f"Content-Length: {len(long)}\r\n\r\n".encode())
                self.assertIn(b" 413 ", c.recv(100))
            self.assertEqual(200, s.post(PATH, {"ctx": "512k", "memory": "2G"})[0])
            self.assertEqual(200, s.post(CHAT, long)[0])

    def test_keys_and_origins_are_checked(self):
        keys = self.path("keys")
        with open(keys, "w") as f:
            f.write("secret\n")
        with self.server("--allow-settings", "--api-key-file", keys) as s:
            self.assertEqual(401, s.get(PATH)[0])
            self.assertEqual(401, s.post(PATH, {"ctx": 4096})[0])
            self.assertEqual(200, s.post(PATH, {"ctx": 4096},
                                         Authorization="Bearer secret")[0])
        with self.server("--allow-settings") as s:
            for headers in {"Origin": "http://evil.example"}, {"Host": "evil.example"}:
                self.assertEqual(403, s.post(PATH, {"ctx": 4096}, **headers)[0])
            c, r = s.open(PATH, b"{}", method="PUT")
            self.assertEqual((405, "GET, POST"), (r.status, r.getheader("Allow")))
            c.close()

    def test_the_end_of_the_server_refuses_a_change_that_waits(self):
        with self.endless() as s:
            c, r = s.open(CHAT, user(stream=True))
            next(events_of(r))
            change = self.asked(s, {"ctx": 4096})
            c2, r2 = s.open(CHAT, user(stream=True))
            r2.readline()
            s.end()
            self.assertEqual(503, self.reply(change)[0])
            c.close()
            c2.close()


if __name__ == "__main__":
    unittest.main()
