"""Small dense models with random weights, as GGUF files and as snapshots, and a plain forward
pass in double precision that computes their logits."""
import json
import math
import os
import random
import struct

U32, I32, F32, BOOL, TEXT, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10


class Signed(int):
    """An integer that is stored as I32."""


class Long(int):
    """An integer that is stored as U64."""


def pack_text(s):
    s = s.encode()
    return struct.pack("<Q", len(s)) + s


def pack_value(v):
    if isinstance(v, bool):
        return struct.pack("<I?", BOOL, v)
    if isinstance(v, Signed):
        return struct.pack("<Ii", I32, v)
    if isinstance(v, Long):
        return struct.pack("<IQ", U64, v)
    if isinstance(v, int):
        return struct.pack("<II", U32, v)
    if isinstance(v, float):
        return struct.pack("<If", F32, v)
    if isinstance(v, str):
        return struct.pack("<I", TEXT) + pack_text(v)
    packed = [pack_value(x) for x in v]
    return struct.pack("<I", ARRAY) + packed[0][:4] + struct.pack("<Q", len(v)) + b"".join(
        x[4:] for x in packed)


def write_gguf(path, keys, tensors):
    """keys: name to value.  tensors: name to (shape, floats); a shape ends with the row length."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        head += pack_text(key) + pack_value(value)
    offset, data = 0, b""
    for name, (shape, values) in tensors.items():
        head += pack_text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", 0, offset)
        raw = struct.pack("<%df" % len(values), *values)
        data += raw + bytes(-len(raw) % 32)
        offset = len(data)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def write_sparse_gguf(path, keys, tensors):
    """tensors: name to (shape, ggml type).  All values are zeros that take no space on the disk,
    except divisors of frequencies, which are 1."""
    block = {0: (1, 4), 1: (1, 2), 2: (32, 18), 42: (64, 18)}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        head += pack_text(key) + pack_value(value)
    offset, ones = 0, []
    for name, (shape, kind) in tensors.items():
        head += pack_text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", kind, offset)
        if name == "rope_freqs.weight":
            ones.append((offset, shape[0]))
        offset += math.prod(shape) // block[kind][0] * block[kind][1]
        offset += -offset % 32
    head += bytes(-len(head) % 32)
    with open(path, "wb") as f:
        f.write(head)
        f.truncate(len(head) + offset)
        for at, n in ones:
            f.seek(len(head) + at)
            f.write(struct.pack("<f", 1.0) * n)
    return path


def gemma4(path, keys=None, more=None, n_embd=64, n_ff=32, n_expert=0, n_ff_expert=32, sliding=()):
    """Write a Gemma 4 file of zeros with heads of 32.  keys and more replace; None removes."""
    a, b, f32, q4 = "gemma4.", "blk.%d.", 0, 2
    n_layer = len(sliding) if sliding else 1
    k = {"general.architecture": "gemma4", a + "block_count": n_layer,
         a + "context_length": 512, a + "embedding_length": n_embd,
         a + "feed_forward_length": n_ff, a + "attention.head_count": 2,
         a + "attention.head_count_kv": 1, a + "attention.key_length": 32,
         a + "attention.value_length": 32, a + "attention.key_length_swa": 32,
         a + "attention.value_length_swa": 32, a + "attention.sliding_window": 16,
         a + "attention.sliding_window_pattern": [bool(s) for s in sliding] or [False],
         a + "attention.layer_norm_rms_epsilon": 1e-6, a + "rope.freq_base": 1e6,
         a + "rope.dimension_count": 32, a + "rope.dimension_count_swa": 32,
         a + "embedding_length_per_layer_input": 0}
    t = {"token_embd.weight": ((96, n_embd), q4), "output_norm.weight": ((n_embd,), f32),
         "rope_freqs.weight": ((16,), f32)}
    for i in range(n_layer):
        y = {n + ".weight": ((n_embd,), f32) for n in (
            "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")}
        y.update({"attn_q.weight": ((64, n_embd), q4), "attn_k.weight": ((32, n_embd), q4),
                  "attn_v.weight": ((32, n_embd), q4), "attn_output.weight": ((n_embd, 64), q4),
                  "attn_q_norm.weight": ((32,), f32), "attn_k_norm.weight": ((32,), f32),
                  "ffn_gate.weight": ((n_ff, n_embd), q4), "ffn_up.weight": ((n_ff, n_embd), q4),
                  "ffn_down.weight": ((n_embd, n_ff), q4)})
        if n_expert > 0:
            y.update({n + ".weight": ((n_embd,), f32) for n in (
                "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2")})
            y.update({"ffn_gate_inp.weight": ((n_expert, n_embd), q4),
                      "ffn_gate_inp.scale": ((n_embd,), f32),
                      "ffn_down_exps.scale": ((n_expert,), f32),
                      "ffn_gate_up_exps.weight": ((n_expert, 2 * n_ff_expert, n_embd), q4),
                      "ffn_down_exps.weight": ((n_expert, n_embd, n_ff_expert), q4)})
        t.update({b % i + n: v for n, v in y.items()})
    if n_expert > 0:
        k.update({a + "expert_count": n_expert, a + "expert_used_count": 2,
                  a + "expert_feed_forward_length": n_ff_expert})
    k.update({a + n: v for n, v in (keys or {}).items()})
    t.update(more or {})
    return write_sparse_gguf(path, {n: v for n, v in k.items() if v is not None},
                             {n: v for n, v in t.items() if v is not None})


def write_safetensors(path, tensors):
    head, data = {}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack("<%df" % len(values), *values)
        head[name] = {"dtype": "F32", "shape": list(shape),
                      "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Model:
    """Make a llama with the requested biases.  Weights have the row order of a snapshot."""
    n_layer, n_embd, n_head, n_kv, dim, n_ff, n_vocab = 2, 32, 4, 2, 8, 48, 40
    eps, base = 1e-5, 10000.0

    def __init__(self, attn_bias="", ffn_bias=False, seed=1):
        """attn_bias: letters of q, k, v, o that have a bias."""
        self.random = random.Random(seed)
        d, kv, ff = self.n_head * self.dim, self.n_kv * self.dim, self.n_ff
        self.outside = {"embed_tokens.weight": self.matrix(self.n_vocab, self.n_embd),
                        "norm.weight": self.vector(self.n_embd, 1)}
        self.head = self.matrix(self.n_vocab, self.n_embd)
        self.layers = []
        for _ in range(self.n_layer):
            y = {"input_layernorm.weight": self.vector(self.n_embd, 1),
                 "post_attention_layernorm.weight": self.vector(self.n_embd, 1)}
            for letter, n in (("q", d), ("k", kv), ("v", kv)):
                y["self_attn.%s_proj.weight" % letter] = self.matrix(n, self.n_embd)
            y["self_attn.o_proj.weight"] = self.matrix(self.n_embd, d)
            y["mlp.gate_proj.weight"] = self.matrix(ff, self.n_embd)
            y["mlp.up_proj.weight"] = self.matrix(ff, self.n_embd)
            y["mlp.down_proj.weight"] = self.matrix(self.n_embd, ff)
            for letter in attn_bias:
                n = {"q": d, "o": self.n_embd}.get(letter, kv)
                y["self_attn.%s_proj.bias" % letter] = self.vector(n, 0)
            if ffn_bias:
                y["mlp.gate_proj.bias"] = self.vector(ff, 0)
                y["mlp.up_proj.bias"] = self.vector(ff, 0)
                y["mlp.down_proj.bias"] = self.vector(self.n_embd, 0)
            self.layers.append(y)

    def matrix(self, n_row, n_col):
        scale = 1.5 / math.sqrt(n_col)
        return (n_row, n_col), [to_f32(self.random.gauss(0, scale))
                                for _ in range(n_row * n_col)]

    def vector(self, n, mean):
        return (n,), [to_f32(self.random.gauss(mean, 0.4)) for _ in range(n)]

    # --- files ---

    def config(self):
        return {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                "hidden_size": self.n_embd, "intermediate_size": self.n_ff,
                "num_hidden_layers": self.n_layer, "num_attention_heads": self.n_head,
                "num_key_value_heads": self.n_kv, "head_dim": self.dim,
                "vocab_size": self.n_vocab, "max_position_embeddings": 256,
                "rms_norm_eps": self.eps, "rope_theta": self.base, "hidden_act": "silu",
                "tie_word_embeddings": False}

    def snapshot(self, folder, config=None, more=None):
        tensors = {"model." + name: t for name, t in self.outside.items()}
        tensors["lm_head.weight"] = self.head
        for i, y in enumerate(self.layers):
            for name, t in y.items():
                tensors["model.layers.%d.%s" % (i, name)] = t
        tensors.update(more or {})
        os.makedirs(folder, exist_ok=True)
        write_safetensors(os.path.join(folder, "model.safetensors"),
                          {k: t for k, t in tensors.items() if t is not None})
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump({**self.config(), **(config or {})}, f)
        return folder

    def permuted(self, tensor, n_head):
        """Returns rows of q or k in the order of llama's converter: pairs become neighbours."""
        shape, values = tensor
        width = shape[1] if len(shape) == 2 else 1
        half, out = self.dim // 2, []
        for h in range(n_head):
            for j in range(half):
                for part in (0, 1):
                    row = h * self.dim + part * half + j
                    out += values[row * width:(row + 1) * width]
        return shape, out

    def keys(self, arch="llama"):
        return {"general.architecture": arch, "general.name": "tiny",
                arch + ".block_count": self.n_layer, arch + ".context_length": 256,
                arch + ".embedding_length": self.n_embd,
                arch + ".feed_forward_length": self.n_ff,
                arch + ".attention.head_count": self.n_head,
                arch + ".attention.head_count_kv": self.n_kv,
                arch + ".attention.key_length": self.dim,
                arch + ".attention.value_length": self.dim,
                arch + ".attention.layer_norm_rms_epsilon": self.eps,
                arch + ".rope.freq_base": self.base}

    def gguf_tensors(self, arch="llama", fuse=False):
        names = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
                 "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
                 "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
        tensors = {"token_embd.weight": self.outside["embed_tokens.weight"],
                   "output_norm.weight": self.outside["norm.weight"],
                   "output.weight": self.head}
        for i, y in enumerate(self.layers):
            prefix = "blk.%d." % i
            for name, t in y.items():
                stem, kind = name.rsplit(".", 1)
                if stem in names:
                    tensors[prefix + names[stem] + "." + kind] = t
            for kind in ("weight", "bias"):
                qkv = [y.get("self_attn.%s_proj.%s" % (c, kind)) for c in "qkv"]
                if qkv[0] is None:
                    continue
                if arch == "llama":
                    qkv = [self.permuted(qkv[0], self.n_head), self.permuted(qkv[1], self.n_kv),
                           qkv[2]]
                if fuse:
                    rows = sum(t[0][0] for t in qkv)
                    tensors[prefix + "attn_qkv." + kind] = (
                        (rows,) + qkv[0][0][1:], [x for t in qkv for x in t[1]])
                else:
                    for c, t in zip("qkv", qkv):
                        tensors[prefix + "attn_%s.%s" % (c, kind)] = t
        return tensors

    def gguf(self, path, arch="llama", fuse=False, keys=None, more=None):
        """keys and more are added or replaced; None removes."""
        tensors = {**self.gguf_tensors(arch, fuse), **(more or {})}
        keys = {**self.keys(arch), **(keys or {})}
        write_gguf(path, {k: v for k, v in keys.items() if v is not None},
                   {k: t for k, t in tensors.items() if t is not None})
        return path

    # --- the reference ---

    def multiply(self, tensor, bias, x):
        (n_row, n_col), w = tensor
        y = [sum(w[r * n_col + c] * x[c] for c in range(n_col)) for r in range(n_row)]
        return y if bias is None else [a + b for a, b in zip(y, bias[1])]

    def norm(self, x, w):
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + self.eps)
        return [v * scale * g for v, g in zip(x, w[1])]

    def rotate(self, x, pos):
        half, out = self.dim // 2, list(x)
        for h in range(0, len(x), self.dim):
            for j in range(half):
                angle = pos * self.base ** (-2 * j / self.dim)
                a, b = x[h + j], x[h + half + j]
                out[h + j] = a * math.cos(angle) - b * math.sin(angle)
                out[h + half + j] = b * math.cos(angle) + a * math.sin(angle)
        return out

    def attend(self, q, keys, values):
        out = []
        for h in range(self.n_head):
            g = h // (self.n_head // self.n_kv) * self.dim
            mine = q[h * self.dim:(h + 1) * self.dim]
            s = [sum(a * b for a, b in zip(mine, k[g:g + self.dim])) / math.sqrt(self.dim)
                 for k in keys]
            p = [math.exp(v - max(s)) for v in s]
            out += [sum(w * v[g + j] for w, v in zip(p, values)) / sum(p)
                    for j in range(self.dim)]
        return out

    def logits(self, ids):
        """Returns a row of logits for each id."""
        cache, rows = [([], []) for _ in self.layers], []
        for pos, token in enumerate(ids):
            (_, n), table = self.outside["embed_tokens.weight"]
            x = table[token * n:(token + 1) * n]
            for y, (keys, values) in zip(self.layers, cache):
                def project(name, v, y=y):
                    return self.multiply(y[name + ".weight"], y.get(name + ".bias"), v)
                h = self.norm(x, y["input_layernorm.weight"])
                keys.append(self.rotate(project("self_attn.k_proj", h), pos))
                values.append(project("self_attn.v_proj", h))
                q = self.rotate(project("self_attn.q_proj", h), pos)
                o = project("self_attn.o_proj", self.attend(q, keys, values))
                x = [a + b for a, b in zip(x, o)]
                h = self.norm(x, y["post_attention_layernorm.weight"])
                gate = [v / (1 + math.exp(-v)) for v in project("mlp.gate_proj", h)]
                up = project("mlp.up_proj", h)
                m = project("mlp.down_proj", [a * b for a, b in zip(gate, up)])
                x = [a + b for a, b in zip(x, m)]
            rows.append(self.multiply(self.head, None,
                                      self.norm(x, self.outside["norm.weight"])))
        return rows
