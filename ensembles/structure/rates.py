"""Plateaus of the aggregate rate: times in which many calls together keep one rate.

Bursts: times in which data moved, apart from idle times, with rates that no grid limits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.events import Events
from ensembles.model.fields import Fields
from ensembles.model.levels import AGAIN, ALIKE, FEW, FEWEST_ALONE, RARE, WORTH_A_LINE
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.held_calls import HeldCalls
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_events

LEAST_BYTES = RARE
"""Least share of all bytes that a plateau moves."""

LEAST_CALLS = FEWEST_ALONE
"""Least number of calls of a plateau: one call has one rate, whatever it did."""

_PENALTY = 4.0


@dataclass(frozen=True)
class Plateau(Fields):
    """A time in which at least `LEAST_CALLS` calls keep their rate within a quarter of its median."""

    # from_s, to_s, time_s: Beginning and end in seconds since the origin of the run, and their difference
    from_s: float
    to_s: float
    time_s: float
    bytes_per_s: float  # Median rate
    bytes: float  # Bytes moved
    share: float  # Share of all bytes of this direction
    # low_bytes_per_s, high_bytes_per_s: 10 % and 90 % quantiles of the rate
    low_bytes_per_s: float
    high_bytes_per_s: float


@dataclass(frozen=True)
class Rates(Fields):
    """The aggregate rate in one direction.

    `active_s`: time in which at least one call moved bytes. `mean_bytes_per_s`: over active time.
    `window_bytes_per_s`: rate in the best cell of the curve, of `cell_s`. Where calls are shorter than a
    cell, and nothing moves between them, it is below the mean over active time; `peak_bytes_per_s` is the
    larger one. `plateaus`: in the order of time; between them the rate changes, or too few calls or bytes
    moved. `share_outside`: share of the bytes that moved outside of them.
    """

    op: str
    bytes: int
    active_s: float
    mean_bytes_per_s: float
    peak_bytes_per_s: float
    window_bytes_per_s: float
    cell_s: float
    plateaus: tuple[Plateau, ...]

    @property
    def share_outside(self) -> float:
        """Share of the bytes that moved outside of plateaus."""
        return max(1 - sum(plateau.share for plateau in self.plateaus), 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and the share outside of plateaus."""
        return super().to_json() | {"share_outside": self.share_outside}


def find_plateaus(curve: RateCurve, op: str) -> Rates:
    """Find the plateaus of the rate in one direction.

    The logarithm of the rate is divided where its mean changes: PELT with a squared-error cost and a penalty
    of 4 σ² log n for each change. σ is estimated from the differences of neighbouring cells, and at least
    10 %. Cells without data are separate stretches. Neighbours that differ by less than a quarter are joined.

    A stretch is a plateau if it has at least 1 % of the bytes, `LEAST_CALLS` calls and `AGAIN` cells
    between its edges, and if the 10 % and 90 % quantiles of its rate lie within a quarter of the median.
    Bytes are spread evenly over a call, so that the rate of few calls is constant whatever they did.

    References
    ----------
    R. Killick, P. Fearnhead, I. A. Eckley, "Optimal detection of changepoints with a linear computational
    cost", 2012; C. Truong, L. Oudre, N. Vayatis, "Selective review of offline change point detection
    methods", 2020.
    """
    moved = curve.moved_bytes[DIRECTIONS.index(op)]
    cell_s = curve.cell_ns * 1e-9
    total, active_s = curve.total_bytes(op), curve.active_s(op)
    if not total:
        return Rates(op, 0, 0.0, 0.0, 0.0, 0.0, cell_s, ())
    rate = moved / cell_s
    # Calls on a coarse clock may take no time: the rate is then unknown, and the cell bounds it.
    mean = total / active_s if active_s else float(rate.max())
    plateaus = []
    for low, high in _stretches(rate, WORTH_A_LINE * float(rate[rate > 0].mean())):
        share = float(moved[low:high].sum() / moved.sum())
        if share < LEAST_BYTES or high - low < AGAIN + 2:
            continue
        bottom, middle, top = quantiles(rate[low + 1 : high - 1], (0.1, 0.5, 0.9))
        if middle > ALIKE * bottom or top > ALIKE * middle:
            continue
        edges_ns = int(curve.edges_ns[low]), int(curve.edges_ns[high])
        if curve.active.calls_between(op, *edges_ns) < LEAST_CALLS:
            continue
        plateaus.append(
            Plateau(
                from_s=edges_ns[0] * 1e-9,
                to_s=edges_ns[1] * 1e-9,
                time_s=(edges_ns[1] - edges_ns[0]) * 1e-9,
                bytes_per_s=middle,
                bytes=float(moved[low:high].sum()),
                share=share,
                low_bytes_per_s=bottom,
                high_bytes_per_s=top,
            )
        )
    best = float(rate.max())
    return Rates(op, total, active_s, mean, max(best, mean), best, cell_s, tuple(plateaus))


