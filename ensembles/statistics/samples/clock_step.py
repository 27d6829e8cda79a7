"""Estimate the step of the clock from durations, where neither recorder nor reader states it.

Durations concentrate at multiples of it, which are not modes (docs/reference/methods/modes.md, Clock).
"""

from __future__ import annotations

import numpy as np

from ensembles.model.levels import FEWEST_ALONE, MOST_DENSE, MOST_SEEN, RARE
from ensembles.summaries.bins import BIN_COUNT, bin_low_ns

LEAST_STEP_NS = 4.0
"""Shorter steps cannot be distinguished from the rounding to whole ns."""

_MOST_MULTIPLE = 24
_LEAST_MULTIPLES = 6
_LEAST_IF_EXACT = 4
_LEAST_BESIDE = 30
"""Number of calls that are not at the commonest multiple."""
_NEAR = 0.26
"""Distance from a multiple of a step, in steps, of the difference of two times rounded to a quarter of it."""
_LONGEST_NS = 2e4
"""Longer durations have ticks that are narrower than their bins."""
_TOGETHER = 0.8
_ROUNDING = 1.05
"""Error of the difference of two times in whole ns."""
_CHANCE = 1e-4
_LEAST_EVIDENCE = 12.0
_STRAY = 0.02


def clock_step_s(durations_s: np.ndarray) -> float:
    """Estimate the step of the clock from durations.

    All of them have to be its multiples, to the rounding that made them: the greatest common divisor in whole
    ns, a fraction 2^-k of a second, a round step above such a fraction, or, of short durations, a tick of a
    fractional number of ns.
    """
    durations_s = np.asarray(durations_s, dtype=np.float64).reshape(-1)
    part = durations_s[:: max(1, len(durations_s) // MOST_SEEN)]
    ns = np.rint(part[(part > 0) & (part < 2.0**53 * 1e-9)] * 1e9)
    values, counts = np.unique(ns[ns > 0], return_counts=True)
    if not len(values):
        return 0.0
    zeros = int((part == 0).sum())
    fine_ns = _common_divisor(values, zeros=zeros > 0) or _binary_fraction(values)
    if fine_ns:
        some, calls = (np.append(0.0, values), np.append(zeros, counts)) if zeros else (values, counts)
        return 1e-9 * (_round_step_above(some, calls, fine_ns) or fine_ns)
    return 1e-9 * _tick(values, counts)


def clock_step_of_counts_s(counts: np.ndarray) -> float:
    """Estimate the step of the clock from a histogram under the bin law.

    Of the calls in three neighbouring bins, the middle one has its share of their width by a fine clock, and
    its share of the multiples by a coarse one. The known step with the largest log-likelihood ratio is taken,
    if that is at least half of its expectation.
    """
    low_ns = bin_low_ns().astype(np.float64)
    width_ns = np.diff(low_ns, append=2.0**64)
    used = np.flatnonzero(counts[1:]) + 1
    if not len(used):
        return 0.0
    if counts[0] > RARE * counts.sum():
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
        told = (here + around > 0) & (here < _MOST_MULTIPLE)
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
    """Return which multiples of a step, rounded to whole ns, each bin contains."""
    edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
    first = np.ceil((edges_ns - 0.5) / step_ns)
    first[0] = 0
    return first[:-1], first[1:] - 1


def _many(counts: np.ndarray, multiples: np.ndarray) -> bool:
    """Return whether many bins with multiples have calls, and most of them have neighbours with calls."""
    calls = counts[1:][multiples[1:] > 0]
    return _in_rows(np.arange(len(calls)), calls, _LEAST_MULTIPLES)


def _in_rows(number: np.ndarray, weight: np.ndarray, least: int) -> bool:
    """Return whether 90 % of the weight lie on many numbers, mostly with a neighbour."""
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
    """Return the greatest common divisor of distinct whole ns; 0.0: it may be random."""
    step = float(np.gcd.reduce(values.astype(np.int64)))
    chance = step ** (1.0 - min(len(values) + zeros, 100))
    return step if step >= LEAST_STEP_NS and chance < _CHANCE else 0.0


def _binary_fraction(values: np.ndarray) -> float:
    """Return the largest fraction 2^-k of a second, in ns, of which all values are multiples; 0.0: none."""
    for step in 1e9 * 2.0 ** -np.arange(8, 27):
        likely = len(values) * np.log(3 / step) < np.log(_CHANCE)
        if likely and len(values) >= _LEAST_IF_EXACT and _residual(values, step).max() <= 1.0:
            return float(step)
    return 0.0


def _round_step_above(values: np.ndarray, counts: np.ndarray, fine_ns: float) -> float:
    """Return the largest round step whose multiples all values are near; 0.0: none.

    Calls lie at three or more successive multiples, and none between these.
    """
    decimal = np.outer(10.0 ** np.arange(1, 8), [1, 2, 4, 5]).reshape(-1)
    for step in np.sort(decimal[decimal > 2 * fine_ns])[::-1]:
        if _residual(values, step).max() > _NEAR * step:
            continue
        multiple = np.rint(values / step)
        if multiple[-1] - multiple[0] > MOST_SEEN:
            continue
        calls = np.bincount((multiple - multiple[0]).astype(np.int64), counts)
        if _in_rows(np.arange(len(calls)), calls, 3) and calls.sum() - calls.max() >= _LEAST_BESIDE:
            return float(step)
    return 0.0


def _tick(values: np.ndarray, counts: np.ndarray) -> float:
    """Return the longest tick in ns of which short values are multiples, to the rounding; 0.0: none."""
    values, counts = values[values <= _LONGEST_NS], counts[values <= _LONGEST_NS]
    often = np.sort(np.argsort(-counts, kind="stable")[: MOST_DENSE // 2])
    values, counts = values[often], counts[often]
    if len(values) < FEWEST_ALONE:
        return 0.0
    middle = float(np.median(values))
    apart = values - middle  # the angle of the middle is free, so that a coarse grid of ticks suffices
    reach = float(np.abs(apart).max())
    number = np.arange(1.0 / min(middle / 2, 1e3), 1.0 / LEAST_STEP_NS, 0.125 / reach)
    for frequency in number:
        step = 1.0 / frequency
        if abs(np.exp(2j * np.pi * frequency * apart) @ counts) < _TOGETHER * counts.sum():
            continue
        for multiple in np.rint(middle / step) + np.array([0.0, -1.0, 1.0]):
            refined = _refined(values, counts, middle / max(multiple, 1.0))
            likely = len(values) * np.log(2 * _ROUNDING / refined) < np.log(_CHANCE * LEAST_STEP_NS / reach)
            if likely and _residual(values, refined).max() <= _ROUNDING and refined >= LEAST_STEP_NS:
                return refined
    return 0.0


def _residual(values: np.ndarray, step: float) -> np.ndarray:
    """Return the distances to the nearest multiples."""
    distance: np.ndarray = np.abs(values - step * np.rint(values / step))
    return distance


def _refined(values: np.ndarray, counts: np.ndarray, step: float) -> float:
    """Refine a step by least squares."""
    for _ in range(4):
        multiple = np.rint(values / step)
        weight = counts * multiple
        step = float(weight @ values / max(weight @ multiple, 1e-300))
    return step
