"""Pictures become dark and light again, follow the reader's preference, and are saved as pages and images."""

from __future__ import annotations

import importlib.util
import io
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from bokeh.models import Plot
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.model.errors import EnsioError
from ensembles.viz.common.theme import DARK, spoken_title
from ensembles.viz.report.drawing import embed_pictures

if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    pytest.skip("playwright or Pillow is not installed: no picture is drawn", allow_module_level=True)

from browser import chromium, new_context
from PIL import Image

needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH: no picture is drawn")

TASKS = [[("pwrite", 0.1, 0.5, 1 << 20), ("pread", 1.0, 0.5, 1 << 20)], [("pwrite", 0.1, 0.7, 1 << 20)]]


@pytest.fixture
def run(tmp_path: Path):
    return run_of(tmp_path / "run", TASKS, lasted_s=2.0)


def colours(picture) -> dict[tuple[str, str], str]:
    return {
        (type(model).__name__ + model.id, name): str(getattr(value, "value", value)).lower()
        for model in picture.references()
        for name, value in model.properties_with_values(include_defaults=True).items()
        if name.endswith("color")
    }


def test_dark_and_light_exchange_only_neutral_colours(run) -> None:
    picture = viz.trace_diagram(run)
    light = colours(picture)
    assert viz.theme(picture, "dark") is picture
    dark = colours(picture)
    assert not set(dark.values()) & set(DARK)
    changed = {place for place in light if light[place] != dark[place]}
    assert changed
    assert {light[place] for place in changed} <= set(DARK)
    assert colours(viz.theme(picture, "light")) == light
    assert len(set(DARK.values())) == len(DARK)
    with pytest.raises(ValueError, match="choose light or dark"):
        viz.theme(picture, "sepia")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("text", ["#222222", "#444444", "#666666"])
def test_texts_can_be_read_in_both_themes(text: str) -> None:
    # Web Content Accessibility Guidelines 2.1, level AA.
    assert contrast(text, "#ffffff") >= 4.5
    assert contrast(DARK[text], DARK["#ffffff"]) >= 4.5


def test_curves_can_be_seen_in_both_themes() -> None:
    from ensembles.viz.common.style import COLOURS, SERIES

    for colour in (*SERIES, *COLOURS.values()):
        assert contrast(colour, "#ffffff") >= 1.75, colour
        assert contrast(colour, DARK["#ffffff"]) >= 2.4, colour


