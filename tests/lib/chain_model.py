"""Write a model that says a given text.

    m = chain(folder, "thinker", spell("\n", "<think>", "ab", "</think>", "c", "<|im_end|>"),
              marks=("<|im_start|>", "<|im_end|>"), user=("<think>", "</think>"))
    memwall("run", "-m", m.path, "hi")      # thinks "ab", answers "c"
"""
import os

from gguf_edit import ARR, BOOL, F32, I32, STR, U32, Gguf, f32


def byte_char():
    """Byte to the character that stands for it in byte-level vocabularies."""
    out, n = {}, 0
    for b in range(256):
        if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255:
            out[b] = chr(b)
        else:
            out[b] = chr(256 + n)
            n += 1
    return out


CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + "
          "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|im_start|>assistant\n' }}{% endif %}")


def chain(folder, name, links, marks=("<|im_start|>", "<|im_end|>"), eos="<|im_end|>",
          template=CHATML, user=(), pre="qwen2", arch="qwen2", keys=None, pieces=()):
    """Write a model that says a given text.

    links: token to the next token.  A token is a byte (as bytes or as a character), a mark, or one
    of pieces.  Tokens that are not in links lead to eos.
    marks: control tokens.  user: tokens of the type "user defined".  pieces: more normal tokens of
    several bytes, as bytes; their beginnings become tokens, too.  keys: added to the file; None
    removes a key.

    All layers add zero, row i of the embedding is a unit vector, and row links[i] of the output
    points there.  Returns the Gguf, with its path and id_of (text of a token to its id)."""
    chars = byte_char()
    pieces = [p[:i] for p in (b"!!", *pieces) for i in range(2, len(p) + 1)]
    pieces = list(dict.fromkeys(pieces))
    tokens = [chars[b] for b in range(256)] + ["".join(chars[b] for b in p) for p in pieces]
    n_plain = len(tokens)
    tokens += list(marks) + list(user)
    kinds = [1] * n_plain + [3] * len(marks) + [4] * len(user)
    n = (len(tokens) + 63) // 64 * 64
    while len(tokens) < n:
        tokens.append(f"<|spare{len(tokens)}|>")
        kinds.append(3)
    id_of = {t: i for i, t in enumerate(tokens)}

    def find(t):
        if isinstance(t, str) and t in id_of:
            return id_of[t]
        raw = t if isinstance(t, bytes) else t.encode()
        return id_of["".join(chars[b] for b in raw)]

    embd, out = [0.0] * (n * n), [0.0] * (n * n)
    follow = {find(a): find(b) for a, b in links.items()}
    for i in range(n):
        embd[i * n + i] = 1.0
        out[follow.get(i, find(eos)) * n + i] = 1.0
    g = Gguf()
    g.keys = {"general.architecture": (STR, arch), "general.type": (STR, "model"),
              "general.name": (STR, name), arch + ".context_length": (U32, 2048),
              arch + ".embedding_length": (U32, n), arch + ".block_count": (U32, 1),
              arch + ".feed_forward_length": (U32, 64), arch + ".attention.head_count": (U32, 2),
              arch + ".attention.head_count_kv": (U32, 1),
              arch + ".attention.key_length": (U32, 32),
              arch + ".attention.value_length": (U32, 32),
              arch + ".rope.dimension_count": (U32, 32),
              arch + ".attention.layer_norm_rms_epsilon": (F32, 1e-6),
              "tokenizer.ggml.model": (STR, "gpt2"), "tokenizer.ggml.pre": (STR, pre),
              "tokenizer.ggml.tokens": (ARR, (STR, tokens)),
              "tokenizer.ggml.token_type": (ARR, (I32, kinds)),
              "tokenizer.ggml.merges": (ARR, (STR, [
                  "".join(chars[b] for b in p[:-1]) + " " + chars[p[-1]] for p in pieces])),
              "tokenizer.ggml.add_bos_token": (BOOL, False),
              "tokenizer.ggml.eos_token_id": (U32, find(eos))}
    if template is not None:
        g.keys["tokenizer.chat_template"] = (STR, template)
    for k, v in (keys or {}).items():
        if v is None:
            g.keys.pop(k, None)
        else:
            g.keys[k] = v
    one = f32([1.0] * n)

    def zeros(rows, cols):
        return [cols, rows], 0, bytes(4 * rows * cols)

    g.tensors = {"token_embd.weight": ([n, n], 0, f32(embd)),
                 "blk.0.attn_norm.weight": ([n], 0, one),
                 "blk.0.attn_q.weight": zeros(64, n), "blk.0.attn_k.weight": zeros(32, n),
                 "blk.0.attn_v.weight": zeros(32, n), "blk.0.attn_output.weight": zeros(n, 64),
                 "blk.0.ffn_norm.weight": ([n], 0, one),
                 "blk.0.ffn_gate.weight": zeros(64, n), "blk.0.ffn_up.weight": zeros(64, n),
                 "blk.0.ffn_down.weight": zeros(n, 64),
                 "output_norm.weight": ([n], 0, one), "output.weight": ([n, n], 0, f32(out))}
    if arch == "qwen2":
        for x, rows in (("q", 64), ("k", 32), ("v", 32)):
            g.tensors[f"blk.0.attn_{x}.bias"] = ([rows], 0, bytes(4 * rows))
    g.id_of = id_of
    g.path = g.write(os.path.join(folder, name + ".gguf"))
    return g


def wide_chain(folder, name, width=20000, **more):
    """Write a model of 78 MB that says "ababab…".  A token takes 40 million operations and reads
    77 MB, so evaluating takes longer than reading the keys and values, and most is streamed in a
    small budget."""
    m = chain(folder, name, {"\n": "a", "a": "b", "b": "a"}, **more)
    n = m.tensors["output_norm.weight"][0][0]
    m.keys["qwen2.feed_forward_length"] = (U32, width)
    for part, ne in ("gate", [n, width]), ("up", [n, width]), ("down", [width, n]):
        m.tensors[f"blk.0.ffn_{part}.weight"] = (ne, 0, bytes(4 * n * width))
    return m.write(m.path)


def spell(*parts):
    """Links for a walk over the parts.  A part is a string of single characters, a mark, or bytes
    (one token)."""
    walk = []
    for p in parts:
        is_token = isinstance(p, bytes) or (len(p) > 2 and p[0] in "<[")
        walk += [p] if is_token else list(p)
    assert len(set(walk[:-1])) == len(walk) - 1, "a token leads to one other token only"
    return dict(zip(walk, walk[1:]))