def _stretches(rate: np.ndarray, idle: float) -> list[tuple[int, int]]:
    """Divide the cells into stretches of one mean rate: the first cell, and that after the last."""
    busy = rate > idle
    edges = np.flatnonzero(np.diff(np.concatenate([[False], busy, [False]]).astype(int)))
    found: list[tuple[int, int]] = []
    log_rate = np.log(np.where(busy, rate, 1.0))
    steps = np.diff(log_rate)[busy[1:] & busy[:-1]]
    # The median of absolute differences of independent normal values is 0.954 standard deviations.
    spread = max(median(np.abs(steps)) / 0.954 if len(steps) else 0.0, 0.1)
    for low, high in edges.reshape(-1, 2).tolist():
        found += [(low + first, low + last) for first, last in _pieces(log_rate[low:high], spread)]
    return _joined(rate, found)


def quantiles(values: np.ndarray, shares: Sequence[float]) -> list[float]:
    """Compute quantiles as NumPy does, whose own function imports masked arrays: 30 ms of processor time.

    `values`: at least one, and no NaN.
    """
    ascending, found = np.sort(values), []
    for share in shares:
        place = share * (len(values) - 1)
        low = int(place)
        at = place - low
        below, above = ascending[low], ascending[min(low + 1, len(values) - 1)]
        step = above - below
        found.append(float(below + step * at if at < 0.5 else above - step * (1 - at)))
    return found


def median(values: np.ndarray) -> float:
    """Compute the median of at least one number as NumPy does: the mean of the two in the middle."""
    ascending = np.sort(values)
    half = len(values) // 2
    return float(ascending[half] if len(values) % 2 else ascending[half - 1 : half + 1].mean())


def _pieces(log_rate: np.ndarray, spread: float) -> list[tuple[int, int]]:
    n = len(log_rate)
    if n < 2 * FEW:
        return [(0, n)]
    return divided(log_rate, _PENALTY * spread**2 * np.log(n), FEW)


def divided(values: np.ndarray, penalty: float, least: int) -> list[tuple[int, int]]:
    """Divide a series into pieces with the least squared deviations from their means.

    The division minimizes the sum of squares plus `penalty` for each piece (optimal partitioning, Jackson et
    al. 2005), with the pruning of Killick et al. 2012.
    """
    n = len(values)
    values = values - values.mean()
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best, last = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = 0.0
    begins = np.zeros(0, np.int64)  # where the last piece may begin

    def costs(begins: np.ndarray, end: int) -> np.ndarray:
        """Return the least cost up to `end` of divisions whose last piece has one of these beginnings."""
        of_last = squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / (end - begins)
        found: np.ndarray = best[begins] + of_last
        return found

    for end in range(least, n + 1):
        begin = end - least
        if best[begin] < np.inf:
            # From here on a piece that begins now is no worse than one that costs as much until now.
            begins = begins[costs(begins, begin) <= best[begin] + 1e-9 * (1 + abs(best[begin]))]
            begins = np.append(begins, begin)
        total = costs(begins, end)
        place = int(np.argmin(total))
        best[end], last[end] = total[place] + penalty, begins[place]
    ends = [n]
    while last[ends[-1]]:
        ends.append(int(last[ends[-1]]))
    ends = [0, *reversed(ends)]
    return list(itertools.pairwise(ends))


