"""A home folder with the stores of other programs."""
import hashlib
import json
import os
import shutil
import subprocess
import unittest

from program import MEMWALL, MODELS, TIMEOUT_S, MeasuredHome, budget, environment

TINY = os.path.join(MODELS, "llama-tiny.gguf")
SMALL = ("-b", budget(200), "-t", "1")
VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS", "LLAMA_CACHE")


class StoreCase(unittest.TestCase):
    def setUp(self):
        holder = MeasuredHome()
        self.addCleanup(holder.cleanup)
        self.home = os.path.realpath(holder.name)
        self.cwd = os.path.join(self.home, "here")
        os.makedirs(self.cwd)

    def path(self, name):
        return os.path.join(self.home, name)

    def put(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def copy(self, name, source=TINY):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(source, path)
        return path

    def environment(self, **more):
        env = environment(self.home)
        for name in VARIABLES:
            env.pop(name, None)
        return env | more

    def memwall(self, *args, config=None, env=None, stdin=""):
        if config is not None:
            self.put(".config/memwall/config", config)
        return subprocess.run([MEMWALL, *args], env=self.environment(**(env or {})), cwd=self.cwd,
                              capture_output=True, text=True, input=stdin, timeout=TIMEOUT_S)

    def listed(self, **env):
        """Models of `memwall list` by name, without predictions: it does not see the limits."""
        limits = self.path(".cache/memwall/limits")
        if os.path.exists(limits):
            os.rename(limits, limits + ".aside")
        r = self.memwall("list", "--json", env=env)
        if os.path.exists(limits + ".aside"):
            os.rename(limits + ".aside", limits)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return {m["name"]: m for m in json.loads(r.stdout)}

    def ollama(self, name, *layers, model=TINY, store=".ollama/models"):
        """Add a model to Ollama's store.  A layer is a kind and bytes, or something for JSON.
        Returns the path of the manifest."""
        with open(model, "rb") as f:
            layers = (("model", f.read()), *layers)
        rows = []
        for kind, data in layers:
            if not isinstance(data, bytes):
                data = json.dumps(data).encode()
            digest = hashlib.sha256(data).hexdigest()
            self.put(f"{store}/blobs/sha256-{digest}", data)
            rows.append({"mediaType": "application/vnd.ollama.image." + kind,
                         "digest": "sha256:" + digest, "size": len(data)})
        return self.put(f"{store}/manifests/registry.ollama.ai/library/{name}/latest",
                        json.dumps({"schemaVersion": 2, "config": rows[0], "layers": rows}))
