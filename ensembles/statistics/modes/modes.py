"""Estimate the number of modes of log duration, and the location, weight and width of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import A_TENTH, FEWEST, RARE, check_level
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.statistics.modes.clusters import Shoulder, find_shoulders
from ensembles.statistics.modes.density import LEAST_CALLS, LEAST_SHARE, LogCells, places_of_shares
from ensembles.statistics.modes.harmonics import (
    FairShare,
    Harmonics,
    StepsOfTurns,
    TimeSlices,
    find_fair_share,
    find_harmonics,
    find_time_slices,
)
from ensembles.statistics.modes.kinds import (
    Bump,
    Spread,
    calls_by_phase,
    effective_phases,
    find_clusters,
    shape_without_peak,
    time_shares,
)
from ensembles.statistics.modes.locations import ModeEstimates, measured
from ensembles.statistics.samples.clock_step import clock_step_of_counts_s
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

_RANGE = np.array([RARE, 1 - RARE])


@dataclass(frozen=True)
class Mode(Fields):
    """A mode: a significantly dense interval of log duration, located by its maximum.

    Attributes
    ----------
    t_s : float
        Duration at the maximum, in seconds (of an ensemble per MiB, seconds per MiB).
    low_s, high_s : float
        Confidence interval of `t_s`.
    weight : float
        Share of all calls between the two adjacent antimodes.
    weight_low, weight_high : float
        Confidence interval of `weight`.
    width : float
        Half the range of log duration (natural logarithm) of the central 68.3 % of these calls. For a
        log-normal mode it is sigma.
    width_low, width_high : float
        Confidence interval of `width`.
    effective_phases : float or None
        Effective number of phases that made these calls; None: phases are unknown.
    from_s, to_s : float
        Range of these calls: from one antimode, or the shortest call, to the next, or the longest.
    time_share : float or None
        Share of these calls in the time of all calls, without `Modes.far_calls`; None: unknown, as of times
        per MiB.
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
    from_s: float = 0.0
    to_s: float = 0.0
    time_share: float | None = None


BEYOND = 10.0
"""Calls that last longer than the slowest mode by this factor are far beyond it."""

LEAST_TIME = A_TENTH
"""Share of the time of all calls from which on they are reported."""


@dataclass(frozen=True)
class FarCalls(Fields):
    """The calls that last more than `BEYOND` times as long as the slowest mode."""

    from_s: float  # `BEYOND` times the slowest mode or the end of a cluster that is not a mode, in seconds
    calls: int  # Number of these calls
    # share, time_share: Their shares of the calls, and of the time of all calls
    share: float
    time_share: float

    def __str__(self) -> str:
        return (
            f"beyond the modes: {count_text(self.calls, 'call')} of more than {seconds_text(self.from_s)} "
            f"({share_text(self.share, None)} of the calls) took {share_text(self.time_share)} of the time, "
            "which no mode counts"
        )


def find_far_calls(
    sample: CountedDurations, places_s: Sequence[float], told_to_s: float = 0.0
) -> FarCalls | None:
    """Find calls far beyond the modes."""
    if not places_s:
        return None
    edges_s = bin_edges_s()
    from_s = max(BEYOND * max(places_s), told_to_s)
    time_s = sample.counts * 0.5 * (edges_s[:-1] + np.minimum(edges_s[1:], sample.max_s.max()))
    far = edges_s[:-1] >= from_s
    calls, time_share = int(sample.counts[far].sum()), float(time_s[far].sum() / max(time_s.sum(), 1e-300))
    if not calls or time_share < LEAST_TIME:
        return None
    return FarCalls(float(from_s), calls, calls / sample.total, time_share)


_MOST_SIZES = 8


@dataclass(frozen=True)
class SizeShares(Fields):
    """How the calls of a size, or of a range of sizes, are distributed over the modes."""

    # low_bytes, high_bytes: Smallest and largest size
    low_bytes: int
    high_bytes: int
    calls: int  # Number of calls
    shares: tuple[float, ...]  # Share of these calls in each mode

    @property
    def name(self) -> str:
        """The size, or the range of sizes, for people."""
        low, high = bytes_text(self.low_bytes), bytes_text(self.high_bytes)
        return low if self.low_bytes == self.high_bytes else f"{low} – {high}"


