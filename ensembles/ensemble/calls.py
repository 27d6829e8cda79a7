"""The calls of an ensemble, by which the modules below `Ensemble` compute its statistics.

`steps_of_turns` finds the phases of an ensemble whose calls are served one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from ensembles.ensemble.call_scale import with_step
from ensembles.ensemble.inputs import as_integers
from ensembles.model.errors import EnsioError
from ensembles.model.units import MIB
from ensembles.statistics.modes.harmonics import StepsOfTurns
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.sums.consecutive_calls import ConsecutiveCalls
from ensembles.structure.turns import LEAST_UNITS, LEVEL, MOST_START_SHARE, Turns, p_of_turns, turns_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Events
    from ensembles.statistics.extremes.exchangeability import CallAttributes
    from ensembles.statistics.samples.distinct_values import WeightedValues


class EnsembleCalls:
    """What `ensembles.Ensemble` holds."""

    durations_s: npt.NDArray[np.float64] | None
    """Durations in seconds; with ``per="MiB"``, in seconds per MiB. Shape (n,)."""
    phase: npt.NDArray[np.int64] | None
    """Phase of each call, numbered in the order of time; -1: in none. Shape (n,). None: unknown."""
    rank: npt.NDArray[np.int64] | None
    """Task that made each call. Shape (n,). None: unknown."""
    bytes: npt.NDArray[np.int64] | None
    """Bytes that each call moved. Shape (n,). None: unknown."""
    start_ns: npt.NDArray[np.int64] | None
    """Entry into each call: nanoseconds since the origin of the run. Shape (n,). None: unknown."""
    per: Literal["call", "MiB"]
    """Unit of work to which the durations refer."""
    name: str
    """Name of the calls in texts and pictures."""
    op: str
    """Kind of operation, one of `OPS`; ``""``: several or unknown."""
    notes: list[str]
    """Caveats about the data, one sentence each."""
    counted: CountedDurations
    """Durations counted by phase and bin, without the step of the clock (see `sample`)."""
    node: npt.NDArray[np.int64] | None
    """Number of the node of the task of each call. Shape (n,). None: unknown."""
    crowded: str = ""
    """Which tasks of the run share processors; ``""``: none, or not known."""
    left_out: tuple[str, ...] = ()
    """Notes on the selected calls that are not in the ensemble; results and pictures of it repeat them."""
    _events: Events | None = None
    _why_not_split: Callable[[], str | None] | None = None

    _resolution_s: float | None

    @cached_property
    def ordinal(self) -> npt.NDArray[np.int64] | None:
        """Number of each call among those of its rank, operation and file, from 1. Shape (n,). None: unknown.

        For events of a run, it is counted on first use, as this takes all events of the run.
        """
        events, self._events = self._events, None
        return None if events is None else as_integers("ordinal", events.ordinal, self.n)

    @cached_property
    def sample(self) -> CountedDurations:
        """Durations counted by phase and bin, with the step of the clock: the input of the statistics."""
        return with_step(self.counted, self.durations_s, self._resolution_s)

    @property
    def n(self) -> int:
        """Number of calls."""
        return self.counted.total

    def __len__(self) -> int:
        return self.n

    @property
    def unit(self) -> str:
        """Unit of the durations: ``s`` or ``s/MiB``."""
        return "s" if self.per == "call" else "s/MiB"

    @cached_property
    def successive(self) -> ConsecutiveCalls:
        """Durations of each task's consecutive calls, by phase.

        Raises
        ------
        EnsioError
            The task that made each call is unknown.
        """
        if self.durations_s is None or self.rank is None:
            raise EnsioError(
                "the task that made each call of this ensemble is unknown: make it from the events of a run "
                "recorded in mode trace, or give the ranks"
            )
        return ConsecutiveCalls.from_calls(self.durations_s, self.rank, self.phase, self.start_ns)

    @cached_property
    def unsettled(self) -> tuple[str, ...]:
        """Why these calls do not represent the next ones; empty: no test shows it."""
        from ensembles.statistics.extremes.stationarity import drift_of_calls

        return tuple(filter(None, [drift_of_calls(self.sample, self.calls)]))

    @cached_property
    def atoms(self) -> WeightedValues:
        """Distinct values of the durations with their multiplicities.

        The values are exact if the ensemble is small or has few distinct durations; otherwise they are bins.
        """
        from ensembles.statistics.samples.distinct_values import WeightedValues

        if self.durations_s is None or not self.n:
            return WeightedValues.from_sample(self.sample)
        return WeightedValues.from_durations(self.durations_s, self.phase, self.sample)

    @property
    def calls(self) -> CallAttributes | None:
        """Attributes of each call, for tests of exchangeability; None: only the histogram is known."""
        from ensembles.statistics.extremes.exchangeability import CallAttributes

        if self.durations_s is None:
            return None
        return CallAttributes(self.durations_s, self.phase, self.rank, self.ordinal, self.node, self.start_ns)

    @property
    def tasks(self) -> int:
        """Number of tasks that made the calls.

        Raises
        ------
        EnsioError
            It is unknown.
        """
        try:
            rank = self.successive.rank if self.rank is None else self.rank
        except EnsioError as error:
            raise EnsioError("the number of tasks of this ensemble is unknown: give it") from error
        return max(len(np.unique(rank)), 1)


def steps_of_turns(ensemble: EnsembleCalls) -> StepsOfTurns | None:
    """Find the steps in which nodes, or tasks, are served one after the other.

    Phases in which each task makes one call are examined, as of the finding node-serialisation. Tasks that
    share processors may take turns there, so that only their nodes count.

    None: calls are not served in turns, or the columns are unknown.
    """
    calls = _phases_of_one_call_each(ensemble)
    if not calls:
        return None
    assert ensemble.rank is not None
    found = None if ensemble.node is None else _in_turns(ensemble, calls, ensemble.node, "node")
    if found is None and not ensemble.crowded:
        found = _in_turns(ensemble, calls, ensemble.rank, "task")
    return found


def _ends_ns(ensemble: EnsembleCalls) -> np.ndarray:
    assert ensemble.durations_s is not None
    assert ensemble.start_ns is not None
    assert ensemble.bytes is not None
    durations_s = ensemble.durations_s
    if ensemble.per == "MiB":
        durations_s = durations_s * (ensemble.bytes / MIB)
    return ensemble.start_ns + np.rint(1e9 * durations_s).astype(np.int64)


def _phases_of_one_call_each(ensemble: EnsembleCalls) -> list[np.ndarray]:
    """Return the calls of each phase in which enough tasks make one call each, and begin together."""
    phase, rank, start = ensemble.phase, ensemble.rank, ensemble.start_ns
    if phase is None or rank is None or start is None or ensemble.bytes is None:
        return []
    if ensemble.durations_s is None or not ensemble.bytes.any():
        return []
    order = np.lexsort((rank, phase))
    order = order[phase[order] > 0]
    if not len(order):
        return []
    first = np.flatnonzero(np.diff(phase[order], prepend=-1))
    size = np.diff(first, append=len(order))
    again = np.diff(rank[order], prepend=-1) == 0
    again[first] = False
    begin = np.minimum.reduceat(start[order], first)
    late = np.maximum.reduceat(start[order], first) - begin
    length = np.maximum.reduceat(_ends_ns(ensemble)[order], first) - begin
    once = (np.add.reduceat(again, first) == 0) & (size >= LEAST_UNITS) & (late <= MOST_START_SHARE * length)
    return [order[at : at + count] for at, count in zip(first[once], size[once], strict=True)]


def _in_turns(
    ensemble: EnsembleCalls, calls: list[np.ndarray], units: np.ndarray, unit: str
) -> StepsOfTurns | None:
    assert ensemble.start_ns is not None
    assert ensemble.bytes is not None
    columns = units, ensemble.start_ns, _ends_ns(ensemble), ensemble.bytes
    tested: list[Turns] = []
    in_turns = 0
    for rows in calls:
        turns = turns_of(*(column[rows] for column in columns))
        if turns is not None:
            tested.append(turns)
            in_turns += len(rows) * turns.are_even
    even = [turns for turns in tested if turns.are_even]
    if not even or (chance := p_of_turns(tested)) > LEVEL:
        return None
    return StepsOfTurns(
        unit,
        int(np.median([turns.units for turns in even])),
        1e-9 * float(np.median([turns.step_ns for turns in even])),
        1e-9 * float(np.median([turns.length_ns for turns in even])),
        len(even),
        len(tested),
        in_turns / ensemble.n,
        chance,
    )
