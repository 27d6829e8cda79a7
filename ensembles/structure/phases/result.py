"""The phases of a run: their boundaries, the rule that found them, and the phases that the program names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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


RULES = ("named", "barriers", "steps", "gaps", "none")
"""Where phases come from, the surest first."""


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a run.

    Attributes
    ----------
    rule : str
        One of `RULES`.
    count : int
        Phases are numbered from 1 in the order of time.
    confidence : float
        How sure it is, from 0 to 1: 1 where the program or its barriers say it; by the rule of steps the
        share of the calls that are in phases in which all ranks made equally many; 0 by the rule of gaps.
    sentence : str
        What the phases were made from, in plain words.
    cuts_ns : ndarray of int64, shape (m,)
        Moments that part phases, ns since the origin, rising; none where the program named them.
    number : ndarray of int64, shape (m + 1,)
        Phase between two of them; -1: no I/O began there.
    named : NamedPhases or None
    """

    rule: str
    count: int
    confidence: float
    sentence: str
    cuts_ns: np.ndarray = field(repr=False)
    number: np.ndarray = field(repr=False)
    named: AnnotatedPhases | None = None

    @classmethod
    def from_annotated(cls, named: AnnotatedPhases) -> Phases:
        """Those that the program named."""
        return cls("named", len(named.names), 1.0, "the program named them", *_no_cuts(), named)

    @classmethod
    def without_io(cls) -> Phases:
        """Those of a run without I/O: none."""
        return cls("none", 0, 0.0, "there is no I/O", *_no_cuts())

    @classmethod
    def between(
        cls, rule: str, share: float, cuts_ns: np.ndarray, starts: Iterable[np.ndarray], more: str = ""
    ) -> Phases:
        """Those between cuts, of which those count in which I/O begins.

        Parameters
        ----------
        rule : str
        share : float
            The confidence.
        cuts_ns : ndarray of int64, shape (m,)
        starts : iterable of ndarray
            When I/O begins, ns.
        more : str
            What else is to be said, begun by a semicolon.
        """
        begun = np.zeros(len(cuts_ns) + 1, np.int64)
        for start in starts:
            begun += np.bincount(np.searchsorted(cuts_ns, start, side="right"), minlength=len(begun))
        used = begun > 0
        number = np.where(used, np.cumsum(used), -1)
        return cls(rule, int(used.sum()), share, _SENTENCES[rule].format(share) + more, cuts_ns, number)

    def phase_index(self, events: Events) -> np.ndarray:
        """The phase in which each call begins: int64, shape (n,), from 1; -1: none."""
        if self.named is not None:
            return self.named.phase_index(events)
        return self.number[np.searchsorted(self.cuts_ns, events.start, side="right")]

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the phases, in the order of their numbers, where the program gave some."""
        return None if self.named is None else self.named.names


def _no_cuts() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.full(1, -1)


_SENTENCES = {
    "barriers": "all ranks met in collective calls between them",
    "steps": "no barrier was recorded; all ranks were in step at gaps in the I/O ({:.0%} of the calls)",
    "gaps": "no barrier was recorded, and ranks were not in step; wide gaps in the I/O part them (doubtful)",
    "none": "nothing parts the I/O: no barrier was recorded, no step of all ranks and no wide gap was found",
}
