#!/usr/bin/env python3
"""Every formula that memwall plan --explain prints gives the value that is printed after it."""
import json
import math
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_plan_table import GUIDE, TINY, Plans  # noqa: E402

LINE = re.compile(r"^  (\S.*?) += (\S.*) = (\S+) ?(\S*)$")
FORMULA = re.compile(r"(?:[-+*/(), .0-9]|e[-+]|\bmax\b|\bmin\b|\bceil\b|\bexp\b)+")


FUNCTIONS = {"max": max, "min": min, "ceil": math.ceil, "exp": math.exp}


class Explain(Plans):
    # The first call and the one that it is compared with must have the same budget, which
    # memory in use by others would lower.
    ROOMY = "--what-if", "RAM=16G"

    def explain(self, *args):
        """The lines of each section: (name, formula, value, unit)."""
        sections, lines = {}, []
        for line in self.run_plan(*args, "--explain").stdout.splitlines():
            m = LINE.match(line)
            if line.startswith("  ") and " = " in line:
                self.assertIsNotNone(m, line)
            if m is not None:
                lines.append((m[1], m[2], float(m[3]), m[4]))
            elif line.endswith(":") and not line.startswith(" "):
                lines = sections.setdefault(re.sub(r"[,(;].*|:$", "", line).strip(), [])
        return sections

    def check(self, *args):
        sections = self.explain(*args)
        plan = self.plan(*args)
        for name, formula, value, unit in [x for s in sections.values() for x in s]:
            self.assertIsNotNone(FORMULA.fullmatch(formula), formula)
            computed = eval(formula, {"__builtins__": {}}, FUNCTIONS)
            if unit == "bytes" and value == int(value) and "KV bytes" not in name:
                self.assertEqual(computed, value, f"{name} = {formula}")
            else:
                self.assertLess(abs(computed - value), 1e-5 * abs(value) + 1e-13,
                                f"{name} = {formula} = {computed}, not {value}")
        total = {name: value for name, _, value, _ in sections["Memory"]}
        self.assertEqual(plan["sum_bytes"], total.pop("total"))
        self.assertEqual(sorted(v for v in plan["rows"].values() if v), sorted(total.values()))
        last = [s[-1] for s in sections.values() if s]
        self.assertEqual(["answers", "prompts"],
                         [name for name, *_, unit in last if unit == "tok/s"])
        # The same numbers as the plan, with the limits that the first call kept.
        for name, _, value, unit in last:
            if unit == "tok/s":
                key = {"answers": "decode_tps", "prompts": "prefill_tps"}[name]
                self.assertAlmostEqual(plan[key], value, delta=1e-4 * value)
        return sections

    def test_a_model_that_streams(self):
        s = self.check("Llama-3.1-8B:Q4_K", "--memory", "1G", *self.ROOMY)
        self.assertEqual(("a token, far", "32 * 8 * (256 + 256)", 131072, "bytes"),
                         s["Keys and values"][0])
        self.assertTrue(any(name == "streamed share" and 0.5 < value < 1
                            for name, _, value, _ in s["Weights"]))

    def test_windows_and_shared_keys(self):
        s = self.check("gemma-4-E2B:Q4_0", "--memory", "2G", "--ctx", "8k", *self.ROOMY)
        self.assertEqual(["a token, far", "a token, near"],
                         [name for name, *_ in s["Keys and values"]])

    def test_experts(self):
        s = self.check("gemma-4-26B-A4B:Q4_0", "--memory", "4G", *self.ROOMY)
        names = {name for lines in s.values() for name, *_ in lines}
        self.assertLessEqual({"experts", "missed experts", "expert share"}, names)

    def test_a_model_with_recurrent_layers(self):
        """A pass reads their state, too."""
        self.check("Qwen3-Next-80B-A3B:Q4_K", "--memory", "4G", *self.ROOMY)

    def test_drafts(self):
        s = self.check("gemma-4-E2B:BF16", "--memory", "2G", "--ctx", "512", "--draft", "self:q4_0",
                       "--what-if", "RAM=16G,DISK=1G/s")
        names = {name for lines in s.values() for name, *_ in lines}
        self.assertIn("passes", names)

    def test_factors_of_answers(self):
        """They are a part of the equations, and have names."""
        ctx = "--ctx", "512", "--disk-rate", "20M"
        smallest = self.plan(GUIDE, *ctx)["smallest_budget_bytes"]
        streams = GUIDE, *ctx, "--draft", "off", "--memory", str(smallest + (1 << 20))
        # Tokens that waited for the disk and for other programs.
        self.answer(*streams, token_s=0.5, stall_s=0.2, lookup_s=0.02, attention_s=0.08,
                    others_s=0.05, fixed_s=0.01, crowding=0.3, ran_s=0.1, disk_bytes=4e6,
                    streamed_share=0.9, keeps_rows=0, n_slot=2)
        names = {name for s in self.check(*streams).values() for name, *_ in s}
        self.assertLessEqual({"ring", "held", "memory"}, names)
        out = self.run_plan(*streams, "--explain").stdout
        self.assertRegex(out, r"\nFactors measured in answers of this model, \d+ s ago:\n")
        factors = dict(re.findall(r"(?m)^  (\S.*factor|lost time, \w+|between tokens) +: "
                                  r"([\d.e+-]+)[ ,]", out))
        self.assertEqual(["disk factor", "processor factor", "attention factor", "lookup factor",
                          "lost time, token", "lost time, prompt", "pass factor",
                          "between tokens"], list(factors))
        equations = re.findall(r" = .*", out[out.index("\nA token of an answer"):])
        for name, value in factors.items():
            if name != "pass factor":  # the disk factor leaves nothing unexplained
                self.assertNotIn(float(value), (0, 1), name)
            self.assertTrue(any(value in re.split(r"[ ()]", x) for x in equations), name)
        self.check(GUIDE, *ctx, "--memory", str(smallest + (3 << 20)))  # its head drafts

    def test_a_file_that_is_pinned(self):
        out = self.run_plan(TINY, "--memory", "1G", "--explain").stdout
        self.assertIn("All blocks are pinned", out)
        self.assertRegex(out, r"  disk +: .* bytes/s, measured \d+ s ago")
        self.check(TINY, "--memory", "1G", *self.ROOMY)

    def test_a_tiny_file_does_not_measure_the_disk_of_others(self):
        rates = [re.search(r"  disk +: (\S+) bytes/s",
                           self.run_plan(model, "--memory", "1G", "--explain").stdout)[1]
                 for model in (TINY, "Llama-3.1-8B:Q4_K", TINY)]
        self.assertEqual(rates[0], rates[2])
        self.assertNotEqual(rates[0], rates[1])

    def test_memory_that_is_too_slow_for_the_rates_is_measured_again(self):
        """And then no more.  A moment of load may have slowed it."""
        path = os.path.join(self.home.name, ".cache", "memwall", "limits")

        def lines():
            with open(path, encoding="utf-8") as f:
                return [json.loads(line) for line in f]

        self.plan(TINY, "--memory", "1G")
        fastest = max(x["column_bytes_s"] for x in lines() if x["kind"] == "type")
        with open(path + "-slow", "w", encoding="utf-8") as f:
            for x in lines():
                slow = {"memory_bytes_s": fastest / 10, "doubtful": True}
                f.write(json.dumps(x | slow if x["kind"] == "disk" else x) + "\n")
        os.replace(path + "-slow", path)
        self.plan(TINY, "--memory", "1G")
        after = lines()
        self.assertTrue(any(x.get("memory_bytes_s", 0) > fastest / 10 for x in after))
        self.plan(TINY, "--memory", "1G")
        self.assertEqual(after, lines())

    def test_json_is_refused(self):
        self.assertIn("--explain", self.run_plan(TINY, "--explain", "--json", code=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