def shares_by_size(
    sizes: np.ndarray, durations_s: np.ndarray, ranges_s: Sequence[tuple[float, float]]
) -> tuple[SizeShares, ...]:
    """Count the calls of each size in each mode."""
    kind = np.unique(sizes)
    number = np.searchsorted(kind, sizes)
    if len(kind) > _MOST_SIZES:
        octave = np.floor(np.log2(sizes)).astype(np.int64)
        number = np.searchsorted(np.unique(octave), octave)
    ends_s = np.array(ranges_s)
    inside = [(durations_s >= low) & (durations_s <= high) for low, high in ends_s]
    rows = []
    for one in range(int(number.max(initial=-1)) + 1):
        mine = number == one
        shares = tuple(float(np.mean(held[mine])) for held in inside)
        rows.append(SizeShares(int(sizes[mine].min()), int(sizes[mine].max()), int(mine.sum()), shares))
    return tuple(rows)


@dataclass(frozen=True)
class Modes(Fields):
    """Modes of an ensemble, in the order of their durations.

    Each call is in one mode, bump or spread: their weights and shares add up to 1.

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
        Modes at whole fractions of the duration of another; None: none, or not significant, or of calls
        without bytes, or `time_slices` explain them.
    time_slices : TimeSlices or None
        Modes at multiples of a tick of the scheduler; None: none, or not significant.
    turns : StepsOfTurns or None
        Phases in which nodes, or tasks, are served one after the other; None: none, or not known.
    resolution_s : float
        Step of the clock that was assumed, in seconds; 0.0: finer than the bins.
    bumps : tuple of Bump
        Clusters that few phases made, which are not modes.
    spread : tuple of Spread
        Calls whose density has no peak.
    shoulders : tuple of Shoulder
        Parts that stand out of the flank of a mode, without an antimode.
    far_calls : FarCalls or None
        Calls far beyond the modes that took much of the time; None: there are none.
    sizes : tuple of SizeShares
        Of durations per MiB, where the calls of each size are; empty: sizes are unknown or equal.
    fair_share : FairShare or None
        Comparison with an even division of a known limit.
    refused : str or None
        Reason, in one sentence, why there is no answer.
    unsettled : str or None
        Why the modes are those of the whole run, and not of the next calls; None: there is no sign of that.
    phases : int or None
        Number of phases with such calls; None: unknown.
    name : str
        Of the calls.
    per : {"call", "MiB"}
        What durations are of.
    """

    n: int
    modes: tuple[Mode, ...]
    level: float = 0.9
    p_one_mode: float = 1.0
    harmonics: Harmonics | None = None
    time_slices: TimeSlices | None = None
    turns: StepsOfTurns | None = None
    resolution_s: float = 0.0
    bumps: tuple[Bump, ...] = ()
    spread: tuple[Spread, ...] = ()
    shoulders: tuple[Shoulder, ...] = ()
    far_calls: FarCalls | None = None
    sizes: tuple[SizeShares, ...] = ()
    fair_share: FairShare | None = None
    refused: str | None = None
    unsettled: str | None = None
    phases: int | None = None
    name: str = ""
    per: str = "call"

    def __len__(self) -> int:
        return len(self.modes)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio modes --json`` prints."""
        modes = [mode.to_json() | {"mode": number} for number, mode in enumerate(self.modes, 1)]
        found = super().to_json() | {"modes": modes, "least_share": self.least_share}
        return {name: value for name, value in found.items() if name not in ("name", "per")}

    @property
    def least_share(self) -> float:
        """Share of the calls that a further mode must have to be seen; more if it is near another."""
        return max(LEAST_CALLS / max(self.n, 1), LEAST_SHARE)

    def with_sizes(self, sizes: np.ndarray, durations_s: np.ndarray) -> Modes:
        """Return the same modes with the calls of each size in each; `sizes`: bytes of each call, above 0."""
        ranges = [(mode.from_s, mode.to_s) for mode in self.modes]
        return replace(self, sizes=shares_by_size(sizes, durations_s, ranges))

    def with_fair_share(self, limit_bytes_per_s: float, tasks: int, bytes_per_call: float) -> Modes:
        """Return the same modes with a comparison to the fair share of a rate that all tasks share."""
        places = [mode.t_s for mode in self.modes]
        return replace(self, fair_share=find_fair_share(places, limit_bytes_per_s, tasks, bytes_per_call))

    def with_time_slices(self, moves_bytes: bool, crowded: str) -> Modes:
        """Return the same modes, with multiples of a time slice where these explain them.

        Calls that move no bytes have no share of a rate, which makes harmonics. `crowded`: which tasks share
        processors.
        """
        harmonics = self.harmonics if moves_bytes else None
        low_s = [mode.low_s for mode in self.modes]
        high_s = [mode.high_s for mode in self.modes]
        slices = find_time_slices(low_s, [mode.t_s for mode in self.modes], high_s, crowded)
        if slices is not None and harmonics is not None:
            # Harmonics of 4, 2 and 1 slices are multiples too: what explains more modes is stated.
            slices_win = bool(crowded) or len(slices.modes) > len(harmonics.modes)
            slices, harmonics = (slices, None) if slices_win else (None, harmonics)
        return replace(self, harmonics=harmonics, time_slices=slices)

    def with_turns(self, turns: StepsOfTurns | None) -> Modes:
        """Return the same modes with the steps of calls that are served one after the other.

        Steps that explain most calls replace harmonics and time slices, as they are equally spaced, too.
        """
        if turns is None or not turns.explain_modes:
            return replace(self, turns=turns)
        return replace(self, turns=turns, harmonics=None, time_slices=None)

    def without_times(self) -> Modes:
        """Return the same modes without shares of the time, as of times per MiB, whose sums are not times."""
        return replace(
            self,
            modes=tuple(replace(mode, time_share=None) for mode in self.modes),
            bumps=tuple(replace(bump, time_share=None) for bump in self.bumps),
            spread=tuple(replace(part, time_share=None) for part in self.spread),
            far_calls=None,
        )


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
    seed : int
        Seed of the bootstrap. The same seed gives the same result.
    resolution_s : float, optional
        Step of the clock in seconds. Default: that of the sample, or estimated from its bins.

    Of ensembles with one mode, at most 1 % are reported with more: docs/reference/methods/modes.md has the
    method and its sources.

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
    level = check_level(level)
    n = sample.total
    if n < FEWEST:
        calls = count_text(n, "call") if n else "no calls"
        return Modes(n, (), level, refused=f"{calls}: too few for modes, which need at least {FEWEST}")
    if sample.counts[0] == n:
        return Modes(n, (), level, refused="all durations are zero, shorter than the step of the clock")
    if resolution_s is None:
        resolution_s = sample.resolution_s or clock_step_of_counts_s(sample.counts)
    cells = LogCells.from_counts(sample.counts, resolution_s)
    spans, few, chance = find_clusters(sample, cells)
    parts = measured(sample, cells, spans, level, seed, size)
    times = time_shares(sample, parts.bounds).tolist()
    modes: list[Mode] = []
    numbers: list[int] = []
    bumps: list[Bump] = []
    spread: list[Spread] = []
    shoulders: list[Shoulder] = []
    for number in range(len(parts.place)):
        ends = parts.bounds[number], parts.bounds[number + 1]
        shape = shape_without_peak(cells, *ends, len(parts.place) == 1)
        if number in few:
            bumps.append(replace(_bump(parts, number, sample, cells), time_share=times[number]))
        elif shape is not None:
            low_s, high_s = _range_s(sample, cells, *ends)
            share, least, most = map(float, parts.weight[number])
            spread.append(Spread(low_s, high_s, share, least, most, shape, times[number]))
        else:
            middle, width = parts.place[number, 0], parts.width[number, 0]
            shoulders += find_shoulders(cells, *ends, middle, width, len(modes))
            numbers.append(number)
            modes.append(_mode(parts, number, sample, cells))
    told_to_s = max((*(bump.high_s for bump in bumps), *(part.high_s for part in spread)), default=0.0)
    far = find_far_calls(sample, [mode.t_s for mode in modes], told_to_s)
    beyond = time_shares(sample, parts.bounds, far.from_s) if far else np.zeros(len(times))
    modes = [
        replace(mode, time_share=times[number] - float(beyond[number]))
        for number, mode in zip(numbers, modes, strict=True)
    ]
    span = float(np.ptp(places_of_shares(cells, np.stack([cells.counts] * 2), n * _RANGE)))
    return Modes(
        n,
        tuple(modes),
        level,
        p_one_mode=chance,
        harmonics=find_harmonics(
            [mode.low_s for mode in modes],
            [mode.t_s for mode in modes],
            [mode.high_s for mode in modes],
            span,
            seed,
            [mode.width for mode in modes],
        ),
        resolution_s=resolution_s if resolution_s > 1e-9 else 0.0,
        bumps=tuple(bumps),
        spread=tuple(spread),
        shoulders=tuple(shoulders),
        far_calls=far,
        phases=len(sample.phase) if sample.phases_known else None,
    )


def _range_s(sample: CountedDurations, cells: LogCells, low: float, high: float) -> tuple[float, float]:
    """Return the shortest and the longest duration between two positions in log time, to a cell."""
    first, last = np.searchsorted(cells.edges, [low, high], side="right") - 1
    used = np.flatnonzero(cells.counts[first : last + 1]) + first
    if len(used):
        low, high = np.clip(cells.edges[[used[0], used[-1] + 1]], low, high)
    shortest_s, longest_s = np.clip(np.exp([low, high]), sample.min_s.min(), sample.max_s.max())
    return float(shortest_s), float(longest_s)


def _bump(parts: ModeEstimates, number: int, sample: CountedDurations, cells: LogCells) -> Bump:
    ends = parts.bounds[number], parts.bounds[number + 1]
    phases = calls_by_phase(sample, cells, *ends)
    phase = int(sample.phase[int(np.argmax(phases))])
    weight = float(parts.weight[number, 0])
    range_s = _range_s(sample, cells, *ends)
    return Bump(*range_s, weight, phase, effective_phases(phases), of_phases=len(phases))


def _mode(parts: ModeEstimates, number: int, sample: CountedDurations, cells: LogCells) -> Mode:
    """Convert an estimate to seconds; widen its interval by the resolution of clock and bins."""
    shortest_s, longest_s = sample.min_s.min(), sample.max_s.max()
    (t, low, high), weight, width = parts.place[number], parts.weight[number], parts.width[number]
    cell = int(np.clip(np.searchsorted(cells.edges, t, side="right") - 1, 0, len(cells.counts) - 1))
    if width[0] < cells.widths[cell]:
        low, high = min(low, cells.edges[cell]), max(high, cells.edges[cell + 1])
    else:  # calls do not lie evenly in a cell, as was assumed
        blur = cells.widths[cell] ** 2 / (4 * width[0])
        low, high = low - blur, high + blur
    zero = number == 0 and not shortest_s and cells.counts[0] > 0.5 * weight[0] * sample.total
    if zero:
        t, low, high = np.log(cells.step_s), -np.inf, cells.edges[1]
    # A mode lies within the range of the calls; that of calls shorter than the step, anywhere below it.
    ends_s = shortest_s or cells.step_s, max(longest_s, cells.step_s)
    t_s, low_s, high_s = (float(value) for value in np.clip(np.exp([t, low, high]), *ends_s))
    bounds = parts.bounds[number], parts.bounds[number + 1]
    from_s, to_s = map(float, np.clip(np.exp(bounds), shortest_s, longest_s))
    phases = effective_phases(calls_by_phase(sample, cells, *bounds)) if sample.phases_known else None
    return Mode(
        t_s,
        0.0 if zero else low_s,
        high_s,
        float(weight[0]),
        float(weight[1]),
        float(weight[2]),
        float(width[0]),
        float(width[1]),
        float(width[2]),
        phases,
        from_s,
        to_s,
    )
