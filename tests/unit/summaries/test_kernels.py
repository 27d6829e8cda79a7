"""The loops in C against NumPy, and both against a plain loop written from the definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from generated_events import CALLS, events, events_of
from hypothesis import given
from hypothesis import strategies as st
from oracles import numpy_summaries

from ensembles import _compiled
from ensembles.model.events import Events
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT, bin_low_ns
from ensembles.summaries.phasecounts import PhaseCounts
from ensembles.summaries.timegrid import TimeGrid


def grid_of(whole: Events, cells: int) -> tuple[int, int]:
    """Level and first cell of the grid that holds these events."""
    grid = TimeGrid(1, cells)
    grid.add(whole.start, whole.duration, np.full(len(whole), -1, dtype=np.int32))
    return grid.level, int(grid.edges_ns[0]) >> grid.level


def naive_spread(whole: Events, row: np.ndarray, amount: np.ndarray, level: int, first: int, shape) -> list:
    """Exact fractions, one event and one cell at a time."""
    out = [[Fraction(0)] * shape[1] for _ in range(shape[0])]
    for start, length, r, a in zip(
        whole.start.tolist(), whole.duration.tolist(), row.tolist(), amount.tolist(), strict=True
    ):
        if r < 0:
            continue
        for cell in range(shape[1]):
            low, high = (first + cell) << level, (first + cell + 1) << level
            if length == 0:
                out[r][cell] += a if low <= start < high else 0
            else:
                overlap = max(0, min(high, start + length) - max(low, start))
                out[r][cell] += Fraction(a * overlap, length)
    return out


@given(whole=events(), seed=st.integers(0, 2**32), timed=st.booleans())
def test_compiled_spread_equals_numpy_to_the_last_bit(whole: Events, seed: int, timed: bool) -> None:
    level, first = grid_of(whole, 37)
    row = np.random.default_rng(seed).integers(-1, 3, len(whole)).astype(np.int32)
    amount = None if timed else np.maximum(whole.moved, 0)
    compiled, numpy = np.zeros((3, 37), dtype=np.int64), np.zeros((3, 37), dtype=np.int64)
    kernels.spread(whole.start, whole.duration, row, amount, level, first, compiled)
    numpy_summaries.spread(whole.start, whole.duration, row, amount, level, first, numpy)
    np.testing.assert_array_equal(compiled, numpy)


@given(whole=events())
def test_compiled_count_equals_numpy_to_the_last_bit(whole: Events) -> None:
    np.testing.assert_array_equal(
        kernels.count_bins(whole.call, whole.duration, len(CALLS)),
        numpy_summaries.count_bins(whole.call, whole.duration, len(CALLS)),
    )


@pytest.mark.parametrize("spread", [kernels.spread, numpy_summaries.spread])
@given(whole=events(), timed=st.booleans())
def test_spread_agrees_with_exact_fractions(spread, whole: Events, timed: bool) -> None:
    level, first = grid_of(whole, 16)
    row = (whole.rank % 3).astype(np.int32) - 1
    amount = whole.duration if timed else np.maximum(whole.moved, 0)
    out = np.zeros((2, 16), dtype=np.int64)
    spread(whole.start, whole.duration, row, None if timed else amount, level, first, out)
    expected = naive_spread(whole, row, amount, level, first, out.shape)
    # Bytes are whole numbers in every cell: each edge of a cell may move less than two bytes of an event.
    allowed = 0 if timed else 2 * len(whole)
    for found, exact in zip(out.reshape(-1).tolist(), (f for line in expected for f in line), strict=True):
        assert abs(found - exact) <= allowed
    for r in range(2):
        assert out[r].sum() == amount[row == r].sum()


def test_event_that_touches_an_edge_leaves_nothing_beyond_it() -> None:
    out = np.zeros((1, 4), dtype=np.int64)
    kernels.spread(np.array([8]), np.array([8]), np.array([0]), None, 3, 0, out)
    assert out.tolist() == [[0, 8, 0, 0]]


def test_event_without_duration_at_an_edge_belongs_to_the_cell_that_begins_there() -> None:
    out = np.zeros((1, 4), dtype=np.int64)
    kernels.spread(np.array([16]), np.array([0]), np.array([0]), np.array([5]), 3, 0, out)
    assert out.tolist() == [[0, 0, 5, 0]]


@pytest.mark.parametrize("spread", [kernels.spread, numpy_summaries.spread])
@pytest.mark.parametrize(
    ("start", "duration", "row"), [(-1, 1, 0), (31, 2, 0), (0, 1, 1), (5, -1, 0)], ids=str
)
def test_event_outside_of_the_cells_is_refused(spread, start: int, duration: int, row: int) -> None:
    out = np.zeros((1, 4), dtype=np.int64)
    row_array = np.array([row], dtype=np.int32)
    with pytest.raises(IndexError):
        spread(np.array([start]), np.array([duration]), row_array, None, 3, 0, out)
    assert not out.any()


@pytest.mark.parametrize("spread", [kernels.spread, numpy_summaries.spread])
def test_event_that_ends_beyond_all_integers_is_refused(spread) -> None:
    out = np.zeros((1, 4), dtype=np.int64)
    with pytest.raises(IndexError):
        spread(np.array([2**63 - 10]), np.array([20]), np.zeros(1, np.int32), np.array([5]), 62, 1, out)
    assert not out.any()


@pytest.mark.parametrize("count", [kernels.count_bins, numpy_summaries.count_bins])
def test_every_duration_is_counted_in_the_bin_that_holds_it(count) -> None:
    low = bin_low_ns()[: BIN_COUNT - 33].astype(np.int64)
    high = bin_low_ns()[1 : BIN_COUNT - 32].astype(np.int64) - 1
    counts = count(np.zeros(2 * len(low), dtype=np.uint16), np.concatenate([low, high]), 1)
    assert (counts[0, : len(low)] == 2).all()
    assert counts.sum() == 2 * len(low)


@pytest.mark.parametrize("count", [kernels.count_bins, numpy_summaries.count_bins])
def test_unknown_call_and_negative_duration_are_refused(count) -> None:
    with pytest.raises(IndexError):
        count(np.array([2], dtype=np.uint16), np.array([1]), 2)
    with pytest.raises(IndexError):
        count(np.array([0], dtype=np.uint16), np.array([-1]), 2)


def group_arrays(groups: int) -> dict[str, np.ndarray]:
    return PhaseCounts(np.arange(groups - 1)).arrays


@pytest.mark.parametrize("count", [kernels.count_groups, numpy_summaries.count_groups])
@given(whole=events(), seed=st.integers(0, 2**32))
def test_groups_are_counted_as_a_plain_loop_does_it(count, whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    cuts = np.unique(random.choice(np.append(whole.start, 0), random.integers(0, 6)) + random.integers(0, 2))
    taken = random.random(len(whole)) < 0.7
    out = group_arrays(len(cuts) + 1)
    odd = count(whole.start, whole.duration, taken, cuts, out, True)
    group = [sum(cut <= start for cut in cuts.tolist()) for start in whole.start.tolist()]
    expected = [place for place in range(len(whole)) if taken[place] and group[place] % 2]
    assert sorted(odd.tolist()) == expected
    edges = [-(2**63), *cuts.tolist(), 2**63]
    for group in range(len(cuts) + 1):
        mine = [
            (start, duration)
            for start, duration, meant in zip(
                whole.start.tolist(), whole.duration.tolist(), taken, strict=True
            )
            if meant and edges[group] <= start < edges[group + 1]
        ]
        durations = [duration for _, duration in mine]
        assert out["counts"][group].sum() == len(mine)
        assert out["least"][group] == min(durations, default=2**63 - 1)
        assert out["most"][group] == max(durations, default=-1)
        assert out["sums"][group, 0] == pytest.approx(sum(durations), rel=1e-12)
        assert out["sums"][group, 1] == pytest.approx(sum(d * d for d in durations), rel=1e-12)


@given(whole=events(), seed=st.integers(0, 2**32))
def test_compiled_groups_equal_numpy_to_the_last_bit(whole: Events, seed: int) -> None:
    cuts = np.unique(np.random.default_rng(seed).choice(np.append(whole.start, 5), 4))
    compiled, numpy = group_arrays(len(cuts) + 1), group_arrays(len(cuts) + 1)
    kernels.count_groups(whole.start, whole.duration, None, cuts, compiled)
    numpy_summaries.count_groups(whole.start, whole.duration, None, cuts, numpy)
    for name in ("counts", "least", "most"):
        np.testing.assert_array_equal(compiled[name], numpy[name])


HALF_NS = st.integers(0, 2**40).map(lambda ns: (ns + 0.5) * 1e-9)
ANY_S = st.one_of(
    st.floats(0, 4e9), st.floats(0, 1e-6), HALF_NS, st.integers(2**50, 2**54).map(lambda ns: ns * 1e-9)
)


@given(seconds=st.lists(ANY_S, max_size=40))
def test_compiled_seconds_equal_numpy_to_the_last_bit(seconds: list[float]) -> None:
    values = np.array(seconds, np.float64)
    counts, stats = kernels.count_seconds(values, 4e9 + 1)
    expected, others = numpy_summaries.count_seconds(values, 4e9 + 1, stats[4])
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(stats[[0, 1, 4]], others[[0, 1, 4]])
    np.testing.assert_allclose(
        stats[2:4], others[2:4], rtol=1e-12, atol=1e-12 * abs(values).max(initial=0) ** 2
    )


def test_seconds_are_counted_by_threads_as_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).exponential(1e-3, 10_000)
    once = kernels.count_seconds(values, 1e9)
    monkeypatch.setattr(kernels, "AT_ONCE", 700)
    counts, stats = kernels.count_seconds(values, 1e9)
    np.testing.assert_array_equal(counts, once[0])
    np.testing.assert_allclose(stats, once[1], rtol=1e-12)
    with pytest.raises(ValueError, match="negative"):
        kernels.count_seconds(np.append(values, -1e-9), 1e9)


def test_compiled_functions_refuse_arrays_of_other_types_and_lengths() -> None:
    eight, four = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int32)
    out = np.zeros((2, 4), dtype=np.int64)
    with pytest.raises(TypeError, match="row must have items of 4 bytes"):
        _compiled.spread(eight, eight, eight, None, 0, 0, out, 4)
    with pytest.raises(ValueError, match="same length"):
        _compiled.spread(eight, eight, four[:2], None, 0, 0, out, 4)
    with pytest.raises(ValueError, match="whole rows"):
        _compiled.spread(eight, eight, four, None, 0, 0, out, 3)
    out.flags.writeable = False
    with pytest.raises((BufferError, ValueError), match="read-only"):
        _compiled.spread(eight, eight, four, None, 0, 0, out, 4)
    with pytest.raises(ValueError, match="whole rows of bins"):
        _compiled.count_bins(np.zeros(3, dtype=np.uint16), eight, np.zeros(5, dtype=np.int64))


def test_columns_that_are_views_of_records_are_taken() -> None:
    records = np.zeros(4, dtype=[("start", "i8"), ("duration", "i8"), ("call", "u2")])
    records["start"], records["duration"], records["call"] = [0, 8, 16, 24], 8, [0, 1, 0, 1]
    out = np.zeros((1, 4), dtype=np.int64)
    kernels.spread(records["start"], records["duration"], np.zeros(4), None, 3, 0, out)
    assert out.tolist() == [[8, 8, 8, 8]]
    assert kernels.count_bins(records["call"], records["duration"], 2)[:, 8].tolist() == [2, 2]
    assert len(events_of(start=records["start"])) == 4
