"""The density of log duration: cells as wide as the clock allows, smoothed, with its maxima and antimodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

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


_ZERO_FROM_STEPS = 1.0 / 16
"""Lower edge of the cell of calls shorter than the step, in steps."""


@dataclass(frozen=True, eq=False)
class LogCells:
    """Adjacent cells of log duration, from the first with calls to the last."""

    edges: np.ndarray  # Natural logarithm of the duration in seconds; shape (k + 1,)
    counts: np.ndarray  # Number of calls; shape (k,)
    cell_of_bin: np.ndarray  # Cell of each bin of the bin law; −1 or k: outside; shape (BIN_COUNT,)
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

    def joined(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return edges and counts of at most so many cells of nearly equal width."""
        step = (self.edges[-1] - self.edges[0]) / most
        number = np.floor((self.edges[:-1] - self.edges[0]) / step + 1e-9)
        first = np.flatnonzero(np.diff(number, prepend=-1))
        return self.edges[np.append(first, len(self.counts))], np.add.reduceat(self.counts, first)


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


_GROUPS = 512
_LEAST_PHASES = 5
_REACH = 5.0


def replicates(sample: CountedDurations, cells: LogCells, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw counts as another run might have given them.

    With five or more known phases, whole phases are drawn with replacement, because calls of a phase are
    dependent; more than 512 phases are first put into 512 random groups. Otherwise calls are drawn.
    """
    phases = resampled_phases(sample)
    if not phases:
        return rng.multinomial(sample.total, cells.counts / sample.total, size=size).astype(np.float64)
    groups = min(phases, _GROUPS)
    counts = by_phase(
        sample, cells, np.arange(phases) if groups == phases else rng.permutation(phases) % groups
    )
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=size)
    counts_drawn: np.ndarray = drawn.astype(np.float64) @ counts
    return counts_drawn


def resampled_phases(sample: CountedDurations) -> int:
    """Return the number of phases that `replicates` draws; 0: it draws calls."""
    return len(sample.phase) if sample.phases_known and len(sample.phase) >= _LEAST_PHASES else 0


def by_phase(sample: CountedDurations, cells: LogCells, group: np.ndarray) -> np.ndarray:
    """Count calls by cell and group of phases: float64, shape (groups, cells)."""
    cells_count = len(cells.counts)
    cell = np.clip(cells.cell_of_bin[sample.bin], 0, cells_count - 1)
    row = np.repeat(group, np.diff(sample.begin))
    flat = np.bincount(row * cells_count + cell, sample.count, minlength=(group.max() + 1) * cells_count)
    return flat.reshape(-1, cells_count)


class Smoother:
    """Kernel estimate of a density at fixed positions from counts in cells.

    The kernel is integrated over each cell, in which calls are assumed to be spread evenly.

    References
    ----------
    M. P. Wand and M. C. Jones, Kernel Smoothing, 1995, section 2.8.
    """

    def __init__(self, cells: LogCells, at: np.ndarray, bandwidth: float) -> None:
        from ensembles.statistics.special import ndtr

        reach = _REACH * bandwidth
        low = max(int(np.searchsorted(cells.edges, at[0] - reach)) - 1, 0)
        high = min(int(np.searchsorted(cells.edges, at[-1] + reach)) + 1, len(cells.edges) - 1)
        self._cells = slice(low, high)
        within = np.diff(ndtr((cells.edges[low : high + 1, None] - at[None, :]) / bandwidth), axis=0)
        self._kernel = within / cells.widths[low:high, None]

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        """Return the densities of counts."""
        density: np.ndarray = counts[..., self._cells] @ self._kernel
        return density


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
    """Return the position of the minimum of each density, or the middle of a flat one.

    The shapes are those of `highest`.
    """
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
