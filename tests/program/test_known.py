#!/usr/bin/env python3
"""memwall plan NAME plans published models without their files, as it plans the files."""
import functools
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, SRCDIR, TIMEOUT_S, MeasuredHome, environment, memwall  # noqa: E402

DATA = os.path.join(SRCDIR, "share", "known-models.json")
SYNTH = os.path.join(os.environ.get("MW_SHARED", ""), "tools", "synth.py")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


HOME = MeasuredHome()
unittest.addModuleCleanup(HOME.cleanup)


def run_plan(name, *args, home=HOME, **how):
    return subprocess.run([MEMWALL, "plan", name, "--json", *args], text=True,
                          timeout=TIMEOUT_S, capture_output=True, stdin=subprocess.DEVNULL,
                          env=environment(home.name), cwd=home.name, **how)


@functools.cache
def planned(name, *args):
    """The same plan is in several tables below."""
    return run_plan(name, *(args if "--memory" in args else ("--memory", "64M", *args)))


def plan(name, *args):
    r = planned(name, *args)
    assert r.returncode in (0, 3), r.stderr
    return json.loads(r.stdout)


def facts():
    with open(DATA) as f:
        return json.load(f)


class Suggestions(unittest.TestCase):
    """A name that is not known is answered with the names that contain its letters and digits."""

    def suggested(self, command, name):
        r = subprocess.run([MEMWALL, command, name], text=True, timeout=TIMEOUT_S,
                           capture_output=True, stdin=subprocess.DEVNULL,
                           env=environment(HOME.name), cwd=HOME.name)
        self.assertEqual(1, r.returncode, r.stderr)
        self.assertIn(f'no file or model is named "{name}"', r.stderr)
        lines = [line for line in r.stderr.splitlines() if "known to plan and doctor" in line]
        return lines[0].split("doctor: ")[1].split(", ") if lines else []

    def test_letters_and_digits_are_compared(self):
        for name in ("llama3", "llama-3", "LLAMA 3", "meta-llama/llama3:Q8_0"):
            names = self.suggested("plan", name)
            self.assertIn("Llama-3.2-1B", names, name)
            self.assertTrue(all(n.startswith("Llama-3") for n in names), names)

    def test_at_most_five_are_named(self):
        names = self.suggested("plan", "qwen3")
        self.assertEqual("...", names.pop())
        self.assertEqual(5, len(names))
        self.assertTrue(all(n.startswith("Qwen3") for n in names), names)

    def test_doctor_suggests_them_too(self):
        self.assertEqual(["Mistral-Small-3.1-24B", "Mistral-7B-v0.3"],
                         self.suggested("doctor", "mistral"))

    def test_nothing_is_suggested_without_a_match(self):
        self.assertEqual([], self.suggested("plan", "nothing-like-it"))
        self.assertEqual([], self.suggested("plan", "_ _"))


