#!/usr/bin/env python3
"""The files of a downloaded folder as caches and interrupted downloads leave them: a file that
cannot be read is named, also if the model would open without it."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from chain_snapshot import chain_snapshot  # noqa: E402
from store_case import SMALL, StoreCase  # noqa: E402

LINKS = spell("\n", "abc", "<|im_end|>")
HUB = ".cache/huggingface/hub/models--org--m"
GONE = "is a link to a file that is missing; fetch it again"


class Case(StoreCase):
    def run_it(self, model):
        return self.memwall("run", "-m", model, *SMALL, "hi")

    def answers(self, model, notice=""):
        r = self.run_it(model)
        self.assertEqual((0, "abc\n", notice), (r.returncode, r.stdout, r.stderr))

    def refused(self, model, *texts):
        r = self.run_it(model)
        self.assertEqual((1, "", 1), (r.returncode, r.stdout, r.stderr.count("\n")), r.stderr)
        for text in texts:
            self.assertIn(text, r.stderr)


class BrokenLinks(Case):
    """A link of the cache whose file was deleted."""

    def test_a_file_of_a_snapshot(self):
        s = chain_snapshot(self.home, "m", LINKS)
        self.answers(s.path)
        for name in ("config.json", "model.safetensors", "tokenizer.json",
                     "tokenizer_config.json", "generation_config.json", "chat_template.jinja"):
            path = os.path.join(s.path, name)
            if os.path.exists(path):
                os.unlink(path)
            os.symlink("../../blobs/gone", path)
            self.refused(s.path, f"{name}: {GONE}")
            os.unlink(path)
            s.write_all()

    def test_a_part_of_a_set(self):
        s = chain_snapshot(self.home, "m", LINKS)
        os.rename(os.path.join(s.path, "model.safetensors"), os.path.join(s.path, "a.safetensors"))
        s.write("model.safetensors.index.json",
                '{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}')
        os.symlink("gone", os.path.join(s.path, "b.safetensors"))
        self.refused(s.path, "b.safetensors: " + GONE)

    def test_the_list_has_them_and_another_revision_opens(self):
        old, new = ("%s/snapshots/%s/" % (HUB, c * 40) for c in "ab")
        self.put(HUB + "/refs/main", "b" * 40)
        chain(self.home, "m-F32", LINKS)
        os.makedirs(self.path(new))
        os.symlink("../../blobs/gone", self.path(new + "m-F32.gguf"))
        here = self.listed()["org/m:F32"]
        self.assertEqual(("not read: only a link to a missing file is here; fetch it again", False),
                         (here["here"], here["supported"]))
        r = self.run_it("org/m")
        self.assertIn("org/m:F32: only a link to a missing file is here", r.stderr)
        self.assertIn('"memwall pull org/m" fetches one', r.stderr)
        self.copy(old + "m-F32.gguf", self.path("m-F32.gguf"))
        self.answers("org/m")

    def test_a_download_that_was_interrupted_keeps_its_name(self):
        chain_snapshot(self.home, "m", LINKS)
        for repo in "org--m", "org--m-more":
            folder = f".cache/huggingface/hub/models--{repo}/snapshots/{'a' * 40}"
            for file in os.listdir(self.path("m")):
                self.copy(f"{folder}/{file}", self.path("m/" + file))
        self.answers("org/m")
        os.unlink(self.path(f"{HUB}/snapshots/{'a' * 40}/model.safetensors"))
        self.assertNotIn("org/m", self.listed())
        self.assertIn('"org/m" is a part of "org/m-more"', self.run_it("org/m").stderr)
        self.put(HUB + "/blobs/" + "b" * 64 + ".incomplete", "half")
        self.assertEqual("not read: its download has not ended; fetch it again",
                         self.listed()["org/m"]["here"])
        r = self.run_it("org/m")
        self.assertEqual(1, r.returncode)
        self.assertIn("org/m: its download has not ended", r.stderr)
        self.assertIn('"memwall pull org/m" fetches one', r.stderr)
        self.refused(self.path(HUB), "its download has not ended; fetch it again")
        self.answers("org/m-more")

    def test_the_list_has_snapshots_without_a_configuration_or_weights(self):
        s = chain_snapshot(self.home, "m", LINKS)
        for name, says in (("config.json", "only a link to a missing file is here"),
                           ("model.safetensors", "model.safetensors " + GONE)):
            folder = f"{HUB}/snapshots/{'a' * 40}"
            for file in os.listdir(s.path):
                self.copy(f"{folder}/{file}", os.path.join(s.path, file))
            os.unlink(self.path(f"{folder}/{name}"))
            os.symlink("../../blobs/gone", self.path(f"{folder}/{name}"))
            self.assertIn("not read: " + says, self.listed()["org/m"]["here"])
            os.unlink(self.path(f"{folder}/{name}"))


class OtherFiles(Case):
    """A file that is something else: what a clone without git-lfs has, and pages of a server."""

    def test_the_files_with_json(self):
        s = chain_snapshot(self.home, "m", LINKS)
        os.rename(os.path.join(s.path, "model.safetensors"), os.path.join(s.path, "a.safetensors"))
        s.files["model.safetensors.index.json"] = {"weight_map": {"x": "a.safetensors"}}
        s.save("model.safetensors.index.json")
        self.answers(s.path)
        for name in s.files:
            for text, says in (
                    ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
                     "a git-lfs pointer"),
                    ("<!DOCTYPE html><html></html>", "an HTML page"), ("", "an empty file"),
                    ("Entry not found", "an answer of the hub"), (bytes(500), "a file of zeros"),
                    ('{"error": "no"', "an answer of a server with an error")):
                s.write(name, text)
                self.refused(s.path, f"{name}: is not a JSON text but {says}")
            s.save(name)

    def test_a_folder_without_a_tokenizer(self):
        s = chain_snapshot(self.home, "m", LINKS)
        os.unlink(os.path.join(s.path, "tokenizer.json"))
        self.refused(s.path, "tokenizer.json: the file is missing; fetch it")
        for other in "tokenizer.model", "tekken.json", "vocab.json":
            s.write(other, "x")
            self.refused(s.path, f"tokenizer.json: the file is missing, and {other} cannot replace")
            os.unlink(os.path.join(s.path, other))
        self.assertIn("the folder has no tokenizer.json", self.listed()["m"]["here"])
        os.symlink("gone", os.path.join(s.path, "tokenizer.json"))
        self.assertIn("tokenizer.json " + GONE, self.listed()["m"]["here"])

    def test_parts_without_an_index(self):
        s = chain_snapshot(self.home, "m", LINKS)
        os.rename(os.path.join(s.path, "model.safetensors"),
                  os.path.join(s.path, "model-00001-of-00001.safetensors"))
        self.refused(s.path, "parts of a snapshot without their index",
                     "fetch model.safetensors.index.json, too")

    def test_weights_whose_download_has_not_ended(self):
        s = chain_snapshot(self.home, "m", LINKS)
        s.write("model.safetensors.aria2", "state")
        self.refused(s.path, "model.safetensors: its download has not ended")

    def test_numbers_that_only_python_has(self):
        s = chain_snapshot(self.home, "m", LINKS)
        for name in "config.json", "generation_config.json":
            text = json.dumps(s.files[name])
            for value in "Infinity", "-Infinity", "NaN", '[0.0, Infinity]', '"\\"NaN"':
                s.write(name, text[:-1] + f', "odd": {value}' + "}")
                self.answers(s.path)
            s.write(name, text)
        s.write("config.json", json.dumps({**s.files["config.json"], "rms_norm_eps": float("nan")}))
        self.refused(s.path, "config.json: rms_norm_eps: is a string; expected a number")


class Names(Case):
    def test_tensors_of_wrapped_models_are_named(self):
        for begin in ("module.", "_orig_mod.", "base_model.model.", "thinker.", "model."):
            with self.subTest(begin=begin):
                s = chain_snapshot(self.home, begin.strip(".").replace(".", "-"), LINKS)
                s.tensors = {begin + k: v for k, v in s.tensors.items()}
                s.write_all()
                self.refused(s.path, "embed_tokens.weight: the tensor is missing; names of the file "
                             f'begin with "{begin}model.": merge adapters')


class AddedTokens(Case):
    """transformers adds the tokens of tokenizer_config.json that tokenizer.json lacks."""

    def setUp(self):
        super().setUp()
        self.s = chain_snapshot(self.home, "m", LINKS)
        self.marks = [self.s.id_of[m] for m in ("<|im_start|>", "<|im_end|>")]
        added = self.s.files["tokenizer.json"]["added_tokens"]
        self.decoder = {str(a["id"]): {"content": a["content"], "special": True, "lstrip": False}
                        for a in added}
        self.spare = added[2:]

    def ids(self, text="<|im_start|>a<|im_end|>"):
        r = self.memwall("tokenize", "-m", self.s.path, "--ids", "--special", stdin=text)
        self.assertEqual(0, r.returncode, r.stderr)
        return [int(x) for x in r.stdout.split()]

    def save(self, added, decoder, **more):
        self.s.save("tokenizer.json", added_tokens=added, **more)
        self.s.save("tokenizer_config.json", added_tokens_decoder=decoder)

    def test_they_are_marks(self):
        want = self.ids()
        self.assertEqual(self.marks, [want[0], want[-1]])
        for added in [], None, self.s.files["tokenizer.json"]["added_tokens"][:1]:
            for decoder in self.decoder, dict(reversed(self.decoder.items())):
                self.save(added, decoder)
                self.assertEqual(want, self.ids())
                self.answers(self.s.path)

    def test_one_of_the_vocabulary_has_its_id_there(self):
        want = self.ids()
        model = self.s.files["tokenizer.json"]["model"]
        vocab = model["vocab"] | dict(zip(("<|im_start|>", "<|im_end|>"), self.marks))
        for ids in self.marks, (7, 8):
            decoder = {str(i): {"content": m, "special": True}
                       for i, m in zip(ids, ("<|im_start|>", "<|im_end|>"))}
            self.save(self.spare, decoder, model=model | {"vocab": vocab})
            self.assertEqual(want, self.ids())
            self.answers(self.s.path)

    def test_those_of_tokenizer_json_come_first(self):
        added = self.s.files["tokenizer.json"]["added_tokens"]
        decoder = {str(a["id"] + 3): {"content": a["content"], "special": False} for a in added}
        want = self.ids()
        self.save(added, decoder)
        self.assertEqual(want, self.ids())
        self.answers(self.s.path)

    def test_one_that_does_not_fit_is_named(self):
        for more in ({"9000": {"content": "<|far|>"}},
                     {"320": {"content": "<|word|>", "single_word": True}}):
            self.save(self.s.files["tokenizer.json"]["added_tokens"], self.decoder | more)
            name, = (t["content"] for t in more.values())
            self.answers(self.s.path, f'memwall: The added token "{name}" of tokenizer_config.json '
                         "does not fit the vocabulary, and is not used.\n")

    def test_other_values_are_passed_over(self):
        added = self.s.files["tokenizer.json"]["added_tokens"]
        for decoder in (None, [], 5, "x", [{"content": "a", "id": 0}], {"x": {"content": "b"}},
                        {"5": None}, {"5": ["content", "a"]}, {"5": [{"content": "a"}]}, {"5": {}},
                        {"5": {"content": ""}}, {"5": {"content": ["a"]}},
                        {"5": {"content": {"content": "a"}}}, {"5": {"content": "a" * 5000}},
                        {"-1": {"content": "a"}}, {"99999999999": {"content": "a"}}):
            self.save(added, decoder)
            self.answers(self.s.path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
