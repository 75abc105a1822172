#!/usr/bin/env python3
"""Files of one model in several forms: what converters leave in them or wrote differently in other
years changes nothing.

The models are those of test_families.py."""
import array
import copy
import json
import math
import os
import re
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import snapshot_gguf  # noqa: E402
from gguf_edit import ARR, BOOL, F32, I32, U32, Gguf, f32  # noqa: E402
from model_case import SHARED, ModelCase  # noqa: E402
from program import budget, memwall  # noqa: E402
from test_families import write_snapshot  # noqa: E402

LIMIT = 1e-4


def floats(raw):
    """Returns the values of BF16 bytes."""
    return [x for x, in struct.iter_unpack("<f", b"".join(b"\0\0" + raw[i:i + 2]
                                                          for i in range(0, len(raw), 2)))]


def layer_name(g, suffix):
    """Returns the name of the first tensor with this end."""
    return next(t for t in g.tensors if t.endswith(suffix))


class Files(ModelCase):
    def close(self, want, got):
        self.assertIsInstance(want, tuple, want)
        self.assertIsInstance(got, tuple, got)
        self.assertLessEqual(max(abs(a - b) for a, b in zip(want, got)), LIMIT)

    def gguf_or_skip(self, name):
        if not os.path.isdir(os.path.join(SHARED, "families2")):
            self.skipTest("MW_SHARED has no conformance/families2")
        return self.gguf(name)


