"""Headless Chromium, spoken to through two pipes in its own protocol; it has no network."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
    *("--hide-scrollbars", "--remote-debugging-pipe", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
PATIENCE = 300  # seconds, on a machine with much to do


class Browser:
    """A browser with one page; what the page asks for and complains of is kept."""

    def __init__(self, profile):
        theirs_in, self.to_browser = os.pipe()
        self.from_browser, theirs_out = os.pipe()
        # It reads from 3 and writes to 4, whatever the numbers are here.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs_in, theirs_out)]
        line = f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", line, PROGRAM, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, *theirs):
            os.close(end)
        self.unread, self.last, self.events, self.session = b"", 0, [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        """End it, with all its processes."""
        self.session = None
        try:
            self.ask("Browser.close")
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.to_browser)
            os.close(self.from_browser)

    def ask(self, method, **parameters):
        """Send a command and wait for its answer; events that come before it are kept."""
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self.last:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self.events.append(message)

    def _message(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.from_browser], [], [], end - time.monotonic())
            assert ready, "the browser does not answer"
            self.unread += os.read(self.from_browser, 1 << 20)
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def open(self, path, fragment="", *, width=1280, scheme="light"):
        """Show a file and wait until it is loaded."""
        self.events.clear()
        height = 900 if width > 600 else 800
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])
        for url in ("about:blank", path.as_uri() + fragment):  # each is loaded before the next
            self.events.clear()
            self.ask("Page.navigate", url=url)
            while not any(event["method"] == "Page.loadEventFired" for event in self.events):
                self.events.append(self._message())
        self.settle()

    def settle(self):
        """Wait for two frames: events were handled, and what they changed is drawn."""
        self.evaluate("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")

    def evaluate(self, script):
        """Return what an expression gives."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        """Press a key where the focus is."""
        stroke = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        down = {**stroke, "text": text} if text else stroke
        self.ask("Input.dispatchKeyEvent", type="keyDown", **down)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **stroke)
        self.settle()

    def screenshot(self, path, *, whole=False):
        """Keep what is shown, for people."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def requests(self):
        """The addresses that the page asked for."""
        sent = (e for e in self.events if e["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    @property
    def complaints(self):
        """Errors of scripts, and what the content security policy forbade."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event["params"] for event in self.events if event["method"] in kinds]
