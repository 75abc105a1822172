#!/usr/bin/env python3
"""memwall serve in a terminal: the dashboard with the queue and the request that is answered."""
import http.client
import json
import os
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import U32  # noqa: E402
from program import TIMEOUT_S, HomeCase  # noqa: E402
from server import user  # noqa: E402
from terminal import Terminal  # noqa: E402

ADDRESS = r"on http://127\.0\.0\.1:(\d+): "


class Screen(HomeCase):
    def open(self, model, *args, **more):
        t = Terminal("serve", "-m", model, "--listen", "127.0.0.1:0", *args, home=self.folder,
                     **more)
        self.addCleanup(t.close)
        self.port = int(self.sees(t, ADDRESS).group(1))
        return t

    def sees(self, t, pattern):
        end = time.monotonic() + 60
        while not (found := re.search(pattern, t.screen())) and time.monotonic() < end:
            if not t.pump(0.1):
                break
        self.assertIsNotNone(found, (pattern, t.screen()))
        return found

    def ends(self, t):
        """Returns the exit status."""
        end = time.monotonic() + 60
        while t.process.poll() is None and time.monotonic() < end:
            t.pump(0.1)
        return t.process.poll()

    def ask(self, **more):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        c.request("POST", "/v1/chat/completions", json.dumps(user(**more)))
        return c, c.getresponse()

    def says(self, text):
        return chain(self.folder, "chain", spell("\n", text, "<|im_end|>")).path

    def test_requests_are_shown_below_the_dashboard(self):
        t = self.open(self.says("Hey."), rows=40)
        self.sees(t, r"no request is being answered")
        self.sees(t, r"(?i)memory")
        c, r = self.ask()
        self.assertEqual("Hey.", json.loads(r.read())["choices"][0]["message"]["content"])
        c.close()
        self.sees(t, r"127\.0\.0\.1 POST /v1/chat/completions 200 prompt")
        t.send("q")
        self.assertEqual(128 + signal.SIGINT, self.ends(t))

    def test_the_request_that_is_answered_and_those_that_wait(self):
        model = chain(self.folder, "endless", {"\n": "a", "a": "b", "b": "a"},
                      keys={"qwen2.context_length": (U32, 1 << 20)}).path
        t = self.open(model, "-c", "200k", "-b", "1G", rows=40, cols=120)
        first, r = self.ask(stream=True)
        self.sees(t, r"answer: \d+ tokens after a prompt of \d+")
        second, _ = self.ask(stream=True)
        self.sees(t, r"2 connections, 1 waiting")
        first.close()
        second.close()
        self.sees(t, r"no request is being answered")
        t.process.send_signal(signal.SIGTERM)
        self.assertEqual(128 + signal.SIGTERM, self.ends(t))

    def test_a_small_terminal(self):
        t = self.open(self.says("Hey."), rows=6, cols=60)
        c, r = self.ask()
        self.assertEqual(200, r.status)
        c.close()
        t.send("q")
        self.assertEqual(128 + signal.SIGINT, self.ends(t))

    def test_a_model_that_does_not_fit_is_an_error_after_the_screen(self):
        t = Terminal("serve", "-m", self.says("Hey."), "--listen", "127.0.0.1:0", "-b", "1M",
                     home=self.folder)
        self.addCleanup(t.close)
        self.assertEqual(3, self.ends(t))
        self.assertIn(b"memwall: ", t.raw)


if __name__ == "__main__":
    unittest.main()
