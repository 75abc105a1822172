#!/usr/bin/env python3
"""memwall pull: the cache, tokens, choices, and predictions from headers."""
import fcntl
import hashlib
import json
import os
import pty
import re
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hub import git_digest  # noqa: E402
from program import MEMWALL, MODELS, TIMEOUT_S, read_terminal  # noqa: E402
from pull_case import Case, content, noise, tokenizer  # noqa: E402
import tiny_model  # noqa: E402



class Layout(Case):
    def test_a_file_is_where_the_program_of_the_hub_puts_it(self):
        data = content(os.path.join(MODELS, "llama-tiny.gguf"))
        repo = self.hub.add("org/name", {"sub/llama-BF16.gguf": data, "README.md": b"x"})
        path = self.fetched(data, "org/name")
        top = os.path.join(self.cache, "models--org--name")
        digest = hashlib.sha256(data).hexdigest()
        self.assertEqual(os.path.join(top, "snapshots", repo.commit, "sub/llama-BF16.gguf"), path)
        self.assertEqual("../../../blobs/" + digest, os.readlink(path))
        self.assertEqual(repo.commit.encode(), content(os.path.join(top, "refs", "main")))
        self.assertEqual([digest], os.listdir(os.path.join(top, "blobs")))
        self.assertEqual([digest + ".lock"],
                         os.listdir(os.path.join(self.cache, ".locks", "models--org--name")))

    def test_a_complete_file_is_not_fetched_again(self):
        data = noise(300000)
        self.hub.add("org/name", {"a-Q4_0.gguf": data})
        path = self.fetched(data, "org/name", "--yes")
        before = self.hub.sent("a-Q4_0.gguf")
        os.unlink(path)
        self.assertEqual(path, self.fetched(data, "org/name", "--yes"))
        self.assertLessEqual(self.hub.sent("a-Q4_0.gguf") - before, 256 << 10)

    def test_a_commit_writes_no_ref(self):
        data = noise(300000)
        repo = self.hub.add("org/name", {"a-Q4_0.gguf": data})
        self.fetched(data, "org/name", "--yes", "--revision", repo.commit)
        self.assertFalse(os.path.exists(os.path.join(self.cache, "models--org--name", "refs")))

    def test_variables_name_other_folders(self):
        data = noise(20000)
        self.hub.add("org/name", {"a-Q4_0.gguf": data})
        for variable, below in (("HF_HOME", "hub/"), ("HF_HUB_CACHE", ""),
                                ("XDG_CACHE_HOME", "huggingface/hub/")):
            folder = os.path.join(self.folder.name, variable)
            path = self.fetched(data, "org/name", "--yes", env={variable: folder})
            self.assertTrue(path.startswith(f"{folder}/{below}models--org--name/"), path)

    def test_a_split_set_is_fetched_completely(self):
        names = [f"big/m-Q8_0-{i:05}-of-00003.gguf" for i in (1, 2, 3)]
        files = {name: noise(30000, seed) for seed, name in enumerate(names)}
        self.hub.add("org/name", files)
        path = self.fetched(files[names[0]], "org/name:q8_0", "--yes")
        self.assertTrue(path.endswith(names[0]))
        for name in names:
            self.assertEqual(files[name], content(path.replace(names[0], name)))

    def test_a_set_without_a_part_is_left_out(self):
        self.hub.add("org/name", {"m-Q8_0-00001-of-00003.gguf": noise(30000),
                                  "m-Q8_0-00003-of-00003.gguf": noise(30000),
                                  "n-Q8_0-00001-of-00000.gguf": noise(30000),
                                  "n-Q8_0-00001-of-99999.gguf": noise(30000),
                                  "n-Q5_0-00001-of-0000+.gguf": noise(30000),
                                  "m-Q4_0.gguf": noise(20000)})
        listed = self.listed("org/name")
        self.assertEqual(["Q4_0", ""], [m["label"] for m in listed["models"]])
        self.assertEqual(3, listed["sets_left_out"])

    def test_a_snapshot_is_fetched_without_what_it_does_not_need(self):
        folder = tiny_model.Model().snapshot(os.path.join(self.folder.name, "made"))
        files = {name: content(os.path.join(folder, name)) for name in os.listdir(folder)}
        files["tokenizer.json"] = noise(50000)
        self.hub.add("org/name", {**files, "pytorch_model.bin": noise(90000), "README.md": b"x",
                                  "consolidated.safetensors": noise(90000)})
        model = self.listed("org/name")["models"][0]
        self.assertEqual(("safetensors", "llama", True),
                         (model["label"], model["arch"], model["supported"]))
        self.assertEqual(0, self.hub.sent("tokenizer.json"))
        r = self.pull("org/name:safetensors")
        self.assertEqual(0, r.returncode, r.stderr)
        path = r.stdout.rstrip("\n")
        self.assertEqual(sorted(files), sorted(os.listdir(path)))
        for name, data in files.items():
            self.assertEqual(data, content(os.path.join(path, name)))

    def test_small_files_are_checked_by_their_hash_in_git(self):
        folder = tiny_model.Model().snapshot(os.path.join(self.folder.name, "made"))
        files = {name: content(os.path.join(folder, name)) for name in os.listdir(folder)}
        repo = self.hub.add("org/name", {**files, "tokenizer.json": tokenizer()})

        def lie(answer):
            for row in answer["siblings"]:
                if row["rfilename"] == "config.json":
                    row["blobId"] = git_digest(b"other")
            return answer
        repo.change = lie
        self.refused(self.pull("org/name"), "config.json", "git hash")


