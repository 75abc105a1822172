#!/usr/bin/env python3
"""Write a checkpoint of train.py as a GGUF file.

    python3 export.py CHECKPOINT OUT.gguf [--type q8_0|f32]

Matrices have the given type; norms, scales and rope frequencies are F32.
"""
import argparse
import os
import struct

import numpy
import torch

import tokenizer as tok
from model import Guide, Shape

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
FORMATS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}
TYPE_F32, TYPE_Q8_0 = 0, 8
FILE_TYPE = {TYPE_F32: 0, TYPE_Q8_0: 7}
ALIGNMENT = 32
NORMAL, CONTROL, BYTE = 1, 3, 6

# Renders plain conversations as Gemma 4's own template does: the first system turn, then user
# and model turns; consecutive answers are one turn.
TEMPLATE = """\
{{ bos_token }}
{%- for m in messages %}
{%- set role = m['role'] | replace('assistant', 'model') | replace('developer', 'system') %}
{%- set goes_on = role == 'model' and not loop.first \
and messages[loop.index0 - 1]['role'] == 'assistant' %}
{%- if not goes_on %}{{ '<|turn>' + role + '\\n' }}{% endif %}
{{- m['content'] | trim }}
{%- if not (role == 'model' and not loop.last \
and messages[loop.index0 + 1]['role'] == 'assistant') %}{{ '<turn|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|turn>model\\n' }}{% endif %}
"""


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def value(kind, v):
    return text(v) if kind == STRING else struct.pack(FORMATS[kind], v)


def key_value(name, kind, v):
    if isinstance(v, list):
        return (text(name) + struct.pack("<IIQ", ARRAY, kind, len(v))
                + b"".join(value(kind, x) for x in v))
    return text(name) + struct.pack("<I", kind) + value(kind, v)


def q8_0(matrix):
    """Blocks of 32: a 16-bit scale, then 32 signed bytes."""
    x = matrix.reshape(-1, 32)
    scale = (numpy.abs(x).max(1, keepdims=True) / 127).astype("<f2")
    divisor = numpy.where(scale == 0, 1, scale).astype("<f4")
    q = numpy.rint(x / divisor).clip(-127, 127).astype("i1")
    return numpy.concatenate([scale.view("u1"), q.view("u1")], 1).tobytes()


def model_keys(s, prefix="gemma4."):
    sliding = [s.is_sliding(i) for i in range(s.layers)]
    feed = [s.ff * (2 if s.is_shared(i) else 1) for i in range(s.layers)]
    for name, kind, v in (
            ("context_length", U32, s.context), ("embedding_length", U32, s.hidden),
            ("block_count", U32, s.layers), ("feed_forward_length", I32, feed),
            ("attention.head_count", U32, s.heads), ("attention.head_count_kv", U32, 1),
            ("attention.key_length", U32, s.head_global),
            ("attention.value_length", U32, s.head_global),
            ("attention.key_length_swa", U32, s.head_sliding),
            ("attention.value_length_swa", U32, s.head_sliding),
            ("attention.sliding_window", U32, s.window),
            ("attention.sliding_window_pattern", BOOL, sliding),
            ("attention.shared_kv_layers", U32, s.shared),
            ("attention.layer_norm_rms_epsilon", F32, s.eps),
            ("rope.freq_base", F32, s.rope_base_global),
            ("rope.freq_base_swa", F32, s.rope_base_sliding),
            ("rope.dimension_count", U32, s.head_global),
            ("rope.dimension_count_swa", U32, s.head_sliding),
            ("final_logit_softcapping", F32, s.cap),
            ("embedding_length_per_layer_input", U32, s.per_layer)):
        if v is not None:
            yield prefix + name, kind, v


def tokenizer_keys(tokenizer):
    n = len(tokenizer.tokens)
    types = [CONTROL] * len(tok.CONTROL) + [BYTE] * 256
    for name, kind, v in (
            ("model", STRING, "gemma4"), ("tokens", STRING, tokenizer.tokens),
            ("scores", F32, [-1000.0] * n),
            ("token_type", I32, types + [NORMAL] * (n - len(types))),
            ("merges", STRING, [a + " " + b for a, b in tokenizer.merges]),
            ("bos_token_id", U32, tok.BOS), ("eos_token_id", U32, tok.EOS),
            ("eot_token_id", U32, tok.END_TURN), ("unknown_token_id", U32, tok.UNK),
            ("padding_token_id", U32, tok.PAD), ("mask_token_id", U32, tok.MASK),
            ("add_bos_token", BOOL, True), ("add_space_prefix", BOOL, False)):
        yield "tokenizer.ggml." + name, kind, v


def keys(shape, tokenizer, file_type):
    yield "general.architecture", STRING, "gemma4"
    yield "general.type", STRING, "model"
    yield "general.name", STRING, "memwall guide"
    yield "general.license", STRING, "GPL-3.0-or-later"
    yield "general.description", STRING, "Answers questions about memwall; not an assistant."
    yield "general.languages", STRING, ["en"]
    yield "general.file_type", U32, file_type
    yield "general.quantization_version", U32, 2
    yield "general.sampling.temp", F32, 0.1
    yield "general.sampling.top_k", I32, 1
    yield "general.sampling.top_p", F32, 1.0
    yield from model_keys(shape)
    yield from tokenizer_keys(tokenizer)
    yield "tokenizer.chat_template", STRING, TEMPLATE


def tensors(model, matrix_type):
    """(name, shape as GGUF wants it, type, bytes) of all tensors."""
    inverse = numpy.full(model.shape.head_global // 2, 1e30, "<f4")
    inverse[:int(model.shape.rope_part * model.shape.head_global / 2)] = 1
    yield "rope_freqs.weight", list(inverse.shape), TYPE_F32, inverse.tobytes()
    for name, p in model.state_dict().items():
        x = p.float().numpy().astype("<f4")
        name = name.removesuffix(".weight") + ".weight"
        if x.ndim == 2 and matrix_type == TYPE_Q8_0:
            yield name, list(reversed(x.shape)), TYPE_Q8_0, q8_0(x)
        else:
            yield name, list(reversed(x.shape)), TYPE_F32, x.tobytes()


def write_file(path, metadata, rows):
    """A GGUF file of the keys and tensors that keys() and tensors() give."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(metadata))
    head += b"".join(key_value(*k) for k in metadata)
    at = 0
    for name, dims, kind, data in rows:
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)
        at += len(data) + -len(data) % ALIGNMENT
    with open(path + ".new", "wb") as f:
        f.write(head + bytes(-len(head) % ALIGNMENT))
        for _, _, _, data in rows:
            f.write(data + bytes(-len(data) % ALIGNMENT))
    os.replace(path + ".new", path)


def write(path, model, tokenizer, matrix_type):
    write_file(path, list(keys(model.shape, tokenizer, FILE_TYPE[matrix_type])),
               list(tensors(model, matrix_type)))


def load(path):
    """The model and the tokenizer of a checkpoint."""
    state = torch.load(path, map_location="cpu")
    model = Guide(Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    return model.eval(), tok.Tokenizer(state["merges"])


def main():
    p = argparse.ArgumentParser(description="Write a checkpoint as a GGUF file.")
    p.add_argument("checkpoint")
    p.add_argument("out")
    p.add_argument("--type", choices=("q8_0", "f32"), default="q8_0",
                   help="set the type of the matrices")
    args = p.parse_args()
    write(args.out, *load(args.checkpoint), TYPE_F32 if args.type == "f32" else TYPE_Q8_0)


if __name__ == "__main__":
    main()
