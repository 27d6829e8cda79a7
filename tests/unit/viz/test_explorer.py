"""The explorer marks exactly the calls that its command and its Python select; a link restores the view."""

from __future__ import annotations

import html
import json
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.events import ButtonClick, SelectionGeometry
from made_runs import run_of

import ensembles
from ensembles.cli.main import main
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.viz.explorer.page import Explorer, add_explorer
from ensembles.viz.explorer.shown import Shown, by_rank, durations_by_class, slowest_calls
from ensembles.viz.explorer.view import View

TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
    [("open", 0.1, 0.02, 0), ("pwrite", 0.3, 0.02, 1 << 20)],
]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(run_of(tmp_path / "run", TASKS))


def explore(shown: Shown, query: str = "") -> tuple[Document, Explorer]:
    document = Document()
    return document, add_explorer(document, [shown], dict(parse_qsl(query)))


def geometry(x0: float, x1: float, y0: float, y1: float) -> dict:
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1}


def same(one, other) -> bool:
    return all((getattr(one, name) == getattr(other, name)).all() for name in COLUMNS)


VIEWS = [
    View(),
    View(filters={"op": "write"}),
    View(time_s=(0.1, 0.6), ranks=(1, 2)),
    View(filters={"rank": "0-1", "time": "0.2.."}, time_s=(0.0, 0.6), ranks=(1, 2)),
    View(filters={"call": "open,pwrite"}, durations_s=(0.015, 0.1)),
    View(filters={"file": "/scratch/*", "size": "1MiB", "ordinal": "1"}, ranks=(0, 0)),
]


@pytest.mark.parametrize("view", VIEWS)
def test_python_of_a_view_selects_the_marked_calls(shown: Shown, view: View) -> None:
    names: dict = {}
    exec(view.python(shown.run.path), names)
    marked = shown.marked(view)
    assert len(marked)
    assert same(marked, names["calls"])


