#!/usr/bin/env python3
"""memwall run --server: answers, options, keys, and servers that misbehave."""
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from openai_server import (Fake, chunk, endless, event, head, in_pieces, reply, stream,  # noqa: E402
                           usage)
from program import (MEMWALL, TIMEOUT_S, FolderCase, environment, memwall,  # noqa: E402
                     read_terminal)
from server import Server, user  # noqa: E402

CHAT = "/v1/chat/completions"


class Case(FolderCase):
    def setUp(self):
        super().setUp()
        for name in [n for n in os.environ if n.lower().endswith("_proxy")] + ["MEMWALL_API_KEY"]:
            self.hide(name)

    def hide(self, name):
        value = os.environ.pop(name, None)
        if value is not None:
            self.addCleanup(os.environ.__setitem__, name, value)

    def ask(self, url, *args, stdin="", env=None, config=None):
        """Returns the finished process of memwall run."""
        with tempfile.TemporaryDirectory() as home:
            if config is not None:
                os.makedirs(os.path.join(home, ".config", "memwall"))
                with open(os.path.join(home, ".config", "memwall", "config"), "w") as f:
                    f.write(config)
            return subprocess.run([MEMWALL, "run", "--server", url, *args],
                                  env=environment(home, **(env or {})), input=stdin, text=True,
                                  capture_output=True, timeout=TIMEOUT_S)

    def says(self, expected, url, *args, **more):
        r = self.ask(url, *args, **more)
        self.assertEqual((0, expected, ""), (r.returncode, r.stdout, r.stderr))

    def fails(self, url, *words, args=("hi",), code=1, out="", **more):
        """It prints one line with these words."""
        r = self.ask(url, *args, **more)
        self.assertEqual(code, r.returncode, r.stderr)
        self.assertEqual(out, r.stdout)
        lines = [x for x in r.stderr.splitlines() if "try \"memwall" not in x]
        self.assertEqual(1, len(lines), r.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertTrue(all(c >= " " and c != "\x7f" for c in lines[0]), repr(lines[0]))
        return lines[0]


class Answers(Case):
    def test_an_answer(self):
        with Fake() as f:
            f.says("Hello", " there", ".")
            self.says("Hello there.\n", f.url, "hi")
            asked = f.chats[0]
            self.assertEqual("POST", asked.method)
            self.assertEqual("application/json", asked.headers["content-type"])
            self.assertNotIn("authorization", asked.headers)
            self.assertEqual({"model": "alpha", "stream": True,
                              "stream_options": {"include_usage": True},
                              "messages": [{"role": "user", "content": "hi"}]}, asked.json)

    def test_the_prompt_comes_from_standard_input_too(self):
        with Fake() as f:
            self.says("Hey.\n", f.url, "Sum this up.", "-", stdin="a text\n")
            self.assertEqual("Sum this up.\n\na text", f.chats[0].json["messages"][0]["content"])
            self.says("Hey.\n", f.url, "-p", "hi", "--system", "Be short.")
            self.assertEqual([{"role": "system", "content": "Be short."},
                              {"role": "user", "content": "hi"}], f.chats[1].json["messages"])

    def test_addresses_with_and_without_the_version(self):
        with Fake() as f:
            for tail in "", "/", "/v1", "/v1/":
                self.says("Hey.\n", f.url + tail, "hi")
            f.on("/api/v1/models", reply(f.list()))
            f.on("/api/v1/chat/completions", head() + stream("below"))
            self.says("below\n", f.url + "/api/v1", "hi")

    def test_a_model_by_its_name_or_a_part_of_it(self):
        with Fake(["org/alpha-7b", "beta-1", "beta-2"]) as f:
            for name, used in (("beta-2", "beta-2"), ("ALPHA", "org/alpha-7b")):
                self.says("Hey.\n", f.url, "-m", name, "hi")
                self.assertEqual(used, f.chats[-1].json["model"])
            self.fails(f.url, "org/alpha-7b answers, the first of 3 models", code=0, out="Hey.\n")
            self.says("Hey.\n", f.url, "-q", "hi")
            self.assertEqual("org/alpha-7b", f.chats[-1].json["model"])
            self.fails(f.url, 'no model "gamma"', "org/alpha-7b, beta-1, beta-2",
                       args=("-m", "gamma", "hi"))
            self.fails(f.url, 'more than one model "beta"', args=("-m", "beta", "hi"))

    def test_a_path_is_shown_as_the_name_of_its_file(self):
        with Fake(["/srv/models/alpha.gguf"]) as f:
            err = self.ask(f.url, "--stats", "hi").stderr
            self.assertRegex(err, r"model +alpha\.gguf")
            self.assertEqual("/srv/models/alpha.gguf", f.chats[0].json["model"])

    def test_a_server_without_a_list_takes_a_name(self):
        with Fake() as f:
            f.on("/v1/models", reply({"error": "no"}, 404))
            self.says("Hey.\n", f.url, "-m", "any", "hi")
            self.assertEqual("any", f.chats[0].json["model"])
            self.fails(f.url, "status 404: no")

    def test_thinking_is_not_the_answer(self):
        for key in "reasoning_content", "reasoning":
            with Fake() as f:
                f.chat(head() + event(chunk(**{key: "Hm. "})) + event(chunk(**{key: "Yes."})) +
                       stream("So."))
                self.says("So.\n", f.url, "hi")
                r = self.ask(f.url, "--json", "hi")
                lines = [json.loads(x) for x in r.stdout.splitlines()]
                self.assertEqual("So.", lines[-1]["text"])
                self.assertEqual("Hm. Yes.", lines[-1]["thinking"])
                self.assertEqual("Hm. Yes.", "".join(x["text"] for x in lines
                                                     if x["event"] == "thinking"))

    # The text that a server sends; the thinking in it, and the answer.
    LEFT_IN_THE_TEXT = (
        ("<think>Hm.\n</think>\n\nSo.", "Hm.\n", "So."),
        ("\n<think>\nHm.</think>So.", "\nHm.", "So."),
        ("<think></think>So.", "", "So."),
        ("[THINK]a < b </thin> c[/THINK]So.", "a < b </thin> c", "So."),
        ("<seed:think>Hm.</seed:think>So.", "Hm.", "So."),
        ("<thinking>Hm.</thinking>So. </think>", "Hm.", "So. </think>"),
        ("<think>Hm", "Hm", ""),
        ("<think>Hm</th", "Hm</th", ""),
        ("Hm.\n</think>\n\nSo.", "Hm.\n", "So."),
        ("\u00e4h\n</think>\r\nSo\u00dc.", "\u00e4h\n", "So\u00dc."),
        ("Hm.\n</think>", "Hm.\n", ""),
        ("</think>\nSo.", "", "So."),
        ("So: <think>Hm.</think>", "", "So: <think>Hm.</think>"),
        ("So: </think>\nyes", "", "So: </think>\nyes"),
        ("So.\n </think>\nyes", "", "So.\n </think>\nyes"),
        ("So.\n</think> yes", "", "So.\n</think> yes"),
        ("<thin", "", "<thin"),
        ("<b>So</b>", "", "<b>So</b>"),
        ("<", "", "<"),
        (" " * 30 + "<think>x</think>", "", " " * 30 + "<think>x</think>"),
    )

    def test_thinking_that_is_left_in_the_text(self):
        for text, thinking, answer in self.LEFT_IN_THE_TEXT:
            for size in 1, 3, 7, 100:
                pieces = [text[i:i + size] for i in range(0, len(text), size)]
                with self.subTest(text=text, size=size), Fake() as f:
                    f.chat(head() + stream(*pieces))
                    told = json.loads(self.ask(f.url, "--json", "hi").stdout.splitlines()[-1])
                    self.assertEqual((thinking, answer),
                                     (told.get("thinking", ""), told["text"]))
        # A server that sends thinking by itself leaves none in the text.
        with Fake() as f:
            f.chat(head() + event(chunk(reasoning="Hm.")) + stream("<think>So.</think>"))
            self.says("<think>So.</think>\n", f.url, "hi")
        # A stream that is cut in a mark.
        with Fake() as f:
            f.chat(head() + event(chunk(content="So <thi")) + event(chunk(content="\n</th")))
            self.fails(f.url, "before the answer was over", out="So <thi\n</th\n")

    def test_a_server_can_say_what_closes_thinking(self):
        mark = event(chunk(content="</think>", closes_thinking=True))
        for before, thinking, text in (
                (("Hm",), "Hm", "So."), (("Hm\n", "</th"), "Hm\n</th", "So."), ((), "", "So."),
                (("<think>Hm",), "Hm", "So."), (("<think>Hm</think>A",), "Hm", "A</think>\nSo.")):
            with self.subTest(before=before), Fake() as f:
                f.chat(head() + b"".join(event(chunk(content=x)) for x in before) + mark +
                       stream("\nSo."))
                told = json.loads(self.ask(f.url, "--json", "hi").stdout.splitlines()[-1])
                self.assertEqual((thinking, text), (told.get("thinking", ""), told["text"]))

    def test_contents_in_parts(self):
        with Fake() as f:
            parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                     {"type": "text", "text": "Hey"}]
            f.chat(head() + event(chunk(content=parts)) + stream(" you"))
            self.says("Hey you\n", f.url, "hi")

    def test_a_whole_reply_in_place_of_a_stream(self):
        with Fake() as f:
            f.chat(reply({"choices": [{"message": {"role": "assistant", "content": "All."},
                                       "finish_reason": "stop"}],
                          "usage": {"prompt_tokens": 3, "completion_tokens": 2}}))
            self.says("All.\n", f.url, "hi")

    def test_a_character_in_two_pieces(self):
        """A server that cuts texts by units of UTF-16 sends halves of an emoji."""
        first, second = "\ud83d", "\ude00"
        for expected, pieces in (("a\U0001f600b", ("a" + first, second + "b")),
                                 ("a\U0001f600\U0001f600", ("a" + first, second + first, second)),
                                 ("a\ufffdb", ("a" + first, "b")),
                                 ("a\ufffd", ("a", first)),
                                 ("\ufffdb", (second + "b",)),
                                 ("\ufffd\U0001f600", (first, "", first, second))):
            with Fake() as f:
                f.says(*pieces)
                self.says(expected + "\n", f.url, "hi")
        with Fake() as f:
            thinks = event(chunk(reasoning_content="Hm" + first))
            f.chat(head() + thinks + stream(second + "So", "."))
            self.says("\ufffdSo.\n", f.url, "hi")
            f.chat(head() + thinks + event(chunk(reasoning_content=second)) + stream("So."))
            told = json.loads(self.ask(f.url, "--json", "hi").stdout.splitlines()[-1])
            self.assertEqual(("Hm\U0001f600", "So."), (told["thinking"], told["text"]))
            f.chat(reply({"choices": [{"message": {"content": "a" + first}}]}))
            self.says("a\ufffd\n", f.url, "hi")
            f.chat(reply({"error": {"message": "bad " + first}}, 400))
            self.fails(f.url, "status 400: bad ?")

    def test_figures(self):
        with Fake() as f:
            f.chat(head() + event(chunk(content="a b c")) + event(chunk(finish="stop")) +
                   event(usage(prompt=12, answer=30, cached=8)) + event("[DONE]"))
            done = json.loads(self.ask(f.url, "--json", "hi").stdout.splitlines()[-1])
            self.assertEqual(("done", "stop", "a b c", 4, 8, 30),
                             tuple(done[k] for k in ("event", "done", "text", "n_prompt",
                                                     "n_reused", "n_decoded")))
            self.assertGreater(done["first_ns"], 0)
            self.assertNotIn("bytes_read", done)
            err = self.ask(f.url, "--stats", "hi").stderr
            for word in "30 tokens", "12 tokens, 8 of them in its cache", "alpha", "not known":
                self.assertIn(word, err)

    def test_without_usage_pieces_are_counted(self):
        with Fake() as f:
            f.says("a", "b", "c", count=False)
            done = json.loads(self.ask(f.url, "--json", "hi").stdout.splitlines()[-1])
            self.assertEqual(3, done["n_piece"])
            self.assertNotIn("n_decoded", done)
            self.assertIn("3 pieces", self.ask(f.url, "--stats", "hi").stderr)

    def test_a_limit_that_is_reached_does_not_fail(self):
        with Fake() as f:
            f.says("cut", finish="length")
            self.says("cut\n", f.url, "-n", "1", "hi")
            self.assertEqual(1, f.chats[0].json["max_tokens"])
            f.says("cut", finish="content_filter")
            r = self.ask(f.url, "hi")
            self.assertEqual((0, "cut\n"), (r.returncode, r.stdout))
            self.assertIn("content_filter", r.stderr)

    def test_an_empty_answer_says_why(self):
        with Fake() as f:
            f.says()
            self.fails(f.url, "the answer has no text", code=0)


