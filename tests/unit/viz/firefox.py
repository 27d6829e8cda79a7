"""Firefox, driven by the protocol that it speaks itself (WebDriver BiDi): no driver program is needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

_SETTINGS = {
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.prefs.recommended": True,
}


def firefox() -> str | None:
    """The browser on this machine, or None."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """A page in Firefox.

    Attributes
    ----------
    problems : list of str
        Console errors and warnings, and exceptions.
    requests : list of str
        Addresses of all requests.
    """

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(f"{address}/session", timeout=600, suppress_origin=True)
        self._number = 0
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._ask("session.new", {"capabilities": {}})
        self._ask("session.subscribe", {"events": ["log.entryAdded", "network.beforeRequestSent"]})
        self._page = self._ask("browsingContext.getTree", {})["contexts"][0]["context"]

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("type") == "event":
                self._note(answer["method"], answer["params"])
            elif answer.get("id") == self._number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]

    def _note(self, name: str, params: dict[str, Any]) -> None:
        if name == "network.beforeRequestSent":
            self.requests.append(params["request"]["url"])
        elif name == "log.entryAdded" and params["level"] in ("error", "warn"):
            self.problems.append(f"{params['type']}: {params['text']}")

    def size(self, width: int, height: int) -> None:
        """Set the size of the page."""
        viewport = {"width": width, "height": height}
        self._ask("browsingContext.setViewport", {"context": self._page, "viewport": viewport})

    def open(self, address: str) -> None:
        """Open a page, and wait until it is loaded."""
        self._ask("browsingContext.navigate", {"context": self._page, "url": address, "wait": "complete"})

    def evaluate(self, expression: str) -> Any:
        """Evaluate JavaScript; the value comes back through JSON."""
        target = {"context": self._page}
        wrapped = f"JSON.stringify({expression})"
        found = self._ask("script.evaluate", {"expression": wrapped, "target": target, "awaitPromise": True})
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        text = found["result"].get("value")
        return None if text is None else json.loads(text)

    def wait(self, expression: str, seconds: float = 60) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while True:
            try:
                if self.evaluate(f"Boolean({expression})"):
                    return
            except RuntimeError:
                pass  # The page may not have got so far.
            if time.monotonic() > until:
                raise TimeoutError(expression)
            time.sleep(0.1)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag from one point of the window to another."""
        moves = [
            {"type": "pointerMove", "x": round(start[0]), "y": round(start[1])},
            {"type": "pointerDown", "button": 0},
        ]
        for part in (0.25, 0.5, 0.75, 1.0):
            x, y = (first + part * (last - first) for first, last in zip(start, end, strict=True))
            moves.append({"type": "pointerMove", "x": round(x), "y": round(y), "duration": 50})
        self._pointer([*moves, {"type": "pointerUp", "button": 0}])

    def point(self, x: float, y: float) -> None:
        """Move the mouse to a point of the window."""
        self._pointer([{"type": "pointerMove", "x": round(x - 3), "y": round(y)}])
        self._pointer([{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 50}])

    def _pointer(self, moves: list[dict[str, Any]]) -> None:
        source = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self._ask("input.performActions", {"context": self._page, "actions": [source]})

    def picture(self, path: Path) -> None:
        """Save a picture of the window."""
        import base64

        found = self._ask("browsingContext.captureScreenshot", {"context": self._page})
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """End the session."""
        self._socket.close()


@contextmanager
def running_firefox(folder: Path) -> Iterator[Firefox]:
    """A headless Firefox with a new profile."""
    profile = folder / "profile"
    profile.mkdir()
    lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in _SETTINGS.items()]
    (profile / "user.js").write_text("\n".join(lines))
    log = folder / "firefox.log"
    executable = firefox()
    assert executable is not None
    command = [executable, "--headless", "--no-remote", "--profile", str(profile)]
    with (
        log.open("wb") as file,
        subprocess.Popen([*command, "--remote-debugging-port", "0"], stdout=file, stderr=file) as process,
    ):
        try:
            page = Firefox(_address(log, process))
            try:
                yield page
            finally:
                page.close()
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(log: Path, process: subprocess.Popen) -> str:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise RuntimeError(f"Firefox does not listen: {log.read_text(errors='replace')[-2000:]}")
