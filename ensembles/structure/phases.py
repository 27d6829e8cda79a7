"""Phases: what a run does between two moments at which its ranks wait for each other.

Where they come from, the first that there is:

``named``     the phases that the program named itself (``ensio_phase``);
``barriers``  collective calls in which (nearly) all ranks met (`ensembles.structure.barriers`);
``steps``     gaps in the I/O of all ranks by which all have made equally many calls,
``gaps``      or the widest gaps (both: `ensembles.structure.steps`);
``none``      the whole run is one phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import OPS, Events, op_of_calls
from ensembles.regiontable import RegionTable
from ensembles.structure.barriers import Meetings
from ensembles.structure.named import NamedPhases
from ensembles.structure.steps import steps_of

RULES = ("named", "barriers", "steps", "gaps", "none")
"""Where phases come from, the surest first."""

_NO_TRANSFER = ("seek", "meta", "wait")


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a run.

    Attributes
    ----------
    rule : str
        One of `RULES`.
    count : int
        Phases are numbered from 1 in the order of time.
    share : float
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
    share: float
    sentence: str
    cuts_ns: np.ndarray = field(repr=False)
    number: np.ndarray = field(repr=False)
    named: NamedPhases | None = None

    def of(self, events: Events) -> np.ndarray:
        """The phase in which each call begins: int64, shape (n,), from 1; -1: none."""
        if self.named is not None:
            return self.named.of(events)
        return self.number[np.searchsorted(self.cuts_ns, events.start, side="right")]

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the phases, in the order of their numbers, where the program gave some."""
        return None if self.named is None else self.named.names


def phase_of(events: Events, regions: RegionTable | None = None) -> np.ndarray:
    """The phase of each call, from the calls themselves and from the phases that the program named.

    Parameters
    ----------
    events : Events
        All calls of a run, waiting in MPI included: `find_phases` and `Phases.of` tell the phases of some of
        them.
    regions : RegionTable, optional
        ``run.regions``.

    Returns
    -------
    ndarray of int64, shape (n,)
        From 1 in the order of time; -1: in none.
    """
    return find_phases(events, regions).of(events)


def find_phases(
    events: Events,
    regions: RegionTable | None = None,
    clock_error_ns: int = 0,
    rule: str | None = None,
) -> Phases:
    """Find the phases of a run.

    Parameters
    ----------
    events : Events
        All calls, in any order.
    regions : RegionTable, optional
        ``run.regions``.
    clock_error_ns : int
        By how much times of different nodes may be off.
    rule : str, optional
        ``"named"``, ``"barriers"`` or ``"steps"``, to start with that; default: the surest that there is.

    Raises
    ------
    EnsioError
        The rule that is asked for has nothing to stand on in this run.
    """
    if regions is not None and rule in (None, "named") and (named := NamedPhases.of_regions(regions)):
        count = len(named.names)
        return Phases("named", count, 1.0, "the program named them", *_no_cuts(), named)
    if rule == "named":
        raise EnsioError(
            "the program named no phases: leave the rule out, or see docs/statistics.md, Structure"
        )
    io = np.array([op not in _NO_TRANSFER for op in OPS], bool)[op_of_calls(events.calls)][events.call]
    if not io.any():
        io = events.op != OPS.index("wait")
    io &= events.depth == 0
    if not io.any():
        return Phases("none", 0, 0.0, "there is no I/O", *_no_cuts())
    if rule in (None, "barriers"):
        meetings = Meetings()
        meetings.add(events)
        cuts_ns = meetings.moments_ns(len(np.unique(events.rank[io])), clock_error_ns)
        if len(cuts_ns):
            return _parted("barriers", 1.0, cuts_ns, events.start[io])
        if rule == "barriers":
            raise EnsioError(
                "no collective call of all ranks is among the events: record the layer mpisync "
                "(ENSIO_LAYERS), or leave the rule out"
            )
    steps = steps_of(events.rank[io], events.start[io], events.end[io], events.op[io])
    return _parted(steps.rule, steps.share, steps.cuts_ns, events.start[io])


def _no_cuts() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.full(1, -1)


def _parted(rule: str, share: float, cuts_ns: np.ndarray, start: np.ndarray) -> Phases:
    """The phases between cuts, of which those count in which I/O begins."""
    between = np.zeros(len(cuts_ns) + 1, np.int64)
    np.add.at(between, np.searchsorted(cuts_ns, start, side="right"), 1)
    used = between > 0
    number = np.where(used, np.cumsum(used), -1)
    return Phases(rule, int(used.sum()), share, _SENTENCES[rule].format(share), cuts_ns, number)


_SENTENCES = {
    "barriers": "all ranks met in collective calls between them",
    "steps": "no barrier was recorded; all ranks were in step at gaps in the I/O ({:.0%} of the calls)",
    "gaps": "no barrier was recorded, and ranks were not in step; wide gaps in the I/O part them (doubtful)",
    "none": "nothing parts the I/O: no barrier was recorded, no step of all ranks and no wide gap was found",
}
