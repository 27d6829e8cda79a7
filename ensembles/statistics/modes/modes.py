"""Estimate the number of modes of log duration, and the location, weight and width of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.modes.density import (
    DEPTH_RATIO,
    LEAST_CALLS,
    LEAST_SHARE,
    CellBlocks,
    LogCells,
    chain,
    evidence,
    places_of_shares,
)
from ensembles.statistics.modes.harmonics import FairShare, Harmonics, find_fair_share, find_harmonics
from ensembles.statistics.modes.locations import ModeEstimates, measured
from ensembles.statistics.samples.clock_step import clock_step_of_counts_s
from ensembles.statistics.samples.counted_durations import CountedDurations

THRESHOLDS = ((30.0, 0.9), (100.0, 1.4), (300.0, 1.8))
"""Evidence that an antimode needs, by effective number of filled cells.

About 1 % of samples of 1,000 calls of a flat density, the least favourable one, reach it; of larger samples
fewer do.
"""

_WIDEST_SPARSE_CELL = 0.045
_MOST_CELLS = 320

Span = tuple[float, float]


def highs_and_lows(cells: LogCells) -> tuple[list[Span], float]:
    """Find intervals of log time in which the density is significantly high and low.

    Returns
    -------
    spans : list of (float, float)
        High, low, high, ..., high: one more than twice the number of antimodes. With a single mode, the whole
        range.
    chance : float
        Upper bound of the p-value of the deepest antimode under a flat density.
    """
    coarse = _cells_to_look_at(cells)
    blocks = CellBlocks.from_counts(coarse.counts, coarse.edges)
    found = evidence(blocks, float(coarse.counts.sum()))
    threshold = mode_threshold(coarse.counts)
    spans = [
        (float(coarse.edges[blocks.start[block]]), float(coarse.edges[blocks.end[block]]))
        for block in chain(found, threshold)
    ]
    chance = chance_of_second_mode(found.deepest(), threshold)
    return spans or [(float(cells.edges[0]), float(cells.edges[-1]))], chance


def _cells_to_look_at(cells: LogCells) -> LogCells:
    """Join cells until each holds enough calls, and there are not too many for the search."""
    least, widest = max(LEAST_CALLS, LEAST_SHARE * cells.counts.sum()) / 3, _WIDEST_SPARSE_CELL
    coarse = cells.coarser(least, widest)
    while len(coarse.counts) > _MOST_CELLS and widest < 1.0:
        least, widest = 1.3 * least, 1.3 * widest
        coarse = cells.coarser(least, widest)
    return coarse


def mode_threshold(counts: np.ndarray) -> float:
    """Return the evidence that an antimode needs among cells with these counts.

    It grows with the effective number of filled cells: the inverse of Simpson's index of the counts.
    """
    filled = counts.sum() ** 2 / np.sum(counts.astype(np.float64) ** 2)
    places, levels = zip(*THRESHOLDS, strict=True)
    return float(np.interp(np.log(filled), np.log(places), levels))


def chance_of_second_mode(deepest_valley: float, threshold: float) -> float:
    """Bound the p-value of the deepest antimode under a flat density.

    It is 1 % at the threshold, and ten times less for each further 0.45 of evidence. Simulated p-values fall
    at least as fast.
    """
    if not np.isfinite(deepest_valley):
        return 1.0
    return float(min(1.0, 0.01 * 10.0 ** (-(deepest_valley - threshold) / 0.45)))


_LEAST_N = 5
_RANGE = np.array([0.01, 0.99])


@dataclass(frozen=True)
class Mode:
    """A mode: a significantly dense interval of log duration, located by its maximum.

    Attributes
    ----------
    t_s : float
        Duration at the maximum, in seconds (of an ensemble per MiB, seconds per MiB).
    low_s, high_s : float
        Confidence interval of `t_s`.
    weight : float
        Share of the calls between the two adjacent antimodes.
    weight_low, weight_high : float
        Confidence interval of `weight`.
    width : float
        Half the range of log duration (natural logarithm) of the central 68.3 % of these calls. For a
        log-normal mode it is sigma.
    width_low, width_high : float
        Confidence interval of `width`.
    effective_phases : float or None
        Effective number of phases that made these calls; None: phases are unknown.
    """

    t_s: float
    low_s: float
    high_s: float
    weight: float
    weight_low: float
    weight_high: float
    width: float
    width_low: float
    width_high: float
    effective_phases: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return dict(vars(self))


@dataclass(frozen=True)
class Modes:
    """Modes of an ensemble, in the order of their durations.

    Attributes
    ----------
    n : int
        Number of calls.
    modes : tuple of Mode
    level : float
        Confidence level of the intervals.
    p_one_mode : float
        Upper bound of the p-value of the deepest antimode if there were one mode; 1.0 if every further mode
        was rejected as a bump.
    harmonics : Harmonics or None
        Modes at whole fractions of the duration of another; None: none, or not significant.
    resolution_s : float
        Step of the clock that was assumed, in seconds; 0.0: finer than the bins.
    bumps : tuple of Bump
        Candidates that are not modes: too few phases made them, or their calls are spread evenly over time.
    fair_share : FairShare or None
        Comparison with an even division of a known limit.
    refused : str or None
        Reason, in one sentence, why there is no answer.
    """

    n: int
    modes: tuple[Mode, ...]
    level: float = 0.9
    p_one_mode: float = 1.0
    harmonics: Harmonics | None = None
    resolution_s: float = 0.0
    bumps: tuple[Bump, ...] = ()
    fair_share: FairShare | None = None
    refused: str | None = None

    def __len__(self) -> int:
        return len(self.modes)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio modes --json`` prints."""
        return {
            "n": self.n,
            "modes": [mode.to_json() for mode in self.modes],
            "harmonics": self.harmonics and self.harmonics.to_json(),
            "level": self.level,
            "p_one_mode": self.p_one_mode,
            "resolution_s": self.resolution_s,
            "bumps": [bump.to_json() for bump in self.bumps],
            "fair_share": self.fair_share and self.fair_share.to_json(),
            "refused": self.refused,
        }

    def with_fair_share(self, limit_bytes_per_s: float, tasks: int, bytes_per_call: float) -> Modes:
        """Return the same modes with a comparison to the fair share of a limit.

        Parameters
        ----------
        limit_bytes_per_s : float
            Rate that all tasks share.
        tasks : int
            Number of tasks.
        bytes_per_call : float
            Bytes that each call moved.

        Returns
        -------
        Modes

        Raises
        ------
        EnsioError
            An argument is not positive.
        """
        places = [mode.t_s for mode in self.modes]
        return replace(self, fair_share=find_fair_share(places, limit_bytes_per_s, tasks, bytes_per_call))

    def __str__(self) -> str:
        if self.refused:
            return self.refused[0].upper() + self.refused[1:] + "."
        lines = [f"{count_text(len(self.modes), 'mode')} in {count_text(self.n, 'call')}"]
        for mode in self.modes:
            lines.append(
                f"  {seconds_text(mode.t_s)} ({seconds_text(mode.low_s)} to {seconds_text(mode.high_s)}), "
                f"{mode.weight:.1%} of the calls"
            )
        lines += [f"  {what}" for what in (*self.bumps, self.harmonics, self.fair_share) if what is not None]
        return "\n".join(lines)


