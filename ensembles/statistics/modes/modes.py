"""The modes of an ensemble: their number, and durations about which calls cluster, on a log-time axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.modes.antimodes import LEAST_CALLS, LEAST_SHARE, CellBlocks, chain, evidence
from ensembles.statistics.modes.density import LogCells, places_of_shares
from ensembles.statistics.modes.harmonics import FairShare, Harmonics, find_fair_share, find_harmonics
from ensembles.statistics.modes.locations import ModeEstimates, measured
from ensembles.statistics.modes.rejected_modes import (
    Bump,
    calls_by_phase,
    effective_phases,
    without_bumps,
    without_even_spread,
)
from ensembles.statistics.samples.clock_step import clock_step_of_counts_s
from ensembles.statistics.samples.counted_durations import CountedDurations

THRESHOLDS = ((30.0, 0.9), (100.0, 1.4), (300.0, 1.8))
"""Evidence that a valley needs, where the calls fill so many cells: what about 1 % of flat densities, which
are the hardest, reach at 1,000 calls (fewer at more)."""

_WIDEST_SPARSE_CELL = 0.045
_MOST_CELLS = 320

Span = tuple[float, float]


def highs_and_lows(cells: LogCells) -> tuple[list[Span], float]:
    """Stretches of log time that are by turns high and low, each surely so.

    Returns
    -------
    spans : list of (float, float)
        High, low, high, ..., high: one more than twice the number of valleys. Of a single mode it is all.
    chance : float
        That calls of a flat density show as sure a valley as the surest of these, at most.
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
    """Cells in which modes are looked for: joined where there are few calls, more so if cells are many."""
    least, widest = max(LEAST_CALLS, LEAST_SHARE * cells.counts.sum()) / 3, _WIDEST_SPARSE_CELL
    coarse = cells.coarser(least, widest)
    while len(coarse.counts) > _MOST_CELLS and widest < 1.0:
        least, widest = 1.3 * least, 1.3 * widest
        coarse = cells.coarser(least, widest)
    return coarse


def mode_threshold(counts: np.ndarray) -> float:
    """The evidence that a valley needs among cells with these counts: more, the more places there are to look
    at (the inverse of Simpson's index of the counts says how many are filled)."""
    filled = counts.sum() ** 2 / np.sum(counts.astype(np.float64) ** 2)
    places, levels = zip(*THRESHOLDS, strict=True)
    return float(np.interp(np.log(filled), np.log(places), levels))


def chance_of_second_mode(deepest_valley: float, threshold: float) -> float:
    """Chance, at most, that a flat density shows a valley with so much evidence: 1 % at the threshold, and
    ten times less for each further 0.45, which is the slope of the simulated chances or less steep."""
    if not np.isfinite(deepest_valley):
        return 1.0
    return float(min(1.0, 0.01 * 10.0 ** (-(deepest_valley - threshold) / 0.45)))


_LEAST_N = 5
_RANGE = np.array([0.01, 0.99])


@dataclass(frozen=True)
class Mode:
    """A duration about which calls gather.

    Attributes
    ----------
    t_s : float
        Where the density of log duration is highest.
    low_s, high_s : float
        Interval of `t_s`.
    weight : float
        Share of the calls between the valleys beside it.
    weight_low, weight_high : float
        Interval of `weight`.
    width : float
        Half of the span of log duration (natural logarithm) that holds the middle 68.3 % of these calls: for
        a log-normal mode, sigma.
    width_low, width_high : float
        Interval of `width`.
    effective_phases : float or None
        By how many phases its calls were made, if all had made equally many; None: phases are not known.
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
        """Attributes by name."""
        return dict(vars(self))


@dataclass(frozen=True)
class Modes:
    """The modes of an ensemble, the shortest first.

    Attributes
    ----------
    n : int
        Calls.
    modes : tuple of Mode
    level : float
        Chance with which an interval holds what it is of.
    p_one_mode : float
        Chance, at most, that calls of one mode show as deep a valley as these do; 1.0 where only bumps do.
    harmonics : Harmonics or None
        Modes at whole fractions of another's duration, where that is no coincidence.
    resolution_s : float
        Step of the clock that was reckoned with; 0.0: finer than the bins.
    bumps : tuple of Bump
        What looks like a mode and is none: made by too few phases to be expected again, or evenly spread over
        linear time.
    fair_share : FairShare or None
        What the tasks would get of a known limit, if it were shared out evenly.
    refused : str or None
        Why nothing can be said, in one sentence.
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
        """What ``ensio modes --json`` prints."""
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
        """The same modes, compared to the fair share of a limit: see `harmonics.fair_share_of`."""
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
    """The modes of log duration.

    Parameters
    ----------
    sample : Sample
    level : float
        Of the intervals, between 0 and 1.
    seed : int
        Of the random draws behind the intervals; the same seed gives the same answer.
    resolution_s : float, optional
        Step of the clock. Default: the sample's, or what its bins show.
    size : int
        Random draws.

    Returns
    -------
    Modes

    Raises
    ------
    ValueError
        The level is not between 0 and 1.

    Notes
    -----
    A mode is a stretch of log time that is denser, by `valleys.DEPTH_RATIO` at least and beyond chance, than
    a valley on each side that parts it from another mode. The number of modes is so a lower bound, whatever
    the density; of ensembles with one mode, 1 % or fewer are taken for more
    (docs/reference/methods/modes.md).
    """
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    n = sample.total
    if n < _LEAST_N:
        calls = count_text(n, "call") if n else "no calls"
        return Modes(
            n, (), level, refused=f"{calls}: too few to speak of modes, which takes {_LEAST_N} at least"
        )
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
    """Modes, with what the clock and the bins cannot tell added to the intervals of their places."""
    shortest_s, longest_s = sample.min_s.min(), sample.max_s.max()
    modes = []
    for i, (place, weight, width) in enumerate(zip(parts.place, parts.weight, parts.width, strict=True)):
        t, low, high = place
        cell = int(np.clip(np.searchsorted(cells.edges, t, side="right") - 1, 0, len(cells.counts) - 1))
        if width[0] < cells.widths[cell]:
            low, high = min(low, cells.edges[cell]), max(high, cells.edges[cell + 1])
        else:  # calls are taken to lie evenly in a cell, and do not
            blur = cells.widths[cell] ** 2 / (4 * width[0])
            low, high = low - blur, high + blur
        if i == 0 and not shortest_s and cells.counts[0] > 0.5 * weight[0] * sample.total:
            cell, t, low, high = 0, np.log(cells.step_s), -np.inf, cells.edges[1]
        # No mode lies beyond the calls; of calls shorter than the step, it may lie anywhere below that.
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
