#!/usr/bin/env python3
"""Rules for the tree: includes, calls that the engine must not make, file lists, plain English."""
import os
import re
import shlex
import shutil
import subprocess
import unittest

import references
import words

SRCDIR = os.environ.get("MW_SRCDIR") or os.path.join(os.path.dirname(__file__), "..", "..")

# A room may include rooms of a lower rank; among equals there must be no cycle.
RANK = {
    "engine": {
        "base": 0,
         "draft": 1, "format": 1, "http": 1, "limits": 1, "machine": 1, "telemetry": 1,
         "grammar": 2, "plan": 2,
        "stream": 3, "kv": 3, "compute": 3, "text": 3,
        "model": 4,
        "api": 5,
        "session": 6,
        "hub": 7, "remote": 7,
    },
    "ui": {
        "words": 0,
        "look": 1,
        "options": 2,
        "term": 3,
        "chart": 4, "engine": 4, "text": 4, "dash": 4, "pick": 4,
        "store": 5,
        "talk": 6,
        "app": 7,
    },
    "src": {
        "base": 0,
        "machine": 1, "models": 2, "text": 2,
        "plan": 3, "doctor": 3, "measure": 3,
        "report": 4, "serve": 4,
        "commands": 5,
    },
}
# Headers outside the rooms, and the only rooms that may include them (None: every room).
FACES = {"engine/memwall.h": {"session", "hub", "remote"}, "ui/ui.h": {"pick", "talk", "app"},
         "src/command.h": None, "src/settings.h": {"measure", "commands"}}
# The rooms of ui that know no terminal.  src/ may include all of their headers.
SHARED = {"words", "look", "options"}
# The headers of other rooms of ui that src/ may include: the screen, and parts of it that print.
UI_PUBLIC = {"ui/ui.h", "ui/chart/chart.h", "ui/dash/dash.h", "ui/dash/player.h",
             "ui/engine/local.h", "ui/engine/remote.h", "ui/store/store.h", "ui/talk/commands.h",
             "ui/talk/help_answer.h"}
# Public headers are memwall.h, those of api/, and these, which describe plain data or a separate
# service.  Only these and base/ come with a public header.
PUBLIC = {
    "engine/format/": {"defaults", "json", "summary"},
    "engine/grammar/": {"grammar"},
    "engine/hub/": {"models", "pull"},
    "engine/limits/": {"limits", "store", "tried"},
    "engine/machine/": {"cage", "disturb", "energy", "fact", "load", "machine", "os_value"},
    "engine/plan/": {"anchor", "table", "times"},
    "engine/remote/": {"remote"},
    "engine/telemetry/": {"json", "lines", "rates", "recorder", "replay", "sample", "shares"},
}
MESSAGES_SINCE = "2026-11-26T23:00:00Z"
LONGEST_SUBJECT = 72

# Only src/ and ui/ may print, end the process, read the environment, take signals and use the
# terminal.
FORBIDDEN = re.compile(
    r"\b(printf|puts|putchar|perror|vprintf|exit|_exit|_Exit|quick_exit|abort|getenv|"
    r"secure_getenv|setenv|signal|sigaction|setlocale|system|popen)\s*\(|"
    r"\b(stdout|stderr|environ)\b|#\s*include\s*<(curses|ncurses|term|readline)")
# The plan is arithmetic: it uses neither memory nor files.
IMPURE = re.compile(r"\b(malloc|calloc|realloc|free|mmap|open|read|pread|fopen|time|"
                    r"clock_gettime)\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|WIP)\b")
# Folders of one machine do not belong in the tree.
FOREIGN_PATH = re.compile(r"(?<![\w.$)}/-])/(work|home|Users|workspace)/\w")


def read(path):
    with open(os.path.join(SRCDIR, path), encoding="utf-8") as f:
        return f.read()


def files(*folders, ext=(".c", ".h")):
    for folder in folders:
        for at, dirs, names in os.walk(os.path.join(SRCDIR, folder)):
            dirs[:] = [d for d in dirs if not d.startswith((".", "__", "build"))]
            for name in sorted(names):
                if name.endswith(ext):
                    yield os.path.relpath(os.path.join(at, name), SRCDIR)


