#!/usr/bin/env python3
"""Train the guide's assistant, the draft head of the model in the box, and write it as a GGUF file.

    python3 assistant.py                 train and write ../memwall-guide-assistant.gguf

The form is that of Gemma 4's assistants: a few layers that read the keys and values of the guide
and have none of their own, and a narrow output head.  A step drafts one token:

    x = pre_projection [embedding of the token in the guide ; hidden row]
    layers, each at the position of the token to draft from
    logits = own embedding . norm(x), and the hidden row of the next step = post_projection norm(x)

The first hidden row is the guide's, of the token before.  Training runs STEPS steps from each token
of an answer, with the answer's own tokens: those are the steps that count, since a step after a
wrong draft is of no use.

The command may be stopped at any time, also by SIGKILL; the same command goes on from the last
checkpoint and ends with the same weights.
"""
import argparse
import concurrent.futures
import dataclasses
import math
import os
import random
import time

os.environ["OMP_NUM_THREADS"] = "1"  # a batch is cut into shards, one thread each

import torch  # noqa: E402
from torch import nn
from torch.nn import functional as F

import corpus as corpus_module
import evaluate
import export
import guide_file
import ops
import sample
import tokenizer as tok
from model import Shape, count, multiply

HERE = os.path.dirname(os.path.abspath(__file__))
GUIDE = os.path.join(HERE, "..", "memwall-guide.gguf")
STEPS = 4              # tokens that are drafted in a row
LATER_WEIGHT = 0.9     # of the loss of a step, relative to the one before: it is reached less often
ROUNDS = 24
ROUND = 2048           # conversations
BATCH_TOKENS = 4096    # with padding
SHARDS = 2             # of a batch
PEAK = 4e-3            # learning rate: it rises to this, then falls to 0
WARM_UP = 0.02         # of the rounds
DECAY = 0.02
LARGEST_GRADIENT = 1.0
GAP = 0.3              # how often positions jump before an unrelated question
VALIDATE_ROUNDS = 4
CHECKPOINT_SECONDS = 30
SEED = 44


@dataclasses.dataclass
class HeadShape(Shape):
    hidden: int = 64
    layers: int = 2          # sliding, global
    period: int = 2
    shared: int = 2
    ff: int = 128            # shared layers have twice as much
    per_layer: int = 0
    cap: float = None


class HeadLayer(nn.Module):
    """A layer of model.py without keys and values, and without a per-layer input."""

    def __init__(self, shape, index):
        super().__init__()
        h, d, ff = shape.hidden, shape.head(index), 2 * shape.ff
        self.shape, self.index = shape, index
        self.attn_norm, self.post_attention_norm = (nn.Parameter(torch.full((h,), v))
                                                    for v in (1.0, 0.3))
        self.ffn_norm, self.post_ffw_norm = (nn.Parameter(torch.full((h,), v))
                                             for v in (1.0, 0.3))
        self.attn_q_norm = nn.Parameter(torch.full((d,), d ** -0.25))
        for name, rows, cols in (("attn_q", shape.heads * d, h), ("attn_output", h,
                                 shape.heads * d), ("ffn_gate", ff, h), ("ffn_up", ff, h),
                                 ("ffn_down", h, ff)):
            self.register_parameter(name, nn.Parameter(torch.randn(rows, cols) * cols ** -0.5))
        self.layer_output_scale = nn.Parameter(torch.ones(1))

    def forward(self, x, rope, seen, donor):
        """seen: positions of the stored tokens; donor: their keys and values.  Row i reads those
        of the tokens up to i."""
        s, (b, t, _) = self.shape, x.shape
        d, window = s.head(self.index), s.window if s.is_sliding(self.index) else 1 << 40
        h = ops.Norm.apply(x, self.attn_norm, s.eps)
        q = ops.Heads.apply(multiply(h, self.attn_q), self.attn_q_norm, *rope, s.heads, s.eps)
        score = torch.bmm(q.view(b, s.heads * t, d), donor[0].transpose(1, 2))
        weight = ops.Softmax.apply(score.view(b, s.heads, t, t), seen, window)
        out = torch.bmm(weight.view(b, s.heads * t, t), donor[1]).view(b, s.heads, t, d)
        y = multiply(out.transpose(1, 2).reshape(b, t, s.heads * d), self.attn_output)
        x = ops.AddNorm.apply(x, y, self.post_attention_norm, s.eps, 0.0, 0)
        h = ops.Norm.apply(x, self.ffn_norm, s.eps)
        y = multiply(ops.Gelu.apply(multiply(h, self.ffn_gate), multiply(h, self.ffn_up)),
                     self.ffn_down)
        return ops.AddNorm.apply(x, y, self.post_ffw_norm, s.eps, 0.0, 0) * self.layer_output_scale


