"""IOR of figures 1 and 2: 1,024 tasks write 512 MB each, in 1, 2, 4 or 8 calls, then wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import skew, spearmanr

from ensembles.passes.summary import ignoring_run
from ensembles.summaries.rate import RateCurve
from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs, Simulated

CASE = "IOR"
FAIR_SHARE_S = 512 / 16
"""R of figure 1: 512 MB at the fair share of 16 MB/s."""
RATES_MB_PER_S = {1: 11_610, 2: 12_016, 4: 13_446, 8: 13_486}
"""Published rates by the number of calls in which a task writes its 512 MB."""
WRITTEN_MB = 1024 * 512


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield modes, rates, the decrease of the phase time with the number of calls, and the narrowing."""
    by_calls = {calls: runs.simulate("ior", "franklin", "--calls", str(calls)) for calls in RATES_MB_PER_S}
    found = by_calls[1].run.ensemble(op="write").modes()
    places_s = np.array([mode.t_s for mode in found.modes])
    fundamental_s = _nearest(places_s, FAIR_SHARE_S)

    # The rate of the file system is the paper's, and so is the order in which a node serves its tasks.
    yield near(CASE, "mode R, published as the fair share", "by construction", FAIR_SHARE_S, fundamental_s)
    for order in (2, 4):
        ours_s = _nearest(places_s, fundamental_s / order)
        yield near(CASE, f"mode R/{order}", "by construction", FAIR_SHARE_S / order, ours_s)
    orders = found.harmonics.orders if found.harmonics else ()
    named = len({1, 2, 4} & set(orders))
    yield Figure(CASE, "harmonics 1, 2, 4 found by ensio modes", "predicted", 3, named, 3, 3, "")

    again = runs.simulate("ior", "franklin", other=1)
    places_again_s = np.array([mode.t_s for mode in again.run.ensemble(op="write").modes().modes])
    same = _nearest(places_again_s, FAIR_SHARE_S) / fundamental_s
    yield near(CASE, "mode R on a second file system, relative", "predicted", 1, same, "", 0.1)
    alike = spearmanr(_sums_s(by_calls[1]), _sums_s(again)).statistic
    what = "rank correlation of the same calls on two file systems (different traces)"
    yield Figure(CASE, what, "predicted", 0, float(alike), -0.1, 0.1, "")
    first, second = _plateaus(by_calls[1])
    yield near(CASE, "first plateau of the rate", "predicted", 60, first, "GB/s")
    yield near(CASE, "second plateau of the rate", "predicted", 10, second, "GB/s")

    times_s = {calls: float(np.mean(made.phase_times_s("write"))) for calls, made in by_calls.items()}
    yield near(CASE, "phase time, 1 call", "fitted", 45, times_s[1])
    for calls, rate in RATES_MB_PER_S.items():
        kind = "fitted" if calls == 1 else "predicted"
        what = f"rate, {calls} call{'s' if calls > 1 else ''}"
        yield near(CASE, what, kind, rate, WRITTEN_MB / times_s[calls], "MB/s")
    for calls, rate in RATES_MB_PER_S.items():
        if calls > 1:
            gain = 100 * (1 - times_s[calls] / times_s[1])
            paper = 100 * (1 - RATES_MB_PER_S[1] / rate)
            yield near(CASE, f"decrease of the phase time, {calls} calls", "predicted", paper, gain, "%")

    sums_s = {calls: _sums_s(made) for calls, made in by_calls.items()}
    width = {calls: sums.std() / sums.mean() for calls, sums in sums_s.items()}
    for calls in (2, 4, 8):  # "progressively narrower": the law of large numbers has 1 / sqrt(2) a step
        ours = float(width[calls] / width[calls // 2])
        what = f"width of the sum of {calls} calls, relative to {calls // 2}"
        yield Figure(CASE, what, "predicted", np.sqrt(0.5), ours, 0.5, 0.9, "")
    shape = abs(skew(sums_s[8])) / abs(skew(sums_s[1]))
    what = "skewness of the sum of 8 calls, relative to 1 (more Gaussian)"
    yield Figure(CASE, what, "predicted", np.nan, float(shape), 0, 0.7, "")


def _plateaus(made: Simulated) -> tuple[float, float]:
    """Return the rates in the first and in the last quarter of the time R of the first phase, GB/s.

    Some calls end after a quarter of R. The last quarter is what comes before the tail.
    """
    curve = made.run.summarize(ignoring_run(RateCurve))
    writes = made.run.select(op="write")
    middles_ns = (curve.edges_ns[1:] + curve.edges_ns[:-1]) / 2
    since_s = (middles_ns - writes.start.min()) / 1e9
    rates = curve.rate_bytes_per_s("write") / 1e9
    quarter_s = FAIR_SHARE_S / 4
    first, last = ((since_s >= k * quarter_s) & (since_s < (k + 1) * quarter_s) for k in (0, 3))
    return float(np.median(rates[first])), float(np.median(rates[last]))


def _sums_s(made: Simulated) -> np.ndarray:
    """Return the time of each task in its writes of each phase, seconds."""
    writes = made.run.select(op="write")
    phase = made.run.reading.find_phases().phase_index(writes)
    _, group = np.unique(np.stack([phase, writes.rank]), axis=1, return_inverse=True)
    return np.bincount(group.reshape(-1), writes.duration) / 1e9


def _nearest(places_s: np.ndarray, wanted_s: float) -> float:
    """Return the mode that is nearest on a logarithmic scale."""
    return float(places_s[np.argmin(np.abs(np.log(places_s / wanted_s)))])
