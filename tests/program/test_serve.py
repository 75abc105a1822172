#!/usr/bin/env python3
"""memwall serve: the protocols, the queue, clients that go away, and the end of the server."""
import gzip
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain, spell, wide_chain  # noqa: E402
from gguf_edit import U32  # noqa: E402
from program import (MEMWALL, TIMEOUT_S, FolderCase, KvCase, MeasuredHome,  # noqa: E402
                     environment, memwall)
from server import Server, comment, events_of, user  # noqa: E402

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


class ServeCase(FolderCase):
    def says(self, *parts, name="chain", **more):
        """Returns the path of a model that says these parts."""
        return chain(self.folder, name, spell("\n", *parts, "<|im_end|>"), **more).path

    def endless(self):
        """Returns the path of a model whose answers do not end before a long context is full."""
        m = chain(self.folder, "endless", {"\n": "a", "a": "b", "b": "a"},
                  keys={"qwen2.context_length": (U32, 1 << 20)})
        return m.path

    def flat(self):
        """Returns the path of a model whose tokens are all equally likely."""
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"))
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        return m.write(m.path)


class Chat(ServeCase):
    def test_an_answer(self):
        with Server("-m", self.says("Hey.")) as s:
            status, r = s.post(CHAT, user(model=s.model))
            self.assertEqual(200, status)
            self.assertEqual("chat.completion", r["object"])
            self.assertEqual(s.model, r["model"])
            self.assertTrue(r["id"].startswith("chatcmpl-"))
            choice = r["choices"][0]
            self.assertEqual({"role": "assistant", "content": "Hey."}, choice["message"])
            self.assertEqual("stop", choice["finish_reason"])
            usage = r["usage"]
            self.assertEqual(5, usage["completion_tokens"])
            self.assertEqual(usage["prompt_tokens"] + 5, usage["total_tokens"])
            self.assertNotEqual(r["id"], s.post(CHAT, user())[1]["id"])

    def test_a_stream(self):
        with Server("-m", self.says("Hey.")) as s:
            events = s.stream(CHAT, user(stream=True, stream_options={"include_usage": True}))
            self.assertEqual("[DONE]", events.pop())
            last = events.pop()
            self.assertEqual([], last["choices"])
            self.assertEqual(5, last["usage"]["completion_tokens"])
            self.assertTrue(all(e["usage"] is None for e in events))
            deltas = [e["choices"][0]["delta"] for e in events]
            self.assertEqual({"role": "assistant", "content": ""}, deltas[0])
            self.assertEqual("Hey.", "".join(d.get("content", "") for d in deltas))
            self.assertEqual(["stop"], [e["choices"][0]["finish_reason"] for e in events
                                        if e["choices"][0]["finish_reason"]])
            self.assertEqual(1, len({e["id"] for e in events}))
            self.assertNotIn("usage", s.stream(CHAT, user(stream=True))[0])

    def test_thinking_is_apart(self):
        model = self.says("<think>", "ab", "</think>", "c", name="thinker",
                          user=("<think>", "</think>"))
        with Server("-m", model) as s:
            message = s.post(CHAT, user())[1]["choices"][0]["message"]
            self.assertEqual(("ab", "c"), (message["reasoning_content"], message["content"]))
            deltas = [e["choices"][0]["delta"] for e in s.stream(CHAT, user(stream=True))[:-1]]
            self.assertEqual("ab", "".join(d.get("reasoning_content", "") for d in deltas))
            self.assertEqual("c", "".join(d.get("content", "") for d in deltas))

    def test_limits_and_stop_texts(self):
        with Server("-m", self.says("Hey, Mo.")) as s:
            for field in "max_tokens", "max_completion_tokens":
                r = s.post(CHAT, user(**{field: 3}))[1]
                choice = r["choices"][0]
                self.assertEqual(("Hey", "length"),
                                 (choice["message"]["content"], choice["finish_reason"]))
                self.assertEqual(3, r["usage"]["completion_tokens"])
                # Clients of other local servers write "no limit" as a number.
                choice = s.post(CHAT, user(**{field: -1}))[1]["choices"][0]
                self.assertEqual(("Hey, Mo.", "stop"),
                                 (choice["message"]["content"], choice["finish_reason"]))
            for stop in "y, M", ["x", "y, M"]:
                choice = s.post(CHAT, user(stop=stop))[1]["choices"][0]
                self.assertEqual(("He", "stop"),
                                 (choice["message"]["content"], choice["finish_reason"]))
            # A limit cuts where a stop text may begin: its bytes belong to the answer.
            choice = s.post(CHAT, user(stop="y, M", max_tokens=3))[1]["choices"][0]
            self.assertEqual("Hey", choice["message"]["content"])

    def test_messages_of_all_roles_reach_the_template(self):
        with Server("-m", self.says("Hey.")) as s:
            messages = [{"role": "developer", "content": "be brief"},
                        {"role": "user", "content": [{"type": "text", "text": "a"},
                                                     {"type": "text", "text": "b"}]},
                        {"role": "assistant", "content": "c"},
                        {"role": "user", "content": "d"}]
            n = s.post(CHAT, {"messages": messages})[1]["usage"]["prompt_tokens"]
            text = "".join(f"<|im_start|>{r}\n{c}<|im_end|>\n" for r, c in (
                ("system", "be brief"), ("user", "ab"), ("assistant", "c"), ("user", "d")))
            text += "<|im_start|>assistant\n"
            r = memwall("tokenize", "-m", self.path("chain.gguf"), "--ids", "--special", "-",
                        stdin=text)
            self.assertEqual(len(r.stdout.split()), n, r.stderr)

    def test_names_reach_the_template(self):
        template = "{% for m in messages %}{{ m.name or '' }}{{ m.content + '\n' }}{% endfor %}"
        with Server("-m", self.says("Hey.", template=template)) as s:
            n = [s.post(CHAT, {"messages": [{"role": "user", "content": "hi", **more}]})[1]
                 ["usage"]["prompt_tokens"] for more in ({}, {"name": None}, {"name": "Mo"})]
            self.assertEqual([3, 3, 5], n)
            status, r = s.post(CHAT, {"messages": [{"role": "user", "content": "x", "name": 5}]})
            self.assertEqual((400, "messages[0].name"), (status, r["error"]["param"]))

    def test_a_text_is_continued(self):
        with Server("-m", self.says("Hey.")) as s:
            r = s.post(TEXT, {"prompt": "a\n", "max_tokens": 4})[1]
            self.assertEqual("text_completion", r["object"])
            self.assertEqual("Hey.", r["choices"][0]["text"])
            events = s.stream(TEXT, {"prompt": ["a\n"], "max_tokens": 4, "stream": True})
            self.assertEqual("Hey.", "".join(e["choices"][0]["text"] for e in events[:-1]))

    def test_polls_are_not_in_the_log(self):
        with Server("-m", self.says("Hey.")) as s:
            for path in "/metrics", "/health":
                self.assertEqual(200, s.get(path)[0])
                self.assertEqual(405, s.post(path, {})[0])
            s.post(CHAT, user())
            self.assertIsNotNone(s.line("POST /v1/chat/completions 200"))
            log = "".join(s.lines)
            self.assertNotIn("GET /metrics", log)
            self.assertNotIn("GET /health", log)
            self.assertIn("POST /metrics 405", log)

    def test_the_common_beginning_is_not_evaluated_again(self):
        with Server("-m", self.says("Hey.")) as s:
            first = s.post(CHAT, user("a" * 300))[1]["usage"]
            self.assertEqual(0, first["prompt_tokens_details"]["cached_tokens"])
            again = s.post(CHAT, user("a" * 300))[1]["usage"]
            self.assertEqual(first["prompt_tokens"] - 1,
                             again["prompt_tokens_details"]["cached_tokens"])
            longer = s.post(CHAT, user("a" * 200 + "b" * 100))[1]["usage"]
            cached = longer["prompt_tokens_details"]["cached_tokens"]
            self.assertTrue(200 < cached < 230, cached)
            self.assertEqual("Hey.", s.post(CHAT, user("a" * 200 + "c"))[1]["choices"][0][
                "message"]["content"])

    def test_the_answer_is_that_of_run(self):
        model = self.flat()
        values = [("--seed", "5"), ("--seed", "6", "--top-k", "7"),
                  ("--seed", "7", "--temp", "1.5", "--min-p", "0.001"),
                  ("--seed", "8", "--top-p", "0.5", "--repeat-penalty", "1.5",
                   "--repeat-last", "9")]
        names = {"--seed": ("seed", int), "--top-k": ("top_k", int), "--temp": (
            "temperature", float), "--min-p": ("min_p", float), "--top-p": ("top_p", float),
            "--repeat-penalty": ("repetition_penalty", float),
            "--repeat-last": ("repeat_last_n", int)}
        with Server("-m", model) as s:
            for args in values:
                r = memwall("run", "-m", model, "--json", "-q", "-n", "40", *args, "hi")
                want = json.loads(r.stdout.splitlines()[-1])
                given = {names[n][0]: names[n][1](v) for n, v in zip(args[::2], args[1::2])}
                for _ in range(2):
                    status, got = s.post(CHAT, user(max_tokens=40, **given))
                    self.assertEqual(200, status, got)
                    self.assertEqual(want["text"], got["choices"][0]["message"]["content"])
                    self.assertEqual(want["n_decoded"], got["usage"]["completion_tokens"])

    def test_values_of_the_command_line_are_defaults(self):
        model = self.flat()
        with Server("-m", model, "--seed", "5", "-n", "9") as s:
            want = s.post(CHAT, user())[1]
            self.assertEqual(9, want["usage"]["completion_tokens"])
            self.assertEqual(want["choices"], s.post(CHAT, user())[1]["choices"])
            self.assertNotEqual(want["choices"], s.post(CHAT, user(seed=6))[1]["choices"])
            self.assertEqual(want["choices"], s.post(CHAT, user())[1]["choices"])

    def test_the_guide_is_served_without_a_model(self):
        with Server("--seed", "3", "-n", "20") as s:
            status, r = s.post(CHAT, user("How are you?", temperature=0))
            self.assertEqual(200, status, r)
            run = memwall("run", "--json", "-q", "-n", "20", "--temp", "0", "--telemetry",
                          "/dev/null", "How are you?")
            want = json.loads(run.stdout.splitlines()[-1])
            self.assertEqual(want["text"], r["choices"][0]["message"]["content"])
            self.assertEqual(want["n_decoded"], r["usage"]["completion_tokens"])
            raw = memwall("run", "--json", "-q", "-n", "20", "--temp", "0", "--raw", "Once")
            want = json.loads(raw.stdout.splitlines()[-1])
            r = s.post(TEXT, {"prompt": "Once", "temperature": 0})[1]
            self.assertEqual(want["text"], r["choices"][0]["text"])


