"""Histograms of durations, one per call, with the bins of ``bins.h``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Call, Events
from ensembles.passes.summary import Summary
from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_BITS, BIN_COUNT, bin_edges_s, bin_low_ns
from ensembles.summaries.callsums import SUM_COLUMNS, compute_call_sums


class LogHistogram(Summary):
    """Number of calls per duration, for each call of a run.

    Attributes
    ----------
    counts : dict of Call to ndarray of int64, shape (BIN_COUNT,)
        Calls that occurred, in order of first occurrence.
    """

    columns = SUM_COLUMNS

    def __init__(self) -> None:
        self.counts: dict[Call, np.ndarray] = {}

    def add(self, chunk: Events) -> None:
        """Add events.

        Raises
        ------
        IndexError
            A duration is negative.
        """
        if not len(chunk):
            return
        present = compute_call_sums(chunk).present
        row_of_call = np.zeros(len(chunk.calls), np.uint16)
        row_of_call[present] = np.arange(len(present))
        counts = kernels.count_bins(row_of_call[chunk.call], chunk.duration, len(present))
        for number, row in zip(present.tolist(), counts, strict=True):
            self._add(chunk.calls[number], row)

    def merge(self, other: LogHistogram) -> None:
        """Add what another histogram holds; calls are told apart by name and layer."""
        for call, counts in other.counts.items():
            self._add(call, counts)

    def _add(self, call: Call, counts: np.ndarray) -> None:
        if call in self.counts:
            self.counts[call] += counts
        else:
            self.counts[call] = counts.copy()

    def n(self, call: Call) -> int:
        """Number of calls."""
        return int(self.counts[call].sum())

    def time_s(self, call: Call) -> float:
        """Time in all calls together, seconds, as far as the widths of the bins allow (3.1 %)."""
        low_ns, high_ns = _least_and_largest_ns()
        return float(self.counts[call] @ (low_ns + high_ns)) * 0.5e-9

    def quantile_s(self, call: Call, levels: Sequence[float]) -> np.ndarray:
        """Quantiles of the durations of a call.

        Durations are whole ns, and within a bin are taken to be spread evenly, so a quantile is off by less
        than 3.1 %, the width of a bin; below 64 ns, where a bin holds one value, it is exact.

        Parameters
        ----------
        call : Call
            One that occurred.
        levels : sequence of float, shape (k,)
            0 to 1.

        Returns
        -------
        ndarray of float64, shape (k,)
            Seconds.
        """
        counts = self.counts[call]
        low_ns, high_ns = _least_and_largest_ns()
        before = np.concatenate([[0], np.cumsum(counts)])
        position = np.asarray(levels, dtype=np.float64) * before[-1]
        number = np.clip(np.searchsorted(before, position, side="left") - 1, 0, BIN_COUNT - 1)
        number = np.maximum(number, np.flatnonzero(counts)[0])
        part = np.clip((position - before[number]) / counts[number], 0, 1)
        return (low_ns[number] + part * (high_ns[number] - low_ns[number])) * 1e-9

    def rebinned(self, call: Call, edges_s: np.ndarray) -> np.ndarray:
        """Counts in other bins, each bin of the law being spread evenly over its width.

        Parameters
        ----------
        call : Call
            One that occurred.
        edges_s : ndarray of float64, shape (k + 1,)
            Rising, in seconds.

        Returns
        -------
        ndarray of float64, shape (k,)
            Not always whole numbers.
        """
        before = np.concatenate([[0], np.cumsum(self.counts[call])])
        return np.diff(np.interp(edges_s, bin_edges_s(), before))

    def coarse(self, call: Call, per_octave: int = 8) -> tuple[np.ndarray, np.ndarray]:
        """Counts in bins of nearly equal ratio, each of them a whole number of bins of the law.

        The bins of the law are equally wide within an octave, and so become narrower in ratio towards its
        end; a picture on a logarithmic axis that drew them as they are would show steps that the durations do
        not have.

        Parameters
        ----------
        call : Call
            One that occurred.
        per_octave : int
            Bins per octave.

        Returns
        -------
        edges_s : ndarray of float64, shape (k + 1,)
            From the first bin that holds calls to the last, in seconds.
        counts : ndarray of int64, shape (k,)
        """
        first_of_bin = coarse_bins(per_octave)
        counts = np.add.reduceat(self.counts[call], first_of_bin)
        used = np.flatnonzero(counts)
        chosen = slice(used[0], used[-1] + 1)
        edges_s = bin_edges_s()[np.append(first_of_bin, BIN_COUNT)]
        return edges_s[used[0] : used[-1] + 2], counts[chosen]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``counts``, int64, shape (calls, BIN_COUNT), and ``call``, the names of the rows as
        ``layer:name``."""
        counts = np.array(list(self.counts.values()), dtype=np.int64).reshape(-1, BIN_COUNT)
        names = np.array([f"{call.layer}:{call.name}" for call in self.counts], dtype=str)
        return {"counts": counts, "call": names}


def _least_and_largest_ns() -> tuple[np.ndarray, np.ndarray]:
    """Least and largest duration of each bin, whole ns: float64, shape (BIN_COUNT,) both."""
    edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
    return edges_ns[:-1], edges_ns[1:] - 1


def coarse_bins(per_octave: int) -> np.ndarray:
    """First bin of the law in each bin of nearly equal ratio, of which there are so many an octave."""
    fine = 1 << BIN_BITS
    ratio = 2.0 ** (np.arange(per_octave) / per_octave)
    small = np.unique(np.round(np.outer(2.0 ** np.arange(BIN_BITS), ratio)).astype(np.int64))
    octaves = np.arange(1, BIN_COUNT // fine)[:, None] * fine
    large = (octaves + np.unique(np.round(fine * ratio).astype(np.int64) - fine)).reshape(-1)
    return np.concatenate([[0], small[small < fine], large])
