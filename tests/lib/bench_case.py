"""Run memwall bench and memwall sweep on the guide, and read their results."""
import json
import os
import re
import subprocess
import tempfile
import time

import schema
from program import MEMWALL, SRCDIR, FolderCase, environment

GUIDE = os.path.join(SRCDIR, "share", "models", "memwall-guide.gguf")
TIMEOUT_S = 300
KEEPER = "cage-keeper"  # src/measure/cage_keeper.c
with open(os.path.join(SRCDIR, "share", "schemas", "measurements.schema.json"),
          encoding="utf-8") as f:
    SCHEMA = json.load(f)


class Case(FolderCase):
    """A command, a home for all tests of a class, and a folder for the files of each."""
    maxDiff = None
    command = None

    @classmethod
    def setUpClass(cls):
        """One home for all tests, so that the limits are measured once."""
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name

    def renew_limits(self):
        """Make measured limits new and trusted.  A measurement measures those again that are older
        than a minute or doubtful, as on a machine with other tests: two seconds for each point."""
        path = os.path.join(self.home, ".cache", "memwall", "limits")
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as f:
            lines = [json.loads(line) | {"time": int(time.time()), "doubtful": False} for line in f]
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)

    def run_it(self, *args, model=GUIDE, code=0, env=(), **more):
        self.renew_limits()
        r = subprocess.run([MEMWALL, self.command, model, *args], text=True, timeout=TIMEOUT_S,
                           env=environment(self.home, **dict(env)), stdin=subprocess.DEVNULL,
                           **(dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE) | more))
        if code is not None:
            self.assertEqual(code, r.returncode, r.stderr)
        return r

    def check(self, result):
        self.assertEqual([], list(schema.errors(result, SCHEMA)))
        return result

    def load(self, name):
        with open(self.path(name)) as f:
            return self.check(json.load(f))

    def start(self, *args, model=GUIDE, **more):
        """Start without waiting; killed at the end of the test."""
        self.renew_limits()
        p = subprocess.Popen([MEMWALL, self.command, model, *args], text=True, **more,
                             env=environment(self.home), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.kill)
        return p

    def wait_for(self, p, condition):
        """Return the first true value of condition(), which p makes true before it ends."""
        while not (value := condition()):
            self.assertIsNone(p.poll(), "the program has ended")
            os.sched_yield()
        return value

    def children(self, p):
        try:
            with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                return [int(pid) for pid in f.read().split()]
        except FileNotFoundError:
            self.skipTest("this kernel does not list children")

    def child(self, p):
        """The process that measures, which is started before the one that keeps its cage."""
        for pid in self.children(p)[:1]:
            if self.name(pid) not in (KEEPER, None):
                return pid
        return None

    def keeper(self, p):
        return next((pid for pid in self.children(p) if self.name(pid) == KEEPER), None)

    def name(self, pid):
        """The name of a process; None if it has ended, whether or not its parent knows."""
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, state = re.match(r"\d+ \((.*)\) (.)", f.read()).groups()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return name if state not in "ZX" else None

    def runs(self, name):
        """The number of runs in a file of results."""
        try:
            with open(self.path(name)) as f:
                return sum(len(p["runs"]) for p in json.load(f)["points"])
        except FileNotFoundError:
            return 0
