#!/usr/bin/env python3
"""Run a published model at its full size, with random weights, in a cage of the budget's size, and
print its line of the table in README.md.

    family_row.py BUILD GLM-4.7-Flash --layers 12 --memory 2G
    family_row.py BUILD --heading

Needs root and MW_SHARED.  The model is one of share/known-models.json.  Names, types and shapes of
its tensors are those that known_tensors lists; its keys are those of the small model in
MW_SHARED/conformance, or of test_dense_families.py, that has most of them, with the sizes of the
published configuration.
--layers keeps the first ones.  The file, in --folder, is deleted after the run; with --write, it is
only written, and the next call runs it.
"""
import argparse
import collections
import glob
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("MW_SHARED", "")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "conformance")]
import snapshot_gguf  # noqa: E402
import test_dense_families as dense  # noqa: E402
from gguf_edit import ARR, BOOL, F32, I32, STR, U32, Gguf  # noqa: E402
from synth_families import block, metadata, tile  # noqa: E402

IDS = 26  # I32
# Keys that small models may lack because they have the usual value.
MORE_KEYS = ("attention.key_length", "attention.value_length", "swiglu_clamp_exp",
             "swiglu_clamp_shexp")
# Keys that others may have, with a part that the model lacks.
PARTS = ("attention.q_lora_rank", "attention.sliding_window", "attention.sliding_window_pattern")
HEADING = ("| model | layers | file | budget | peak | hits | read for a pass | answer tok/s |"
           " predicted |\n|---|---|---|---|---|---|---|---|---|")


def cut(config, n):
    """The configuration with its first n layers."""
    all_layers = config["num_hidden_layers"]
    n = min(n or all_layers, all_layers)
    out = {k: v[:n] if isinstance(v, (list, str)) and len(v) == all_layers else v
           for k, v in config.items()}
    if "linear_attn_config" in out:
        out["linear_attn_config"] = {
            k: [i for i in v if i <= n] if isinstance(v, list) else v
            for k, v in out["linear_attn_config"].items()}
    if n < all_layers and "compress_ratios" in out:  # the first two layers have windows alone
        out["compress_ratios"] = config["compress_ratios"][-n:]
        out["num_hash_layers"] = min(out["num_hash_layers"], n - 1)
    out["num_hidden_layers"] = n
    return out


def listed(build, model, label, folder):
    path = os.path.join(folder, "known.json")
    with open(os.path.join(HERE, "..", "..", "share", "known-models.json")) as f:
        known = json.load(f)
    known["models"] = [model]
    with open(path, "w") as f:
        json.dump(known, f)
    lines = subprocess.run(
        [os.path.join(build, "tests", "bench", "known_tensors"), path, model["name"], label],
        check=True, capture_output=True, text=True).stdout.splitlines()
    os.remove(path)
    tensors = [(name, int(kind), [int(d) for d in dims])
               for name, kind, *dims in (line.split() for line in lines[1:])]
    # Snapshots have one name for both.
    is_mixed = lines[0] == "nemotron_h" and any("_exps" in name for name, _, _ in tensors)
    return lines[0] + "_moe" * is_mixed, tensors


def small_models(folder):
    """Small files and their configurations, or None.  Those of snapshots are made in folder."""
    paths = glob.glob(os.path.join(SHARED, "conformance", "*", "*"))
    for path in sorted(p for p in paths if p.endswith(".gguf")):
        config = path[:-len(".gguf")] + "/config.json"
        yield path, config if os.path.exists(config) else None
    for path in sorted(p for p in paths if p + ".gguf" not in paths):
        config = os.path.join(path, "config.json")
        if os.path.basename(path).startswith("f-") and os.path.exists(config):
            with open(config) as f:
                known = json.load(f).get("model_type") in snapshot_gguf.FAMILIES
            if known:
                yield snapshot_gguf.convert(path, os.path.join(folder, "small.gguf")), config
    for family in dense.FAMILIES:
        small = dense.to_gguf(family, dense.weights(family, family.arch))
        yield small.write(os.path.join(folder, "small.gguf")), None


def template(arch, model_type, known):
    """Keys of a small model of this architecture: if possible of the same type, with most of the
    keys that are known."""
    best, most = None, (False, -math.inf)
    with tempfile.TemporaryDirectory() as folder:
        for path, config in small_models(folder):
            keys = Gguf(path).keys
            if keys.get("general.architecture", (0, ""))[1] != arch:
                continue
            keys = {k[len(arch) + 1:]: v for k, v in keys.items() if k.startswith(arch + ".")}
            is_same = False
            if config is not None:
                with open(config) as f:
                    is_same = '"%s"' % model_type in f.read()
            fits = is_same, sum(1 if bool(known[k]) == bool(v) else -1
                                for k, (_, v) in keys.items() if k in known)
            if fits > most:
                best, most = keys, fits
    if best is None:
        sys.exit("no small model of %s in MW_SHARED" % arch)
    return best


