"""Save a picture as HTML, PNG or SVG.

The templates of pages: numbers and their units stay on one line.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from bokeh.model import Model
from bokeh.models.layouts import LayoutDOM
from jinja2 import Environment
from markupsafe import Markup

from ensembles.files.atomic_write import atomic_write
from ensembles.model.errors import EnsioError
from ensembles.viz.common.figures import keep_units
from ensembles.viz.common.theme import spoken_title
from ensembles.viz.report.drawing import embed_pictures

FORMATS = (".html", ".png", ".svg")
"""What a picture can be saved as, by the end of the file's name."""

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
_NEEDS = "use a name that ends in .html, or install playwright (pip install playwright) and Chromium"
_SVG_JS = """
    () => {
        const [root] = Bokeh.documents[0].roots();
        const view = Bokeh.index.find_one(root);
        return view.export("svg").ctx.get_serialized_svg(true);
    }
"""


def save(
    picture: Any,
    path: str | os.PathLike[str],
    *,
    width: int = 900,
    theme: Literal["light", "dark"] = "light",
    scale: float = 1.0,
) -> int:
    """Save a picture as a page, or as an image of it.

    A page needs no network, and is light or dark as its reader prefers. Images are made by a browser on this
    machine, without network: Chromium or Chrome on PATH, or else one that playwright installed.

    Parameters
    ----------
    picture : Bokeh figure or layout
        Is not changed. It must not belong to a document that is shown.
    path : path-like
        The end of the name says the format: ``.html``, ``.png`` or ``.svg``. An existing file is replaced.
    width : int
        Width of an image in pixels.
    theme : {"light", "dark"}
        Colours of an image.
    scale : float
        Pixels of a PNG image per pixel of `width`, for displays and print with a high resolution.

    Returns
    -------
    int
        Size of the file in bytes.

    Raises
    ------
    EnsioError
        The name has another end, there is no browser for an image, or the file cannot be written.
    TypeError
        `picture` is not a picture.

    Examples
    --------
    >>> from ensembles import viz
    >>> viz.save(viz.rate(en.open("ensio-ior")), "rate.html") > 300_000
    True
    """
    if not isinstance(picture, LayoutDOM):
        raise TypeError(f"a Bokeh figure or layout is needed, not {type(picture).__name__}")
    name = os.fspath(path)
    end = os.path.splitext(name)[1].lower()
    if end not in FORMATS:
        raise EnsioError(f"{name} names no format: use a name that ends in .html, .png or .svg")
    page = page_of(picture, margin=16 if end == ".html" else 0)
    if end == ".html":
        content = page.encode("utf-8", "replace")
    else:
        # Playwright refuses to run in a thread that has an event loop, as those of notebooks do.
        with ThreadPoolExecutor(1) as pool:
            content = pool.submit(_image, page, end, width, theme, scale).result()
    try:
        with atomic_write(name) as descriptor, open(descriptor, "wb", closefd=False) as file:
            return file.write(content)
    except OSError as error:
        raise EnsioError(f"{name} cannot be written ({error.strerror}): choose another path") from error


def page_of(picture: Model, margin: int = 16) -> str:
    """Return a page with one picture that needs no network."""
    script, divisions = embed_pictures({"picture": picture}, linked=())
    return rendered(
        "common/page.html",
        title=spoken_title(picture) or "picture",
        margin=margin,
        division=divisions["picture"],
        script=script,
    )


def _image(page: str, end: str, width: int, theme: str, scale: float) -> bytes:
    """Draw a page in a browser and return what is seen as PNG or SVG."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise EnsioError(f"an image is drawn by a browser, which playwright starts: {_NEEDS}") from None
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "picture.html"
        file.write_text(page, encoding="utf-8")
        try:
            browser = _browser(playwright)
        except Error as error:
            first = str(error).strip().splitlines()[0]
            raise EnsioError(f"no browser starts to draw an image ({first}): {_NEEDS}") from error
        try:
            context = browser.new_context(
                viewport={"width": width, "height": 800},
                device_scale_factor=scale,
                color_scheme=theme,
                offline=True,
            )
            tab = context.new_page()
            tab.set_default_timeout(120_000)
            tab.goto(file.as_uri())
            tab.wait_for_function("() => document.documentElement.dataset.drawing === 'done'")
            tab.wait_for_function("() => Bokeh.documents.every((d) => d.is_idle)")
            # The toolbar is left out of an image.
            tab.evaluate(
                "() => Bokeh.documents[0].all_models.forEach((m) => m.toolbar && (m.toolbar_location = null))"
            )
            tab.wait_for_function("() => Bokeh.documents.every((d) => d.is_idle)")
            tab.wait_for_timeout(150)
            if end == ".svg":
                return str(tab.evaluate(_SVG_JS)).encode("utf-8")
            return bytes(tab.locator("main").screenshot())
        finally:
            browser.close()


def _browser(playwright: Any) -> Any:
    """Start the Chromium on PATH; without one, a browser that playwright installed."""
    on_path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if on_path is not None:
        return playwright.chromium.launch(executable_path=on_path, args=list(_FLAGS))
    try:
        return playwright.chromium.launch(args=list(_FLAGS))
    except Exception:
        return playwright.firefox.launch()


def page_part(name: str) -> str:
    """Return a part of the pages that this package has as a file."""
    return files("ensembles.viz").joinpath(name).read_text(encoding="utf-8")


def rendered(name: str, **values: Any) -> str:
    """Return a page from its template.

    No line of a text ends between a number and its unit. Paths and commands, which readers copy, are marked
    by ``|e`` in the templates and stay as they are.
    """
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_kept)
    return environment.from_string(page_part(name)).render(values)


def _kept(value: Any) -> Any:
    return value if isinstance(value, Markup) else keep_units(str(value))
