"""A report in a real browser: where things are on the screen, what hover boxes say, what goes wrong."""

from __future__ import annotations

import asyncio
import atexit
import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE_MS = 900_000
"""Of every wait in a page, the first for its load: a busy machine draws slowly."""

_FIND_FRAME = """
    ([name, x, y]) => {
        const model = Bokeh.documents.map((d) => d.get_model_by_name(name)).find((m) => m);
        const view = Bokeh.index.find_one(model);
        const box = view.el.getBoundingClientRect();
        const sx = view.frame.x_scale.compute(x), sy = view.frame.y_scale.compute(y);
        return [box.left + sx, box.top + sy];
    }
"""

_OF_MODEL = """(name) => {{
    const model = Bokeh.documents.map((d) => d.get_model_by_name(name)).find((m) => m);
    return {};
}}"""


def chromium() -> str | None:
    """The browser on this machine, or None; one that has no window takes half the processor time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Report:
    """A page that is open in the browser.

    Attributes
    ----------
    page : Page
    problems : list of str
        Console errors and warnings, exceptions, and requests to anything but the file itself.
    """

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("request", self._on_request)
        page.goto(path.as_uri())
        # Pictures below the window are drawn later; a page of a single figure has no such mark.
        page.wait_for_function("() => (document.documentElement.dataset.drawing ?? 'done') === 'done'")
        # The report of a run without calls has a sentence and no picture.
        page.wait_for_function("() => window.Bokeh?.documents.length || document.querySelector('#missing')")
        page.wait_for_function("() => (window.Bokeh?.documents ?? []).every((d) => d.is_idle)")

    def _on_console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _on_request(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.problems.append(f"request: {request.url}")

    def position(self, figure: str, x: float, y: float) -> tuple[float, float]:
        """Where a point of a figure, in its own coordinates, is on the screen, after scrolling there."""
        top = self.page.evaluate(_FIND_FRAME, [figure, x, y])[1]
        self.page.evaluate("(top) => window.scrollBy(0, top - innerHeight / 2)", top)
        return self.place(figure, x, y)

    def place(self, figure: str, x: float, y: float) -> tuple[float, float]:
        """Where a point of a figure is on the screen, without scrolling."""
        return tuple(self.page.evaluate(_FIND_FRAME, [figure, x, y]))

    def hover_text(self, figure: str, x: float, y: float) -> str:
        """What the hover box says at a point of a figure."""
        left, top = self.position(figure, x, y)
        self.page.mouse.move(left - 3, top)
        self.page.mouse.move(left, top, steps=3)
        boxes = self.page.locator(".bk-tooltip-content:visible")
        boxes.first.wait_for()
        return " ".join(" ".join(boxes.all_inner_texts()).split())

    def pixel(self, figure: str, x: float, y: float) -> tuple[int, int, int]:
        """Colour on the screen at a point of a figure."""
        left, top = self.position(figure, x, y)
        # The mouse must not be there: a hover box would be in the way.
        self.page.mouse.move(2, 2)
        self.page.wait_for_timeout(100)
        shot = self.page.screenshot(clip={"x": left, "y": top, "width": 1, "height": 1})
        return Image.open(io.BytesIO(shot)).convert("RGB").getpixel((0, 0))

    def property_of(self, name: str, expression: str):
        """A value of a model, as the JavaScript expression of ``model`` says."""
        return self.page.evaluate(_OF_MODEL.format(expression), name)

    def wait_until(self, name: str, expression: str) -> None:
        """Wait until an expression of ``model`` is true."""
        self.page.wait_for_function(_OF_MODEL.format(expression), arg=name)


def wait_until_drawn(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until something holds of what is seen. A busy machine paints long after a model has changed."""
    for _ in range(PATIENCE_MS // 100):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError("the page was not drawn as expected")


class _Shared:
    """One browser of all tests of this process: to start it and its driver takes as long as a report.

    Playwright's loop counts as running only while a test uses the browser. Other tests run theirs.
    """

    def __init__(self) -> None:
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        self.contexts: dict[tuple, BrowserContext] = {}
        self.loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        atexit.register(self.end)

    def end(self) -> None:
        asyncio._set_running_loop(self.loop)
        self.browser.close()
        self.playwright.stop()

    def context(self, width: int, script: str, scheme: Literal["light", "dark"]) -> BrowserContext:
        """A context without network, whose first page keeps the process of the pages alive."""
        key = (width, script, scheme)
        if key not in self.contexts:
            context = self.browser.new_context(
                viewport={"width": width, "height": 900}, offline=True, color_scheme=scheme
            )
            context.set_default_timeout(PATIENCE_MS)
            context.new_page().goto(Path(__file__).with_name("empty.html").as_uri())
            if script:
                context.add_init_script(script)
            self.contexts[key] = context
        return self.contexts[key]


_shared = cache(_Shared)


@contextmanager
def shared_browser() -> Iterator[Browser]:
    """The browser of this process. What is opened in it is to be closed."""
    before, shared = asyncio._get_running_loop(), _shared()
    asyncio._set_running_loop(shared.loop)
    try:
        yield shared.browser
    finally:
        asyncio._set_running_loop(before)


@contextmanager
def new_context(**options: Any) -> Iterator[BrowserContext]:
    """A context in the browser of this process."""
    with shared_browser() as running:
        context = running.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        try:
            yield context
        finally:
            context.close()


@contextmanager
def browser(width: int = 1400, script: str = "", scheme: Literal["light", "dark"] = "light") -> Iterator:
    """A browser without network; gives a function from a path to a `Report`.

    The script runs in each page before its own; the scheme is what the reader prefers.
    """
    with shared_browser():
        context = _shared().context(width, script, scheme)
        pages: list[Page] = []

        def open_page(path: Path) -> Report:
            pages.append(context.new_page())
            return Report(pages[-1], path)

        try:
            yield open_page
        finally:
            for page in pages:
                page.close()
