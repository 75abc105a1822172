"""Run ./memwall in a home folder of its own, with a time limit."""
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.environ.get("MW_SRCDIR") or os.path.abspath(os.path.join(HERE, "..", ".."))
BUILDDIR = os.environ.get("MW_BUILDDIR") or SRCDIR
MEMWALL = os.path.join(BUILDDIR, "memwall")
MODELS = os.path.join(SRCDIR, "tests", "data", "models")
TIMEOUT_S = 300  # only for programs that hang; sanitizers are slow


def reference(name):
    """Returns the path of a small model or of its reference, such as "f-mixtral.gguf": in the tree,
    or else where MW_SHARED has it; it may be missing there."""
    shared = os.path.join(os.environ.get("MW_SHARED", ""), "conformance")
    for folder in MODELS, *(os.path.join(shared, f) for f in ("models", "families", "families2")):
        if os.path.exists(os.path.join(folder, name)):
            break
    return os.path.join(folder, name)


def budget(mib):
    """Returns a budget for --memory.  With sanitizers the program takes about 60 MiB more."""
    return f"{mib + (128 if 'MW_SANITIZED' in os.environ else 0)}M"


def smallest_without_screen(plan):
    """Returns the smallest budget of run, eval and bench by the JSON of memwall plan, which plans
    a chat, with its screen."""
    return plan["smallest_budget_bytes"] - plan["chat_bytes"]


def environment(home, **more):
    env = dict(os.environ, HOME=home, **more)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
                 "NO_COLOR", "ACCESSIBLE", "COLUMNS", "LINES", "TMUX"):
        if name not in more:
            env.pop(name, None)
    return env


class MeasuredHome(tempfile.TemporaryDirectory):
    """A home folder.  The first program in one measures the limits of this machine, which takes
    seconds of its processors; later homes, also those of other scripts, begin with them, without
    the tokens of models.  gives=False: the limits of this home are changed, or measured under a
    condition, and are not for others."""

    MEASURED = os.path.join(BUILDDIR, "tests", "lib", "measured-limits")
    OF_MODELS = "anchor", "model", "tried"
    FOR_GOOD = "product", "form", "threads"
    DAY_S = 24 * 3600
    LINES = 200

    def __init__(self, gives=True, **more):
        super().__init__(**more)
        self.gives = gives
        self.limits = os.path.join(self.name, ".cache", "memwall", "limits")
        if os.path.exists(self.MEASURED):
            os.makedirs(os.path.dirname(self.limits))
            with open(self.MEASURED, encoding="utf-8") as f:
                lines = [text for text in f if self.stays(json.loads(text))]
            with open(self.limits, "w", encoding="utf-8") as f:
                f.writelines(lines)

    @classmethod
    def stays(cls, line):
        """Whether a test can end before the program measures this again: doubtful limits hold for
        ten minutes, others for a day."""
        return time.time() - line["time"] < (300 if line["doubtful"] else cls.DAY_S - 3600)

    @classmethod
    def give(cls, limits):
        """Add the lines of a file of limits to those for later homes, newest first."""
        os.makedirs(os.path.dirname(cls.MEASURED), exist_ok=True)
        with open(cls.MEASURED + "-lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # scripts run side by side
            cls.merge(limits)

    @classmethod
    def merge(cls, limits):
        best, lines, oldest = {}, [], time.time() - cls.DAY_S
        for path in cls.MEASURED, limits:
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    lines += f
        for text in lines:
            line = json.loads(text)
            # A choice that is made once stays, as in the program: texts of two runs are compared.
            age = -line["time"] if line["kind"] in cls.FOR_GOOD else line["time"]
            key, rank = (line["kind"], line["of"]), (not line["doubtful"], age)
            if (line["kind"] not in cls.OF_MODELS and line["time"] > oldest and
                    rank >= best.get(key, (rank,))[0]):
                best[key] = rank, text
        newest_first = sorted(best.values(), key=lambda x: -abs(x[0][1]))
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(cls.MEASURED),
                                         encoding="utf-8", delete=False) as f:
            f.writelines(text for _, text in newest_first[:cls.LINES])  # builds add up
        os.replace(f.name, cls.MEASURED)

    def trust(self):
        """Let the limits that are kept here hold until the end of the test, also those that were
        measured beside a load."""
        with open(self.limits, encoding="utf-8") as f:
            lines = [json.loads(text) for text in f]
        with open(self.limits, "w", encoding="utf-8") as f:
            for line in lines:
                f.write(json.dumps(dict(line, time=int(time.time()), doubtful=False),
                                   ensure_ascii=False) + "\n")

    def cleanup(self):
        if self.gives and os.path.exists(self.limits):
            self.give(self.limits)
        super().cleanup()


def memwall(*args, config=None, stdin="", text=True, **more):
    """Run to the end with pipes.  config is the text of the configuration file."""
    with MeasuredHome() as home:
        if config is not None:
            os.makedirs(os.path.join(home, ".config", "memwall"))
            with open(os.path.join(home, ".config", "memwall", "config"), "w") as f:
                f.write(config)
        return subprocess.run([MEMWALL, *args], env=environment(home), input=stdin, text=text,
                              timeout=TIMEOUT_S,
                              **(dict(capture_output=True) | more))


def notices(stderr):
    """Standard error without the notice that an answer of random tokens may have no text."""
    return "".join(line for line in stderr.splitlines(True) if "answer has no text" not in line)


def memory_folder():
    """A folder in memory, for models that are written and opened thousands of times.  A test of
    what a disk does has its files elsewhere."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class FolderCase(unittest.TestCase):
    """A test with a folder for its files."""
    make_folder = tempfile.TemporaryDirectory

    def setUp(self):
        folder = self.make_folder()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class KvCase(unittest.TestCase):
    """The tests share a home on a disk; kept keys and values are removed before each."""

    @classmethod
    def setUpClass(cls):
        folder = MeasuredHome(dir=BUILDDIR)
        cls.addClassCleanup(folder.cleanup)
        cls.home = folder.name
        cls.kv = os.path.join(cls.home, ".cache/memwall/kv")

    def setUp(self):
        shutil.rmtree(self.kv, ignore_errors=True)


class HomeCase(FolderCase):
    """The folder is the home, too."""
    make_folder = MeasuredHome


class ChangedHomeCase(FolderCase):
    """The same, and the tests change its limits."""

    @staticmethod
    def make_folder():
        return MeasuredHome(gives=False)


def read_terminal(fd):
    """Read from a pseudo-terminal until its other side is closed, and close it."""
    shown = b""
    try:
        while block := os.read(fd, 65536):
            shown += block
    except OSError:  # EIO: the other side is closed
        pass
    os.close(fd)
    return shown
