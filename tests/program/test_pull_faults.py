#!/usr/bin/env python3
"""memwall pull where networks, servers and disks fail, and where hubs are hostile."""
import ctypes
import fcntl
import hashlib
import json
import mmap
import os
import pty
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hub import HEADER_OF  # noqa: E402
from program import MEMWALL, TIMEOUT_S  # noqa: E402
from pull_case import Case, content, noise  # noqa: E402

RANGE = 8 << 20  # bytes of one request
WINDOW = 6 * RANGE
FILE = "m-Q4_0.gguf"
SANITIZED = "MW_SANITIZED" in os.environ


class OneFile(Case):
    """A repository with one file, which is not a model: only --yes fetches it."""
    size = 3 * RANGE + 12345

    def setUp(self):
        super().setUp()
        self.data = noise(self.size)
        self.repo = self.hub.add("org/name", {FILE: self.data})
        self.incomplete = self.blob("org/name", self.data)

    def on(self, fault):
        self.hub.on(FILE, fault)

    def get(self, *args, **more):
        return self.pull("org/name", "--yes", *args, **more)

    def good(self, **more):
        return self.fetched(self.data, "org/name", "--yes", **more)

    def send(self, r, data):
        """Bytes of a body that are counted."""
        self.hub.send(r, FILE, data)


class Interrupted(OneFile):
    size = 8 * RANGE + 12345

    def interrupt(self, signo):
        """Send the signal when the first range is in the file: the request for the seventh
        range shows that the window has moved.  Returns the process."""
        known = threading.Event()
        process = []

        def fault(_, __, first, ___):
            if first == WINDOW:
                known.wait()
                process[0].send_signal(signo)
            return False
        self.on(fault)
        process.append(self.start("org/name", "--yes"))
        known.set()
        out, err = process[0].communicate(timeout=TIMEOUT_S)
        self.assertEqual("", out)
        self.on(None)
        return process[0].returncode, err

    def finish(self):
        """Complete it; only what was missing is sent."""
        have = os.path.getsize(self.incomplete)
        self.assertGreaterEqual(have, RANGE)
        self.assertEqual(self.data[:have], content(self.incomplete))
        before = self.hub.sent_of_file(FILE)
        self.good()
        self.assertEqual(len(self.data) - have, self.hub.sent_of_file(FILE) - before)
        self.assertFalse(os.path.exists(self.incomplete))

    def test_a_killed_download_goes_on_with_the_first_missing_byte(self):
        code, _ = self.interrupt(signal.SIGKILL)
        self.assertEqual(-signal.SIGKILL, code)
        self.finish()

    def test_ctrl_c_ends_it_with_130_and_it_goes_on(self):
        code, err = self.interrupt(signal.SIGINT)
        self.assertEqual(130, code, err)
        self.assertIn("goes on from here", err)
        self.finish()

    def test_term_is_reported_as_such(self):
        code, err = self.interrupt(signal.SIGTERM)
        self.assertEqual(143, code, err)

    def test_a_download_of_another_program_is_continued(self):
        os.makedirs(os.path.dirname(self.incomplete))
        have = RANGE + 4321
        with open(self.incomplete, "wb") as f:
            f.write(self.data[:have])
        self.finish()

    def test_bytes_that_are_wrong_are_deleted_at_the_end(self):
        os.makedirs(os.path.dirname(self.incomplete))
        with open(self.incomplete, "wb") as f:
            f.write(bytes(RANGE))
        self.refused(self.get(), "SHA-256", "run this again")
        self.assertFalse(os.path.exists(self.incomplete))
        self.good()

    def test_more_bytes_than_the_file_has_are_dropped(self):
        os.makedirs(os.path.dirname(self.incomplete))
        with open(self.incomplete, "wb") as f:
            f.truncate(len(self.data) + 1)
        self.good()

    def test_a_server_without_ranges_sends_everything_again(self):
        self.hub.ranges = False
        process, known = [], threading.Event()

        def fault(r, data, first, to):
            self.hub.begin(r, data, first, to, False)
            for i in range(0, to, 1 << 20):
                if i == 2 * WINDOW // 3:
                    known.wait()
                    process[0].send_signal(signal.SIGINT)
                self.send(r, data[i:i + (1 << 20)])
            return True
        self.on(fault)
        process.append(self.start("org/name", "--yes"))
        known.set()
        _, err = process[0].communicate(timeout=TIMEOUT_S)
        self.assertEqual(130, process[0].returncode, err)
        have = os.path.getsize(self.incomplete)
        self.assertGreater(have, 0)
        self.assertEqual(self.data[:have], content(self.incomplete))
        self.on(None)
        before = self.hub.sent_of_file(FILE)
        self.good()
        self.assertGreaterEqual(self.hub.sent_of_file(FILE) - before, len(self.data))


