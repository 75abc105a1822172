#!/usr/bin/env python3
"""Models in the stores of other programs: parts beside the weights, and places."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from chain_model import chain, spell  # noqa: E402
from program import notices  # noqa: E402
from server import Server, user  # noqa: E402
from store_case import SMALL, StoreCase  # noqa: E402
from terminal import Terminal  # noqa: E402

LOST = "Not applied of the parts beside the model's weights: "
SETTINGS = "Ollama's settings for this model apply where you gave none: "


class OllamaParts(StoreCase):
    def run_it(self, *args, **more):
        r = self.memwall("run", "-m", "tuned", "-n", "2", *SMALL, *args, "hi", **more)
        self.assertEqual(0, r.returncode, r.stderr)
        return notices(r.stderr).replace("memwall: ", "", 1).rstrip("\n")

    def test_an_adapter_is_named_in_the_list_and_at_every_start(self):
        self.ollama("tuned", ("adapter", b"GGUF" + bytes(100)))
        self.ollama("plain", ("license", b"MIT"), ("projector", b"GGUF"))
        models = self.listed()
        self.assertEqual("adapter not applied; fits", models["tuned:latest"]["here"])
        self.assertEqual(("adapter", ""), (models["tuned:latest"]["beside"],
                                           models["plain:latest"]["beside"]))
        self.assertEqual("fits", models["plain:latest"]["here"])
        self.assertEqual(LOST + "adapter.", self.run_it())
        self.assertEqual("", self.run_it("-q"))
        for command in ("plan", "inspect"):
            r = self.memwall(command, "-m", "tuned")
            self.assertEqual((0, f"memwall: {LOST}adapter.\n"), (r.returncode, r.stderr))
        t = Terminal("-m", "tuned", *SMALL, home=self.home, cols=120)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("weights: adapter."), t.screen())

    def test_parts_that_cannot_be_applied_are_named(self):
        self.ollama("tuned", ("messages", [{"role": "user", "content": "a"}]),
                    ("template", b"{{ .Prompt }}"), ("future", b"?"))
        self.assertEqual("messages, unknown layer not applied; fits",
                         self.listed()["tuned:latest"]["here"])
        self.assertEqual(LOST + "messages, unknown layer, template (it is not Jinja; the model's "
                         "own format is used).", self.run_it())

    def test_a_model_whose_files_are_gone_or_damaged_is_listed(self):
        self.ollama("tuned", ("license", b"MIT"))
        self.ollama("cut", ("system", b"be brief"))
        manifests = ".ollama/models/manifests/registry.ollama.ai/library/"
        self.put(manifests + "cut/latest", '{"layers": [{"mediaType"')
        m = self.listed()
        self.assertEqual("fits", m["tuned:latest"]["here"])
        self.assertEqual(("not read: its manifest is damaged; fetch it again with Ollama", False),
                         (m["cut:latest"]["here"], m["cut:latest"]["supported"]))
        blobs = self.path(".ollama/models/blobs")
        for name in os.listdir(blobs):
            os.unlink(os.path.join(blobs, name))
        here = self.listed()["tuned:latest"]["here"]
        self.assertRegex(here, "^not read: its weights, blob sha256-[0-9a-f]{12}, are missing; ")
        for name, says in (("tuned", "tuned:latest: its weights, blob "),
                           ("cut:latest", "cut:latest: its manifest is damaged; fetch it again")):
            for command in ("run", "plan", "inspect"):
                r = self.memwall(command, "-m", name)
                self.assertEqual(1, r.returncode)
                self.assertIn(says, r.stderr.splitlines()[0])
        self.copy("here/tuned.gguf")  # one that opens comes first
        self.assertEqual(0, self.memwall("inspect", "-m", "tuned").returncode)

    def test_parameters_are_defaults(self):
        self.ollama("tuned", ("params", {
            "temperature": 0.25, "top_k": 7.0, "top_p": 0.5, "min_p": 0.01, "repeat_penalty": 1.5,
            "repeat_last_n": 33, "seed": 5, "num_ctx": 300, "num_predict": -1,
            "stop": ["<A>", "<B>"], "num_gpu": 99, "use_mmap": True, "mirostat": 2}))
        self.assertEqual(
            SETTINGS + "temp 0.25, top-k 7, top-p 0.5, min-p 0.01, repeat-penalty 1.5, "
            'repeat-last 33, seed 5, ctx 300, stop "<A>", stop "<B>". Not applied: mirostat 2.',
            self.run_it())
        r = self.memwall("plan", "-m", "tuned", "--json")
        self.assertEqual(300, json.loads(r.stdout)["ctx"])

    def test_a_byte_order_mark_is_not_a_part_of_a_text(self):
        mark = b"\xef\xbb\xbf"
        template = ("{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ '>' }}{% endif %}")
        g = chain(self.home, "m", spell(">", "abcdef"), template=template)
        want = None
        for m in b"", mark:
            manifest = self.ollama("tuned", ("params", m + b'{"stop": ["d"],\r\n"top_k": 7}\r\n'),
                                   ("system", m + b"be brief"), model=g.path)
            with open(manifest, "rb") as f:
                text = f.read()
            self.put(manifest, m + text.replace(b",", b",\r\n"))
            r = self.memwall("run", "-m", "tuned", "--json", *SMALL, "hi")
            self.assertEqual(0, r.returncode, r.stderr)
            done = json.loads(r.stdout.splitlines()[-1])
            self.assertEqual("abc", done["text"])
            want = want or (done["n_prompt"], r.stderr)
            self.assertEqual(want, (done["n_prompt"], r.stderr))
        self.assertIn("top-k 7", r.stderr)

    def test_settings_of_the_user_come_first(self):
        self.ollama("tuned", ("params", {"temperature": 0.25, "top_k": 7, "stop": ["x"],
                                         "num_ctx": 300}), ("system", b"be brief"))
        self.assertEqual(SETTINGS + "top-k 7.",
                         self.run_it("--temp", "0", "--stop", "y", "--system", "none",
                                     config="ctx = 256\n"))

    def test_a_system_message_and_stop_texts_reach_the_model(self):
        template = ("{% for m in messages %}{{ m['role'] + m['content'] }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ '>' }}{% endif %}")
        g = chain(self.home, "m", spell(">", "abcdef"), template=template)
        self.ollama("tuned", ("params", {"stop": ["d"]}), ("system", b"be brief"), model=g.path)
        r = self.memwall("run", "-m", "tuned", "--json", *SMALL, "hi")
        self.assertIn('"abc"', r.stdout)
        t = Terminal("-m", "tuned", *SMALL, home=self.home, cols=120)
        self.addCleanup(t.close)
        self.assertTrue(t.sees('"d", system message.'), t.screen())
        t.send("/set system\r")
        self.assertTrue(t.sees('system message is "be brief"'), t.screen())

    def test_stop_texts_of_a_model_that_is_chosen_in_the_list(self):
        self.ollama("tuned", ("params", {"stop": ["d"]}), model=chain(
            self.home, "m", spell("\n", "abcdef", "<|im_end|>")).path)
        t = Terminal("--view", "chat", *SMALL, home=self.home, cwd=self.cwd, cols=120)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("tuned:latest"), t.screen())
        t.send("tuned\r")
        self.assertTrue(t.sees('stop "d".', "/help lists"), t.screen())
        t.send("hi\r")
        self.assertTrue(t.sees("tokens \u00b7"), t.screen())
        self.assertRegex(t.screen(), r"(?m)\babc\b")

    def test_a_running_chat_names_what_it_does_not_take_over(self):
        self.copy("here/first.gguf")
        self.ollama("tuned", ("params", {"temperature": 0.25}), ("adapter", b"GGUF"))
        t = Terminal("-m", "first.gguf", *SMALL, home=self.home, cwd=self.cwd,
                     cols=140)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("/help lists"), t.screen())
        t.send("/model tuned\r")
        self.assertTrue(t.sees("settings for this model, which a running chat does not take",
                               "weights: adapter"), t.screen())

    def test_a_part_of_names_with_the_same_weights_and_other_settings_is_ambiguous(self):
        self.ollama("tuned-a", ("system", b"be brief"), ("params", {"top_k": 7}))
        self.ollama("tuned-b", ("system", b"be brief"), ("params", {"top_k": 7}),
                    ("template", b"{{ . }}"))
        r = self.memwall("plan", "-m", "tuned")
        self.assertEqual(0, r.returncode, r.stderr)
        for layer in ("system", b"be long"), ("params", {"top_k": 8}), ("adapter", b"GGUF"):
            self.ollama("tuned-b", *{"system": b"be brief", "params": {"top_k": 7},
                                     layer[0]: layer[1]}.items())
            r = self.memwall("plan", "-m", "tuned")
            self.assertEqual(2, r.returncode)
            self.assertIn('can be 2 models: "tuned-a:latest", "tuned-b:latest"', r.stderr)
            self.assertEqual(0, self.memwall("plan", "-m", "tuned-b").returncode)

    def test_values_are_checked_like_those_of_the_user(self):
        self.ollama("tuned", ("params", {
            "temperature": -1, "top_k": "many", "top_p": [0.5, 2], "num_ctx": 1e30,
            "stop": ["", "x" * 5000, "a\x1b[2Jb"], "seed": {"a": 1}, "\x1b[31m": 1}))
        err = self.run_it()
        self.assertNotIn("\x1b", err)
        self.assertEqual(1, len(err.splitlines()), err)
        for text in ('temperature "-1", which is not a valid value', 'top_k "many"', 'top_p "2"',
                     "parameters"):
            self.assertIn(text, err)

    def test_hostile_parts_are_named_or_left_out(self):
        for kind, data in (("params", b"{"), ("params", b"[]"), ("params", b"\xff\xfe"),
                           ("params", b'{"a":' * 5000), ("params", bytes(10 ** 6)),
                           ("params", json.dumps({f"p{i}": i for i in range(100)}).encode()),
                           ("system", b"a\0b"), ("system", b"\xff"), ("system", bytes(10 ** 6))):
            self.ollama("tuned", (kind, data))
            err = self.run_it()
            self.assertIn({"params": "parameters", "system": "system message"}[kind], err)
            self.assertEqual(1, len(err.splitlines()), err)
        manifest = ".ollama/models/manifests/registry.ollama.ai/library/tuned/latest"
        with open(self.path(manifest), encoding="utf-8") as f:
            rows = json.load(f)["layers"]
        for layers in ([*rows, {"mediaType": 5}, {}, None, []],
                       [*rows, {"mediaType": "application/vnd.ollama.image.system",
                                "digest": "sha256:../../../../../etc/passwd"}],
                       rows * 200):
            self.put(manifest, json.dumps({"layers": layers}))
            self.run_it()


class OllamaPartsOfAServer(StoreCase):
    CHAT, TEXT, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
    OLLAMA, GENERATE = "/api/chat", "/api/generate"

    def setUp(self):
        super().setUp()
        self.model = chain(self.home, "m", spell("\n", "abcd", "<|im_end|>")).path
        self.ollama("tuned", ("params", {"stop": ["c", "X"], "mirostat": 2}),
                    ("system", b'be "brief"'), ("template", b"{{ .Prompt }}"), model=self.model)

    def server(self):
        return Server("-m", "tuned", *SMALL, home=self.home)

    def ask(self, s, path, **more):
        """Returns the text of the answer and the tokens of the prompt."""
        asks = {"prompt": "hi\n"} if path in (self.TEXT, self.GENERATE) else user()
        status, r = s.post(path, asks | {"stream": False} | more)
        self.assertEqual(200, status, r)
        if path == self.MESSAGES:
            usage = r["usage"]
            return r["content"][0]["text"], (usage["input_tokens"] +
                                             usage["cache_read_input_tokens"])
        if path in (self.OLLAMA, self.GENERATE):
            return (r["response"] if path == self.GENERATE else r["message"]["content"],
                    r["prompt_eval_count"])
        choice = r["choices"][0]
        return (choice["text"] if path == self.TEXT else choice["message"]["content"],
                r["usage"]["prompt_tokens"])

    def test_the_start_names_them(self):
        with self.server() as s:
            self.assertEqual(
                "memwall: " + SETTINGS + 'stop "c", stop "X", system message. Not applied: '
                "mirostat 2, template (it is not Jinja; the model's own format is used).\n",
                notices("".join(s.lines[:-1])))

    def test_a_client_sees_them(self):
        self.ollama("tuned", ("params", {"stop": ["c", 'X"\n'], "temperature": 0.25, "top_k": -1,
                                         "seed": 5, "num_ctx": 300, "num_predict": 7}),
                    ("system", b'be "brief"'), ("template", b"{{ .Prompt }}"), model=self.model)
        with self.server() as s, Server("-m", self.model, "--format", "chatml", "--temp", "0.5",
                                        *SMALL, home=self.home) as plain:
            r = s.post("/api/show", {"model": "tuned"})[1]
            self.assertEqual('be "brief"', r["system"])
            self.assertIn("<|im_start|>", r["template"])
            lines = [(line[:30].rstrip(), line[31:]) for line in r["parameters"].split("\n")]
            values = dict(lines)
            for name, value in (("temperature", "0.25"), ("top_k", "0"), ("seed", "5"),
                                ("num_ctx", "300"), ("num_predict", "7"), ("top_p", "0.95")):
                self.assertEqual(value, values[name])
            self.assertEqual(['"c"', '"X\\"\\n"'], [v for name, v in lines if name == "stop"])
            r = plain.post("/api/show", {"model": plain.model})[1]
            self.assertEqual(set(), {"system", "template"} & set(r))
            self.assertIn(" 0.5\n", r["parameters"])
            self.assertNotIn("seed", r["parameters"])
        self.ollama("tuned", ("system", b"s" * 40000), model=self.model)
        with self.server() as s:  # too long for the page
            r = s.post("/api/show", {"model": "tuned"})[1]
            self.assertNotIn("system", r)
            self.assertIn("<|im_start|>", r["template"])

    def test_a_stop_of_the_request_replaces_those_of_the_model(self):
        with self.server() as s:
            for path in self.CHAT, self.TEXT, self.MESSAGES, self.OLLAMA, self.GENERATE:
                def text(stop, path=path):
                    if path in (self.OLLAMA, self.GENERATE):
                        return self.ask(s, path, options={"stop": stop})[0]
                    field = "stop_sequences" if path == self.MESSAGES else "stop"
                    return self.ask(s, path, **{field: stop})[0]

                self.assertEqual("ab", self.ask(s, path)[0], path)
                self.assertEqual(["ab", "abc", "abcd"], [text(x) for x in (None, ["d"], [])], path)
            status, r = s.post(self.MESSAGES, user(max_tokens=9))
            self.assertEqual((200, "stop_sequence", "c"),
                             (status, r["stop_reason"], r["stop_sequence"]))
            self.assertEqual("ab", self.ask(s, self.GENERATE, raw=True)[0])

    def test_a_system_message_of_the_request_replaces_that_of_the_model(self):
        hi = user()["messages"]

        def system(text, role="system"):
            return {"role": role, "content": text}

        seen = set()
        with self.server() as s, Server("-m", self.model, *SMALL, home=self.home) as plain:
            for path, own in ((self.CHAT, lambda x: {"messages": [system(x), *hi]}),
                              (self.CHAT, lambda x: {"messages": [system(x, "developer"), *hi]}),
                              (self.CHAT, lambda x: {"messages": [*hi, system(x), *hi]}),
                              (self.OLLAMA, lambda x: {"messages": [system(x), *hi]}),
                              (self.GENERATE, lambda x: {"system": x}),
                              (self.MESSAGES, lambda x: {"system": x})):
                def count(server, path=path, **more):
                    return self.ask(server, path, **more)[1]

                self.assertEqual(count(plain, **own("x")), count(s, **own("x")), path)
                if path not in seen:  # the other forms have other messages
                    self.assertEqual(count(plain, **own('be "brief"')), count(s), path)
                seen.add(path)
            self.assertEqual(self.ask(plain, self.TEXT)[1], self.ask(s, self.TEXT)[1])
            for more in {"raw": True}, {"prompt": ""}:
                self.assertEqual(200, s.post(self.GENERATE, {"prompt": "x"} | more)[0])
            r = s.post(self.OLLAMA, {"messages": [], "stream": False})[1]
            self.assertEqual("load", r["done_reason"])


    def test_the_name_is_the_one_that_was_asked_for(self):
        for name in "llama", "zebra":  # the names before and after share the weights
            self.ollama(name, ("system", name.encode()), model=self.model)
        for given in "tuned", "tuned:latest", "TUNED":
            with Server("-m", given, *SMALL, home=self.home) as s:
                self.assertEqual("tuned:latest", s.model)
                for name in "tuned", "tuned:latest", "Tuned":
                    self.assertEqual("ab", self.ask(s, self.OLLAMA, model=name)[0])
                for name in "llama", "zebra:latest":
                    self.assertEqual(404, s.post(self.CHAT, user(model=name))[0])
                tags = json.loads(s.get("/api/tags")[1])["models"]
                self.assertEqual(["tuned:latest"], [m["name"] for m in tags])
        with Server("-m", self.model, *SMALL, home=self.home) as s:
            self.assertEqual("m", s.model)


class AdapterBesideWeights(StoreCase):
    def test_an_adapter_in_the_folder_is_named(self):
        model = self.copy("here/base-F32.gguf")
        self.assertEqual("", self.memwall("inspect", model).stderr)
        for name in ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"):
            adapter = self.put("here/" + name, "{}")
            self.assertEqual("adapter not applied; fits", self.listed()["base:F32"]["here"])
            for path in ("base-F32.gguf", model, "base:F32", self.cwd):
                r = self.memwall("run", "-m", path, "-n", "1", *SMALL, "hi")
                self.assertEqual((0, f"memwall: {LOST}adapter.\n"),
                                 (r.returncode, notices(r.stderr)))
            os.unlink(adapter)

    def test_a_snapshot_with_an_adapter(self):
        self.put(".lmstudio/models/pub/tuned/config.json", "{}")
        self.put(".lmstudio/models/pub/tuned/model.safetensors", "x")
        self.put(".lmstudio/models/pub/tuned/adapter_config.json", "{}")
        self.assertEqual("adapter", self.listed()["pub/tuned"]["beside"])


class Places(StoreCase):
    def names(self, **env):
        return {m["name"]: m["where"] for m in self.listed(**env).values()
                if m["where"] not in ("guide", "recent")}

    def test_folders_of_lm_studio(self):
        self.copy(".lmstudio/models/pub/m/plain-F32.gguf")
        self.copy(".cache/lm-studio/models/pub/m/old-F32.gguf")
        self.copy("disk/lm/pub/m/moved-F32.gguf")
        self.copy("disk/older/pub/m/older-F32.gguf")
        self.copy("other/models/pub/m/pointed-F32.gguf")
        self.copy("other/set/pub/m/both-F32.gguf")
        self.put(".cache/lm-studio/settings.json", json.dumps({"downloadsFolder": "~/disk/older"}))
        self.put("other/settings.json", json.dumps({"downloadsFolder": self.path("other/set/")}))
        for mark, end in (("", ""), ("", "\n"), ("", "\r\n"), ("", "/"), ("\ufeff", "\r\n")):
            self.put(".lmstudio-home-pointer", mark + self.path("other") + end)
            self.put(".lmstudio/settings.json", mark + json.dumps(
                {"a": {"downloadsFolder": "/wrong"}, "downloadsFolder": self.path("disk/lm")},
                indent=1).replace("\n", end.strip("/") or "\n"))
            self.assertEqual({name + ":F32": "lm-studio" for name in (
                "plain", "old", "moved", "older", "pointed", "both")}, self.names())

    def test_settings_that_are_not_settings_are_passed_over(self):
        self.copy(".lmstudio/models/pub/m/plain-F32.gguf")
        self.copy("here/disk/relative-F32.gguf")
        want = {"plain:F32": "lm-studio", "relative:F32": "folder"}
        for text in ("", "{", "[]", '{"downloadsFolder": 5}', '{"downloadsFolder": ""}',
                     '{"downloadsFolder": "disk"}', '{"downloadsFolder": "/a\\u0000b"}',
                     json.dumps({"downloadsFolder": "/" + "x" * 5000}), "\0" * 10 ** 6,
                     '{"downloadsFolder":' * 5000):
            self.put(".lmstudio/settings.json", text)
            self.put(".lmstudio-home-pointer", text)
            self.assertEqual(want, self.names(), text[:40])
        for name in (".lmstudio/settings.json", ".lmstudio-home-pointer"):
            os.unlink(self.path(name))
            os.mkfifo(self.path(name))
        self.assertEqual(want, self.names())

    def test_the_folder_of_ollamas_service(self):
        self.ollama("found", store="big disk/models")
        for name in ("ollama.service", "ollama.service.d/override.conf"):
            for line in ('Environment="OLLAMA_MODELS=%s"', "Environment='OLLAMA_MODELS=%s'",
                         '  Environment=OLLAMA_MODELS="%s" A=b',
                         'Environment="OLLAMA_HOST=0.0.0.0" "OLLAMA_MODELS=%s"'):
                unit = self.put(".config/systemd/user/" + name, "[Service]\n# a comment\n" +
                                line % self.path("big disk/models") + "\nRestart=always\n")
                self.assertEqual({"found:latest": "ollama"}, self.names(), line)
            self.put(unit, "\ufeff" + line % self.path("big disk/models") + "\r\n")
            self.assertEqual({"found:latest": "ollama"}, self.names())
            os.unlink(unit)
        moved = self.put("config/systemd/user/ollama.service",
                         f"Environment=OLLAMA_MODELS={self.path('nothing')}")
        self.assertEqual({}, self.names(XDG_CONFIG_HOME=self.path("config")))
        os.symlink(self.path("big disk"), self.path("nothing"))
        with open(moved, "a", encoding="utf-8") as f:
            f.write("/models")
        self.assertEqual({"found:latest": "ollama"},
                         self.names(XDG_CONFIG_HOME=self.path("config")))
        with open(moved, "w", encoding="utf-8") as f:
            f.write(f"#Environment=OLLAMA_MODELS={self.path('nothing')}/models")
        self.assertEqual({}, self.names(XDG_CONFIG_HOME=self.path("config")))

    def test_a_folder_is_added_by_a_link(self):
        self.copy("disk/models/a/b/linked-F32.gguf")
        os.makedirs(self.path(".local/share/memwall/models"))
        os.symlink(self.path("disk/models"), self.path(".local/share/memwall/models/disk"))
        self.assertEqual({"linked:F32": "models"}, self.names())


if __name__ == "__main__":
    unittest.main(verbosity=2)
