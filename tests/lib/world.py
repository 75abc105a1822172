"""A folder of files as users have them: models under odd names, pieces, leftovers, and files that
only look like models.

    for f in make(folder):
        f.path, f.is_model, f.says

Each file that is not a model has a few words of the line that says what it is or what to do."""
import os
import shutil
import stat
import struct

from gguf_edit import ARR, BOOL, F32, STR, U32, Gguf
from program import MODELS
from tiny_model import Model

TINY = os.path.join(MODELS, "llama-tiny.gguf")


class File:
    def __init__(self, path, says=None, has_ids=False):
        """has_ids: a model all the same, but without a tokenizer that works."""
        self.path, self.says, self.is_model = path, says, says is None
        self.has_ids = has_ids

    @property
    def name(self):
        return os.path.basename(self.path)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def _edited(change):
    g = Gguf(TINY)
    change(g)
    return g


def _keys(**keys):
    """llama-tiny with other values of some keys; None removes one."""
    def change(g):
        for key, value in keys.items():
            name = "llama." + key.replace("__", ".")
            if value is None:
                del g.keys[name]
            else:
                g.keys[name] = value
    return _edited(change)


def make(folder):
    """Write the files; returns a list of File."""
    data, out = content(TINY), []

    def save(name, body, says=None, has_ids=False):
        path = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else
                            name.encode())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(body, Gguf):
            body.write(path)
        else:
            with open(path, "wb") as f:
                f.write(body)
        out.append(File(os.fsdecode(path), says, has_ids))
        return path

    # Models under names that shells, lists and screens find hard.
    save("plain.gguf", data)
    save("with two blanks.gguf", data)
    save("new\nline.gguf", data)
    save(b"not-utf8-\xff\xfe.gguf", data)
    save("ümläut-模型-🦙.gguf", data)
    save("-dash.gguf", data)
    save("quote'\"$HOME`.gguf", data)
    save("l" + "o" * 200 + "ng.gguf", data)
    save("UPPER-Q8_0.GGUF", data)
    os.chmod(save("read-only.gguf", data), stat.S_IRUSR)
    os.symlink(TINY, os.path.join(folder, "link.gguf"))
    out.append(File(os.path.join(folder, "link.gguf")))
    # Keys of other converters.
    save("other-names.gguf", _edited(lambda g: [
        g.rename("llama.rope.freq_base", "llama.rope.global.freq_base"),
        g.keys.update({"llama.rope.scaling.factor": (F32, 0.0),
                       "llama.attention.sliding_window": (U32, 0),
                       "llama.vision.block_count": (U32, 3)})]))
    save("unknown-name.gguf", _edited(lambda g: g.rename(
        "llama.rope.freq_base", "llama.rope.base")), "rope.freq_base")
    # Values that are missing or wrong.
    save("no-eps.gguf", _keys(attention__layer_norm_rms_epsilon=None),
         "layer_norm_rms_epsilon: the key is missing")
    save("text-for-number.gguf", _keys(block_count=(STR, "two")), "block_count")
    save("eps-0.gguf", _keys(attention__layer_norm_rms_epsilon=(F32, 0.0)),
         "layer_norm_rms_epsilon")
    save("other-family.gguf", _edited(lambda g: g.keys.update(
        {"general.architecture": (STR, "command-r")})), 'architecture "command-r"')
    save("no-vocabulary.gguf", _edited(lambda g: [
        g.keys.pop(k) for k in list(g.keys) if k.startswith("tokenizer.ggml")]), "tokenizer", True)
    # Tensors and vocabularies that do not fit.
    save("no-tensor.gguf", _edited(lambda g: g.tensors.pop("blk.1.ffn_up.weight")),
         "blk.1.ffn_up.weight: the tensor is missing")
    save("shape.gguf", _keys(feed_forward_length=(U32, 96)), "llama.feed_forward_length")
    save("scores.gguf", _edited(lambda g: g.keys.update(
        {"tokenizer.ggml.scores": (ARR, (F32, [0.0]))})), "tokenizer.ggml.scores")
    save("word-pieces.gguf", _edited(lambda g: g.keys.update(
        {"tokenizer.ggml.model": (STR, "bert")})), "tokenizer.ggml.model", True)
    save("merge.gguf", _edited(lambda g: g.keys.update(
        {"tokenizer.ggml.model": (STR, "gpt2"),
         "tokenizer.ggml.merges": (ARR, (STR, ["no such"]))})), "tokenizer: merge 0", True)
    save("pre.gguf", _edited(lambda g: g.keys.update(
        {"tokenizer.ggml.model": (STR, "gpt2"), "tokenizer.ggml.pre": (STR, "nonesuch"),
         "tokenizer.ggml.merges": (ARR, (STR, ["t h"]))})))
    save("no-merges.gguf", _edited(lambda g: g.keys.update(
        {"tokenizer.ggml.model": (STR, "gpt2"), "tokenizer.ggml.pre": (STR, "llama-bpe"),
         "tokenizer.ggml.merges": (ARR, (STR, []))})), "there are no merges", True)
    # Pieces and downloads.
    save("half.gguf", data[:len(data) // 2], "is the download complete?")
    save("cut.gguf.part1of2", data[:70000], "part 1 of 2")
    save("cut.gguf.part2of2", data[70000:], "join all parts")
    save("more.gguf.crdownload", data[:70000], "a download that has not ended")
    save("gap-00001-of-00003.gguf", _edited(lambda g: g.keys.update(
        {"split.no": (U32, 0), "split.count": (U32, 3),
         "split.tensors.count": (U32, len(g.tensors))})),
         "file 2 of 3 is missing")
    # Files that are not models.
    save("empty.gguf", b"", "an empty file")
    save("page.gguf", b"<!DOCTYPE html>\n<html><body>404</body></html>\n", "an HTML page")
    save("pointer.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
         "a git-lfs pointer")
    save("answer.gguf", b"Invalid username or password.", "access token")
    save("pickle.gguf", b"PK\3\4" + bytes(100), "convert")
    save("old.gguf", b"tjgg\3\0\0\0" + bytes(100), "a GGML file of 2023")
    adapter = Gguf()
    adapter.keys = {"general.architecture": (STR, "llama"), "adapter.lora.alpha": (F32, 8.0)}
    adapter.tensors = {"blk.0.attn_q.weight.lora_a": ([64, 4], 0, bytes(1024))}
    save("lora.gguf", adapter, "an adapter (LoRA)")
    tower = Gguf()
    tower.keys = {"general.architecture": (STR, "clip"), "clip.has_vision_encoder": (BOOL, True)}
    tower.tensors = {"v.patch_embd.weight": ([64, 4], 0, bytes(1024))}
    save("mmproj-model.gguf", tower, "projector")
    words = Gguf()
    words.keys = {"general.architecture": (STR, "llama"),
                  "tokenizer.ggml.model": (STR, "gpt2"),
                  "tokenizer.ggml.tokens": (ARR, (STR, ["a", "b"]))}
    save("words.gguf", words, "a vocabulary only")
    # Folders.
    Model().snapshot(os.path.join(folder, "snapshot"))
    out.append(File(os.path.join(folder, "snapshot"), "tokenizer", True))
    Model().snapshot(os.path.join(folder, "damaged"))
    save("damaged/tokenizer.json", b'{"model": {"type": "BPE"')
    out.pop()
    out.append(File(os.path.join(folder, "damaged"), "tokenizer.json", True))
    pickle = os.path.join(folder, "pickle")
    shutil.copytree(os.path.join(folder, "snapshot"), pickle)
    os.rename(os.path.join(pickle, "model.safetensors"), os.path.join(pickle, "pytorch_model.bin"))
    out.append(File(pickle, "PyTorch pickles"))
    save("lora/adapter_model.safetensors", struct.pack("<Q", 2) + b"{}")
    out.pop()
    save("lora/adapter_config.json", b"{}")
    out.pop()
    out.append(File(os.path.join(folder, "lora"), "an adapter (LoRA)"))
    return out
