"""The latest run of each experiment as OpenMetrics text, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ensembles.history.check import check, control_false_alarms
from ensembles.history.context import quantile_s
from ensembles.history.record import KindRecord, RunRecord
from ensembles.history.store import History

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