def fit_modes(
    sample: CountedDurations,
    level: float = 0.9,
    seed: int = 0,
    resolution_s: float | None = None,
    size: int = 200,
) -> Modes:
    """Estimate the modes of log duration.

    Parameters
    ----------
    sample : CountedDurations
        Durations counted by phase and bin.
    level : float
        Confidence level of the intervals, between 0 and 1.
    seed : int
        Seed of the bootstrap. The same seed gives the same result.
    resolution_s : float, optional
        Step of the clock in seconds. Default: that of the sample, or estimated from its bins.
    size : int
        Number of bootstrap samples.

    Returns
    -------
    Modes
        With fewer than 5 calls the result is a refusal.

    Raises
    ------
    ValueError
        The level is not between 0 and 1.

    Notes
    -----
    A mode is an interval of log time that is denser, by the factor `density.DEPTH_RATIO` and significantly,
    than an antimode on each side that separates it from another mode. The number of modes is therefore a
    lower bound for any density. Of ensembles with one mode, at most 1 % are reported with more.
    docs/reference/methods/modes.md has the calibration.

    References
    ----------
    L. Dümbgen and G. Walther, "Multiscale inference about a density", Annals of Statistics 36, 2008.

    Examples
    --------
    >>> from ensembles.statistics.samples.counted_durations import CountedDurations
    >>> random = np.random.default_rng(1)
    >>> durations_s = np.repeat([0.01, 0.05], [600, 400]) * random.lognormal(0.0, 0.1, 1000)
    >>> modes = fit_modes(CountedDurations.from_durations(durations_s))
    >>> [round(mode.t_s, 2) for mode in modes.modes]
    [0.01, 0.05]
    >>> [round(mode.weight, 2) for mode in modes.modes]
    [0.6, 0.4]
    """
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    n = sample.total
    if n < _LEAST_N:
        calls = count_text(n, "call") if n else "no calls"
        return Modes(n, (), level, refused=f"{calls}: too few for modes, which need at least {_LEAST_N}")
    if sample.counts[0] == n:
        return Modes(n, (), level, refused="all durations are zero, shorter than the step of the clock")
    if resolution_s is None:
        resolution_s = sample.resolution_s or clock_step_of_counts_s(sample.counts)
    cells = LogCells.from_counts(sample.counts, resolution_s)
    spans, chance = highs_and_lows(cells)
    spans, spread = without_even_spread(cells, spans)
    spans, bumps = without_bumps(sample, cells, spans)
    bumps += spread
    parts = measured(sample, cells, spans, level, seed, size)
    modes = _in_seconds(parts, sample, cells)
    span = float(np.ptp(places_of_shares(cells, np.stack([cells.counts] * 2), n * _RANGE)))
    return Modes(
        n,
        modes,
        level,
        p_one_mode=1.0 if bumps and len(modes) == 1 else chance,
        harmonics=find_harmonics(
            [mode.low_s for mode in modes],
            [mode.t_s for mode in modes],
            [mode.high_s for mode in modes],
            span,
            seed,
            [mode.width for mode in modes],
        ),
        resolution_s=resolution_s if resolution_s > 1e-9 else 0.0,
        bumps=bumps,
    )


