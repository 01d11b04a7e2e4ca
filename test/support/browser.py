# SPDX-License-Identifier: MIT
"""A headless Chromium that opens a page, by the WebDriver protocol of chromedriver."""
import json
import subprocess
import tempfile
import urllib.error
import urllib.request

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync",
           "--disable-dev-shm-usage", "--window-size=1400,860"]
SECONDS = 60


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.session = ""
        for line in self.driver.stdout:
            if "on port" in line and "successfully" in line:
                self.base = f"http://127.0.0.1:{line.split('port')[1].strip(' .' + chr(10))}"
                break
        arguments = [*OPTIONS, f"--user-data-dir={self.profile.name}"]
        made = self.post("/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": arguments}}}})
        self.session = f"/session/{made['sessionId']}"
        self.post("/timeouts", {"script": SECONDS * 1000})

    def close(self):
        try:
            self.request("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.profile.cleanup()

    def request(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        asked = urllib.request.Request(self.base + self.session + path, data, method=method,
                                       headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=2 * SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def post(self, path, body):
        return self.request("POST", path, body)

    def open(self, path, fragment=""):
        """Opens a file, and waits until its script has set data-ready. Returns its milliseconds."""
        self.post("/url", {"url": "about:blank"})
        self.post("/url", {"url": f"file://{path}{fragment}"})
        return int(self.wait("return document.documentElement.dataset.ready"))

    def run(self, script, *arguments):
        """The value that the script returns, or that its promise does."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """Runs the script at each frame until its value is true, and returns the value."""
        return self.post("/execute/async", {"args": list(arguments), "script":
                         "const done = arguments[arguments.length - 1];"
                         f"const look = (...a) => (function () {{ {script} }}).apply(null, a);"
                         "const again = () => { const value = look(...arguments);"
                         " value ? done(value) : requestAnimationFrame(again); }; again();"})

    def keys(self, text):
        self.actions({"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]})

    def click(self, x, y):
        self.actions({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]})

    def drag(self, x1, y1, x2, y2):
        self.actions({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x1), "y": round(y1)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": round(x2), "y": round(y2)},
            {"type": "pointerUp", "button": 0}]})

    def actions(self, action):
        self.post("/actions", {"actions": [action]})

    def prefer(self, scheme):
        """Sets prefers-color-scheme."""
        self.post("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]}})

    def errors(self):
        """What the page has written to its console as an error, such as an exception."""
        entries = self.post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
