#!/usr/bin/env python3
"""Write a GGUF file of the shape and size of a published model, with random weights.

    synth_families.py qwen3-30b-a3b model.gguf
    synth_families.py gpt-oss-20b --type MXFP4 model.gguf
    synth_families.py llama-3.2-1b --type Q5_K model.gguf
    synth_families.py qwen3.8-flash-next --layers 12 model.gguf
    synth_families.py                          list the shapes

The text of such a model is noise, but sizes, types and places of its tensors are those of the
usual files, and activations stay of order one.  --type is the type of the experts, or of all
matrices of a dense model; the other matrices of a mixture are Q8_0.  A tile of random blocks is repeated
through each tensor, so writing is as fast as the disk.  Written pages leave the page cache.

--layers writes a model with fewer layers.  The table of n-grams of Qwen3.8-Flash-Next, 28.8 GB, is a
hole of the file, which reads as zeros without the disk; --table writes it, too.
"""
import argparse
import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tiny_model import Long, Signed, pack_text, pack_value  # noqa: E402

F32, Q8_0, MXFP4 = 0, 8, 39
TYPES = {"F32": F32, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": Q8_0, "Q2_K": 10,
         "Q3_K": 11, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "IQ4_NL": 20, "IQ4_XS": 23, "BF16": 30,
         "MXFP4": MXFP4}
N_TILE = 1009  # blocks; a prime number, so that no two rows begin at the same place

# The parts of a block of 32 or 256 values: a number of random bytes, or a factor of a half float.
# With 1 / the standard deviation of the random part, a scale makes values of deviation 1.  The
# factor of a minimum is the mean of that part times the scale's.
PARTS = {
    2: (32, (1 / 4.6, 16)),
    3: (32, (1 / 4.6, -7.5 / 4.6, 16)),
    6: (32, (1 / 9.2, 20)),
    7: (32, (1 / 9.2, -15.5 / 9.2, 20)),
    8: (32, (1 / 73.9, 32)),
    10: (256, (80, 1 / 13.9, 1.5 / 13.9)),
    11: (256, (108, 1 / 43)),  # scales near 32 are 0, so this one uses their whole range
    12: (256, (1 / 258, 7.5 / 258, 140)),
    13: (256, (1 / 527, 15.5 / 527, 172)),
    14: (256, (208, 1 / 1365)),
    20: (32, (1 / 67.4, 16)),
    23: (256, (1 / 1245, 134)),
}


def block(kind):
    """Returns the values and the bytes of a block."""
    if kind in PARTS:
        n, parts = PARTS[kind]
        return n, sum(p if isinstance(p, int) else 2 for p in parts)
    return {F32: (1, 4), MXFP4: (32, 17)}.get(kind, (1, 2))


# The rows of each hash of n-grams are the next prime number after 20 million and these.
NGRAM_PRIMES = (3, 23, 33, 47, 59, 63, 69, 77, 81, 93, 107, 147, 153, 159, 161, 171)

