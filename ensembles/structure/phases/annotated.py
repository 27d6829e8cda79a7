"""Phases that the program named itself (``ensio_phase``)."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.model.regions import KINDS, RegionTable


class AnnotatedPhases:
    """Phases by the program's own word; each rank is in a phase at times of its own.

    The k-th phase of a name is the same phase in all ranks. Phases are numbered from 1, in the order in which
    the first rank came to them.

    Attributes
    ----------
    names : tuple of str
        Of phase 1, 2, ...
    """

    def __init__(
        self, names: tuple[str, ...], rank: np.ndarray, start: np.ndarray, end: np.ndarray, number: np.ndarray
    ):
        self.names = names
        self._rank, self._start, self._end, self._number = rank, start, end, number

    @classmethod
    def from_regions(cls, regions: RegionTable) -> AnnotatedPhases | None:
        """The phases among regions; None: there are none."""
        phases = regions[regions.kind == KINDS.index("phase")] if len(regions) else regions
        if not len(phases):
            return None
        order = np.lexsort((phases.start, phases.name, phases.rank))
        rank, name, start = phases.rank[order], phases.name[order], phases.start[order]
        new = np.concatenate([[True], (rank[1:] != rank[:-1]) | (name[1:] != name[:-1])])
        first = np.flatnonzero(new)
        which = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        _, kind = np.unique(name.astype(np.int64) * (which.max() + 1) + which, return_inverse=True)
        begins = np.full(kind.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(begins, kind, start)
        by_time = np.argsort(begins, kind="stable")
        number = np.empty(len(by_time), np.int64)
        number[by_time] = np.arange(1, len(by_time) + 1)
        name_of = np.empty(len(by_time), np.int64)
        name_of[number[kind] - 1] = name
        names = tuple(phases.names[i] for i in name_of.tolist())
        again = np.lexsort((start, rank))
        end = (phases.start + phases.duration)[order]
        return cls(names, rank[again], start[again], end[again], number[kind][again])

    def phase_index(self, events: Events) -> np.ndarray:
        """The phase in which each call begins: int64, shape (n,), from 1; -1: none."""
        m = len(self._rank)
        rank = np.concatenate([self._rank, events.rank])
        time = np.concatenate([self._start, events.start])
        order = np.lexsort((np.arange(len(rank)) >= m, time, rank))
        last = np.maximum.accumulate(np.where(order < m, np.arange(len(order)), -1))
        phase = np.full(len(order), -1, np.int64)
        known = last >= 0
        at = order[last[known]]  # of the latest phase that began before, in its rank or a lower one
        holds = (self._rank[at] == rank[order[known]]) & (time[order[known]] < self._end[at])
        phase[order[known]] = np.where(holds, self._number[at], -1)
        return phase[m:]
