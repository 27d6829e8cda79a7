"""What ``ensio info`` says of a run: the numbers of its text and of its JSON.

Where the files of a run lie: file systems, striping, and the hints of MPI-IO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ensembles.model.units import MOST_NAMED, NS_PER_S, count_text, size_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.failures import failed_calls_json
from ensembles.structure.counters import counters_json
from ensembles.structure.libraries import (
    collective_sentence,
    library_rows,
    library_sentences,
    recorder_cost_s,
    recorder_text,
    traffic_rows,
    traffic_sentences,
)
from ensembles.summaries.collective_steps import CollectiveTime
from ensembles.summaries.layer_traffic import LayerTraffic

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.failed_calls import FailedCalls
    from ensembles.summaries.regiontimes import RegionTimes
    from ensembles.summaries.runtotals import LayerTimes, RunTotals
    from ensembles.summaries.sizes import SizeTable


def collect_information(run: Run, sums: RunSums | None = None) -> dict[str, Any]:
    """Collect what ``ensio info --json`` prints, in one pass at most; `sums`: totals that are known."""
    found = sums or sums_of(run)
    table, totals, sizes = found.table, found.totals, found.sums["sizes"]
    unseen = run.unseen
    around = _surroundings(run)
    # Counters of another tool include calls that are not traced.
    io_s = max(totals.io_time_ns / NS_PER_S, run.info.counted_io_s)
    recorder_s = sum(recorder_cost_s(run.info, table.events, run.length_s)) / 2
    return {
        "run": run.path,
        "program": run.info.program,
        "programs": [
            {"program": name, "tasks": len(ranks), "first_rank": ranks[0]}
            for name, ranks in run.info.programs.items()
        ],
        "command": list(run.info.command),
        "hosts": run.info.hosts,
        "processors": run.info.processors,
        "oversubscribed": run.info.oversubscribed,
        "recorder": recorder_text(run.info, table.events, run.length_s),
        "job": run.info.job,
        "user": run.info.user,
        "mpi_version": run.info.mpi_version,
        "libc_version": run.info.libc_version,
        "environment": run.info.environment,
        "simulated": run.info.simulated or None,
        "clock_error_s": run.info.clock_error_s,
        "filesystems": filesystems_of(run, table.files),
        "hints": hints_of(run, table.files),
        "start": run.info.start and run.info.start.isoformat(),
        "mode": run.mode,
        "durations_known": table.durations_known,
        "complete": not run.notes,
        "notes": run.notes,
        "tasks": run.tasks,
        "threads": run.info.threads,
        "processes": len(run.info.processes),
        "events": found.events,
        "recorded_calls": table.events,
        "summed_calls": found.summed,
        "dropped_events": run.info.dropped_events,
        "dropped_events_by_reason": run.info.dropped_by_reason,
        "lost_calls": run.info.lost_calls,
        "calls_on_other_paths": run.info.calls_on_other_paths,
        "excluded_calls": run.info.excluded_calls,
        "files": len(table.files),
        "run_s": run.length_s,
        "span_s": table.span_ns / NS_PER_S,
        "io_time_s": io_s,
        **_headline(run, found),
        **({} if unseen is None else {"unseen": unseen.to_json()}),
        **({"lacks": run.reading.lacks} if run.reading.lacks else {}),
        **({"implausible": run.reading.implausible} if run.reading.implausible else {}),
        **_flights(run),
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "layers": _layers(totals.layers),
        **between_layers(found.sums, totals.layers, recorder_s),
        "calls": _calls(table, totals.layers, run.length_s * max(run.info.threads, 1), io_s),
        "failed_calls": _failed_calls(run, found.sums["failed"]),
        "frequent_sizes": _frequent_sizes(sizes),
        "frequent_size_classes": _size_classes(sizes.classes),
        "uncertain_counts": sizes.uncertainty,
        "slowest_call": _slowest(table),
        "regions": _regions(found.sums["regions"]),
        "file_facts": run.info.file_facts,
        **around,
        **counters_json(run.info),
    }


def _flights(run: Run) -> dict[str, Any]:
    from ensembles.model.flights import sum_of_flights

    whole = sum_of_flights(run.info.flights.values())
    by_operation = {
        name: {
            "requests": sums.requests,
            "flight_s": sums.flight_ns / NS_PER_S,
            "hidden_s": sums.hidden_ns / NS_PER_S,
            "hidden_share": sums.hidden_share,
            "wait_s": sums.wait_ns / NS_PER_S,
        }
        for name, sums in run.info.flights.items()
    }
    return {
        "flight_s": whole.flight_ns / NS_PER_S,
        "mean_flight_s": whole.flight_ns / whole.requests / NS_PER_S if whole.requests else None,
        "hidden_share": whole.hidden_share,
        "non_blocking": by_operation,
    }


@dataclass(slots=True)
class RunSums:
    """Totals of all calls."""

    # table, totals: Summaries of all calls
    table: CallTable
    totals: RunTotals
    sums: Mapping[str, Any]  # Those of `sums_requests`. None: what the record does not know.
    events: int  # Number of calls that are events
    # Number of calls that are in the totals by sums of the recorder, and not among the events
    summed: int = 0

    @property
    def without_event(self) -> int:
        """Number of calls of which the record should have events, and has none."""
        return self.table.events - self.events - self.summed


def _headline(run: Run, found: RunSums) -> dict[str, Any]:
    from ensembles.run.headline import TimeInIo, Transfer, counted_time_in_io, find_headline

    moved = {"read": found.totals.bytes_read, "write": found.totals.bytes_written}
    headline = find_headline(run, moved, found.sums)
    if run.reading.lacks or (run.unseen and run.unseen.hides_time):
        transfers = {
            op: Transfer(each.bytes) if run.reading.implausible else each
            for op, each in headline.transfers.items()
        }
        headline = replace(headline, transfers=transfers, time_in_io=TimeInIo())
    elif run.info.counted_io_s:
        headline = replace(headline, time_in_io=counted_time_in_io(run))
    return headline.to_json()


def _failed_calls(run: Run, failed: FailedCalls | None) -> list[dict[str, Any]] | None:
    """Return the failed calls by function and errno; None: not all calls are events."""
    return None if failed is None else failed_calls_json(failed, run.files)


def sums_requests(run: Run) -> dict[str, SummaryRequest]:
    """Return the requests for the summaries that `sums_from` takes."""
    from ensembles.run.headline import headline_requests
    from ensembles.summaries.calltable import CallTable
    from ensembles.summaries.failed_calls import FailedCalls
    from ensembles.summaries.ranktable import empty_ranks
    from ensembles.summaries.runtotals import EventCount, RunTotals
    from ensembles.summaries.sizes import SizeTable

    return {
        "events": SummaryRequest(ignoring_run(EventCount)),
        "table": SummaryRequest(ignoring_run(CallTable)),
        "totals": SummaryRequest(ignoring_run(RunTotals)),
        "sizes": SummaryRequest(ignoring_run(SizeTable)),
        "failed": SummaryRequest(ignoring_run(FailedCalls)),
        "regions": SummaryRequest(_region_times),
        **headline_requests(),
        **layer_requests(),
        **({"ranks": SummaryRequest(empty_ranks)} if run.reading.needs_pass_for_ranks else {}),
    }


def sums_from(run: Run, found: Mapping[str, Any]) -> RunSums:
    """Make the totals of a run."""
    from ensembles.summaries.from_cells import add_summed_calls

    run.reading.keep_ranks(found.get("ranks"))
    table, totals, summed = found["table"], found["totals"], 0
    # Without sums of the recorder there are no such calls, and making some from the events would be a pass.
    if run.info.summed_calls and run.reading.has_summary:
        summed = add_summed_calls(table, totals, run.summary, run.info.summed_calls)
    return RunSums(table, totals, found, found["events"].events, summed)


def _region_times(run: Run) -> RegionTimes:
    from ensembles.summaries.regiontimes import RegionTimes

    return RegionTimes(run.regions)


def sums_of(run: Run, selection: Selection | None = None) -> RunSums:
    """Compute the totals of a run, in one pass over its events or from the summary of its recorder.

    Of selected calls only, the run needs all events.
    """
    return sums_from(run, run.summarize(sums_requests(run), selection=selection).summaries)


def _size_classes(classes: dict[str, list[tuple[int, int, int]]]) -> dict[str, Any]:
    return {
        layer: [{"low_bytes": low, "high_bytes": high, "count": count} for low, high, count in entries[:10]]
        for layer, entries in classes.items()
    }


def _layers(layers: LayerTimes) -> dict[str, Any]:
    return {
        name: {
            "time_s": layer.time_ns / NS_PER_S,
            "exclusive_time_s": layer.exclusive_ns / NS_PER_S,
            "calls": layer.calls,
        }
        for name, layer in layers.layers.items()
    }


def _calls(table: CallTable, layers: LayerTimes, thread_s: float, io_s: float) -> dict[str, Any]:
    calls: dict[str, Any] = {}
    io_ns = max(
        io_s * NS_PER_S, sum(layers.exclusive_ns(call) for call in table.totals if not call.waits_for_tasks)
    )
    for call, totals in table.totals.items():
        is_io = not call.waits_for_tasks
        name = call.name if call.name not in calls else f"{call.layer}:{call.name}"
        calls[name] = {
            "layer": call.layer,
            "op": call.op,
            "count": totals.count,
            "bytes": totals.bytes,
            "time_s": totals.time_ns / NS_PER_S,
            "exclusive_time_s": layers.exclusive_ns(call) / NS_PER_S,
            "is_io": is_io,
            "io_share": layers.exclusive_ns(call) / io_ns if is_io and io_ns else None,
            "wait_share": None if is_io or not thread_s else layers.exclusive_ns(call) / NS_PER_S / thread_s,
            "mean_s": totals.time_ns / totals.count / NS_PER_S,
            "max_s": None if totals.max_ns < 0 else totals.max_ns / NS_PER_S,
            "errors": totals.errors,
        }
    return calls


def _frequent_sizes(sizes: SizeTable) -> dict[str, Any]:
    return {
        layer: [{"bytes": size, "count": count} for size, count in sizes.frequent(layer)]
        for layer in sizes.layers
    }


def _regions(regions: RegionTimes) -> list[dict[str, Any]]:
    return [
        {
            "kind": totals.kind,
            "name": totals.name,
            "count": totals.count,
            "tasks": totals.tasks,
            "not_ended": totals.not_ended,
            "time_s": totals.time_ns / NS_PER_S,
            "io_time_s": None if totals.io_time_ns is None else totals.io_time_ns / NS_PER_S,
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
        "start_s": slowest.start_ns / NS_PER_S,
        "duration_s": slowest.duration_ns / NS_PER_S,
        "bytes": slowest.bytes,
        "file": slowest.file,
    }


def layer_requests() -> dict[str, SummaryRequest]:
    """Return the requests for the summaries that `between_layers` takes."""
    return {
        "traffic": SummaryRequest(ignoring_run(LayerTraffic)),
        "collective": SummaryRequest(ignoring_run(CollectiveTime)),
    }


def between_layers(found: Mapping[str, Any], times: LayerTimes, recorder_s: float) -> dict[str, Any]:
    """Return what ``ensio info --json`` has of traffic between layers; None: not all calls are events.

    `found`: summaries of `layer_requests` by name; `recorder_s`: time of the recorder for each call.
    """
    if found["traffic"] is None:
        return {"layer_traffic": None, "read_inside": None, "in_libraries": None, "collective": None}
    return {
        "layer_traffic": traffic_rows(found["traffic"]),
        "read_inside": {name: sums.bytes for name, sums in found["traffic"].read_inside.items()},
        "in_libraries": library_rows(times, found["traffic"], recorder_s),
        "collective": found["collective"].to_json(),
    }


def layer_sentences(information: Mapping[str, Any]) -> list[str]:
    """Return what happens between the layers, in sentences without a full stop."""
    collective = collective_sentence(information["collective"])
    found = library_sentences(information["in_libraries"], ("mpiio",) if collective else ())
    found += [*traffic_sentences(information["layer_traffic"] or []), collective]
    return [text for text in found if text]


HINT = "hint."
"""Begin of the names of facts that are hints."""


def filesystems_of(run: Run, files: Collection[str]) -> list[dict[str, Any]]:
    """Return the file systems of the accessed files and their stripings, those with the most files first."""
    found: dict[Any, list[str]] = {}
    for path in files:
        mount = run.info.filesystem_of(path)
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
        for striping in map(run.info.striping_of, paths)
        if striping is not None
    )
    return [
        {"stripe_count": count, "stripe_bytes": size, "files": files}
        for (count, size), files in stripings.most_common()
    ]


def hints_of(run: Run, files: Collection[str]) -> list[dict[str, Any]]:
    """Return the hints of MPI-IO that were in force for the accessed files."""
    found = Counter(
        hints
        for path in files
        if (
            hints := tuple(
                sorted(
                    (name.removeprefix(HINT), value)
                    for name, value in run.info.file_facts.get(path, {}).items()
                    if name.startswith(HINT)
                )
            )
        )
    )
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [{"hints": dict(hints), "files": count} for hints, count in ordered]


def storage_lines(
    filesystems: Sequence[dict[str, Any]], hints: Sequence[dict[str, Any]], all_of_them: bool = False
) -> list[tuple[str, str]]:
    """Return sentences on file systems and hints, each with its label.

    `all_of_them`: a line for each file system and set of hints, with source, block size and every striping.
    Default: one line for the first file systems, and one for the first hints.
    """
    if all_of_them:
        return [("file system", _whole_text(system)) for system in filesystems] + [
            ("MPI-IO hints", _hints_text(entry)) for entry in hints
        ]
    lines = []
    shown = [_short_text(system) for system in filesystems[:MOST_NAMED]]
    if len(filesystems) > MOST_NAMED:
        shown.append(f"{len(filesystems) - MOST_NAMED} more")
    if shown:
        lines.append(("files on", " · ".join(shown)))
    if hints:
        more = f" · {count_text(len(hints) - 1, 'other set')} of hints" if len(hints) > 1 else ""
        lines.append(("hints", _hints_text(hints[0]) + more))
    return lines


def _short_text(system: dict[str, Any]) -> str:
    text = f"{system['type']} at {system['point']} ({count_text(system['files'], 'file')}"
    for striping in system["stripes"][:1]:
        text += f", {_striping_text(striping)}"
    return text + ")"


def _whole_text(system: dict[str, Any]) -> str:
    parts = [f"{system['type']} at {system['point']}", count_text(system["files"], "file")]
    if system["source"]:
        parts.insert(1, f"from {system['source']}")
    if system["block_bytes"]:
        parts.append(f"block size {size_text(system['block_bytes'])}")
    parts += [
        f"{_striping_text(striping)} ({count_text(striping['files'], 'file')})"
        for striping in system["stripes"]
    ]
    return ", ".join(parts)


def _striping_text(striping: dict[str, int]) -> str:
    count = "all" if striping["stripe_count"] < 0 else f"{striping['stripe_count']:,}"
    return f"stripe count {count}, stripe size {size_text(striping['stripe_bytes'])}"


def _hints_text(entry: dict[str, Any]) -> str:
    values = ", ".join(f"{name}={value}" for name, value in entry["hints"].items())
    return f"{values} ({count_text(entry['files'], 'file')})"
