#!/usr/bin/env python3
"""Budget, context, types of keys and values, threads and io come back: with a chat, and with a
model.  The system message comes back with a chat."""
import glob
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from chain_model import chain  # noqa: E402
from program import SRCDIR, FolderCase, MeasuredHome, budget  # noqa: E402
from terminal import Terminal  # noqa: E402

FIXED = ("--color", "never", "--temp", "0", "--blas", "never")
WORDS = ["\n", "a", "b", "<|im_end|>"]
SMALL, LARGE = budget(64), budget(80)


def said(size):
    """Returns a budget as all sentences write it."""
    mib = int(size.removesuffix("M"))
    return f"{mib:.{1 if mib < 100 else 0}f} MiB"
MODEL = "as last time with this model"
CHAT = "as in this chat before"


class Kept(FolderCase):
    @classmethod
    def setUpClass(cls):
        """Share limits of the machine, which are measured once."""
        holder = MeasuredHome()
        cls.addClassCleanup(holder.cleanup)
        cls.cache = os.path.join(holder.name, ".cache")
        os.makedirs(cls.cache, exist_ok=True)

    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.folder, "home")
        os.makedirs(self.home)
        os.symlink(self.cache, os.path.join(self.home, ".cache"))
        self.model = self.make("m")

    def make(self, name):
        return chain(self.folder, name, dict(zip(WORDS, WORDS[1:])), eos=WORDS[-1]).path

    def path(self, *names):
        return os.path.join(self.home, ".local", *names)

    def chats(self):
        return glob.glob(self.path("share", "memwall", "chats", "*.jsonl"))

    def put_kept(self, text):
        path = self.path("state", "memwall", "settings")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text.encode() if isinstance(text, str) else text)

    def run_chat(self, *args, model=None, mode="--plain", lines=(), first="/help lists commands"):
        """Chat with these lines, each with what it shows.  Returns all that was printed."""
        t = Terminal("chat", "-m", model or self.model, mode, *FIXED, *args, home=self.home,
                     rows=50, cols=200)
        self.addCleanup(t.close)
        self.assertTrue(t.sees(first), t.screen())
        for line, shown in lines:
            t.send(line + "\r")
            self.assertTrue(t.sees(shown), t.screen())
        t.send("/quit\r")
        seen = t.screen()
        while t.pump(1):
            pass
        t.process.wait()
        return seen + t.screen()

    SAY = ("hi", "3 tokens")

    def test_a_chat_keeps_its_settings(self):
        args = "-b", SMALL, "-c", "512", "--kv", "q8_0 q4_0", "-t", "1", "--io", "buffered"
        for mode in "--plain", "--ascii":
            with self.subTest(mode=mode):
                seen = self.run_chat(*args, mode=mode, lines=[self.SAY])
                self.assertNotIn("--memory", seen)  # the command to resume needs no options
                self.put_kept("")  # those of the model
                seen = self.run_chat("--continue", mode=mode)
                for words in (f"budget {said(SMALL)}, context 512, keys and values q8_0 q4_0, threads 1,"
                              f" io buffered, {CHAT}"):
                    self.assertIn(words, seen)
                self.assertIn("context 512", seen)

    def test_the_command_line_wins_over_a_chat(self):
        self.run_chat("-b", SMALL, "-c", "512", lines=[self.SAY])
        seen = self.run_chat("--continue", "-c", "256", lines=[("/ctx", "the context is 256")])
        self.assertIn(f"budget {said(SMALL)}, {CHAT}", seen)

    def test_a_change_in_the_chat_is_kept(self):
        self.run_chat("-b", LARGE, "-c", "512",
                      lines=[self.SAY, ("/ctx 1k", "y or n"), ("y", "now: context 1,024")])
        self.put_kept("")
        seen = self.run_chat("--continue", lines=[("/ctx", "the context is 1,024")])
        self.assertIn(f"budget {said(LARGE)}, context 1,024, {CHAT}", seen)

    def test_a_chat_opened_on_the_screen_has_its_settings(self):
        self.run_chat("-b", LARGE, "-c", "512", lines=[self.SAY])
        os.rename(self.chats()[0], os.path.join(os.path.dirname(self.chats()[0]), "old.jsonl"))
        self.put_kept("")
        seen = self.run_chat("-b", LARGE, lines=[("/open old", "now: context 512"),
                                                 ("/ctx", "the context is 512")])
        self.assertIn(f"* context 512, {CHAT}", seen)

    def test_a_chat_of_another_model_keeps_its_settings_for_itself(self):
        self.run_chat("-b", SMALL, "-c", "512", lines=[self.SAY])
        chat, = self.chats()
        with open(chat, encoding="utf-8") as f:
            text = f.read()
        with open(chat, "w", encoding="utf-8") as f:
            f.write(text.replace('"model":"', '"model":"not ')
                    .replace('"model_name":"', '"model_name":"not '))
        self.put_kept("")
        self.assertNotIn(CHAT, self.run_chat("--continue"))

    def systems(self):
        """Returns the system messages in the chat, in their order."""
        chat, = self.chats()
        with open(chat, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        return [line["text"] for line in lines if line.get("role") == "system"]

    # The keys and values are those of the same conversation, so it has the same system message.
    RESUMED = "tokens of this chat were read from disk"

    def resume(self, shown, *args, mode="--plain"):
        """Resume the chat.  Returns what is printed until /system shows the words."""
        return self.run_chat("--continue", *args, mode=mode, first=self.RESUMED,
                             lines=[("/system", shown)])

    def test_a_chat_keeps_its_system_message(self):
        for mode in "--plain", "--ascii":
            with self.subTest(mode=mode):
                for chat in self.chats():
                    os.unlink(chat)
                self.run_chat("--system", "be kind", mode=mode, lines=[self.SAY])
                self.resume('the system message is "be kind"', mode=mode)
                self.run_chat("--continue", mode=mode, lines=[self.SAY])
                self.assertEqual(["be kind"], self.systems())

    def test_a_system_message_that_was_changed_or_removed_comes_back_so(self):
        self.run_chat("--system", "be kind",
                      lines=[self.SAY, ("/system be brief", '"be brief", from the next')])
        self.assertEqual(["be kind", "be brief"], self.systems())
        self.run_chat("--continue", lines=[("/system", '"be brief"'), ("ho", "3 tokens")])
        self.resume('the system message is "be brief"')
        self.run_chat("--continue", lines=[("/system none", "there is no system message"),
                                           ("ha", "3 tokens")])
        self.resume("there is no system message")
        self.assertEqual(["be kind", "be brief", ""], self.systems())
        seen = self.run_chat("--continue", mode="--ascii", lines=[("/system", "no system message")])
        self.assertIn("# be kind", seen)
        self.assertIn("no system message from here on", seen)

    def test_a_system_message_stays_when_its_place_is_taken_back(self):
        self.run_chat(lines=[self.SAY, ("/system be brief", '"be brief", from the next'),
                             ("ho", "ho\nab\n"), ("/rewind 2", "taken back: hi")])
        self.run_chat("--continue", lines=[("/system", 'the system message is "be brief"')])

    def test_the_command_line_wins_over_the_system_message_of_a_chat(self):
        self.run_chat("--system", "be kind", lines=[self.SAY])
        self.run_chat("--continue", "--system", "be brief",
                      lines=[("/system", 'the system message is "be brief"')])
        self.assertEqual(["be kind"], self.systems())  # it had no part in the chat yet
        self.run_chat("--continue", "--system", "be brief", lines=[self.SAY])
        self.resume('the system message is "be brief"')
        self.run_chat("--continue", "--system", "none", lines=[self.SAY])
        self.resume("there is no system message")
        self.assertEqual(["be kind", "be brief", ""], self.systems())

    def test_a_chat_wins_over_the_system_message_of_the_configuration(self):
        config = os.path.join(self.home, ".config", "memwall", "config")
        os.makedirs(os.path.dirname(config))

        def configure(text):
            with open(config, "w", encoding="utf-8") as f:
                f.write(f"system = {text}\n")

        configure("be kind")
        self.run_chat(lines=[self.SAY])
        configure("be brief")
        self.resume('the system message is "be kind"')
        self.run_chat("--continue", lines=[("/system none", "there is no system message")])
        self.run_chat("--continue", lines=[("/system", "there is no system message")])
        self.run_chat(lines=[("/system", 'the system message is "be brief"')])

    def test_a_chat_opened_on_the_screen_has_its_system_message(self):
        self.run_chat("--system", "be kind", lines=[self.SAY])
        os.rename(self.chats()[0], os.path.join(os.path.dirname(self.chats()[0]), "old.jsonl"))
        with_system = ("/open old", "opened"), ("/system", 'the system message is "be kind"')
        self.run_chat(mode="--ascii", lines=with_system)
        self.run_chat("--system", "be brief", lines=[("/open old", "opened"),
                                                     ("/system", 'message is "be brief"')])
        os.rename(self.chats()[0], self.chats()[0].replace("old", "kind"))
        self.run_chat(lines=[self.SAY])
        plain, = (c for c in self.chats() if "kind" not in c)
        os.rename(plain, os.path.join(os.path.dirname(plain), "plain.jsonl"))
        self.run_chat(lines=[("/open kind", "opened"), ("/system", '"be kind"'),
                             ("/open plain", "opened"), ("/system", "there is no system")])

    def test_hostile_system_messages(self):
        self.run_chat(lines=[self.SAY])
        chat, = self.chats()
        with open(chat, encoding="utf-8") as f:
            whole = f.read()
        for value, shown in (('"a\\u001b[2Jb"', "system message is"), ("7", "no system message"),
                             ('"a\\u0000b"', 'system message is "a"'),
                             ('"' + "x" * (3 << 19) + '"', "no system message")):
            with self.subTest(value=value[:20]):
                with open(chat, "w", encoding="utf-8") as f:
                    f.write(whole + '{"role":"system","text":' + value + "}\n")
                seen = self.run_chat("--continue", lines=[("/system", shown)])
                self.assertNotIn("\033[2J", seen)
                if len(value) > 1 << 20:
                    self.assertIn("the system message of this chat is not used: ", seen)

    def test_a_model_keeps_the_last_settings(self):
        self.run_chat("-b", SMALL, "-c", "512")
        seen = self.run_chat(lines=[("/ctx 256", "y or n"), ("y", "now: context 256")])
        self.assertIn(f"budget {said(SMALL)}, context 512, {MODEL}", seen)
        seen = self.run_chat(lines=[("/ctx", "the context is 256")])
        self.assertIn(f"budget {said(SMALL)}, context 256, {MODEL}", seen)
        self.assertNotIn(MODEL, self.run_chat(model=self.make("other")))

    def test_another_model_gets_the_settings_of_the_chat_and_says_so(self):
        other = self.make("other")
        self.run_chat("-b", LARGE, "-c", "256", model=other)
        seen = self.run_chat("-b", SMALL, "-c", "512",
                             lines=[(f"/model {other}", "the last chat with this model had"),
                                    ("/ctx", "the context is 512"),
                                    ("/memory", f"the budget is {said(SMALL)}")])
        words = " ".join(seen.replace("*", " ").split())
        self.assertIn("with the settings of this chat, "
                      f"budget {said(SMALL)}, context 512; the next message evaluates", words)
        self.assertIn(f"the last chat with this model had budget {said(LARGE)}, context 256", words)
        # Settings that nobody chose are not named, and neither are equal ones.
        other = self.make("third")
        seen = self.run_chat(lines=[("/forget", "are forgotten"),
                                    (f"/model {other}", "the next message evaluates")])
        self.assertNotIn("settings of this chat,", seen)
        self.assertNotIn("the last chat with this model", seen)

    def test_options_and_configuration_win_over_a_model(self):
        self.run_chat("-b", SMALL, "-c", "512")
        config = os.path.join(self.home, ".config", "memwall", "config")
        os.makedirs(os.path.dirname(config))
        with open(config, "w", encoding="utf-8") as f:
            f.write("ctx = 300\n")
        seen = self.run_chat(lines=[("/ctx", "the context is 300")])
        self.assertIn(f"budget {said(SMALL)}, {MODEL}", seen)
        self.assertNotIn(MODEL, self.run_chat("-b", LARGE))

    def test_forget(self):
        self.run_chat("-b", SMALL, "-c", "512", lines=[self.SAY, ("/forget", "are forgotten")])
        self.assertNotIn(MODEL, self.run_chat())
        seen = self.run_chat("--continue")
        self.assertNotIn(CHAT, seen)
        self.assertNotIn(MODEL, seen)

    def test_a_budget_that_does_not_fit_is_not_kept(self):
        self.run_chat("-b", SMALL, lines=[("/memory 1M", "needs")])
        self.assertIn(f"budget {said(SMALL)}, {MODEL}", self.run_chat())

    def test_a_kept_budget_that_does_not_fit_is_named(self):
        self.put_kept(f"memory 1M\t{os.path.realpath(self.model)}\n")
        seen = self.run_chat(first="options such as --memory auto replace them")
        self.assertIn(f"budget 1.00 MiB, {MODEL}", seen)

    def test_a_kept_budget_that_the_machine_cannot_give_is_lowered(self):
        self.put_kept(f"memory 900000G\t{os.path.realpath(self.model)}\n")
        seen = self.run_chat(lines=[self.SAY])
        self.assertIn("budget 879 TiB, ", seen)
        self.assertIn("lowered", seen)
        with open(self.chats()[0], encoding="utf-8") as f:  # the wish stays
            settings, = [json.loads(x)["settings"] for x in f if x.startswith('{"settings"')]
        self.assertEqual(settings, "memory 900000G")

    def test_the_list_of_models_has_the_settings_and_the_speed(self):
        listed = self.path("share", "memwall", "models", "m-F32.gguf")
        os.makedirs(os.path.dirname(listed))
        os.rename(self.model, listed)
        guide = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
        self.run_chat("-b", budget(90), model=guide)
        t = Terminal(home=self.home, rows=24, cols=80)
        self.addCleanup(t.close)
        self.assertTrue(t.sees("> memwall-guide", f"< budget {said(budget(90))} >", " tok/s"),
                        t.screen())
        self.assertRegex(t.screen(), r"> memwall-guide .* ~[0-9,.]+\?? tok/s")
        t.send("\033[B")
        self.assertTrue(t.sees("> m:F32", "< budget auto >"), t.screen())
        t.send("\033")

    def test_hostile_settings(self):
        path = os.path.realpath(self.model)
        for text in (f"ctx 0, kv q9_9, threads -1, io telepathy\t{path}\n", f"\t{path}\n",
                     f"model /etc/passwd, telemetry x, ctx\t{path}\n",
                     f"{'ctx 1,' * 100}ctx 512\t{path}\n", f"ctx 512\t{path}", "\0\xff\n" * 99,
                     b"\xff\xfe\0" * 1000, "ctx 512\t" + "/" * 70000 + "\n"):
            self.put_kept(text)
            seen = self.run_chat(lines=[("/ctx", "the context is 2,048")])
            self.assertNotIn(MODEL, seen)
        chat = self.path("share", "memwall", "chats", "bad.jsonl")
        os.makedirs(os.path.dirname(chat), exist_ok=True)
        self.run_chat(lines=[self.SAY])
        with open(self.chats()[0], encoding="utf-8") as f:
            whole = f.read()
        for value in ('"ctx 0, memory -5, io x"', "7", '["ctx 512"]', '"' + "ctx 512, " * 40 + '"',
                      "null", '{"ctx":512}'):
            with open(chat, "w", encoding="utf-8") as f:
                f.write(whole + '{"settings":' + value + "}\n")
            self.put_kept("")
            seen = self.run_chat("--open", "bad", lines=[("/ctx", "the context is 2,048")])
            self.assertNotIn(CHAT, seen)


if __name__ == "__main__":
    unittest.main()
