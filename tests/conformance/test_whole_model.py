#!/usr/bin/env python3
"""No part of a model file is ignored: biases are added, and a tensor or a value that memwall does
not use is an error with its name."""
import array
import json
import math
import os
import pty
import select
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import (MEMWALL, MODELS, TIMEOUT_S, FolderCase, environment, memwall,  # noqa: E402
                     smallest_without_screen)
from tiny_model import Model, gemma4  # noqa: E402

IDS = [(7 * i * i + 3 * i + 1) % Model.n_vocab for i in range(70)]


class Case(FolderCase):
    def rows(self, model, *args, unknown=None):
        """Returns the logits file of IDS as bytes.  A notice names the key that is unknown."""
        out = self.path("logits")
        r = memwall("eval", model, "--ids", "-", "--logits", out, "--exact", "--kv", "f32",
                    *args, stdin=" ".join(map(str, IDS)))
        self.assertEqual(0, r.returncode, r.stderr)
        if unknown is None:
            self.assertEqual("", r.stderr)
        else:
            self.assertIn(f"does not know a key of the model's file: {unknown}. ", r.stderr)
        with open(out, "rb") as f:
            data = f.read()
        os.remove(out)
        return data

    def refused(self, model, *words):
        r = memwall("eval", model, "--ids", "-", "--greedy", "1", stdin="1 2 3")
        self.assertEqual((1, ""), (r.returncode, r.stdout), words)
        self.assertEqual(1, r.stderr.count("\n"), r.stderr)
        for word in words:
            self.assertIn(word, r.stderr)

    def runs(self, model):
        r = memwall("eval", model, "--ids", "-", "--greedy", "1", stdin="1 2 3")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return r.stdout


class Biases(Case):
    def agrees(self, model, path):
        got = array.array("f")
        got.frombytes(self.rows(path))
        want = [x for row in model.logits(IDS) for x in row]
        self.assertEqual(len(want), len(got))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(want, got)), 1e-4)

    def same_bits_at_any_chunk_and_budget(self, path):
        want = self.rows(path)
        plan = json.loads(memwall("plan", path, "-b", "1G", "-c", "70", "--kv", "f32", "--json",
                                  "--chunk", "1").stdout)
        least = smallest_without_screen(plan)
        for args in (("--chunk", "1"), ("--chunk", "7"), ("--chunk", "64"), ("-t", "1"),
                     ("-t", "3", "--chunk", "33"), ("-b", "1G"),
                     ("--chunk", "1", "-b", str(least + (1 << 20)))):
            self.assertTrue(want == self.rows(path, *args), args)

    def test_a_fused_bias_of_q_k_and_v_in_a_llama_file(self):
        model = Model(attn_bias="qkv")
        path = model.gguf(self.path("m.gguf"), fuse=True)
        self.agrees(model, path)
        self.same_bits_at_any_chunk_and_budget(path)

    def test_a_fused_bias_of_q_k_and_v_in_a_qwen2_file(self):
        model = Model(attn_bias="qkv", seed=2)
        path = model.gguf(self.path("m.gguf"), arch="qwen2", fuse=True)
        self.agrees(model, path)
        apart = model.gguf(self.path("apart.gguf"), arch="qwen2")
        self.assertTrue(self.rows(path) == self.rows(apart))
        self.same_bits_at_any_chunk_and_budget(path)

    def test_biases_of_the_feed_forward_part(self):
        model = Model(ffn_bias=True, seed=3)
        path = model.gguf(self.path("m.gguf"))
        self.agrees(model, path)
        self.same_bits_at_any_chunk_and_budget(path)

    def test_a_snapshot_with_all_biases(self):
        model = Model(attn_bias="qkvo", ffn_bias=True, seed=4)
        path = model.snapshot(self.path("m"), {"attention_bias": True, "mlp_bias": True})
        self.agrees(model, path)
        self.assertTrue(self.rows(path) != self.rows(
            Model(attn_bias="qkvo", seed=4).snapshot(self.path("n"), {"attention_bias": True})))

    def test_a_snapshot_and_its_file_give_the_same(self):
        model = Model(attn_bias="qkvo", ffn_bias=True, seed=5)
        self.agrees(model, model.gguf(self.path("m.gguf"), fuse=True))
        self.agrees(model, model.snapshot(self.path("m"), {"attention_bias": True,
                                                           "mlp_bias": True}))

    def test_a_configuration_that_denies_its_biases_is_refused(self):
        model = Model(attn_bias="qkvo", ffn_bias=True)
        for config, name in (({"attention_bias": True}, "mlp.gate_proj.bias"),
                             ({"mlp_bias": True}, "self_attn.q_proj.bias")):
            self.refused(model.snapshot(self.path("m"), config), "layers.0." + name,
                         "do not use this tensor")
        model = Model(attn_bias="qkvo")
        self.refused(model.snapshot(self.path("m"), {"attention_bias": True, "mlp_bias": True}),
                     "layers.0.mlp.gate_proj.bias", "is missing")


