"""Fields for marks and window: they show what a rectangle marks, and take what link and commands take."""

from __future__ import annotations

from pathlib import Path

import pytest
from bokeh.document import Document
from bokeh.events import ButtonClick, SelectionGeometry
from explorer_page import TASKS
from made_runs import run_of

from ensembles.viz.explorer.page import Explorer, add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View

NAMES = (
    *("marked-time", "marked-ranks", "marked-durations", "marked-rates", "marked-offsets"),
    *("shown-time", "shown-ranks"),
)


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Document, Explorer]:
    document = Document()
    explorer = add_explorer(document, [Shown(run_of(tmp_path / "run", TASKS))], {})
    return document, explorer


def shown(document: Document) -> dict[str, str]:
    values = {name: document.select_one({"name": f"field_{name}"}).value for name in NAMES}
    return {name: value for name, value in values.items() if value}


def type_in(document: Document, name: str, text: str) -> str:
    """Type into a field, and return what is said of it."""
    document.select_one({"name": f"field_{name}"}).value = text
    about = document.select_one({"name": "about_fields"})
    return about.text if about.visible else ""


def test_fields_show_what_a_rectangle_marks_and_change_it(opened) -> None:
    document, explorer = opened
    trace = document.select_one({"name": "explorer_trace"})
    box = {"type": "rect", "x0": 0.2, "x1": 0.6, "y0": 1.4, "y1": -0.4}
    trace._trigger_event(SelectionGeometry(trace, box, final=True))
    assert shown(document) == {"marked-time": "0.2..0.6", "marked-ranks": "0-1"}
    # A drag tells no more digits than its pixels: what is marked is what the fields and the command have.
    box |= {"x0": 0.2000123456, "x1": 0.6000012345}
    trace._trigger_event(SelectionGeometry(trace, box, final=True))
    assert shown(document) == {"marked-time": "0.2..0.6", "marked-ranks": "0-1"}
    assert explorer.view.command("run").endswith("--rank 0-1 --time 0.2..0.6 --format csv")
    type_in(document, "marked-ranks", "0")
    assert explorer.view == View(time_s=(0.2, 0.6), ranks=(0, 0))
    assert "1 call is marked" in document.select_one({"name": "found"}).text
    type_in(document, "marked-time", "")
    assert explorer.view == View(ranks=(0, 0))
    assert shown(document) == {"marked-ranks": "0"}


RANGES = (
    ("marked-time", "0.1..0.6", View(time_s=(0.1, 0.6))),
    ("marked-time", "0.5..", View(time_s=(0.5, 1.000000001))),
    ("marked-ranks", "0..1", View(ranks=(0, 1))),
    ("marked-ranks", "1-63", View(ranks=(1, 1))),
    ("marked-durations", "15ms..0.1", View(durations_s=(0.015, 0.1))),
    ("marked-durations", "0.015..", View(durations_s=(0.015, 0.500000001))),
    ("marked-rates", "1kB/s..2kB/s", View(rates=(1000, 2000))),
    ("marked-offsets", "1KiB..1MiB", View(offsets=(1 << 10, 1 << 20))),
    ("shown-time", "0.2..0.3", View(zoom_s=(0.2, 0.3))),
    ("shown-ranks", "1", View(zoom_ranks=(0.5, 1.5))),
)


def test_a_range_is_written_as_in_the_link_or_a_command(opened) -> None:
    document, explorer = opened
    again = add_explorer(Document(), explorer.runs, {})
    for name, text, view in RANGES:
        assert type_in(document, name, text) == ""
        assert explorer.view == view, (name, text)
        # What is shown now is read as the same view.
        type_in(again.layout, name, shown(document)[name])
        assert again.view == view, (name, text)
        for each in (explorer, again):
            each.look(View())


def test_a_window_that_was_typed_is_in_view(opened) -> None:
    document, explorer = opened
    type_in(document, "shown-time", "0.2..0.3")
    trace = document.select_one({"name": "explorer_trace"})
    assert (trace.x_range.start, trace.x_range.end) == (0.2, 0.3)
    # A zoom has the digits of the axis, and its field those that can be seen.
    explorer.look(View(zoom_s=(0.629569141, 0.881000799)))
    assert shown(document) == {"shown-time": "0.6296..0.881"}
    assert explorer.view.zoom_s == (0.629569141, 0.881000799)
    button = document.select_one({"name": "mark_view"})
    button._trigger_event(ButtonClick(button))
    assert explorer.view.time_s == (0.6296, 0.881)
    histogram = document.select_one({"name": "explorer_histogram"})
    box = {"type": "rect", "x0": 0.018900001, "x1": 0.2031234, "y0": 1, "y1": 9}
    histogram._trigger_event(SelectionGeometry(histogram, box, final=True))
    assert explorer.view.durations_s == (0.0189, 0.2031)


REFUSED = (
    ("marked-time", "5", "write it like 10..20"),
    ("marked-durations", "<b>..1", "&lt;b&gt;"),
    ("marked-ranks", "7", "the run has ranks 0 to 1"),
    ("marked-offsets", "2MiB..1MiB", "write the smaller offset first"),
)


def test_what_is_no_range_is_refused_beside_the_fields(opened) -> None:
    document, explorer = opened
    for name, text, why in REFUSED:
        assert why in type_in(document, name, text)
        assert explorer.view == View()
        assert shown(document) == {name: text}  # to be mended
        assert type_in(document, name, "") == ""


def test_a_mark_outside_of_the_filters_is_refused_beside_the_fields(opened) -> None:
    document, explorer = opened
    explorer.look(View(filters={"rank": "0"}))
    assert "at the top of the page" in type_in(document, "marked-ranks", "1")
    assert "outside" in document.select_one({"name": "message"}).text
    assert not explorer.view.is_marked


def test_what_is_in_view_can_be_marked(opened) -> None:
    document, explorer = opened
    button = document.select_one({"name": "mark_view"})
    button._trigger_event(ButtonClick(button))
    assert "the whole run is in view" in document.select_one({"name": "about_fields"}).text
    type_in(document, "shown-time", "0.2..0.6")
    type_in(document, "shown-ranks", "0")
    button._trigger_event(ButtonClick(button))
    assert (explorer.view.time_s, explorer.view.ranks) == ((0.2, 0.6), (0, 0))


def test_a_mark_that_was_narrowed_says_so(opened) -> None:
    document, explorer = opened
    explorer.look(View().marking(marks={"phase": "1"}, what="phase 1"))
    type_in(document, "marked-time", "0.2..")
    type_in(document, "marked-ranks", "0")
    assert "Marked: phase 1, with ranges that were typed." in document.select_one({"name": "found"}).text
    explorer.look(View().marking(ranks=(1, 1), what="rank 1"))
    type_in(document, "marked-ranks", "0-1")
    assert "Marked:" not in document.select_one({"name": "found"}).text