class Refusals(ServeCase):
    def refused(self, s, body, field, *words, path=CHAT, status=400):
        got, r = s.post(path, body)
        self.assertEqual(status, got, r)
        error = r["error"]
        if field is not None:
            self.assertEqual(field, error["param"], r)
        for word in words:
            self.assertIn(word, error["message"])

    def test_fields_that_are_not_supported_are_named(self):
        with Server("-m", self.says("Hey.")) as s:
            for name, value in (("n", 2), ("top_logprobs", 3), ("presence_penalty", 2.5),
                                ("frequency_penalty", -3), ("logit_bias", {"5": 101}),
                                ("response_format", {"type": "xml"}),
                                ("tools", [{"type": "function"}]), ("tool_choice", "required"),
                                ("reasoning_effort", "high"), ("store", True),
                                ("modalities", ["text", "audio"]), ("audio", {}),
                                ("banana", 1), ("service_tier", "flex"),
                                ("stream_options", {"banana": True})):
                with self.subTest(name=name):
                    got, r = s.post(CHAT, user(**{name: value}))
                    self.assertEqual(400, got, r)
                    self.assertTrue(r["error"]["param"].startswith(name), r)
            for name, value in (("echo", True), ("suffix", "x"), ("best_of", 2),
                                ("logprobs", 6), ("messages", [])):
                with self.subTest(name=name):
                    self.refused(s, {"prompt": "a", name: value}, name, path=TEXT)
            # A value that asks for nothing is none.
            self.assertEqual(200, s.post(CHAT, user(n=1, logprobs=False, presence_penalty=0,
                                                    logit_bias={}, tools=[], user="me",
                                                    response_format={"type": "text"},
                                                    stop=None, audio=None))[0])

    def test_each_field_of_the_protocols_is_supported_or_named(self):
        schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"const": 1}}}
        tool = {"type": "function", "function": {"name": "f"}}
        message = {"messages": [{"role": "user", "content": "hi"}]}
        shared = {"model": "chain", "temperature": 1, "top_p": 0.9, "seed": 7, "stream": False,
                  "stop": ["x"], "max_tokens": 3, "presence_penalty": 1, "frequency_penalty": 1,
                  "logit_bias": {"5": 1}, "n": 1, "user": "u",
                  "stream_options": {"include_usage": True}}
        protocols = (
            (CHAT, message, {
                **shared, "max_completion_tokens": 3, "logprobs": True, "metadata": {"a": "b"},
                "modalities": ["text"], "parallel_tool_calls": True, "prompt_cache_key": "k",
                "prompt_cache_retention": "24h", "reasoning_effort": "none",
                "response_format": schema, "safety_identifier": "s", "service_tier": "auto",
                "store": False, "tool_choice": "none", "tools": []},
             {"audio": {"format": "wav", "voice": "x"}, "function_call": "auto",
              "functions": [{"name": "f"}], "moderation": {}, "prediction": {"type": "content"},
              "prompt_cache_options": {}, "verbosity": "low", "web_search_options": {},
              "n": 2, "reasoning_effort": "high", "store": True, "tools": [tool],
              "modalities": ["audio"], "service_tier": "flex", "top_logprobs": 2}),
            (TEXT, {"prompt": "hi"}, {
                **shared, "best_of": 1, "echo": False, "logprobs": 2, "suffix": ""},
             {"best_of": 2, "echo": True, "suffix": "x", "messages": [], "tools": [tool]}),
            ("/v1/messages", {**message, "max_tokens": 3}, {
                "model": "chain", "cache_control": {"type": "ephemeral"},
                "metadata": {"user_id": "u"}, "service_tier": "auto", "stop_sequences": ["x"],
                "output_config": {"format": {"type": "json_schema", "schema": {"const": 1}}},
                "stream": False, "system": "s", "temperature": 1, "top_k": 5, "top_p": 0.9,
                "thinking": {"type": "disabled"}, "tool_choice": {"type": "auto"}, "tools": []},
             {"container": "c", "context_management": {}, "diagnostics": {}, "speed": "fast",
              "inference_geo": "eu", "mcp_servers": [], "output_config": {"effort": "low"},
              "tools": [{"name": "f"}], "tool_choice": {"type": "any"}}),
            ("/api/chat", message, {
                "model": "chain", "stream": False, "format": "json", "keep_alive": "5m",
                "think": False, "tools": [], "options": {
                    "temperature": 1, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "seed": 1,
                    "stop": ["x"], "num_predict": 3, "num_ctx": 64, "repeat_penalty": 1.1,
                    "repeat_last_n": 8, "presence_penalty": 1, "frequency_penalty": 1}},
             {"logprobs": True, "top_logprobs": 2, "think": "high", "tools": [tool], **{
                 f"options.{name}": 8 for name in (
                     "numa", "num_batch", "num_gpu", "main_gpu", "low_vram", "use_mmap",
                     "use_mlock", "num_thread", "num_keep", "mirostat", "mirostat_tau",
                     "mirostat_eta", "penalize_newline", "tfs_z", "typical_p")}}),
            ("/api/generate", {"prompt": "hi"}, {
                "model": "chain", "stream": False, "system": "s", "raw": False, "suffix": "",
                "template": "", "context": [], "images": [], "format": {"const": 1}},
             {"suffix": "x", "template": "t", "context": [1], "images": ["aGk="], "width": 5,
              "height": 5, "steps": 5, "logprobs": True, "top_logprobs": 1}))
        with Server("-m", self.says("Hey.")) as s:
            for path, base, good, bad in protocols:
                for name, value in good.items():
                    with self.subTest(path=path, name=name):
                        status, r = s.post(path, {"stream": False, **base, name: value})
                        self.assertEqual(200, status, r)
                for name, value in bad.items():
                    with self.subTest(path=path, name=name):
                        outer, _, inner = name.partition(".")
                        more = {outer: {inner: value} if inner else value}
                        status, r = s.post(path, {"stream": False, **base, **more})
                        self.assertEqual(400, status, r)
                        error = r["error"]
                        text = error if isinstance(error, str) else error["message"]
                        if path in (CHAT, TEXT):
                            self.assertTrue(error["param"].startswith(name), r)
                        else:
                            self.assertTrue(text.startswith(name), r)

    def test_wrong_values_are_named(self):
        with Server("-m", self.says("Hey.")) as s:
            for name, value in (("temperature", -1), ("temperature", "hot"), ("top_p", 1.1),
                                ("top_k", 1.5), ("max_tokens", 0), ("max_tokens", -2),
                                ("stop", ""),
                                ("stop", ["x"] * 17), ("stop", "x" * 257), ("stream", 1),
                                ("seed", 0.5), ("model", 5), ("messages", "hi"),
                                ("messages", [])):
                with self.subTest(name=name, value=value):
                    self.refused(s, user(**{name: value}), name)

    def test_wrong_numbers_are_named_as_they_were_given(self):
        with Server("-m", self.says("Hey.")) as s:
            for name, number, why in (
                    ("top_p", "1.0000001", "1.0000001 is not from 0 to 1"),
                    ("temperature", "-1e999", "-1e999 is not from 0 to 100"),
                    ("seed", "9223372036854775808", "9223372036854775808 is not from -1 to"),
                    ("top_k", "1e300", "1e300 is not from -1 to"),
                    ("top_k", "1.5", "expected a whole number")):
                with self.subTest(name=name, number=number):
                    body = json.dumps(user())[:-1] + f', "{name}": {number}}}'
                    got, r = s.post(CHAT, body)
                    self.assertEqual(400, got, r)
                    self.assertIn(f"{name}: {why}", r["error"]["message"])

    def test_wrong_messages_are_named(self):
        hi = {"role": "user", "content": "hi"}
        with Server("-m", self.says("Hey.")) as s:
            for message, field in (
                    ({"role": "robot", "content": "x"}, "messages[1].role"),
                    ({"content": "x"}, "messages[1].role"),
                    ({"role": "user", "content": 5}, "messages[1].content"),
                    ({"role": "user", "content": [{"type": "image_url"}]},
                     "messages[1].content[0].type"),
                    ({"role": "user", "content": [{"type": "text"}]},
                     "messages[1].content[0].text"),
                    ({"role": "user", "content": "x", "audio": {}}, "messages[1].audio"),
                    ("x", "messages[1]")):
                with self.subTest(message=message):
                    self.refused(s, {"messages": [hi, message]}, field)
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            for empty in {}, {"content": None}:
                for role in "user", "system", "developer":
                    self.refused(s, {"messages": [{"role": role, **empty}]}, "messages[0].content")
                for role in "user", "assistant":
                    status, r = s.post("/v1/messages", {"max_tokens": 9, "messages": [
                        {"role": role, **empty}, hi]})
                    self.assertEqual(400, status, r)
                    self.assertIn("messages[0].content", r["error"]["message"])
                # Clients send back the answers that they got.  In Ollama's protocol a text that
                # is missing is empty.
                for path, messages in (
                        (CHAT, [hi, {"role": "assistant", "tool_calls": [call], **empty},
                                {"role": "tool", "tool_call_id": "c", **empty}]),
                        (CHAT, [hi, {"role": "assistant", "reasoning": "hm", **empty}, hi]),
                        ("/api/chat", [{"role": "user", **empty}])):
                    self.assertEqual(200, s.post(path, {"messages": messages,
                                                        "stream": False})[0])
            self.refused(s, {}, "messages", "missing")
            self.refused(s, {}, "prompt", "missing", path=TEXT)

    def test_the_template_may_refuse(self):
        template = "{{ raise_exception('no rain here') if 'rain' in messages[0]['content'] }}" \
                   "{{ messages[0]['content'] + '\n' }}"
        with Server("-m", self.says("Hey.", template=template)) as s:
            for stream in False, True:
                self.refused(s, user("rain", stream=stream), None, "no rain here")
            self.assertEqual(200, s.post(CHAT, user())[0])

    def test_a_prompt_that_is_too_long(self):
        with Server("-m", self.says("Hey."), "--ctx", "64") as s:
            for stream in False, True:
                got, r = s.post(CHAT, user("a" * 100, stream=stream))
                self.assertEqual((400, "context_length_exceeded"), (got, r["error"]["code"]))
            got, r = s.post(CHAT, user("a" * 200000))
            self.assertEqual((400, "context_length_exceeded"), (got, r["error"]["code"]), r)
            self.assertEqual(200, s.post(CHAT, user())[0])

    def test_a_full_context_cuts_the_answer(self):
        with Server("-m", self.endless(), "--ctx", "64") as s:
            r = s.post(CHAT, user())[1]
            self.assertEqual("length", r["choices"][0]["finish_reason"])
            self.assertEqual("length", s.stream(CHAT, user(stream=True))[-2]["choices"][0][
                "finish_reason"])

    def test_other_models_paths_and_methods(self):
        with Server("-m", self.says("Hey.")) as s:
            self.refused(s, user(model="gpt-4"), "model", "gpt-4", s.model, status=404)
            self.assertEqual(200, s.post(CHAT, user(model=s.model.upper() + ":latest"))[0])
            for name in "org/" + s.model, f"hf.co/org/{s.model.upper()}:latest":
                self.assertEqual(200, s.post(CHAT, user(model=name))[0])
                self.assertEqual(200, s.post("/api/show", {"model": name})[0])
                self.assertEqual(200, s.get("/v1/models/" + name)[0])
            for name in "", "org/", "x" + s.model, "org/x" + s.model, s.model + "/org", s.model[1:]:
                self.assertEqual(404, s.post(CHAT, user(model=name))[0], name)
            self.assertEqual(404, s.get("/v2/x")[0])
            self.assertEqual(405, s.get(CHAT)[0])
            self.assertEqual(405, s.post("/metrics", {})[0])

    def test_paths_that_are_nearly_right(self):
        with Server("-m", self.says("Hey.")) as s:
            for path in ("/v1//chat/completions", "//v1/chat/completions", CHAT + "/",
                         "/chat/completions", "/v1/v1/chat/completions",
                         "//v1/v1//chat/completions//", f"http://127.0.0.1:{s.port}{CHAT}"):
                with self.subTest(path=path):
                    status, r = s.post(path, user())
                    self.assertEqual((200, "chat.completion"), (status, r.get("object")))
            for path, key in (("/v1/api/tags", "models"), ("/models", "data"),
                              ("/v1/models/", "data"), ("/models/chain", "id"),
                              ("/v1/health", "status"), ("/health/", "status")):
                with self.subTest(path=path):
                    status, text = s.get(path)
                    self.assertEqual(200, status)
                    self.assertIn(key, json.loads(text))
            self.assertEqual("message", s.post("/v1/v1/messages",
                                               user(max_tokens=9))[1]["type"])
            for path in "/", "///", f"http://127.0.0.1:{s.port}", f"http://127.0.0.1:{s.port}/":
                self.assertEqual((200, "memwall is running\n"), s.get(path), path)
            for path in ("/v1/embeddings", "/v1/responses", "/v1", "/v1/v1/v1/models", "/v11",
                         "/v1/chat", "x"):
                with self.subTest(path=path):
                    self.refused(s, {}, None, "/v1/chat/completions", "/v1/messages",
                                 "/api/generate", path=path, status=404)

    def test_a_body_that_is_compressed(self):
        body = json.dumps(user()).encode()
        with Server("-m", self.says("Hey.")) as s:
            for name in "gzip", "deflate", "br", "gzip, identity":
                status, r = s.post(CHAT, gzip.compress(body), Content_Encoding=name)
                self.assertEqual(415, status, r)
                self.assertIn("Content-Encoding", r["error"]["message"])
            for name in "Identity", "identity ", "identity \t":
                self.assertEqual(200, s.post(CHAT, body, Content_Encoding=name)[0])

    def test_a_refusal_comes_when_the_body_is_sent(self):
        """Clients that send all before they read would lose one that closes the connection."""
        body = b'{"messages":[{"role":"user","content":"' + b"x" * 5000000 + b'"}]}'
        with Server("-m", self.says("Hey.")) as s:
            c = s.connect()
            for status, path, data, headers in (
                    (413, CHAT, body, {}), (413, "/api/chat", body, {}),
                    (404, "/v1/embeddings", body, {}), (405, "/metrics", body, {}),
                    (415, CHAT, body[:9999], {"Content-Encoding": "gzip"}),
                    (403, CHAT, body, {"Origin": "http://evil.example"}),
                    (403, CHAT, body, {"Host": "evil.example"})):
                for chunks in data, [data[:999], data[999:]]:
                    with self.subTest(status=status, path=path, chunked=chunks is not data):
                        c.request("POST", path, chunks, headers)
                        r = c.getresponse()
                        message = json.loads(r.read())["error"]
                        self.assertEqual(status, r.status, message)
                        self.assertNotEqual("close", r.headers["Connection"])
                        if status == 413:
                            limit = re.search(r"longer than ([\d,]+) bytes", str(message))
                            limit = int(limit.group(1).replace(",", ""))
            c.close()
            c, r = s.open(CHAT, b" " * limit)
            self.assertEqual(400, r.status)
            c.close()
            self.assertEqual(413, s.post(CHAT, b" " * (limit + 1))[0])

    def test_a_refusal_does_not_wait_for_a_body_that_may_not_come(self):
        with Server("-m", self.says("Hey.")) as s:
            for status, path, headers in (
                    (404, "/v1/embeddings", "Expect: 100-continue\r\nContent-Length: 5000000"),
                    (413, CHAT, "Expect: 100-Continue\r\nContent-Length: 5000000"),
                    (404, "/v1/embeddings", "Expect: 100-continue \r\nContent-Length: 5000000"),
                    (413, CHAT, "Content-Length: 500000000"),
                    (404, "/v1/embeddings", "Content-Length: 500000000"),
                    # libmicrohttpd 1.0 refuses these with 400 before it calls the server.
                    ("(?:400|501)", CHAT, "Transfer-Encoding: gzip"),
                    ("(?:400|501)", CHAT, "Transfer-Encoding: gzip, chunked"),
                    ("(?:400|404)", "/v1/embeddings", "Transfer-Encoding: identity")):
                with self.subTest(status=status, headers=headers):
                    with s.socket() as c:
                        c.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n"
                                  .encode())
                        with c.makefile("rb") as f:
                            self.assertRegex(f.readline().decode(), f"^HTTP/1.1 {status} ")

    def test_json_that_is_broken(self):
        deep = '{"messages":' + "[" * 500 + "]" * 500 + "}"
        many = json.dumps(user(stop=["x"] * 70000))
        nested = '{"messages":[{"role":"user","content":"a"}],"metadata":' + '{"a":' * 28 + \
            "1" + "}" * 28 + "}"
        with Server("-m", self.says("Hey.")) as s:
            for body in ("", "{", "[]", "null", '"x"', b'{"messages": "\xff"}', "{} x", deep,
                         many, nested, b"\x00" * 100, '{"messages": "\\ud83d\\u0041"}'):
                with self.subTest(body=body[:40]):
                    got, r = s.post(CHAT, body)
                    self.assertEqual(400, got, r)
                    self.assertTrue(r["error"]["message"])
            self.assertEqual(200, s.post(CHAT, user("\x00\u202e\ud83d\ude00"))[0])


