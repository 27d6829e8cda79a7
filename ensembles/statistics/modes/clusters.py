"""How many clusters there are: intervals of log duration denser than the antimodes beside them; shoulders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import WORTH_NAMING
from ensembles.model.units import seconds_text, share_text
from ensembles.statistics.modes.density import (
    DEPTH_RATIO,
    LEAST_CALLS,
    LEAST_SHARE,
    CellBlocks,
    LogCells,
    Smoother,
    chain,
    evidence,
    places_of_shares,
)

THRESHOLD = 1.6
"""Evidence that an antimode needs between blocks.

Of samples of a flat density, the least favourable one, 1 to 2 % reach it with 30 to 1,000 calls, and fewer
with more.
"""

_WIDEST_SPARSE_CELL = 0.045
_MOST_CELLS = 320

Span = tuple[float, float]


def highs_and_lows(cells: LogCells) -> tuple[list[Span], float]:
    """Find intervals of log time in which the density is significantly high and low.

    Returns high, low, high, ..., high (with a single mode, the whole range), and the evidence of the deepest
    antimode beyond `THRESHOLD`.
    """
    coarse = cells_to_look_at(cells)
    blocks = CellBlocks.from_counts(coarse.counts, coarse.edges)
    found = evidence(blocks, float(coarse.counts.sum()))
    spans = [
        (float(coarse.edges[blocks.start[block]]), float(coarse.edges[blocks.end[block]]))
        for block in chain(found, THRESHOLD)
    ]
    return spans or [(float(cells.edges[0]), float(cells.edges[-1]))], found.deepest() - THRESHOLD


def cells_to_look_at(cells: LogCells, most: int = _MOST_CELLS) -> LogCells:
    """Join cells until each holds enough calls, and there are not too many for the search."""
    least, widest = max(LEAST_CALLS, LEAST_SHARE * cells.counts.sum()) / 3, _WIDEST_SPARSE_CELL
    coarse = cells.coarser(least, widest)
    while len(coarse.counts) > most and widest < 1.0:
        least, widest = 1.3 * least, 1.3 * widest
        coarse = cells.coarser(least, widest)
    return coarse


def chance_of_second_mode(beyond: float) -> float:
    """Bound the p-value of the deepest antimode under a flat density by its evidence beyond the threshold.

    It is 1 % at the threshold, and ten times less for each further 0.45 of evidence. Simulated p-values fall
    at least as fast.
    """
    return float(0.01 * 10.0 ** (-max(beyond, -0.9) / 0.45))


KERNEL_THRESHOLDS = ((2.0, 1.2), (3.0, 1.75), (4.4, 2.4), (6.1, 2.8), (9.0, 3.2), (20.0, 3.8), (60.0, 4.8))
"""Standard errors by which a kernel antimode is low, by the width of the calls in bandwidths.

The width is that of the calls on both sides together, or of one side if that is wider.
"""

_QUARTERS, _FAR = np.array([0.25, 0.75]), 12.0


def _deviation(middles: np.ndarray, counts: np.ndarray) -> float:
    """Return the standard deviation of calls in cells; 0: there are none."""
    total = max(float(counts.sum()), 1.0)
    return float(np.sqrt(counts @ (middles - float(counts @ middles) / total) ** 2 / total))


def kernel_antimodes(cells: LogCells, low: float, high: float, span: Span) -> tuple[list[Span], float]:
    """Divide the calls between two ends at significant antimodes of a kernel estimate.

    Returns high, low, high, ..., high (`span` alone: no antimode), and the standard errors of the deepest
    antimode beyond its threshold.

    The bandwidth is that of Silverman (1986, section 3.4) for all calls, which is wide, so that few places
    are compared. Blocks find modes that are narrow or far away.
    """
    inside = (cells.edges[1:] > low) & (cells.edges[:-1] < high)
    counts = np.where(inside, cells.counts, 0).astype(np.float64)
    total = counts.sum()
    first, last = places_of_shares(cells, np.stack([counts] * 2), total * _QUARTERS)
    middles = 0.5 * (cells.edges[1:] + cells.edges[:-1])
    sigma = min((last - first) / 1.349, _deviation(middles, counts))
    used = np.flatnonzero((middles > first - 3 * sigma) & (middles < last + 3 * sigma) & (counts > 0))
    even = float(cells.widths[used].max(initial=0.0)) / np.sqrt(12)  # deviation of even calls in a cell
    bandwidth = max(0.9 * sigma * total**-0.2, even)
    if bandwidth <= 0 or sigma < bandwidth:
        return [span], -np.inf
    ends = max(low, first - _FAR * sigma), min(high, last + _FAR * sigma)
    at = np.linspace(*ends, int(np.clip(4 * (ends[1] - ends[0]) / bandwidth, 32, 2 * _MOST_CELLS)))
    smoother = Smoother(cells, at, bandwidth)
    density = smoother(counts)
    left = np.maximum.accumulate(density)
    right = np.maximum.accumulate(density[::-1])[::-1]
    peak = np.minimum(left, right)
    held = peak * bandwidth * 2 * np.sqrt(np.pi)
    least = max(LEAST_CALLS, LEAST_SHARE * cells.counts.sum())
    deep = (held >= least) & (peak > DEPTH_RATIO * density)
    error = np.sqrt((peak + density) * smoother.squares)
    scores = np.where(deep, (peak - density) / np.maximum(error, 1e-300), -np.inf)
    place = int(np.argmax(scores))
    widths, limits = zip(*KERNEL_THRESHOLDS, strict=True)
    smoothed = 1 / (2 * np.sqrt(np.pi) * smoother.squares[place])  # by the kernel and by cells
    # Calls all over a wide part, as of a background, have an antimode somewhere.
    parts = [counts * side for side in (middles < at[place], middles >= at[place])]
    width = max(sigma, *(_deviation(middles, part) for part in parts))
    beyond = float(scores[place] - np.interp(np.log(width / smoothed), np.log(widths), limits))
    if beyond < 0:
        return [span], beyond
    valley = float(at[place])
    tops = [float(at[np.argmax(density[:place])]), float(at[place + np.argmax(density[place:])])]
    near = min(bandwidth, 0.4 * min(valley - tops[0], tops[1] - valley))
    sides = [
        kernel_antimodes(cells, *part, (top - near, top + near))[0]
        for part, top in zip([(low, valley), (valley, high)], tops, strict=True)
    ]
    lowest = max(valley - near, sides[0][-1][1]), min(valley + near, sides[1][0][0])
    return [*sides[0], lowest, *sides[1]], beyond


_WINDOWS = (0.35, 0.5, 0.7, 1.0)
"""Lengths of windows, in widths of the cluster."""
_LEAST_CELLS_IN_WINDOW = 2.0
_LEAST_CONVEX = 1.15


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
            if len(outer) and share >= WORTH_NAMING:
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