class Options(Case):
    def test_only_what_was_given_is_sent(self):
        with Fake() as f:
            self.says("Hey.\n", f.url, "--temp", "0.5", "--top-p", "0.9", "--seed", "7", "--stop",
                      "END", "--stop", "\n\n", "hi")
            asked = f.chats[0].json
            self.assertEqual((0.5, 0.9, 7, ["END", "\n\n"]),
                             tuple(asked[k] for k in ("temperature", "top_p", "seed", "stop")))
            for key in "top_k", "min_p", "repeat_penalty", "max_tokens", "chat_template_kwargs":
                self.assertNotIn(key, asked)

    def test_names_of_fields_by_the_kind_of_server(self):
        for owner, penalty in (("vllm", "repetition_penalty"), ("llamacpp", "repeat_penalty")):
            with Fake(owner=owner) as f:
                self.says("Hey.\n", f.url, "--temp", "0", "--top-k", "5", "--min-p", "0.1",
                          "--repeat-penalty", "1.5", "--no-think", "hi")
                asked = f.chats[0].json
                self.assertEqual((0, 5, 0.1, 1.5),
                                 tuple(asked[k] for k in ("temperature", "top_k", "min_p",
                                                          penalty)))
                self.assertEqual({"enable_thinking": False}, asked["chat_template_kwargs"])

    def test_options_of_a_model_in_this_process_are_refused(self):
        with Fake() as f:
            for args in (["--memory", "1G"], ["--ctx", "4k"], ["--kv", "q8_0"], ["--raw"],
                         ["--format", "chatml"], ["--threads", "2"], ["--ctx-shift"],
                         ["--ids"],
                         ["--telemetry", self.path("t")]):
                self.fails(f.url, args[0], "in this process", args=(*args, "hi"), code=2)
            self.assertEqual([], f.asked)

    def test_schemas_and_grammars_are_sent(self):
        schema = {"type": "object", "properties": {"a": {"contains": "<\u00e9"}}}
        with open(self.path("s.json"), "w") as f:
            json.dump(schema, f)
        with open(self.path("g.gbnf"), "w") as f:
            f.write('root ::= "a"\n')
        with Fake() as f:
            self.says("Hey.\n", f.url, "--schema", self.path("s.json"), "hi")
            self.assertEqual({"type": "json_schema", "json_schema": {
                "name": "answer", "strict": True, "schema": schema}},
                f.chats[-1].json["response_format"])
            self.fails(f.url, "--grammar", "only llama-server and memwall", "--schema",
                       args=("--grammar", self.path("g.gbnf"), "hi"))
            self.assertEqual(1, len(f.chats))
            self.fails(f.url, "g.gbnf", args=("--schema", self.path("g.gbnf"), "hi"))
            self.fails(f.url, "none.json", args=("--schema", self.path("none.json"), "hi"))
        with Fake(owner="llamacpp") as f:
            self.says("Hey.\n", f.url, "--grammar", self.path("g.gbnf"), "hi")
            self.assertEqual('root ::= "a"\n', f.chats[0].json["grammar"])
            self.assertNotIn("response_format", f.chats[0].json)
        with Server("-m", chain(self.folder, "hey", spell("\n", "Hey.", "<|im_end|>")).path) as s:
            url = f"http://127.0.0.1:{s.port}"
            self.says("a\n", url, "--grammar", self.path("g.gbnf"), "hi")
            with open(self.path("c.json"), "w") as f:
                json.dump({"const": "xyz"}, f)
            self.says('"xyz"\n', url, "--schema", self.path("c.json"), "hi")
            self.fails(url, 'the keyword "contains" at #/properties/a',
                       args=("--schema", self.path("s.json"), "hi"))

    def test_the_option_of_a_file_that_is_missing_is_named(self):
        with Fake() as f:
            for option in "--schema", "--grammar":
                self.fails(f.url, option, "none", "No such file", args=(option, "none", "hi"))

    def test_the_configuration_of_such_a_model_is_left_alone(self):
        with Fake() as f:
            self.says("Hey.\n", f.url, "hi", config="memory = 1G\nctx = 4096\nmodel = /no/such\n"
                      "ctx-shift = on\nkv = q8_0\ntemp = 0.25\napi-key-file = /no/such\n")
            self.assertEqual(0.25, f.chats[0].json["temperature"])

    def test_options_of_a_server_need_one(self):
        for name in "--ca-file", "--api-key-file":
            r = memwall("run", name, "x", "hi")
            self.assertEqual(2, r.returncode)
            self.assertIn("--server", r.stderr)

    def test_addresses_that_are_none(self):
        for url in ("localhost:8080", "ftp://host", "http://", "http://user:secret@host",
                    "http://host/?q", "http://ho\u00adst"):
            r = self.ask(url, "hi")
            self.assertEqual(1, r.returncode, url)
            self.assertIn("--server", r.stderr)
            self.assertIn("http://127.0.0.1:8080", r.stderr)


