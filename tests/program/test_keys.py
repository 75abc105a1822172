#!/usr/bin/env python3
"""Every key that a family reads, missing or damaged: the file is refused by the key's name, or the
logits stay the same, or `inspect` lists the value as a default.

Most models are in MW_SHARED/conformance."""
import json
import math
import os
import re
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import ARR, BOOL, F32, I32, STR, U32  # noqa: E402
from logits import Logits  # noqa: E402
from model_case import SHARED, ModelCase, ids  # noqa: E402
from program import SRCDIR, memwall  # noqa: E402

U64 = 10
YARN = {"rope.scaling.type": (STR, "yarn"), "rope.scaling.factor": (F32, 4.0),
        "rope.scaling.original_context_length": (U32, 64),
        "rope.scaling.attn_factor": (F32, 1.5), "rope.scaling.yarn_beta_fast": (F32, 40.0),
        "rope.scaling.yarn_beta_slow": (F32, 2.0)}
# The models of all families, and keys that they read and that these files leave out.
FAMILIES = {
    "gemma1": {"attention.sliding_window": (U32, 12), "rope.scaling.factor": (F32, 2.0)},
    "gemma2-tiny": {},
    "gemma3-tiny": {"final_logit_softcapping": (F32, 5.0), "rope.dimension_count": (U32, 24),
                    "attention.sliding_window_pattern": (U32, 3)},
    "gemma4-tiny-q4_0": {}, "gemma4-moe-tiny": {}, "gemma4-31b-tiny": {},
    "gptoss": YARN | {"attention.sliding_window_pattern": (U32, 3)},
    "granite": {"attention.sliding_window": (U32, 12)},
    "llama-tiny": {"rope.scale_linear": (F32, 4.0), "attention.sliding_window": (U32, 12)},
    "llama31-tiny": YARN,
    "mixtral": {"expert_weights_norm": (BOOL, True)},
    "ministral3": {"rope.scaling.mscale": (F32, 0.5), "rope.scaling.yarn_attn_factor": (F32, 1.0),
                   "rope.scaling.attn_factor": (F32, 1.5), "attention.sliding_window": (U32, 12),
                   "attention.temperature_length": (U32, 16)},
    "olmo3": YARN,
    "phi3-tiny": {}, "phi3-longrope-tiny": {}, "phi3-swa-tiny": {},
    "qwen2-tiny": {"attention.sliding_window": (U32, 1 << 20)}, "qwen2-yarn-tiny": YARN,
    "qwen3-tiny": {"rope.dimension_count": (U32, 32)},
    "qwen35": {"ssm.v_head_reordered": (BOOL, False), "nextn_predict_layers": (U32, 0)},
    "qwen35moe": {"attention.recurrent_layers": (ARR, (I32, [1, 1, 1, 0]))},
    "qwen3moe": {"expert_weights_norm": (BOOL, False)},
    "qwen3next": {"expert_weights_norm": (BOOL, False)},
    "q4e-a": {},
    "smollm3": YARN,
    "deepseek3": {}, "deepseek4": {}, "falconh1": {}, "glm53flash": {}, "laguna": {}, "lfm2moe": {}, "museglimmer": {},
    "ling3": {"nextn_predict_layers": (U32, 0)}, "nemotronh-moe": {"moe_latent_size": (U32, 0)},
    **{name: {} for name in (
        "deepseek2lite", "ernie45moe", "glm45air", "granite4h", "granitemoe", "hunyuanmoe", "kimilinear",
        "ling2", "mellum2", "minimax2", "olmoe", "qwen2moe")},
}
# Keys under a name of another converter, and the name in `inspect`.
USUAL = {"rope.scale_linear": "rope.scaling.factor"}
# Numbers that mean "none" when they are stated as 0.
NONE_AT_0 = {"attention.sliding_window", "attn_logit_softcapping", "final_logit_softcapping",
             "attention.shared_kv_layers", "attention.temperature_scale", "attention.scale",
             "rope.scaling.mscale", "rope.scaling.yarn_log_multiplier", "embedding_scale",
             "residual_scale", "logit_scale", "expert_weights_norm", "ssm.v_head_reordered",
             "ple.eos_token_id",
             "expert_weights_scale", "rope.scaling.finetuned", "kda.gate_lower_bound",
             "kda.safe_gate"}

