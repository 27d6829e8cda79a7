#!/usr/bin/env python3
"""Draws the reference images that no page of the docs shows: a dark picture, a report, and the explorer.

`./dev figures dark report explorer` draws them anew into tests/unit/viz/references.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "unit" / "viz" / "references"
COLOURS = 256
RUN = "ior-16-tasks"
"""The run that they show, one of those of docs/reference/figures.md."""

_IS_COMPLETE = """
    () => window.Bokeh && [...Bokeh.index.query((view) => view.model.name === "slowest")]
        .some((view) => view.root.has_finished())
"""
_MOST_SHOTS = 60


def _dark(run: str, target: Path) -> None:
    import ensembles
    from ensembles import viz

    viz.save(viz.modes(ensembles.open(run).ensemble(op="write")), target, width=700, theme="dark")


def _report(run: str, target: Path) -> None:
    import ensembles
    from ensembles.viz import write_report

    with tempfile.TemporaryDirectory() as folder, _page(1000, 3200) as page:
        write_report(ensembles.open(run), Path(folder) / "report.html")
        page.goto((Path(folder) / "report.html").as_uri())
        page.wait_for_function("() => document.documentElement.dataset.drawing === 'done'")
        page.wait_for_function("() => Bokeh.documents.every((d) => d.is_idle)")
        target.write_bytes(_still(page))


def _explorer(run: str, target: Path) -> None:
    command = [sys.executable, "-m", "ensembles.cli.main", "serve", run]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        with _page(1400, 1000) as page:
            page.goto(server.stdout.readline().strip())
            page.wait_for_function(_IS_COMPLETE)
            target.write_bytes(_still(page))
    finally:
        server.terminate()
        server.communicate(timeout=60)


PAGES: dict[str, Callable[[str, Path], None]] = {"dark": _dark, "report": _report, "explorer": _explorer}
"""What draws each reference image of a run, by its name."""


@contextmanager
def _page(width: int, height: int) -> Iterator[Any]:
    import shutil

    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            page = running.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.set_default_timeout(180_000)  # a busy machine draws slowly
            yield page
        finally:
            running.close()


def _still(page: Any) -> bytes:
    """Take pictures of the window until two in a row are equal: nothing is being drawn any more."""
    shot: bytes = page.screenshot()
    for _ in range(_MOST_SHOTS):
        page.wait_for_timeout(500)
        before, shot = shot, page.screenshot()
        if before == shot:
            break
    return shot


def draw(name: str, run: str, target: Path) -> int:
    """Draw a reference image into a PNG file with a palette, and return its size in bytes."""
    from PIL import Image

    PAGES[name](run, target)
    image = Image.open(io.BytesIO(target.read_bytes())).convert("RGB")
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)
    return target.stat().st_size
