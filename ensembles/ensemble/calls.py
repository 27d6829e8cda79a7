"""The calls of an ensemble, by which the modules below `Ensemble` compute its statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from ensembles.ensemble.call_scale import with_step
from ensembles.ensemble.inputs import as_integers
from ensembles.model.errors import EnsioError
from ensembles.statistics.samples.counted_durations import CountedDurations

if TYPE_CHECKING:
    pass
    import numpy.typing as npt

    from ensembles.model.events import Events
    from ensembles.statistics.extremes.exchangeability import CallAttributes
    from ensembles.statistics.resampling.dependence import Dependence
    from ensembles.statistics.samples.distinct_values import WeightedValues


@dataclass(frozen=True, eq=False)
class ConsecutiveCalls:
    """Calls of each task in the order in which the task made them.

    Attributes
    ----------
    duration_s, rank, phase : ndarray, shape (n,)
        Sorted by rank, phase and start; seconds.
    begin : ndarray of int64, shape (g + 1,)
        Index of the first call of each pair of rank and phase; the last element is n.
    order : ndarray of int64, shape (n,)
        Index of each call in the ensemble.
    phases_known : bool
        False: phases are unknown, and all calls have phase 0.
    """

    duration_s: np.ndarray
    rank: np.ndarray
    phase: np.ndarray
    begin: np.ndarray
    order: np.ndarray
    phases_known: bool

    @classmethod
    def from_calls(
        cls,
        durations_s: np.ndarray,
        rank: np.ndarray,
        phase: np.ndarray | None = None,
        start_ns: np.ndarray | None = None,
    ) -> ConsecutiveCalls:
        """Sort calls by rank, phase and start.

        Parameters
        ----------
        durations_s, rank : ndarray, shape (n,)
            Seconds; task of each call.
        phase : ndarray, shape (n,), optional
            None: phases are unknown.
        start_ns : ndarray, shape (n,), optional
            None: the calls of a rank are already in the order of time.

        Examples
        --------
        >>> calls = ConsecutiveCalls.from_calls(np.array([0.3, 0.1, 0.2]), np.array([1, 0, 0]))
        >>> calls.duration_s.tolist(), calls.begin.tolist()
        ([0.1, 0.2, 0.3], [0, 2, 3])
        """
        known, n = phase is not None, len(durations_s)
        phase = np.zeros(n, np.int64) if phase is None else phase
        order = np.lexsort([phase, rank] if start_ns is None else [start_ns, phase, rank])
        rank, phase = rank[order], phase[order]
        changed = (rank[1:] != rank[:-1]) | (phase[1:] != phase[:-1])
        return cls(
            duration_s=durations_s[order],
            rank=rank,
            phase=phase,
            begin=np.unique(np.concatenate([[0], np.flatnonzero(changed) + 1, [n]])),
            order=order,
            phases_known=known,
        )


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
    def atoms(self) -> WeightedValues:
        """Distinct values of the durations with their multiplicities.

        The values are exact if the ensemble is small or has few distinct durations; otherwise they are bins.
        """
        from ensembles.statistics.samples.distinct_values import WeightedValues

        if self.durations_s is None or not self.n:
            return WeightedValues.from_sample(self.counted)
        return WeightedValues.from_durations(self.durations_s, self.phase, self.counted)

    @property
    def calls(self) -> CallAttributes | None:
        """Attributes of each call, for tests of exchangeability; None: only the histogram is known."""
        from ensembles.statistics.extremes.exchangeability import CallAttributes

        if self.durations_s is None:
            return None
        return CallAttributes(self.durations_s, self.phase, self.rank, self.ordinal, self.node, self.start_ns)

    @cached_property
    def dependence(self) -> Dependence | None:
        """Correlation between calls of a phase, and between consecutive calls of a task.

        None if the task that made each call is unknown.
        """
        from ensembles.statistics.resampling.dependence import estimate_dependence

        try:
            calls = self.successive
        except EnsioError:
            return None
        return estimate_dependence(calls.duration_s, calls.rank, calls.phase if calls.phases_known else None)

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
