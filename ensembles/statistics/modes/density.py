"""The density of log duration: cells as wide as the clock allows, smoothed, with its maxima and antimodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ensembles.model.levels import FEWEST, MOST_DENSE
from ensembles.statistics import special
from ensembles.statistics.samples.clock_step import multiples_in_bins
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_low_ns

DEPTH_RATIO = 1.08
"""Least ratio of the density of a mode to that of an adjacent antimode; smaller differences are irrelevant.
"""
LEAST_SHARE = 0.005
"""Least share of the calls that a mode has in excess of the density of the adjacent antimode."""
LEAST_CALLS = 6
"""Least number of these calls."""


@dataclass(frozen=True, eq=False)
class CellBlocks:
    """Contiguous blocks of cells."""

    # start, end: int64, shape (m,): First cell, and the cell after the last; sorted by `start`
    start: np.ndarray
    end: np.ndarray
    # calls, width: float64, shape (m,): Number of calls, and width in log time
    calls: np.ndarray
    width: np.ndarray

    @classmethod
    def from_counts(cls, counts: np.ndarray, edges: np.ndarray) -> CellBlocks:
        """Make blocks of 1, 2, 3, 4, 6, 8, ... cells at distances of half their length."""
        cells, length, starts, ends = len(counts), 1, [], []
        while length <= cells:
            first = np.unique(
                np.append(np.arange(0, cells - length + 1, max(1, length // 2)), cells - length)
            )
            starts.append(first)
            ends.append(first + length)
            length = (
                length + 1
                if length < 4
                else length * 3 // 2
                if length & (length - 1) == 0
                else length * 4 // 3
            )
        start, end = np.concatenate(starts), np.concatenate(ends)
        order = np.lexsort((end, start))
        start, end = start[order], end[order]
        before = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
        return cls(start, end, before[end] - before[start], edges[end] - edges[start])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence that blocks are denser than others."""

    # high, low: int64, shape (h,) and (v,): Blocks that may be modes, and blocks that may be antimodes
    high: np.ndarray
    low: np.ndarray
    # before, after: float32, shape (h, v): Evidence that the high block is denser, where it lies before
    # (after) the low block; −inf: it does not
    before: np.ndarray
    after: np.ndarray

    def deepest(self) -> float:
        """Return the evidence of the most significant antimode; −inf: none.

        The evidence of an antimode is the lesser of those against its left and its right side.
        """
        if not self.before.size:
            return -np.inf
        return float(np.minimum(self.before.max(axis=0), self.after.max(axis=0)).max())


def evidence(blocks: CellBlocks, total: float) -> Evidence:
    """Compare blocks in pairs.

    Z is the signed root of the log-likelihood ratio against "at most `DEPTH_RATIO` times as dense", and the
    evidence is ``Z - sqrt(2 log(e total / (calls of both)))`` (Dümbgen and Spokoiny 2001).
    """
    density = blocks.calls / blocks.width
    least = max(LEAST_CALLS, LEAST_SHARE * total)
    high = np.flatnonzero(blocks.calls >= least)
    # The densest block that ends before a place, and that begins behind one.
    cells = int(blocks.end.max())
    until, since = np.zeros(cells + 1), np.zeros(cells + 1)
    np.maximum.at(until, blocks.end[high], density[high])
    np.maximum.at(since, blocks.start[high], density[high])
    until, since = np.maximum.accumulate(until), np.maximum.accumulate(since[::-1])[::-1]
    beside = np.minimum(until[blocks.start], since[blocks.end])
    low = np.flatnonzero(DEPTH_RATIO * density < beside)
    before = blocks.end[high][:, None] <= blocks.start[low][None, :]
    after = blocks.start[high][:, None] >= blocks.end[low][None, :]
    found = []
    for apart in (before, after):
        score = np.full(apart.shape, -np.inf, np.float32)
        pairs = np.flatnonzero(apart & (density[high][:, None] > DEPTH_RATIO * density[low][None, :]))
        i, j = np.divmod(pairs, max(len(low), 1))
        keep = blocks.calls[high[i]] - DEPTH_RATIO * blocks.width[high[i]] * density[low[j]] >= least
        i, j = i[keep], j[keep]
        score[i, j] = _scores(blocks, high[i], low[j], total)
        found.append(score)
    return Evidence(high, low, *found)


