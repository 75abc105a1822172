#!/usr/bin/env python3
"""memwall bench: the grid, its formats, comparisons, and what is left after a fault."""
import csv
import fcntl
import io
import json
import os
import pty
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bench_case import GUIDE, TIMEOUT_S, Case  # noqa: E402
from program import MEMWALL, budget, read_terminal  # noqa: E402

QUICK = ("-p", "4", "-n", "3", "-r", "1")


class Bench(Case):
    command = "bench"

    def bench(self, *args, **more):
        return self.run_it(*args, **more)

    # --- the grid and its formats ---

    def test_a_grid_is_measured_and_predicted(self):
        out = self.bench("--json", "-p", "8,16", "-n", "4", "-d", "0,8", "-r", "2",
                         "--memory", budget(100), "--kv", "f16,q8_0").stdout
        r = self.check(json.loads(out))
        self.assertTrue(r["complete"])
        self.assertEqual("gemma4", r["model"]["arch"])
        self.assertEqual([(kv, p, d) for kv in ("f16", "q8_0") for p in (8, 16) for d in (0, 8)],
                         [(s["kv"], s["n_prompt"], s["depth"])
                          for s in (p["settings"] for p in r["points"])])
        for p in r["points"]:
            self.assertEqual(("ok", None, 2), (p["status"], p["error"], len(p["runs"])))
            self.assertEqual(p["settings"]["n_prompt"] + p["settings"]["depth"] + 4,
                             p["plan"]["ctx"])
            self.assertGreater(p["plan"]["limits"]["memory"]["bytes_s"], 0)
            for name in ("prompt_tps", "decode_tps", "peak_bytes"):
                self.assertGreater(p["predicted"][name], 0, name)
            for run in p["runs"]:
                for name in ("prompt_tps", "decode_tps", "first_token_s", "load_s", "rss_bytes",
                             "read_bytes_per_token"):
                    self.assertGreater(run[name], 0, name)
                self.assertLessEqual(run["rss_bytes"], run["peak_bytes"])
                self.assertLessEqual(run["peak_bytes"], p["plan"]["budget_bytes"])
                self.assertLessEqual(0, run["stall_share"])
                self.assertLessEqual(run["stall_share"], 1)
                if run["joules_per_token"] is None:
                    self.assertIn("joules_per_token", run["unknown"])
                self.assertAlmostEqual(
                    p["median"]["decode_tps"], sum(x["decode_tps"] for x in p["runs"]) / 2, 4)
                self.assertAlmostEqual(
                    p["spread"]["decode_tps"],
                    abs(p["runs"][0]["decode_tps"] - p["runs"][1]["decode_tps"]) / 2, 4)

    def test_all_kernel_sets_are_measured(self):
        version = subprocess.run([MEMWALL, "--version"], text=True, check=True,
                                 stdout=subprocess.PIPE).stdout
        sets = version.splitlines()[-1].split(None, 1)[1].split(", ")
        self.assertEqual("generic", sets[-1])
        r = self.check(json.loads(self.bench("--json", *QUICK, "--isa", "all").stdout))
        self.assertEqual(sets, [p["settings"]["isa"] for p in r["points"]])
        self.assertEqual({"ok"}, {p["status"] for p in r["points"]})
        out = self.bench(*QUICK, "--isa", f"generic,{sets[0]}", "--memory", budget(100)).stdout
        table = [line.split("|")[2].strip() for line in out.splitlines() if line.startswith("|")]
        self.assertEqual(["isa", "generic", sets[0]], [table[0], *table[2:]])
        r = json.loads(self.bench("--json", *QUICK).stdout)
        self.assertEqual("", r["points"][0]["settings"]["isa"])
        self.assertIn('"abacus" is not available',
                      self.bench("--isa", "generic,abacus", code=2).stderr)

    def test_drafts_are_measured_with_a_simulated_acceptance(self):
        """The guide's assistant works as always, and how many of its drafts are right is made."""
        some = {}
        for accept in "1", "0.5", "0":
            out = self.bench("--json", "-p", "8", "-n", "60", "-r", "1", "--memory", budget(100),
                             "--draft", "mtp", "--draft-depth", "3", "--draft-accept", accept)
            point, = self.check(json.loads(out.stdout))["points"]
            some[accept] = run = point["runs"][0]
            self.assertGreater(point["predicted"]["decode_tps"], 0)
            self.assertTrue(0 < run["drafter_share"] < 1, run)
            self.assertEqual((3, 4), (len(run["accepted_at"]), len(run["pass_costs"])))
        # The last pass has drafts after the end.
        self.assertGreater(some["1"]["accepted_share"], 0.9)
        self.assertGreater(some["1"]["tokens_per_pass"], 3)
        self.assertTrue(1.3 < some["0.5"]["tokens_per_pass"] < 2.5, some["0.5"])
        self.assertTrue(0.3 < some["0.5"]["accepted_at"][0] < 0.8, some["0.5"])
        self.assertEqual((0, 1), (some["0"]["accepted_share"], some["0"]["tokens_per_pass"]))

    def test_drafts_of_the_likeliest_tokens_have_no_prediction(self):
        out = self.bench("--json", "-p", "8", "-n", "40", "-r", "1", "--memory", budget(100),
                         "--draft", "ngram", "--draft-depth", "4").stdout
        point, = self.check(json.loads(out))["points"]
        self.assertIsNone(point["predicted"]["decode_tps"])
        self.assertGreaterEqual(point["runs"][0]["tokens_per_pass"], 1)
        out = self.bench("--json", *QUICK, "--memory", budget(100)).stdout
        self.assertIsNone(json.loads(out)["points"][0]["runs"][0]["tokens_per_pass"])

    def test_a_simulated_acceptance_needs_a_model_that_drafts(self):
        for how in (), ("--draft", "ngram"):
            r = self.bench(*QUICK, *how, "--draft-accept", "0.5", code=2)
            self.assertIn("--draft-accept needs a model that drafts: --draft self, mtp or FILE",
                          r.stderr)

    def test_prompt_and_answer_can_be_left_out(self):
        for p, n, absent in ((0, 3, {"prompt_tps", "first_token_s"}),
                             (4, 0, {"decode_tps", "stall_share", "read_bytes_per_token"})):
            r = json.loads(self.bench("--json", "-p", str(p), "-n", str(n), "-r", "1").stdout)
            self.check(r)
            median = r["points"][0]["median"]
            self.assertEqual(absent, absent & {k for k, v in median.items() if v is None})
            self.assertIsNotNone(median["peak_bytes"])

    def test_nothing_to_measure_is_a_wrong_option(self):
        for p in "0", "8,0":
            r = self.bench("-p", p, "-n", "0", code=2)
            self.assertEqual("", r.stdout)
            self.assertRegex(r.stderr, "\\Amemwall: there is nothing to measure with -p 0 and -n 0: "
                             'neither prompt nor answer has a token\n.*memwall bench --help"\n\\Z')

    def test_csv_has_a_line_for_each_point(self):
        out = self.bench("--csv", *QUICK, "--kv", "f16,q4_0").stdout
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(["f16", "q4_0"], [r["kv"] for r in rows])
        for r in rows:
            self.assertEqual("ok", r["status"])
            self.assertGreater(float(r["decode_tps"]), 0)
            self.assertGreater(float(r["decode_tps_predicted"]), 0)
            self.assertEqual(0, float(r["decode_tps_spread"]))
            self.assertNotIn(None, r)

    def test_markdown_without_a_terminal(self):
        out = self.bench(*QUICK, "--kv", "f16,q8_0").stdout
        table = [line for line in out.splitlines() if line.startswith("|")]
        self.assertEqual(4, len(table))
        self.assertEqual({table[0].count("|")}, {line.count("|") for line in table})
        self.assertIn("| decode, tok/s | ~decode, tok/s |", table[0])
        self.assertRegex(table[2], r"~[\d.,]+ \([+-]\d+ %\)")
        self.assertNotIn("\x1b", out)

    def test_a_table_fits_the_terminal(self):
        for width in (60, 200):
            main, side = pty.openpty()
            fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            self.bench(*QUICK, "--kv", "f16,q8_0", stdout=side)
            os.close(side)
            lines = read_terminal(main).decode().splitlines()
            head = next(i for i, line in enumerate(lines) if "budget" in line and "decode" in line)
            self.assertIn("decode", lines[head])
            for line in lines[head:head + 4]:
                self.assertLessEqual(len(line), width)
            self.assertEqual(width == 60, any("for want of columns" in line for line in lines))

    def test_the_time_is_announced_and_progress_is_shown(self):
        """In a pipe, a line for each run takes the place of the line that a terminal shows."""
        lines = self.bench("-p", "4", "-n", "3", "-r", "2", "--kv", "f16,q8_0").stderr.splitlines()
        self.assertRegex(lines[0], r"^memwall: 4 runs take about [\d.]+ m?s; Ctrl-C keeps ")
        self.assertEqual(5, len(lines))
        for i, line in enumerate(lines[1:], 1):
            self.assertRegex(line, rf"^memwall: run {i} of 4, \S+ \wiB: [\d.,]+ tok/s")
            self.assertEqual(i < 4, "left" in line, line)
        self.assertIn("prompt ", self.bench("-p", "4", "-n", "0", "-r", "1").stderr)
        err = self.bench("-d", "4", "-p", "0", "-n", "0", "-r", "1").stderr
        self.assertRegex(err, r"run 1 of 1, \S+ \wiB: opened in [\d.]+ m?s$")
        self.assertEqual("", self.bench(*QUICK, "--quiet").stderr)
        main, side = pty.openpty()
        self.bench(*QUICK, stdout=subprocess.DEVNULL, stderr=side)
        os.close(side)
        shown = read_terminal(main).decode()
        self.assertRegex(shown, r"1 run takes about [\d.]+ m?s; Ctrl-C keeps what was measured")
        self.assertRegex(shown, r"round 1/1, point 1/1, \S+ \w+: ")
        self.assertNotIn("run 1 of 1", shown)

    def test_a_run_ends_at_the_time_limit(self):
        """Slow disks make the answer, and the prompt, longer than the limit."""
        slow = ("--json", "-p", "1", "-r", "1", "--memory", budget(60), "--disk-rate", "20M")
        self.bench(*slow, "-n", "1")  # measures the limits
        begin = time.monotonic()
        self.bench(*slow, "-n", "1")
        limit = max(2, round(2 * (time.monotonic() - begin)))  # time for a first token
        r = self.check(json.loads(self.bench(*slow, "-n", "300", "--time-limit",
                                             str(limit)).stdout))
        self.assertIn(f"--time-limit {limit}", r["options"])
        point = r["points"][0]
        self.assertEqual("ok", point["status"], point["error"])
        self.assertGreater(point["median"]["decode_tps"], 0)
        r = self.bench("--json", "-p", "64", "-n", "3", "-r", "1", "--memory", budget(60),
                       "--disk-rate", "100k", "--time-limit", "1", code=1)
        point = self.check(json.loads(r.stdout))["points"][0]
        self.assertEqual("failed", point["status"])
        self.assertIn("in the 1 s of --time-limit", point["error"])

    # --- what slows a run down from outside ---

    def test_a_disturbed_run_is_marked(self):
        self.bench(*QUICK, "-o", self.path("a.json"))
        one = self.load("a.json")
        run = one["points"][0]["runs"][0]
        for figures in (run, one["points"][0]["median"]):
            if figures["others_share"] is None:  # the run took less than a tick of the clock
                self.assertIn("others_share", run["unknown"])
                continue
            self.assertLessEqual(0, figures["others_share"])
            self.assertLessEqual(figures["others_share"], 1)
        for stolen, others, throttled, text in (
                (0.01, 0.1, 0, None), (None, None, None, None),
                (0.12, 0.1, 0, "the host took 12 % of the processors' time"),
                (0, 0.4, 0, "other programs used 40 % of the processors' time"),
                (0, 0, 3, "the processors were throttled 3 times")):
            run.update(stolen_share=stolen, others_share=others, throttled=throttled)
            with open(self.path("a.json"), "w") as f:
                json.dump(one, f)
            out = self.bench(*QUICK, "-o", self.path("a.json")).stdout  # it is complete
            if text is None:
                self.assertNotRegex(out, r"(?m)\d!|^! ")
            else:
                self.assertRegex(out, r"\| [\d.,]+! \|")
                self.assertIn(": " + text, out)

    # --- budgets that are too small, and wrong values ---

    def test_a_budget_that_is_too_small_is_a_row(self):
        r = json.loads(self.bench("--json", *QUICK, "--memory", "8M,500M").stdout)
        self.check(r)
        self.assertEqual(["refused", "ok"], [p["status"] for p in r["points"]])
        self.assertIn("8.00 MiB", r["points"][0]["error"])
        out = self.bench(*QUICK, "--memory", "8M", code=3).stdout
        self.assertIn("| refused |", out)
        self.assertIn("It fits a budget of", out)

    def test_wrong_values_are_named_before_anything_is_measured(self):
        for args, text in ((("--memory", "1G,x"), '"x"'), (("-p", "4,"), '""'),
                           (("--kv", "f16,f8"), '"f8"'), (("-d", "-1"), '"-1"'),
                           (("-o", "out.xls"), '"out.xls"'), (("--json", "--csv"), "--csv"),
                           (("-ngl", "99"), "-n")):
            self.assertIn(text, self.bench(*args, code=2).stderr, args)

    def test_a_context_that_is_too_short_is_refused(self):
        self.assertIn("context has 5", self.bench(*QUICK, "--ctx", "5", code=1).stderr)

    # --- comparisons ---

    def test_two_results_are_compared(self):
        self.bench("-p", "4", "-n", "3", "-r", "3", "-o", self.path("a.json"))
        out = self.bench("-p", "4", "-n", "3", "-r", "3", "--compare", self.path("a.json")).stdout
        self.assertIn("Welch's t-test", out)
        self.assertRegex(out, r"\| decode, tok/s \| .* \| p (< )?[01]\.\d+")
        old = self.load("a.json")
        for run in old["points"][0]["runs"]:
            run["decode_tps"] *= 1e6
        old["started"] = "\x1b[2J"
        with open(self.path("b.json"), "w") as f:
            json.dump(old, f)
        out = self.bench("-p", "4", "-n", "3", "-r", "3", "--compare", self.path("b.json")).stdout
        self.assertRegex(out, r"\| decode, tok/s \| .* \| -100.0 % worse \|")
        self.assertNotIn("\x1b", out)

    def test_one_run_shows_no_significance(self):
        self.bench(*QUICK, "-o", self.path("a.json"))
        out = self.bench("-p", "4", "-n", "3", "-r", "2", "--compare", self.path("a.json")).stdout
        self.assertIn("too few runs (1 and 2)", out)
        out = self.bench("-p", "5", "-n", "3", "-r", "1", "--compare", self.path("a.json")).stdout
        self.assertIn("No point of the earlier result has the same settings", out)

    def test_other_files_are_not_results(self):
        for text, why in (("{}", "format"), ("[]", "format"), ("{", "a.json"),
                          ('{"format":"memwall-measurements","format_version":2}',
                           "format_version"),
                          ('{"format":"memwall-measurements","format_version":1,"n_repeat":1}',
                           "points"),
                          ('{"format":"memwall-measurements","format_version":1,'
                           '"n_repeat":4000000000}', "n_repeat")):
            with open(self.path("a.json"), "w") as f:
                f.write(text)
            r = self.bench(*QUICK, "--compare", self.path("a.json"), code=1)
            self.assertIn(why, r.stderr, text)
            self.assertEqual(1, r.stderr.count("\n"))
        self.assertIn("none.json", self.bench("--compare", self.path("none.json"), code=1).stderr)

    # --- files ---

    def test_files_get_the_format_of_their_ending(self):
        names = "r.json", "r.csv", "r.md"
        self.bench(*QUICK, *(x for n in names for x in ("-o", self.path(n))))
        self.assertEqual(sorted(names), sorted(os.listdir(self.folder)))
        self.assertTrue(self.load("r.json")["complete"])
        with open(self.path("r.csv")) as f:
            self.assertEqual(1, len(list(csv.DictReader(f))))
        with open(self.path("r.md")) as f:
            self.assertIn("| decode, tok/s |", f.read())
        self.assertIn("--force", self.bench(*QUICK, "-o", self.path("r.csv"), code=2).stderr)
        self.bench(*QUICK, "--force", "-o", self.path("r.csv"))

    def test_a_result_is_continued(self):
        self.bench("-p", "4", "-n", "3", "-r", "2", "--kv", "f16,q8_0", "-o", self.path("r.json"))
        first = self.load("r.json")
        cut = json.loads(json.dumps(first))
        cut["complete"] = False
        cut["points"][1]["runs"].pop()
        with open(self.path("r.json"), "w") as f:
            json.dump(cut, f)
        self.bench("-p", "4", "-n", "3", "-r", "2", "--kv", "f16,q8_0", "-o", self.path("r.json"))
        again = self.load("r.json")
        self.assertTrue(again["complete"])
        self.assertEqual(first["points"][0]["runs"], again["points"][0]["runs"])
        self.assertEqual(first["points"][1]["runs"][0], again["points"][1]["runs"][0])
        self.assertNotEqual(first["points"][1]["runs"][1], again["points"][1]["runs"][1])
        r = self.bench("-p", "4", "-n", "3", "--cold", "-o", self.path("r.json"), code=2)
        self.assertIn("another model, machine, version or option", r.stderr)

    # --- faults ---

    def test_a_model_that_is_not_there(self):
        for name in ("none.gguf", "text.gguf"):
            if name == "text.gguf":
                with open(self.path(name), "w") as f:
                    f.write("text")
            r = self.bench(*QUICK, "--kv", "f16,q8_0", model=self.path(name), code=1)
            self.assertEqual("", r.stdout)
            self.assertEqual(1, r.stderr.count(name))

    def test_a_header_without_weights(self):
        with open(GUIDE, "rb") as f:
            head = f.read(1 << 20)
        with open(self.path("head.gguf"), "wb") as f:
            f.write(head)
            f.truncate(os.path.getsize(GUIDE))
            has_holes = os.lseek(f.fileno(), 0, os.SEEK_HOLE) == len(head)
        if has_holes:  # not every file system can tell
            r = self.bench(*QUICK, model=self.path("head.gguf"), code=1)
            self.assertIn("the weights are not there: 5.37 MiB of 6.37 MiB are holes", r.stderr)
        with open(self.path("cut.gguf"), "wb") as f:
            f.write(head)
        r = self.bench(*QUICK, model=self.path("cut.gguf"), code=1)
        self.assertIn("past the end of the file", r.stderr)

    def test_a_folder_that_cannot_be_written_is_found_first(self):
        with open(self.path("file"), "w"):
            pass
        for name in ("none/r.json", "file/r.json"):
            r = self.bench(*QUICK, "-o", self.path(name), code=1)
            self.assertIn("r.json", r.stderr)
            self.assertEqual("", r.stdout)

    def test_a_full_disk_ends_it_and_prints_what_there_is(self):
        """The limit on the size of files lets the first, empty result through, and not the last.
        A result has names and limits beside its runs, whose length differs by machine."""
        self.bench("-p", "4", "-n", "3", "-r", "1", "-o", self.path("r.json"))
        size = os.path.getsize(self.path("r.json"))
        os.unlink(self.path("r.json"))

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        r = self.bench("-p", "4", "-n", "3", "-r", "9", "-o", self.path("r.json"), code=1,
                       preexec_fn=limit)
        self.assertIn("r.json", r.stderr)
        self.assertIn("| decode, tok/s |", r.stdout)
        self.assertEqual(["r.json"], os.listdir(self.folder))
        self.load("r.json")

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w") as full:
            r = self.bench(*QUICK, stdout=full, code=1)
        self.assertIn("could not write to standard output", r.stderr)

    def test_a_model_that_disappears_keeps_the_runs_before(self):
        model = self.path("copy.gguf")
        shutil.copy(GUIDE, model)
        p = self.start("-p", "4", "-n", "3", "-r", "100", "-o", self.path("r.json"), model=model)
        self.wait_for(p, lambda: self.runs("r.json") > 0)
        os.unlink(model)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(1, p.returncode, err)
        self.assertIn("copy.gguf", out)
        r = self.load("r.json")
        self.assertEqual("failed", r["points"][0]["status"])
        self.assertGreater(len(r["points"][0]["runs"]), 0)

    def test_a_killed_measurement_is_a_row(self):
        p = self.start("-p", "4", "-n", "600", "--kv", "f16,q8_0", "-r", "1", "--ctx", "1k", "-o",
                       self.path("r.json"))

        def kill_one():
            child = self.child(p)
            if child is None:
                return False
            try:
                with open(f"/proc/{child}/cmdline") as f:
                    if "run" not in f.read().split("\0"):
                        return False
                os.kill(child, signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                return False
            return True
        self.wait_for(p, kill_one)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(1, p.returncode, err)
        r = self.load("r.json")
        self.assertEqual(["failed", "ok"], sorted(x["status"] for x in r["points"]))
        self.assertIn("killed by signal 9", "".join(x["error"] or "" for x in r["points"]))
        self.assertIn("killed by signal 9", out)

    def test_control_c_keeps_what_was_measured(self):
        p = self.start("--quiet", "-p", "4", "-n", "3", "-r", "100", "--kv", "f16,q8_0", "-o",
                       self.path("r.json"))
        self.wait_for(p, lambda: self.runs("r.json") > 0)
        child = self.wait_for(p, lambda: self.child(p))
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual((130, ""), (p.returncode, err))
        self.assertIn("interrupted", out)
        self.assertFalse(os.path.exists(f"/proc/{child}"))
        self.assertEqual(["r.json"], os.listdir(self.folder))
        self.assertFalse(self.load("r.json")["complete"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
