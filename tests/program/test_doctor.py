#!/usr/bin/env python3
"""memwall doctor measures memory, disk and arithmetic, as text and JSON, and keeps the limits."""
import functools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MEMWALL, MODELS, SRCDIR, MeasuredHome, environment  # noqa: E402
import schema  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
TIMEOUT_S = 300


def run_doctor(home, *args, **more):
    return subprocess.run([MEMWALL, "doctor", *args], text=True, timeout=TIMEOUT_S,
                          env=environment(home), stdin=subprocess.DEVNULL, capture_output=True,
                          **more)


def files_of(folder):
    """The bytes of each file, by its path."""
    files = {}
    for at, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(at, name), "rb") as f:
                files[os.path.join(at, name)] = f.read()
    return files


# Each of these takes seconds, for two tests.  They return the result, and what it left.

@functools.cache
def in_a_folder():
    with tempfile.TemporaryDirectory() as home, \
            tempfile.TemporaryDirectory(dir=home) as folder:
        r = run_doctor(home, "--json", folder)
        MeasuredHome.give(os.path.join(home, ".cache", "memwall", "limits"))
        return r, os.listdir(folder)


@functools.cache
def without_the_disk():
    with MeasuredHome(gives=False) as home:
        before = files_of(home)
        r = run_doctor(home, "--json", "--no-disk", "--memory", "6G", cwd=home)
        return r, before, files_of(home)


