#!/usr/bin/env python3
"""The marks of chat formats in answers: thinking, turns that the model opens, wrong types.

The answers of the models are fixed: see tests/lib/chain_model.py."""
import json
import os
import pty
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, byte_char, chain  # noqa: E402
from gguf_edit import STR, U32, Gguf  # noqa: E402
from program import (HomeCase, MEMWALL, MODELS, SRCDIR, TIMEOUT_S, environment, memwall,  # noqa: E402
                     read_terminal)

SMALL = ("--temp", "0", "-n", "30", "-b", "256M", "-t", "1")
IM = ("<|im_start|>", "<|im_end|>")

# Templates in the form of published ones, without their tools.
MISTRAL = ("{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}"
           "{{ '[INST]' + m['content'] + '[/INST]' }}{% elif m['role'] == 'system' %}"
           "{{ '[SYSTEM_PROMPT]' + m['content'] + '[/SYSTEM_PROMPT]' }}{% else %}"
           "{{ m['content'] + eos_token }}{% endif %}{% endfor %}")
GEMMA3 = ("{{ bos_token }}{% for m in messages %}{{ '<start_of_turn>' + ('model' if m['role'] == "
          "'assistant' else m['role']) + '\n' + m['content'] | trim + '<end_of_turn>\n' }}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}")
GEMMA4 = ("{{ bos_token }}{% for m in messages %}{{ '<|turn>' + ('model' if m['role'] == "
          "'assistant' else m['role']) + '\n' + m['content'] | trim + '<turn|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|turn>model\n' }}{% endif %}")
LLAMA3 = ("{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + "
          "'<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
          "{% endif %}")
PHI = ("{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}"
       "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")
PHI4 = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '<|im_sep|>' + m['content'] + "
        "'<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}")
GRANITE = ("{%- if thinking %}{{ '<|start_of_role|>system<|end_of_role|>SYSTEM<|end_of_text|>\n' }}"
           "{%- endif %}{%- for m in messages %}{{ '<|start_of_role|>' + m['role'] + "
           "'<|end_of_role|>' + m['content'] + '<|end_of_text|>\n' }}{%- endfor %}"
           "{%- if add_generation_prompt %}{{ '<|start_of_role|>assistant<|end_of_role|>' }}"
           "{%- endif %}")
GRANITE_MARKS = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")
OLMO2 = ("{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] }}"
         "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{{ '\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}")
LLAMA2 = ("{% for m in messages %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + "
          "m['content'] + ' [/INST]' }}{% else %}{{ ' ' + m['content'] + ' ' + eos_token }}"
          "{% endif %}{% endfor %}")
VICUNA = ("{% for m in messages %}{% if m.role == 'system' %}{{ m.content + ' ' }}"
          "{% elif m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}"
          "{% else %}{{ 'ASSISTANT: ' + m.content + eos_token }}{% endif %}{% endfor %}"
          "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}")
ALPACA = ("{% for m in messages %}{{ {'system': '### System:\n', 'user': '### Instruction:\n', "
          "'assistant': '### Response:\n'}[m.role] + m.content + '\n\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '### Response:\n' }}{% endif %}")
ZEPHYR = ("{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + eos_token + '\n' }}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}")
HARMONY = ("{% for m in messages %}{% if m.role == 'assistant' %}"
           "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}"
           "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}"
           "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}"
           "{% endif %}")
HARMONY_MARKS = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>")
REASONS = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
           "{% if m.reasoning_content %}{{ '<|muse|>\n' + m.reasoning_content + '\n<|speak|>\n' }}"
           "{% endif %}{{ m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
           "{{ '<|im_start|>assistant\n' }}{% endif %}")


def published(name):
    with open(os.path.join(SRCDIR, "tests", "data", "templates", name + ".jinja"),
              encoding="utf-8") as f:
        return f.read()


def bars(text):
    return f"<\uff5c{text}\uff5c>"


