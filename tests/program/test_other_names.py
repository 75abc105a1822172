#!/usr/bin/env python3
"""A model gives the same logits whatever converter wrote its keys and tensor names; a value that
decides and is missing is refused, or taken as the programs take it that made the file.

Most models are in MW_SHARED/conformance."""
import json
import math
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import ARR, BOOL, F32, I32, STR, U32  # noqa: E402
from model_case import ModelCase  # noqa: E402
from program import memwall, reference  # noqa: E402


class Keys(ModelCase):
    def test_gemma3_with_one_base_per_kind_of_layer(self):
        for swa in ("rope.local.freq_base", "rope.freq_base_local"):
            self.renamed("gemma3-tiny", [("rope.freq_base", "rope.global.freq_base"),
                                         ("rope.freq_base_swa", swa)], 40)

    def test_gemma3_with_a_group_for_the_text_model(self):
        self.renamed("gemma3-tiny", [(k, "text." + k) for k in (
            "attention.layer_norm_rms_epsilon", "attention.sliding_window",
            "feed_forward_length")] + [
            ("rope.freq_base", "text.rope.global.freq_base"),
            ("rope.freq_base_swa", "text.rope.local.freq_base")], 40)

    def test_gemma3_without_the_values_that_all_have(self):
        g = self.gguf("gemma3-tiny")
        eps = "gemma3.attention.layer_norm_rms_epsilon"
        g.keys[eps] = (F32, 1e-6)
        want = self.eval(g, 40)
        for key in (eps, "gemma3.rope.freq_base", "gemma3.rope.freq_base_swa",
                    "gemma3.attention.sliding_window_pattern"):
            g.keys.pop(key, None)
        self.same(want, self.eval(g, 40))

    def test_gemma3_of_published_sizes_has_its_scaling(self):
        """Ollama's converter leaves out that global layers of 4B, 12B and 27B are scaled."""
        g = self.gguf("gemma3-tiny")
        n, tensors = g.get("gemma3.block_count"), dict(g.tensors)
        for i in range(34):
            for name, t in tensors.items():
                if name.startswith(f"blk.{i % n}."):
                    g.tensors[name.replace(f"blk.{i % n}.", f"blk.{i}.")] = t
        g.keys["gemma3.block_count"] = (U32, 34)
        for key in list(g.keys):
            if "sliding_window_pattern" in key:
                del g.keys[key]
        want = self.eval(g, 40)
        del g.keys["gemma3.rope.scaling.type"], g.keys["gemma3.rope.scaling.factor"]
        self.differs(want, self.eval(g, 40))  # llama.cpp's file: there is no scaling
        del g.keys["gemma3.rope.freq_base"]
        self.same(want, self.eval(g, 40))
        g.keys["gemma3.block_count"] = (U32, 33)
        for name in [n for n in g.tensors if n.startswith("blk.33.")]:
            del g.tensors[name]
        without = self.eval(g, 40)
        g.keys["gemma3.rope.scaling.factor"] = (F32, 8.0)
        self.differs(without, self.eval(g, 40))

    def test_gemma4_with_a_local_base(self):
        self.renamed("gemma4-tiny-q4_0", [("rope.freq_base_swa", "rope.local.freq_base")], 40)

    def test_yarn_of_mistral3(self):
        """Temperature, slow and fast turns, and the two scales, as Ollama names them."""
        def one(g):
            g.keys["mistral3.rope.scaling.mscale"] = (F32, 1.0)
            g.keys["mistral3.rope.scaling.extrapolation_factor"] = (F32, 1.0)
        self.renamed("ministral3", [
            ("rope.scaling.yarn_beta_fast", "rope.scaling.beta_fast"),
            ("rope.scaling.yarn_beta_slow", "rope.scaling.beta_slow"),
            ("rope.scaling.yarn_log_multiplier", "rope.scaling.mscale_all_dim"),
            ("attention.temperature_scale", "rope.scaling_beta")], 80, one)

    def test_two_scales_of_yarn_are_both_used(self):
        g = self.gguf("ministral3")
        g.keys["mistral3.rope.scaling.mscale"] = (F32, 0.5)
        config = self.snapshot_with("ministral3", lambda c: c["rope_parameters"].update(mscale=0.5))
        want, got = self.eval(config, 60), self.eval(g, 60)
        self.assertLess(max(abs(a - b) for a, b in zip(want, got)), 1e-3)

    def test_numbers_that_a_converter_does_not_know_are_0(self):
        def zeros(g):
            for key, kind, value in (("rope.scaling.factor", F32, 0.0),
                                     ("rope.scaling.type", STR, ""),
                                     ("rope.scaling.yarn_beta_fast", F32, 0.0),
                                     ("rope.scaling.original_context_length", U32, 0),
                                     ("attention.sliding_window", U32, 0)):
                g.keys["llama." + key] = (kind, value)
            for key in ("key_length", "value_length"):
                if "llama.attention." + key not in g.keys:
                    g.keys["llama.attention." + key] = (U32, 0)
        self.renamed("llama-tiny", [], change=zeros)

    def test_linear_scaling_under_its_first_name(self):
        g = self.gguf("llama-tiny")
        plain = self.eval(g)
        g.keys["llama.rope.scaling.type"] = (STR, "linear")
        g.keys["llama.rope.scaling.factor"] = (F32, 4.0)
        want = self.eval(g)
        self.differs(plain, want)
        g.rename("llama.rope.scaling.factor", "llama.rope.scale_linear")
        del g.keys["llama.rope.scaling.type"]
        self.same(want, self.eval(g))

    def test_experts_without_a_width_have_that_of_their_tensors(self):
        g = self.gguf("qwen3moe")
        want = self.eval(g)
        del g.keys["qwen3moe.expert_feed_forward_length"]
        g.keys["qwen3moe.feed_forward_length"] = (U32, 0)
        self.same(want, self.eval(g))

    def test_weights_of_experts_that_are_not_normed(self):
        g = self.gguf("qwen3moe")
        plain = self.eval(g)
        want = self.eval(self.snapshot_with("qwen3moe", lambda c: c.update(norm_topk_prob=False)))
        self.differs(plain, want)
        for key in ("norm_top_k_prob", "expert_weights_norm"):
            g.keys["qwen3moe." + key] = (BOOL, False) if key[0] == "n" else (U32, 0)
            got = self.eval(g)
            self.assertLess(max(abs(a - b) for a, b in zip(want, got)), 1e-3)
            del g.keys["qwen3moe." + key]
        mixtral = self.gguf("mixtral")
        mixtral.keys["llama.norm_top_k_prob"] = (BOOL, False)
        self.refused(mixtral, "llama.norm_top_k_prob: is false")