class Assistant(nn.Module):
    """Holds no weights of the guide."""

    def __init__(self, guide, shape=None):
        super().__init__()
        wide = guide.shape.hidden
        self.shape = s = shape or HeadShape(vocab=guide.shape.vocab)
        self.token_embd = nn.Parameter(torch.randn(s.vocab, s.hidden) * s.hidden ** -0.5)
        self.blk = nn.ModuleList(HeadLayer(s, i) for i in range(s.layers))
        self.output_norm = nn.Parameter(torch.ones(s.hidden))
        self.nextn = nn.Module()
        self.nextn.pre_projection = nn.Parameter(
            torch.randn(s.hidden, 2 * wide) * (2 * wide) ** -0.5)
        self.nextn.post_projection = nn.Parameter(torch.randn(wide, s.hidden) * s.hidden ** -0.5)

    def step(self, rows, hidden, rope, seen, donors):
        """rows: embeddings of the tokens, as the guide scales them.  Returns the normed output and
        the next hidden row."""
        x = multiply(torch.cat((rows.bfloat16(), hidden), -1), self.nextn.pre_projection).float()
        for layer, donor in zip(self.blk, donors):
            x = layer(x, rope[self.shape.is_sliding(layer.index)], seen, donor)
        y = ops.Norm.apply(x, self.output_norm, self.shape.eps)
        return y, multiply(y, self.nextn.post_projection)

    def forward(self, guide, ids, positions, steps):
        """The normed outputs of each step, [B, T - 1, hidden].  Row i drafts after token i + 1,
        and reads the keys, values and hidden row of the tokens up to i."""
        store = {}
        with torch.no_grad():
            hidden = guide(ids, positions, store)[:, :-1]
            table = guide.token_embd * guide.shape.hidden ** 0.5
        owners = range(guide.shape.layers - guide.shape.shared)
        donors = []
        for i in range(self.shape.layers):
            last = max(o for o in owners
                       if guide.shape.is_sliding(o) == self.shape.is_sliding(i))
            donors.append([x[:, :-1] for x in store[last]])
        seen = positions[:, :-1].contiguous()
        rope = {k: guide.rope(positions[:, 1:], k) for k in (True, False)}
        out = []
        for k in range(steps):
            # Past the end of a row, no loss is counted.
            token = F.pad(ids[:, 1 + k:], (0, k), value=tok.PAD)
            y, hidden = self.step(F.embedding(token, table), hidden, rope, seen, donors)
            out.append(y)
        return out


def export_assistant(path, model, guide, tokenizer):
    prefix, s = "gemma4-assistant.", model.shape
    metadata = [("general.architecture", export.STRING, "gemma4-assistant"),
                ("general.type", export.STRING, "model"),
                ("general.name", export.STRING, "memwall guide assistant"),
                ("general.license", export.STRING, "GPL-3.0-or-later"),
                ("general.description", export.STRING, "Drafts tokens for the memwall guide."),
                ("general.file_type", export.U32, export.FILE_TYPE[export.TYPE_Q8_0]),
                ("general.quantization_version", export.U32, 2),
                *export.model_keys(s, prefix),
                (prefix + "embedding_length_out", export.U32, guide.shape.hidden),
                (prefix + "nextn_predict_layers", export.U32, s.layers),
                *export.tokenizer_keys(tokenizer)]
    export.write_file(path, metadata, list(export.tensors(model, export.TYPE_Q8_0)))