class Token(Case):
    def setUp(self):
        super().setUp()
        self.data = noise(300000)
        self.repo = self.hub.add("org/name", {"a-Q4_0.gguf": self.data})

    def tokens(self, server):
        return {headers.get("Authorization") for name, _, headers in self.hub.requests
                if name == server}

    def test_it_is_sent_to_the_hub_and_not_to_its_redirections(self):
        self.repo.private = True
        self.fetched(self.data, "org/name", "--yes", env={"HF_TOKEN": "hf_good"})
        self.assertEqual({"Bearer hf_good"}, self.tokens("hub"))
        self.assertEqual({None}, self.tokens("cdn"))
        self.assertIn("cdn", {name for name, _, _ in self.hub.requests})

    def test_it_is_read_from_its_file(self):
        self.repo.private = True
        os.makedirs(os.path.dirname(self.cache))
        with open(os.path.join(os.path.dirname(self.cache), "token"), "w") as f:
            f.write("hf_good\n")
        self.fetched(self.data, "org/name", "--yes")

    def test_a_token_with_a_newline_is_refused(self):
        self.refused(self.pull("org/name", env={"HF_TOKEN": "a\r\nX-Evil: 1"}), "HF_TOKEN")
        self.assertEqual([], self.hub.requests)

    def test_white_space_around_it_is_dropped(self):
        self.repo.private = True
        for i, value in enumerate(("hf_good\n", "hf_good\r\n", " hf_good\t", "\ufeffhf_good",
                                   "\nhf_good \r\n\n")):
            self.fetched(self.data, "org/name", "--yes", env={"HF_TOKEN": value})
            token = os.path.join(self.folder.name, f"token{i}")
            with open(token, "w", newline="") as f:
                f.write(value)
            self.fetched(self.data, "org/name", "--yes", env={"HF_TOKEN_PATH": token + "\r\n"})
        self.assertEqual({"Bearer hf_good"}, self.tokens("hub"))

    def test_a_private_repository_looks_like_a_missing_one(self):
        self.repo.private = True
        self.refused(self.pull("org/name"), "org/name", "private", "HF_TOKEN")
        self.refused(self.pull("org/none"), "no repository org/none")
        self.refused(self.pull("org/name", env={"HF_TOKEN": "hf_bad"}), "what the token may read")

    def test_a_gated_repository_says_where_to_ask(self):
        self.repo.gated = True
        self.refused(self.pull("org/name", "--yes"), "gated", self.hub.url + "/org/name",
                     "HF_TOKEN")

    def test_a_gated_repository_says_so_although_only_headers_are_read(self):
        for files in ({"config.json": b"{}", "x.safetensors": noise(20000),
                       "model.safetensors.index.json": b'{"weight_map":{"a":"x.safetensors"}}'},
                      {"a-imatrix.gguf": noise(20000)}):
            self.hub.add("org/gated", files).gated = True
            self.refused(self.pull("org/gated", "--list"), "gated", "/org/gated", "HF_TOKEN")
        self.repo.gated = True
        self.assertIn("unknown: org/name is gated", self.pull("org/name", "--list").stdout)

    def test_a_missing_revision_is_named(self):
        self.refused(self.pull("org/name", "--revision", "v9"), '"v9"', "--revision")


