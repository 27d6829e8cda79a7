"""Requests that begin off a boundary of the file system."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.callsums import operations_of_transfers


class Alignment(Summary):
    """A mergeable summary: how many reads and writes begin at a multiple of their file's boundary.

    `known`: by layer and operation (``posix write``): requests of at least one byte with a known offset in a
    file with a known boundary.
    `misaligned`: those of them whose offset is not a multiple of the boundary.
    `crossing`: those of them that would fit between two boundaries, and touch both sides of one.

    Examples
    --------
    >>> from functools import partial
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.alignment import Alignment
    >>> found = en.open("ensio-ior").summarize(ignoring_run(partial(Alignment, 1 << 20)))
    >>> found.known, found.misaligned
    ({'posix read': 160, 'posix write': 160}, {'posix read': 0, 'posix write': 0})
    """

    of_all_calls = True
    columns = ("call", "file", "offset", "requested")
    requires = ANY_ORDER

    def __init__(self, boundary_bytes: int | np.ndarray) -> None:
        self._boundary = np.asarray(boundary_bytes, np.int64)
        self.known: dict[str, int] = {}
        self.misaligned: dict[str, int] = {}
        self.crossing: dict[str, int] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        names, number_of = operations_of_transfers(chunk.calls)
        key = number_of[chunk.call]
        boundary = self._boundary if self._boundary.ndim == 0 else self._boundary[chunk.file]
        mine = (key < len(names)) & (chunk.offset >= 0) & (chunk.requested > 0) & (boundary > 0)
        if not mine.any():
            return
        key, offset, size = key[mine], chunk.offset[mine], chunk.requested[mine].astype(np.int64)
        step = np.broadcast_to(boundary, mine.shape)[mine]
        within = offset % step
        for counts, chosen in (
            (self.known, np.ones(len(key), bool)),
            (self.misaligned, within != 0),
            (self.crossing, (size <= step) & (size > step - within)),
        ):
            for number, count in enumerate(np.bincount(key[chosen], minlength=len(names)).tolist()):
                if count or names[number] in self.known:
                    counts[names[number]] = counts.get(names[number], 0) + count

    def merge(self, other: Alignment) -> None:
        """Add the counts of other events of the same run."""
        for mine, others in (
            (self.known, other.known),
            (self.misaligned, other.misaligned),
            (self.crossing, other.crossing),
        ):
            for name, count in others.items():
                mine[name] = mine.get(name, 0) + count

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``known``, ``misaligned`` and ``crossing``, in the order of `known`."""
        columns = {"known": self.known, "misaligned": self.misaligned, "crossing": self.crossing}
        return {
            name: np.array([counts.get(key, 0) for key in self.known], np.int64)
            for name, counts in columns.items()
        }
