#!/usr/bin/env python3
"""Every tokenizer and chat format, from GGUF and tokenizer.json, compared with reference data.
Some conversations also go through `memwall tokenize --chat`.

$MW_SHARED has the vocabularies
in packed form.  The build folder keeps unpacked and converted ones.  tokenizer_vectors compares
them.
"""
import json
import lzma
import os
import subprocess
import sys

BUILD = os.environ.get("MW_BUILDDIR", ".")
SHARED = os.environ.get("MW_SHARED", "")
DATA = os.path.join(SHARED, "conformance", "tokenizers")
KEPT = os.path.join(BUILD, "tests", "conformance", "vocabularies")
PROGRAM = os.path.join(BUILD, "tests", "conformance", "tokenizer_vectors")
MEMWALL = os.path.join(BUILD, "memwall")

# The built-in formats: those of other families are the templates of their models.
CHATS = {
    "gemma4": ["gemma4-e2b"], "gemma3": ["gemma3", "gemma2"], "llama3": ["llama3"],
    "qwen3": ["chatml"], "tekken": [], "phi4": [], "phi3": [], "mistral-v1": [], "llama-spm": [],
    "gpt2": [],
}


def keep(name, write):
    """Make a file or folder of the kept data if it is missing."""
    path = os.path.join(KEPT, name)
    if not os.path.exists(path):
        write(path + ".new")
        os.rename(path + ".new", path)
    return path


def unpack(packed):
    def write(path):
        with lzma.open(packed) as f, open(path, "wb") as out:
            out.write(f.read())
    return write


def snapshot(folder, text=None):
    """Write tokenizer.json, as published or with another text, and its configuration."""
    def write(path):
        os.mkdir(path)
        with open(os.path.join(path, "tokenizer.json"), "wb") as out:
            out.write(text if text is not None
                      else lzma.open(os.path.join(folder, "tokenizer.json.xz")).read())
        with open(os.path.join(folder, "tokenizer_config.json"), "rb") as f:
            config = f.read()
        with open(os.path.join(path, "tokenizer_config.json"), "wb") as out:
            out.write(config)
    return write


def other_order(folder):
    """The same tokenizer.json with the model first, merges before tokens, a value per line."""
    def write(path):
        tok = json.load(lzma.open(os.path.join(folder, "tokenizer.json.xz"), "rt",
                                  encoding="utf-8"))
        model = dict(sorted(tok["model"].items(), key=lambda kv: kv[0] != "merges"))
        tok = {"model": model, **{k: v for k, v in tok.items() if k != "model"}}
        snapshot(folder, json.dumps(tok, indent=1).encode())(path)
    return write


def gguf(folder, model=None, called=None):
    """Write a GGUF file with the vocabulary.  called replaces its tokenizer.ggml.model."""
    def write(path):
        tok = vocab_gguf.load_json(os.path.join(folder, "tokenizer.json.xz"))
        config = vocab_gguf.load_json(os.path.join(folder, "tokenizer_config.json"))
        kv = vocab_gguf.vocab_kv(tok, config, model=model)
        if called is not None:
            kv = [(k, t, called if k == "tokenizer.ggml.model" else v) for k, t, v in kv]
        vocab_gguf.write_gguf(path, kv)
    return write


def changed(folder, model, change):
    """Write a GGUF file as other converters do: change() gets a dictionary of its keys."""
    def write(path):
        tok = vocab_gguf.load_json(os.path.join(folder, "tokenizer.json.xz"))
        config = vocab_gguf.load_json(os.path.join(folder, "tokenizer_config.json"))
        kv = {k: (t, v) for k, t, v in vocab_gguf.vocab_kv(tok, config, model=model)}
        change(kv)
        vocab_gguf.write_gguf(path, [(k, t, v) for k, (t, v) in kv.items()])
    return write


def as_ollama(kv):
    """Byte tokens and <eos> are normal tokens, ids are scores, "pre" is the name of the model."""
    kv["tokenizer.ggml.model"] = (vocab_gguf.STR, "llama")
    kv["tokenizer.ggml.pre"] = (vocab_gguf.STR, "gemma4")
    kind, types = kv["tokenizer.ggml.token_type"]
    types = [vocab_gguf.NORMAL if t == vocab_gguf.BYTE or i == 1 else t
             for i, t in enumerate(types)]
    kv["tokenizer.ggml.token_type"] = (kind, types)
    kind, scores = kv["tokenizer.ggml.scores"]
    kv["tokenizer.ggml.scores"] = (kind, [float(i) for i in range(len(scores))])
    del kv["tokenizer.ggml.add_space_prefix"], kv["tokenizer.ggml.add_bos_token"]


