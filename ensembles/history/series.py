"""The series of an experiment: one value of each part in each run.

A run that meets a busy file system takes longer everywhere. The location of the mode with most calls is
therefore one part, the common factor, and other durations are taken relative to it: a mode that moves alone
is seen however busy the night.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ensembles.comparison.call_groups import WAITS_FOR_TASKS
from ensembles.comparison.compare_samples import FEWEST_CALLS, values_of_runs
from ensembles.comparison.components import PLACE, RATIO, TAIL, TAIL_PLACE, WEIGHT
from ensembles.comparison.hypothesis_tests import FIRST_TESTED
from ensembles.comparison.model import is_alike
from ensembles.comparison.times import LEAST_SHARE, MARGIN
from ensembles.history.record import KindRecord, RunRecord
from ensembles.summaries.bins import bin_edges_s

COMMON, PHASE, RATE, CALLS, TIME = "common factor", "phase time", "rate", "calls", "time"

_MOST_PHASES = 16
_WEIGHT_GRAIN = 0.002  # a change of a share that is never one


@dataclass(frozen=True)
class Part:
    """One part of an experiment that can change."""

    # `COMMON`, ``mode place``, ``mode width``, ``mode weight``, ``tail``, ``tail place``, `PHASE`, `RATE`,
    # `CALLS` or `TIME`, of the whole run
    what: str
    name: str  # As in texts: ``mode 2 place``, ``phase 3 time``
    # layer, op: Kind of calls; None: the part belongs to the run
    layer: str | None = None
    op: str | None = None
    t_s: float | None = None  # Location of the mode, in seconds
    slower: int = 1  # 1: it takes longer if the value grows; −1: if the value falls
    grain: float = 0.0  # Differences that are not larger are none
    calls: float = 0.0  # Calls of the mode in all runs
    # number, kind: Of a phase: its number and name
    number: int = 0
    kind: str = ""


@dataclass(frozen=True)
class Series:
    """Values of all parts in all runs."""

    parts: list[Part]  # m parts; the first is `COMMON` if there are locations
    # float64, shape (r, m): Locations as log2 of their ratio to the part's, times in seconds and rates in
    # bytes/s as log2, all relative to the common factor; widths as log2; weights and tails as shares; calls
    # as numbers. nan: the run does not have the part.
    value: np.ndarray
    absolute: np.ndarray  # float64, shape (r, m): The same, not relative
    # float64, shape (r, m): Variance of a value because its run has so few calls, as if these were
    # independent; 0: not computed. Calls of one phase vary more, which runs show, if they are not too few or
    # too lucky.
    drawn: np.ndarray
    reference: int | None = None  # Part to which the others are relative: the mode with most calls


Column = tuple[Part, np.ndarray, np.ndarray | float]
"""A part with its values and their `Series.drawn`."""


def make_series(records: Sequence[RunRecord], baseline: Sequence[int]) -> Series:
    """Compute the values of all parts."""
    columns: list[Column] = []
    other_sizes = kinds_of_other_sizes(records, baseline)
    for layer, op in kinds_of(records):
        of_kind = _parts_of_kind(records, layer, op)
        columns += of_kind[:1] if (layer, op) in other_sizes else of_kind
    columns += _phases(records) + _rates(records, baseline) + _time(records)
    parts = [part for part, *_ in columns]
    absolute, drawn = np.zeros((2, len(records), len(columns)))
    for at, (_, of_part, variance) in enumerate(columns):
        absolute[:, at], drawn[:, at] = of_part, variance
    places = [
        at for at, part in enumerate(parts) if part.what == PLACE and np.isfinite(absolute[:, at]).all()
    ]
    if not places:
        return Series(parts, absolute, absolute, drawn)
    reference = max(places, key=lambda at: parts[at].calls)
    common = absolute[:, reference] - absolute[np.asarray(baseline), reference].mean()
    value = absolute.copy()
    for at, part in enumerate(parts):
        if part.what in (PLACE, PHASE, RATE):
            value[:, at] -= part.slower * common
    first = Part(COMMON, "all durations", grain=parts[reference].grain)
    value, absolute = (np.column_stack([common, rest]) for rest in (value, absolute))
    drawn = np.column_stack([drawn[:, reference], drawn])
    return Series([first, *parts], value, absolute, drawn, reference + 1)


def kinds_of_other_sizes(
    records: Sequence[RunRecord], baseline: Sequence[int], margin: float = MARGIN
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the kinds of calls with another mean size in the latest run: before and after, in bytes.

    `margin`: largest change that does not count. Durations of other sizes are not compared.
    """
    found = {}
    for layer, op in kinds_of(records):
        old, new = (
            [kind for at in rows if (kind := records[at].kind(layer, op)) is not None]
            for rows in (baseline, [len(records) - 1])
        )
        calls = [sum(kind.calls for kind in kinds) for kinds in (old, new)]
        moved = [sum(kind.bytes for kind in kinds) for kinds in (old, new)]
        if all(calls) and all(moved):
            before, after = moved[0] / calls[0], moved[1] / calls[1]
            if not is_alike(after / before, margin):
                found[layer, op] = (before, after)
    return found


