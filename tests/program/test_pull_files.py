#!/usr/bin/env python3
"""memwall pull: the files that make a model, and repositories that have none."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, SRCDIR, TIMEOUT_S, reference  # noqa: E402
from pull_case import Case, content, noise, tokenizer  # noqa: E402
import tiny_model  # noqa: E402

INDEX = "model.safetensors.index.json"
GGUF = os.path.join(MODELS, "llama-tiny.gguf")


def kind_of_gguf(path, arch, kind):
    """A small GGUF file whose header says what it is."""
    keys = {"general.architecture": arch, "general.type": kind}
    tiny_model.write_gguf(path, {k: v for k, v in keys.items() if v is not None}, {})
    return content(path)


class Files(Case):
    def path(self, name):
        return os.path.join(self.folder.name, name)

    def made(self):
        """A folder with a snapshot, and its tensors by name."""
        m = tiny_model.Model()
        tensors = {"model." + n: t for n, t in m.outside.items()}
        tensors["lm_head.weight"] = m.head
        for i, layer in enumerate(m.layers):
            tensors.update({f"model.layers.{i}.{n}": t for n, t in layer.items()})
        return m.snapshot(self.path("made")), tensors

    def sharded(self, names):
        """The files of a snapshot whose weights are in files of these names."""
        folder, tensors = self.made()
        files = {"config.json": content(os.path.join(folder, "config.json")),
                 "tokenizer.json": tokenizer()}
        where = {}
        for i, name in enumerate(names):
            part = list(tensors)[i::len(names)]
            tiny_model.write_safetensors(self.path("part"), {k: tensors[k] for k in part})
            files[name] = content(self.path("part"))
            where.update({k: name for k in part})
        files[INDEX] = json.dumps({"metadata": {}, "weight_map": where}).encode()
        return files

    def run_memwall(self, *args):
        return subprocess.run([MEMWALL, *args], capture_output=True, text=True,
                              env=self.environment(), timeout=TIMEOUT_S)

    def complete(self, files, *names, repo="org/name"):
        """Fetch it; the files `names` are there, and list and inspect see the same model."""
        self.hub.add(repo, files)
        r = self.pull(repo)
        self.assertEqual(0, r.returncode, r.stderr)
        path = r.stdout.strip()
        for name in names:
            self.assertEqual(files[name], content(os.path.join(path, name)))
        listed = json.loads(self.run_memwall("list", "--json").stdout)
        found, = [m for m in listed if m["name"] == repo]
        self.assertEqual(sum(len(files[n]) for n in names if n.endswith(".safetensors")),
                         found["file_bytes"], found)
        inspected = self.run_memwall("inspect", "--tensors", repo)
        self.assertEqual(0, inspected.returncode, inspected.stderr)
        return path


class Snapshots(Files):
    def test_the_index_names_the_files(self):
        for i, names in enumerate((["model-00001-of-000002.safetensors",
                                    "model-00002-of-000002.safetensors"],
                                   ["model-1-of-2.safetensors", "model-2-of-2.safetensors"],
                                   ["pytorch_model-00001-of-00001.safetensors"],
                                   ["language.safetensors", "Head part.safetensors"])):
            self.complete(self.sharded(names), INDEX, *names, repo=f"org/name{i}")

    def test_a_single_file_is_used_although_an_index_is_there(self):
        folder, _ = self.made()
        single = content(os.path.join(folder, "model.safetensors"))
        for i, index in enumerate((self.sharded(["model-00001-of-00002.safetensors"])[INDEX],
                                   b"not an index", b"")):
            files = {"config.json": content(os.path.join(folder, "config.json")), INDEX: index,
                     "tokenizer.json": tokenizer(), "model.safetensors": single}
            path = self.complete(files, "model.safetensors", repo=f"org/name{i}")
            self.assertNotIn(INDEX, os.listdir(path))

    def test_files_that_the_index_does_not_name_are_left_alone(self):
        names = ["model-00001-of-00001.safetensors"]
        files = self.sharded(names) | {"consolidated.safetensors": noise(50000),
                                       "model-00002-of-00002.safetensors": noise(60000)}
        path = self.complete(files, INDEX, *names)
        self.assertNotIn("consolidated.safetensors", os.listdir(path))
        self.assertEqual(0, self.hub.sent("consolidated.safetensors"))

    def test_a_missing_file_is_named_before_anything_is_fetched(self):
        names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
        whole = self.sharded(names)
        for missing in (names[1], names[0], "config.json"):
            self.hub.add("org/name", {k: v for k, v in whole.items() if k != missing})
            for args in ([], ["--yes"], ["--list"]):
                r = self.pull("org/name", *args)
                self.refused(r, "org/name", f'"{missing}"')
        self.assertEqual(0, self.hub.sent(names[0]) + self.hub.sent(names[1]))

    def test_a_file_that_the_index_cannot_name_is_refused(self):
        files = self.sharded(["model-00001-of-00001.safetensors"])
        for index, says in ((b'{"weight_map":{"a":"sub/x.safetensors"}}', "sub/x.safetensors"),
                            (b'{"weight_map":{"a":"../x.safetensors"}}', "../x.safetensors"),
                            (b'{"weight_map":{}}', "names no files"), (b"{", INDEX),
                            (b"", INDEX)):
            self.hub.add("org/name", files | {INDEX: index})
            self.refused(self.pull("org/name", "--yes"), says, INDEX)

    def test_a_snapshot_in_a_folder_is_found_if_there_is_no_other_model(self):
        names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
        files = {"deep/er/folder/" + k: v for k, v in self.sharded(names).items()}
        self.hub.add("org/name", files)
        r = self.pull("org/name")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertTrue(r.stdout.strip().endswith("/deep/er/folder"), r.stdout)
        name = "org/name:deep/er/folder"
        self.assertIn("memwall -m " + name, r.stderr)
        self.assertIn(name, [m["name"] for m in
                             json.loads(self.run_memwall("list", "--json").stdout)])
        self.assertEqual(0, self.run_memwall("inspect", "--tensors", name).returncode)
        self.hub.add("org/two", files | {"a/" + k: v for k, v in self.sharded(names).items()})
        self.assertEqual(["a", "deep/er/folder"],
                         sorted(m["file"] for m in self.listed("org/two")["models"]))
        self.assertEqual(0, self.pull("org/two:a").returncode)
        self.hub.add("org/gguf", files | {"a-F16.gguf": content(GGUF)})
        self.assertEqual(["a-F16.gguf"], [m["file"] for m in self.listed("org/gguf")["models"]])
        del files["deep/er/folder/" + names[1]]
        self.hub.add("org/name", files)
        self.refused(self.pull("org/name"), f'"deep/er/folder/{names[1]}"')

    def test_list_sees_every_folder_that_pull_does(self):
        data = content(GGUF)
        for depth, code in ((8, 0), (9, 1)):
            self.hub.add("org/name", {"f/" * depth + "a-F16.gguf": data})
            self.assertEqual(code, self.pull("org/name").returncode)
        listed = json.loads(self.run_memwall("list", "--json").stdout)
        self.assertIn("org/name:F16", [m["name"] for m in listed])

    def test_a_snapshot_without_a_tokenizer_is_fetched_only_on_request(self):
        files = self.sharded(["model-00001-of-00001.safetensors"])
        del files["tokenizer.json"]
        self.hub.add("org/name", files)
        self.refused(self.pull("org/name"), "tokenizer.json", "--yes")
        r = self.pull("org/name", "--yes")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("does not run here", r.stderr)
        self.assertNotIn("start a chat", r.stderr)


    def test_a_tokenizer_that_cannot_be_read_is_named_before_the_weights(self):
        files = self.sharded(["model-00001-of-00001.safetensors"])
        self.hub.add("org/good", files)
        self.assertIn("start a chat with", self.pull("org/good").stderr)
        for text in (b"{}", noise(20000), b'{"model":{"type":"Unigram","vocab":[]}}',
                     b'{"model":{"type":"\\u001b[2J","vocab":{}}}'):
            self.hub.add("org/name", files | {"tokenizer.json": text})
            r = self.pull("org/name")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertNotIn("\x1b", r.stderr)
            notice, last = r.stderr.splitlines()[-2:]
            self.assertIn("the model cannot run, its tokenizer:", notice)
            self.assertIn("does not run here: unsupported: its tokenizer:", last)

    def test_it_is_named_although_the_weights_are_interrupted(self):
        files = self.sharded(["model-00001-of-00001.safetensors"])
        self.hub.add("org/name", files | {"tokenizer.json": b"{}"})

        def fault(r, *_):
            r.end(404)
            return True
        self.hub.on("model-00001-of-00001.safetensors", fault)
        self.refused(self.pull("org/name"), "the model cannot run, its tokenizer:")


class Ggufs(Files):
    def test_a_word_in_the_name_hides_no_model(self):
        data = content(GGUF)
        for name in ("Foo-NEO-IMatrix-MAX-Q4_K_M.gguf", "imatrix-foo-Q4_K_M.gguf",
                     "foo-with-mmproj-Q4_K_M.gguf"):
            self.hub.add("org/name", {name: data})
            self.assertTrue(self.fetched(data, "org/name:Q4_K_M").endswith(name))
            listed = json.loads(self.run_memwall("list", "--json").stdout)
            self.assertIn(name, [os.path.basename(m["path"]) for m in listed])

    def test_the_header_hides_what_is_not_a_model(self):
        data = content(GGUF)
        others = {"mmproj-F16.gguf": kind_of_gguf(self.path("a"), "clip", None),
                  "mmproj-BF16.gguf": kind_of_gguf(self.path("b"), "clip", "mmproj"),
                  "a.imatrix.gguf": kind_of_gguf(self.path("c"), None, "imatrix"),
                  "mmproj-Q8_0.gguf": noise(20000)}
        self.hub.add("org/name", others | {"a-F16.gguf": data})
        model, = self.listed("org/name")["models"]
        self.assertEqual("a-F16.gguf", model["file"])
        self.fetched(data, "org/name:F16")

    def test_one_header_is_read_for_all_types_of_a_doubtful_name(self):
        data = content(GGUF)
        names = [f"a-imatrix-{t}.gguf" for t in ("Q2_K", "Q4_0", "Q8_0")]
        self.hub.add("org/name", {name: data for name in names})
        self.fetched(data, "org/name:Q8_0")
        self.assertEqual([0, 1], sorted(self.hub.sent(name) > 0 for name in names[:2]))

    def test_a_draft_head_comes_with_its_model(self):
        data, head = (content(os.path.join(SRCDIR, "share", "models", name))
                      for name in ("memwall-guide.gguf", "memwall-guide-assistant.gguf"))
        self.hub.add("org/name", {"a-Q8_0.gguf": data, "a-assistant-Q8_0.gguf": head,
                                  "a-assistant-F32.gguf": noise(len(data) // 4),
                                  "a-assistant.imatrix.gguf": b"x" * 100,
                                  "mmproj-a-assistant-f16.gguf": b"x" * 200,
                                  "b/a-assistant.gguf": b"x"})
        model, = self.listed("org/name")["models"]
        self.assertEqual(("a-assistant-Q8_0.gguf", len(head)),
                         (model["draft_head"], model["draft_head_bytes"]))
        self.assertIn("with a draft head of", self.pull("org/name", "--list").stdout)
        path = self.fetched(data, "org/name")
        folder = os.path.dirname(path)
        self.assertEqual(["a-Q8_0.gguf", "a-assistant-Q8_0.gguf"], sorted(os.listdir(folder)))
        self.assertEqual(head, content(os.path.join(folder, "a-assistant-Q8_0.gguf")))
        listed = json.loads(self.run_memwall("list", "--json").stdout)
        names = [os.path.basename(m["path"]) for m in listed]
        self.assertTrue("a-Q8_0.gguf" in names and "a-assistant-Q8_0.gguf" not in names, names)
        r = self.run_memwall("plan", "-m", "org/name", "-c", "512", "--draft", "mtp")
        self.assertIn("by the head in a-assistant-Q8_0.gguf", r.stdout, r.stderr)

    def snapshot(self, name):
        folder = reference(name)
        if not os.path.isdir(folder):
            self.skipTest("neither the tree nor MW_SHARED has " + name)
        return {f: content(os.path.join(folder, f)) for f in os.listdir(folder)}

    def test_the_head_of_a_snapshot_is_in_a_repository_of_its_own(self):
        model, head = self.snapshot("gemma4-tiny-hf"), self.snapshot("gemma4-tiny-assistant-hf")
        self.hub.add("org/g", model)
        self.hub.add("org/g-assistant", head)
        self.hub.add("org/alone", model)
        listed, = self.listed("org/g")["models"]
        self.assertEqual("org/g-assistant", listed["draft_head"])
        self.assertEqual(sum(len(head[f]) for f in ("config.json", "generation_config.json",
                                                    "model.safetensors")),
                         listed["draft_head_bytes"])
        self.assertIn("with a draft head of", self.pull("org/g", "--list").stdout)
        r = self.pull("org/g", "--yes")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertNotIn("cannot run", r.stderr)
        # Where --draft looks for it (the small one is for another model).
        folder = os.path.join(self.cache, "models--org--g-assistant", "snapshots")
        commit, = os.listdir(folder)
        self.assertEqual(head, {f: content(os.path.join(folder, commit, f))
                                for f in os.listdir(os.path.join(folder, commit))})
        # A model without one is as before.
        listed, = self.listed("org/alone")["models"]
        self.assertNotIn("draft_head", listed)
        r = self.pull("org/alone", "--yes")
        self.assertEqual(0, r.returncode, r.stderr)

    def test_a_snapshot_comes_without_a_head_that_cannot_be_fetched(self):
        model, head = self.snapshot("gemma4-tiny-hf"), self.snapshot("gemma4-tiny-assistant-hf")
        self.hub.add("org/g", model)
        for change in ("gated", "private", "large", "damaged"):
            repo = self.hub.add("org/g-assistant", dict(head))
            if change == "large":
                repo.files["model.safetensors"] += bytes(1 << 20)
            elif change == "damaged":
                del repo.files["model.safetensors"]
            else:
                setattr(repo, change, True)
            r = self.pull("org/g", "--yes")
            self.assertEqual(0, r.returncode, (change, r.stderr))
            path = r.stdout.strip()
            for name in "config.json", "model-00002-of-00002.safetensors":
                self.assertEqual(model[name], content(os.path.join(path, name)))
            says = {"gated": "the draft head was not fetched:",
                    "large": "the draft head is left out: org/g-assistant has no snapshot with",
                    "damaged": "the draft head is left out: "}
            if change in says:
                self.assertIn(says[change], r.stderr)
            else:  # the hub does not say that there is one
                self.assertNotIn("draft head", r.stderr)

    def test_the_head_comes_from_the_revision_of_the_model(self):
        model, head = self.snapshot("gemma4-tiny-hf"), self.snapshot("gemma4-tiny-assistant-hf")
        commit = self.hub.add("org/g", model).commit
        other = self.hub.add("org/g-assistant", head)
        r = self.pull("org/g", "--yes", "--revision", commit)
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn(f'org/g-assistant has no revision "{commit}": the draft head is that of main',
                      r.stderr)
        folder = os.path.join(self.cache, "models--org--g-assistant", "snapshots")
        self.assertEqual([other.commit], os.listdir(folder))
        other.commit = commit
        r = self.pull("org/g", "--yes", "--revision", commit)
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertNotIn("has no revision", r.stderr)
        self.assertIn(commit, os.listdir(folder))

    def test_a_file_comes_without_a_head_that_cannot_be_fetched(self):
        data, head = (content(os.path.join(SRCDIR, "share", "models", name))
                      for name in ("memwall-guide.gguf", "memwall-guide-assistant.gguf"))
        self.hub.add("org/name", {"a-Q8_0.gguf": data, "a-assistant-Q8_0.gguf": head})

        def fault(r, *_):
            r.end(404)
            return True
        self.hub.on("a-assistant-Q8_0.gguf", fault)
        r = self.pull("org/name")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertEqual(data, content(r.stdout.strip()))
        self.assertIn("the draft head was not fetched: ", r.stderr)

    def test_a_head_is_not_listed_as_a_model(self):
        model, head = self.snapshot("gemma4-tiny-hf"), self.snapshot("gemma4-tiny-assistant-hf")
        self.hub.add("org/g", model)
        self.hub.add("org/g-assistant", head)
        self.assertEqual(0, self.pull("org/g", "--yes").returncode)
        folder = os.path.join(self.folder.name, "models")
        for name, files in ("g-assistant", head), ("renamed", head), ("plain", model):
            os.makedirs(os.path.join(folder, name))
            for f, data in files.items():
                with open(os.path.join(folder, name, f), "wb") as to:
                    to.write(data)
        for args, names in ((), ["org/g"]), ([folder], ["plain"]):
            listed = json.loads(self.run_memwall("list", "--json", *args).stdout)
            self.assertEqual(names, [m["name"] for m in listed if "guide" not in m["name"]])

    def test_another_weight_type_is_not_a_draft_head(self):
        data = content(GGUF)
        self.hub.add("org/name", {"My-Assistant-F32.gguf": data + bytes(9 * len(data)),
                                  "My-Assistant-Q4_0.gguf": data})
        for model in self.listed("org/name")["models"]:
            self.assertNotIn("draft_head", {k for k, v in model.items() if v}, model)

    def test_a_draft_head_that_is_left_out_is_named(self):
        data = content(GGUF)
        head = kind_of_gguf(self.path("head"), "gemma4-assistant", None)
        for names, size, why in (
                (["a-assistant-F16.gguf"], len(data) // 7, "it is larger than 1/8 of the model"),
                ([f"a-assistant-0000{i}-of-00002.gguf" for i in (1, 2)], len(data) // 20,
                 "it is in several files")):
            files = {name: head + bytes(size - len(head)) for name in names}
            self.hub.add("org/name", files | {"a-Q8_0.gguf": data})
            model, = self.listed("org/name")["models"]
            self.assertEqual(names[0], model["draft_head_left_out"])
            r = self.pull("org/name")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertIn(f", without its draft head: {why}", r.stderr)
            self.assertEqual(["a-Q8_0.gguf"], os.listdir(os.path.dirname(r.stdout.strip())))
        # A smaller one comes instead, and a model with such a name is listed as one.
        small = {"a-assistant-Q4_0.gguf": head, "a-assistant-F16.gguf": head + bytes(len(data))}
        self.hub.add("org/name", small | {"a-Q8_0.gguf": data, "b-mtp-Q8_0.gguf": data})
        for model in self.listed("org/name")["models"]:
            self.assertEqual("a-assistant-Q4_0.gguf", model["draft_head"])
            self.assertNotIn("draft_head_left_out", model)
        self.hub.add("org/name", {"a-Q8_0.gguf": data, "b-mtp-Q8_0.gguf": data})
        for model in self.listed("org/name")["models"]:
            self.assertNotIn("draft_head_left_out", model)

    def test_a_missing_part_is_named(self):
        def part(i, n=3):
            return f"m-Q8_0-{i:05}-of-{n:05}.gguf"
        for missing in (1, 2, 3):
            files = {part(i): noise(30000, i) for i in (1, 2, 3) if i != missing}
            self.hub.add("org/name", files)
            self.refused(self.pull("org/name", "--yes"), f'"{part(missing)}"')
            self.hub.add("org/two", files | {"m-Q4_0.gguf": content(GGUF)})
            r = self.pull("org/two:Q8_0")
            self.refused(r, f'"{part(missing)}"', code=2)
            self.assertEqual(1, self.listed("org/two")["sets_left_out"])
            r = self.pull("org/two")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertIn(f'Left out: a split set lacks "{part(missing)}".', r.stderr)
        self.assertEqual(0, sum(self.hub.sent(part(i)) for i in (1, 2, 3)))

    def test_a_file_without_a_vocabulary_is_not_offered_for_a_chat(self):
        m = tiny_model.Model()
        tiny_model.write_gguf(self.path("made"), m.keys(), m.gguf_tensors())
        self.hub.add("org/name", {"a-F32.gguf": content(self.path("made"))})
        r = self.pull("org/name")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("does not run here: unsupported: its tokenizer:", r.stderr)

    def test_a_model_that_does_not_run_is_not_offered_for_a_chat(self):
        data = noise(300000)
        self.hub.add("org/name", {"a-Q4_0.gguf": data})
        r = self.pull("org/name", "--yes")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("does not run here", r.stderr)
        self.assertNotIn("start a chat", r.stderr)


class Nothing(Files):
    """Each kind of repository without a model has a sentence of its own."""

    KINDS = {
        "adapter (LoRA)": ["adapter_config.json", "adapter_model.safetensors"],
        "PyTorch pickles": ["config.json", "tokenizer.json", "pytorch_model.bin"],
        "vendor's own format": ["params.json", "consolidated.safetensors", "tekken.json"],
        "projector": ["mmproj-model-f16.gguf"],
        "matrix of importance": ["a.imatrix.gguf"],
        "ONNX": ["config.json", "onnx/model.onnx", "tokenizer.json"],
        "MLX": ["config.json", "weights.00.safetensors"],
        "GPTQ": ["config.json", "gptq_model-4bit-128g.safetensors"],
        "image or video model": ["model_index.json", "unet/diffusion_pytorch_model.safetensors"],
        "data, not a model": ["README.md", "data/train-00000-of-00001.parquet"],
        "no files of a model": ["README.md", "LICENSE", "a.png"],
        "TensorFlow": ["config.json", "tf_model.h5"],
        "LiteRT": ["gemma.task"],
        "without weights": ["config.json", "tokenizer.json"],
        "neither a complete GGUF": ["strange.xyz"],
    }

    def test_it_says_what_the_repository_holds(self):
        for says, names in self.KINDS.items():
            self.hub.add("org/name", {name: noise(20000) for name in names})
            for args in ([], ["--list"], ["--yes"]):
                r = self.pull("org/name", *args)
                self.refused(r, "org/name", says)
                self.assertEqual(1, r.stderr.count("\n"), r.stderr)
        self.hub.add("org/name", {})
        self.refused(self.pull("org/name"), "no files of a model")

    def test_quantised_snapshots_are_refused_by_name(self):
        folder, _ = self.made()
        config = json.loads(content(os.path.join(folder, "config.json")))
        single = content(os.path.join(folder, "model.safetensors"))
        for key, value, says in (
                ("quantization_config", {"quant_method": "gptq", "bits": 4}, "gptq"),
                ("quantization_config", {"quant_method": "awq", "bits": 4}, "awq"),
                ("quantization_config", {"quant_method": "bitsandbytes"}, "bitsandbytes"),
                ("quantization_config", {"quant_method": "hqq"}, "hqq"),
                ("quantization", {"group_size": 64, "bits": 4}, "quantization")):
            self.hub.add("org/name", {"config.json": json.dumps(config | {key: value}).encode(),
                                      "tokenizer.json": tokenizer(), "model.safetensors": single})
            self.refused(self.pull("org/name"), says, "--yes")

    def test_an_adapter_is_described_by_its_header(self):
        keys = {"general.architecture": "llama", "general.type": "adapter",
                "adapter.type": "lora"}
        tiny_model.write_gguf(self.path("lora.gguf"), keys, {})
        self.hub.add("org/name", {"a-F16.gguf": content(self.path("lora.gguf"))})
        self.refused(self.pull("org/name"), "adapter")

    def test_a_dataset_is_named_as_one(self):
        self.hub.others["/api/datasets/org/data"] = b"{}"
        self.hub.others["/api/spaces/org/app"] = b"{}"
        self.refused(self.pull("org/data"), "org/data is a dataset, not a model")
        self.refused(self.pull("org/app"), "org/app is a space, not a model")
        self.refused(self.pull("org/none"), "no repository org/none")


if __name__ == "__main__":
    unittest.main(verbosity=2)