class OnTerminal(Case):
    def test_a_notice_begins_on_a_line_of_its_own(self):
        with Fake() as f, tempfile.TemporaryDirectory() as home:
            for text in "Hi", "Hi\n":
                f.says(text, finish="content_filter")
                main, side = pty.openpty()
                p = subprocess.Popen([MEMWALL, "run", "--server", f.url, "hi"],
                                     env=environment(home), stdin=subprocess.DEVNULL, stdout=side,
                                     stderr=side)
                os.close(side)
                shown = read_terminal(main).decode().replace("\r\n", "\n")
                self.assertEqual(0, p.wait(TIMEOUT_S))
                self.assertIn("Hi\nmemwall: the server ended the answer: content_filter\n", shown)
                self.assertTrue(shown.endswith("content_filter\n"), shown)


class Keys(Case):
    def test_keys_of_the_environment_and_of_a_file(self):
        with open(self.path("key"), "w") as file:
            file.write("# mine\n\n  from-file \nanother\n")
        with Fake() as f:
            self.says("Hey.\n", f.url, "hi", env={"MEMWALL_API_KEY": "from-env\n"})
            self.says("Hey.\n", f.url, "--api-key-file", self.path("key"), "hi",
                      env={"MEMWALL_API_KEY": "from-env"})
            for asked in f.asked:
                self.assertIn(asked.headers["authorization"],
                              ("Bearer from-env", "Bearer from-file"))
            self.assertEqual(["Bearer from-env", "Bearer from-file"],
                             [a.headers["authorization"] for a in f.chats])

    def test_keys_that_are_none(self):
        with open(self.path("key"), "w") as file:
            file.write("# nothing\n")
        with Fake() as f:
            self.fails(f.url, self.path("key"), "--api-key-file", "no key",
                       args=("--api-key-file", self.path("key"), "hi"), code=2)
            self.fails(f.url, self.path("none"), "--api-key-file", "No such file",
                       args=("--api-key-file", self.path("none"), "hi"), code=2)
            self.fails(f.url, "MEMWALL_API_KEY", env={"MEMWALL_API_KEY": "a\tb"})
            self.assertEqual([], f.asked)

    def test_a_redirect_gets_neither_the_key_nor_the_conversation(self):
        with Fake() as other, Fake() as f:
            f.on("/v1/models", reply(b"", 302, Location=other.url + "/v1/models"))
            for status in 301, 302, 303, 307, 308:
                f.chat(reply(b"", status, Location=other.url + CHAT))
                self.fails(f.url, "elsewhere", other.url, env={"MEMWALL_API_KEY": "secret"})
            self.assertEqual({"/v1/models"}, {a.path for a in other.asked})
            self.assertFalse(any("authorization" in a.headers for a in other.asked))
            self.assertTrue(all("authorization" in a.headers for a in f.asked))

    def test_the_key_is_not_in_messages(self):
        with Fake() as f:
            f.chat(reply({"error": {"message": "wrong key"}}, 401))
            line = self.fails(f.url, "401", "wrong key", "MEMWALL_API_KEY",
                              env={"MEMWALL_API_KEY": "top-secret"})
            self.assertNotIn("top-secret", line)