def _joined(rate: np.ndarray, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbouring stretches that differ by little, the most similar first."""
    stretches = list(stretches)
    at = 0
    while at < len(stretches):
        low, high = stretches[at]
        mean = rate[low:high].mean()
        beside = [
            (other, rate[slice(*stretches[other])].mean())
            for other in (at - 1, at + 1)
            if 0 <= other < len(stretches) and (stretches[other][1] == low or stretches[other][0] == high)
        ]
        above = [entry for entry in beside if entry[1] > mean]
        if high - low < AGAIN and above and (len(beside) == 1 or len(above) == 1):
            other = min(beside, key=lambda entry: abs(np.log(entry[1] / mean)))[0]
            first, last = min(at, other), max(at, other)
            stretches[first : last + 1] = [(stretches[first][0], stretches[last][1])]
            at = max(first - 1, 0)
        else:
            at += 1
    while len(stretches) > 1:
        means = np.array([rate[low:high].mean() for low, high in stretches])
        touch = np.array([one[1] == other[0] for one, other in itertools.pairwise(stretches)])
        apart = np.where(touch, np.abs(np.diff(np.log(means))), np.inf)
        at = int(np.argmin(apart))
        if apart[at] >= np.log(ALIKE):
            break
        stretches[at : at + 2] = [(stretches[at][0], stretches[at + 1][1])]
    return stretches


@dataclass(frozen=True)
class Burst(Fields):
    """A time in which data moved, from the start of the first call to the end of the last."""

    from_s: float
    to_s: float
    bytes: int
    calls: int
    bytes_per_s: float

    @property
    def time_s(self) -> float:
        """Length in s."""
        return self.to_s - self.from_s

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and `time_s`."""
        return super().to_json() | {"time_s": self.time_s}


class MovedSpans(Summary):
    """A mergeable summary: start, end and bytes of each call that moved bytes.

    Non-blocking requests move their bytes in their flight.
    """

    columns = ("call", "carried", "moved", "start", "duration", "flight")
    requires = ANY_ORDER
    results = ("_calls",)
    added_up = ("_calls",)
    meaning = 1

    def __init__(self) -> None:
        self._calls = HeldCalls("direction", "start_ns", "end_ns", "bytes")

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        direction = direction_of_events(chunk)
        mine = np.flatnonzero(direction >= 0)
        start, end = chunk.start[mine], chunk.start[mine] + np.maximum(chunk.duration, chunk.flight)[mine]
        self._calls.add(direction[mine], start, end, chunk.moved[mine])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``direction``, ``start_ns``, ``end_ns`` and ``bytes``, empty if there were too many."""
        return self._calls.to_arrays()

    def bursts(self, direction: str, idle_s: float) -> list[Burst] | None:
        """Find the bursts of a direction.

        Those that moved at least `LEAST_BYTES` of the bytes and took time, in the order of time. None: there
        were too many calls.
        """
        if not self._calls.is_complete:
            return None
        arrays = self.to_arrays()
        mine = arrays["direction"] == DIRECTIONS.index(direction)
        start, end, moved = (arrays[name][mine] for name in ("start_ns", "end_ns", "bytes"))
        if not len(start):
            return []
        order = np.argsort(start, kind="stable")
        start, end, moved = start[order], np.maximum.accumulate(end[order]), moved[order]
        first = np.flatnonzero(np.append(True, start[1:] - end[:-1] > idle_s * 1e9))
        last = np.append(first[1:], len(start)) - 1
        total = np.add.reduceat(moved, first)
        return [
            Burst(
                int(start[low]) * 1e-9,
                int(end[high]) * 1e-9,
                int(bytes_),
                int(high - low + 1),
                int(bytes_) / (int(end[high] - start[low]) * 1e-9),
            )
            for low, high, bytes_ in zip(first, last, total, strict=True)
            if bytes_ >= LEAST_BYTES * moved.sum() and end[high] > start[low]
        ]
