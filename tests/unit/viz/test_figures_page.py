"""The page of pictures: its code runs, its images are those of the code, and no public picture is missing."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bokeh.models.layouts import LayoutDOM

from ensembles import viz
from ensembles.cli.main import main
from ensembles.viz.report.drawing import embed_pictures

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "docs"))

tool = importlib.import_module("figures_page")
pages = importlib.import_module("reference_pages")
PAGE = tool.PAGE
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = list(tool.shown(TEXT))
MOST_BYTES = 60_000

NO_PICTURES = {"explore", "save", "theme", "write_report"}
"""Functions of viz that the page names without an image."""


def test_every_image_is_on_the_page_and_small() -> None:
    images = {PAGE.parent / one.image for one in SHOWN}
    assert images == set((PAGE.parent / "figures").iterdir())
    assert len(images) == len(SHOWN) == TEXT.count("](figures/")
    assert {path.name: path.stat().st_size for path in images if path.stat().st_size > MOST_BYTES} == {}


def test_every_public_picture_is_on_the_page() -> None:
    drawn = {match for one in SHOWN for match in re.findall(r"viz\.(\w+)", one.code)}
    assert drawn == set(viz.__all__) - NO_PICTURES
    for name in NO_PICTURES:
        assert f"viz.{name}" in TEXT


def test_every_figure_of_the_paper_is_there() -> None:
    names = {Path(one.image).stem for one in SHOWN}
    paper = ["1a", "1b", "1c", "2", *(f"4{each}" for each in "abcdef"), *(f"5{each}" for each in "abc")]
    assert {*paper, *(f"6{each}" for each in "abcdefghijk")} <= names


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict]:
    folder = tmp_path_factory.mktemp("figures")
    found: dict = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in tool.commands(TEXT):
            assert command.startswith("ensio simulate ")
            fewer = ["--set", "steps_1=1", "--set", "steps_6=1"] if " gcrm-" in command else []
            with contextlib.redirect_stdout(io.StringIO()):
                assert main([*command.split()[1:], *fewer]) == 0
        exec(tool.preparation(TEXT), found)
        yield found  # the runs are named relative to the folder


@pytest.fixture(scope="module")
def pictures(names: dict) -> dict[str, LayoutDOM]:
    return {Path(one.image).stem: eval(one.code, names) for one in SHOWN}


@pytest.mark.slow
def test_code_of_the_page_draws_pictures(pictures: dict) -> None:
    assert all(isinstance(picture, LayoutDOM) for picture in pictures.values())


if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    BROWSER = None
else:
    from browser import browser, chromium
    from PIL import Image

    BROWSER = chromium()

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium, playwright or Pillow: nothing is drawn"
)


# None of GCRM with remedies, of which `names` simulates two of six steps.
REFERENCES = [
    *("1a", "1b", "1c", "4c", "5a"),
    *(
        "access-map",
        "layers",
        "modes",
        "modes-rejected",
        "order-statistic",
        "phases",
        "splitting",
        "targets",
        "trace-layers",
    ),
]
"""Images that are compared: one at least of each kind of picture that people look at first."""


def drawn_together(pictures: dict, folder: Path, width: int) -> dict[str, Any]:
    """One page with all pictures: what went wrong, how wide it is, what is low, and images of pictures."""
    script, divisions = embed_pictures(pictures, linked=())
    path = folder / "all.html"
    # Each begins at a whole pixel, as an image does.
    body = "".join(f'<div style="height: 2000px">{each}</div>' for each in divisions.values())
    head = '<link rel="icon" href="data:,"><style>body { margin: 0; }</style>'
    path.write_text(f"<html><head>{head}</head><body>{body}{script}</body></html>", encoding="utf-8")
    with browser(width=width) as open_page:
        report = open_page(path)
        found = {
            "problems": list(report.problems),
            "documents": report.page.evaluate("Bokeh.documents.length"),
            "width": report.page.evaluate("document.documentElement.scrollWidth"),
            "low": report.page.evaluate(
                """() => Bokeh.documents.flatMap((d) => [...d.all_models])
                    .filter((m) => m.frame_height !== undefined)
                    .map((m) => [m.name, Bokeh.index.find_one(m)?.frame?.bbox?.height])
                    .filter(([name, height]) => height !== undefined && height < 24)"""
            ),
        }
        # As viz.save draws an image: without tools.
        report.page.evaluate(
            """() => Bokeh.documents.forEach((each) =>
                each.all_models.forEach((m) => m.toolbar && (m.toolbar_location = null)))"""
        )
        report.page.wait_for_function("() => Bokeh.documents.every((d) => d.is_idle)")
        report.page.wait_for_timeout(150)
        for name in REFERENCES:
            place = re.search(r'id="([^"]+)"', divisions[name])[1]
            found[name] = path.with_name(f"{name}.png")
            report.page.locator(f"id={place}").screenshot(path=found[name])
    return found


@pytest.fixture(scope="module")
def drawn(pictures: dict, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return drawn_together(pictures, tmp_path_factory.mktemp("drawn"), tool.WIDTH)


def assert_drawn(pictures: dict, drawn: dict[str, Any], width: int) -> None:
    assert drawn["problems"] == []
    assert drawn["documents"] == len(pictures)
    assert drawn["width"] <= width
    assert drawn["low"] == []  # what is above a figure must leave room for the drawing


@pytest.mark.slow
@needs_browser
def test_all_pictures_are_drawn_without_an_error_and_fit(pictures: dict, drawn: dict[str, Any]) -> None:
    assert_drawn(pictures, drawn, tool.WIDTH)


@pytest.mark.long
@needs_browser
def test_all_pictures_fit_a_wide_window(pictures: dict, tmp_path: Path) -> None:
    assert_drawn(pictures, drawn_together(pictures, tmp_path, 1400), 1400)


def assert_alike(kept: Path, again: Path) -> None:
    """Two images show the same.

    Fonts differ between machines: compared are averages over squares of 10 pixels.
    """
    images = [Image.open(path).convert("RGB") for path in (kept, again)]
    assert images[0].size == images[1].size
    small = (images[0].width // 10, images[0].height // 10)
    first, second = (np.asarray(image.resize(small), float) for image in images)
    difference = np.abs(first - second)
    assert difference.mean() < 3.0
    assert np.mean(difference > 40) < 0.02


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", REFERENCES)
def test_images_are_those_that_the_code_draws(drawn: dict[str, Any], name: str) -> None:
    (one,) = [each for each in SHOWN if Path(each.image).stem == name]
    assert_alike(PAGE.parent / one.image, drawn[name])


@pytest.mark.slow
@needs_browser
def test_the_tool_draws_the_image_of_the_page(names: dict, tmp_path: Path) -> None:
    (one,) = [each for each in SHOWN if Path(each.image).stem == "modes"]
    target = tmp_path / "again.png"
    tool.draw(one, names, target)
    assert_alike(PAGE.parent / one.image, target)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", pages.PAGES)
def test_a_dark_picture_the_report_and_the_explorer_look_as_they_did(
    names: dict, tmp_path: Path, name: str
) -> None:
    assert names  # their runs are in the folder
    target = tmp_path / "again.png"
    pages.draw(name, pages.RUN, target)
    assert_alike(pages.FOLDER / f"{name}.png", target)


@pytest.mark.slow
@needs_browser
def test_another_picture_is_seen(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        assert_alike(PAGE.parent / "figures" / "1a.png", PAGE.parent / "figures" / "4a.png")
