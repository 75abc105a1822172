#!/usr/bin/env python3
"""memwall sweep: the points, the pictures, the cage, and going on after an interruption."""
import csv
import fcntl
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bench_case import GUIDE, TIMEOUT_S, Case  # noqa: E402
from program import budget, read_terminal  # noqa: E402

QUICK = ("-p", "4", "-n", "3")


def leftovers():
    """Returns the control groups of memwalls that have ended."""
    return [name for at, _, _ in os.walk("/sys/fs/cgroup")
            if (name := os.path.basename(at)).startswith("memwall-") and
            not os.path.exists("/proc/" + name.split(".")[-1])]


class Sweep(Case):
    command = "sweep"

    def setUp(self):
        super().setUp()
        self.left_before = leftovers()  # of other programs, or of runs that were killed

    def result(self, *args, **more):
        return self.check(json.loads(self.run_it("--json", *QUICK, *args, **more).stdout))

    def settings(self, r, name):
        return [p["settings"][name] for p in r["points"]]

    # --- the points ---

    def test_budgets_go_from_the_smallest_to_all_weights(self):
        r = self.result("--points", "4")
        self.assertEqual(("sweep", "budget", True), (r["command"], r["over"], r["complete"]))
        plan, mib = r["points"][0]["plan"], 1 << 20
        budgets = self.settings(r, "memory_bytes")
        self.assertEqual(sorted(set(budgets)), budgets)
        self.assertIn(len(budgets), (3, 4))
        self.assertLess(budgets[0] - plan["smallest_budget_bytes"], mib)
        self.assertLess(budgets[-1] - plan["all_pinned_budget_bytes"], mib)
        for p in r["points"]:
            self.assertEqual(("ok", 1), (p["status"], len(p["runs"])), p["error"])
            self.assertGreater(p["predicted"]["decode_tps"], 0)
        read = [p["median"]["read_bytes_per_token"] for p in r["points"]]
        self.assertGreater(read[0], read[-1])

    def test_other_settings(self):
        r = self.result("--over", "kv")
        self.assertEqual(["f16", "q8_0", "q4_0"], self.settings(r, "kv"))
        self.assertEqual("kv", r["over"])
        r = self.result("--over", "ctx", "--ctx", "16,32")
        self.assertEqual([9, 25], self.settings(r, "depth"))
        self.assertEqual([16, 32], [p["plan"]["ctx"] for p in r["points"]])
        r = self.result("--over", "block", "--block", "64k,256k", "--memory", budget(60))
        self.assertEqual([65536, 262144], self.settings(r, "block_bytes"))
        r = self.result("--over", "threads")
        self.assertEqual(1, r["points"][0]["settings"]["threads"])
        self.assertEqual([p["settings"]["threads"] for p in r["points"]],
                         [p["threads"] for p in r["points"]])

    def test_values_of_the_user_replace_those_of_the_program(self):
        r = self.result("--memory", f"{budget(100)},8M")
        self.assertEqual(["ok", "refused"], [p["status"] for p in r["points"]])

    def test_wrong_combinations(self):
        for args, text in ((("--kv", "f16,q8_0"), "--kv"), (("--over", "kv", "--memory", "1G,2G"),
                                                            "--memory"),
                           (("--over", "ctx", "--depth", "4"), "--depth"),
                           (("--over", "ctx", "--ctx", "5"), "context of 5"),
                           (("--over", "disk"), '"disk"'), (("-o", "x.gif"), '"x.gif"')):
            self.assertIn(text, self.run_it(*QUICK, *args, code=2).stderr)

    def test_a_model_that_is_not_there(self):
        r = self.run_it(*QUICK, model=self.path("none.gguf"), code=1)
        self.assertEqual(("", 1), (r.stdout, r.stderr.count("none.gguf")))

    def test_csv_and_markdown_have_a_line_for_each_point(self):
        """Whatever the name of the model is."""
        name = self.path('a|b,"c"\n`d`.gguf')
        shutil.copyfile(GUIDE, name)
        out = self.run_it(*QUICK, "--over", "kv", "--csv", "-o", self.path("k.md"),
                          model=name).stdout
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(["f16", "q8_0", "q4_0"], [r["kv"] for r in rows])
        for r in rows:
            self.assertEqual("ok", r["status"])
            self.assertGreater(float(r["decode_tps"]), 0)
            self.assertNotIn(None, r)
        with open(self.path("k.md")) as f:
            table = [line for line in f if line.startswith("|")]
        self.assertEqual(5, len(table))
        self.assertEqual({table[0].count("|")}, {line.count("|") for line in table})
        self.assertEqual(["f16", "q8_0", "q4_0"],
                         [re.search("f16|q8_0|q4_0", line).group() for line in table[2:]])

    # --- pictures ---

    def test_svg(self):
        self.run_it(*QUICK, "--over", "kv", "-o", self.path("k.svg"), "-o", self.path("k.csv"))
        tree = xml.etree.ElementTree.parse(self.path("k.svg"))
        texts = ["".join(e.itertext()) for e in tree.iter() if e.tag.endswith("}text")]
        for text in "measured", "predicted", "f16", "q8_0", "q4_0", "type of keys and values":
            self.assertIn(text, texts)
        with open(self.path("k.svg")) as f:
            self.assertNotIn("var(", f.read())  # rsvg-convert knows no variables
        self.assertEqual(["k.csv", "k.svg"], sorted(os.listdir(self.folder)))

    def test_png_is_the_svg_converted(self):
        """A script takes the place of rsvg-convert."""
        with open(self.path("rsvg-convert"), "w") as f:
            f.write("#!/bin/sh\necho converted; cat\n")
        os.chmod(self.path("rsvg-convert"), 0o755)
        env = {"PATH": self.folder + ":" + os.environ["PATH"]}
        self.run_it(*QUICK, "--over", "kv", "-o", self.path("k.png"), env=env)
        with open(self.path("k.png")) as f:
            self.assertRegex(f.read(), r"\Aconverted\n<svg ")
        with open(self.path("rsvg-convert"), "w") as f:
            f.write("#!/bin/sh\nexit 3\n")
        r = self.run_it(*QUICK, "--over", "kv", "-o", self.path("m.png"), env=env, code=1)
        self.assertIn("rsvg-convert failed", r.stderr)
        self.assertFalse(os.path.exists(self.path("m.png")))

    def test_png_without_a_converter_is_refused_first(self):
        r = self.run_it(*QUICK, "-o", self.path("k.png"), env={"PATH": self.folder}, code=1)
        self.assertIn("needs rsvg-convert, which is not installed", r.stderr)
        self.assertEqual("", r.stdout)

    def test_the_curve_is_drawn_on_a_terminal(self):
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
        self.run_it(*QUICK, "--points", "3", "--quiet", stdout=side)
        os.close(side)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", read_terminal(main).decode()).splitlines()
        text = "\n".join(shown)
        for part in "decode (tok/s)", "memory budget", "measured", "predicted", "budget":
            self.assertIn(part, text)
        self.assertRegex(text, "[\u2801-\u28ff]")
        self.assertLessEqual(max(map(len, shown[:20])), 90)

    # --- the cage ---

    def test_mapped_weights_in_a_cage(self):
        # Only the mapped run may leave pages in the page cache: its own copy of the model, from
        # which --cold drops those of the copying, is read by no other test meanwhile.
        model = shutil.copy(GUIDE, self.path("model.gguf"))
        with open(model, "rb") as f:
            os.fsync(f.fileno())
        r = self.run_it("--json", *QUICK, "--memory", budget(100), "--against", "mmap", "--cold",
                        model=model, code=None)
        if "needs a memory cage" in r.stderr:
            self.assertEqual(1, r.returncode)
            self.assertRegex(r.stderr, "systemd-run --user --scope")
            self.skipTest("no cage can be made here: " + r.stderr)
        self.assertEqual(0, r.returncode, r.stderr)
        r = self.check(json.loads(r.stdout))
        self.assertEqual([False, True], [p["caged"] for p in r["points"]])
        direct, mapped = r["points"]
        self.assertEqual("ok", mapped["status"], mapped["error"])
        self.assertEqual("mmap", mapped["io"])
        self.assertEqual({None}, set(mapped["predicted"].values()))
        for p in r["points"]:
            run = p["runs"][0]
            self.assertEqual("control group", run["peak_of"])
            self.assertLessEqual(run["peak_bytes"], p["plan"]["budget_bytes"])
            self.assertGreater(run["rss_bytes"], 0)
            self.assertLessEqual(run["rss_bytes"], run["peak_bytes"])
        kind = subprocess.run(["stat", "-f", "-c", "%T", model], capture_output=True,
                              text=True).stdout.strip()
        if kind not in ("tmpfs", "ramfs"):  # whose files are always cached
            self.assertGreater(mapped["runs"][0]["model_cached_bytes"],
                               direct["runs"][0]["model_cached_bytes"])
        self.assertEqual([], sorted(set(leftovers()) - set(self.left_before)))

    def test_without_permission_the_rest_is_measured(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody without permission")
        os.chmod(self.home, 0o777)
        try:
            r = self.run_it("--json", "-q", *QUICK, "--memory", budget(100), "--against", "mmap",
                            user=65534, group=65534, extra_groups=[], code=None)
        except PermissionError:
            self.skipTest("others cannot run this build")
        if "cannot open" in r.stderr or r.returncode == 127:
            self.skipTest("others cannot read this build")
        self.assertEqual(1, r.returncode, r.stderr)
        self.assertRegex(r.stderr, r"needs a memory cage, and .*; root can make one")
        self.assertEqual(1, r.stderr.count("\n"))
        self.assertEqual(["ok"], [p["status"] for p in json.loads(r.stdout)["points"]])

    # --- interruptions ---

    def test_an_interrupted_sweep_goes_on(self):
        args = ("--quiet", "--points", "4", "-p", "4", "-n", "40", "-o", self.path("s.json"))
        p = self.start(*args)
        self.wait_for(p, lambda: self.runs("s.json") > 0)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual((130, ""), (p.returncode, err))
        self.assertIn("interrupted", out)
        self.assertEqual([], sorted(set(leftovers()) - set(self.left_before)))
        cut = self.load("s.json")
        self.assertFalse(cut["complete"])
        self.assertEqual(["s.json"], os.listdir(self.folder))
        self.run_it(*args)
        r = self.load("s.json")
        self.assertTrue(r["complete"])
        for before, now in zip(cut["points"], r["points"]):
            self.assertEqual(before["settings"], now["settings"])
            self.assertEqual(1, len(now["runs"]))
            if before["runs"]:
                self.assertEqual(before["runs"], now["runs"])
        self.run_it(*args)
        self.assertEqual(r["points"], self.load("s.json")["points"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
