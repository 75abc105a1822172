#!/usr/bin/env python3
"""memwall serve: probabilities of tokens, penalties, and prompts that are tokens."""
import json
import math
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_edit import f32  # noqa: E402
from program import FolderCase, memwall  # noqa: E402
from server import Server, user  # noqa: E402

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


class TokenCase(FolderCase):
    def says(self, *parts, **more):
        return chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>"), **more).path

    def flat(self, logits):
        """Returns a model that gives the same logits after every token, and its ids.  The others
        are 0."""
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"))
        dims, kind, raw = m.tensors["output.weight"]
        n = dims[0]
        rows = [0.0] * (n * n)
        for token, v in logits.items():
            for i in range(n):
                rows[m.id_of[token] * n + i] = v / math.sqrt(n)
        m.tensors["output.weight"] = dims, kind, f32(rows)
        return m.write(m.path), m.id_of


class Probabilities(TokenCase):
    LOGITS = {"a": 3.0, "b": 2.0, "c": 1.0}

    def expect(self, n):
        """The logarithms of probabilities of a, b and c, by the definition."""
        total = math.log(sum(map(math.exp, self.LOGITS.values())) + n - 3)
        return {t: v - total for t, v in self.LOGITS.items()}

    def test_those_of_a_chat(self):
        model, ids = self.flat(self.LOGITS)
        want = self.expect(len(ids))
        with Server("-m", model) as s:
            for top in 0, 3:
                body = user(logprobs=True, top_logprobs=top, max_tokens=3, temperature=0)
                r = s.post(CHAT, body)[1]["choices"][0]
                self.assertEqual("aaa", r["message"]["content"])
                content = r["logprobs"]["content"]
                self.assertEqual(["a"] * 3, [c["token"] for c in content])
                for c in content:
                    self.assertEqual([97], c["bytes"])
                    self.assertAlmostEqual(want["a"], c["logprob"], 3)
                    self.assertEqual(["a", "b", "c"][:top], [t["token"] for t in c["top_logprobs"]])
                    for t in c["top_logprobs"]:
                        self.assertAlmostEqual(want[t["token"]], t["logprob"], 3)
                events = s.stream(CHAT, {**body, "stream": True})[:-1]
                streamed = [c for e in events for c in (e["choices"][0]["logprobs"] or
                                                        {"content": []})["content"]]
                self.assertEqual(content, streamed)
                self.assertEqual("aaa", "".join(e["choices"][0]["delta"].get("content", "")
                                                for e in events))
            self.assertIsNone(s.post(CHAT, user(max_tokens=2))[1]["choices"][0]["logprobs"])

    def test_they_are_those_of_the_model_whatever_is_sampled(self):
        model, ids = self.flat(self.LOGITS)
        want = self.expect(len(ids))
        with Server("-m", model) as s:
            r = s.post(CHAT, user(logprobs=True, top_logprobs=1, temperature=0, max_tokens=9,
                                  presence_penalty=2, grammar='root ::= "b" [a-c]'))[1]
            content = r["choices"][0]["logprobs"]["content"]
            self.assertEqual("b", content[0]["token"])
            self.assertAlmostEqual(want["b"], content[0]["logprob"], 3)
            self.assertEqual("a", content[0]["top_logprobs"][0]["token"])

    def test_those_of_a_completion(self):
        model, ids = self.flat(self.LOGITS)
        want = self.expect(len(ids))
        with Server("-m", model) as s:
            body = {"prompt": "x", "max_tokens": 3, "temperature": 0, "logprobs": 2}
            r = s.post(TEXT, body)[1]["choices"][0]["logprobs"]
            self.assertEqual((["a"] * 3, [0, 1, 2]), (r["tokens"], r["text_offset"]))
            for lp, top in zip(r["token_logprobs"], r["top_logprobs"]):
                self.assertAlmostEqual(want["a"], lp, 3)
                self.assertEqual(["a", "b"], list(top))
            events = s.stream(TEXT, {**body, "stream": True})[:-1]
            lists = [e["choices"][0]["logprobs"] for e in events if e["choices"][0]["logprobs"]]
            for name in "tokens", "token_logprobs", "text_offset", "top_logprobs":
                self.assertEqual(r[name], [v for x in lists for v in x[name]])

    def test_thinking_and_the_end_have_none(self):
        model = self.says("<think>", "ab", "</think>", "cd", user=("<think>", "</think>"))
        with Server("-m", model) as s:
            r = s.post(CHAT, user(logprobs=True))[1]["choices"][0]
            self.assertEqual("ab", r["message"]["reasoning_content"])
            self.assertEqual(["c", "d"], [c["token"] for c in r["logprobs"]["content"]])

    def test_parts_of_characters_have_their_bytes(self):
        with Server("-m", self.says(b"\xc3", b"\xa9", "x")) as s:
            content = s.post(CHAT, user(logprobs=True))[1]["choices"][0]["logprobs"]["content"]
            self.assertEqual([[0xc3], [0xa9], [120]], [c["bytes"] for c in content])