class Leftovers(Case):
    def test_an_unused_tensor_is_named(self):
        model, t = Model(), ((32,), [1.0] * 32)
        for name in ("blk.0.attn_q_norm.weight", "blk.1.post_attention_norm.weight",
                     "blk.0.attn_sinks.weight", "blk.1.layer_output_scale.weight",
                     "blk.0.ffn_gate_inp.weight", "blk.0.attn_qkv.bias", "blk.2.attn_norm.weight",
                     "blk.0.ssm_a", "output_norm.bias", "token_embd_norm.weight", "output.bias",
                     "rope_factors.weight", "per_layer_proj_norm.weight", "x"):
            self.refused(model.gguf(self.path("m.gguf"), more={name: t}), self.path("m.gguf"),
                         name, "llama", "do not use this tensor")

    def test_a_matrix_in_both_forms_is_refused(self):
        model = Model(attn_bias="qkv")
        fused = model.gguf_tensors(fuse=True)
        self.refused(model.gguf(self.path("m.gguf"), more={
            "blk.0.attn_qkv.weight": fused["blk.0.attn_qkv.weight"]}), "blk.0.attn_")
        self.refused(model.gguf(self.path("m.gguf"), fuse=True, more={
            "blk.0.attn_q.bias": model.gguf_tensors()["blk.0.attn_q.bias"]}),
            "blk.0.attn_q.bias", "do not use this tensor")

    def test_known_leftovers_and_towers_are_ignored(self):
        model, t = Model(), ((4,), [1.0] * 4)
        want = self.runs(model.gguf(self.path("m.gguf")))
        for name in ("blk.0.attn_rot_embd.weight", "v.blk.0.attn_k.weight", "a.blk.1.ln.weight",
                     "mm.input_projection.weight", "mtp.layers.0.norm.weight"):
            self.assertEqual(want, self.runs(model.gguf(self.path("m.gguf"), more={name: t})))
        for name in ("model.layers.0.self_attn.rotary_emb.inv_freq",
                     "vision_tower.layers.0.self_attn.q_proj.bias",
                     "model.vision_tower.x", "multi_modal_projector.linear_1.bias",
                     "model.embed_audio.x"):
            self.assertEqual(want, self.runs(model.snapshot(self.path("m"), more={name: t})))

    def test_an_unused_tensor_of_a_snapshot_is_named(self):
        model, t = Model(), ((32,), [1.0] * 32)
        for name in ("model.layers.1.self_attn.q_norm.weight", "model.layers.0.mlp.scale",
                     "lm_head.bias", "model.norm.bias", "model.layers.2.input_layernorm.weight",
                     "score.weight", "model.layers.0.self_attn.sinks"):
            self.refused(model.snapshot(self.path("m"), more={name: t}),
                         self.path("m") + "/model.safetensors", name, "do not use this tensor")
        self.refused(
            model.snapshot(self.path("m"),
                           more={"model.layers.0.self_attn.k_proj.weight_scale": t}),
            self.path("m") + "/model.safetensors", "blk.0.attn_k.scales", "its shape is 32 x 1")

    def test_a_missing_separate_head_is_named(self):
        model = Model()
        for config in ({}, {"tie_word_embeddings": None}):
            self.refused(model.snapshot(self.path("m"), config, {"lm_head.weight": None}),
                         "lm_head.weight", "is missing")
        self.runs(model.snapshot(self.path("m"), {"tie_word_embeddings": True},
                                 {"lm_head.weight": None}))


