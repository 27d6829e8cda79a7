"""Cost of a failing read-ahead: the excess time of the slow reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.rules.strided_readahead.profile import HEALTHY_READS, StridedRuns

LEAST_DOUBT = 0.02
"""Least relative margin of intervals to each side, as calls of other tasks would change too."""


@dataclass(frozen=True)
class Loss:
    """Intervals of lost time."""

    lost_s: tuple[float, float]  # (float, float): Time lost, summed over all tasks
    gain_s: tuple[float, float]  # (float, float): Predicted reduction of the span of the run


def estimate_loss(rows: np.ndarray, runs: StridedRuns, window: np.ndarray, share: float) -> Loss:
    """Estimate the loss of slow reads.

    Without the fault, the slow reads would take the time per byte of the reads before them. These reads
    differ, as the first of them may come before the first write. The lower end of the loss compares with the
    slowest of their positions, the upper end with the fastest. Both ends include disturbances of all tasks
    (the scatter of these positions). While reads are slow, writes find an emptier cache; the lower end is
    reduced by their gain.

    A window, such as a phase, ends with its last task. It would be shorter by as much as its last end would
    be earlier if every task ended earlier by its loss.
    """
    rate = float(np.nanmedian(runs.base))
    low, high = _levels_before(runs)
    lost, gain = [], []
    for level, won_ns in ((high, _won_by_writes_ns(rows, runs)), (low, 0.0)):
        lost_ns = _lost_ns(rows, np.exp(rate + level)) - won_ns
        lost.append(max(float(lost_ns.sum()), 0.0) * 1e-9 / share)
        gain.append(_earlier_ns(rows, lost_ns, window) * 1e-9)
    return Loss(_doubted(lost), _doubted(gain))


def _doubted(ends: list[float]) -> tuple[float, float]:
    return (1 - LEAST_DOUBT) * ends[0], (1 + LEAST_DOUBT) * ends[1]


def _levels_before(runs: StridedRuns) -> tuple[float, float]:
    """Bound the typical times of the positions before the stride is recognised, with their scatter."""
    levels = np.nanmedian(runs.time[:, :HEALTHY_READS] - np.nanmedian(runs.base), axis=0)
    scatter = float(np.nanstd(levels, ddof=1)) / np.sqrt(HEALTHY_READS)
    return float(np.nanmin(levels)) - scatter, float(np.nanmax(levels)) + scatter


def _lost_ns(rows: np.ndarray, ns_per_byte: float) -> np.ndarray:
    """Compute the excess time of each slow read; 0 for the reads before."""
    beyond = rows["duration_ns"] - rows["bytes"] * ns_per_byte
    return np.where(rows["position"] > HEALTHY_READS, beyond, 0.0)


def _won_by_writes_ns(rows: np.ndarray, runs: StridedRuns) -> np.ndarray:
    """Compute by how much writes became faster after the first slow read; 0 or more."""
    before = runs.writing[:, 1 : HEALTHY_READS + 1]
    if np.isnan(before).all():
        return np.zeros(len(rows))
    won = rows["written_bytes"] * np.exp(np.nanmedian(before)) - rows["writing_ns"]
    return np.where(rows["position"] > HEALTHY_READS + 1, np.maximum(won, 0.0), 0.0)


def _earlier_ns(rows: np.ndarray, lost_ns: np.ndarray, window: np.ndarray) -> float:
    """Sum by how much the last ends of the windows would come earlier."""
    key = window.astype(np.int64) << 32 | rows["rank"]
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    lost = np.add.reduceat(lost_ns[order], first)
    end = np.maximum.reduceat(rows["end_ns"][order], first).astype(np.float64)
    of_window = key[order][first] >> 32
    begin = np.flatnonzero(np.diff(of_window, prepend=-1))
    earlier = np.maximum.reduceat(end, begin) - np.maximum.reduceat(end - lost, begin)
    return float(np.maximum(earlier, 0.0).sum())
