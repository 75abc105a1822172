"""Random conversations from the corpus: what people type, with its mistakes, and the answers.

A conversation is a list of (role, text, topic, whether it follows up); topic is None in a
system turn.  Questions come from the phrasings and get politeness, capitals, punctuation,
typing mistakes, synonyms, and missing or extra words.  A question never turns into a phrasing
of another topic, or into one of the questions kept back for validation and for the test.
"""
import math
import os
import random as random_module
import re

import corpus as corpus_module
from corpus import key, tidy

HERE = os.path.dirname(os.path.abspath(__file__))

BEFORE = ["please", "can you tell me", "could you tell me", "tell me", "I wonder", "hi,",
          "hello,", "hey,", "hello!", "quick question:", "one question:", "a question:",
          "sorry,", "ok,", "okay,", "well,", "so", "also", "and", "thanks.", "thank you.",
          "I am new to this.", "maybe a stupid question, but", "I'd like to know",
          "I want to know", "help:", "I have a laptop.", "I run Debian.", "I have 8 GB of RAM.",
          "just curious:", "now"]
AFTER = ["please", "thanks", "exactly", "then", "here", "now", "in memwall", "in this program",
         "in general", "actually", "for me", "again", "on my machine", "thank you", "any idea",
         "in simple words", "in short", "in detail"]
INSIDE = ["really", "actually", "just", "exactly", "the", "a", "now", "then", "always", "even",
          "please", "still", "only", "this", "my", "that"]
DROPPABLE = set("a an the is are do does did i my me of to in for on it its this that be there "
                "so please with by at you your".split())
QUESTION = re.compile(r"^(what|who|why|how|where|when|which|is|are|do|does|did|can|could|"
                      r"should|would|will|may|must|has|have|am)\b", re.I)
HEAVIEST = 4  # line of phrasings, in lines with few forms
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# The neighbours of a key on a keyboard, for typing mistakes that people make.
KEYBOARD = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]


def lines_of(name):
    with open(os.path.join(HERE, name), encoding="ascii") as f:
        return [x.strip() for x in f if x.strip() and not x.startswith("#")]


