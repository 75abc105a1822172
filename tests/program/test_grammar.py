#!/usr/bin/env python3
"""memwall run --grammar and --schema: answers have the form that they must have."""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from program import FolderCase, memwall  # noqa: E402

SCHEMA = {"type": "object",
          "properties": {"kind": {"enum": ["a", "bc", "\u00e9\u20ac\U0001f600"]},
                         "n": {"type": ["integer", "null"]},
                         "list": {"type": "array", "items": {"type": "boolean"}, "minItems": 1,
                                  "maxItems": 3},
                         "name": {"type": "string", "maxLength": 3}},
          "required": ["kind", "list"]}
PIECES = (b'{"kind": "', b'", "', b'list": [', b"true", b"]}", b'"a"', b"{\n  ", b"null",
          b"\xc3\xa9\xe2")


class GrammarCase(FolderCase):
    def says(self, *parts, **more):
        return chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>"), **more).path

    def flat(self):
        """A model whose tokens are all equally likely, some of several bytes."""
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"), pieces=PIECES,
                  user=("<think>", "</think>"))
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        return m.write(m.path)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def ask(self, model, *args, code=0, prompt="hi"):
        r = memwall("run", "-m", model, "-b", "256M", "--json", "--temp", "0", *args, prompt)
        self.assertEqual(code, r.returncode, r.stderr)
        return json.loads(r.stdout.splitlines()[-1])

    def follow(self, model, grammar, *args, **more):
        return self.ask(model, "--grammar", self.write("g", grammar), *args, **more)


class Answers(GrammarCase):
    def check(self, v):
        self.assertIn(v["kind"], SCHEMA["properties"]["kind"]["enum"])
        self.assertTrue(v.get("n") is None or isinstance(v["n"], int))
        self.assertTrue(1 <= len(v["list"]) <= 3 and all(isinstance(x, bool) for x in v["list"]))
        self.assertLessEqual(len(v.get("name", "")), 3)
        self.assertLessEqual(set(v), set(SCHEMA["properties"]))

    def test_random_tokens_match_the_schema(self):
        model, schema = self.flat(), self.write("s", json.dumps(SCHEMA))
        texts, tokens, size = set(), 0, 0
        for seed in range(12):
            r = self.ask(model, "--schema", schema, "--temp", "1", "--top-k", "0", "--top-p", "1",
                         "--min-p", "0", "--seed", str(seed), "-n", "600", "--no-think")
            self.assertEqual("stop", r["done"], r)
            self.check(json.loads(r["text"]))
            texts.add(r["text"])
            tokens += r["n_decoded"]
            size += len(r["text"].encode())
        self.assertGreater(len(texts), 6)
        self.assertLess(tokens, size)  # some tokens were several bytes

    def test_the_model_chooses_among_what_is_allowed(self):
        r = self.follow(self.says("no"), 'root ::= "yes" | "no"')
        self.assertEqual(("no", "stop"), (r["text"], r["done"]))
        # and nothing else, whatever it wants to say
        r = self.follow(self.says("Hey."), 'root ::= "yes" | "no"')
        self.assertIn(r["text"], ("yes", "no"))

    def test_an_answer_ends_where_the_grammar_ends(self):
        circle = chain(self.folder, "circle", {"\n": "a", "a": "b", "b": "a"}).path
        for grammar, text, n in (('root ::= "ab"', "ab", 2), ('root ::= ("ab"){3}', "ababab", 6),
                                 ("root ::= [ab]{5}", "ababa", 5), ('root ::= ""', "", 1)):
            r = self.follow(circle, grammar)
            self.assertEqual((text, n, "stop"), (r["text"], r["n_decoded"], r["done"]))

    def test_the_end_is_not_allowed_before(self):
        eager = chain(self.folder, "eager", {"\n": "<|im_end|>", "x": "<|im_end|>"}).path
        self.assertEqual("xxx", self.follow(eager, 'root ::= "x"{3}')["text"])
        # It is, where the grammar may end.
        self.assertEqual("xx", self.follow(eager, 'root ::= "x"{2,9}')["text"])

    def test_control_tokens_are_not_text(self):
        # The most likely token is a control token, whose text the grammar would allow.
        model = self.says("<|box|>", marks=("<|im_start|>", "<|im_end|>", "<|box|>"))
        self.assertEqual("<|box|>", self.follow(model, 'root ::= "<|box|>"')["text"])
        self.assertEqual(7, self.follow(model, 'root ::= "<|box|>"')["n_decoded"])
        # Named, it is one token, and control tokens print nothing.
        r = self.follow(model, 'root ::= <|box|> "a"')
        self.assertEqual(("a", 2), (r["text"], r["n_decoded"]))

    def test_parts_of_characters_are_tokens(self):
        for text in "\u00e9", "\u20ac\U0001f600", "a\u00e9b":
            r = self.follow(self.flat(), f'root ::= "{text}"')
            self.assertEqual((text, "stop"), (r["text"], r["done"]))

    def test_thinking_is_free(self):
        model = self.says("<think>", "ab", "</think>", "c", user=("<think>", "</think>"))
        r = self.follow(model, 'root ::= "c"? "x"')
        self.assertEqual(("ab", "cx"), (r["thinking"], r["text"]))
        r = self.follow(model, 'root ::= "c"? "x"', "--no-think")
        self.assertEqual("x", r["text"][-1])
        self.assertFalse(r.get("thinking"))

    def test_the_end_of_an_answer_does_not_end_thinking(self):
        model = chain(self.folder, "thinker", {"\n": "<think>", "<think>": "a", "a": "<|im_end|>"},
                      user=("<think>", "</think>")).path
        r = self.follow(model, 'root ::= "x"', "-n", "12")
        self.assertEqual("", r["text"])
        self.assertEqual("length", r["done"])

    def test_a_raw_text_goes_on(self):
        r = self.follow(self.says("Hey."), 'root ::= "y" [a-z]{2}', "--raw", prompt="He")
        self.assertRegex(r["text"], r"^y[a-z]{2}$")