@pytest.mark.parametrize("view", [view for view in VIEWS if view.durations_s is None])
def test_command_of_a_view_lists_the_marked_calls(shown: Shown, view: View, capsys) -> None:
    import shlex

    words = shlex.split(view.command(shown.run.path))
    assert words[0] == "ensio"
    assert main([*words[1:], "--format", "jsonl"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    marked = shown.marked(view)
    assert [call["rank"] for call in listed] == marked.rank.tolist()
    assert len(listed) == len(marked) > 0


@pytest.mark.parametrize("view", VIEWS)
def test_a_link_restores_the_view(shown: Shown, view: View) -> None:
    assert View.from_query(dict(parse_qsl(view.query()))) == view
    document, explorer = explore(shown, view.query())
    assert explorer.view == view
    assert document.select_one({"name": "link"}).data["query"] == [view.query()]


def test_a_range_of_durations_marks_who_and_when(shown: Shown) -> None:
    document, explorer = explore(shown)
    histogram = document.select_one({"name": "explorer_histogram"})
    histogram._trigger_event(SelectionGeometry(histogram, geometry(0.4, 0.9, 1, 10), final=True))
    slowest = document.select_one({"name": "slowest"}).source.data
    assert slowest["rank"].tolist() == [0, 1]
    assert slowest["start_s"].tolist() == [0.25, 0.5]
    assert slowest["file"] == ["/scratch/data.out"] * 2
    assert document.select_one({"name": "by_rank"}).source.data["rank"].tolist() == [0, 1]
    assert explorer.view.durations_s == (0.4, 0.9)
    image = marked_image(document)
    assert image[0].any()
    assert image[1].any()
    assert not image[2].any()


def marked_image(document: Document) -> np.ndarray:
    """The image of the marked calls: the second of the trace diagram."""
    images = [
        each
        for each in document.select_one({"name": "explorer_trace"}).renderers
        if "image" in each.data_source.data
    ]
    return images[1].data_source.data["image"][0]


def test_a_rectangle_marks_its_ensemble(shown: Shown) -> None:
    document, explorer = explore(shown)
    trace = document.select_one({"name": "explorer_trace"})
    trace._trigger_event(SelectionGeometry(trace, geometry(0.2, 0.6, 0.4, -0.4), final=True))
    assert (explorer.view.time_s, explorer.view.ranks) == ((0.2, 0.6), (0, 0))
    filled = document.select_one({"name": "marked_write"}).data_source.data
    assert filled["top"].tolist() == [1]
    assert filled["left"][0] <= 0.5 <= filled["right"][0]
    assert "1 calls are marked" in document.select_one({"name": "found"}).text
    assert document.select_one({"name": "marked_read"}).data_source.data["top"] == []


def test_the_counts_behind_the_histogram_are_all_calls(shown: Shown) -> None:
    counted = durations_by_class(shown.events)
    assert {name: int(counts.sum()) for name, (_, counts) in counted.items()} == {
        "metadata": 3,
        "write": 3,
        "read": 1,
    }


def test_time_by_rank_is_the_sum_of_durations(shown: Shown) -> None:
    table = by_rank(shown.events)
    assert dict(zip(table["rank"].tolist(), table["calls"].tolist(), strict=True)) == {0: 3, 1: 2, 2: 2}
    assert np.allclose(table["time_s"], [0.53, 0.52, 0.04])
    assert slowest_calls(shown.events)["duration_s"][0] == pytest.approx(0.5)


def test_a_wrong_filter_is_reported_and_the_view_kept(shown: Shown) -> None:
    document, explorer = explore(shown, "op=write")
    explorer.look(View(filters={"op": "<b>wrte"}))
    message = document.select_one({"name": "message"}).text
    assert "&lt;b&gt;wrte" in message
    assert "<b>" not in message
    assert explorer.view == View(filters={"op": "write"})


@pytest.mark.parametrize(
    "query",
    ["run=7", "run=-1", "marked-time=5", "marked-time=5..x", "marked-durations=2..1", "op=" + 2000 * "x"],
)
def test_a_malformed_link_shows_the_whole_run_and_says_why(shown: Shown, query: str) -> None:
    with pytest.raises(EnsioError):
        View.from_query(dict(parse_qsl(query)))
    document, explorer = explore(shown, query)
    assert explorer.view == View()
    assert "role" in document.select_one({"name": "message"}).text


def test_a_rectangle_outside_of_the_filter_is_refused(shown: Shown) -> None:
    with pytest.raises(EnsioError, match="outside"):
        View(filters={"rank": "0"}, ranks=(1, 2)).selecting()


def test_a_large_run_is_shown_in_part_and_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path / "large", [[("pwrite", 0.1 * i, 0.05, 10) for i in range(8)]] * 10)
    part = Shown(run, most_events=20)
    assert len(part.events) < len(ensembles.open(run.path).events)
    assert "Part of the run: all" in part.notes[0]
    document, _ = explore(part)
    assert part.notes[0].split(":")[0] in document.select_one({"name": "message"}).text


def test_another_run_is_shown_with_the_same_filters(shown: Shown, tmp_path: Path) -> None:
    other = Shown(run_of(tmp_path / "other", TASKS[1:]))
    document = Document()
    explorer = add_explorer(document, [shown, other], {"op": "write", "marked-ranks": "0..0"})
    document.select_one({"name": "run"}).value = "1"
    assert explorer.view == View(run=1, filters={"op": "write"})
    assert "1 calls are shown, of 1 of 2 ranks" in document.select_one({"name": "found"}).text


def test_modes_of_marked_calls_are_those_of_the_ensemble(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    durations = rng.lognormal(-6, 0.2, 400)
    run = run_of(tmp_path / "modes", [[("pwrite", 0.02 * i, float(d), 10) for i, d in enumerate(durations)]])
    document, _ = explore(Shown(run), "marked-time=0..4.0")
    button = document.select_one({"name": "modes"})
    button._trigger_event(ButtonClick(button))
    expected = ensembles.open(run.path).select(time="0..4.0").ensemble().modes()
    text = document.select_one({"name": "of_modes"}).text
    assert str(expected) in html.unescape(text)
