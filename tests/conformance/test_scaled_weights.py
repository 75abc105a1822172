#!/usr/bin/env python3
"""Weights with scales in tensors of their own, FP8 and NVFP4, as quantisers publish them: they are
the products of weights and scales, and give the same bits with any chunk, threads and budget."""
import array
import json
import math
import os
import random
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import snapshot_gguf  # noqa: E402
from gguf_edit import Gguf, f32  # noqa: E402
from program import memwall  # noqa: E402
from same_values import SameValues  # noqa: E402

VOCAB, EMBD, FF, LAYERS = 291, 192, 320, 2
NVFP4 = 40
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E2M1 += [-v for v in E2M1]


def e4m3(code):
    exponent, fraction = code >> 3 & 15, code & 7
    value = fraction * 2.0 ** -9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
    return -value if code & 128 else value


E4M3 = [e4m3(code) for code in range(256)]


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)


# --- models ---

CONFIG = {"vocab_size": VOCAB, "hidden_size": EMBD, "intermediate_size": FF,
          "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4,
          "rms_norm_eps": 1e-6, "max_position_embeddings": 512, "tie_word_embeddings": False,
          "hidden_act": "silu", "rope_parameters": {"rope_theta": 1e4}, "rope_theta": 1e4}
LLAMA = {**CONFIG, "model_type": "llama", "architectures": ["LlamaForCausalLM"],
         "num_key_value_heads": 2}
QWEN = {**CONFIG, "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"],
        "num_key_value_heads": 2, "head_dim": 48, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 64, "norm_topk_prob": True, "decoder_sparse_step": 1,
        "mlp_only_layers": []}
DEEPSEEK = {**CONFIG, "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"],
            "kv_lora_rank": 64, "q_lora_rank": 128, "qk_nope_head_dim": 48, "qk_rope_head_dim": 16,
            "v_head_dim": 48, "n_routed_experts": 4, "n_shared_experts": 1, "n_group": 2,
            "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
            "first_k_dense_replace": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True,
            "scoring_func": "sigmoid", "topk_method": "noaux_tc"}


def feed_forward(prefix, n_ff):
    return {prefix + "gate_proj": (n_ff, EMBD), prefix + "up_proj": (n_ff, EMBD),
            prefix + "down_proj": (EMBD, n_ff)}


def shapes(c, layer):
    """Shapes of the matrices of a layer that quantisers change, and of its other tensors."""
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    others = {"input_layernorm": (EMBD,), "post_attention_layernorm": (EMBD,)}
    if "kv_lora_rank" in c:
        nope, rope, v = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        rank, q_rank = c["kv_lora_rank"], c["q_lora_rank"]
        some = {"q_a_proj": (q_rank, EMBD), "q_b_proj": (heads * (nope + rope), q_rank),
                "kv_a_proj_with_mqa": (rank + rope, EMBD), "kv_b_proj": (heads * (nope + v), rank),
                "o_proj": (EMBD, heads * v)}
        others |= {"self_attn.q_a_layernorm": (q_rank,), "self_attn.kv_a_layernorm": (rank,)}
    else:
        dim = EMBD // heads
        some = {"q_proj": (heads * dim, EMBD), "k_proj": (kv * dim, EMBD),
                "v_proj": (kv * dim, EMBD), "o_proj": (EMBD, heads * dim)}
    some = {"self_attn." + name: shape for name, shape in some.items()}
    n = c.get("num_experts") or c.get("n_routed_experts") or 0
    if n == 0 or layer < c.get("first_k_dense_replace", 0):
        return some | feed_forward("mlp.", FF), others
    others["mlp.gate"] = (n, EMBD)
    for i in range(n):
        some |= feed_forward("mlp.experts.%d." % i, c["moe_intermediate_size"])
    if "n_shared_experts" in c:
        some |= feed_forward("mlp.shared_experts.", c["moe_intermediate_size"])
        others["mlp.gate.e_score_correction_bias"] = (n,)
    else:
        others |= {"self_attn.q_norm": (c["head_dim"],), "self_attn.k_norm": (c["head_dim"],)}
    return some, others


# --- how matrices are stored: tensors as (dtype, shape, bytes), and the values of the weights ---

def codes(r, n):
    return bytes(b & 0xbf for b in r.randbytes(n))  # below 2


