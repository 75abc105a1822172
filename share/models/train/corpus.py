#!/usr/bin/env python3
"""The corpus of the guide: topics, the phrasings of their questions, and one answer each.

    python3 corpus.py --check        check all files; exit 1 if anything is wrong
    python3 corpus.py --sample 10    print conversations as the trainer sees them

The format is described in README.md.  A phrasing is a pattern:

    what is [a|the] (KV cache|key-value cache)      [x] may be left out, (a|b) is one of both
    <what> [the] KV cache                           <what> is a rule of grammar.txt

parse_pattern makes a tree of tuples out of it: ("text", s), ("all", nodes) in a row,
("one", nodes) alternatives, ("rule", name).
"""
import argparse
import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "corpus")
HELD_BACK = os.path.join(HERE, "heldback.txt")

MAX_COLUMNS = 100
MIN_ASKS = 6
ANSWER_WORDS = (15, 60)
MAX_EXPANSIONS = 20000  # of one line; more are checked by a sample only


class CorpusError(Exception):
    pass


class Topic:
    def __init__(self, name, place):
        self.name, self.place = name, place
        self.asks, self.answer, self.facts, self.thens = [], None, [], []

    def is_right(self, answer):
        return all(re.search(f, answer, re.I) for f in self.facts)


class Corpus:
    """All topics and rules.  Faulty lines are left out and named in complaints."""

    def __init__(self, folder=CORPUS):
        self.topics, self.rules, self.complaints = {}, {}, []
        for name in sorted(n for n in os.listdir(folder) if n.endswith(".txt")):
            self._read(os.path.join(folder, name))
        for topic in self.topics.values():
            topic.asks = [n for n in topic.asks if self._has_rules(n, topic)]
            topic.thens = [t for t in topic.thens if self._has_rules(t[0], topic)]
        self.topics = {name: t for name, t in self.topics.items() if self._is_complete(t)}

    def _read(self, path):
        topic = None
        for place, line in logical_lines(path):
            if not line:
                topic = None
                continue
            word, _, rest = line.partition(" ")
            try:
                if word in ("rule", "list"):
                    self._add_rule(word, rest)
                elif word == "topic":
                    topic = Topic(rest, place)
                    self._add_topic(topic)
                else:
                    self._add_line(topic, word, rest)
            except CorpusError as e:
                self.complaints.append(f"{place}: {e}")

    def _add_rule(self, word, rest):
        name, _, text = rest.partition(" ")
        if word == "rule":
            nodes = [parse_pattern(text)]
        else:
            nodes = [("text", w.strip()) for w in text.split("|")]
        self.rules.setdefault(name, []).extend(nodes)

    def _add_topic(self, topic):
        name = topic.name
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise CorpusError(f"topic id {name!r}: use lower-case words joined by hyphens")
        if name in self.topics:
            raise CorpusError(f"topic {name} exists already, in {self.topics[name].place}")
        self.topics[name] = topic

    def _add_line(self, topic, word, rest):
        if topic is None:
            raise CorpusError(f"{word!r} outside a topic")
        if word == "ask":
            topic.asks.append(parse_pattern(rest))
        elif word == "answer":
            if topic.answer is not None:
                raise CorpusError("second answer of a topic")
            topic.answer = rest
        elif word == "fact":
            topic.facts.append(rest)
        elif word == "then":
            pattern, arrow, target = rest.rpartition("=>")
            if not arrow:
                raise CorpusError("then without => and an id")
            topic.thens.append((parse_pattern(pattern.strip()), target.strip()))
        else:
            raise CorpusError(f"unknown word {word!r}")

    def expand(self, node, random):
        """One random text of a pattern; the blanks are not tidied."""
        kind, value = node
        if kind == "text":
            return value
        if kind == "rule":
            return self.expand(random.choice(self._rule(value)), random)
        if kind == "one":
            return self.expand(random.choice(value), random)
        return "".join(self.expand(n, random) for n in value)

    def count(self, node):
        """How many texts a pattern has, equal ones counted again."""
        kind, value = node
        if kind == "text":
            return 1
        if kind in ("rule", "one"):
            return sum(map(self.count, self._rule(value) if kind == "rule" else value))
        return math.prod(map(self.count, value))

    def expansions(self, node):
        """All texts of a pattern, or None if there are more than MAX_EXPANSIONS."""
        kind, value = node
        if kind == "text":
            return [value]
        if kind in ("rule", "one"):
            out = []
            for n in self._rule(value) if kind == "rule" else value:
                part = self.expansions(n)
                if part is None:
                    return None
                out += part
            return out if len(out) <= MAX_EXPANSIONS else None
        out = [""]
        for n in value:
            part = self.expansions(n)
            if part is None or len(out) * len(part) > MAX_EXPANSIONS:
                return None
            out = [a + b for a in out for b in part]
        return out

    def _rule(self, name):
        return self.rules[name]

    def _has_rules(self, node, topic):
        kind, value = node
        if kind == "rule" and value not in self.rules:
            self.complaints.append(f"{topic.place}: topic {topic.name} uses the unknown rule "
                                   f"<{value}>; write \\<{value}\\> for text")
            return False
        return all(self._has_rules(n, topic) for n in (value if kind in ("one", "all") else ()))

    def _is_complete(self, topic):
        if topic.asks and topic.answer and topic.facts:
            return True
        self.complaints.append(f"{topic.place}: topic {topic.name} needs ask, answer and fact")
        return False