class Values(Case):
    """Keys of a GGUF file that memwall does not support."""

    def test_a_value_that_would_change_the_answers_is_named(self):
        model = Model()
        for key, value in (("logit_scale", 0.0625), ("residual_scale", 0.5),
                           ("embedding_scale", 12.0), ("attention.scale", 0.5),
                           ("attention.clamp_kqv", 8.0), ("hidden_activation", "gelu"), ("attention.causal", False),
                           ("attention.max_alibi_bias", 8.0), ("use_parallel_residual", True),
                           ("attn_logit_softcapping", 50.0), ("final_logit_softcapping", 30.0),
                           ("rope.dimension_sections", [2, 1, 1, 0]), ("rope.scaling.alpha", 2.0),
                           ("rope.freq_base_swa", 1e6), ("attention.key_length_swa", 4),
                           ("attention.shared_kv_layers", 1), ("nextn_predict_layers", 1),
                           ("embedding_length_per_layer_input", 16), ("expert_shared_count", 1),
                           ("rope.scaling.yarn_log_multiplier", 0.1), ("swin_norm", True),
                           ("attention.temperature_scale", 0.1), ("hrm.h_cycles", 2),
                           ("ssm.state_size", 16), ("attention.indexer.top_k", 4)):
            self.refused(model.gguf(self.path("m.gguf"), keys={"llama." + key: value}),
                         ": llama." + key + ": is ", "do not use this value")

    def test_numbers_out_of_range_are_named(self):
        model = Model()
        for key, value in (("rope.scaling.attn_factor", 1e29), ("rope.freq_base", 1e29),
                           ("rope.scaling.factor", 1e29), ("rope.scaling.attn_factor", math.nan),
                           ("attention.layer_norm_rms_epsilon", 1e29)):
            self.refused(model.gguf(self.path("m.gguf"), keys={"llama." + key: value}),
                         "llama." + key, "expected")

    def test_a_window_of_unknown_layers_is_named(self):
        model, key = Model(attn_bias="qkv"), "qwen2.attention.sliding_window"
        self.refused(model.gguf(self.path("m.gguf"), "qwen2", keys={key: 16}), key,
                     "no key states which layers")
        self.runs(model.gguf(self.path("m.gguf"), "qwen2", keys={key: 256}))
        self.runs(model.gguf(self.path("m.gguf"), "qwen2", keys={
            key: 16, key + "_pattern": [True, False]}))

    def test_values_that_change_nothing_are_accepted(self):
        model = Model()
        want = self.rows(model.gguf(self.path("m.gguf")))
        scale = 1 / math.sqrt(model.dim)
        for keys in ({"logit_scale": 1.0, "residual_scale": 0.0, "attention.causal": True},
                     {"attention.scale": scale, "attention.clamp_kqv": 0.0},
                     {"rope.dimension_sections": [0, 0, 0, 0], "pooling_type": 3,
                      "hidden_activation": "silu"},
                     {"rope.freq_base_swa": model.base, "attention.key_length_swa": model.dim},
                     {"tensor_data_layout": "Meta AI original pth", "vocab_size": 7},
                     {"expert_count": 0, "expert_used_count": 0, "rope.scaling.finetuned": True},
                     {"vision.block_count": 4, "what_nobody_knows": 7}):
            path = model.gguf(self.path("m.gguf"),
                              keys={"llama." + k: v for k, v in keys.items()})
            unknown = next((k for k in keys if k == "what_nobody_knows"), None)
            self.assertTrue(want == self.rows(path, unknown=unknown), keys)

    def test_only_phi3_rotates_a_part_of_each_head(self):
        model = Model()
        path = model.snapshot(self.path("m"), {"partial_rotary_factor": 0.5})
        self.assertTrue(self.rows(path) == self.rows(model.snapshot(self.path("n"))))


