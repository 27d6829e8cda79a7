"""Data rates of a run: curve, plateaus and bursts of reads and of writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.model.units import bytes_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.structure.bursts import Burst, MovedSpans
from ensembles.structure.rates import Rates, find_plateaus
from ensembles.summaries.eventcount import EventCount
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS

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
    """Compute the data rates of the selected calls.

    Raises
    ------
    EnsioError
        Not every call is an event, or no read or write is selected.
    """
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
