#!/usr/bin/env python3
"""Models found on this machine: `memwall list`, and names for -m."""
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import termios
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import tiny_model  # noqa: E402
from program import (MEMWALL, MODELS, SRCDIR, TIMEOUT_S, MeasuredHome, budget,  # noqa: E402
                     environment, read_terminal)
from terminal import Terminal  # noqa: E402
from tokenizer_json import byte_letters, byte_level  # noqa: E402

DIGEST = "7" * 64
GUIDE = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
NO_MODEL = 'no model given. Use -m FILE, or run "memwall list" to see the models on this machine'


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


class Home(unittest.TestCase):
    program = MEMWALL

    def setUp(self):
        holder = MeasuredHome()
        self.addCleanup(holder.cleanup)
        self.home = holder.name
        self.cwd = os.path.join(self.home, "here")
        os.makedirs(self.cwd)

    def memwall(self, *args, prompt="", **more):
        env = environment(self.home)
        for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS",
                     "LLAMA_CACHE"):
            env.pop(name, None)
        env.update(more)
        return subprocess.run([self.program, *args], env=env, cwd=self.cwd, capture_output=True,
                              text=True, input=prompt, timeout=TIMEOUT_S)

    def copy(self, model, to):
        to = os.path.join(self.home, to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(os.path.join(MODELS, model), to)

    def fill(self):
        """A model for each variable and default folder."""
        self.copy("llama-tiny.gguf", ".local/share/memwall/models/own-F32.gguf")
        self.copy("gemma4-tiny-q4_0.gguf",
                  ".cache/huggingface/hub/models--org--gemma/snapshots/" + "a" * 40 +
                  "/gemma-Q4_0.gguf")
        self.copy("llama-tiny.gguf", f".ollama/models/blobs/sha256-{DIGEST}")
        put(os.path.join(self.home,
                         ".ollama/models/manifests/registry.ollama.ai/library/tiny/1b"),
            json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model",
                                    "digest": "sha256:" + DIGEST}]}))
        self.copy("llama-tiny.gguf", ".lmstudio/models/a/b/studio-F32.gguf")
        self.copy("llama-tiny.gguf", ".cache/llama.cpp/org_cached-F32.gguf")
        self.copy("llama-tiny.gguf", "here/here.gguf")

    def listed(self, *args, **more):
        r = self.memwall("list", "--json", *args, **more)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return json.loads(r.stdout)

    def names(self, **more):
        r = self.memwall("list", "--names", **more)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return [n for n in r.stdout.split("\n") if n not in ("", "memwall-guide")]


class OneFigure(Home):
    """The list and the picker, which open no model, predict what a plan predicts."""

    def plan(self, *options):
        r = self.memwall("plan", "-m", "guide.gguf", "--json", *options)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return json.loads(r.stdout)

    def compare(self):
        for memory in (budget(56), budget(90)):
            for kv in ("f32", "f16", "q8_0", "q4_0"):
                for ctx in ("64", "900"):
                    options = ("-b", memory, "--kv", kv, "-c", ctx)
                    plan = self.plan(*options)
                    [model] = [m for m in self.listed(*options)
                               if os.path.basename(m["path"]) == "guide.gguf"]
                    self.assertGreater(plan["decode_tps"], 0)
                    self.assertEqual(plan["decode_tps"], model["decode_tps"], options)
                    self.assertEqual(plan["budget_bytes"], model["budget_bytes"], options)

    def configure(self, text):
        # OpenBLAS takes memory only once it is loaded, which no list does.
        put(os.path.join(self.home, ".config/memwall/config"), "blas = never\n" + text)

    def test_the_figure_of_the_list_is_that_of_the_plan(self):
        shutil.copyfile(GUIDE, os.path.join(self.cwd, "guide.gguf"))
        self.configure("")
        self.plan("-b", budget(90))  # measures the limits
        self.compare()
        # An answer with one type of keys and values corrects the prediction for all.
        before = self.plan("-b", budget(56), "--kv", "q8_0")["decode_tps"]
        r = self.memwall("run", "-m", "guide.gguf", "-b", budget(56), "-c", "64", "--kv", "f16",
                         "-n", "16", "--temp", "0", "hello")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertNotEqual(before, self.plan("-b", budget(56), "--kv", "q8_0")["decode_tps"])
        self.compare()
        self.configure("disk-rate = 20M\nthreads = 3\n")
        self.plan("-b", budget(90))  # measures the limits of three threads
        self.compare()


