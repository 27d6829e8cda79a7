"""IOR of figures 1 and 2: 1,024 tasks write 512 MB each, in 1, 2, 4 or 8 calls, then wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import skew, spearmanr

from ensembles import Ensemble
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
    """Yield modes, rates, the decrease of the phase time with the number of calls, and the narrowing.

    Definitions follow the paper's words. "Three prominent peaks": the three modes of the largest weight. A
    "plateau": a rate at which the curve stays, a mode of its values; the first is the highest. The rates with
    two, four and eight calls are compared as decreases of the phase time: within 30 % of them is also that
    splitting a call changes nothing.
    """
    by_calls = {calls: runs.simulate("ior", "franklin", "--calls", str(calls)) for calls in RATES_MB_PER_S}
    found = by_calls[1].run.ensemble(op="write").modes()
    peaks_s = _prominent_s(by_calls[1])
    fundamental_s = peaks_s[0]

    # The rate of the file system is the paper's, and so is the order in which a node serves its tasks.
    yield near(CASE, "mode R, published as the fair share", "by construction", FAIR_SHARE_S, fundamental_s)
    for order, ours_s in zip((2, 4), peaks_s[1:], strict=True):
        yield near(CASE, f"mode R/{order}", "by construction", FAIR_SHARE_S / order, ours_s)
    orders = found.harmonics.orders if found.harmonics else ()
    named = len({1, 2, 4} & set(orders))
    yield Figure(CASE, "harmonics 1, 2, 4 found by ensio modes", "by construction", 3, named, 3, 3, "")

    # The second file system is the same model with other draws.
    again = runs.simulate("ior", "franklin", other=1)
    same = _prominent_s(again)[0] / fundamental_s
    yield near(CASE, "mode R on a second file system, relative", "by construction", 1, same, "", 0.1)
    alike = spearmanr(_sums_s(by_calls[1]), _sums_s(again)).statistic
    what = "rank correlation of the same calls on two file systems (different traces)"
    yield Figure(CASE, what, "by construction", 0, float(alike), -0.1, 0.1, "")
    first, second = _plateaus(by_calls[1])
    # The memory of the model takes in 60 GB/s.
    yield near(CASE, "first plateau of the rate", "by construction", 60, first, "GB/s")
    yield near(CASE, "second plateau of the rate", "predicted", 10, second, "GB/s")

    times_s = {calls: float(np.mean(made.phase_times_s("write"))) for calls, made in by_calls.items()}
    yield near(CASE, "rate, 1 call", "fitted", RATES_MB_PER_S[1], WRITTEN_MB / times_s[1], "MB/s")
    for calls, rate in RATES_MB_PER_S.items():
        if calls > 1:
            gain = 100 * (1 - times_s[calls] / times_s[1])
            paper = 100 * (1 - RATES_MB_PER_S[1] / rate)
            yield near(CASE, f"decrease of the phase time, {calls} calls", "predicted", paper, gain, "%")

    sums_s = {calls: _sums_s(made) for calls, made in by_calls.items()}
    width = {calls: sums.std() / sums.mean() for calls, sums in sums_s.items()}
    for calls in (2, 4, 8):  # "progressively narrower", by the law of large numbers: 1 / sqrt(2) a step
        ours = float(width[calls] / width[calls // 2])
        what = f"width of the sum of {calls} calls, relative to {calls // 2}"
        yield near(CASE, what, "predicted", np.sqrt(0.5), ours, "")
    shape = abs(skew(sums_s[8])) / abs(skew(sums_s[1]))
    what = "skewness of the sum of 8 calls, relative to 1 (more Gaussian)"
    yield Figure(CASE, what, "predicted", np.nan, float(shape), 0, 0.98, "")


def _prominent_s(made: Simulated) -> tuple[float, float, float]:
    """Return the three modes of the largest weight, the longest first; NaN for those that are not there."""
    modes = made.run.ensemble(op="write").modes().modes
    largest = sorted(modes, key=lambda mode: mode.weight)[-3:]
    first, second, third = [*sorted((mode.t_s for mode in largest), reverse=True), *3 * [float("nan")]][:3]
    return first, second, third


def _plateaus(made: Simulated) -> tuple[float, float]:
    """Return the two highest rates at which the curve stays, GB/s; NaN for one that is not there.

    A plateau is a peak of the distribution of the rate over time: the rates of equal steps of time are an
    ensemble, and its modes are plateaus.
    """
    rates = made.run.summarize(ignoring_run(RateCurve)).rate_bytes_per_s("write") / 1e9
    modes = Ensemble(rates[rates > 0]).modes().modes
    first, second = [*sorted((mode.t_s for mode in modes), reverse=True), *2 * [float("nan")]][:2]
    return first, second


def _sums_s(made: Simulated) -> np.ndarray:
    """Return the time of each task in its writes of each phase, seconds."""
    writes = made.run.select(op="write")
    phase = made.run.reading.find_phases().phase_index(writes)
    _, group = np.unique(np.stack([phase, writes.rank]), axis=1, return_inverse=True)
    return np.bincount(group.reshape(-1), writes.duration) / 1e9
