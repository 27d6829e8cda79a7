"""The calls of runs that are compared, by layer and operation, and the units into which they are divided.

Units are runs, or nearly independent blocks if each group is a single run.

A run is divided into phases or, if these are unknown, slices of time or ranks. Calls resemble the calls
before them, and so do phases. Blocks have a length of at least `TIMES` integrated autocorrelation times of
what is compared, so that they are nearly independent. There are at most `MOST_BLOCKS`: few long blocks have
nearly the power of many short ones, and are valid for longer correlations (R. Ibragimov and U. K. Müller,
"t-statistic based correlation and heterogeneity robust inference", Journal of Business and Economic
Statistics 28, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.comparison.components import (
    PLACE,
    RATIO,
    TAIL,
    TAIL_PLACE,
    WEIGHT,
    WIDTH,
    Component,
    Scores,
    compute_scores,
    fit_partition,
    quantile_octaves,
)
from ensembles.comparison.model import RunValues
from ensembles.comparison.times import LEAST_SHARE
from ensembles.ensemble.from_run import ensemble_from_run, single_calls
from ensembles.ensemble.from_summary import refuse_sums
from ensembles.model.levels import FEWEST, FEWEST_ALONE, NEARLY_ALL, RESAMPLES, SEVERAL
from ensembles.model.units import MIB
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.statistics.samples.counted_durations import LARGEST_S, CountedDurations
from ensembles.summaries.bins import BIN_COUNT
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.kernels import count_seconds

if TYPE_CHECKING:
    from ensembles.model.events import Call, Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


TIMES = 2.0
MOST_BLOCKS = 12

MOST_UNITS = 384
"""Largest number of phases, or of slices of time with equal numbers of calls."""


def unit_counts(sample: CountedDurations, most: int = MOST_UNITS) -> np.ndarray:
    """Return the histograms of phases; many phases are merged with their neighbours."""
    # Units have equal numbers of calls, so that many tiny phases do not weigh as much as few large ones.
    phases = len(sample.n)
    middle = (np.cumsum(sample.n) - sample.n / 2) / max(sample.total, 1)
    unit = np.arange(phases) if phases <= most else np.minimum((middle * most).astype(np.int64), most - 1)
    _, unit = np.unique(unit, return_inverse=True)
    counts = np.zeros((int(unit.max(initial=-1)) + 1, BIN_COUNT))
    np.add.at(counts, (unit[np.repeat(np.arange(phases), np.diff(sample.begin))], sample.bin), sample.count)
    return counts


def merged(counts: np.ndarray, blocks: int) -> np.ndarray:
    """Merge neighbouring units to at most `blocks` blocks with about equal numbers of calls."""
    calls = counts.sum(axis=1)
    middle = (np.cumsum(calls) - calls / 2) / calls.sum()
    _, first = np.unique(np.minimum((middle * blocks).astype(np.int64), blocks - 1), return_index=True)
    return np.add.reduceat(counts, first, axis=0)


def scaled(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Stack the histograms of the units of several runs, scaled to equal mean weight per unit."""
    return np.concatenate([counts / (counts.sum() / len(counts)) for counts in runs])


def block_memory(runs: Sequence[np.ndarray], resolution_s: float = 0.0) -> float:
    """Return an upper bound of the integrated autocorrelation time, in units.

    The autocorrelations of each part within runs are added up to the first one that is not positive. The part
    with the longest autocorrelation time decides.

    References
    ----------
    C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7, 1992.
    """
    counts = scaled(runs)
    scores = compute_scores(
        counts, fit_partition(counts.mean(axis=0), sum(float(run.sum()) for run in runs), resolution_s)
    )
    begin = np.cumsum([0, *(len(run) for run in runs)])
    longest = 1.0
    for total, size in zip(scores.total.T, scores.size.T, strict=True):
        rests = []
        for a, b in pairwise(begin):
            if size[a:b].sum() > 0:
                rests.append(total[a:b] - size[a:b] * total[a:b].sum() / size[a:b].sum())
        longest = max(longest, _autocorrelation_time(rests))
    return longest


