"""Where one run lies among others: useful from the first run on, and no test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from ensembles.history.check import stored_json
from ensembles.history.record import RunRecord
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
