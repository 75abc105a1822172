"""Write small model files with random weights, for tests that need a special shape.

    m = llama(head_dim=64)
    m.tensors["blk.0.attn_k.weight"].scale_rows([3], 12)
    m.write("made.gguf")

All tensors are F32.  Equal seeds give equal files.
"""
import array
import math
import random
import struct
import sys

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
VOCAB = 128


class Tensor:
    """rows x cols values, one row after the other.  A vector has one row.  Experts are n_matrix
    matrices, one after the other."""

    def __init__(self, rows, cols, values, is_vector=False, n_matrix=0):
        self.rows, self.cols, self.is_vector = rows, cols, is_vector
        self.n_matrix = n_matrix
        self.values = array.array("f", values)

    def scale_rows(self, rows, by):
        for r in rows:
            for i in range(r * self.cols, (r + 1) * self.cols):
                self.values[i] *= by

    def scale_cols(self, cols, by):
        for c in cols:
            for i in range(c, len(self.values), self.cols):
                self.values[i] *= by


class Model:
    def __init__(self, arch, seed):
        self.random = random.Random(seed)
        self.keys = [("general.architecture", STRING, arch)]
        self.tensors = {}

    def matrix(self, name, rows, cols, gain=1.0):
        sigma = gain / math.sqrt(cols)
        self.tensors[name] = Tensor(rows, cols, (self.random.gauss(0, sigma)
                                                 for _ in range(rows * cols)))

    def vector(self, name, n, centre=1.0):
        self.tensors[name] = Tensor(1, n, (centre * self.random.uniform(0.8, 1.2)
                                           for _ in range(n)), True)

    def add_vocab(self):
        """Returns tokens that no test checks: bytes, and names for the rest."""
        names = [chr(33 + i) for i in range(94)] + [f"t{i}" for i in range(94, VOCAB)]
        self.keys += [("tokenizer.ggml.model", STRING, "gpt2"),
                      ("tokenizer.ggml.pre", STRING, "gpt-2"),
                      ("tokenizer.ggml.tokens", (STRING,), names),
                      ("tokenizer.ggml.token_type", (I32,), [1] * VOCAB),
                      ("tokenizer.ggml.merges", (STRING,), ["! !"]),
                      ("tokenizer.ggml.bos_token_id", U32, VOCAB - 1),
                      ("tokenizer.ggml.eos_token_id", U32, VOCAB - 1)]

    def write(self, path):
        head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)))
        for name, kind, value in self.keys:
            head += _text(name)
            if isinstance(kind, tuple):
                head += struct.pack("<IIQ", ARRAY, kind[0], len(value))
                for v in value:
                    head += _value(kind[0], v)
            else:
                head += struct.pack("<I", kind) + _value(kind, value)
        data = bytearray()
        for name, t in self.tensors.items():
            dims = [t.cols] if t.is_vector else [t.cols, t.rows]
            dims += [t.n_matrix] if t.n_matrix > 0 else []
            head += _text(name)
            head += struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
            values = array.array("f", t.values)
            if sys.byteorder == "big":
                values.byteswap()
            data += values.tobytes()
            data += bytes(-len(data) % 32)
        head += bytes(-len(head) % 32)
        with open(path, "wb") as f:
            f.write(head + data)


def _text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def _value(kind, v):
    if kind == STRING:
        return _text(v)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], v)


def _feed_forward(m, g, n_embd, n_ff):
    m.vector(g + "ffn_norm.weight", n_embd)
    m.matrix(g + "ffn_gate.weight", n_ff, n_embd)
    m.matrix(g + "ffn_up.weight", n_ff, n_embd)
    m.matrix(g + "ffn_down.weight", n_embd, n_ff)


def llama(head_dim, heads=4, heads_kv=2, layers=2, n_embd=64, n_ff=96, seed=1, n_ctx=512,
          arch="llama"):
    """A llama, or with arch a qwen3 or qwen3moe, which norms queries and keys."""
    m = Model(arch, seed)
    for name, value in (("context_length", n_ctx), ("embedding_length", n_embd),
                        ("block_count", layers), ("feed_forward_length", n_ff),
                        ("attention.head_count", heads), ("attention.head_count_kv", heads_kv),
                        ("attention.key_length", head_dim), ("attention.value_length", head_dim),
                        ("rope.dimension_count", head_dim)):
        m.keys.append((f"{arch}.{name}", U32, value))
    m.keys.append((arch + ".attention.layer_norm_rms_epsilon", F32, 1e-5))
    if arch != "llama":
        m.keys.append((arch + ".rope.freq_base", F32, 1e6))
    m.matrix("token_embd.weight", VOCAB, n_embd, math.sqrt(n_embd))
    for i in range(layers):
        g = f"blk.{i}."
        m.vector(g + "attn_norm.weight", n_embd)
        m.matrix(g + "attn_q.weight", heads * head_dim, n_embd, 1.5)
        m.matrix(g + "attn_k.weight", heads_kv * head_dim, n_embd)
        m.matrix(g + "attn_v.weight", heads_kv * head_dim, n_embd)
        m.matrix(g + "attn_output.weight", n_embd, heads * head_dim, 2)
        if arch != "llama":
            m.vector(g + "attn_q_norm.weight", head_dim)
            m.vector(g + "attn_k_norm.weight", head_dim)
        _feed_forward(m, g, n_embd, n_ff)
    m.vector("output_norm.weight", n_embd)
    m.matrix("output.weight", VOCAB, n_embd)
    m.add_vocab()
    return m


