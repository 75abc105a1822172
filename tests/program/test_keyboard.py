#!/usr/bin/env python3
"""Keys in the encodings of many terminals, and the modes of the terminal."""
import os
import re
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain  # noqa: E402
from gguf_edit import U32  # noqa: E402
from program import MODELS, SRCDIR, HomeCase, budget  # noqa: E402
from terminal import OddTerminal, Terminal  # noqa: E402

TINY = os.path.join(MODELS, "llama-tiny.gguf")
RECORDING = os.path.join(SRCDIR, "tests", "data", "dash", "session.jsonl")
ARGS = ["-m", TINY, "-b", budget(256), "-t", "1", "--temp", "0", "-n", "12"]
CONTROL_KEYS = b"\033[=0;1u\033[>4;0m\033[?9001l"  # makes Ctrl-C a signal


def under_a_shell():
    """Run in the child: it becomes a job of a small shell.  The shell reports a stop and continues
    the job at once."""
    pid = os.fork()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.setpgid(pid, pid)
    except PermissionError:  # the child did it, and runs the program already
        pass
    if pid == 0:
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        return
    os.closerange(3, 256)
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(os.WEXITSTATUS(status))
        os.write(1, b"STOPPED")
        os.kill(pid, signal.SIGCONT)


def behind_another():
    """Run in the child: another process group is in the foreground of the terminal."""
    pid = os.fork()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.setpgid(pid, pid)
    except PermissionError:  # the child did it, and runs the program already
        pass
    if pid == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        return
    os.closerange(3, 256)
    _, status = os.waitpid(pid, 0)
    os._exit(os.WEXITSTATUS(status))


class KeyboardCase(HomeCase):
    def start(self, *args, **more):
        t = Terminal(*args, home=self.folder, **more)
        self.addCleanup(t.close)
        return t

    def chat(self, *args, **more):
        t = self.start(*ARGS, *args, **more)
        self.assertTrue(t.sees("ready"), t.screen())
        return t

    def assert_line(self, t, text, key):
        """The input line has this text, after the key and what was typed after it."""
        for _ in range(600):
            if line(t) == text:
                return
            t.pump(0.02)
        self.assertEqual(line(t), text, repr(key) + "\n" + t.screen())

    def assert_ends(self, t, status=0):
        t.pump(30)
        self.assertEqual(t.process.wait(30), status)

    def assert_order(self, raw, *parts):
        at = 0
        for part in parts:
            self.assertIn(part, raw[at:])
            at = raw.index(part, at) + len(part)


def line(t):
    lines = [x for x in t.screen().splitlines() if x.startswith(">")]
    return lines[-1][1:].strip() if lines else ""