class Known(unittest.TestCase):
    def test_bytes_read_per_token(self):
        """Sums of published parameter counts by the bytes of their types, in units of 10^5.
        They include norms of 4 bytes, which are always in memory."""
        sums = {"gemma-4-E2B": (0.285987, 14069, 24360, 45601),
                "gemma-4-E4B": (0.560170, 28270, 49622, 92900),
                "gemma-4-12B": (0.769840, 69601, 126538, 238162),
                "gemma-4-31B": (1.331516, 176352, 326198, 613974)}
        for name, (norms, *expected) in sums.items():
            for label, units in zip(("Q4_0", "Q8_0", "BF16"), expected):
                with self.subTest(name=name, label=label):
                    p = plan(f"{name}:{label}")
                    self.assertAlmostEqual(units - 40 * norms, p["hot_bytes"] / 1e5, delta=1)
                    self.assertEqual(label, p["type"])

    def test_parameters(self):
        params = {"Llama-3.2-1B": 1235814400, "Llama-3.2-3B": 3212749824,
                  "Llama-3.1-8B": 8030261248, "Llama-3.1-70B": 70553706496,
                  "Qwen2.5-0.5B": 494032768, "Qwen2.5-1.5B": 1543714304,
                  "Qwen2.5-3B": 3085938688, "Qwen2.5-7B": 7615616512,
                  "Qwen2.5-14B": 14770033664, "Qwen2.5-32B": 32763876352,
                  "Qwen3-0.6B": 596049920, "Qwen3-1.7B": 1720574976, "Qwen3-4B": 4022468096,
                  "Qwen3-8B": 8190735360, "Qwen3-14B": 14768307200, "Qwen3-32B": 32762123264,
                  "gemma-2-2b": 2614341888, "gemma-2-9b": 9241705984,
                  "gemma-2-27b": 27227128320, "gemma-3-1b": 999885952,
                  "gemma-3-4b": 3880099328, "Phi-3.5-mini": 3821079552,
                  "Phi-4": 14659507200, "gemma-4-E2B": 4647449891, "gemma-4-E4B": 7518069034,
                  "gemma-4-12B": 11907350320, "gemma-4-26B-A4B": 25233141790,
                  "gemma-4-31B": 30697345340, "Qwen3-30B-A3B": 30532122624,
                  "Qwen3-235B-A22B": 235093634560, "Mixtral-8x7B": 46702792704,
                  "Mistral-Small-3.1-24B": 23572403200, "SmolLM3-3B": 3075098624,
                  "gemma-2b": 2506172416, "gemma-7b": 8537680896,
                  "Qwen3-Next-80B-A3B": 79674391296,
                  "Qwen3.8-Flash-Next": 176943899520,
                  "AFM-4.5B": 4619184640, "Command-R7B": 8028033024,
                  "Command-A-111B": 111057580032, "ERNIE-4.5-0.3B": 360748032,
                  "EXAONE-4.0-1.2B": 1279391488, "EXAONE-4.0-32B": 32003216384,
                  "Falcon-H1-0.5B": 521411104, "Falcon-H1-7B": 7585654880,
                  "Granite-3.3-2B": 2533539840, "Granite-3.3-8B": 8170864640,
                  "Hunyuan-1.8B": 1791080448, "Hunyuan-7B": 7504568320,
                  "Ministral-3-3B": 3429006336, "Ministral-3-8B": 8489553920,
                  "Mistral-7B-v0.3": 7248023552, "OLMo-2-1B": 1484916736,
                  "OLMo-3-7B": 7298011136, "Qwen3.5-4B": 4205751296,
                  "Qwen3.5-27B": 26895998464, "Qwen3.5-35B-A3B": 34660610688,
                  "Seed-OSS-36B": 36151104512,
                  # The sums of their tensors: only billions are published.
                  "GLM-4.7-Flash": 29943393920, "DeepSeek-V2-Lite": 15706484224,
                  "Moonlight-16B-A3B": 15960110208, "DeepSeek-V3": 671026419200,
                  "Nemotron-3-Nano-30B-A3B": 31577940288, "Nemotron-Nano-9B-v2": 8888227328,
                  "LFM2-8B-A1B": 8339930560, "LFM2-1.2B": 1170340608, "LFM2-350M": 354483968,
                  "Granite-4.0-H-Tiny": 6939037248, "Granite-4.0-H-Small": 32207337984,
                  "Granite-4.0-H-Micro": 3191396096, "Granite-3.1-1B-A400M": 1334628352,
                  "GLM-4.5-Air": 106852251264, "Kimi-Linear-48B-A3B": 49122681728,
                  "Ling-mini-2.0": 16255643392, "DeepSeek-V4-Flash": 284334567511,
                  "ERNIE-4.5-21B-A3B": 21825436160, "Hunyuan-A13B": 80393183232,
                  "Qwen1.5-MoE-A2.7B": 14315784192, "OLMoE-1B-7B": 6919161856,
                  "MiniMax-M2": 228689764864, "Nemotron-3-Super-120B-A12B": 120668707840,
                  "Laguna-S-2.1": 117561977600, "Ling-3.0-tiny": 7893392800,
                  "Ling-3.0-flash": 124414211552, "Granite-4.0-H-1B": 1461538368}
        for name, n in params.items():
            with self.subTest(name=name):
                self.assertEqual(n, plan(name)["n_param"])

    def test_published_sizes_of_keys_and_values(self):
        """Bytes per token, all layers together."""
        all_layers = {"Llama-3.1-8B": 128, "Qwen2.5-7B": 56, "gemma-2-9b": 336,
                      "Llama-3.2-1B": 32, "Llama-3.2-3B": 112, "Llama-3.1-70B": 320,
                      "Qwen2.5-0.5B": 12, "Qwen2.5-32B": 256, "Qwen3-4B": 144,
                      "gemma-2-27b": 368, "gemma-3-1b": 26, "gemma-3-27b": 496,
                      "Phi-3.5-mini": 384, "Phi-4": 200}
        for name, kib in all_layers.items():
            with self.subTest(name=name):
                kv = plan(name)["kv_token_bytes"]
                self.assertEqual(kib * KIB, kv["global"] + kv["sliding"])

    def test_only_published_windows_are_planned(self):
        """Layers with a window are those of Gemma 2 to 4, gpt-oss, DeepSeek V4, Muse Glimmer,
        Laguna, Mellum, Command, the larger EXAONE 4 and OLMo 3; all others grow with the
        context."""
        grows = {"Mistral-Small-3.1-24B": 160, "Mixtral-8x7B": 128, "SmolLM3-3B": 72,
                 "Qwen3-30B-A3B": 96, "Qwen3-235B-A22B": 188, "Phi-4": 200, "gemma-7b": 448}
        for m in facts()["models"]:
            has_window = m["name"].startswith(("gemma-2-", "gemma-3-", "gemma-4-", "gpt-oss",
                                               "DeepSeek-V4", "Muse-Glimmer", "Laguna",
                                               "Mellum", "Command-", "EXAONE-4.0-32B", "OLMo-3"))
            with self.subTest(name=m["name"]):
                kv = plan(m["name"])["kv_token_bytes"]
                self.assertEqual(has_window, kv["sliding"] > 0)
                if m["name"] in grows:
                    self.assertEqual(grows[m["name"]] * KIB, kv["global"])

    def test_latent_keys_and_recurrent_layers_take_little(self):
        """Bytes per token in F16: latent attention has 576 values in each layer, and layers with a
        state have none."""
        for name, size in {"GLM-4.7-Flash": 54144, "DeepSeek-V2-Lite": 31104,
                           "Moonlight-16B-A3B": 31104, "DeepSeek-V3": 70272,
                           "Nemotron-3-Nano-30B-A3B": 6144, "Nemotron-Nano-9B-v2": 16384,
                           "LFM2-8B-A1B": 12288, "LFM2-1.2B": 12288, "LFM2-350M": 12288,
                           "Granite-4.0-H-Tiny": 8192, "Granite-4.0-H-Small": 16384,
                           "Granite-3.1-1B-A400M": 49152, "GLM-4.5-Air": 188416,
                           "Kimi-Linear-48B-A3B": 8064, "Ling-mini-2.0": 40960,
                           "ERNIE-4.5-21B-A3B": 57344, "Hunyuan-A13B": 131072,
                           "Qwen1.5-MoE-A2.7B": 196608, "OLMoE-1B-7B": 131072,
                           "Nemotron-3-Super-120B-A12B": 8192, "Ling-3.0-tiny": 6912,
                           "Ling-3.0-flash": 8064, "Laguna-S-2.1": 49152,
                           "MiniMax-M2": 253952, "AFM-4.5B": 73728, "Command-R7B": 32768,
                           "ERNIE-4.5-0.3B": 18432, "EXAONE-4.0-1.2B": 61440,
                           "EXAONE-4.0-32B": 65536, "Falcon-H1-0.5B": 18432,
                           "Falcon-H1-7B": 45056, "Granite-3.3-2B": 81920,
                           "Hunyuan-1.8B": 65536, "Ministral-3-3B": 106496,
                           "Mistral-7B-v0.3": 131072, "OLMo-2-1B": 131072,
                           "OLMo-3-7B": 131072, "Qwen3.5-4B": 32768, "Qwen3.5-27B": 65536,
                           "Qwen3.5-35B-A3B": 20480, "Seed-OSS-36B": 262144}.items():
            with self.subTest(name=name):
                self.assertEqual(size, plan(name, "--kv", "f16")["kv_token_bytes"]["global"])

    def test_entries_state_what_decides_their_plan(self):
        """A field that an entry leaves out has the default of transformers' class, which need not
        be the value of the published model."""
        every = ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads",
                 "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings",
                 "tie_word_embeddings")
        experts = ("num_experts_per_tok", "moe_intermediate_size", "num_experts",
                   "norm_topk_prob")
        latent = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        routed = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
                  "n_shared_experts", "first_k_dense_replace", "norm_topk_prob")
        delta = ("use_sliding_window", "full_attention_interval", "linear_conv_kernel_dim",
                 "linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads",
                 "linear_num_value_heads")
        # Latent attention has sizes of heads in other fields, and DeepSeek V4 only experts.
        without = {"glm4_moe_lite": {"head_dim"}, "deepseek_v2": {"head_dim"},
                   "deepseek_v3": {"head_dim"}, "kimi_linear": {"head_dim"},
                   "glm5_next_text": {"head_dim"},
                   "deepseek_v4": {"intermediate_size"}}
        more = {"gemma": (), "llama": (), "smollm3": ("no_rope_layer_interval",),
                "gemma2": ("sliding_window",),
                "gemma3_text": ("sliding_window", "sliding_window_pattern"),
                "gemma4_text": ("sliding_window", "sliding_window_pattern", "global_head_dim",
                                "num_kv_shared_layers", "hidden_size_per_layer_input",
                                "use_double_wide_mlp", "attention_k_eq_v", "enable_moe_block",
                                "num_global_key_value_heads"),
                "gpt_oss": ("sliding_window", "num_local_experts", "num_experts_per_tok"),
                "mistral": ("sliding_window",), "phi3": ("sliding_window",),
                "ministral3": ("sliding_window", "rope_parameters"),
                "arcee": ("hidden_act", "rope_scaling"), "ernie4_5": (), "olmo2": (),
                "olmo3": ("sliding_window", "layer_types"),
                "cohere2": ("sliding_window", "sliding_window_pattern", "logit_scale"),
                "exaone4": ("sliding_window", "layer_types"),
                "falcon_h1": ("mamba_n_heads", "mamba_d_ssm", "mamba_d_head", "mamba_d_state",
                              "mamba_n_groups", "mamba_d_conv", "mamba_rms_norm"),
                "granite": ("embedding_multiplier", "attention_multiplier",
                            "residual_multiplier", "logits_scaling"),
                "hunyuan_v1_dense": ("rope_scaling",),
                "seed_oss": ("attention_bias", "attention_out_bias", "mlp_bias"),
                "qwen3_5_text": delta,
                "qwen3_5_moe_text": ("shared_expert_intermediate_size", *delta, *experts),
                "mixtral": ("sliding_window", "num_local_experts", "num_experts_per_tok"),
                "qwen2": ("use_sliding_window",), "qwen3": ("use_sliding_window",),
                "qwen3_moe": ("use_sliding_window", *experts),
                "qwen4_exp_text": ("use_sliding_window", "full_attention_interval",
                                   "linear_conv_kernel_dim", "linear_key_head_dim",
                                   "linear_value_head_dim", "linear_num_key_heads",
                                   "linear_num_value_heads", "output_gate_type",
                                   "shared_expert_intermediate_size", "hc_count", "hc_lowrank",
                                   "indexer_n_heads", "indexer_head_dim", "indexer_budget",
                                   "indexer_compress_ratio", "ple_layer_ids", "ple_embed_dim",
                                   "ple_conv_kernel_size", "ngram_size", "heads_per_ngram",
                                   "ngram_vocab_size_base", "eos_token_id", *experts),
                "qwen2_moe": ("use_sliding_window", "shared_expert_intermediate_size", *experts),
                "glm4_moe_lite": ("q_lora_rank", *latent, *routed),
                "deepseek_v2": ("q_lora_rank", "rope_scaling", *latent, *routed),
                "deepseek_v3": ("q_lora_rank", *latent, *routed),
                "glm4_moe": ("head_dim", "partial_rotary_factor", "use_qk_norm", *routed),
                "nemotron_h": ("hybrid_override_pattern", "mamba_num_heads", "mamba_head_dim",
                               "n_groups", "ssm_state_size", "conv_kernel"),
                "lfm2": ("layer_types", "conv_L_cache", "block_auto_adjust_ff_dim"),
                "lfm2_moe": ("layer_types", "conv_L_cache", "num_dense_layers", *experts),
                "granitemoehybrid": ("layer_types", "mamba_n_heads", "mamba_d_head",
                                     "mamba_d_state", "mamba_n_groups", "num_local_experts",
                                     "num_experts_per_tok", "shared_intermediate_size"),
                "granitemoe": ("num_local_experts", "num_experts_per_tok"),
                "muse_glimmer_text": ("head_dim", "sliding_window", "layer_types",
                                      "qk_scale_factor", "output_multiplier",
                                      "final_logit_softcapping", "rope_parameters"),
                "laguna": ("head_dim", "sliding_window", "layer_types", "mlp_layer_types", "gating",
                           "num_attention_heads_per_layer", "moe_routed_scaling_factor",
                           "shared_expert_intermediate_size", "rope_parameters", *experts[:3]),
                "mellum": ("head_dim", "sliding_window", "layer_types", "mlp_layer_types",
                           "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                           "rope_parameters"),
                "glm5_next_text": ("q_lora_rank", "linear_attn_config", "layer_types", "hc_mult",
                                   "index_n_heads", "index_head_dim", "index_topk", "index_kpool",
                                   *latent, *routed),
                "kimi_linear": ("linear_attn_config", "num_experts", "num_experts_per_token",
                                "moe_intermediate_size", "num_shared_experts", *latent),
                "bailing_moe_v2": ("num_shared_experts", "n_group", "topk_group",
                                   "first_k_dense_replace", *experts),
                "bailing_hybrid": ("layer_group_size", "short_conv_kernel_size", "q_lora_rank",
                                   "num_shared_experts", "first_k_dense_replace",
                                   "moe_shared_expert_intermediate_size", "n_group",
                                   "topk_group", *latent, *experts),
                "deepseek_v4": ("q_lora_rank", "o_lora_rank", "o_groups", "sliding_window",
                                "compress_ratios", "index_n_heads", "index_head_dim", "index_topk",
                                "hc_mult", "n_routed_experts", "num_experts_per_tok",
                                "moe_intermediate_size", "n_shared_experts", "num_hash_layers"),
                "ernie4_5_moe": ("moe_k", "moe_num_experts", "moe_num_shared_experts",
                                 "moe_intermediate_size", "moe_layer_start_index"),
                "hunyuan_v1_moe": ("moe_topk", "num_experts", "num_shared_expert",
                                   "moe_intermediate_size"),
                "olmoe": ("num_experts", "num_experts_per_tok", "norm_topk_prob"),
                "minimax_m2": ("num_local_experts", "num_experts_per_tok", "rotary_dim"),
                "qwen3_next": ("use_sliding_window", "full_attention_interval",
                               "linear_conv_kernel_dim", "linear_key_head_dim",
                               "linear_value_head_dim", "linear_num_key_heads",
                               "linear_num_value_heads", "shared_expert_intermediate_size",
                               *experts)}
        for m in facts()["models"]:
            config = m["config"]
            with self.subTest(name=m["name"]):
                kind = config["model_type"]
                lacks = [f for f in every + more[kind]
                         if f not in config and f not in without.get(kind, ())]
                self.assertEqual([], lacks)

    def test_published_files(self):
        """Bytes of the files of Qwen3.8-Flash-Next.  Their makers give some layers other types
        than most, so only the plain ones fit closely."""
        published = {"UD-IQ1_S": 72546461344, "UD-IQ1_M": 74538755776, "UD-Q2_K_XL": 78869128864,
                     "UD-IQ3_XXS": 81961823936, "UD-Q3_K_XL": 89986353824,
                     "UD-IQ4_XS": 93682584224, "UD-Q4_K_XL": 111334654784,
                     "UD-Q5_K_XL": 158286406650, "UD-Q6_K_XL": 169165382688,
                     "Q8_0": 188225033248, "BF16": 354029930496}
        for label, size in published.items():
            with self.subTest(label=label):
                p = plan("Qwen3.8-Flash-Next:" + label)
                exact = label in ("Q8_0", "BF16", "UD-IQ1_M")
                self.assertAlmostEqual(1, p["file_bytes"] / size, delta=2e-4 if exact else 0.04)
        r = run_plan("Qwen3.8-Flash-Next:UD-Q9")
        self.assertIn("UD-Q4_K_XL", r.stderr)

    def test_keys_and_values_of_gemma_4(self):
        growing = {"gemma-4-E2B": (6144, 3264, 1728), "gemma-4-E4B": (16384, 8704, 4608),
                   "gemma-4-12B": (16384, 8704, 4608), "gemma-4-26B-A4B": (20480, 10880, 5760),
                   "gemma-4-31B": (81920, 43520, 23040)}
        for name, expected in growing.items():
            for kv, size in zip(("f16", "q8_0", "q4_0"), expected):
                with self.subTest(name=name, kv=kv):
                    self.assertEqual(size, plan(name, "--kv", kv)["kv_token_bytes"]["global"])

    def test_names(self):
        for name in ("GEMMA-4-e2b:q4_0", "google/gemma-4-E2B-it:Q4_0", "gemma-4-E2B"):
            p = plan(name)
            self.assertEqual(["gemma-4-E2B", "Q4_0"], [p["model"], p["type"]])
        self.assertEqual("Q4_K", plan("Llama-3.1-8B-Instruct:Q4_K_M")["type"])
        r = run_plan("gemma-4-E2B:IQ9_Z")
        self.assertEqual(2, r.returncode)
        self.assertIn("is not one of BF16, F16,", r.stderr)
        r = run_plan("gemma-4-E3B")
        self.assertEqual(2, r.returncode)
        self.assertRegex(r.stderr, 'did you mean "gemma-4-E[24]B"')
        r = run_plan("no-such-thing")
        self.assertEqual(1, r.returncode)
        self.assertIn("no-such-thing", r.stderr)

    def test_every_model_is_planned_or_not_supported_yet(self):
        for m in facts()["models"]:
            r = planned(m["name"])
            with self.subTest(name=m["name"]):
                if r.returncode == 1:
                    self.assertIn("is not supported", r.stderr)
                    self.assertIn(m["config"]["model_type"], ("qwen3_moe", "gpt_oss"))
                else:
                    self.assertGreater(json.loads(r.stdout)["hot_bytes"], 5e7)

    def test_every_family_of_the_readme_is_known(self):
        """Each row of its table has a model, and each architecture of GGUF files."""
        with open(os.path.join(SRCDIR, "README.md"), encoding="utf-8") as f:
            text = f.read().split("| family | GGUF architecture |")[1].split("\n\n")[0]
        rows = [row.split(" | ") for row in text.splitlines()[2:]]
        self.assertGreater(len(rows), 40)
        types = {m["config"]["model_type"].removesuffix("_text") for m in facts()["models"]}
        archs = {plan(m["name"])["arch"] for m in facts()["models"]}
        archs.add("nemotron_h_moe")  # the snapshots of both have one name
        for family, arch, model_type, *_ in rows:
            with self.subTest(family=family):
                self.assertEqual(set(), set(arch.strip("`").split("`, `")) - archs)
                words = set(model_type.strip("`").replace("` and their `_text", "").split("`, `"))
                self.assertTrue(words & types, words)

    def test_a_known_model_is_only_planned(self):
        r = memwall("run", "-m", "gemma-4-E2B:Q4_0", "hello")
        self.assertEqual(1, r.returncode)
        self.assertIn("gemma-4-E2B", r.stderr)

    def test_a_damaged_data_file_is_reported(self):
        with tempfile.TemporaryDirectory() as top:
            os.mkdir(os.path.join(top, "share"))
            program = os.path.join(top, "memwall")
            with open(MEMWALL, "rb") as a, open(program, "wb") as b:
                b.write(a.read())
            os.chmod(program, 0o755)
            path = os.path.join(top, "share", "known-models.json")
            good = facts()
            for change, word in ((dict(version=2), "version"), (dict(types=["Q9"]), "types"),
                                 (dict(tokenizers={}), "tokenizer"),
                                 (dict(models=[{"name": "x"}]), "models")):
                with open(path, "w") as f:
                    json.dump(good | change, f)
                r = run_plan("Phi-4", executable=program)
                self.assertEqual(1, r.returncode)
                self.assertIn(path, r.stderr)
                self.assertIn(word, r.stderr)
            with open(path, "w") as f:
                f.write("{")
            self.assertIn(path, run_plan("Phi-4", executable=program).stderr)


@unittest.skipUnless(os.path.exists(SYNTH), "MW_SHARED has no tools/synth.py")
class AsFiles(unittest.TestCase):
    """Headers of files with real shapes, written by a program that knows nothing of memwall."""

    @classmethod
    def setUpClass(cls):
        cls.home = MeasuredHome(gives=False)
        cls.addClassCleanup(cls.home.cleanup)
        sys.path.insert(0, os.path.dirname(SYNTH))
        spec = importlib.util.spec_from_file_location("synth", SYNTH)
        cls.synth = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.synth)
        cls.vocabs = {}

    def write_header(self, path, shape, label):
        """The file of the right size, with a header and no weights."""
        synth = self.synth
        s = dict(synth.SHAPES[shape], name=shape)
        s["layers_real"] = s["layers"]
        tensors = synth.gguf_plan(s, label, False)
        key = s["family"], s["vocab"]
        if key not in self.vocabs:
            tokenizer = synth.tokenizer_for(s, None)
            self.vocabs[key] = synth.gguf_vocab(s, tokenizer) if tokenizer else None

        class Holes:
            """Writes the header and tables of factors; all weights are holes."""

            def __init__(self, out, total, quiet):
                self.f, self.total = open(out, "wb"), total

            def write(self, data):
                if isinstance(data, bytes):
                    self.f.write(data)
                elif data.fill[0] == "values":
                    self.f.write(struct.pack(f"<{data.count}f", *data.fill[1]))
                else:
                    self.f.seek(synth.size_of(data), os.SEEK_CUR)

            def pad(self, align):
                self.f.seek(-self.f.tell() % align, os.SEEK_CUR)

            def close(self):
                self.f.truncate(self.total)
                self.f.close()

        class Tensors:
            seed = 1

            def pieces(self, t):
                return [t]

            permuted = pieces

        synth.Writer = Holes
        vocab = self.vocabs[key] or synth.placeholder_gguf(s["vocab"])
        synth.write_gguf(path, s, label, tensors, vocab, Tensors(), True)
        return self.vocabs[key] is not None

    def plans(self, names, *args):
        """Plans with the same limits.  Rates that were measured beside a load would be measured
        again by one of them, and the first trusted ones decide the form of the weights."""
        for name in names:
            run_plan(name, *args, home=self.home)
            self.home.trust()
        return [json.loads(run_plan(name, *args, home=self.home).stdout) for name in names]

    def test_the_plan_is_that_of_the_file(self):
        cases = [("gemma-4-E2B", ("Q4_0", "Q8_0")), ("gemma-4-26B-A4B", ("Q4_K",)),
                 ("llama-3.1-8B", ("Q4_K", "BF16")), ("llama-3.2-1B", ("Q6_K",)),
                 ("qwen2.5-7B", ("Q4_K",)), ("gemma-2-9B", ("Q4_K",)),
                 ("phi-3.5-mini", ("Q4_K", "Q8_0"))]
        for shape, labels in cases:
            for label in labels:
                with self.subTest(shape=shape, label=label), \
                        tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "model.gguf")
                    has_vocab = self.write_header(path, shape, label)
                    # Without --chunk, it follows from measured rates of disk and products.
                    # Memory in use by others would lower the budget.
                    args = ("--memory", "3G", "--what-if", "RAM=16G,DISK=1G/s", "--chunk", "256")
                    self.same(*self.plans((f"{shape}:{label}", path), *args), has_vocab)

    def same(self, a, b, has_vocab):
        for key in ("arch", "type", "n_layer", "hot_bytes", "ctx", "chunk", "n_slot", "fits",
                    "kv_token_bytes"):
            self.assertEqual(a[key], b[key], key)
        for row in a["rows"]:
            # Names and keys of the header are in "program", texts of tokens in "tokenizer".
            room = MIB // 4 if row == "program" else 64 * KIB if row == "tokenizer" else 0
            if row in ("pinned", "reserve"):
                room = MIB // 2
            if has_vocab or row not in ("tokenizer", "pinned", "reserve"):
                self.assertAlmostEqual(a["rows"][row], b["rows"][row], delta=room, msg=row)


if __name__ == "__main__":
    unittest.main(verbosity=2)
