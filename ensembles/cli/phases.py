"""``ensio phases``: list the phases of a run, and the time lost to load imbalance in each."""

from __future__ import annotations

import argparse
import json
import os
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
)

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.table import PhaseTable

NAME = "phases"
HELP = "list the phases of a run: time, bytes, time lost to load imbalance, slowest rank"

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
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.structure.phases.detect import detect_phases

    selection = selection_from_args(args)
    run = open_run(args, args.run)
    phases = detect_phases(run, args.by)
    wanted = replace(selection, phases=None).for_run(run)
    table = run.summarize(partial(_table_of, phases), selection=wanted)
    totals = [entry for entry in table.totals() if within(entry.phase, selection.phases)]
    refuse_nothing(run, selection, len(totals) + (0 if selection.phases else table.outside))
    if args.json:
        print(json.dumps(_result(run.path, phases, totals, table.outside, run.notes), indent=2))
    else:
        print(_text(phases, totals, args.limit))
        if table.outside and selection.phases is None:
            warn(f"note: {table.outside:,} calls are outside all phases")
    for note in run.notes:
        warn(f"note: {note}")
    return 0


def _table_of(phases: Phases, _: Run) -> PhaseTable:
    from ensembles.structure.phases.table import PhaseTable

    return PhaseTable(phases)


def within(number: int, ranges: tuple[tuple[int, int], ...] | None) -> bool:
    """Whether a number lies in one of these ranges, both ends included; None contains every number."""
    return ranges is None or any(low <= number <= high for low, high in ranges)


def _result(path: str, phases: Phases, totals: list[Any], outside: int, notes: list[str]) -> dict[str, Any]:
    return {
        "run": path,
        "rule": phases.rule,
        "confidence": float(phases.confidence),
        "sentence": phases.sentence,
        "count": phases.count,
        "phases": [entry.to_json() for entry in totals],
        **_imbalance(totals),
        "calls_outside": outside,
        "complete": not notes,
        "notes": notes,
    }


def _imbalance(totals: list[Any]) -> dict[str, Any]:
    """Add up the time lost to load imbalance, and compute its share of the time of the tasks."""
    lost_s = float(sum(entry.lost_s for entry in totals))
    whole_s = sum(entry.time_s * entry.tasks for entry in totals)
    return {"lost_s": lost_s, "lost_share": lost_s / whole_s if whole_s else None}


def _text(phases: Phases, totals: list[Any], limit: int) -> str:
    from tabulate import tabulate

    from ensembles.model.sanitize_text import sanitize_text
    from ensembles.model.units import count_text, seconds_text

    head = f"{count_text(phases.count, 'phase')}: {phases.sentence}"
    if not totals:
        return head
    lost = _imbalance(totals)
    share = f", {100 * lost['lost_share']:.0f} % of task time" if lost["lost_share"] is not None else ""
    doubt = "" if phases.confidence else "; an upper bound, because tasks may not wait for each other"
    shown = totals[:limit]
    named = any(entry.name for entry in totals)
    rows = []
    for entry in shown:
        last = entry.last_call
        on = f" on {sanitize_text(os.path.basename(last.file))}" if last.file else ""
        rows.append(
            [
                entry.phase,
                *([sanitize_text(entry.name or "")] if named else []),
                f"{entry.start_s:.3f}",
                seconds_text(entry.time_s),
                f"{entry.tasks:,}",
                f"{entry.calls:,}",
                _moved_text(entry),
                f"{seconds_text(entry.lost_s)} ({100 * entry.lost_share:.0f} %)",
                f"rank {entry.slowest_task}: {last.call}, {seconds_text(last.duration_s)}{on}",
            ]
        )
    headers = ["phase", *(["name"] if named else []), "from (s)", "time", "tasks", "calls", "moved"]
    headers += ["imbalance", "slowest rank: last call"]
    parts = [head]
    if rows:
        align = ["right", *(["left"] if named else []), *["right"] * 4, "left", "right", "left"]
        parts.append(tabulate(rows, headers, disable_numparse=True, colalign=align))
    if len(totals) > limit:
        parts.append(f"{len(totals) - limit:,} more phases are not shown: raise --limit to see them")
    parts.append(
        "Time lost to load imbalance (idle from a task's last call of a phase to the last call of all):\n"
        f"{seconds_text(lost['lost_s'])} summed over tasks{share}{doubt}."
    )
    return "\n\n".join(parts)


def _moved_text(entry: Any) -> str:
    from ensembles.model.units import bytes_text

    moved = ((entry.bytes_read, "read"), (entry.bytes_written, "written"))
    return ", ".join(f"{bytes_text(count)} {how}" for count, how in moved if count)
