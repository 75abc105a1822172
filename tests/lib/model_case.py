"""Made models of every family: their logits, and copies with other keys."""
import json
import os
import struct

import snapshot_gguf
from gguf_edit import Gguf
from program import FolderCase, memory_folder, memwall, reference

SHARED = os.path.join(os.environ.get("MW_SHARED", ""), "conformance")


def ids(n):
    """The ids of eval()."""
    return [(7 * i * i + 3) % 90 for i in range(n)]


class ModelCase(FolderCase):
    make_folder = staticmethod(memory_folder)

    def gguf(self, name):
        """Returns the Gguf of a model: a file, or one that is made from a snapshot."""
        for path in reference(name + ".gguf"), reference("f-" + name + ".gguf"):
            if os.path.exists(path):
                return Gguf(path)
        return Gguf(snapshot_gguf.convert(self.snapshot(name), self.path(name + ".gguf")))

    def snapshot(self, name):
        folder = reference("f-" + name)
        if not os.path.isdir(folder):
            self.skipTest(f"neither the tree nor MW_SHARED has f-{name}")
        return folder

    def eval_bytes(self, model, n):
        """Returns the logits of the first n ids as they are written, or the error."""
        path = model if isinstance(model, str) else model.write(self.path("m.gguf"))
        out = self.path("logits")
        r = memwall("eval", path, "--ids", "-", "--logits", out, "--force", "--exact", "--kv",
                    "f32", "-t", "1", "--chunk", "32", "-b", "256M", "--blas", "never",
                    stdin=" ".join(map(str, ids(n))))
        if r.returncode != 0:
            self.assertEqual(1, r.stderr.count("\n"), r.stderr)
            return r.stderr
        with open(out, "rb") as f:
            return f.read()

    def eval(self, model, n=24):
        """The same, and logits are numbers."""
        data = self.eval_bytes(model, n)
        return data if isinstance(data, str) else struct.unpack("<%df" % (len(data) // 4), data)

    def snapshot_with(self, name, change):
        folder = self.snapshot(name)
        copy = self.path("s-" + name)
        os.mkdir(copy)
        for f in os.listdir(folder):
            if f != "config.json":
                os.symlink(os.path.join(folder, f), os.path.join(copy, f))
        with open(os.path.join(folder, "config.json")) as f:
            config = json.load(f)
        change(config)
        with open(os.path.join(copy, "config.json"), "w") as f:
            json.dump(config, f)
        return copy

    def same(self, want, got, what=None):
        self.assertIsInstance(want, tuple, want)
        self.assertIsInstance(got, tuple, got)
        self.assertTrue(want == got, what)

    def differs(self, want, got):
        self.assertIsInstance(got, tuple, got)
        self.assertGreater(max(abs(a - b) for a, b in zip(want, got)), 1e-3)

    def refused(self, g, *words):
        error = self.eval(g)
        self.assertIsInstance(error, str)
        for word in words:
            self.assertIn(word, error)

    def renamed(self, name, renames, n=24, change=None):
        """The logits stay the same with other names of keys (without the architecture)."""
        g = self.gguf(name)
        arch = g.get("general.architecture")
        want = self.eval(g, n)
        for old, new in renames:
            self.assertIn(f"{arch}.{old}", g.keys)
            g.rename(f"{arch}.{old}", f"{arch}.{new}")
        if change is not None:
            change(g)
        self.same(want, self.eval(g, n), renames)
        return g