class Variables(Case):
    """Variables as secrets of containers, Windows and files without a shell write them."""

    def setUp(self):
        super().setUp()
        self.data = noise(20000)
        self.hub.add("org/name", {"a-Q4_0.gguf": self.data})

    def test_it_is_dropped(self):
        for end in ("\n", "\r\n", " ", "\t\r"):
            self.fetched(self.data, "org/name", "--yes",
                         env={"HF_ENDPOINT": " " + self.hub.url + "/" + end})
            for variable, below in (("HF_HOME", "hub/"), ("HF_HUB_CACHE", ""),
                                    ("XDG_CACHE_HOME", "huggingface/hub/")):
                folder = os.path.join(self.folder.name, variable)
                path = self.fetched(self.data, "org/name", "--yes", env={variable: folder + end})
                self.assertTrue(path.startswith(f"{folder}/{below}models--org--name/"), path)
            self.assertEqual([], [n for n in os.listdir(self.folder.name) if n != n.strip()])

    def test_characters_that_cannot_be_seen_are_dropped(self):
        self.hub.repos["org/name"].private = True
        url = self.hub.url
        self.fetched(self.data, "org/name", "--yes", env={
            "HF_ENDPOINT": f"\u200b{url[:10]}\u2060{url[10:]}\ufeff", "HF_TOKEN": "hf_\u200bgood",
            "HF_HOME": f"\u200b{self.folder.name}/a\u200b"})
        self.assertIn("a", os.listdir(self.folder.name))
        for name, value, note in (("HF_ENDPOINT", url.replace("/", "\u2215"), "U+2215"),
                                  ("SSL_CERT_FILE", "/a\u200bb", "U+200B is invisible")):
            self.refused(self.pull("org/name", env={name: value}), name, note)

    def test_the_home_folder_and_variables_are_expanded(self):
        home = self.folder.name
        for i, begin in enumerate(("~", "$HOME", "${HOME}", "$BASE")):
            for variable, below in (("HF_HOME", "hub/"), ("HF_HUB_CACHE", ""),
                                    ("HUGGINGFACE_HUB_CACHE", ""),
                                    ("XDG_CACHE_HOME", "huggingface/hub/")):
                path = self.fetched(self.data, "org/name", "--yes",
                                    env={variable: f"{begin}/{i}{variable}", "BASE": home})
                self.assertTrue(path.startswith(f"{home}/{i}{variable}/{below}models--"), path)

    def test_a_variable_that_is_not_set_is_named(self):
        for variable in ("HF_HOME", "HF_HUB_CACHE"):
            r = self.pull("org/name", env={variable: "$MISSING/x"}, cwd=self.folder.name)
            self.refused(r, "$MISSING/x", "HF_HOME", "not set")
        self.assertEqual([], [n for n in os.listdir(self.folder.name) if "$" in n])

    def test_stores_and_tokens_are_found_in_the_home_folder(self):
        self.hub.repos["org/name"].private = True
        with open(os.path.join(self.folder.name, "token"), "w") as f:
            f.write("hf_good")
        self.fetched(self.data, "org/name", "--yes", env={"HF_TOKEN_PATH": "~/token"})
        os.mkdir(os.path.join(self.folder.name, "llama"))
        with open(os.path.join(self.folder.name, "llama", "x-F16.gguf"), "wb") as f:
            f.write(content(os.path.join(MODELS, "llama-tiny.gguf")))
        r = subprocess.run([MEMWALL, "inspect", "--tensors", "x:F16"], capture_output=True,
                           text=True, env=self.environment(LLAMA_CACHE="$HOME/llama"),
                           timeout=TIMEOUT_S)
        self.assertEqual(0, r.returncode, r.stderr)

    def test_it_is_dropped_for_proxies_and_stores_too(self):
        self.hub.redirects = False
        self.fetched(self.data, "org/name", "--yes", env={
            "HF_ENDPOINT": "http://hub.invalid", "http_proxy": self.hub.url + "\r\n"})
        models = os.path.join(self.folder.name, "llama")
        os.mkdir(models)
        with open(os.path.join(models, "x-F16.gguf"), "wb") as f:
            f.write(content(os.path.join(MODELS, "llama-tiny.gguf")))
        r = subprocess.run([MEMWALL, "inspect", "--tensors", "x:F16"], capture_output=True,
                           text=True, env=self.environment(LLAMA_CACHE=models + "\n"),
                           timeout=TIMEOUT_S)
        self.assertEqual(0, r.returncode, r.stderr)