def _autocorrelation_time(rests: list[np.ndarray]) -> float:
    power = sum(float(rest @ rest) for rest in rests)
    n = sum(len(rest) for rest in rests)
    if power <= 0:
        return 1.0
    time = 1.0
    for lag in range(1, min(len(rest) for rest in rests)):
        pairs = sum(len(rest) - lag for rest in rests)
        together = sum(float(rest[lag:] @ rest[:-lag]) for rest in rests)
        # The estimated mean reduces every autocorrelation by time/n.
        found = together / pairs / (power / n) + time * len(rests) / n
        if found < 0:
            break
        time += 2 * min(found, 1.0)
    kept = (time - 1) / (time + 1)
    kept += np.sqrt((1 - kept**2) / n)  # a standard error: few phases cannot show that they are independent
    return (1 + kept) / (1 - kept) if kept < 1 else np.inf


def lost_spread(memory: float, length: float) -> float:
    """Return the factor by which standard errors exceed those of independent blocks.

    Neighbouring blocks still resemble each other. For an autoregression of first order with a known
    integrated autocorrelation time, the variance of the mean of a block is known too.

    References
    ----------
    M. S. Bartlett, "On the theoretical specification and sampling properties of autocorrelated time-series",
    Supplement to the Journal of the Royal Statistical Society 8, 1946.

    Examples
    --------
    >>> lost_spread(memory=1.0, length=10.0)
    1.0
    """
    kept = (memory - 1) / (memory + 1)
    in_block = memory - 2 * kept * (1 - kept**length) / (length * (1 - kept) ** 2)
    return float(np.sqrt(memory / in_block))


@dataclass(frozen=True)
class DependentBlocks:
    """Runs divided into blocks."""

    # list of ndarray, shape (blocks, BIN_COUNT) each: Histograms of the blocks of each run; possibly fewer
    # blocks than `SEVERAL`
    counts: list[np.ndarray]
    # Upper bound of the integrated autocorrelation time, in units (phases, or pieces that replace them)
    memory: float
    spread: float  # Factor by which standard errors exceed those of independent blocks


def make_blocks(samples: Sequence[CountedDurations]) -> DependentBlocks:
    """Divide each run into blocks that are nearly independent."""
    runs = [unit_counts(sample) for sample in samples]
    memory = block_memory(runs, max(sample.resolution_s for sample in samples))
    blocks = [max(1, min(MOST_BLOCKS, int(len(run) / (TIMES * memory)))) for run in runs]
    shortest = min(len(run) / n for run, n in zip(runs, blocks, strict=True))
    spread = lost_spread(memory, shortest) if np.isfinite(memory) else np.inf
    return DependentBlocks([merged(run, n) for run, n in zip(runs, blocks, strict=True)], memory, spread)


@dataclass(frozen=True)
class RunCalls:
    """Calls of one run."""

    durations_s: np.ndarray  # float64, shape (n,): Seconds
    # phase, rank, start_ns: int64, shape (n,) or None: None: unknown; a phase of -1: in none
    phase: np.ndarray | None = None
    rank: np.ndarray | None = None
    start_ns: np.ndarray | None = None
    resolution_s: float = 0.0  # Step of the clock in seconds

    def sample(self, piece: np.ndarray | None = None) -> CountedDurations:
        """Return the durations, counted by `piece` (shape (n,)) if it is given."""
        return CountedDurations.from_durations(self.durations_s, piece, self.resolution_s)


def sliced(runs: list[RunCalls]) -> tuple[list[CountedDurations], str]:
    """Divide runs into pieces, in the order of time or of ranks.

    Phases are used if each run has `FEWEST` of them. Otherwise slices of time or ranks are used,
    whichever the calls depend on more: means of log duration over a twelfth of the pieces vary more.
    """
    phases = [phase for run in runs if (phase := _phases(run)) is not None]
    if len(phases) == len(runs):
        return [run.sample(phase) for run, phase in zip(runs, phases, strict=True)], "phases"
    found: list[tuple[float, str, list[np.ndarray]]] = []
    for what, pieces_of in (("slices of time", _slices), ("ranks", _ranks)):
        pieces = [piece for run in runs if (piece := pieces_of(run)) is not None]
        if len(pieces) == len(runs):
            scatter = sum(_scatter(run, piece) for run, piece in zip(runs, pieces, strict=True))
            found.append((scatter, what, pieces))
    if not found:
        return [run.sample() for run in runs], ""
    _, what, pieces = max(found, key=lambda entry: entry[0])
    return [run.sample(piece) for run, piece in zip(runs, pieces, strict=True)], what


