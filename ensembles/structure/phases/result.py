from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ensembles import _compiled
from ensembles.model.events import Events
from ensembles.model.filters import within_ranges
from ensembles.model.regions import KINDS, RegionTable
from ensembles.model.spans import find_spans
from ensembles.model.units import HALF_INT64
from ensembles.passes.reading import Ranges, ascending_ranges

if TYPE_CHECKING:
    from ensembles.model.run_info import RunInfo

_FIRST_NS, _LAST_NS = -HALF_INT64, (1 << 63) - 2
"""No call starts before the first, or after the last of these moments."""


class AnnotatedPhases:
    """Phases that the program named, at separate times in each rank.

    The k-th phase of a name is the same phase in all ranks. Phases are numbered from 1, in the order in which
    the first rank entered them. Occurrences are sorted by rank and start.
    """

    def __init__(
        self, names: tuple[str, ...], rank: np.ndarray, start: np.ndarray, end: np.ndarray, number: np.ndarray
    ):
        self.names = names
        self._rank, self._start, self._end, self._number = rank, start, end, number

    @property
    def described(self) -> tuple[object, ...]:
        """All that phases are made of, for keys of kept summaries (`ensembles.passes.kept.key_of`)."""
        return self.names, self._rank, self._start, self._end, self._number

    @classmethod
    def from_regions(cls, regions: RegionTable) -> AnnotatedPhases | None:
        """Make the phases from the regions of a run."""
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
        """Compute the phase in which each call begins: int64, shape (n,); -1: none."""
        m = len(self._rank)
        rank = np.concatenate([self._rank, events.rank])
        time = np.concatenate([self._start, events.start])
        order = np.lexsort((np.arange(len(rank)) >= m, time, rank))
        last = np.maximum.accumulate(np.where(order < m, np.arange(len(order)), -1))
        phase = np.full(len(order), -1, np.int64)
        known = last >= 0
        at = order[last[known]]  # the latest phase that began before, in this rank or a lower one
        holds = (self._rank[at] == rank[order[known]]) & (time[order[known]] < self._end[at])
        phase[order[known]] = np.where(holds, self._number[at], -1)
        return phase[m:]

    def limits(self, wanted: Ranges) -> tuple[Ranges, Ranges]:
        """Return the ranks and times of some phases, as `Phases.limits`."""
        these = within_ranges(self._number, wanted)
        times = zip(self._start[these].tolist(), (self._end[these] - 1).tolist(), strict=True)
        return find_spans(self._rank[these]), ascending_ranges(list(times))


RULES = ("named", "barriers", "steps", "gaps", "none")
"""Rules that find phases, the most reliable first (`ensembles.structure.phases.detect`)."""


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a run, numbered from 1 in the order of time, found by one of `RULES`.

    `confidence`: from 0 to 1. It is 1 for phases that the program named or its barriers separate, and 0 by
    the rule of gaps. By the rule of lockstep, it is the share of the calls in phases in which all ranks made
    equally many calls. `cuts_ns`: moments that separate phases, ns since the origin, rising; empty if the
    program named them. `number`: phase between two cuts, shape (m + 1,); -1: no I/O began there.
    `message_steps`: numbers of the phases in which tasks only exchanged messages.

    Examples
    --------
    >>> phases = en.open("ensio-ior").phases
    >>> phases.sentence.split("; ")[1]
    'all ranks were in lockstep at gaps in the I/O (100 % of the calls)'
    >>> len(phases.cuts_ns), phases.count
    (11, 12)
    """

    rule: str
    count: int
    confidence: float
    sentence: str
    cuts_ns: np.ndarray = field(repr=False)
    number: np.ndarray = field(repr=False)
    named: AnnotatedPhases | None = None
    message_steps: tuple[int, ...] = ()

    @classmethod
    def from_annotated(cls, named: AnnotatedPhases) -> Phases:
        """Make the phases that the program named."""
        return cls("named", len(named.names), 1.0, "the program named them", *_no_cuts(), named)

    @classmethod
    def without_io(cls) -> Phases:
        """Make the phases of a run without I/O: none."""
        return cls("none", 0, 0.0, "there is no I/O", *_no_cuts())

    @classmethod
    def between(
        cls,
        rule: str,
        share: float,
        cuts_ns: np.ndarray,
        starts: Iterable[np.ndarray],
        more: str = "",
        messages: np.ndarray | None = None,
        has_barriers: bool = False,
    ) -> Phases:
        """Make the phases between cuts; only those in which I/O or messages begin are numbered.

        `has_barriers`: barriers were recorded, although the phases are not those between them.
        """
        with_io = np.zeros(len(cuts_ns) + 1, bool)
        for start in starts:
            with_io |= _begun(cuts_ns, start)
        used = with_io if messages is None else with_io | _begun(cuts_ns, messages)
        number = np.where(used, np.cumsum(used), -1)
        message_steps = tuple(number[used & ~with_io].tolist())
        count = int(used.sum())
        said = "only_outside" if rule == "barriers" and count < 2 else rule
        no = "no recorded barrier is one of all tasks" if has_barriers else _NO_BARRIER
        sentence = _SENTENCES[said].format(no=no, percent=100 * share) + more
        return cls(rule, count, share, sentence, cuts_ns, number, message_steps=message_steps)

    def phase_index(self, events: Events) -> np.ndarray:
        """Compute the phase in which each call begins."""
        if self.named is not None:
            return self.named.phase_index(events)
        phase = np.empty(len(events.start), np.int64)
        _compiled.numbers_between(
            np.ascontiguousarray(events.start, np.int64),
            phase,
            np.ascontiguousarray(self.cuts_ns, np.int64),
            np.ascontiguousarray(self.number, np.int64),
        )
        return phase

    def limits(self, wanted: Ranges) -> tuple[Ranges | None, Ranges | None]:
        """Return where the calls of some phases can be."""
        if self.named is not None:
            return self.named.limits(wanted)
        places = np.flatnonzero(within_ranges(self.number, wanted))
        edges = [_FIRST_NS, *self.cuts_ns.tolist(), _LAST_NS + 1]
        return None, ascending_ranges([(edges[place], edges[place + 1] - 1) for place in places.tolist()])

    def steps_without_io(self) -> dict[str, float] | None:
        """Count the steps between collective calls of all ranks that have no I/O and no number."""
        if self.rule != "barriers":
            return None
        unused = self.number[1:-1] < 0
        lengths_ns = np.diff(self.cuts_ns)[unused]
        return {"steps": len(lengths_ns), "time_s": float(lengths_ns.sum()) * 1e-9}

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the phases by number, if the program named them; else None."""
        return None if self.named is None else self.named.names