class Servers(OneFile):
    def test_connections_that_are_cut_anywhere_cost_nothing_but_requests(self):
        chance = random.Random(5)

        def fault(r, data, first, to):
            n = chance.randrange(1, 3 << 20)
            self.hub.begin(r, data, first, to)
            self.send(r, data[first:min(first + n, to)])
            r.close_connection = True
            return True
        self.on(fault)
        self.good()
        self.assertEqual(len(self.data), self.hub.sent_of_file(FILE))

    def test_a_server_that_fails_now_and_then_is_asked_again(self):
        left = [2]

        def fault(r, *_):
            left[0] -= 1
            if left[0] >= 0:
                r.end(503)
            return left[0] >= 0
        self.on(fault)
        self.good()

    def test_a_revision_that_is_replaced_meanwhile_is_named(self):
        """The list and the headers were of a commit that is gone when the bytes are fetched."""
        for code in "EntryNotFound", "RevisionNotFound", "":
            def gone(r, *_, code=code):
                r.end(404, X_Error_Code=code)
                return True
            self.on(gone)
            self.refused(self.pull("org/name", "--yes"),
                         f'org/name no longer has "{FILE}" as it was listed; run this again')

    def test_addresses_that_expire_are_asked_for_again(self):
        def fault(r, data, first, to):
            if first >= 2 * RANGE and r.path.endswith("signed=2"):
                r.end(403)
                return True
            return False
        self.on(fault)
        self.good()
        self.assertGreater(self.hub.n_redirect, 2)

    def test_four_ranges_arrive_at_once(self):
        barrier, seen = threading.Barrier(4), []

        def fault(r, data, first, to):
            self.hub.begin(r, data, first, to)
            self.send(r, data[first:first + 1])
            seen.append(first)
            barrier.wait(TIMEOUT_S)  # until there are four
            self.send(r, data[first + 1:to])
            return True
        self.on(fault)
        self.good()
        self.assertEqual(4, len(seen))

    def test_a_length_that_is_too_small_is_completed(self):
        def fault(r, data, first, to):
            n = (to - first + 1) // 2
            self.hub.begin(r, data, first, to, length=n)
            self.send(r, data[first:first + n])
            return True
        self.on(fault)
        self.good()

    def test_a_length_that_is_too_large_is_completed(self):
        def fault(r, data, first, to):
            self.hub.begin(r, data, first, to, length=to - first + 1000)
            self.send(r, data[first:to])
            r.close_connection = True
            return True
        self.on(fault)
        self.good()

    def endless(self, is_range):
        def fault(r, data, first, to):
            r.close_connection = True
            r.send_response(206 if is_range else 200)
            if is_range:
                r.send_header("Content-Range", f"bytes {first}-{to - 1}/{len(data)}")
            r.end_headers()
            r.wfile.write(data[first:to])
            while True:
                r.wfile.write(bytes(65536))
        return fault

    def test_bytes_without_end_are_not_taken(self):
        self.on(self.endless(True))
        self.good()

    def test_bytes_without_end_and_without_ranges_are_not_taken(self):
        self.hub.ranges = False
        self.on(self.endless(False))
        self.good()

    def test_other_ranges_than_requested_are_refused(self):
        for change in ((1, 1, 0), (0, 0, 5), (0, 9, 0)):
            def fault(r, data, first, to, change=change):
                r.send_response(206)
                r.send_header("Content-Range", "bytes %d-%d/%d" % (
                    first + change[0], to - 1 + change[1], len(data) + change[2]))
                r.send_header("Content-Length", str(to - first))
                r.end_headers()
                r.wfile.write(data[first:to])
                return True
            self.on(fault)
            self.refused(self.get(), FILE, "other bytes than those requested")

    def test_a_page_instead_of_the_file_is_refused(self):
        def fault(r, *_):
            r.end(200, b"<html>log in</html>")
            return True
        self.on(fault)
        self.refused(self.get(), "other bytes than those requested")
        self.assertEqual(0, os.path.getsize(self.incomplete))

    def test_a_login_page_is_named_as_such(self):
        page, html = b"<!DOCTYPE html><html>log in</html>", {"Content_Type": "text/html"}
        says = "answered with a web page, not with data of a hub; a proxy or a login page"

        def sized(r, *_):
            r.end(200, page, **html)
            return True

        def endless(r, *_):  # a page without a length could be a file without ranges
            r.send_response(200)
            r.send_header("Content-Type", "text/html; charset=utf-8")
            r.end_headers()
            r.close_connection = True
            r.wfile.write(page)
            return True
        for fault in (sized, endless):
            self.on(fault)
            self.refused(self.get(), says, "localhost")
            self.assertEqual(0, os.path.getsize(self.incomplete))
        self.on(None)
        self.hub.on(FILE + HEADER_OF, endless)
        self.assertIn(says[:60], self.get("--list").stdout)
        for answer in ((200, page), (200, b" \n" + page, html), (200, b"", html),
                       (511, page, html)):
            self.hub.list = lambda r, *_, a=answer: r.end(*a[:2], **(a[2:] or ({},))[0])
            self.refused(self.get(), says, "127.0.0.1")

    def test_a_wrong_hash_is_named_and_nothing_is_kept(self):
        def lie(answer):
            answer["siblings"][0]["lfs"]["sha256"] = "0" * 64
            return answer
        self.repo.change = lie
        self.refused(self.get(), FILE, "SHA-256")
        self.assertEqual([], os.listdir(os.path.dirname(self.incomplete)))

    def test_redirects_without_end_and_to_files_are_refused(self):
        self.hub.redirects = False
        for to, text in ((self.hub.url + "/org/name/resolve/" + self.repo.commit + "/" + FILE,
                          "redirects"), ("file:///etc/hostname", "rotocol")):
            def fault(r, *_, to=to):
                r.end(302, Location=to)
                return True
            self.on(fault)
            self.refused(self.get(), text)

    def stopped(self, set_fault):
        """Send Ctrl-C to a program that waits for a server that never answers."""
        process, known, over = [], threading.Event(), threading.Event()

        def silent(*_):
            known.wait()
            process[0].send_signal(signal.SIGINT)
            over.wait()
            return True
        set_fault(silent)
        process.append(self.start("org/name", "--yes"))
        known.set()
        _, err = process[0].communicate(timeout=TIMEOUT_S)
        over.set()
        self.assertEqual(130, process[0].returncode, err)

    def test_ctrl_c_does_not_wait_for_a_silent_server(self):
        self.stopped(self.on)
        self.stopped(lambda fault: self.hub.on(FILE + HEADER_OF, fault))
        self.stopped(lambda fault: setattr(self.hub, "list", fault))

    def test_progress_shows_rate_and_time_left(self):
        shown_rate = threading.Event()

        def fault(_, __, first, ___):
            if first == 2 * RANGE:
                shown_rate.wait()
            return False
        self.on(fault)
        main, side = pty.openpty()
        p = self.start("org/name", "--yes", stderr=side)
        os.close(side)
        shown = b""
        try:
            while block := os.read(main, 65536):
                shown += block
                if re.search(rb"fetching +[1-9]\d* % of 24.0 MiB, \S+ \S+/s, about \S+ left",
                             shown):
                    shown_rate.set()
        except OSError:  # EIO: the other side is closed
            pass
        shown_rate.set()
        p.communicate(timeout=TIMEOUT_S)
        os.close(main)
        self.assertEqual(0, p.returncode, shown)

    def test_bytes_that_trickle_are_taken(self):
        def fault(r, data, first, to):
            self.hub.begin(r, data, first, to)
            self.hub.send(r, FILE, data[first:to], step=1000)
            return True
        self.on(fault)
        self.good()

    def test_a_hub_that_is_not_there_is_named(self):
        self.refused(self.get(env={"HF_ENDPOINT": "http://127.0.0.1:1"}), "127.0.0.1:1")
        self.refused(self.get(env={"HF_ENDPOINT": "ftp://x"}), "HF_ENDPOINT")

    def test_status_500_is_given_up_in_the_end(self):
        def fault(r, *_):
            r.end(500)
            return True
        self.on(fault)
        self.refused(self.get(), "500")