class Drafts(GrammarCase):
    """A draft is accepted only if the grammar allows it, and the tokens stay the same."""

    def test_the_same_tokens_with_drafts(self):
        circle = chain(self.folder, "circle", {**spell(*"\nabcdefg"), "g": "a", "X": "a"}).path
        grammar = 'root ::= ([a-g]{9} "X"){1,12}'
        off, on = (self.follow(circle, grammar, "--draft", how, "--draft-depth", "7", "-n", "120")
                   for how in ("off", "ngram"))
        self.assertEqual((off["text"], off["n_decoded"], off["done"]),
                         (on["text"], on["n_decoded"], on["done"]))
        self.assertEqual(12, off["text"].count("X"))
        self.assertGreater(on["n_accepted"], 20)
        self.assertGreater(on["n_drafted"], on["n_accepted"])  # some were refused

    def test_the_same_random_tokens_with_drafts(self):
        model, schema = self.flat(), self.write("s", json.dumps(
            {"type": "array", "items": {"enum": ["ab", "abc", "b", None]}, "minItems": 20,
             "maxItems": 40}))
        for how in "ngram", model:  # it drafts for itself, under the same grammar
            off, on = (self.ask(model, "--schema", schema, "--temp", "1", "--seed", "3",
                                "--no-think", "--draft", d, "--draft-depth", "5", "-n", "300")
                       for d in ("off", how))
            self.assertEqual((off["text"], off["n_decoded"]), (on["text"], on["n_decoded"]))
            self.assertGreater(on["n_accepted"], 0, how)


class Refusals(GrammarCase):
    def refused(self, *args):
        r = memwall("run", "-m", self.says("Hey."), *args, "hi")
        self.assertEqual(("", 1), (r.stdout, r.stderr.count("\n")), r.stderr)
        self.assertNotEqual(0, r.returncode)
        return r.stderr

    def test_errors_name_the_file_and_the_place(self):
        said = self.refused("--grammar", self.write("g.gbnf", 'root ::= "a" b'))
        self.assertRegex(said, r'g\.gbnf.*byte 13.*the rule "b" is not defined')
        said = self.refused("--schema", self.write("s.json", '{"items": {"contains": {}}}'))
        self.assertRegex(said, r's\.json.*the keyword "contains" at #/items is not supported')
        self.assertRegex(self.refused("--schema", self.write("s.json", "{")), r"s\.json")
        self.assertRegex(self.refused("--schema", self.path("none")), r"none")
        said = self.refused("--schema", self.path("s.json"), "--grammar", self.path("g.gbnf"))
        self.assertIn("--schema and --grammar cannot be given together", said)

    def test_tokens_that_the_vocabulary_lacks(self):
        said = self.refused("--grammar", self.write("g", "root ::= <[99999]>"))
        self.assertIn("the vocabulary has no token <[99999]>", said)

    def test_a_grammar_that_is_too_ambiguous_ends_the_answer_with_a_reason(self):
        r = memwall("run", "-m", chain(self.folder, "circle", {"\n": "a", "a": "a"}).path,
                    "--temp", "0", "--grammar",
                    self.write("g", 'root ::= "a" root "b" | "a" root "c" | "a"'), "hi")
        self.assertEqual(1, r.returncode)
        self.assertRegex(r.stderr, "the grammar takes too much (time|memory)")
        self.assertTrue(re.match("^a+$", r.stdout), r.stdout)


if __name__ == "__main__":
    unittest.main()
