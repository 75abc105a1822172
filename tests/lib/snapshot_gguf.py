"""Write a GGUF file from a small snapshot, with the keys and tensor names that llama.cpp's
converter writes.

    convert("f-granite", "granite.gguf")

All tensors are F32, or of the types that `pack` chooses.  The vocabulary is made up: tests
evaluate ids.
"""
import array
import json
import math
import os
import re
import struct
import sys

from tiny_model import Signed, pack_text, pack_value

LAYER = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


class Family:
    """One architecture: its name and what differs from a plain model."""

    def __init__(self, arch, names=None, keys=None, is_permuted=False, norm_plus_one=False,
                 change=None, delta=None):
        """keys: from a configuration.  change: from a name, shape and values to a list of them;
        delta: the same for layers of models with delta nets, which needs the configuration, too."""
        self.arch, self.names, self.keys = arch, {**LAYER, **(names or {})}, keys
        self.is_permuted, self.norm_plus_one, self.change = is_permuted, norm_plus_one, change
        self.delta = delta


def _granite(c):
    return {"embedding_scale": c["embedding_multiplier"],
            "residual_scale": c["residual_multiplier"],
            "attention.scale": c["attention_multiplier"], "logit_scale": c["logits_scaling"]}


def _olmo(c):
    return {"attention.sliding_window": c["sliding_window"],
            "attention.sliding_window_pattern":
                [t == "sliding_attention" for t in c["layer_types"]]}


def _gpt_oss(c):
    rope = c["rope_parameters"]
    return {"attention.sliding_window": c["sliding_window"],
            "expert_count": c["num_local_experts"],
            "expert_used_count": c["num_experts_per_tok"],
            "expert_feed_forward_length": c["intermediate_size"],
            "rope.scaling.type": "yarn", "rope.scaling.factor": float(rope["factor"]),
            "rope.scaling.original_context_length": rope["original_max_position_embeddings"]}


