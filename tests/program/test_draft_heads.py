#!/usr/bin/env python3
"""Draft heads with wrong sizes, missing parts or of another model are refused by the name of the
field, and the model still runs without them.

Most models are in MW_SHARED/conformance."""
import json
import os
import random
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import ARR, BOOL, Gguf, U32, f32  # noqa: E402
from model_case import ModelCase  # noqa: E402
from program import memwall, reference  # noqa: E402

IDS = " ".join(str((7 * i * i + 3) % 90) for i in range(24))
NEXTN = "mtp-qwen35moe"


class Heads(ModelCase):
    def drafts(self, model, head="mtp", *args):
        """Returns the logits of drafts, or the error, which is one line."""
        r = memwall("eval", model, "--ids", "-", "--draft", head, "--draft-logits",
                    self.path("drafts"), "--force", "--exact", "--kv", "f32", "-b", "256M", *args,
                    stdin=IDS)
        if r.returncode != 0:
            self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")), r.stderr)
            return r.stderr
        with open(self.path("drafts"), "rb") as f:
            data = f.read()
        return struct.unpack("<%df" % (len(data) // 4), data)

    def says(self, error, *words):
        self.assertTrue(isinstance(error, str), "it was not refused")
        for word in words:
            self.assertIn(word, error)

    def path_of(self, name):
        path = reference(name)
        if not os.path.exists(path):
            self.skipTest("neither the tree nor MW_SHARED has " + name)
        return path

    # --- in the file of a model ---

    def model(self):
        return Gguf(self.path_of(NEXTN + ".gguf"))

    def head_refused(self, g, *words):
        """The head is refused, and the model runs as without one."""
        path = g.write(self.path("m.gguf"))
        self.says(self.drafts(path), *words)
        self.assertIsInstance(self.eval(path), tuple)

    def test_every_tensor_of_a_head_is_needed(self):
        g = self.model()
        names = [name for name in g.tensors if name.startswith("blk.4.")]
        self.assertEqual(20, len(names))
        for name in names:
            with self.subTest(name=name):
                kept = g.tensors
                g.tensors = {k: v for k, v in kept.items() if k != name}
                self.head_refused(g, name + ": the tensor is missing")
                g.tensors = kept

    def test_shapes_follow_from_the_keys_of_the_model(self):
        for name, dims, word in (
                ("nextn.eh_proj.weight", [65, 32], "embedding_length"),
                ("nextn.eh_proj.weight", [64, 33], "embedding_length"),
                ("nextn.enorm.weight", [31], "embedding_length"),
                ("nextn.hnorm.weight", [33], "embedding_length"),
                ("nextn.shared_head_norm.weight", [1 << 20], "embedding_length"),
                ("attn_q.weight", [32, 1 << 16], "attention.head_count"),
                ("attn_k.weight", [32, 31], "attention.head_count_kv"),
                ("attn_k_norm.weight", [17], "attention.key_length"),
                ("ffn_gate_inp.weight", [32, 6], "expert_count"),
                ("ffn_up_exps.weight", [32, 7, 5], "expert_feed_forward_length"),
                ("ffn_down_shexp.weight", [9, 32], "feed_forward_length")):
            with self.subTest(name=name, dims=dims):
                g, n = self.model(), 4
                for x in dims:
                    n *= x
                g.tensors["blk.4." + name] = (dims, 0, bytes(n))
                self.head_refused(g, "blk.4." + name, "its shape is ", word)

    def test_other_tensors_of_a_head_are_named(self):
        for name, n in ("blk.4.nextn.other.weight", 4), ("blk.4.ssm_a", 4):
            g = self.model()
            g.tensors[name] = ([n], 0, bytes(4 * n))
            self.head_refused(g, name, "do not use this tensor")

    def test_tables_of_its_own(self):
        g = self.model()
        want = self.drafts(g.write(self.path("m.gguf")))
        for name, table in (("embed_tokens", "token_embd.weight"),
                            ("shared_head_head", "output.weight")):
            dims, kind, raw = g.tensors[table]
            g.tensors[f"blk.4.nextn.{name}.weight"] = (dims, kind, raw)
        self.assertEqual(want, self.drafts(g.write(self.path("m.gguf"))))
        g.tensors["blk.4.nextn.embed_tokens.weight"] = (dims, kind, bytes(len(raw)))
        other = self.drafts(g.write(self.path("m.gguf")))
        self.assertNotEqual(want, other)
        g.tensors["blk.4.nextn.shared_head_head.weight"] = ([32, 290], 0, bytes(4 * 32 * 290))
        self.head_refused(g, "290")

    def test_numbers_of_layers(self):
        g = self.model()
        key = "qwen35moe.nextn_predict_layers"
        g.keys[key] = (U32, 0)
        self.says(self.drafts(g.write(self.path("m.gguf"))), "blk.4.")
        for name in [name for name in g.tensors if name.startswith("blk.4.")]:
            del g.tensors[name]
        g.keys["qwen35moe.block_count"] = (U32, 4)
        g.keys["qwen35moe.attention.recurrent_layers"] = (ARR, (BOOL, [1, 1, 1, 0]))
        self.head_refused(g, "the model has no draft head")
        g = self.model()
        g.keys[key] = (U32, 2)
        self.says(self.drafts(g.write(self.path("m.gguf"))), "block_count")

    def test_values_that_are_not_numbers_are_found(self):
        for name in "nextn.hnorm.weight", "nextn.eh_proj.weight", "attn_v.weight":
            g = self.model()
            dims, kind, raw = g.tensors["blk.4." + name]
            g.tensors["blk.4." + name] = (dims, kind, f32([float("nan")] * (len(raw) // 4)))
            self.assertIsInstance(self.drafts(g.write(self.path("m.gguf"))), str)

    def test_a_family_whose_heads_are_not_known(self):
        g = self.gguf("ling3")
        arch = g.get("general.architecture")
        n = g.get(f"{arch}.block_count")
        for name, tensor in list(g.tensors.items()):
            if name.startswith(f"blk.{n - 1}."):
                g.tensors[f"blk.{n}.{name.split('.', 2)[2]}"] = tensor
        g.keys[f"{arch}.block_count"] = (U32, n + 1)
        g.keys[f"{arch}.nextn_predict_layers"] = (U32, 1)
        for name, (kind, value) in list(g.keys.items()):
            if kind == ARR and name.startswith(arch) and len(value[1]) == n:
                g.keys[name] = (ARR, (value[0], value[1] + value[1][-1:]))
        self.says(self.drafts(g.write(self.path("m.gguf"))),
                  f"draft heads of {arch} models are not supported")

    # --- assistants ---

    def assistant(self, change, *words):
        g = Gguf(self.path_of("gemma4-tiny-assistant.gguf"))
        change(g)
        self.says(self.drafts(self.path_of("gemma4-tiny.gguf"), g.write(self.path("a.gguf"))),
                  "a.gguf", *words)

    def test_an_assistant_of_another_model(self):
        def key(name, kind, value):
            def change(g):
                g.keys["gemma4-assistant." + name] = (kind, value)
            return change
        for name, value, words in (
                ("embedding_length_out", 57, ["is 57, but the model has 56"]),
                ("embedding_length_out", 1 << 31, ["is 2147483648"]),
                ("attention.head_count_kv", 2, ["attention.head_count_kv", "2 KV heads"]),
                ("attention.head_count", 3, []),
                ("attention.key_length", 64, []),
                ("attention.sliding_window", 17, ["is 17, but that of the model is 16"]),
                ("attention.shared_kv_layers", 3, ["attention.shared_kv_layers"]),
                ("nextn_predict_layers", 1, ["nextn_predict_layers"]),
                ("block_count", 5, ["attention.shared_kv_layers"]),
                ("block_count", 1 << 30, ["block_count"]),
                ("embedding_length", 48, ["embedding_length"]),
                ("feed_forward_length", 1 << 20, ["feed_forward_length"])):
            with self.subTest(name=name, value=value):
                self.assistant(key(name, U32, value), *words)
        for model in "gemma4-31b-tiny.gguf", "llama-tiny.gguf":
            r = self.drafts(self.path_of(model), self.path_of("gemma4-tiny-assistant.gguf"))
            self.says(r, "gemma4-tiny-assistant.gguf")

    def test_every_tensor_of_an_assistant_is_checked(self):
        names = list(Gguf(self.path_of("gemma4-tiny-assistant.gguf")).tensors)
        for name in names:
            with self.subTest(name=name):
                def drop(g):
                    del g.tensors[name]

                def widen(g):
                    dims, kind, raw = g.tensors[name]
                    g.tensors[name] = ([dims[0] + 2, *dims[1:]], kind,
                                       bytes(len(raw) // dims[0] * (dims[0] + 2)))
                if not name.endswith("layer_output_scale.weight"):
                    self.assistant(drop, name)
                self.assistant(widen, name.split(".")[0])

    def test_a_vocabulary_of_another_size(self):
        def cut(g):
            dims, kind, raw = g.tensors["token_embd.weight"]
            g.tensors["token_embd.weight"] = ([dims[0], 419], kind, raw[:dims[0] * 419 * 4])
        self.assistant(cut, "token_embd.weight", "has 419 tokens, but the model has 420")

    def test_files_without_a_head(self):
        gemma = self.path_of("gemma4-tiny.gguf")
        for other, words in (("llama-tiny.gguf", ["not a draft head"]),
                             ("gemma4-tiny.gguf", []), ("gemma4-tiny-hf", ["not a draft head"])):
            self.says(self.drafts(gemma, self.path_of(other)), os.path.basename(other), *words)
        self.says(self.drafts(gemma, self.path("none.gguf")), "none.gguf")
        with open(self.path("junk.gguf"), "wb") as f:
            f.write(b"GGUF" + bytes(100))
        self.says(self.drafts(gemma, self.path("junk.gguf")), "junk.gguf")

    def test_damaged_headers_never_crash(self):
        chance = random.Random(4)
        for model, head in (("gemma4-tiny.gguf", "gemma4-tiny-assistant.gguf"),
                            ("q4e-a.gguf", "q4e-a-mtp-shared.gguf")):
            with open(self.path_of(head), "rb") as f:
                data = f.read()
            for _ in range(40):
                copy = bytearray(data)
                for _ in range(chance.randrange(1, 4)):
                    copy[chance.randrange(4096)] = chance.choice((0, 1, 127, 128, 255))
                with open(self.path("damaged.gguf"), "wb") as f:
                    f.write(copy)
                self.drafts(self.path_of(model), self.path("damaged.gguf"))  # ends with 0 or 1

    # --- clusters of tokens ---

    def clusters(self, config, order, *words):
        source = self.path_of("gemma4-tiny-assistant-hf")
        folder = self.path("a")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(source, "config.json")) as f:
            about = json.load(f)
        about.update(config)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(about, f)
        with open(os.path.join(source, "model.safetensors"), "rb") as f:
            data = bytearray(f.read())
        n, = struct.unpack_from("<Q", data)
        begin, end = json.loads(data[8:8 + n])["masked_embedding.token_ordering"]["data_offsets"]
        values = list(struct.unpack_from("<%dq" % ((end - begin) // 8), data, 8 + n + begin))
        order(values)
        struct.pack_into("<%dq" % len(values), data, 8 + n + begin, *values)
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(data)
        got = self.drafts(self.path_of("gemma4-tiny.gguf"), folder)
        if words:
            self.says(got, *words)
        return got

    def test_the_order_of_tokens_is_checked(self):
        def put(i, value):
            def change(values):
                values[i] = value(values)
            return change
        for i, value in ((0, lambda v: 420), (7, lambda v: -1), (419, lambda v: v[3]),
                         (100, lambda v: 1 << 60)):
            self.clusters({}, put(i, value), "masked_embedding.token_ordering", f"value {i} is ")
        self.clusters({"num_centroids": 31}, lambda v: None, "num_centroids")
        self.clusters({"num_centroids": 20}, lambda v: None, "masked_embedding.centroids.weight",
                      "num_centroids")
        self.clusters({"centroid_intermediate_top_k": 31}, lambda v: None,
                      "centroid_intermediate_top_k")
        self.clusters({"backbone_hidden_size": 64}, lambda v: None, "backbone_hidden_size")

    def clusters_in_gguf(self, n, order=None):
        """The assistant's GGUF file with n clusters of the snapshot."""
        g = Gguf(self.path_of("gemma4-tiny-assistant.gguf"))
        with open(self.path_of("gemma4-tiny-assistant-hf/model.safetensors"), "rb") as f:
            data = f.read()
        end, = struct.unpack_from("<Q", data)
        about = json.loads(data[8:8 + end])

        def part(name):
            at, to = about[name]["data_offsets"]
            return data[8 + end + at:8 + end + to]
        ids = struct.unpack("<420q", part("masked_embedding.token_ordering"))
        g.keys["gemma4-assistant.centroid_count"] = (U32, n)
        g.keys["gemma4-assistant.centroid_top_k"] = (U32, 6)
        g.tensors["masked_embd_centroids.weight"] = (
            [32, n], 30, part("masked_embedding.centroids.weight")[:64 * n])
        g.tensors["masked_embd_ordering"] = (
            [420], 26, struct.pack("<420i", *(ids if order is None else order)))
        return self.drafts(self.path_of("gemma4-tiny.gguf"), g.write(self.path("a.gguf")))

    def test_clusters_in_a_gguf_file(self):
        want = self.clusters({}, lambda v: None)
        self.assertLess(max(abs(a - b) for a, b in zip(want, self.clusters_in_gguf(30))), 1e-3)
        self.says(self.clusters_in_gguf(29), "centroid_count", "does not divide the 420 tokens")
        self.says(self.clusters_in_gguf(30, [0] * 420), "masked_embd_ordering", "value 1 is 0")

    def test_without_clusters_all_logits_are_computed(self):
        dense = self.clusters({"use_ordered_embeddings": False}, lambda v: None)
        want = self.drafts(self.path_of("gemma4-tiny.gguf"),
                           self.path_of("gemma4-tiny-assistant.gguf"))
        self.assertEqual(len(want), len(dense))
        self.assertLess(max(abs(a - b) for a, b in zip(want, dense)), 1e-3)


if __name__ == "__main__":
    unittest.main()