class Address(Case):
    """Addresses and commands that people paste."""

    def setUp(self):
        super().setUp()
        self.data = content(os.path.join(MODELS, "llama-tiny.gguf"))
        self.other = noise(20000)
        self.repo = self.hub.add("org/name", {"x y-Q8_0.gguf": self.data,
                                              "BF16/z.gguf": self.other, "b-Q4_0.gguf": self.other})

    def test_they_choose_repository_revision_and_file(self):
        for text in ("https://huggingface.co/org/name/blob/main/x%20y-Q8_0.gguf",
                     "https://huggingface.co/org/name/resolve/{0}/x%20y-Q8_0.gguf?download=true",
                     " hf.co/org/name:Q8_0\n", "hf://org/name@{0}/x y-Q8_0.gguf",
                     "ollama run hf.co/org/name:q8_0",
                     self.hub.url + "/org/name?show_file_info=x%20y-Q8_0.gguf"):
            self.fetched(self.data, text.format(self.repo.commit))
        self.fetched(self.other, "https://huggingface.co/org/name/tree/main/BF16", "--yes")
        self.fetched(self.other, "hf", "download", "org/name", "b-Q4_0.gguf", "--yes")
        self.refused(self.pull("org/name", "x", "z" * 5000), "unexpected argument", code=2)

    def test_characters_that_cannot_be_seen_are_left_out(self):
        for text in ("org/name:Q8_0\u200b", "\u200borg/name:Q8_0", "org/na\u2060me:Q8_0",
                     "\ufeffhttps://huggingface.co/org/name/blob/main/x%20y-Q8_0.gguf\u00ad"):
            self.fetched(self.data, text)
        self.fetched(self.data, "org/name:Q8_0", "--revision", "main\u200b")
        r = self.pull("org\uff0fname")
        self.refused(r, "U+FF0F looks like '/'", code=2)

    def test_the_example_names_the_repository(self):
        r = self.pull("https://huggingface.co/org/name/tree/main")
        self.refused(r, "for example org/name:", code=2)

    def test_a_file_of_a_snapshot_chooses_the_snapshot(self):
        folder = tiny_model.Model().snapshot(os.path.join(self.folder.name, "made"))
        self.hub.add("org/snap", {"tokenizer.json": tokenizer(), "a-Q4_0.gguf": self.data} | {
            name: content(os.path.join(folder, name)) for name in os.listdir(folder)})
        address = "https://huggingface.co/org/snap/blob/main/model.safetensors"
        r = self.pull(address)
        self.assertEqual(0, r.returncode, r.stderr)
        self.opens(address)

    def opens(self, name, code=0):
        r = subprocess.run([MEMWALL, "inspect", "--tensors", "-m", name], capture_output=True,
                           text=True, env=self.environment(), timeout=TIMEOUT_S)
        self.assertEqual(code, r.returncode, r.stderr)
        return r.stderr

    def test_they_name_models_that_were_fetched(self):
        for address in ("https://huggingface.co/org/name/blob/main/x%20y-Q8_0.gguf",
                        "hf.co/org/name/blob/main/x%20y-Q8_0.gguf", "hf.co/org/name:Q8_0"):
            if address.startswith("https"):
                self.assertIn('"memwall pull org/name:x y-Q8_0.gguf" fetches one',
                              self.opens(address, 1))
                self.fetched(self.data, address)
            self.opens(address)

    def test_another_host_is_named(self):
        for address in ("https://example.com/a/x", "https://modelscope.cn/models/org/name"):
            self.refused(self.pull(address), "is not the hub", "give ORG/NAME", code=2)
        self.assertEqual([], self.hub.requests)

    def test_a_command_of_several_words_is_read(self):
        self.fetched(self.data, "lms", "get", "org/name@q8_0")
        self.fetched(self.data, "[the", "model](https://huggingface.co/org/name:Q8_0).")

    def test_a_name_of_ollamas_library_says_how_to_fetch_it(self):
        self.refused(self.pull("llama3.2:1b"), '"ollama pull llama3.2:1b"', code=2)
        self.assertEqual([], self.hub.requests)
        self.refused(self.pull("gemma3"), '"ollama pull gemma3"')
        self.refused(self.pull("gemma3:q8_0"), '"ollama pull gemma3:q8_0"')
        for name in ("gemma3", "https://ollama.com/library/gemma3"):
            self.assertIn('"ollama pull gemma3" fetches one', self.opens(name, 1))
        for name in ("my model", "x.gguf", "./gemma3"):
            self.assertNotIn("ollama", self.opens(name, 1))

    def test_a_path_of_a_file_that_was_fetched_opens_it(self):
        self.hub.add("org/two", {"a/x-Q8_0.gguf": self.data, "b-Q4_0.gguf": self.other})
        self.fetched(self.data, "org/two/a/x-Q8_0.gguf")
        self.opens("org/two/a/x-Q8_0.gguf")
        self.opens("org/two/b-Q4_0.gguf", 1)


