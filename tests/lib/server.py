"""Run `memwall serve` and speak HTTP with it.

    with Server("-m", path) as s:
        status, reply = s.post("/v1/chat/completions", {"messages": [...]})
        for event in s.stream("/v1/chat/completions", {..., "stream": True}): ...
"""
import http.client
import json
import re
import signal
import socket
import subprocess
import threading

from program import MeasuredHome, MEMWALL, TIMEOUT_S, environment


class Server:
    def __init__(self, *args, config=None, home=None):
        self.args, self.lines, self.home = args, [], home
        self.has_line = threading.Condition()

    def __enter__(self):
        self.folder = MeasuredHome() if self.home is None else None
        home = self.home or self.folder.name
        self.process = subprocess.Popen(
            [MEMWALL, "serve", "--listen", "127.0.0.1:0", *self.args], env=environment(home),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        line = self.line(r"serving (.*) on http://127\.0\.0\.1:(\d+)")
        if line is None:
            self.end()
            raise AssertionError("the server did not start: " + "".join(self.lines))
        self.model, self.port = line.group(1), int(line.group(2))
        return self

    def __exit__(self, *args):
        self.end()

    def read(self):
        for line in self.process.stderr:
            with self.has_line:
                self.lines.append(line)
                self.has_line.notify_all()
        with self.has_line:
            self.lines.append("")
            self.has_line.notify_all()

    def line(self, pattern):
        """Wait for a line of standard error; None: it ended."""
        with self.has_line:
            at = 0
            while True:
                while at < len(self.lines):
                    found = re.search(pattern, self.lines[at])
                    if found is not None:
                        return found
                    if self.lines[at] == "":
                        return None
                    at += 1
                if not self.has_line.wait(TIMEOUT_S):
                    return None

    def end(self, signo=signal.SIGTERM):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signo)
        code = self.process.wait(TIMEOUT_S)
        self.reader.join()
        self.process.stderr.close()
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None
        return code

    def status(self, name):
        """A line of /proc/PID/status in bytes."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(rf"^{name}:\s+(\d+) kB", f.read(), re.M).group(1)) * 1024

    def connect(self, source=None):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S,
                                          source_address=source)

    def socket(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
        return s

    def open(self, path, body=None, method=None, source=None, **headers):
        """Send a request; returns connection and response, whose body is not read."""
        c = self.connect(source)
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        c.request(method or ("GET" if body is None else "POST"), path, body,
                  {n.replace("_", "-"): v for n, v in headers.items()})
        return c, c.getresponse()

    def get(self, path, **headers):
        c, r = self.open(path, **headers)
        text = r.read().decode()
        c.close()
        return r.status, text

    def post(self, path, body, **headers):
        """Returns the status and the JSON of the reply."""
        c, r = self.open(path, body, **headers)
        text = r.read()
        c.close()
        return r.status, json.loads(text)

    def stream(self, path, body, **headers):
        """Returns the values of data lines, "[DONE]" as it is; or of lines without SSE."""
        c, r = self.open(path, body, **headers)
        events = list(events_of(r))
        c.close()
        return events

    def metric(self, name):
        """Returns the value of a metric without labels, or None."""
        found = re.search(rf"^memwall_{re.escape(name)} (\S+)$", self.get("/metrics")[1], re.M)
        return None if found is None else float(found.group(1))


def events_of(response):
    is_sse = response.headers["Content-Type"].startswith("text/event-stream")
    for line in response:
        line = line.decode().rstrip("\n")
        if is_sse:
            if not line.startswith("data: "):
                continue
            line = line[6:]
        yield line if line == "[DONE]" else json.loads(line)


def comment(response):
    """The next comment of a stream."""
    while line := response.readline().decode():
        if line.startswith(":"):
            return line[1:].strip()
    return None


def user(text="hi", **more):
    return {"messages": [{"role": "user", "content": text}], **more}
