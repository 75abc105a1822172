"""Every chat template of tests/data and of the reference data in $MW_SHARED."""
import glob
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(DATA, "..", "lib"))
from gguf_edit import Gguf  # noqa: E402


def of_file(path):
    """Returns the template in a file, or None."""
    if path.endswith(".gguf"):
        return Gguf(path).keys.get("tokenizer.chat_template", (None, None))[1]
    with open(path, encoding="utf-8", newline="") as f:
        return f.read() if path.endswith(".jinja") else json.load(f).get("chat_template")


def all_templates(shared):
    """Returns {key: text}.  The key is the beginning of the SHA-256 of the text."""
    found = {}
    for folder in (os.path.join(DATA, "templates"), os.path.join(DATA, "models"),
                   *([os.path.join(shared, "conformance")] if shared else [])):
        for name in ("*.jinja", "tokenizer_config.json", "*.gguf"):
            for path in sorted(glob.glob(os.path.join(folder, "**", name), recursive=True)):
                text = of_file(path)
                if isinstance(text, str):
                    found[hashlib.sha256(text.encode()).hexdigest()[:16]] = text
    return found