# Each is sent after "ab cd", and then "X".
EDITING = [
    ("\033[7~", "Xab cd"), ("\033[1~", "Xab cd"), ("\033[H", "Xab cd"), ("\033OH", "Xab cd"),
    ("\033[1;1H", "Xab cd"), ("\033[57423u", "Xab cd"), ("\033[97;5u", "Xab cd"),
    ("\033[97;133u", "Xab cd"), ("\033[27;5;97~", "Xab cd"), ("\033[36;71;0;1;256;1_", "Xab cd"),
    ("\033Od", "ab Xcd"), ("\033[1;5D", "ab Xcd"), ("\033[5D", "ab Xcd"), ("\033\033[D", "ab Xcd"),
    ("\033[98;3u", "ab Xcd"), ("\033[1;3D", "ab Xcd"),
    ("\033[1;129D", "ab cXd"), ("\033OD", "ab cXd"), ("\033[d", "ab cXd"), ("\233D", "ab cXd"),
    ("\033[127u", "ab cX"), ("\033[127;129u", "ab cX"), ("\033[8;14;8;1;0;1_", "ab cX"),
    ("\033[119;5u", "ab X"), ("\033[27;5;119~", "ab X"),
    ("\033Op\033Oy\033Ok", "ab cd09+X"), ("\033[57400u", "ab cd1X"), ("\033[101u", "ab cdeX"),
    ("\033[101;2u", "ab cdEX"), ("\033[69;18;101;1;0;1_", "ab cdeX"),
    # Nothing of these is text.
    ("\033[101;1:3u", "ab cdX"), ("\033[57441;2u", "ab cdX"), ("\033[57358u", "ab cdX"),
    ("\033[[F", "ab cdX"), ("\033[28~", "ab cdX"), ("\033OE", "ab cdX"), ("\033[5$", "ab cdX"),
    ("\033[1;1R", "ab cdX"), ("\033[?62;4c", "ab cdX"), ("\033[>0;115;0c", "ab cdX"),
    ("\033]11;rgb:0000/0000/0000\033\\", "ab cdX"),
    ("\033]52;c;" + 3000 * "QUJD" + "\a", "ab cdX"),
    ("\033P>|foot(1.16)\033\\", "ab cdX"), ("\033_Gi=1;OK\033\\", "ab cdX"),
    ("\033[M\"\xa1\xa1".encode("latin-1"), "ab cdX"), ("\033[M\"ââ", "ab cdX"),
    ("\033[34;50;5M", "ab cdX"), ("\033[<66;50;5M", "ab cdX"), ("\033[<129;50;5m", "ab cdX"),
    ("\033[I\033[O", "ab cdX"), ("\033[201~", "ab cdX"), ("\033[1;2;3;4;5;6;7!z", "ab cdX"),
    ("\033[48;24;80;600;800t", "ab cdX"), ("\033[65;30;97;0;0;1_", "ab cdX"),
]


