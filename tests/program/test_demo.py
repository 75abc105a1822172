#!/usr/bin/env python3
"""memwall demo -m MODEL: the same budget twice, as text, as JSON and on the screen."""
import json
import os
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bench_case import GUIDE, TIMEOUT_S, Case  # noqa: E402
from program import budget  # noqa: E402
from terminal import Terminal  # noqa: E402

SMALL = ("-n", "4", "-b", budget(100))
NO_CAGE = "need a memory cage"


def leftovers():
    """Returns the control groups of memwalls that have ended."""
    return {name for at, _, _ in os.walk("/sys/fs/cgroup")
            if (name := os.path.basename(at)).startswith("memwall-") and
            not os.path.exists("/proc/" + name.split(".")[-1])}


class Demo(Case):
    command = "demo"

    def setUp(self):
        super().setUp()
        self.left_before = leftovers()  # of other programs, or of runs that were killed

    def demo(self, *args, **more):
        """Run with a control group, or skip the test where none can be made."""
        r = self.run_it(*args, code=None, **more)
        if NO_CAGE in r.stderr:
            self.skipTest("no cage can be made here: " + r.stderr)
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertEqual(set(), leftovers() - self.left_before)
        return r

    def wait_for_keeper(self, p):
        """Return the process that keeps the cage, or skip the test where none can be made."""
        while (keeper := self.keeper(p)) is None:
            if p.poll() is not None:
                why = p.stderr.read()
                self.assertIn(NO_CAGE, why)
                self.skipTest("no cage can be made here: " + why)
            os.sched_yield()
        return keeper

    # --- the comparison ---

    def test_both_sides_have_the_same_limit(self):
        r = self.check(json.loads(self.demo("--json", *SMALL).stdout))
        self.assertEqual(("demo", True), (r["command"], r["complete"]))
        direct, mapped = r["points"]
        self.assertEqual([True, True], [p["caged"] for p in r["points"]])
        self.assertEqual("mmap", mapped["io"])
        self.assertNotEqual("mmap", direct["io"])
        self.assertEqual(direct["settings"]["memory_bytes"], mapped["settings"]["memory_bytes"])
        for p in r["points"]:
            self.assertEqual(("ok", 1), (p["status"], len(p["runs"])), p["error"])
            self.assertEqual("control group", p["runs"][0]["peak_of"])
            self.assertLessEqual(p["runs"][0]["peak_bytes"], p["plan"]["budget_bytes"])
        self.assertGreater(direct["predicted"]["decode_tps"], 0)
        for name, p in (("memwall", direct), ("mapped", mapped)):
            side = r["sides"][name]
            self.assertEqual(4, side["tokens"])
            self.assertFalse(side["is_upper_bound"])
            self.assertAlmostEqual(p["median"]["decode_tps"], side["decode_tps"], 5)
        self.assertAlmostEqual(r["sides"]["memwall"]["decode_tps"] /
                               r["sides"]["mapped"]["decode_tps"], r["sides"]["times"], 3)

    def test_without_a_budget_half_of_the_weights_fit(self):
        r = self.check(json.loads(self.demo("--json", "-n", "2").stdout))
        plan = r["points"][0]["plan"]
        middle = (plan["smallest_budget_bytes"] + plan["all_pinned_budget_bytes"]) / 2
        self.assertLess(abs(plan["budget_bytes"] - middle), 2 << 20)

    def test_in_a_pipe_the_result_is_text(self):
        out = self.demo(*SMALL).stdout
        for part in ("memwall, direct reads: ", "mapped pages: ", "4 tokens in ", " charged\n",
                     "page cache ", ", one after the other\n", " predicted\n"):
            self.assertIn(part, out)
        self.assertRegex(out, r"\nmemwall [\d.,]+ tok/s, mapped pages [\d.,]+: .*fast\n\Z")
        self.assertNotIn("\033", out)

    def test_the_time_limit_ends_both_sides(self):
        r = self.check(json.loads(self.demo("--json", "-n", "0", "--time-limit", "1", "-b",
                                            budget(100), "-c", "4096").stdout))
        for side in r["sides"]["memwall"], r["sides"]["mapped"]:
            self.assertGreater(side["tokens"], 0)
            self.assertLess(side["tokens"], 4096)

    # --- what does not work ---

    def test_without_permission_memwall_is_measured_alone(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody without permission")
        os.chmod(self.home, 0o777)
        try:
            r = self.run_it("--json", *SMALL, user=65534, group=65534, extra_groups=[], code=None)
        except PermissionError:
            self.skipTest("others cannot run this build")
        if "cannot open" in r.stderr or r.returncode == 127:
            self.skipTest("others cannot read this build")
        self.assertEqual(1, r.returncode, r.stderr)
        self.assertEqual(1, r.stderr.count("\n"))
        self.assertRegex(r.stderr, NO_CAGE + r", and .*systemd-run --user --scope")
        r = self.check(json.loads(r.stdout))
        self.assertEqual(["ok", "pending"], [p["status"] for p in r["points"]])
        self.assertEqual((None, None), (r["sides"]["mapped"]["decode_tps"], r["sides"]["times"]))
        self.assertGreater(r["sides"]["memwall"]["decode_tps"], 0)

    def test_a_budget_that_is_too_small_is_refused(self):
        r = self.run_it("-b", "4M", code=3)
        self.assertEqual("", r.stdout)
        self.assertIn("budget", r.stderr)

    def test_options_of_the_comparison_need_a_model(self):
        for args in ("--memory", "1G"), ("--json",), ("-n", "3"):
            r = self.run_it(*args, model="--color=never", code=2)
            self.assertIn("needs a model", r.stderr)
        self.assertIn("--tour", self.run_it("--tour", "--json", code=2).stderr)
        self.assertIn("none.gguf", self.run_it(model=self.path("none.gguf"), code=1).stderr)

    def test_the_tour_shows_what_drafts_gain(self):
        """The guide's assistant is tried with the disk of the other steps."""
        out = self.run_it(model="--tour", *(GUIDE,)).stdout
        self.assertIn("tour 3 of 5: /draft mtp.", out)
        measured = [float(x) for x in re.findall(r"(?m)^. measured: ([\d.]+) tok/s", out)]
        self.assertEqual(5, len(measured))
        self.assertGreater(measured[2], 1.5 * measured[1])  # with the same budget
        self.assertRegex(out, r"measured: [\d.]+ tok/s \(.*\), [3-5]\.\d tokens a pass, "
                              r"\d+ % of the drafts right")

    def test_ctrl_c_stops_it_and_leaves_nothing(self):
        p = self.start("-n", "0", "-b", budget(100))
        self.wait_for(p, lambda: self.child(p))
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual((130, ""), (p.returncode, out))
        self.assertEqual(set(), leftovers() - self.left_before)

    def ends(self, pid):
        end = time.monotonic() + TIMEOUT_S
        while (name := self.name(pid)) is not None:
            self.assertLess(time.monotonic(), end, f"{name} does not end")
            os.sched_yield()

    def test_a_killed_demo_leaves_nothing(self):
        """The keeper of the cage lives on, until the measured process has died, too."""
        for kill in (lambda p: p.kill(), lambda p: os.killpg(p.pid, signal.SIGKILL)):
            p = self.start("-n", "0", "-b", budget(100), start_new_session=True)
            keeper = self.wait_for_keeper(p)
            child = self.child(p)
            kill(p)
            self.assertEqual(-signal.SIGKILL, p.wait(TIMEOUT_S))
            self.ends(keeper)
            self.ends(child)  # it leaves its group a moment before it is gone
            self.assertEqual(set(), leftovers() - self.left_before)

    def test_the_keeper_does_not_outlive_its_cage(self):
        p = self.start("-n", "4", "-b", budget(100))
        keeper = self.wait_for_keeper(p)
        p.communicate(timeout=TIMEOUT_S)
        self.assertEqual(0, p.returncode)
        self.assertIsNone(self.name(keeper))

    # --- the screen ---

    def show(self, rows, cols, *args):
        self.renew_limits()
        t = Terminal("demo", "-m", GUIDE, "-b", budget(100), *args, home=self.home, rows=rows,
                     cols=cols)
        self.addCleanup(t.close)
        return t

    def code(self, t):
        while t.pump(0.1):
            pass
        return t.process.wait(TIMEOUT_S)

    def test_two_figures_side_by_side(self):
        for rows, cols, args in ((24, 80, ()), (30, 120, ("--ascii",)), (40, 60, ()), (6, 30, ())):
            with self.subTest(rows=rows, cols=cols):
                t = self.show(rows, cols, "-n", "4", *args)
                self.assertTrue(t.sees("q: leave", seconds=120),
                                t.screen())
                shown = t.screen()
                if NO_CAGE in t.raw.decode():
                    self.skipTest("no cage can be made here")
                if cols > 40:
                    for part in ("memwall, direct reads", "mapped pages", "tok/s", "4 tokens in "):
                        self.assertIn(part, shown)
                self.assertEqual("--ascii" in args, shown.isascii())
                t.send("q")
                self.assertEqual(0, self.code(t))
                # The result stays on the ordinary screen, and was complete on this one.
                result = t.raw.decode().split("\033[?1049l")[-1].strip().splitlines()[-1]
                self.assertRegex(result, r"^memwall [\d.,]+ tok/s, mapped pages [\d.,]+: .* fast$")
                self.assertIn(result, " ".join(shown.split()))

    def test_q_stops_a_measurement(self):
        t = self.show(24, 80, "-n", "0")
        self.assertTrue(t.sees("stop and leave"), t.screen())
        t.send("q")
        self.assertEqual(130, self.code(t))
        self.assertEqual(set(), leftovers() - self.left_before)
        self.assertIsNone(re.search("times as fast", t.raw.decode()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
