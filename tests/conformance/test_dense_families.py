#!/usr/bin/env python3
"""Dense families without published tiny models: random ones against a forward pass in Python, from
GGUF files and from snapshots.

The pass below is written from the formulas of each family, in doubles, and shares nothing with
the engine."""
import json
import math
import os
import random
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import ARR, BOOL, F32, STR, U32, Gguf, f32  # noqa: E402
from model_case import ModelCase  # noqa: E402
from program import MODELS  # noqa: E402
from snapshot_gguf import read_snapshot  # noqa: E402
from test_families import to_bf16, write_snapshot  # noqa: E402

EMBD, HEADS, KV, DIM, FF, LAYERS, VOCAB, WINDOW, EPS = 32, 4, 2, 8, 48, 4, 288, 12, 1e-5
N_ID, LIMIT = 24, 1e-4


class Family:
    """The traits of one family.  The defaults are those of Llama with half-split pairs."""

    def __init__(self, arch, model_type, cls, pairs="half", bias=False, qk=None, pre=True, post=False,
                 second="ffn_norm", mean=False, parallel=False, gate=True, tied=False, window=False,
                 scale=1.0, base=1e4, config=None):
        """qk: "before" or "after" rope.  window: the last of four layers has none, and no rope."""
        self.__dict__.update(locals())
        del self.self