@unittest.skipIf(shutil.which("openssl") is None, "openssl is not installed")
class Certificates(Case):
    def made(self, name, address="127.0.0.1"):
        """A certificate that signs itself, beside its key."""
        path = self.path(name + ".pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", path + ".key", "-out",
                        path, "-days", "30", "-subj", "/CN=" + name, "-addext",
                        "subjectAltName=IP:" + address], capture_output=True, check=True)
        return path

    def test_a_file_of_authorities(self):
        own = self.made("own")
        with Fake(certificate=own) as f:
            self.says("Hey.\n", f.url, "--ca-file", own, "hi")
            self.says("Hey.\n", f.url, "hi", env={"SSL_CERT_FILE": own})

    def test_others_are_refused_before_anything_is_sent(self):
        with Fake(certificate=self.made("own")) as f:
            self.fails(f.url, "certificate", "--ca-file", env={"MEMWALL_API_KEY": "secret"})
            self.fails(f.url, "certificate", args=("--ca-file", self.made("other"), "hi"))
            self.assertEqual([], f.asked)

    def test_the_wrong_kind_of_address_is_named(self):
        class Plain(Fake):
            def answer(self, s):
                s.recv(65536)
                s.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        with Plain() as f:
            self.fails(f.url.replace("http:", "https:"), "begins with http://")
        with Fake(certificate=self.made("own")) as f:
            self.fails(f.url.replace("https:", "http:"), "begins with https://")

    def test_a_certificate_of_another_address_is_refused(self):
        own = self.made("own", "127.0.0.2")
        with Fake(certificate=own) as f:
            self.fails(f.url, "--ca-file", args=("--ca-file", own, "hi"))
            self.assertEqual([], f.asked)


