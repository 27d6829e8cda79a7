"""``ensio ordinals``: show durations by call index, and their trend."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field, replace
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
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.structure.ordinals.ensembles import OrdinalEnsembles

NAME = "ordinals"
HELP = "show durations by call index (first, second, ... call of a task on a file) and their trend"

ROWS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--within",
        choices=("file", "phase"),
        default="file",
        help="count the calls of a task and operation on each file or in each phase (default: file)",
    )
    add_limit(parser, "ordinals", ROWS)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


@dataclass
class _OperationEnsembles:
    """The ensembles of one operation by ordinal, with notes."""

    op: str
    ensembles: OrdinalEnsembles
    notes: list[str] = field(default_factory=list)


def execute(args: argparse.Namespace) -> int:
    """Print the ordinals."""
    from ensembles.run.nothing_selected import refuse_nothing

    selection = selection_from_args(args)
    run = open_run(args, args.run)
    if run.has_all_events or run.keeps_all_calls:
        found = _from_events(run, selection, args.within)
    else:
        found = _from_summary(run, selection, args.within)
    trend = found.ensembles.trend()
    totals = found.ensembles.totals()
    refuse_nothing(run, selection, len(totals) + found.ensembles.n_unknown)
    if args.json:
        result = {
            "run": run.path,
            "op": found.op,
            "within": args.within,
            "per": "MiB" if args.per_byte else "call",
            "exact_quantiles": found.ensembles.exact,
            "ordinals": [entry.to_json() for entry in totals],
            "trend": trend.to_json(),
            "calls_of_unknown_ordinal": found.ensembles.n_unknown,
            "complete": not run.notes,
            "notes": [*run.notes, *found.notes],
        }
        print(json.dumps(result, indent=2))
    else:
        print(_text(found, totals, str(trend), args.limit, args.within, args.per_byte))
    for note in (*run.notes, *found.notes):
        warn(f"note: {note}")
    return 0


def _from_events(run: Run, selection: Selection, within: str) -> _OperationEnsembles:
    from ensembles.structure.ordinals.detect import OrdinalSummary
    from ensembles.structure.phases.detect import detect_phases

    in_phases = within == "phase" or selection.phases is not None
    phases = detect_phases(run) if in_phases else None
    chosen = replace(selection, phases=None, ordinals=None).for_run(run)
    op, nested, notes = _operation(run, chosen)
    layers, left_out = _main_layer(run, chosen, op)
    chosen, selection = replace(chosen, layers=layers), replace(selection, layers=layers)
    notes += left_out
    if within == "phase":
        if phases is None or phases.count == 0:
            raise EnsioError(f"{run.path} contains no I/O, hence no phases: leave out --within phase")
        notes.append(f"{phases.count:,} phases: {phases.sentence}")
    make = partial(OrdinalSummary, op, chosen, selection, nested, phases, within == "phase")
    return _OperationEnsembles(op, run.summarize(make).ensembles, notes)


def _operation(run: Run, chosen: Selection) -> tuple[str, bool, list[str]]:
    """Return the operation, whether only outermost calls count, and notes about both."""
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.structure.ordinals.detect import Operations

    found = run.summarize(Operations, selection=chosen)
    if not found.time_ns:
        refuse_nothing(run, chosen, 0)
    op = _chosen_op(chosen, found.time_ns)
    several = sorted(found.layers.get(op, ()))
    if len(several) > 1 and found.nested[op]:
        note = (
            f"calls of {len(several)} layers ({', '.join(several)}) are nested: only the outermost are "
            "counted; select a layer with --layer"
        )
        return op, True, [note]
    return op, False, []


def _main_layer(run: Run, chosen: Selection, op: str) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the layer whose outermost calls of an operation moved most bytes, and a note on the others.

    Calls of several libraries do not form a sequence: one writes data, another a log.
    """
    from ensembles.ensemble.main_group import call_groups
    from ensembles.model.units import count_text

    if chosen.layers is not None or chosen.calls is not None:
        return chosen.layers, []
    calls: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for group in call_groups(run, replace(chosen, ops=(op,))):
        calls[group.layer] += group.calls
        moved[group.layer] += group.bytes
    if len(calls) < 2:
        return None, []
    noun = op if op in ("read", "write") else f"{op} call"
    main = max(calls, key=lambda layer: (moved[layer], calls[layer]))
    others = [
        f"{count_text(count, noun)}, --layer {layer}" for layer, count in calls.most_common() if layer != main
    ]
    whole = moved.total()
    share = f", which moved {100 * moved[main] / whole:.3g} % of the bytes" if whole else ""
    taken = f"taken are {count_text(calls[main], noun)} of {main}{share}; left out: {'; '.join(others)}"
    return (main,), [taken]