def prose(top):
    """Returns the files that people read: one file, or those of a folder.  It must exist."""
    path = os.path.join(SRCDIR, top)
    if os.path.isdir(path):
        return list(files(top, ext=words.TYPES))
    return [top]


def code_only(text):
    """Remove comments and the contents of strings.  Lines keep their numbers."""
    def blank(m):
        s = m.group(0)
        return '""' if s[0] == '"' else "''" if s[0] == "'" else "\n" * s.count("\n")
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank,
                  text, flags=re.S)


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(path), flags=re.M)


def reachable(start, arrows):
    """Returns everything that start leads to; start itself only if it is in a cycle."""
    seen, todo = set(), list(arrows.get(start, ()))
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo += arrows.get(at, ())
    return seen


def public_headers():
    rooms = {room + name + ".h" for room, names in PUBLIC.items() for name in names}
    return rooms | {"engine/memwall.h"} | set(files("engine/api", ext=(".h",)))


class Tree(unittest.TestCase):
    maxDiff = None

    def none(self, complaints):
        self.assertEqual([], complaints, "\n" + "\n".join(complaints))

    def test_src_and_ui_include_only_public_headers_and_base_of_the_engine(self):
        public = public_headers()
        self.none([f"{f}: {i}" for f in files("src", "ui") for i in includes(f)
                   if i.startswith("engine/") and i not in public
                   and not i.startswith("engine/base/")])

    def test_public_headers_bring_only_public_headers_and_base(self):
        public = public_headers()
        arrows = {f: includes(f) for f in files("engine", ext=(".h",))}
        self.none([f"{f}: {i}" for f in sorted(public) for i in sorted(reachable(f, arrows))
                   if i not in public and not i.startswith("engine/base/")])

    def test_memwall_h_brings_every_public_header(self):
        arrows = {f: includes(f) for f in files("engine", ext=(".h",))}
        self.assertEqual(set(), public_headers() - {"engine/memwall.h"} -
                         reachable("engine/memwall.h", arrows))

    def test_every_public_header_includes_all_that_it_needs(self):
        """A compiler reads each public header alone, in C and without a warning."""
        compiler = shlex.split(os.environ.get("CC", "cc"))
        if shutil.which(compiler[0]) is None:
            self.skipTest(f"no compiler {compiler[0]}")
        bad = []
        for f in sorted(public_headers()):
            done = subprocess.run(compiler + ["-std=gnu11", "-Wall", "-Werror", "-I", SRCDIR,
                                              "-fsyntax-only", "-x", "c", "-"],
                                  input=f'#include "{f}"\n', capture_output=True, text=True)
            if done.returncode != 0:
                bad.append(f"{f}: {done.stderr.strip()}")
        self.none(bad)

    def test_the_engine_includes_neither_src_nor_ui(self):
        self.none([f"{f}: {i}" for f in files("engine") for i in includes(f)
                   if i.startswith(("src/", "ui/", "tests/"))])

    def test_ui_does_not_include_src(self):
        self.none([f"{f}: {i}" for f in files("ui") for i in includes(f)
                   if i.startswith("src/")])

    def test_src_includes_shared_rooms_and_public_headers_of_ui(self):
        used = {i for f in files("src") for i in includes(f) if i.startswith("ui/")}
        self.none([i for i in sorted(used)
                   if i not in UI_PUBLIC and i.split("/")[1] not in SHARED])
        self.assertEqual(set(), UI_PUBLIC - used, "src/ does not use them; remove them")

    def test_shared_rooms_know_no_terminal(self):
        rooms = [f"ui/{room}" for room in sorted(SHARED)]
        self.none([f"{f}: {i}" for f in files(*rooms) for i in includes(f)
                   if i.startswith("ui/") and i.split("/")[1] not in SHARED] +
                  [f"{f}: <{i}>" for f in files(*rooms)
                   for i in re.findall(r"^\s*#\s*include\s+<((?:n?curses|term|readline)[^>]*)>",
                                       read(f), flags=re.M)])

    def test_rooms_include_only_rooms_below_them(self):
        bad = []
        for house, rank in RANK.items():
            equals = {}
            for f in files(house):
                parts = f.split(os.sep)
                if len(parts) < 3:
                    continue
                room = parts[1]
                for i in includes(f):
                    p = i.split("/")
                    if p[0] != house:
                        continue
                    if len(p) < 3:
                        if FACES[i] is not None and room not in FACES[i]:
                            bad.append(f"{f}: {i}")
                        continue
                    if p[1] == room:
                        continue
                    if rank[p[1]] > rank[room]:
                        bad.append(f"{f}: {i}")
                    elif rank[p[1]] == rank[room]:
                        equals.setdefault(room, set()).add(p[1])
            for start in equals:
                ring = reachable(start, equals)
                if start in ring:
                    bad.append(f"rooms in a ring: {start}, {sorted(ring)}")
        self.none(bad)

    def test_modules_of_ui_have_no_include_cycles(self):
        """A module is NAME.c, NAME.h and NAME_internal.h.  A cycle through any of them counts."""
        def module(path):
            return re.sub(r"(_internal)?\.[ch]$", "", path)

        to = {}
        for f in files("ui"):
            to.setdefault(module(f), set()).update(
                module(i) for i in includes(f)
                if i.startswith("ui/") and module(i) != module(f))
        rings = {tuple(sorted(reachable(m, to) & {n for n in to if m in reachable(n, to)}))
                 for m in to if m in reachable(m, to)}
        self.none([" ".join(r) for r in sorted(rings)])

    def test_every_room_has_a_rank(self):
        for house, rank in RANK.items():
            rooms = {f.split(os.sep)[1] for f in files(house) if f.count(os.sep) > 1}
            self.assertEqual(set(), rooms - set(rank))

    def test_the_engine_neither_prints_nor_ends_the_process(self):
        bad = []
        for f in files("engine"):
            for n, line in enumerate(code_only(read(f)).split("\n"), 1):
                if FORBIDDEN.search(line):
                    bad.append(f"{f}:{n}: {line.strip()}")
        self.none(bad)

    def test_the_plan_is_arithmetic_only(self):
        bad = []
        for f in files("engine/plan"):
            for n, line in enumerate(code_only(read(f)).split("\n"), 1):
                if IMPURE.search(line):
                    bad.append(f"{f}:{n}: {line.strip()}")
        self.none(bad)

    def test_every_file_states_its_subject_first(self):
        """Its first comment says what it is for; that of NAME.h holds for NAME.c, too."""
        def states(path):
            return re.match(r"(#!.*\n)?\s*(/\*|\"\"\"|# )", read(path)) is not None

        def header_states(path):
            stem = re.sub(r"\.c$", "", path)
            return path.endswith(".c") and any(
                os.path.exists(os.path.join(SRCDIR, h)) and states(h)
                for h in (stem + ".h", stem + "_internal.h"))

        self.none([f for f in files("engine", "src", "ui", "tests",
                                    ext=(".c", ".h", ".py", ".sh"))
                   if not states(f) and not header_states(f)])

    def test_there_are_no_marks_of_unfinished_work(self):
        bad = []
        for f in files("engine", "src", "ui", "share", "man",
                       ext=(".c", ".h", ".mk", ".1", ".5", ".py", ".sh")):
            for n, line in enumerate(read(f).split("\n"), 1):
                if UNFINISHED.search(line):
                    bad.append(f"{f}:{n}: {line.strip()}")
        self.none(bad)

    def test_there_are_no_paths_of_one_machine(self):
        bad = []
        tops = [f for f in ("README.md", "configure.ac", "Makefile.am", "bootstrap", ".ci/run")
                if os.path.exists(os.path.join(SRCDIR, f))]
        for f in tops + list(files("engine", "src", "ui", "share", "man", "tests",
                                   ext=(".c", ".h", ".mk", ".1", ".5", ".py", ".sh", ".md"))):
            for n, line in enumerate(read(f).split("\n"), 1):
                if FOREIGN_PATH.search(line):
                    bad.append(f"{f}:{n}: {line.strip()}")
        self.none(bad)

    def test_each_trait_of_architectures_has_a_bit_of_its_own(self):
        names = {}
        for name, bit in re.findall(r"\b(TRAIT_\w+)[\s=\\(]+(?:\(uint64_t\))?1 << (\d+)",
                                    read("engine/format/arch.h")):
            names.setdefault(int(bit), []).append(name)
        self.assertEqual(set(range(len(names))), set(names))
        self.none([f"bit {bit}: {', '.join(n)}" for bit, n in names.items() if len(n) > 1])

    def test_every_source_file_is_listed(self):
        lists = ""
        for f in ["Makefile.am"] + list(files("engine", "src", "ui", "tests", ext=(".mk",))):
            lists += read(f)
        # A program without a list of sources has one: its name with .c.
        programs = {f + ".c" for f in re.findall(r"tests/[\w/]+", lists)}
        self.none([f for f in files("engine", "src", "ui", "tests", ext=(".c", ".h", ".py"))
                   if f not in lists and f not in programs and
                   not f.startswith("tests/data/")])

    def test_every_header_has_its_guard(self):
        bad = []
        for f in files("engine", "src", "ui"):
            if not f.endswith(".h"):
                continue
            name = "MEMWALL_" + re.sub(r"\W", "_", f.upper())
            if f"#ifndef {name}" not in read(f) and "_impl.h" not in f:
                bad.append(f"{f}: {name}")
        self.none(bad)

    def test_every_c_file_begins_with_config_h(self):
        bad = []
        for f in files("engine", "src", "ui"):
            if f.endswith(".c"):
                found = re.findall(r'^\s*#\s*include\s+(\S+)', read(f), flags=re.M)
                if found and found[0] != '"config.h"':
                    bad.append(f"{f}: {found[0]}")
        self.none(bad)

    def test_fast_math_is_not_used(self):
        self.none([f for f in ["Makefile.am", "configure.ac"] +
                   list(files("engine", "src", "ui", "tests", ext=(".mk",)))
                   if re.search(r"^[^#\n]*-f(fast-math|associative-math)", read(f), re.M)])

    def test_no_function_is_called_by_tests_only(self):
        code = {f: code_only(read(f)) for f in files("engine", "ui", "src", "tests/example")}
        unused = dict(references.unused({f: c for f, c in code.items() if f.endswith(".h")},
                                        {f: c for f, c in code.items() if f.endswith(".c")}))
        allowed = references.ONLY_TESTS_CALL
        self.none([f"{header}: {name}: nothing but tests calls it; delete it, use it, or give "
                   f"a reason in tests/tree/references.py"
                   for name, header in unused.items() if name not in allowed] +
                  [f"{name}: is used or gone; remove it from tests/tree/references.py"
                   for name in allowed if name not in unused])

    def test_texts_are_in_plain_english(self):
        bad = []
        for top in words.TOPS:
            for f in prose(top):
                bad += [f'{f}:{line}: "{phrase}": {instead}'
                        for line, phrase, instead in words.found(f, read(f))]
        self.none(bad)

    def test_commit_messages_are_in_plain_english(self):
        """Messages that are older than this test stay as they are."""
        try:
            log = subprocess.run(["git", "log", f"--since={MESSAGES_SINCE}",
                                  "--format=%h%x00%B%x01"], cwd=SRCDIR, capture_output=True,
                                 text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no git, or this is not a clone")
        bad = []
        for part in log.split("\x01"):
            commit, _, message = part.strip().partition("\0")
            subject = message.split("\n")[0]
            if len(subject) > LONGEST_SUBJECT:
                bad.append(f"{commit}: a subject of {len(subject)} columns")
            bad += [f'{commit}: "{phrase}": {instead}'
                    for _, phrase, instead in words.found("message.md", message)]
        self.none(bad)

    def test_every_word_pattern_finds_its_example(self):
        for pattern, _, where, example in words.WORDS:
            for text in (example, example.replace(" ", "\n * ")):
                line, _ = words.flow(text, words.COMMENT)
                self.assertRegex(line, re.compile(pattern, re.I), pattern)
            self.assertTrue(where, pattern)


if __name__ == "__main__":
    unittest.main(verbosity=2)