def _scores(blocks: CellBlocks, high: np.ndarray, low: np.ndarray, total: float) -> np.ndarray:
    a, b = blocks.calls[high], blocks.calls[low]
    both = a + b
    chance = DEPTH_RATIO * blocks.width[high] / (DEPTH_RATIO * blocks.width[high] + blocks.width[low])
    ratio = a * np.log(a / (both * chance)) + b * np.log(np.maximum(b, 1e-300) / (both * (1 - chance)))
    scores: np.ndarray = np.sqrt(2 * np.maximum(ratio, 0)) - np.sqrt(2 * np.log(math.e * total / both))
    return scores


def has_hill(blocks: CellBlocks, total: float, threshold: float) -> bool:
    """Return whether a block is significantly denser than one before it and one after it."""
    density = blocks.calls / blocks.width
    high = np.flatnonzero(blocks.calls >= max(LEAST_CALLS, LEAST_SHARE * total))
    hill = np.ones(len(high), bool)
    denser = density[high][:, None] > DEPTH_RATIO * density[None, :]
    for apart in (
        blocks.end[high][:, None] <= blocks.start[None, :],
        blocks.start[high][:, None] >= blocks.end[None, :],
    ):
        i, j = np.nonzero(apart & denser)
        best = np.full(len(high), -np.inf)
        np.maximum.at(best, i, _scores(blocks, high[i], j, total))
        hill &= best >= threshold
    return bool(hill.any())


def chain(found: Evidence, threshold: float) -> list[int]:
    """Find the longest chain of alternately high and low blocks.

    Successive blocks differ significantly; of equally long chains, the one with the most evidence is taken.
    Empty: no antimode is significant.
    """
    before = np.where(found.before >= threshold, found.before, -np.inf)
    after = np.where(found.after >= threshold, found.after, -np.inf)
    if not before.size:
        return []
    sum_of_high = np.zeros(len(found.high))
    steps = []
    while True:
        down = sum_of_high[:, None] + before
        sum_of_low = down.max(axis=0)
        up = sum_of_low[None, :] + after
        next_sum = up.max(axis=1)
        if not np.isfinite(next_sum).any():
            break
        steps.append((down.argmax(axis=0), up.argmax(axis=1)))
        sum_of_high = next_sum
    if not steps:
        return []
    high = int(sum_of_high.argmax())
    row = [int(found.high[high])]
    for from_high, from_low in reversed(steps):
        low = int(from_low[high])
        high = int(from_high[low])
        row[:0] = [int(found.high[high]), int(found.low[low])]
    return row


_ZERO_FROM_STEPS = 1.0 / 16
"""Lower edge of the cell of calls shorter than the step, in steps."""


