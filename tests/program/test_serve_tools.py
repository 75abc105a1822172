#!/usr/bin/env python3
"""memwall serve: tools in the template, calls in answers, and their results."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from gguf_template import with_template  # noqa: E402
from program import FolderCase, memwall  # noqa: E402
from server import Server, user  # noqa: E402

CHAT, MESSAGES, OLLAMA = "/v1/chat/completions", "/v1/messages", "/api/chat"

TEMPLATE = ("{% if tools %}{{ '<|im_start|>tools\n' }}{% for t in tools %}{{ t.function.name + ' '"
            " + (t.function.parameters | tojson) }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}"
            "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] }}"
            "{% for c in m.tool_calls %}{{ c.function.name + ' ' + c.function.arguments.a }}"
            "{% endfor %}{% if m.name is defined %}{{ ' of ' + m.name }}{% endif %}"
            "{{ '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}")
HARMONY = ("{% for m in messages %}{% if m.role == 'assistant' %}"
           "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}"
           "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}"
           "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}"
           "{% endif %}")
HARMONY_MARKS = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>")
PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "f", "description": "d",
                                         "parameters": PARAMETERS}}
OTHER = {"type": "function", "function": {"name": "g", "parameters": PARAMETERS}}


class ToolCase(FolderCase):
    def model(self, *parts, marks=(), user=(), **more):
        """Returns the path of a model that says these parts; a part of bytes is one token."""
        return chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>"), template=TEMPLATE,
                     marks=("<|im_start|>", "<|im_end|>", *marks), user=user,
                     pieces=[p for p in parts if isinstance(p, bytes)], **more).path

    def calls(self, s, **more):
        """Returns the text and the calls of an answer, which are the same in a stream."""
        r = s.post(CHAT, user(**{"tools": [TOOL, OTHER], **more}))[1]["choices"][0]
        message = r["message"]
        calls = [(c["function"]["name"], json.loads(c["function"]["arguments"]))
                 for c in message.get("tool_calls", [])]
        self.assertEqual("tool_calls" if calls else "stop", r["finish_reason"])
        self.assertEqual(len(calls), len({c["id"] for c in message.get("tool_calls", [])}))
        events = s.stream(CHAT, user(**{"tools": [TOOL, OTHER], "stream": True, **more}))[:-1]
        deltas = [e["choices"][0]["delta"] for e in events]
        self.assertEqual(message["content"], "".join(d.get("content", "") for d in deltas))
        streamed = [c for d in deltas for c in d.get("tool_calls", [])]
        self.assertEqual(list(range(len(calls))), [c["index"] for c in streamed])
        self.assertEqual(calls, [(c["function"]["name"], json.loads(c["function"]["arguments"]))
                                 for c in streamed])
        self.assertEqual(r["finish_reason"], events[-1]["choices"][0]["finish_reason"])
        return message["content"], calls


class Forms(ToolCase):
    def test_json_in_tags(self):
        model = self.model("Ok. ", "<tool_call>", b'{"name": "f", ', b'"arguments": {"a":"x"}}',
                           "</tool_call>", b" \n", b'<tool_call>{"name":"g","arguments":"{}"}',
                           b" </tool_call>", user=("<tool_call>", "</tool_call>"))
        with Server("-m", model) as s:
            self.assertEqual(("Ok. ", [("f", {"a": "x"}), ("g", {})]), self.calls(s))
            # Without tools, or with other ones, it is text.
            text = ('Ok. <tool_call>{"name": "f", "arguments": {"a":"x"}}</tool_call> \n'
                    '<tool_call>{"name":"g","arguments":"{}"} </tool_call>')
            self.assertEqual((text, []), self.calls(s, tools=[]))
            self.assertEqual((text, []), self.calls(s, tool_choice="none"))
            other = {"type": "function", "function": {"name": "h"}}
            self.assertEqual((text, []), self.calls(s, tools=[other]))

    def test_functions_in_tags(self):
        model = self.model("<tool_call>", b"\n<function=f>\n<parameter=a>\n12",
                           b"\n</parameter>\n<parameter=n>\n3\n</par",
                           b"ameter>\n</function>\n", "</tool_call>",
                           user=("<tool_call>", "</tool_call>"))
        with Server("-m", model) as s:
            self.assertEqual(("", [("f", {"a": "12", "n": 3})]), self.calls(s))

    def test_json_alone(self):
        model = self.model(b'{"name": "f", ', b'"parameters": {"n": 1.5}}')
        with Server("-m", model) as s:
            self.assertEqual(("", [("f", {"n": 1.5})]), self.calls(s))
        with Server("-m", self.model(b'{"name": "k", ', b'"parameters": {"n": 1.5}}')) as s:
            self.assertEqual(('{"name": "k", "parameters": {"n": 1.5}}', []), self.calls(s))
        with Server("-m", self.model("<|python_tag|>", b'{"name":"f","parameters":{}}',
                                     marks=("<|python_tag|>",))) as s:
            self.assertEqual(("", [("f", {})]), self.calls(s))

    def test_mistral(self):
        with Server("-m", self.model("[TOOL_CALLS]", b'[{"name":"f","arguments":{"a":"[x]"}},',
                                     b' {"name":"g","arguments":{}}]',
                                     marks=("[TOOL_CALLS]",))) as s:
            self.assertEqual(("", [("f", {"a": "[x]"}), ("g", {})]), self.calls(s))
        with Server("-m", self.model("Ok", "[TOOL_CALLS]", "f", "[ARGS]", b'{"a":"x"}',
                                     marks=("[TOOL_CALLS]", "[ARGS]"))) as s:
            self.assertEqual(("Ok", [("f", {"a": "x"})]), self.calls(s))

    def test_gemma(self):
        model = self.model("<|tool_call>", b'call:f{a:<|"|>x, {y}', b'<|"|>,n:-2,',
                           b"l:[1,true,{b:null}]}", "<tool_call|>",
                           marks=("<|tool_call>", "<tool_call|>"))
        with Server("-m", model) as s:
            self.assertEqual(("", [("f", {"a": "x, {y}", "n": -2, "l": [1, True, {"b": None}]})]),
                             self.calls(s))

    def harmony(self, *walk):
        """Returns the path of a model of gpt-oss's form, whose prompts end with "assistant"."""
        template = ("{% if tools %}{{ '<|start|>developer<|message|>' }}{% for t in tools %}"
                    "{{ t.function.name }}{% endfor %}{{ '<|end|>' }}{% endif %}" + HARMONY)
        return chain(self.folder, "chain", spell(*walk), template=template,
                     marks=(*HARMONY_MARKS, "<|call|>", "<|constrain|>"), eos="<|call|>",
                     pieces=[p for p in walk if isinstance(p, bytes)]).path

    def test_harmony(self):
        for name in ((b"commentary to=functions.f ", "<|constrain|>", b"json"),
                     (b"commentary to=functions.f",)):
            walk = ("t", "<|channel|>", *name, "<|message|>", b'{"a": "x"}', "<|call|>")
            with Server("-m", self.harmony(*walk)) as s:
                self.assertEqual(("", [("f", {"a": "x"})]), self.calls(s))
        # The header may begin in the prompt, or after another message.
        for before in (("t", b" to=functions.f"),
                       (b"assistant", "<|end|>", "<|start|>", b"assistant to=functions.f")):
            walk = (*before, "<|channel|>", b"commentary ", "<|constrain|>", b"json",
                    "<|message|>", b'{"a": "x"}', "<|call|>")
            with Server("-m", self.harmony(*walk)) as s:
                self.assertEqual(("", [("f", {"a": "x"})]), self.calls(s))
        # Another channel is thinking, and a tool that is not one of the request's is text.
        for name, want in ((b"analysis", ("", [])),
                           (b"commentary to=functions.k", (
                               '<|channel|>commentary to=functions.k<|message|>{"a": "x"}', []))):
            walk = ("t", "<|channel|>", name, "<|message|>", b'{"a": "x"}', "<|call|>")
            with Server("-m", self.harmony(*walk)) as s:
                self.assertEqual(want, self.calls(s))

    def test_long_names_of_gpt_oss(self):
        for name in "x" * 40, "y" * 64, "mcp__" + "z" * 123, "n.s:a/b":
            to = f"to=functions.{name}"
            header = (("<|channel|>", f"commentary {to} ".encode()) if name[0] != "y" else
                      (f" {to}".encode(), "<|channel|>", b"commentary "))
            walk = ("t", *header, "<|constrain|>", b"json", "<|message|>", b'{"a": "x"}',
                    "<|call|>")
            tool = {"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
            with self.subTest(name=name), Server("-m", self.harmony(*walk)) as s:
                self.assertEqual(("", [(name, {"a": "x"})]), self.calls(s, tools=[tool]))
                r = s.post(MESSAGES, user(max_tokens=300, tools=[
                    {"name": name, "input_schema": PARAMETERS}]))[1]
                self.assertEqual([("tool_use", name)],
                                 [(b["type"], b["name"]) for b in r["content"]])
                r = s.post(OLLAMA, user(tools=[tool], stream=False))[1]
                self.assertEqual([name], [c["function"]["name"]
                                          for c in r["message"]["tool_calls"]])

    # A family, what its model says, and the arguments of the call.
    FAMILIES = (
        ("GLM", ("<tool_call>", b"f\n<arg_key>a</arg_key>", b"<arg_value>x y</arg_value>\n<arg_key>",
                 b"n</arg_key><arg_value>3</arg_value>", "</tool_call>"), {"a": "x y", "n": 3}),
        ("GLM without arguments", ("<tool_call>", b"f\n", "</tool_call>"), {}),
        ("Seed-OSS", ("<seed:tool_call>", b"\n<function=f>\n<parameter=a>x</parameter>",
                      b"\n<parameter=n>3</parameter>\n</function>\n", "</seed:tool_call>"),
         {"a": "x", "n": 3}),
        ("Command R", ("<|START_ACTION|>", b'[{"tool_call_id": "0", "tool_name": "f", ',
                       b'"parameters": {"a": "x"}}]', "<|END_ACTION|>"), {"a": "x"}),
        ("LFM2", ("<|tool_call_start|>", b"[f(a='it\\'s (x)', n=-3, l=[True, None, ",
                  b"{'k': \"v\"}])]", "<|tool_call_end|>"),
         {"a": "it's (x)", "n": -3, "l": [True, None, {"k": "v"}]}),
        ("MiniMax", ("<minimax:tool_call>", b'\n<invoke name="f">\n<parameter name="a">x',
                     b'</parameter>\n<parameter name="n">3</parameter>\n</invoke>\n',
                     "</minimax:tool_call>"), {"a": "x", "n": 3}),
        ("Muse", (b'<atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="a">x',
                  b'</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'), {"a": "x"}),
        ("DeepSeek V4", ("<\uff5cDSML\uff5ctool_calls>".encode(),
                         '\n<\uff5cDSML\uff5cinvoke name="f">\n<\uff5cDSML\uff5cparameter name="n" '
                         'string="false">3</\uff5cDSML\uff5cparameter>\n</\uff5cDSML\uff5cinvoke>\n'
                         .encode(), "</\uff5cDSML\uff5ctool_calls>".encode()), {"n": 3}),
        ("DeepSeek V3.1", ("<\uff5ctool\u2581calls\u2581begin\uff5c>",
                           "<\uff5ctool\u2581call\u2581begin\uff5c>", b"f",
                           "<\uff5ctool\u2581sep\uff5c>", b'{"a": "x"}',
                           "<\uff5ctool\u2581call\u2581end\uff5c>",
                           "<\uff5ctool\u2581calls\u2581end\uff5c>"), {"a": "x"}),
        ("DeepSeek V3", ("<\uff5ctool\u2581calls\u2581begin\uff5c>",
                         "<\uff5ctool\u2581call\u2581begin\uff5c>", b"function",
                         "<\uff5ctool\u2581sep\uff5c>", b'f\n```json\n{"a": "x"}\n```',
                         "<\uff5ctool\u2581call\u2581end\uff5c>",
                         "<\uff5ctool\u2581calls\u2581end\uff5c>"), {"a": "x"}),
        ("Kimi", ("<|tool_calls_section_begin|>", "<|tool_call_begin|>", b"functions.f:0",
                  "<|tool_call_argument_begin|>", b'{"a": "x"}', "<|tool_call_end|>",
                  "<|tool_calls_section_end|>"), {"a": "x"}),
    )

    def test_calls_of_newer_families(self):
        for name, parts, want in self.FAMILIES:
            marks = tuple(p for p in parts if isinstance(p, str))
            with self.subTest(family=name), Server("-m", self.model(*parts, marks=marks)) as s:
                self.assertEqual(("", [("f", want)]), self.calls(s))

    def test_broken_calls_of_newer_families_are_text(self):
        for parts in (("<tool_call>", b"f<arg_key>a", "</tool_call>"),
                      ("<tool_call>", b"h", "</tool_call>"),
                      ("<|tool_call_start|>", b"[f(a=1", "<|tool_call_end|>"),
                      ("<|tool_call_start|>", b"[f(1)]", "<|tool_call_end|>"),
                      ("<minimax:tool_call>", b'<invoke name="f"><x>', "</minimax:tool_call>"),
                      ("<minimax:tool_call>", b'<invoke name="f">', "</minimax:tool_call>"),
                      ("<|tool_calls_section_begin|>", b"f", "<|tool_calls_section_end|>")):
            marks = tuple(p for p in parts if isinstance(p, str))
            text = "".join(p if isinstance(p, str) else p.decode() for p in parts)
            with self.subTest(text=text), Server("-m", self.model(*parts, marks=marks)) as s:
                self.assertEqual((text, []), self.calls(s))

    def test_calls_that_are_broken_are_text(self):
        for parts in ((b'{"name": "f", "arguments": {"a"',), (b'{"name": "f"} x',),
                      (b"<function=f><parameter=a>",), (b"",), (b"[]",), (b'{"name": 5}',)):
            text = b"".join(parts).decode()
            parts = [p for p in parts if p]
            with Server("-m", self.model("<tool_call>", *parts, "</tool_call>", "A",
                                         user=("<tool_call>", "</tool_call>"))) as s:
                self.assertEqual((f"<tool_call>{text}</tool_call>A", []), self.calls(s))
        # The end of an answer closes a call that can be read, and no other.
        for end, want in ((b'{"a":"x"}}', ("", [("f", {"a": "x"})])),
                          (b'{"a":"x"', ('<tool_call>{"name":"f","arguments":{"a":"x"', []))):
            with Server("-m", self.model("<tool_call>", b'{"name":"f","arguments":', end,
                                         user=("<tool_call>",))) as s:
                self.assertEqual(want, self.calls(s))


class Prompts(ToolCase):
    def count(self, text):
        r = memwall("tokenize", "-m", self.path("chain.gguf"), "--ids", "--special", "-",
                    stdin=text + "<|im_start|>assistant\n")
        return len(r.stdout.split())

    def test_definitions_calls_and_results_reach_the_template(self):
        schema = '{"type": "object", "properties": {"a": {"type": "string"}, "n": ' \
                 '{"type": "integer"}}}'
        want = (f"<|im_start|>tools\nf {schema}<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
                "<|im_start|>assistant\nf x<|im_end|>\n<|im_start|>tool\nr of f<|im_end|>\n"
                "<|im_start|>user\nand?<|im_end|>\n")
        with Server("-m", self.model("Hey")) as s:
            n = self.count(want)
            call = {"id": "c1", "type": "function",
                    "function": {"name": "f", "arguments": '{"a": "x"}'}}
            r = s.post(CHAT, {"tools": [TOOL], "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "r"},
                {"role": "user", "content": "and?"}]})[1]
            self.assertEqual(n, r["usage"]["prompt_tokens"])
            r = s.post(MESSAGES, {"max_tokens": 9, "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": "x"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "r"},
                    {"type": "text", "text": "and?"}]}],
                "tools": [{"name": "f", "description": "d", "input_schema": PARAMETERS}]})[1]
            self.assertEqual(n, r["usage"]["input_tokens"] +
                             r["usage"]["cache_read_input_tokens"])
            r = s.post(OLLAMA, {"stream": False, "tools": [TOOL], "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"function": {"name": "f", "arguments": {"a": "x"}}}]},
                {"role": "tool", "tool_name": "f", "content": "r"},
                {"role": "user", "content": "and?"}]})[1]
            self.assertEqual(n, r["prompt_eval_count"])

    def test_a_template_that_needs_a_system_message(self):
        model = self.path("needs.gguf")
        with_template(self.model("Hey"), model,
                      "{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}"
                      "{% endif %}" + TEMPLATE)
        empty = {"role": "system", "content": ""}
        hi = user()["messages"]
        result = [*hi, {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":"x"}'}}]},
                  {"role": "tool", "tool_call_id": "c1", "content": "r"}, *hi]
        with Server("-m", model) as s:
            for messages in hi, result:
                n = []
                for first in [empty], []:
                    status, r = s.post(CHAT, {"tools": [TOOL], "messages": first + messages})
                    self.assertEqual(200, status, r)
                    n.append(r["usage"]["prompt_tokens"])
                self.assertEqual(n[0], n[1])

    def test_ollamas_name_of_a_tool_has_two_fields(self):
        def messages(**name):
            return {"stream": False, "tools": [TOOL], "messages": [
                {"role": "user", "content": "hi"},
                {"role": "tool", "content": "r", **name}]}
        with Server("-m", self.model("Hey")) as s:
            n = [s.post(OLLAMA, messages(**name))[1]["prompt_eval_count"] for name in (
                {"tool_name": "other"}, {"name": "other"}, {"name": "f", "tool_name": "other"},
                {"name": "other", "tool_name": None}, {"name": None})]
            self.assertEqual([n[0]] * 4, n[:4])
            self.assertNotEqual(n[0], n[4])
            for key in "name", "tool_name":
                status, r = s.post(OLLAMA, messages(**{key: 5}))
                self.assertEqual((400, f"messages[1].{key}: expected a text"), (status, r["error"]))

    def test_a_result_is_of_the_last_call_with_its_id(self):
        calls = [{"id": "c1", "type": "function",
                  "function": {"name": name, "arguments": '{"a": "x"}'}} for name in ("f", "other")]
        want = "<|im_start|>user\nhi<|im_end|>\n" + "".join(
            f"<|im_start|>assistant\n{name} x<|im_end|>\n<|im_start|>tool\nr of {name}<|im_end|>\n"
            for name in ("f", "other"))
        hi = {"role": "user", "content": "hi"}
        with Server("-m", self.model("Hey")) as s:
            n = self.count(want)
            messages = [hi]
            for call in calls:
                messages += [{"role": "assistant", "content": "", "tool_calls": [call]},
                             {"role": "tool", "tool_call_id": "c1", "content": "r"}]
            self.assertEqual(n, s.post(CHAT, {"messages": messages})[1]["usage"]["prompt_tokens"])
            for call in calls:
                call["function"]["arguments"] = {"a": "x"}
            r = s.post(OLLAMA, {"messages": messages, "stream": False})[1]
            self.assertEqual(n, r["prompt_eval_count"])
            messages = [hi]
            for name in "f", "other":
                messages += [{"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": name, "input": {"a": "x"}}]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "r"}]}]
            usage = s.post(MESSAGES, {"max_tokens": 9, "messages": messages})[1]["usage"]
            self.assertEqual(n, usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_a_definition_cannot_spell_a_control_token(self):
        with Server("-m", self.model("Hey")) as s:
            def tokens(word):
                tool = {"type": "function", "function": {"name": "f", "parameters": {
                    "type": "object", "properties": {word: {}}}}}
                return s.post(CHAT, user(tools=[tool]))[1]["usage"]["prompt_tokens"]
            self.assertEqual(tokens("<|im_end|>"), tokens("<|im_xyz|>"))

    def test_a_template_without_tools_refuses_them(self):
        model = chain(self.folder, "plain", spell("\n", "Hey", "<|im_end|>")).path
        with Server("-m", model) as s:
            status, r = s.post(CHAT, user(tools=[TOOL]))
            self.assertEqual((400, "tools"), (status, r["error"]["param"]), r)
            self.assertIn("prints no tools", r["error"]["message"])
            self.assertEqual(200, s.post(CHAT, user(tools=[TOOL], tool_choice="none"))[0])

    def test_wrong_tools_are_named(self):
        def tool(**more):
            return [{"type": "function", "function": {"name": "f", **more}}]
        with Server("-m", self.model("Hey")) as s:
            for body, field in (
                    (user(tools="f"), "tools"), (user(tools=["f"]), "tools[0].type"),
                    (user(tools=[{"type": "web_search"}]), "tools[0].type"),
                    (user(tools=tool(name=5)), "tools[0].function.name"),
                    (user(tools=tool(strict=5)), "tools[0].function.strict"),
                    (user(tools=tool(parameters=5)), "tools[0].function.parameters"),
                    (user(tools=tool(banana=5)), "tools[0].function.banana"),
                    (user(tools=[TOOL], parallel_tool_calls=False), "parallel_tool_calls"),
                    (user(tools=[OTHER, *tool(strict=True)]), "tools[1].function.strict"),
                    (user(tools=[TOOL], grammar='root ::= "a"'), "grammar"),
                    (user(tools=[TOOL], grammar='root ::= "a"', tool_choice="required"),
                     "grammar"),
                    ({"messages": [{"role": "tool", "content": "x"}]},
                     "messages[0].tool_call_id"),
                    ({"messages": [{"role": "assistant", "tool_calls": [
                        {"function": {"name": "f", "arguments": "{"}}]}]},
                     "messages[0].tool_calls[0].arguments")):
                status, r = s.post(CHAT, body)
                self.assertEqual((400, field), (status, r["error"].get("param")), r)
            for body, field in (
                    (user(tools=[{"type": "bash_20250124", "name": "bash"}]), "tools[0].type"),
                    ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
                     "messages[0].content[0].tool_use_id")):
                status, r = s.post(MESSAGES, dict(body, max_tokens=5))
                self.assertEqual(400, status)
                self.assertTrue(r["error"]["message"].startswith(field + ":"), r)


    def test_a_request_can_have_the_calls_of_answers(self):
        template = TEMPLATE.replace("c.function.arguments.a", "(c.function.arguments | tojson)")
        hi = {"role": "user", "content": "hi"}
        for depth in 2, 20, 21:  # objects and lists, with the arguments themselves
            value = "[" * (depth - 1) + "1" + "]" * (depth - 1)
            text = '{"name": "f", "arguments": {"a":' + value + "}}"
            parts = "<tool_call>", text.encode(), "</tool_call>"
            model = chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>"),
                          template=template, user=("<tool_call>", "</tool_call>"),
                          pieces=[parts[1]]).path
            with self.subTest(depth=depth), Server("-m", model) as s:
                own = [{"name": "f", "input_schema": PARAMETERS}]
                message = s.post(CHAT, user(tools=[TOOL]))[1]["choices"][0]["message"]
                blocks = s.post(MESSAGES, user(max_tokens=99, tools=own))[1]["content"]
                answer = s.post(OLLAMA, user(tools=[TOOL], stream=False))[1]["message"]
                if depth == 21:
                    text = f"<tool_call>{text}</tool_call>"
                    self.assertEqual([text] * 3, [message["content"], blocks[0]["text"],
                                                  answer["content"]])
                    continue
                call = message["tool_calls"][0]
                self.assertEqual({"a": json.loads(value)},
                                 json.loads(call["function"]["arguments"]))
                for path, body in (
                        (CHAT, {"messages": [hi, message, {
                            "role": "tool", "tool_call_id": call["id"], "content": "r"}]}),
                        (MESSAGES, {"max_tokens": 9, "messages": [
                            hi, {"role": "assistant", "content": blocks}, {
                                "role": "user", "content": [
                                    {"type": "tool_result", "tool_use_id": blocks[0]["id"],
                                     "content": "r"}]}]}),
                        (OLLAMA, {"stream": False, "messages": [hi, answer]})):
                    status, r = s.post(path, body)
                    self.assertEqual(200, status, r)
                # The deepest requests.
                calls = [{"function": {"name": "f", "arguments": {"a": json.loads(
                    "[" * n + "]" * n)}}} for n in (19, 20)]
                for one, status in zip(calls, (200, 400)):
                    message = {"role": "assistant", "content": "", "tool_calls": [one]}
                    self.assertEqual(status, s.post(OLLAMA, {
                        "stream": False, "messages": [hi, message]})[0])


