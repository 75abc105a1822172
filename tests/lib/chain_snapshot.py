"""Write a model that says a given text as a downloaded folder.

    s = chain_snapshot(folder, "speaker", spell("\n", "abc", "<|im_end|>"))
    s.save("tokenizer_config.json", eos_token="</s>")    # with this field changed
    memwall("run", "-m", s.path, "hi")
"""
import json
import os
import struct

from chain_model import CHATML, chain
from tiny_model import write_safetensors
from tokenizer_json import byte_level

LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


class Snapshot:
    """path: the folder.  files: name to the fields of a JSON file.  tensors: as
    write_safetensors takes them.  id_of: text of a token to its id."""

    def __init__(self, path):
        self.path, self.files, self.tensors, self.id_of = path, {}, {}, {}

    def save(self, name, **change):
        """Write a file again with some fields changed; ... (Ellipsis) removes one."""
        fields = {k: v for k, v in {**self.files[name], **change}.items() if v is not ...}
        self.write(name, json.dumps(fields))

    def write(self, name, text):
        with open(os.path.join(self.path, name), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())

    def write_all(self):
        for name in self.files:
            self.save(name)
        write_safetensors(os.path.join(self.path, "model.safetensors"), self.tensors)


def chain_snapshot(folder, name, links, eos="<|im_end|>", template=CHATML):
    g = chain(folder, name, links, eos=eos, template=None, arch="llama", pre="gpt-2")
    os.unlink(g.path)
    s = Snapshot(os.path.join(folder, name))
    s.id_of = g.id_of
    os.mkdir(s.path)
    for key, (dims, _, raw) in g.tensors.items():
        words = key.split(".")
        base = OUTSIDE[words[0]] if len(words) == 2 else "model.layers.0." + LAYER[words[2]]
        s.tensors[base + ".weight"] = dims[::-1], struct.unpack("<%df" % (len(raw) // 4), raw)
    tokens = g.get("tokenizer.ggml.tokens")[1]
    n_plain = g.get("tokenizer.ggml.token_type")[1].index(3)
    s.files = {
        "config.json": {
            "model_type": "llama", "hidden_size": len(tokens), "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
            "intermediate_size": 64, "vocab_size": len(tokens), "rms_norm_eps": 1e-6,
            "max_position_embeddings": 2048, "rope_theta": 10000.0, "hidden_act": "silu",
            "tie_word_embeddings": False, "eos_token_id": g.id_of[eos]},
        "tokenizer.json": {
            "version": "1.0", "normalizer": None, "pre_tokenizer": byte_level(use_regex=True),
            "added_tokens": [{"id": i, "content": tokens[i], "special": True}
                             for i in range(n_plain, len(tokens))],
            "model": {"type": "BPE", "merges": g.get("tokenizer.ggml.merges")[1],
                      "vocab": {t: i for i, t in enumerate(tokens[:n_plain])}}},
        "tokenizer_config.json": {"eos_token": eos, "chat_template": template},
        "generation_config.json": {"eos_token_id": g.id_of[eos]}}
    s.write_all()
    return s
