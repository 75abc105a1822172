"""One headless Chromium, controlled over a pipe (the DevTools protocol)."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--no-proxy-server", "--hide-scrollbars", "--remote-debugging-pipe")


class Failed(Exception):
    """The browser does not start, or has ended."""


class Browser:
    def __init__(self, folder, env, timeout_s):
        """Start the browser with its profile in folder."""
        to_browser, self.to = os.pipe()
        self.pipe, from_browser = os.pipe()
        self.timeout_s, self.number, self.buffer, self.session = timeout_s, 0, b"", None

        def use_pipes():  # the browser reads from 3 and writes to 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(
            [CHROMIUM, *QUIET, "--user-data-dir=" + folder, "about:blank"], env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=use_pipes)
        os.close(to_browser)
        os.close(from_browser)
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target,
                                     flatten=True)["sessionId"]
            self.call("Page.enable")
        except Failed:
            self.close()
            raise

    def close(self):
        """End the browser and its helpers, which still write to the folder after a kill."""
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(self.timeout_s)
        except (Failed, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.pipe)

    def message(self):
        """Return the next message of the browser."""
        until = time.monotonic() + self.timeout_s
        while b"\0" not in self.buffer:
            if not select.select([self.pipe], [], [], max(0, until - time.monotonic()))[0]:
                raise Failed("no answer")
            data = os.read(self.pipe, 1 << 20)
            if not data:
                raise Failed("the browser has ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        """Call a method of the protocol and return its result."""
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            call["sessionId"] = self.session
        try:
            os.write(self.to, json.dumps(call).encode() + b"\0")
        except BrokenPipeError:
            raise Failed("the browser has ended") from None
        while (answer := self.message()).get("id") != self.number:
            pass
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, path):
        """Show a file, and return when it is loaded."""
        self.call("Page.navigate", url="file://" + path)
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def value(self, script):
        """Return the value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=script,
                         returnByValue=True)["result"]["value"]

    def shot(self, width, height, dark=False):
        """Return a PNG of the top of the page."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def pdf(self):
        """Return the page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def names(self):
        """Return (role, accessible name) of each element that assistive programs see."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes
                if not n["ignored"]]
