"""Loops in the sequence of calls of a task: parts that come again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST_RUNS = 16
"""Longest body of a loop: runs of equal calls."""

MOST_LOOPS = 24
"""Loops of a task that are distinguished; what follows is one more."""


class Loop(NamedTuple):
    """A part of a sequence.

    Attributes
    ----------
    times : int
        How often the body comes.
    body : tuple of (int, int)
        Token, and how often it comes in a row. Empty: no repetition was found in the rest of the sequence.
    begin, end : int
        Positions in the sequence, the end excluded.
    """

    times: int
    body: tuple[tuple[int, int], ...]
    begin: int
    end: int


def find_loops(tokens: np.ndarray, most: int = MOST_LOOPS) -> list[Loop]:
    """Divide a sequence into loops, greedily from its start.

    Parameters
    ----------
    tokens : ndarray of int64, shape (n,)

    Examples
    --------
    >>> from ensembles.structure.access.loops import find_loops
    >>> loops = find_loops(np.array([7, 7, 7, 1, 2, 2, 1, 2, 2]))
    >>> [(loop.times, loop.body) for loop in loops]
    [(3, ((7, 1),)), (2, ((1, 1), (2, 2)))]

    A loop that ends with another call is not unrolled; callers find loops of loops:

    >>> loops = find_loops(np.tile([1, 2, 1, 2, 1, 2, 5], 2))
    >>> [(loop.times, loop.body) for loop in loops][:2]
    [(3, ((1, 1), (2, 1))), (1, ((5, 1),))]
    """
    if not len(tokens):
        return []
    begin = np.flatnonzero(np.r_[True, np.diff(tokens) != 0])
    count = np.diff(np.r_[begin, len(tokens)])
    token = tokens[begin]
    ends = np.r_[begin, len(tokens)]
    runs = len(begin)
    all_times, periods = _longest(token, count)
    loops: list[Loop] = []
    at = 0
    while at < runs and len(loops) < most:
        times, period = int(all_times[at]), int(periods[at])
        if times == 1:
            loops.append(Loop(int(count[at]), ((int(token[at]), 1),), int(begin[at]), int(ends[at + 1])))
            at += 1
            continue
        body = tuple(zip(token[at : at + period].tolist(), count[at : at + period].tolist(), strict=True))
        after = at + times * period
        loops.append(Loop(times, body, int(begin[at]), int(ends[after])))
        at = after
    if at < runs:
        loops.append(Loop(1, (), int(begin[at]), len(tokens)))
    return loops


def _longest(token: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how often a body comes from each run on, and how many runs it has."""
    runs = len(token)
    times, period = np.ones(runs, np.int32), np.ones(runs, np.int32)
    covered = np.ones(runs, np.int32)
    number = np.unique(token * (int(count.max()) + 1) + count, return_inverse=True)[1].astype(np.int32)
    for each in range(2, min(MOST_RUNS, runs // 2) + 1):
        reach = _reach(number, each)
        at = np.flatnonzero(reach >= each)
        repeats = reach[at] // each + 1
        # A loop covers more than the one before it, or as much with a shorter body; and its body is not that
        # of a loop with other calls before or after it.
        inner = np.cumsum(np.r_[0, (times > 1) & (covered >= 4) & (3 * covered >= each)])
        longer = (repeats * each > covered[at]) & (inner[at + each] == inner[at])
        at, repeats = at[longer], repeats[longer]
        times[at], period[at], covered[at] = repeats, each, repeats * each
    return times, period


def _reach(number: np.ndarray, period: int) -> np.ndarray:
    """Return from each run on how many runs in a row equal those a period later."""
    differs = number[:-period] != number[period:]
    stops = np.r_[np.flatnonzero(differs), len(differs)]
    found: np.ndarray = stops[np.cumsum(differs) - differs] - np.arange(len(differs))
    return found
