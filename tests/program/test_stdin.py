#!/usr/bin/env python3
"""Standard input: when commands read it, and when they leave it to others."""
import json
import os
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gguf_edit import STR, Gguf  # noqa: E402
from program import (HomeCase, MEMWALL, MODELS, TIMEOUT_S, budget, environment,  # noqa: E402
                     read_terminal)
from terminal import Terminal  # noqa: E402

TINY = os.path.join(MODELS, "llama-tiny.gguf")
ARGS = ["-m", TINY, "-b", budget(256), "-t", "1", "-n", "1", "--temp", "0"]
LINES = "a\nbb\nccc\n"
LEFT = "standard input was not read"
WAITS = "waiting for the end of standard input"


class StdinCase(HomeCase):
    def setUp(self):
        super().setUp()
        self.list = self.path("list")
        with open(self.list, "w") as f:
            f.write(LINES)
        self.env = environment(self.folder, R=MEMWALL, A=" ".join(ARGS), L=self.list)

    def shell(self, script, **more):
        """Returns the numbers of prompt tokens of `memwall run --json` in the script, and what it
        printed to standard error."""
        more = {"stdin": subprocess.DEVNULL} | more
        p = subprocess.run(["sh", "-c", "run() { $R run $A --json \"$@\"; }; " + script],
                           capture_output=True, text=True, timeout=TIMEOUT_S, env=self.env, **more)
        objects = [json.loads(x) for x in p.stdout.splitlines() if x.startswith("{")]
        err = [x for x in p.stderr.splitlines(True) if "the answer has no text" not in x]
        return [x["n_prompt"] for x in objects if "n_prompt" in x], "".join(err)

    def alone(self, *prompts):
        return [self.shell('run "$P"', stdin=subprocess.DEVNULL)[0][0]
                for p in prompts if self.env.update(P=p) is None]

    def started(self, *args, stdin):
        return subprocess.Popen([MEMWALL, *args], stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.env)