def logical_lines(path):
    """(place, text) of each line with its continuations; an empty text ends a topic."""
    out = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("  ") and out:
                out[-1][1] += " " + line.strip()
            elif not line.startswith("#"):
                out.append([f"{os.path.basename(path)}:{number}", line.strip()])
    return out


def parse_pattern(text):
    node, at = _alternatives(text, 0, "")
    if at < len(text):
        raise CorpusError(f"unexpected {text[at]!r} in {text!r}")
    return node


def _alternatives(text, at, end):
    options = []
    while True:
        node, at = _sequence(text, at)
        options.append(node)
        if at < len(text) and text[at] == "|" and end:
            at += 1
            continue
        if end and (at >= len(text) or text[at] != end):
            raise CorpusError(f"missing {end!r} in {text!r}")
        return (options[0] if len(options) == 1 else ("one", options)), at + len(end)


def _sequence(text, at):
    nodes, plain = [], ""
    while at < len(text) and text[at] not in "|)]":
        c = text[at]
        if c not in "([<":
            at += c == "\\"
            plain += text[at:at + 1]
            at += 1
            continue
        nodes.append(("text", plain))
        plain = ""
        if c == "<":
            close = text.find(">", at)
            if close < 0:
                raise CorpusError(f"missing '>' in {text!r}")
            nodes.append(("rule", text[at + 1:close]))
            at = close + 1
        else:
            node, at = _alternatives(text, at + 1, {"(": ")", "[": "]"}[c])
            nodes.append(("one", [node, ("text", "")]) if c == "[" else node)
    nodes.append(("text", plain))
    nodes = [n for n in nodes if n != ("text", "")]
    return (nodes[0] if len(nodes) == 1 else ("all", nodes)), at


def tidy(text):
    return " ".join(text.split())


def key(text):
    """Two questions with the same key are the same question to a reader."""
    return re.sub(r"[^a-z0-9_/+-]+", " ", text.lower()).strip()


def keys(corpus, node, random, samples=400):
    """The keys of all expansions, or of a sample where there are too many."""
    texts = corpus.expansions(node)
    if texts is None:
        texts = [corpus.expand(node, random) for _ in range(samples)]
    return {key(t) for t in texts}


def asked(corpus, random):
    """key -> names of the topics whose phrasings produce it."""
    out = {}
    for topic in corpus.topics.values():
        for node in topic.asks:
            for k in keys(corpus, node, random):
                out.setdefault(k, set()).add(topic.name)
    return out


def held_back(path=HELD_BACK):
    """[(earlier topic or None, topic, question)] of lines `topic: question` and
    `topic < earlier-topic: question`."""
    out = []
    for place, line in logical_lines(path):
        if not line:
            continue
        m = re.fullmatch(r"([a-z0-9-]+)(?:\s*<\s*([a-z0-9-]+))?:\s*(.+)", line)
        if not m:
            raise CorpusError(f"{place}: expected `topic: question`")
        out.append((m[2], m[1], m[3]))
    return out