class Replies(ToolCase):
    def setUp(self):
        super().setUp()
        self.path_of_model = self.model(
            "Ok", "<tool_call>", b'{"name": "f", ', b'"arguments": {"a":"x"}}', "</tool_call>",
            user=("<tool_call>", "</tool_call>"))

    def test_anthropic(self):
        tools = [{"name": "f", "input_schema": PARAMETERS}]
        with Server("-m", self.path_of_model) as s:
            r = s.post(MESSAGES, user(max_tokens=99, tools=tools))[1]
            self.assertEqual("tool_use", r["stop_reason"])
            text, call = r["content"]
            self.assertEqual({"type": "text", "text": "Ok"}, text)
            self.assertEqual(("tool_use", "f", {"a": "x"}),
                             (call["type"], call["name"], call["input"]))
            events = s.stream(MESSAGES, user(max_tokens=99, tools=tools, stream=True))
            starts = [e["content_block"] for e in events if e["type"] == "content_block_start"]
            self.assertEqual(["text", "tool_use"], [b["type"] for b in starts])
            self.assertEqual(("f", {}), (starts[1]["name"], starts[1]["input"]))
            deltas = [e for e in events if e["type"] == "content_block_delta" and
                      e["delta"]["type"] == "input_json_delta"]
            self.assertEqual({1}, {e["index"] for e in deltas})
            self.assertEqual({"a": "x"}, json.loads("".join(
                e["delta"]["partial_json"] for e in deltas)))
            self.assertEqual("tool_use", events[-2]["delta"]["stop_reason"])

    def test_ollama(self):
        with Server("-m", self.path_of_model) as s:
            want = {"index": 0, "name": "f", "arguments": {"a": "x"}}
            r = s.post(OLLAMA, user(tools=[TOOL], stream=False))[1]
            self.assertEqual("Ok", r["message"]["content"])
            lines = s.stream(OLLAMA, user(tools=[TOOL]))
            self.assertEqual("Ok", "".join(e["message"]["content"] for e in lines))
            streamed = [c for e in lines for c in e["message"].get("tool_calls", [])]
            for calls in r["message"]["tool_calls"], streamed:
                self.assertEqual([want], [c["function"] for c in calls])
                self.assertRegex(calls[0]["id"], r"^call_\w+_0$")