SHAPES = {
    "qwen3-30b-a3b": dict(
        arch="qwen3moe", type="Q4_0", n=2048, layers=48, heads=32, kv=4, dim=128, ff=6144,
        experts=128, used=8, ff_exp=768, vocab=151936, ctx=40960, base=1e6, eps=1e-6,
        qk_norm=True, keys={}),
    "gpt-oss-20b": dict(
        arch="gpt-oss", type="MXFP4", n=2880, layers=24, heads=64, kv=8, dim=64, ff=2880,
        experts=32, used=4, ff_exp=2880, vocab=201088, ctx=131072, base=150000.0, eps=1e-5,
        biases=True, keys={"attention.sliding_window": 128, "rope.scaling.type": "yarn",
                           "rope.scaling.factor": 32.0,
                           "rope.scaling.original_context_length": 4096}),
    "mixtral-8x7b": dict(
        arch="llama", type="Q3_K", n=4096, layers=32, heads=32, kv=8, dim=128, ff=14336,
        experts=8, used=2, ff_exp=14336, vocab=32000, ctx=32768, base=1e6, eps=1e-5, keys={}),
    "qwen3.5-35b-a3b": dict(
        arch="qwen35moe", type="Q4_0", n=2048, layers=40, heads=16, kv=2, dim=256, ff=512,
        experts=256, used=8, ff_exp=512, vocab=248320, ctx=262144, base=1e7, eps=1e-6,
        qk_norm=True, rot=64, shared=True,
        delta=dict(keys=16, values=32, dim=128, conv=4),
        keys={"full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.state_size": 128,
              "ssm.group_count": 16, "ssm.time_step_rank": 32, "ssm.inner_size": 4096,
              "expert_shared_feed_forward_length": 512,
              "rope.dimension_sections": [11, 11, 10, 0]}),
    "qwen3.8-flash-next": dict(
        arch="qwen4exp", type="Q4_K", n=2560, layers=48, heads=24, kv=2, dim=256, ff=640,
        experts=512, used=10, ff_exp=640, vocab=248320, ctx=262144, base=1e7, eps=1e-6,
        qk_norm=True, rot=64, shared=True, down="IQ4_NL",
        delta=dict(keys=16, values=48, dim=128, conv=4),
        streams=4, mix=320, index=(4, 128),
        ngrams=dict(layer=1, width=160, rows=320001536, conv=4),
        keys={"full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.state_size": 128,
              "ssm.group_count": 16, "ssm.time_step_rank": 48, "ssm.inner_size": 6144,
              "expert_shared_feed_forward_length": 640,
              "rope.dimension_sections": [11, 11, 10, 0], "hyper_connection.count": 4,
              "hyper_connection.low_rank": 320, "attention.indexer.head_count": 4,
              "attention.indexer.key_length": 128, "attention.indexer.top_k": 2048,
              "ple.layers": [Signed(1)], "ple.ngram_size": 3, "ple.heads_per_ngram": 8,
              "ple.conv_kernel": 4, "embedding_length_per_layer_input": 160,
              "ple.eos_token_id": 248044,
              "ple.layer_multipliers": [Long(x) for x in (23703573157769, 20109073645365,
                                                          8052911324071)],
              "ple.head_vocab_sizes": [Long(20000000 + x) for x in NGRAM_PRIMES],
              "ple.head_offsets": [Long(20000000 * i + sum(NGRAM_PRIMES[:i]))
                                   for i in range(16)]}),
    "llama-3.2-1b": dict(
        arch="llama", type="Q4_K", n=2048, layers=16, heads=32, kv=8, dim=64, ff=8192,
        vocab=128256, ctx=131072, base=500000.0, eps=1e-5, keys={}),
    "ministral-3-8b": dict(
        arch="mistral3", type="Q4_0", n=4096, layers=34, heads=32, kv=8, dim=128, ff=14336,
        vocab=131072, ctx=262144, base=1e6, eps=1e-5,
        keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 16.0,
              "rope.scaling.original_context_length": 16384,
              "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.1}),
}


def tile(kind, sigma, rng):
    """Returns N_TILE blocks of values with about this standard deviation."""
    out = bytearray()
    for _ in range(N_TILE if block(kind)[0] > 1 else 16 * N_TILE):
        if kind in PARTS:
            for part in PARTS[kind][1]:
                out += (rng.randbytes(part) if isinstance(part, int)
                        else struct.pack("<e", sigma * part))
        elif kind == MXFP4:
            out += bytes([max(1, 127 + round(math.log2(sigma / 2.6)))]) + rng.randbytes(16)
        elif kind == TYPES["F16"]:
            out += struct.pack("<e", rng.gauss(0, sigma))
        else:
            # BF16 is the upper half of F32.
            out += struct.pack("<f", rng.gauss(0, sigma))[0 if kind == F32 else 2:]
    return bytes(out)


def tensors(s, kind):
    """Yields name, shape (row length first), type and standard deviation or centre."""
    n, q, kv = s["n"], s["heads"] * s["dim"], s["kv"] * s["dim"]
    dense = Q8_0 if "experts" in s else kind

    def mat(name, cols, rows, of=None):
        return name, (cols, rows), dense if of is None else of, 1 / math.sqrt(cols), 0

    def vec(name, *shape, centre=0.0):
        return name, shape, F32, 0.1, centre

    def mixer(name):
        yield vec(name + "_norm.weight", s["streams"] * n, centre=1.0)
        yield mat(name + "_down.weight", s["streams"] * n, s["mix"])
        yield mat(name + "_up.weight", s["mix"], s["streams"] * n)
        if name != "output_hc":
            yield vec(name + "_inject.weight", s["streams"] * n, s["streams"])

    yield mat("token_embd.weight", n, s["vocab"])
    if "ngrams" in s:
        g = s["ngrams"]
        yield ("per_layer_token_embd.weight", (g["width"], g["rows"]), TYPES["IQ4_NL"],
               1 if s["writes_table"] else None, 0)
        yield from mixer("output_hc")
    else:
        yield vec("output_norm.weight", n, centre=1.0)
    yield mat("output.weight", n, s["vocab"])
    late = s.get("biases") or "delta" in s
    for i in range(s["layers"]):
        b = "blk.%d." % i
        if "streams" in s:
            yield from mixer(b + "hc_attn")
            yield from mixer(b + "hc_ffn")
        else:
            yield vec(b + "attn_norm.weight", n, centre=1.0)
        if "ngrams" in s and i == s["ngrams"]["layer"]:
            yield mat(b + "ple_key.weight", n, s["streams"] * n)
            yield mat(b + "ple_value.weight", n, n)
            for word in ("key", "query", "conv"):
                yield vec(b + "ple_norm_%s.weight" % word, s["streams"] * n, centre=1.0)
            yield vec(b + "ple_conv1d.weight", s["ngrams"]["conv"], s["streams"] * n)
        if "delta" in s and (i + 1) % 4 != 0:
            d = s["delta"]
            k, v = d["keys"] * d["dim"], d["values"] * d["dim"]
            yield mat(b + "attn_qkv.weight", n, 2 * k + v)
            yield mat(b + "attn_gate.weight", n, v)
            yield mat(b + "ssm_beta.weight", n, d["values"])
            yield mat(b + "ssm_alpha.weight", n, d["values"])
            yield vec(b + "ssm_conv1d.weight", d["conv"], 2 * k + v)
            yield vec(b + "ssm_a", d["values"], centre=-1.0)
            yield vec(b + "ssm_dt.bias", d["values"])
            yield vec(b + "ssm_norm.weight", d["dim"], centre=1.0)
            yield mat(b + "ssm_out.weight", v, n)
        else:
            # Gates of heads follow their queries.
            for word, rows in (("q", 2 * q if "delta" in s else q), ("k", kv), ("v", kv)):
                yield mat(b + "attn_%s.weight" % word, n, rows)
                if s.get("biases"):
                    yield vec(b + "attn_%s.bias" % word, rows)
            yield mat(b + "attn_output.weight", q, n)
            if "index" in s:
                heads, dim = s["index"]
                yield mat(b + "indexer.q_proj.weight", n, heads * dim, TYPES["BF16"])
                yield mat(b + "indexer.k_proj.weight", n, dim, TYPES["BF16"])
                yield vec(b + "indexer.q_norm.weight", dim, centre=1.0)
                yield vec(b + "indexer.k_norm.weight", dim, centre=1.0)
            if s.get("qk_norm"):
                yield vec(b + "attn_q_norm.weight", s["dim"], centre=1.0)
                yield vec(b + "attn_k_norm.weight", s["dim"], centre=1.0)
        if "streams" not in s:
            yield vec(b + ("post_attention_norm" if late else "ffn_norm") + ".weight", n,
                      centre=1.0)
        if s.get("shared"):
            yield vec(b + "ffn_gate_inp_shexp.weight", n)
            yield mat(b + "ffn_gate_shexp.weight", n, s["ff"])
            yield mat(b + "ffn_up_shexp.weight", n, s["ff"])
            yield mat(b + "ffn_down_shexp.weight", s["ff"], n)
        if "experts" not in s:
            yield mat(b + "ffn_gate.weight", n, s["ff"])
            yield mat(b + "ffn_up.weight", n, s["ff"])
            yield mat(b + "ffn_down.weight", s["ff"], n)
            continue
        e, ff = s["experts"], s["ff_exp"]
        yield vec(b + "ffn_gate_inp.weight", n, e)
        for word, cols, rows in (("gate", n, ff), ("up", n, ff), ("down", ff, n)):
            of = TYPES[s["down"]] if word == "down" and "down" in s else kind
            yield (b + "ffn_%s_exps.weight" % word, (cols, rows, e), of, 1 / math.sqrt(cols), 0)
            if s.get("biases"):
                yield vec(b + "ffn_%s_exps.bias" % word, rows, e)
        if s.get("biases"):
            yield vec(b + "attn_output.bias", n)
            yield vec(b + "attn_sinks.weight", s["heads"])
            yield vec(b + "ffn_gate_inp.bias", e)


def metadata(s, name):
    keys = {"block_count": s["layers"], "context_length": s["ctx"], "embedding_length": s["n"],
            "feed_forward_length": s["ff"], "attention.head_count": s["heads"],
            "attention.head_count_kv": s["kv"], "attention.key_length": s["dim"],
            "attention.value_length": s["dim"], "rope.dimension_count": s.get("rot", s["dim"]),
            "rope.freq_base": s["base"], "attention.layer_norm_rms_epsilon": s["eps"],
            **s["keys"]}
    if "experts" in s:
        keys.update({"expert_count": s["experts"], "expert_used_count": s["used"],
                     "expert_feed_forward_length": s["ff_exp"]})
    if "index" in s:
        keys["attention.compress_ratios"] = [Signed(4 if i % 4 == 3 else 0)
                                             for i in range(s["layers"])]
    out = {"general.architecture": s["arch"], "general.type": "model", "general.name": name}
    out.update({s["arch"] + "." + k: v for k, v in keys.items()})
    # The bytes as GPT-2 spells them, and names.
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    words = [chr(c) for c in seen + list(range(256, 256 + 256 - len(seen)))] + ["!!"]
    words += ["t%d" % i for i in range(len(words), s["vocab"])]
    out.update({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
                "tokenizer.ggml.tokens": words,
                "tokenizer.ggml.token_type": [Signed(1)] * s["vocab"],
                "tokenizer.ggml.merges": ["! !"],
                "tokenizer.ggml.eos_token_id": s["vocab"] - 1})
    return out


def write(path, s, name, kind):
    rng, tiles, table, offset = random.Random(1), {}, b"", 0
    listed = []
    for tensor, shape, t, sigma, centre in tensors(s, kind):
        n_elem, n_byte = block(t)
        size = math.prod(shape) // n_elem * n_byte
        table += pack_text(tensor) + struct.pack("<I", len(shape)) + b"".join(
            struct.pack("<Q", d) for d in shape) + struct.pack("<IQ", t, offset)
        listed.append((t, sigma, centre, size))
        offset += size + -size % 32
    keys = metadata(s, name)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(keys)) + b"".join(
        pack_text(k) + pack_value(v) for k, v in keys.items()) + table
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        for t, sigma, centre, size in listed:
            if sigma is None:
                f.seek(size + -size % 32, os.SEEK_CUR)
                continue
            if centre:
                f.write(b"".join(struct.pack("<f", centre + rng.gauss(0, sigma))
                                 for _ in range(size // 4)) + bytes(-size % 32))
                continue
            if (t, sigma) not in tiles:
                one = tile(t, sigma, rng)
                tiles[t, sigma] = one * max(1, (16 << 20) // len(one))
            data = tiles[t, sigma]
            for at in range(0, size, len(data)):
                f.write(data[:size - at])
            f.write(bytes(-size % 32))
            f.flush()
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("shape", nargs="?", choices=SHAPES)
    args.add_argument("path", nargs="?")
    args.add_argument("--type", choices=TYPES)
    args.add_argument("--layers", type=int)
    args.add_argument("--table", action="store_true")
    a = args.parse_intermixed_args()
    for s in SHAPES.values():
        s["writes_table"] = a.table
    if a.path is None:
        for name, s in SHAPES.items():
            kind = TYPES[a.type or s["type"]]
            size = 0
            for _, shape, t, _, _ in tensors(s, kind):
                n_elem, n_byte = block(t)
                size += math.prod(shape) // n_elem * n_byte
            print("%-16s %-9s %5.1f GB" % (name, s["arch"], size / 1e9))
        return
    s = SHAPES[a.shape]
    s["layers"] = a.layers or s["layers"]
    write(a.path, s, a.shape, TYPES[a.type or s["type"]])


if __name__ == "__main__":
    main()