class Keys(KeyboardCase):
    def test_keys_of_every_terminal_edit_the_line(self):
        t = self.chat("--view", "chat")
        for key, after in EDITING:
            t.send("\025\013ab cd")
            self.assert_line(t, "ab cd", key)
            t.send(key)
            t.send("X")
            self.assert_line(t, after, key)

    def test_ends_of_a_text_line(self):
        t = self.chat("--view", "chat")
        start, end = ["\001", "\033[H", "\033[1;2H"], ["\005", "\033[F", "\033[1;2F"]
        rows = [*[(key + "X", "aa\n  Xbb\n  cc") for key in start],
                *[(key + "X", "aa\n  bbX\n  cc") for key in end],
                ("\013X", "aa\n  bX\n  cc"), ("\013\013X", "aa\n  bXcc"),
                ("\025X", "aa\n  Xb\n  cc"), ("\025\025X", "aaXb\n  cc"),
                ("\013\013\031X", "aa\n  bb\n  Xcc")]
        for keys, after in rows:
            t.send("aa\nbb\ncc\033[D\033[A")  # the cursor is between the letters of "bb"
            self.assertTrue(t.sees("> aa\n  bb\n  cc"), repr(keys) + t.screen())
            t.send(keys)
            self.assertTrue(t.sees("> " + after + "\n"), repr(keys) + t.screen())
            t.send("\003")
            self.assert_line(t, "", keys)

    def test_ends_of_a_text_line_in_vi_mode(self):
        inputrc = self.path("inputrc")
        with open(inputrc, "w") as f:
            f.write("set editing-mode vi\n")
        t = self.chat("--view", "chat", env={"INPUTRC": inputrc})
        for keys, after in [("0iX", "aa\n  Xbb\n  cc"), ("IX", "aa\n  Xbb\n  cc"),
                            ("AX", "aa\n  bbX\n  cc"), ("0DiX", "aa\n  X\n  cc"),
                            ("0CX", "aa\n  X\n  cc"), ("0d$iX", "aa\n  X\n  cc")]:
            t.send("aa\nbb\ncc\033[A\033")
            self.assertTrue(t.sees("> aa\n  bb\n  cc", "vi command"), repr(keys) + t.screen())
            t.send(keys)
            self.assertTrue(t.sees("> " + after + "\n"), repr(keys) + t.screen())
            t.send("\003")
            self.assert_line(t, "", keys)

    def test_operators_of_vi_take_text_lines(self):
        inputrc = self.path("inputrc")
        with open(inputrc, "w") as f:
            f.write("set editing-mode vi\n")
        t = self.chat("--view", "chat", env={"INPUTRC": inputrc})
        rows = [("ddiX", "aa\n  Xcc"), ("jddiX", "aa\n  Xbb"), ("kddiX", "Xbb\n  cc"),
                ("2ddiX", "Xaa"), ("kd2diX", "Xcc"), ("9ddiX", "Xaa"), ("k3ddiX", "X"),
                ("ddu", "aa\n  bb\n  cc"), ("dd.iX", "Xaa"), ("dd..iX", "X"),
                ("0dlddiX", "aa\n  Xcc"), ("0yyPiX", "aa\n  bXbbb\n  cc"),
                ("ccX", "aa\n  X\n  cc"), ("SX", "aa\n  X\n  cc"), ("0sX", "aa\n  Xb\n  cc"),
                ("jccX", "aa\n  bb\n  X"), ("kSX", "X\n  bb\n  cc"), ("c2cX", "aa\n  X"),
                ("ccX\033jSY", "aa\n  X\n  Y"), ("0DccX", "aa\n  X\n  cc"),
                ("ccY\033j.aX", "aa\n  Y\n  YX"), ("SY\033k.aX", "YX\n  Y\n  cc")]
        for keys, after in rows:
            t.send("aa\nbb\ncc\033[A")
            self.assertTrue(t.sees("> aa\n  bb\n  cc"), repr(keys) + t.screen())
            for piece in keys.split("\033"):
                self.assertTrue(t.sees("vi insert"), repr(keys) + t.screen())
                t.send("\033")
                self.assertTrue(t.sees("vi command"), repr(keys) + t.screen())
                t.send(piece)
            self.assertTrue(t.sees("> " + after + "\n"), repr(keys) + t.screen())
            t.send("\003")
            self.assert_line(t, "", keys)

    def test_a_sequence_in_two_pieces_is_not_typed(self):
        t = self.chat("--view", "chat")
        for head, tail in [("\033[1;", "5D"), ("\033[200", "~pasted\033[2"),
                           ("\033]11;rgb", ":0/0/0\a"),
                           ("\033[99;", "5u"), ("\033[<0;5", "0;5M"), ("\033O", "d")]:
            t.send("\025\013ab cd")
            self.assert_line(t, "ab cd", head)
            t.send(head)
            if "\033[200" not in head and "\033O" not in head:
                t.pump(0.1)  # longer than Esc waits
            t.send(tail)
            t.send("01~X" if "[200" in head else "X")
            self.assert_line(t, {"5D": "ab Xcd", "d": "ab Xcd", "5u": "X"}.get(
                tail, "ab cdpastedX" if "[200" in head else "ab cdX"), head)

    def test_enter_and_its_relatives(self):
        t = self.chat("--view", "chat")
        for key in ["\033OM", "\033[13u", "\033[13;129u", "\033[57414u", "\033[27;1;13~",
                    "\033[13;28;13;1;32;1_"]:
            t.send("/temp")
            t.send(key)
            self.assertTrue(t.sees("the temperature is"), repr(key))
            t.send("/clear\r")
            self.assertTrue(t.loses("the temperature is"), t.screen())
            self.assert_line(t, "", key)
        for key in ["\033[13;2u", "\033[13;130u", "\033[27;2;13~", "\033[13;3u", "\033\r",
                    "\033O2M"]:
            t.send("one" + key + "two")
            self.assertTrue(t.sees("> one\n  two"), repr(key) + t.screen())
            t.send("\003")
            self.assert_line(t, "", key)

    def test_function_keys(self):
        t = self.chat()
        for key in ["\033[[A", "\033OP", "\033[11~", "\033[P", "\033[1;129P",
                    "\033[112;59;0;1;0;1_"]:
            t.send(key)
            self.assertTrue(t.sees("Esc: close"), repr(key))
            t.send("\033[27u" if key == "\033[P" else "\033[27;129u")
            self.assertTrue(t.loses("Esc: close"), repr(key))
        self.assert_line(t, "", "")

    def test_control_c_clears_and_leaves(self):
        for key in ["\033[99;5u", "\033[99;197u", "\033[27;5;99~", "\033[67;46;3;1;8;1_",
                    "\033[1089::99;5u"]:
            t = self.chat("--view", "chat")
            t.send("text")
            self.assert_line(t, "text", key)
            t.send(key)
            self.assert_line(t, "", key)
            t.send(key + key)
            self.assert_ends(t)

    def test_control_d_leaves_and_its_release_does_not(self):
        for key in ["\033[100;5u", "\033[100;69u", "\033[27;5;100~"]:
            t = self.chat("--view", "chat")
            t.send("\033[100;5:3u")
            t.send("on")
            self.assert_line(t, "on", key)
            t.send("\025" + key)
            self.assert_ends(t)

    def test_a_side_button_presses_nothing(self):
        t = self.chat("--view", "both", rows=40)
        before = [x for x in t.screen().splitlines() if "layers" in x]
        self.assertTrue(before, t.screen())
        y = t.screen().splitlines().index(before[0]) + 2
        for button in (128, 129, 130, 131, 66, 67):
            t.send(f"\033[<{button};90;{y}M\033[<{button};90;{y}m")
            t.send("X")
            self.assert_line(t, "X", button)
            self.assertNotIn("streamed", "\n".join(t.screen().splitlines()[y:y + 1]))
            t.send("\025")

    def test_the_replay_takes_them(self):
        for key in ["\033[113u", "\033[99;5u", "\033[27;5;99~", "\033[68;32;4;1;8;1_"]:
            t = self.start("replay", RECORDING)
            self.assertTrue(t.sees("Space: pause"), t.screen())
            t.send("\033[99;5:3u\033[57441;2u\033[<128;5;5M")
            t.send(key)
            self.assert_ends(t)

    def test_plain_mode_drops_them(self):
        t = self.start(*ARGS, "--plain")
        self.assertTrue(t.sees("/help"), t.screen())
        t.send("/te\033[D\033OMmp\033[1;5D\033[[A \033[<0;1;1M0.\033[200~5\033[201~"
               "\033]11;rgb:0\a\n")
        t.send("/temp\n")
        self.assertTrue(t.sees("the temperature is 0.5"), t.screen())
        t.send("some text \033[99;5u\n")  # the terminal passes it on with the line
        self.assertTrue(t.sees("Ctrl-C again"), t.screen())
        t.send("\033[99;5u\n")
        self.assert_ends(t)
        self.assertNotIn(b"\033", t.raw.replace(CONTROL_KEYS, b"", 1))

    def test_text_is_utf8_in_any_locale(self):
        for env in {"LC_ALL": "C"}, {"LC_ALL": "", "LANG": ""}, {"LC_ALL": "xx_XX.UTF-8"}:
            t = self.chat("--view", "chat", env=env)
            t.send("où — wörld мир e\u0301")
            self.assert_line(t, "o? ? w?rld ??? ?", env)
            t.send("\033[D\177X")
            self.assert_line(t, "o? ? w?rld ???X?", env)
            self.assertTrue(all(byte < 0x80 for byte in t.raw))
            t.send("\r")
            self.assertTrue(t.sees("tok/s", "peak"), t.screen())
            t.send("/quit\r")
            self.assert_ends(t)
            chats = self.path(".local/share/memwall/chats")
            newest = max((entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(chats)
                         if entry.name.endswith(".jsonl"))[1]
            with open(newest, encoding="utf-8") as f:
                self.assertIn("où — wörld мирXe\u0301", f.read())

    def test_a_binding_of_inputrc_wins(self):
        inputrc = self.path("inputrc")
        with open(inputrc, "w") as f:
            f.write('"\\e[7~": "home"\n"\\e[13;5u": "enter"\n')
        t = self.chat("--view", "chat", env={"INPUTRC": inputrc})
        t.send("a \033[7~ \033[13;5u")
        self.assert_line(t, "a home enter", "")


class Modes(KeyboardCase):
    KNOWN = [b"\033>", b"\033[?1l", b"\033[?9001l", b"\033[2;4;20l", b"1000;1001;1002;1003l",
             b"\033[>4;0m", b"\033[?7h", b"\033(B\017", b"\033[0m"]
    ON = [b"\033[?1049h", b"\033[>0u", b"\033[?6l", b"\033[?2004h"]
    OFF = [b"\033[?2004l", b"\033[<u", b"\033[?1049l"]

    def test_modes_are_known_at_the_start_and_restored_at_the_end(self):
        t = self.chat()
        self.assert_order(t.raw, *self.KNOWN, *self.ON)
        self.assertNotIn(b"\033[<u", t.raw)
        t.send("\004")
        self.assert_ends(t)
        self.assert_order(t.raw, *self.ON, *self.OFF)
        self.assertEqual(t.raw.count(b"\033[>0u"), 1)
        self.assertEqual(t.raw.count(b"\033[<u"), 1)

    def test_modes_are_restored_after_a_signal_and_a_crash(self):
        for sig in signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV:
            if sig == signal.SIGSEGV and "MW_SANITIZED" in os.environ:
                continue
            t = self.chat()
            n = len(t.raw)
            os.kill(t.process.pid, sig)
            self.assert_ends(t, -sig if sig == signal.SIGSEGV else 128 + sig)
            self.assert_order(t.raw[n:], *self.OFF)

    def test_a_stop_restores_them_and_takes_them_back(self):
        for key in "\032", "\033[122;5u":
            t = self.chat(before=under_a_shell)
            n = len(t.raw)
            t.send(key)
            t.send("on")
            self.assert_line(t, "on", key)
            self.assert_order(t.raw[n:], *self.OFF, b"STOPPED", *self.KNOWN, *self.ON)
            t.send("\025\004")
            self.assert_ends(t)

    def test_an_editor_gets_the_ordinary_modes(self):
        editor = self.path("editor")
        with open(editor, "w") as f:
            f.write('#!/bin/sh\necho EDITOR >/dev/tty\necho edited > "$1"\n')
        os.chmod(editor, 0o755)
        t = self.chat(env={"EDITOR": editor, "VISUAL": editor})
        n = len(t.raw)
        t.send("\033[120;5u\033[101;5u")
        self.assert_line(t, "edited", "")
        self.assert_order(t.raw[n:], *self.OFF, b"EDITOR", *self.KNOWN, *self.ON)

    def test_the_console_of_linux_gets_what_it_knows(self):
        t = self.chat(env={"TERM": "linux"})
        t.send("\004")
        self.assert_ends(t)
        self.assertNotIn(b"\033[>", t.raw)
        self.assertNotIn(b"\033[<", t.raw)
        self.assertIn(b"\033[?1l", t.raw)


class LeftByOthers(KeyboardCase):
    """An earlier program has not ended its mode of the keyboard, and Ctrl-C must still stop."""

    def odd(self, mode, *args, **more):
        t = OddTerminal(mode, *args, home=self.folder, **more)
        self.addCleanup(t.close)
        return t

    def endless(self):
        """Options that give a model whose answers do not end."""
        words = ["\n", "a", "b", " "]
        model = chain(self.folder, "m", dict(zip(words, words[1:] + words[1:2])),
                      keys={"qwen2.context_length": (U32, 1 << 16)}).path
        return ["-m", model, "-b", budget(256), "-t", "1", "-c", "64k"]

    def assert_stops(self, t):
        self.assertTrue(t.is_normal(30), t.screen())
        t.control_c()
        t.pump(30)
        # The default action before the command has its own.
        self.assertIn(t.process.wait(30), (130, -signal.SIGINT), t.screen())

    def test_an_answer_of_run_stops(self):
        for mode in OddTerminal.MODES:
            t = self.odd(mode, "run", *self.endless(), "-q", "hello")
            n = len(CONTROL_KEYS)
            while len(t.raw) < n + 40 and t.pump(0.05):
                pass
            self.assertGreaterEqual(len(t.raw), n + 40)
            t.control_c()
            t.pump(30)
            self.assertEqual(t.process.wait(30), 130, mode)

    def test_an_answer_in_plain_mode_stops(self):
        for mode in OddTerminal.MODES:
            t = self.odd(mode, *self.endless(), "--plain")
            self.assertTrue(t.sees("/help"), t.screen())
            t.send("hello\n")  # the notice about the model may come after it
            self.assertTrue(t.sees("ab ab ab"), mode + t.screen())
            t.control_c()
            self.assertTrue(t.sees("/continue resumes"), mode + t.screen())
            t.send("/quit\n")
            self.assert_ends(t)

    def test_other_commands_stop(self):
        hub = socket.create_server(("127.0.0.1", 0))  # accepts, and never answers
        self.addCleanup(hub.close)
        text = self.path("text")
        with open(text, "w") as f:
            f.write("some words " * 20000)
        for args in (["bench", TINY, "-n", "5000"], ["sweep", TINY], ["doctor"],
                     ["report", TINY, "-o", self.path("page.html")],
                     ["eval", TINY, "--text", text, "-c", "64k"], ["pull", "org/name"],
                     ["run", "-m", TINY, "-"]):
            with self.subTest(args[0]):
                self.assert_stops(self.odd("kitty", *args, env={
                    "HF_ENDPOINT": "http://127.0.0.1:%d" % hub.getsockname()[1]}))

    def test_an_answer_on_the_screen_stops_by_each_encoding(self):
        t = self.start(*self.endless(), "--view", "chat")
        self.assertTrue(t.sees("ready"), t.screen())
        for key in ["\033[99;5u", "\033[99;197u", "\033[27;5;99~", "\033[67;46;3;1;8;1_",
                    "\033[1089::99;5u"]:
            t.send("hello\r")
            self.assertTrue(t.sees("answering"), t.screen())
            t.send(key)
            self.assertTrue(t.sees("/continue resumes", "ready"), repr(key) + t.screen())
            t.send("/clear\r")
            self.assertTrue(t.loses("/continue resumes"), t.screen())

    def test_only_a_terminal_in_front_gets_them(self):
        for args in (["list"], ["plan", TINY]):
            t = self.start(*args)
            t.pump(30)
            self.assertTrue(t.raw.startswith(CONTROL_KEYS), t.raw[:80])
        for term in ("dumb", "", "vt100", "linux"):
            t = self.start("list", env={"TERM": term})
            t.pump(30)
            self.assertNotIn(b"\033", t.raw)
        t = self.start("completions", "list")
        t.pump(30)
        self.assertNotIn(b"\033[=", t.raw)
        t = self.start("list", before=behind_another)
        t.pump(30)
        self.assertNotIn(b"\033[=", t.raw)


class Overlays(KeyboardCase):
    """A box over the screen keeps the function keys from what it covers.  The choice of a message
    (F9) covers nothing, and any key ends it."""
    # Each function key with its trace on the screen; None: the screen is not the same after it.
    KEYS = (("1", "\033OP", "Answers and sampling"), ("2", "\033OQ", None),
            ("3", "\033OR", None), ("4", "\033OS", None), ("5", "\033[15~", None),
            ("7", "\033[18~", "\\]52;"), ("8", "\033[19~", "no code block to"),
            ("9", "\033[20~", "choose a message"), ("10", "\033[21~", "Change: |to change|measured yet|bad moment|budget is possible|faster"))
    # Keys that open each overlay, text in it, and the function keys that it has itself.
    OVERLAYS = (("/help temp\r", "at start", "1"), ("/help dashboard\r", "~ marks an estimate", "1"),
                ("/ctx 8k\r", "Change: ctx 8,192", ""), ("/chats\r", "d: delete", ""),
                ("/theme\r", "Enter: keep", ""), ("/delete first\r", "Delete this chat?", ""),
                ("/model\r", "Enter opens", ""), ("/find\r", "Enter: search", ""))

    def setUp(self):
        super().setUp()
        words = ["\n", "<think>", "x", "</think>", "#", " ", "b", "<|im_end|>"]
        model = chain(self.folder, "m", dict(zip(words, words[1:])),
                      user=("<think>", "</think>")).path
        self.t = self.start("chat", "-m", model, "-b", budget(100), "--view", "chat", "--temp",
                            "0", "--blas", "never", rows=70)
        self.see("/help lists")
        self.type("hi\r", "7 tokens")
        self.type("/rename first\r", 'is now "first"')

    def see(self, *words):
        self.assertTrue(self.t.sees(*words), self.t.screen())

    def type(self, keys, *words):
        self.t.send(keys)
        self.see(*words)

    def close(self, shown):
        """Close an overlay, and wait until all keys have come."""
        self.t.send("\033")
        self.assertTrue(self.t.loses(shown), self.t.screen())
        self.type("~", "> ~")
        self.t.send("\x7f")
        self.assertTrue(self.t.loses("> ~"), self.t.screen())

    def chat(self):
        return [x for x in self.t.screen().split("\n")[:-4] if x]

    def test_function_keys_stay_in_the_overlay(self):
        for opens, shown, own in self.OVERLAYS:
            for number, key, trace in self.KEYS:
                if number in own.split():
                    continue
                with self.subTest(opens=opens, key=number):
                    before = self.chat()
                    self.type(opens, shown)
                    at = len(self.t.raw)
                    self.t.send(key)
                    self.close(shown)
                    self.assertEqual(before, self.chat())
                    if trace is not None:
                        self.assertNotRegex(self.t.raw[at:].decode(errors="replace"), trace)

    def test_the_keys_have_their_effect_without_an_overlay(self):
        for number, key, trace in self.KEYS:
            with self.subTest(key=number):
                before, at = self.chat(), len(self.t.raw)
                self.t.send(key)
                if trace is None:
                    self.type("~", "> ~")
                    self.t.send("\025")
                    self.assertTrue(self.t.loses("> ~"), self.t.screen())
                    self.assertNotEqual(before, self.chat())
                    continue
                for _ in range(100):
                    raw = self.t.raw[at:].decode(errors="replace")
                    if re.search(trace, raw):
                        break
                    self.t.pump(0.1)
                self.assertRegex(raw, trace)
                self.t.send("\033")
                self.assertTrue(self.t.loses("Esc: close"), self.t.screen())

    def test_f1_in_a_help_goes_to_another_help(self):
        self.type("/help\r", "Answers and sampling")
        self.type("\033OP", "~ marks an estimate")
        self.type("\033OP", "Answers and sampling")


class OneScreen(KeyboardCase):
    """Terminals that keep the picture, because they have no second screen."""

    def test_text_after_it_begins_on_an_empty_row(self):
        for term in "linux", "vt100", "ansi":
            for says in "", "hello":
                with self.subTest(term=term, says=says):
                    t = self.chat("--view", "chat", env={"TERM": term})
                    if says:
                        t.send(says + "\r")
                        self.assertTrue(t.sees("token limit"), t.screen())
                    t.send("/quit\r")
                    self.assert_ends(t)
                    self.assertNotIn("of 512", t.screen(), t.screen())
                    if says:
                        self.assertRegex(t.screen(), r"(?m)^The chat is saved in .*\.jsonl$")


if __name__ == "__main__":
    unittest.main()
