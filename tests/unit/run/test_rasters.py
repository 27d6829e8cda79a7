"""Rasters of a window: from the calls in it, or from a level of the pyramid; what is read for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
from arrays_of import arrays_of
from bokeh.models import ColumnDataSource
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles import viz
from ensembles.api.run import Run
from ensembles.model.events import COLUMNS, Events
from ensembles.passes.executors import ProcessExecutor
from ensembles.run import rasters
from ensembles.run.collect import collect
from ensembles.run.rasters import drawn_raster, expected_calls, kept_raster
from ensembles.summaries.pyramid import LEVELS, Pyramid, pyramid_request
from ensembles.summaries.raster import Raster, raster_request, share_images
from ensembles.summaries.rate import RateCurve
from ensembles.viz.common import task_order
from ensembles.viz.common.data_for import data_for
from ensembles.viz.common.single_calls import MOST_CALLS, Window
from ensembles.writers.tracefile import events as written
from ensembles.writers.tracefile import tracefile as kept_in_file

TASKS, EVENTS, ROWS = 6, 40_000, 1024


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace.h5 with its pyramid, in chunks of 1024."""
    folder = tmp_path_factory.mktemp("rasters")
    synthetic_run(folder / "run", TASKS, EVENTS, seed=2, phases=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written, "CHUNK_ROWS", ROWS)
        collect(str(folder / "run"), str(folder / "run.h5"))
    return folder / "run.h5"


