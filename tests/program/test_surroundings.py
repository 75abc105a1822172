#!/usr/bin/env python3
"""A bad environment: closed descriptors, low limits, refused system calls, no /proc, broken
settings.  The program works or ends with a message, and never with a signal."""
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from deny import NUMBERS, deny  # noqa: E402
from program import MEMWALL, MODELS, TIMEOUT_S, MeasuredHome, environment, memwall  # noqa: E402

MODEL = os.path.join(MODELS, "gemma4-tiny-q4_0.gguf")
RUN = ("run", "-m", MODEL, "--temp", "0", "-n", "4", "-b", "300M", "-q", "hello")
IDS = ("eval", MODEL, "-b", "300M", "--greedy", "2", "--ids", "-")
SANITIZED = "MW_SANITIZED" in os.environ


def start(*args, measures=False, **more):
    """measures: also the limits of the machine, as the first run of a user does."""
    with tempfile.TemporaryDirectory() if measures else \
            MeasuredHome(gives="preexec_fn" not in more) as home:
        return subprocess.run([MEMWALL, *args], env=environment(home), text=True,
                              errors="replace", timeout=TIMEOUT_S,
                              **(dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) | more))


def closing(*fds):
    def close():
        for fd in fds:
            os.close(fd)
    return close


def limit(which, soft):
    def set_limit():
        resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))
    return set_limit


class Surroundings(unittest.TestCase):
    def ends_well(self, r, says=""):
        """Assert that the program works or fails with a message."""
        self.assertIn(r.returncode, (0, 1), r)
        if r.returncode == 1:
            self.assertRegex(r.stderr, "^memwall: .*" + says)

    @classmethod
    def setUpClass(cls):
        cls.answer = start(*RUN).stdout


class Descriptors(Surroundings):
    def test_closed_input_is_empty(self):
        r = start(*RUN, measures=True, preexec_fn=closing(0))
        self.assertEqual((0, self.answer, ""), (r.returncode, r.stdout, r.stderr))

    def test_closed_input_is_not_a_prompt(self):
        r = start(*RUN[:-1], preexec_fn=closing(0))
        self.assertEqual((2, ""), (r.returncode, r.stdout))
        self.assertIn("no prompt", r.stderr)

    def test_closed_input_has_no_ids(self):
        r = start(*IDS, preexec_fn=closing(0))
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertEqual("memwall: standard input: contains no token ids\n", r.stderr)

    def test_writing_to_closed_output_fails(self):
        for args in (RUN, ("--version",)):
            r = start(*args, preexec_fn=closing(1))
            self.assertEqual(1, r.returncode, args)
            self.assertIn("could not write to standard output", r.stderr)

    def test_closed_errors_change_nothing(self):
        r = start(*RUN, preexec_fn=closing(2))
        self.assertEqual((0, self.answer), (r.returncode, r.stdout))

    def test_all_closed(self):
        self.assertEqual(1, start(*RUN, measures=True, preexec_fn=closing(0, 1, 2)).returncode)


