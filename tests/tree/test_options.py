#!/usr/bin/env python3
"""The command line: help, usage errors, completions and man pages come from one table."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, SRCDIR, memwall  # noqa: E402


def table():
    """Returns (command, option, letter, argument, group, help, values) of all options."""
    lines = memwall("completions", "list").stdout.splitlines()
    return [row for row in (line.split("\t") for line in lines) if row[1] != "-"]


COMMANDS = sorted({row[0] for row in table()})


class Help(unittest.TestCase):
    def test_every_command_lists_its_options(self):
        for command in COMMANDS:
            r = memwall(command, "--help")
            self.assertEqual((0, ""), (r.returncode, r.stderr), command)
            for row in table():
                if row[0] == command:
                    self.assertRegex(r.stdout, rf"(?m)^  .*{row[1]}\b", command)
            self.assertIn("Exit status: 0 done, 1 failed, 2 wrong usage, 3 does not fit",
                          r.stdout)
            self.assertRegex(r.stdout, rf"(?m)^Examples:\n  .*memwall\b", command)
            self.assertLessEqual(max(map(len, r.stdout.splitlines())), 80, command)

    def test_the_program_lists_its_commands(self):
        r = memwall("--help")
        self.assertEqual(0, r.returncode)
        for command in COMMANDS:
            self.assertRegex(r.stdout, rf"(?m)^  {command} ")
        self.assertLessEqual(max(map(len, r.stdout.splitlines())), 80)

    def test_help_is_shown_even_if_other_arguments_are_wrong(self):
        self.assertEqual(0, memwall("run", "--help", "--memory").returncode)
        self.assertEqual(0, memwall("run", "--help", config="nonsense").returncode)

    def test_version_names_features_and_kernels(self):
        r = memwall("--version")
        self.assertEqual(0, r.returncode)
        self.assertRegex(r.stdout, r"\Amemwall \d+\.\d+\.\d+\n")
        self.assertRegex(r.stdout, r"(?m)^kernels +\w+")


class Usage(unittest.TestCase):
    def wrong(self, args, *texts):
        r = memwall(*args)
        self.assertEqual(2, r.returncode, (args, r.stderr))
        self.assertEqual("", r.stdout, args)
        for text in texts:
            self.assertIn(text, r.stderr, args)
        self.assertRegex(r.stderr, r'"memwall( \w+)? --help"', args)
        self.assertNotIn("\x1b", r.stderr)

    def test_values_are_checked_strictly(self):
        for option, values in {
            "--ctx": ["0", "-1", "12x", "", " 5", "1e3", "4294967296", "99999999999999999999"],
            "--memory": ["", "3X", "-1G", "101%", "nan", "G"],
            "--kv": ["f64", "", "q8", "f16 q8", "f16 q8_0 ", "F16"],
            "--kv-k": ["f16 q8_0"],
            "--io": ["fast", "mmap:", "mmap:keep:drop"],
            "--threads": ["0", "1025", "two"],
            "--temp": ["nan", "inf", "-0.1", "0x1", "1,5", "1.0 ", ""],
            "--top-p": ["1.5", "-1"],
            "--top-k": ["-1", "1.5"],
            "--format": ["", "nope", "gemma"],
            "--seed": ["-1", "18446744073709551616", "1.0"],
            "--repeat-penalty": ["0"],
        }.items():
            for value in values:
                self.wrong(["run", "-m", "x.gguf", option, value, "hi"], option)
                self.wrong(["run", "-m", "x.gguf", f"{option}={value}", "hi"], option)

    def test_an_unknown_chat_format_is_answered_with_those_there_are(self):
        self.wrong(["run", "-m", "x.gguf", "--format", "nope", "hi"],
                   '--format: "nope" is not a chat format', " gemma4, ", " chatml, ", " raw")

    def test_good_values_get_as_far_as_the_model(self):
        for args in (["--ctx", "32k"], ["--ctx=1"], ["-c8192"], ["--memory", "1.5GiB"],
                     ["-b", "50%"], ["--memory=auto"], ["--kv", "f16 q8_0"], ["--kv-k", "q8_0", "--kv-v", "q4_0"],
                     ["--io", "mmap:drop"], ["--temp", "0"], ["--temp", ".5"],
                     ["--seed", "18446744073709551615"], ["-qn", "5"], ["-qn5"],
                     ["--system", "--odd"], ["--raw", "--", "--prompt"]):
            r = memwall("run", "-m", "/nonexistent/x.gguf", *args)
            self.assertEqual(1, r.returncode, (args, r.stderr))
            self.assertIn("/nonexistent/x.gguf", r.stderr)

    def test_mistakes_are_named(self):
        self.wrong(["evla"], '"evla"')
        self.wrong(["run", "--thikn", "-m", "x"], '"--thikn"', '"--think"')
        self.wrong(["run", "-m", "x", "-z"], '"-z"')
        self.wrong(["run", "-m"], "-m", "MODEL")
        self.wrong(["run", "-m", "x", "--raw=yes"], "--raw")
        self.wrong(["run", "-m", "x", "one", "two"], '"two"')
        self.wrong(["plan"], "-m FILE", "memwall list")
        self.wrong(["plan", "x", "y"], '"y"')
        self.wrong(["plan", "x", "--temp", "1"], '"--temp"')
        self.wrong(["eval", "x.gguf"], "--ids", "--text")
        self.wrong(["eval", "x.gguf", "--ids", "a", "--text", "b"], "--text")

    def test_a_hostile_argument_is_cleaned_for_display(self):
        self.wrong(["run", "-m", "x", "--kv", "\x1b]0;title\x07"], "--kv")
        self.wrong(["\x1b[2J"], "neither")

    def test_the_model_may_be_the_first_word(self):
        for args in (["plan", "/nonexistent/x.gguf"], ["/nonexistent/x.gguf"],
                     ["chat", "/nonexistent/x.gguf"], ["-m", "/nonexistent/x.gguf"]):
            r = memwall(*args, stdin="hello")
            self.assertEqual(1, r.returncode, (args, r.stderr))
            self.assertIn("/nonexistent/x.gguf", r.stderr)


class Config(unittest.TestCase):
    def test_a_wrong_line_is_named(self):
        for text, want in {
            "\n# fine\nmemory = 3X\n": 'line 3: memory: "3X"',
            "ctx\n": "line 1",
            "colour = never\n": '"colour" is not a setting',
            "quiet = perhaps\n": 'quiet: "perhaps"',
            "system = \"open\n": "quote",
            "system = \"a\" b\n": "quote",
            "version = yes\n": '"version" is not a setting',
            "format = nope\n": 'line 1: format: "nope" is not a chat format; use none, gemma4',
        }.items():
            r = memwall("run", "-m", "x", "hi", config=text)
            self.assertEqual(1, r.returncode, (text, r.stderr))
            self.assertIn(want, r.stderr)
            self.assertIn("memwall/config", r.stderr)

    def test_a_model_of_the_file_that_is_not_found_is_named_with_its_line(self):
        r = memwall("run", "hi", config="# mine\nmodel = nope\n")
        self.assertEqual(1, r.returncode, r.stderr)
        self.assertRegex(r.stderr, r'memwall/config: line 2: model: .*"nope"')
        self.assertIn("/line.gguf", memwall("run", "-m", "/line.gguf", "hi",
                                            config="model = nope\n").stderr)

    def test_the_command_line_overrides_the_file(self):
        file = 'model = /nonexistent/file.gguf\nmemory = "2G"\nquiet = off\n'
        self.assertIn("/nonexistent/file.gguf", memwall("run", "hi", config=file).stderr)
        self.assertIn("/nonexistent/line.gguf",
                      memwall("run", "-m", "/nonexistent/line.gguf", "hi", config=file).stderr)
        self.assertIn("/nonexistent/line.gguf",
                      memwall("plan", "/nonexistent/line.gguf", config=file).stderr)

    def test_eval_reads_no_file(self):
        r = memwall("eval", "--ids", "x", config="model = /nonexistent/file.gguf\n")
        self.assertEqual(2, r.returncode)


class Tables(unittest.TestCase):
    maxDiff = None

    def test_the_list_has_the_values_of_options_and_arguments(self):
        lines = memwall("completions", "list").stdout.splitlines()
        values = {tuple(row[:2]): row[6] for row in (line.split("\t") for line in lines)}
        for (command, option), want in {
                ("chat", "-"): ":models", ("run", "-"): ":files", ("tokenize", "-"): ":model",
                ("replay", "-"): ".jsonl", ("run", "--model"): ":models",
                ("chat", "--theme"): ":themes", ("chat", "--open"): ":chats",
                ("run", "--telemetry"): ":files", ("run", "--top-k"): ":none",
                ("run", "--raw"): "-", ("run", "--kv"): "f32 f16 q8_0 q4_0"}.items():
            self.assertEqual(want, values[command, option], (command, option))
        self.assertRegex(values["run", "--format"], r"^none .*\bgemma4 .*chatml .*\braw$")

    def test_man_pages_are_up_to_date(self):
        r = subprocess.run(["sh", os.path.join(SRCDIR, "share", "update_tables.sh"), MEMWALL,
                            SRCDIR, "--check"], capture_output=True, text=True)
        self.assertEqual(0, r.returncode, r.stdout + r.stderr)

    def test_the_man_page_names_every_command(self):
        with open(os.path.join(SRCDIR, "man", "memwall.1"), encoding="utf-8") as f:
            text = f.read()
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^\.B {command}$")
            self.assertIn(rf".BR memwall\-{command} (1)", text)
        for code in ("0", "1", "2", "3", "130"):
            self.assertRegex(text, rf"(?m)^\.B {code}$")

    def test_man_pages_carry_the_version(self):
        version = memwall("--version").stdout.split()[1]
        folder = os.path.join(SRCDIR, "man")
        for name in sorted(os.listdir(folder)):
            if re.search(r"\.[15]$", name):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    self.assertIn(f'"memwall {version}"', f.readline(), name)

    def test_the_roles_of_themes_are_listed(self):
        with open(os.path.join(SRCDIR, "ui", "look", "role.c"), encoding="utf-8") as f:
            roles = re.findall(r'\[ROLE_\w+\] = "(\w+)"', f.read())
        with open(os.path.join(SRCDIR, "man", "memwall.conf.5"), encoding="utf-8") as f:
            page = f.read()
        self.assertGreater(len(roles), 40)
        for role in roles:
            if not re.match("ramp_[1-6]$", role):
                self.assertRegex(page, rf"(?m)^\.BR? .*\b{role}\b")

    def test_the_weight_types_that_run_are_listed(self):
        def read(*path):
            with open(os.path.join(SRCDIR, *path), encoding="utf-8") as f:
                return f.read()

        table = read("engine", "format", "type_table.h").split("#define OTHER_TYPES")[0]
        types = re.findall(r"^    X\((\w+), ", table, flags=re.M)
        self.assertGreater(len(types), 20)
        for page in (read("README.md"), read("man", "memwall.1")):
            listed = page.split("Weights can have the types ")[1].split(".")[0]
            self.assertEqual(sorted(types), sorted(re.findall(r"\b[A-Z]\w+", listed)))

    def test_the_architectures_that_run_are_listed(self):
        def read(*path):
            with open(os.path.join(SRCDIR, *path), encoding="utf-8") as f:
                return f.read()

        table = read("engine", "format", "arch.c").split("archs[] = {")[1].split("\n};")[0]
        names = sorted(set(re.findall(r'\.name = "([^"]+)"', table)))
        types = set(re.findall(r'\{ "([^"]+)", "[^"]+" \}', table))
        self.assertGreater(len(names), 40)
        page = read("man", "memwall.1").replace("\\-", "-")
        listed = page.split("by their names in GGUF files:")[1].split(".SS")[0].rstrip(".\n")
        self.assertEqual(names, re.split(r",\s+|\sand\s", listed.strip()))
        rows = [row.split("|") for row in read("README.md").split("\n") if
                row.startswith("| ") and row.count("|") == 6 and "`" in row.split("|")[2]]
        self.assertEqual(names, sorted({x for r in rows for x in re.findall("`([^`]+)`", r[2])}))
        known = {x for r in rows for x in re.findall("`([^`]+)`", r[3])}
        # "and their `_text`" names two of Gemma 4.
        self.assertEqual(set(), (types ^ known) - {"gemma4_text", "gemma4_unified_text", "_text"})

    def test_keys_of_the_chat_are_listed(self):
        def read(*path):
            with open(os.path.join(SRCDIR, *path), encoding="utf-8") as f:
                return f.read()

        page = read("man", "memwall-chat.1").replace("\\-", "-").replace("\\e", "\\")
        table = read("ui", "talk", "help.c").split("rows[] = {")[1].split("sheet_line")[0]
        keys = re.findall(r'\{ "([^"]*)", "([^"]*)" \}', table)
        self.assertGreater(len(keys), 15)
        for name, text in keys:
            name = name.replace("\\\\", "\\")
            self.assertIn(f'.B "{name}"\n{text}\n', page, name)

    def test_every_option_belongs_to_a_command_and_has_help(self):
        for row in table():
            self.assertEqual(7, len(row), row)
            self.assertRegex(row[1], r"^--[a-z0-9-]+$")
            self.assertGreater(len(row[5]), 8, row)


class Bash(unittest.TestCase):
    def complete(self, *words):
        script = f"""
            source "$1"; shift
            compopt() {{ :; }}
            memwall() {{
                case "$*" in
                "list --names")
                    printf '%s\\n' gemma-4-E2B-it:Q4_0 gemma-4-E2B-it:BF16 org/name:Q8_0 ;;
                "completions list") "$MEMWALL" completions list ;;
                "completions themes") printf '%s\\n' auto dark gruvbox-dark gruvbox-light ;;
                "completions chats") printf '%s\\n' 2026-11-20-12.00.00 "a trip to Rome" ;;
                esac
            }}
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            _memwall memwall "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.mkdir(os.path.join(folder.name, "models"))
        for name in "gemma.gguf", "README.md", "mine.theme", "talk.jsonl":
            open(os.path.join(folder.name, name), "w", encoding="utf-8").close()
        try:
            r = subprocess.run(["bash", "-c", script, "bash",
                                os.path.join(SRCDIR, "share", "completions", "memwall"), *words],
                               capture_output=True, text=True, cwd=folder.name,
                               env={**os.environ, "MEMWALL": os.path.abspath(MEMWALL)})
        except FileNotFoundError:
            self.skipTest("bash is not installed")
        self.assertEqual("", r.stderr)
        return r.stdout.strip().split("\n") if r.stdout.strip() else []

    def test_commands_options_and_words(self):
        self.assertEqual(["run"], self.complete("memwall", "ru"))
        self.assertEqual({"--temp", "--telemetry"}, set(self.complete("memwall", "run", "--te")))
        self.assertEqual(["--kv", "--kv-k", "--kv-v", "--kv-disk", "--kv-space"],
                         self.complete("memwall", "run", "--kv"))
        self.assertEqual(["f32", "f16"], self.complete("memwall", "run", "--kv", "f"))
        self.assertEqual(["always"], self.complete("memwall", "--color", "al"))
        self.assertIn("32k", self.complete("memwall", "run", "--ctx", ""))
        self.assertIn("2G", self.complete("memwall", "run", "--memory", ""))
        self.assertEqual(["auto"], self.complete("memwall", "run", "--threads", ""))
        self.assertEqual(["--temp"], self.complete("memwall", "--temp"))
        self.assertEqual([], self.complete("memwall", "plan", "--temp"))
        self.assertEqual(["README.md"], self.complete("memwall", "run", "-m", "READ"))

    def test_arguments_of_commands(self):
        self.assertEqual(["run"], self.complete("memwall", "help", "ru"))
        self.assertIn("replay", self.complete("memwall", "help", ""))
        self.assertEqual(["models", "talk.jsonl"], self.complete("memwall", "replay", ""))
        for command in "tokenize", "doctor", "report":
            self.assertIn("org/name:Q8_0", self.complete("memwall", command, ""), command)
        self.assertEqual(["README.md"], self.complete("memwall", "tokenize", "x.gguf", "READ"))

    def test_names_of_themes_and_files(self):
        self.assertEqual(["gruvbox-dark", "gruvbox-light"],
                         self.complete("memwall", "--theme", "gr"))
        self.assertEqual(["auto", "dark", "gruvbox-dark", "gruvbox-light"],
                         self.complete("memwall", "replay", "x.jsonl", "--theme", ""))
        self.assertEqual(["./mine.theme"], self.complete("memwall", "--theme", "./mi"))

    def test_names_of_chats(self):
        self.assertEqual(["2026-11-20-12.00.00", "a\\ trip\\ to\\ Rome"],
                         self.complete("memwall", "--open", ""))
        self.assertEqual(["a\\ trip\\ to\\ Rome"], self.complete("memwall", "--open", "a"))
        self.assertEqual([], self.complete("memwall", "--open", "README"))

    def test_the_program_prints_the_names(self):
        with tempfile.TemporaryDirectory() as home:
            themes = os.path.join(home, ".config/memwall/themes")
            chats = os.path.join(home, ".local/share/memwall/chats")
            os.makedirs(themes)
            os.makedirs(chats)
            with open(os.path.join(themes, "mine.theme"), "w", encoding="utf-8") as f:
                f.write("dim = 7\n")
            env = {"HOME": home, "PATH": os.environ["PATH"]}
            r = subprocess.run([MEMWALL, "completions", "themes"], env=env, text=True,
                               capture_output=True)
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            for name in "auto", "light", "nord", "mine":
                self.assertIn(name + "\n", r.stdout)
            r = subprocess.run([MEMWALL, "completions", "chats"], env=env, text=True,
                               capture_output=True)
            self.assertEqual((0, "", ""), (r.returncode, r.stdout, r.stderr))

    def test_names_of_models(self):
        self.assertEqual(["org/name:Q8_0"], self.complete("memwall", "run", "-m", "org/"))
        self.assertEqual(["org/name:Q8_0"], self.complete("memwall", "plan", "ORG/n"))
        self.assertEqual(["gemma-4-E2B-it:Q4_0", "gemma-4-E2B-it:BF16", "gemma.gguf"],
                         self.complete("memwall", "run", "-m", "gem"))
        self.assertEqual(["models"], self.complete("memwall", "run", "-m", "mo"))
        # Bash cuts the word at the colon, and so are the offers.
        self.assertEqual(["Q4_0", "BF16"],
                         self.complete("memwall", "run", "-m", "gemma-4-E2B-it", ":"))
        self.assertEqual(["Q4_0"],
                         self.complete("memwall", "run", "-m", "gemma-4-E2B-it", ":", "Q4"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
