#!/usr/bin/env python3
"""Random texts of the grammars of random schemas match these schemas by their definition."""
import decimal
import json
import os
import random
import subprocess
import sys
import unittest

PROGRAM = os.path.join(os.environ.get("MW_BUILDDIR", "."), "tests", "program", "schema_texts")
NAMES = "abcd"
SCHEMAS = 400  # other numbers of schemas, texts of each, and a seed: as arguments
TEXTS = 10
SEED = 1


# ---- the definition ----

def is_number(v):
    return isinstance(v, (int, decimal.Decimal)) and not isinstance(v, bool)


def has_type(v, name):
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    if name in kinds:
        return isinstance(v, kinds[name])
    return is_number(v) and (name == "number" or v == int(v))


def same(a, b):
    if is_number(a) and is_number(b):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def limits(kind, limit):
    return lambda v, x, s, m: not kind(v) or limit(v, x)


def is_text(v):
    return isinstance(v, str)


def is_list(v):
    return isinstance(v, list)


def of_members(test):
    return lambda v, x, s, m: not isinstance(v, dict) or test(v, x, s, m)


KEYWORDS = {
    "type": lambda v, x, s, m: any(has_type(v, t) for t in (x if is_list(x) else [x])),
    "enum": lambda v, x, s, m: any(same(v, y) for y in x),
    "const": lambda v, x, s, m: same(v, x),
    "minimum": limits(is_number, lambda v, x: v >= x),
    "maximum": limits(is_number, lambda v, x: v <= x),
    "exclusiveMinimum": limits(is_number, lambda v, x: v > x),
    "exclusiveMaximum": limits(is_number, lambda v, x: v < x),
    "multipleOf": limits(is_number, lambda v, x: v % x == 0),
    "minLength": limits(is_text, lambda v, x: len(v) >= x),
    "maxLength": limits(is_text, lambda v, x: len(v) <= x),
    "minItems": limits(is_list, lambda v, x: len(v) >= x),
    "maxItems": limits(is_list, lambda v, x: len(v) <= x),
    "prefixItems": lambda v, x, s, m: not is_list(v) or all(map(m, v, x)),
    "items": lambda v, x, s, m: not is_list(v) or all(
        m(i, x) for i in v[len(s.get("prefixItems", [])):]),
    "required": of_members(lambda v, x, s, m: all(n in v for n in x)),
    "properties": of_members(lambda v, x, s, m: all(m(v[n], x[n]) for n in x if n in v)),
    "additionalProperties": of_members(lambda v, x, s, m: all(
        m(v[n], x) for n in v if n not in s.get("properties", {}))),
    "dependentRequired": of_members(lambda v, x, s, m: all(
        n in v for d in x if d in v for n in x[d])),
    "dependentSchemas": of_members(lambda v, x, s, m: all(m(v, x[d]) for d in x if d in v)),
    "allOf": lambda v, x, s, m: all(m(v, y) for y in x),
    "anyOf": lambda v, x, s, m: any(m(v, y) for y in x),
    "oneOf": lambda v, x, s, m: sum(m(v, y) for y in x) == 1,
    "not": lambda v, x, s, m: not m(v, x),
    "if": lambda v, x, s, m: m(v, s.get("then" if m(v, x) else "else", True)),
    "then": lambda v, x, s, m: True,
    "else": lambda v, x, s, m: True,
    "$defs": lambda v, x, s, m: True,
}


def matches(value, schema, root):
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and not matches(value, root["$defs"][schema["$ref"][len("#/$defs/"):]],
                                        root):
        return False
    return all(KEYWORDS[k](value, x, schema, lambda v, s: matches(v, s, root))
               for k, x in schema.items() if k != "$ref")


# ---- schemas ----

