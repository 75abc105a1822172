#!/usr/bin/env python3
"""memwall pull where the hub asks to wait, or fails for a while."""
import email.utils
import os
import pty
import re
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hub import HEADER_OF  # noqa: E402
from program import TIMEOUT_S  # noqa: E402
from pull_case import Case, noise  # noqa: E402

FILE = "m-Q4_0.gguf"


def date(seconds):
    """A time so many seconds after now, as in headers."""
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


class Waits(Case):
    def setUp(self):
        super().setUp()
        self.data = noise(300000)
        self.hub.add("org/name", {FILE: self.data})

    def refuse(self, n, status=429, **headers):
        """The first n requests for the bytes of the file get this answer."""
        left = [n]

        def fault(r, *_):
            left[0] -= 1
            if left[0] >= 0:
                r.end(status, b"", **headers)
            return left[0] >= 0
        self.hub.on(FILE, fault)
        self.hub.requests.clear()
        return left

    def bodies(self):
        return len([p for p in self.hub.paths("cdn") if FILE in p])

    def stopped(self, says, set_fault=None):
        """Wait for the line that says how long memwall waits, then send Ctrl-C."""
        if set_fault is not None:
            set_fault()
        p = self.start("org/name", "--yes")
        line = ""
        while not re.search(says, line):
            line = p.stderr.readline()
            self.assertNotEqual("", line)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=TIMEOUT_S)
        self.assertEqual((130, ""), (p.returncode, out), err)
        self.assertNotIn("0 B of", err)

    def test_it_waits_as_long_as_the_hub_says_and_says_so(self):
        for status, text in ((429, "too many requests"), (503, "status 503"),
                             (420, "too many requests"), (425, "status 425")):
            for header in ("400", date(401), "400 "):
                self.refuse(99, status, Retry_After=header)
                self.stopped(rf"waiting (399|40[01]) s: localhost:\d+ .*{text}")
                self.assertEqual(2, self.bodies())  # with the one for the header

    def test_a_limit_of_requests_is_a_wait_too(self):
        self.refuse(99, RateLimit='"resolvers";r=0;t=250')
        self.stopped("waiting 250 s: .*too many requests")

    def test_it_waits_for_the_list_and_for_headers(self):
        def busy(r, *_):
            r.end(429, b"", Retry_After="300")
            return True
        self.hub.on(FILE + HEADER_OF, busy)
        self.stopped("waiting 300 s: .*too many requests")
        self.hub.list = busy
        self.stopped("waiting 300 s: .*too many requests")

    def test_it_goes_on_after_the_wait(self):
        for header in ("1", date(1)):
            left = self.refuse(2, Retry_After=header)
            self.fetched(self.data, "org/name", "--yes", "--revision", "main")
            self.assertLess(left[0], 0)
            os.unlink(self.blob("org/name", self.data, ""))

    def test_other_statuses_of_a_busy_server_are_asked_again(self):
        for status in (420, 425, 520, 522, 524, 529):
            self.refuse(1, status)
            self.hub.list, real = self.busy_once(status), self.hub.list
            self.fetched(self.data, "org/name", "--yes")
            self.hub.list = real
            os.unlink(self.blob("org/name", self.data, ""))

    def busy_once(self, status):
        answers, real = [status], self.hub.list

        def answer(r, *args):
            return r.end(answers.pop()) if answers else real(r, *args)
        return answer

    def test_waits_of_no_length_are_not_waited_for(self):
        for header in ("0", "-5", "soon", "", date(-100)):
            self.refuse(1, 503, Retry_After=header)
            r = self.pull("org/name", "--yes")
            self.assertEqual(0, r.returncode, r.stderr)
            os.unlink(self.blob("org/name", self.data, ""))

    def test_a_wait_that_is_too_long_ends_it_with_the_time(self):
        for header, says in (("3600", "60 minutes"), (date(3600), "60 minutes"),
                             ("90000", "25 hours"), ("9" * 30, "720 hours")):
            self.refuse(99, Retry_After=header)
            r = self.pull("org/name", "--yes")
            self.refused(r, f"too many requests and asks to wait {says}; run this again then")
            self.assertEqual(2, self.bodies())

    def test_the_list_may_ask_for_a_long_wait_too(self):
        self.hub.list = lambda r, *_: r.end(503, b"", Retry_After="7000")
        self.refused(self.pull("org/name"), "status 503", "117 minutes", "run this again then")
        self.assertEqual(1, len(self.hub.requests))

    def test_a_terminal_shows_the_wait(self):
        for fault in ({"Retry_After": "321"}, {}):
            self.refuse(99, 503, **fault)
            main, side = pty.openpty()
            p = self.start("org/name", "--yes", stderr=side)
            os.close(side)
            shown = b""
            try:
                while not re.search(rb"waiting (321|[1-9]) s: localhost:\d+ answered", shown):
                    shown += os.read(main, 65536)
            finally:
                p.send_signal(signal.SIGINT)
                threading.Thread(target=self.drain, args=(main,), daemon=True).start()
                p.communicate(timeout=TIMEOUT_S)
            self.assertEqual(130, p.returncode, shown)

    @staticmethod
    def drain(fd):
        try:
            while os.read(fd, 65536):
                pass
        except OSError:  # EIO: the other side is closed
            pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
