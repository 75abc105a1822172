#!/usr/bin/env python3
"""Files that are not models, and pieces of files: one line says what they are and what to do."""
import os
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import ARR, BOOL, F32, STR, U32, Gguf  # noqa: E402
from program import MODELS, FolderCase, memwall  # noqa: E402

TINY = os.path.join(MODELS, "llama-tiny.gguf")


def content(path):
    with open(path, "rb") as f:
        return f.read()


class Case(FolderCase):
    def save(self, name, data=b""):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return path

    def says(self, path, *words):
        """Every command says it in one line with the file's name."""
        for args in (["run", "-m", path, "hi"], ["plan", path], ["inspect", path]):
            r = memwall(*args)
            self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")), r.stderr)
            for word in (*words, os.path.basename(path.rstrip("/"))):
                self.assertIn(word, r.stderr)


class Pieces(Case):
    def test_pieces_name_how_to_join_them(self):
        data = content(TINY)
        for first, second, before, is_numbered in (
                ("x.gguf.part1of2", "x.gguf.part2of2", "x.gguf.part", True),
                ("x.gguf-part-1-of-2", "x.gguf-part-2-of-2", "x.gguf-part-", True),
                ("x.gguf-split-a", "x.gguf-split-b", "x.gguf-split-", False),
                ("x.gguf.001", "x.gguf.002", "x.gguf.", False),
                ("x.gguf.0", "x.gguf.1", "x.gguf.", False),
                ("x.gguf.aa", "x.gguf.ab", "x.gguf.", False),
                ("x.gguf.a", "x.gguf.b", "x.gguf.", False),
                ("x.part1of2.gguf", "x.part2of2.gguf", "x.part", True),
                ("x-split-a.gguf", "x-split-b.gguf", "x-split-", False),
                ("x y.safetensors.part-00", "x y.safetensors.part-01",
                 "x y.safetensors.part-", False),
                ("x.gguf_part_aa", "x.gguf_part_ab", "x.gguf_part_", False),
                ("X-Q4_K_M.GGUF.part-a", "X-Q4_K_M.GGUF.part-b", "X-Q4_K_M.GGUF.part-", False),
                ("x.part01", "x.part02", "x.part", False),
                ("x (1 of 2).gguf", "x (2 of 2).gguf", "x (", True),
                ("x.1of2.gguf", "x.2of2.gguf", "x.", True),
                ("x.gguf.7z.001", "x.gguf.7z.002", "x.gguf.7z.", False),
                ("x.001", "x.002", "x.", False)):
            for i, (name, part) in enumerate(((first, data[:70000]), (second, data[70000:]))):
                with self.subTest(name=name):
                    self.says(self.save(name, part), "join all parts in order",
                              f'cat "{before}"*',
                              f"part {i + 1} of 2" if is_numbered else "a piece")

    def test_the_joined_file_is_whole(self):
        data = content(TINY)
        parts = [self.save("x.gguf.part%dof2" % (i + 1), d)
                 for i, d in enumerate((data[:70000], data[70000:]))]
        with open(self.path("x.gguf"), "wb") as out:
            for part in parts:
                out.write(content(part))
        self.assertEqual(0, memwall("inspect", self.path("x.gguf")).returncode)

    def test_a_whole_file_may_have_such_a_name(self):
        for name in ("x.gguf.001", "Model-7.5B", "x.part1", "x.tmp"):
            shutil.copy(TINY, self.path(name))
            self.assertEqual(0, memwall("inspect", self.path(name)).returncode, name)

    def test_other_names_are_not_pieces(self):
        for name in ("x.gguf", "x-0.6B", "x.v2", "x.gguf.txt", "x.7b"):
            r = memwall("inspect", self.save(name, content(TINY)[:70000]))
            self.assertIn("is the download complete?", r.stderr)

    def test_downloads_that_have_not_ended(self):
        for name in ("x.gguf.part", "x.gguf.crdownload", "x.gguf.incomplete", "x.gguf.aria2",
                     "x.gguf.opdownload", "x.gguf.downloading", "x.gguf.xltd"):
            self.says(self.save(name, content(TINY)[:70000]), "a download that has not ended",
                      "fetch")

    def test_programs_that_download_in_pieces(self):
        """The file has its size and its header from the start."""
        path = self.path("x.gguf")
        shutil.copy(TINY, path)
        for end in ".aria2", ".st", ".lftp-pget-status":
            self.save("x.gguf" + end, b"state")
            self.says(path, "its download has not ended", f'"x.gguf{end}" is beside it')
            os.unlink(path + end)
        self.assertEqual(0, memwall("inspect", path).returncode)

    def test_a_set_with_a_gap(self):
        g = Gguf(TINY)
        g.keys["split.no"], g.keys["split.count"] = (U32, 0), (U32, 3)
        g.keys["split.tensors.count"] = (U32, len(g.tensors))
        path = g.write(self.path("m-00001-of-00003.gguf"))
        r = memwall("run", "-m", path, "hi")
        self.assertIn("m-00002-of-00003.gguf: file 2 of 3 is missing; fetch it",
                      r.stderr)
        shutil.move(path, self.path("renamed.gguf"))
        self.says(self.path("renamed.gguf"), "give the files of the set their names back")

    def test_a_file_of_a_set_that_is_cut_off_is_not_a_piece(self):
        """Joining the files of a set as if they were pieces would damage them."""
        g, tensors = Gguf(TINY), list(Gguf(TINY).tensors.items())
        keys = {"split.no": (U32, 0), "split.count": (U32, 2),
                "split.tensors.count": (U32, len(tensors))}
        paths = [self.path(f"m-0000{i}-of-00002.gguf") for i in (1, 2)]
        for cut in 0, 1:
            for i, path in enumerate(paths):
                g.keys = {**(Gguf(TINY).keys if i == 0 else {}), **keys, "split.no": (U32, i)}
                g.tensors = dict(tensors[i::2])
                g.write(path)
            self.assertEqual(0, memwall("inspect", paths[0]).returncode)
            size = os.path.getsize(paths[cut])
            for part in 0.99, 0.1:
                os.truncate(paths[cut], int(size * part))
                r = memwall("run", "-m", paths[0], "hi")
                self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")))
                self.assertIn(os.path.basename(paths[cut]) + ": ", r.stderr)
                self.assertNotIn("join", r.stderr)
                if part > 0.9:
                    self.assertIn("is the download complete?", r.stderr)

    def test_pieces_may_have_the_names_of_a_set(self):
        data = content(TINY)
        for i, part in enumerate((data[:70000], data[70000:])):
            self.says(self.save(f"m-0000{i + 1}-of-00002.gguf", part),
                      f"part {i + 1} of 2", 'cat "m-"* > "m.gguf"')