class Doctor(unittest.TestCase):
    def setUp(self):
        """Limits that others have measured: doctor measures what it shows all the same, but not
        the weight types of all known models."""
        self.home = MeasuredHome(gives=False)
        self.addCleanup(self.home.cleanup)

    def doctor(self, *args, code=0, **more):
        r = run_doctor(self.home.name, *args, **more)
        self.assertEqual(code, r.returncode, r.stderr)
        return r

    def figures(self, *args, **how):
        return self.figures_of(self.doctor("--json", *args, **how))

    def figures_of(self, r):
        self.assertEqual((0, ""), (r.returncode, r.stderr))
        self.assertEqual(1, r.stdout.count("\n"))
        d = json.loads(r.stdout)
        schema.check(d, SRCDIR, "doctor.schema.json")
        return d

    def test_a_folder_is_measured_and_left_as_it_was(self):
        r, left = in_a_folder()
        d = self.figures_of(r)
        self.assertEqual([], left)
        self.assertEqual(["memory", "disk", "arithmetic", "walls", "advice", "summary",
                          "complete"], list(d))
        self.assertTrue(d["complete"])
        self.assertGreater(d["memory"]["total"], d["memory"]["available"])
        self.assertGreater(d["memory"]["read_1"], 1e6)
        self.assertGreater(d["memory"]["fresh_bytes_s"], 1e6)
        self.assertGreater(d["disk"]["small_read_s"], 0)
        self.assertGreater(d["disk"]["buffered_bytes_s"], 0)
        self.assertGreater(d["disk"]["mapped_bytes_s"], 0)
        if d["disk"]["direct_reads"] == "yes":
            cells = d["disk"]["direct"]
            self.assertEqual(16, len({(c["block_bytes"], c["depth"]) for c in cells}))
            for c in cells:
                self.assertGreater(c["bytes_s"], 0)
        self.assertGreater(d["arithmetic"]["q4_0_flops_s"], 1e6)
        self.assertGreater(d["arithmetic"]["f32_flops_s"], 1e6)
        if d["arithmetic"]["int8_ops_s"] is not None:
            self.assertEqual(d["arithmetic"]["q8_0_flops_s"], d["arithmetic"]["int8_ops_s"])
        self.assertIn(d["arithmetic"]["n_thread"], (d["arithmetic"]["n_core"],
                      d["arithmetic"]["n_core"] - 1, d["arithmetic"]["n_cpu"]))
        self.assertRegex(d["arithmetic"]["threads_why"], "^one (per|fewer)")
        if d["disk"]["direct_align"]:
            self.assertEqual(0, 4096 % d["disk"]["direct_align"])
        for section in ("memory", "disk", "arithmetic"):
            for key, value in d[section].items():
                if value is None:
                    self.assertNotEqual("", d[section][key + "_why"])

    def test_advice_names_the_figures_that_support_it(self):
        d = self.figures_of(in_a_folder()[0])
        memory = max(v for k, v in d["memory"].items() if re.fullmatch(r"read_\d+", k))
        advice = {a["key"]: a["text"] for a in d["advice"]}
        disk = max((c["bytes_s"] for c in d["disk"].get("direct", []) if c["bytes_s"]),
                   default=d["disk"]["buffered_bytes_s"])
        summary = {a["key"]: a["text"] for a in d["summary"]}
        self.assertEqual([], [(m["name"], m["type"]) for m in d["walls"]["models"]
                              if m["outlook"] in ("fits", "streams") and not m["decode_tps"]])
        for key, rate in ("fits", memory), ("streams", disk):
            models = [m for m in d["walls"]["models"] if m["outlook"] == key and m["decode_tps"]]
            self.assertEqual(models != [], key in summary)
            if models:
                self.assertIn("takes %.3g ms" % (1e12 / rate), summary[key])
                binds = [m["binds"] for m in models]
                most = max(map(binds.count, binds))
                self.assertIn(f"({most} of ", summary[key])
        self.assertEqual(d["disk"]["small_read_s"] > 2e-3, "small_reads" in advice)
        self.assertEqual((d["memory"]["pressure"] or 0) > 0.1, "pressure" in advice)
        self.assertEqual((d["arithmetic"]["steal"] or 0) > 0.1, "steal" in advice)
        self.assertEqual(d["disk"]["mapped_bytes_s"] < 0.5 * disk, "mapped" in advice)

    def test_text_has_the_same_sections(self):
        out = self.doctor(self.home.name).stdout
        self.assertEqual(["summary", "memory", "disk", "arithmetic", "walls", "advice"],
                         re.findall(r"(?m)^(\w+)$", out))
        self.assertRegex(out, r"\Asummary\n  Of \d+ known models and weight types, \d+ fit in ")
        self.assertEqual(1, out.count("powers of 1024 (GiB)"))
        self.assertNotIn("\x1b", out)
        self.columns_are_aligned(out.split("\nwalls\n")[1].split("\nadvice\n")[0])
        if "  direct reads, GB/s" in out:
            title, *table = out.split("  direct reads, GB/s")[1].splitlines()[:6]
            self.assertTrue(title.endswith("(* the best)"), title)
            self.assertEqual(["1", "2", "4", "8"], table[0].split())
            self.assertEqual(["128", "512", "2.00", "8.00"], [row.split()[0] for row in table[1:]])
            self.assertEqual(1, sum(row.count("*") for row in table))

    def columns_are_aligned(self, walls):
        """The longest name is wider than its column once was."""
        lines = walls.splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["model", "type"])
        rows = lines[at + 2:]
        self.assertTrue(any(row.split()[0] == "Mistral-Small-3.1-24B" for row in rows))
        for row in rows:
            self.assertRegex(row[lines[at].index("type") - 1:], r"^ [A-Z0-9_-]+ ")

    def test_advice_is_never_an_empty_heading(self):
        """Without the disk, a machine that is idle gives no reason for advice."""
        out = self.doctor("--no-disk", cwd=self.home.name).stdout
        self.assertEqual(["summary", "memory", "arithmetic", "walls", "advice"],
                         re.findall(r"(?m)^(\w+)$", out))
        self.assertRegex(out, r"\nadvice\n  \w")
        self.assertLessEqual(out.count("needs attention"), 1)

    def test_a_model_is_predicted_with_new_limits_which_are_kept(self):
        kept = os.path.join(self.home.name, ".cache", "memwall", "limits")
        if os.path.exists(kept):
            os.unlink(kept)
        subprocess.run([MEMWALL, "plan", MODEL], env=environment(self.home.name), check=True,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
        with open(kept) as f:
            lines = [json.loads(line) for line in f]
        # A doubtful rate of memory: any new measurement replaces it.
        disk = next(line for line in lines if line["kind"] == "disk")
        disk.update(time=int(time.time()) - 60, memory_bytes_s=12345, doubtful=True)
        with open(kept, "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        d = self.figures(MODEL)
        self.assertEqual("gemma4-tiny", d["model"]["name"][:11].lower())
        self.assertGreater(d["model"]["limits"]["memory_bytes_s"], 1e6)
        self.assertGreater(d["model"]["decode_tps"], 0)
        with open(kept) as f:
            disks = [line for line in map(json.loads, f) if line["kind"] == "disk"]
        self.assertEqual(d["model"]["limits"]["measured"], disks[0]["time"])
        self.assertNotIn(12345, [line["memory_bytes_s"] for line in disks])

    def test_without_the_disk_nothing_is_written(self):
        r, before, after = without_the_disk()
        self.assertEqual(["memory", "arithmetic", "walls", "advice", "summary", "complete"],
                         list(self.figures_of(r)))
        self.assertEqual(before, after)

    def test_a_model_that_streams_says_what_would_help(self):
        # In the same home, since OpenBLAS counts with the program where it was measured faster.
        r = subprocess.run([MEMWALL, "plan", MODEL, "--json"], text=True, capture_output=True,
                           env=environment(self.home.name), timeout=TIMEOUT_S)
        least = json.loads(r.stdout)["smallest_budget_bytes"]
        all_of_it = self.figures(MODEL, "--memory", str(least))
        d = all_of_it["model"]
        first = [a["text"] for a in d["advice"]]
        summary = {a["key"]: a["text"] for a in all_of_it["summary"]}
        predicted = {"binds", "change"} if d["decode_tps"] else set()
        self.assertEqual({"streams"} | predicted, set(summary) - {"busy"})
        if predicted:
            self.assertIn(first[0], summary["change"])
        self.assertLessEqual(len(first), 1)
        self.assertEqual(least, d["smallest_budget_bytes"])
        self.assertGreater(d["largest_ctx"], 0)
        d = self.figures(MODEL, "--memory", "1M")
        self.assertFalse(d["complete"])
        self.assertIn("the budget is 1.00 MiB", d["model"]["error"])
        self.assertEqual([("refused", d["model"]["error"])],
                         [(a["key"], a["text"]) for a in d["summary"] if a["key"] != "busy"])

    def test_every_known_model_has_its_walls(self):
        with open(os.path.join(SRCDIR, "share", "known-models.json"), encoding="utf-8") as f:
            known = json.load(f)
        d = self.figures_of(without_the_disk()[0])["walls"]
        self.assertEqual(6 << 30, d["budget_bytes"])
        self.assertEqual([(m["name"], t) for m in known["models"]
                          for t in m.get("types", known["types"])],
                         [(m["name"], m["type"]) for m in d["models"]])
        seen = {(m["name"], m["type"]): m for m in d["models"]}
        for m in d["models"]:
            if m["outlook"] == "unsupported":
                continue
            self.assertLessEqual(m["memory_bytes"] <= 6 << 30, m["outlook"] != "too_large")
            self.assertEqual(m["outlook"] == "fits", m.get("streamed_bytes") == 0)
        self.assertEqual("fits", seen["Llama-3.2-1B", "Q4_K"]["outlook"])
        self.assertGreater(seen["Llama-3.2-1B", "Q4_K"]["decode_tps"], 0)
        self.assertEqual("streams", seen["Llama-3.1-70B", "Q4_K"]["outlook"])
        # Its experts are larger than the budget, which is known without any rate.
        self.assertEqual("streams", seen["Qwen3-Next-80B-A3B", "Q4_K"]["outlook"])

    def test_a_known_model_is_examined_without_its_file(self):
        d = self.figures("gemma-4-E2B:Q4_0", "--no-disk", cwd=self.home.name)
        self.assertEqual(["memory", "arithmetic", "model", "advice", "summary", "complete"], list(d))
        self.assertEqual("gemma-4-E2B", d["model"]["name"])

    def test_an_even_choice_of_experts_is_named_as_assumed(self):
        d = self.figures("gemma-4-26B-A4B:Q4_0", "--no-disk", "--memory", "4G",
                         cwd=self.home.name)
        experts = [a["text"] for a in d["summary"] if a["key"] == "experts"]
        self.assertEqual(1, len(experts))
        self.assertIn("assumed: all are chosen equally often", experts[0])

    def test_the_rates_of_a_model_are_not_the_best_ones(self):
        out = subprocess.run([MEMWALL, "doctor", MODEL], text=True, capture_output=True,
                             env=environment(self.home.name), timeout=TIMEOUT_S).stdout
        self.assertRegex(out, r"\n  disk .*memory .*\n    as this model reads, in blocks of \S+ \wi?B; "
                              r"the rates above are the best")

    def test_a_folder_that_cannot_be_written_is_reported(self):
        d = self.figures("/proc")
        self.assertIn("could not write a file", d["disk"]["error"])
        self.assertGreater(d["arithmetic"]["q4_0_flops_s"], 0)
        self.assertFalse(d["complete"])

    def test_a_full_disk_is_reported(self):
        def limit():  # as a full disk, it lets a file begin and not end
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        with tempfile.TemporaryDirectory(dir=self.home.name) as folder:
            d = self.figures(folder, preexec_fn=limit)
            self.assertEqual([], os.listdir(folder))
        self.assertIn("could not write a file", d["disk"]["error"])
        self.assertIn(("incomplete", "disk: " + d["disk"]["error"]),
                      [(a["key"], a["text"]) for a in d["summary"]])
        self.assertGreater(d["arithmetic"]["q4_0_flops_s"], 0)
        self.assertFalse(d["complete"])

    def test_a_system_that_reports_nothing(self):
        """Without /sys, pressure and statistics, each figure is a dash with a reason."""
        hide = ("mount -t tmpfs none /sys && mount -t tmpfs none /proc/pressure && "
                "mount --bind /dev/null /proc/stat && mount --bind /dev/null /proc/meminfo")
        unshare = ["unshare", "-m", "sh", "-c"]
        if os.geteuid() != 0 or subprocess.run([*unshare, hide], capture_output=True).returncode:
            self.skipTest("only root can hide /sys")
        for args in (), ("--json",):
            with tempfile.TemporaryDirectory() as home:
                r = subprocess.run([*unshare, hide + ' && exec "$@"', "sh", MEMWALL, "doctor",
                                    "--no-disk", "Llama-3.2-1B:Q4_K", *args], text=True,
                                   env=environment(home), stdin=subprocess.DEVNULL,
                                   capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            if args:
                d = json.loads(r.stdout)
                schema.check(d, SRCDIR, "doctor.schema.json")
                for section, key in (("memory", "total"), ("memory", "cgroup"),
                                     ("memory", "numa_nodes"), ("memory", "pressure"),
                                     ("arithmetic", "governor"), ("arithmetic", "throttled"),
                                     ("arithmetic", "steal"), ("arithmetic", "pressure")):
                    self.assertIsNone(d[section][key], key)
                    self.assertNotEqual("", d[section][key + "_why"])
                self.assertGreater(d["memory"]["read_1"], 0)
            else:
                self.assertRegex(r.stdout, r"(?m)^  taken by the host +- \(.+\)$")
                self.assertRegex(r.stdout, r"(?m)^  memory +- \(.+\)$")

    def test_a_wrong_argument_is_refused(self):
        r = self.doctor("/nonexistent/x.gguf", code=1)
        self.assertEqual("", r.stdout)
        r = self.doctor(__file__, code=1)
        self.assertIn("GGUF", r.stderr)

    def wait_for_file(self, p, folder):
        """Wait until the process has opened a file in the folder, which has no name."""
        fds, end = f"/proc/{p.pid}/fd", time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            for fd in os.listdir(fds):
                try:
                    if os.readlink(os.path.join(fds, fd)).startswith(folder + "/"):
                        return
                except FileNotFoundError:
                    pass  # closed meanwhile
            time.sleep(0.01)
        self.fail("no file was written")

    def test_a_stopped_measurement_prints_what_it_has(self):
        with tempfile.TemporaryDirectory(dir=self.home.name) as folder:
            p = subprocess.Popen([MEMWALL, "doctor", "--json", folder], text=True,
                                 env=environment(self.home.name), stdout=subprocess.PIPE)
            self.wait_for_file(p, folder)
            p.send_signal(signal.SIGINT)
            out = p.communicate(timeout=TIMEOUT_S)[0]
            self.assertEqual([], os.listdir(folder))
        self.assertEqual(130, p.returncode)
        d = json.loads(out)
        schema.check(d, SRCDIR, "doctor.schema.json")
        self.assertFalse(d["complete"])
        self.assertGreater(d["memory"]["total"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
