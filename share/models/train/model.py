"""Gemma 4 in small, complete: per-layer embeddings, sliding and global attention, layers that
share keys and values and have a feed-forward of double width, norms of queries and keys,
proportional rope, scalars per layer, tied embedding, soft cap.

Matrices are [out, in].  B rows of T tokens, one conversation each, padded at its end.  The
residual stream is float32; operands of matrix products are bfloat16.
"""
import dataclasses

import torch
from torch import nn
from torch.nn import functional as F

import ops


@dataclasses.dataclass
class Shape:
    vocab: int = 2560
    hidden: int = 256
    layers: int = 6
    period: int = 3          # the last layer of each period is global
    shared: int = 3          # the last layers read keys and values of earlier ones
    heads: int = 4           # queries; one head of keys and values
    head_sliding: int = 64
    head_global: int = 128
    window: int = 64
    ff: int = 256            # twice as wide in shared layers
    per_layer: int = 128     # width of the per-layer embedding
    context: int = 4096
    rope_base_sliding: float = 1e4
    rope_base_global: float = 1e6
    rope_part: float = 0.25  # of the global head that rotates
    cap: float = 30.0
    eps: float = 1e-6

    def is_sliding(self, layer):
        return layer % self.period != self.period - 1

    def head(self, layer):
        return self.head_sliding if self.is_sliding(layer) else self.head_global

    def is_shared(self, layer):
        return layer >= self.layers - self.shared

    def donor(self, layer):
        """The layer whose keys and values this one reads."""
        if not self.is_shared(layer):
            return layer
        return max(i for i in range(self.layers - self.shared)
                   if self.is_sliding(i) == self.is_sliding(layer))


def _matrix(rows, cols, std=None):
    return nn.Parameter(torch.randn(rows, cols) * (cols ** -0.5 if std is None else std))


def _vector(n, start=1.0):
    return nn.Parameter(torch.full((n,), start))


def multiply(x, matrix):
    """[..., in] x [out, in] -> [..., out], in bfloat16."""
    return F.linear(x.bfloat16(), matrix.bfloat16())


class Layer(nn.Module):
    def __init__(self, shape, index):
        super().__init__()
        s, h, d = shape, shape.hidden, shape.head(index)
        self.shape, self.index = shape, index
        ff = s.ff * (2 if s.is_shared(index) else 1)
        self.attn_norm, self.post_attention_norm = _vector(h), _vector(h, 0.3)
        self.ffn_norm, self.post_ffw_norm = _vector(h), _vector(h, 0.3)
        self.post_norm = _vector(h, 0.3)
        # Attention has the factor 1: the norms begin where 1 / sqrt(d) would put the scores.
        self.attn_q_norm, self.attn_q = _vector(d, d ** -0.25), _matrix(s.heads * d, h)
        if not s.is_shared(index):
            self.attn_k_norm = _vector(d, d ** -0.25)
            self.attn_k, self.attn_v = _matrix(d, h), _matrix(d, h)
        self.attn_output = _matrix(h, s.heads * d)
        self.ffn_gate, self.ffn_up = _matrix(ff, h), _matrix(ff, h)
        self.ffn_down = _matrix(h, ff)
        self.inp_gate, self.proj = _matrix(s.per_layer, h), _matrix(h, s.per_layer)
        self.layer_output_scale = _vector(1)

    def forward(self, x, u, rope, seen, store, p, seed):
        """u: the layer's per-layer input; seen: positions of all places so far; store: layer ->
        (keys, values), where the layers that own them put theirs; p: dropout."""
        eps, seed = self.shape.eps, seed * 100 + self.index * 3
        h = ops.Norm.apply(x, self.attn_norm, eps)
        x = ops.AddNorm.apply(x, self._attend(h, rope, seen, store), self.post_attention_norm,
                              eps, p, seed)
        h = ops.Norm.apply(x, self.ffn_norm, eps)
        m = multiply(ops.Gelu.apply(multiply(h, self.ffn_gate), multiply(h, self.ffn_up)),
                     self.ffn_down)
        x = ops.AddNorm.apply(x, m, self.post_ffw_norm, eps, p, seed + 1)
        y = multiply(ops.Gelu.apply(multiply(x, self.inp_gate), u), self.proj)
        x = ops.AddNorm.apply(x, y, self.post_norm, eps, p, seed + 2)
        return x * self.layer_output_scale

    def _attend(self, h, rope, seen, store):
        s, (b, t, _) = self.shape, h.shape
        d = s.head(self.index)
        q = ops.Heads.apply(multiply(h, self.attn_q), self.attn_q_norm, *rope, s.heads, s.eps)
        if not s.is_shared(self.index):
            k = ops.Heads.apply(multiply(h, self.attn_k), self.attn_k_norm, *rope, 1, s.eps)
            v = ops.Heads.apply(multiply(h, self.attn_v), None, None, None, 1, s.eps)
            new = k.view(b, t, d), v.view(b, t, d)
            old = store.get(self.index)
            store[self.index] = new if old is None else tuple(
                torch.cat(pair, 1) for pair in zip(old, new))
        k, v = store[s.donor(self.index)]
        score = torch.bmm(q.view(b, s.heads * t, d), k.transpose(1, 2)).view(b, s.heads, t, -1)
        window = s.window if s.is_sliding(self.index) else 1 << 40
        weight = ops.Softmax.apply(score, seen, window).view(b, s.heads * t, -1)
        out = torch.bmm(weight, v).view(b, s.heads, t, d)
        return multiply(out.transpose(1, 2).reshape(b, t, s.heads * d), self.attn_output)