@pytest.fixture
def read_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that are read of trace.h5."""
    seen: list[int] = []
    plain = en.readers.tracefile.chunks.TraceColumns.read

    def counted(self, numbers, *args):
        seen.extend(high - low for low, high in self._index.spans_of(numbers))
        return plain(self, numbers, *args)

    monkeypatch.setattr(en.readers.tracefile.chunks.TraceColumns, "read", counted)
    return seen


def by_hand(events: en.Events, low: int, high: int, raster: Raster) -> np.ndarray:
    """Time of outermost calls in each cell of a raster, all classes together: exact, call by call."""
    edges, found = raster.edges_ns, np.zeros((raster.rows, len(raster.edges_ns) - 1), np.int64)
    outer = events[events.depth == 0]
    start, end = np.maximum(outer.start, low), np.minimum(outer.start + outer.duration, high)
    for row in range(raster.rows):
        mine = (outer.rank // raster.ranks_per_row == row) & (end > start)
        for cell, (left, right) in enumerate(pairwise(edges.tolist())):
            inside = np.minimum(end[mine], right) - np.maximum(start[mine], left)
            found[row, cell] = inside[inside > 0].sum()
    return found


def raster_of(data: Run | Events, low: int, high: int) -> Raster:
    """What the trace diagram shows of a window of all tasks."""
    rows = task_order.rows_of_tasks(data, "rank")
    return task_order.window_of(data, Window(low, high, 0, TASKS - 1), rows)[0]


def test_a_window_shows_the_parts_of_calls_in_it(trace: Path, read_rows: list[int]) -> None:
    events = en.open(trace).events
    read_rows.clear()
    low, high = (int(time) for time in np.quantile(events.start, [0.4, 0.402]))
    raster = raster_of(en.open(trace), low, high)
    assert 0 < sum(read_rows) <= 4 * ROWS * TASKS < len(events) // 4
    np.testing.assert_array_equal(raster.time_ns.sum(axis=0), by_hand(events, low, high, raster))
    assert low <= raster.extent_ns[0] < raster.extent_ns[1] <= high
    same = raster_of(events, low, high)
    np.testing.assert_array_equal(same.time_ns, raster.time_ns)


def test_a_wide_window_reads_no_event(trace: Path, read_rows: list[int]) -> None:
    run = en.open(trace)
    events = run.events
    read_rows.clear()
    low, high = (int(time) for time in np.quantile(events.start, [0.2, 0.6]))
    raster = raster_of(run, low, high)
    assert not read_rows
    cells = raster.time_ns.shape[2]
    assert rasters.LEAST_CELLS <= cells <= 8 * rasters.LEAST_CELLS
    edges = raster.edges_ns
    assert edges[0] <= low < high <= edges[-1]
    np.testing.assert_array_equal(
        raster.time_ns.sum(axis=0), by_hand(events, int(edges[0]), int(edges[-1]), raster)
    )


def test_the_first_pictures_of_a_collected_run_read_no_event(trace: Path, read_rows: list[int]) -> None:
    run = en.open(trace)
    raster, rate = data_for(run, Raster), data_for(run, RateCurve)
    viz.trace_diagram(run)
    viz.rate(run)
    assert not read_rows
    for found, made in ((raster, Raster(TASKS)), (rate, RateCurve())):
        made.add(run.events)
        for name, values in arrays_of(made).items():
            np.testing.assert_array_equal(arrays_of(found)[name], values)


def test_levels_in_the_file_are_those_of_the_events(trace: Path) -> None:
    run, kept = en.open(trace), 0
    for number in range(LEVELS):
        found, made = Pyramid(TASKS, number), Pyramid(TASKS, number)
        if not run.reading.kept.find(pyramid_request(number), found):
            continue
        made.add(run.events)
        for name, values in arrays_of(made).items():
            np.testing.assert_array_equal(arrays_of(found)[name], values)
        kept += 1
    assert kept >= 2
    with h5py.File(trace) as file:
        size = sum(column.shape[0] for column in file["kept"].values())
    assert size < 10 << 20


def test_worker_processes_give_the_same_sums(trace: Path) -> None:
    expected = en.open(trace)
    run = en.open(trace, ProcessExecutor(2))
    run.reading.kept.find = lambda *_: False  # type: ignore[method-assign] # the workers make the passes
    low, high = (int(time) for time in np.quantile(expected.events.start, [0.4, 0.402]))
    pairs = [
        (run.summarize(pyramid_request().make), expected.summarize(pyramid_request().make)),
        (raster_of(run, low, high), raster_of(expected, low, high)),
    ]
    for found, known in pairs:
        for name, values in arrays_of(known).items():
            np.testing.assert_array_equal(arrays_of(found)[name], values)


def damaged(file: h5py.File) -> None:
    for column in file["kept"].values():
        data = column[:]
        data[len(data) // 2] ^= 1
        column[:] = data


def stale(file: h5py.File) -> None:
    """The durations have changed since the pyramid was made."""
    file["events/duration"][:] = file["events/duration"][:] // 2
    file["index/max_end"][:] = [
        (file["events/start"][low : low + ROWS] + file["events/duration"][low : low + ROWS]).max()
        for low in range(0, TASKS * EVENTS, ROWS)
    ]


@pytest.mark.parametrize("change", [damaged, stale])
def test_what_is_damaged_or_stale_is_not_believed(
    drawn_trace: Path, tmp_path: Path, change: Callable[[h5py.File], None]
) -> None:
    copy = tmp_path / "copy.h5"
    shutil.copy(drawn_trace, copy)
    with h5py.File(copy, "r+", libver=("v110", "v110")) as file:
        change(file)
    run = en.open(copy)
    assert kept_raster(run) is None
    assert drawn_raster(run) is None
    assert not run.reading.kept.find(raster_request(), Raster(TASKS))
    assert not run.reading.kept.find(pyramid_request(LEVELS - 1), Pyramid(TASKS, LEVELS - 1))
    made = Raster(TASKS)
    made.add(run.events)
    np.testing.assert_array_equal(data_for(run, Raster).time_ns, made.time_ns)


@pytest.fixture(scope="module")
def drawn_trace(trace: Path) -> Path:
    """A trace.h5 with room for what a diagram shows: the part of a larger file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written, "CHUNK_ROWS", ROWS)
        patch.setattr(kept_in_file, "_LEAST_PYRAMID_BYTES", 1 << 22)
        collect(str(trace.with_suffix("")), str(trace.with_name("drawn.h5")))
    return trace.with_name("drawn.h5")