def _phases(run: RunCalls) -> np.ndarray | None:
    if run.phase is None or not len(run.phase):
        return None
    inside = run.phase >= 0
    if inside.mean() < NEARLY_ALL or len(np.unique(run.phase[inside])) < FEWEST:
        return None
    if inside.all():
        return run.phase
    # The few calls between two phases are assigned to the first of them, so that no call is left out.
    order = np.argsort(run.start_ns, kind="stable") if run.start_ns is not None else np.arange(len(inside))
    filled = np.empty_like(run.phase)
    filled[order] = np.maximum.accumulate(run.phase[order])
    phase: np.ndarray = np.maximum(np.where(inside, run.phase, filled), run.phase[inside].min())
    return phase


def _slices(run: RunCalls) -> np.ndarray | None:
    """Return slices with equal numbers of calls, by start or else by the order of the calls of a rank."""
    n = len(run.durations_s)
    if run.start_ns is not None:
        order = np.argsort(run.start_ns, kind="stable")
        number = np.empty(n, np.int64)
        number[order] = np.arange(n)
        place = number / max(n, 1)
    elif run.rank is not None:
        _, rank, count = np.unique(run.rank, return_inverse=True, return_counts=True)
        order = np.argsort(rank, kind="stable")
        ordinal = np.empty(n, np.int64)
        ordinal[order] = np.arange(n) - np.repeat(np.cumsum(count) - count, count)
        place = ordinal / count[rank]
    else:
        return None
    slices = max(1, min(MOST_UNITS, n // FEWEST_ALONE))
    return np.minimum((place * slices).astype(np.int64), slices - 1)


def _ranks(run: RunCalls) -> np.ndarray | None:
    if run.rank is None or len(np.unique(run.rank)) < FEWEST:
        return None
    return run.rank


def _scatter(run: RunCalls, piece: np.ndarray) -> float:
    """Return the variance of the mean log duration, estimated from a few large blocks of pieces."""
    log_s = np.log(np.maximum(run.durations_s, 1e-9))
    pieces, number = np.unique(piece, return_inverse=True)
    blocks = min(MOST_BLOCKS, len(pieces))
    block = number * blocks // len(pieces)
    size = np.bincount(block, minlength=blocks)
    rest = np.bincount(block, log_s - log_s.mean(), blocks)
    return float((rest**2).sum() / size.sum() ** 2)


@dataclass(frozen=True)
class Kind:
    """One kind of calls in all runs."""

    # The runs of each group; the others are compared with the first group
    groups: Sequence[Sequence[CountedDurations]]
    # op, layer: Operation and layer, for texts only
    op: str | None = None
    layer: str | None = None
    unit: str = "phases"  # What the phases of the samples are, for texts; ``""``: calls are not divided
    is_main: bool = True  # Whether they take enough of the time in I/O for advice on more runs


RUNS = "runs"


@dataclass(frozen=True)
class Units:
    """Runs as wholes, or blocks of single runs."""

    counts: np.ndarray  # float64, shape (u, BIN_COUNT): Histogram of each unit
    run: np.ndarray  # int64, shape (u,): Run of each unit
    group: np.ndarray  # int64, shape (r,): Group of each run
    calls: np.ndarray  # int64, shape (r,): Number of calls of each run
    what: str  # Name of the units in texts
    memory: float | None = None  # Integrated autocorrelation time, in phases
    spread: float = 1.0  # Factor by which standard errors exceed those of independent units

    @property
    def group_of_units(self) -> np.ndarray:
        """Group of each unit: int64, shape (u,)."""
        found: np.ndarray = self.group[self.run]
        return found

    @property
    def members(self) -> np.ndarray:
        """1.0 where a unit belongs to a run: float64, shape (r, u)."""
        found: np.ndarray = (self.run == np.arange(len(self.group))[:, None]).astype(np.float64)
        return found

    @property
    def sizes(self) -> list[int]:
        """Number of units of each group."""
        sizes: list[int] = np.bincount(self.group_of_units).tolist()
        return sizes

    def of_groups(self, *groups: int) -> Units:
        """Return the units of some groups, which are numbered anew in this order."""
        runs = np.concatenate([np.flatnonzero(self.group == g) for g in groups])
        number = np.repeat(np.arange(len(groups)), [(self.group == g).sum() for g in groups])
        chosen = [np.flatnonzero(self.run == run) for run in runs]
        again = np.repeat(np.arange(len(runs)), [len(units) for units in chosen])
        counts = self.counts[np.concatenate(chosen)]
        return replace(self, counts=counts, run=again, group=number, calls=self.calls[runs])

    @property
    def are_blocks(self) -> bool:
        """Whether units are blocks of single runs with known pieces."""
        return self.what.startswith("blocks")

    @property
    def are_enough(self) -> bool:
        """Whether units show how far the values of runs are uncertain."""
        if self.what == RUNS:
            return len(self.group) > int(self.group.max()) + 1
        return self.are_blocks and min(self.sizes) >= SEVERAL


def choose_units(groups: Sequence[Sequence[CountedDurations]], unit: str) -> Units:
    """Choose runs as units if a group has several, otherwise blocks of each run."""
    group = np.repeat(np.arange(len(groups)), [len(runs) for runs in groups])
    calls = np.array([sample.total for runs in groups for sample in runs])
    if max(len(runs) for runs in groups) > 1:
        runs = [sample.counts[None].astype(np.float64) for runs in groups for sample in runs]
        return Units(scaled(runs), np.arange(len(runs)), group, calls, RUNS)
    blocks = make_blocks([runs[0] for runs in groups])
    known = unit and all(runs[0].phases_known for runs in groups)
    what = f"blocks of {unit}" if known else "runs whose phases are not known"
    run = np.repeat(group, [len(counts) for counts in blocks.counts])
    return Units(scaled(blocks.counts), run, group, calls, what, blocks.memory, blocks.spread)


_FAMILIES = (PLACE, RATIO, WIDTH, WEIGHT, TAIL, TAIL_PLACE)


@dataclass(frozen=True)
class PartValues:
    """Values of the parts in runs and in units."""

    parts: list[Component]  # The parts of the scores, then the ratios of modes
    runs: RunValues  # Their values in each run
    by_unit: np.ndarray  # float64, shape (u, m): Values of the units, for rank tests


def value_parts(scores: Scores, units: Units) -> PartValues:
    """Compute the value of each part in each run.

    Notes
    -----
    The value of a run is the ratio of sums over its units. Its error within the run is that of a ratio
    estimate (W. G. Cochran, Sampling Techniques, 1977), and is widened for dependent blocks. A ratio of two
    modes is the difference of their locations, in which a factor common to the run cancels. Of several runs,
    only shares have an error: that of a number of independent calls.
    """
    member = units.members
    with np.errstate(invalid="ignore", divide="ignore"):
        size = member @ scores.size
        value = member @ scores.total / size
        # What each unit adds to the value of its run: these sums are the errors of ratio estimates.
        linear = (scores.total - value[units.run] * scores.size) / size[units.run]
        by_unit = scores.total / scores.size
    n = member @ (scores.size > 0)
    parts, value, linear, by_unit, n = _with_ratios(scores.parts, value, linear, by_unit, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = units.spread * np.sqrt(n / (n - 1) * (member @ np.where(np.isfinite(linear), linear, 0) ** 2))
    family = np.array([_FAMILIES.index(part.what) for part in parts])
    grain = np.array([part.grain_octaves if part.is_ratio else 0.0 for part in parts])
    if units.are_blocks and units.are_enough:
        error, freedom = np.where(n > 1, error, np.nan), n - 1
    else:  # numbers of calls vary at least as those of independent calls do
        share = np.where([part.is_ratio for part in parts], 0.0, value.mean(axis=0))
        error, freedom = np.sqrt(np.maximum(share * (1 - share), 0) / units.calls[:, None]), None
    return PartValues(parts, RunValues(value, units.group, family, grain, error, freedom), by_unit)


def _with_ratios(
    parts: list[Component], value: np.ndarray, linear: np.ndarray, by_unit: np.ndarray, n: np.ndarray
) -> tuple[list[Component], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Add the location of each mode relative to that of the heaviest."""
    places = [at for at, part in enumerate(parts) if part.what == PLACE]
    if len(places) < 2:
        return parts, value, linear, by_unit, n
    heaviest = max(places, key=lambda at: parts[at].weight)
    others = [at for at in places if at != heaviest]
    grain = parts[heaviest].grain_octaves
    more = [replace(parts[at], what=RATIO, grain_octaves=parts[at].grain_octaves + grain) for at in others]
    value, linear, by_unit = (
        np.hstack([known, known[:, others] - known[:, [heaviest]]]) for known in (value, linear, by_unit)
    )
    n = np.hstack([n, np.minimum(n[:, others], n[:, [heaviest]])])
    return [*parts, *more], value, linear, by_unit, n


def medians_of_runs(units: Units, rng: np.random.Generator) -> RunValues:
    """Compute the median of each run; with blocks, its error comes from draws of blocks."""
    value = quantile_octaves(units.members @ units.counts, 0.5)[:, None]
    none = np.zeros(1)
    if not (units.are_blocks and units.are_enough):
        return RunValues(value, units.group, none.astype(int), none)
    error, freedom = np.full_like(value, np.nan), np.zeros_like(value)
    used = np.flatnonzero(units.counts.any(axis=0))
    for run in range(len(units.group)):
        mine = units.counts[units.run == run]
        n = len(mine)
        if n > 1:
            drawn = np.zeros((RESAMPLES, units.counts.shape[1]))
            drawn[:, used] = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) @ mine[:, used]
            variance = quantile_octaves(drawn, 0.5).var(ddof=1) * n / (n - 1)
            error[run], freedom[run] = units.spread * np.sqrt(variance), n - 1
    return RunValues(value, units.group, none.astype(int), none, error, freedom)


Key = tuple[str, str]
"""Layer and operation."""

WAITS_FOR_TASKS = {("mpisync", "wait"), ("mpimsg", "wait")}
"""Kinds of calls in which tasks wait for each other or exchange messages; others wait for I/O."""


@dataclass
class ComparedCalls:
    """Calls of a run by layer and operation."""

    time_s: dict[Key, float] = field(default_factory=dict)  # Time in the calls of each kind, in seconds
    # Their durations, if single calls are not needed or not known
    samples: dict[Key, CountedDurations] = field(default_factory=dict)
    calls: dict[Key, RunCalls] = field(default_factory=dict)  # Single calls
    # Number of calls of the kinds whose durations the record does not hold
    counts: dict[Key, int] = field(default_factory=dict)
    notes: dict[Key, list[str]] = field(default_factory=dict)  # Caveats of each kind, one sentence each

    def sample(self, key: Key) -> CountedDurations:
        """Return the durations of a kind of calls."""
        return self.samples[key] if key in self.samples else self.calls[key].sample()

    def number(self, key: Key) -> int:
        """Return the number of calls of a kind."""
        if key not in self.time_s:
            return 0
        return self.counts[key] if key in self.counts else int(self.sample(key).total)


def group_calls(run: Run, selection: Selection, single: bool) -> ComparedCalls:
    """Group the selected calls of a run by layer and operation."""
    events = single_calls(run, selection) if single else None
    if events is not None:
        return _in_memory(events, selection)
    kinds = run.summarize(partial(_Kinds, selection), selection=selection)
    if kinds is None:
        sums = _sums_in_summary(run, selection)
        if run.summary.durations_known:
            return _from_ensembles(run, selection, sums.time_s)
        if _is_part(selection):
            refuse_sums(run)
        return sums
    counted = {
        key: CountedDurations.from_counts(kinds.counts[key], *kinds.ends_s[key]) for key in kinds.counts
    }
    found = ComparedCalls(kinds.time_s, counted)
    if not single:
        return found
    whole_s = sum(found.time_s.values())  # phases are determined for kinds that take enough of it
    return _from_ensembles(
        run,
        selection,
        {key: time_s for key, time_s in found.time_s.items() if time_s >= LEAST_SHARE * whole_s},
    )


def _sums_in_summary(run: Run, selection: Selection) -> ComparedCalls:
    """Return times and numbers of the calls of each function that is wanted, whatever the other filters."""
    found = ComparedCalls()
    for call, sums in run.summarize(ignoring_run(CallTable)).totals.items():
        if selection.wants_call(call):
            key = _key(call)
            found.time_s[key] = found.time_s.get(key, 0.0) + sums.time_ns * 1e-9
            found.counts[key] = found.counts.get(key, 0) + sums.count
    return found


def _is_part(selection: Selection) -> bool:
    """Whether filters other than those of functions choose calls, or times are per MiB."""
    return replace(selection, layers=None, ops=None, calls=None) != type(selection)()


def _from_ensembles(run: Run, selection: Selection, time_s: dict[Key, float]) -> ComparedCalls:
    found = ComparedCalls()
    is_part = _is_part(selection) and not selection.per_byte
    for layer, op in time_s:
        chosen = replace(selection, layers=(layer,), ops=(op,))
        ensemble = ensemble_from_run(run, chosen, per="MiB" if selection.per_byte else "call")
        if ensemble.n:
            # Times in the summary are of all calls of a function: filters may leave some of them out.
            mine_s = ensemble.n * ensemble.moments().mean_s.value if is_part else time_s[layer, op]
            found.samples[layer, op], found.time_s[layer, op] = ensemble.sample, mine_s
            found.notes[layer, op] = ensemble.notes
    return found


def _in_memory(events: Events, selection: Selection) -> ComparedCalls:
    found = ComparedCalls()
    phase = events.phase
    for key, mine in _by_key(events):
        chosen = events[mine]
        found.time_s[key] = float(chosen.duration.sum() * 1e-9)
        found.calls[key] = RunCalls(
            _durations_s(chosen, selection),
            None if phase is None else phase[mine],
            chosen.rank.astype(np.int64),
            chosen.start,
        )
    return found


class _Kinds(Summary):
    """Counts, extremes and total time of the calls of each kind."""

    of_all_calls = True

    def __init__(self, selection: Selection, _: Any = None) -> None:
        self.selection = selection
        self.time_s: dict[Key, float] = {}
        self.counts: dict[Key, np.ndarray] = {}
        self.ends_s: dict[Key, tuple[float, float]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        for key, mine in _by_key(chunk):
            chosen = chunk[mine]
            durations_s = _durations_s(chosen, self.selection)
            counts, _ = count_seconds(durations_s, LARGEST_S)
            ends_s = float(durations_s.min()), float(durations_s.max())
            self._add(key, counts, ends_s, float(chosen.duration.sum() * 1e-9))

    def merge(self, other: _Kinds) -> None:
        """Add those of other ranks."""
        for key in other.counts:
            self._add(key, other.counts[key], other.ends_s[key], other.time_s[key])

    def _add(self, key: Key, counts: np.ndarray, ends_s: tuple[float, float], time_s: float) -> None:
        low_s, high_s = self.ends_s.get(key, (np.inf, 0.0))
        self.counts[key] = self.counts.get(key, 0) + counts
        self.ends_s[key] = min(low_s, ends_s[0]), max(high_s, ends_s[1])
        self.time_s[key] = self.time_s.get(key, 0.0) + time_s


def _by_key(events: Events) -> list[tuple[Key, np.ndarray]]:
    """Return a mask of the calls for each layer and operation."""
    present = np.flatnonzero(np.bincount(events.call, minlength=len(events.calls)))
    keys: dict[Key, list[int]] = {}
    for number in present.tolist():
        keys.setdefault(_key(events.calls[number]), []).append(number)
    return [(key, np.isin(events.call, numbers)) for key, numbers in keys.items()]


def _key(call: Call) -> Key:
    return call.layer, call.op


def _durations_s(events: Events, selection: Selection) -> np.ndarray:
    durations_s = events.duration * 1e-9
    return durations_s / (events.moved / MIB) if selection.per_byte else durations_s