class Yarn(ModelCase):
    """The magnitude of yarn follows from its factor; files may state it."""

    def yarn(self, name, **keys):
        g = self.gguf(name)
        arch = g.get("general.architecture")
        for key, value in (("type", (STR, "yarn")), ("factor", (F32, 8.0)),
                           ("original_context_length", (U32, 64))):
            g.keys[f"{arch}.rope.scaling.{key}"] = value
        for key, value in keys.items():
            g.keys[f"{arch}.rope.scaling.{key}"] = (F32, value)
        return g

    def test_the_stated_magnitude_may_be_that_of_the_rule(self):
        rule = 1 + 0.1 * math.log(8)
        for name in ("llama-tiny", "qwen2-tiny", "qwen3-tiny", "olmo3", "smollm3", "phi3-tiny"):
            with self.subTest(name=name):
                want = self.eval(self.yarn(name))
                for key in ("attn_factor", "yarn_attn_factor"):
                    self.same(want, self.eval(self.yarn(name, **{key: rule})), key)
                self.same(want, self.eval(self.yarn(name, yarn_attn_factor=1.0)))
                self.differs(want, self.eval(self.yarn(name, attn_factor=1.5)))
                self.refused(self.yarn(name, yarn_attn_factor=1.5), "yarn_attn_factor: is 1.5",
                             "1.20794")

    def test_with_two_scales_the_rule_is_their_quotient(self):
        g = self.gguf("ministral3")
        want = self.eval(g)
        # The second is the magnitude without the multiplier, which llama.cpp ignores here.
        for stated in (1.0, 1 + 0.1 * math.log(4)):
            g.keys["mistral3.rope.scaling.yarn_attn_factor"] = (F32, stated)
            self.same(want, self.eval(g), stated)
        g.keys["mistral3.rope.scaling.yarn_attn_factor"] = (F32, 1.2)
        self.refused(g, "yarn_attn_factor: is 1.2")
        g.keys["mistral3.rope.scaling.yarn_attn_factor"] = (F32, 1 + 0.1 * math.log(4))
        del g.keys["mistral3.rope.scaling.yarn_log_multiplier"]
        alone = self.eval(g)
        del g.keys["mistral3.rope.scaling.yarn_attn_factor"]
        self.same(self.eval(g), alone)

    def scaled(self, **more):
        """OLMo 3's snapshot with yarn, and with more fields of its scaling."""
        if os.path.isdir(self.path("s-olmo3")):
            shutil.rmtree(self.path("s-olmo3"))
        return self.eval(self.snapshot_with("olmo3", lambda c: [
            c.pop("rope_parameters", None),
            c.update(rope_theta=10000.0, rope_scaling={
                "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
                **more})]), 60)

    def test_fields_of_a_configuration(self):
        rule = 1 + 0.1 * math.log(8)
        want = self.scaled()
        self.same(want, self.scaled(attention_factor=rule))
        self.same(want, self.scaled(attention_factor=None))
        self.same(want, self.scaled(mscale=1.0))  # without mscale_all_dim, it is not used
        one = self.scaled(attention_factor=1.0)
        self.differs(want, one)
        self.same(one, self.scaled(mscale=0.7, mscale_all_dim=0.7))
        quotient = (1 + 0.1 * 0.5 * math.log(8)) / rule
        self.same(self.scaled(attention_factor=quotient),
                  self.scaled(mscale=0.5, mscale_all_dim=1.0))

    def test_a_magnitude_without_yarn_is_refused(self):
        g = self.gguf("llama-tiny")
        g.keys["llama.rope.scaling.yarn_attn_factor"] = (F32, 1.5)
        self.refused(g, "llama.rope.scaling.yarn_attn_factor: is 1.5")