def kinds_of(records: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """Return layer and operation of the kinds of I/O calls of some runs, most time first."""
    times_s: dict[tuple[str, str], float] = {}
    for record in records:
        for kind in record.kinds:
            key = (kind.layer, kind.op)
            if key not in WAITS_FOR_TASKS:
                times_s[key] = times_s.get(key, 0.0) + kind.time_s
    return sorted(times_s, key=lambda key: -times_s[key])


def _parts_of_kind(records: Sequence[RunRecord], layer: str, op: str) -> list[Column]:
    runs = [one.kind(layer, op) for one in records]
    calls = np.array([0.0 if kind is None else kind.calls for kind in runs])
    columns: list[Column] = [(Part(CALLS, "calls", layer, op), calls, 0.0)]
    if any(kind is not None and kind.calls and not kind.counts for kind in runs):
        return columns + _means(runs, layer, op)
    made = [at for at, kind in enumerate(runs) if kind is not None and kind.counts]
    time_s = sum(kind.time_s for kind in runs if kind is not None)
    if len(made) < 2 or time_s < LEAST_SHARE * sum(one.totals.get("io_time_s", 0.0) for one in records):
        return columns
    kept = [kind for kind in runs if kind is not None and kind.counts]
    found = values_of_runs([kind.sample() for kind in kept])
    if found is None:
        return columns
    mean_s = time_s / max(calls.sum(), 1.0)
    modes = [part for part in found.parts if part.what == PLACE]
    for at, part in enumerate(found.parts):
        if part.what == RATIO:
            continue  # locations are relative to the common factor
        if part.what in (TAIL, TAIL_PLACE) and np.median(calls[made]) < FEWEST_CALLS:
            continue  # a single call would be the tail
        value = np.full(len(records), np.nan)
        value[made] = found.runs.value[:, at]
        if part.what == WEIGHT and len(modes) == 2 and part.mode == 1:
            value, part = 1 - value, replace(part, mode=2, t_s=modes[1].t_s, weight=modes[1].weight)
        slower = -1 if part.what == WEIGHT and part.t_s < mean_s else 1
        grain = _WEIGHT_GRAIN if part.what == WEIGHT else part.grain_octaves
        many = part.weight * float(calls.sum())
        drawn = _drawn_of_shares(value, calls) if part.what in (WEIGHT, TAIL) else 0.0
        columns.append((Part(part.what, part.name, layer, op, part.t_s, slower, grain, many), value, drawn))
    return columns


def _drawn_of_shares(value: np.ndarray, calls: np.ndarray) -> np.ndarray:
    """Return the variance of binomial shares of so many calls, with the share of all runs."""
    known = np.isfinite(value)
    share = (float(value[known] @ calls[known]) + 0.5) / (float(calls[known].sum()) + 1)
    variance: np.ndarray = share * (1 - share) / np.maximum(calls, 1)
    return variance


def _means(runs: Sequence[KindRecord | None], layer: str, op: str) -> list[Column]:
    """Mean durations, where only sums are known."""
    value = np.full(len(runs), np.nan)
    for at, kind in enumerate(runs):
        if kind is not None and kind.calls and kind.time_s > 0:
            value[at] = np.log2(kind.time_s / kind.calls)
    if not np.isfinite(value).any():
        return []
    calls = float(sum(kind.calls for kind in runs if kind is not None))
    octave = float(np.nanmean(value))
    return [(Part(PLACE, "mean duration", layer, op, 2.0**octave, calls=calls), value - octave, 0.0)]


def _phases(records: Sequence[RunRecord]) -> list[Column]:
    """Times of the phases, if all runs have the same phases."""
    numbers = {tuple((one.phase, one.name) for one in record.phases) for record in records}
    if len(numbers) != 1 or not (phases := next(iter(numbers))) or len(phases) > _MOST_PHASES:
        return []
    columns: list[Column] = []
    for at, (number, name) in enumerate(phases):
        time_s = np.array([record.phases[at].time_s for record in records])
        if (time_s > 0).all():
            label = f"phase {number} time" if name is None else f"phase {number} ({name}) time"
            part = Part(PHASE, label, number=number, kind=name or "")
            columns.append((part, np.log2(time_s), 0.0))
    return columns


def _time(records: Sequence[RunRecord]) -> list[Column]:
    """Time in I/O of whole runs, which decides as in ``ensio compare``: that of the critical path first."""
    for what in (*FIRST_TESTED, "io_time_s"):
        time_s = np.array([record.totals.get(what, 0.0) for record in records])
        if (time_s > 0).all():
            return [(Part(TIME, "time in I/O", t_s=1.0), np.log2(time_s), 0.0)]
    return []


def _rates(records: Sequence[RunRecord], baseline: Sequence[int]) -> list[Column]:
    """Rates of reads and writes; not of other numbers of bytes, where time decides."""
    columns: list[Column] = []
    for op in ("read", "write"):
        rate = np.array([record.rates_bytes_per_s.get(op, 0.0) for record in records])
        moved = np.array([sum(one.bytes for one in record.kinds if one.op == op) for record in records])
        usual = float(moved[np.asarray(baseline)].mean())
        is_alike = not moved.any() or (1 - MARGIN) * usual <= moved[-1] <= usual / (1 - MARGIN)
        if (rate > 0).all() and is_alike:
            columns.append(
                (Part(RATE, f"{op} rate", op=op, slower=-1), np.log2(rate), _drawn_of_means(records, op))
            )
    return columns


def _drawn_of_means(records: Sequence[RunRecord], op: str) -> np.ndarray:
    """Return the variance of the log2 of mean durations, with the durations of all runs."""
    layer = next((layer for layer, of_kind in kinds_of(records) if of_kind == op), None)
    middles_s = 0.5 * (bin_edges_s()[:-1] + bin_edges_s()[1:])
    runs = [one.kind(layer, op) for one in records]
    counts = np.zeros(len(middles_s))
    for kind in runs:
        if kind is not None and kind.counts:
            counts[np.array(kind.bins)] += kind.counts
    if not counts.any():
        return np.zeros(len(records))
    mean_s = float(counts @ middles_s) / counts.sum()
    spread = float(counts @ (middles_s - mean_s) ** 2) / counts.sum() / mean_s**2
    calls = np.array([0 if kind is None else kind.calls for kind in runs])
    variance: np.ndarray = spread / np.log(2) ** 2 / np.maximum(calls, 1)
    return variance