class Disks(OneFile):
    def test_a_file_that_cannot_grow_keeps_what_it_has(self):
        limit = RANGE + 5000
        self.refused(self.get(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit))), "could not write more than 8.00 MiB",
            "FAT32: 4 GiB", "HF_HOME", ".incomplete")
        have = os.path.getsize(self.incomplete)
        self.assertLessEqual(have, limit)
        before = self.hub.sent_of_file(FILE)
        self.good()
        self.assertEqual(len(self.data) - have, self.hub.sent_of_file(FILE) - before)

    def test_a_disk_that_fills_up_meanwhile_keeps_what_it_has(self):
        small = os.path.join(self.folder.name, "small")
        os.mkdir(small)
        if os.geteuid() != 0 or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=30m", "none", small],
                capture_output=True).returncode != 0:
            self.skipTest("only root can mount a small disk")
        try:
            def fault(_, __, first, ___):
                if first == RANGE:
                    with open(os.path.join(small, "other"), "wb") as f:
                        f.write(bytes(12 << 20))
                return False
            self.on(fault)
            self.refused(self.get(env={"HF_HOME": small}), "No space left")
            os.unlink(os.path.join(small, "other"))
            self.on(None)
            self.good(env={"HF_HOME": small})
        finally:
            subprocess.run(["umount", small], check=True)

    def test_a_disk_that_is_too_small_is_known_before(self):
        def lie(answer):
            answer["siblings"][0]["size"] = 1 << 49
            return answer
        self.repo.change = lie
        self.refused(self.get(), "are needed", "are free", "HF_HOME")
        self.assertEqual(0, self.hub.sent_of_file(FILE))

    def test_a_link_or_a_fifo_in_its_place_is_not_written_to(self):
        os.makedirs(os.path.dirname(self.incomplete))
        mine = os.path.join(self.folder.name, "mine")
        with open(mine, "wb") as f:
            f.write(b"mine")
        os.symlink(mine, self.incomplete)
        self.refused(self.get(), ".incomplete")
        self.assertEqual(b"mine", content(mine))
        os.unlink(self.incomplete)
        os.mkfifo(self.incomplete)
        self.refused(self.get(), "not a regular file")

    def test_two_programs_do_not_fetch_one_file(self):
        lock = os.path.join(self.cache, ".locks", "models--org--name",
                            hashlib.sha256(self.data).hexdigest() + ".lock")
        os.makedirs(os.path.dirname(lock))
        with open(lock, "w") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.refused(self.get(), FILE, "another program")
        self.good()

    def test_a_download_is_not_left_in_the_page_cache(self):
        path = self.get().stdout.rstrip("\n")  # not read by the test
        if subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True,
                          text=True).stdout.strip() in ("tmpfs", "ramfs"):
            self.skipTest("the files are in memory")
        page = mmap.PAGESIZE
        with open(path, "rb") as f, \
                mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as m:
            n = (len(m) + page - 1) // page
            seen = (ctypes.c_ubyte * n)()
            at = ctypes.addressof(ctypes.c_char.from_buffer(m))
            libc = ctypes.CDLL(None, use_errno=True)
            self.assertEqual(0, libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(len(m)), seen))
            cached = sum(b & 1 for b in seen) * page
            del at
        self.assertLess(cached, 1 << 20)

    @unittest.skipIf(SANITIZED, "sanitizers take memory of their own")
    def test_its_memory_does_not_grow_with_the_file(self):
        limit = 128 << 20  # the window takes 48 MiB
        self.good(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))

    def test_a_chat_does_not_load_libcurl(self):
        r = subprocess.run([MEMWALL], env=self.environment(LD_TRACE_LOADED_OBJECTS="1"),
                           capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertIn("libc.so", r.stdout)
        self.assertNotIn("curl", r.stdout)


class Hostile(OneFile):
    size = 300000

    def listing(self, change):
        self.repo.change = change

    def test_names_that_leave_the_folder_are_left_out(self):
        names = ["../evil.gguf", "../../../../evil.gguf", "/tmp/evil.gguf", "a/../../evil.gguf",
                 "a//evil.gguf", "./evil.gguf", ".evil.gguf", "evil\x00.gguf", "evil\n.gguf",
                 "evil\x1b[2J.gguf", "evil\u202e.gguf", "e" * 256 + ".gguf", "e/" * 600 + "e.gguf",
                 "M-Q4_0.GGUF", "", "evil\\..\\evil.gguf/"]

        def change(answer):
            row = answer["siblings"][0]
            answer["siblings"] += [{**row, "rfilename": name} for name in names]
            return answer
        self.listing(change)
        listed = self.listed("org/name")
        self.assertEqual(1, len(listed["models"]), listed)
        self.assertEqual(len(names), listed["files_left_out"])
        self.good()
        for at, folders, files in os.walk(self.folder.name):
            for name in folders + files:
                self.assertNotIn("evil", name, at)

    def test_digests_and_commits_that_are_paths_are_refused(self):
        def digest(answer):
            answer["siblings"][0]["lfs"]["sha256"] = "../" * 21 + "x"
            answer["siblings"][0]["blobId"] = "../../../../../../../../../../../../evil"
            return answer
        self.listing(digest)
        self.refused(self.get(), "no hash")

        def commit(answer):
            answer["sha"] = "../../../../../../../../../../../../../x"
            return answer
        self.listing(commit)
        self.refused(self.get(), "no commit")

    def test_sizes_that_cannot_be_are_refused(self):
        for size in (-1, 1 << 60, 1e30, "1", None, [], 1.5):
            def change(answer, size=size):
                answer["siblings"][0]["size"] = size
                return answer
            self.listing(change)
            self.refused(self.get(), "org/name has neither")

    def test_a_hub_that_gives_no_sizes_is_named(self):
        def without(answer):
            for row in answer["siblings"]:
                del row["size"], row["lfs"]
            return answer
        self.hub.add("org/name", {FILE: self.data}).change = without
        self.refused(self.pull("org/name", "--yes"), "the answer of the hub has no sizes of files")

    def test_a_size_that_is_too_small_is_a_wrong_file(self):
        def change(answer):
            answer["siblings"][0]["size"] = 290000
            return answer
        self.listing(change)
        self.refused(self.get(), "other bytes than those requested")

    def test_answers_that_are_too_large_or_too_deep_end(self):
        row = {"rfilename": "x", "size": 1}
        for body, text in (
                (b" " * (33 << 20), "longer than"),
                (b"[" * 100000, "deep"),
                (b"<html>", "a web page"),
                (b"", "answer of the hub"),
                (b'{"sha":"', "answer of the hub"),
                (json.dumps({"sha": "a" * 40, "siblings": [
                    {**row, "rfilename": f"f{i}"} for i in range(20001)]}).encode(), "20000"),
                (b'{"sha":"' + b"a" * (5 << 20) + b'"}', "answer of the hub")):
            self.listing(lambda _, body=body: body)
            self.refused(self.get(), text)

    def test_the_answer_may_not_go_on_forever(self):
        def endless(r, *_):
            r.close_connection = True
            r.send_response(200)
            r.end_headers()
            while True:
                r.wfile.write(b" " * 65536)
        self.hub.list = endless
        self.refused(self.get(), "longer than")

    def test_a_page_with_an_error_may_not_go_on_forever(self):
        def endless(r, *_):
            r.close_connection = True
            r.send_response(404)
            r.send_header("X-Error-Code", "RevisionNotFound")
            r.end_headers()
            while True:
                r.wfile.write(b" " * 65536)
        self.hub.list = endless
        self.refused(self.get(), "--revision")

    def test_headers_may_not_go_on_forever(self):
        def endless(r, *_):
            r.close_connection = True
            r.send_response(200)
            r.flush_headers()
            while True:
                r.wfile.write(b"X-More: 1\r\n" * 1000)
        self.hub.list = endless
        r = self.get()
        self.refused(r, "headers")
        # The libcurl of Debian 13 has a limit of its own.
        self.assertRegex(r.stderr, "too long|Too many")

    def test_names_of_repositories_are_checked(self):
        for name in ("../x", "a/b/c", "a--b/c", "org/..", "org/name:../x", "org/name:", "",
                     "-/x", "org/na me", "org/\x1b[2J", "/org/name"):
            r = self.pull("--", name)
            self.assertEqual(2, r.returncode, (name, r.stderr))
            self.assertNotIn("\x1b", r.stderr)
        self.assertEqual([], self.hub.requests)
        for revision in ("../x", "", "a\nb", "/a"):
            self.refused(self.pull("org/name", "--revision", revision), "revision", code=2)

    def test_a_wrong_digest_in_a_ref_does_no_harm(self):
        top = os.path.join(self.cache, "models--org--name", "refs")
        os.makedirs(top)
        with open(os.path.join(top, "main"), "w") as f:
            f.write("../../../x")
        self.good()
        self.assertEqual(self.repo.commit.encode(), content(os.path.join(top, "main")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