def with_experts(m, n_expert, n_used, n_ff, layers=2, n_embd=64):
    """Replace the feed-forward networks of a model by experts, and return the model."""
    arch = m.keys[0][2]
    pool = array.array("f", (m.random.gauss(0, n_embd ** -0.5) for _ in range(5000)))
    m.keys += [(arch + ".expert_count", U32, n_expert),
               (arch + ".expert_used_count", U32, n_used),
               (arch + ".expert_feed_forward_length", U32, n_ff)]
    for i in range(layers):
        g = f"blk.{i}.ffn_"
        for name, rows, cols in (("gate", n_ff, n_embd), ("up", n_ff, n_embd),
                                 ("down", n_embd, n_ff)):
            del m.tensors[g + name + ".weight"]
            values = array.array("f")
            while len(values) < n_expert * rows * cols:
                values += pool[m.random.randrange(1000):]
            del values[n_expert * rows * cols:]
            m.tensors[f"{g}{name}_exps.weight"] = Tensor(rows, cols, values, n_matrix=n_expert)
        m.matrix(g + "gate_inp.weight", n_expert, n_embd)
    return m


def gemma4(head_dim, head_dim_sliding, window=16, heads=4, n_embd=64, n_ff=96,
           keys_as_values=False, seed=1):
    """A sliding and a global layer, and one of each that uses their keys and values.  With
    keys_as_values, global layers have no values of their own."""
    m = Model("gemma4", seed)
    sliding = [True, False, True, False]
    for name, value in (("context_length", 512), ("embedding_length", n_embd),
                        ("block_count", 4), ("feed_forward_length", n_ff),
                        ("attention.head_count", heads), ("attention.head_count_kv", 1),
                        ("attention.key_length", head_dim), ("attention.value_length", head_dim),
                        ("attention.key_length_swa", head_dim_sliding),
                        ("attention.value_length_swa", head_dim_sliding),
                        ("rope.dimension_count", head_dim),
                        ("rope.dimension_count_swa", head_dim_sliding),
                        ("attention.sliding_window", window), ("attention.shared_kv_layers", 2),
                        ("embedding_length_per_layer_input", 0)):
        m.keys.append(("gemma4." + name, U32, value))
    m.keys += [("gemma4.rope.freq_base", F32, 1e6), ("gemma4.rope.freq_base_swa", F32, 1e4),
               ("gemma4.attention.layer_norm_rms_epsilon", F32, 1e-6),
               ("gemma4.final_logit_softcapping", F32, 30.0),
               ("gemma4.attention.sliding_window_pattern", (BOOL,), sliding)]
    half = head_dim // 2
    m.tensors["rope_freqs.weight"] = Tensor(1, half, [1.0] * (half // 4)
                                            + [1e30] * (half - half // 4), True)
    m.matrix("token_embd.weight", VOCAB, n_embd)
    for i, slides in enumerate(sliding):
        g, d = f"blk.{i}.", head_dim_sliding if slides else head_dim
        m.vector(g + "attn_norm.weight", n_embd)
        m.matrix(g + "attn_q.weight", heads * d, n_embd)
        m.matrix(g + "attn_k.weight", d, n_embd)
        if slides or not keys_as_values:
            m.matrix(g + "attn_v.weight", d, n_embd)
        m.vector(g + "attn_q_norm.weight", d, 1.5 * d ** -0.25)
        m.vector(g + "attn_k_norm.weight", d, d ** -0.25)
        m.matrix(g + "attn_output.weight", n_embd, heads * d)
        m.vector(g + "post_attention_norm.weight", n_embd)
        _feed_forward(m, g, n_embd, n_ff)
        m.vector(g + "post_ffw_norm.weight", n_embd)
        m.tensors[g + "layer_output_scale.weight"] = Tensor(1, 1, [1.0], True)
    m.vector("output_norm.weight", n_embd)
    m.add_vocab()
    return m
