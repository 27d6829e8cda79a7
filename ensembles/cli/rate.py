"""``ensio rate``: show the aggregate data rate over time, and its plateaus."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn,
)
from ensembles.cli.wrapped import WIDTH, wrapped
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.structure.bursts import Burst
    from ensembles.structure.rates import Rates
    from ensembles.summaries.rate import RateCurve

NAME = "rate"
HELP = "show the aggregate data rate over time, and its plateaus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser, "print one JSON object, in SI units, with the whole curve")
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the rates."""
    from ensembles.passes.group import SummaryRequest
    from ensembles.passes.summary import ignoring_run
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.structure.bursts import MovedSpans
    from ensembles.structure.rates import find_plateaus
    from ensembles.summaries.eventcount import EventCount
    from ensembles.summaries.rate import RateCurve
    from ensembles.summaries.runtotals import DIRECTIONS

    run = open_run(args, args.run)
    if run.mode in ("profile", "tail"):
        raise EnsioError(
            f"{args.run} {run.how_it_was_recorded}: use ensio info for the totals, or {run.how_to_keep_calls}"
        )
    selection = selection_from_args(args).for_run(run)
    wanted = {"curve": RateCurve, "spans": MovedSpans}
    found = run.summarize(
        {name: SummaryRequest(ignoring_run(kind)) for name, kind in wanted.items()}, selection=selection
    )
    curve, spans = found["curve"], found["spans"]
    if selection.ops is not None and not set(selection.ops) & set(DIRECTIONS):
        raise EnsioError("only reads and writes have a data rate: select these, or leave out --op")
    if not any(map(curve.active.calls, DIRECTIONS)):
        refuse_nothing(run, selection, run.summarize(ignoring_run(EventCount), selection=selection).events)
    rates = [find_plateaus(curve, op) for op in DIRECTIONS if selection.ops is None or op in selection.ops]
    bursts = {entry.op: spans.bursts(entry.op, entry.cell_s) for entry in rates}
    if args.json:
        result = {
            "run": run.path,
            "rates": [entry.to_json() | _bursts(bursts[entry.op]) for entry in rates],
            "curve": _curve(curve),
            "complete": not run.notes,
            "notes": run.notes,
        }
        print(json.dumps(result, indent=2))
    else:
        print("\n\n".join(_text(entry) + _bursts_text(bursts[entry.op]) for entry in rates))
    for note in run.notes:
        warn(f"note: {note}")
    return 0


def _bursts(bursts: list[Burst] | None) -> dict[str, Any]:
    """Return what JSON says of the bursts of a direction; None: there were too many calls to find them."""
    if bursts is None:
        return {"bursts": None, "burst_median_bytes_per_s": None, "burst_fastest": None}
    rates = sorted(burst.bytes_per_s for burst in bursts)
    fastest = max(bursts, key=lambda burst: burst.bytes_per_s, default=None)
    return {
        "bursts": [burst.to_json() for burst in bursts],
        "burst_median_bytes_per_s": rates[len(rates) // 2] if rates else None,
        "burst_fastest": None if fastest is None else fastest.to_json(),
    }


def _bursts_text(bursts: list[Burst] | None) -> str:
    from ensembles.model.units import bytes_text, count_text

    if not bursts:
        return ""
    found = _bursts(bursts)
    fastest = found["burst_fastest"]
    rate = f"{bytes_text(fastest['bytes_per_s'])}/s from {fastest['from_s']:.3f} to {fastest['to_s']:.3f} s"
    if len(bursts) == 1:
        return f"\n\n1 burst from first to last call: {rate}"
    median = f"{bytes_text(found['burst_median_bytes_per_s'])}/s"
    bursts_text = f"{count_text(len(bursts), 'burst')} with at least 1 % of the bytes"
    return "\n\n" + wrapped(f"{bursts_text}: median {median}, fastest {rate}", indent="  ")


def _curve(curve: RateCurve) -> dict[str, Any]:
    from ensembles.summaries.runtotals import DIRECTIONS

    edges_s = curve.edges_ns * 1e-9
    return {
        "from_s": float(edges_s[0]) if len(edges_s) else None,
        "cell_s": curve.cell_ns * 1e-9,
        **{f"{op}_bytes_per_s": curve.rate_bytes_per_s(op).tolist() for op in DIRECTIONS},
    }


def _text(rates: Rates) -> str:
    from ensembles.cli.table import table_text
    from ensembles.model.units import bytes_text, count_text, seconds_text
    from ensembles.structure.rates import LEAST_CALLS

    if not rates.bytes:
        return f"{rates.op}: no bytes"

    def rate_text(value: float) -> str:
        return f"{bytes_text(value)}/s"

    head = wrapped(
        f"{rates.op}: {bytes_text(rates.bytes)} over {seconds_text(rates.active_s)} of active I/O "
        f"({rate_text(rates.mean_bytes_per_s)} mean, {rate_text(rates.peak_bytes_per_s)} peak, "
        f"{seconds_text(rates.cell_s)} window)",
        indent="  ",
    )
    rows = [
        [
            f"{plateau.from_s:.3f}",
            f"{plateau.to_s:.3f}",
            seconds_text(plateau.time_s),
            rate_text(plateau.bytes_per_s),
            f"{rate_text(plateau.low_bytes_per_s)} – {rate_text(plateau.high_bytes_per_s)}",
            bytes_text(plateau.bytes),
            f"{100 * plateau.share:.0f} %",
        ]
        for plateau in rates.plateaus
    ]
    if not rows:
        none = f"No plateau: nowhere do {LEAST_CALLS} calls keep one rate and move 1 % of the bytes."
        return f"{head}\n\n{wrapped(none)}"
    headers = ["from (s)", "to (s)", "time", "rate", "p10 – p90 of the rate", "bytes", "share"]
    rest = rates.share_outside
    table = table_text(headers, rows, left=0)
    if table.index("\n") > WIDTH:  # the time follows from its ends
        table = table_text([*headers[:2], *headers[3:]], [[*row[:2], *row[3:]] for row in rows], left=0)
    more = f"; {100 * rest:.0f} % of the bytes moved outside of plateaus" if rest >= 0.005 else ""
    return f"{head}\n\n{table}\n\n{count_text(len(rows), 'plateau')}{more}"
