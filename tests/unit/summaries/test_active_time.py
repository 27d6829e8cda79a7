"""Active time is the union of the times in which calls move bytes, however the calls are divided."""

import numpy as np
import pytest

from ensembles.model.events import Call, Events
from ensembles.summaries import active_time
from ensembles.summaries.active_time import ActiveTime

CALLS = (Call("pread", "posix", "read"), Call("pwrite", "posix", "write"))


def events_of(start, duration, call=1, flight=-1):
    n = len(start)
    columns = dict.fromkeys(("rank", "thread", "depth", "file", "error"), np.zeros(n))
    columns |= {"call": np.full(n, call), "offset": np.full(n, -1), "requested": np.full(n, 100)}
    columns |= {"flight": np.full(n, flight), "request": np.zeros(n)}
    columns |= {"moved": np.full(n, 100), "start": np.asarray(start), "duration": np.asarray(duration)}
    return Events(columns, CALLS, [""])


def measured_ns(start, duration):
    """The union, ns by ns."""
    busy = np.zeros(int(max(np.add(start, duration))), bool)
    for first, length in zip(start, duration, strict=True):
        busy[first : first + length] = True
    return int(busy.sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parts", [1, 3, 50])
def test_active_time_is_the_union(seed, parts):
    random = np.random.default_rng(seed)
    start, duration = random.integers(0, 20_000, 200), random.integers(0, 300, 200)
    whole = ActiveTime()
    for some in np.array_split(random.permutation(200), parts):
        one = ActiveTime()
        one.add(events_of(start[some], duration[some]))
        whole.merge(one)
    assert whole.active_s("write") == pytest.approx(1e-9 * measured_ns(start, duration), abs=1e-15)
    assert (whole.active_s("read"), whole.calls("read"), whole.calls("write")) == (0, 0, 200)


def test_a_request_is_active_in_its_flight():
    active = ActiveTime()
    active.add(events_of(np.arange(4) * 1_000_000, np.full(4, 10_000), flight=400_000))
    assert active.active_s("write") == pytest.approx(1.6e-3)


def test_short_calls_far_apart_are_not_active_in_between():
    """480 times too slow: each call of 10 µs counted as a cell of the curve."""
    start = np.arange(1000) * 10_000_000
    active = ActiveTime()
    active.add(events_of(start, np.full(1000, 10_000), call=0))
    assert active.active_s("read") == pytest.approx(0.01)


@pytest.mark.parametrize("divided", [1, 7])
def test_beyond_the_limit_cells_are_active_for_the_time_of_their_calls(monkeypatch, divided):
    monkeypatch.setattr(active_time, "MOST_EXACT", 100)
    start = np.arange(0, 1 << 30, 1 << 20)
    active = ActiveTime()
    for some in np.array_split(np.arange(len(start)), divided):
        active.add(events_of(start[some], np.full(len(some), 1 << 10)))
    assert not active.is_exact("write")
    assert active.active_s("write") == pytest.approx(len(start) * 1024e-9)
    twice = ActiveTime()
    twice.merge(active)
    twice.merge(active)  # two tasks at the same moments: at most their time, at most the cell
    assert active.active_s("write") <= twice.active_s("write") <= 2 * active.active_s("write")


def test_calls_between_two_moments_are_those_under_way_and_those_that_begin():
    active = ActiveTime()
    active.add(events_of(np.array([0, 0, 4096, 8192]), np.array([20_000, 2_000, 1_000, 1_000])))
    assert active.calls_between("write", 0, 20_480) == 4
    assert active.calls_between("write", 12_288, 20_480) == 1
    assert ActiveTime().calls_between("write", 0, 10) == 0


@pytest.mark.parametrize("parts", [1, 2])
def test_requests_are_active_until_their_completion(parts):
    """A post of 10 µs and a flight of 20 ms counted 10 µs: the mean rate was 2,000 times too high."""
    columns = dict(events_of([0, 5_000_000, 50_000_000], [10_000] * 3).columns)
    columns["flight"] = np.array([20_000_000, 20_000_000, -1])
    whole = ActiveTime()
    for some in np.array_split(np.arange(3), parts):
        one = ActiveTime()
        one.add(Events(columns, CALLS, [""])[some])
        whole.merge(one)
    assert whole.active_s("write") == pytest.approx(25_010_000e-9)
    assert whole.calls_between("write", 15_000_000, 16_000_000) == 2
