"""The aggregate data rate over time, its plateaus and its bursts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import PlainAnswer
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.model.statement import Paragraph, Statement, Table
from ensembles.model.units import bytes_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.structure.rates import LEAST_CALLS, Burst, MovedSpans, Rates, find_plateaus
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS, EventCount

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


@dataclass(frozen=True)
class RunRates:
    """What `compute_rates` found: the numbers of ``ensio rate``.

    Attributes
    ----------
    path : str
        The run.
    rates : tuple of Rates
        Of each direction: bytes, active time, mean, peak and plateaus.
    bursts : dict of str to list of Burst or None
        By direction. None: there were too many calls to find them.
    curve : RateCurve
        Bytes by time.
    """

    path: str
    rates: tuple[Rates, ...]
    bursts: dict[str, list[Burst] | None]
    curve: RateCurve

    def __repr__(self) -> str:
        means = (f"{entry.op} {bytes_text(entry.mean_bytes_per_s)}/s" for entry in self.rates if entry.bytes)
        return f"Rates of {self.path} while data moved: {', '.join(means) or 'no bytes'}"

    def bursts_json(self, op: str) -> dict[str, Any]:
        """Return what JSON says of the bursts of a direction."""
        bursts = self.bursts[op]
        if bursts is None:
            return {"bursts": None, "burst_median_bytes_per_s": None, "burst_fastest": None}
        rates = sorted(burst.bytes_per_s for burst in bursts)
        fastest = max(bursts, key=lambda burst: burst.bytes_per_s, default=None)
        return {
            "bursts": [burst.to_json() for burst in bursts],
            "burst_median_bytes_per_s": rates[len(rates) // 2] if rates else None,
            "burst_fastest": None if fastest is None else fastest.to_json(),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``ensio rate --json`` that are about rates."""
        edges_s = self.curve.edges_ns * 1e-9
        return {
            "run": self.path,
            "rates": [entry.to_json() | self.bursts_json(entry.op) for entry in self.rates],
            "curve": {
                "from_s": float(edges_s[0]) if len(edges_s) else None,
                "cell_s": self.curve.cell_ns * 1e-9,
                **{f"{op}_bytes_per_s": self.curve.rate_bytes_per_s(op).tolist() for op in DIRECTIONS},
            },
        }


def compute_rates(run: Run, selection: Selection) -> RunRates:
    """Compute the data rates of the selected calls."""
    run.reading.need(
        Holds.UNBIASED_CALLS, "a data rate needs the times of all calls (ensio info has the totals)"
    )
    selection = selection.for_run(run)
    wanted = {"curve": RateCurve, "spans": MovedSpans}
    found = run.summarize(
        {name: SummaryRequest(ignoring_run(kind)) for name, kind in wanted.items()}, selection=selection
    )
    curve, spans = found["curve"], found["spans"]
    if selection.ops is not None and not set(selection.ops) & set(DIRECTIONS):
        raise EnsioError("only reads and writes have a data rate: select these, or leave out --op")
    if not any(map(curve.active.calls, DIRECTIONS)):
        refuse_nothing(run, selection, run.summarize(ignoring_run(EventCount), selection=selection).events)
    rates = tuple(
        find_plateaus(curve, op) for op in DIRECTIONS if selection.ops is None or op in selection.ops
    )
    return RunRates(
        run.path, rates, {entry.op: spans.bursts(entry.op, entry.cell_s) for entry in rates}, curve
    )


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
    """Compute the data rates of the selected calls; see `ensembles.answers.rate.compute_rates`."""
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
    # Where calls are shorter than a cell, no cell shows the rate at which they move bytes.
    values |= {"mean": mean, "peak": best if best >= mean else None, "window_s": rates.cell_s}
    yield (Statement("rate.mean", values),)
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