@dataclass(frozen=True, eq=False)
class LogCells:
    """Adjacent cells of log duration, from the first with calls to the last."""

    edges: np.ndarray  # float64, shape (k + 1,): Natural logarithm of the duration in seconds
    counts: np.ndarray  # int64, shape (k,): Number of calls
    cell_of_bin: np.ndarray  # int64, shape (BIN_COUNT,): Cell of each bin of the bin law; −1 or k: outside
    step_s: float  # Step of the clock for which the cells were made, in seconds

    @classmethod
    def from_counts(cls, counts: np.ndarray, step_s: float = 0.0) -> LogCells:
        """Make the cells of a histogram."""
        step_ns = max(step_s * 1e9, 1.0)
        first, last = multiples_in_bins(step_ns)
        holding = np.flatnonzero((first <= last) & (last > 0))
        edges_ns = (np.append(first[holding], last[holding[-1]] + 1) - 0.5) * step_ns
        cell = _cells_of_bins(holding, edges_ns)
        # Calls shorter than the step lie anywhere below it: one wide cell holds them and those of one step.
        shorter = counts[cell < 0].sum() > 0 or first[holding[0]] == 0
        edges_ns[0] = step_ns * (_ZERO_FROM_STEPS if shorter else 0.5)
        cell = np.maximum(cell, 0)
        per_cell = np.bincount(cell, counts, minlength=len(holding)).astype(np.int64)
        used = np.flatnonzero(per_cell)
        chosen = slice(used[0], used[-1] + 1)
        return cls(
            edges=np.log(edges_ns[used[0] : used[-1] + 2] * 1e-9),
            counts=per_cell[chosen],
            cell_of_bin=cell - used[0],
            step_s=step_ns * 1e-9,
        )

    @property
    def widths(self) -> np.ndarray:
        """Width of the cells in log time: float64, shape (k,)."""
        return np.diff(self.edges)

    def coarser(self, least: float, widest: float) -> LogCells:
        """Join cells with few calls to their neighbours."""
        begin, held, start, empty = [0], 0, self.edges[0], True
        for i, (count, high) in enumerate(zip(self.counts.tolist(), self.edges[1:].tolist(), strict=True)):
            full = held >= least or (held > 0 and (high - start > widest or count >= least))
            if i and (full or (empty and count > 0)):
                begin.append(i)
                held, start, empty = 0, self.edges[i], True
            held, empty = held + count, empty and count == 0
        first = np.array(begin)
        joined = np.searchsorted(first, np.arange(len(self.counts)), side="right") - 1
        outside = (self.cell_of_bin < 0) | (self.cell_of_bin >= len(self.counts))
        inside = joined[np.clip(self.cell_of_bin, 0, len(self.counts) - 1)]
        return LogCells(
            edges=self.edges[np.append(first, len(self.counts))],
            counts=np.add.reduceat(self.counts, first),
            cell_of_bin=np.where(outside, np.where(self.cell_of_bin < 0, -1, len(first)), inside),
            step_s=self.step_s,
        )


def _cells_of_bins(holding: np.ndarray, edges_ns: np.ndarray) -> np.ndarray:
    """Return the cell of each bin of the bin law; −1: below half a step.

    A bin that holds a multiple of the step has its cell; other bins (whose calls are off the multiples by
    rounding) have that of the multiple nearest to their middle.
    """
    low_ns = bin_low_ns().astype(np.float64)
    middle_ns = 0.5 * (low_ns + np.append(low_ns[1:], 2.0**64) - 1)
    cell: np.ndarray = np.minimum(np.searchsorted(edges_ns, middle_ns, side="right") - 1, len(holding) - 1)
    cell[holding] = np.arange(len(holding))
    return cell


_REACH = 5.0


