"""The latest run of each experiment as OpenMetrics text, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from ensembles.history.check import check, control_false_alarms
from ensembles.history.context import quantile_s
from ensembles.history.record import KindRecord, RunRecord
from ensembles.history.store import History

VERDICTS = ("ok", "improvement", "too-few-runs", "incomplete", "regression")

_Sample = tuple[dict[str, str], float]


def openmetrics(history: History) -> str:
    """Format the latest run of each experiment, and its verdict, by https://prometheus.io/docs/specs/om."""
    experiments = history.experiments()
    found = control_false_alarms([check(history, one.name, compared=False) for one in experiments])
    records = history.readable([one.run for one in found])
    pairs = [(one, records[one.run.id]) for one in found if one.run.id in records]
    families: list[tuple[str, str, str, Iterable[_Sample]]] = [
        (
            "ensio_runs",
            "",
            "Runs of the experiment.",
            [({"experiment": one.name}, one.runs) for one in experiments],
        ),
        (
            "ensio_verdict",
            "",
            "1 for the verdict of ensio history check on the latest run, 0 for the others.",
            [
                ({"experiment": one.experiment, "verdict": verdict}, float(one.verdict == verdict))
                for one in found
                for verdict in VERDICTS
            ],
        ),
        (
            "ensio_latest_start_timestamp_seconds",
            "seconds",
            "Start of the latest run.",
            [({"experiment": one.experiment}, one.run.start.timestamp()) for one in found],
        ),
        (
            "ensio_span_seconds",
            "seconds",
            "Span of the latest run.",
            [({"experiment": one.experiment}, one.run.span_s) for one in found],
        ),
        (
            "ensio_io_time_seconds",
            "seconds",
            "Time of all tasks in I/O calls of the latest run.",
            [({"experiment": one.experiment}, one.run.io_time_s) for one in found],
        ),
        (
            "ensio_rate_bytes_per_second",
            "",
            "Mean rate of the latest run while bytes move.",
            [
                ({"experiment": one.experiment, "op": op}, rate)
                for one, record in pairs
                for op, rate in record.rates_bytes_per_s.items()
            ],
        ),
        (
            "ensio_calls",
            "",
            "Calls of the latest run.",
            [
                ({"experiment": one.experiment, "layer": kind.layer, "op": kind.op}, kind.calls)
                for one, record in pairs
                for kind in record.kinds
            ],
        ),
        (
            "ensio_call_duration_quantile_seconds",
            "seconds",
            "Quantile of the durations of calls of the latest run.",
            [
                (
                    {"experiment": one.experiment, "layer": kind.layer, "op": kind.op, "level": str(level)},
                    value,
                )
                for one, record in pairs
                for kind in record.kinds
                for level in (0.5, 0.9, 1.0)
                if (value := _quantile(record, kind, level)) is not None
            ],
        ),
    ]
    lines = []
    for name, unit, help, samples in families:
        lines.append(f"# TYPE {name} gauge")
        if unit:
            lines.append(f"# UNIT {name} {unit}")
        lines.append(f"# HELP {name} {help}")
        for labels, value in samples:
            told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(f"{name}{{{told}}} {float(value)!r}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _quantile(record: RunRecord, kind: KindRecord, level: float) -> float | None:
    if level == 1.0:
        return float(kind.max_s) or None
    return quantile_s(record, (kind.layer, kind.op), level)


def _escaped(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return clean.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