class Marks(HomeCase):
    def model(self, *walk, marks=IM, eos=IM[1], template=CHATML, **more):
        """A model whose answer is the walk; it begins with the last token of the prompt."""
        links = {a: b for a, b in zip(walk, walk[1:])}
        self.assertEqual(len(walk) - 1, len(links))
        pieces = [p.encode() for p in walk if len(p.encode()) > 1 and p not in marks and
                  p not in more.get("user", ())]
        links = {(a.encode() if a.encode() in pieces else a):
                 (b.encode() if b.encode() in pieces else b) for a, b in links.items()}
        bos = [t for t in ("<s>", "<bos>", "<|begin_of_text|>", bars("begin")) if t in marks]
        keys = more.pop("keys", {})
        g = chain(self.folder, "model", links, marks=marks, eos=eos, template=template,
                  pieces=pieces, keys=keys, **more)
        if bos:
            g.keys["tokenizer.ggml.bos_token_id"] = (U32, g.id_of[bos[0]])
            g.write(g.path)
        return g.path

    def answer(self, *walk, args=(), **more):
        """Returns the last line of run --json for the model with this walk."""
        r = memwall("run", "-m", self.model(*walk, **more), "--json", *SMALL, *args, "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        return json.loads(r.stdout.splitlines()[-1])


class Thinking(Marks):
    """Each row: the walk of the model; the rest makes its template and vocabulary.  The model
    thinks "ab" and answers "c"."""
    ROWS = {
        # Mistral: control tokens that only the vocabulary names.
        "magistral": (("[/INST]", "[THINK]", "a", "b", "[/THINK]", "c", "</s>"),
                      dict(marks=("<s>", "</s>", "[INST]", "[/INST]", "[THINK]", "[/THINK]"),
                           eos="</s>", template=MISTRAL, arch="llama", pre="tekken")),
        # Qwen 3, SmolLM3: user-defined tokens.
        "tokens": (("\n", "<think>", "a", "b", "</think>", "c", IM[1]),
                   dict(user=("<think>", "</think>"))),
        # OLMo 3, Phi 4 reasoning: tags that the vocabulary spells, in the template or nowhere.
        "spelled": (("\n", "<thi", "nk>", "a", "b", "</th", "ink>", "c", IM[1]), dict()),
        "named": (("\n", "<rea", "soning>", "a", "b", "</rea", "son", "ing>", "c", IM[1]),
                  dict(template="{# <reasoning> and </reasoning> #}" + CHATML)),
        # Words about settings of thinking, and marks of another way to think.
        "a setting before": (("\n", "<think>", "a", "b", "</think>", "c", IM[1]),
                             dict(user=("<think>", "</think>"), template="{# <thinking_mode>on"
                                  "</thinking_mode> <reasoning>example</reasoning> #}"
                                  "{# <think> and </think> #}" + CHATML)),
        "a setting in the vocabulary": (
            ("\n", "<think>", "a", "b", "</think>", "c", IM[1]),
            dict(marks=(*IM, "<|reasoning_effort|>", "<|/reasoning_effort|>"),
                 user=("<think>", "</think>"))),
        "two ways": (("\n", "a", "b", "</think>", "c", IM[1]),
                     dict(user=("<think_fast>", "</think_fast>", "<think>", "</think>"),
                          template="{# <think_fast></think_fast> #}" + CHATML.replace(
                              "assistant\n' }}", "assistant\n<think>\n' }}"))),
        # The prompt opens the thinking.
        "qwen3.5": (("\n", "a", "b", "</think>", "c", IM[1]),
                    dict(template=published("qwen3.5"), user=("<think>", "</think>"))),
        "deepseek": (("\n", "a", "b", "</think>", "c", bars("end")),
                     dict(template=published("deepseek-r1-distill").replace("▁of▁sentence", ""),
                          marks=(bars("begin"), bars("end"), bars("User"), bars("Assistant")),
                          eos=bars("end"), user=("<think>", "</think>"))),
        "opened by a control token": (
            ("[THINK]", "a", "b", "[/THINK]", "c", IM[1]),
            dict(marks=(*IM, "[THINK]", "[/THINK]"),
                 template=CHATML.replace("assistant\n' }}", "assistant\n[THINK]' }}"))),
        "olmo 3": ((">", "a", "b", "</th", "ink>", "c", IM[1]),
                   dict(template=CHATML.replace("assistant\n' }}", "assistant\n<think>' }}"))),
        # Marks with any name, which the template prints around the thinking.
        "printed": (("\n", "<|muse|>", "a", "b", "<|speak|>", "c", IM[1]),
                    dict(marks=(*IM, "<|muse|>", "<|speak|>"),
                         template=REASONS)),
        "printed, another member": (
            ("\n", "<|muse|>", "a", "b", "<|speak|>", "c", IM[1]),
            dict(marks=(*IM, "<|muse|>", "<|speak|>"),
                 template=REASONS.replace("reasoning_content", "thought"))),
        "printed, a member by its name in quotes": (
            ("\n", "<|muse|>", "a", "b", "<|speak|>", "c", IM[1]),
            dict(marks=(*IM, "<|muse|>", "<|speak|>"), template=REASONS.replace(
                "m.reasoning_content", "m.get('internal_reasoning')"))),
        "printed as text": (("\n", "<mu", "se>", "a", "b", "</m", "use>", "c", IM[1]),
                            dict(template=REASONS.replace("|muse|", "muse").replace(
                                "|speak|", "/muse").replace("reasoning_content", "thinking"))),
        "printed sentences": (
            ("\n", "My thou", "ghts:", "a", "b", "\nMy ans", "wer:", "c", IM[1]),
            dict(template=REASONS.replace("<|muse|>", "My thoughts:").replace(
                "<|speak|>", "My answer:"))),
        "printed after the header of a turn": (
            (">", "Thoughts:", "a", "b", "</tho", "ughts>", "c", IM[1]),
            dict(template=REASONS.replace("m.role + '\n'", "m.role + '<|sep|>'").replace(
                "assistant\n'", "assistant<|sep|>'").replace("<|muse|>", "Thoughts:").replace(
                    "<|speak|>", "</thoughts>"))),
        "printed, and opened by the prompt": (
            ("|>", "a", "b", "<|speak|>", "c", IM[1]),
            dict(marks=(*IM, "<|speak|>"), template=REASONS.replace("'<|muse|>\n' + ", "").replace(
                "assistant\n'", "assistant\n<|muse|>'"))),
        "printed, with marks of the answer": (
            ("\n", "<mu", "se>", "a", "b", "</m", "use>", "<out", "ward>", "c", "</ou", "tward", ">",
             "d", IM[1]),
            dict(template=REASONS.replace("|muse|", "muse").replace(
                "<|speak|>\n", "</muse>\n<outward>").replace(
                    "m.content + '", "m.content + ('</outward>' if m.reasoning_content else '') + '"))),
        "sky-t1": (("\n", "<|begin_of_th", "ought|>", "a", "b", "<|end_of_th", "oug", "ht|>",
                    "<|begin_of_solu", "tion|>\n", "c", "<|end_of_solu", "tio", "n|>", "d", IM[1]),
                   dict(template="{# <|begin_of_thought|> <|end_of_thought|> <|begin_of_solution|> "
                        "<|end_of_solution|> #}" + CHATML)),
        "apriel": (("\n", "Here are my ", "reasoning steps:", "a", "b", "[BEGIN FINAL RESP", "ONSE]",
                    "c", "[END FINAL RES", "PONS", "E]", "d", IM[1]),
                   dict(template="{# <thinking> </thinking> [BEGIN FINAL RESPONSE] #}" + CHATML)),
        "scratchpad": (("\n", "<scratch", "pad>", "a", "b", "</scr", "atchp", "ad>", "c", IM[1]),
                       dict(template="{# <scratchpad> and </scratchpad> #}" + CHATML)),
        "an analysis, but thinking": (
            ("\n", "<thi", "nk>", "a", "b", "</th", "ink>", "c", IM[1]),
            dict(template="{# <analysis></analysis> <think></think> #}" + CHATML)),
        "medgemma": (("\n", "<unused94>", "thought", " label\n", "a", "b", "<unused95>", "c",
                      "<end_of_turn>"),
                     dict(marks=("<bos>", "<start_of_turn>", "<end_of_turn>", "<unused94>",
                                 "<unused95>"),
                          eos="<end_of_turn>", template=GEMMA3, arch="llama")),
        "gemma 3, trained further": (
            ("\n", "<thi", "nk>", "a", "b", "</th", "ink>", "c", "<end_of_turn>"),
            dict(marks=("<bos>", "<start_of_turn>", "<end_of_turn>", "<unused94>", "<unused95>"),
                 eos="<end_of_turn>", template=GEMMA3, arch="llama")),
        "seed": (("\n", "<seed:think>", "a", "b", "</seed:think>", "c", IM[1]),
                 dict(user=("<seed:think>", "</seed:think>"))),
        # Granite 3.2: sentences.  Granite 3.3: tags that its vocabulary spells.
        "granite 3.2": (("<|end_of_role|>", "Here is my thought ", "process:", "a", "b",
                         "Here is my ", "response:", "c", "<|end_of_text|>"),
                        dict(marks=GRANITE_MARKS, eos="<|end_of_text|>", arch="llama",
                             template=GRANITE.replace("SYSTEM", "Here is my thought process: "
                                                      "Here is my response:"))),
        "granite 3.3": (("<|end_of_role|>", "<thi", "nk>", "a", "b", "</th", "ink>", "c",
                         "<|end_of_text|>"),
                        dict(marks=GRANITE_MARKS, eos="<|end_of_text|>", arch="llama",
                             template=GRANITE.replace("SYSTEM", "<think></think>"))),
        "granite 3.3, a marked answer": (
            ("<|end_of_role|>", "<thi", "nk>", "a", "b", "</th", "ink>", "<res", "ponse>\n", "c",
             "</resp", "onse>", "d", "<|end_of_text|>"),
            dict(marks=GRANITE_MARKS, eos="<|end_of_text|>", arch="llama",
                 template=GRANITE.replace("SYSTEM", "<think></think> <response></response>"))),
        "gemma 4": (("\n", "<|channel>", "thought", "label\n", "a", "b", "<channel|>", "c",
                     "<turn|>"),
                    dict(marks=("<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"),
                         eos="<turn|>", template=GEMMA4, arch="llama")),
        "gpt-oss": (("t", "<|channel|>", "analysis", "<|message|>", "a", "b", "<|return|>"),
                    dict(marks=HARMONY_MARKS, eos="<|return|>", template=HARMONY)),
    }
    NAMES = (("<|thinking|>", "<|/thinking|>"), ("<|thinking|>", "</|thinking|>"),
             ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|thought>", "<thought|>"),
             ("<|begin_of_thought|>", "<|end_of_thought|>"),
             ("<|thought_start|>", "<|thought_end|>"), ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
             ("<|cot_begin|>", "<|cot_end|>"), ("<scratchpad>", "</scratchpad>"),
             ("<analysis>", "</analysis>"), ("[REASONING]", "[/REASONING]"), ("<Thinking>", "</Thinking>"))

    def check(self, walk, more, args=()):
        answer = self.answer(*walk, args=args, **more)
        thought, text = answer.get("thinking", ""), answer["text"]
        self.assertEqual(("ab", "c"), (thought.strip(), text.strip()))
        self.assertEqual("stop", answer["done"])

    def test_thoughts_of_every_family_are_not_the_answer(self):
        for name, (walk, more) in self.ROWS.items():
            if name != "gpt-oss":
                with self.subTest(model=name):
                    self.check(walk, more)

    def test_thoughts_are_not_the_answer_if_thinking_is_switched_off(self):
        for name in "magistral", "tokens", "granite 3.3", "gemma 4":
            with self.subTest(model=name):
                self.check(*self.ROWS[name], args=("--no-think",))

    def test_a_message_in_another_channel_is_thinking(self):
        answer = self.answer(*self.ROWS["gpt-oss"][0], **self.ROWS["gpt-oss"][1])
        self.assertEqual(("ab", ""), (answer.get("thinking"), answer["text"]))

    def test_marks_are_known_by_their_names(self):
        for opens, closes in self.NAMES:
            with self.subTest(marks=opens):
                self.check(("\n", opens, "a", "b", closes, "c", IM[1]),
                           dict(marks=(*IM, opens, closes)))

    # The model does not open its thinking, and neither does the prompt.
    CLOSED = {
        "tokens": (("\n", "a", "b", "</think>", "c", IM[1]), ROWS["tokens"][1]),
        "spelled": (("\n", "a", "b", "</th", "ink>", "c", IM[1]), dict()),
        "spelled, in one piece": (("\n", "ab</think>c", IM[1]), dict()),
        "named": (("\n", "a", "b", "</rea", "son", "ing>", "c", IM[1]), ROWS["named"][1]),
        "magistral": (("[/INST]", "a", "b", "[/THINK]", "c", "</s>"), ROWS["magistral"][1]),
        "printed": (("\n", "a", "b", "<|speak|>", "c", IM[1]), ROWS["printed"][1]),
        "granite 3.2": (("<|end_of_role|>", "a", "b", "Here is my ", "response:", "c",
                         "<|end_of_text|>"), ROWS["granite 3.2"][1]),
        "granite 3.3, a marked answer": (
            ("<|end_of_role|>", "a", "b", "</th", "ink>", "<res", "ponse>\n", "c", "</resp", "onse>",
             "d", "<|end_of_text|>"), ROWS["granite 3.3, a marked answer"][1]),
        "medgemma": (("\n", "a", "b", "<unused95>", "c", "<end_of_turn>"), ROWS["medgemma"][1]),
        "apriel": (("\n", "a", "b", "[BEGIN FINAL RESP", "ONSE]", "c", "[END FINAL RES", "PONS",
                    "E]", "d", IM[1]), ROWS["apriel"][1]),
        "gemma 4": (("\n", "a", "b", "<channel|>", "c", "<turn|>"), ROWS["gemma 4"][1]),
        "deepseek": (("</think>", "a", "b", "</thi", "nk>", "c", bars("end")),
                     dict(ROWS["deepseek"][1], template=published("deepseek-r1-distill").replace(
                         "\u2581of\u2581sentence", "").replace("<think>\\n", "<think></think>"))),
    }

    def test_thinking_that_is_only_closed(self):
        for name, (walk, more) in self.CLOSED.items():
            with self.subTest(model=name):
                self.check(walk, more)

    def test_the_lines_of_a_run_say_that_text_was_thinking(self):
        walk, more = self.CLOSED["tokens"]
        path = self.model(*walk, **more)
        r = memwall("run", "-m", path, "--json", *SMALL, "hi")
        events = [json.loads(line) for line in r.stdout.splitlines()]
        self.assertEqual(["text"] * (len(events) - 3) + ["thought", "text", "done"],
                         [e["event"] for e in events])
        self.assertEqual("ab", "".join(e["text"] for e in events[:-3]))
        self.assertEqual("", r.stderr)
        for args in (), ("--quiet",):
            r = memwall("run", "-m", path, *SMALL, *args, "hi")
            self.assertEqual("ab\nc\n", r.stdout)
            self.assertEqual([] if args else ["memwall: the text until here was the model's thinking: "
                                              "it closed it without opening it"],
                             r.stderr.splitlines())

    def test_words_about_other_things_are_not_marks(self):
        more = dict(marks=(*IM, "<|apricot_begin|>", "<|apricot_end|>"))
        answer = self.answer("\n", "<|apricot_begin|>", "a", "<|apricot_end|>", "c", IM[1], **more)
        self.assertEqual(("ac", None), (answer["text"], answer.get("thinking")))

    def test_a_mark_without_thinking(self):
        more = self.ROWS["tokens"][1]
        answer = self.answer("\n", "</think>", "\n\n", "c", IM[1], **more)
        self.assertEqual(("c", None), (answer["text"], answer.get("thinking")))
        # A second end of thinking is a mark only.
        answer = self.answer("\n", "<think>", "a", "</think>", "b", IM[1], **more)
        self.assertEqual(("b", "a"), (answer["text"], answer["thinking"]))

    def test_an_answer_may_name_the_marks(self):
        for said in ("a `</think>` b", 'a "</think>" b', "a <think> b </think> c",
                     "a '</think>' b </think> c"):
            with self.subTest(said=said):
                for walk in ("\n", said, IM[1]), ("\n", said[:7], said[7:], IM[1]):
                    answer = self.answer(*walk)
                    self.assertEqual((said, None), (answer["text"], answer.get("thinking")))

    def chat(self, path, *lines, args=()):
        """Returns what a chat shows, and its answers as text and thinking."""
        out = self.path("chat.json")
        main, side = pty.openpty()
        p = subprocess.Popen([MEMWALL, "chat", "--plain", "-m", path, *SMALL, *args],
                             stdin=subprocess.PIPE, stdout=side, stderr=side,
                             env=environment(self.folder))
        os.close(side)
        p.communicate("".join(line + "\n" for line in (*lines, f"/export! {out}")).encode(),
                      TIMEOUT_S)
        shown = read_terminal(main)
        with open(out, encoding="utf-8") as f:
            said = json.load(f)["messages"]
        return shown, [(m["content"], m.get("thinking")) for m in said if m["role"] == "assistant"]

    def test_a_saved_chat_keeps_the_thoughts_apart(self):
        path = self.model(*self.ROWS["magistral"][0], **self.ROWS["magistral"][1])
        self.assertEqual([("c", "ab")] * 2, self.chat(path, "hi", "ho")[1])

    def test_a_saved_chat_keeps_thoughts_apart_that_are_only_closed(self):
        for name in "tokens", "spelled":
            with self.subTest(model=name):
                path = self.model(*self.CLOSED[name][0], **self.CLOSED[name][1])
                shown, said = self.chat(path, "hi", "ho")
                self.assertEqual([("c", "ab")] * 2, said)
                self.assertEqual(2, shown.decode().replace("\r", "").count(
                    "ab\n(the text until here was thinking)\nc"))
                self.assertEqual([("c", "ab")] * 3, self.chat(path, "hu", args=("--continue",))[1])

    def test_an_answer_that_goes_on_turns_out_to_be_thinking(self):
        for name, parts in (("tokens", 4), ("spelled", 5), ("granite 3.2", 5)):
            walk, more = self.CLOSED[name]
            path = self.model(*walk, **more)
            for n in range(1, parts):
                with self.subTest(model=name, tokens=n):
                    go_on = ["/predict 30", "/continue"]
                    for args in (), ("--continue",):
                        if args:
                            self.chat(path, "hi", args=("-n", str(n)))
                        lines = go_on if args else ["hi", *go_on]
                        said = self.chat(path, *lines, args=(*args, "-n", str(n)))[1]
                        self.assertEqual(("c", "ab"), said[-1])


class Turns(Marks):
    """The model answers "a", then it opens a turn instead of ending its own."""
    LLAMA3_MARKS = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    V7 = ("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]",
          "[/THINK]")
    PHI_MARKS = ("<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|endoftext|>")
    DEEPSEEK = (bars("begin"), bars("end"), bars("User"), bars("Assistant"))
    ROWS = {
        "chatml": ("\n", IM[0], dict()),
        "gemma": ("\n", "<start_of_turn>", dict(
            marks=("<bos>", "<start_of_turn>", "<end_of_turn>"), eos="<end_of_turn>",
            template=GEMMA3, arch="llama")),
        "gemma, built in": ("\n", "<start_of_turn>", dict(
            marks=("<bos>", "<start_of_turn>", "<end_of_turn>"), eos="<end_of_turn>",
            template="{% <start_of_turn>", arch="llama")),
        "gemma without a template": ("\n", "<start_of_turn>", dict(
            marks=("<bos>", "<start_of_turn>", "<end_of_turn>"), eos="<end_of_turn>",
            template=None, arch="llama")),
        "gemma 4": ("\n", "<|turn>", dict(
            marks=("<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"), eos="<turn|>",
            template=GEMMA4, arch="llama")),
        "llama 3": ("\n\n", "<|start_header_id|>", dict(
            marks=LLAMA3_MARKS, eos="<|eot_id|>", template=LLAMA3, arch="llama",
            pre="llama-bpe")),
        "llama 3, a new text": ("\n\n", "<|begin_of_text|>", dict(
            marks=LLAMA3_MARKS, eos="<|eot_id|>", template=LLAMA3, arch="llama",
            pre="llama-bpe")),
        "mistral": ("[/INST]", "[INST]", dict(marks=V7, eos="</s>", template=MISTRAL, arch="llama",
                                              pre="tekken")),
        "mistral, a system message": ("[/INST]", "[SYSTEM_PROMPT]", dict(
            marks=V7, eos="</s>", template=MISTRAL, arch="llama", pre="tekken")),
        "phi 3": ("<|assistant|>", "<|user|>", dict(
            marks=PHI_MARKS, eos="<|endoftext|>", template=PHI, arch="llama")),
        "phi 3, a system message": ("<|assistant|>", "<|system|>", dict(
            marks=PHI_MARKS, eos="<|endoftext|>", template=PHI, arch="llama")),
        "phi 4": ("<|im_sep|>", "<|im_start|>", dict(
            marks=("<|im_start|>", "<|im_sep|>", "<|im_end|>"), template=PHI4)),
        "granite": ("<|end_of_role|>", "<|start_of_role|>", dict(
            marks=GRANITE_MARKS, eos="<|end_of_text|>", arch="llama", template=GRANITE)),
        "deepseek": ("</think>", bars("User"), dict(
            marks=DEEPSEEK, eos=bars("end"), user=("<think>", "</think>"),
            template=published("deepseek-r1-distill").replace("▁of▁sentence", "")
            .replace("<think>\\n", "<think></think>"))),
        # Marks that the template prints as text.
        "llama 2": ("]", "[IN", dict(marks=("<s>", "</s>"), eos="</s>", template=LLAMA2,
                                     arch="llama", more=("ST]",))),
        "llama 2, a system message": ("]", "<<S", dict(
            marks=("<s>", "</s>"), eos="</s>", template=published("llama2"), arch="llama",
            more=("YS>>",))),
        "mistral 7, a system message": ("]", "[SYSTEM_", dict(
            marks=("<s>", "</s>"), eos="</s>", template=MISTRAL, arch="llama",
            more=("PROMPT]",))),
        "zephyr": ("\n", "<|us", dict(marks=("<s>", "</s>"), eos="</s>", template=ZEPHYR,
                                      arch="llama", more=("er|>",))),
        "zephyr, a system message": ("\n", "<|sys", dict(
            marks=("<s>", "</s>"), eos="</s>", template=ZEPHYR, arch="llama", more=("tem|>",))),
        # Words without brackets, at the start of a line.
        "vicuna": (":", "\nUSER", dict(marks=("<s>", "</s>"), eos="</s>", template=VICUNA,
                                       arch="llama", more=(": ",))),
        # The template writes the end of an answer as text, and no token has it.
        "vicuna, a text ends an answer": (":", "\nUSER", dict(
            marks=("<s>", "<|zz|>"), eos="<|zz|>", template=VICUNA.replace("eos_token", "'</s>'"),
            arch="llama", more=(": ",))),
        "vicuna, two texts end an answer": (":", "\nUSER", dict(
            marks=("<|yy|>", "<|zz|>"), eos="<|zz|>", arch="llama", more=(": ",),
            template="{{ 'A chat. ' }}" + VICUNA.replace("eos_token", "' </s> [EOS]'"))),
        "vicuna, a text without brackets ends an answer": (":", "\nUSER", dict(
            marks=("<s>", "<|zz|>"), eos="<|zz|>", arch="llama", more=(": ",),
            template=VICUNA.replace("eos_token", "'##END## '"))),
        "alpaca, a text ends an answer": ("\n", "\n\n", dict(
            marks=("<s>", "<|zz|>"), eos="<|zz|>", arch="llama", more=("### ", "Instruction:",),
            template=ALPACA.replace("'\n\n'", "'<|end|>'"))),
        "alpaca": ("\n", "\n\n", dict(marks=("<s>", "</s>"), eos="</s>", template=ALPACA,
                                      arch="llama", more=("### ", "Instruction:",))),
        "alpaca, a system message": ("\n", "\n\n", dict(
            marks=("<s>", "</s>"), eos="</s>", template=ALPACA, arch="llama",
            more=("### ", "System:",))),
        "openchat": (":", "\nGPT4 ", dict(
            marks=("<s>", "<|end_of_turn|>"), eos="<|end_of_turn|>", arch="llama",
            template="{{ bos_token }}{% for m in messages %}{{ 'GPT4 Correct ' + m.role | title + "
            "': ' + m.content + '<|end_of_turn|>' }}{% endfor %}{% if add_generation_prompt %}"
            "{{ 'GPT4 Correct Assistant:' }}{% endif %}", more=("Correct User:",))),
        "chatglm": ("\uff1a", "\n\n", dict(
            marks=("<s>", "</s>"), eos="</s>", arch="llama", more=("\u95ee\uff1a",),
            template="{% for m in messages %}{% if m.role == 'user' %}{{ '\u95ee\uff1a' + m.content }}"
            "{% else %}{{ '\n\n\u7b54\uff1a' + m.content + '\n\n' }}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}{{ '\n\n\u7b54\uff1a' }}{% endif %}")),
        "olmo 2": ("\n", "<|us", dict(marks=("<|endoftext|>", "<|pad|>"), eos="<|endoftext|>",
                                      template=OLMO2, more=("er|>",))),
    }

    # The formats of --format: the last token of the prompt, a mark, and the vocabulary.
    GEMMA = dict(marks=("<bos>", "<start_of_turn>", "<end_of_turn>"), eos="<end_of_turn>",
                 arch="llama")
    GEMMA_4 = dict(marks=("<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"),
                   eos="<turn|>", arch="llama")
    LLAMA_3 = dict(marks=LLAMA3_MARKS, eos="<|eot_id|>", arch="llama", pre="llama-bpe")
    FORMATS = {
        "chatml": ("\n", IM[0], dict()), "gemma3": ("\n", "<start_of_turn>", GEMMA),
        "gemma4": ("\n", "<|turn>", GEMMA_4), "llama3": ("\n\n", "<|start_header_id|>", LLAMA_3),
        # After the assistant's mark comes </think> without thinking.
        "deepseek": ("</think>", bars("User"), dict(
            marks=(*DEEPSEEK, "<think>", "</think>"), eos=bars("end"), arch="llama",
            more=(bars("end"),))),
        "deepseek, V3": (bars("Assistant"), bars("User"), dict(
            marks=DEEPSEEK, eos=bars("end"), arch="llama", more=(bars("end"),))),
    }

    def test_a_mark_of_a_built_in_format_ends_the_answer(self):
        r = memwall("run", "--format", "?", "hi")
        names = re.search(r"use none, (.*)\n", r.stderr).group(1).split(", ")
        self.assertEqual({*(name.split(",")[0] for name in self.FORMATS), "raw"}, {*names})
        for name, (first, mark, row) in self.FORMATS.items():
            row = dict(row)
            rest = row.pop("more", ())
            with self.subTest(format=name):
                answer = self.answer(first, "a", mark, *rest, "q", "r", "s", template=None,
                                     args=("--format", name.split(",")[0], "--no-think"), **row)
                self.assertEqual(("a", "stop"), (answer["text"].strip(), answer["done"]))

    def test_a_mark_that_opens_a_turn_ends_the_answer(self):
        for name, (first, mark, row) in self.ROWS.items():
            row = dict(row)
            rest = row.pop("more", ())
            with self.subTest(format=name):
                answer = self.answer(first, "a", mark, *rest, "q", "r", "s", **row)
                self.assertEqual(("a", "stop"), (answer["text"].strip(), answer["done"]))

    def test_words_inside_a_line_do_not_end_an_answer(self):
        more = dict(marks=("<s>", "</s>"), eos="</s>", arch="llama")
        answer = self.answer(":", "a ", "USER: ", "b", "\nUSER", "S: ", "</s>", template=VICUNA,
                             **more)
        self.assertEqual("a USER: b\nUSERS: ", answer["text"])
        answer = self.answer("\n", "a ", "### Instruction:", "b", "\n###", "c", "d", "</s>",
                             template=ALPACA, **more)
        self.assertEqual("a ### Instruction:b\n###cd", answer["text"])

    def test_ordinary_words_before_a_message_end_nothing(self):
        # The name of a role alone, a sign alone, and a sentence about the date.
        for before, say in (("user\n", "user\n"), ("---\n", "---\n"), ("> ", "> ")):
            template = ("{% for m in messages %}{{ '" + before.replace("\n", "\\n") +
                        "' + m.content + eos_token + '\\n' }}{% endfor %}"
                        "{% if add_generation_prompt %}{{ ':' }}{% endif %}")
            answer = self.answer(":", "a", "\n", say, "b", "</s>", marks=("<s>", "</s>"),
                                 eos="</s>", arch="llama", template=template)
            self.assertEqual("a\n" + say + "b", answer["text"])
        # Words after a token that opens the turn: they are a part of the message.
        for role in "user", "system":
            template = CHATML.replace("m['content']", "('# Instructions: ' if m['role'] == '" + role +
                                      "' else '') + m['content']")
            answer = self.answer("\n", "a", "\n# Instructions: ", "b", IM[1], template=template)
            self.assertEqual("a\n# Instructions: b", answer["text"])
        # The same with marks that are printed as text, also after a text that ends the answer.
        template = ("{% for m in messages %}{{ '<|' + m.role + '|># Instructions: ' + m.content + "
                    "'</s>' }}{% endfor %}{% if add_generation_prompt %}{{ ':' }}{% endif %}")
        answer = self.answer(":", "a", "\n# Instructions: ", "b", "<|zz|>", marks=("<|zz|>",),
                             eos="<|zz|>", arch="llama", template=template)
        self.assertEqual("a\n# Instructions: b", answer["text"])
        template = ("{% if messages[0].role == 'system' %}{{ 'Cutoff: 2023\\nDate: today\\n\\n' }}"
                    "{% endif %}" + CHATML)
        answer = self.answer("\n", "a", "\nDate: today", "b", IM[1], template=template)
        self.assertEqual("a\nDate: todayb", answer["text"])

    def test_raw_text_may_contain_such_a_mark(self):
        answer = self.answer("i", "a", IM[0], "q", IM[1], args=("--raw",))
        self.assertEqual("aq", answer["text"])

    def test_marks_inside_an_answer_do_not_end_it(self):
        tool = "<|tool_call>"
        answer = self.answer("\n", "<|channel>", "thought\n", "a", tool, "b", "<channel|>", "c",
                             "<turn|>", marks=("<bos>", "<|turn>", "<turn|>", "<|channel>",
                                               "<channel|>", tool), eos="<turn|>",
                             template=GEMMA4, arch="llama")
        self.assertEqual(("ab", "c"), (answer.get("thinking"), answer["text"]))

    def test_a_mark_that_the_model_writes_before_each_answer_belongs_to_it(self):
        template = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
                    "{% if m.role == 'assistant' %}{{ '<|reply|>' }}{% endif %}"
                    "{{ m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
                    "{{ '<|im_start|>assistant\n' }}{% endif %}")
        answer = self.answer("\n", "<|reply|>", "a", "b", IM[1], marks=(*IM, "<|reply|>"),
                             template=template)
        self.assertEqual("ab", answer["text"])

    def test_a_message_of_the_user_ends_an_answer_of_gpt_oss(self):
        more = dict(marks=HARMONY_MARKS, eos="<|return|>", template=HARMONY)
        answer = self.answer("t", "<|channel|>", "final", "<|message|>", "a", "<|start|>", "user",
                             "<|end|>", "b", **more)
        self.assertEqual(("a", None, "stop"),
                         (answer["text"], answer.get("thinking"), answer["done"]))


