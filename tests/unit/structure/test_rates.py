"""Plateaus of the rate are where all tasks together move data at one rate."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensembles.answers.rate import RunRates, _parts
from ensembles.faces.words import cell
from ensembles.model.events import Call, Events
from ensembles.structure.rates import divided, find_plateaus, median, quantiles
from ensembles.summaries.rate import RateCurve

CALLS = (Call("pread", "posix", "read"), Call("pwrite", "posix", "write"))
S = 1_000_000_000


def curve_of(parts, call=1, seed=0, piece_ns=20_000_000):
    """The curve of parts (from s, to s, bytes/s), made of short calls whose lengths vary."""
    random = np.random.default_rng(seed)
    start, duration, moved = [], [], []
    for from_s, to_s, rate in parts:
        begin = np.arange(int(from_s * S), int(to_s * S), piece_ns)
        start.append(begin)
        duration.append((piece_ns * random.uniform(0.8, 1.0, len(begin))).astype(int))
        moved.append((rate * piece_ns / S * random.uniform(0.9, 1.1, len(begin))).astype(int))
    start, duration, moved = map(np.concatenate, (start, duration, moved))
    n = len(start)
    columns = dict.fromkeys(("rank", "thread", "depth", "file", "error"), np.zeros(n))
    columns |= {"call": np.full(n, call), "offset": np.full(n, -1), "requested": moved}
    columns |= {"moved": moved, "start": start, "duration": duration}
    curve = RateCurve()
    curve.add(Events(columns, CALLS, [""]))
    return curve


@pytest.mark.parametrize("seed", range(4))
def test_the_plateaus_of_the_papers_first_figure(seed):
    """60 GB/s while buffers fill, then 10 GB/s, then a tail; five times, with idle time between."""
    parts = []
    for number in range(5):
        begin = 60 * number
        parts += [
            (begin, begin + 4, 60e9),
            (begin + 4, begin + 22, 10e9),
            (begin + 22, begin + 45, 2e9),
        ]
    found = find_plateaus(curve_of(parts, seed=seed), "write")
    assert len(found.plateaus) == len(parts)
    for plateau, (from_s, to_s, rate) in zip(found.plateaus, parts, strict=True):
        assert plateau.from_s == pytest.approx(from_s, abs=0.5)
        assert plateau.to_s == pytest.approx(to_s, abs=0.5)
        assert plateau.bytes_per_s == pytest.approx(rate, rel=0.2)
        assert plateau.share == pytest.approx(rate * (to_s - from_s) / (5 * 466e9), rel=0.2)
    assert sum(plateau.share for plateau in found.plateaus) > 0.99
    assert found.bytes == pytest.approx(5 * 466e9, rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_one_rate_is_one_plateau(seed):
    (plateau,) = find_plateaus(curve_of([(0, 100, 1e9)], seed=seed, call=0), "read").plateaus
    assert (plateau.from_s, plateau.to_s) == (pytest.approx(0, abs=0.2), pytest.approx(100, abs=0.2))
    assert plateau.bytes_per_s == pytest.approx(1e9, rel=0.01)
    assert plateau.low_bytes_per_s <= plateau.bytes_per_s <= plateau.high_bytes_per_s


def test_too_little_is_no_plateau():
    found = find_plateaus(curve_of([(0, 50, 1e9), (60, 60.5, 2e8)]), "write")
    assert len(found.plateaus) == 1
    assert 0.99 < found.plateaus[0].share < 1


def test_few_calls_are_no_plateau():
    """One call has one rate, because its bytes are spread evenly over it."""
    single = find_plateaus(curve_of([(3, 3.001, 50e9)]), "write")
    assert single.plateaus == ()
    few = find_plateaus(curve_of([(0, 7, 1e9)], piece_ns=1_000_000_000), "write")
    assert few.plateaus == ()
    many = find_plateaus(curve_of([(0, 20, 1e9)], piece_ns=1_000_000_000), "write")
    assert all(
        plateau.low_bytes_per_s <= plateau.bytes_per_s <= plateau.high_bytes_per_s
        for plateau in many.plateaus
    )


def test_short_calls_far_apart_have_the_rate_of_their_time():
    """The mean over active time was 480 times too low: each call counted as a whole cell of the curve."""
    start = np.arange(0, 10 * S, 10_000_000)
    n = len(start)
    columns = dict.fromkeys(("rank", "thread", "depth", "file", "error"), np.zeros(n))
    columns |= {"call": np.full(n, 0), "offset": np.full(n, -1), "requested": np.full(n, 1 << 20)}
    columns |= {"moved": np.full(n, 1 << 20), "start": start, "duration": np.full(n, 20_000)}
    curve = RateCurve()
    curve.add(Events(columns, CALLS, [""]))
    rates = find_plateaus(curve, "read")
    assert rates.active_s == pytest.approx(n * 20e-6)
    assert rates.mean_bytes_per_s == pytest.approx((1 << 20) / 20e-6)
    assert rates.peak_bytes_per_s >= rates.mean_bytes_per_s
    # A window cannot hold more than the calls that begin in it, and one.
    in_window = (1 << 20) * (rates.cell_s / 10e-3 + 1)
    assert 0 < rates.window_bytes_per_s <= in_window / rates.cell_s < rates.mean_bytes_per_s
    (told, *_), *_ = _parts(RunRates("", (rates,), {"read": []}, curve), rates)
    assert "peak" not in cell(told, "")


def test_no_bytes_no_plateaus():
    curve = curve_of([(0, 10, 1e9)])
    found = find_plateaus(curve, "read")
    assert (found.bytes, found.plateaus, found.mean_bytes_per_s) == (0, (), 0.0)
    assert find_plateaus(RateCurve(), "write").to_json()["plateaus"] == []


def cost_of(values, pieces, penalty):
    return sum(((values[low:high] - values[low:high].mean()) ** 2).sum() + penalty for low, high in pieces)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-20, 20), min_size=1, max_size=14),
    penalty=st.floats(0.1, 50),
    least=st.integers(1, 4),
)
def test_no_division_is_better(values, penalty, least):
    """All divisions are tried."""
    values, n = np.array(values, float), len(values)
    if n < least:
        return
    found = divided(values, penalty, least)
    assert [low for low, _ in found] == [0, *[high for _, high in found[:-1]]]
    assert found[-1][1] == n
    assert all(high - low >= least for low, high in found)
    best = np.inf
    for bits in range(1 << (n - 1)):
        ends = [0, *(cut + 1 for cut in range(n - 1) if bits >> cut & 1), n]
        if min(high - low for low, high in pairwise(ends)) >= least:
            best = min(best, cost_of(values, list(pairwise(ends)), penalty))
    assert cost_of(values, found, penalty) == pytest.approx(best, abs=1e-6)


def test_medians_and_quantiles_equal_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    for size in range(1, 60):
        for values in (rng.lognormal(size=size), rng.integers(0, 4, size).astype(float)):
            assert median(values) == np.median(values)
            assert (
                quantiles(values, (0.1, 0.5, 0.9, 1.0)) == np.quantile(values, (0.1, 0.5, 0.9, 1.0)).tolist()
            )
