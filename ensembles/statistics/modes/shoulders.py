"""Shoulders: parts of a cluster that stand out of its flank, without an antimode before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.units import seconds_text, share_text
from ensembles.statistics.modes.clusters import THRESHOLD
from ensembles.statistics.modes.density import LogCells

_WINDOWS = (0.35, 0.5, 0.7, 1.0)
"""Lengths of windows, in widths of the cluster."""
_LEAST_CELLS_IN_WINDOW = 2.0
_LEAST_CONVEX = 1.15
_LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Shoulder(Fields):
    """A shoulder: calls that are probably of another kind than those of the mode beside them."""

    t_s: float  # Duration at which it stands out most, in seconds
    share: float  # Share of all calls that lie beyond the bend between it and the mode
    mode: int  # Number of the mode on whose flank it is, from 0

    def __str__(self) -> str:
        return (
            f"shoulder: mode {self.mode + 1} has one near {seconds_text(self.t_s)}, with about "
            f"{share_text(self.share)} of the calls"
        )


def find_shoulders(
    cells: LogCells, low: float, high: float, place: float, width: float, mode: int
) -> list[Shoulder]:
    """Find shoulders to the left and to the right of a mode.

    Numbers of calls in adjacent windows of one kind are log-concave (Prékopa 1973). Where this fails by 15 %
    or more, and a log-concave part with 2 % of the calls lies beyond, calls of another kind begin.
    """
    total = float(cells.counts.sum())
    before = np.concatenate([[0.0], np.cumsum(cells.counts)])
    found: dict[int, tuple[float, Shoulder]] = {}
    middle_cell = int(np.clip(np.searchsorted(cells.edges, place) - 1, 0, len(cells.counts) - 1))
    for part in _WINDOWS:
        window = max(part * width, _LEAST_CELLS_IN_WINDOW * cells.widths[middle_cell])
        at = np.arange(low + 1.5 * window, high - 1.5 * window, window / 3)
        if not len(at):
            continue
        edges = at[:, None] + window * np.array([-1.5, -0.5, 0.5, 1.5])
        calls = np.diff(np.interp(edges, cells.edges, before), axis=1)
        bend, evidence = _bends(calls, total)
        convex = (evidence >= THRESHOLD) & (bend > 2 * np.log(_LEAST_CONVEX))
        concave = -_bends(calls, total)[0] / _error(calls) - _penalty(calls, total) >= THRESHOLD
        for side in (-1, 1):
            beyond = side * (at - place) > 0
            bends = np.flatnonzero(convex & beyond)
            if not len(bends):
                continue
            first = bends[np.argmax(evidence[bends])]
            outer = np.flatnonzero(concave & (side * (at - at[first]) > 0))
            inner_calls = float(np.interp(at[first], cells.edges, before))
            ends = np.interp([low, high], cells.edges, before)
            share = (ends[1] - inner_calls if side > 0 else inner_calls - ends[0]) / total
            if len(outer) and share >= _LEAST_SHARE:
                top = outer[np.argmin(bend[outer] / _error(calls[outer]))]
                if evidence[first] > found.get(side, (0.0,))[0]:
                    found[side] = (evidence[first], Shoulder(float(np.exp(at[top])), float(share), mode))
    return [found[side][1] for side in (-1, 1) if side in found]


def _bends(calls: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much the log numbers bend upwards in the middle window, and the evidence for it."""
    log_calls = np.log(np.maximum(calls, 0.5))
    bend = log_calls[:, 0] + log_calls[:, 2] - 2 * log_calls[:, 1]
    return bend, bend / _error(calls) - _penalty(calls, total)


def _error(calls: np.ndarray) -> np.ndarray:
    error: np.ndarray = np.sqrt((1 / np.maximum(calls, 0.5)) @ np.array([1.0, 4.0, 1.0]))
    return error


def _penalty(calls: np.ndarray, total: float) -> np.ndarray:
    penalty: np.ndarray = np.sqrt(2 + 2 * np.log(total / np.maximum(calls.sum(axis=1), 1)))
    return penalty
