"""A hub on 127.0.0.1 for tests of `memwall pull`, with faults on request.

    with Hub() as hub:
        hub.add("org/name", {"model-Q4_0.gguf": data})
        hub.on("model-Q4_0.gguf", Cut(1000))
        ... HF_ENDPOINT=hub.url
        hub.sent("model-Q4_0.gguf")  # bytes of bodies

Files of at least LARGE bytes are "large" (kept outside of git): their digest is SHA-256, and
the hub redirects to hub.cdn, another origin that serves the bytes.
"""
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

LARGE = 10000
HEADER = 256 << 10        # the first request for a header
HEADER_OF = " (header)"   # these are counted, and answered with faults, apart


def git_digest(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repo:
    def __init__(self, files):
        self.files = dict(files)
        self.commit = hashlib.sha1(repr(sorted(files)).encode()).hexdigest()
        self.gated = self.private = False
        self.change = lambda answer: answer  # of the list of files, before it is sent

    def listing(self):
        siblings = []
        for name, data in self.files.items():
            row = {"rfilename": name, "size": len(data), "blobId": git_digest(data)}
            if len(data) >= LARGE:
                row["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data),
                              "pointerSize": 135}
            siblings.append(row)
        return self.change({"id": "x", "sha": self.commit, "siblings": siblings})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """Clients that go away are part of the tests."""


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.server.name, self.path, dict(self.headers)))
            hub.n_active += 1
        try:
            hub.answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with hub.lock:
                hub.n_active -= 1
                hub.lock.notify_all()

    def end(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def range(self, size):
        """(from, to) of the Range header, or None."""
        m = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if m is None:
            return None
        return int(m.group(1)), min(int(m.group(2)) + 1, size)


class Hub:
    def __init__(self):
        self.repos, self.faults, self.requests, self.counts = {}, {}, [], {}
        self.others = {}  # answers to requests with these paths
        self.lock, self.n_active = threading.Condition(), 0
        self.redirects, self.ranges = True, True
        self.n_redirect = 0
        self.servers = []
        for name in ("hub", "cdn"):
            server = Server(("127.0.0.1", 0), Request)
            server.hub, server.name = self, name
            self.servers.append(server)
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        # Another name, so that the token must not follow.
        self.url = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.cdn = f"http://localhost:{self.servers[1].server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *args):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def add(self, name, files):
        self.repos[name] = Repo(files)
        return self.repos[name]

    def on(self, file, fault):
        """fault(request, data, from, to) answers instead of the hub; True: it did."""
        self.faults[file] = fault

    def sent(self, file):
        return self.counts.get(file, 0) + self.counts.get(file + HEADER_OF, 0)

    def sent_of_file(self, file):
        """Without the first request for a header, once all answers have ended."""
        with self.lock:
            self.lock.wait_for(lambda: self.n_active == 0)
            return self.counts.get(file, 0)

    def paths(self, server=None):
        return [path for name, path, _ in self.requests if server in (None, name)]

    def count(self, file, n):
        with self.lock:
            self.counts[file] = self.counts.get(file, 0) + n

    def answer(self, r):
        parts = urllib.parse.urlsplit(r.path)
        path = urllib.parse.unquote(parts.path)
        if path in self.others:
            return r.end(200, self.others[path])
        m = re.fullmatch(r"/api/models/([^/]+(?:/[^/]+)?)/revision/(.+)", path)
        if m:
            return self.list(r, m.group(1), urllib.parse.unquote(m.group(2)))
        m = re.fullmatch(r"/(?:cdn/)?([^/]+/[^/]+)/resolve/([0-9a-f]{40})/(.+)", path)
        if m and m.group(1) in self.repos and m.group(3) in self.repos[m.group(1)].files:
            return self.file(r, self.repos[m.group(1)], m.group(3))
        return r.end(404, X_Error_Code="EntryNotFound")

    def list(self, r, name, revision):
        repo = self.repos.get(name)
        token = r.headers.get("Authorization")
        if repo is None or (repo.private and token != "Bearer hf_good"):
            return r.end(401 if token is None else 404, X_Error_Code="RepoNotFound")
        if revision not in ("main", repo.commit):
            return r.end(404, X_Error_Code="RevisionNotFound")
        body = repo.listing()
        return r.end(200, body if isinstance(body, bytes) else json.dumps(body).encode())

    def file(self, r, repo, name):
        data = repo.files[name]
        if repo.gated and r.server.name == "hub" and r.headers.get("Authorization") is None:
            return r.end(401, X_Error_Code="GatedRepo")
        if self.redirects and r.server.name == "hub" and len(data) >= LARGE:
            self.n_redirect += 1
            return r.end(302, Location=f"{self.cdn}/cdn{r.path}?signed={self.n_redirect}")
        part = r.range(len(data)) if self.ranges else None
        first, to = part if part is not None else (0, len(data))
        if part == (0, HEADER):
            name += HEADER_OF
        fault = self.faults.get(name)
        if fault is not None and fault(r, data, first, to):
            return None
        self.begin(r, data, first, to, part is not None)
        return self.send(r, name, data[first:to])

    def begin(self, r, data, first, to, is_range=True, length=None):
        """The headers of a good reply; length replaces Content-Length."""
        r.send_response(206 if is_range else 200)
        if is_range:
            r.send_header("Content-Range", f"bytes {first}-{to - 1}/{len(data)}")
        r.send_header("Content-Length", str(to - first if length is None else length))
        r.end_headers()

    def send(self, r, name, data, step=65536):
        for i in range(0, len(data), step):
            r.wfile.write(data[i:i + step])
            self.count(name, len(data[i:i + step]))
