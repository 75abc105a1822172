#!/usr/bin/env python3
"""memwall run: its outputs, how it stops, and its error messages."""
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_template import with_template  # noqa: E402
from program import (HomeCase, MEMWALL, MODELS, TIMEOUT_S, MeasuredHome,  # noqa: E402
                     budget, environment, memwall, read_terminal, smallest_without_screen)
import terminal  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
GREEDY = ("-m", MODEL, "--temp", "0", "-n", "24")


def start(*args, **more):
    """Start the program without waiting for it.  The caller keeps its home folder."""
    return subprocess.Popen([MEMWALL, *args], stdin=subprocess.DEVNULL, bufsize=0, **more)


class Template(unittest.TestCase):
    """Notices about the chat template of a model."""

    def run_with(self, template, *args):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            with_template(MODEL, path, template)
            r = memwall("run", "-m", path, "--temp", "0", "-n", "4", "hello", *args)
        self.assertEqual(0, r.returncode, r.stderr)
        return r

    def test_a_template_that_works_is_not_mentioned(self):
        self.assertEqual("", self.run_with("{{ bos_token }}{{ messages[0].content }}").stderr)
        self.assertEqual("", self.run_with(None).stderr)  # recognised by its control tokens

    def test_a_template_that_cannot_be_used_is_named_once_with_its_replacement(self):
        r = self.run_with("{{ '<|turn>' }}\n{% for %}")
        self.assertEqual(1, r.stderr.count("\n"), r.stderr)
        for word in ("cannot be used", "line 2", "gemma4"):
            self.assertIn(word, r.stderr)
        self.assertEqual("", self.run_with("{% for %}", "--quiet").stderr)

    def test_a_format_by_name_needs_no_template(self):
        self.assertEqual("", self.run_with("{% for %}", "--format", "gemma4").stderr)
        self.assertEqual("", self.run_with("{% for %}", "--raw").stderr)

    def test_a_refused_system_message_is_put_into_the_question(self):
        refuses = ("{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}"
                   "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
        r = self.run_with(refuses, "--system", "Be brief.")
        self.assertEqual(1, r.stderr.count("\n"), r.stderr)
        self.assertIn("refuses a system message", r.stderr)
        self.assertEqual("", self.run_with(refuses).stderr)


class CommandLine(unittest.TestCase):
    def says(self, *args, code=2):
        r = memwall(*args)
        self.assertEqual(code, r.returncode, r.stderr)
        return r.stderr + r.stdout

    def test_mistyped_words_get_a_suggestion(self):
        for args, meant in (
                (("--list",), "memwall list"), (("rnu",), "memwall run"), (("pla",), "memwall plan"),
                (("run", "--tepm", "1"), "--temp"), (("run", "-temp", "1"), "--temp"),
                (("run", "--t", "1"), "--threads"), (("help", "evla"), "memwall eval")):
            self.assertIn('did you mean "%s"?' % meant, self.says(*args))

    def test_options_of_other_programs_are_not_numbers_of_ours(self):
        self.assertIn('unknown option "-ngl"', self.says("run", "-ngl", "99", "hi"))

    def test_run_holds_no_conversation(self):
        for option in "-i", "--interactive":
            said = self.says("run", option)
            self.assertIn('"memwall chat" holds a conversation', said)
            self.assertNotIn("--io", said)

    def test_the_beginning_of_an_option_is_enough(self):
        r = memwall("run", "--mod", MODEL, "--pred", "3", "--temp", "0", "-q", "hello")
        self.assertEqual((0, ""), (r.returncode, r.stderr))

    def test_the_model_may_come_before_the_prompt(self):
        rest = ("--temp", "0", "-n", "8", "-q")
        want = memwall("run", "-m", MODEL, *rest, "hello").stdout
        for args in (("run", MODEL, "hello"), ("run", MODEL, "-p", "hello"),
                     ("run", "-p", "hello", MODEL), ("run", "-m", MODEL, "-p", "hello")):
            r = memwall(*args, *rest)
            self.assertEqual((0, want), (r.returncode, r.stdout), r.stderr)
        self.assertIn("unexpected argument", self.says("run", MODEL, "one", "two"))

    def test_help_is_a_command(self):
        self.assertEqual(memwall("--help").stdout, self.says("help", code=0))
        self.assertEqual(memwall("run", "--help").stdout, self.says("help", "run", code=0))

    def test_a_budget_without_a_unit_is_refused(self):
        self.assertIn("units are M and G", self.says("plan", MODEL, "-b", "3"))

    def test_a_file_that_is_not_a_model_is_named(self):
        self.assertIn("not a GGUF file but a script", self.says("plan", __file__, code=1))

    def test_speeds_have_no_exponents(self):
        text = self.says("run", *GREEDY, "--stats", "-q", "hello", code=0)
        self.assertRegex(text, r"\([\d.,]+ tok/s\)")
        self.assertNotRegex(text, r"\de[+-]\d")


class Output(unittest.TestCase):
    def test_only_the_answer_goes_to_standard_output(self):
        r = memwall("run", *GREEDY, "hello", text=False, stdin=b"")
        self.assertEqual((0, b""), (r.returncode, r.stderr))
        self.assertTrue(r.stdout.endswith(b"\n"))
        r.stdout.decode("utf-8")
        again = memwall("run", *GREEDY, "hello", text=False, stdin=b"")
        self.assertEqual(r.stdout, again.stdout)

    def test_the_prompt_comes_from_the_argument_or_the_input(self):
        by_argument = memwall("run", *GREEDY, "hello there", "--json")
        by_input = memwall("run", *GREEDY, "--json", stdin="hello there\n")
        self.assertEqual([0, 0], [by_argument.returncode, by_input.returncode])
        a, b = (json.loads(r.stdout.splitlines()[-1]) for r in (by_argument, by_input))
        self.assertEqual((a["text"], a["n_prompt"]), (b["text"], b["n_prompt"]))

    def test_both_are_joined_by_an_empty_line(self):
        both = memwall("run", *GREEDY, "hello", "--json", stdin="there\n")
        joined = memwall("run", *GREEDY, "hello\n\nthere", "--json")
        a, b = (json.loads(r.stdout.splitlines()[-1]) for r in (both, joined))
        self.assertEqual((a["text"], a["n_prompt"]), (b["text"], b["n_prompt"]))

    def test_a_missing_prompt_is_reported(self):
        r = memwall("run", *GREEDY)
        self.assertEqual((2, ""), (r.returncode, r.stdout))
        self.assertIn("no prompt", r.stderr)

    def test_json_is_one_object_per_line_and_the_last_has_everything(self):
        r = memwall("run", *GREEDY, "hello", "--json")
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        lines = [json.loads(line) for line in r.stdout.splitlines()]
        done = lines.pop()
        self.assertEqual("done", done["event"])
        self.assertEqual("length", done["done"])
        self.assertEqual(24, done["n_decoded"])
        text = "".join(x["text"] for x in lines if x["event"] == "text")
        self.assertEqual(done["text"], text)
        self.assertGreater(done["bytes_read"], 0)
        plain = memwall("run", *GREEDY, "hello")
        self.assertEqual(plain.stdout.rstrip("\n"), text.rstrip("\n"))

    def test_raw_adds_no_newline(self):
        a = memwall("run", *GREEDY, "--raw", "--json", "hello")
        b = memwall("run", *GREEDY, "--raw", "hello", text=False, stdin=b"")
        self.assertEqual(json.loads(a.stdout.splitlines()[-1])["text"].encode(), b.stdout)

    def test_stats_are_on_standard_error(self):
        r = memwall("run", *GREEDY, "--stats", "hello")
        self.assertEqual(0, r.returncode)
        for word in ("prompt ", "answer ", "read ", "24 tokens", "io "):
            self.assertIn(word, r.stderr)
        self.assertEqual(memwall("run", *GREEDY, "hello").stdout, r.stdout)

    def test_an_answer_ends_before_the_first_of_the_stop_strings(self):
        whole = memwall("run", *GREEDY, "--raw", "hello").stdout
        early, late = whole[-9:-7], whole[-3:-1]
        self.assertLess(0, whole.index(early))
        for stops in ((late, early), (early, late)):
            r = memwall("run", *GREEDY, "--raw", "hello",
                        *(word for text in stops for word in ("--stop", text)))
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            self.assertEqual(whole[:whole.index(early)], r.stdout)

    def test_stop_strings_of_the_command_line_replace_those_of_the_file(self):
        whole = memwall("run", *GREEDY, "--raw", "hello").stdout
        early, late = whole[-9:-7], whole[-3:-1]
        config = f'stop = nowhere\nstop = "{early}"\n'
        r = memwall("run", *GREEDY, "--raw", "hello", config=config)
        self.assertEqual(whole[:whole.index(early)], r.stdout, r.stderr)
        r = memwall("run", *GREEDY, "--raw", "--stop", late, "hello", config=config)
        self.assertEqual(whole[:whole.index(late)], r.stdout, r.stderr)

    def test_a_stop_string_must_not_be_empty(self):
        r = memwall("run", *GREEDY, "--stop", "", "hello")
        self.assertEqual(2, r.returncode)
        self.assertIn("--stop", r.stderr)

    def test_the_same_seed_gives_the_same_answer(self):
        args = ("run", "-m", MODEL, "--temp", "1", "-n", "30", "hello")
        a, b, c = (memwall(*args, "--seed", s).stdout for s in ("1", "1", "2"))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_chat_without_a_terminal_does_the_same(self):
        r = memwall("chat", *GREEDY, stdin="hello")
        self.assertEqual(memwall("run", *GREEDY, "hello").stdout, r.stdout)
        self.assertEqual(0, r.returncode)

    def test_telemetry_is_written_as_json_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.jsonl")
            r = memwall("run", *GREEDY, "--telemetry", path, "hello")
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            with open(path, encoding="utf-8") as f:
                events = [json.loads(line)["event"] for line in f]
        self.assertEqual("start", events[0])
        self.assertEqual(24, events.count("token"))


class KeptTokenizer(HomeCase):
    """The tokenizer is built once, and read from the cache folder afterwards."""

    def answer(self):
        r = subprocess.run([MEMWALL, "run", *GREEDY, "-q", "hello <|turn>"], text=True,
                           env=environment(self.folder), capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        return r.stdout

    def kept(self):
        cache = os.path.join(self.folder, ".cache", "memwall")
        return [os.path.join(cache, n) for n in os.listdir(cache) if n.startswith("tokenizer.")]

    def test_it_is_kept_once_and_gives_the_same_answer(self):
        first = self.answer()
        [path] = self.kept()
        made = os.stat(path).st_ino
        self.assertEqual(first, self.answer())
        self.assertEqual([path], self.kept())
        self.assertEqual(made, os.stat(path).st_ino)

    def test_a_damaged_file_is_replaced(self):
        first = self.answer()
        [path] = self.kept()
        with open(path, "r+b") as f:
            f.seek(5000)
            f.write(b"damage")
        made = os.stat(path).st_ino
        self.assertEqual(first, self.answer())
        self.assertEqual([path], self.kept())
        self.assertNotEqual(made, os.stat(path).st_ino)

    def test_a_cache_folder_that_cannot_be_made_does_no_harm(self):
        first = self.answer()
        shutil.rmtree(os.path.join(self.folder, ".cache"))
        with open(os.path.join(self.folder, ".cache"), "w"):
            self.assertEqual(first, self.answer())


class Io(unittest.TestCase):
    """The way in which weights are read, and the reason, are the same in every output."""

    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        self.limits = os.path.join(self.home.name, ".cache", "memwall", "limits")

    def at_home(self, command, *args, model=MODEL):
        r = subprocess.run([MEMWALL, command, "-m", model, *args], text=True, timeout=TIMEOUT_S,
                           env=environment(self.home.name), stdin=subprocess.DEVNULL,
                           capture_output=True)
        self.assertEqual(0, r.returncode, r.stderr)
        return r

    def change_limits(self, **values):
        """Change the cached limits of the disk as if they were measured on a quiet machine."""
        if not os.path.exists(self.limits):
            self.at_home("plan")
        with open(self.limits) as f:
            lines = [json.loads(line) for line in f]
        for line in lines:
            if line["kind"] == "disk":
                line.update(doubtful=False)
                line.update(values)
            elif line["kind"] != "product":
                line.update(doubtful=False)
        with open(self.limits, "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)

    def shown(self):
        plan = json.loads(self.at_home("plan", "--json").stdout)
        yield plan["io"], plan["io_reason"]
        text = self.at_home("plan").stdout
        yield re.search(r"(?m)^io (\S+) \((.*)\)$", text).groups()
        r = self.at_home("run", "--temp", "0", "-n", "2", "--stats", "hello")
        name, reason = re.search(r"(?m)^io +(\S+) \((.*)\)$", r.stderr).groups()
        yield name.split("/")[0], reason
        done = json.loads(self.at_home("run", "--temp", "0", "-n", "2", "--json",
                                       "hello").stdout.splitlines()[-1])
        yield done["io"].split("/")[0], done["io_reason"]

    def test_slow_direct_reads_are_avoided_and_the_reason_is_shown(self):
        if json.loads(self.at_home("plan", "--json").stdout)["io"] != "direct":
            self.skipTest("no direct reads here")
        self.change_limits(bytes_s=1e9, direct_bytes_s=1e8, buffered_bytes_s=1e9)
        for shown in self.shown():
            self.assertEqual(("buffered", "10 times as fast as direct"), shown)
        chat = terminal.Terminal("chat", "-m", MODEL, home=self.home.name)
        self.addCleanup(chat.close)
        chat.sees("weights are read through the page cache")

    def test_fast_direct_reads_are_used(self):
        if json.loads(self.at_home("plan", "--json").stdout)["io"] != "direct":
            self.skipTest("no direct reads here")
        self.change_limits(bytes_s=2e9, direct_bytes_s=2e9, buffered_bytes_s=1e9)
        for name, reason in self.shown():
            self.assertEqual("direct", name)
            self.assertIn("2 times as fast as buffered", reason)

    def test_limits_of_an_older_version_are_measured_again(self):
        os.makedirs(os.path.dirname(self.limits))
        with open(self.limits, "w") as f:
            f.write("1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 2e10 0 0 0 0 0 0 0 0 0 0 0 0 v4\n")
        self.at_home("plan")
        with open(self.limits) as f:
            self.assertIn("disk", [json.loads(line)["kind"] for line in f])

    def test_predictions_name_their_limits(self):
        before = int(time.time()) - 3 * 3600
        self.change_limits(bytes_s=2e9, direct_bytes_s=2e9, buffered_bytes_s=1e9, time=before)
        said = "disk 2 GB/s, memory .*B/s, measured 3 h ago"
        self.assertRegex(self.at_home("plan").stdout, f"(?m)^limits {said}$")
        r = self.at_home("run", "--temp", "0", "-n", "2", "--stats", "hello")
        self.assertRegex(r.stderr, f"(?m)^limits   {said}$")
        limits = json.loads(self.at_home("plan", "--json").stdout)["limits"]
        self.assertEqual((2e9, False, before),
                         (limits["disk_bytes_s"], limits["doubtful"], limits["measured"]))
        done = json.loads(self.at_home("run", "--temp", "0", "-n", "2", "--json",
                                       "hello").stdout.splitlines()[-1])
        self.assertEqual(limits, done["limits"])
        self.assertGreater(done["predicted_decode_tps"], 0)

    def test_the_tokens_of_a_model_are_remembered_and_predictions_begin_there(self):
        self.at_home("plan", "-b", budget(100))
        self.change_limits()
        self.at_home("run", "--temp", "0", "-n", "40", "-b", budget(100), "hello")
        self.change_limits()  # the run may have measured more, on a busy machine
        with open(self.limits) as f:
            lines = [json.loads(line) for line in f]
        [anchor] = [line for line in lines if line["kind"] == "anchor"]
        self.assertGreaterEqual(anchor["n_token"], 8)
        # As on a machine with nothing else to do.
        anchor.update(token_s=9e-4, stall_s=0, lookup_s=4e-4, attention_s=4e-5, fixed_s=6e-5,
                      ran_s=5e-4, others_s=0, crowding=0)

        def write():
            with open(self.limits, "w") as f:
                f.writelines(json.dumps(line) + "\n" for line in lines)

        write()
        # Where the tokens were, so that their own attention counts and not that of 4096 tokens.
        near = ("plan", "--json", "-b", budget(100), "-c", "64")
        before = json.loads(self.at_home(*near).stdout)["decode_tps"]
        # The same tokens, but each took ten times as long.
        for name in ("token_s", "stall_s", "lookup_s", "attention_s", "fixed_s"):
            anchor[name] *= 10
        # Other programs took as much time again.  They are probably still there.
        anchor["others_s"] = anchor["token_s"]
        anchor["token_s"] *= 2
        write()
        slow = json.loads(self.at_home(*near).stdout)["decode_tps"]
        self.assertAlmostEqual(0.05, slow / before, delta=0.025)
        # Later they are probably gone.
        anchor["measured_s"] -= 3600
        write()
        slow = json.loads(self.at_home(*near).stdout)["decode_tps"]
        self.assertAlmostEqual(0.1, slow / before, delta=0.05)
        slow = json.loads(self.at_home("plan", "--json", "-b", budget(100)).stdout)["decode_tps"]
        models = json.loads(subprocess.run(
            [MEMWALL, "list", "--json", "-b", budget(100)], cwd=os.path.dirname(MODEL), text=True,
            env=environment(self.home.name), capture_output=True, check=True,
            timeout=TIMEOUT_S).stdout)
        [listed] = [m for m in models if os.path.basename(m["path"]) == os.path.basename(MODEL)]
        # A plan without OpenBLAS pins more.
        self.assertAlmostEqual(slow, listed["decode_tps"], delta=0.3 * slow)
        # Measured tokens make a prediction trusted, whatever the limits are.
        self.change_limits(doubtful=True)
        plan = json.loads(self.at_home("plan", "--json", "-b", budget(100)).stdout)
        self.assertEqual((True, False), (plan["limits"]["doubtful"], plan["doubtful"]))
        anchor.update(token_s=0, n_seen=1e15, streamed_share=7, kv_k=1e9)  # no token had these
        write()
        self.at_home("plan", "-b", budget(100))

    def test_doubtful_limits_say_so_and_are_measured_again_after_ten_minutes(self):
        before = int(time.time()) - 300
        self.change_limits(bytes_s=2e9, time=before, doubtful=True)
        out = self.at_home("plan").stdout
        self.assertIn("; doubtful: the machine was busy, or the budget too small to measure "
                      "it\n", out)
        self.assertRegex(out, r"Answers ~[\d.,]+\? tok/s")
        plan = json.loads(self.at_home("plan", "--json").stdout)
        self.assertTrue(plan["doubtful"] and plan["limits"]["doubtful"])
        self.assertEqual(before, plan["limits"]["measured"])
        self.change_limits(time=before - 600, doubtful=True)
        limits = json.loads(self.at_home("plan", "--json").stdout)["limits"]
        self.assertGreater(limits["measured"], before)

    def test_weight_types_that_contradict_each_other_are_measured_again(self):
        """Two types cannot differ by a factor of a thousand: one is of a bad moment."""
        self.at_home("plan")
        with open(self.limits) as f:
            lines = [json.loads(line) for line in f]
        types = [line for line in lines if line["kind"] == "type"]
        types[0]["column_bytes_s"] *= 1000
        with open(self.limits, "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        rates = json.loads(self.at_home("plan", "--json").stdout)["limits"]["rates"]
        rates = [r["column_bytes_s"] for r in rates]
        self.assertLess(max(rates), 20 * min(rates))

    def test_a_damaged_file_of_limits_is_ignored(self):
        self.at_home("plan")
        for damage in (b"", b"\0" * 9999, b"9" * 100000, b"\xff\xfe\n" * 999,
                       b"{" * 20 + b"\n", b'{"kind":"disk"}\n' * 20):
            with open(self.limits, "wb") as f:
                f.write(damage)
            limits = json.loads(self.at_home("plan", "--json").stdout)["limits"]
            self.assertGreater(limits["memory_bytes_s"], 0)

    def test_a_small_model_is_measured_once(self):
        """Its disk cannot be measured: the limits are kept all the same."""
        self.at_home("plan")
        self.change_limits()
        with open(self.limits) as f:
            first = f.read()
        self.at_home("plan")
        with open(self.limits) as f:
            self.assertEqual(first, f.read())

    def test_a_requested_mode_is_the_reason(self):
        plan = json.loads(self.at_home("plan", "--json", "--io", "mmap").stdout)
        self.assertEqual(("mmap", "as requested"), (plan["io"], plan["io_reason"]))

    def test_a_disk_rate_slows_reads_down_as_predicted(self):
        plan = json.loads(self.at_home("plan", "--memory", "1G", "--json").stdout)
        slow_disk = ("--disk-rate", "1M")
        limited = ("--memory", str(plan["smallest_budget_bytes"]), *slow_disk)
        of_run = ("--memory", str(smallest_without_screen(plan)), *slow_disk)
        plan = json.loads(self.at_home("plan", *limited, "--json").stdout)
        self.assertEqual("disk", plan["binds"])
        # A disk that was measured while others kept it busy may be slower still.
        rate = min(1e6, plan["limits"]["disk_bytes_s"] or 1e6)
        self.assertAlmostEqual(rate, plan["streamed_bytes"] * plan["decode_tps"],
                               delta=0.05 * rate)
        self.assertRegex(plan["io_reason"], "; limited to 1 MB/s$")
        self.assertLessEqual(plan["n_slot"], 3)  # more reads in flight would add nothing
        done = json.loads(self.at_home("run", "--temp", "0", "-n", "16", "--json", *of_run,
                                       "hello").stdout.splitlines()[-1])
        # Memory for keys and values holds weights while it is not used, so less is read than
        # planned.
        self.assertGreater(done["bytes_read"], 10 * plan["streamed_bytes"])
        # On a busy machine, weights of several passes are read during the prompt, so only the sum
        # of both times has a lower bound; and what there is room for may be read before them, or
        # into the buffers after them.
        in_time = done["bytes_read"] - 2 * plan["rows"]["ring"] - plan["rows"]["kv_global"]
        self.assertGreater(in_time, 0)
        self.assertGreater(done["prefill_ns"] + done["decode_ns"], 0.95e9 * in_time / 1e6)
        self.assertIn("; limited to 1 MB/s", done["io_reason"])

    def test_a_disk_rate_is_refused_for_mapped_weights(self):
        r = memwall("plan", MODEL, "--io", "mmap", "--disk-rate", "2M")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertIn("a disk rate cannot be set for mapped weights", r.stderr)


class Terminal(unittest.TestCase):
    """Run with standard output and standard error on a pseudo-terminal."""

    def on_terminal(self, *args, also_stderr=True):
        main, side = pty.openpty()
        with MeasuredHome() as home:
            p = start(*args, stdout=side, env=environment(home),
                      stderr=side if also_stderr else subprocess.PIPE)
            os.close(side)
            shown = read_terminal(main)
            p.wait(TIMEOUT_S)
            if p.stderr:
                p.stderr.close()
        return p.returncode, shown

    def test_no_control_character_of_the_model_gets_through(self):
        # A model with random weights writes them sooner or later.
        code, shown = self.on_terminal("run", "-m", MODEL, "--temp", "5", "--seed", "7", "-n",
                                       "300", "-q", "hello")
        self.assertEqual(0, code)
        for byte in set(shown):
            self.assertTrue(byte >= 0x20 and byte != 0x7f or byte in b"\r\n", hex(byte))
        self.assertNotRegex(shown.decode("utf-8"), "[\u0080-\u009f]")

    def test_the_line_of_progress_is_removed(self):
        code, shown = self.on_terminal("run", *GREEDY, "hello")
        self.assertEqual(0, code)
        self.assertIn(b"loading", shown)
        # Text after the last carriage return of a line remains on the terminal.
        rest = [line.split(b"\r")[-1] for line in shown.replace(b"\r\n", b"\n").split(b"\n")]
        self.assertNotIn(b"loading", b"\n".join(rest))
        self.assertNotIn(b"\x1b", shown)

    def test_quiet_writes_no_progress(self):
        code, shown = self.on_terminal("run", *GREEDY, "-q", "hello")
        self.assertEqual(0, code)
        self.assertNotIn(b"loading", shown)


class Stopping(unittest.TestCase):
    # A model that never ends its answer, so that it is stopped in the middle.
    LONG = ("run", "-m", os.path.join(MODELS, "llama-tiny.gguf"), "--temp", "0.5", "--seed",
            "1", "--ctx", "64k", "-q", "hello")

    def stop_with(self, sig):
        with MeasuredHome() as home:
            p = start(*self.LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      env=environment(home))
            first = p.stdout.read(1)  # the answer has begun
            p.send_signal(sig)
            out, err = p.communicate(timeout=TIMEOUT_S)
        return p.returncode, first + out, err

    def test_ctrl_c_stops_and_keeps_the_text(self):
        code, out, err = self.stop_with(signal.SIGINT)
        self.assertEqual((130, b""), (code, err))
        self.assertTrue(out.endswith(b"\n"))
        self.assertGreater(len(out), 1)
        out.decode("utf-8")

    def test_sigterm_stops_and_keeps_the_text(self):
        code, out, err = self.stop_with(signal.SIGTERM)
        self.assertEqual((143, b""), (code, err))

    def test_a_reader_that_goes_away_ends_it(self):
        with MeasuredHome() as home:
            p = start(*self.LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      env=environment(home))
            p.stdout.read(1)
            p.stdout.close()
            err = p.stderr.read()
            p.stderr.close()
            self.assertEqual(1, p.wait(TIMEOUT_S))
        self.assertEqual(b"", err)

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            r = memwall("run", *GREEDY, "hello", capture_output=False, stdout=full,
                        stderr=subprocess.PIPE)
        self.assertEqual(1, r.returncode)
        self.assertIn("No space left", r.stderr)


class Wrong(unittest.TestCase):
    def one_line(self, r, code, *texts):
        self.assertEqual((code, ""), (r.returncode, r.stdout), r.stderr)
        for text in texts:
            self.assertIn(text, r.stderr)
        self.assertEqual(1, r.stderr.count("memwall: "), r.stderr)

    def test_a_missing_model_is_reported(self):
        self.one_line(memwall("run", "-m", "/nonexistent/x.gguf", "hi"), 1,
                      "/nonexistent/x.gguf", "No such file")

    def test_a_file_that_is_not_a_model_is_refused(self):
        self.one_line(memwall("run", "-m", os.path.join(MODELS, "llama-tiny.ids"), "hi"), 1,
                      "llama-tiny.ids")

    def test_a_budget_below_the_floor(self):
        r = memwall("run", "-m", MODEL, "--memory", "4M", "hi")
        self.one_line(r, 3, "It fits a budget of")
        for row in ("program", "tokenizer", "full KV", "total"):
            self.assertRegex(r.stderr, rf"(?m)^  {row} ")

    def test_a_prompt_longer_than_the_context(self):
        self.one_line(memwall("run", "-m", MODEL, "--ctx", "64", "word " * 400), 1, "64")

    def test_unavailable_kernels_are_refused(self):
        r = memwall("run", "-m", MODEL, "--isa", "abacus", "hi")
        self.assertEqual(2, r.returncode)
        self.assertRegex(r.stderr, '--isa: kernel set "abacus" is not available; there are .*generic')

    def test_a_recording_that_cannot_be_written_is_an_error(self):
        r = memwall("run", *GREEDY, "--telemetry", "/nonexistent/t", "hi")
        self.assertEqual(1, r.returncode)
        self.assertIn("/nonexistent/t", r.stderr)

    def test_a_recording_without_a_byte_is_removed(self):
        """The disk is full; a file that is replaced stays, although it is empty then."""
        def limit():  # as a full disk, it lets a file begin
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with tempfile.TemporaryDirectory() as folder:
            new, old, logits = (os.path.join(folder, name) for name in ("new", "old", "logits"))
            with open(old, "w") as f:
                f.write("text")
            for args in (("run", *GREEDY, "--telemetry", new, "hi"),
                         ("run", *GREEDY, "--telemetry", old, "--force", "hi"),
                         ("eval", "-m", MODEL, "--ids", "-", "--greedy", "3", "--telemetry",
                          new),
                         ("eval", "-m", MODEL, "--ids", "-", "--logits", logits)):
                r = memwall(*args, stdin="1,2,3", preexec_fn=limit)
                self.assertEqual(1, r.returncode, r.stderr)
                self.assertIn("could not write", r.stderr)
                self.assertIn("File too large", r.stderr)
                self.assertEqual(["old"], os.listdir(folder), args)

    def test_a_full_context_ends_the_answer(self):
        r = memwall("run", "-m", MODEL, "--temp", "0", "--ctx", "40", "hello")
        self.assertEqual(1, r.returncode)
        self.assertIn("the context of 40 tokens is full", r.stderr)
        self.assertGreater(len(r.stdout), 1)


class Products(unittest.TestCase):
    """The choice between kernels and OpenBLAS for prompts is measured once and cached."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        self.kept = os.path.join(self.home, ".cache", "memwall", "limits")

    def products(self):
        r = subprocess.run([MEMWALL, "plan", os.path.join(MODELS, "llama-tiny.gguf"), "-b", "1G"],
                           env=environment(self.home), capture_output=True, text=True,
                           timeout=TIMEOUT_S, check=True)
        return next(x for x in r.stdout.splitlines() if x.startswith("products"))

    def lines(self):
        """The cached rates of OpenBLAS and the kernels."""
        with open(self.kept, encoding="utf-8") as f:
            return [x for x in map(json.loads, f) if x["kind"] == "product"]

    def keep(self, kernels, blas, build=None):
        line = self.lines()[0]
        line.update(kernels_flops_s=kernels, blas_flops_s=blas)
        if build is not None:
            line["of"] = " ".join([build, *line["of"].split()[1:]])
        with open(self.kept, "w", encoding="utf-8") as f:
            print(json.dumps(line), file=f)

    def test_cached_rates_decide_and_those_of_another_build_do_not(self):
        self.products()
        [line] = self.lines()
        build = line["of"].split()[0]
        if "text" not in line:
            self.skipTest("OpenBLAS cannot be loaded")
        self.keep(1e9, 1e12)
        self.assertIn("openblas", self.products())
        self.keep(1e12, 1e9)
        self.assertNotIn("openblas", self.products())
        self.keep(1e9, 1e12, "0.0.0")
        self.products()
        self.assertEqual([build, "0.0.0"], [x["of"].split()[0] for x in self.lines()])


if __name__ == "__main__":
    unittest.main(verbosity=2)
