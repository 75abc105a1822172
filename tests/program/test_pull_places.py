#!/usr/bin/env python3
"""memwall pull on file systems that lack a call: exFAT, CIFS, Lustre, mounted buckets."""
import errno
import json
import os
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import deny  # noqa: E402
from program import MEMWALL, MODELS, TIMEOUT_S  # noqa: E402
from pull_case import Case, content, noise  # noqa: E402

LINKS = ("link", "linkat", "symlink", "symlinkat")


def refusing(calls, error):
    return deny.deny([deny.NUMBERS[name] for name in calls], error)


@unittest.skipUnless(deny.NUMBERS, "system calls cannot be refused on this machine")
class Places(Case):
    def setUp(self):
        super().setUp()
        self.data = content(os.path.join(MODELS, "llama-tiny.gguf"))
        self.hub.add("org/name", {"sub/a-BF16.gguf": self.data})

    def used(self, path):
        """The model is listed and opens by its name, and a second pull fetches nothing."""
        def run(*args):
            r = subprocess.run([MEMWALL, *args], capture_output=True, text=True,
                               env=self.environment(), timeout=TIMEOUT_S)
            self.assertEqual(0, r.returncode, r.stderr)
            return r.stdout
        self.assertEqual([path], [m["path"] for m in json.loads(run("list", "--json"))
                                  if m["name"] == "org/name:BF16"])
        run("inspect", "--tensors", "org/name:BF16")
        before = self.hub.sent_of_file("sub/a-BF16.gguf")
        self.assertEqual(path, self.fetched(self.data, "org/name"))
        self.assertIn(", fetched", self.pull("org/name", "--list").stdout)
        self.assertEqual(before, self.hub.sent_of_file("sub/a-BF16.gguf"))

    def test_without_links_the_file_has_its_own_name(self):
        for i, error in enumerate((errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)):
            cache = os.path.join(self.folder.name, str(i))
            r = self.pull("org/name", preexec_fn=refusing(LINKS, error),
                          env={"HF_HUB_CACHE": cache})
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertEqual(1, r.stderr.count("no links"), r.stderr)
            path = r.stdout.strip()
            self.assertTrue(stat.S_ISREG(os.lstat(path).st_mode))
            self.assertEqual(self.data, content(path))
            self.assertEqual([], os.listdir(os.path.join(cache, "models--org--name", "blobs")))
        os.makedirs(os.path.dirname(self.cache), exist_ok=True)
        os.rename(cache, self.cache)
        self.used(path.replace(cache, self.cache))

    def test_a_file_of_another_size_under_its_name_is_replaced(self):
        r = self.pull("org/name", preexec_fn=refusing(LINKS, errno.EPERM))
        path = r.stdout.strip()
        with open(path, "ab") as f:
            f.write(b"more")
        r = self.pull("org/name", preexec_fn=refusing(LINKS, errno.EPERM))
        self.assertEqual(0, r.returncode, r.stderr)
        self.assertEqual(self.data, content(path))

    def test_without_locks_it_goes_on_with_a_notice(self):
        for i, error in enumerate((errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)):
            r = self.pull("org/name", preexec_fn=refusing(["flock"], error),
                          env={"HF_HUB_CACHE": os.path.join(self.folder.name, str(i))})
            self.assertEqual(0, r.returncode, r.stderr)
            self.assertEqual(1, r.stderr.count("no locks"), r.stderr)
        self.assertNotIn("no locks", self.pull("org/name").stderr)

    def test_other_calls_may_be_missing_too(self):
        for i, (calls, error) in enumerate((
                (["fsync", "fdatasync"], errno.EINVAL), (["fsync", "fdatasync"], errno.ENOSYS),
                (["fsync", "fdatasync"], errno.EOPNOTSUPP),
                (["fsync", "fdatasync", "ftruncate"], errno.EPERM),
                (["statfs", "fstatfs"], errno.ENOSYS),
                (["fallocate"], errno.EOPNOTSUPP), (["chmod", "fchmod"], errno.EPERM),
                (["fadvise64", "sync_file_range"], errno.ENOSYS),
                (["renameat2"], errno.EINVAL))):
            r = self.pull("org/name", preexec_fn=refusing(calls, error),
                          env={"HF_HUB_CACHE": os.path.join(self.folder.name, str(i))})
            self.assertEqual(0, r.returncode, (calls, error, r.stderr))

    def test_a_download_that_is_too_long_needs_no_truncation(self):
        incomplete = self.blob("org/name", self.data)
        os.makedirs(os.path.dirname(incomplete))
        with open(incomplete, "wb") as f:
            f.write(bytes(len(self.data) + 1))
        self.fetched(self.data, "org/name", preexec_fn=refusing(["ftruncate"], errno.EPERM))

    def test_a_set_and_a_snapshot_need_no_links_either(self):
        names = [f"m-Q8_0-{i:05}-of-00002.gguf" for i in (1, 2)]
        files = {name: noise(30000, i) for i, name in enumerate(names)}
        self.hub.add("org/set", files)
        for _ in range(2):
            r = self.pull("org/set", "--yes", preexec_fn=refusing(LINKS, errno.EPERM))
            self.assertEqual(0, r.returncode, r.stderr)
            for name in names:
                path = os.path.join(os.path.dirname(r.stdout.strip()), name)
                self.assertEqual(files[name], content(path))


if __name__ == "__main__":
    unittest.main(verbosity=2)
