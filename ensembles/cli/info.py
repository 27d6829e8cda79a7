"""``ensio info``: what ran, how long, what its calls add up to."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ensembles.cli.arguments import path_of

if TYPE_CHECKING:
    from ensembles.run import Run
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.layers import LayerTimes
    from ensembles.summaries.sizes import SizeTable

NAME = "info"
HELP = "what ran, how long, a table of its calls, frequent sizes, lost events"

_NS_PER_S = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", type=path_of("run"), help="run directory, spool or trace.h5")
    parser.add_argument("--json", action="store_true", help="one JSON object, in SI units")


def execute(args: argparse.Namespace) -> int:
    """Print the information."""
    import ensembles

    run = ensembles.open(args.run)
    information = collect_information(run)
    if args.json:
        import json

        json.dump(information, sys.stdout, indent=2)
        print()
    else:
        from ensembles.cli.info_text import information_text

        print(information_text(information))
    return 0


def collect_information(run: Run) -> dict[str, Any]:
    """What ``ensio info --json`` prints, from one pass over the events.

    Returns
    -------
    dict
        Times in seconds, sizes in bytes.
    """
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.runtotals import RunTotals
    from ensembles.summaries.sizes import SizeTable

    table, sizes, totals = CallTable(), SizeTable(), RunTotals()
    for chunk in run.chunks():
        for summary in (table, sizes, totals):
            summary.add(chunk)
    return {
        "run": run.path,
        "program": run.program,
        "command": list(run.command),
        "hosts": run.hosts,
        "job": run.job,
        "start": run.start.isoformat(),
        "mode": run.mode,
        "complete": not run.notes,
        "notes": run.notes,
        "tasks": run.tasks,
        "threads": run.threads,
        "processes": len(run.processes),
        "events": table.events,
        "dropped_events": run.dropped_events,
        "excluded_calls": run.excluded_calls,
        "files": len(table.files),
        "span_s": table.span_ns / _NS_PER_S,
        "io_time_s": totals.io_time_ns / _NS_PER_S,
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "layers": _layers(totals.layers),
        "calls": _calls(table, totals.layers),
        "frequent_sizes": _frequent_sizes(sizes),
        "uncertain_counts": sizes.uncertainty,
        "slowest_call": _slowest(table),
    }


def _layers(layers: LayerTimes) -> dict[str, Any]:
    return {
        name: {
            "time_s": layer.time_ns / _NS_PER_S,
            "exclusive_time_s": layer.exclusive_ns / _NS_PER_S,
            "calls": layer.calls,
        }
        for name, layer in layers.layers.items()
    }


def _calls(table: CallTable, layers: LayerTimes) -> dict[str, Any]:
    calls: dict[str, Any] = {}
    for call, totals in table.totals.items():
        name = call.name if call.name not in calls else f"{call.layer}:{call.name}"
        calls[name] = {
            "layer": call.layer,
            "op": call.op,
            "count": totals.count,
            "bytes": totals.bytes,
            "time_s": totals.time_ns / _NS_PER_S,
            "exclusive_time_s": layers.exclusive_ns(call) / _NS_PER_S,
            "max_s": totals.max_ns / _NS_PER_S,
            "errors": totals.errors,
        }
    return calls


def _frequent_sizes(sizes: SizeTable) -> dict[str, Any]:
    return {
        layer: [{"bytes": size, "count": count} for size, count in sizes.frequent(layer)]
        for layer in sizes.layers
    }


def _slowest(table: CallTable) -> dict[str, Any] | None:
    slowest = table.slowest
    if slowest is None:
        return None
    return {
        "call": slowest.call.name,
        "rank": slowest.rank,
        "start_s": slowest.start_ns / _NS_PER_S,
        "duration_s": slowest.duration_ns / _NS_PER_S,
        "bytes": slowest.bytes,
        "file": slowest.file,
    }