class Architectures(ModelCase):
    """Files of other converters with names of their own for architecture and tensors."""

    def moved(self, g, new):
        old = g.get("general.architecture")
        g.keys = {(new + k[len(old):] if k.startswith(old + ".") else k): v
                  for k, v in g.keys.items()}
        g.keys["general.architecture"] = (STR, new)
        return g

    def rename_tensors(self, g, *pairs):
        found = 0
        for old in list(g.tensors):
            layer, dot, name = old.partition(".")[2].partition(".")
            for a, b in pairs:
                if dot and name == a:
                    g.rename_tensor(old, f"blk.{layer}.{b}")
                    found += 1
        self.assertGreater(found, 0)

    def test_gptoss(self):
        g = self.gguf("gptoss")
        want = self.eval(g, 40)
        self.moved(g, "gptoss")
        for key in ("gptoss.rope.scaling.type", "gptoss.expert_feed_forward_length"):
            del g.keys[key]
        self.rename_tensors(g, ("attn_output.weight", "attn_out.weight"),
                            ("attn_output.bias", "attn_out.bias"),
                            ("attn_sinks.weight", "attn_sinks"),
                            ("post_attention_norm.weight", "ffn_norm.weight"))
        g.keys["tokenizer.ggml.eos_token_ids"] = (ARR, (I32, [5, 6]))
        self.same(want, self.eval(g, 40))

    def test_gptoss_with_joined_tensors(self):
        """The first files join q, k and v, and rows of gate and up in turn."""
        g = self.moved(self.gguf("gptoss"), "gptoss")
        want = self.eval(g, 40)
        for i in range(g.get("gptoss.block_count")):
            a = f"blk.{i}."
            for kind in (".weight", ".bias"):
                parts = [g.tensors.pop(f"{a}attn_{x}{kind}") for x in "qkv"]
                rows = sum(p[0][-1] for p in parts)
                g.tensors[f"{a}attn_qkv{kind}"] = (
                    [*parts[0][0][:-1], rows], 0, b"".join(p[2] for p in parts))
                gate, up = (g.tensors.pop(f"{a}ffn_{x}_exps{kind}") for x in ("gate", "up"))
                step = 4 * (gate[0][0] if kind == ".weight" else 1)
                dims = list(gate[0])
                dims[1 if kind == ".weight" else 0] *= 2
                g.tensors[f"{a}ffn_gate_up_exps{kind}"] = (dims, 0, b"".join(
                    x[2][at:at + step] for at in range(0, len(gate[2]), step)
                    for x in (gate, up)))
        del g.keys["gptoss.expert_feed_forward_length"]
        self.same(want, self.eval(g, 40))

    def test_olmo3(self):
        g = self.gguf("olmo3")
        want = self.eval(g, 40)
        self.same(want, self.eval(self.moved(g, "olmo3"), 40))

    def test_lfm2(self):
        for name in ("lfm2", "lfm2moe"):
            with self.subTest(name=name):
                g = self.gguf(name)
                want = self.eval(g)
                g.rename_tensor("token_embd_norm.weight", "output_norm.weight")
                g.keys[name + ".vocab_size"] = (U32, g.tensors["token_embd.weight"][0][1])
                self.same(want, self.eval(g))

    def test_glm4moelite(self):
        """The first files of GLM-4.7-Flash: sizes of heads, and of what is stored, exchanged."""
        g = self.gguf("glm47flash")
        want = self.eval(g)
        heads = {x: g.get(f"deepseek2.attention.{x}_length_mla") for x in ("key", "value")}
        stored = {x: g.get(f"deepseek2.attention.{x}_length") for x in ("key", "value")}
        self.assertNotEqual(heads["key"], stored["key"])
        self.moved(g, "glm4moelite")
        for x in heads:
            g.keys[f"glm4moelite.attention.{x}_length"] = (U32, heads[x])
            g.keys[f"glm4moelite.attention.{x}_length_mla"] = (U32, stored[x])
        g.keys["glm4moelite.attention.head_count_kv"] = g.keys["glm4moelite.attention.head_count"]
        self.same(want, self.eval(g))

    def test_glm5next(self):
        """The first files of GLM-5.3-Flash; all of its layers with attention have index keys."""
        g = self.gguf("glm53flash")
        want = self.eval(g)
        self.moved(g, "glm5next")
        for key in ("types", "kpool_select_tail"):
            del g.keys["glm5next.attention.indexer." + key]
        self.same(want, self.eval(g))
        g = self.gguf("glm53flash")  # later ones
        self.rename_tensors(g, ("indexer_compressor_ape.weight", "indexer.kpool_ape.weight"),
                            ("indexer_compressor_gate.weight", "indexer.kpool_gate.weight"))
        g.keys["glm5-next.attention.indexer.index_share_mtp"] = (BOOL, True)
        self.same(want, self.eval(g))

    def test_errors_name_the_keys_of_the_file(self):
        g = self.moved(self.gguf("olmo3"), "olmo3")
        del g.keys["olmo3.embedding_length"]
        self.refused(g, "olmo3.embedding_length: the key is missing")
        g = self.moved(self.gguf("olmo3"), "olmo3")
        g.keys["olmo3.feed_forward_length"] = (U32, 64 * 1024)
        self.refused(g, "(olmo3.feed_forward_length)")
        g = self.gguf("gemma3-tiny")
        g.keys["gemma3.rope.global.freq_base"] = (F32, 0.5)
        del g.keys["gemma3.rope.freq_base"]
        self.refused(g, "gemma3.rope.global.freq_base", "is 0.5")

    def heads(self, name, n_draft=0):
        """One number of KV heads per layer, 0 where a layer has a delta net."""
        g = self.gguf(name)
        arch = g.get("general.architecture")
        want = self.eval(g, 40)
        n, kv = g.get(arch + ".block_count"), g.get(arch + ".attention.head_count_kv")
        g.keys[arch + ".attention.head_count_kv"] = (
            ARR, (U32, [0 if (i + 1) % 4 else kv for i in range(n)]))
        del g.keys[arch + ".full_attention_interval"]
        if arch != "qwen3next":
            g.keys[arch + ".ssm.v_head_reordered"] = (BOOL, True)
            g.keys[arch + ".rope.mrope_interleaved"] = (BOOL, True)
            sections = g.get(arch + ".rope.dimension_sections")[1][:3]
            g.keys[arch + ".rope.dimension_sections"] = (ARR, (I32, sections))
            g.keys[arch + ".mrope_sections"] = (ARR, (I32, sections))
        g.keys[arch + ".vision.block_count"] = (U32, 2)
        g.keys[arch + ".image_token_id"] = (U32, 7)
        for tower in ("v.blk.0.attn_q.weight", "mtp.fc.weight"):
            g.tensors[tower] = ([4], 0, bytes(16))
        self.rename_tensors(g, ("ssm_dt.bias", "ssm_dt"))
        self.same(want, self.eval(g, 40), name)
        return g

    def test_delta_nets_by_their_number_of_kv_heads(self):
        for name in ("qwen35", "qwen35moe", "qwen3next"):
            with self.subTest(name=name):
                self.heads(name)

    def test_a_layer_with_attention_needs_kv_heads(self):
        g = self.gguf("qwen35")
        n = g.get("qwen35.block_count")
        g.keys["qwen35.attention.head_count_kv"] = (ARR, (U32, [0] * n))
        self.refused(g, "attention.head_count_kv at byte", "is 0 for layer 3, which has attention")
        g = self.gguf("llama-tiny")
        n = g.get("llama.block_count")
        g.keys["llama.attention.head_count_kv"] = (ARR, (U32, [0] * n))
        self.refused(g, "llama.attention.head_count_kv", "is 0; expected 1 to 65535")

    def test_gemma4_with_the_first_names_of_its_norms(self):
        for name in ("gemma4-tiny", "gemma4-moe-tiny"):
            if not os.path.exists(reference(name + ".gguf")):
                self.skipTest(f"neither the tree nor MW_SHARED has {name}")
            g = self.gguf(name)
            want = self.eval(g, 40)
            self.rename_tensors(g, ("post_attention_norm.weight", "attn_post_norm.weight"),
                                ("ffn_norm.weight", "ffn_pre_norm.weight"),
                                ("post_ffw_norm.weight", "ffn_post_norm.weight"),
                                ("pre_ffw_norm_2.weight", "ffn_pre_norm_2.weight"),
                                ("post_ffw_norm_1.weight", "ffn_post_norm_1.weight"),
                                ("post_ffw_norm_2.weight", "ffn_post_norm_2.weight"),
                                ("ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"),
                                ("layer_output_scale.weight", "layer_scalar"))
            g.tensors["model.vision_tower.patch.weight"] = ([4], 0, bytes(16))
            self.same(want, self.eval(g, 40), name)

    def test_tokens_of_images_have_no_embedding(self):
        g = self.gguf("gemma3-tiny")
        want = self.eval(g)
        for key, more in (("tokens", "<image_soft_token>"), ("scores", 0.0), ("token_type", 4)):
            if "tokenizer.ggml." + key in g.keys:
                kind, values = g.get("tokenizer.ggml." + key)
                g.keys["tokenizer.ggml." + key] = (ARR, (kind, values + [more]))
        g.tensors["v.patch_embd.weight"] = ([4], 0, bytes(16))
        g.keys["gemma3.mm.tokens_per_image"] = (U32, 256)
        self.same(want, self.eval(g))
        n = g.tensors["token_embd.weight"][0][1]
        path = g.write(self.path("more.gguf"))
        r = memwall("inspect", path, "--json")
        self.assertEqual((0, n), (r.returncode, json.loads(r.stdout)["n_token"]), r.stderr)