class FlatCase(ToolCase):
    """Models that say anything, with the templates of families."""

    FAMILIES = (
        ("<tool_call>", (), ("<tool_call>", "</tool_call>")),
        ("<tool_call> <function=", (), ("<tool_call>", "</tool_call>")),
        ("<|python_tag|>", ("<|python_tag|>",), ()),
        ("[TOOL_CALLS]", ("[TOOL_CALLS]",), ()),
        ("[TOOL_CALLS] [ARGS]", ("[TOOL_CALLS]", "[ARGS]"), ()),
        ("<|tool_call>", ("<|tool_call>", "<tool_call|>", '<|"|>'), ()))

    def flat(self, word, marks, user):
        """A model whose tokens are all equally likely, with a template of a family."""
        m = chain(self.folder, "flat", spell("\n", "a", "<|im_end|>"),
                  template=TEMPLATE + "{# " + word + " #}",
                  marks=("<|im_start|>", "<|im_end|>", *marks), user=user)
        dims, kind, raw = m.tensors["output.weight"]
        m.tensors["output.weight"] = dims, kind, bytes(len(raw))
        return m.write(m.path)


class Forced(FlatCase):
    """tool_choice "required" and the name of a tool: the grammar forces the form of the family."""

    TOOLS = [{"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {"a": {"enum": ["x", "y"]}, "n": {"type": "integer"}},
        "required": ["a"]}}} for name in ("f", "gg")]

    def ask(self, s, seed, choice, path=CHAT):
        status, r = s.post(path, user(tools=self.TOOLS, tool_choice=choice, temperature=1,
                                      seed=seed, max_tokens=1500))
        self.assertEqual(200, status, r)
        return r["choices"][0]

    def test_an_answer_is_a_call(self):
        for family in self.FAMILIES:
            with self.subTest(family=family), Server("-m", self.flat(*family)) as s:
                ends = 0
                for seed in range(6):
                    only = seed % 2 == 1
                    choice = self.ask(s, seed, {"type": "function", "function": {"name": "gg"}}
                                      if only else "required")
                    if choice["finish_reason"] == "length":  # random text need not end
                        self.assertTrue(choice["message"]["content"].startswith(
                            family[0].split()[0]), choice)
                        continue
                    ends += 1
                    self.assertEqual("tool_calls", choice["finish_reason"], choice)
                    calls = [c["function"] for c in choice["message"]["tool_calls"]]
                    self.assertEqual("", choice["message"]["content"].strip())
                    self.assertLessEqual(1, len(calls))
                    if only:
                        self.assertEqual(["gg"], [c["name"] for c in calls])
                    for c in calls:
                        arguments = json.loads(c["arguments"])
                        self.assertLessEqual(set(arguments), {"a", "n"})
                        if "{" not in family[0] and family[0] not in (
                                "<tool_call> <function=", "<|tool_call>"):
                            self.assertIn(arguments["a"], ("x", "y"))
                self.assertTrue(ends > 0 or "<function=" in family[0])

    def test_the_model_chooses_parameters_in_tags(self):
        says = self.model("<tool_call>", b"\n<function=gg>\n<parameter=a>\n1 </param",
                          b"\n</parameter>\n</function>\n", "</tool_call>",
                          user=("<tool_call>", "</tool_call>"))
        path = self.path("tagged.gguf")
        with_template(says, path, TEMPLATE + "{# <tool_call> <function= #}")
        with Server("-m", path) as s:
            call = self.ask(s, 0, "required")["message"]["tool_calls"][0]["function"]
            self.assertEqual(("gg", {"a": "1 </param"}), (call["name"],
                                                          json.loads(call["arguments"])))

    def test_the_model_chooses_the_call(self):
        says = self.model("<tool_call>", b'\n{"name": "gg", ', b'"arguments": {"a": "x"}}\n',
                          "</tool_call>", user=("<tool_call>", "</tool_call>"))
        path = self.path("hermes.gguf")
        with_template(says, path, TEMPLATE + "{# <tool_call> #}")
        with Server("-m", path) as s:
            choice = self.ask(s, 0, "required")
            self.assertEqual("gg", choice["message"]["tool_calls"][0]["function"]["name"])
            choice = self.ask(s, 0, {"type": "function", "function": {"name": "f"}})
            self.assertEqual("f", choice["message"]["tool_calls"][0]["function"]["name"])
            status, r = s.post(MESSAGES, {
                **user(), "max_tokens": 400, "temperature": 1,
                "tools": [{"name": "f", "input_schema": {"type": "object"}}],
                "tool_choice": {"type": "tool", "name": "f"}})
            self.assertEqual((200, "tool_use"), (status, r["stop_reason"]), r)

    def test_one_call_only(self):
        with Server("-m", self.flat(*self.FAMILIES[0])) as s:
            n = [len(s.post(CHAT, user(tools=self.TOOLS, tool_choice="required", temperature=1,
                                       seed=seed, parallel_tool_calls=parallel))[1]["choices"][0]
                     ["message"]["tool_calls"]) for parallel in (False, True) for seed in range(6)]
            self.assertEqual([1] * 6, n[:6])
            self.assertGreater(max(n[6:]), 1)

    def test_wrong_choices_are_named(self):
        with Server("-m", self.flat(*self.FAMILIES[0])) as s:
            for choice, tools, param, words in (
                    ("required", None, "tool_choice", "no tools"),
                    ("always", self.TOOLS, "tool_choice", "supported"),
                    ({"type": "function", "function": {"name": "h"}}, self.TOOLS, "tool_choice",
                     'no tool "h"'),
                    ({"type": "function", "function": {"name": 5}}, self.TOOLS,
                     "tool_choice.function.name", "text"),
                    ({"type": "function", "function": {"name": "f", "x": 1}}, self.TOOLS,
                     "tool_choice.function.x", "not supported")):
                status, r = s.post(CHAT, user(tools=tools, tool_choice=choice))
                self.assertEqual((400, param), (status, r["error"]["param"]), r)
                self.assertIn(words, r["error"]["message"])
        # A template without a form, and forms that share a word with those that have a grammar.
        for word in "", "<tool_call> <arg_key>", "<seed:tool_call> <function=":
            with Server("-m", self.flat(word, (), ())) as s:
                status, r = s.post(CHAT, user(tools=self.TOOLS, tool_choice="required"))
                self.assertEqual((400, "tool_choice"), (status, r["error"]["param"]))