def sizes(c, tensors):
    """Keys and values as the configuration and the tensors state them; None: not known."""
    layers = range(c["num_hidden_layers"])
    shape = {}
    for name, _, dims in tensors:
        shape.setdefault(name.split(".", 2)[-1] if name.startswith("blk.") else name, dims)
    has = collections.defaultdict(dict)
    for name, _, dims in tensors:
        if name.startswith("blk."):
            _, layer, rest = name.split(".", 2)
            has[int(layer)][rest] = dims

    def get(*names, of=c):
        return next((of[n] for n in names if of.get(n) is not None), None)

    def width(name, n_part=1):
        return shape[name][1] // n_part if name in shape else None

    def each(value):
        values = [value(i) for i in layers]
        return values[0] if len(set(values)) == 1 else values

    heads, kda = get("num_attention_heads"), c.get("linear_attn_config", {})
    dim = get("head_dim") or c["hidden_size"] // heads
    wide = get("global_head_dim") or dim
    rank, rope = get("kv_lora_rank"), get("qk_rope_head_dim") or 0
    mamba = get("mamba_num_heads", "mamba_n_heads")
    limit = get("swiglu_limit") if "hc_mult" in c else None  # one number for all layers
    kv = 1 if rank else get("num_key_value_heads") or heads
    rope_of = c.get("rope_parameters") or {}
    part = get("partial_rotary_factor") or rope_of.get("partial_rotary_factor")
    slides = [t == "sliding_attention" for t in c.get("layer_types", [])]
    if "global_head_dim" in c:  # the last layer is global, too
        slides = [(i + 1) % c["sliding_window_pattern"] != 0 for i in layers[:-1]] + [False]
    is_one_block = "hybrid_override_pattern" in c
    n_up = 2 if c["model_type"] == "phi3" else 1  # gate and up are one tensor

    def kv_heads(i):
        if "attn_kv_a_mqa.weight" in has[i] or "attn_kv.weight" in has[i]:
            return kv
        if "global_head_dim" in c:
            return has[i]["attn_k.weight"][1] // (dim if slides[i] else wide)
        return kv if not rank and {"attn_k.weight", "attn_qkv.weight"} & has[i].keys() else 0

    def ff(i):
        rows = has[i].get("ffn_up.weight") or has[i].get("ffn_up_exps.weight") or [0, 0]
        return rows[1] // n_up

    def clamps(name):
        each_layer = get(name) or limit and [limit] * len(layers)
        return each_layer and [float(x) for x in each_layer]

    return {
        "block_count": len(layers), "context_length": c["max_position_embeddings"],
        "embedding_length": c["hidden_size"], "vocab_size": c["vocab_size"],
        "embedding_length_out": c["hidden_size"] * (get("hc_mult") or 1),
        "feed_forward_length":
            each(ff) if is_one_block or all("ffn_up.weight" in has[i] for i in layers)
            else width("ffn_up.weight") or width("ffn_up_exps.weight"),
        "expert_feed_forward_length":
            width("ffn_up_exps.weight") or width("ffn_gate_up_exps.weight", 2),
        "expert_shared_feed_forward_length": width("ffn_up_shexp.weight"),
        "expert_shared_count": get("n_shared_experts", "num_shared_experts",
                                   "moe_num_shared_experts", "num_shared_expert"),
        "expert_count": width("ffn_gate_inp.weight") or 0,
        "expert_used_count":
            get("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k",
                "top_k_experts") or 0,
        "leading_dense_block_count": sum("ffn_up.weight" in has[i] for i in layers),
        "expert_group_count": get("n_group", "num_expert_group"),
        "expert_group_used_count": get("topk_group"),
        "attention.head_count": get("num_attention_heads_per_layer") or heads,
        "attention.head_count_kv": each(kv_heads),
        "attention.key_length": rank + rope if rank else wide,
        "attention.value_length": rank or wide,
        "attention.key_length_swa": dim, "attention.value_length_swa": dim,
        "attention.shared_kv_layers": get("num_kv_shared_layers"),
        "attention.recurrent_layers":
            ["attn_k.weight" not in has[i] for i in layers]
            if "linear_num_key_heads" in c else None,
        "embedding_length_per_layer_input": get("hidden_size_per_layer_input"),
        "attention.key_length_mla": get("qk_nope_head_dim") and c["qk_nope_head_dim"] + rope,
        "attention.value_length_mla": get("v_head_dim"),
        "attention.kv_lora_rank": rank, "attention.q_lora_rank": get("q_lora_rank"),
        "attention.output_group_count": get("o_groups"),
        "attention.output_lora_rank": get("o_lora_rank"),
        "attention.indexer.head_count": get("index_n_heads"),
        "attention.indexer.key_length": get("index_head_dim"),
        "attention.indexer.top_k": get("index_topk"),
        "attention.indexer.kpool": get("index_kpool"),
        "attention.indexer.types": [t == "full" for t in c.get("indexer_types", [])] or None,
        "attention.compress_ratios": get("compress_ratios"),
        "attention.sliding_window": get("sliding_window"),
        "attention.sliding_window_pattern": slides or None,
        "attention.scale": get("attention_multiplier"),
        "rope.dimension_count":
            rope if rank or "o_lora_rank" in c else int(dim * part) if part else
            get("rotary_dim") or wide,
        "rope.dimension_count_swa": dim,
        "rope.scaling.original_context_length": 4096,
        "shortconv.l_cache": get("conv_L_cache"),
        "kda.head_dim": kda.get("head_dim") or dim,
        "ssm.conv_kernel": get("conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim",
                               "short_conv_kernel_size") or kda.get("short_conv_kernel_size"),
        "ssm.group_count": get("n_groups", "mamba_n_groups", "linear_num_key_heads"),
        "ssm.state_size": get("ssm_state_size", "mamba_d_state", "linear_key_head_dim"),
        "ssm.time_step_rank": mamba or get("linear_num_value_heads"),
        "ssm.inner_size": mamba * get("mamba_head_dim", "mamba_d_head") if mamba else
        get("linear_num_value_heads") and c["linear_num_value_heads"] * c["linear_value_head_dim"],
        "swiglu_clamp_exp": clamps("expert_swiglu_limit_list"),
        "swiglu_clamp_shexp": clamps("share_expert_swiglu_limit_list"),
        "hash_layer_count": get("num_hash_layers"),
        "nextn_predict_layers": 0,
    }