class Gemma4(Case):
    def test_per_layer_tensors_without_their_size_are_named(self):
        path = self.path("m.gguf")
        self.runs(gemma4(path))
        self.refused(gemma4(path, more={"per_layer_proj_norm.weight": ((16,), 0)}),
                     "per_layer_proj_norm.weight", "do not use this tensor")
        self.refused(gemma4(path, more={"blk.0.inp_gate.weight": ((16, 64), 0)}),
                     "blk.0.inp_gate.weight", "do not use this tensor")

    def test_the_weight_type_is_that_of_the_layers(self):
        path = gemma4(self.path("m.gguf"), more={"token_embd.weight": ((96, 64), 0)})
        r = memwall("plan", path, "--json")
        self.assertEqual("Q4_0", json.loads(r.stdout)["type"], r.stderr)

    def test_keys_and_values_of_layers_with_shared_kv_are_unused(self):
        path = gemma4(self.path("m.gguf"), {"attention.shared_kv_layers": 2},
                      sliding=(1, 0, 1, 0))
        self.runs(path)
        self.assertIn("never read", memwall("inspect", path).stdout)

    def test_a_layer_with_shared_kv_uses_only_the_queries_of_a_fused_tensor(self):
        fused = {"blk.3.attn_qkv.weight": ((128, 64), 2), "blk.3.attn_q.weight": None,
                 "blk.3.attn_k.weight": None, "blk.3.attn_v.weight": None}
        path = gemma4(self.path("m.gguf"), {"attention.shared_kv_layers": 2}, fused,
                      sliding=(1, 0, 1, 0))
        self.runs(path)
        tensors = json.loads(memwall("inspect", "--json", "--tensors", path).stdout)["tensors"]
        self.assertEqual("layer", next(t["use"] for t in tensors if ".attn_qkv." in t["name"]))

    def test_keys_serve_as_values_only_if_sizes_are_equal(self):
        path, no_v = self.path("m.gguf"), {"blk.1.attn_v.weight": None}
        self.runs(gemma4(path, sliding=(1, 0), more=no_v))
        for n in (64, 16):
            more = {"blk.1.attn_output.weight": ((64, 2 * n), 2), **no_v}
            self.refused(gemma4(path, {"attention.value_length": n}, more, sliding=(1, 0)),
                         "blk.1.attn_v.weight", "is missing",
                         "keys of 32 cannot serve as values of %d" % n)
            more["blk.1.attn_v.weight"] = ((n, 64), 2)
            self.runs(gemma4(path, {"attention.value_length": n}, more, sliding=(1, 0)))

    def test_a_router_of_more_than_32_bits_counts_in_the_plan(self):
        try:
            path = gemma4(self.path("m.gguf"), n_embd=65792, n_expert=65535)
        except OSError as why:
            self.skipTest("no sparse file of this size: %s" % why)
        router = 65535 * 65792 * 4
        r = memwall("plan", path, "-b", "2G", "--json")
        self.assertEqual(3, r.returncode, r.stderr)
        self.assertGreater(json.loads(r.stdout)["smallest_budget_bytes"], router)
        r = memwall("eval", path, "--ids", "-", "--greedy", "2", "-b", "2G", stdin="2 3")
        self.assertEqual((3, ""), (r.returncode, r.stdout))
        self.assertIn("budget", r.stderr)