def _in_seconds(parts: ModeEstimates, sample: CountedDurations, cells: LogCells) -> tuple[Mode, ...]:
    """Convert estimates to modes in seconds; widen intervals by the resolution of clock and bins."""
    shortest_s, longest_s = sample.min_s.min(), sample.max_s.max()
    modes = []
    for i, (place, weight, width) in enumerate(zip(parts.place, parts.weight, parts.width, strict=True)):
        t, low, high = place
        cell = int(np.clip(np.searchsorted(cells.edges, t, side="right") - 1, 0, len(cells.counts) - 1))
        if width[0] < cells.widths[cell]:
            low, high = min(low, cells.edges[cell]), max(high, cells.edges[cell + 1])
        else:  # calls do not lie evenly in a cell, as was assumed
            blur = cells.widths[cell] ** 2 / (4 * width[0])
            low, high = low - blur, high + blur
        if i == 0 and not shortest_s and cells.counts[0] > 0.5 * weight[0] * sample.total:
            cell, t, low, high = 0, np.log(cells.step_s), -np.inf, cells.edges[1]
        # A mode lies within the range of the calls; that of calls shorter than the step, anywhere below it.
        t_s, low_s, high_s = np.clip(
            np.exp([t, low, high]), shortest_s or cells.step_s, max(longest_s, cells.step_s)
        )
        phases = calls_by_phase(sample, cells, parts.bounds[i], parts.bounds[i + 1])
        modes.append(
            Mode(
                float(t_s),
                float(low_s if shortest_s or cell else 0.0),
                float(high_s),
                float(weight[0]),
                float(weight[1]),
                float(weight[2]),
                float(width[0]),
                float(width[1]),
                float(width[2]),
                effective_phases=effective_phases(phases) if sample.phases_known else None,
            )
        )
    return tuple(modes)


_END = 0.1
_LEAST_AT_THE_END = 0.6
_MOST_RISE = 1.3


@dataclass(frozen=True)
class Bump:
    """A candidate that was rejected as a mode.

    Either few phases made it, so that the next run may not show it; or its calls are spread evenly over
    linear time, which gives a maximum at the end of the log-time axis.

    Attributes
    ----------
    low_s, high_s : float
        Range of durations, in seconds.
    share : float
        Share of the calls.
    phase : int or None
        Phase that made most of these calls; None: they are spread evenly.
    effective_phases : float or None
        Effective number of phases that made them.
    """

    low_s: float
    high_s: float
    share: float
    phase: int | None = None
    effective_phases: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return dict(vars(self))

    def __str__(self) -> str:
        where = f"from {seconds_text(self.low_s)} to {seconds_text(self.high_s)}"
        what = f"no mode: {self.share:.1%} of the calls, {where},"
        if self.effective_phases is None:
            return f"{what} are evenly spread over that time"
        if self.effective_phases < 1.5:
            return f"{what} come from phase {self.phase} alone"
        some = f"about {self.effective_phases:.0f} phases, most from phase {self.phase}"
        return f"{what} come from {some}, and are not typical of the other phases"


