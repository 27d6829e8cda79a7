"""Columns that readers fill: plausible values, and memory that successive chunks reuse.

All readers reject values outside of `LIMITS`, because sums that include them would be meaningless.

Events that are sorted by rank and start are put into the order of completion. In this order, in which the
recorder stores events, inner calls come before the call around them. Summaries need it to find the calls
inside a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.model.events import COLUMNS
from ensembles.model.units import HALF_INT64
from ensembles.passes.memory import held_elsewhere

LARGEST_NS = 1 << 58
"""Largest plausible time, ns (nine years). Sums of a few of them fit into 64 bits."""

LARGEST_MOVED_BYTES = 1 << 50
"""Largest plausible number of bytes of a call. Linux moves less than 2**31 bytes in one call."""


LIMITS = {
    "moved": (-1, LARGEST_MOVED_BYTES),
    "start": (-LARGEST_NS, HALF_INT64 + LARGEST_NS),
    "duration": (0, LARGEST_NS),
    "flight": (-1, LARGEST_NS),
}
"""Smallest and largest value of each column."""


def unsound(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Test which rows have a value outside of `LIMITS`, or of calls that move more than they ask for.

    None: all values are possible.

    Examples
    --------
    >>> import numpy as np
    >>> unsound({"moved": np.array([4096, -7]), "duration": np.array([0, 10])})
    array([False,  True])
    """
    limits = [(columns[name], *ends) for name, ends in LIMITS.items() if len(columns.get(name, ()))]
    kinds = [(each < least) | (each > most) for each, least, most in limits]
    if "requested" in columns:
        asked = columns["requested"].view("i8")
        kinds.append((asked > 0) & (columns["moved"] > asked))
    found = np.logical_or.reduce(kinds) if kinds else np.zeros(0, bool)
    return found if found.any() else None


class ReusedColumns:
    """Columns for successive chunks that reuse their memory unless a caller still holds a column.

    The kernel clears and maps new memory page by page, which takes as long as decoding.
    """

    def __init__(self, length: int, names: Sequence[str] | None) -> None:
        self._length, self._names = length, names
        self._last: dict[str, np.ndarray] = {}

    def taken(self) -> dict[str, np.ndarray]:
        """Return columns with undefined values."""
        if not self._last or held_elsewhere(self._last):
            self._last = empty_columns(self._length, self._names)
        return self._last


def empty_columns(length: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Allocate undefined columns of events, with those that decoding needs. Default: all."""
    if names is None:
        return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items()}
    needed = {*names, "call", "start", "duration"} | ({"error"} if "moved" in names else set())
    return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items() if name in needed}


NEEDED = frozenset(("rank", "thread", "depth", "start", "duration"))
"""Columns that determine the order."""


class CompletionOrder:
    """Reorder events chunk by chunk, so that each call comes after the calls inside it.

    A call that may contain calls of the next chunk is kept until then: at most one per thread and depth.
    Calls that are neither inside another call nor contain one remain in the order of their start.
    """

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] | None = None

    def put(
        self, columns: Mapping[str, np.ndarray], next_key: tuple[int, int] | None
    ) -> dict[str, np.ndarray]:
        """Add the next chunk, and return the calls whose inner calls are all known.

        `next_key`: rank and start of the first call of the next chunk; None: no chunk follows directly.
        """
        if self._kept is not None:
            columns = {name: np.concatenate([self._kept[name], column]) for name, column in columns.items()}
            self._kept = None
        columns = dict(columns)
        rank, start, depth = columns["rank"], columns["start"], columns["depth"]
        open_rows = np.empty(0, np.int64)
        if next_key is not None and len(rank) and rank[-1] == next_key[0]:
            low = int(np.searchsorted(rank, rank[-1]))
            end = start[low:] + columns["duration"][low:]
            open_rows = low + np.flatnonzero(end > next_key[1])
        if not depth.any() and not len(open_rows):
            return columns
        order, following = _order_by_completion(columns)
        open_rows = open_rows[following[open_rows] < 0]
        if len(open_rows):
            self._kept = {name: column[open_rows] for name, column in columns.items()}
            stays = np.ones(len(rank), bool)
            stays[open_rows] = False
            order = order[stays[order]]
        return {name: column[order] for name, column in columns.items()}


def _order_by_completion(columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in order of completion, and for each row the next one that is not deeper (-1: none)."""
    n = len(columns["rank"])
    key = (columns["rank"].astype(np.int64) << 16) | columns["thread"]
    by_thread = np.arange(n) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
    key = key[by_thread]
    depth, start = columns["depth"][by_thread], columns["start"][by_thread]
    limit = np.searchsorted(key, key, "right") if n else np.empty(0, np.int64)
    following = np.full(n, n)
    for level in np.flatnonzero(np.bincount(depth)).tolist():
        mine, no_deeper = np.flatnonzero(depth == level), np.flatnonzero(depth <= level)
        place = np.searchsorted(no_deeper, mine, "right")
        found = place < len(no_deeper)
        following[mine[found]] = no_deeper[place[found]]
    # Calls inside a call come before the next one that is not deeper, and start before the end of the call.
    until = np.minimum(following, limit)
    around = np.flatnonzero(until > np.arange(n) + 1)
    end = start[around] + columns["duration"][by_thread][around]
    last = np.arange(n)
    last[around] = _first_not_before(start, around + 1, until[around], end) - 1
    last_row = np.empty(n, np.int64)
    last_row[by_thread] = by_thread[last]
    order = np.argsort(last_row << 8 | (255 - columns["depth"].astype(np.int64)), kind="stable")
    ends = following >= limit
    next_row = np.empty(n, np.int64)
    next_row[by_thread] = np.where(ends, -1, by_thread[np.where(ends, 0, following)])
    return order, next_row


def _first_not_before(start: np.ndarray, low: np.ndarray, high: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Find in each range `low` to `high` of ascending starts the first position not before `time`."""
    low, high = low.copy(), high.copy()
    while (searching := low < high).any():
        middle = (low + high) // 2
        before = searching & (start[np.minimum(middle, len(start) - 1)] < time)
        low = np.where(before, middle + 1, low)
        high = np.where(searching & ~before, middle, high)
    return low