class Keys(ServeCase):
    def test_a_key_is_needed(self):
        with open(self.path("keys"), "w") as f:
            f.write("# keys\n\nalpha\n  beta \n")
        with Server("-m", self.says("Hey."), "--api-key-file", self.path("keys")) as s:
            for headers in ({}, {"Authorization": "Bearer gamma"}, {"Authorization": "alpha"},
                            {"x_api_key": "alph"}, {"x_api_key": "alph a"},
                            {"Authorization": "Bearer "}, {"x_api_key": " "}):
                status, r = s.post(CHAT, user(), **headers)
                self.assertEqual((401, "authentication_error"), (status, r["error"]["type"]))
            for headers in ({"Authorization": "Bearer alpha"}, {"Authorization": "bearer beta"},
                            {"x_api_key": "beta"}, {"x_api_key": "beta "},
                            {"Authorization": "Bearer alpha \t"}):
                self.assertEqual(200, s.post(CHAT, user(), **headers)[0])
            self.assertEqual(401, s.get("/metrics")[0])
            self.assertEqual(200, s.get("/health")[0])
            # One that is right is enough: a client may send a key of another server, too.
            for right in "alpha", "beta":
                for headers in ({"Authorization": "Bearer " + right, "x_api_key": "gamma"},
                                {"Authorization": "Bearer " + right, "x_api_key": ""},
                                {"Authorization": "Bearer gamma", "x_api_key": right},
                                {"Authorization": "Basic Z2FtbWE=", "x_api_key": right}):
                    with self.subTest(headers=headers):
                        self.assertEqual(200, s.post(CHAT, user(), **headers)[0])
            self.assertEqual(401, s.post(CHAT, user(), Authorization="Bearer gamma",
                                         x_api_key="delta")[0])

    def test_a_page_reads_why_it_is_refused(self):
        """Without the header the browser hides the reply from the page, also its status."""
        with open(self.path("keys"), "w") as f:
            f.write("alpha\n")
        right = {"Authorization": "Bearer alpha"}
        origins = "https://a.example", "https://" + "a." * 126 + "x:65535"
        with Server("-m", self.says("Hey."), "--api-key-file", self.path("keys")) as s:
            for status, path, body, headers in (
                    (401, CHAT, user(), {}), (401, "/v1/embeddings", {}, {}),
                    (401, "/metrics", None, {}), (401, CHAT, b" " * 5000000, {}),
                    (404, "/v1/embeddings", {}, right), (405, CHAT, None, right),
                    (413, CHAT, b" " * 5000000, right), (400, CHAT, "{", right),
                    (404, CHAT, user(model="x"), right),
                    (415, CHAT, user(), {**right, "Content_Encoding": "gzip"})):
                for origin in origins:
                    with self.subTest(status=status, path=path, origin=origin):
                        c, r = s.open(path, body, Origin=origin, **headers)
                        self.assertEqual((status, origin),
                                         (r.status, r.headers["Access-Control-Allow-Origin"]))
                        r.read()
                        c.close()
        with Server("-m", self.says("Hey.")) as s:
            for headers in ({"Origin": "http://evil.example"},
                            {"Origin": "http://localhost", "Host": "evil.example"}):
                c, r = s.open(CHAT, user(), **headers)
                self.assertEqual((403, None),
                                 (r.status, r.headers["Access-Control-Allow-Origin"]))
                c.close()

    def test_without_a_key_only_this_machine_may_ask(self):
        for address in "0.0.0.0:0", "[::]:0", "192.0.2.1:0":
            r = memwall("serve", "-m", self.says("Hey."), "--listen", address)
            self.assertEqual(2, r.returncode)
            self.assertIn("--api-key-file", r.stderr)
        for address in "8080", "localhost", "x:1", "127.0.0.1:70000", "127.0.0.1:":
            r = memwall("serve", "-m", self.says("Hey."), "--listen", address)
            self.assertEqual(2, r.returncode, address)
            self.assertIn("--listen", r.stderr)
        for text in None, "", "# none\n":
            if text is not None:
                with open(self.path("keys"), "w") as f:
                    f.write(text)
            r = memwall("serve", "-m", self.says("Hey."), "--api-key-file", self.path("keys"))
            self.assertEqual(1, r.returncode)
            self.assertIn("keys", r.stderr)
            self.assertIn("--api-key-file: ", r.stderr)
        r = memwall("serve", "-m", self.says("Hey."), "--api-key", "abc")
        self.assertIn('--api-key-file: cannot open "abc"', r.stderr)

    def test_pages_of_other_machines_may_not(self):
        with Server("-m", self.says("Hey.")) as s:
            self.assertEqual(403, s.post(CHAT, user(), Origin="http://evil.example")[0])
            for origin in "null", "https://app", "apps://x", "xapp://x", "://", "file":
                self.assertEqual(403, s.post(CHAT, user(), Origin=origin)[0], origin)
            for name in ("evil.example:80", "localhost.evil.example", "evillocalhost", ".localhost",
                         "localhost..", ".", "0.0.0.1", "[::2]", "ip6-localhost.evil.example",
                         "localhost .evil.example", "localhost a", "evil.example "):
                status, text = s.get("/health", Host=name)
                self.assertEqual(403, status, name)
                self.assertIn("--api-key-file", text)
            for name in ("localhost", "LocalHost.:80", "models.localhost:80", "0.0.0.0:80", "[::]",
                         "ip6-localhost:80", "ip6-loopback", "localhost \t", "[::1] "):
                self.assertEqual(200, s.get("/health", Host=name)[0], name)
            for origin in ("http://localhost:3000", "http://127.0.0.1", "http://[::1]:5",
                           "http://localhost ", "app://notes.example", "file://",
                           "tauri://localhost", "vscode-file://vscode-app",
                           "vscode-webview://1a2b"):
                c, r = s.open(CHAT, user(), Origin=origin)
                self.assertEqual((200, origin.rstrip()),
                                 (r.status, r.headers["Access-Control-Allow-Origin"]))
                r.read()
                c.close()
            c, r = s.open(CHAT, method="OPTIONS", Origin="http://localhost:3000")
            self.assertEqual(204, r.status)
            self.assertIn("POST", r.headers["Access-Control-Allow-Methods"])
            c.close()
            # Clients for browsers send headers of their own.
            names = "authorization, content-type, x-stainless-os, " \
                    "anthropic-dangerous-direct-browser-access"
            c, r = s.open(CHAT, method="OPTIONS", Origin="http://localhost:3000",
                          Access_Control_Request_Headers=names)
            self.assertEqual((204, names),
                             (r.status, r.headers["Access-Control-Allow-Headers"]))
            c.close()


