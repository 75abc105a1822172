#!/usr/bin/env python3
"""memwall serve: answers in the form that a request demands."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from program import FolderCase  # noqa: E402
from server import Server, user  # noqa: E402

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "yz"]}, "b": {"type": "boolean"}},
          "required": ["a", "b"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": SCHEMA}}
TOOL = {"type": "function", "function": {"name": "f"}}


class FormCase(FolderCase):
    def flat(self):
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"))
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        return m.write(m.path)

    def says(self, *parts):
        return chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>")).path

    def content(self, s, **more):
        status, r = s.post(CHAT, user(temperature=1, **more))
        self.assertEqual(200, status, r)
        return r["choices"][0]["message"]["content"]

    def check(self, text):
        v = json.loads(text)
        self.assertEqual({"a", "b"}, set(v))
        self.assertIn(v["a"], ("x", "yz"))
        self.assertIsInstance(v["b"], bool)


class OpenAi(FormCase):
    def test_a_schema(self):
        with Server("-m", self.flat()) as s:
            for seed in range(4):
                text = self.content(s, response_format=FORMAT, seed=seed, max_tokens=400)
                self.check(text)
                events = s.stream(CHAT, user(temperature=1, response_format=FORMAT, seed=seed,
                                             max_tokens=400, stream=True))[:-1]
                self.assertEqual(text, "".join(e["choices"][0]["delta"].get("content", "")
                                               for e in events))
                self.assertEqual("stop", events[-1]["choices"][0]["finish_reason"])
            r = s.post(TEXT, {"prompt": "x", "temperature": 1, "response_format": FORMAT,
                              "max_tokens": 400})[1]
            self.check(r["choices"][0]["text"])

    def test_any_object(self):
        with Server("-m", self.flat()) as s:
            for seed in range(6):
                status, r = s.post(CHAT, user(temperature=1, seed=seed, max_tokens=1500,
                                              response_format={"type": "json_object"}))
                choice = r["choices"][0]
                self.assertEqual("{", choice["message"]["content"][0])
                if choice["finish_reason"] == "stop":
                    self.assertIsInstance(json.loads(choice["message"]["content"]), dict)

    def test_a_grammar_is_of_one_request_only(self):
        with Server("-m", self.says("Hey.")) as s:
            for _ in range(2):
                self.assertEqual("yes", self.content(s, grammar='root ::= "yes"'))
                self.assertEqual("Hey.", self.content(s))
                self.assertEqual("Hey.", self.content(s, response_format={"type": "text"}))

    def test_faults_are_named(self):
        with Server("-m", self.says("Hey.")) as s:
            for more, param, words in (
                    ({"grammar": 'root ::= "a" b'}, "grammar", 'the rule "b" is not defined'),
                    ({"grammar": 5}, "grammar", "expected a text"),
                    ({"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}},
                     "response_format", 'beside "grammar"'),
                    ({"response_format": "json"}, "response_format", "expected an object"),
                    ({"response_format": {"type": "xml"}}, "response_format.type", "expected text"),
                    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema",
                     "expected an object"),
                    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
                     "response_format.json_schema.schema", "missing"),
                    ({"response_format": {"type": "json_schema", "json_schema": {
                        "name": "x", "schema": {"items": {"contains": {}}}}}},
                     "response_format.json_schema.schema", '"contains" at #/items'),
                    ({"response_format": {"type": "json_schema", "json_schema": {
                        "name": "x", "schema": {"allOf": [{"items": {"format": "date"}}, {
                            "items": {"format": "time"}}]}}}},
                     "response_format.json_schema.schema", '"format" at #/allOf/0/items'),
                    ({"response_format": {"type": "json_schema", "json_schema": {
                        "name": "x", "schema": {"if": {"pattern": "a"}, "then": {}}}}},
                     "response_format.json_schema.schema", '"pattern" at #/if'),
                    ({"response_format": {"type": "json_schema", "json_schema": {
                        "name": "x", "schema": {}, "extra": 1}}},
                     "response_format.json_schema.extra", "not supported"),
                    ({"response_format": {"type": "json_schema", "json_schema": {
                        "name": "x", "schema": {"$ref": "#"}}}},
                     "response_format.json_schema.schema", "refers to itself"),
                    ({"response_format": FORMAT, "tools": [TOOL]}, "response_format",
                     "beside tools"),
                    ({"grammar": 'root ::= "a"', "tools": [TOOL]}, "grammar", "beside tools")):
                status, r = s.post(CHAT, user(**more))
                self.assertEqual((400, param), (status, r["error"]["param"]), r)
                self.assertIn(words, r["error"]["message"])
            # A token that only the vocabulary can show to be missing.
            status, r = s.post(CHAT, user(grammar="root ::= <[70000]>"))
            self.assertEqual((400, "grammar"), (status, r["error"]["param"]), r)
            self.assertEqual("Hey.", self.content(s))

    def test_only_the_last_field_of_a_name_is_read(self):
        def body(*fields):
            return "{" + ",".join(json.dumps(k) + ":" + json.dumps(v) for k, v in (
                *user(temperature=1).items(), *fields)) + "}"
        with Server("-m", self.flat()) as s:
            wrong, right = ("grammar", "root ::= b"), ("grammar", 'root ::= "aa"')
            status, r = s.post(CHAT, body(*[wrong] * 500, right))
            self.assertEqual((200, "aa"), (status, r["choices"][0]["message"]["content"]), r)
            status, r = s.post(CHAT, body(*[right] * 500, wrong))
            self.assertEqual((400, "grammar"), (status, r["error"]["param"]), r)
            status, r = s.post(CHAT, body(*[right] * 1025))
            self.assertEqual(400, status)
            self.assertIn("more than 1024 fields", r["error"]["message"])

    def test_a_schema_that_takes_too_much_time_is_an_error(self):
        with Server("-m", self.flat()) as s:
            for schema in ({"enum": [1] * 20000, "not": {"enum": [2] * 20000}},
                           {"not": {"enum": [2] * 20000}, "enum": ["a"] * 20000}):
                status, r = s.post(CHAT, user(response_format={
                    "type": "json_schema", "json_schema": {"name": "s", "schema": schema}}))
                self.assertEqual((400, "response_format.json_schema.schema"),
                                 (status, r["error"]["param"]), r)
                self.assertIn("too many names or values, at #", r["error"]["message"])

    def test_a_grammar_that_is_too_ambiguous_is_an_error(self):
        with Server("-m", chain(self.folder, "circle", {"\n": "a", "a": "a"}).path) as s:
            status, r = s.post(CHAT, user(grammar='root ::= "a" root "b" | "a" root "c" | "a"'))
            self.assertEqual(400, status)
            self.assertIn("the grammar takes too much", r["error"]["message"])
            self.assertEqual("aa", self.content(s, grammar='root ::= "aa"'))


class Anthropic(FormCase):
    def test_a_schema(self):
        with Server("-m", self.flat()) as s:
            config = {"format": {"type": "json_schema", "schema": SCHEMA}}
            for more in {}, {"output_config": {}}, {"output_config": {"format": None}}:
                self.assertEqual(200, s.post("/v1/messages", user(max_tokens=3, **more))[0])
            r = s.post("/v1/messages", user(max_tokens=400, temperature=1,
                                            output_config=config))[1]
            self.check(r["content"][0]["text"])
            for bad, field in (("x", ""), ({"effort": "low"}, ".effort"),
                               ({"format": {"type": "x"}}, ".format.type"),
                               ({"format": {"type": "json_schema"}}, ".format.schema"),
                               ({"format": {"type": "json_schema", "schema": {"contains": {}}}},
                                ".format.schema"),
                               ({"format": {**config["format"], "x": 1}}, ".format.x")):
                status, r = s.post("/v1/messages", user(max_tokens=9, output_config=bad))
                self.assertEqual(400, status)
                self.assertTrue(r["error"]["message"].startswith(f"output_config{field}: "), r)


class Ollama(FormCase):
    def test_formats(self):
        with Server("-m", self.flat()) as s:
            for path, body, text in (
                    ("/api/chat", user(), lambda r: r["message"]["content"]),
                    ("/api/generate", {"prompt": "hi"}, lambda r: r["response"])):
                options = {"temperature": 1, "seed": 1, "num_predict": 400}
                r = s.post(path, {**body, "stream": False, "format": SCHEMA, "options": options})[1]
                self.check(text(r))
                r = s.post(path, {**body, "stream": False, "format": "json",
                                  "options": options})[1]
                self.assertEqual("{", text(r)[0])
                status, r = s.post(path, {**body, "format": "xml"})
                self.assertEqual(400, status)
                self.assertIn("format:", r["error"])
                status, r = s.post(path, {**body, "format": {"contains": {}}})
                self.assertEqual(400, status)
                self.assertIn('"contains" at #', r["error"])


if __name__ == "__main__":
    unittest.main()