class Loops(StdinCase):
    """The list of a loop is not a part of the prompt."""

    def test_a_loop_runs_once_a_line(self):
        want = self.alone("a", "bb", "ccc")
        for loop in ('while read -r x; do run "$x"; done < "$L"',
                     'while read -r x; do run -p "$x"; done < "$L"',
                     'cat "$L" | while read -r x; do run "$x"; done',
                     'cat "$L" | while read -r x; do $R run $A --json "$x"; done',
                     'cat "$L" | while read -r x; do y=$($R run $A --json "$x"); echo "$y"; done',
                     'exec < "$L"; while read -r x; do $R run $A --json "$x"; done',
                     'xargs -n1 $R run $A --json < "$L"',
                     'cat "$L" | xargs -n1 $R run $A --json',
                     'while read -r x; do run "$x" | cat; done < "$L"'):
            got, err = self.shell(loop)
            self.assertEqual(got, want, loop + "\n" + err)
            self.assertEqual(err.count(LEFT), 0 if "xargs" in loop else 2, loop + "\n" + err)

    def test_find_and_inherited_input_are_left_alone(self):
        want = self.alone("a")
        for script in ('find "$L" -exec $R run $A --json a \\;', 'run a', "python3 -c 'import os, subprocess; subprocess.run("
                       "[os.environ[\"R\"], \"run\", *os.environ[\"A\"].split(), \"--json\", "
                       "\"a\"])'"):
            cat = subprocess.Popen(["cat", self.list], stdout=subprocess.PIPE)
            cat.wait()
            got, err = self.shell(script, stdin=cat.stdout)
            cat.stdout.close()
            self.assertEqual(got, want, script)
            self.assertIn(LEFT, err)
            self.assertIn('"-"', err)
            self.assertEqual(err.count("\n"), 1, err)

    def test_nothing_is_said_where_nothing_waits(self):
        r, w = os.pipe()
        got, err = self.shell("run a; run a", stdin=r)
        self.assertEqual((got, err), (2 * self.alone("a"), ""))
        os.close(w)
        self.assertEqual(self.shell("run a", stdin=r), (self.alone("a"), ""))
        os.close(r)
        self.assertEqual(self.shell('while read -r x; do run -q "$x"; done < "$L"')[1], "")

    def test_json_has_a_field_for_it_also_with_quiet(self):
        for options in "", "-q ":
            loop = f'while read -r x; do $R run $A --json {options}"$x"; done < "$L"'
            p = subprocess.run(["sh", "-c", loop], capture_output=True, text=True, env=self.env,
                               timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
            done = [x for x in map(json.loads, p.stdout.splitlines()) if x["event"] == "done"]
            # After the last line, nothing waits.
            self.assertEqual([x.get("input_left") for x in done], [True, True, None], p.stdout)

    def test_data_that_arrives_late_is_mentioned(self):
        """The answer waits for its reader until the data is there."""
        r, w = os.pipe()
        out, full = os.pipe()
        os.set_blocking(full, False)
        try:
            while True:
                os.write(full, bytes(4096))
        except BlockingIOError:
            os.set_blocking(full, True)
        p = subprocess.Popen(["sh", "-c", "$R run $A a; true"], stdin=r, stdout=full,
                             stderr=subprocess.PIPE, text=True, env=self.env)
        os.close(full)
        os.write(w, b"late\n")
        while os.read(out, 65536):
            pass
        _, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(err.count(LEFT), 1, err)
        for fd in (r, w, out):
            os.close(fd)

    def test_a_dash_reads_it_in_any_case(self):
        both, = self.alone("a\n\nbb\nccc")
        only, = self.alone("bb\nccc")
        for args, want in (("a -", both), ("- a", both), ("-- -", only), ("-", only),
                           ("-p a -", both), ("-p -", only)):
            with open(self.list) as f:
                got, err = self.shell(f"read -r x; run {args}", stdin=f)
            self.assertEqual((got, err), ([want], ""), args)
        got, err = self.shell(f'$R run "{TINY}" --json -n 1 -b {budget(256)} -t 1 - < "$L"')
        self.assertEqual(got, self.alone("a\nbb\nccc"), err)


class Own(StdinCase):
    """A pipe or a file that was connected with memwall alone is read."""

    def test_pipes_and_files_are_read(self):
        want = self.alone("a\n\na\nbb\nccc")
        for script in ('cat "$L" | $R run $A --json a', '$R run $A --json a < "$L"',
                       '$R run $A --json -p a < "$L"', 'run a < "$L"; true'):
            self.assertEqual(self.shell(script), (want, ""), script)
        p = subprocess.run([MEMWALL, "run", *ARGS, "--json", "a"], input=LINES, text=True,
                           capture_output=True, timeout=TIMEOUT_S, env=self.env)
        self.assertEqual(json.loads(p.stdout.splitlines()[-1])["n_prompt"], want[0])

    def test_without_an_argument_it_is_always_read(self):
        want = self.alone("bb\nccc")
        with open(self.list) as f:
            got, err = self.shell("read -r x; run", stdin=f)
        self.assertEqual((got, err), (want, ""))

    def test_no_stdin_reads_nothing(self):
        self.assertEqual(self.shell('$R run $A --json --no-stdin a < "$L"'), (self.alone("a"), ""))
        got, err = self.shell('$R run $A --json --no-stdin < "$L"')
        self.assertEqual(got, [])
        self.assertIn("no prompt given", err)
        got, err = self.shell('$R run $A --json --no-stdin a - < "$L"')
        self.assertEqual(got, [])
        self.assertIn("cannot be combined", err)

    def test_a_closed_one_is_empty(self):
        self.assertEqual(self.shell("$R run $A --json a <&-"), (self.alone("a"), ""))

    def test_a_terminal_is_read_only_for_a_dash(self):
        master, slave = pty.openpty()
        p = self.started("run", *ARGS, "--json", "a", stdin=slave)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(json.loads(out.splitlines()[-1])["n_prompt"], self.alone("a")[0], err)
        p = self.started("run", *ARGS, "--json", "-", stdin=slave)
        self.assertIn("Ctrl-D ends it", p.stderr.readline())
        os.write(master, b"a\n\004")
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(json.loads(out.splitlines()[-1])["n_prompt"], self.alone("a")[0], err)
        os.close(slave)
        read_terminal(master)
        p.stdout.close()
        p.stderr.close()

    def test_the_screen_does_not_take_it(self):
        master, slave = pty.openpty()
        p = subprocess.run([MEMWALL, "chat", "-m", TINY, "-p", "-", "--plain"], text=True,
                           stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE,
                           env=self.env, timeout=TIMEOUT_S)
        os.close(slave)
        read_terminal(master)
        self.assertEqual(p.returncode, 2)
        self.assertIn("memwall run", p.stderr)


class Waiting(StdinCase):
    """A pipe that does not end: a line says so, and how to do without."""

    def waiting(self, *args, advice="", data=b""):
        """Start a command on a pipe that stays open."""
        r, w = os.pipe()
        p = self.started(*args, stdin=r)
        self.addCleanup(p.wait)
        os.close(r)
        os.write(w, data)
        return args, p, w, advice

    def test_every_command_says_that_it_waits(self):
        without = "; --no-stdin answers without it"
        for args, p, w, advice in [
                self.waiting("run", *ARGS, "hi", advice=without),
                self.waiting("run", *ARGS, "-p", "hi", advice=without),
                self.waiting("run", *ARGS, "-q", "hi", data=b"some text", advice=without),
                self.waiting("run", *ARGS),
                self.waiting("run", *ARGS, "hi", "-"),
                self.waiting("tokenize", "-m", TINY),
                self.waiting("tokenize", "-m", TINY, "--decode"),
                self.waiting("tokenize", "-m", TINY, "-"),
                self.waiting("eval", TINY, "--ids", "-", "--greedy", "1", "-b", budget(256)),
                self.waiting("eval", TINY, "--text", "-", "-b", budget(256), data=600 * b"word ")]:
            self.assertIn(WAITS + advice + "\n", p.stderr.readline())
            os.write(w, b"1 2 3")
            os.close(w)
            _, err = p.communicate(timeout=TIMEOUT_S)
            self.assertEqual(p.returncode, 0, (args, err))
            self.assertNotIn(WAITS, err)

    def test_a_fifo_without_a_writer_is_named(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for args in (["tokenize", "-m", TINY, "--decode", fifo],
                     ["eval", TINY, "--text", fifo, "-b", budget(256)],
                     ["eval", TINY, "--ids", fifo, "--greedy", "1", "-b", budget(256)]):
            p = self.started(*args, stdin=subprocess.DEVNULL)
            self.assertEqual(f"memwall: waiting for the end of {fifo}\n", p.stderr.readline())
            with open(fifo, "wb") as f:
                f.write(b"1 2 3")
            out, err = p.communicate(timeout=TIMEOUT_S)
            self.assertEqual((0, ""), (p.returncode, err), args)
            self.assertNotEqual("", out)


class Endless(StdinCase):
    """Inputs that have no end are refused, not read forever."""

    def test_devices_without_an_end_are_refused_by_every_option_with_a_file(self):
        for args in (["tokenize", "-m", TINY], ["tokenize", "-m", TINY, "--chat"],
                     ["tokenize", "-m", TINY, "--chat", "/dev/null", "--template"],
                     ["tokenize", "-m", TINY, "--decode"], ["eval", TINY, "--text"],
                     ["eval", TINY, "--greedy", "1", "--ids"],
                     ["report", "--no-measure", "-o", self.path("x"), "--bench"],
                     ["report", "--no-measure", "-o", self.path("x"), "--sweep"],
                     ["report", "--no-measure", "-o", self.path("x"), "--recording"],
                     ["replay", "--once"], ["inspect", "-m"]):
            for device in ("/dev/zero", "/dev/urandom"):
                p = self.started(*args, device, stdin=subprocess.DEVNULL)
                out, err = p.communicate(timeout=TIMEOUT_S)
                self.assertEqual((1, ""), (p.returncode, out[:100]), args)
                self.assertRegex(err, "device|is not a result", args)
                self.assertIn(device, err)
                self.assertEqual(1, err.count("\n"), err)

    def test_so_are_they_as_standard_input(self):
        with open("/dev/zero", "rb") as zero:
            for args in (["tokenize", "-m", TINY], ["eval", TINY, "--text", "-"],
                         ["run", *ARGS]):
                p = self.started(*args, stdin=zero)
                out, err = p.communicate(timeout=TIMEOUT_S)
                self.assertEqual((1, ""), (p.returncode, out[:100]), args)
                self.assertIn("standard input: is a device without an end", err)

    def test_a_recording_is_a_file(self):
        os.mkfifo(self.path("fifo"))
        for args in (["replay", "--once"],
                     ["report", "--no-measure", "-o", self.path("x"), "--recording"]):
            p = self.started(*args, self.path("fifo"), stdin=subprocess.DEVNULL)
            _, err = p.communicate(timeout=TIMEOUT_S)
            self.assertEqual(1, p.returncode)
            self.assertIn("is a FIFO or a device", err)

    def test_a_text_that_takes_days_is_refused_before_it_is_evaluated(self):
        with open(self.path("long"), "wb") as f:
            f.truncate((1 << 30) + 1)
        p = self.started("eval", TINY, "--text", self.path("long"), "-b", budget(256),
                         stdin=subprocess.DEVNULL)
        _, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(1, p.returncode)
        self.assertIn("is longer than 1.00 GiB", err)
        self.assertIn("head -c", err)


class Plain(HomeCase):
    """A plain chat on a terminal, whose lines come from a pipe."""

    def run_lines(self, model, lines, *args):
        """Returns the exit status and the screen."""
        r, w = os.pipe()
        os.write(w, lines)
        os.close(w)
        t = Terminal("chat", "--plain", "-m", model, "-b", budget(100), *args, home=self.folder,
                     before=lambda: os.dup2(r, 0), cols=160, rows=60)
        os.close(r)
        self.addCleanup(t.close)
        while t.pump(30):
            self.assertIsNotNone(t.process.poll(), t.screen())  # it waits for nothing
        return t.process.wait(30), t.screen()

    def test_without_a_model_the_chat_ends(self):
        g = Gguf(TINY)
        g.keys["tokenizer.ggml.model"] = (STR, "unheard-of")
        model = self.path("refused.gguf")
        g.write(model)
        for args in (), ("--no-save",):
            for first, n in ((), 0), (("-p", "first"), 1):
                for lines, more in (b"", 0), (b"hi\n", 1), (b"hi\nthere", 2), \
                        (b"/ctx 300\ny\nhi\n", 1):
                    with self.subTest(args=args, first=first, lines=lines):
                        status, screen = self.run_lines(model, lines, *args, *first)
                        self.assertEqual(1, status)
                        self.assertIn('the tokenizer "unheard-of" is not supported', screen)
                        what = f"{n + more} message" + (" is" if n + more == 1 else "s are")
                        self.assertEqual(
                            n + more > 0,
                            f"the model is not loaded, so {what} not answered" in screen, screen)

    def test_an_empty_line_of_a_pipe_sends_nothing_again(self):
        status, screen = self.run_lines(TINY, b"hi\n/undo\n\n", "-n", "1")
        self.assertEqual(0, status)
        self.assertIn("taken back: hi", screen)
        self.assertEqual(1, screen.count("1 token,"), screen)

    def test_a_change_in_the_last_line_is_applied(self):
        status, screen = self.run_lines(TINY, b"/ctx 300\ny\n")
        self.assertEqual(0, status)
        self.assertIn("now: context 300", screen)


if __name__ == "__main__":
    unittest.main()