class Penalties(TokenCase):
    """OpenAI's definitions: for each time that the answer has a token, and once."""

    def test_the_answer_changes_where_the_definition_says(self):
        # b is 1 less likely than a, and c is 3 less.
        model, _ = self.flat({"a": 9.0, "b": 8.0, "c": 6.0})

        def expect(n, presence, frequency):
            text = ""
            for _ in range(n):
                text += max("abc", key=lambda t: {"a": 9, "b": 8, "c": 6}[t]
                            - presence * (t in text) - frequency * text.count(t))
            return text
        with Server("-m", model) as s:
            for presence, frequency in ((0, 0), (1.5, 0), (0.5, 0), (0, 0.3), (0.7, 0.4),
                                        (2, 0.45), (-1, 0.26), (0, -2)):
                want = expect(14, presence, frequency)
                for path, body, text in (
                        (CHAT, user(presence_penalty=presence, frequency_penalty=frequency,
                                    max_tokens=14, temperature=0),
                         lambda r: r["choices"][0]["message"]["content"]),
                        ("/api/chat", user(stream=False, options={
                            "presence_penalty": presence, "frequency_penalty": frequency,
                            "num_predict": 14, "temperature": 0}),
                         lambda r: r["message"]["content"])):
                    with self.subTest(presence=presence, frequency=frequency, path=path):
                        self.assertEqual(want, text(s.post(path, body)[1]))

    def test_tokens_of_the_prompt_do_not_count(self):
        model, _ = self.flat({"a": 9.0, "b": 8.0})
        with Server("-m", model) as s:
            r = s.post(TEXT, {"prompt": "aaaa", "max_tokens": 3, "temperature": 0,
                              "presence_penalty": 1.5})[1]
            self.assertEqual("aba", r["choices"][0]["text"])


class Bias(TokenCase):
    def test_it_is_added_to_the_logits(self):
        model, ids = self.flat({"a": 9.0, "b": 8.0, "c": 6.0})
        a, b, c = (str(ids[t]) for t in "abc")

        def text(s, path, body, bias, **more):
            r = s.post(path, {**body, "max_tokens": 3, "temperature": 0, "logit_bias": bias,
                              **more})[1]["choices"][0]
            return r["message"]["content"] if path == CHAT else r["text"]
        with Server("-m", model) as s:
            for path, body in ((CHAT, user()), (TEXT, {"prompt": "x"})):
                for bias, want in (({}, "aaa"), ({b: 0.9}, "aaa"), ({b: 1.1}, "bbb"),
                                   ({a: -2, b: -3.5}, "aaa"), ({a: -100}, "bbb"),
                                   ({a: -100, b: -100}, "ccc"), ({c: 1, b: 2, a: 0}, "bbb")):
                    self.assertEqual(want, text(s, path, body, bias), bias)
                # Before penalties, and without a way around a grammar.
                self.assertEqual("bab", text(s, path, body, {b: 1.5}, presence_penalty=1))
                self.assertEqual("aca", text(s, path, body, {b: 100}, grammar='root ::= "aca"'))
                self.assertEqual("aaa", text(s, path, body, None))
            r = s.post(CHAT, user(logit_bias={a: -100}, logprobs=True, top_logprobs=1,
                                  max_tokens=1, temperature=0))[1]["choices"][0]
            self.assertEqual("a", r["logprobs"]["content"][0]["top_logprobs"][0]["token"])

    def test_faults_are_named(self):
        with Server("-m", self.says("Hey.")) as s:
            for bias, param in (([1], "logit_bias"), ({"x": 1}, "logit_bias.x"),
                                ({"-1": 1}, "logit_bias.-1"), ({"5 ": 1}, "logit_bias.5 "),
                                ({"5": 101}, "logit_bias.5"), ({"5": "a"}, "logit_bias.5"),
                                ({"4294967296": 1}, "logit_bias.4294967296"),
                                ({"5000": 1}, "logit_bias"),
                                ({str(i): 1 for i in range(1025)}, "logit_bias")):
                status, r = s.post(CHAT, user(logit_bias=bias))
                self.assertEqual((400, param), (status, r["error"]["param"]), r)