class Proxies(Case):
    def test_the_proxy_of_the_environment(self):
        with Fake() as proxy:
            proxy.on("http://models.invalid/v1/models", reply(proxy.list()))
            proxy.on("http://models.invalid" + CHAT, head() + stream("by proxy"))
            self.says("by proxy\n", "http://models.invalid", "hi", env={"http_proxy": proxy.url})
            with Fake() as f:
                self.says("Hey.\n", f.url, "hi", env={"http_proxy": "http://127.0.0.1:1",
                                                      "no_proxy": "127.0.0.1"})


class Errors(Case):
    def test_errors_are_one_line_with_the_message_of_the_server(self):
        bodies = ({"error": {"message": "a b\x1b[2Jc", "type": "x"}}, {"error": "a bc"},
                  {"message": "a bc"}, {"detail": "a bc"}, {"detail": [{"msg": "a bc"}]})
        with Fake() as f:
            for status in 400, 401, 403, 404, 422, 429, 500, 502, 503:
                for body in bodies:
                    f.chat(reply(body, status))
                    self.fails(f.url, f"127.0.0.1:{f.port}", f"status {status}: a b")
            f.chat(reply("plain text", 500, "text/plain"))
            self.fails(f.url, "status 500: plain text")
            f.chat(reply("<html>oh no</html>", 502, "text/html"))
            self.assertNotIn("html", self.fails(f.url, "status 502"))
            f.chat(reply(b"", 503))
            self.fails(f.url, "status 503")

    def test_advice(self):
        with Fake() as f:
            f.chat(reply({"error": "no"}, 401))
            self.fails(f.url, "set MEMWALL_API_KEY")
            f.chat(reply({"error": "busy"}, 429, Retry_After=17))
            self.fails(f.url, "busy", "17 seconds")
            f.chat(reply({"error": "busy"}, 503, Retry_After=1))
            self.assertTrue(self.fails(f.url, "busy").endswith("it asks to wait 1 second"))

    def test_errors_of_the_list_of_models(self):
        with Fake() as f:
            for answer, words in (
                    (reply({"error": {"message": "who are you"}}, 401), ("401", "who are you")),
                    (reply("hello", kind="text/plain"), ("not JSON",)),
                    (reply("<html>", kind="text/html"), ("web page", "--server")),
                    (reply({"models": []}), ("no list of models",)),
                    (reply({"object": "list", "data": []}), ("no models",)),
                    (reply({"data": [{"id": 7}, {"name": "x"}, {"id": ""}]}), ("no models",)),
                    (reply(b'{"data":[{"id":"' + b"a" * (5 << 20)), ("more than",)),
                    (reply("[" * 100000), ("not JSON",)),
                    (b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"y" * 999 + b"\r\n") * 1000,
                     ("too long",)),
                    (b"SSH-2.0-OpenSSH\r\n", ("127.0.0.1",))):
                f.on("/v1/models", answer)
                self.fails(f.url, *words)
            self.assertEqual([], f.chats)

    def test_nobody_listens(self):
        with Fake() as f:
            url = f.url
        self.fails(url, "127.0.0.1", "connect")

    def test_errors_in_a_stream(self):
        with Fake() as f:
            f.chat(head() + event(chunk(content="Half")) +
                   event({"error": {"message": "out of\x07 memory"}}))
            self.fails(f.url, "reports an error: out of", "memory", out="Half\n")
            for bad, word in (("{not json", "not JSON"), ("[]", "not a JSON object"),
                              ("{" + '"a":{' * 99, "not JSON")):
                f.chat(head() + event(chunk(content="Half")) + event(bad))
                self.fails(f.url, word, out="Half\n")

    def test_a_stream_that_is_cut(self):
        whole = head() + stream("Half", " more")
        with Fake() as f:
            f.chat(head() + event(chunk(content="Half")))
            self.fails(f.url, "before the answer was over", out="Half\n")
            f.chat(head() + event(chunk(content="Half")) + b'data: {"choices":[{"del')
            self.fails(f.url, "before the answer was over", out="Half\n")
            f.chat(reply(stream("Half"), kind="text/event-stream")[:-400])
            r = self.ask(f.url, "hi")
            self.assertEqual(1, r.returncode)
            f.chat(whole[:20])
            self.fails(f.url, "127.0.0.1")
            f.chat(b"")
            self.fails(f.url, "127.0.0.1")

    def test_an_answer_without_the_last_event_is_complete(self):
        with Fake() as f:
            f.chat(head() + event(chunk(content="Hey")) + event(chunk(finish="stop")))
            self.says("Hey\n", f.url, "hi")
            f.chat(head() + event(chunk(content="Hey")) + event(chunk(finish="stop"))[:-1])
            self.says("Hey\n", f.url, "hi")

    def test_wrong_types(self):
        with Fake() as f:
            for kind in "text/plain", "text/html", "application/octet-stream":
                f.chat(reply(stream("x"), kind=kind))
                self.fails(f.url, kind)
            f.chat(reply("[1]"))
            self.fails(f.url, "not a JSON object")
            f.chat(reply(b""))
            self.fails(f.url, "127.0.0.1")


