"""The aggregate data rate over time, its plateaus and its bursts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import PlainAnswer
from ensembles.model.statement import Paragraph, Statement, Table
from ensembles.passes.summary import ignoring_run
from ensembles.run.rates import RunRates, compute_rates
from ensembles.structure.rates import LEAST_CALLS, Rates
from ensembles.summaries.calltable import CallTable

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

_LEAST_OUTSIDE = 0.005
_UNITS = {
    "from (s)": "moment",
    "to (s)": "moment",
    "time": "s",
    "rate": "bytes/s",
    "p10": "bytes/s",
    "p90": "bytes/s",
    "bytes": "bytes",
    "share": "share",
}


def answer_rate(run: Run, selection: Selection) -> PlainAnswer:
    """Compute the data rates of the selected calls; see `ensembles.run.rates.compute_rates`."""
    found = compute_rates(run, selection)
    parts = [part for entry in found.rates for part in _parts(found, entry)]
    if not any(entry.bytes for entry in found.rates):
        parts.append(tuple(_inner_calls(run, selection)))
    values = found.to_json() | {"complete": not run.notes, "notes": run.notes}
    return PlainAnswer("rate", tuple(parts), values, tuple(run.notes))


def _parts(found: RunRates, rates: Rates) -> Iterator[Table | Paragraph]:
    """Show the rates of one direction."""
    if not rates.bytes:
        yield (Statement("rate.none", {"op": rates.op}),)
        return
    mean, best = rates.mean_bytes_per_s, rates.window_bytes_per_s
    values: dict[str, Any] = {"op": rates.op, "bytes": rates.bytes, "active_s": rates.active_s}
    values |= {"mean": mean, "best": best, "window_s": rates.cell_s}
    # Where calls are shorter than a cell, no cell shows the rate at which they move bytes.
    yield (Statement("rate.mean", values | {"is_peak": best >= mean, "is_no_peak": best < mean}),)
    rows = [
        (
            plateau.from_s,
            plateau.to_s,
            plateau.time_s,
            plateau.bytes_per_s,
            plateau.low_bytes_per_s,
            plateau.high_bytes_per_s,
            plateau.bytes,
            plateau.share,
        )
        for plateau in rates.plateaus
    ]
    if rows:
        yield Table.of_rows("plateau", _UNITS, rows, narrower=[{"time": None}])  # it follows from its ends
        outside = rates.share_outside if rates.share_outside >= _LEAST_OUTSIDE else None
        yield (Statement("rate.plateaus", {"count": len(rows), "outside": outside}),)
    else:
        yield (Statement("rate.no_plateau", {"calls": LEAST_CALLS}),)
    bursts = found.bursts_json(rates.op)
    if bursts["bursts"]:
        fastest, count = bursts["burst_fastest"], len(bursts["bursts"])
        values = {
            "count": count,
            "median": bursts["burst_median_bytes_per_s"],
            "best": fastest["bytes_per_s"],
        }
        values |= {"best": fastest["bytes_per_s"], "time_s": fastest["time_s"], "from_s": fastest["from_s"]}
        yield (Statement("rate.bursts" if count > 1 else "rate.burst", values),)


def _inner_calls(run: Run, selection: Selection) -> Iterator[Statement]:
    """Say where the bytes of the selected calls are, if all of them are inside other calls."""
    table = run.summarize(ignoring_run(CallTable), selection=selection.for_run(run))
    moved = sum(totals.bytes for call, totals in table.totals.items() if call.op in ("read", "write"))
    if moved:
        yield Statement("rate.inner", {"bytes": moved})
