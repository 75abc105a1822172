#!/usr/bin/env python3
"""memwall pull from a hub whose certificate a company's own authority has signed."""
import os
import shutil
import ssl
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import MODELS  # noqa: E402
from pull_case import Case, content  # noqa: E402

VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@unittest.skipIf(shutil.which("openssl") is None, "openssl is not installed")
class Authority(Case):
    def setUp(self):
        super().setUp()
        self.certificate = self.made("own")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.certificate + ".key")
        server = self.hub.servers[0]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.hub.url = self.hub.url.replace("http:", "https:")
        self.hub.redirects = False
        self.data = content(os.path.join(MODELS, "llama-tiny.gguf"))
        self.hub.add("org/name", {"a-BF16.gguf": self.data})

    def made(self, name):
        """A certificate that signs itself, beside its key."""
        path = os.path.join(self.folder.name, name + ".pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", path + ".key", "-out",
                        path, "-days", "30", "-subj", "/CN=" + name, "-addext",
                        "subjectAltName=IP:127.0.0.1"], capture_output=True, check=True)
        return path

    def environment(self, **more):
        env = super().environment(**more)
        for name in (*VARIABLES, "SSL_CERT_DIR"):
            if name not in more:
                env.pop(name, None)
        return env

    def test_each_variable_names_it(self):
        for name in VARIABLES:
            self.fetched(self.data, "org/name", env={name: self.certificate + "\n"})

    def test_a_folder_may_hold_it(self):
        folder = os.path.join(self.folder.name, "certificates")
        os.mkdir(folder)
        digest = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", self.certificate],
                                capture_output=True, check=True, text=True).stdout.strip()
        shutil.copy(self.certificate, os.path.join(folder, digest + ".0"))
        for name in ("SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
            self.fetched(self.data, "org/name", env={name: folder})

    def test_all_files_count_where_several_are_named(self):
        other = self.made("other")
        for name in VARIABLES:
            self.fetched(self.data, "org/name",
                         env={n: other for n in VARIABLES} | {name: self.certificate})

    def test_an_unknown_authority_is_refused(self):
        self.refused(self.pull("org/name"), "certificate", "SSL_CERT_FILE")
        self.refused(self.pull("org/name", env={"SSL_CERT_FILE": self.made("other")}),
                     "certificate", "SSL_CERT_FILE")
        self.assertEqual([], self.hub.requests)

    def test_a_file_that_cannot_be_read_is_named(self):
        missing = os.path.join(self.folder.name, "missing.pem")
        for name in (*VARIABLES, "SSL_CERT_DIR"):
            self.refused(self.pull("org/name", env={name: missing}), name, missing, "No such file")

    def test_a_file_without_certificates_is_refused(self):
        bad = os.path.join(self.folder.name, "bad.pem")
        with open(bad, "w") as f:
            f.write("not a certificate")
        self.refused(self.pull("org/name", env={"SSL_CERT_FILE": bad}), "certificate")


if __name__ == "__main__":
    unittest.main(verbosity=2)
