"""Loops in the sequence of calls of a task: parts that come again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.model.events import OPS
from ensembles.model.levels import MOST_PIECES
from ensembles.model.units import bytes_text
from ensembles.summaries.keyed_sums import groups_of_rows

MOST_RUNS = 16
"""Longest body of a loop: runs of equal calls."""

MOST_LOOPS = 24
"""Loops of a task that are distinguished; what follows is one more."""


class Loop(NamedTuple):
    """A part of a sequence."""

    times: int  # How often the body comes
    # Token, and how often it comes in a row. Empty: no repetition was found in the rest of the sequence.
    body: tuple[tuple[int, int], ...]
    # begin, end: Positions in the sequence, the end excluded
    begin: int
    end: int


def find_loops(tokens: np.ndarray, most: int = MOST_LOOPS) -> list[Loop]:
    """Divide a sequence into loops, greedily from its start."""
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


READ, WRITE, SEEK, SYNC = (OPS.index(op) for op in ("read", "write", "seek", "sync"))
"""Operations of which patterns are made."""

MOST_SIZES = 16
"""Sizes of an operation of a task that are distinguished; of more, octaves are."""

VARIED = "varied"


class Tokens(NamedTuple):
    """The calls of a task as numbers."""

    token: np.ndarray
    steps: list[tuple[int, int, int]]  # Of each token: operation, smallest and largest size in bytes
    labels: list[tuple[int, str]]  # Of each token: operation, and its size as tasks are compared by it


def tokens_of(op: np.ndarray, asked: np.ndarray, size: np.ndarray, by_size: bool = True) -> Tokens:
    """Number the calls of a task by operation and what they ask for; seeks and syncs have no size.

    Examples
    --------
    >>> from ensembles.structure.access.loops import WRITE, tokens_of
    >>> sizes = np.array([2413, 64, 2414, 64])
    >>> found = tokens_of(np.full(4, WRITE), sizes, sizes)
    >>> found.token, found.labels
    (array([1, 0, 1, 0]), [(1, '64 B'), (1, '2.36 KiB')])
    """
    size = np.where((op == READ) | (op == WRITE), size, 0)
    kind = np.zeros(len(op), np.int64)
    octaves: set[int] = set()
    for each in (READ, WRITE):
        mine = op == each
        if not mine.any() or not by_size:
            continue
        kind[mine], is_octave = _kinds(asked[mine], size[mine])
        if is_octave:
            octaves.add(each)
    token, first = numbered([op, kind])
    low, high = np.full(len(first), 1 << 62), np.zeros(len(first), np.int64)
    np.minimum.at(low, token, size)
    np.maximum.at(high, token, size)
    steps, labels = [], []
    for at, (which, least, most) in enumerate(
        zip(op[first].tolist(), low.tolist(), high.tolist(), strict=True)
    ):
        if which in octaves:
            exponent = int(kind[first[at]])
            least, most = (1 << exponent - 1 if exponent else 0), (1 << exponent) - 1
        alike = bytes_text(least) == bytes_text(most)
        octave = f"{least} to {most}" if which in octaves else VARIED
        steps.append((which, least, most))
        labels.append((which, bytes_text(least) if alike else octave))
    return Tokens(token, steps, labels)


def _kinds(asked: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, bool]:
    """Number sizes asked for by their text; sizes by octaves, and True, if there are too many."""
    sizes, where = np.unique(asked, return_inverse=True)
    if len(sizes) <= MOST_PIECES:
        texts: dict[str, int] = {}
        kinds = np.array([texts.setdefault(bytes_text(each), len(texts)) for each in sizes.tolist()])
        if len(texts) <= MOST_SIZES:
            return kinds[where], False
    return np.frexp(size.astype(np.float64))[1].astype(np.int64), True


def numbered(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number rows by their keys, in the order of the keys; return the first row of each number too."""
    if not len(keys[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    group, first = groups_of_rows([np.asarray(key, np.int64) for key in keys])
    order = np.lexsort([key[first] for key in reversed(keys)])
    return np.argsort(order)[group], first[order]
