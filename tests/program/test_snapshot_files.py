#!/usr/bin/env python3
"""The files of a downloaded folder as caches and interrupted downloads leave them: a file that
cannot be read is named, also if the model would open without it."""
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
