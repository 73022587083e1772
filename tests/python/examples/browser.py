"""Headless Chromium through its pipe (--remote-debugging-pipe, the DevTools protocol): enough to load a page as a phone does,
hand it a file and look at what it shows."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time

PATIENCE = 120  # seconds
WIDTH, HEIGHT = 390, 800  # of a phone, in CSS pixels


class Browser:
    def __init__(self, program):
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()
        self.folder = tempfile.TemporaryDirectory(prefix="linnet-browser-", ignore_cleanup_errors=True)

        def as_three_and_four():
            """The pipes' numbers that Chromium reads and writes; first out of each other's way."""
            ends = [os.dup2(fd, fd + 100) for fd in (to_child, from_child)]
            for place, fd in zip((3, 4), ends):
                os.dup2(fd, place)

        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(words, preexec_fn=as_three_and_four, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self.number, self.left, self.requests, self.target = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "DOM", "Network", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.folder.cleanup()

    def call(self, method, **parameters):
        """The result of a command; what the page asks the network for meanwhile is noted in self.requests."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.target} if self.target else {})}
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def message(self):
        while b"\0" not in self.left:
            assert select.select([self.read_end], [], [], PATIENCE)[0], "Chromium says nothing"
            got = os.read(self.read_end, 1 << 16)
            assert got, f"Chromium ended with {self.process.poll()}"
            self.left += got
        one, _, self.left = self.left.partition(b"\0")
        return json.loads(one)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get("value")

    def wait_for(self, expression):
        end = time.monotonic() + PATIENCE
        while not (found := self.value(expression)):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.1)
        return found

    def choose_file(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def screenshot(self):
        """The bytes of a PNG of the whole page."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])
