#!/usr/bin/env python3
"""The guide answers questions about memwall's own words from the help, in a chat and in run."""
import contextlib
import json
import os
import pty
import random
import re
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guide  # noqa: E402
from program import (MEMWALL, SRCDIR, MeasuredHome, environment, memwall,  # noqa: E402
                     read_terminal)
from terminal import Terminal  # noqa: E402

MODEL = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
OTHER = os.path.join(SRCDIR, "tests", "data", "models", "gemma4-tiny-q4_0.gguf")
QUESTIONS = os.path.join(SRCDIR, "tests", "data", "guide")
REQUIRED = 90  # per cent of the answers of each file
SAYS = "From the help: "


class Question:
    def __init__(self, text):
        self.text, self.right, self.needs_model = text, [], False

    def is_right(self, answer, is_help):
        return not (self.needs_model and is_help) and all(
            re.search(r, answer, re.I) for r in self.right)


def conversations(name):
    """[[Question]] of a file."""
    out = []
    with open(os.path.join(QUESTIONS, name), encoding="utf-8") as f:
        for line in f:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "ask":
                out.append([Question(rest)])
            elif word == "then":
                out[-1].append(Question(rest))
            elif word == "right":
                out[-1][-1].right.append(rest)
            elif word == "model":
                out[-1][-1].needs_model = True
            elif word not in ("", "#", "section"):
                raise ValueError(line)
    return out


def chat(lines, *options, model=MODEL, home=None):
    """Enter lines in a chat without a screen.  Returns what it prints and the saved chats, each
    a list of its lines."""
    with contextlib.ExitStack() as stack:
        home = home or stack.enter_context(MeasuredHome())
        master, slave = pty.openpty()
        p = subprocess.Popen([MEMWALL, "-m", model, "--plain", "--temp", "0", *options],
                             stdin=subprocess.PIPE, stdout=slave, stderr=slave, cwd=home,
                             env=environment(home))
        os.close(slave)
        said = []
        reader = threading.Thread(target=lambda: said.append(read_terminal(master)))
        reader.start()
        p.communicate("".join(line + "\n" for line in lines).encode())
        reader.join()
        saved = []
        folder = os.path.join(home, ".local", "share", "memwall", "chats")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                saved.append([json.loads(line) for line in f])
        return said[0].decode("utf-8", "replace").replace("\r\n", "\n"), saved


def turns(saved):
    """[(question, answer, is_help)] of a saved chat."""
    out, question = [], None
    for line in saved:
        if line.get("role") == "user":
            question = line["text"]
        elif line.get("role") == "assistant":
            out.append((question, line["text"], line.get("help", False)))
    return out


@unittest.skipUnless(os.path.exists(MODEL), "the model is not trained yet")
class Questions(unittest.TestCase):
    def check(self, name):
        asked = conversations(name)
        lines = []
        for questions in asked:
            lines += ["/clear"] + [q.text for q in questions]
        _, saved = chat(lines)
        by_text = {tuple(t[0] for t in turns(s)): turns(s) for s in saved}
        total, wrong, caught = 0, [], []
        for questions in asked:
            got = by_text[tuple(q.text for q in questions)]
            for q, (_, answer, is_help) in zip(questions, got):
                total += 1
                self.assertEqual(is_help, answer.startswith(SAYS))
                if not q.is_right(answer, is_help):
                    wrong.append(f"{q.text}\n    {answer}")
                if q.needs_model and is_help:
                    caught.append(q.text)
        self.assertEqual([], caught)
        self.assertLessEqual(len(wrong), total * (100 - REQUIRED) // 100,
                             f"{len(wrong)} of {total}\n" + "\n".join(wrong))

    def test_questions_about_words_of_the_screen_are_answered_right(self):
        self.check("questions.txt")

    def test_other_questions_of_its_training_are_for_the_model(self):
        corpus = guide.corpus_module.Corpus()
        chance = random.Random(1)
        asked = [guide.corpus_module.tidy(corpus.expand(ask, chance))
                 for name, topic in corpus.topics.items()
                 if name.startswith(("talk-", "unknown")) for ask in topic.asks]
        self.assertGreater(len(asked), 1000)
        said, _ = chat([line for q in asked for line in (q, "/clear")], "-n", "1", "--no-save")
        caught = re.findall("^From the help: .*", said, re.M)
        self.assertLess(len(caught), len(asked) * 0.005, "\n".join(caught))

    def test_so_are_questions_that_the_rules_were_not_made_for(self):
        self.check("more-questions.txt")


