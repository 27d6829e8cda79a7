"""Log histogram: durations of each function, by the bins of ``bins.h``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events
from ensembles.passes.summary import Summary
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_BITS, BIN_COUNT, bin_edges_s, bin_low_ns
from ensembles.summaries.calltable import SUM_COLUMNS, compute_call_sums
from ensembles.summaries.phasecounts import duration_per_mib_ns


class LogHistogram(Summary):
    """A mergeable summary: a histogram of durations for each function.

    `counts`, shape (BIN_COUNT,): functions that occurred, in the order of first occurrence.
    """

    of_all_calls = True
    columns: tuple[str, ...] = SUM_COLUMNS
    results = ("counts",)
    added_up = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[Call, np.ndarray] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        present = compute_call_sums(chunk).present
        row_of_call = np.zeros(len(chunk.calls), np.uint16)
        row_of_call[present] = np.arange(len(present))
        counts = kernels.count_bins(row_of_call[chunk.call], chunk.duration, len(present))
        for number, row in zip(present.tolist(), counts, strict=True):
            call = chunk.calls[number]
            self.counts[call] = self.counts.get(call, 0) + row

    def n(self, call: Call) -> int:
        """Return the number of calls of a function."""
        return int(self.counts[call].sum())

    def time_s(self, call: Call) -> float:
        """Estimate the sum of durations in seconds, to the width of a bin (3.1 %)."""
        low_ns, high_ns = _least_and_largest_ns()
        return float(self.counts[call] @ (low_ns + high_ns)) * 0.5e-9

    def quantile_s(self, call: Call, levels: Sequence[float]) -> np.ndarray:
        """Estimate quantiles of the durations of a function.

        The durations of a bin are taken to be evenly spread over it. The error of a quantile is less than
        3.1 %, the width of a bin. Below 64 ns a bin holds one value, and quantiles are exact.
        """
        counts = self.counts[call]
        low_ns, high_ns = _least_and_largest_ns()
        before = np.concatenate([[0], np.cumsum(counts)])
        position = np.asarray(levels, dtype=np.float64) * before[-1]
        number = np.clip(np.searchsorted(before, position, side="left") - 1, 0, BIN_COUNT - 1)
        number = np.maximum(number, np.flatnonzero(counts)[0])
        part = np.clip((position - before[number]) / counts[number], 0, 1)
        quantiles_s: np.ndarray = (low_ns[number] + part * (high_ns[number] - low_ns[number])) * 1e-9
        return quantiles_s

    def rebinned(self, call: Call, edges_s: np.ndarray) -> np.ndarray:
        """Count durations by other bins.

        The durations of a bin are taken to be evenly spread over it, and each call counts in one bin.
        """
        before = np.concatenate([[0], np.cumsum(self.counts[call])])
        return np.diff(np.rint(np.interp(edges_s, bin_edges_s(), before)))

    def coarse(self, call: Call, per_octave: int = 8) -> tuple[np.ndarray, np.ndarray]:
        """Count durations by coarser bins of nearly equal ratio.

        Each of them is a whole number of bins of the bin law.

        The bins of the bin law have equal widths within an octave, so their ratios decrease towards its end.
        Drawn on a logarithmic axis, they would show steps that the durations do not have.
        """
        first_of_bin = coarse_bins(per_octave)
        counts = np.add.reduceat(self.counts[call], first_of_bin)
        used = np.flatnonzero(counts)
        chosen = slice(used[0], used[-1] + 1)
        edges_s = bin_edges_s()[np.append(first_of_bin, BIN_COUNT)]
        return edges_s[used[0] : used[-1] + 2], counts[chosen]


class LogHistogramPerMib(LogHistogram):
    """A mergeable summary: as `LogHistogram`, of durations per MiB. Calls that moved nothing are left out.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.histogram import LogHistogramPerMib
    >>> histogram = en.open("ensio-ior").summarize(ignoring_run(LogHistogramPerMib))
    >>> write = next(call for call in histogram.counts if call.name == "pwrite")
    >>> round(float(histogram.quantile_s(write, [0.5])[0]), 4)  # seconds per MiB: the writes are of 1 MiB
    0.0134
    """

    columns = tuple(dict.fromkeys((*SUM_COLUMNS, "moved")))

    def add(self, chunk: Events) -> None:
        """Add events."""
        moving = chunk.moved > 0
        some = chunk if moving.all() else chunk[moving]
        columns = {name: getattr(some, name) for name in SUM_COLUMNS}
        columns["duration"] = duration_per_mib_ns(some.duration, some.moved)
        super().add(Events.partly(columns, some.calls, some.files, some.sites))


def _least_and_largest_ns() -> tuple[np.ndarray, np.ndarray]:
    """Compute the least and the largest duration of each bin, ns: float64, shape (BIN_COUNT,)."""
    edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
    return edges_ns[:-1], edges_ns[1:] - 1


def coarse_bins(per_octave: int) -> np.ndarray:
    """Compute the first bin of the bin law in each coarser bin of nearly equal ratio."""
    fine = 1 << BIN_BITS
    ratio = 2.0 ** (np.arange(per_octave) / per_octave)
    small = np.unique(np.round(np.outer(2.0 ** np.arange(BIN_BITS), ratio)).astype(np.int64))
    octaves = np.arange(1, BIN_COUNT // fine)[:, None] * fine
    large = (octaves + np.unique(np.round(fine * ratio).astype(np.int64) - fine)).reshape(-1)
    return np.concatenate([[0], small[small < fine], large])
