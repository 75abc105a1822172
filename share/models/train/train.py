#!/usr/bin/env python3
"""Train the guide, the model in the box, and write it as a GGUF file.

    python3 train.py                     train and write ../memwall-guide.gguf

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
import ops
import sample
import tokenizer as tok
from model import Guide, Shape, count, multiply

HERE = os.path.dirname(os.path.abspath(__file__))
ROUND = 2048           # conversations
BATCH_TOKENS = 4096    # with padding
SHARDS = 2             # of a batch; more threads do not help
QUESTION_WEIGHT = 0.1  # of the loss on a question's tokens, relative to an answer's
FIRST_WEIGHT = 9.0     # of the first token of an answer, relative to a late one
TOPIC_WEIGHT = 0.5     # of the loss of the classifier where an answer begins
TOPIC_AGAIN = 0.2      # of this loss at each of the next places of the answer
TOPIC_TOKENS = 12      # at so many places
WARM_UP = 0.02         # of the rounds of a phase
DECAY = 0.1
LARGEST_GRADIENT = 1.0
DROPOUT = 0.1
OWN_ROWS = 0.3         # size of a token's own rows at the start, relative to its word's
CHECKPOINT_SECONDS = 120
VALIDATE_ROUNDS = 10
GAP = 0.3              # how often positions jump before an unrelated question
SEED = 20


@dataclasses.dataclass
class Phase:
    """The learning rate rises to its peak and falls to 0 in each phase.  The beginning of an
    answer shows whether the question was understood, and the rest is learned soon: most last
    answers are cut, which leaves time for more questions."""
    rounds: int
    peak: float
    cut: float           # share of last answers that are cut
    cut_tokens: tuple    # tokens that a cut answer keeps: from, to before


PHASES = (Phase(230, 3e-3, 0.9, (3, 16)),
          Phase(140, 1.5e-3, 0.95, (1, 5)),
          Phase(60, 1.5e-3, 0.95, (1, 5)))
NEWEST = 0.7           # of the exported weights; the rest are those of the phases before


class Trainer:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(SEED)
        self.corpus = corpus_module.Corpus()
        self.sampler = sample.Sampler(self.corpus, SEED)
        self.tokenizer = tok.train(self._vocabulary_texts(), Shape.vocab)
        self.model = Guide(Shape(vocab=len(self.tokenizer.tokens)))
        self.topics = {name: i for i, name in enumerate(self.sampler.names)}
        # A classifier on the first places of an answer.  It teaches the stream to know the
        # topic before the first word, and again at each of the next ones: later layers read
        # only keys and values of the first layers, so each place must find it by itself.  The
        # classifier is not part of the exported model.
        self.classifier = nn.Parameter(torch.zeros(len(self.topics), Shape.hidden))
        # "What", "what" and their forms with a space are different tokens.  While training, the
        # rows of a token are the sum of its own and of its word's: a word that is common inside
        # sentences is then known as the first word of a question, too.
        self.words = torch.tensor(self.tokenizer.words())
        self.shared = []
        for p in (self.model.token_embd, self.model.per_layer_token_embd):
            self.shared.append(nn.Parameter(p.data[:max(self.words) + 1].clone()))
            p.data.mul_(OWN_ROWS)
        self.parameters = [*self.model.parameters(), *self.shared, self.classifier]
        self.optimizer = ops.Adam(self.parameters, DECAY)
        self.pool = concurrent.futures.ThreadPoolExecutor(args.threads)
        self.rounds = sum(p.rounds for p in PHASES)
        self.round, self.step, self.seconds = 0, 0, 0.0
        self.mean = None  # weights of the ends of phases, averaged

    def _vocabulary_texts(self):
        r = random.Random(SEED)
        for topic in self.corpus.topics.values():
            yield from [topic.answer] * 4
            for _ in range(20):
                text = corpus_module.tidy(self.corpus.expand(r.choice(topic.asks), r))
                yield text
                yield text[:1].upper() + text[1:]
        yield from ["user\n", "model\n", "system\n"] * 10000

    def phase(self):
        """The phase of this round, and how many rounds came before it."""
        before = 0
        for phase in PHASES[:-1]:
            if self.round < before + phase.rounds:
                return phase, before
            before += phase.rounds
        return PHASES[-1], before

    def rate(self, batch_share):
        """The learning rate after a share of this round: a short rise, then half a cosine."""
        phase, before = self.phase()
        done = (self.round - before + batch_share) / phase.rounds
        if done < WARM_UP:
            return phase.peak * done / WARM_UP
        return phase.peak * 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))

    def _last_answer_tokens(self):
        r, (phase, _) = self.sampler.random, self.phase()
        return r.randrange(*phase.cut_tokens) if r.random() < phase.cut else 10 ** 6

    def conversation(self):
        """Ids, positions, weights of the loss, and for the first places of answers: the topic
        and whether the answer begins there."""
        ids, weights, positions, places, at, begin = [tok.BOS], [0.0], [0], {}, 1, 0
        r = self.sampler.random
        for role, text, topic, follows in self.sampler.conversation():
            turn = self.tokenizer.turn(role, text)
            if role == "user" and len(ids) > 64 and not follows and r.random() < GAP:
                at += r.randrange(1000)
            n = 2 + len(self.tokenizer.encode(role)) if role != "model" else 3
            weight = QUESTION_WEIGHT if role == "user" else 0.0
            weights += [0.0] * n + [weight] * (len(turn) - n)
            if role == "model":
                begin = len(ids) + n
                for i in range(len(turn) - n - 1):
                    weights[begin + i] = 1 + (FIRST_WEIGHT - 1) * math.exp(-i / 5)
                for i in range(min(TOPIC_TOKENS, len(turn) - n)):
                    places[begin - 1 + i] = self.topics[topic], i == 0
            ids += turn
            positions += range(at, at + len(turn))
            at += len(turn)
        n = begin + self._last_answer_tokens()
        places = {i: t for i, t in places.items() if i < n}
        return ids[:n], positions[:n], weights[:n], places

    def batches(self):
        rows = sorted((self.conversation() for _ in range(ROUND)), key=lambda c: len(c[0]))
        out, batch = [], []
        for row in rows:
            if (len(batch) + 1) * len(row[0]) > BATCH_TOKENS:
                out.append(batch)
                batch = []
            batch.append(row)
        out.append(batch)
        self.sampler.random.shuffle(out)
        return out

    def tables(self):
        """The embedding and the per-layer embedding: rows of tokens plus rows of words."""
        own = self.model.token_embd, self.model.per_layer_token_embd
        return tuple(o + s[self.words] for o, s in zip(own, self.shared))

    def whole(self):
        """The model as it is used, with its sums in its tables."""
        model = Guide(self.model.shape)
        model.load_state_dict(self.model.state_dict())
        model.token_embd.data, model.per_layer_token_embd.data = (t.data for t in self.tables())
        return model

    def _end_phase(self):
        """Take the weights into the mean.  It answers more of the validation questions than the
        weights of the last phase: where both phases erred, they erred differently."""
        now = self.whole().state_dict()
        if self.mean is not None:
            now = {k: (1 - NEWEST) * v + NEWEST * now[k] for k, v in self.mean.items()}
        self.mean = now

    def gradients(self, rows, seed, scale):
        """Losses and gradients of some rows; scale holds the factors of both losses."""
        n = max(len(ids) for ids, _, _, _ in rows)
        ids = torch.tensor([r[0] + [tok.PAD] * (n - len(r[0])) for r in rows])
        positions = torch.tensor([r[1] + list(range(r[1][-1] + 1, r[1][-1] + 1 + n - len(r[1])))
                                  for r in rows])
        weights = torch.tensor([r[2] + [0.0] * (n - len(r[2])) for r in rows])
        tables = self.tables()
        x = self.model(ids, positions, tables=tables, dropout=DROPOUT, seed=seed)
        row, col = weights[:, 1:].nonzero(as_tuple=True)
        w = weights[:, 1:][row, col] * scale[0]
        logits = multiply(x[row, col], tables[0])
        loss = ops.CrossEntropy.apply(logits, ids[row, col + 1], w, Shape.cap)
        places = [(i, j, *t) for i, r in enumerate(rows) for j, t in r[3].items()]
        row, col, topics, begins = (torch.tensor(p) for p in zip(*places))
        guess = multiply(x[row, col], self.classifier).float()
        each = F.cross_entropy(guess, topics, reduction="none")
        topic_loss = each[begins].sum() * scale[1]
        again = each[~begins].sum() * scale[1]
        total = loss + TOPIC_WEIGHT * (topic_loss + TOPIC_AGAIN * again)
        return loss.item(), topic_loss.item(), torch.autograd.grad(total, self.parameters)

    def train_batch(self, batch, rate):
        answers = sum(begins for r in batch for _, begins in r[3].values())
        scale = (1 / sum(sum(r[2][1:]) for r in batch), 1 / answers)
        parts = [(batch[i::SHARDS], self.step * SHARDS + i, scale) for i in range(SHARDS)]
        results = list(self.pool.map(lambda a: self.gradients(*a), (p for p in parts if p[0])))
        gradients = [sum(gs[1:], gs[0]) for gs in zip(*(r[2] for r in results))]
        self.optimizer.step(gradients, rate, LARGEST_GRADIENT)
        self.step += 1
        return sum(r[0] for r in results), sum(r[1] for r in results)

    def run(self):
        start, saved = time.time() - self.seconds, time.time()
        print(f"{count(self.model)} parameters, {len(self.corpus.topics)} topics, "
              f"{self.rounds} rounds", flush=True)
        while self.round < self.rounds:
            batches = self.batches()
            sums = [0.0, 0.0]
            for i, batch in enumerate(batches):
                rate = self.rate(i / len(batches))
                for j, v in enumerate(self.train_batch(batch, rate)):
                    sums[j] += v / len(batches)
            ending = self.phase()[0]
            self.round += 1
            if self.round == self.rounds or self.phase()[0] is not ending:
                self._end_phase()
            self.seconds = time.time() - start
            self.report(sums)
            if time.time() - saved > CHECKPOINT_SECONDS or self.round == self.rounds:
                self.save()
                saved = time.time()

    def report(self, sums):
        left = self.seconds / self.round * (self.rounds - self.round)
        line = (f"round {self.round}/{self.rounds}, step {self.step}: loss {sums[0]:.4f}, "
                f"topic loss {sums[1]:.4f}, {self.seconds / 60:.1f} min, "
                f"{left / 60:.1f} min left")
        if self.round % VALIDATE_ROUNDS == 0:
            n, wrong = evaluate.wrong(self.corpus, self.whole(), self.tokenizer)
            line += f", validation {100 * (n - len(wrong)) / n:.1f} % right"
        print(line, flush=True)

    def save(self):
        is_done = self.round == self.rounds
        state = {"model": self.mean if is_done else self.whole().state_dict(),
                 "mean": self.mean, "merges": self.tokenizer.merges,
                 "parameters": [p.data for p in self.parameters],
                 "moments": self.optimizer.moments,
                 "shape": vars(self.model.shape), "round": self.round, "step": self.step,
                 "seconds": self.seconds, "random": self.sampler.random.getstate(),
                 "order": self.sampler.order, "topics": self.sampler.names}
        torch.save(state, self.args.checkpoint + ".new")
        os.replace(self.args.checkpoint + ".new", self.args.checkpoint)

    def restore(self):
        if not os.path.exists(self.args.checkpoint):
            return
        state = torch.load(self.args.checkpoint)
        if state["topics"] != self.sampler.names or state["merges"] != self.tokenizer.merges:
            raise SystemExit(f"{self.args.checkpoint} is from another corpus; delete it to "
                             "begin again")
        for p, data in zip(self.parameters, state["parameters"]):
            p.data.copy_(data)
        self.optimizer.moments, self.optimizer.steps = state["moments"], state["step"]
        self.mean = state["mean"]
        self.round, self.step, self.seconds = state["round"], state["step"], state["seconds"]
        self.sampler.random.setstate(state["random"])
        self.sampler.order = state["order"]


def main():
    p = argparse.ArgumentParser(description="Train the guide.")
    p.add_argument("--threads", type=int, default=2, help="compute with this many threads")
    p.add_argument("--checkpoint", default="guide.checkpoint", help="set the checkpoint's path")
    p.add_argument("--out", default=os.path.join(HERE, "..", "memwall-guide.gguf"),
                   help="set the path of the model")
    t = Trainer(p.parse_args())
    t.restore()
    t.run()
    model = t.whole()
    model.load_state_dict(t.mean)
    export.write(t.args.out, model, t.tokenizer, export.TYPE_Q8_0)


if __name__ == "__main__":
    main()