def test_what_a_diagram_shows_is_kept(drawn_trace: Path) -> None:
    run = en.open(drawn_trace)
    drawn, made = drawn_raster(run), Raster(TASKS)
    made.add(run.events)
    assert drawn is not None
    assert (drawn.tasks, drawn.ranks_per_row, drawn.extent_ns) == (TASKS, 1, made.extent_ns)
    assert drawn.several_threads == made.several_threads
    assert drawn.present() == made.present()
    np.testing.assert_array_equal(drawn.edges_ns, made.edges_ns)
    for name in made.present():
        np.testing.assert_array_equal(drawn.tasks_inside(name), made.tasks_inside(name))
    for found, known in zip(drawn.images, share_images(made, made.present()), strict=True):
        assert (found.ranks_per_row, found.cell_ns) == (known.ranks_per_row, known.cell_ns)
        np.testing.assert_array_equal(found.shares, known.shares)


def test_a_diagram_of_a_kept_drawing_is_that_of_the_events(drawn_trace: Path) -> None:
    run = en.open(drawn_trace)
    pictures = [viz.trace_diagram(run), viz.trace_diagram(run.events)]
    sources = [
        {
            (*sorted(source.data), str(source.data.get("dw"))): source.data
            for source in picture.select({"type": ColumnDataSource})
            if {"image", "n_write"} & source.data.keys()
        }
        for picture in pictures
    ]
    assert sources[0].keys() == sources[1].keys()
    assert len(sources[0]) == 3  # a fine and a coarse image, and the curve
    for names, known in sources[1].items():
        for name, column in known.items():
            np.testing.assert_array_equal(sources[0][names][name], column, err_msg=name)


def test_a_window_that_ends_before_it_begins_is_refused(trace: Path) -> None:
    for window in ((2.0, 1.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="window"):
            viz.trace_diagram(en.open(trace), window_s=window)
    with pytest.raises(TypeError, match="a run or events"):
        viz.trace_diagram(Raster(2), window_s=(0.0, 1.0))


def test_a_window_without_calls_is_empty(trace: Path) -> None:
    run: Run = en.open(trace)
    raster = raster_of(run, 1 << 55, (1 << 55) + 10)
    assert raster.extent_ns == (0, 0)
    viz.trace_diagram(run, window_s=(1e7, 2e7))


def test_calls_of_a_window_are_estimated_from_whole_cells(trace: Path) -> None:
    run, events = en.open(trace), en.open(trace).events
    outer = events.start[events.depth == 0]
    end_ns = 2 * int(events.end.max())
    assert expected_calls(run, 0, end_ns) == len(outer)
    level = Pyramid(run.tasks, 2)
    assert run.reading.kept.find(pyramid_request(2), level)
    low, middle, high = (int(level.edges_ns[len(level.edges_ns) * part // 8]) for part in (2, 3, 4))
    assert expected_calls(run, low, high) == ((outer >= low) & (outer < high)).sum()
    half = expected_calls(run, low, (low + middle) // 2) + expected_calls(run, (low + middle) // 2, middle)
    assert half == pytest.approx(((outer >= low) & (outer < middle)).sum())
    assert expected_calls(en.open(trace.parent / "run"), low, high) is None


@pytest.mark.parametrize("likely_few", [0, np.inf])
@pytest.mark.parametrize("share", [0.0003, 0.02])
def test_a_diagram_of_a_window_has_its_calls_whatever_was_expected(
    trace: Path, monkeypatch: pytest.MonkeyPatch, likely_few: float, share: float
) -> None:
    monkeypatch.setattr(task_order, "_LIKELY_FEW", likely_few)
    run, events = en.open(trace), en.open(trace).events
    low, high = (int(time) for time in np.quantile(events.start, [0.4, 0.4 + share]))
    window = Window(low, high, 1, 4)
    raster, calls = task_order.window_of(run, window, task_order.rows_of_tasks(run, "rank"))
    inside = (events.start < high) & (events.start + np.maximum(events.duration, 1) > low)
    inside &= (events.rank >= 1) & (events.rank <= 4)
    assert (calls is None) == (inside.sum() > MOST_CALLS) == (share > 0.01)
    if calls is not None:
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(calls, name), getattr(events, name)[inside])
    outer = inside & (events.depth == 0)
    spent = np.minimum(events.end, high)[outer] - np.maximum(events.start, low)[outer]
    assert int(raster.time_ns.sum()) == int(spent.sum())