def _chosen_op(selection: Selection, time: Counter[str]) -> str:
    """Return the selected operation or, of reads and writes, the one that took the most time."""
    if selection.ops is not None:
        if len(set(selection.ops)) > 1:
            raise EnsioError("ordinals count the calls of one operation: name one with --op")
        return selection.ops[0]
    transfers = {op: time[op] for op in ("read", "write") if op in time} or dict(time)
    if not transfers:
        raise EnsioError("the selection contains no calls: change the filters")
    return max(transfers, key=lambda op: transfers[op])


def _from_summary(run: Run, selection: Selection, within: str) -> _OperationEnsembles:
    import numpy as np

    from ensembles.ensemble.from_summary import refuse_sums
    from ensembles.structure.ordinals.ensembles import OrdinalEnsembles

    refuse_sums(run)
    asked = {
        "--file": selection.file_globs,
        "--rank": selection.ranks,
        "--size": selection.sizes,
        "--time": selection.times_s,
        "--region": selection.regions,
        "--site": selection.sites,
        "--phase": selection.phases,
        "--per-byte": selection.per_byte or None,
        "--within phase": within == "phase" or None,
    }
    named = [name for name, value in asked.items() if value is not None]
    if named:
        raise EnsioError(
            f"{run.path} does not have every call as an event, and its summary does not support "
            f"{' and '.join(named)}: leave that out, or {run.how_to_keep_calls}"
        )
    selection = selection.for_run(run) if selection.ordinals is None else replace(selection, ordinals=None)
    summary = run.summary
    time: Counter[str] = Counter()
    wanted = np.zeros(len(summary.calls), bool)
    for number, call in enumerate(summary.calls):
        of_call = (selection.ops, call.op), (selection.calls, call.name), (selection.layers, call.layer)
        wanted[number] = all(choices is None or name in choices for choices, name in of_call)
        mine = summary.cells["call"] == number
        if wanted[number] and mine.any():
            time[call.op] += int(summary.cells["time_ns"][mine].sum())
    op = _chosen_op(selection, time)
    layers, notes = _main_layer(run, selection, op)
    wanted &= np.array([layers is None or call.layer in layers for call in summary.calls], bool)
    of_op = np.array([call.op == op for call in summary.calls], bool)
    found = OrdinalEnsembles.from_cells(summary, (wanted & of_op)[summary.cells["call"]])
    notes += [
        "from the recorder's summary: calls are counted in the order of their completion, over all layers, "
        "and ordinals above 16 are grouped by octaves"
    ]
    if found.n_unknown:
        notes.append(f"excluded: {found.n_unknown:,} calls of unknown ordinal")
    return _OperationEnsembles(op, found, notes)


def _text(
    found: _OperationEnsembles, totals: list[Any], trend: str, limit: int, within: str, per_byte: bool
) -> str:
    from tabulate import tabulate

    from ensembles.model.units import seconds_text

    unit = "/MiB" if per_byte else ""
    scope = "in each phase" if within == "phase" else "on each file"
    head = f"Durations by call index (n-th {found.op} of a task {scope})"
    if not totals:
        return f"{head}: no calls"
    rows = []
    for entry in totals[:limit]:
        number = f"{entry.ordinal:,}" if entry.ordinal == entry.to else f"{entry.ordinal:,} to {entry.to:,}"
        times = (entry.median_s, entry.p90_s, entry.max_s)
        tasks = "" if entry.tasks is None else f"{entry.tasks:,}"
        rows.append([number, f"{entry.n:,}", tasks, *(seconds_text(time_s) + unit for time_s in times)])
    headers = ["ordinal", "calls", "tasks", "median", "p90", "max"]
    parts = [head]
    if rows:
        parts.append(tabulate(rows, headers, disable_numparse=True, colalign=["right"] * 6))
    if len(totals) > limit:
        parts.append(f"{len(totals) - limit:,} more ordinals are not shown: raise --limit to see them")
    parts.append(f"Trend: {trend}.")
    return "\n\n".join(parts)
