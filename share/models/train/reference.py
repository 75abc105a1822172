"""The forward pass of Gemma 4 in plain float32 PyTorch, written to be read: it is what model.py
computes in bfloat16 and what memwall must compute.  One conversation, all logits.

    python3 reference.py CHECKPOINT OUT.f32 ID...     write one row of logits per id
"""
import sys

import torch
from torch.nn.functional import gelu

import export


def norm(x, eps, w=1.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def rotate(x, rope):
    """Pairs are (j, j + d / 2).  x: [heads, T, d]."""
    (c, s), half = rope, x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def attend(layer, h, rope, store):
    s, t = layer.shape, len(h)
    d = s.head(layer.index)
    q = (h @ layer.attn_q.T).view(t, s.heads, d).transpose(0, 1)
    q = rotate(norm(q, s.eps, layer.attn_q_norm), rope)
    if not s.is_shared(layer.index):
        k = norm(h @ layer.attn_k.T, s.eps, layer.attn_k_norm)
        store[layer.index] = rotate(k.unsqueeze(0), rope), norm(h @ layer.attn_v.T, s.eps)
    k, v = store[s.donor(layer.index)]
    window = s.window if s.is_sliding(layer.index) else t
    places = torch.arange(t)
    distance = places[:, None] - places
    hidden = (distance < 0) | (distance >= window)
    weight = (q @ k.transpose(1, 2)).masked_fill(hidden, float("-inf")).softmax(-1)
    return (weight @ v).transpose(0, 1).reshape(t, -1) @ layer.attn_output.T


def logits(model, ids):
    s, t = model.shape, len(ids)
    e = model.token_embd[ids] * s.hidden ** 0.5
    table = model.per_layer_token_embd[ids].view(t, s.layers, -1) * s.per_layer ** 0.5
    c = (e @ model.per_layer_model_proj.T).view(t, s.layers, -1) * s.hidden ** -0.5
    u = (norm(c, s.eps, model.per_layer_proj_norm) + table) * 2 ** -0.5
    x, store = e, {}
    for i, layer in enumerate(model.blk):
        rope = model.rope(torch.arange(t), s.is_sliding(i))
        o = attend(layer, norm(x, s.eps, layer.attn_norm), rope, store)
        x = x + norm(o, s.eps, layer.post_attention_norm)
        h = norm(x, s.eps, layer.ffn_norm)
        m = gelu(h @ layer.ffn_gate.T, approximate="tanh") * (h @ layer.ffn_up.T)
        x = x + norm(m @ layer.ffn_down.T, s.eps, layer.post_ffw_norm)
        y = gelu(x @ layer.inp_gate.T, approximate="tanh") * u[:, i]
        x = x + norm(y @ layer.proj.T, s.eps, layer.post_norm)
        x = x * layer.layer_output_scale
    y = norm(x, s.eps, model.output_norm) @ model.token_embd.T
    return s.cap * torch.tanh(y / s.cap)


def main():
    model, _ = export.load(sys.argv[1])
    with torch.no_grad():
        logits(model, torch.tensor([int(i) for i in sys.argv[3:]])).numpy().tofile(sys.argv[2])


if __name__ == "__main__":
    main()