def fp8(r, n_row, n_k, rows, cols):
    """Returns FP8 weights, their scales, and their values."""
    w, wide = codes(r, n_row * n_k), -(-n_k // cols)
    scales = [to_f32(r.uniform(0.5, 1.5) / math.sqrt(n_k)) for _ in range(-(-n_row // rows) * wide)]
    values = array.array("f", (E4M3[w[i * n_k + k]] * scales[i // rows * wide + k // cols]
                               for i in range(n_row) for k in range(n_k)))
    return ("F8_E4M3", (n_row, n_k), w), scales, values


def fp8_blocks(r, n_row, n_k):
    w, scales, values = fp8(r, n_row, n_k, 128, 128)
    return {".weight": w, ".weight_scale_inv": ("F32", (-(-n_row // 128), -(-n_k // 128)),
                                                f32(scales))}, values


def fp8_rows(r, n_row, n_k):
    w, scales, _ = fp8(r, n_row, n_k, 1, n_k)
    raw = bf16(scales)
    scales = [to_f32(struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0]) for i in range(0, len(raw), 2)]
    values = array.array("f", (E4M3[w[2][i * n_k + k]] * scales[i] for i in range(n_row)
                               for k in range(n_k)))
    return {".weight": w, ".weight_scale": ("BF16", (n_row, 1), raw)}, values


def fp8_whole(r, n_row, n_k):
    w, scales, values = fp8(r, n_row, n_k, n_row, n_k)
    return {".weight": w, ".weight_scale": ("F32", (), f32(scales)),
            ".input_scale": ("F32", (), f32([0.5]))}, values


def nvfp4(r, n_row, n_k):
    """Returns pairs of E2M1 numbers, scales of 16 of them, a factor, and the values."""
    pairs, groups = r.randbytes(n_row * n_k // 2), n_row * n_k // 16
    scales = bytes(r.randrange(0x20, 0x48) for _ in range(groups))
    factor = to_f32(r.uniform(0.1, 0.3) / math.sqrt(n_k))
    values = array.array("f", (E2M1[pairs[i // 2] >> 4 * (i % 2) & 15] * E4M3[scales[i // 16]]
                               * factor for i in range(n_row * n_k)))
    return pairs, scales, factor, values


def nvfp4_modelopt(r, n_row, n_k):
    pairs, scales, factor, values = nvfp4(r, n_row, n_k)
    return {".weight": ("U8", (n_row, n_k // 2), pairs),
            ".weight_scale": ("F8_E4M3", (n_row, n_k // 16), scales),
            ".weight_scale_2": ("F32", (), f32([factor])),
            ".input_scale": ("F32", (), f32([0.5]))}, values


def nvfp4_compressed(r, n_row, n_k):
    pairs, scales, factor, values = nvfp4(r, n_row, n_k)
    return {".weight_packed": ("U8", (n_row, n_k // 2), pairs),
            ".weight_scale": ("F8_E4M3", (n_row, n_k // 16), scales),
            ".weight_global_scale": ("F32", (1,), f32([1 / factor])),
            ".input_global_scale": ("F32", (1,), f32([0.5]))}, values


FORMS = {
    "fp8_blocks": (fp8_blocks, {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "fp8_rows": (fp8_rows, {"quant_method": "compressed-tensors", "format": "float-quantized"}),
    "fp8_whole": (fp8_whole, {"quant_method": "modelopt", "quant_algo": "FP8"}),
    "nvfp4": (nvfp4_modelopt, {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    "nvfp4_packed": (nvfp4_compressed, {"quant_method": "compressed-tensors",
                                        "format": "nvfp4-pack-quantized"}),
}


def write(path, config, tensors):
    os.mkdir(path)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)
    head, data = {}, bytearray()
    for name, (dtype, shape, raw) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(shape),
                      "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return path


def plain(r, shape, mean=0.0):
    n = math.prod(shape)
    return "BF16", shape, bf16(r.gauss(mean, 1 / math.sqrt(shape[-1])) for _ in range(n))


def models(config, form, keeps=()):
    """Returns the tensors of a quantised model, and of one with the values of its weights."""
    r = random.Random(config["model_type"])
    quantised = {"model.embed_tokens.weight": plain(r, (VOCAB, EMBD)),
                 "model.norm.weight": plain(r, (EMBD,), 1),
                 "lm_head.weight": plain(r, (VOCAB, EMBD))}
    decoded = dict(quantised)
    for layer in range(LAYERS):
        some, others = shapes(config, layer)
        for name, shape in others.items():
            full = "model.layers.%d.%s" % (layer, name)
            full += "" if name.endswith("bias") else ".weight"
            quantised[full] = decoded[full] = plain(r, shape, 1.0 if "norm" in name else 0.0)
        for name, shape in some.items():
            full = "model.layers.%d.%s" % (layer, name)
            if name.endswith(keeps):
                quantised[full + ".weight"] = decoded[full + ".weight"] = plain(r, shape)
                continue
            parts, values = form(r, *shape)
            quantised |= {full + tail: part for tail, part in parts.items()}
            decoded[full + ".weight"] = ("F32", shape, f32(values))
    return quantised, decoded


class ScaledWeights(SameValues):
    def check(self, config, name, keeps=("no_proj",)):
        form, method = FORMS[name]
        quantised, decoded = models(config, form, keeps)
        model = write(self.path("model"), {**config, "quantization_config": method}, quantised)
        self.has_the_values_of(write(self.path("floats"), config, decoded), model)
        self.has_the_same_bits(model)

    def test_nvfp4_in_gguf_files_with_factors(self):
        """A matrix may have a factor, and each expert one of its own."""
        r = random.Random(5)
        base = {**QWEN, "quantization_config": None}
        tensors, _ = models(QWEN, lambda r, *shape: ({".weight": plain(r, shape)}, []))
        wide = write(self.path("wide"), {k: v for k, v in base.items() if v is not None}, tensors)
        made, factors = {}, {}

        def pack(name, shape, values):
            if len(shape) < 2 or "_proj" in name or not name.startswith("blk.") \
                    or "norm" in name or "ffn_gate_inp" in name:
                return snapshot_gguf.as_f32(name, shape, values)
            if name not in made:
                n = shape[0] if len(shape) == 3 else 1
                blocks = b"".join(bytes(r.randrange(0x20, 0x40) for _ in range(4)) + r.randbytes(32)
                                  for _ in range(math.prod(shape) // 64))
                made[name], factors[name] = blocks, [to_f32(r.uniform(0.01, 0.02))
                                                     for _ in range(n)]
            return NVFP4, made[name]

        def unpack(name, shape, values):
            kind, raw = pack(name, shape, values)
            if kind != NVFP4:
                return kind, raw
            of, out = factors[name], array.array("f")
            each = math.prod(shape) // len(of)
            for at in range(0, len(raw), 36):
                factor = of[len(out) // each]
                for g in range(4):
                    q = raw[at + 4 + 8 * g:at + 12 + 8 * g]
                    out.extend(E2M1[n] * E4M3[raw[at + g]] * factor
                               for n in [b & 15 for b in q] + [b >> 4 for b in q])
            return snapshot_gguf.as_f32(name, shape, out)

        blocks = snapshot_gguf.convert(wide, self.path("blocks.gguf"), pack)
        decoded = snapshot_gguf.convert(wide, self.path("floats.gguf"), unpack)
        g = Gguf(blocks)
        for name, of in factors.items():
            g.tensors[name.replace(".weight", ".scale")] = ([len(of)], 0, f32(of))
            g.tensors[name.replace(".weight", ".input_scale")] = ([1], 0, f32([0.5]))
        model = g.write(self.path("model.gguf"))
        self.has_the_values_of(decoded, model)
        self.has_the_same_bits(model)

    def error(self, change, config=LLAMA, name="fp8_blocks"):
        tensors, _ = models(config, FORMS[name][0])
        folder = self.path("model%d" % len(os.listdir(self.folder)))
        change(tensors)
        model = write(folder, {**config, "quantization_config": FORMS[name][1]}, tensors)
        r = memwall("eval", model, "--ids", "-", "--logits", os.devnull, "--force", stdin="1")
        self.assertNotEqual(0, r.returncode)
        self.assertEqual(1, r.stderr.count("\n"), r.stderr)
        return r.stderr

    def test_scales_of_other_shapes_and_types_are_refused(self):
        q = "model.layers.1.self_attn.q_proj.weight"
        for scales, says in (
                (None, "model.layers.1.self_attn.q_proj.weight: the scales of these weights are missing"),
                (("F32", (3, 2), f32([1.0] * 6)), "its shape is 2 x 3, but the weights have 192 rows"),
                (("F32", (191,), f32([1.0] * 191)), "its shape is 191 x 1"),
                (("I32", (2, 2), bytes(16)), "its type is I32"),
                (("F32", (2, 2), f32([1.0, 2.0, math.nan, 1.0])), "is nan; the file is damaged")):
            def change(tensors, scales=scales):
                tensors[q + "_scale_inv"] = scales
                if scales is None:
                    del tensors[q + "_scale_inv"]
            with self.subTest(says):
                self.assertIn(says, self.error(change))

    def test_groups_of_other_shapes_are_refused(self):
        q = "model.layers.1.self_attn.q_proj.weight"
        for shape in (EMBD, EMBD // 32), (EMBD // 2, EMBD // 16):
            def change(tensors, shape=shape):
                tensors[q + "_scale"] = ("F8_E4M3", shape, bytes(math.prod(shape)))
            with self.subTest(shape):
                self.assertIn("scales of type F8_E4M3 for 192 rows of 96 bytes",
                              self.error(change, name="nvfp4"))

    def test_tables_have_no_scales(self):
        def change(tensors):
            raw = codes(random.Random(1), VOCAB * EMBD)
            tensors["model.embed_tokens.weight"] = ("F8_E4M3", (VOCAB, EMBD), raw)
            tensors["model.embed_tokens.weight_scale"] = ("F32", (), f32([0.1]))
        self.assertIn("model.embed_tokens.weight: scales of a tensor that is used like this",
                      self.error(change))

    def test_experts_of_a_layer_have_scales_alike(self):
        def change(tensors):
            name = "model.layers.0.mlp.experts.2.up_proj.weight_scale_inv"
            tensors[name] = ("F32", (64, 1), f32([0.1] * 64))
        self.assertIn("its type or shape is not that of expert 0", self.error(change, QWEN))


for each in FORMS:
    for model in LLAMA, QWEN, DEEPSEEK:
        # Heads of the latent matrix are read one by one, which no scales of groups allow.
        tails = ("kv_b_proj",) if each.startswith("nvfp4") else ("no_proj",)
        setattr(ScaledWeights, "test_%s_of_%s" % (each, model["model_type"]),
                lambda self, c=model, n=each, t=tails: self.check(c, n, t))

if __name__ == "__main__":
    unittest.main(verbosity=2)