class Hostile(Case):
    def test_streams_in_every_form(self):
        deltas = [event(chunk(content="A")), event(chunk(content="B"))]
        forms = {
            "comments": b": hello\n\n" + deltas[0] + b":\n: ping\n" + deltas[1],
            "crlf": stream("A", "B", end="\r\n"),
            "cr": stream("A", "B", end="\r"),
            "other fields": b"event: x\nid: 7\nretry: 10\n" + deltas[0] + b"data\n" + deltas[1],
            "no blank": b"".join(d.replace(b"data: ", b"data:") for d in deltas),
            "mark": b"\xef\xbb\xbf" + deltas[0] + deltas[1],
            "lines": b'data: {"choices":[{"delta":\ndata: {"content":"AB"}}]}\n\n',
        }
        with Fake() as f:
            for name, body in forms.items():
                if b"[DONE]" not in body:
                    body += event(chunk(finish="stop")) + event("[DONE]")
                if name == "other fields":  # an event whose data is empty is not JSON
                    body = body.replace(b"data\n", b"")
                f.chat(head() + body)
                with self.subTest(name):
                    self.says("AB\n", f.url, "hi")

    def test_cuts_between_a_few_bytes(self):
        text = "Gr\u00fc\u00dfe, \U0001f600 \u4f60"
        whole = head() + event(chunk(reasoning="\u00e9")) + stream(*text, end="\r\n")
        with Fake() as f:
            for n in 1, 2, 3, 7, 64:
                f.chat(lambda n=n: in_pieces(whole, n))
                self.says(text + "\n", f.url, "hi")

    def test_text_after_the_end_is_not_read(self):
        def more():
            yield head() + stream("Hey")
            while True:
                yield event(chunk(content="more"))
        with Fake() as f:
            f.chat(more)
            self.says("Hey\n", f.url, "hi")

    def test_bounds(self):
        def long_event():
            yield head() + b"data: "
            while True:
                yield b"a" * 65536

        def long_comment():
            yield head() + b": "
            while True:
                yield b"a" * 65536

        def long_answer():
            yield head()
            while True:
                yield event(chunk(content="a" * 60000))

        def long_headers():
            yield b"HTTP/1.1 200 OK\r\n"
            while True:
                yield b"X-More: " + b"a" * 1000 + b"\r\n"

        def long_json():
            yield head("application/json") + b'{"choices":[{"message":{"content":"'
            while True:
                yield b"a" * 65536

        def long_error():
            yield head("application/json", 500) + b'{"error":"'
            while True:
                yield b"a" * 65536
        with Fake() as f:
            for body, word in ((long_event, "more than"), (long_comment, "more than"),
                               (long_answer, "more than"), (long_headers, "too long"),
                               (long_json, "more than"), (long_error, "status 500")):
                f.chat(body)
                with self.subTest(body.__name__):
                    r = self.ask(f.url, "hi")
                    self.assertEqual(1, r.returncode)
                    self.assertIn(word, r.stderr)

    def test_numbers_that_cannot_be(self):
        with Fake() as f:
            for u in ({"prompt_tokens": -1, "completion_tokens": 3},
                      {"prompt_tokens": 1e300, "completion_tokens": 3},
                      {"prompt_tokens": "7", "completion_tokens": None}, [], 7, "x"):
                f.chat(head() + event(chunk(content="Hey")) +
                       event({"choices": [], "usage": u}) + event("[DONE]"))
                self.says("Hey\n", f.url, "hi")
                done = json.loads(self.ask(f.url, "--json", "hi").stdout.splitlines()[-1])
                self.assertEqual(1, done["n_piece"])
            f.chat(head() + event(chunk(content="Hey")) + event(
                {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 3,
                                          "prompt_tokens_details": {"cached_tokens": 9}}}) +
                event("[DONE]"))
            self.says("Hey\n", f.url, "hi")

    def test_odd_values_are_skipped(self):
        odd = [{"choices": None}, {"choices": []}, {"choices": [None]}, {"choices": [7]},
               {"choices": {"delta": {"content": "no"}}}, {}, {"choices": [{"delta": None}]},
               {"choices": [{"delta": {"content": 7}}]},
               {"choices": [{"delta": {"content": [{"text": 7}, 7, None]}}]},
               {"choices": [{"delta": {"tool_calls": [{}]}}]}]
        with Fake() as f:
            f.chat(head() + b"".join(event(o) for o in odd) + stream("Hey"))
            self.says("Hey\n", f.url, "hi")

    def test_texts_and_names_with_control_characters(self):
        with Fake(["evil\x1b]0;x\x07\u202e"]) as f:
            f.says("a\x00b\x1b[2J\u202ec")
            r = self.ask(f.url, "hi")
            self.assertEqual("a\x00b\x1b[2J\u202ec\n", r.stdout)  # a pipe gets what came
            self.assertEqual("evil\x1b]0;x\x07\u202e", f.chats[0].json["model"])
            r = self.ask(f.url, "--stats", "hi")
            self.assertNotIn("\x1b", r.stderr)
            self.assertNotIn("\u202e", r.stderr)
            self.fails(f.url, "no model", args=("-m", "none", "hi"))