class FamilyFiles(Files):
    def test_granite_files_with_keys_of_other_parts(self):
        """Granite 4 models with attention only have keys of Mamba layers and experts."""
        g = self.gguf("granite")
        want = self.eval(g)
        ff = g.get("granite.feed_forward_length")
        for key, value in {"expert_count": (U32, 0), "expert_used_count": (U32, 0),
                           "expert_shared_feed_forward_length": (U32, ff),
                           "ssm.conv_kernel": (U32, 4), "ssm.state_size": (U32, 128),
                           "ssm.group_count": (U32, 1), "ssm.inner_size": (U32, 64),
                           "ssm.time_step_rank": (U32, 4),
                           "rope.scaling.finetuned": (BOOL, True)}.items():
            g.keys["granite." + key] = value
        self.same(want, self.eval(g))

    def test_granite_snapshots_with_attention_only(self):
        """Their class is that of hybrid models, and their dense branch a shared expert."""
        folder = self.snapshot("granite")
        config, tensors = snapshot_gguf.read_snapshot(folder)
        n = config["num_hidden_layers"]
        other = {}
        for name, (shape, values) in tensors.items():
            if ".mlp.gate_proj." in name:
                up_shape, up = tensors[name.replace("gate_proj", "up_proj")]
                name = name.replace("mlp.gate_proj", "shared_mlp.input_linear")
                shape, values = [shape[0] + up_shape[0], shape[1]], [*values, *up]
            elif ".mlp.up_proj." in name:
                continue
            other[name.replace("mlp.down_proj", "shared_mlp.output_linear")] = (shape, values)
        path = write_snapshot(self.path("hybrid"), other, {}, {
            **config, "model_type": "granitemoehybrid", "num_local_experts": 0,
            "architectures": ["GraniteMoeHybridForCausalLM"], "layer_types": ["attention"] * n,
            "shared_intermediate_size": config["intermediate_size"], "intermediate_size": 7,
            "position_embedding_type": "rope"})
        self.same(self.eval(folder), self.eval(path))
        with self.subTest("without rotation"):
            path = write_snapshot(self.path("nope"), other, {}, {
                **config, "model_type": "granitemoehybrid", "num_local_experts": 0,
                "layer_types": ["attention"] * n, "intermediate_size": 7,
                "shared_intermediate_size": config["intermediate_size"],
                "position_embedding_type": "nope"})
            still = self.eval(path)
            self.differs(self.eval(folder), still)
        with self.subTest("without the field, which means the same"):
            path = write_snapshot(self.path("unsaid"), other, {}, {
                **config, "model_type": "granitemoehybrid", "num_local_experts": 0,
                "layer_types": ["attention"] * n, "intermediate_size": 7,
                "shared_intermediate_size": config["intermediate_size"]})
            self.same(still, self.eval(path))
        with self.subTest("a GGUF file that says so"):
            g = self.gguf("granite")
            g.keys["granite.rope.scaling.finetuned"] = (BOOL, False)
            self.close(still, self.eval(g))

    def test_latent_attention_with_joined_keys_and_values(self):
        """Files of before April 2025 have attn_kv_b, and the sizes of heads in other keys."""
        g = self.gguf("deepseek3")
        want = self.eval(g)
        arch, heads = "deepseek2.", g.get("deepseek2.attention.head_count")
        for name in [n for n in g.tensors if n.endswith("attn_k_b.weight")]:
            (nope, rank, _), kind, k = g.tensors.pop(name)
            (_, n_v, _), _, v = g.tensors.pop(name.replace("attn_k_b", "attn_v_b"))
            k, v, joined = floats(k), floats(v), []
            for h in range(heads):  # keys are stored transposed
                joined += [k[(h * rank + j) * nope + i] for i in range(nope) for j in range(rank)]
                joined += v[h * n_v * rank:(h + 1) * n_v * rank]
            g.tensors[name.replace("attn_k_b", "attn_kv_b")] = (
                [rank, heads * (nope + n_v)], 0, f32(joined))
        for old, new in (("key_length", "key_length_mla"), ("value_length", "value_length_mla")):
            g.keys[arch + "attention." + old] = g.keys.pop(arch + "attention." + new)
        g.keys[arch + "attention.head_count_kv"] = (U32, heads)
        self.close(want, self.eval(g))
        del g.tensors["blk.1.attn_kv_b.weight"]
        self.refused(g, "blk.1.attn_k_b.weight", "missing")

    def test_sigmoid_is_the_score_of_files_with_a_bias(self):
        """GLM-4.7-Flash files of January 2026 do not state it."""
        for name, score in (("glm47flash", 2), ("deepseek2lite", 1)):
            with self.subTest(name):
                g = self.gguf_or_skip(name)
                want = self.eval(g)
                self.assertEqual(score, g.get("deepseek2.expert_gating_func"))
                del g.keys["deepseek2.expert_gating_func"]
                self.same(want, self.eval(g))

    def test_experts_with_a_narrower_input(self):
        """Nemotron 3 Super: a matrix before the experts, and one after their sum.  Experts whose
        weights were multiplied with these matrices do the same without them."""
        def product(a, b, n):  # a: rows of n values; b: n rows
            width = len(b) // n
            return [sum(a[i * n + k] * b[k * width + j] for k in range(n))
                    for i in range(len(a) // n) for j in range(width)]

        def values(n, seed):  # which BF16 has
            return [((seed + 37 * i * i + 11 * i) % 101 - 50) / 256 for i in range(n)]

        g = self.gguf_or_skip("nemotronh-moe")
        plain, n, config_of = copy.deepcopy(g), 12, {}
        for name in [t for t in g.tensors if t.endswith("ffn_up_exps.weight")]:
            layer = name[:name.index(".ffn")]
            (wide, ff, n_expert), _, _ = g.tensors[name]
            into, out = values(n * wide, 5), values(wide * n, 70)
            up, down = [values(ff * n, 9 + e) for e in range(n_expert)], \
                [values(n * ff, 51 + e) for e in range(n_expert)]
            g.tensors.update({
                layer + ".ffn_latent_down.weight": ([wide, n], 0, f32(into)),
                layer + ".ffn_latent_up.weight": ([n, wide], 0, f32(out)),
                name: ([n, ff, n_expert], 0, f32(sum(up, []))),
                layer + ".ffn_down_exps.weight": ([ff, n, n_expert], 0, f32(sum(down, [])))})
            plain.tensors.update({
                name: ([wide, ff, n_expert], 0,
                       f32([x for u in up for x in product(u, into, n)])),
                layer + ".ffn_down_exps.weight": (
                    [ff, wide, n_expert], 0, f32([x for d in down for x in product(out, d, n)]))})
            config_of[layer[4:]] = (wide, ff, into, out, up, down)
        g.keys["nemotron_h_moe.moe_latent_size"] = (U32, n)
        want = self.eval(plain)
        self.close(want, self.eval(g))
        self.assertGreater(max(abs(a - b) for a, b in zip(want, self.eval(
            self.gguf("nemotronh-moe")))), 0.1)
        path = self.path("m.gguf")
        g.write(path)
        for args in ("--chunk", "1"), ("--chunk", "7"), ("-b", budget(100)):
            self.assertEqual(self.logits(path, "--chunk", "32"), self.logits(path, *args), args)

        # Ollama's converter has other names, and no key for their width.
        got, other = self.eval(g), copy.deepcopy(g)
        del other.keys["nemotron_h_moe.moe_latent_size"]
        for name in g.tensors:
            other.rename_tensor(name, name.replace("latent_down", "latent_in").replace(
                "latent_up", "latent_out"))
        other.tensors["mtp.layers.0.norm.weight"] = ([4], 0, bytes(16))
        self.same(got, self.eval(other))

        config, tensors = snapshot_gguf.read_snapshot(self.snapshot("nemotronh-moe"))
        for layer, (wide, ff, into, out, up, down) in config_of.items():
            at = f"backbone.layers.{layer}.mixer."
            tensors[at + "fc1_latent_proj.weight"] = ([n, wide], into)
            tensors[at + "fc2_latent_proj.weight"] = ([wide, n], out)
            for e, (u, d) in enumerate(zip(up, down)):
                tensors[f"{at}experts.{e}.up_proj.weight"] = ([ff, n], u)
                tensors[f"{at}experts.{e}.down_proj.weight"] = ([n, ff], d)
        folder = write_snapshot(self.path("latent"), tensors, {}, {**config, "moe_latent_size": n})
        self.close(want, self.eval(folder))

        del g.tensors[layer_name(g, "ffn_latent_up.weight")]
        self.refused(g, "ffn_latent_up.weight", "missing")
        g.keys["nemotron_h_moe.moe_latent_size"] = (U32, 5000)
        self.refused(g, "nemotron_h_moe.moe_latent_size", "5000")

    def logits(self, path, *args):
        out = self.path("bits")
        r = memwall("eval", path, "--ids", "-", "--logits", out, "--force", "-t", "1", *args,
                    stdin=" ".join(str(5 * i % 90) for i in range(20)))
        self.assertEqual(0, r.returncode, r.stderr)
        with open(out, "rb") as f:
            return f.read()

    def test_inspect_says_what_layers_keep(self):
        for name, kind, n, latent in (
                ("nemotronh-moe", "Mamba-2", 2, 0), ("lfm2moe", "short convolutions", 2, 0),
                ("glm53flash", "Kimi's delta attention", 2, 16),
                ("deepseek3", None, 0, 24), ("laguna", None, 0, 0)):
            with self.subTest(name):
                path = self.path("m.gguf")
                self.gguf_or_skip(name).write(path)
                s = json.loads(memwall("inspect", "--json", path).stdout)
                self.assertEqual((kind, n, latent),
                                 (s.get("recurrence"), s["n_recurrent"], s["latent_values"]))
                text = memwall("inspect", path).stdout
                self.assertEqual(n > 0, f"layers keep one for any context: {kind}" in text)
                self.assertEqual(latent > 0, f"latent keys   {latent} values" in text)

    def test_layers_that_only_draft_are_ignored(self):
        for name, arch in (("deepseek3", "deepseek2"), ("nemotronh-moe", "nemotron_h_moe"),
                           ("glm45air", "glm4moe"), ("ling2", "bailingmoe2"),
                           ("deepseek4", "deepseek4"), ("glm53flash", "glm5-next")):
            with self.subTest(name):
                g = self.gguf_or_skip(name)
                want, plan = self.eval(g), self.planned(g)
                n = g.get(arch + ".block_count")
                for tensor, value in list(g.tensors.items()):
                    if tensor.startswith("blk.%d." % (n - 1)):
                        g.tensors[tensor.replace("blk.%d." % (n - 1), "blk.%d." % n)] = value
                g.tensors["blk.%d.nextn.eh_proj.weight" % n] = ([64, 32], 0, f32([0.5] * 2048))
                for key, (kind, value) in list(g.keys.items()):
                    if kind == ARR and key.startswith(arch) and len(value[1]) == n:
                        g.keys[key] = (ARR, (value[0], [*value[1], value[1][-1]]))
                g.keys[arch + ".block_count"] = (U32, n + 1)
                self.refused(g, "blk.%d.nextn" % n)
                g.keys[arch + ".nextn_predict_layers"] = (U32, 1)
                self.same(want, self.eval(g))
                self.assertEqual(plan, self.planned(g))

    def planned(self, g):
        """Returns the rows of a plan that weights and layers change."""
        path = self.path("planned.gguf")
        g.write(path)
        p = json.loads(memwall("plan", path, "--memory", "1G", "--json").stdout)
        return {k: p[k] for k in ("n_layer", "n_param", "hot_bytes", "kv_token_bytes")} | {
            k: p["rows"][k] for k in ("kv_global", "kv_sliding", "kv_recurrent", "kv_index")}

    def test_draft_layers_of_snapshots_are_ignored(self):
        for name in ("f-deepseek3", "f-glm53flash"):
            folder = os.path.join(SHARED, "families2", name)
            if not os.path.isdir(folder):
                self.skipTest("MW_SHARED has no conformance/families2/" + name)
            with self.subTest(name):
                config, tensors = snapshot_gguf.read_snapshot(folder)
                text = config.get("text_config", config)
                n = text["num_hidden_layers"]
                last, draft = "layers.%d." % (n - 1), "layers.%d." % n
                more = {k.replace(last, draft): v for k, v in tensors.items() if last in k}
                head = next(iter(more)).split(draft)[0] + draft
                more[head + "eh_proj.weight"] = ([32, 64], [0.5] * 2048)
                text["num_nextn_predict_layers"] = 1
                path = write_snapshot(self.path("draft-" + name), {**tensors, **more}, {}, config)
                self.same(self.eval(folder), self.eval(path))

    def test_draft_layers_of_deepseek_v4_are_ignored(self):
        """Its snapshots name them "mtp.N." instead of the number of a layer."""
        folder = os.path.join(SHARED, "families2", "f-deepseek4")
        if not os.path.isdir(folder):
            self.skipTest("MW_SHARED has no conformance/families2/f-deepseek4")
        path = self.path("draft")
        os.mkdir(path)
        with open(os.path.join(folder, "config.json")) as f:
            config = json.load(f)
        with open(os.path.join(path, "config.json"), "w") as f:
            json.dump({**config, "num_nextn_predict_layers": 1}, f)
        with open(os.path.join(folder, "model.safetensors"), "rb") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header, data = json.loads(f.read(size)), f.read()
        last = "layers.%d." % (config["num_hidden_layers"] - 1)
        for name in [k for k in header if last in k]:
            start, end = header[name]["data_offsets"]
            header[name.replace(last, "mtp.0.")] = {
                **header[name], "data_offsets": [len(data), len(data) + end - start]}
            data += data[start:end]
        packed = json.dumps(header).encode()
        with open(os.path.join(path, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(packed)) + packed + data)
        self.same(self.eval(folder), self.eval(path))

    def test_configurations_with_python_numbers(self):
        """Nemotron's have a bare Infinity."""
        folder = os.path.join(SHARED, "families2", "f-nemotronh")
        if not os.path.isdir(folder):
            self.skipTest("MW_SHARED has no conformance/families2/f-nemotronh")
        path = self.path("infinite")
        os.mkdir(path)
        os.symlink(os.path.join(folder, "model.safetensors"),
                   os.path.join(path, "model.safetensors"))
        with open(os.path.join(folder, "config.json")) as f:
            text = f.read()
        other = text.replace('{"__float__": "Infinity"}', "Infinity")
        other = other.replace('"time_step_limit"', '"a \\" Infinity": 1, "time_step_limit"')
        if other.count("Infinity") != 2:
            other = re.sub(r'\{\s*"__float__": "Infinity"\s*\}', "Infinity", other)
        self.assertEqual(2, other.count("Infinity"))
        with open(os.path.join(path, "config.json"), "w") as f:
            f.write(other)
        self.same(self.eval(folder), self.eval(path))

    def test_parts_that_are_missing_are_named(self):
        for name, words in (("deepseek3", ("attn_kv_a_mqa", "attn_q_b", "attn_kv_a_norm")),
                            ("nemotronh-moe", ("ssm_d", "ssm_conv1d.bias", "ssm_norm",
                                               "ffn_up_shexp")),
                            ("ling3", ("ssm_f_a", "ssm_conv1d_k", "attn_gate", "ssm_beta")),
                            ("lfm2moe", ("shortconv.conv", "shortconv.in_proj")),
                            ("laguna", ("attn_gate",)), ("museglimmer", ("attn_q_norm",))):
            g = self.gguf(name)
            for word in words:
                with self.subTest(name=name, word=word):
                    at = next(t for t in g.tensors if "." + word in t)
                    changed = copy.copy(g)
                    changed.tensors = {k: v for k, v in g.tensors.items() if k != at}
                    if word != "ffn_up_shexp":  # only its other half is read then
                        self.refused(changed, at, "missing")
                    else:
                        self.refused(changed, "shexp")


class Published(Files):
    """Fields and tensors that published files have and those of small models lack."""

    def changed(self, name, **fields):
        """Returns the logits of a snapshot with other fields; None: without the field."""
        def change(config):
            text = config.get("text_config", config)
            for key, value in fields.items():
                if value is None:
                    text.pop(key, None)
                else:
                    text[key] = value
        if not os.path.isdir(os.path.join(SHARED, "families2")):
            self.skipTest("MW_SHARED has no conformance/families2")
        path = self.snapshot_with(name, change)
        got = self.eval(path)
        shutil.rmtree(path)
        return got

    def stays(self, name, **fields):
        self.same(self.changed(name), self.changed(name, **fields), (name, fields))

    def is_refused(self, name, field, *words, **fields):
        error = self.changed(name, **fields)
        self.assertIsInstance(error, str, (name, fields))
        for word in ("config.json: " + field, *words):
            self.assertIn(word, error)

    def test_widths_of_the_first_models_of_lfm2(self):
        """LFM2-350M and 1.2B have no intermediate_size, and list the layers with attention."""
        old = {"intermediate_size": None, "layer_types": None, "full_attn_idxs": [1, 3]}
        self.stays("lfm2", block_ff_dim=48, **old)
        self.stays("lfm2", block_ff_dim=48, intermediate_size=7)
        self.stays("lfm2", block_ff_dim=72, block_multiple_of=16, block_auto_adjust_ff_dim=True,
                   **old)
        self.is_refused("lfm2", "intermediate_size", "missing", intermediate_size=None)
        self.is_refused("lfm2", "block_ffn_dim_multiplier", "makes block_ff_dim", block_ff_dim=48,
                        block_ffn_dim_multiplier=1e9, block_auto_adjust_ff_dim=True)
        error = self.changed("lfm2", tie_embedding=False)
        self.assertIn("lm_head.weight", error)

    def test_draft_tensors_of_ernie(self):
        """ERNIE 4.5 calls them "mtp_block.N" and the like."""
        folder = self.snapshot("ernie45moe")
        config, tensors = snapshot_gguf.read_snapshot(folder)
        want = self.eval(folder)
        more = {name.replace("model.layers.0.", "model.mtp_block.0."): value
                for name, value in tensors.items() if name.startswith("model.layers.0.")}
        n = config["hidden_size"]
        for word, shape in (("mtp_emb_norm", [n]), ("mtp_hidden_norm", [n]),
                            ("mtp_linear_proj", [n, 2 * n])):
            more[f"model.{word}.0.weight"] = (shape, [0.5] * math.prod(shape))
        path = write_snapshot(self.path("mtp"), {**tensors, **more}, {},
                              {**config, "num_nextn_predict_layers": 1})
        self.same(want, self.eval(path))

    def test_the_last_layer_of_ernie_with_experts(self):
        """moe_layer_end_index; here with the dense part of layer 0 as that of layer 2, where an
        interval of 2 says the same."""
        self.stays("ernie45moe", moe_layer_end_index=-1)
        self.stays("ernie45moe", moe_layer_end_index=None)
        folder = self.snapshot("ernie45moe")
        config, tensors = snapshot_gguf.read_snapshot(folder)
        self.assertEqual(3, config["num_hidden_layers"])
        other = {name: value for name, value in tensors.items() if ".layers.2.mlp." not in name}
        other |= {name.replace("layers.0", "layers.2"): value for name, value in tensors.items()
                  if ".layers.0.mlp." in name}
        want = self.eval(write_snapshot(self.path("interval"), other, {}, {
            **config, "moe_layer_end_index": -1, "moe_layer_interval": 2}))
        self.same(want, self.eval(write_snapshot(self.path("end"), other, {}, {
            **config, "moe_layer_end_index": 1})))
        self.is_refused("ernie45moe", "moe_layer_end_index", moe_layer_end_index="last")

    def test_heads_of_mamba_that_share_the_width(self):
        """The word "auto" in transformers, and no field."""
        with open(os.path.join(self.snapshot("falconh1"), "config.json")) as f:
            config = json.load(f)
        wide = config["mamba_n_heads"] * config["mamba_d_head"]
        for size in None, "auto":
            self.stays("falconh1", mamba_d_head=size, mamba_d_ssm=wide)
        self.is_refused("falconh1", "mamba_d_head", "cannot share", mamba_d_head="auto",
                        mamba_d_ssm=wide + 1)
        self.is_refused("falconh1", "mamba_d_head", mamba_d_head="wide")
        with open(os.path.join(self.snapshot("granite4h"), "config.json")) as f:
            config = json.load(f)
        if config["mamba_n_heads"] * config["mamba_d_head"] == 2 * config["hidden_size"]:
            self.stays("granite4h", mamba_d_head="auto", mamba_expand=2)

    def test_fields_of_transformers_for_delta_attention(self):
        """transformers' own classes of Kimi Linear and GLM 5.3 write the sizes beside the other
        fields, and kinds of layers as words."""
        with open(os.path.join(self.snapshot("kimilinear"), "config.json")) as f:
            config = json.load(f)
        n, full = config["num_hidden_layers"], config["linear_attn_config"]["full_attn_layers"]
        sizes = {"linear_num_heads": 4, "linear_head_dim": 8, "linear_conv_kernel_dim": 4}
        kinds = ["full_attention" if i + 1 in full else "linear_attention" for i in range(n)]
        words = {"layer_types": kinds, "mlp_layer_types": ["dense"] + ["sparse"] * (n - 1)}
        self.stays("kimilinear", linear_attn_config=None, first_k_dense_replace=None,
                   max_position_embeddings=None, model_max_length=512, mla_use_nope=None,
                   moe_router_activation_func=None, rope_theta=None, **sizes, **words)
        with self.subTest("both, as after loading a published file"):
            self.stays("kimilinear", **sizes, **words)
        self.is_refused("kimilinear", "linear_num_heads", "missing", linear_attn_config=None,
                        **words)
        self.is_refused("kimilinear", "linear_attn_config", "full_attn_layers is missing",
                        linear_attn_config=None, **sizes)
        for part in "attn_res_block_size", "mla_use_output_gate":
            self.stays("kimilinear", **{part: 0})
            self.is_refused("kimilinear", part, **{part: 1})
        self.stays("glm53flash", linear_attn_config=None, linear_lower_bound=-5.0, **sizes)
        self.differs(self.changed("glm53flash"),
                     self.changed("glm53flash", linear_attn_config=None, linear_lower_bound=-1.0,
                                  **sizes))

    def test_windows_that_are_stated_and_not_used(self):
        self.stays("ling2", sliding_window=8, use_sliding_window=False, max_window_layers=2)
        self.is_refused("ling2", "sliding_window", "bailingmoe2", sliding_window=8)
        self.is_refused("ling2", "sliding_window", sliding_window=8, use_sliding_window=True)

    def test_layers_without_experts_by_number(self):
        """Laguna's files list them beside the words for all layers, Qwen 2's instead of these."""
        for words in ({}, {"mlp_layer_types": None}):
            self.stays("laguna", mlp_only_layers=[0], decoder_sparse_step=1, **words)
        self.stays("qwen2moe", mlp_only_layers=[], decoder_sparse_step=1)
        error = self.changed("laguna", mlp_only_layers=[0, 2], mlp_layer_types=None)
        self.assertIn("layers.2.mlp", error)
        error = self.changed("qwen2moe", decoder_sparse_step=2)
        self.assertIn("layers.0.mlp", error)
        for wrong in ([9], ["0"], 3):
            self.is_refused("laguna", "mlp_only_layers", mlp_only_layers=wrong,
                            mlp_layer_types=None)

    def test_gates_of_laguna_for_single_values(self):
        """Those of Laguna M.1; here with the gates of heads, repeated."""
        folder = self.snapshot("laguna")
        config, tensors = snapshot_gguf.read_snapshot(folder)
        want, dim, wide = self.eval(folder), config["head_dim"], config["hidden_size"]
        g, more = self.gguf("laguna"), dict(tensors)

        def repeated(rows, n):
            return [rows[i:i + n] for i in range(0, len(rows), n) for _ in range(dim)]

        for name, (shape, values) in tensors.items():
            if name.endswith(".g_proj.weight"):
                more[name] = ([shape[0] * dim, wide], sum(repeated(list(values), wide), []))
        for name, (dims, kind, raw) in list(g.tensors.items()):
            if name.endswith("attn_gate.weight"):
                rows = repeated(raw, len(raw) // dims[1])
                g.tensors[name] = ([wide, dims[1] * dim], kind, b"".join(rows))
        self.same(self.eval(self.gguf("laguna")), self.eval(g))
        n = config["num_hidden_layers"]
        for i, fields in enumerate(({"gating": "per-element"},
                                    {"gating": True, "gating_types": ["per_element"] * n})):
            self.same(want, self.eval(write_snapshot(self.path(f"gates{i}"), more, {},
                                                     {**config, **fields})))
        self.assertIn("g_proj", self.eval(write_snapshot(self.path("heads"), more, {}, config)))
        name = layer_name(g, "attn_gate.weight")
        dims, kind, raw = g.tensors[name]
        row = len(raw) // dims[1]
        g.tensors[name] = (dims, kind, raw[row:] + raw[:row])
        self.differs(want, self.eval(g))
        for wrong in ("per-row", False, 3):
            self.is_refused("laguna", "gating", "per-element", gating=wrong)

    def test_laguna_without_a_window(self):
        """All layers of Laguna M.1 see all positions."""
        want = self.changed("laguna", layer_types=["full_attention"] * 4, sliding_window=0)
        g = self.gguf("laguna")
        self.differs(want, self.eval(g))
        for key in ("attention.sliding_window", "rope.freq_base_swa", "rope.dimension_count_swa"):
            del g.keys["laguna." + key]
        self.close(want, self.eval(g))

    def test_names_and_places_in_laguna(self):
        folder = self.snapshot("laguna")
        config, tensors = snapshot_gguf.read_snapshot(folder)
        other = {name.replace("mlp.experts.e_score", "mlp.gate.e_score"): value
                 for name, value in tensors.items()}
        self.assertNotEqual(set(tensors), set(other))
        rope = copy.deepcopy(config["rope_parameters"])
        rope["original_max_position_embeddings"] = rope["full_attention"].pop(
            "original_max_position_embeddings")
        path = write_snapshot(self.path("other"), other, {}, {**config, "rope_parameters": rope})
        self.same(self.eval(folder), self.eval(path))

    def test_values_that_other_models_compute_with(self):
        for name, field, usual, other in (
                ("laguna", "moe_router_logit_softcapping", 0.0, 30.0),
                ("laguna", "moe_apply_router_weight_on_input", False, True),
                ("laguna", "swa_attention_sink_enabled", False, True),
                ("laguna", "norm_topk_prob", True, False),
                ("laguna", "moe_router_use_sigmoid", True, False),
                ("olmoe", "moe_router_use_sigmoid", False, True),
                ("hunyuanmoe", "norm_topk_prob", True, False),
                ("museglimmer", "hidden_activation", "silu", "gelu_pytorch_tanh"),
                ("nemotronh", "mlp_hidden_act", "relu2", "silu"),
                ("nemotronh", "time_step_limit", [0.0, float("inf")], [0.0, 0.1]),
                ("granite4h", "mamba_n_groups", 1, 2),
                ("granite4h", "time_step_limit", [0.0, float("inf")], [0.001, float("inf")]),
                ("deepseek3", "moe_layer_freq", 1, 2), ("kimilinear", "mla_use_nope", True, False),
                ("glm53flash", "mla_use_nope", True, False),
                ("ling3", "use_mla_nope", False, True),
                ("deepseek3", "mla_use_nope", False, True)):
            with self.subTest(name=name, field=field):
                self.stays(name, **{field: usual})
                self.is_refused(name, field, **{field: other})
        self.stays("falconh1", mamba_norm_before_gate=True)  # there is no norm
        for stated, words in (True, "is true"), (None, "is missing"):  # true in transformers
            self.is_refused("falconh1", "mamba_norm_before_gate", words,
                            mamba_norm_before_gate=stated, mamba_rms_norm=True)
        self.assertIn("mamba.norm.weight", self.changed(
            "falconh1", mamba_norm_before_gate=False, mamba_rms_norm=True))

    def test_words_of_glm_5_3(self):
        def words(text):
            return ["linear_attention" if w == "linear_attention" else "deepseek_sparse_attention"
                    for w in text["layer_types"]]
        with open(os.path.join(self.snapshot("glm53flash"), "config.json")) as f:
            text = json.load(f)["text_config"]
        self.stays("glm53flash", layer_types=words(text), head_dim=0,
                   mlp_layer_types=["dense", *["sparse"] * (text["num_hidden_layers"] - 1)])
        self.is_refused("ling2", "layer_types", layer_types=["deepseek_sparse_attention"] * 9)
        self.is_refused("laguna", "head_dim", head_dim=0)

    def test_norms_after_a_block_of_muse(self):
        self.stays("museglimmer", post_norm_eps=1e-8)
        self.differs(self.changed("museglimmer"), self.changed("museglimmer", post_norm_eps=1e-2))

    def test_head_sizes_of_the_first_models_of_nemotron(self):
        with open(os.path.join(self.snapshot("nemotronh"), "config.json")) as f:
            dim = json.load(f)["head_dim"]
        self.stays("nemotronh", head_dim=None, attention_head_dim=dim)
        self.assertNotEqual(128, dim)

    def test_clamps_of_ling_3(self):
        """Lists of one number for each layer, for experts and for shared ones."""
        n = self.gguf_or_skip("ling3").get("bailingmoe3.block_count")
        want = self.changed("ling3")
        lists = ("expert_swiglu_limit_list", "share_expert_swiglu_limit_list")
        keys = ("swiglu_clamp_exp", "swiglu_clamp_shexp")
        self.stays("ling3", **{key: [0] * n for key in lists}, no_kda_lora=True)
        self.stays("ling3", **{key: [1000.0] * (n + 1) for key in lists})
        self.stays("ling3", **{key: [0.0, *[None] * (n - 1)] for key in lists})
        seen = [want]
        for used in (0, 1), (0,), (1,):
            limits = [0] * (n - 1) + [0.125]
            got = self.changed("ling3", **{lists[i]: limits for i in used})
            for other in seen:
                self.differs(other, got)
            seen.append(got)
            g = self.gguf("ling3")
            for i in used:
                g.keys["bailingmoe3." + keys[i]] = (ARR, (F32, [float(x) for x in limits]))
            self.close(got, self.eval(g))
        for wrong in (3, [0] * (n - 1), [-1] * n, ["a"] * n):
            self.is_refused("ling3", lists[0], **{lists[0]: wrong})

    def test_a_clamp_of_ling_3_is_one_of_silu(self):
        """With gates far from 0, an expert adds as much as the limit of silu(gate) allows."""
        n = self.gguf_or_skip("ling3").get("bailingmoe3.block_count")
        for part, key in ("exps", "swiglu_clamp_exp"), ("shexp", "swiglu_clamp_shexp"):
            got = []
            for limit, by in (0.125, 2.0), (0.5, 0.5):
                g = self.gguf("ling3")
                g.keys["bailingmoe3." + key] = (ARR, (F32, [0.0] * (n - 1) + [limit]))
                for word, factor in ("gate", 2.0**20), ("up", 2.0**-8), ("down", 2.0**8 * by):
                    name = "blk.%d.ffn_%s_%s.weight" % (n - 1, word, part)
                    dims, kind, raw = g.tensors[name]
                    self.assertEqual(30, kind)
                    g.tensors[name] = (dims, 0, f32([factor * x for x in floats(raw)]))
                got.append(self.eval(g))
            with self.subTest(part=part):
                self.close(*got)

    def test_published_files_of_deepseek_v4(self):
        """They list ratios for a layer that only drafts and that they lack; some count it."""
        g = self.gguf_or_skip("deepseek4")
        want = self.eval(g)
        kind, ratios = g.get("deepseek4.attention.compress_ratios")
        g.keys["deepseek4.attention.compress_ratios"] = (ARR, (kind, [*ratios, 0]))
        self.same(want, self.eval(g))
        g.keys["deepseek4.nextn_predict_layers"] = (U32, 1)
        self.same(want, self.eval(g))
        del g.keys["deepseek4.swiglu_clamp_shexp"]  # which is that of the other experts
        self.same(want, self.eval(g))
        g.keys["deepseek4.attention.compress_ratios"] = (ARR, (kind, ratios[:-1]))
        self.refused(g, "compress_ratios", "has 2 values for 3 layers")

    def test_draft_layers_in_files_of_deepseek_v4(self):
        """Some converters make two matrices of one, and some do not count the layer."""
        want = self.eval(self.gguf_or_skip("deepseek4"))
        for joins in ("eh_proj",), ("e_proj", "h_proj"):
            for counted, stated in (1, 1), (0, 1), (0, 0):
                g = self.gguf("deepseek4")
                n = g.get("deepseek4.block_count")
                last, draft = "blk.%d." % (n - 1), "blk.%d." % n
                g.tensors |= {name.replace(last, draft): t for name, t in g.tensors.items()
                              if name.startswith(last)}
                for word in joins:
                    g.tensors[draft + f"nextn.{word}.weight"] = ([32, 32], 0, f32([0.5] * 1024))
                g.keys["deepseek4.block_count"] = (U32, n + counted)
                if stated:
                    g.keys["deepseek4.nextn_predict_layers"] = (U32, 1)
                with self.subTest(joins=joins, counted=counted, stated=stated):
                    self.same(want, self.eval(g))

    def test_a_bound_of_decay_that_is_not_used(self):
        g = self.gguf_or_skip("ling3")
        want = self.eval(g)
        g.keys["bailingmoe3.kda.safe_gate"] = (BOOL, False)
        open_gate = self.eval(g)
        self.differs(want, open_gate)
        self.close(self.changed("ling3", kda_safe_gate=False), open_gate)
        del g.keys["bailingmoe3.kda.gate_lower_bound"]
        self.same(open_gate, self.eval(g))

    def test_sections_of_positions_of_images(self):
        """Files of GLM-4.6V have them; all positions of a text are the same."""
        g = self.gguf_or_skip("glm45air")
        want = self.eval(g)
        g.keys["glm4moe.rope.dimension_sections"] = (ARR, (I32, [1, 1, 1, 0]))
        self.same(want, self.eval(g))

    def test_experts_whose_scores_are_all_0(self):
        """Their weights have no sum to be divided by: they add nothing."""
        g = self.gguf_or_skip("glm47flash")
        name = layer_name(g, "ffn_gate_inp.weight")
        (n, n_expert), _, _ = g.tensors[name]
        row = [1e4 * ((7 * i) % 5 - 2) for i in range(n)]
        g.tensors[name] = ([n, n_expert], 0, f32(row * n_expert))
        g.keys["deepseek2.block_count"] = (U32, int(name.split(".")[1]) + 1)
        g.tensors = {k: v for k, v in g.tensors.items()
                     if not k.startswith("blk.") or int(k.split(".")[1]) <= int(name.split(".")[1])}
        got = self.eval(g)
        self.assertIsInstance(got, tuple, got)
        down = layer_name(g, "ffn_down_exps.weight")
        dims, kind, raw = g.tensors[down]
        g.tensors[down] = (dims, 0, f32([0.0] * math.prod(dims)))
        without = self.eval(g)
        vocab = len(got) // 24
        same = [got[i:i + vocab] == without[i:i + vocab] for i in range(0, len(got), vocab)]
        self.assertIn(True, same)  # every score is 0, or every score is 1
        self.assertIn(False, same)


class Blocks(ModelCase):
    """Latent attention in sizes that blocks of weights and of keys fit: the reference's weights,
    repeated."""

    def model(self):
        g = self.gguf("deepseek3")
        embd, heads, rank, rot, nope, value = 64, 4, 64, 32, 32, 32
        sizes = {"attn_q_a": (embd, 32), "attn_q_b": (32, heads * (nope + rot)),
                 "attn_kv_a_mqa": (embd, rank + rot), "attn_k_b": (nope, rank, heads),
                 "attn_v_b": (rank, value, heads), "attn_output": (heads * value, embd),
                 "attn_q_a_norm": (32,), "attn_kv_a_norm": (rank,), "ffn_gate": (embd, 64),
                 "ffn_up": (embd, 64), "ffn_down": (64, embd)}
        out = copy.copy(g)
        out.keys, out.tensors = dict(g.keys), {}
        for key, value_of in (("embedding_length", embd), ("feed_forward_length", 64),
                              ("attention.q_lora_rank", 32), ("attention.kv_lora_rank", rank),
                              ("attention.key_length", rank + rot),
                              ("attention.value_length", rank),
                              ("attention.key_length_mla", nope + rot),
                              ("attention.value_length_mla", value),
                              ("rope.dimension_count", rot), ("block_count", 1)):
            out.keys["deepseek2." + key] = (U32, value_of)
        for name, (dims, kind, raw) in g.tensors.items():
            if name.startswith("blk.") and not name.startswith("blk.0."):
                continue
            word = name.split(".")[-2]
            dims = list(sizes.get(word, [embd if d == 32 and i == 0 else d
                                         for i, d in enumerate(dims)]))
            values = floats(raw) if kind == 30 else [x for x, in struct.iter_unpack("<f", raw)]
            n = math.prod(dims)
            # An odd step, so that no row repeats another one.
            values = [values[(i * 7 + i // len(values)) % len(values)] for i in range(n)]
            out.tensors[name] = (dims, 0, f32(values))
        return out

    def rows(self, g, *args):
        from program import memwall
        path, out = g.write(self.path("m.gguf")), self.path("logits")
        r = memwall("eval", path, "--ids", "-", "--logits", out, "--force", "--blas", "never", *args,
                    stdin=" ".join(str((7 * i * i + 3) % 200) for i in range(48)))
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        with open(out, "rb") as f:
            return f.read()

    def rms(self, want, got):
        a, b = array.array("f"), array.array("f")
        a.frombytes(want)
        b.frombytes(got)
        mean = sum(a) / len(a)
        return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum((x - mean) ** 2 for x in a))

    def test_keys_in_blocks(self):
        g = self.model()
        want = self.rows(g, "--exact", "--kv", "f32")
        for kv, bound in (("f16", 0.002), ("q8_0", 0.03), ("q4_0", 0.03 * 127 / 8 * 2 / 3)):
            got = self.rows(g, "--exact", "--kv", kv)
            self.assertGreater(self.rms(want, got), 0, kv)
            self.assertLessEqual(self.rms(want, got), bound, kv)
            self.assertTrue(got == self.rows(g, "--exact", "--kv", kv, "--chunk", "7"), kv)

    def test_the_plan_has_one_vector_per_position(self):
        import json
        from program import memwall
        path = self.model().write(self.path("m.gguf"))
        plan = json.loads(memwall("plan", path, "-c", "512", "--kv", "f16", "--json").stdout)
        self.assertEqual(512 * (64 + 32) * 2, plan["kv_global"] if "kv_global" in plan
                         else plan["rows"]["kv_global"])

    def test_weights_in_blocks(self):
        import test_family_types as types
        g = self.model()
        packed, decoded = copy.copy(g), copy.copy(g)
        packed.tensors, decoded.tensors = {}, {}
        for name, (dims, kind, raw) in g.tensors.items():
            packed.tensors[name] = decoded.tensors[name] = (dims, kind, raw)
            if len(dims) < 2 or "norm" in name:
                continue
            values = [x for x, in struct.iter_unpack("<f", raw)]
            blocks = [types.q8_0(values[i:i + 32]) for i in range(0, len(values), 32)]
            packed.tensors[name] = (dims, types.Q8_0, b"".join(b for b, _ in blocks))
            decoded.tensors[name] = (dims, 0, f32(v for _, x in blocks for v in x))
        want = self.rows(decoded, "--exact", "--kv", "f32")
        self.assertLessEqual(self.rms(want, self.rows(packed, "--exact", "--kv", "f32")), 2e-4)
        bits = self.rows(packed)
        self.assertLessEqual(self.rms(want, bits), 0.05)
        for args in (("--chunk", "1", "-t", "1"), ("--chunk", "7", "-t", "3"), ("--chunk", "512")):
            self.assertTrue(bits == self.rows(packed, *args), args)


if __name__ == "__main__":
    unittest.main(verbosity=2)
