"""Successive calls: those of each task one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class ConsecutiveCalls:
    """Calls of each task in the order in which it made them.

    Attributes
    ----------
    duration_s, rank, phase : ndarray, shape (n,)
        Sorted by rank, phase and start.
    begin : ndarray of int64, shape (g + 1,)
        Where the calls of a rank in a phase begin, and n at the end.
    order : ndarray of int64, shape (n,)
        Position of each call in the ensemble.
    phases_known : bool
        False: all calls are taken for those of one phase, 0.
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
        """Put calls in this order.

        Parameters
        ----------
        durations_s, rank : ndarray, shape (n,)
        phase : ndarray, shape (n,), optional
            None: not known.
        start_ns : ndarray, shape (n,), optional
            None: the calls of a rank are in the order of time.
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