def keys_of(arch, config, tensors, name):
    g = Gguf()
    words = metadata({"layers": 0, "ctx": 0, "n": 0, "ff": 0, "heads": 0, "kv": 0, "dim": 0,
                      "base": 0.0, "eps": 0.0, "keys": {}, "arch": arch,
                      "vocab": config["vocab_size"]}, name)
    g.keys = {"general.architecture": (STR, arch), "general.name": (STR, name)}
    known = sizes(config, tensors)
    keys = template(arch, config["model_type"], known)
    keys |= {key: (U32, 0) for key in MORE_KEYS if key not in keys and known[key] is not None}
    for key, (kind, value) in keys.items():
        new = known.get(key)
        if new is None and key in PARTS:
            continue
        if new is not None and isinstance(new, list):
            inner = F32 if isinstance(new[0], float) else BOOL if isinstance(new[0], bool) else I32
            kind, value = ARR, (inner, new)
        elif new is not None:
            kind, value = (kind if kind != ARR else U32), new
        g.keys["%s.%s" % (arch, key)] = (kind, value)
    for key in ("model", "pre"):
        g.keys["tokenizer.ggml." + key] = (STR, words["tokenizer.ggml." + key])
    for key, inner in (("tokens", STR), ("token_type", I32), ("merges", STR)):
        g.keys["tokenizer.ggml." + key] = (ARR, (inner, words["tokenizer.ggml." + key]))
    g.keys["tokenizer.ggml.eos_token_id"] = (U32, config["vocab_size"] - 1)
    return g


