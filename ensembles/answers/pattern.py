"""What the tasks of a run do again and again, and how they share their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import PlainAnswer
from ensembles.model.holds import Holds
from ensembles.model.spans import find_spans, some_spans_text, spans_text
from ensembles.model.statement import Facts, Part, Statement, Table
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.structure.access.pattern import (
    AccessSummary,
    FileGroup,
    Pattern,
    TaskGroup,
    group_texts,
    line_of,
    pattern_of,
)
from ensembles.structure.access.uses import Coverage, IoCalls, coverage_text

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

_FILES = {"op": "", "order": "", "files": "count", "tasks": "count", "calls": "count", "bytes": "bytes"}
_FILES |= {"aligned": "bytes exactly", "again": "bytes", "overlap": "bytes"}


def answer_pattern(run: Run, selection: Selection, most: int) -> PlainAnswer:
    """Find the access pattern."""
    run.reading.need(Holds.SOME_CALLS, "sums do not know the order of calls")
    nested = bool(selection.layers)
    wanted = {"access": AccessSummary, "others": IoCalls}
    requests = {name: SummaryRequest(ignoring_run(partial(kind, nested))) for name, kind in wanted.items()}
    summaries = run.summarize(requests, selection=selection.for_run(run)).summaries
    found, covered = pattern_of(summaries["access"], run.files), summaries["others"].coverage()
    refuse_nothing(run, selection, len(found.groups) + found.other_tasks)
    notes = (*run.notes, *run.info.notes_on_calls)
    values = {
        "run": run.path,
        "pattern": line_of(found),
        "groups": [_group_json(group) for group in found.groups],
        "other_tasks": found.other_tasks,
        "files": [asdict(group) for group in found.files],
        "covered": asdict(covered) | {"time_share": covered.time_share},
        "complete": not notes,
        "notes": list(notes),
    }
    return PlainAnswer("pattern", tuple(_parts(found, covered, most)), values, notes)


def _group_json(group: TaskGroup) -> dict[str, Any]:
    loops = [
        {
            **asdict(loop),
            "steps": [
                {"op": op, "low_bytes": low, "high_bytes": high, "count": count}
                for op, low, high, count in loop.steps
            ],
        }
        for loop in group.loops
    ]
    return {
        "tasks": len(group.ranks),
        "ranks": spans_text(find_spans(group.ranks)),
        "loops": loops,
        "smaller_loops": group.smaller_loops,
        "smaller_loops_bytes": group.smaller_bytes,
    }


def _parts(found: Pattern, covered: Coverage, most: int) -> Iterator[Part]:
    """Show the pattern in a line, the groups of tasks, and the groups of files."""
    yield Facts([("", line_of(found))], width=0)
    if others := coverage_text(covered):
        yield Facts([("", others)], width=0)
    shown = found.groups[:most]
    tasks = sum(len(group.ranks) for group in found.groups) + found.other_tasks
    if len(found.groups) + found.other_tasks > 1 or any(len(group.loops) > 4 for group in shown):
        for group in shown:
            values = {"tasks": len(group.ranks), "ranks": some_spans_text(find_spans(group.ranks))}
            yield Facts(list(_group(group, tasks)), Statement("pattern.group", values), 0, 2)
    if len(found.groups) > len(shown):
        yield (Statement("pattern.more_groups", {"count": len(found.groups) - len(shown)}),)
    if found.other_tasks:
        yield (Statement("pattern.other_tasks", {"count": found.other_tasks}),)
    yield Table.of_rows("group", _FILES, [_row(group) for group in found.files])
    if any(not loop.steps and loop.most_files > 1 for group in shown for loop in group.loops):
        yield (Statement("pattern.several_files"),)


def _group(group: TaskGroup, tasks: int) -> Iterator[tuple[str, Statement | str]]:
    """Say what a group of tasks does."""
    texts = group_texts(group, tasks)
    yield from (("", text) for text in texts)
    if group.smaller_loops:
        values = {"bytes": group.smaller_bytes, "count": group.smaller_loops}
        yield "", Statement("pattern.smaller_loops", values)
    elif not texts:
        yield "", "no reads or writes"


def _row(group: FileGroup) -> tuple[Any, ...]:
    """Return the cells of a group of files."""
    again, overlap, aligned = group.repeated_by_task_bytes, group.overlap_bytes, group.alignment_bytes
    return (
        group.op,
        group.order or "-",
        group.files,
        group.tasks,
        group.calls,
        group.bytes,
        "?" if aligned is None else aligned or "any",  # all at 0
        "?" if again is None else again,
        "?" if overlap is None else overlap,
    )