class Trainer:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(SEED)
        self.guide, self.tokenizer = guide_file.load(GUIDE)
        self.corpus = corpus_module.Corpus()
        self.sampler = sample.Sampler(self.corpus, SEED)
        self.model = Assistant(self.guide)
        self.parameters = list(self.model.parameters())
        self.optimizer = ops.Adam(self.parameters, DECAY)
        self.pool = concurrent.futures.ThreadPoolExecutor(args.threads)
        self.round, self.seconds = 0, 0.0

    def conversation(self, turns):
        """Ids, positions, and for each token whether it may be drafted: those of answers after the
        first, which the guide itself samples."""
        ids, positions, drafted, at, r = [tok.BOS], [0], [False], 1, self.sampler.random
        for role, text, _, follows in turns:
            turn = self.tokenizer.turn(role, text)
            if role == "user" and len(ids) > 64 and not follows and r.random() < GAP:
                at += r.randrange(1000)
            n = len(self.tokenizer.prompt()) + 1 if role == "model" else len(turn)
            drafted += [False] * n + [True] * (len(turn) - n - 1) + [False] * (n < len(turn))
            ids += turn
            positions += range(at, at + len(turn))
            at += len(turn)
        return ids, positions, drafted

    def batches(self):
        rows = [self.conversation(self.sampler.conversation()) for _ in range(ROUND)]
        rows.sort(key=lambda c: len(c[0]))
        out, batch = [], []
        for row in rows:
            if (len(batch) + 1) * len(row[0]) > BATCH_TOKENS:
                out.append(batch)
                batch = []
            batch.append(row)
        out.append(batch)
        self.sampler.random.shuffle(out)
        return out

    @staticmethod
    def tensors(rows):
        n = max(len(ids) for ids, _, _ in rows)
        return (torch.tensor([r[0] + [tok.PAD] * (n - len(r[0])) for r in rows]),
                torch.tensor([r[1] + list(range(r[1][-1] + 1, r[1][-1] + 1 + n - len(r[1])))
                              for r in rows]),
                torch.tensor([r[2] + [False] * (n - len(r[2])) for r in rows]))

    def wanted(self, drafted):
        """For each step the rows that draft a token of an answer, from a token of the same."""
        out, alive = [], torch.ones_like(drafted[:, 1:])
        for k in range(STEPS):
            alive = alive & F.pad(drafted[:, 2 + k:], (0, k + 1))
            out.append(alive.nonzero(as_tuple=True))
        return out

    def gradients(self, rows, scale):
        """The loss of the rows and its gradients; scale: 1 / the tokens of the batch."""
        ids, positions, drafted = self.tensors(rows)
        total, weight = 0, scale
        for k, (y, (row, col)) in enumerate(zip(self.model(self.guide, ids, positions, STEPS),
                                                self.wanted(drafted))):
            # The cap of the guide, which the head does not have: the best token is the same.
            logits = multiply(y[row, col], self.model.token_embd)
            w = torch.full((len(row),), weight)
            total = total + ops.CrossEntropy.apply(logits, ids[row, col + 2 + k], w, self.guide.shape.cap)
            weight *= LATER_WEIGHT
        return total.item(), torch.autograd.grad(total, self.parameters)

    def train_batch(self, batch, rate):
        scale = 1 / (sum(sum(r[2]) for r in batch) * sum(LATER_WEIGHT ** k for k in range(STEPS)))
        parts = [p for p in (batch[i::SHARDS] for i in range(SHARDS)) if p]
        results = list(self.pool.map(lambda p: self.gradients(p, scale), parts))
        self.optimizer.step([sum(gs[1:], gs[0]) for gs in zip(*(r[1] for r in results))], rate,
                            LARGEST_GRADIENT)
        return sum(r[0] for r in results)

    def rate(self, batch_share):
        done = (self.round + batch_share) / ROUNDS
        if done < WARM_UP:
            return PEAK * done / WARM_UP
        return PEAK * 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))

    def accepted(self):
        """Returns the share of drafts that is right at each depth where all before it were right,
        and the tokens of a pass, over the right answers to the validation questions."""
        rows = [self.conversation([(role, text, None, True) for role, text in turns] +
                                  [("model", topic.answer, None, True)])
                for topic, turns in evaluate.conversations(self.corpus, evaluate.VALIDATION)]
        right, tried = [0] * STEPS, [0] * STEPS
        with torch.no_grad():
            for at in range(0, len(rows), 32):
                ids, positions, drafted = self.tensors(rows[at:at + 32])
                alive = torch.ones_like(ids[:, 1:], dtype=torch.bool)
                for k, y in enumerate(self.model(self.guide, ids, positions, STEPS)):
                    alive = alive & F.pad(drafted[:, 2 + k:], (0, k + 1))
                    tried[k] += alive.sum().item()
                    best = multiply(y, self.model.token_embd).argmax(-1)
                    alive = alive & (best == F.pad(ids[:, 2 + k:], (0, k + 1)))
                    right[k] += alive.sum().item()
        return [r / max(t, 1) for r, t in zip(right, tried)], 1 + sum(right) / tried[0]

    def run(self):
        start, saved = time.time() - self.seconds, time.time()
        end = saved + self.args.seconds
        print(f"{count(self.model)} parameters, {ROUNDS} rounds", flush=True)
        while self.round < ROUNDS and time.time() < end:
            batches = self.batches()
            loss = 0.0
            for i, batch in enumerate(batches):
                loss += self.train_batch(batch, self.rate(i / len(batches))) / len(batches)
            self.round += 1
            self.seconds = time.time() - start
            line = f"round {self.round}/{ROUNDS}: loss {loss:.4f}, {self.seconds / 60:.1f} min"
            if self.round % VALIDATE_ROUNDS == 0:
                shares, tokens = self.accepted()
                line += (f", accepted {' '.join(f'{100 * s:.0f}' for s in shares)} %, "
                         f"{tokens:.2f} tokens a pass")
            print(line, flush=True)
            if time.time() - saved > CHECKPOINT_SECONDS or self.round == ROUNDS:
                self.save()
                saved = time.time()
        self.save()
        return self.round == ROUNDS

    def save(self):
        state = {"parameters": [p.data for p in self.parameters],
                 "moments": self.optimizer.moments, "steps": self.optimizer.steps,
                 "round": self.round, "seconds": self.seconds,
                 "random": self.sampler.random.getstate(), "order": self.sampler.order,
                 "topics": self.sampler.names}
        torch.save(state, self.args.checkpoint + ".new")
        os.replace(self.args.checkpoint + ".new", self.args.checkpoint)

    def restore(self):
        if not os.path.exists(self.args.checkpoint):
            return
        state = torch.load(self.args.checkpoint)
        if state["topics"] != self.sampler.names:
            raise SystemExit(f"{self.args.checkpoint} is from another corpus; delete it to "
                             "begin again")
        for p, data in zip(self.parameters, state["parameters"]):
            p.data.copy_(data)
        self.optimizer.moments, self.optimizer.steps = state["moments"], state["steps"]
        self.round, self.seconds = state["round"], state["seconds"]
        self.sampler.random.setstate(state["random"])
        self.sampler.order = state["order"]


def main():
    p = argparse.ArgumentParser(description="Train the guide's assistant.")
    p.add_argument("--threads", type=int, default=2, help="compute with this many threads")
    p.add_argument("--seconds", type=float, default=math.inf,
                   help="stop after this time; the same command goes on")
    p.add_argument("--checkpoint", default="assistant.checkpoint",
                   help="set the checkpoint's path")
    p.add_argument("--out", default=os.path.join(HERE, "..", "memwall-guide-assistant.gguf"),
                   help="set the path of the head")
    t = Trainer(p.parse_args())
    t.restore()
    if t.run():
        export_assistant(t.args.out, t.model, t.guide, t.tokenizer)


if __name__ == "__main__":
    main()
