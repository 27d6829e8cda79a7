"""In which pieces a single run is looked at: its phases, or where these are not known slices of time, or
ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.samples.counted_durations import CountedDurations

SLICES = 384
"""Of equally many calls, at most."""
LEAST_IN_PHASES = 0.9
"""Phases are used where at least so much of the calls are in one."""
FEWEST_PHASES = 5

_LEAST_CALLS = 8
_COARSE = 12


@dataclass(frozen=True)
class RunCalls:
    """The calls of one run.

    Attributes
    ----------
    durations_s : ndarray of float64, shape (n,)
    phase, rank, start_ns : ndarray of int64, shape (n,), or None
        None: not known; a phase of -1: in none.
    resolution_s : float
        Step of the clock.
    """

    durations_s: np.ndarray
    phase: np.ndarray | None = None
    rank: np.ndarray | None = None
    start_ns: np.ndarray | None = None
    resolution_s: float = 0.0

    def sample(self, piece: np.ndarray | None = None) -> CountedDurations:
        """The durations, by piece (shape (n,)) if these are given."""
        return CountedDurations.from_durations(self.durations_s, piece, self.resolution_s)


def sliced(runs: list[RunCalls]) -> tuple[list[CountedDurations], str]:
    """Runs in pieces, in the order of time or of ranks, and what the pieces are.

    Phases, where each run has `FEWEST_PHASES` of them. Else slices of time or ranks, whichever the calls
    depend on more: where means of log duration over a twelfth of the pieces scatter more.

    Parameters
    ----------
    runs : list of Calls

    Returns
    -------
    samples : list of Sample
        Their phases are the pieces.
    what : str
        ``phases``, ``slices of time`` or ``ranks``; ``""`` where nothing tells calls apart.
    """
    phases = [phase for run in runs if (phase := _phases(run)) is not None]
    if len(phases) == len(runs):
        return [run.sample(phase) for run, phase in zip(runs, phases, strict=True)], "phases"
    found: list[tuple[float, str, list[np.ndarray]]] = []
    for what, pieces_of in (("slices of time", _slices), ("ranks", _ranks)):
        pieces = [piece for run in runs if (piece := pieces_of(run)) is not None]
        if len(pieces) == len(runs):
            scatter = sum(_scatter(run, piece) for run, piece in zip(runs, pieces, strict=True))
            found.append((scatter, what, pieces))
    if not found:
        return [run.sample() for run in runs], ""
    _, what, pieces = max(found, key=lambda entry: entry[0])
    return [run.sample(piece) for run, piece in zip(runs, pieces, strict=True)], what


def _phases(run: RunCalls) -> np.ndarray | None:
    if run.phase is None or not len(run.phase):
        return None
    inside = run.phase >= 0
    if inside.mean() < LEAST_IN_PHASES or len(np.unique(run.phase[inside])) < FEWEST_PHASES:
        return None
    if inside.all():
        return run.phase
    # The few calls between two phases are taken for the first of them, so that no call is left out.
    order = np.argsort(run.start_ns, kind="stable") if run.start_ns is not None else np.arange(len(inside))
    filled = np.empty_like(run.phase)
    filled[order] = np.maximum.accumulate(run.phase[order])
    return np.maximum(np.where(inside, run.phase, filled), run.phase[inside].min())


def _slices(run: RunCalls) -> np.ndarray | None:
    """Slices of equally many calls by their starts or, if these are not known, by the order of calls of a
    rank."""
    n = len(run.durations_s)
    if run.start_ns is not None:
        order = np.argsort(run.start_ns, kind="stable")
        number = np.empty(n, np.int64)
        number[order] = np.arange(n)
        place = number / max(n, 1)
    elif run.rank is not None:
        _, rank, count = np.unique(run.rank, return_inverse=True, return_counts=True)
        order = np.argsort(rank, kind="stable")
        ordinal = np.empty(n, np.int64)
        ordinal[order] = np.arange(n) - np.repeat(np.cumsum(count) - count, count)
        place = ordinal / count[rank]
    else:
        return None
    slices = max(1, min(SLICES, n // _LEAST_CALLS))
    return np.minimum((place * slices).astype(np.int64), slices - 1)


def _ranks(run: RunCalls) -> np.ndarray | None:
    if run.rank is None or len(np.unique(run.rank)) < FEWEST_PHASES:
        return None
    return run.rank


def _scatter(run: RunCalls, piece: np.ndarray) -> float:
    """Variance of the mean log duration, as a few large blocks of pieces tell it."""
    log_s = np.log(np.maximum(run.durations_s, 1e-9))
    pieces, number = np.unique(piece, return_inverse=True)
    blocks = min(_COARSE, len(pieces))
    block = number * blocks // len(pieces)
    size = np.bincount(block, minlength=blocks)
    rest = np.bincount(block, log_s - log_s.mean(), blocks)
    return float((rest**2).sum() / size.sum() ** 2)
