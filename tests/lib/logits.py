"""Logits of made models by one process, for scripts that change a model thousands of times:
starting `memwall eval` takes longer than its work."""
import os
import select
import subprocess

from program import BUILDDIR, TIMEOUT_S

PROGRAM = os.path.join(BUILDDIR, "tests", "program", "model_logits")


class Logits:
    """Answers are bytes, or the text of an error."""

    def __init__(self, ids):
        self.command = [PROGRAM, *map(str, ids)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, line):
        out = self.process.stdout
        os.write(self.process.stdin.fileno(), os.fsencode(line) + b"\n")
        head = out.readline() if select.select([out], [], [], TIMEOUT_S)[0] else b""
        word, _, rest = head.partition(b" ")
        if word == b"ok":
            return out.read(int(rest))
        if word == b"error":
            return rest.decode(errors="replace").rstrip("\n")
        self.process.kill()  # does nothing if it has ended
        code = self.close()
        self.start()
        raise AssertionError(f"{line}: model_logits ended with status {code}")

    def eval(self, path, n):
        """The rows of the first n ids."""
        return self.ask(f"eval {n} {path}")

    def defaults(self, path):
        """The names of the values that the model leaves out; or the text of an error."""
        names = self.ask(f"defaults {path}")
        return names if isinstance(names, str) else set(names.decode().split())

    def close(self):
        """Returns the exit status."""
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT_S)
        self.process.stdout.close()
        return code
