"""Size table: counts of request sizes.

Requests that begin off a boundary of the file system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ensembles.model.events import OPS, Call, Events, op_of_calls
from ensembles.model.flights import OPERATIONS
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.calltable import count_sizes, layers_of_transfers, operations_of_transfers

LIMIT = 1 << 16
"""Largest number of different sizes of a layer that are counted exactly."""


class SizeTable(Summary):
    """A mergeable summary: counts of the request sizes of reads and writes, by layer.

    Up to `LIMIT` different sizes of a layer are counted exactly. If there are more, the rarer half is
    dropped. The table stays bounded and keeps sizes that occur often; `uncertainty` bounds the number of
    their occurrences that may be missing.

    `uncertainty`: by layer: upper bound of the calls missing in each count. A layer without an entry has
    exact counts.
    `classes`: by layer: least and largest size in bytes, and number, of the calls of which a recorder's sums
    give only the size class; the most frequent first.
    """

    of_all_calls = True
    columns = ("call", "requested")
    results = ("uncertainty", "_sizes", "_counts")

    def __init__(
        self, keys: Callable[[Sequence[Call]], tuple[list[str], np.ndarray]] = layers_of_transfers
    ) -> None:
        self._keys = keys
        self.uncertainty: dict[str, int] = {}
        self.classes: dict[str, list[tuple[int, int, int]]] = {}
        self._sizes: dict[str, np.ndarray] = {}
        self._counts: dict[str, np.ndarray] = {}

    @property
    def keys(self) -> Callable[[Sequence[Call]], tuple[list[str], np.ndarray]]:
        """What sizes are counted by."""
        return self._keys

    @property
    def layers(self) -> list[str]:
        """Layers with reads or writes."""
        return list(self._sizes)

    def add(self, chunk: Events) -> None:
        """Add events."""
        names, layer_of = self._keys(chunk.calls)
        layer, size, count = count_sizes(chunk.call, chunk.requested, layer_of)
        for number in np.flatnonzero(np.bincount(layer, minlength=len(names))):
            mine = layer == number
            self._add_sizes(names[number], size[mine], count[mine])

    def _add_sizes(self, layer: str, sizes: np.ndarray, counts: np.ndarray) -> None:
        """Count sizes; those that are known are looked up, and only others are sorted."""
        known = self._sizes.get(layer)
        if known is not None:
            place = np.minimum(np.searchsorted(known, sizes), len(known) - 1)
            hit = known[place] == sizes
            np.add.at(self._counts[layer], place[hit], counts[hit])
            sizes, counts = sizes[~hit], counts[~hit]
        if len(sizes):
            self.add_counts(layer, sizes, counts)

    def add_counts(self, layer: str, sizes: np.ndarray, counts: np.ndarray) -> None:
        """Add counts of sizes."""
        if layer in self._sizes:
            sizes, counts = np.append(self._sizes[layer], sizes), np.append(self._counts[layer], counts)
        sizes, place = np.unique(sizes, return_inverse=True)
        counts = np.bincount(place, counts, len(sizes)).astype(np.int64)
        if len(sizes) > LIMIT:
            kept = np.sort(np.argsort(-counts, kind="stable")[: LIMIT // 2])
            forgotten = np.delete(counts, kept)
            self.uncertainty[layer] = self.uncertainty.get(layer, 0) + int(forgotten.max())
            sizes, counts = sizes[kept], counts[kept]
        self._sizes[layer], self._counts[layer] = sizes, counts

    def merge(self, other: SizeTable) -> None:
        """Add another table."""
        for layer in other.layers:
            missing = other.uncertainty.get(layer, 0)
            if missing:
                self.uncertainty[layer] = self.uncertainty.get(layer, 0) + missing
            self.add_counts(layer, other._sizes[layer], other._counts[layer])

    def frequent(self, layer: str, most: int = 10) -> list[tuple[int, int]]:
        """List the most frequent sizes."""
        if layer not in self._sizes:
            return []
        sizes, counts = self._sizes[layer], self._counts[layer]
        order = np.lexsort((sizes, counts))[::-1][:most]
        return [(int(sizes[i]), int(counts[i])) for i in order]


class Requests(Summary):
    """A mergeable summary: requests with a known flight that were not posted inside another call.

    `requests`: number of requests by operation (`ensembles.model.flights.OPERATIONS`).
    `post_ns`: time in the calls that posted them.
    """

    of_all_calls = True
    columns = ("call", "depth", "duration", "flight")
    requires = ANY_ORDER
    results = ("requests", "post_ns")
    added_up = ("requests", "post_ns")

    def __init__(self) -> None:
        self.requests = dict.fromkeys(OPERATIONS, 0)
        self.post_ns = dict.fromkeys(OPERATIONS, 0)

    def add(self, chunk: Events) -> None:
        """Add events."""
        posted = np.flatnonzero((chunk.flight >= 0) & (chunk.depth == 0))
        if not len(posted):
            return
        op, duration = op_of_calls(chunk.calls)[chunk.call[posted]], chunk.duration[posted]
        known = [op == OPS.index(name) for name in OPERATIONS[:2]]
        for name, mine in zip(OPERATIONS, [*known, ~(known[0] | known[1])], strict=True):
            self.requests[name] += int(mine.sum())
            self.post_ns[name] += int(duration[mine].sum())


class Alignment(Summary):
    """A mergeable summary: how many reads and writes begin at a multiple of their file's boundary.

    `known`: by layer and operation (``posix write``): requests of at least one byte with a known offset in a
    file with a known boundary.
    `misaligned`: those of them whose offset is not a multiple of the boundary.
    `crossing`: those of them that would fit between two boundaries, and touch both sides of one.
    """

    of_all_calls = True
    columns = ("call", "file", "offset", "requested")
    requires = ANY_ORDER
    added_up = ("known", "misaligned", "crossing")

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
