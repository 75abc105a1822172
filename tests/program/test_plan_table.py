#!/usr/bin/env python3
"""The table of memwall plan, and --what-if, in text and as JSON that agrees with its schema."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import (MEMWALL, MODELS, SRCDIR, TIMEOUT_S, MeasuredHome, budget,  # noqa: E402
                     environment)
import schema  # noqa: E402

GUIDE = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
TINY = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The first plan measures all limits, so that those of the next ones are the same.
        cls.home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.home.cleanup)

    def run_plan(self, *args, code=0):
        r = subprocess.run([MEMWALL, "plan", *args], text=True, timeout=TIMEOUT_S,
                           capture_output=True, stdin=subprocess.DEVNULL, cwd=self.home.name,
                           env=environment(self.home.name))
        self.assertEqual(code, r.returncode, r.stderr)
        return r

    def plan(self, *args, code=0):
        d = json.loads(self.run_plan(*args, "--json", code=code).stdout)
        schema.check(d, SRCDIR, "plan.schema.json")
        return d

    def answer(self, *args, **tokens):
        """Let the model answer, and change what is remembered of its tokens, so that a busy
        machine gives the same predictions."""
        subprocess.run([MEMWALL, "run", "-m", *args, "-q", "--temp", "0", "-n", "24", "Hello"],
                       timeout=TIMEOUT_S, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, env=environment(self.home.name))
        path = os.path.join(self.home.name, ".cache", "memwall", "limits")
        with open(path, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        newest = max((x for x in lines if x["kind"] == "anchor"), key=lambda x: x["measured_s"])
        newest.update(n_token=16, **tokens)
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(x) + "\n" for x in lines)

    def groups(self, *args, code=0):
        return {(g["kv_k"], g["kv_v"]): g for g in self.plan(*args, code=code)["table"]}


class Table(Plans):
    # Memory that other programs use would lower budgets of some GiB.
    ROOMY = "--what-if", "RAM=16G", "--kv-disk", "never"

    def test_contexts_double_up_to_the_trained_one(self):
        g = self.groups("Llama-3.1-8B:Q4_K", "--memory", "4G", *self.ROOMY)
        self.assertEqual([("f16", "f16"), ("q8_0", "q8_0"), ("q4_0", "q4_0")], list(g))
        for group in g.values():
            self.assertEqual([1 << n for n in range(11, 18)],
                             [c["ctx"] for c in group["contexts"]])
        self.assertEqual([2048, 4096, 8192, 16384, 32768, 40960],
                         [c["ctx"] for c in self.groups("Qwen3-4B", "--memory", "1G")
                          ["f16", "f16"]["contexts"]])
        g = self.groups("Qwen3-0.6B", "--kv-k", "q8_0", "--kv-v", "q4_0")
        self.assertEqual(("q8_0", "q4_0"), list(g)[0])
        self.assertEqual(4, len(g))

    def test_cells(self):
        """Llama 3.1 8B: 128 KiB a token in f16, 34/64 and 18/64 of it in q8_0 and q4_0."""
        for (k, _), g in self.groups("Llama-3.1-8B:Q4_K", "--memory", "4G",
                                     *self.ROOMY).items():
            per_token = 128 * KIB * {"f16": 64, "q8_0": 34, "q4_0": 18}[k] // 64
            self.assertEqual({"global": per_token, "sliding": 0}, g["kv_token_bytes"])
            least = 0
            for c in g["contexts"]:
                self.assertEqual(sum(c["rows"].values()), c["sum_bytes"])
                self.assertEqual(c["fits"], c["sum_bytes"] <= 4 * GIB)
                self.assertEqual(c["fits"], c["ctx"] <= g["largest_ctx"])
                self.assertGreaterEqual(c["rows"]["kv_global"], per_token * c["ctx"])
                self.assertLessEqual(c["rows"]["kv_global"], per_token * c["ctx"] + 16 * MIB)
                if c["fits"]:
                    self.assertGreaterEqual(c["streamed_bytes"], least)
                    least = c["streamed_bytes"]
                    self.assertEqual(c["streamed_bytes"] == 0,
                                     c["ctx"] <= g["largest_pinned_ctx"])
                    self.assertLessEqual(c["pinned_share"], 1)

    def test_contexts_that_do_not_fit_go_to_the_disk(self):
        args = "Llama-3.1-8B:Q4_K", "--memory", "4G", "--what-if", "RAM=16G", "--ctx", "64k"
        p = self.plan(*args)
        self.assertGreater(p["kv_disk_bytes"], GIB)
        self.assertLessEqual(p["kv_read_bytes"], p["kv_disk_bytes"])
        self.assertLessEqual(p["sum_bytes"], 4 * GIB)
        self.assertRegex(self.run_plan(*args).stdout,
                         r"65,536 tokens: .* of keys and values on the disk, .* more to read")
        self.plan(*args, "--kv-disk", "never", code=3)
        self.assertEqual(0, self.plan(*args[:-1], "2k")["kv_disk_bytes"])

    def test_bounds_are_the_last_contexts_with_their_property(self):
        args = "Llama-3.1-8B:Q4_K", "--memory", "5G", *self.ROOMY
        g = self.groups(*args)["f16", "f16"]
        for ctx, is_pinned in (g["largest_pinned_ctx"], True), (g["largest_pinned_ctx"] + 256, False):
            p = self.plan(*args, "--ctx", str(ctx))
            self.assertEqual(is_pinned, p["streamed_bytes"] == 0)
        self.plan(*args, "--ctx", str(g["largest_ctx"]))
        if g["largest_ctx"] < 131072:
            self.plan(*args, "--ctx", str(g["largest_ctx"] + 256), code=3)

    def test_a_type_that_a_model_cannot_have_is_a_row_with_the_reason(self):
        f16, *others = self.plan(TINY)["table"]
        self.assertNotIn("why", f16)
        for group in others:
            self.assertEqual([], group["contexts"])
            self.assertIn("blocks of 32 values", group["why"])
        self.assertIn("KV in q8_0: - (", self.run_plan(TINY).stdout)

    def test_a_budget_that_is_too_small_still_has_its_table(self):
        p = self.plan("Phi-4", "--memory", "100M", "--kv-disk", "never", code=3)
        self.assertFalse(p["fits"])
        self.assertFalse(any(c["fits"] for g in p["table"] for c in g["contexts"]
                             if c["ctx"] > 2048))
        out = self.run_plan("Phi-4", "--memory", "100M", "--kv-disk", "never", code=3).stdout
        self.assertIn("does not fit: needs", out)

    def test_text_agrees_with_json(self):
        args = "gemma-4-E2B:Q4_0", "--memory", "1G"
        out = self.run_plan(*args).stdout
        groups = self.groups(*args)
        rows = re.findall(r"(?m)^ +([\d,]+) +[\d.]+ [KMG]iB +[\d.]+ [KMG]iB +[\d.]+ [KMG]iB +(\d+)%",
                          out)
        cells = [c for g in groups.values() for c in g["contexts"]]
        self.assertEqual(len(cells), len(rows))
        for (ctx, share), c in zip(rows, cells):
            self.assertEqual(int(ctx.replace(",", "")), c["ctx"])
            self.assertAlmostEqual(int(share), 100 * c["pinned_share"], delta=0.6)
        self.assertIn("KV in q8_0: 3.19 KiB a token and 6.38 KiB in windows", out)
        table = out[out.index("by context in tokens"):].splitlines()
        self.assertLessEqual(max(len(line) for line in table), 80)


class WhatIf(Plans):
    def rates(self, p):
        return p["limits"]["disk_bytes_s"], p["limits"]["memory_bytes_s"]

    def test_the_limits_are_those_of_the_other_machine(self):
        p = self.plan("Llama-3.1-8B:Q4_K", "--what-if",
                      "RAM=8G,DISK=100M/s,BW=40G/s,CORES=4", "--memory", "2G")
        self.assertEqual((100e6, 40e9), self.rates(p))
        self.assertEqual(dict(ram_bytes=8 * GIB, disk_bytes_s=100000000,
                              memory_bytes_s=40000000000, cores=4),
                         {k: v for k, v in p["what_if"].items() if k != "assumed"})
        # By hand: what is streamed at the rate of the disk is slower than everything at the
        # rate of memory, and than the products of slow cores that were measured while busy.
        # Reading also takes the share of their time that was measured as contention.
        disk_s = p["streamed_bytes"] / 100e6
        slowest = min(r["column_bytes_s"] for r in p["limits"]["rates"])
        shared_s = p["limits"]["contention"] * p["hot_bytes"] / slowest
        self.assertLessEqual(0.98 * disk_s, 1 / p["decode_tps"])
        self.assertLessEqual(1 / p["decode_tps"], 1.02 * (disk_s + shared_s))
        self.assertEqual("disk", p["binds"])

    def test_copies_that_draft_have_a_type(self):
        """Fewer bits fit smaller budgets and pin more, and are assumed to be right less often."""
        def drafted(memory, how):
            return self.plan("gemma-4-E2B:BF16", "--memory", memory, "--ctx", "512", "--draft", how,
                             "--what-if", "RAM=16G,DISK=1G/s")

        types = {how: drafted("2G", how) for how in ("self:q4_0", "self:q3_k", "self:q2_k")}
        for how, p in types.items():
            self.assertEqual((how[5:].upper(), 15), (p["draft_copies"], p["n_draft"]))
        for key in "rows.drafter", "streamed_bytes", "draft_acceptance":
            values = [p["rows"]["drafter"] if "." in key else p[key] for p in types.values()]
            self.assertEqual(sorted(values, reverse=True), values, key)
            self.assertEqual(3, len(set(values)), key)
        best = drafted("2G", "self")
        self.assertEqual(max(p["drafted_tps"] for p in types.values()), best["drafted_tps"])
        none = drafted("1100M", "self:q4_0")
        self.assertEqual(0, none["n_draft"])
        self.assertEqual("the model does not draft for itself: the budget has no memory for that",
                         none["no_drafter"])
        self.assertNotIn("no_drafter", best)
        out = self.run_plan("gemma-4-E2B:BF16", "--memory", "2G", "--ctx", "512", "--draft",
                            "self:q3_k", "--explain", "--what-if", "RAM=16G,DISK=1G/s").stdout
        self.assertIn("The model drafts with copies in Q3_K.", out)
        self.assertRegex(out, r"copies are Q3_K; assumed to be accepted of the drafts of Q3_K: "
                              r"0\.\d+\n")
        r = self.run_plan(TINY, "--draft", "self:q9", code=2)
        self.assertRegex(r.stderr, '"self:q9" is not one of off, .*, self:q2_k, or the path of a file')

    def test_predictions_assume_a_share_of_drafts_and_say_so(self):
        args = ("gemma-4-E2B:BF16", "--memory", "2G", "--ctx", "512", "--draft", "self:q4_0",
                "--what-if", "RAM=16G,DISK=1G/s")
        p = self.plan(*args)
        self.assertEqual(p["drafted_tps"], p["decode_tps"])
        self.assertLess(p["pass_tps"], 0.7 * p["decode_tps"])
        self.assertGreater(p["outlook"]["decode_tps"], 0.95 * p["decode_tps"])
        f16 = p["table"][0]["contexts"][0]
        self.assertGreater(f16["decode_tps"], 0.6 * p["decode_tps"])
        out = self.run_plan(*args).stdout
        self.assertRegex(out, r"\nAnswers ~[\d.]+\?? tok/s if 80 % of the drafts are right, "
                              r"~[\d.]+\?? if none is; limited by ")
        self.assertRegex(out, r"\nEach pass reads [\d.]+ GiB from disk")
        plain = self.run_plan(*args, "--draft", "off").stdout
        self.assertNotIn("drafts", plain)
        self.assertRegex(plain, r"\nEach token reads [\d.]+ GiB from disk")

    def test_no_more_is_pinned_than_there_is(self):
        """The memory of pinned blocks is more than their bytes."""
        args = "Qwen3-Next-80B-A3B:Q4_K", "--memory", "4G", "--what-if", "RAM=16G,DISK=1G/s"
        self.assertGreater(self.plan(*args)["pinned_bytes"], self.plan(*args)["hot_bytes"])
        self.assertRegex(self.run_plan(*args).stdout, r"from disk; all of [\d.]+ GiB are pinned\.\n")

    def test_each_row_names_the_share_that_it_assumes(self):
        """Copies take the memory that a longer context needs, so some rows have no drafts."""
        args = ("Llama-3.2-1B:Q8_0", "--memory", budget(700), "--draft", "self",
                "--kv-disk", "never", "--what-if", "RAM=16G,DISK=1G/s,BW=20G/s")
        contexts = {c["ctx"]: c for g in self.plan(*args)["table"] if g["kv_k"] == "f16"
                    for c in g["contexts"]}
        self.assertLess(2, len({c["assumed"] for c in contexts.values() if c["fits"]} | {0}))
        out = self.run_plan(*args).stdout
        self.assertIn(" by context in tokens (if: the share of drafts that is right):\n", out)
        part = out[out.index("KV in f16:"):out.index("KV in q8_0:")]
        rows = re.findall(r"^ +([\d,]+) .* (\d+%|-)  \w+$", part, re.M)
        self.assertGreater(len(rows), 3, part)
        for ctx, share in rows:
            assumed = contexts[int(ctx.replace(",", ""))]["assumed"]
            self.assertEqual(f"{100 * assumed:.0f}%" if assumed else "-", share)
        self.assertLessEqual(max(map(len, out[out.index(" by context in"):].splitlines())), 80)

    def test_the_limit_of_a_row_is_named_as_in_the_manual(self):
        out = self.run_plan("Llama-3.2-1B:Q8_0", "--memory", "4G", "--what-if",
                            "RAM=16G,BW=4G/s,CORES=64").stdout
        table = out[out.index(" by context in"):]
        self.assertRegex(table, r"(?m)  memory$")
        self.assertLessEqual(max(map(len, table.splitlines())), 80)
        with open(os.path.join(SRCDIR, "man", "memwall-plan.1"), encoding="utf-8") as f:
            manual = f.read().split("\n.B limit\n")[1].split("\n.PP")[0].replace("\n", " ")
        for limit, words in (("disk", "reading from disk"), ("compute", "arithmetic"),
                             ("memory", "reading weights from memory"),
                             ("kv", "reading keys and values from memory"),
                             ("others", "other programs")):
            self.assertIn(f"{limit} ({words})", manual)

    def test_other_programs_are_a_limit(self):
        args = GUIDE, "--ctx", "512", "--draft", "off", "--memory", budget(100)
        self.answer(*args, token_s=0.5, stall_s=0, lookup_s=0, attention_s=0.01, others_s=0.4,
                    fixed_s=0.01, crowding=0, ran_s=0.1, disk_bytes=0, streamed_share=0)
        out = self.run_plan(*args).stdout
        self.assertIn("; limited by other programs.", out)
        self.assertRegex(out, r"(?m)  others$")
        self.assertEqual("others", self.plan(*args)["binds"])

    def test_advice_of_drafts_agrees_with_the_schema(self):
        p = self.plan(TINY)  # advice of a busy machine is left out, so it is made
        p["advice"] = {"key": "self_drafts", "budget_bytes": 0, "decode_tps": 1.2,
                       "acceptance": 0.8}
        schema.check(p, SRCDIR, "plan.schema.json")

    @unittest.skipIf("MW_SANITIZED" in os.environ, "its memory differs between processes")
    def test_a_budget_without_a_screen_is_named(self):
        p = self.plan(TINY)
        most, least = p["smallest_budget_bytes"], p["smallest_budget_bytes"] - p["chat_bytes"]
        r = self.run_plan(TINY, "--memory", str(most - 1000), code=3)
        self.assertRegex(r.stderr, r'this is the plan of a chat; "memwall run" has no screen, and '
                                   r"needs [\d.]+ MiB")
        need = float(re.search(r"needs ([\d.]+) MiB\n$", r.stderr)[1])
        self.assertLess(abs(need * MIB - least), 200000)
        for less, works in (0, True), (0.1, False):  # it is rounded up
            r = subprocess.run([MEMWALL, "run", "-m", TINY, "-n", "1", "--no-save", "-p", "hi",
                                "-b", str(int((need - less) * MIB))], capture_output=True,
                               timeout=TIMEOUT_S, cwd=self.home.name,
                               env=environment(self.home.name))
            self.assertEqual(0 if works else 3, r.returncode, r.stderr)

    def test_the_budget_follows_the_memory(self):
        budgets = [self.plan("Llama-3.1-70B:Q4_K", "--what-if", f"RAM={gib}G")["budget_bytes"]
                   for gib in (4, 16, 32)]
        # Three quarters of what others leave, which is all but 1 GiB or a quarter.
        self.assertEqual([int(0.75 * (gib - 1) * GIB) for gib in (4, 16, 32)], budgets)
        p = self.plan("Llama-3.1-70B:Q4_K", "--what-if", "RAM=16G", "--memory", "40G")
        self.assertEqual(15 * GIB, p["budget_bytes"])

    def test_cores_scale_what_is_computed(self):
        one, four, slow = (self.plan("Llama-3.2-1B:Q8_0", "--what-if",
                                     f"CORES={n},RAM=16G,BW={bandwidth}/s")
                           for n, bandwidth in ((1, "4000G"), (4, "4000G"), (4, "4G")))
        for a, b, c in zip(*(p["limits"]["rates"] for p in (one, four, slow))):
            self.assertAlmostEqual(4, b["chunk_flops_s"] / a["chunk_flops_s"], delta=0.01)
            self.assertAlmostEqual(4, b["column_bytes_s"] / a["column_bytes_s"], delta=0.01)
            self.assertLessEqual(c["column_bytes_s"], 4e9)
        # Rounds of threads and lookups take as long.
        self.assertGreater(four["prefill_tps"] / one["prefill_tps"], 2.5)
        self.assertLess(four["prefill_tps"] / one["prefill_tps"], 4.05)

    def test_assumptions_are_stated(self):
        out = self.run_plan("Llama-3.2-1B:Q8_0", "--what-if", "DISK=100M/s").stdout
        self.assertIn("what if disk 100 MB/s\n", out)
        self.assertIn("assumed memory is as fast as on this machine\n", out)

    def test_wrong_machines(self):
        for text, word in (("8G", '"8G" has no name; expected something like RAM=8G'),
                           ("RAM=8G,4", '"4" has no name'), ("RAM", "has no value"), ("RAM=8", "at least 1M"),
                           ("CORES=0", "1 to 256"), ("SPEED=3", "not RAM, DISK, BW or CORES"),
                           ("DISK=fast", "is not a rate"), ("DISK=0", "is not a rate"),
                           ("RAM=8G,,BW=1G", "has no value"), ("RAM=" + "9" * 100, "")):
            r = self.run_plan("Phi-4", "--what-if", text, code=2)
            self.assertIn("--what-if", r.stderr)
            self.assertIn(word, r.stderr)


class MemoryMeasuredAgain(Plans):
    @classmethod
    def setUpClass(cls):
        cls.home = MeasuredHome(gives=False)
        cls.addClassCleanup(cls.home.cleanup)

    def test_a_model_without_a_file_keeps_its_disk(self):
        """Products that are faster than memory could be show that it was measured too slow."""
        self.plan("Llama-3.2-1B:Q8_0")  # may choose another form of its weights
        self.home.trust()
        before = self.plan("Llama-3.2-1B:Q8_0")["limits"]
        slow = min(r["column_bytes_s"] for r in before["rates"]) / 40  # below a busy moment
        self.home.trust()
        with open(self.home.limits, encoding="utf-8") as f:
            lines = [json.loads(text) for text in f]
        with open(self.home.limits, "w", encoding="utf-8") as f:
            for line in lines:
                if line["kind"] == "disk":
                    line.update(memory_bytes_s=slow)
                f.write(json.dumps(line) + "\n")
        for _ in range(2):  # measured again, and kept
            now = self.plan("Llama-3.2-1B:Q8_0")["limits"]
            self.assertGreater(now["memory_bytes_s"], slow)
            for key in ("disk_bytes_s", "direct_bytes_s", "buffered_bytes_s", "lookup_s",
                        "read_cpu_s", "contention"):
                self.assertAlmostEqual(before[key], now[key], delta=0.001 * before[key], msg=key)
        self.assertNotIn("not measured", self.run_plan("Llama-3.2-1B:Q8_0").stdout)


class Schema(unittest.TestCase):
    def test_the_check_finds_what_is_wrong(self):
        root = {"type": "object", "required": ["a"], "$defs": {"n": {"type": "integer"}},
                "additionalProperties": False,
                "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"enum": ["x"]},
                               "c": {"type": "array", "items": {"type": ["string", "null"]}}}}
        for value, n in (({"a": 1}, 0), ({}, 1), ({"a": 1.5}, 1), ({"a": True}, 1),
                         ({"a": 1, "b": "y"}, 1), ({"a": 1, "c": ["s", None, 3]}, 1),
                         ({"a": 1, "z": 1}, 1), ([], 1)):
            self.assertEqual(n, len(list(schema.errors(value, root))), value)


if __name__ == "__main__":
    unittest.main(verbosity=2)
