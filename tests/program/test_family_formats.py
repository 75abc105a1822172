#!/usr/bin/env python3
"""The chat format of each newer family: thinking, turns and calls of tools in its answers.

The templates are in the form of the published ones.  The answers of the models are fixed: see
tests/lib/chain_model.py."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain  # noqa: E402
from program import FolderCase, memwall  # noqa: E402

SMALL = ("--temp", "0", "-n", "30", "-b", "256M", "-t", "1")
IM = ("<|im_start|>", "<|im_end|>")
THINK = ("<think>", "</think>")


def bars(text):
    return f"<\uff5c{text}\uff5c>"


def turns(user, assistant, system, prompt, start="", roles=("user", "assistant", "system")):
    """A template.  Each turn is a pair of texts around a message, as Jinja strings."""
    rows = "".join(f"{{% if m.role == '{r}' %}}{{{{ {a} + m.content + {b} }}}}{{% endif %}}"
                   for r, (a, b) in zip(roles, (user, assistant, system)))
    return (f"{start}{{% for m in messages %}}{rows}{{% endfor %}}"
            f"{{% if add_generation_prompt %}}{prompt}{{% endif %}}")


THINKS = ("{{ '</think>' if enable_thinking is defined and not enable_thinking else '<think>' }}")
GLM = turns(("'<|user|>'", "''"), ("'<|assistant|></think>'", "''"), ("'<|system|>'", "''"),
            "<|assistant|>" + THINKS, "[gMASK]<sop>")
DEEPSEEK2 = turns(("'User: '", "'\n\n'"), ("'Assistant: '", "eos_token"), ("''", "'\n\n'"),
                  "{{ 'Assistant:' }}", "{{ bos_token }}")
DEEPSEEK3 = turns((f"'{bars('User')}'", "''"), (f"'{bars('Assistant')}</think>'", "eos_token"),
                  ("''", "''"), bars("Assistant") + THINKS, "{{ bos_token }}")
KIMI = turns(("'<|im_user|>user<|im_middle|>'", "'<|im_end|>'"),
             ("'<|im_assistant|>assistant<|im_middle|><think></think>'", "'<|im_end|>'"),
             ("'<|im_system|>system<|im_middle|>'", "'<|im_end|>'"),
             "<|im_assistant|>assistant<|im_middle|>")
NEMOTRON = CHATML.replace("assistant\n' }}", "assistant\n<think>\n' }}")
LFM2 = "{{ bos_token }}" + CHATML
GRANITE4 = turns(*(("'<|start_of_role|>%s<|end_of_role|>'" % r, "'<|end_of_text|>\n'")
                   for r in ("user", "assistant", "system")),
                 "<|start_of_role|>assistant<|end_of_role|>")
LAGUNA = turns(("'<user>\n'", "'\n</user>\n'"), ("'<assistant>\n</think>\n'", "'\n</assistant>\n'"),
               ("'<system>\n'", "'\n</system>\n'"), "{{ '<assistant>\n' }}" + THINKS,
               "{{ bos_token }}")
LING = turns(("'<role>HUMAN</role>'", "'<|role_end|>'"),
             ("'<role>ASSISTANT</role>'", "'<|role_end|>'"),
             ("'<role>SYSTEM</role>'", "'<|role_end|>'"), "<role>ASSISTANT</role>")
RING = LING.replace("<role>ASSISTANT</role>{% endif %}", "{{ '<role>ASSISTANT</role><think>\n' }}"
                    "{% endif %}")
MINIMAX = turns(("']~b]user\n'", "'[e~[\n'"), ("']~b]ai\n'", "'[e~[\n'"),
                ("']~b]system\n'", "'[e~[\n'"), "{{ ']~b]ai\n<think>\n' }}", "]~!b[")
ERNIE = turns(("'User: '", "'\n'"), ("'Assistant: '", "'<|end_of_sentence|>'"),
              ("''", "'\n'"), "{{ 'Assistant: ' }}", "<|begin_of_sentence|>")
HUNYUAN = turns((f"'{bars('hy_User')}'", "''"), (f"'{bars('hy_Assistant')}'", "eos_token"),
                ("''", "''"), bars("hy_Assistant"), "{{ bos_token }}")
EXAONE = turns(("'[|user|]\n'", "'[|endofturn|]\n'"), ("'[|assistant|]\n'", "'[|endofturn|]\n'"),
               ("'[|system|]\n'", "'[|endofturn|]\n'"), "{{ '[|assistant|]\n<think>\n' }}")
COMMAND = turns(*(("'<|START_OF_TURN_TOKEN|><|%s_TOKEN|>'" % r, "'<|END_OF_TURN_TOKEN|>'")
                  for r in ("USER", "CHATBOT", "SYSTEM")),
                "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "{{ bos_token }}").replace(
                    "<|CHATBOT_TOKEN|>' +", "<|CHATBOT_TOKEN|><|START_RESPONSE|>' +")
SEED = turns(*(("'<seed:bos>%s\n'" % r, "'<seed:eos>'") for r in ("user", "assistant", "system")),
             "{{ '<seed:bos>assistant\n' }}").replace(
                 "assistant\n' +", "assistant\n<seed:think></seed:think>' +")
OLMOE = turns(("'<|user|>\n'", "'\n'"), ("'<|assistant|>\n'", "eos_token + '\n'"),
              ("'<|system|>\n'", "'\n'"), "{{ '<|assistant|>\n' }}", "{{ bos_token }}")
MUSE = turns(("'<|start|>user<|message|>'", "'<|eot|>'"),
             ("'<|start|>assistant to=user<|message|>'", "'<|eot|>'"),
             ("'<|start|>system<|message|>'", "'<|eot|>'"), "<|start|>assistant")

GLM_MARKS = ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
             "<|endoftext|>")
KIMI_MARKS = ("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|im_end|>",
              "[EOS]")
DEEPSEEK_MARKS = tuple(bars(b) for b in ("begin\u2581of\u2581sentence", "end\u2581of\u2581sentence",
                                         "User", "Assistant"))
ROLES = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")
HY = (bars("hy_begin"), bars("hy_place"), bars("hy_User"), bars("hy_Assistant"))
TURN = ("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>",
        "<|CHATBOT_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|START_THINKING|>", "<|END_THINKING|>",
        "<|START_RESPONSE|>", "<|END_RESPONSE|>")

# A family: its vocabulary, the last token of a prompt, the beginning of an answer up to its text
# (with the thought "ab"; without one where the model has none), and what opens the next turn.
FAMILIES = {
    "GLM 4.5 to 5.3": (dict(template=GLM, marks=GLM_MARKS, user=THINK, eos="<|endoftext|>",
                            pre="glm4"),
                       ("<think>", "a", "b", "</think>"), ("<|user|>",)),
    "GLM, a result of a tool": (dict(template=GLM, marks=GLM_MARKS, user=THINK,
                                     eos="<|endoftext|>", pre="glm4"),
                                ("<think>", "a", "b", "</think>"), ("<|observation|>",)),
    "DeepSeek V2": (dict(template=DEEPSEEK2, marks=DEEPSEEK_MARKS[:2], eos=DEEPSEEK_MARKS[1],
                         pre="deepseek-llm"), (":",), ("\n\n", "User: ")),
    "DeepSeek V3": (dict(template=DEEPSEEK3, marks=DEEPSEEK_MARKS, user=THINK,
                         eos=DEEPSEEK_MARKS[1], pre="deepseek-v3"),
                    ("<think>", "a", "b", "</think>"), (bars("User"),)),
    "DeepSeek V4, which has no template": (
        dict(template=None, marks=DEEPSEEK_MARKS, user=THINK, eos=DEEPSEEK_MARKS[1],
             pre="deepseek-v3"), ("<think>", "a", "b", "</think>"), (bars("User"),)),
    "DeepSeek V3 without its template": (
        dict(template=None, marks=DEEPSEEK_MARKS, eos=DEEPSEEK_MARKS[1], pre="deepseek-v3"),
        (bars("Assistant"),), (bars("User"),)),
    "Kimi K2, Linear": (dict(template=KIMI, marks=KIMI_MARKS, user=THINK, eos="[EOS]",
                             pre="kimi-k2"),
                        ("<|im_middle|>", "<think>", "a", "b", "</think>"), ("<|im_user|>",)),
    "Kimi, its end of a turn": (dict(template=KIMI, marks=KIMI_MARKS, user=THINK, eos="[EOS]",
                                     pre="kimi-k2"),
                                ("<|im_middle|>", "<think>", "a", "b", "</think>"),
                                ("<|im_end|>",)),
    "Nemotron 3": (dict(template=NEMOTRON, user=THINK, pre="pixtral"),
                   ("\n", "a", "b", "</think>"), (IM[0],)),
    "LFM2": (dict(template=LFM2, marks=("<|startoftext|>", *IM), pre="lfm2"),
             ("\n", "<thi", "nk>", "a", "b", "</th", "ink>"), (IM[0],)),
    "Granite 4": (dict(template=GRANITE4, marks=ROLES, eos=ROLES[2], pre="dbrx"),
                  (ROLES[1],), (ROLES[0],)),
    "Muse Glimmer": (dict(template=MUSE, marks=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
                          eos="<|eot|>", pre="llama4"),
                     ("t", " to", "=user", "<|message|>"), ("<|start|>", "user")),
    "Laguna": (dict(template=LAGUNA, marks=("<s>", "</s>", "<user>", "</user>", "<assistant>",
                                            "</assistant>", "<system>", "</system>"),
                    user=THINK, eos="</s>", pre="laguna"),
               ("<think>", "a", "b", "</think>"), ("</assistant>",)),
    "Mellum 2": (dict(pre="mellum2"), ("\n",), (IM[0],)),
    "Ling 2, 3": (dict(template=LING, marks=("<role>", "</role>", "<|role_end|>", "<|endoftext|>"),
                       eos="<|endoftext|>", pre="bailingmoe2"), ("</role>",), ("<role>",)),
    "Ring 2": (dict(template=RING, marks=("<role>", "</role>", "<|role_end|>", "<|endoftext|>"),
                    user=THINK, eos="<|endoftext|>", pre="bailingmoe2"),
               ("\n", "a", "b", "</think>"), ("<|role_end|>",)),
    "MiniMax M2": (dict(template=MINIMAX, marks=("]~!b[", "]~b]", "[e~["), user=THINK, eos="[e~[",
                        pre="minimax-m2"), ("\n", "a", "b", "</think>"), ("]~b]",)),
    "ERNIE 4.5": (dict(template=ERNIE, marks=("<|begin_of_sentence|>", "<|end_of_sentence|>"),
                       eos="<|end_of_sentence|>"), (" ",), ("\n", "User: ")),
    "Hunyuan": (dict(template=HUNYUAN, marks=HY, eos=HY[1], pre="hunyuan"),
                (HY[3], "<thi", "nk>\n", "a", "b", "\n</th", "ink>\n"), (HY[2],)),
    "Falcon-H1": (dict(pre="falcon-h1"), ("\n",), (IM[0],)),
    "EXAONE 4": (dict(template=EXAONE, marks=("[|user|]", "[|assistant|]", "[|system|]",
                                              "[|endofturn|]"), user=THINK, eos="[|endofturn|]",
                      pre="exaone4"), ("\n", "a", "b", "</think>"), ("[|user|]",)),
    "Command R7B": (dict(template=COMMAND, marks=TURN, eos=TURN[2], pre="command-r"),
                    ("<|CHATBOT_TOKEN|>", "<|START_THINKING|>", "a", "b", "<|END_THINKING|>",
                     "<|START_RESPONSE|>"), (TURN[1],)),
    "Command R7B, the end of its answer": (
        dict(template=COMMAND, marks=TURN, eos=TURN[2], pre="command-r"),
        ("<|CHATBOT_TOKEN|>", "<|START_THINKING|>", "a", "b", "<|END_THINKING|>",
         "<|START_RESPONSE|>"), ("<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>")),
    "Seed-OSS": (dict(template=SEED, marks=("<seed:bos>", "<seed:eos>"),
                      user=("<seed:think>", "</seed:think>"), eos="<seed:eos>", pre="seed-coder"),
                 ("\n", "<seed:think>", "a", "b", "</seed:think>"), ("<seed:bos>",)),
    "OLMoE": (dict(template=OLMOE, marks=("<|endoftext|>",), eos="<|endoftext|>", pre="olmo"),
              ("\n",), ("\n<|us", "er|>")),
    "AFM": (dict(pre="llama-bpe"), ("\n",), (IM[0],)),
    "Qwen 3.8-Flash-Next": (dict(template=NEMOTRON, user=THINK, pre="qwen35"),
                            ("\n", "a", "b", "</think>"), (IM[0],)),
}


class Formats(FolderCase):
    def answer(self, row, *walk, args=()):
        """Returns the last line of run --json of a model that says this walk."""
        row = dict(row)
        marks = row.setdefault("marks", IM)
        row.setdefault("eos", IM[1])
        known = {*marks, *row.get("user", ())}
        pieces = [p.encode() for p in walk if len(p.encode()) > 1 and p not in known]
        key = [p.encode() if p.encode() in pieces else p for p in walk]
        self.assertEqual(len(walk) - 1, len(dict(zip(walk, walk[1:]))), walk)
        path = chain(self.folder, "model", dict(zip(key, key[1:])), pieces=pieces, **row).path
        r = memwall("run", "-m", path, "--json", *SMALL, *args, "hi")
        self.assertEqual((0, ""), (r.returncode, r.stderr), walk)
        return json.loads(r.stdout.splitlines()[-1])

    def test_thinking_and_turns_of_each_family(self):
        for name, (row, first, opens) in FAMILIES.items():
            with self.subTest(family=name):
                answer = self.answer(row, *first, "c", *opens, "q", "r")
                thought = "ab" if "a" in first else ""
                self.assertEqual((thought, "c", "stop"),
                                 (answer.get("thinking", "").strip(), answer["text"].strip(),
                                  answer["done"]))

    def test_without_thinking(self):
        for name in ("GLM 4.5 to 5.3", "DeepSeek V3", "DeepSeek V4, which has no template",
                     "Laguna"):
            row, _, opens = FAMILIES[name]
            with self.subTest(family=name):
                answer = self.answer(row, "</think>", "c", *opens, "q", "r", args=("--no-think",))
                self.assertEqual((None, "c"), (answer.get("thinking"), answer["text"].strip()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
