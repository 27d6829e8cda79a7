"""The levels of a pyramid agree with the events and with each other, to the last bit."""

from __future__ import annotations

import numpy as np
from arrays_of import arrays_of
from generated_events import TASKS, events, parts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ensembles.model.events import OPS, Events
from ensembles.summaries.pyramid import LEVELS, MOST_CELLS, Pyramid, levels_above
from ensembles.summaries.raster import CLASSES, Raster


def of_class(whole: Events, name: str) -> np.ndarray:
    for_io = np.array([call.op == "wait" and not call.waits_for_tasks for call in whole.calls])[whole.call]
    if name == "io wait":
        return for_io
    return np.isin(whole.op, [OPS.index(op) for op in CLASSES[name]]) & ~for_io


def filled(whole: Events) -> Pyramid:
    pyramid = Pyramid(TASKS)
    pyramid.add(whole)
    return pyramid


@settings(max_examples=25, deadline=None)
@given(whole=events())
def test_counts_and_times_of_all_levels_are_those_of_the_outermost_calls(whole: Events) -> None:
    finest = filled(whole)
    levels = [finest, *levels_above(finest)]
    assert [level.level for level in levels] == list(range(LEVELS))
    for level in levels:
        for number, name in enumerate(CLASSES):
            for row in range(level.rows):
                mine = of_class(whole, name) & (whole.depth == 0) & (whole.rank // level.ranks_per_row == row)
                assert level.begun[number, row].sum() == np.count_nonzero(mine)
                assert level.time_ns[number, row].sum() == whole.duration[mine].sum()


@settings(max_examples=25, deadline=None)
@given(whole=events(least=1), level=st.integers(0, LEVELS - 1))
def test_a_call_is_counted_in_the_cell_in_which_it_begins(whole: Events, level: int) -> None:
    found = [filled(whole), *levels_above(filled(whole))][level]
    expected = np.zeros_like(found.begun)
    for number, name in enumerate(CLASSES):
        mine = np.flatnonzero(of_class(whole, name) & (whole.depth == 0))
        cell = np.searchsorted(found.edges_ns, whole.start[mine], side="right") - 1
        np.add.at(expected[number], (whole.rank[mine] // found.ranks_per_row, cell), 1)
    np.testing.assert_array_equal(found.begun, expected)


@settings(max_examples=25, deadline=None)
@given(whole=events(), seed=st.integers(0, 99))
def test_parts_merge_to_the_whole(whole: Events, seed: int) -> None:
    merged = Pyramid(TASKS)
    for part in parts_of(whole, np.random.default_rng(seed)):
        merged.merge(filled(part))
    for name, values in arrays_of(filled(whole)).items():
        np.testing.assert_array_equal(arrays_of(merged)[name], values)


@settings(max_examples=25, deadline=None)
@given(whole=events())
def test_the_raster_of_a_pyramid_is_that_of_the_events(whole: Events) -> None:
    raster = Raster(TASKS)
    raster.add(whole)
    found = filled(whole).raster()
    assert (found.extent_ns, found.several_threads) == (raster.extent_ns, raster.several_threads)
    for name, values in arrays_of(raster).items():
        np.testing.assert_array_equal(arrays_of(found)[name], values)


@settings(max_examples=25, deadline=None)
@given(whole=events(least=1), ends=st.tuples(st.integers(0, 100), st.integers(0, 100)))
def test_a_window_has_the_cells_of_its_level(whole: Events, ends: tuple[int, int]) -> None:
    pyramid = filled(whole)
    first, last = pyramid.extent_ns
    low, high = (first + (last - first) * end // 100 for end in sorted(ends))
    found = pyramid.window(low, high + 1)
    if low == last:  # where the last call has ended
        assert found is None
        return
    assert found is not None
    edges = pyramid.edges_ns
    inside = (edges[1:] > low) & (edges[:-1] < min(high + 1, last))
    np.testing.assert_array_equal(found.edges_ns, np.append(edges[:-1][inside], edges[1:][inside][-1]))
    np.testing.assert_array_equal(found.time_ns, pyramid.time_ns[:, :, inside])


def test_levels_are_bounded_whatever_the_number_of_tasks() -> None:
    for tasks in (1, 2, 64, 1000, 1024, 1025, 10_240, 1 << 20):
        cells = 0
        for number in range(LEVELS):
            level = Pyramid(tasks, number)
            assert level.rows * level.cells <= MOST_CELLS >> 2 * number or level.rows == 1
            assert level.rows * level.ranks_per_row >= tasks > (level.rows - 1) * level.ranks_per_row
            cells += level.rows * level.cells
        assert cells <= 2 * MOST_CELLS
