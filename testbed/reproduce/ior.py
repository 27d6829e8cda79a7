"""IOR of figures 1 and 2: 1,024 tasks write 512 MB each, in 1, 2, 4 or 8 calls, then wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.reproduce.figure import Figure, within
from testbed.reproduce.runs import Runs

CASE = "IOR"
FAIR_SHARE_S = 512 / 16
"""R of figure 1: 512 MB at the fair share of 16 MB/s."""
RATES_MB_PER_S = {1: 11_610, 2: 12_016, 4: 13_446, 8: 13_486}
"""Published rates by the number of calls in which a task writes its 512 MB."""


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield the modes, the phase time, and its decrease with the number of calls."""
    by_calls = {calls: runs.simulate("ior", "franklin", "--calls", str(calls)) for calls in RATES_MB_PER_S}
    first = by_calls[1]
    ensemble = first.run.ensemble(op="write")
    found = ensemble.modes()
    places_s = np.array([mode.t_s for mode in found.modes])
    fundamental_s = _nearest(places_s, FAIR_SHARE_S)

    yield within(0.1, CASE, "mode R, published as the fair share", FAIR_SHARE_S, fundamental_s)
    for order in (2, 4):
        yield within(
            0.15, CASE, f"mode R/{order}", FAIR_SHARE_S / order, _nearest(places_s, fundamental_s / order)
        )
    orders = found.harmonics.orders if found.harmonics else ()
    yield Figure(CASE, "harmonics 1, 2, 4 found by ensio modes", 3, len({1, 2, 4} & set(orders)), 3, 3, "")
    times_s = {calls: float(np.mean(made.phase_times_s("write"))) for calls, made in by_calls.items()}
    yield within(0.25, CASE, "phase time, one call", 45, times_s[1])
    for calls, rate in RATES_MB_PER_S.items():
        if calls > 1:
            low, high = (10, 25) if calls == 8 else (0, 25)
            gain = 100 * (1 - times_s[calls] / times_s[1])
            paper = 100 * (1 - RATES_MB_PER_S[1] / rate)
            yield Figure(CASE, f"decrease of the phase time, {calls} calls", paper, gain, low, high, "%")


def _nearest(places_s: np.ndarray, wanted_s: float) -> float:
    """Return the mode that is nearest on a logarithmic scale."""
    return float(places_s[np.argmin(np.abs(np.log(places_s / wanted_s)))])