def _gpt_oss_experts(name, shape, values):
    """Experts are stored in columns, and rows of gate and up in turn."""
    if "_exps" not in name:
        return [(name, shape, values)]
    if len(shape) == 3:
        n, cols, rows = shape
        values = array.array("f", (values[(e * cols + k) * rows + r] for e in range(n)
                                   for r in range(rows) for k in range(cols)))
        shape = [n, rows, cols]
    if "gate_up" not in name:
        return [(name, shape, values)]
    cols = shape[2] if len(shape) == 3 else 1
    half = [shape[0], shape[1] // 2, *shape[2:]]
    return [(name.replace("gate_up", word), half,
             array.array("f", (values[r * cols + k] for r in range(i, shape[0] * shape[1], 2)
                               for k in range(cols))))
            for i, word in enumerate(("gate", "up"))]


GPT_OSS = {"post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp",
           "self_attn.sinks": "attn_sinks.weight",
           "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight",
           "mlp.experts.gate_up_proj_bias": "ffn_gate_up_exps.bias",
           "mlp.experts.down_proj": "ffn_down_exps.weight",
           "mlp.experts.down_proj_bias": "ffn_down_exps.bias"}
QWEN_DELTA = {"post_attention_layernorm": "post_attention_norm",
              "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
              "linear_attn.in_proj_qkvz": "ssm_in", "linear_attn.in_proj_ba": "ssm_ba",
              "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
              "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm",
              "linear_attn.out_proj": "ssm_out", "linear_attn.A_log": "ssm_a",
              "linear_attn.dt_bias": "ssm_dt.bias", "mlp.gate": "ffn_gate_inp",
              "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
              **{"mlp.shared_expert.%s_proj" % w: "ffn_%s_shexp" % w
                 for w in ("gate", "up", "down")}}


def _experts(c):
    n = c.get("num_experts") or c["num_local_experts"]
    return {"expert_count": n, "expert_used_count": c["num_experts_per_tok"],
            "expert_feed_forward_length": c.get("moe_intermediate_size") or c["intermediate_size"]}


def _ministral(c):
    rope = c["rope_parameters"]
    return {"rope.scaling.type": "yarn", "rope.scaling.factor": float(rope["factor"]),
            "rope.scaling.original_context_length": rope["original_max_position_embeddings"],
            "rope.scaling.yarn_beta_fast": float(rope["beta_fast"]),
            "rope.scaling.yarn_beta_slow": float(rope["beta_slow"]),
            "rope.scaling.yarn_log_multiplier": float(rope["mscale_all_dim"]),
            "attention.temperature_scale": float(rope["llama_4_scaling_beta"])}


def _delta(c):
    keys = {"ssm.conv_kernel": c["linear_conv_kernel_dim"],
            "ssm.state_size": c["linear_key_head_dim"],
            "ssm.group_count": c["linear_num_key_heads"],
            "ssm.time_step_rank": c["linear_num_value_heads"],
            "ssm.inner_size": c["linear_num_value_heads"] * c["linear_value_head_dim"],
            "full_attention_interval": 4,
            "rope.dimension_count": int(c["head_dim"] * c["partial_rotary_factor"])}
    if c["model_type"] != "qwen3_next":  # of images; texts have one position
        pairs = keys["rope.dimension_count"] // 2
        keys["rope.dimension_sections"] = [pairs - pairs // 2, pairs // 2, 0, 0]
    if "num_experts" in c:
        keys.update(_experts(c))
        keys["expert_shared_feed_forward_length"] = c["shared_expert_intermediate_size"]
    return keys


def _rows(shape, values, order):
    """Returns the rows in this order."""
    cols = len(values) // shape[0]
    return array.array("f", (values[r * cols + i] for r in order for i in range(cols)))


def _delta_tensor(c, name, shape, values):
    """Apply what the converter does to a tensor of a delta net, or of gated attention."""
    keys, heads = c["linear_num_key_heads"], c["linear_num_value_heads"]
    dk, dv, n = c["linear_key_head_dim"], c["linear_value_head_dim"], heads // keys
    is_tiled = c["model_type"] != "qwen3_next"
    # The value heads of each key head are together in snapshots, and apart in tiled files.
    head_order = [g * n + i for i in range(n) for g in range(keys)] if is_tiled else range(heads)
    values_order = [h * dv + i for h in head_order for i in range(dv)]
    qkv_order = [*range(2 * keys * dk), *(2 * keys * dk + i for i in values_order)]
    word = name.split(".", 2)[2]
    if word == "ssm_a":
        values = array.array("f", (-math.exp(v) for v in values))
    elif word.endswith("norm.weight") and word != "ssm_norm.weight":
        return [(name, shape, array.array("f", (v + 1 for v in values)))]
    elif word == "ssm_in.weight":  # q, k, v and z of a key head, then of the next one
        group = 2 * dk + 2 * n * dv
        order = {part: [g * group + start + i for g in range(keys) for i in range(size)]
                 for part, start, size in (("q", 0, dk), ("k", dk, dk), ("v", 2 * dk, n * dv),
                                           ("z", 2 * dk + n * dv, n * dv))}
        qkv = order["q"] + order["k"] + order["v"]
        layer = name.rpartition("ssm_in")[0]
        return [(layer + "attn_qkv.weight", [len(qkv), shape[1]], _rows(shape, values, qkv)),
                (layer + "attn_gate.weight", [len(order["z"]), shape[1]],
                 _rows(shape, values, order["z"]))]
    elif word == "ssm_conv1d.weight":
        shape = [shape[0], shape[2]]
    if word in ("ssm_a", "ssm_dt.bias", "ssm_beta.weight", "ssm_alpha.weight"):
        values = _rows(shape, values, head_order)
    elif word in ("attn_qkv.weight", "ssm_conv1d.weight"):
        values = _rows(shape, values, qkv_order)
    elif word == "attn_gate.weight":
        values = _rows(shape, values, values_order)
    elif word == "ssm_out.weight":
        values = array.array("f", (values[r * shape[1] + i] for r in range(shape[0])
                                   for i in values_order))
    elif word == "ffn_gate_inp_shexp.weight":
        shape = shape[1:]
    return [(name, shape, values)]


POST_NORMS = {"post_attention_layernorm": "post_attention_norm",
              "post_feedforward_layernorm": "post_ffw_norm"}
FAMILIES = {
    "gemma": Family("gemma", norm_plus_one=True),
    "gpt_oss": Family("gpt-oss", names=GPT_OSS, keys=_gpt_oss, change=_gpt_oss_experts),
    "granite": Family("granite", keys=_granite, is_permuted=True),
    "qwen3_5_text": Family("qwen35", names=QWEN_DELTA, keys=_delta, delta=_delta_tensor),
    "qwen3_5_moe_text": Family("qwen35moe", names=QWEN_DELTA, keys=_delta, delta=_delta_tensor),
    "qwen3_next": Family("qwen3next", names=QWEN_DELTA, keys=_delta, delta=_delta_tensor),
    "ministral3": Family("mistral3", keys=_ministral, is_permuted=True),
    "mixtral": Family("llama", names={"block_sparse_moe.gate": "ffn_gate_inp"}, keys=_experts,
                      is_permuted=True),
    "olmo3": Family("olmo2", names=POST_NORMS, keys=_olmo),
    "qwen3_moe": Family("qwen3moe", names={"mlp.gate": "ffn_gate_inp"}, keys=_experts),
    "smollm3": Family("smollm3", is_permuted=True),
}


def read_snapshot(folder):
    """Returns the configuration, and name to (shape, floats)."""
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        data = f.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        assert t["dtype"] == "BF16", name
        halves = array.array("H", data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
        if sys.byteorder == "big":
            halves.byteswap()
        words = array.array("H", bytes(4 * len(halves)))
        words[sys.byteorder == "little"::2] = halves
        tensors[name] = (t["shape"], array.array("f", words.tobytes()))
    return config, tensors


def permuted(shape, values, n_head):
    """Put the two values of a rope pair next to each other, as llama.cpp's converter does."""
    dim, cols = shape[0] // n_head, shape[1]
    out = array.array("f")
    for head in range(n_head):
        for i in range(dim):
            row = head * dim + i // 2 + i % 2 * (dim // 2)
            out += values[row * cols:(row + 1) * cols]
    return shape, out


def plain_keys(c):
    heads = c["num_attention_heads"]
    dim = c.get("head_dim") or c["hidden_size"] // heads
    keys = {"block_count": c["num_hidden_layers"], "context_length": c["max_position_embeddings"],
            "embedding_length": c["hidden_size"], "feed_forward_length": c["intermediate_size"],
            "attention.head_count": heads,
            "attention.head_count_kv": c["num_key_value_heads"],
            "attention.key_length": dim, "attention.value_length": dim,
            "rope.dimension_count": dim, "vocab_size": c["vocab_size"],
            "attention.layer_norm_rms_epsilon": float(c["rms_norm_eps"]),
            "rope.freq_base": float(c["rope_parameters"]["rope_theta"])}
    return keys


def vocabulary(n):
    names = [chr(33 + i) for i in range(94)] + ["!!"] + ["t%d" % i for i in range(95, n)]
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": names, "tokenizer.ggml.token_type": [Signed(1)] * n,
            "tokenizer.ggml.merges": ["! !"], "tokenizer.ggml.bos_token_id": n - 1,
            "tokenizer.ggml.eos_token_id": n - 1}


def stacked(tensors):
    """Join tensors of single experts to one per layer."""
    out, words = {}, {"w1": "gate", "w2": "down", "w3": "up"}
    for name, (shape, values) in tensors.items():
        m = re.fullmatch(r"(model\.layers\.\d+)\.(?:mlp|block_sparse_moe)\.experts\.(\d+)\."
                         r"(\w+?)(?:_proj)?\.weight", name)
        if m is None:
            out[name] = (shape, values)
            continue
        whole = "%s.ffn_%s_exps.weight" % (m[1], words.get(m[3], m[3]))
        have, so_far = out.get(whole, ([0, *shape], array.array("f")))
        assert have[0] == int(m[2]), name
        out[whole] = ([have[0] + 1, *shape], so_far + values)
    return out


def canonical(family, name):
    for prefix, new in OUTSIDE.items():
        if name.startswith(prefix + "."):
            return new + name[len(prefix):]
    _, _, layer, rest = name.split(".", 3)
    if rest.startswith("ffn_"):
        return "blk.%s.%s" % (layer, rest)
    if rest in family.names:
        return "blk.%s.%s" % (layer, family.names[rest])
    stem, _, tail = rest.rpartition(".")
    return "blk.%s.%s.%s" % (layer, family.names[stem], tail)


def as_f32(_name, _shape, values):
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return 0, values.tobytes()


def convert(folder, path, pack=as_f32):
    """pack: from a name, shape and floats to the number of a type and the bytes."""
    config, tensors = read_snapshot(folder)
    family = FAMILIES[config["model_type"]]
    keys = {"general.architecture": family.arch, "general.type": "model"}
    for key, value in {**plain_keys(config), **(family.keys(config) if family.keys else {})}.items():
        keys[family.arch + "." + key] = value
    keys.update(vocabulary(config["vocab_size"]))
    out = {}
    for name, (shape, values) in stacked(tensors).items():
        new = canonical(family, name)
        if family.is_permuted and new.endswith(("attn_q.weight", "attn_k.weight")):
            heads = "num_attention_heads" if "attn_q" in new else "num_key_value_heads"
            shape, values = permuted(shape, values, config[heads])
        if family.norm_plus_one and new.endswith("norm.weight"):
            values = array.array("f", (v + 1 for v in values))
        if family.delta and new.startswith("blk."):
            for n, s, v in family.delta(config, new, shape, values):
                out[n] = (s, v)
            continue
        if family.delta and new.endswith("norm.weight"):
            values = array.array("f", (v + 1 for v in values))
        for n, s, v in family.change(new, shape, values) if family.change else [
                (new, shape, values)]:
            out[n] = (s, v)
    write(path, keys, out, pack)
    return path


def write(path, keys, tensors, pack):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        head += pack_text(key) + pack_value(value)
    data = b""
    for name, (shape, values) in tensors.items():
        head += pack_text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        kind, raw = pack(name, shape, values)
        head += struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)