class Ends(Marks):
    def test_tokens_that_end_a_text_under_any_name(self):
        for end in ("<|endoftext|>", "[EOT]", "_<EOT>", "[EOS]", "<end_of_utterance>", "<|flush|>",
                    "<|calls|>", "[e~[", "<\uff5cend\u2581of\u2581sentence\uff5c>"):
            with self.subTest(end=end):
                answer = self.answer("\n", "a", end, "q", "r", "s", marks=(*IM, end))
                self.assertEqual(("a", "stop"), (answer["text"].strip(), answer["done"]))


class NoFormat(Marks):
    """Models whose template cannot be used, of a family without a built-in format."""

    def check(self, template, reason):
        path = self.model("i", "a", "<|end_of_text|>", marks=GRANITE_MARKS, eos="<|end_of_text|>",
                          arch="llama", template=template)
        messages = json.dumps([{"role": "user", "content": "hi"}])
        for r in (memwall("run", "-m", path, *SMALL, "hi"),
                  memwall("tokenize", "-m", path, "--chat", stdin=messages)):
            self.assertEqual((0, 1), (r.returncode, r.stderr.count("\n")), r.stderr)
            for word in reason, "without a chat format", "--format NAME":
                self.assertIn(word, r.stderr)
        r = memwall("inspect", "-m", path)
        self.assertNotIn("guessed", r.stdout)

    def test_one_line_says_what_to_do(self):
        self.check(GRANITE + "{% for %}", "line 3")
        self.check(GRANITE + "{{ raise_exception('no' * 300) }}", "cannot be used")
        self.check("{{ 1 + ' a' }}" + GRANITE, "cannot be used")

    def test_without_a_template(self):
        self.check(None, "no chat template")