class Sampler:
    def __init__(self, corpus, seed):
        self.corpus, self.random = corpus, random_module.Random(seed)
        self.names = sorted(corpus.topics)
        self.known = corpus_module.asked(corpus, random_module.Random(1))
        self.never = {key(q) for name in ("heldback.txt", "validation.txt")
                      for _, _, q in corpus_module.held_back(os.path.join(HERE, name))}
        self.systems = lines_of("system.txt")
        self.weights = {name: [self._weight(node) for node in topic.asks]
                        for name, topic in corpus.topics.items()}
        self.places = {}
        for group in ([w.strip() for w in x.split("|")] for x in lines_of("synonyms.txt")):
            for w in group:
                self.places.setdefault(w.lower(), []).append(group)
        self.finder = re.compile(r"(?<![\w/`-])(" + "|".join(
            sorted(map(re.escape, self.places), key=len, reverse=True)) + r")(?![\w`-])", re.I)
        self.order = []

    def _weight(self, node):
        """How often a line of phrasings comes, relative to one with few forms.  A line with lists
        of words stands for hundreds of questions: "the capital of <country>" is learned only
        if it comes more often."""
        return min(max(math.log2(self.corpus.count(node)) / 2, 1), HEAVIEST)

    def ask(self, topic):
        """A phrasing without its mistakes."""
        node, = self.random.choices(topic.asks, self.weights[topic.name])
        return tidy(self.corpus.expand(node, self.random))

    def question(self, topic, node=None):
        """A phrasing of the topic, or of a follow-up that leads to it, as a person types it."""
        while True:
            if node is not None:
                plain = tidy(self.corpus.expand(node, self.random))
            else:
                plain = self._plain_question(topic)
            text = self.typed(plain)
            k = key(text)
            if k not in self.never and (
                    node is not None or self.known.get(k, {topic.name}) == {topic.name}):
                return text

    def _plain_question(self, topic):
        """Mostly a phrasing.  The other forms join the words of phrasings and of the answer to
        the topic in other orders than the grammar does."""
        r, x = self.random, self.random.random()
        if x < 0.04:
            return self.ask(topic) + r.choice([". ", ", ", "? ", " - "]) + self.ask(topic)
        if x < 0.09:
            a, b = self.ask(topic).split(), self.ask(topic).split()
            return " ".join(a[:r.randrange(len(a)) + 1] + b[r.randrange(len(b)):])
        if x < 0.17:
            words = self.ask(topic).split()
            at = r.randrange(len(words))
            return " ".join(words[at:]) + r.choice([", ", " - ", " "]) + " ".join(words[:at])
        if x < 0.22:
            words = topic.answer.replace("`", "").split()
            at, n = r.randrange(max(1, len(words) - 5)), r.randrange(4, 11)
            text = " ".join(words[at:at + n]).strip(".,;: ")
            return r.choice(["", "", "what about ", "tell me about ", "is it true that "]) \
                + text
        return self.ask(topic)

    def typed(self, text):
        r = self.random
        if r.random() < 0.35:
            text = self.finder.sub(self._synonym, text)
        if r.random() < 0.3:
            text = text.replace("'", "")
        words = text.split()
        if r.random() < 0.15:
            words = [w for w in words
                     if w.lower() not in DROPPABLE or r.random() < 0.4] or words
        if r.random() < 0.12 and len(words) > 3:
            del words[r.randrange(len(words))]
        if r.random() < 0.10:
            words.insert(r.randrange(len(words) + 1), r.choice(INSIDE))
        if r.random() < 0.03 and len(words) > 2:
            i = r.randrange(len(words) - 1)
            words[i], words[i + 1] = words[i + 1], words[i]
        if r.random() < 0.12:
            i = r.randrange(len(words))
            words[i] = self._mistyped(words[i])
        text = " ".join(words)
        is_question = QUESTION.match(text)
        if r.random() < 0.12:
            text = r.choice(BEFORE) + " " + text
        if r.random() < 0.08:
            text += " " + r.choice(AFTER)
        return self._letters(text, is_question)

    def _letters(self, text, is_question):
        r = self.random
        x = r.random()
        if x < 0.60:
            text = text[:1].upper() + text[1:]
        elif x < 0.80:
            text = text.lower()
        elif x < 0.81:
            text = text.upper()
        x = r.random()
        if x < (0.65 if is_question else 0.25):
            text += "?"
        elif x > 0.9 and not is_question:
            text += r.choice([".", ".", "!", "..."])
        elif x > 0.98:
            text += r.choice(["??", " ?", "?!"])
        return text

    def _synonym(self, match):
        if self.random.random() < 0.5:
            return match[0]
        return self.random.choice(self.random.choice(self.places[match[0].lower()]))

    def _mistyped(self, word):
        r = self.random
        if len(word) < 4 or not word.isalpha():
            return word
        i = r.randrange(1, len(word) - 1)
        kind = r.randrange(4)
        if kind == 0:
            return word[:i] + word[i + 1:]
        if kind == 1:
            return word[:i] + word[i] + word[i:]
        if kind == 2:
            return word[:i] + word[i + 1] + word[i] + word[i + 2:]
        row = next((k for k in KEYBOARD if word[i].lower() in k), LETTERS)
        at = row.index(word[i].lower()) + r.choice((-1, 1))
        return word[:i] + row[max(0, min(at, len(row) - 1))] + word[i + 1:]

    def next_topic(self):
        """Topics come in random order.  In a round each comes once, or as often as its phrasings
        weigh: there are many ways to ask for what the guide does not know."""
        if not self.order:
            self.order = [name for name in self.names
                          for _ in range(max(1, int(sum(self.weights[name])) // 8))]
            self.random.shuffle(self.order)
        return self.corpus.topics[self.order.pop()]

    def conversation(self):
        r = self.random
        out = []
        if r.random() < 0.15:
            out.append(("system", r.choice(self.systems), None, False))
        x = r.random()
        turns = 1 if x < 0.76 else 2 if x < 0.93 else 3 if x < 0.985 else r.randrange(4, 9)
        topic = None
        for _ in range(turns):
            node = None
            if topic is not None and topic.thens and r.random() < 0.65:
                node, name = r.choice(topic.thens)
                topic = self.corpus.topics.get(name)
            if node is None or topic is None:
                node, topic = None, self.next_topic()
            out.append(("user", self.question(topic, node), topic.name, node is not None))
            out.append(("model", topic.answer, topic.name, False))
        return out


def show(corpus, n, seed):
    s = Sampler(corpus, seed)
    for _ in range(n):
        for role, text, topic, _ in s.conversation():
            print(f"{role:6} {text}" + (f"   [{topic}]" if role == "user" else ""))
        print()