class KeptPhases:
    """Holder of phases for `ensembles.passes.kept`."""

    results = ("phases",)
    result_types = (Phases,)

    def __init__(self, phases: Phases | None = None) -> None:
        self.phases = phases


def _begun(cuts_ns: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Tell in which parts between the cuts calls begin: bool, shape (len(cuts_ns) + 1,)."""
    parts = np.searchsorted(cuts_ns, start, side="right")
    begun: np.ndarray = np.bincount(parts, minlength=len(cuts_ns) + 1) > 0
    return begun


def _no_cuts() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.full(1, -1)


_NO_BARRIER = "no barrier between I/O calls was recorded"
_SENTENCES = {
    "barriers": "all ranks met in collective calls between them",
    "only_outside": "all ranks met in collective calls, in none of them between I/O calls",
    "steps": "{no}; all ranks were in lockstep at gaps in the I/O ({percent:.0f} % of the calls)",
    "gaps": "{no}; phases were inferred from idle gaps in the I/O (low confidence)",
    "none": "{no}, and the I/O has neither ranks in lockstep nor wide gaps",
}

TOGETHER = ("named", "barriers", "steps")
"""Rules of phases at whose ends tasks wait for each other, if tasks meet (`tasks_meet`)."""

MEETINGS = ("named", "barriers")
"""Rules whose phases all tasks end together, whatever started the tasks."""


def phases_of_calls(phases: Phases | None, chunk: Events) -> np.ndarray:
    """Return the phase of each call, from 1, or 0: computed once for all summaries of a pass."""
    if phases is None:
        return np.zeros(len(chunk), np.int64)
    make = phases.phase_index
    return chunk.remembered(("phase", id(phases)), lambda events: np.maximum(make(events), 0))


def tasks_meet(info: RunInfo, phases: Phases | None) -> bool:
    """Check whether the slowest task of a phase is the one for which the others wait.

    Ranks of MPI that live together do, and so do those of simulations and of imported logs, as far as is
    known. Programs of a script, processes without MPI, and threads may run one after the other, side by side,
    or in the background. That they pause at the same time does not show that they wait for each other: only
    recorded barriers do, and phases that several tasks named.

    Examples
    --------
    >>> from ensembles.structure.phases.result import tasks_meet
    >>> run = en.open("ensio-ior")
    >>> tasks_meet(run.info, run.phases)
    True
    """
    if (info.live_together and not info.has_plain_processes) or (info.tasks == 1 and info.threads <= 1):
        return True
    return info.tasks > 1 and phases is not None and phases.rule in MEETINGS
