#!/usr/bin/env python3
"""memwall inspect: totals, compared with the list of tensors, and files that are not models."""
import glob
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import schema  # noqa: E402
from gguf_edit import Gguf  # noqa: E402
from tiny_model import Model, gemma4, write_gguf  # noqa: E402

BUILDDIR = os.environ.get("MW_BUILDDIR", ".")
SRCDIR = os.environ.get("MW_SRCDIR", ".")
MODELS = os.path.join(os.environ.get("MW_SHARED", "."), "conformance", "models")


def inspect(*args):
    return subprocess.run([os.path.join(BUILDDIR, "memwall"), "inspect", *args],
                          capture_output=True, text=True, timeout=300)


def whole(path):
    run = inspect("--json", "--tensors", path)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def gguf_of(kind):
    """Returns a GGUF file without tensors whose only key is general.type."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    return (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("general.type") +
            struct.pack("<I", 8) + text(kind))


@unittest.skipUnless(os.path.isdir(MODELS), "the models are not at hand")
class Models(unittest.TestCase):
    def each(self):
        for path in sorted(glob.glob(MODELS + "/*.gguf") + glob.glob(MODELS + "/*-hf")):
            if "assistant" not in path:
                with self.subTest(os.path.basename(path)):
                    yield whole(path)

    def test_totals_are_those_of_the_tensors(self):
        for m in self.each():
            by = {}
            for t in m["tensors"]:
                by.setdefault(t["use"], []).append(t)

            def total(*uses):
                return sum(t["bytes"] for u in uses for t in by.get(u, []))
            head = sum(t["bytes"] for t in m["tables"] if t["is_head"])
            expert = total("expert") // max(1, m["n_expert"]) * m["n_expert_used"]
            self.assertEqual(m["hot_bytes"], total("layer", "head") + expert + head)
            self.assertEqual(m["resident_bytes"], total("resident"))
            self.assertEqual(m["other_bytes"], total("other"))
            self.assertEqual(m["n_other"], len(by.get("other", [])))
            self.assertEqual(m["unread_bytes"], total("unread"))
            self.assertEqual(sum(t["bytes"] for t in m["types"]),
                             total("layer", "head", "lookup", "resident", "unread", "expert"))
            self.assertEqual(m["n_param"],
                             sum(math.prod(t["shape"]) for t in m["tensors"]
                                 if t["use"] not in ("unread", "other")
                                 and not t["name"].startswith("rope_f")))
            self.assertEqual(m["n_tensor"], len(m["tensors"]))
            self.assertEqual(m["n_layer"], len(m["layers"]))

    def test_keys_and_values_are_those_of_the_layers(self):
        for m in self.each():
            sums = {"global": 0, "sliding": 0, "recurrent": 0}
            for i, y in enumerate(m["layers"]):
                sums[y["kind"]] += y["kv_values"]
                if y["kind"] == "recurrent":
                    continue
                if y["kv_from"] == i:
                    self.assertEqual(y["kv_values"],
                                     y["n_head_kv"] * (y["head_dim_k"] + y["head_dim_v"]))
                else:
                    self.assertEqual(y["kv_values"], 0)
                    self.assertEqual(m["layers"][y["kv_from"]]["kind"], y["kind"])
            self.assertEqual(sums["global"], m["kv_global_values"])
            self.assertEqual(sums["sliding"], m["kv_sliding_values"])
            self.assertEqual(sums["recurrent"], 0)

    def test_exponents_are_those_of_the_weights(self):
        folder = os.path.join(MODELS, "gemma3-tiny-hf")
        run = inspect("--exponents", "--json", folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        got, count, n_tensor = json.loads(run.stdout), [0] * 256, 0
        with open(os.path.join(folder, "model.safetensors"), "rb") as f:
            weights = f.read()
        for t in whole(folder)["tensors"]:
            if t["type"] != "BF16" or t["shape"][0] % 64 != 0:
                continue
            row = 2 * t["shape"][0]
            at = t["offset"] + t["bytes"] // 2 // row * row
            end = min(t["offset"] + t["bytes"], at + (64 << 10))
            n_tensor += 1
            for (w,) in struct.iter_unpack("<H", weights[at:end]):
                count[w >> 7 & 0xff] += 1
        self.assertGreater(n_tensor, 0)
        self.assertEqual(got["bf16"]["n_tensor"], n_tensor)
        self.assertEqual(got["bf16"]["exponents"], count)
        self.assertEqual(got["bf16"]["n_weight"], sum(count))
        self.assertLess(got["bf16"]["n_escape"], sum(count) / 100)
        self.assertTrue(0.75 < got["bf16"]["packed_share"] < 0.85)
        self.assertEqual(got["f16"]["n_weight"], 0)
        text = inspect("--exponents", folder)
        self.assertIn("need a patch in 12 bits", text.stdout)

    def test_tokenizer_and_chat_format_are_named(self):
        m = whole(MODELS + "/gemma4-tiny.gguf")
        self.assertEqual(m["chat_format"], "template")
        self.assertEqual(m["chat_format_choice"], "the model's template (evaluated)")
        self.assertEqual(m["n_token"], m["n_vocab"])

    def test_the_text_output_names_everything(self):
        run = inspect(MODELS + "/gemma4-tiny2.gguf")
        self.assertEqual(run.returncode, 0)
        for word in ("parameters", "chat format", "hot", "lookup tables", "BF16", "sliding",
                     "shared with 4"):
            self.assertIn(word, run.stdout)
        self.assertEqual(max(len(line) for line in run.stdout.split("\n")) <= 100, True)

    def test_a_drafting_model_is_named_and_listed(self):
        path = MODELS + "/gemma4-tiny-assistant.gguf"
        run = inspect(path)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assertIn("drafting model", run.stderr)
        run = inspect("--tensors", path)
        self.assertEqual(run.returncode, 1)
        self.assertIn("nextn.pre_projection.weight", run.stdout)


    def test_a_broken_vocabulary_is_reported_beside_the_rest(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in glob.glob(MODELS + "/llama-tiny-hf/*"):
                if not path.endswith("/tokenizer.json"):
                    os.symlink(path, os.path.join(folder, os.path.basename(path)))
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
                f.write('{"added_tokens":{"a":1}}')
            run = inspect(folder)
            self.assertEqual(run.returncode, 1)
            self.assertIn("parameters", run.stdout)
            self.assertIn("tokenizer.json: added_tokens", run.stderr)


class Unsupported(unittest.TestCase):
    """Models that memwall cannot run are described, and the error lists those that it runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def described(self, path, *words):
        run = inspect(path)
        self.assertEqual((1, 1), (run.returncode, run.stderr.count("\n")), run.stderr)
        for word in words + (path,):
            self.assertIn(word, run.stderr)
        both = inspect("--json", path)
        self.assertEqual((1, run.stderr), (both.returncode, both.stderr))
        d = json.loads(both.stdout)
        self.assertIs(False, d["runs"])
        self.assertEqual("memwall: " + d["problem"] + "\n", run.stderr)
        for command in (("plan",), ("eval", "--ids", "-", "--greedy", "1"), ("run", "-m")):
            other = subprocess.run([os.path.join(BUILDDIR, "memwall"), *command, path],
                                   input="1", capture_output=True, text=True, timeout=300)
            self.assertEqual((1, "", run.stderr),
                             (other.returncode, other.stdout, other.stderr), command)
        return run.stdout, d

    def test_another_architecture(self):
        for arch in ("mamba", "qwen2vl", "gemma\x1b[2J"):
            path = os.path.join(self.folder, "m.gguf")
            model = Model()
            keys = {k.replace("llama.", arch + "."): v for k, v in model.keys().items()}
            write_gguf(path, {**keys, "general.architecture": arch,
                              arch + ".expert_count": 8, arch + ".expert_used_count": 2},
                       model.gguf_tensors())
            shown, d = self.described(path, "general.architecture: architecture \"" + arch[:5],
                                      "is not supported; memwall runs: ",
                                      *(", %s, " % name for name in (
                                          "bailingmoe3", "gpt-oss", "llama", "mistral3", "qwen2",
                                          "qwen35moe", "qwen4exp")))
            self.assertNotIn("mixtral", d["problem"])  # whose files have "llama"
            self.assertNotIn("\x1b", shown + json.dumps(d))
            self.assertNotIn("at byte", d["problem"])
            for text in (arch[:5], "layers        2, width 32, feed-forward 48, 4 heads, 2 of",
                         "experts       8, 2 used per token", "context       256 tokens",
                         "F32", "\n    1 "):
                self.assertIn(text, shown)
            self.assertEqual((2, 32, 256, 40, 4, 2, 48, 8, 2),
                             tuple(d["n_" + n] for n in (
                                 "layer", "embd", "ctx_train", "vocab", "head", "head_kv", "ff",
                                 "expert", "expert_used")))
            tensors = json.loads(inspect("--json", "--tensors", path).stdout)["tensors"]
            self.assertEqual(d["n_tensor"], len(tensors))
            for i, y in enumerate(d["layers"]):
                self.assertEqual(y["bytes"], sum(t["bytes"] for t in tensors
                                                 if t["name"].startswith("blk.%d." % i)))

    def test_a_snapshot_of_another_architecture(self):
        path = Model().snapshot(os.path.join(self.folder, "m"),
                                {"model_type": "cohere", "architectures": ["C"]})
        shown, d = self.described(path, "config.json: model_type: architecture \"cohere\"",
                                  "is not supported; memwall runs: ", ", mixtral, ", ", gpt_oss, ")
        self.assertNotIn("gpt-oss", d["problem"])
        self.assertIn("layers        2, width 32", shown)
        self.assertEqual(("cohere", 2, 32, 256, 40), (d["arch"], d["n_layer"], d["n_embd"],
                                                       d["n_ctx_train"], d["n_vocab"]))
        self.assertTrue(all(y["bytes"] > 0 for y in d["layers"]))

    def test_a_weight_type_that_has_no_kernels(self):
        shown, d = self.described(
            gemma4(os.path.join(self.folder, "m.gguf"), n_embd=64,
                   more={"blk.0.ffn_up.weight": ((32, 64), 42)}),
            "blk.0.ffn_up.weight: weight type Q2_0 is not supported; memwall runs: F32, F16, Q4_0")
        self.assertIn("global", shown)
        self.assertIn("Q2_0", [t["name"] for t in d["types"]])

    def test_a_tensor_and_a_value_that_are_not_used(self):
        path, model = os.path.join(self.folder, "m.gguf"), Model()
        shown, d = self.described(model.gguf(path, more={
            "blk.0.attn_tails.weight": ((4,), [1.0] * 4)}), "blk.0.attn_tails.weight")
        self.assertIn("1 tensors that memwall does not know", shown)
        self.assertEqual((1, 16), (d["n_unknown"], d["unknown_bytes"]))
        shown, d = self.described(model.gguf(path, keys={"llama.logit_scale": 8.0}),
                                  "llama.logit_scale: is 8")
        self.assertIn("layers        2, width 32", shown)

    def test_unknown_keys_are_listed(self):
        path = Model().gguf(os.path.join(self.folder, "m.gguf"),
                            keys={"llama.what_is_this": 7, "llama.and.that": 1.5})
        run = inspect(path)
        self.assertEqual((0, ""), (run.returncode, run.stderr))
        self.assertIn("unknown keys  2, not used: what_is_this, and.that", run.stdout)
        d = json.loads(inspect("--json", path).stdout)
        self.assertEqual((True, "what_is_this, and.that"), (d["runs"], d["unknown_keys"]))