class Models(Home):
    def test_every_place_is_listed(self):
        self.fill()
        self.assertEqual(["here", "org/gemma:Q4_0", "org_cached:F32", "own:F32", "studio:F32",
                          "tiny:1b"], self.names())
        by_name = {m["name"]: m for m in self.listed()}
        self.assertEqual("ollama", by_name["tiny:1b"]["where"])
        self.assertEqual("gemma4", by_name["org/gemma:Q4_0"]["arch"])
        self.assertEqual("fits", by_name["org/gemma:Q4_0"]["here"][:4])
        self.assertEqual("here.gguf", by_name["here"]["path"])

    def test_variables_move_the_places(self):
        self.fill()
        moved = {"HF_HUB_CACHE": "hub", "OLLAMA_MODELS": "ollama", "LLAMA_CACHE": "llama",
                 "XDG_DATA_HOME": "data"}
        self.copy("llama-tiny.gguf", "llama/moved-llama.gguf")
        self.copy("llama-tiny.gguf", "data/memwall/models/moved-data.gguf")
        self.copy("llama-tiny.gguf", "hub/models--moved/snapshots/x/hub-Q8_0.gguf")
        self.assertEqual(["here", "moved-data", "moved-llama", "moved:Q8_0", "studio:F32"],
                         self.names(**{k: os.path.join(self.home, v) for k, v in moved.items()}))
        self.copy("llama-tiny.gguf", "hf/hub/models--a--b/snapshots/x/c.gguf")
        self.assertIn("a/b:c.gguf", self.names(HF_HOME=os.path.join(self.home, "hf")))

    def test_the_table_has_a_line_for_each_that_the_filter_lets_through(self):
        self.fill()
        lines = self.memwall("list", "llama f32", "--sort", "size").stdout.split("\n")
        self.assertRegex(lines[0], "^NAME +SIZE +TYPE +CONTEXT +WHERE +HERE$")
        self.assertGreater(len(lines), 3)
        r = self.memwall("list", "no-such-model")
        self.assertEqual((0, ""), (r.returncode, r.stdout))
        self.assertIn('no model has "no-such-model" in its name', r.stderr)

    def test_a_folder_is_listed_or_has_no_models(self):
        self.fill()
        self.copy("llama-tiny.gguf", "elsewhere/one.gguf")
        os.makedirs(os.path.join(self.home, "nothing"))
        self.assertEqual(["one"], [m["name"] for m in json.loads(
            self.memwall("list", os.path.join(self.home, "elsewhere"), "--json").stdout)])
        empty = os.path.join(self.home, "nothing")
        r = self.memwall("list", empty)
        self.assertEqual((0, ""), (r.returncode, r.stdout))
        self.assertEqual(f'memwall: there are no models in the folder "{empty}"\n', r.stderr)
        r = subprocess.run([self.program, "list", "nothing"], cwd=self.home,
                           env=environment(self.home), capture_output=True, text=True,
                           timeout=TIMEOUT_S)
        self.assertIn('"memwall list ./nothing" lists that folder', r.stderr)
        one = os.path.join(self.home, "elsewhere", "one.gguf")
        self.assertIn(f'"memwall inspect {one}" describes', self.memwall("list", one).stderr)

    def test_an_empty_machine_has_no_models(self):
        r = self.memwall("list", "--json")
        self.assertEqual([], [m for m in json.loads(r.stdout) if m["where"] != "guide"
                              and not m["path"].startswith(("/usr/", "/var/"))])

    def test_an_unsupported_file_is_listed_with_its_reason(self):
        put(os.path.join(self.cwd, "broken-Q4_0.gguf"), "this is not a model")
        model, = self.listed("broken")
        self.assertFalse(model["supported"])
        self.assertTrue(model["here"].startswith("unsupported: "), model["here"])

    def test_a_snapshot_without_a_tokenizer_that_works_is_unsupported(self):
        class Words(tiny_model.Model):
            n_vocab = 300
        folder = Words().snapshot(os.path.join(self.cwd, "tiny"))
        name = os.path.join(folder, "tokenizer.json")
        whole, cut = json.dumps(byte_letters(byte_level())), "unsupported: tokenizer.json is not"
        for here, text in (("unsupported: the folder has no tokenizer.json", None),
                           ("fits", whole), (cut, whole[:500]), ("fits", whole),
                           ("unsupported: tokenizer.json", "{}"),
                           ("unsupported: the folder has no tokenizer.json", None),
                           ("fits", whole)):
            if text is not None:
                put(name, text)
            elif os.path.exists(name):
                os.remove(name)
            for _ in range(2):  # the second time from the kept description
                model, = self.listed("tiny")
                self.assertEqual(here, model["here"][:len(here)])
                self.assertEqual(here == "fits", model["supported"])

    def test_predictions_name_their_limits(self):
        self.copy("gemma4-tiny-q4_0.gguf", "here/gemma.gguf")
        shutil.rmtree(os.path.join(self.home, ".cache"), ignore_errors=True)
        self.assertIsNone(self.listed("gemma")[0]["limits"])
        self.memwall("plan", "gemma.gguf")  # measures and keeps them
        plan = json.loads(self.memwall("plan", "gemma.gguf", "--json").stdout)
        model = self.listed("gemma")[0]
        self.assertGreater(model["decode_tps"], 0)
        self.assertEqual(plan["binds"], model["binds"])
        self.assertEqual(plan["limits"], model["limits"])

    def test_a_budget_changes_the_outlook(self):
        self.copy("gemma4-tiny-q4_0.gguf", "here/gemma.gguf")
        self.assertTrue(self.listed("--memory", "1M", "gemma")[0]["here"].startswith("too large"))
        self.assertTrue(self.listed("--memory", budget(200), "gemma")[0]["fits"])

    def test_a_model_can_be_named(self):
        self.fill()
        for name in ("org/gemma:Q4_0", "gemma", "org/gemma", "GEMMA:q4_0", "org/gemma:gemma-Q4_0.gguf"):
            r = self.memwall("plan", "-m", name, "--memory", budget(200), "--json")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertEqual("gemma4", json.loads(r.stdout)["arch"])
        self.assertEqual(0, self.memwall("inspect", "tiny:1b").returncode)

    def test_a_part_of_a_name_is_reported_with_the_model(self):
        self.copy("llama-tiny.gguf", "here/phi-3-tiny-F32.gguf")
        for name in ("hi", "phi-3"):
            r = self.memwall("run", "-m", name, "-n", "1", "--raw", "yes")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertEqual(f'memwall: "{name}" is a part of "phi-3-tiny:F32", which is opened',
                             r.stderr.splitlines()[0])
        for more in (("-q", "-m", "hi"), ("-m", "phi-3-tiny"), ("-m", "phi-3-tiny:f32")):
            r = self.memwall("run", *more, "-n", "1", "--raw", "yes")
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertNotIn("is a part of", r.stderr)

    def test_the_first_of_two_words_is_the_whole_name_of_a_model(self):
        self.copy("llama-tiny.gguf", "here/phi-3-tiny-F32.gguf")
        for name in ("phi-3-tiny", "PHI-3-tiny:F32", "phi-3-tiny-F32.gguf"):
            r = self.memwall("run", "-q", "-n", "2", name, "yes")
            self.assertEqual((0, ""), (r.returncode, r.stderr))
        for name in ("hi", "phi-3", "What"):
            r = self.memwall("run", name, "notes.txt")
            self.assertEqual((1, ""), (r.returncode, r.stdout))
            self.assertIn(f'no file or model is named "{name}"', r.stderr)
            self.assertIn("put a prompt of several words in quotes", r.stderr)

    def test_the_path_of_a_model_alone_is_refused(self):
        self.copy("llama-tiny.gguf", "here/a.gguf")
        put(os.path.join(self.cwd, "snapshot", "config.json"), "{}")
        for path in ("a.gguf", "./a.gguf", "snapshot"):
            r = self.memwall("run", path)
            self.assertEqual((2, ""), (r.returncode, r.stdout))
            self.assertIn(f'"{path}" is a model; for a chat: memwall -m {path}; for an answer: '
                          f'memwall run -m {path} PROMPT\n', r.stderr)
        r = self.memwall("run", "-q", "-m", "a.gguf", "-n", "1", "--raw", "a.gguf")
        self.assertEqual((0, ""), (r.returncode, r.stderr))

    def test_a_single_word_of_run_can_be_the_name_of_a_model(self):
        self.copy("llama-tiny.gguf", "here/phi-3-tiny-F32.gguf")
        for name in ("phi-3-tiny:F32", "PHI-3-tiny"):
            r = self.memwall("run", "-q", "-n", "2", "--raw", name, prompt="yes")
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            self.assertNotEqual("", r.stdout)
        for name in ("gemma-9-E9B:Q4_0", "some/model"):
            r = self.memwall("run", name)
            self.assertEqual((1, ""), (r.returncode, r.stdout))
            self.assertIn(name, r.stderr)
            self.assertIn('"memwall list" shows the models', r.stderr)

    def test_a_file_comes_before_a_name(self):
        self.fill()
        self.copy("llama-tiny.gguf", "here/gemma")
        r = self.memwall("inspect", "gemma", "--json")
        self.assertEqual("llama", json.loads(r.stdout)["arch"])

    def test_an_ambiguous_name_lists_the_models(self):
        self.fill()
        r = self.memwall("plan", "-m", "F32")  # a type, not a name
        self.assertEqual(1, r.returncode, r.stderr)
        self.copy("llama-tiny.gguf", "here/own-BF16.gguf")
        r = self.memwall("plan", "-m", "own")
        self.assertEqual(2, r.returncode)
        self.assertIn('"own" can be 2 models', r.stderr)
        self.assertIn("  own:F32  (", r.stderr)
        self.assertIn("  own:BF16  (own-BF16.gguf)", r.stderr)

    def test_a_folder_stands_for_the_one_model_in_it(self):
        self.fill()
        self.copy("llama-tiny.gguf", "here/one/llama-F32.gguf")
        put(os.path.join(self.cwd, "one", "config.json"), "{}")
        put(os.path.join(self.cwd, "one", "mmproj-F16.gguf"), "a projector of images")
        r = self.memwall("inspect", "one", "--json")
        self.assertEqual("llama", json.loads(r.stdout)["arch"], r.stderr)
        repository = os.path.join(self.home, ".cache/huggingface/hub/models--org--gemma")
        for name in (repository, repository + "/"):
            r = self.memwall("inspect", name, "--json")
            self.assertEqual("gemma4", json.loads(r.stdout)["arch"], r.stderr)
        self.copy("gemma4-tiny-q4_0.gguf", "here/one/gemma-Q4_0.gguf")
        r = self.memwall("inspect", "one")
        self.assertEqual((2, ""), (r.returncode, r.stdout))
        self.assertIn("one: the folder has 2 models; name one of them: ", r.stderr)
        self.assertIn('"gemma-Q4_0.gguf"', r.stderr)
        self.cwd = os.path.join(self.cwd, "one")
        r = self.memwall("inspect", ".")
        self.cwd = os.path.dirname(self.cwd)
        self.assertIn('.: the folder has 2 models; name one of them: "', r.stderr)
        self.copy("llama-tiny.gguf", "here/twins/a/m-F32.gguf")
        self.copy("llama-tiny.gguf", "here/twins/b/m-F32.gguf")
        for name in ("twins", "./twins/", os.path.join(self.cwd, "twins")):
            r = self.memwall("inspect", name)
            self.assertIn('name one of them: "a/m-F32.gguf", "b/m-F32.gguf"', r.stderr)
        for folder in "ab":
            self.copy("llama-tiny.gguf", f"here/{folder}/twin-F32.gguf")
        r = self.memwall("inspect", "twin")
        self.assertEqual(2, r.returncode, r.stderr)
        self.assertIn('can be 2 models: "a/twin-F32.gguf", "b/twin-F32.gguf"', r.stderr)
        os.mkdir(os.path.join(self.cwd, "none"))
        r = self.memwall("inspect", "none")
        self.assertEqual(1, r.returncode)
        self.assertIn("the folder is not a snapshot: it has no config.json", r.stderr)

    def test_an_unknown_name_suggests_similar_ones(self):
        self.fill()
        r = self.memwall("plan", "-m", "org/gema:Q4_0")
        self.assertEqual(1, r.returncode)
        self.assertIn('did you mean "org/gemma:Q4_0"', r.stderr)
        self.assertIn('"memwall list"', r.stderr)

    def test_a_name_without_its_signs_is_similar(self):
        self.copy("llama-tiny.gguf", "here/gemma-4-E2B-Q4_0.gguf")
        for name in "gemma4", "gemma4:e2b", "GEMMA_4":
            r = self.memwall("plan", "-m", name)
            self.assertIn('did you mean "gemma-4-E2B', r.stderr, name)
        r = self.memwall("gemma4")
        self.assertEqual(2, r.returncode)
        self.assertIn('did you mean "memwall -m gemma-4-E2B', r.stderr)
        r = self.memwall("plan", "-m", "phi4")
        self.assertNotIn("did you mean", r.stderr)

    def test_words_of_other_programs_are_answered(self):
        for word, says in (("ls", 'did you mean "memwall list"?'),
                           ("download", 'did you mean "memwall pull"?'),
                           ("show", 'did you mean "memwall inspect"?'),
                           ("api", 'did you mean "memwall serve"?'),
                           ("ps", "memwall keeps no model in memory"),
                           ("rm", "memwall deletes no models")):
            for args in [word], ["help", word]:
                r = self.memwall(*args)
                self.assertEqual((2, ""), (r.returncode, r.stdout))
                self.assertIn(says, r.stderr)

    def test_a_file_that_is_not_a_model_is_named_without_its_bytes(self):
        put(os.path.join(self.cwd, "notes"), "some words that are not a model\n")
        for args in ["-m", "notes", "--once"], ["plan", "notes"]:
            r = self.memwall(*args)
            self.assertEqual(1, r.returncode)
            self.assertRegex(r.stderr, "notes: (this is )?not a GGUF file")
            self.assertNotIn("magic", r.stderr)

    def test_the_tokenizer_takes_a_model_by_position(self):
        self.copy("llama-tiny.gguf", "here/own.gguf")
        put(os.path.join(self.cwd, "text"), "some words")
        want = self.memwall("tokenize", "-m", "own.gguf", "--ids", "text").stdout
        for args, text in ((["own.gguf"], "some words"), (["own.gguf", "text"], ""),
                           (["own"], "some words")):
            r = self.memwall("tokenize", "--ids", *args, prompt=text)
            self.assertEqual((0, want), (r.returncode, r.stdout), r.stderr)

    def test_an_unknown_repository_can_be_fetched(self):
        for name, offers in (("org/name", True), ("org/name:Q4_0", True), ("a/b/c", False),
                             ("name", False), ("a/b;ls", False)):
            r = self.memwall("plan", "-m", name)
            self.assertEqual(1, r.returncode)
            self.assertEqual(offers, f'"memwall pull {name}" fetches one from the hub' in r.stderr,
                             r.stderr)

    def test_the_table_fits_a_terminal(self):
        self.fill()
        put(os.path.join(self.cwd, "a-name-that-is-longer-than-any-terminal-" * 3 + ".gguf"), "x")
        for width in (40, 60, 80, 100, 200):
            ours, theirs = os.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            p = subprocess.Popen([MEMWALL, "list"], env=environment(self.home), cwd=self.cwd,
                                 stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE)
            # The table fits the buffer of the terminal, which is closed after all of it has
            # arrived: what is on its way then can be lost.
            self.assertEqual(b"", p.communicate()[1])
            self.assertEqual(0, p.returncode)
            os.close(theirs)
            text = read_terminal(ours)
            lines = text.decode().split("\r\n")
            self.assertGreater(len(lines), 6, text)
            self.assertLessEqual(max(map(len, lines)), width, text.decode())
            self.assertIn("HERE", lines[0])

    def test_a_path_that_does_not_exist_is_an_error_of_the_file(self):
        for path in ("./gemma", "gemma.gguf", "/gemma", "below/gemma.gguf"):
            r = self.memwall("plan", "-m", path)
            self.assertEqual(1, r.returncode)
            self.assertIn("No such file", r.stderr)

    def test_a_model_that_ran_is_recent(self):
        self.copy("llama-tiny.gguf", "elsewhere/far-F32.gguf")
        self.copy("gemma4-tiny-q4_0.gguf", "here/near.gguf")
        self.assertEqual(["near"], self.names())
        r = self.memwall("run", "-m", "../elsewhere/far-F32.gguf", "-n", "1", "--raw", "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertEqual(["far:F32", "near"],
                         [m["name"] for m in self.listed("--sort", "recent")
                          if m["where"] != "guide"])
        self.assertEqual("recent", self.listed("far")[0]["where"])


