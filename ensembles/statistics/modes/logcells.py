"""Calls counted in cells of log duration whose widths are what the clock and the bins can tell.

A density over log time is counts over widths. Where durations are whole multiples of a clock's step, the
width that a value stands for is that of the step and not that of its bin; and a bin may hold two multiples
and its neighbour three. With the true widths neither the clock nor the bin law makes ups and downs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.resolution import multiples_in_bins
from ensembles.summaries.bins import bin_low_ns

_ZERO_FROM_STEPS = 1.0 / 16
"""Where the cell of calls shorter than the step begins, in steps."""


@dataclass(frozen=True, eq=False)
class LogCells:
    """Adjoining cells of log duration, from the first that holds calls to the last.

    Attributes
    ----------
    edges : ndarray of float64, shape (k + 1,)
        Natural logarithm of the duration in seconds.
    counts : ndarray of int64, shape (k,)
        Calls.
    cell_of_bin : ndarray of int64, shape (BIN_COUNT,)
        The cell of each bin of the law; −1 or k: outside.
    step_s : float
        The step of the clock with which the cells were made.
    """

    edges: np.ndarray
    counts: np.ndarray
    cell_of_bin: np.ndarray
    step_s: float

    @classmethod
    def of(cls, counts: np.ndarray, step_s: float = 0.0) -> LogCells:
        """Cells of a histogram.

        Parameters
        ----------
        counts : ndarray of integers, shape (BIN_COUNT,)
            Calls in each bin of the law, some at least.
        step_s : float
            Step of the clock; below 1 ns it is that of the law, 1 ns.
        """
        step_ns = max(step_s * 1e9, 1.0)
        first, last = multiples_in_bins(step_ns)
        holding = np.flatnonzero((first <= last) & (last > 0))
        edges_ns = (np.append(first[holding], last[holding[-1]] + 1) - 0.5) * step_ns
        cell = _cells_of_bins(holding, edges_ns)
        # Calls shorter than the step lie anywhere below it: they join those of one step, in a wide cell.
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
        """Of the cells, in log time: float64, shape (k,)."""
        return np.diff(self.edges)

    def coarser(self, least: float, widest: float) -> LogCells:
        """Cells that hold fewer calls than `least` joined to neighbours of their kind, up to the width
        `widest`; empty ones in a row, to any width."""
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
    """The cell of each bin of the law: that of its own multiples, else (calls off the multiples, by rounding)
    of the multiple nearest to its middle; −1: below half a step."""
    low_ns = bin_low_ns().astype(np.float64)
    middle_ns = 0.5 * (low_ns + np.append(low_ns[1:], 2.0**64) - 1)
    cell = np.minimum(np.searchsorted(edges_ns, middle_ns, side="right") - 1, len(holding) - 1)
    cell[holding] = np.arange(len(holding))
    return cell