@unittest.skipUnless(os.path.exists(MODEL), "the model is not trained yet")
class Turns(unittest.TestCase):
    """Such an answer is a turn of the chat, which the model does not see."""

    def test_it_is_saved_and_marked_and_has_no_receipt(self):
        said, [saved] = chat(["what does F10 do", "hello"])
        (_, first, is_help), (_, second, by_help) = turns(saved)
        self.assertTrue(is_help)
        self.assertFalse(by_help)
        self.assertIn(first, said)
        self.assertEqual(1, sum("receipt" in line for line in saved))
        _, [alone] = chat(["hello"])
        self.assertEqual(turns(alone)[0][1], second)
        receipts = [next(line["receipt"] for line in s if "receipt" in line)
                    for s in (saved, alone)]
        self.assertEqual(*[r["n_prompt"] for r in receipts])

    def test_the_model_answers_the_same_question_with_retry(self):
        said, [saved] = chat(["what does F10 do", "/retry"])
        self.assertIn("/retry asks the model", said)
        self.assertIn({"rewind": 1}, saved)
        last = [line for line in saved if line.get("role") == "assistant"][-1]
        self.assertNotIn("help", last)

    def test_it_can_be_taken_back(self):
        _, [saved] = chat(["what does F10 do", "/undo", "hello"])
        self.assertIn({"rewind": 0}, saved)

    def test_there_is_nothing_to_continue_in_it(self):
        said, _ = chat(["what does F10 do", "/continue"])
        self.assertIn("there is nothing to continue", said)

    def test_a_reopened_chat_goes_on_with_its_subject(self):
        with MeasuredHome() as home:
            chat(["what does -b do"], home=home)
            said, [saved] = chat(["does that need a restart?", "hello"], "--continue", home=home)
            self.assertIn("without a restart", said)
            _, [alone] = chat(["hello"])
            self.assertEqual(turns(alone)[0][1], turns(saved)[-1][1])

    def test_a_question_that_waits_is_answered_in_its_turn(self):
        with MeasuredHome() as home:
            t = Terminal("-m", MODEL, "--temp", "0", home=home)
            self.addCleanup(t.close)
            t.send("hello\rwhat does F10 do\rwhat does F9 do\r")
            self.assertTrue(t.sees("F10 - run the command", "F9 - pick an earlier"),
                            t.screen())

    def test_questions_with_a_file_are_for_the_model(self):
        with MeasuredHome() as home:
            with open(os.path.join(home, "notes.txt"), "w") as f:
                f.write("some notes\n")
            _, [saved] = chat([f"/file {home}/notes.txt", "what does F10 do"])
            self.assertFalse(turns(saved)[0][2])

    def test_other_models_answer_all_questions(self):
        _, [saved] = chat(["what does F10 do"], "-n", "8", model=OTHER)
        self.assertEqual([False], [t[2] for t in turns(saved)])
        r = memwall("run", "-m", OTHER, "-n", "8", "what does F10 do")
        self.assertEqual(0, r.returncode)
        self.assertNotIn(SAYS, r.stdout)


@unittest.skipUnless(os.path.exists(MODEL), "the model is not trained yet")
class Run(unittest.TestCase):
    def test_run_prints_it(self):
        r = memwall("run", "-m", MODEL, "what is -b 600M")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        self.assertRegex(r.stdout, "^From the help: `/memory.*set the memory budget")

    def test_json_says_that_it_is_from_the_help(self):
        r = memwall("run", "-m", MODEL, "--json", "what does F10 do")
        text, done = map(json.loads, r.stdout.splitlines())
        self.assertEqual(text["text"], done["text"])
        self.assertEqual((True, "stop", 0, 0),
                         (done["help"], done["done"], done["n_prompt"], done["n_decoded"]))
        done = json.loads(memwall("run", "-m", MODEL, "--json", "hello").stdout.splitlines()[-1])
        self.assertNotIn("help", done)

    def test_text_to_continue_is_for_the_model(self):
        r = memwall("run", "-m", MODEL, "--raw", "-n", "4", "what does F10 do")
        self.assertNotIn(SAYS, r.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
