"""Where runs lie among others: one run, without a test, and the latest of each experiment as OpenMetrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from ensembles.history.check import check, control_false_alarms, stored_json
from ensembles.history.record import KindRecord, RunRecord
from ensembles.history.store import History, StoredRun
from ensembles.model.units import bytes_text, seconds_text

MOST_RUNS = 1000
"""Latest runs that a run is placed among."""

_QUANTILES = (0.5, 0.9)


@dataclass(frozen=True)
class Placed:
    """One value of a run among those of others."""

    # name, unit: ``s`` or ``bytes/s``
    name: str
    unit: str
    value: float
    others: int  # Other runs that have the value
    lower: int  # Other runs with a lower value
    # low, median, high: Of the others; None: there is none
    low: float | None
    median: float | None
    high: float | None

    def text(self, value: float | None) -> str:
        """Format a value with its unit."""
        if value is None:
            return "-"
        return seconds_text(value) if self.unit == "s" else f"{bytes_text(value)}/s"

    @property
    def place(self) -> str:
        """``5 of 12``: runs that the run exceeds."""
        return f"{self.lower} of {self.others}"


@dataclass(frozen=True)
class Context:
    """A run among others: the run, words for the others, their number, and its values."""

    run: StoredRun
    among: str
    others: int
    values: list[Placed]

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio history context --json`` prints."""
        return {
            "run": stored_json(self.run),
            "among": self.among,
            "others": self.others,
            "values": [asdict(one) for one in self.values],
        }


def place_run(
    history: History, run: int, labels: Mapping[str, str] | None = None, days: int | None = None
) -> Context:
    """Place a run among those of its experiment, or of some labels; `days`: of so many days before."""
    mine = history.run(run)
    others = history.runs(None if labels else mine.experiment, labels)
    others = [one for one in others if one.id != run]
    if days is not None:
        others = [one for one in others if timedelta() <= mine.start - one.start <= timedelta(days=days)]
    (record,), rest = history.records([run]), list(history.readable(others[-MOST_RUNS:]).values())
    among = f"with {' '.join(f'{k}={v}' for k, v in labels.items())}" if labels else f"of {mine.experiment}"
    among += "" if days is None else f" in the {days} days before it"
    values = [_placed(name, unit, take, record, rest) for name, unit, take in _measures(record)]
    return Context(mine, among, len(rest), [value for value in values if value is not None])


Measure = Callable[[RunRecord], float | None]


def _measures(record: RunRecord) -> list[tuple[str, str, Measure]]:
    found: list[tuple[str, str, Measure]] = [
        ("span", "s", lambda one: one.totals.get("span_s")),
        ("time in I/O", "s", lambda one: one.totals.get("io_time_s")),
    ]
    for op in record.rates_bytes_per_s:
        found.append((f"{op} rate", "bytes/s", lambda one, op=op: one.rates_bytes_per_s.get(op)))  # type: ignore[misc]
    for kind in record.kinds:
        key = (kind.layer, kind.op)
        for level in _QUANTILES:
            name = f"{kind.layer} {kind.op} {'median' if level == 0.5 else 'p90'}"
            found.append((name, "s", lambda one, key=key, level=level: quantile_s(one, key, level)))  # type: ignore[misc]
        found.append((f"{kind.layer} {kind.op} slowest", "s", lambda one, key=key: _slowest(one, key)))  # type: ignore[misc]
    return found


def quantile_s(record: RunRecord, key: tuple[str, str], level: float) -> float | None:
    """Return a quantile of the durations of a kind of calls in seconds; None: the run has no such calls."""
    from ensembles.comparison.components import quantile_octaves

    kind = record.kind(*key)
    if kind is None or not kind.counts:
        return None
    counts = kind.sample().counts[None].astype(np.float64)
    exact = float(2.0 ** quantile_octaves(counts, level)[0] * 1e-9)
    return float(np.clip(exact, kind.min_s, kind.max_s))


def _slowest(record: RunRecord, key: tuple[str, str]) -> float | None:
    kind = record.kind(*key)
    return None if kind is None else kind.max_s


def _placed(name: str, unit: str, take: Measure, record: RunRecord, rest: list[RunRecord]) -> Placed | None:
    value = take(record)
    if value is None:
        return None
    known = np.array([other for one in rest if (other := take(one)) is not None])
    ends = (float(known.min()), float(np.median(known)), float(known.max())) if len(known) else (None,) * 3
    return Placed(name, unit, value, len(known), int((known < value).sum()), *ends)


VERDICTS = ("ok", "improvement", "too-few-runs", "incomplete", "regression")


def openmetrics(history: History) -> str:
    """Format the latest run of each experiment, and its verdict, by https://prometheus.io/docs/specs/om."""
    experiments = history.experiments()
    found = control_false_alarms([check(history, one.name, compared=False) for one in experiments])
    records = history.readable([one.run for one in found])
    pairs = [(one, records[one.run.id]) for one in found if one.run.id in records]
    kinds = [(one, record, kind) for one, record in pairs for kind in record.kinds]
    # Name, what it is, labels besides the experiment, and the experiment, labels and value of each sample.
    families: tuple[tuple[str, str, tuple[str, ...], Iterable[tuple[Any, ...]]], ...] = (
        ("ensio_runs", "Runs of the experiment.", (), [(one.name, one.runs) for one in experiments]),
        (
            "ensio_verdict",
            "1 for the verdict of ensio history check on the latest run, 0 for the others.",
            ("verdict",),
            [(one.experiment, name, one.verdict == name) for one in found for name in VERDICTS],
        ),
        (
            "ensio_latest_start_timestamp_seconds",
            "Start of the latest run.",
            (),
            [(one.experiment, one.run.start.timestamp()) for one in found],
        ),
        (
            "ensio_span_seconds",
            "Span of the latest run.",
            (),
            [(one.experiment, one.run.span_s) for one in found],
        ),
        (
            "ensio_io_time_seconds",
            "Time of all tasks in I/O calls of the latest run.",
            (),
            [(one.experiment, one.run.io_time_s) for one in found],
        ),
        (
            "ensio_rate_bytes_per_second",
            "Mean rate of the latest run while bytes move.",
            ("op",),
            [(one.experiment, *rate) for one, record in pairs for rate in record.rates_bytes_per_s.items()],
        ),
        (
            "ensio_calls",
            "Calls of the latest run.",
            ("layer", "op"),
            [(one.experiment, kind.layer, kind.op, kind.calls) for one, _, kind in kinds],
        ),
        (
            "ensio_call_duration_quantile_seconds",
            "Quantile of the durations of calls of the latest run.",
            ("layer", "op", "level"),
            [
                (one.experiment, kind.layer, kind.op, level, value)
                for one, record, kind in kinds
                for level in (0.5, 0.9, 1.0)
                if (value := _quantile(record, kind, level)) is not None
            ],
        ),
    )
    lines = []
    for name, help, labels, samples in families:
        lines.append(f"# TYPE {name} gauge")
        if name.endswith("_seconds"):
            lines.append(f"# UNIT {name} seconds")
        lines.append(f"# HELP {name} {help}")
        for *texts, value in samples:
            told = zip(("experiment", *labels), texts, strict=True)
            said = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in told)
            lines.append(f"{name}{{{said}}} {float(value)!r}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _quantile(record: RunRecord, kind: KindRecord, level: float) -> float | None:
    if level == 1.0:
        return float(kind.max_s) or None
    return quantile_s(record, (kind.layer, kind.op), level)


def _escaped(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return clean.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