class Picker(Home):
    def test_a_wrong_chat_is_refused_before_a_model_is_chosen(self):
        self.fill()
        t = Terminal("--open", "no-such-chat", home=self.home)
        self.addCleanup(t.close)
        self.assertTrue(t.sees('no saved chat "no-such-chat"'), t.screen())
        while t.pump(0.1):
            pass
        self.assertEqual(1, t.process.wait(TIMEOUT_S))


class Guide(Home):
    """A copy of the installed tree, in which a tiny model is the guide."""

    def setUp(self):
        super().setUp()
        self.program = os.path.join(self.home, "prefix", "bin", "memwall")
        os.makedirs(os.path.dirname(self.program))
        shutil.copy2(MEMWALL, self.program)

    def install_guide(self):
        self.copy("gemma4-tiny-q4_0.gguf", "prefix/share/memwall/models/memwall-guide.gguf")

    def test_the_guide_answers_if_no_model_is_given(self):
        self.install_guide()
        r = self.memwall("run", "-n", "2", "--raw", "hi")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("memwall: this is the guide, a small model that knows only memwall", r.stderr)
        self.assertIn('"memwall list"', r.stderr)
        self.assertEqual(1, len(r.stderr.splitlines()), r.stderr)
        quiet = self.memwall("run", "-q", "-n", "2", "--raw", "--seed", "1", "hi")
        self.assertEqual((0, ""), (quiet.returncode, quiet.stderr))

    def test_one_word_beside_a_dash_is_the_prompt(self):
        self.install_guide()
        alone, = (json.loads(x)["n_prompt"] for x in self.memwall(
            "run", "--json", "-n", "1", "hi").stdout.splitlines() if "n_prompt" in x)
        for args in (("hi", "-"), ("-", "hi"), ("a.gguf", "-")):
            r = self.memwall("run", "--json", "-n", "1", *args)
            self.assertEqual(0, r.returncode, r.stderr)
            n, = (json.loads(x)["n_prompt"] for x in r.stdout.splitlines() if "n_prompt" in x)
            self.assertIn("this is the guide", r.stderr)
            if "hi" in args:
                self.assertEqual(alone, n)
        self.copy("llama-tiny.gguf", "here/own.gguf")
        r = self.memwall("run", "-n", "1", "--raw", "own.gguf", "hi", "-")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        r = self.memwall("run", "-n", "1", "own.gguf", "-")
        self.assertEqual(2, r.returncode)
        self.assertIn("no prompt given", r.stderr)

    def test_the_dashboard_of_the_guide_is_printed(self):
        self.install_guide()
        r = self.memwall("--once")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("memwall: this is the guide", r.stderr)
        self.assertIn("memory", r.stdout)

    def test_the_guide_is_in_the_list_and_has_a_name(self):
        self.install_guide()
        self.assertEqual("guide", self.listed("memwall-guide")[0]["where"])
        self.assertEqual(0, self.memwall("inspect", "memwall-guide").returncode)

    def test_a_configured_model_comes_before_the_guide(self):
        self.install_guide()
        self.copy("llama-tiny.gguf", "here/own.gguf")
        put(os.path.join(self.home, ".config/memwall/config"), "model = own.gguf\n")
        r = self.memwall("run", "-n", "1", "--raw", "hi")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        put(os.path.join(self.home, ".config/memwall/config"), "model = ~/here/own.gguf\n")
        r = self.memwall("run", "-n", "1", "--raw", "hi")
        self.assertEqual((0, ""), (r.returncode, r.stderr))

    def test_other_commands_need_a_model(self):
        self.install_guide()
        r = self.memwall("plan")
        self.assertEqual(2, r.returncode)
        self.assertIn(NO_MODEL, r.stderr)

    def test_without_a_guide_the_error_shows_what_to_do(self):
        for args in (["run", "hi"], [], ["--once"]):
            r = self.memwall(*args)
            self.assertEqual(2, r.returncode, r.stderr)
            self.assertIn(NO_MODEL, r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
