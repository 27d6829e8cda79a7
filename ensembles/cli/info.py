"""``ensio info``: what ran, how long, what its calls add up to."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.cli.arguments import add_json, add_run
from ensembles.cli.scale import add_scale_arguments, open_run

if TYPE_CHECKING:
    from ensembles.run import Run
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.layers import LayerTimes
    from ensembles.summaries.regiontimes import RegionTimes
    from ensembles.summaries.runtotals import RunTotals
    from ensembles.summaries.sizes import SizeTable

NAME = "info"
HELP = "what ran, how long, a table of its calls, frequent sizes, lost events"

_NS_PER_S = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    add_json(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the information."""
    information = collect_information(open_run(args, args.run))
    if args.json:
        import json

        json.dump(information, sys.stdout, indent=2)
        print()
    else:
        from ensembles.cli.info_text import information_text

        print(information_text(information))
    return 0


def collect_information(run: Run) -> dict[str, Any]:
    """What ``ensio info --json`` prints: from one pass over the events, or where these are not all, from the
    summary that the recorder kept.

    Returns
    -------
    dict
        Times in seconds, sizes in bytes.
    """
    found = _from_events(run) if run.has_all_events else _from_summary(run)
    table, totals, sizes = found.table, found.totals, found.sizes
    return {
        "run": run.path,
        "program": run.program,
        "command": list(run.command),
        "hosts": run.hosts,
        "job": run.job,
        "user": run.user,
        "mpi_version": run.mpi_version,
        "libc_version": run.libc_version,
        "environment": run.environment,
        "simulated": run.simulated or None,
        "clock_error_s": run.clock_error_s,
        "filesystems": _filesystems(run, table.files),
        "start": run.start.isoformat(),
        "mode": run.mode,
        "durations_known": found.durations_known,
        "complete": not run.notes,
        "notes": run.notes,
        "tasks": run.tasks,
        "threads": run.threads,
        "processes": len(run.processes),
        "events": found.events,
        "recorded_calls": table.events,
        "dropped_events": run.dropped_events,
        "dropped_events_by_reason": run.dropped_by_reason,
        "lost_calls": run.lost_calls,
        "calls_on_other_paths": run.calls_on_other_paths,
        "excluded_calls": run.excluded_calls,
        "files": len(table.files),
        "span_s": table.span_ns / _NS_PER_S,
        "io_time_s": totals.io_time_ns / _NS_PER_S,
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "layers": _layers(totals.layers),
        "calls": _calls(table, totals.layers),
        "frequent_sizes": _frequent_sizes(sizes),
        "frequent_size_classes": _size_classes(found.size_classes),
        "uncertain_counts": sizes.uncertainty,
        "slowest_call": _slowest(table),
        "regions": _regions(found.regions, run.has_all_events),
        "file_facts": run.file_facts,
    }


@dataclass(slots=True)
class _Found:
    """What all calls add up to, and how many of them are there as events."""

    table: CallTable
    totals: RunTotals
    sizes: SizeTable
    size_classes: dict[str, list[tuple[int, int, int]]]
    regions: RegionTimes
    events: int
    durations_known: bool = True


def _from_events(run: Run) -> _Found:
    from ensembles.passes.group import SummaryRequest
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.runtotals import RunTotals
    from ensembles.summaries.sizes import SizeTable

    sums = {
        "table": SummaryRequest(ignoring_run(CallTable)),
        "totals": SummaryRequest(ignoring_run(RunTotals)),
        "sizes": SummaryRequest(ignoring_run(SizeTable)),
        "regions": SummaryRequest(_region_times),
    }
    found = run.summarize(sums).summaries
    return _Found(size_classes={}, events=found["table"].events, **found)


def _region_times(run: Run) -> RegionTimes:
    from ensembles.summaries.regiontimes import RegionTimes

    return RegionTimes(run.regions)


def _from_summary(run: Run) -> _Found:
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.eventcount import EventCount
    from ensembles.summaries.from_cells import sizes_of, table_of, totals_of

    summary = run.summary
    sizes, classes = sizes_of(summary)
    events = run.summarize(ignoring_run(EventCount)).events
    return _Found(
        table_of(summary, run.files),
        totals_of(summary),
        sizes,
        classes,
        _region_times(run),
        events,
        summary.durations_known,
    )


def _size_classes(classes: dict[str, list[tuple[int, int, int]]]) -> dict[str, Any]:
    return {
        layer: [{"low_bytes": low, "high_bytes": high, "count": count} for low, high, count in entries[:10]]
        for layer, entries in classes.items()
    }


def _filesystems(run: Run, files: set[str]) -> list[dict[str, Any]]:
    """Those on which the files lie that calls were about, the one with the most files first."""
    found: dict[Any, list[str]] = {}
    for path in files:
        mount = run.filesystem_of(path)
        if mount is not None:
            found.setdefault(mount, []).append(path)
    return [
        {
            "point": mount.point,
            "type": mount.type,
            "source": mount.source,
            "block_bytes": mount.block_bytes,
            "files": len(paths),
            "stripes": _stripes(run, paths),
        }
        for mount, paths in sorted(found.items(), key=lambda item: (-len(item[1]), item[0].point))
    ]


def _stripes(run: Run, paths: list[str]) -> list[dict[str, int]]:
    """How files are striped, the commonest way first."""
    ways = Counter(
        (striping.stripe_count, striping.stripe_bytes)
        for striping in map(run.striping_of, paths)
        if striping is not None
    )
    return [
        {"stripe_count": count, "stripe_bytes": size, "files": files}
        for (count, size), files in ways.most_common()
    ]


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
            "max_s": None if totals.max_ns < 0 else totals.max_ns / _NS_PER_S,
            "errors": totals.errors,
        }
    return calls


def _frequent_sizes(sizes: SizeTable) -> dict[str, Any]:
    return {
        layer: [{"bytes": size, "count": count} for size, count in sizes.frequent(layer)]
        for layer in sizes.layers
    }


def _regions(regions: RegionTimes, io_is_known: bool) -> list[dict[str, Any]]:
    """Which calls were made in a region is known of events only."""
    return [
        {
            "kind": totals.kind,
            "name": totals.name,
            "count": totals.count,
            "tasks": totals.tasks,
            "not_ended": totals.not_ended,
            "time_s": totals.time_ns / _NS_PER_S,
            "io_time_s": totals.io_time_ns / _NS_PER_S if io_is_known else None,
        }
        for totals in regions.totals
    ]


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