SHOWN_BY_TENSORS = {"attention.recurrent_layers", "hash_layer_count"}

# Keys of draft heads, which test_draft_heads.py damages.
OF_HEADS = {"centroid_count", "centroid_top_k"}

# Numbers that are below 0 in files.
NEGATIVE = {"kda.gate_lower_bound"}


sys.path.insert(0, os.path.join(SRCDIR, "tests", "conformance"))
from test_families import NAMES_2  # noqa: E402


class Table(ModelCase):
    N_ID = 80

    @classmethod
    def setUpClass(cls):
        cls.process = Logits(ids(cls.N_ID))

    @classmethod
    def tearDownClass(cls):
        if code := cls.process.close():
            raise AssertionError(f"model_logits ended with status {code}")

    def logits(self, model):
        path = model if isinstance(model, str) else model.write(self.path("m.gguf"))
        return self.process.eval(path, self.N_ID)

    def logits_of_program(self, model):
        """The logits of a model that is whole, which `memwall eval` writes, too.  Its defaults are
        those of `memwall inspect`."""
        want = self.logits(model)
        self.assertIsInstance(want, bytes, want)
        self.assertTrue(all(map(math.isfinite, struct.unpack("<%df" % (len(want) // 4), want))))
        self.assertTrue(want == self.eval_bytes(model, self.N_ID))
        path = model if isinstance(model, str) else self.path("m.gguf")
        r = memwall("inspect", path, "--json")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        self.assertEqual({d["name"] for d in json.loads(r.stdout)["defaults"]},
                         self.defaults(path))
        return want

    def model(self, name):
        g = self.gguf(name)
        arch = g.get("general.architecture")
        if name == "qwen35moe":
            self.assertEqual(4, g.get(arch + ".block_count"))
        for key, value in FAMILIES[name].items():
            g.keys[f"{arch}.{key}"] = value
        return g, arch

    def defaults(self, path):
        names = self.process.defaults(path)
        self.assertIsInstance(names, set, names)
        return names

    def check(self, g, want, suffix, may_state=False):
        """may_state: the value of the key has a meaning of its own."""
        got = self.logits(g)
        name = USUAL.get(suffix, suffix)
        if isinstance(got, str):
            self.assertTrue(suffix in got or name in got, got)
        elif got != want and not may_state:
            self.assertIn(name, self.defaults(self.path("m.gguf")))

    def families(self):
        for name in FAMILIES:
            with self.subTest(name=name):
                g, arch = self.model(name)
                yield name, g, arch, self.logits_of_program(g)

    def test_missing_keys(self):
        for name, g, arch, want in self.families():
            for key in [k for k in g.keys if k.startswith(arch + ".")]:
                with self.subTest(name=name, key=key):
                    kept = dict(g.keys)
                    del g.keys[key]
                    self.check(g, want, key[len(arch) + 1:])
                    g.keys = kept

    def test_keys_with_a_name_that_nobody_knows(self):
        """A part that has keys of its own has no name under which a value is lost, either."""
        for name, g, arch, want in self.families():
            for key in [k for k in g.keys if k.startswith(arch + ".")]:
                suffix, kept = key[len(arch) + 1:], dict(g.keys)
                group = suffix.rpartition(".")[0]
                for new in {"qq", f"{group}.qq" if group else "qq"}:
                    g.rename(key, f"{arch}.{new}")
                    got = self.logits(g)
                    if isinstance(got, bytes) and got != want:
                        with self.subTest(name=name, key=key, new=new):
                            r = memwall("eval", self.path("m.gguf"), "--ids", "-", "--greedy", "1",
                                        stdin="1 2")
                            self.assertEqual(0, r.returncode, r.stderr)
                            self.assertIn(f"does not know a key of the model's file: {new}. ",
                                          r.stderr)
                            self.assertIn(USUAL.get(suffix, suffix) + " (", r.stderr)
                    g.keys = dict(kept)

    def test_damaged_keys(self):
        for name, g, arch, want in self.families():
            for key, (kind, value) in list(g.keys.items()):
                suffix = key[len(arch) + 1:]
                if not key.startswith(arch + ".") or suffix == "vocab_size":
                    continue
                number = F32 if kind == F32 else I32
                huge = (F32, 3e38) if kind == F32 else (U64, 1 << 50)
                for damage in ((number, 0), (number, -1), huge, (STR, "seven"),
                               (ARR, (STR, ["a"])), (F32, float("nan"))):
                    if damage[1] == 0 and suffix in SHOWN_BY_TENSORS:
                        continue  # no layer is of this kind; the tensors say otherwise
                    with self.subTest(name=name, key=key, damage=damage):
                        g.keys[key] = damage
                        self.check(g, want, suffix, damage[1] == 0 and suffix in NONE_AT_0 or
                                   damage[1] == -1 and suffix in NEGATIVE)
                g.keys[key] = (kind, value)

    def test_the_table_has_every_key(self):
        read, folder = set(), os.path.join(SRCDIR, "engine", "format")
        for name in (n for n in os.listdir(folder) if n.endswith(".c")):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            if '"engine/format/gguf_hparams.h"' in text:
                read |= set(re.findall(r'(?:lookup_\w+|get_factor)\(\s*l,(?: h,)?\s*"([^"]+)"',
                                       text))
        for suffix in ("block_count", "rope.freq_base", "attention.head_count", "expert_count"):
            self.assertIn(suffix, read)
        stated = set()
        for name in FAMILIES:
            g, arch = self.model(name)
            stated |= {USUAL.get(k[len(arch) + 1:], k[len(arch) + 1:]) for k in g.keys
                       if k.startswith(arch + ".")}
        self.assertEqual(set(), read - stated - OF_HEADS)

    def folders(self):
        """The snapshots of all families, each with a tokenizer that `inspect` can read."""
        tokenizer = os.path.join(SHARED, "models", "llama-tiny-hf", "tokenizer.json")
        for group, names in (("families", "f-"), ("models", ""), ("families2", ("f-", "q4e-"))):
            for name in sorted(os.listdir(os.path.join(SHARED, group))):
                folder = os.path.join(SHARED, group, name)
                if (not os.path.isdir(folder) or "assistant" in name or
                        not name.startswith(names)):
                    continue
                if group == "families2" and name.startswith("f-") and name[2:] not in NAMES_2:
                    continue
                copy = self.path(name)
                os.mkdir(copy)
                for f in os.listdir(folder):
                    if "safetensors" in f:
                        os.symlink(os.path.join(folder, f), os.path.join(copy, f))
                os.symlink(tokenizer, os.path.join(copy, "tokenizer.json"))
                with open(os.path.join(folder, "config.json")) as f:
                    yield copy, json.load(f)

    def each_field(self, node):
        """Removes each field in turn, but no table: without one, its fields have no meaning."""
        for field in list(node):
            value = node.pop(field)
            if not isinstance(value, dict):
                yield field
            node[field] = value
            if isinstance(value, dict):
                yield from self.each_field(value)

    def test_missing_fields(self):
        if not os.path.isdir(os.path.join(SHARED, "families")):
            self.skipTest("MW_SHARED has no conformance/families")
        for folder, config in self.folders():
            def logits():
                with open(os.path.join(folder, "config.json"), "w") as f:
                    json.dump(config, f)
                return self.logits(folder)
            logits()
            want = self.logits_of_program(folder)
            for field in self.each_field(config):
                with self.subTest(folder=os.path.basename(folder), field=field):
                    got = logits()
                    if isinstance(got, bytes) and got != want:
                        self.assertIn(field, self.defaults(folder))

    def test_a_family_with_scaling_has_no_default_for_all_of_it(self):
        config = self.snapshot_with("gptoss", lambda c: c.pop("rope_parameters"))
        self.assertIn("rope_parameters: the field is missing", self.eval(config))
        config = self.snapshot_with("ministral3", lambda c: c["rope_parameters"].pop("rope_type"))
        self.assertIn("rope_type: the field is missing", self.eval(config))


class Sizes(ModelCase):
    """Sizes that other sizes of the model do not allow."""

    def of_snapshot(self, name, change):
        """The error of a snapshot with another configuration."""
        folder = self.snapshot_with(name, change)
        error = self.eval(folder)
        shutil.rmtree(folder)
        self.assertIsInstance(error, str)
        return error

    def test_kinds_of_layers_give_a_number_of_layers_in_range(self):
        kinds = {"hybrid_override_pattern": lambda n: "M" * n,
                 "layers_block_type": lambda n: ["mamba"] * n}
        for key, of in kinds.items():
            for n in 0, 513:
                def change(config, key=key, of=of, n=n):
                    for k in "num_hidden_layers", *kinds:
                        config.pop(k, None)
                    config[key] = of(n)
                with self.subTest(key=key, n=n):
                    self.assertIn(f"config.json: {key}: has {n} entries; expected 1 to 512 layers",
                                  self.of_snapshot("nemotronh", change))

    def test_a_computed_width_is_in_range(self):
        for by in 1e30, 1e-6:
            with self.subTest(by=by):
                error = self.of_snapshot(
                    "lfm2", lambda c, by=by: c.update(block_ffn_dim_multiplier=by,
                                                      block_auto_adjust_ff_dim=True))
                self.assertIn("config.json: block_ffn_dim_multiplier: makes intermediate_size",
                              error)
        error = self.of_snapshot("deepseek3", lambda c: c.update(moe_intermediate_size=1 << 23,
                                                                 n_shared_experts=512))
        self.assertIn("config.json: n_shared_experts: makes the shared expert 4294967296 wide",
                      error)

    def test_index_keys_and_latent_keys_have_no_windows(self):
        for name in "q4e-a", "deepseek3", "kimilinear":
            with self.subTest(name=name):
                g = self.gguf(name)
                arch = g.get("general.architecture")
                n = g.get(f"{arch}.block_count")
                g.keys[f"{arch}.attention.sliding_window"] = (U32, 8)
                g.keys[f"{arch}.attention.sliding_window_pattern"] = (ARR, (BOOL, [True] * n))
                self.refused(g, f"{arch}.attention.sliding_window: is 8, but {arch} models have "
                             "no windows")

    def test_sizes_of_entries(self):
        name = "deepseek4"
        for key, damage, word in (
                ("attention.sliding_window", (U32, 0), "attention.sliding_window"),
                ("attention.head_count_kv", (U32, 2), "attention.head_count_kv"),
                ("attention.value_length", (U32, 12), "blk.0.attn_output_a.weight"),
                ("rope.dimension_count", (U32, 26), "rotate, but"),
                ("attention.indexer.key_length", (U32, 2), "attention.indexer."),
                ("attention.output_group_count", (U32, 3), "blk.0.attn_output_a.weight"),
                ("attention.output_lora_rank", (U32, 1 << 24), "attention.output_lora_rank"),
                ("attention.compress_ratios", (ARR, (I32, [4, 4])), "attention.compress_ratios"),
                ("attention.compress_ratios", (ARR, (I32, [0, 3, 4])), "3 positions"),
                ("attention.compress_ratios", (ARR, (I32, [0, 0, 8])), "expected 4"),
                ("hash_layer_count", (U32, 4), "hash_layer_count"),
                ("hyper_connection.count", (U32, 9), "hyper_connection.count"),
                ("hyper_connection.sinkhorn_iterations", (U32, 0), "sinkhorn_iterations"),
                ("swiglu_clamp_exp", (ARR, (F32, [1.0, 1.0])), "swiglu_clamp_exp")):
            with self.subTest(key=key, damage=damage):
                g = self.gguf(name)
                self.assertIn(f"{name}.{key}", list(g.keys) + [f"{name}.attention.value_length"])
                g.keys[f"{name}.{key}"] = damage
                self.refused(g, word)

    def test_entries_have_one_key_head(self):
        g = self.gguf("deepseek4")
        g.keys["deepseek4.attention.head_count_kv"] = (U32, 2)
        for name, (dims, _, _) in list(g.tensors.items()):
            if ".attn_kv" in name or name.endswith(".attn_compressor_norm.weight"):
                dims = [*dims[:-1], 2 * dims[-1]]
                g.tensors[name] = dims, 0, bytes(4 * math.prod(dims))
        self.refused(g, "deepseek4.attention.head_count_kv: is 2; expected 1")

    def test_a_table_of_experts_names_experts_that_exist(self):
        for bad in 6, -1, 1 << 30:
            with self.subTest(id=bad):
                g = self.gguf("deepseek4")
                table = next(n for n in g.tensors if n.endswith("ffn_gate_tid2eid.weight"))
                dims, kind, data = g.tensors[table]
                g.tensors[table] = dims, kind, data[:40] + struct.pack("<i", bad) + data[44:]
                self.refused(g, table)

    def test_a_layer_that_shares_a_choice_has_one_before_it(self):
        g = self.gguf("glm53flash")
        arch = g.get("general.architecture")
        key = f"{arch}.attention.indexer.types"
        n = len(g.get(key)[1])
        g.keys[key] = (ARR, (I32, [0] * n))
        self.refused(g, "attention.indexer.types", "no earlier layer")
        for suffix, bad in (("kpool", 3), ("kpool", 512), ("top_k", 3)):
            with self.subTest(key=suffix):
                g = self.gguf("glm53flash")
                g.keys[f"{arch}.attention.indexer.{suffix}"] = (U32, bad)
                self.refused(g, "attention.indexer.")

    def test_gates_of_queries_have_the_size_of_values(self):
        g, wide = self.gguf("qwen35"), 64
        n = g.get("qwen35.attention.value_length")
        g.keys["qwen35.attention.value_length"] = (U32, wide)
        for name, (dims, kind, _) in list(g.tensors.items()):
            if name.endswith("attn_v.weight"):
                dims = [dims[0], dims[1] // n * wide]
            elif name.endswith("attn_output.weight"):
                dims = [dims[0] // n * wide, dims[1]]
            else:
                continue
            g.tensors[name] = (dims, 0, bytes(4 * dims[0] * dims[1]))
        self.refused(g, "qwen35.attention.value_length: is 64, but gates of a head have")

    def test_a_model_without_attention(self):
        g = self.gguf("nemotronh")
        arch = g.get("general.architecture")
        n = g.get(f"{arch}.block_count")
        ff = max(g.get(f"{arch}.feed_forward_length")[1])
        layer = next(name.split(".")[1] for name in g.tensors if name.endswith("ffn_up.weight"))
        model = {k: v for k, v in g.tensors.items() if not k.startswith("blk.")}
        for name, tensor in g.tensors.items():
            if name.startswith(f"blk.{layer}."):
                for i in range(n):
                    model[f"blk.{i}.{name.split('.', 2)[2]}"] = tensor
        g.tensors = model
        g.keys[f"{arch}.feed_forward_length"] = (ARR, (I32, [ff] * n))
        self.refused(g, f"{arch}.block_count: no layer has attention")

    def test_a_layer_of_one_block_has_no_experts_beside_it(self):
        g = self.gguf("nemotronh-moe")
        layers = {name.split(".")[1] for name in g.tensors if name.startswith("blk.")}
        from_layer = next(n.split(".")[1] for n in g.tensors if n.endswith("ffn_gate_inp.weight"))
        for to in sorted(layers):
            if f"blk.{to}.ffn_gate_inp.weight" in g.tensors:
                continue
            with self.subTest(layer=to):
                kept = dict(g.tensors)
                for name, tensor in kept.items():
                    if name.startswith(f"blk.{from_layer}.ffn") or ".exp_probs_b" in name:
                        g.tensors[name.replace(f"blk.{from_layer}.", f"blk.{to}.")] = tensor
                self.refused(g, f"blk.{to}.", "do not use this tensor")
                g.tensors = kept


if __name__ == "__main__":
    unittest.main(verbosity=2)