class Maker(random.Random):
    def maybe(self, share, **keywords):
        return keywords if self.random() < share else {}

    def value(self):
        return self.choice([1, 2, 3, "a", "b", "ab", True, False, None, 1.5, -2, [1], {"a": 1}])

    def plain(self):
        return self.choice(
            [{"const": self.value()}, {"enum": [self.value() for _ in range(4)]}, {}, True,
             {"type": "integer", **self.maybe(.5, minimum=self.randint(-5, 5)),
              **self.maybe(.5, maximum=self.randint(0, 9))},
             {"type": "number", "exclusiveMinimum": self.randint(-5, 2),
              **self.maybe(.5, exclusiveMaximum=self.randint(3, 9) + .5)},
             {"type": "string", **self.maybe(.5, minLength=self.randint(0, 2)),
              **self.maybe(.5, maxLength=self.randint(2, 4))},
             {"type": self.sample(["integer", "string", "null", "boolean", "number"], 3)},
             {"type": "integer", "multipleOf": self.randint(2, 4)},
             {"type": ["string", "null", "boolean", "integer"],
              "not": {"enum": [self.value(), "a", 2]}}])

    def inner(self, depth):
        if self.random() < .03:
            return {"oneOf": [self.plain() for _ in range(2)]}  # which may exclude each other
        return self.plain() if depth <= 0 or self.random() < .6 else self.schema(depth - 1)

    def object(self, depth):
        names = self.sample(NAMES, self.randint(1, 3))
        return {**self.maybe(.9, type="object"),
                "properties": {n: self.inner(depth - 1) for n in names},
                **self.maybe(.6, required=self.sample(NAMES, self.randint(1, 2))),
                **self.maybe(.1, additionalProperties=self.choice([False, self.plain()]))}

    def tagged(self):
        """Objects that a member tells apart, or one less than that."""
        n, of = self.choice(NAMES), []
        for tag in self.sample(["a", "b", "ab"], self.randint(2, 3)):
            one = self.object(0)
            of.append({**one, "type": "object", "properties": {
                **one["properties"], n: self.choice([{"const": tag}, {"enum": [tag]}])},
                       **self.maybe(.95, required=sorted({n, *one.get("required", [])}))})
        return of

    def array(self, depth):
        return {"type": "array", **self.maybe(.7, items=self.inner(depth - 1)),
                **self.maybe(.3, prefixItems=[self.inner(depth - 1)]),
                **self.maybe(.4, minItems=self.randint(0, 2)),
                **self.maybe(.4, maxItems=self.randint(2, 3))}

    def condition(self, depth=1):
        names = self.sample(NAMES, self.randint(1, 2))
        values = [{"const": self.value()}, {"enum": [self.value(), 2]}, {"type": "string"},
                  {"minimum": 2}]
        tests = [{"properties": {n: self.choice(values) for n in names},
                  **self.maybe(.6, required=names)}, {"required": names}]
        if depth > 0:
            a, b = self.condition(0), self.condition(0)
            tests += [tests[0], {"not": a}, {"anyOf": [a, b]}, {"allOf": [a, b]},
                      {"oneOf": self.tagged()}]
        return self.choice(tests)

    def schema(self, depth):
        one = self.array(depth) if self.random() < .15 else self.object(depth)
        n = self.choice(NAMES)
        more = [{}, {"allOf": [self.object(depth - 1) for _ in range(2)]},
                {"if": self.condition(), **self.maybe(.8, then=self.object(0)),
                 **self.maybe(.5, **{"else": self.object(0)})},
                {"anyOf": [self.object(0), self.object(0)]}, {"oneOf": self.tagged()},
                {"oneOf": [self.object(0), {"type": ["array", "string"]}]},
                {"dependentRequired": {n: self.sample(NAMES, 2)}},
                {"dependentSchemas": {n: self.object(0)}},
                {"$ref": "#/$defs/" + self.choice("xy")}, {"not": self.condition()}]
        return {**one, **self.choice(more)}

    def root(self):
        return {**self.schema(2), "$defs": {
            "x": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}, "b": self.plain()}},
            "y": self.object(1)}}


class Random(unittest.TestCase):
    def test_texts_match_their_schema(self):
        maker = Maker(SEED)
        schemas = [maker.root() for _ in range(SCHEMAS)]
        run = subprocess.run([PROGRAM, str(TEXTS), str(SEED)], text=True, capture_output=True,
                             input="".join(json.dumps(s) + "\n" for s in schemas), check=True)
        answers = run.stdout.split("\n.\n")[:-1]
        self.assertEqual(SCHEMAS, len(answers) if run.stdout.endswith("\n.\n") else -1)
        n_schema = n_text = 0
        # The digits of all numbers of a grammar, as they are.
        with decimal.localcontext(decimal.Context(prec=2 * 1000 + 100)):
            for schema, answer in zip(schemas, answers):
                exact = json.loads(json.dumps(schema), parse_float=decimal.Decimal)
                texts = [x[2:] for x in answer.split("\n") if x.startswith("T ")]
                for text in texts:
                    value = json.loads(text, parse_float=decimal.Decimal)
                    self.assertTrue(matches(value, exact, exact), (json.dumps(schema), text))
                n_schema += texts != []
                n_text += len(texts)
        self.assertGreater(n_schema, SCHEMAS // 3)
        self.assertGreater(n_text, n_schema * TEXTS // 2)
        print(f"{n_text} texts of {n_schema} schemas; {SCHEMAS - n_schema} schemas are refused",
              file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        SCHEMAS, TEXTS, SEED = map(int, sys.argv[1:])
        del sys.argv[1:]
    unittest.main()