class NotModels(Case):
    def gguf(self, name, keys, tensors=("blk.0.attn_q.weight",)):
        g = Gguf()
        g.keys = {"general.architecture": (STR, "llama"), **keys}
        g.tensors = {t: ([64, 4], 0, bytes(1024)) for t in tensors}
        return g.write(self.path(name))

    def test_adapters(self):
        lora = ("blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b")
        for keys in ({"general.type": (STR, "adapter"), "adapter.type": (STR, "lora")},
                     {"adapter.type": (STR, "lora"), "adapter.lora.alpha": (F32, 16.0)},
                     {"adapter.lora.alpha": (F32, 16.0)}, {}):
            self.says(self.gguf("lora.gguf", keys, lora), "an adapter (LoRA), not a model",
                      "open the model that it was made for")
        self.says(self.save("ggml-adapter.bin", b"algg\1\0\0\0" + bytes(64)), "an adapter (LoRA)",
                  "open the model that it was made for")

    def test_parts_and_helpers(self):
        cases = (
            ({"general.architecture": (STR, "clip"), "clip.has_vision_encoder": (BOOL, True)},
             ("v.patch_embd.weight",), "projector", "open the language model"),
            ({"general.type": (STR, "mmproj")}, ("v.patch_embd.weight",), "projector", "open"),
            ({"general.type": (STR, "imatrix")}, ("blk.0.attn_q.weight.in_sum2",),
             "importance matrix", "open a model"),
            ({"imatrix.datasets": (ARR, (STR, ["a"]))}, ("x",), "importance matrix", "open"),
            ({"general.architecture": (STR, "controlvector"),
              "controlvector.model_hint": (STR, "llama"),
              "controlvector.layer_count": (U32, 2)}, ("direction.1",), "control vector", "open"),
            ({"tokenizer.ggml.model": (STR, "gpt2"),
              "tokenizer.ggml.tokens": (ARR, (STR, ["a", "b"]))}, (), "vocabulary only",
             "memwall tokenize"))
        for i, (keys, tensors, *words) in enumerate(cases):
            with self.subTest(words=words):
                self.says(self.gguf(f"{i}.gguf", keys, tensors), *words)

    def test_models_that_write_no_text(self):
        for arch, word in (("bert", "an embedding model"), ("nomic-bert", "an embedding model"),
                           ("gemma-embedding", "an embedding model"), ("flux", "an image model"),
                           ("sd3", "an image model"), ("wan", "a video model"),
                           ("gemma4-assistant", "a drafting model")):
            with self.subTest(arch=arch):
                path = self.gguf("m.gguf", {"general.architecture": (STR, arch)})
                r = memwall("run", "-m", path, "hi")
                self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")))
                self.assertIn(word, r.stderr)
                self.assertIn("open a model that writes text", r.stderr)
        for kind in ("bert", "roberta", "t5gemma_assistant", "nomic_bert"):
            folder = os.path.dirname(self.save(kind + "/config.json",
                                               '{"model_type": "%s"}' % kind))
            self.assertIn("open a model that writes text",
                          memwall("run", "-m", folder, "hi").stderr)

    def test_folders_say_what_they_hold(self):
        for name, names, words in (
                ("lora", ["adapter_config.json", "adapter_model.safetensors"],
                 ["an adapter (LoRA)", "base model"]),
                ("lora2", ["config.json", "adapter_model.bin"], ["an adapter (LoRA)"]),
                ("pickle", ["config.json", "pytorch_model-00001-of-00002.bin"],
                 ["PyTorch pickles", "look for GGUF or safetensors"]),
                ("vendor", ["params.json", "consolidated.safetensors", "tekken.json"],
                 ["vendor's own format", "consolidated.safetensors"]),
                ("image", ["model_index.json", "README.md"], ["image or video model"]),
                ("ckpt", ["v1-5.ckpt"], ["PyTorch pickles"]),
                ("onnx", ["config.json", "model.onnx"], ["ONNX"]),
                ("cut", ["x.gguf.part1of2", "x.gguf.part2of2"], ["pieces of a GGUF file"]),
                ("weights", ["model.safetensors"], ["fetch config.json into it"]),
                ("shards", ["model.safetensors.index.json", "model-1-of-2.safetensors"],
                 ["fetch config.json into it"]),
                ("bare", ["config.json"], ["a configuration without weights"]),
                ("empty", ["notes.txt"], ["no config.json"])):
            for each in names:
                text = '{"model_type": "llama", "num_hidden_layers": 1}'
                self.save(f"{name}/{each}", text if each == "config.json" else "{}")
            with self.subTest(name=name):
                r = memwall("run", "-m", self.path(name), "hi")
                self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")), r.stderr)
                for word in words:
                    self.assertIn(word, r.stderr)

    def test_an_adapter_beside_a_model_is_not_that_model(self):
        path = self.save("m/adapter_model.safetensors", struct.pack("<Q", 2) + b"{}")
        self.save("m/config.json", '{"model_type": "llama"}')
        self.save("m/model.safetensors", struct.pack("<Q", 2) + b"{}")
        self.says(path, "an adapter (LoRA), not a model", "base model")

    def test_first_bytes(self):
        for data, words in (
                (b"MZqFpD" + bytes(64), ("a llamafile", "fetch the GGUF file")),
                (b"PK\3\4" + bytes(64), ("PyTorch", "convert")),
                (b"\x80\2}q\0" + bytes(64), ("pickle", "convert")),
                (b"tjgg\3\0\0\0" + bytes(64), ("GGML file of 2023", "convert")),
                (b"lmgg" + bytes(64), ("GGML file of 2023", "convert")),
                (b"\x89HDF\r\n" + bytes(64), ("TensorFlow", "convert")),
                (b"\xfd7zXZ\0" + bytes(64), ("xz archive", "unpack")),
                (b"BZh91AY&SY" + bytes(64), ("bzip2 archive", "unpack")),
                (b"\x93NUMPY\1\0" + bytes(64), ("NumPy", "convert")),
                (b"FROM ./x.gguf\nPARAMETER temperature 1\n", ("Modelfile", "ollama create")),
                (b"\xef\xbb\xbfGGUF" + bytes(64), ("text editor", "fetch it again")),
                (bytes(200), ("zeros", "fetch it again")),
                (b"\x89PNG\r\n\x1a\n" + bytes(64), ("a picture",)),
                (b"d8:announce35:http" + bytes(64), ("torrent",)),
                (b"Entry not found", ("an answer of the hub",)),
                (b"Invalid username or password.", ("access token",)),
                (b"Access to model x is restricted", ("licence",)),
                (b'{"error": "Repository not found"}', ("an answer of a server", "fetch")),
                (b"<html>", ("HTML page", "fetch")), (b"", ("empty file", "fetch"))):
            with self.subTest(data=data[:12]):
                self.says(self.save("m.gguf", data), *words)

    def test_names_of_other_programs(self):
        for name, words in (("m-imatrix.dat", ("a matrix of importance", "use a model")),
                            ("consolidated.00.pth", ("the vendor's own format", "look for")),
                            ("model.onnx", ("ONNX", "look for")),
                            ("gemma.task", ("LiteRT", "look for")),
                            ("flax_model.msgpack", ("Flax", "look for"))):
            self.says(self.save(name, b"\1" + bytes(199)), *words)

    def test_a_weight_type_of_first_gpt_oss_files(self):
        g = Gguf(TINY)
        dims, _, raw = g.tensors["blk.0.ffn_up.weight"]
        g.tensors["blk.0.ffn_up.weight"] = (dims, 4, raw)
        r = memwall("run", "-m", g.write(self.path("m.gguf")), "hi")
        self.assertIn("MXFP4 in Ollama's first files", r.stderr)
        self.assertIn("fetch the model again", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