def fill(name, kind, dims, n_expert, tiles, rng):
    """A piece of the tensor's bytes, to be repeated."""
    is_norm = "norm" in name and name.endswith(".weight") or name.endswith("ffn_norm")
    if name == "rope_freqs.weight":  # a quarter of each head rotates
        return struct.pack("<%df" % dims[0], *(1.0 if 4 * i < dims[0] else 1e30
                                               for i in range(dims[0])))
    if kind == IDS:
        return struct.pack("<4096i", *(rng.randrange(n_expert) for _ in range(4096)))
    if kind == 0 and (len(dims) == 1 or is_norm or "conv1d" in name):
        centre = 1.0 if is_norm else -1.0 if name.endswith("ssm_a") else 0.0
        return struct.pack("<4096f", *(rng.gauss(centre, 0.1) for _ in range(4096)))
    sigma = 1 / math.sqrt(dims[0])
    if (kind, sigma) not in tiles:
        one = tile(kind, sigma, rng)
        tiles[kind, sigma] = one * max(1, (16 << 20) // len(one))
    return tiles[kind, sigma]


def write(path, g, tensors, n_expert):
    """The file; pages that are written leave the page cache."""
    rng, tiles, at = random.Random(1), {}, 0
    parts = []
    for name, kind, dims in tensors:
        n_elem, n_byte = block(kind) if kind != IDS else (1, 4)
        size = math.prod(dims) // n_elem * n_byte
        parts.append((name, kind, dims, size))
    table = b""
    for name, kind, dims, size in parts:
        table += struct.pack("<Q", len(name)) + name.encode() + struct.pack(
            "<I%dQIQ" % len(dims), len(dims), *dims, kind, at)
        at += size + -size % 32
    with open(path, "wb") as f:
        start = b"GGUF" + struct.pack("<IQQ", 3, len(parts), len(g.keys)) + g.packed_keys() + table
        f.write(start + bytes(-len(start) % 32))
        for name, kind, dims, size in parts:
            data = fill(name, kind, dims, n_expert, tiles, rng)
            for done in range(0, size, len(data)):
                f.write(data[:size - done])
            f.write(bytes(-size % 32))
            f.flush()
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(build, path, a):
    """Returns what `run --json` says at its end, and the report of the cage."""
    report = path + ".cage"
    out = subprocess.run(
        [os.path.join(SHARED, "tools", "caged"), "-q", "-o", report, "--file", path,
         "--timeout", "100", a.memory, "--", os.path.join(build, "memwall"), "run", "-m", path,
         "--memory", a.memory, "-c", "4096", "-n", str(a.tokens), "--json", "--temp", "0",
         "--no-stdin",
         "--raw", "The memory of this machine is smaller than the model, so its weights are read."],
        capture_output=True, text=True)
    with open(report) as f:
        cage = json.loads(f.readlines()[-1])
    os.remove(report)
    done = [json.loads(line) for line in out.stdout.splitlines() if '"done"' in line]
    if out.returncode != 0 or not done:
        sys.exit("%s: rc %d: %s %s" % (path, out.returncode, out.stderr[-600:], out.stdout[-300:]))
    return done[-1], cage


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("build")
    args.add_argument("name", nargs="?")
    args.add_argument("--heading", action="store_true")
    args.add_argument("--layers", type=int)
    args.add_argument("--type")
    args.add_argument("--memory", default="2G")
    args.add_argument("--tokens", type=int, default=24)
    args.add_argument("--folder", default="/var/tmp")
    args.add_argument("--write", action="store_true", help="only write the file")
    a = args.parse_args()
    if a.heading:
        print(HEADING)
        return
    with open(os.path.join(HERE, "..", "..", "share", "known-models.json")) as f:
        known = json.load(f)
    model = next(m for m in known["models"] if m["name"] == a.name)
    all_layers = model["config"]["num_hidden_layers"]
    model["config"] = cut(model["config"], a.layers)
    label = a.type or model.get("types", known["types"])[0]
    arch, tensors = listed(a.build, model, label, a.folder)
    if "global_head_dim" in model["config"]:  # snapshots have none
        tensors.append(("rope_freqs.weight", 0, [model["config"]["global_head_dim"] // 2]))
    path = os.path.join(a.folder, a.name + ".gguf")
    n_expert = next((d[1] for n, _, d in tensors if n.endswith("ffn_gate_inp.weight")), 1)
    if a.write or not os.path.exists(path):
        write(path, keys_of(arch, model["config"], tensors, a.name), tensors, n_expert)
    if a.write:
        return
    try:
        size = os.path.getsize(path)
        done, cage = run(a.build, path, a)
    finally:
        os.remove(path)
    n_expert = done["expert_hits"] + done["expert_misses"]
    left = sum(f["cached_after"] for f in cage["files"])
    print("| %s, %s | %d of %d | %.1f GB | %s | %.2f GiB | %s | %.0f MB | %.2f | %.2f |%s" % (
        a.name, label, model["config"]["num_hidden_layers"], all_layers, size / 1e9, a.memory,
        cage["peak"] / 2**30,
        "%.0f %%" % (100 * done["expert_hits"] / n_expert) if n_expert else "-",
        done["bytes_read"] / max(1, done["n_pass"]) / 1e6,
        (done["n_decoded"] - 1) / (done["decode_ns"] / 1e9), done["predicted_decode_tps"],
        " met the limit %d times, %d bytes left in the page cache" % (cage["at_limit"], left)
        if cage["at_limit"] or left else ""))


if __name__ == "__main__":
    main()
