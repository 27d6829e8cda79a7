"""Loops in the sequence of calls of a task: parts that come again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST_RUNS = 8
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


def find_loops(tokens: np.ndarray) -> list[Loop]:
    """Divide a sequence into loops, greedily from its start.

    Parameters
    ----------
    tokens : ndarray of int64, shape (n,)

    Returns
    -------
    list of Loop
        Consecutive; at most `MOST_LOOPS` + 1.

    Examples
    --------
    >>> from ensembles.structure.access.loops import find_loops
    >>> loops = find_loops(np.array([7, 7, 7, 1, 2, 2, 1, 2, 2]))
    >>> [(loop.times, loop.body) for loop in loops]
    [(3, ((7, 1),)), (2, ((1, 1), (2, 2)))]
    """
    if not len(tokens):
        return []
    begin = np.flatnonzero(np.r_[True, np.diff(tokens) != 0])
    count = np.diff(np.r_[begin, len(tokens)])
    token = tokens[begin]
    ends = np.r_[begin, len(tokens)]
    runs = len(begin)
    reach = [_reach(token, count, period) for period in range(2, min(MOST_RUNS, runs // 2) + 1)]
    loops: list[Loop] = []
    at = 0
    while at < runs and len(loops) < MOST_LOOPS:
        times, period = 1, 1
        for each, matches in enumerate(reach, 2):
            repeats = int(matches[at]) // each + 1 if at < len(matches) else 1
            # A loop covers more than the one before it, or as much with a shorter body.
            if repeats > 1 and repeats * each > times * period:
                times, period = repeats, each
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


def _reach(token: np.ndarray, count: np.ndarray, period: int) -> np.ndarray:
    """Return from each run on how many runs in a row equal those a period later."""
    same = (token[:-period] == token[period:]) & (count[:-period] == count[period:])
    differs = np.flatnonzero(~same)
    following = np.searchsorted(differs, np.arange(len(same)))
    stops = np.r_[differs, len(same)][following]
    found: np.ndarray = stops - np.arange(len(same))
    return found
