"""``ensio rate``: show the aggregate data rate over time, and its plateaus."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn,
    warn_of,
)
from ensembles.model.units import share_text
from ensembles.model.wrapped import WIDTH, wrapped

if TYPE_CHECKING:
    from ensembles.run.rates import RunRates
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.structure.rates import Rates

NAME = "rate"
HELP = "show the aggregate data rate over time, and its plateaus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser, "print one JSON object, in SI units, with the whole curve")
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the data rates."""
    from ensembles.run.rates import compute_rates

    run = open_run(args, args.run)
    selection = selection_from_args(args)
    found = compute_rates(run, selection)
    if args.json:
        print(json.dumps(found.to_json() | {"complete": not run.notes, "notes": run.notes}, indent=2))
    else:
        print("\n\n".join(_text(entry) + _bursts_text(found, entry.op) for entry in found.rates))
    warn_of(run.notes)
    if not any(entry.bytes for entry in found.rates):
        _tell_of_inner_calls(run, selection)
    return 0


def _tell_of_inner_calls(run: Run, selection: Selection) -> None:
    """Say where the bytes of the selected calls are, if all of them are inside other calls."""
    from ensembles.model.units import bytes_text
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.calltable import CallTable

    table = run.summarize(ignoring_run(CallTable), selection=selection.for_run(run))
    moved = sum(totals.bytes for call, totals in table.totals.items() if call.op in ("read", "write"))
    if moved:
        warn(
            f"note: these calls moved {bytes_text(moved)} inside calls of other layers, and a rate counts "
            "the outermost calls: leave out the filter, or use viz.rate(run.select(...)) in Python"
        )


def _bursts_text(rates: RunRates, op: str) -> str:
    from ensembles.model.units import bytes_text, count_text, seconds_text

    bursts = rates.bursts[op]
    if not bursts:
        return ""
    found = rates.bursts_json(op)
    fastest = found["burst_fastest"]
    time = seconds_text(fastest["time_s"])
    rate = f"{bytes_text(fastest['bytes_per_s'])}/s for {time} from {fastest['from_s']:.3f} s"
    if len(bursts) == 1:
        return f"\n\n1 burst from first to last call: {rate}"
    median = f"{bytes_text(found['burst_median_bytes_per_s'])}/s"
    bursts_text = f"{count_text(len(bursts), 'burst')} with at least 1 % of the bytes"
    return "\n\n" + wrapped(f"{bursts_text}: median {median}, fastest {rate}", indent="  ")


def _text(rates: Rates) -> str:
    from ensembles.model.table import table_text
    from ensembles.model.units import bytes_text, count_text, seconds_text
    from ensembles.structure.rates import LEAST_CALLS

    if not rates.bytes:
        return f"{rates.op}: no bytes"

    def rate_text(value: float) -> str:
        return f"{bytes_text(value)}/s"

    mean, best = rate_text(rates.mean_bytes_per_s), rate_text(rates.window_bytes_per_s)
    cell = seconds_text(rates.cell_s)
    # Where calls are shorter than a cell, no cell shows the rate at which they move bytes.
    shows_peak = rates.window_bytes_per_s >= rates.mean_bytes_per_s
    peak = f", {best} peak, {cell} window" if shows_peak else f"; {best} in the best {cell}, pauses included"
    head = wrapped(
        f"{rates.op}: {bytes_text(rates.bytes)} over {seconds_text(rates.active_s)} of active I/O "
        f"({mean} mean{peak})",
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
            share_text(plateau.share),
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
    more = f"; {share_text(rest)} of the bytes moved outside of plateaus" if rest >= 0.005 else ""
    return f"{head}\n\n{table}\n\n{count_text(len(rows), 'plateau')}{more}"
