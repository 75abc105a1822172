#!/usr/bin/env python3
"""memwall report: the page, its faults, and the page in a browser."""
import concurrent.futures
import functools
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import browser  # noqa: E402
import gguf_model  # noqa: E402
from html_page import Page  # noqa: E402
from program import (MEMWALL, MODELS, TIMEOUT_S, MeasuredHome, budget,  # noqa: E402
                     environment)

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")


def run_memwall(home, cwd, *args, **more):
    return subprocess.run([MEMWALL, *args], env=environment(home, USER="secretuser"), cwd=cwd,
                          capture_output=True, text=True, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL, **more)


def make_folders(add_cleanup, home):
    cwd = tempfile.TemporaryDirectory()
    for folder in home, cwd:
        add_cleanup(folder.cleanup)
    return home.name, cwd.name


def new_folders():
    """The home has limits that others measured: a report measures what it shows all the same, but
    not the weight types of all known models."""
    return make_folders(unittest.addModuleCleanup,
                        MeasuredHome(gives=False, prefix="secret-home-"))


@functools.cache
def measured():
    """Measure once, because it takes seconds.  Return the folders and the result."""
    home, cwd = new_folders()
    least = json.loads(run_memwall(home, cwd, "plan", MODEL, "--json").stdout)
    least = least["smallest_budget_bytes"]
    return home, cwd, run_memwall(home, cwd, "report", MODEL, "--memory", str(least + (2 << 20)))


@functools.cache
def measured_machine():
    """The same without a model."""
    home, cwd = new_folders()
    return home, cwd, run_memwall(home, cwd, "report", "--no-disk", "-q")


