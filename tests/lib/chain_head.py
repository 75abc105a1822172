"""Write a model that says a given text (chain_model.py), and a draft head that guesses it.

    model = gemma4_chain(folder, "m", spell("ab", ...))
    assistant(folder, "m-assistant", model, links)    # found beside the model
"""
import os

from chain_model import chain
from gguf_edit import ARR, BOOL, F32, STR, U32, Gguf, f32

N_FF, N_HEAD, DIM, WINDOW = 64, 2, 32, 16


def zeros(rows, cols):
    return [cols, rows], 0, bytes(4 * rows * cols)


def ones(n):
    return [n], 0, f32([1.0] * n)


def layer(i, n, owns_kv, n_ff=N_FF):
    """The tensors of a layer of Gemma 4 that adds zero."""
    t = {"attn_norm.weight": ones(n), "attn_q.weight": zeros(N_HEAD * DIM, n),
         "attn_q_norm.weight": ones(DIM), "attn_output.weight": zeros(n, N_HEAD * DIM),
         "post_attention_norm.weight": ones(n), "ffn_norm.weight": ones(n),
         "ffn_gate.weight": zeros(n_ff, n), "ffn_up.weight": zeros(n_ff, n),
         "ffn_down.weight": zeros(n, n_ff), "post_ffw_norm.weight": ones(n)}
    if owns_kv:
        t.update({"attn_k.weight": zeros(DIM, n), "attn_v.weight": zeros(DIM, n),
                  "attn_k_norm.weight": ones(DIM)})
    return {f"blk.{i}.{name}": tensor for name, tensor in t.items()}


def kinds(arch, n, n_layer, sliding):
    return {arch + ".block_count": (U32, n_layer), arch + ".embedding_length": (U32, n),
            arch + ".context_length": (U32, 2048), arch + ".feed_forward_length": (U32, N_FF),
            arch + ".attention.head_count": (U32, N_HEAD),
            arch + ".attention.head_count_kv": (U32, 1),
            arch + ".attention.key_length": (U32, DIM),
            arch + ".attention.value_length": (U32, DIM),
            arch + ".attention.key_length_swa": (U32, DIM),
            arch + ".attention.value_length_swa": (U32, DIM),
            arch + ".attention.sliding_window": (U32, WINDOW),
            arch + ".attention.sliding_window_pattern": (ARR, (BOOL, sliding)),
            arch + ".attention.layer_norm_rms_epsilon": (F32, 1e-6),
            arch + ".rope.freq_base": (F32, 1e6), arch + ".rope.freq_base_swa": (F32, 1e4),
            arch + ".rope.dimension_count": (U32, DIM),
            arch + ".rope.dimension_count_swa": (U32, DIM)}


def gemma4_chain(folder, name, links, n_ff=N_FF, **more):
    """The model of chain() with a sliding and a global layer of Gemma 4."""
    g = chain(folder, name, links, arch="gemma4", **more)
    n = g.tensors["token_embd.weight"][0][0]
    for tensor in [t for t in g.tensors if t.startswith("blk.")]:
        del g.tensors[tensor]
    g.keys.update(kinds("gemma4", n, 2, [True, False]))
    g.keys["gemma4.feed_forward_length"] = (U32, n_ff)
    g.keys["gemma4.attention.shared_kv_layers"] = (U32, 0)
    g.keys["gemma4.embedding_length_per_layer_input"] = (U32, 0)
    for i in range(2):
        g.tensors.update(layer(i, n, True, n_ff))
    g.tensors["rope_freqs.weight"] = ones(DIM // 2)
    g.write(g.path)
    return g


def assistant(folder, name, model, links=None):
    """An assistant for a gemma4_chain(): it guesses what the model says, or, for tokens in links,
    what these say.  Returns its path."""
    arch = "gemma4-assistant"
    dims, _, out = model.tensors["output.weight"]
    n, raw = dims[0], bytearray(out)
    for token, to in (links or {}).items():
        i, k = model.id_of[token], model.id_of[to]
        for r in range(n):
            at = 4 * (r * n + i)
            raw[at:at + 4] = f32([1.0 if r == k else 0.0])
    g = Gguf()
    g.keys = {"general.architecture": (STR, arch), "general.type": (STR, "model"),
              "general.name": (STR, name), **kinds(arch, n, 2, [True, False]),
              arch + ".attention.shared_kv_layers": (U32, 2),
              arch + ".nextn_predict_layers": (U32, 2),
              arch + ".embedding_length_per_layer_input": (U32, 0),
              arch + ".embedding_length_out": (U32, n)}
    join = [0.0] * (n * 2 * n)
    for i in range(n):  # the embedding, without the hidden row
        join[i * 2 * n + i] = 1.0
    g.tensors = {"token_embd.weight": (dims, 0, bytes(raw)), "output_norm.weight": ones(n),
                 "rope_freqs.weight": ones(DIM // 2),
                 "nextn.pre_projection.weight": ([2 * n, n], 0, f32(join)),
                 "nextn.post_projection.weight": zeros(n, n)}
    for i in range(2):
        g.tensors.update(layer(i, n, False))
    return g.write(os.path.join(folder, name + ".gguf"))
