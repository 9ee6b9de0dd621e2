"""A headless Chromium for tests, driven over a pipe with the DevTools protocol. None is needed:
tests skip without."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ARTEFACTS = Path(__file__).parent / "screenshots"  # git ignores it
SECONDS = 30.0


class Browser:
    """One page of a browser.

    :ivar requests: the URLs that the page has asked for.
    :ivar problems: errors of the console, of scripts, and of the content security policy.
    """

    def __init__(self, profile: Path, *flags: str) -> None:
        pipes = [*os.pipe(), *os.pipe()]
        read, self._write, self._read, write = (
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in pipes
        )
        for end in pipes:
            os.close(end)
        command = [
            str(CHROMIUM),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            *flags,
            "about:blank",
        ]
        program = (
            f"import os, sys; os.dup2({read}, 3); os.dup2({write}, 4); "
            f"os.execv(sys.argv[1], sys.argv[1:])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-Sc", program, *command],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._buffer, self._number, self._session = b"", 0, ""
        self.requests, self.problems = list[str](), list[str]()
        self._loaded = 0
        target = next(
            info for info in self.call("Target.getTargets")["targetInfos"] if info["type"] == "page"
        )
        self._session = self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self) -> Any:
        """Return the next message, after taking note of it."""
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], SECONDS)[0], "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        method, about = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.problems.append(str(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(about["entry"]["text"])
        elif method == "Page.loadEventFired":
            self._loaded += 1
        return message

    def open(self, url: str) -> None:
        """Open a page, and wait until it is there."""
        before = self._loaded
        self.call("Page.navigate", url=url)
        while self._loaded == before:
            self._next()

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        """Set the size of the window, and which colours its user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def settle(self) -> None:
        """Wait until the page has drawn what it was to draw."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; promises are waited for."""
        result = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = SECONDS) -> Any:
        """Return the value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"{script} is still {value!r}"
            time.sleep(0.02)
        return value

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press keys, by their names in KeyboardEvent.key."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            for kind in ("keyDown", "keyUp"):
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    modifiers=8 if shift else 0,
                    **text,
                )

    def point(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        image = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(image))

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._read)
        os.close(self._write)
