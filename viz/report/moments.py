"""Moments and quantiles of the call durations by function, as a table."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.events import Call
from ensembles.model.units import seconds_text, share_text
from ensembles.summaries.bins import RELATIVE_WIDTH
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.viz.common.data_for import all_data_for

_LEVELS = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class MomentsTable:
    """A table that a notebook displays as HTML."""

    headers: Sequence[str]  # Names of the columns
    rows: Sequence[Sequence[str]]  # The first cell of a row is its name; the others are numbers with units
    note: str = ""  # Sentence below the table, or ``""``

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(header)}</th>" for header in self.headers)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def moments(data: Any) -> MomentsTable:
    """Tabulate count, moments and quantiles of the call durations by function.

    The functions that took the most time come first. Quantiles are read from a histogram; their relative
    error is at most the width of a bin, 3.1 %.

    Examples
    --------
    >>> from ensembles.viz.report.moments import moments
    >>> table = moments(en.open("ensio-ior"))
    >>> [row[:2] for row in table.rows]
    [['pread', '160'], ['pwrite', '160'], ['open', '8'], ['close', '8']]
    """
    if isinstance(data, tuple):
        call_moments, histogram = data
    else:
        call_moments, histogram = all_data_for(data, CallMoments, LogHistogram)
    order = sorted(call_moments.moments.items(), key=lambda item: -item[1].n * item[1].mean_ns)
    return MomentsTable(
        ("call", "n", "mean", "std", "skewness", "excess kurtosis", "min", "median", "p95", "p99", "max"),
        [_row(call, found, histogram) for call, found in order],
        f"Median, p95 and p99 are read from a histogram: their relative error is at most "
        f"{share_text(RELATIVE_WIDTH, 1)}. Skewness and excess kurtosis have no unit; both are 0 for a "
        "normal distribution.",
    )


def _row(call: Call, found: Any, histogram: LogHistogram) -> list[str]:
    # A quantile interpolated in a bin may lie outside the range of the durations.
    quantiles_s = histogram.quantile_s(call, _LEVELS).clip(found.min_ns * 1e-9, found.max_ns * 1e-9)
    if found.n == 2:  # both are known
        quantiles_s = (found.min_ns + np.array(_LEVELS) * (found.max_ns - found.min_ns)) * 1e-9
    return [
        call.name,
        f"{found.n:,}",
        seconds_text(found.mean_ns * 1e-9),
        _or_dash(found.std_ns, seconds_text(found.std_ns * 1e-9) if found.n > 1 else ""),
        _or_dash(found.skewness, f"{found.skewness:z.2f}"),
        _or_dash(found.excess_kurtosis, f"{found.excess_kurtosis:z.2f}"),
        seconds_text(found.min_ns * 1e-9),
        *(seconds_text(value) for value in quantiles_s),
        seconds_text(found.max_ns * 1e-9),
    ]


def _or_dash(value: float, text: str) -> str:
    return "–" if math.isnan(value) else text