@unittest.skipIf(SANITIZED or shutil.which("cc") is None, "no library can be made for it")
class EndlessLibrary(unittest.TestCase):
    """A product of OpenBLAS that never returns holds no signal back."""

    SOURCE = """
        #include <stdlib.h>
        #include <unistd.h>
        void cblas_sgemm(void)
        {
            (void)!write(atoi(getenv("MARK_FD")), "", 1);
            for (;;)
                pause();
        }
        void openblas_set_num_threads(int n) { (void)n; }
        char *openblas_get_config(void) { return "OpenBLAS 9.9.9"; }
        char *openblas_get_corename(void) { return "Endless"; }
    """

    def begin(self, home, *args):
        """Start a command and return it when it is in the library."""
        reads, writes = os.pipe()
        # A shell may have started the tests in the background, with SIGINT ignored.
        p = subprocess.Popen([MEMWALL, *args], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             pass_fds=(writes,),
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                             env=environment(home, LD_LIBRARY_PATH=home, MARK_FD=str(writes)))
        os.close(writes)
        self.assertEqual(b"\0", os.read(reads, 1), args)
        os.close(reads)
        return p

    def test_a_signal_while_the_library_is_loaded_is_not_lost(self):
        """One that the library raises itself, because it cannot start a thread, is."""
        loads = """
            #include <signal.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            #include <unistd.h>
            void cblas_sgemm(void) { usleep(20000); }
            void openblas_set_num_threads(int n) { (void)n; }
            char *openblas_get_config(void) { return "OpenBLAS 9.9.9"; }
            char *openblas_get_corename(void) { return "Loud"; }
            __attribute__((constructor)) static void load(void)
            {
                pid_t sender = getenv("FROM_OUTSIDE") != NULL ? fork() : getpid();
                if (sender == 0)
                    _exit(kill(getppid(), SIGINT));
                else if (sender != getpid())
                    waitpid(sender, NULL, 0);
                else
                    raise(SIGINT);
            }
        """
        with tempfile.TemporaryDirectory() as home:
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o",
                            os.path.join(home, "libopenblas.so.0")], input=loads, text=True,
                           check=True)
            for more, status in ({"FROM_OUTSIDE": "1"}, (130, -signal.SIGINT)), ({}, (0,)):
                for args in (["run", "-m", MODEL, "-q", "--raw", "-n", "1", "word"],
                             ["eval", MODEL, "--ids", "-", "--greedy", "1"]):
                    p = subprocess.run(
                        [MEMWALL, *args, "--blas", "auto"], input="5 6", text=True,
                        capture_output=True, timeout=TIMEOUT_S,
                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                        env=environment(home, LD_LIBRARY_PATH=home, **more))
                    self.assertIn(p.returncode, status, (args, more, p.stderr))

    def test_a_signal_ends_the_program(self):
        always = ("--blas", "always")
        ids = " ".join(["5"] * 150)
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "ids")
            with open(path, "w", encoding="ascii") as f:
                f.write(ids)
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o",
                            os.path.join(home, "libopenblas.so.0")], input=self.SOURCE,
                           text=True, check=True)
            commands = (("doctor", "--no-disk"), ("inspect", "--products", MODEL),
                        ("run", "-m", MODEL, "-q", "--raw", *always, "word " * 150),
                        ("eval", MODEL, "--ids", path, *always, "--greedy", "1"),
                        ("bench", MODEL, "-q", "-p", "150", *always),
                        ("report", MODEL, "--no-disk", "-o", os.path.join(home, "page.html")))
            for sig in signal.SIGTERM, signal.SIGINT:
                started = [self.begin(home, *args) for args in commands]
                for p in started:
                    p.send_signal(sig)
                for p, args in zip(started, commands):
                    self.assertIn(p.wait(TIMEOUT_S), (-sig, 128 + sig), args)


class Tiles(Surroundings):
    """Linux may refuse the registers of AMX, which the best kernels of some processors need."""
    ARCH_REQ_XCOMP_PERM = 0x1023
    WHY = "amx is not used: the system refuses permission"

    def test_other_kernels_multiply_to_the_same_bits(self):
        if " amx," not in start("--version").stdout:
            self.skipTest("no AMX")
        refused = deny([NUMBERS["arch_prctl"]], errno.EPERM, self.ARCH_REQ_XCOMP_PERM)
        ids = " ".join(str(i % 90 + 5) for i in range(150))
        want = start(*IDS, "--blas", "never", stdin=None, input=ids).stdout
        r = start(*IDS, "--blas", "never", stdin=None, input=ids, preexec_fn=refused)
        self.assertEqual((0, want), (r.returncode, r.stdout), r.stderr)
        self.assertNotIn("amx", start("--version", preexec_fn=refused).stdout)
        for args in (("inspect", "--products", MODEL), ("doctor", "--no-disk")):
            self.assertIn(self.WHY, start(*args, preexec_fn=refused).stdout)
            self.assertNotIn(self.WHY, start(*args).stdout)
        r = start(*RUN, "--isa", "amx", preexec_fn=refused)
        self.assertEqual(2, r.returncode, r)
        self.assertIn('"amx" is not available', r.stderr)


