"""How often each request size occurs."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import Summary
from ensembles.summaries.callsums import count_sizes, layers_of_transfers

LIMIT = 1 << 16
"""Sizes that are counted exactly, per layer."""


class SizeTable(Summary):
    """Counts of the requested sizes of reads and writes, per layer.

    Up to `LIMIT` different sizes of a layer are counted exactly. When there are more, the rarer half is
    forgotten: the table stays bounded, a size that occurs often stays in it, and `uncertainty` says how many
    of its occurrences may be missing at most.

    Attributes
    ----------
    uncertainty : dict of str to int
        By layer: each count may be too low by as much; 0: all counts are exact.
    """

    columns = ("call", "requested")

    def __init__(self) -> None:
        self.uncertainty: dict[str, int] = {}
        self._sizes: dict[str, np.ndarray] = {}
        self._counts: dict[str, np.ndarray] = {}

    @property
    def layers(self) -> list[str]:
        """Layers with reads or writes."""
        return list(self._sizes)

    def add(self, chunk: Events) -> None:
        """Add events."""
        names, layer_of = layers_of_transfers(chunk.calls)
        layer, size, count = count_sizes(chunk.call, chunk.requested, layer_of)
        for number in np.flatnonzero(np.bincount(layer, minlength=len(names))):
            mine = layer == number
            self._add_sizes(names[number], size[mine], count[mine])

    def _add_sizes(self, layer: str, sizes: np.ndarray, counts: np.ndarray) -> None:
        """Count sizes that are known already by looking them up; only the others are sorted."""
        known = self._sizes.get(layer)
        if known is not None:
            place = np.minimum(np.searchsorted(known, sizes), len(known) - 1)
            hit = known[place] == sizes
            np.add.at(self._counts[layer], place[hit], counts[hit])
            sizes, counts = sizes[~hit], counts[~hit]
        if len(sizes):
            different, place = np.unique(sizes, return_inverse=True)
            together = np.zeros(len(different), np.int64)
            np.add.at(together, place, counts)
            self.add_counts(layer, different, together)

    def add_counts(self, layer: str, sizes: np.ndarray, counts: np.ndarray) -> None:
        """Add how often each of these sizes, rising, occurs in a layer."""
        if layer in self._sizes:
            sizes, place = np.unique(np.concatenate([self._sizes[layer], sizes]), return_inverse=True)
            all_counts = np.concatenate([self._counts[layer], counts])
            counts = np.zeros(len(sizes), dtype=np.int64)
            np.add.at(counts, place, all_counts)
        if len(sizes) > LIMIT:
            kept = np.sort(np.argsort(-counts, kind="stable")[: LIMIT // 2])
            forgotten = np.delete(counts, kept)
            self.uncertainty[layer] = self.uncertainty.get(layer, 0) + int(forgotten.max())
            sizes, counts = sizes[kept], counts[kept]
        self._sizes[layer], self._counts[layer] = sizes, counts.astype(np.int64)

    def merge(self, other: SizeTable) -> None:
        """Add what another table holds."""
        for layer in other.layers:
            missing = other.uncertainty.get(layer, 0)
            if missing:
                self.uncertainty[layer] = self.uncertainty.get(layer, 0) + missing
            self.add_counts(layer, other._sizes[layer], other._counts[layer])

    def frequent(self, layer: str, most: int = 10) -> list[tuple[int, int]]:
        """The sizes that occur most often.

        Returns
        -------
        list of (int, int)
            Bytes and count, the most frequent first, of equals the largest.
        """
        if layer not in self._sizes:
            return []
        sizes, counts = self._sizes[layer], self._counts[layer]
        order = np.lexsort((sizes, counts))[::-1][:most]
        return [(int(sizes[i]), int(counts[i])) for i in order]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For each layer ``<layer>_bytes`` and ``<layer>_count``, both of shape (sizes,)."""
        arrays = {}
        for layer in self.layers:
            arrays[f"{layer}_bytes"] = self._sizes[layer]
            arrays[f"{layer}_count"] = self._counts[layer]
        return arrays
