"""Estimate the step of the clock from durations.

With a clock that advances in steps of a microsecond, durations concentrate at multiples of a microsecond.
This is not a property of the calls, and must not count as modes. The step is the longest period at whose
multiples durations concentrate. It need not be exact: times that were converted to floating point, or printed
with few digits, lie near the multiples.
"""

from __future__ import annotations

import numpy as np

from ensembles.summaries.bins import BIN_COUNT, bin_low_ns

LEAST_STEP_NS = 4.0
"""Shorter steps cannot be distinguished from the rounding to whole ns."""

_MOST_MULTIPLE = 24
_LEAST_MULTIPLES = 6
_LEAST_IF_EXACT = 4
_LEAST_GATHERING = 0.6
_MOST_VALUES = 2048
_MOST_CALLS = 200_000
_CHANCE = 1e-4
_LEAST_EVIDENCE = 12.0
_STRAY = 0.02
_ZEROS = 0.01
_MOST_MULTIPLES_IN_A_BIN = 24


def clock_step_s(durations_s: np.ndarray) -> float:
    """Estimate the step of the clock from durations.

    Parameters
    ----------
    durations_s : array_like of float, shape (n,)
        Seconds; values that are not finite and positive are ignored. Of many, an evenly spaced part is used.

    Returns
    -------
    float
        Seconds; 0.0: no step (a fine clock, a single value, or calls much longer than the step).

    Notes
    -----
    Two candidates: the greatest common divisor of the durations in whole ns, if it is too large to be random;
    and the longest period s around whose multiples they concentrate. For the latter, a duration v has the
    angle 2 pi v / s, and the mean cosine of the angles is large (the test of uniformity against a known
    direction). Multiples must be many and consecutive, so that three modes at t, 2t and 4t are not a clock.

    References
    ----------
    K. V. Mardia and P. E. Jupp, Directional Statistics, 2000.

    Examples
    --------
    >>> durations_s = np.round(np.random.default_rng(1).lognormal(-12.0, 0.5, 5000), 6)
    >>> round(clock_step_s(durations_s) * 1e6, 3)
    1.0
    """
    durations_s = np.asarray(durations_s, dtype=np.float64).reshape(-1)
    part = durations_s[:: max(1, len(durations_s) // _MOST_CALLS)]
    ns = np.rint(part[(part > 0) & (part < 2.0**53 * 1e-9)] * 1e9)
    values, counts = np.unique(ns[ns > 0], return_counts=True)
    if not len(values):
        return 0.0
    exact_ns = _common_divisor(values, zeros=bool((part == 0).any()))
    if len(values) > _MOST_VALUES:  # short durations and frequent ones show the step best
        often = np.argsort(-counts, kind="stable")[: _MOST_VALUES // 2]
        chosen = np.union1d(np.arange(_MOST_VALUES // 2), often)
        values, counts = values[chosen], counts[chosen]
    period_ns = _period(values, counts, _LEAST_IF_EXACT if exact_ns else _LEAST_MULTIPLES)
    return 1e-9 * (period_ns if period_ns > 1.5 * exact_ns else exact_ns)


def clock_step_of_counts_s(counts: np.ndarray) -> float:
    """Estimate the step of the clock from a histogram under the bin law.

    A step shows in bins that hold fewer or more multiples of it than their neighbours, or none. Only steps of
    known clocks are tested.

    Parameters
    ----------
    counts : ndarray of integers, shape (BIN_COUNT,)
        Number of calls in each bin.

    Returns
    -------
    float
        Seconds; 0.0: none.

    Notes
    -----
    Of the calls in three neighbouring bins, the expected share of the middle one is its share of their width
    for a fine clock, and its share of the multiples for a coarse clock. With three bins, a slope of the
    density cancels. The step with the largest log-likelihood ratio is taken, if that is at least half of its
    expectation for this step.
    """
    low_ns = bin_low_ns().astype(np.float64)
    width_ns = np.diff(low_ns, append=2.0**64)
    used = np.flatnonzero(counts[1:]) + 1
    if not len(used):
        return 0.0
    if counts[0] > _ZEROS * counts.sum():
        found = clock_step_of_counts_s(np.where(np.arange(BIN_COUNT) > 0, counts, 0))
        return found or float(bin_low_ns()[used[0]]) * 1e-9  # zeros are shorter than this
    near = np.unique(np.clip(np.add.outer(used, [-1, 0, 1]).reshape(-1), 1, BIN_COUNT - 3))
    calls, sides = counts[near], counts[near - 1] + counts[near + 1]
    fine = width_ns[near] / (width_ns[near - 1] + width_ns[near] + width_ns[near + 1])
    best_ns, most = 0.0, _LEAST_EVIDENCE
    for step_ns in _known_steps(low_ns[used[0]], low_ns[used[-1]])[::-1]:
        first, last = multiples_in_bins(step_ns)
        multiples = last - first + 1
        if _is_comb(counts, used, first, multiples):
            return float(step_ns * 1e-9)
        here, around = multiples[near], multiples[near - 1] + multiples[near + 1]
        told = (here + around > 0) & (here < _MOST_MULTIPLES_IN_A_BIN)
        share = np.clip(here[told] / (here[told] + around[told]), _STRAY, 1 - _STRAY)
        gain, loss = np.log(share / fine[told]), np.log((1 - share) / (1 - fine[told]))
        terms = calls[told] * gain + sides[told] * loss
        expected = (calls[told] + sides[told]) * (share * gain + (1 - share) * loss)
        order = np.argsort(-expected, kind="stable")[3:]  # a single mode is not a clock
        evidence = terms[order].sum()
        if (
            evidence > most
            and evidence > 0.5 * expected[order].sum()
            and _mostly(terms[order][expected[order] > 0.5] > 0)  # nor are few modes
            and _many(counts, multiples)
        ):
            best_ns, most = step_ns, evidence
    return best_ns * 1e-9


def _is_comb(counts: np.ndarray, used: np.ndarray, first: np.ndarray, multiples: np.ndarray) -> bool:
    """Return whether calls occur only in four or more consecutive bins with one multiple each."""
    calls = counts[used]
    main = used[calls >= 1e-3 * calls.sum()]
    if not _LEAST_IF_EXACT <= len(main) <= _MOST_MULTIPLE or (multiples[main] != 1).any():
        return False
    alone = (counts[main - 1] == 0) & (counts[main + 1] == 0)
    return bool(alone.all() and (np.diff(first[main]) == 1).all())


def _mostly(true: np.ndarray) -> bool:
    return len(true) > 0 and float(np.mean(true)) > 0.8


def multiples_in_bins(step_ns: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which multiples of a step, rounded to whole ns, each bin contains.

    Parameters
    ----------
    step_ns : float

    Returns
    -------
    first, last : ndarray of float64, shape (BIN_COUNT,)
        Integers; a bin with first > last contains none.
    """
    edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
    first = np.ceil((edges_ns - 0.5) / step_ns)
    first[0] = 0
    return first[:-1], first[1:] - 1


def _many(counts: np.ndarray, multiples: np.ndarray) -> bool:
    """Return whether many bins with multiples have calls, and most of them have neighbours with calls."""
    calls = counts[1:][multiples[1:] > 0]
    return _in_rows(np.arange(len(calls)), calls, _LEAST_MULTIPLES)


def _in_rows(number: np.ndarray, weight: np.ndarray, least: int) -> bool:
    """Return whether 90 % of the weight lie on many numbers, mostly with a neighbour.

    A clock has this property; a few modes that are multiples of each other do not.
    """
    order = np.argsort(-weight, kind="stable")
    some = int(np.searchsorted(np.cumsum(weight[order]), 0.9 * weight.sum())) + 1
    main = order[: max(least, some)]
    main = number[main[weight[main] > 0]]
    in_a_row = np.isin(main + 1, main) | np.isin(main - 1, main)
    return len(main) >= least and float(np.mean(in_a_row)) > 0.6


def _known_steps(least_ns: float, largest_ns: float) -> np.ndarray:
    """Return steps of known clocks in ns.

    These are round numbers, fractions of a second that are powers of two (times in floating point), and the
    periods of counters at 14.3, 19.2, 24 and 3.58 MHz.
    """
    decimal = np.outer(10.0 ** np.arange(0, 11), [1, 2, 2.5, 4, 5, 8]).reshape(-1)
    steps = np.concatenate(
        [decimal, 1e9 * 2.0 ** -np.arange(0, 29), 1e3 / np.array([14.31818, 19.2, 24, 3.579545])]
    )
    return np.sort(steps[(steps >= max(LEAST_STEP_NS, least_ns / 4096)) & (steps <= 0.4 * largest_ns)])


def _common_divisor(values: np.ndarray, zeros: bool) -> float:
    """Return the greatest common divisor of distinct whole ns; 0.0: it may be random.

    Durations of zero are multiples too.
    """
    step = float(np.gcd.reduce(values.astype(np.int64)))
    chance = step ** (1.0 - min(len(values) + zeros, 100))
    return step if step >= LEAST_STEP_NS and chance < _CHANCE else 0.0


def _period(values: np.ndarray, counts: np.ndarray, least: int) -> float:
    """Return the longest period in ns at whose multiples sorted values concentrate; 0.0: none."""
    median = values[np.searchsorted(np.cumsum(counts), 0.5 * counts.sum())]
    shortest = max(LEAST_STEP_NS, values[0] / _MOST_MULTIPLE)
    if median <= shortest:
        return 0.0
    steps = median * 2.0 ** -np.arange(0, np.log2(median / shortest), 1 / (8 * _MOST_MULTIPLE))
    best, most, until = 0.0, _LEAST_GATHERING, 0.0
    for step in steps:
        if best and step < until:
            break
        gathering = _gathering(values, counts, step, least)
        if gathering > most:
            best, most = step, gathering
            until = until or step * 0.97
    return _refined(values, counts, best) if best else 0.0


def _within(values: np.ndarray, step: float) -> slice:
    low, high = np.searchsorted(values, [0.5 * step, (_MOST_MULTIPLE + 0.5) * step])
    return slice(int(low), int(high))


def _gathering(values: np.ndarray, counts: np.ndarray, step: float, least: int) -> float:
    """Return the mean cosine of the angles, without the commonest multiple; −1: too few values."""
    seen = _within(values, step)
    if seen.stop - seen.start < least:
        return -1.0
    ratio = values[seen] / step
    multiple = np.rint(ratio)
    number = (multiple - multiple[0]).astype(np.int64)
    weight = np.bincount(number, counts[seen])
    total = weight.sum()
    if np.sum(weight >= max(2.0, 1e-3 * total)) < least or total < 0.2 * counts.sum():
        return -1.0
    if not _in_rows(np.arange(len(weight)), weight, least):
        return -1.0
    cosine = np.bincount(number, counts[seen] * np.cos(2 * np.pi * (ratio - multiple)))
    rest = np.arange(len(weight)) != np.argmax(weight)
    return float(min(cosine.sum() / total, cosine[rest].sum() / weight[rest].sum()))


def _refined(values: np.ndarray, counts: np.ndarray, step: float) -> float:
    """Refine the period by least squares."""
    for _ in range(4):
        seen = _within(values, step)
        multiple = np.rint(values[seen] / step)
        weight = counts[seen] * multiple * (np.abs(values[seen] / step - multiple) < 0.3)
        step = float(weight @ values[seen] / (weight @ multiple))
    return step