class Limits(Surroundings):
    @unittest.skipIf(SANITIZED, "a sanitizer needs more stack")
    def test_a_small_stack_is_enough(self):
        r = start(*RUN, measures=True, preexec_fn=limit(resource.RLIMIT_STACK, 64 << 10))
        self.assertEqual((0, self.answer, ""), (r.returncode, r.stdout, r.stderr))
        wide = start(*IDS, stdin=None, input="2 3\n")
        r = start(*IDS, stdin=None, input="2 3\n",
                  preexec_fn=limit(resource.RLIMIT_STACK, 64 << 10))
        self.assertEqual((0, wide.stdout, ""), (r.returncode, r.stdout, r.stderr))

    @unittest.skipIf(SANITIZED, "a sanitizer reserves addresses without end")
    def test_few_addresses_are_an_error(self):
        named = 0
        for mib in (34, 38, 42, 46, 50, 58, 70, 90):
            r = start(*RUN, measures=True, preexec_fn=limit(resource.RLIMIT_AS, mib << 20))
            if r.returncode == 127:  # not even the libraries fit
                continue
            self.ends_well(r)
            if "Cannot allocate memory" in r.stderr:
                self.assertIn("ulimit -v", r.stderr)
                named += 1
        self.assertGreater(named, 0)

    @unittest.skipIf(SANITIZED, "a sanitizer reserves addresses without end")
    def test_without_addresses_for_openblas_the_kernels_multiply(self):
        refused = "OpenBLAS is not used: the system refuses the addresses"
        always = ("--blas", "always")
        ids = " ".join(str(i % 90 + 5) for i in range(150))
        want = start(*IDS, "--blas", "never", stdin=None, input=ids).stdout
        answer = start(*RUN, "--blas", "never").stdout
        for which, most in ((resource.RLIMIT_DATA, 200 << 20), (resource.RLIMIT_AS, 450 << 20)):
            low = limit(which, most)
            r = start(*IDS, *always, stdin=None, input=ids, preexec_fn=low)
            self.assertEqual((0, want), (r.returncode, r.stdout), r.stderr)
            self.assertEqual(1, r.stderr.count(refused), r.stderr)
            r = start(*(x for x in RUN if x != "-q"), *always, measures=True, preexec_fn=low)
            self.assertEqual((0, answer), (r.returncode, r.stdout), r.stderr)
            self.assertEqual(1, r.stderr.count(refused), r.stderr)
            r = start(*RUN, *always, preexec_fn=low)
            self.assertEqual((0, ""), (r.returncode, r.stderr))
            r = start("plan", MODEL, "-b", "300M", *always, preexec_fn=low)
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertEqual(1, r.stderr.count(refused), r.stderr)
            self.assertRegex(r.stdout, r"products by the \w+ kernels\n")
        r = start("inspect", "--products", MODEL, preexec_fn=low)
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertIn("no openblas", r.stdout)

    @unittest.skipIf(SANITIZED, "a sanitizer reserves addresses without end")
    def test_rates_without_openblas_are_not_kept_under_a_limit(self):
        for most, n_kept in ((200 << 20, 0), (None, 1)):
            with tempfile.TemporaryDirectory() as home:
                r = subprocess.run([MEMWALL, *RUN], env=environment(home), timeout=TIMEOUT_S,
                                   preexec_fn=most and limit(resource.RLIMIT_DATA, most))
                self.assertEqual(0, r.returncode)
                kept = os.path.join(home, ".cache", "memwall", "limits")
                lines = open(kept, encoding="utf-8").readlines() if os.path.exists(kept) else []
                self.assertEqual(n_kept, int(any('"kind":"product"' in line for line in lines)), most)

    def test_a_limit_of_file_size_is_an_error_of_writing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.jsonl")
            r = start(*RUN, "--telemetry", path, measures=True,
                      preexec_fn=limit(resource.RLIMIT_FSIZE, 1024))
        self.assertEqual(1, r.returncode)
        self.assertIn("t.jsonl: could not write the recording: File too large", r.stderr)

    @unittest.skipIf(os.geteuid() != 0, "processes of root are not limited, others cannot "
                     "become a user without any")
    def test_no_further_process_is_an_error(self):
        with tempfile.TemporaryDirectory() as home:
            os.chmod(home, 0o777)
            try:
                r = subprocess.run([MEMWALL, *RUN], env=environment(home), user=65534,
                                   stdin=subprocess.DEVNULL, text=True, capture_output=True,
                                   errors="replace", timeout=TIMEOUT_S,
                                   preexec_fn=limit(resource.RLIMIT_NPROC, 1))
            except PermissionError:
                self.skipTest("the other user cannot read the program")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertIn("thread", r.stderr)


