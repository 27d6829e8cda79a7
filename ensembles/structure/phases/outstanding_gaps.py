"""Gaps in the I/O that stand out of the pauses that tasks make between calls anyway.

The pauses of one task between two of its calls, within a phase, have an upper tail. On a log scale,
spacings of the k-th largest value of a tail that falls like a power law are exponential, with mean 1 / (k
α) (Rényi 1953). The exponent α is Hill's estimate (Hill 1975) from the largest pauses, the smallest of
several numbers of them. A lighter tail, such as that of a log-normal distribution, yields smaller spacings,
so that the test is conservative.

Let k gaps be longer than all pauses that do not contain one of them. The k gaps stand out if

* the spacing between the shortest of them and the longest of the pauses has a probability of less than
  `LEVEL`, corrected for all k, and is at least `GAP_RATIO`;
* they form a cluster: they differ among themselves by no more than they do from the pauses;
* they hold at least `IDLE_SHARE` of the time without I/O, and each is longer than `TIME_SLICE_NS`, since the
  kernel may set any task aside for so long.
"""

from __future__ import annotations

import numpy as np

GAP_RATIO = 4.0
"""Least ratio of the shortest gap between phases to the longest pause within phases."""

LEVEL = 1e-3
"""Probability that gaps without phases are divided, at most."""

IDLE_SHARE = 0.5
"""Least share of the time without I/O in the gaps between phases."""

TIME_SLICE_NS = 10_000_000
"""Longest time slice of usual kernels, ns. Pauses up to it count as equal: they depend on what else runs."""

CALLS_PER_PHASE = 8
"""Least number of calls per phase on average; half of the phases have at least half as many."""

_LEAST_PAUSES = 20
_LEAST_EXCESS = 0.5
_TAIL_SHARES = (0.01, 0.03, 0.1)


def outstanding_gaps(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, gap_from: np.ndarray, gap_to: np.ndarray
) -> np.ndarray:
    """Find the gaps that stand out of the pauses of the ranks.

    Parameters
    ----------
    place : ndarray of int, shape (n,)
        Rank of each call.
    start, end : ndarray of int64, shape (n,)
        Start and end of each call in ns; starts rise.
    gap_from, gap_to : ndarray of int64, shape (g,)
        Gaps in the I/O of all ranks in ns, rising.

    Returns
    -------
    ndarray of int64, shape (m,)
        Positions of the gaps, rising.

    Examples
    --------
    Five bursts of 40 calls; pauses of 1 to 4 µs within, and of 1 s between bursts:

    >>> import numpy as np
    >>> from ensembles.structure.phases.outstanding_gaps import outstanding_gaps
    >>> pause = 1000 * (1 + np.arange(200) % 4)
    >>> pause[39::40] = 1_000_000_000
    >>> end = np.cumsum(pause + 500) - pause
    >>> start = end - 500
    >>> outstanding_gaps(np.zeros(200, int), start, end, end[:-1], start[1:])
    array([ 39,  79, 119, 159])
    """
    width = gap_to - gap_from
    order = np.argsort(-width, kind="stable")
    sorted_width = width[order].astype(np.float64)
    most = min(len(width), len(start) // CALLS_PER_PHASE - 1)
    following = np.append(sorted_width[1:], 0)
    # The ratio leaves at most some twenty candidates between 1 ns and a day.
    possible = (sorted_width > TIME_SLICE_NS) & (sorted_width >= GAP_RATIO * following)
    possible &= np.cumsum(sorted_width) >= IDLE_SHARE * sorted_width.sum()
    candidates = np.flatnonzero(possible[:most])
    best, best_evidence = np.empty(0, np.int64), 0.0
    if not len(candidates):
        return best
    pause, widest_inside = _pauses(place, start, end, gap_to, width)
    for k in (candidates + 1).tolist():
        shortest = sorted_width[k - 1]
        within = pause[widest_inside < shortest]
        if sorted_width[0] * float(within.max(initial=TIME_SLICE_NS)) > shortest**2:
            continue
        evidence = _evidence(shortest, k, within)
        chosen = np.sort(order[:k])
        if evidence > best_evidence and _holds_calls(start, gap_to[chosen]):
            best, best_evidence = chosen, evidence
    return best


def _evidence(shortest: float, k: int, within: np.ndarray) -> float:
    """Return minus the logarithm of the corrected probability of the spacing; positive: it is significant."""
    if len(within) < _LEAST_PAUSES:
        return -np.inf
    within = np.maximum(within.astype(np.float64), TIME_SLICE_NS)
    spacing = np.log(shortest) - np.log(within.max())
    if spacing < np.log(GAP_RATIO):
        return -np.inf
    tail = np.log(-np.sort(np.partition(-within, most := _tail_sizes(len(within))[-1])[: most + 1]))
    # Where the tail bends, the heaviest part of it counts.
    excess = [float((tail[:size] - tail[size]).mean()) for size in _tail_sizes(len(within))]
    mean_excess = max(*excess, _LEAST_EXCESS)
    # The level is divided among all k by 1 / (k (k + 1)), whose sum is 1.
    return float(k * spacing / mean_excess + np.log(LEVEL / (k * (k + 1))))


def _tail_sizes(n: int) -> tuple[int, ...]:
    """Return the numbers of largest pauses from which the tail is estimated, rising."""
    return tuple(
        sorted({_LEAST_PAUSES // 2, *(max(int(share * n), _LEAST_PAUSES // 2) for share in _TAIL_SHARES)})
    )


def _holds_calls(start: np.ndarray, gap_to: np.ndarray) -> bool:
    """Check that half of the phases have enough calls."""
    calls = np.diff(np.searchsorted(start, gap_to, side="left"), prepend=0, append=len(start))
    return bool(np.median(calls) >= CALLS_PER_PHASE / 2)


def _pauses(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, gap_to: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pauses of each rank between its calls, ns, and the widest gap that ends inside each."""
    order = np.lexsort((start, place))
    place, start, end = place[order], start[order], end[order]
    # Ends of overlapping calls of several threads: the latest so far, separately for each rank.
    reach = end.copy()
    bounds = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
    for low, high in zip(bounds.tolist(), np.append(bounds[1:], len(place)).tolist(), strict=True):
        np.maximum.accumulate(end[low:high], out=reach[low:high])
    same = place[1:] == place[:-1]
    begin, stop = reach[:-1][same], start[1:][same]
    idle = np.maximum(stop - begin, 0)
    low = np.searchsorted(gap_to, begin, side="right")
    high = np.searchsorted(gap_to, stop, side="right")
    inside = np.zeros(len(idle), np.int64)
    with_gap = np.flatnonzero(high > low)
    if len(with_gap):
        pairs = np.stack([low[with_gap], high[with_gap]], axis=1).reshape(-1)
        inside[with_gap] = np.maximum.reduceat(np.append(width, 0), pairs)[::2]
    return idle, inside