def user_scores(kv):
    """llama.cpp's converter gives user tokens a meaningless score."""
    types = kv["tokenizer.ggml.token_type"][1]
    kind, scores = kv["tokenizer.ggml.scores"]
    scores = [-1000.0 if t == vocab_gguf.USER_DEFINED else s for s, t in zip(scores, types)]
    kv["tokenizer.ggml.scores"] = (kind, scores)


def sources(family):
    """Yields name and path of each form of a family's vocabulary."""
    folder = os.path.join(DATA, family)
    packed = os.path.join(folder, "vocab.gguf.xz")
    if os.path.exists(packed):
        yield family + " GGUF", keep(family + ".gguf", unpack(packed))
        return
    yield family + " tokenizer.json", keep(family, snapshot(folder))
    yield family + " GGUF", keep(family + ".gguf", gguf(folder))
    if family == "gemma4":
        yield (family + " GGUF of another converter",
               keep(family + "-other.gguf", changed(folder, None, as_ollama)))
    if family == "gemma3":
        yield (family + " GGUF with scores of -1000",
               keep(family + "-1000.gguf", changed(folder, None, user_scores)))
    if family in ("gemma3", "mistral-v1"):
        yield (family + " GGUF with merges",
               keep(family + "-merges.gguf", gguf(folder, "gemma4", "llama")))
    if family in ("phi4", "mistral-v1"):
        yield family + " tokenizer.json in another order", keep(family + "-order",
                                                                other_order(folder))


def chat_line(path, line, form):
    """Check one conversation with `memwall tokenize --chat`.  Returns None or the mistake."""
    case = json.loads(line)
    if "error" in case:
        return None
    names = {"gemma4-e2b": "gemma4", "gemma2": "gemma3"}
    args = ["--format", names.get(case["format"], case["format"])]
    options = case["options"]
    if not options.get("add_generation_prompt"):
        args.append("--no-generation-prompt")
    if "enable_thinking" in options:
        args.append("--think" if options["enable_thinking"] else "--no-think")
    want = case.get("text") if form == "--text" else None
    if want is None and "ids" in case:
        form, want = "--ids", " ".join(map(str, case["ids"])) + "\n"
    elif want is None:
        form, want = "--text", case["text"]
    done = subprocess.run([MEMWALL, "tokenize", "-m", path, "--chat", form, *args],
                          input=json.dumps(case["messages"]).encode(), capture_output=True,
                          check=False)
    if done.returncode == 0 and done.stdout == want.encode():
        return None
    return f"{case['case']} {form}: {done.stdout!r} {done.stderr!r}, expected {want!r}"


def chat_command(name, path, chat):
    """Check some conversations of a file, ids and text in turns.  Returns whether all are right.

    tokenizer_vectors renders all of them, in one process."""
    with open(chat, encoding="utf-8", newline="\n") as f:
        lines = f.readlines()
    results = [chat_line(path, line, ("--ids", "--text")[i % 2])
               for i, line in enumerate(lines[::5])]
    wrong = [w for w in results if w is not None]
    label = f"{name}: tokenize --chat: {os.path.basename(chat)}"
    print(f"{'not ok' if wrong else 'ok'} {label}")
    for w in wrong[:5]:
        print("   ", w)
    return not wrong


def main():
    if not os.path.isdir(DATA):
        print("skip tokenizers: there is no reference data (MW_SHARED)")
        return 77
    os.makedirs(KEPT, exist_ok=True)
    sys.path.insert(0, os.path.join(SHARED, "tools"))
    global vocab_gguf
    import vocab_gguf
    failed = 0
    for family in sorted(CHATS):
        chats = [os.path.join(DATA, "chat", c + ".jsonl") for c in CHATS[family]]
        for name, path in sources(family):
            sys.stdout.flush()
            command = [PROGRAM, name, path, os.path.join(DATA, family)] + chats
            failed += subprocess.run(command, check=False).returncode != 0
        for chat in chats:  # once per family, from its GGUF file
            failed += not chat_command(name, path, chat)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
