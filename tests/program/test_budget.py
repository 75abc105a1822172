#!/usr/bin/env python3
"""The memory budget: the items of the plan, and budgets that cannot be kept."""
import fcntl
import json
import math
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gguf_model  # noqa: E402
from program import (MEMWALL, MODELS, TIMEOUT_S, FolderCase, MeasuredHome,  # noqa: E402
                     environment, memwall, read_terminal, smallest_without_screen)

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")


# OpenBLAS counts with the program if it was measured to be faster than the kernels.  Limits of a
# busy machine are measured again, so the choice, and with it the plan, could change.
KERNELS = "--blas", "never"


def plan(*args, **more):
    r = memwall("plan", MODEL, "--json", *KERNELS, *args, **more)
    return json.loads(r.stdout)


def libraries():
    """Returns the paths of the shared libraries that the loader finds, without a run."""
    out = subprocess.run([MEMWALL], env=dict(os.environ, LD_TRACE_LOADED_OBJECTS="1"),
                         capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", out, re.M)


def chat(*args, lines):
    """Returns the output of plain mode, which reads from a pipe and prints to a terminal."""
    parent, child = pty.openpty()
    with MeasuredHome() as home:
        p = subprocess.Popen([MEMWALL, "-m", MODEL, "--plain", *args], stdin=subprocess.PIPE,
                             stdout=child, stderr=subprocess.DEVNULL,
                             env=environment(home, TERM="xterm"))
        os.close(child)
        p.stdin.write("".join(line + "\n" for line in lines).encode())
        p.stdin.close()
        out = read_terminal(parent)
        p.wait(TIMEOUT_S)
    return out.decode()


class FirstStart(unittest.TestCase):
    def test_the_plan_counts_the_files_of_the_program_and_its_libraries(self):
        paths = [os.path.realpath(MEMWALL), *libraries()]
        files = sum(-(-os.path.getsize(p) // PAGE) * PAGE for p in paths)
        self.assertGreater(len(paths), 3)
        self.assertGreaterEqual(plan("-b", "300M")["rows"]["program"], files + 4 * MIB)

    def test_a_library_that_is_not_used_is_not_loaded(self):
        self.assertFalse([p for p in libraries() if "blas" in p])

    def test_the_plan_is_the_same_every_time(self):
        self.assertEqual(plan("-b", "300M")["rows"], plan("-b", "300M")["rows"])


class WithoutScreen(unittest.TestCase):
    """Commands that draw nothing have the memory of the screen for weights."""

    def test_run_fits_a_smaller_budget_than_a_chat(self):
        for name in "gemma4-tiny-q4_0.gguf", "llama-tiny.gguf":
            model = os.path.join(MODELS, name)
            p = json.loads(memwall("plan", model, "-c", "512", "--json", *KERNELS).stdout)
            self.assertGreater(p["chat_bytes"], 10 * MIB)
            least = smallest_without_screen(p)
            for command in ("run", "-m", model, "-n", "2", "hi"), ("eval", model, "--ids", "-"):
                r = memwall(*command, "-c", "512", *KERNELS, "-b", str(least), stdin="5 6")
                self.assertEqual(0, r.returncode, r.stderr)
                # The page tables of the screen are not needed, either.
                r = memwall(*command, "-c", "512", *KERNELS, "-b", str(least - (1 << 16)),
                            stdin="5 6")
                self.assertEqual(3, r.returncode, r.stderr)
            r = memwall("chat", "--once", "-m", model, "-c", "512", *KERNELS, "-b", str(least))
            self.assertEqual(3, r.returncode, r.stderr)

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_the_smallest_budget_is_enough_when_no_file_of_the_program_is_cached(self):
        """Pages of the program's files that other programs have read are not charged, so all of
        these files are added to the memory that is not of files."""
        files = sum(-(-os.path.getsize(p) // PAGE) * PAGE
                    for p in (os.path.realpath(MEMWALL), *libraries()))
        script = ("import os, subprocess, sys, time\n"
                  "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
                  "most = 0\n"
                  "while p.stdout.read(1):\n"
                  "    for line in open(f'/proc/{p.pid}/status'):\n"
                  "        if line.startswith('RssAnon:'):\n"
                  "            most = max(most, int(line.split()[1]))\n"
                  "p.wait()\n"
                  "print(most, p.returncode)\n")
        for name in "gemma4-tiny-q4_0.gguf", "llama-tiny.gguf":
            model = os.path.join(MODELS, name)
            least = smallest_without_screen(json.loads(
                memwall("plan", model, "-c", "1k", "--json", *KERNELS).stdout))
            r = subprocess.run([sys.executable, "-c", script, MEMWALL, "run", "-m", model, "-c",
                                "1k", "-n", "900", "--temp", "0.8", "--seed", "1", "--raw",
                                *KERNELS, "-b", str(least), "hello"],
                               capture_output=True, text=True)
            most, code = map(int, r.stdout.split())
            self.assertEqual(0, code, r.stderr)
            self.assertGreater(most, 0)
            self.assertLess(most * 1024 + files, least)


class TooSmall(unittest.TestCase):
    """Blocks grow with the budget, so that a larger one may need more."""

    def test_the_proposed_budget_is_enough(self):
        for model in "Llama-3.2-1B:Q4_0", "Gemma-4-E2B:Q4_0":
            r = memwall("plan", model, "-b", "4G", "--json", *KERNELS)
            smallest = json.loads(r.stdout)["smallest_budget_bytes"] // MIB
            for budget in "20M", "70M", f"{smallest - 1}M":
                with self.subTest(model=model, budget=budget):
                    r = memwall("plan", model, "-b", budget, *KERNELS)
                    self.assertEqual(3, r.returncode, r.stderr)
                    proposed = re.search(r"It fits a budget of ([0-9.]+ [MG]iB)", r.stderr)
                    self.assertIsNotNone(proposed, r.stderr)
                    r = memwall("plan", model, "-b", proposed.group(1), *KERNELS)
                    self.assertEqual(0, r.returncode, r.stderr)


class Experts(FolderCase):
    """Experts use the memory of keys and values until the conversation needs it.  Several of them
    share a huge page, and the smallest budgets keep two of them in the end."""

    N_CTX = 2048

    def write(self, name, arch, n_ff):
        m = gguf_model.llama(head_dim=64, n_ctx=self.N_CTX, arch=arch)
        m = gguf_model.with_experts(m, n_expert=9, n_used=7, n_ff=n_ff)
        m.write(self.path(name))
        return self.path(name)

    def evaluate(self, model, n_id, n_greedy, *args):
        ids = " ".join(str(1 + i * 37 % 120) for i in range(n_id))
        return memwall("eval", model, "--ids", "-", "-c", str(self.N_CTX), "--kv", "f32",
                       "--greedy", str(n_greedy), "--threads", "2", *KERNELS, *args, stdin=ids)

    def test_the_smallest_budget_lasts_for_the_complete_context(self):
        for arch, n_ff, n_id, n_greedy in (("llama", 512, self.N_CTX - 4, 4),
                                           ("llama", 600, 1500, 300),
                                           ("qwen3moe", 600, self.N_CTX - 150, 150)):
            with self.subTest(arch=arch, n_ff=n_ff, n_greedy=n_greedy):
                model = self.write("experts.gguf", arch, n_ff)
                want = self.evaluate(model, n_id, n_greedy, "-b", "1G")
                self.assertEqual(0, want.returncode, want.stderr)
                r = self.evaluate(model, n_id, n_greedy, "-b", "8M")
                self.assertEqual(3, r.returncode, r.stderr)
                least = math.ceil(float(
                    re.search(r"It fits a budget of ([0-9.]+) MiB", r.stderr).group(1)))
                for mib in least, least + 1:
                    r = self.evaluate(model, n_id, n_greedy, "-b", f"{mib}M")
                    self.assertEqual((0, want.stdout), (r.returncode, r.stdout), r.stderr)


class TooLarge(unittest.TestCase):
    def test_a_budget_above_the_memory_of_the_machine_is_lowered_and_reported(self):
        for args in (["run", "-m", MODEL, "-n", "1", "-q", "hello"], ["plan", MODEL]):
            with self.subTest(command=args[0]):
                r = memwall(*args, "-b", "900T")
                self.assertEqual(0, r.returncode, r.stderr)
                self.assertRegex(r.stderr, r"^memwall: the budget is lowered from 900 TiB to "
                                           r"[0-9.]+ [MGT]iB: .+ is [0-9.]+ [MGT]iB.*\n$")

    def test_a_budget_of_the_configuration_is_lowered_too(self):
        r = memwall("plan", MODEL, config="memory = 900T\n")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("the budget is lowered from 900 TiB", r.stderr)
        self.assertNotIn("900 TiB", r.stdout)

    def test_the_plan_has_the_lowered_budget(self):
        self.assertLess(plan("-b", "900T")["budget_bytes"], 900 << 40)

    def test_slash_memory_proposes_the_lowered_budget(self):
        out = chat("-b", "300M", lines=["/memory 900T", "n", "/memory 200M", "n", "/quit"])
        self.assertRegex(out, r"The budget is lowered from 900 TiB to [0-9.]+ [MGT]iB: ")
        self.assertRegex(out, r"Change: memory [0-9.]+ [MGT]iB\r?\n")
        self.assertNotIn("Change: memory 900", out)
        self.assertIn("Change: memory 200 MiB", out)

    def test_a_chat_reports_it_at_the_start(self):
        out = chat("-b", "900T", lines=["/quit"])
        self.assertIn("* the budget is lowered from 900 TiB to ", out)


class Mapped(unittest.TestCase):
    """Mapped weights are page cache.  The budget does not cover them, and a notice says this."""
    NOTICE = "page cache, which the budget does not cover"

    def test_the_plan_reports_it(self):
        for mode, covers in (("mmap", False), ("mmap:drop", False), ("direct", True)):
            with self.subTest(mode=mode):
                r = memwall("plan", MODEL, "-b", "300M", "--io", mode)
                self.assertEqual(not covers, self.NOTICE in r.stdout)
                self.assertEqual(covers, plan("-b", "300M", "--io", mode)["covers_weights"])

    def test_run_reports_it_unless_it_is_quiet(self):
        args = ("run", "-m", MODEL, "-b", "300M", "-n", "1", "--io", "mmap", "hello")
        self.assertIn(self.NOTICE, memwall(*args).stderr)
        self.assertEqual("", memwall(*args, "-q").stderr)

    def test_the_chat_reports_it_at_the_start_and_before_a_change(self):
        self.assertIn(self.NOTICE, chat("-b", "300M", "--io", "mmap", lines=["/quit"]))
        out = chat("-b", "300M", lines=["/io mmap", "n", "/quit"])
        self.assertIn(self.NOTICE, " ".join(out.split()))


@unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers need /proc")
class WithoutProc(unittest.TestCase):
    """An empty /proc in a name space of its own, which only root can make."""

    def setUp(self):
        probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/proc"],
                               capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no name space of its own can be made here")

    def hidden(self, *args):
        script = 'mount -t tmpfs none /proc && exec "$@"'
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", MEMWALL, *args],
                              capture_output=True, text=True)

    def test_a_budget_is_chosen_and_a_share_is_taken(self):
        for budget in ([], ["-b", "auto"], ["-b", "50%"]):
            with self.subTest(budget=budget):
                r = self.hidden("plan", MODEL, "--json", *budget)
                self.assertEqual(0, r.returncode, r.stderr)
                self.assertGreater(json.loads(r.stdout)["budget_bytes"], 32 * MIB)

    def test_a_budget_that_is_too_large_is_lowered(self):
        r = self.hidden("plan", MODEL, "-b", "900T")
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("the budget is lowered", r.stderr)


class Header(unittest.TestCase):
    """Unused tensors still take memory.  The plan counts them or refuses."""
    N = 60000

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "fat.gguf")
        with open(MODEL, "rb") as f:
            data = f.read()
        with open(cls.path, "wb") as f:
            f.write(cls.with_tensors(data, cls.N))

    @staticmethod
    def with_tensors(data, n):
        """Add n tensors of a vision tower to the file.  Their bytes do not overlap."""
        numbers = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

        def u32(at):
            return struct.unpack_from("<I", data, at)[0]

        def u64(at):
            return struct.unpack_from("<Q", data, at)[0]

        def after_value(kind, at):
            if kind == 8:
                return at + 8 + u64(at)
            if kind != 9:
                return at + numbers[kind]
            elem, count, at = u32(at), u64(at + 4), at + 12
            for _ in range(count if elem == 8 else 0):
                at = after_value(8, at)
            return at if elem == 8 else at + count * numbers[elem]

        n_tensor, n_key, at = u64(8), u64(16), 24
        for _ in range(n_key):
            at += 8 + u64(at)
            at = after_value(u32(at), at + 4)
        end = 0  # of the data section
        for _ in range(n_tensor):
            at += 8 + u64(at)
            at += 4 + 8 * u32(at)
            end, at = max(end, u64(at + 4)), at + 12
        start = -(-at // 32) * 32
        end = -(-max(end, len(data) - start) // 32) * 32
        more = b"".join(struct.pack("<Q", 62) + b"v.%08d" % i + b"n" * 52 +
                        struct.pack("<IQIQ", 1, 1, 0, end + 32 * i) for i in range(n))
        head = data[:8] + struct.pack("<Q", n_tensor + n) + data[16:at] + more
        head += bytes(-len(head) % 32)
        return head + data[start:].ljust(end, b"\0") + bytes(32 * n)

    def test_the_plan_counts_them(self):
        fat, thin = (json.loads(memwall("plan", path, "--json", *KERNELS, "-b", "300M").stdout)
                     for path in (self.path, MODEL))
        self.assertGreater(fat["rows"]["program"], thin["rows"]["program"] + self.N * 150)

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_a_budget_that_does_not_fit_them_is_refused_while_the_file_is_read(self):
        thin = plan("-b", "300M")
        for command, small in ((["run", "-n", "1", "-m", self.path, "hi"],
                                smallest_without_screen(thin)),
                               (["plan", self.path], thin["smallest_budget_bytes"])):
            r = memwall(*command, *KERNELS, "-b", str(small))
            self.assertEqual((3, ""), (r.returncode, r.stdout))
            found = re.search(r"fat.gguf: its header needs up to ([\d.]+) MiB beside the program, "
                              r"the budget is ([\d.]+) MiB. It would fit with a budget of ([\d.]+) "
                              r"MiB$", r.stderr, re.M)
            self.assertTrue(found, r.stderr)
            need, budget, fits = map(float, found.groups())
            self.assertLessEqual(budget * MIB, small)
            self.assertAlmostEqual(small / MIB, budget, 0)
            self.assertGreater(need * MIB, self.N * 150)
            r = memwall("run", "-n", "1", "-m", self.path, *KERNELS, "-b", f"{fits}M", "hi")
            self.assertEqual(0, r.returncode, r.stderr)

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_the_peak_is_below_the_budget(self):
        small = smallest_without_screen(plan("-b", "300M"))
        # Use a small process in between: the peak of a child starts with that of its parent.
        script = ("import os, resource, sys; "
                  "pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); os.waitpid(pid, 0); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        for budget in (small, 100 * MIB):
            r = subprocess.run([sys.executable, "-c", script, MEMWALL, "run", "-n", "1", "-m",
                                self.path, *KERNELS, "-b", str(budget), "hi"],
                               capture_output=True, text=True)
            self.assertLess(int(r.stdout.split()[-1]) * 1024, budget)


class Screen(unittest.TestCase):
    """A terminal of any size needs no more memory than the plan has for the screen."""

    def peak(self, first, then=None):
        """Returns the peak of resident memory of a chat on a terminal whose size changes."""
        parent, child = pty.openpty()
        self.addCleanup(os.close, parent)
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", *first, 0, 0))
        home = MeasuredHome()
        self.addCleanup(home.cleanup)
        p = subprocess.Popen([MEMWALL, "-m", MODEL, "-b", "64M", "--no-save", "-q"],
                             stdin=child, stdout=child, stderr=child, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                             env=environment(home.name, TERM="xterm"))
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        os.close(child)
        if then is not None:
            self.until(parent, b"\x1b[?1004h")
            fcntl.ioctl(parent, termios.TIOCSWINSZ, struct.pack("HHHH", *then, 0, 0))
        self.until(parent, b"cells are used")
        with open(f"/proc/{p.pid}/status") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) * 1024

    def until(self, fd, words):
        """Read until words come.  The dashboard draws often, so the number of reads is limited."""
        out = b""
        for _ in range(400):
            out += os.read(fd, 65536)
            if words in out:
                return
        self.fail(f"{words} never came")

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_a_huge_terminal_is_drawn_in_part(self):
        self.assertLess(self.peak((1000, 1000)), 48 * MIB)

    @unittest.skipIf("MW_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_a_terminal_that_becomes_huge_is_drawn_in_part(self):
        self.assertLess(self.peak((24, 80), (1000, 1000)), 48 * MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