class Proxy(Case):
    def test_requests_go_through_a_proxy(self):
        data = noise(30000)
        self.hub.add("org/name", {"a-Q4_0.gguf": data})
        self.hub.redirects = False
        self.fetched(data, "org/name", "--yes",
                     env={"HF_ENDPOINT": "http://hub.invalid", "http_proxy": self.hub.url})
        for path in self.hub.paths():
            self.assertTrue(path.startswith("http://hub.invalid/"), path)


class Choice(Case):
    def setUp(self):
        super().setUp()
        self.q4 = content(os.path.join(MODELS, "gemma4-tiny-q4_0.gguf"))
        self.bf = content(os.path.join(MODELS, "llama-tiny.gguf"))
        self.hub.add("org/name", {"a-Q4_0.gguf": self.q4, "a-BF16.gguf": self.bf,
                                  "mmproj-F16.gguf": noise(20000), "README.md": b"x"})

    def test_without_a_terminal_the_models_are_listed_and_none_is_fetched(self):
        r = self.pull("org/name")
        self.refused(r, "Q4_0", "BF16", "fits", "there are several models", code=2)
        self.assertNotIn("mmproj", r.stderr)
        self.assertEqual([], [n for n in self.hub.paths() if "README" in n])
        self.assertFalse(os.path.exists(self.blob("org/name", self.q4)))

    def test_a_type_and_a_file_choose(self):
        for choice in ("Q4_0", "q4_0", "a-Q4_0.gguf", "a-Q4_0"):
            self.fetched(self.q4, "org/name:" + choice)
        self.fetched(self.bf, self.hub.url + "/org/name:bf16")

    def test_a_mixture_of_types_is_found_without_its_mark(self):
        self.hub.add("org/ud", {"a-UD-Q4_K_XL.gguf": self.q4, "a-Q8_0.gguf": self.bf})
        self.fetched(self.q4, "org/ud:Q4_K_XL")
        self.fetched(self.q4, "org/ud:UD-Q4_K_XL")

    def test_the_name_that_is_shown_opens_the_model(self):
        self.hub.add("org/two", {"x/a-Q4_0.gguf": self.q4, "b-Q4_0.gguf": self.bf,
                                 "plain.gguf": self.bf + bytes(32)})
        folder = tiny_model.Model().snapshot(os.path.join(self.folder.name, "made"))
        self.hub.add("org/snap", {"tokenizer.json": tokenizer()} | {
            name: content(os.path.join(folder, name)) for name in os.listdir(folder)})
        for name in ("org/name:Q4_0", "org/two:x/a-Q4_0.gguf", "org/two:b-Q4_0",
                     "org/two:plain", "org/snap"):
            r = self.pull(name)
            self.assertEqual(0, r.returncode, r.stderr)
            shown = re.search(r"memwall -m (\S+)", r.stderr).group(1)
            path = r.stdout.rstrip("\n")
            names = [subprocess.run([MEMWALL, "inspect", "--tensors", x], capture_output=True,
                                    text=True, env=self.environment(), timeout=TIMEOUT_S)
                     for x in (path, shown)]
            self.assertEqual([0, 0], [n.returncode for n in names], (shown, names[1].stderr))
            self.assertEqual(names[0].stdout, names[1].stdout)

    def test_a_name_that_is_shown_is_safe_for_the_shell(self):
        for i, name in enumerate(("a b", "$(touch evil)", "it's `x`", "a;touch evil", "*")):
            self.hub.add(f"org/n{i}", {name + ".gguf": self.bf})
            r = self.pull(f"org/n{i}")
            shown = re.search(r"memwall -m (.*)\n", r.stderr).group(1)
            words = subprocess.run(["sh", "-c", f"printf '%s\\n' {shown}"], capture_output=True,
                                   text=True, cwd=self.folder.name, timeout=TIMEOUT_S).stdout
            self.assertEqual(f"org/n{i}:{name}.gguf\n", words)
        self.assertNotIn("evil", os.listdir(self.folder.name))

    def test_an_unknown_type_lists_the_available_ones(self):
        self.refused(self.pull("org/name:Q5_K_M"), '"Q5_K_M"', "BF16", code=2)

    def test_two_files_of_a_type_need_a_file(self):
        self.hub.add("org/two", {"a-Q4_0.gguf": self.q4, "b-Q4_0.gguf": self.q4})
        self.refused(self.pull("org/two:Q4_0"), "2 models", code=2)

    def test_yes_takes_the_largest_that_fits(self):
        self.fetched(self.q4, "org/name", "--yes")

    def test_a_model_that_does_not_fit_is_fetched_only_on_request(self):
        self.refused(self.pull("org/name:Q4_0", "--memory", "20M"), "too large", "--yes", code=3)
        self.fetched(self.q4, "org/name:Q4_0", "--memory", "20M", "--yes")

    def test_a_file_that_is_not_a_model_is_fetched_only_on_request(self):
        self.hub.add("org/noise", {"a-Q4_0.gguf": noise(300000)})
        self.refused(self.pull("org/noise"), "is not a GGUF file", "--yes")

    def test_a_repository_without_models_says_so(self):
        self.hub.add("org/none", {"README.md": b"x", "model.bin": noise(20000)})
        self.refused(self.pull("org/none"), "org/none", "GGUF")

    def test_in_a_terminal_a_number_chooses(self):
        for answer, data in ((b"1\n", self.bf), (b"9\nx\nBF16\n", self.bf), (b"\n", self.q4)):
            main, side = pty.openpty()
            p = self.start("org/name", stdin=side, stderr=side)
            os.close(side)
            os.write(main, answer)
            out, _ = p.communicate(timeout=TIMEOUT_S)
            shown = read_terminal(main)
            self.assertEqual(0, p.returncode, shown)
            self.assertIn(b"Which one? [2]", shown)
            self.assertIn(b"*  2  Q4_0", shown)
            self.assertTrue(content(out.rstrip("\n")) == data)

    def test_the_prediction_is_that_of_plan(self):
        for model in self.listed("org/name", "--memory", "80M", "--ctx", "2k")["models"]:
            self.assertGreater(model["decode_tps"], 0)
            path = self.pull("org/name:" + model["label"]).stdout.rstrip("\n")
            r = subprocess.run([MEMWALL, "plan", path, "--memory", "80M", "--ctx", "2k",
                                "--json", "--blas", "never"], capture_output=True, text=True,
                               env=self.environment(), timeout=TIMEOUT_S)
            plan = json.loads(r.stdout)
            self.assertEqual(os.path.getsize(path), model["bytes"])
            self.assertEqual(plan["budget_bytes"], model["budget_bytes"])
            self.assertEqual(plan["streamed_bytes"], model["streamed_bytes"])