class Defaults(unittest.TestCase):
    """Values that a file leaves out are listed with those that take their place."""

    def listed(self, path):
        d = json.loads(inspect("--json", path).stdout)
        schema.check(d, SRCDIR, "inspect.schema.json")
        return {v["name"]: v["value"] for v in d["defaults"]}

    def gguf(self, name):
        path = os.path.join(MODELS, name + ".gguf")
        if not os.path.exists(path):
            self.skipTest("MW_SHARED has no conformance/models")
        return Gguf(path)

    def test_missing_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.gguf")
            for name, values in (
                    ("llama-tiny", {"rope.freq_base": 10000, "rope.dimension_count": 16}),
                    ("gemma3-tiny", {"rope.freq_base": 1e6, "rope.freq_base_swa": 10000,
                                     "attention.layer_norm_rms_epsilon": 1e-6}),
                    ("gemma2-tiny", {"attn_logit_softcapping": 50, "final_logit_softcapping": 30,
                                     "attention.sliding_window": 4096})):
                g = self.gguf(name)
                arch = g.get("general.architecture")
                for key in values:
                    g.keys.pop(f"{arch}.{key}", None)
                got = self.listed(g.write(path))
                for key, value in values.items():
                    self.assertAlmostEqual(value, got[key], delta=1e-9 * value, msg=key)
                    self.assertIn(f"{key} {value:.10g}", inspect(path).stdout)

    def test_stated_values_are_not_listed_under_any_name(self):
        with tempfile.TemporaryDirectory() as folder:
            g = self.gguf("gemma3-tiny")
            g.rename("gemma3.rope.freq_base", "gemma3.rope.global.freq_base")
            got = self.listed(g.write(os.path.join(folder, "m.gguf")))
            self.assertNotIn("rope.freq_base", got)
            self.assertNotIn("rope.global.freq_base", got)

    def test_missing_fields(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Model().snapshot(os.path.join(folder, "m"), {"rms_norm_eps": None})
            got = self.listed(path)
            self.assertAlmostEqual(1e-6, got["rms_norm_eps"], delta=1e-15)
            self.assertNotIn("hidden_size", got)

    def test_lines_fit_the_width(self):
        for name in ("gemma2-tiny", "qwen2-yarn-tiny"):
            with tempfile.TemporaryDirectory() as folder:
                path = self.gguf(name).write(os.path.join(folder, "m.gguf"))
                lines = inspect(path).stdout.splitlines()
                at = [line.startswith("  defaults      ") for line in lines].index(True)
                while at == 0 or lines[at].startswith(("  defaults", 16 * " ")):
                    self.assertLessEqual(len(lines[at]), 80)
                    at += 1

    def test_models_that_do_not_run_have_the_schema(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Model().snapshot(os.path.join(folder, "m"), {"model_type": "cohere"})
            self.assertEqual({}, self.listed(path))
            d = json.loads(inspect("--json", "--tensors", path).stdout)
            schema.check(d, SRCDIR, "inspect.schema.json")


class Others(unittest.TestCase):
    def says(self, content, *words, suffix=".gguf"):
        with tempfile.NamedTemporaryFile(suffix=suffix) as f:
            f.write(content)
            f.flush()
            run = inspect(f.name)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words + (f.name,):
            self.assertIn(word, run.stderr)

    def test_a_file_that_is_not_a_model_is_named(self):
        self.says(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs")
        self.says(b"<!DOCTYPE html><html>404</html>", "HTML page")
        self.says(b"", "empty file")
        self.says(b"PK\3\4", "zip archive")
        self.says(b"\x10\0\0\0\0\0\0\0{\"a\":", "safetensors")
        self.says(b'{"a": 1}', "JSON text", "name its folder")
        for kind, words in (("adapter", "LoRA"), ("imatrix", "importance matrix"),
                            ("mmproj", "projector")):
            self.says(gguf_of(kind), "general.type", words)

    def test_weights_without_a_config_are_refused_with_the_reason(self):
        self.says(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs",
                  suffix=".safetensors")
        self.says(b"\x02\0\0\0\0\0\0\0{}tail", "byte", suffix=".safetensors")
        self.says(b"\x02\0\0\0\0\0\0\0{}", "config.json", suffix=".safetensors")
        self.says(b"tjgg\1\0\0\0", "GGML file")

    def test_the_contents_of_a_folder_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, words in (("nothing", "no config.json"),
                                ("mmproj-a.gguf", "\"mmproj-a.gguf\""),
                                ("adapter_config.json", "an adapter"),
                                ("a.gguf", "/a.gguf: not a GGUF file")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write("{}")
                run = inspect(folder)
                self.assertEqual(run.returncode, 1)
                self.assertIn(words, run.stderr)
                self.assertIn(folder, run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
