"""Calls with what encloses them: rows of a thread are held back until the outermost call around them is "
"complete."""

from __future__ import annotations

import numpy as np

Rows = dict[str, np.ndarray]
"""Columns of one length; ``rank``, ``thread``, ``depth``, ``start`` and ``duration`` are among them."""


class Enclosing:
    """A finder of the calls around calls, over the chunks of a run.

    The calls of a thread come in the order of completion, so that the call around them follows. All chunks of
    a thread must come to the same object, in their order.

    Examples
    --------
    A write inside another call, which completes later:

    >>> from ensembles.diagnosis.enclosing import Enclosing
    >>> rows = {"rank": [0, 0], "thread": [0, 0], "depth": [1, 0], "start": [3, 0]}
    >>> rows = {name: np.array(column) for name, column in rows.items()}
    >>> rows |= {"duration": np.array([4, 10]), "flags": np.array([0, 8])}
    >>> found = Enclosing().complete(rows)
    >>> found["parent"].tolist(), found["around"].tolist(), found["own_ns"].tolist()
    ([1, -1], [8, 0], [4, 6])
    """

    def __init__(self) -> None:
        self._held: Rows | None = None

    @property
    def waits(self) -> bool:
        """Whether calls are held back."""
        return self._held is not None

    def complete(self, rows: Rows, last: bool = False) -> Rows:
        """Return the rows whose enclosing calls are all known, with what was found.

        Parameters
        ----------
        rows : dict of str to ndarray, shape (n,)
            The next calls, with the column ``flags`` (bits).
        last : bool
            There are no more: rows that wait for an enclosing call have none.

        Returns
        -------
        dict of str to ndarray
            The columns, sorted by rank and thread, and ``parent`` (position of the next enclosing call, or
            -1), ``around`` (flags of all enclosing calls) and ``own_ns`` (duration without enclosed calls).
        """
        if self._held is None and not rows["depth"].any():
            n = len(rows["depth"])
            return rows | {
                "parent": np.full(n, -1),
                "around": np.zeros(n, np.int64),
                "own_ns": rows["duration"],
            }
        if self._held is not None:
            rows = {name: np.concatenate([held, rows[name]]) for name, held in self._held.items()}
        key = (rows["rank"].astype(np.int64) << 16) | rows["thread"]
        order = np.argsort(key, kind="stable")
        rows, key = {name: column[order] for name, column in rows.items()}, key[order]
        found, waits = _find(rows, key)
        # No thread of a rank that is over goes on.
        waits &= (rows["rank"] == rows["rank"].max(initial=0)) & (not last)
        self._held = {name: rows[name][waits] for name in rows} if waits.any() else None
        if not waits.any():
            return rows | found
        place = np.cumsum(~waits) - 1
        found["parent"] = np.where(found["parent"] >= 0, place[found["parent"]], -1)
        return {name: column[~waits] for name, column in (rows | found).items()}


def _find(rows: Rows, key: np.ndarray) -> tuple[Rows, np.ndarray]:
    depth, start = rows["depth"], rows["start"]
    parent, around = np.full(len(key), -1), np.zeros(len(key), np.int64)
    waits = np.zeros(len(key), bool)
    for level in range(1, int(depth.max(initial=0)) + 1):
        inner, outer = np.flatnonzero(depth == level), np.flatnonzero(depth < level)
        if not len(inner):
            continue
        place = np.searchsorted(outer, inner)
        after = outer[np.minimum(place, len(outer) - 1)] if len(outer) else np.zeros(len(inner), np.int64)
        follows = (place < len(outer)) & (key[after] == key[inner])
        waits[inner] = ~follows | waits[after]
        # A call that began later is not around it: that one was not recorded.
        holds = follows & (start[after] <= start[inner])
        parent[inner] = np.where(holds, after, -1)
        around[inner] = np.where(holds, rows["flags"][after] | around[after], 0)
    own = rows["duration"].copy()
    inside = np.flatnonzero(parent >= 0)
    np.subtract.at(own, parent[inside], rows["duration"][inside])
    return {"parent": parent, "around": around, "own_ns": np.maximum(own, 0)}, waits