class Checker:
    def __init__(self, corpus, random):
        self.corpus, self.random, self.complaints = corpus, random, []

    def say(self, place, text):
        self.complaints.append(f"{place}: {text}")

    def topic(self, t):
        if len(t.asks) < MIN_ASKS:
            self.say(t.place, f"{t.name} has {len(t.asks)} ask lines; write {MIN_ASKS} or more")
        words = len(t.answer.split())
        if not ANSWER_WORDS[0] <= words <= ANSWER_WORDS[1]:
            self.say(t.place, f"the answer of {t.name} has {words} words, not 15 to 60")
        if not 1 <= len(t.facts) <= 3:
            self.say(t.place, f"{t.name} has {len(t.facts)} facts, not 1 to 3")
        for fact in t.facts:
            if not re.search(fact, t.answer, re.I):
                self.say(t.place, f"fact {fact!r} of {t.name} does not match its answer")
        for _, target in t.thens:
            if target not in self.corpus.topics:
                self.say(t.place, f"{t.name} leads to {target}, which does not exist")

    def ambiguities(self):
        known = asked(self.corpus, self.random)
        shared = {}
        for k, names in sorted(known.items()):
            if len(names) > 1:
                shared.setdefault(tuple(sorted(names)), []).append(k)
        for names, ks in shared.items():
            self.say(self.corpus.topics[names[0]].place,
                     f"{ks[0]!r} and {len(ks) - 1} more are asked in {', '.join(names)}")
        for t in self.corpus.topics.values():
            seen = {}
            for node, target in t.thens:
                for k in keys(self.corpus, node, self.random):
                    if seen.setdefault(k, target) != target:
                        self.say(t.place, f"{k!r} after {t.name} leads to {seen[k]} and "
                                          f"{target}")
                    if not known.get(k, {target}) <= {target, t.name}:
                        self.say(t.place, f"{k!r} after {t.name} leads to {target}, but is "
                                          f"asked in {', '.join(sorted(known[k]))}")
        return known

    def held_back(self, known, path=HELD_BACK):
        if not os.path.exists(path):
            return
        for earlier, name, question in held_back(path):
            for n in (name, earlier):
                if n is not None and n not in self.corpus.topics:
                    self.say("heldback.txt", f"unknown topic {n}")
            follow = [k for t in self.corpus.topics.values() if t.name == earlier
                      for node, _ in t.thens for k in keys(self.corpus, node, self.random)]
            if key(question) in known or key(question) in follow:
                self.say("heldback.txt", f"the grammar generates {question!r}")

    def lines(self, folder):
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as f:
                for number, line in enumerate(f, 1):
                    if len(line) > MAX_COLUMNS + 1:
                        self.say(f"{name}:{number}", f"longer than {MAX_COLUMNS} columns")
                    if not line.isascii():
                        self.say(f"{name}:{number}", "not ASCII")


def check(folder=CORPUS):
    """Complaints about the corpus, one text each, and the corpus."""
    import random
    corpus = Corpus(folder)
    c = Checker(corpus, random.Random(1))
    c.complaints += corpus.complaints
    c.lines(folder)
    for t in corpus.topics.values():
        c.topic(t)
    c.held_back(c.ambiguities())
    return c.complaints, corpus


def main():
    p = argparse.ArgumentParser(description="Check or sample the corpus of the guide.")
    p.add_argument("--check", action="store_true", help="check all files")
    p.add_argument("--sample", type=int, default=0, metavar="N", help="print N conversations")
    p.add_argument("--seed", type=int, default=1, help="set the random seed")
    args = p.parse_args()
    complaints, corpus = check()
    if args.sample:
        import sample
        sample.show(corpus, args.sample, args.seed)
        return
    for line in complaints:
        print(line)
    print(f"{len(corpus.topics)} topics, {sum(len(t.asks) for t in corpus.topics.values())} "
          f"phrasings, {sum(len(t.thens) for t in corpus.topics.values())} follow-ups, "
          f"{len(complaints)} complaints")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
