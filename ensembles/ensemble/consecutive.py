"""Consecutive calls of each task, for the correlation between one call and the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.statistics.resampling.dependence import Dependence


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


def tasks_of(ensemble: Ensemble) -> int:
    """Return the number of tasks that made the calls of an ensemble.

    Raises
    ------
    EnsioError
        It is unknown.
    """
    try:
        rank = ensemble.successive.rank if ensemble.rank is None else ensemble.rank
    except EnsioError as error:
        raise EnsioError("the number of tasks of this ensemble is unknown: give it") from error
    return max(len(np.unique(rank)), 1)


def dependence_of(ensemble: Ensemble) -> Dependence | None:
    """Estimate the correlation between calls of a phase, and between consecutive calls of a task.

    None if the task that made each call is unknown.
    """
    from ensembles.statistics.resampling.dependence import estimate_dependence

    try:
        calls = ensemble.successive
    except EnsioError:
        return None
    return estimate_dependence(calls.duration_s, calls.rank, calls.phase if calls.phases_known else None)