class Types(Marks):
    """Files that give marks another type than control."""
    NORMAL, UNKNOWN, CONTROL, USER, UNUSED = 1, 2, 3, 4, 5
    MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "ho"}, {"role": "user", "content": "why"}]

    def write(self, kind, source=None, **more):
        """Write a model whose marks have this type.  source: a model to change; None: a model that
        answers "a" and then opens a turn."""
        marks = more["marks"]
        if source is None:
            first = more.pop("first")
            first = (first,) if isinstance(first, str) else first
            path = self.model(*first, "a", more.pop("mark"), "q", **more)
            g = Gguf(path)
        else:
            g = Gguf(os.path.join(MODELS, source))
            g.keys["tokenizer.chat_template"] = (STR, more["template"])
            tokens = g.get("tokenizer.ggml.tokens")[1]
            for i, mark in enumerate(marks):
                tokens[len(tokens) - 1 - i] = mark
        tokens, types = g.get("tokenizer.ggml.tokens")[1], g.get("tokenizer.ggml.token_type")[1]
        for mark in marks:
            types[tokens.index(mark)] = kind
        return g.write(self.path(f"type{kind}.gguf"))

    def tokens(self, path, messages, *args):
        r = memwall("tokenize", "-m", path, "--chat", "--json", *args, stdin=json.dumps(messages))
        self.assertEqual(0, r.returncode, r.stderr)
        return [(t["id"], t["kind"]) for t in json.loads(r.stdout)["tokens"]], r.stderr

    def check(self, marks, args=(), messages=MESSAGES, **more):
        want, said = self.tokens(self.write(self.CONTROL, marks=marks, **dict(more)), messages, *args)
        self.assertNotIn("type", said)
        for kind in self.NORMAL, self.UNKNOWN, self.USER, self.UNUSED:
            path = self.write(kind, marks=marks, **dict(more))
            with self.subTest(kind=kind):
                got, said = self.tokens(path, messages, *args)
                self.assertEqual(want, got)
                for mark in marks:
                    by_form = kind == self.USER and (
                        mark[:2] in ("<|", "[I", "[/", "<\uff5c") or mark[-2:] == "|>")
                    if not by_form and mark not in ("<end_of_turn>", "<bos>"):
                        self.assertIn(mark, said)
                # A message that spells the marks makes no control token.
                evil = [{"role": "user", "content": "".join(marks)}]
                n_control = [k for _, k in self.tokens(path, evil, *args)[0]].count("control")
                plain = [{"role": "user", "content": "x"}]
                self.assertEqual([k for _, k in self.tokens(path, plain, *args)[0]].count("control"),
                                 n_control)
                if "first" in more:
                    r = memwall("run", "-m", path, *SMALL, "hi")
                    self.assertEqual("a", r.stdout.strip(), r.stderr)
                    self.assertIn(said.strip(), r.stderr)

    def test_a_file_without_types(self):
        path = self.model("\n", "a", "<start_of_turn>", "q", marks=("<start_of_turn>",
                          "<end_of_turn>"), eos="<end_of_turn>", template=GEMMA3, arch="llama",
                          keys={"tokenizer.ggml.token_type": None})
        r = memwall("run", "-m", path, *SMALL, "hi")
        self.assertEqual("a", r.stdout.strip(), r.stderr)

    def test_the_end_of_a_text(self):
        # Neither the template nor a key names it, and it ends the answer.
        for kind in self.CONTROL, self.NORMAL:
            path = self.model("\n", "a", "<|endoftext|>", "b", IM[1], marks=(*IM, "<|endoftext|>"))
            g = Gguf(path)
            tokens = g.get("tokenizer.ggml.tokens")[1]
            g.get("tokenizer.ggml.token_type")[1][tokens.index("<|endoftext|>")] = kind
            g.write(path)
            r = memwall("run", "-m", path, *SMALL, "hi")
            self.assertEqual("a", r.stdout.strip(), r.stderr)
            self.assertEqual(kind == self.NORMAL, "<|endoftext|> a wrong type" in r.stderr)

    def test_bytes(self):
        self.check(("<start_of_turn>", "<end_of_turn>"), first="\n", mark="<start_of_turn>",
                   eos="<end_of_turn>", template=GEMMA3, arch="llama")

    def test_marks_of_chatml(self):
        self.check(IM, first="\n", mark=IM[0], template=CHATML)

    def test_marks_of_mistral(self):
        self.check(("[INST]", "[/INST]", "<s>", "</s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
                   first="[/INST]", mark="[INST]", eos="</s>", template=MISTRAL, arch="llama",
                   pre="tekken")

    def test_marks_of_other_families(self):
        rows = {
            "llama 3": (Turns.LLAMA3_MARKS[1:], dict(
                first="\n\n", mark="<|start_header_id|>", eos="<|eot_id|>", template=LLAMA3,
                arch="llama", pre="llama-bpe")),
            "gemma 4": (("<|turn>", "<turn|>"), dict(
                first="\n", mark="<|turn>", eos="<turn|>", template=GEMMA4, arch="llama")),
            "phi 4": (("<|im_start|>", "<|im_sep|>", "<|im_end|>"), dict(
                first="<|im_sep|>", mark="<|im_start|>", template=PHI4)),
            "granite": (GRANITE_MARKS, dict(
                first="<|end_of_role|>", mark="<|start_of_role|>", eos="<|end_of_text|>",
                template=GRANITE, arch="llama")),
            "gpt-oss": (HARMONY_MARKS, dict(
                first=("t", "<|channel|>", "final", "<|message|>"), mark="<|start|>",
                eos="<|return|>", template=HARMONY)),
        }
        for family, (marks, row) in rows.items():
            with self.subTest(family=family):
                self.check(marks, **row)

    def test_marks_of_other_letters(self):
        template = published("deepseek-r1-distill").replace("\u2581of\u2581sentence", "")
        self.check((bars("User"), bars("Assistant"), bars("end")), first="\n", mark=bars("User"),
                   eos=bars("end"), template=template.replace("<think>\\n", "\\n"))

    def test_a_format_by_name(self):
        marks = ("<start_of_turn>", "<end_of_turn>")
        self.check((*marks,), ("--format", "gemma3"), source="llama-tiny.gguf", template=CHATML)

    def test_a_built_in_format(self):
        # The template cannot be evaluated; there is none.
        for template in "{% <start_of_turn>", None:
            self.check(("<start_of_turn>", "<end_of_turn>"), first="\n", mark="<start_of_turn>",
                       eos="<end_of_turn>", template=template, arch="llama")

    def test_characters(self):
        for template, marks in ((GEMMA3, ("<start_of_turn>", "<end_of_turn>")),
                                (PHI, ("<|user|>", "<|assistant|>", "<|system|>", "<|end|>")),
                                (MISTRAL, ("[INST]", "[/INST]", "[SYSTEM_PROMPT]",
                                           "[/SYSTEM_PROMPT]"))):
            with self.subTest(marks=marks):
                self.check(marks, source="llama-tiny.gguf", template=template)

    def test_marks_of_thinking(self):
        """They become control tokens, except user-defined ones: published files have these."""
        thinks = ("<think>", "</think>")
        template = REASONS.replace("<|muse|>", thinks[0]).replace("<|speak|>", thinks[1])
        for kind in self.NORMAL, self.USER:
            path = self.model("\n", "<think>", "a", "b", "</think>", "c", IM[1], user=thinks,
                              template=template)
            g = Gguf(path)
            tokens = g.get("tokenizer.ggml.tokens")[1]
            for mark in thinks:
                g.get("tokenizer.ggml.token_type")[1][tokens.index(mark)] = kind
            g.write(path)
            got = self.tokens(path, [{"role": "user", "content": "<think>"}])[0]
            self.assertEqual(kind == self.USER, tokens.index("<think>") in [i for i, _ in got])
            r = memwall("run", "-m", path, "--json", *SMALL, "hi")
            done = json.loads(r.stdout.splitlines()[-1])
            self.assertEqual(("ab", "c"), (done["thinking"], done["text"]))

    def test_marks_of_thinking_that_only_the_vocabulary_names(self):
        walk, more = Thinking.ROWS["magistral"]
        for kind in self.NORMAL, self.USER:
            path = self.model(*walk, **more)
            g = Gguf(path)
            tokens = g.get("tokenizer.ggml.tokens")[1]
            for mark in "[THINK]", "[/THINK]":
                g.get("tokenizer.ggml.token_type")[1][tokens.index(mark)] = kind
            g.write(path)
            got = self.tokens(path, [{"role": "user", "content": "[THINK]"}])[0]
            self.assertNotIn(tokens.index("[THINK]"), [i for i, _ in got])
            r = memwall("run", "-m", path, "--json", *SMALL, "hi")
            done = json.loads(r.stdout.splitlines()[-1])
            self.assertEqual(("ab", "c"), (done["thinking"], done["text"]))

    def test_a_message_cannot_merge_into_a_mark(self):
        # The scores would join the halves of the mark, which are tokens.
        g = Gguf(os.path.join(MODELS, "llama-tiny.gguf"))
        g.keys["tokenizer.chat_template"] = (STR, "{{ '<ab>' + messages[0].content + '<ab>' }}")
        tokens, types = g.get("tokenizer.ggml.tokens")[1], g.get("tokenizer.ggml.token_type")[1]
        scores = g.get("tokenizer.ggml.scores")[1]
        for i, token in enumerate(("<ab>", "<a", "b>", "<", ">")):
            tokens[len(tokens) - 1 - i] = token
            types[len(tokens) - 1 - i] = self.NORMAL
            scores[len(tokens) - 1 - i] = 0.0
        path = g.write(self.path("merges.gguf"))
        ids = [i for i, _ in self.tokens(path, [{"role": "user", "content": "<ab>"}])[0]]
        self.assertEqual(2, ids.count(tokens.index("<ab>")))
        self.assertEqual((1, 1), (ids.count(tokens.index("<a")), ids.count(tokens.index("b>"))))

    def test_the_kept_tokenizer_names_them_again(self):
        path = self.write(self.NORMAL, marks=("<start_of_turn>", "<end_of_turn>"), first="\n",
                          mark="<start_of_turn>", eos="<end_of_turn>", template=GEMMA3,
                          arch="llama")
        for _ in range(2):
            r = subprocess.run([MEMWALL, "run", "-m", path, *SMALL, "hi"], capture_output=True,
                               text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
                               env=environment(self.folder))
            self.assertEqual("a", r.stdout.strip())
            self.assertIn("<start_of_turn>, <end_of_turn> a wrong type", r.stderr)

    def test_a_downloaded_folder(self):
        marks = ("<start_of_turn>", "<end_of_turn>")
        folders = {"right": (marks, True, {}), "not special": (marks, False, {}),
                   "not added": ((), True, dict(zip(marks, (257, 258))))}
        rows = {}
        for name, (added, special, vocabulary) in folders.items():
            folder = self.path(name)
            os.mkdir(folder)
            files = {
                "tokenizer.json": {
                    "version": "1.0", "normalizer": None,
                    "added_tokens": [{"id": 257 + i, "content": t, "special": special}
                                     for i, t in enumerate(added)],
                    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                                      "use_regex": True},
                    "model": {"type": "BPE", "byte_fallback": False, "merges": ["! !"],
                              "vocab": {c: b for b, c in byte_char().items()} |
                              {"!!": 256} | vocabulary}},
                "tokenizer_config.json": {"eos_token": marks[1]}}
            for file, content in files.items():
                with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                    json.dump(content, f)
            with open(os.path.join(folder, "chat_template.jinja"), "w") as f:
                f.write(GEMMA3)
            evil = [{"role": "user", "content": "<start_of_turn>"}]
            rows[name] = (self.tokens(folder, self.MESSAGES)[0], self.tokens(folder, evil)[0])
            self.assertEqual(3, [k for _, k in rows[name][1]].count("control"))
        self.assertEqual(rows["right"], rows["not special"])
        self.assertEqual(rows["right"], rows["not added"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