class Headers(Case):
    """Models of some MB whose vocabulary is most of the header."""

    def model(self, seed, more_keys=(), n_token=60000):
        m = tiny_model.Model(seed=seed)
        keys = m.keys()
        keys.update(more_keys)
        keys["names.of.a.test"] = [f"token number {i}" for i in range(n_token)]
        keys["last.key"] = "x" * (100 * seed)
        path = os.path.join(self.folder.name, "made.gguf")
        tiny_model.write_gguf(path, keys, m.gguf_tensors())
        return content(path) + bytes(8 << 20)

    def test_only_headers_are_read_and_the_vocabulary_once(self):
        files = {f"a-{t}.gguf": self.model(i + 1)
                 for i, t in enumerate(("Q2_K", "Q4_0", "Q8_0"))}
        header = len(files["a-Q2_K.gguf"]) - (8 << 20)
        self.hub.add("org/name", files)
        models = self.listed("org/name")["models"]
        self.assertEqual([True] * 3, [m.get("supported") for m in models], models)
        sent = sorted(self.hub.sent(name) for name in files)
        self.assertLess(sent[2], header + (5 << 20))
        self.assertLess(sent[1], 200 << 10)
        for name, data in files.items():
            self.assertLess(self.hub.sent(name), len(data))
        self.assertEqual([], os.listdir(self.temp))

    def test_folders_of_killed_processes_are_removed(self):
        def folder(name):
            path = os.path.join(self.temp, name)
            os.mkdir(path)
            content_of = os.path.join(path, "a.gguf")
            with open(content_of, "wb") as f:
                f.write(b"GGUF")
            return path
        left, used = folder("memwall-pull-killed"), folder("memwall-pull-in.use")
        others = folder("memwall-tries")
        fd = os.open(used, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.hub.add("org/name", {"a-Q8_0.gguf": self.model(1)})
        self.assertTrue(self.listed("org/name")["models"][0]["supported"])
        self.assertFalse(os.path.exists(left))
        self.assertEqual({os.path.basename(used), os.path.basename(others)},
                         set(os.listdir(self.temp)))
        self.assertEqual(["a.gguf"], os.listdir(used))

    def test_a_split_set_is_described_from_all_its_headers(self):
        made = tiny_model.Model()
        tensors = list(made.gguf_tensors().items())
        files, cut = {}, [0, 0, 9, len(tensors)]  # the first file has no tensors
        for i in range(3):
            keys = {"split.no": i, "split.count": 3, "split.tensors.count": len(tensors)}
            path = os.path.join(self.folder.name, "part.gguf")
            tiny_model.write_gguf(path, {**(made.keys() if i == 0 else {}), **keys},
                                  dict(tensors[cut[i]:cut[i + 1]]))
            files[f"sub/m-F32-{i + 1:05}-of-00003.gguf"] = content(path)
        self.hub.add("org/name", files)
        model, = self.listed("org/name")["models"]
        self.assertEqual(("F32", 3, True, "llama"),
                         (model["label"], model["files"], model.get("supported"),
                          model.get("arch")), model)
        self.assertEqual(sum(map(len, files.values())), model["bytes"])
        r = self.pull("org/name:f32")
        self.assertEqual(0, r.returncode, r.stderr)
        r = subprocess.run([MEMWALL, "plan", r.stdout.rstrip("\n"), "--json"],
                           capture_output=True, text=True, env=self.environment(),
                           timeout=TIMEOUT_S)
        self.assertEqual(0, r.returncode, r.stderr)

    def test_another_model_in_the_repository_has_its_own_header(self):
        files = {"a-Q4_0.gguf": self.model(1), "b-Q8_0.gguf": self.model(2, n_token=90000)}
        self.hub.add("org/name", files)
        models = self.listed("org/name")["models"]
        self.assertEqual([True, True], [m.get("supported") for m in models], models)

    def test_a_server_without_ranges_leaves_the_speed_unknown(self):
        self.hub.ranges = False
        self.hub.add("org/name", {"a-Q4_0.gguf": self.model(1)})
        r = self.pull("org/name", "--list")
        self.assertEqual(0, r.returncode)
        self.assertIn("unknown", r.stdout)

    def test_a_header_without_end_is_given_up(self):
        endless = b"GGUF" + struct.pack("<IQQ", 3, 1 << 16, 1 << 16) + struct.pack("<Q", 1 << 60)
        strings = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + tiny_model.pack_text("k")
        strings += struct.pack("<IIQ", 9, 8, 1 << 62) + bytes(8 << 20)
        self.hub.add("org/name", {"a-Q4_0.gguf": endless + bytes(1 << 20),
                                  "b-Q8_0.gguf": strings})
        models = self.listed("org/name")["models"]
        self.assertEqual([False, False], [m["supported"] for m in models])


if __name__ == "__main__":
    unittest.main(verbosity=2)
