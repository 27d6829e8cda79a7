"""The order in which a report draws its pictures: those in the window come first."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bokeh.plotting import figure
from made_runs import run_of
from pages import pictures_in

from ensembles.viz import write_report
from ensembles.viz.report.drawing import embed_pictures

if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    pytest.skip(
        "playwright or Pillow is not installed: the report is not tried in a browser", allow_module_level=True
    )

from browser import chromium, new_context
from playwright.sync_api import Page

needs_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium() is None, reason="no Chromium on PATH: the report is not tried in a browser"
    ),
]

UNDRAWN = "() => Array.from(document.querySelectorAll('.undrawn'), (place) => place.id)"
OPEN = "() => document.querySelectorAll('details[open]').length"
REMEMBER_WHAT_IS_PRINTED = """(() => {
    const elements = (root) => [...root.querySelectorAll("*")].flatMap(
        (each) => [each, ...(each.shadowRoot ? elements(each.shadowRoot) : [])]);
    const darkness = (canvas) => {
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        const values = copy.getImageData(0, 0, canvas.width, canvas.height).data;
        let [dark, painted] = [0, 0];
        for (let i = 0; i < values.length; i += 4) {
            if (values[i + 3]) painted += 1;
            if (values[i + 3] && values[i] + values[i + 1] + values[i + 2] < 150) dark += 1;
        }
        return painted ? dark / painted : 1;
    };
    window.columnsOfProgress = () => {
        const named = Bokeh.documents.map((one) => one.get_model_by_name("progress"));
        return named.find((fig) => fig).above.find((part) => part.type === "Legend").ncols;
    };
    const isBroken = (cell) => {
        const text = new Range();
        text.selectNodeContents(cell);
        return new Set([...text.getClientRects()].map((each) => Math.round(each.top))).size > 1;
    };
    window.addEventListener("afterprint", () => {
        window.printedColumns = columnsOfProgress();
        window.broken = [...document.querySelectorAll("td")].filter(
            (cell) => /^-?[\\d.,]+(\u00a0\\S+)?$/.test(cell.textContent.trim()) && isBroken(cell))
            .map((cell) => cell.textContent);
        window.printed = [...document.querySelectorAll("[role=figure]:not(.undrawn)")].map((place) => {
            const shown = elements(place).filter((each) => each.matches("canvas") && each.clientWidth);
            return [place.id, shown[0].clientWidth, shown[0].width, darkness(shown[0])];
        });
    });
})()"""


def streams(paper: bytes) -> bytes:
    """What a PDF draws."""
    found = []
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", paper, re.DOTALL):
        with suppress(zlib.error):
            found.append(zlib.decompress(packed))
    return b"".join(found)


LEFT = "() => [...document.querySelectorAll('.undrawn')].filter((place) => place.checkVisibility()).length"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawing")
    tasks = [[("pwrite", 0.1 * i, 0.01 + 0.001 * (i % 7), 1 << 20) for i in range(20)] for _ in range(4)]
    write_report(run_of(folder / "run", tasks, lasted_s=3.0), folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def page(path: Path) -> Iterator[Page]:
    """The report in a browser that is never idle; its problems are in the attribute ``problems``."""
    with new_context(viewport={"width": 1400, "height": 700}, offline=True) as context:
        opened = context.new_page()
        opened.problems = []
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))
        opened.on("console", lambda said: opened.problems.append(said.text) if said.type == "error" else None)
        opened.add_init_script(
            "window.requestIdleCallback = (call) => { (window.postponed ??= []).push(call); };"
        )
        opened.add_init_script(REMEMBER_WHAT_IS_PRINTED)  # before the page puts all back
        opened.goto(path.as_uri())
        opened.wait_for_function("() => !document.getElementById('picture-trace').matches('.undrawn')")
        yield opened


class TestInTheBrowser:
    pytestmark = needs_browser

    def test_a_picture_below_the_window_is_drawn_when_it_is_scrolled_to(self, page: Page) -> None:
        left = page.evaluate(UNDRAWN)
        assert "picture-histogram" in left
        assert not {"picture-trace", "picture-rate"} & set(left)
        page.evaluate("document.getElementById('picture-histogram').scrollIntoView()")
        page.wait_for_function("() => !document.getElementById('picture-histogram').matches('.undrawn')")
        assert page.problems == []

    def test_printing_draws_what_is_left(self, page: Page) -> None:
        assert page.evaluate(UNDRAWN) != []
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.wait_for_function("() => document.documentElement.dataset.drawing === 'done'")
        assert page.evaluate(LEFT) == 0
        assert page.problems == []

    def test_paper_has_all_pictures_at_its_width_in_light_colours(self, page: Page) -> None:
        page.emulate_media(color_scheme="dark")
        unfolded = page.evaluate(OPEN)
        paper = page.pdf(format="A4", margin={"left": "1cm", "right": "1cm"})
        # 300 dots of an inch for 96 pixels: a part wider than the paper would shrink all.
        assert b"3.125 0 0 3.125 " in streams(paper)
        printed = page.evaluate("window.printed")
        assert {"picture-trace", "picture-histogram", "picture-ordinals", "picture-ranks"} <= {
            place for place, *_ in printed
        }
        for place, width, pixels, dark in printed:
            assert 600 < width <= 690, place
            assert 2.5 * width < pixels, place
            assert dark < 0.2, place
        # Numbers and their units are whole, and a legend that has one row in a wide window has more on paper.
        assert page.evaluate("window.broken") == []
        assert page.evaluate("window.printedColumns") == 4
        page.wait_for_function("() => columnsOfProgress() === 8")
        page.wait_for_function("() => !document.documentElement.classList.contains('printing')")
        assert page.evaluate(OPEN) == unfolded
        assert page.evaluate("document.getElementById('picture-trace').clientWidth") > 1200
        assert page.problems == []

    def test_an_idle_browser_draws_what_is_left(self, page: Page) -> None:
        assert page.evaluate(UNDRAWN) != []
        page.wait_for_function("() => window.postponed?.length")
        page.evaluate(
            "window.requestIdleCallback = (call) => setTimeout(call); postponed.forEach((call) => call())"
        )
        page.wait_for_function(
            "() => { window.postponed.splice(0).forEach((call) => call());"
            " return document.documentElement.dataset.drawing === 'done'; }"
        )
        assert page.evaluate(LEFT) == 0
        folded = page.evaluate(UNDRAWN)
        assert {"picture-ordinals", "picture-ranks"} <= set(folded)

    def test_a_folded_picture_is_drawn_when_its_part_is_opened(self, page: Page) -> None:
        page.click("#ordinals summary")
        page.wait_for_selector("#picture-ordinals:not(.undrawn) canvas", state="attached")
        assert "picture-ranks" in page.evaluate(UNDRAWN)
        assert page.locator("#picture-ordinals").bounding_box()["height"] > 300
        assert page.problems == []

    def test_a_link_to_a_folded_part_opens_it(self, page: Page) -> None:
        page.evaluate("location.hash = 'ranks'")
        page.wait_for_selector("#picture-ranks:not(.undrawn)")
        assert page.evaluate("document.querySelector('#ranks details').open")


def test_text_in_a_picture_cannot_end_its_script_element() -> None:
    script, divisions = embed_pictures({"one": figure(title="</script><script>alert(1)")}, linked=())
    assert script.count("</script>") == 2  # the pictures, and the program that draws them
    assert "<script>" not in divisions["one"]
    assert 'id="picture-one"' in divisions["one"]


def test_linked_pictures_are_drawn_together() -> None:
    first, other, alone = figure(), figure(), figure()
    other.x_range = first.x_range
    script, _ = embed_pictures({"first": first, "alone": alone, "other": other}, linked=("first", "other"))
    places = [list(group["places"].values()) for group in pictures_in(script)]
    assert places == [["picture-first", "picture-other"], ["picture-alone"]]
    assert places == json.loads(html.unescape(re.search("data-places='(.*?)'", script)[1]))


def test_pictures_that_share_a_range_must_be_linked() -> None:
    first, other = figure(), figure()
    other.x_range = first.x_range
    with pytest.raises(RuntimeError, match="share a model"):
        embed_pictures({"first": first, "other": other}, linked=())