class Queue(ServeCase):
    def begin(self, s, **more):
        """Begin an answer that does not end; returns the connection and the response."""
        c, r = s.open(CHAT, user(stream=True, **more))
        self.assertEqual(200, r.status)
        next(events_of(r))
        return c, r

    def test_a_client_that_goes_away_ends_its_answer(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            for n in 1, 2, 3:
                c, r = self.begin(s)
                r.close()
                c.close()
                # It would have to wait for the end of the first one otherwise.
                self.assertEqual(200, s.post(CHAT, user(max_tokens=2))[0])
                self.assertEqual(n, s.metric("answers_cancelled_total"))
            # And one that never gets a byte.
            c = s.connect()
            c.request("POST", CHAT, json.dumps(user()))
            while s.metric("requests_running") != 1:
                pass
            c.close()
            self.assertEqual(200, s.post(CHAT, user(max_tokens=2))[0])
            self.assertEqual(4, s.metric("answers_cancelled_total"))
            # The tokens of its answer are not counted yet.
            self.assertIsNotNone(s.line(r"reused in \d\S* s, the client went away"))

    def half_closed(self, s, path, body, version="1.1"):
        """Send a request, and then nothing more."""
        body = json.dumps(body).encode()
        c = s.socket()
        c.sendall(f"POST {path} HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        c.shutdown(socket.SHUT_WR)
        return c

    def rest(self, c):
        data = b""
        while block := c.recv(65536):
            data += block
        c.close()
        return data.decode()

    def test_a_client_that_only_sends_no_more_gets_its_answer(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            c, r = self.begin(s)
            requests = ((CHAT, user(max_tokens=2)), (CHAT, user(max_tokens=2, stream=True)),
                        ("/api/chat", user(options={"num_predict": 2})),
                        ("/api/chat", user(options={"num_predict": 2}, stream=False)))
            waiting = [self.half_closed(s, *x) for x in requests]
            old = self.half_closed(s, *requests[0], version="1.0")
            for w in waiting:  # the bytes that show whether it is there
                self.assertRegex(w.recv(13, socket.MSG_PEEK), b"^HTTP/1.1 [12]00 $")
            self.assertEqual("", self.rest(old))  # such bytes could confuse it
            r.close()
            c.close()
            for w in waiting:
                text = self.rest(w)
                self.assertEqual(1, text.count("200 OK"), text)
                self.assertLessEqual(text.count("100 Continue"), 1, text)
                self.assertEqual("ab", "".join(re.findall(r'"content": ?"([ab]+)"', text)), text)

    def test_it_gets_its_answer_beside_connections_that_wait(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0",
                    "--allow-settings") as s:
            idle = s.connect()
            idle.request("GET", "/health")
            idle.getresponse().read()
            for n in 1, 2, 400:
                for stream in False, True:
                    text = self.rest(self.half_closed(s, CHAT, user(max_tokens=n, stream=stream)))
                    self.assertEqual(1, text.count("200 OK"), (n, stream, text))
            text = self.rest(self.half_closed(s, "/memwall/settings", {"ctx": "1k"}))
            self.assertEqual(1, text.count("200 OK"), text)
            idle.request("GET", "/health")
            self.assertEqual(200, idle.getresponse().status)
            idle.close()

    def test_a_client_that_sends_no_more_may_go_away(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            for n, stream in (1, False), (2, True):
                c = self.half_closed(s, CHAT, user(stream=stream))
                self.assertRegex(c.recv(13), b"^HTTP/1.1 [12]00 $")
                while s.metric("requests_running") != 1:
                    pass
                c.close()
                self.assertEqual(200, s.post(CHAT, user(max_tokens=2))[0])
                self.assertEqual(n, s.metric("answers_cancelled_total"))

    def test_a_place_in_the_queue(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            c, r = self.begin(s)
            self.assertEqual("0", r.headers["X-Queue-Position"])
            waiting = []
            for place in "1", "2":
                w = s.open(CHAT, user(stream=True, max_tokens=2))
                self.assertEqual(place, w[1].headers["X-Queue-Position"])
                self.assertEqual(f"{place} in the queue", comment(w[1]))
                waiting.append(w)
            self.assertEqual(2, s.metric("requests_waiting"))
            r.close()
            c.close()
            self.assertEqual("1 in the queue", comment(waiting[1][1]))
            for c, r in waiting:
                text = "".join(e["choices"][0]["delta"].get("content", "")
                               for e in events_of(r) if e != "[DONE]")
                self.assertEqual("ab", text)
                c.close()

    def test_a_stream_that_waits_says_so(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0",
                    "--request-time", "1") as s:
            endless = s.connect()
            endless.request("POST", CHAT, json.dumps(user()))
            while s.metric("requests_running") != 1:
                pass
            waiting = s.open(CHAT, user(stream=True, max_tokens=2))
            self.assertEqual(["1 in the queue", "waiting", "waiting"],
                             [comment(waiting[1]) for _ in range(3)])
            other = s.open("/api/chat", user(options={"num_predict": 2}))
            self.assertEqual(["", ""], [json.loads(other[1].readline())["message"]["content"]
                                        for _ in range(2)])
            endless.close()
            self.assertEqual("[DONE]", list(events_of(waiting[1]))[-1])
            self.assertEqual("ab", "".join(e["message"]["content"] for e in events_of(other[1])))
            for c, r in waiting, other:
                c.close()

    def test_the_first_client_of_a_model_that_is_loading_waits_like_others(self):
        body = json.dumps(user(stream=True, max_tokens=2)).encode()
        request = (f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        with MeasuredHome() as home:
            for _ in range(20): # it may be loaded before the request comes
                reply = self.ask_early(home, request)
                self.assertIn("200 OK", reply)
                self.assertIn("[DONE]", reply)
                if "X-Queue-Position: 1" in reply:
                    break
            self.assertIn("X-Queue-Position: 1", reply)
            self.assertIn(": 1 in the queue", reply)

    def ask_early(self, home, request):
        """Start a server, and send it a request as soon as it listens.  Returns the reply."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        p = subprocess.Popen([MEMWALL, "serve", "-q", "-m", self.endless(), "--ctx", "500k",
                              "--kv", "q4_0", "--listen", f"127.0.0.1:{port}"],
                             env=environment(home), stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        reply = b""
        while p.poll() is None and not reply:
            try:
                with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as c:
                    c.sendall(request)
                    while block := c.recv(65536):
                        reply += block
            except ConnectionRefusedError:
                pass
        p.terminate()
        p.wait(TIMEOUT_S)
        return reply.decode()

    def test_clients_take_turns(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            c, r = self.begin(s)
            mine = [s.open(CHAT, user(stream=True, max_tokens=2)) for _ in range(2)]
            self.assertEqual(["1 in the queue", "2 in the queue"],
                             [comment(m[1]) for m in mine])
            other = s.open(CHAT, user(stream=True, max_tokens=2), source=("127.0.0.2", 0))
            self.assertEqual("1", other[1].headers["X-Queue-Position"])
            r.close()
            c.close()
            for c, r in mine + [other]:
                self.assertEqual("[DONE]", list(events_of(r))[-1])
                c.close()

    def test_a_full_queue(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            c, r = self.begin(s)
            waiting = [s.open(CHAT, user(stream=True, max_tokens=1)) for _ in range(32)]
            one, refused = s.open(CHAT, user())
            self.assertEqual((503, "1"), (refused.status, refused.headers["Retry-After"]))
            self.assertIn("waiting", json.loads(refused.read())["error"]["message"])
            one.close()
            for i, (w, answer) in enumerate(waiting):
                if i % 2 == 0: # these go away while they wait
                    answer.close()
                    w.close()
            r.close()
            c.close()
            for w, answer in waiting[1::2]:
                self.assertEqual("[DONE]", list(events_of(answer))[-1])
                w.close()
            self.assertEqual(0, s.metric("requests_waiting"))

    def test_a_signal_ends_the_server_in_order(self):
        with Server("-m", self.endless(), "--ctx", "500k", "--kv", "q4_0") as s:
            running, waiting = self.begin(s), s.open(CHAT, user(stream=True))
            whole = s.connect()
            whole.request("POST", CHAT, json.dumps(user()))
            while s.metric("requests_waiting") != 2:
                pass
            s.process.send_signal(signal.SIGTERM)
            for c, r in running, waiting:
                last = list(events_of(r))[-1]
                self.assertIn("stopping", last["error"]["message"])
                c.close()
            r = whole.getresponse()
            self.assertEqual(503, r.status)
            r.read()
            whole.close()
            self.assertEqual(128 + signal.SIGTERM, s.process.wait(TIMEOUT_S))

    def test_a_line_for_each_request(self):
        with Server("-m", self.says("Hey.")) as s:
            s.post(CHAT, user())
            self.assertIsNotNone(s.line(r"127\.0\.0\.1 POST /v1/chat/completions 200 prompt \d+ "
                                        r"\+ 0 reused, answer 5 in \d"))
            s.get("/x\x1b[31m".replace("\x1b", "%1b"))
            self.assertIsNotNone(s.line(r"GET /x\S*\[31m 404"))
            self.assertFalse([line for line in s.lines if "\x1b" in line])
        with Server("-m", self.says("Hey."), "-q") as s:
            s.post(CHAT, user())
            s.end()
            self.assertFalse([line for line in s.lines if "POST" in line])


class Pages(ServeCase):
    def test_health_and_models(self):
        with Server("-m", self.says("Hey.")) as s:
            self.assertEqual((200, {"status": "ok"}),
                             (lambda a: (a[0], json.loads(a[1])))(s.get("/health")))
            model = json.loads(s.get("/v1/models")[1])["data"][0]
            self.assertEqual((s.model, "model"), (model["id"], model["object"]))
            self.assertEqual((200, model), (lambda a: (a[0], json.loads(a[1])))(
                s.get("/v1/models/" + s.model)))
            status, text = s.get("/v1/models/other")
            self.assertEqual((404, "model"), (status, json.loads(text)["error"]["param"]))
            self.assertEqual(405, s.post("/v1/models/" + s.model, {})[0])
            c, r = s.open("/health", method="HEAD")
            self.assertEqual((200, b""), (r.status, r.read()))
            c.close()

    def test_metrics(self):
        with Server("-m", self.says("Hey."), "-b", "256M") as s:
            s.post(CHAT, user())
            s.post(CHAT, "{")
            text = s.get("/metrics")[1]
            seen = set()
            for line in text.splitlines():
                self.assertRegex(line, r"^(# (HELP|TYPE) memwall_\w+ .+|"
                                       r"memwall_\w+(\{\w+=\"[^\"]*\"(,\w+=\"[^\"]*\")*\})? "
                                       r"-?[\d.e+-]+)$")
                if not line.startswith("#"):
                    name = re.match(r"\w+", line).group()
                    self.assertIn(f"# TYPE {name} ", text)
                    key = line.rsplit(" ", 1)[0]
                    self.assertNotIn(key, seen)
                    seen.add(key)
            self.assertIn('memwall_requests_total{status="2xx"} 1\n', text)
            self.assertIn('memwall_requests_total{status="4xx"} 1\n', text)
            self.assertEqual(256 << 20, s.metric("budget_bytes"))
            self.assertEqual(5, s.metric("answer_tokens_total"))
            self.assertGreater(s.metric("kv_tokens"), 5)
            self.assertGreater(s.metric("pinned_bytes"), 1000)
            self.assertGreater(s.metric("disk_read_bytes_total"), 1000)
            plan = json.loads(memwall("plan", "--json", "-m", self.path("chain.gguf"), "-b",
                                      "256M").stdout)
            for item in plan["items"] if isinstance(plan.get("items"), list) else []:
                self.assertIn(f'memwall_plan_bytes{{item="{item["name"]}"}}', text)
            verdicts = re.findall(r'^memwall_verdict\{binds="(\w+)"\} (\d)$', text, re.M)
            self.assertEqual(1, sum(int(v) for _, v in verdicts))

    def test_figures_of_a_request_whose_options_are_gone(self):
        """The sanitizers find texts of options that are read after they were freed."""
        model = self.says("Hey.")
        with Server("-m", model) as s:
            isa = re.search(r'isa="(\w+)"', s.get("/metrics")[1]).group(1)
        with Server("-m", model, "--isa", isa) as s:
            for seed in 1, 2, 3:
                self.assertEqual(200, s.post(CHAT, user("a" * 60, seed=seed))[0])
                self.assertIn(f'isa="{isa}"', s.get("/metrics")[1])



class Beginnings(KvCase):
    """System messages, tools and what first questions have in common survive the server."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = wide_chain(cls.home, "slow", template="{% if tools %}{{ tools | tojson }}"
                               "{% endif %}" + CHATML)

    def files(self):
        return sorted(os.listdir(self.kv)) if os.path.isdir(self.kv) else []

    def kept(self):
        return [f for f in self.files() if f.startswith(".beginning-")]

    def ask(self, *requests, args=()):
        """Start a server for these requests, and stop it.  Returns the tokens of each prompt that
        were not evaluated, and the texts."""
        cached, texts = [], []
        with Server("-m", self.model, "-c", "2048", "--temp", "0", "--blas", "never", *args,
                    home=self.home) as s:
            for request in requests:
                path = TEXT if "prompt" in request else CHAT
                status, r = s.post(path, {"max_tokens": 4, **request})
                self.assertEqual(200, status, r)
                cached.append(r["usage"]["prompt_tokens_details"]["cached_tokens"])
                choice = r["choices"][0]
                texts.append(choice["text"] if "text" in choice else choice["message"]["content"])
            s.end()
        return cached, texts

    def says(self, system, *turns):
        roles = "user", "assistant"
        return {"messages": [{"role": "system", "content": system}] * (system != "") +
                [{"role": roles[i % 2], "content": t} for i, t in enumerate(turns)]}

    def test_a_system_message_is_read_after_a_restart(self):
        long = self.says("be brief " * 60, "why")
        (none,), before = self.ask(long, args=("--no-save",))
        self.assertEqual([], self.files())
        (cold,), first = self.ask(long)
        self.assertEqual((0, 0), (none, cold))
        self.assertEqual(1, len(self.kept()))
        (warm,), again = self.ask(self.says("be brief " * 60, "how"))
        self.assertEqual(512, warm)
        self.assertEqual((before, before), (first, again))
        for name in self.files():
            self.assertEqual(0o600, stat.S_IMODE(os.stat(os.path.join(self.kv, name)).st_mode))
        self.assertEqual(0o700, stat.S_IMODE(os.stat(self.kv).st_mode))
        self.assertEqual(([0], before), self.ask(long, args=("--kv-space", "none")))

    def test_clients_that_alternate_read_their_beginnings(self):
        a, b = "be brief " * 60, "speak up " * 60
        self.ask(self.says(a, "why"))
        self.ask(self.says(b, "why"))
        cached, texts = self.ask(self.says(a, "so"), self.says(b, "so"),
                                 self.says(a, "so", "ab", "and"), self.says(b, "no"))
        self.assertEqual([512] * 4, cached)
        self.assertEqual(2, len(self.kept()))

    def test_tools_are_a_beginning(self):
        def request(question):
            tool = {"type": "function", "function": {
                "name": "look", "description": "look around " * 40,
                "parameters": {"type": "object", "properties": {}}}}
            return {"tools": [tool], "tool_choice": "auto",
                    "messages": [{"role": "user", "content": question}]}

        self.ask(request("why"))
        self.assertEqual(1, len(self.kept()))
        self.assertEqual([512], self.ask(request("how"))[0])

    def test_a_manual_is_kept_when_it_comes_again(self):
        manual = "a long text " * 50
        self.ask(self.says("", manual + "why"))
        self.assertEqual([], self.kept())
        self.ask(self.says("", manual + "how"))
        self.assertEqual(1, len(self.kept()))
        self.assertEqual([512], self.ask(self.says("", manual + "who"))[0])

    def test_a_request_that_is_made_again_leaves_none(self):
        once = self.says("", "a long text " * 50)
        self.ask(once, once)
        self.assertEqual([], self.kept())

    def test_a_conversation_and_a_text_leave_none(self):
        for _ in range(2):
            self.ask(self.says("", "a long text " * 50, "b", "c"))
            self.ask({"prompt": "a long text " * 50})
        self.assertEqual([], self.kept())


if __name__ == "__main__":
    unittest.main(verbosity=2)
