"""Phases: what a run does between two moments at which its ranks wait for each other.

Where they come from, the first that there is:

``named``     the phases that the program named itself (``ensio_phase``);
``barriers``  collective calls in which (nearly) all ranks met (`ensembles.structure.barriers`);
``steps``     gaps in the I/O of all ranks by which all have made equally many calls,
``gaps``      or the widest gaps (both: `ensembles.structure.steps`);
``none``      the whole run is one phase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import OPS, Events
from ensembles.regiontable import RegionTable
from ensembles.structure.barriers import Meetings
from ensembles.structure.gaps_of_all import GapsOfAll
from ensembles.structure.named import NamedPhases
from ensembles.structure.steps import MOST_GAPS, Steps, steps_of

if TYPE_CHECKING:
    from ensembles.run import Run

RULES = ("named", "barriers", "steps", "gaps", "none")
"""Where phases come from, the surest first."""

MOST_CALLS = 1 << 21
"""Calls in which steps of all ranks are looked for; of a larger run only those of some ranks are."""

_BYTES_PER_CALL = 1 << 9
"""What it takes to look for steps in a call, all that is made on the way included."""

_COLUMNS = ("rank", "call", "depth", "requested", "start", "duration")

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

    def gather(make: Callable[[Any], Any]) -> Any:
        summary = make(None)
        summary.add(events)
        return summary

    return _find(gather, regions, clock_error_ns, rule, max(len(events), MOST_CALLS))


def phases_of_run(run: Run, rule: str | None = None, most_calls: int | None = None) -> Phases:
    """Find the phases of a run from its chunks: of the calls, those are held in which ranks wait, and at most
    `most_calls` others.

    Parameters
    ----------
    run : Run
    rule : str, optional
        As for `find_phases`.
    most_calls : int, optional
        Where a run has more and no barrier was recorded, ranks are left out, evenly; default:
        `MOST_CALLS`, or what fits into the run's budget of memory.

    Raises
    ------
    EnsioError
        The run was recorded in mode ``profile`` or ``tail`` and its program named no phases, or the rule has
        nothing to stand on.
    """
    if run.mode in ("profile", "tail") and not NamedPhases.of_regions(run.regions):
        raise EnsioError(
            f"{run.path} was recorded in mode {run.mode}, which keeps not every call as an event, and phases "
            "can be told only from all of them: record again with ensio run --mode trace"
        )
    if most_calls is None:
        most_calls = min(MOST_CALLS, run.budget.memory_bytes // _BYTES_PER_CALL)
    return _find(partial(run.gather, columns=_COLUMNS), run.regions, run.clock_error_ns, rule, most_calls)


def _find(
    gather: Callable[[Callable[[Any], Any]], Any],
    regions: RegionTable | None,
    clock_error_ns: int,
    rule: str | None,
    most_calls: int,
) -> Phases:
    """As `find_phases`, in one pass or more; `gather` makes a pass, as `Run.gather` does."""
    if regions is not None and rule in (None, "named") and (named := NamedPhases.of_regions(regions)):
        return Phases("named", len(named.names), 1.0, "the program named them", *_no_cuts(), named)
    if rule == "named":
        raise EnsioError(
            "the program named no phases: leave the rule out, or see docs/statistics.md, Structure"
        )
    look = gather(partial(_FirstLook, most_calls))
    meetings, calls = look.meetings, look.calls
    if not calls.total:
        return Phases("none", 0, 0.0, "there is no I/O", *_no_cuts())
    if rule in (None, "barriers"):
        cuts_ns = meetings.moments_ns(int(np.count_nonzero(calls.of_rank)), clock_error_ns)
        if len(cuts_ns):
            between = gather(partial(_Between, cuts_ns)).calls if calls.too_many else calls.between(cuts_ns)
            return _parted("barriers", 1.0, cuts_ns, between)
        if rule == "barriers":
            raise EnsioError(
                "no collective call of all ranks is among the events: record the layer mpisync "
                "(ENSIO_LAYERS), or leave the rule out"
            )
    if not calls.too_many:
        steps = steps_of(*calls.columns)
        between = calls.between(steps.cuts_ns)
        return _parted(steps.rule, steps.share, steps.cuts_ns, between, _left_out(steps))
    every = -(-calls.total // most_calls)
    ranks = np.flatnonzero(calls.of_rank)
    chosen = np.zeros(len(calls.of_rank), bool)
    chosen[ranks[::every]] = True
    some = f"; looked at {np.count_nonzero(chosen):,} of {len(ranks):,} tasks"
    steps = steps_of(*gather(partial(_OuterCalls, calls.total, chosen)).columns)
    cuts_ns = gather(partial(_gaps_of_all, steps)).cuts_ns
    between = gather(partial(_Between, cuts_ns)).calls
    return _parted(steps.rule, steps.share, cuts_ns, between, some + _left_out(steps))


def _left_out(steps: Steps) -> str:
    return f"; gaps narrower than the {MOST_GAPS:,} widest were left out" if steps.gaps_left_out else ""


def _gaps_of_all(steps: Steps, _: Any) -> GapsOfAll:
    return GapsOfAll(steps.gap_from, steps.gap_to)


class _FirstLook:
    """The calls in which ranks wait, and others as long as they are not too many."""

    def __init__(self, most_calls: int, _: Any) -> None:
        self.meetings, self.calls = Meetings(), _OuterCalls(most_calls)

    def add(self, chunk: Events) -> None:
        self.meetings.add(chunk)
        self.calls.add(chunk)

    def merge(self, other: _FirstLook) -> None:
        self.meetings.merge(other.meetings)
        self.calls.merge(other.calls)


class _Between:
    """Calls between cuts, waiting left out."""

    def __init__(self, cuts_ns: np.ndarray, _: Any) -> None:
        self.cuts_ns = cuts_ns
        self.calls = np.zeros(len(cuts_ns) + 1, np.int64)

    def add(self, chunk: Events) -> None:
        self.calls += _counted_between(self.cuts_ns, chunk.start[chunk.op != OPS.index("wait")])

    def merge(self, other: _Between) -> None:
        self.calls += other.calls


def _counted_between(cuts_ns: np.ndarray, start: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(cuts_ns, start, side="right"), minlength=len(cuts_ns) + 1)


class _OuterCalls:
    """Calls that are in no other, and in which no rank waits: kept as long as they are not too many.

    Parameters
    ----------
    most : int
    chosen : ndarray of bool, optional
        By rank: calls of these alone are added; default: of all.
    """

    def __init__(self, most: int, chosen: np.ndarray | None = None, _: Any = None) -> None:
        self.total = 0
        self.of_rank = np.zeros(0, np.int64)
        self._most = most
        self._chosen = chosen
        self._parts: list[tuple[np.ndarray, ...]] = []

    @property
    def too_many(self) -> bool:
        return self.total > self._most

    def add(self, chunk: Events) -> None:
        wanted = (chunk.op != OPS.index("wait")) & (chunk.depth == 0)
        if self._chosen is not None:
            wanted &= self._chosen[np.minimum(chunk.rank, len(self._chosen) - 1)]
            wanted &= chunk.rank < len(self._chosen)
        mine = np.flatnonzero(wanted)
        self._count(np.bincount(chunk.rank[mine]))
        if len(mine) and not self.too_many:
            part = (chunk.rank, chunk.start, chunk.end, chunk.op)
            self._parts.append(tuple(column[mine] for column in part))

    def merge(self, other: _OuterCalls) -> None:
        self._parts += other._parts
        self._count(other.of_rank)

    def _count(self, of_rank: np.ndarray) -> None:
        size = max(len(of_rank), len(self.of_rank))
        whole = np.zeros(size, np.int64)
        for counts in (self.of_rank, of_rank):
            whole[: len(counts)] += counts
        self.of_rank = whole
        self.total += int(of_rank.sum())
        if self.too_many:
            self._parts = []

    def between(self, cuts_ns: np.ndarray) -> np.ndarray:
        """How many of all that were kept begin between cuts."""
        return _counted_between(cuts_ns, np.concatenate([part[1] for part in self._parts]))

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Rank, start, end and operation of those that move bytes, open, close or flush; of all if there are
        none of these."""
        rank, start, end, op = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        mine = ~np.isin(op, [OPS.index(name) for name in _NO_TRANSFER])
        return (rank[mine], start[mine], end[mine], op[mine]) if mine.any() else (rank, start, end, op)


def _no_cuts() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.full(1, -1)


def _parted(rule: str, share: float, cuts_ns: np.ndarray, between: np.ndarray, more: str = "") -> Phases:
    """The phases between cuts, of which those count in which I/O begins."""
    used = between > 0
    number = np.where(used, np.cumsum(used), -1)
    return Phases(rule, int(used.sum()), share, _SENTENCES[rule].format(share) + more, cuts_ns, number)


_SENTENCES = {
    "barriers": "all ranks met in collective calls between them",
    "steps": "no barrier was recorded; all ranks were in step at gaps in the I/O ({:.0%} of the calls)",
    "gaps": "no barrier was recorded, and ranks were not in step; wide gaps in the I/O part them (doubtful)",
    "none": "nothing parts the I/O: no barrier was recorded, no step of all ranks and no wide gap was found",
}