def replicates(sample: CountedDurations, cells: LogCells, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw counts as another run might have given them: shape (size, cells).

    With five or more known phases, whole ones are drawn, because their calls are dependent (Davison and
    Hinkley 1997, section 3.8); more than `MOST_DENSE` are put into as many groups. Otherwise calls are drawn.
    """
    phases = resampled_phases(sample)
    if not phases:
        return rng.multinomial(sample.total, cells.counts / sample.total, size=size).astype(np.float64)
    groups = min(phases, MOST_DENSE)
    counts = by_phase(
        sample, cells, np.arange(phases) if groups == phases else rng.permutation(phases) % groups
    )
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=size)
    counts_drawn: np.ndarray = drawn.astype(np.float64) @ counts
    return counts_drawn


def resampled_phases(sample: CountedDurations) -> int:
    """Return the number of phases that `replicates` draws; 0: it draws calls."""
    return len(sample.phase) if sample.phases_known and len(sample.phase) >= FEWEST else 0


def by_phase(sample: CountedDurations, cells: LogCells, group: np.ndarray) -> np.ndarray:
    """Count calls by cell and group of phases: float64, shape (groups, cells)."""
    cells_count = len(cells.counts)
    cell = np.clip(cells.cell_of_bin[sample.bin], 0, cells_count - 1)
    row = np.repeat(group, np.diff(sample.begin))
    flat = np.bincount(row * cells_count + cell, sample.count, minlength=(group.max() + 1) * cells_count)
    return flat.reshape(-1, cells_count)


class Smoother:
    """Kernel estimate of a density at increasing positions in log time, from counts in cells.

    The kernel is integrated over each cell, in which calls are spread evenly (Wand and Jones 1995, 2.8).
    """

    def __init__(self, cells: LogCells, at: np.ndarray, bandwidth: float) -> None:
        reach = _REACH * bandwidth
        low = max(int(np.searchsorted(cells.edges, at[0] - reach)) - 1, 0)
        high = min(int(np.searchsorted(cells.edges, at[-1] + reach)) + 1, len(cells.edges) - 1)
        self._cells = slice(low, high)
        within = np.diff(special.ndtr((cells.edges[low : high + 1, None] - at[None, :]) / bandwidth), axis=0)
        self._widths = cells.widths[low:high]
        self._kernel = within / self._widths[:, None]

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        """Return the densities of counts in calls per unit of log time: shape (..., g)."""
        density: np.ndarray = counts[..., self._cells] @ self._kernel
        return density

    @property
    def squares(self) -> np.ndarray:
        """Variances of the densities of Poisson counts, over densities: float64, shape (g,)."""
        squares: np.ndarray = self._widths @ self._kernel**2
        return squares


def highest(at: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Return the position of the maximum of each density, refined by a parabola."""
    top = np.clip(density.argmax(axis=-1), 1, len(at) - 2)[..., None]
    left, middle, right = (np.take_along_axis(density, top + k, axis=-1)[..., 0] for k in (-1, 0, 1))
    bend = left - 2 * middle + right
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend < 0, 0.5 * (left - right) / bend, 0.0)
    place: np.ndarray = at[top[..., 0]] + np.clip(shift, -1, 1) * (at[1] - at[0])
    return place


def lowest(at: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Return the position of the minimum of each density, or the middle of a flat one."""
    floor = density <= density.min(axis=-1, keepdims=True) + 1e-6 * density.max(axis=-1, keepdims=True)
    first = floor.argmax(axis=-1)
    last = len(at) - 1 - floor[..., ::-1].argmax(axis=-1)
    together = (
        np.take_along_axis(np.cumsum(floor, axis=-1), last[..., None], axis=-1)[..., 0] == last - first + 1
    )
    place: np.ndarray = np.where(together, 0.5 * (at[first] + at[last]), at[density.argmin(axis=-1)])
    return place


def shortest_span(cells: LogCells, low: float, high: float, share: float) -> tuple[float, float]:
    """Return the ends of the shortest interval that holds a share of the calls."""
    before = np.concatenate([[0], np.cumsum(cells.counts)]).astype(np.float64)
    first, last = np.interp([low, high], cells.edges, before)
    wanted = share * (last - first)
    begins = np.concatenate([before, before - wanted, [first]])
    begins = np.unique(np.clip(begins, first, last - wanted))
    held = np.flatnonzero(cells.counts)
    ends = before[held + 1]

    def places(calls: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
        cell = held[np.minimum(np.searchsorted(ends, calls, side=side), len(held) - 1)]
        place: np.ndarray = (
            cells.edges[cell] + (calls - before[cell]) / cells.counts[cell] * cells.widths[cell]
        )
        return place

    place_low, place_high = places(begins, "right"), places(begins + wanted, "left")
    best = int(np.argmin(place_high - place_low))
    return float(place_low[best]), float(place_high[best])


def places_of_shares(cells: LogCells, counts: np.ndarray, calls: np.ndarray) -> np.ndarray:
    """Return positions in log time below which given numbers of calls lie."""
    before = np.cumsum(counts, axis=1)
    cell = np.minimum((before < calls[:, None]).sum(axis=1), counts.shape[1] - 1)
    row = np.arange(len(counts))
    held = counts[row, cell]
    part = np.where(held > 0, (calls - before[row, cell] + held) / np.where(held > 0, held, 1), 0.5)
    place: np.ndarray = cells.edges[cell] + np.clip(part, 0, 1) * cells.widths[cell]
    return place
