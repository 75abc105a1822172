"""A server of models on 127.0.0.1 that speaks OpenAI's protocol, with faults on request.

    with Fake() as f:
        f.says("Hello", " there")                   # the next answers
        memwall("run", "--server", f.url, "hi")
        f.chats[-1].json["messages"]                # what it was asked

A reply is bytes, or a generator of bytes that are sent one after the other.
"""
import json
import socket
import ssl
import threading

TIMEOUT_S = 60


class Asked:
    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def reply(body=b"", status=200, kind="application/json", **headers):
    """The bytes of a reply."""
    if not isinstance(body, (bytes, str)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    lines = [f"HTTP/1.1 {status} Status", f"Content-Type: {kind}", "Connection: close",
             f"Content-Length: {len(body)}"]
    lines += [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def head(kind="text/event-stream; charset=utf-8", status=200):
    """The headers of a reply that ends with its connection."""
    return (f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\n"
            "Connection: close\r\n\r\n").encode()


def chunk(finish=None, **delta):
    """A piece of an answer."""
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def usage(prompt=12, answer=3, cached=None):
    u = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    if cached is not None:
        u["prompt_tokens_details"] = {"cached_tokens": cached}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": u}


def event(value, end="\n"):
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}{end}{end}".encode()


def stream(*pieces, finish="stop", end="\n", count=True):
    """The body of an answer in these pieces of text."""
    out = [event(chunk(role="assistant", content=""), end)]
    out += [event(chunk(content=p), end) for p in pieces]
    out.append(event(chunk(finish=finish), end))
    if count:
        out.append(event(usage(answer=len(pieces)), end))
    out.append(event("[DONE]", end))
    return b"".join(out)


def in_pieces(data, n):
    """The same bytes, n at a time."""
    for at in range(0, len(data), n):
        yield data[at:at + n]


class Fake:
    def __init__(self, models=("alpha",), owner="someone", certificate=None, **more):
        """more: members of each model in the list."""
        self.models, self.owner, self.more = list(models), owner, more
        self.asked, self.n_gone = [], 0
        self.changed = threading.Condition()
        self.replies = {}  # path: what is sent there
        self.is_over = False
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate + ".key")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.says("Hey.")

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.is_over = True
        # A thread that accepts keeps the socket open: it has to come back first.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def on(self, path, answer):
        self.replies[path] = answer

    def says(self, *pieces, **more):
        self.on("/v1/chat/completions", head() + stream(*pieces, **more))

    def chat(self, answer):
        self.on("/v1/chat/completions", answer)

    @property
    def chats(self):
        with self.changed:
            return [a for a in self.asked if a.path == "/v1/chat/completions"]

    def wait(self, condition):
        """Wait until it is true."""
        with self.changed:
            if not self.changed.wait_for(condition, TIMEOUT_S):
                raise AssertionError("the server waits for something that did not happen")

    # ---- connections ----

    def run(self):
        while not self.is_over:
            try:
                s, _ = self.socket.accept()
            except OSError:
                continue
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        s.settimeout(TIMEOUT_S)
        try:
            self.answer(s)
        except OSError:
            with self.changed:
                self.n_gone += 1
                self.changed.notify_all()
        finally:
            s.close()

    def answer(self, s):
        asked = self.read(s)
        if asked is None:
            return
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
        answer = self.replies.get(asked.path)
        if callable(answer):
            answer = answer()
        if answer is None:
            answer = reply(self.list()) if asked.path == "/v1/models" else \
                reply({"error": {"message": "not found"}}, 404)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in [answer] if isinstance(answer, bytes) else answer:
            s.sendall(part)

    def list(self):
        return {"object": "list", "data": [{"id": m, "object": "model", "created": 1,
                                            "owned_by": self.owner, **self.more}
                                           for m in self.models]}

    def read(self, s):
        data = b""
        while b"\r\n\r\n" not in data:
            part = s.recv(65536)
            if not part:
                return None
            data += part
        before, body = data.split(b"\r\n\r\n", 1)
        lines = before.decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = {n.lower(): v.strip() for n, v in (line.split(":", 1) for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += s.recv(65536)
        return Asked(method, path, headers, body)


def endless(fake, word="word "):
    """An answer that ends when its client goes away."""
    def pieces():
        yield head()
        n = 0
        while True:
            n += 1
            yield event(chunk(content=f"{word}{n} "))
            with fake.changed:
                if fake.changed.wait(0.01) and fake.is_over:
                    return
    fake.chat(pieces)
