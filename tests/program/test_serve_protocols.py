#!/usr/bin/env python3
"""memwall serve: the protocols of Anthropic and of Ollama."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import CHATML, chain, spell  # noqa: E402
from program import FolderCase, memwall  # noqa: E402
from server import Server, user  # noqa: E402

MESSAGES, CHAT, GENERATE = "/v1/messages", "/api/chat", "/api/generate"


class ProtocolCase(FolderCase):
    def says(self, *parts, **more):
        return chain(self.folder, "chain", spell("\n", *parts, "<|im_end|>"), **more).path

    def thinker(self):
        return self.says("<think>", "ab", "</think>", "c", user=("<think>", "</think>"))

    def count(self, *messages):
        """Tokens of the prompt of these messages: (role, content)."""
        text = "".join(f"<|im_start|>{r}\n{c}<|im_end|>\n" for r, c in messages)
        r = memwall("tokenize", "-m", self.path("chain.gguf"), "--ids", "--special", "-",
                    stdin=text + "<|im_start|>assistant\n")
        return len(r.stdout.split())


class Anthropic(ProtocolCase):
    def test_a_message(self):
        with Server("-m", self.thinker()) as s:
            status, r = s.post(MESSAGES, user(max_tokens=50, model=s.model))
            self.assertEqual(200, status, r)
            self.assertEqual(("message", "assistant", s.model),
                             (r["type"], r["role"], r["model"]))
            self.assertEqual([{"type": "thinking", "thinking": "ab", "signature": ""},
                              {"type": "text", "text": "c"}], r["content"])
            self.assertEqual(("end_turn", None), (r["stop_reason"], r["stop_sequence"]))
            usage = r["usage"]
            self.assertEqual(self.count(("user", "hi")),
                             usage["input_tokens"] + usage["cache_read_input_tokens"])
            self.assertEqual(6, usage["output_tokens"])

    def test_a_stream(self):
        with Server("-m", self.thinker()) as s:
            c, r = s.open(MESSAGES, user(max_tokens=50, stream=True))
            self.assertTrue(r.headers["Content-Type"].startswith("text/event-stream"))
            lines = r.read().decode().split("\n")
            c.close()
            names = [line[7:] for line in lines if line.startswith("event: ")]
            data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
            self.assertEqual(names, [d["type"] for d in data])
            self.assertEqual(["message_start", "message_delta", "message_stop"],
                             [n for n in names if n.startswith("message")])
            blocks, text = {}, {}
            for d in data:
                if d["type"] == "content_block_start":
                    self.assertNotIn(d["index"], blocks)
                    blocks[d["index"]] = d["content_block"]["type"]
                elif d["type"] == "content_block_delta":
                    kind = blocks[d["index"]]
                    self.assertEqual(f"{kind}_delta", d["delta"]["type"])
                    text[kind] = text.get(kind, "") + d["delta"][kind]
            self.assertEqual({"thinking": "ab", "text": "c"}, text)
            self.assertEqual(2, names.count("content_block_stop"))
            end = data[-2]
            self.assertEqual(("end_turn", 6),
                             (end["delta"]["stop_reason"], end["usage"]["output_tokens"]))

    def test_ends_of_messages(self):
        with Server("-m", self.says("Hey, Mo.")) as s:
            for more, text, reason, stop in (
                    ({"max_tokens": 3}, "Hey", "max_tokens", None),
                    ({"max_tokens": 9, "stop_sequences": ["y, M"]}, "He", "stop_sequence", "y, M"),
                    ({"max_tokens": 9, "stop_sequences": ["x", "ey", "H.", ", "]}, "H",
                     "stop_sequence", "ey"),
                    ({"max_tokens": 9}, "Hey, Mo.", "end_turn", None)):
                r = s.post(MESSAGES, user(**more))[1]
                self.assertEqual((text, reason, stop), (r["content"][0]["text"],
                                                        r["stop_reason"], r["stop_sequence"]))

    def test_errors_of_paths_that_are_not_there(self):
        with Server("-m", self.says("Hey.")) as s:
            status, r = s.post(MESSAGES + "/count_tokens", user())
            self.assertEqual((404, "error", "not_found_error"),
                             (status, r["type"], r["error"]["type"]))

    def test_a_system_message_comes_first(self):
        hi = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
        with Server("-m", self.says("Hey.")) as s:
            want = self.count(("system", "be brief"), ("user", "hi"), ("assistant", "a"),
                              ("user", "hi"))
            block = {"type": "text", "text": "be ", "cache_control": {"type": "ephemeral"}}
            for system in "be brief", [block, {"type": "text", "text": "brief"}]:
                r = s.post(MESSAGES, {"max_tokens": 5, "system": system, "messages": [
                    hi, {"role": "assistant", "content": "a"}, hi]})[1]
                self.assertEqual(want, r["usage"]["input_tokens"] +
                                 r["usage"]["cache_read_input_tokens"])

    def test_fields_that_are_not_supported_are_named(self):
        with Server("-m", self.says("Hey.")) as s:
            for body, field in (({}, "messages"), (user(tools=[{"name": 5}]), "tools[0].name"),
                                (user(max_tokens=0), "max_tokens"),
                                (user(thinking={"type": "maybe"}), "thinking.type"),
                                (user(tool_choice={"type": "all"}), "tool_choice.type"),
                                (user(tool_choice={"type": "any"}), "tool_choice"),
                                (user(container="x"), "container"),
                                ({"messages": [{"role": "system", "content": "x"}]},
                                 "messages[0].role"),
                                ({"messages": [{"role": "user", "content": [
                                    {"type": "image", "source": {}}]}]},
                                 "messages[0].content[0].type"),
                                ({"messages": [{"role": "assistant", "content": "x"}]},
                                 "messages")):
                status, r = s.post(MESSAGES, body)
                self.assertEqual((400, "error", "invalid_request_error"),
                                 (status, r["type"], r["error"]["type"]))
                self.assertTrue(r["error"]["message"].startswith(field + ":"), r)
            status, r = s.post(MESSAGES, user(model="claude"))
            self.assertEqual((404, "not_found_error"), (status, r["error"]["type"]))


class ThinkingThatIsOnlyClosed(ProtocolCase):
    """A whole reply has it apart.  A stream has the text with the mark, whatever was sent when the
    mark came."""
    OPENAI = "/v1/chat/completions"
    TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]

    def whole(self, s, path, **more):
        r = s.post(path, user(stream=False, **more))[1]
        if path == MESSAGES:
            parts = {b["type"]: b[b["type"]] for b in r["content"]}
            return parts.get("thinking"), parts.get("text")
        m = r["message"] if path == CHAT else r["choices"][0]["message"]
        return m.get("thinking", m.get("reasoning_content")), m["content"]

    def stream(self, s, path, **more):
        """Returns (kind, text) of neighbours of one kind."""
        out = []
        for e in s.stream(path, user(stream=True, **more)):
            if e == "[DONE]":
                break
            d = (e.get("delta", {}) if path == MESSAGES else e["message"] if path == CHAT else
                 e["choices"][0]["delta"])
            for key, text in d.items():
                kind = {"text": "content", "reasoning_content": "thinking"}.get(key, key)
                if kind in ("content", "thinking") and text:
                    if not out or out[-1][0] != kind:
                        out.append((kind, ""))
                    out[-1] = kind, out[-1][1] + text
        return out

    def test_it_is_the_same_in_all_protocols(self):
        tags = dict(user=("<think>", "</think>"))
        template = "{# <think> </think> #}" + CHATML
        for parts, more in ((("ab", "</think>", "cd"), tags),
                            (("ab", "</think>", b"\n\n", "cd"), tags),
                            (("ab", b"</th", b"ink>", "cd"), dict(template=template)),
                            (("a", b"b</think>cd"), dict(template=template))):
            pieces = [p for p in parts if isinstance(p, bytes)]
            with Server("-m", self.says(*parts, pieces=pieces, **more)) as s:
                for path in self.OPENAI, CHAT, MESSAGES:
                    self.assertEqual(("ab", "cd"), self.whole(s, path), (parts, path))
                    self.assertEqual([("content", "ab</think>cd")], self.stream(s, path),
                                     (parts, path))

    def test_without_text_before_the_mark_nothing_is_left_of_it(self):
        with Server("-m", self.says("</think>", "cd", user=("<think>", "</think>"))) as s:
            for path in self.OPENAI, CHAT, MESSAGES:
                self.assertEqual("cd", self.whole(s, path)[1])
                self.assertEqual([("content", "cd")], self.stream(s, path))

    def test_text_that_may_be_a_call_comes_before_the_mark(self):
        template = "{% if tools %}{{ tools | tojson }}{% endif %}" + CHATML
        model = self.says("a<", "</think>", "cd", user=("<think>", "</think>"), template=template)
        with Server("-m", model) as s:
            for path in self.OPENAI, CHAT:
                self.assertEqual(("a<", "cd"), self.whole(s, path, tools=self.TOOLS))
                self.assertEqual([("content", "a<</think>cd")],
                                 self.stream(s, path, tools=self.TOOLS))

    def test_a_stream_has_the_probabilities_of_its_text(self):
        with Server("-m", self.says("ab", "</think>", "cd", user=("<think>", "</think>"))) as s:
            r = s.post(self.OPENAI, user(logprobs=True))[1]["choices"][0]
            self.assertEqual(["c", "d"], [c["token"] for c in r["logprobs"]["content"]])
            events = s.stream(self.OPENAI, user(logprobs=True, stream=True))[:-1]
            self.assertEqual(["a", "b", "</think>", "c", "d"], [
                c["token"] for e in events
                for c in (e["choices"][0]["logprobs"] or {"content": []})["content"]])


class Ollama(ProtocolCase):
    def test_a_chat(self):
        with Server("-m", self.thinker()) as s:
            status, r = s.post(CHAT, user(model=s.model, stream=False))
            self.assertEqual(200, status, r)
            self.assertEqual({"role": "assistant", "content": "c", "thinking": "ab"},
                             r["message"])
            self.assertEqual((True, "stop", 6), (r["done"], r["done_reason"], r["eval_count"]))
            self.assertEqual(self.count(("user", "hi")), r["prompt_eval_count"])
            self.assertRegex(r["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_it_streams_by_default(self):
        with Server("-m", self.thinker()) as s:
            lines = s.stream(CHAT, user())
            self.assertEqual([False] * (len(lines) - 1) + [True], [e["done"] for e in lines])
            self.assertEqual("c", "".join(e["message"]["content"] for e in lines))
            self.assertEqual("ab", "".join(e["message"].get("thinking", "") for e in lines))
            lines = s.stream(GENERATE, {"model": s.model + ":latest", "prompt": "hi"})
            self.assertEqual("c", "".join(e["response"] for e in lines))
            self.assertEqual("stop", lines[-1]["done_reason"])

    def test_options(self):
        with Server("-m", self.says("Hey, Mo."), "--ctx", "512") as s:
            for options, text, reason in (({"num_predict": 3}, "Hey", "length"),
                                          ({"stop": ["y, M"]}, "He", "stop"),
                                          ({"num_predict": -1, "num_ctx": 512, "seed": 1},
                                           "Hey, Mo.", "stop")):
                r = s.post(CHAT, user(stream=False, options=options))[1]
                self.assertEqual((text, reason), (r["message"]["content"], r["done_reason"]))
            status, r = s.post(CHAT, user(options={"num_ctx": 513}))
            self.assertEqual(400, status)
            self.assertIn("num_ctx", r["error"])
            for name, value in (("mirostat", 1), ("banana", 1), ("temperature", -1)):
                status, r = s.post(CHAT, user(options={name: value}))
                self.assertEqual(400, status)
                self.assertTrue(r["error"].startswith(f"options.{name}:"), r)

    def test_prompts(self):
        with Server("-m", self.says("Hey.")) as s:
            r = s.post(GENERATE, {"prompt": "hi", "system": "be brief", "stream": False})[1]
            self.assertEqual("Hey.", r["response"])
            self.assertEqual(self.count(("system", "be brief"), ("user", "hi")),
                             r["prompt_eval_count"])
            r = s.post(GENERATE, {"prompt": "hi\n", "raw": True, "stream": False})[1]
            self.assertEqual(("Hey.", 3), (r["response"], r["prompt_eval_count"]))
            for body in {"prompt": "x", "raw": True, "system": "y"}, {"prompt": "x", "images": [
                    "y"]}, {"prompt": "x", "format": "xml"}, {"prompt": "x", "template": "y"}:
                self.assertEqual(400, s.post(GENERATE, body)[0], body)

    def test_nothing_to_answer_loads_the_model(self):
        with Server("-m", self.says("Hey.")) as s:
            for path, body in (GENERATE, {}), (GENERATE, {"prompt": ""}), (CHAT, {}), (
                    CHAT, {"messages": []}):
                r = s.post(path, dict(body, model=s.model, stream=False))[1]
                self.assertEqual((True, "load"), (r["done"], r["done_reason"]))
                self.assertEqual("load", s.stream(path, body)[-1]["done_reason"])

    def test_pages(self):
        with Server("-m", self.says("Hey."), "--ctx", "512") as s:
            for path in "/api/tags", "/api/ps":
                model = json.loads(s.get(path)[1])["models"][0]
                self.assertEqual((s.model, "qwen2"), (model["name"],
                                                      model["details"]["family"]))
                # Ollama's own program shows the first 12 digits, and when the model is unloaded.
                self.assertRegex(model["digest"], r"^[0-9a-f]{64}$")
            self.assertEqual(0, model["size_vram"])
            self.assertGreater(model["expires_at"], "2100")
            for body in {"model": s.model}, {"name": s.model + ":latest"}:
                status, r = s.post("/api/show", body)
                self.assertEqual((200, 512), (status, r["model_info"]["qwen2.context_length"]))
                self.assertEqual(["completion"], r["capabilities"])
            for path, body, status in (("/api/show", {"model": "other"}, 404),
                                       ("/api/show", {}, 400), ("/api/show", "{", 400),
                                       ("/api/tags", {}, 405), ("/api/embed", {}, 404)):
                got, r = s.post(path, body)
                self.assertEqual(status, got)
                self.assertIsInstance(r["error"], str)
            version = json.loads(s.get("/api/version")[1])
            self.assertGreaterEqual([int(n) for n in version["version"].split(".")], [0, 6, 4])
            self.assertIn(version["memwall"], memwall("--version").stdout)
            self.assertEqual((200, "memwall is running\n"), s.get("/"))

    def test_capabilities_are_those_of_the_template(self):
        template = "{% if tools %}{{ tools }}{% endif %}{% if enable_thinking %}<think>{% endif %}"
        with Server("-m", self.says("Hey.", template=template + CHATML)) as s:
            self.assertEqual(["completion", "tools", "thinking"], s.post(
                "/api/show", {"model": s.model})[1]["capabilities"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
