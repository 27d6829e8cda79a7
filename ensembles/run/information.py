"""What ``ensio info`` says of a run: the numbers of its text and of its JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.layers import LayerTimes
    from ensembles.summaries.regiontimes import RegionTimes
    from ensembles.summaries.runtotals import RunTotals
    from ensembles.summaries.sizes import SizeTable

_NON_BLOCKING = ("MPI_File_iread", "MPI_File_iwrite", "aio_read", "aio_write")
_NS_PER_S = 1e9


def collect_information(run: Run) -> dict[str, Any]:
    """Collect what ``ensio info --json`` prints.

    The numbers come from one pass over the events or, if these are not all calls, from the summary that the
    recorder kept.

    Parameters
    ----------
    run : Run

    Returns
    -------
    dict
        Plain values for JSON: times in seconds (keys ending in ``_s``), sizes in bytes.

    Raises
    ------
    EnsioError
        A file of the run cannot be read.
    """
    found = _from_events(run) if run.has_all_events else _from_summary(run)
    table, totals, sizes = found.table, found.totals, found.sizes
    unseen = _unseen(run, found)
    notes = run.notes + unseen + _whole_requests(run, table, totals.io_time_ns)
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
        "complete": not run.notes and not unseen,
        "notes": notes,
        "tasks": run.tasks,
        "threads": run.threads,
        "processes": len(run.processes),
        "events": found.events,
        "recorded_calls": table.events,
        "summed_calls": found.summed,
        "dropped_events": run.dropped_events,
        "dropped_events_by_reason": run.dropped_by_reason,
        "lost_calls": run.lost_calls,
        "calls_on_other_paths": run.calls_on_other_paths,
        "excluded_calls": run.excluded_calls,
        "files": len(table.files),
        "span_s": table.span_ns / _NS_PER_S,
        "io_time_s": totals.io_time_ns / _NS_PER_S,
        **_flights(run),
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
        **_surroundings(run),
    }


def _whole_requests(run: Run, table: CallTable, io_time_ns: int) -> list[str]:
    """Say so where the durations of requests are those of their flights, and add up to more than there is."""
    names = sorted({call.name for call in table.totals if call.name.startswith(_NON_BLOCKING)})
    if run.flights or not names or io_time_ns <= table.span_ns * max(run.threads, 1):
        return []
    return [
        f"the durations of non-blocking requests ({', '.join(names[:3])}) last until their completion, as an "
        "older recorder or another tool stored them: times in I/O include what was hidden behind other work"
    ]


def _unseen(run: Run, found: _RunTotals) -> list[str]:
    from ensembles.structure.unseen import unseen_sentence

    if run.environment.get("ENSIO_LAYERS"):
        return []
    sentence = unseen_sentence(
        run.unseen_io,
        calls=sum(totals.count for call, totals in found.table.totals.items() if call.op != "wait"),
        read=found.totals.bytes_read,
        written=found.totals.bytes_written,
        excluded_calls=run.excluded_calls,
        nodes=len(run.hosts),
    )
    return [sentence] if sentence else []


def _flights(run: Run) -> dict[str, Any]:
    from ensembles.model.flights import sum_of_flights

    whole = sum_of_flights(run.flights.values())
    by_operation = {
        name: {
            "requests": sums.requests,
            "flight_s": sums.flight_ns / _NS_PER_S,
            "hidden_s": sums.hidden_ns / _NS_PER_S,
            "hidden_share": sums.hidden_share,
            "wait_s": sums.wait_ns / _NS_PER_S,
        }
        for name, sums in run.flights.items()
    }
    return {
        "flight_s": whole.flight_ns / _NS_PER_S,
        "hidden_share": whole.hidden_share,
        "non_blocking": by_operation,
    }


@dataclass(slots=True)
class _RunTotals:
    """Totals of all calls, and the number of them that are events."""

    table: CallTable
    totals: RunTotals
    sizes: SizeTable
    size_classes: dict[str, list[tuple[int, int, int]]]
    regions: RegionTimes
    events: int
    durations_known: bool = True
    summed: int = 0


def _from_events(run: Run) -> _RunTotals:
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
    from ensembles.summaries.from_cells import add_summed_calls

    found = run.summarize(sums).summaries
    events, summed = found["table"].events, 0
    if run.summed_calls:
        summed = add_summed_calls(found["table"], found["totals"], run.summary, run.summed_calls)
    return _RunTotals(size_classes={}, events=events, summed=summed, **found)


def _region_times(run: Run) -> RegionTimes:
    from ensembles.summaries.regiontimes import RegionTimes

    return RegionTimes(run.regions)


def _from_summary(run: Run) -> _RunTotals:
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.eventcount import EventCount
    from ensembles.summaries.from_cells import sizes_from_cells, table_from_cells, totals_from_cells

    summary = run.summary
    sizes, classes = sizes_from_cells(summary)
    events = run.summarize(ignoring_run(EventCount)).events
    return _RunTotals(
        table_from_cells(summary, run.files),
        totals_from_cells(summary),
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
    """Return the file systems of the accessed files, the one with the most files first."""
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
    """Return the stripings of the files, the most frequent first."""
    stripings = Counter(
        (striping.stripe_count, striping.stripe_bytes)
        for striping in map(run.striping_of, paths)
        if striping is not None
    )
    return [
        {"stripe_count": count, "stripe_bytes": size, "files": files}
        for (count, size), files in stripings.most_common()
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
    """Return the regions; their I/O time is known only if all calls are events."""
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


def _surroundings(run: Run) -> dict[str, Any]:
    """Return the totals of the samples of the kernel's counters; nothing if there are none."""
    from ensembles.structure.surroundings import summarize_surroundings

    totals = summarize_surroundings(run.surroundings())
    return {} if totals is None else {"surroundings": {**asdict(totals), "is_notable": totals.is_notable}}


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
