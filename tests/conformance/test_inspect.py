#!/usr/bin/env python3
"""memwall inspect: its sums against the list of tensors, and what is no model."""
import glob
import json
import math
import os
import struct
import subprocess
import tempfile
import unittest

BUILDDIR = os.environ.get("MW_BUILDDIR", ".")
MODELS = os.path.join(os.environ.get("MW_SHARED", "."), "conformance", "models")


def inspect(*args):
    return subprocess.run([os.path.join(BUILDDIR, "memwall"), "inspect", *args],
                          capture_output=True, text=True, timeout=300)


def whole(path):
    run = inspect("--json", "--tensors", path)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def gguf_of(kind):
    """A GGUF without tensors whose only key is general.type."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    return (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("general.type") +
            struct.pack("<I", 8) + text(kind))


@unittest.skipUnless(os.path.isdir(MODELS), "the models are not at hand")
class Models(unittest.TestCase):
    def each(self):
        for path in sorted(glob.glob(MODELS + "/*.gguf") + glob.glob(MODELS + "/*-hf")):
            if "assistant" not in path:
                with self.subTest(os.path.basename(path)):
                    yield whole(path)

    def test_sums_are_those_of_the_tensors(self):
        for m in self.each():
            by = {}
            for t in m["tensors"]:
                by.setdefault(t["use"], []).append(t)

            def total(*uses):
                return sum(t["bytes"] for u in uses for t in by.get(u, []))
            head = sum(t["bytes"] for t in m["tables"] if t["is_head"])
            expert = total("expert") // max(1, m["n_expert"]) * m["n_expert_used"]
            self.assertEqual(m["hot_bytes"], total("layer", "head") + expert + head)
            self.assertEqual(m["resident_bytes"], total("resident"))
            self.assertEqual(m["other_bytes"], total("other"))
            self.assertEqual(m["n_other"], len(by.get("other", [])))
            self.assertEqual(m["unread_bytes"], total("unread"))
            self.assertEqual(sum(t["bytes"] for t in m["types"]),
                             total("layer", "head", "lookup", "resident", "unread", "expert"))
            self.assertEqual(m["n_param"],
                             sum(math.prod(t["shape"]) for t in m["tensors"]
                                 if t["use"] not in ("unread", "other")
                                 and not t["name"].startswith("rope_f")))
            self.assertEqual(m["n_tensor"], len(m["tensors"]))
            self.assertEqual(m["n_layer"], len(m["layers"]))

    def test_keys_and_values_are_those_of_the_layers(self):
        for m in self.each():
            sums = {"global": 0, "sliding": 0}
            for i, y in enumerate(m["layers"]):
                sums[y["kind"]] += y["kv_values"]
                if y["kv_from"] == i:
                    self.assertEqual(y["kv_values"],
                                     y["n_head_kv"] * (y["head_dim_k"] + y["head_dim_v"]))
                else:
                    self.assertEqual(y["kv_values"], 0)
                    self.assertEqual(m["layers"][y["kv_from"]]["kind"], y["kind"])
            self.assertEqual(sums["global"], m["kv_global_values"])
            self.assertEqual(sums["sliding"], m["kv_sliding_values"])

    def test_tokenizer_and_chat_format_are_named(self):
        m = whole(MODELS + "/gemma4-tiny.gguf")
        self.assertEqual(m["chat_format"], "gemma4")
        self.assertEqual(m["n_token"], m["n_vocab"])

    def test_the_table_for_people_names_all_of_it(self):
        run = inspect(MODELS + "/gemma4-tiny2.gguf")
        self.assertEqual(run.returncode, 0)
        for word in ("parameters", "chat format", "hot", "lookup tables", "BF16", "sliding",
                     "that of"):
            self.assertIn(word, run.stdout)
        self.assertEqual(max(len(line) for line in run.stdout.split("\n")) <= 100, True)

    def test_a_drafting_model_says_so_and_is_listed(self):
        path = MODELS + "/gemma4-tiny-assistant.gguf"
        run = inspect(path)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assertIn("drafting model", run.stderr)
        run = inspect("--tensors", path)
        self.assertEqual(run.returncode, 1)
        self.assertIn("nextn.pre_projection.weight", run.stdout)


    def test_a_broken_vocabulary_is_told_beside_the_rest(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in glob.glob(MODELS + "/llama-tiny-hf/*"):
                if not path.endswith("/tokenizer.json"):
                    os.symlink(path, os.path.join(folder, os.path.basename(path)))
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
                f.write('{"added_tokens":{"a":1}}')
            run = inspect(folder)
            self.assertEqual(run.returncode, 1)
            self.assertIn("parameters", run.stdout)
            self.assertIn("tokenizer.json: added_tokens", run.stderr)


class Others(unittest.TestCase):
    def says(self, content, *words, suffix=".gguf"):
        with tempfile.NamedTemporaryFile(suffix=suffix) as f:
            f.write(content)
            f.flush()
            run = inspect(f.name)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words + (f.name,):
            self.assertIn(word, run.stderr)

    def test_what_is_no_model_says_what_it_is(self):
        self.says(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs")
        self.says(b"<!DOCTYPE html><html>404</html>", "HTML page")
        self.says(b"", "empty file")
        self.says(b"PK\3\4", "zip archive")
        self.says(b"\x10\0\0\0\0\0\0\0{\"a\":", "safetensors")
        self.says(b'{"a": 1}', "JSON text", "name the folder")
        for kind, words in (("adapter", "LoRA"), ("imatrix", "importance matrix"),
                            ("mmproj", "projector")):
            self.says(gguf_of(kind), "general.type", words)

    def test_weights_by_themselves_say_what_is_wrong_with_them(self):
        self.says(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs",
                  suffix=".safetensors")
        self.says(b"\x02\0\0\0\0\0\0\0{}tail", "byte", suffix=".safetensors")
        self.says(b"\x02\0\0\0\0\0\0\0{}", "config.json", suffix=".safetensors")
        self.says(b"tjgg\1\0\0\0", "GGML file")

    def test_a_folder_says_what_it_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, words in (("nothing", "no config.json"), ("a.gguf", "\"a.gguf\""),
                                ("adapter_config.json", "an adapter")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write("{}")
                run = inspect(folder)
                self.assertEqual(run.returncode, 1)
                self.assertIn(words, run.stderr)
                self.assertIn(folder, run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
