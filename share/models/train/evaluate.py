#!/usr/bin/env python3
"""How often the guide is right, computed by PyTorch.

    python3 evaluate.py CHECKPOINT [FILE]      FILE: validation.txt (default), heldback.txt

A question of these files is right if the greedy answer has all facts of its topic.
"""
import os
import random
import sys

import torch

import corpus as corpus_module
import tokenizer as tok

VALIDATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "validation.txt")


def conversations(corpus, path):
    """[(topic, turns)] of a file of questions.  A follow-up comes after the earlier topic's
    first phrasing and its answer."""
    out = []
    for earlier, name, question in corpus_module.held_back(path):
        turns = []
        if earlier is not None:
            topic = corpus.topics[earlier]
            first = corpus_module.tidy(corpus.expand(topic.asks[0], random.Random(1)))
            turns = [("user", first), ("model", topic.answer)]
        out.append((corpus.topics[name], turns + [("user", question)]))
    return out


def prompt(tokenizer, turns):
    """Ids of [(role, text)] and the beginning of the answer."""
    ids = [tok.BOS]
    for role, text in turns:
        ids += tokenizer.turn(role, text)
    return ids + tokenizer.prompt()


def greedy(model, tokenizer, prompts, limit=120):
    """Greedy answers as texts.  Prompts of equal length are decoded together."""
    out, groups = [None] * len(prompts), {}
    for i, ids in enumerate(prompts):
        groups.setdefault(len(ids), []).append(i)
    for members in groups.values():
        rows = _decode(model, torch.tensor([prompts[i] for i in members]), limit)
        for i, row in zip(members, rows):
            end = row.index(tok.END_TURN) if tok.END_TURN in row else len(row)
            out[i] = tokenizer.decode(row[:end])
    return out


def _decode(model, ids, limit):
    store, past, out = {}, None, []
    positions = torch.arange(ids.shape[1]).expand(*ids.shape)
    ended = torch.zeros(len(ids), dtype=torch.bool)
    while len(out) < limit and not ended.all():
        x = model(ids, positions, store, past)[:, -1:]
        ids = model.logits(x).argmax(-1)
        out.append(ids)
        ended |= ids[:, 0] == tok.END_TURN
        past = positions if past is None else torch.cat((past, positions), 1)
        positions = positions[:, -1:] + 1
    return torch.cat(out, 1).tolist()


def wrong(corpus, model, tokenizer, path=VALIDATION):
    """The number of questions, and (topic, question, answer) of the wrong answers."""
    asked = conversations(corpus, path)
    with torch.no_grad():
        answers = greedy(model, tokenizer, [prompt(tokenizer, turns) for _, turns in asked])
    return len(asked), [(topic.name, turns[-1][1], answer)
                        for (topic, turns), answer in zip(asked, answers)
                        if not topic.is_right(answer)]


def main():
    import export
    torch.set_num_threads(1)
    corpus = corpus_module.Corpus()
    n, bad = wrong(corpus, *export.load(sys.argv[1]), *sys.argv[2:3])
    for name, question, answer in bad:
        print(f"{name}: {question}\n    {answer}")
    print(f"{n - len(bad)} of {n} right, {100 * (n - len(bad)) / n:.1f} %")


if __name__ == "__main__":
    main()