class Missing(ModelCase):
    """A value that decides is never replaced by one that another program would not take."""

    def test_a_base_that_the_family_does_not_have(self):
        for name in ("gptoss", "ministral3", "smollm3"):
            with self.subTest(name=name):
                g = self.gguf(name)
                arch = g.get("general.architecture")
                del g.keys[arch + ".rope.freq_base"]
                self.refused(g, arch + ".rope.freq_base: the key is missing", "convert", "fetch")

    def test_a_window_that_the_family_always_has(self):
        for name in ("gptoss", "gemma4-tiny-q4_0"):
            with self.subTest(name=name):
                g = self.gguf(name)
                arch = g.get("general.architecture")
                del g.keys[arch + ".attention.sliding_window"]
                self.refused(g, arch + ".attention.sliding_window: the key is missing")

    def test_other_values_that_no_program_can_guess(self):
        for name, key in (("qwen35", "rope.dimension_count"),
                          ("qwen3next", "rope.dimension_count"),
                          ("ministral3", "rope.scaling.type"),
                          ("ministral3", "rope.scaling.factor"),
                          ("qwen2-yarn-tiny", "rope.scaling.type"),
                          ("gemma3-tiny", "rope.scaling.factor"),
                          ("granite", "residual_scale"), ("granite", "embedding_scale"),
                          ("granite", "logit_scale"), ("granite", "attention.scale"),
                          ("olmo3", "attention.sliding_window")):
            with self.subTest(name=name, key=key):
                g = self.gguf(name)
                arch = g.get("general.architecture")
                del g.keys[f"{arch}.{key}"]
                self.refused(g, f"{arch}.{key}: the key is missing")

    def test_an_unknown_name_of_a_missing_value(self):
        for name, old, new in (
                ("llama-tiny", "rope.freq_base", "rope.base"),
                ("llama-tiny", "rope.freq_base", "rope.freq_base.all_layers"),
                ("llama-tiny", "rope.freq_base", "rope_theta"),
                ("llama-tiny", "rope.freq_base", "rope.theta"),
                ("llama-tiny", "attention.head_count_kv", "num_key_value_heads"),
                ("gemma3-tiny", "attention.sliding_window", "attention.window_sliding_size"),
                ("gemma3-tiny", "attention.sliding_window", "sliding.window"),
                ("llama-tiny", "rope.scaling.factor", "rope.scaling.linear_factor"),
                ("gemma2-tiny", "final_logit_softcapping", "final_logit.softcapping.cap"),
                ("ministral3", "attention.temperature_scale", "temperature_scale"),
                ("gemma2-tiny", "attention.sliding_window", "attention.window_size"),
                ("gemma2-tiny", "attn_logit_softcapping", "attention.logit_softcapping"),
                ("gemma2-tiny", "attn_logit_softcapping", "attention.softcap"),
                ("gemma4-tiny-q4_0", "final_logit_softcapping", "final_softcap"),
                ("gemma4-tiny-q4_0", "attention.shared_kv_layers", "num_kv_shared_layers"),
                ("museglimmer", "final_logit_softcapping", "logits_soft_cap"),
                ("laguna", "attention.sliding_window", "attention.window_size"),
                ("laguna", "expert_weights_scale", "routed_scaling_factor"),
                ("laguna", "expert_weights_scale", "moe.weights_scaling"),
                ("nemotronh-moe", "expert_weights_scale", "routed_scaling_factor"),
                ("deepseek3", "expert_weights_scale", "expert_weight_scale"),
                ("deepseek3", "expert_weights_norm", "expert_weights_normalised"),
                ("deepseek3", "expert_group_used_count", "topk_group"),
                ("deepseek3", "rope.scaling.yarn_log_multiplier", "rope.scaling.log_multiplier"),
                ("glm53flash", "swiglu_clamp_exp", "swiglu_limit"),
                ("ling3", "kda.gate_lower_bound", "kda.lower_bound"),
                ("ling3", "expert_weights_scale", "text.routed_scaling_factor"),
                ("mixtral", "rope.freq_base", "rope.base_frequency"),
                ("mixtral", "rope.freq_base", "rotary.base"),
                ("qwen3moe", "rope.freq_base", "rope.freq.base_of_all")):
            with self.subTest(name=name, new=new):
                g = self.gguf(name)
                arch = g.get("general.architecture")
                if f"{arch}.{old}" not in g.keys:
                    g.keys[f"{arch}.{old}"] = (F32, 2.0)
                g.rename(f"{arch}.{old}", f"{arch}.{new}")
                self.refused(g, f"{arch}.{new}: the key is unknown",
                             f"may stand for {arch}.{old}, which is missing")

    def test_a_name_of_a_configuration_without_architecture(self):
        g = self.gguf("deepseek3")
        g.rename("deepseek2.expert_weights_scale", "routed_scaling_factor")
        self.refused(g, "routed_scaling_factor: the key is unknown",
                     "may stand for deepseek2.expert_weights_scale, which is missing")

    def test_values_that_llama_cpp_needs(self):
        for name, key in (("deepseek4", "expert_weights_scale"),
                          ("deepseek4", "swiglu_clamp_exp")):
            with self.subTest(name=name, key=key):
                g = self.gguf(name)
                del g.keys[f"{g.get('general.architecture')}.{key}"]
                self.refused(g, f".{key}: the key is missing")

    def test_unknown_keys_beside_the_known_one_are_ignored(self):
        def more(g):
            g.keys["llama.rope.freq_base.note"] = (F32, 1.0)
            g.keys["llama.something.else"] = (U32, 1)
        self.renamed("llama-tiny", [], change=more)


if __name__ == "__main__":
    unittest.main(verbosity=2)