class Strict(FlatCase):
    """Arguments that must match: the answer is text, and then calls in a form with a grammar."""

    SCHEMA = {"type": "object", "additionalProperties": False, "required": ["a", "l"],
              "properties": {"a": {"type": "string", "enum": ["x", "<y>"]},
                             "l": {"$ref": "#/$defs/l"}, "o": {"type": ["object", "null"]},
                             "e": {"enum": ["u", None]}},
              "$defs": {"l": {"type": "array", "items": {"type": "integer", "maximum": 99},
                              "minItems": 1, "maxItems": 2}}}
    FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "schema": {
        "type": "object", "properties": {"t": {"const": "<tool_call>[TOOL_CALLS]"}},
        "required": ["t"]}}}

    def tools(self):
        return [{"type": "function", "function": {"name": n, "strict": True,
                                                  "parameters": self.SCHEMA}}
                for n in ("f", "gg")]

    def check(self, choice):
        """Returns the number of calls."""
        calls = choice["message"].get("tool_calls", [])
        for c in calls:
            self.assertIn(c["function"]["name"], ("f", "gg"))
            v = json.loads(c["function"]["arguments"])
            self.assertLessEqual({"a", "l"}, set(v), c)
            self.assertLessEqual(set(v), {"a", "l", "o", "e"}, c)
            self.assertIn(v.get("e"), ("u", None))
            self.assertIn(v["a"], ("x", "<y>"))
            self.assertTrue(1 <= len(v["l"]) <= 2 and all(
                isinstance(n, int) and n < 100 for n in v["l"]), c)
            self.assertIsInstance(v.get("o"), (dict, type(None)))
        return len(calls)

    def family(self, family):
        """The likelier tokens: those that begin and end a call, and those of short values."""
        ids = self.ids
        words = ["<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|tool_call>", "<tool_call|>"]
        return {str(ids[w]): 6 for w in words if w in ids} | {
            str(ids[c]): 4 for c in '"}]'} | ({str(ids["{"]): 7} if "python" in family[0] else {})

    def ask(self, s, seed, family, **more):
        status, r = s.post(CHAT, user(**{"tools": self.tools(), "temperature": 1, "seed": seed,
                                         "max_tokens": 1500, "logit_bias": self.family(family),
                                         **more}))
        self.assertEqual(200, status, r)
        return r["choices"][0]

    def flat(self, word, marks, user):
        path = super().flat(word, marks, user)
        self.ids = chain(self.folder, "ids", spell("\n", "a", "<|im_end|>"),
                         marks=("<|im_start|>", "<|im_end|>", *marks), user=user).id_of
        return path

    def test_an_answer_is_a_call(self):
        for family in self.FAMILIES:
            with self.subTest(family=family), Server("-m", self.flat(*family)) as s:
                self.assertGreater(sum(self.check(self.ask(s, seed, family, tool_choice="required"))
                                       for seed in range(6)), 0)

    def test_calls_after_text_match_the_schema(self):
        for family in self.FAMILIES:
            with self.subTest(family=family), Server("-m", self.flat(*family)) as s:
                choices = [self.ask(s, seed, family) for seed in range(8)]
                self.assertGreater(sum(self.check(c) for c in choices), 0)
                if "python" not in family[0]:
                    self.assertTrue(any(c["message"]["content"] for c in choices), choices)
                one = [self.check(self.ask(s, seed, family, parallel_tool_calls=False))
                       for seed in range(8)]
                self.assertEqual(1, max(one))

    def test_an_answer_is_a_call_or_of_another_form(self):
        for family in self.FAMILIES:
            with self.subTest(family=family), Server("-m", self.flat(*family)) as s:
                bias = self.family(family)
                bias[str(self.ids["{"])] = 6
                texts = calls = 0
                for seed in range(10):
                    c = self.ask(s, seed, family, response_format=self.FORMAT, logit_bias=bias)
                    if self.check(c) > 0:
                        self.assertEqual("", c["message"]["content"])
                        calls += 1
                    elif c["finish_reason"] == "stop":
                        self.assertEqual({"t": "<tool_call>[TOOL_CALLS]"},
                                         json.loads(c["message"]["content"]))
                        texts += 1
                self.assertTrue(texts > 0 and calls > 0, (texts, calls))

    def test_the_model_cannot_leave_the_schema(self):
        says = self.model("<tool_call>", b'\n{"name": "gg", ', b'"arguments": {"a":"z"}}\n',
                          "</tool_call>", user=("<tool_call>", "</tool_call>"))
        path = self.path("hermes.gguf")
        with_template(says, path, TEMPLATE + "{# <tool_call> #}")
        with Server("-m", path) as s:
            schema = {"type": "object", "properties": {"a": {"enum": ["xyz"]}},
                      "required": ["a"]}
            strict = [{"type": "function", "function": {"name": "gg", "strict": True,
                                                        "parameters": schema}}]
            c = s.post(CHAT, user(tools=strict))[1]["choices"][0]
            self.assertEqual({"a": "xyz"}, json.loads(
                c["message"]["tool_calls"][0]["function"]["arguments"]))
            strict[0]["function"]["strict"] = False
            c = s.post(CHAT, user(tools=strict))[1]["choices"][0]
            self.assertEqual({"a": "z"}, json.loads(
                c["message"]["tool_calls"][0]["function"]["arguments"]))
            own = [{"name": "gg", "strict": True, "input_schema": schema}]
            r = s.post(MESSAGES, user(max_tokens=400, tools=own))[1]
            self.assertEqual([{"a": "xyz"}], [b["input"] for b in r["content"]
                                              if b["type"] == "tool_use"])

    def test_faults_are_named(self):
        def tool(parameters):
            return [{"type": "function", "function": {"name": "f"}},
                    {"type": "function", "function": {"name": "g", "strict": True,
                                                      "parameters": parameters}}]
        bad = {"type": "object", "properties": {"a": {"type": "array", "contains": {}}}}
        text = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}
        for family, schema, words in (
                (0, bad, '"contains" at #/properties/a'), (0, {}, '"type": "object"'),
                (1, bad, '"contains" at #'), (1, text, '"minLength" at #/properties/a'),
                (5, bad, '"contains" at #/properties/a')):
            with Server("-m", self.flat(*self.FAMILIES[family])) as s:
                status, r = s.post(CHAT, user(tools=tool(schema)))
                self.assertEqual((400, "tools[1].function.parameters"),
                                 (status, r["error"]["param"]), r)
                self.assertIn(words, r["error"]["message"])
                status, r = s.post(MESSAGES, user(max_tokens=9, tools=[
                    {"name": "g", "strict": True, "input_schema": schema}]))
                self.assertEqual(400, status)
                self.assertTrue(r["error"]["message"].startswith("tools[0].input_schema: "), r)
        # Tools that take too much time, alone or together.
        many = {f"p{i}": {"type": "integer"} for i in range(1025)}
        some = {f"p{i}": {"type": "integer"} for i in range(1000)}
        long = {f"p{i}": {"type": "integer", "multipleOf": 509} for i in range(80)}
        small = {"p": {"type": "integer"}}
        for family, wrong, schemas, words in (
                (1, 1, [(False, {"properties": small}), (False, {"properties": many})],
                 '"properties" at # has more than 1024'),
                (1, 0, [(True, {"properties": small, "required": list(many)})],
                 '"required" at # has more than 1024'),
                (5, 0, [(False, {"properties": many})], '"properties" at # has more than 1024'),
                (1, 0, [(False, {"properties": [1]})], '"properties" at # is not an object'),
                (5, 0, [(False, {"properties": [1]})], '"properties" at # is not an object'),
                (1, 0, [(False, {"required": {"p": 1}})], '"required" at # is not a list'),
                (1, None, [(True, {"properties": some})] * 6, "takes too much time"),
                (0, 30, [(False, {"properties": long})] * 30 + [(True, {"properties": small})],
                 "takes too much time")):
            with self.subTest(words=words), Server("-m", self.flat(*self.FAMILIES[family])) as s:
                tools = [{"type": "function", "function": {
                    "name": f"t{i}", "strict": strict,
                    "parameters": {"type": "object", **schema}}}
                         for i, (strict, schema) in enumerate(schemas)]
                status, r = s.post(CHAT, user(tools=tools, tool_choice="required"))
                self.assertEqual(400, status, r)
                self.assertRegex(r["error"]["param"], r"^tools\[%s\]\.function\.parameters$"
                                 % (r"\d" if wrong is None else wrong))
                self.assertIn(words, r["error"]["message"])
        with Server("-m", self.model("Hey")) as s:  # a template without a form
            for more, param in (({"response_format": self.FORMAT}, "response_format"),
                                ({"tools": tool(text)}, "tools[1].function.strict")):
                status, r = s.post(CHAT, user(**{"tools": [TOOL], **more}))
                self.assertEqual((400, param), (status, r["error"]["param"]), r)


if __name__ == "__main__":
    unittest.main(verbosity=2)