class Stops(Case):
    def start(self, f, *args):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        p = subprocess.Popen([MEMWALL, "run", "--server", f.url, *args, "hi"], text=True,
                             env=environment(home.name), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        return p

    def test_control_c_keeps_the_text_and_ends_the_answer_at_the_server(self):
        with Fake() as f:
            endless(f)
            p = self.start(f)
            first = p.stdout.read(6)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=TIMEOUT_S)
            self.assertEqual(("word 1", 130, ""), (first, p.returncode, err))
            self.assertTrue(out.endswith("\n"))
            f.wait(lambda: f.n_gone >= 1)

    def test_it_stops_while_the_server_says_nothing(self):
        def silent():
            with f.changed:
                f.changed.wait_for(lambda: f.is_over, TIMEOUT_S)
            yield b""
        with Fake() as f:
            f.chat(silent)
            p = self.start(f)
            f.wait(lambda: any(a.path == CHAT for a in f.asked))
            p.send_signal(signal.SIGTERM)
            out, err = p.communicate(timeout=TIMEOUT_S)
            self.assertEqual((128 + signal.SIGTERM, ""), (p.returncode, out))
            self.assertIn("it was stopped before its first token", err)
            with f.changed:
                f.is_over = True
                f.changed.notify_all()


class Memwall(Case):
    """The server is memwall serve."""

    def test_the_text_is_that_of_run(self):
        model = chain(self.folder, "chain", spell("\n", "Hey, folks.", "<|im_end|>")).path
        with Server("-m", model) as s:
            self.says("Hey, folks.\n", f"http://127.0.0.1:{s.port}", "hi")
            self.says("Hey,\n", f"http://127.0.0.1:{s.port}", "--stop", " ", "hi")

    def test_the_same_seed_gives_the_same_text(self):
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"))
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        options = ("--seed", "7", "--temp", "1.5", "--top-k", "50", "-n", "40")
        path = m.write(m.path)
        alone = memwall("run", "-m", path, *options, "hi").stdout
        self.assertGreater(len(alone), 10)
        with Server("-m", path) as s:
            self.says(alone, f"http://127.0.0.1:{s.port}", *options, "hi")

    def test_thinking_errors_and_figures(self):
        model = chain(self.folder, "thinker",
                      spell("\n", "<think>", "ab", "</think>", "c", "<|im_end|>"),
                      user=("<think>", "</think>")).path
        with Server("-m", model) as s:
            url = f"http://127.0.0.1:{s.port}"
            self.says("c\n", url, "hi")
            done = json.loads(self.ask(url, "--json", "hi").stdout.splitlines()[-1])
            self.assertEqual(("ab", "c", "thinker"),
                             tuple(done[k] for k in ("thinking", "text", "model")))
            self.assertGreater(done["n_decoded"], 3)
            self.fails(url, "no model", args=("-m", "other", "hi"))

    def test_thinking_that_only_closes(self):
        model = chain(self.folder, "thinker", spell("\n", "ab", "</think>", "c", "<|im_end|>"),
                      user=("<think>", "</think>")).path
        with Server("-m", model) as s:
            done = json.loads(self.ask(f"http://127.0.0.1:{s.port}", "--json",
                                       "hi").stdout.splitlines()[-1])
            self.assertEqual(("ab", "c"), (done["thinking"], done["text"]))
            deltas = [e["choices"][0]["delta"] for e in s.stream(
                "/v1/chat/completions", user(stream=True))[:-1]]
            self.assertEqual("ab</think>c", "".join(d.get("content", "") for d in deltas))
            self.assertEqual(["</think>"], [d["content"] for d in deltas
                                            if d.get("closes_thinking")])

    def test_keys(self):
        model = chain(self.folder, "chain", spell("\n", "Hey.", "<|im_end|>")).path
        with open(self.path("keys"), "w") as f:
            f.write("alpha\n")
        with Server("-m", model, "--api-key-file", self.path("keys")) as s:
            url = f"http://127.0.0.1:{s.port}"
            self.fails(url, "401", "MEMWALL_API_KEY")
            self.says("Hey.\n", url, "--api-key-file", self.path("keys"), "hi")


if __name__ == "__main__":
    unittest.main(verbosity=2)