class Roles(HTMLParser):
    """Labels of the elements with a role."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.labels: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("role") == "figure":
            self.labels.append(found.get("aria-label"))


def test_screen_readers_get_the_titles(run) -> None:
    picture = viz.ranks(run)
    _, divisions = embed_pictures({"ranks": picture}, linked=())
    (label,) = Roles(divisions["ranks"]).labels
    assert label == spoken_title(picture)
    assert label.startswith("Time in I/O of each rank. Rank 0 was longest")
    hostile = viz.rate(run, title='"><script>alert(1)</script>')
    _, divisions = embed_pictures({"rate": hostile}, linked=())
    assert Roles(divisions["rate"]).labels == ['"><script>alert(1)</script>']
    assert "<script" not in divisions["rate"]


def test_every_figure_of_a_picture_has_a_title(run) -> None:
    for name in (
        "trace_diagram",
        "rate",
        "ranks",
        "files",
        "phases",
        "layers",
        "access_map",
        "targets",
    ):
        for fig in getattr(viz, name)(run).select({"type": Plot}):
            assert fig.title.text, name


@pytest.mark.slow
@needs_browser
def test_a_page_follows_the_preference_and_prints_light(run, tmp_path: Path) -> None:
    path = tmp_path / "rate.html"
    viz.save(viz.rate(run), path)
    problems: list[str] = []
    with new_context(color_scheme="dark", offline=True) as context:
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_function("() => document.documentElement.dataset.drawing === 'done'")
        background = "() => Bokeh.documents[0].roots()[0].background_fill_color"
        assert page.evaluate(background) == DARK["#ffffff"]
        for scheme, colour in (("light", "#ffffff"), ("dark", DARK["#ffffff"])):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(f"({background})() === '{colour}'")
            tabs = "() => getComputedStyle(document.documentElement).getPropertyValue('--ensio-widget')"
            assert page.evaluate(tabs).strip() == (colour if scheme == "dark" else "")
        # Boxes at the mouse have the colours of the page too.
        middle = "(({left, top, width, height}) => [left + width / 2, top + height / 2])"
        x, y = page.evaluate(f"() => {middle}(Bokeh.index.roots[0].frame.bbox)")
        page.mouse.move(x, y)
        page.mouse.move(x + 20, y + 20, steps=2)
        box = page.locator(".bk-Tooltip").first
        box.wait_for()
        colour = box.evaluate("(each) => getComputedStyle(each).backgroundColor")
        assert colour == f"rgb{tuple(bytes.fromhex(DARK['#ffffff'][1:]))}"
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(background) == "#ffffff"
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(background) == DARK["#ffffff"]
    assert problems == []


@pytest.mark.slow
@needs_browser
def test_images_have_their_size_and_theme(run, tmp_path: Path) -> None:
    picture = viz.rate(run)
    viz.save(picture, tmp_path / "light.png", width=640)
    viz.save(picture, tmp_path / "dark.png", width=640, theme="dark", scale=2)
    light, dark = (Image.open(tmp_path / f"{name}.png").convert("RGB") for name in ("light", "dark"))
    assert light.width == 640
    assert dark.size == (2 * light.width, 2 * light.height)
    assert light.getpixel((2, 2)) == (255, 255, 255)
    assert dark.getpixel((4, 4)) == (0x1D, 0x1D, 0x21)
    viz.save(picture, tmp_path / "rate.svg", width=640)
    root = ET.parse(tmp_path / "rate.svg").getroot()
    assert root.get("width") == "640"
    assert "aggregate rate" in " ".join(root.itertext())


@pytest.mark.slow
@needs_browser
def test_a_layout_is_saved_whole(run, tmp_path: Path) -> None:
    viz.save(viz.ranks(run), tmp_path / "ranks.svg", width=700)
    texts = " ".join(ET.parse(tmp_path / "ranks.svg").getroot().itertext())
    for title in ("Time in I/O of each rank", "Bytes moved by each rank", "Longest I/O call of each rank"):
        assert title in texts


def test_names_and_pictures_are_checked(run, tmp_path: Path) -> None:
    with pytest.raises(EnsioError, match=r"ends in \.html, \.png or \.svg"):
        viz.save(viz.rate(run), tmp_path / "rate.pdf")
    with pytest.raises(TypeError, match="a Bokeh figure or layout is needed, not int"):
        viz.save(42, tmp_path / "rate.png")
    with pytest.raises(EnsioError, match="cannot be written"):
        viz.save(viz.rate(run), tmp_path / "absent" / "rate.html")


def test_a_picture_is_saved_again_and_is_not_changed(run, tmp_path: Path) -> None:
    picture = viz.rate(run)
    before = colours(picture)
    for name in ("one.html", "two.html"):
        assert viz.save(picture, tmp_path / name) > 300_000
    assert colours(picture) == before
    assert picture.document is None


def test_without_playwright_or_browser_one_sentence_says_so(run, tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "playwright.sync_api", None)
        with pytest.raises(EnsioError, match="pip install playwright") as found:
            viz.save(viz.rate(run), tmp_path / "rate.png")
        assert "\n" not in str(found.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    with pytest.raises(EnsioError, match=r"no browser starts .*\.html") as found:
        viz.save(viz.rate(run), tmp_path / "rate.png")
    assert "\n" not in str(found.value)
    assert not (tmp_path / "rate.png").exists()


def test_a_picture_of_a_shown_document_can_be_saved(tmp_path: Path) -> None:
    from bokeh.document import Document

    picture = viz.histogram(en.Ensemble([1.0, 2.0], name="calls"), cumulative=True)
    document = Document()
    document.add_root(picture)
    assert viz.save(picture, tmp_path / "cdf.html")
    assert picture.document is document
    assert io.BytesIO((tmp_path / "cdf.html").read_bytes()).read(15) == b"<!DOCTYPE html>"


def test_a_figure_by_itself_has_its_titles_for_screen_readers(run) -> None:
    fig = viz.phases(run)
    label = fig.html_attributes["aria-label"]
    assert fig.html_attributes["role"] == "figure"
    assert label == spoken_title(fig)
    assert label.startswith("2 phases. Tasks waited ")
    both = viz.rate({"one": run, "two": run})
    assert [part.html_attributes["aria-label"].split(":")[0] for part in both.children] == ["one", "two"]
    # The division of a page has the label: it is not read twice.
    script, _ = embed_pictures({"phases": fig}, linked=())
    assert "aria-label" not in script
    assert fig.html_attributes["aria-label"] == label