class NotNumbers(Case):
    """One weight that is not a number, in every tensor of a model in turn."""

    def poisoned(self, tensor, value):
        shape, values = tensor
        width = shape[-1]
        row = IDS[2] if shape[0] == Model.n_vocab else min(3, len(values) // width - 1)
        return shape, [value if i == row * width + 5 else x for i, x in enumerate(values)]

    def test_every_tensor_every_command(self):
        model = Model(attn_bias="qkvo", ffn_bias=True)
        tensors = model.gguf_tensors()
        for name, t in tensors.items():
            if name.startswith("blk.1."):
                continue
            for value in (math.nan, math.inf):
                path = model.gguf(self.path("m.gguf"), more={name: self.poisoned(t, value)})
                for args in (("--greedy", "4"), ("--logits", self.path("out")),
                             ("--greedy", "2", "--exact", "--kv", "f32"),
                             ("--greedy", "2", "--chunk", "1", "--isa", "generic")):
                    r = memwall("eval", path, "--ids", "-", *args,
                                stdin=" ".join(map(str, IDS[:12])))
                    if os.path.exists(self.path("out")):
                        os.remove(self.path("out"))
                    self.assertEqual((1, 1), (r.returncode, r.stderr.count("\n")), (name, args))
                    self.assertNotRegex(r.stdout, r"\d")
                    self.assertIn(path, r.stderr)
                    if len(t[0]) == 1:
                        self.assertIn(name + " at byte", r.stderr)
                        self.assertIn("the file is damaged", r.stderr)
                    else:
                        self.assertRegex(r.stderr, r"logits are not numbers after \d+ token")

    def quantised(self, name, tensor):
        """The small model; a scale in tensor is not a number."""
        with open(os.path.join(MODELS, name), "rb") as f:
            data = bytearray(f.read())
        tensors = json.loads(memwall("inspect", "--json", "--tensors",
                                     os.path.join(MODELS, name)).stdout)["tensors"]
        t = next(t for t in tensors if t["name"] == tensor)
        self.assertEqual("Q4_0", t["type"])
        data[t["offset"]:t["offset"] + 2] = b"\x00\x7e"
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def test_scales_of_quantised_weights(self):
        name = "gemma4-tiny-q4_0.gguf"
        for tensor in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up",
                       "ffn_down", "inp_gate", "proj"):
            path = self.quantised(name, "blk.1.%s.weight" % tensor)
            for args in ((), ("--exact",), ("--isa", "generic")):
                r = memwall("eval", path, "--ids", "-", "--greedy", "2", *args, stdin="2 7 9")
                self.assertEqual((1, ""), (r.returncode, r.stdout.strip()), tensor)
                self.assertIn("logits are not numbers after 3 tokens, starting in layer 1; ",
                              r.stderr)

    def test_the_error_names_the_part_of_the_model(self):
        tensors = Model().gguf_tensors()
        for name, source in (("token_embd.weight", "the embedding"),
                             ("blk.0.attn_k.weight", "layer 0"),
                             ("blk.1.ffn_up.weight", "layer 1"),
                             ("output.weight", "the output head")):
            path = Model().gguf(self.path("m.gguf"),
                                more={name: self.poisoned(tensors[name], math.nan)})
            # The keys of a damaged token of an earlier chunk reach the last one in layer 0.
            for chunk in ("64",) if source == "the embedding" else ("1", "4", "64"):
                r = memwall("eval", path, "--ids", "-", "--greedy", "2", "--chunk", chunk,
                            stdin=" ".join(map(str, IDS[:12])))
                self.assertIn(", starting in %s; " % source, r.stderr, (name, chunk))

    def test_run_and_chat_report_it_and_the_chat_goes_on(self):
        path = self.quantised("gemma4-tiny-q4_0.gguf", "blk.3.ffn_down.weight")
        r = memwall("run", "-m", path, "-n", "8", "hello")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertRegex(r.stderr, r"logits are not numbers after \d+ tokens")
        shown, status = self.talk(path, ("one", "two"), "logits are not numbers")
        self.assertEqual((2, 0), (shown.count("logits are not numbers"), status), shown)

    def talk(self, path, messages, answer):
        """Run a chat on a terminal.  Each message waits for the answer to the one before."""
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(environment(self.folder))
            os.execv(MEMWALL, ["memwall", "chat", "--plain", "--no-save", "-m", path])
        shown = b""
        for n, message in enumerate((*messages, "/quit")):
            while shown.count(answer.encode()) < n:
                if not select.select([fd], [], [], TIMEOUT_S)[0]:
                    self.fail(shown)
                shown += os.read(fd, 4096)
            os.write(fd, message.encode() + b"\n")
        try:
            while True:
                shown += os.read(fd, 4096)
        except OSError:  # the terminal's other end was closed
            pass
        os.close(fd)
        return shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
