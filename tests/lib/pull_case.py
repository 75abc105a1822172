"""Runs `memwall pull` against a hub on 127.0.0.1."""
import functools
import hashlib
import json
import os
import random
import subprocess
import tempfile
import unittest

from chain_model import byte_char
from hub import Hub
from program import MEMWALL, TIMEOUT_S, environment


@functools.lru_cache(maxsize=4)
def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def tokenizer():
    """A tokenizer.json with a token for each byte."""
    return json.dumps({
        "version": "1.0", "normalizer": None, "added_tokens": [],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "model": {"type": "BPE", "byte_fallback": False, "merges": [],
                  "vocab": {c: b for b, c in byte_char().items()}}}).encode()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.hub = Hub()
        self.addCleanup(self.hub.__exit__)
        self.temp = os.path.join(self.folder.name, "temp")
        os.mkdir(self.temp)
        self.cache = os.path.join(self.folder.name, ".cache", "huggingface", "hub")

    def environment(self, **more):
        env = environment(self.folder.name, HF_ENDPOINT=self.hub.url, TMPDIR=self.temp)
        for name in list(env):
            if name.lower().endswith("_proxy") or name.startswith("HF_") and \
                    name != "HF_ENDPOINT":
                del env[name]
        return {**env, **more}

    def start(self, *args, env=None, **more):
        options = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True) | more
        return subprocess.Popen([MEMWALL, "pull", *args],
                                env=self.environment(**(env or {})), **options)

    def pull(self, *args, **more):
        p = self.start(*args, **more)
        out, err = p.communicate(timeout=TIMEOUT_S)
        return subprocess.CompletedProcess(args, p.returncode, out, err)

    def fetched(self, data, *args, **more):
        """The path that was printed, after checking its content."""
        r = self.pull(*args, **more)
        self.assertEqual(0, r.returncode, r.stderr)
        path = r.stdout.rstrip("\n")
        self.assertTrue(content(path) == data, "the content is another")
        return path

    def refused(self, r, *texts, code=1):
        self.assertEqual(code, r.returncode, r.stdout + r.stderr)
        self.assertEqual("", r.stdout)
        for text in texts:
            self.assertIn(text, r.stderr)

    def blob(self, repo, data, end=".incomplete"):
        return os.path.join(self.cache, "models--" + repo.replace("/", "--"), "blobs",
                            hashlib.sha256(data).hexdigest() + end)

    def listed(self, repo, *args):
        r = self.pull(repo, "--list", "--json", *args)
        self.assertEqual(0, r.returncode, r.stderr)
        return json.loads(r.stdout)