FAMILIES = (
    Family("arcee", "arcee", "ArceeForCausalLM", pairs="near", gate=False,
           config={"hidden_act": "relu2"}),
    Family("cohere2", "cohere2", "Cohere2ForCausalLM", pairs="near", mean=True, parallel=True,
           tied=True, window=True, scale=0.25,
           config={"layer_norm_eps": EPS, "logit_scale": 0.25, "sliding_window_pattern": 4}),
    Family("ernie4_5", "ernie4_5", "Ernie4_5ForCausalLM", pairs="near", tied=True, base=5e5),
    Family("exaone4", "exaone4", "Exaone4ForCausalLM", qk="before", pre=False, post=True, window=True),
    Family("hunyuan-dense", "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", qk="after",
           base=1e4 * 1000 ** (DIM / (DIM - 2)),
           config={"rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}}),
    Family("seed_oss", "seed_oss", "SeedOssForCausalLM", bias=True, second="post_attention_norm",
           base=1e7, config={"attention_bias": True, "attention_out_bias": False}),
)
# Rows of q and k that converters permute, because the snapshot has pairs half a head apart.
PERMUTED = ("arcee",)
SNAPSHOT = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
            "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
            "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm"}


def weights(f, seed):
    """Returns name to (rows, columns or 0, values that BF16 has)."""
    r, out = random.Random(seed), {}

    def put(name, rows, cols, centre=0.0, width=0.25):
        out[name] = (rows, cols, [to_bf16(centre + r.gauss(0, width))
                                  for _ in range(rows * (cols or 1))])

    put("token_embd.weight", VOCAB, EMBD, width=1.0)
    put("output_norm.weight", EMBD, 0, 1.0)
    if not f.tied:
        put("output.weight", VOCAB, EMBD)
    for i in range(LAYERS):
        a = "blk.%d." % i
        for name, rows, cols in (("attn_q", HEADS * DIM, EMBD), ("attn_k", KV * DIM, EMBD),
                                 ("attn_v", KV * DIM, EMBD), ("attn_output", EMBD, HEADS * DIM),
                                 ("ffn_up", FF, EMBD), ("ffn_down", EMBD, FF)):
            put(a + name + ".weight", rows, cols)
            if f.bias and name in ("attn_q", "attn_k", "attn_v"):
                put(a + name + ".bias", rows, 0)
        if f.gate:
            put(a + "ffn_gate.weight", FF, EMBD)
        if f.pre:
            put(a + "attn_norm.weight", EMBD, 0, 1.0)
            if not f.parallel:
                put(a + f.second + ".weight", EMBD, 0, 1.0)
        if f.post:
            put(a + "post_attention_norm.weight", EMBD, 0, 1.0)
            put(a + "post_ffw_norm.weight", EMBD, 0, 1.0)
        if f.qk:
            put(a + "attn_q_norm.weight", DIM, 0, 1.0)
            put(a + "attn_k_norm.weight", DIM, 0, 1.0)
    return out


def product(w, x, bias=None):
    rows, cols, v = w
    return [sum(v[i * cols + k] * x[k] for k in range(cols)) + (bias[2][i] if bias else 0)
            for i in range(rows)]


def norm(x, w, mean=False):
    m = sum(x) / len(x) if mean else 0
    s = math.sqrt(sum((v - m) ** 2 for v in x) / len(x) + EPS)
    return [(v - m) / s * w[2][i] for i, v in enumerate(x)]


def rotate(x, pos, f):
    y = list(x)
    for i in range(DIM // 2):
        a, b = (2 * i, 2 * i + 1) if f.pairs == "near" else (i, i + DIM // 2)
        t = pos * f.base ** (-2 * i / DIM)
        y[a] = x[a] * math.cos(t) - x[b] * math.sin(t)
        y[b] = x[b] * math.cos(t) + x[a] * math.sin(t)
    return y


def heads(f, w, a, word, n, h, pos, turns):
    x = product(w[a + word + ".weight"], h, w.get(a + word + ".bias"))
    out = []
    for i in range(n):
        v = x[i * DIM:(i + 1) * DIM]
        if f.qk == "before":
            v = norm(v, w[a + word + "_norm.weight"])
        if turns:
            v = rotate(v, pos, f)
        if f.qk == "after":
            v = norm(v, w[a + word + "_norm.weight"])
        out.append(v)
    return out


def attend(f, w, a, hs, is_local):
    turns = is_local or not f.window
    q = [heads(f, w, a, "attn_q", HEADS, h, p, turns) for p, h in enumerate(hs)]
    k = [heads(f, w, a, "attn_k", KV, h, p, turns) for p, h in enumerate(hs)]
    v = [product(w[a + "attn_v.weight"], h, w.get(a + "attn_v.bias")) for h in hs]
    out = []
    for p in range(len(hs)):
        o = []
        for i in range(HEADS):
            g = i // (HEADS // KV)
            seen = [j for j in range(p + 1) if not is_local or p - j < WINDOW]
            s = [sum(x * y for x, y in zip(q[p][i], k[j][g])) / math.sqrt(DIM) for j in seen]
            e = [math.exp(x - max(s)) for x in s]
            o += [sum(e[n] * v[j][g * DIM + d] for n, j in enumerate(seen)) / sum(e)
                  for d in range(DIM)]
        out.append(product(w[a + "attn_output.weight"], o))
    return out


def feed(f, w, a, h):
    up = product(w[a + "ffn_up.weight"], h)
    if f.gate:
        gate = product(w[a + "ffn_gate.weight"], h)
        up = [u * g / (1 + math.exp(-g)) for u, g in zip(up, gate)]
    else:
        up = [max(u, 0) ** 2 for u in up]
    return product(w[a + "ffn_down.weight"], up)


def run(f, w, ids):
    """Returns the logits of all positions."""
    embd = w["token_embd.weight"][2]
    xs = [embd[i * EMBD:(i + 1) * EMBD] for i in ids]
    for layer in range(LAYERS):
        a = "blk.%d." % layer
        is_local = f.window and layer % 4 != 3
        hs = [norm(x, w[a + "attn_norm.weight"], f.mean) if f.pre else x for x in xs]
        ys = attend(f, w, a, hs, is_local)
        for n, (x, y) in enumerate(zip(xs, ys)):
            if f.post:
                y = norm(y, w[a + "post_attention_norm.weight"])
            x = [u + v for u, v in zip(x, y)]
            h = hs[n] if f.parallel else norm(x, w[a + f.second + ".weight"]) if f.pre else x
            y = feed(f, w, a, h)
            if f.post:
                y = norm(y, w[a + "post_ffw_norm.weight"])
            xs[n] = [u + v for u, v in zip(x, y)]
    out = []
    for x in xs:
        h = norm(x, w["output_norm.weight"], f.mean)
        out += [f.scale * y for y in product(w.get("output.weight", w["token_embd.weight"]), h)]
    return out


def to_gguf(f, w):
    g = Gguf()
    tokens = Gguf(os.path.join(MODELS, "f-laguna.gguf"))
    g.keys = {k: v for k, v in tokens.keys.items() if k.startswith("tokenizer.")}
    g.keys["general.architecture"] = (STR, f.arch)
    eps = "layer_norm_epsilon" if f.mean else "layer_norm_rms_epsilon"
    for key, value in {"block_count": (U32, LAYERS), "context_length": (U32, 512),
                       "embedding_length": (U32, EMBD), "feed_forward_length": (U32, FF),
                       "attention.head_count": (U32, HEADS), "attention.head_count_kv": (U32, KV),
                       "attention.key_length": (U32, DIM), "attention.value_length": (U32, DIM),
                       "attention." + eps: (F32, EPS), "rope.freq_base": (F32, f.base)}.items():
        g.keys["%s.%s" % (f.arch, key)] = value
    if f.window:
        g.keys[f.arch + ".attention.sliding_window"] = (U32, WINDOW)
    if f.scale != 1:
        g.keys[f.arch + ".logit_scale"] = (F32, f.scale)
    for name, (rows, cols, values) in w.items():
        g.tensors[name] = ([cols, rows] if cols else [rows], 0, f32(values))
    return g


def spread(w, n_head):
    """Move the two values of a pair, which are neighbours, half a head apart."""
    rows, cols, v = w
    order = [h * DIM + 2 * (i % (DIM // 2)) + i // (DIM // 2) for h in range(n_head)
             for i in range(DIM)]
    return rows, cols, [v[r * cols + k] for r in order for k in range(cols)]


def to_snapshot(f, w, path):
    tensors = {}
    for name, (rows, cols, values) in w.items():
        part = name.split(".")
        if f.arch in PERMUTED and part[-2] in ("attn_q", "attn_k"):
            values = spread((rows, cols, values), HEADS if part[-2] == "attn_q" else KV)[2]
        word = {"token_embd": "embed_tokens", "output_norm": "norm"}.get(part[0])
        if part[0] == "output":
            other = "lm_head.weight"
        elif word:
            other = "model.%s.weight" % word
        else:
            word = SNAPSHOT.get(part[2])
            if word is None and part[2] in ("attn_q_norm", "attn_k_norm"):
                word = "self_attn." + ({"attn_q_norm": "query_layernorm", "attn_k_norm": "key_layernorm"}
                                       if f.qk == "after" else
                                       {"attn_q_norm": "q_norm", "attn_k_norm": "k_norm"})[part[2]]
            elif word is None:
                word = "post_feedforward_layernorm" if part[2] == "post_ffw_norm" else \
                    "post_attention_layernorm"
            other = "model.layers.%s.%s.%s" % (part[1], word, part[3])
        tensors[other] = ([rows, cols] if cols else [rows], values)
    config = {"model_type": f.model_type, "architectures": [f.cls], "hidden_size": EMBD,
              "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": KV, "head_dim": DIM, "vocab_size": VOCAB, "hidden_act": "silu",
              "rms_norm_eps": EPS, "max_position_embeddings": 512, "rope_theta": f.base,
              "tie_word_embeddings": f.tied, "sliding_window": WINDOW if f.window else None,
              **(f.config or {})}
    return write_snapshot(path, tensors, {}, config)


class DenseFamilies(ModelCase):
    def check(self, f):
        w = weights(f, f.arch)
        want = run(f, w, [(7 * i * i + 3) % 90 for i in range(N_ID)])
        self.assertGreater(max(want) - min(want), 1)
        for model in (to_gguf(f, w), to_snapshot(f, w, self.path("snapshot"))):
            got = self.eval(model, N_ID)
            self.assertIsInstance(got, tuple, got)
            self.assertEqual(len(want), len(got))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(want, got)), LIMIT, f.arch)

    def test_a_window_as_wide_as_the_context(self):
        """It hides nothing, but layers without it do not rotate."""
        for f in FAMILIES:
            if not f.window:
                continue
            g = to_gguf(f, weights(f, f.arch))
            g.keys[f.arch + ".attention.sliding_window"] = (U32, 512)
            g.keys[f.arch + ".context_length"] = (U32, 1024)
            want = self.eval(g, N_ID)
            g.keys[f.arch + ".context_length"] = (U32, 512)
            self.same(want, self.eval(g, N_ID), f.arch)

    def stated(self, arch, folder, **fields):
        """Returns the logits of a snapshot with other fields; None: without the field."""
        f = next(f for f in FAMILIES if f.arch == arch)
        path = to_snapshot(f, weights(f, arch), self.path(folder))
        name = os.path.join(path, "config.json")
        with open(name) as file:
            config = json.load(file)
        for key, value in fields.items():
            if value == "missing":
                del config[key]
            else:
                config[key] = value
        with open(name, "w") as file:
            json.dump(config, file)
        return self.eval(path, N_ID)

    def test_a_period_of_windows(self):
        """A number means the same as a list of layers; EXAONE's letters need the list."""
        def kinds(n):
            return ["full_attention" if i % n == n - 1 else "sliding_attention"
                    for i in range(LAYERS)]
        for arch in "exaone4", "cohere2":
            want = self.stated(arch, arch + "-list", layer_types=kinds(2), sliding_window_pattern=2)
            with self.subTest(arch):
                self.same(want, self.stated(arch, arch + "-number", sliding_window_pattern=2))
                self.differs(want, self.stated(arch, arch + "-usual", sliding_window_pattern=4))
        error = self.stated("exaone4", "letters", sliding_window_pattern="LLLG")
        self.assertIn("sliding_window_pattern", error)
        self.same(self.stated("exaone4", "numbers", sliding_window_pattern=4),
                  self.stated("exaone4", "both", sliding_window_pattern="LLLG",
                              layer_types=kinds(4)))

    def test_without_a_window(self):
        """Then all layers of EXAONE 4 rotate, and none of Cohere 2."""
        still = self.stated("cohere2", "full", layer_types=["full_attention"] * LAYERS)
        self.same(still, self.stated("cohere2", "null", sliding_window=None))
        self.differs(self.stated("cohere2", "usual"), still)
        all_full = ["full_attention"] * LAYERS
        self.differs(self.stated("exaone4", "nope", layer_types=all_full),
                     self.stated("exaone4", "rope", sliding_window=None))
        f = next(f for f in FAMILIES if f.arch == "cohere2")
        g = to_gguf(f, weights(f, f.arch))
        del g.keys["cohere2.attention.sliding_window"]
        self.refused(g, "cohere2.attention.sliding_window", "missing")

    def test_the_usual_base_of_seed_oss(self):
        """Its class in transformers has none of its own."""
        self.same(self.stated("seed_oss", "stated", rope_theta=1e4),
                  self.stated("seed_oss", "unsaid", rope_theta="missing"))

    def test_the_text_part_of_exaone_4_5(self):
        """Its files have a layer that only drafts, snapshots also a part for images."""
        f = next(f for f in FAMILIES if f.arch == "exaone4")
        slides = [i % 4 != 3 for i in range(LAYERS)] + [False]
        w = weights(f, f.arch)
        g = to_gguf(f, w)
        want = self.eval(g, N_ID)
        for name in [n for n in g.tensors if n.startswith("blk.3.")]:
            g.tensors[name.replace("blk.3.", "blk.4.")] = g.tensors[name]
        g.tensors["blk.4.nextn.eh_proj.weight"] = ([2 * EMBD, EMBD], 0, bytes(8 * EMBD * EMBD))
        for key, value in {"block_count": (U32, LAYERS + 1), "nextn_predict_layers": (U32, 1),
                           "attention.sliding_window_pattern": (ARR, (BOOL, slides))}.items():
            g.keys["exaone4." + key] = value
        self.same(want, self.eval(g, N_ID))

        folder = to_snapshot(f, w, self.path("text"))
        config, tensors = read_snapshot(folder)
        more = {name.replace("model.", "model.language_model."): t for name, t in tensors.items()}
        for name in "model.visual.blocks.0.attn.q.weight", "mtp.fc.weight":
            more[name] = ([EMBD, EMBD], [0.5] * EMBD * EMBD)
        for model_type in "exaone4", "exaone4_5_text":
            text = {**config, "model_type": model_type, "num_nextn_predict_layers": 1,
                    "sliding_window_pattern": "LLLG",
                    "layer_types": ["sliding_attention" if s else "full_attention" for s in slides]}
            path = write_snapshot(self.path(model_type), more, {}, {
                "model_type": "exaone4_5", "text_config": text, "vision_config": {},
                "architectures": ["Exaone4_5_ForConditionalGeneration"]})
            self.same(self.eval(folder, N_ID), self.eval(path, N_ID), model_type)


for each in FAMILIES:
    setattr(DenseFamilies, "test_" + each.arch, lambda self, f=each: self.check(f))

if __name__ == "__main__":
    unittest.main(verbosity=2)
