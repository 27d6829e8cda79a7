"""Divide a single run into pieces: phases or, if these are unknown, slices of time or ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.comparison.dependent_blocks import MOST_BLOCKS, MOST_UNITS
from ensembles.statistics.samples.counted_durations import CountedDurations

LEAST_IN_PHASES = 0.9
"""Phases are used if at least this share of the calls is in a phase."""
FEWEST_PHASES = 5

_LEAST_CALLS = 8


@dataclass(frozen=True)
class RunCalls:
    """Calls of one run."""

    durations_s: np.ndarray  # float64, shape (n,): Seconds
    # phase, rank, start_ns: int64, shape (n,) or None: None: unknown; a phase of -1: in none
    phase: np.ndarray | None = None
    rank: np.ndarray | None = None
    start_ns: np.ndarray | None = None
    resolution_s: float = 0.0  # Step of the clock in seconds

    def sample(self, piece: np.ndarray | None = None) -> CountedDurations:
        """Return the durations, counted by `piece` (shape (n,)) if it is given."""
        return CountedDurations.from_durations(self.durations_s, piece, self.resolution_s)


def sliced(runs: list[RunCalls]) -> tuple[list[CountedDurations], str]:
    """Divide runs into pieces, in the order of time or of ranks.

    Phases are used if each run has `FEWEST_PHASES` of them. Otherwise slices of time or ranks are used,
    whichever the calls depend on more: means of log duration over a twelfth of the pieces vary more.
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
    # The few calls between two phases are assigned to the first of them, so that no call is left out.
    order = np.argsort(run.start_ns, kind="stable") if run.start_ns is not None else np.arange(len(inside))
    filled = np.empty_like(run.phase)
    filled[order] = np.maximum.accumulate(run.phase[order])
    phase: np.ndarray = np.maximum(np.where(inside, run.phase, filled), run.phase[inside].min())
    return phase


def _slices(run: RunCalls) -> np.ndarray | None:
    """Return slices with equal numbers of calls, by start or else by the order of the calls of a rank."""
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
    slices = max(1, min(MOST_UNITS, n // _LEAST_CALLS))
    return np.minimum((place * slices).astype(np.int64), slices - 1)


def _ranks(run: RunCalls) -> np.ndarray | None:
    if run.rank is None or len(np.unique(run.rank)) < FEWEST_PHASES:
        return None
    return run.rank


def _scatter(run: RunCalls, piece: np.ndarray) -> float:
    """Return the variance of the mean log duration, estimated from a few large blocks of pieces."""
    log_s = np.log(np.maximum(run.durations_s, 1e-9))
    pieces, number = np.unique(piece, return_inverse=True)
    blocks = min(MOST_BLOCKS, len(pieces))
    block = number * blocks // len(pieces)
    size = np.bincount(block, minlength=blocks)
    rest = np.bincount(block, log_s - log_s.mean(), blocks)
    return float((rest**2).sum() / size.sum() ** 2)
