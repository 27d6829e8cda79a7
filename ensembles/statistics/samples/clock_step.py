"""The step of the clock, as durations show it.

A clock that ticks in steps of a microsecond makes durations gather at whole microseconds. That is no property
of the calls, and must not look like one. The step is found from the durations themselves: the longest period
on whose multiples they gather. It need not be exact: times that went through a floating-point number, or were
printed with few digits, lie near the multiples and not on them."""

from __future__ import annotations

import numpy as np

from ensembles.summaries.bins import BIN_COUNT, bin_low_ns

LEAST_STEP_NS = 4.0
"""Shorter steps cannot be told from the rounding to whole ns."""

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
    """The step of the clock by which durations were taken.

    Parameters
    ----------
    durations_s : array of float, shape (n,)
        Seconds; what is not finite or not positive is not looked at. Of many, an evenly spread part is.

    Returns
    -------
    float
        Seconds; 0.0 where no step shows (a fine clock, a single value, calls much longer than the step).

    Notes
    -----
    The greatest common divisor of the durations in whole ns, where it is too large to be chance; and with it
    the longest period s about whose multiples they gather: a duration v has the phase 2 pi v / s, and the
    mean cosine of the phases is large (the test of uniformity against a known direction; Mardia and Jupp,
    Directional Statistics, 2000). Multiples must be many and in a row, so that three modes at t, 2t and 4t
    are no clock.
    """
    durations_s = np.asarray(durations_s, dtype=np.float64).reshape(-1)
    part = durations_s[:: max(1, len(durations_s) // _MOST_CALLS)]
    ns = np.rint(part[(part > 0) & (part < 2.0**53 * 1e-9)] * 1e9)
    values, counts = np.unique(ns[ns > 0], return_counts=True)
    if not len(values):
        return 0.0
    exact_ns = _common_divisor(values, zeros=bool((part == 0).any()))
    if len(values) > _MOST_VALUES:  # the short ones show the step best, and those that are hit often
        often = np.argsort(-counts, kind="stable")[: _MOST_VALUES // 2]
        chosen = np.union1d(np.arange(_MOST_VALUES // 2), often)
        values, counts = values[chosen], counts[chosen]
    period_ns = _period(values, counts, _LEAST_IF_EXACT if exact_ns else _LEAST_MULTIPLES)
    return 1e-9 * (period_ns if period_ns > 1.5 * exact_ns else exact_ns)


def clock_step_of_counts_s(counts: np.ndarray) -> float:
    """The step of the clock, from durations of which only the bins are known.

    It shows in bins that hold fewer or more whole steps than their neighbours, or none. Steps are looked for
    that clocks are known to have.

    Parameters
    ----------
    counts : ndarray of integers, shape (BIN_COUNT,)
        Calls in each bin of the law.

    Returns
    -------
    float
        Seconds; 0.0 where none shows.

    Notes
    -----
    Of the calls in three neighbouring bins, a share falls into the middle one that is its share of their
    width under a fine clock, and its share of their multiples of the step under a coarse one; with three
    bins, a slope of the density cancels. The step with the largest log-likelihood ratio is taken, if that is
    at least half of what it would be if the step were true.
    """
    low_ns = bin_low_ns().astype(np.float64)
    width_ns = np.diff(low_ns, append=2.0**64)
    used = np.flatnonzero(counts[1:]) + 1
    if not len(used):
        return 0.0
    if counts[0] > _ZEROS * counts.sum():
        found = clock_step_of_counts_s(np.where(np.arange(BIN_COUNT) > 0, counts, 0))
        return found or float(bin_low_ns()[used[0]]) * 1e-9  # what a zero is less than
    near = np.unique(np.clip(np.add.outer(used, [-1, 0, 1]).reshape(-1), 1, BIN_COUNT - 3))
    calls, sides = counts[near], counts[near - 1] + counts[near + 1]
    fine = width_ns[near] / (width_ns[near - 1] + width_ns[near] + width_ns[near + 1])
    best_ns, most = 0.0, _LEAST_EVIDENCE
    for step_ns in _known_steps(low_ns[used[0]], low_ns[used[-1]])[::-1]:
        first, last = multiples_in_bins(step_ns)
        multiples = last - first + 1
        if _is_comb(counts, used, first, multiples):
            return step_ns * 1e-9
        here, around = multiples[near], multiples[near - 1] + multiples[near + 1]
        told = (here + around > 0) & (here < _MOST_MULTIPLES_IN_A_BIN)
        share = np.clip(here[told] / (here[told] + around[told]), _STRAY, 1 - _STRAY)
        gain, loss = np.log(share / fine[told]), np.log((1 - share) / (1 - fine[told]))
        terms = calls[told] * gain + sides[told] * loss
        expected = (calls[told] + sides[told]) * (share * gain + (1 - share) * loss)
        order = np.argsort(-expected, kind="stable")[3:]  # one mode is no clock
        evidence = terms[order].sum()
        if (
            evidence > most
            and evidence > 0.5 * expected[order].sum()
            and _mostly(terms[order][expected[order] > 0.5] > 0)  # nor are a few
            and _many(counts, multiples)
        ):
            best_ns, most = step_ns, evidence
    return best_ns * 1e-9


def _is_comb(counts: np.ndarray, used: np.ndarray, first: np.ndarray, multiples: np.ndarray) -> bool:
    """Whether calls are only in bins that hold one multiple, four or more in a row, and none beside."""
    calls = counts[used]
    main = used[calls >= 1e-3 * calls.sum()]
    if not _LEAST_IF_EXACT <= len(main) <= _MOST_MULTIPLE or (multiples[main] != 1).any():
        return False
    alone = (counts[main - 1] == 0) & (counts[main + 1] == 0)
    return bool(alone.all() and (np.diff(first[main]) == 1).all())


def _mostly(true: np.ndarray) -> bool:
    return len(true) > 0 and float(np.mean(true)) > 0.8


def multiples_in_bins(step_ns: float) -> tuple[np.ndarray, np.ndarray]:
    """Which multiples of a step, rounded to whole ns, fall into each bin of the law.

    Returns
    -------
    first, last : ndarray of float64, shape (BIN_COUNT,)
        Whole numbers; a bin with first > last has none.
    """
    edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
    first = np.ceil((edges_ns - 0.5) / step_ns)
    first[0] = 0
    return first[:-1], first[1:] - 1


def _many(counts: np.ndarray, multiples: np.ndarray) -> bool:
    """Whether many bins that hold multiples are used, and most of them have neighbours that are."""
    calls = counts[1:][multiples[1:] > 0]
    return _in_rows(np.arange(len(calls)), calls, _LEAST_MULTIPLES)


def _in_rows(number: np.ndarray, weight: np.ndarray, least: int) -> bool:
    """Whether nine tenths of the weight lie on many numbers, most of which have a neighbour among them: so
    does what a clock makes, and not a few modes that are multiples of each other."""
    order = np.argsort(-weight, kind="stable")
    some = int(np.searchsorted(np.cumsum(weight[order]), 0.9 * weight.sum())) + 1
    main = order[: max(least, some)]
    main = number[main[weight[main] > 0]]
    in_a_row = np.isin(main + 1, main) | np.isin(main - 1, main)
    return len(main) >= least and float(np.mean(in_a_row)) > 0.6


def _known_steps(least_ns: float, largest_ns: float) -> np.ndarray:
    """Steps of clocks, ns: round numbers, and fractions of a second that are powers of two (times in
    floating-point numbers); further those of counters at 14.3, 19.2, 24 and 3.58 MHz."""
    decimal = np.outer(10.0 ** np.arange(0, 11), [1, 2, 2.5, 4, 5, 8]).reshape(-1)
    steps = np.concatenate(
        [decimal, 1e9 * 2.0 ** -np.arange(0, 29), 1e3 / np.array([14.31818, 19.2, 24, 3.579545])]
    )
    return np.sort(steps[(steps >= max(LEAST_STEP_NS, least_ns / 4096)) & (steps <= 0.4 * largest_ns)])


def _common_divisor(values: np.ndarray, zeros: bool) -> float:
    """The greatest common divisor of different whole numbers of ns; 0.0 if it may be chance. Durations of
    zero are multiples too."""
    step = float(np.gcd.reduce(values.astype(np.int64)))
    chance = step ** (1.0 - min(len(values) + zeros, 100))
    return step if step >= LEAST_STEP_NS and chance < _CHANCE else 0.0


def _period(values: np.ndarray, counts: np.ndarray, least: int) -> float:
    """The longest period on whose multiples values gather, ns; 0.0: none. Values are sorted."""
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
    """Mean cosine of the phases, without the multiple that most calls are near to; −1: too little to see."""
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
    """The period that fits best, by least squares."""
    for _ in range(4):
        seen = _within(values, step)
        multiple = np.rint(values[seen] / step)
        weight = counts[seen] * multiple * (np.abs(values[seen] / step - multiple) < 0.3)
        step = float(weight @ values[seen] / (weight @ multiple))
    return step
