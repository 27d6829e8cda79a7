"""``ensio phases``: list the phases of a run, and the time that tasks are idle in each."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn,
    warn_of,
)

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.structure.phases.critical_path import CriticalIo
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.idle import IdleTime
    from ensembles.structure.phases.inner_waits import InnerWaits
    from ensembles.structure.phases.table import PhaseTable, PhaseTotals

NAME = "phases"
HELP = "list the phases of a run: time, bytes, idle time of tasks, slowest rank"

ROWS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--by",
        choices=("named", "barriers", "steps"),
        help="source of the phases: names that the program sets, barriers, or steps of I/O separated by gaps "
        "(default: the first of these that the run has)",
    )
    add_limit(parser, "phases", ROWS)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the phases."""
    from ensembles.cli.phases_text import phases_text
    from ensembles.passes.group import SummaryRequest
    from ensembles.passes.summary import ignoring_run
    from ensembles.run.late_calls import with_late_calls
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.structure.collective_steps import step_table
    from ensembles.structure.late_entry import late_of_run
    from ensembles.structure.phases.critical_path import CriticalIo
    from ensembles.structure.phases.detect import detect_phases
    from ensembles.structure.phases.idle import idle_time
    from ensembles.structure.phases.inner_waits import InnerWaits, waiting_inside
    from ensembles.structure.phases.table import PhaseTable
    from ensembles.structure.phases.waiting import ONLY_FAILED, with_known_idle, without_idle
    from ensembles.summaries.collective_entries import CollectiveEntries
    from ensembles.summaries.collective_steps import CollectiveSteps
    from ensembles.summaries.collective_time import CollectiveTime

    selection = selection_from_args(args)
    run = open_run(args, args.run)
    phases = detect_phases(run, args.by)
    wanted = replace(selection, phases=None).for_run(run)
    found = run.summarize(
        {
            "table": SummaryRequest(partial(_table_of, phases), PhaseTable.columns),
            "collective": SummaryRequest(ignoring_run(CollectiveTime)),
            "steps": SummaryRequest(ignoring_run(CollectiveSteps)),
            "io": SummaryRequest(partial(_io_of, phases), CriticalIo.columns),
            "entries": SummaryRequest(ignoring_run(CollectiveEntries), CollectiveEntries.columns),
            "waits": SummaryRequest(partial(_waits_of, phases), InnerWaits.columns),
        },
        selection=wanted,
    )
    table = found["table"]
    totals = [entry for entry in table.totals() if within(entry.phase, selection.phases)]
    only_failed = selection.failed or selection.errors is not None
    totals = without_idle(totals) if only_failed else with_known_idle(run, phases, totals)
    totals = totals if only_failed else with_late_calls(run, phases, totals, wanted)
    refuse_nothing(run, selection, len(totals) + (0 if selection.phases else table.outside))
    is_whole = not run.info.partial
    has_waits = is_whole and not selection.phases and not only_failed
    collective = found["collective"].to_json() if has_waits else None
    # Of some calls only, the steps of collective calls and waits are not known.
    has_all = is_whole and _is_whole(selection)
    steps = step_table(found["steps"], run.info.clock_error_ns, run.info.crowded_text) if has_all else None
    idle = idle_time(totals, run.tasks, run.length_s)
    result = _result(run, phases, totals, table.outside, collective, bool(selection.phases), idle)
    if only_failed:
        result["why_no_idle"] = ONLY_FAILED
    result["collective_steps"] = None if steps is None else steps.to_json()
    if has_all:
        enters = late_of_run(found["entries"], found["io"], run)
        if enters is not None:
            result["late_entry"] = enters.to_json()
    if has_all:
        inside = waiting_inside(run, phases, totals, found["waits"], found["io"])
        if inside is not None:
            result["waiting_inside"] = inside.to_json()
    result["without_io"] = phases.steps_without_io() if _is_whole(selection) else None
    if phases.names and has_all:
        present = {entry.phase for entry in totals}
        missing = [number for number in range(1, phases.count + 1) if number not in present]
        if missing:
            result["phases_without_calls"] = missing
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        layers = run.info.environment.get("ENSIO_LAYERS", "").split(",")
        print(phases_text(phases, totals, args.limit, result, idle, with_messages="mpimsg" in layers))
        if table.outside and selection.phases is None:
            warn(f"note: {table.outside:,} calls are outside all phases")
    warn_of(run.notes)
    return 0


def _is_whole(selection: Selection) -> bool:
    """Whether no filter is given."""
    return selection == type(selection)()


def _table_of(phases: Phases, _: Run) -> PhaseTable:
    from ensembles.structure.phases.table import PhaseTable

    return PhaseTable(phases)


def _io_of(phases: Phases, _: Run) -> CriticalIo:
    from ensembles.structure.phases.critical_path import CriticalIo

    return CriticalIo(phases)


def _waits_of(phases: Phases, _: Run) -> InnerWaits:
    from ensembles.structure.phases.inner_waits import InnerWaits

    return InnerWaits(phases)


def within(number: int, ranges: tuple[tuple[int, int], ...] | None) -> bool:
    """Whether a number lies in one of these ranges, both ends included; None contains every number."""
    return ranges is None or any(low <= number <= high for low, high in ranges)


def _result(
    run: Run,
    phases: Phases,
    totals: list[PhaseTotals],
    outside: int,
    collective: dict[str, float] | None,
    are_chosen: bool,
    idle: IdleTime,
) -> dict[str, Any]:
    from ensembles.cli.phases_text import without_data

    rows = [entry.to_json() for entry in totals]
    stretches = [] if are_chosen else without_data(totals)
    imbalance = idle.to_json()
    for each in (*rows, *stretches, imbalance):
        each |= {key: None for key in imbalance if key in each and each[key] != each[key]}  # NaN
    return {
        "run": run.path,
        "rule": phases.rule,
        "confidence": float(phases.confidence),
        "sentence": phases.sentence,
        "count": phases.count,
        "tasks": run.tasks,
        "run_s": idle.run_s,
        "phases": rows,
        "without_data": stretches,
        **imbalance,
        "collective": collective,
        "crowded": run.info.crowded_text,
        "calls_outside": outside,
        "complete": not run.notes,
        "notes": run.notes,
    }
