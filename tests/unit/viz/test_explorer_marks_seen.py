"""Every marked call is seen in the trace diagram, however short it is and however many ranks there are."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from bokeh.document import Document
from made_darshan_logs import traced_log
from made_runs import run_of

import ensembles
from ensembles.viz.explorer.page import Explorer, add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View

MIB = 1 << 20
FRAMES = [(560, 340), (1256, 374)]
"""Pixels of the trace diagram in a narrow and in a wide page, of runs of many tasks."""


def explore(run, query: str = "") -> tuple[Document, Explorer]:
    document = Document()
    return document, add_explorer(document, [Shown(run)], dict(parse_qsl(query)))


def seen(document: Document, width: int, height: int, number: int = 1) -> np.ndarray:
    """What a canvas of so many pixels draws of an image: what is in the middle of each of its pixels."""
    fig = document.select_one({"name": "explorer_trace"})
    images = [each for each in fig.renderers if "image" in each.data_source.data]
    data = images[number].data_source.data
    shares = data["image"][0].sum(axis=2)
    times = np.linspace(fig.x_range.start, fig.x_range.end, 2 * width + 1)[1::2]
    low, high = sorted((fig.y_range.start, fig.y_range.end))
    places = np.linspace(low, high, 2 * height + 1)[1::2]
    column = np.floor((times - data["x"][0]) / data["dw"][0] * shares.shape[1]).astype(int)
    row = np.floor((places - data["y"][0]) / data["dh"][0] * shares.shape[0]).astype(int)
    drawn = np.zeros((height, width), int)
    rows, columns = (
        np.flatnonzero((index >= 0) & (index < size))
        for index, size in zip((row, column), shares.shape, strict=True)
    )
    drawn[np.ix_(rows, columns)] = shares[np.ix_(row[rows], column[columns])]
    return drawn


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four ranks whose second writes, of 60 us, are close together in a run of 1 s."""
    tasks = [
        [("pwrite", 0.0, 0.01, MIB), ("pwrite", 0.4 + 0.0011 * rank, 60e-6, MIB), ("pwrite", 0.9, 0.1, MIB)]
        for rank in range(4)
    ]
    return run_of(tmp_path_factory.mktemp("seen") / "run", tasks)


@pytest.mark.parametrize("frame", FRAMES)
def test_short_calls_close_to_each_other_are_seen_when_they_are_marked(run, frame) -> None:
    document, explorer = explore(run, "marked-op=write&marked-ordinal=2")
    assert explorer._panels[0].of_marked.count == 4
    drawn = seen(document, *frame)
    rank = (np.arange(frame[1]) * 4) // frame[1]
    for each in range(4):
        assert drawn[rank == each].any()


@pytest.mark.parametrize("zoom", ["", "&shown-time=0.4..0.95"])
def test_evenly_spaced_short_calls_have_no_gaps_that_are_not_there(tmp_path: Path, zoom: str) -> None:
    calls = [("pwrite", 0.5 + 180e-6 * number, 4e-6, 4096) for number in range(1300)]
    run = run_of(tmp_path / "even", [[("pwrite", 0.0, 0.01, MIB), *calls, ("pwrite", 0.9, 0.1, MIB)]] * 2)
    document, _ = explore(run, f"marked-ranks=1..1&marked-time=0.4..0.8{zoom}")
    for frame in FRAMES:
        drawn = np.flatnonzero(seen(document, *frame).any(axis=0))
        assert np.diff(drawn).max() == 1
        start, end = (0.4, 0.95) if zoom else (-0.01, 1.01)
        assert len(drawn) == pytest.approx(0.234 / (end - start) * frame[0], abs=4)


def test_a_call_of_one_rank_of_many_is_seen(tmp_path: Path) -> None:
    tasks = 1_000
    run = run_of(tmp_path / "many", [[("pwrite", 0.1, 0.5, MIB), ("pwrite", 0.7, 1e-5, 10)]] * tasks)
    for rank in (3, 350, 617):
        document, _ = explore(run, f"marked-ranks={rank}..{rank}&marked-time=0.65..0.8")
        for frame in FRAMES:
            drawn = np.flatnonzero(seen(document, *frame).any(axis=1)) * tasks / frame[1]
            assert len(drawn)
            assert abs(drawn - rank).max() < 3 * tasks / frame[1]


def test_a_mark_is_stronger_than_what_is_not_marked(run) -> None:
    diagram = explore(run)[1]._panels[0].diagram
    diagram.show(Shown(run).marked_calls(View(ranks=(0, 0))), View(ranks=(0, 0)))
    pale, marked = (
        [int(colour[-2:], 16) for colour in image.glyph.color_mapper.alpha_mapper.palette]
        for image in diagram._images
    )
    assert pale[0] == marked[0] == 0
    assert min(marked[1:]) > 2 * max(pale)
    assert marked == sorted(marked)


def test_calls_without_duration_are_seen(tmp_path: Path) -> None:
    run = run_of(tmp_path / "short", [[("pwrite", 0.1, 0.5, MIB), ("pwrite", 0.7, 0.0, 10)]] * 2)
    document, _ = explore(run, "marked-time=0.65..0.8")
    assert seen(document, *FRAMES[0]).any(axis=1).all()


@pytest.mark.parametrize("query", ["layer=posix", "marked-layer=posix"])
def test_calls_inside_of_others_are_seen_when_the_others_are_left_out(tmp_path: Path, query: str) -> None:
    """Rank 0 of the log writes only inside calls of MPI-IO."""
    run = ensembles.open(traced_log().write(tmp_path / "a.darshan"))
    document, explorer = explore(run, query)
    assert explorer._panels[0].of_marked.held.events.depth.max() > 0
    # The title says so where inner calls are left out.
    assert explorer._panels[0].calls.hides_inner == query.startswith("marked")
    drawn = seen(document, *FRAMES[0], number=int(query.startswith("marked")))
    assert drawn[: FRAMES[0][1] // 2].any()
