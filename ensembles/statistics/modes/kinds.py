"""What a cluster of calls is: a mode, calls of few phases, or calls that are spread without a peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import A_TENTH, CERTAIN, FEWEST, RARE, SIGNIFICANT
from ensembles.model.units import seconds_text, share_text
from ensembles.statistics import special
from ensembles.statistics.modes.clusters import (
    THRESHOLD,
    cells_to_look_at,
    chance_of_second_mode,
    highs_and_lows,
    kernel_antimodes,
)
from ensembles.statistics.modes.density import DEPTH_RATIO, CellBlocks, LogCells, has_hill
from ensembles.statistics.modes.locations import Span, fit_log_density
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

_LEAST_PHASES = 4
_MOST_EVIDENCE = 2.0
"""Largest probability of as many calls of a phase in a cluster if the antimode were as dense."""


def time_text(time_share: float | None) -> str:
    """Return what some calls took of the time of all, in brackets; ``""`` if it is unknown.

    Examples
    --------
    >>> from ensembles.statistics.modes.kinds import time_text
    >>> time_text(0.642)
    ' (64 % of the time)'
    """
    return "" if time_share is None else f" ({share_text(time_share)} of the time)"


def time_shares(sample: CountedDurations, bounds: np.ndarray, from_s: float = 0.0) -> np.ndarray:
    """Return what the calls of each cluster took of the time of all calls.

    `bounds`: log times between the clusters, and their ends. Calls of a bin last as long as its middle; the
    sum is 1 if all calls count.
    """
    edges_s = bin_edges_s()
    middles_s = 0.5 * (edges_s[:-1] + np.minimum(edges_s[1:], sample.max_s.max()))
    before_s = np.append(0.0, np.cumsum(sample.counts * middles_s))
    ends_s = np.interp(np.exp(bounds), edges_s, before_s)
    ends_s[[0, -1]] = 0.0, before_s[-1]
    if from_s > 0.0:
        ends_s = np.maximum(ends_s, np.interp(from_s, edges_s, before_s))
    shares: np.ndarray = np.diff(ends_s) / max(float(before_s[-1]), 1e-300)
    return shares


@dataclass(frozen=True)
class Bump(Fields):
    """A cluster that few phases made, so that the next run may not show it: not a mode."""

    # low_s, high_s: Range of its durations, in seconds
    low_s: float
    high_s: float
    share: float  # Share of the calls
    phase: int  # Phase that made most of these calls; -1: calls outside of the phases
    effective_phases: float  # Effective number of phases that made them
    time_share: float | None = None  # Share of the time of all calls; None: unknown, as of times per MiB
    of_phases: int | None = None  # Number of phases with calls of the ensemble; None: not given

    def __str__(self) -> str:
        what = (
            f"cluster of few phases: {share_text(self.share, 1)} of the calls{time_text(self.time_share)}, "
            f"from {seconds_text(self.low_s)} to {seconds_text(self.high_s)},"
        )
        if self.effective_phases < 1.5:
            alone = f"phase {self.phase} alone" if self.phase >= 0 else "calls outside of the phases alone"
            return f"{what} come from {alone}"
        most = f"phase {self.phase}" if self.phase >= 0 else "calls outside of the phases"
        of = "" if self.of_phases is None else f" of {self.of_phases}"
        some = f"about {self.effective_phases:.0f}{of} phases"
        if self.of_phases is not None and self.effective_phases > 0.5 * self.of_phases:
            return f"{what} are in {some}, but stand out in few of them; most are from {most}"
        return f"{what} come from {some}, most from {most}, and are not typical of the other phases"


@dataclass(frozen=True)
class Spread(Fields):
    """Calls whose density of log time has no peak: it is even, or rises or falls throughout."""

    # low_s, high_s: Range of these durations, in seconds
    low_s: float
    high_s: float
    # share, share_low, share_high: Share of the calls, and its confidence interval
    share: float
    share_low: float
    share_high: float
    shape: str  # ``even``, ``rising`` (uniform durations rise in log time) or ``falling``
    time_share: float | None = None  # Share of the time of all calls; None: unknown, as of times per MiB

    def __str__(self) -> str:
        return (
            f"spread: {share_text(self.share, 1)} of the calls{time_text(self.time_share)} lie between "
            f"{seconds_text(self.low_s)} and {seconds_text(self.high_s)} without a peak (their density in "
            f"log time is {self.shape})"
        )


_LEAST_RANGE = 0.5
_LEAST_DROP, _LEAST_RISE = 1.2, 1.5
_STEEPEST = 1.3
"""Slope of the log density in log time up to which durations may be uniform, whose slope is 1."""
_MANY_CELLS = 16
_MOST_CELLS = 64


def shape_without_peak(cells: LogCells, low: float, high: float, alone: bool) -> str | None:
    """Return how a cluster without a peak is: ``even``, ``rising`` or ``falling``; None: it has a peak.

    Without the shortest and the longest 1 %, and calls beyond a gap, there is no block significantly denser
    than one before it and one after it, and a line fits better than a parabola with its vertex inside, and
    than a bell (docs/reference/methods/modes.md, Calls without a peak).
    """
    first, last = np.searchsorted(cells.edges, [low, high], side="right") - 1
    counts = cells.counts[first : last + 1]
    trimmed = max(1.0, RARE * counts.sum())
    begin, end = int(first + _left_out(counts, trimmed)), int(last + 1 - _left_out(counts[::-1], trimmed))
    if end - begin > _MANY_CELLS:  # a cliff inside of a cell makes it look less dense than its neighbour
        begin, end = begin + 1, end - 1
    begin, end = _without_gaps(cells, begin, end)
    counts, edges = cells.counts[begin:end], cells.edges[begin : end + 1]
    if end - begin < FEWEST or edges[-1] - edges[0] < _LEAST_RANGE or not counts.sum():
        return None
    mine = LogCells(edges, counts, cells.cell_of_bin - begin, cells.step_s)
    coarse = cells_to_look_at(mine, _MOST_CELLS)
    blocks = CellBlocks.from_counts(coarse.counts, coarse.edges)
    if has_hill(blocks, float(counts.sum()), THRESHOLD):
        return None
    u = (mine.edges[1:] + mine.edges[:-1] - edges[0] - edges[-1]) / (edges[-1] - edges[0])
    width = 2 * mine.widths / (edges[-1] - edges[0])
    flat, line, parabola = (fit_log_density(u, width, counts[None, :], degree)[0][0] for degree in (0, 1, 2))
    likelihood = [_log_likelihood(fit, u, width, counts) for fit in (flat, line, parabola)]
    vertex = -parabola[1] / (2 * parabola[2]) if parabola[2] < 0 else np.inf
    drop = -parabola[2] * (1 - min(abs(vertex), 1)) ** 2
    curved, sloping = (float(special.ndtri(level)) ** 2 for level in (SIGNIFICANT, CERTAIN / 2))
    if 2 * (likelihood[2] - likelihood[1]) > curved and abs(vertex) < 1 and drop > np.log(_LEAST_DROP):
        return None
    bell = -2 * u**2
    width_of_bell = width * np.exp(bell)
    tilted = fit_log_density(u, width_of_bell, counts[None, :], 1)[0][0]
    of_bell = _log_likelihood(tilted, u, width_of_bell, counts) + float(counts @ bell)
    if 2 * (likelihood[1] - of_bell) < sloping:
        return None
    slopes = 2 * (likelihood[1] - likelihood[0]) > sloping and 2 * abs(line[1]) > np.log(_LEAST_RISE)
    if alone:
        return "even" if not slopes else "rising" if line[1] > 0 else "falling"
    return "rising" if slopes and 0 < line[1] < 0.5 * _STEEPEST * (edges[-1] - edges[0]) else None


def _left_out(counts: np.ndarray, calls: float) -> int:
    """Return the first cell behind the cells with calls that hold no more than so many calls together."""
    before = np.cumsum(counts)
    some = int(np.searchsorted(before, calls, side="right"))
    return int(np.searchsorted(before, before[some - 1])) + 1 if some and before[some - 1] else 0


def _without_gaps(cells: LogCells, begin: int, end: int) -> tuple[int, int]:
    """Leave out the fewer calls beside an empty gap that is too long for an even density."""
    while end - begin > 2:
        used = begin + np.flatnonzero(cells.counts[begin:end])
        if len(used) < 2:
            break
        lows, highs = cells.edges[used[1:]], cells.edges[used[:-1] + 1]
        at, calls = int(np.argmax(lows - highs)), cells.counts[begin:end].sum()
        part = float((lows - highs)[at] / (cells.edges[used[-1] + 1] - cells.edges[used[0]]))
        if calls * (1 - part) ** (calls - 1) >= CERTAIN:
            break
        below = cells.counts[begin : used[at] + 1].sum()
        begin, end = (begin, int(used[at]) + 1) if 2 * below >= calls else (int(used[at + 1]), end)
    return begin, end


def _log_likelihood(fit: np.ndarray, u: np.ndarray, width: np.ndarray, counts: np.ndarray) -> float:
    density = np.vander(u, len(fit), increasing=True) @ fit
    return float(counts @ density - width @ np.exp(np.minimum(density, 700)))


def find_clusters(sample: CountedDurations, cells: LogCells) -> tuple[list[Span], list[int], float]:
    """Find clusters by blocks, and divide those of many phases by a kernel estimate.

    A cluster is not divided if a part of it would be based on few phases.

    Returns intervals of log time that are high, low, high, ..., high; the numbers of clusters that are based
    on few phases; and an upper bound of the p-value of the deepest antimode (1.0: few phases have it).
    """
    spans, deepest = highs_and_lows(cells)
    of_few = clusters_of_few_phases(sample, cells, spans)
    ends = [cells.edges[0], *(0.5 * (low + high) for low, high in spans[1::2]), cells.edges[-1]]
    divided: list[Span] = []
    few: list[int] = []
    for number, span in enumerate(spans[::2]):
        parts = [span]
        if number in of_few:
            few.append(len(divided) // 2 + (number > 0))
        else:
            found, beyond = kernel_antimodes(cells, ends[number], ends[number + 1], span)
            if not clusters_of_few_phases(sample, cells, found):
                parts, deepest = found, max(deepest, beyond)
        if number:
            low, high = spans[2 * number - 1]
            divided.append((max(low, divided[-1][1]), min(high, parts[0][0])))
        divided += parts
    alone = few and len(spans[::2]) - len(few) == 1 and len(divided) == len(spans)
    return divided, few, 1.0 if alone else chance_of_second_mode(deepest)


def clusters_of_few_phases(sample: CountedDurations, cells: LogCells, spans: list[Span]) -> list[int]:
    """Return the clusters that are based on few phases.

    The evidence of a cluster is its sum over phases by the root of the sum of squares: k equal phases give
    the root of k (docs/reference/methods/modes.md, Clusters of few phases). The weakest cluster goes first,
    with the denser of its two antimodes.
    """
    least = min(_MOST_EVIDENCE, float(np.sqrt(len(sample.phase) / 2)))
    spans, number, few = list(spans), list(range((len(spans) + 1) // 2)), []
    if not sample.phases_known or len(sample.phase) < _LEAST_PHASES:
        return []
    while len(spans) >= 3:
        held = np.array([calls_by_phase(sample, cells, *span) for span in spans])
        width = np.array([high - low for low, high in spans])
        density = held / width[:, None]
        rises = []
        for i in range(0, len(spans), 2):
            beside = [j for j in (i - 1, i + 1) if 0 < j < len(spans) - 1]
            rise = min(_support(density[i] - DEPTH_RATIO * density[j]) for j in beside)
            back = rise < least and all(_comes_back(held[i], held[j], width[i] / width[j]) for j in beside)
            rises.append(least if back else rise)
        weakest = int(np.argmin(rises))
        if rises[weakest] >= least:
            break
        few.append(number.pop(weakest))
        place = 2 * weakest
        valleys = [j for j in (place - 1, place + 1) if 0 < j < len(spans) - 1]
        gone = max(valleys, key=lambda j: density[j].sum())
        spans = [span for j, span in enumerate(spans) if j not in (place, gone)]
    return few


def effective_phases(calls: np.ndarray) -> float:
    """Return the effective number of phases that made calls: (Σ calls)² / Σ calls².

    Examples
    --------
    >>> effective_phases(np.array([10.0, 10.0, 10.0])), effective_phases(np.array([30.0, 0.0, 0.0]))
    (3.0, 1.0)
    """
    return float(calls.sum() ** 2 / max((calls**2).sum(), 1e-300))


def calls_by_phase(sample: CountedDurations, cells: LogCells, low: float, high: float) -> np.ndarray:
    """Count the calls of each phase between two positions in log time: float64, shape (p,)."""
    first, last = np.searchsorted(cells.edges, np.array([low, high]) + 1e-9) - 1
    cell = cells.cell_of_bin[sample.bin]
    counts = np.where((cell >= first) & (cell < last), sample.count, 0)
    before = np.concatenate([[0], np.cumsum(counts)])
    calls: np.ndarray = np.diff(before[sample.begin]).astype(np.float64)
    return calls


def _comes_back(inside: np.ndarray, between: np.ndarray, width_ratio: float) -> bool:
    """Return whether most phases, each taken alone, have a cluster denser than an antimode."""
    odds = DEPTH_RATIO * width_ratio
    p_even = np.where(inside > 0, special.betainc(np.maximum(inside, 1), between + 1, odds / (1 + odds)), 1.0)
    return bool(2 * np.count_nonzero(p_even <= A_TENTH) > len(inside))


def _support(difference: np.ndarray) -> float:
    return float(difference.sum() / max(np.sqrt((difference**2).sum()), 1e-300))
