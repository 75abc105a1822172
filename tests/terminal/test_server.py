#!/usr/bin/env python3
"""The chat and its dashboard in front of a server."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from openai_server import Fake, chunk, endless, event, head, reply, stream  # noqa: E402
from program import memwall  # noqa: E402
from server import Server  # noqa: E402
from terminal import Terminal  # noqa: E402

DIRECT = {n: "" for n in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def chat(self, f, *args, **more):
        t = Terminal("--server", f.url, *args, home=self.home, env=DIRECT,
                     **{"rows": 30, "cols": 120, **more})
        self.addCleanup(t.close)
        return t

    def sees(self, t, *words):
        self.assertTrue(t.sees(*words, seconds=60), f"{words} are not all in:\n{t.screen()}")

    def loses(self, t, word):
        self.assertTrue(t.loses(word, seconds=60), f"{word} is still in:\n{t.screen()}")

    def leave(self, t):
        t.send("/quit\r")
        while t.pump(0.2) and t.process.poll() is None:
            pass
        self.assertEqual(0, t.process.wait(60))


class Chat(Case):
    def test_a_conversation(self):
        with Fake(max_model_len=4096) as f:
            t = self.chat(f, "--seed", "7")
            self.sees(t, f"alpha at 127.0.0.1:{f.port}, context 4,096", "ready", "server")
            f.says("One", " two.")
            t.send("first\r")
            self.sees(t, "> first", "One two.", "2 tokens")
            f.says("Three.")
            t.send("second\r")
            self.sees(t, "Three.")
            self.assertEqual([("user", "first"), ("assistant", "One two."), ("user", "second")],
                             [(m["role"], m["content"]) for m in f.chats[1].json["messages"]])
            self.assertNotIn("read", t.screen().split("server")[0])
            f.says("Four.")
            t.send("/retry\r")
            self.sees(t, "Four.", "answer 2 of 2")
            self.assertEqual(3, len(f.chats[2].json["messages"]))
            self.assertEqual([7, 7, 8], [a.json["seed"] for a in f.chats])
            t.send("/undo\r")
            self.loses(t, "Four.")
            t.send("\x15")
            f.says("Five.")
            t.send("third\r")
            self.sees(t, "Five.")
            self.assertEqual(["first", "One two.", "third"],
                             [m["content"] for m in f.chats[3].json["messages"]])
            self.leave(t)
            self.assertIn(f"--server {f.url}".encode(), t.raw.replace(b"\r\n", b""))

    def test_a_paste_and_output_reach_the_model_unchanged(self):
        text = ("all:\n\tcc\nrlm \u200f. shy\u00ad. new \U0001FAE9. e\u0301\u0302\u0303\u0304"
                "\u0305 \U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F.")
        long = "\tcode\n" * 2000
        with open(os.path.join(self.home, "text"), "w") as f:
            f.write("\x1b[1m" + text + "\x1b[m\a\r\nend")
        with Fake() as f:
            t = self.chat(f)
            self.sees(t, "ready")
            t.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")
            self.sees(t, "> all:\n      cc\n", "rlm")
            t.send("\r")
            f.wait(lambda: len(f.chats) == 1)
            self.assertEqual(text, f.chats[0].json["messages"][-1]["content"])
            self.sees(t, "tokens")
            t.send("!cat ~/text\r")
            self.sees(t, "of output")
            t.send("\x1b[200~" + long.replace("\n", "\r") + "\x1b[201~")
            self.sees(t, "goes with the message")
            t.send("look\r")
            f.wait(lambda: len(f.chats) == 2)
            content = f.chats[1].json["messages"][-1]["content"]
            self.assertIn("```\n" + text + "\r\nend\n```", content)
            self.assertIn(long, content)

    def test_the_dashboard_says_what_it_knows(self):
        with Fake(owner="vllm", max_model_len=8192) as f:
            f.on("/metrics", reply("vllm:num_requests_running 1\nvllm:num_requests_waiting 7\n"
                                   "vllm:kv_cache_usage_perc 0.43\n"
                                   "vllm:prefix_cache_queries_total 200\n"
                                   "vllm:prefix_cache_hits_total 50\n", kind="text/plain"))
            t = self.chat(f)
            self.sees(t, "(vLLM)", "1 running, 7 waiting", "43 % in use", "25 % of prompts",
                      "not known", "context 8,192")
            t.send("hi\r")
            self.sees(t, "12 tokens", "first after")

    def test_a_server_without_metrics(self):
        with Fake() as f:
            t = self.chat(f)
            self.sees(t, "no metrics", "404", "not known", "context not reported")
            t.send("/stats\r")
            self.sees(t, "Statistics", "messages")

    def test_thinking_and_stop(self):
        with Fake() as f:
            f.chat(head() + event(chunk(reasoning_content="Let me see.")) + stream("So."))
            t = self.chat(f)
            t.send("hi\r")
            self.sees(t, "So.", "thought")
            endless(f)
            t.send("more\r")
            self.sees(t, "word 3")
            t.send("\x1b")
            self.sees(t, "stopped")
            f.wait(lambda: f.n_gone >= 1)
            f.says("Again.")
            t.send("go on\r")
            self.sees(t, "Again.")
            self.assertIn("word 1", f.chats[-1].json["messages"][-2]["content"])

    def test_errors_leave_the_chat_usable(self):
        with Fake() as f:
            t = self.chat(f)
            self.sees(t, "ready")
            f.chat(reply({"error": {"message": "the model is\x1b[2J asleep"}}, 503))
            t.send("hi\r")
            self.sees(t, "status 503: the model is", "asleep", "ready")
            f.says("Awake.")
            t.send("/retry\r")
            self.sees(t, "Awake.")
            f.chat(reply({"error": {"message": "too long"}}, 400))
            t.send("a long one\r")
            self.sees(t, "status 400: too long", "> a long one")

    def test_settings_of_a_model_in_this_process_are_refused(self):
        with Fake() as f:
            t = self.chat(f)
            self.sees(t, "ready")
            for line in "/memory 1G", "/ctx 8k", "/kv q8_0", "/io direct", "/shift on", "/draft off":
                t.send(line + "\r")
                self.sees(t, line.split(" ")[0] + ": this is a setting of a model in this process")
            t.send("/plan\r")
            self.sees(t, "does not report the plan")
            f.says("Hey.", finish="length")
            t.send("hi\r")
            self.sees(t, "Hey.")
            t.send("/continue\r")
            self.sees(t, "cannot go on with an answer")
            t.send("/temp\r")
            self.sees(t, "temperature is the model's")
            t.send("/temp 0.5\r")
            self.sees(t, "the temperature is 0.5")
            t.send("more\r")
            f.wait(lambda: len(f.chats) == 2)
            self.assertEqual(0.5, f.chats[1].json["temperature"])

    def test_models_are_chosen_from_a_sheet(self):
        with Fake(["alpha", "beta\x1b[2J", "gamma"]) as f:
            t = self.chat(f)
            self.sees(t, "Models at", "alpha", "in use", "gamma")
            t.send("\x1b[B\x1b[B\r")
            self.sees(t, "gamma answers from now on")
            t.send("hi\r")
            self.sees(t, "Hey.")
            self.assertEqual("gamma", f.chats[-1].json["model"])
            t.send("/model alpha\r")
            self.sees(t, "alpha answers from now on")
            t.send("/model none\r")
            self.sees(t, 'no model "none"')
            t.send("still\r")
            f.wait(lambda: len(f.chats) == 2)
            self.assertEqual(("alpha", 3), (f.chats[-1].json["model"],
                                            len(f.chats[-1].json["messages"])))

    def test_a_saved_chat_goes_on(self):
        with Fake() as f:
            t = self.chat(f, "-m", "alpha", "--system", "Be short.")
            t.send("first\r")
            self.sees(t, "Hey.")
            self.leave(t)
            t = self.chat(f, "-m", "alpha", "--continue")
            self.sees(t, "first", "Hey.", "1 token")
            t.send("second\r")
            f.wait(lambda: len(f.chats) == 2)
            self.assertEqual(["first", "Hey.", "second"],
                             [m["content"] for m in f.chats[1].json["messages"]
                              if m["role"] != "system"])

    def test_files_and_summaries(self):
        with open(os.path.join(self.home, "notes.txt"), "w") as file:
            file.write("remember the milk\n")
        with Fake() as f:
            t = self.chat(f)
            self.sees(t, "ready")
            t.send("/file notes.txt\r")
            self.sees(t, "notes.txt")
            t.send("what is it?\r")
            self.sees(t, "Hey.")
            self.assertIn("remember the milk", f.chats[0].json["messages"][0]["content"])
            for i in range(3):
                f.says(f"Answer {i} is rather long, so that a summary is shorter. " * 5)
                t.send(f"question {i} " + "and more of it " * 20 + "\r")
                self.sees(t, f"Answer {i}", "ready")
            f.says("In short.")
            t.send("/compact\r")
            self.sees(t, "are replaced by a summary")
            t.send("next\r")
            f.wait(lambda: len(f.chats) == 6)
            contents = [m["content"] for m in f.chats[5].json["messages"]]
            self.assertIn("In short.", contents)
            self.assertFalse(any("milk" in c for c in contents))

    def test_plain_mode(self):
        with Fake(["alpha", "beta"]) as f:
            t = self.chat(f, "--plain")
            self.sees(t, "Models at", "beta", "alpha at")
            t.send("hi\r")
            self.sees(t, "Hey.", "1 token")
            t.send("/quit\r")

    def test_small_screens(self):
        with Fake() as f:
            for rows, cols in (12, 40), (6, 20), (24, 80), (60, 200):
                t = self.chat(f, rows=rows, cols=cols)
                t.send("hi\r")
                f.wait(lambda: len(f.chats) > 0)
                self.sees(t, "Hey.")
                t.send("\t")
                self.leave(t)
                f.asked.clear()

    def test_it_does_not_begin_without_a_server(self):
        with Fake() as f:
            url = f
        t = self.chat(url)
        self.sees(t, "memwall: 127.0.0.1:", "connect")
        self.assertEqual(1, t.process.wait(60))


class Live(Case):
    """A server that sends samples, as the lines of a recording."""

    def recording(self):
        model = chain(self.home, "chain", spell("\n", "Hey, folks.", "<|im_end|>")).path
        path = os.path.join(self.home, "recording")
        r = memwall("run", "-m", model, "--telemetry", path, "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        with open(path) as file:
            return file.read().splitlines()

    def test_its_samples_fill_the_panels(self):
        lines = self.recording()

        def samples():
            yield head()
            while not f.is_over:
                for line in lines:
                    yield event(line)
                lines[:] = lines[-1:]
                with f.changed:
                    f.changed.wait_for(lambda: f.is_over, 0.5)
        with Fake(owner="memwall") as f:
            f.on("/memwall/telemetry", samples)
            t = self.chat(f, rows=40)
            self.sees(t, "verdict", "layers", "kv cache", "of 2,048 tokens", "ready")
            t.send("hi\r")
            self.sees(t, "Hey.")
            t.send("/stats\r")
            self.sees(t, "Statistics", "(memwall)")

    def test_samples_that_are_none(self):
        lines = self.recording()
        for wrong in ([], ["{}"], lines[1:], ["x"], lines[:1] + ["[" * 100],
                      [lines[0].replace('"version":1', '"version":9')],
                      ["a" * (2 << 20)]):
            with Fake(owner="memwall") as f:
                f.on("/memwall/telemetry", head() + b"".join(event(w) for w in wrong))
                t = self.chat(f)
                self.sees(t, "server", f"127.0.0.1:{f.port} (memwall)", "ready")
                f.wait(lambda: any(a.path == "/memwall/telemetry" for a in f.asked))
                t.send("hi\r")
                self.sees(t, "Hey.")
                t.close()


class Rates(Case):
    def test_the_rate_is_in_the_status_line_while_tokens_come(self):
        def counted():
            yield head()
            n = 0
            while True:
                n += 1
                yield event({**chunk(content="x "),
                             "usage": {"prompt_tokens": 5, "completion_tokens": n}})

        with Fake(max_model_len=4096) as f:
            t = self.chat(f)
            self.sees(t, "ready", "- tok/s")
            f.chat(counted())
            t.send("hi\r")
            self.sees(t, "Esc stop")
            self.loses(t, "- tok/s")
            t.send("\x1b")
            self.sees(t, "stopped")

    def test_a_request_that_fails_leaves_the_tokens_before_it(self):
        with Fake(max_model_len=4096) as f:
            t = self.chat(f)
            self.sees(t, "ready", "context 4,096")
            t.send("hi\r")
            self.sees(t, "Hey.", " of 4,096")
            for status in 503, 400: # the message stays, or goes back to the line
                f.chat(reply({"error": {"message": "not now"}}, status))
                t.send("more\r")
                self.sees(t, f"status {status}: not now", " of 4,096")

    def test_tokens_that_were_not_counted_are_not_shown(self):
        with Fake(max_model_len=4096) as f:
            t = self.chat(f)
            self.sees(t, "ready", "context 4,096")
            t.send("hi\r")
            self.sees(t, "Hey.", " of 4,096")
            endless(f)
            t.send("/retry\r")
            self.sees(t, "word 3")
            t.send("\x1b")
            self.sees(t, "stopped")
            self.loses(t, " of 4,096")


class Memwall(Case):
    def files(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.home)
                for name in names]

    def used(self, s):
        """The tokens of an exchange with "hi"."""
        status, r = s.post("/v1/chat/completions",
                           {"messages": [{"role": "user", "content": "hi"}]})
        self.assertEqual(200, status)
        return r["usage"]["total_tokens"]

    def test_the_dashboard_of_a_memwall_server(self):
        model = chain(self.home, "chain", spell("\n", "Hey, folks.", "<|im_end|>")).path
        with Server("-m", model) as s:
            s.url = f"http://127.0.0.1:{s.port}"
            t = self.chat(s, rows=50)
            self.sees(t, "chain", "verdict", "layers", "of 2,048 tokens", "ready", "wall",
                      "not known: a server does not report it")
            t.send("\tw")
            self.sees(t, "Up, Down: panels")
            self.assertNotIn("Enter: apply", t.screen())
            t.send("\t")
            self.loses(t, "Up, Down: panels")
            t.send("hi\r")
            self.sees(t, "Hey, folks.", "12 tokens", "tok/s")
            used = f"context {self.used(s)} of 2,048"
            self.sees(t, used)
            t.send("/stats\r")
            self.sees(t, "(memwall)", "qwen2", "0 running, 0 waiting", "pinned")

    def served(self, *args):
        model = chain(self.home, "chain", spell("\n", "Hey, folks.", "<|im_end|>")).path
        s = Server("-m", model, "--memory", "200M", *args)
        s.__enter__()
        self.addCleanup(s.end)
        s.url = f"http://127.0.0.1:{s.port}"
        return s

    def test_settings_are_changed_at_a_server_that_allows_it(self):
        s = self.served("--allow-settings")
        t = self.chat(s, rows=40)
        self.sees(t, "ready", "context 2,048")
        t.send("/memory\r")
        self.sees(t, "the budget is 200 MiB")
        t.send("/memory 300M\r")
        self.sees(t, "Change at the server: memory 300M", "now", "then", "200 MiB", "300 MiB",
                  "It applies to all clients", "Enter: apply")
        t.send("\x1b")
        self.loses(t, "Change at the server")
        t.send("/memory\r")
        self.sees(t, "the budget is 200 MiB")
        # /set keeps nothing here: the configuration is that of this machine.
        t.send("/set memory 250M\r")
        self.sees(t, "Change at the server: memory 250M")  # it may hide the line below
        t.send("\x1b")
        self.loses(t, "Change at the server")
        self.sees(t, "memory is a setting of the server")
        t.send("/set kv\r")
        self.sees(t, "f16")
        t.send("/set kv-disk never\r")
        self.sees(t, "Change at the server: kv-disk never")
        t.send("\x1b")
        self.loses(t, "Change at the server")
        t.send("/set ctx-shift on\r")
        self.sees(t, "this is a setting of a model in this process")
        self.assertFalse([f for f in self.files() if "config" in f])
        t.send("/set temp 0.5\r")
        self.sees(t, "temp = 0.5 is in")
        self.assertEqual(1, len([f for f in self.files() if "config" in f]))
        t.send("/memory 300M\r")
        self.sees(t, "Change at the server: memory 300M")
        t.send("\r")
        self.sees(t, "now: context 2,048, budget 300 MiB", "of  300 MiB")
        t.send("/ctx 1k\r")
        self.sees(t, "Change at the server: ctx 1k")
        t.send("\r")
        self.sees(t, "now: context 1,024, budget 300 MiB")
        t.send("hi\r")
        self.sees(t, "Hey, folks.", "of 1,024")
        for line, words in (("/kv q8_0", "kv q8_0"), ("/threads 1", "threads 1"),
                            ("/draft off", "draft off"), ("/disk-rate 20M", "disk-rate 20 MB/s")):
            t.send(line + "\r")
            self.sees(t, "Change at the server: " + line[1:])
            t.send("\r")
            self.sees(t, "budget 300 MiB, " + words)
        t.send("more\r")
        self.sees(t, "> more", "Hey, folks.")
        self.leave(t)

    def test_values_that_the_server_refuses(self):
        s = self.served("--allow-settings")
        t = self.chat(s)
        self.sees(t, "ready")
        for line, words in (("/memory lots", "/memory: \"lots\" is not"),
                            ("/memory 1M", "/memory: needs"), ("/kv q7", "/kv: "),
                            ("/draft ./x.gguf", "/draft: a file can be given at the start"),
                            ("/shift on", "/shift: this is a setting of a model in this process")):
            t.send(line + "\r")
            self.sees(t, words)
        self.assertEqual("200 MiB", json.loads(s.get("/memwall/settings")[1])["settings"]["memory"])

    def test_a_server_that_does_not_allow_it_says_so_in_a_line(self):
        t = self.chat(self.served())
        self.sees(t, "ready")
        for line in "/memory 300M", "/ctx 8k", "/draft off", "/threads 1":
            t.send(line + "\r")
            self.sees(t, line.split(" ")[0] + ": the server does not allow changes of its")
        t.send("/ctx\r")
        self.sees(t, "the context is 2,048 tokens")

    def test_hostile_replies_about_settings(self):
        line = {"how": "line", "role": "dim", "text": "safe\x1b[2J\x9b2J\n~text\tmore"}
        with Fake(owner="memwall") as f:
            t = self.chat(f)
            self.sees(t, "ready")
            for n, (what, words) in enumerate((
                    (reply("{", kind="application/json"), "sent no JSON about its settings"),
                    (reply({"lines": 3}), "does not say what this would change"),
                    (reply({"lines": [3, [], {}, {"text": 5}, line] * 1000, "ctx": -1}), "safe"),
                    (reply({"error": {"message": "no\x1b[2Jway"}}, 400), "/memory: no"),
                    (reply({"error": 3}, 400), "status 400"),
                    (reply({}, 404), "is too old to change its settings"),
                    (reply({}, 500), "status 500"))):
                f.on("/memwall/settings", what)
                t.send(f"/memory {n + 1}G\r")
                self.sees(t, words)
                if words == "safe":
                    t.send("\x1b")
                    self.loses(t, "safe")
            f.says("Still here.")
            t.send("hi\r")
            self.sees(t, "Still here.")
            self.assertNotIn(b"\x1b[2J\x9b", t.raw)
            self.leave(t)

    def test_metrics_of_one_that_sends_no_samples(self):
        with Fake(owner="memwall") as f:
            f.on("/metrics", reply("memwall_budget_bytes 2147483648\n"
                                   "memwall_charged_bytes 1073741824\n"
                                   "memwall_pinned_bytes 536870912\n"
                                   "memwall_read_bytes_per_token 1048576\n"
                                   "memwall_stall_share 0.71\n"
                                   'memwall_verdict{binds="disk"} 1\n', kind="text/plain"))
            t = self.chat(f)
            self.sees(t, "1.00 GiB charged of 2.00 GiB", "1.00 MiB a token", "stalls 71 %",
                      "disk-bound")


if __name__ == "__main__":
    unittest.main(verbosity=2)
