"""What the chunks of a ``trace.h5`` hold: functions, files and sizes of requests.

The rows that are read prove the index (`ensembles.readers.tracefile.index`). What chunks hold cannot be
proved without reading them. Therefore it is one of the kept results of the file, with a checksum over the
identity of the run: if any part of the file differs from what was written, all chunks are read.
"""

from __future__ import annotations

import numpy as np

from ensembles.passes.reading import Contents

KEY = "2 ensembles.readers.tracefile.contents"
"""Key of the kept result (`ensembles.passes.kept.seal`), with the version of its meaning."""


class ChunkContents:
    """What each chunk holds.

    `spans_ns`: earliest start and latest end of the calls of the first rank in a chunk, and of those of its
    other ranks, ns; the end is before the start if there are none. A chunk that begins with the end of a rank
    and ends with the beginning of the next one has no calls between these. Default: there are no chunks.

    Examples
    --------
    >>> from ensembles.passes.reading import Contents
    >>> from ensembles.readers.tracefile.contents import ChunkContents
    >>> sizes = np.array([4096, 8192], "u8")
    >>> calls, files = np.array([1, 2], "u8"), np.array([2, 2], "u8")
    >>> chunks = ChunkContents(1024, np.array([[0, 5], [9, 30], [1, 1], [0, 0]]), calls, files, sizes, sizes)
    >>> chunks.matching(Contents(calls=0b10, sizes=((0, 8192),)))
    array([False,  True])
    """

    results = ("rows", "spans_ns", "calls", "files", "least_bytes", "most_bytes", "places")

    def __init__(
        self,
        rows: int = 0,
        spans_ns: np.ndarray | None = None,
        calls: np.ndarray | None = None,
        files: np.ndarray | None = None,
        least_bytes: np.ndarray | None = None,
        most_bytes: np.ndarray | None = None,
        places: dict[str, np.ndarray] | None = None,
    ) -> None:
        self.rows = rows
        self.spans_ns = np.empty((4, 0), np.int64) if spans_ns is None else spans_ns
        none = np.empty(0, np.uint64)
        self.calls = none if calls is None else calls
        self.files = none if files is None else files
        self.least_bytes = none if least_bytes is None else least_bytes
        self.most_bytes = none if most_bytes is None else most_bytes
        self.places = {} if places is None else places

    def fit(self, rows: int, chunks: int) -> bool:
        """Whether these are the contents of so many chunks of so many rows."""
        columns = (self.calls, self.files, self.least_bytes, self.most_bytes)
        return (
            self.rows == rows
            and self.spans_ns.shape == (4, chunks)
            and all(len(column) == chunks for column in columns)
            and all(places.shape == (2, chunks) for places in self.places.values())
        )

    def matching(self, wanted: Contents) -> np.ndarray:
        """Select the chunks that may hold wanted events."""
        found = np.ones(len(self.calls), bool)
        for held, bits in ((self.calls, wanted.calls), (self.files, wanted.files)):
            if bits is not None:
                found &= (held & np.uint64(bits)) != 0
        if wanted.sizes is not None:
            some = np.zeros(len(found), bool)
            for low, high in wanted.sizes:
                some |= (self.least_bytes <= _size(high)) & (self.most_bytes >= _size(low))
            found &= some
        if wanted.under_way_ns is not None:
            (start, end, other_start, other_end), (after, before) = self.spans_ns, wanted.under_way_ns
            found &= ((end > after) & (start < before)) | ((other_end > after) & (other_start < before))
        if wanted.least_ns is not None:
            # A call takes no longer than from the earliest start to the latest end of its ranks in the chunk.
            start, end, other_start, other_end = self.spans_ns
            found &= (end - start >= wanted.least_ns) | (
                (other_start <= other_end)
                & (other_end - np.minimum(other_start, other_end) >= wanted.least_ns)
            )
        return found


def _size(size_bytes: int) -> np.uint64:
    return np.uint64(min(size_bytes, 2**64 - 1))