def without_even_spread(cells: LogCells, spans: list[Span]) -> tuple[list[Span], tuple[Bump, ...]]:
    """Drop a last mode whose calls are spread evenly over linear time.

    Parameters
    ----------
    cells : LogCells
    spans : list of (float, float)
        Intervals of log time that are high, low, high, ..., high.

    Returns
    -------
    list of (float, float)
        Intervals that remain.
    tuple of Bump

    Notes
    -----
    The density per log time of such calls grows in proportion to time and ends with a jump. The last interval
    is rejected if it has at most 1.3 times as many calls per second as the antimode before it, and if the
    last tenth of log time is about as dense as the interval.
    """
    if len(spans) < 3:
        return spans, ()
    end = cells.edges[-1]
    valley, high = spans[-2:]
    (low_calls, high_calls, end_calls) = (
        _calls_between(cells, *span) for span in (valley, high, (end - _END, end))
    )
    per_second = high_calls / np.diff(np.exp(high))[0]
    rises = per_second > _MOST_RISE * low_calls / np.diff(np.exp(valley))[0]
    cliff = end_calls / _END >= _LEAST_AT_THE_END * high_calls / (high[1] - high[0])
    if rises or not cliff:
        return spans, ()
    share = _calls_between(cells, valley[1], end) / cells.counts.sum()
    return spans[:-2], (Bump(float(np.exp(valley[1])), float(np.exp(end)), float(share)),)


def _calls_between(cells: LogCells, low: float, high: float) -> float:
    before = np.concatenate([[0], np.cumsum(cells.counts)])
    return float(np.diff(np.interp([low, high], cells.edges, before))[0])


_LEAST_PHASES = 8
_LEAST_EVIDENCE = 2.0


def without_bumps(
    sample: CountedDurations, cells: LogCells, spans: list[Span]
) -> tuple[list[Span], tuple[Bump, ...]]:
    """Drop modes that are based on few phases.

    Parameters
    ----------
    sample : CountedDurations
    cells : LogCells
    spans : list of (float, float)
        Intervals of log time that are high, low, high, ..., high.

    Returns
    -------
    list of (float, float)
        Intervals that remain.
    tuple of Bump

    Notes
    -----
    The difference between the densities of a mode and an antimode is a sum over phases. It is divided by the
    root of the sum of squares of its terms: one phase alone gives 1, k equal phases give the root of k. A
    mode needs 2.
    """
    spans = list(spans)
    if not sample.phases_known or len(sample.phase) < _LEAST_PHASES or len(spans) < 3:
        return spans, ()
    bumps = []
    while len(spans) >= 3:
        held = np.array([calls_by_phase(sample, cells, *span) for span in spans])
        density = held / np.array([high - low for low, high in spans])[:, None]
        rises = [
            min(
                _support(density[i] - DEPTH_RATIO * density[j])
                for j in (i - 1, i + 1)
                if 0 < j < len(spans) - 1
            )
            for i in range(0, len(spans), 2)
        ]
        weakest = int(np.argmin(rises))
        if rises[weakest] >= _LEAST_EVIDENCE:
            break
        place = 2 * weakest
        bumps.append(_bump(sample, spans[place], held[place]))
        valleys = [j for j in (place - 1, place + 1) if 0 < j < len(spans) - 1]
        gone = max(valleys, key=lambda j: density[j].sum())
        spans = [span for j, span in enumerate(spans) if j not in (place, gone)]
    return spans, tuple(sorted(bumps, key=lambda bump: bump.low_s))


def effective_phases(calls: np.ndarray) -> float:
    """Return the effective number of phases that made calls: (Σ calls)² / Σ calls².

    Parameters
    ----------
    calls : ndarray, shape (p,)
        Number of calls of each phase.

    Returns
    -------
    float

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


def _support(difference: np.ndarray) -> float:
    return float(difference.sum() / max(np.sqrt((difference**2).sum()), 1e-300))


def _bump(sample: CountedDurations, span: Span, calls: np.ndarray) -> Bump:
    low_s, high_s = np.exp(span)
    return Bump(
        float(low_s),
        float(high_s),
        float(calls.sum() / sample.total),
        int(sample.phase[int(np.argmax(calls))]),
        effective_phases(calls),
    )
