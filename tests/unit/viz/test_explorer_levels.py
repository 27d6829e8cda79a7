"""What a window of a large run shows at once: whole cells with the times of the calls, to the last ns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.document import Document
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.model.units import SCREEN_CELLS
from ensembles.run.collect import collect
from ensembles.run.rasters import kept_levels, whole_raster
from ensembles.summaries.pyramid import Pyramid
from ensembles.summaries.raster import CLASSES, Raster, class_of_calls
from ensembles.viz.common.single_calls import MOST_CALLS, Window
from ensembles.viz.explorer.page import add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.sums import ROWS, CellTimes, Levels
from ensembles.viz.explorer.view import View

TASKS, EVENTS = 6, 9_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    synthetic_run(folder / "run", TASKS, EVENTS, seed=5, phases=4)
    collect(str(folder / "run"), str(folder / "run.h5"))
    return folder / "run.h5"


def times_in(events, low_ns: int, high_ns: int, first: int, last: int) -> np.ndarray:
    """Add up the time within a span of times and ranks: by class."""
    mine = (events.rank >= first) & (events.rank <= last) & (events.depth == 0)
    inside = np.minimum(events.end, high_ns) - np.maximum(events.start, low_ns)
    classes = class_of_calls(events.calls)[events.call]
    return np.bincount(classes[mine], np.maximum(inside[mine], 0), len(CLASSES))


def windows(extent_ns: tuple[int, int], tasks: int) -> list[Window]:
    low, high = extent_ns
    span = high - low
    return [
        Window(low + span // 3, low + span // 3 + span // divisor, first, min(first + more, tasks - 1))
        for divisor in (2, 10, 300, 10_000)
        for first, more in ((0, tasks), (2, 1), (3, 0))
    ] + [Window(low - span, high + span, 0, tasks - 1)]


def test_windows_have_the_times_of_the_calls_in_whole_cells(trace: Path) -> None:
    run = en.open(trace)
    whole = whole_raster(run, ROWS, 2 * SCREEN_CELLS)
    levels = Levels.of_run(run, whole)
    assert 0 < levels.bytes < sum(level.time_ns.nbytes for level in kept_levels(run))
    for window in windows(whole.extent_ns, TASKS):
        raster, first = levels.window(window)
        edges = raster.edges_ns
        assert first <= window.first <= window.last < first + raster.tasks
        assert len(edges) <= SCREEN_CELLS + 1
        assert edges[0] <= max(window.low_ns, whole.extent_ns[0])
        assert edges[-1] >= min(window.high_ns, whole.extent_ns[1])
        expected = times_in(run.events, int(edges[0]), int(edges[-1]), first, first + raster.tasks - 1)
        np.testing.assert_allclose(raster.time_ns.sum(axis=(1, 2)), expected, rtol=1e-9, atol=len(run.events))


def test_windows_of_several_tasks_in_a_row_have_the_times_of_their_level() -> None:
    rng = np.random.default_rng(3)
    tasks, count = 3_000, 40_000
    columns = {name: np.zeros(count, int) for name in en.Events.empty().columns}
    columns["rank"] = np.sort(rng.integers(0, tasks, count))
    columns["start"] = rng.integers(10**6, 10**9, count)
    columns["duration"] = rng.integers(0, 10**6, count)
    events = en.Events(columns, (en.Call("pwrite", "posix", "write"),), [""])
    finest = Pyramid(tasks)
    finest.add(events)
    coarse = finest.coarser()
    levels = Levels([finest, coarse])
    for window, level in ((Window(0, 10**8, 100, 250), finest), (Window(0, 10**9, 0, tasks - 1), coarse)):
        raster, first = levels.window(window)
        each = level.ranks_per_row
        assert (raster.ranks_per_row, first) == (each, window.first // each * each)
        low, high = int(raster.edges_ns[0]), int(raster.edges_ns[-1])
        rows = slice(window.first // each, window.last // each + 1)
        cells = np.flatnonzero((level.edges_ns[:-1] >= low) & (level.edges_ns[1:] <= high))
        of_level = level.time_ns[:, rows][:, :, cells]
        np.testing.assert_array_equal(raster.time_ns.sum(axis=2), of_level.sum(axis=2))
        # Of a picture, whose task 0 may be another rank.
        inner = Window(
            low + (high - low) // 4, low + (high - low) // 2, first + 2 * each, first + 5 * each - 1
        )
        part, start = CellTimes.of_picture(raster, first).window(inner)
        assert start == first + 2 * each
        same = np.isin(raster.edges_ns[:-1], part.edges_ns[:-1])
        np.testing.assert_array_equal(part.time_ns, raster.time_ns[:, 2:5, same])
    nothing, _ = levels.window(Window(10**10, 2 * 10**10, 0, tasks - 1))
    assert nothing.present() == []


def test_large_times_are_held_and_joined_to_the_last_ns() -> None:
    raster = Raster(2, 2, 8)
    time_ns = np.zeros((len(CLASSES), 2, 8), np.int64)
    time_ns[0] = (1 << 40) + np.arange(16).reshape(2, 8)
    raster.put_cells(time_ns, 3, 41)
    found, _ = CellTimes.of(raster).window(Window(0, 1 << 60, 0, 1), cells=4)
    assert int(found.time_ns.sum()) == int(time_ns.sum())
    assert found.time_ns.shape[2] <= 4
    with pytest.raises(ValueError, match="cannot take"):
        raster.put_cells(np.zeros((len(CLASSES), 2, 9), np.int64), 0, 1)


def test_a_window_within_one_that_was_read_needs_no_reading(trace: Path) -> None:
    run = en.open(trace)
    shown = Shown(run, most_events=0)
    start = run.events.start
    low, high = (int(each) for each in np.quantile(start, [0.5, 0.51]))
    calls = shown.calls(View())
    outer = Window(low, high, 1, 4)
    assert 0 < len(calls.window(outer).events) <= MOST_CALLS
    shown._reader._background.ask = lambda key, steps: pytest.fail("read again")
    inner = Window(low + (high - low) // 4, low + (high - low) // 2, 2, 3)
    events = run.events
    mine = (events.rank >= 2) & (events.rank <= 3) & (events.start < inner.high_ns)
    mine &= events.start + np.maximum(events.duration, 1) > inner.low_ns
    np.testing.assert_array_equal(calls.window(inner).events.start, events.start[mine])
    raster, first = calls.window(inner).drawn
    assert first == 2
    np.testing.assert_array_equal(
        raster.time_ns.sum(axis=(1, 2)), times_in(events, inner.low_ns, inner.high_ns, 2, 3)
    )


def test_the_diagram_says_in_what_cells_it_is_drawn_until_the_calls_have_been_read(trace: Path) -> None:
    shown = Shown(en.open(trace), most_events=0, in_background=True)
    document = Document()
    explorer = add_explorer(document, [shown], {})
    shown.wait()
    explorer.renew()
    ask, waiting = shown._reader._background.ask, {}
    shown._reader._background.ask = lambda key, steps: waiting.setdefault(key, steps)
    low, high = (each * 1e-9 for each in shown.calls(View()).extent_ns)
    view = View(zoom_s=(round(low + (high - low) * 0.4, 9), round(low + (high - low) * 0.42, 9)))
    explorer.look(view)
    title = explorer._panels[0].diagram.figure.title
    assert "; in cells of " in title.text
    assert "ranks: calls are being read" in title.text
    shown._reader._background.ask = ask
    for key, steps in waiting.items():
        ask(key, steps)
    shown.wait()
    explorer.renew()
    assert "in cells of" not in title.text
