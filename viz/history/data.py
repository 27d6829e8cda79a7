"""What the pages of a history show of an experiment, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ensembles.comparison.components import PLACE, quantile_octaves
from ensembles.history.check import BASELINE, Check
from ensembles.history.record import RunRecord
from ensembles.history.series import make_series
from ensembles.history.store import Acknowledgement, History, StoredRun
from ensembles.model.errors import EnsioError
from ensembles.summaries.bins import BIN_COUNT, bin_low_ns

MOST_RUNS = 200
"""Latest runs of an experiment that its page shows."""

MOST_KINDS = 4
"""Kinds of calls with a picture, those with most time."""

ROWS_PER_OCTAVE = 4


@dataclass(frozen=True)
class Line:
    """One value over the runs."""

    name: str
    value_s: np.ndarray  # Seconds; nan: the run has none; shape (r,)
    # low_s, high_s: Prediction interval of 95 % from the runs before; nan: fewer than three; shape (r,)
    low_s: np.ndarray
    high_s: np.ndarray


@dataclass(frozen=True)
class KindOverRuns:
    """One kind of calls over the runs."""

    layer: str
    op: str
    lines: list[Line]  # Modes, median, 90 % quantile, slowest
    density: np.ndarray  # Share of the calls by log duration and run; shape (rows, r)
    low_octave: float  # Log2 of the lowest duration in seconds; a row is `ROWS_PER_OCTAVE` of an octave


@dataclass(frozen=True)
class ExperimentData:
    """One experiment: its runs in the order of time, the result of the check, and values over runs."""

    name: str
    runs: list[StoredRun]
    records: list[RunRecord]
    check: Check
    kinds: list[KindOverRuns]
    phases: list[Line]
    time_s: np.ndarray
    acknowledged: list[Acknowledgement]

    @property
    def starts(self) -> list[datetime]:
        """Start of each run, UTC."""
        return [run.start for run in self.runs]


def experiment_data(
    history: History, found: Check, labels: Mapping[str, str] | None = None, until: StoredRun | None = None
) -> ExperimentData:
    """Read what the page of an experiment shows."""
    runs = history.runs(found.experiment, labels, last=MOST_RUNS)
    if not runs:
        wanted = ", ".join(f"{name}={value}" for name, value in (labels or {}).items())
        raise EnsioError(f"no run of {found.experiment} has the labels {wanted}")
    if until is not None and until.start < runs[0].start:
        runs = history.runs(found.experiment, labels, last=MOST_RUNS, until=until)
    read = history.readable(runs)
    runs, records = [run for run in runs if run.id in read], list(read.values())
    times: dict[tuple[str, str], float] = {}
    for record in records:
        for kind in record.kinds:
            if kind.counts:
                times[kind.layer, kind.op] = times.get((kind.layer, kind.op), 0.0) + kind.time_s
    chosen = sorted(times, key=lambda key: -times[key])[:MOST_KINDS]
    series = make_series(records, range(len(records))) if len(records) > 1 else None
    kinds = []
    for layer, op in chosen:
        modes = []
        if series is not None:
            for at, part in enumerate(series.parts):
                if part.what == PLACE and (part.layer, part.op) == (layer, op):
                    assert part.t_s is not None
                    place_s = part.t_s * 2.0 ** series.absolute[:, at]
                    modes.append(_line(part.name.removesuffix(" place"), place_s))
        kinds.append(_kind(records, layer, op, modes))
    return ExperimentData(
        found.experiment,
        runs,
        records,
        found,
        kinds,
        _phases(records),
        np.array([run.io_time_s for run in runs]),
        history.acknowledgements(found.experiment),
    )


def _kind(records: list[RunRecord], layer: str, op: str, modes: list[Line]) -> KindOverRuns:
    counts = np.zeros((len(records), BIN_COUNT))
    slowest = np.full(len(records), np.nan)
    for at, record in enumerate(records):
        for kind in record.kinds:
            if (kind.layer, kind.op) == (layer, op):
                counts[at, kind.bins] = kind.counts
                slowest[at] = kind.max_s
    median, p90 = (2.0 ** quantile_octaves(counts, level) * 1e-9 for level in (0.5, 0.9))
    lines = [*modes, _line("median", median), _line("90 % quantile", p90), _line("slowest", slowest)]
    octave = np.log2(np.maximum(bin_low_ns().astype(np.float64), 0.5) * 1e-9)
    row = np.floor(octave * ROWS_PER_OCTAVE).astype(np.int64)
    used = np.flatnonzero(counts.any(axis=0))
    first, last = int(row[used].min()) - 1, int(row[used].max()) + 1
    density = np.zeros((last - first + 1, len(records)))
    np.add.at(density, row[used] - first, counts[:, used].T)
    density /= np.maximum(counts.sum(axis=1), 1)
    return KindOverRuns(layer, op, lines, density, first / ROWS_PER_OCTAVE)


def _phases(records: list[RunRecord]) -> list[Line]:
    numbers = {tuple((one.phase, one.name) for one in record.phases) for record in records}
    if len(numbers) != 1:
        return []
    shown = next(iter(numbers))[:8]
    names = [f"phase {number} {name or ''}".rstrip() for number, name in shown]  # several have one name
    times = [np.array([record.phases[at].time_s for record in records]) for at in range(len(shown))]
    return [_line(name, time_s) for name, time_s in zip(names, times, strict=True)]


def _line(name: str, value_s: np.ndarray) -> Line:
    """Add the prediction interval of each run from the runs before it, on the log scale."""
    from ensembles.statistics.special import stdtrit

    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log2(np.where(value_s > 0, value_s, np.nan))
    low, high = np.full(len(logs), np.nan), np.full(len(logs), np.nan)
    for at in range(3, len(logs)):
        before = logs[max(0, at - BASELINE) : at]
        before = before[np.isfinite(before)]
        if len(before) >= 3:
            half = stdtrit(len(before) - 1, 0.975) * before.std(ddof=1) * np.sqrt(1 + 1 / len(before))
            low[at], high[at] = 2.0 ** (before.mean() - half), 2.0 ** (before.mean() + half)
    return Line(name, value_s, low, high)