@unittest.skipUnless(NUMBERS, "numbers of system calls are known for x86-64 only")
@unittest.skipIf(SANITIZED, "a sanitizer has system calls of its own")
class Refused(Surroundings):
    def test_each_refused_call_is_replaced_or_named(self):
        for name, number in NUMBERS.items():
            if name in ("pread64", "arch_prctl"):  # the loader needs them; see Tiles
                continue
            for error in (errno.EPERM, errno.ENOSYS):
                with self.subTest(call=name, error=errno.errorcode[error]):
                    r = start(*RUN, measures=True, preexec_fn=deny([number], error))
                    self.ends_well(r)
                    if r.returncode == 0:
                        self.assertEqual(self.answer, r.stdout)

    def test_a_failed_poll_is_reported(self):
        r = start(*RUN, preexec_fn=deny([NUMBERS["poll"], NUMBERS["ppoll"]], errno.EPERM))
        self.assertEqual(1, r.returncode)
        self.assertIn("cannot wait for the answer: Operation not permitted", r.stderr)

    def test_without_threads_memwall_prints_its_own_message(self):
        r = start(*RUN, preexec_fn=deny([NUMBERS["clone3"]], errno.EPERM))
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertEqual("memwall: cannot start the engine's thread: Operation not permitted\n",
                         r.stderr)


@unittest.skipIf(SANITIZED, "sanitizers need /proc")
class WithoutProc(Surroundings):
    def test_it_runs_without_proc(self):
        hide = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        if shutil.which("unshare") is None or subprocess.run(
                hide + ["true"], capture_output=True).returncode != 0:
            self.skipTest("/proc cannot be hidden here")
        with tempfile.TemporaryDirectory() as home:
            r = subprocess.run([*hide, MEMWALL, *RUN], env=environment(home),
                               stdin=subprocess.DEVNULL, text=True, capture_output=True,
                               errors="replace", timeout=TIMEOUT_S)
        self.assertEqual((0, self.answer, ""), (r.returncode, r.stdout, r.stderr))


class Paths(unittest.TestCase):
    """Paths that no shell has expanded: in quotes, after "=", from a file manager."""

    def setUp(self):
        folder = MeasuredHome()
        self.addCleanup(folder.cleanup)
        self.home = os.path.realpath(folder.name)
        shutil.copy(MODEL, os.path.join(self.home, "a b.gguf"))
        with open(os.path.join(self.home, "ids b"), "w") as f:
            f.write("1 2 3")

    def run_at_home(self, *args):
        r = subprocess.run([MEMWALL, *args], env=environment(self.home), text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S,
                           cwd="/")
        self.assertEqual(0, r.returncode, (args, r.stderr))
        return r.stdout

    def test_options_and_arguments_with_a_file_take_them(self):
        begins = ("~/", "$HOME/", "${HOME}/", f"file://{self.home}/",
                  f"file://localhost{self.home}/")
        for begin in begins:
            blank = "%20" if begin.startswith("file") else " "
            model, ids = f"{begin}a{blank}b.gguf", f"{begin}ids{blank}b"
            self.run_at_home("inspect", "-m", model)
            self.run_at_home("inspect", model)
            self.run_at_home("eval", "-m", model, f"--ids={ids}", "--greedy", "1", "-b", "300M")
            self.run_at_home("tokenize", "-m", model, "--decode", ids)
            log = os.path.join(self.home, "log b")
            self.run_at_home("run", "-m", model, "-p", "x", "-n", "1", "-b", "300M",
                             f"--telemetry={begin}log{blank}b")
            self.assertTrue(os.path.exists(log))
            self.run_at_home("replay", "--once", f"{begin}log{blank}b")
            os.unlink(log)

    def test_a_configuration_names_a_model_so(self):
        os.makedirs(os.path.join(self.home, ".config", "memwall"))
        with open(os.path.join(self.home, ".config", "memwall", "config"), "w") as f:
            f.write('model = "$HOME/a b.gguf"\n')
        self.run_at_home("plan")

    def test_other_names_stay_as_they_are(self):
        for name in ("$HOMES", "~x", "a$HOME", "a%20b", "file%20"):
            shutil.copy(MODEL, os.path.join(self.home, name))
            r = subprocess.run([MEMWALL, "inspect", "-m", "./" + name], cwd=self.home,
                               capture_output=True, timeout=TIMEOUT_S,
                               env=environment(self.home))
            self.assertEqual(0, r.returncode, r.stderr)
            r = subprocess.run([MEMWALL, "inspect", "-m", name], cwd=self.home,
                               capture_output=True, timeout=TIMEOUT_S,
                               env=environment(self.home))
            self.assertEqual(0, r.returncode, r.stderr)


class Settings(unittest.TestCase):
    def test_a_nul_byte_in_the_settings_is_an_error(self):
        r = memwall("plan", MODEL, config="# fine\nctx = 1\x00" "24\n")
        self.assertEqual((1, ""), (r.returncode, r.stdout))
        self.assertRegex(r.stderr, r"config: line 2: NUL bytes are not allowed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
