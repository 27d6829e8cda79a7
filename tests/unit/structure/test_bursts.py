"""Bursts have the rate of their events, whatever the width of a cell."""

import numpy as np
import pytest
from builders import make_events

from ensembles.model.events import Call
from ensembles.structure.rates import MovedSpans
from ensembles.summaries.rate import RateCurve

CALLS = (Call("write", "posix", "write"), Call("read", "posix", "read"))
MS = 1_000_000


def ten_bursts():
    """Ten bursts of 4 MiB in 10 ms, one each 7 s: a cell of the grid takes 33.6 ms."""
    start = np.concatenate([7000 * MS * burst + np.arange(4) * 2 * MS for burst in range(10)])
    columns = {"start": start, "duration": np.full(40, 4 * MS), "moved": np.full(40, 1 << 20)}
    columns |= {"rank": np.tile(np.arange(4), 10)}
    return make_events(columns, CALLS)


@pytest.mark.parametrize("parts", [1, 7])
def test_short_bursts_have_their_own_rate(parts):
    events, whole, curve = ten_bursts(), MovedSpans(), RateCurve()
    curve.add(events)
    for some in np.array_split(np.random.default_rng(1).permutation(40), parts):
        one = MovedSpans()
        one.add(events[some])
        whole.merge(one)
    found = whole.bursts("write", curve.cell_ns * 1e-9)
    assert len(found) == 10
    assert {(burst.bytes, burst.calls) for burst in found} == {(4 << 20, 4)}
    assert [burst.bytes_per_s for burst in found] == pytest.approx([(4 << 20) / 0.010] * 10)
    assert found[3].from_s == pytest.approx(21.0)
    assert found[3].to_json()["time_s"] == pytest.approx(0.010)
    # The best cell says less than a third of it.
    assert curve.rate_bytes_per_s("write").max() < (4 << 20) / 0.030
    assert whole.bursts("read", 0.1) == []


def test_too_many_calls_are_not_guessed_at(monkeypatch):
    monkeypatch.setattr("ensembles.summaries.held_calls.MOST_EXACT", 39)
    spans = MovedSpans()
    spans.add(ten_bursts())
    assert spans.bursts("write", 0.1) is None
