"""The histogram of an ensemble: calls, or the time they took, by duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.summaries.bins import bin_edges_s
from ensembles.summaries.histogram import coarse_bins

SCALES = ("log", "linear")
WEIGHTS = ("calls", "time")


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often durations lie between edges.

    Attributes
    ----------
    edges_s : ndarray of float64, shape (k + 1,)
        Seconds, or seconds per MiB.
    amounts : ndarray of float64, shape (k,)
        Calls in each bin, or the seconds they took together. Where bins of the law are cut, a share of them.
    scale : {"log", "linear"}
        Bins of nearly equal ratio, or of equal width.
    weight : {"calls", "time"}
    """

    edges_s: np.ndarray
    amounts: np.ndarray
    scale: str
    weight: str

    @property
    def rate_edges(self) -> np.ndarray:
        """The edges as rates: 1 / s; of an ensemble per MiB, MiB/s. Falling; infinite where an edge is 0."""
        with np.errstate(divide="ignore"):
            return 1 / self.edges_s

    @property
    def density(self) -> np.ndarray:
        """Share of the whole per unit of duration, on the log scale per unit of its natural logarithm: shape
        (k,); 0 on the log scale for a bin that begins with 0."""
        total = self.amounts.sum()
        if self.scale == "linear":
            width = np.diff(self.edges_s)
        else:
            with np.errstate(divide="ignore"):
                width = np.diff(np.log(self.edges_s))
        return self.amounts / (width * total) if total > 0 else np.zeros(len(self.amounts))

    def to_json(self) -> dict[str, object]:
        """The attributes, as lists and texts."""
        return {
            "edges_s": self.edges_s.tolist(),
            "amounts": self.amounts.tolist(),
            "scale": self.scale,
            "weight": self.weight,
        }


def compute_histogram(
    data: CountedDurations | WeightedValues,
    scale: Literal["log", "linear"] = "log",
    bins: int | None = None,
    weight: Literal["calls", "time"] = "calls",
) -> Histogram:
    """The histogram of an ensemble.

    Parameters
    ----------
    data : Sample or Atoms
    scale : {"log", "linear"}
    bins : int, optional
        On the log scale bins per octave, 1 to 32 (default 8); on the linear one all bins (default: as many as
        the calls can fill, up to 120).
    weight : {"calls", "time"}
        What is counted.

    Raises
    ------
    EnsioError
        An argument makes no sense.
    """
    if scale not in SCALES or weight not in WEIGHTS:
        raise EnsioError(
            f'there is no histogram of "{weight}" on a "{scale}" scale: scales are {", ".join(SCALES)}, '
            f"weights {', '.join(WEIGHTS)}"
        )
    if bins is not None and not (1 <= bins <= (32 if scale == "log" else 100_000)):
        raise EnsioError(f"a histogram of {bins} bins makes no sense: give 1 to 32 (an octave) or 100,000")
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
    # Edges of the law are whole ns, as most durations are: neither's rounding may decide.
    amounts = _spread(atoms, amount, edges_s, 0.5e-9 if scale == "log" else 0.0)
    return Histogram(*_trimmed(edges_s, amounts, scale), scale, weight)


def _spread(atoms: WeightedValues, amount: np.ndarray, edges_s: np.ndarray, margin_s: float) -> np.ndarray:
    """Amounts of atoms between edges; those of an atom that is wide are spread evenly over it."""
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
    """On the log scale, from the first bin that holds something to the last."""
    if scale == "linear":
        return edges_s, amounts
    used = np.flatnonzero(amounts > 1e-12 * amounts.sum())
    if not len(used):  # calls of no duration, weighed by time
        return edges_s[:2], amounts[:1]
    return edges_s[used[0] : used[-1] + 2], amounts[used[0] : used[-1] + 1]
