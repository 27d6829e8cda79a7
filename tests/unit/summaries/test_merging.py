"""Any split of the events, merged in any order, gives the same summary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from arrays_of import arrays_of
from generated_events import TASKS, events, parts_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.summaries import phasecounts
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.failed_calls import FailedCalls
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.phasecounts import PhaseCounts
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import RunTotals
from ensembles.summaries.sizes import Alignment, SizeTable

EXACT = {
    "histogram": LogHistogram,
    "raster": lambda: Raster(TASKS, rows=3, cells=16),
    "rate": lambda: RateCurve(cells=16),
    "alignment": lambda: Alignment(1),
    "failed": FailedCalls,
}


def merged(make: Callable, parts: list[Events], random: np.random.Generator):
    """Summaries of parts, put together pairwise in any order; some parts are added to the same summary."""
    summaries = []
    for part in parts:
        if not summaries or random.random() < 0.7:
            summaries.append(make())
        summaries[-1].add(part)
    while len(summaries) > 1:
        summaries.insert(0, summaries.pop(random.integers(len(summaries))))
        summaries[0].merge(summaries.pop(random.integers(1, len(summaries))))
    return summaries[0]


@pytest.mark.parametrize("kind", EXACT)
@given(whole=events(), seed=st.integers(0, 2**32))
def test_integer_summaries_are_equal_to_the_last_bit(kind: str, whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    expected = EXACT[kind]()
    expected.add(whole)
    found = merged(EXACT[kind], parts_of(whole, random), random)
    for name, values in arrays_of(expected).items():
        np.testing.assert_array_equal(arrays_of(found)[name], values)


CUTS = np.array([-1000, 0, 1, 10**6, 10**9])


@given(whole=events(), seed=st.integers(0, 2**32), per_mib=st.booleans())
def test_counts_by_phase_are_equal_whatever_the_split(whole: Events, seed: int, per_mib: bool) -> None:
    random = np.random.default_rng(seed)

    def make() -> PhaseCounts:
        return PhaseCounts(CUTS, lambda chunk: chunk.moved > 0, per_mib=per_mib)

    once = make()
    once.add(whole)
    found = arrays_of(merged(make, parts_of(whole, random), random))
    for name, expected in arrays_of(once).items():
        if name.endswith("sums"):
            np.testing.assert_allclose(found[name], expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found[name], expected)


@given(whole=events(), seed=st.integers(0, 2**32))
def test_tables_are_equal_whatever_the_split(whole: Events, seed: int) -> None:
    # What was spent in calls inside others is told only in the order in which they were made.
    flat = Events(whole.columns | {"depth": whole.depth * 0}, whole.calls, whole.files)
    for make in (CallTable, SizeTable, RunTotals):
        random = np.random.default_rng(seed)
        once = make()
        once.add(flat)
        found = merged(make, parts_of(flat, random), random)
        for name, values in arrays_of(once).items():
            if not name.startswith(".slowest"):  # of equals, the earlier one
                np.testing.assert_array_equal(arrays_of(found)[name], values, err_msg=name)


@given(whole=events(), seed=st.integers(0, 2**32))
def test_cells_are_equal_whatever_the_split(whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    flat = Events(whole.columns | {"depth": whole.depth * 0}, whole.calls, whole.files)

    class Cells(CellSummary):
        def add(self, chunk: Events) -> None:
            super().add(chunk, ordinals_known=False)

    once = Cells()
    once.add(flat)
    found = arrays_of(merged(Cells, parts_of(flat, random), random))
    for name, expected in arrays_of(once).items():
        if name in ("m2", "m3", "m4", "mean_ns"):
            spread = max(float(np.ptp(flat.duration)), 1.0) if len(flat) else 1.0
            power = int(name[1]) if name[0] == "m" and name[1].isdigit() else 1
            allowed = 1e-9 * len(flat) * spread**power
            np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=allowed)
        elif not name.startswith("longest"):  # of equals, the earlier one
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
    np.testing.assert_array_equal(found["longest_duration"], arrays_of(once)["longest_duration"])


def test_counts_of_different_phases_refuse_to_merge() -> None:
    with pytest.raises(ValueError, match="their cuts are equal"):
        PhaseCounts(CUTS).merge(PhaseCounts(CUTS[1:]))


@given(whole=events(), seed=st.integers(0, 2**32))
def test_cuts_that_are_told_later_give_what_they_would_have_given_at_once(whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    ends = np.sort(random.choice(np.append(whole.start, CUTS), 6))
    low, high = ends[::2], ends[1::2]
    later = np.unique(np.minimum(low + random.integers(1, 10**6, 3), high)[random.random(3) < 0.7])
    later = later[np.concatenate([[True], np.diff(later) > 0])[: len(later)]]
    found = merged(lambda: PhaseCounts(ends, keep_odd=True), parts_of(whole, random), random).parted(later)
    at_once = PhaseCounts(later)
    at_once.add(whole)
    np.testing.assert_array_equal(found.cuts, at_once.cuts)
    for name in ("counts", "least", "most"):
        np.testing.assert_array_equal(found.arrays[name], at_once.arrays[name])
    np.testing.assert_allclose(found.arrays["sums"], at_once.arrays["sums"], rtol=1e-9)


def test_calls_that_were_too_many_to_be_kept_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phasecounts, "MOST_EXACT", 3)
    columns = {name: np.zeros(4, dtype) for name, dtype in COLUMNS.items()}
    some = PhaseCounts(np.array([0, 10]), keep_odd=True)
    some.add(Events(columns, [Call("pwrite", "posix", "write")], [""]))
    assert some.kept is None
    with pytest.raises(ValueError, match="only if they were kept"):
        some.parted(np.array([5]))


@given(whole=events(least=1), seed=st.integers(0, 2**32))
def test_moments_are_equal_to_rounding(whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    once = CallMoments()
    once.add(whole)
    found = merged(CallMoments, parts_of(whole, random), random)
    assert found.moments.keys() == once.moments.keys()
    for call, expected in once.moments.items():
        moments = found.moments[call]
        assert (moments.n, moments.min_ns, moments.max_ns) == (expected.n, expected.min_ns, expected.max_ns)
        assert moments.mean_ns == pytest.approx(expected.mean_ns, rel=1e-12, abs=1e-12)
        # A sum of odd powers cancels: its error is measured against the terms of the sum.
        spread = max(expected.max_ns - expected.min_ns, 1)
        for power, (one, other) in enumerate(zip(moments.sums, expected.sums, strict=True), start=2):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-9 * expected.n * spread**power)


def test_summaries_of_different_shapes_refuse_to_merge() -> None:
    with pytest.raises(ValueError, match="same number of tasks"):
        Raster(4).merge(Raster(5))
    with pytest.raises(ValueError, match="numbers of rows and of cells"):
        RateCurve(cells=8).merge(RateCurve(cells=16))