class Ids(TokenCase):
    """The tokens of an answer are those of `memwall run` with the same values and seed."""

    def run_ids(self, model, *args):
        """Returns the ids of prompt and answer."""
        r = memwall("run", "-m", model, "--json", "--ids", "-q", *args)
        lines = [json.loads(line) for line in r.stdout.splitlines()]
        ids = {e["event"]: e["ids"] for e in lines if "ids" in e}
        plain = memwall("run", "-m", model, "--ids", "-q", *args).stdout
        self.assertEqual(ids["ids"], [int(i) for i in plain.split()])
        return ids["prompt_ids"], ids["ids"]

    def streamed(self, events):
        lists = {"prompt_token_ids": [], "token_ids": []}
        for e in events:
            for name in lists:
                lists[name] += e["choices"][0].get(name, [])
        return lists["prompt_token_ids"], lists["token_ids"]

    def test_those_of_random_tokens(self):
        model, _ = self.flat({"a": 3.0, "b": 2.0, "c": 1.0})
        with Server("-m", model) as s:
            for seed in range(4):
                values = {"temperature": 1, "seed": seed, "max_tokens": 60, "top_k": 50,
                          "top_p": 0.9, "min_p": 0.01, "return_token_ids": True}
                args = ("--temp", "1", "--seed", str(seed), "-n", "60", "--top-k", "50",
                        "--top-p", "0.9", "--min-p", "0.01")
                for path, body, more in ((CHAT, user(), ("hi",)),
                                         (TEXT, {"prompt": "hi"}, ("--raw", "hi"))):
                    want = self.run_ids(model, *args, *more)
                    self.assertGreater(len(set(want[1])), 5)
                    r = s.post(path, {**body, **values})[1]["choices"][0]
                    self.assertEqual(want, (r["prompt_token_ids"], r["token_ids"]))
                    events = s.stream(path, {**body, **values, "stream": True})[:-1]
                    self.assertEqual(want, self.streamed(events))

    def test_thinking_has_its_tokens_and_the_end_has_none(self):
        model = self.says("<think>", "ab", "</think>", "cd", user=("<think>", "</think>"))
        with Server("-m", model) as s:
            r = s.post(CHAT, user(return_token_ids=True))[1]
            ids = r["choices"][0]["token_ids"]
            self.assertEqual(self.run_ids(model, "hi"),
                             (r["choices"][0]["prompt_token_ids"], ids))
            self.assertEqual(r["usage"]["completion_tokens"] - 1, len(ids))
            text = memwall("tokenize", "-m", model, "--decode", "-",
                           stdin=" ".join(map(str, ids))).stdout
            self.assertEqual("<think>ab</think>cd", text.strip())
            self.assertNotIn("token_ids", s.post(CHAT, user())[1]["choices"][0])
            status, r = s.post(CHAT, user(return_token_ids=1))
            self.assertEqual((400, "return_token_ids"), (status, r["error"]["param"]))


class Prompts(TokenCase):
    def test_tokens_are_a_prompt(self):
        with Server("-m", self.says("Hey.")) as s:
            ids = [int(i) for i in memwall("tokenize", "-m", self.path("chain.gguf"), "--ids",
                                           "-", stdin="xH").stdout.split()]
            want = s.post(TEXT, {"prompt": "xH"})[1]
            for prompt in ids, [ids]:
                r = s.post(TEXT, {"prompt": prompt})[1]
                self.assertEqual(("ey.", len(ids)), (r["choices"][0]["text"],
                                                     r["usage"]["prompt_tokens"]))
                self.assertEqual(want["choices"][0]["text"], r["choices"][0]["text"])

    def test_wrong_tokens_are_named(self):
        with Server("-m", self.says("Hey.")) as s:
            for prompt, param in (([1, -1], "prompt[1]"), ([1, "a"], "prompt[1]"),
                                  ([1, 2.5], "prompt[1]"), ([[1], [2]], "prompt"),
                                  (["a", "b"], "prompt"), ([], "prompt")):
                status, r = s.post(TEXT, {"prompt": prompt})
                self.assertEqual((400, param), (status, r["error"]["param"]), r)
            status, r = s.post(TEXT, {"prompt": [100000]})
            self.assertEqual(400, status)
            self.assertIn("token 100000 is not one of the", r["error"]["message"])
            self.assertEqual(400, s.post(TEXT, {"prompt": [1] * 5000})[0])  # the context


if __name__ == "__main__":
    unittest.main()