class Guide(nn.Module):
    def __init__(self, shape=Shape()):
        super().__init__()
        self.shape, s = shape, shape
        self.token_embd = _matrix(s.vocab, s.hidden, s.hidden ** -0.5)
        self.per_layer_token_embd = _matrix(s.vocab, s.layers * s.per_layer,
                                            s.per_layer ** -0.5)
        self.per_layer_model_proj = _matrix(s.layers * s.per_layer, s.hidden, 1.0)
        self.per_layer_proj_norm = _vector(s.per_layer)
        self.blk = nn.ModuleList(Layer(s, i) for i in range(s.layers))
        self.output_norm = _vector(s.hidden)

    def rope(self, positions, sliding):
        """Cosines and sines [B, T, d / 2]."""
        s = self.shape
        d = s.head_sliding if sliding else s.head_global
        base = s.rope_base_sliding if sliding else s.rope_base_global
        f = base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
        if not sliding:
            f[int(s.rope_part * d / 2):] = 0
        angle = positions.double().unsqueeze(-1) * f
        return angle.cos().float(), angle.sin().float()

    def _per_layer_inputs(self, ids, e, table):
        """[layers, B, T, per_layer]"""
        s, (b, t) = self.shape, ids.shape
        c = multiply(e, self.per_layer_model_proj).float() * s.hidden ** -0.5
        c = ops.Norm.apply(c.view(b, t, s.layers, -1), self.per_layer_proj_norm, s.eps)
        rows = F.embedding(ids, table) * s.per_layer ** 0.5
        u = (c + rows.view(b, t, s.layers, -1)) * 2 ** -0.5
        return u.bfloat16().permute(2, 0, 1, 3).contiguous()

    def forward(self, ids, positions, store=None, past=None, tables=None, dropout=0.0, seed=0):
        """The stream before the output head, [B, T, hidden], in bfloat16.  To continue rows,
        give the same store and the positions it holds.  tables: the embedding and the per-layer
        embedding, if they are not the model's own."""
        s, store = self.shape, {} if store is None else store
        embedding, per_layer = tables or (self.token_embd, self.per_layer_token_embd)
        x = F.embedding(ids, embedding) * s.hidden ** 0.5
        u = self._per_layer_inputs(ids, x, per_layer)
        seen = (positions if past is None else torch.cat((past, positions), 1)).contiguous()
        rope = {k: self.rope(positions, k) for k in (True, False)}
        for i, layer in enumerate(self.blk):
            x = layer(x, u[i], rope[s.is_sliding(i)], seen, store, dropout, seed)
        return ops.Norm.apply(x, self.output_norm, s.eps)

    def logits(self, x):
        """With the soft cap, for use."""
        y = multiply(x, self.token_embd).float()
        return self.shape.cap * torch.tanh(y / self.shape.cap)


def count(model):
    return sum(p.numel() for p in model.parameters())
