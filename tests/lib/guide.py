"""Ask the guide, the model in the box, through ./memwall: greedy answers and perplexity."""
import array
import functools
import json
import math
import os
import random
import sys
import tempfile

from program import SRCDIR, memwall

TRAIN = os.path.join(SRCDIR, "share", "models", "train")
MODEL = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
LONGEST_ANSWER = 120  # tokens

sys.path.insert(0, TRAIN)
import corpus as corpus_module  # noqa: E402


def _must(result):
    if result.returncode:
        raise RuntimeError(result.stderr)
    return result.stdout


def conversations(corpus):
    """[(topic, messages)] of the held-back questions; a follow-up comes after the earlier
    topic's first phrasing and its answer."""
    out = []
    for earlier, name, question in corpus_module.held_back():
        messages = []
        if earlier is not None:
            topic = corpus.topics[earlier]
            first = corpus_module.tidy(corpus.expand(topic.asks[0], random.Random(1)))
            messages = [("user", first), ("assistant", topic.answer)]
        out.append((corpus.topics[name], messages + [("user", question)]))
    return out


def ids(messages, *options, model=MODEL):
    """The ids that the model's chat template makes of messages."""
    return list(_ids(json.dumps([{"role": r, "content": c} for r, c in messages]), options, model))


@functools.cache  # the same questions are answered and judged
def _ids(text, options, model):
    return _must(memwall("tokenize", "-m", model, "--chat", "--ids", *options,
                         stdin=text)).split()


def answer(messages, *options, model=MODEL):
    """The greedy answer."""
    end = ids([("user", "x")], "--no-generation-prompt", model=model)[-2]
    for n in LONGEST_ANSWER // 2, LONGEST_ANSWER:  # most are short
        got = _must(memwall("eval", "-m", model, "--ids", "-", "--greedy", str(n), *options,
                            stdin=" ".join(ids(messages, model=model)))).split()
        if end in got:
            got = got[:got.index(end)]
            break
    return _must(memwall("tokenize", "-m", model, "--decode", stdin=" ".join(got)))


def losses(topic, messages, *options, model=MODEL):
    """-log p of each token of the right answer."""
    n = len(ids(messages, model=model))
    whole = ids(messages + [("assistant", topic.answer)], "--no-generation-prompt",
                model=model)[:-1]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits")
        _must(memwall("eval", "-m", model, "--ids", "-", "--logits", out, *options,
                      stdin=" ".join(whole)))
        flat = array.array("f")
        with open(out, "rb") as f:
            flat.frombytes(f.read())
    width = len(flat) // len(whole)
    rows = (flat[(i - 1) * width:i * width] for i in range(n, len(whole)))
    return [math.log(sum(map(math.exp, row))) - row[int(i)] for row, i in zip(rows, whole[n:])]


def perplexity(corpus, *options, model=MODEL):
    """Return the perplexity of the right answers to the held-back questions."""
    all_losses = [x for topic, messages in conversations(corpus)
                  for x in losses(topic, messages, *options, model=model)]
    return math.exp(sum(all_losses) / len(all_losses))
