"""The histogram of an ensemble: number of calls, or their time, by duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.fields import Fields
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.summaries.bins import bin_edges_s
from ensembles.summaries.histogram import coarse_bins

SCALES = ("log", "linear")
WEIGHTS = ("calls", "time")


@dataclass(frozen=True, eq=False)
class Histogram(Fields):
    """Number of calls, or their time, in intervals of duration.

    Attributes
    ----------
    edges_s : ndarray of float64, shape (k + 1,)
        Seconds, or seconds per MiB.
    amounts : ndarray of float64, shape (k,)
        Number of calls in each bin, or their total time in seconds. Bins of the bin law that are divided
        contribute a share.
    scale : {"log", "linear"}
        Bins of nearly equal ratio, or of equal width.
    weight : {"calls", "time"}
        What `amounts` contains.
    """

    edges_s: np.ndarray
    amounts: np.ndarray
    scale: str
    weight: str

    @property
    def density(self) -> np.ndarray:
        """Share of the whole per unit of duration, shape (k,).

        On the log scale, per unit of the natural logarithm of duration, and 0 for a bin that begins at 0.
        """
        total = self.amounts.sum()
        if self.scale == "linear":
            width = np.diff(self.edges_s)
        else:
            with np.errstate(divide="ignore"):
                width = np.diff(np.log(self.edges_s))
        return self.amounts / (width * total) if total > 0 else np.zeros(len(self.amounts))


def compute_histogram(
    data: CountedDurations | WeightedValues,
    scale: Literal["log", "linear"] = "log",
    bins: int | None = None,
    weight: Literal["calls", "time"] = "calls",
) -> Histogram:
    """Compute the histogram of an ensemble.

    Examples
    --------
    >>> sample = CountedDurations.from_durations(np.array([1.0, 1.0, 4.0]))
    >>> histogram = compute_histogram(sample, bins=1)
    >>> histogram.amounts.tolist()
    [2.0, 0.0, 1.0]
    """
    if scale not in SCALES or weight not in WEIGHTS:
        raise EnsioError(
            f'a histogram of "{weight}" on a "{scale}" scale does not exist: scales are {", ".join(SCALES)}, '
            f"weights {', '.join(WEIGHTS)}"
        )
    if bins is not None and not (1 <= bins <= (32 if scale == "log" else 100_000)):
        most = "32 per octave" if scale == "log" else "100,000"
        raise EnsioError(f"a histogram of {bins} bins is not possible: give 1 to {most}")
    atoms = WeightedValues.from_sample(data)
    if not atoms.n:
        return Histogram(np.array([0.0, 1.0]), np.zeros(1), scale, weight)
    if scale == "log":
        edges_s = bin_edges_s()
        edges_s = edges_s[np.append(coarse_bins(bins or 8), len(edges_s) - 1)]
    else:
        count = bins or int(np.clip(3 * atoms.n**0.5, 24, 120))
        edges_s = np.linspace(0, atoms.high_s[-1] or 1e-9, count + 1)
    amount = atoms.total * (atoms.value_s if weight == "time" else 1.0)
    # Edges of the bin law are whole ns, as are most durations: the margin keeps rounding from deciding.
    amounts = _spread(atoms, amount, edges_s, 0.5e-9 if scale == "log" else 0.0)
    return Histogram(*_trimmed(edges_s, amounts, scale), scale, weight)


def _spread(atoms: WeightedValues, amount: np.ndarray, edges_s: np.ndarray, margin_s: float) -> np.ndarray:
    """Return the amounts of atoms between edges, with each atom spread evenly over its range."""
    below = np.zeros(len(edges_s))
    width = atoms.high_s - atoms.low_s
    exact = width <= 0
    order = np.concatenate([[0], np.cumsum(np.where(exact, amount, 0))])
    below += order[np.searchsorted(atoms.value_s, edges_s - margin_s, side="left")]
    if not exact.all():
        low, high, part = atoms.low_s[~exact], atoms.high_s[~exact] + 1e-9, amount[~exact]
        ends = np.stack([low, high], axis=1).reshape(-1)
        steps = np.cumsum(np.stack([np.zeros(len(part)), part], axis=1).reshape(-1))
        below += np.interp(edges_s, np.maximum.accumulate(ends), steps)
    below[-1] = amount.sum()
    below[0] = 0.0
    return np.diff(below)


def _trimmed(edges_s: np.ndarray, amounts: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Drop empty bins at both ends of a log scale."""
    if scale == "linear":
        return edges_s, amounts
    used = np.flatnonzero(amounts > 1e-12 * amounts.sum())
    if not len(used):  # calls of no duration, weighed by time
        return edges_s[:2], amounts[:1]
    return edges_s[used[0] : used[-1] + 2], amounts[used[0] : used[-1] + 1]
