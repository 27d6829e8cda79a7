"""Any split of the events, merged in any order, gives the same summary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from generated_events import TASKS, events, parts_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.events import Events
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve

EXACT = {
    "histogram": LogHistogram,
    "raster": lambda: Raster(TASKS, rows=3, cells=16),
    "rate": lambda: RateCurve(cells=16),
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


def by_call(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rows in order of the calls' names: calls come in order of first occurrence."""
    if "call" not in arrays:
        return arrays
    order = np.argsort(arrays["call"])
    return {name: values[order] for name, values in arrays.items()}


@pytest.mark.parametrize("kind", EXACT)
@given(whole=events(), seed=st.integers(0, 2**32))
def test_integer_summaries_are_equal_to_the_last_bit(kind: str, whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    expected = EXACT[kind]()
    expected.add(whole)
    found = merged(EXACT[kind], parts_of(whole, random), random)
    for name, values in by_call(expected.to_arrays()).items():
        np.testing.assert_array_equal(by_call(found.to_arrays())[name], values)


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
    with pytest.raises(ValueError, match="same tasks"):
        Raster(4).merge(Raster(5))
    with pytest.raises(ValueError, match="numbers of rows and of cells"):
        RateCurve(cells=8).merge(RateCurve(cells=16))
