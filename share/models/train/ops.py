"""The operations of kernels.c for PyTorch's autograd."""
import ctypes
import os
import subprocess
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "kernels.c")


def _library():
    """Build for this machine into a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.so")
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-ffast-math",
                        "-fno-finite-math-only", "-shared", "-fPIC", "-o", path, SOURCE, "-lm"],
                       check=True)
        return ctypes.CDLL(path)


LIBRARY = _library()


def _call(name, *args):
    """Tensors are passed as addresses, floats as C floats."""
    raw = []
    for a in args:
        if isinstance(a, torch.Tensor):
            assert a.is_contiguous(), name
            raw.append(ctypes.c_void_p(a.data_ptr()))
        elif isinstance(a, float):
            raw.append(ctypes.c_float(a))
        else:
            raw.append(a if a is None else ctypes.c_long(a))
    getattr(LIBRARY, name)(*raw)


def _bf16(*shape):
    return torch.empty(shape, dtype=torch.bfloat16)


class Norm(torch.autograd.Function):
    """bfloat16 of norm(x) * w."""

    @staticmethod
    def forward(ctx, x, w, eps):
        ctx.save_for_backward(x, w)
        ctx.eps = eps
        y = _bf16(*x.shape)
        _call("norm_forward", y, x, w, x.numel() // len(w), len(w), eps)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.zeros_like(w)
        rows = x.numel() // len(w)
        _call("norm_backward", dx, dw, dy.contiguous(), x, w, rows, len(w), ctx.eps)
        return dx, dw, None


class AddNorm(torch.autograd.Function):
    """x + dropout(norm(y) * w, p).  Equal seeds drop the same elements."""

    @staticmethod
    def forward(ctx, x, y, w, eps, p, seed):
        ctx.save_for_backward(y, w)
        ctx.rest = eps, p, seed * 0x9e3779b1 % 2 ** 32
        out = torch.empty_like(x)
        _call("add_norm_forward", out, x, y, w, x.numel() // len(w), len(w), *ctx.rest)
        return out

    @staticmethod
    def backward(ctx, d):
        y, w = ctx.saved_tensors
        dy, dw, d = torch.empty_like(y), torch.zeros_like(w), d.contiguous()
        _call("add_norm_backward", dy, dw, d, y, w, y.numel() // len(w), len(w), *ctx.rest)
        return d, dy, dw, None, None, None


class Gelu(torch.autograd.Function):
    """gelu(a) * b."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        out = torch.empty_like(a)
        _call("gelu_forward", out, a, b, a.numel())
        return out

    @staticmethod
    def backward(ctx, d):
        a, b = ctx.saved_tensors
        da, db = torch.empty_like(a), torch.empty_like(b)
        _call("gelu_backward", da, db, d.contiguous(), a, b, a.numel())
        return da, db


class Heads(torch.autograd.Function):
    """[B, T, heads * n] -> norm per head, weights, rotation -> [B, heads, T, n]."""

    @staticmethod
    def forward(ctx, x, w, cosine, sine, heads, eps):
        b, t, n = x.shape[0], x.shape[1], x.shape[2] // heads
        ctx.save_for_backward(x, w, cosine, sine)
        ctx.rest = b, t, heads, n, eps
        y = _bf16(b, heads, t, n)
        _call("heads_forward", y, x, w, cosine, sine, *ctx.rest)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, cosine, sine = ctx.saved_tensors
        dx, dw = torch.empty_like(x), None if w is None else torch.zeros_like(w)
        _call("heads_backward", dx, dw, dy.contiguous(), x, w, cosine, sine, *ctx.rest)
        return dx, dw, None, None, None, None


class Softmax(torch.autograd.Function):
    """Scores [B, heads, T, all] become weights; see softmax_forward."""

    @staticmethod
    def forward(ctx, score, positions, window):
        b, heads, t, n = score.shape
        weight = score.contiguous().clone()
        _call("softmax_forward", weight, positions, b, heads, t, n, window)
        ctx.save_for_backward(weight)
        return weight

    @staticmethod
    def backward(ctx, d):
        weight, = ctx.saved_tensors
        d, n = d.contiguous().clone(), weight.shape[-1]
        _call("softmax_backward", d, weight, weight.numel() // n, n)
        return d, None, None


class CrossEntropy(torch.autograd.Function):
    """Sum of weight * -log p(target) over the rows of bfloat16 logits before the soft cap."""

    @staticmethod
    def forward(ctx, logits, target, weight, cap):
        loss, slope = torch.empty(len(logits)), logits.contiguous().clone()
        _call("cross_entropy", loss, slope, target, weight, *logits.shape, cap)
        ctx.save_for_backward(slope)
        return loss.sum()

    @staticmethod
    def backward(ctx, d):
        slope, = ctx.saved_tensors
        return slope * d.to(slope.dtype), None, None, None


class Adam:
    """AdamW over parameters; matrices decay."""

    def __init__(self, parameters, decay, betas=(0.9, 0.98)):
        self.parameters = list(parameters)
        self.decay, self.betas, self.steps = decay, betas, 0
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self.parameters]

    def step(self, gradients, rate, largest_norm):
        """Clip the gradients together to largest_norm, then move the parameters."""
        self.steps += 1
        norm = torch.stack([g.norm() for g in gradients]).norm().item()
        clip = min(1.0, largest_norm / (norm + 1e-9))
        scales = [1 / (1 - b ** self.steps) for b in self.betas]
        for p, g, (m, v) in zip(self.parameters, gradients, self.moments):
            _call("adam", p.data, m, v, g.contiguous(), p.numel(), float(rate),
                  self.decay if p.dim() > 1 else 0.0, *self.betas, *scales, clip)