@functools.cache
def measured_and_removed():
    """The same of a model that disappears; with the first line of its messages."""
    home, cwd = new_folders()
    model = os.path.join(cwd, "m.gguf")
    shutil.copy(MODEL, model)
    p = subprocess.Popen([MEMWALL, "report", "m.gguf", "--no-disk"], cwd=cwd, text=True,
                         env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = p.stderr.readline()
    os.remove(model)
    out, err = p.communicate(timeout=TIMEOUT_S)
    return home, cwd, first, subprocess.CompletedProcess(p.args, p.returncode, out, err)


def setUpModule():
    """Measurements take a time that is fixed, so they run at the same time."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        all_of_them = [pool.submit(f) for f in (measured, measured_machine,
                                                measured_and_removed)]
    for one in all_of_them:
        one.result()


class Report(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.home, self.cwd = make_folders(
            self.addCleanup, tempfile.TemporaryDirectory(prefix="secret-home-"))

    def memwall(self, *args, code=0, **more):
        r = run_memwall(self.home, self.cwd, *args, **more)
        self.assertEqual(code, r.returncode, r.stderr)
        return r

    def page(self, name="memwall-report.html"):
        with open(os.path.join(self.cwd, name), encoding="utf-8") as f:
            text = f.read()
        page = Page(text)
        self.assertEqual([], page.errors)
        for data in page.data:
            page.json(data.removeprefix("data-"))
        for name in ("secret-home", "secretuser", self.home, os.path.dirname(MODEL)):
            self.assertNotIn(name, text)
        host = socket.gethostname()
        if len(host) > 4:
            self.assertNotIn(host, text)
        return page


class Measured(Report):
    def test_a_model_is_measured_and_shown(self):
        self.home, self.cwd, r = measured()
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertEqual("memwall-report.html\n", r.stdout)
        self.assertIn("memwall: measuring this machine takes about", r.stderr)
        self.assertRegex(r.stderr, r"memwall: running the model takes about .*, on a busy machine "
                                   r"more; each of 7 runs ends after 60 s; Ctrl-C keeps")
        self.assertEqual(["memwall-report.html"], os.listdir(self.cwd))
        page = self.page()
        self.assertEqual({"data-report", "data-doctor", "data-plan", "data-bench", "data-sweep",
                          "data-recording"}, set(page.data))
        about = page.json("report")
        self.assertEqual((1, True, [], "gemma4-tiny-q4_0.gguf"),
                         (about["version"], about["complete"], about["notes"], about["file"]))
        self.assertEqual(["memory", "disk", "arithmetic", "complete"],
                         list(page.json("doctor")))
        bench, sweep = page.json("bench"), page.json("sweep")
        track = page.json("recording")
        self.assertGreater(bench["points"][0]["median"]["decode_tps"], 0)
        self.assertGreater(len(track["tokens"]), 3)
        times = [t["t_s"] for t in track["tokens"]]
        self.assertEqual(sorted(times), times)
        # The points of the sweep are within their budgets, the smallest first.
        self.assertEqual(5, len(sweep["points"]))
        budgets = [p["plan"]["budget_bytes"] for p in sweep["points"]]
        self.assertEqual(sorted(budgets), budgets)
        for p in sweep["points"]:
            self.assertEqual("ok", p["status"])
        for part in (bench, sweep):
            self.assertEqual("gemma4-tiny-q4_0.gguf", part["model"]["path"])
        words = page.words()
        for text in ("Summary", "This machine has", "Measured: ", "Sweep"):
            self.assertIn(text, words)
        self.one_figure_for_one_speed(words)
        # Some file systems have none, and then there is no table of them.
        disk = page.json("doctor")["disk"]
        self.assertEqual(bool(disk.get("direct")), "Direct reads by" in words)
        titles = [t for t, a in page.tags if t == "svg"]
        self.assertGreaterEqual(len(titles), 3)
        # The summary has the figures of the plan.
        plan = page.json("plan")
        self.assertIn("streams:" if plan["streamed_bytes"] else "fits:", words)

    def test_the_summary_does_not_contradict_what_was_measured(self):
        self.home, self.cwd, _ = measured()
        page = self.page()
        words = page.words()
        found = re.search(r"Measured: .*?([\d.,]+) tokens per second.*?for which ([\d.,]+) were "
                          r"predicted \(([+-]?\d+) %\)", words)
        self.assertIsNotNone(found, words[:3000])
        came, predicted = (float(found.group(i).replace(",", "")) for i in (1, 2))
        self.assertAlmostEqual(100 * (came / predicted - 1), int(found.group(3)), delta=2)
        waits = float(re.search(r"waited for the disk (\d+) % of their time", words).group(1))
        limit = re.search(r"limited by ([a-z ]+)\.", words).group(1)
        if page.json("plan")["streamed_bytes"] == 0:
            self.assertNotIn("weights from disk", words)
        elif waits >= 60:
            self.assertIn("disk", limit)
        elif waits <= 20:
            self.assertNotIn("disk", limit)
        # More budget is not called useless beside points that got faster by it.
        self.assertNotIn("budget does not help", words)

    def one_figure_for_one_speed(self, words):
        """The summary names what was measured, what was predicted for it, and the speed at the
        end of the context, which the advice repeats."""
        card = re.search(r"answers, measured\s*(\S+) tok/s", words)[1]
        came = re.search(r"Measured: answers come at (\S+) tokens per second", words)[1]
        end = re.search(r"At the end of the context of [\d,]+ tokens, answers are predicted to come "
                        r"at about (\S+) tokens per second", words)[1]
        self.assertEqual(card, came)
        for rate in re.findall(r"instead of ~(\S+?)\.? ", words):
            self.assertEqual(end, rate)
        words, n = re.subn(r"Prompts are read at about \S+ tokens per second\.", "", words)
        self.assertEqual(1, n)
        self.assertEqual(3, len(re.findall(r"\S+ (?:tokens per second|were predicted)", words)))

    def test_a_machine_without_a_model(self):
        self.home, self.cwd, r = measured_machine()
        self.assertEqual((0, "memwall-report.html\n"), (r.returncode, r.stdout), r.stderr)
        page = self.page()
        self.assertEqual({"data-report", "data-doctor"}, set(page.data))
        self.assertEqual(["memory", "arithmetic", "complete"], list(page.json("doctor")))
        self.assertEqual([], page.images)

    def test_a_model_that_disappears_leaves_the_rest(self):
        self.home, self.cwd, first, r = measured_and_removed()
        self.assertIn("measuring this machine", first)
        self.assertEqual((0, "memwall-report.html\n"), (r.returncode, r.stdout), r.stderr)
        self.assertIn("m.gguf", r.stderr)
        self.assertEqual(["memwall-report.html"], os.listdir(self.cwd))
        page = self.page()
        self.assertFalse(page.json("report")["complete"])
        self.assertIn("data-plan", page.data)
        self.assertTrue(page.json("doctor")["complete"])

    def announced(self, *args):
        """Returns what is announced of the runs of a model, and measures none."""
        p = subprocess.Popen([MEMWALL, "report", MODEL, *args], env=environment(self.home),
                             text=True, cwd=self.cwd, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
        self.assertIn("measuring this machine", p.stderr.readline())
        line = p.stderr.readline()
        p.kill()
        p.communicate(timeout=TIMEOUT_S)
        return line

    def test_all_steps_of_the_runs_are_announced(self):
        """Each of six points is planned, which measures the machine if its limits are doubtful."""
        self.memwall("plan", MODEL)
        limits = os.path.join(self.home, ".cache", "memwall", "limits")
        with open(limits, encoding="utf-8") as f:
            lines = [dict(json.loads(line), doubtful=True) for line in f]
        with open(limits, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        said = self.announced("--no-disk")
        self.assertGreaterEqual(float(re.search(r"takes about ([\d.]+) s,", said).group(1)), 20, said)
        self.memwall("run", "-m", MODEL, "--memory", budget(200), "-n", "20", "--telemetry",
                     "t.jsonl", "tell me")
        self.assertIn("; each of 6 runs ends after 5 s;",
                      self.announced("--no-disk", "--recording", "t.jsonl", "--time-limit", "5"))

    def test_ctrl_c_keeps_what_was_measured(self):
        p = subprocess.Popen([MEMWALL, "report", MODEL], env=environment(self.home), text=True,
                             cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn("measuring this machine", p.stderr.readline())
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual((130, "memwall-report.html\n", ""), (p.returncode, out, err))
        self.assertEqual(["memwall-report.html"], os.listdir(self.cwd))
        page = self.page()
        self.assertFalse(page.json("report")["complete"])
        self.assertFalse(page.json("doctor")["complete"])
        self.assertIn("The measurement was stopped", page.words())


class Quick(Report):
    def quick(self, *args, **more):
        return self.memwall("report", "--no-measure", *args, **more)

    def test_nothing_is_measured_on_request(self):
        r = self.quick(MODEL)
        self.assertEqual("", r.stderr)
        page = self.page()
        self.assertEqual({"data-report", "data-plan"}, set(page.data))
        self.assertEqual(0, page.json("plan")["decode_tps"])
        self.assertIn("was not measured", page.words())
        with open(os.path.join(self.home, ".cache", "memwall", "limits"), encoding="utf-8") as f:
            # OpenBLAS or the kernels: a choice that answers depend on is made once, for good.
            self.assertEqual({"product"}, {json.loads(line)["kind"] for line in f})

    def test_a_model_that_does_not_fit(self):
        self.quick(MODEL, "--memory", "20M", "-o", "small.html")
        page = self.page("small.html")
        self.assertFalse(page.json("plan")["fits"])
        self.assertIn("does not fit a budget of 20.0 MiB", page.words())
        words = page.words()
        self.assertIn("Change first: the budget: --memory", words)
        # The cards alone fill the screen of a phone.
        self.assertLess(words.index("Change first"), words.index("available for a model"))
        with open(os.path.join(self.cwd, "small.html"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("a budget of 20.0&#160;MiB", text)  # on one line
        self.assertIsNone(re.search(r"\d [KMG]iB", re.sub(r"(?s)<(script|svg).*?</\1>", "", text)))

    def test_a_recording_is_shown(self):
        self.memwall("run", "-m", MODEL, "--memory", budget(200), "--temp", "0", "-n", "20",
                     "--telemetry", "t.jsonl", "tell me")
        self.quick("--recording", "t.jsonl")
        page = self.page()
        track = page.json("recording")
        self.assertEqual(20, len(track["tokens"]))
        self.assertNotIn("tell me", page.words())
        self.assertIn("Memory over time", page.words())
        # One that is damaged is read up to the damage.
        with open(os.path.join(self.cwd, "t.jsonl"), "ab") as f:
            f.write(b"{\"event\":<script>\n")
        self.quick("--recording", "t.jsonl", "--force")
        page = self.page()
        self.assertEqual(20, len(page.json("recording")["tokens"]))
        self.assertIn("The recording is damaged", page.words())

    def test_hostile_names_stay_text(self):
        name = "</script><script>alert(1)</script><img src=x onerror=y>&\"'\x1b[2J\u202e"
        model = gguf_model.llama(head_dim=64)
        model.keys.append(("general.name", gguf_model.STRING, name))
        model.write(os.path.join(self.cwd, "<b onclick=x>&.gguf"))
        self.quick("<b onclick=x>&.gguf", "-o", "h.html")
        page = self.page("h.html")
        self.assertEqual("<b onclick=x>&.gguf", page.json("report")["file"])
        self.assertIn("alert(1)", page.words())
        self.assertNotIn("\u202e", page.words())
        self.assertEqual({"application/json"}, {a.get("type") for t, a in page.tags
                                                if t == "script"})

    def test_files_of_bench_and_sweep_are_shown(self):
        home = measured()[0]  # in which limits are kept
        run_memwall(home, self.cwd, "bench", MODEL, "--memory",
                    "{},{}".format(budget(150), budget(200)), "-p", "8", "-n", "4", "-r", "2",
                    "-q", "-o", "b.json", check=True)
        with open(os.path.join(self.cwd, "b.json")) as f:
            b = json.load(f)
        b["command"] = "sweep"
        b["model"]["name"] = "<script>alert(2)</script>"
        with open(os.path.join(self.cwd, "s.json"), "w") as f:
            json.dump(b, f)
        self.quick(MODEL, "--bench", "b.json", "--sweep", "s.json")
        page = self.page()
        self.assertEqual(b["points"], page.json("sweep")["points"])
        self.assertEqual(b["points"], page.json("bench")["points"])
        words = page.words()
        self.assertRegex(words, r"budget decode, tok/s ~decode, tok/s prompt")  # wide tables are cut
        self.assertIn("<script>alert(2)</script>", words)
        self.assertIn("Speed of answers by", words)
        self.assertIn("measured: 2 points", words)


class Faults(Report):
    def refused(self, *args, text, code=1, **more):
        before = sorted(os.listdir(self.cwd))
        r = self.memwall("report", "--no-measure", *args, code=code, **more)
        self.assertEqual("", r.stdout)
        self.assertIn(text, r.stderr)
        self.assertEqual(1, r.stderr.count("\n"), r.stderr)
        self.assertEqual(before, sorted(os.listdir(self.cwd)))

    def test_an_existing_file_is_replaced_only_on_request(self):
        path = os.path.join(self.cwd, "memwall-report.html")
        with open(path, "w") as f:
            f.write("mine")
        self.refused(MODEL, text="--force")
        with open(path) as f:
            self.assertEqual("mine", f.read())
        self.memwall("report", "--no-measure", MODEL, "--force")
        self.page()

    def test_the_model_is_not_replaced(self):
        model = os.path.join(self.cwd, "m.gguf")
        shutil.copy(MODEL, model)
        self.refused("m.gguf", "-o", "m.gguf", "--force", text="m.gguf")

    def test_a_folder_that_cannot_be_written(self):
        self.refused(MODEL, "-o", "/proc/x.html", text="/proc/x.html")
        self.refused(MODEL, "-o", "missing/x.html", text="missing/x.html")

    def test_a_full_disk_leaves_nothing(self):
        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.refused(MODEL, text="cannot write \"memwall-report.html\"", preexec_fn=full)

    def test_missing_files(self):
        self.refused("missing.gguf", text="missing.gguf")
        self.refused("--recording", "missing.jsonl", text="missing.jsonl")
        self.refused("--recording", MODEL, text="gemma4-tiny-q4_0.gguf")
        self.refused("--bench", "missing.json", text="missing.json")
        self.refused("--sweep", MODEL, text="gemma4-tiny-q4_0.gguf")


def png_rows(data):
    """Yields the rows of a PNG as lists of (r, g, b)."""
    at, packed = 8, b""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6)
    while at < len(data):
        n, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + n]
        at += 12 + n
    raw, size = zlib.decompress(packed), 3 if kind == 2 else 4
    before = bytes(width * size)
    for y in range(height):
        how, *line = raw[y * (width * size + 1):(y + 1) * (width * size + 1)]
        line = bytearray(line)
        for i in range(len(line)):
            a = line[i - size] if i >= size else 0
            b, c = before[i], before[i - size] if i >= size else 0
            p = a + b - c
            best = min((abs(p - v), k) for k, v in enumerate((a, b, c)))[1]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, (a, b, c)[best])[how]) & 255
        before = bytes(line)
        yield [tuple(line[x:x + 3]) for x in range(0, len(line), size)]


@unittest.skipUnless(browser.CHROMIUM, "chromium is not installed")
class Browser(Report):
    """All tests look at one page in one browser, whose start takes seconds."""

    @classmethod
    def setUpClass(cls):
        home, cwd, _ = measured()
        try:
            cls.browser = browser.Browser(os.path.join(home, "browser"), environment(home),
                                          TIMEOUT_S)
        except browser.Failed as e:
            raise unittest.SkipTest(f"chromium does not start here: {e}")
        cls.addClassCleanup(cls.browser.close)
        cls.browser.open(os.path.join(cwd, "memwall-report.html"))

    def setUp(self):
        self.home, self.cwd, _ = measured()

    def test_the_browser_reads_the_same_page(self):
        seen = Page(self.browser.value("document.documentElement.outerHTML"))
        self.assertEqual([], seen.errors)
        page = self.page()
        self.assertEqual(page.ids, seen.ids)
        self.assertEqual(page.words(), seen.words())
        self.assertEqual(0, self.browser.value("performance.getEntriesByType('resource').length"))

    def test_light_and_dark_and_narrow(self):
        light = list(png_rows(self.browser.shot(600, 400)))
        dark = list(png_rows(self.browser.shot(600, 400, dark=True)))
        self.assertEqual((255, 255, 255), light[-1][2])
        self.assertLess(max(dark[-1][2]), 64)
        for rows in (light, dark):
            self.assertGreater(len({p for row in rows for p in row}), 20)
        # No text passes the right edge of a narrow window.
        for width in (360, 500, 1200):
            self.browser.shot(width, 40)
            self.assertEqual(width, self.browser.value("document.documentElement.scrollWidth"))

    def test_everything_has_an_accessible_name(self):
        names = self.browser.names()
        for role in "heading", "region", "table", "image", "navigation", "link":
            found = [name for r, name in names if r == role]
            self.assertNotEqual([], found, role)
            self.assertNotIn("", found, role)
        images = [name for role, name in names if role == "image"]
        self.assertEqual(len(images), len(set(images)))

    def test_it_is_printed(self):
        self.browser.shot(600, 40, dark=True)
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF-"))
        self.assertGreater(len(pdf), 10000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
